"""The response of trees at points of contact, W, and the speeds there at the end of the step (theory: contacts and trees)."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.rows import clear_changes
from sharnir.engine.direct.energy.touch_ease import any_rigid, free_response, is_rigid, stands
from sharnir.engine.direct.energy.touch_points import (
    add_ports,
    find_near,
    find_ports,
    forget_at_points,
    rate_of,
    respond_at_points,
    row_of,
    softness_of,
    spring_speed,
)
from sharnir.laws.cone import own_size


@wp.func
def acts_along(s: wp.array(dtype=Direct), k: int, w: int, x: int) -> bool:
    """Whether row x of an entry can carry anything."""
    if x > 0:
        return s[0].cone[0].rubs[k, w] == 1
    return s[0].cone[0].host[k, w] < 0 or s[0].cone[0].spins[k, w] == 1


@wp.func
def find_response(s: wp.array(dtype=Direct), w: int):
    """W, and b = u − W p at the speeds that the step led to."""
    respond_all(s, w)
    if any_rigid(s, w):
        loosen(s, w)
    find_speeds(s, w)


@wp.func
def loosen(s: wp.array(dtype=Direct), w: int):
    """Points that give way to nothing at all get a response of their own, so that they have a law."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0 and c[0].host[k, w] < 0:
            if is_rigid(s, i, w, own_size(c, k, w)):
                for x in range(3):
                    if acts_along(s, k, w, x):
                        c[0].W[3 * k + x, 3 * k + x, w] = c[0].W[3 * k + x, 3 * k + x, w] + free_response(s, i, w)


@wp.func
def respond_all(s: wp.array(dtype=Direct), w: int):
    """W of the small problem."""
    c = s[0].cone
    count = c[0].count[w]
    find_near(s, w)
    clear_changes(s, w, 0, s[0].tree.count)
    for n in range(s[0].other_count):
        s[0].work.change_l[s[0].others[n], w] = vec3(real(0.0))
        s[0].work.change_a[s[0].others[n], w] = vec3(real(0.0))
    tied = s[0].touch.ports.count > 0 and s[0].closures.count == 0
    if tied:
        find_ports(s, w)
    for k in range(count):
        i = s[0].touch.point[k, w]
        for x in range(3):
            if acts_along(s, k, w, x):
                respond_at_points(s, i, w, row_of(s, k, w, x), c[0].host[k, w] >= 0)
                for m in range(count):
                    u = rate_of(s, m, w, s[0].work.change_l, s[0].work.change_a)
                    for y in range(3):
                        c[0].W[3 * m + y, 3 * k + x, w] = wp.dot(row_of(s, m, w, y), u)
                if tied:
                    add_ports(s, w, 3 * k + x)
                forget_at_points(s, i, w)
            else:
                for m in range(3 * count):
                    c[0].W[m, 3 * k + x, w] = real(0.0)
    for k in range(count):
        i = s[0].touch.point[k, w]
        p = s[0].touch.p[i, w]
        if c[0].host[k, w] >= 0:
            p = s[0].touch.roll[i, w]
        for x in range(3):
            c[0].p[3 * k + x, w] = p[x]
        if c[0].host[k, w] < 0:
            c[0].W[3 * k, 3 * k, w] = c[0].W[3 * k, 3 * k, w] + softness_of(s, i, w)
            for x in range(2):
                c[0].W[3 * k + x + 1, 3 * k + x + 1, w] = c[0].W[3 * k + x + 1, 3 * k + x + 1, w] + s[0].touch.yields[i, w][x]


@wp.func
def end_rate(s: wp.array(dtype=Direct), k: int, w: int) -> vec3:
    """The velocity, or spin, that an entry feels at the end of the step; none of bodies that friction stopped."""
    i = s[0].touch.point[k, w]
    u = rate_of(s, k, w, s[0].work.acceleration, s[0].work.turning)
    if s[0].cone[0].host[k, w] >= 0:
        return u
    a = s[0].contacts.body_a[i, w]
    b = s[0].contacts.body_b[i, w]
    if stands(s, b, w):
        u = u - s[0].work.acceleration[b, w] - wp.cross(s[0].work.turning[b, w], s[0].touch.r_b[i, w])
    if stands(s, a, w):
        u = u + s[0].work.acceleration[a, w] + wp.cross(s[0].work.turning[a, w], s[0].touch.r_a[i, w])
    return u + s[0].contacts.surface[i, w]


@wp.func
def find_speeds(s: wp.array(dtype=Direct), w: int):
    """b of the small problem, from what the step with the impulses of now led to; but for entries of ropes."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        if s[0].touch.point[k, w] < 0:
            continue
        u = end_rate(s, k, w)
        for x in range(3):
            r = 3 * k + x
            left = wp.dot(row_of(s, k, w, x), u)
            for y in range(3 * c[0].count[w]):
                left = left - c[0].W[r, y, w] * c[0].p[y, w]
            if x == 0 and c[0].host[k, w] < 0:  # a soft point is pushed by its spring
                i = s[0].touch.point[k, w]
                left = left + spring_speed(s, i, w) + softness_of(s, i, w) * c[0].p[r, w]
            elif c[0].host[k, w] < 0:
                i = s[0].touch.point[k, w]
                left = left + s[0].touch.lead[i, w][x - 1] + s[0].touch.yields[i, w][x - 1] * c[0].p[r, w]
            c[0].b[r, w] = left
