"""The kernel of trees on which ropes hang, and what it is given (`direct.roped`)."""

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import EPSILON, PRECISION, alone, inline_less, real
from sharnir.engine.direct.roped import roped_calls
from sharnir.engine.direct.roped_data import LAST, TIE, TURN, RopedTree
from sharnir.engine.direct.roped_touch import find_contacts
from sharnir.engine.direct.roped_winch import start_drums
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, PORT, RopeSettings, RopeStep, RopeTable
from sharnir.engine.rope.data import ROPE as HUNG_ON
from sharnir.engine.rope.energy_kernels import note_velocities
from sharnir.engine.rope.kernels import ropes_untouched
from sharnir.engine.rope.solver import PASSES, TOLERANCE, rope_settings, rope_step, shared
from sharnir.engine.rope.touch_data import RopeTouch
from sharnir.engine.sleep import fall_asleep, wake_by_caller
from sharnir.engine.tree.closures import ROPE, WINCH, Closure, RowTables
from sharnir.engine.tree.contact_runtime import ROPE_ENDS
from sharnir.engine.tree.forest import GROUND
from sharnir.engine.tree.generic import BESIDE, OPTIONS, Given, make_kernel
from sharnir.engine.tree.ropes import CROSS_SIZE, END_SIZE, HUNG_SIZE, TOUCH_SIZE, WINCH_SIZE
from sharnir.engine.tree.row_storage import LINK_FIELDS, PER_ROW, WORK
from sharnir.engine.tree.runtime import CPP, TreeStep
from sharnir.engine.tree.storage import ROW, ROW_APART, TOGETHER
from sharnir.model.model import DYNAMIC, FIXED, Control, Model, State, fill
from sharnir.model.rope_state import ROPE_STATE_FIELDS, RopeState

MODULES = ("sharnir.trees_roped", "sharnir.trees_roped_touching")  # the second with contacts
LEAST = {"double": 100, "single": 10}  # times the rounding of a number: tolerance of speeds, of the largest, at least
for _name in MODULES:
    inline_less(_name, slp=False)


def covers(ropes: Any) -> bool:
    """Whether the steps of trees take these ropes: none with a winch hangs on another, or has both ends
    clamped.
    """
    t = ropes.table
    kind, clamp = (x.numpy().reshape(-1, 2) for x in (t.kind, t.clamp))
    wound = t.winch.numpy() >= 0
    clamped = (kind[:, 1] == PORT) & (clamp[:, 1] == 1)
    return not (wound & ((kind[:, 0] == HUNG_ON) | clamped)).any()


def bases_of(ropes: Any) -> tuple[list[int], list[int]]:
    """The rope on which each hangs, or −1, and the one without such that comes first on the way to what holds it, or itself."""
    t = ropes.table
    first, kind, body = t.first.numpy(), t.kind.numpy()[::2], t.body.numpy()[::2]
    bases = [int(np.flatnonzero(first <= body[k]).max()) if kind[k] == HUNG_ON else -1 for k in range(ropes.count)]
    roots = list(range(ropes.count))
    for k in reversed(t.order.numpy()):
        if bases[k] >= 0:
            roots[k] = roots[bases[k]]
    return bases, roots


def holds_of(ropes: Any, plan: Any) -> list[tuple[int, int, int, int]]:
    """Kind (`roped_holds`), rope, tie or −1, and link of all places where ropes are held beside their ends in the elimination."""
    t = ropes.table
    kind, body, clamp = (x.numpy().reshape(-1, 2) for x in (t.kind, t.body, t.clamp))
    held = [k for k in range(ropes.count) if kind[k, 1] == PORT]
    out = [(int(LAST), k, -1, plan.link_of[int(body[k, 1])]) for k in held]
    for n in range(t.ties):
        link = plan.link_of[int(t.tie_body.numpy()[n])] if t.tie_kind.numpy()[n] == PORT else GROUND
        out.append((int(TIE), int(t.tie_rope.numpy()[n]), n, link))
    return out + [(int(TURN), k, -1, plan.link_of[int(body[k, 1])]) for k in held if clamp[k, 1]]


