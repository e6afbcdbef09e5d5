"""Rows whose impulses are bounded: points of contact, and friction and limits of axes where bodies touch.

Where something touches, friction and limits of axes are no part of the forest's factors: they are rows like those of contact, so
that a blow breaks a held joint loose in the same step. All of them are solved as one problem (`contact.cones`) on the forest's
response. With w a quarter of h times the speed at the end of the step, u₁ = 2ū − u₀,

    contact     along the normal: u₁ ≥ min(0, −2 gap/h − u₀), so that the gap is closed at the end of the step and not before; in
                a step that begins closed, u₁ ≥ 0. Across it: Coulomb's friction against u₁
    friction    of an axis, |impulse| ≤ bound, against u₁
    limit       as the normal of a contact

What approaches still when a gap has closed is an impact: velocities are projected on what contacts, limits and joints allow, and
leave at the speed of restitution (`step.project`, where w is half of h times the speed).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharnir.contact.cones import (
    ELASTIC,
    ENTRIES,
    ISLANDS,
    JOINTED,
    NUMBERS,
    PARTED,
    SPEEDS,
    STOPPED,
    SWEPT,
    VECTORS,
    cone_solver,
)
from sharnir.emit.algebra import ZERO, Symmetric, Vector, cross, dot
from sharnir.emit.expressions import absolute, maximum, minimum, node, select, sqrt, value
from sharnir.engine.tree.cast_rows import press_wheel, release_wheels, share_wheel, strike_wheel, turn_wheels
from sharnir.engine.tree.closures import CONTACT, FRICTION, LIMIT, ROLLING, SPINNING, TOUCH
from sharnir.engine.tree.islands import find_groups, find_islands
from sharnir.engine.tree.row_storage import TABLE, ClosureView, RowLoopTree, table_of_world
from sharnir.engine.tree.rows import CLOSURES, Gear, Kind, Wrenches, choose, length
from sharnir.engine.tree.speed_rows import PUSHED, SpeedRows
from sharnir.engine.tree.storage import LinkView
from sharnir.engine.tree.turning import with_gyroscopic
from sharnir.engine.tree.turning_rows import Rolling, Spinning, across_of, direction
from sharnir.laws.axis import not_

# variables of emitted code
NUMBERS_OF_STEP = ("usual_speed", "unsolved", "unmet", "overlap", "bounce", "taken_now", "lifted", "until")
UNBOUNDED = 1e30
SLANTED = 1e-6  # of the speed of a point: an approach that is no impact
BOUNCES = 2.0  # times what falls in a step: what approaches more slowly is not thrown back
IMPACTS = 40  # rounds of impacts that follow each other in an instant
PARTINGS = 10  # rounds, at most, in which overlapping bodies are displaced
REACHED = 1e-4  # of the way in a step: a gap that counts as closed in an impact
ROUNDING = {
    "near_gap": (1e-9, 1e-6),  # rad or of the scene's length: gaps that are closed
    "least_fall": (1e-3, 1e-2),  # of what falls in a step: an approach that is no impact
    "still": (0.0, 1e-2),  # of the same: the speed of an axis that is at rest
    "slop": (1e-5, 1e-4),  # of the scene's length: an overlap that is as small is left alone
    "tiny_speed": (0.01, 0.05),  # of the tolerance of mean speeds: speeds of rows that count as none
    "settled": (1e-7, 1e-5),  # of the bound of a moment: what the normal impulse may change of it in the last pass
    # of a row's own response, in mechanisms and of free bodies: how much points and limits yield to what changes their impulses
    # from step to step, as a spring does that is shorter by as much of g·h²: impulses which depend on each other stay near those
    # of the last step, and errors of second order in rows that depend on each other are not met by large ones
    "yields": (1e-5, 1e-5),
    "yields_free": (1e-8, 1e-5),
}
"""In double and in single precision."""
NEAR, SLOW, SLOP, STILL = (value(name) for name in ("near_gap", "least_fall", "slop", "still"))


class Contact(Kind):
    """A point of contact: `axis_a` is the normal, from a to b, `axis_b` a direction across it, world axes.

    `friction_along` and `friction_across` are the coefficients of friction along `axis_b` and across both; `surface` is how fast
    b's surface runs over a's beside the motion of the bodies, m/s; `last` a quarter of the force of the last step, N. The points
    lie on the two surfaces: beside `core_a` and `core_b`, which turn with the bodies: corners, centres of balls and of wheels.
    Both bodies feel impulses at one point: b's, where `share` is 1, a's, where it is 0, or between these.

    Points of balls and rounded edges are at `radius_a` and `radius_b` from the core (−1: those of other surfaces) along the
    normal, which is that of the line of centres where both are `balls`. A surface that `rolls` is that of an ellipsoid `round`
    about the core, on which the point runs (`roll`). Its speed changes by what is of second order in the turn of a step; a slower
    speed (`slow`) of what was pressed counts as none: to stop it would take energy in every step.

    With a `stiffness` the normal is a spring and damper, 0 ≤ u_n + kχ/(kΔt + d) + p_n/(kΔt² + dΔt) ⟂ p_n ≥ 0, and takes no part
    in impacts. With a shear stiffness the surface yields across the normal, as a tire's tread does (`laws.contact.tread`), and
    what it yields fades at the rate `fade`, 1/s. A point on a belt has the link `belt` that drives it, turning in the link
    `frame` about `belt_axis`; `belt_pull`, m, is the velocity of b's surface over a's by its spin.
    """

    rows = 3
    closes, bounded = False, True

    def begin(self, c: Any) -> None:
        self.locate(c)
        for _ in c.rows.when(c.cast > -0.5):
            share_wheel(c)
        for k in range(self.rows):
            c.put_row(k, "near", 0.0)
        for _ in c.rows.unless_resting():
            belt, frame = belt_of(c)
            runs = c.belt_pull * dot(c.belt_axis, belt.W - frame.W)
            c.line_1 = point_speed(c.b, c.start_b) - point_speed(c.a, c.start_a) + runs
            c.by_b = 0.0

    def locate(self, c: Any) -> None:
        """Points at the pose; of two balls the normal, too."""
        c.turns_a, c.turns_b = c.a.R @ c.core_a, c.b.R @ c.core_b
        ball, n, s = c.balls > 0.5, c.axis_a, c.axis_b
        n = choose(ball, direction(c.b.origin + c.turns_b - c.a.origin - c.turns_a, n), n)
        c.axis_a, c.axis_b = n, choose(ball, direction(across_of(n, s), s), s)
        c.start_a = choose(c.radius_a >= 0.0, c.turns_a + n * c.radius_a, c.a.R @ c.point_a)
        c.start_b = choose(c.radius_b >= 0.0, c.turns_b - n * c.radius_b, c.b.R @ c.point_b)
        c.start = c.b.origin + c.start_b - c.a.origin - c.start_a

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0, 0.0, 0.0]

    def guess(self, c: Any, k: int) -> Any:
        n, s = c.axis_a, c.axis_b
        e, by = ((n, 1.0), (s, c.friction_along), (cross(n, s), c.friction_across))[k]
        return select(by > 0.0, dot(c.last, e) / select(by > 0.0, by, 1.0), 0.0) * (c.h * c.h)

    def directions(self, c: Any) -> tuple[Vector, Vector, Vector]:
        n, t = c.axis_a, c.axis_b
        rubs = select(c.rows.closing, 0.0, 1.0)
        return n, t * (c.friction_along * rubs), cross(n, t) * (c.friction_across * rubs)

    def evaluate(self, c: Any) -> list[Any]:
        a, b = c.a, c.b
        n, s, t = self.directions(c)
        half = self.move(c, n)
        rests, closes, h, yields = c.rows.resting, c.rows.closing, c.h, c.stiffness > 0.0
        before, gap = c.line_1, c.start_gap
        u0 = dot(n, before)
        slip = before - n * u0
        c.end_gap = select(c.balls > 0.5, c.end_gap, gap + 2.0 * dot(n, half))
        belt, frame = belt_of(c)
        runs = c.surface * (h * select(rests, 0.5, 0.25)) + c.belt_pull * dot(c.belt_axis, belt.g - frame.g)
        w = b.u + cross(b.g, c.arm_b) - a.u - cross(a.g, c.arm_a) + runs
        holds = dot(slip, slip) < c.slow * c.slow
        w = w - choose(rests | holds, n * (u0 * select(rests, 0.0, 0.5)), before * 0.5)
        touches = (c.by_b > 0.5) | (gap <= nearness(c, u0))
        slop = SLOP / c.rows.tree.per_metre
        struck = touches & ((c.hits > 0.5) | c.rows.last_impact)
        off = rests & (yields | not_(select(closes, c.rows.parting, struck)))
        passes = not_(rests) & bounces(c, c.restitution, u0) & (gap + 2.0 * u0 < 0.0)
        c.put_row(0, "high", select(off | passes, -1.0, 1.0))
        least = select(absolute(u0) < c.slow, -maximum(gap, 0.0) - u0, minimum(0.0, -gap - u0))
        least = 0.5 * select(closes, -gap - 0.5 * slop, select(rests, 0.0, least))
        spring = 0.25 * h * c.stiffness * gap / select(yields, c.stiffness * h + c.damping, 1.0)
        normal = dot(n, w) + select(yields & not_(rests), self.softness(c, 0) * c.impulse(0) + spring, held(self, c, 0) - least)
        return [normal, *(dot(e, w) + self.yielding(c, k) for k, e in ((1, s), (2, t)))]

    def move(self, c: Any, n: Vector) -> Vector:
        """Arms in the middle of the step, where impulses act, gaps, and the speed below which a point that rolls counts as still;
        returns the points' mean speed, times ½ h."""
        a, b = c.a, c.b
        for _ in c.rows.when(c.rolls_a > 0.5):
            c.roll_a = roll(a, c.start_a - c.turns_a, n, c.round_a)
        for _ in c.rows.when(c.rolls_b > 0.5):
            c.roll_b = roll(b, c.start_b - c.turns_b, -n, c.round_b)
        r_a, r_b = mean_arms(c)
        moved = b.u + r_b - c.start_b - a.u - r_a + c.start_a
        apart = c.start + moved
        c.arm_a, c.arm_b = r_a + apart * c.share, r_b - apart * (1.0 - c.share)
        reach = c.radius_a + c.radius_b
        c.start_gap, c.end_gap = dot(n, c.start), length(c.start + n * reach + moved * 2.0) - reach  # of two balls
        carries = (dot(c.last, n) > 0.0) & not_(c.rows.resting)
        c.slow = select(carries, length(cross(a.g, c.roll_a)) + length(cross(b.g, c.roll_b)), 0.0)
        half: Vector = b.u + cross(b.g, r_b) - a.u - cross(a.g, r_a)
        return half

    def tread(self, c: Any, k: int) -> tuple[Any, Any]:
        """Of a direction across the normal: the coefficient of friction, and the shear stiffness."""
        return ((c.friction_along, c.shear_along), (c.friction_across, c.shear_across))[k - 1]

    def yielding(self, c: Any, k: int) -> Any:
        """What the tread yields, as a speed: by the impulse of the step, and by that of the last one."""
        rubs, shear = self.tread(c, k)
        e = (c.axis_b, cross(c.axis_a, c.axis_b))[k - 1]
        yields = not_(c.rows.resting) & (shear > 0.0)
        start = select(yields, dot(c.last, e) * rubs / select(shear > 0.0, shear, 1.0), 0.0)
        if k == 2:  # along the rim of a raycast wheel
            yields = yields | (c.soft > 0.0)
            start = start - c.by_a
        return select(yields, self.softness(c, k) * c.impulse(k), held(self, c, k)) - start

    def softness(self, c: Any, k: int) -> Any:
        h, works = c.h, not_(c.rows.resting)
        if k == 0:
            yields = works & (c.stiffness > 0.0)
            return select(yields, 1.0 / select(yields, h * (c.stiffness * h + c.damping), 1.0), 0.0)
        rubs, shear = self.tread(c, k)
        yields = works & (shear > 0.0)
        soft = select(yields, rubs * rubs * (1.0 + h * c.fade) / select(yields, shear * h * h, 1.0), 0.0)
        return soft + c.soft if k == 2 else soft

    def opening(self, c: Any, gaps: list[Any]) -> Any:
        """None: what overlaps is noted apart."""
        over = minimum(0.0, gaps[0])
        c.rows.raise_overlap(select(c.rows.closing & not_(c.stiffness > 0.0), over * over, 0.0))
        return 0.0

    def unit(self, c: Any) -> Any:
        return 0.0

    def wrenches(self, c: Any) -> Wrenches:
        return [(-e, cross(e, c.arm_a), e, cross(c.arm_b, e)) for e in self.directions(c)]

    rates = wrenches

    def belt_moments(self, c: Any) -> list[Vector]:
        """Of every row, the moment on the link that drives the belt."""
        return [c.belt_axis * dot(c.belt_pull, e) for e in self.directions(c)]

    def push(self, c: Any, impulses: list[Any]) -> None:
        super().push(c, impulses)
        for _ in c.rows.when(c.belt > -0.5):
            total = ZERO
            for m, p in zip(self.belt_moments(c), impulses, strict=True):
                total = total + m * p
            belt, frame = belt_of(c)
            belt.add(row_n=total)
            frame.add(row_n=-total)

    def enter(self, c: Any, exact: bool) -> None:
        super().enter(c, exact)
        for _ in c.rows.when(c.belt > -0.5):
            belt, frame = belt_of(c)
            for k, m in enumerate(self.belt_moments(c)):
                c.rows.add(belt, k, (ZERO, m), (ZERO, m), self.bounded)
                c.rows.add(frame, k, (ZERO, -m), (ZERO, -m), self.bounded)

    def force(self, c: Any, impulses: list[Any]) -> Vector:
        n, s, t = self.directions(c)
        out: Vector = n * impulses[0] + s * impulses[1] + t * impulses[2]
        return out

    carries = force

    def choose(self, c: Any) -> Any:
        """Whether the point is hit by what approaches it now, which it throws back."""
        self.locate(c)
        n = c.axis_a
        u = dot(n, point_speed(c.b, c.start_b) - point_speed(c.a, c.start_a))
        touches = (c.by_b > 0.5) | (dot(n, c.start) <= nearness(c, u))
        hits = touches & bounces(c, c.restitution, u)
        c.hits = select(hits, 1.0, 0.0)
        return hits

    def returned(self, c: Any) -> Any:
        return c.restitution

    def end_speed(self, c: Any) -> Vector:
        """½ h times the speed of b's surface over a's at the end of the step."""
        belt, frame = belt_of(c)
        runs: Vector = c.surface * (0.5 * c.h) + c.belt_pull * dot(c.belt_axis, belt.W - frame.W)
        for link, sign, start, mean in zip((c.a, c.b), (-1.0, 1.0), (c.start_a, c.start_b), mean_arms(c), strict=True):
            arm = mean * 2.0 - start - (link.com_mean * 2.0 - link.local_com)
            runs = runs + (link.V + cross(link.W, arm)) * sign
        return runs

    def bending(self, c: Any) -> Any:
        """What turning adds to the gap beyond its first order, by the quaternion of the step's rotation, m."""
        out = ZERO
        for link, sign, start, mean in zip((c.a, c.b), (-1.0, 1.0), (c.start_a, c.start_b), mean_arms(c), strict=True):
            turn = link.g * (2.0 / sqrt(1.0 + dot(link.g, link.g)))
            moved = (mean - start - link.com_mean + link.local_com) * 2.0
            out = out + (moved - cross(turn, start - link.local_com)) * sign
        return dot(c.axis_a, out)

    def keep(self, c: Any) -> Any:
        """Whether the point stopped what approached, or is to throw it back."""
        u0, p = dot(c.axis_a, c.line_1), c.impulse(0)
        force = self.force(c, [c.impulse(k) for k in range(3)])
        c.force = force
        c.slip, c.bend = across_of(c.axis_a, self.end_speed(c)), self.bending(c)
        c.rows.tree.note_work(-(dot(force, c.surface) * (4.0 / c.h)))
        c.last = force * (1.0 / (c.h * c.h))  # for the next part of a step that is divided
        for _ in c.rows.when(c.cast > -0.5):
            press_wheel(c, c.last)
        hard = not_(c.stiffness > 0.0)
        near = nearness(c, u0)
        c.rows.note_overlap(hard & (c.end_gap < -maximum(SLOP / c.rows.tree.per_metre, near)))
        touched = (p > 0.0) | (c.end_gap <= near)
        c.by_b = select(hard & touched, 1.0, 0.0)  # wherever displacements lead
        slow = c.slow + SLOW * 0.5 * c.h * c.rows.tree.fall + SLANTED * sqrt(dot(c.line_1, c.line_1))
        return hard & (u0 < -slow) & touched

    def time_of_impact(self, c: Any) -> Any:
        u0 = dot(c.axis_a, c.line_1)
        passes = (c.on > 0.5) & (c.row(0, "high") < 0.0)
        return part_to_impact(c, passes, 2.0 * u0, nearness(c, u0))


