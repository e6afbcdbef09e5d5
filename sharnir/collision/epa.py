"""How deep two cores overlap: the polytope of A − B grows until its face nearest to the origin is on the boundary (EPA).

Corners, faces and the rim of what a new corner sees are in `Polytope`. The depth that is returned is a reach along its normal, so
moving apart by it always suffices, even where there is no more room or rounding has torn the polytope; it may then be too deep.
"""

import warp as wp

from sharnir.collision.convex import Simplex, row, support, triangle_weights
from sharnir.collision.data import Collision, Solid, vec4
from sharnir.core.types import real, vec3

EPA_GAIN = wp.constant(real(1.0e-7))  # of the sizes: a corner that is farther by less ends it


@wp.func
def stands_out(s: wp.array(dtype=Collision), n: int, x: vec3, size: real, w: int) -> bool:
    """Whether x makes a simplex of n corners one of n + 1 that is not flat."""
    if n == 0:
        return True
    a = s[0].polytope.corner[0, w]
    if n == 1:
        return wp.length_sq(x - a) > real(1.0e-20) * size * size
    c = wp.cross(x - a, s[0].polytope.corner[1, w] - a)
    if n == 2:
        return wp.length_sq(c) > real(1.0e-24) * size * size * size * size
    return wp.abs(wp.dot(c, s[0].polytope.corner[2, w] - a)) > real(1.0e-18) * size * size * size


@wp.func
def raised(s: wp.array(dtype=Collision), A: Solid, B: Solid, n: int, size: real, w: int) -> int:
    """A simplex in which GJK ended early, made a tetrahedron by corners along directions across it."""
    k = int(0)
    while n < 4 and k < 12:
        d = vec3()
        sign = wp.where(k < 6, real(1.0), real(-1.0))
        if n <= 1:
            d[k % 3] = wp.where(k % 6 < 3, real(1.0), real(-1.0))
        else:
            e = s[0].polytope.corner[1, w] - s[0].polytope.corner[0, w]
            if n == 2:
                d[k % 3] = sign
                d = wp.cross(e, d)
            else:
                d = wp.cross(e, s[0].polytope.corner[2, w] - s[0].polytope.corner[0, w])
                d = d * wp.where(k % 2 == 0, real(1.0), real(-1.0))
        k = k + 1
        if wp.length_sq(d) > real(1.0e-30):
            p = support(s, A, d)
            x = p - support(s, B, -d)
            if stands_out(s, n, x, size, w):
                s[0].polytope.corner[n, w] = x
                s[0].polytope.on_a[n, w] = p
                n = n + 1
    return n


@wp.func
def add_face(s: wp.array(dtype=Collision), at: int, a: int, b: int, c: int, size: real, w: int) -> None:
    """Face (a, b, c), seen from outside in this order; one without area is never the nearest."""
    A = s[0].polytope.corner[a, w]
    n = wp.cross(s[0].polytope.corner[b, w] - A, s[0].polytope.corner[c, w] - A)
    far = wp.length(n)
    h = real(1.0e9)
    if far > real(1.0e-13) * size * size:
        n = n / far
        h = wp.dot(n, A)
    s[0].polytope.face[at, w] = wp.vec3i(a, b, c)
    s[0].polytope.plane[at, w] = vec4(n[0], n[1], n[2], h)


@wp.func
def first_faces(s: wp.array(dtype=Collision), size: real, w: int) -> None:
    """The four of the tetrahedron."""
    a = s[0].polytope.corner[0, w]
    b = s[0].polytope.corner[1, w]
    c = s[0].polytope.corner[2, w]
    right = wp.dot(wp.cross(b - a, c - a), s[0].polytope.corner[3, w] - a) < real(0.0)
    for k in range(4):
        i = wp.where(k == 0, 1, 0)
        j = wp.where(k <= 1, 2, 1)
        l = wp.where(k <= 2, 3, 2)
        # (0 1 2), (0 1 3), (0 2 3), (1 2 3) face outwards in turn one way and the other
        if right == (k % 2 == 1):
            add_face(s, k, i, j, l, size, w)
        else:
            add_face(s, k, i, l, j, size, w)


@wp.func
def rim_edge(s: wp.array(dtype=Collision), rims: int, a: int, b: int, w: int) -> int:
    """An edge of a face that goes: with the same edge of another such face it vanishes, alone it is part of the rim."""
    for q in range(rims):
        e = s[0].polytope.rim[q, w]
        if e[0] == b and e[1] == a:
            s[0].polytope.rim[q, w] = s[0].polytope.rim[rims - 1, w]
            return rims - 1
    s[0].polytope.rim[wp.min(rims, 63), w] = wp.vec2i(a, b)
    return wp.min(rims + 1, 64)


