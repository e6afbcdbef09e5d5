"""Points of contact on trees: their rows, and what an impulse at one of them does to all bodies."""

import warp as wp

from sharnir.core.linalg import substitute
from sharnir.core.types import real, vec3
from sharnir.engine.articulated.data import LOOSE, natural
from sharnir.engine.direct.data import SIDES, Direct
from sharnir.engine.direct.energy.links import follow_one, follow_some, hand_push, hand_pushes
from sharnir.engine.direct.energy.rows import clear_changes, clear_pushes, close_rows, keep_changes
from sharnir.laws.casts import CAST
from sharnir.laws.contact import approach, softness

BOUNCES = wp.constant(real(0.05))  # m/s: slower impacts do not bounce


@wp.func
def work_left(s: wp.array(dtype=Direct), w: int) -> int:
    """Passes that contacts may take the time of: what a step takes in any case is kept for the tree."""
    return s[0].settings.iterations[2] - s[0].settings.iterations[4] - s[0].passes[w]


@wp.func
def count_work(s: wp.array(dtype=Direct), w: int, visits: real):
    """Contacts took the time of so many visits of a link: it counts as passes over the tree, as far as these are left."""
    passes = int(wp.min(visits / real(wp.max(s[0].tree.count, 1)), real(1.0e6)))
    s[0].passes[w] = s[0].passes[w] + wp.clamp(passes, 0, wp.max(work_left(s, w), 0))


@wp.func
def relative(s: wp.array(dtype=Direct), i: int, w: int, v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3)) -> vec3:
    """Velocity of b's point relative to a's; world axes."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    u = v[b, w] + wp.cross(turn[b, w], s[0].touch.r_b[i, w])
    u = u - v[a, w] - wp.cross(turn[a, w], s[0].touch.r_a[i, w])
    if s[0].contacts.belt_body[i, w] > 0:
        spin = turn[s[0].contacts.belt_body[i, w], w] - turn[s[0].contacts.belt_frame[i, w], w]
        u = u + s[0].contacts.belt_pull[i, w] * wp.dot(s[0].contacts.belt_axis[i, w], spin)
    return u


@wp.func
def passing(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """The speed at which the middle of a tyre's wheel passes over the other surface at the start of the step, m/s."""
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    v = s[0].state.velocity[b, w] - s[0].state.velocity[a, w]
    cast = s[0].contacts.special[i, w] & CAST != 0
    if cast or s[0].contacts.special[i, w] & 8 != 0:
        v = v + wp.cross(s[0].state.spin[b, w], s[0].touch.r_b[i, w])
    if cast or s[0].contacts.special[i, w] & 8 == 0:
        v = v - wp.cross(s[0].state.spin[a, w], s[0].touch.r_a[i, w])
    n = s[0].contacts.normal[i, w]
    return wp.length(v - n * wp.dot(n, v))


@wp.func
def belt_moment(s: wp.array(dtype=Direct), i: int, w: int, P: vec3) -> vec3:
    """What an impulse at a point of a belt does beside the point: it turns the belt's body so, and its frame against it."""
    return s[0].contacts.belt_axis[i, w] * wp.dot(s[0].contacts.belt_pull[i, w], P)


@wp.func
def axis_of(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> vec3:
    """Row x of a point: along the normal, or along the surfaces, by its coefficient of friction."""
    n = s[0].contacts.normal[i, w]
    if x == 0:
        return n
    t1 = s[0].touch.t1[i, w]
    mu = s[0].touch.mu[i, w]
    if x == 1:
        return t1 * mu[0]
    return wp.cross(n, t1) * mu[1]


@wp.func
def moment_of(s: wp.array(dtype=Direct), i: int, w: int, x: int) -> vec3:
    """Row x of what resists turning at a point: about the normal, or across it, by its coefficient."""
    n = s[0].contacts.normal[i, w]
    if x == 0:
        return n * s[0].contacts.torsion[i, w]
    t1 = s[0].touch.t1[i, w]
    if x == 1:
        return t1 * s[0].contacts.rolling[i, w]
    return wp.cross(n, t1) * s[0].contacts.rolling[i, w]


@wp.func
def line_of(s: wp.array(dtype=Direct), i: int, w: int, x: int, turns: bool) -> vec3:
    """Row x of a point, or of what resists turning there."""
    if turns:
        return moment_of(s, i, w, x)
    return axis_of(s, i, w, x)


@wp.func
def row_of(s: wp.array(dtype=Direct), k: int, w: int, x: int) -> vec3:
    """Row x of an entry of the small problem."""
    return s[0].touch.line[3 * k + x, w]


@wp.func
def resists_turning(s: wp.array(dtype=Direct), i: int, w: int) -> bool:
    """Whether a point resists rolling or spinning."""
    return s[0].contacts.rolling[i, w] > real(0.0) or s[0].contacts.torsion[i, w] > real(0.0)


@wp.func
def rate_of(s: wp.array(dtype=Direct), k: int, w: int, v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3)) -> vec3:
    """The velocity, or spin, that an entry of the small problem feels."""
    return felt_at(s, s[0].touch.point[k, w], w, v, turn, s[0].cone[0].host[k, w] >= 0)


