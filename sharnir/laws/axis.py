"""The laws of one free axis in a step, as plain mathematics: spring, damper, servo, dry friction and limit.

Impulses p (N·s or N·m·s) act on the axis; u₀ and u₁ are its speeds at the start and at the end of the step of length h, A is its
response: the change of u₁ per impulse. Laws are taken at the mean speed ½(u₀ + u₁), so that a spring loses nothing and sliding
friction takes its bound times the path. Friction that holds, and limits, act on u₁.

All functions take floats, expressions or dual numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sharnir.emit.expressions import Expression, absolute, clamp, exp, maximum, minimum, select, sign, value_of

INFINITE = 1e30
LIMIT_TOLERANCE = 1e-10  # rad, or of the scene's length: a limit is not passed by less
NEAR_LIMIT = 5e-3  # rad, or of the scene's length: a limit passed by less is returned to by speeds
FREE_AXIS, HOLDS, STAYS = 0.0, 1.0, 2.0
"""What friction does: it slides, holds the axis, or keeps it where it is in this step (STAYS, + 1 if it could hold it)."""
HELD, STAYING, HOLDING, AT_LIMIT, LEAVING = 2.0, 3.0, 4.0, 8.0, 16.0
"""What friction and limits do, as a mode: ±1 friction slides against a speed of that sign; else the axis is held, stays where it
is (HOLDING: and could be held), is at its lower (+) or upper (−) limit, or leaves one at the end of the step."""


def is_zero(x: Any) -> bool:
    """Whether a number is known to be zero."""
    return not isinstance(x, Expression) and x == 0.0


class Law(NamedTuple):
    """All laws of an axis in one step; linear ones are p = −a u₁ − b."""

    a: Any  # springs and dampers
    b: Any
    servo_a: Any  # the servo, if it is within its bound
    servo_b: Any
    servo_bound: Any  # |p| of the servo at most
    hold: Any  # |p| with which friction can hold
    slide: Any  # |p| of friction while it slides
    lower: Any  # u₁ that limits allow
    upper: Any


def prepare(x: Any, h: Any, q: Any, u0: Any, stuck: Any, share: Any = 1.0) -> Law:
    """The laws of a step from the coordinate and the speed at its start.

    `x` has the axis' parameters: stiffness, rest, damping, servo_kp …, friction_static …, limit_lower, limit_upper, restitution.
    Of drives and dampers, `share` is taken at the mean speed, the rest at the speed of the end (1 where the step resolves them).
    """
    end, start = 1.0 - 0.5 * share, 0.5 * share
    back, rotor, push = motor_terms(x)
    damping = h * (x.damping + x.friction_viscous) + back
    spring = 0.25 * (h * h) * x.stiffness
    a = damping * end + spring + rotor
    b = damping * start * u0 + h * (x.stiffness * (q - x.rest)) + spring * u0 + push - rotor * u0
    kp, kd = x.servo_kp, x.servo_kd
    far, near = 1.0 - 0.75 * share, 0.25 * share
    push = kp * (q - x.servo_position) - kd * x.servo_velocity - x.servo_torque
    servo_a = h * (h * kp * far + kd * end)
    servo_b = h * (push + (h * kp * near + kd * start) * u0)
    hold, slide = friction_bounds(x, h, u0, stuck)
    lower, upper = limit_speeds(x, h, q, u0)
    return Law(a, b, servo_a, servo_b, x.servo_max_force * h, hold, slide, lower, upper)


def friction_bounds(x: Any, h: Any, u0: Any, stuck: Any) -> tuple[Any, Any]:
    """Impulses with which friction can hold, and with which it slides."""
    load = 0.0 if is_zero(x.friction_load) else x.load
    static, dynamic, stribeck = x.friction_static * h + load, x.friction_dynamic * h + load, x.friction_stribeck
    if is_zero(static) and is_zero(dynamic):
        return 0.0, 0.0
    falls = static > dynamic
    decays = stribeck > 0.0
    fade = exp(-(u0 * u0) / select(decays, stribeck * stribeck, 1.0))
    slide = select(falls & decays, dynamic + (static - dynamic) * fade, dynamic)
    moves = (stuck < 0.5) & (u0 * u0 > 0.0)
    hold = select(falls & not_(decays) & moves, dynamic, static)
    if not is_zero(load):  # while the load is not known yet what rests, rests
        hold = select((load > 0.0) & (x.loaded < 0.5) & (u0 * u0 <= 0.0), INFINITE, hold)
    return hold, slide


# ---- DC motors ---------------------------------------------------------------------------------------------------------------
#
# i(t) = i∞ + (i₀ − i∞) exp(−t R/L), i∞ = (V − k N u)/R, the torque on the axis is η N k i: as impulses −back u − push, u as
# dampers see it, and −rotor (u₁ − u₀). A rotor has a speed of its own, with the same mean as its axis.


def motor_terms(x: Any) -> tuple[Any, Any, Any]:
    """(back, rotor, push) of an axis' motor."""
    if is_zero(x.resistance):
        return 0.0, 0.0, 0.0
    return x.motor_back, x.motor_rotor, x.motor_push


