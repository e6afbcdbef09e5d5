"""Contacts of ropes in the ropes' own passes (theory: ropes that touch).

A point of a rope takes from a surface the impulse P, in the cone |P_t| ≤ μ P_n, that holds the gap χ at the end of the step at 0
or more and hinders sliding; with u the velocity against the surface and r = n χ/Δt + u_t both are one equation,

    P = Π(P − σ r),        Π: onto P_n ≥ 0, and across n onto the disc of radius g = μ P_n,

whatever σ > 0 (an augmented Lagrangian; Alart and Curnier 1991). A pass takes Π for linear about q = P − σ r, g as it was: the
point then has an inertia A = σ Π′ more, and the elimination along the rope stays as it is:

    open     A = 0        sticks   A = σ E        slips along t = q_t/|q_t|    A = σ (n nᵀ + (g/|q_t|) b bᵀ),  b = n × t.

With P and g on the right held, velocities are those of the least of a convex function (kinetic energy and squares of what is
missed): where states do not settle, a pass goes only as far as that falls (`along_pass`), which leads to an end. Then P and g are
those found, and so on: σ is large beside all masses, so a thousandth of what was missed is left, and g follows like (μφ)ᵏ/k!, φ
the angle by which a rope turns. Tensions between points that stick are not determined by any law: they stay as near to the last
step's as they can.
"""

import warp as wp

from sharnir.collision.data import Collision
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.data import MIXED, RopeStep
from sharnir.engine.rope.ends import advance_body, clear_ties
from sharnir.engine.rope.mixing import mix, mix_passes, note, note_pass
from sharnir.engine.rope.passes import advance_ropes, factor_ropes, kinetic, missed_speeds, point_energy, stand_anew
from sharnir.engine.rope.terms import element_inertia
from sharnir.engine.rope.touch_bodies import is_coupled, make_groups, push_body
from sharnir.engine.rope.touch_couple import NO_ROOM, entry_moves, solve_coupled
from sharnir.engine.rope.touch_data import LIFTED, MOST, OPEN, SLIPS, STICKS, RopeTouch
from sharnir.engine.rope.touch_find import end_gap, entry_speed, rope_of, start_speed
from sharnir.engine.rope.touch_pairs import pair_gap
from sharnir.laws.contact import SLOP
from sharnir.model.model import DYNAMIC

PUSH = wp.constant(real(0.2))  # share of an overlap at the start that is taken back in a step
HALVINGS = wp.constant(60)
WHOLE = wp.constant(real(0.999))  # part of a pass from which on it is gone whole


# ---- the law ----------------------------------------------------------------------------------------------------------------


@wp.func
def onto_cone(q: vec3, n: vec3, g: real) -> vec3:
    """Π(q): onto q_n ≥ 0 and the disc of radius g."""
    normal = wp.dot(n, q)
    along = q - n * normal
    size = wp.length(along)
    if size > g:
        along = along * (g / size)
    return n * wp.max(normal, real(0.0)) + along


@wp.func
def slope_of(q: vec3, n: vec3, g: real):
    """Π′ at q, and the state."""
    normal = wp.dot(n, q)
    along = q - n * normal
    size = wp.length(along)
    lifted = normal <= real(0.0)
    if lifted and g == real(0.0):
        return mat33(real(0.0)), int(OPEN)
    across = wp.where(lifted, mat33(real(0.0)), wp.outer(n, n))
    if size <= g:
        return across + wp.identity(n=3, dtype=real) - wp.outer(n, n), wp.where(lifted, int(LIFTED), int(STICKS))
    b = wp.cross(n, along / size)
    return across + wp.outer(b, b) * (g / size), wp.where(lifted, int(LIFTED), int(SLIPS))


