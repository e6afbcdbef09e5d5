"""How deep two cores overlap: the polytope of A − B grows until its face nearest to the origin is on the boundary (EPA).

Corners, faces and the rim of what a new corner sees are in `Polytope`; where it is out of room, the depth so far is taken: it is
never too shallow by more than what the last corner gained.
"""

import warp as wp

from sharnir.collision.convex import Simplex, row, support, triangle_weights
from sharnir.collision.data import Collision, Solid, vec4
from sharnir.types import real, vec3

GAIN = wp.constant(real(1.0e-7))  # of the sizes: a corner that is farther by less ends it


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
def add_face(s: wp.array(dtype=Collision), at: int, a: int, b: int, c: int, w: int):
    """Face (a, b, c), seen from outside in this order; one without area is never the nearest."""
    A = s[0].polytope.corner[a, w]
    n = wp.cross(s[0].polytope.corner[b, w] - A, s[0].polytope.corner[c, w] - A)
    far = wp.length(n)
    h = real(1.0e9)
    if far > real(1.0e-30):
        n = n / far
        h = wp.dot(n, A)
    s[0].polytope.face[at, w] = wp.vec3i(a, b, c)
    s[0].polytope.plane[at, w] = vec4(n[0], n[1], n[2], h)


@wp.func
def first_faces(s: wp.array(dtype=Collision), w: int):
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
            add_face(s, k, i, j, l, w)
        else:
            add_face(s, k, i, l, j, w)


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
def grown(s: wp.array(dtype=Collision), faces: int, at: int, size: real, w: int) -> int:
    """Corner `at` is new: faces that see it make way for those from their rim to it. Returns how many there are then."""
    x = s[0].polytope.corner[at, w]
    rims = int(0)
    k = int(0)
    while k < faces:
        m = s[0].polytope.plane[k, w]
        if m[0] * x[0] + m[1] * x[1] + m[2] * x[2] - m[3] > real(1.0e-14) * size:
            t = s[0].polytope.face[k, w]
            for e in range(3):
                rims = rim_edge(s, rims, t[e], t[(e + 1) % 3], w)
            faces = faces - 1
            s[0].polytope.face[k, w] = s[0].polytope.face[faces, w]
            s[0].polytope.plane[k, w] = s[0].polytope.plane[faces, w]
        else:
            k = k + 1
    for q in range(rims):
        if faces < s[0].polytope.face_capacity:
            edge = s[0].polytope.rim[q, w]
            add_face(s, faces, edge[0], edge[1], at, w)
            faces = faces + 1
    return faces


@wp.func
def epa(s: wp.array(dtype=Collision), A: Solid, B: Solid, start: Simplex, w: int):
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
    first_faces(s, w)
    faces = int(4)
    near = int(0)
    growing = int(1)
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
        if wp.dot(x, c) - m[3] < GAIN * size or n >= s[0].polytope.capacity or faces + 32 > s[0].polytope.face_capacity:
            growing = 0
        else:
            s[0].polytope.corner[n, w] = x
            s[0].polytope.on_a[n, w] = p
            faces = grown(s, faces, n, size, w)
            n = n + 1
    m = s[0].polytope.plane[near, w]
    t = s[0].polytope.face[near, w]
    c = vec3(m[0], m[1], m[2])
    q = triangle_weights(s[0].polytope.corner[t[0], w], s[0].polytope.corner[t[1], w], s[0].polytope.corner[t[2], w])
    a = s[0].polytope.on_a[t[0], w] * q[0] + s[0].polytope.on_a[t[1], w] * q[1] + s[0].polytope.on_a[t[2], w] * q[2]
    return c, m[3], a
