"""The viewer's sliders, layers, plots and worlds; who may connect; and, where there is one, a browser."""

import contextlib
import shutil
import socket
import subprocess
import time
from types import SimpleNamespace

import numpy as np
import pytest

import sharnir as sh

pytest.importorskip("viser")
from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.trainer import access_guard
from sharnir.view import panel, picture
from sharnir.view.viewer import Viewer

DT = 1e-3


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def scene_with_drives() -> sh.Simulation:
    """A servo, a motor, a reel, a spring, a ground and a terrain; bodies with colours."""
    scene = sh.Scene()
    scene.add_ground(-1.0)
    scene.add_terrain("hills", [[0, 0.1], [0.2, 0.1]], size=(1, 1), position=(3, 0, -1))
    scene.add_body("arm", sh.Box(0.5, 0.05, 0.05), position=(0.25, 0, 0), color="#ff0000")
    scene.add_body("wheel", sh.Cylinder(0.1, 0.05), position=(0, 1, 0), color=(0, 0.5, 1))
    scene.add_body("crate", sh.Box(0.2, 0.2, 0.2), position=(0, -1, -0.9))
    servo = sh.Revolute("y", limit=(-1, 0.5), drive=sh.Servo(kp=50, kd=5))
    scene.add_joint("elbow", servo, scene.world, "arm", position=(0, 0, 0))
    scene.add_joint("axle", sh.Revolute("z", drive=sh.DCMotor(voltage=3)), scene.world, "wheel", position=(0, 1, 0))
    scene.add_spring("spring", scene.world, "arm", at_a=(0.5, 0, 0.5), at_b=(0.25, 0, 0), stiffness=10.0)
    scene.add_rope("cord", (0, 1.5, 0.5), (0, 1.5, 0), segments=4, attach=("world", None), reel="start", longest=1.0)
    return sh.Simulation(scene, DT, solver="sequential")


class Page:
    """Stands for a page in a browser, whose hand moves a slider."""

    client = object()


@pytest.fixture(scope="module")
def viewer():
    made = Viewer(scene_with_drives(), port=free_port(), paused=True, wait=False, plot=("joint/elbow.q",), follow="crate")
    yield made
    made.stop()


def test_time_stands_while_no_page_is_open(viewer):
    viewer.wait = True
    viewer.play()
    ends = time.perf_counter() + 0.1
    viewer.run(lambda: time.perf_counter() > ends)
    viewer.wait = False
    viewer.pause()
    assert viewer.sim.time == 0 and viewer.open_pages == 0


def test_drives_have_sliders_that_act(viewer):
    sim = viewer.sim
    assert set(viewer.sliders.drives) == {"elbow", "axle", "cord (reel)"}
    for name, value, read in (
        ("elbow", -0.7, lambda: sim.joint("elbow").drive.position),
        ("axle", -5.0, lambda: sim.joint("axle").drive.voltage),
        ("cord (reel)", 0.05, lambda: sim.rope("cord").reel_speed),
    ):
        slider = viewer.sliders.drives[name]
        slider.handle.value = value
        assert read() != value  # what the program sets is shown, and does not act
        slider._on_update(Page)
        assert read() == pytest.approx(value)


def test_values_of_a_page_are_finite_and_within_the_range(viewer):
    elbow, slider = viewer.sim.joint("elbow"), viewer.sliders.drives["elbow"]
    slider.take(0.25)
    for value, kept in ((float("nan"), 0.25), (float("inf"), 0.25), ("x", 0.25), (None, 0.25), (1e9, 0.5), (-7, -1.0)):
        slider.take(0.25)
        slider.take(value)
        assert elbow.drive.position == pytest.approx(kept) and slider.handle.value == pytest.approx(kept)
    for value in (float("nan"), float("-inf"), -5.0, 0.0, 1e300):
        viewer._speed._impl.value = value  # as a page's message writes it
        assert 0.05 <= viewer.speed <= 2.0
        viewer.look()
        assert viewer.loop.rt.speed == viewer.speed
    viewer._speed._impl.value = 1.0
    viewer._follow._impl.value = "nobody we know"
    viewer._on_follow(Page)
    assert viewer._followed is None


