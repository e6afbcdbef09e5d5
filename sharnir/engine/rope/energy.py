"""The step of ropes: energy and momenta kept at any step (theory: ropes, the part on energy and momentum).

Unknown are the velocities V₁ at the end of the step; V̄ = ½(V₀ + V₁) are its means (`end_weight`), and every vector in a row is
the mean of its start and end:

    r₁ = r₀ + Δt v̄,   m (v₁ − v₀) = Δt F + f_{j−1} − f_j,   R₁ = cay(Δt ω̄) R₀,   L₁ − L₀ = Δt τ − l d̄ × f_j + M_j − M_{j+1},

f_j the impulse by which r_{j+1} − r_j − l d₃ = 0 at the end, M_j the moments of bend and twist (`equations.mean_moment`). A pass
asks for the changes of V₁ that take away what these equations miss (`chain`).

An element that would push harder than it buckles is slack: s = d₃·(r_{j+1} − r_j) is free then, its lever is the mean of s d₃,
and f·(d̄ − ¼θ × (d₁ − d₀)) = P Δt, P = π² EI/l², θ its turn: with that its work is P (s₁ − s₀), what P (l − s) falls by. Which
elements are slack is found by `slack.judge`, from those of the last step on.

Here are the ropes alone, in the order of a step: `start_rope`, `start_speeds`, `rope_pose`, then `mean_arms`, `rope_misses`,
`chain.eliminate` or, with the factors there are, `chain.bring_back`, and `chain.follow` for a pass, `keep_rope`. Bodies are moved
by whoever solves for them: the new pose in `body.x`, `body.q`, its velocities in `body.v` and `body.w` (w = R₀W₁) and its turn in
`body.turn`.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.rope.bend import bend_gradient, bend_vector, from_rest
from sharnir.engine.rope.chain import miss, pose
from sharnir.engine.rope.data import BODY, DRIVEN, ROPE, RopeStep
from sharnir.engine.rope.ends import HEAVY, end_point, is_held, tie_point
from sharnir.engine.rope.means import carried
from sharnir.engine.rope.passes import FADING
from sharnir.engine.rope.predict import frame_after, frame_before, neighbour_length
from sharnir.engine.rope.slack import new_span, side_of, unwound
from sharnir.engine.rope.terms import air_resistance, tangent
from sharnir.model.model import DYNAMIC


@wp.func
def thin(s: wp.array(dtype=RopeStep), k: int) -> real:
    """I₁ of a metre of a rope, kg·m."""
    return real(0.25) * s[0].ropes.density[k] * s[0].ropes.radius[k] * s[0].ropes.radius[k]


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def implicit_part(x: real) -> real:
    """Weight of the end of the step in a mean speed that is damped by x = Δt c/m: ½, and 1 where ½ would ring."""
    return real(0.5) + real(0.5) * wp.clamp((x - real(0.5)) / real(1.5), real(0.0), real(1.0))


@wp.func
def end_weight(s: wp.array(dtype=RopeStep), k: int, w: int) -> real:
    """ϑ of a rope's mean velocities V̄ = (1 − ϑ) V₀ + ϑ V₁: ½, and a little more where its user asked for drag or damping.

    What a step does not resolve, and velocities by which rows would open, are turned over in each step and not felt by means with
    ½: drag and damping would not bring them to rest. With ϑ they fall by (1 − ϑ)/ϑ, about what drag does to a speed; what that
    takes from motion that is resolved, (ϑ − ½) m |V₁ − V₀|², and of bending alike, is of second order beside the drag, and a
    fiftieth of what damping takes.
    """
    h = s[0].h[w]
    drag = real(0.25) * h * s[0].ropes.drag[k, w] / s[0].ropes.density[k]
    damping = real(0.02) * s[0].ropes.damping[k, w] / h
    return real(0.5) + wp.min(drag, real(0.15)) + wp.min(damping, real(0.02))


@wp.func
def end_of_mean(mean: vec3, start: vec3, weight: real) -> vec3:
    """V₁ of V̄ = (1 − ϑ) V₀ + ϑ V₁."""
    return (mean - start * (real(1.0) - weight)) / weight


@wp.func
def weigh_points(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Masses of the points, Δt times their resistance at the mean speed that is expected, and impulses from outside."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    wind = s[0].control.wind[w]
    before = real(0.0)
    for j in range(n + 1):
        i = first + j
        after = real(0.0)
        if j < n:
            after = real(0.5) * s[0].state.length[i, w]
        m = s[0].ropes.density[k] * (before + after)
        v0 = s[0].state.velocity[i, w]
        d = tangent(s[0].state.rotation[wp.min(i, first + n - 1), w])
        mean = s[0].state.smooth[i, w] + s[0].state.gain[i, w] * (real(0.5) * h)
        c = h * (before + after) * air_resistance(s[0].ropes.drag[k, w], s[0].ropes.air[k, w], mean - wind, d)
        part = implicit_part(c / m)
        s[0].work.mass[i, w] = m
        s[0].work.damp[i, w] = c * part
        force = s[0].settings.gravity[w] * m + s[0].control.force[i, w] + s[0].control.force_once[i, w]
        s[0].work.push[i, w] = force * h + (wind - v0 * (real(1.0) - part)) * c + s[0].work.touched[i, w]
        before = after


@wp.func
def start_interfaces(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Bend and twist at the start of the step, and lengths over which they are taken."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    a = frame_before(s, k, w, s[0].body_state.rotation)
    for j in range(n + 1):
        i = first + j
        b = s[0].state.rotation[i, w]
        if j == n:
            b = frame_after(s, k, w, s[0].body_state.rotation)
        l = neighbour_length(s, k, j, w)
        s[0].work.bar[i, w] = real(0.0)
        if l > real(0.0) and real(0.0) < s[0].ropes.EI[k, w] + s[0].ropes.GJ[k, w]:
            s[0].work.bar[i, w] = real(1.0) / l
            p = from_rest(a, b, s[0].ropes.rest[i] * l)
            s[0].work.strain[i, w] = bend_vector(p, vec3(real(0.0)))
            s[0].work.elastic[i, w] = bend_gradient(p, s[0].ropes.EI[k, w], s[0].ropes.GJ[k, w])
        a = b


@wp.func
def goes_on_pulling(was: real, now: real) -> real:
    """Tension of the next step over that of the last, as it changed before."""
    if was > real(0.0) and now > real(0.0):
        return wp.clamp(real(2.0) - was / now, real(0.5), real(1.5))
    return real(1.0)


@wp.func
def start_rope(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Prepare a step: masses, interfaces, and impulses that change as in the last ones."""
    first = s[0].ropes.first[k]
    part = s[0].h[w] / s[0].settings.dt[0]
    s[0].work.weight[k, w] = end_weight(s, k, w)
    weigh_points(s, k, w)
    start_interfaces(s, k, w)
    for i in range(first, first + s[0].state.segments[k, w] + 1):
        pull = s[0].work.kept_pull[i, w] * part
        if s[0].state.degree[k, w] > 1 and s[0].ropes.exact == 1:
            pull = pull * goes_on_pulling(s[0].state.was[i, w], s[0].state.now[i, w])
        if s[0].state.cut[i, w] == 1:
            pull = vec3(real(0.0))
        s[0].state.pull[i, w] = pull
        s[0].state.moment[i, w] = s[0].work.kept_moment[i, w] * part
        if s[0].work.bar[i, w] == real(0.0):
            s[0].state.moment[i, w] = vec3(real(0.0))
    for side in range(2):
        s[0].state.end_force[2 * k + side, w] = s[0].work.kept_end[2 * k + side, w] * part
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            s[0].state.tie_force[t, w] = s[0].work.kept_tie[t, w] * part


