"""Closures in the steps of a simulation: which of them hold in a world, and what they carried (`runtime`)."""

from typing import Any

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.tree.closures import CAST, GEAR, OF_CABLES, OF_CASTS, PARAMETERS, ROD, RUN, SPAN, SPRING
from sharnir.engine.tree.forest import OFF
from sharnir.engine.tree.row_storage import LINK_FIELDS, WORK
from sharnir.engine.tree.runtime import memory_of
from sharnir.engine.tree.storage import ROW, ROW_APART, offsets

GIVEN, KEPT = offsets(PARAMETERS), offsets(WORK)
GIVEN_SIZE, KEPT_SIZE = wp.constant(sum(PARAMETERS.values())), wp.constant(sum(WORK.values()))
AT_LENGTH, AT_STIFFNESS, AT_DAMPING, AT_ON = (wp.constant(GIVEN[n]) for n in ("length", "stiffness", "damping", "on"))
AT_FORCE, AT_BLOW, AT_SLIP = (wp.constant(KEPT[name]) for name in ("force", "blow", "slip"))
OF_LINK = wp.constant(ROW + ROW_APART + sum(LINK_FIELDS.values()))  # working memory of a link, with that for rows
AT_ANGLE_A, AT_ANGLE_B, AT_SLIDES, AT_GRIP, AT_SPANS_BACK, AT_SPANS = (
    wp.constant(GIVEN[OF_CABLES[n]]) for n in ("angle_a", "angle_b", "slides", "friction", "spans_back", "spans")
)
AT_OMEGA, AT_INERTIA, AT_TORQUE = (wp.constant(OF_CASTS.index(n)) for n in ("omega", "inertia", "torque"))
IS_ROD, IS_SPRING, IS_GEAR, IS_SPAN, IS_RUN, IS_CAST, IS_OUT = (wp.constant(k) for k in (ROD, SPRING, GEAR, SPAN, RUN, CAST, OFF))


@wp.func
def give(t: Any, c: int, what: int, w: int, x: real):
    """Set a parameter of a closure."""
    t[0].row_numbers[(GIVEN_SIZE * c + what) * t[0].worlds + w] = x


@wp.func
def given(t: Any, c: int, what: int, w: int) -> real:
    """A parameter of a closure."""
    return t[0].row_numbers[(GIVEN_SIZE * c + what) * t[0].worlds + w]


@wp.func
def carried(t: Any, c: int, w: int) -> vec3:
    """The force that a closure carries (`rows.report_rows`)."""
    return kept(t, c, w, AT_FORCE)


@wp.func
def kept(t: Any, c: int, w: int, what: int) -> vec3:
    """A vector of a closure in the working memory."""
    out = vec3(real(0.0))
    for k in range(3):
        at = OF_LINK * (t[0].links + 1) + KEPT_SIZE * c + what + k
        out[k] = t[0].memory[at * t[0].memory_number + memory_of(t, w)]
    return out


@wp.func
def moves(t: Any, link: int, w: int) -> bool:
    """Whether a link takes part in steps; the ground does."""
    if link < 0:
        return True
    return t[0].kind[link + t[0].links * w] != IS_OUT


@wp.func
def holds(t: Any, link: int, w: int) -> bool:
    """Whether the joint of a link is enabled."""
    j = t[0].joint[link]
    return j < 0 or t[0].control.enabled[wp.max(j, 0), w] != 0


