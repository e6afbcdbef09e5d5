"""High-order integration of trees: published numbers, conserved energy, the order of every method."""

import numpy as np
import pytest

import sharnir as sh
from sharnir import dynamics as dyn
from sharnir.spatial import quat_exp, quat_rotate

TIPS = {  # chain of n rods, 1 m and 10 kg in all: start angle, tips at t = 0.5, 1, 2 s
    1: (0.0, [(-0.0902292086, -0.9959210259), (-0.9999665881, -0.0081745177), (0.9994654895, -0.0326915167)]),
    2: (0.0, [(-0.2139767664, -0.9369273644), (-0.9644093773, 0.0420495857), (0.8079119781, -0.4034852198)]),
    5: (0.0, [(-0.2574823505, -0.8908970006), (-0.8845809501, -0.1080054547), (0.5296549575, -0.1362615518)]),
    10: (-1.0, [(-0.1810730977, -0.9820486867), (-0.4830940856, -0.8744734575), (0.2838077214, -0.9556975713)]),
}


def rods(n, angle):
    scene = sh.Scene(gravity=(0, -9.81, 0))
    l, m, last = 1.0 / n, 10.0 / n, "world"
    along = np.array([np.cos(angle), np.sin(angle), 0])
    for i in range(n):
        inertia = (m * l**2 / 200, m * l**2 / 12, m * l**2 / 12)
        scene.add_body(
            f"r{i}", mass=m, inertia=inertia, position=(i + 0.5) * l * along, rotation=quat_exp(np.array([0, 0, angle]))
        )
        scene.add_joint(f"h{i}", sh.Revolute("z"), last, f"r{i}", position=i * l * along)
        last = f"r{i}"
    return scene.build()


def tips(model, q):
    n = len(model.joint_kinds)
    end = dyn.forward_kinematics(model, q)[f"r{n - 1}"]
    return end["com"] + quat_rotate(end["rotation"], np.broadcast_to([0.5 / n, 0, 0], end["com"].shape))


def energy(model, q, v):
    M = dyn.mass_matrix(model, q)
    moving = dyn.forward_kinematics(model, q)
    mass = model.bodies.mass.numpy()
    high = sum(-mass[b] * moving[n]["com"] @ np.array(model.gravity) for n, b in model.body_names.items())
    return 0.5 * np.einsum("ni,nij,nj->n", v, M, v) + high


@pytest.mark.parametrize("method", ["dop853", "rk45"])
@pytest.mark.parametrize("n", TIPS)
def test_chain_tips(n, method):
    angle, exact = TIPS[n]
    model = rods(n, angle)
    path = dyn.integrate(model, np.zeros(n), np.zeros(n), [0.5, 1.0, 2.0], rtol=1e-10, atol=1e-10, method=method)
    error = np.abs(tips(model, path.q)[:, :2] - exact).max()
    print(f"{n} rods by {method}: tips within {error:.1e} m in {path.steps} steps, {path.rejected} rejected")
    assert error < 1e-8


def test_energy_of_the_paper_chain():
    model = rods(10, -1.0)
    path = dyn.integrate(model, np.zeros(10), np.zeros(10), np.linspace(0.1, 10, 100), rtol=1e-10, atol=1e-10)
    e = energy(model, path.q, path.v)
    start = energy(model, np.zeros((1, 10)), np.zeros((1, 10)))[0]
    drift = np.abs(e - start).max() / 98.1
    print(f"10 rods, 10 s: energy within {drift:.1e} of its scale in {path.steps} steps")
    assert drift < 1e-9


@pytest.mark.parametrize(
    ("method", "order", "steps"), [("rk4", 4, (0.02, 0.01)), ("rk45", 5, (0.04, 0.02)), ("dop853", 8, (0.04, 0.02))]
)
def test_the_order_of_every_method(method, order, steps):
    model = rods(2, 0.0)
    exact = dyn.integrate(model, np.zeros(2), np.zeros(2), 0.4, rtol=1e-13, atol=1e-13).q[-1]
    errors = [
        np.abs(dyn.integrate(model, np.zeros(2), np.zeros(2), 0.4, method=method, step=h).q[-1] - exact).max() for h in steps
    ]
    found = np.log2(errors[0] / errors[1])
    print(f"{method}: errors {errors[0]:.1e}, {errors[1]:.1e}: order {found:.2f}")
    assert found > order - 0.6


