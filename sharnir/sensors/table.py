"""Sensors of a scene: options of `scene.add_sensor`, and all sensors of a running simulation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from sharnir.errors import SceneError, named
from sharnir.sensors.bank import Bank
from sharnir.sensors.fans import DepthCamera, Lidar, bits, ignored
from sharnir.sensors.frames import Frame
from sharnir.sensors.noise import Noise
from sharnir.sensors.sensor import IMU, Distance, ForceTorque, Sensor, checked_noise

# The Simulation and the Scene; they stand floors above, so that they are not named here.
Owner = Any
Kind = Literal["imu", "force", "distance", "lidar", "depth"]
SENSOR_KINDS: dict[str, Any] = {
    "imu": IMU, "force": ForceTorque, "distance": Distance, "lidar": Lidar, "depth": DepthCamera,
}  # fmt: skip
"""Kinds of sensors."""
NEVER_DUE = 1 << 62  # steps


class SensorOptions(TypedDict, total=False):
    """What a kind of sensor takes besides its place; see the class of that kind."""

    position: Sequence[float]
    rotation: Sequence[float]
    noise: Noise | None
    to: str
    frame: str
    count: int
    field: float
    elevations: Sequence[float]
    reach: Sequence[float]
    ignore: Sequence[str]
    groups: int
    width: int
    height: int


@dataclass
class SensorDescription:
    """A sensor as described: its kind, the body, frame or joint it is at, and arguments of its class."""

    kind: str
    on: str
    options: dict[str, Any]


def add_sensor(scene: Owner, name: str, kind: Kind, on: str, **options: Unpack[SensorOptions]) -> str:
    """Put a sensor into the scene; `sim.sensor(name)` reads it, and the simulation updates it. Returns its name.

    Args:
        kind: "imu", "force", "distance", "lidar" or "depth": `IMU`, `ForceTorque`, … of `sharnir.sensors`.
        on: the body or frame it is fixed to; of "force" the joint.
        position, rotation: in there, m and a unit quaternion (x, y, z, w).
        noise: how it errs and how often it is read, a `Noise`.
        to, frame, count, field, elevations, reach, ignore, groups, width, height: as the class of that kind takes them.
    """
    who = f"sensor {name!r}"
    scene._new_name(name, "sensors")
    if not isinstance(kind, str) or kind not in SENSOR_KINDS:
        raise SceneError(f"{who}: kind is one of {', '.join(map(repr, SENSOR_KINDS))}, got {kind!r}")
    taken = [p for p in inspect.signature(SENSOR_KINDS[kind].__init__).parameters if p in SensorOptions.__annotations__]
    for key, value in options.items():
        if key not in taken:
            raise SceneError(f"{who}: a sensor of kind {kind!r} takes no {key!r} (got {value!r}); allowed: {', '.join(taken)}")
    places = {**scene.bodies, **scene.frames}
    _known(who, "on", on, scene.joints if kind == "force" else places, "joint" if kind == "force" else "body or frame")
    for key in ("to", "frame"):
        if key in options:
            _known(who, key, options[key], places, "body or frame")  # type: ignore[literal-required]
    if kind == "distance" and "to" not in options:
        raise SceneError(f"{who}: a distance needs to=, a body or frame; available: {', '.join(map(repr, places))}")
    for other in ignored(options.get("ignore", ()), who):
        _known(who, "ignore", other, {**scene.bodies, **scene.ropes}, "body or rope")
    _check(who, kind, dict(options))
    scene.sensors[name] = SensorDescription(kind, on, {k: v for k, v in options.items() if v is not None})
    return name


def _known(who: str, what: str, name: Any, known: Mapping[str, Any], kind: str) -> None:
    if not isinstance(name, str) or name not in known:
        raise SceneError(
            f"{who}: {what} {name!r} is not a {kind} of the scene; available: {', '.join(map(repr, known)) or 'none'}"
        )


def _check(who: str, kind: str, options: dict[str, Any]) -> None:
    """Refuse numbers that no such sensor has, before there is a simulation."""
    Frame.place(who, options.get("position", (0.0, 0.0, 0.0)), options.get("rotation", (0.0, 0.0, 0.0, 1.0)), SceneError)
    noise = checked_noise(options.get("noise"), who)
    bits(options.get("groups", 1), who)
    describe = getattr(SENSOR_KINDS[kind], "describe", None)
    sizes: Sequence[int] = SENSOR_KINDS[kind].sizes or (1 << 20,)
    if describe is not None:
        describe(who, **{k: v for k, v in options.items() if k in inspect.signature(describe).parameters})
    for word in ("sigma", "bias", "walk", "step", "low", "high"):
        noise.of(word, sizes, who)


class Sensors(Mapping[str, Sensor]):
    """The sensors of a simulation by name. Called after steps, it reads those that are due."""

    def __init__(self, sim: Owner, described: dict[str, SensorDescription]) -> None:
        self._sim, self._dt = sim, 0.0
        self.left = 1
        """Steps until one of them is to be read."""
        self._bank = Bank(sim)
        self._all: dict[str, Sensor] = {
            name: SENSOR_KINDS[given.kind](sim, given.on, **given.options, name=name, bank=self._bank)
            for name, given in described.items()
        }
        self._bank.build()
        self._each_step = any(clock.rate is None for clock in self._bank.clocks)
        self.some = bool(self._all)
        """Whether there are any."""
        self._look_ahead()

    def __getitem__(self, name: str) -> Sensor:
        return named(self._all, name, "sensor")

    def __iter__(self) -> Any:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _look_ahead(self) -> None:
        self._dt = self._sim.solver._dt
        self.left = 1 if self._each_step else min([clock.steps_left() for clock in self._bank.clocks], default=NEVER_DUE)

    def made(self, steps: int) -> None:
        """Steps were made."""
        self.left -= steps
        if self.left <= 0 or self._sim.solver._dt != self._dt:
            self._bank.update(self._bank.clocks)
            self._look_ahead()

    def begin_among(self, first: int) -> bool:
        """At the start: its worlds are those from a number on of many, which simulations share. Whether there are any sensors."""
        for sensor in self._all.values():
            sensor._reading.begin_among(first)
        if self._all:
            self._bank.read_first()
        return bool(self._all)

    def shown(self, most: int = 64) -> dict[str, Any]:
        """What those with few values read last, as lists by "name.word", for a file of JSON: null for what is not finite."""
        out: dict[str, Any] = {}
        for name, sensor in self._all.items():
            for word in sensor.words:
                values = np.ravel(getattr(sensor, word)) if sensor.size <= most else None
                if values is not None:
                    out[f"{name}.{word}"] = [float(v) if np.isfinite(v) else None for v in values]
        return out

    def state(self) -> dict[str, np.ndarray]:
        """All that changes of them, for a snapshot."""
        return {f"sensor.{name}.{key}": a for name, sensor in self._all.items() for key, a in sensor.state().items()}

    def put_back(self, snapshot: Mapping[str, np.ndarray], worlds: Any = None) -> None:
        """Continue from a snapshot, in all worlds or in some."""
        for name, sensor in self._all.items():
            head = f"sensor.{name}."
            sensor.put_back({key[len(head) :]: np.asarray(a) for key, a in snapshot.items() if key.startswith(head)}, worlds)
        self.left = 1 if self._all else NEVER_DUE


class Sensing:
    """The part of a Simulation that is about sensors."""

    __slots__ = ()
    _sensors: Sensors

    def frame(self, name: str) -> Frame:
        """The frame of that name (`scene.add_frame`), or a body's own."""
        return Frame(self, name)

    def sensor(self, name: str) -> Any:
        """The sensor of that name (`scene.add_sensor`), which steps keep up to date."""
        return named(self._sensors, name, "sensor")