def roll(link: Any, beside: Vector, m: Vector, S: Symmetric) -> Vector:
    """How the point of a link with the outward normal m moves until the middle of the step, beside its core.

    The surface is that of an ellipsoid about the core, |m|ₛ² = m·S m its square height: the point is at r = S m/|m|ₛ. In the
    body's axes m turns by −g until then. What is added last makes work and height agree: m·(g × r̄) is half of what the height
    changes in the step.
    """
    g, Sm, turned = link.g, S @ m, cross(m, link.g)
    square = dot(m, Sm)
    height = sqrt(select(square > 0.0, square, 1.0))
    moved: Vector = cross(g, beside) + (S @ turned - Sm * (dot(Sm, turned) / select(square > 0.0, square, 1.0))) * (1.0 / height)
    end = link.M.T @ m * 2.0 - m
    rise = select(square > 0.0, sqrt(maximum(0.0, dot(end, S @ end))) - height, 0.0)
    size = dot(turned, turned)
    counts = (size > 1e-10) & (square > 0.0)
    by = select(counts, (0.5 * rise - dot(m, cross(g, beside + moved))) / select(counts, size, 1.0), 0.0)
    return moved + turned * by


def nearness(c: Any, u: Any) -> Any:
    """A gap that counts as closed where points approach at u (½ h times a speed)."""
    return NEAR / c.rows.tree.per_metre + absolute(u) * (2.0 * REACHED)