@wp.func
def look(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Gaps and normals at the end of the step, as it stands; until the next look gaps are linear in velocities."""
    for m in range(t[0].live[w]):
        look_at(s, t, c, t[0].entry[m, w], w)


@wp.func
def look_at(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int):
    """`look` at one point of contact."""
    if e >= t[0].base:
        pair_gap(s, t, e - t[0].base, w)
    else:
        end_gap(s, t, c, e, w)


@wp.func
def group_of(t: wp.array(dtype=RopeTouch), e: int, w: int) -> int:
    """The group to which a point of contact belongs, as the last pass had them."""
    return t[0].group[t[0].rope_part[rope_of(t, e, w)], w]


@wp.func
def missed_at(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), e: int, w: int) -> vec3:
    """r = n χ/Δt + u_t of a point of contact; of an overlap at the start only a part is taken back.

    At velocity level none of it is, and a point may stay where it is, whatever plane its way led to: a surface then only takes
    energy.
    """
    n = t[0].n[e, w]
    u = entry_speed(s, t, c, e, w)
    least = wp.min(t[0].start[e, w] + SLOP, real(0.0))
    if s[0].hard[w] < 2:
        least = least * (real(1.0) - PUSH)
    lead = (t[0].gap[e, w] - least) / s[0].h[w] - wp.dot(n, t[0].speed[e, w])
    if s[0].hard[w] == 2:
        lead = wp.max(lead, real(0.0))
    return u + n * lead


@wp.func
def begin_pass(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """What the first pass of a step asks: points of contact go on as they did in the last one."""
    sigma = t[0].stiff[0]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        n = t[0].n[e, w]
        C = t[0].centre[e, w]
        miss = missed_at(s, t, c, e, w)
        q = C - miss * sigma
        g = t[0].bound[e, w]
        state = t[0].state[e, w]
        along = C - n * wp.dot(n, C)
        size = wp.length(along)
        if state == SLIPS and size > real(0.0):
            slip = along / size
            b = wp.cross(n, slip)
            u = start_speed(s, t, c, e, w)
            part = g / (g + sigma * wp.length(u - n * wp.dot(n, u)))
            t[0].A[e, w] = (wp.outer(n, n) + wp.outer(b, b) * part) * sigma
            t[0].wanted[e, w] = n * wp.dot(n, q) + slip * g - b * (wp.dot(b, miss) * part * sigma)
            t[0].slip[e, w] = slip
        elif state == STICKS:
            t[0].A[e, w] = wp.identity(n=3, dtype=real) * sigma
            t[0].wanted[e, w] = q
        else:
            slope, now = slope_of(q, n, g)
            t[0].state[e, w] = now
            t[0].A[e, w] = slope * sigma
            t[0].wanted[e, w] = onto_cone(q, n, g)
        t[0].miss[e, w] = miss


@wp.func
def missed_touch(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """What the law asks of every point of contact at the velocities at hand; by how much it is missed.

    Returns the largest gap or slip that should not be, m, the largest impulse that is lacking, of the largest there is. Groups in
    which a point changed its state are noted (`moved`).
    """
    sigma = t[0].stiff[0]
    open = real(0.0)
    lacks = real(0.0)
    largest = real(0.0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        n = t[0].n[e, w]
        miss = missed_at(s, t, c, e, w)
        q = t[0].centre[e, w] - miss * sigma
        g = t[0].bound[e, w]
        wanted = onto_cone(q, n, g)
        slope, state = slope_of(q, n, g)
        across = wanted - n * wp.dot(n, wanted)
        slip = wp.normalize(across)
        if state != t[0].state[e, w] or (state == SLIPS and wp.dot(slip, t[0].slip[e, w]) < real(0.0)):
            t[0].moved[group_of(t, e, w), w] = 1
        t[0].state[e, w] = state
        t[0].slip[e, w] = slip
        t[0].miss[e, w] = miss
        t[0].wanted[e, w] = wanted
        t[0].A[e, w] = slope * sigma
        now = t[0].mu[e, w] * wp.max(wp.dot(n, wanted), real(0.0))
        off = wp.abs(wp.dot(n, wanted - t[0].centre[e, w]))
        lack = wp.length(wanted - t[0].impulse[e, w])
        if state == STICKS:
            off = wp.length(wanted - t[0].centre[e, w])
            lack = wp.max(lack, wp.length(across) - now)  # what is held may be less than g
        else:
            lack = wp.max(lack, wp.abs(g - now))
        open = wp.max(open, off * (s[0].h[w] / sigma))
        lacks = wp.max(lacks, lack)
        largest = wp.max(largest, wp.length(wanted))
    if largest > real(0.0):
        lacks = lacks / largest
    return open, lacks


@wp.func
def all_stand(t: wp.array(dtype=RopeTouch), w: int) -> bool:
    """Whether all was as it was taken to be in the last pass, which was gone whole."""
    out = int(0)
    for i in range(t[0].group.shape[0]):
        out = out + t[0].moved[i, w]
    return out == 0


@wp.func
def go_on(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """P and g as the passes found them, for the next ones, in groups in which all is as it was taken to be; gaps and normals,
    too, a few times: then passes come to an end.
    """
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        which = group_of(t, e, w)
        if t[0].moved[which, w] == 1:
            continue
        if t[0].looks[which, w] > 0:
            look_at(s, t, c, e, w)
        P = t[0].impulse[e, w]
        n = t[0].n[e, w]
        g = t[0].mu[e, w] * wp.max(wp.dot(n, P), real(0.0))
        t[0].bound[e, w] = g
        t[0].centre[e, w] = onto_cone(P, n, g)
    for i in range(t[0].group.shape[0]):
        if t[0].moved[i, w] == 0 and t[0].looks[i, w] > 0:
            t[0].looks[i, w] = t[0].looks[i, w] - 1


@wp.func
def begin_groups(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), looks: int, w: int):
    """Before the first pass of a step nothing goes one way."""
    for i in range(t[0].group.shape[0]):
        t[0].group[i, w] = i
        t[0].moved[i, w] = 0
        t[0].looks[i, w] = looks


# ---- a pass -----------------------------------------------------------------------------------------------------------------


@wp.func
def factor_touch(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Inertias of ropes with what surfaces add to their points; those at hand, where nothing of it has changed."""
    anew = t[0].stale[w] == 1
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if not is_coupled(s, t, c, e, w):
            change = t[0].A[e, w] - t[0].used_A[e, w]
            if wp.ddot(change, change) != real(0.0):
                anew = True
    if not anew:
        return
    stand_anew(s, w)
    for k in range(s[0].ropes.count):
        clear_ties(s, k, w, True)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if not is_coupled(s, t, c, e, w):
            i = e / MOST
            s[0].work.tie_A[i, w] = s[0].work.tie_A[i, w] + t[0].A[e, w]
            t[0].used_A[e, w] = t[0].A[e, w]
    factor_ropes(s, w, True)
    for p in range(t[0].pairs[w]):
        t[0].known[p, w] = 0
    t[0].stale[w] = 0


@wp.func
def leave(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), w: int):
    """Note what a pass begins from."""
    for b in range(s[0].bodies.count):
        s[0].body.last_v[b, w] = s[0].body.v[b, w]
        s[0].body.last_w[b, w] = s[0].body.w[b, w]
    for end in range(s[0].state.end_force.shape[0]):
        t[0].end[end, w] = s[0].state.end_force[end, w]
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + s[0].state.segments[k, w] + 1):
            s[0].work.last_v[i, w] = s[0].work.v[i, w]
            s[0].work.last_w[i, w] = s[0].work.w[i, w]
            t[0].pull[i, w] = s[0].state.pull[i, w]
            t[0].moment[i, w] = s[0].state.moment[i, w]


