"""Recording a simulation to an MCAP file while it runs, exactly enough to be made again.

Kept are: the scene and the state at the start; what was changed from outside before each step (commands, and states that were
set), as the words of memory that changed; of each step the iterations that it was given and checks of its result; poses, joints
and ropes some 60 times a second for looking at; a complete state every few seconds. What is written stands in chunks of 40 ms
of the wall clock, each handed to the operating system as it is made: a process that is killed loses no more than the last.

Channels: `/tf`, `/joint_states`, `/ropes`, `/bodies` (messages of ROS 2), `/controls`, `/events`, `/sensors` (JSON),
`/sharnir/steps`, `/sharnir/commands`, `/sharnir/key`.
"""

from __future__ import annotations

import json
import struct
import threading
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.graphs import LOCK
from sharnir.errors import SceneError, SceneWarning, SimulationError, is_positive
from sharnir.io import mcap, ros
from sharnir.model.model import CONTROL_FIELDS, STATE_FIELDS
from sharnir.model.rope_state import ROPE_CONTROL_FIELDS, ROPE_STATE_FIELDS
from sharnir.runtime import checkpoint, snapshots
from sharnir.runtime.frame_camera import Camera

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
FLUSH = 0.04  # s of the wall clock between chunks
# steps made in one go; their iterations: 0 as many as it took, above a cap, below those that a budget left; checks
# of these steps; and whether the state was read before them, which may change them by rounding
STEP_ROWS = np.dtype([("steps", "<u4"), ("cap", "<i4"), ("read", "<u2"), ("checks", "<u2", 6)])
QUANTITIES = ("position of bodies", "rotation of bodies", "velocity of bodies", "angular momentum of bodies", "points of ropes",
              "velocity of ropes")  # fmt: skip
INPUT_SCHEMA = ("sharnir.Inputs", "jsonschema", json.dumps({"type": "object", "additionalProperties": {"type": "number"}}))
SENSOR_SCHEMA = ("sharnir.Sensors", "jsonschema", json.dumps({"type": "object", "additionalProperties": {"type": "array"}}))
EVENT_SCHEMA = ("sharnir.Event", "jsonschema", json.dumps({"type": "object", "properties": {
    "time": {"type": "number"}, "kind": {"type": "string"}, "name": {"type": "string"}, "by": {"type": "string"}}}))  # fmt: skip
STEP_RECORD = struct.Struct("<IiH6H")  # one of them
KIND_DELTA, KIND_WHOLE = 0, 1
MAX_EVERY = 1_000_000  # steps that are made in one go
COMMAND = struct.Struct("<QBBHI")  # before which step, kind, whether velocities stood at the pose, words