def part_to_impact(c: Any, passes: Any, way: Any, near: Any) -> Any:
    """The part of the step after which what bounces has closed its gap, by the parabola with `way` as its first derivative; 1 if
    it does not, 0 if its gap is closed."""
    gap, end = c.start_gap, c.end_gap
    passes = passes & (end < -near)
    bends = end - gap - way
    root = sqrt(maximum(0.0, way * way - 4.0 * bends * gap)) - way
    part = 2.0 * gap / select(root > 0.0, root, 1.0)
    return select(passes, select((gap > near) & (root > 0.0), part, 0.0), 1.0)


def mean_arms(c: Any) -> tuple[Vector, Vector]:
    """Mean arms of the points on a and b: their cores turn with the bodies, and points run on what rolls."""
    r_a = c.a.M @ c.turns_a + (c.start_a - c.turns_a) + c.roll_a
    r_b = c.b.M @ c.turns_b + (c.start_b - c.turns_b) + c.roll_b
    return r_a, r_b


def held(law: Any, c: Any, k: int) -> Any:
    """By what a row yields, as a speed, to what changes its impulse from that of the last step."""
    return select(c.rows.resting, 0.0, c.row(k, "near") * (c.impulse(k) - law.guess(c, k)))


def belt_of(c: Any) -> tuple[Any, Any]:
    """The link that drives the belt on which a point lies, and the one in which it turns; the ground where there is no belt."""
    return c.rows.end(c.at, "belt"), c.rows.end(c.at, "frame")


