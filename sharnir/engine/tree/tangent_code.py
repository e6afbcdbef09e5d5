"""The kernel that linearizes the next step of trees: `tangent` as C++, and what it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import PRECISION, QUICK_FLAGS, real
from sharnir.engine.tree.code import SET_STEP, SIMULATION, Loop
from sharnir.engine.tree.runtime import CPP, TreeStep, is_untouched, load, prescribe, set_kinds
from sharnir.engine.tree.step import finish, guess, project, solve
from sharnir.engine.tree.storage import PREPARED, ROW, ROW_APART, SIZES, START
from sharnir.engine.tree.tangent import ENDS, ENDS_SIZE, KINDS, LANES, RESULT_SIZE, SEED_SIZE, PlainTree, TangentTree, tangent

NAME = "sharnir.tangent"
KEPT = ("q", "c", "s", "rotation", "position", "V", "W", "z", "zv", "zl")  # what a direction's way to the end of the step changes
UNKNOWN = ("z", "zv", "zl")  # of these, what has no rates at first; others are given some, or never have any
NOT_FOUND, STOPS = 1, 2  # what is told of a world: its step is divided; something stops in it
GIVEN = """const int memory_size = {size};
real* const numbers = memory.data; const int memory_worlds = worlds; (void)memory_worlds;"""
LANE = f"""#ifdef __CUDA_ARCH__
typedef real reals;
const auto below = [](reals x, reals y, real by) {{ return x <= by*y; }};
#else
typedef real reals __attribute__((ext_vector_type({LANES}), aligned(sizeof(real))));
const auto below = [](reals x, reals y, real by) {{
real a = x[0], b = y[0]; for (int k = 1; k < {LANES}; ++k) {{ a += x[k]; b += y[k]; }} return a <= by*b; }};
#endif
reals moved = (reals)(real(0.0)), size = moved; bool again = false; int block = 0;
reals* const rates_here = (reals*)rates.data + (size_t)w*{ROW}*(links + 1);
const int kept_size = {ROW}*(links + 1);  // without what joints with laws on several axes have
real* const saved = memory.data + (size_t)worlds*memory_size + (size_t)w*memory_size;
#define rate(k) rates_here[k]
#define seed(k) ((const reals*)seeds.data)[((size_t)(w*blocks + block)*links + i)*{SEED_SIZE} + (k)]
#define result(k) ((reals*)results.data)[((size_t)(w*blocks + block)*links + i)*{RESULT_SIZE} + (k)]
"""


class Tangent(Loop):
    """The body of the function that follows directions through the next step."""

    def __init__(self, real: str) -> None:
        from sharnir.engine.tree import exact_several

        head = SIMULATION.head[: SIMULATION.head.index("real* const numbers")]
        head = head.replace("x.acts.data", "acts_all.data") + GIVEN.format(size=f"{ROW + ROW_APART}*(links + 1)")
        super().__init__(
            real, replace(SIMULATION, head=head, goes_on="false"), kinds=KINDS, pushed=True, second_gear=exact_several
        )
        self.tree = PlainTree(self.program, False, False, KINDS, True, exact_several)
        self.tree.begins = True

    def simulation(self) -> str:
        p, tree = self.program, self.tree
        with p.block("if (fresh) {"):
            project(tree)
        guess(tree)
        solve(tree)
        p.say(f"if (failed) return {NOT_FOUND};")
        p.say("for (int k = 0; k < kept_size; ++k) saved[k] = number(k);")
        p.say("stopped = 0;")
        finish(tree)
        p.say("const int told = stopped ? STOPS : 0;".replace("STOPS", str(STOPS)))
        p.say(f"for (int i = 0; i < links; ++i) {{ const Place own = {ROW}*(i + 1);")
        names = [f"number(own + {START[n] + k})" for n, size in ENDS.items() for k in range(size)]
        p.say(" ".join(f"ends.data[(w*links + i)*{ENDS_SIZE} + {k}] = {place};" for k, place in enumerate(names)) + " }")
        p.say("for (int k = 0; k < kept_size; ++k) number(k) = saved[k];")
        tree.second_gear.linearize(tree)
        with p.block("for (block = 0; block < blocks; ++block) {"):
            p.say("again = false;")
            p.say(f"for (int i = 0; i < links; ++i) {{ const Place own = {ROW}*(i + 1);")
            places = {n: [f"own + {START[n] + k}" for k in range(SIZES[n])] for n in KEPT}
            p.say("if (block > 0) { " + " ".join(f"number({at}) = saved[{at}];" for n in KEPT for at in places[n]) + " }")
            p.say(" ".join(f"rate({at}) = (reals)(real(0.0));" for n in UNKNOWN for at in places[n]) + " }")
            tangent(TangentTree(p, tree.second_gear))
        before = f"h = dt; {SET_STEP} number({PREPARED}) = real(0.0);\n{LANE}"
        return self.whole(before, "return told;", "")

    def load(self) -> str:
        return f"{super().load()}\n{self.load_pushes()}"

    def load_pushes(self) -> str:
        """C++: outer forces and torques."""
        each = " ".join(
            f"number({ROW}*(i + 1) + {START[name] + k}) = b < 0 ? real(0.0) : real(0.25)*h*h*"
            f"(wp::address(x.control.{of}, b, w)[0][{k}] + {self.once.format(of=of, k=k)});"
            for name, of in (("push_f", "force"), ("push_n", "torque"))
            for k in range(3)
        )
        return f"for (int i = 0; i < links; ++i) {{ const int b = x.body.data[i]; {each} }}"

    once = "wp::address(x.control.{of}_once, b, w)[0][{k}]"


def body() -> str:
    """The C++ of the function."""
    return Tangent(CPP).simulation()


_kernel: Any = None


def tangent_kernel() -> Any:
    """The kernel: directions [world, block, link, number, lane] to results."""
    global _kernel
    if _kernel is not None:
        return _kernel

    @wp.func_native(emitted(NAME, body))
    def follow(
        t: wp.array(dtype=TreeStep), w: int, fresh: int, blocks: int, memory: wp.array(dtype=real), rates: wp.array(dtype=real),
        acts_all: wp.array(dtype=int), seeds: wp.array(dtype=real), results: wp.array(dtype=real), ends: wp.array(dtype=real),
    ) -> int:  # fmt: skip
        """Returns 0, or why a world's derivative is not all of it."""
        return 0

    @wp.kernel(module=NAME, enable_backward=False)
    def follow_directions(
        t: wp.array(dtype=TreeStep), first: int, blocks: int, memory: wp.array(dtype=real), rates: wp.array(dtype=real),
        acts_all: wp.array(dtype=int), seeds: wp.array(dtype=real), results: wp.array(dtype=real), ends: wp.array(dtype=real),
        told: wp.array(dtype=int),
    ):  # fmt: skip
        w = first + wp.tid()
        changed = set_kinds(t, w)
        fresh = int(changed or not is_untouched(t, w))
        prescribe(t, w)
        if fresh == 1:
            load(t, w)
        told[w] = follow(t, w, fresh, blocks, memory, rates, acts_all, seeds, results, ends)
        if fresh == 1:
            t[0].state.tree[0, w] = real(0.0)

    follow_directions.module.options |= {
        "fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": QUICK_FLAGS,
    }  # fmt: skip
    _kernel = follow_directions
    return _kernel
