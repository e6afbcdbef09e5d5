"""Lidar and depth images against closed forms and single rays; noise, rate and latency; failures; sensors of a scene."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_rotate
from sharnir.errors import SceneError, SimulationError
from sharnir.io.write import difference
from sharnir.sensors import DepthCamera, Distance, ForceTorque, Lidar, Noise
from sharnir.trainer.exercises.exercise import Exercise, Failure, Goal, Session, Within
from sharnir.trainer.failures import fail, repair

X, UP = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])


def room(worlds=1, **more):
    """A robot 1 m above the ground between walls 4 m in front, 3 m behind, 2 m at its left and right."""
    scene = sh.Scene()
    scene.add_ground()
    for name, x, y, sizes in (("front", 4.5, 0, (1, 9, 6)), ("back", -3.5, 0, (1, 9, 6)), ("left", 0, 2.5, (9, 1, 6))):
        scene.add_body(name, sh.Box(*sizes), position=(x, y, 3), motion="fixed")
    scene.add_ground(-2.0, normal="y")
    scene.add_body("robot", sh.Cylinder(0.2, 0.4), position=(0, 0, 1), motion="kinematic", **more)
    return sh.Simulation(scene, 0.01, worlds=worlds)


def off_the_line(points, line):
    """(n,) m, how far points are from a polyline."""
    a, along = line[:-1], np.diff(line, axis=0)
    share = np.clip(np.sum((points[:, None] - a) * along, axis=2) / np.sum(along**2, axis=1), 0, 1)
    return np.linalg.norm(points[:, None] - a - share[..., None] * along, axis=2).min(axis=1)


@pytest.mark.parametrize("solver", ["sequential", pytest.param("direct", marks=pytest.mark.slow)])
def test_a_lidar_and_a_camera_see_a_rope_that_swings(solver):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("mast", sh.Box(0.1, 0.1, 2.0), position=(0, 0, 1), motion="fixed")
    scene.add_rope("line", (2, -1, 3), (2, 1, 3), segments=20, radius=0.03, attach=("world", None), collide=False)
    scene.add_sensor("scan", "lidar", "mast", count=41, field=1.0, elevations=np.linspace(0.0, 0.8, 25))
    sim = sh.Simulation(scene, 2e-3, solver=solver)
    sim.step(60)
    scan, line = sim.sensor("scan"), sim.rope("line").position
    eye = np.array([0, 0, 1.0])
    rope = scan.names == "line"
    off = np.abs(off_the_line(eye + scan.points[rope], line) - 0.03).max()
    down = sim.ray_cast(line[10] + (0, 0, 1.0), (0, 0, -1.0))
    image = DepthCamera(sim, "mast", width=80, height=60, field=1.2, rotation=quat_exp((0, -0.5, 0)), ignore=["line"])
    print(f"{rope.sum()} of {rope.size} rays meet a rope whose end fell to {line[-1, 2]:.3f} m: {off:.1e} m off its surface")
    assert rope.sum() > 15 and off < 1e-12 and line[-1, 2] < 2.96 and down.body == ["line"]
    assert "line" not in image.names and set(scan.names[~rope]) <= {None, "world"}


def test_a_lidar_in_a_room_and_above_the_ground():
    sim = room()
    lidar = Lidar(sim, "robot", count=720, elevations=(0.0, -0.5))
    c, s = np.cos(lidar.azimuth), np.sin(lidar.azimuth)
    with np.errstate(divide="ignore"):
        flat = np.min([np.where(c > 0, 4 / c, np.inf), np.where(c < 0, -3 / c, np.inf), 2 / np.abs(s)], axis=0)
    tilted = np.minimum(flat / np.cos(0.5), 1 / np.sin(0.5))
    found = lidar.ranges.reshape(2, 720)
    off = max(np.abs(found[0] - flat).max(), np.abs(found[1] - tilted).max())
    print(f"{found.size} rays in a room: off by {off:.1e} m")
    view, place = lidar.array, lidar.array.__array_interface__["data"][0]
    sim.body("robot").position = (0.25, 0, 1)
    sim.step()
    assert lidar.update() and lidar.array.__array_interface__["data"][0] == place and view[360] == 3.75, "in the same memory"
    sim.reset()
    assert lidar.update() and view[360] == 4.0
    assert off < 1e-13
    assert np.array_equal(lidar.array, lidar.ranges) and not lidar.array.flags.writeable
    assert np.allclose(np.linalg.norm(lidar.points, axis=1), lidar.ranges)
    names = {i: n for n, i in sim.model.body_names.items()}
    seen = [names[b] for b in lidar.bodies[[360, 0, 540, 180]]]
    assert seen == ["front", "back", "left", "world"], "its own body is not in its way"
    ahead = Lidar(sim, "robot", rotation=quat_exp(0.3 * UP), count=3, field=0.2, reach=(0.1, 4.2))
    expected = 4 / np.cos(0.3 + np.array([-0.1, 0, 0.1]))
    assert np.allclose(ahead.ranges, np.where(expected > 4.2, np.inf, expected)) and np.isnan(ahead.points[-1]).all()
    near = Lidar(sim, "robot", count=4, reach=(2.5, 3.5))
    assert near.ranges.tolist() == [3.0, -math.inf, math.inf, -math.inf], "too near, too far"
    through = Lidar(sim, "robot", count=1, ignore=["front"], field=0.1)
    assert through.ranges.tolist() == [math.inf] and Lidar(sim, "robot", count=1, groups=2).ranges.tolist() == [math.inf]
    fixed = Lidar(sim, "world", position=(0, 0, 2), rotation=quat_exp(np.pi / 2 * np.array([0, 1.0, 0])), count=1)
    assert fixed.ranges.tolist() == [pytest.approx(0.8)], "from the world, down onto the robot"


def heap(worlds, seed=1, **more):
    """Bodies of all kinds at random on hilly ground; a robot that looks at them, elsewhere in each world."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene(gravity=(0, 0, 0))
    heights = 0.3 * np.sin(np.arange(30))[:, None] * np.cos(np.arange(20))
    scene.add_terrain("hills", heights, size=(30, 20), position=(0, 0, -2.0))
    kinds = [sh.Sphere(0.5), sh.Box(1, 0.5, 0.7), sh.Capsule(0.2, 1), sh.Cylinder(0.4, 0.8), sh.Cone(0.5, 1),
             sh.Ellipsoid(0.3, 0.5, 0.7), sh.Cylinder(0.4, 0.5, rounding=0.1)]  # fmt: skip
    for i in range(40):
        place, turn = rng.uniform((-9, -6, -1), (9, 6, 3)), quat_exp(rng.normal(size=3))
        scene.add_body(f"b{i}", kinds[i % 7], position=place, rotation=turn, group=(1, 2))  # they pass through each other
    scene.add_body("robot", sh.Box(0.2, 0.3, 0.4, position=(0.1, 0.2, 0)), position=(0, 0, 4))
    sim = sh.Simulation(scene, 0.01, worlds=worlds, **more)
    place = rng.uniform((-4, -4, 0.5), (4, 4, 2), (8, 3))[:worlds]
    turn = np.array([quat_exp(r * UP) for r in rng.uniform(-3, 3, 8)])[:worlds]
    sim.body("robot").position, sim.body("robot").rotation = (place, turn) if worlds > 1 else (place[0], turn[0])
    return sim


