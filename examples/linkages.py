"""Two linkages that draw a line, Peaucellier's exactly and Chebyshev's almost: loops that stay closed."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp

ARM, SIDE, R = 0.5, 0.2, 0.18  # m, of Peaucellier's: arms, sides of the rhombus, radius of the circle that guides B
LINE = -(ARM**2 - SIDE**2) / (2 * R)  # |OB| |OP| is constant, so as B runs on a circle through O, P runs on a line
Linkage = tuple[dict[str, tuple[float, float]], list[str]]  # points (x, z) by name, rods as pairs of points


def peaucellier(turn: float) -> Linkage:
    along, across = np.array([np.sin(turn), -np.cos(turn)]), np.array([np.cos(turn), np.sin(turn)])
    b = 2 * R * np.cos(turn)
    p = (ARM**2 - SIDE**2) / b
    middle, half = (b + p) / 2 * along, np.sqrt(ARM**2 - (b + p) ** 2 / 4) * across
    points = {"O": (0, 0), "D": (0, -R), "B": b * along, "P": p * along, "A": middle - half, "C": middle + half}
    return points, ["DB", "OA", "OC", "AB", "BC", "AP", "CP"]


def chebyshev() -> Linkage:
    """Crossed cranks of 5 on pivots 4 apart, a coupler of 2 between them: its middle nearly draws a line, 1 mm high here."""
    return {"E": (-0.2, 0), "F": (0.2, 0), "G": (0.1, 0.4), "H": (-0.1, 0.4)}, ["EG", "FH", "GH"]


def add_linkage(scene: sh.Scene, linkage: Linkage, ground: str, offset: float) -> None:
    """Rods, hinged where they share a point; the points named in `ground` are fixed."""
    points, rods = linkage
    first = dict.fromkeys(ground, scene.world)
    for rod in rods:
        a, b = (np.array([points[end][0] + offset, 0, points[end][1]]) for end in rod)
        length, turn = float(np.linalg.norm(b - a)), quat_exp(np.array([0, np.arctan2(a[2] - b[2], b[0] - a[0]), 0]))
        scene.add_body(rod, sh.Box(length, 0.01, 0.02), mass=length, position=(a + b) / 2, rotation=turn)
        for end, place in zip(rod, (a, b), strict=True):
            if end in first:
                scene.add_joint(f"{end}-{rod}", sh.Revolute("y"), first[end], rod, position=place)
            first.setdefault(end, rod)


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene()
    add_linkage(scene, peaucellier(0.45), "OD", 0.0)
    add_linkage(scene, chebyshev(), "EF", 1.0)
    sim = sh.Simulation(scene, dt, solver="direct")
    sim.joint("E-EG").velocity = 0.8
    return sim


def check(sim: sh.Simulation) -> None:
    energy, drawn, nearly, gap = sim.energy().total, [], [], 0.0
    for _ in range(300):
        sim.run(0.01)
        drawn.append(sim.joint("P-CP").anchor)
        nearly.append(sim.body("GH").position - [1.0, 0, 0])
        gap = max(gap, sim.constraint_error().max())
    off, drift = np.abs(np.array(drawn)[:, 2] - LINE).max(), abs(sim.energy().total - energy)
    high = [z for x, _, z in nearly if abs(x) < 0.2]
    print(f"P ran {np.ptp(drawn, 0)[0]:.2f} m along its line, {off:.0e} m off; loops open {gap:.0e} m, energy off {drift:.0e} J")
    print(f"Chebyshev's ran {np.ptp(nearly, 0)[0]:.2f} m, between the pivots {1e3 * np.ptp(high):.4f} mm up and down")
    assert off < 1e-9 and gap < 1e-9 and np.ptp(drawn, 0)[0] > 0.5 and drift < 2e-2
    assert len(high) > 50 and min(high) > 0.4 - 1e-9 and max(high) < 0.400976  # the closed form's bounds


if __name__ == "__main__":
    check(make())
