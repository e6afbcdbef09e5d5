"""Rendered pictures: colours, what hides what, shadows and depths, against closed forms."""

import math

import numpy as np
import pytest

import sharnir as sh
from sharnir.core.spatial import quat_exp
from sharnir.view import shading, tracer
from sharnir.view.video import Camera

SIZE = (160, 120)
TETRAHEDRON = np.array([[0, 0, 0.5], [0.5, 0, -0.5], [-0.5, 0.5, -0.5], [-0.5, -0.5, -0.5]])


def shot(sim, eye, target, lens=40.0, size=SIZE):
    """A picture, its tracer and its camera."""
    made = tracer.Tracer(sim, size)
    camera = Camera(np.array(eye, float), np.array(target, float), size, lens)
    return made.render(camera), made, camera


def scene_of(*bodies, ground=False):
    scene = sh.Scene()
    if ground:
        scene.add_ground()
    for k, (shape, position, more) in enumerate(bodies):
        scene.add_body(f"body {k}", shape, position=position, motion="fixed", **more)
    return sh.Simulation(scene, 0.01)


def pixel(camera, point):
    """Column and row of a point in space."""
    local = camera.axes @ (np.asarray(point, float) - camera.eye)
    return (
        math.floor(0.5 * camera.size[0] + camera.focal * local[0] / local[2]),
        math.floor(0.5 * camera.size[1] - camera.focal * local[1] / local[2]),
    )


def test_pixels_have_the_colour_that_sky_and_sun_give():
    sim = scene_of((sh.Box(1, 1, 1), (0, 0, 0), {"color": "#ff8000"}))
    picture, _, _ = shot(sim, (0, 0, 6), (0, 0, 0), size=(80, 60))
    albedo = tracer.linear(np.array([[1.0, 128 / 255, 0.0, 1.0]]))[0, :3]
    half = tracer.SUN + [0, 0, 1]
    gloss = float(shading.REFLECTED) * 40 / 32 * (half[2] / np.linalg.norm(half)) ** 32
    light = np.array(shading.SKY_LIGHT) + tracer.SUN[2] * np.array(shading.SUN_LIGHT)
    expected = tracer.srgb(np.clip(albedo * light + gloss, 0, 1)).astype(int)
    found = picture[30, 40].astype(int)
    print(f"found {found}, expected {expected}")
    assert np.abs(found - expected).max() <= 2
    beneath, _, _ = shot(sim, (0, 0, -6), (0, 0, 0), size=(80, 60))
    dark = tracer.srgb(np.clip(albedo * np.array(shading.GROUND_LIGHT), 0, 1)).astype(int)
    assert np.abs(beneath[30, 40].astype(int) - dark).max() <= 1
    sky, _, _ = shot(sim, (0, 0, 6), (0, 1e-6, 12), size=(80, 60))
    assert np.abs(sky[30, 40].astype(int) - tracer.srgb(np.array(shading.ZENITH)).astype(int)).max() <= 1


@pytest.mark.parametrize("angle", np.linspace(0, 2 * math.pi, 13)[:-1])
def test_the_nearer_body_hides_the_farther_one_from_every_side(angle):
    """Long boxes that cross and a wall that reaches behind: sorting whole faces by depth cannot order them."""
    cross = [
        (sh.Box(6, 0.2, 0.4), (0, 0.11, 0), {"color": "#ff0000"}),
        (sh.Box(0.4, 6, 0.4), (0, 0, 0.41), {"color": "#00ff00"}),
        (sh.Box(8, 0.2, 5), (0, 1.5, 0), {"color": "#0000ff"}),
    ]
    eye = np.array([7 * math.cos(angle), 7 * math.sin(angle), 2.0])
    sim = scene_of(*cross)
    picture, made, camera = shot(sim, eye, (0, 0, 0))
    seen = made.bodies
    boxes = [(np.array(position), 0.5 * np.array([shape.x, shape.y, shape.z])) for shape, position, _ in cross]
    checked = 0
    for row in range(3, SIZE[1], 9):
        for column in range(3, SIZE[0], 9):
            d = camera.axes.T @ [(column + 0.5 - SIZE[0] / 2) / camera.focal, (SIZE[1] / 2 - row - 0.5) / camera.focal, 1.0]
            spans = []
            for middle, half in boxes:
                near, far = np.sort([(middle - half - eye) / d, (middle + half - eye) / d], axis=0)
                spans.append(near.max() if near.max() < far.min() and near.max() > 0 else np.inf)
            nearest = int(np.argmin(spans)) + 1 if np.isfinite(min(spans)) else -1
            assert seen[row, column] == nearest, (row, column)
            around = seen[row - 1 : row + 2, column - 1 : column + 2]
            if nearest > 0 and (around == nearest).all():
                assert picture[row, column].argmax() == nearest - 1
                checked += 1
    assert checked > 20