def test_a_hand_on_a_joint_stops_time_and_moves_it(viewer):
    viewer.play()
    viewer.sliders.joints["elbow"].take(0.3)
    assert viewer.paused and viewer.sim.joint("elbow").position == pytest.approx(0.3)
    viewer.sliders.joints["elbow"].take(2.0)
    assert viewer.sim.joint("elbow").position == pytest.approx(0.5)


def test_sliders_follow_the_simulation(viewer):
    viewer.reset()
    viewer.step(300)
    axle, shown = viewer.sim.joint("axle").position, viewer.sliders.joints["axle"].handle.value
    print(f"axle at {axle:.4f} rad, its slider at {shown:.4f}")
    assert abs(axle) > 0.01 and shown == pytest.approx(np.clip(axle, -3.142, 3.142), abs=0.01)


def test_a_slider_makes_room_for_what_the_program_commands(viewer):
    slider = viewer.sliders.drives["axle"]
    assert slider.high == 24.0
    viewer.sim.joint("axle").drive.voltage = 40.0
    slider._moved = -1e9
    viewer.show()
    viewer.tell()
    assert slider.handle.value == 40.0 and slider.handle.max == slider.high == 50.0
    viewer.reset()


def test_what_a_hand_asks_for_and_cannot_be_is_told(viewer):
    viewer.act("drive", "elbow", "position", 0, float("nan"))
    assert "Refused" in viewer._warning.content and "'elbow'" in viewer._warning.content and viewer._warning.visible
    viewer.act("nothing")
    assert not viewer._warning.visible


def test_ground_terrain_and_colours_are_drawn(viewer):
    handles = viewer.handles
    assert tuple(handles["arm"].color) == (255, 0, 0) and tuple(handles["wheel"].color) == (0, 128, 255)
    ground = viewer.server.scene.get_handle_by_name("/view/ground 0")
    assert ground is not None and ground.position[2] == pytest.approx(-1.0)
    heights = np.sort(handles["hills"].vertices[:, 2])
    assert heights[0] == pytest.approx(0.0, abs=1e-6) and heights[-1] == pytest.approx(0.2, abs=1e-6)
    assert (
        len(viewer.pictures[0]._springs.points) > 8
        and len(viewer.pictures[0]._ropes["cord"].points) == 4 * picture.ROPE_PARTS_DRAWN
    )


def test_contacts_and_forces_are_shown(viewer):
    viewer.reset()
    layers = ("contacts", "forces", "tensions", "collision", "names")
    for layer in layers:
        viewer.show_layer(layer)
    viewer.step(200)
    first, sim = viewer.pictures[0], viewer.sim
    found = sim.contacts()
    assert len(found) == 4 and first._points.visible and first._points.points == pytest.approx(found.point, abs=1e-6)
    arrows = first._presses.points
    drawn, weight = arrows[:, 1] - arrows[:, 0], sim.body("crate").mass * 9.81
    print(f"contact forces on the crate: {np.abs(found.force[:, 2]).sum():.4f} N of {weight:.4f} N")
    assert np.abs(found.force[:, 2]).sum() == pytest.approx(weight, rel=1e-3)
    factor = np.linalg.norm(drawn) / np.linalg.norm(found.force)
    assert drawn == pytest.approx(factor * found.force, rel=1e-4, abs=1e-6)
    assert np.linalg.norm(drawn, axis=1).max() < 0.4 * viewer.size
    assert first._forces.visible and "largest force of late" in viewer._values.content
    top = first._ropes["cord"].colors[0, 0]
    assert top[0] > first._ropes["cord"].colors[-1, 0][0]  # redder where it carries more of itself
    for layer in layers:
        viewer.show_layer(layer, False)
    assert not (first._points.visible or first._presses.visible or first._forces.visible)


