"""Winches on trees: a joint's axis winds a rope, and the rope's tension turns it (theory: ropes).

The length of the element at the reel is l = l₀ − R q, q the angle of the drum's joint, at the end of every step. With ρ = −T Δt
the impulse along the element (`rope.energy.slide_axis`) the work of its row where l changes is ρ Δl = −R ρ Δq: about the mean
axis S̄ of the joint the drum is turned by R ρ, and its parent by −R ρ. The change of ρ in a pass is a port's (`rope.ports`).
"""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.rope.data import WOUND, RopeStep
from sharnir.engine.rope.energy import slide_axis
from sharnir.engine.rope.reel import turn_drum
from sharnir.engine.rope.slack import reel_element
from sharnir.model.model import DYNAMIC


@wp.func
def drum_link(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), k: int) -> int:
    """The link that hangs by the joint of a winch."""
    i = s[0].rows.link_of[r[0].ropes.drum_child[k]]
    if i >= 0:
        if s[0].tree.joint[i] == r[0].ropes.winch[k]:
            return i
    return s[0].rows.link_of[r[0].ropes.drum_parent[k]]


@wp.func
def spin_at_pose(s: wp.array(dtype=Direct), b: int, w: int) -> vec3:
    """Spin of a body in the state; of a dynamic one it follows from its momentum."""
    if s[0].whole.motion[b] != DYNAMIC:
        return s[0].state.spin[b, w]
    M = matrix(s[0].state.rotation[b, w])
    return M * (s[0].whole.inv_inertia[b, w] * (s[0].state.momentum[b, w] * M))


@wp.func
def note_drums(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """How fast winches pay out at the pose: a step turns bodies by 2 atan(½Δt ω), and paying out goes with the angle."""
    half = real(0.5) * s[0].drift[w]
    for k in range(r[0].ropes.count):
        if r[0].ropes.winch[k] >= 0:
            i = drum_link(s, r, k)
            b = s[0].half_of[s[0].tree.body[i]]
            axis = wp.quat_rotate(s[0].state.rotation[b, w], s[0].tree.place[i, w].axis)
            u = wp.dot(axis, spin_at_pose(s, b, w) - spin_at_pose(s, s[0].half_of[s[0].tree.base[i]], w))
            r[0].state.reel_now[k, w] = -r[0].ropes.drum[k] * wp.atan(half * u) / half


@wp.func
def turn_drums(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Elements at winches as long as drums make them that turn as they do now."""
    for k in range(r[0].ropes.count):
        if r[0].ropes.winch[k] >= 0:
            turn_drum(r, k, w, s[0].moved[s[0].joints.v_start[r[0].ropes.winch[k]], w])


@wp.func
def drum_axes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, step: bool):
    """What an axial impulse does to the drums, and how these shorten ropes: in a step, or as velocities are projected."""
    for k in range(r[0].ropes.count):
        if r[0].ropes.winch[k] >= 0:
            i = drum_link(s, r, k)
            v0 = s[0].tree.row[i].v_start
            radius = r[0].ropes.drum[k] * real(s[0].tree.sign[i])
            S = s[0].work.S_a[v0, w]
            r[0].work.lever[k, w] = S * (radius / wp.dot(S, S))
            if step:
                radius = radius * real(0.5) / r[0].work.weight[k, w]
            r[0].work.drum_rate[k, w] = s[0].end_a[v0, w] * radius


@wp.func
def turn_by_ropes(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """What wound ropes have done to drums so far, as of outside."""
    for k in range(r[0].ropes.count):
        if r[0].ropes.winch[k] >= 0:
            e = reel_element(r, k, w)
            if r[0].work.slack[e, w] == WOUND and r[0].state.cut[e, w] == 0:
                moment = r[0].work.lever[k, w] * wp.dot(slide_axis(r, e, w), r[0].state.pull[e, w])
                i = s[0].rows.link_of[r[0].ropes.drum_child[k]]
                if i >= 0:
                    s[0].sum_a[i, w] = s[0].sum_a[i, w] - moment
                i = s[0].rows.link_of[r[0].ropes.drum_parent[k]]
                if i >= 0:
                    s[0].sum_a[i, w] = s[0].sum_a[i, w] + moment


@wp.func
def displace_drums(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int, h: real):
    """Elements at winches after displacements: the changes of now, h times."""
    for k in range(r[0].ropes.count):
        if r[0].ropes.winch[k] >= 0:
            turn = s[0].work.change_a[r[0].ropes.drum_child[k], w] - s[0].work.change_a[r[0].ropes.drum_parent[k], w]
            more = wp.dot(r[0].work.drum_rate[k, w], turn) * h
            if r[0].work.winds[k, w] == 1:
                e = reel_element(r, k, w)
                r[0].state.length[e, w] = r[0].state.length[e, w] - more
                r[0].work.paid[k, w] = r[0].work.paid[k, w] - more
