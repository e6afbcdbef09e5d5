"""Contact in joint coordinates in single precision, on trial (`SHARNIR_JOINT_CONTACT`); precision is chosen at import."""

import os
import subprocess
import sys

import pytest

BOX = """
import numpy as np, sharnir as sh
scene = sh.Scene()
scene.add_ground(material=sh.Material(friction=0.5))
scene.add_body("box", sh.Box(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.15), material=sh.Material(friction=0.5))
sim = sh.Simulation(scene, 1e-3, solver="direct", sleep=False)
sim.run(0.3)
force = np.abs(np.asarray(sim.contacts().force)[:, 2].sum())
print(int(sim.solver._lean), abs(sim.body("box").position[2] - 0.1), abs(force - 9.81))
"""


@pytest.mark.slow
def test_a_box_lands_and_rests():
    env = {**os.environ, "SHARNIR_PRECISION": "single", "SHARNIR_JOINT_CONTACT": "1"}
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", BOX], env=env, capture_output=True, text=True, check=True).stdout
    lean, off, unlike = (float(x) for x in out.split())
    print(f"off by {off:.1e} m, force by {unlike:.1e} N")
    assert lean == 1 and off < 1e-5 and unlike < 1e-3 * 9.81
