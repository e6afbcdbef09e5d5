"""After steps of a simulation's trees: poses, velocities, accelerations of bodies, what joints carry, what acts on axes.

Generic steps report in the working memory, in the world's axes; specialized ones in a log of the last steps of a call.
"""

from typing import Any

import warp as wp

from sharnir.core.spatial import some, unit
from sharnir.core.types import EPSILON, quat, real, vec3
from sharnir.engine.guard import count_step
from sharnir.engine.tree.forest import BALL, FREE, HINGE, PRESCRIBED, ROTOR, SLIDER, SLIDES, TURNS, WELD
from sharnir.engine.tree.runtime import (
    AXIS_MEAN,
    BALL_ROTATION,
    BALL_STUCK,
    CHANGE_AT,
    CURRENT,
    DONE,
    FREE_POSITION,
    FREE_ROTATION,
    IS_BALL,
    IS_FREE,
    IS_HINGE,
    IS_PRESCRIBED,
    IS_ROTOR,
    IS_SLIDER,
    IS_SLIDES,
    IS_TURNS,
    IS_WELD,
    LOG_AXIS,
    LOG_F,
    LOG_N,
    LOG_P_AXIS,
    LOG_P_DRIVE,
    LOG_P_FRICTION,
    LOG_P_LIMIT,
    LOG_P_LOST,
    LOG_ROW,
    LOG_V,
    LOG_W,
    MEMORY_APART,
    MEMORY_ROW,
    MOMENT,
    MOTOR_SPEED,
    NATIVE,
    NATIVE_TYPES,
    P_AXIS,
    P_AXIS_3,
    P_DRIVE,
    P_DRIVE_3,
    P_FRICTION,
    P_FRICTION_3,
    P_LIMIT,
    P_LIMIT_3,
    P_LOST,
    REACTION,
    SIGN_AT,
    SLIDES_Q,
    SLIDES_STUCK,
    SLOTS,
    STUCK,
    TURNS_ROTATION,
    V_BALL,
    V_FREE,
    V_HINGE,
    V_SLIDER,
    V_SLIDES,
    V_TURNS,
    V_WELD,
    Q,
    TreeStep,
    get_quat,
    log_place,
    logged,
    put_triple,
    recall_triple,
    several_row,
    triple,
)
from sharnir.engine.tree.storage import TOGETHER
from sharnir.model.joint_geometry import breaks, free_axis
from sharnir.model.kinematics import pose_at

JUMP = 16.0  # squared ratio of a change to the next one, from which it was a jump,
SMALL = 0.01  # unless its square is a smaller part of that of the quantity
SAME_POSE = 32.0 * EPSILON  # rad or scene lengths, that rounding may move a body


@wp.func
def store(t: wp.array(dtype=TreeStep), w: int):
    """Poses and velocities of bodies from coordinates and twists; accelerations, if the last store was a step ago."""
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        if kind < 0:
            continue
        base = t[0].base[i + t[0].links * w]
        turn = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        origin = vec3(real(0.0))
        if base >= 0:
            turn = t[0].turn[base, w]
            origin = t[0].origin[base, w]
        turn, origin = hang(t, i, w, kind, turn, origin)
        t[0].turn[i, w] = turn
        t[0].origin[i, w] = origin
        store_axes(t, i, w, kind)
        b = t[0].body[i]
        if b >= 0:
            store_body(t, i, b, w, kind, turn, origin)


@wp.func
def hang(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int, turn: quat, origin: vec3):
    """Rotation and origin of a link, from those of its base."""
    row = t[0].first[i]
    if kind == IS_FREE or kind == IS_PRESCRIBED:
        return get_quat(t, row + FREE_ROTATION, w), triple(t, row + FREE_POSITION, w)
    at = origin + wp.quat_rotate(turn, t[0].anchor[i, w])
    turned = turn * t[0].frame[i, w]
    if kind == IS_BALL:
        turned = turned * get_quat(t, row + BALL_ROTATION, w)
    elif kind == IS_TURNS:
        turned = turned * get_quat(t, row + TURNS_ROTATION, w)
    elif kind == IS_SLIDES:
        at = at + wp.quat_rotate(turned, triple(t, row + SLIDES_Q, w) * real(t[0].sense[i]))
    elif kind != IS_WELD:
        q = t[0].state.tree[row + Q, w]
        if kind == IS_HINGE or kind == IS_ROTOR:
            z = wp.sin(real(0.5) * q)
            c = wp.cos(real(0.5) * q)
            x = turned[0] * c + turned[1] * z
            y = turned[1] * c - turned[0] * z
            turned = quat(x, y, turned[2] * c + turned[3] * z, turned[3] * c - turned[2] * z)
        else:
            at = at + wp.quat_rotate(turned, vec3(real(0.0), real(0.0), q))
    return unit(turned), at


