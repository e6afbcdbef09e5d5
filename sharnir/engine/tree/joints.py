"""Joints of the tree step: how each kind moves its link, and how its own equation is eliminated.

Symbols as in `step`. `carried` is the twist that a link has from its base alone, `moved` that with the joint's own motion; both
at the joint frame's origin, in the base's axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.algebra import (
    NO_MATRIX,
    NO_SYMMETRIC,
    ZERO,
    Matrix,
    Quaternion,
    Symmetric,
    Vector,
    cross,
    dot,
    outer,
    skew,
    square,
)  # fmt: skip
from sharnir.emit.expressions import Expression, absolute, atan_root, clamp, maximum, minimum, select, sign, value_of
from sharnir.engine.tree import history
from sharnir.engine.tree.motors import hold_rotor, turn_rotor
from sharnir.laws.axis import (
    AT_LIMIT,
    HELD,
    HOLDING,
    HOLDS,
    INFINITE,
    LEAVING,
    NEAR_LIMIT,
    STAYING,
    Law,
    Solution,
    beyond_servo,
    friction_at_limit,
    friction_speed,
    is_zero,
    leaving_speed,
    linear_servo,
    motor_current,
    motor_terms,
    near_limit,
    not_,
    path_speeds,
    prepare,
    prepare_motor,
    resolved_share,
    solve_axis,
)  # fmt: skip

ROUNDED = 1e-15  # rad, or of the scene's length: a limit that is passed by less is reached
MOST_REPAIR = 0.02  # rad, or of the scene's length: what a step takes back of a passed limit
MORE, LESS = 1.05, 0.95  # of what depends on a response: how it may change between factors
RESTS = 1e-9  # of an axis' speeds: differences that are no motion
THIRD, FIFTH, SEVENTH, NINTH = 1 / 3, 1 / 5, 1 / 7, 1 / 9


def hand_on(link: Any, lever: Vector, f: Vector, n: Vector, inertia: Any) -> None:
    """Give the base the momenta and the inertia that it feels, about its own joint frame's origin; `lever` leads from there."""
    fields = {"f": f, "n": n + cross(lever, f)}
    if inertia is not None:
        A, H, I = inertia
        S = skew(lever)
        H2 = H + S @ A.full
        fields |= {"A": A, "H": H2, "I": I + Symmetric.upper(S @ H.T) - Symmetric.upper(H2 @ S)}
    link.hand_on(**fields)


def turned(turn: Any, inertia: Any) -> tuple[Symmetric, Matrix, Symmetric]:
    """Articulated inertia in the base's axes."""
    A, H, I = inertia
    return turn.similar_symmetric(A), turn.similar(H), turn.similar_symmetric(I)


def eliminate_rotations(link: Any, inertia: Any) -> Symmetric:
    """What is left of the articulated inertia for translations if all rotations are free; keeps what `correct` needs."""
    A, H, I = turned(link.turn, inertia)
    D = I.inverse()
    link.D3, link.B = D, H
    return A - Symmetric.upper(H.T @ (D.full @ H))


def carry(link: Any, lever: Vector, f: Vector, n: Vector) -> None:
    """Keep what a joint carries, on its link at the origin, in the base's axes; and hand it on."""
    link.reaction_f, link.reaction_n = f, n
    hand_on(link, lever, f, n, None)


