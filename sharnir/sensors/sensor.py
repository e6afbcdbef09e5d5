"""Sensors that are read now and then: when they are due, what they measured, how they fail. IMU, force and torque, distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import warp as wp

from sharnir.errors import Bound, SceneError, SimulationError, as_numbers
from sharnir.launches import LOCK, Recorded
from sharnir.sensors.frames import Frame, distance
from sharnir.sensors.noise import QUIET, Noise, Reading
from sharnir.sensors.spoil import Inertial, measure_inertia
from sharnir.types import alone, load_modules, np_real, quat, real, vec3

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
Vector = Sequence[float]


def checked_noise(noise: Any, who: str) -> Noise:
    """A `Noise`, or none at all."""
    if noise is not None and not isinstance(noise, Noise):
        raise SceneError(f"{who}: noise is a Noise(…) or None, got {noise!r}")
    return QUIET if noise is None else noise


class Sensor(Bound):
    """What all sensors share: they are read when they are due, and hold what they read until then.

    `update()` is to be called after a step, or after several; sensors of a scene (`scene.add_sensor`) are updated by the
    simulation. Values have a leading world axis where worlds are several.
    """

    sizes: ClassVar[tuple[int, ...]] = ()
    """Numbers of each quantity."""
    words: ClassVar[tuple[str, ...]] = ()
    """What the quantities are called."""

    _sim: Owner
    _reading: Reading
    name: str

    def _begin(
        self, sim: Owner, value: Any, sizes: Sequence[int], noise: Noise, name: str, who: str,
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:  # fmt: skip
        """Take the first reading. value: [value, world] on the device, into which `_measure` writes, within a range."""
        self._sim, self.name = sim, name
        self._reading = Reading(value, sizes, noise, name, who, within)
        self._clock = [float(sim.time), 1.0, float(sim.time)]  # s: the first reading; how many were due; s: the last one
        self._measure(math.nan)
        self._reading.take(sim.dt)

    def _measure(self, between: float) -> None:
        """Write true values, of now; between: s since the reading before, NaN for the first."""
        raise NotImplementedError

    @property
    def noise(self) -> Noise:
        """How it errs and how often it is read."""
        return self._reading.noise

    @property
    def size(self) -> int:
        """Values of a reading, of one world."""
        return int(self._reading.value.shape[0])

    def due(self) -> int:
        """Steps until the next reading, at least 1."""
        rate = self.noise.rate
        if rate is None:
            return 1
        left = self._clock[0] + self._clock[1] / rate - float(self._sim.time)
        return max(1, math.ceil(left / float(self._sim.dt) - 1e-6))

    def update(self) -> bool:
        """Read it if it is due, after a step; whether it was."""
        now, rate = float(self._sim.time), self.noise.rate
        begin, count, last = self._clock
        if now < last:  # time was put back
            begin, count, last = self._clock = [now, 0.0, now]
        elif now == last:
            return False
        if rate is not None:
            if now < begin + count / rate - 1e-6 * self._sim.dt:
                return False
            count = max(count, math.floor((now - begin) * rate + 1e-6))
        self._clock = [begin, count + 1.0, now]
        if not self._reading.frozen:
            dt = float(self._sim.dt)
            between = max(1, round((now - last) / dt)) * dt  # to the bit the same whenever it began
            self._measure(between if now > last else math.nan)
            self._reading.take(between)
        return True

    def begin_among(self, first: int) -> None:
        """Read anew, as at the start, its worlds being those from a number on of many."""
        self._reading.begin_among(first)
        self._measure(math.nan)
        self._reading.take(self._sim.dt)

    # ---- failures and snapshots ----

    def fail(self, kind: str, size: Any = None) -> None:
        """Let it fail, from the next reading on: "frozen", "dropout" (NaN), "bias" or "noise", the last two by a size."""
        self._reading.fail(kind, size)

    def repair(self, kind: str) -> None:
        """Undo a failure."""
        self._reading.repair(kind)

    @property
    def faults(self) -> tuple[str, ...]:
        """How it fails now."""
        return tuple(self._reading.faults)

    def _memory(self) -> dict[str, Any]:
        """All arrays [row, world] or [world] on the device that change."""
        return self._reading.arrays()

    def state(self) -> dict[str, np.ndarray]:
        """All that changes, as copies by name; worlds are the last axis of all but the clock."""
        return {n: a.numpy().copy() for n, a in self._memory().items()} | {"clock": np.array(self._clock)}

    def put_back(self, state: dict[str, np.ndarray], worlds: Any = None) -> None:
        """Continue from what `state` returned, in all worlds or in some."""
        where = (..., slice(None) if worlds is None else worlds)
        for name, array in self._memory().items():
            if name in state and state[name].shape == array.shape:
                now = array.numpy()
                now[where] = state[name][where]
                if not array.device.is_cpu:
                    array.assign(now)
            elif name != "value":  # tables that a failure made since: as at the start
                array.zero_()
        if worlds is None and "clock" in state:
            self._clock = [float(x) for x in state["clock"]]

    # ---- values ----

    def _shown(self, shape: tuple[int, ...]) -> Any:
        """The values as the user sees them: a NumPy view on the CPU, a device array (DLPack) on a GPU."""
        array, worlds = self._reading.value, self._sim.worlds
        if array.device.is_cpu:
            view = array.numpy().reshape(*shape, worlds)
            view = (view[..., 0] if worlds == 1 else np.moveaxis(view, -1, 0)).view()
            view.flags.writeable = False
            return view
        if worlds == 1:
            return array.reshape(shape)
        return array.reshape((*shape, worlds)).transpose([len(shape), *range(len(shape))])

    @property
    def array(self) -> Any:
        """All values in the device's own memory, (values,) or (worlds, values): to be read, not written; the same every time."""
        return self._shown((self.size,))

    def _read(self, quantity: int) -> Any:
        """One of its quantities, as copies on the host."""
        at, size = sum(self.sizes[:quantity]), self.sizes[quantity]
        values = self._reading.value.numpy()[at : at + size].T.astype(float)
        return self._sim._out(values if size > 1 else values[:, 0])


