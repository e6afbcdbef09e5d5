"""Tensors of PyTorch in place of NumPy arrays: they stand on the simulation's memory, and the motion is the same to the bit."""

import numpy as np
import pytest

import sharnir as sh

pytest.importorskip("gymnasium", reason='the extra is missing: pip install "sharnir[learn]"')
torch = pytest.importorskip("torch", reason='the extra is missing: pip install "sharnir[learn]"')
WORLDS = 16


@pytest.mark.parametrize("name", ["CartPole", "Crane"])
def test_tensors_stand_on_the_simulations_memory(name):
    numbers, tensors = (sh.gym.VectorEnv(name, WORLDS, arrays=kind) for kind in ("numpy", "torch"))
    seen = tensors.reset(seed=1)[0]
    assert np.array_equal(numbers.reset(seed=1)[0], seen.numpy()) and seen.dtype == torch.float32
    w, state, random = tensors.worlds, tensors.sim.state, np.random.default_rng(2)
    body, k = ("pole" if name == "CartPole" else "load"), tensors.sim.model.body_names
    assert w.q.data_ptr() == state.q.ptr and w.qd.data_ptr() == state.qd.ptr
    assert w.position(body).data_ptr() == state.position.ptr + k[body] * state.position.strides[0]
    kept, ends = w.q, 0
    for _ in range(50):
        if name == "CartPole":
            action = random.integers(2, size=WORLDS)
        else:
            action = random.uniform(-1, 1, (WORLDS, 1)).astype(np.float32)
        theirs, ours = tensors.step(torch.from_numpy(action)), numbers.step(action)
        for one, two in zip(theirs[:4], ours[:4], strict=True):
            assert isinstance(one, torch.Tensor) and np.array_equal(one.numpy(), two)
        ends += int(theirs[2].sum())
    assert np.array_equal(kept.numpy(), numbers.sim.q)  # taken once, it follows the steps
    print(f"{name}: 50 decisions in {WORLDS} worlds equal to the bit, {ends} episodes ended; tensors on the state's own memory")


def test_bad_tensors_are_refused():
    env = sh.gym.VectorEnv("CartPole", WORLDS, arrays="torch")
    env.reset(seed=1)
    for action in (torch.ones(3, dtype=torch.int64), torch.full((WORLDS,), 2), torch.full((WORLDS,), 0.5)):
        with pytest.raises(sh.SimulationError, match=f"an action is {WORLDS} whole numbers from 0 to 1"):
            env.step(action)
    with pytest.raises(sh.SimulationError, match="arrays is one of 'numpy', 'torch' or None, got 'jax'"):
        sh.gym.VectorEnv("CartPole", 2, arrays="jax")


def test_autograd_goes_back_through_a_motion():
    scene = sh.Scene()
    scene.add_body("bob", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, -0.5))
    scene.add_joint("hinge", sh.Revolute("y", damping=0.1), scene.world, "bob", position=(0, 0, 0))
    sim = sh.Simulation(scene, 5e-3, solver="direct", sleep=False)
    sim.q = [0.5]

    def cost(controls, mass):
        made = sh.rollout(sim, controls, parameters={"body/bob.mass": mass})
        return (made.q**2).sum() + (made.v[-1] ** 2).sum()

    controls = torch.full((40, 1), 0.1, dtype=torch.float64, requires_grad=True)
    mass = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cost, (controls, mass), eps=1e-4, atol=1e-7, rtol=1e-6)
