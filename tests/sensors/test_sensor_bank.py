"""Sensors of a scene are read together, in one launch; each reads the same as if it were alone."""

import importlib.util
import math
import pathlib
import time

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh
from sharnir.sensors import IMU, Distance, ForceTorque, Lidar, Noise


def chain(links=6, contact=None):
    """A chain of links that swings above the ground; names of its links and joints."""
    scene = sh.Scene(contact=contact)
    names = []
    for i in range(links):
        names.append(scene.add_body(f"link{i}", sh.Box(0.3, 0.05, 0.05), mass=0.5, position=(0.15 + 0.3 * i, 0, 3)))
        parent = names[i - 1] if i else scene.world
        scene.add_joint(f"hinge{i}", sh.Revolute("y", damping=0.01), parent, names[i], position=(0.3 * i, 0, 3))
    return scene, names


def cpu_per_step(sims, steps=60, rounds=6):
    """Least CPU time per step of each simulation over the same steps, µs, taken in turns."""
    best = np.full(len(sims), np.inf)
    for _ in range(rounds):
        for k, sim in enumerate(sims):
            sim.reset()
            sim.step(2)
            begin = time.process_time()
            for _ in range(steps):
                sim.step()
            best[k] = min(best[k], (time.process_time() - begin) / steps * 1e6)
    return best


def test_many_sensors_cost_as_much_as_a_few():
    """A scene with 24 sensors and one with 2; each sensor on its own took 160 µs per step."""
    sims = []
    for count in (0, 2, 24):
        scene, names = chain()
        for k in range(count):
            kind, where = (("imu", names[k % 6]), ("force", f"hinge{k % 6}"))[k % 2]
            scene.add_sensor(f"s{k}", kind, where)
        sims.append(sh.Simulation(scene, 0.005))
    without, few, many = cpu_per_step(sims)
    print(f"µs per step: {without:.1f} without sensors, {few:.1f} with 2, {many:.1f} with 24")
    in_time(many - without, 200.0, "24 sensors, which took 4000 µs one by one,")


@pytest.mark.slow
def test_sensors_of_a_humanoid_cost_a_tenth_of_a_step():
    """The 14 of dm_control's model, with contact; they took 5 to 8 steps."""
    pytest.importorskip("mujoco")
    spec = importlib.util.find_spec("dm_control")
    if spec is None:
        pytest.skip("dm_control is not installed")
    file = pathlib.Path(spec.submodule_search_locations[0]) / "suite" / "humanoid.xml"
    scenes = [sh.load_mjcf(file) for _ in range(2)]
    scenes[1].sensors.clear()
    sims = [sh.Simulation(scene, 0.005, on_divergence="warn") for scene in scenes]
    with_sensors, without = cpu_per_step(sims, 100, 5)
    print(f"µs per step: {with_sensors:.1f} with {len(scenes[0].sensors)} sensors, {without:.1f} without")
    assert len(scenes[0].sensors) == 14 and with_sensors < 1.1 * without


def test_each_sensor_reads_what_it_reads_alone():
    """Different rates, noise and kinds in one scene, in two worlds: to the bit what sensors of their own read."""
    scene, names = chain()
    scene.add_ground()
    given = {
        "a": ("imu", names[2], {"position": (0.1, 0, 0), "noise": Noise(sigma=(0.1, 0.01), walk=(0.2, 0.0), seed=1)}),
        "b": ("imu", names[4], {"noise": Noise(rate=70, latency=2)}),
        "c": ("force", "hinge1", {"frame": names[3], "noise": Noise(sigma=0.5, rate=70, step=0.01)}),
        "d": ("distance", names[5], {"to": names[0], "noise": Noise(rate=30, bias=0.1)}),
        "e": ("lidar", names[5], {"count": 70, "noise": Noise(sigma=0.01)}),
        "f": ("lidar", names[1], {"count": 3, "noise": Noise(sigma=0.01, rate=30)}),
    }
    for name, (kind, where, options) in given.items():
        scene.add_sensor(name, kind, where, **options)
    sim = sh.Simulation(scene, 0.005, worlds=2)
    sim.joint("hinge0").velocity = [0.0, 1.0]
    alone, kinds = {}, {"imu": IMU, "force": ForceTorque, "distance": Distance, "lidar": Lidar}
    for name, (kind, where, options) in given.items():
        alone[name] = kinds[kind](sim, where, **options, name=name)
        alone[name].put_back(sim.sensor(name).state())
    for _ in range(60):
        sim.step()
        for name, sensor in alone.items():
            sensor.update()
            assert np.array_equal(sensor.array, sim.sensor(name).array), name
    assert np.ptp(sim.sensor("a").acceleration, axis=0).max() > 0.01, "worlds differ"


def test_an_accelerometer_that_was_frozen_shows_no_jump_when_it_is_repaired():
    """In free fall it reads 0; a frozen one that compared with the velocity before would read 10 steps' worth of gravity."""
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("stone", sh.Sphere(0.1), mass=1.0)
    scene.add_sensor("imu", "imu", "stone")
    sim = sh.Simulation(scene, 0.01)
    imu = sim.sensor("imu")
    sim.step(3)
    imu.fail("frozen")
    sim.step(10)
    imu.repair("frozen")
    sim.step(1)
    first = imu.acceleration
    sim.step(1)
    print(first, imu.acceleration)
    assert np.allclose(first, (0, 0, 10)), "as at its first reading, when there is no velocity to compare with"
    assert np.allclose(imu.acceleration, 0, atol=1e-9)


@pytest.mark.parametrize("contact", [None, False])
def test_rays_of_a_scene_without_contact_meet_its_shapes(contact):
    scene = sh.Scene(gravity=(0, 0, -10), contact=contact)
    scene.add_body("wall", sh.Box(0.2, 4, 4), position=(3, 0, 0), motion="fixed")
    scene.add_body("stone", sh.Box(0.2, 0.2, 0.2), mass=1.0)
    scene.add_sensor("scan", "lidar", "stone", count=1)
    scene.add_sensor("eye", "depth", "stone", width=5, height=5, field=0.3)
    sim = sh.Simulation(scene, 0.01)
    assert sim.sensor("scan").ranges == pytest.approx([2.9]) and sim.sensor("eye").names[2, 2] == "wall"
    sim.run(1.0)
    assert sim.body("stone").position[2] == pytest.approx(-5.0, rel=1e-6)
    assert sim.sensor("scan").ranges.tolist() == [math.inf], "it has fallen below the wall"