@wp.func
def body_belongs(t: wp.array(dtype=RopeTouch), which: int, b: int, w: int) -> bool:
    """Whether a body goes one way with a group."""
    if t[0].place[b, w] >= 0:
        return t[0].group[t[0].parts + b, w] == which
    if t[0].body_part[b] < 0:
        return False
    return t[0].group[t[0].body_part[b], w] == which


@wp.func
def rope_belongs(t: wp.array(dtype=RopeTouch), which: int, k: int, w: int) -> bool:
    """The same of a rope."""
    return t[0].group[t[0].rope_part[k], w] == which


@wp.func
def points_of(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), which: int, k: int, w: int) -> int:
    """How many points a rope has, if it belongs to a group."""
    return wp.where(rope_belongs(t, which, k, w), s[0].state.segments[k, w] + 1, 0)


@wp.func
def inertia_of_pass(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), which: int, w: int) -> real:
    """sᵀ M s of the change s of velocities in a pass, M all that resists but surfaces, J."""
    out = real(0.0)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC and body_belongs(t, which, b, w):
            dw = s[0].body.w[b, w] - s[0].body.last_w[b, w]
            dv = s[0].body.v[b, w] - s[0].body.last_v[b, w]
            out = out + s[0].bodies.mass[b, w] * wp.length_sq(dv) + wp.dot(dw, s[0].body.inertia[b, w] * dw)
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        n = points_of(s, t, which, k, w) - 1
        i1 = real(0.25) * s[0].ropes.density[k] * s[0].ropes.radius[k] * s[0].ropes.radius[k]
        before = vec3()
        for j in range(n + 1):
            i = first + j
            out = out + (s[0].work.mass[i, w] + s[0].work.damp[i, w]) * wp.length_sq(s[0].work.v[i, w] - s[0].work.last_v[i, w])
            dw = s[0].work.w[i, w] - s[0].work.last_w[i, w]
            if j < n:
                D = element_inertia(i1 * s[0].state.length[i, w], s[0].work.extra[i, w], s[0].work.d[i, w])
                out = out + wp.dot(dw, D * dw)
            if j > 0 and j < n:
                out = out + wp.dot(dw - before, s[0].work.K[i, w] * (dw - before))
            before = dw
    return out