def test_arrows_grow_back_after_an_impact():
    scale = picture.Scale(1.0)
    calm, blow = np.array([[0, 0, 10.0]]), np.array([[0, 0, 8000.0]])
    before = scale.see(calm)
    scale.see(blow)
    assert scale.see(calm) < 0.01 * before
    for _ in range(400):
        scale.fade()
    assert scale.see(calm) == before and 0.5 <= 10 * before <= 1.25


def test_a_followed_body_stays_where_it_was_in_the_picture(viewer):
    viewer.follow("arm")
    before = viewer._root.position + viewer.sim.body("arm").com
    viewer.sim.joint("elbow").position = 0.4
    viewer.show()
    assert viewer._root.position + viewer.sim.body("arm").com == pytest.approx(before, abs=1e-6)
    viewer.follow(None)


def test_a_plot_draws_what_is_chosen(viewer):
    viewer.reset()
    for _ in range(5):
        viewer.step(10)
    viewer.plot.show()
    times, elbow = viewer.plot._chart.data
    assert viewer.plot.curves == ["joint/elbow.q"] and times[-1] == pytest.approx(0.05)
    assert elbow[-1] == pytest.approx(viewer.sim.joint("elbow").position)
    viewer.plot.add("body/crate.position")
    viewer.plot.add("rope/cord.tension")
    viewer.plot.add("__import__('os')")
    wanted = ["joint/elbow.q", *(f"body/crate.position[{i}]" for i in range(3)), *(f"rope/cord.tension[{i}]" for i in range(4))]
    assert viewer.plot.curves == wanted
    viewer.plot.clear()
    assert viewer.plot.curves == [] and viewer.plot._chart is None
    assert set(panel.offered(viewer.sim)) >= {"sim.energy", "joint/axle.qd", "spring/spring.length"}


def test_a_ledger_of_energies_adds_up(viewer):
    viewer.reset()
    viewer.plot.clear()
    viewer.plot.add("energies")
    begin = viewer.sim.energy().total
    for _ in range(4):
        viewer.step(20)
    viewer.plot.show()
    times, whole, kinetic, potential, elastic, given = viewer.plot._chart.data
    assert whole == pytest.approx(kinetic + potential + elastic) and given == pytest.approx(whole - begin, abs=1e-9)
    assert len(times) == 4 and np.ptp(kinetic) > 0 and elastic.max() > 0
    viewer.plot.clear()


def test_a_camera_rides_with_a_body_and_looks_along_a_frame(monkeypatch):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("car", sh.Box(0.4, 0.2, 0.2), velocity=(1, 0, 0), angular_velocity=(0, 0, 2.0))
    scene.add_frame("seat", "car", position=(0.1, 0, 0.3), rotation=(0, 0, 0, 1))
    sim = sh.Simulation(scene, DT)
    viewer = Viewer(sim, port=free_port(), paused=True)
    given = {"position": np.array([0.0, -2.0, 1.0]), "look_at": np.zeros(3), "up_direction": np.array([0.0, 0.0, 1.0])}
    camera = SimpleNamespace(**given)
    client = SimpleNamespace(camera=camera, atomic=contextlib.nullcontext)
    monkeypatch.setattr(viewer.server, "get_clients", lambda: {0: client})
    try:
        viewer.ride("car")
        viewer.step(500)
        body = sim.body("car")
        turn = quat_rotate(quat_conjugate(body.rotation), np.array([camera.position, camera.look_at]) - body.position)
        print(f"the car turned by {sim.time * 2:.2f} rad; the camera stands at {turn[0].round(9)} m of it")
        assert turn == pytest.approx(np.array([[0, -2, 1], [0, 0, 0]]), abs=1e-6)
        viewer.ride("seat")
        viewer.step(100)
        seat = sim.frame("seat")
        ahead = quat_rotate(seat.rotation, np.array([1.0, 0, 0]))
        assert camera.position == pytest.approx(seat.position, abs=1e-6)
        assert camera.look_at == pytest.approx(seat.position + ahead, abs=1e-6)
        kept = camera.position.copy()
        viewer.ride(None)
        viewer.step(10)
        assert np.array_equal(camera.position, kept)
        with pytest.raises(sh.SimulationError, match="'nobody'"):
            viewer.ride("nobody")
        viewer._camera._impl.value = "nobody we know"
        viewer._on_camera(Page)
        assert viewer._ride.where is None
    finally:
        monkeypatch.undo()
        viewer.stop()


