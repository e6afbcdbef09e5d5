"""Contacts beside joints and ropes: the response at the points is that of trees with ropes on them (theory: contacts and trees).

A rope that hangs on one body stands in the factors of its link. One that ties links together pulls at its ports so that its ends
stay on their bodies: rows with the ropes' own mobility in their matrix (`rope.ports`), which W then knows.
"""

import warp as wp

from sharnir.core.types import mat33, real, vec3
from sharnir.engine.direct.data import SIDES, Direct
from sharnir.engine.rope.data import BODY, RopeStep
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.ports import WINCH, is_wound, moving_arm, port_arm


@wp.func
def column(A: mat33, x: int) -> vec3:
    return vec3(A[0, x], A[1, x], A[2, x])


@wp.func
def note_ports(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Rows of the ports, as pushes on bodies, for the factors of now."""
    zero = vec3(real(0.0))
    for a in range(p[0].count):
        leg = p[0].leg[a + 1] - 1
        k = p[0].leg_rope[leg]
        for x in range(3):
            at = SIDES * (3 * a + x)
            e = vec3(real(0.0))
            e[x] = real(1.0)
            s[0].touch.ports.body[at, w] = p[0].body[a]
            s[0].touch.ports.body[at + 2, w] = -1
            if p[0].turn[a] == WINCH:
                on = real(int(x == 0 and is_wound(r, p, a, w)))
                push = r[0].work.lever[p[0].rope[a], w] * on
                rate = r[0].work.drum_rate[p[0].rope[a], w] * on
                put(s, at, w, zero, push, zero, rate)
                s[0].touch.ports.body[at + 2, w] = r[0].ropes.drum_parent[p[0].rope[a]]
                put(s, at + 2, w, zero, -push, zero, -rate)
            elif p[0].turn[a] == 1:
                moment = -column(p[0].L[a, w], x)
                put(s, at, w, zero, moment, zero, moment)
            else:
                put(s, at, w, -e, -wp.cross(port_arm(r, p, a, w), e), -e, -wp.cross(moving_arm(r, p, a, w), e))
            s[0].touch.ports.body[at + 1, w] = -1
            if r[0].ropes.kind[2 * k] == BODY:
                s[0].touch.ports.body[at + 1, w] = r[0].ropes.body[2 * k]
                f = column(p[0].root_X[leg, w], x)
                l = column(p[0].root_Y[leg, w], x)
                mean = l + wp.cross(r[0].work.arm[2 * k, w], f)
                put(s, at + 1, w, f, mean, f, l + wp.cross(r[0].work.end_arm[2 * k, w], f))


@wp.func
def put(s: wp.array(dtype=Direct), at: int, w: int, push_l: vec3, push_a: vec3, rate_l: vec3, rate_a: vec3):
    s[0].touch.ports.push_l[at, w] = push_l
    s[0].touch.ports.push_a[at, w] = push_a
    s[0].touch.ports.rate_l[at, w] = rate_l
    s[0].touch.ports.rate_a[at, w] = rate_a
