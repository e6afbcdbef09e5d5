"""Kernels that step any forest: the emitted loop over links, with what is done around it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import CPU_FLAGS, PRECISION, QUICK_FLAGS, real
from sharnir.engine.sleep import at_rest_together, fall_asleep_jointed, rise, wake_jointed
from sharnir.engine.tree.after import break_joints, count, keep, store, store_report
from sharnir.engine.tree.contact_runtime import gather_laws, store_contacts
from sharnir.engine.tree.forest import BALL, KINDS, ROTOR, USUAL
from sharnir.engine.tree.forms import is_taken_up, turn_twists
from sharnir.engine.tree.row_runtime import forget_rows, set_rows, store_more, store_rows
from sharnir.engine.tree.runtime import (  # fmt: skip
    CPP,
    WARP,
    TreeStep,
    begin_counts,
    forget_other_memory,
    hardest_body,
    idle_step,
    is_untouched,
    load,
    prescribe,
    push,
    set_kinds,
)
from sharnir.engine.tree.storage import TOGETHER
from sharnir.laws.drives import set_drives

NEVER = wp.constant(real(1.0e30))  # s, of the time after which bodies sleep
OPTIONS = {"fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": QUICK_FLAGS}
THREADS = 128  # of a block of a GPU with contacts: two blocks have all registers of a multiprocessor
FEW = 8  # worlds of a warp, where there are more multiprocessors than blocks with so many
# with contacts; a GPU compiles it in a third of the time
WITH_CONTACT = {"cpu_compiler_flags": CPU_FLAGS, "optimization_level": 2, "block_dim": THREADS}


def lanes_of_warps(worlds: int, multiprocessors: int) -> int:
    """Threads of a warp of a GPU that step a world where bodies touch; 0: all of them.

    Worlds take different branches, and a warp goes through those of all its worlds in turn. So warps have few of them where there
    are too few to occupy the GPU. Worlds whose numbers stand beside each other are then those of one block, which reads them
    together.
    """
    warps = THREADS // TOGETHER
    lanes = FEW
    while lanes < TOGETHER and worlds > 2 * multiprocessors * warps * lanes:
        lanes *= 2
    while lanes > 1 and 2 * worlds <= multiprocessors * warps * lanes:
        lanes //= 2
    return 0 if lanes == TOGETHER else lanes


@wp.func
def world_of_thread(t: wp.array(dtype=TreeStep), k: int) -> int:
    """The world, among those of a launch, of its thread k; less than 0: none (`lanes_of_warps`)."""
    lanes = t[0].lanes
    if lanes == 0:
        return k
    lane = k % WARP
    return wp.where(lane < lanes, k // WARP * lanes + lane, -t[0].worlds)


@wp.func
def makes_steps(t: wp.array(dtype=TreeStep), w: int, n: wp.array(dtype=wp.int32)) -> bool:
    """Whether there is such a world, and it has steps to make."""
    if w < 0 or w >= t[0].worlds:
        return False
    return t[0].state.failed[w] == 0 and n[w] != 0


@wp.func
def look_at_rows(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """How links hang, and which closures hold; whether that is new."""
    changed = set_kinds(t, w)
    if set_rows(t, w):
        changed = True
    return changed


@wp.func
def load_with_rows(t: wp.array(dtype=TreeStep), w: int):
    load(t, w)
    forget_rows(t, w)


@wp.func
def may_be_new(t: wp.array(dtype=TreeStep)) -> bool:
    """Whether links may hang, or laws may act, otherwise than in the last launch: not in a call that goes on, awake."""
    goes_on = t[0].settings.iterations[7] == 1 and t[0].by_model == 0
    return not goes_on or t[0].settings.sleep[0] < NEVER or t[0].breakable == 1


@wp.func
def is_read(t: wp.array(dtype=TreeStep), w: int, to_come: int, made: int, more: bool) -> int:
    """1 if what joints carry is read after so many of the steps to come: the last of a call, or where laws depend on it.

    After a slow step the world may fall asleep in the next one, and what joints carry then stays so.
    """
    if t[0].slow[w] == 1 or t[0].loaded[w] == 1 or t[0].special == 1 or (more and t[0].drives.count + t[0].closures > 0):
        return 1
    return int(wp.max(to_come, t[0].to_come[w]) - made <= 2)


@wp.func
def store_all(t: wp.array(dtype=TreeStep), w: int):
    store(t, w)
    store_more(t, w)


@wp.func
def report_with_rows(t: wp.array(dtype=TreeStep), w: int):
    store_report(t, w)
    store_rows(t, w)


@wp.func
def itself(t: wp.array(dtype=TreeStep)):
    """The structure of trees of what a kernel is given."""
    return t


@wp.func
def nothing(t: wp.array(dtype=TreeStep), w: int):
    """What is done beside trees alone."""


@dataclass
class Given:
    """What a kernel is given, and what is done beside trees: of trees alone, or with ropes (`direct.roped_steps`)."""

    kind: Any = TreeStep
    tree: Any = itself
    begin: Any = nothing  # at the start of a call
    restart: Any = nothing  # where coordinates are taken from the bodies
    end: Any = nothing  # at the end of a call
    wake: Any = wake_jointed
    lie: Any = fall_asleep_jointed


TREES = Given()


def make_kernel(body: str, name: str, more: bool, rows: bool = False, touches: bool = False, given: Given = TREES) -> Any:
    """The kernel that makes steps by `body`, emitted C++, and what is done around it, see MODULES."""

    @wp.func_native(body)
    def advance(t: wp.array(dtype=given.kind), w: int, steps: int, fresh: int, reporting: int) -> int:
        """Up to so many steps of a world; returns how many were made, −1 − that if the next one cannot be."""
        return 0

    around = (look_at_rows, load_with_rows, report_with_rows) if rows else (set_kinds, load, store_report)
    return steps_kernel(name, advance, given, *around, store_all if more and rows else store, more, touches)


def steps_kernel(
    name: str, advance: Any, given: Given, look: Any, begin: Any, finish: Any, keep_state: Any, more: bool, touches: bool
) -> Any:  # fmt: skip
    """The same of device functions: how links hang, what a call begins with, what is reported and stored."""
    kind, tree, begin_call, restart, end_call, lie = given.kind, given.tree, given.begin, given.restart, given.end, given.lie
    wake = rise if touches else given.wake

    @wp.kernel(module=name, enable_backward=False)
    def tree_steps(all: wp.array(dtype=kind), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one cannot be made the world is marked and its state stays."""
        t = tree(all)
        w = first + world_of_thread(t, wp.tid())
        if not makes_steps(t, w, n):
            return
        wake(t[0].rest, w)
        forget_other_memory(t, w)
        t[0].made[w] = n[w]
        begin_counts(t, w)
        fresh = int(not is_untouched(t, w))
        if may_be_new(t):
            fresh = wp.max(fresh, int(look(t, w)))
        if fresh == 0:
            turn_twists(t, w, 0)
        begin_call(all, w)
        step = int(0)
        most = wp.max(1, t[0].settings.iterations[6])
        while step < n[w]:
            if step >= most:  # Python is heard now and then
                t[0].made[w] = step
                break
            if at_rest_together(t[0].rest, w):
                idle_step(t, w)
                step = step + 1
                continue
            prescribe(t, w)
            if fresh == 1:
                begin(t, w)
                restart(all, w)
            left = wp.where(n[w] - step > 3, n[w] - step - 3, 1)  # of the last three, loads of joints and accelerations are read
            if wp.static(more):
                set_drives(t, w, t[0].settings.dt[0], t[0].state.velocity, t[0].state.spin)
            if push(t, w) or t[0].loaded[w] == 1 or t[0].special == 1 or wp.static(more or touches):
                left = 1
            left = wp.min(left, most - step)
            reporting = is_read(t, w, n[w] - step, left, wp.static(more))
            if wp.static(touches):
                t[0].contacts.lost[w] = t[0].contacts.lost[w] + gather_laws(t, w, fresh)
            made = advance(all, w, left, fresh, reporting)
            fresh = 0
            broken = made < 0
            made = wp.where(broken, -1 - made, made)
            if made > 0:
                keep_state(t, w)
                if reporting == 1:
                    finish(t, w)
                if wp.static(touches):
                    store_contacts(t, w)
                count(t, w, made)
                step = step + made
                if t[0].slow[w] == 1 or step == n[w]:
                    lie(t[0].rest, w)
                    if t[0].now.resting[w] != 0:
                        fresh = int(look(t, w))
                if t[0].breakable == 1:
                    if break_joints(t, w):
                        look(t, w)
                        fresh = 1
            if broken:
                t[0].state.failed[w] = -1 - hardest_body(t, w)
                t[0].state.tree[0, w] = real(0.0)
                break
            if step < n[w] and is_taken_up(t, w):  # the rest is left to specialized code
                t[0].made[w] = step
                break
        keep(t, w)
        if fresh == 1:
            t[0].state.tree[0, w] = real(0.0)
        end_call(all, w)

    return tree_steps


