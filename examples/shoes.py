"""A belt of 22 hinged shoes around two wheels drives beside an `sh.Track`: what slips and rattles, and what is one coordinate.

The shoes are a closed loop that its sprocket drives by friction, an idler on a spring keeps it tight. Both carts pull 20 N.
"""

import math

import numpy as np

import sharnir as sh

ROUND, STRAIGHT, PITCH, THICK, WIDE = 5, 6, 0.1, 0.02, 0.1  # shoes around a wheel and between the two; m
OUT = PITCH / (2 * math.sin(math.pi / (2 * ROUND)))  # m, of the pins from the middle of a wheel
RADIUS = OUT * math.cos(math.pi / (2 * ROUND)) - 0.5 * THICK  # of a wheel, which the shoes lie on
HALF, SPEED, PULL, HIGH = 0.5 * STRAIGHT * PITCH, 2.0, 20.0, OUT + 0.5 * THICK  # m; rad/s; N; m
COUNT, RUBBER, GRIP = 2 * (ROUND + STRAIGHT), sh.Material(friction=0.8), sh.Material(friction=1.5)


def pins() -> np.ndarray:
    """(shoes, 2) m: x, z of their hinges from the middle, along the lower run and around the rear wheel, then the same turned."""
    half = [(HALF - PITCH * i, -OUT) for i in range(STRAIGHT)]
    half += [(-HALF - OUT * math.sin(math.pi * i / ROUND), -OUT * math.cos(math.pi * i / ROUND)) for i in range(ROUND)]
    return np.array(half + [(-x, -z) for x, z in half])


def add_shoes(scene: sh.Scene) -> None:
    places, across = pins(), (math.sin(math.pi / 4), 0, 0, math.cos(math.pi / 4))
    for wheel, x in (("sprocket", -HALF), ("idler", HALF)):
        scene.add_body(wheel, sh.Cylinder(RADIUS, WIDE), mass=2.0, position=(x, 0, HIGH), rotation=across, material=GRIP)
    spring = sh.Joint("x ry", spring={"x": (2e4, 0.02)}, damping={"x": 200.0})
    scene.add_joint("tension", spring, "shoes", "idler", position=(HALF, 0, HIGH))
    for i, (a, b) in enumerate(zip(places, np.roll(places, -1, 0), strict=True)):
        (x, z), tilt = 0.5 * (a + b), -0.5 * math.atan2(*(b - a)[::-1])
        where = {"position": (x, 0, z + HIGH), "rotation": (0, math.sin(tilt), 0, math.cos(tilt))}
        scene.add_body(f"shoe {i}", sh.Box(0.8 * PITCH, WIDE, THICK), mass=0.2, material=RUBBER, **where)
    for i, (x, z) in enumerate(places):
        scene.add_joint(f"pin {i}", sh.Revolute("y"), f"shoe {(i - 1) % COUNT}", f"shoe {i}", position=(x, 0, z + HIGH))


def make(dt: float = 2e-3) -> sh.Simulation:
    scene, drive = sh.Scene(), sh.Servo(velocity=SPEED, kd=500.0)
    scene.add_ground(material=RUBBER)
    track = sh.Track([(-HALF, 0.0, HIGH), (HALF, 0.0, HIGH)], WIDE, 0.2 * COUNT, wheel_mass=4.0, friction=0.8)
    drawn = sh.Compound(*track.shapes(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])))
    for name, y, shape in (("shoes", 0.0, sh.Box(0.8, WIDE, 0.05)), ("track", 1.0, drawn)):
        scene.add_body(name, shape, mass=20.0, inertia=(0.1, 1.0, 1.0), position=(0, y, HIGH), collide=False)
        scene.add_joint(f"{name} guide", sh.Joint("x z ry"), scene.world, name, position=(0, y, HIGH))
    add_shoes(scene)
    scene.add_joint("drive", sh.Revolute("y", drive=drive), "shoes", "sprocket", position=(-HALF, 0, HIGH))
    track.add(scene, "belt", "track", drive=drive)
    scene.set_pair(scene.world, "track", RUBBER)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=60), on_divergence="ignore")


def check(sim: sh.Simulation) -> None:
    """The track goes at its belt's speed; the shoes at nearly that of their pins around the wheel, ten to a turn, shaking."""
    [sim.body(name).apply_force((-PULL, 0, 0), once=False) for name in ("shoes", "track")]
    sim.run(0.6)
    seen = np.array([[sim.body(n).velocity[0] for n in ("shoes", "track")] for _ in range(40) if sim.step(10)])
    (a, b), (u, v) = seen.mean(axis=0), (SPEED * 2 * ROUND * PITCH / (2 * math.pi), SPEED * HIGH)
    print(f"shoes {a:.4f} m/s of {u:.4f}, ± {seen[:, 0].std():.4f}; track {b:.4f} m/s of {v:.4f}, ± {seen[:, 1].std():.1e}")
    assert 0.93 < a / u < 1.01 and abs(b / v - 1) < 0.03 and seen[:, 1].std() < 1e-3 < seen[:, 0].std()


if __name__ == "__main__":
    check(make())