def test_names_with_html_in_them_are_text_on_the_panel():
    name = "<img src=x onerror=alert(1)>"
    scene = sh.Scene()
    scene.add_body(name, sh.Sphere(0.1), mass=2.0)
    viewer = Viewer(sh.Simulation(scene, DT), name, port=free_port(), paused=True)
    try:
        viewer.pick(name)
        viewer.tell()
        assert "&lt;img" in viewer._values.content and "<img" not in viewer._values.content
        assert viewer.pictures[0]._labels[name].visible and "its mass" in viewer._values.content
        viewer.pick(None)
        viewer.tell()
        assert not viewer.pictures[0]._labels[name].visible and "img" not in viewer._values.content
    finally:
        viewer.stop()


def test_a_closed_viewer_is_for_those_with_a_token():
    scene = sh.Scene()
    scene.add_body("ball", sh.Sphere(0.1))
    scene.add_joint("pivot", sh.Revolute("y", drive=sh.Servo(kp=10)), scene.world, "ball", position=(0, 0, 0.5))
    viewer = Viewer(sh.Simulation(scene, DT), port=free_port(), paused=True, closed=True)
    try:
        port = viewer.url.rpartition(":")[2]
        words = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}==")
        mine = f"Host: 127.0.0.1:{port}"
        assert " 403 " in ask(viewer, mine, *words) and " 403 " in ask(viewer, mine, *words, f"Cookie: sharnir-{port}=guess")
        for token in (viewer.desk.token, viewer.desk.watch_token):
            assert " 101 " in ask(viewer, mine, *words, f"Cookie: a=b; sharnir-{port}={token}")
            for path in ("/", "/drive", "/instructor"):
                answer = ask(viewer, mine, path=f"{path}?token={token}", all_of_it=True)
                assert f"Set-Cookie: sharnir-{port}={token}; HttpOnly; SameSite=Strict" in answer, path
        assert "Set-Cookie" not in ask(viewer, mine, path="/?token=guess", all_of_it=True)
        assert not viewer.sliders.drives and not viewer._play.visible and viewer.watch_url.endswith(viewer.desk.watch_token)
        viewer._speed._impl.value = 2.0
        assert viewer.speed == 1.0 and not viewer.may_act(0)
    finally:
        viewer.stop()