ONE_AXIS, ALL = tuple(kind for kind in USUAL if kind != BALL), tuple(range(len(KINDS)))
BESIDE = tuple(kind for kind in ALL if kind != ROTOR)
MODULES: tuple[tuple[str, tuple[int, ...], bool, bool, bool], ...] = (
    ("sharnir.trees", ONE_AXIS, False, False, False),
    ("sharnir.trees_balls", USUAL, False, False, False),
    ("sharnir.trees_all", ALL, True, False, False),
    ("sharnir.trees_rows", ONE_AXIS, False, True, False),
    ("sharnir.trees_rows_all", BESIDE, True, True, False),
    ("sharnir.trees_touching", ONE_AXIS, False, True, True),
    ("sharnir.trees_touching_all", BESIDE, True, True, True),
)
"""Names, kinds of joints, whether drives of the table, cables and raycast wheels are known, rows, and contacts. Few, so that
little is compiled; laws of balls are half of the code, which most scenes do not need. With contacts code is optimized more: a
fifth less time a step for a fifth more to compile."""
_kernels: dict[str, Any] = {}


def generic_kernel(more: bool, kinds: Collection[int] = (), rows: bool = False, touches: bool = False) -> Any:
    """The kernel for any forest with joints of these kinds, with rows beside it, contacts, or without; see MODULES."""
    for which, (_, known, more_too, rows_too, touches_too) in enumerate(MODULES):
        if set(kinds) <= set(known) and more_too >= more and rows_too == (rows or touches) and touches_too == touches:
            return module_kernel(which)
    raise ValueError(f"no kernel has joints of all kinds {sorted(kinds)} {'and rows' if rows else ''}")


def module_kernel(which: int) -> Any:
    """The kernel of one of MODULES."""
    name, kinds, more, rows, touches = MODULES[which]
    if name not in _kernels:

        def emit() -> str:
            from sharnir.engine.tree import exact_rows, exact_several
            from sharnir.engine.tree.code import SIMULATION, Loop

            gear = None if touches else exact_rows if rows else exact_several
            how = {"rows": rows, "touches": touches, "more": more}
            return Loop(CPP, SIMULATION, pushed=True, kinds=kinds, second_gear=gear, **how).simulation()

        _kernels[name] = make_kernel(emitted(name, emit), name, more, rows, touches)
        _kernels[name].module.options |= OPTIONS | (WITH_CONTACT if touches else {})
    return _kernels[name]
