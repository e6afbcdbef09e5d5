"""Points of contact as sweeps see them (theory: contact): patches of points with one normal, prepared, warm-started and swept.

All points of a patch feel one relative twist of its two bodies, in its middle, along n, t₁, t₂:

    u = U + Ω × d        U = v_b + ω_b × c_b − v_a − ω_a × c_a + slide        Ω = ω_b − ω_a        d: the point from the middle

so a visit reads six numbers and its own `Row`, changes them by B p, and the two bodies are written once a patch.
Points of tyres and belts are patches of their own, with more to their speed: `extra_speed`.
"""

import warp as wp

from sharnir.collision.contact_cache import AWAKE, WOKEN
from sharnir.core.spatial import rotated, turned
from sharnir.core.types import mat33, real, vec2, vec3, vec6
from sharnir.engine.sequential.begin import kick_body
from sharnir.engine.sequential.data import VELOCITIES, Patch, Row, Step
from sharnir.engine.sleep import at_rest_together
from sharnir.laws.casts import CAST, open_casts
from sharnir.laws.contact import across, approach, is_spent, meet_scaled, softness, tangent_inverse, tread
from sharnir.laws.rows import Twists

ON_TYRE, ON_BELT, ON_WHEEL, OWN_A = (wp.constant(1 << k) for k in range(4))  # bits of `Contacts.special`
SLIDING_SPEED = wp.constant(real(1.0e-3))  # m/s: a point that moves faster slides, and has the dynamic coefficient


@wp.func
def in_axes(n: vec3, t1: vec3, t2: vec3, v: vec3) -> vec3:
    """A vector along n, t₁, t₂."""
    return vec3(wp.dot(n, v), wp.dot(t1, v), wp.dot(t2, v))


@wp.func
def from_axes(n: vec3, t1: vec3, t2: vec3, p: vec3) -> vec3:
    return n * p[0] + t1 * p[1] + t2 * p[2]


@wp.func
def unscaled(p: vec3, mu: vec2) -> vec3:
    """An impulse along n, t₁, t₂ from (p_n, D⁻¹p_t)."""
    return vec3(p[0], p[1] * mu[0], p[2] * mu[1])


# ---- tyres and belts --------------------------------------------------------------------------------------------------------


@wp.func
def belt_speed_of_point(s: wp.array(dtype=Step), spin: wp.array2d(dtype=vec3), i: int, w: int) -> vec3:
    """What a belt adds to the speed of its point, m/s, along n, t₁, t₂."""
    g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
    turn = spin[s[0].contacts.belt_body[i, w], w] - spin[s[0].contacts.belt_frame[i, w], w]
    return in_axes(g.n, g.t1, g.t2, s[0].contacts.belt_pull[i, w]) * wp.dot(s[0].contacts.belt_axis[i, w], turn)


@wp.func
def pull_belt(s: wp.array(dtype=Step), spin: wp.array2d(dtype=vec3), i: int, w: int, P: vec3) -> None:
    """What an impulse at a point of a belt does beside the point: it turns the belt's body, and that in which it turns."""
    l = s[0].contacts.belt_axis[i, w] * wp.dot(s[0].contacts.belt_pull[i, w], P)
    body = s[0].contacts.belt_body[i, w]
    frame = s[0].contacts.belt_frame[i, w]
    spin[body, w] = spin[body, w] + s[0].work.inv_inertia[body, w] * l
    spin[frame, w] = spin[frame, w] - s[0].work.inv_inertia[frame, w] * l


