"""Displacements that keep momenta and kinetic energy.

An island is all links that joints, loops and contacts couple. Where bodies that overlap are displaced, velocities stay, but arms
change: the angular momentum L and the kinetic energy T of an island that nothing fixed touches would change. Of the velocities
of such an island

    v = P/m + Ω × (x − x̄) + v′,   Ω = I⁻¹ (L − x̄ × P)

the rigid part gets the Ω of the former L at the new pose; the relative part v′, which has no momentum, is multiplied by the s
that restores the former T. Joints, loops and contacts allow the new velocities as they allowed the former ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.algebra import Symmetric, Vector, cross, dot
from sharnir.emit.expressions import maximum, minimum, select, sqrt
from sharnir.engine.tree.closures import FRICTION, LIMIT
from sharnir.engine.tree.forest import FREE, PRESCRIBED

LARGEST = 2.0  # factor of relative velocities, at most
FIXED = -1  # island of the ground, and of what it touches


def find_islands(at: Callable[[str], str]) -> str:
    """C++ that finds the island of every link, numbered by one of its links, at the place `at(link)`."""
    i, base, a, b = (at(link) for link in ("i", "bases[i]", "t_a[c]", "t_b[c]"))
    return f"""for (int i = 0; i < links; ++i) if (kinds[i] >= 0)
{i} = bases[i] >= 0 ? {base} : real(kinds[i] == {FREE} ? i : {FIXED});
for (int c = 0; c < n_closures; ++c) if (t_kind[c] != {FRICTION} && t_kind[c] != {LIMIT}) {{
const real one = t_a[c] < 0 ? real({FIXED}) : {a}, two = t_b[c] < 0 ? real({FIXED}) : {b};
const real less = wp::min(one, two), more = wp::max(one, two);
if (less < more) for (int i = 0; i < links; ++i) if (kinds[i] >= 0 && {i} == more) {i} = less; }}"""


def find_groups(at: Callable[[str], str]) -> str:
    """C++ that finds, likewise, what is coupled otherwise than by the ground; of no group are links on prescribed motions."""
    i, base, a, b = (at(link) for link in ("i", "bases[i]", "t_a[c]", "t_b[c]"))
    return f"""for (int i = 0; i < links; ++i) if (kinds[i] >= 0)
{i} = kinds[i] == {PRESCRIBED} ? real({FIXED}) : bases[i] >= 0 && {base} >= real(0.0) ? {base} : real(i);
for (int c = 0; c < n_closures; ++c) if (t_kind[c] != {FRICTION} && t_kind[c] != {LIMIT} && t_a[c] >= 0 && t_b[c] >= 0) {{
const real less = wp::min({a}, {b}), more = wp::max({a}, {b});
if (less >= real(0.0) && less < more) for (int i = 0; i < links; ++i) if (kinds[i] >= 0 && {i} == more) {i} = less; }}"""


def note_momenta(tree: Any) -> None:
    """Find the islands, and keep their angular momentum and kinetic energy, times ½ h and ¼ h²."""
    rows = tree.rows
    rows.find_islands()
    for link in rows.free_islands():
        link.island_point = link.origin
    sum_momenta(tree)
    for link in rows.free_islands():
        link.old_angular, link.old_energy = link.sum_angular, link.sum_energy


def restore_momenta(tree: Any) -> None:
    """Give the islands the angular momentum and kinetic energy that they had."""
    sum_momenta(tree)
    rows = tree.rows
    for link in rows.free_islands():
        m, P = link.sum_mass, link.sum_linear
        x = link.sum_moment * (1.0 / m)
        S = link.sum_inertia - point_inertia(m, x)
        back = S.inverse()
        orbital = cross(x, P)
        old, new = link.sum_angular - orbital, link.old_angular - orbital
        before, after = back @ old, back @ new
        shift = dot(P, P) * (0.5 / m)
        relative = link.sum_energy - shift - dot(old, before) * 0.5
        wanted = link.old_energy - shift - dot(new, after) * 0.5
        counts = relative > 1e-14 * link.old_energy
        s = sqrt(maximum(wanted, 0.0) / select(counts, relative, 1.0))
        link.sum_energy = select(counts, minimum(s, LARGEST), 1.0)
        link.sum_moment, link.sum_linear = x, P * (1.0 / m)
        link.sum_angular, link.old_angular = before, after
    for link in tree.links():
        for island in rows.island_of(link):
            s, arm = island.sum_energy, link.origin + link.com_w - island.island_point - island.sum_moment
            before, after, v = island.sum_angular, island.old_angular, island.sum_linear
            link.V = v + cross(after, arm) + (link.V - v - cross(before, arm)) * s
            link.W = after + (link.W - before) * s


def clear_raised(tree: Any) -> None:
    """Nothing is displaced yet; what turning will change of the kinetic energy counts as what is raised."""
    for link in tree.links():
        link.raised = -kinetic(link) - height_energy(tree, link)


def kinetic(link: Any) -> Any:
    """Kinetic energy of a link, times ¼ h²."""
    return (dot(link.V, link.V) * link.mass + dot(link.W, link.inertia_w @ link.W)) * 0.5


def height_energy(tree: Any, link: Any) -> Any:
    """Energy of a link by gravity, times ¼ h²."""
    return -(dot(link.origin + link.com_w, tree.gravity) * link.mass)


def pay_raising(tree: Any) -> None:
    """Take from kinetic energy what displacements raised, in all that is coupled but by the ground; `raised` becomes the factor.

    Beside ropes nothing else need take as much in a step: what friction at points takes may be less.
    """
    rows = tree.rows
    rows.find_groups()
    for link in tree.links():
        link.sum_mass = link.sum_energy = 0.0
    for link in tree.links():
        for group in rows.island_of(link):
            energy = kinetic(link)
            group.sum_energy = group.sum_energy + energy
            group.sum_mass = group.sum_mass + link.raised + energy + height_energy(tree, link)
    for link in tree.links():
        link.raised = 1.0
        for group in rows.island_of(link):
            raised, energy = group.sum_mass, group.sum_energy
            counts = (raised > 0.0) & (energy > 0.0)
            s = select(counts, sqrt(maximum(1.0 - raised / select(counts, energy, 1.0), 0.0)), 1.0)
            link.V, link.W, link.raised = link.V * s, link.W * s, s


def sum_momenta(tree: Any) -> None:
    """Mass, its first and second moments about `island_point`, momenta and kinetic energy of every free island."""
    for link in tree.rows.free_islands():
        link.sum_mass = link.sum_energy = 0.0
        zero = Vector(0.0, 0.0, 0.0)
        link.sum_moment, link.sum_linear, link.sum_angular = zero, zero, zero
        link.sum_inertia = Symmetric([0.0] * 6)
    for link in tree.links():
        for island in tree.rows.island_of(link):
            m, x, V = link.mass, link.origin + link.com_w - island.island_point, link.V
            spin = link.inertia_w @ link.W
            island.sum_mass = island.sum_mass + m
            island.sum_moment = island.sum_moment + x * m
            island.sum_linear = island.sum_linear + V * m
            island.sum_angular = island.sum_angular + spin + cross(x, V) * m
            island.sum_inertia = island.sum_inertia + link.inertia_w + point_inertia(m, x)
            island.sum_energy = island.sum_energy + (dot(V, V) * m + dot(link.W, spin)) * 0.5


def point_inertia(m: Any, x: Vector) -> Symmetric:
    """Inertia of a mass at x about the origin."""
    xx, yy, zz = x.x * x.x, x.y * x.y, x.z * x.z
    return Symmetric([m * e for e in (yy + zz, xx + zz, xx + yy, -(x.x * x.y), -(x.x * x.z), -(x.y * x.z))])
