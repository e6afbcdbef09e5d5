"""Gaps and passed limits taken back by displacements, which leave velocities as they are."""

import warp as wp

from sharnir.core.spatial import turned
from sharnir.core.types import real, vec3
from sharnir.engine.direct.balls import NONE
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.limits import passed_limits
from sharnir.engine.direct.energy.links import GAPS, follow_all, inward
from sharnir.engine.direct.energy.rows import close_rows, factor_rows, find_rows, keep_changes
from sharnir.engine.direct.gaps import any_gap, gap_size, half_gap


@wp.func
def open_gaps(s: wp.array(dtype=Direct), w: int, limits: bool):
    """Gaps of the tree's joints where bodies stand now, and how far limits are passed, as speeds in work.close.

    Returns the largest gap (`gap_size`) and the last joint with a passed limit or −1.
    """
    rate = real(-2.0) / s[0].drift[w]
    most = real(0.0)
    passed = int(-1)
    for n in range(s[0].tree.count):
        s[0].work.Q_l[n, w] = vec3(real(0.0))
        s[0].work.Q_a[n, w] = vec3(real(0.0))
        for at in range(s[0].tree.row[n].v_start, s[0].tree.row[n].v_start + s[0].tree.row[n].v_size):
            s[0].rows.u[at, w] = real(0.0)
            s[0].lock_u[at, w] = real(0.0)
        linear, angular = any_gap(s, n, w)
        most = wp.max(most, gap_size(s, linear, angular))
        s[0].work.close_a[n, w] = angular * rate
        s[0].work.close_l[n, w] = linear * rate
        if s[0].work.kind[n, w] == NONE:
            s[0].work.close_l[n, w] = linear * rate + wp.cross(angular * rate, s[0].out1[n, w])
        if limits:
            if passed_limits(s, n, w) == 1:
                passed = s[0].tree.joint[n]
    return most, passed


@wp.func
def half_gaps(s: wp.array(dtype=Direct), w: int):
    """Gaps between the halves of bodies that were cut, where they stand now, into those of their rows."""
    for i in range(s[0].closures.welds):
        gap, turn = half_gap(s, i, w)
        for x in range(3):
            s[0].rows.gap[6 * i + x, w] = gap[x]
            s[0].rows.gap[6 * i + 3 + x, w] = turn[x]


@wp.func
def close_gaps(s: wp.array(dtype=Direct), w: int):
    """Displacements, as speeds in work.change, that close the gaps in work.close and of the rows, under the pushes in work.Q."""
    inward(s, w, GAPS)
    follow_all(s, w, real(1.0))
    if s[0].closures.count > 0:
        keep_changes(s, w)  # before responses of rows are found, which stand there afterwards
        find_rows(s, w)
        for r in range(s[0].closures.count - s[0].closures.springs.count, s[0].closures.count):
            s[0].rows.soft[r, w] = real(-1.0)  # a displacement is no motion that springs would answer
        factor_rows(s, w)
        half_gaps(s, w)
        close_rows(s, w, False, 1)


@wp.func
def displace(s: wp.array(dtype=Direct), w: int) -> real:
    """Make them; returns the work of gravity, J."""
    h = real(0.5) * s[0].drift[w]
    raised = real(0.0)
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        by = s[0].work.change_l[b, w] * h
        raised = raised + wp.dot(s[0].settings.gravity[w], by) * s[0].tree.mass[n, w]
        s[0].position[b, w] = s[0].position[b, w] + by
        s[0].rotation[b, w] = turned(s[0].rotation[b, w], s[0].work.change_a[b, w] * h)
    return raised