@wp.func
def store_axes(t: wp.array(dtype=TreeStep), i: int, w: int, kind: int):
    """Coordinates of a link's joint, what friction holds, and the state of a motor."""
    row = t[0].first[i]
    if kind == IS_BALL:
        for k in range(3):
            t[0].state.stuck[t[0].axis[i] + k, w] = int(t[0].state.tree[row + BALL_STUCK + k, w] > real(0.5))
    elif kind == IS_SLIDES or kind == IS_TURNS:
        at = several_row(kind, row)
        for k in range(t[0].slides[i]):
            q = t[0].state.tree[at + SLIDES_Q + k, w]
            t[0].state.q[t[0].joints.q_start[t[0].joint[i]] + t[0].number[i] + k, w] = q
            t[0].state.stuck[t[0].axis[i] + k, w] = int(t[0].state.tree[at + SLIDES_STUCK + k, w] > real(0.5))
    elif kind == IS_HINGE or kind == IS_SLIDER or kind == IS_ROTOR:
        t[0].state.q[t[0].joints.q_start[t[0].joint[i]] + t[0].number[i], w] = t[0].state.tree[row + Q, w]
        t[0].state.stuck[t[0].axis[i], w] = int(t[0].state.tree[row + STUCK, w] > real(0.5))
        t[0].state.current[t[0].axis[i], w] = t[0].state.tree[row + CURRENT, w]
        t[0].state.rotor[t[0].axis[i], w] = t[0].state.tree[row + MOTOR_SPEED, w]


AT_END = f"""const auto at_end = [](const vec& mean, const vec& change, const vec& before) {{
return wp::dot(before, before) <= wp::max(real({JUMP})*wp::dot(change, change), real({SMALL})*wp::dot(mean, mean))
? wp::add(mean, before*real(0.5)) : mean; }};
"""  # the function of that name, for other C++


def _either(logged: Any, recalled: Any) -> str:
    """A place in the log, or in the working memory of generic steps, in C++."""
    return f"(own ? {int(logged)} : {int(recalled)})"


def _rows(names: dict[int, Any], kind: str = "kind", other: int = 0) -> str:
    """The number of a row by the kind of a link, in C++."""
    out = str(other)
    for key, row in names.items():
        out = f"{kind} == {key} ? {int(row)} : {out}"
    return f"({out})"


TWIST_ROW = _rows(
    {BALL: V_BALL, FREE: V_FREE, PRESCRIBED: V_FREE, WELD: V_WELD, SLIDES: V_SLIDES, TURNS: V_TURNS, SLIDER: V_SLIDER},
    other=int(V_HINGE),
)