def covers_touching(model: Model) -> bool:
    """Whether ropes of a model may be stepped here although they touch something."""
    t = model.ropes.table
    kind, clamp = (x.numpy().reshape(-1, 2) for x in (t.kind, t.clamp))
    apart = (kind[:, 0] == HUNG_ON) | (t.winch.numpy() >= 0) | ((kind[:, 1] == PORT) & (clamp[:, 1] == 1))
    return bool(wp.get_device(model.device).is_cpu) and PRECISION == "double" and not apart.any()


def ends_of(ropes: Any, plan: Any) -> list[Closure]:
    """Where links hold ropes beside their first ends, and winches."""
    link_of = plan.link_of
    kind, body = (x.numpy().reshape(-1, 2) for x in (ropes.table.kind, ropes.table.body))
    first = [link_of[int(body[k, 0])] if kind[k, 0] == BODY else GROUND for k in range(ropes.count)]
    _, roots = bases_of(ropes)
    holds = [(roots[k], link) for _, k, _, link in holds_of(ropes, plan)]
    out = [Closure(ROPE, first[k], link, item=n, rope=k) for n, (k, link) in enumerate(holds)]
    for k, joint in enumerate(ropes.table.winch.numpy()):
        if joint >= 0:
            a, b = [link_of[int(b)] if what in (BODY, PORT) else GROUND for what, b in zip(kind[k], body[k], strict=True)]
            out.append(Closure(WINCH, a, b, along=[i for i in (drum_of(plan, joint),) if i != GROUND], item=k))
    return out


def drum_of(plan: Any, joint: int) -> int:
    """The link that turns as a drum on a joint does."""
    return next((i for i, p in enumerate(plan.places) if p.joint == joint and p.axis >= 0), GROUND)