def rotor_inertia(x: Any) -> Any:
    """Inertia of a motor's rotor as its axis feels it."""
    return x.rotor_inertia * x.gear_ratio * x.gear_ratio


def motor_decay(x: Any, h: Any) -> tuple[Any, Any]:
    """exp(−h R/L) and the mean of that exponential over the step."""
    slow = h * x.resistance
    at_once = 1e-3 * slow >= x.inductance
    ratio = slow / select(at_once, 1.0, x.inductance)
    e = exp(-ratio)
    return select(at_once, 0.0, e), select(at_once, x.inductance / slow, (1.0 - e) / ratio)


def motor_efficiency(x: Any, u0: Any) -> Any:
    """Of the gear, by the direction in which power flows."""
    return select(x.current * x.gear_ratio * u0 < 0.0, 1.0 / x.efficiency, x.efficiency)


def prepare_motor(x: Any, h: Any, u0: Any) -> tuple[Any, Any, Any, Any]:
    """(back, rotor, push), and the resistance per h that the motor has as a damper without losses."""
    N, k = x.gear_ratio, x.torque_constant
    _, fade = motor_decay(x, h)
    back = (1.0 - fade) * (k * N) * (k * N) / x.resistance
    eta = motor_efficiency(x, u0)
    push = -(h * N * eta * k) * ((1.0 - fade) * x.voltage / x.resistance + fade * x.current)
    return h * eta * back, rotor_inertia(x), push, back


def motor_current(x: Any, h: Any, u: Any) -> Any:
    """The current at the end of a step at the speed u."""
    e, _ = motor_decay(x, h)
    last = (x.voltage - x.torque_constant * x.gear_ratio * u) / x.resistance
    return last + (x.current - last) * e


def not_(condition: Any) -> Any:
    """The opposite of a condition."""
    return ~condition if isinstance(condition, Expression) else not condition


def limit_speeds(x: Any, h: Any, q: Any, u0: Any, part: Any = 1.0) -> tuple[Any, Any]:
    """Speeds u₁ that keep q inside its limits to the end of the step; `part`: see `stop_speed`."""
    lower: Any = -INFINITE
    upper: Any = INFINITE
    if isinstance(value_of(x.limit_lower), Expression) or x.limit_lower > -INFINITE:
        room = q - x.limit_lower
        lower = select(room < INFINITE, stop_speed(h, room, u0, x.restitution, x.unit, part), -INFINITE)
    if isinstance(value_of(x.limit_upper), Expression) or x.limit_upper < INFINITE:
        room = x.limit_upper - q
        upper = select(room < INFINITE, -stop_speed(h, room, -u0, x.restitution, x.unit, part), INFINITE)
    return lower, maximum(lower, upper)


def stop_speed(h: Any, room: Any, u0: Any, restitution: Any, unit: Any, part: Any = 1.0) -> Any:
    """Least u₁ of an axis with so much room below it: the path ½h (u₀ + u₁) ends at the limit, or before it if it bounces.

    For that the axis may be thrown back, by no more than it came with; what is beyond restitution an impact takes from it at the
    end of the step (`leaving_speed`), so that momenta are kept. A limit that was passed by a little is returned to in the same
    way, at the speed of a whole step where that is divided and h a `part` of it. `unit` makes the coordinate a number that
    tolerances hold for: 1 for a rotation, 1/length of the scene.
    """
    passed = -room * unit
    most = maximum(-u0, 0.0)
    most = select((passed > LIMIT_TOLERANCE) & (passed <= NEAR_LIMIT), most - 2.0 * room / h * part, most)
    least = minimum(-2.0 * room / h - u0, most)
    bounces = (restitution > 0.0) & (u0 < 0.0) & (room + h * u0 < 0.0)
    return select(bounces, maximum(least, -(restitution * u0)), least)


