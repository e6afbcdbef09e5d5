"""The rope paper's own scheme, to compare ours with: a tridiagonal solve, explicit moments, sequential and split impulses.

In a step [rope (7)–(18)]: forces and the moments of bend and twist at the start; the impulses of inextensibility from one
tridiagonal system (Thomas); the alignment of tangents n and third axes d₃ by sequential impulses, warm-started, inextensibility
being solved again after each sweep; both once more for pseudo-velocities, which close what is open and carry no energy.
Explicit moments limit the step: 2/√(4 GJ/(l̄ I₃₃)) and the like for bending. Ends are free or held by what does not yield.
"""

from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from sharnir.core.spatial import matrix, rotated
from sharnir.core.types import load_modules, mat33, real, vec3
from sharnir.engine.base import write
from sharnir.engine.rope.data import BODY, DRIVEN, RopeStep
from sharnir.engine.rope.ends import advance_body, end_point, is_held, own_inertia, place_end
from sharnir.engine.rope.passes import bad_rope
from sharnir.engine.rope.predict import frame_after, frame_before, neighbour_length, predict_points
from sharnir.engine.rope.terms import (
    darboux,
    element_inertia,
    inverse,
    kept_momentum,
    moment_on,
    relative,
    skew,
    tangent,
    turned_element,
)
from sharnir.model.model import DYNAMIC


@wp.func
def predict_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """Velocity of a body after external forces, and its inertia in world axes."""
    dt = s[0].kick[w]
    R = s[0].body_state.rotation[b, w]
    v = s[0].body_state.velocity[b, w]
    omega = s[0].body_state.spin[b, w]
    if s[0].bodies.motion[b] == DYNAMIC:
        f = s[0].body_control.force[b, w] * dt + s[0].body_control.force_once[b, w] * s[0].h[w]
        t = s[0].body_control.torque[b, w] * dt + s[0].body_control.torque_once[b, w] * s[0].h[w]
        L = s[0].body_state.momentum[b, w] + t
        v = v + s[0].settings.gravity[w] * dt + f * s[0].bodies.inv_mass[b, w]
        omega = wp.quat_rotate(R, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(R, L))
        s[0].body.momentum[b, w] = L
        s[0].body.inertia[b, w] = rotated(matrix(R), s[0].bodies.inertia[b, w])
    s[0].body.start_w[b, w] = omega
    s[0].body.v[b, w] = v
    s[0].body.w[b, w] = omega


@wp.func
def commit_body(s: wp.array(dtype=RopeStep), b: int, w: int):
    """The new state of a body becomes its state."""
    dt = s[0].h[w]
    v = s[0].body.v[b, w]
    R = s[0].body.q[b, w]
    s[0].body_state.acceleration[b, w] = (v - s[0].body_state.velocity[b, w]) / dt
    s[0].body_state.velocity[b, w] = v
    if s[0].bodies.motion[b] == DYNAMIC:
        L = s[0].body.momentum[b, w] + s[0].body.inertia[b, w] * (s[0].body.w[b, w] - s[0].body.start_w[b, w])
        s[0].body_state.momentum[b, w] = L
        s[0].body_state.spin[b, w] = wp.quat_rotate(R, s[0].bodies.inv_inertia[b, w] * wp.quat_rotate_inv(R, L))
    s[0].body_state.position[b, w] = s[0].body.x[b, w]
    s[0].body_state.rest[b, w] = s[0].body.rest[b, w]
    s[0].body_state.rotation[b, w] = R


@wp.func
def inverse_mass(s: wp.array(dtype=RopeStep), k: int, j: int, w: int) -> real:
    """1/m of a point, 0 where it is held."""
    n = s[0].state.segments[k, w]
    if (j == 0 and s[0].ropes.kind[2 * k] == DRIVEN) or (j == n and s[0].ropes.kind[2 * k + 1] == DRIVEN):
        return real(0.0)
    i = s[0].ropes.first[k] + j
    return real(1.0) / (s[0].work.mass[i, w] + s[0].work.damp[i, w])


@wp.func
def element_response(s: wp.array(dtype=RopeStep), k: int, i: int, w: int) -> mat33:
    """I⁻¹ of an element, world axes."""
    i1 = real(0.25) * s[0].ropes.density[k] * s[0].ropes.radius[k] * s[0].ropes.radius[k] * s[0].state.length[i, w]
    return inverse(element_inertia(i1, real(0.0), s[0].work.d[i, w]))