def bounces(c: Any, restitution: Any, u: Any) -> Any:
    """Whether what approaches at u (½ h times a speed) is thrown back; not by what yields."""
    return (restitution > 0.0) & not_(c.stiffness > 0.0) & (u < -(BOUNCES * 0.5 * c.h * c.rows.fall_of_step))


def point_speed(link: Any, arm: Vector) -> Vector:
    """½ h times the speed of a point of a link at the start of the step; `arm` from the link's origin."""
    v: Vector = link.V + cross(link.W, arm - link.local_com)
    return v


class AxisLaw(Gear):
    """A law on the axis of link a."""

    closes = False

    def push(self, c: Any, impulses: list[Any]) -> None:
        c.a.add(row_e=c.by_a * impulses[0])

    def enter(self, c: Any, exact: bool) -> None:
        """It has to do with the speed of its own axis alone, the first one of its path."""
        for _ in c.rows.when(c.rows.by_left):
            c.a.add(path_e=c.by_a)
        c.rows.put_responses(c.rows.whole("row_start", c.at), 0, J=[c.by_a])

    def start_gap(self, c: Any) -> list[Any]:
        return [0.0]

    def guess(self, c: Any, k: int) -> Any:
        """As in the last step."""
        return c.last[0] * (c.h * c.h)

    def choose(self, c: Any) -> Any:
        """Whether the law throws back what has come to it."""
        return False

    def time_of_impact(self, c: Any) -> Any:
        """The part of the step after which something comes to the law that it throws back; 1: nothing does."""
        return 1.0


