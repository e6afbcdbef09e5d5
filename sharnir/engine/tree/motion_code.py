"""The kernel that makes steps of trees and keeps them, with their derivatives: `tangent` as C++ through many steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import PRECISION, QUICK_FLAGS, real
from sharnir.engine.tree.code import LOOSE, SET_STEP
from sharnir.engine.tree.runtime import CPP, TreeStep, is_untouched, load, prescribe, set_kinds
from sharnir.engine.tree.step import finish, guess, place_links, project, solve, update_twists
from sharnir.engine.tree.storage import PREPARED, ROW, SIZES, START
from sharnir.engine.tree.tangent import (
    IN_IMPACT,
    IN_STEP,
    PARAMETERS,
    PARAMETERS_SIZE,
    RESULT,
    RESULT_SIZE,
    SEED_SIZE,
    PlainTree,
    TangentTree,
    end_step,
    linearize_laws,
    make_passes,
    meet_impact,
    read_ends,
    read_motion,
    seed_place,
    seed_speeds,
)  # fmt: skip
from sharnir.engine.tree.tangent_code import KEPT, LANE, UNKNOWN, Tangent

NAME = "sharnir.motions"
CHANGED = (*KEPT, "rotor", "current", "stuck", "limit", "mode", "goal")  # what a direction's way to the end of a step changes
HEAD = f"""int k = 0;
#undef seed
#undef rate
#undef result
#define rate(n) ((reals*)rates.data)[(size_t)(w*blocks + block)*{ROW}*(links + 1) + (n)]
#define seed(n) ((const reals*)seeds.data)[((size_t)(w*blocks + block)*links + i)*{SEED_SIZE} + (n)]
#define result(n) ((reals*)results.data)[(((size_t)k*worlds*blocks + w*blocks + block)*links + i)*{RESULT_SIZE} + (n)]
#define seen(n) speeds.data[((size_t)(k*worlds + w)*links + i)*{RESULT["speed"]} + (n)]
"""


class KeptSteps(Tangent):
    """What functions that make steps, and that go back along them, have in common: numbers of any step."""

    tree: PlainTree

    more = "int state_at = -1;"
    once = "real(0.0)"

    def __init__(self, real: str) -> None:
        super().__init__(real)
        now = "x.state.tree.data[(k)*worlds + w]"
        kept = f"(*(state_at < 0 ? &{now} : &states.data[((size_t)state_at*rows + (k))*worlds + w]))"
        self.source = replace(self.source, head=self.source.head.replace(now, kept) + "\n" + self.more)

    def load(self) -> str:
        """Of some step."""
        return ""

    def load_step(self, laws: str = "true") -> str:
        """C++: the state and what acts; `laws`: whether numbers of laws are read."""
        return super().load().replace("!same_laws", laws)

    def set_commands(self) -> None:
        """Give the commands of step k."""
        with self.program.block("if (columns > 0) {"):
            self.program.say(self.load_pushes())
            self.program.say("for (int c = 0; c < columns; ++c) { real& at = number(column_at.data[c]);")
            self.program.say(
                "at = at*column_adds.data[c] + controls.data[((size_t)k*columns + c)*worlds + w]*column_scale.data[c]; }"
            )


class Steps(KeptSteps):
    """The body of the function that makes steps."""

    def simulation(self) -> str:
        p, tree = self.program, self.tree
        along = TangentTree(p, tree.second_gear)
        along.rated = frozenset(IN_STEP)
        p.say(f"state_at = begin ? -1 : 0; {self.load_step()}")
        with p.block("if (fresh && begin) {"):
            project(tree)
        p.say(f"state_at = 0; {self.store_step()}")
        guess(tree)
        names = [f"rate({ROW}*(i + 1) + {START[n] + m})" for n, size in PARAMETERS.items() for m in range(size)]
        p.say("for (block = 0; block < blocks; ++block) for (int i = 0; i < links; ++i) {")
        p.say(f"const reals* const of = (const reals*)by_parameters.data + ((w*blocks + block)*links + i)*{PARAMETERS_SIZE};")
        p.say(" ".join(f"{name} = of[{n}];" for n, name in enumerate(names)) + " }")
        with p.block("for (;; ++k) {"):
            place_links(tree)
            read_motion(tree)
            with p.block("if (k < steps) {"):
                self.set_commands()
                with p.block("for (;;) {"):
                    p.say("unknown = learned = false; count = 0;")
                    solve(tree)
                    p.say(f"if (!failed || change <= real({LOOSE})*rounding) break;")
                    p.say("if (onward == real(0.0)) return -1 - k;")
                    p.say("failed = 0; onward = real(0.0); restarted = true;")
                p.say("failed = 0; onward = real(1.0);")
                with p.block("if (blocks > 0) {"):
                    tree.second_gear.linearize(tree)
            self.of_each_direction(lambda: self.differentiate(along))
            p.say("if (k == steps) break;")
            p.say("stopped = 0;")
            finish(tree)
            p.say("hits.data[k*worlds + w] = stopped;")
            with p.block("if (stopped) {"):
                self.of_each_direction(lambda: self.differentiate_impact(along))
                project(tree)
                p.say("stopped = 0;")
            p.say(f"state_at = k + 1; {self.store_step()}")
        return self.whole(f"h = dt; {SET_STEP} number({PREPARED}) = real(0.0);\n{LANE}{HEAD}", "return 0;", "")

    def store_step(self) -> str:
        """C++: keep the state."""
        return self._copy(False)

    def of_each_direction(self, differentiate: Callable[[], None]) -> None:
        """Follow all directions; numbers are afterwards as before."""
        p = self.program
        places = [f"own + {START[n] + m}" for n in CHANGED for m in range(SIZES[n])]
        back = " ".join(f"number({at}) = saved[{at}];" for at in places)
        with p.block("if (blocks > 0) {"):
            p.say("for (int n = 0; n < kept_size; ++n) saved[n] = number(n);")
            with p.block("for (block = 0; block < blocks; ++block) {"):
                differentiate()
                p.say(f"for (int i = 0; i < links; ++i) {{ const Place own = {ROW}*(i + 1); {back} }}")
            p.say("for (int n = 0; n < kept_size; ++n) number(n) = saved[n];")

    def differentiate(self, along: TangentTree) -> None:
        """Rates at the end of a step, from those at its start."""
        p = self.program
        with p.block("if (k == 0) {"):
            for link in along.links():
                for joint in link.joints():
                    seed_place(joint, link)
        place_links(along)
        with p.block("if (k == 0) {"):
            for link in along.links():
                for joint in link.joints():
                    seed_speeds(joint, link)
        read_ends(along)
        with p.block("if (k < steps) {"):
            left = " ".join(
                f"rate({ROW}*(i + 1) + {START[n] + m}) = (reals)(real(0.0));" for n in UNKNOWN for m in range(SIZES[n])
            )
            p.say(f"again = false; for (int i = 0; i < links; ++i) {{ {left} }}")
            update_twists(along)
            linearize_laws(along)
            make_passes(along)
            end_step(along)

    def differentiate_impact(self, along: TangentTree) -> None:
        """The same of an impact."""
        along.rated = frozenset(IN_IMPACT)
        with along.at_rest():
            meet_impact(along)
        along.rated = frozenset(IN_STEP)


def body() -> str:
    """The C++ of the function."""
    return Steps(CPP).simulation()


_kernel: Any = None


def motion_kernel() -> Any:
    """The kernel: steps with given commands, and how they change in directions [world, block, link, number, lane]."""
    global _kernel
    if _kernel is not None:
        return _kernel

    @wp.func_native(emitted(NAME, body))
    def go(
        t: wp.array(dtype=TreeStep), w: int, fresh: int, steps: int, rows: int, columns: int, blocks: int, begin: int,
        states: wp.array(dtype=real), hits: wp.array(dtype=int), controls: wp.array(dtype=real),
        column_at: wp.array(dtype=int), column_scale: wp.array(dtype=real), column_adds: wp.array(dtype=real),
        memory: wp.array(dtype=real), rates: wp.array(dtype=real), acts_all: wp.array(dtype=int), speeds: wp.array(dtype=real),
        seeds: wp.array(dtype=real), by_parameters: wp.array(dtype=real), results: wp.array(dtype=real),
    ) -> int:  # fmt: skip
        """Returns 0, or −1 − the step that does not converge as a whole."""
        return 0

    @wp.kernel(module=NAME, enable_backward=False)
    def make_steps(
        t: wp.array(dtype=TreeStep), steps: int, rows: int, columns: int, blocks: int, begin: int, states: wp.array(dtype=real),
        hits: wp.array(dtype=int), controls: wp.array(dtype=real), column_at: wp.array(dtype=int),
        column_scale: wp.array(dtype=real), column_adds: wp.array(dtype=real), memory: wp.array(dtype=real),
        rates: wp.array(dtype=real), acts_all: wp.array(dtype=int), speeds: wp.array(dtype=real), seeds: wp.array(dtype=real),
        by_parameters: wp.array(dtype=real), results: wp.array(dtype=real), told: wp.array(dtype=int),
    ) -> None:  # fmt: skip
        w = wp.tid()
        changed = set_kinds(t, w)
        fresh = int(changed or not is_untouched(t, w))
        prescribe(t, w)
        if begin == 1 and fresh == 1:
            load(t, w)
        told[w] = go(
            t, w, fresh, steps, rows, columns, blocks, begin, states, hits, controls, column_at, column_scale, column_adds,
            memory, rates, acts_all, speeds, seeds, by_parameters, results,
        )  # fmt: skip
        if fresh == 1:
            t[0].state.tree[0, w] = real(0.0)

    make_steps.module.options |= {"fast_math": PRECISION == "single", "enable_backward": False, "cpu_compiler_flags": QUICK_FLAGS}
    _kernel = make_steps
    return _kernel