@wp.func
def along_pass(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), which: int, w: int) -> real:
    """The part of a pass after which the convex function that it is to lower no longer falls, at most 1.

    Its slope along the change s is sᵀM(V − V°) − Σ Π(P − σ r)·s (less the work of rows that close); the first part is linear and,
    at the end of the whole pass, what the linear law gives there.
    """
    sigma = t[0].stiff[0]
    whole = real(0.0)
    start = real(0.0)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if rope_belongs(t, which, rope_of(t, e, w), w):
            whole = whole + wp.dot(t[0].impulse[e, w], t[0].moves[e, w])
            start = start + wp.dot(t[0].wanted[e, w], t[0].moves[e, w])
    inertia = inertia_of_pass(s, t, which, w)
    start = whole - inertia - start
    low = real(0.0)
    high = real(1.0)
    part = real(1.0)
    for _try in range(HALVINGS):
        slope = whole - inertia * (real(1.0) - part)
        for m in range(t[0].live[w]):
            e = t[0].entry[m, w]
            if rope_belongs(t, which, rope_of(t, e, w), w):
                dv = t[0].moves[e, w]
                q = t[0].centre[e, w] - (t[0].miss[e, w] + dv * part) * sigma
                slope = slope - wp.dot(onto_cone(q, t[0].n[e, w], t[0].bound[e, w]), dv)
        if slope > real(-1.0e-4) * start:
            high = part
        else:
            low = part
        if low >= real(1.0) or high - low < real(1.0e-6) * high:
            break
        part = real(0.5) * (low + high)
    return part


