"""An elevator: a cable over a traction sheave carries the car on one side and a counterweight on the other, and grips the sheave.

The motor has a curve of torque over speed and a battery that sags; as the counterweight carries most of the car, it lifts little.
"""

import numpy as np

import sharnir as sh

CAR, COUNTER, R, UP, TOP, G = 900.0, 1000.0, 0.3, 9.0, 14.0, 9.81  # kg, kg, m, m, m, m/s²


def make(dt: float = 5e-3) -> sh.Simulation:
    scene = sh.Scene()
    battery = sh.Battery(400.0, resistance=0.2, name="supply")
    motor = sh.Motor(
        curve=[(0, 90), (150, 90), (300, 20)], gear_ratio=25.0, efficiency=0.85, battery=battery,
        losses=([0, 300], [0, 90], [[0.6, 0.7], [0.85, 0.92]]),
    )  # fmt: skip
    turn = (np.sin(np.pi / 4), 0, 0, np.cos(np.pi / 4))  # z of the cylinder along −y
    scene.add_body("sheave", sh.Cylinder(R, 0.2), mass=150.0, position=(0, 0, TOP), rotation=turn, color="#f2b134")
    scene.add_joint("traction", sh.Revolute("y", drive=motor, friction=0.0), scene.world, "sheave", position=(0, 0, TOP))
    scene.add_body("car", sh.Box(0.5, 1.4, 2.2), mass=CAR, position=(-R, 0, 1.1), color="#4e79a7")
    scene.add_body("counterweight", sh.Box(0.3, 1.0, 1.6), mass=COUNTER, position=(R, 0, 11.0), color="#5b6470")
    for name, x in (("car", -R), ("counterweight", R)):
        scene.add_joint(f"{name} rail", sh.Prismatic("z", limit=(-11.0, 11.0)), scene.world, name, position=(x, 0, 1.0))
    path = [("car", (0, 0, 1.1)), sh.Sheave("sheave", R, axis="-z", grips=True), ("counterweight", (0, 0, 0.8))]
    scene.add_cable("hoist", path)
    return sh.Simulation(scene, dt)


def wanted(t: float) -> tuple[float, float, float]:
    """Height of the car above its start, its speed and acceleration: from floor to floor in 10 s."""
    s = min(t / 10.0, 1.0)
    return (
        UP * (s - np.sin(2 * np.pi * s) / 2 / np.pi),
        UP / 10 * (1 - np.cos(2 * np.pi * s)),
        UP / 50 * np.pi * np.sin(2 * np.pi * s),
    )


def control(sim: sh.Simulation) -> None:
    """The motor's command: what the imbalance and the masses ask for, and what is still off."""
    z, v, a = wanted(sim.time)
    car = sim.body("car")
    force = (CAR - COUNTER) * G + 2000.0 * a + 2e4 * (z - car.position[2] + 1.1) + 2e4 * (v - car.velocity[2])
    sim.joint("traction").drive.command = float(np.clip(force * R / (25.0 * 90.0 * 0.85), -1, 1))


def check(sim: sh.Simulation) -> None:
    rope, drive, off, work, sag = sim.cable("hoist"), sim.joint("traction").drive, 0.0, 0.0, 400.0
    while sim.time < 12.0:
        control(sim)
        sim.step()
        off = max(off, abs(sim.body("car").position[2] - 1.1 - wanted(sim.time)[0]))
        work, sag = work + drive.power * sim.dt, min(sag, drive.battery_voltage)
    left, right = rope.tension
    up, needs = sim.body("car").position[2] - 1.1, CAR * G * UP / 1e3
    print(f"car up {up:.4f} m, off its way by at most {1000 * off:.1f} mm; cable slack {rope.slack:.0e} m")
    print(f"tensions {left:.1f}, {right:.1f} N; {work / 1e3:.1f} kJ taken, the car alone needs {needs:.0f} kJ; {sag:.2f} V")
    assert off < 0.05 and abs(rope.slack) < 1e-9 and abs(left / (CAR * G) - 1) < 1e-2 and abs(right / (COUNTER * G) - 1) < 1e-2
    assert abs(work) < 0.3 * CAR * G * UP and sag < 400.0


if __name__ == "__main__":
    check(make())
