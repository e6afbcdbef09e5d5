"""Sleep (theory: contact): bodies that stand still together are left out of steps until something happens to one of them.

A body is idle since it was last anchored (`collision.still`): since then it has not moved by a micrometre. When all bodies of an
island, which contacts join, have been idle for half a second, they sleep: they have no velocity and take no kick, to others they
are fixed, and their points keep their impulses. Bodies of joints, gears and springs stay awake, and what rests on them. A world
in which all sleep does nothing but wait. What wakes a body wakes all
that it touches: what a caller does to it, another material, mass or gravity, and a moving body that touches it, or did.

`s` is the structure of a solver's step: `contacts`, `bodies`, `state`, `now`, `control`, `settings.sleep` and `.gravity`, and
`touch.island`, `.busy` and `.linked`.
"""

from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.still import ASLEEP, AWAKE, WOKEN, spread_waking
from sharnir.errors import SimulationError
from sharnir.kinematics import left_alone
from sharnir.model import DYNAMIC, FIXED, Model
from sharnir.types import real, vec3

AFTER, NEVER = 0.5, 1e30  # s


def sleeps_after(model: Model, sleep: bool) -> Any:
    """s, after which bodies that stand still sleep, on the device; from 1e30 on they never do: without contact, beside ropes."""
    if not isinstance(sleep, bool):
        raise SimulationError(f"sleep is True or False, got {sleep!r}")
    after = AFTER if sleep and model.collision is not None and model.ropes is None else NEVER
    return wp.array([after], dtype=real, device=model.device)


def linked_bodies(model: Model) -> Any:
    """[body] 1: it belongs to a joint, a gear, a spring or a cable, and stays awake."""
    linked = np.zeros(len(model.com), np.int32)
    ends = (model.springs.parent.numpy(), model.springs.child.numpy(), model.cables.body.numpy())
    linked[[*model.parents, *model.children, *(b for some in ends for b in some)]] = 1
    linked[model.bodies.motion.numpy() != DYNAMIC] = 0
    return wp.array(linked, dtype=wp.int32, device=model.device)


@wp.func
def sleeps(s: Any, b: int, w: int) -> bool:
    """Whether a body sleeps in this step."""
    if s[0].settings.sleep[0] >= real(1.0e30):
        return False
    return s[0].contacts.asleep[b, w] == ASLEEP


@wp.func
def is_disturbed(s: Any, b: int, w: int) -> bool:
    """Whether a caller has done something to a body since the last step."""
    if s[0].bodies.motion[b] == DYNAMIC:
        if not left_alone(s, b, w):
            return True
        quiet = (
            s[0].control.force[b, w] == s[0].state.felt_force[b, w] and s[0].control.torque[b, w] == s[0].state.felt_torque[b, w]
        )
        once = wp.length_sq(s[0].control.force_once[b, w]) + wp.length_sq(s[0].control.torque_once[b, w])
        return not quiet or once > real(0.0)
    moves = wp.length_sq(s[0].now.velocity[b, w]) + wp.length_sq(s[0].now.spin[b, w]) > real(0.0)
    stays = s[0].now.position[b, w] == s[0].now.kept_position[b, w] and s[0].now.rotation[b, w] == s[0].now.kept_rotation[b, w]
    return s[0].bodies.motion[b] != FIXED and (moves or not stays)


@wp.func
def rise(s: Any, w: int):
    """What was woken in this step is awake."""
    for b in range(s[0].contacts.asleep.shape[0]):
        if s[0].contacts.asleep[b, w] == WOKEN:
            s[0].contacts.asleep[b, w] = AWAKE


