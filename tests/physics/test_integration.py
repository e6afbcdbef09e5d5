"""High-order integration of trees: published numbers, conserved energy, orders of methods, motion inside steps, events."""

import numpy as np
import pytest

import sharnir as sh
from sharnir import dynamics as dyn
from sharnir.core.spatial import quat_exp, quat_rotate

TIPS = {  # chain of n rods, 1 m and 10 kg in all: start angle, tips at t = 0.5, 1, 2 s
    1: (0.0, [(-0.0902292086, -0.9959210259), (-0.9999665881, -0.0081745177), (0.9994654895, -0.0326915167)]),
    2: (0.0, [(-0.2139767664, -0.9369273644), (-0.9644093773, 0.0420495857), (0.8079119781, -0.4034852198)]),
    5: (0.0, [(-0.2574823505, -0.8908970006), (-0.8845809501, -0.1080054547), (0.5296549575, -0.1362615518)]),
    10: (-1.0, [(-0.1810730977, -0.9820486867), (-0.4830940856, -0.8744734575), (0.2838077214, -0.9556975713)]),
}
METHODS = ["dop853", "rk45"]
PERIOD = 2.3678419475762 * np.sqrt(2 / 3)  # s, of one such rod released from the horizontal: a pendulum of 2/3 m


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
    mass = model.bodies.mass.numpy()[:, 0]
    high = sum(-mass[b] * moving[n]["com"] @ np.array(model.gravity) for n, b in model.body_names.items())
    return 0.5 * np.einsum("ni,nij,nj->n", v, M, v) + high


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", TIPS)
def test_chain_tips(n, method):
    angle, exact = TIPS[n]
    model = rods(n, angle)
    path = dyn.integrate(model, np.zeros(n), np.zeros(n), [0.5, 1.0, 2.0], rtol=1e-10, atol=1e-10, method=method)
    error = np.abs(tips(model, path.q)[:, :2] - exact).max()
    print(f"{n} rods by {method}: tips within {error:.1e} m in {path.steps} steps, {path.rejected} rejected")
    assert error < 1.5e-9


def test_energy_of_the_paper_chain():
    model = rods(10, -1.0)
    path = dyn.integrate(model, np.zeros(10), np.zeros(10), np.linspace(0.1, 10, 100), rtol=1e-10, atol=1e-10)
    e = energy(model, path.q, path.v)
    start = energy(model, np.zeros((1, 10)), np.zeros((1, 10)))[0]
    drift = np.abs(e - start).max() / 98.1
    print(f"10 rods, 10 s: energy within {drift:.1e} of its scale in {path.steps} steps")
    assert drift < 5e-13


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


@pytest.mark.parametrize("method", METHODS)
def test_errors_follow_the_tolerance(method):
    model = rods(2, 0.0)
    exact = dyn.integrate(model, np.zeros(2), np.zeros(2), 1.0, rtol=1e-13, atol=1e-13).q[-1]
    tolerances = np.array([1e-5, 1e-7, 1e-9, 1e-11])
    paths = [dyn.integrate(model, np.zeros(2), np.zeros(2), 1.0, rtol=x, atol=x, method=method) for x in tolerances]
    errors = np.array([np.abs(path.q[-1] - exact).max() for path in paths])
    slope = np.polyfit(np.log10(tolerances), np.log10(errors), 1)[0]
    print(
        f"{method}: error / tolerance {np.round(errors / tolerances, 2)} in {[p.steps for p in paths]} steps, slope {slope:.2f}"
    )
    assert 0.7 < slope < 1.3 and np.all(errors < 50 * tolerances)