class Friction(AxisLaw):
    """Dry friction: the bound is `row_bound` of the link; in an impact an axis that was held is, by as much as in a step."""

    def evaluate(self, c: Any) -> list[Any]:
        a, rests = c.a, c.rows.resting
        by = select(rests, 1.0, a.ratio)
        c.by_a = by
        held = select(a.stuck > 0.5, 0.5 * c.h * a.row_bound, 0.0)
        bound = select(c.rows.closing, 0.0, select(rests, held, 0.25 * c.h * a.row_bound))
        c.put_row(0, "low", -bound)
        c.put_row(0, "high", bound)
        a.row_friction = c.impulse(0)
        return [by * a.z - select(rests, 0.0, 0.25 * c.h * a.u0)]

    def guess(self, c: Any, k: int) -> Any:
        bound = 0.25 * c.h * c.a.row_bound
        return maximum(-bound, minimum(bound, super().guess(c, k)))

    def keep(self, c: Any) -> Any:
        a, p = c.a, c.impulse(0)
        c.force = Vector(p, 0.0, 0.0)
        held = absolute(p) < c.row(0, "high") * (1.0 - 1e-9)
        stops = held & not_(a.stuck > 0.5) & (absolute(a.u0) > STILL * c.rows.tree.fall)
        a.stuck, c.hits = select(held, 1.0, 0.0), select(stops, 1.0, 0.0)
        c.rows.note_rubbing(held)
        return False  # see `keep_laws`


class Limit(AxisLaw):
    """A limit: `side` is 1 for the lower, −1 for the upper one."""

    def begin(self, c: Any) -> None:
        c.put_row(0, "near", 0.0)

    def evaluate(self, c: Any) -> list[Any]:
        a, rests, side = c.a, c.rows.resting, c.side
        by = side * select(rests, 1.0, a.ratio)
        c.by_a = by
        u0, h = side * a.u0, c.h
        room = select(side > 0.0, a.q - a.limit_lower, a.limit_upper - a.q)
        touches = (c.by_b > 0.5) | (room <= NEAR * (1.0 / c.rows.tree.per_metre + 1.0))
        off = rests & not_(select(c.rows.closing, c.rows.parting, touches & ((c.hits > 0.5) | c.rows.last_impact)))
        passes = not_(rests) & bounces(c, a.restitution, 0.5 * h * u0) & (room > SLOP) & (room + h * u0 < 0.0)
        c.put_row(0, "low", 0.0)
        c.put_row(0, "high", select(off | passes, 0.0, UNBOUNDED))
        a.row_limit = side * c.impulse(0)
        least = select(c.rows.closing, -0.5 * room, select(rests, 0.0, 0.25 * h * minimum(0.0, -2.0 * room / h - u0)))
        c.start_gap, c.end_gap = room, room + side * 2.0 * a.ratio * a.z
        return [by * a.z - select(rests, 0.0, 0.25 * h * u0) + held(self, c, 0) - least]

    def choose(self, c: Any) -> Any:
        """Once, as it came to the limit in this step."""
        hits = (c.by_b > 0.5) & c.rows.first_impact
        c.hits = select(hits, 1.0, 0.0)
        return hits

    def returned(self, c: Any) -> Any:
        return c.a.restitution

    def time_of_impact(self, c: Any) -> Any:
        passes, way = (c.on > 0.5) & not_(c.row(0, "high") > 0.0), c.h * c.side * c.a.u0
        return part_to_impact(c, passes, way, self.nearness(c, way))

    def nearness(self, c: Any, way: Any) -> Any:
        """An angle, or a distance, that counts as none where the axis moves by `way` in a step."""
        return NEAR * (1.0 / c.rows.tree.per_metre + 1.0) + absolute(way) * REACHED

    def keep(self, c: Any) -> Any:
        a, p, side = c.a, c.impulse(0), c.side
        c.force = Vector(side * p, 0.0, 0.0)
        near = self.nearness(c, c.h * a.u0)
        acts, passed = p > 0.0, not_(c.row(0, "high") > 0.0) & (c.end_gap < near)
        a.limit = select(acts, side * p, a.limit)
        c.by_b = select(passed, 1.0, 0.0)
        c.rows.note_overlap(passed & (c.end_gap < -near))
        return (acts & (side * a.u0 < -(SLOW * c.rows.tree.fall))) | passed


LAWS: dict[int, Kind] = {
    CONTACT: Contact(), FRICTION: Friction(), LIMIT: Limit(), SPINNING: Spinning(), ROLLING: Rolling(),
}  # fmt: skip
WITH_LAWS = CLOSURES | LAWS


# ---- C++ for rows that are others in every step ------------------------------------------------------------------------------


