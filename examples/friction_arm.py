"""A six-axis arm is driven to a pose by its servos; then the power is cut and the dry friction of its joints holds it there."""

import numpy as np

import sharnir as sh

# name, axis, anchor; box and its centre from the anchor; mass, kg; friction, N·m (that of strongly geared drives)
LINKS = (
    ("base",     "z", (0, 0, 0.10),    (0.20, 0.20, 0.25), (0, 0, 0.125),     14.0, 60.0),
    ("shoulder", "y", (0, 0, 0.35),    (0.14, 0.14, 0.45), (0, 0, 0.225),     11.0, 80.0),
    ("elbow",    "y", (0, 0, 0.80),    (0.35, 0.10, 0.10), (0.175, 0, 0),      6.0, 50.0),
    ("forearm",  "x", (0.35, 0, 0.80), (0.15, 0.09, 0.09), (0.075, 0, 0),      3.0, 15.0),
    ("wrist",    "y", (0.50, 0, 0.80), (0.08, 0.07, 0.07), (0.04, 0, 0),       1.5, 10.0),
    ("flange",   "x", (0.58, 0, 0.80), (0.12, 0.05, 0.20), (0.06, 0, -0.05),   2.0, 6.0),
)  # fmt: skip
POSE = (0.8, 0.5, 0.3, -0.9, 0.7, 1.2)  # rad
MOVE, CUT = 3.0, 4.0  # s: how long the move takes, when the power goes


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    parent = scene.add_body("stand", sh.Cylinder(0.15, 0.1), position=(0, 0, 0.05), motion="fixed")
    for name, axis, anchor, box, centre, mass, friction in LINKS:
        scene.add_body(name, sh.Box(*box), mass=mass, position=np.add(anchor, centre))
        servo = sh.Servo(kp=200 * friction, kd=20 * friction, max_force=6 * friction)
        scene.add_joint(f"{name} axis", sh.Revolute(axis, friction=friction, drive=servo), parent, name, position=anchor)
        parent = name
    return sh.Simulation(scene, dt)


def joints(sim: sh.Simulation) -> list:
    """The arm's joints, from the stand to the flange."""
    return [sim.joint(f"{link[0]} axis") for link in LINKS]


def control(sim: sh.Simulation) -> None:
    """Lead the servos smoothly to the pose, then cut their power; the viewer calls this before every picture."""
    s = min(sim.time / MOVE, 1.0)
    for joint, target in zip(joints(sim), POSE, strict=True):
        joint.drive.position = target * s * s * (3 - 2 * s)
        if sim.time > CUT - 0.5 * sim.dt:
            joint.drive.max_force = 0.0


def check(sim: sh.Simulation) -> None:
    while sim.time < CUT - 0.5 * sim.dt:
        control(sim)
        sim.step(10)
    off = np.abs([joint.position - target for joint, target in zip(joints(sim), POSE, strict=True)]).max()
    control(sim)
    sim.run(1.0)
    held, moved = np.array([joint.position for joint in joints(sim)]), 0.0
    for _ in range(60):
        sim.run(1.0)
        moved = max(moved, np.abs([joint.position - q for joint, q in zip(joints(sim), held, strict=True)]).max())
    share = max(abs(joint.friction_force) / link[-1] for joint, link in zip(joints(sim), LINKS, strict=True))
    print(
        f"{off:.1e} rad off the pose when the power goes; moves by {moved:.1e} rad in 60 s; friction at {share:.0%} of its bound"
    )
    assert off < 0.02 and moved < 1e-9 and all(joint.stuck for joint in joints(sim))


if __name__ == "__main__":
    check(make())
