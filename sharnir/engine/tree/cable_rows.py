"""Cables beside the forest: spans from tangent point to tangent point, and runs of them, which are rows (`cables`).

A row is closed at the end of the step, with spans as they are then, and acts with means of both ends: of spans s between tangent
points along (s₀ + s₁)/(|s₀| + |s₁|), along which the work of one tension is that of the path's length, at the mean of the arms.
A row that would push is slack. Over a rough sheave runs are rows of their own, or slide: then the first of them is the row of
all, the *lead*, whose tension those that follow have times `weight`. Which rows are taut, and where cables slide, is found from
pass to pass.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Vector, cross, dot, skew
from sharnir.emit.expressions import absolute, atan2, exp, maximum, minimum, node, select, sqrt
from sharnir.engine.tree.closures import RUN, SPAN
from sharnir.engine.tree.rows import Kind, Wrenches, lead_back
from sharnir.laws.axis import not_
from sharnir.model.cables import CLOSE_LINE, SLACKEST, SPANS

TURN = 6.283185307179586
UNSEEN = 2.0  # of `taut`: it is to be seen at the guess of the step
CLOSE = 1e-9  # of the scene's length: at rest, a row that lacks no more is taut,
LEAVES = 1e-9  # and is slack again if it closes faster than that, of the scene's length a step


def along(n: Vector, axis: Vector, radius: Any) -> Vector:
    """From the centre of a circle to where a line along n touches it."""
    u = cross(n, axis)
    out: Vector = u * (radius / maximum(dot(u, u), 1e-6))
    return out


def floor(x: Any) -> Any:
    return node("floor", x) if hasattr(x, "op") else float(x // 1.0)


def start_of(link: Any, x: Vector) -> Vector:
    """A vector that turns with a link, at the start of the step."""
    out: Vector = link.R @ x
    return out


def end_of(link: Any, x: Vector) -> Vector:
    """The same at its end, given that of the start."""
    out: Vector = (link.M @ x) * 2.0 - x
    return out


def turn_about(axis: Vector, a: Vector, b: Vector) -> Any:
    """Angle from a to b about an axis."""
    return atan2(dot(axis, cross(a, b)), dot(a, b) - dot(a, axis) * dot(b, axis))


class Span(Kind):
    """A straight part of a cable: its geometry; runs are the rows.

    `point_a` is the centre of the circle, `axis_a` and `mark_a` are its axis and what angles are told from, `angle_a` is the
    angle of the span about the axis, turns counted; the same of b. Of a fixed end the radius is 0.
    """

    rows = 0

    def begin(self, c: Any) -> None:
        c.start_a, c.start_b = start_of(c.a, c.point_a), start_of(c.b, c.point_b)
        a, b = start_of(c.a, c.axis_a), start_of(c.b, c.axis_b)
        lay(c, c.b.origin + c.start_b - c.a.origin - c.start_a, a, b)
        n = c.line_1
        c.roll_a, c.roll_b = along(n, a, c.radius_a), along(n, b, c.radius_b)
        c.start = c.b.origin + c.start_b + c.roll_b - c.a.origin - c.start_a - c.roll_a
        c.angle_a = self.nearest(c.radius_a, n, a, start_of(c.a, c.mark_a), c.angle_a)
        c.angle_b = self.nearest(c.radius_b, n, b, start_of(c.b, c.mark_b), c.angle_b)
        c.start_gap = sqrt(dot(c.start, c.start)) + c.radius_a * c.angle_a - c.radius_b * c.angle_b

    @staticmethod
    def nearest(radius: Any, n: Vector, axis: Vector, mark: Vector, last: Any) -> Any:
        """Angle of n about an axis, on the turn that is nearest to the last one."""
        angle = turn_about(axis, mark, n)
        return select(radius > 0.0, angle + TURN * floor((last - angle) * (1.0 / TURN) + 0.5), 0.0)

    def start_gap(self, c: Any) -> list[Any]:
        return []

    def evaluate(self, c: Any) -> list[Any]:
        """Half the change of what the span holds is in `end_gap`."""
        a, b, start = c.a, c.b, c.start
        r_a, r_b = a.M @ c.start_a, b.M @ c.start_b
        half = b.u + cross(b.g, r_b) - a.u - cross(a.g, r_a)
        axis_a, axis_b = (end_of(link, start_of(link, x)) for link, x in ((a, c.axis_a), (b, c.axis_b)))
        lay(c, start + c.roll_a - c.roll_b + half * 2.0, axis_a, axis_b)
        n = c.line_1
        rim_a, rim_b = along(n, axis_a, c.radius_a), along(n, axis_b, c.radius_b)
        change = half * 2.0 + (rim_b - c.roll_b) - (rim_a - c.roll_a)
        end = start + change
        before, after = sqrt(dot(start, start)), sqrt(dot(end, end))
        c.line = (start + end) * (1.0 / (before + after))
        c.arm_a, c.arm_b = r_a + (c.roll_a + rim_a) * 0.5, r_b + (c.roll_b + rim_b) * 0.5
        c.turns_a, c.turns_b = r_a * 2.0 - c.start_a + rim_a, r_b * 2.0 - c.start_b + rim_b
        first = start * (1.0 / before)
        c.by_a = select(c.radius_a > 0.0, turn_about(axis_a, end_of(a, first), n), 0.0)
        c.by_b = select(c.radius_b > 0.0, turn_about(axis_b, end_of(b, first), n), 0.0)
        c.end_gap = 0.5 * (dot(change, c.line) + c.radius_a * c.by_a - c.radius_b * c.by_b)
        return []

    def opening(self, c: Any, gaps: list[Any]) -> Any:
        return 0.0

    def wrenches(self, c: Any) -> Wrenches:
        n = c.line
        return [(-n, cross(n, c.arm_a), n, cross(c.arm_b, n))]

    def rates(self, c: Any) -> Wrenches:
        """At the tangent points of the end of the step, moving with the links."""
        n, a, b = c.line_1, c.a.g, c.b.g
        return [(-n, cross(lead_back(a, n), lead_back(a, c.turns_a)), n, cross(lead_back(b, c.turns_b), lead_back(b, n)))]

    def end_rates(self, c: Any) -> Wrenches:
        n = c.line_1
        return [(-n, cross(n, c.turns_a), n, cross(c.turns_b, n))]

    def stiffen(self, c: Any, impulses: list[Any]) -> None: ...

    def push(self, c: Any, impulses: list[Any]) -> None: ...

    def enter(self, c: Any, exact: bool) -> None: ...

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        """The tension, which its run has told."""
        tension: Vector = c.force
        return tension


def lay(c: Any, e: Vector, a: Vector, b: Vector) -> None:
    """The direction of a span between circles, e from centre to centre, as `line_1`: e = ℓ n + A×n (`cables.span_line`)."""
    A = b * c.radius_b - a * c.radius_a
    e2 = maximum(dot(e, e), 1e-24)
    across = A - e * (dot(A, e) * (1.0 / e2))
    n = e * sqrt(maximum(e2 - dot(across, across), 1e-12 * e2)) - cross(across, e)
    c.line_1 = n * (1.0 / sqrt(dot(n, n)))
    askew = dot(a, e) * dot(a, e) * c.radius_a + dot(b, e) * dot(b, e) * c.radius_b > 0.0
    for _ in c.rows.tree.when(askew):
        c.off = 1.0
        rounds = c.rows.tree.rounds(SPANS)
        for _ in rounds:
            n, last = c.line_1, c.off
            line = e + along(n, b, c.radius_b) - along(n, a, c.radius_a)
            line = line * (1.0 / maximum(sqrt(dot(line, line)), 1e-12))
            c.line_1, c.off = line, dot(line - n, line - n)
            rounds.leave((c.off >= last) | (c.off < float(CLOSE_LINE)))


class Run(Kind):
    """Spans of one tension, a row: together they hold no more than `length`.

    Its spans are `spans` closures from the one that stands `spans_back` before it on. It `follows` a run over a rough sheave of
    the coefficient `friction`, if that one `joins` it; where a run `slides` (1: to the next, −1: from it), both have one row.
    `lead` is how many closures before it the run stands whose row it has, `led` and `many` are how many spans and runs have its
    own; `came` is what runs of the row up to this one hold beyond their length, `rate` how fast that grows. `taut` and `struck`,
    whether it became so in this step, are those of the row.
    """

    def begin(self, c: Any) -> None:
        rests = c.rows.resting
        c.struck = select(rests, c.struck, 0.0)
        c.taut = select(not_(rests) & (c.row(0, "last") < 0.0), 1.0, UNSEEN)
        c.start_gap = select(c.on > 0.5, -c.length, 0.0)
        for span, run in c.rows.spans(c, "spans"):
            run.start_gap = run.start_gap + select(span.on > 0.5, span.start_gap, 0.0)

    def guess(self, c: Any, k: int) -> Any:
        return select(c.taut > 1.5, 0.0, minimum(0.0, super().guess(c, k)))

    def start_gap(self, c: Any) -> list[Any]:
        return [c.start_gap]

    def evaluate(self, c: Any) -> list[Any]:
        rows, tree = c.rows, c.rows.tree
        c.lead, c.weight, c.led, c.many, c.came, c.rate, c.end_gap = 0.0, 1.0, c.spans, 1.0, 0.0, 0.0, 0.0
        for span, run in rows.spans(c, "spans"):
            run.end_gap = run.end_gap + select(span.on > 0.5, span.end_gap, 0.0)
            a, b = point_speed(span.a, span.turns_a), point_speed(span.b, span.turns_b)
            run.rate = run.rate + dot(span.line_1, b - a)
        for _ in tree.when(c.follows > 0.5):
            before = rows.beside(c, -1)
            for _ in tree.when(absolute(before.slides) > 0.5):
                c.lead, c.weight = before.lead + 1.0, before.weight * hold_ratio(c, before.slides)
                c.came, c.rate = before.came, before.rate + c.rate
                lead = rows.lead_of(c)
                lead.led, lead.many = lead.led + c.spans, lead.many + 1.0
        c.came = c.came + c.start_gap + 2.0 * c.end_gap
        lead, counts = rows.lead_of(c), select(tree.resting & not_(tree.closing), 0.0, 1.0)
        c.pull = lead.impulse(0) * c.weight
        for _ in tree.when((c.joins < 0.5) | (absolute(c.slides) < 0.5)):
            lead.put_row(0, "gap", c.came * counts)
            self.look(c, lead)
        return [c.end_gap]

    def look(self, c: Any, lead: Any) -> None:
        """Whether a row is taut, at its last run."""
        rows, tree, unit = c.rows, c.rows.tree, 1.0 / c.rows.tree.per_metre
        opens = (lead.struck > 0.5) | (c.rate >= -0.5 * LEAVES * unit) | tree.closing
        at_rest = (c.came >= -CLOSE * unit) & opens
        seen = lead.taut > 1.5
        now_taut = select(seen, c.came >= 0.0, c.came > float(SLACKEST) * unit)
        strikes = not_(rows.resting) & (seen | (lead.taut < 0.5)) & now_taut & rows.may_switch
        for _ in rows.switching(strikes & not_(seen)):
            pass
        lead.struck = select(strikes, 1.0, lead.struck)
        lead.taut = select(rows.resting, truth(at_rest), select(strikes, 1.0, select(seen, 0.0, lead.taut)))

    def opening(self, c: Any, gaps: list[Any]) -> Any:
        """Of slack rows, and of those that slide, none."""
        counts = (c.taut > 0.5) & (c.lead < 0.5) & ((c.joins < 0.5) | (absolute(c.slides) < 0.5))
        unit = select(c.rows.closing, 1.0, c.rows.tree.per_metre * c.rows.tree.per_metre)
        return select(counts, gaps[0] * gaps[0] * unit, 0.0)

    def softness(self, c: Any, k: int) -> Any:
        return select((c.lead < 0.5) & (c.taut > 0.5), 0.0, -1.0)

    def push(self, c: Any, impulses: list[Any]) -> None:
        for span, run in c.rows.spans(c, "spans"):
            span.weight = run.weight
            for act in KIND.wrenches(span):
                f_a, n_a, f_b, n_b = (x * run.pull for x in act)
                span.a.add(row_f=f_a, row_n=n_a)
                span.b.add(row_f=f_b, row_n=n_b)

    def stiffen(self, c: Any, impulses: list[Any]) -> None:
        """Rims do not turn with the links."""
        for span, run in c.rows.spans(c, "spans"):
            F = skew(span.line * run.pull)
            span.a.add(row_D=F @ skew(end_of(span.a, span.start_a)))
            span.b.add(row_D=F @ skew(-end_of(span.b, span.start_b)))

    def enter(self, c: Any, exact: bool) -> None:
        c.put_row(0, "size_l", 0.0)
        c.put_row(0, "size_n", 0.0)
        for _ in c.rows.tree.when(c.lead < 0.5):
            for span, run in c.rows.spans(c, "led"):
                rates = KIND.end_rates(span) if exact else KIND.rates(span)
                for act, rate in zip(KIND.wrenches(span), rates, strict=True):
                    by = [x * span.weight for x in act]
                    c.rows.add(span.a, 0, by[:2], rate[:2])
                    c.rows.add(span.b, 0, by[2:], rate[2:])
                    l_a, n_a, l_b, n_b = (dot(x, x) for x in by)
                    run.put_row(0, "size_l", run.row(0, "size_l") + l_a + l_b)
                    run.put_row(0, "size_n", run.row(0, "size_n") + n_a + n_b)

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        for span, run in c.rows.spans(c, "spans"):
            span.force = Vector(-run.pull, 0.0, 0.0)
        return Vector(-c.pull, 0.0, 0.0)


KIND = Span()
CABLES: dict[int, Kind] = {SPAN: KIND, RUN: Run()}


def truth(x: Any) -> Any:
    return select(x, 1.0, 0.0)


def point_speed(link: Any, arm: Vector) -> Vector:
    """½ h times the speed of a point of a link at the start of the step; `arm` from the link's origin."""
    v: Vector = link.V + cross(link.W, arm - link.local_com)
    return v


