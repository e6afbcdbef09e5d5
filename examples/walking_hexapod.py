"""A hexapod walks on its feet, three legs at a time: friction carries it, servos turn its eighteen hinges."""

import numpy as np

import sharnir as sh

LEG, FOOT, HIP, REST = {"coxa": 0.06, "femur": 0.12, "tibia": 0.18}, 0.015, 0.12, 0.19  # m; REST: of a foot from its hip
HEIGHT, STRIDE, LIFT, PERIOD = 0.14, 0.08, 0.03, 0.8  # m, m, m, s
TURNS = np.radians((30, 90, 150, 210, 270, 330))


def angles(turn: float, x: float = 0.0, z: float = 0.0) -> np.ndarray:
    """(3,) of the hinges of the leg at `turn`, so that its foot stands x before its place and z above it."""
    coxa, femur, tibia = LEG.values()
    foot = np.array([REST * np.cos(turn) + x, REST * np.sin(turn)])
    yaw = (np.arctan2(foot[1], foot[0]) - turn + np.pi) % (2 * np.pi) - np.pi
    out, down = np.linalg.norm(foot) - coxa, HEIGHT - FOOT - z
    far = np.hypot(out, down)
    knee = np.pi - np.arccos((femur**2 + tibia**2 - far**2) / (2 * femur * tibia))
    return np.array([yaw, np.arctan2(down, out) - np.arccos((femur**2 + far**2 - tibia**2) / (2 * femur * far)), knee])


def make(dt: float = 2e-3) -> sh.Simulation:
    rubber, servo = sh.Material(friction=0.9), sh.Servo(kp=60.0, kd=1.2, max_force=6.0)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=rubber)
    scene.add_body("trunk", sh.Cylinder(HIP, 0.04), mass=1.5, position=(0, 0, HEIGHT), collide=False)
    for k, turn in enumerate(TURNS):
        out, across = np.array([np.cos(turn), np.sin(turn), 0]), (-np.sin(turn), np.cos(turn), 0)
        at, parent = HIP * out + [0, 0, HEIGHT], "trunk"
        for name, bend in zip(LEG, np.cumsum(angles(turn)), strict=True):
            end = at + LEG[name] * (np.cos(bend) * out - [0, 0, np.sin(bend)])
            if name == "tibia":  # what touches is its foot
                scene.add_body(f"tibia {k}", sh.Sphere(FOOT), mass=0.05, position=end, material=rubber)
            else:
                scene.add_body(f"{name} {k}", sh.Sphere(0.02), mass=0.08, position=(at + end) / 2, collide=False)
            axis = (0, 0, 1) if name == "coxa" else across
            scene.add_joint(f"{name} hinge {k}", sh.Revolute(axis, drive=servo), parent, f"{name} {k}", position=at)
            at, parent = end, f"{name} {k}"
    return sh.Simulation(scene, dt, solver="direct")


def control(sim: sh.Simulation) -> None:
    """Legs 0, 2, 4 and 1, 3, 5 swing in turn; the viewer calls this before every picture."""
    grow = min(sim.time / PERIOD, 1.0)
    for k, turn in enumerate(TURNS):
        s = 2 * ((sim.time / PERIOD + 0.5 * (k % 2)) % 1.0)  # 0 to 1 in the air, 1 to 2 on the ground
        x, z = (s - 0.5, np.sin(np.pi * s)) if s < 1 else (1.5 - s, 0.0)
        for name, angle in zip(LEG, angles(turn, STRIDE * grow * x, LIFT * grow * z) - angles(turn), strict=True):
            sim.joint(f"{name} hinge {k}").drive.position = angle


def check(sim: sh.Simulation) -> None:
    trunk, rows = sim.body("trunk"), []
    while sim.time < 4.0 - 0.5 * sim.dt:
        control(sim)
        sim.step(4)
        rows.append((*trunk.position, 2 * np.linalg.norm(trunk.rotation[:2])))
    x, y, z, tilt = np.array(rows).T
    print(f"walks {x[-1]:.3f} m in 4 s, at last {(x[-1] - x[-201]) / 1.6:.3f} m/s (its legs: {2 * STRIDE / PERIOD:.3f})")
    print(f"the trunk stays {z.min():.3f} to {z.max():.3f} m high, {np.degrees(tilt.max()):.1f}° off level, {y[-1]:.3f} m aside")
    assert x[-1] > 0.6 and abs(y[-1]) < 0.01 and z.min() > 0.13 and tilt.max() < 0.02


if __name__ == "__main__":
    check(make())
