"""Tasks of legs on the ground, after Gymnasium's own: a planar hopper and a four-legged ant, in their own dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box as BoxSpace

from sharnir.collision.material import Material
from sharnir.core.spatial import frame_from_axes
from sharnir.geometry.shapes import Capsule, Sphere
from sharnir.learn.task import Task, Worlds, limits
from sharnir.model.joint_types import Free, Joint, Revolute
from sharnir.runtime.tolerances import Tolerances
from sharnir.scene.scene import Scene

FLOOR_MATERIAL = Material(friction=0.9)


def limb(scene: Scene, name: str, ends: tuple[Any, Any], radius: float, mass: float, **more: Any) -> None:
    """A capsule from one point to another (m)."""
    a, b = (np.asarray(end, float) for end in ends)
    long = float(np.linalg.norm(b - a))
    turn = frame_from_axes(b - a).tolist()  # its z axis along the limb
    scene.add_body(name, Capsule(radius, long), mass=mass, position=0.5 * (a + b), rotation=turn, material=FLOOR_MATERIAL, **more)


class _Walker(Task):
    """Hinges that are turned by torques; what is worth something is the way ahead."""

    dt, frame_skip, episode = 5e-3, 4, 500
    options: Mapping[str, Any] = {"solver": "sequential", "tolerances": Tolerances(iterations=20)}
    torque = 1.0  # N·m, of a full action
    cost, noise = 1e-3, 5e-3  # of an action squared; rad, rad/s
    follow = "torso"

    def prepare(self, w: Worlds) -> None:
        hinges = w.sim.index("*hinge")
        self.hinges, self.turns = hinges.q, hinges.qd
        self.zero = np.array(np.atleast_2d(w.sim.q)[0], float)

    def action_space(self, w: Worlds) -> BoxSpace:
        return BoxSpace(-1.0, 1.0, (len(self.turns),), np.float32)

    def act(self, w: Worlds, action: Any) -> None:
        w.set_effort(self.turns, self.torque * action)

    def reward(self, w: Worlds, action: Any) -> Any:
        ahead = w.velocity("torso")[:, 0]
        return 1.0 + ahead - self.cost * (action**2).sum(1)

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        q = np.tile(self.zero, (len(worlds), 1))
        low, high = limits(w.sim, "*hinge")
        drawn = q[:, self.hinges] + random.uniform(-self.noise, self.noise, (len(worlds), len(self.hinges)))
        q[:, self.hinges] = np.clip(drawn, low, high)
        w.sim.set_state(q=q, qd=np.zeros((len(worlds), w.sim.model.speeds)), worlds=worlds)


class Hopper(_Walker):
    """A torso on one leg in a plane hops ahead.

    Observed: the torso's height (m) and pitch (rad), the three hinges' angles, all speeds. Action: three torques, ± 80 N·m. A
    decision (20 ms) is worth 1 and the torso's speed (m/s); the end: a torso lower than 0.7 m, or pitched by more than 0.4 rad.
    """

    torque = 80.0
    camera: Mapping[str, Any] = {"eye": (0.5, -5.0, 1.3), "target": (0.5, 0.0, 0.7)}

    def scene(self) -> Scene:
        scene = Scene()
        scene.add_ground(material=FLOOR_MATERIAL)
        limb(scene, "torso", ((0, 0, 1.05), (0, 0, 1.45)), 0.05, 3.7, collide=False)
        limb(scene, "thigh", ((0, 0, 1.05), (0, 0, 0.6)), 0.05, 4.0, collide=False)
        limb(scene, "shin", ((0, 0, 0.6), (0, 0, 0.1)), 0.04, 2.8, collide=False)
        limb(scene, "foot", ((-0.13, 0, 0.06), (0.26, 0, 0.06)), 0.06, 5.3)
        scene.add_joint("base", Joint("x z ry"), scene.world, "torso", position=(0, 0, 1.25), rotation=(0, 0, 0, 1))
        for name, a, b, z, limit in (
            ("hip", "torso", "thigh", 1.05, (-0.2, 2.6)),
            ("knee", "thigh", "shin", 0.6, (-0.2, 2.6)),
            ("ankle", "shin", "foot", 0.1, (-0.8, 0.8)),
        ):
            joint = Revolute((0, -1, 0), limit=limit, damping=1.0)
            scene.add_joint(f"{name} hinge", joint, a, b, position=(0, 0, z))
        return scene

    def _torso(self, w: Worlds) -> tuple[Any, Any]:
        turn = w.rotation("torso")
        return w.position("torso")[:, 2], 2 * np.arctan2(turn[:, 1], turn[:, 3])

    def observe(self, w: Worlds) -> Any:
        high, pitch = self._torso(w)
        return w.columns(high, np.arctan2(np.sin(pitch), np.cos(pitch)), w.q[:, self.hinges], w.qd.clip(-10.0, 10.0))

    def terminated(self, w: Worlds) -> Any:
        high, pitch = self._torso(w)
        return (high < 0.7) | (np.abs(np.arctan2(np.sin(pitch), np.cos(pitch))) > 0.4)


class Ant(_Walker):
    """A torso on four legs of two hinges walks ahead.

    Observed: the torso's height (m) and rotation, the eight hinges' angles, the torso's velocity and spin, the hinges' speeds.
    Action: eight torques, ± 15 N·m. A decision (20 ms) is worth 1 and the torso's speed along x (m/s), less 0.05 of the action
    squared; the end: a torso lower than 0.2 m or higher than 1.2 m.
    """

    torque, cost = 15.0, 0.05
    camera: Mapping[str, Any] = {"eye": (2.5, -4.0, 2.5), "target": (0.0, 0.0, 0.4)}

    def scene(self) -> Scene:
        scene, high = Scene(), 0.55
        scene.add_ground(material=FLOOR_MATERIAL)
        scene.add_body("torso", Sphere(0.25), mass=6.0, position=(0, 0, high), collide=False)
        scene.add_joint("base", Free(), scene.world, "torso", position=(0, 0, high))
        for k, turn in enumerate(np.radians((45, 135, 225, 315))):
            out, across = np.array([np.cos(turn), np.sin(turn), 0.0]), (-np.sin(turn), np.cos(turn), 0.0)
            hip, knee, foot = (np.array([*(r * out[:2]), z]) for r, z in ((0.28, high), (0.56, high), (0.9, 0.08)))
            limb(scene, f"leg {k}", (hip, knee), 0.08, 0.6, collide=False)
            limb(scene, f"shin {k}", (knee, foot), 0.08, 1.0)
            scene.add_joint(f"{k} hip hinge", Revolute("z", limit=(-0.6, 0.6), damping=1.0), "torso", f"leg {k}", position=hip)
            ankle = Revolute(across, limit=(-0.6, 0.6), damping=1.0)
            scene.add_joint(f"{k} ankle hinge", ankle, f"leg {k}", f"shin {k}", position=knee)
        return scene

    def observe(self, w: Worlds) -> Any:
        speeds = w.columns(w.velocity("torso"), w.angular_velocity("torso"), w.qd[:, self.turns]).clip(-10.0, 10.0)
        return w.columns(w.position("torso")[:, 2], w.rotation("torso"), w.q[:, self.hinges], speeds)

    def terminated(self, w: Worlds) -> Any:
        high = w.position("torso")[:, 2]
        return (high < 0.2) | (high > 1.2)
