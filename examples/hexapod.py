"""A ship heaves, rolls and pitches; on its deck six driven legs between universal and ball joints keep a platform level."""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import frame_from_axes, quat_exp, quat_rotate

FEET = np.array([(1.2 * np.cos(a), 1.2 * np.sin(a), 0.1) for a in np.radians((-15, 15, 105, 135, 225, 255))])  # m, on the deck
HEADS = np.array([(0.8 * np.cos(a), 0.8 * np.sin(a), 1.6) for a in np.radians((-45, 45, 75, 165, 195, 285))])  # in the world
START, EVERY = np.linalg.norm(HEADS - FEET, axis=1), 4  # m, lengths of the legs; steps from one command to the next


def ship(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Place and rotation of the deck: the waves grow from nothing in a second."""
    s = min(t, 1.0)
    waves = s**3 * (10 - 15 * s + 6 * s * s) * np.sin([1.3 * t, 1.7 * t, 1.1 * t, 0.9 * t])
    return np.array([0.05 * waves[3], 0, 0.2 * waves[0]]), quat_exp(np.array([0.15 * waves[1], 0.1 * waves[2], 0]))


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("deck", sh.Box(3.0, 3.0, 0.2), motion="kinematic", path=ship)
    scene.add_body("platform", sh.Cylinder(0.9, 0.1), mass=500.0, position=(0, 0, 1.65))
    for i, (foot, head) in enumerate(zip(FEET, HEADS, strict=True)):
        along, turn = (head - foot) / START[i], frame_from_axes(head - foot)  # z along the leg
        scene.add_body(f"cylinder{i}", sh.Cylinder(0.06, 0.9), mass=20.0, position=foot + 0.45 * along, rotation=turn)
        scene.add_body(f"rod{i}", sh.Cylinder(0.03, 0.9), mass=8.0, position=head - 0.45 * along, rotation=turn)
        slide = sh.Prismatic("z", drive=sh.Servo(kp=1e7, kd=1e5, max_force=2e4), limit=(-0.5, 0.6))
        scene.add_joint(f"foot{i}", sh.Universal(("x", "y")), "deck", f"cylinder{i}", position=foot, rotation=turn)
        scene.add_joint(f"leg{i}", slide, f"cylinder{i}", f"rod{i}", position=foot + 0.5 * along, rotation=turn)
        scene.add_joint(f"head{i}", sh.Spherical(), f"rod{i}", "platform", position=head)
    return sh.Simulation(scene, dt, solver="direct")


def lengths(t: float) -> np.ndarray:
    """(6,) how far the rods have to stand out at a time so that the platform stays, m."""
    place, turn = ship(t)
    return np.linalg.norm(HEADS - place - quat_rotate(np.tile(turn, (6, 1)), FEET), axis=1) - START


def control(sim: sh.Simulation) -> None:
    """Lead the servos; the viewer calls this before every picture."""
    t, ahead = sim.time, EVERY * sim.dt
    for i, (now, soon) in enumerate(zip(lengths(t), lengths(t + ahead), strict=True)):
        drive = sim.joint(f"leg{i}").drive
        drive.position, drive.velocity = (now + soon) / 2, (soon - now) / ahead


def check(sim: sh.Simulation) -> None:
    platform, rows = sim.body("platform"), []
    while sim.time < 4.0 - 0.5 * sim.dt:
        control(sim)
        sim.step(EVERY)
        if round(sim.time / sim.dt) % 20 == 0:
            off, tilt = np.linalg.norm(platform.position - (0, 0, 1.65)), 2 * np.linalg.norm(platform.rotation[:3])
            rows.append((sim.body("deck").position[2], off, tilt, sim.constraint_error().max()))
    deck, off, tilt, gap = np.array(rows).T  # m, m, rad, m
    print(f"deck heaves by {np.ptp(deck):.2f} m; platform within {off.max():.1e} m and {tilt.max():.1e} rad of its place")
    print(
        f"loops open by at most {gap.max():.1e} m, at the end {gap[-1]:.1e}; redundant rows: {', '.join(sim.redundant) or 'none'}"
    )
    assert gap.max() < 1e-6 and off.max() < 2e-3 and tilt.max() < 2e-3 and not sim.redundant


if __name__ == "__main__":
    check(make())
