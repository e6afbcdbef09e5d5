"""Between the specialized and the generic form of steps: in which axes twists are stored, and which worlds need the latter."""

import warp as wp

from sharnir.core.spatial import some, unit
from sharnir.core.types import quat, real, vec3
from sharnir.engine.tree.code import CHOICES
from sharnir.engine.tree.history import KEPT
from sharnir.engine.tree.runtime import (
    BALL_HISTORY,
    BALL_ROTATION,
    CPP,
    FREE_ROTATION,
    HAS_LAWS,
    IS_BALL,
    IS_FREE,
    IS_HINGE,
    IS_OTHER,
    IS_OWN,
    IS_PRESCRIBED,
    IS_PUSHED,
    IS_ROTOR,
    IS_STEEP,
    IS_TURNS,
    TURNS_ROTATION,
    Q,
    TreeStep,
    get_quat,
    put_triple,
    triple,
    twist_row,
)

HISTORY_ROWS = wp.constant(1 + KEPT[CPP])  # guesses and mean speeds of a ball
GEARS = wp.constant(CHOICES)


@wp.func
def turn_twists(t: wp.array(dtype=TreeStep), w: int, to_own: int):
    """Bring what is stored to the links' own axes, or to those of the world, if it is in the others."""
    if (t[0].state.tree[1, w] >= IS_OWN) == (to_own == 1):
        return
    t[0].state.tree[1, w] = t[0].state.tree[1, w] + IS_OWN * real(2 * to_own - 1)
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        if kind < 0:
            continue
        row = t[0].first[i]
        base = t[0].base[i + t[0].links * w]
        carried = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        if base >= 0:
            carried = t[0].turn[base, w]
        turn = carried * t[0].frame[i, w]
        if kind == IS_FREE or kind == IS_PRESCRIBED:
            turn = get_quat(t, row + FREE_ROTATION, w)
        elif kind == IS_BALL:
            turn = turn * get_quat(t, row + BALL_ROTATION, w)
            for k in range(HISTORY_ROWS):
                at = row + BALL_HISTORY + 3 * k
                put_triple(t, at, w, turned_to(carried, triple(t, at, w), to_own))
        elif kind == IS_TURNS:
            turn = turn * get_quat(t, row + TURNS_ROTATION, w)
        elif kind == IS_HINGE or kind == IS_ROTOR:
            q = real(0.5) * t[0].state.tree[row + Q, w]
            turn = turn * quat(real(0.0), real(0.0), wp.sin(q), wp.cos(q))
        turn = unit(turn)
        t[0].turn[i, w] = turn
        at = row + twist_row(kind)
        put_triple(t, at, w, turned_to(turn, triple(t, at, w), to_own))
        put_triple(t, at + 3, w, turned_to(turn, triple(t, at + 3, w), to_own))


@wp.func
def turned_to(turn: quat, x: vec3, to_own: int) -> vec3:
    """A vector of the world in the axes of a frame, or the reverse."""
    if to_own == 1:
        return wp.quat_rotate_inv(turn, x)
    return wp.quat_rotate(turn, x)


@wp.func
def unlike(t: wp.array(dtype=TreeStep), w: int) -> int:
    """Why specialized code cannot make the next step of a world (a mark); 0 if it can. Values of laws it compares itself."""
    for i in range(t[0].links):
        at = i + t[0].links * w
        b = t[0].body[i]
        if t[0].kind[at] != t[0].kind_built[i]:
            return IS_OTHER
        if b >= 0:
            if some(t[0].control.force[b, w]) or some(t[0].control.torque[b, w]):
                return IS_PUSHED
            if some(t[0].control.force_once[b, w]) or some(t[0].control.torque_once[b, w]):
                return IS_PUSHED
    gear = int(t[0].state.tree[1, w]) % GEARS
    if gear > 0 and t[0].state.tree[0, w] != real(0.0):
        return IS_STEEP
    return 0


@wp.func
def is_taken_up(t: wp.array(dtype=TreeStep), w: int) -> bool:
    """Whether specialized code can go on with a world; other laws are those of a whole call."""
    if t[0].special == 0:
        return False
    if t[0].mark[w] == HAS_LAWS:
        return False
    return unlike(t, w) == 0