@wp.func_native(
    f"""{NATIVE}{AT_END}const real* const row = x.state.tree.data + (size_t)x.first.data[i]*worlds + w;
const real half = real(0.5)*x.settings.dt.data[0], per_half = real(1.0)/half, per = real(0.5)*per_half;
auto R = wp::mul(turn, wp::quat_inverse(shared(own_turn, i)));
R = wp::mul(R, row[{int(SIGN_AT)}*worlds]);
const vec place = wp::add(origin, wp::quat_rotate(turn, shared(com, i)));
auto& rotation = cell(state.rotation, b);
if (kind == {PRESCRIBED}) {{ cell(state.position, b) = place; rotation = R; return; }}
const real* const twist = row + {TWIST_ROW}*worlds;
vec v(twist[0]*per_half, twist[worlds]*per_half, twist[2*worlds]*per_half);
vec omega(twist[3*worlds]*per_half, twist[4*worlds]*per_half, twist[5*worlds]*per_half);
bool moves = false;
for (int k = 0; k < 3; ++k) moves = moves || v[k] != real(0.0) || omega[k] != real(0.0);
if (!moves) {{  // what stands still does so to the bit
const real off = wp::length(wp::sub(place, cell(state.position, b)))*x.settings.per_metre.data[0];
moves = off + wp::length(wp::sub(R, rotation)) > real({SAME_POSE!r}); }}
if (moves) {{ cell(state.position, b) = place; rotation = R; }}
else R = rotation;
vec& velocity = cell(state.velocity, b); vec& spin = cell(state.spin, b); vec& last_v = cell(state.last_v, b);
vec& slope = cell(state.slope_v, b);
if (x.own_axes == 1) {{
v = wp::quat_rotate(turn, v); omega = wp::quat_rotate(turn, omega);
const int end = x.slot_end.data[w], many = x.reported.data[w];
for (int slot = end - many; slot < end; ++slot) {{
const real* const log = x.log.data + (((size_t)(w/{TOGETHER})*{SLOTS} + slot)*x.links + i)*{LOG_ROW * TOGETHER} + w%{TOGETHER};
const real* const next = log + (size_t)x.links*{LOG_ROW * TOGETHER};
vec mean;
for (int k = 0; k < 3; ++k)
mean[k] = ((slot + 1 < end ? next[({int(LOG_V)} + k)*{TOGETHER}] : v[k]) - log[({int(LOG_V)} + k)*{TOGETHER}])*per;
const vec change = wp::sub(mean, last_v);
cell(state.acceleration, b) = at_end(mean, change, slope);
slope = change; last_v = mean;
if (slot + 1 == end)
for (int k = 0; k < 3; ++k) cell(state.last_w, b)[k] = (omega[k] - log[({int(LOG_W)} + k)*{TOGETHER}])*per;
}} }} else {{
const vec mean = wp::sub(v, velocity)*per, change = wp::sub(mean, last_v);
cell(state.acceleration, b) = at_end(mean, change, slope);
slope = change; last_v = mean;
cell(state.last_w, b) = wp::sub(omega, spin)*per;
}}
velocity = v; spin = omega;
cell(state.momentum, b) = wp::quat_rotate(R, wp::mul(shared(bodies.inertia, b), wp::quat_rotate_inv(R, omega)));
{DONE}"""
)
def store_body(t: wp.array(dtype=TreeStep), i: int, b: int, w: int, kind: int, turn: quat, origin: vec3):
    """Pose, velocities and accelerations of the body of a link, which stands so in the world."""


@wp.func_native(f"{NATIVE_TYPES}{AT_END}return at_end(mean, change, before);")
def at_end(mean: vec3, change: vec3, before: vec3) -> vec3:
    """A quantity at the end of a step from its mean over the step, the change of that mean, and the change before.

    Means f of steps alternate about the true value: f + ½ (last change) would double that, f + ½ (change before the last) has
    none of it, and is of second order, too. A jump is not carried on.
    """
    return mean


@wp.func
def store_report(t: wp.array(dtype=TreeStep), w: int):
    """What joints carried in the last step and what acted on their axes, as of a whole step."""
    i = report(t, 0, t[0].links, w)
    while i < t[0].links:
        store_reaction(t, i, t[0].joint[i], w)
        i = report(t, i + 1, t[0].links, w)


@wp.func
def report_link(t: wp.array(dtype=TreeStep), i: int, w: int):
    """The same of a link; its last one reports of the joint."""
    if report(t, i, i + 1, w) == i:
        store_reaction(t, i, t[0].joint[i], w)


def _impulses(names: str, places: tuple[tuple[Any, Any, Any], ...]) -> str:
    """Where impulses of axes are, in the log, or in the working memory of generic steps of one axis, or of several; in C++."""
    each = zip(names.split(), places, strict=True)
    return " ".join(f"const int {n} = own ? {int(a)} : one ? {int(b)} : {int(c)};" for n, (a, b, c) in each)


