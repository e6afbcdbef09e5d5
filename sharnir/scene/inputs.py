"""What an operator has: named inputs with a range, a rate and a safe value, and what each of them sets.

scene.add_input("throttle", "joint/wheel *.voltage", scale=24.0, rate=2.0, keys=("w", "s"))
sim = sh.Simulation(scene, dt=0.005)
sim.inputs["throttle"] = 0.5  # a command: it is taken at the next step, and reached at the input's rate
sim.step(100)
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from sharnir.core.renamed import Former, warn_renamed
from sharnir.errors import SceneError, SimulationError, StepWarning, as_numbers

# The Simulation; it stands floors above, so that it is not named here.
Owner = Any

DRIVE_TARGETS = ("position", "velocity", "torque", "voltage", "command", "throttle", "engaged", "gear")
VALUES = {
    "joint": [*DRIVE_TARGETS, "effort", "friction", "enabled"],
    "rope": ["reel_speed"],
    "cable": ["length"],
    "spring": ["stiffness", "rest", "damping"],
}
"""What a target may set, by kind; those of a joint's drive are its own words."""
MAX_EVENTS = 4096  # events that are remembered


@dataclass(frozen=True)
class Input:
    """One input of an operator: data where it has a target, or a function of the simulation.

    Args:
        name: "throttle", "steer", "boom", …
        act: called as act(sim, value) before the first step, and before a step whenever the value has changed.
        low, high: the range of the value, in the unit that `about` names.
        rate: by how much the value may change in a second.
        safe: the value at the start, and when the operator is lost.
        about: what it does and its unit.
        target: instead of `act`, what is set: "joint/hinge.torque", "joint/wheel *.voltage", "rope/r.reel_speed", or several.
        scale: of the value in the target's unit.
        keys: of a keyboard: the one that is held for more and, if there is one, the one for less.
        pad: of a gamepad: "axis 1", "-axis 1" (turned round) or "button 7".
        returns: whether it goes back to its safe value when keys and sticks are let go; if not, it stays.
    """

    name: str
    act: Callable[[Any, Any], None] | None = None
    low: float = -1.0
    high: float = 1.0
    rate: float = math.inf
    safe: float = 0.0
    about: str = ""
    target: str | tuple[str, ...] | None = None
    scale: float = 1.0
    keys: tuple[str, ...] = ()
    pad: str = ""
    returns: bool = True

    def __post_init__(self) -> None:
        who = f"input {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise SceneError(f"the name of an input is a non-empty string, got {self.name!r}")
        if (self.act is None) == (self.target is None):
            raise SceneError(f"{who}: it has a target, such as 'joint/hinge.torque', or act(sim, value); one of the two")
        if self.act is not None and not callable(self.act):
            raise SceneError(f"{who}: act is called as act(sim, value), got {self.act!r}")
        if any(_is_former(word) for word in self.targets):
            renamed = tuple(word.removesuffix("force") + "effort" if _is_former(word) else word for word in self.targets)
            warn_renamed(f"target {self.target!r}", repr(renamed if isinstance(self.target, tuple) else renamed[0]))
            object.__setattr__(self, "target", renamed if isinstance(self.target, tuple) else renamed[0])
        for word in self.targets:
            split_target(who, word)
        numbers = {"low": self.low, "high": self.high, "safe": self.safe, "scale": self.scale, "rate": self.rate}
        for what, value in numbers.items():
            if as_numbers(value).shape != () or math.isnan(as_numbers(value)) or isinstance(value, str):
                raise SceneError(f"{who}: {what} is a number, got {value!r}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SceneError(f"{who}: low and high are finite, low < high, got {self.low!r}, {self.high!r}")
        if not self.rate > 0:
            raise SceneError(f"{who}: rate is above 0 a second, got {self.rate!r}")
        if not self.low <= self.safe <= self.high:
            raise SceneError(f"{who}: safe is within {self.low:g} to {self.high:g}, got {self.safe!r}")
        if not math.isfinite(self.scale) or self.scale == 0:
            raise SceneError(f"{who}: scale is a finite number other than 0, got {self.scale!r}")
        if not isinstance(self.about, str) or not isinstance(self.returns, bool):
            raise SceneError(f"{who}: about is text and returns True or False, got {self.about!r} and {self.returns!r}")
        self._check_hands(who)

    def _check_hands(self, who: str) -> None:
        keys = (self.keys,) if isinstance(self.keys, str) else self.keys
        if not isinstance(keys, tuple | list) or len(keys) > 2 or not all(isinstance(k, str) and k for k in keys):
            raise SceneError(f"{who}: keys are one or two names, the first for more, such as ('w', 's'), got {self.keys!r}")
        object.__setattr__(self, "keys", tuple(key.lower() if len(key) > 1 else key.casefold() for key in keys))
        kind, _, number = self.pad.lstrip("-").partition(" ") if isinstance(self.pad, str) else ("?", "", "")
        if self.pad != "" and (kind not in ("axis", "button") or not number.isdigit()):
            raise SceneError(f"{who}: pad is 'axis 0', '-axis 0' or 'button 0', with its number, got {self.pad!r}")

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets; none where it has a function."""
        if self.target is None:
            return ()
        return self.target if isinstance(self.target, tuple) else (self.target,)


def _is_former(word: Any) -> bool:
    """Whether a target names the effort of a joint by its former name, force."""
    return isinstance(word, str) and word.startswith("joint/") and word.endswith(".force")


def split_target(who: str, word: Any) -> tuple[str, str, str]:
    """Kind, name (which may be a pattern) and value of a target."""
    head, _, value = word.rpartition(".") if isinstance(word, str) else ("", "", "")
    kind, _, name = head.partition("/")
    if kind not in VALUES or not name:
        raise SceneError(
            f"{who}: target is kind/name.value ('joint/hinge.torque'), the kind one of {', '.join(VALUES)}, got {word!r}"
        )
    if value not in VALUES[kind]:
        raise SceneError(f"{who}: a target of a {kind} is one of {', '.join(VALUES[kind])}, got {word!r}")
    return kind, name, value


def add_input(
    scene: Any,
    name: str | Input,
    target: str | Sequence[str] | None = None,
    *,
    low: float = -1.0,
    high: float = 1.0,
    scale: float = 1.0,
    rate: float = math.inf,
    safe: float = 0.0,
    about: str = "",
    keys: Sequence[str] = (),
    pad: str = "",
    returns: bool = True,
) -> str:
    """Give the operator an input (`sim.inputs[name]`), which sets its target before each step. Returns its name.

    Args:
        name: "throttle", "steer", "boom", …; or an `Input`, as machines have them (`robot.inputs()`).
        target: "joint/hinge.torque", "joint/wheel *.voltage" (a pattern: all that match), "rope/r.reel_speed", or several. Of a
            joint a word of its drive (position, velocity, torque, voltage, command, throttle, engaged, gear), or effort (torque
            where there is no drive; N, N·m), friction (the bound, N or N·m) and enabled; of a cable length, of a spring
            stiffness, rest and damping.
        low, high: the range of a command. scale: the target is given scale · value, in its unit.
        rate: by how much the value may change in a second.
        safe: the value at the start, and when the operator is lost. A joint or rope has it from the moment that the simulation
            is made; setting the joint's drive directly holds until the input changes.
        about: what it does and its unit.
        keys: that are held for more and for less, as a browser names them: ("w", "s"), ("arrowup", "arrowdown").
        pad: of a gamepad: "axis 1", "-axis 1" (turned round) or "button 7".
        returns: whether it goes back to `safe` when keys and sticks are let go; if not, it stays where it is.
    """
    if isinstance(name, Input):
        given = name
    else:
        targets = tuple(target) if isinstance(target, list) else target
        held = tuple(keys) if isinstance(keys, list) else keys
        given = Input(name, None, low, high, rate, safe, about, targets, scale, held, pad, returns)  # type: ignore[arg-type]
    if given.name in scene.inputs:
        raise SceneError(f"input {given.name!r} is there twice")
    known = {"joint": scene.joints, "rope": scene.ropes, "cable": scene.cables, "spring": scene.springs}
    for word in given.targets:
        kind, pattern, value = split_target(f"input {given.name!r}", word)
        found = [n for n in known[kind] if n == pattern or fnmatchcase(n, pattern)]
        if not found:
            if kind == "joint" and pattern.endswith(".drive"):
                meant = f"{kind}/{pattern.removesuffix('.drive')}.{value}"
                raise SceneError(f"input {given.name!r}: the target {word!r} is written {meant!r}, without 'drive'")
            there = ", ".join(map(repr, known[kind])) or "none"
            raise SceneError(f"input {given.name!r}: no {kind} is named {pattern!r} ({word!r}); available: {there}")
        for n in found if kind == "joint" else ():
            check_word(given.name, n, value, scene.joints[n].axes)
    scene.inputs[given.name] = given
    return given.name


def check_word(name: str, joint: str, value: str, axes: Any) -> bool:
    """Whether a value is a word of the joint's drive; a SceneError where it is nothing that can be set there."""
    words = drive_words(axes)
    if value in words:
        return True
    if value in DRIVE_TARGETS and not (value == "torque" and not words):
        allowed = ", ".join([*words, "effort", "friction", "enabled"])
        raise SceneError(f"input {name!r}: joint {joint!r} has no drive that takes {value!r}; allowed: {allowed}")
    return False


def drive_words(axes: Any) -> list[str]:
    """What the drives of a joint's axes are commanded by."""
    words: list[str] = []
    for axis in axes:
        drive = axis.drive
        if drive is None:
            continue
        own = getattr(drive, "words", None)
        if own is None:
            servo = {"kp": "position", "kd": "velocity"}
            if hasattr(drive, "kp"):
                own = [word for gain, word in servo.items() if getattr(drive, gain) > 0] + ["torque"]
            else:
                own = ["command"] if getattr(drive, "battery", None) is not None else ["voltage"]
        words += [word for word in own if word not in words]
    return words


@dataclass(frozen=True)
class Event:
    """Something that somebody did to a running simulation.

    Args:
        time: s, simulated: of the step boundary from which it acts.
        kind: "command", "lost", "failure", "parameter", "freeze", …
        name: of the input or the part. value: a number, text or None. by: "operator", "instructor", "script", …
    """

    time: float
    kind: str
    name: str
    value: Any = None
    by: str = "script"


class Inputs(Mapping[str, Any]):
    """The inputs of a simulation (`sim.inputs`). `inputs[name]` reads the value in effect; setting it is a command.

    A command outside its range is clamped, with one warning; one that is not a number is refused. With several worlds a command
    is one number for all, or one per world. Commands may come from any thread; they act from the next step on.

    `Inputs(sim, inputs)` are inputs beside those of the scene, for which `apply` is called before each step, or `step`.
    """

    def __init__(self, sim: Owner, inputs: Iterable[Input]) -> None:
        self.sim = sim
        self.described: dict[str, Input] = {}
        for given in inputs:
            if given.name in self.described:
                raise SceneError(f"input {given.name!r} is there twice")
            self.described[given.name] = given
        self.events: deque[Event] = deque(maxlen=MAX_EVENTS)
        """What was done, oldest first; the last 4096."""
        self.timeout = math.inf
        """s, simulated: an operator of whom nothing was heard for so long is lost, and all inputs go to their safe values."""
        self.stuck: set[str] = set()
        """Inputs that are stuck where they are (`sharnir.trainer.failures`)."""
        self.faults: dict[tuple[str, str], Any] = {}
        """What has failed: (kind, name) → what holds it so, what undoes it (`sharnir.trainer.failures`)."""
        self._reported: set[str] = set()
        self._acts = {name: given.act if given.act is not None else Setter(sim, given) for name, given in self.described.items()}
        self._command: dict[str, Any] = {}
        self._value: dict[str, Any] = {}
        self._acted: dict[str, Any] = {}
        self._noted: dict[str, Any] = {}
        self._pace: dict[str, float] = {}
        self._by: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        """All inputs at their safe values at once; `sim.reset()` does so for `sim.inputs`."""
        self._command = {name: given.safe for name, given in self.described.items()}
        self._value, self._acted, self._noted, self._pace = dict(self._command), {}, dict(self._command), {}
        self._by = {}
        self._heard: float | None = None
        self.busy = bool(self.described)
        """Whether something is left to do before the next step."""

    def begin(self) -> None:
        """Give targets their safe values when the simulation is made: what a user commands before the first step is kept."""
        for name, act in self._acts.items():
            if isinstance(act, Setter) and act.commands:
                act(self.sim, self._value[name])
                self._acted[name] = self._value[name]

    def release(self, kind: str = "release", by: str = "script") -> None:
        """Command the safe value of every input: nobody drives. They are reached at their rates."""
        if self.described:
            self.note(kind, "", None, by)
        self._command = {name: given.safe for name, given in self.described.items()}
        self._noted, self._pace, self._by = dict(self._command), {}, {}
        self._heard, self.busy = None, True

    def _input(self, name: str) -> Input:
        if name not in self.described:
            raise SimulationError(f"there is no input {name!r}; available: {', '.join(self.described) or 'none'}")
        return self.described[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.set(name, value, stacklevel=3)

    def set(self, name: str, value: Any, by: str = "script", stacklevel: int = 2) -> None:
        """Command a value; `by` says who, in `events`."""
        given = self._input(name)
        numbers = as_numbers(value)
        worlds = getattr(self.sim, "worlds", 1)
        if numbers.shape not in ((), (worlds,)) or not np.isfinite(numbers).all():
            what = "a finite number" if worlds == 1 else f"a finite number, or {worlds} of them"
            raise SimulationError(f"input {name!r} is {what} within {given.low:g} to {given.high:g}, got {value!r}")
        limited = np.clip(numbers, given.low, given.high)
        if name not in self._reported and (limited != numbers).any():
            self._reported.add(name)
            warnings.warn(
                f"input {name!r} is limited to {given.low:g} … {given.high:g}, got {value!r} (reported once)",
                StepWarning,
                stacklevel=stacklevel,
            )
        self._tell(name, float(limited) if limited.ndim == 0 else limited, 1.0, by)

    def hold(self, name: str, share: float, by: str = "operator") -> None:
        """What a held key or a stick does: share from −1 (less) to 1 (more), 0 let go.

        An input that returns goes that share of the way from its safe value to an end of its range; one that does not moves on at
        that share of its rate, and stays where it is when let go.
        """
        given = self._input(name)
        x = float(as_numbers(share)) if as_numbers(share).ndim == 0 else math.nan
        if not math.isfinite(x):
            raise SimulationError(f"input {name!r} is held by a finite number within -1 to 1, got {share!r}")
        x = min(max(x, -1.0), 1.0)
        if given.returns:
            self._tell(name, given.safe + x * ((given.high - given.safe) if x > 0 else (given.safe - given.low)), 1.0, by)
        else:
            self._tell(name, given.high if x > 0 else given.low if x < 0 else self._value[name], abs(x) or 1.0, by)

    def _tell(self, name: str, value: Any, pace: float, by: str) -> None:
        self._command[name], self._pace[name], self._by[name] = value, pace, by
        self.heartbeat()

    @property
    def silent(self) -> bool:
        """Whether nobody has commanded anything since the start, or since all inputs were released."""
        return self._heard is None

    def heartbeat(self) -> None:
        """The operator is there, though nothing is new: see `timeout`."""
        self._heard, self.busy = self.sim.time if self.sim is not None else 0.0, True

    def note(self, kind: str, name: str, value: Any = None, by: str = "instructor") -> Event:
        """Remember, at the time of now, what somebody did."""
        event = Event(float(self.sim.time), kind, name, value, by)
        self.events.append(event)
        return event

    def __getitem__(self, name: str) -> Any:
        self._input(name)
        return self._value[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.described)

    def __len__(self) -> int:
        return len(self.described)

    def __repr__(self) -> str:
        return f"<inputs: {', '.join(f'{name} {value!r}' for name, value in self._value.items()) or 'none'}>"

    def command(self, name: str) -> Any:
        """What was asked for and is reached at the input's rate."""
        self._input(name)
        return self._command[name]

    def apply(self) -> None:
        """Move every input by one step's worth towards its command, and hand on those that changed."""
        self.busy = False
        if self._heard is not None and self.timeout < math.inf:
            if self.sim.time - self._heard > self.timeout + 0.5 * self.sim.dt:
                self.release("lost", "operator")
            elif any(_differ(self._command[name], given.safe) for name, given in self.described.items()):
                self.busy = True  # until it is lost, or all is safe
        acted, dt = False, None
        for name, given in self.described.items():
            value, command = self._value[name], self._command[name]
            if self._noted.get(name) is not command and _differ(self._noted.get(name), command):
                self._noted[name] = command
                self.note("command", name, command, self._by.get(name, "script"))
            if name in self.stuck:
                command = value
            if name in self._acted and command is value:  # it is where it should be
                continue
            if dt is None:
                dt = self.sim.dt
            most = given.rate * self._pace.get(name, 1.0) * dt
            change = command - value
            moved = value + (min(max(change, -most), most) if change.__class__ is float else np.clip(change, -most, most))
            if not _differ(moved, command):
                moved = command
            else:
                self.busy = True
            self._value[name] = moved
            if name not in self._acted or _differ(self._acted[name], moved):
                self._acts[name](self.sim, moved)
                self._acted[name] = moved
                acted = True
        if acted:
            for hold, _ in self.faults.values():
                hold()

    def step(self, n: int = 1) -> Any:
        """`apply` and a step of the simulation, n times; returns the report of the last."""
        report = None
        for _ in range(n):
            if self.busy:
                self.apply()
            report = self.sim.step()
        return report

    # ---- as part of a snapshot ----

    def state(self) -> np.ndarray:
        """(3, inputs, worlds) commands, values, and whether they were handed on."""
        out = np.empty((3, len(self.described), self.sim.worlds))
        for k, name in enumerate(self.described):
            out[0, k], out[1, k], out[2, k] = self._command[name], self._value[name], float(name in self._acted)
        return out

    def put_back(self, state: np.ndarray) -> None:
        """Continue from what `state` returned; targets are part of the simulation's own state."""
        if np.shape(state) != (3, len(self.described), self.sim.worlds) or not np.isfinite(state).all():
            raise SimulationError(f"restore: the snapshot's inputs do not fit the scene's: {', '.join(self.described) or 'none'}")
        self._acted = {}
        for k, name in enumerate(self.described):
            command, value = (row[k] if self.sim.worlds > 1 else float(row[k, 0]) for row in np.array(state)[:2])
            self._command[name] = self._noted[name] = command
            self._value[name] = command if np.all(command == value) else value
            if state[2, k, 0]:
                self._acted[name] = self._value[name]
        self._pace, self._heard, self.busy = {}, None, True


def _differ(a: Any, b: Any) -> bool:
    """Whether two values, of which each is a number or one a world, are not the same."""
    apart = a != b
    return apart if isinstance(apart, bool) else bool(np.any(apart))


class Setter:
    """Hands an input's value on to its targets."""

    __slots__ = ("_places", "_scale", "commands")

    def __init__(self, sim: Owner, given: Input) -> None:
        self._scale = given.scale
        self.commands = all(word.startswith(("joint/", "rope/")) for word in given.targets)
        """Whether all targets are commands, which snapshots contain; parameters of springs and cables are none."""
        self._places: list[tuple[Any, str]] = []
        model = sim.model
        known: dict[str, Any] = {
            "joint": model.joint_names, "rope": sim.ropes, "cable": model.cable_names, "spring": model.spring_names,
        }  # fmt: skip
        for word in given.targets:
            kind, pattern, value = split_target(f"input {given.name!r}", word)
            names = [n for n in known[kind] if n == pattern or fnmatchcase(n, pattern)]
            if not names:
                raise SceneError(
                    f"input {given.name!r}: no {kind} matches {word!r}; available: {', '.join(map(repr, known[kind]))}"
                )
            for n in names:
                view, field = getattr(sim, kind)(n), value
                if kind == "joint":
                    if check_word(given.name, n, value, model.joint_axes[model.joint_names[n]]):
                        view = view.drive
                    elif value == "torque":
                        field = "effort"
                self._places.append((view, field))

    def __call__(self, _sim: Owner, value: Any) -> None:
        given = self._scale * value
        for view, field in self._places:
            setattr(view, field, given > 0.5 if field == "enabled" else given)


class InputAccess:
    """The part of a Simulation that is about its inputs."""

    __slots__ = ()
    _inputs: Inputs
    controls = Former("inputs")

    @property
    def inputs(self) -> Inputs:
        """The scene's inputs (`Scene.add_input`): `sim.inputs["throttle"] = 0.5` is taken at the next step."""
        return self._inputs

    def html(self, path: Any, *, fps: float = 30.0, title: str | None = None, follow: str | None = None) -> Any:
        """Keep the motion of the first world as one HTML file: `with sim.html("out.html"): sim.run(4)`.

        Args:
            fps: frames a simulated second. title: above the picture. follow: a body to move along with.
        """
        from sharnir.view.page import Page

        return Page(self, path, fps, title, follow)