@wp.func
def start_speeds(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Predict a step: mean velocities that change as in the last ones."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    weight = s[0].work.weight[k, w]
    degree = s[0].state.degree[k, w]
    if s[0].ropes.exact == 0:
        degree = 1  # passes that are mixed end less near where higher ones begin them
    to_1 = real(0.5) * h
    to_2 = real(0.0)
    to_3 = real(0.0)
    if degree == 0:
        to_1 = -to_1
    if degree > 1:
        to_2 = h * h
    if degree > 2:
        to_3 = h * h * h
    for i in range(first, first + n + 1):
        mean = s[0].state.smooth[i, w] + s[0].state.gain[i, w] * to_1
        mean = mean + s[0].state.gain_2[i, w] * to_2 + s[0].state.gain_3[i, w] * to_3
        s[0].work.v[i, w] = end_of_mean(mean, s[0].state.velocity[i, w], weight)
        mean = s[0].state.spin_smooth[i, w] + s[0].state.spin_gain[i, w] * to_1
        mean = mean + s[0].state.spin_gain_2[i, w] * to_2 + s[0].state.spin_gain_3[i, w] * to_3
        s[0].work.w[i, w] = end_of_mean(mean, s[0].state.spin[i, w], weight)
    s[0].work.w[first + n, w] = vec3(real(0.0))


# ---- the pose that velocities lead to ---------------------------------------------------------------------------------------


@wp.func
def held_mean(s: wp.array(dtype=RopeStep), b: int, w: int, point: vec3) -> vec3:
    """Mean velocity of a point of a body that yields: V̄ + ω̄ × r̄."""
    arm = (wp.quat_rotate(s[0].body_state.rotation[b, w], point) + wp.quat_rotate(s[0].body.q[b, w], point)) * real(0.5)
    v = (s[0].body_state.velocity[b, w] + s[0].body.v[b, w]) * real(0.5)
    return v + wp.cross(s[0].body.turn[b, w], arm) / s[0].h[w]


@wp.func
def hold_end(s: wp.array(dtype=RopeStep), end: int, i: int, w: int):
    """A held point goes where its body takes it."""
    b = s[0].ropes.body[end]
    there = end_point(s, end, w)
    mean = (there - s[0].state.position[i, w]) / s[0].h[w]
    if s[0].ropes.kind[end] != DRIVEN:
        mean = held_mean(s, b, w, s[0].ropes.point[end])
    s[0].work.v[i, w] = end_of_mean(mean, s[0].state.velocity[i, w], s[0].work.weight[end / 2, w])
    s[0].work.r[i, w] = there


@wp.func
def hold_tie(s: wp.array(dtype=RopeStep), t: int, w: int):
    """A point between the ends goes where its body takes it; one on a driven body has the impulse that holds it there."""
    b = s[0].ropes.tie_body[t]
    i = s[0].ropes.tie_slot[t]
    there = tie_point(s, t, w)
    mean = (there - s[0].state.position[i, w]) / s[0].h[w]
    if s[0].bodies.motion[b] == DYNAMIC:
        mean = held_mean(s, b, w, s[0].ropes.tie_point[t])
    s[0].work.v[i, w] = end_of_mean(mean, s[0].state.velocity[i, w], s[0].work.weight[s[0].ropes.tie_rope[t], w])
    s[0].work.r[i, w] = there


@wp.func
def rope_pose(s: wp.array(dtype=RopeStep), k: int, w: int):
    """r₁ = r₀ + Δt v̄, R₁ = cay(Δt ω̄) R₀ of a rope."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    pose(s, k, w)
    for side in range(2):
        if is_held(s, 2 * k + side):
            hold_end(s, 2 * k + side, first + side * n, w)
    if s[0].ropes.kind[2 * k] == ROPE:
        at = s[0].ropes.body[2 * k]
        s[0].work.v[first, w] = s[0].work.v[at, w]
        s[0].work.r[first, w] = s[0].work.r[at, w]
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            hold_tie(s, t, w)


# ---- what a factor needs ----------------------------------------------------------------------------------------------------


@wp.func
def mean_arm(s: wp.array(dtype=RopeStep), b: int, w: int, point: vec3) -> vec3:
    """r̄ of a point of a body."""
    return (wp.quat_rotate(s[0].body_state.rotation[b, w], point) + wp.quat_rotate(s[0].body.q[b, w], point)) * real(0.5)


@wp.func
def mean_arms(s: wp.array(dtype=RopeStep), w: int):
    """Arms of held and tied points at the pose at hand, and, for true slopes, at the end of the step."""
    for k in range(s[0].ropes.count):
        for side in range(2):
            end = 2 * k + side
            if is_held(s, end):
                b = s[0].ropes.body[end]
                s[0].work.arm[end, w] = mean_arm(s, b, w, s[0].ropes.point[end])
                if s[0].ropes.exact == 1:
                    s[0].work.end_arm[end, w] = wp.quat_rotate(s[0].body.q[b, w], s[0].ropes.point[end])
    for t in range(s[0].ropes.ties):
        b = s[0].ropes.tie_body[t]
        s[0].work.tie_arm[t, w] = mean_arm(s, b, w, s[0].ropes.tie_point[t])
        if s[0].ropes.exact == 1:
            s[0].work.tie_end[t, w] = wp.quat_rotate(s[0].body.q[b, w], s[0].ropes.tie_point[t])


# ---- what is missed ---------------------------------------------------------------------------------------------------------


@wp.func
def note_frames(s: wp.array(dtype=RopeStep), k: int, w: int):
    """The frames that clamp a rope's ends, and their turns in the step."""
    for side in range(2):
        end = 2 * k + side
        if s[0].ropes.clamp[end] == 1:
            b = s[0].ropes.body[end]
            s[0].work.frame0[end, w] = s[0].body_state.rotation[b, w] * s[0].ropes.frame[end]
            s[0].work.frame1[end, w] = s[0].body.q[b, w] * s[0].ropes.frame[end]
            s[0].work.frame_turn[end, w] = s[0].body.turn[b, w]


@wp.func
def slide_axis(s: wp.array(dtype=RopeStep), i: int, w: int) -> vec3:
    """d̄ − ¼θ × (d₁ − d₀): the impulse of a row along it works where its element becomes longer."""
    d0 = tangent(s[0].state.rotation[i, w])
    d1 = tangent(s[0].work.q[i, w])
    return (d0 + d1) * real(0.5) - wp.cross(s[0].work.turn[i, w], d1 - d0) * real(0.25)


@wp.func
def rope_misses(s: wp.array(dtype=RopeStep), w: int, anew: int):
    """All that ropes miss, ropes that hang on ropes and what holds points between the ends included; `anew` 1: and its slopes."""
    if anew == 1:
        s[0].exact[w] = s[0].ropes.exact
    for k in range(s[0].ropes.count):
        note_frames(s, k, w)
        miss(s, k, w, anew)
        for side in range(2):
            if is_held(s, 2 * k + side) or s[0].ropes.kind[2 * k + side] == ROPE:
                i = s[0].ropes.first[k] + side * s[0].state.segments[k, w]
                s[0].work.defect[i, w] = s[0].work.defect[i, w] - s[0].state.end_force[2 * k + side, w]
    for k in range(s[0].ropes.count):
        if s[0].ropes.kind[2 * k] == ROPE:
            at = s[0].ropes.body[2 * k]
            s[0].work.defect[at, w] = s[0].work.defect[at, w] + s[0].state.end_force[2 * k, w]
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_kind[t] != BODY:  # a body's, in the ropes' own solve, is eliminated with it
            i = s[0].ropes.tie_slot[t]
            s[0].work.defect[i, w] = s[0].work.defect[i, w] - s[0].state.tie_force[t, w]


@wp.func
def hold_driven_ties(s: wp.array(dtype=RopeStep), w: int):
    """Note the impulse by which a point that does not yield was held in a pass."""
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_kind[t] == DRIVEN:
            k = s[0].ropes.tie_rope[t]
            i = s[0].ropes.tie_slot[t]
            total = s[0].ropes.density[k] * s[0].state.length[i, w] * real(s[0].state.segments[k, w])
            s[0].state.tie_force[t, w] = s[0].state.tie_force[t, w] - s[0].work.dv[i, w] * (HEAVY * total)


# ---- whether it is met ------------------------------------------------------------------------------------------------------


@wp.func
def note_rope(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Velocities before a pass."""
    for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w] + 1):
        s[0].work.last_v[i, w] = s[0].work.v[i, w]
        s[0].work.last_w[i, w] = s[0].work.w[i, w]


@wp.func
def turns_far(s: wp.array(dtype=RopeStep), k: int, w: int) -> bool:
    """Whether an element turns by more than a step can follow: passes may have met on another branch."""
    first = s[0].ropes.first[k]
    for i in range(first, first + s[0].state.segments[k, w]):
        if wp.dot(tangent(s[0].state.rotation[i, w]), tangent(s[0].work.q[i, w])) < real(-0.5):
            return True
    return False


# ---- after the passes -------------------------------------------------------------------------------------------------------


@wp.func
def gone_on(smooth: vec3, gain: vec3, mean: vec3, h: real):
    """A velocity at the new pose, and its gain, that mean velocities lead to: what the next is expected from.

    Velocities at the pose themselves may be turned over from step to step by what rows leave in them.
    """
    new = gain + (mean - smooth - gain * (real(0.5) * h)) / h
    return mean + new * (real(0.5) * h), new


@wp.func
def keep_rope(s: wp.array(dtype=RopeStep), k: int, w: int):
    """The new state of a rope becomes its state; ω₁ = cay(θ) w."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    h = s[0].h[w]
    s[0].state.started[k, w] = 1
    weight = s[0].work.weight[k, w]
    off_0 = real(0.0)
    off_1 = real(0.0)
    off_2 = real(0.0)
    off_3 = real(0.0)
    for side in range(2):
        i = first + side * n
        mean = s[0].state.velocity[i, w] * (real(1.0) - weight) + s[0].work.v[i, w] * weight
        s[0].state.end_mean[2 * k + side, w] = mean
    for j in range(n + 1):
        i = first + j
        v = s[0].work.v[i, w]
        mean = s[0].state.velocity[i, w] * (real(1.0) - weight) + v * weight
        gain_before = s[0].state.gain[i, w]
        smooth, gain = gone_on(s[0].state.smooth[i, w], gain_before, mean, h)
        s[0].state.smooth[i, w] = smooth
        s[0].state.gain[i, w] = gain
        gain_2 = (gain - gain_before) / h
        gain_3 = (gain_2 - s[0].state.gain_2[i, w]) / h
        gain_4 = (gain_3 - s[0].state.gain_3[i, w]) / h
        s[0].state.gain_2[i, w] = gain_2
        s[0].state.gain_3[i, w] = gain_3
        off_0 = off_0 + wp.length_sq(gain)
        off_1 = off_1 + wp.length_sq(gain_2) * (h * h)
        off_2 = off_2 + wp.length_sq(gain_3) * (h * h * h * h)
        off_3 = off_3 + wp.length_sq(gain_4) * (h * h * h * h * h * h)
        s[0].state.velocity[i, w] = v
        s[0].state.position[i, w] = s[0].work.r[i, w]
        if j < n:
            omega = s[0].work.w[i, w]
            mean = s[0].work.turn[i, w] / h
            gain_before = s[0].state.spin_gain[i, w]
            smooth, gain = gone_on(s[0].state.spin_smooth[i, w], gain_before, mean, h)
            s[0].state.spin_smooth[i, w] = smooth
            s[0].state.spin_gain[i, w] = gain
            gain_2 = (gain - gain_before) / h
            gain_3 = (gain_2 - s[0].state.spin_gain_2[i, w]) / h
            gain_4 = (gain_3 - s[0].state.spin_gain_3[i, w]) / h
            s[0].state.spin_gain_2[i, w] = gain_2
            s[0].state.spin_gain_3[i, w] = gain_3
            l = s[0].state.length[i, w]
            off_0 = off_0 + wp.length_sq(gain) * (l * l)
            off_1 = off_1 + wp.length_sq(gain_2) * (l * l * h * h)
            off_2 = off_2 + wp.length_sq(gain_3) * (l * l * h * h * h * h)
            off_3 = off_3 + wp.length_sq(gain_4) * (l * l * h * h * h * h * h * h)
            s[0].state.spin[i, w] = carried(s[0].work.turn[i, w], omega)
            s[0].state.rotation[i, w] = s[0].work.q[i, w]
            s[0].work.snaps[i, w] = int(s[0].state.slack[i, w] == 1 and s[0].work.slack[i, w] != 1)
            s[0].state.slack[i, w] = unwound(s[0].work.slack[i, w])
            s[0].state.span[i, w] = new_span(s, i, w)
            now = -wp.dot(s[0].state.pull[i, w], s[0].work.d[i, w]) * side_of(s, i, w) / s[0].settings.dt[0]
            s[0].state.was[i, w] = s[0].state.now[i, w]
            s[0].state.now[i, w] = now
            s[0].state.tight[i, w] = wp.max(wp.abs(now), FADING * s[0].state.tight[i, w])
    degree = int(0)  # by which the mean velocities of this step would have been foreseen best
    if off_1 < off_0:
        degree = 1
        if off_2 < off_1:
            degree = 2
            if off_3 < off_2:
                degree = 3
    s[0].state.degree[k, w] = degree
    if s[0].ropes.reel[k] >= 0:
        rate = s[0].work.paid[k, w] / h
        s[0].state.reel_now[k, w] = real(2.0) * rate - s[0].state.reel_now[k, w]
        s[0].state.reel_rate[k, w] = rate


@wp.func
def keep_impulses(s: wp.array(dtype=RopeStep), w: int):
    """Keep the impulses of the last step, from which the next part begins."""
    for i in range(s[0].state.pull.shape[0]):
        s[0].work.kept_pull[i, w] = s[0].state.pull[i, w]
        s[0].work.kept_moment[i, w] = s[0].state.moment[i, w]
    for i in range(s[0].state.end_force.shape[0]):
        s[0].work.kept_end[i, w] = s[0].state.end_force[i, w]
    for t in range(s[0].ropes.ties):
        s[0].work.kept_tie[t, w] = s[0].state.tie_force[t, w]


@wp.func
def take_back_impulses(s: wp.array(dtype=RopeStep), w: int):
    """Put back the kept impulses, after a part that was not made."""
    for i in range(s[0].state.pull.shape[0]):
        s[0].state.pull[i, w] = s[0].work.kept_pull[i, w]
        s[0].state.moment[i, w] = s[0].work.kept_moment[i, w]
    for i in range(s[0].state.end_force.shape[0]):
        s[0].state.end_force[i, w] = s[0].work.kept_end[i, w]
    for t in range(s[0].ropes.ties):
        s[0].state.tie_force[t, w] = s[0].work.kept_tie[t, w]