def test_a_floating_tree_of_balls_keeps_energy_and_momentum():
    rng = np.random.default_rng(1)
    scene = sh.Scene(gravity=(0, 0, 0))
    for i in range(4):
        scene.add_body(f"b{i}", sh.Box(0.2, 0.1, 0.05), mass=1.0, position=(0.2 * i, 0, 0))
        if i:
            scene.add_joint(f"j{i}", sh.Spherical(), f"b{i - 1}", f"b{i}", position=(0.2 * i - 0.1, 0, 0))
    model = scene.build()
    t = dyn.links(model)
    q, v = dyn.neutral(t), rng.normal(size=t.nv)
    path = dyn.integrate(t, q, v, [1.0, 5.0], rtol=1e-11, atol=1e-11)
    before, after = energy(model, q[None], v[None])[0], energy(model, path.q, path.v)
    moving = [dyn.forward_kinematics(t, x, y) for x, y in ((q, v), (path.q[-1], path.v[-1]))]
    momenta = [sum(m[f"b{i}"]["velocity"] for i in range(4)) for m in moving]
    print(f"energy {np.abs(after / before - 1).max():.1e}, momentum {np.abs(momenta[1] - momenta[0]).max():.1e}")
    assert np.abs(after / before - 1).max() < 1e-9 and np.allclose(momenta[0], momenta[1], atol=1e-9)


def test_springs_dampers_and_forces_act():
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("m", sh.Box(0.1, 0.1, 0.1), mass=2.0)
    scene.add_joint("j", sh.Prismatic("x", spring=(50.0, 0.1), damping=1.0), scene.world, "m", position=(0, 0, 0))
    model = scene.build()
    times = np.linspace(0.1, 3, 30)
    path = dyn.integrate(model, [0.0], [0.0], times, tau=[4.0], rtol=1e-11, atol=1e-11)
    rest, decay = 0.1 + 4.0 / 50, 1.0 / 4
    omega = np.sqrt(25 - decay**2)
    exact = rest - rest * np.exp(-decay * times) * (np.cos(omega * times) + decay / omega * np.sin(omega * times))
    error = np.abs(path.q[:, 0] - exact).max()
    print(f"damped oscillator within {error:.1e} m")
    assert error < 1e-9


def test_many_states_at_once_and_mistakes():
    model = rods(2, 0.0)
    q = np.linspace(0, 1, 5)[:, None] * [1.0, 0.5]
    many = dyn.integrate(model, q, np.zeros((5, 2)), [0.3, 0.6])
    one = dyn.integrate(model, q[3], np.zeros(2), [0.3, 0.6])
    assert many.q.shape == (5, 2, 2) and np.array_equal(many.q[3], one.q)
    for options, word in ((dict(method="euler"), "method"), (dict(method="rk4"), "needs step"), (dict(rtol=-1.0), "rtol")):
        with pytest.raises(sh.SimulationError, match=word):
            dyn.integrate(model, q[0], np.zeros(2), 1.0, **options)
    with pytest.raises(sh.SimulationError, match="times rise"):
        dyn.integrate(model, q[0], np.zeros(2), [1.0, 0.5])


def test_a_simulation_goes_on_by_integration(example):
    sim = example("double_pendulum").make()
    path = sim.integrate(1.0, rtol=1e-11, atol=1e-11, times=[0.25, 0.5])
    assert path.q.shape == (2, 2) and sim.time == 1.0
    lower = sim.body("lower")
    tip = lower.position + quat_rotate(lower.rotation, np.array([0.25, 0, 0]))
    error = np.abs(tip - [-0.9644093773, 0, 0.0420495857]).max()
    print(f"double pendulum at t = 1 s: tip within {error:.1e} m, gap {sim.gaps().max():.1e}")
    assert error < 1e-8 and sim.gaps().max() < 1e-12
    sim.step(10)  # and on in real time
    assert sim.time == pytest.approx(1.01)
    floating = example("tumbling_body").make()
    floating.integrate(10.0, rtol=1e-12, atol=1e-12)
    body = floating.body("wing nut")
    omega = quat_rotate(body.rotation * [-1, -1, -1, 1], body.spin)
    assert np.allclose(omega, (-0.874573437891, 0.484996187341, 0.505001220548), atol=1e-9)
    with pytest.raises(sh.SceneError, match="joint 'hinge' has dry friction"):
        example("swinging_door").make().integrate(1.0)
    with pytest.raises(sh.SimulationError, match="a time after"):
        sim.integrate(0.5)
