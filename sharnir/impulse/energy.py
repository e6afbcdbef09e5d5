"""The step that keeps energy and momenta: joints closed by the means of their vectors (theory: energy and momentum).

    M (V₁ − V₀) = Δt F + J̄ᵀp,     x₁ = x₀ + Δt v̄,  R₁ = cay(Δt ω̄) R₀,  V̄ = ½(V₀ + V₁),     G(x₁, R₁) = 0

J̄ has every arm and axis as the mean of those at the start and at the end of the step (`means`), so that closed joints do no
work, whatever the masses and the step. Velocities belong to the pose. A step is solved about a guess of its end by the passes of
`direct_links`, laws included; passes over vectors with the same factors (`lack_inward`, `place`) then bring momenta, moments and
gaps to rounding. Momentum is met link by link, from the leaves inwards, which gives what each joint carries; what that is along
a free axis, beyond what acts there, is what a pass corrects. Where passes do not meet, the step is made in parts.
"""

from typing import Any

import warp as wp

from sharnir.articulated.closures import eliminate, response_matrix, row_rate, solve_rows
from sharnir.impulse.balls import (
    FREE,
    HELD,
    NONE,
    SLIDES,
    ball_close_inward,
    friction_alone,
    joint_axes,
    kind_of,
    linear_ball,
    open_ball,
    triple,
)
from sharnir.impulse.closing import axis_gap, close_outward, displace
from sharnir.impulse.direct_data import DYNAMIC, Direct
from sharnir.impulse.direct_links import OUT, inward, outward, relinearise
from sharnir.impulse.means import mean_matrix, mean_position, place, take_driven
from sharnir.joints import breaks, coordinate, free_axis, joint_gap
from sharnir.kinematics import pose_at
from sharnir.laws import INFINITE
from sharnir.pivots import ALL_AT_ONCE, linearise, open_laws
from sharnir.spatial import matrix
from sharnir.tree import LOOSE, loose_response, natural, packed, packed_times, symmetric, times, unpacked
from sharnir.types import EPSILON, inline_less, mat33, real, vec3, vec6

MODULES = ("sharnir.energy_chain", "sharnir.energy_tree", "sharnir.energy")
for name in MODULES:
    inline_less(name)

HALVINGS = wp.constant(8)  # of a step, at most
ROUNDS = wp.constant(3)  # factors a part of a step may take
PASSES = wp.constant(16)  # over vectors, for one factor
SLOW = wp.constant(real(0.4))  # a pass that leaves more of the change before it calls for a new factor
MET = wp.constant(real(max(1.0e-12, 16.0 * EPSILON)))  # change of velocities, of their scale, at which a step is met
STALLED = wp.constant(real(max(1.0e-9, 256.0 * EPSILON)))  # and at which rounding may stop it


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def begin(s: wp.array(dtype=Direct), w: int, scope: int) -> real:
    """Velocities at the start, momenta after external forces, and a guess of the end: each body goes on as in the last step.

    Returns the scale of velocities, as twice a kinetic energy, J.
    """
    w = natural(w)
    h = s[0].drift[w]
    once = s[0].settings.dt[0]
    gravity = s[0].settings.gravity[0]
    take_driven(s, w)
    scale = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.row[i].mass
        R = s[0].state.rotation[own, w]
        M = matrix(R)
        L = s[0].state.momentum[own, w]
        v = s[0].state.velocity[own, w]
        omega = M * (s[0].whole.inv_inertia[own] * (L * M))
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        turning = wp.dot(omega, L)
        if scope > 1:
            turning = turning / s[0].tree.row[i].parts
        new = v + gravity * h
        if s[0].pushed[w] == 1:
            L = L + s[0].control.torque[own, w] * h + s[0].control.torque_once[own, w] * once
            force = s[0].control.force[own, w] * h + s[0].control.force_once[own, w] * once
            new = new + force * s[0].whole.inv_mass[own]
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        s[0].work.acceleration[b, w] = v + s[0].state.last_v[own, w] * h
        s[0].work.turning[b, w] = omega + M * s[0].state.last_w[own, w] * h
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
        if scope > 0:
            s[0].work.position[b, w] = s[0].state.position[own, w]
            s[0].work.rotation[b, w] = R
        if scope > 1:
            j = natural(s[0].tree.row[i].joint)
            kind = s[0].tree.row[i].kind
            if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
                kind = LOOSE
            s[0].work.kind[i, w] = kind
    return scale


