"""Two slings under a box of 20 kg, hung on a hook: it is lifted off the floor by their friction alone, and stays in them."""

import math

import numpy as np

import sharnir as sh

HALF, HEIGHT, RADIUS, LIFT = 0.15, 0.16, 0.008, 0.2  # half the box's width, its height, the ropes' radius, m


def sling(y: float) -> np.ndarray:
    """Points from the hook down one side of the box, under it and up again, 20 mm apart."""
    r = RADIUS
    corner = np.linspace(0, math.pi / 2, 3)[:, None]
    left = np.array([-HALF, 0, 0.03]) + r * np.concatenate([-np.cos(corner), 0 * corner, -np.sin(corner)], 1)
    side = np.concatenate([[[0, 0, 0.75]], [[-HALF - r, 0, 0.03 + HEIGHT]], left])
    return np.concatenate([side, side[::-1] * (-1, 1, 1)]) + (0, y, 0)


def make(dt: float = 5e-3) -> sh.Simulation:
    rope = sh.Material(friction=0.5)
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_ground()
    for x in (-0.1, 0.1):  # what it stands on, between the slings
        scene.add_body(f"block {x}", sh.Box(0.06, 0.1, 0.03), motion="fixed", position=(x, 0, 0.015))
    scene.add_body("box", sh.Box(2 * HALF, 0.4, HEIGHT), mass=20.0, position=(0, 0, 0.03 + HEIGHT / 2), material=rope)
    scene.add_body("hook", motion="kinematic", position=(0, 0, 0.75), path=lambda t: (0, 0, 0.75 + height(t)))
    for k, y in enumerate((-0.12, 0.12)):
        points = sling(y)
        points[[0, -1], 1] *= 0.2
        scene.add_rope(
            f"sling {k}", points=points, segments=70, radius=RADIUS, mass_per_length=0.1, EI=1e-3, damping=0.02,
            attach=("hook", "hook"), material=rope,
        )  # fmt: skip
    return sh.Simulation(scene, dt)


def height(t: float) -> float:
    s = min(max(t - 0.2, 0.0), 1.0)
    return LIFT * s * s * (3 - 2 * s)


def check(sim: sh.Simulation) -> None:
    stretch = 0.0
    while sim.time < 1.6:
        sim.step()
        stretch = max(stretch, *(sim.rope(f"sling {k}").stretch for k in (0, 1)))
    box = sim.body("box")
    bears = sum(sim.contact_force("box", f"sling {k}")[2] for k in (0, 1))
    tilt = 1 - 2 * (box.rotation[0] ** 2 + box.rotation[1] ** 2)
    above, lean = box.position[2] - 0.03 - HEIGHT / 2, math.acos(min(tilt, 1.0))
    print(
        f"the box hangs {above:.3f} m above the blocks, upright to {lean:.3f} rad, and moves at {np.abs(box.velocity).max():.3f} m/s"
    )
    print(f"the slings bear {bears:.1f} N of {20 * 9.81:.1f} N; stretch {stretch:.0e}")
    assert above > 0.1 and abs(bears / (20 * 9.81) - 1) < 0.1 and stretch < 1e-6 and tilt > 0.98


if __name__ == "__main__":
    check(make())