@wp.func_native(
    f"""{NATIVE}{AT_END}const int links = x.links; const int* const kinds = x.kind.data + (size_t)w*links;
const int* const acts = x.acts.data + (size_t)w*links; const int* const joints = x.joint.data;
const real part = x.part.data[w], dt = x.settings.dt.data[0], per = dt/part, scale = real(4.0)*per/part;
const vec zero(real(0.0)); const int hit = x.hit.data[w];
const auto is_one = [](int k) {{ return k == {HINGE} || k == {SLIDER} || k == {ROTOR}; }};
const auto is_several = [](int k) {{ return k == {BALL} || k == {SLIDES} || k == {TURNS}; }};
const auto without = [](vec& v, const vec& axis, real square) {{
if (square > real(0.0)) v = wp::sub(v, axis*(wp::dot(axis, v)/square)); }};
struct Logged {{ enum {{ own = 1 }}; }}; struct Recalled {{ enum {{ own = 0 }}; }};
const auto go = [&](auto form, const real* numbers, const int row, const int step, const int end, const int slots) {{
constexpr bool own = decltype(form)::own;
const auto source = [&](int link, int slot) {{ return numbers + (size_t)row*(own ? slot*links + link : link); }};
for (int i = first; i < last; ++i) {{
const int j = joints[i], kind = kinds[i];
if (j < 0 || kind < 0) continue;
if (acts[i] == 1 && (is_one(kind) || is_several(kind))) {{  // impulses along the axes of the link
const bool one = is_one(kind); const real* from = source(i, end - 1); const int many = one ? 1 : x.slides.data[i];
if (!own && !one) from = source(links, 0) + (size_t)({int(MEMORY_APART)}*i)*step;
{_impulses("p_axis p_friction", ((LOG_P_AXIS, P_AXIS, P_AXIS_3), (LOG_P_FRICTION, P_FRICTION, P_FRICTION_3)))}
{_impulses("p_limit p_drive", ((LOG_P_LIMIT, P_LIMIT, P_LIMIT_3), (LOG_P_DRIVE, P_DRIVE, P_DRIVE_3)))}
for (int k = 0; k < many; ++k) {{
const int at = x.axis.data[i] + k;
cell(state.friction_impulse, at) = from[(p_friction + k)*step]*per; cell(state.axis_impulse, at) = from[(p_axis + k)*step]*per;
cell(state.limit_impulse, at) = from[(p_limit + k)*step]*per; cell(state.drive_impulse, at) = from[(p_drive + k)*step]*per;
}} }}
if (x.body.data[i] < 0 && x.cut.data[i] != 1) continue;
const bool turned = x.sense.data[i] < 0;
real lost = hit > 0 && joints[hit - 1] == j ? x.taken.data[w] : real(0.0);
bool by_pose = false;
int begin = i;  // the first link of the joint
for (;;) {{
const int k = kinds[begin];
if (acts[begin] == 1 && (is_one(k) || is_several(k))) lost += source(begin, end - 1)[{_either(LOG_P_LOST, P_LOST)}*step];
by_pose = by_pose || k == {SLIDES} || k == {TURNS} || (k == {SLIDER} && turned);
if (begin == 0 || joints[begin - 1] != j) break;
--begin;
}}
cell(state.dissipated, j) = lost;
if (slots == 0) continue;
if (by_pose) return i;
vec& mid_f = cell(state.mid_force, j); vec& mid_l = cell(state.mid_torque, j);
vec f = mid_f, l = mid_l, before_f = zero, before_l = zero;
real* const changes = x.state.tree.data + ((size_t)x.first.data[i] + {int(CHANGE_AT)})*worlds + w;
vec change_f(changes[0], changes[worlds], changes[2*worlds]), change_l(changes[3*worlds], changes[4*worlds], changes[5*worlds]);
for (int slot = end - slots; slot < end; ++slot) {{
vec now_f = zero, now_l = zero;
if (kind != {FREE}) {{
const real* const from = source(i, slot); const real by = turned ? -scale : scale;
const real* const at_f = from + {_either(LOG_F, REACTION)}*step; const real* const at_l = from + {_either(LOG_N, MOMENT)}*step;
now_f = vec(at_f[0]*by, at_f[step]*by, at_f[2*step]*by); now_l = vec(at_l[0]*by, at_l[step]*by, at_l[2*step]*by);
for (int at = i; at >= begin; --at) {{
if (kinds[at] == {BALL}) now_l = zero;
else if (is_one(kinds[at])) {{
const real* const mean = source(at, slot) + {_either(LOG_AXIS, AXIS_MEAN)}*step;
const vec axis(mean[0], mean[step], mean[2*step]);
without(kinds[at] == {SLIDER} ? now_f : now_l, axis, wp::dot(axis, axis));
}} }} }}
before_f = change_f; before_l = change_l; change_f = wp::sub(now_f, f); change_l = wp::sub(now_l, l);
if (f == zero && l == zero) change_f = change_l = before_f = before_l = zero;  // the first step
f = now_f; l = now_l;
}}
vec end_f = at_end(f, change_f, before_f), end_l = at_end(l, change_l, before_l);
for (int at = i; at >= begin; --at) {{
if (kinds[at] == {BALL}) end_l = zero;
else if (is_one(kinds[at])) {{
const auto q = cell(turn, at);
const vec axis(real(2.0)*(q.x*q.z + q.w*q.y), real(2.0)*(q.y*q.z - q.w*q.x), real(1.0) - real(2.0)*(q.x*q.x + q.y*q.y));
without(kinds[at] == {SLIDER} ? end_f : end_l, axis, real(1.0));
}} }}
cell(state.joint_force, j) = end_f; cell(state.joint_torque, j) = end_l;
for (int k = 0; k < 3; ++k) {{ changes[k*worlds] = change_f[k]; changes[(3 + k)*worlds] = change_l[k]; }}
mid_f = f; mid_l = l;
}}
return last;
}};
if (x.own_axes == 1) {{
const real* const log = x.log.data + (size_t)(w/{TOGETHER})*links*{SLOTS * LOG_ROW * TOGETHER} + w%{TOGETHER};
return go(Logged(), log, {LOG_ROW * TOGETHER}, {TOGETHER}, x.slot_end.data[w], x.reported.data[w]);
}}
const int column = w < x.memory_worlds ? w : w%wp::max(x.memory_worlds, 1);
const real* const memory = x.memory.data + (size_t)(column/{TOGETHER})*{TOGETHER}*x.memory_size_of_world
+ (size_t)(column%{TOGETHER})*x.memory_world + (size_t){int(MEMORY_ROW)}*x.memory_number;
return go(Recalled(), memory, {int(MEMORY_ROW)}*x.memory_number, x.memory_number, 1, 1);
{DONE}"""
)
def report(t: wp.array(dtype=TreeStep), first: int, last: int, w: int) -> int:
    """The same of some links, up to one of a joint that is read with its pose (`store_reaction`); returns that, or the last.

    A force or a moment has no share along the free axes of its joint, as these are in the mean of the step, or at its end.
    """
    return 0


