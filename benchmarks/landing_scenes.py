"""Mechanisms made at random that land, tip over and collide, and what is checked of each at every step.

A scene depends on its family and its seed alone. All values that are judged are computed from public ones: poses, velocities,
energy, gaps of joints, lengths of ropes.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_multiply, quat_rotate

G = 9.81
GAIN = 0.01  # total energy above the start plus work done, relative to the scene's energy (`Watch.scale`)
GAP = 1e-3  # error of a joint, rad or relative to the smallest half extent of a body
SMALL_GAP = 1e-4  # likewise, after a step that says it converged
DEPTH = 0.05  # penetration of the ground, relative to the smallest half extent of the body
STRETCH = 1e-6  # lengthening of a rope's segment, relative
DRIFT = 1e-9  # change of linear and angular momentum where nothing external acts, relative
STEP_GAIN = 1e-4  # gain of energy in one step that says it converged, relative


@dataclass
class Landing:
    """A scene with its step, how long it runs, and what its user does before each step."""

    scene: sh.Scene
    dt: float
    duration: float
    command: Callable[[sh.Simulation, float], None] | None = None
    corners: dict[str, tuple[np.ndarray, float]] = field(default_factory=dict)  # points of a body, and the radius about them, m
    floating: bool = False  # no gravity, no ground: momenta are constant
    rope: str | None = None
    drives: tuple[str, ...] = ()

    def add(self, name, shape, **how):
        """Add a body whose shape is centred at its origin."""
        self.scene.add_body(name, shape, **how)
        if isinstance(shape, sh.Box):
            half = np.array([shape.x, shape.y, shape.z]) / 2
            self.corners[name] = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half, 0.0
        elif isinstance(shape, sh.Sphere):
            self.corners[name] = np.zeros((1, 3)), shape.radius
        elif isinstance(shape, sh.Capsule):
            self.corners[name] = np.array([[0, 0, -1], [0, 0, 1]]) * shape.length / 2, shape.radius

    def least(self, name):
        """Smallest half extent of a body, m."""
        points, radius = self.corners[name]
        return radius if radius > 0 else float(np.abs(points).min())

    def depth(self, sim):
        """Deepest penetration of the ground, relative to the body's smallest half extent."""
        worst = 0.0
        if not self.floating:
            for name, (points, radius) in self.corners.items():
                body = sim.body(name)
                z = body.position[2] + quat_rotate(body.rotation, points)[:, 2].min() - radius
                worst = max(worst, -z / self.least(name))
        return worst


def landing(rng, floating=False, **more):
    """An empty landing: its step between 0.5 and 10 ms, restitution 0, 1 or between."""
    dt = float(10 ** rng.uniform(math.log10(0.5e-3), -2))
    restitution = float(rng.choice([0.0, 1.0, rng.uniform()], p=[0.4, 0.1, 0.5]))
    material = sh.Material(friction=float(rng.choice([0.0, 0.5, rng.uniform(0, 1)])), restitution=restitution)
    scene = sh.Scene(gravity=(0, 0, 0) if floating else (0, 0, -G), contact=True)
    if not floating:
        scene.add_ground(material=material)
    return Landing(scene, dt, min(1.5, 250 * dt), floating=floating, **more), material


def hinge(rng, axis="y"):
    """A hinge with or without a limit and friction."""
    acts = {"limit": (-1.2, 1.2)} if rng.random() < 0.5 else {}
    acts |= {"friction": 0.1} if rng.random() < 0.3 else {}
    return sh.Revolute(axis, **acts)