class OneAxis:
    """What hinges and sliders share: S = (S_l, S_a) is the mean motion of the link per joint speed, in the base's axes.

    Laws (`laws.axis`) are solved exactly on the way outwards, where the base's motion is known; on the way inwards they are
    linear about the last solution: an axis is locked, or resists. Where the two differ the law is linearized anew.
    """

    speed: Callable[[Any], Any]  # at the start of the step, from the stored twists
    ratio: Callable[[Any], Any]  # Δq / 2z
    displace: Callable[[Any, Any], None]  # moves the coordinate alone
    motion: Callable[[Any], tuple[Vector, Vector, Vector]]  # S_l, S_a, and the lever from the base's origin

    def guess(self, link: Any) -> None:
        """The mean speed of the next step, where nothing is known of the last ones: the present speed."""
        z = self.speed(link) / link.per_half_step
        history.begin(link, "z", z)

    def restart(self, link: Any) -> None:
        """A guess from the last two steps."""
        history.restart(link, "z")

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        """What the joint carries, and the impulses along its axis: all but a commanded effort, and those of the laws."""
        turn = link.turn
        f, n = turn.outward(f), turn.outward(n)
        S_l, S_a, lever = self.motion(link)
        link.mean_axis = S_l + S_a
        carry(link, lever, f, n)
        along = dot(S_l, f) + dot(S_a, n)
        if link.tree.rows:
            along = along - link.take("row_e")
        for _ in link.acting():
            self.report_laws(link, along / (0.25 * link.h * link.ratio))

    def report_laws(self, link: Any, whole: Any) -> None:
        """Impulses of the laws from that of all together, at the end of the step."""
        law, u0, h = self.prepare_law(link), link.u0, link.h
        u1 = self.end_speed(link)
        drive = clamp(-(law.servo_a * u1) - law.servo_b, -law.servo_bound, law.servo_bound)
        passive = -(law.a * u1) - law.b
        whole = whole - link.effort * h
        if link.tree.laws_are_rows:
            whole = whole + (link.row_friction + link.row_limit) * (4.0 / h)
        rest = whole - drive - passive
        back, rotor, push = motor_terms(link)
        motor = -(back * (u1 + (u0 - u1) * (0.5 * self.share(link)))) - push
        drive, passive = drive + motor, passive - motor + rotor * (u1 - u0)
        mean = 0.5 * (u0 + u1)
        if link.tree.laws_are_rows:
            link.p_limit = link.row_limit * (4.0 / h)
        else:
            at_limit = absolute(link.limit) > 0.0
            link.p_limit = select(at_limit, rest - friction_at_limit(rest, u1, mean, law), 0.0)
        link.p_friction, link.p_drive, link.p_axis = rest - link.p_limit, drive, whole
        spring = -(h * (link.stiffness * (link.q - link.rest + 0.5 * h * mean)))
        link.p_lost = -((passive - spring + rest) * mean)
        if link.tree.laws_are_rows:
            return
        # the impact at the end of the step gives back what is thrown back beyond restitution, about
        more = u1 - leaving_speed(link.limit, u0, link.restitution)
        inertia = (1.0 / link.D - self.resistance(link)) / (link.ratio * link.ratio) + motor_terms(link)[1]
        back = select(at_limit & (more * link.limit > 0.0), more * inertia, 0.0)
        link.p_axis, link.p_limit = whole - back, link.p_limit - back

    # ---- laws
    #
    # `mode` is what friction and limits do in the present linearization: it slides (±1, the direction), or the axis is locked
    # (HELD, STAYING, ±AT_LIMIT) so that u₀ + u₁ is `goal`. Beside that act p = −law_a u₁ − law_b, and the servo:
    # −servo_a u₁ − servo_b, where servo_a is 0 at its bound.

    def begin(self, link: Any) -> None:
        """Prepare the laws of the step, and a guess of what they do: the same as in the last step."""
        link.u0 = self.speed(link) if link.tree.laws_are_rows else select(link.stuck > 0.5, 0.0, self.speed(link))
        self.begin_rare(link)
        kp, c = link.servo_kp, self.damping(link)
        if not (is_zero(kp) and is_zero(c)):
            link.tree.note_unknown(not_(link.SU > 0.0))
        u0, limit, law = link.u0, link.limit, self.prepare_law(link)
        if link.tree.laws_are_rows:
            rests = (link.stuck > 0.5) | not_(absolute(u0) > 0.0)
            link.mode, link.goal, link.hold, link.slide, link.limit = 0.0, u0, 0.0, 0.0, 0.0
            link.row_bound = select(rests, law.hold, law.slide)
            link.law_a, link.law_b = law.a, law.b
            link.servo_a, link.servo_b = linear_servo(law, u0)
            return
        holds = ((link.stuck > 0.5) | (absolute(u0) * link.SU <= law.hold)) & (law.hold > 0.0)
        link.mode, link.goal = select(holds, HELD, sign(link.z)), u0
        link.law_a, link.law_b, link.hold, link.slide = law.a, law.b, law.hold, law.slide
        link.servo_a, link.servo_b = linear_servo(law, u0)
        for _ in link.when(absolute(limit) > 0.0):
            bound = select(limit > 0.0, law.lower, law.upper)
            stays = absolute(bound) <= 2.0 * absolute(u0) + link.fall
            link.mode = select(stays, select(limit > 0.0, AT_LIMIT, -AT_LIMIT), link.mode)
            link.goal = select(stays, bound + u0, u0)
            link.limit = select(stays, limit, 0.0)

    def prepare_law(self, link: Any) -> Law:
        """All laws of the step.

        The response of the last step says how much of drives and dampers is taken at the mean speed. Any share is a consistent
        law, and responses differ by O(h) from one step to the next: that of this step would take one more factorisation.
        """
        return prepare(link, link.h, link.q, link.u0, link.stuck, self.share(link))

    def damping(self, link: Any) -> Any:
        """What dampers, drives and a motor resist with per speed."""
        c = link.damping + link.friction_viscous + link.servo_kd
        return c if is_zero(link.resistance) else c + link.motor_c

    def share(self, link: Any) -> Any:
        """How much of drives and dampers is taken at the mean speed."""
        kp, c = link.servo_kp, self.damping(link)
        share: Any = 1.0
        if not (is_zero(kp) and is_zero(c)):
            known = link.SU > 0.0
            rotor = motor_terms(link)[1]
            share = select(known, resolved_share(link.h, kp, c, 1.0 / select(known, link.SU + rotor, 1.0)), 1.0)
        return select(link.implicit > 0.0, 0.0, share)

    # ---- motors, and friction that grows with the load: few axes have them

    def begin_rare(self, link: Any) -> None:
        """Prepare a motor, and the load of friction."""
        if not is_zero(link.resistance):
            link.motor_back = link.motor_rotor = link.motor_push = link.motor_c = 0.0
            for _ in link.when(link.resistance > 0.0):
                link.u0 = select((link.rotor_inertia > 0.0) & not_(link.stuck > 0.5), link.rotor, link.u0)
                link.motor_back, link.motor_rotor, link.motor_push, link.motor_c = prepare_motor(link, link.h, link.u0)
        if not is_zero(link.friction_load):
            link.load = 0.0
            for _ in link.when(link.friction_load > 0.0):
                link.load = link.friction_load * link.reaction * link.h

    def keep_rare(self, link: Any, u1: Any) -> None:
        """The current and the speed of a motor's rotor at the end of the step."""
        if is_zero(link.resistance):
            return
        for _ in link.when(link.resistance > 0.0):
            link.current = motor_current(link, link.h, u1 + (link.u0 - u1) * (0.5 * self.share(link)))
            link.rotor = select(link.stuck > 0.5, 0.0, u1)

    def learn_response(self, link: Any) -> None:
        """What the axis resists with beside its laws, for the next step (for this one, where nothing was known)."""
        link.SU = 1.0 / link.D - self.resistance(link)

    def resistance(self, link: Any) -> Any:
        """Minus the slope of the linear laws by z, scaled as f."""
        return (link.law_a + link.servo_a) * (link.ratio * link.ratio)

    def linear_laws(self, link: Any, u1: Any) -> Any:
        """The linear laws and friction that slides, scaled as f."""
        h = link.h
        p = link.effort * h - (link.law_a + link.servo_a) * u1 - link.law_b - link.servo_b
        return 0.25 * h * link.ratio * (p - direction(link.mode) * link.slide)

    def law_terms(self, link: Any) -> None:
        """What the laws contribute to the joint's own equation."""
        link.given, link.slope = self.linear_laws(link, self.end_speed(link)), self.resistance(link)
        locked = is_locked(link.mode)
        link.lock = select(locked, 1.0, 0.0)
        if link.tree.branches_on_laws:
            for _ in link.when(locked):
                link.jump = self.to_goal(link)
        else:
            link.jump = self.to_goal(link)

    def to_goal(self, link: Any) -> Any:
        """Change of z that locks the axis."""
        return link.goal * (0.25 * link.h) / link.ratio - link.z

    def update_ratio(self, link: Any) -> None:
        link.ratio = self.ratio(link)

    def end_speed(self, link: Any) -> Any:
        """u₁ at the present z."""
        return 4.0 / link.h * link.ratio * link.z - link.u0

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        """Correct z by what the joint lacks and by how its base changed; returns the change."""
        lacks = link.e - dot(link.U_a, g - link.g_before) - dot(link.U_l, u - link.u_before)
        link.dz = lacks * link.D
        for _ in link.acting():
            self.check_laws(link)
        dz = link.dz
        link.z = link.z + dz
        return absolute(dz) * link.unit

    def check_laws(self, link: Any, exactly: bool = False) -> None:
        """Lock z where the axis is locked; note whether the laws may do something else than expected.

        All axes are judged by one linear solution: `judge` comes after the sweep, and the next iteration makes the correction. An
        axis that takes its new state at once misleads those beyond it, and the active set goes round in circles. `exactly`: with
        the exact derivative, whose factors are made in each iteration.
        """
        link.z_free = link.z + link.dz
        if link.tree.laws_are_rows:
            link.tree.note_suspect(beyond_servo(link, link.h, self.free_speed(link)))
            return
        mode = link.mode
        if link.tree.branches_on_laws:
            for _ in link.when(is_locked(mode)):
                link.dz = self.to_goal(link)
        else:
            link.dz = select(is_locked(mode), self.to_goal(link), link.dz)
        if exactly or not link.tree.compares_once:
            wrong, rare, _, _ = self.compare(link)
            link.tree.note_suspect(wrong | rare)
            return
        for _ in link.tree.when_factored(True):
            wrong, rare, _, _ = self.compare(link)
            link.tree.note_suspect(wrong | rare)
            self.know_range(link, wrong | rare)
        for _ in link.tree.unless_factored():
            u1 = self.free_speed(link)
            link.tree.note_suspect(not_((u1 > link.safe_lower) & (u1 < link.safe_upper)))

    def free_speed(self, link: Any) -> Any:
        """u₁ by the linear solution, without friction that locks the axis."""
        return 4.0 / link.h * link.ratio * link.z_free - link.u0

    def know_range(self, link: Any, suspect: Any) -> None:
        """Between which u₁ of the linear solution all laws do what is expected: for the iterations up to the next factors.

        Responses change little between these; what they may is left out of the range.
        """
        u0, h, mode, hold, slide = link.u0, link.h, link.mode, link.hold, link.slide
        A = link.ratio * link.ratio * link.D
        rests = absolute(mode - HELD) < 0.5  # friction holds what rests
        beyond = maximum(-(direction(mode) * u0), (hold - slide) * A * MORE)
        lower = select(rests, -(hold * A * LESS), select(mode > 0.0, beyond, -INFINITE))
        upper = select(rests, hold * A * LESS, select(mode > 0.0, INFINITE, -beyond))
        slides = absolute(mode) < 1.5
        free = slides & not_(hold + slide > 0.0)
        lower, upper = select(free, -INFINITE, lower), select(free, INFINITE, upper)
        low, high = path_speeds(link, h, u0)
        at, bound, bounded = link.servo_a, link.servo_max_force * h, link.servo_a > 0.0
        per = 1.0 / select(bounded, at, 1.0)
        low = maximum(low, select(bounded, (-bound - link.servo_b) * per, -INFINITE))
        high = minimum(high, select(bounded, (bound - link.servo_b) * per, INFINITE))
        lower, upper = select(slides, maximum(lower, low), lower), select(slides, minimum(upper, high), upper)
        known = not_(suspect) & (slides | (rests & not_(absolute(u0) > 0.0)))
        link.safe_lower, link.safe_upper = select(known, lower, INFINITE), select(known, upper, -INFINITE)

    def compare(self, link: Any) -> tuple[Any, Any, Any, Any]:
        """Whether friction does not what is expected; whether a limit or the servo's bound may act; u₁ expected, mode found."""
        u0, D, h, mode = link.u0, link.D, link.h, link.mode
        A = link.ratio * link.ratio * D
        free = 4.0 / h * link.ratio * link.z_free - u0
        expected = select(is_locked(mode), link.goal - u0, free)
        v, found = friction_speed(free + direction(mode) * (link.slide * A), A, link.hold, link.slide, u0)
        wrong = (absolute(found - mode) > 0.5) & (absolute(v - expected) > link.tree.law_tolerance * A)
        rare = near_limit(link, h, u0, v) | beyond_servo(link, h, v) | (absolute(mode) > AT_LIMIT - 0.5)
        return wrong, rare, expected, found

    def judge(self, link: Any) -> None:
        """Linearize the laws anew, where they do something else than expected."""
        if link.tree.laws_are_rows:
            self.judge_servo(link)
            return
        wrong, rare, expected, mode = self.compare(link)
        for _ in link.when(rare):
            self.solve_laws(link, expected)
        if link.tree.rows:
            wrong = wrong & not_(self.goes_on(link, expected))
        for _ in link.when(wrong & not_(rare)):
            for _ in link.tree.when_to_linearize():
                turns = direction(mode) * direction(link.mode) < 0.0  # between sliding one way and the other it stays
                link.goal = select(turns | (mode > STAYING - 0.5), 0.0, link.u0)
                link.mode = select(turns, STAYING, mode)

    def judge_servo(self, link: Any) -> None:
        """Linearize the servo anew, where it reaches its bound or leaves it: from one bound to the other by what is between."""
        u1, law = self.free_speed(link), self.prepare_law(link)
        a, b = linear_servo(law, u1)
        jumps = not_((a > 0.0) | (link.servo_a > 0.0)) & (b * link.servo_b < 0.0)
        for _ in link.when(absolute((a - link.servo_a) * u1 + b - link.servo_b) > link.tree.law_tolerance):
            for _ in link.tree.when_to_linearize():
                link.servo_a, link.servo_b = select(jumps, law.servo_a, a), select(jumps, law.servo_b, b)

    def goes_on(self, link: Any, expected: Any) -> Any:
        """Whether friction slides as it did, against the path of the step, once laws are corrected one at a time.

        The response of the axis alone, without the rows beside the forest, may say that it holds, and the reaction where it is
        held, which is that of the loop, that it slides: iterations would go round in circles.
        """
        return link.tree.single & (direction(link.mode) * (expected + link.u0) > 0.0)

    def solve_laws(self, link: Any, expected: Any) -> None:
        """All laws, exactly."""
        u0, h = link.u0, link.h
        law = self.prepare_law(link)
        SU = 1.0 / link.D - self.resistance(link)
        A = link.ratio * link.ratio / SU
        per_z = 4.0 / h * link.ratio
        z = link.z_free - self.linear_laws(link, per_z * link.z_free - u0) / SU
        found = solve_axis(per_z * z - u0 + A * (link.effort * h), A, law, u0)
        link.limit = found.limit
        mode, goal = self.mode_of(link, law, found)
        a, b = linear_servo(law, found.u1)
        side = (
            (link.servo_a > 0.0) & not_(a > 0.0) | (a > 0.0) & not_(link.servo_a > 0.0) | not_(a > 0.0) & (b * link.servo_b < 0.0)
        )
        changed = (absolute(mode - link.mode) > 0.5) | side
        for _ in link.when(changed & (absolute(found.u1 - expected) > link.tree.law_tolerance * A)):
            for _ in link.tree.when_to_linearize():
                link.mode, link.goal, link.servo_a, link.servo_b = mode, goal, a, b

    def mode_of(self, link: Any, law: Law, found: Solution) -> tuple[Any, Any]:
        """Mode and goal of a solution."""
        u0, held = link.u0, found.held
        slides = sign(found.u1 + u0)
        turns = (slides * direction(link.mode) < 0.0) & (law.slide > 0.0)
        mode = select(held > 0.5, held + (HELD - HOLDS), select(turns, STAYING, slides))
        at_limit = absolute(found.limit) > 0.0
        goal = select(at_limit, found.u1 + u0, select(mode > STAYING - 0.5, 0.0, u0))
        return select(at_limit, select(found.limit > 0.0, AT_LIMIT, -AT_LIMIT), mode), goal

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        """The joint's own equation, and what the base feels through it."""
        turn = link.turn
        f, n = turn.outward(f), turn.outward(n)
        S_l, S_a, lever = self.motion(link)
        for _ in link.when(not_(link.tree.resting)):
            for _ in link.acting():
                self.law_terms(link)
        locked = link.lock > 0.5
        if inertia is not None:
            A, H, I = turned(turn, inertia)
            U_l = A @ S_l + H.T @ S_a
            U_a = H @ S_l + I @ S_a
            D = 1.0 / (dot(S_l, U_l) + dot(S_a, U_a) + link.slope)
            link.U_l, link.U_a, link.D = U_l, U_a, D
            D = select(locked, 0.0, D)
            W_a = U_a * D
            inertia = A - square(U_l, D), H - outer(W_a, U_l), I - square(U_a, D)
        U_l, U_a = link.U_l, link.U_a
        e = link.given - dot(S_l, f) - dot(S_a, n)
        if link.tree.rows:
            e = e + link.take("row_e")
        link.e = e
        dz = select(locked, link.jump, e * link.D)
        hand_on(link, lever, f + U_l * dz, n + U_a * dz, inertia)

    def predict(self, link: Any) -> None:
        """Keep what the next step needs of this one."""
        for _ in link.acting():
            self.keep_law(link)
            self.return_to_limit(link)
        history.keep(link, "z", link.unit)

    def extrapolate(self, link: Any) -> None:
        """The guess of the step that begins."""
        history.guess(link, "z")

    def return_to_limit(self, link: Any, repairs: bool = False) -> None:
        """A limit that was passed by more than speeds return to is returned to by displacements, a little in each step."""
        lower, upper = link.limit_lower, link.limit_upper
        if not any(isinstance(x, Expression) or absolute(x) < INFINITE for x in (lower, upper)):
            return
        low, high = lower - link.q, link.q - upper
        passed = maximum(low, high)
        by_rounding = (passed > 0.0) & (passed * link.unit <= ROUNDED)
        link.q = select(by_rounding, select(low > high, lower, upper), link.q)
        deep = passed * link.unit > NEAR_LIMIT
        link.tree.note_stopped(deep, link.at)
        if link.tree.laws_are_rows and not repairs:  # together with other displacements (`step.repair_limits`)
            link.tree.rows.note_overlap(deep)
            return
        for _ in link.when(deep):
            self.displace(link, select(low > high, 1.0, -1.0) * minimum(passed, MOST_REPAIR / link.unit))

    def note_work(self, link: Any) -> None:
        """Work of commands and drives in the step.

        A damper that the step does not resolve acts against the speed of its end, and gives energy where that is opposite to the
        mean.
        """
        u0, u1, h = link.u0, self.end_speed(link), link.h
        back, _, push = motor_terms(link)
        mean, seen = 0.5 * (u0 + u1), u1 + (u0 - u1) * (0.5 * self.share(link))
        p = link.effort * h - link.servo_a * u1 - link.servo_b - back * seen - push
        damper = maximum(0.0, -(h * (link.damping + link.friction_viscous) * seen * mean))
        link.tree.note_work(p * mean + damper)

    def keep_law(self, link: Any) -> None:
        """What friction and limit did in the step; whether something stopped."""
        mode, limit, stuck = link.mode, link.limit, link.stuck
        self.note_work(link)
        self.learn_response(link)
        if link.tree.laws_are_rows:
            self.keep_rare(link, self.end_speed(link))
            return
        if not link.tree.branches_on_laws:
            self.keep_stop(link, mode, limit, stuck)
        else:  # what slides away from limits goes on
            link.mode, link.goal, link.stuck = 0.0, 0.0, 0.0
            for _ in link.when(is_locked(mode) | (absolute(limit) > 0.0)):
                self.keep_stop(link, mode, limit, stuck)
        self.keep_rare(link, self.end_speed(link))

    def keep_stop(self, link: Any, mode: Any, limit: Any, was_stuck: Any) -> None:
        """Whether friction holds the axis now, and at which speed it leaves a limit."""
        u0 = link.u0
        holds = ((mode > HELD - 0.5) & (mode < HELD + 0.5)) | ((mode > HOLDING - 0.5) & (mode < HOLDING + 0.5))
        stays = (mode > STAYING - 0.5) & (mode < STAYING + 0.5) & (link.hold > 0.0)
        free = self.free_speed(link)  # u₁ without friction
        can_hold = absolute(free) <= link.hold * (link.ratio * link.ratio * link.D)
        stuck = select(holds | (stays & ((absolute(u0) <= 0.0) | can_hold)), 1.0, 0.0)
        leaves = leaving_speed(limit, u0, link.restitution)
        more = self.end_speed(link) - leaves
        thrown = more * limit > 0.0
        leaves_so = (absolute(limit) > 0.0) & (absolute(more) <= RESTS * (absolute(u0) + link.fall))
        leaving = thrown | leaves_so  # what rests at a limit stays there in an impact elsewhere
        link.mode = select(leaving, LEAVING, 0.0)
        link.goal = select(leaving, leaves, 0.0)
        hit = (absolute(limit) > 0.0) & (absolute(u0) > 0.0)
        link.tree.note_stopped((stuck > was_stuck) | hit | thrown, link.at)
        link.stuck = stuck

    turn_rotor = staticmethod(turn_rotor)

    def hold(self, link: Any) -> None:
        """Before velocities are projected: the axis is held, leaves a limit, or is free. The guess of the next step is kept."""
        link.z_new = link.z
        link.z, link.given, link.slope = 0.0, 0.0, 0.0
        for _ in link.acting():
            hold_rotor(link)
        if link.tree.laws_are_rows:
            link.lock = link.jump = 0.0
            return
        for _ in link.acting():
            leaves = link.mode > LEAVING - 0.5
            link.lock = select((link.stuck > 0.5) | leaves, 1.0, 0.0)
            link.jump = select(leaves, link.goal / link.per_half_step, 0.0)

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        """Joint speed that the momenta lead to."""
        z = (link.e - dot(link.U_l, u) - dot(link.U_a, g)) * link.D
        link.z = select(link.lock > 0.5, link.jump, z)

    def release(self, link: Any) -> None:
        """After velocities were projected: the guess of the next mean speed."""
        link.z = link.z_new

    def spin(self, link: Any, g: Vector) -> Vector:
        """Spin of the link where its joint frame has the spin g."""
        return g