def bind(
    t: Any, tables: RowTables, model: Model, state: State, control: Control, plan: Any, caps: tuple[Any, Any],
    touch: tuple[Any, Any] | None,
) -> tuple[Any, Any]:  # fmt: skip
    """The structure for the trees' structure t and these arrays, and what keeps those alive that are its own.

    Args:
        caps: passes of a part of a step, and tolerance, as of `SolverRope`; None: as there.
        touch: where ropes touch shapes: `RopeTouch`, and the collider's array on the device.
    """
    ropes, device, worlds = model.ropes, model.device, model.worlds
    settings: Any = RopeSettings()
    tolerance = max(TOLERANCE if caps[1] is None else caps[1], LEAST[PRECISION] * EPSILON)
    rope_settings(settings, tolerance, [PASSES if caps[0] is None else caps[0]], device)
    settings.dt, settings.gravity = t.settings.dt, t.settings.gravity
    s = rope_step(model, state, control, settings)
    table = shared(ropes.table, RopeTable)
    kind = ropes.table.kind.numpy()
    held = np.isin(kind, (BODY, PORT, DRIVEN))
    table.kind = wp.array(np.where(kind == PORT, int(LOOP), kind), dtype=wp.int32, device=device)
    table.exact = 1
    if table.ties:
        table.tie_kind = wp.full(table.ties, PORT, dtype=wp.int32, device=device)
    if touch is not None:  # surfaces act on a rope's points as what is tied to them does
        table.tied = wp.full(table.count, 1, dtype=wp.int32, device=device)
    s.ropes = table
    fill(s.work, model, 2 * ropes.count, "end_arm")
    fill(s.work, model, table.ties, "tie_end")
    s.body_state = State()
    fill(s.body_state, model, len(model.com), "position rotation rest velocity spin momentum kept_velocity kept_momentum")
    x: Any = RopedTree()
    safe = shared(s, RopeStep)
    safe.state = RopeState()
    for name in ROPE_STATE_FIELDS:
        setattr(safe.state, name, wp.empty_like(getattr(state.rope, name)))

    def ints(values: Any) -> Any:
        return wp.array(np.array(values, np.int32), dtype=wp.int32, device=device)

    link_of, winch = plan.link_of, ropes.table.winch.numpy()
    drums = [x.numpy()[winch >= 0].tolist() for x in (ropes.table.drum_child, ropes.table.drum_parent)]
    tied = ropes.table.tie_body.numpy().tolist() if table.ties else []
    motion = model.bodies.motion.numpy()
    met = [] if touch is None else [b for b in {shape.body for shape in model.collision.shapes} if motion[b] != FIXED]
    bodies = sorted({*drums[0], *drums[1], *ropes.table.body.numpy()[held].tolist(), *tied, *met})
    links = [link_of[b] if motion[b] == DYNAMIC else -1 for b in range(len(motion))]
    x.held, x.held_body, x.held_link = len(bodies), ints(bodies), ints([links[b] for b in bodies])
    x.link_of = ints(links)
    first = (ROW + ROW_APART + sum(LINK_FIELDS.values())) * (t.links + 1)
    x.closure_size, x.principal = sum(WORK.values()), int(model.collision is not None)

    holds = holds_of(ropes, plan)
    rows = {(c.kind, c.item): tables.tables["row_start"][n] for n, c in enumerate(tables.closures)}

    def rows_of(what: int, count: int) -> Any:
        at = [rows.get((what, n), -1) for n in range(count)]
        return ints([first + len(PER_ROW) * row + PER_ROW.index("rest") if row >= 0 else -1 for row in at])

    x.hold_row, x.winch_row, x.row_size = rows_of(ROPE, len(holds)), rows_of(WINCH, ropes.count), len(PER_ROW)
    x.holds = len(holds)
    of_last = {k: n for n, (kind, k, _, _) in enumerate(holds) if kind == LAST}
    columns = np.array(holds, int).reshape(-1, 4).T
    x.hold_kind, x.hold_rope, x.hold_tie, x.hold_link = (ints(column) for column in columns)
    x.hold_of = ints([of_last.get(k, -1) for k in range(ropes.count)])
    bases, roots = bases_of(ropes)
    x.base, x.root, x.rank = ints(bases), ints(roots), ints(np.argsort(ropes.table.order.numpy()))
    place = [rows.get((ROPE, n), 0) for n in range(len(holds))]  # of ropes that touch none is
    bind_pairs(x, [roots[k] for _, k, _, _ in holds], place, ints, worlds)
    fill(x, model, len(holds), "hold_by hold_K hold_J axes")
    drum = [drum_of(plan, joint) if joint >= 0 else GROUND for joint in winch]
    hung = kind.reshape(-1, 2)[columns[1], 0] == HUNG_ON
    x.between, x.drum_link = int(touch is not None or (winch >= 0).any() or (hung | (columns[0] != LAST)).any()), ints(drum)
    x.winch = wp.zeros((WINCH_SIZE * ropes.count, worlds), dtype=real, device=device)
    x.hung = wp.zeros((HUNG_SIZE * t.links, worlds), dtype=real, device=device)
    x.ends = wp.zeros((END_SIZE * len(holds), worlds), dtype=real, device=device)
    fill(x, model, len(bodies), "mean_l mean_a")
    fill(x, model, None, "what wrong judged tries fewest all stuck stalls verdict last again elapsed lost scaled open")
    bind_touch(x, t, model, touch)
    x.tree = alone(t, TreeStep, device)
    x.rope, x.safe = alone(s, RopeStep, device), alone(safe, RopeStep, device)
    return x, (s, safe)


