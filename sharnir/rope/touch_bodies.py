"""Bodies that yield to ropes which touch them, in the same solve (theory: ropes that touch).

A body's twist couples points of ropes beyond the elimination along them. With V̂ the change of the twists of the bodies that are
touched, a pass is linear in it: the ropes' own elimination is made once more for each of its components, and six rows a body,

    V̂ = − Ω Σ Jᵀ (P⁺ − P),        P⁺ = Π(q) − A (dv − J V̂),

are solved at the end; Ω is the body's mobility, and where a joint holds it to something that does not move, what that joint
leaves of it: a pulley turns about its hinge and does nothing else. Impulses are handed to the sweeps as they are; the joint takes
its share there.
"""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.model import DYNAMIC
from sharnir.rope.data import RopeStep
from sharnir.rope.ends import clear_ties
from sharnir.rope.passes import bring_ropes, move_all
from sharnir.rope.touch_data import COLUMNS, MOST, OPEN, YIELDING, RopeTouch
from sharnir.types import mat33, real, vec3


@wp.func
def list_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int) -> int:
    """The bodies that yield in this pass, each with its place; how many. What holds a rope itself is not among them."""
    found = int(0)
    for b in range(s[0].bodies.count):
        t[0].place[b, w] = -1
        t[0].hat_v[b, w] = vec3()
        t[0].hat_w[b, w] = vec3()
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            for e in range(MOST * i, MOST * i + t[0].count[i, w]):
                b = c[0].shapes.body[t[0].shape[e, w]]
                yields = s[0].bodies.motion[b] == DYNAMIC and t[0].holds[b] == 0 and t[0].state[e, w] != OPEN
                if yields and t[0].place[b, w] < 0 and found < YIELDING:
                    t[0].place[b, w] = found
                    t[0].listed[found, w] = b
                    mobility(s, t, b, found, w)
                    found = found + 1
    return found


@wp.func
def moved_by(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), b: int, w: int, force: vec3, torque: vec3):
    """The change of a body's twist by an impulse and a moment, its joint to what does not move included."""
    I = mat33(real(0.0))
    if wp.trace(s[0].bodies.inertia[b, w]) > real(0.0):
        I = wp.inverse(s[0].body.inertia[b, w])
    m = s[0].bodies.inv_mass[b, w]
    v = force * m
    omega = I * torque
    k = t[0].joint[b]
    if k >= 0:
        if t[0].joint_mode[k, w] % 2 == 1:
            r = t[0].joint_r_child[k, w]
            if t[0].joint_child[k] != b:
                r = t[0].joint_r_parent[k, w]
            u = v + wp.cross(omega, r)
            B = t[0].joint_W_la[k, w]
            p = t[0].joint_W_ll[k, w] * u + B * omega
            l = u * B + t[0].joint_W_aa[k, w] * omega
            v = v - p * m
            omega = omega - I * (wp.cross(r, p) + l)
    return v, omega


@wp.func
def mobility(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), b: int, at: int, w: int):
    """Ω of a body, by columns: the linear and the angular change by each unit impulse and moment."""
    for a in range(3):
        f = vec3()
        f[a] = real(1.0)
        v, omega = moved_by(s, t, b, w, f, vec3())
        t[0].by_force_v[3 * at + a, w] = v
        t[0].by_force_w[3 * at + a, w] = omega
        v, omega = moved_by(s, t, b, w, vec3(), f)
        t[0].by_torque_v[3 * at + a, w] = v
        t[0].by_torque_w[3 * at + a, w] = omega


@wp.func
def give(t: wp.array(dtype=RopeTouch), at: int, w: int, f: vec3, l: vec3):
    """Ω (f, l) of the body at a place."""
    v = vec3()
    omega = vec3()
    for a in range(3):
        v = v + t[0].by_force_v[3 * at + a, w] * f[a] + t[0].by_torque_v[3 * at + a, w] * l[a]
        omega = omega + t[0].by_force_w[3 * at + a, w] * f[a] + t[0].by_torque_w[3 * at + a, w] * l[a]
    return v, omega


