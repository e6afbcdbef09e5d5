"""The panel beside the picture: sliders that move joints and drives, and a plot of chosen values.

What a page sends is never taken as it is: numbers have to be finite and are brought within the slider's own range, words have
to be among those offered.
"""

from __future__ import annotations

import glob
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sharnir.model.actuators import DCMotor
from sharnir.runtime.log import sources
from sharnir.view.pieces import PALETTE

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
MOST_SLIDERS = 24  # of a kind
MOST_CURVES, MOST_WIDE = 8, 4  # curves of a plot; numbers of one value that are drawn one by one
PLOT_SPAN = 20.0  # s of a plot
SLIDER_STEPS = 200  # steps of a slider
HELD_FOR = 0.5  # s for which a slider stays where a hand put it
LEDGER, GIVEN_LABEL = "energies", "given (lost below 0), J"
ENERGY_CURVES = ("sim.energy", "sim.kinetic", "sim.potential", "sim.elastic")
NO_LIMIT_BEYOND = 1e20  # beyond: no limit


def within(value: Any, low: float, high: float) -> float | None:
    """A number from the page within a range; None where it is no finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(number, low), high) if math.isfinite(number) else None


class Slider:
    """A number that a hand may move, and that shows what the simulation has otherwise."""

    def __init__(
        self, gui: Any, label: str, ends: tuple[float, float], get: Callable[[], float], put: Callable[[float], None], hint: str
    ) -> None:
        self.low, self.high = ends
        self._get, self._put, self._moved = get, put, -math.inf
        self._last = min(max(0.0, self.low), self.high)
        self._last = self._now()
        step = 10 ** math.floor(math.log10((self.high - self.low) / SLIDER_STEPS))
        self.handle = gui.add_slider(
            label, min=self.low, max=self.high, step=float(step), initial_value=self._last, hint=hint
        )  # fmt: skip
        self.handle.on_update(self._on_update)

    def _now(self) -> float:
        number = within(self._get(), self.low, self.high)
        return self._last if number is None else number

    def _on_update(self, event: Any) -> None:
        if getattr(event, "client", None) is not None:  # a hand, not `show`
            self.take(self.handle.value)

    def take(self, value: Any) -> None:
        """What a page says: brought within the range, or refused."""
        number = within(value, self.low, self.high)
        if number is None:
            self.handle.value = self._last
            return
        if number != value:
            self.handle.value = number
        self._last, self._moved = number, time.perf_counter()
        self._put(number)

    def _widen(self, value: float) -> None:
        """Make room for what the simulation itself commands or does beyond the range; rounding is not worth it."""
        slack = 0.01 * (self.high - self.low)
        if math.isfinite(value) and not self.low - slack <= value <= self.high + slack:
            far = float(f"{1.25 * value:.2g}")
            self.low, self.high = min(self.low, far), max(self.high, far)
            self.handle.min, self.handle.max = self.low, self.high

    def show(self) -> None:
        """Follow the simulation, unless a hand has just moved it."""
        if time.perf_counter() - self._moved > HELD_FOR:
            self._widen(self._get())
            now = self._now()
            if abs(now - self._last) > 1e-3 * (self.high - self.low):
                self._last = now
                self.handle.value = now


PHONE = """<style>@media (max-width: 36em) {
.mantine-Paper-root:has(.mantine-ScrollArea-root) { width: 100% !important; left: 0; right: 0; font-size: 16px; }
.mantine-ScrollArea-content:has(.mantine-Button-root) > div { width: 100% !important; }
.mantine-ScrollArea-root:has(.mantine-Button-root) .mantine-ScrollArea-viewport { max-height: 42vh; }
div:has(> .mantine-Button-root:only-child) { display: inline-block; width: calc(33.3% - 1.2em); }
.mantine-Paper-root .mantine-Button-root { min-height: 44px; padding: 0 4px; font-size: 16px; }
.mantine-Paper-root .mantine-Slider-thumb { width: 24px !important; height: 24px !important; }
.mantine-Paper-root input { min-height: 32px; font-size: 16px; }
.mantine-Paper-root input[type="checkbox"] { width: 28px; height: 28px; min-height: 0; }
}</style>"""
"""Rules for narrow screens: the panel is as wide as the screen and leaves half of its height to the picture; what is pressed is
as large as a finger.
"""


class Sliders:
    """Sliders of drives, reels and joints, in folders: what is shown is that of `sim`; what hands do is told to `act`, as the
    name of a method of `OperatorActions` and what it is given.
    """

    def __init__(self, gui: Any, sim: Owner, size: float, act: Callable[..., None], none: bool = False) -> None:
        self.sim, self.size, self._act = sim, size, act
        self.drives: dict[str, Slider] = {}
        self.joints: dict[str, Slider] = {}
        jobs = [("Drives", self.drives, self._drives()), ("Joints", self.joints, self._joints())]
        for title, made, found in jobs:
            if none or not found:
                continue
            with gui.add_folder(title, expand_by_default=title == "Drives" and len(found) <= 12):
                for label, ends, get, put, hint in found[:MOST_SLIDERS]:
                    made[label] = Slider(gui, label, ends, get, put, hint)
                if len(found) > MOST_SLIDERS:
                    gui.add_markdown(f"*the first {MOST_SLIDERS} of {len(found)}*")

    def show(self) -> None:
        """Follow the simulation."""
        for slider in (*self.drives.values(), *self.joints.values()):
            slider.show()

    def _doing(self, what: str, *given: Any) -> Callable[[float], None]:
        """What a slider's hand does, between steps."""
        return lambda value: self._act(what, *given, value)

    def _range(self, joint: Any, axis: int, now: float) -> tuple[float, float]:
        """Where a coordinate can be: its limits, else a turn or the size of the picture."""
        names = joint.kind.free[: joint.kind.v_size]
        turns = names[axis].startswith("r")
        wide = 3.142 if turns else float(f"{0.5 * self.size:.2g}")
        try:
            limit = joint.limit[names[axis]] if len(names) > 1 else joint.limit
            low, high = (float(np.ravel(end)[0]) for end in limit)
        except (KeyError, TypeError):
            low, high = -math.inf, math.inf
        low = low if low > -NO_LIMIT_BEYOND else min(-wide, now)
        high = high if high < NO_LIMIT_BEYOND else max(wide, now)
        return (low, high) if high - low > 1e-9 else (low - 1e-6, high + 1e-6)

    def _drives(self) -> list[tuple[Any, ...]]:
        """Of every axis with a drive, what commands it: a voltage, a position or a speed; of every reel, its speed."""
        sim = self.sim
        out: list[tuple[Any, ...]] = []
        for name, k in sim.model.joint_names.items():
            joint = sim.joint(name)
            for i, axis in enumerate(sim.model.joint_axes[k]):
                if axis.drive is None:
                    continue
                label = name if joint.kind.v_size == 1 else f"{name}.{joint.kind.free[i]}"
                kp, kd = (first(getattr(joint.drive, gain), i) for gain in ("kp", "kd"))
                if isinstance(axis.drive, DCMotor):
                    what, unit, most = "voltage", "V", 24.0
                elif kp > 0:
                    what, unit, most = "position", "rad" if joint.kind.free[i].startswith("r") else "m", 0.0
                elif kd > 0:
                    what, unit, most = "velocity", "rad/s" if joint.kind.free[i].startswith("r") else "m/s", 10.0
                else:
                    bound = first(joint.drive.max_force, i)
                    what, unit, most = "torque", "N or N·m", bound if 0 < bound < 1e6 else 100.0
                now = first(getattr(joint.drive, what), i)
                most = max(most, 2 * abs(now))
                ends = self._range(joint, i, now) if what == "position" else (-most, most)
                get, put = partial(read, joint.drive, what, i), self._doing("drive", name, what, i)
                out.append((label, ends, get, put, f"{what} commanded to the drive, {unit}"))
        for k, name in enumerate(sim.model.ropes.names if sim.model.ropes is not None else ()):
            if sim.model.ropes.described[k].reel >= 0 and sim.model.ropes.described[k].winch is None:
                most = float(f"{0.2 * sim.model.ropes.described[k].lengths.sum():.2g}")
                get, put = partial(read, sim.rope(name), "reel_speed", 0), self._doing("reel", name)
                out.append((f"{name} (reel)", (-most, most), get, put, "speed at which the reel pays out, m/s"))
        return out

    def _joints(self) -> list[tuple[Any, ...]]:
        """Of every joint with one free axis, its coordinate; moving it stops time."""
        sim = self.sim
        out: list[tuple[Any, ...]] = []
        for name in sim.model.joint_names:
            joint = sim.joint(name)
            if joint.kind.v_size != 1 or joint.kind.q_size != 1:
                continue
            unit = "rad" if joint.kind.free[0].startswith("r") else "m"
            get, put = partial(read, joint, "position", 0), self._doing("place", name)
            out.append((name, self._range(joint, 0, get()), get, put, f"coordinate, {unit}; a hand on it stops time"))
        return out