def bind_pairs(x: Any, root: list[int], place: list[int], ints: Any, worlds: int) -> None:
    """Pairs of holds of ropes with one root, which one mobility couples; place: where the row of each is."""
    pairs = [(a, b) for a in range(x.holds) for b in range(x.holds) if root[a] == root[b] and place[a] > place[b]]
    x.pairs, x.pair_a, x.pair_b = len(pairs), ints([a for a, _ in pairs]), ints([b for _, b in pairs])
    x.pair_row = ints([place[n] for pair in pairs for n in pair])
    x.cross = wp.zeros((CROSS_SIZE * len(pairs), worlds), dtype=real, device=x.pair_row.device)


def touch_room(touch: Any, ropes: Any) -> tuple[int, int]:
    """Room for closures of ropes that touch, and for speeds of the points of one of them."""
    holds = int(ropes.table.ties) + ropes.count
    return int(holds + ropes.slots + 8 + touch.pair_capacity), int(3 * (max(ropes.capacity) + 1))


def bind_touch(x: Any, t: Any, model: Model, touch: tuple[Any, Any] | None) -> None:
    """What ropes touch, if they do."""
    fill(x, model, None, "strikes")
    x.touches = int(touch is not None)
    if touch is None:
        return
    x.touch, x.collision = alone(touch[0], RopeTouch, model.device), touch[1]
    x.rows_most, _ = touch_room(touch[0], model.ropes)
    names = "own_F own_H own_K own_M to_next from_next to_last from_last along_X along_Y along_P along_Q turned_X turned_Y"
    names += " turned_P turned_Q held_X held_Y held_P held_Q place_of point_slot free"
    fill(x, model, model.ropes.slots, names)
    fill(x, model, 3 * model.ropes.slots, "touch_delta")
    fill(x, model, 18 * model.ropes.slots, "touch_L touch_U")
    fill(x, model, TOUCH_SIZE * x.rows_most, "touch_rows")
    fill(x, model, x.rows_most, "touch_push")
    fill(x, model, 36 * x.rows_most, "touch_J")
    t.rope_most, t.rope_first = model.ropes.count, model.ropes.table.first
    fill(t, model, None, "rope_live")
    fill(t, model, ROPE_ENDS * x.rows_most, "rope_ends")
    fill(t, model, model.ropes.count, "rope_width")


# ---- steps -------------------------------------------------------------------------------------------------------------------


@wp.func
def tree_of(x: wp.array(dtype=RopedTree)):
    """The structure of the trees."""
    return x[0].tree


@wp.func
def begin_call(x: wp.array(dtype=RopedTree), w: int):
    """Ropes that a caller moved begin anew. It names what the emitted code calls, so that this stands after that."""
    if w < 0:
        roped_calls(x, w)
    start_drums(x, w)
    x[0].elapsed[w] = real(0.0)
    if not ropes_untouched(x[0].rope, w):
        restart(x, w)


@wp.func
def restart(x: wp.array(dtype=RopedTree), w: int):
    """Velocities of ropes are fitted before the next step."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        s[0].state.started[k, w] = 0


@wp.func
def end_call(x: wp.array(dtype=RopedTree), w: int):
    """Note velocities as the call leaves them."""
    note_velocities(x[0].rope, w)


_kernels: dict[str, Any] = {}


def roped_kernel(touches: int = 0) -> Any:
    """The kernel for any forest, with rows beside it, on which ropes hang; `touches` 1: with contacts of bodies."""
    name = MODULES[touches]
    if name not in _kernels:

        def emit() -> str:
            from sharnir.engine.tree import exact_rows
            from sharnir.engine.tree.code import ROPED, Loop

            how = {"rows": True, "ropes": True, "more": True, "touches": bool(touches)}
            return Loop(CPP, ROPED, pushed=True, kinds=BESIDE, second_gear=None if touches else exact_rows, **how).simulation()

        given = Given(RopedTree, tree_of, begin_call, restart, end_call, wake_by_caller, fall_asleep, find_contacts)
        _kernels[name] = make_kernel(emitted(name, emit), name, True, rows=True, touches=bool(touches), given=given)
        _kernels[name].module.options |= OPTIONS | {"optimization_level": 2, "block_dim": TOGETHER}
    return _kernels[name]
