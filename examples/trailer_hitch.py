"""A tractor tows a trailer over turns, a hill and bumps; the ball hitch between them turns ±18° in yaw and roll, ±15° in pitch.

The tractor and the trailer's wheels follow the track; the trailer rides on them with springs, and the hitch's limits push it.
"""

import numpy as np

import sharnir as sh
from sharnir.core.spatial import frame_from_axes, quat_exp, quat_multiply

LIMITS = np.radians((18.0, 15.0, 18.0))  # about x (roll), y (pitch), z (yaw)
SPEED, HITCH, AXLE, FOLLOW = 2.0, -0.6, -1.5, "trailer"  # m/s, m behind the tractor's middle; in pictures


def track(x: float) -> np.ndarray:
    """The middle of the track: two turns from 2 to 10 m, a hill from 12 to 16 m."""
    turns = 0.22 * (1 - np.cos(np.pi / 2 * np.clip(x - 2, 0, 8)))
    hill = 0.19 * (1 - np.cos(np.pi / 2 * np.clip(x - 12, 0, 4)))
    return np.array([x, turns, 0.25 + hill])


def pose(x: float) -> tuple[np.ndarray, np.ndarray]:
    """Place and rotation of a vehicle on the track; bumps under one wheel and then the other roll it from 18 to 24 m."""
    turn = frame_from_axes(track(x + 1e-4) - track(x - 1e-4), slots=(0, 2))
    roll = 0.2 * np.sin(np.pi / 1.5 * np.clip(x - 18, 0, 6))
    return track(x), quat_multiply(turn, quat_exp(np.array([roll, 0, 0])))


def make(dt: float = 2e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("tractor", sh.Box(1.0, 0.5, 0.3), motion="kinematic", path=lambda t: pose(SPEED * t))
    wheels = sh.Cylinder(0.2, 0.8, rotation=quat_exp(np.array([np.pi / 2, 0, 0])))
    scene.add_body("wheels", wheels, motion="kinematic", path=lambda t: pose(SPEED * t + AXLE))
    trailer = sh.Compound(sh.Box(0.7, 0.5, 0.3, position=(0, 0, 0.2)), sh.Box(0.8, 0.06, 0.06, position=(0.5, 0, 0)))
    scene.add_body("trailer", trailer, mass=60.0, position=(AXLE, 0, 0.25))
    ball = sh.Spherical(limit=sh.Cardan(*((-a, a) for a in LIMITS)), friction=2.0)
    scene.add_joint("hitch", ball, "tractor", "trailer", position=(HITCH, 0, 0.25))
    springs = {"y": (3e3, 0.0), "z": (2e4, 0.0), "rx": (400.0, 0.0)}
    ride = sh.Free(spring=springs, damping={"y": 500.0, "z": 1500.0, "rx": 40.0})
    scene.add_joint("suspension", ride, "wheels", "trailer", position=(AXLE, 0, 0.25))
    return sh.Simulation(scene, dt)


def angles(sim: sh.Simulation) -> np.ndarray:
    """Roll, pitch and yaw of the trailer against the tractor, rad: R = Rx Ry Rz."""
    x, y, z, w = sim.joint("hitch").position
    tangents = np.arctan2((2 * (x * w - y * z), 2 * (z * w - x * y)), (1 - 2 * (x * x + y * y), 1 - 2 * (y * y + z * z)))
    return np.array([tangents[0], np.arcsin(2 * (x * z + y * w)), tangents[1]])


def check(sim: sh.Simulation) -> None:
    seen, gap = [], 0.0
    while SPEED * sim.time < 27:
        sim.step(5)
        seen.append(angles(sim))
        gap = max(gap, sim.constraint_error()[0, 0, 0]) if len(seen) % 10 == 0 else gap
    lowest, highest = np.min(seen, 0), np.max(seen, 0)
    past = max((-LIMITS - lowest).max(), (highest - LIMITS).max())
    names = ("roll", "pitch", "yaw")
    told = ", ".join(f"{n} {a:.2f}° to {b:.2f}°" for n, a, b in zip(names, np.degrees(lowest), np.degrees(highest), strict=True))
    print(f"{told}; past a limit by at most {past:.1e} rad, hitch open by {gap:.1e} m")
    assert past < 1e-3 and (lowest < 1e-3 - LIMITS).all() and (highest > LIMITS - 1e-3).all()


if __name__ == "__main__":
    check(make())
