"""Contact beside MuJoCo and Rapier in the same run: a stack, a pyramid, falling spheres, with everyone's default settings.

Nobody sleeps: steps of bodies at rest are compared.

Engines take turns, fifty steps each, so that a slow minute of the machine hits all alike; CPU time, medians.
Run: python -m benchmarks.contact [stack pyramid spheres]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import sharnir as sh

DT, MU, TURN = 1e-3, 0.6, 50


@dataclass
class Scene:
    """Boxes (kg, half size m, place), spheres (kg, radius m, place) and planes (point, normal)."""

    boxes: list[tuple[float, float, np.ndarray]] = field(default_factory=list)
    spheres: list[tuple[float, float, np.ndarray]] = field(default_factory=list)
    planes: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: [(np.zeros(3), np.array([0.0, 0, 1]))])
    steps: int = 2000


def stack() -> Scene:
    """Ten boxes on each other."""
    return Scene(boxes=[(8.0, 0.1, np.array([0, 0, 0.1 + 0.2 * i])) for i in range(10)])


def pyramid() -> Scene:
    """55 boxes."""
    rows = [(r, k) for r in range(10) for k in range(10 - r)]
    return Scene(boxes=[(8.0, 0.1, np.array([(k - (9 - r) / 2) * 0.205, 0, 0.1 + 0.2 * r])) for r, k in rows])


def spheres() -> Scene:
    """200 spheres fall into a shaft."""
    rng, wall = np.random.default_rng(0), 0.32
    places = [np.array([(i % 5 - 2) * 0.11, (i // 5 % 5 - 2) * 0.11, 0.1 + (i // 25) * 0.11]) for i in range(200)]
    scene = Scene(spheres=[(0.5236, 0.05, p + rng.uniform(-0.004, 0.004, 3)) for p in places], steps=1000)
    scene.planes += [(wall * np.array([a, b, 0.0]), -np.array([a, b, 0.0])) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    return scene


def ours(scene: Scene) -> sh.Simulation:
    """The scene, with the settings that a user gets, but for sleep."""
    material, made = sh.Material(friction=MU), sh.Scene()
    for point, normal in scene.planes:
        made.add_ground(float(point @ normal), normal=normal, material=material)
    shapes = [(m, sh.Box(2 * h, 2 * h, 2 * h), p) for m, h, p in scene.boxes] + [
        (m, sh.Sphere(r), p) for m, r, p in scene.spheres
    ]
    for i, (mass, shape, place) in enumerate(shapes):
        made.add_body(f"{i:04d}", shape, mass=mass, position=place, material=material)
    return sh.Simulation(made, DT, sleep=False)


def mujoco_step(scene: Scene) -> Callable[[], None]:
    """The same in MuJoCo."""
    import mujoco

    def words(values: np.ndarray) -> str:
        return " ".join(f"{v:.17g}" for v in values)

    rub = f'friction="{MU} .005 .0001"'
    text = "".join(f'<geom type="plane" size="5 5 1" pos="{words(p)}" zaxis="{words(n)}" {rub}/>' for p, n in scene.planes)
    for kind, bodies, size in (("box", scene.boxes, lambda h: f"{h} {h} {h}"), ("sphere", scene.spheres, str)):
        for mass, extent, place in bodies:
            geom = f'<geom type="{kind}" size="{size(extent)}" mass="{mass}" {rub}/>'
            text += f'<body pos="{words(place)}"><freejoint/>{geom}</body>'
    options = f'<option timestep="{DT}" gravity="0 0 -9.81"/><size memory="200M"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{options}<worldbody>{text}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    return lambda: mujoco.mj_step(model, data)


def rapier_step(scene: Scene) -> Callable[[], None]:
    """The same in Rapier, single precision, one thread."""
    import rapier3d as rp

    def row(values: np.ndarray) -> tuple[float, ...]:
        return tuple(float(v) for v in values)

    world = rp.PhysicsWorld(gravity=(0.0, 0.0, -9.81))
    world.set_num_threads(1)
    world.integration_parameters.dt = DT
    for kind, bodies in (("box", scene.boxes), ("sphere", scene.spheres)):
        for mass, size, place in bodies:
            inertia = (2 / 3 if kind == "box" else 0.4) * mass * size**2
            heavy = rp.MassProperties(local_com=(0.0, 0.0, 0.0), mass=mass, principal_inertia=(inertia,) * 3)
            body = rp.RigidBodyBuilder(rp.RigidBodyType.DYNAMIC).translation(row(place)).can_sleep(False)
            shape = rp.Collider.cuboid(size, size, size) if kind == "box" else rp.Collider.ball(size)
            world.add_body(body.additional_mass_properties(heavy), [shape.density(0.0).friction(MU)])
    for point, normal in scene.planes:
        world.add_collider(rp.Collider.halfspace(row(normal)).translation(row(point)).friction(MU))
    return world.step


def compare(name: str, scene: Scene) -> None:
    """A line of the table."""
    sim = ours(scene)
    sim.step()
    sim.reset()
    engines: dict[str, Callable[[], object]] = {"sharnir": sim.step, "MuJoCo": mujoco_step(scene)}
    try:
        engines["Rapier"] = rapier_step(scene)
    except ImportError:
        print("rapier3d is not installed: left out")
    took: dict[str, list[float]] = {engine: [] for engine in engines}
    for _ in range(scene.steps // TURN):
        for engine, step in engines.items():
            started = time.process_time()
            for _ in range(TURN):
                step()
            took[engine].append((time.process_time() - started) / TURN * 1e6)
    mine = float(np.mean(took["sharnir"]))
    rest = ", ".join(
        f"{engine} {np.mean(t):.0f} µs (× {mine / np.mean(t):.2f})" for engine, t in took.items() if engine != "sharnir"
    )
    points = sim.contacts()
    print(f"{name}: {mine:.0f} µs a step, {len(points)} points, overlap {-1e3 * points.gap.min():.4f} mm; {rest}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = {"stack": stack, "pyramid": pyramid, "spheres": spheres}
    for word in sys.argv[1:] or known:
        compare(word, known[word]())
