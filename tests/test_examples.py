"""Every example runs its own check without a warning about its steps, and the energy of the passive ones stays."""

import pathlib
import warnings

import pytest
from conftest import EXAMPLES, example_by, load_example

import sharnir as sh

NAMES = sorted(p.stem for p in pathlib.Path(EXAMPLES).glob("*.py"))
LONG = (
    "excavator_wall",
    "thousand_links",
    "trailer_hitch",
    "mooring_line",
    "twisted_ring",
    "mixed_heap",
    "mobile_crane",
    "shoes",
)  # what they show is tested on smaller scenes, too
PASSIVE = ("pendulum", "double_pendulum", "chain", "spinning_top", "tumbling_body", "four_bar")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in NAMES])
def test_example_checks_itself(name):
    module = load_example(name)
    assert module.__doc__ and len(pathlib.Path(module.__file__).read_text().splitlines()) <= 66, "one screen"
    with warnings.catch_warnings():
        warnings.simplefilter("error", sh.StepWarning)
        try:
            sim = module.make()
        except SystemExit as missing:  # a package that not everybody has
            pytest.skip(str(missing))
        module.check(sim)


def energy_over_two_seconds(name, dt, solver):
    sim = example_by(name, dt, solver)
    start = sim.energy()
    above, off, scale = 0.0, 0.0, max(abs(start.kinetic), 1e-9)
    for _ in range(2000):
        sim.step(round(1e-3 / dt))
        now = sim.energy()
        change = now.total - start.total
        above, off, scale = max(above, change), max(off, abs(change)), max(scale, now.kinetic)
    return above / scale, change / scale, off / scale


@pytest.mark.parametrize("name", PASSIVE)
def test_energy_is_kept(name):
    *_, off = energy_over_two_seconds(name, 1e-3, "direct")
    print(f"{name}, direct, 2 s at 1 ms: energy within {off:.1e} of its scale")
    assert off < 3e-12


@pytest.mark.parametrize("name", PASSIVE)
def test_energy_by_sweeps_stays(name):
    steps = (1e-3, 5e-4, 2.5e-4)
    rows = [energy_over_two_seconds(name, dt, "sequential")[:2] for dt in steps]
    for dt, (above, change) in zip(steps, rows, strict=True):
        print(
            f"{name:16s} dt = {dt * 1e3:5.2f} ms   above the start at most {100 * above:.4f} %, after 2 s {100 * change:+.4f} %"
        )
    assert all(above < 6e-5 for above, _ in rows)
    changes = [abs(change) for _, change in rows]
    assert changes[2] <= 0.27 * changes[1] or changes[2] < 1e-6
    assert changes[1] <= 0.27 * changes[0] or changes[1] < 1e-6
