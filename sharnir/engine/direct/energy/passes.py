"""What the passes of a step start from, and what they share over the tree and what stands beside it."""

import warp as wp

from sharnir.core.spatial import matrix
from sharnir.core.types import EPSILON, real, vec3
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.balls import FREE, NONE, joint_axes, triple
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.cables import open_cables
from sharnir.engine.direct.energy.laws import ball_springs, open_link
from sharnir.engine.direct.energy.limits import ball_rows
from sharnir.engine.direct.energy.links import ANEW
from sharnir.engine.direct.energy.means import ball_speeds, lock_gaps, place, take_driven
from sharnir.engine.direct.energy.rows import act, find_rows
from sharnir.engine.direct.modified import lies

RESTS = wp.constant(real(max(1.0e-9, 100.0 * EPSILON)))  # of the largest speed: an axis that friction holds may move so fast
UNMET = wp.constant(real(10.0))  # tolerances: the residual, at least, of a step that was made coarsely
HISTORY = wp.constant(4)  # steps whose velocities the predictor of the next step uses
STALLED = wp.constant(real(max(1.0e-8, 256.0 * EPSILON)))  # rad, or of the scene's length: a gap at which rounding may stop


# ---- before the passes ------------------------------------------------------------------------------------------------------


@wp.func
def begin(s: wp.array(dtype=Direct), w: int):
    """Velocities at the start, their scale (`energy`), momenta after external forces, and a guess of the end (`foresee`)."""
    w = natural(w)
    h = s[0].drift[w]
    s[0].kick[w] = h
    gravity = s[0].settings.gravity[w]
    take_driven(s, w)
    scale = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.mass[i, w]
        R = s[0].state.rotation[own, w]
        M = matrix(R)
        L = s[0].state.momentum[own, w]
        v = s[0].state.velocity[own, w]
        omega = M * (s[0].whole.inv_inertia[own, w] * (L * M))
        s[0].work.velocity[b, w] = v
        s[0].work.spin[b, w] = omega
        turning = wp.dot(omega, L)
        turning = turning / s[0].tree.row[i].parts
        new, L = kicked(s, own, w, v + gravity * h, L, h)
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        ahead = h * real(wp.min(s[0].state.history[w], 1))
        s[0].work.acceleration[b, w] = v + s[0].state.guess_v[own, w] * ahead
        s[0].work.turning[b, w] = omega + M * s[0].state.guess_w[own, w] * ahead
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
        s[0].work.position[b, w] = s[0].state.position[own, w]
        s[0].work.rotation[b, w] = R
        j = natural(s[0].tree.row[i].joint)
        kind = s[0].tree.row[i].kind
        if j < s[0].scene_joints and s[0].control.enabled[j, w] == 0:
            kind = LOOSE
        if lies(s, own, w):  # what sleeps hangs on nothing, and gives way to nothing
            kind = LOOSE
        s[0].work.kind[i, w] = kind
    s[0].energy[w] = scale


@wp.func
def kicked(s: wp.array(dtype=Direct), own: int, w: int, v: vec3, L: vec3, h: real):
    """Velocity and momentum of a body after a user's forces and those of its contacts."""
    if s[0].pushed[w] == 1:
        L = L + (s[0].control.torque[own, w] + s[0].control.torque_once[own, w]) * h
        force = (s[0].control.force[own, w] + s[0].control.force_once[own, w]) * h
        v = v + force * s[0].whole.inv_mass[own, w]
    if s[0].touching == 1:
        L = L + s[0].touch.push_a[own, w]
        v = v + s[0].touch.push_l[own, w] * s[0].whole.inv_mass[own, w]
    if lies(s, own, w):
        L = vec3(real(0.0))
        v = vec3(real(0.0))
        s[0].state.guess_v[own, w] = v
        s[0].state.guess_w[own, w] = v
    return v, L


