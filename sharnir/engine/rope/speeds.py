"""Speeds of a rope at its pose: what a new end, a snap or a set velocity makes of them."""

import warp as wp

from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.ends import end_point
from sharnir.engine.rope.energy import thin
from sharnir.engine.rope.slack import LONGER, PUSH, as_wound, buckling_load
from sharnir.engine.rope.terms import tangent

# ---- velocities that contradict the rows ------------------------------------------------------------------------------------


@wp.func
def at_pose(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Prepare the fit of velocities to rows: tangents and masses of the pose, nothing stiff, no resistance, nothing missed."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    s[0].exact[w] = 0
    before = real(0.0)
    for j in range(n + 1):
        i = first + j
        after = real(0.0)
        if j < n:
            after = real(0.5) * s[0].state.length[i, w]
            s[0].work.d[i, w] = tangent(s[0].state.rotation[i, w])
            s[0].work.slack[i, w] = as_wound(s, k, w, i, s[0].state.slack[i, w])
            s[0].work.reach[i, w] = s[0].state.span[i, w]
            s[0].work.push_out[i, w] = real(0.0)
            s[0].work.extra[i, w] = real(0.0)
            s[0].state.pull[i, w] = vec3(real(0.0))
            s[0].work.w[i, w] = s[0].state.spin[i, w]
            s[0].work.load[i, w] = vec3(real(0.0))
        s[0].work.mass[i, w] = s[0].ropes.density[k] * (before + after)
        s[0].work.damp[i, w] = real(0.0)
        s[0].work.bar[i, w] = real(0.0)
        s[0].work.K[i, w] = mat33(real(0.0))
        s[0].work.J[i, w] = mat33(real(0.0))
        s[0].work.e[i, w] = vec3(real(0.0))
        s[0].work.c[i, w] = vec3(real(0.0))
        s[0].work.v[i, w] = s[0].state.velocity[i, w]
        s[0].work.defect[i, w] = vec3(real(0.0))
        before = after


@wp.func
def move_with(s: wp.array(dtype=RopeStep), i: int, w: int, v: vec3):
    """A point moves as what holds it; what its own mass lacks for that is its defect."""
    s[0].work.defect[i, w] = s[0].work.defect[i, w] + (v - s[0].work.v[i, w]) * s[0].work.mass[i, w]
    s[0].work.v[i, w] = v


@wp.func
def driven_speed(s: wp.array(dtype=RopeStep), k: int, side: int, w: int) -> vec3:
    """Velocity at the pose of an end that does not yield: the mean of those of the last step and of the next."""
    i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
    next = (end_point(s, 2 * k + side, w) - s[0].state.position[i, w]) / s[0].h[w]
    if s[0].state.started[k, w] == 0:
        return next
    return (s[0].state.end_mean[2 * k + side, w] + next) * real(0.5)


@wp.func
def miss_speeds(s: wp.array(dtype=RopeStep), k: int, w: int):
    """c = −(v_{j+1} − v_j − l ω × d) at the pose, of all rows."""
    first = s[0].ropes.first[k]
    for i in range(first, first + s[0].state.segments[k, w]):
        turn = wp.cross(s[0].work.w[i, w], s[0].work.d[i, w]) * s[0].state.span[i, w]
        s[0].work.c[i, w] = turn - (s[0].work.v[i + 1, w] - s[0].work.v[i, w])


@wp.func
def open_pushed(s: wp.array(dtype=RopeStep), k: int, w: int, after: int) -> int:
    """Make slack what is pressed as velocities are settled, but what has just become taut; returns how many.

    What an element does in that moment is taken together with what it did in the step before it, where `after` is 1 (the step let
    elements that became taut rebound, and now takes that back), and set against what it bears in a step.
    """
    if s[0].ropes.rod[k] == 1:
        return 0
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    part = real(after) * s[0].h[w] / s[0].settings.dt[0]
    none = real(0.0)
    speed = wp.length(s[0].settings.gravity[w]) * s[0].h[w]
    mass = real(0.0)
    for i in range(first, first + n):
        pull = wp.length(s[0].state.pull[i, w]) + wp.length(s[0].work.kept_pull[i, w]) * part
        none = wp.max(none, LONGER * pull)
        speed = wp.max(speed, wp.length(s[0].work.v[i, w]))
        mass = mass + s[0].ropes.density[k] * s[0].state.length[i, w]
    none = none + PUSH * mass * speed
    found = int(0)
    for i in range(first, first + n):
        slack = s[0].state.slack[i, w]
        if slack != 1 and s[0].state.cut[i, w] == 0 and s[0].work.snaps[i, w] == 0:
            push = wp.dot(s[0].state.pull[i, w] + s[0].work.kept_pull[i, w] * part, s[0].work.d[i, w])
            bears = buckling_load(s, k, i, w) * s[0].h[w]
            if (slack == 0 and push > bears + none) or (slack == -1 and push < bears - none):
                s[0].state.slack[i, w] = 1
                found = found + 1
    return found


@wp.func
def take_speeds(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Settled velocities become those of the state; what was gained in the last step tells nothing of the next."""
    s[0].state.degree[k, w] = 1
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    for j in range(n + 1):
        i = first + j
        s[0].state.velocity[i, w] = s[0].work.v[i, w]
        s[0].state.smooth[i, w] = s[0].work.v[i, w]
        if j < n:
            s[0].state.spin[i, w] = s[0].work.w[i, w]
            s[0].state.spin_smooth[i, w] = s[0].work.w[i, w]


@wp.func
def shift_speeds(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Velocities after the change that was found, which goes on as it went."""
    s[0].state.degree[k, w] = 1
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    for j in range(n + 1):
        i = first + j
        s[0].state.smooth[i, w] = s[0].state.smooth[i, w] + s[0].work.v[i, w] - s[0].state.velocity[i, w]
        s[0].state.velocity[i, w] = s[0].work.v[i, w]
        if j < n:
            s[0].state.spin_smooth[i, w] = s[0].state.spin_smooth[i, w] + s[0].work.w[i, w] - s[0].state.spin[i, w]
            s[0].state.spin[i, w] = s[0].work.w[i, w]


@wp.func
def rope_energy(s: wp.array(dtype=RopeStep), w: int) -> real:
    """Kinetic energy of ropes, J."""
    out = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        before = real(0.0)
        for j in range(n + 1):
            i = first + j
            after = real(0.0)
            if j < n:
                l = s[0].state.length[i, w]
                after = real(0.5) * l
                spin = s[0].state.spin[i, w]
                along = wp.dot(spin, tangent(s[0].state.rotation[i, w]))
                out = out + thin(s, k) * l * (wp.dot(spin, spin) + along * along)
            v = s[0].state.velocity[i, w]
            out = out + s[0].ropes.density[k] * (before + after) * wp.dot(v, v)
            before = after
    return real(0.5) * out
