"""Bodies that are symmetric about their hinge and carry nothing are rotors in a simulation, without being asked for."""

import math

import numpy as np
import pytest
from test_rotors import exact_gyrocompass

import sharnir as sh
from sharnir.engine.tree.forest import HINGE, ROTOR


def kinds(sim):
    return [p.kind for p in sim.solver._trees.plan.places]


def gyrocompass(dt):
    """A platform that turns at (2, 0, 1) rad/s, a frame free about its z, 0.5 rad off, in it a rotor along x at 300 rad/s."""
    turning, axis = np.array([2.0, 0.0, 1.0]), np.array([math.cos(0.5), math.sin(0.5), 0.0])
    turned = (0, 0, math.sin(0.25), math.cos(0.25))
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("platform", mass=1.0, inertia=(1, 1, 1), motion="kinematic", angular_velocity=turning)
    scene.add_body("frame", mass=1.0, inertia=(0.003, 0.003, 0.003), angular_velocity=turning, rotation=turned)
    scene.add_body("rotor", mass=1.0, inertia=(0.02, 0.012, 0.012), angular_velocity=turning + 300 * axis, rotation=turned)
    scene.add_joint("gimbal", sh.Revolute("z"), "platform", "frame", position=(0, 0, 0))
    scene.add_joint("axle", sh.Revolute("x"), "frame", "rotor", position=(0, 0, 0), rotation=turned)
    return sh.Simulation(scene, dt)


@pytest.mark.parametrize(("dt", "most"), [(1e-3, 1e-3), (5e-3, 2e-2)])
def test_a_gyrocompass_points_where_it_should(dt, most, recwarn):
    """As a hinge it is 0.061 and 0.27 rad off; and nothing warns of a rotor that turns 1.5 rad per step."""
    sim = gyrocompass(dt)
    sim.run(1.0)
    off = sim.joint("gimbal").position + 0.5 - exact_gyrocompass()
    print(f"{dt * 1e3:g} ms: {off:+.1e} rad off")
    assert kinds(sim)[-1] == ROTOR
    assert abs(off) < most
    assert not [w for w in recwarn if issubclass(w.category, sh.StepWarning)]


