"""What a scene stands in, in the viewer: sun, sky, ground and its scale, themes, views, legends; also in a browser."""

import contextlib
import socket
from types import SimpleNamespace

import numpy as np
import pytest
from browser import Browser

import sharnir as sh

pytest.importorskip("viser")
from sharnir.view import camera, picture, stage
from sharnir.view.viewer import Viewer


def scene_of_a_crate() -> sh.Simulation:
    """A crate of 2 × 1 × 1 m on the ground, and a rope with a load."""
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("crate", sh.Box(2, 1, 1), position=(0, 0, 0.5), color="#f2b134")
    scene.add_rope("cord", (2, 0, 3), (2, 0, 1.5), segments=6, radius=0.02, attach=("world", None))
    return sh.Simulation(scene, 2e-3, solver="sequential")


def made(**options) -> Viewer:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = int(s.getsockname()[1])
    return Viewer(scene_of_a_crate(), port=port, paused=True, wait=False, **options)


@pytest.fixture(scope="module")
def viewer():
    shown = made()
    yield shown
    shown.stop()


def test_a_sun_that_casts_shadows_shines_from_where_the_films_sun_does(viewer):
    from sharnir.view.tracer import SUN

    sun = viewer.server.scene.get_handle_by_name("/stage/sun")
    way = np.array(sun.position) - viewer.stage._middle
    assert sun.cast_shadow and way / np.linalg.norm(way) == pytest.approx(SUN)
    assert viewer.handles["crate"].cast_shadow and viewer.handles["crate"].receive_shadow
    assert not viewer.server.scene.get_handle_by_name("/stage/sky").cast_shadow


@pytest.mark.parametrize(("size", "side"), [(0.3, 0.1), (1.3, 1.0), (3.0, 1.0), (12.0, 1.0), (13.0, 10.0), (60.0, 10.0)])
def test_squares_of_the_ground_are_powers_of_ten(size, side):
    assert stage.square(size) == pytest.approx(side)


def test_the_ground_tells_its_scale(viewer):
    scene, side = viewer.server.scene, viewer.stage.section
    ground = scene.get_handle_by_name("/view/ground 0")
    assert side == 1.0 and ground.section_size == side and ground.cell_size == pytest.approx(side / stage.SQUARES)
    bar = scene.get_handle_by_name("/view/scale").points
    assert np.linalg.norm(bar[0, 1] - bar[0, 0]) == pytest.approx(side)
    assert scene.get_handle_by_name("/view/scale/length").text == "1 m"
    viewer.tell()
    assert "squares of the ground" in viewer._values.content


