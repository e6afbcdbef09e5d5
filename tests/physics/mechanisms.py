"""Mechanisms made at random: what the tests that try many of them share."""

from dataclasses import dataclass, field

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_exp

SOLVERS = {"sequential": {"solver": "sequential"}, "direct": {"solver": "direct"}}


def kinds(rng):
    """Makers of joints of every type, with keywords for what acts on their axes."""
    a, u = rng.normal(size=3), rng.normal(size=3)
    w = np.cross(u, rng.normal(size=3))
    return [
        lambda **k: sh.Fixed(), lambda **k: sh.Revolute(a, **k), lambda **k: sh.Prismatic(a, **k),
        lambda **k: sh.Cylindrical(a, **k), lambda **k: sh.Universal((u, w), **k), lambda **k: sh.Spherical(**k),
        lambda **k: sh.Planar(a, **k), lambda **k: sh.Free(**k), lambda **k: sh.PointOnLine(a, **k),
        *[lambda free=free, **k: sh.Joint(free, **k) for free in ("x rz ry", "x y z", "x z rx ry rz", "y rx rz", "x y ry")],
    ]  # fmt: skip


def add_body(scene, name, rng, at, mass=None, **moving):
    """A body of any inertia, its centre of mass beside its origin."""
    mass, size = rng.uniform(0.5, 3) if mass is None else mass, rng.uniform(0.1, 0.3, 3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    inertia = turn @ np.diag(0.3 * mass * (size.sum() - size)) @ turn.T
    pose = {"com": 0.1 * rng.normal(size=3), "position": at, "rotation": quat_exp(rng.normal(size=3))}
    scene.add_body(name, mass=mass, inertia=(inertia + inertia.T) / 2, **pose, **moving)


def some_laws(rng, joint, scale):
    """Friction, damping, limits, springs and servos on some axes; `scale`, N or N·m."""
    out = {}
    if rng.random() < 0.3:
        out["friction"] = float(scale * rng.uniform(0.01, 0.3))
    if rng.random() < 0.3:
        out["damping"] = float(scale * rng.uniform(0, 0.1))
    if rng.random() < 0.3:
        if len(joint.turns) != 3:
            out["limit"] = (-float(rng.uniform(0.1, 1)), float(rng.uniform(0.1, 1)))
        elif isinstance(joint, sh.Spherical):
            out["limit"] = (
                sh.Cardan(x=(-0.5, 0.7), y=(-0.4, 0.4), z=(-1, 1)) if rng.random() < 0.5 else sh.SwingTwist(0.6, (-0.5, 0.5))
            )
    if rng.random() < 0.2:
        out["spring"] = (float(scale * 10 ** rng.uniform(0, 2)), 0.0)
    elif rng.random() < 0.2 and len(joint.turns) != 3:
        out["drive"] = sh.Servo(
            kp=float(scale * 10 ** rng.uniform(0, 2)), kd=float(scale * rng.uniform(0.01, 1)), max_force=10 * scale
        )
    return out


@dataclass
class Case:
    """A scene, how it is stepped, and what may be commanded in it."""

    scene: sh.Scene
    solver: str
    dt: float
    passive: bool
    options: dict = field(default_factory=dict)

    def simulation(self, **more):
        return sh.Simulation(self.scene, self.dt, **SOLVERS[self.solver], **self.options, **more)


def any_case(seed):
    """One to six bodies on joints of any type, with laws, loops, rods, gears, springs and ropes; any solver, any step."""
    rng = np.random.default_rng(seed)
    solver = "direct" if seed % 5 else "sequential"
    decades = 6 if rng.random() < 0.2 else 1
    scene = sh.Scene(gravity=(0, 0, -9.81) if rng.random() < 0.8 else (0, 0, 0))
    count, bases, places = int(rng.integers(1, 7)), ["world"], {"world": np.zeros(3)}
    if rng.random() < 0.2:
        moves = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": 0.7 * rng.normal(size=3)}
        scene.add_body("cart", motion="kinematic", position=(0.2, 0.3, 0), **moves)
        bases.append("cart")
        places["cart"] = np.array([0.2, 0.3, 0])
    acts, passive = rng.random() < 0.6, len(bases) == 1
    for i in range(count):
        base = bases[int(rng.integers(max(0, len(bases) - 3), len(bases)))]
        at = places[base] + 0.5 * rng.normal(size=3)
        mass = float(10 ** rng.uniform(-decades / 2, decades / 2))
        thrown = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": rng.normal(size=3)} if rng.random() < 0.3 else {}
        add_body(scene, f"b{i}", rng, at, mass, **thrown)
        if rng.random() < 0.9:
            make = kinds(rng)[int(rng.integers(0, 14))]
            laws = some_laws(rng, make(), mass) if acts and make().v_size else {}
            passive = passive and "drive" not in laws
            pair = (base, f"b{i}") if rng.random() < 0.5 else (f"b{i}", base)
            turn = quat_exp(rng.normal(size=3))
            scene.add_joint(f"j{i}", make(**laws), *pair, position=0.5 * (places[base] + at), rotation=turn)
        bases.append(f"b{i}")
        places[f"b{i}"] = at
    last = f"b{count - 1}"
    if rng.random() < 0.25:
        end = places[last] + 0.1 * rng.normal(size=3)
        scene.add_joint("rod", sh.Distance(), "world", last, position=[end + rng.normal(size=3), end])
    if rng.random() < 0.1 and count > 1:
        scene.add_joint("weld", kinds(rng)[int(rng.integers(1, 6))](), "b0", last, position=places[last])
    turning = [n for n, j in scene.joints.items() if j.joint.v_size == 1]
    if rng.random() < 0.2 and len(turning) > 1:
        scene.add_joint("gear", sh.Gear(turning[0], turning[1], float(rng.uniform(-3, 3))))
    if rng.random() < 0.2 and count > 1:
        scene.add_spring("spring", "b0", last, stiffness=float(10 ** rng.uniform(0, 3)), damping=0.1)
    if rng.random() < 0.2:
        start, end = places[last], places[last] + rng.normal(size=3)
        far = float(np.linalg.norm(end - start))
        reel = {"reel": "end"} if rng.random() < 0.3 else {}
        held = [None, "world"][int(rng.integers(2))] if not reel else "world"
        shape = {"segments": int(rng.integers(2, 12)), "mass_per_length": float(10 ** rng.uniform(-2, 0))}
        if rng.random() < 0.4:
            shape["EI"] = float(10 ** rng.uniform(-3, 0))
        scene.add_rope("rope", start, end, length=far * float(rng.uniform(1.0, 1.3)), attach=(last, held), **shape, **reel)
    return Case(scene, solver, float(10 ** rng.uniform(np.log10(5e-4), np.log10(0.02))), passive)


# ---- passive mechanisms, whose motion has bounds ----------------------------------------------------------------------------


def mass_of(rng, decades):
    return float(10 ** rng.uniform(-decades / 2, decades / 2))


def add_loop(scene, name, rng, places):
    """Close a loop between two bodies of a scene, by a rod, a joint, or a spring."""
    a, b = rng.choice(list(places), 2, replace=False)
    a, b = (b, a) if b == "world" else (a, b)
    what = rng.integers(4)
    if what == 0:
        ends = [places[a] + 0.2 * rng.normal(size=3), places[b] + 0.2 * rng.normal(size=3)]
        scene.add_joint(name, sh.Distance(), a, b, position=ends)
    elif what == 1:
        scene.add_joint(name, sh.Spherical(), a, b, position=0.5 * (places[a] + places[b]))
    elif what == 2:
        joint, turn = kinds(rng)[int(rng.integers(1, 14))](), quat_exp(rng.normal(size=3))
        scene.add_joint(name, joint, a, b, position=places[b], rotation=turn)
    else:
        scene.add_spring(name, a, b, stiffness=float(10 ** rng.uniform(0, 3)), damping=0.1)


def passive_case(seed, solver, decades=1, floating=False):
    """Two to eight bodies in trees and loops on which nothing acts that gives energy; floating, nothing from outside at all."""
    rng = np.random.default_rng([seed, decades, floating])
    scene = sh.Scene(gravity=(0, 0, 0) if floating or rng.random() < 0.15 else (0, 0, -9.81))
    places = {} if floating else {"world": np.zeros(3)}
    acts = rng.random() < 0.5
    for i in range(int(rng.integers(2, 9))):
        base = list(places)[int(rng.integers(max(0, len(places) - 3), len(places)))] if places else None
        at, mass = places.get(base, np.zeros(3)) + 0.5 * rng.normal(size=3), mass_of(rng, decades)
        thrown = (
            {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": rng.normal(size=3)}
            if floating or rng.random() < 0.3
            else {}
        )
        add_body(scene, f"b{i}", rng, at, mass, **thrown)
        if base is not None:
            make = kinds(rng)[int(rng.integers(0, 14))]
            laws = some_laws(rng, make(), mass) if acts and make().v_size else {}
            for name in ("drive", "limit") if floating else ("drive",):  # limits are met by displacements, too
                laws.pop(name, None)
            pair = (base, f"b{i}") if rng.random() < 0.7 else (f"b{i}", base)
            place, turn = 0.5 * (places[base] + at), quat_exp(rng.normal(size=3))
            scene.add_joint(f"j{i}", make(**laws), *pair, position=place, rotation=turn)
        places[f"b{i}"] = at
    for k in range(3):
        if rng.random() < 0.3:
            add_loop(scene, f"l{k}", rng, places)
    return Case(scene, solver, float(10 ** rng.uniform(-3.3, np.log10(0.01 if decades == 1 else 0.02))), True)


def pair_case(seed, solver):
    """Two bodies with two joints between them, one of them with friction: most are locked, some twice."""
    rng = np.random.default_rng([seed, 77])
    scene = sh.Scene(gravity=(0, 0, 0) if rng.random() < 0.4 else (0, 0, -9.81))
    for name in "ab":
        thrown = {"velocity": 0.5 * rng.normal(size=3), "angular_velocity": 4 * rng.normal(size=3)} if rng.random() < 0.6 else {}
        size, mass = rng.choice([0.1, 0.3, 0.5, 1, 2], 3), float(rng.choice([1, 10, 30]))
        scene.add_body(name, sh.Box(*size), mass=mass, position=rng.normal(size=3), **thrown)
    if rng.random() < 0.4:
        hang = [sh.Spherical(), sh.Revolute("x"), sh.Universal()][int(rng.integers(3))]
        scene.add_joint("hang", hang, "world", "a", position=rng.normal(size=3))
    makers = kinds(rng)
    rough = makers[int(rng.integers(1, 14))](friction=float(rng.choice([0.1, 1, 5, 10])))
    for name, joint in (("rough", rough), ("other", makers[int(rng.integers(0, 14))]())):
        turn = quat_exp(rng.normal(size=3)) if rng.random() < 0.5 else (0, 0, 0, 1)
        scene.add_joint(name, joint, "a", "b", position=rng.normal(size=3), rotation=turn)
    return Case(scene, solver, float(rng.choice([1e-3, 2e-3, 5e-3, 1e-2])), True)