@wp.func
def belt_response(s: wp.array(dtype=Step), g: Patch, i: int, middle: vec3, w: int) -> vec6:
    """What a belt adds to K: q qᵀ a·(J_body + J_frame) a, and where the point is on that frame, q gᵀ + g qᵀ, g = r × J a."""
    a = s[0].contacts.belt_axis[i, w]
    q = in_axes(g.n, g.t1, g.t2, s[0].contacts.belt_pull[i, w])
    frame = s[0].contacts.belt_frame[i, w]
    Ja = s[0].work.inv_inertia[frame, w] * a
    k = wp.dot(a, Ja + s[0].work.inv_inertia[s[0].contacts.belt_body[i, w], w] * a)
    arm = vec3(real(0.0))
    if frame == g.b:
        arm = wp.cross(middle - s[0].state.position[g.b, w], Ja)
    elif frame == g.a:
        arm = wp.cross(Ja, middle - s[0].state.position[g.a, w])
    arm = in_axes(g.n, g.t1, g.t2, arm)
    A = wp.outer(q, q) * k + wp.outer(q, arm) + wp.outer(arm, q)
    return vec6(A[0, 0], A[0, 1], A[0, 2], A[1, 1], A[1, 2], A[2, 2])


@wp.func
def extra_speed(s: wp.array(dtype=Step), spin: wp.array2d(dtype=vec3), i: int, w: int) -> vec3:
    """What a tyre and a belt add to the speed of their point, m/s, along n, t₁, t₂."""
    out = vec3(real(0.0))
    if s[0].contacts.special[i, w] & ON_BELT != 0:
        out = belt_speed_of_point(s, spin, i, w)
    if s[0].contacts.special[i, w] & ON_TYRE != 0:
        p = unscaled(s[0].touch.p[i, w], s[0].touch.row[i, w].mu)
        for k in range(2):
            out[k + 1] = out[k + 1] + s[0].touch.yields[i, w][k] * p[k + 1] + s[0].touch.lead[i, w][k]
    return out


# ---- prepare ----------------------------------------------------------------------------------------------------------------


@wp.func
def place_of(s: wp.array(dtype=Step), i: int, b: int, w: int, reading: int) -> vec3:
    """Where a point is, m; for reading, the bodies have moved since it was found."""
    if reading == 1:
        q = s[0].state.rotation[b, w]
        if s[0].contacts.special[i, w] & ON_WHEEL != 0:  # it has rolled on over its point
            q = turned(q, s[0].state.spin[b, w] * -s[0].settings.dt[0])
        return s[0].state.position[b, w] + wp.quat_rotate(q, s[0].contacts.local[i, w])
    return s[0].contacts.point[i, w]


@wp.func
def follows(s: wp.array(dtype=Step), i: int, j: int, w: int) -> bool:
    """Whether point j is of the patch of point i."""
    same = s[0].contacts.body_a[i, w] == s[0].contacts.body_a[j, w] and s[0].contacts.body_b[i, w] == s[0].contacts.body_b[j, w]
    same = same and s[0].contacts.normal[i, w] == s[0].contacts.normal[j, w]
    return (
        same
        and s[0].contacts.special[i, w] & (ON_TYRE | ON_BELT) == 0
        and s[0].contacts.special[j, w] & (ON_TYRE | ON_BELT) == 0
        and s[0].contacts.along[i, w] == s[0].contacts.along[j, w]
        and s[0].contacts.surface[i, w] == s[0].contacts.surface[j, w]
    )


@wp.func
def arm_response(inv_mass: real, J: mat33, c: vec3) -> tuple[mat33, mat33]:
    """What a force and a torque in the middle do to a body's velocity there: ll and la of the symmetric 6 × 6; aa is J."""
    C = wp.skew(c)
    la = -C * J
    ll = la * C
    for k in range(3):
        ll[k, k] = ll[k, k] + inv_mass
    return ll, la


@wp.func
def is_known(s: wp.array(dtype=Step), g: Patch, first: int, size: int, w: int) -> bool:
    """Whether a patch of the last step is the one of these points, between bodies that stood still since."""
    if s[0].touch.known[w] == 0 or g.first != first or g.size != size:
        return False
    if g.a != s[0].contacts.body_a[first, w] or g.b != s[0].contacts.body_b[first, w]:
        return False
    same = g.n == s[0].contacts.normal[first, w] and g.point == s[0].contacts.point[first, w]
    same = same and g.x_a == s[0].contacts.anchor_position[g.a, w] and g.x_b == s[0].contacts.anchor_position[g.b, w]
    return same and g.q_a == s[0].contacts.anchor_rotation[g.a, w] and g.q_b == s[0].contacts.anchor_rotation[g.b, w]