def leaving_speed(limit: Any, u0: Any, restitution: Any) -> Any:
    """Speed at which an axis leaves the limit whose impulse is `limit`."""
    return select(u0 * limit >= 0.0, 0.0, -(restitution * u0))


def resolved_share(h: Any, kp: Any, kd: Any, A: Any) -> Any:
    """How much of the mean rule a drive with the response A may have: 1 where the step resolves it, down to 0.

    At the mean speed it would ring for ever where the step does not resolve it: nothing changes up to h² kp A = ¼ and
    h kd A = ½, and it is fully implicit from four times that on.
    """
    stiff = maximum(h * h * kp * A * 4.0, h * kd * A * 2.0)
    return 1.0 - clamp((stiff - 1.0) * (1.0 / 3.0), 0.0, 1.0)


class Solution(NamedTuple):
    """What the laws of an axis do in a step."""

    u1: Any
    friction: Any  # impulse
    limit: Any  # impulse
    held: Any  # FREE_AXIS, HOLDS or STAYS


def solve_friction(u: Any, A: Any, hold: Any, slide: Any, u0: Any) -> tuple[Any, Any]:
    """Impulse of friction on an axis whose u₁ without it is u; and what it does (HOLDS …).

    It holds u₁ at zero, and slides against ½(u₀ + u₁). A speed that reverses within the step is not held against its own start;
    if neither sliding direction is consistent the axis stays where it is.
    """
    if is_zero(hold) and is_zero(slide):
        return 0.0, FREE_AXIS
    can_hold = absolute(u) <= hold * A
    holds = can_hold & (u * u0 >= 0.0)
    mean, half = 0.5 * (u + u0), 0.5 * A
    stays = absolute(mean) <= slide * half
    slides = -(sign(mean) * minimum(slide, absolute(mean) / half))
    friction = select(holds, -u / A, select(stays, -mean / half, slides))
    held = select(holds, select(hold > 0.0, HOLDS, FREE_AXIS), select(stays, STAYS + select(can_hold, 1.0, 0.0), FREE_AXIS))
    return friction, held


def friction_speed(u: Any, A: Any, hold: Any, slide: Any, u0: Any) -> tuple[Any, Any]:
    """u₁ with the friction of `solve_friction`, without a division; and the mode."""
    if is_zero(hold) and is_zero(slide):
        return u, 1.0
    can_hold = absolute(u) <= hold * A
    holds = can_hold & (u * u0 >= 0.0) & (hold > 0.0)
    mean = 0.5 * (u + u0)
    stays = absolute(mean) <= 0.5 * slide * A
    way = sign(mean)
    v = select(holds, 0.0, select(stays, -u0, u - way * (slide * A)))
    return v, select(holds, HELD, select(stays, select(can_hold, HOLDING, STAYING), way))


def near_limit(x: Any, h: Any, u0: Any, u1: Any) -> Any:
    """Whether a limit may act on an axis that would end at u₁: its path, or that at its present speed, passes the limit."""
    out: Any = False
    start, path = h * u0, 0.5 * h * (u0 + u1)
    if isinstance(x.limit_lower, Expression) or x.limit_lower > -INFINITE:
        out = out | (x.q + minimum(start, path) < x.limit_lower)
    if isinstance(x.limit_upper, Expression) or x.limit_upper < INFINITE:
        out = out | (x.q + maximum(start, path) > x.limit_upper)
    return out


def path_speeds(x: Any, h: Any, u0: Any) -> tuple[Any, Any]:
    """Between which u₁ no limit may act, by `near_limit`; what the present speed alone reaches is left out."""
    lower: Any = -INFINITE
    upper: Any = INFINITE
    if isinstance(x.limit_lower, Expression) or x.limit_lower > -INFINITE:
        lower = 2.0 * (x.limit_lower - x.q) / h - u0
    if isinstance(x.limit_upper, Expression) or x.limit_upper < INFINITE:
        upper = 2.0 * (x.limit_upper - x.q) / h - u0
    return lower, upper


