"""Ball joints with laws on their three axes."""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import NO_MATRIX, Matrix, Quaternion, Vector, dot
from sharnir.emit.expressions import Expression, absolute, clamp, select
from sharnir.engine.tree.ball_friction import BallFriction
from sharnir.engine.tree.joints import Ball, largest
from sharnir.engine.tree.several_axes import (
    AXES,
    LEAST_SHARE,
    MOST_SHARE,
    NO_FRICTION,
    SAME_ROW,
    UNLIMITED,
    AxisOf,
    SeveralAxes,
    all_zero,
    each,
)
from sharnir.laws.axis import (
    INFINITE,
    Law,
    is_zero,
    limit_speeds,
    not_,
    prepare,
    stop_speed,
)  # fmt: skip
from sharnir.laws.ball import (
    choose,
    conjugate,
    half_rotation,
    limit_coordinates,
    mean_gradient,
    mean_rows,
    rotation_of,
    rotation_vector,
    times,
)  # fmt: skip


def either(condition: Any, yes: Matrix, no: Matrix) -> Matrix:
    """One matrix or the other."""
    return Matrix([list(choose(condition, yes.row(k), no.row(k))) for k in AXES])


def negative(m: Matrix) -> Matrix:
    """−m."""
    return Matrix([[-x for x in row] for row in m.rows])


FRICTION = BallFriction()


