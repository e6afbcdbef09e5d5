"""Laws of joints with several axes in one link.

Symbols as in `step`; y are the joint's mean speeds along the axes of its laws, scaled as z, so that u₁ = 4y/h − u₀. The laws are
solved exactly on the way outwards, and are linear on the way inwards: p = −C u₁ − push, and some directions may be locked (rows
of `lock3`), at y = lock_to. Sliding friction and springs are taken exactly at the present speeds on both ways, so that factors
stay good while they change by little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.algebra import IDENTITY, NO_SYMMETRIC, ZERO, Matrix, Symmetric, Vector, dot
from sharnir.emit.expressions import absolute, clamp, maximum, minimum, select, sign, sqrt
from sharnir.engine.tree.joints import MOST_REPAIR, hand_on, largest, turned
from sharnir.laws.axis import (
    HOLDS,
    INFINITE,
    NEAR_LIMIT,
    Law,
    friction_bounds,
    held_speed,
    is_zero,
    leaving_speed,
    linear_servo,
    motor_current,
    not_,
    prepare_motor,
    resolved_share,
    rotor_inertia,
    servo_side,
    solve_friction,
)  # fmt: skip
from sharnir.laws.ball import (
    can_hold,
    choose,
    is_same_slip,
    length,
    slip_slope,
    slip_speed,
    times,
)  # fmt: skip

AXES = (0, 1, 2)
SLOWEST = 1e-15  # rad or m a step: sliding friction has no direction below it
DEPENDENT = 1e-12  # of its response: a direction that other locked ones hold already
SAME_ROW = 1e-10  # a change of a limit's direction that counts as none
LEAST_SHARE, MOST_SHARE = 0.3, 1.5  # of a change of such a direction that an iteration makes
SERVO_TRIES, SWEEPS, SLIP_STEPS = 8, 24, 30
SMOOTH = -1.0  # marks friction that is smoothed
RESTS = 1e-7  # of the speed that gravity gives in a step: an axis that is slower rests at its limit
UNLIMITED = {"limit_lower": -INFINITE, "limit_upper": INFINITE, "unit": 1.0}
NO_FRICTION = {"friction_static": 0.0, "friction_dynamic": 0.0, "friction_load": 0.0}


class AxisOf:
    """The parameters of one axis, by the names of those of a joint with one; `given` ones are others."""

    def __init__(self, link: Any, k: int, **given: Any) -> None:
        self.link, self.k, self.given = link, k, given

    def __getattr__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        if name == "load":
            return self.friction_load * self.link.reaction * self.link.h
        return self.link.loaded if name == "loaded" else getattr(self.link, name + "_3")[self.k]


def each(f: Any) -> Vector:
    """A vector of values by axis."""
    return Vector(*(f(k) for k in AXES))


def all_zero(*vectors: Any) -> bool:
    """Whether all numbers are known to be zero."""
    return all(is_zero(x) for v in vectors for x in v)


def known_zero(condition: Any) -> bool:
    """Whether a condition is known not to hold."""
    return isinstance(condition, bool) and not condition


class SeveralAxes:
    """What joints with several axes share, while laws act; a kind of joint adds how its axes lie and move."""

    # ---- by kind of joint

    def start_speeds(self, link: Any) -> Vector:
        """Speeds along the axes of the laws at the start of the step."""
        raise NotImplementedError

    def law_axes(self, link: Any) -> tuple[Matrix, Matrix, Vector]:
        """The mean motion of the link per y, S_l and S_a by columns, and the lever from the base's origin."""
        raise NotImplementedError

    def axis_law(self, link: Any, k: int) -> Law:
        """The laws of an axis but for friction, and for springs and limits that are not along the axis."""
        raise NotImplementedError

    def measure(self, link: Any, first: bool) -> None:
        """y, and what depends on the end of the step as it stands."""
        raise NotImplementedError

    def put_speeds(self, link: Any, y: Vector) -> Any:
        """Set the joint's mean speeds; returns the largest change."""
        raise NotImplementedError

    def effort(self, link: Any) -> Vector:
        """Impulses that are commanded, along the axes of the laws."""
        p: Vector = link.effort_3 * link.h
        return p

    def inert(self, link: Any) -> Vector:
        """What is added to the inertia of axes that are none."""
        return Vector(0.0, 0.0, 0.0)

    # ---- before the iterations

    def begin(self, link: Any) -> None:
        """Prepare the laws of the step, and a guess of what they do: the same as in the last step."""
        stuck, u0, known = link.stuck_3, self.start_speeds(link), link.known_3 > 0.5
        link.u0_3 = each(lambda k: select(stuck[k] > 0.5, 0.0, u0[k]))
        if self.has_friction(link):
            for _ in link.when(link.grouped > 0.5):
                link.tree.note_friction()
        self.begin_motors(link)
        link.share_3 = each(lambda k: select(link.implicit_3[k] > 0.0, 0.0, select(known, link.share_3[k], 1.0)))
        laws = [self.axis_law(link, k) for k in AXES]
        link.a_3, link.b_3 = Vector(*(x.a for x in laws)), Vector(*(x.b for x in laws))
        link.servo_a_3, link.servo_b_3 = Vector(*(x.servo_a for x in laws)), Vector(*(x.servo_b for x in laws))
        link.bound_3 = Vector(*(x.servo_bound for x in laws))
        link.lower_3, link.upper_3 = Vector(*(x.lower for x in laws)), Vector(*(x.upper for x in laws))
        link.spring_3 = Vector(0.0, 0.0, 0.0)
        self.find_bounds(link)
        self.find_limits(link)
        self.guess_laws(link)

    # ---- motors: few joints have them

    def resistances(self, link: Any) -> Vector:
        """Of the motors, 0 where an axis has none."""
        ohms: Vector = link.resistance_3
        return ohms

    def has_motors(self, link: Any) -> bool:
        return not all_zero(self.resistances(link))

    def motor(self, link: Any, k: int) -> AxisOf:
        """The parameters of an axis, with some resistance also where it has no motor."""
        ohms = self.resistances(link)[k]
        return AxisOf(link, k, resistance=select(ohms > 0.0, ohms, 1.0))

    def begin_motors(self, link: Any) -> None:
        """Prepare the motors; a rotor has a speed of its own."""
        if not self.has_motors(link):
            return
        ohms = self.resistances(link)
        link.motor_back_3 = link.motor_rotor_3 = link.motor_push_3 = link.motor_c_3 = ZERO
        for _ in link.when(largest(ohms) > 0.0):
            turns = [(ohms[k] > 0.0) & (link.rotor_inertia_3[k] > 0.0) & not_(link.stuck_3[k] > 0.5) for k in AXES]
            u0 = Vector(*(select(turns[k], link.rotor_3[k], link.u0_3[k]) for k in AXES))
            link.u0_3 = u0
            terms = [prepare_motor(self.motor(link, k), link.h, u0[k]) for k in AXES]
            found = [Vector(*(select(ohms[k] > 0.0, terms[k][n], 0.0) for k in AXES)) for n in range(4)]
            link.motor_back_3, link.motor_rotor_3, link.motor_push_3, link.motor_c_3 = found

    def motor_impulse(self, link: Any, u1: Vector) -> Vector:
        """Impulses of the motors, without those that turn their rotors."""
        if not self.has_motors(link):
            return ZERO
        seen = each(lambda k: u1[k] + (link.u0_3[k] - u1[k]) * (0.5 * link.share_3[k]))
        p: Vector = -times(link.motor_back_3, seen) - link.motor_push_3
        return p

    def keep_motors(self, link: Any, u1: Vector, stuck: Vector) -> None:
        """Currents, and speeds of the rotors, at the end of the step."""
        if not self.has_motors(link):
            return
        ohms, u0 = self.resistances(link), link.u0_3
        for _ in link.when(largest(ohms) > 0.0):
            seen = [u1[k] + (u0[k] - u1[k]) * (0.5 * link.share_3[k]) for k in AXES]
            now = [motor_current(self.motor(link, k), link.h, seen[k]) for k in AXES]
            link.current_3 = Vector(*(select(ohms[k] > 0.0, now[k], link.current_3[k]) for k in AXES))
            link.rotor_3 = each(lambda k: select(stuck[k] > 0.5, 0.0, u1[k]))

    def find_limits(self, link: Any) -> None:
        """Limits that are not along the axes."""

    def find_bounds(self, link: Any) -> None:
        """Impulses with which friction can hold, and with which it slides: of the vector, or axis by axis."""
        u0, stuck, h = link.u0_3, link.stuck_3, link.h
        vector = friction_bounds(AxisOf(link, 0), h, length(u0), stuck[0])
        alone = [friction_bounds(AxisOf(link, k), h, u0[k], stuck[k]) for k in AXES]
        grouped = link.grouped > 0.5
        link.hold_3 = each(lambda k: select(grouped, vector[0], alone[k][0]))
        link.slide_3 = each(lambda k: select(grouped, vector[1], alone[k][1]))

    def guess_laws(self, link: Any) -> None:
        u0, hold, slide, stuck, limit = link.u0_3, link.hold_3, link.slide_3, link.stuck_3, link.limit_3
        size = length(u0)
        heading = u0 * (1.0 / select(size > 0.0, size, 1.0))
        grouped = link.grouped > 0.5
        rests = each(lambda k: select(grouped, size, absolute(u0[k])))

        def held(k: int) -> Any:
            guess = select((hold[k] > slide[k]) | ((rests[k] <= 0.0) & (hold[k] > 0.0)), HOLDS, stuck[k])
            return select(hold[k] > 0.0, guess, 0.0)

        link.held_3 = each(held)
        link.friction_3 = each(lambda k: -(select(grouped, heading[k], sign(u0[k])) * slide[k]))
        link.u1_3 = u0
        link.slid_3 = Vector(0.0, 0.0, 0.0)
        at_limit = each(lambda k: select(limit[k] > 0.0, link.lower_3[k], link.upper_3[k]))
        start = self.along_limits(link, u0)
        link.limit_3 = each(
            lambda k: select(absolute(at_limit[k]) > 2.0 * absolute(start[k]) + link.fall, 0.0, limit[k])
        )  # one that is further off than the step goes is no guess
        link.y_3 = u0 * (0.25 * link.h)
        link.fresh_3 = 0.0
        self.linearize(link)

    def along_limits(self, link: Any, u: Vector) -> Vector:
        """Speeds along the limits' directions."""
        return u

    def limit_row(self, link: Any, k: int) -> Vector:
        """Direction of a limit in the axes of the laws."""
        return IDENTITY.row(k)

    # ---- linear about a solution

    def law_of(self, link: Any, k: int) -> Law:
        """The linear laws of an axis and its servo."""
        return Law(link.a_3[k], link.b_3[k], link.servo_a_3[k], link.servo_b_3[k], link.bound_3[k], 0.0, 0.0, 0.0, 0.0)

    def has_servo(self, link: Any) -> bool:
        return not all_zero(link.servo_kp_3, link.servo_kd_3, link.servo_torque_3)

    def has_friction(self, link: Any) -> bool:
        return not all_zero(link.friction_static_3, link.friction_dynamic_3, link.friction_load_3)

    def has_limits(self, link: Any) -> bool:
        """Whether there may be limits."""
        return False

    def limits(self, link: Any) -> Any:
        """Whether there are."""
        return True

    def linearize(self, link: Any) -> None:
        """The laws, linear about the solution in u1, friction, held, limit."""
        u0, u1, f, slid, held = link.u0_3, link.u1_3, link.friction_3, link.slid_3, link.held_3
        grouped = link.grouped > 0.5
        whole = dot(f, slid)
        # between sliding one way and the other it stays
        turns = each(lambda k: select((select(grouped, whole, f[k] * slid[k]) < 0.0) & not_(held[k] > 0.5), 1.0, 0.0))
        held = each(lambda k: select(turns[k] > 0.5, 2.0, held[k]))
        locked = each(lambda k: select(held[k] > 0.5, 1.0, 0.0))
        link.slid_3 = each(lambda k: select(locked[k] > 0.5, 0.0, f[k]))
        servo = [linear_servo(self.law_of(link, k), u1[k]) for k in AXES]
        link.resist_3 = link.a_3 + Vector(*(x[0] for x in servo))
        link.push_3 = link.b_3 + Vector(*(x[1] for x in servo))
        link.sat_3 = each(lambda k: servo_side(self.law_of(link, k), u1[k]))
        mean = (u1 + u0) * 0.5
        link.about_3 = mean
        slope = NO_SYMMETRIC
        if self.has_friction(link):
            slope = slip_slope(mean, mean, length(mean), link.slide_3[0], SLOWEST / link.h)
        slides = grouped & not_(locked[0] > 0.5) & (link.slide_3[0] > 0.0)
        diagonal = link.resist_3
        link.C3 = Symmetric([select(slides, x, 0.0) + (diagonal[i] if i < 3 else 0.0) for i, x in enumerate(slope.e)])
        limit = link.limit_3
        side: list[Any] = [0.0, 0.0, 0.0]
        rows: list[Vector] = [IDENTITY.row(k) * locked[k] for k in AXES]
        to = [held_speed(held[k], u0[k]) for k in AXES]
        if self.has_limits(link):
            for k in AXES:
                meets = (absolute(limit[k]) > 0.0) & not_(locked[k] > 0.5)
                side[k] = select(meets, sign(limit[k]), 0.0)
                rows[k] = choose(meets, self.limit_row(link, k), rows[k])
                to[k] = select(meets, select(limit[k] > 0.0, link.lower_3[k], link.upper_3[k]), to[k])
        link.side_3, link.locked_3 = Vector(*side), held
        link.lock3 = Matrix([list(r) for r in rows])
        link.lock_to_3 = each(lambda k: (to[k] + dot(rows[k], u0)) * (0.25 * link.h))

    # ---- inwards

    def eliminate_laws(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        """The joint's own equations, and what the base feels through it."""
        turn = link.turn
        f, n = turn.outward(f), turn.outward(n)
        S_l, S_a, lever = self.law_axes(link)
        for _ in link.when(not_(link.tree.resting)):
            self.law_terms(link)
        if inertia is not None:
            inertia = self.factor(link, turned(turn, inertia), S_l, S_a)
        e = link.given_3 - S_l.T @ f - S_a.T @ n
        link.e3 = e
        by = self.respond(link, e) - link.y_3
        hand_on(link, lever, f + link.UL3 @ by, n + link.UA3 @ by, inertia)

    def factor(self, link: Any, inertia: Any, S_l: Matrix, S_a: Matrix) -> Any:
        """Responses of the axes; returns the articulated inertia that is left for the base."""
        A, H, I = inertia
        U_l = A @ S_l + H.T @ S_a
        U_a = H @ S_l + I @ S_a
        K = Symmetric.upper(S_l.T @ U_l + S_a.T @ U_a)
        inert = self.inert(link)
        K = Symmetric([x + (inert[i] if i < 3 else 0.0) for i, x in enumerate(K.e)])
        V = (K + link.C3).inverse()
        link.UL3, link.UA3, link.K3, link.V3 = U_l, U_a, K, V
        for _ in link.when(not_(link.tree.resting)):
            self.find_share(link, K)
        lock = link.lock3
        for k in AXES:
            V = locked(V, lock.row(k))[0]
        W_a = U_a @ V
        return (
            A - Symmetric.upper(U_l @ (V @ U_l.T)), H - W_a @ U_l.T, I - Symmetric.upper(W_a @ U_a.T)
        )  # fmt: skip

    def find_share(self, link: Any, K: Symmetric) -> None:
        """How much of drives and dampers is taken at the mean speed, by the response: if not all, the step begins again."""
        x = [AxisOf(link, k) for k in AXES]
        c = [a.damping + a.friction_viscous + a.servo_kd for a in x]
        if self.has_motors(link):
            c = [c[k] + link.motor_c_3[k] for k in AXES]
            K = Symmetric([x + (link.motor_rotor_3[i] if i < 3 else 0.0) for i, x in enumerate(K.e)])
        if all_zero(c, link.servo_kp_3):
            return
        M = K.inverse()
        known = link.known_3 > 0.5
        share = each(lambda k: select(known, link.share_3[k], resolved_share(link.h, x[k].servo_kp, c[k], M[k, k])))
        link.tree.note_unknown(not_(known) & ((share.x < 1.0) | (share.y < 1.0) | (share.z < 1.0)))
        link.share_3, link.known_3 = share, 1.0

    def law_terms(self, link: Any) -> None:
        """Impulses of all laws at the present speeds, but for locked directions; scaled as f."""
        u1 = self.end_speeds(link)
        p = self.effort(link) - times(link.resist_3, u1) - link.push_3 - link.spring_3
        if self.has_friction(link):
            slide, held = link.slide_3, link.locked_3
            linear, law = headings(link, (u1 + link.u0_3) * 0.5)
            heading = choose(link.fresh_3 > 0.5, linear, law)
            grouped = link.grouped > 0.5
            p = p - each(lambda k: select(held[k] > 0.5, 0.0, slide[k] * select(grouped, heading[k], -sign(link.slid_3[k]))))
        link.given_3 = p * (0.25 * link.h)
        if self.has_friction(link):
            for _ in link.tree.when_smooth():
                self.smooth_friction(link, u1)

    def smooth_friction(self, link: Any, u1: Vector) -> None:
        """The same while friction of the vector is smoothed (`ball_friction`): nothing but limits is locked."""
        grouped = (link.grouped > 0.5) & (link.slide_3.x > 0.0)
        for _ in link.when(grouped):
            smooth = smoothed(link, (u1 + link.u0_3) * 0.5, link.slide_3.x, link.fresh_3 > SMOOTH + 0.5)
            p = self.effort(link) - times(link.resist_3, u1) - link.push_3 - link.spring_3 - smooth[0]
            link.given_3, link.fresh_3 = p * (0.25 * link.h), SMOOTH
            link.C3 = Symmetric([x + (link.resist_3[i] if i < 3 else 0.0) for i, x in enumerate(smooth[1].e)])
            lock = [link.lock3.row(k) * select(absolute(link.side_3[k]) > 0.5, 1.0, 0.0) for k in AXES]
            link.lock3, link.locked_3 = Matrix([list(r) for r in lock]), ZERO

    def end_speeds(self, link: Any) -> Vector:
        """u₁ of the present y."""
        u1: Vector = link.y_3 * (4.0 / link.h) - link.u0_3
        return u1

    def respond(self, link: Any, e: Vector) -> Vector:
        """y where the joint lacks e, with locked directions."""
        V, lock, to = link.V3, link.lock3, link.lock_to_3
        y: Vector = link.y_3 + V @ e
        for k in AXES:
            row = lock.row(k)
            V, toward = locked(V, row)
            y = y + toward * (to[k] - dot(row, y))
        return y

    # ---- outwards

    def correct_laws(self, link: Any, u: Vector, g: Vector, respond: Any = None) -> Any:
        """Correct y by what the joint lacks and by how its base changed; returns the change."""
        h, y, u0, K = link.h, link.y_3, link.u0_3, link.K3
        e = link.e3 - link.UL3.T @ (u - link.u_before) - link.UA3.T @ (g - link.g_before)
        link.free_3 = K @ (y * (4.0 / h) - u0) + (e - link.given_3) * (4.0 / h) + self.effort(link)  # times K: impulses
        linear = (respond or self.respond)(link, e)
        if self.has_friction(link):
            for _ in link.tree.when_smooth():
                for _ in link.when(link.fresh_3 < SMOOTH + 0.5):
                    follow_smoothed(link, y * (2.0 / h), linear * (2.0 / h))
        link.u1_3 = linear * (4.0 / h) - u0
        link.tree.note_suspect(True)
        return self.put_speeds(link, linear)

    def judge(self, link: Any) -> None:
        """Linearize the laws anew, where they do something else than expected; not while friction is smoothed."""
        if not self.has_friction(link):
            self.judge_laws(link)
            return
        for _ in link.tree.unless_smooth():
            self.judge_laws(link)

    def judge_laws(self, link: Any) -> None:
        self.solve(link)
        off, K = link.v_3 - link.u1_3, link.K3
        wrong = not_(length(Vector(*(off[k] * K[k, k] for k in AXES))) <= link.tree.law_tolerance)
        bends: Any = False
        if self.has_friction(link):
            slides = (link.grouped > 0.5) & not_(link.locked_3.x > 0.5) & (link.slide_3.x > 0.0)
            bends = slides & bends_off(link, (link.u1_3 + link.u0_3) * 0.5, link.slide_3.x)
        ends = link.fresh_3 < SMOOTH + 0.5
        link.slid_3 = choose(ends, ZERO, link.slid_3)
        expected = self.as_expected(link) & not_(ends)
        link.anew_3 = select((wrong & not_(expected)) | ends, 2.0, select(bends, 1.0, 0.0))
        link.fresh_3 = select(link.anew_3 > 0.5, link.fresh_3, 0.0)
        for _ in link.when(link.anew_3 > 0.5):
            for _ in link.when(link.anew_3 < 1.5):  # it slides as expected, if not quite so
                link.tree.note_changed(True)
            for _ in link.when(link.anew_3 > 1.5):
                for _ in link.tree.when_to_linearize():
                    link.anew_3 = 1.0
            for _ in link.when(link.anew_3 < 1.5):
                link.u1_3, link.fresh_3 = link.v_3, 1.0
                self.linearize(link)

    def as_expected(self, link: Any) -> Any:
        """Whether the solution is of the same kind as the one about which laws are linear, and sliding much the same way."""
        v, held, limit = link.v_3, link.held_3, link.limit_3
        same: Any = is_same_slip((v + link.u0_3) * 0.5, link.about_3)
        same = same | not_(link.slide_3[0] > 0.0) | (held[0] > 0.5) | not_(link.grouped > 0.5)
        for k in AXES:
            side = select(held[k] > 0.5, 0.0, select(absolute(limit[k]) > 0.0, sign(limit[k]), 0.0))
            same = same & (absolute(held[k] - link.locked_3[k]) < 0.5) & (absolute(side - link.side_3[k]) < 0.5)
            same = same & (absolute(servo_side(self.law_of(link, k), v[k]) - link.sat_3[k]) < 0.5)
            turned_round = (link.friction_3[k] * link.slid_3[k] < 0.0) & not_(link.grouped > 0.5)
            same = same & not_(turned_round)
        return same & not_((dot(link.friction_3, link.slid_3) < 0.0) & (link.grouped > 0.5))

    # ---- all laws, exactly

    def solve(self, link: Any) -> None:
        """All laws of the joint: linear ones exactly, friction and limits in sweeps. Speeds in v, impulses in friction, limit."""
        if not self.has_servo(link):
            self.solve_bounded(link, Vector(0.0, 0.0, 0.0))
            return
        link.sat_new_3 = Vector(0.0, 0.0, 0.0)
        tries = link.tree.rounds(SERVO_TRIES)
        for _ in tries:
            at = link.sat_new_3
            self.solve_bounded(link, at)
            new = Vector(*(self.servo_sides(link, at)))
            link.sat_new_3 = new
            tries.leave(largest(new - at) < 0.5)

    def servo_sides(self, link: Any, at: Vector) -> list[Any]:
        """±1 where servos are at a bound, else 0; between one bound and the other they are free, or tries could go to and fro."""
        sides = [servo_side(self.law_of(link, k), link.v_3[k]) for k in AXES]
        return [select(sides[k] * at[k] < 0.0, 0.0, sides[k]) for k in AXES]

    def solve_bounded(self, link: Any, at: Vector) -> None:
        """The same with servos at their bounds (`at` ±1) or within (0)."""
        inside = each(lambda k: select(absolute(at[k]) > 0.5, 0.0, 1.0))
        a = link.a_3 + times(inside, link.servo_a_3)
        b = link.b_3 + link.spring_3 + times(inside, link.servo_b_3) - times(at, link.bound_3)
        K = link.K3
        M = Symmetric([x + (a[i] if i < 3 else 0.0) for i, x in enumerate(K.e)]).inverse()
        link.M3 = M
        f = link.friction_3 if self.has_friction(link) else Vector(0.0, 0.0, 0.0)
        p = link.free_3 - b + f
        if self.has_limits(link):
            for k in AXES:
                p = p + self.limit_row(link, k) * link.limit_3[k]
        link.v_3 = M @ p
        if not self.has_friction(link) and not self.has_limits(link):
            return
        speed = largest(M @ (link.free_3 - b)) + largest(link.u0_3)
        sweeps = link.tree.rounds(SWEEPS)
        for _ in sweeps:
            link.largest_3 = 0.0
            if self.has_limits(link):
                for _ in link.when(self.limits(link)):
                    self.sweep_limits(link)
            if self.has_friction(link):
                self.sweep_friction(link)
            sweeps.leave(link.largest_3 <= link.tree.tiny * speed)

    def sweep_limits(self, link: Any) -> None:
        M = link.M3
        for k in AXES:
            row, v, limit = self.limit_row(link, k), link.v_3, link.limit_3
            answer = M @ row
            A = dot(row, answer)
            there = A > 0.0
            per = 1.0 / select(there, A, 1.0)
            free = dot(row, v) - A * limit[k]
            new = select(there, (clamp(free, link.lower_3[k], link.upper_3[k]) - free) * per, 0.0)
            by = new - limit[k]
            link.v_3 = v + answer * by
            link.limit_3 = Vector(*(new if n == k else x for n, x in enumerate(limit)))
            link.largest_3 = maximum(link.largest_3, absolute(by) * A)

    def sweep_friction(self, link: Any) -> None:
        grouped = link.grouped > 0.5
        for _ in link.when(grouped):
            self.vector_friction(link)
        for _ in link.when(not_(grouped)):
            self.single_frictions(link)

    def vector_friction(self, link: Any) -> None:
        """Friction of the vector of all axes, where all else yields."""
        M, f, u0, hold, slide = link.M3, link.friction_3, link.u0_3, link.hold_3[0], link.slide_3[0]
        free = link.v_3 - M @ f
        K = M.inverse()
        need = K @ free
        able, holds = can_hold(need, hold, u0)
        mean = (free + u0) * 0.5
        rest = (K @ mean) * 2.0
        stays = (dot(rest, rest) <= slide * slide) & (slide > 0.0)
        link.held_3 = Vector(*[select(holds, 1.0, select(stays, select(able, 3.0, 2.0), 0.0))] * 3)
        link.new_3 = choose(holds, -need, choose(stays, -rest, Vector(0.0, 0.0, 0.0)))
        for _ in link.when(not_(holds | stays) & (slide > 0.0)):
            link.slip_3 = 0.5 * length(link.v_3 + u0)
            steps = link.tree.rounds(SLIP_STEPS)
            for _ in steps:
                y, size, following = slip_speed(link.slip_3, rest * 0.5, K, 0.5 * slide)
                link.new_3 = y * (-slide / size)
                link.slip_3 = following
                steps.leave(absolute(size - 1.0) <= link.tree.tiny)
        new = link.new_3
        by = new - f
        v = link.v_3 + M @ by
        held = link.held_3[0]
        link.v_3 = each(lambda k: select(held > 0.5, held_speed(held, u0[k]), v[k]))
        link.friction_3 = new
        link.largest_3 = maximum(link.largest_3, largest(each(lambda k: by[k] * M[k, k])))

    def single_frictions(self, link: Any) -> None:
        """Friction of each axis for itself."""
        M, u0, hold, slide = link.M3, link.u0_3, link.hold_3, link.slide_3
        for k in AXES:
            f, v, held = link.friction_3, link.v_3, link.held_3
            new, kind = solve_friction(v[k] - M[k, k] * f[k], M[k, k], hold[k], slide[k], u0[k])
            by = new - f[k]
            v = v + M.column(k) * by
            still = select(kind > 0.5, held_speed(kind, u0[k]), v[k])
            link.v_3 = Vector(*(still if n == k else x for n, x in enumerate(v)))
            link.friction_3 = Vector(*(new if n == k else x for n, x in enumerate(f)))
            link.held_3 = Vector(*(kind if n == k else x for n, x in enumerate(held)))
            link.largest_3 = maximum(link.largest_3, absolute(by) * M[k, k])

    # ---- after the iterations

    def keep_laws(self, link: Any) -> None:
        """What friction and limits did in the step; whether something stopped."""
        held, before, u0, hold = link.locked_3, link.stuck_3, link.u0_3, link.hold_3
        u1, bound = self.end_speeds(link), link.bound_3
        drive = each(lambda k: clamp(-(link.servo_a_3[k] * u1[k]) - link.servo_b_3[k], -bound[k], bound[k]))
        mean = (u0 + u1) * 0.5
        damper = maximum(0.0, dot(self.damper(link, mean, u1), mean))  # see `OneAxis.note_work`
        link.tree.note_work(dot(drive + self.effort(link) + self.motor_impulse(link, u1), mean) + damper)
        rests = each(lambda k: select((absolute(u0[k]) <= 0.0) & (hold[k] > 0.0), 1.0, 0.0))
        grouped = link.grouped > 0.5
        all_rest = rests.x * rests.y * rests.z > 0.5
        rest = [(held[k] > 0.5) & ((grouped & all_rest) | (not_(grouped) & (rests[k] > 0.5))) for k in AXES]
        stuck = each(lambda k: select(((held[k] > 0.5) & (held[k] < 1.5)) | (held[k] > 2.5) | rest[k], 1.0, 0.0))
        stopped: Any = False
        if self.has_friction(link):
            for k in AXES:
                stopped = stopped | (stuck[k] > before[k])
        link.stuck_3 = stuck
        self.keep_motors(link, u1, stuck)
        if not known_zero(stopped):
            link.tree.note_stopped(stopped, link.at)
        if self.has_limits(link):
            for _ in link.when(self.limits(link)):
                self.keep_limits(link)
        link.known_3 = 0.0

    def keep_limits(self, link: Any) -> None:
        """Which limits an axis leaves, in an impact at the end of the step, and how fast."""
        limit, start = link.limit_3, self.along_limits(link, link.u0_3)
        self.return_to_limits(link)
        now = self.speeds_at_limits(link)
        struck: list[Any] = [0.0, 0.0, 0.0]
        leaves = each(lambda k: leaving_speed(limit[k], start[k], link.restitution_3[k]))
        stopped: Any = False
        for k in AXES:
            more = now[k] - leaves[k]
            acts = absolute(limit[k]) > 0.0
            thrown = more * limit[k] > 0.0
            rests = acts & (absolute(more) <= RESTS * link.fall)  # what rests at a limit stays in an impact at another one
            struck[k] = select(thrown | rests, 1.0, 0.0)
            stopped = stopped | thrown | (acts & (absolute(start[k]) > 0.0))
        link.struck_3, link.leaving_3 = Vector(*struck), leaves
        link.tree.note_stopped(stopped, link.at)

    def limited(self, link: Any) -> tuple[Vector, Vector, Vector]:
        """Coordinates that are limited, at the end of the step, and their bounds."""
        return link.position, link.limit_lower_3, link.limit_upper_3

    def displace(self, link: Any, by: Vector) -> None:
        """Move the coordinates that are limited, alone."""
        raise NotImplementedError

    def return_to_limits(self, link: Any, repairs: bool = False) -> None:
        """Limits that were passed by more than speeds return to are returned to by displacements (`OneAxis.return_to_limit`)."""
        x, lower, upper = self.limited(link)
        low, high = lower - x, x - upper
        passed = each(lambda k: maximum(low[k], high[k]) * link.unit)
        deep = maximum(passed.x, maximum(passed.y, passed.z)) > NEAR_LIMIT
        link.tree.note_stopped(deep, link.at)
        if link.tree.laws_are_rows and not repairs:
            link.tree.rows.note_overlap(deep)
            return
        for _ in link.when(deep):
            far = [select(passed[k] > NEAR_LIMIT, minimum(passed[k], MOST_REPAIR) / link.unit, 0.0) for k in AXES]
            self.displace(link, Vector(*(select(low[k] > high[k], far[k], -far[k]) for k in AXES)))

    def report_laws(self, link: Any, n: Vector) -> None:
        """Impulses along the axes, from what the joint carries there: all but a commanded effort, and those of the laws."""
        h, u0, u1 = link.h, link.u0_3, self.end_speeds(link)
        p = n * (4.0 / h) - self.effort(link)
        drive = each(lambda k: clamp(-(link.servo_a_3[k] * u1[k]) - link.servo_b_3[k], -link.bound_3[k], link.bound_3[k]))
        passive = -times(link.a_3, u1) - link.b_3 - link.spring_3
        rest, held, limit = p - drive - passive, link.held_3, link.limit_3
        friction = each(lambda k: select((held[k] > 0.5) & (absolute(limit[k]) <= 0.0), rest[k], link.friction_3[k]))
        damper = self.damper(link, (u0 + u1) * 0.5, u1)
        drive = drive + self.motor_impulse(link, u1)
        link.p_axis_3, link.p_drive_3, link.p_friction_3, link.p_limit_3 = p, drive, friction, limit
        link.p_lost = -dot(rest + damper, (u0 + u1) * 0.5)
        if self.has_limits(link):
            for _ in link.when(self.limits(link)):
                self.report_impact(link)

    def report_impact(self, link: Any) -> None:
        """Take off what an impact at the end of the step gives back at limits that throw back beyond restitution, about."""
        limit, start, now = link.limit_3, self.along_limits(link, link.u0_3), self.along_limits(link, self.end_speeds(link))
        M = link.K3.inverse()
        more = each(lambda k: now[k] - leaving_speed(limit[k], start[k], link.restitution_3[k]))
        back = each(lambda k: select((absolute(limit[k]) > 0.0) & (more[k] * limit[k] > 0.0), more[k] / M[k, k], 0.0))
        link.p_axis_3, link.p_limit_3 = link.p_axis_3 - back, limit - back

    def damper(self, link: Any, mean: Vector, u1: Vector) -> Vector:
        """Impulses of dampers."""
        seen = each(lambda k: u1[k] + (mean[k] - u1[k]) * link.share_3[k])
        return each(lambda k: -(link.h * (link.damping_3[k] + link.friction_viscous_3[k]) * seen[k]))

    def speeds_at_limits(self, link: Any) -> Vector:
        """u₁ along the limits' directions of the end of the step."""
        u1: Vector = link.u1_3
        return u1

    def hold_laws(self, link: Any) -> None:
        """Before velocities are projected: axes are held, leave a limit, or are free."""
        stuck, struck = link.stuck_3, link.struck_3
        link.C3 = NO_SYMMETRIC
        zero = Vector(0.0, 0.0, 0.0)
        link.given_3, link.y_3, link.locked_3 = zero, zero, stuck
        self.hold_rotors(link)
        rows, to = [IDENTITY.row(k) * select(stuck[k] > 0.5, 1.0, 0.0) for k in AXES], zero
        if self.has_limits(link):
            rows = [choose(struck[k] > 0.5, self.limit_row(link, k), rows[k]) for k in AXES]
            to = each(lambda k: select(struck[k] > 0.5, link.leaving_3[k], 0.0) * (0.5 * link.h))
        link.lock3, link.lock_to_3 = Matrix([list(r) for r in rows]), to

    def follow_laws(self, link: Any, u: Vector, g: Vector) -> None:
        """Joint speeds that the momenta lead to."""
        y = self.respond(link, link.e3 - link.UL3.T @ u - link.UA3.T @ g)
        self.put_speeds(link, y)
        if self.has_motors(link):
            link.y_3 = y

    def rotor_inertias(self, link: Any) -> Vector:
        """Of the motors' rotors, as their axes feel them."""
        ohms = self.resistances(link)
        return Vector(*(select(ohms[k] > 0.0, rotor_inertia(AxisOf(link, k)), 0.0) for k in AXES))

    def hold_rotors(self, link: Any) -> None:
        """Before velocities are projected: what rotors add to the joint's own equations."""
        if not self.has_motors(link):
            return
        for _ in link.when(largest(self.resistances(link)) > 0.0):
            inertia = self.rotor_inertias(link)
            link.C3 = Symmetric([*inertia, 0.0, 0.0, 0.0])
            momentum = times(inertia, link.rotor_3) * (0.5 * link.h)
            link.given_3 = Vector(*(select(link.tree.closing, 0.0, x) for x in momentum))

    def turn_rotor(self, link: Any, bounce: Any, note: Callable[[Any], None], turns: bool = True) -> None:
        """Speeds of rotors after an impact; tells `note` the kinetic energy that they lose, times ¼ h²."""
        if not self.has_motors(link):
            return
        for _ in link.acting():
            ohms = self.resistances(link)
            for _ in link.when(largest(ohms) > 0.0):
                inertia, before = self.rotor_inertias(link), link.rotor_3 * (0.5 * link.h)
                after = link.y_3 + (link.y_3 - before) * bounce
                note(0.5 * (dot(before, times(inertia, before)) - dot(after, times(inertia, after))))
                if turns:
                    link.rotor_3 = Vector(*(select(ohms[k] > 0.0, after[k] * (2.0 / link.h), link.rotor_3[k]) for k in AXES))


def locked(V: Symmetric, row: Vector) -> tuple[Symmetric, Vector]:
    """A response without that along a row, and the answer that moves by one along it."""
    answer = V @ row
    d = dot(row, answer)
    there = d > DEPENDENT * (V[0, 0] + V[1, 1] + V[2, 2]) * dot(row, row)
    toward = answer * select(there, 1.0 / select(there, d, 1.0), 0.0)
    return V - Symmetric([toward[i] * answer[j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]), toward


def smoothed(link: Any, mean: Vector, slide: Any, begins: Any) -> tuple[Vector, Symmetric]:
    """Smoothed friction against a mean speed, and its slope; β is as wide as the speed that friction takes in the step."""
    K = link.K3
    beta = 1.5 * link.tree.smooth * slide / (K[0, 0] + K[1, 1] + K[2, 2])
    size = maximum(sqrt(dot(mean, mean) + beta * beta), SLOWEST / link.h)
    w = choose(begins, ZERO, link.slid_3)
    link.slid_3, link.slip_3 = w, size
    return mean * (slide / size), slip_slope(w * size, mean, size, slide, size)


def follow_smoothed(link: Any, before: Vector, mean: Vector) -> None:
    """The direction of smoothed friction in the linear solution."""
    per = 1.0 / link.slip_3
    w = (mean - link.slid_3 * (dot(before, mean - before) * per)) * per
    link.slid_3 = w * (1.0 / maximum(length(w), 1.0))
    link.tree.note_changed(True)


def headings(link: Any, mean: Vector) -> tuple[Vector, Vector]:
    """The direction of slip at a mean speed: by the law that is linear about `about_3`, and exactly."""
    least = SLOWEST / link.h
    per = 1.0 / maximum(length(link.about_3), least)
    n = link.about_3 * per
    return n + (mean - n * dot(n, mean)) * per, mean * (1.0 / maximum(length(mean), least))


def bends_off(link: Any, mean: Vector, slide: Any) -> Any:
    """Whether friction that slides, and was just made linear, is something else at a mean speed."""
    linear, law = headings(link, mean)
    return (largest(linear - law) * slide > link.tree.law_tolerance) & (link.fresh_3 > 0.5)
