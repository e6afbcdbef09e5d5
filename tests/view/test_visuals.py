"""What bodies look like apart from what they are: files with colours and textures, drawn everywhere, said by scene files."""

import json
import socket

import numpy as np
import pytest

import sharnir as sh

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("PIL.Image")
from sharnir.io.meshes import Beside, as_glb, finishes, is_painted, paint, tints  # noqa: E402
from sharnir.view.looks import Gallery  # noqa: E402
from sharnir.view.page import Page  # noqa: E402
from sharnir.view.picture import Looks  # noqa: E402

RED, BLUE = (220, 30, 30, 255), (20, 40, 230, 255)
OBJ = """mtllib cube.mtl
v 0 0 0
v 2 0 0
v 0 2 0
vt 0.1 0.1
vt 0.9 0.1
vt 0.1 0.9
usemtl painted
f 1/1 2/2 3/3
"""


@pytest.fixture
def truck(tmp_path):
    """A red box and a blue one above it, as a file."""
    low, high = trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1))
    high.apply_translation((0, 0, 1))
    low.visual.vertex_colors, high.visual.vertex_colors = RED, BLUE
    trimesh.Scene([low, high]).export(tmp_path / "truck.glb")
    return tmp_path / "truck.glb"


def scene_with(visual):
    scene = sh.Scene()
    scene.add_ground()
    scene.add_body("cab", sh.Box(0.4, 0.4, 0.4), mass=3.0, position=(0, 0, 1), visual=visual)
    return scene


def test_a_visual_weighs_nothing_and_touches_nothing(truck):
    plain, dressed = (sh.Simulation(scene_with(v), 0.01, solver="sequential") for v in (None, str(truck)))
    for sim in (plain, dressed):
        sim.run(1.0)
    assert np.array_equal(plain.body("cab").position, dressed.body("cab").position) and dressed.body("cab").mass == 3.0


def test_colours_of_a_file_are_drawn_in_viewer_page_and_film(truck, tmp_path):
    viser = pytest.importorskip("viser")
    from sharnir.view.video import Video
    from sharnir.view.viewer import Viewer

    placed = sh.Surface(truck, 0.5, position=(0, 0, -0.25), rotation=(0, 0, 0, 1))
    sim = sh.Simulation(scene_with(placed), 0.01, solver="sequential")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    viewer = Viewer(sim, port=port, paused=True)
    try:
        assert isinstance(viewer.handles["cab"], viser.GlbHandle)
        viewer.step(3)
        assert viewer.handles["cab"].position == pytest.approx(sim.body("cab").position, abs=1e-6)
    finally:
        viewer.stop()
    page = Page(sim, tmp_path / "page.html")
    page.take()
    body = next(b for b in page.contents()["bodies"] if b["name"] == "cab")
    made = page._looks.paint[1]
    high = made.vertices[:, 2] > 0.3
    assert body["colour"] == [1.0, 1.0, 1.0] and "tints" in body and np.ptp(made.vertices, axis=0) == pytest.approx([0.5, 0.5, 1])
    assert tints(made)[high] == pytest.approx(np.tile(np.array(BLUE[:3]) / 255, (high.sum(), 1)), abs=0.01)
    frame = np.asarray(Video(sim, tmp_path / "film.gif").frame(), float)
    red, blue = ((frame[..., a] > frame[..., b] + 60).mean() for a, b in ((0, 2), (2, 0)))
    print(f"of the film's picture {red:.2%} is red and {blue:.2%} blue")
    assert red > 0.005 and blue > 0.005


def test_textures_are_read_from_the_same_folder_and_nowhere_else(tmp_path):
    from PIL import Image

    inside, outside = tmp_path / "model", tmp_path / "secret.png"
    inside.mkdir()
    Image.new("RGB", (8, 8), BLUE[:3]).save(inside / "skin.png")
    Image.new("RGB", (8, 8), RED[:3]).save(outside)
    (inside / "cube.obj").write_text(OBJ)
    (inside / "cube.mtl").write_text("newmtl painted\nmap_Kd skin.png\n")
    seen = sh.Surface(inside / "cube.obj")
    assert seen.painted and tints(seen.loaded()) == pytest.approx(np.tile(np.array(BLUE[:3]) / 255, (3, 1)), abs=0.02)
    (inside / "cube.mtl").write_text("newmtl painted\nmap_Kd ../secret.png\n")
    blind = sh.Surface(inside / "cube.obj")
    assert not blind.painted or tints(blind.loaded())[0, 0] < 0.8
    with pytest.raises(ValueError, match="outside"):
        Beside(inside).get("../secret.png")


def test_scene_files_say_visuals_again(truck, tmp_path):
    for visual in (str(truck), sh.Surface(truck, 2.0, position=(0, 0, 0.5)), [sh.Sphere(0.1), sh.Surface(truck)]):
        scene_with(visual).save(tmp_path / "scene.toml")
        text = (tmp_path / "scene.toml").read_text()
        assert "truck.glb" in text and str(tmp_path) not in text
        again = sh.load_scene(tmp_path / "scene.toml")
        assert np.array_equal(again.bodies["cab"].visual.mesh()[0], scene_with(visual).bodies["cab"].visual.mesh()[0])
    (tmp_path / "wrong.toml").write_text('[body.cab]\nmass = 1.0\nvisual = "none.glb"\n')
    with pytest.raises(sh.SceneError, match=r"none\.glb"):
        sh.load_scene(tmp_path / "wrong.toml")


