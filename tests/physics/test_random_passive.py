"""Random mechanisms on which nothing acts that gives energy, without contact, with default settings.

Direct makes every step of every one of them, and each result is right. Sequential may fail, but says so: a wrong result is
reported, and no right one is stopped. Right and wrong are judged here from energy, momenta and joint gaps, not by the guard.
"""

import warnings

import numpy as np
import pytest
from mechanisms import passive_case

import sharnir as sh
from sharnir.engine.base import sizes
from sharnir.model.model import DYNAMIC

STEPS = 120
GAINED = {"direct": 1e-6, "sequential": 0.02}  # of the energy that moves: more than that, from nothing, is wrong
OPEN = {"direct": 1e-8, "sequential": 1e-2}  # of the size of the smallest body on a joint
SETTLES = {"direct": 1, "sequential": 3}  # steps until velocities that contradict the joints at the start are gone
KEPT = 1e-9  # of the momenta of a floating mechanism, direct


def floats(seed):
    return seed % 5 == 0


def case_of(seed, solver):
    """Masses over one decade or three, a fifth of them floating."""
    return passive_case(seed, solver, decades=(1, 1, 3)[seed % 3], floating=floats(seed))


def momenta(sim):
    m = sim.momentum()
    return np.concatenate([m.linear, m.angular])


def quiet(case, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.SceneWarning)  # velocities at random contradict joints
        return case.simulation(**options)


def fall_of_a_step(sim):
    """M (g Δt)² of all that moves, J."""
    mass = sim.model.bodies.mass.numpy()[sim.model.bodies.motion.numpy() == DYNAMIC, 0].sum()
    return mass * np.sum((np.asarray(sim.gravity) * sim.dt) ** 2)


def judged(case, floating=False, steps=STEPS):
    """What is wrong with a motion that the guard does not stop, or None.

    Energies are held against that of the motion, and of a fall during one step, M (g Δt)²: what moves less is at rest, and its
    energy (1e-16 J) is no measure.
    """
    sim = quiet(case, on_divergence="ignore")
    least = min(sizes(sim.model)[0], default=1.0)
    try:
        for _ in range(SETTLES[case.solver]):
            sim.step()  # takes off what contradicts the joints
        first, top, scale = momenta(sim), sim.energy().total, fall_of_a_step(sim)
        for _ in range(steps):
            sim.step()
            energy = sim.energy()
            scale = max(scale, energy.kinetic)
            if not np.isfinite(energy.total):
                return "not finite"
            if energy.total > top + GAINED[case.solver] * scale + 1e-12:
                return f"gained {energy.total - top:.2e} J beside {scale:.2e} J"
            if np.max(sim.constraint_error(), initial=0.0) > OPEN[case.solver] * least:
                return f"joints open by {np.max(sim.constraint_error()):.1e}"
    except sh.SimulationError as error:
        return str(error)
    lost = np.linalg.norm(momenta(sim) - first) / np.linalg.norm(first)
    return f"momenta off by {lost:.1e}" if floating and lost > KEPT else None


def reported(case, steps=STEPS):
    """(whether the motion was stopped, whether anything was said of it)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.StepWarning)
        sim = quiet(case)
        try:
            for _ in range(steps + 1):
                sim.step()
        except sh.SimulationError:
            return True, True
        return False, sim.health().not_converged > 0


def check_direct(seed):
    case = case_of(seed, "direct")
    wrong = judged(case, floats(seed))
    assert wrong is None, f"seed {seed}: {wrong}"
    assert not reported(case)[0], f"seed {seed}: a right motion was stopped"


def check_sequential(seed):
    case = case_of(seed, "sequential")
    wrong, (stopped, said) = judged(case), reported(case)
    assert said or wrong is None, f"seed {seed}: {wrong}, and nothing was said"
    assert wrong is not None or not stopped, f"seed {seed}: a right motion was stopped"


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_some_random_mechanisms(first):
    for seed in range(first, first + 4):
        check_direct(seed)
        check_sequential(seed)


def test_a_mechanism_that_cannot_move_is_met():
    """All that its passes change is rounding, which its loop amplifies."""
    check_direct(199)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 50))
@pytest.mark.parametrize("check", [check_direct, check_sequential])
def test_a_thousand_random_mechanisms(check, first):
    for seed in range(first, first + 50):
        check(seed)
