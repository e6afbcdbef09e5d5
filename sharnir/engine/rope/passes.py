"""Passes of ropes and of the bodies that hold them, up to a new pose; what they begin with, and how it is kept (theory: ropes).

V⁺ = V + M⁻¹(F Δt + Jᵀλ),   r_{j+1} − r_j − l d₃(q_j) = 0 and the moments of bend and twist at the end of the step.
"""

import warp as wp

from sharnir.core.types import EPSILON, real, vec3
from sharnir.engine.rope.bend import damped_moment, from_rest
from sharnir.engine.rope.chain import bring_back, eliminate, follow
from sharnir.engine.rope.data import BODY, DRIVEN, LOOP, PORT, ROPE, WOUND, RopeStep
from sharnir.engine.rope.ends import (
    advance_body,
    clear_ties,
    end_point,
    first_end,
    hang,
    hang_bias,
    is_held,
    move_body,
    own_inertia,
    tie_bias,
    tie_inertia,
    tie_move,
    tie_point,
)
from sharnir.engine.rope.loops import assemble, last_change, move_group
from sharnir.engine.rope.predict import TWIST, frame_after, frame_before, hold_ends, start_span, weights
from sharnir.engine.rope.slack import buckling_load, judge, new_span, side_of, unwound
from sharnir.engine.rope.terms import kept_momentum, tangent, turned_element
from sharnir.engine.rope.winch import spin_drums
from sharnir.model.model import DYNAMIC

ANY = wp.constant(real(10.0))  # relative shortening that no element reaches
JUDGED = wp.constant(24)  # in which elements are judged slack or taut; in the second half one changes over in each
FADING = wp.constant(real(0.8))  # factor by which the memory of the largest tension fades in a step
MOST_GAIN = wp.constant(real(1.3))  # largest ratio by which closing at the end of the step may raise the kinetic energy
ACCEPTED = wp.constant(real(max(1.0e-5, 1.0e3 * EPSILON)))  # relative gap of a row that may be left to the next step


# ---- a pass -----------------------------------------------------------------------------------------------------------------