def add_chain(to, rng, material, at, prefix="link", links=None, motion=(0, 0, 0)):
    """An upright chain of boxes on hinges or balls; returns its bodies."""
    n, size = int(rng.integers(2, 7)) if links is None else links, float(rng.uniform(0.05, 0.4))
    names = [f"{prefix} {i}" for i in range(n)]
    for i, name in enumerate(names):
        shape = sh.Box(0.4 * size, 0.3 * size, 0.9 * size)
        place = np.array(at) + [0, 0, size * (i + 0.5)]
        velocity = np.array(motion) + 0.3 * rng.normal(size=3) * (i == n - 1)
        to.add(name, shape, mass=float(10 ** rng.uniform(-1, 0.7)), position=place, velocity=velocity, material=material)
        if i:
            joint = hinge(rng, "xy"[int(rng.integers(2))]) if rng.random() < 0.7 else sh.Spherical()
            to.scene.add_joint(f"{prefix} joint {i}", joint, names[i - 1], name, position=place - [0, 0, size / 2])
    return names


def chain(rng):
    """An upright chain that falls onto the ground."""
    out, material = landing(rng)
    add_chain(out, rng, material, (0, 0, float(rng.uniform(0.05, 0.6))))
    return out


def loop(rng):
    """A ring of three to six links on parallel hinges that falls, edge on."""
    out, material = landing(rng)
    n, size = int(rng.integers(3, 7)), float(rng.uniform(0.1, 0.4))
    radius = size / (2 * math.sin(math.pi / n))
    start, tilt = float(rng.uniform(0, 2)), quat_exp(np.array([float(rng.uniform(-0.5, 0.5)), 0, 0]))
    height = radius + size / 2 + float(rng.uniform(0.05, 0.5))
    vertices = [np.array([math.cos(a), 0, math.sin(a)]) * radius for a in start + 2 * math.pi / n * np.arange(n)]
    for i in range(n):
        along = vertices[(i + 1) % n] - vertices[i]
        turn = quat_exp(np.array([0, math.atan2(along[0], along[2]), 0]))
        at = quat_rotate(tilt, (vertices[i] + along / 2)[None])[0] + [0, 0, height]
        shape = sh.Capsule(0.1 * size, 0.6 * size)
        out.add(
            f"link {i}",
            shape,
            mass=float(rng.uniform(0.5, 3)),
            position=at,
            rotation=quat_multiply(tilt, turn),
            material=material,
        )
    for i in range(n):
        at = quat_rotate(tilt, vertices[i][None])[0] + [0, 0, height]
        axis = quat_rotate(tilt, np.array([[0.0, 1, 0]]))[0]
        friction = {"friction": 0.05} if rng.random() < 0.3 else {}
        out.scene.add_joint(
            f"joint {i}", sh.Revolute(axis, **friction), f"link {i - 1 if i else n - 1}", f"link {i}", position=at
        )
    return out


def add_ragdoll(to, rng, material, at, prefix="", motion=(0, 0, 0)):
    """A torso with a head, arms and legs of two parts, with limits."""
    s, base = float(rng.uniform(0.6, 1.4)), np.array(at)

    def part(name, shape, mass, x, z):
        spin = 0.5 * rng.normal(size=3) * (name == "torso")
        place, moves = (
            base + s * np.array([0, x, z]),
            {"velocity": motion, "angular_velocity": spin if to.floating else (0, 0, 0)},
        )
        to.add(prefix + name, shape, mass=mass * s**3, position=place, material=material, **moves)

    def join(name, joint, parent, x, z):
        to.scene.add_joint(
            f"{prefix}{name} joint", joint, prefix + parent, prefix + name, position=base + s * np.array([0, x, z])
        )

    ball = sh.SwingTwist(1.0, (-0.6, 0.6))
    part("torso", sh.Box(0.2 * s, 0.32 * s, 0.5 * s), 30, 0, 0)
    part("head", sh.Sphere(0.1 * s), 4, 0, 0.4)
    join("head", sh.Spherical(limit=sh.SwingTwist(0.6, (-0.5, 0.5))), "torso", 0, 0.28)
    for side, y in (("left", 1), ("right", -1)):
        part(f"{side} thigh", sh.Capsule(0.06 * s, 0.3 * s), 7, 0.1 * y, -0.48)
        join(f"{side} thigh", sh.Spherical(limit=ball), "torso", 0.1 * y, -0.27)
        part(f"{side} shin", sh.Capsule(0.05 * s, 0.3 * s), 4, 0.1 * y, -0.92)
        join(f"{side} shin", sh.Revolute("y", limit=(-0.1, 2.2), friction=1.0), f"{side} thigh", 0.1 * y, -0.7)
        part(f"{side} arm", sh.Capsule(0.045 * s, 0.25 * s), 3, 0.24 * y, 0.02)
        join(f"{side} arm", sh.Spherical(limit=ball), "torso", 0.24 * y, 0.2)
        part(f"{side} hand", sh.Capsule(0.04 * s, 0.2 * s), 1.5, 0.24 * y, -0.32)
        join(f"{side} hand", sh.Revolute("y", limit=(-2.0, 0.1)), f"{side} arm", 0.24 * y, -0.16)
    return s