def is_locked(mode: Any) -> Any:
    """Whether an axis is locked."""
    return absolute(mode) > 1.5


def direction(mode: Any) -> Any:
    """±1 if the axis slides, 0 if it is locked."""
    return select(is_locked(mode), 0.0, mode)


class Hinge(OneAxis):
    """A rotation about z of the joint frame: g = g_base + z ā, ā the mean axis."""

    def turned(self, link: Any) -> Any:
        """The link's axes in the joint frame."""
        c, s = link.c, link.s
        return Matrix(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))

    def anchor(self, link: Any) -> Any:
        """The joint frame's origin in the base's frame."""
        return link.anchor

    def arms(self, link: Any) -> None:
        """Keep the mean axis, and the mean arm of the joint frame's origin."""
        base = link.base
        link.lever, link.axis_mean = base.mean(link.local_anchor), base.mean(link.local_axis)

    def carried(self, link: Any) -> tuple[Vector, Vector]:
        base = link.base
        return base.u + base.swept(link.local_anchor), base.g

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u, g + link.axis_mean * link.z

    def motion(self, link: Any) -> tuple[Vector, Vector, Vector]:
        return ZERO, link.axis_mean, link.lever

    def speed(self, link: Any) -> Any:
        """Joint speed at the start of the step, from the stored twists."""
        W = link.turn.outward(link.W) - link.base.W
        return dot(link.local_axis, W) * link.per_half_step

    def half_tangent(self, link: Any) -> tuple[Any, Any]:
        """k and tan ½Δq = z k."""
        g = link.base.g
        k = 1.0 / (1.0 + dot(g, g) + link.z * dot(g, link.local_axis))
        return k, link.z * k

    def ratio(self, link: Any) -> Any:
        """Δq / 2z."""
        k, t = self.half_tangent(link)
        return k * arctangent_ratio(t * t)

    def advance(self, link: Any) -> None:
        k, t = self.half_tangent(link)
        link.q = link.q + link.z * 2.0 * (k * arctangent_ratio(t * t))
        self.turn_by(link, t)

    def displace(self, link: Any, by: Any) -> None:
        """Move the coordinate alone, by about so much (which is small)."""
        t = 0.5 * by
        link.q = link.q + by * arctangent_ratio(t * t)
        self.turn_by(link, t)

    def turn_by(self, link: Any, t: Any) -> None:
        """Cosine and sine after a turn by 2 atan(t)."""
        tt = t * t
        w = 1.0 / (1.0 + tt)
        dc, ds = (1.0 - tt) * w, t * 2.0 * w
        c, s = link.c, link.s
        c, s = c * dc - s * ds, s * dc + c * ds
        fit = 1.5 - 0.5 * (c * c + s * s)
        link.c, link.s = c * fit, s * fit