@wp.func
def missed(s: wp.array(dtype=RopeStep), k: int, w: int, attempt: int) -> real:
    """c = −(r_{j+1} − r_j − l d₃)/Δt and e = Δt · moment − what was applied, at the new pose; the largest, as an angle."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    dt = s[0].h[w]
    EI = s[0].ropes.EI[k, w]
    GJ = s[0].ropes.GJ[k, w]
    late = s[0].ropes.damping[k, w] / dt
    rho = s[0].settings.beta[2]
    if attempt > 0:
        rho = real(0.0)
    new, _now, _last = weights(rho)
    most = real(0.0)
    a = frame_before(s, k, w, s[0].body.q)
    for j in range(n + 1):
        i = first + j
        b = s[0].work.q[i, w]
        if j == n:
            b = frame_after(s, k, w, s[0].body.q)
        bar = s[0].work.bar[i, w]
        e = vec3(real(0.0))
        if bar > real(0.0):
            p = from_rest(a, b, s[0].ropes.rest[i] / bar)
            m = damped_moment(a, p, s[0].work.strain[i, w], EI, GJ, TWIST * EI, new, late) * bar
            e = m * s[0].kick[w] + s[0].work.past[i, w] - s[0].state.moment[i, w]
            most = wp.max(most, wp.length(e) / (s[0].kick[w] * bar * wp.max(EI, GJ) * (real(1.0) + late)))
        s[0].work.e[i, w] = e
        if j < n:
            l = s[0].state.length[i, w]
            gap = s[0].work.r[i + 1, w] - s[0].work.r[i, w] - tangent(b) * new_span(s, i, w)
            s[0].work.push_out[i, w] = lacks_push(s, k, i, w)
            s[0].work.c[i, w] = gap * (real(-1.0) / dt)
            if s[0].state.cut[i, w] == 0:
                most = wp.max(most, wp.length(gap) / l)
        a = b
    return most


@wp.func
def lacks_push(s: wp.array(dtype=RopeStep), k: int, i: int, w: int) -> real:
    """Impulse along an element that is lacking if it is slack; a wound one has passed on what it pulls to its drum."""
    if s[0].work.slack[i, w] == WOUND:
        return real(0.0)
    return buckling_load(s, k, i, w) * s[0].kick[w] - wp.dot(s[0].state.pull[i, w], s[0].work.d[i, w])


@wp.func
def missed_speeds(s: wp.array(dtype=RopeStep), k: int, w: int, ahead: real):
    """c and e at velocity level: rows J V⁺ = ṡ d at the start of the step, moments linear about it, M − K (ω_j − ω_{j−1}).

    `ahead` is 1 for the moments at the end of the step, as the implicit Euler rule has them, and 0 for those of the start. Of
    taut elements ṡ is what a reel pays out, and what one lacks that becomes taut.
    """
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    before = vec3(real(0.0))
    if s[0].ropes.clamp[2 * k] == 1:
        before = s[0].body.w[s[0].ropes.body[2 * k], w]
    for j in range(n + 1):
        i = first + j
        omega = s[0].work.w[i, w]
        if j == n and s[0].ropes.clamp[2 * k + 1] == 1:
            omega = s[0].body.w[s[0].ropes.body[2 * k + 1], w]
        s[0].work.e[i, w] = vec3(real(0.0))
        if s[0].work.bar[i, w] > real(0.0):
            m = s[0].work.elastic[i, w] * s[0].kick[w] - s[0].work.K[i, w] * (omega - before) * ahead
            s[0].work.e[i, w] = m - s[0].state.moment[i, w]
        if j < n:
            d = s[0].work.d[i, w]
            rate = (start_span(s, i, w) - s[0].state.span[i, w]) / s[0].h[w]
            if ahead == real(0.0):
                rate = real(0.0)
                if j == s[0].ropes.reel[k] * (n - 1):
                    rate = s[0].state.reel_rate[k, w] * side_of(s, i, w)
            turn = wp.cross(omega, d) * s[0].work.reach[i, w]
            s[0].work.c[i, w] = turn + d * rate - (s[0].work.v[i + 1, w] - s[0].work.v[i, w])
            s[0].work.push_out[i, w] = lacks_push(s, k, i, w)
        before = omega


@wp.func
def advance_rope(s: wp.array(dtype=RopeStep), k: int, w: int):
    """The new pose from the new velocities; defects are made up for."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    dt = s[0].h[w]
    for j in range(n + 1):
        i = first + j
        s[0].work.defect[i, w] = vec3(real(0.0))
        s[0].work.load[i, w] = vec3(real(0.0))
        s[0].work.r[i, w] = s[0].state.position[i, w] + s[0].work.v[i, w] * dt
        if j < n:
            s[0].work.q[i, w] = turned_element(s[0].state.rotation[i, w], s[0].work.d[i, w], s[0].work.w[i, w], dt)
    for side in range(2):
        if is_held(s, 2 * k + side):
            s[0].work.r[first + side * n, w] = end_point(s, 2 * k + side, w)
    if s[0].ropes.kind[2 * k] == ROPE:
        s[0].work.r[first, w] = s[0].work.r[s[0].ropes.body[2 * k], w]
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            s[0].work.r[s[0].ropes.tie_slot[t], w] = tie_point(s, t, w)


@wp.func
def is_tied(s: wp.array(dtype=RopeStep), k: int, w: int) -> bool:
    """Whether a body or a rope is tied between a rope's ends."""
    for t in range(s[0].ropes.ties):
        if s[0].ropes.tie_rope[t] == k:
            return True
    first = s[0].ropes.first[k]
    for o in range(s[0].ropes.count):
        at = s[0].ropes.body[2 * o]
        if s[0].ropes.kind[2 * o] == ROPE and at >= first and at <= first + s[0].state.segments[k, w]:
            return True
    return False


