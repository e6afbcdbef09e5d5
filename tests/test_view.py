"""The browser viewer, driven as its buttons drive it."""

import http.client
import socket
import threading
import time

import numpy as np
import pytest

import sharnir as sh

pytest.importorskip("viser")
from sharnir.spatial import quat_rotate
from sharnir.view import picture, pieces
from sharnir.view.viewer import Viewer

DT = 1e-3


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def scene_of_everything() -> sh.Simulation:
    """A hinge, a slide, a ball, a rod, a free body, a fixed one and a point mass."""
    scene = sh.Scene()
    scene.add_body("wall", sh.Box(0.1, 0.1, 0.1), motion="fixed")
    scene.add_body("arm", sh.Box(0.4, 0.05, 0.05), position=(0.2, 0, 0))
    scene.add_body("ball/link", sh.Capsule(0.03, 0.2), position=(0.4, 0, -0.1))
    scene.add_body("slider", sh.Cylinder(0.05, 0.1), position=(0, 1, 0))
    scene.add_body("bob", mass=1.0, position=(1, 1, 0))
    scene.add_body("loose", sh.Sphere(0.1), position=(0, -1, 0), com=(0.02, 0, 0), spin=(0, 0, 3))
    scene.add_joint("hinge", sh.Revolute("y"), "wall", "arm", position=(0, 0, 0))
    scene.add_joint("socket", sh.Spherical(), "arm", "ball/link", position=(0.4, 0, 0))
    scene.add_joint("rail", sh.Prismatic("z"), scene.world, "slider", position=(0, 1, 0))
    scene.add_joint("string", sh.Distance(), scene.world, "bob", position=[(1, 1, 1), (1, 1, 0)])
    scene.add_joint("nothing", sh.Free(), scene.world, "loose")
    return sh.Simulation(scene, DT)


@pytest.fixture(scope="module")
def shared():
    sim = scene_of_everything()
    viewer = Viewer(sim, "everything", port=free_port(), paused=True, wait=False)
    yield viewer
    viewer.stop()


@pytest.fixture
def viewer(shared):
    shared.pause()
    shared.reset()
    shared.control = None
    yield shared


def test_a_browser_gets_the_page(viewer):
    address = viewer.url.removeprefix("http://")
    assert address.startswith("127.0.0.1:")
    connection = http.client.HTTPConnection(address, timeout=5)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200 and b"<html" in answer.read().lower()


def test_opening_the_viewer_leaves_the_simulation_as_it_was():
    sim = scene_of_everything()
    sim.joint("hinge").force = 0.5
    sim.step(10)
    before = sim.snapshot()
    viewer = Viewer(sim, port=free_port(), paused=True)
    try:
        after = sim.snapshot()
        assert all(np.array_equal(before[name], after[name]) for name in before)
        viewer.step(5)
        viewer.reset()
        assert sim.time == pytest.approx(10 * DT) and sim.joint("hinge").force == 0.5
    finally:
        viewer.stop()


def test_every_body_stands_where_the_simulation_has_it(viewer):
    viewer.step(50)
    assert set(viewer.handles) == {"wall", "arm", "ball/link", "slider", "bob", "loose"}
    for name, handle in viewer.handles.items():
        body = viewer.sim.body(name)
        x, y, z, w = body.rotation
        assert handle.position == pytest.approx(body.position, abs=1e-6)
        assert handle.wxyz == pytest.approx([w, x, y, z], abs=1e-6)


def test_step_makes_one_step_and_pauses(viewer):
    viewer.play()
    start = np.array(viewer.handles["arm"].wxyz)
    viewer.step()
    assert viewer.paused and viewer.sim.time == pytest.approx(DT)
    viewer.step(20)
    assert viewer.sim.time == pytest.approx(21 * DT)
    assert np.abs(viewer.handles["arm"].wxyz - start).max() > 1e-5


def test_time_stands_while_paused_and_runs_while_playing(viewer):
    viewer.tick(0.05)
    assert viewer.sim.time == 0
    viewer.play()
    viewer._step_cost = 1e-9
    viewer.tick(0.0505)
    assert viewer.sim.time == pytest.approx(0.050)
    viewer._step_cost = 1e-9
    viewer.tick(0.0005)  # the half step owed is not lost
    assert viewer.sim.time == pytest.approx(0.051)


def test_speed_scales_time(viewer):
    viewer.play()
    viewer.speed = 0.5
    viewer._step_cost = 1e-9
    viewer.tick(0.04)
    viewer.speed = 1.0
    assert viewer.sim.time == pytest.approx(0.020)


def test_a_slow_simulation_skips_time_instead_of_falling_behind(viewer):
    viewer.play()
    viewer._step_cost = 0.5  # a step takes half a second
    viewer.tick(10.0)
    assert viewer.sim.time == pytest.approx(DT)
    assert viewer._owed == 0


