"""Steps of ropes and of the bodies that hold them, a thread a world."""

import warp as wp

from sharnir.core.types import inline_less, real, vec3
from sharnir.engine.guard import count_step
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.energy import keep_impulses, keep_rope, take_back_impulses
from sharnir.engine.rope.energy_bodies import (
    ENDS,
    SNAPS,
    WHOLE,
    body_pose,
    goes_on,
    in_budget,
    keep_body,
    meet,
    settle_speeds,
    turn_reels,
)
from sharnir.engine.rope.kernels import differ, ropes_untouched, spend_all
from sharnir.engine.rope.passes import count, scale_pulls
from sharnir.engine.rope.reel import change_segments, pay_out, undo_reeling
from sharnir.engine.sleep import at_rest_together, fall_asleep, wait, wake_by_caller
from sharnir.engine.substeps import SPENT, dividing, halve
from sharnir.model.model import DYNAMIC

inline_less("sharnir.rope_energy", slp=False)
UNMET = wp.constant(real(10.0))  # tolerances: the residual of a step that was not made to its end


@wp.func
def is_settled(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether nothing changed a rope since its last step."""
    out = bool(True)
    for k in range(s[0].ropes.count):
        out = out and s[0].state.started[k, w] == 1
    return out


@wp.func
def clear_snaps(s: wp.array(dtype=RopeStep), w: int):
    """Forget which elements have just become taut."""
    for i in range(s[0].work.snaps.shape[0]):
        s[0].work.snaps[i, w] = 0


@wp.func
def any_snaps(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether any element has just become taut."""
    for k in range(s[0].ropes.count):
        for i in range(s[0].ropes.first[k], s[0].ropes.first[k] + s[0].state.segments[k, w]):
            if s[0].work.snaps[i, w] == 1:
                return True
    return False


@wp.func
def fit_speeds(s: wp.array(dtype=RopeStep), w: int):
    """Velocities that do not contradict the rows, before a part of a step; the reel has paid out for it."""
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] != DYNAMIC:
            s[0].body.v[b, w] = s[0].body_state.velocity[b, w]
            s[0].body.w[b, w] = s[0].body_state.spin[b, w]
            body_pose(s, b, w)
    clear_snaps(s, w)
    whole = not is_settled(s, w)
    if whole or not goes_on(s, w):
        undo_reeling(s, w)
        if whole:
            settle_speeds(s, w, WHOLE)
        else:
            settle_speeds(s, w, ENDS)
        turn_reels(s, w)
        for k in range(s[0].ropes.count):
            if s[0].ropes.reel[k] >= 0:
                i = s[0].ropes.first[k] + s[0].ropes.reel[k] * (s[0].state.segments[k, w] - 1)
                s[0].state.length[i, w] = s[0].state.length[i, w] + s[0].work.paid[k, w]
        for k in range(s[0].ropes.count):
            s[0].state.started[k, w] = 1


@wp.func
def keep_part(s: wp.array(dtype=RopeStep), w: int, part: int) -> bool:
    """A part that was met becomes the state; what is torn, inserted or removed then contradicts what was there."""
    dt = s[0].settings.dt[0]
    s[0].headway[w] = s[0].done[w]
    scale_pulls(s, w, dt / s[0].h[w])
    for b in range(s[0].bodies.count):
        keep_body(s, b, w)
    for k in range(s[0].ropes.count):
        keep_rope(s, k, w)
    keep_impulses(s, w)
    if any_snaps(s, w):
        settle_speeds(s, w, SNAPS)
        take_back_impulses(s, w)
    change_segments(s, w, s[0].h[w], dt)
    keep_impulses(s, w)
    return True


@wp.func
def start_step(s: wp.array(dtype=RopeStep), w: int):
    """Nothing of the step is counted yet."""
    s[0].done[w] = 0
    s[0].headway[w] = 0
    s[0].residual[w] = real(0.0)
    keep_impulses(s, w)