@wp.func
def lay_out(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Put the points of a rope where its elements lead from the first one, and the body at its end there."""
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    kind = s[0].ropes.kind[2 * k + 1]
    if is_tied(s, k, w) or kind == DRIVEN or kind == LOOP or kind == PORT:
        return  # what holds it elsewhere stays: the next step closes the rows
    if is_held(s, 2 * k):
        s[0].work.r[first, w] = end_point(s, 2 * k, w)
    for i in range(first, first + n):
        if s[0].state.cut[i, w] == 0:
            l = s[0].state.length[i, w]
            s[0].work.r[i + 1, w] = s[0].work.r[i, w] + tangent(s[0].work.q[i, w]) * wp.clamp(new_span(s, i, w), -l, l)
    if kind == BODY:
        b = s[0].ropes.body[2 * k + 1]
        s[0].body.x[b, w] = s[0].body.x[b, w] + s[0].work.r[first + n, w] - end_point(s, 2 * k + 1, w)


@wp.func
def factor(s: wp.array(dtype=RopeStep), w: int, on_bodies: bool):
    """Inertias of ropes from the last ones inwards; `on_bodies`: and of the bodies on which they hang."""
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, True)
    factor_ropes(s, w, on_bodies)


@wp.func
def factor_ropes(s: wp.array(dtype=RopeStep), w: int, on_bodies: bool):
    """`factor`, beside what acts on points already."""
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[o]
        tie_bodies(s, k, w, True, False)
        eliminate(s, k, w)
        hang_rope(s, k, w, on_bodies, False)
    if on_bodies:
        assemble(s, w)


@wp.func
def factor_and_bring_in(s: wp.array(dtype=RopeStep), w: int):
    """`factor` and `bring_in` at once: inertias, and right-hand sides."""
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, True)
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[o]
        tie_bodies(s, k, w, True, True)
        eliminate(s, k, w)
        hang_rope(s, k, w, True, True)
    assemble(s, w)


@wp.func
def tie_bodies(s: wp.array(dtype=RopeStep), k: int, w: int, inertia: bool, bias: bool):
    """Bodies that are tied between a rope's ends."""
    if s[0].ropes.ties > 0:
        for t in range(s[0].ropes.ties):
            if s[0].ropes.tie_rope[t] == k:
                if inertia:
                    tie_inertia(s, t, w)
                if bias:
                    tie_bias(s, t, w)


@wp.func
def hang_rope(s: wp.array(dtype=RopeStep), k: int, w: int, inertia: bool, bias: bool):
    """What a rope adds to what holds its first end."""
    if s[0].ropes.kind[2 * k] == BODY:
        if inertia:
            hang(s, k, w)
        if bias:
            hang_bias(s, k, w)
    elif s[0].ropes.kind[2 * k] == ROPE:
        at = s[0].ropes.body[2 * k]
        s[0].work.tie_A[at, w] = s[0].work.tie_A[at, w] + s[0].work.Z_A[k, w]
        if bias:
            s[0].work.tie_p[at, w] = s[0].work.tie_p[at, w] + s[0].work.p_l[k, w]


@wp.func
def ropes_inward(s: wp.array(dtype=RopeStep), w: int):
    """The right-hand sides at hand, brought to the bodies that hold first ends: their p."""
    for b in range(s[0].bodies.count):
        s[0].body.p_l[b, w] = vec3(real(0.0))
        s[0].body.p_a[b, w] = vec3(real(0.0))
    bring_in(s, w)


@wp.func
def bring_in(s: wp.array(dtype=RopeStep), w: int):
    """Add what ropes bring to the bodies that hold their first ends to the p of these."""
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, False)
    bring_ropes(s, w)


@wp.func
def bring_ropes(s: wp.array(dtype=RopeStep), w: int):
    """`ropes_inward`, beside what acts on points and bodies already."""
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[o]
        tie_bodies(s, k, w, False, True)
        bring_back(s, k, w)
        if s[0].ropes.kind[2 * k + 1] == PORT:  # the moment of a clamp acts on its body, too
            b = s[0].ropes.body[2 * k + 1]
            s[0].body.p_a[b, w] = s[0].body.p_a[b, w] - s[0].work.e[s[0].ropes.first[k] + s[0].state.segments[k, w], w]
        if s[0].ropes.kind[2 * k] == BODY:
            hang_bias(s, k, w)
        elif s[0].ropes.kind[2 * k] == ROPE:
            at = s[0].ropes.body[2 * k]
            s[0].work.tie_p[at, w] = s[0].work.tie_p[at, w] + s[0].work.p_l[k, w]