@wp.func
def set_rows(t: Any, w: int) -> bool:
    """Which closures hold in this world, and those of their numbers that may be changed; whether some do that did not."""
    changed = bool(False)
    for c in range(t[0].closures):
        a = t[0].closure_a[c]
        b = t[0].closure_b[c]
        n = t[0].closure_item[c]
        on = moves(t, a, w) and moves(t, b, w)
        if t[0].closure_kind[c] == IS_ROD:
            on = on and t[0].control.enabled[n, w] != 0
            give(t, c, AT_LENGTH, w, t[0].joints.rod[n])
        elif t[0].closure_kind[c] == IS_GEAR:
            on = on and holds(t, a, w) and holds(t, b, w)
            give(t, c, AT_LENGTH, w, t[0].state.gear_start[n, w])
        elif t[0].closure_kind[c] == IS_SPRING:
            give(t, c, AT_LENGTH, w, t[0].springs.rest[n, w])
            give(t, c, AT_STIFFNESS, w, t[0].springs.stiffness[n, w])
            give(t, c, AT_DAMPING, w, t[0].springs.damping[n, w])
        elif t[0].closure_kind[c] == IS_SPAN:
            give(t, c, AT_ANGLE_A, w, t[0].state.cable_angle[2 * n, w])
            give(t, c, AT_ANGLE_B, w, t[0].state.cable_angle[2 * n + 1, w])
        elif t[0].closure_kind[c] == IS_RUN:
            give(t, c, AT_LENGTH, w, t[0].state.cable_rest[n, w])
            give(t, c, AT_SLIDES, w, real(t[0].state.cable_slides[n, w]))
            give(t, c, AT_GRIP, w, t[0].cables.friction[n, w])
            first = c - int(given(t, c, AT_SPANS_BACK, w))  # spans stand before their runs
            for k in range(first, first + int(given(t, c, AT_SPANS, w))):
                on = on and given(t, k, AT_ON, w) > real(0.5)
        elif t[0].closure_kind[c] == IS_CAST:
            k = t[0].cast_belt[n]
            for i in range(2):
                give(t, c, AT_OMEGA + i, w, t[0].state.drive_state[t[0].casts.state[k] + i, w])
            give(t, c, AT_INERTIA, w, t[0].casts.inertia[k])
            give(t, c, AT_INERTIA + 1, w, t[0].casts.rolling[k])
            for i in range(5):
                give(t, c, AT_TORQUE + i, w, t[0].control.drive_command[t[0].casts.command[k] + i, w])
        x = real(int(on))
        give(t, c, AT_ON, w, x)
        changed = changed or x > t[0].state.tree[t[0].closure_first + c, w]
        t[0].state.tree[t[0].closure_first + c, w] = x
    return changed


@wp.func
def forget_rows(t: Any, w: int):
    """No impulses of the last steps: bodies were moved."""
    for k in range(t[0].closure_first + t[0].closures, t[0].state.tree.shape[0]):
        t[0].state.tree[k, w] = real(0.0)


@wp.func
def store_more(t: Any, w: int):
    """Angles and lengths of cables, angles and speeds of raycast wheels."""
    for c in range(t[0].closures):
        n = t[0].closure_item[c]
        if t[0].closure_kind[c] == IS_SPAN:
            t[0].state.cable_angle[2 * n, w] = given(t, c, AT_ANGLE_A, w)
            t[0].state.cable_angle[2 * n + 1, w] = given(t, c, AT_ANGLE_B, w)
        elif t[0].closure_kind[c] == IS_RUN:
            t[0].state.cable_rest[n, w] = given(t, c, AT_LENGTH, w)
            t[0].state.cable_slides[n, w] = int(given(t, c, AT_SLIDES, w))
        elif t[0].closure_kind[c] == IS_CAST:
            row = t[0].casts.state[t[0].cast_belt[n]]
            for i in range(2):
                t[0].state.drive_state[row + i, w] = given(t, c, AT_OMEGA + i, w)


@wp.func
def store_rows(t: Any, w: int):
    """What rods, gears, springs and cables carried, as of a whole step."""
    scale = real(4.0) * t[0].settings.dt[0] / (t[0].part[w] * t[0].part[w])
    for c in range(t[0].closures):
        n = t[0].closure_item[c]
        f = carried(t, c, w) * scale
        if moves(t, t[0].closure_a[c], w) and moves(t, t[0].closure_b[c], w):
            if t[0].closure_kind[c] == IS_ROD:
                t[0].state.joint_force[n, w] = f
                t[0].state.mid_force[n, w] = f
            elif t[0].closure_kind[c] == IS_GEAR:
                t[0].state.gear_impulse[n, w] = f[0]
            elif t[0].closure_kind[c] == IS_SPRING:
                t[0].state.spring_impulse[n, w] = f[0]
            elif t[0].closure_kind[c] == IS_SPAN:
                t[0].state.cable_impulse[n, w] = f[0]