@wp.func
def last_of_patch(s: wp.array(dtype=Step), first: int, w: int) -> int:
    """The point after the last of the patch that begins with a point."""
    count = s[0].contacts.count[w]
    end = int(first + 1)
    while end < count and follows(s, first, wp.min(end, count - 1), w):
        end = end + 1
    return end


@wp.func
def make_patch(s: wp.array(dtype=Step), k: int, first: int, end: int, w: int, reading: int) -> None:
    """Patch k, of points from `first` on, and responses of its rows: with both bodies at their anchors, unless for reading."""
    g = Patch()
    a = s[0].contacts.body_a[first, w]
    b = s[0].contacts.body_b[first, w]
    n = s[0].contacts.normal[first, w]
    t1 = s[0].contacts.along[first, w]
    if wp.length_sq(t1) == real(0.0):
        t1 = across(n)
    t2 = wp.cross(n, t1)
    g.a = a
    g.b = b
    g.first = first
    g.size = end - first
    g.n = n
    g.t1 = t1
    g.t2 = t2
    g.special = s[0].contacts.special[first, w] & (ON_TYRE | ON_BELT)
    middle = vec3(real(0.0))
    for i in range(first, end):
        middle = middle + place_of(s, i, b, w, reading)
    middle = middle / real(end - first)
    g.middle = middle
    g.point = s[0].contacts.point[first, w]
    g.x_a = s[0].contacts.anchor_position[a, w]
    g.x_b = s[0].contacts.anchor_position[b, w]
    g.q_a = s[0].contacts.anchor_rotation[a, w]
    g.q_b = s[0].contacts.anchor_rotation[b, w]
    s[0].touch.patch[k, w] = g
    x_a = g.x_a
    x_b = g.x_b
    J_b = rotated(wp.quat_to_matrix(g.q_b), s[0].bodies.inv_inertia[b, w])
    if reading == 1:
        x_a = s[0].state.position[a, w]
        x_b = s[0].state.position[b, w]
        J_b = s[0].work.inv_inertia[b, w]
    E = wp.matrix_from_rows(n, t1, t2)
    aa = E * J_b * wp.transpose(E)
    ll, la = arm_response(s[0].bodies.inv_mass[b, w], aa, E * (middle - x_b))
    m_a = s[0].bodies.inv_mass[a, w]
    if m_a > real(0.0):
        J_a = rotated(wp.quat_to_matrix(g.q_a), s[0].bodies.inv_inertia[a, w])
        if reading == 1:
            J_a = s[0].work.inv_inertia[a, w]
        J_a = E * J_a * wp.transpose(E)
        ll_a, la_a = arm_response(m_a, J_a, E * (middle - x_a))
        ll = ll_a + ll
        la = la_a + la
        aa = J_a + aa
    for i in range(first, end):
        row = Row()
        row.K = vec6(ll[0, 0], ll[0, 1], ll[0, 2], ll[1, 1], ll[1, 2], ll[2, 2])
        if end - first > 1:
            row.d = E * (place_of(s, i, b, w, reading) - middle)
            D = wp.skew(row.d)
            row.B_l = ll + la * D
            row.B_a = wp.transpose(la) + aa * D
            A = row.B_l - D * row.B_a
            row.K = vec6(A[0, 0], A[0, 1], A[0, 2], A[1, 1], A[1, 2], A[2, 2])
        if g.special & ON_BELT != 0:
            row.K = row.K + belt_response(s, g, first, middle, w)
        row.mu = vec2(real(-1.0), real(-1.0))
        s[0].touch.patch_of[i, w] = k
        s[0].touch.row[i, w] = row