@wp.func
def shorten(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), which: int, w: int, part: real):
    """Go a part of a pass only: all it changed is linear in it."""
    back = real(1.0) - part
    for b in range(s[0].bodies.count):
        if body_belongs(t, which, b, w):
            s[0].body.v[b, w] = s[0].body.v[b, w] * part + s[0].body.last_v[b, w] * back
            s[0].body.w[b, w] = s[0].body.w[b, w] * part + s[0].body.last_w[b, w] * back
    for end in range(s[0].state.end_force.shape[0]):
        if rope_belongs(t, which, end / 2, w):
            s[0].state.end_force[end, w] = s[0].state.end_force[end, w] * part + t[0].end[end, w] * back
    for k in range(s[0].ropes.count):
        first = s[0].ropes.first[k]
        for i in range(first, first + points_of(s, t, which, k, w)):
            s[0].work.v[i, w] = s[0].work.v[i, w] * part + s[0].work.last_v[i, w] * back
            s[0].work.w[i, w] = s[0].work.w[i, w] * part + s[0].work.last_w[i, w] * back
            s[0].state.pull[i, w] = s[0].state.pull[i, w] * part + t[0].pull[i, w] * back
            s[0].state.moment[i, w] = s[0].state.moment[i, w] * part + t[0].moment[i, w] * back
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if rope_belongs(t, which, rope_of(t, e, w), w):
            t[0].impulse[e, w] = t[0].impulse[e, w] * part + t[0].before[e, w] * back


@wp.func
def touch_pass(
    s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int, careful: bool
):  # fmt: skip
    """One pass with what is missed at hand, and the new pose; notes of groups whether it was gone in part (`moved`)."""
    leave(s, t, w)
    solve_coupled(s, t, c, w)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            s[0].body.v[b, w] = s[0].body.v[b, w] + s[0].body.dv[b, w]
            s[0].body.w[b, w] = s[0].body.w[b, w] + s[0].body.dw[b, w]
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        t[0].before[e, w] = t[0].impulse[e, w]
        t[0].moves[e, w] = entry_moves(s, t, c, e, w)
        if t[0].column[e, w] == NO_ROOM:
            continue  # it goes on as it did: there is no room to know better, which is told
        t[0].impulse[e, w] = t[0].wanted[e, w] - t[0].A[e, w] * t[0].moves[e, w]
    make_groups(s, t, c, w)
    for which in range(t[0].group.shape[0]):
        t[0].moved[which, w] = 0
        if careful and t[0].group[which, w] == which:
            part = along_pass(s, t, which, w)
            if part < WHOLE:
                shorten(s, t, which, w, part)
                t[0].moved[which, w] = 1
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if not is_coupled(s, t, c, e, w):
            b = c[0].shapes.body[t[0].shape[e, w]]
            if t[0].yields[b, w] == 0:
                push_body(s, b, w, t[0].arm[e, w], t[0].before[e, w] - t[0].impulse[e, w])
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            advance_body(s, b, w)
    advance_ropes(s, w)


@wp.func
def mix_touch(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), since: int, w: int):
    """Let a pass learn from those before it, the one with which that begins being 0 (`rope.mixing`).

    Where elements turn far in a step, rows are those of its start and passes close a tenth of what is open, or less.
    """
    note_pass(s, since, w)
    note(t[0].impulse, t[0].mixed, wp.where(since > 0, (since - 1) % MIXED, -1), w)
    if since == 0:
        return
    gamma = mix_passes(s, since, w)
    mix(t[0].impulse, t[0].mixed, wp.min(since, MIXED), w, gamma)
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            advance_body(s, b, w)
    advance_ropes(s, w)


@wp.func
def is_moved(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), b: int, w: int) -> bool:
    """Whether ropes move a body: it holds one, or is pressed by one."""
    if s[0].bodies.motion[b] != DYNAMIC:
        return False
    if t[0].holds[b] == 1:
        return True
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        if e < t[0].base and wp.length_sq(t[0].impulse[e, w]) != real(0.0):
            if c[0].shapes.body[t[0].shape[e, w]] == b:
                return True
    return False


