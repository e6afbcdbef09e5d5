"""A door on a vertical hinge is pushed at its handle for a third of a second and then swings on at constant speed."""

import sharnir as sh

WIDTH, MASS, TORQUE, PUSH = 0.9, 26.49, 32.7, 0.33


def make(dt: float = 1e-3) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    door = scene.add_body("door", sh.Box(WIDTH, 0.04, 2.0), mass=MASS, position=(WIDTH / 2, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z"), scene.world, door, position=(0, 0, 1))
    sim = sh.Simulation(scene, dt)
    control(sim)
    return sim


def control(sim: sh.Simulation) -> None:
    """Push until it is time to let go; the viewer calls this before every picture."""
    sim.joint("hinge").force = TORQUE if sim.time < PUSH - 1e-9 else 0.0


def check(sim: sh.Simulation) -> None:
    hinge = sim.joint("hinge")
    sim.run(PUSH)
    control(sim)
    pushed = hinge.velocity
    sim.run(0.5)
    inertia = MASS * (WIDTH**2 + 0.04**2) / 12 + MASS * (WIDTH / 2) ** 2
    force, _ = hinge.reaction
    print(
        f"door at {pushed:.6f} rad/s after the push (closed form {TORQUE * PUSH / inertia:.6f}), {hinge.velocity:.6f} half "
        f"a second later; the hinge carries {force[2]:.2f} N of {MASS * 9.81:.2f}"
    )
    assert abs(pushed - TORQUE * PUSH / inertia) < 2e-5 and abs(hinge.velocity - pushed) < 2e-5
    assert abs(force[2] - MASS * 9.81) < 1e-6


if __name__ == "__main__":
    check(make())