def test_a_lidar_stays_where_it_is_when_the_centre_of_mass_moves():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_ground()
    scene.add_body("car", sh.Box(1, 1, 1), mass=5.0, position=(0, 0, 2))
    scene.add_sensor("down", "lidar", "car", position=(0, 0, -0.5), rotation=quat_exp(np.array([0, np.pi / 2, 0])), count=1)
    sim = sh.Simulation(scene, 0.01)
    sim.body("car").com_local = (0.1, 0.2, 0.3)
    sim.step()
    assert sim.sensor("down").ranges[0] == pytest.approx(1.5, abs=1e-12)


@pytest.fixture(scope="module")
def crowd():
    return heap(3, threads=2)


def test_a_lidar_and_a_depth_image_are_single_rays(crowd):
    sim = crowd
    mount = {"position": (0.1, 0.2, 0.3), "rotation": quat_exp(np.array([0.2, 0.5, -0.3]))}
    lidar = Lidar(sim, "robot", **mount, count=90, elevations=np.linspace(-1, 0.5, 12), reach=(0.0, 25.0))
    depth = DepthCamera(sim, "robot", **mount, width=40, height=30, field=1.4, reach=(0.0, 25.0))
    frame = sh.sensors.Frame(sim, "robot", **mount)
    rows, columns = np.meshgrid(np.arange(30) - 14.5, np.arange(40) - 19.5, indexing="ij")
    focal = 20 / math.tan(0.7)
    rays = lidar.directions, np.stack([np.ones((30, 40)), -columns / focal, -rows / focal], -1).reshape(-1, 3)
    worst, met = 0.0, 0
    others = {n: i for n, i in sim.model.body_names.items() if n != "robot"}
    for w in range(3):
        for sensor, d, found in ((lidar, rays[0], lidar.ranges[w]), (depth, rays[1], depth.depth[w].ravel())):
            way = quat_rotate(np.tile(frame.rotation[w], (len(d), 1)), d)
            origin = np.tile(frame.position[w], (len(d), 1))
            unit = np.linalg.norm(d, axis=1)
            hits = sim.ray_cast(origin, way, 25.0 * unit, world=w)
            own = np.array([name == "robot" for name in hits.body])
            exact = np.where(np.isfinite(hits.distance), hits.distance / unit, np.inf)[~own]
            clear = np.isfinite(exact)
            assert np.array_equal(clear, np.isfinite(found[~own]))
            worst, met = max(worst, np.abs(exact[clear] - found[~own][clear]).max()), met + int(clear.sum())
            bodies = np.ravel(sensor.bodies[w])[~own]
            assert [others.get(n, -1) for n, o in zip(hits.body, own, strict=True) if not o] == bodies.tolist()
    print(f"{met} of {3 * (len(rays[0]) + len(rays[1]))} rays met something: off single rays by {worst:.1e} m")
    assert worst < 1e-12 and met > 2000
    assert depth.array.shape == (3, 30, 40) and np.array_equal(depth.array, depth.depth)
    seen = np.isfinite(depth.depth)
    assert np.allclose(depth.points[seen][:, 0], depth.depth[seen], rtol=1e-12), "depth is along the axis"
    alone = heap(1)
    one = Lidar(alone, "robot", **mount, count=90, elevations=np.linspace(-1, 0.5, 12), reach=(0.0, 25.0))
    assert one.ranges.tobytes() == lidar.ranges[0].tobytes(), "a world alone, to the bit"