@wp.func
def wake_by_caller(s: Any, w: int):
    """At the start of a step: wake what a caller has done something to, and see whether there is anything to do in this world."""
    if s[0].settings.sleep[0] >= real(1.0e30):
        return
    same = s[0].contacts.pull[w] == s[0].settings.gravity[w]
    woke = int(0)
    rests = s[0].contacts.resting[w] == 1
    for b in range(s[0].contacts.asleep.shape[0]):
        if not same or is_disturbed(s, b, w):
            rests = False  # whoever moves may wake others
            if s[0].contacts.asleep[b, w] == ASLEEP:
                s[0].contacts.asleep[b, w] = WOKEN
                s[0].contacts.idle[b, w] = real(0.0)
                woke = 1
    if woke == 1:
        spread_waking(s, w)
        rise(s, w)
    s[0].contacts.resting[w] = int(rests)


@wp.func
def at_rest_together(s: Any, w: int) -> bool:
    """Whether all of a world sleeps, and nothing is to be done in it."""
    if s[0].settings.sleep[0] >= real(1.0e30):
        return False
    return s[0].contacts.resting[w] == 1


@wp.func
def find_islands(s: Any, w: int):
    """Bodies that contacts join get one number, that of the first of them."""
    for b in range(s[0].contacts.asleep.shape[0]):
        s[0].touch.island[b, w] = b
        s[0].touch.busy[b, w] = 0
    changed = int(1)
    while changed == 1:
        changed = int(0)
        for k in range(s[0].contacts.pairs[w]):
            p = s[0].contacts.pair_first[k, w]
            a = s[0].contacts.body_a[p, w]
            b = s[0].contacts.body_b[p, w]
            if s[0].bodies.motion[a] == DYNAMIC and s[0].touch.island[a, w] != s[0].touch.island[b, w]:
                least = wp.min(s[0].touch.island[a, w], s[0].touch.island[b, w])
                s[0].touch.island[a, w] = least
                s[0].touch.island[b, w] = least
                changed = 1


@wp.func
def lay_down(s: Any, b: int, w: int):
    """A body sleeps from now on: it has no velocity left."""
    zero = vec3(real(0.0))
    s[0].contacts.asleep[b, w] = ASLEEP
    s[0].state.velocity[b, w] = zero
    s[0].state.momentum[b, w] = zero
    s[0].state.spin[b, w] = zero
    s[0].now.velocity[b, w] = zero
    s[0].now.momentum[b, w] = zero
    s[0].now.spin[b, w] = zero
    s[0].now.acceleration[b, w] = zero
    s[0].now.kept_velocity[b, w] = zero
    s[0].now.kept_momentum[b, w] = zero


@wp.func
def fall_asleep(s: Any, w: int):
    """At the end of a step: islands that have been idle long enough sleep. It is looked for when a body has just been so."""
    after = s[0].settings.sleep[0]
    dt = s[0].settings.dt[0]
    due = int(0)
    for b in range(s[0].contacts.asleep.shape[0]):
        idle = s[0].contacts.idle[b, w]
        if s[0].bodies.motion[b] == DYNAMIC and idle >= after and idle - dt < after and s[0].contacts.asleep[b, w] == AWAKE:
            due = 1
    if due == 0:
        return
    find_islands(s, w)
    for b in range(s[0].contacts.asleep.shape[0]):
        if s[0].contacts.asleep[b, w] == AWAKE and (s[0].contacts.idle[b, w] < after or s[0].touch.linked[b] == 1):
            s[0].touch.busy[s[0].touch.island[b, w], w] = 1
    rests = int(1)
    for b in range(s[0].contacts.asleep.shape[0]):
        if s[0].bodies.motion[b] == DYNAMIC and s[0].contacts.asleep[b, w] == AWAKE:
            if s[0].touch.busy[s[0].touch.island[b, w], w] == 0:
                lay_down(s, b, w)
            else:
                rests = 0
    s[0].contacts.resting[w] = rests
    s[0].contacts.pull[w] = s[0].settings.gravity[w]


@wp.func
def wait(s: Any, w: int):
    """A step of a world that rests."""
    if s[0].state.failed[w] == 0:
        s[0].state.time[w] = s[0].state.time[w] + wp.float64(s[0].settings.dt[0])