def solve_text(place: Any, at_response: Any, kind: str) -> str:
    """C++ that replaces `rest` of rows of laws by what changes their impulses; `place(name)` of row r.

    Laws know loops by a symmetric response; loops are closed by the exact one, with what laws then do: `rest` of their rows is
    reduced by that.
    """
    return f"""if (n_rows > n_equal) {{ const int rows = n_rows, speeds = n_speeds; (void)speeds;
for (int r = 0; r < rows; ++r) {{ cone_p(r) = {place("impulse")}; cone_b(r) = -{place("rest")}; }}
if (resting) {{ swept = 0; helped = opened = false; }}
usual_speed = closing ? real(0.5)*slop/per_metre : real(resting ? 0.5 : 0.25)*h*fall;
const real sought = closing ? real({PARTED}) : !resting ? real({SWEPT}) : last_impact ? real({STOPPED}) : real({ELASTIC[kind]});
unsolved = solve_cones(rows, n_islands, n_speeds, sought, resting);
if (swept > 0 && !resting) tolerance = x.swept_tolerance;
for (int r = n_equal; r < rows; ++r) {place("rest")} = cone_p(r) - {place("impulse")};
if (n_equal > 0) {{ {PUSHED.format(rest=place("rest"))}
for (int c = 0; c < n_equal_closures; ++c) for (int r = t_row_start[c]; r < t_row_start[c + 1]; ++r) {{
const int at = row_at(r), size = t_where_start[c + 1] - t_where_start[c]; const Table where = t_where + t_where_start[c];
for (int i = 0; i < size; ++i) {place("rest")} -= {at_response("k", "at + i")}*cone_eta(where[i]); }} }} }}"""


OF_POINT = f"(t_kind[t_of[e]] == {CONTACT} || t_kind[t_of[e]] == {TOUCH})"
USED = {
    "size_of(e)": "(t_where_start[t_of[e] + 1] - t_where_start[t_of[e]])",
    "where_of(e)": "(t_where + t_where_start[t_of[e]])",
    "many_of(e)": f"(t_kind[t_of[e]] == {FRICTION} || t_kind[t_of[e]] == {LIMIT} ? 1 : size_of(e))",
    "many_of_closure(c)": f"(!by_left && (t_kind[c] == {FRICTION} || t_kind[c] == {LIMIT}) ? 1 "
    ": t_where_start[c + 1] - t_where_start[c])",
    "rows_of(e)": f"({OF_POINT} ? 3 : 1)",
    "is_paired": "(x.rope_most > 0)",
    "own_weight(e)": "real(0.0)",
    "is_loop(r)": "((r) < n_equal)",
    "way_of(i)": "t_way[i]",
    "usual_of(e)": f"({OF_POINT} ? usual_speed : real(0.0))",
    "tiny_of(e)": f"(t_of[e] < n_equal_closures ? real(0.0) : tiny_speed*tolerance"
    f"/({OF_POINT} ? per_metre : real(1.0)))",
}
"""What the solver of cones asks for, in C++."""
MACROS = (
    *(name.split("(")[0] for name in USED),
    *("row_at", "along", "left", "soft_of", "low_of", "high_of", *(f"cone_{name}" for name in ENTRIES)),
    *(f"cone_{name}" for name in (*VECTORS, *NUMBERS, *SPEEDS, *ISLANDS)),
)


def solver_text(real: str, place: Any, at_response: Any, more: dict[str, str]) -> str:
    """C++ of the solver, before the program; `place(name)` of row r, `at_response(name, at)` of a number of a response; `more`: instead
    of what is usual."""
    used = USED | more | {
        "row_at(r)": "t_y_start[r]",
        "along(at, i)": at_response("J", "(at) + (i)"),
        "left(at, i)": at_response("h", "(at) + (i)"),
        **{f"{name}_of(r)": place(name) for name in ("soft", "low", "high")},
    }
    return "\n".join([*(f"#define {name} {text}" for name, text in used.items()), cone_solver(real)])