def arctangent_ratio(tt: Any) -> Any:
    """atan(t)/t of t² = tt: for |t| < 0.1 a series, which is exact to rounding there."""
    series = 1.0 - tt * (THIRD - tt * (FIFTH - tt * (SEVENTH - tt * NINTH)))
    if not isinstance(value_of(tt), Expression) and tt < 0.01:
        return series
    return select(tt < 0.01, series, atan_root(tt))


class Slider(OneAxis):
    """A translation along z of the joint frame, whose axis the base carries."""

    def turned(self, link: Any) -> Any:
        return Matrix(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))

    def anchor(self, link: Any) -> Any:
        return link.anchor + link.frame.column(2) * link.q

    arms = Hinge.arms

    def carried(self, link: Any) -> tuple[Vector, Vector]:
        base = link.base
        return base.u + base.swept(self.start(link)), base.g

    def mean_start(self, link: Any) -> Any:
        """The mean of `start`."""
        return link.lever + link.axis_mean * link.q if link.own_axes else link.lever

    def start(self, link: Any) -> Any:
        """Arm of the link's origin at the start of the step."""
        return link.local_anchor + link.local_axis * link.q if link.own_axes else link.local_anchor

    def end_axis(self, link: Any) -> Any:
        """The axis at the end of the step."""
        return link.axis_mean * 2.0 - link.local_axis

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u + self.end_axis(link) * link.z, g

    def motion(self, link: Any) -> tuple[Vector, Vector, Vector]:
        axis = self.end_axis(link)
        return axis - cross(link.base.g, axis), ZERO, self.mean_start(link) + axis * link.z

    def speed(self, link: Any) -> Any:
        base, turn = link.base, link.turn
        v = turn.outward(link.V - cross(link.W, link.local_com))
        arm = self.start(link) - base.local_com
        return dot(link.local_axis, v - base.V - cross(base.W, arm)) * link.per_half_step

    def ratio(self, link: Any) -> Any:
        return 1.0

    def advance(self, link: Any) -> None:
        link.q = link.q + link.z * 2.0

    def displace(self, link: Any, by: Any) -> None:
        link.q = link.q + by