def test_a_shadow_falls_where_the_sun_is_hidden():
    """A ball above the ground: ground points whose line to the sun passes within its radius are dark, others are not."""
    radius, middle = 0.5, np.array([0.0, 0.0, 2.0])
    sim = scene_of((sh.Sphere(radius), middle, {"color": "#ffffff"}), ground=True)
    picture, _, camera = shot(sim, (-1.5, 1.5, 7), (-0.6, 0.8, 0), lens=50.0, size=(320, 240))
    foot = middle - tracer.SUN * middle[2] / tracer.SUN[2]
    dark = light = 0
    for x, y in np.random.default_rng(1).uniform(-1.2, 1.2, (400, 2)):
        point = foot + [x, y, 0]
        aside = np.linalg.norm(np.cross(middle - point, tracer.SUN))
        toward = point - camera.eye
        behind = np.linalg.norm(np.cross(middle - camera.eye, toward / np.linalg.norm(toward))) < radius + 0.05
        column, row = pixel(camera, point)
        if behind or abs(aside - radius) < 0.06 or not (0 <= column < 320 and 0 <= row < 240):
            continue
        bright = int(picture[row, column].max())
        if aside < radius:
            dark += 1
            assert bright < 160, (point, aside)
        else:
            light += 1
            assert bright > 165, (point, aside)
    print(f"{dark} points in shadow, {light} in the sun")
    assert dark > 20 and light > 50


def test_depth_of_a_ball_is_its_closed_form():
    radius, middle = 0.8, np.array([0.3, -0.2, 0.4])
    _, made, camera = shot(scene_of((sh.Sphere(radius), middle, {})), (4, 3, 2), (0, 0, 0))
    column, row = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    local = np.stack([(column - SIZE[0] / 2) / camera.focal, (SIZE[1] / 2 - row) / camera.focal, np.ones_like(row)], -1)
    o = camera.axes @ (camera.eye - middle)
    a, b, c = (local**2).sum(-1), local @ o, o @ o - radius**2
    root = b**2 - a * c
    expected = np.where(root >= 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)
    hit = np.isfinite(made.depth)
    assert (hit == np.isfinite(expected)).all() and hit.sum() > 500
    off = np.abs(made.depth[hit] - expected[hit]).max()
    print(f"largest difference of {hit.sum()} depths: {off:.1e} m")
    assert off < 5e-5