@pytest.mark.parametrize("method", [m if m == "dop853" else pytest.param(m, marks=pytest.mark.slow) for m in METHODS])
def test_times_inside_steps_are_as_good_as_steps(method):
    model = rods(5, 0.0)
    times = np.linspace(0.01, 2.0, 200)
    path = dyn.integrate(model, np.zeros(5), np.zeros(5), times, rtol=1e-11, atol=1e-11, method=method)
    alone = dyn.integrate(model, np.zeros(5), np.zeros(5), 2.0, rtol=1e-11, atol=1e-11, method=method)
    q, v, error = np.zeros(5), np.zeros(5), 0.0
    for i, t in enumerate(times):
        hit = dyn.integrate(model, q, v, t, start=times[i - 1] if i else 0.0, rtol=1e-13, atol=1e-13)
        q, v = hit.q[-1], hit.v[-1]
        error = max(error, np.abs(path.q[i] - q).max(), 0.01 * np.abs(path.v[i] - v).max())
    print(f"{method}: 200 times within {error:.1e} in {path.steps} steps")
    assert error < 1e-8 and path.steps == alone.steps and np.array_equal(path.q[-1], alone.q[-1])


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [("rk4", 4, (0.02, 0.01)), ("rk45", 5, (0.04, 0.02)), ("dop853", 8, (0.04, 0.02))],
)
def test_the_order_between_steps(method, order, steps):
    """Largest error between the ends of steps; the interpolants' own errors are h⁴, h⁵ and h⁸."""
    model = rods(2, 0.0)
    times = np.linspace(0.003, 0.4, 101)
    exact = dyn.integrate(model, np.zeros(2), np.zeros(2), times, rtol=1e-13, atol=1e-13)
    paths = [dyn.integrate(model, np.zeros(2), np.zeros(2), times, method=method, step=h) for h in steps]
    errors = [np.abs(path.v - exact.v).max() for path in paths]
    found = np.log2(errors[0] / errors[1])
    print(f"{method} between steps: errors {errors[0]:.1e}, {errors[1]:.1e}: order {found:.2f}")
    assert found > order - 0.6


@pytest.mark.parametrize("method", METHODS)
def test_the_motion_can_be_asked_at_any_time(method):
    model = rods(2, 0.0)
    times = np.linspace(0.1, 1.0, 10)
    path = dyn.integrate(model, np.zeros(2), np.zeros(2), times, method=method, dense=True)
    q, v = path.at(times)
    one, _ = path.at(0.3)
    print(f"{method}: at() and the times asked for differ by {np.abs(q - path.q).max():.1e}")
    assert np.allclose(q, path.q, atol=1e-13) and np.allclose(v, path.v, atol=1e-12) and np.allclose(one, path.q[2], atol=1e-13)
    assert np.array_equal(path.at(0.0)[0], np.zeros(2))
    eps = 1e-5  # v is the derivative of q between steps too
    inner = np.linspace(0.05, 0.95, 300)
    slope = (path.at(inner + eps)[0] - path.at(inner - eps)[0]) / (2 * eps)
    assert np.allclose(slope, path.at(inner)[1], atol=1e-5)
    many = dyn.integrate(model, np.zeros((3, 2)), np.ones((3, 2)), 1.0, method=method, dense=True)
    assert many.at(0.5)[0].shape == (3, 2) and many.at([0.5, 0.7])[1].shape == (3, 2, 2)
    with pytest.raises(sh.SimulationError, match="times from 0 to 1 s"):
        path.at(1.5)
    with pytest.raises(sh.SimulationError, match="dense=True"):
        dyn.integrate(model, np.zeros(2), np.zeros(2), 1.0).at(0.5)


def bottom(t, q, v):
    return q[0] + np.pi / 2


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_passes_the_bottom_every_half_period(method):
    options = dict(rtol=1e-11, atol=1e-11, method=method)
    path = dyn.integrate(rods(1, 0.0), [0.0], [0.0], 20.0, events=bottom, **options)
    exact = PERIOD * (np.arange(len(path.events[0])) / 2 + 0.25)
    error = np.abs(path.events[0] - exact).max()
    q, v = path.event_states[0]
    print(f"{method}: {len(exact)} passages within {error:.1e} s in {path.steps} steps")
    assert len(exact) == int((20.0 / PERIOD - 0.25) * 2) + 1 and error < 2e-9
    assert np.allclose(q, -np.pi / 2, atol=1e-12) and np.allclose(np.abs(v), np.sqrt(3 * 9.81), atol=1e-8)