@wp.func
def begin_again(s: wp.array(dtype=Direct), w: int):
    """The same step with other impulses of contacts: laws, factors, and the end that was found, stay as a guess."""
    h = s[0].drift[w]
    scale = real(0.0)
    for n in range(s[0].tree.count):
        i = natural(n)
        b = natural(s[0].tree.row[i].body)
        own = natural(s[0].half_of[b])
        m = s[0].tree.mass[i, w]
        v = s[0].work.velocity[b, w]
        L = s[0].state.momentum[own, w]
        turning = wp.dot(s[0].work.spin[b, w], L) / s[0].tree.row[i].parts
        new, L = kicked(s, own, w, v + s[0].settings.gravity[w] * h, L, h)
        s[0].gain[i, w] = s[0].gain[i, w] + (s[0].momentum[b, w] - L) / s[0].tree.row[i].parts
        s[0].momentum[b, w] = L
        s[0].impulse_l[i, w] = new * m
        by = new - v
        scale = scale + (wp.dot(v, v) + wp.dot(by, by)) * m + turning
    s[0].stopped[w] = 0
    s[0].done[w] = 1
    s[0].energy[w] = scale


@wp.func
def pushes(s: wp.array(dtype=Direct), w: int):
    """Impulses that a user commands along free axes."""
    for n in range(s[0].tree.count):
        i = natural(n)
        v0 = natural(s[0].tree.row[i].v_start)
        j = natural(s[0].tree.row[i].joint)
        for at in range(v0, v0 + s[0].tree.row[i].v_size):
            push = real(0.0)
            if s[0].pushed[w] == 1 and j < s[0].scene_joints:
                push = s[0].control.joint_force[at, w] * s[0].drift[w]
            s[0].tau[at, w] = push
        if s[0].pushed[w] == 1 and j < s[0].scene_joints and s[0].tree.row[i].kind == FREE:
            m = triple(s[0].tau, v0, w)
            if wp.length_sq(m) > real(0.0):
                m = wp.quat_rotate(joint_axes(s, j, w), m) * real(s[0].tree.sign[i])
            s[0].ball_push[i, w] = m


# ---- a step -----------------------------------------------------------------------------------------------------------------


@wp.func
def rows_act(s: wp.array(dtype=Direct), w: int):
    """Impulses of the rows beside the tree, as of outside, on top of those that a user commands."""
    if s[0].closures.count > 0:
        pushes(s, w)
        act(s, w)


@wp.func
def refresh_locks(s: wp.array(dtype=Direct), w: int):
    """What locked axes and balls that friction holds lack, after laws were made linear anew."""
    for n in range(s[0].tree.count):
        i = natural(n)
        kind = s[0].work.kind[i, w]
        if s[0].linear.acts[i, w] == 1 and kind != LOOSE:
            if kind == NONE:
                lock_gaps(s, i, w)
            else:
                ball_speeds(s, i, w, kind)


@wp.func
def refresh_springs(s: wp.array(dtype=Direct), w: int, first: bool):
    """Springs and limits of ball joints, which are not linear in the speeds; `first`: before the first pass."""
    for i in range(s[0].tree.count):
        if s[0].linear.acts[i, w] == 1 and s[0].work.kind[i, w] == NONE and s[0].joints.turns[s[0].tree.joint[i]] == 3:
            ball_springs(s, i, w)
            if s[0].joints.ball[s[0].tree.joint[i]] != 0:
                ball_rows(s, i, w, first)
                lock_gaps(s, i, w)


@wp.func
def open_attempt(s: wp.array(dtype=Direct), w: int):
    """Before the passes of a step of the length in `drift`."""
    begin(s, w)
    s[0].stopped[w] = 0
    pushes(s, w)
    s[0].done[w] = 1
    if s[0].acting == 1:
        for i in range(s[0].tree.count):
            open_link(s, i, w)
    place(s, w, False)
    if s[0].acting == 1:
        refresh_springs(s, w, True)
    for r in range(s[0].closures.count):
        s[0].row_impulse[r, w] = s[0].state.row_force[r, w] * s[0].drift[w]
    if s[0].closures.count > 0:
        if s[0].cables.count > 0:
            open_cables(s, w)
        find_rows(s, w)


@wp.func
def count_pass(s: wp.array(dtype=Direct), w: int, mode: int):
    """A pass; one that factors anew counts as many as it takes the time of."""
    if mode == ANEW:
        s[0].passes[w] = s[0].passes[w] + s[0].settings.iterations[5]
    else:
        s[0].passes[w] = s[0].passes[w] + 1