@pytest.mark.parametrize(
    ("shape", "half"),
    [
        (sh.Cylinder(0.4, 1.2), 0.6),
        (sh.Capsule(0.4, 1.2), 1.0),
        (sh.Cone(0.4, 1.2), 0.6),
        (sh.Ellipsoid(0.4, 0.3, 0.7), 0.7),
        (sh.Mesh((TETRAHEDRON, [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])), 0.5),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_solids_reach_as_far_as_their_size_says(shape, half):
    """Seen from the side at a distance, the rows that a solid covers are its height; a turned body turns it."""
    scene = sh.Scene()
    scene.add_body("it", shape, motion="fixed", rotation=quat_exp(np.array([math.pi / 2, 0, 0])))
    sim = sh.Simulation(scene, 0.01)
    _, made, camera = shot(sim, (20, 0.0, 0), (0, 0, 0), lens=8.0, size=(320, 320))
    columns = np.flatnonzero((made.bodies == 1).any(0))
    wide = (columns[-1] - columns[0] + 1) * 20 / camera.focal
    print(f"{wide:.3f} m wide, {2 * half} expected")
    assert wide == pytest.approx(2 * half, abs=0.03)


def test_a_thin_rope_is_seen_and_casts_a_shadow():
    scene = sh.Scene()
    scene.add_ground()
    scene.add_rope("line", (-2, 0, 1), (2, 0, 1), segments=10, radius=1e-3, mass_per_length=0.1)
    sim = sh.Simulation(scene, 0.01)
    _, made, _ = shot(sim, (0, -6, 3), (0, 0, 0.5))
    columns = (made.bodies == -2).any(0)
    assert columns[30:130].all()


def test_a_camera_inside_a_body_sees_out_of_it():
    sim = scene_of((sh.Sphere(1.0), (0, 0, 0), {}), (sh.Box(1, 1, 1), (5, 0, 0), {}))
    _, made, _ = shot(sim, (0, 0, 0), (5, 0, 0))
    assert made.bodies[60, 80] == 2 and not (made.bodies == 1).any()


def test_where_nothing_is_there_is_sky():
    sim = scene_of((sh.Sphere(0.5), (0, 0, 0), {}))
    picture, made, _ = shot(sim, (0, -5, 1), (0, -9, 1))
    assert np.isinf(made.depth).all() and (made.bodies == -1).all() and picture.min() > 100


def test_a_film_refuses_a_size_that_is_none():
    sim = scene_of((sh.Sphere(0.5), (0, 0, 0), {}))
    for size in ((0, 10), (320,), (3.5, 4), (10**6, 10)):
        with pytest.raises(sh.SimulationError, match="video: size"):
            sim.video("x.gif", size=size)


def test_a_painted_pane_lets_its_share_of_what_is_behind_through(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    pane = trimesh.Trimesh([[0, -1, -1], [0, 1, -1], [0, 1, 1], [0, -1, 1]], [[0, 1, 2], [0, 2, 3]], process=False)
    pane.visual.vertex_colors = np.tile([255, 0, 0, 128], (4, 1)).astype(np.uint8)
    pane.export(tmp_path / "pane.ply")
    pictures = []
    for visual in (None, sh.Surface(tmp_path / "pane.ply")):
        scene = sh.Scene()
        scene.add_body("wall", sh.Box(0.1, 4, 4), position=(-2, 0, 0), motion="fixed", color="#0000ff")
        if visual is not None:
            scene.add_body("pane", sh.Box(0.01, 2, 2), motion="fixed", collide=False, visual=visual)
        pictures.append(shot(sh.Simulation(scene, 0.01), (5, 0, 0), (0, 0, 0))[0][60, 80].astype(int))
    print(f"wall {pictures[0]}, through the pane {pictures[1]}")
    assert pictures[1][0] > 120 and 60 < pictures[1][2] < pictures[0][2]


def test_a_sensor_of_many_worlds_shows_the_first():
    scene = sh.Scene()
    scene.add_body("eye", sh.Box(0.1, 0.1, 0.1), motion="kinematic")
    scene.add_body("ball", sh.Sphere(0.5), position=(3, 0, 0), color="#ff0000")
    one, many = (
        sh.sensors.Camera(sh.Simulation(scene, 0.01, worlds=n), "eye", (0.2, 0, 0), width=64, height=48).rgb for n in (1, 3)
    )
    assert np.array_equal(one, many) and one[24, 32, 0] > one[24, 32, 2] + 60


def test_a_metal_reflects_the_sky_with_its_own_colour_and_a_rough_surface_spreads_the_sun():
    sky = np.array(shading.ZENITH)
    steel = scene_of((sh.Box(1, 1, 1), (0, 0, 0), {"color": "#ff8000", "roughness": 0.0, "metalness": 1.0}))
    picture, _, _ = shot(steel, (0, 0, 6), (0, 0, 0), size=(80, 60))
    albedo = tracer.linear(np.array([[1.0, 128 / 255, 0.0, 1.0]]))[0, :3]
    mean = np.array(shading.SKY_LIGHT)
    expected = tracer.srgb(albedo * (mean + 0.8 * (sky - mean))).astype(int)  # as clear as a roughness of 0.1 of 0.5
    print(f"found {picture[30, 40]}, expected {expected}")
    assert np.abs(picture[30, 40].astype(int) - expected).max() <= 2
    wide = []
    for roughness in (0.3, 0.5, 0.8):
        ball = scene_of((sh.Sphere(1.0), (0, 0, 0), {"color": "#000000", "roughness": roughness}))
        picture, _, _ = shot(ball, 4 * tracer.SUN, (0, 0, 0), size=(160, 120))
        line = picture[60].sum(1).astype(float)[30:130]
        line -= line[[20, 80]].mean()
        wide.append(int((line > 0.5 * line[45:55].max()).sum()))
    assert wide[0] < wide[1] < wide[2], wide
