"""Held axes that yield to contacts: the response where friction or a limit holds a joint, as if it did not.

An impulse at a point of a link that friction holds moves nothing, up to the bound of the friction; beyond it the link gives way
as if it were free. Newton's method on the first of these pieces finds no impulse at all, or one that is far off, and may go to
and fro between both. With the response of the free link instead, no step of the method is too large: speeds change by no more
than that tells. It is taken where a point does not give way, and where rounds do not meet; passes know nothing of it.
"""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.balls import FREE, HELD, NONE
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.links import GAPS, inward
from sharnir.engine.direct.energy.rows import clear_changes, factor_rows
from sharnir.laws.cone import block, own_size

RIGID = wp.constant(real(3.0e-4))  # of its response if nothing held it: a point that yields less does not give way
REDUNDANT = wp.constant(real(1.0e-4))  # of the cube of a point's mean response: a smaller determinant is that of no response
YIELDS = wp.constant(real(1.0e-3))  # of that mean response: how far friction gives way there
STALLS = wp.constant(real(0.3))  # of what was missed: a round that leaves more is no better


@wp.func
def locks_of(s: wp.array(dtype=Direct), w: int) -> int:
    """A number that tells which axes are held, 0 where none is."""
    out = int(0)
    if s[0].acting == 1:
        for i in range(s[0].tree.count):
            kind = s[0].work.kind[i, w]
            held = int(kind == HELD)
            if s[0].touch.eased[w] == 1:
                held = s[0].touch.held[i, w]
            if kind == NONE and s[0].linear.acts[i, w] == 1:
                held = s[0].linear.locks[i, w]
            if held > 0:
                out = (out * 31 + 7 * i + held) % 1000003 + 1
    return out


@wp.func
def stands(s: wp.array(dtype=Direct), body: int, w: int) -> bool:
    """Whether friction holds a body, and all that it hangs on, at the end of the step.

    Its velocity is none, then. That of the passes is left over from the way that it still went: the means of both ends turn with
    it, by ¼Δt ω² r; and is taken when the step is kept (`projection`).
    """
    link = s[0].rows.link_of[body]
    if link < 0 or s[0].acting == 0 or s[0].closures.count > 0:
        return False
    base = int(0)
    while link >= 0:
        kind = s[0].work.kind[link, w]
        if s[0].linear.acts[link, w] == 0 or (kind != NONE and kind != HELD):
            return False
        v0 = s[0].tree.row[link].v_start
        for at in range(v0, v0 + s[0].tree.row[link].v_size):
            if s[0].laws.stuck[at, w] != 1:
                return False
        base = s[0].tree.row[link].base
        link = s[0].tree.row[link].base_link
    return wp.length_sq(s[0].work.acceleration[base, w]) + wp.length_sq(s[0].work.turning[base, w]) == real(0.0)


@wp.func
def free_locks(s: wp.array(dtype=Direct), w: int, share: real):
    """Factors in which axes that are held yield by a share of what they would if they were free."""
    s[0].touch.ease[w] = share
    if s[0].touch.eased[w] == 0:
        for i in range(s[0].tree.count):
            s[0].touch.held[i, w] = int(s[0].work.kind[i, w] == HELD)
            if s[0].work.kind[i, w] == HELD:
                s[0].work.kind[i, w] = FREE
    s[0].touch.eased[w] = 1
    clear_changes(s, w, 0, s[0].tree.count)
    inward(s, w, GAPS)
    if s[0].closures.count > 0:
        factor_rows(s, w)
    s[0].touch.ease[w] = real(0.0)


@wp.func
def is_rigid(s: wp.array(dtype=Direct), i: int, w: int, own: real) -> bool:
    """Whether a point with this response of its own does not give way at all."""
    return not own > RIGID * free_response(s, i, w)


@wp.func
def free_response(s: wp.array(dtype=Direct), i: int, w: int) -> real:
    """About how a point gives way if nothing holds its bodies."""
    return s[0].whole.inv_mass[s[0].contacts.body_a[i, w], w] + s[0].whole.inv_mass[s[0].contacts.body_b[i, w], w]


@wp.func
def any_rigid(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether a point of the small problem does not give way at all."""
    c = s[0].cone
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if i >= 0 and c[0].host[k, w] < 0:
            if is_rigid(s, i, w, own_size(c, k, w)):
                return True
    return False


@wp.func
def yield_along(s: wp.array(dtype=Direct), w: int):
    """Friction where a point cannot move one way at all gives way a little: by ε w (P − P°), P° its impulse in the last step.

    The tip of a lever, or of a straight arm, moves across it alone. What holds it along the arm is determined by nothing but
    what velocities are off by (`stands`), divided by a response that is all but none.
    """
    c = s[0].cone
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if i < 0 or c[0].host[k, w] >= 0 or c[0].rubs[k, w] == 0 or wp.length_sq(s[0].touch.yields[i, w]) > real(0.0):
            continue
        p = s[0].touch.p[i, w]
        if s[0].touch.turn[w] > 0 and p[0] > real(0.0):
            continue
        mu = s[0].touch.mu[i, w]
        r = 3 * k
        scale = wp.diag(vec3(real(1.0), real(1.0) / mu[0], real(1.0) / mu[1]))
        B = scale * block(c, k, k, w) * scale
        own = wp.trace(B) / real(3.0)
        if wp.determinant(B) > REDUNDANT * own * own * own:
            continue
        for x in range(2):
            by = YIELDS * own * mu[x] * mu[x]
            s[0].touch.yields[i, w][x] = by
            s[0].touch.lead[i, w][x] = -by * p[x + 1]
            c[0].W[r + 1 + x, r + 1 + x, w] = c[0].W[r + 1 + x, r + 1 + x, w] + by


@wp.func
def share_of(s: wp.array(dtype=Direct), w: int) -> real:
    """By which share held axes yield in the next response: none, but after rounds that were no better; then all, a half, …"""
    n = s[0].touch.stalled[w] % 4
    if n == 0 or s[0].touch.alone == 0:
        return real(0.0)
    return real(2.0) / real(1 << n)