@wp.func
def prepare_patch(s: wp.array(dtype=Step), k: int, first: int, w: int, reading: int) -> int:
    """Patch k, whose first point is given, and its rows; returns the point after its last."""
    end = last_of_patch(s, first, w)
    if reading == 1 or not is_known(s, s[0].touch.patch[k, w], first, end - first, w):
        make_patch(s, k, first, end, w, reading)
    g = s[0].touch.patch[k, w]
    rests = s[0].work.inv_mass[g.a, w] + s[0].work.inv_mass[g.b, w] == real(0.0)
    s[0].touch.patch[k, w].rests = int(rests)
    if rests:
        for i in range(first, end):
            s[0].touch.before[i, w] = real(0.0)
        return end
    c_a = g.middle - s[0].state.position[g.a, w]
    c_b = g.middle - s[0].state.position[g.b, w]
    s[0].touch.patch[k, w].c_a = c_a
    s[0].touch.patch[k, w].c_b = c_b
    slide = in_axes(g.n, g.t1, g.t2, s[0].contacts.surface[first, w])
    s[0].touch.patch[k, w].slide = slide
    U = s[0].state.velocity[g.b, w] + wp.cross(s[0].state.spin[g.b, w], c_b)
    U = U - s[0].state.velocity[g.a, w] - wp.cross(s[0].state.spin[g.a, w], c_a)
    U = in_axes(g.n, g.t1, g.t2, U) + slide
    if g.special & ON_BELT != 0:
        U = U + belt_speed_of_point(s, s[0].state.spin, first, w)
    O = in_axes(g.n, g.t1, g.t2, s[0].state.spin[g.b, w] - s[0].state.spin[g.a, w])
    for i in range(first, end):
        prepare_row(s, i, w, g.n, g.t1, g.t2, U + wp.cross(O, s[0].touch.row[i, w].d), reading)
    return end


@wp.func
def prepare_row(s: wp.array(dtype=Step), i: int, w: int, n: vec3, t1: vec3, t2: vec3, before: vec3, reading: int) -> None:
    """The law of a point; the impulse of the last step on the axes of today. `before`: its speed before forces acted, m/s."""
    h = s[0].settings.dt[0]
    mu = s[0].contacts.friction[i, w]
    P = in_axes(n, t1, t2, s[0].contacts.impulse[i, w]) * (s[0].settings.kick[w] / h)
    slides = before[1] * before[1] + before[2] * before[2] > SLIDING_SPEED * SLIDING_SPEED
    if s[0].contacts.special[i, w] & ON_TYRE != 0:  # a tread that holds slips, too
        slides = is_spent(P, mu)
    if mu[0] > real(0.0) and slides:
        mu = mu * (s[0].contacts.dynamic[i, w] / mu[0])
    stiffness = s[0].contacts.stiffness[i, w]
    damping = s[0].contacts.damping[i, w]
    bias = approach(s[0].contacts.gap[i, w], stiffness, damping, h)
    soft = softness(stiffness, damping, h)
    if reading == 1 and stiffness > real(0.0):  # its force does not change on the way to the pose
        soft = real(1.0e9) * s[0].touch.row[i, w].K[0]
        bias = -soft * P[0]
    same = mu == s[0].touch.row[i, w].mu and soft == s[0].touch.row[i, w].soft
    if not same:
        s[0].touch.row[i, w].mu = mu
        s[0].touch.row[i, w].G = tangent_inverse(s[0].touch.row[i, w].K, mu)
        s[0].touch.row[i, w].soft = soft
        s[0].touch.row[i, w].inverse = real(1.0) / (s[0].touch.row[i, w].K[0] + soft)
    if s[0].contacts.special[i, w] & ON_TYRE != 0:
        prepare_tyre(s, i, w, P, mu, reading)
    s[0].touch.before[i, w] = before[0] * real(1 - reading)
    if P[0] <= real(0.0):
        P = vec3(real(0.0))
        if reading == 1:  # what does not push at the pose is not met on the way to it
            bias = real(1.0e30)
    elif s[0].touch.row[i, w].G[3] == real(0.0):
        P = vec3(P[0], real(0.0), real(0.0))
    else:
        P = vec3(P[0], P[1] / mu[0], P[2] / mu[1])
    s[0].touch.row[i, w].bias = bias
    s[0].touch.p[i, w] = P
    s[0].touch.pseudo[i, w] = real(0.0)
    if s[0].contacts.rolling[i, w] > real(0.0) or s[0].contacts.torsion[i, w] > real(0.0):
        s[0].touch.turns[w] = 1
        s[0].touch.roll[i, w] = vec3(real(0.0))


