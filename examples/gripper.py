"""A gripper with fingers of 50 g lifts a 10 kg box by friction alone, carries it up and holds it: it does not creep."""

import sharnir as sh

GRIP, LIFT = 200.0, 0.2  # N, m


def make(dt: float = 2e-3) -> sh.Simulation:
    rubber = sh.Material(friction=0.5)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(material=rubber)
    scene.add_body("box", sh.Box(0.1, 0.1, 0.1), mass=10.0, position=(0, 0, 0.05), material=rubber)
    scene.add_body("hand", sh.Box(0.2, 0.06, 0.04), mass=1.0, position=(0, 0, 0.2), collide=False)
    servo = sh.Servo(kp=2e5, kd=4e3)
    scene.add_joint("lift", sh.Prismatic("z", drive=servo), scene.world, "hand", position=(0, 0, 0.2))
    for side, name in ((-1, "left"), (1, "right")):
        scene.add_body(name, sh.Box(0.02, 0.06, 0.12), mass=0.05, position=(side * 0.065, 0, 0.08), material=rubber)
        scene.add_joint(f"{name} slide", sh.Prismatic("x"), "hand", name, position=(side * 0.065, 0, 0.08))
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """Close, then lift within a second, then hold."""
    sim.joint("left slide").effort, sim.joint("right slide").effort = GRIP, -GRIP
    s = min(max(sim.time - 0.3, 0.0), 1.0)
    sim.joint("lift").drive.position = LIFT * s * s * (3 - 2 * s)


def check(sim: sh.Simulation) -> None:
    held = None
    while sim.time < 4.0:
        control(sim)
        sim.step()
        above = sim.body("box").position[2] - sim.body("hand").position[2]
        if held is None and sim.time > 2.0:
            held = above
    creep = above - held
    print(f"lifted to {sim.body('box').position[2]:.4f} m, creeps {creep:.1e} m in the hand in 2 s")
    assert sim.body("box").position[2] > 0.05 + 0.95 * LIFT and abs(creep) < 1e-6


if __name__ == "__main__":
    check(make())