def drone(dt=2e-3, worlds=1, asymmetric=0.0, laws=None):
    """A free body of 2 kg with two wheels on hinges askew."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("body", sh.Box(0.4, 0.3, 0.2), mass=2.0, angular_velocity=(0.3, -0.2, 0.5))
    for i, axis in enumerate(((0.0, 0.6, 0.8), (1.0, 0.0, 0.0))):
        scene.add_body(
            f"wheel {i}", mass=0.5, inertia=sym(axis, asymmetric), position=(0.2 * i, 0.1, 0.1), angular_velocity=(0.3, -0.2, 0.5)
        )
        scene.add_joint(f"axle {i}", sh.Revolute(axis, **(laws or {})), "body", f"wheel {i}", position=(0.2 * i, 0.1, 0.1))
    sim = sh.Simulation(scene, dt, worlds=worlds)
    for i, speed in enumerate((200.0, -300.0)):
        sim.joint(f"axle {i}").velocity = np.full(worlds, speed) if worlds > 1 else speed
    return sim


def sym(axis, asymmetric):
    """0.002 kg·m² about an axis, 0.0012 across it."""
    e = np.asarray(axis, float)
    side = np.cross(e, (0.1, 0.7, 0.3))
    return 0.0012 * np.eye(3) + 0.0008 * np.outer(e, e) + asymmetric * np.outer(side, side) / (side @ side)


def test_wheels_on_a_free_body_keep_energy_and_momenta():
    sim = drone()
    assert kinds(sim)[1:] == [ROTOR, ROTOR]
    sim.step()
    energy, start = sim.energy().total, sim.momentum()
    for _ in range(50):
        sim.step(4)
        now = sim.momentum()
        assert abs(sim.energy().total / energy - 1) < 1e-12
        np.testing.assert_allclose(now.linear, start.linear, atol=1e-13)
        np.testing.assert_allclose(now.angular, start.angular, atol=1e-12)


def test_only_what_is_symmetric_in_all_worlds_is_a_rotor():
    assert kinds(drone(asymmetric=1e-6))[1:] == [HINGE, HINGE]
    sim = drone(worlds=2)
    assert kinds(sim)[1:] == [ROTOR, ROTOR]
    sim.body("wheel 1").inertia = np.stack([sym((1.0, 0, 0), 0.0), sym((1.0, 0, 0), 1e-5)])
    sim.step()
    assert kinds(sim)[1:] == [ROTOR, HINGE]
    scene = sh.Scene()
    scene.add_body("wheel", sh.Cylinder(0.1, 0.02), mass=1.0)
    scene.add_body("pin", sh.Box(0.02, 0.03, 0.02), position=(0.05, 0, 0.03))
    scene.add_joint("axle", sh.Revolute("z"), "world", "wheel", position=(0, 0, 0))
    scene.add_joint("crank", sh.Revolute("z"), "wheel", "pin", position=(0.05, 0, 0))
    assert kinds(sh.Simulation(scene, 1e-3)) == [HINGE, HINGE]  # it carries something; the pin is not symmetric


def wheel(dt=1e-3, **laws):
    """A wheel of 0.02 kg·m² on a fixed axle."""
    scene = sh.Scene()
    scene.add_body("wheel", mass=1.0, inertia=(0.012, 0.012, 0.02))
    scene.add_joint("axle", sh.Revolute("z", **laws), "world", "wheel", position=(0, 0, 0))
    return sh.Simulation(scene, dt)


def test_friction_dampers_and_servos_act_on_a_rotor_s_axis():
    sim = wheel(friction=0.4)
    sim.joint("axle").velocity = 100.0
    sim.run(1.0)
    assert sim.joint("axle").velocity == pytest.approx(100.0 - 0.4 / 0.02, abs=1e-9)
    assert sim.joint("axle").position == pytest.approx(100.0 - 0.5 * 0.4 / 0.02, abs=1e-9)
    sim.run(5.0)
    assert sim.joint("axle").velocity == 0.0
    damped = wheel(damping=2.0)
    damped.joint("axle").velocity = 300.0
    damped.step(20)
    share = 0.5 * 1e-3 * 2.0 / 0.02
    assert damped.joint("axle").velocity == pytest.approx(300.0 * ((1 - share) / (1 + share)) ** 20, rel=1e-12)
    servo = wheel(drive=sh.Servo(velocity=500.0, kd=1.0, max_force=3.0))
    servo.run(1.0)
    assert servo.joint("axle").velocity == pytest.approx(150.0, rel=1e-9)  # at its bound all the time
    assert servo.joint("axle").drive.force == pytest.approx(3.0, rel=1e-9)


def test_a_rotor_stops_at_its_limit():
    sim = wheel(limit=(-1.0, 1.0))
    sim.joint("axle").velocity = 700.0  # 0.7 rad per step
    sim.step(2)
    assert sim.joint("axle").position == pytest.approx(1.0, abs=1e-9)
    sim.step(5)
    assert sim.joint("axle").velocity == pytest.approx(0.0, abs=1e-9)


def test_a_moment_on_a_rotor_turns_it_and_its_base():
    """About the axle it speeds the wheel up; across it, it is the axle that carries it."""
    sim = wheel()
    sim.body("wheel").apply_torque((0.3, 0.0, 0.5), once=False)
    sim.run(1.0)
    assert kinds(sim) == [ROTOR]
    assert sim.joint("axle").velocity == pytest.approx(25.0, rel=1e-12)
    assert sim.joint("axle").position == pytest.approx(12.5, rel=1e-9)
    np.testing.assert_allclose(sim.joint("axle").reaction[1], (-0.3, 0.0, 0.0), atol=1e-12)
    assert sim.health().energy_error < 1e-9


def test_a_rotor_that_comes_off_flies_on():
    sim = drone()
    sim.step(5)
    angular = sim.momentum().angular
    sim.joint("axle 0").enabled = False
    spin, energy = np.array(sim.body("wheel 0").angular_velocity), sim.energy().total
    sim.step(20)
    assert abs(np.linalg.norm(sim.body("wheel 0").angular_velocity) / np.linalg.norm(spin) - 1) < 1e-3
    np.testing.assert_allclose(sim.momentum().angular, angular, atol=1e-12)
    assert abs(sim.energy().total / energy - 1) < 1e-12
