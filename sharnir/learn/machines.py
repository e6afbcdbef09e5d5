"""Tasks of machines on the ground: a door that a robot opens, stairs that it climbs, a trailer that is backed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box as BoxSpace

from sharnir.collision.material import Material
from sharnir.geometry import terrain
from sharnir.geometry.shapes import Box, Compound
from sharnir.learn.task import Task, Worlds
from sharnir.machine_models.krt100 import STEER, VOLTS, Krt100
from sharnir.machine_models.mf4 import WHEEL_CORNERS, Mf4
from sharnir.model.joint_types import Revolute
from sharnir.runtime.tolerances import Tolerances
from sharnir.scene.scene import Scene

ARM = ("yaw", "shoulder", "elbow")
JOINT_RATE = 0.6  # rad/s, of the robot's joints


def heading(rotation: np.ndarray) -> np.ndarray:
    """(worlds,) rad, from x to y, of quaternions (worlds, 4)."""
    x, y, z, w = rotation.T
    return np.asarray(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def tilt(rotation: np.ndarray) -> np.ndarray:
    """(worlds,) rad, by which the z axis of a body leans."""
    return np.asarray(2 * np.arcsin(np.minimum(np.linalg.norm(rotation[:, :2], axis=1), 1.0)))


class _Robot(Task):
    """MF-4 drives by throttle and turn, −1 to 1, and its joints move at −1 to 1 of 0.6 rad/s."""

    dt, frame_skip = 4e-3, 10
    options: Mapping[str, Any] = {"solver": "sequential", "tolerances": Tolerances(iterations=12)}
    robot = Mf4()
    follow: str | None = "mf4"
    moved: tuple[tuple[str, float], ...] = ()  # groups of joints that one number of the action moves, and signs

    def prepare(self, w: Worlds) -> None:
        at = w.sim.index
        self.belts = np.array([at(f"mf4 {corner}").qd[0] for corner, _, _ in WHEEL_CORNERS])
        self.sides = np.array([side for _, _, side in WHEEL_CORNERS])
        self.groups = [np.array([at(name).qd[0] for name in names.split(",")]) for names, _ in self.moved]

    def action_space(self, w: Worlds) -> BoxSpace:
        return BoxSpace(-1.0, 1.0, (2 + len(self.moved),), np.float32)

    def act(self, w: Worlds, action: Any) -> None:
        ahead, turn = action[:, :1], action[:, 1:2]
        speed = self.robot.speed / self.robot.track.radius
        w.set_target("velocity", self.belts, np.clip(ahead - self.sides * turn, -1.0, 1.0) * speed)
        for k, (columns, (_, sign)) in enumerate(zip(self.groups, self.moved, strict=True)):
            asked = w.target("position", columns) + sign * JOINT_RATE * self.dt * self.frame_skip * action[:, 2 + k : 3 + k]
            w.set_target("position", columns, asked.clip(-3.1, 3.1))

    def _pose(self, w: Worlds) -> list[Any]:
        """Place, heading, tilt and velocity of the hull."""
        turn = w.rotation("mf4")
        return [w.position("mf4"), heading(turn), tilt(turn), w.velocity("mf4"), w.angular_velocity("mf4")[:, 2]]


class Door(_Robot):
    """MF-4 pushes a door open with its arm; the friction of the hinge, 20 N·m, varies from world to world.

    Observed: the door's angle (rad) and speed, the hull's place, heading, tilt, velocity and turning, the arm's three angles, the
    fingers' place. Action: throttle, turn, and the arm's yaw, shoulder and elbow. A decision (40 ms) is worth the door's speed,
    and costs a little; the door open by 1 rad ends it, and is worth 50; so ends it a hull that leans by 0.5 rad, worth nothing.
    """

    episode = 300
    moved = tuple((f"mf4 arm {part}", 1.0) for part in ARM)
    spread: Mapping[str, float] = {"friction": 0.3}
    wide = 1.0  # rad
    camera: Mapping[str, Any] = {"eye": (1.2, -4.5, 1.8), "target": (1.2, 0.0, 0.7)}
    follow = None

    def scene(self) -> Scene:
        scene, smooth = Scene(), Material(friction=0.2)
        scene.add_ground(material=Material(friction=0.8))
        scene.add_body("door", Box(0.04, 0.9, 2.0), mass=26.49, position=(1.6, 0, 1.01), material=smooth, color="#a9744f")
        hinge = Revolute("z", limit=(0.0, 2.2), friction=20.0)
        scene.add_joint("hinge", hinge, scene.world, "door", position=(1.6, 0.45, 1.01))
        self.robot.add(scene, position=(0.0, -0.15, 0.0))
        return scene

    def prepare(self, w: Worlds) -> None:
        super().prepare(w)
        self.hinge = int(w.sim.index("hinge").q[0])
        self.arm = np.concatenate([w.sim.index(name).q for name, _ in self.moved])

    def observe(self, w: Worlds) -> Any:
        q, qd = w.q, w.qd
        return w.columns(q[:, self.hinge], qd[:, self.hinge], *self._pose(w), q[:, self.arm], w.position("mf4 finger left"))

    def reward(self, w: Worlds, action: Any) -> Any:
        opened = w.q[:, self.hinge] > self.wide
        return 50.0 * opened + 5.0 * w.qd[:, self.hinge] * self.dt * self.frame_skip - 0.01

    def terminated(self, w: Worlds) -> Any:
        return (w.q[:, self.hinge] > self.wide) | (tilt(w.rotation("mf4")) > 0.5)


class Stairs(_Robot):
    """MF-4 climbs five steps of 17 cm.

    Observed: the hull's place, heading, tilt, velocity and turning, and the pitch of its units (rad). Action: throttle, turn, and
    the pitch of the front and the rear units. A decision (40 ms) is worth the way ahead and up (m); the top ends it, and is worth
    10; so ends it a hull that leans by 1 rad, or leaves the stairs sideways.
    """

    episode = 400
    robot = Mf4(arm=False)
    moved = (("mf4 front left pitch,mf4 front right pitch", 1.0), ("mf4 rear left pitch,mf4 rear right pitch", -1.0))
    rise, tread, steps, first = 0.17, 0.17 / math.tan(math.radians(30.0)), 5, 1.2  # m
    camera: Mapping[str, Any] = {"eye": (1.5, -5.5, 2.2), "target": (1.5, 0.0, 0.5)}

    def scene(self) -> Scene:
        scene, rough = Scene(), Material(friction=0.9)
        scene.add_ground(material=rough)
        flight = terrain.stairs(rise=self.rise, tread=self.tread, count=self.steps, width=1.6)
        far, high = self.steps * self.tread, self.steps * self.rise
        whole = Compound(flight, Box(3.0, 1.6, high, position=(far + 1.5, 0, 0.5 * high)))
        scene.add_body("stairs", whole, motion="fixed", position=(self.first, 0, 0), material=rough, color="#b8b2a7")
        self.robot.add(scene)
        return scene

    def prepare(self, w: Worlds) -> None:
        super().prepare(w)
        self.pitches = np.array([w.sim.index(f"mf4 {corner} pitch").q[0] for corner, _, _ in WHEEL_CORNERS])
        self.top = self.first + self.steps * self.tread + 0.6

    def observe(self, w: Worlds) -> Any:
        return w.columns(*self._pose(w), w.q[:, self.pitches])

    def reward(self, w: Worlds, action: Any) -> Any:
        ahead, up = w.velocity("mf4")[:, 0], w.velocity("mf4")[:, 2]
        return (ahead + up) * self.dt * self.frame_skip + 10.0 * self._there(w)

    def _there(self, w: Worlds) -> Any:
        place = w.position("mf4")
        return (place[:, 0] > self.top) & (place[:, 2] > 0.8 * self.steps * self.rise)

    def terminated(self, w: Worlds) -> Any:
        return self._there(w) | (tilt(w.rotation("mf4")) > 1.0) | (np.abs(w.position("mf4")[:, 1]) > 0.9)


class Trailer(Task):
    """KRT100-MP backs its trailer into a bay some metres behind it and to one side.

    Observed: from the bay to the trailer (m, in the bay's frame), the trailer's heading there (cosine, sine), the angle of the
    hitch (rad), the hull's velocity ahead and its turning, the wheels' angle. Action: throttle and steering, −1 to 1. A decision
    (50 ms) costs the distance and the heading's error; the bay (20 cm, 6°) ends it, and is worth 50; so ends it, at the cost of
    10, a trailer that is 9 m away.
    """

    dt, frame_skip, episode = 5e-3, 10, 400
    options: Mapping[str, Any] = {"solver": "sequential", "tolerances": Tolerances(iterations=20)}
    robot = Krt100()
    camera: Mapping[str, Any] = {"eye": (-3.0, -8.0, 5.0), "target": (-3.0, 0.0, 0.0)}

    def scene(self) -> Scene:
        scene = Scene()
        scene.add_ground(material=Material(friction=0.9))
        self.robot.add(scene)
        return scene

    def prepare(self, w: Worlds) -> None:
        at = w.sim.index
        self.motors = np.array([at(hinge).qd[0] for hinge in self.robot.vehicle.hinges()])
        self.struts, self.strut = at("krt100 front * strut").qd, int(at("krt100 front left strut").q[0])
        self.bay = np.zeros((w.count, 3))  # m, m, rad

    def action_space(self, w: Worlds) -> BoxSpace:
        return BoxSpace(-1.0, 1.0, (2,), np.float32)

    def _seen(self, w: Worlds) -> tuple[Any, Any, Any]:
        """The trailer in the bay's frame: x, y, and its heading there."""
        place, turned = w.position("krt100 trailer")[:, :2] - self.bay[:, :2], heading(w.rotation("krt100 trailer"))
        c, s = np.cos(self.bay[:, 2]), np.sin(self.bay[:, 2])
        return c * place[:, 0] + s * place[:, 1], c * place[:, 1] - s * place[:, 0], turned - self.bay[:, 2]

    def observe(self, w: Worlds) -> Any:
        x, y, off = self._seen(w)
        own = heading(w.rotation("krt100"))
        hitch = heading(w.rotation("krt100 trailer")) - own
        v = w.velocity("krt100")
        ahead = np.cos(own) * v[:, 0] + np.sin(own) * v[:, 1]
        bent = np.arctan2(np.sin(hitch), np.cos(hitch))
        return w.columns(x, y, np.cos(off), np.sin(off), bent, ahead, w.angular_velocity("krt100")[:, 2], w.q[:, self.strut])

    def act(self, w: Worlds, action: Any) -> None:
        w.set_target("voltage", self.motors, 0.5 * VOLTS * action[:, :1])
        w.set_target("position", self.struts, STEER * action[:, 1:])

    def _ends(self, w: Worlds) -> tuple[Any, Any, Any]:
        x, y, off = self._seen(w)
        far, turned = np.hypot(x, y), np.abs(np.arctan2(np.sin(off), np.cos(off)))
        return far + turned, (far < 0.2) & (turned < 0.1), far > 9.0

    def reward(self, w: Worlds, action: Any) -> Any:
        off, there, lost = self._ends(w)
        return 50.0 * there - 10.0 * lost - 0.1 * off

    def terminated(self, w: Worlds) -> Any:
        _, there, lost = self._ends(w)
        return there | lost

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        low, high = (-5.0, -0.6, -0.3), (-3.5, 0.6, 0.3)
        self.bay[worlds] = random.uniform(low, high, (len(worlds), 3))
