"""Bodies that yield to ropes which touch them: which, how they move, and what they take (theory: ropes that touch).

A body's twist V̂ is an unknown of the ropes' solve (`touch_couple`), with Ω the body's mobility and, where a joint holds it to
something that does not move, what that joint leaves of it: a pulley turns about its hinge and does nothing else. Impulses are
handed to the sweeps as they are; the joint takes its share there.
"""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.touch_data import OPEN, RopeTouch
from sharnir.engine.rope.touch_find import rope_of
from sharnir.model.model import DYNAMIC


@wp.func
def is_coupled(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> bool:
    """Whether the impulse of a point of contact is an unknown of its own: of two elements, or at a body that holds a rope."""
    if e >= t[0].base:
        return True
    b = c[0].shapes.body[t[0].shape[e, w]]
    return s[0].bodies.motion[b] == DYNAMIC and t[0].holds[b] == 1


@wp.func
def list_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int) -> int:
    """The bodies that yield in this pass, each with its place; how many. What holds a rope itself is not among them."""
    found = int(0)
    lost = int(0)
    for b in range(s[0].bodies.count):
        t[0].place[b, w] = -1
        t[0].hat_v[b, w] = vec3()
        t[0].hat_w[b, w] = vec3()
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if not is_coupled(s, t, c, e, w):
            b = c[0].shapes.body[t[0].shape[e, w]]
            acts = t[0].state[e, w] != OPEN or wp.length_sq(t[0].impulse[e, w]) > real(0.0)
            if s[0].bodies.motion[b] == DYNAMIC and acts and t[0].place[b, w] < 0:
                if 6 * (found + 1) > t[0].columns:
                    lost = lost + 1
                else:
                    t[0].place[b, w] = found
                    t[0].listed[found, w] = b
                    t[0].yields[b, w] = 1
                    mobility(s, t, b, found, w)
                    found = found + 1
    t[0].lost[w] = wp.max(t[0].lost[w], lost)
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
def join(t: wp.array(dtype=RopeTouch), a: int, b: int, w: int):
    """Let two parts of the scene, or a part and a body, go one way in this pass."""
    x = int(a)
    y = int(b)
    while t[0].group[x, w] != x:
        x = t[0].group[x, w]
    while t[0].group[y, w] != y:
        y = t[0].group[y, w]
    t[0].group[wp.max(x, y), w] = wp.min(x, y)


@wp.func
def make_groups(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """What goes one way in this pass: parts of the scene that ropes tie together, and what touches; each by its least number."""
    nodes = t[0].group.shape[0]
    for i in range(nodes):
        t[0].group[i, w] = i
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        own = t[0].rope_part[rope_of(t, e, w)]
        if e >= t[0].base:
            join(t, own, t[0].rope_part[t[0].rope_of[t[0].pair_a[e - t[0].base, w]]], w)
        else:
            b = c[0].shapes.body[t[0].shape[e, w]]
            if t[0].place[b, w] >= 0:
                join(t, own, t[0].parts + b, w)
            elif is_coupled(s, t, c, e, w):
                join(t, own, t[0].body_part[b], w)
    for i in range(nodes):
        t[0].group[i, w] = t[0].group[t[0].group[i, w], w]  # numbers only fall: the one before is known already


# ---- what bodies take from a launch of passes -------------------------------------------------------------------------------


@wp.func
def note_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), w: int):
    """Twists and impulses before the passes of a launch."""
    for b in range(s[0].bodies.count):
        t[0].launch_v[b, w] = s[0].body.v[b, w]
        t[0].launch_w[b, w] = s[0].body.w[b, w]
        t[0].yields[b, w] = 0
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].launch_impulse[e, w] = t[0].impulse[e, w]


@wp.func
def push_bodies(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Hand the impulses of a launch to bodies that yielded, as they are: their joints have not taken part yet."""
    for b in range(s[0].bodies.count):
        if t[0].yields[b, w] == 1:
            s[0].body.v[b, w] = t[0].launch_v[b, w]
            s[0].body.w[b, w] = t[0].launch_w[b, w]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if not is_coupled(s, t, c, e, w):
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