class Memory:
    """All that a step or a command changes of one world on the CPU, as words of 8 bytes, and which of them are what."""

    def __init__(self, sim: Owner) -> None:
        if not sim._on_cpu or sim.worlds != 1:
            raise SimulationError(f"record_file: one world on the CPU, got {sim.worlds} on {sim.model.device}")
        self.words = np.asarray(sim._transaction._live).view(np.uint8)[: sim._transaction._live.nbytes // 8 * 8].view(np.uint64)
        start = self.words.__array_interface__["data"][0]
        structs = [(sim._state, STATE_FIELDS, False), (sim.commands, CONTROL_FIELDS, True)]
        if sim._ropes:
            structs += [(sim._state.rope, ROPE_STATE_FIELDS, False), (sim.commands.rope, ROPE_CONTROL_FIELDS, True)]
        self.command, self.read, self.whole = (np.zeros(len(self.words), bool) for _ in range(3))
        for owner, fields, command in structs:
            for name in fields:
                array = getattr(owner, name)
                if array.size:
                    at = (array.ptr - start) // 8
                    span = slice(at, at - (-array.numpy().nbytes // 8))
                    self.command[span] = command
                    self.whole[span] |= array.numpy().dtype.kind in "iu"
                    self.read[span] |= owner is sim._state and name in ("q", "qd")
        self.moving = ~self.command & ~self.read
        self.spans = [  # of the commands: compared before every step
            slice(int(a), int(b)) for a, b in np.flatnonzero(np.diff(self.command, prepend=False, append=False)).reshape(-1, 2)
        ]

    def change(self, sim: Owner, where: np.ndarray, values: np.ndarray, at_pose: bool, who: str) -> None:
        """Change words as a user did; where whole numbers would then be out of range, nothing is changed."""
        if at_pose:
            sim.state  # noqa: B018  velocities were those of the pose when it was changed
        with LOCK:
            commands = sim._commands
            acted = [commands.acts.copy(), commands.enabled.copy(), commands.friction_load > 0]
            before = self.words[where]
            self.words[where] = values
            if self.whole[where].any():
                try:
                    snapshots.check_whole_numbers(sim, snapshots.values_of(sim))
                except SimulationError as error:
                    self.words[where] = before
                    raise SimulationError(f"{who}: is damaged: {error}") from None
            acts = [commands.acts, commands.enabled, commands.friction_load > 0]
            if any((a != b).any() for a, b in zip(acted, acts, strict=True)):
                sim._acts_changed()
            sim.changed()
            sim._forced = True


class Checks:
    """Checks of the result of a step, one a quantity; (6,) of 16 bits."""

    def __init__(self, sim: Owner) -> None:
        s, ropes = sim._moving, [sim._rope_moving] if sim._ropes else []

        def speed(owner: Any, name: str, mid: str) -> np.ndarray:  # where it stands half a step before, until somebody reads it
            inner = getattr(owner, mid)
            return np.asarray(inner if not sim.solver.at_pose and inner.size else getattr(owner, name))

        parts = [s.position, s.rotation, speed(s, "velocity", "mid_velocity"), speed(s, "momentum", "mid_momentum")]
        parts += [part for r in ropes for part in (r.position, r.velocity)]
        self._parts = [np.ascontiguousarray(part).reshape(-1).view(np.uint8).data for part in parts]

    def now(self) -> tuple[int, ...]:
        """Of the state as it is."""
        found = [zlib.crc32(part) & 0xFFFF for part in self._parts]
        return (*found, *[0] * (6 - len(found)))


def described(sim: Owner) -> str:
    """The scene as text; "" where it holds what a file cannot, such as functions."""
    from sharnir.io.write import scene_text

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SceneWarning)
            return "" if sim.model.told is None else scene_text(sim.model.told)
    except SceneError:
        return ""


class Recorder:
    """Writes a recording while steps are made; a context manager. See `Simulation.record_file`."""

    def __init__(self, sim: Owner, path: str | Path, *, rate: float = 60.0, key: float = 5.0, name: str = "") -> None:
        for what, value in (("rate", rate), ("key", key)):
            if not is_positive(value):
                raise SimulationError(f"record_file: {what} is a positive finite number, got {value!r}")
        self._sim, self.path, self.name = sim, Path(path), name
        self._memory, self._checks, self._camera = Memory(sim), Checks(sim), Camera(sim)
        self._every, self._key_every = min(max(1, round(1 / rate / sim.dt)), MAX_EVERY), max(1, round(key / sim.dt))
        self._single = [
            (n, i) for n, i in sim.model.joint_names.items() if sim.model.joint_kinds[i].v_size == sim.model.joint_kinds[i].q_size
        ]
        self._rows = [
            (int(sim.model.q_start[i]) + a, int(sim.model.v_start[i]) + a)
            for _, i in self._single for a in range(sim.model.joint_kinds[i].v_size)
        ]  # fmt: skip
        self._columns = np.array(self._rows, int).reshape(-1, 2).T
        self.steps = 0
        """Steps recorded so far."""
        self._elapsed = (0, 0.0)  # at which step the present dt began, and s of simulated time until then
        self._groups: list[bytes] = []
        self._first = 0
        self._queue: deque[tuple[int, int, bytes | Callable[[], bytes]]] = deque()
        self._counted = sim.solver.done.numpy()
        self._reference = self._memory.words.copy()
        self._dirty, self.reads, self._read_first = False, False, False
        self._error: OSError | None = None
        self._done = threading.Event()

    # ---- beginning and end ----

    def __enter__(self) -> Recorder:
        sim = self._sim
        if sim._recorder is not None:
            raise SimulationError(f"record_file: {sim._recorder.path} is being recorded already")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self.path.open("wb")
        facts = checkpoint.facts(sim) | {"what": "recording", "name": self.name, "every": self._every, "dt": sim.dt}
        self._writer = w = mcap.Writer(self._stream, f"sharnir {facts['sharnir']}")
        self._start: int = time.time_ns()
        names = self._camera.layout.bodies, self._camera.layout.ropes
        joints = [n if sim.model.joint_kinds[i].v_size == 1 else f"{n}/{sim.model.joint_kinds[i].free[a]}"
                  for n, i in self._single for a in range(sim.model.joint_kinds[i].v_size)]  # fmt: skip
        facts |= {
            "controls": list(sim.inputs),
            "sensors": list(sim._sensors.shown()),
            "options": sim.solver.given or {},
            "bodies": names[0],
            "ropes": names[1],
            "joints": joints,
            "words": len(self._memory.words),
        }
        w.add_metadata("sharnir", {key: json.dumps(value) for key, value in facts.items()})
        w.add_attachment("start", "application/x-sharnir", checkpoint.dump(sim), self._start)
        scene = described(sim)
        if scene:
            w.add_attachment("scene.toml", "application/toml", scene.encode(), self._start)
        self._tf, self._joints = ros.transforms(names[0]), ros.joint_states(joints)
        self._channels = {
            "tf": w.add_channel("/tf", "cdr", ros.TF), "joints": w.add_channel("/joint_states", "cdr", ros.JOINT_STATE),
            "ropes": w.add_channel("/ropes", "cdr", ros.MARKERS), "bodies": w.add_channel("/bodies", "cdr", ros.MARKERS),
            "steps": w.add_channel("/sharnir/steps", "sharnir"), "commands": w.add_channel("/sharnir/commands", "sharnir"),
            "key": w.add_channel("/sharnir/key", "sharnir"), "controls": w.add_channel("/controls", "json", INPUT_SCHEMA),
            "events": w.add_channel("/events", "json", EVENT_SCHEMA), "sensors": w.add_channel("/sensors", "json", SENSOR_SCHEMA),
        }  # fmt: skip
        model = sim.model
        looks = [model.visuals.get(i, shape) for i, shape in enumerate(model.shapes)][1:]
        meshes = [None if s is None else s.mesh() for s in looks]
        w.add(self._channels["bodies"], self._start, ros.bodies(names[0], meshes, list(model.colors[1:])))
        self._widths = [] if model.ropes is None else [float(r.radius) for r in model.ropes.described]
        self._take_note()
        np.copyto(self._reference, self._memory.words)
        self._reported = sim.inputs.events[-1] if sim.inputs.events else None
        sim._recorder = self
        sim._logs.append(self)
        self._show()
        w.flush()
        self._thread = threading.Thread(target=self._write, name="sharnir recorder", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sim._logs.remove(self)
        self._sim._recorder = None
        self._close_groups()
        self._done.set()
        self._thread.join()
        if self._error is not None:
            raise SimulationError(f"{self.path}: cannot be written: {self._error.strerror or self._error}")

    def _write(self) -> None:
        """What the thread does: every now and then all that is queued becomes a chunk."""
        try:
            while not self._done.wait(FLUSH):
                self._drain()
                self._writer.flush()
            self._drain()
            self._writer.close()
            self._stream.close()
        except OSError as error:  # a full disk: reported at the end; the simulation continues
            self._error = error
            self._queue.clear()

    def _drain(self) -> None:
        while self._queue:
            channel, when, data = self._queue.popleft()
            self._writer.add(channel, when, data if isinstance(data, bytes) else data())

    def _put(self, channel: str, data: bytes | Callable[[], bytes]) -> None:
        """Queue a message, or what makes it, which the thread then does."""
        if self._error is None:
            self._queue.append((self._channels[channel], self._now(), data))

    def _put_all(self, channel: str, head: bytes) -> None:
        """Queue the complete state of now; it is packed by the thread."""
        facts, arrays = checkpoint.facts(self._sim), snapshots.take(self._sim) | self._parameters
        self._put(channel, lambda: head + checkpoint.pack(facts, arrays, 1))

    def _now(self) -> int:
        """ns: the wall clock at the start, and simulated time since."""
        since, passed = self._elapsed
        return self._start + int(round(1e9 * (passed + (self.steps - since) * self._given[0])))

    # ---- called by the simulation ----

    def due(self) -> int:
        """Steps until the next poses are kept."""
        return int(self._every - self.steps % self._every)

    def reading(self) -> None:
        """Velocities are about to be brought to the pose, which is no change."""
        self._dirty |= bool(((self._reference != self._memory.words) & self._memory.moving).any())

    def read(self) -> None:
        """They were."""
        self.reads = True
        if not self._dirty:
            now, ref = self._memory.words, self._reference
            np.copyto(ref, now, where=~self._memory.command)

    def before(self, how: Mapping[str, Any]) -> None:
        """Steps are about to be made: what was changed since the last?"""
        sim, m = self._sim, self._memory
        if sim._lent:
            sim._look()
        self._read_first, self.reads = self.reads, False
        budget, cap = how.get("budget"), how.get("iterations")
        self._cap = -1 if budget is not None else 0 if cap is None else int(cap)
        other = sim._versions[1] != self._versions[1] or sim.dt != self._given[0] or sim._gravities is not self._given[1]
        if other or (self._collider is not None and self._collider.changes != self._changes):
            self._take_whole()
            return
        changed = sim._versions[0] != self._versions[0]
        if changed or sim._modified or self._dirty or sim._paths:
            other = m.words != self._reference
            if not (changed or self._dirty):
                other &= ~m.read
            self._take_delta(np.flatnonzero(other))
        elif any((m.words[span] != self._reference[span]).any() for span in m.spans):
            self._take_delta(np.flatnonzero((m.words != self._reference) & m.command))
        self._versions[0], self._dirty = sim._versions[0], False

    def made(self, steps: int) -> None:
        """So many steps were made."""
        self.steps += steps
        cap = -max(1, int(self._counted[0])) if self._cap < 0 else self._cap
        self._groups.append(STEP_RECORD.pack(steps, cap, self._read_first, *self._checks.now()))
        np.copyto(self._reference, self._memory.words)
        if self.steps % self._every == 0:
            self._show()
        if len(self._groups) >= 64 or self.steps % self._every == 0:
            self._close_groups()
        if self.steps % self._key_every < steps:
            self._put_all("key", struct.pack("<Q", self.steps))

    # ---- what is kept ----

    def _take_delta(self, where: np.ndarray) -> None:
        if not len(where):
            return
        self._close_groups()
        values = self._memory.words[where]
        at_pose = self._sim._at_pose and not self._sim.solver.at_pose
        head = COMMAND.pack(self.steps, KIND_DELTA, int(at_pose), 0, len(where))
        self._put("commands", head + where.astype("<u4").tobytes() + values.tobytes())

    def _take_whole(self) -> None:
        """Parameters were changed, or all of the state was put back."""
        self._close_groups()
        self._elapsed = self.steps, self._elapsed[1] + (self.steps - self._elapsed[0]) * self._given[0]
        self._take_note()
        self._put_all("commands", COMMAND.pack(self.steps, KIND_WHOLE, 0, 0, 0))
        self._dirty = False

    def _take_note(self) -> None:
        """Of parameters, and of how often they were changed, for the next look."""
        sim = self._sim
        self._versions, self._given = list(sim._versions), (sim.dt, sim._gravities)
        self._parameters, self._collider = checkpoint.kept_parameters(sim), sim.solver.collider
        self._changes = 0 if self._collider is None else self._collider.changes

    def _close_groups(self) -> None:
        """Queue what is known of the steps since the last time."""
        if self._groups:
            self._put("steps", struct.pack("<QI", self._first, len(self._groups)) + b"".join(self._groups))
            self._groups = []
        self._first = self.steps

    def _show(self) -> None:
        """Poses, joints and ropes for looking at."""
        sim, now = self._sim, self._now()
        frame = self._camera.take(self.steps)
        self._put("tf", lambda: self._tf.fill(now, np.concatenate([frame.position, frame.rotation], 1).ravel()))
        if self._rows:
            sim._coordinates()
            q, v = self._columns
            s = sim._moving
            values = np.concatenate([s.q[q, 0], s.qd[v, 0], s.axis_impulse[v, 0] / sim.dt])
            self._put("joints", lambda: self._joints.fill(now, values))
        if sim.inputs:
            self._put("controls", json.dumps({name: float(value) for name, value in sim.inputs.items()}).encode())
        if sim._sensors:
            self._put("sensors", json.dumps(sim._sensors.shown()).encode())
        self._tell_events()
        if self._widths:
            self._put("ropes", lambda: ros.lines(self._camera.layout.ropes, frame.ropes(), self._widths, now))

    def _tell_events(self) -> None:
        """What somebody did since the last time, in words."""
        events = self._sim.inputs.events
        if not events or events[-1] is self._reported:
            return
        new = []
        for event in reversed(events):
            if event is self._reported:
                break
            new.append(event)
        self._reported = events[-1]
        for event in reversed(new):
            value = event.value if isinstance(event.value, str | int | float | bool | None) else str(event.value)
            words = {"time": event.time, "kind": event.kind, "name": event.name, "value": value, "by": event.by}
            self._put("events", json.dumps(words).encode())