class HostSensor(Sensor):
    """A sensor of a few values, computed on the host."""

    def _start(self, sim: Owner, noise: Noise, name: str, who: str) -> None:
        self._host: np.ndarray = np.zeros((sum(self.sizes), sim.worlds), np_real)
        value = wp.array(self._host, dtype=real, device="cpu", copy=False)
        self._begin(sim, value, self.sizes, noise, name, who)

    def _write(self, *parts: Any) -> None:
        """The true values, quantity by quantity."""
        worlds, at = self._sim.worlds, 0
        for size, part in zip(self.sizes, parts, strict=True):
            self._host[at : at + size] = np.reshape(np.asarray(part, float), (worlds, size)).T
            at += size


class IMU(Frame, Sensor):
    """Accelerometer and gyroscope in a frame. The acceleration is the change of the frame's velocity since the last reading, less
    gravity.

    Args:
        noise: a `Noise`, whose numbers may be two: m/s² and rad/s.
        bias, seed: where `noise` is two standard deviations (m/s², rad/s): the biases, (3,) or a number each, and the seed.
    """

    __slots__ = ("_between", "_clock", "_com", "_inertial", "_reading", "_replay", "_table")
    sizes, words = (3, 3), ("acceleration", "rate")

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        noise: Noise | tuple[float, float] | None = None, bias: tuple[Any, Any] = (0.0, 0.0), seed: int = 0,
        name: str | None = None,
    ) -> None:  # fmt: skip
        Frame.__init__(self, sim, where, position, rotation)
        who = f"IMU on {where!r}"
        given = noise if noise is None or isinstance(noise, Noise) else self._plain(noise, bias, seed, who)
        quiet = checked_noise(given, who)
        self._begin(sim, self._make(sim), self.sizes, quiet, name or f"imu {where}", who)

    def _make(self, sim: Owner) -> Any:
        """Its tables on the device; the array of its values."""
        device, made, body = sim.model.device, Inertial(), sim.model.body_names[self._body.name]
        load_modules([measure_inertia.module], device)
        self._com, self._between = np.array(sim.model.com[body]), 0.0
        made.body, made.arm, made.turn = body, vec3(*(self._point - self._com)), quat(*self._rotation)
        made.between, made.last = (wp.zeros(shape, dtype=real, device=device) for shape in (1, (3, sim.worlds)))
        made.rotation, made.velocity, made.spin = sim._state.rotation, sim._state.velocity, sim._state.spin
        made.gravity = sim.solver.settings.gravity
        made.value = wp.zeros((6, sim.worlds), dtype=real, device=device)
        self._inertial, self._table = made, alone(made, Inertial, device)
        table = self._table
        self._replay = Recorded(lambda: wp.launch(measure_inertia, dim=sim.worlds, inputs=[table], device=device), device)
        return made.value

    @staticmethod
    def _plain(noise: Any, bias: Any, seed: int, who: str) -> Noise:
        """Two standard deviations and two biases as a `Noise`."""
        sigma = as_numbers(noise)
        if sigma.shape != (2,) or not (np.isfinite(sigma) & (sigma >= 0)).all():
            raise SimulationError(f"{who}: noise is a Noise(…), or two standard deviations of at least 0, got {noise!r}")
        offsets = [as_numbers(part) for part in bias] if isinstance(bias, list | tuple | np.ndarray) else []
        if len(offsets) != 2 or any(o.shape not in ((), (3,)) for o in offsets):
            raise SimulationError(f"{who}: bias is two, each a number or three, got {bias!r}")
        return Noise(tuple(sigma), tuple(np.concatenate([np.broadcast_to(o, 3) for o in offsets])), seed=seed)

    def _measure(self, between: float) -> None:
        made, com = self._inertial, self._sim.model.com[self._inertial.body]
        if (com != self._com).any():  # the centre of mass was moved within the body
            self._com = np.array(com)
            made.arm = vec3(*(self._point - com))
            wp.copy(self._table, alone(made, Inertial, made.value.device))
        self._sim.state  # noqa: B018  velocities are those of the pose
        with LOCK:
            if between != self._between:
                self._between = between
                made.between.fill_(real(0.0 if math.isnan(between) else between))
            self._replay()

    def _memory(self) -> dict[str, Any]:
        return super()._memory() | {"last": self._inertial.last}

    @property
    def acceleration(self) -> Any:
        """(3,) m/s² in the frame's axes: what an accelerometer shows; at rest it points up."""
        return self._read(0)

    @property
    def rate(self) -> Any:
        """(3,) rad/s in the frame's axes."""
        return self._read(1)