def test_what_is_wrong_with_a_visual_is_told(truck, tmp_path):
    (tmp_path / "bad.glb").write_bytes(truck.read_bytes()[:200])
    (tmp_path / "words.txt").write_text("none")
    (tmp_path / "gltf.gltf").write_text(json.dumps({"asset": {"version": "2.0"}, "buffers": [{"uri": "../../etc/passwd"}]}))
    for wrong in ("nothing.glb", "bad.glb", "words.txt", "gltf.gltf"):
        with pytest.raises(sh.SceneError, match=wrong) as told:
            scene_with(str(tmp_path / wrong))
        assert "body 'cab'" in str(told.value)
    for wrong in (3, [], ["truck.glb", 3]):
        with pytest.raises(sh.SceneError, match="body 'cab': visual"):
            scene_with(wrong)
    for scale in (0.0, float("nan"), (1, 2), "big"):
        with pytest.raises(sh.SceneError, match="scale"):
            sh.Surface(truck, scale)


def test_meshes_of_robots_keep_their_colours(truck, tmp_path):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    look = '<visual><origin xyz="0 0 1"/><geometry><mesh filename="truck.glb" scale="2 2 2"/></geometry></visual>'
    (tmp_path / "robot.urdf").write_text(f'<robot name="r"><link name="base">{inertial}{look}</link></robot>')
    shape = sh.load_urdf(tmp_path / "robot.urdf", floating=True).bodies["base"].shape
    made = paint(shape, (1, 2, 3))
    assert is_painted(shape) and made.bounds == pytest.approx(np.array([[-1, -1, 0], [1, 1, 4]]))
    assert len(np.unique(tints(made).round(2), axis=0)) == 2


def materials(file):
    """The materials of a glTF file, and which of them its triangles have."""
    tree = json.loads(file[20 : 20 + int.from_bytes(file[12:16], "little")])
    return [m["pbrMetallicRoughness"] for m in tree["materials"]], [
        p["material"] for m in tree["meshes"] for p in m["primitives"]
    ]


def test_roughness_and_metalness_of_a_file_are_drawn(tmp_path):
    pbr, visuals = trimesh.visual.material.PBRMaterial, trimesh.visual.TextureVisuals
    parts = [trimesh.creation.icosphere(radius=0.2), trimesh.creation.box((0.2, 0.2, 0.2))]
    parts[1].apply_translation((1, 0, 0))
    steel, paint_ = [0.2, 0.5, 0.8, 1.0], [1.0, 0.0, 0.0, 1.0]
    parts[0].visual = visuals(material=pbr(baseColorFactor=steel, metallicFactor=1.0, roughnessFactor=0.2))
    parts[1].visual = visuals(material=pbr(baseColorFactor=paint_, metallicFactor=0.0, roughnessFactor=0.8))
    parts[0].export(tmp_path / "ball.glb")
    trimesh.Scene(parts).export(tmp_path / "both.glb")
    ball, both = (paint(sh.Surface(tmp_path / f"{name}.glb"), (0, 0, 0)) for name in ("ball", "both"))
    assert np.allclose(tints(ball), np.array([124, 188, 231]) / 255, atol=1 / 255)  # sRGB of the linear factors
    assert np.allclose(finishes(ball), (0.2, 1.0))
    found = {tuple(row) for row in np.round(finishes(both), 2)}
    assert found == {(0.2, 1.0), (0.8, 0.0)}
    given, used = materials(as_glb(ball))
    assert (given[0]["metallicFactor"], given[0]["roughnessFactor"], used) == (1.0, 0.2, [0])
    given, _ = materials(as_glb(both, (0.7, 0.1)))
    assert given[0]["roughnessFactor"] == 0.7 and given[0]["metallicFactor"] == 0.1
    assert "metallicRoughnessTexture" not in given[0]


def test_roughness_and_metalness_of_a_body_are_drawn(truck):
    scene = sh.Scene()
    steel = sh.Visual(color=(1.0, 0.5, 0.0), roughness=0.2, metalness=1.0)
    scene.add_body("steel", sh.Box(1, 1, 1), visual=steel)
    scene.add_body("plain", sh.Box(1, 1, 1), position=(2, 0, 0))
    scene.add_body("truck", sh.Box(1, 1, 1), position=(4, 0, 0), visual=str(truck))
    scene.add_body("matt", sh.Box(1, 1, 1), position=(6, 0, 0), visual=str(truck), roughness=1.0)
    sim = sh.Simulation(scene, 0.01)
    looks = Looks(sim, 1.0)
    assert [looks.finish(i) for i in (1, 2, 3, 4)] == [[0.2, 1.0], [0.5, 0.0], [0.5, 0.0], [1.0, 0.0]]
    assert sorted(looks.files) == [1, 3, 4]
    given, used = materials(looks.files[1])
    assert np.allclose(given[0]["baseColorFactor"], (1.0, 0.2140, 0.0, 1.0), atol=0.003)  # linear
    assert (given[0]["roughnessFactor"], given[0]["metallicFactor"], used) == (0.2, 1.0, [0])
    given, used = materials(looks.files[3])  # vertices have colours, and glTF takes metal for granted
    assert (given[0]["roughnessFactor"], given[0]["metallicFactor"], used) == (0.5, 0.0, [0])
    solids = {solid.body: solid for solid in Gallery(sim).solids}
    assert solids[1].finish == (0.2, 1.0) and solids[2].finish == (0.5, 0.0)
    assert (
        np.allclose(solids[3].surface.finishes, (0.5, 0.0)) and solids[4].surface.finishes is None and solids[4].finish == (1, 0)
    )
    for wrong in (-0.1, 1.1, np.nan, "shiny", (0, 1)):
        for what in ("roughness", "metalness"):
            with pytest.raises(sh.SceneError, match=f"body 'a': {what} is a number from 0 to 1"):
                scene.add_body("a", sh.Box(1, 1, 1), **{what: wrong})