@wp.func
def carried_surface(t: wp.array(dtype=RopeTouch), b: int, e: int, w: int) -> vec3:
    """J V̂ at a point of contact."""
    return t[0].hat_v[b, w] + wp.cross(t[0].hat_w[b, w], t[0].arm[e, w])


@wp.func
def solve_ropes(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Changes of velocities in a pass, from what it began from, for surfaces that go on by V̂."""
    for b in range(s[0].bodies.count):
        s[0].body.p_l[b, w] = vec3()
        s[0].body.p_a[b, w] = vec3()
    for end in range(s[0].state.end_force.shape[0]):
        s[0].state.end_force[end, w] = t[0].end[end, w]
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, False)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            s[0].work.v[i, w] = t[0].v[i, w]
            s[0].work.w[i, w] = t[0].w[i, w]
            s[0].state.pull[i, w] = t[0].pull[i, w]
            s[0].state.moment[i, w] = t[0].moment[i, w]
            for e in range(MOST * i, MOST * i + t[0].count[i, w]):
                b = c[0].shapes.body[t[0].shape[e, w]]
                lacks = t[0].wanted[e, w] - t[0].impulse[e, w]
                if t[0].place[b, w] >= 0:
                    lacks = lacks + t[0].A[e, w] * carried_surface(t, b, e, w)
                s[0].work.tie_p[i, w] = s[0].work.tie_p[i, w] - lacks
    bring_ropes(s, w)
    move_all(s, w)


@wp.func
def set_hat(t: wp.array(dtype=RopeTouch), column: int, value: real, w: int):
    """One component of V̂."""
    b = t[0].listed[column / 6, w]
    a = column % 6
    if a < 3:
        v = t[0].hat_v[b, w]
        v[a] = value
        t[0].hat_v[b, w] = v
    else:
        omega = t[0].hat_w[b, w]
        omega[a - 3] = value
        t[0].hat_w[b, w] = omega


@wp.func
def add_rows(t: wp.array(dtype=RopeTouch), at: int, e: int, P: vec3, column: int, w: int):
    """Ω Jᵀ P of a point of contact, in a column of the small system; the last column is its right-hand side."""
    v, omega = give(t, at, w, P, wp.cross(t[0].arm[e, w], P))
    for a in range(3):
        i = (6 * at + a) * (COLUMNS + 1) + column
        j = (6 * at + 3 + a) * (COLUMNS + 1) + column
        t[0].dense[i, w] = t[0].dense[i, w] + v[a]
        t[0].dense[j, w] = t[0].dense[j, w] + omega[a]


@wp.func
def fill_column(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), column: int, w: int
):  # fmt: skip
    """What the points of contact do to the bodies, at the velocities of the last solve: less that without V̂."""
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            for e in range(MOST * i, MOST * i + t[0].count[i, w]):
                b = c[0].shapes.body[t[0].shape[e, w]]
                at = t[0].place[b, w]
                if at >= 0:
                    if column == COLUMNS:
                        P = t[0].wanted[e, w] - t[0].A[e, w] * s[0].work.dv[i, w] - t[0].impulse[e, w]
                        add_rows(t, at, e, -P, column, w)
                    else:
                        dv = s[0].work.dv[i, w] - t[0].alone[i, w] - carried_surface(t, b, e, w)
                        add_rows(t, at, e, -(t[0].A[e, w] * dv), column, w)


@wp.func
def eliminate_dense(t: wp.array(dtype=RopeTouch), n: int, w: int):
    """Solve the small system in place, with pivots: the result stands in its last column."""
    wide = COLUMNS + 1
    for p in range(n):
        best = int(p)
        for r in range(p + 1, n):
            if wp.abs(t[0].dense[r * wide + p, w]) > wp.abs(t[0].dense[best * wide + p, w]):
                best = r
        for q in range(p, n + 1):
            col = wp.where(q == n, COLUMNS, q)
            keep = t[0].dense[p * wide + col, w]
            t[0].dense[p * wide + col, w] = t[0].dense[best * wide + col, w]
            t[0].dense[best * wide + col, w] = keep
        pivot = t[0].dense[p * wide + p, w]
        for r in range(n):
            if r != p:
                ratio = t[0].dense[r * wide + p, w] / pivot
                if ratio != real(0.0):
                    for q in range(p, n + 1):
                        col = wp.where(q == n, COLUMNS, q)
                        t[0].dense[r * wide + col, w] = t[0].dense[r * wide + col, w] - ratio * t[0].dense[p * wide + col, w]
    for p in range(n):
        t[0].dense[p * wide + COLUMNS, w] = t[0].dense[p * wide + COLUMNS, w] / t[0].dense[p * wide + p, w]


@wp.func
def solve_with_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int) -> int:
    """Changes of velocities in a pass, of ropes and of the bodies that they touch; how many of these yield."""
    bodies = list_bodies(s, t, c, w)
    solve_ropes(s, t, c, w)
    if bodies == 0:
        return 0
    n = 6 * bodies
    for i in range(t[0].count.shape[0]):
        t[0].alone[i, w] = s[0].work.dv[i, w]
    for r in range(n):
        for q in range(n):
            t[0].dense[r * (COLUMNS + 1) + q, w] = wp.where(r == q, real(1.0), real(0.0))
        t[0].dense[r * (COLUMNS + 1) + COLUMNS, w] = real(0.0)
    fill_column(s, t, c, COLUMNS, w)
    for q in range(n):
        set_hat(t, q, real(1.0), w)
        solve_ropes(s, t, c, w)
        fill_column(s, t, c, q, w)
        set_hat(t, q, real(0.0), w)
    eliminate_dense(t, n, w)
    for q in range(n):
        set_hat(t, q, t[0].dense[q * (COLUMNS + 1) + COLUMNS, w], w)
    solve_ropes(s, t, c, w)
    for at in range(bodies):
        b = t[0].listed[at, w]
        s[0].body.v[b, w] = s[0].body.v[b, w] + t[0].hat_v[b, w]
        s[0].body.w[b, w] = s[0].body.w[b, w] + t[0].hat_w[b, w]
    return bodies


# ---- what bodies take from a launch of passes -------------------------------------------------------------------------------


@wp.func
def note_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), w: int):
    """Twists and impulses before the passes of a launch."""
    for b in range(s[0].bodies.count):
        t[0].launch_v[b, w] = s[0].body.v[b, w]
        t[0].launch_w[b, w] = s[0].body.w[b, w]
        t[0].yields[b, w] = 0
    for i in range(t[0].count.shape[0]):
        for e in range(MOST * i, MOST * i + t[0].count[i, w]):
            t[0].launch_impulse[e, w] = t[0].impulse[e, w]


@wp.func
def push_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Hand the impulses of a launch to bodies that yielded, as they are: their joints have not taken part yet."""
    for b in range(s[0].bodies.count):
        if t[0].yields[b, w] == 1:
            s[0].body.v[b, w] = t[0].launch_v[b, w]
            s[0].body.w[b, w] = t[0].launch_w[b, w]
    for i in range(t[0].count.shape[0]):
        for e in range(MOST * i, MOST * i + t[0].count[i, w]):
            b = c[0].shapes.body[t[0].shape[e, w]]
            if t[0].yields[b, w] == 1:
                push_body(s, b, w, t[0].arm[e, w], t[0].launch_impulse[e, w] - t[0].impulse[e, w])


@wp.func
def push_body(s: wp.array(dtype=RopeStep), b: int, w: int, arm: vec3, P: vec3):
    """An impulse on a body that yields."""
    if s[0].bodies.motion[b] == DYNAMIC:
        s[0].body.v[b, w] = s[0].body.v[b, w] + P * s[0].bodies.inv_mass[b, w]
        if wp.trace(s[0].bodies.inertia[b, w]) > real(0.0):
            s[0].body.w[b, w] = s[0].body.w[b, w] + wp.inverse(s[0].body.inertia[b, w]) * wp.cross(arm, P)
