"""Ball joints in the direct pass: three rotations about a point, in world axes, nothing larger than 3 × 3.

At the joint's point P a link's inertia is [A B; Bᵀ D], what acts on it (q, m), and its new spin is free: with the base's new
velocity v of P and spin ω₀, the relative spin u = ω − ω₀ obeys

    D u = r + f,      r = m − Bᵀ v − D ω₀,      |f| ≤ bound, f against u.

Without friction ω = D⁻¹(m − Bᵀ v), and the base feels A − B D⁻¹ Bᵀ, a mass that depends on the direction, at P. Sliding friction
is linear about a solution, f = −C u − slide û with C = slide/|u| (E − û ûᵀ); where it holds, both bodies are one.
"""

import warp as wp

from sharnir.core.types import quat, real, vec3
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.data import Direct
from sharnir.laws.prepare import clear_laws, friction_bounds
from sharnir.model.joint_geometry import parent_frame
from sharnir.model.kinematics import pose_at

NONE = wp.constant(0)
FREE = wp.constant(1)
SLIDES = wp.constant(2)
HELD = wp.constant(3)


@wp.func
def kind_of(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """What a link's joint is in this step."""
    return s[0].work.kind[i, w]


@wp.func
def triple(a: wp.array2d(dtype=real), v0: int, w: int) -> vec3:
    return vec3(a[v0, w], a[v0 + 1, w], a[v0 + 2, w])


@wp.func
def put_triple(a: wp.array2d(dtype=real), v0: int, w: int, x: vec3):
    a[v0, w] = x[0]
    a[v0 + 1, w] = x[1]
    a[v0 + 2, w] = x[2]


@wp.func
def joint_axes(s: wp.array(dtype=Direct), j: int, w: int) -> quat:
    """The joint's frame on its parent."""
    return parent_frame(s[0].joints, j, pose_at(s[0].joints, j, w, s[0].work.position, s[0].work.rotation))


# ---- friction ---------------------------------------------------------------------------------------------------------------


@wp.func
def friction_alone(s: wp.array(dtype=Direct), v0: int, w: int) -> bool:
    """Whether nothing but one friction bound acts on the three axes."""
    for a in range(v0, v0 + 3):
        other = s[0].control.friction_viscous[a, w] + s[0].control.servo_kp[a, w] + s[0].control.servo_kd[a, w]
        if other != real(0.0) or s[0].control.servo_torque[a, w] != real(0.0):
            return False
    return True


@wp.func
def take_part(s: wp.array(dtype=Direct), i: int, w: int) -> int:
    """Note, and return, whether laws act on the axes of a link's joint in this step: not where it is taken out."""
    j = s[0].tree.joint[i]
    on = int(0)
    if j < s[0].scene_joints:
        on = s[0].control.acts[j, w]
    if on == 1 and s[0].work.kind[i, w] == LOOSE:
        on = 0
        if s[0].control.enabled[j, w] == 0:  # what sleeps keeps what it holds
            clear_laws(s, j, w)
    s[0].linear.acts[i, w] = on
    return on


@wp.func
def open_ball(s: wp.array(dtype=Direct), i: int, w: int, u: vec3):
    """Bounds of a ball's friction, and a guess of its solution: it goes on at u. Speeds in `laws` are in world axes."""
    j = natural(s[0].tree.row[i].joint)
    v0 = natural(s[0].tree.row[i].v_start)
    put_triple(s[0].laws.start, v0, w, u)
    put_triple(s[0].laws.end, v0, w, u)
    put_triple(s[0].slid, v0, w, vec3(real(0.0)))
    put_triple(s[0].laws.friction, v0, w, vec3(real(0.0)))
    friction_bounds(s, s[0].laws, j, 0, w)
    hold = s[0].laws.hold[v0, w]
    stuck = s[0].state.stuck[v0, w]
    if hold > s[0].laws.slide[v0, w] or wp.length_sq(u) == real(0.0):
        stuck = 1
    if hold <= real(0.0):
        stuck = 0
    s[0].laws.stuck[v0, w] = stuck


# ---- the passes -------------------------------------------------------------------------------------------------------------
