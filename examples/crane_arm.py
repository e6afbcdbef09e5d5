"""A crane slews, lifts and runs its telescope to the stop; its power is cut: 5 t swing on, the arm stays within 1e-11 m."""

import numpy as np

import sharnir as sh

# joint, its type and axis, anchor; body, box and its middle; mass, kg; friction (N·m, N), range (rad, m), target
PARTS = (
    ("slew",      sh.Revolute,  "z", (0, 0, 1.0),    (1.6, 1.6, 2.0), (0, 0, 2.0),     4000.0, 4.0e5, (-3.0, 3.0),  1.2),
    ("boom",      sh.Revolute,  "y", (0, 0, 3.0),    (6.0, 0.5, 0.6), (3.0, 0, 3.0),   2000.0, 1.2e6, (-1.2, 0.2), -0.8),
    ("jib",       sh.Revolute,  "y", (6.0, 0, 3.0),  (5.0, 0.4, 0.5), (8.5, 0, 3.0),   1200.0, 7.0e5, (-0.3, 1.5),  0.6),
    ("telescope", sh.Prismatic, "x", (11.0, 0, 3.0), (4.0, 0.3, 0.3), (9.2, 0, 3.0),    500.0, 8.0e4, (0.0, 3.0),   3.2),
)  # fmt: skip
TIP, SLING, LOAD = np.array([11.2, 0, 3.0]), 1.5, 5000.0  # m, m, kg
MOVE, CUT = 6.0, 8.0  # s: how long the move takes, when the power goes


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    parent = scene.add_body("pillar", sh.Cylinder(0.9, 1.0), position=(0, 0, 0.5), motion="fixed")
    for name, joint, axis, anchor, box, middle, mass, friction, limit, _ in PARTS:
        scene.add_body(name, sh.Box(*box), mass=mass, position=middle)
        servo = sh.Servo(kp=200 * friction, kd=50 * friction, max_force=3 * friction)
        scene.add_joint(f"{name} drive", joint(axis, friction=friction, limit=limit, drive=servo), parent, name, position=anchor)
        parent = name
    scene.add_body("hook", sh.Capsule(0.1, SLING - 0.2), mass=150.0, position=TIP - (0, 0, SLING / 2))
    scene.add_joint("sling", sh.Spherical(), parent, "hook", position=TIP)
    scene.add_body("load", sh.Box(1.5, 1.5, 1.0), mass=LOAD, position=TIP - (0, 0, SLING + 0.8))
    scene.add_joint("eye", sh.Spherical(friction=20.0), "hook", "load", position=TIP - (0, 0, SLING))
    return sh.Simulation(scene, dt, solver="direct")


def joints(sim: sh.Simulation) -> list:  # from the pillar to the tip
    return [sim.joint(f"{part[0]} drive") for part in PARTS]


def control(sim: sh.Simulation) -> None:
    """Lead the servos smoothly to their targets, then cut their power; the viewer calls this before every picture."""
    s = min(sim.time / MOVE, 1.0)
    for joint, part in zip(joints(sim), PARTS, strict=True):
        joint.drive.position = part[-1] * s * s * (3 - 2 * s)
        if sim.time > CUT - 0.5 * sim.dt:
            joint.drive.max_force = 0.0


def check(sim: sh.Simulation) -> None:
    lower, upper, target = np.array([(*part[-2], part[-1]) for part in PARTS]).T
    past, rest, swing = 0.0, [], []
    while sim.time < CUT + 12.0 - 0.5 * sim.dt:
        control(sim)
        sim.step(4)
        q = np.array([joint.position for joint in joints(sim)])
        past = max(past, np.max(lower - q), np.max(q - upper))
        if sim.time > CUT + 2.0 - 0.5 * sim.dt:
            rest.append(q)
            swing.append(sim.body("load").com)
    off, moved = np.abs(q - np.clip(target, lower, upper)).max(), np.ptp(rest, 0).max()
    share = max(abs(joint.friction_force) / part[-3] for joint, part in zip(joints(sim), PARTS, strict=True))
    print(f"arm {off:.1e} off its targets; moves by {moved:.1e} in 10 s, the load by {np.ptp(swing, 0).max():.2f} m")
    print(f"friction at {share:.0%} of its bound; past a limit by at most {past:.1e}, gap {sim.constraint_error().max():.1e} m")
    assert off < 0.02 and moved < 1e-11 and past < 1e-8 and all(joint.stuck for joint in joints(sim))


if __name__ == "__main__":
    check(make())
