"""Ropes in the steps of trees: the parts of a step, and all that the emitted step asks of ropes (`engine.tree.ropes`)."""

import warp as wp

from sharnir.core.types import real
from sharnir.engine.direct.roped_closing import roped_raise, roped_slow, roped_stand_closing
from sharnir.engine.direct.roped_data import FIT_JOINTS, RopedTree
from sharnir.engine.direct.roped_passes import GO_ON, roped_begin, roped_follow, roped_inward, roped_look, roped_report
from sharnir.engine.direct.roped_speeds import roped_settle, roped_stand, roped_throw
from sharnir.engine.direct.roped_touch import keep_contacts
from sharnir.engine.rope.copies import copy_ropes
from sharnir.engine.rope.energy import (
    keep_impulses,
    keep_rope,
    take_back_impulses,
)
from sharnir.engine.rope.energy_bodies import (
    ENDS,
    SNAPS,
    WHOLE,
    body_pose,
    goes_on,
)
from sharnir.engine.rope.energy_kernels import any_snaps, clear_snaps, is_settled
from sharnir.engine.rope.kernels import spend_pushes
from sharnir.engine.rope.passes import scale_pulls
from sharnir.engine.rope.reel import change_segments, pay_out, undo_reeling


@wp.func
def roped_prepare(x: wp.array(dtype=RopedTree), w: int, h: real) -> int:
    """Reels pay out for a part of a step, and what drives ends moves; 1 where velocities do not fit that, or were changed."""
    t = x[0].tree
    s = x[0].rope
    x[0].verdict[w] = GO_ON
    s[0].h[w] = h
    s[0].kick[w] = h
    x[0].scaled[w] = h
    if x[0].elapsed[w] == real(0.0):
        keep_impulses(s, w)
    for n in range(x[0].held):
        if x[0].held_link[n] < 0:
            b = x[0].held_body[n]
            if x[0].elapsed[w] == real(0.0):
                s[0].body_state.position[b, w] = t[0].state.position[b, w]
                s[0].body_state.rotation[b, w] = t[0].state.rotation[b, w]
                s[0].body_state.velocity[b, w] = t[0].state.velocity[b, w]
                s[0].body_state.spin[b, w] = t[0].state.spin[b, w]
            s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
            s[0].body.w[b, w] = s[0].body_state.spin[b, w]
            body_pose(s, b, w)
    for k in range(s[0].ropes.count):
        pay_out(s, k, w, h)
    clear_snaps(s, w)
    whole = not is_settled(s, w)
    if not whole and goes_on(s, w):
        return 0
    undo_reeling(s, w)
    x[0].what[w] = ENDS
    if whole:
        x[0].what[w] = WHOLE
    return 1


@wp.func
def roped_miss(x: wp.array(dtype=RopedTree), w: int, whole: int):
    """A part of the step, or the whole one, is not made so."""
    s = x[0].rope
    undo_reeling(s, w)
    take_back_impulses(s, w)
    if whole == 1:
        safe = x[0].safe
        copy_ropes(s[0].state, safe[0].state, w)


@wp.func
def roped_go_back(x: wp.array(dtype=RopedTree), w: int):
    """To the state at the start of the step."""
    s = x[0].rope
    safe = x[0].safe
    copy_ropes(safe[0].state, s[0].state, w)
    x[0].elapsed[w] = real(0.0)


@wp.func
def roped_keep(x: wp.array(dtype=RopedTree), w: int) -> int:
    """Ropes of a part that was made become the state; 1 where elements became taut in it."""
    s = x[0].rope
    if x[0].touches == 1:
        keep_contacts(x, w)
    scale_pulls(s, w, s[0].settings.dt[0] / s[0].h[w])
    for k in range(s[0].ropes.count):
        keep_rope(s, k, w)
    keep_impulses(s, w)
    for n in range(x[0].held):
        if x[0].held_link[n] < 0:
            b = x[0].held_body[n]
            s[0].body_state.position[b, w] = s[0].body.x[b, w]
            s[0].body_state.rotation[b, w] = s[0].body.q[b, w]
            s[0].body_state.rest[b, w] = s[0].body.rest[b, w]
    x[0].elapsed[w] = x[0].elapsed[w] + s[0].h[w]
    x[0].what[w] = FIT_JOINTS
    if any_snaps(s, w) or x[0].strikes[w] == 1:
        x[0].what[w] = SNAPS
        return 1
    return 0


@wp.func
def roped_feed(x: wp.array(dtype=RopedTree), w: int):
    """What is torn, inserted or removed once velocities fit contradicts what was there."""
    s = x[0].rope
    dt = s[0].settings.dt[0]
    change_segments(s, w, s[0].h[w], dt)
    keep_impulses(s, w)


@wp.func
def roped_spend(x: wp.array(dtype=RopedTree), w: int):
    """A step is made: forces of one step on points of ropes are of no other."""
    spend_pushes(x[0].rope, w)
    x[0].elapsed[w] = real(0.0)


@wp.func
def roped_calls(x: wp.array(dtype=RopedTree), w: int):
    """All that emitted code calls: a kernel that names it has these functions before that code."""
    h = roped_follow(x, w, 0, 0)
    roped_begin(x, w)
    roped_inward(x, w)
    roped_report(x, w)
    roped_stand(x, w, h)
    roped_throw(x, w, h)
    roped_stand_closing(x, w, h)
    roped_raise(x, w)
    roped_slow(x, w)
    n = roped_settle(x, w) + roped_prepare(x, w, h) + roped_look(x, w)
    roped_miss(x, w, n)
    roped_go_back(x, w)
    n = roped_keep(x, w)
    roped_feed(x, w)
    roped_spend(x, w)