class NoLaws:
    """A joint without laws on its axes."""

    def arms(self, link: Any) -> None: ...

    def extrapolate(self, link: Any) -> None: ...

    def begin(self, link: Any) -> None: ...

    def guess(self, link: Any) -> None: ...

    def restart(self, link: Any) -> None: ...

    def report(self, link: Any, f: Vector, n: Vector) -> None: ...

    def update_ratio(self, link: Any) -> None: ...

    def learn_response(self, link: Any) -> None: ...

    def judge(self, link: Any) -> None: ...

    def spin(self, link: Any, g: Vector) -> Vector:
        return g

    def hold(self, link: Any) -> None: ...

    def release(self, link: Any) -> None: ...


class Ball(NoLaws):
    """Three rotations: g = g_base + z, z a vector in the base's axes."""

    def turned(self, link: Any) -> Any:
        return link.rotation.matrix()

    anchor, carried = Hinge.anchor, Hinge.carried

    def arms(self, link: Any) -> None:
        link.lever = link.base.mean(link.local_anchor)

    def guess(self, link: Any) -> None:
        z = link.turn.outward(link.W) - link.base.W
        history.begin(link, "zv", z)

    def restart(self, link: Any) -> None:
        history.restart(link, "zv")

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        turn = link.turn
        carry(link, link.lever, turn.outward(f), turn.outward(n))

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        du, dg = u - link.u_before, g - link.g_before
        missing = link.e3 - link.B @ du
        change = link.D3 @ missing - dg
        link.zv = link.zv + change
        return largest(change)

    def hold(self, link: Any) -> None:
        link.zv_new = link.zv

    def release(self, link: Any) -> None:
        link.zv = link.zv_new

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        link.zv = link.D3 @ (link.e3 - link.B @ u) - g

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u, g + link.zv

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        turn, lever = link.turn, link.lever
        f, n = turn.outward(f), turn.outward(n)
        if inertia is not None:
            inertia = eliminate_rotations(link, inertia), NO_MATRIX, NO_SYMMETRIC
        e = -n
        link.e3 = e
        hand_on(link, lever, f + link.B.T @ (link.D3 @ e), ZERO, inertia)

    def advance(self, link: Any) -> None:
        """R₁ = cay(2g) R₀ of link and base; in quaternions, cay(2g) is (g, 1) but for its length."""
        back, g = Quaternion(-link.base.g, 1.0), Quaternion(link.g, 1.0)
        if link.own_axes:
            new = Quaternion(link.frame.T @ back.v, 1.0) * link.rotation * g
        else:
            by = back * g
            new = Quaternion((link.base.R @ link.frame).T @ by.v, by.w) * link.rotation
        link.rotation = new.normalized()

    def predict(self, link: Any) -> None:
        history.keep(link, "zv")

    def extrapolate(self, link: Any) -> None:
        history.guess(link, "zv")


