"""The tasks that come with the library, by name; those without ground stand here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box as BoxSpace
from gymnasium.spaces import Discrete

from sharnir.geometry.shapes import Box, Sphere
from sharnir.learn.machines import Door, Stairs, Trailer
from sharnir.learn.task import Task, Worlds, limits
from sharnir.learn.walkers import Ant, Hopper
from sharnir.model.actuators import Servo
from sharnir.model.joint_types import Prismatic, Revolute
from sharnir.runtime.tolerances import Tolerances
from sharnir.scene.scene import Scene

RADIANS = np.pi / 180.0
ROUGH_OPTIONS: Mapping[str, Any] = {"solver": "direct", "tolerances": Tolerances(position_tolerance=1e-3), "sleep": False}
"""Velocities met to 3e-6 of their scale, in two passes a step where rounding takes three; joints then stand open by 1e-9 m."""


class CartPole(Task):
    """A pole is balanced on a cart that is pushed by 10 N to the left (0) or to the right (1): Gymnasium's `CartPole-v1`.

    Observed: the cart's place (m) and speed, the pole's angle (rad, 0 upright) and speed. A decision (20 ms) is worth 1. The end:
    the cart 2.4 m from its middle, or the pole 12° from upright.
    """

    force = 10.0  # N
    room, lean = 2.4, 12 * RADIANS  # m, rad
    noise = 0.05  # m, rad, m/s, rad/s at the start
    options: Mapping[str, Any] = ROUGH_OPTIONS
    camera: Mapping[str, Any] = {"eye": (0.0, -6.0, 1.0), "target": (0.0, 0.0, 0.4)}

    def scene(self) -> Scene:
        scene = Scene(gravity=(0, 0, -9.8))
        scene.add_body("cart", Box(0.4, 0.2, 0.2), mass=1.0)
        thin = 0.1 / 12  # kg·m², a rod of 1 m and 0.1 kg
        scene.add_body("pole", Box(0.05, 0.05, 1.0), mass=0.1, inertia=(thin, thin, 1e-5), position=(0, 0, 0.5))
        scene.add_joint("rail", Prismatic("x"), scene.world, "cart", position=(0, 0, 0))
        scene.add_joint("pivot", Revolute("y"), "cart", "pole", position=(0, 0, 0))
        return scene

    def action_space(self, w: Worlds) -> Discrete:
        return Discrete(2)

    def observation_space(self, w: Worlds) -> BoxSpace:
        high = np.array([2 * self.room, np.inf, 2 * self.lean, np.inf], np.float32)
        return BoxSpace(-high, high, dtype=np.float32)

    def observe(self, w: Worlds) -> Any:
        q, qd = w.q, w.qd
        return w.columns(q[:, 0], qd[:, 0], q[:, 1], qd[:, 1])

    def act(self, w: Worlds, action: Any) -> None:
        w.set_effort([0], ((2.0 * action - 1.0) * self.force)[:, None])

    def reward(self, w: Worlds, action: Any) -> Any:
        return w.xp.ones_like(w.q[:, 0])

    def terminated(self, w: Worlds) -> Any:
        q = w.q
        return (abs(q[:, 0]) > self.room) | (abs(q[:, 1]) > self.lean)

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        drawn = random.uniform(-self.noise, self.noise, (len(worlds), 4))
        w.sim.set_state(q=drawn[:, :2], qd=drawn[:, 2:], worlds=worlds)


class Crane(Task):
    """A trolley brings a load on a rope of 4 m to a place up to 4 m away, where it should hang still.

    Observed: the way to go (m), the trolley's speed, the load's angle (rad) and its speed. Action: the trolley's acceleration,
    ± 1 m/s². A decision (0.1 s) is worth 1 less the distance of the load, its swing and its speed; the end: a swing of 45°.
    """

    dt, frame_skip, episode = 0.02, 5, 150
    length, load, most, top = 4.0, 500.0, 1.0, 1.5  # m, kg, m/s², m/s
    reach = 4.0  # m
    options: Mapping[str, Any] = ROUGH_OPTIONS
    camera: Mapping[str, Any] = {"eye": (0.0, -16.0, 1.0), "target": (0.0, 0.0, -2.0)}

    def scene(self) -> Scene:
        scene = Scene()
        scene.add_body("beam", Box(14.0, 0.3, 0.2), position=(0, 0, 0.4), motion="fixed")
        scene.add_body("trolley", Box(0.8, 0.5, 0.3), mass=300.0)
        scene.add_body("load", Box(1.0, 1.0, 0.8), mass=self.load, position=(0, 0, -self.length))
        drive = Servo(kd=2e4, max_force=5e3)
        scene.add_joint("rail", Prismatic("x", limit=(-6.0, 6.0), drive=drive), scene.world, "trolley", position=(0, 0, 0))
        scene.add_joint("rope", Revolute("y"), "trolley", "load", position=(0, 0, 0))
        return scene

    def prepare(self, w: Worlds) -> None:
        self.goal = np.zeros(w.count)

    def action_space(self, w: Worlds) -> BoxSpace:
        return BoxSpace(-1.0, 1.0, (1,), np.float32)

    def observation_space(self, w: Worlds) -> BoxSpace:
        low, high = limits(w.sim, "rail")
        room = float(high[0] - low[0])
        most = np.array([room, np.inf, np.inf, np.inf], np.float32)
        return BoxSpace(-most, most, dtype=np.float32)

    def observe(self, w: Worlds) -> Any:
        q, qd = w.q, w.qd
        return w.columns(w.array(self.goal) - q[:, 0], qd[:, 0], q[:, 1], qd[:, 1])

    def act(self, w: Worlds, action: Any) -> None:
        asked = w.target("velocity", [0]) + self.most * self.dt * self.frame_skip * action
        w.set_target("velocity", [0], asked.clip(-self.top, self.top))

    def reward(self, w: Worlds, action: Any) -> Any:
        q, qd = w.q, w.qd
        off = abs(w.array(self.goal) - (q[:, 0] - self.length * w.xp.sin(q[:, 1])))
        return 1.0 - 0.25 * off - 0.5 * abs(q[:, 1]) - 0.1 * abs(qd[:, 0]) - 0.1 * abs(qd[:, 1])

    def terminated(self, w: Worlds) -> Any:
        return abs(w.q[:, 1]) > 45 * RADIANS

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        self.goal[worlds] = random.uniform(-self.reach, self.reach, len(worlds))
        swing = random.uniform(-0.05, 0.05, (len(worlds), 1))
        w.sim.set_state(q=np.hstack([0.0 * swing, swing]), qd=np.zeros((len(worlds), 2)), worlds=worlds)


class Rope(Task):
    """A gantry leads the ring at the end of a rope of 2 m onto a hook.

    Observed: from the ring to the hook (x, z, m), the ring's velocity, the gantry's place and speed. Action: the gantry's speeds
    along x and z, ± 1 m/s. A decision (50 ms) costs the distance; the ring on the hook (5 cm, 0.3 m/s) ends it, and is worth 50.
    """

    dt, frame_skip, episode = 0.01, 5, 200
    length = 2.0  # m
    options: Mapping[str, Any] = {"solver": "direct"}
    camera: Mapping[str, Any] = {"eye": (0.0, -7.0, 0.5), "target": (0.0, 0.0, -1.0)}

    def scene(self) -> Scene:
        scene = Scene()
        for name, parent, axis, mass in (("bridge", scene.world, "x", 20.0), ("hand", "bridge", "z", 10.0)):
            scene.add_body(name, Box(0.3, 0.2, 0.1), mass=mass)
            joint = Prismatic(axis, limit=(-1.5, 1.5), drive=Servo(kd=5e3, max_force=2e3))
            scene.add_joint(f"{name} slide", joint, parent, name, position=(0, 0, 0))
        scene.add_body("ring", Sphere(0.05), mass=0.5, position=(0, 0, -self.length))
        steel: dict[str, Any] = {"radius": 0.006, "mass_per_length": 0.1, "EI": 0.02, "GJ": 0.02, "damping": 0.02}
        scene.add_rope("rope", (0, 0, 0), (0, 0, -self.length), segments=8, attach=("hand", "ring"), **steel)
        return scene

    def prepare(self, w: Worlds) -> None:
        self.hook = np.zeros((w.count, 2))

    def action_space(self, w: Worlds) -> BoxSpace:
        return BoxSpace(-1.0, 1.0, (2,), np.float32)

    def observe(self, w: Worlds) -> Any:
        ring, speed = w.position("ring")[:, ::2], w.velocity("ring")[:, ::2]
        return w.columns(w.array(self.hook) - ring, speed, w.q, w.qd)

    def act(self, w: Worlds, action: Any) -> None:
        w.set_target("velocity", [0, 1], action)

    def _there(self, w: Worlds) -> tuple[Any, Any]:
        off, speed = w.position("ring")[:, ::2] - w.array(self.hook), w.velocity("ring")
        far = w.xp.sqrt((off * off).sum(1))
        return far, (far < 0.05) & ((speed * speed).sum(1) < 0.3**2)

    def reward(self, w: Worlds, action: Any) -> Any:
        off, there = self._there(w)
        return 50.0 * there - off

    def terminated(self, w: Worlds) -> Any:
        return self._there(w)[1]

    def start(self, w: Worlds, random: np.random.Generator, worlds: np.ndarray) -> None:
        low, high = limits(w.sim, "* slide")
        drawn = random.uniform(0.6 * low, 0.6 * high, (len(worlds), 2))
        self.hook[worlds] = drawn + (0.0, -self.length)


TASKS: dict[str, type[Task]] = {
    kind.__name__: kind for kind in (CartPole, Door, Trailer, Crane, Rope, Stairs, Hopper, Ant)
}  # fmt: skip