@wp.func
def seen(s: wp.array(dtype=Collision), k: int, x: vec3, slack: real, w: int) -> bool:
    """Whether x is in front of face k by more than `slack`; one without area is seen where a little behind counts too."""
    m = s[0].polytope.plane[k, w]
    if m[3] > real(1.0e8):
        return slack < real(0.0)
    return m[0] * x[0] + m[1] * x[1] + m[2] * x[2] - m[3] > slack


@wp.func
def rim_of(s: wp.array(dtype=Collision), faces: int, x: vec3, slack: real, w: int) -> int:
    """Edges around the faces that x sees, or −1 where these are none, or not in one piece (then their rim is too long)."""
    rims = int(0)
    lost = int(0)
    for k in range(faces):
        if seen(s, k, x, slack, w):
            lost = lost + 1
            t = s[0].polytope.face[k, w]
            for e in range(3):
                rims = rim_edge(s, rims, t[e], t[(e + 1) % 3], w)
    if lost == 0 or rims < 3 or rims - lost > 2 or rims > 63:
        return -1
    return rims


@wp.func
def grown(s: wp.array(dtype=Collision), faces: int, at: int, size: real, w: int) -> int:
    """Corner `at` is new: faces that see it make way for those from their rim to it. Returns how many there are then.

    Where rounding decides about faces that x all but lies in, they would come in several pieces and the polytope would be torn:
    then those go too. −1 where that does not help.
    """
    x = s[0].polytope.corner[at, w]
    slack = real(1.0e-14) * size
    rims = rim_of(s, faces, x, slack, w)
    tries = int(0)
    while rims < 0 and tries < 3:
        slack = wp.where(tries == 0, real(-1.0e-12), slack * real(1000.0) / size) * size
        rims = rim_of(s, faces, x, slack, w)
        tries = tries + 1
    if rims < 0:
        return -1
    k = int(0)
    while k < faces:
        if seen(s, k, x, slack, w):
            faces = faces - 1
            s[0].polytope.face[k, w] = s[0].polytope.face[faces, w]
            s[0].polytope.plane[k, w] = s[0].polytope.plane[faces, w]
        else:
            k = k + 1
    for q in range(rims):
        if faces < s[0].polytope.face_capacity:
            edge = s[0].polytope.rim[q, w]
            add_face(s, faces, edge[0], edge[1], at, size, w)
            faces = faces + 1
    return faces


@wp.func
def epa(s: wp.array(dtype=Collision), A: Solid, B: Solid, start: Simplex, w: int) -> tuple[vec3, real, vec3]:
    """Normal from A to B, depth of the cores, and the point of A's core that is deepest in B."""
    size = wp.length(A.size) + wp.length(B.size) + real(1.0e-9)
    n = start.n
    for i in range(4):
        if i < n:
            s[0].polytope.corner[i, w] = row(start.W, i)
            s[0].polytope.on_a[i, w] = row(start.P, i)
    n = raised(s, A, B, n, size, w)
    if n < 4:  # both are flat and lie in one plane: they touch
        d = B.x - A.x
        if wp.length(d) < real(1.0e-12):
            d = vec3(real(0.0), real(0.0), real(1.0))
        return wp.normalize(d), real(0.0), row(start.P, 0)
    first_faces(s, size, w)
    faces = int(4)
    near = int(0)
    growing = int(1)
    depth = real(1.0e30)  # any direction's reach is at least the depth: the least of all that were looked at is kept
    out = vec3()
    a = vec3()
    while growing == 1:
        near = int(0)
        least = s[0].polytope.plane[0, w][3]
        for k in range(1, faces):
            h = s[0].polytope.plane[k, w][3]
            if h < least:
                least = h
                near = k
        m = s[0].polytope.plane[near, w]
        c = vec3(m[0], m[1], m[2])
        p = support(s, A, c)
        x = p - support(s, B, -c)
        gain = wp.dot(x, c) - m[3]
        if wp.dot(x, c) < depth:
            depth = wp.dot(x, c)
            out = c
            a = p
        full = n >= s[0].polytope.capacity or faces + 32 > s[0].polytope.face_capacity
        # a face with the origin outside of it: rounding has torn the polytope
        if gain < EPA_GAIN * size or full or m[3] < real(-1.0e-9) * size:
            growing = 0
        else:
            s[0].polytope.corner[n, w] = x
            s[0].polytope.on_a[n, w] = p
            faces = grown(s, faces, n, size, w)
            n = n + 1
            if faces < 0:
                growing = 0
                near = 0
    m = s[0].polytope.plane[near, w]
    if m[0] == out[0] and m[1] == out[1] and m[2] == out[2]:
        t = s[0].polytope.face[near, w]
        q = triangle_weights(s[0].polytope.corner[t[0], w], s[0].polytope.corner[t[1], w], s[0].polytope.corner[t[2], w])
        a = s[0].polytope.on_a[t[0], w] * q[0] + s[0].polytope.on_a[t[1], w] * q[1] + s[0].polytope.on_a[t[2], w] * q[2]
    return out, depth, a