class BallWithLaws(SeveralAxes, Ball):
    """A ball joint. Its laws are in the joint frame on the base, turned half way; friction alone in the base's own axes."""

    def begin(self, link: Any) -> None:
        alone = self.friction_alone(link)
        link.rubs_3 = select(alone, 1.0, 0.0)
        for _ in link.when(alone):
            FRICTION.begin(link, self.start_spin(link))
        for _ in link.when(not_(alone)):
            SeveralAxes.begin(self, link)

    def friction_alone(self, link: Any) -> Any:
        """Whether no law but the friction of the vector acts."""
        total: Any = link.ball_limit + (1.0 - link.grouped)
        for k in AXES:
            x = AxisOf(link, k)
            total = total + x.stiffness + x.damping + x.friction_viscous + x.servo_kp + x.servo_kd + absolute(x.servo_torque)
            total = total + x.resistance
        return total <= 0.0

    def rubs(self, link: Any) -> Any:
        """The same, as `begin` found it."""
        if not isinstance(link.ball_limit, Expression):  # laws may be known
            alone = self.friction_alone(link)
            if not isinstance(alone, Expression):
                return alone
        return link.rubs_3 > 0.5

    def joint_frame(self, link: Any, own: Any = None, based: Any = None) -> Matrix:
        """The axes of the laws at the start of the step, in the base's: the joint frame on the base, or on the link, reversed.

        Each turned by a rotation if it is given.
        """
        frame: Matrix = link.frame if link.own_axes else link.base.R @ link.frame
        other = frame @ link.rotation.matrix()
        ahead = link.sense > 0.0
        return either(ahead, frame if based is None else based @ frame, negative(other if own is None else own @ other))

    def mean_frame(self, link: Any) -> Matrix:
        """The axes of the laws, turned half way."""
        own, based = half_rotation(link.turn.outward(link.g)), half_rotation(link.base.g)
        return self.joint_frame(link, own, based)

    def law_rotation(self, link: Any, q: Quaternion) -> Quaternion:
        """Coordinates that the laws see."""
        return Quaternion(q.v * link.sense, q.w)

    def start_spin(self, link: Any) -> Vector:
        """Relative spin at the start of the step, in the base's axes."""
        spin: Vector = (link.turn.outward(link.W) - link.base.W) * link.per_half_step
        return spin

    def start_speeds(self, link: Any) -> Vector:
        speeds: Vector = self.joint_frame(link).T @ self.start_spin(link)
        return speeds

    def law_axes(self, link: Any) -> tuple[Matrix, Matrix, Vector]:
        return NO_MATRIX, link.F3, link.lever

    def axis_law(self, link: Any, k: int) -> Law:
        h, x = link.h, AxisOf(link, k, stiffness=0.0, rest=0.0, servo_position=0.0, **UNLIMITED, **NO_FRICTION)
        error: Any = 0.0
        if not all_zero(link.servo_kp_3):
            wanted = rotation_of(link.servo_position_3)
            error = rotation_vector(self.law_rotation(link, link.rotation) * conjugate(wanted))[k]
        law = prepare(x, h, error, link.u0_3[k], link.stuck_3[k], link.share_3[k])
        spring = 0.25 * (h * h) * link.stiffness_3[k]
        law = law._replace(a=law.a + spring)
        return law

    def has_limits(self, link: Any) -> bool:
        return not is_zero(link.ball_limit)

    def measure(self, link: Any, first: bool) -> None:
        F = self.mean_frame(link)
        link.F3 = F
        y = F.T @ link.zv
        link.y_3 = y
        by, k, h = y * 2.0, link.stiffness_3, link.h
        if not all_zero(k):
            for _ in link.when(k.x + k.y + k.z > 0.0):
                u1 = self.end_speeds(link)
                gradient = mean_gradient(self.law_rotation(link, link.rotation), self.end_rotation(link), link.rest_3, k, by)
                # b of the linear law that has this impulse, and the slope ¼h²k, at the present speed
                link.spring_3 = gradient * h - times(k, u1) * (0.25 * h * h)
        if self.has_limits(link):
            for _ in link.when(self.limits(link)):
                self.turn_rows(link, self.end_rotation(link), by)

    def end_rotation(self, link: Any) -> Quaternion:
        """Coordinates at the end of the step as it stands (`Ball.advance`)."""
        back, g = Quaternion(-link.base.g, 1.0), Quaternion(link.g, 1.0)
        if link.own_axes:
            new = Quaternion(link.frame.T @ back.v, 1.0) * link.rotation * g
        else:
            by = back * g
            new = Quaternion((link.base.R @ link.frame).T @ by.v, by.w) * link.rotation
        return self.law_rotation(link, new.normalized())

    # ---- limits

    def limits(self, link: Any) -> Any:
        return link.ball_limit > 0.5

    def limit_row(self, link: Any, k: int) -> Vector:
        row: Vector = link.row3.row(k)
        return row

    def along_limits(self, link: Any, u: Vector) -> Vector:
        return link.row3 @ u if self.has_limits(link) else u

    def find_limits(self, link: Any) -> None:
        if not self.has_limits(link):
            return
        for _ in link.when(self.limits(link)):
            values, rows = limit_coordinates(link.ball_limit, self.law_rotation(link, link.rotation), link.limit_upper_3)
            link.value_3, link.row_start3, link.row3 = values, rows, rows
            link.row_share_3 = Vector(-1.0, -1.0, -1.0)
            self.bound_speeds(link)

    def bound_speeds(self, link: Any) -> None:
        """Speeds along the limits' directions that keep the joint inside them to the end of the step."""
        values, h, part = link.value_3, link.h, link.tree.part_of_step
        u0 = self.along_limits(link, link.u0_3)
        cardan = link.ball_limit < 1.5
        boxes = [limit_speeds(AxisOf(link, k, unit=1.0), h, values[k], u0[k], part) for k in AXES]
        cone = select(link.limit_upper_3.x < INFINITE, stop_speed(h, values[0], u0[0], 0.0, 1.0, part), -INFINITE)
        lower, upper = [b[0] for b in boxes], [b[1] for b in boxes]
        link.lower_3 = Vector(select(cardan, lower[0], cone), select(cardan, lower[1], -INFINITE), lower[2])
        link.upper_3 = Vector(select(cardan, upper[0], INFINITE), select(cardan, upper[1], INFINITE), upper[2])

    def turn_rows(self, link: Any, end: Quaternion, by: Vector) -> None:
        """Directions of the limits, by the end of the step as it stands: the path ends where they allow, and they do no work."""
        start = link.value_3, link.row_start3
        rows = mean_rows(start, limit_coordinates(link.ball_limit, end, link.limit_upper_3), by)
        first = link.row_share_3.x < -0.5
        moves = largest([x - y for x, y in zip(rows.entries(), link.row3.entries(), strict=True)])
        for _ in link.when(first | (moves > SAME_ROW)):
            link.tree.note_changed(not_(first) & (largest(link.side_3) > 0.5))
            self.change_rows(link, rows, first)
            self.bound_speeds(link)
            self.turn_locks(link)

    def turn_locks(self, link: Any) -> None:
        """Limits that are locked, along their present directions."""
        side, lock, to = link.side_3, link.lock3, link.lock_to_3
        u0, lower, upper = link.u0_3, link.lower_3, link.upper_3
        new = [choose(absolute(side[k]) > 0.5, link.row3.row(k), lock.row(k)) for k in AXES]
        link.lock3 = Matrix([list(r) for r in new])
        speed = each(lambda k: select(side[k] > 0.5, lower[k], upper[k]))
        link.lock_to_3 = each(lambda k: select(absolute(side[k]) > 0.5, (speed[k] + dot(new[k], u0)) * (0.25 * link.h), to[k]))

    def change_rows(self, link: Any, rows: Matrix, first: Any) -> None:
        """Directions for the next iteration, where the end of the last one makes them `rows`.

        A limit that pushes hard turns the end of the step and thereby its own direction, to and fro; how much of a change is to
        be made follows from the last two (Aitken), and iterations converge as a secant does.
        """
        now, before, share, side = link.row3, link.row_miss3, link.row_share_3, link.side_3
        new, misses, shares = [], [], []
        for k in AXES:
            miss = rows.row(k) - now.row(k)
            more = miss - before.row(k)
            size = dot(more, more)
            secant = (share[k] > 0.0) & (absolute(side[k]) > 0.5) & (size > 0.0)
            part = -(share[k] * dot(before.row(k), more)) / select(size > 0.0, size, 1.0)
            part = select(secant, clamp(part, LEAST_SHARE, MOST_SHARE), 1.0)
            new.append(list(now.row(k) + miss * part))
            misses.append(list(miss))
            shares.append(select(first, 0.0, part))
        link.row3, link.row_miss3, link.row_share_3 = Matrix(new), Matrix(misses), Vector(*shares)

    def speeds_at_limits(self, link: Any) -> Vector:
        """The impact is at the end of the step."""
        _, rows = limit_coordinates(link.ball_limit, self.law_rotation(link, link.rotation), link.limit_upper_3)
        link.row3 = rows
        speeds: Vector = rows @ link.u1_3
        return speeds

    def limited(self, link: Any) -> tuple[Vector, Vector, Vector]:
        values, _ = limit_coordinates(link.ball_limit, self.law_rotation(link, link.rotation), link.limit_upper_3)
        low, high, cardan = link.limit_lower_3, link.limit_upper_3, link.ball_limit < 1.5
        cone = select(high.x < INFINITE, 0.0, -INFINITE)  # the room left in a cone
        lower = Vector(select(cardan, low.x, cone), select(cardan, low.y, -INFINITE), low.z)
        return values, lower, Vector(select(cardan, high.x, INFINITE), select(cardan, high.y, INFINITE), high.z)

    def displace(self, link: Any, by: Vector) -> None:
        turn = self.law_rotation(link, link.rotation)
        _, rows = limit_coordinates(link.ball_limit, turn, link.limit_upper_3)
        sizes = [dot(rows.row(k), rows.row(k)) for k in AXES]
        phi = Vector(0.0, 0.0, 0.0)
        for k in AXES:
            phi = phi + rows.row(k) * (by[k] / select(sizes[k] > 0.0, sizes[k], 1.0))
        link.rotation = self.law_rotation(link, (rotation_of(phi) * turn).normalized())

    # ---- reports

    def report(self, link: Any, f: Vector, n: Vector) -> None:
        Ball.report(self, link, f, n)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                FRICTION.report(link, link.turn.outward(n), self.joint_frame(link))
            for _ in link.when(not_(rubs)):
                self.report_laws(link, link.F3.T @ link.turn.outward(n))

    # ---- the joint: without laws, with friction alone, or with any laws

    def update_ratio(self, link: Any) -> None:
        rubs = self.rubs(link)
        for _ in link.when(rubs):
            effort = link.effort_3
            for _ in link.when(largest(effort) > 0.0):
                link.command_3 = self.mean_frame(link) @ (effort * link.h)
        for _ in link.when(not_(rubs)):
            self.measure(link, False)

    def put_speeds(self, link: Any, y: Vector) -> Any:
        link.zv = link.F3 @ y
        return largest(y - link.y_3)

    def correct(self, link: Any, u: Vector, g: Vector) -> Any:
        for _ in link.idle():
            link.dz = Ball.correct(self, link, u, g)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                link.dz = FRICTION.correct(link, u, g)
            for _ in link.when(not_(rubs)):
                link.dz = self.correct_laws(link, u, g)
        return link.dz

    def judge(self, link: Any) -> None:
        rubs = self.rubs(link)
        for _ in link.when(rubs):
            FRICTION.judge(link)
        for _ in link.when(not_(rubs)):
            SeveralAxes.judge(self, link)

    def eliminate(self, link: Any, f: Vector, n: Vector, inertia: Any) -> None:
        for _ in link.idle():
            Ball.eliminate(self, link, f, n, inertia)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                FRICTION.eliminate(link, f, n, inertia)
            for _ in link.when(not_(rubs)):
                self.eliminate_laws(link, f, n, inertia)

    def predict(self, link: Any) -> None:
        Ball.predict(self, link)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                FRICTION.keep(link)
            for _ in link.when(not_(rubs)):
                self.keep_laws(link)

    def hold(self, link: Any) -> None:
        Ball.hold(self, link)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                FRICTION.hold(link)
            for _ in link.when(not_(rubs)):
                link.F3 = self.joint_frame(link)
                self.hold_laws(link)

    def follow(self, link: Any, u: Vector, g: Vector) -> None:
        for _ in link.idle():
            Ball.follow(self, link, u, g)
        for _ in link.acting():
            rubs = self.rubs(link)
            for _ in link.when(rubs):
                FRICTION.follow(link, u, g)
            for _ in link.when(not_(rubs)):
                self.follow_laws(link, u, g)
