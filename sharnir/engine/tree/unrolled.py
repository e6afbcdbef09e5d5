"""Trees of emitted code for one forest: every number of every link is a variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharnir.emit.program import Program
from sharnir.engine.tree.forest import (
    COMMANDS,
    HINGE,
    INERTIAL,
    JOINT_LAWS,
    LAWS,
    LAWS_3,
    PARAMETERS,
    ROTOR,
    SEVERAL,
    SLIDER,
    Forest,
)
from sharnir.engine.tree.storage import (
    APART,
    ARMS,
    FOLDED,
    JOINTS,
    LAW,
    LAW_3,
    REPORT,
    ROW,
    ROW_APART,
    SIZES,
    START,
    Emitted,
    LinkView,
    OneForest,
    offsets,
)

RARE = ("load", "motor_back", "motor_rotor", "motor_push", "motor_c")
JUDGED = ("u0", "D", "ratio", "z_free", "slide", "hold", "q", "SU", "stuck", "law_a", "law_b", *RARE)
JUDGED_ANEW = ("mode", "goal", "servo_a", "servo_b", "limit")  # what judging may change


class JudgedAxes(Emitted):
    """Axes of an unrolled tree, in a loop over them."""

    own_axes, any_acts, derived, rests, rows = True, True, (), False, None

    def __init__(self, program: Program) -> None:
        self.program = program

    def unit(self, at: str) -> Any:
        return self.program.read(f"judged_units[{at}]")

    def joints_of(self, at: str) -> Iterator[Any]:
        yield JOINTS[HINGE]

    def acting(self, at: str) -> Iterator[None]:
        yield

    def get(self, at: str, name: str) -> list[Any]:
        if name in JOINT_LAWS:
            return [self.program.read(f"joint_{name}(link)")]
        return [self.program.read(f"law_{name}(axis)" if name in LAWS else f"judged_{name}[{at}]")]

    def put(self, at: str, name: str, x: list[Any]) -> None:
        self.program.write(f"judged_{name}[{at}]", x[0])


class UnrolledTree(Emitted, OneForest):
    """Code for one forest: every number of every link is a variable, parameters that are 0 or ±1 are constants."""

    judged: tuple[str, ...] = JUDGED

    def __init__(
        self, forest: Forest, program: Program, own_axes: bool = True, factor_always: bool = False, axes: Any = None
    ) -> None:
        OneForest.__init__(self, forest)
        self.program, self.own_axes, self.factor_always = program, own_axes, factor_always
        self.axes = [3 * i for i in range(len(forest))] if axes is None else list(axes)
        self.derived = ("M", "u_before", "g_before", *ARMS) if own_axes else ARMS
        self.keeps_k = own_axes and not factor_always  # a GPU would rather compute it again
        self.stored = {name: size for name, size in SIZES.items() if name not in PARAMETERS and name not in REPORT}
        self.start = offsets(INERTIAL)

    def get(self, i: int, name: str) -> list[Any]:
        if (name in LAW or name in LAW_3) and not self.acts(i):
            return [0.0] * SIZES[name]
        if name in PARAMETERS:
            of_axis = LAWS_3.get(name, name)
            laws = self.forest.links[i].laws
            varies = bool(laws) and of_axis in COMMANDS and (of_axis == "effort" or any(n.startswith("servo_") for n in laws))
            row = sum(INERTIAL.values()) * i + self.start.get(name, 0)

            def place(k: int) -> str:
                if name in JOINT_LAWS:
                    return f"joint_{name}({i})"
                return f"law_{of_axis}({self.axes[i] + k})" if of_axis in LAWS else f"parameter({row + k})"

            return [
                x if x in FOLDED and not varies else self.program.read(place(k))
                for k, x in enumerate(self.forest.values(i)[name])
            ]
        if name in REPORT:
            return [self.program.read(self._report(i, name, k)) for k in range(SIZES[name])]
        return [self.program.read(f"{name}_{i}_{k}") for k in range(SIZES[name])]

    def judged_links(self) -> Iterator[LinkView]:
        """A loop over the axes with laws: code that seldom runs is written once, and what it needs is gathered in arrays."""
        several = [i for i in range(len(self.forest)) if self.acts(i) and self.kind_of(i) in SEVERAL]
        yield from (LinkView(self, i) for i in several)
        axes = self.judged_axes()
        if not axes:
            return
        n, p = len(axes), self.program
        p.say(f"const int judged_axes[{n}] = {{{', '.join(str(self.axes[i]) for i in axes)}}};")
        units = ("per_metre" if self.kind_of(i) == SLIDER else "real(1.0)" for i in axes)
        p.say(f"const real judged_units[{n}] = {{{', '.join(units)}}};")
        p.say(f"const int judged_links[{n}] = {{{', '.join(map(str, axes))}}};")
        self.gather(axes, (*self.judged, *JUDGED_ANEW))
        with p.block(f"#pragma unroll 1\nfor (int k = 0; k < {n}; ++k) {{"):
            p.say("const int axis = judged_axes[k], link = judged_links[k]; (void)link; (void)axis;")
            yield LinkView(JudgedAxes(p), "k")
        self.scatter(axes, JUDGED_ANEW)

    def judged_axes(self) -> list[int]:
        """Links with one axis, on which laws act."""
        return [i for i in range(len(self.forest)) if self.acts(i) and self.kind_of(i) in (HINGE, SLIDER, ROTOR)]

    def gather(self, axes: list[int], names: tuple[str, ...]) -> None:
        """Copy numbers of some links into arrays."""
        self.program.say(" ".join(f"real judged_{name}[{len(axes)}];" for name in names))
        for k, i in enumerate(axes):
            for name in names:
                self.program.write(f"judged_{name}[{k}]", self.program.read(self.own(i, name)))

    def scatter(self, axes: list[int], names: tuple[str, ...]) -> None:
        """The reverse."""
        for k, i in enumerate(axes):
            for name in names:
                self.program.write(self.own(i, name), self.program.read(f"judged_{name}[{k}]"))

    def own(self, i: int, name: str) -> str:
        """The place of a number of a link."""
        return f"{name}_{i}_0"

    def put(self, i: int, name: str, x: list[Any]) -> None:
        for k, number in enumerate(x):
            self.program.write(self._report(i, name, k) if name in REPORT else f"{name}_{i}_{k}", number)

    def _report(self, i: int, name: str, k: int) -> str:
        first = ROW * (len(self.forest) + 1) + ROW_APART * i if name in APART else ROW * (i + 1)
        return f"number({first + START[name] + k})"