def ragdoll(rng):
    """A ragdoll that falls on its feet and collapses."""
    out, material = landing(rng)
    add_ragdoll(out, rng, material, (0, 0, 1.65 + float(rng.uniform(0.05, 0.6))), motion=rng.normal(size=3) * [1, 1, 0])
    return out


def vehicle(rng):
    """A vehicle on four wheels with springs, dropped tilted so that it may tip over, with up to two boxes before it."""
    out, material = landing(rng)
    turn = quat_exp(np.array([float(rng.uniform(-1.2, 1.2)), float(rng.uniform(-0.3, 0.3)), 0]))
    at, mass = np.array([0, 0, 1.6 + float(rng.uniform(0, 0.5))]), float(10 ** rng.uniform(1.5, 3.3))
    velocity = np.array([float(rng.uniform(0, 6)), float(rng.uniform(-2, 2)), 0])
    moves = {"rotation": turn, "velocity": velocity, "material": material}
    out.add("chassis", sh.Box(2.0, 1.0, 0.4), mass=mass, position=at, **moves)
    for k, (x, y) in enumerate([(0.7, 0.65), (0.7, -0.65), (-0.7, 0.65), (-0.7, -0.65)]):
        there = at + quat_rotate(turn, np.array([[x, y, -0.35]]))[0]
        out.add(f"wheel {k}", sh.Sphere(0.3), mass=0.05 * mass, position=there, **moves)
        axle = sh.Joint("z ry", spring={"z": (60 * mass, 0.0)}, damping={"z": 4 * mass})
        out.scene.add_joint(f"axle {k}", axle, "chassis", f"wheel {k}", position=there, rotation=turn)
    for i in range(int(rng.integers(0, 3))):
        out.add(
            f"box {i}",
            sh.Box(0.5, 0.5, 0.5),
            mass=float(rng.uniform(5, 100)),
            position=(3.0, 0.7 * (i - 1), 0.25),
            material=material,
        )
    return out


def floating(rng):
    """Two mechanisms that collide where nothing else acts."""
    out, material = landing(rng, floating=True)
    add_chain(out, rng, material, (0, 0, 0), prefix="first", motion=(0.7, 0, 0))
    if rng.random() < 0.5:
        add_chain(out, rng, material, (0.4, 0.05, 0.1), prefix="second", motion=(-0.7, 0, 0))
    else:
        add_ragdoll(out, rng, material, (0.6, 0, 0.3), prefix="doll ", motion=(-0.5, 0, 0))
    return out