class LawRows(SpeedRows):
    """Rows of any forest with those of laws, which are others in every step: every world has its own tables."""

    kinds = WITH_LAWS
    table_type = TABLE

    def tables_of_world(self, owner: str) -> str:
        return table_of_world(owner)

    def last_head(self, owner: str) -> list[str]:
        lines = ["const int at_along = at_matrix + 2*n_matrix, at_cone = at_along + 2*n_responses;"]
        lines.append(f"const int memory_with_rows = {owner}memory_size_of_world; (void)memory_with_rows;")
        lines.append("const Table element = t_element; const Table sky_first = t_sky_first;")
        lines.append("const Table sky_start = t_sky_start; const Table first_element = t_first_element;")
        lines.append("const Table first_speed = t_first_speed; const Table own_first = t_own_first;")
        lines.append("const Table own_start = t_own_start;")
        zeros = ", ".join(f"{name} = real(0.0)" for name in NUMBERS_OF_STEP)
        rounding = (f"{name} = sizeof(real) == 8 ? real({x!r}) : real({y!r})" for name, (x, y) in ROUNDING.items())
        lines.append(f"const real {', '.join(rounding)};")
        lines.append("const real fall_of_step = dt*wp::sqrt(gx*gx + gy*gy + gz*gz);")
        return [*lines, f"real {zeros};", "bool overlaps = false, last_impact = true; int parting = 0, impact = 0;"]

    def unless_resting(self) -> Iterator[None]:
        with self.program.block("if (!resting) {"):
            yield

    def row_place(self, name: str) -> str:
        return self._place(name, "r")

    def solver(self) -> list[str]:
        return [solver_text(self.tree.real, self.row_place, self._place, self.instead)]

    instead: dict[str, str] = {}

    @staticmethod
    def tolerance() -> str:
        """C++: the tolerance of a step with laws; points of contact come first among these."""
        first = "t_kind[n_equal_closures]"
        return f"{first} == {CONTACT} || {first} == {TOUCH} ? x.contact_tolerance : x.acted_tolerance"

    def clear_laws(self) -> str:
        """C++ that clears what closures of laws keep: they are others in every step."""
        first = f"at_closures + {self.record}*n_equal_closures"
        return f"for (int k = {first}; k < at_closures + {self.record}*n_closures; ++k) number(k) = real(0.0);"

    def undefined(self) -> list[str]:
        return [f"#undef {name}" for name in MACROS]

    def where_dependent(self) -> Iterator[None]:
        with self.program.block("if (c < n_equal_closures) {"):
            yield

    def factor(self) -> None:
        """Which rows of loops depend on others, and get no impulse. (Newton's iteration has another matrix in every step.)"""
        super().factor()
        p, soft = self.program, self._place("soft", "r")
        p.forget(f"for (int r = 0; r < n_equal; ++r) if ({self.row_place('pivot')} == real(0.0)) {soft} = real(-1.0);")
        near = self._place("near", "r")
        p.forget("if (n_rows > n_equal) couple_joints(n_rows, n_speeds, n_islands);")
        p.forget(f"""if (!resting) for (int i = 0; i < n_islands; ++i)
for (int e = first_element[i]; e < first_element[i + 1]; ++e) {{
const real by = t_way[i] == {JOINTED} ? yields : yields_free; const int kind = t_kind[t_of[e]];
if (kind == {CONTACT} || kind == {TOUCH} || kind == {LIMIT}) for (int r = element[e]; r < element[e] + rows_of(e); ++r) {{
if (!({soft} == real(0.0))) continue;
real own = real(0.0); const int rows = n_rows, speeds = n_speeds, at = row_at(r); const Table where = where_of(e);
if (!by_left && kind == {LIMIT}) own = along(at, 0)*along(at, 0)*cone_delta(where[0]);
else for (int k = 0; k < size_of(e); ++k) own += left(at, k)*left(at, k)*cone_delta(where[k]);
{near} = {soft} = by*wp::max(own, own_weight(e)); }} }}""")
        p.forget("weighed = false;")

    def solve(self) -> None:
        self.program.forget(solve_text(self.row_place, self._place, self.tree.real if self.tree.real == "double" else "single"))
        super().solve()
        lever, back = (f"given({self.given[name]})" for name in ("lever", "rows_back"))
        self.program.forget(f"""if (!resting) for (int c = n_equal_closures; c < n_closures; ++c)
if (t_kind[c] == {SPINNING} || t_kind[c] == {ROLLING}) {{ const int r = t_row_start[c], point = r - (int){back};
const real now = {lever}*wp::max(real(0.0), {self._place("impulse", "point")} + {self._place("rest", "point")});
if (wp::abs(now - {self._place("high", "r")}) > settled*now) ++changed; }}""")

    def say_ends(self) -> None:
        super().say_ends()
        for side in ("belt", "frame"):
            link = f"(int)given({self.given[side]})"
            self.program.say(f"const int end_{side} = {self.tree.row}*({link} + 1); (void)end_{side};")
            self.program.say(f"const int rows_end_{side} = {self.tree.row_place(link)}; (void)rows_end_{side};")

    def when(self, condition: Any) -> Iterator[None]:
        with self.program.block("if ({0}) {{", condition):
            yield

    def host_impulse(self, c: Any) -> Any:
        """The normal impulse of the point whose turning a closure resists."""
        return self.get("impulse", f"(t_row_start[c] - (int)given({self.given['rows_back']}))")

    def laws(self) -> Iterator[tuple[ClosureView, Any]]:
        """Closures of laws and their kind."""
        p = self.program
        with self.tree.sweep(), p.block("for (int c = n_equal_closures; c < n_closures; ++c) {"):
            self.say_ends()
            p.say("const int rows = n_rows, speeds = n_speeds; (void)rows; (void)speeds;")
            for kind, law in LAWS.items():
                with p.block(f"{'' if kind == CONTACT else 'else '}if (t_kind[c] == {kind}) {{"):
                    yield ClosureView(self, "c"), law

    def find_islands(self) -> None:
        """The island of every link."""
        at = self.tree.row_start["island"]
        self.program.forget(find_islands(lambda link: f"number({self.tree.row_place(link)} + {at})"))

    def find_groups(self) -> None:
        at = self.tree.row_start["island"]
        self.program.forget(find_groups(lambda link: f"number({self.tree.row_place(link)} + {at})"))

    def free_islands(self) -> Iterator[Any]:
        """The links that number islands."""
        for link in self.tree.links():
            with self.program.block("if ({0}) {{", absolute(link.island - value("real(i)")) < 0.5):
                yield link

    def island_of(self, link: Any) -> Iterator[Any]:
        """The link that numbers a link's island, unless something fixed touches that."""
        p = self.program
        with p.block("if ({0}) {{", link.island >= 0.0):
            p.say(f"const Place rows_island = {self.tree.row_place('(int)' + self.tree.place('own', 'island', 0))};")
            yield LinkView(self.tree, "island")

    def note_rubbing(self, held: Any) -> None:
        """An axis slides in the island of a closure, unless friction holds it."""
        for _ in self.when(not_(held)):
            self.program.say("cone_rubs(t_island[t_root[t_a[c]]]) = real(1.0);")

    def keep_laws(self) -> None:
        """What laws did in the step; where something stopped, velocities are projected. Friction stops axes at the end of a step:
        what is left then of velocities that do not fit joints and contacts goes to and fro once no axis of an island slides."""
        p = self.program
        if self.more:
            release_wheels(self.tree)
        rubs = "{ const int rows = n_rows, speeds = n_speeds; for (int i = 0; i < n_islands; ++i) cone_rubs(i) = real(0.0); }"
        p.forget(rubs)
        for c, law in self.laws():
            stopped = law.keep(c)
            p.write(
                "stopped", node("?", stopped, value("(wp::max(t_a[c], t_b[c]) + 1)", "int"), p.read("stopped", "int"), kind="int")
            )

        p.forget(f"""{{ const int rows = n_rows, speeds = n_speeds; for (int c = n_equal_closures; c < n_closures; ++c)
if (t_kind[c] == {FRICTION} && {self.field_place("c", "hits", 0)} > real(0.5) && cone_rubs(t_island[t_root[t_a[c]]]) == real(0.0))
stopped = t_a[c] + 1; }}""")
        if self.more:
            turn_wheels(self.tree)

    last_impact, first_impact = value("last_impact", "bool"), value("(impact == 0)", "bool")
    """Whether nothing is thrown back any more, and what still approaches is stopped; whether the first impact is solved for."""

    fall_of_step = value("fall_of_step")
    """A speed that gravity gives in a whole step."""

    def find_impact(self) -> None:
        """After how much of the step the first impact is."""
        p = self.program
        p.say("until = real(1.0);")
        for c, law in self.laws():
            part = law.time_of_impact(c)
            if not isinstance(part, float):
                p.write("until", minimum(p.read("until"), part))

    bounce = value("bounce")
    """How much of what an impact took from velocities is given once more: by that they are thrown back, and gain no energy."""

    note_unsolved = "unmet = wp::max(unmet, unsolved);"
    """C++: what laws were missed by in the step is no less than by those that were solved for last."""

    def clear_taken(self) -> None:
        self.program.write("taken_now", 0.0)

    def note_taken(self, energy: Any) -> None:
        """Kinetic energy, times ¼ h², that an impact takes from a link, unless it is thrown back."""
        self.program.write("taken_now", self.program.read("taken_now") + energy)

    def note_lifted(self, energy: Any) -> None:
        """Potential energy, times ¼ h², that displacements gave a link."""
        self.program.write("lifted", self.program.read("lifted") + energy)

    def pay_lifting(self) -> None:
        """What is thrown back pays for what displacements lifted: so it leaves with the speed that it had at the surface."""
        p = self.program
        p.say("if (bounce > real(0.0) && lifted > real(0.0)) {")
        p.say("bounce *= wp::sqrt(wp::max(real(0.0), real(1.0) - (taken_now > real(0.0) ? lifted/taken_now : real(1.0))));")
        p.say("lifted = wp::max(real(0.0), lifted - taken_now); }")

    def choose_impacts(self) -> None:
        """Which points throw back what approaches them now; those it comes nearer to by that are hit in the next round."""
        p = self.program
        p.say("last_impact = true; bounce = real(1.0);")
        for c, law in self.laws():
            hits = law.choose(c)
            if hits is not False:
                with p.block("if ({0}) {{", hits):
                    p.write("bounce", minimum(p.read("bounce"), law.returned(c)))
                    p.write("last_impact", False)
        p.say(f"if (impact == {IMPACTS}) last_impact = true; if (last_impact) bounce = real(0.0);")

    def clear_open(self) -> None:
        super().clear_open()
        self.program.write("overlap", 0.0)

    def raise_overlap(self, square: Any) -> None:
        """The largest square of an overlap."""
        self.program.write("overlap", maximum(self.program.read("overlap"), square))

    parting = value("(parting > 0)", "bool")
    """Whether bodies that overlap are displaced, in the first rounds that close the pose; then rows alone are closed."""

    def begin_closing(self) -> None:
        super().begin_closing()
        self.program.say(f"parting = {PARTINGS}; swept = 0;")

    def is_closed(self) -> Any:
        p = self.program
        least = SLOP * 0.1 / self.tree.per_metre
        closed = self.keep(select(super().is_closed(), 1.0, 0.0))
        with p.block("if (parting > 0) {"):
            p.say("--parting;")
            p.write("open_before", 1e30)
        with p.block("if (swept > 0 || ({0})) {{", p.read("overlap") <= least * least):  # heaps go on in the next step
            p.say("parting = 0;")
        return (closed > 0.5) & not_(self.parting)

    def note_overlap(self, condition: Any) -> None:
        """Bodies overlap at the end of the step."""
        p = self.program
        p.write("overlaps", p.read("overlaps", "bool") | condition)

    def note_impacts(self) -> None:
        for c, law in self.laws():
            if isinstance(law, Contact):
                force = law.force(c, [c.impulse(k) for k in range(3)])
                more = 1.0 + self.bounce
                c.blow = c.blow + force * (2.0 / c.h * more)
                for _ in self.when(c.cast > -0.5):
                    strike_wheel(c, force * (2.0 / c.h * more))
                self.tree.note_work(-(dot(force, c.surface) * (2.0 / c.h * more)))


class LawLoopTree(RowLoopTree):
    """Code that loops over the links of any forest, over any rows beside it, and over those of laws."""

    laws_are_rows = True
    part_of_step = value("(h/dt)")
    make_rows = LawRows

    def refined(self, link: Any, D: Any, x: Vector) -> Vector:
        if self.rests:
            return x
        better = with_gyroscopic(link, D, x)
        return Vector(*(select(self.resting, a, b) for a, b in zip(x, better, strict=True)))

    real = "double"
