"""Points of contact that give way to nothing, and what friction and limits of the joints hold there."""

import warp as wp

from sharnir.core.types import real
from sharnir.engine.direct.balls import HELD, NONE
from sharnir.engine.direct.data import Direct
from sharnir.laws.cone import own_size

RIGID = wp.constant(real(3.0e-4))  # of its response if nothing held it: a point that yields less does not give way


@wp.func
def any_held(s: wp.array(dtype=Direct), w: int) -> bool:
    """Whether friction or a limit holds an axis."""
    if s[0].acting == 1:
        for i in range(s[0].tree.count):
            kind = s[0].work.kind[i, w]
            if kind == HELD:
                return True
            if kind == NONE and s[0].linear.acts[i, w] == 1 and s[0].linear.locks[i, w] > 0:
                return True
    return False


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