def test_worlds_stand_side_by_side():
    scene = sh.Scene()
    scene.add_body("bob", sh.Sphere(0.1), position=(0.5, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "bob", position=(0, 0, 0))
    sim = sh.Simulation(scene, DT, worlds=5)
    sim.joint("hinge").position = np.linspace(-1, 1, 5)
    viewer = Viewer(sim, port=free_port(), paused=True, worlds=4)
    try:
        viewer.step(20)
        assert len(viewer.pictures) == 4
        at = sim.body("bob").position
        for w, shown in enumerate(viewer.pictures):
            assert shown.handles["bob"].position == pytest.approx(at[w], abs=1e-6)
        roots = np.array([viewer.server.scene.get_handle_by_name(f"/view/{w}").position for w in range(4)])
        apart = np.linalg.norm(roots[:, None] - roots[None], axis=-1) + 9 * np.eye(4)
        assert apart.min() > 0.2
        viewer.sliders.joints["hinge"].take(0.2)
        assert sim.joint("hinge").position == pytest.approx(np.full(5, 0.2))
    finally:
        viewer.stop()


def test_sim_view_goes_on_in_a_thread():
    scene = sh.Scene()
    scene.add_body("ball", sh.Sphere(0.1))
    sim = sh.Simulation(scene, DT)
    viewer = sim.view("mine", port=free_port(), block=False, wait=False)
    deadline = time.perf_counter() + 10
    while sim.time == 0 and time.perf_counter() < deadline:
        time.sleep(0.01)
    viewer.stop()
    assert sim.time > 0
    for wrong, words in (({"speed": -1.0}, "-1.0"), ({"worlds": 0}, "64"), ({"follow": "nobody"}, "'nobody'")):
        with pytest.raises(sh.SimulationError, match=words):
            sim.view(**wrong)


# ---- who may connect ----


def ask(viewer: Viewer, *headers: str, path: str = "/", all_of_it: bool = False) -> str:
    """The first line of the answer to a request with these headers, or the whole head of it."""
    host, port = viewer.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as s:
        s.sendall("\r\n".join([f"GET {path} HTTP/1.1", *headers, "", ""]).encode())
        head = s.recv(4096).split(b"\r\n\r\n")[0].decode()
        return head if all_of_it else head.split("\r\n")[0]


def test_only_pages_of_this_server_are_let_in(viewer):
    port = viewer.url.rpartition(":")[2]
    words = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}==")
    mine = f"Host: 127.0.0.1:{port}"
    assert " 200 " in ask(viewer, mine) and " 200 " in ask(viewer, f"Host: localhost:{port}")
    assert " 101 " in ask(viewer, mine, *words, f"Origin: http://127.0.0.1:{port}")
    for strange in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"10.0.0.7:{port}", ""):
        assert " 403 " in ask(viewer, f"Host: {strange}"), strange
    for origin in ("http://evil.example", f"http://localhost:{port}", f"https://127.0.0.1:{port}", "http://127.0.0.1:1", "null"):
        assert " 403 " in ask(viewer, mine, *words, f"Origin: {origin}"), origin
    assert " 403 " in ask(viewer, "X: y") and " 403 " in ask(viewer, mine, "Host: evil.example")


def test_a_server_for_others_is_asked_for_by_number_or_by_its_name():
    mine = socket.gethostname().lower()
    for host in ("192.168.1.5:8080", "[fe80::1]:8080", "localhost:8080", f"{mine}:8080"):
        assert access_guard.allowed("0.0.0.0", host, f"http://{host}") == "", host
    for host in ("evil.example:8080", "192.168.1.5.evil.example", "", None):
        assert access_guard.allowed("0.0.0.0", host, None), host
    assert access_guard.allowed("0.0.0.0", "192.168.1.5:8080", "http://192.168.1.6:8080")


def test_a_page_gets_no_tunnel_to_the_outside(viewer):
    assert viewer.server.request_share_url() is None


# ---- in a browser ----


@pytest.mark.slow
def test_a_browser_shows_the_picture_and_starts_the_clock(tmp_path):
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no chromium is installed: the page was not looked at in a browser")
    image = pytest.importorskip("PIL.Image")
    sim = scene_with_drives()
    viewer = sim.view("browser", port=free_port(), block=False)
    time.sleep(0.5)
    assert sim.time == 0  # nobody looks
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    flags += ["--window-size=800,500", "--virtual-time-budget=15000", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "page.png"
    try:
        made = subprocess.run([chromium, *flags, f"--screenshot={shot}", viewer.url], capture_output=True, timeout=180)
    finally:
        viewer.stop()
    assert made.returncode == 0, made.stderr[-2000:]
    pixels = np.asarray(image.open(shot).convert("RGB"), float)[:, :480]
    coloured = (np.ptp(pixels, axis=2) > 25).mean()
    print(f"{sim.time:.3f} s went by; {coloured:.3%} of the picture is coloured")
    assert sim.time > 0 and coloured > 1e-3
