"""Golden runs: short motions of many scenes with every solver, held against stored numbers.

They are the net under a change that should not touch any motion. Other processors round otherwise: the numbers agree to 1e-9
everywhere, and where no rounding should be touched to 1e-12 on one machine (SHARNIR_GOLDEN=1e-12 in the environment). A change
that should touch a motion writes them anew: SHARNIR_GOLDEN=write.
"""

import json
import os
import pathlib
import warnings

import numpy as np
import pytest
from conftest import load_example
from mechanisms import SOLVERS, any_case

import sharnir as sh

STORED = pathlib.Path(__file__).parent.parent / "data" / "golden.json"
STEPS = 40
ASKED = os.environ.get("SHARNIR_GOLDEN", "1e-9")
JOINTED = (
    "branching_tree", "cart_flywheel", "chain", "crane_arm", "dc_motor", "double_pendulum", "dry_pendulum", "four_bar",
    "friction_arm", "linkages", "pendulum", "satellite", "slider_crank", "spinning_top", "stick_slip", "swinging_door",
    "trailer_hitch", "ur5_path",
)  # fmt: skip
ROPES = ("catenary", "mooring_line", "twisted_ring", "tow_rope", "drone_sling")
SEEDS = tuple(range(1000, 1030))


def runs():
    """Names of all runs."""
    out = [f"{name}/{how}" for name in JOINTED for how in SOLVERS]
    out += [f"{name}/own" for name in ROPES]
    return out + [f"random {seed}/own" for seed in SEEDS]


def simulation(run):
    name, how = run.split("/")
    if name.startswith("random "):
        return any_case(int(name.split()[1])).simulation(on_divergence="ignore")
    sim = load_example(name).make()
    return sim if how == "own" else sh.Simulation(sim.model, sim.dt, on_divergence="ignore", **SOLVERS[how])


def numbers(run):
    """Where a run ends: sums of all positions, rotations and velocities, each with a weight of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = simulation(run)
        try:
            sim.step(STEPS)
        except sh.SimulationError:
            return [float(round(sim.time / sim.dt))]
        state = sim.state
        out = [state.position, state.rotation, state.velocity]
        if sim.model.ropes is not None:
            out += [sim.state.rope.position, sim.state.rope.velocity]
    return [float(np.sin(1.0 + np.arange(x.numpy().size)) @ x.numpy().astype(float).ravel()) for x in out]


@pytest.mark.parametrize("run", runs())
def test_golden_run(run):
    stored, found = json.loads(STORED.read_text()), numbers(run)
    if ASKED == "write":
        STORED.write_text(json.dumps(stored | {run: found}, indent=0) + "\n")
        return
    wanted = stored[run]
    assert len(found) == len(wanted), "a step failed that was made, or was made that failed"
    off = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, wanted, strict=True))
    print(f"{run}: {off:.1e} off")
    assert off <= float(ASKED)
