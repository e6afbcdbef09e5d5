"""The precision is that of a process: chosen by its first call, refused by name later."""

import os
import subprocess
import sys

import pytest

import sharnir as sh
from sharnir.core.types import PRECISION

OTHER = "single" if PRECISION == "double" else "double"


def told(program: str) -> str:
    """What a process of its own prints, without a precision in its environment."""
    env = {word: value for word, value in os.environ.items() if word != "SHARNIR_PRECISION"}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_the_first_call_chooses():
    program = "import sharnir as sh; sh.set_precision('single'); s = sh.Scene(); s.add_body('b', sh.Sphere(0.1))"
    program += "; print(s.build().bodies.mass.dtype)"
    assert "float32" in told(program)
    assert "float64" in told(program.replace("sh.set_precision('single')", "sh.set_precision('double')"))


def test_another_precision_is_refused_by_name():
    scene = sh.Scene()
    scene.add_body("b", sh.Sphere(0.1))
    words = rf"precision is '{OTHER}', but this process computes in {PRECISION} precision; call sh.set_precision"
    with pytest.raises(sh.SimulationError, match=f"Simulation: {words}"):
        sh.Simulation(scene, 0.001, precision=OTHER)
    with pytest.raises(sh.SimulationError, match=f"set_precision: {words}"):
        sh.set_precision(OTHER)
    with pytest.raises(sh.SimulationError, match="precision is 'single' or 'double', got 'half'"):
        sh.set_precision("half")
    sh.set_precision(PRECISION)
    sh.Simulation(scene, 0.001, precision=PRECISION).step()
