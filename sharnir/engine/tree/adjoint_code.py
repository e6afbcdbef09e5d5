"""The kernel that goes back along a motion of trees: `adjoint` as C++, and what it is given.

Of each step it is given the state before it. The mean speeds that it found stand in the state after it, so that one pass with the
exact derivative is all that is made again.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import PRECISION, QUICK_FLAGS, real
from sharnir.engine.tree.adjoint import AdjointTree, impact_adjoint, state_adjoint, step_adjoint
from sharnir.engine.tree.code import SET_STEP, stored_fields
from sharnir.engine.tree.motion_code import KeptSteps
from sharnir.engine.tree.runtime import CPP, TreeStep, prescribe, set_kinds
from sharnir.engine.tree.step import finish, fit_speeds, place_links, solve
from sharnir.engine.tree.storage import GEAR, PREPARED, ROW, SIZES, START
from sharnir.engine.tree.tangent import KINDS, PARAMETERS, PARAMETERS_SIZE, RESULT_SIZE, SEED_SIZE, PlainTree
from sharnir.engine.tree.tangent_code import UNKNOWN

NAME = "sharnir.adjoint"
HEAD = f"""typedef real reals; bool again = false; int k = steps; const int fresh = 1;
real* const slopes_here = slopes.data + (size_t)w*{ROW}*(links + 1);
const int kept_size = memory_size; real* const saved = memory.data + (size_t)worlds*memory_size + (size_t)w*memory_size;
#define rate(k) slopes_here[k]
#define seed(n) out.data[((size_t)(k*worlds + w)*links + i)*{SEED_SIZE} + (n)]
#define result(n) cost.data[((size_t)(k*worlds + w)*links + i)*{RESULT_SIZE} + (n)]
"""


class MeansKnown(PlainTree):
    """The mean speeds of the step are known; so it is solved in second gear."""

    def unless_restarted(self) -> Any:
        yield from ()

    def in_first_gear(self) -> Any:
        yield from ()


class Adjoint(KeptSteps):
    """The body of the function that goes back along a motion."""

    def __init__(self, real: str) -> None:
        super().__init__(real)
        self.tree = MeansKnown(self.program, False, False, KINDS, True, self.tree.second_gear)
        self.tree.begins = True

    def load_means(self) -> str:
        """C++: mean speeds that a step found, from the state after it."""
        lines = ["for (int i = 0; i < links; ++i) { if (kinds[i] < 0) continue; const Place own = {row}*(i + 1);"]
        lines.append("real* kept = &stored(x.first.data[i]); (void)kept;")
        for kind in self.tree.kinds:
            at, lines_of = 0, []
            for name, size in stored_fields(kind, True, self.real):
                if name.rstrip("1") in UNKNOWN and name.endswith("1"):
                    lines_of += [f"number(own + {START[name[:-1]] + n}) = kept[{at + n}*worlds];" for n in range(size)]
                at += size
            lines.append(f"if (kinds[i] == {kind}) {{ {' '.join(lines_of)} }}")
        return "\n".join([*lines, "}"]).replace("{row}", str(ROW))

    def simulation(self) -> str:
        p, tree = self.program, self.tree
        back = AdjointTree(p, tree.second_gear)
        with p.block("for (;; --k) {"):
            p.say(f"state_at = k;\n{self.load_step('k == steps')}")
            with p.block("if (k < steps) {"):
                p.say(f"state_at = k + 1;\n{self.load_means()}\nstate_at = k;")
                self.set_commands()
                p.say(f"unknown = learned = restarted = false; count = 0; gear = {GEAR};")
                solve(tree)
                p.say("if (failed) return -1 - k;")
                with p.block("if (hits.data[k*worlds + w]) {"):
                    p.say("for (int n = 0; n < kept_size; ++n) saved[n] = number(n);")
                    finish(tree)
                    with tree.at_rest():
                        fit_speeds(tree)
                        impact_adjoint(back)
                    p.say("for (int n = 0; n < kept_size; ++n) number(n) = saved[n];")
                p.say("again = false;")
                lock, given = (f"number({ROW}*(i + 1) + {START[n]})" for n in ("lock", "given"))
                p.say(
                    f"for (int i = 0; i < links; ++i) again = again || (acts[i] && ({lock} > real(0.5) || {given} != real(0.0)));"
                )
                step_adjoint(back)
            with p.block("else {"):
                place_links(tree)
            state_adjoint(back, "k == 0")
            left = " ".join(f"rate({ROW}*(i + 1) + {START[n] + m}) = real(0.0);" for n in UNKNOWN for m in range(SIZES[n]))
            p.say(f"for (int i = 0; i < links; ++i) {{ {left} }}")
            p.say("if (k == 0) break;")
        p.say(
            f"for (int i = 0; i < links; ++i) {{ real* const of = &by_parameters.data[(size_t)(w*links + i)*{PARAMETERS_SIZE}];"
        )
        names = [f"{START[name] + n}" for name, size in PARAMETERS.items() for n in range(size)]
        p.say(" ".join(f"of[{n}] = rate({ROW}*(i + 1) + {at});" for n, at in enumerate(names)) + " }")
        return self.whole(f"h = dt; {SET_STEP} number({PREPARED}) = real(0.0);\n{HEAD}", "return 0;", "")


def body() -> str:
    """The C++ of the function."""
    return Adjoint(CPP).simulation()


_kernel: Any = None


def adjoint_kernel() -> Any:
    """The kernel: slopes of a cost by states [step, world, link, number] to those by what is given."""
    global _kernel
    if _kernel is not None:
        return _kernel

    @wp.func_native(emitted(NAME, body))
    def go_back(
        t: wp.array(dtype=TreeStep), w: int, steps: int, rows: int, columns: int, states: wp.array(dtype=real),
        hits: wp.array(dtype=int), controls: wp.array(dtype=real), column_at: wp.array(dtype=int),
        column_scale: wp.array(dtype=real), column_adds: wp.array(dtype=real), memory: wp.array(dtype=real),
        slopes: wp.array(dtype=real), acts_all: wp.array(dtype=int), cost: wp.array(dtype=real), out: wp.array(dtype=real),
        by_parameters: wp.array(dtype=real),
    ) -> int:  # fmt: skip
        """Returns 0, or −1 − the step that does not converge as a whole."""
        return 0

    @wp.kernel(module=NAME, enable_backward=False)
    def back(
        t: wp.array(dtype=TreeStep), steps: int, rows: int, columns: int,
        states: wp.array(dtype=real), hits: wp.array(dtype=int), controls: wp.array(dtype=real),
        column_at: wp.array(dtype=int), column_scale: wp.array(dtype=real), column_adds: wp.array(dtype=real),
        memory: wp.array(dtype=real), slopes: wp.array(dtype=real), acts_all: wp.array(dtype=int), cost: wp.array(dtype=real),
        out: wp.array(dtype=real), by_parameters: wp.array(dtype=real), told: wp.array(dtype=int),
    ) -> None:  # fmt: skip
        w = wp.tid()
        set_kinds(t, w)
        prescribe(t, w)
        told[w] = go_back(
            t, w, steps, rows, columns, states, hits, controls, column_at, column_scale, column_adds, memory, slopes,
            acts_all, cost, out, by_parameters,
        )  # fmt: skip

    back.module.options |= {"fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": QUICK_FLAGS}
    _kernel = back
    return _kernel
