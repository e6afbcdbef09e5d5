"""Impacts of points of contact on trees, in rounds (theory: contacts and trees)."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.touch_points import BOUNCES, rate_of, row_of
from sharnir.laws.cone import rate, strike_round, struck_speed

IMPACTS = wp.constant(64)  # rounds of an impact, at most


@wp.func
def leaving(s: wp.array(dtype=Direct), i: int, w: int, free: real) -> real:
    """The normal speed at the end of the step of a point that bounces in it, m/s; `free`: if it did not.

    It has e² of the energy that it has at the surface, at the place χ + ½Δt (u₀ + u₁) that the step leads to:
    u₁² + 2a (χ + ½Δt (u₀ + u₁)) = e² (u₀² + 2aχ), with a the acceleration towards the surface.
    """
    e = s[0].contacts.restitution[i, w]
    h = s[0].drift[w]
    before = s[0].touch.before[i, w]
    a = wp.max(real(0.0), (before - free) / h)
    gap = wp.max(real(0.0), s[0].contacts.gap[i, w])
    half = real(0.5) * a * h
    room = half * half - real(2.0) * (a * gap + half * before) + e * e * (before * before + real(2.0) * a * gap)
    return wp.max(real(0.0), wp.sqrt(wp.max(real(0.0), room)) - half)


@wp.func
def any_struck(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether a point comes in fast enough to bounce."""
    for k in range(s[0].cone[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0:
            if s[0].touch.before[i, w] < -BOUNCES and s[0].contacts.restitution[i, w] > real(0.0):
                return True
    return False


@wp.func
def strike(s: wp.array(dtype=Direct), w: int) -> bool:
    """Impacts, in rounds: each for the points that still approach, so that a blow runs through a row of bodies.

    Returns whether there were any.
    """
    c = s[0].cone
    if not any_struck(s, w):
        return False
    for k in range(c[0].count[w]):
        if s[0].touch.point[k, w] < 0:  # ropes do not bounce
            for x in range(3):
                c[0].best[3 * k + x, w] = real(0.0)
                c[0].blow[3 * k + x, w] = real(0.0)
                c[0].guess[3 * k + x, w] = real(0.0)
            continue
        start = rate_of(s, k, w, s[0].state.velocity, s[0].state.spin)
        if c[0].host[k, w] < 0:
            start = start + s[0].contacts.surface[s[0].touch.point[k, w], w]
        for x in range(3):
            c[0].best[3 * k + x, w] = wp.dot(row_of(s, k, w, x), start)
            c[0].blow[3 * k + x, w] = real(0.0)
            c[0].guess[3 * k + x, w] = real(0.0)
    for n in range(IMPACTS):
        meets = int(0)
        for k in range(c[0].count[w]):
            i = s[0].touch.point[k, w]
            c[0].aim[k, w] = real(1.0e30)
            for x in range(3):
                c[0].rhs[3 * k + x, w] = real(0.0)
            if c[0].host[k, w] >= 0 or i < 0:
                continue
            u = struck_speed(c, 3 * k, w)
            leaves = -s[0].contacts.restitution[i, w] * u
            if n == 0:  # forces act on it for the rest of the step; not so what others pushed before, and may not after the blow
                free = wp.max(rate(c, 3 * k, w), c[0].b[3 * k, w])
                c[0].rhs[3 * k, w] = wp.max(u - free, real(0.0))
                leaves = leaving(s, i, w, free) - wp.min(free - u, real(0.0))
            if u < -BOUNCES:
                c[0].aim[k, w] = leaves
                meets = meets + 1
        if meets == 0:
            break
        strike_round(c, w, real(1.0e-12))
    for k in range(c[0].count[w]):
        if c[0].host[k, w] >= 0 or s[0].touch.point[k, w] < 0:
            continue
        s[0].touch.blow[s[0].touch.point[k, w], w] = vec3(c[0].blow[3 * k, w], c[0].blow[3 * k + 1, w], c[0].blow[3 * k + 2, w])
    for r in range(3 * c[0].count[w]):
        for x in range(3 * c[0].count[w]):
            c[0].b[r, w] = c[0].b[r, w] + c[0].W[r, x, w] * c[0].blow[x, w]
    return True