@wp.func
def prepare_tyre(s: wp.array(dtype=Step), i: int, w: int, P: vec3, mu: vec2, reading: int) -> None:
    """How the tread of a point yields. `P`: impulse of the last step, over this one's kick. What is read does not roll on."""
    h = s[0].settings.dt[0]
    K = s[0].touch.row[i, w].K
    kick = s[0].settings.kick[w]
    g = s[0].touch.patch[s[0].touch.patch_of[i, w], w]
    v = s[0].state.velocity[g.b, w] - s[0].state.velocity[g.a, w]
    cast = s[0].contacts.special[i, w] & CAST != 0
    if cast or s[0].contacts.special[i, w] & OWN_A != 0:
        v = v + wp.cross(s[0].state.spin[g.b, w], g.c_b)
    if cast or s[0].contacts.special[i, w] & OWN_A == 0:
        v = v - wp.cross(s[0].state.spin[g.a, w], g.c_a)
    for k in range(2):
        yields = real(0.0)
        lead = real(0.0)
        if s[0].contacts.relaxation[i, w] > real(0.0):
            fade = wp.length(v - g.n * wp.dot(g.n, v)) / s[0].contacts.relaxation[i, w]
            yields, lead = tread(s[0].contacts.shear[i, w][k], fade, P[k + 1], h, kick)
        if cast and k == 1:
            belt = s[0].contacts.special[i, w] >> 8
            pull = wp.dot(g.t2, s[0].contacts.belt_pull[i, w])
            yields = yields + pull * pull * s[0].casts.mobility[belt, w]
            lead = lead + pull * s[0].casts.free[belt, w]
        if reading == 1:
            yields = real(1.0e9) * (K[3] + K[5])
            lead = -yields * P[k + 1]
        s[0].touch.yields[i, w][k] = yields
        s[0].touch.lead[i, w][k] = lead
        K[3 + 2 * k] = K[3 + 2 * k] + yields
    s[0].touch.row[i, w].G = tangent_inverse(K, mu)
    s[0].touch.turns[w] = 1


@wp.kernel(module="sharnir.contact")
def prepare_points(s: wp.array(dtype=Step), first: int, reading: int) -> None:
    """The rows of all points that `collide` found; what is read keeps those of the last step."""
    w = first + wp.tid()
    if s[0].solves[VELOCITIES].done[w] >= 0:
        return
    if at_rest_together(s[0].rest, w):
        return
    if reading == 0 and s[0].contacts.resting[w] != 0:
        for b in range(s[0].bodies.count):
            if s[0].contacts.asleep[b, w] == WOKEN:
                s[0].contacts.asleep[b, w] = AWAKE
                kick_body(s, b, w, 0)
    s[0].touch.turns[w] = 0
    if reading == 0 and s[0].casts.count > 0:
        open_casts(s, w, s[0].settings.kick[w])
    k = int(0)
    at = int(0)
    while at < s[0].contacts.count[w]:
        at = prepare_patch(s, k, at, w, reading)
        k = k + 1
    s[0].touch.patches[w] = k
    s[0].touch.known[w] = 1 - reading


# ---- solve ------------------------------------------------------------------------------------------------------------------


@wp.func
def push_patch(s: wp.array(dtype=Step), twist: Twists, k: int, w: int, F: vec3, T: vec3) -> None:
    """An impulse and a moment in the middle of a patch, along its axes, on b, and against it on a."""
    g = s[0].touch.patch[k, w]
    P = from_axes(g.n, g.t1, g.t2, F)
    L = from_axes(g.n, g.t1, g.t2, T)
    ma = s[0].work.inv_mass[g.a, w]
    mb = s[0].work.inv_mass[g.b, w]
    if ma > real(0.0):
        twist.linear[g.a, w] = twist.linear[g.a, w] - P * ma
        twist.angular[g.a, w] = twist.angular[g.a, w] - s[0].work.inv_inertia[g.a, w] * (L + wp.cross(g.c_a, P))
    twist.linear[g.b, w] = twist.linear[g.b, w] + P * mb
    twist.angular[g.b, w] = twist.angular[g.b, w] + s[0].work.inv_inertia[g.b, w] * (L + wp.cross(g.c_b, P))


