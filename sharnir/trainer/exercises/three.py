"""Three exercises that come with the library: park the trailer, set down the load, open the door and drive through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.geometry.shapes import Box, Cylinder
from sharnir.machine_models.krt100 import Krt100
from sharnir.machine_models.mf4 import Mf4
from sharnir.model.actuators import Servo
from sharnir.model.joint_types import Prismatic, Revolute, Universal
from sharnir.runtime.simulation import Simulation
from sharnir.runtime.tolerances import Tolerances
from sharnir.scene.scene import Scene
from sharnir.trainer.exercises.exercise import Exercise, Fault, Goal, Within, touching

G = 9.81


def heading(sim: Any, body: str) -> float:
    """rad, of a body about z, from x to y."""
    x, y, z, w = sim.body(body).rotation
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


# ---- park the trailer ----

TRAILER, BAY = "krt100 trailer", (4.5, 0.9)  # m, where the middle of the trailer is to stand
ROBOT = Krt100()


def make_park(dt: float = 5e-3) -> Simulation:
    """KRT100 with its trailer, and a bay between two walls, to the left of its way."""
    scene = Scene()
    scene.add_ground(material=Material(friction=0.9))
    for side, y in (("left wall", 0.62), ("right wall", -0.62)):
        scene.add_body(side, Box(2.4, 0.06, 0.3), motion="fixed", position=(BAY[0] + 0.3, BAY[1] + y, 0.15), color="#c9573f")
    ROBOT.add(scene)
    for given in ROBOT.inputs():
        scene.add_input(given)
    return Simulation(scene, dt, solver="sequential", tolerances=Tolerances(iterations=20), on_divergence="ignore")


def drive_park(sim: Any) -> None:
    """Follow a smooth way over to the bay, and stop where the trailer stands in it."""
    robot, inputs = sim.body("krt100"), sim.inputs
    x, y, _ = robot.position
    left = BAY[0] - float(sim.body(TRAILER).position[0])
    s = min(max((x + 0.6) / 3.6, 0.0), 1.0)  # over within the first 3.6 m
    way, slope = BAY[1] * s * s * (3 - 2 * s), BAY[1] * 6 * s * (1 - s) / 3.6
    inputs["steer"] = float(np.clip(1.2 * (math.atan(slope) - heading(sim, "krt100")) + 1.5 * (way - y), -0.45, 0.45))
    stop = left < 0.05
    inputs["throttle"] = 0.0 if stop else 0.3 if left > 0.5 else 0.12
    inputs["brake"] = 1.0 if stop else 0.0


def _heading(sim: Any) -> float:
    return math.degrees(heading(sim, TRAILER))


def _standing(sim: Any) -> float:
    return float(np.linalg.norm(sim.body(TRAILER).velocity))


PARK = Exercise(
    "park_trailer",
    "Drive the trailer into the bay between the walls, straight, and let it stand there for a second.",
    make_park,
    [
        Goal(
            "the trailer stands in the bay",
            [
                Within(f"body/{TRAILER}.position[0]", BAY[0] - 0.2, BAY[0] + 0.2, "trailer x, m"),
                Within(f"body/{TRAILER}.position[1]", BAY[1] - 0.15, BAY[1] + 0.15, "trailer y, m"),
                Within(_heading, -6.0, 6.0, "trailer heading, °"),
                Within(_standing, 0.0, 0.02, "trailer speed, m/s"),
            ],
            hold=1.0,
        )
    ],
    [
        Fault(f"{what} touches the {wall}", [Within(touching(body, wall), high=0.5, about=f"{what} touches the {wall}")], 20.0)
        for what, body in (("robot", "krt100"), ("trailer", TRAILER))
        for wall in ("left wall", "right wall")
    ],
    limit=40.0,
    driver=drive_park,
    follow="krt100",
)

# ---- set down the load ----

SLING_LENGTH, WAY_LENGTH = 4.0, 5.0  # m, of the sling, and of the way
PAD_PLACE = (WAY_LENGTH, 0.6)  # m, of the pad on which it is to stand: x, height
MOVING_SPEED, LOWERING_SPEED = 1.0, 0.5  # m/s
CRUISE = 0.5  # m/s, of the automatic driver


def make_set_down(dt: float = 5e-3) -> Simulation:
    """A trolley on a beam, a load on a sling that swings about two axes and is paid out, a wall on the way, a pad."""
    scene = Scene()
    scene.add_ground()
    top = SLING_LENGTH + 1.6
    scene.add_body(
        "pad", Box(1.2, 1.2, PAD_PLACE[1]), motion="fixed", position=(PAD_PLACE[0], 0, PAD_PLACE[1] / 2), color="#3a9c76"
    )
    scene.add_body("wall", Box(0.2, 1.6, 0.9), motion="fixed", position=(0.5 * WAY_LENGTH, 0, 0.45), color="#c9573f")
    scene.add_body(
        "beam", Box(WAY_LENGTH + 3.0, 0.2, 0.2), motion="fixed", position=(0.5 * WAY_LENGTH, 0, top + 0.25), collide=False
    )
    scene.add_body("trolley", Box(0.6, 0.5, 0.2), mass=400.0, position=(0, 0, top), collide=False, color="#f2b134")
    scene.add_body("sling", Cylinder(0.03, 0.6), mass=20.0, position=(0, 0, top - 0.3), collide=False, color="#4a5560")
    scene.add_body("load", Box(0.7, 0.7, 0.6), mass=300.0, position=(0, 0, top - SLING_LENGTH), color="#4e79a7")
    rail = Prismatic("x", limit=(-1.0, WAY_LENGTH + 1.0), drive=Servo(kd=1e6, max_force=4e4))
    scene.add_joint("rail", rail, scene.world, "trolley", position=(0, 0, top))
    scene.add_joint("swing", Universal(axes=("x", "y"), damping=2.0), "trolley", "sling", position=(0, 0, top))
    hoist = Prismatic("z", limit=(-2.0, 2.0), drive=Servo(kd=1e6, max_force=2e4))
    scene.add_joint("hoist", hoist, "sling", "load", position=(0, 0, top - SLING_LENGTH))
    scene.add_input(
        "trolley",
        "joint/rail.velocity",
        scale=MOVING_SPEED,
        rate=2.0,
        keys=("d", "a"),
        pad="axis 0",
        about="part of 1 m/s, to the right",
    )
    scene.add_input(
        "hoist",
        "joint/hoist.velocity",
        scale=LOWERING_SPEED,
        rate=2.0,
        keys=("w", "s"),
        pad="-axis 1",
        about="part of 0.5 m/s, up",
    )
    return Simulation(scene, dt, solver="sequential", tolerances=Tolerances(iterations=60), on_divergence="ignore")


def swing(sim: Any) -> float:
    """°, of the sling from the vertical."""
    x, y, _z, _w = sim.body("sling").rotation
    return math.degrees(2 * math.asin(min(1.0, math.hypot(x, y))))


def drive_set_down(sim: Any) -> None:
    """Speed up evenly for one period of the swing, which leaves none behind; slow down the same way; then lower."""
    period = 2 * math.pi * math.sqrt(SLING_LENGTH / G)
    cruise = (WAY_LENGTH - CRUISE * period) / CRUISE  # s; speeding up and slowing down take half of CRUISE · period each
    inputs, t = sim.inputs, sim.time + sim.dt
    inputs["trolley"] = CRUISE / MOVING_SPEED * min(max(min(t, 2 * period + cruise - t) / period, 0.0), 1.0)
    height = float(sim.body("load").position[2]) - 0.3 - PAD_PLACE[1]
    lower = 0.5 if height > 0.25 else 0.15 if height > 0.004 else 0.0
    inputs["hoist"] = -lower if t > 2 * period + cruise + 0.5 else 0.0


def _above(sim: Any) -> float:
    return float(sim.body("load").position[2]) - 0.3 - PAD_PLACE[1]


def _speed(sim: Any) -> float:
    return float(np.linalg.norm(sim.body("load").velocity))


SET_DOWN = Exercise(
    "set_down",
    "Carry the load over the wall and set it down on the pad; it must not swing by more than 5°.",
    make_set_down,
    [
        Goal(
            "the load stands on the pad",
            [
                Within("body/load.position[0]", PAD_PLACE[0] - 0.15, PAD_PLACE[0] + 0.15, "load x, m"),
                Within(_above, -0.01, 0.01, "load above the pad, m"),
                Within(_speed, 0.0, 0.03, "speed of the load, m/s"),
            ],
            hold=1.0,
        )
    ],
    [
        Fault("the load swings", [Within(swing, 0.0, 5.0, "swing, °")], 30.0),
        Fault("the load touches the wall", [Within(touching("load", "wall"), high=0.5, about="load touches the wall")], 60.0),
    ],
    limit=40.0,
    driver=drive_set_down,
    follow="load",
)

# ---- open the door and drive through ----

DOOR, WIDTH = 1.6, 1.3  # m along x, m
TRACKED = Mf4(arm=False)


def make_door(dt: float = 4e-3) -> Simulation:
    """MF-4 without its arm before a door that friction holds, between two posts."""
    scene, smooth = Scene(), Material(friction=0.15)
    scene.add_ground(material=Material(friction=0.8))
    scene.add_body("door", Box(0.04, WIDTH, 2.0), mass=30.0, position=(DOOR, 0, 1.01), material=smooth, color="#a9744f")
    hinge = Revolute("z", limit=(-0.01, 2.6), friction=15.0)
    scene.add_joint("hinge", hinge, scene.world, "door", position=(DOOR, 0.5 * WIDTH, 1.01))
    for side, y in (("left post", 1.0), ("right post", -1.0)):
        at = y * (0.5 * WIDTH + 0.3)
        scene.add_body(side, Box(0.15, 0.5, 2.0), motion="fixed", position=(DOOR, at, 1.0), color="#8d9aa5")
        scene.ignore(side, "door")
    lintel = Box(0.15, WIDTH + 1.1, 0.12)
    scene.add_body("lintel", lintel, motion="fixed", collide=False, position=(DOOR, 0.0, 2.08), color="#8d9aa5")
    TRACKED.add(scene)
    for given in TRACKED.inputs():
        scene.add_input(given)
    return Simulation(scene, dt, solver="sequential", tolerances=Tolerances(iterations=12), on_divergence="ignore")


def drive_door(sim: Any) -> None:
    """Push it open, straight on, a little to the right of the middle."""
    inputs, (x, y, _) = sim.inputs, sim.body("mf4").position
    inputs["front"], inputs["rear"] = 0.117, 0.117
    goal = -0.1 * min(max(x, 0.0), 1.0)
    inputs["turn"] = float(np.clip(1.5 * (goal - y) - 1.5 * heading(sim, "mf4"), -0.4, 0.4))
    inputs["throttle"] = 0.5 if x < DOOR + 1.1 else 0.0


THROUGH = Exercise(
    "through_the_door",
    "Push the door open and drive through without touching the posts.",
    make_door,
    [
        Goal("the door is open", [Within("joint/hinge.q", low=1.0, about="angle of the door, rad")]),
        Goal("the robot is through", [Within("body/mf4.position[0]", low=DOOR + 0.9, about="robot x, m")]),
    ],
    [
        Fault(f"the hull touches the {post}", [Within(touching("mf4", post), high=0.5, about=f"hull touches the {post}")], 20.0)
        for post in ("left post", "right post")
    ],
    limit=30.0,
    driver=drive_door,
    follow="mf4",
)

EXERCISES = {e.name: e for e in (PARK, SET_DOWN, THROUGH)}
"""By name."""
