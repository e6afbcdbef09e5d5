"""Pictures of the documentation, made by sharnir itself: python docs/tools/pictures.py [example …].

One PNG for each example, for the gallery, and the moving picture of the first page. They are kept beside the text, so that the
pages are built without running anything; make them anew after an example has changed.
"""

import pathlib
import sys
import warnings

from PIL import Image

import sharnir as sh
from sharnir.cli import examples
from sharnir.view.video import Video

IMAGES = pathlib.Path(__file__).parents[1] / "images"
SIZE = (360, 240)
WHEN = {
    "pendulum": 0.3, "double_pendulum": 0.8, "chain": 0.6, "thousand_links": 0.3, "crane_arm": 1.5, "winch_crane": 7.0,
    "drone_sling": 3.0, "tow_rope": 1.5, "mooring_line": 2.0, "hexapod": 1.2, "trailer_hitch": 2.5, "dominoes": 0.45,
    "newtons_cradle": 0.3, "gripper": 1.5, "twisted_ring": 1.0, "swinging_door": 0.8, "conveyor": 1.5, "spinning_top": 0.5,
    "mf4_stairs": 5.6, "mf4_door": 6.8, "krt100_trailer": 10.6, "krt100_rope": 9.6,
    "knot": 0.2,
    "mobile_crane": 9.0, "block_and_tackle": 4.0, "elevator": 5.0, "excavator_wall": 3.4, "winch_recovery": 6.0,
    "wall_follower": 4.5, "balanced_pendulum": 0.2, "swing_up": 2.5, "crane_without_sway": 0.9,
}  # fmt: skip
"""Seconds after the start at which an example looks like itself; 1 where nothing is said."""


FROM = {
    "balanced_pendulum": {"eye": (1.0, -2.0, 0.9), "target": (0.0, 0.0, 0.45)},
    "swing_up": {"eye": (1.0, -2.4, 0.6), "target": (0.0, 0.0, 0.0)},
    "crane_without_sway": {"eye": (2.0, -4.2, 2.0), "target": (0.7, 0.0, 1.25)},
    "mixed_heap": {"eye": (1.2, -1.8, 2.4), "target": (0.0, 0.0, 0.2)},
    "mf4_stairs": {"eye": (0.6, -3.4, 1.9), "target": (1.9, 0.0, 0.5)},
    "mf4_door": {"eye": (-0.4, -3.6, 2.1), "target": (1.7, -0.1, 0.6)},
    "krt100_trailer": {"eye": (8.2, -3.6, 2.2), "target": (10.4, 0.2, 0.3)},
    "krt100_rope": {"eye": (6.2, -4.2, 2.4), "target": (8.9, 0.2, 0.3)},
    "shoes": {"eye": (0.9, -2.0, 1.0), "target": (0.2, 0.3, 0.1)},
    "wall_follower": {"eye": (2.4, -5.4, 4.6), "target": (6.4, 0.2, 0.2)},
    "knot": {"eye": (0.16, -0.02, 0.1), "target": (0.025, 0.0, 0.0)},
}
"""Where one looks from, where the usual corner shows little."""


def advance(sim: sh.Simulation, control: object, duration: float) -> None:
    """So many seconds on, with the example's own control."""
    for _ in range(max(1, round(duration / sim.dt)) if callable(control) else 0):
        control(sim)  # type: ignore[operator]
        sim.step()
    if not callable(control):
        sim.run(duration)


def still(name: str) -> pathlib.Path:
    """An example at its moment."""
    module = examples.load(name)
    sim = module.make()
    advance(sim, getattr(module, "control", None), WHEN.get(name, 1.0))
    film = Video(sim, "x.gif", size=SIZE, **FROM.get(name, {}))
    film.clock = False
    path = IMAGES / "gallery" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    film.frame().quantize(96, method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    return path


def first_page() -> sh.Simulation:
    """A jointed crane on the ground swings a load on a rope into a wall of boxes: joints, drives, a rope and contact at once."""
    scene = sh.Scene()
    scene.add_ground(0.0)
    scene.add_body("mast", sh.Box(0.3, 0.3, 2.4), position=(0, 0, 1.2), motion="fixed", color="#8a8f98", collide=False)
    scene.add_body("boom", sh.Box(2.6, 0.16, 0.2), mass=60, position=(1.3, 0, 2.5), color="#f2b134", collide=False)
    slew = sh.Revolute("z", drive=sh.Servo(kp=4e4, kd=8e3))
    scene.add_joint("slew", slew, "mast", "boom", position=(0, 0, 2.4))
    scene.add_body("ball", sh.Sphere(0.28), mass=80, position=(2.5, 0, 0.75), color="#3b4252")
    steel = {"radius": 0.012, "mass_per_length": 0.6, "attach": ("boom", "ball")}
    scene.add_rope("hoist", (2.5, 0, 2.4), (2.5, 0, 1.03), segments=12, **steel)
    colours = ("#4e79a7", "#e15759", "#59a14f", "#f28e2b")
    for row in range(4):
        for column in range(3 - row % 2):
            at = (1.05 + 0.32 * column + 0.16 * (row % 2), 2.1, 0.151 + 0.301 * row)
            scene.add_body(f"box {row} {column}", sh.Box(0.3, 0.3, 0.3), mass=4, position=at, color=colours[(row + column) % 4])
    return sh.Simulation(scene, 2e-3, solver="sequential")


def moving() -> pathlib.Path:
    """The film of the first page."""
    sim = first_page()
    path = IMAGES / "first.gif"
    with sim.video(path, fps=12.5, size=(480, 300), eye=(5.2, -3.6, 3.2), target=(1.0, 0.9, 1.0)) as film:
        film.clock = False
        for _ in range(round(4.0 / sim.dt)):
            sim.joint("slew").drive.position = 1.15 * min(sim.time / 1.6, 1.0)
            sim.step()
    return path


if __name__ == "__main__":
    warnings.simplefilter("ignore", sh.StepWarning)
    IMAGES.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [*examples.examples(), "first"]
    for word in wanted:
        try:
            print(moving() if word == "first" else still(word))
        except SystemExit as missing:  # a package that not everybody has
            print(f"{word}: {missing}")
