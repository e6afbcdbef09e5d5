"""Winches beside another solver, which moves their drums: in a pass over ropes a drum is an inertia at its rim (theory: ropes).

l = l₀ − R q of the element at the reel, q the angle of the drum's joint: the element slides by σ = −R q̇, and an axial impulse ρ
in it turns the joint by R ρ. With m = 1/(R² n·(I_c⁻¹ + I_p⁻¹) n), I of the joint's two bodies and n its axis, ρ = −m σ.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import WOUND, RopeStep
from sharnir.engine.rope.reel import turn_drum
from sharnir.engine.rope.slack import reel_element
from sharnir.model.model import DYNAMIC


@wp.func
def drum_axis(s: wp.array(dtype=RopeStep), k: int, w: int) -> vec3:
    """The axis of a winch, at the start of the step."""
    return wp.quat_rotate(s[0].body_state.rotation[s[0].ropes.drum_child[k], w], s[0].ropes.drum_axis[k])


@wp.func
def drum_speed(s: wp.array(dtype=RopeStep), k: int, w: int) -> real:
    """How fast a drum turns, rad/s, as bodies turn now."""
    return wp.dot(drum_axis(s, k, w), s[0].body.w[s[0].ropes.drum_child[k], w] - s[0].body.w[s[0].ropes.drum_parent[k], w])


@wp.func
def drum_turn(s: wp.array(dtype=RopeStep), k: int, w: int) -> real:
    """By how much a drum turns in the step, rad: the turn of its bodies against each other, from their Cayley vectors."""
    a = s[0].body.turn[s[0].ropes.drum_parent[k], w] * real(0.5)
    b = s[0].body.turn[s[0].ropes.drum_child[k], w] * real(0.5)
    along = wp.dot(drum_axis(s, k, w), b - a - wp.cross(a, b))
    return real(2.0) * wp.atan2(along, real(1.0) + wp.dot(a, b))


@wp.func
def yields_about(s: wp.array(dtype=RopeStep), b: int, w: int, axis: vec3) -> vec3:
    """Spin of a body by a unit of impulse about an axis."""
    if s[0].bodies.motion[b] != DYNAMIC:
        return vec3(real(0.0))
    R = s[0].body_state.rotation[b, w]
    return wp.quat_rotate(R, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(R, axis))


@wp.func
def guess_drums(s: wp.array(dtype=RopeStep), w: int):
    """Before ropes are paid out: as fast as drums turn now; and what drums weigh at their rims."""
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            n = drum_axis(s, k, w)
            give = yields_about(s, s[0].ropes.drum_child[k], w, n) + yields_about(s, s[0].ropes.drum_parent[k], w, n)
            radius = s[0].ropes.drum[k]
            s[0].work.rim[k, w] = real(1.0) / wp.max(radius * radius * wp.dot(n, give), real(1.0e-30))
            s[0].state.reel_now[k, w] = -radius * drum_speed(s, k, w)


@wp.func
def follow_drums(s: wp.array(dtype=RopeStep), w: int):
    """Elements at winches as long as drums make them that turn as they do now."""
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            turn_drum(s, k, w, drum_speed(s, k, w) * s[0].h[w])


@wp.func
def spin_drums(s: wp.array(dtype=RopeStep), w: int):
    """Changes of the spins of drums, and of what carries them, by what ropes slide in a pass."""
    for k in range(s[0].ropes.count):
        if s[0].ropes.winch[k] >= 0:
            i = reel_element(s, k, w)
            if s[0].work.slack[i, w] == WOUND and s[0].state.cut[i, w] == 0 and s[0].work.rim[k, w] > real(0.0):
                n = drum_axis(s, k, w)
                push = -s[0].ropes.drum[k] * s[0].work.rim[k, w] * s[0].work.slid[k, w]
                c = s[0].ropes.drum_child[k]
                p = s[0].ropes.drum_parent[k]
                s[0].body.dw[c, w] = s[0].body.dw[c, w] + yields_about(s, c, w, n) * push
                s[0].body.dw[p, w] = s[0].body.dw[p, w] - yields_about(s, p, w, n) * push
