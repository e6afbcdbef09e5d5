"""Overlaps that a step leaves are taken back by displacements of which velocities never learn (theory: contacts and trees)."""

import warp as wp

from sharnir.core.types import real
from sharnir.engine.direct.data import Direct
from sharnir.engine.direct.energy.rows import clear_changes
from sharnir.engine.direct.energy.touch_ease import any_held
from sharnir.engine.direct.energy.touch_points import push_link, relative
from sharnir.engine.direct.energy.touch_response import find_response
from sharnir.engine.direct.energy.touch_sweeps import PARTED, gap_left, part_all
from sharnir.laws.cone import normal_size


@wp.func
def find_parting(s: wp.array(dtype=Direct), w: int) -> bool:
    """What takes back the overlaps at the end of the step, by displacements, into `pseudo`; whether there are any."""
    if s[0].contacts.count[w] == 0:
        return False
    if s[0].touch.many[w] == 1:
        return part_all(s, w)
    return part_points(s, w)


@wp.func
def push_apart(s: wp.array(dtype=Direct), w: int):
    """These pushes, on links; no changes of them yet."""
    clear_changes(s, w, 0, s[0].tree.count)
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            push_link(s, i, w, s[0].contacts.normal[i, w] * s[0].touch.pseudo[i, w])


@wp.func
def note_parted(s: wp.array(dtype=Direct), w: int):
    """What displacements, in work.change, made of the gaps, for the next step and the caller."""
    for i in range(s[0].contacts.count[w]):
        if s[0].touch.acts[i, w] == 1:
            moved = wp.dot(s[0].contacts.normal[i, w], relative(s, i, w, s[0].work.change_l, s[0].work.change_a))
            s[0].contacts.gap[i, w] = s[0].contacts.gap[i, w] + real(0.5) * s[0].drift[w] * moved


@wp.func
def aim_points(s: wp.array(dtype=Direct), w: int) -> bool:
    """What is to become of the gaps of points that are solved for at once, into `aim`; whether anything is to be displaced.

    One that landed in the step stays in touch (`spins`).
    """
    c = s[0].cone
    off = bool(False)
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        c[0].guess[3 * k, w] = real(0.0)
        if c[0].host[k, w] < 0 and i >= 0:
            left, landed = gap_left(s, i, w)
            c[0].aim[k, w] = left
            c[0].spins[k, w] = int(landed)
            off = off or landed or left < real(0.0)
    return off


@wp.func
def part_entries(s: wp.array(dtype=Direct), w: int):
    """Displacements along the normals of all entries that make of gaps what they are to become, into `guess`."""
    c = s[0].cone
    h = real(0.5) * s[0].drift[w]
    for _it in range(PARTED):
        for k in range(c[0].count[w]):
            if c[0].host[k, w] < 0:
                gap = c[0].aim[k, w]
                for m in range(c[0].count[w]):
                    gap = gap + h * c[0].W[3 * k, 3 * m, w] * c[0].guess[3 * m, w]
                push = c[0].guess[3 * k, w] - gap / (h * normal_size(c, k, w))
                if c[0].spins[k, w] == 0:
                    push = wp.max(real(0.0), push)
                c[0].guess[3 * k, w] = push
    for k in range(c[0].count[w]):
        i = s[0].touch.point[k, w]
        if c[0].host[k, w] < 0 and i >= 0:
            s[0].touch.pseudo[i, w] = c[0].guess[3 * k, w]


@wp.func
def part_points(s: wp.array(dtype=Direct), w: int) -> bool:
    """`find_parting` of points that are solved for at once."""
    if not aim_points(s, w):
        return False
    if any_held(s, w):  # what is held is moved where nothing else can be
        find_response(s, w)
    part_entries(s, w)
    return True
