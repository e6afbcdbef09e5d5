"""Free axes of a link in a pass: what acts on them, their factors, and what yields where they are held."""

import warp as wp

from sharnir.core.types import mat33, mat66, real, vec3, vec6
from sharnir.engine.articulated.data import natural
from sharnir.engine.articulated.matrices import small_inverse
from sharnir.engine.direct.balls import SLIDES, triple
from sharnir.engine.direct.data import Direct
from sharnir.laws.linear import SLOWEST

# A held axis yields so much, of what it would if it were free, to impulses of rows beside the tree: a loop that locks the axis,
# too, then has a response to be solved for, and the two share the load.
YIELDS = wp.constant(real(1.0e-4))


@wp.func
def user_moment(s: wp.array(dtype=Direct), i: int, w: int) -> vec3:
    """The moment impulse that a user commands in a ball joint."""
    if s[0].pushed[w] == 1:
        return s[0].ball_push[i, w]
    return vec3(real(0.0))


@wp.func
def joint_moment(s: wp.array(dtype=Direct), i: int, w: int, kind: int) -> vec3:
    """The moment impulse that acts on a link in its ball joint: a user's, and sliding friction as linear about its solution."""
    m = user_moment(s, i, w)
    if kind == SLIDES:
        v0 = natural(s[0].tree.row[i].v_start)
        # linear about a mean speed ū: −slide (n + (E − n nᵀ) δū/|ū|)
        slide = s[0].laws.slide[v0, w]
        mean = triple(s[0].linear.push, v0, w)
        size = wp.max(wp.length(mean), SLOWEST / s[0].settings.dt[0])
        n = mean / size
        off = (s[0].ball_speed[i, w] + triple(s[0].laws.start, v0, w)) * real(0.5)
        m = m - (n + (off - n * wp.dot(n, off)) / size) * slide
    return m


@wp.func
def ball_resistance(s: wp.array(dtype=Direct), i: int, w: int) -> mat33:
    """½ slide/|ū| (E − n nᵀ): the slope of sliding friction in the speed at the end of the step."""
    v0 = natural(s[0].tree.row[i].v_start)
    mean = triple(s[0].linear.push, v0, w)
    size = wp.max(wp.length(mean), SLOWEST / s[0].settings.dt[0])
    n = mean / size
    return (wp.identity(n=3, dtype=real) - wp.outer(n, n)) * (real(0.5) * s[0].laws.slide[v0, w] / size)