def hold_ratio(c: Any, way: Any) -> Any:
    """e^(±μφ) of the rough sheave before a run: the most, or least, that its tension is of that before."""
    first, last = c.rows.span_of(c, 0), c.rows.span_of(c, -1)
    angle = (first.angle_a + first.by_a) - (last.angle_b + last.by_b)
    return exp(way * c.rows.beside(c, -1).friction * maximum(angle, 0.0))


def judge_runs(tree: Any) -> None:
    """After a pass: rows that push become slack; where none does, sheaves slide where tensions lie beyond their bounds, and hold
    where the cable would come back."""
    rows = tree.rows
    for _ in rows.first_judgement():
        for c in rows.runs():
            for _ in rows.switching((c.lead < 0.5) & (c.taut > 0.5) & (c.impulse(0) > 0.0)):
                c.taut = 0.0
                c.put_row(0, "impulse", 0.0)
    for _ in rows.second_judgement():
        for c in rows.runs():
            for _ in tree.when(c.joins > 0.5):
                judge_sheave(c)


def judge_sheave(c: Any) -> None:
    """The rough sheave after a run."""
    rows, way = c.rows, c.slides
    after = rows.beside(c, 1)
    lead = rows.lead_of(after)
    p, q = -(rows.lead_of(c).impulse(0) * c.weight), -(lead.impulse(0) * after.weight)
    most, small = hold_ratio(after, 1.0), 1e-9 * (p + q)
    slides = select(q > p * most + small, 1.0, select(p > q * most + small, -1.0, 0.0))
    stays = select(c.came * way > float(SLACKEST) / rows.tree.per_metre, 0.0, way)
    now = select(absolute(way) > 0.5, stays, slides)
    for _ in rows.switching(absolute(now - way) > 0.5):
        for _ in rows.tree.when(absolute(now) < 0.5):
            after.put_row(0, "impulse", -q)
            after.taut, after.struck = 1.0, lead.struck
        c.slides = now


def keep_runs(tree: Any) -> None:
    """Angles of the end of the step; what slid over rough sheaves stays there, the length of the whole being kept."""
    rows = tree.rows
    for c in rows.runs(SPAN):
        for _ in tree.when(c.on > 0.5):
            c.angle_a, c.angle_b = c.angle_a + c.by_a, c.angle_b + c.by_b
    for c in rows.runs():
        for _ in tree.when(c.on > 0.5):
            lead = rows.lead_of(c)
            for _ in tree.when(lead.many > 1.5):
                c.length = c.length + c.start_gap + 2.0 * c.end_gap - lead.row(0, "gap") / lead.many
            rows.note_struck(c, (c.lead < 0.5) & (c.taut > 0.5) & (c.struck > 0.5))