def crane(rng):
    """A slewing crane: a hook with a load on a reeled rope, lifted, slewed, set down beside a box and released."""
    out, material = landing(rng, rope="line", drives=("slew",))
    out.duration = min(6.0, 600 * out.dt)
    reach, top, load = float(rng.uniform(2, 5)), float(rng.uniform(3, 6)), float(10 ** rng.uniform(1, math.log10(3000)))
    size = 0.2 + 0.2 * (load / 100) ** (1 / 3)
    z = float(rng.uniform(size + 0.3, min(top - 1.0, size + 1.0)))
    scene = out.scene
    scene.add_body("mast", sh.Box(0.4, 0.4, top), mass=600, position=(0, 0, top / 2), collide=False)
    scene.add_body("jib", sh.Box(reach, 0.2, 0.2), mass=200, position=(reach / 2, 0, top), collide=False)
    inertia = 1000.0 + load * reach**2
    servo = sh.Servo(position=0.0, kp=4 * inertia, kd=4 * inertia, max_force=0.3 * inertia)
    scene.add_joint("slew", sh.Revolute("z", drive=servo), "world", "mast", position=(0, 0, 0))
    scene.add_joint("boom", sh.Fixed(), "mast", "jib", position=(0, 0, top))
    out.add("hook", sh.Sphere(0.1), mass=max(2.0, 0.05 * load), position=(reach, 0, z), material=material)
    out.add("load", sh.Box(size, size, size), mass=load, position=(reach, 0, z - 0.1 - size / 2), material=material)
    scene.add_joint("grab", sh.Spherical(), "hook", "load", position=(reach, 0, z - 0.1))
    rope = {"segments": int(rng.integers(8, 40)), "mass_per_length": float(10 ** rng.uniform(-1, 0.3)), "reel": "start"}
    scene.add_rope("line", (reach, 0, top), (reach, 0, z + 0.1), attach=("jib", "hook"), longest=top + 1, collide=False, **rope)
    out.add("box", sh.Box(0.5, 0.5, 0.5), mass=50, position=(reach * 0.92, reach * 0.4, 0.25), material=material)
    rates, angles = rng.choice([-0.4, -0.2, 0.0, 0.2, 0.4], size=20), rng.uniform(-0.6, 0.6, size=20)
    until = out.duration

    def command(sim, t):
        n, lowers = int(t / 0.5), 0.5 * until < t < 0.8 * until
        sim.rope("line").reel_speed = 0.4 if lowers else float(rates[n])
        sim.joint("slew").drive.position = float(angles[n])
        if t > 0.9 * until and sim.joint("grab").enabled:
            sim.joint("grab").enabled = False

    out.command = command
    return out