def test_the_sky_is_haze_at_the_horizon_and_seen_from_inside():
    sky = stage.dome(10.0, stage.THEMES["light"])
    corners = sky.vertices[sky.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    facing = (normals * corners.mean(1)).sum(1)
    assert np.all(facing <= 1e-9) and (facing < -1e-6).mean() > 0.9
    column = np.asarray(sky.visual.material.emissiveTexture)[:, 0]
    assert (
        tuple(column[0]) == stage.THEMES["light"].zenith and tuple(column[-1]) == tuple(column[130]) == stage.THEMES["light"].haze
    )


def test_themes(viewer):
    grounds = []
    for theme in ("dark", "light"):
        viewer.set_theme(theme)
        ground = viewer.server.scene.get_handle_by_name("/view/ground 0")
        grounds.append(np.mean(ground.plane_color))
        assert viewer.stage.theme == theme and viewer._dark.value == (theme == "dark")
    print(f"brightness of the ground: dark {grounds[0]:.0f}, light {grounds[1]:.0f}")
    assert grounds[0] < 80 < 160 < grounds[1]
    with pytest.raises(sh.SimulationError, match="'light', 'dark', got 'pink'"):
        viewer.set_theme("pink")
    with pytest.raises(sh.SimulationError, match="'light', 'dark', got 'pink'"):
        made(theme="pink")


@pytest.mark.parametrize("aspect", [0.5, 1.0, 1.8])
@pytest.mark.parametrize("name", camera.VIEWS)
def test_all_corners_are_seen_from_every_side(name, aspect):
    corners = np.array([[-1.0, -3.0, 0.0], [2.0, 1.0, 4.0]])
    at, middle = camera.view_of(name, corners, aspect)
    ahead = (middle - at) / np.linalg.norm(middle - at)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    points = np.array([[corners[i, 0], corners[j, 1], corners[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)]) - at
    tall = np.abs(points @ up / (points @ ahead)).max() / np.tan(camera.FOV / 2)
    broad = np.abs(points @ right / (points @ ahead)).max() / np.tan(camera.FOV / 2) / aspect
    print(f"{name}, {aspect}: the corners reach {tall:.2f} of the height and {broad:.2f} of the width")
    assert tall < 1.1 and broad < 1.1 and max(tall, broad) > 0.3


def test_views_move_the_cameras_of_pages(viewer, monkeypatch):
    seen = SimpleNamespace(position=np.zeros(3), look_at=np.zeros(3), up_direction=None, aspect=1.5)
    client = SimpleNamespace(camera=seen, atomic=contextlib.nullcontext)
    monkeypatch.setattr(viewer.server, "get_clients", lambda: {0: client})
    viewer.sim.body("crate").position = (7.0, 0, 0.5)
    viewer.show()
    viewer.look_from("front")
    assert (
        seen.look_at[0] == pytest.approx(0.5 * (2 + 8), abs=0.01)
        and seen.position[0] > 8
        and seen.position[1] == pytest.approx(0)
    )
    viewer.look_from("top")
    assert seen.position[2] > 2 and seen.position[:2] == pytest.approx(seen.look_at[:2], abs=0.02)
    assert viewer.server.initial_camera.position == pytest.approx(seen.position)
    viewer._view._impl.value = "from below"
    viewer._on_view(SimpleNamespace(client=client))
    assert seen.position[2] > 2
    viewer._view._impl.value = "side"
    viewer._on_view(SimpleNamespace(client=client))
    assert seen.position[1] < -1
    with pytest.raises(sh.SimulationError, match="'front', 'side', 'top', got 'below'"):
        viewer.look_from("below")
    monkeypatch.undo()
    viewer.reset()


def test_a_legend_tells_what_arrows_and_colours_are_worth(viewer):
    viewer.tell()
    assert not viewer._legend.visible
    for layer in ("contacts", "tensions"):
        viewer.show_layer(layer)
    viewer.step(200)
    per_length, arrow = viewer._scale.force_per_length, viewer.pictures[0]._presses.points
    found = viewer.sim.contacts()
    worth = np.linalg.norm(arrow[:, 1] - arrow[:, 0], axis=1).sum() * per_length
    print(f"arrows: {worth:.1f} N of {np.linalg.norm(found.force, axis=1).sum():.1f} N; 1 m is {per_length:g} N")
    assert worth == pytest.approx(np.linalg.norm(found.force, axis=1).sum(), rel=1e-4)
    words = viewer._legend.content
    assert viewer._legend.visible and f"1 m is {per_length:g} N" in words and f"0 to {viewer._pulls.top:g} N" in words
    assert viewer._pulls.top >= viewer.sim.rope("cord").tension.max() > 0
    assert "joint force" not in words
    for layer in ("contacts", "tensions"):
        viewer.show_layer(layer, False)
    viewer.tell()
    assert not viewer._legend.visible


@pytest.mark.parametrize(("most", "per_length", "top"), [(0.0, 0.0, 0.0), (1.0, 4.0, 1.0), (3.0, 8.0, 5.0), (80.0, 200.0, 100.0)])
def test_scales_are_round(most, per_length, top):
    scale = picture.Scale(0.5)
    scale.see(np.array([[0.0, 0.0, most]]))
    assert scale.force_per_length == pytest.approx(per_length) and scale.top == pytest.approx(top)


def test_ropes_are_as_thick_as_they_are(viewer):
    assert viewer.pictures[0]._ropes["cord"].thickness == pytest.approx(0.04)


def test_cables_are_coloured_by_their_tension():
    scene = sh.Scene()
    scene.add_body("beam", sh.Box(1, 0.2, 0.2), position=(0, 0, 3), motion="fixed")
    scene.add_body("load", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(0.3, 0, 1))
    scene.add_body("counter", sh.Box(0.3, 0.3, 0.3), mass=50.0, position=(-0.3, 0, 1))
    path = [("counter", (0, 0, 0.15)), sh.Sheave("beam", 0.3), ("load", (0, 0, 0.15))]
    scene.add_cable("line", path)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = int(s.getsockname()[1])
    shown = Viewer(sh.Simulation(scene, 2e-3), port=port, paused=True, wait=False)
    try:
        shown.show_layer("tensions")
        shown.step(50)
        drawn, pull = shown.pictures[0]._cables, np.max(shown.sim.cable("line").tension)
        assert len(drawn.colors) == len(drawn.points) > 2
        wanted = picture.tension_colours(np.array([pull]), shown._pulls.top)[0, 0]
        print(f"{pull:.1f} N of {shown._pulls.top:g} N is drawn as {drawn.colors[0, 0]}")
        assert pull == pytest.approx(50 * 9.81, rel=0.02) and shown._pulls.top == pytest.approx(500)
        assert np.abs(drawn.colors[0, 0].astype(int) - wanted).max() <= 1
        shown.show_layer("tensions", False)
        assert tuple(drawn.colors[0, 0]) == picture.ROD_COLOUR
    finally:
        shown.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"), (1000, 700))
    yield opened
    opened.close()


def seen_by(browser, path, what):
    """A screenshot of which something is true, soon."""
    browser.until(lambda: what(browser.picture(path)), 60)
    return browser.picture(path)


def test_a_browser_shows_the_sky_and_both_themes(viewer, browser, tmp_path):
    viewer.set_theme("light")
    viewer.look_from("side")
    browser.open(viewer.url)
    sky = slice(200, 220), slice(20, 60)  # below the note on slow graphics, beside the panel
    seen = seen_by(browser, tmp_path / "light.png", lambda p: p[*sky, 2].mean() > p[*sky, 0].mean() + 8)
    orange = (seen[..., 0] > seen[..., 2] + 60) & (seen[..., 1] > seen[..., 2] + 20)
    print(f"the crate is {orange.mean():.2%} of the picture")
    assert orange.mean() > 0.01
    viewer.set_theme("dark")
    dark = seen_by(browser, tmp_path / "dark.png", lambda p: p[*sky].mean() < 80)
    print(f"brightness: light {seen.mean():.0f}, dark {dark.mean():.0f}")
    assert dark.mean() < 0.6 * seen.mean() and not browser.errors
    viewer.set_theme("light")


def test_on_a_phone_all_is_seen_above_the_panel(viewer, browser, tmp_path):
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=780, deviceScaleFactor=1, mobile=True)
    viewer.look_from("all")
    browser.open(viewer.url)
    seen = seen_by(browser, tmp_path / "phone.png", lambda p: (p[..., 0] > p[..., 2] + 60).mean() > 0.005)
    orange = (seen[..., 0] > seen[..., 2] + 60) & (seen[..., 1] > seen[..., 2] + 20)
    columns = np.flatnonzero(orange.any(0))
    print(f"the crate reaches from column {columns[0]} to {columns[-1]} of 390")
    assert columns[0] > 3 and columns[-1] < 386 and np.flatnonzero(orange.any(1))[-1] < 400


def test_on_a_phone_the_panel_is_wide_and_leaves_half_of_the_screen(viewer, browser):
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    try:
        browser.open(viewer.url)
        words = (".mantine-Paper-root:has(.mantine-Button-root)", ".mantine-Button-root", ".mantine-Slider-thumb")
        seen = "(w => Array.from(document.querySelectorAll(w)).find(e => e.getBoundingClientRect().width > 0))"  # some are hidden
        browser.until(f"{list(words)}.every({seen})")
        boxes = [browser.ask(f"(b => [b.width, b.height, b.top])({seen}('{w}').getBoundingClientRect())") for w in words]
        panel, button, thumb = boxes
        print(f"panel {panel}, button {button}, thumb {thumb}")
        assert panel[0] == 390 and panel[2] >= 844 / 2
        assert button[0] >= 80 and button[1] >= 44 and thumb[0] >= 24
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
