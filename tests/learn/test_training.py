"""The training example learns: a short run improves the return, the whole reaches what it states."""

import ast
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason='the extra is missing: pip install "sharnir[learn]"')


@pytest.fixture(scope="module")
def ppo():
    path = Path(__file__).parents[2] / "examples" / "learning" / "ppo.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 200
    spec = importlib.util.spec_from_file_location("ppo", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_are_those_of_differences(ppo):
    random = np.random.default_rng(0)
    net, x, slope = ppo.Net([3, 5, 2], random, 1.0), random.normal(size=(7, 3)), random.normal(size=(7, 2))
    net.forward(x)
    exact, worst = net.backward(slope), 0.0
    for weights, gradient in zip(net.weights, exact, strict=True):
        at = tuple(0 for _ in weights.shape)
        ends = []
        for h in (1e-6, -2e-6):
            weights[at] += h
            ends.append(float((net.forward(x) * slope).sum()))
        weights[at] += 1e-6
        worst = max(worst, abs((ends[0] - ends[1]) / 2e-6 - gradient[at]))
    print(f"largest difference of a gradient: {worst:.1e}; tolerance 1e-7")
    assert worst < 1e-7


@pytest.mark.slow
def test_a_short_run_improves_the_return(ppo):
    code = "import ppo; print(ppo.train('CartPole', worlds=32, horizon=32, rounds=6, parts=4, tell=False)[1])"
    words = [sys.executable, "-c", code]  # a process of its own, or this one's threads of BLAS would stand in each other's way
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(ppo.__file__).parent)
    curve = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    first, last = np.mean([r for _, r in curve[:2]]), curve[-1][1]
    print(f"return {first:.1f} at first, {last:.1f} after {curve[-1][0]} decisions; at least 1.5 times")
    assert last > 1.5 * first


@pytest.mark.slow
def test_the_whole_run_reaches_its_stated_reward(ppo):
    began, cpu = time.perf_counter(), time.process_time()
    policy, curve = ppo.train("CartPole", tell=False)
    took, worked, reached = time.perf_counter() - began, time.process_time() - cpu, ppo.evaluate(policy, "CartPole")
    print(f"{reached:.1f} of 500 after {curve[-1][0]} decisions, {took:.0f} s ({worked:.0f} s of CPU time); stated: 475 in 600 s")
    assert reached >= ppo.SOLVED["CartPole"] and took < 600.0
