"""Velocities that fit the joints at a pose: what strikes, is set or is taken apart is projected, with the momenta kept."""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import mat66, real, vec3, vec6
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.articulated.loop_rows import GEAR
from sharnir.engine.direct.balls import FREE
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.cables import cable_speeds
from sharnir.engine.direct.energy.rows import find_rows, rate_of
from sharnir.engine.direct.modified import lies
from sharnir.model.joint_geometry import free_axis
from sharnir.model.kinematics import pose_at

# of a link's inertia: what friction holds resists so much while velocities are projected; a lock, which yields to rows beside
# the tree, would need more than one pass to keep momenta
HOLDS = wp.constant(real(1.0e10))


# ---- velocities that do not fit the joints ----------------------------------------------------------------------------------


@wp.func
def resistance(s: wp.array(dtype=Direct), i: int, w: int, d: vec3, n: vec3, out: vec3) -> real:
    """What holds an axis along d, or about n, of a link whose centre is at `out` from its joint, kg or kg·m²."""
    m = s[0].tree.mass[i, w]
    return HOLDS * (m * wp.length_sq(d) + (s[0].tree.least[i, w] + m * wp.length_sq(out)) * wp.length_sq(n))


@wp.func
def rest_axis(s: wp.array(dtype=Direct), at: int, w: int):
    """Nothing acts along an axis, and it has no speed yet."""
    s[0].tau[at, w] = real(0.0)
    s[0].speed[at, w] = real(0.0)
    s[0].lock_u[at, w] = real(0.0)


@wp.func
def leave_limits(s: wp.array(dtype=Direct), i: int, w: int, out: vec3, rates: vec6, C: mat66, l: vec3, a: vec3):
    """An impact at limits that were met: what their axes, of the speeds `rates`, lack of those at which they are to leave.

    Returns the lacking velocity l and spin a of the link with that, and what holds the axes to it. Each limit is left once.
    """
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    n_axes = s[0].tree.row[i].v_size
    turn = n_axes - s[0].joints.turns[j]
    for k in range(n_axes):
        if s[0].at_limit[v0 + k, w] == 1:
            s[0].at_limit[v0 + k, w] = 0
            g = vec6()
            g[k] = real(1.0)
            if s[0].joints.ball[j] != 0 and k >= turn:
                row = s[0].laws.row[v0 + k, w]
                g[k] = real(0.0)
                for h in range(3):
                    g[turn + h] = row[h]
            lacks = (s[0].leaving[v0 + k, w] - wp.dot(g, rates)) / wp.dot(g, g)
            s[0].linear.acts[i, w] = s[0].acting
            holds = resistance(s, i, w, s[0].work.S_l[v0 + k, w], s[0].work.S_a[v0 + k, w], out)
            for x in range(n_axes):
                rates[x] = rates[x] + g[x] * lacks
                l = l + s[0].work.S_l[v0 + x, w] * (g[x] * lacks)
                a = a + s[0].work.S_a[v0 + x, w] * (g[x] * lacks)
                for y in range(n_axes):
                    C[x, y] = C[x, y] + holds * g[x] * g[y]
            if n_axes == 1:
                s[0].linear.resist[v0, w] = C[0, 0]
    return l, a, C


@wp.func
def stand(s: wp.array(dtype=Direct), i: int, w: int):
    """A link where it stands, its axes, and the speed that its joint's rows lack, −J V, as of a gap."""
    b = natural(s[0].tree.row[i].body)
    own = natural(s[0].half_of[b])
    base = natural(s[0].tree.row[i].base)
    j = natural(s[0].tree.row[i].joint)
    x = s[0].state.position[own, w]
    R = s[0].state.rotation[own, w]
    M = matrix(R)
    L = s[0].state.momentum[own, w]
    v = s[0].state.velocity[own, w]
    omega = M * (s[0].whole.inv_inertia[own, w] * (L * M))
    s[0].work.velocity[b, w] = v
    s[0].work.spin[b, w] = omega
    s[0].work.acceleration[b, w] = v
    s[0].work.turning[b, w] = omega
    s[0].work.position[b, w] = x
    s[0].work.rotation[b, w] = R
    s[0].position[b, w] = x
    s[0].rotation[b, w] = R
    s[0].momentum[b, w] = L
    s[0].impulse_l[i, w] = v * s[0].tree.mass[i, w]
    s[0].gain[i, w] = vec3(real(0.0))
    kind = s[0].tree.row[i].kind
    if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
        kind = LOOSE
    if lies(s, own, w):
        kind = LOOSE
    s[0].work.kind[i, w] = kind
    s[0].linear.acts[i, w] = 0
    s[0].linear.locks[i, w] = 0
    arm = x - s[0].position[base, w]
    v_b = s[0].work.acceleration[base, w]
    w_b = s[0].work.turning[base, w]
    l = v_b + wp.cross(w_b, arm) - v
    a = w_b - omega
    out = vec3(real(0.0))
    if kind != LOOSE:
        pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
        out = x - pose.child_anchor
        if kind == FREE:
            l = l - wp.cross(a, out)  # at the joint's point
        else:
            sign = real(s[0].tree.sign[i])
            v0 = natural(s[0].tree.row[i].v_start)
            n_axes = s[0].tree.row[i].v_size
            p_l = l - wp.cross(a, out)
            p_a = a
            C = mat66()
            rates = vec6()  # speeds of the joint's axes
            for k in range(n_axes):
                d, n = free_axis(s[0].joints, j, k, pose)
                at = v0 + k
                s[0].work.S_l[at, w] = (d + wp.cross(n, out)) * sign
                s[0].work.S_a[at, w] = n * sign
                s[0].end_l[at, w] = s[0].work.S_l[at, w]
                s[0].end_a[at, w] = s[0].work.S_a[at, w]
                rest_axis(s, at, w)
                u = wp.dot(d, p_l) + wp.dot(n, p_a)
                rates[k] = -u * sign
                held = int(0)
                if j < s[0].scene_joints:
                    s[0].linear.resist[at, w] = real(0.0)
                    s[0].linear.push[at, w] = real(0.0)
                    held = s[0].state.stuck[at, w]
                if held == 1:
                    s[0].linear.acts[i, w] = s[0].acting
                    C[k, k] = resistance(s, i, w, d, n, out)
                    s[0].linear.resist[at, w] = C[k, k]
                else:
                    l = l - (d + wp.cross(n, out)) * u
                    a = a - n * u
            if j < s[0].scene_joints:
                l, a, C = leave_limits(s, i, w, out, rates, C, l, a)
            s[0].linear.coupled[i, w] = C
    s[0].work.arm[i, w] = arm
    s[0].arm1[i, w] = arm
    s[0].work.out[i, w] = out
    s[0].out1[i, w] = out
    s[0].work.close_l[i, w] = l
    s[0].work.close_a[i, w] = a
    if kind == LOOSE:
        s[0].work.close_l[i, w] = vec3(real(0.0))
        s[0].work.close_a[i, w] = vec3(real(0.0))