def test_noise_has_the_figures_it_was_given(crowd):
    noise = Noise(sigma=0.02, bias=0.1, step=0.001, seed=5)
    true = Lidar(crowd, "robot", count=3000, elevations=(-0.3,), name="a")
    noisy, again, other = (Lidar(crowd, "robot", count=3000, elevations=(-0.3,), noise=noise, name=n) for n in "aab")
    hit = np.isfinite(true.ranges) & (true.ranges > 0.3) & (true.ranges < 29)
    error = noisy.ranges[hit] - true.ranges[hit]
    n = error.size
    mean, sigma = error.mean(), error.std()
    print(f"{n} rays: bias {mean:.5f} of 0.1, sigma {sigma:.5f} of 0.02, either ± {0.02 / math.sqrt(n):.1e}")
    assert n > 1000 and abs(mean - 0.1) < 4 * 0.02 / math.sqrt(n) and abs(sigma - 0.02) < 4 * 0.02 / math.sqrt(2 * n) + 1e-5
    assert np.abs(noisy.ranges[hit] / 0.001 - np.round(noisy.ranges[hit] / 0.001)).max() < 1e-9, "in steps of a millimetre"
    assert np.array_equal(noisy.ranges, again.ranges) and not np.array_equal(noisy.ranges, other.ranges)
    tail = np.mean(np.abs(error - 0.1) > 2 * 0.02)
    assert tail == pytest.approx(0.0455, abs=4 * math.sqrt(0.0455 / n)), "a normal distribution's"
    both = hit[0] & hit[1]
    rows = noisy.ranges[:2, both] - true.ranges[:2, both]
    assert abs(np.corrcoef(*rows)[0, 1]) < 4 / math.sqrt(both.sum()), "worlds are strangers"
    assert np.array_equal(np.isinf(true.ranges), np.isinf(noisy.ranges)), "nothing stays nothing"