@wp.func
def warm_points(s: wp.array(dtype=Step), w: int) -> None:
    """Impulses of the last step, put back on the bodies."""
    for k in range(s[0].touch.patches[w]):
        F = vec3(real(0.0))
        T = vec3(real(0.0))
        if s[0].touch.patch[k, w].rests == 1:
            continue
        first = s[0].touch.patch[k, w].first
        for i in range(first, first + s[0].touch.patch[k, w].size):
            p = unscaled(s[0].touch.p[i, w], s[0].touch.row[i, w].mu)
            F = F + p
            T = T + wp.cross(s[0].touch.row[i, w].d, p)
        push_patch(s, s[0].solves[VELOCITIES].twist, k, w, F, T)
        if s[0].touch.patch[k, w].special & ON_BELT != 0:
            g = s[0].touch.patch[k, w]
            pull_belt(s, s[0].solves[VELOCITIES].twist.angular, first, w, from_axes(g.n, g.t1, g.t2, F))


@wp.func
def sweep_patches(s: wp.array(dtype=Step), w: int, backwards: int) -> real:
    """Every patch once, forth or back; returns the largest change of a relative velocity, m/s."""
    twist = s[0].solves[VELOCITIES].twist
    patches = s[0].touch.patches[w]
    most = real(0.0)
    for order in range(patches):
        k = order
        if backwards == 1:
            k = patches - 1 - order
        if s[0].touch.patch[k, w].rests == 1:
            continue
        g = s[0].touch.patch[k, w]
        a = g.a
        b = g.b
        size = g.size
        va = twist.linear[a, w]
        wa = twist.angular[a, w]
        vb = twist.linear[b, w]
        wb = twist.angular[b, w]
        u_c = vb + wp.cross(wb, g.c_b) - va - wp.cross(wa, g.c_a)
        if size == 1:  # open, and to stay so
            if s[0].touch.p[g.first, w][0] == real(0.0):
                if wp.dot(g.n, u_c) + s[0].touch.row[g.first, w].bias >= real(0.0):
                    continue
        U = in_axes(g.n, g.t1, g.t2, u_c) + g.slide
        if g.special != 0:
            U = U + extra_speed(s, twist.angular, g.first, w)
        O = vec3(real(0.0))
        F = vec3(real(0.0))
        T = vec3(real(0.0))
        if size > 1:
            O = in_axes(g.n, g.t1, g.t2, wb - wa)
        for v in range(size):
            i = g.first + v
            if backwards == 1:
                i = g.first + size - 1 - v
            row = s[0].touch.row[i, w]
            p = s[0].touch.p[i, w]
            u = U + wp.cross(O, row.d)
            new = meet_scaled(p, u, row.K, row.G, row.mu, row.bias, row.soft, row.inverse)
            d = unscaled(new - p, row.mu)
            s[0].touch.p[i, w] = new
            most = wp.max(most, wp.max(wp.abs(d[0]) * row.K[0], wp.max(wp.abs(d[1]) * row.K[3], wp.abs(d[2]) * row.K[5])))
            F = F + d
            if size > 1:
                T = T + wp.cross(row.d, d)
                U = U + row.B_l * d
                O = O + row.B_a * d
        P = from_axes(g.n, g.t1, g.t2, F)
        L = vec3(real(0.0))
        if size > 1:
            L = from_axes(g.n, g.t1, g.t2, T)
        ma = s[0].work.inv_mass[a, w]
        if ma > real(0.0):
            twist.linear[a, w] = va - P * ma
            twist.angular[a, w] = wa - s[0].work.inv_inertia[a, w] * (L + wp.cross(g.c_a, P))
        twist.linear[b, w] = vb + P * s[0].work.inv_mass[b, w]
        twist.angular[b, w] = wb + s[0].work.inv_inertia[b, w] * (L + wp.cross(g.c_b, P))
        if g.special & ON_BELT != 0:
            pull_belt(s, twist.angular, g.first, w, P)
    return most
