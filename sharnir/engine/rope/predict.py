"""The start of a rope's step: points and frames as they would move, stiffness and weights of its elements."""

import warp as wp

from sharnir.core.types import mat33, quat, real, vec3
from sharnir.engine.rope.bend import bend_gradient, bend_vector, from_rest, turning_stiffness
from sharnir.engine.rope.data import DRIVEN, ROPE, RopeStep
from sharnir.engine.rope.ends import advance_body, end_point, end_velocity, is_held, place_end, stiffen_body, tie_place
from sharnir.engine.rope.slack import side_of
from sharnir.engine.rope.terms import air_resistance, tangent, turned_element

SUDDEN = wp.constant(real(0.3))  # a change of tension in a step, against its largest of late, that is a shock
TWIST = wp.constant(real(0.1))  # least GJ by which twist lags in a step, relative to EI: with less passes would diverge


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def neighbour_length(s: wp.array(dtype=RopeStep), k: int, j: int, w: int) -> real:
    """Length over which interface j bends, m: half of each element that meets there; 0 where nothing is passed on."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    out = real(0.0)
    if j > 0:
        if s[0].state.cut[first + j - 1, w] == 1:
            return real(0.0)
        out = out + s[0].state.length[first + j - 1, w]
    if j < n:
        out = out + s[0].state.length[first + j, w]
    if (j == 0 and s[0].ropes.clamp[2 * k] == 0) or (j == n and s[0].ropes.clamp[2 * k + 1] == 0):
        return real(0.0)
    return real(0.5) * out


@wp.func
def start_span(s: wp.array(dtype=RopeStep), i: int, w: int) -> real:
    """s of an element at the start of the step, ±l where it is taken to be taut."""
    if s[0].work.slack[i, w] == 1:
        return s[0].state.span[i, w]
    return s[0].state.length[i, w] * side_of(s, i, w)


@wp.func
def predict_points(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Masses of the points and their velocities after external forces and air."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    kick = s[0].kick[w]
    g = s[0].settings.gravity[w]
    wind = s[0].control.wind[w]
    before = real(0.0)
    for j in range(n + 1):
        i = first + j
        after = real(0.0)
        if j < n:
            after = real(0.5) * s[0].state.length[i, w]
            s[0].work.d[i, w] = tangent(s[0].state.rotation[i, w])
            s[0].work.reach[i, w] = start_span(s, i, w)
        d = s[0].work.d[wp.min(i, first + n - 1), w]
        m = s[0].ropes.density[k] * (before + after)
        v = s[0].state.velocity[i, w]
        c = kick * (before + after) * air_resistance(s[0].ropes.drag[k, w], s[0].ropes.air[k, w], v - wind, d)
        s[0].work.mass[i, w] = m
        s[0].work.damp[i, w] = c
        push = (g * m + s[0].control.force[i, w]) * kick + s[0].control.force_once[i, w] * s[0].h[w]
        v = (v * m + push + wind * c) / (m + c)
        s[0].work.v[i, w] = v
        s[0].work.r[i, w] = s[0].state.position[i, w] + v * s[0].h[w]
        s[0].work.defect[i, w] = vec3(real(0.0))
        before = after


@wp.func
def predict_end(s: wp.array(dtype=RopeStep), end: int, i: int, w: int):
    """A held point moves with its body; what its own mass lacks for that is its defect."""
    v = end_velocity(s, end, i, w)
    s[0].work.defect[i, w] = (v - s[0].work.v[i, w]) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])
    s[0].work.v[i, w] = v
    s[0].work.r[i, w] = end_point(s, end, w)


@wp.func
def predict_elements(s: wp.array(dtype=RopeStep), k: int, w: int, attempt: int):
    """Spins after external torques; the tension's geometric stiffness, K = l max(0, T) (E − d dᵀ).

    A row's impulse has the direction of the start of the step; β Δt² K added to the inertia makes it that of a weighted mean
    over the last step and this one (stable at any tension from β = ¼ on), and a part δ of the spin relative to the
    neighbours' is damped, which waves longer than a few segments do not feel. Where the tension changes suddenly its direction is
    that of the end of the step: shocks die. Where a rope is pressed it gives way sideways; the same inertia keeps that to a
    factor of 2.6 in a step.
    """
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    dt = s[0].h[w]
    i1 = real(0.25) * s[0].ropes.density[k] * s[0].ropes.radius[k] * s[0].ropes.radius[k]
    s[0].exact[w] = 0
    before = s[0].state.spin[first, w]
    for j in range(n):
        i = first + j
        d = s[0].work.d[i, w]
        l = s[0].state.length[i, w]
        if s[0].work.slack[i, w] == 1:
            s[0].work.tension[i, w] = real(0.0)
        omega = s[0].state.spin[i, w]
        after = omega
        if j < n - 1:
            after = s[0].state.spin[i + 1, w]
        tension = s[0].work.tension[i, w]
        K = dt * l * wp.abs(tension)
        extra = s[0].settings.beta[0] * K
        if tension < real(0.0):
            extra = K
            s[0].work.w[i, w] = omega
        elif attempt > 0 or wp.abs(s[0].state.now[i, w] - s[0].state.was[i, w]) > SUDDEN * s[0].state.tight[i, w]:
            extra = K
            s[0].sudden[w] = 1
            s[0].work.w[i, w] = omega - (omega - d * wp.dot(d, omega)) * (K / (i1 * l + K))
        elif real(0.0) < K:
            off = omega - (before + after) * real(0.5)
            off = off - d * wp.dot(d, off)
            s[0].work.w[i, w] = omega - off * (s[0].settings.beta[1] * K / (i1 * l + extra))
        else:
            s[0].work.w[i, w] = omega
        # a moment by itself would turn an element many times: it enters with what holds the element
        s[0].work.load[i, w] = s[0].control.torque[i, w] * s[0].kick[w]
        s[0].work.extra[i, w] = extra
        s[0].work.q[i, w] = turned_element(s[0].state.rotation[i, w], d, s[0].work.w[i, w], dt)
        before = omega
    s[0].work.w[first + n, w] = vec3(real(0.0))  # no element: nothing of an attempt that failed is to stay


@wp.func
def frame_before(s: wp.array(dtype=RopeStep), k: int, w: int, rotation: wp.array2d(dtype=quat)) -> quat:
    """The frame that holds a rope's first end, for given rotations of the bodies."""
    if s[0].ropes.clamp[2 * k] == 1:
        return rotation[s[0].ropes.body[2 * k], w] * s[0].ropes.frame[2 * k]
    return quat(real(0.0), real(0.0), real(0.0), real(1.0))