def read(view: Any, what: str, axis: int) -> float:
    """A value of a view as one number."""
    return first(getattr(view, what), axis)


def first(value: Any, axis: int) -> float:
    """A number of the first world, and of one axis where there are several."""
    numbers = np.asarray(value, float)
    while numbers.ndim > 1:
        numbers = numbers[0]
    return float(numbers if numbers.ndim == 0 else numbers[axis if axis < len(numbers) else 0])


class Plot:
    """Curves of chosen values over the last seconds."""

    def __init__(self, gui: Any, sim: Owner, words: tuple[str, ...] = ()) -> None:
        self._gui, self._sim = gui, sim
        self._values: dict[str, Callable[[], Any]] = {}
        self._times: list[float] = []
        self._rows: list[list[float]] = []
        self._curves: list[str] = []
        self._chart: Any = None
        self.offered = offered(sim)
        self._folder = gui.add_folder("Plot", expand_by_default=bool(words))
        with self._folder:
            self._choice = gui.add_dropdown("Value", tuple(self.offered), hint="What is to be plotted")
            self._add = gui.add_button("Add", color="gray")
            self._clear = gui.add_button("Clear", color="gray")
        self._add.on_click(lambda _: self.add(self._choice.value))
        self._clear.on_click(lambda _: self.clear())
        for word in words:
            for name, value in sources(sim, word).items():
                self._begin(name, value)

    @property
    def curves(self) -> list[str]:
        """Names of what is drawn."""
        return list(self._curves)

    def add(self, word: Any) -> None:
        """Plot one more of the values that are offered; `LEDGER` is all energies, and what was lost or given since it began."""
        if word == LEDGER:
            begin = total(self._sim)
            for part in ENERGY_CURVES:
                for name, value in sources(self._sim, part).items():
                    self._begin(name, value)
            self._begin(GIVEN_LABEL, lambda: total(self._sim) - begin)
        elif word in self.offered:
            for name, value in sources(self._sim, str(word)).items():
                self._begin(name, value)

    def _begin(self, name: str, value: Callable[[], Any]) -> None:
        labels = [label for label, _ in spread(self._sim, name, value())]
        if name not in self._values and len(self._curves) + len(labels) <= MOST_CURVES:
            self._values[name] = value
            self._restart()

    def clear(self) -> None:
        """Plot nothing."""
        self._values = {}
        self._restart()

    def _restart(self) -> None:
        """Begin the curves anew, with a chart for as many as there are."""
        if self._chart is not None:
            self._chart.remove()
            self._chart = None
        self._times, self._rows = [], []
        self._curves = [label for name, value in self._values.items() for label, _ in spread(self._sim, name, value())]
        if not self._curves:
            return
        series: list[dict[str, Any]] = [{"label": "s"}]
        for i, label in enumerate(self._curves):
            colour = "rgb({}, {}, {})".format(*PALETTE[i % len(PALETTE)])
            series.append({"label": label, "stroke": colour, "width": 1.5, "points": {"show": False}})
        with self._folder:
            self._chart = self._gui.add_uplot(
                data=tuple(np.zeros(1) for _ in series), series=tuple(series), scales={"x": {"time": False, "auto": True}},
                legend={"show": True}, aspect=1.4,
            )  # fmt: skip

    def take(self) -> None:
        """Remember the values of now."""
        if not self._curves:
            return
        now = self._sim.time
        if self._times and now <= self._times[-1]:
            if now < self._times[-1]:
                self._times, self._rows = [], []  # back at the start
            else:
                return
        self._times.append(now)
        self._rows.append([number for name, value in self._values.items() for _, number in spread(self._sim, name, value())])
        if now - self._times[0] > PLOT_SPAN:
            first_kept = next(i for i, t in enumerate(self._times) if now - t <= PLOT_SPAN)
            del self._times[:first_kept], self._rows[:first_kept]

    def show(self) -> None:
        """Draw what was remembered."""
        if self._chart is not None and len(self._times) > 1:
            stride = max(1, len(self._times) // 600)
            times, rows = np.array(self._times[::stride]), np.array(self._rows[::stride])
            self._chart.data = (times, *rows.T.copy())


def total(sim: Owner) -> Any:
    """All energy, J."""
    return sim.energy().total


def spread(sim: Owner, name: str, value: Any) -> list[tuple[str, float]]:
    """A value of the first world as numbers with names: one by one where they are few, else the largest."""
    numbers = np.asarray(value if sim.worlds == 1 else value[0], float)
    if numbers.ndim == 0:
        return [(name, float(numbers))]
    if numbers.size <= MOST_WIDE:
        return [(f"{name}[{i}]", float(number)) for i, number in enumerate(numbers.ravel())]
    return [(f"{name} (largest)", float(np.abs(numbers).max()))]


def offered(sim: Owner) -> list[str]:
    """Values that a page may choose from."""
    out = [LEDGER, *ENERGY_CURVES]
    for name in list(sim.model.joint_names)[:100]:
        if sim.joint(name).kind.v_size:
            out += [f"joint/{glob.escape(name)}.{value}" for value in ("q", "qd", "reaction")]
    for name in list(sim.model.body_names)[1:101]:
        values = ("position", "velocity", *(("contact_force",) if sim.model.collision is not None else ()))
        out += [f"body/{glob.escape(name)}.{value}" for value in values]
    for name in list(sim.model.ropes.names)[:100] if sim.model.ropes is not None else []:
        out.append(f"rope/{glob.escape(name)}.tension")
    return out + [f"spring/{glob.escape(name)}.length" for name in list(sim.model.spring_names)[:100]]
