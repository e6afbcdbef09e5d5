"""Ropes that are paid out, taken in, or torn: between the steps of the passes."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.rope.data import RopeStep
from sharnir.engine.rope.slack import reel_element, side_of
from sharnir.engine.rope.terms import tangent

REPAID = wp.constant(real(0.1))  # part of an owed length that a step returns
NOWHERE = wp.constant(real(1.0e-6))  # relative distance below which two points have no direction from one to the other
STUMP = wp.constant(real(0.01))  # the same, in a pass
LEFT_AT_REEL = wp.constant(real(0.1))  # least length of the element at the reel, in segments


@wp.func
def copy_slot(s: wp.array(dtype=RopeStep), i: int, to: int, w: int):
    """A point, its element and interface, to another slot."""
    s[0].state.length[to, w] = s[0].state.length[i, w]
    s[0].state.position[to, w] = s[0].state.position[i, w]
    s[0].state.velocity[to, w] = s[0].state.velocity[i, w]
    s[0].state.rotation[to, w] = s[0].state.rotation[i, w]
    s[0].state.spin[to, w] = s[0].state.spin[i, w]
    s[0].state.pull[to, w] = s[0].state.pull[i, w]
    s[0].state.moment[to, w] = s[0].state.moment[i, w]
    s[0].state.tight[to, w] = s[0].state.tight[i, w]
    s[0].state.was[to, w] = s[0].state.was[i, w]
    s[0].state.now[to, w] = s[0].state.now[i, w]
    s[0].state.before[to, w] = s[0].state.before[i, w]
    s[0].state.gain[to, w] = s[0].state.gain[i, w]
    s[0].state.smooth[to, w] = s[0].state.smooth[i, w]
    s[0].state.spin_smooth[to, w] = s[0].state.spin_smooth[i, w]
    s[0].state.spin_gain[to, w] = s[0].state.spin_gain[i, w]
    s[0].state.gain_2[to, w] = s[0].state.gain_2[i, w]
    s[0].state.gain_3[to, w] = s[0].state.gain_3[i, w]
    s[0].state.spin_gain_2[to, w] = s[0].state.spin_gain_2[i, w]
    s[0].state.spin_gain_3[to, w] = s[0].state.spin_gain_3[i, w]
    s[0].state.cut[to, w] = s[0].state.cut[i, w]
    s[0].state.slack[to, w] = s[0].state.slack[i, w]
    s[0].state.span[to, w] = s[0].state.span[i, w]


@wp.func
def split(s: wp.array(dtype=RopeStep), k: int, w: int, i: int, l: real, end: int):
    """Cut element i into a first part of length l and the rest; the new point moves as what lies beyond the reel."""
    last = s[0].ropes.first[k] + s[0].state.segments[k, w]
    for back in range(last - i + 1):
        copy_slot(s, last - back, last - back + 1, w)
    s[0].state.segments[k, w] = s[0].state.segments[k, w] + 1
    whole = s[0].state.length[i, w]
    d = tangent(s[0].state.rotation[i, w])
    span = s[0].state.span[i, w] * (l / whole)
    rest = s[0].state.span[i, w] - span
    s[0].state.length[i, w] = l
    s[0].state.length[i + 1, w] = whole - l
    s[0].state.span[i, w] = span
    s[0].state.span[i + 1, w] = rest
    s[0].state.position[i + 1, w] = s[0].state.position[i, w] + d * span
    if end == 0:
        s[0].state.velocity[i + 1, w] = s[0].state.velocity[i + 2, w] - wp.cross(s[0].state.spin[i, w], d) * rest
    else:
        s[0].state.velocity[i + 1, w] = s[0].state.velocity[i, w] + wp.cross(s[0].state.spin[i, w], d) * span
    s[0].state.smooth[i + 1, w] = s[0].state.velocity[i + 1, w]
    s[0].state.moment[i + 1, w] = vec3(real(0.0))
    s[0].state.before[i + 1, w] = vec3(real(0.0))


@wp.func
def join(s: wp.array(dtype=RopeStep), k: int, w: int, i: int):
    """Make one of the elements i and i + 1: of two that are taut, straight, and by what the bend between them was longer is owed;
    if one is slack, or both are not laid the same way, a slack one as long as both.
    """
    last = s[0].ropes.first[k] + s[0].state.segments[k, w]
    along = s[0].state.position[i + 2, w] - s[0].state.position[i, w]
    straight = wp.length(along)
    whole = s[0].state.length[i, w] + s[0].state.length[i + 1, w]
    q = s[0].state.rotation[i, w]
    t = tangent(q)
    d = t
    if straight > NOWHERE * whole:
        d = along / straight
    else:
        straight = real(0.0)
    taut = s[0].state.slack[i, w] == 0 and s[0].state.slack[i + 1, w] == 0
    if not taut and wp.dot(t, d) < real(0.0):
        d = -d
        straight = -straight
    turn = wp.cross(t, d)
    half = wp.normalize(wp.quaternion(turn, real(1.0) + wp.dot(t, d)))
    s[0].state.slack[i, w] = int(not taut)
    s[0].state.span[i, w] = straight
    if taut:
        s[0].state.owed[k, w] = s[0].state.owed[k, w] + whole - straight
        whole = straight
    s[0].state.length[i, w] = whole
    s[0].state.rotation[i, w] = half * q
    s[0].state.pull[i, w] = (s[0].state.pull[i, w] + s[0].state.pull[i + 1, w]) * real(0.5)
    v = s[0].state.velocity[i + 2, w] - s[0].state.velocity[i, w]
    spin = s[0].state.spin[i, w]
    s[0].state.spin[i, w] = d * wp.dot(d, spin)
    if straight != real(0.0):
        s[0].state.spin[i, w] = wp.cross(d, v) / straight + d * wp.dot(d, spin)
    for j in range(i + 2, last + 1):
        copy_slot(s, j, j - 1, w)
    s[0].state.segments[k, w] = s[0].state.segments[k, w] - 1


@wp.func
def feed(s: wp.array(dtype=RopeStep), k: int, w: int):
    """Split or join at the reel: its element has between half and one and a half of a segment's length.

    What is torn is not joined: the reel takes in up to there.
    """
    end = s[0].ropes.reel[k]
    if end < 0:
        return
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    size = s[0].ropes.segment[k]
    i = first
    if end == 1:
        i = first + n - 1
    l = s[0].state.length[i, w]
    if l > real(1.5) * size and n < s[0].ropes.capacity[k]:
        if end == 0:
            split(s, k, w, i, l - size, 0)
        else:
            split(s, k, w, i, size, 1)
    elif l < real(0.5) * size and n > 1:
        if s[0].state.cut[i - end, w] == 0 and s[0].state.cut[i - end + 1, w] == 0:
            join(s, k, w, i - end)


@wp.func
def pay_out(s: wp.array(dtype=RopeStep), k: int, w: int, h: real):
    """Let the element at the reel grow or shrink for a time h, not where it is torn. A length asked for is not passed.

    At a winch that is a guess (`turn_drum`). Beyond the longest, and when nothing is left to take in, its rope slips.
    """
    end = s[0].ropes.reel[k]
    if end < 0:
        return
    first = s[0].ropes.first[k]
    n = s[0].state.segments[k, w]
    total = s[0].state.owed[k, w]
    for i in range(first, first + n):
        total = total + s[0].state.length[i, w]
    i = first + end * (n - 1)
    l = s[0].state.length[i, w]
    size = s[0].ropes.segment[k]
    speed = s[0].control.reel_speed[k, w]
    wanted = s[0].control.reel_to[k, w]
    if wanted > real(0.0):
        speed = wp.clamp((wanted - total) / h, -wp.abs(speed), wp.abs(speed))
    speed = wp.min(speed, wp.max(real(0.0), s[0].ropes.longest[k] - total) / h)
    speed = wp.max(speed, wp.min(real(0.0), LEFT_AT_REEL * size - l) / h)
    if n == s[0].ropes.capacity[k] and speed > real(0.0) and l > real(1.5) * size:
        speed = real(0.0)
    back = REPAID * s[0].state.owed[k, w] / s[0].settings.dt[0]
    if s[0].ropes.winch[k] >= 0:
        speed = s[0].state.reel_now[k, w]
        slips = (speed > real(0.0) and total >= s[0].ropes.longest[k]) or (speed < real(0.0) and l <= LEFT_AT_REEL * size)
        s[0].work.winds[k, w] = int(not slips and s[0].state.cut[i, w] == 0)
        if slips:
            speed = real(0.0)
    if s[0].state.cut[i, w] == 1:
        speed = real(0.0)
        back = real(0.0)
    s[0].work.back[k, w] = back * h
    s[0].work.paid[k, w] = (speed + back) * h
    s[0].state.length[i, w] = l + s[0].work.paid[k, w]


@wp.func
def turn_drum(s: wp.array(dtype=RopeStep), k: int, w: int, by: real):
    """The drum of a winch turns by so many radians in the step: what it takes in, the element at the reel loses."""
    if s[0].work.winds[k, w] == 1:
        i = reel_element(s, k, w)
        before = s[0].state.length[i, w] - s[0].work.paid[k, w]
        paid = s[0].work.back[k, w] - s[0].ropes.drum[k] * by
        paid = wp.max(paid, STUMP * s[0].ropes.segment[k] - before)
        s[0].state.length[i, w] = before + paid
        s[0].work.paid[k, w] = paid


@wp.func
def undo_reeling(s: wp.array(dtype=RopeStep), w: int):
    """Take back in what was paid out for a step that is not made."""
    for k in range(s[0].ropes.count):
        if s[0].ropes.reel[k] >= 0:
            i = s[0].ropes.first[k] + s[0].ropes.reel[k] * (s[0].state.segments[k, w] - 1)
            s[0].state.length[i, w] = s[0].state.length[i, w] - s[0].work.paid[k, w]


@wp.func
def tear(s: wp.array(dtype=RopeStep), k: int, w: int, h: real):
    """Cut the element that pulls hardest, where that is above the breaking load."""
    first = s[0].ropes.first[k]
    most = s[0].ropes.strength[k, w] * h
    found = int(-1)
    for i in range(first, first + s[0].state.segments[k, w]):
        tension = -wp.dot(s[0].state.pull[i, w], s[0].work.d[i, w]) * side_of(s, i, w)
        if tension > most:
            most = tension
            found = i
    if found >= 0:
        s[0].state.cut[found, w] = 1


@wp.func
def change_segments(s: wp.array(dtype=RopeStep), w: int, h: real, dt: real):
    """After a part of length h of a step: what is torn, inserted or removed. A rope whose segments change starts anew.

    What a joined element owes is paid back from the next step on where a drum winds the rope, whose length is to fit the drum's
    angle; of other reels a part of it is given up, which makes fast ones smoother.
    """
    for k in range(s[0].ropes.count):
        left = real(1.0) - REPAID * h / dt
        wound = s[0].ropes.winch[k] >= 0
        if wound:
            s[0].state.owed[k, w] = s[0].state.owed[k, w] * left
        tear(s, k, w, dt)
        n = s[0].state.segments[k, w]
        feed(s, k, w)
        if s[0].state.segments[k, w] != n:
            s[0].state.started[k, w] = 0
        if not wound:
            s[0].state.owed[k, w] = s[0].state.owed[k, w] * left
