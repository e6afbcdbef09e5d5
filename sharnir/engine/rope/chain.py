"""The elimination along a rope: from its last end to its first, exact, O(n), nothing larger than 3 × 3.

Unknowns of a pass are the changes of the velocities v_j of points and the turns φ_j of elements (`equations`). What hangs on
point j needs there, from the side of the first end, an impulse and a moment f = A v_j + B φ_j + a, g = C v_j + D φ_j + b, an
articulated inertia. Eliminating φ_j through its interface and shifting to point j − 1 gives the same for j − 1, and in the end
the relation p = Z V + p₀ of the first end, V the change of the twist (at the end's point) of what holds it: a body's M and Q take
Z and −p₀ like those of any link of a tree, and once V is known the rope follows from it (`follow`).

A last end that is held by something which does not yield has an unknown impulse μ there, which takes X μ from f and Y μ from g:
v_n = P v_j + Q φ_j + G μ + g. μ is eliminated at the first end.

A slack element holds its points in line with its axis d, not at its length: v_{j+1} has an unknown σ d more, and the impulse
along it is a given ρ (`slack_along`). So it is of one that a winch winds: ρ is then what turns the drum (`ports`), or α has the
drum's inertia at its rim in it.

Where `exact` is 0, levers are taken at the mean and matrices are symmetric (`ports` takes transposes of them), else as they are.
"""

import warp as wp

from sharnir.core.kernel_cache import emitted
from sharnir.core.types import mat33, real, vec3
from sharnir.engine.rope.code import SLACK as SHARE
from sharnir.engine.rope.code import inward_code, miss_code, outward_code, pose_code
from sharnir.engine.rope.data import BODY, RopeStep
from sharnir.engine.rope.terms import seen_from

SLACK = wp.constant(real(SHARE))


@wp.func_native(emitted("rope_pose", pose_code))
def pose(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Where velocities lead the points and elements of a rope."""


@wp.func_native(emitted("rope_miss", miss_code))
def miss(s: wp.array(dtype=RopeStep), k: int, w: int, anew: int):
    """What a rope misses at the pose at hand, held ends and ties aside; with `anew` 1, slopes of it, for `eliminate`."""


@wp.func_native(emitted("rope_eliminate", lambda: inward_code(True)))
def inward_anew(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope: matrices and right-hand sides."""


@wp.func_native(emitted("rope_bring_back", lambda: inward_code(False)))
def inward_again(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope: right-hand sides."""


@wp.func_native(emitted("rope_follow", outward_code))
def follow(s: wp.array(dtype=RopeStep), k: int, w: int, end_v: vec3, end_w: vec3, held_v: vec3):
    """Forward over a rope from the change (v, φ) of the twist at its first end: new velocities and impulses.

    `held_v` is the change of the velocity of a last point that is held.
    """


@wp.func
def is_slack(s: wp.array(dtype=RopeStep), i: int, w: int) -> bool:
    """Whether the points of element i are free to move along it: it is slack, or wound."""
    return s[0].work.slack[i, w] > 0 and s[0].state.cut[i, w] == 0


@wp.func
def slide_along(s: wp.array(dtype=RopeStep), i: int, w: int, X: mat33) -> vec3:
    """Xᵀd/α: by how much an impulse, that does X to what hangs on point i once its element is eliminated, makes it slide."""
    return s[0].work.d[i - 1, w] * X * s[0].work.slide[i, w]


@wp.func
def beyond(s: wp.array(dtype=RopeStep), i: int, w: int, X: mat33, Y: mat33) -> mat33:
    """X once element i is eliminated."""
    return X - s[0].work.B[i, w] * (s[0].work.U[i, w] * Y)


@wp.func
def at_last(s: wp.array(dtype=RopeStep), k: int, w: int):
    """What a rope's last point carries besides itself: a body that yields and moves with it."""
    A = mat33(real(0.0))
    B = A
    C = A
    D = A
    if s[0].ropes.kind[2 * k + 1] == BODY:
        b = s[0].ropes.body[2 * k + 1]
        mean = -s[0].work.arm[2 * k + 1, w]
        A = s[0].body.A[b, w]
        B, C, D = seen_from(A, s[0].body.B[b, w], s[0].body.C[b, w], s[0].body.D[b, w], mean, -s[0].work.end_arm[2 * k + 1, w])
    s[0].work.Z_A[k, w] = A
    s[0].work.Z_B[k, w] = B
    s[0].work.Z_C[k, w] = C
    s[0].work.Z_D[k, w] = D


@wp.func
def push_last(s: wp.array(dtype=RopeStep), k: int, w: int):
    """What that body misses."""
    s[0].work.p_l[k, w] = vec3(real(0.0))
    s[0].work.p_a[k, w] = vec3(real(0.0))
    if s[0].ropes.kind[2 * k + 1] == BODY:
        b = s[0].ropes.body[2 * k + 1]
        s[0].work.p_l[k, w] = s[0].body.p_l[b, w]
        s[0].work.p_a[k, w] = s[0].body.p_a[b, w] - wp.cross(s[0].work.arm[2 * k + 1, w], s[0].body.p_l[b, w])


@wp.func
def eliminate(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope: inertias of all that hangs on each point, then Z at the first end; and right-hand sides."""
    at_last(s, k, w)
    push_last(s, k, w)
    inward_anew(s, k, w)


@wp.func
def bring_back(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Backward over a rope with the right-hand sides of a pass: p₀ at the first end."""
    push_last(s, k, w)
    inward_again(s, k, w)