@wp.func
def bend(s: wp.array(dtype=RopeStep), k: int, w: int):
    """ω ← ω + Δt I⁻¹ τ, τ the moments of bend and twist at the start of the step [rope (14)], and those applied."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    a = frame_before(s, k, w, s[0].body_state.rotation)
    for j in range(n + 1):
        i = first + j
        b = s[0].state.rotation[i, w]
        if j == n:
            b = frame_after(s, k, w, s[0].body_state.rotation)
        else:
            s[0].work.w[i, w] = s[0].state.spin[i, w] + element_response(s, k, i, w) * s[0].control.torque[i, w] * h
        m = vec3(real(0.0))
        l = neighbour_length(s, k, j, w)
        if l > real(0.0):
            p = relative(a, b)
            x = darboux(p, real(1.0) / l) - s[0].ropes.rest[i]
            m = moment_on(a, p, vec3(s[0].ropes.EI[k, w] * x[0], s[0].ropes.EI[k, w] * x[1], s[0].ropes.GJ[k, w] * x[2])) * h
        s[0].state.moment[i, w] = m
        if j < n:
            s[0].work.w[i, w] = s[0].work.w[i, w] + element_response(s, k, i, w) * m
        if j > 0:
            s[0].work.w[i - 1, w] = s[0].work.w[i - 1, w] - element_response(s, k, i - 1, w) * m
        a = b


@wp.func
def along(s: wp.array(dtype=RopeStep), i: int, w: int):
    """n and the length of a segment at the start of the step."""
    x = s[0].state.position[i + 1, w] - s[0].state.position[i, w]
    l = wp.length(x)
    return x / l, l


@wp.func
def keep_lengths(
    s: wp.array(dtype=RopeStep), k: int, w: int, v: wp.array2d(dtype=vec3), rate: real, impulse: wp.array2d(dtype=vec3)
):
    """A p = −J v − rate · G by Thomas' algorithm, applied to v and added to the impulses [rope (7)–(11)]."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    upper = real(0.0)
    rest = real(0.0)
    last = vec3(real(0.0))
    for j in range(n):
        i = first + j
        d, l = along(s, i, w)
        ma = inverse_mass(s, k, j, w)
        mb = inverse_mass(s, k, j + 1, w)
        below = -ma * wp.dot(last, d)
        if j == 0:
            below = real(0.0)
        pivot = wp.max(ma + mb - below * upper, real(1.0e-12) * (ma + mb))
        after = real(0.0)
        if j < n - 1:
            e, _l = along(s, i + 1, w)
            after = -mb * wp.dot(d, e)
        rhs = -wp.dot(d, v[i + 1, w] - v[i, w]) - rate * (l - s[0].state.length[i, w])
        rest = (rhs - below * rest) / pivot
        upper = after / pivot
        s[0].work.bar[i, w] = upper
        s[0].work.tension[i, w] = rest
        last = d
    p = real(0.0)
    for back in range(n):
        i = first + n - 1 - back
        d, _l = along(s, i, w)
        p = s[0].work.tension[i, w] - s[0].work.bar[i, w] * p
        v[i + 1, w] = v[i + 1, w] + d * (p * inverse_mass(s, k, n - back, w))
        v[i, w] = v[i, w] - d * (p * inverse_mass(s, k, n - 1 - back, w))
        impulse[i, w] = impulse[i, w] + d * p


@wp.func
def push(s: wp.array(dtype=RopeStep), k: int, j: int, w: int, v: wp.array2d(dtype=vec3), omega: wp.array2d(dtype=vec3), by: vec3):
    """Apply an alignment impulse: R λ on the points, −d × λ on the element [rope (17)]."""
    i = s[0].ropes.first[k] + j
    d, l = along(s, i, w)
    f = (by - d * wp.dot(d, by)) / l
    v[i + 1, w] = v[i + 1, w] + f * inverse_mass(s, k, j + 1, w)
    v[i, w] = v[i, w] - f * inverse_mass(s, k, j, w)
    omega[i, w] = omega[i, w] - element_response(s, k, i, w) * wp.cross(s[0].work.d[i, w], by)


@wp.func
def align(
    s: wp.array(dtype=RopeStep), k: int, w: int, v: wp.array2d(dtype=vec3), omega: wp.array2d(dtype=vec3), rate: real,
    impulse: wp.array2d(dtype=vec3),
) -> real:  # fmt: skip
    """A sweep over n − d₃ = 0, in the two directions across n, where the block has rank [rope (15)–(18)]; the largest impulse."""
    first = s[0].ropes.first[k]
    most = real(0.0)
    for j in range(s[0].state.segments[k, w]):
        i = first + j
        d, l = along(s, i, w)
        axis = s[0].work.d[i, w]
        E = wp.identity(n=3, dtype=real)
        R = (E - wp.outer(d, d)) / l
        S = skew(axis)
        m = inverse_mass(s, k, j, w) + inverse_mass(s, k, j + 1, w)
        A = R * R * m - S * element_response(s, k, i, w) * S
        A = (E - wp.outer(d, d)) * A * (E - wp.outer(d, d)) + wp.outer(d, d) * wp.trace(A)
        u = R * (v[i + 1, w] - v[i, w]) + wp.cross(axis, omega[i, w]) + (d - axis) * rate
        change = -(inverse(A) * (u - d * wp.dot(d, u)))
        push(s, k, j, w, v, omega, change)
        impulse[i, w] = impulse[i, w] + change
        most = wp.max(most, wp.length(change))
    return most