def spun(worlds=1, **more):
    scene = sh.Scene(gravity=(0, 0, -10))
    scene.add_body("arm", sh.Box(1, 0.1, 0.1), mass=2.0, position=(0.5, 0, 0), angular_velocity=(0, 0, 2.0), velocity=(0, 1, 0))
    scene.add_joint("axle", sh.Revolute("z"), scene.world, "arm", position=(0, 0, 0))
    scene.add_body("post", sh.Box(0.1, 0.1, 1), position=(3, 0, 0), motion="fixed")
    scene.add_sensor("imu", "imu", "arm", position=(0.5, 0, 0), **more)
    scene.add_sensor("wrist", "force", "axle", noise=Noise(rate=50))
    scene.add_sensor("wire", "distance", "arm", to="post", noise=Noise(latency=3))
    scene.add_sensor("prompt", "distance", "arm", to="post")
    return sh.Simulation(scene, 0.01, worlds=worlds)


def test_sensors_are_read_at_their_rate_and_lag_behind():
    sim = spun(noise=Noise(rate=40))
    wrist, imu, wire = (sim.sensor(n) for n in ("wrist", "imu", "wire"))
    prompt, rates, forces, gaps, ways = sim.sensor("prompt"), [], [], [], []
    for _ in range(20):
        sim.step()
        rates.append(imu.acceleration[0]), forces.append(wrist.force[0]), ways.append(wire.distance)
        gaps.append(prompt.distance)
        assert gaps[-1] == pytest.approx(sh.sensors.distance(sim.frame("arm"), sim.frame("post")), rel=1e-15)
    changes = [k for k in range(1, 20) if forces[k] != forces[k - 1]]
    assert changes == list(range(1, 20, 2)), "50 Hz: every other step of 10 ms"
    held = [k + 1 for k in range(1, 20) if rates[k] != rates[k - 1]]
    assert held == [3, 5, 8, 10, 13, 15, 18, 20], "40 Hz: after 25 ms, or the first step then"
    assert ways[3:] == gaps[:17] and ways[0] == ways[1] == ways[2] == pytest.approx(2.5), "three readings late"
    other = spun(noise=Noise(rate=40))
    other.step(20)
    assert other.sensor("imu").acceleration.tobytes() == imu.acceleration.tobytes(), "many steps in one call"
    inward = -1.0 * 2.0**2
    print(f"at the rim {imu.acceleration} of ({inward}, 0, 10)")
    assert np.allclose(imu.acceleration, (inward, 0, 10), atol=0.2) and np.allclose(imu.rate, (0, 0, 2.0), atol=1e-9)
    assert np.linalg.norm(wrist.force) == pytest.approx(math.hypot(2 * 0.5 * 4, 20), rel=1e-3)
    sim.integrate(sim.time + 0.1)
    assert wire.distance == gaps[-3], "an integration is one reading, at its end"