@wp.func
def without_free_axes(t: wp.array(dtype=TreeStep), i: int, j: int, w: int, f: vec3, l: vec3, slot: int):
    """A force and a moment less their shares along the free axes of a joint, as these are in the mean of the step in a slot of
    the log, or with slot −1 at the end; i is the last link of the joint.
    """
    at = i
    while at >= 0:
        if t[0].joint[at] != j:
            break
        along = t[0].kind[at + t[0].links * w]
        if along == IS_BALL:
            l = vec3(real(0.0))
        elif along == IS_SLIDES or along == IS_TURNS:
            pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
            for x in range(t[0].slides[at]):
                d, m = free_axis(t[0].joints, j, t[0].number[at] + x, pose)
                l = l - m * wp.dot(m, l)
                f = f - d * wp.dot(d, f)
        elif along == IS_HINGE or along == IS_ROTOR or along == IS_SLIDER:
            d = wp.quat_rotate(t[0].turn[at, w], vec3(real(0.0), real(0.0), real(1.0)))
            if slot >= 0:
                d = wp.normalize(reported(t, at, w, AXIS_MEAN, LOG_AXIS, slot))
            if along == IS_SLIDER:
                f = f - d * wp.dot(d, f)
            else:
                l = l - d * wp.dot(d, l)
        at = at - 1
    return f, l


@wp.func
def reported(t: wp.array(dtype=TreeStep), i: int, w: int, recalled: int, what: int, slot: int) -> vec3:
    """A vector that a step reports of a link, in the world's axes: in the log, or in the working memory of generic steps."""
    if t[0].own_axes == 1:
        return logged(t, log_place(t, slot, i, w), what)
    return recall_triple(t, i, recalled, w)