def test_direction_and_terminal():
    def rising(t, q, v):
        return bottom(t, q, v)

    def third(t, q, v):
        return bottom(t, q, v)

    def turns(t, q, v):
        return v[0]

    rising.direction, third.terminal = 1, 3
    model = rods(1, 0.0)
    path = dyn.integrate(
        model, [0.0], [0.0], np.arange(1.0, 21.0), events=[rising, third, turns], rtol=1e-11, atol=1e-11, dense=True
    )
    print(f"rising {path.events[0] / PERIOD}, any {path.events[1] / PERIOD}, turns {path.events[2] / PERIOD} periods")
    assert np.allclose(path.events[0], [0.75 * PERIOD], atol=1e-9)
    assert np.allclose(path.events[1], np.array([0.25, 0.75, 1.25]) * PERIOD, atol=1e-9)
    assert np.allclose(path.events[2], np.array([0.5, 1.0]) * PERIOD, atol=1e-9)  # the start, at rest, is none
    assert np.allclose(path.times, [1.0, 2.0, 1.25 * PERIOD], atol=1e-9) and path.q.shape == (3, 1)
    assert np.allclose(path.q[-1], -np.pi / 2, atol=1e-12)
    whole = dyn.integrate(model, [0.0], [0.0], 1.25 * PERIOD, rtol=1e-11, atol=1e-11)
    assert abs(path.steps - whole.steps) <= 2
    with pytest.raises(sh.SimulationError, match="times from 0 to"):
        path.at(1.3 * PERIOD)
    on = dyn.integrate(  # from there the same passage is not met again
        model, path.q[-1], path.v[-1], 3.0, start=path.times[-1], events=third, rtol=1e-11, atol=1e-11
    )
    assert np.allclose(on.events[0], [1.75 * PERIOD, 2.25 * PERIOD][: len(on.events[0])], atol=1e-8)


