"""Recordings read back: values over time as arrays and plots, and the motion made again from its commands.

recording = sh.Recording("run.mcap")
recording.time, recording["joint/hinge.q"], recording["body/door.position"]; recording.plot("run.png")
print(recording.replay(make()))                # "4000 steps, equal in every bit"
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sharnir.core.bounded_json import Message, MessageError, decode, decode_json, is_number, show
from sharnir.errors import SimulationError, StepWarning
from sharnir.io import mcap, ros, usd
from sharnir.runtime import checkpoint, snapshots
from sharnir.runtime.kinematic_paths import without_paths
from sharnir.runtime.log import Values
from sharnir.runtime.options import Options
from sharnir.runtime.record_writer import COMMAND, KIND_DELTA, KIND_WHOLE, MAX_EVERY, QUANTITIES, STEP_ROWS, Checks, Memory

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
T = TypeVar("T")
MAX_JSON = 1 << 24  # bytes of a message in JSON, of which there may be a name for every body
MAX_CAP = 1_000_000  # iterations that a step is given
MALFORMED = (MessageError, struct.error, ValueError, IndexError, KeyError, TypeError, OverflowError)
"""What reading bytes of the wrong size or type raises."""
AMPLE = 1e6  # s, a budget that cuts nothing: sweeps are launched one by one, as they were, and counted


@dataclass(frozen=True)
class Replayed:
    """How a motion that was made again compares to the recorded one."""

    steps: int  # made again, all of them or up to the first that differs
    equal: bool
    step: int = -1  # the first after which something differs
    time: float = 0.0  # s, simulated since the start of the recording, of that step
    quantity: str = ""  # what differs there

    def __str__(self) -> str:
        if self.equal:
            return f"{self.steps} steps, equal in every bit"
        return f"differs after step {self.step} (t = {self.time:.6g} s) in the {self.quantity}; until then it is equal"


class Recording(Values):
    """A recording in a file; one that was cut off is read up to its last chunk.

    `time` (n,) s, simulated since the start; `names`; `recording[name]` (n, …): "body/NAME.position", "body/NAME.rotation",
    "joint/NAME.q", ".qd", ".effort" (a joint with several axes: "joint/NAME/AXIS.q"), "rope/NAME.position"; for looking at, in
    float32; "control/NAME" what inputs had in effect; "sensor/NAME.WORD" of sensors with up to 64 values. `plot`,
    `to_csv`, `to_npz`, `to_parquet` as of `sim.record`. `replay` makes the exact motion again.

    max_bytes: memory that its messages may take when unpacked; if None, 64 times the size of the file, at least 256 MiB.
    """

    __slots__ = ("_contents", "_rows", "_times", "facts", "path", "steps", "whole")

    def __init__(self, path: str | Path, *, max_bytes: int | None = None) -> None:
        self.path = Path(path)
        try:
            self._contents = c = mcap.read(self.path, max_bytes)
        except OSError as error:
            raise SimulationError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        if "sharnir" not in c.metadata or "start" not in c.attachments:
            raise SimulationError(f"{self.path}: is an MCAP file, but no recording of sharnir")
        self.facts: dict[str, Any] = self._checked(read_facts, c.metadata["sharnir"])
        """What was recorded: scene (its hash), solver, dt, name, bodies, joints, ropes."""
        self.whole = c.whole
        """Whether it was closed; False where the process was stopped before."""
        self.steps = 0
        """Steps that can be made again."""
        self._checked(self._read)

    def __repr__(self) -> str:
        cut = "" if self.whole else ", cut off"
        return f"<recording {str(self.path)!r}: {self.steps} steps, {len(self)} times{cut}>"

    def _checked(self, read: Callable[..., T], *given: Any) -> T:
        """Read something of the file; content that is not what a recorder writes is an error that names the file."""
        try:
            return read(*given)
        except MALFORMED as error:
            raise SimulationError(f"{self.path}: is damaged: {error or type(error).__name__}") from None

    def _read(self) -> None:
        """Sort messages into rows by name."""
        bodies, joints, ropes = self.facts["bodies"], self.facts["joints"], self.facts["ropes"]
        tf, states = ros.transforms(tuple(bodies))._places, ros.joint_states(joints)._places
        by: dict[str, list[tuple[int, bytes]]] = {}
        for topic, when, data in self._contents.messages:
            by.setdefault(topic, []).append((when, data))
        frames = by.get("/tf", [])
        start = frames[0][0] if frames else 0
        self._times = [1e-9 * (when - start) for when, _ in frames]
        poses = np.array([ros.read_reals(data, tf) for _, data in frames]).reshape(len(frames), len(bodies), 7)
        self._rows = {}
        for k, name in enumerate(bodies):
            self._rows[f"body/{name}.position"], self._rows[f"body/{name}.rotation"] = poses[:, k, :3], poses[:, k, 3:]
        shown = [ros.read_reals(data, states) for _, data in by.get("/joint_states", [])][: len(frames)]
        values = np.array(shown).reshape(len(shown), 3, len(joints))
        for k, name in enumerate(joints):
            for row, word in enumerate(("q", "qd", "effort")):
                self._rows[f"joint/{name}.{word}"] = values[:, row, k]
        given = [decode(data, max_bytes=MAX_JSON) for _, data in by.get("/controls", [])][: len(frames)]
        for name in self.facts["controls"]:
            self._rows[f"control/{name}"] = np.array([each.number(name) for each in given])
        read = [decode(data, max_bytes=MAX_JSON) for _, data in by.get("/sensors", [])][: len(frames)]
        for name in self.facts["sensors"]:
            self._rows[f"sensor/{name}"] = np.array([each.value(name) for each in read], float)
        lines = [ros.read_lines(data) for _, data in by.get("/ropes", [])][: len(frames)]
        for k, name in enumerate(ropes):
            self._rows[f"rope/{name}.position"] = [each[k] for each in lines]
        shortest = min([len(frames), *(len(rows) for rows in self._rows.values())])  # a chunk may end between them
        self._times = self._times[:shortest]
        self._rows = {name: rows[:shortest] for name, rows in self._rows.items()}
        for _, data in by.get("/sharnir/steps", []):
            first, count = struct.unpack_from("<QI", data)
            made = np.frombuffer(data, STEP_ROWS, count, 12)
            if made["steps"].max(initial=0) > self.facts["every"] or np.abs(made["cap"].astype(int)).max(initial=0) > MAX_CAP:
                raise ValueError(f"steps in one go are at most {self.facts['every']}, and their iterations {MAX_CAP}")
            self.steps = max(self.steps, first + int(made["steps"].sum()))

    def events(self) -> list[dict[str, Any]]:
        """What somebody did (commands, failures, …): time (s), kind, name, value, by."""
        found = [data for topic, _, data in self._contents.messages if topic == "/events"]
        return [self._checked(decode, data).fields for data in found]

    @property
    def scene(self) -> str:
        """The scene as a TOML file has it; "" where it was not written."""
        return str(self._checked(self._contents.attachments.get("scene.toml", b"").decode))

    def key_times(self) -> list[int]:
        """Numbers of steps after which a complete state is kept."""
        return [at for at, _ in self._keys()]

    def _keys(self) -> list[tuple[int, bytes]]:
        """Complete states, and after which step each was kept."""
        found = [data for topic, _, data in self._contents.messages if topic == "/sharnir/key"]
        return [(self._checked(struct.unpack_from, "<Q", data)[0], data[8:]) for data in found]

    def put(self, sim: Owner, step: int = 0) -> int:
        """Bring a simulation to the last complete state at or before a step; which step that is."""
        found, best = self._contents.attachments["start"], 0
        for at, data in self._keys():
            if best < at <= step:
                found, best = data, at
        self._restore(sim, found)
        return best

    def _restore(self, sim: Owner, data: bytes) -> None:
        checkpoint.restore(sim, data, str(self.path))
        sim.inputs.busy = False  # what they did is among the commands

    def to_usd(self, path: str | Path) -> Path:
        """Write bodies and ropes in motion as a USD stage, z up, m (needs `sharnir[io]`)."""
        looks, radii = self._checked(self._looks)
        bodies = {n: (self[f"body/{n}.position"], self[f"body/{n}.rotation"], None) for n in self.facts["bodies"]}
        ropes = {n: (self._rows[f"rope/{n}.position"], radii[n]) for n in self.facts["ropes"]}
        return usd.write(path, self.time, bodies, looks, ropes)

    def _looks(self) -> tuple[dict[str, Any], dict[str, float]]:
        """What bodies look like (corners, triangles, colour), and radii of ropes (m), by name."""
        looks: dict[str, Any] = {}
        radii: dict[str, float] = {}
        for topic, _, data in self._contents.messages:
            if topic == "/bodies":
                for name, (_, *color), corners in ros.read_markers(data):
                    looks[name] = corners, np.arange(len(corners)).reshape(-1, 3), color
            elif topic == "/ropes" and not radii:
                radii = {name: 0.5 * width for name, (width, *_), _ in ros.read_markers(data)}
        missing = [name for name in self.facts["ropes"] if name not in radii]
        if missing and len(self):
            raise ValueError(f"it does not say how thick rope {missing[0]!r} is")
        return looks, radii

    def replay(self, sim: Owner, progress: Any = None) -> Replayed:
        """Make the motion again from its commands, and compare every step.

        Args:
            sim: of the same scene and solver; it stands at the end of the recording afterwards, or at the step that differs.
            progress: called with the share that is done, 0 to 1.
        """
        self.put(sim)
        if self.facts["words"] != len(Memory(sim).words):
            raise SimulationError(f"{self.path}: was recorded with another layout of memory (sharnir {self.facts['sharnir']})")
        with without_paths(sim), warnings.catch_warnings():  # paths are among the commands
            warnings.simplefilter("ignore", StepWarning)  # given when the steps were made
            return self._replay(sim, progress)

    def _replay(self, sim: Owner, progress: Any) -> Replayed:
        memory, checks, made, passed = Memory(sim), Checks(sim), 0, 0.0
        for topic, _, data in self._contents.messages:
            if topic == "/sharnir/commands":
                at, kind, at_pose, where, values = self._checked(read_command, data, len(memory.words))
                if at != made:
                    raise SimulationError(f"{self.path}: is damaged: a command before step {at} comes after step {made}")
                if kind == KIND_WHOLE:
                    self._restore(sim, data[COMMAND.size :])
                else:
                    memory.change(sim, where, values, at_pose, str(self.path))
            elif topic == "/sharnir/steps":
                _first, count = struct.unpack_from("<QI", data)
                for steps, cap, read, wanted in np.frombuffer(data, STEP_ROWS, count, 12).tolist():
                    n, dt = int(steps), sim.dt
                    if read:
                        sim.state  # noqa: B018
                        snapshots.forget_rows(sim)
                    sim.step(n, iterations=abs(int(cap)) or None, budget=AMPLE if cap < 0 else None)
                    made, passed = made + n, passed + n * dt
                    wrong = [what for what, a, b in zip(QUANTITIES, checks.now(), wanted, strict=True) if a != b]
                    if wrong:
                        return Replayed(made, False, made, passed, ", ".join(wrong))
                if progress is not None:
                    progress(made / max(1, self.steps))
        return Replayed(made, True)


def read_facts(given: dict[str, str]) -> dict[str, Any]:
    """What a recording says of itself, checked."""
    facts = Message({key: decode_json(value, max_bytes=MAX_JSON) for key, value in given.items()})
    facts.fields.setdefault("sensors", [])
    for word in ("scene", "solver", "sharnir", "name", "precision"):
        facts.text(word, longest=4096)
    for word in ("bodies", "joints", "ropes", "controls", "sensors"):
        facts.value(word)
        names = facts.texts(word, MAX_JSON, MAX_JSON)
        if len(set(names)) < len(names):
            raise MessageError(f"{word} are different names, got one twice")
    for word, low, high in (("dt", 1e-12, 1e6), ("words", 1, 1e9), ("every", 1, MAX_EVERY), ("worlds", 1, 1)):
        if facts.number(word, low, high) % 1 and word != "dt":
            raise MessageError(f"{word} is a whole number, got {facts.fields[word]!r}")
    options = facts.value("options")
    if not isinstance(options, dict) or not all(x is None or isinstance(x, bool | str) or is_number(x) for x in options.values()):
        raise MessageError(f"options is an object of numbers and texts, got {show(options)}")
    for name, value in options.items():
        if name not in Options.__annotations__ or (is_number(value) and abs(value) > MAX_CAP):
            raise MessageError(f"options are those of a solver, their numbers at most {MAX_CAP}, got {show({name: value})}")
    return facts.fields


def read_command(data: bytes, words: int) -> tuple[int, int, bool, np.ndarray, np.ndarray]:
    """Before which step, which kind, whether velocities stood at the pose; which words of memory changed, and to what."""
    at, kind, at_pose, _, count = COMMAND.unpack_from(data)
    if kind not in (KIND_DELTA, KIND_WHOLE):
        raise ValueError(f"a command is of kind {KIND_DELTA} or {KIND_WHOLE}, got {kind}")
    where = np.frombuffer(data, "<u4", count, COMMAND.size)
    values = np.frombuffer(data, "<u8", count, COMMAND.size + 4 * count)
    if where.max(initial=0) >= words:
        raise ValueError(f"a command changes word {where.max()} of {words}")
    return at, kind, bool(at_pose), where, values
