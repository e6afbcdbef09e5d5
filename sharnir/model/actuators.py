"""What acts on a free axis of a joint: limits, friction, spring and damper, drives. One description for every joint type.

On the axes of one joint, p is the impulse of a step and u the speed at its end, A the response of u to p with the joint held
closed. Each action is a law between p and u (or a bound on u):

    spring, damper     p = −Δt k (q + Δt u − rest) − Δt c u                         implicit: any stiffness is stable
    servo              p = Δt (torque + kp (target − q − Δt u) + kd (speed − u)),   |p| ≤ Δt max_force
    DC motor           p = Δt N η k_t · mean current,  L di/dt = V − R i − k_t N u;   rotor p = −J N² (u − u_start)
    other drives       a torque, a slope over the speed and a bound, from a table (`laws.drives`)
    friction           |p| ≤ p_max where u = 0,   p = −p_max u/|u| where not         (the vector over a group of axes)
    limit              u ≥ −(q − lower)/Δt,  p ≥ 0, one of them an equality; likewise above

Linear laws are p = −a u − b, added up over all that act on the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from sharnir.core.misspellings import Checked
from sharnir.errors import SceneError, as_numbers, is_positive, number

INF = math.inf


@dataclass(frozen=True)
class Friction(Checked):
    """Dry and viscous friction of a joint's free axes; bounds are on the force (N) or torque (N·m) vector itself.

    Args:
        static: bound while the joint is stuck.
        dynamic: bound while it slips; `static` if None.
        load: added to both bounds per newton of the joint's constraint force in the last step (1, or m for a torque: μ·r).
        viscous: N·s/m or N·m·s.
        stribeck: speed (m/s, rad/s) over which the bound falls from static to dynamic: exp(−(|u|/stribeck)²).
    """

    static: float = 0.0
    dynamic: float | None = None
    load: float = 0.0
    viscous: float = 0.0
    stribeck: float | None = None

    def __post_init__(self) -> None:
        for what in ("static", "load", "viscous"):
            number("Friction", what, getattr(self, what), least=0.0)
        if self.dynamic is not None:
            number("Friction", "dynamic", self.dynamic, least=0.0)
            if self.dynamic > self.static:
                raise SceneError(f"Friction: dynamic is at most static ({self.static:g}), got {self.dynamic:g}")
        if self.stribeck is not None and not is_positive(self.stribeck):
            raise SceneError(f"Friction: stribeck is a positive finite speed, got {self.stribeck!r}")

    @classmethod
    def of(cls, value: Any, who: str) -> Friction:
        """A Friction, or a number that means its static bound."""
        if isinstance(value, Friction):
            return value
        return cls(static=number(who, "friction", value, least=0.0))


@dataclass(frozen=True)
class Limit(Checked):
    """Range of a coordinate, m or rad; either end may be infinite. `restitution` 0 to 1: the part of the speed that bounces."""

    lower: float = -INF
    upper: float = INF
    restitution: float = 0.0

    def __post_init__(self) -> None:
        for what, wrong in (("lower", INF), ("upper", -INF)):
            value = getattr(self, what)
            if not isinstance(value, Real) or math.isnan(value) or value == wrong:
                raise SceneError(f"Limit: {what} is a number, or {-wrong} for none, got {value!r}")
        if not self.lower <= self.upper:
            raise SceneError(f"Limit: lower is at most upper, got ({self.lower:g}, {self.upper:g})")
        number("Limit", "restitution", self.restitution, least=0.0, most=1.0)

    @classmethod
    def of(cls, value: Any, who: str) -> Limit:
        """A Limit, or a pair (lower, upper)."""
        if isinstance(value, Limit):
            return value
        try:
            lower, upper = (float(v) for v in value)
        except (TypeError, ValueError):
            raise SceneError(f"{who}: a limit is (lower, upper), got {value!r}") from None
        try:
            return cls(lower, upper)
        except SceneError as error:
            raise SceneError(f"{who}: {error}") from None


NO_LIMIT = Limit()


@dataclass(frozen=True)
class Cardan(Checked):
    """Limits of a ball joint on the three angles of R = R(x) R(y) R(z); each (lower, upper) in rad, or None.

    The outer angles reach up to ±180°, the middle one up to ±85°.
    """

    x: Any = None
    y: Any = None
    z: Any = None
    ranges: tuple[Limit, Limit, Limit] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ranges = []
        for name, most in (("x", math.pi), ("y", math.radians(85.0)), ("z", math.pi)):
            value = getattr(self, name)
            limit = NO_LIMIT if value is None else Limit.of(value, f"Cardan {name}")
            for end in (limit.lower, limit.upper):
                if math.isfinite(end) and abs(end) > most + 1e-12:
                    raise SceneError(f"Cardan: {name} is within ±{math.degrees(most):.0f}°, got {math.degrees(end):.4g}°")
            ranges.append(limit)
        object.__setattr__(self, "ranges", tuple(ranges))


@dataclass(frozen=True)
class SwingTwist(Checked):
    """Limits of a ball joint on its swing, an elliptic cone about z, and on its twist about z.

    Args:
        swing: half-angles (about x, about y) of the cone, rad, each up to 175°; a number for a round cone.
        twist: (lower, upper) rad, within ±180°, or None.
    """

    swing: Any = None
    twist: Any = None
    cone: tuple[float, float] = field(init=False, repr=False)
    range: Limit = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cone = (INF, INF)
        if self.swing is not None:
            pair = self.swing if isinstance(self.swing, tuple | list) else (self.swing, self.swing)
            if len(pair) != 2:
                raise SceneError(f"SwingTwist: swing is a half-angle or two of them, got {self.swing!r}")
            for angle in pair:
                if not is_positive(angle) or angle > math.radians(175.0) + 1e-12:
                    raise SceneError(f"SwingTwist: a swing is above 0 and at most 175°, got {angle!r} rad")
            cone = (float(pair[0]), float(pair[1]))
            if max(cone) > math.radians(120.0) and max(cone) > 5 * min(cone):
                raise SceneError(
                    f"SwingTwist: a swing beyond 120° is at most 5 times the other, got {pair[0]!r} and {pair[1]!r} rad"
                )
        elif self.twist is None:
            raise SceneError("SwingTwist: give swing=, twist= or both")
        twist = NO_LIMIT if self.twist is None else Limit.of(self.twist, "SwingTwist twist")
        for end in (twist.lower, twist.upper):
            if math.isfinite(end) and abs(end) > math.pi + 1e-12:
                raise SceneError(f"SwingTwist: twist is within ±180°, got {math.degrees(end):.4g}°")
        object.__setattr__(self, "cone", cone)
        object.__setattr__(self, "range", twist)


@dataclass(frozen=True)
class Servo(Checked):
    """A drive that pulls an axis towards a position and a speed: torque + kp (position − q) + kd (velocity − u), implicit.

    Args:
        position, velocity, torque: targets: m or rad, m/s or rad/s, N or N·m; what is not given is 0 (a position only if kp > 0).
        kp, kd: N/m or N·m/rad, N·s/m or N·m·s.
        max_force: bound on the drive's force or torque, N or N·m.
        armature: inertia of its rotor as seen at the joint, kg or kg·m² (gear ratio² × rotor inertia); it resists only the
            motion of the joint.
    """

    position: float = 0.0
    velocity: float = 0.0
    torque: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    max_force: float = INF
    armature: float = 0.0

    def __post_init__(self) -> None:
        for what in ("position", "velocity", "torque"):
            number("Servo", what, getattr(self, what))
        for what in ("kp", "kd", "armature"):
            number("Servo", what, getattr(self, what), least=0.0)
        number("Servo", "max_force", self.max_force, least=0.0, endless=True)
        if self.velocity != 0 and self.kd == 0:
            raise SceneError("Servo: a velocity target needs kd above 0, got kd = 0")
        if self.position != 0 and self.kp == 0:
            raise SceneError("Servo: a position target needs kp above 0, got kp = 0")


@dataclass(frozen=True)
class Battery(Checked):
    """A battery that feeds motors (all those that were given this one): its voltage sags with their currents, E − R Σ i.

    Args:
        voltage: V, without load. resistance: Ω, its own. capacity: A·s; when it is used up there is no voltage left.
    """

    voltage: float
    resistance: float = 0.0
    capacity: float = INF
    name: str = "battery"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise SceneError(f"Battery: name is a string, got {self.name!r}")
        if not is_positive(self.voltage):
            raise SceneError(f"Battery {self.name!r}: voltage is a positive finite number of V, got {self.voltage!r}")
        number(f"Battery {self.name!r}", "resistance", self.resistance, least=0.0)
        number(f"Battery {self.name!r}", "capacity", self.capacity, least=0.0, endless=True)


@dataclass(frozen=True)
class DCMotor(Checked):
    """A permanent-magnet motor behind a gear; its current is a state, its rotor's inertia acts, it can be driven backwards.

    Args:
        voltage: V.
        resistance: Ω. inductance: H (0: the current follows at once).
        torque_constant: N·m/A, and V·s of the back-EMF.
        gear_ratio: motor turns per turn (or radians per metre) of the joint.
        efficiency: of the gear, 0 to 1; when the joint drives the motor, the gear loses the other way round.
        rotor_inertia: kg·m². no_load_friction: dry friction at the rotor, N·m.
        battery: what feeds it: then its voltage is `command`, from −1 to 1, of the battery's, and `voltage` is not given.
    """

    voltage: float = 0.0
    resistance: float = 1.0
    inductance: float = 0.0
    torque_constant: float = 0.05
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    rotor_inertia: float = 0.0
    no_load_friction: float = 0.0
    battery: Battery | None = None
    command: float = 0.0

    def __post_init__(self) -> None:
        number("DCMotor", "voltage", self.voltage)
        for what in ("resistance", "torque_constant"):
            if not is_positive(getattr(self, what)):
                raise SceneError(f"DCMotor: {what} is a positive finite number, got {getattr(self, what)!r}")
        for what in ("inductance", "rotor_inertia", "no_load_friction"):
            number("DCMotor", what, getattr(self, what), least=0.0)
        if not (number("DCMotor", "gear_ratio", self.gear_ratio) != 0):
            raise SceneError("DCMotor: gear_ratio is a finite number other than 0, got 0")
        if not (is_positive(self.efficiency) and self.efficiency <= 1):
            raise SceneError(f"DCMotor: efficiency is above 0 and at most 1, got {self.efficiency!r}")
        number("DCMotor", "command", self.command, least=-1.0, most=1.0)
        _fed("DCMotor", self.battery)
        if self.battery is not None and self.voltage != 0:
            raise SceneError(f"DCMotor: on a battery its voltage follows from command=, got voltage = {self.voltage!r}")


def _curve(who: str, what: str, points: Any) -> tuple[list[float], list[float]]:
    """Rising speeds and a value at each."""
    table = as_numbers(points)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < 2 or not np.all(np.isfinite(table)):
        raise SceneError(f"{who}: {what} is at least two pairs (speed, torque) of finite numbers, got {points!r}")
    if np.any(np.diff(table[:, 0]) <= 0) or table[0, 0] < 0:
        raise SceneError(f"{who}: speeds of the {what} rise from 0 or more, got {table[:, 0].tolist()}")
    if np.any(table[:, 1] < 0):
        raise SceneError(f"{who}: torques of the {what} are at least 0, got {table[:, 1].min():g}")
    return table[:, 0].tolist(), table[:, 1].tolist()


def _fed(who: str, battery: Any) -> None:
    if battery is not None and not isinstance(battery, Battery):
        raise SceneError(f"{who}: battery is a Battery(voltage=…) or None, got {battery!r}")


def _above(who: str, drive: Any, *names: str) -> None:
    for name in names:
        if not is_positive(getattr(drive, name)):
            raise SceneError(f"{who}: {name} is a positive finite number, got {getattr(drive, name)!r}")


@dataclass(frozen=True)
class Motor(Checked):
    """A motor by its curve of torque over speed: `command` of it, from −1 to 1, forth and back, driving and braking.

    Args:
        curve: pairs (speed rad/s, most torque N·m) at the rotor, of rising speed; held beyond its ends.
        command: −1 to 1.
        gear_ratio: rotor turns per turn (or radians per metre) of the joint. efficiency: of the gear, 0 to 1.
        losses: an efficiency map (speeds, torques, values), values (speeds, torques) above 0 and at most 1: what it takes from
            `battery`, or reads as `drive.power`, is torque · speed over its value there; braking gives back so much of it.
        battery: what feeds it; the curve is for nominal_voltage, and its speeds go with the voltage.
        nominal_voltage: V; that of the battery without load if None.
    """

    curve: Any = ((0.0, 1.0), (100.0, 0.0))
    command: float = 0.0
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    losses: Any = None
    battery: Battery | None = None
    nominal_voltage: float | None = None

    kind: ClassVar[str] = "motor"
    numbers: ClassVar[tuple[str, ...]] = ("gear_ratio", "efficiency")  # that may be varied, the first of its columns
    words: ClassVar[tuple[str, ...]] = ("command",)
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-1.0, 1.0),)

    def __post_init__(self) -> None:
        _curve("Motor", "curve", self.curve)
        number("Motor", "command", self.command, least=-1.0, most=1.0)
        if not number("Motor", "gear_ratio", self.gear_ratio) != 0:
            raise SceneError("Motor: gear_ratio is a finite number other than 0, got 0")
        if not (is_positive(self.efficiency) and self.efficiency <= 1):
            raise SceneError(f"Motor: efficiency is above 0 and at most 1, got {self.efficiency!r}")
        if self.nominal_voltage is not None:
            _above("Motor", self, "nominal_voltage")
        _fed("Motor", self.battery)
        self._map()

    def _map(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        if self.losses is None:
            return None
        try:
            speeds, torques, values = (as_numbers(x) for x in self.losses)
        except (TypeError, ValueError):
            raise SceneError(f"Motor: losses are (speeds, torques, values), got {self.losses!r}") from None
        if min(speeds.size, torques.size) < 2 or values.shape != (speeds.size, torques.size):
            raise SceneError(f"Motor: values of losses are (speeds, torques), at least 2 × 2, got shape {values.shape}")
        if not (np.all(values > 0) and np.all(values <= 1)):
            raise SceneError(f"Motor: values of losses are above 0 and at most 1, got {values.min():g} to {values.max():g}")
        return speeds, torques, values

    def columns(self, put: Callable[..., int], limit: Limit) -> list[float]:
        """Its numbers; see `laws.drives`."""
        speeds, torques = _curve("Motor", "curve", self.curve)
        nominal = self.nominal_voltage or (self.battery.voltage if self.battery else 1.0)
        out = [self.gear_ratio, self.efficiency, put(speeds, torques), len(speeds), nominal, 0, 0, 0]
        grid = self._map()
        if grid is not None:
            out[5:] = [put(*(x.ravel() for x in grid)), grid[0].size, grid[1].size]
        return out


@dataclass(frozen=True)
class Engine(Checked):
    """A combustion engine with clutch and gearbox; its crank turns on its own where the clutch slips or no gear is in.

    Args:
        curve: pairs (speed rad/s, torque N·m at full throttle). inertia: kg·m² of crank and flywheel.
        idle, limit: rad/s: the governor holds the first, the throttle is cut beyond the second.
        drag: N·m·s, of its own friction.
        clutch: N·m that it holds when it is let in.
        gears: crank turns per turn (or radians per metre) of the joint in gears 1, 2, …. reverse: the same backwards.
        throttle, engaged: 0 to 1. gear: −1, 0 (none), 1, 2, ….
    """

    curve: Any = ((0.0, 0.0), (100.0, 200.0), (400.0, 250.0), (600.0, 150.0))
    inertia: float = 0.3
    idle: float = 80.0
    limit: float = 600.0
    drag: float = 0.05
    clutch: float = 400.0
    gears: Sequence[float] = (12.0, 7.0, 4.0)
    reverse: float = 12.0
    throttle: float = 0.0
    engaged: float = 1.0
    gear: int = 0

    kind: ClassVar[str] = "engine"
    numbers: ClassVar[tuple[str, ...]] = ("inertia", "idle", "limit", "drag", "clutch")
    words: ClassVar[tuple[str, ...]] = ("throttle", "engaged", "gear")

    def __post_init__(self) -> None:
        _curve("Engine", "curve", self.curve)
        _above("Engine", self, "inertia", "idle", "limit", "clutch", "reverse")
        number("Engine", "drag", self.drag, least=0.0)
        ratios = as_numbers(self.gears)
        if ratios.ndim != 1 or not len(ratios) or not np.all(np.isfinite(ratios)) or np.any(ratios == 0):
            raise SceneError(f"Engine: gears are ratios, finite numbers other than 0, got {self.gears!r}")
        for what, (low, high) in zip(self.words, self.ranges, strict=True):
            number("Engine", what, getattr(self, what), least=low, most=high)

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """Of its commands."""
        return (0.0, 1.0), (0.0, 1.0), (-1.0, float(len(self.gears)))

    def columns(self, put: Callable[..., int], limit: Limit) -> list[float]:
        """Its numbers; see `laws.drives`."""
        speeds, torques = _curve("Engine", "curve", self.curve)
        at = put(speeds, torques)
        ratios = put([-self.reverse], self.gears)
        own = [self.inertia, self.idle, self.limit, self.drag, self.clutch]
        return [*own, at, len(speeds), ratios, len(self.gears) + 1]


@dataclass(frozen=True)
class HydraulicCylinder(Checked):
    """A hydraulic cylinder: a valve's flow moves it, whatever the load, as far as its pressure goes; shut, it holds.

    Args:
        command: −1 to 1, of the flow: out where it is positive.
        pressure: Pa, at most on either side. flow: m³/s at full command.
        area: m² of the piston. rod_area: m² on the rod's side; the piston's if None.
        leak: m³/s per Pa past the piston: how much a load slows it, and lets it creep.
        cushion: m before each end of the joint's limit over which the flow is throttled; 0: none.
    """

    command: float = 0.0
    pressure: float = 2.0e7
    flow: float = 1.0e-3
    area: float = 5.0e-3
    rod_area: float | None = None
    leak: float = 1.0e-13
    cushion: float = 0.0

    kind: ClassVar[str] = "cylinder"
    numbers: ClassVar[tuple[str, ...]] = ("area", "rod_area", "pressure", "flow", "leak", "cushion")
    words: ClassVar[tuple[str, ...]] = ("command",)
    ranges: ClassVar[tuple[tuple[float, float], ...]] = ((-1.0, 1.0),)

    def __post_init__(self) -> None:
        number("HydraulicCylinder", "command", self.command, least=-1.0, most=1.0)
        _above("HydraulicCylinder", self, "pressure", "flow", "area", "leak")
        number("HydraulicCylinder", "cushion", self.cushion, least=0.0)
        if self.rod_area is not None:
            _above("HydraulicCylinder", self, "rod_area")

    def columns(self, put: Callable[..., int], limit: Limit) -> list[float]:
        """Its numbers; see `laws.drives`."""
        if self.cushion > 0 and not (math.isfinite(limit.lower) and math.isfinite(limit.upper)):
            raise SceneError(f"HydraulicCylinder: a cushion needs a limit at both ends of the joint, got {limit}")
        rod = self.area if self.rod_area is None else self.rod_area
        ends = [max(limit.lower, -1e30), min(limit.upper, 1e30)]
        return [self.area, rod, self.pressure, self.flow, self.leak, self.cushion, *ends]


Drive = Servo | DCMotor | Motor | Engine | HydraulicCylinder
OPEN_WINDING, WEAK_MOTOR = 1e12, 1e-6
"""Ω and N·m/A of a motor without current: nothing but its rotor acts."""


def motor_of(drive: Drive | None) -> DCMotor | None:
    """The motor of a drive, as kernels know it: a servo's armature is the rotor of one without current."""
    if isinstance(drive, Servo) and drive.armature > 0:
        return DCMotor(resistance=OPEN_WINDING, torque_constant=WEAK_MOTOR, rotor_inertia=drive.armature)
    return drive if isinstance(drive, DCMotor) else None


