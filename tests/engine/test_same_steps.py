"""The steps of every joint, with what may act on it, both ways round, against stored ones in coordinates of the bodies."""

import numpy as np
import pytest

import sharnir as sh

F, L = sh.Friction, sh.Limit


def ball_drive(**keywords):
    return {f"r{a}": sh.Servo(x, **keywords) for a, x in zip("xyz", (0.1, 0.2, -0.3), strict=True)}


JOINTS = {
    "ball, friction": lambda: sh.Spherical(friction=0.1),
    "ball, friction that falls": lambda: sh.Spherical(friction=F(0.4, 0.2)),
    "ball, friction of each axis": lambda: sh.Spherical(friction={"rx": 0.1, "ry": 0.05}),
    "ball, load": lambda: sh.Spherical(friction=F(0.01, 0.01, load=0.01)),
    "ball, springs and dampers": lambda: sh.Spherical(
        damping={"rx": 0.1, "ry": 0.05}, spring={"rz": (4.0, 0.2), "rx": (2.0, -0.1)}
    ),
    "ball, servos": lambda: sh.Spherical(drive=ball_drive(kp=20.0, kd=0.2, max_force=0.4), friction=F(0.2, 0.1, 0, 0.01, 0.5)),
    "ball, stiff servos": lambda: sh.Spherical(drive=ball_drive(kp=3e5, kd=3e3)),
    "ball, cone": lambda: sh.Spherical(limit=sh.SwingTwist((0.02, 0.03), (-0.02, 0.01)), friction=0.02),
    "ball, Cardan angles": lambda: sh.Spherical(limit=sh.Cardan((-0.02, 0.01), (-0.01, 0.03), (-0.01, 0.01))),
    "hinge, load": lambda: sh.Revolute("z", friction=F(0.02, 0.01, load=0.01)),
    "hinge, motor": lambda: sh.Revolute("z", drive=sh.DCMotor(12.0, 0.5, 2e-3, 0.05, 10.0, 0.8, 1e-4, 2e-3)),
    "hinge, motor without rotor": lambda: sh.Revolute("z", drive=sh.DCMotor(12.0, 0.5, 0.0, 0.05, 10.0)),
    "hinge, armature at a limit": lambda: sh.Revolute(
        "z", drive=sh.Servo(0.5, kp=20.0, kd=0.1, armature=0.05), limit=(-0.02, 0.02)
    ),
    "hinge, bounce": lambda: sh.Revolute("z", limit=L(-0.004, 0.012, 0.5), friction=0.01),
    "slider, motor": lambda: sh.Prismatic("x", drive=sh.DCMotor(5.0, 0.5, 0.0, 0.05, 100.0, 1.0, 1e-5), friction=0.3),
    "engine": lambda: sh.Revolute("z", drive=sh.Engine(gear=1, throttle=0.5, engaged=0.5)),
    "cylinder": lambda: sh.Prismatic("x", drive=sh.HydraulicCylinder(command=0.5)),
    "universal": lambda: sh.Universal(("y", "z"), friction={"ry": 0.1, "rz": 0.05}, damping=0.02, spring=(3.0, 0.1)),
    "universal, friction of the vector": lambda: sh.Universal(("y", "z"), friction=0.1, spring=(3.0, 0.1)),
    "universal, limits": lambda: sh.Universal(("y", "z"), limit=(-0.012, 0.01), drive={"rz": sh.Servo(0.3, kp=50.0, kd=0.5)}),
    "cylindrical": lambda: sh.Cylindrical("x", friction={"x": 0.5}, damping=0.02, spring={"x": (300.0, 0.01)}),
    "planar": lambda: sh.Planar("z", friction={"x": 0.5, "y": 0.3, "rz": 0.05}, damping=0.02, spring={"x": (300.0, 0.01)}),
    "planar, friction of the vector": lambda: sh.Planar("z", friction=0.3, limit={"x": (-0.01, 0.001)}),
    "point on a line": lambda: sh.PointOnLine("x", friction={"x": 0.5, "rx": 0.05}, damping=0.02),
    "free": lambda: sh.Free(friction=0.2, spring={"x": (300.0, 0.01), "z": (300.0, 0.0)}),
    "fixed": lambda: sh.Fixed(),
}
IN_EVERY_RUN = (
    "ball, friction",
    "ball, cone",
    "hinge, motor",
    "universal, friction of the vector",
    "planar, friction of the vector",
)


def machine(joint, flip):
    scene = sh.Scene()
    a = scene.add_body("a", sh.Box(0.3, 0.1, 0.06), mass=1.0, position=(0.15, 0, 0))
    b = scene.add_body("b", sh.Box(0.25, 0.08, 0.12), mass=0.8, position=(0.42, 0.05, 0.03))
    c = scene.add_body("c", sh.Box(0.2, 0.05, 0.05), mass=0.4, position=(0.65, 0.05, 0.03))
    scene.add_joint("first", sh.Revolute("y"), scene.world, a, position=(0, 0, 0))
    scene.add_joint("j", joint, *((b, a) if flip else (a, b)), position=(0.3, 0, 0))
    scene.add_joint("last", sh.Revolute("z", damping=0.01), b, c, position=(0.55, 0.05, 0.03))
    sim = sh.Simulation(scene, 1e-3, solver="direct", sleep=False, tolerances=sh.Tolerances(tolerance=1e-13))
    sim.joint("first").velocity, sim.joint("last").velocity = 2.0, -3.0
    return sim


def pose(sim):
    out = []
    for name in "abc":
        q = np.asarray(sim.body(name).rotation).ravel()
        out += [*np.asarray(sim.body(name).position).ravel(), *(q * np.sign(q[3]))]
    return np.array(out)


def velocities(sim):
    return np.concatenate([sim.state.velocity.numpy().ravel(), sim.state.spin.numpy().ravel()])


def within(what):
    """m and rad: less where limits have tolerances, or friction follows reactions, which the two read differently."""
    if "load" in what:
        return 1e-6
    return 2e-9 if any(word in what for word in ("limit", "cone", "Cardan", "bounce", "cylindrical")) else 1e-10


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("what", [n if n in IN_EVERY_RUN else pytest.param(n, marks=pytest.mark.slow) for n in JOINTS])
def test_joints_make_the_same_steps_in_both_coordinates(what, flip, stored):
    sim = machine(JOINTS[what](), flip)
    for k in range(1, 21):
        sim.step()
        if k % 5 == 0:
            stored.meets(pose(sim), within(what))
            if within(what) == 1e-10:
                stored.meets(velocities(sim), 1e-9)
    assert sim.solver._lean
    for name in ("drive_impulse", "current"):
        found = getattr(sim.state, name).numpy()
        wanted = stored.next(found)
        np.testing.assert_allclose(found, wanted, atol=1e-6 * max(np.abs(wanted).max(), 1e-6), err_msg=name)


def test_friction_that_is_given_to_a_ball_later_holds_it():
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(0.3, 0.08, 0.08), mass=1.0, position=(0.15, 0, 0))
    scene.add_joint("ball", sh.Spherical(damping=0.1), scene.world, "rod", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="direct")
    sim.step(10)
    assert sim.solver._lean
    sim.joint("ball").friction = 5.0
    sim.step(200)
    assert sim.solver._lean
    assert np.abs(sim.joint("ball").velocity).max() == 0.0  # the friction holds more than the rod weighs
    sim.joint("ball").friction = 0.0
    sim.step(10)
    assert np.abs(sim.joint("ball").velocity).max() > 0.1