@wp.func
def carried_by(t: wp.array(dtype=TreeStep), i: int, j: int, w: int, slot: int):
    """Impulse and moment of a joint on its child in a step, at the child's anchor, without the share of the free axes."""
    scale = real(4.0) * t[0].settings.dt[0] / (t[0].part[w] * t[0].part[w])
    f = reported(t, i, w, REACTION, LOG_F, slot) * scale
    l = reported(t, i, w, MOMENT, LOG_N, slot) * scale
    if t[0].sense[i] < 0:
        pose = pose_at(t[0].joints, j, w, t[0].state.position, t[0].state.rotation)
        l = -l - wp.cross(pose.parent_anchor - pose.child_anchor, f)
        f = -f
    f, l = without_free_axes(t, i, j, w, f, l, slot)
    return f, l


@wp.func
def store_reaction(t: wp.array(dtype=TreeStep), i: int, j: int, w: int):
    """What a joint carries at the end of the last step, from that in the last ones, where its axes are found from its pose."""
    zero = vec3(real(0.0))
    kind = t[0].kind[i + t[0].links * w]
    f = t[0].state.mid_force[j, w]
    l = t[0].state.mid_torque[j, w]
    row = t[0].first[i] + CHANGE_AT
    change_f = triple(t, row, w)
    change_l = triple(t, row + 3, w)
    before_f = zero
    before_l = zero
    slots = int(1)
    end = int(1)
    if t[0].own_axes == 1:
        slots = t[0].reported[w]
        end = t[0].slot_end[w]
    for slot in range(end - slots, end):
        new_f = zero
        new_l = zero
        if kind != IS_FREE:
            new_f, new_l = carried_by(t, i, j, w, slot)
        before_f = change_f
        before_l = change_l
        change_f = new_f - f
        change_l = new_l - l
        if not (some(f) or some(l)):  # the first step
            change_f = zero
            change_l = zero
            before_f = zero
            before_l = zero
        f = new_f
        l = new_l
    end_f, end_l = without_free_axes(t, i, j, w, at_end(f, change_f, before_f), at_end(l, change_l, before_l), -1)
    t[0].state.joint_force[j, w] = end_f
    t[0].state.joint_torque[j, w] = end_l
    put_triple(t, row, w, change_f)
    put_triple(t, row + 3, w, change_l)
    t[0].state.mid_force[j, w] = f
    t[0].state.mid_torque[j, w] = l


@wp.func
def break_joints(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Disable joints that do not stand what they carried in the last step."""
    broke = bool(False)
    for j in range(t[0].joints.count):
        if t[0].control.enabled[j, w] != 0:
            if breaks(t[0].joints, j, t[0].state.mid_force[j, w], t[0].state.mid_torque[j, w], t[0].settings.dt[0]):
                t[0].control.enabled[j, w] = 0
                broke = True
    return broke


@wp.func
def keep(t: wp.array(dtype=TreeStep), w: int):
    """Remember the state, to see whether the caller changes it."""
    for b in range(t[0].bodies.count):
        keep_body(t, b, w)


@wp.func_native(
    f"""{NATIVE}cell(state.felt_force, b) = shared(control.force, b); cell(state.felt_torque, b) = shared(control.torque, b);
cell(state.kept_velocity, b) = cell(state.velocity, b); cell(state.kept_momentum, b) = cell(state.momentum, b);
cell(state.kept_position, b) = cell(state.position, b); cell(state.kept_rotation, b) = cell(state.rotation, b);
{DONE}"""
)
def keep_body(t: wp.array(dtype=TreeStep), b: int, w: int):
    """The same of a body."""


@wp.func
def count(t: wp.array(dtype=TreeStep), w: int, made: int):
    """Steps that were made."""
    t[0].residual[w] = t[0].change[w] * t[0].per_change
    t[0].done[w] = t[0].passes[w]
    t[0].to_come[w] = t[0].to_come[w] - made
    t[0].state.open[w] = real(0.0)
    t[0].state.history[w] = wp.min(t[0].state.history[w] + made, 4)
    for _k in range(made):
        t[0].state.time[w] = t[0].state.time[w] + wp.float64(t[0].settings.dt[0])
        count_step(t[0].tally, w, t[0].residual[w], t[0].settings.tolerance[0], t[0].parts[w])
    if t[0].parts[w] > 1:
        t[0].grades[1, w] = t[0].grades[1, w] + 1
