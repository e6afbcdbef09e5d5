"""MF-4 climbs stairs: steps of 17 cm at 30°, on four track units that pitch.

It comes with its front units raised, lays them on the edges, stretches to get over the last one, and stands level at the top.
A track is one belt around wheels: every edge that touches it acts on the unit and, along the belt, on its sprocket.
"""

import math

import sharnir as sh
from sharnir.geometry import terrain
from sharnir.machine_models.mf4 import Mf4

RISE, TREAD, STEPS, FOLLOW = 0.17, 0.17 / math.tan(math.radians(30.0)), 5, "mf4"
START, END, ROBOT = 1.2, 1.2 + STEPS * TREAD, Mf4()  # m along x, of the stairs


def make(dt: float = 4e-3) -> sh.Simulation:
    scene = sh.Scene()
    rough = sh.Material(friction=0.9)
    scene.add_ground(material=rough)
    flight = terrain.stairs(rise=RISE, tread=TREAD, count=STEPS, width=1.6)
    landing = sh.Box(3.0, 1.6, STEPS * RISE, position=(STEPS * TREAD + 1.5, 0, 0.5 * STEPS * RISE))
    whole = sh.Compound(flight, landing)
    scene.add_body("stairs", whole, motion="fixed", position=(START, 0, 0), material=rough, color="#b8b2a7")
    ROBOT.add(scene)
    for given in ROBOT.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt, solver="sequential", tolerances=sh.Tolerances(iterations=30))


def control(sim: sh.Simulation) -> None:
    """What an operator does, by how far the robot has come."""
    inputs, x = sim.inputs, float(sim.body("mf4").position[0])
    front, rear = -0.7, 0.0
    for at, *pitch in ((0.75, 0.12, 0.35), (1.6, 0.12, 0.12), (1.95, 0.5, 0.5), (END + 0.45, 0.1, 0.1)):
        if x > at:
            front, rear = pitch
    inputs["front"], inputs["rear"] = front, rear
    inputs["throttle"] = 0.4 if x < END + 0.8 else 0.0


def check(sim: sh.Simulation) -> None:
    steepest = 0.0
    while sim.time < 12.0:
        control(sim)
        sim.step()
        steepest = max(steepest, -2 * math.degrees(math.asin(float(sim.body("mf4").rotation[1]))))
    x, y, z = sim.body("mf4").position
    print(f"climbed to {z - 0.19:.4f} m ({STEPS} × {RISE} m), {1e3 * y:+.2f} mm off its line, pitched up to {steepest:.1f}°")
    assert abs(z - 0.19 - STEPS * RISE) < 2e-3 and abs(y) < 0.02 and x > END and 25 < steepest < 40


if __name__ == "__main__":
    check(make())