@wp.func
def felt_at(
    s: wp.array(dtype=Direct), i: int, w: int, v: wp.array2d(dtype=vec3), turn: wp.array2d(dtype=vec3), turns: bool
) -> vec3:  # fmt: skip
    """The velocity at a point, or the spin that is resisted there."""
    if turns:
        return turn[s[0].contacts.body_b[i, w], w] - turn[s[0].contacts.body_a[i, w], w]
    return relative(s, i, w, v, turn)


@wp.func
def turn_link(s: wp.array(dtype=Direct), i: int, w: int, l: vec3):
    """A moment at a point, on the links of its two bodies."""
    link = s[0].rows.link_of[s[0].contacts.body_b[i, w]]
    if link >= 0:
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + l
    link = s[0].rows.link_of[s[0].contacts.body_a[i, w]]
    if link >= 0:
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - l


@wp.func
def push_link(s: wp.array(dtype=Direct), i: int, w: int, P: vec3):
    """An impulse at a point, on the links of its two bodies."""
    link = s[0].rows.link_of[s[0].contacts.body_b[i, w]]
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + P
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + wp.cross(s[0].touch.r_b[i, w], P)
    link = s[0].rows.link_of[s[0].contacts.body_a[i, w]]
    if link >= 0:
        s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] - P
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - wp.cross(s[0].touch.r_a[i, w], P)
    if s[0].contacts.belt_body[i, w] > 0:
        l = belt_moment(s, i, w, P)
        link = s[0].rows.link_of[s[0].contacts.belt_body[i, w]]
        s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + l
        link = s[0].rows.link_of[s[0].contacts.belt_frame[i, w]]
        if link >= 0:
            s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] - l


