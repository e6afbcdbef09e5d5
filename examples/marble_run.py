"""Five marbles run down a winding gutter, a mesh of three thousand triangles, and leave it below, one after the other."""

import numpy as np

import sharnir as sh

TURNS, RADIUS, DROP, WIDE = 2.0, 0.25, 0.12, 0.03  # of the gutter: turns, m to its middle, m a turn, m its inner radius
MARBLE, COUNT, RINGS, SIDES = 0.012, 5, 40, 8  # m, marbles, rings a turn, sides of half a circle


def gutter() -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles of a half pipe that winds down around z."""
    angles = np.linspace(np.pi, 2 * np.pi, SIDES + 1)
    half = np.c_[np.cos(angles), np.sin(angles)]
    ring = np.concatenate([WIDE * half, (WIDE + 0.01) * half[::-1]])
    n, count = len(ring), int(TURNS * RINGS) + 1
    turn = np.linspace(0, 2 * np.pi * TURNS, count)
    out = RADIUS + ring[:, 0]
    corners = np.stack([np.outer(np.cos(turn), out), np.outer(np.sin(turn), out),
                        ring[:, 1] - DROP * turn[:, None] / (2 * np.pi)], axis=-1).reshape(-1, 3)  # fmt: skip
    faces = []
    for k in range(count - 1):
        for i in range(n):
            a, b = k * n + i, k * n + (i + 1) % n
            faces += [(a, b, a + n), (b, b + n, a + n)]
    for i in range(SIDES):  # both ends
        for at, order in ((0, 1), ((count - 1) * n, -1)):
            quad = [at + i, at + n - 1 - i, at + n - 2 - i, at + i + 1]
            faces += [tuple(np.array(quad)[[0, 1, 2]][::order]), tuple(np.array(quad)[[0, 2, 3]][::order])]
    return corners, np.array(faces)


def make(dt: float = 1e-3) -> sh.Simulation:
    glass = sh.Material(friction=0.3, restitution=0.2)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(-DROP * TURNS - 0.2, material=glass)
    scene.add_body("gutter", sh.Mesh(gutter()), motion="fixed", material=glass)
    for i in range(COUNT):
        turn = 0.15 + 0.12 * i
        place = (RADIUS * np.cos(turn), RADIUS * np.sin(turn), MARBLE - WIDE + 1e-3 - DROP * turn / (2 * np.pi))
        scene.add_body(f"marble {i}", sh.Sphere(MARBLE), density=2500.0, position=place, material=glass)
    return sh.Simulation(scene, dt)


def check(sim: sh.Simulation) -> None:
    marbles = [sim.body(f"marble {i}") for i in range(COUNT)]
    start, gained, left = sim.energy().total, 0.0, {}
    while sim.time < 6.0 and len(left) < COUNT:
        sim.step(5)
        gained = max(gained, sim.energy().total - start)
        for i, marble in enumerate(marbles):
            if i not in left and marble.position[2] < -DROP * TURNS - WIDE - 0.02:
                left[i] = (sim.time, np.linalg.norm(marble.velocity))
    order = sorted(left, key=lambda i: left[i][0])
    times, speeds = zip(*(left[i] for i in order), strict=True)
    print(f"they leave as {order}, after {times[0]:.2f} to {times[-1]:.2f} s, at {min(speeds):.2f} to {max(speeds):.2f} m/s")
    print(f"{gained:.1e} J above the start of {start:.4f} J")
    assert order == list(range(COUNT - 1, -1, -1)) and gained < 1e-6 and min(speeds) > 0.5


if __name__ == "__main__":
    check(make())
