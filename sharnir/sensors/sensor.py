"""Sensors that are read now and then: when they are due, what they measured, how they fail. IMU, force and torque, distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from sharnir.core.misspellings import Checked
from sharnir.errors import Bound, SceneError, SimulationError, as_numbers
from sharnir.sensors.bank import Bank, Clock, Part, ProbePart
from sharnir.sensors.frames import Frame
from sharnir.sensors.kernels import PROBE_DISTANCE, PROBE_FORCE, PROBE_INERTIAL
from sharnir.sensors.noise import NO_NOISE, Noise, Reading

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
Vector = Sequence[float]


def checked_noise(noise: Any, who: str) -> Noise:
    """A `Noise`, or none at all."""
    if noise is not None and not isinstance(noise, Noise):
        raise SceneError(f"{who}: noise is a Noise(…) or None, got {noise!r}")
    return NO_NOISE if noise is None else noise


class Sensor(Checked, Bound):
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
    _bank: Bank
    _clock: Clock
    name: str

    def _begin(self, sim: Owner, bank: Bank | None, noise: Noise, name: str, part: Part) -> None:
        """Join the sensors that are read together; a sensor of its own is read at once."""
        self._sim, self.name = sim, name
        self._bank = Bank(sim) if bank is None else bank
        self._clock = self._bank.add(self, part, noise)
        if bank is None:
            self._bank.build()

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
        return self._clock.steps_left()

    def update(self) -> bool:
        """Read it if it is due, after a step; whether it was. Sensors of a scene that have its rate are read with it."""
        return self._bank.update([self._clock])

    # ---- failures and snapshots ----

    def fail(self, kind: str, size: Any = None) -> None:
        """Let it fail, from the next reading on: "frozen", "dropout" (NaN), "bias" or "noise", the last two by a size."""
        self._reading.fail(kind, size)
        self._bank.forget()

    def repair(self, kind: str) -> None:
        """Undo a failure."""
        self._reading.repair(kind)
        self._bank.restart(self)

    @property
    def faults(self) -> tuple[str, ...]:
        """How it fails now."""
        return tuple(self._reading.faults)

    def _memory(self) -> dict[str, Any]:
        """All arrays [row, world] or [world] on the device that change."""
        return self._reading.arrays() | self._bank.memory(self)

    def state(self) -> dict[str, np.ndarray]:
        """All that changes, as copies by name; worlds are the last axis of all but the clock."""
        return {n: a.numpy().copy() for n, a in self._memory().items()} | {"clock": self._clock.state()}

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
            self._clock.put_back(state["clock"])

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


class IMU(Frame, Sensor):
    """Accelerometer and gyroscope in a frame. The acceleration is the change of the frame's velocity since the last reading, less
    gravity.

    Args:
        noise: a `Noise`, whose numbers may be two: m/s² and rad/s.
        bias, seed: where `noise` is two standard deviations (m/s², rad/s): the biases, (3,) or a number each, and the seed.
    """

    sizes, words = (3, 3), ("acceleration", "rate")

    def __init__(
        self, sim: Owner, where: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = (0.0, 0.0, 0.0, 1.0), *,
        noise: Noise | tuple[float, float] | None = None, bias: tuple[Any, Any] = (0.0, 0.0), seed: int = 0,
        name: str | None = None, bank: Bank | None = None,
    ) -> None:  # fmt: skip
        Frame.__init__(self, sim, where, position, rotation)
        who = f"IMU on {where!r}"
        given = noise if noise is None or isinstance(noise, Noise) else self._plain(noise, bias, seed, who)
        part = Part(self.sizes, who, probe=ProbePart(PROBE_INERTIAL, self))
        self._begin(sim, bank, checked_noise(given, who), name or f"imu {where}", part)

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

    @property
    def acceleration(self) -> Any:
        """(3,) m/s² in the frame's axes: what an accelerometer shows; at rest it points up."""
        return self._read(0)

    @property
    def rate(self) -> Any:
        """(3,) rad/s in the frame's axes."""
        return self._read(1)


class ForceTorque(Sensor):
    """A force/torque sensor in a joint: what the parent does to the child in the last step, in the axes of a frame.

    Without noise it shows what there is whenever it is asked; with noise, what it read when it was updated.

    Args:
        joint: its name. frame: in whose axes; those of the joint's child if None. noise: its numbers may be two: N and N·m.
    """

    sizes, words = (3, 3), ("force", "torque")

    def __init__(
        self, sim: Owner, joint: str, frame: Frame | str | None = None, *, noise: Noise | None = None, name: str | None = None,
        bank: Bank | None = None,
    ) -> None:  # fmt: skip
        sim.joint(joint)
        index = sim.model.joint_names[joint]
        if frame is None:
            frame = {i: n for n, i in sim.model.body_names.items()}[int(sim.model.children[index])]
        axes = Frame(sim, frame) if isinstance(frame, str) else frame
        self._live = noise is None and name is None
        who = f"ForceTorque in {joint!r}"
        part = Part(self.sizes, who, probe=ProbePart(PROBE_FORCE, axes, index))
        self._begin(sim, bank, checked_noise(noise, who), name or f"force {joint}", part)

    def _now(self, quantity: int) -> Any:
        if self._live and not self.faults:
            self._bank.read([self._clock])
        return self._read(quantity)

    @property
    def force(self) -> Any:
        """(3,) N."""
        return self._now(0)

    @property
    def torque(self) -> Any:
        """(3,) N·m, at the joint's anchor."""
        return self._now(1)


class Distance(Sensor):
    """The distance between the origins of two frames, as of a draw wire or a beacon. What is in the way does not matter.

    Args:
        where, to: bodies or frames of the scene. position: in the first, m. noise: m.
    """

    sizes, words = (1,), ("distance",)

    def __init__(
        self, sim: Owner, where: str, to: str, position: Any = (0.0, 0.0, 0.0), *, noise: Noise | None = None,
        name: str | None = None, bank: Bank | None = None,
    ) -> None:  # fmt: skip
        who = f"Distance from {where!r} to {to!r}"
        part = Part(self.sizes, who, probe=ProbePart(PROBE_DISTANCE, Frame(sim, where, position), to=Frame(sim, to)))
        self._begin(sim, bank, checked_noise(noise, who), name or f"distance {where} {to}", part)

    @property
    def distance(self) -> Any:
        """m."""
        return self._read(0)