def test_reset_goes_back_to_the_start(viewer):
    start = {name: np.array(handle.position) for name, handle in viewer.handles.items()}
    viewer.step(100)
    viewer.reset()
    assert viewer.sim.time == 0
    for name, handle in viewer.handles.items():
        assert handle.position == pytest.approx(start[name], abs=1e-9)


def test_marks_sit_at_the_anchors_along_the_axes(viewer):
    viewer.step(30)
    sim, seen = viewer.sim, {}
    for mark, handle in viewer.pictures[0].marks:
        name = list(sim.model.body_names)[mark.body]
        turn = sim.body(name).rotation
        at = sim.body(name).position + quat_rotate(turn, np.array(handle.position, float))
        w, x, y, z = handle.wxyz
        local_z = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), w * w + z * z - x * x - y * y])
        seen[mark.name.partition(".")[0]] = at, quat_rotate(turn, local_z)
    assert set(seen) == {"hinge", "socket", "rail"}
    for name, (at, _) in seen.items():
        assert at == pytest.approx(sim.joint(name).anchor, abs=1e-6)
    assert np.abs(seen["hinge"][1]) == pytest.approx([0, 1, 0], abs=1e-6)
    assert np.abs(seen["rail"][1]) == pytest.approx([0, 0, 1], abs=1e-6)
    rod = viewer.pictures[0]._rods.points
    assert rod == pytest.approx(np.array([[(1, 1, 1), sim.body("bob").position]]), abs=1e-6)


def test_marks_are_no_larger_than_the_smaller_body_and_the_picture(viewer):
    for mark, _ in viewer.pictures[0].marks:
        assert np.ptp(mark.mesh[0], axis=0).max() < 0.2 * viewer.size, mark.name


def test_the_checkbox_hides_the_marks(viewer):
    viewer.show_layer("axes", False)
    assert not any(handle.visible for _, handle in viewer.pictures[0].marks)
    viewer.show_layer("axes", True)
    assert all(handle.visible for _, handle in viewer.pictures[0].marks)
    with pytest.raises(sh.SimulationError, match="'shadows'"):
        viewer.show_layer("shadows")


def test_numbers_are_shown(viewer):
    viewer.step(10)
    assert "0.010" in viewer._values.content and "total energy" in viewer._values.content


def test_a_failed_step_is_shown_and_pauses(viewer, monkeypatch):
    def fail(_sim: sh.Simulation, n: int = 1) -> None:
        raise sh.SimulationError("body 'arm' would have a non-finite state")

    viewer.play()
    with monkeypatch.context() as patch:
        patch.setattr(sh.Simulation, "step", fail)
        viewer.tick(0.02)
    assert viewer.paused and "non-finite" in viewer.error
    assert "non-finite" in viewer._warning.content and viewer._warning.visible
    viewer.reset()
    assert not viewer.error and not viewer._warning.visible


def test_control_is_asked_before_steps(viewer):
    times = []
    viewer.control = lambda sim: times.append(sim.time)
    viewer.step()
    viewer.step()
    assert times == pytest.approx([0, DT])


def test_forces_of_a_control_act_in_each_of_several_steps(viewer):
    weight = viewer.sim.body("loose").mass * 9.81
    viewer.control = lambda sim: sim.body("loose").apply_force((0, 0, weight))
    viewer.step(20)
    fell = viewer.sim.body("loose").velocity[2]
    print(f"held against its weight for 20 steps: {fell:.1e} m/s")
    assert abs(fell) < 1e-9


def test_the_clock_runs_in_real_time_until_stopped():
    viewer = Viewer(scene_of_everything(), port=free_port(), wait=False)
    clock = threading.Thread(target=viewer.run)
    clock.start()
    deadline = time.perf_counter() + 10
    while viewer.sim.time < 0.05 and time.perf_counter() < deadline:
        time.sleep(0.01)
    viewer.stop()
    clock.join(5)
    assert not clock.is_alive() and viewer.sim.time >= 0.05


def test_a_body_that_flies_off_does_not_shrink_the_picture():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("bullet", sh.Sphere(0.1), velocity=(1000, 0, 0))
    low, high = picture.watch(sh.Simulation(scene, DT))
    assert np.all(high - low < 1.0)


def test_rotations_along_a_direction():
    for d in np.vstack([np.eye(3), -np.eye(3), [[1, 2, -3]]]):
        w, x, y, z = pieces.along(d[None].astype(float))[0]
        local_z = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), w * w + z * z - x * x - y * y])
        assert local_z == pytest.approx(d / np.linalg.norm(d), abs=1e-12)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-1e-14, "0"), (1.0, "1.0000"), (-41.283456, "−41.283"), (123456.7, "123457"), (3e7, "3.000e+07")],
)
def test_figures(value, text):
    assert pieces.figures(value) == text
