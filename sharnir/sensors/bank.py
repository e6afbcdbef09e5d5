"""Sensors that are read together: one recorded launch measures all that are due and applies their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.collider import Collider
from sharnir.collision.trace import Fan, Sight
from sharnir.core.graphs import LOCK, record, replayer
from sharnir.core.types import alone, load_modules, quat, real, vec3
from sharnir.sensors.frames import Frame
from sharnir.sensors.kernels import PROBE_INERTIAL, Probe, ProbeData, measure_probes
from sharnir.sensors.noise import Noise, Reading, noise_launcher

# The Simulation and its sensors; they stand floors above, so that they are not named here.
Owner = Any
RECORDED_SETS = 32
"""Sets of sensors that are due together for which a launch is kept."""
ALL_CLOCKS = (-1,)
"""Stands for all clocks of a bank."""


@dataclass
class ProbePart:
    """A sensor that measures bodies or joints (`kernels.Probe`): its kind, its frame, and a joint or a second frame."""

    kind: Any
    frame: Frame
    joint: int = -1
    to: Frame | None = None


@dataclass
class Part:
    """What a bank needs of a sensor: numbers of each quantity, its name in messages, and either a probe or rays."""

    sizes: tuple[int, ...]
    who: str
    within: tuple[float, float] = (-math.inf, math.inf)
    probe: ProbePart | None = None
    fan: Fan | None = None
    frame: Frame | None = None  # of the rays


class Clock:
    """When sensors of one rate are read. Times are simulated, s."""

    __slots__ = ("_sim", "between", "count", "index", "last", "members", "rate", "start")

    def __init__(self, sim: Owner, rate: float | None, index: int) -> None:
        self._sim, self.rate, self.index = sim, rate, index
        self.members: list[Any] = []
        self.start = self.last = float(sim.time)
        self.count = 1.0  # readings that were due since `start`
        self.between = (math.nan, math.nan)  # s, as last written to the device

    def steps_left(self) -> int:
        """Steps until the next reading, at least 1."""
        if self.rate is None:
            return 1
        left = self.start + self.count / self.rate - float(self._sim.time)
        return max(1, math.ceil(left / float(self._sim.dt) - 1e-6))

    def tick(self, now: float, dt: float) -> tuple[float, float] | None:
        """If a reading is due: the seconds since the last one, 0 if there was none, and between samples of noise; else None."""
        last = self.last
        if now < last:  # time was put back
            self.start = self.last = last = now
            self.count = 0.0
        elif now == last:
            return None
        if self.rate is not None:
            if now < self.start + self.count / self.rate - 1e-6 * dt:
                return None
            self.count = max(self.count, math.floor((now - self.start) * self.rate + 1e-6))
        self.count, self.last = self.count + 1.0, now
        between = (round((now - last) / dt) or 1) * dt  # to the bit the same whenever it began
        return between if now > last else 0.0, between

    def state(self) -> np.ndarray:
        """(3,) its start, its count and its last reading."""
        return np.array([self.start, self.count, self.last])

    def put_back(self, state: np.ndarray) -> None:
        """Continue from what `state` returned."""
        self.start, self.count, self.last = (float(x) for x in state)


class Bank:
    """Sensors of a simulation, their clocks and their tables on the device."""

    def __init__(self, sim: Owner) -> None:
        self._sim, self._device = sim, sim.model.device
        self.clocks: list[Clock] = []
        self._parts: list[tuple[Any, Part, Noise]] = []
        self._probes: list[tuple[Any, ProbePart]] = []
        self._fans: dict[int, tuple[Fan, Frame]] = {}  # by id of the sensor
        self._memory: dict[int, Any] = {}  # of IMUs, by id: [3, world] m/s
        self._index: dict[int, int] = {}  # of a sensor among the probes, by id
        self._sight: Sight | None = None
        self._recorded: dict[tuple[int, ...], Callable[[], object]] = {}
        self._version, self._com = sim._versions[1], np.array(sim.model.com)

    def add(self, sensor: Any, part: Part, noise: Noise) -> Clock:
        """Take a sensor in, before `build`; the clock by which it is read."""
        clock = next((c for c in self.clocks if c.rate == noise.rate), None)
        if clock is None:
            clock = Clock(self._sim, noise.rate, len(self.clocks))
            self.clocks.append(clock)
        clock.members.append(sensor)
        self._parts.append((sensor, part, noise))
        return clock

    def sight(self, who: str) -> Sight:
        """What rays see: the shapes that collide, also if the scene has no contact and only its sensors look at them."""
        sim = self._sim
        if self._sight is None:
            if sim.solver.collider is None and sim.model.visible is not None:
                collider = Collider(replace(sim.model, collision=sim.model.visible), sim.dt)
                collider.bind(sim.state)
                self._sight = Sight(collider)
            else:
                self._sight = Sight(sim._touch(who).queries.collider)
        return self._sight

    # ---- tables ----

    def build(self) -> None:
        """Make the tables and take the first reading of all sensors."""
        sim, device, worlds = self._sim, self._device, self._sim.worlds
        if not self._parts:
            return
        load_modules([measure_probes.module], device)
        self._probes = [(sensor, part.probe) for sensor, part, _ in self._parts if part.probe is not None]
        self._index = {id(sensor): k for k, (sensor, _) in enumerate(self._probes)}
        sizes = [sum(part.sizes) for _, part, _ in self._parts if part.probe is not None]
        self._rows = np.cumsum([0, *sizes])
        inertial = np.cumsum([0, *(3 * (probe.kind == PROBE_INERTIAL) for _, probe in self._probes)])
        self._memory_rows = inertial
        data, state = ProbeData(), sim.state
        data.position, data.rotation, data.velocity = state.position, state.rotation, state.velocity
        data.angular_velocity, data.joint_force, data.joint_torque = state.spin, state.joint_force, state.joint_torque
        data.gravity, data.dt = sim.solver.settings.gravity, sim.solver.settings.dt
        data.between, self._interval = (wp.zeros(len(self.clocks), dtype=real, device=device) for _ in range(2))
        data.velocity_then = wp.zeros((int(inertial[-1]), worlds), dtype=real, device=device)
        data.value = wp.zeros((int(self._rows[-1]), worlds), dtype=real, device=device)
        self._data, self._data_array = data, alone(data, ProbeData, device)
        self._host = [a.numpy() if a.device.is_cpu else None for a in (data.between, self._interval)]
        for sensor, part, noise in self._parts:
            c = sensor._clock.index
            if part.fan is not None and part.frame is not None:
                self._fans[id(sensor)] = part.fan, part.frame
                value = part.fan.value
            else:
                k = self._index[id(sensor)]
                value = data.value[int(self._rows[k]) : int(self._rows[k + 1])]
                if inertial[k + 1] > inertial[k]:
                    self._memory[id(sensor)] = data.velocity_then[int(inertial[k]) : int(inertial[k + 1])]
            sensor._reading = Reading(value, part.sizes, noise, sensor.name, part.who, part.within, self._interval[c : c + 1])
        self._probe_array = wp.empty(len(self._probes), dtype=Probe, device=device)
        self._place()
        self.read_first()

    def _place(self) -> None:
        """Write the probes' table; their points count from centres of mass."""
        body_names, com = self._sim.model.body_names, self._com
        for k, (sensor, probe) in enumerate(self._probes):
            p, frame = Probe(), probe.frame
            p.kind, p.body = int(probe.kind), body_names[frame._body.name]
            p.point, p.rotation, p.other = vec3(*(frame._point - com[p.body])), quat(*frame._rotation), probe.joint
            if probe.to is not None:
                p.other = body_names[probe.to._body.name]
                p.other_point = vec3(*(probe.to._point - com[p.other]))
            p.row, p.memory, p.clock = int(self._rows[k]), int(self._memory_rows[k]), sensor._clock.index
            wp.copy(self._probe_array, alone(p, Probe, self._device), dest_offset=k, count=1)

    def _follow_masses(self) -> None:
        """Sensors stay where they are on their bodies when a centre of mass is moved."""
        self._version, com = self._sim._versions[1], self._sim.model.com
        if np.array_equal(com, self._com):
            return
        self._com = np.array(com)
        self._place()
        for fan, frame in self._fans.values():
            fan.move(frame._point - com[self._sim.model.body_names[frame._body.name]])

    def memory(self, sensor: Any) -> dict[str, Any]:
        """Arrays [row, world] of a sensor that change, besides those of its reading."""
        found = self._memory.get(id(sensor))
        return {} if found is None else {"last": found}

    # ---- readings ----

    def update(self, clocks: Sequence[Clock]) -> bool:
        """Read the sensors of these clocks that are due, after a step; whether any were."""
        sim = self._sim
        now, dt = sim.time, sim.solver._dt
        due = []
        for clock in clocks:
            times = clock.tick(now, dt)
            if times is not None:
                due.append(clock)
                if times != clock.between:
                    self._set_times(clock, times)
        if due:
            self.read(clocks if len(due) == len(clocks) else due)
        return bool(due)

    def read_first(self) -> None:
        """Read all sensors as at the start."""
        for clock in self.clocks:
            self._set_times(clock, (0.0, float(self._sim.dt)))
        self.read(self.clocks)

    def _set_times(self, clock: Clock, times: tuple[float, float]) -> None:
        clock.between, i = times, clock.index
        for array, host, value in zip((self._data.between, self._interval), self._host, times, strict=True):
            if host is not None:
                host[i] = value
            else:
                array[i : i + 1].fill_(real(value))

    def read(self, clocks: Sequence[Clock]) -> None:
        """Measure with the sensors of these clocks now."""
        sim = self._sim
        if sim._versions[1] != self._version:
            self._follow_masses()
        sim.state  # noqa: B018  velocities and reactions become those of the pose
        key = ALL_CLOCKS if clocks is self.clocks else tuple([clock.index for clock in clocks])
        with LOCK:
            read = self._recorded.get(key)
            if read is None:
                if len(self._recorded) >= RECORDED_SETS:
                    self._recorded.clear()
                read = self._recorded[key] = self._record(clocks)
            read()

    def _record(self, clocks: Sequence[Clock]) -> Callable[[], object]:
        """A function that reads the sensors of some clocks, but for those that are frozen."""
        device, worlds, pool = self._device, self._sim.worlds, self._sim.solver._pool
        members = [sensor for clock in clocks for sensor in clock.members if not sensor._reading.frozen]
        fans = [self._fans[id(sensor)][0] for sensor in members if id(sensor) in self._fans]
        rows = [self._index[id(sensor)] for sensor in members if id(sensor) in self._index]
        which = wp.array(np.array(rows, np.int32), dtype=wp.int32, device=device)
        noise = noise_launcher([sensor._reading for sensor in members], worlds, device)

        def launch() -> None:
            if rows:
                inputs = [self._probe_array, which, self._data_array]
                wp.launch(measure_probes, dim=(len(rows), worlds), inputs=inputs, device=device)
            for fan in fans if pool is None else ():
                fan.launch(0, worlds)
            noise()

        if not members:
            return lambda: None
        replay = replayer(record(launch, device))

        def read() -> None:
            for fan in fans if pool is not None else ():  # its threads share the worlds
                fan.look()
            replay()

        read.owns = launch  # type: ignore[attr-defined]  # the arrays that were recorded
        return read

    def forget(self) -> None:
        """Record launches again: which sensors are read, or their noise, has changed."""
        self._recorded.clear()

    def restart(self, sensor: Any) -> None:
        """A sensor was repaired: an IMU that stood still has no velocity to compare with."""
        self.forget()
        if id(sensor) in self._memory:
            self._memory[id(sensor)].fill_(real(math.nan))
