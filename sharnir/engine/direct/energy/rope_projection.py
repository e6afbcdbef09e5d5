"""Velocities that do not fit joints or ropes, in the step that keeps energy and momenta: projected, joints and ropes at once."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.links import ANEW, follow_all, inward
from sharnir.engine.direct.energy.means import take_driven
from sharnir.engine.direct.energy.passes import count_pass
from sharnir.engine.direct.energy.projection import speed_rows, stand_all, take_projected
from sharnir.engine.direct.energy.rope_passes import couple, eliminate_ropes, end_arms, hang_ropes
from sharnir.engine.direct.energy.rope_winch import drum_axes, note_drums
from sharnir.engine.direct.energy.rows import ROUNDS, close_rows, factor_rows, keep_changes
from sharnir.engine.direct.hung import push_links
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.energy import take_back_impulses
from sharnir.engine.rope.energy_bodies import ENDS, SNAPS, WHOLE, goes_on, pose_arms, settle_ends, settle_rows, turn_reels
from sharnir.engine.rope.energy_kernels import clear_snaps, is_settled
from sharnir.engine.rope.passes import ropes_inward, ropes_outward
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.reel import undo_reeling
from sharnir.engine.rope.slack import JUDGED
from sharnir.engine.rope.speeds import at_pose, move_with, open_pushed, rope_energy, shift_speeds, take_speeds

JOINTS = wp.constant(3)  # what of velocities is settled, beside those of `rope.energy_bodies`


@wp.func
def fit_speeds(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Velocities that fit, before a part of a step for which reels have paid out: all after a change from outside, else what
    driven ends and reels move otherwise than before.
    """
    take_driven(s, w)
    note_drums(s, r, w)
    clear_snaps(r, w)
    whole = not is_settled(r, w)
    if whole or not goes_on(r, w):
        undo_reeling(r, w)
        if whole:
            project(s, r, p, w, WHOLE)
        else:
            project(s, r, p, w, ENDS)
        turn_reels(r, w)
        note_drums(s, r, w)
        for k in range(r[0].ropes.count):
            if r[0].ropes.reel[k] >= 0:
                i = r[0].ropes.first[k] + r[0].ropes.reel[k] * (r[0].state.segments[k, w] - 1)
                r[0].state.length[i, w] = r[0].state.length[i, w] + r[0].work.paid[k, w]
            r[0].state.started[k, w] = 1


@wp.func
def ropes_at_pose(r: wp.array(dtype=RopeStep), w: int, what: int):
    """Ropes where they stand, with the speeds by which rows open that are to be settled."""
    for k in range(r[0].ropes.count):
        at_pose(r, k, w)
        pose_arms(r, k, w)
    if what == JOINTS:
        return
    for o in range(r[0].ropes.count):
        settle_ends(r, r[0].ropes.order[r[0].ropes.count - 1 - o], w, what)
    for t in range(r[0].ropes.ties):
        if what != ENDS:
            b = r[0].ropes.tie_body[t]
            v = r[0].body.v[b, w] + wp.cross(r[0].body.w[b, w], r[0].work.tie_arm[t, w])
            move_with(r, r[0].ropes.tie_slot[t], w, v)
    for k in range(r[0].ropes.count):
        settle_rows(r, k, w, what)


@wp.func
def project(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, what: int) -> real:
    """The velocities nearest to those of now, by kinetic energy, that fit joints and rows of ropes; returns the energy that took.

    WHOLE: all of them; ENDS: rows of ropes at driven ends and reels; SNAPS: of ropes, after a step in which elements became taut;
    JOINTS: joints alone.
    Elements that this would press go slack, and it is done again.
    """
    h = s[0].drift[w]
    pushed = s[0].pushed[w]
    lost = rope_energy(r, w)
    s[0].pushed[w] = 0
    for _round in range(JUDGED):
        find_projected(s, r, p, w, what, h)
        found = int(0)
        for k in range(r[0].ropes.count):
            found = found + open_pushed(r, k, w, int(what == SNAPS))
        if found == 0:
            break
    s[0].pushed[w] = pushed
    for k in range(r[0].ropes.count):
        if what == WHOLE or what == ENDS:
            take_speeds(r, k, w)
        else:
            shift_speeds(r, k, w)
    take_back_impulses(r, w)
    return lost - rope_energy(r, w) + take_projected(s, w)


@wp.func
def find_projected(
    s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int, what: int, h: real
):  # fmt: skip
    """Changes of the velocities for elements that are slack and taut as they are now."""
    joints = what == WHOLE or what == JOINTS
    count_pass(s, w, ANEW)
    stand_all(s, w)
    take_driven(s, w)
    ropes_at_pose(r, w, what)
    s[0].drift[w] = h * real(1.0e-9)  # the passes of a step that is next to none
    stand_all(s, w)
    end_arms(r, w)
    drum_axes(s, r, w, False)
    eliminate_ropes(r, p, w)
    ropes_inward(r, w)
    for n in range(s[0].tree.count):
        if not joints:
            s[0].work.close_l[n, w] = vec3(real(0.0))
            s[0].work.close_a[n, w] = vec3(real(0.0))
    push_links(s, r, w)
    hang_ropes(s, r, w)
    inward(s, w, ANEW)
    follow_all(s, w, real(1.0))
    if s[0].closures.count > 0:
        keep_changes(s, w)
        speed_rows(s, w)
        if not joints:
            for row in range(s[0].closures.count):
                s[0].rows.gap[row, w] = real(0.0)
        factor_rows(s, w)
        close_rows(s, w, False, ROUNDS)
    if p[0].count > 0:
        couple(s, r, p, w, True, False)
    ropes_outward(r, w)
    s[0].drift[w] = h