class ForceTorque(HostSensor):
    """A force/torque sensor in a joint: what the parent does to the child in the last step, in the axes of a frame.

    Without noise it shows what there is whenever it is asked; with noise, what it read when it was updated.

    Args:
        joint: its name. frame: in whose axes; those of the joint's child if None. noise: its numbers may be two: N and N·m.
    """

    sizes, words = (3, 3), ("force", "torque")

    def __init__(
        self, sim: Owner, joint: str, frame: Frame | str | None = None, *, noise: Noise | None = None, name: str | None = None
    ) -> None:
        self._joint = sim.joint(joint)
        names = {i: n for n, i in sim.model.body_names.items()}
        if frame is None:
            frame = names[int(sim.model.children[sim.model.joint_names[joint]])]
        self._frame = Frame(sim, frame) if isinstance(frame, str) else frame
        self._live = noise is None and name is None
        who = f"ForceTorque in {joint!r}"
        self._start(sim, checked_noise(noise, who), name or f"force {joint}", who)

    def _measure(self, between: float) -> None:
        self._write(*(self._frame.into(part) for part in self._joint.reaction))

    @property
    def force(self) -> Any:
        """(3,) N."""
        return self._frame.into(self._joint.reaction[0]) if self._live and not self.faults else self._read(0)

    @property
    def torque(self) -> Any:
        """(3,) N·m, at the joint's anchor."""
        return self._frame.into(self._joint.reaction[1]) if self._live and not self.faults else self._read(1)


class Distance(HostSensor):
    """The distance between the origins of two frames, as of a draw wire or a beacon. What is in the way does not matter.

    Args:
        where, to: bodies or frames of the scene. position: in the first, m. noise: m.
    """

    sizes, words = (1,), ("distance",)

    def __init__(
        self, sim: Owner, where: str, to: str, position: Any = (0.0, 0.0, 0.0), *, noise: Noise | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._ends = Frame(sim, where, position), Frame(sim, to)
        who = f"Distance from {where!r} to {to!r}"
        self._start(sim, checked_noise(noise, who), name or f"distance {where} {to}", who)

    def _measure(self, between: float) -> None:
        self._write(distance(*self._ends))

    @property
    def distance(self) -> Any:
        """m."""
        return self._read(0)