@wp.func
def rope_by_paper(s: wp.array(dtype=RopeStep), k: int, w: int):
    """One step of a rope."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    for side in range(2):
        if is_held(s, 2 * k + side):
            place_end(s, 2 * k + side, first + side * n, w)
    predict_points(s, k, w)
    for side in range(2):
        if is_held(s, 2 * k + side):
            i = first + side * n
            s[0].work.v[i, w] = (end_point(s, 2 * k + side, w) - s[0].state.position[i, w]) / h
    bend(s, k, w)
    for j in range(n):
        s[0].state.pull[first + j, w] = vec3(real(0.0))
        push(s, k, j, w, s[0].work.v, s[0].work.w, s[0].state.before[first + j, w])
    keep_lengths(s, k, w, s[0].work.v, real(0.0), s[0].state.pull)
    passes = int(0)
    most = real(1.0)
    while passes < s[0].settings.iterations[0] and most > s[0].settings.tolerance[0]:
        most = align(s, k, w, s[0].work.v, s[0].work.w, real(0.0), s[0].state.before)
        keep_lengths(s, k, w, s[0].work.v, real(0.0), s[0].state.pull)
        passes = passes + 1
    s[0].done[w] = wp.max(s[0].done[w], passes)
    s[0].residual[w] = wp.max(s[0].residual[w], most)
    for j in range(n + 1):  # pseudo-velocities
        s[0].work.dv[first + j, w] = vec3(real(0.0))
        s[0].work.e[first + j, w] = vec3(real(0.0))
    for _it in range(4):
        align(s, k, w, s[0].work.dv, s[0].work.e, ERP / h, s[0].work.bias)
        keep_lengths(s, k, w, s[0].work.dv, ERP / h, s[0].work.c)
    for j in range(n + 1):
        i = first + j
        s[0].work.r[i, w] = s[0].state.position[i, w] + (s[0].work.v[i, w] + s[0].work.dv[i, w]) * h
        if j < n:
            s[0].work.q[i, w] = turned_element(
                s[0].state.rotation[i, w], s[0].work.d[i, w], s[0].work.w[i, w] + s[0].work.e[i, w], h
            )


ERP = wp.constant(real(0.8))  # part of what is open that a step closes


@wp.kernel(module="benchmarks.rope_paper", enable_backward=False)
def paper_steps(s: wp.array(dtype=RopeStep), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world; where one would not be finite, the world is marked and its state stays."""
    w = first + wp.tid()
    for _step in range(n[w]):
        if s[0].body_state.failed[w] != 0:
            break
        s[0].h[w] = s[0].settings.dt[0]
        s[0].kick[w] = s[0].settings.dt[0]
        s[0].done[w] = 0
        s[0].residual[w] = real(0.0)
        for b in range(s[0].bodies.count):
            predict_body(s, b, w)
            own_inertia(s, b, w)
            advance_body(s, b, w)
        for k in range(s[0].ropes.count):
            rope_by_paper(s, k, w)
        bad = bad_rope(s, w)
        s[0].body_state.failed[w] = bad
        if bad == 0:
            for b in range(s[0].bodies.count):
                commit_body(s, b, w)
            for k in range(s[0].ropes.count):
                at = s[0].ropes.first[k]
                for i in range(at, at + s[0].state.segments[k, w] + 1):
                    q = s[0].work.q[i, w]
                    s[0].state.velocity[i, w] = s[0].work.v[i, w]
                    s[0].state.position[i, w] = s[0].work.r[i, w]
                    if i < at + s[0].state.segments[k, w]:
                        s[0].state.rotation[i, w] = q
                        s[0].state.spin[i, w] = kept_momentum(s[0].work.d[i, w], tangent(q), s[0].work.w[i, w])
            s[0].body_state.time[w] = s[0].body_state.time[w] + wp.float64(s[0].settings.dt[0])


def paper_simulation(scene: sh.Scene, dt: float) -> sh.Simulation:
    """A scene of ropes stepped by the paper's scheme, with 30 sweeps at most, to 1e-12."""
    sim = sh.Simulation(scene, dt)
    table, solver = sim.model.ropes.table, sim.solver
    if np.any(table.kind.numpy() >= BODY) or table.ties:
        raise ValueError("the paper's scheme takes ropes whose ends are free or held by what does not yield")
    step: Any = solver
    load_modules([paper_steps.module], solver.device)
    step._kernel, step._leaves = paper_steps, False  # before its first step, which captures the kernel
    write(solver.settings.iterations, step._caps(None))
    return sim