@wp.func
def ropes_outward(s: wp.array(dtype=RopeStep), w: int):
    """New velocities of ropes, and of what they move, from the changes of the bodies that hold their first ends."""
    for o in range(s[0].ropes.count):
        k = s[0].ropes.order[s[0].ropes.count - 1 - o]
        v, omega = first_end(s, k, w)
        follow(s, k, w, v, omega, last_change(s, k, w))
        for t in range(s[0].ropes.ties):
            if s[0].ropes.tie_rope[t] == k:
                tie_move(s, t, w)
    spin_drums(s, w)


@wp.func
def advance_ropes(s: wp.array(dtype=RopeStep), w: int):
    """New poses of ropes, a rope on which another hangs first."""
    for o in range(s[0].ropes.count):
        advance_rope(s, s[0].ropes.order[s[0].ropes.count - 1 - o], w)


@wp.func
def one_pass(s: wp.array(dtype=RopeStep), w: int):
    """Solve for the right-hand sides at hand: inwards, bodies, outwards; then the new pose."""
    ropes_inward(s, w)
    move_all(s, w)
    add_changes(s, w)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            advance_body(s, b, w)
    advance_ropes(s, w)


@wp.func
def move_bodies(s: wp.array(dtype=RopeStep), w: int):
    """Changes of the twists of bodies on which no rope ends that moves them."""
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC and s[0].body.hung[b] == 0:
            move_body(s, b, w)
    move_group(s, w)


@wp.func
def add_changes(s: wp.array(dtype=RopeStep), w: int):
    """New twists of bodies, from their changes in a pass."""
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            s[0].body.v[b, w] = s[0].body.v[b, w] + s[0].body.dv[b, w]
            dw = s[0].body.dw[b, w]
            if s[0].exact[w] == 1:  # its turn at the end (`equations.end_spin`)
                turn = s[0].body.turn[b, w]
                dw = dw - wp.cross(turn, dw) * real(0.5) + turn * (real(0.25) * wp.dot(turn, dw))
            s[0].body.w[b, w] = s[0].body.w[b, w] + dw


@wp.func
def move_all(s: wp.array(dtype=RopeStep), w: int):
    """Changes of the velocities of bodies, and new ones of ropes, once all is brought inwards."""
    move_bodies(s, w)
    ropes_outward(s, w)


@wp.func
def factor_anew(s: wp.array(dtype=RopeStep), w: int):
    """Factors for elements that are slack or taut otherwise than was thought."""
    stand_anew(s, w)
    factor(s, w, True)


@wp.func
def stand_anew(s: wp.array(dtype=RopeStep), w: int):
    """Bodies and elements as factors need them."""
    for b in range(s[0].bodies.count):
        own_inertia(s, b, w)
    hold_ends(s, w)
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            s[0].work.reach[i, w] = start_span(s, i, w)


@wp.func
def judge_step(s: wp.array(dtype=RopeStep), w: int, all: bool) -> int:
    """How many elements were not taken to be slack or taut as they are; all or the last change over."""
    speed = wp.length(s[0].settings.gravity[w]) * s[0].h[w]
    length = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w]):
            speed = wp.max(speed, wp.length(s[0].work.v[i, w]))
            length = wp.max(length, s[0].state.length[i, w])
    return judge(s, w, speed, s[0].settings.tolerance[0] * length / s[0].h[w], ANY, all)


@wp.func
def scale_pulls(s: wp.array(dtype=RopeStep), w: int, by: real):
    """Impulses of the last step, or of a part of it, for a step of another length."""
    for t in range(s[0].ropes.ties):
        s[0].state.tie_force[t, w] = s[0].state.tie_force[t, w] * by
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        s[0].state.end_force[2 * k, w] = s[0].state.end_force[2 * k, w] * by
        s[0].state.end_force[2 * k + 1, w] = s[0].state.end_force[2 * k + 1, w] * by
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            s[0].state.moment[i, w] = s[0].state.moment[i, w] * by
            s[0].state.pull[i, w] = s[0].state.pull[i, w] * by


@wp.func
def point_energy(s: wp.array(dtype=RopeStep), w: int) -> real:
    """Kinetic energy of the ropes' points at the new velocities, J."""
    out = real(0.0)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            out = out + s[0].work.mass[i, w] * wp.length_sq(s[0].work.v[i, w])
    return real(0.5) * out