@wp.func
def curl(r: vec3, f: vec3) -> mat33:
    """(r·f) E − ½(r fᵀ + f rᵀ): the symmetric part of the derivative of −r × f by a turn of r."""
    d = wp.dot(r, f)
    return symmetric(
        d - r[0] * f[0], real(-0.5) * (r[0] * f[1] + r[1] * f[0]), real(-0.5) * (r[0] * f[2] + r[2] * f[0]),
        d - r[1] * f[1], real(-0.5) * (r[1] * f[2] + r[2] * f[1]), d - r[2] * f[2],
    )  # fmt: skip


@wp.func
def assemble(s: wp.array(dtype=Direct), w: int, scope: int):
    """Inertias, with the stiffness that joints' impulses `carried` give rotations, and what the passes of `direct_links` take.

    All is linear about the velocities of now: I₁ = sym(R₁ I R₀ᵀ) for the momentum R₁ I R₀ᵀ w, and of r̄ × p the derivative by
    the turn of r, ¼Δt curl(r, p).
    """
    w = natural(w)
    quarter = real(0.25) * s[0].drift[w]
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        base = natural(s[0].tree.row[i].base)
        M = matrix(s[0].work.rotation[b, w])
        M1 = matrix(s[0].rotation[b, w])
        I = M1 * (s[0].tree.row[i].inertia * wp.transpose(M))
        I = (I + wp.transpose(I)) * real(0.5)
        v = s[0].work.acceleration[b, w]
        spin = s[0].work.turning[b, w]
        v_b = s[0].work.acceleration[base, w]
        w_b = s[0].work.turning[base, w]
        arm = s[0].work.arm[i, w]
        out = s[0].work.out[i, w]
        kind = kind_of(s, i, w, scope)
        if kind != LOOSE:
            f = s[0].carried_l[i, w]
            I = I + curl(out, f) * (-quarter)
            p = s[0].tree.row[i].base_link
            if p >= 0:
                s[0].inertia[p, w] = s[0].inertia[p, w] - packed(curl(arm - out, f)) * quarter
            if kind == NONE:
                l = v - v_b - wp.cross(w_b, arm) + s[0].work.close_l[i, w]
                a = spin - w_b + s[0].work.close_a[i, w]
                if scope > 1:
                    v0 = s[0].tree.row[i].v_start
                    for x in range(v0, v0 + s[0].tree.row[i].v_size):
                        l = l - s[0].work.S_l[x, w] * s[0].speed[x, w]
                        a = a - s[0].work.S_a[x, w] * s[0].speed[x, w]
                s[0].work.bias_l[i, w] = l
                s[0].work.bias_a[i, w] = a
            else:
                l = v - v_b - wp.cross(spin, out) - wp.cross(w_b, arm - out)
                s[0].work.bias_l[i, w] = l + s[0].work.close_l[i, w]
        s[0].inertia[i, w] = packed(I)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        s[0].impulse_a[i, w] = packed_times(s[0].inertia[i, w], s[0].work.turning[b, w]) - s[0].gain[i, w]


@wp.func
def pushes(s: wp.array(dtype=Direct), w: int):
    """Impulses that a user commands along free axes."""
    for n in range(s[0].tree.count):
        i = natural(n)
        v0 = natural(s[0].tree.row[i].v_start)
        j = natural(s[0].tree.row[i].joint)
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            push = real(0.0)
            if s[0].pushed[w] == 1 and j < s[0].scene_joints:
                push = s[0].control.joint_force[at, w] * s[0].drift[w]
            s[0].tau[at, w] = push


