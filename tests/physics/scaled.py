"""Mechanisms that can be built in any units of length, mass and time: motions that are alike but for these units."""

from dataclasses import dataclass

import numpy as np

import sharnir as sh


@dataclass
class Units:
    """Length, mass and time of a scene under the same gravity, as powers of two, so that rounding is the same in all of them."""

    fours: int = 0
    twos: int = 0

    @property
    def length(self):
        return 4.0**self.fours

    @property
    def time(self):
        return 2.0**self.fours

    @property
    def mass(self):
        return 2.0**self.twos

    @property
    def force(self):
        return self.mass * self.length / self.time**2

    @property
    def moment(self):
        return self.force * self.length


def chain(u, joints):
    """Three bars that start level."""
    scene = sh.Scene()
    for i, joint in enumerate(joints):
        box, at = sh.Box(0.3 * u.length, 0.05 * u.length, 0.08 * u.length), (0.15 + 0.3 * i) * u.length
        scene.add_body(f"b{i}", box, mass=u.mass * (1 + 0.3 * i), position=(at, 0, 0))
        scene.add_joint(f"j{i}", joint, f"b{i - 1}" if i else "world", f"b{i}", position=(0.3 * i * u.length, 0, 0))
    return scene


def free(u):
    return chain(u, [sh.Revolute("y"), sh.Spherical(), sh.Universal()])


def rubbing(u):
    return chain(u, [sh.Revolute("y", friction=f * u.moment) for f in (0.05, 0.2, 0.3)])


def rubbing_balls(u):
    return chain(u, [sh.Revolute((0, 1, 0.3), friction=0.1 * u.moment), *[sh.Spherical(friction=0.2 * u.moment) for _ in "ab"]])


def limited(u):
    return chain(u, [sh.Revolute("y", limit=(-0.3, 0.4), friction=0.02 * u.moment) for _ in "abc"])


def driven(u):
    how = {"kp": 50 * u.moment, "kd": 2 * u.moment * u.time, "position": 0.3, "max_force": 8 * u.moment}
    return chain(u, [sh.Revolute("y", drive=sh.Servo(**how)) for _ in "abc"])


def sprung(u):
    return chain(u, [sh.Revolute("y", spring=(20 * u.moment, 0.0), damping=0.05 * u.moment * u.time) for _ in "abc"])


def sliding(u):
    """A slider with friction and a stop, and a bar that hangs on it."""
    scene = sh.Scene()
    scene.add_body("c", sh.Box(*[0.2 * u.length] * 3), mass=2 * u.mass)
    slide = sh.Prismatic((1, 0, -0.4), friction=3 * u.force, limit=(-0.1 * u.length, 0.2 * u.length))
    scene.add_joint("s", slide, "world", "c", position=(0, 0, 0))
    scene.add_body("p", sh.Box(0.3 * u.length, 0.05 * u.length, 0.08 * u.length), mass=u.mass, position=(0.15 * u.length, 0, 0))
    scene.add_joint("r", sh.Revolute("y", friction=0.1 * u.moment), "c", "p", position=(0, 0, 0))
    return scene


def loop(u):
    """A four-bar linkage with friction, and a weight on a spring below its coupler."""
    scene, L = sh.Scene(), u.length
    corners = [np.array(x) * L for x in ((0, 0, 0), (0.1, 0, 0.3), (0.6, 0, 0.35), (0.7, 0, 0))]
    for name, a, b, mass in zip("abc", corners, corners[1:], (1, 2, 1.5), strict=False):
        scene.add_body(name, sh.Box(0.2 * L, 0.05 * L, 0.05 * L), mass=mass * u.mass, position=(a + b) / 2)
    scene.add_joint("1", sh.Revolute("y", friction=0.05 * u.moment), "world", "a", position=corners[0])
    scene.add_joint("2", sh.Revolute("y"), "a", "b", position=corners[1])
    scene.add_joint("3", sh.Spherical(), "b", "c", position=corners[2])
    scene.add_joint("4", sh.Revolute("y"), "world", "c", position=corners[3])
    scene.add_body("w", sh.Sphere(0.05 * L), mass=u.mass, position=(0.35 * L, 0, 0.2 * L))
    scene.add_spring("s", "b", "w", stiffness=60 * u.force / L, damping=0.1 * u.force * u.time / L)
    return scene


def roped(u):
    """A rope from a bar with friction to a weight."""
    scene, L = sh.Scene(), u.length
    scene.add_body("a", sh.Box(0.5 * L, 0.05 * L, 0.05 * L), mass=u.mass, position=(0.25 * L, 0, 0))
    scene.add_joint("j", sh.Revolute("y", friction=0.1 * u.moment), "world", "a", position=(0, 0, 0))
    scene.add_body("h", sh.Sphere(0.05 * L), mass=0.5 * u.mass, position=(0.9 * L, 0, -0.45 * L))
    rope = {"segments": 6, "mass_per_length": 0.1 * u.mass / L, "EI": 1e-3 * u.moment * L, "radius": 0.004 * L}
    scene.add_rope("r", (0.5 * L, 0, 0), (0.9 * L, 0, -0.4 * L), attach=("a", "h"), **rope)
    return scene


SCENES = {make.__name__: make for make in (free, rubbing, rubbing_balls, limited, driven, sprung, sliding, loop, roped)}


def motion(make, u, dt, steps, **options):
    """Poses and speeds of all bodies, without units, every tenth step; and how many steps did not converge."""
    sim = sh.Simulation(make(u), dt * u.time, **options)
    out, missed = [], 0
    for i in range(steps):
        sim.step()
        missed += not sim.solver.report.converged
        if i % 10 == 9:
            for name in sim.model.body_names:
                body = sim.body(name)
                speeds = body.velocity * (u.time / u.length), body.angular_velocity * u.time
                out.append(np.concatenate([body.position / u.length, body.rotation, *speeds]))
    return np.array(out), missed
