"""An excavator lowers its arm, swings its bucket through a wall of boxes, and comes to rest: the wall is down, it has not moved.

Boom and stick are on hydraulic rams, each a closed loop of three hinges and a slide; tracks and boxes stand by friction.
"""

import numpy as np

import sharnir as sh
from sharnir.machine_models.excavator import Excavator

DIGGER = Excavator(boom=np.radians(35.0), stick=np.radians(75.0))
PLAN = [(1.0, {"boom": -0.8}), (1.8, {}), (5.5, {"slew": 1.0}), (7.0, {})]  # until when (s), what is held
SIDE, BOXES = 0.7, [(i, row) for row in range(2) for i in range(2)]


def make(dt: float = 2e-2) -> sh.Simulation:
    scene = sh.Scene()
    scene.add_ground()
    DIGGER.add(scene)
    out, turn = 6.4, np.radians(40.0)
    for i, row in BOXES:
        r = out - 0.5 + (SIDE + 0.02) * i
        place = (r * np.cos(turn), r * np.sin(turn), SIDE * (row + 0.5))
        about = (0, 0, np.sin(turn / 2), np.cos(turn / 2))
        box = {"mass": 120.0, "material": sh.Material(friction=0.5), "color": "#e15759" if (i + row) % 2 else "#4e79a7"}
        scene.add_body(f"box {i} {row}", sh.Box(SIDE, SIDE, SIDE), position=place, rotation=about, **box)
    for given in DIGGER.inputs():
        scene.add_input(given)
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """The operator's plan."""
    held = next((what for until, what in PLAN if sim.time < until), {})
    for name in sim.inputs:
        sim.inputs[name] = held.get(name, 0.0)


def check(sim: sh.Simulation) -> None:
    start = {name: sim.body(name).position for name in sim.model.body_names}
    while sim.time < 7.0:
        control(sim)
        sim.step()
    moved = [np.linalg.norm(sim.body(f"box {i} {row}").position - start[f"box {i} {row}"]) for i, row in BOXES]
    own = np.linalg.norm(sim.body("excavator undercarriage").position - start["excavator undercarriage"])
    swung = np.degrees(sim.joint("excavator slew").position)
    print(f"swung by {swung:.1f}°; boxes moved by {min(moved):.2f} to {max(moved):.2f} m, the excavator by {1000 * own:.2f} mm")
    assert swung > 60 and max(moved) > 1.0 and own < 0.1


if __name__ == "__main__":
    check(make())
