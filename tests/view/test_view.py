"""The browser viewer, driven as its buttons drive it."""

import contextlib
import http.client
import socket
import threading
import time

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh

pytest.importorskip("viser")
from sharnir.core.spatial import quat_rotate
from sharnir.runtime.mirror import Mirror, take
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
    scene.add_body("loose", sh.Sphere(0.1), position=(0, -1, 0), com=(0.02, 0, 0), angular_velocity=(0, 0, 3))
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
    sim.joint("hinge").effort = 0.5
    sim.step(10)
    before = sim.snapshot()
    viewer = Viewer(sim, port=free_port(), paused=True)
    try:
        after = sim.snapshot()
        assert all(np.array_equal(before[name], after[name]) for name in before)
        viewer.step(5)
        viewer.reset()
        assert sim.time == pytest.approx(10 * DT) and sim.joint("hinge").effort == 0.5
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


@contextlib.contextmanager
def running(viewer):
    """The viewer's loop in a thread of its own."""
    done = threading.Event()
    thread = threading.Thread(target=viewer.run, args=(done.is_set,))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(10)
        assert not thread.is_alive() and not viewer.loop.rt.running


def until(what, seconds=10.0):
    deadline = time.perf_counter() + seconds
    while not what():
        assert time.perf_counter() < deadline
        time.sleep(0.005)


def test_time_stands_while_paused_and_keeps_pace_while_playing(viewer):
    sim = viewer.sim
    with running(viewer):
        time.sleep(0.05)
        assert sim.time == 0
        viewer.speed = 0.5
        viewer.play()
        until(lambda: sim.time > 0)
        started, first = time.perf_counter(), sim.time
        time.sleep(0.3)
        elapsed, made = time.perf_counter() - started, sim.time - first
        viewer.pause()
        stands = sim.time
        time.sleep(0.05)
        assert sim.time == stands  # at once, not after a tick more
        viewer.speed = 1.0
        skipped = viewer.loop.rt.statistics.skipped
        print(
            f"{made:.4f} s in {elapsed:.4f} s at half speed, {skipped:.4f} s skipped; {viewer.loop.rt.statistics.misses} missed"
        )
        assert 0 < made <= 0.5 * elapsed + 0.06
        in_time(abs(made + 0.5 * skipped - 0.5 * elapsed), 0.06, "the simulation at half speed")


def test_looking_neither_reads_nor_disturbs_the_motion():
    """Steps between looks are those without any, bit for bit; the mirror shows what the simulation itself would tell."""
    plain, seen = scene_of_everything(), scene_of_everything()
    mirror = Mirror(seen)
    for _ in range(20):
        plain.step(5)
        for _ in range(5):
            seen.step()
            mirror.put(take(seen))
            mirror.sim.energy(), mirror.sim.joint("hinge").velocity, mirror.sim.snapshot()
    assert plain.energy() == mirror.sim.energy() and mirror.sim.time == seen.time == plain.time
    one, other = plain.snapshot(), seen.snapshot()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_mirror_of_sequential_contact_tells_energy_and_forces():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("box", sh.Box(0.3, 0.3, 0.3), mass=1.0, position=(0, 0, 0.16))
    sim = sh.Simulation(scene, dt=0.005, solver="sequential")
    mirror = Mirror(sim)
    for _ in range(30):
        sim.step()
        mirror.put(take(sim))
        assert mirror.sim.energy() == sim.energy()
    assert np.array_equal(mirror.sim.contact_force("box"), sim.contact_force("box"))


def test_what_hands_do_acts_between_steps_of_the_loop(viewer):
    sim = viewer.sim
    with running(viewer):
        viewer.play()
        until(lambda: sim.time > 0.02)
        viewer.sliders.joints["hinge"].take(0.3)  # which stops time
        assert viewer.paused and sim.joint("hinge").position == pytest.approx(0.3)
        viewer.step(3)
        viewer.reset()
        assert sim.time == 0 and sim.joint("hinge").position == pytest.approx(0.0, abs=1e-12)


def test_what_a_control_raises_ends_the_viewer(viewer):
    def control(sim):
        raise ZeroDivisionError("mine")

    viewer.control = control
    viewer.play()
    with pytest.raises(ZeroDivisionError, match="mine"):
        viewer.run()
    viewer.hands.crash = None


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
        raise sh.SimulationError("body '<b>arm' would have a non-finite state")

    viewer.play()
    with monkeypatch.context() as patch:
        patch.setattr(sh.Simulation, "step", fail)
        with running(viewer):
            until(lambda: viewer.error)
    assert viewer.paused and "'<b>arm'" in viewer.error
    assert "non-finite" in viewer._warning.content and "<b>arm" not in viewer._warning.content and viewer._warning.visible
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


def test_an_address_that_cannot_be_served_on_is_an_error_at_once(monkeypatch):
    from sharnir.trainer import access_guard

    sim = scene_of_everything()
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        started = time.monotonic()
        for wrong in (str(port), float(port), True, -1, 70000, None):
            with pytest.raises(sh.SimulationError, match=rf"port is a whole number from 0 .* got {wrong!r}"):
                sim.view(port=wrong, block=False)
        with pytest.raises(sh.SimulationError, match=rf"192\.0\.2\.1:{port} cannot be served on"):
            sim.view(port=port, host="192.0.2.1", block=False)
        with pytest.raises(sh.SimulationError, match="host is a text"):
            sim.view(port=port, host=None, block=False)
        monkeypatch.setattr(access_guard, "TRIED", 1)
        with pytest.raises(sh.SimulationError, match=rf"port {port} of 127\.0\.0\.1 is busy"):
            sim.view(port=port, block=False)
        assert time.monotonic() - started < 5
        monkeypatch.setattr(access_guard, "TRIED", 100)
        shown = Viewer(sim, port=port)  # a busy port: the next free one is taken
        assert shown.server.get_port() != port
        shown.stop()
