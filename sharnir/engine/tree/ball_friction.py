"""Ball joints on which dry friction acts alone, as one bound of the vector of the relative spin.

Symbols as in `step`. y = zv is the mean relative spin in the base's axes, ū = 2y/h and u₁ = 2ū − u₀; K is the articulated inertia
about the joint. Friction that slides is −slide ū/|ū|, at the present speed; its slope C = ½ slide/|ū| (E − n nᵀ) is in the
factors. A ball that holds (u₁ = 0) or stays where it is (ū = 0) moves as one body with its base.

What a ball does is found after the outward pass, for all balls from the same linear solution: its own law is solved exactly with
its own response K, and is linear about that solution in the next pass. This is the primal–dual active set (a semismooth Newton)
iteration of friction problems (Stadler 2004; Hüeber, Stadler and Wohlmuth 2008).

Where this does not end, friction is smoothed for some passes, −slide ū/√(ū² + β²), by the primal–dual Newton iteration of Chan,
Golub and Mulet (1999) while β falls; from there it does. w is then the direction of friction as the linear solution has it.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import IDENTITY, NO_SYMMETRIC, ZERO, Matrix, Symmetric, Vector, dot
from sharnir.emit.expressions import Expression, absolute, maximum, select
from sharnir.engine.tree.joints import hand_on, largest, turned
from sharnir.engine.tree.several_axes import SLOWEST, SMOOTH, AxisOf, bends_off, follow_smoothed, headings, known_zero, smoothed
from sharnir.laws.axis import FREE_AXIS, HOLDS, STAYS, friction_bounds, not_
from sharnir.laws.ball import can_hold, choose, is_same_slip, length, slip_slope, slip_speed

SLIP_STEPS = 12
NEAR = 1e-3  # of itself: to which the speed of slip is found, about which friction is linear


class BallFriction:
    """The friction of a ball; `mode` is what it does: FREE_AXIS (it slides), HOLDS, STAYS (+ 1 if it could hold), or SMOOTH."""

    # ---- before the iterations

    def begin(self, link: Any, speeds: Vector) -> None:
        """Bounds of the step, and a guess of what friction does: the same as in the last step."""
        h, stuck = link.h, link.stuck_3.x
        u0 = choose(stuck > 0.5, ZERO, speeds)
        size = length(u0)
        hold, slide = friction_bounds(AxisOf(link, 0), h, size, stuck)
        holds = ((hold > slide) | (size <= 0.0) | (stuck > 0.5)) & (hold > 0.0)
        link.u0_3, link.hold, link.slide = u0, hold, slide
        link.mode, link.fresh_3 = select(holds, HOLDS, FREE_AXIS), 0.0
        mean = link.zv * (2.0 / h)
        link.about_3 = choose(dot(mean, u0) > 0.0, mean, u0)
        link.lock_to_3 = u0 * (0.25 * h)
        link.command_3 = ZERO
        link.tree.note_friction()

    # ---- inwards

    def floor(self, link: Any, K: Symmetric) -> Any:
        """A slip speed below which the slope of friction would drown the inertia in rounding."""
        least = 0.5 * link.tree.root_epsilon * link.slide / (K[0, 0] + K[1, 1] + K[2, 2])
        return maximum(least, SLOWEST / link.h)

    def update_terms(self, link: Any) -> None:
        """The impulse at the present speed, scaled as f: by the law, or by the linear one right after it was made."""
        mean = link.zv * (2.0 / link.h)
        linear, law = headings(link, mean)
        p = choose(link.fresh_3 > 0.5, linear, law) * link.slide
        link.given_3 = (link.command_3 - choose(link.mode > 0.5, ZERO, p)) * (0.25 * link.h)
        for _ in link.tree.when_smooth():
            force, link.C3 = smoothed(link, mean, link.slide, link.mode > SMOOTH + 0.5)
            link.mode, link.fresh_3 = SMOOTH, 0.0
            link.given_3 = (link.command_3 - force) * (0.25 * link.h)

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        """The joint's own equation, and what the base feels through it."""
        turn, lever = link.turn, link.base.M @ link.local_anchor
        f, n = turn.outward(f), turn.outward(n)
        if link.tree.rests:
            link.given_3 = ZERO
        else:
            self.update_terms(link)
        if inertia is not None:
            inertia = self.factor(link, turned(turn, inertia))
        link.e3 = link.given_3 - n
        by = self.respond(link, link.e3) - link.zv
        hand_on(link, lever, f + link.B.T @ by, n + link.K3 @ by, inertia)

    def factor(self, link: Any, inertia: Any) -> Any:
        """The response of the relative spin; returns the articulated inertia that is left for the base."""
        A, H, K = inertia
        C = NO_SYMMETRIC if link.tree.rests else self.slope(link, K)
        V = (K + C).inverse()
        locked = link.mode > 0.5
        V = Symmetric([select(locked, 0.0, x) for x in V.e])
        link.B, link.K3, link.V3 = H, K, V
        left = C @ V.full  # E − K V
        left = Matrix([list(choose(locked, IDENTITY.row(k), left.row(k))) for k in range(3)])
        return A - Symmetric.upper(H.T @ (V.full @ H)), left @ H, Symmetric.upper(left @ K.full)

    def slope(self, link: Any, K: Symmetric) -> Symmetric:
        """C at the present speed, or where the law was just made linear."""
        about = choose(link.fresh_3 > 0.5, link.about_3, link.zv * (2.0 / link.h))
        C = slip_slope(about, about, length(about), link.slide, self.floor(link, K))
        smooth = link.mode < SMOOTH + 0.5
        link.C3 = Symmetric([select(smooth, x, y) for x, y in zip(link.C3.e, C.e, strict=True)])
        both: Symmetric = link.C3
        return both

    def respond(self, link: Any, e: Vector) -> Vector:
        """y where the joint lacks e."""
        return choose(link.mode > 0.5, link.lock_to_3, link.zv + link.V3 @ e)

    # ---- outwards

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        """Correct y by what the joint lacks and by how its base changed; returns the largest change."""
        h, u0 = link.h, link.u0_3
        e = link.e3 - link.B @ (u - link.u_before) - link.K3 @ (g - link.g_before)
        y = self.respond(link, e)
        link.free_3 = link.K3 @ (link.zv * (4.0 / h) - u0) + (e - link.given_3) * (4.0 / h) + link.command_3
        return self.put(link, y)

    def put(self, link: Any, y: Vector) -> Any:
        """Set y; returns the largest change."""
        change = y - link.zv
        for _ in link.tree.when_smooth():
            follow_smoothed(link, link.zv * (2.0 / link.h), y * (2.0 / link.h))
        link.zv = y
        self.check(link, y * (4.0 / link.h) - link.u0_3)
        return length(change)  # which is not a number if one of them is not

    def check(self, link: Any, u1: Vector) -> None:
        """Note whether friction may do something else than expected."""
        mode, mean, about = link.mode, (u1 + link.u0_3) * 0.5, link.about_3
        _, holds = can_hold(link.free_3, link.hold, link.u0_3)
        slides = (absolute(mode) < 0.5) & not_(holds) & (is_same_slip(mean, about) | (link.slide <= 0.0))
        fine = slides | ((mode > HOLDS - 0.5) & (mode < HOLDS + 0.5) & holds)
        link.tree.note_changed(slides & self.bends(link))
        link.fresh_3 = select(fine, 0.0, link.fresh_3)
        link.tree.note_suspect(not_(fine))

    def bends(self, link: Any) -> Any:
        """Whether friction that slides is not what it was made linear to."""
        return bends_off(link, link.zv * (2.0 / link.h), link.slide) & (absolute(link.mode) < 0.5)

    # ---- the law, exactly

    def judge(self, link: Any) -> None:
        """Make friction linear anew, where it does something else than expected; not while it is smoothed."""
        for _ in link.tree.unless_smooth():
            self.judge_law(link)

    def judge_law(self, link: Any) -> None:
        h, u0, K, free, slide = link.h, link.u0_3, link.K3, link.free_3, link.slide
        able, holds = can_hold(free, link.hold, u0)
        rest = free + K @ u0
        stays = (dot(rest, rest) <= slide * slide) & (slide > 0.0)
        found = select(holds, HOLDS, select(stays, STAYS + select(able, 1.0, 0.0), FREE_AXIS))
        link.new_3 = choose(holds, u0 * 0.5, ZERO)
        for _ in link.when(not_(holds | stays)):
            link.slip_3 = length(link.zv) * (2.0 / h)
            steps = link.tree.rounds(SLIP_STEPS)
            for _ in steps:
                y, size, following = slip_speed(link.slip_3, rest * 0.5, K, 0.5 * slide)
                change = absolute(following - link.slip_3)
                link.new_3, link.slip_3 = y * (following / size), following
                steps.leave(change <= NEAR * following)
        mean = link.new_3
        off = mean * 2.0 - link.zv * (4.0 / h)
        tolerance, mode = link.tree.law_tolerance, link.mode
        wrong = not_(length(Vector(*(off[k] * K[k, k] for k in range(3)))) <= tolerance) | (mode < SMOOTH + 0.5)
        bends = self.bends(link)
        same = (absolute(found - mode) < 0.5) & ((mode > 0.5) | is_same_slip(mean, link.about_3))
        for _ in link.when((wrong & not_(same)) | bends):
            for _ in link.tree.when_to_linearize():
                turns = (absolute(mode) < 0.5) & (found < 0.5) & (dot(mean, link.about_3) < 0.0)  # on its way round it stays
                link.mode = select(turns, STAYS, found)
                link.lock_to_3 = u0 * select(holds, 0.25 * h, 0.0)
                size = length(mean)
                link.about_3 = mean * (maximum(size, self.floor(link, K)) / select(size > 0.0, size, 1.0))
                link.fresh_3 = 1.0

    # ---- after the iterations

    def keep(self, link: Any) -> None:
        """What friction did in the step; whether the joint stopped."""
        mode = link.mode
        link.tree.note_work(dot(link.command_3, link.zv) * (2.0 / link.h))
        holds = ((mode > HOLDS - 0.5) & (mode < HOLDS + 0.5)) | (mode > STAYS + 0.5)
        rests = (mode > STAYS - 0.5) & (link.hold > 0.0) & (largest(link.u0_3) <= 0.0)
        stuck = select(holds | rests, 1.0, 0.0)
        stopped: Any = stuck > link.stuck_3.x
        link.stuck_3 = Vector(stuck, stuck, stuck)
        if isinstance(stopped, Expression) or not known_zero(stopped):
            link.tree.note_stopped(stopped, link.at)

    def report(self, link: Any, n: Vector, frame: Matrix) -> None:
        """Impulses along the axes of the joint frame; n is the moment that the joint carries, in the base's axes."""
        p = n * (4.0 / link.h) - link.command_3
        own = frame.T @ p
        link.p_axis_3, link.p_friction_3, link.p_limit_3, link.p_drive_3 = own, own, ZERO, ZERO
        link.p_lost = -dot(p, link.zv * (2.0 / link.h))

    def hold(self, link: Any) -> None:
        """Before velocities are projected: the joint is held, or free."""
        stuck = link.stuck_3.x
        link.mode, link.lock_to_3, link.zv = select(stuck > 0.5, HOLDS, FREE_AXIS), ZERO, ZERO

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        """Relative spin that the momenta lead to."""
        link.zv = self.respond(link, link.e3 - link.B @ u - link.K3 @ g)