@wp.func
def passes_left(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether the step may take more passes."""
    return in_budget(s, w)


@wp.func
def stop_step(s: wp.array(dtype=RopeStep), w: int, share: real) -> int:
    """No passes are left: nothing moves in the rest of the step where that is a caller's cap; else the world is marked."""
    if s[0].settings.iterations[2] == 0:
        s[0].body_state.failed[w] = SPENT - s[0].bodies.count
        return 0
    s[0].residual[w] = UNMET * s[0].settings.tolerance[0]
    return 1


@wp.func
def make_part(s: wp.array(dtype=RopeStep), w: int, share: real, way: int) -> bool:
    """Velocities that fit, then the passes of a part of the step; whether they met."""
    s[0].h[w] = s[0].settings.dt[0] * share
    for k in range(s[0].ropes.count):
        pay_out(s, k, w, s[0].h[w])
    fit_speeds(s, w)
    return meet(s, w)


@wp.func
def ease_step(s: wp.array(dtype=RopeStep), w: int, size: int, way: int):
    """After a miss: half the part."""
    undo_reeling(s, w)
    take_back_impulses(s, w)
    if size == 1:
        s[0].body_state.failed[w] = 1 + s[0].bodies.count
    return halve(size, way)


@wp.func
def end_step(s: wp.array(dtype=RopeStep), w: int, parts: int, ways: int):
    """Count how the step was made."""
    s[0].parts[w] = parts
    count(s, w, 0, int(parts > 1), 0, 0)


make_energy_step = dividing(
    "energy_alone", 1 << 16, start_step, make_part, keep_part, ease_step, end_step, may=passes_left, stop=stop_step, grows=True
)


@wp.func
def bodies_untouched(s: wp.array(dtype=RopeStep), w: int) -> bool:
    """Whether bodies that yield move as the last call left them."""
    for b in range(s[0].bodies.count):
        if s[0].bodies.motion[b] == DYNAMIC:
            if differ(s[0].body_state.velocity[b, w], s[0].body_state.kept_velocity[b, w]):
                return False
            if differ(s[0].body_state.momentum[b, w], s[0].body_state.kept_momentum[b, w]):
                return False
    return True


@wp.func
def note_velocities(s: wp.array(dtype=RopeStep), w: int):
    """Note velocities as the call leaves them; nothing moves in slots that are not in use."""
    for k in range(s[0].ropes.count):
        at = s[0].ropes.first[k]
        last = at + s[0].state.segments[k, w]
        for i in range(at, at + s[0].ropes.capacity[k] + 1):
            if i > last:
                s[0].state.velocity[i, w] = vec3(real(0.0))
            if i >= last:
                s[0].state.spin[i, w] = vec3(real(0.0))
            s[0].state.kept_velocity[i, w] = s[0].state.velocity[i, w]
            s[0].state.kept_spin[i, w] = s[0].state.spin[i, w]
    for b in range(s[0].bodies.count):
        s[0].body_state.kept_velocity[b, w] = s[0].body_state.velocity[b, w]
        s[0].body_state.kept_momentum[b, w] = s[0].body_state.momentum[b, w]


@wp.kernel(module="sharnir.rope_energy")
def energy_steps(s: wp.array(dtype=RopeStep), first: int, n: wp.array(dtype=wp.int32)):
    """n steps of a world; where one is not met, the world is marked and stays at its last good state."""
    w = first + wp.tid()
    if s[0].body_state.failed[w] != 0 or n[w] == 0:
        return
    for g in range(s[0].grades.shape[0]):
        s[0].grades[g, w] = 0
    wake_by_caller(s[0].rest, w)
    if not (ropes_untouched(s, w) and bodies_untouched(s, w)):
        for k in range(s[0].ropes.count):
            s[0].state.started[k, w] = 0
    used = int(0)
    s[0].made[w] = n[w]
    for step in range(n[w]):
        if s[0].body_state.failed[w] != 0:
            break
        if used > s[0].settings.iterations[3]:
            s[0].made[w] = step
            break
        if at_rest_together(s[0].rest, w):
            wait(s[0].rest, w)
            count_step(s[0].tally, w, real(0.0), s[0].settings.tolerance[0], 1)
            continue
        make_energy_step(s, w)
        used = used + s[0].done[w]
        spend_all(s, w)
        if s[0].body_state.failed[w] == 0:
            s[0].body_state.time[w] = s[0].body_state.time[w] + wp.float64(s[0].settings.dt[0])
            count_step(s[0].tally, w, s[0].residual[w], s[0].settings.tolerance[0], s[0].parts[w])
            fall_asleep(s[0].rest, w)
    note_velocities(s, w)