def beyond_servo(x: Any, h: Any, u1: Any) -> Any:
    """Whether the servo reaches its bound at u₁, or is at it (where servo_a is 0)."""
    if is_zero(x.servo_kp) and is_zero(x.servo_kd):
        return False
    over = absolute(x.servo_a * u1 + x.servo_b) > x.servo_max_force * h
    return (over | not_(x.servo_a > 0.0)) & ((x.servo_kp > 0.0) | (x.servo_kd > 0.0))


def linear_servo(law: Law, u1: Any) -> tuple[Any, Any]:
    """(a, b) of the servo about u₁: within its bound, or at it."""
    if is_zero(law.servo_a) and is_zero(law.servo_b):
        return 0.0, 0.0
    servo = -(law.servo_a * u1) - law.servo_b
    over = absolute(servo) > law.servo_bound
    return select(over, 0.0, law.servo_a), select(over, -clamp(servo, -law.servo_bound, law.servo_bound), law.servo_b)


def servo_side(law: Law, u1: Any) -> Any:
    """±1 where the servo is at its upper or lower bound, else 0."""
    if is_zero(law.servo_a) and is_zero(law.servo_b):
        return 0.0
    servo = -(law.servo_a * u1) - law.servo_b
    return select(servo > law.servo_bound, 1.0, select(servo < -law.servo_bound, -1.0, 0.0))


def held_speed(held: Any, u0: Any) -> Any:
    """u₁ of an axis that friction holds, or keeps where it is."""
    return select(held > 1.5, -u0, 0.0)


def solve_bounded(u: Any, A: Any, law: Law, u0: Any) -> Solution:
    """Friction and limit of an axis whose u₁ without them is u."""
    f, held = solve_friction(u, A, law.hold, law.slide, u0)
    v = u + A * f if is_zero(held) else select(held > 0.5, held_speed(held, u0), u + A * f)
    if not any(isinstance(x, Expression) for x in (law.lower, law.upper)) and law.lower <= -INFINITE and law.upper >= INFINITE:
        return Solution(v, f, 0.0, held)
    reached = clamp(v, law.lower, law.upper)
    at_limit = (v < law.lower) | (v > law.upper)
    need = (reached - u) / A
    f_limit = friction_at_limit(need, reached, 0.5 * (reached + u0), law)
    return Solution(
        select(at_limit, reached, v),
        select(at_limit, f_limit, f),
        select(at_limit, need - f_limit, 0.0),
        select(at_limit, FREE_AXIS, held),
    )


def friction_at_limit(need: Any, u1: Any, mean: Any, law: Law) -> Any:
    """Impulse of friction at a limit: it opposes what speed is left, or takes its share of the load."""
    share = clamp(need, -law.hold, law.hold)
    share = select(share * mean > 0.0, 0.0, share)
    return select(absolute(u1) <= 0.0, share, -(sign(mean) * law.slide))


def solve_axis(u: Any, A: Any, law: Law, u0: Any) -> Solution:
    """All laws of an axis whose u₁ would be u if nothing acted on it: exactly, in closed form."""
    a, b = law.a + law.servo_a, law.b + law.servo_b
    free = solve_soft(u, A, a, b, law, u0)
    if is_zero(law.servo_a) and is_zero(law.servo_b):
        return free
    servo = -(law.servo_a * free.u1) - law.servo_b
    bounded = solve_soft(u, A, law.a, law.b - clamp(servo, -law.servo_bound, law.servo_bound), law, u0)
    over = absolute(servo) > law.servo_bound
    return Solution(*(select(over, y, x) for x, y in zip(free, bounded, strict=True)))


def solve_soft(u: Any, A: Any, a: Any, b: Any, law: Law, u0: Any) -> Solution:
    """Friction and limit beside the linear law p = −a u₁ − b."""
    soft = A / (1.0 + a * A)
    return solve_bounded(u - soft * (a * u + b), soft, law, u0)