class Free(NoLaws):
    """All six axes, on the ground: the twist itself, u at the centre of mass."""

    def turned(self, link: Any) -> Any:
        return link.rotation.matrix()

    def anchor(self, link: Any) -> Any:
        return link.position

    def carried(self, link: Any) -> tuple[Vector, Vector]:
        return link.base.u, ZERO

    def guess(self, link: Any) -> None:
        turn = link.turn
        history.begin(link, "zv", turn.outward(link.W))
        history.begin(link, "zl", turn.outward(link.V - cross(link.W, link.local_com)))

    def restart(self, link: Any) -> None:
        history.restart(link, "zv")
        history.restart(link, "zl")

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        link.zl, link.zv = link.zl + link.dl, link.zv + link.e3
        a, b = link.dl, link.e3
        return largest((*(a * link.tree.per_metre), *b))

    def hold(self, link: Any) -> None:
        link.zl_new, link.zv_new = link.zl, link.zv

    def release(self, link: Any) -> None:
        link.zl, link.zv = link.zl_new, link.zv_new

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        link.zl, link.zv = link.dl, link.e3

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u + link.zl, link.zv

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        """Solve A u + Hᵀ g = −f, H u + I g = −n."""
        turn = link.turn
        f, n = turn.outward(f), turn.outward(n)
        if inertia is not None:
            link.A3 = eliminate_rotations(link, inertia).inverse()
        D, H = link.D3, link.B
        du = link.A3 @ (H.T @ (D @ n) - f)
        link.dl, link.e3 = du, link.tree.refined(link, D, D @ (-n - H @ du))

    def advance(self, link: Any) -> None:
        link.position = link.position + (link.zl) * 2.0
        g = Quaternion(link.g, 1.0)
        new = link.rotation * g if link.own_axes else g * link.rotation
        link.rotation = new.normalized()

    def predict(self, link: Any) -> None:
        history.keep(link, "zv")
        history.keep(link, "zl", link.tree.per_metre)

    def extrapolate(self, link: Any) -> None:
        history.guess(link, "zv")
        history.guess(link, "zl")