@wp.func
def frame_after(s: wp.array(dtype=RopeStep), k: int, w: int, rotation: wp.array2d(dtype=quat)) -> quat:
    """The frame that holds a rope's last end, for given rotations of the bodies."""
    if s[0].ropes.clamp[2 * k + 1] == 1:
        return rotation[s[0].ropes.body[2 * k + 1], w] * s[0].ropes.frame[2 * k + 1]
    return quat(real(0.0), real(0.0), real(0.0), real(1.0))


@wp.func
def weights(rho: real):
    """Weights of the elastic moments at the new pose, the present and the last one: (1, 2ρ, ρ²)/(1 + ρ)².

    ρ = 1 is the mean that keeps energy at any stiffness, ρ = 0 the implicit Euler rule. What a step cannot resolve falls by ρ in
    each step, slow motion is damped by (1 − ρ)/(1 + ρ) of what the Euler rule does to it.
    """
    k = real(1.0) / ((real(1.0) + rho) * (real(1.0) + rho))
    return k, real(2.0) * rho * k, rho * rho * k


@wp.func
def stiffnesses(s: wp.array(dtype=RopeStep), k: int, w: int, attempt: int):
    """Strain, elastic moment and stiffness of the interfaces at the start of the step."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    dt = s[0].h[w]
    EI = s[0].ropes.EI[k, w]
    GJ = s[0].ropes.GJ[k, w]
    rho = s[0].settings.beta[2]
    if attempt > 0:
        rho = real(0.0)
    new, now, last = weights(rho)
    a = frame_before(s, k, w, s[0].body_state.rotation)
    for j in range(n + 1):
        i = first + j
        b = s[0].state.rotation[i, w]
        if j == n:
            b = frame_after(s, k, w, s[0].body_state.rotation)
        l = neighbour_length(s, k, j, w)
        s[0].work.bar[i, w] = real(0.0)
        s[0].work.elastic[i, w] = vec3(real(0.0))
        s[0].work.K[i, w] = mat33(real(0.0))
        s[0].work.J[i, w] = mat33(real(0.0))
        if l > real(0.0) and real(0.0) < EI + GJ:
            p = from_rest(a, b, s[0].ropes.rest[i] * l)
            m = wp.quat_rotate(a, bend_gradient(p, EI, GJ)) * (real(-1.0) / l)
            past = s[0].state.before[i, w]
            if s[0].state.started[k, w] == 0:
                past = m
            s[0].work.bar[i, w] = real(1.0) / l
            s[0].work.strain[i, w] = bend_vector(p, vec3(real(0.0)))
            s[0].work.elastic[i, w] = m
            s[0].work.past[i, w] = (m * now + past * last) * s[0].kick[w]
            straight = wp.length_sq(s[0].ropes.rest[i]) == real(0.0)
            K = turning_stiffness(a, p, EI, wp.max(GJ, TWIST * EI), real(1.0) / l, straight)
            s[0].work.K[i, w] = K * (s[0].kick[w] * (dt * new + s[0].ropes.damping[k, w]))
            s[0].work.J[i, w] = s[0].work.K[i, w]
        a = b


@wp.func
def follow_point(s: wp.array(dtype=RopeStep), k: int, w: int):
    """A first end on another rope, which was begun before, moves as the point there."""
    i = s[0].ropes.first[k]
    at = s[0].ropes.body[2 * k]
    s[0].state.position[i, w] = s[0].state.position[at, w]
    v = s[0].work.v[at, w]
    s[0].work.defect[i, w] = (v - s[0].work.v[i, w]) * (s[0].work.mass[i, w] + s[0].work.damp[i, w])
    s[0].work.v[i, w] = v
    s[0].work.r[i, w] = s[0].work.r[at, w]


@wp.func
def hold_ends(s: wp.array(dtype=RopeStep), w: int):
    """Held ends at the start of the step, and the geometric stiffness of the bodies there."""
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        for side in range(2):
            if is_held(s, 2 * k + side):
                place_end(s, 2 * k + side, first + side * n, w)
                if s[0].ropes.kind[2 * k + side] != DRIVEN:
                    pull = -s[0].state.pull[first, w]
                    if side == 1:
                        pull = s[0].state.pull[first + n - 1, w]
                    stiffen_body(s, s[0].ropes.body[2 * k + side], w, s[0].work.arm[2 * k + side, w], pull)
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_kind[t] != DRIVEN:
            b = s[0].ropes.tie_body[t]
            i = s[0].ropes.tie_slot[t]
            arm = wp.quat_rotate(s[0].body_state.rotation[b, w], s[0].ropes.tie_point[t])
            stiffen_body(s, b, w, arm, s[0].state.pull[i - 1, w] - s[0].state.pull[i, w])


@wp.func
def stiffen_bodies(s: wp.array(dtype=RopeStep), w: int):
    """Hold the ends, stiffen the bodies there, and predict where the bodies would go without ropes."""
    hold_ends(s, w)
    for b in range(s[0].bodies.count):
        advance_body(s, b, w)


@wp.func
def begin_rope(s: wp.array(dtype=RopeStep), k: int, w: int, attempt: int):
    """Prediction and stiffnesses of a rope."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    for i in range(first, first + n):
        tension = -wp.dot(s[0].state.pull[i, w], tangent(s[0].state.rotation[i, w])) * side_of(s, i, w)
        if attempt == 0:  # too much of it costs little, too little of it stability
            of_late = s[0].h[w] * s[0].state.tight[i, w]
            if tension < real(0.0):
                tension = -wp.max(-tension, of_late)
            else:
                tension = wp.max(tension, of_late)
        else:  # that of the attempt before, which may have gone far off
            least = wp.abs(s[0].work.tension[i, w])
            if not wp.isfinite(least + tension):
                least = s[0].h[w] * s[0].state.tight[i, w]
                tension = least
            tension = wp.clamp(wp.abs(tension), least, real(4.0) * least + s[0].ropes.density[k] * s[0].h[w])
        s[0].work.tension[i, w] = tension
    predict_points(s, k, w)
    for side in range(2):
        if is_held(s, 2 * k + side):
            predict_end(s, 2 * k + side, first + side * n, w)
    if s[0].ropes.kind[2 * k] == ROPE:
        follow_point(s, k, w)
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            tie_place(s, t, w)
            s[0].state.tie_force[t, w] = vec3(real(0.0))
    predict_elements(s, k, w, attempt)
    stiffnesses(s, k, w, attempt)
    for j in range(n + 1):
        s[0].state.pull[first + j, w] = vec3(real(0.0))
        s[0].state.moment[first + j, w] = vec3(real(0.0))
    for side in range(2):
        s[0].state.end_force[2 * k + side, w] = vec3(real(0.0))
