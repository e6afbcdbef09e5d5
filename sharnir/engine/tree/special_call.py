"""A call of specialized steps on a CPU: what is done before, between and after them (`around` on a GPU), in one kernel."""

from typing import Any

import warp as wp

from sharnir.engine.tree.after import count, keep, store, store_report
from sharnir.engine.tree.around import begin_changed, end_slow, is_link_steady, is_steady
from sharnir.engine.tree.runtime import TreeStep, begin_counts, laws_act, prescribe
from sharnir.types import CPU_FLAGS, MODULE_OPTIONS, PRECISION


@wp.func
def begin_call(t: wp.array(dtype=TreeStep), w: int, n: int):
    """How many steps the specialized code is to make (`TreeStep.todo`); where something changed, begin anew."""
    t[0].made[w] = 0
    t[0].todo[w] = 0
    t[0].mark[w] = 0
    t[0].fresh[w] = 0
    begin_counts(t, w)
    steady = is_steady(t, w)
    for i in range(t[0].links):
        steady = steady and is_link_steady(t, i, w)
    if not steady:
        begin_changed(t, w, n)
        return
    t[0].todo[w] = n
    for i in range(t[0].links):
        t[0].acts[i + t[0].links * w] = laws_act(t, i, w, t[0].kind_built[i])
    prescribe(t, w)


@wp.func
def end_steps(t: wp.array(dtype=TreeStep), w: int, made: int):
    """Bodies stand and move as the steps left them, and joints report."""
    store(t, w)
    if t[0].reported[w] > 0:
        store_report(t, w)
    count(t, w, made)
    keep(t, w)
    if t[0].slow[w] == 1:
        end_slow(t, w)


def call_kernel(body: str, name: str) -> Any:
    """The kernel that makes the steps of a call by the emitted C++ `body`."""

    @wp.func_native(body)
    def advance(t: wp.array(dtype=TreeStep), w: int, after: int, checking: int) -> int:
        """Steps of a world, all that are to be made but for `after`; `checking`: laws are compared with those of the code."""
        return 0

    @wp.kernel(module=name, enable_backward=False)
    def special_call(t: wp.array(dtype=TreeStep), first: int, n: wp.array(dtype=wp.int32), apart: int):
        """n steps of a world, the last `apart` of them one by one; `unfinished` tells of worlds that have some left."""
        w = first + wp.tid()
        if t[0].state.failed[w] != 0 or n[w] == 0:
            t[0].made[w] = n[w]
            return
        begin_call(t, w, n[w])
        after = wp.min(apart, n[w] - 1)
        checking = int(1)
        while after >= 0:
            made = advance(t, w, after, checking)
            checking = 0
            after = after - 1
            if made > 0:
                t[0].made[w] = t[0].made[w] + made
                end_steps(t, w, made)
        if t[0].made[w] < n[w]:
            t[0].unfinished[0] = 1

    special_call.module.options |= MODULE_OPTIONS | {"fast_math": PRECISION == "single", "cpu_compiler_flags": CPU_FLAGS}
    return special_call