@wp.func
def respond(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Changes of the twists of links start … end − 1 by the impulses on them, loops kept closed."""
    hand_pushes(s, w, start, end)
    follow_some(s, w, real(0.0), start, end)


@wp.func
def ties_trees(s: wp.array(dtype=Direct)) -> bool:
    """Whether rows beside the tree, or ropes, tie links together."""
    return s[0].closures.count > 0 or s[0].touch.ports.count > 0


@wp.func
def close_loops(s: wp.array(dtype=Direct), w: int):
    """Rows beside the tree, and ropes between links, answer to these changes, too."""
    close_cut(s, w)
    if s[0].touch.ports.count > 0:
        pull_ports(s, w)


@wp.func
def close_cut(s: wp.array(dtype=Direct), w: int):
    """Rows beside the tree answer."""
    if s[0].closures.count > 0:
        keep_changes(s, w)
        for r in range(s[0].closures.count):
            s[0].rows.gap[r, w] = real(0.0)
        close_rows(s, w, False, 1)


@wp.func
def pull_ports(s: wp.array(dtype=Direct), w: int):
    """Ropes between links pull so that their ends stay on their bodies."""
    rows = s[0].touch.ports.count
    pull_by(s, w)
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        s[0].touch.ports.kept_l[b, w] = s[0].work.change_l[b, w]
        s[0].touch.ports.kept_a[b, w] = s[0].work.change_a[b, w]
    clear_pushes(s, w, 0, s[0].tree.count)
    for k in range(rows):
        for at in range(SIDES * k, SIDES * k + SIDES):
            b = s[0].touch.ports.body[at, w]
            if b >= 0:
                link = s[0].rows.link_of[b]
                if link >= 0:
                    x = s[0].touch.ports.x[k, w]
                    s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + s[0].touch.ports.push_l[at, w] * x
                    s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + s[0].touch.ports.push_a[at, w] * x
    respond(s, w, 0, s[0].tree.count)
    close_cut(s, w)
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        s[0].work.change_l[b, w] = s[0].work.change_l[b, w] + s[0].touch.ports.kept_l[b, w]
        s[0].work.change_a[b, w] = s[0].work.change_a[b, w] + s[0].touch.ports.kept_a[b, w]


@wp.func
def span_of(s: wp.array(dtype=Direct), i: int, w: int, side: int):
    """The links of the tree that one of a point's bodies belongs to: first, and one past the last."""
    body = s[0].contacts.body_b[i, w]
    if side == 1:
        body = s[0].contacts.body_a[i, w]
    link = s[0].rows.link_of[body]
    if link < 0:
        return 0, 0
    return s[0].touch.tree_first[link], s[0].touch.tree_end[link]


@wp.func
def respond_to(s: wp.array(dtype=Direct), i: int, w: int, P: vec3, turns: bool):
    """Changes of all twists by an impulse, or a moment, at one point."""
    if turns:
        turn_link(s, i, w, P)
    else:
        push_link(s, i, w, P)
    start, end = span_of(s, i, w, 0)
    other, last = span_of(s, i, w, 1)
    all = ties_trees(s)
    if all:
        start = int(0)
        end = s[0].tree.count
        other = int(0)
    for side in range(2):
        if side == 0 or other != start:
            if side == 1:
                start = other
                end = last
            respond(s, w, start, end)
    if all:
        close_loops(s, w)


@wp.func
def forget_response(s: wp.array(dtype=Direct), i: int, w: int):
    """No changes any more of the links that `respond_to` may have moved."""
    if ties_trees(s):
        clear_changes(s, w, 0, s[0].tree.count)
        return
    start, end = span_of(s, i, w, 0)
    clear_changes(s, w, start, end)
    other, last = span_of(s, i, w, 1)
    if other != start:
        clear_changes(s, w, other, last)


# ---- the response at points alone ---------------------------------------------------------------------------------------


@wp.func
def mark_near(s: wp.array(dtype=Direct), body: int, w: int):
    """A body's link, and those that it hangs on."""
    link = s[0].rows.link_of[body]
    while link >= 0 and s[0].touch.near_at[link, w] == 0:
        s[0].touch.near_at[link, w] = 1
        link = s[0].tree.row[link].base_link


@wp.func
def find_near(s: wp.array(dtype=Direct), w: int):
    """Links that an entry of the small problem is at, or that lie between one and its root: points feel nothing of the others.

    Into `near`, in order, and into `near_at` how many of them come before a link.
    """
    links = s[0].tree.count
    for i in range(links + 1):
        s[0].touch.near_at[i, w] = 0
    for k in range(s[0].cone[0].count[w]):
        i = s[0].touch.point[k, w]
        mark_near(s, s[0].contacts.body_a[i, w], w)
        mark_near(s, s[0].contacts.body_b[i, w], w)
        if s[0].contacts.belt_body[i, w] > 0:
            mark_near(s, s[0].contacts.belt_body[i, w], w)
            mark_near(s, s[0].contacts.belt_frame[i, w], w)
    for at in range(SIDES * s[0].touch.ports.count):
        if s[0].touch.ports.body[at, w] >= 0:
            mark_near(s, s[0].touch.ports.body[at, w], w)
    count = int(0)
    for i in range(links + 1):
        marked = s[0].touch.near_at[i, w]
        s[0].touch.near_at[i, w] = count
        if marked == 1:
            s[0].touch.near[count, w] = i
            count = count + 1


@wp.func
def respond_near(s: wp.array(dtype=Direct), w: int, start: int, end: int):
    """Changes of the twists of those of links start … end − 1 that points feel, by the impulses on links."""
    first = s[0].touch.near_at[start, w]
    last = s[0].touch.near_at[end, w]
    for back in range(last - first):
        i = natural(s[0].touch.near[last - 1 - back, w])
        if wp.length_sq(s[0].work.Q_l[i, w]) + wp.length_sq(s[0].work.Q_a[i, w]) > real(0.0):
            hand_push(s, i, w)
        else:
            leave_link(s, i, w)
    for n in range(first, last):
        follow_one(s, natural(s[0].touch.near[n, w]), w, real(0.0))


@wp.func
def leave_link(s: wp.array(dtype=Direct), i: int, w: int):
    """What `hand_push` leaves of a link on which nothing acts."""
    if s[0].work.kind[i, w] == LOOSE:
        b = s[0].tree.row[i].body
        s[0].work.change_l[b, w] = vec3(real(0.0))
        s[0].work.change_a[b, w] = vec3(real(0.0))
        return
    s[0].work.change_q[i, w] = vec3(real(0.0))
    for at in range(s[0].tree.row[i].v_start, s[0].tree.row[i].v_start + s[0].tree.row[i].v_size):
        s[0].work.change[at, w] = real(0.0)


@wp.func
def respond_at_points(s: wp.array(dtype=Direct), i: int, w: int, P: vec3, turns: bool):
    """`respond_to` as far as points feel it, but for ropes between links (`add_ports`)."""
    if s[0].closures.count > 0:
        respond_to(s, i, w, P, turns)
        return
    if turns:
        turn_link(s, i, w, P)
    else:
        push_link(s, i, w, P)
    start, end = span_of(s, i, w, 0)
    respond_near(s, w, start, end)
    other, last = span_of(s, i, w, 1)
    if other != start:
        respond_near(s, w, other, last)


@wp.func
def forget_at_points(s: wp.array(dtype=Direct), i: int, w: int):
    """`forget_response` after it: none of the other tree's changes are left for the next one."""
    if s[0].closures.count > 0:
        forget_response(s, i, w)
        return
    for side in range(2):
        start, end = span_of(s, i, w, side)
        for n in range(s[0].touch.near_at[start, w], s[0].touch.near_at[end, w]):
            b = s[0].tree.row[s[0].touch.near[n, w]].body
            s[0].work.change_l[b, w] = vec3(real(0.0))
            s[0].work.change_a[b, w] = vec3(real(0.0))


@wp.func
def find_ports(s: wp.array(dtype=Direct), w: int):
    """What one on each row of the ports does at all entries of the small problem, into `ports.W`."""
    for k in range(s[0].touch.ports.count):
        for at in range(SIDES * k, SIDES * k + SIDES):
            b = s[0].touch.ports.body[at, w]
            if b >= 0 and s[0].rows.link_of[wp.max(b, 0)] >= 0:
                link = s[0].rows.link_of[b]
                s[0].work.Q_l[link, w] = s[0].work.Q_l[link, w] + s[0].touch.ports.push_l[at, w]
                s[0].work.Q_a[link, w] = s[0].work.Q_a[link, w] + s[0].touch.ports.push_a[at, w]
        respond_near(s, w, 0, s[0].tree.count)
        for m in range(s[0].cone[0].count[w]):
            u = rate_of(s, m, w, s[0].work.change_l, s[0].work.change_a)
            for y in range(3):
                s[0].touch.ports.W[3 * m + y, k, w] = wp.dot(row_of(s, m, w, y), u)
        for n in range(s[0].touch.near_at[s[0].tree.count, w]):
            b = s[0].tree.row[s[0].touch.near[n, w]].body
            s[0].work.change_l[b, w] = vec3(real(0.0))
            s[0].work.change_a[b, w] = vec3(real(0.0))


@wp.func
def pull_by(s: wp.array(dtype=Direct), w: int):
    """Into `ports.x`: how ropes between links answer to the changes of now, so that their ends stay on their bodies."""
    rows = s[0].touch.ports.count
    for k in range(rows):
        u = real(0.0)
        for at in range(SIDES * k, SIDES * k + SIDES):
            b = s[0].touch.ports.body[at, w]
            if b >= 0:
                u = u + wp.dot(s[0].touch.ports.rate_l[at, w], s[0].work.change_l[b, w])
                u = u + wp.dot(s[0].touch.ports.rate_a[at, w], s[0].work.change_a[b, w])
        s[0].touch.ports.x[k, w] = -u
    substitute(s[0].touch.ports.matrix, s[0].touch.ports.first, s[0].touch.ports.last, s[0].touch.ports.x, rows, w)


@wp.func
def add_ports(s: wp.array(dtype=Direct), w: int, column: int):
    """What ropes between links add to a column of W, whose changes are those of now."""
    pull_by(s, w)
    for r in range(3 * s[0].cone[0].count[w]):
        more = real(0.0)
        for k in range(s[0].touch.ports.count):
            more = more + s[0].touch.ports.W[r, k, w] * s[0].touch.ports.x[k, w]
        s[0].cone[0].W[r, column, w] = s[0].cone[0].W[r, column, w] + more


@wp.func
def softness_of(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """How far a soft point yields to its own impulse; 0 of a hard one."""
    return softness(s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], s[0].drift[w])


@wp.func
def spring_speed(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """The speed that stands for the spring of a soft point; 0 of a hard one."""
    if s[0].contacts.stiffness[i, w] <= real(0.0):
        return real(0.0)
    return approach(s[0].contacts.gap[i, w], s[0].contacts.stiffness[i, w], s[0].contacts.damping[i, w], s[0].drift[w])