@wp.func
def axis_law(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> real:
    """The impulse of the laws of axis x of a link, linear about their solution, at the speeds of now."""
    v0 = natural(s[0].tree.row[i].v_start)
    if s[0].tree.row[i].v_size == 1:
        return -s[0].linear.resist[v0, w] * s[0].speed[v0, w] - s[0].linear.push[v0, w]
    p = -s[0].linear.push[v0 + x, w]
    for y in range(s[0].tree.row[i].v_size):
        p = p - s[0].linear.coupled[i, w][x, y] * s[0].speed[v0 + y, w]
    return p


@wp.func(inline=False)
def factor_several(s: wp.array(dtype=Direct), i: int, w: int, acts: int, A: mat33, B: mat33, C: mat33, D: mat33):
    """Responses of a link with several axes (`factor_axes`), and what is left of M* in `full`.

    Apart, so that a hinge makes no room for matrices of 6 × 6.
    """
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    all = mat66()
    for x in range(n):
        for y in range(n):
            all[x, y] = wp.dot(s[0].left_l[v0 + x, w], s[0].end_l[v0 + y, w]) + wp.dot(
                s[0].left_a[v0 + x, w], s[0].end_a[v0 + y, w]
            )
    V = small_inverse(all, n)
    if acts == 1:
        s[0].work.inverse[i, w] = V
        V = small_inverse(all + s[0].linear.coupled[i, w], n)
        yields = real(1.0)
        if s[0].closures.count > 0:
            yields = real(1.0) - YIELDS
        for k in range(s[0].linear.locks[i, w]):
            V = locked(V, s[0].linear.row[v0 + k, w], yields)
    s[0].work.response[i, w] = V
    for x in range(n):
        kl = vec3(real(0.0))
        ka = vec3(real(0.0))
        for y in range(n):
            kl = kl + s[0].left_l[v0 + y, w] * V[x, y]
            ka = ka + s[0].left_a[v0 + y, w] * V[x, y]
        hl = s[0].work.H_l[v0 + x, w]
        ha = s[0].work.H_a[v0 + x, w]
        A = A - wp.outer(hl, kl)
        B = B - wp.outer(hl, ka)
        C = C - wp.outer(ha, kl)
        D = D - wp.outer(ha, ka)
    s[0].full_A[i, w] = A
    s[0].full_B[i, w] = B
    s[0].full_C[i, w] = C
    s[0].full_D[i, w] = D


@wp.func(inline=True)
def factor_axes(
    s: wp.array(dtype=Direct), i: int, w: int, A: mat33, B: mat33, C: mat33, D: mat33, f: vec3, m: vec3, left: bool
):  # fmt: skip
    """M* S₁, S̄ᵀ M* and the response of a link's axes; returns what is left of M* when they yield, if that is wanted (`left`).

    The axes turn with the link: what the joint carries, f and m at its point, changes along them by ½h δφ·(n × m + d × f).
    """
    h = real(0.25) * s[0].drift[w]
    n = s[0].tree.row[i].v_size
    v0 = natural(s[0].tree.row[i].v_start)
    acts = int(0)
    if s[0].acting == 1:
        acts = s[0].linear.acts[i, w]
    for x in range(n):
        sl = s[0].end_l[v0 + x, w]
        sa = s[0].end_a[v0 + x, w]
        ml = s[0].work.S_l[v0 + x, w]
        ma = s[0].work.S_a[v0 + x, w]
        s[0].work.H_l[v0 + x, w] = A * sl + B * sa
        s[0].work.H_a[v0 + x, w] = C * sl + D * sa
        s[0].left_l[v0 + x, w] = ml * A + ma * C
        turns = wp.cross(sa, m)
        if wp.length_sq(sa) == real(0.0):
            turns = wp.cross(sl, f)
        s[0].left_a[v0 + x, w] = ml * B + ma * D + turns * h
    if n == 1:
        hl = s[0].work.H_l[v0, w]
        ha = s[0].work.H_a[v0, w]
        U = wp.dot(s[0].left_l[v0, w], s[0].end_l[v0, w]) + wp.dot(s[0].left_a[v0, w], s[0].end_a[v0, w])
        Y = real(1.0) / U
        if acts == 1:
            s[0].work.U[v0, w] = U
            Y = real(1.0) / (U + s[0].linear.resist[v0, w])
            if s[0].linear.locks[i, w] == 1:
                Y = real(0.0)
                if s[0].closures.count > 0:
                    Y = YIELDS / U
        s[0].work.Y[v0, w] = Y
        if not left:
            return A, B, C, D
        kl = s[0].left_l[v0, w] * Y
        ka = s[0].left_a[v0, w] * Y
        return A - wp.outer(hl, kl), B - wp.outer(hl, ka), C - wp.outer(ha, kl), D - wp.outer(ha, ka)
    if n > 1:
        factor_several(s, i, w, acts, A, B, C, D)
        return s[0].full_A[i, w], s[0].full_B[i, w], s[0].full_C[i, w], s[0].full_D[i, w]
    return A, B, C, D


@wp.func
def locked(V: mat66, g: vec6, share: real) -> mat66:
    """A response without a share of that in the direction g."""
    z = V * g
    y = g * V
    d = wp.dot(g, z)
    scale = wp.trace(V) * wp.dot(g, g)
    if d > real(1.0e-12) * scale:
        V = V - wp.outer(z, y) * (share / d)
    return V


@wp.func
def held_axis(s: wp.array(dtype=Direct), i: int, w: int, y: real) -> real:
    """The answer of a link's one axis to all but rows beside the tree: none if it is held."""
    if s[0].linear.acts[i, w] == 1 and s[0].linear.locks[i, w] == 1:
        return real(0.0)
    return y


@wp.func
def held_axes(s: wp.array(dtype=Direct), i: int, w: int, y: vec6) -> vec6:
    """The same of several axes: nothing along the directions that are held."""
    if s[0].linear.acts[i, w] == 1:
        V = s[0].work.response[i, w]
        for k in range(s[0].linear.locks[i, w]):
            g = s[0].linear.row[natural(s[0].tree.row[i].v_start) + k, w]
            z = V * g
            d = wp.dot(g, z)
            if d > real(0.0):
                y = y - z * (wp.dot(g, y) / d)
    return y