@wp.func
def take_carried(s: wp.array(dtype=Direct), w: int):
    """What joints carried in the last step, as a guess of what they will."""
    share = s[0].drift[w] / s[0].settings.dt[0]
    for n in range(s[0].tree.count):
        i = natural(n)
        j = natural(s[0].tree.row[i].joint)
        f = vec3(real(0.0))
        if j < s[0].scene_joints:
            f = s[0].state.joint_force[j, w] * (real(s[0].tree.sign[i]) * share)
        s[0].carried_l[i, w] = f


# ---- passes over vectors ----------------------------------------------------------------------------------------------------


@wp.func
def ball_moment(s: wp.array(dtype=Direct), i: int, w: int, kind: int) -> vec3:
    """The moment impulse that acts in a ball joint, on the link."""
    m = vec3(real(0.0))
    if s[0].pushed[w] == 1:
        v0 = natural(s[0].tree.row[i].v_start)
        l = triple(s[0].tau, v0, w)
        if wp.length_sq(l) > real(0.0):
            m = wp.quat_rotate(joint_axes(s, natural(s[0].tree.row[i].joint), w), l) * real(s[0].tree.sign[i])
    return m


@wp.func
def axis_law(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> real:
    """The impulse of the laws of axis x of a link, linear about their solution, at the speeds of now."""
    v0 = natural(s[0].tree.row[i].v_start)
    if s[0].linear.acts[i, w] == 0:
        return real(0.0)
    if s[0].tree.row[i].v_size == 1:
        return -s[0].linear.resist[v0, w] * s[0].speed[v0, w] - s[0].linear.push[v0, w]
    p = -s[0].linear.push[v0 + x, w]
    for y in range(s[0].tree.row[i].v_size):
        p = p - s[0].linear.coupled[i, w][x, y] * s[0].speed[v0 + y, w]
    return p


@wp.func
def lack_inward(s: wp.array(dtype=Direct), w: int, scope: int):
    """What joints carry, from the momenta of all links beyond them, in `carried`; and what that lacks along free axes, with the
    gaps in work.close, handed inwards with the factors of the last inward pass.
    """
    w = natural(w)
    zero = vec3(real(0.0))
    fl = zero
    fa = zero
    ql = zero
    qa = zero
    handed = int(0)
    for h in range(s[0].tree.count):
        i = natural(s[0].tree.count - 1 - h)
        b = natural(s[0].tree.row[i].body)
        if handed == 0:
            fl = zero
            fa = zero
            ql = zero
            qa = zero
        fl = fl + s[0].work.acceleration[b, w] * s[0].tree.row[i].mass - s[0].impulse_l[i, w]
        fa = fa + s[0].gain[i, w]
        if s[0].tree.row[i].gathers == 1 or (scope > 1 and s[0].closures.count > 0):
            fl = fl + s[0].sum_l[i, w]
            fa = fa + s[0].sum_a[i, w]
            ql = ql + s[0].work.Q_l[i, w]
            qa = qa + s[0].work.Q_a[i, w]
            s[0].sum_l[i, w] = zero
            s[0].sum_a[i, w] = zero
            s[0].work.Q_l[i, w] = zero
            s[0].work.Q_a[i, w] = zero
        s[0].carried_l[i, w] = fl
        s[0].carried_a[i, w] = fa
        kind = kind_of(s, i, w, scope)
        arm = s[0].work.arm[i, w]
        if kind == LOOSE:
            dv, dw = loose_response(s[0].work, i, w, ql - fl, qa - fa)
            s[0].work.change_l[b, w] = dv
            s[0].work.change_a[b, w] = dw
            fl = zero
            fa = zero
            ql = zero
            qa = zero
        elif kind != NONE:
            moment = zero
            if kind != HELD:
                moment = ball_moment(s, i, w, kind) - fa - wp.cross(s[0].work.out[i, w], fl)
            ql, qa = ball_close_inward(s, i, w, scope, ql, qa, moment)
        else:
            n = s[0].tree.row[i].v_size
            v0 = natural(s[0].tree.row[i].v_start)
            el = s[0].work.close_l[i, w]
            ea = s[0].work.close_a[i, w]
            B = s[0].work.full_B[i, w]
            gl = ql - (packed_times(s[0].work.full_A[i, w], el) + B * ea)
            ga = qa - (el * B + packed_times(s[0].work.full_D[i, w], ea))
            for x in range(n):
                sl = s[0].work.S_l[v0 + x, w]
                sa = s[0].work.S_a[v0 + x, w]
                lack = s[0].tau[v0 + x, w] - wp.dot(sl, fl) - wp.dot(sa, fa)
                if scope > 1 and s[0].acting == 1:
                    lack = lack + axis_law(s, i, w, x)
                s[0].work.change[v0 + x, w] = lack + wp.dot(sl, ql) + wp.dot(sa, qa)
            if n == 1:
                y = s[0].work.Y[v0, w] * s[0].work.change[v0, w]
                gl = gl - s[0].work.H_l[v0, w] * y
                ga = ga - s[0].work.H_a[v0, w] * y
            elif scope > 0 and n > 1:
                for x in range(n):
                    y = real(0.0)
                    for z in range(n):
                        y = y + s[0].work.response[i, w][x, z] * s[0].work.change[v0 + z, w]
                    gl = gl - s[0].work.H_l[v0 + x, w] * y
                    ga = ga - s[0].work.H_a[v0 + x, w] * y
            ql = gl
            qa = ga + wp.cross(arm, gl)
        fa = fa + wp.cross(arm, fl)
        p = s[0].tree.row[i].base_link
        handed = 0
        if p == i - 1:
            handed = 1
        elif p >= 0:
            s[0].sum_l[p, w] = s[0].sum_l[p, w] + fl
            s[0].sum_a[p, w] = s[0].sum_a[p, w] + fa
            s[0].work.Q_l[p, w] = s[0].work.Q_l[p, w] + ql
            s[0].work.Q_a[p, w] = s[0].work.Q_a[p, w] + qa


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def attempt(s: wp.array(dtype=Direct), w: int, scope: int) -> bool:
    """A step of the length in `drift`; returns whether its passes met."""
    scale = begin(s, w, scope)
    if scope > 0 or s[0].pushed[w] == 1:
        pushes(s, w)
    take_carried(s, w)
    place(s, w, scope, 0)
    last = real(-1.0)
    gap = real(0.0)
    for _round in range(ROUNDS):
        assemble(s, w, scope)
        inward(s, w, scope)
        outward(s, w, scope, False)
        gap, _size = place(s, w, scope, 1)
        last = real(-1.0)
        for _pass in range(PASSES):
            lack_inward(s, w, scope)
            gap, size = place(s, w, scope, 2)
            s[0].passes[w] = s[0].passes[w] + 1
            off = wp.sqrt(size / scale)
            if not wp.isfinite(off):
                return False
            if off <= MET and gap <= s[0].settings.tolerance[1]:
                s[0].state.open[w] = gap
                return True
            if last >= real(0.0) and off > SLOW * last:
                if off <= STALLED and gap <= s[0].settings.tolerance[1]:
                    s[0].state.open[w] = gap
                    return True
                if off > last:
                    break
            last = off
    return False


@wp.func
def commit(s: wp.array(dtype=Direct), w: int, scope: int):
    """The end of the step becomes the state."""
    w = natural(w)
    h = s[0].drift[w]
    whole = s[0].settings.dt[0] / h
    lack_inward(s, w, scope)  # what joints carry, at the end of all passes
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        j = natural(s[0].tree.row[i].joint)
        if j < s[0].scene_joints:
            keep_reaction(s, i, j, w, scope, whole)
        if scope < 2 or b < s[0].own:
            v0 = s[0].state.velocity[own, w]
            v = s[0].work.acceleration[b, w]
            x = s[0].work.position[b, w]
            M = matrix(s[0].work.rotation[b, w])
            M1 = matrix(s[0].rotation[b, w])
            W = s[0].work.turning[b, w] * M
            I = s[0].whole.inertia[own]
            L = M1 * (I * W)
            move = (s[0].work.velocity[b, w] + v) * (real(0.5) * h) + s[0].state.rest[own, w]
            s[0].state.rest[own, w] = move - ((x + move) - x)
            s[0].state.last_v[own, w] = (v - v0) / h
            s[0].state.last_w[own, w] = (W - s[0].work.spin[b, w] * M) / h
            s[0].state.acceleration[own, w] = (v - v0) / h
            s[0].state.velocity[own, w] = v
            s[0].state.momentum[own, w] = L
            s[0].state.spin[own, w] = M1 * W
            s[0].state.position[own, w] = s[0].position[b, w]
            s[0].state.rotation[own, w] = s[0].rotation[b, w]
    for n in range(s[0].other_count):
        b = s[0].others[n]
        x = s[0].state.position[b, w]
        move = s[0].state.velocity[b, w] * h + s[0].state.rest[b, w]
        s[0].state.rest[b, w] = move - ((x + move) - x)
        s[0].state.position[b, w] = s[0].position[b, w]
        s[0].state.rotation[b, w] = s[0].rotation[b, w]
    s[0].state.time[w] = s[0].state.time[w] + wp.float64(h)


@wp.func
def keep_reaction(s: wp.array(dtype=Direct), i: int, j: int, w: int, scope: int, whole: real):
    """What a joint carried, as of a whole step, on its child, without the share of the free axes."""
    sign = real(s[0].tree.sign[i]) * whole
    f = s[0].carried_l[i, w]
    l = s[0].carried_a[i, w] + wp.cross(s[0].work.out[i, w], f)
    kind = kind_of(s, i, w, scope)
    if kind == LOOSE:
        f = vec3(real(0.0))
        l = f
    elif s[0].tree.row[i].kind == FREE:
        l = vec3(real(0.0))
    else:
        v0 = natural(s[0].tree.row[i].v_start)
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            n = s[0].work.S_a[at, w]
            if wp.length_sq(n) > real(0.0):
                l = l - n * (wp.dot(n, l) / wp.dot(n, n))
            else:
                d = s[0].work.S_l[at, w]
                f = f - d * (wp.dot(d, f) / wp.dot(d, d))
    s[0].state.joint_force[j, w] = f * sign
    s[0].state.joint_torque[j, w] = l * sign


@wp.func
def whole_step(s: wp.array(dtype=Direct), w: int, scope: int):
    """One step; where passes do not meet, in halves, quarters, …"""
    dt = s[0].settings.dt[0]
    left = int(1 << HALVINGS)
    size = left
    parts = int(0)
    while left > 0:
        s[0].drift[w] = dt * (real(size) / real(1 << HALVINGS))
        if attempt(s, w, scope):
            commit(s, w, scope)
            parts = parts + 1
            left = left - size
        else:
            if size == 1:
                s[0].state.failed[w] = 1
                break
            size = size / 2
    if parts > 1:
        s[0].grades[1, w] = s[0].grades[1, w] + 1


def make_kernel(scope: int, module: str) -> Any:
    """The kernel for a mechanism of hinges and balls on which nothing acts (0), of any joints (1), with all there is (2)."""

    @wp.kernel(module=module)
    def energy_steps(s: wp.array(dtype=Direct), first: int, n: wp.array(dtype=wp.int32)):
        """n steps of a world; where one cannot be made, the world is marked and its state stays."""
        w = first + wp.tid()
        for _step in range(n[0]):
            if s[0].state.failed[w] != 0:
                break
            whole_step(s, w, wp.static(scope))

    return energy_steps


KERNELS = [make_kernel(scope, module) for scope, module in enumerate(MODULES)]