DRIVE_KINDS = ("motor", "battery", "engine", "cylinder")
"""Rows of the table of drives (`laws.drives.DRIVE_LAWS`); "battery" is a DC motor on one."""


@dataclass(frozen=True)
class Axis:
    """All that acts on one free axis; `group` is the number of the first axis of the joint that shares its friction bound."""

    limit: Limit = NO_LIMIT
    friction: Friction = field(default_factory=Friction)
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    drive: Drive | None = None
    group: int = 0

    @property
    def acts(self) -> bool:
        """Whether anything acts here."""
        return self != Axis(group=self.group)


def per_axis(joint: str, what: str, value: Any, axes: tuple[str, ...]) -> dict[str, Any]:
    """One value for all axes, or a dict by axis name, as a dict by axis name."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        for name in value:
            if name not in axes:
                raise SceneError(
                    f"{joint}: {what} is given for the axis {name!r}, which is not free; free: {' '.join(axes) or 'none'}"
                )
        return dict(value)
    if not axes:
        raise SceneError(f"{joint}: {what} needs a free axis, and there is none")
    return dict.fromkeys(axes, value)


def describe_axes(
    joint: str, axes: tuple[str, ...], limit: Any, friction: Any, spring: Any, damping: Any, drive: Any
) -> tuple[Axis, ...]:
    """The axes of a joint from what a user wrote; limits of a ball joint are not among them."""
    ball = isinstance(limit, Cardan | SwingTwist)
    turns = [a for a in axes if a.startswith("r")]
    if ball and len(turns) != 3:
        raise SceneError(f"{joint}: {type(limit).__name__} limits three free rotations, free: {' '.join(axes) or 'none'}")
    limits = {} if ball else per_axis(joint, "limit", limit, axes)
    if len(turns) == 3:
        for name in limits:
            if name in turns:
                raise SceneError(f"{joint}: three free rotations are limited by Cardan(…) or SwingTwist(…), got {limits[name]!r}")
    frictions = per_axis(joint, "friction", friction, axes)
    springs = per_axis(joint, "spring", spring, axes)
    dampings = per_axis(joint, "damping", damping, axes)
    drives = per_axis(joint, "drive", drive, axes)
    isotropic = not isinstance(friction, Mapping)
    out = []
    for i, name in enumerate(axes):
        who = f"{joint}, axis {name}"
        first = next(j for j, other in enumerate(axes) if other.startswith("r") == name.startswith("r"))
        stiffness, rest = 0.0, 0.0
        if name in springs:
            try:
                stiffness, rest = springs[name]
            except (TypeError, ValueError):
                raise SceneError(f"{who}: a spring is (stiffness, rest), got {springs[name]!r}") from None
        act = drives.get(name)
        if act is not None and not isinstance(act, Drive):
            raise SceneError(f"{who}: a drive is a Servo, DCMotor, Motor, Engine or HydraulicCylinder, got {act!r}")
        out.append(
            Axis(
                limit=Limit.of(limits[name], who) if name in limits else NO_LIMIT,
                friction=Friction.of(frictions.get(name, 0.0), who),
                stiffness=number(who, "spring stiffness", stiffness, least=0.0),
                rest=number(who, "spring rest", rest),
                damping=number(who, "damping", dampings.get(name, 0.0), least=0.0),
                drive=act,
                group=first if isotropic else i,
            )
        )
    return tuple(out)
