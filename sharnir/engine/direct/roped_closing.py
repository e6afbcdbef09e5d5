"""Ropes follow links that are displaced where bodies overlap, and what that raises is paid for by kinetic energy."""

import warp as wp

from sharnir.core.spatial import unit
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.roped_data import (
    AT_COM,
    AT_G,
    AT_U,
    HUNG,
    OF_ROWS,
    RopedTree,
    clear_hung,
    eliminate_ropes,
    follow_ropes,
    hang_inertia,
    lack,
    start_bodies,
)
from sharnir.engine.direct.roped_holds import couple_rows, first_link, stand_hold
from sharnir.engine.direct.roped_touch import stand_still
from sharnir.engine.direct.roped_winch import displace_winch, stand_winch_closing
from sharnir.engine.rope.data import BODY, LOOP, ROPE, RopeStep
from sharnir.engine.rope.energy import (
    take_back_impulses,
)
from sharnir.engine.rope.energy_bodies import (
    pose_arms,
)
from sharnir.engine.rope.means import cayley
from sharnir.engine.rope.slack import taut_at
from sharnir.engine.rope.speeds import at_pose, shift_speeds
from sharnir.engine.tree.row_storage import LINK_FIELDS
from sharnir.engine.tree.runtime import MEMORY_APART, MEMORY_ROW, TreeStep, memory_of, recall_triple
from sharnir.engine.tree.storage import offsets

AT_RAISED = wp.constant(offsets(LINK_FIELDS)["raised"])


@wp.func
def place_of_raised(t: wp.array(dtype=TreeStep), i: int, w: int) -> int:
    """Where the memory has what a link was raised, or the factor of its velocities."""
    first = (MEMORY_ROW + MEMORY_APART) * (t[0].links + 1) + OF_ROWS * (i + 1) + AT_RAISED
    return first * t[0].memory_number + memory_of(t, w)


@wp.func
def seek_closed(s: wp.array(dtype=RopeStep), i: int, w: int) -> vec3:
    """By how much an element misses its points; a slack one reaches as far as they are, and is taut where that is too far."""
    apart = s[0].state.position[i + 1, w] - s[0].state.position[i, w]
    if s[0].state.slack[i, w] == 1:
        span = wp.dot(s[0].work.d[i, w], apart)
        l = s[0].state.length[i, w]
        if wp.abs(span) > l:
            s[0].work.slack[i, w] = taut_at(span)
            span = wp.clamp(span, -l, l)
        s[0].state.span[i, w] = span
        s[0].work.reach[i, w] = span
    return s[0].work.d[i, w] * s[0].state.span[i, w] - apart


@wp.func
def roped_stand_closing(x: wp.array(dtype=RopedTree), w: int, h: real):
    """Ropes where they stand, eliminated towards links that are to be displaced; what they seek closes their gaps."""
    s = x[0].rope
    x[0].scaled[w] = h
    x[0].open[w] = real(0.0)
    start_bodies(x, w)
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[s[0].ropes.count - 1 - o]
        at_pose(s, k, w)
        pose_arms(s, k, w)
        s[0].work.weight[k, w] = real(1.0)
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for side in range(2):
            end = 2 * k + side
            if s[0].ropes.kind[end] == BODY or s[0].ropes.kind[end] == LOOP:
                b = s[0].ropes.body[end]
                s[0].state.position[first + side * n, w] = s[0].body_state.position[b, w] + s[0].work.arm[end, w]
        if s[0].ropes.kind[2 * k] == ROPE:
            s[0].state.position[first, w] = s[0].state.position[s[0].ropes.body[2 * k], w]
        for tie in range(s[0].ropes.ties):
            if s[0].ropes.tie_rope[tie] == k:
                b = s[0].ropes.tie_body[tie]
                at = s[0].body_state.position[b, w] + s[0].work.tie_arm[tie, w]
                s[0].state.position[s[0].ropes.tie_slot[tie], w] = at
        for i in range(first, first + n):
            if s[0].state.cut[i, w] == 0:
                gap = seek_closed(s, i, w)
                s[0].work.c[i, w] = gap / h
                x[0].open[w] = wp.max(x[0].open[w], wp.length(gap))
    eliminate_ropes(x, w, True, real(0.0))
    clear_hung(x, w, HUNG)
    scale = real(0.5) * h
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            i = x[0].link_of[s[0].ropes.body[2 * k]]
            arm = recall_triple(x[0].tree, i, AT_COM, w) + s[0].work.arm[2 * k, w]
            f = s[0].work.p_l[k, w] * scale
            lack(x, i, w, f, s[0].work.p_a[k, w] * scale + wp.cross(arm, f))
            hang_inertia(x, k, i, w, real(1.0), arm, arm, mat33(real(0.0)))
        stand_winch_closing(x, k, w)
    for hold in range(x[0].holds):
        stand_hold(x, hold, w, True)
    if x[0].touches == 1:
        stand_still(x, w)
    couple_rows(x, w, True)
    take_back_impulses(s, w)  # the last round displaces nothing more


@wp.func
def roped_raise(x: wp.array(dtype=RopedTree), w: int):
    """Ropes follow links that are displaced; their weight that this raises, times ¼ h², counts as that of a link."""
    t = x[0].tree
    s = x[0].rope
    h = x[0].scaled[w]
    per = real(2.0) / h
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            g = recall_triple(t, i, AT_G, w)
            s[0].body.dv[b, w] = (recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM, w))) * per
            s[0].body.dw[b, w] = g * per
    follow_ropes(x, w, per)
    for k in range(s[0].ropes.count):
        displace_winch(x, k, w)
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        raised = real(0.0)
        for i in range(first, first + n + 1):
            moved = (s[0].work.v[i, w] - s[0].state.velocity[i, w]) * h
            s[0].state.position[i, w] = s[0].state.position[i, w] + moved
            raised = raised - s[0].work.mass[i, w] * wp.dot(t[0].settings.gravity[w], moved)
            if i < first + n:
                turn = (s[0].work.w[i, w] - s[0].state.spin[i, w]) * h
                s[0].state.rotation[i, w] = unit(cayley(turn) * s[0].state.rotation[i, w])
        i = first_link(x, k)
        for hold in range(x[0].holds):
            if i < 0 and x[0].hold_rope[hold] == k:
                i = x[0].hold_link[hold]
        if i >= 0:
            at = place_of_raised(t, i, w)
            t[0].memory[at] = t[0].memory[at] + raised * (real(0.25) * h * h)
    take_back_impulses(s, w)


@wp.func
def roped_slow(x: wp.array(dtype=RopedTree), w: int):
    """Ropes are slowed as the slowest of the links that hold them."""
    s = x[0].rope
    for k in range(s[0].ropes.count):
        part = real(1.0)
        for hold in range(-1, x[0].holds):
            i = first_link(x, k)
            if hold >= 0:
                i = wp.where(x[0].hold_rope[hold] == k, x[0].hold_link[hold], -1)
            if i >= 0:
                part = wp.min(part, x[0].tree[0].memory[place_of_raised(x[0].tree, i, w)])
        if part < real(1.0):
            first = s[0].ropes.first[k]
            for i in range(first, first + s[0].state.segments[k, w] + 1):
                s[0].work.v[i, w] = s[0].state.velocity[i, w] * part
                s[0].work.w[i, w] = s[0].state.spin[i, w] * part
            shift_speeds(s, k, w)
