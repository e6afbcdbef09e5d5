"""Velocities of ropes and of links that do not fit: what snaps taut, is hit, or was changed by the caller."""

import warp as wp

from sharnir.core.types import mat33, real
from sharnir.engine.direct.roped_data import (
    AT_COM,
    AT_G,
    AT_U,
    AT_W,
    FIT_JOINTS,
    HUNG,
    RopedTree,
    clear_hung,
    eliminate_ropes,
    follow_ropes,
    hang_inertia,
    lack,
    speed_at,
    start_bodies,
)
from sharnir.engine.direct.roped_holds import couple_rows, stand_hold
from sharnir.engine.direct.roped_touch import strike_points
from sharnir.engine.direct.roped_winch import note_drums, stand_winch
from sharnir.engine.rope.data import BODY, RopeStep
from sharnir.engine.rope.energy import (
    take_back_impulses,
)
from sharnir.engine.rope.energy_bodies import (
    ENDS,
    SNAPS,
    WHOLE,
    pose_arms,
    settle_ends,
    settle_rows,
    turn_reels,
)
from sharnir.engine.rope.speeds import at_pose, move_with, open_pushed, rope_energy, shift_speeds, take_speeds
from sharnir.engine.tree.runtime import recall_triple
from sharnir.model.model import DYNAMIC


@wp.func
def roped_stand(x: wp.array(dtype=RopedTree), w: int, h: real):
    """Ropes where they stand, with the speeds by which rows open that are to be settled, eliminated towards the links."""
    s = x[0].rope
    what = x[0].what[w]
    x[0].scaled[w] = h
    start_bodies(x, w)
    for n in range(x[0].held):
        b = x[0].held_body[n]
        if x[0].held_link[n] >= 0:
            s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
            s[0].body.w[b, w] = s[0].body_state.spin[b, w]
    note_drums(s, w)
    for k in range(s[0].ropes.count):
        at_pose(s, k, w)
        pose_arms(s, k, w)
        s[0].work.weight[k, w] = real(1.0)
    if what != FIT_JOINTS:
        for n in range(s[0].ropes.ties):
            b = s[0].ropes.tie_body[n]
            if what == WHOLE or (what == SNAPS and s[0].bodies.motion[b] == DYNAMIC):
                v = s[0].body.v[b, w] + wp.cross(s[0].body.w[b, w], s[0].work.tie_arm[n, w])
                move_with(s, s[0].ropes.tie_slot[n], w, v)
        for o in range(s[0].ropes.count):
            settle_ends(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w, what)
        for k in range(s[0].ropes.count):
            settle_rows(s, k, w, what)
    eliminate_ropes(x, w, True, real(0.0))
    clear_hung(x, w, HUNG)
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == BODY:
            stand_first(x, k, w)
        stand_winch(x, k, w)
    for n in range(x[0].holds):
        stand_hold(x, n, w, False)
    if x[0].touches == 1:
        strike_points(x, w, what == SNAPS)
    couple_rows(x, w, True)


@wp.func
def stand_first(x: wp.array(dtype=RopedTree), k: int, w: int):
    """A rope on the link of its first end, which seeks a velocity, not a change of it."""
    s = x[0].rope
    i = x[0].link_of[s[0].ropes.body[2 * k]]
    scale = real(0.5) * x[0].scaled[w]
    own = s[0].work.arm[2 * k, w]
    arm = recall_triple(x[0].tree, i, AT_COM, w) + own
    v = speed_at(x, i, w, own)
    omega = recall_triple(x[0].tree, i, AT_W, w)
    f = s[0].work.p_l[k, w] * scale - s[0].work.Z_A[k, w] * v - s[0].work.Z_B[k, w] * omega
    n = s[0].work.p_a[k, w] * scale - s[0].work.Z_C[k, w] * v - s[0].work.Z_D[k, w] * omega
    lack(x, i, w, f, n + wp.cross(arm, f))
    hang_inertia(x, k, i, w, real(1.0), arm, arm, mat33(real(0.0)))


@wp.func
def roped_settle(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Ropes follow the projected velocities; returns how many elements these would press, which go slack: once more, then."""
    t = x[0].tree
    s = x[0].rope
    what = x[0].what[w]
    per = real(2.0) / x[0].scaled[w]
    for n in range(x[0].held):
        i = x[0].held_link[n]
        if i >= 0:
            b = x[0].held_body[n]
            g = recall_triple(t, i, AT_G, w)
            v = recall_triple(t, i, AT_U, w) + wp.cross(g, recall_triple(t, i, AT_COM, w))
            s[0].body.dv[b, w] = v * per - s[0].body_state.velocity[b, w]
            s[0].body.dw[b, w] = g * per - s[0].body_state.spin[b, w]
    follow_ropes(x, w, per)
    found = int(0)
    for k in range(s[0].ropes.count):
        found = found + open_pushed(s, k, w, int(what == SNAPS))
    if found > 0:
        return found
    lost = rope_energy(s, w)
    for k in range(s[0].ropes.count):
        if what == WHOLE or what == ENDS:
            take_speeds(s, k, w)
        else:
            note_change(s, k, w)
            shift_speeds(s, k, w)
    x[0].lost[w] = lost - rope_energy(s, w)
    take_back_impulses(s, w)
    if what == WHOLE or what == ENDS:
        turn_reels(s, w)
        for k in range(s[0].ropes.count):
            if s[0].ropes.reel[k] >= 0:
                i = s[0].ropes.first[k] + s[0].ropes.reel[k] * (s[0].state.segments[k, w] - 1)
                s[0].state.length[i, w] = s[0].state.length[i, w] + s[0].work.paid[k, w]
            s[0].state.started[k, w] = 1
    x[0].what[w] = FIT_JOINTS
    return 0


@wp.func
def note_change(s: wp.array(dtype=RopeStep), k: int, w: int):
    """By how much a projection changes velocities of points, in `dv`, and of elements, in `c`."""
    first = s[0].ropes.first[k]
    for i in range(first, first + s[0].state.segments[k, w] + 1):
        s[0].work.dv[i, w] = s[0].work.v[i, w] - s[0].state.velocity[i, w]
        s[0].work.c[i, w] = s[0].work.w[i, w] - s[0].state.spin[i, w]


@wp.func
def roped_throw(x: wp.array(dtype=RopedTree), w: int, bounce: real):
    """Ropes leave an impact beyond the projected velocities by a part of what these change."""
    s = x[0].rope
    if bounce == real(0.0):
        return
    lost = x[0].lost[w] + rope_energy(s, w)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for j in range(n + 1):
            s[0].work.v[first + j, w] = s[0].state.velocity[first + j, w] + s[0].work.dv[first + j, w] * bounce
            if j < n:
                s[0].work.w[first + j, w] = s[0].state.spin[first + j, w] + s[0].work.c[first + j, w] * bounce
        shift_speeds(s, k, w)
    x[0].lost[w] = lost - rope_energy(s, w)