def test_two_crossings_in_one_step_are_seen():
    """A rod turning freely makes few steps; a function that is positive for a thirtieth of a second of it is still met twice."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("m", sh.Box(0.1, 0.1, 0.1), mass=1.0)
    scene.add_joint("j", sh.Revolute("z"), scene.world, "m", position=(0, 0, 0))
    model = scene.build()
    event = lambda t, q, v: 0.3**2 - (q[0] - 2.0) ** 2  # noqa: E731
    path = dyn.integrate(model, [0.0], [1.0], 4.0, step=1.0, events=event)
    print(f"crossings {path.events[0]} in {path.steps} steps")
    assert np.allclose(path.events[0], [1.7, 2.3], atol=1e-12) and path.steps == 4


def test_events_of_many_states():
    model = rods(1, 0.0)
    q = np.linspace(0.0, -1.0, 4)[:, None]
    many = dyn.integrate(model, q, np.zeros((4, 1)), 5.0, events=[bottom])
    for k in range(4):
        one = dyn.integrate(model, q[k], [0.0], 5.0, events=[bottom])
        assert np.array_equal(many.events[k][0], one.events[0]) and np.array_equal(
            many.event_states[k][0][1], one.event_states[0][1]
        )
    print(f"first passages {[float(e[0][0]) for e in many.events]}")
    assert np.all(np.diff([e[0][0] for e in many.events]) < 0)


def test_mistakes_with_events():
    model = rods(1, 0.0)

    def last(t, q, v):
        return 1.0

    last.terminal = True
    cases = [
        ([3.0], r"events\[0\] is a function"),
        (lambda t, q, v: "high", "finite number, got 'high'"),
        (lambda t, q, v: np.nan, "finite number, got nan"),
        (lambda t, q, v: q, None),  # (1,) is a number
        (lambda t, q, v: None, "finite number, got None"),
    ]
    for events, words in cases:
        if words is None:
            dyn.integrate(model, [0.0], [0.0], 0.1, events=events)
            continue
        with pytest.raises(sh.SimulationError, match=words):
            dyn.integrate(model, [0.0], [0.0], 0.1, events=events)
    with pytest.raises(sh.SimulationError, match=r"\(last\) is terminal; that needs a single state, and there are 2"):
        dyn.integrate(model, [[0.0], [0.1]], [0.0], 0.1, events=last)
    last.direction = "up"
    with pytest.raises(sh.SimulationError, match="direction is negative, 0 or positive"):
        dyn.integrate(model, [0.0], [0.0], 0.1, events=last)
    with pytest.raises(sh.SimulationError, match="method is one of 'dop853', 'rk45', 'rk4', got 'adams'"):
        dyn.integrate(model, [0.0], [0.0], 0.1, method="adams")


@pytest.mark.parametrize("method", METHODS)
def test_a_bar_changes_nothing(method, capsys):
    model = rods(2, 0.0)
    plain, shown = (
        dyn.integrate(model, np.zeros(2), np.zeros(2), [0.4, 1.0], method=method, progress=progress) for progress in (False, True)
    )
    assert np.array_equal(plain.q, shown.q) and plain.steps == shown.steps
    assert capsys.readouterr().err.endswith("[##############################]     1.00 s\n")


@pytest.mark.parametrize("method", METHODS)
def test_a_floating_tree_of_balls_keeps_energy_and_momentum(method):
    rng = np.random.default_rng(1)
    scene = sh.Scene(gravity=(0, 0, 0))
    for i in range(4):
        scene.add_body(f"b{i}", sh.Box(0.2, 0.1, 0.05), mass=1.0, position=(0.2 * i, 0, 0))
        if i:
            scene.add_joint(f"j{i}", sh.Spherical(), f"b{i - 1}", f"b{i}", position=(0.2 * i - 0.1, 0, 0))
    model = scene.build()
    t = dyn.links(model)
    q, v = dyn.neutral(t), rng.normal(size=t.nv)
    path = dyn.integrate(t, q, v, [1.0, 5.0], rtol=1e-11, atol=1e-11, method=method)
    before, after = energy(model, q[None], v[None])[0], energy(model, path.q, path.v)
    moving = [dyn.forward_kinematics(t, x, y) for x, y in ((q, v), (path.q[-1], path.v[-1]))]
    momenta = [sum(m[f"b{i}"]["velocity"] for i in range(4)) for m in moving]
    lengths = [np.linalg.norm(path.q[:, int(t.q_start[k]) + kind.q_size - 4 :][:, :4], axis=1) for k, kind in enumerate(t.kinds)]
    assert np.allclose(lengths, 1.0, atol=1e-15)
    print(f"{method}: energy {np.abs(after / before - 1).max():.1e}, momentum {np.abs(momenta[1] - momenta[0]).max():.1e}")
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
    print(f"double pendulum at t = 1 s: tip within {error:.1e} m, gap {sim.constraint_error().max():.1e}")
    assert error < 1e-8 and sim.constraint_error().max() < 1e-12
    sim.step(10)  # and on in real time
    assert sim.time == pytest.approx(1.01)


def test_a_simulation_stops_at_an_event(example):
    sim = example("double_pendulum").make()
    sim.step(3)

    def level(t, q, v):
        return t - 0.5

    level.terminal = True
    path = sim.integrate(1.0, times=[0.25, 0.75], events=level)
    print(f"stopped at {sim.time!r} s")
    assert sim.time == pytest.approx(0.5, abs=1e-12) and path.times.tolist() == [0.25, sim.time]
    assert np.allclose([sim.joint(n).position for n in ("shoulder", "elbow")], path.q[-1], atol=1e-12)
    floating = example("tumbling_body").make()
    with np.errstate(all="raise"):
        path = floating.integrate(1.0, times=[0.25, 0.75], events=level, dense=True)
    length = np.linalg.norm(path.at(np.linspace(0, 0.5, 50))[0][:, 3:], axis=1)
    assert np.allclose(floating.body("wing nut").rotation, path.q[-1][3:]) and np.allclose(length, 1.0, atol=1e-15)


def test_a_floating_body_and_what_integration_refuses(example):
    sim = example("double_pendulum").make()
    sim.time = 1.0
    floating = example("tumbling_body").make()
    floating.integrate(10.0, rtol=1e-12, atol=1e-12)
    body = floating.body("wing nut")
    omega = quat_rotate(body.rotation * [-1, -1, -1, 1], body.angular_velocity)
    assert np.allclose(omega, (-0.874573437891, 0.484996187341, 0.505001220548), atol=1e-9)
    taken = example("swinging_door").make()
    taken.joint("hinge").enabled = False
    high, speed = taken.body("door").com[2], taken.body("door").velocity[2]
    taken.integrate(1.0)
    assert abs(taken.body("door").com[2] - (high + speed - 0.5 * 9.81)) < 1e-8, "a disabled joint is left out: the door falls"
    with pytest.raises(sh.SimulationError, match="a time after"):
        sim.integrate(0.5)
