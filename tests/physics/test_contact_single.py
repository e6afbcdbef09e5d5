"""Contact in single precision: what lands rests where it should, and all steps converge; precision is chosen at import."""

import json
import os
import subprocess
import sys

import pytest

LANDINGS = """
import json, numpy as np, sharnir as sh

rough, found = sh.Material(friction=0.5), {}

def land(name, places, links=False, seconds=0.3):
    scene = sh.Scene()
    scene.add_ground(material=rough)
    for k, place in enumerate(places):
        turns = (0, (1 - k) * links, 0)  # rad/s
        scene.add_body(f"box {k}", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=place, angular_velocity=turns, material=rough)
        if links and k:
            scene.add_joint(f"hinge {k}", sh.Revolute("y"), f"box {k - 1}", f"box {k}", position=(0.3 * k - 0.15, 0, 0.3))
    sim = sh.Simulation(scene, 1e-3, solver="direct", sleep=False)
    height, missed, gain = 9.81 * sum(z for _, _, z in places), 0, 0.0
    start = sim.energy().total
    for _ in range(int(seconds / 1e-3)):
        missed += not sim.step().converged
        gain = max(gain, (sim.energy().total - start) / height)
    points, bodies = sim.contacts(), [sim.body(f"box {k}") for k in range(len(places))]
    onto = [n for n, (a, b) in enumerate(zip(points.body_a, points.body_b)) if not (a.startswith("box") and b.startswith("box"))]
    carried = abs(float(np.asarray(points.force, float)[onto, 2].sum())) / (9.81 * len(places))
    wanted = [0.1 + 0.2 * k * (not links) for k in range(len(places))]
    off = max(abs(body.position[2] - z) for body, z in zip(bodies, wanted))
    found[name] = [int(sim.solver._lean), missed, gain, off, abs(carried - 1.0)]

land("box", [(0, 0, 0.15)])
land("stack", [(0, 0, 0.101 + 0.201 * k) for k in range(3)])
land("chain", [(0.3 * k, 0, 0.3) for k in range(3)], links=True, seconds=1.0)
print(json.dumps(found))
"""
BOUNDS = {"box": (1e-5, 1e-3), "stack": (5e-5, 1e-3), "chain": (5e-5, 1e-3)}
"""m, since overlaps up to 1e-4 of the scene's length are left; of the weight, in one step."""


@pytest.mark.slow
def test_what_lands_comes_to_rest():
    env = {**os.environ, "SHARNIR_PRECISION": "single"}
    command = [sys.executable, "-W", "ignore", "-c", LANDINGS]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    for name, (lean, missed, gain, off, unlike) in json.loads(out.splitlines()[-1]).items():
        print(f"{name}: {missed} steps not converged, gains {gain:.1e} of its energy, off by {off:.1e} m, force by {unlike:.1e}")
        assert lean == 1, name
        assert missed == 0, name
        assert gain < 1e-5 and off < BOUNDS[name][0] and unlike < BOUNDS[name][1], name