class Weld(NoLaws):
    """No axis: the link moves with its base."""

    turned = Slider.turned
    anchor, arms, carried = Hinge.anchor, Ball.arms, Hinge.carried

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        Ball.report(self, link, f, n)  # type: ignore[arg-type]

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        return 0.0

    def follow(self, link: Any, u: Vector, g: Vector) -> None: ...

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        return u, g

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        turn = link.turn
        inertia = None if inertia is None else turned(turn, inertia)
        hand_on(link, link.lever, turn.outward(f), turn.outward(n), inertia)

    def advance(self, link: Any) -> None: ...

    def predict(self, link: Any) -> None: ...


class Prescribed(NoLaws):
    """A motion that is given: zl, zv are the mean twist of the step, zl1, zv1 the one that is stored."""

    turned, anchor = Free.turned, Free.anchor
    carried = Free.carried

    def moved(self, link: Any, u: Vector, g: Vector) -> tuple[Vector, Vector]:
        rests, closes = link.tree.resting, link.tree.closing

        def moves(start: Vector, mean: Vector) -> Vector:
            """Where velocities are projected, those of the start; not at all where the pose is closed."""
            return Vector(*(select(closes, 0.0, select(rests, a, b)) for a, b in zip(start, mean, strict=True)))

        return u + moves(link.zl1, link.zl), moves(link.zv1, link.zv)

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        return 0.0

    def follow(self, link: Any, u: Vector, g: Vector) -> None: ...

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None: ...

    def release(self, link: Any) -> None:
        link.V, link.W = link.turn.inward(link.zl1), link.turn.inward(link.zv1)

    def advance(self, link: Any) -> None:
        Free.advance(self, link)  # type: ignore[arg-type]
        self.release(link)

    def predict(self, link: Any) -> None: ...


def largest(numbers: Any) -> Any:
    """The largest absolute value."""
    out: Any = 0.0
    for x in numbers:
        out = maximum(out, absolute(x))
    return out