def test_a_bias_that_walks_and_sensors_that_go_back_in_time():
    """After t s a random walk has the standard deviation walk·√t; worlds are its sample."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0)
    noise = Noise(sigma=(0.0, 0.001), walk=(0.2, 0.0), rate=50, latency=1, seed=3)
    scene.add_sensor("imu", "imu", "ball", noise=noise)
    sim = sh.Simulation(scene, 0.02, worlds=400)
    imu, start = sim.sensor("imu"), sim.snapshot()
    sim.step(50)
    first, kept = imu.acceleration.copy(), sim.snapshot()
    sim.step(50)
    last = imu.acceleration
    found = [float(x.std()) / (0.2 * math.sqrt(0.02 * n)) for x, n in ((first, 49), (last, 99))]
    print(f"walk: {found[0]:.3f} and {found[1]:.3f} of what it should be, ± {1 / math.sqrt(2 * 1200):.3f}")
    assert all(abs(x - 1) < 4 / math.sqrt(2 * 1200) for x in found)
    sim.restore(kept)
    sim.step(50)
    assert sim.sensor("imu").acceleration.tobytes() == last.tobytes(), "a snapshot goes on to the bit"
    sim.reset(worlds=[7])
    sim.step(50)
    assert np.array_equal(imu.acceleration[7], first[7]), "a world that begins anew reads what it read"
    assert not np.array_equal(imu.acceleration[8], first[8])
    sim.restore(start)
    sim.step(50)
    assert sim.sensor("imu").acceleration.tobytes() == first.tobytes()
    parts = sh.Simulation(scene, 0.02, worlds=5, device=["cpu", "cpu"])
    parts.step(50)
    assert parts.sensor("imu").acceleration.tobytes() == first[:5].tobytes(), "worlds that devices share"
    parts.reset()
    parts.step(50)
    assert parts.sensor("imu").acceleration.tobytes() == first[:5].tobytes()
    alone = sh.Simulation(scene, 0.02)
    alone.step(50)
    assert alone.sensor("imu").acceleration.tobytes() == first[0].tobytes(), "the first world, alone"


def test_sensors_fail_and_are_repaired():
    sim = spun(noise=Noise(sigma=(0.1, 0.01)))
    imu, wire = sim.sensor("imu"), sim.sensor("wire")
    fail(sim, "sensor frozen", "imu")
    fail(sim, "sensor bias", "wire", size=0.5)
    before, true = imu.rate, lambda: sh.sensors.distance(sim.frame("arm"), sim.frame("post"))
    sim.step(4)
    was = true()
    assert np.array_equal(imu.rate, before) and imu.faults == ("frozen",)
    sim.step(3)
    assert wire.distance == pytest.approx(was + 0.5, abs=1e-12), "it still lags by three readings"
    repair(sim)
    fail(sim, "sensor noise", "imu")
    rates = []
    for _ in range(200):
        sim.step()
        rates.append(imu.rate[2] - 2.0)
    print(f"ten times the noise, and its own: {np.std(rates):.4f} of {0.01 * math.sqrt(101):.4f} rad/s")
    assert np.std(rates) == pytest.approx(0.01 * math.sqrt(101), rel=0.2) and wire.faults == ()
    fail(sim, "sensor dropout", "imu")
    sim.step()
    assert np.isnan(imu.rate).all() and np.isnan(imu.acceleration).all()
    repair(sim)
    sim.step()
    assert np.isfinite(imu.rate).all() and abs(imu.rate[2] - 2.0) < 0.06
    seen = [(e.name, e.value) for e in sim.inputs.events if e.kind == "failure"][:4]
    assert seen == [("sensor frozen/imu", 1.0), ("sensor bias/wire", 1.0), ("sensor frozen/imu", 0.0), ("sensor bias/wire", 0.0)]
    wrong = [
        ("sensor wet", "imu", {}, "one of 'motor'.*'sensor frozen'"),
        ("sensor frozen", "eye", {}, "no sensor is"),
        ("sensor bias", "wire", {}, "say its size"),
        ("sensor noise", "imu", {"size": -1}, "sigma is at least 0"),
        ("brake", "axle", {"size": 2}, "has no size"),
    ]
    for kind, name, more, words in wrong:
        with pytest.raises(SimulationError, match=words):
            fail(sim, kind, name, **more)
    goal = Goal("late", [Within("sensor/wire.distance", -1, 1e3)], hold=0.2)
    session = Session(Exercise("x", "", spun, [goal], failures=[Failure(0.05, "sensor bias", "wire", 7.0)], limit=1.0))
    protocol = session.run()
    assert protocol.passed and session.sim.sensor("wire").distance > 8


def test_sensors_come_through_files_and_recordings(tmp_path):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body(
        "car",
        sh.Box(1, 0.5, 0.3),
        position=(0, 0, 0.4),
        velocity=(1, 0, 0),
        angular_velocity=(0, 0, 1),
        material=sh.Material(0.0),
    )
    scene.add_body("wall", sh.Box(0.2, 10, 2), position=(5, 0, 1), motion="fixed")
    scene.add_frame("mast", "car", position=(0, 0, 0.5))
    noise = Noise((0.1, 0.01), rate=100, seed=2)
    scene.add_sensor("imu", "imu", "mast", noise=noise)
    scene.add_sensor("front", "lidar", "car", position=(0.5, 0, 0), count=5, field=0.4, reach=(0.1, 9), noise=Noise(0.01))
    scene.add_sensor("eye", "depth", "mast", width=8, height=6, ignore=["wall"])
    scene.save(tmp_path / "car.toml")
    again = sh.load_scene(tmp_path / "car.toml")
    assert difference(scene.sensors, again.sensors, "sensors") is None and again.sensors["imu"].options["noise"] == noise
    sims = [sh.Simulation(s, 0.005, solver="sequential") for s in (scene, again)]
    log = sims[0].record("sensor/front.ranges", "sensor/imu.rate", every=2)
    with log, sims[0].record_file(tmp_path / "car.mcap", rate=50):
        sims[0].step(60)
    sims[1].step(60)
    for name, word in (("imu", "acceleration"), ("front", "ranges"), ("eye", "depth")):
        assert getattr(sims[0].sensor(name), word).tobytes() == getattr(sims[1].sensor(name), word).tobytes()
    assert log["sensor/front.ranges"].shape == (31, 5) and np.ptp(log["sensor/imu.rate"][:, 2]) > 0
    kept = sh.Recording(tmp_path / "car.mcap")
    assert (
        np.array_equal(kept["sensor/front.ranges"][-1], sims[0].sensor("front").ranges)
        and kept["sensor/eye.depth"].shape[1] == 48
    )
    again = kept.replay(sh.Simulation(scene, 0.005, solver="sequential"))
    print(again)
    assert again.equal and again.steps == 60


PART = """
[body.pad]
mass = 1
inertia = [1, 1, 1]
[place.a]
part = "eye"
position = [0, 0, 2]
[part.eye.body.head]
shape = {type = "Sphere", radius = 0.1}
[part.eye.sensor.scan]
kind = "lidar"
on = "head"
count = 16
noise = {type = "Noise", sigma = 0.01, rate = 20}
[part.eye.sensor.wire]
kind = "distance"
on = "world"
to = "head"
[ground]
"""


def test_a_sensor_of_a_part_is_at_that_part():
    from sharnir.io.scene_file import read_text

    scene = read_text(PART)
    assert list(scene.sensors) == ["a scan", "a wire"] and scene.sensors["a scan"].on == "a head"
    sim = sh.Simulation(scene, 0.01)
    assert sim.sensor("a wire").distance == 0.0 and sim.sensor("a scan").noise == Noise(0.01, rate=20)
    with pytest.raises(sh.SceneError, match=r"part.eye.sensor.scan.cuont: .*count"):
        read_text(PART.replace("count = 16", "cuont = 16"))


def test_a_camera_sees_what_a_depth_camera_measures():
    """Two cameras, one by triangles and one by rays, see a red box at the same pixels, also where a wall reaches behind them."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("car", sh.Box(0.4, 0.4, 0.2), position=(0, 0, 1), rotation=quat_exp(0.4 * UP), motion="kinematic")
    scene.add_body("box", sh.Box(0.5, 0.8, 0.6), position=(3, 1, 0.8), motion="fixed", color="#ff0000")
    scene.add_body("wall", sh.Box(20, 0.2, 3), position=(0, 3, 1.5), motion="fixed", color="#0000ff")
    sim = sh.Simulation(scene, 0.01)
    pose = {"position": (0.2, 0, 0), "rotation": quat_exp(np.array([0.1, 0.1, 0.0])), "width": 160, "height": 120, "field": 1.3}
    rgb, depth = sh.sensors.Camera(sim, "car", **pose).rgb, DepthCamera(sim, "car", **pose)
    assert rgb.shape == (120, 160, 3) and rgb.dtype == np.uint8
    for name, channel in (("box", 0), ("wall", 2)):
        seen = (rgb[..., channel] > 60) & (rgb[..., 1] < 60) & (rgb[..., 2 - channel] < 60)
        real = depth.bodies == sim.model.body_names[name]
        share = (seen & real).sum() / (seen | real).sum()
        print(f"{name}: {real.sum()} pixels by rays, {100 * share:.1f} % of them alike")
        assert real.sum() > 500 and share > 0.95, "but for the edges, which are smoothed"