@wp.func
def stop_at_surfaces(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """One linear pass at velocity level in which all that would pass a surface is held by it: that takes energy whatever happens.

    For a step that passes did not bring together; it is to be begun anew before.
    """
    sigma = t[0].stiff[0]
    begin_groups(s, t, 0, w)
    look(s, t, c, w)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        n = t[0].n[e, w]
        miss = missed_at(s, t, c, e, w)
        t[0].centre[e, w] = vec3()
        t[0].bound[e, w] = real(0.0)
        t[0].miss[e, w] = miss
        t[0].state[e, w] = OPEN
        t[0].A[e, w] = mat33(real(0.0))
        t[0].wanted[e, w] = vec3()
        if wp.dot(n, miss) < real(0.0):
            t[0].state[e, w] = STICKS
            t[0].A[e, w] = wp.identity(n=3, dtype=real) * sigma
            t[0].wanted[e, w] = entry_speed(s, t, c, e, w) * (-sigma)
    for k in range(s[0].ropes.count):
        missed_speeds(s, k, w, real(1.0))
    factor_touch(s, t, c, w)
    touch_pass(s, t, c, w, False)
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        n = t[0].n[e, w]
        t[0].impulse[e, w] = n * wp.max(wp.dot(n, t[0].impulse[e, w]), real(0.0))


@wp.func
def slower(v: vec3, part: real) -> vec3:
    """A part of a velocity; none of one that is not finite."""
    out = v * part
    if wp.isfinite(wp.length_sq(out)):
        return out
    return vec3()


@wp.func
def calm(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int, most: real):
    """Slow ropes, and bodies that they move, down until the kinetic energy (J) is `most`: of passes that did not meet.

    Rows between points that do not move, and surfaces that are not passed, stay so for slower velocities. What is not finite
    stops.
    """
    over = kinetic(s, w) - most
    if over <= real(0.0):
        return
    own = point_energy(s, w)
    for b in range(s[0].bodies.count):
        if is_moved(s, t, c, b, w):
            v = s[0].body.v[b, w]
            omega = s[0].body.w[b, w]
            turns = wp.dot(omega, s[0].body.inertia[b, w] * omega)
            own = own + real(0.5) * (s[0].bodies.mass[b, w] * wp.length_sq(v) + turns)
    part = wp.sqrt(wp.max(real(1.0) - over / own, real(0.0)))
    for b in range(s[0].bodies.count):
        if is_moved(s, t, c, b, w):
            s[0].body.v[b, w] = slower(s[0].body.v[b, w], part)
            s[0].body.w[b, w] = slower(s[0].body.w[b, w], part)
            advance_body(s, b, w)
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w] + 1):
            s[0].work.v[i, w] = slower(s[0].work.v[i, w], part)
            s[0].work.w[i, w] = slower(s[0].work.w[i, w], part)
    advance_ropes(s, w)


@wp.func
def keep_touch(s: wp.array(dtype=RopeStep), t: wp.array(dtype=RopeTouch), c: wp.array(dtype=Collision), w: int):
    """Impulses of this step, from which the next begins, and gaps at its end."""
    for m in range(t[0].live[w]):
        e = t[0].entry[m, w]
        u = entry_speed(s, t, c, e, w)
        t[0].gap[e, w] = t[0].gap[e, w] + wp.dot(t[0].n[e, w], u - t[0].speed[e, w]) * s[0].h[w]
        t[0].speed[e, w] = u
    keep_points(t, w)


@wp.func
def keep_points(t: wp.array(dtype=RopeTouch), w: int):
    """Points of contact, and their impulses, as the next step takes them over."""
    for i in range(t[0].count.shape[0]):
        t[0].kept_count[i, w] = t[0].count[i, w]
        for e in range(MOST * i, MOST * i + t[0].count[i, w]):
            t[0].kept_shape[e, w] = t[0].shape[e, w]
            t[0].kept_state[e, w] = t[0].state[e, w]
            t[0].kept_n[e, w] = t[0].n[e, w]
            t[0].kept_impulse[e, w] = t[0].impulse[e, w]
    t[0].kept_pairs[w] = t[0].pairs[w]
    for p in range(t[0].pairs[w]):
        e = t[0].base + p
        t[0].kept_a[p, w] = t[0].pair_a[p, w]
        t[0].kept_b[p, w] = t[0].pair_b[p, w]
        t[0].kept_state[e, w] = t[0].state[e, w]
        t[0].kept_n[e, w] = t[0].n[e, w]
        t[0].kept_impulse[e, w] = t[0].impulse[e, w]
