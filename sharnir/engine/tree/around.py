"""What is done before and after specialized steps (`special`): the same for all forests.

Threads are those of all links of all worlds, so that few worlds, too, occupy a GPU; a thread of a world does what must be done in
turn, and the guard's part. Where something is not as the last call left it, that is all of what `generic` does before steps.
"""

from typing import Any

import warp as wp

from sharnir.core.types import CPU_FLAGS, PRECISION, compile_quickly, quat, real, vec3
from sharnir.engine.guard import JOINTED, count_steps, look_at_body
from sharnir.engine.guard_data import LOOKED, STEPS, Watch
from sharnir.engine.sleep import NOBODY, at_rest_together, fall_asleep_jointed, wake_jointed
from sharnir.engine.tree.after import hang, keep, keep_body, report_link, store_axes, store_body
from sharnir.engine.tree.forms import GEARS, turn_twists, unlike
from sharnir.engine.tree.runtime import (
    IS_OFF,
    IS_OTHER,
    IS_OWN,
    IS_PRESCRIBED,
    KIND_AT,
    TreeStep,
    begin_counts,
    idle_step,
    is_untouched,
    laws_act,
    load,
    prescribe,
    prescribe_link,
    set_kinds,
)
from sharnir.model.kinematics import left_alone
from sharnir.model.model import DYNAMIC

MODULE = "sharnir.trees_around"
OF_LINKS = "sharnir.trees_links"  # kernels with a thread for every link
BLOCK = 64  # threads of a block of a GPU: few, so that few worlds occupy all of it
open_call, close_call = JOINTED.open_call, JOINTED.close_call


# ---- before steps ------------------------------------------------------------------------------------------------------------