WRONG = {
    "sensor 'n': kind is one of 'imu'.*got 'sonar'": lambda s: s.add_sensor("n", "sonar", "a"),
    "sensor 'n': on 'b' is not a body or frame": lambda s: s.add_sensor("n", "imu", "b"),
    "sensor 'n': on 'a' is not a joint": lambda s: s.add_sensor("n", "force", "a"),
    "takes no 'width'.*allowed:.*count": lambda s: s.add_sensor("n", "lidar", "a", width=3),
    "count is a whole number from 1": lambda s: s.add_sensor("n", "lidar", "a", count=0),
    "field is an angle above 0, at most 6.28": lambda s: s.add_sensor("n", "lidar", "a", field=7.0),
    "elevations are angles within": lambda s: s.add_sensor("n", "lidar", "a", elevations=[2.0]),
    "reach is .least, most. in m": lambda s: s.add_sensor("n", "depth", "a", reach=(3, 2)),
    "ignore 'c' is not a body": lambda s: s.add_sensor("n", "depth", "a", ignore=["c"]),
    "a distance needs to=": lambda s: s.add_sensor("n", "distance", "a"),
    "sigma of its noise is 1 or 2 or 6 numbers, got 3": lambda s: s.add_sensor("n", "imu", "a", noise=Noise(sigma=(1, 2, 3))),
    "sigma of its noise is 1 numbers, got 2": lambda s: s.add_sensor("n", "lidar", "a", noise=Noise(sigma=(1, 2))),
    "noise is a Noise": lambda s: s.add_sensor("n", "imu", "a", noise=0.1),
    "the name 's' is taken; sensors have different names": lambda s: [s.add_sensor("s", "imu", "a") for _ in range(2)],
    "position is three finite numbers": lambda s: s.add_sensor("n", "imu", "a", position=(1, 2)),
    "Noise: sigma is at least 0.*got -1": lambda s: Noise(sigma=-1),
    "Noise: bias is finite": lambda s: Noise(bias=math.nan),
    "Noise: rate is a positive": lambda s: Noise(rate=0),
    "Noise: latency is a whole number": lambda s: Noise(latency=1.5),
    "do not touch; add a ground": lambda s: Lidar(sh.Simulation(s, 0.01), "a"),
    "no sensor is named 'x'; available: none": lambda s: sh.Simulation(s, 0.01).sensor("x"),
    "holds back more than": lambda s: Distance(sh.Simulation(s, 0.01), "a", "world", noise=Noise(latency=10**9)),
    "no joint is named 'a'": lambda s: ForceTorque(sh.Simulation(s, 0.01), "a"),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_no_sensor_is(words):
    scene = sh.Scene()
    scene.add_body("a", sh.Sphere(0.1))
    with pytest.raises((SceneError, SimulationError), match=words) as told:
        WRONG[words](scene)
    print(told.value)
