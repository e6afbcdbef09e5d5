"""A buoy on 27 m of chain in 25 m of water and a current: it rides the waves and drifts until the hanging line holds it.

Buoyancy follows how deep the buoy sits; the line weighs 15 kg a metre under water, and water drags at it. There is no sea bed:
the line is short enough to stay above its anchor.
"""

import numpy as np

import sharnir as sh

DEPTH, LENGTH, WEIGHT = 25.0, 27.0, 15.0  # m, m, kg/m
CURRENT, WAVE, PERIOD = 1.5, 0.8, 7.0  # m/s, m, s
AREA, DRAFT = 3.0, 2.0  # m²: of the buoy's waterline, m


def make(dt: float = 1e-2) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("buoy", sh.Cylinder(np.sqrt(AREA / np.pi), DRAFT), mass=2500.0, position=(8.0, 0, 0))
    scene.add_rope(
        "line", (0, 0, -DEPTH), (8.0, 0, -0.5 * DRAFT), length=LENGTH, segments=60, radius=0.03, mass_per_length=WEIGHT,
        drag=15.0, attach=("world", "buoy"),
    )  # fmt: skip
    return sh.Simulation(scene, dt)


def surface(t: float) -> float:
    return WAVE * np.sin(2 * np.pi * t / PERIOD) * min(t / 20.0, 1.0)


def control(sim: sh.Simulation) -> None:
    """Buoyancy, the current's push, water that brakes heave and roll; called every step."""
    buoy = sim.body("buoy")
    under = np.clip(surface(sim.time) - buoy.com[2] + 0.5 * DRAFT, 0.0, DRAFT)
    push = 400.0 * (CURRENT - buoy.velocity[0]) * abs(CURRENT - buoy.velocity[0])
    buoy.apply_force((push, -400.0 * buoy.velocity[1], 1025 * 9.81 * AREA * under - 4000.0 * buoy.velocity[2]))
    x, y, z, w = buoy.rotation
    lean = np.array([2 * (y * z - w * x), 2 * (x * z + w * y)])  # of its axis: righted by its ballast
    buoy.apply_torque(
        (
            2e4 * lean[0] - 5e3 * buoy.angular_velocity[0],
            -2e4 * lean[1] - 5e3 * buoy.angular_velocity[1],
            -5e3 * buoy.angular_velocity[2],
        )
    )


def check(sim: sh.Simulation) -> None:
    line, buoy, stretch, lowest = sim.rope("line"), sim.body("buoy"), 0.0, 0.0
    pull, held, heave = [], [], []
    while sim.time < 80.0:
        control(sim)
        sim.step()
        if sim.time > 50.0:
            pull.append(line.tension[-1])
            held.append(-line.end_force[0][0])
            heave.append(buoy.com[2] - surface(sim.time))
            stretch, lowest = max(stretch, line.stretch), min(lowest, line.position[:, 2].min())
    side, push = np.mean(held), 400.0 * CURRENT**2
    print(f"line pulls {min(pull) / 1e3:.2f} to {max(pull) / 1e3:.2f} kN; stretch {stretch:.0e}")
    print(f"its anchor holds {side:.0f} N sideways on average; the current alone pushes with {push:.0f} N")
    print(f"buoy {buoy.com[0]:.1f} m out, within {np.ptp(heave):.2f} m of the waves; the line down to {lowest:.2f} m")
    assert stretch < 1e-6 and min(pull) > 1e3 and abs(side / push - 1) < 0.15 and 9 < buoy.com[0] < 12 and lowest > -DEPTH - 0.1


if __name__ == "__main__":
    check(make())