@wp.func
def is_steady(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether a world as a whole goes on as the last call left it, so that specialized code can step it."""
    kept = t[0].state.tree[1, w]
    return t[0].state.tree[0, w] == t[0].settings.dt[0] and kept >= IS_OWN and int(kept) % GEARS == 0


@wp.func
def is_link_steady(t: wp.array(dtype=TreeStep), i: int, w: int) -> bool:
    """The same of a link: it hangs as built or sleeps, nobody moved its body, no outer force acts."""
    kind = t[0].kind[i + t[0].links * w]
    off = int(t[0].state.tree[t[0].first[i] + KIND_AT, w] != real(kind))
    off = off + int(kind != t[0].kind_built[i] and kind != IS_OFF)
    j = t[0].joint[i]
    if j >= 0:
        off = off + int(t[0].control.enabled[j, w] == 0)
    b = t[0].body[i]
    if b >= 0:  # all of these are read at once: none waits for another
        forces = magnitude(t[0].control.force[b, w]) + magnitude(t[0].control.torque[b, w])
        forces = forces + magnitude(t[0].control.force_once[b, w]) + magnitude(t[0].control.torque_once[b, w])
        off = off + int(forces > real(0.0))
        if t[0].bodies.motion[b] == DYNAMIC:
            off = off + int(not left_alone(t, b, w))
    return off == 0


@wp.func
def magnitude(v: vec3) -> real:
    """A number that is 0 for a vector of zeros alone."""
    return wp.abs(v[0]) + wp.abs(v[1]) + wp.abs(v[2])


@wp.kernel(module=OF_LINKS, enable_backward=False, grid_stride=False)
def begin_links(t: wp.array(dtype=TreeStep), first: int, n: wp.array(dtype=wp.int32)):
    """See whether a link goes on as the last call left it; where it is led, and whether laws act on it."""
    i, k = wp.tid()
    w = first + k
    if i == 0 and k == 0:
        for flag in range(3):
            t[0].unfinished[flag] = 0
    if t[0].state.failed[w] != 0 or n[w] == 0:
        return
    if not is_link_steady(t, i, w):
        t[0].seen[w] = 1
        return
    t[0].acts[i + t[0].links * w] = laws_act(t, i, w, t[0].kind_built[i])
    if t[0].kind_built[i] == IS_PRESCRIBED:
        prescribe_link(t, i, w)


@wp.kernel(module=MODULE, enable_backward=False, grid_stride=False)
def begin_worlds(t: wp.array(dtype=TreeStep), g: wp.array(dtype=Watch), first: int, n: wp.array(dtype=wp.int32)):
    """How many steps the specialized code is to make (`TreeStep.todo`); where something changed, begin anew."""
    w = first + wp.tid()
    changed = t[0].seen[w]
    t[0].seen[w] = 0
    t[0].todo[w] = 0
    t[0].mark[w] = 0
    if t[0].state.failed[w] != 0 or n[w] == 0:
        t[0].made[w] = n[w]
        return
    t[0].made[w] = 0
    t[0].fresh[w] = 0
    begin_counts(t, w)
    if changed == 1 or t[0].tally[0].counts[LOOKED, w] != t[0].tally[0].counts[STEPS, w]:
        open_call(g, w)
    resting = t[0].settings.sleep[0] < real(1.0e30) and t[0].now.resting[w] != NOBODY
    if changed == 0 and resting:
        wake_jointed(t[0].rest, w)
        if at_rest_together(t[0].rest, w):
            idle_steps(t, w, n[w])
            return
    if changed == 1 or resting or not is_steady(t, w):
        begin_changed(t, w, n[w])
    else:
        t[0].todo[w] = n[w]
    if t[0].mark[w] != 0:
        t[0].unfinished[0] = 1


@wp.func
def idle_steps(t: wp.array(dtype=TreeStep), w: int, n: int):
    """Steps of a world in which all sleep."""
    for _step in range(n):
        idle_step(t, w)
    t[0].made[w] = t[0].made[w] + n


@wp.func
def begin_changed(t: wp.array(dtype=TreeStep), w: int, n: int):
    """Take up what the caller changed in a world; and see whether specialized code can step it."""
    wake_jointed(t[0].rest, w)
    fresh = set_kinds(t, w) or not is_untouched(t, w)
    if at_rest_together(t[0].rest, w):
        idle_steps(t, w, n)
        keep(t, w)
        if fresh:
            t[0].state.tree[0, w] = real(0.0)
        return
    if fresh:
        t[0].state.tree[0, w] = real(0.0)
    t[0].mark[w] = unlike(t, w)
    if t[0].mark[w] != 0:
        return
    t[0].todo[w] = n
    t[0].fresh[w] = int(fresh)
    prescribe(t, w)
    if fresh:
        load(t, w)
    else:
        turn_twists(t, w, 1)
        prescribe(t, w)


# ---- after steps -------------------------------------------------------------------------------------------------------------


@wp.func
def place_links(t: wp.array(dtype=TreeStep), w: int):
    """Where the links of a world stand, from the coordinates of its joints."""
    none = quat(real(0.0), real(0.0), real(0.0), real(1.0))
    turn = none
    origin = vec3(real(0.0))
    for i in range(t[0].links):
        base = t[0].base_built[i]
        if base < 0:
            turn = none
            origin = vec3(real(0.0))
        elif base != i - 1:
            turn = t[0].turn[base, w]
            origin = t[0].origin[base, w]
        turn, origin = hang(t, i, w, t[0].kind_built[i], turn, origin)
        t[0].turn[i, w] = turn
        t[0].origin[i, w] = origin


@wp.kernel(module=OF_LINKS, enable_backward=False, grid_stride=False)
def end_links(t: wp.array(dtype=TreeStep), g: wp.array(dtype=Watch), first: int):
    """Bodies stand and move as the steps left them; it is remembered, to see what the caller changes, and what the guard needs
    of them is found.
    """
    i, k = wp.tid()
    w = first + k
    if t[0].now_made[w] == 0:
        return
    kind = t[0].kind_built[i]
    store_axes(t, i, w, kind)
    b = t[0].body[i]
    if b >= 0:
        x = t[0].state.kept_position[b, w]
        v = t[0].state.kept_velocity[b, w]
        store_body(t, i, b, w, kind, t[0].turn[i, w], t[0].origin[i, w])
        keep_body(t, b, w)
        if g[0].spread == 1:
            look_at_body(g, b, w, x, v)


@wp.kernel(module=OF_LINKS, enable_backward=False, grid_stride=False)
def end_joints(t: wp.array(dtype=TreeStep), first: int):
    """What joints carried, and what acted on their axes."""
    i, k = wp.tid()
    w = first + k
    if t[0].now_made[w] > 0 and t[0].reported[w] > 0:
        report_link(t, i, w)


@wp.kernel(module=MODULE, enable_backward=False, grid_stride=False)
def end_worlds(t: wp.array(dtype=TreeStep), g: wp.array(dtype=Watch), first: int, n: wp.array(dtype=wp.int32), after: int):
    """Count steps, see who falls asleep, and judge; `after`: steps of the call that other launches make."""
    w = first + wp.tid()
    if n[w] == 0 or t[0].state.failed[w] != 0:
        return
    made = t[0].now_made[w]
    if made > 0:
        t[0].now_made[w] = 0
        t[0].made[w] = t[0].made[w] + made
        t[0].residual[w] = t[0].change[w] * t[0].per_change
        t[0].done[w] = t[0].passes[w]
        t[0].state.open[w] = real(0.0)
        t[0].state.history[w] = wp.min(t[0].state.history[w] + made, 4)
        time = t[0].state.time[w]
        for _k in range(made):
            time = time + wp.float64(t[0].settings.dt[0])
        t[0].state.time[w] = time
        count_steps(t[0].tally, w, t[0].residual[w], t[0].settings.tolerance[0], made)
        if t[0].slow[w] == 1:
            end_slow(t, w, n[w])
    if after == 0:
        if t[0].made[w] < n[w]:
            t[0].unfinished[2] = 1
        close_call(g, w)


@wp.func
def end_slow(t: wp.array(dtype=TreeStep), w: int, n: int):
    """Bodies that have stood still for long fall asleep; where all do, the other steps of the call are made."""
    fall_asleep_jointed(t[0].rest, w)
    if t[0].now.resting[w] == NOBODY:
        return
    if set_kinds(t, w):
        t[0].state.tree[0, w] = real(0.0)
        t[0].todo[w] = 0
        t[0].mark[w] = IS_OTHER
    keep(t, w)
    if at_rest_together(t[0].rest, w):
        t[0].mark[w] = 0
        t[0].todo[w] = 0
        idle_steps(t, w, n - t[0].made[w])


def special_kernel(body: str, name: str, enter: str, shared: int) -> Any:
    """The kernel that makes the steps of a launch by the emitted C++ `body`.

    Args:
        name: of its module.
        enter: C++ that the threads of a block of a GPU run before it.
        shared: numbers in the shared memory of a block; 0: none, on a CPU.
    """

    @wp.func_native(body)
    def advance(t: wp.array(dtype=TreeStep), w: int, after: int, checking: int) -> int:
        """Steps of a world, all that are to be made but for `after`; `checking`: laws are compared with those of the code."""
        return 0

    @wp.func_native(enter)
    def enter_block(t: wp.array(dtype=TreeStep)) -> int:
        return 0

    @wp.kernel(module=name, enable_backward=False, grid_stride=False)
    def special_steps(t: wp.array(dtype=TreeStep), first: int, after: int, checking: int):
        w = first + wp.tid()
        if wp.static(shared > 0):
            _numbers = wp.tile_empty(shape=wp.static(max(shared, 1)), dtype=real, storage="shared")
            enter_block(t)
        advance(t, w, after, checking)
        if t[0].now_made[w] > 0:
            place_links(t, w)
        if t[0].todo[w] > after or t[0].mark[w] != 0:
            t[0].unfinished[0] = 1
        if w == first:
            t[0].unfinished[1] = 1

    options = {"fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": CPU_FLAGS}
    special_steps.module.options |= options
    return special_steps


compile_quickly(MODULE)
for module in (begin_worlds.module, begin_links.module):
    module.options |= {"fast_math": PRECISION == "single", "block_dim": BLOCK}
