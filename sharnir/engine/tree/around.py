"""What is done before and after specialized steps (`special`): the same for all forests."""

from typing import Any

import warp as wp

from sharnir.engine.tree.forms import turn_twists, unlike
from sharnir.engine.tree.runtime import (
    IS_OTHER,
    TreeStep,
    begin_counts,
    count,
    idle_step,
    is_untouched,
    keep,
    load,
    prescribe,
    set_kinds,
    store,
    store_report,
)
from sharnir.sleep import at_rest_together, fall_asleep_jointed, wake_jointed
from sharnir.types import CPU_FLAGS, PRECISION, compile_quickly, real

MODULE = "sharnir.trees_around"


@wp.kernel(module=MODULE, enable_backward=False)
def begin_steps(t: wp.array(dtype=TreeStep), first: int, n: wp.array(dtype=wp.int32)):
    """What the caller changed; and which worlds the specialized code can step (`TreeStep.todo`)."""
    w = first + wp.tid()
    t[0].todo[w] = 0
    t[0].made[w] = n[w]
    if t[0].state.failed[w] != 0 or n[w] == 0:
        return
    t[0].made[w] = 0
    t[0].mark[w] = 0
    begin_counts(t, w)
    wake_jointed(t[0].rest, w)
    fresh = set_kinds(t, w) or not is_untouched(t, w)
    if at_rest_together(t[0].rest, w):
        for _step in range(n[w]):
            idle_step(t, w)
        t[0].made[w] = n[w]
        keep(t, w)
        if fresh:
            t[0].state.tree[0, w] = real(0.0)
        return
    if fresh:
        t[0].state.tree[0, w] = real(0.0)
    t[0].mark[w] = unlike(t, w)
    if t[0].mark[w] != 0:
        return
    t[0].todo[w] = n[w]
    t[0].fresh[w] = int(fresh)
    prescribe(t, w)
    if fresh:
        load(t, w)
    else:
        turn_twists(t, w, 1)


@wp.kernel(module=MODULE, enable_backward=False)
def end_steps(t: wp.array(dtype=TreeStep), first: int, n: wp.array(dtype=wp.int32), phase: int):
    """Bodies stand and move as the steps of a phase left them."""
    w = first + wp.tid()
    if n[w] == 0 or t[0].state.failed[w] != 0:
        return
    made = t[0].now_made[w]
    if made > 0:
        store(t, w)
        count(t, w, made)
        t[0].made[w] = t[0].made[w] + made
        if phase > 0:
            store_report(t, w)
        t[0].now_made[w] = 0
        if t[0].slow[w] == 1 or t[0].made[w] == n[w]:
            fall_asleep_jointed(t[0].rest, w)
            if t[0].now.resting[w] != 0:
                if set_kinds(t, w):
                    t[0].state.tree[0, w] = real(0.0)
                    t[0].todo[w] = 0
                    t[0].mark[w] = IS_OTHER
    if phase == 3:
        if t[0].mark[w] == 0 or t[0].made[w] > 0:
            keep(t, w)
        if t[0].made[w] < n[w]:
            t[0].unfinished[0] = 1


def special_kernel(body: str, name: str) -> Any:
    """The kernel that makes the steps of a phase by the emitted C++ `body`."""

    @wp.func_native(body)
    def advance(t: wp.array(dtype=TreeStep), w: int, phase: int, checking: int) -> int:
        """Steps of a world (`special.PHASES`)."""
        return 0

    @wp.kernel(module=name, enable_backward=False)
    def special_steps(t: wp.array(dtype=TreeStep), first: int, phase: int, checking: int):
        w = first + wp.tid()
        advance(t, w, phase, checking)

    options = {"fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": CPU_FLAGS}
    special_steps.module.options |= options
    return special_steps


compile_quickly(MODULE)
begin_steps.module.options |= {"fast_math": PRECISION == "single"}
