"""Displacements of trees with ropes on them: passed limits and overlaps taken back, which velocities never learn of."""

import warp as wp

from sharnir.core.spatial import turned
from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.repair import close_gaps, displace, open_gaps
from sharnir.engine.direct.energy.rope_passes import couple, hang_ropes
from sharnir.engine.direct.energy.rope_winch import displace_drums, drum_axes
from sharnir.engine.direct.energy.touch_parting import find_parting, note_parted, push_apart
from sharnir.engine.direct.energy.touch_points import close_cut
from sharnir.engine.direct.energy.touch_points import respond as follow_pushes
from sharnir.engine.direct.hung import push_links
from sharnir.engine.rope.data import MIXED, RopeStep
from sharnir.engine.rope.ends import end_point, is_held, tie_point
from sharnir.engine.rope.mixing import note_pass, recall_pass
from sharnir.engine.rope.passes import ropes_inward, ropes_outward
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.slack import new_span
from sharnir.engine.rope.terms import tangent

DEEPEST = wp.constant(real(3.0e-4))  # of the scene's length: the largest correction of an overlap in one step
CLOSINGS = wp.constant(8)  # rounds in which gaps are closed, at most


@wp.func
def repair(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Take passed limits back in, by displacements alone that leave joints and ropes closed; their energy is the limit's."""
    _most, passed = open_gaps(s, w, True)
    if passed < 0:
        return
    note_pass(r, 0, w)
    drum_axes(s, r, w, False)
    raised = close_all(s, r, p, w)
    s[0].state.dissipated[passed, w] = s[0].state.dissipated[passed, w] + raised


@wp.func
def close_all(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int) -> real:
    """Displacements that close joints, the limits asked for, and ropes; returns the work of gravity, J."""
    raised = real(0.0)
    for i in range(CLOSINGS):
        for k in range(r[0].ropes.count):
            miss_lengths(r, k, w, real(-2.0) / s[0].drift[w])
        ropes_inward(r, w)
        push_links(s, r, w)
        hang_ropes(s, r, w)  # close_gaps factors the links anew: what ropes give them as bias is for inertias with ropes on them
        close_gaps(s, w)
        if p[0].count > 0:
            couple(s, r, p, w, i == 0, False)  # and ports see the response of these factors
        raised = raised + displace_all(s, r, w)
        most, _j = open_gaps(s, w, False)
        for k in range(r[0].ropes.count):
            most = wp.max(most, miss_lengths(r, k, w, real(0.0)) * s[0].settings.per_metre[0])
        if most <= s[0].settings.tolerance[1] * real(1.0e-3):
            break
    return raised


@wp.func
def displace_all(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int) -> real:
    """Ropes follow the changes of bodies, and both are displaced by them; returns the work of gravity, J."""
    ropes_outward(r, w)
    displace_drums(s, r, w, real(0.5) * s[0].drift[w])
    raised = displace(s, w)
    for k in range(r[0].ropes.count):
        raised = raised + displace_rope(r, k, w, real(0.5) * s[0].drift[w])
    recall_pass(r, w)
    return raised


@wp.func
def limit_parting(s: wp.array(dtype=Direct), w: int):
    """Take back at most DEEPEST of an overlap in one step: ropes follow small displacements only, whose arcs stay closed."""
    deep = real(0.0)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            deep = wp.max(deep, -s[0].contacts.gap[i, w])
    share = DEEPEST / wp.max(s[0].settings.per_metre[0] * deep, DEEPEST)
    for i in range(s[0].contacts.count[w]):
        s[0].touch.pseudo[i, w] = s[0].touch.pseudo[i, w] * share


@wp.func
def take_apart(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Overlaps at the end of the step are taken back by displacements of trees and ropes."""
    if not find_parting(s, w):
        return
    limit_parting(s, w)
    note_pass(r, 0, w)
    drum_axes(s, r, w, False)
    for k in range(r[0].ropes.count):
        miss_lengths(r, k, w, real(0.0))
    ropes_inward(r, w)
    push_apart(s, w)
    follow_pushes(s, w, 0, s[0].tree.count)
    close_cut(s, w)
    if p[0].count > 0:
        couple(s, r, p, w, False, False)
    note_parted(s, w)
    displace_all(s, r, w)
    open_gaps(s, w, False)
    close_all(s, r, p, w)  # what turned by that


@wp.func
def miss_lengths(r: wp.array(dtype=RopeStep), k: int, w: int, rate: real) -> real:
    """Gaps of a rope's rows, times `rate`, and nothing else that is missed; returns the largest gap, m."""
    first = r[0].ropes.first[k]
    n = r[0].state.segments[k, w]
    most = real(0.0)
    for j in range(n + 1):
        i = first + j
        r[0].work.e[i, w] = vec3(real(0.0))
        r[0].work.defect[i, w] = vec3(real(0.0))
        if j < n:
            gap = r[0].work.r[i + 1, w] - r[0].work.r[i, w] - tangent(r[0].work.q[i, w]) * new_span(r, i, w)
            r[0].work.push_out[i, w] = real(0.0)
            r[0].work.c[i, w] = gap * rate
            r[0].work.load[i, w] = vec3(real(0.0))
            if r[0].state.cut[i, w] == 0:
                most = wp.max(most, wp.length(gap))
    return most


@wp.func
def displace_rope(r: wp.array(dtype=RopeStep), k: int, w: int, h: real) -> real:
    """Displacements by the changes of velocities since they were noted, h times; held points go where bodies are.

    Returns the work of gravity, J.
    """
    first = r[0].ropes.first[k]
    n = r[0].state.segments[k, w]
    slots = r[0].work.v.shape[0]
    raised = real(0.0)
    for j in range(n + 1):
        i = first + j
        by = (r[0].work.v[i, w] - r[0].work.mix_v[MIXED * slots + i, w]) * h
        raised = raised + wp.dot(r[0].settings.gravity[w], by) * r[0].work.mass[i, w]
        r[0].work.r[i, w] = r[0].work.r[i, w] + by
        if j < n:
            r[0].work.q[i, w] = turned(r[0].work.q[i, w], (r[0].work.w[i, w] - r[0].work.mix_w[MIXED * slots + i, w]) * h)
    for side in range(2):
        if is_held(r, 2 * k + side):
            r[0].work.r[first + side * n, w] = end_point(r, 2 * k + side, w)
    for t in range(r[0].ropes.ties):
        if r[0].ropes.tie_rope[t] == k:
            r[0].work.r[r[0].ropes.tie_slot[t], w] = tie_point(r, t, w)
    return raised