@wp.func
def kinetic(s: wp.array(dtype=RopeStep), w: int) -> real:
    """Kinetic energy of the ropes' points and of dynamic bodies at the new velocities, J."""
    out = real(0.0)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            omega = s[0].body.w[b, w]
            out = out + s[0].bodies.mass[b, w] * wp.length_sq(s[0].body.v[b, w]) + wp.dot(omega, s[0].body.inertia[b, w] * omega)
    return real(0.5) * out + point_energy(s, w)


@wp.func
def supply(s: wp.array(dtype=RopeStep), w: int, rest: real) -> real:
    """Generous bound of the energy that bend and twist, driven ends, reels and (`rest`, 1 or 0) a start from rest may add in a
    step, J.
    """
    out = real(0.0)
    mass = real(0.0)
    speed = real(0.0)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            mass = mass + s[0].bodies.mass[b, w]
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = s[0].state.segments[k, w]
        K = wp.max(s[0].ropes.EI[k, w], s[0].ropes.GJ[k, w])
        for i in range(first, first + n + 1):
            mass = mass + s[0].work.mass[i, w]
            if s[0].work.bar[i, w] > real(0.0):
                out = out + wp.length_sq(s[0].work.elastic[i, w]) / (K * s[0].work.bar[i, w])
        for side in range(2):
            if s[0].ropes.kind[2 * k + side] == DRIVEN:
                speed = wp.max(speed, wp.length(s[0].work.v[first + side * n, w]))
        speed = speed + wp.abs(s[0].control.reel_speed[k, w])
    speed = speed + rest * wp.length(s[0].settings.gravity[w]) * s[0].kick[w]
    return out + mass * speed * speed


# ---- after the passes -------------------------------------------------------------------------------------------------------


@wp.func
def commit_rope(s: wp.array(dtype=RopeStep), k: int, w: int):
    """The new state of a rope becomes its state."""
    s[0].state.started[k, w] = 1
    s[0].state.reel_rate[k, w] = s[0].work.paid[k, w] / s[0].h[w]
    if s[0].ropes.winch[k] >= 0:
        s[0].state.reel_now[k, w] = s[0].state.reel_rate[k, w]
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    for j in range(n + 1):
        i = first + j
        s[0].state.velocity[i, w] = s[0].work.v[i, w]
        s[0].state.before[i, w] = s[0].work.elastic[i, w]
        s[0].state.position[i, w] = s[0].work.r[i, w]
        if j < n:
            q = s[0].work.q[i, w]
            s[0].state.rotation[i, w] = q
            s[0].state.slack[i, w] = unwound(s[0].work.slack[i, w])
            s[0].state.span[i, w] = new_span(s, i, w)
            now = -wp.dot(s[0].state.pull[i, w], s[0].work.d[i, w]) * side_of(s, i, w) / s[0].settings.dt[0]
            s[0].state.was[i, w] = s[0].state.now[i, w]
            s[0].state.now[i, w] = now
            s[0].state.tight[i, w] = wp.max(wp.abs(now), FADING * s[0].state.tight[i, w])
            s[0].state.spin[i, w] = kept_momentum(s[0].work.d[i, w], tangent(q), s[0].work.w[i, w])
        else:
            s[0].state.spin[i, w] = vec3(real(0.0))


@wp.func
def bad_rope(s: wp.array(dtype=RopeStep), w: int) -> int:
    """1 + the number of bodies + the first rope whose new state is not finite, or 0."""
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            if not wp.isfinite(wp.length_sq(s[0].work.r[i, w]) + wp.length_sq(s[0].work.w[i, w])):
                return 1 + s[0].bodies.count + k
    return 0


@wp.func
def count(s: wp.array(dtype=RopeStep), w: int, relative: int, divided: int, damped: int, velocity: int):
    """Note how a step was made, in the order of `solver.GRADES`."""
    s[0].grades[0, w] = s[0].grades[0, w] + relative
    s[0].grades[1, w] = s[0].grades[1, w] + divided
    s[0].grades[2, w] = s[0].grades[2, w] + damped
    s[0].grades[3, w] = s[0].grades[3, w] + velocity