@wp.func
def stand_all(s: wp.array(dtype=Direct), w: int):
    """All bodies where they stand."""
    for n in range(s[0].other_count):
        b = s[0].others[n]
        s[0].work.position[b, w] = s[0].state.position[b, w]
        s[0].work.rotation[b, w] = s[0].state.rotation[b, w]
        s[0].position[b, w] = s[0].state.position[b, w]
        s[0].rotation[b, w] = s[0].state.rotation[b, w]
        s[0].work.velocity[b, w] = s[0].now.velocity[b, w]
        s[0].work.spin[b, w] = s[0].now.spin[b, w]
        s[0].work.acceleration[b, w] = s[0].now.velocity[b, w]
        s[0].work.turning[b, w] = s[0].now.spin[b, w]
    for n in range(s[0].tree.count):
        stand(s, natural(n), w)


@wp.func
def speed_rows(s: wp.array(dtype=Direct), w: int):
    """Rows beside the tree where bodies stand, and their speeds, as of a gap; springs are none."""
    rows = s[0].closures.count
    find_rows(s, w)
    for r in range(rows):
        rate = rate_of(s, r, w, s[0].work.acceleration, s[0].work.turning, s[0].speed)
        if s[0].rows.child[r] == GEAR:
            rate = gear_rate(s, r, w)
        s[0].rows.gap[r, w] = rate * (real(0.5) * s[0].drift[w])
        if r >= rows - s[0].closures.springs.count:
            s[0].rows.soft[r, w] = real(-1.0)
    if s[0].cables.count > 0:
        cable_speeds(s, w)


@wp.func
def take_projected(s: wp.array(dtype=Direct), w: int) -> real:
    """Velocities after the change that was found; returns the energy that took, J."""
    lost = real(0.0)
    for n in range(s[0].tree.count):
        b = natural(s[0].tree.row[n].body)
        if b < s[0].own:
            M = matrix(s[0].state.rotation[b, w])
            I = s[0].whole.inertia[b, w]
            v = s[0].state.velocity[b, w]
            L = s[0].state.momentum[b, w]
            W = s[0].work.turning[b, w] * M
            lost = lost + wp.dot(v, v) * s[0].whole.mass[b, w] + wp.dot(W, L * M)
            v = v + s[0].work.change_l[b, w]
            W = W + s[0].work.change_a[b, w] * M
            lost = lost - wp.dot(v, v) * s[0].whole.mass[b, w] - wp.dot(W, I * W)
            s[0].state.velocity[b, w] = v
            s[0].state.momentum[b, w] = M * (I * W)
            s[0].state.spin[b, w] = M * W
    lost = real(0.5) * lost
    s[0].projected[w] = s[0].projected[w] + lost
    return lost


@wp.func
def gear_rate(s: wp.array(dtype=Direct), r: int, w: int) -> real:
    """Speed of a gear's row at the velocities of now."""
    g = r - 6 * s[0].closures.welds - s[0].closures.rods
    a = axis_speed(s, s[0].gears.joint_a[g], s[0].gears.axis_a[g], w)
    return a - s[0].gears.ratio[g] * axis_speed(s, s[0].gears.joint_b[g], s[0].gears.axis_b[g], w)


@wp.func
def axis_speed(s: wp.array(dtype=Direct), j: int, x: int, w: int) -> real:
    """Speed of a joint's axis at the velocities of now."""
    p = s[0].joints.parent[j]
    c = s[0].joints.child[j]
    pose = pose_at(s[0].joints, j, w, s[0].position, s[0].rotation)
    d, n = free_axis(s[0].joints, j, x, pose)
    u = s[0].work.acceleration[c, w] + wp.cross(s[0].work.turning[c, w], pose.child_anchor - s[0].position[c, w])
    u = u - s[0].work.acceleration[p, w] - wp.cross(s[0].work.turning[p, w], pose.child_anchor - s[0].position[p, w])
    return wp.dot(d, u) + wp.dot(n, s[0].work.turning[c, w] - s[0].work.turning[p, w])
