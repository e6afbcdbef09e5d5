"""A call of specialized steps on a CPU: what is done before, between and after them (`around` on a GPU), in one kernel."""

from typing import Any

import warp as wp

from sharnir.core.types import CPU_FLAGS, MODULE_OPTIONS, PRECISION, real
from sharnir.engine.sleep import NOBODY
from sharnir.engine.tree.after import count, keep, store, store_report
from sharnir.engine.tree.around import begin_changed, end_slow, is_steady
from sharnir.engine.tree.runtime import (
    DONE,
    KIND_AT,
    NATIVE,
    TreeStep,
    begin_counts,
    is_untouched,
    laws_act,
    outer_forces,
    prescribe,
)


@wp.func_native(
    f"""{NATIVE}const int* const kinds = x.kind.data + (size_t)w*x.links;
for (int i = 0; i < x.links; ++i) {{
const int kind = x.kind_built.data[i], j = x.joint.data[i];
if (kinds[i] != kind || cell(state.tree, x.first.data[i] + {int(KIND_AT)}) != real(kind)) return false;
if (j >= 0 && shared(control.enabled, j) == 0) return false;
}}
{DONE}return true;"""
)
def hangs_as_built(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether all links of a world hang as built, as they did in the last call."""
    return True


@wp.func
def begin_call(t: wp.array(dtype=TreeStep), w: int, n: int):
    """How many steps the specialized code is to make (`TreeStep.todo`); where something changed, begin anew."""
    t[0].made[w] = 0
    t[0].todo[w] = 0
    t[0].mark[w] = 0
    t[0].fresh[w] = 0
    begin_counts(t, w)
    resting = t[0].settings.sleep[0] < real(1.0e30) and t[0].now.resting[w] != NOBODY
    if resting or not (is_steady(t, w) and hangs_as_built(t, w) and is_untouched(t, w) and outer_forces(t, w) == 0):
        begin_changed(t, w, n)
        return
    t[0].todo[w] = n
    for i in range(t[0].links):
        t[0].acts[i + t[0].links * w] = laws_act(t, i, w, t[0].kind_built[i])
    prescribe(t, w)


@wp.func
def end_steps(t: wp.array(dtype=TreeStep), w: int, made: int, n: int):
    """Bodies stand and move as the steps left them, and joints report."""
    store(t, w)
    if t[0].reported[w] > 0:
        store_report(t, w)
    count(t, w, made)
    keep(t, w)
    if t[0].slow[w] == 1:
        end_slow(t, w, n)


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
            t[0].mark[w] = 0
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
                end_steps(t, w, made, n[w])
        if t[0].made[w] < n[w]:
            t[0].unfinished[2] = 1

    special_call.module.options |= MODULE_OPTIONS | {"fast_math": PRECISION == "single", "cpu_compiler_flags": CPU_FLAGS}
    return special_call
