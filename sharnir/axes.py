"""What acts on a free axis of a joint: limits, friction, spring and damper, drives. One description for every joint type.

On the axes of one joint, p is the impulse of a step and u the speed at its end, A the response of u to p with the joint held
closed. Each action is a law between p and u (or a bound on u):

    spring, damper     p = −Δt k (q + Δt u − rest) − Δt c u                         implicit: any stiffness is stable
    servo              p = Δt (torque + kp (target − q − Δt u) + kd (speed − u)),   |p| ≤ Δt max_force
    DC motor           p = Δt N η k_t · mean current,  L di/dt = V − R i − k_t N u;   rotor p = −J N² (u − u_start)
    friction           |p| ≤ p_max where u = 0,   p = −p_max u/|u| where not         (the vector over a group of axes)
    limit              u ≥ −(q − lower)/Δt,  p ≥ 0, one of them an equality; likewise above

Linear laws are p = −a u − b, added up over all that act on the axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from sharnir.errors import SceneError, is_positive

INF = math.inf


def number(who: str, what: str, value: object, *, least: float | None = None, most: float = INF, endless: bool = False) -> float:
    """A finite number (or infinity where `endless`) from `least` to `most`, or a SceneError."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    bad = math.isnan(number) or (math.isinf(number) and not (endless and number > 0))
    if bad or (least is not None and number < least) or number > most:
        allowed = "a finite number" if least is None else f"a finite number of at least {least:g}"
        if most != INF:
            allowed = f"a number from {least:g} to {most:g}"
        raise SceneError(f"{who}: {what} is {allowed}, got {value!r}")
    return number


@dataclass(frozen=True)
class Friction:
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
class Limit:
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
class Cardan:
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
class SwingTwist:
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
class Servo:
    """A drive that pulls an axis towards a position and a speed: torque + kp (position − q) + kd (velocity − u), implicit.

    Args:
        position, velocity, torque: targets: m or rad, m/s or rad/s, N or N·m; what is not given is 0 (a position only if kp > 0).
        kp, kd: N/m or N·m/rad, N·s/m or N·m·s.
        max_force: bound on the drive's force or torque, N or N·m.
    """

    position: float = 0.0
    velocity: float = 0.0
    torque: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    max_force: float = INF

    def __post_init__(self) -> None:
        for what in ("position", "velocity", "torque"):
            number("Servo", what, getattr(self, what))
        for what in ("kp", "kd"):
            number("Servo", what, getattr(self, what), least=0.0)
        number("Servo", "max_force", self.max_force, least=0.0, endless=True)
        if self.velocity != 0 and self.kd == 0:
            raise SceneError("Servo: a velocity target needs kd above 0, got kd = 0")
        if self.position != 0 and self.kp == 0:
            raise SceneError("Servo: a position target needs kp above 0, got kp = 0")


@dataclass(frozen=True)
class DCMotor:
    """A permanent-magnet motor behind a gear; its current is a state, its rotor's inertia acts, it can be driven backwards.

    Args:
        voltage: V.
        resistance: Ω. inductance: H (0: the current follows at once).
        torque_constant: N·m/A, and V·s of the back-EMF.
        gear_ratio: motor turns per turn (or radians per metre) of the joint.
        efficiency: of the gear, 0 to 1; when the joint drives the motor, the gear loses the other way round.
        rotor_inertia: kg·m². no_load_friction: dry friction at the rotor, N·m.
    """

    voltage: float = 0.0
    resistance: float = 1.0
    inductance: float = 0.0
    torque_constant: float = 0.05
    gear_ratio: float = 1.0
    efficiency: float = 1.0
    rotor_inertia: float = 0.0
    no_load_friction: float = 0.0

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


@dataclass(frozen=True)
class Axis:
    """All that acts on one free axis; `group` is the number of the first axis of the joint that shares its friction bound."""

    limit: Limit = NO_LIMIT
    friction: Friction = field(default_factory=Friction)
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    drive: Servo | DCMotor | None = None
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
        if act is not None and not isinstance(act, Servo | DCMotor):
            raise SceneError(f"{who}: a drive is a Servo or a DCMotor, got {act!r}")
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