def heap(rng):
    """Free boxes, balls and capsules that fall onto each other."""
    out, material = landing(rng)
    count, size = int(rng.integers(3, 25)), float(rng.uniform(0.05, 0.4))
    for i in range(count):
        shape = [
            sh.Box(*(size * rng.uniform(0.4, 1.0, size=3)).tolist()),
            sh.Sphere(float(size * rng.uniform(0.25, 0.5))),
            sh.Capsule(float(size * rng.uniform(0.12, 0.25)), float(size * rng.uniform(0.3, 0.6))),
        ][int(rng.integers(3))]
        row, place = divmod(i, 4)
        at = size * np.array([1.9 * (place % 2), 1.9 * (place // 2), 1.0 + 1.9 * row]) + 0.2 * size * rng.uniform(-1, 1, size=3)
        turn = quat_exp(rng.uniform(-1.5, 1.5, size=3))
        out.add(f"body {i}", shape, mass=float(10 ** rng.uniform(-1, 1)), position=at, rotation=turn, material=material)
    return out


FAMILIES = {f.__name__: f for f in (chain, loop, ragdoll, vehicle, heap, floating, crane)}


def make(family, seed):
    """The scene of a seed."""
    return FAMILIES[family](np.random.default_rng([seed, sum(map(ord, family))]))


# ---- what is checked --------------------------------------------------------------------------------------------------------


class Watch:
    """Collects, step by step, what is violated (the first time of each kind, with its size), and the largest value of each."""

    def __init__(self, case, sim):
        self.case, self.sim, self.violations, self.largest = case, sim, {}, {}
        energy = sim.energy()
        height = sum(self.mass(n) * G * max(sim.body(n).position[2], 0.0) for n in case.corners) * (not case.floating)
        self.start, self.last, self.work, self.scale = energy.total, energy.total, 0.0, max(energy.kinetic + height, 1e-9)
        self.momentum = self.momenta()
        size = sum(self.mass(n) * np.linalg.norm(sim.body(n).velocity) for n in case.corners)
        self.momentum_scale = max(size, 1e-9)
        self.power, self.reel = self.powers(), 0.0
        self.size = min(case.least(n) for n in case.corners)

    def mass(self, name):
        return float(self.sim.model.bodies.mass.numpy()[self.sim.model.body_names[name], 0])

    def momenta(self):
        momentum = self.sim.momentum()
        return np.concatenate([np.ravel(momentum.linear), np.ravel(momentum.angular)])

    def powers(self):
        """Power of drives and of the reel, W: of these the work is the integral by the trapezoidal rule."""
        out = sum(float(np.sum(self.sim.joint(n).drive.force * self.sim.joint(n).velocity)) for n in self.case.drives)
        if self.case.rope:
            rope = self.sim.rope(self.case.rope)
            per_length = self.sim.model.ropes.described[0].density
            out -= float(rope.reel_speed * rope.tension[0])  # it pays out against the tension,
            out += float(rope.reel_speed * per_length * G * rope.position[0][2])  # and what it pays out has weight
        return out

    def impact(self):
        """Most work of a reel whose speed jumps, J: by the impact its load takes the new speed."""
        if not self.case.rope:
            return 0.0
        last, self.reel = self.reel, float(self.sim.rope(self.case.rope).reel_speed)
        return 0.5 * (self.mass("load") + self.mass("hook")) * max(self.reel**2 - last**2, 0.0)

    def note(self, kind, value, bound):
        self.largest[kind] = value if math.isnan(value) else max(self.largest.get(kind, 0.0), value)
        if not value <= bound:  # so that NaN is noted
            self.violations.setdefault(kind, f"{kind} at {self.sim.time:.4f} s: {value:.3g} (bound {bound:.1g})")

    def after_step(self, report):
        sim, case = self.sim, self.case
        total = sim.energy().total
        power = self.powers()
        done = 0.5 * (power + self.power) * case.dt + self.impact()
        self.work, self.power = self.work + done, power
        if case.drives or case.rope:  # work is known roughly: tension changes within a step
            self.scale = max(self.scale, abs(self.work))
            self.note("energy", (total - self.start - self.work) / self.scale, 10 * GAIN)
        else:
            self.note("energy", (total - self.start) / self.scale, GAIN)
            if report.converged:
                self.note("dishonest energy", (total - self.last) / self.scale, STEP_GAIN)
        self.last = total
        gaps = sim.constraint_error()[0]
        on = np.array([sim.joint(n).enabled for n in sim.model.joint_names], bool)
        gap = float(np.maximum(gaps[on, 0] / self.size, gaps[on, 1]).max(initial=0.0))
        self.note("gap", gap, GAP)
        if report.converged:
            self.note("dishonest gap", gap, SMALL_GAP)
        self.note("penetration", case.depth(sim), DEPTH)
        if case.rope:
            self.note("stretch", float(sim.rope(case.rope).stretch), STRETCH)
        if case.floating:
            self.note("momentum", float(np.abs(self.momenta() - self.momentum).max()) / self.momentum_scale, DRIFT)


def play(case, watch=True):
    """Run a case with default settings; what it violated, and the last snapshot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = sh.Simulation(case.scene, case.dt)
        watching = Watch(case, sim) if watch else None
        try:
            for k in range(int(case.duration / case.dt)):
                if case.command:
                    case.command(sim, k * case.dt)
                report = sim.step()
                if watching:
                    watching.after_step(report)
        except sh.SimulationError as error:
            if watching:
                watching.violations["stops"] = f"stops: {str(error).splitlines()[0]}"
    return (watching.violations if watching else {}), sim.snapshot()


@cache
def violations(family, seed):
    """What a seed of a family violates; once for all tests of a session."""
    return play(make(family, seed))[0]
