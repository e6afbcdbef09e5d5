"""Small scenes that steps find hard: masses over six decades, loops, ropes, laws, and velocities that fit nothing."""

import warnings

import numpy as np

import sharnir as sh

KINDS = [
    lambda a: sh.Revolute(a), lambda a: sh.Spherical(), lambda a: sh.Universal(), lambda a: sh.Prismatic(a),
    lambda a: sh.Cylindrical(a), lambda a: sh.Distance(), lambda a: sh.Fixed(), lambda a: sh.Planar(normal=a),
]  # fmt: skip
ACTING = [
    lambda a: sh.Revolute(a, friction=3.0),
    lambda a: sh.Revolute(a, limit=(-0.1, 0.2), damping=0.1),
    lambda a: sh.Revolute(a, drive=sh.Servo(kp=500.0, kd=5.0, position=0.5, max_force=50.0)),
    lambda a: sh.Spherical(friction=1.0),
    lambda a: sh.Prismatic(a, friction=5.0, limit=(-0.05, 0.05)),
    lambda a: sh.Universal(limit=(-0.3, 0.3), friction=0.5),
]


def quiet(make, *args, **given):
    """What it returns, without a word of warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **given)


def bodies_of(scene, rng, count, decades, speed):
    """Boxes anywhere within a metre, thrown and spun; returns their places."""
    places = rng.uniform(-1, 1, (count, 3))
    for i in range(count):
        scene.add_body(
            f"b{i}", sh.Box(*rng.uniform(0.1, 0.6, 3)), mass=float(10 ** rng.uniform(-decades / 2, decades / 2)),
            position=places[i], velocity=speed * rng.normal(size=3), angular_velocity=2 * speed * rng.normal(size=3),
        )  # fmt: skip
    return places


def joint_of(rng, acting):
    """Any joint, with or without laws."""
    axis = rng.normal(size=3)
    made = (ACTING if acting else KINDS)[rng.integers(len(ACTING if acting else KINDS))](axis / np.linalg.norm(axis))
    return made


def tangle(seed, dt, *, bodies=4, joints=7, ropes=2, acting=0.3, speed=5.0, decades=6.0, **options):
    """Some bodies, more joints than they need, ropes from body to body: loops anywhere, violent from the first step."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    places = bodies_of(scene, rng, bodies, decades, speed)
    for k in range(joints):
        a, b = (k - 1, k) if k < bodies else rng.choice(bodies, 2, replace=False)
        parent = "world" if a < 0 else f"b{a}"
        near = places[b] if a < 0 else 0.5 * (places[a] + places[b])
        joint = joint_of(rng, rng.random() < acting)
        at = [near - 0.3, places[b]] if isinstance(joint, sh.Distance) else near + 0.2 * rng.normal(size=3)
        scene.add_joint(f"j{k}", joint, parent, f"b{b}", position=at)
    for k in range(ropes):
        a, b = rng.choice(bodies, 2, replace=False)
        far = float(np.linalg.norm(places[a] - places[b]))
        holder, start = (None, places[a]) if rng.random() < 0.2 else (f"b{a}", places[a])
        scene.add_rope(
            f"r{k}", start, places[b], length=far * float(rng.choice([1.0, 1.02, 1.3])), segments=int(rng.integers(4, 16)),
            mass_per_length=float(10 ** rng.uniform(-2, 0.5)), EI=float(rng.choice([0.0, 1e-3, 0.1])), attach=(holder, f"b{b}"),
        )  # fmt: skip
    return quiet(sh.Simulation, scene, dt, **options)


def bush(seed, dt, *, bodies=40, acting=0.7, speed=5.0, decades=4.0, **options):
    """A tree whose joints rub, stop and are driven."""
    rng = np.random.default_rng(seed)
    scene = sh.Scene()
    places = bodies_of(scene, rng, bodies, decades, speed)
    for k in range(bodies):
        a = int(rng.integers(-1, k)) if k else -1
        near = places[k] if a < 0 else 0.5 * (places[a] + places[k])
        joint = joint_of(rng, rng.random() < acting)
        if isinstance(joint, sh.Distance):
            joint = sh.Spherical()
        scene.add_joint(f"j{k}", joint, "world" if a < 0 else f"b{a}", f"b{k}", position=near + 0.1 * rng.normal(size=3))
    return quiet(sh.Simulation, scene, dt, **options)
