"""Laws of joints with several axes in the tree step: what they conserve, closed forms, and the emitted forms."""

import numpy as np
import pytest
from test_tree_step import matrix, measure, poses, random_forest, scatter

from sharnir.emit.algebra import Quaternion, Vector
from sharnir.engine.tree import exact_several as exact
from sharnir.engine.tree.forest import BALL, HINGE, ROTOR, SLIDER, SLIDES, TURNS, Forest, Link
from sharnir.engine.tree.kernel import TreeRunner
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.step import step
from sharnir.laws.ball import (
    cardan_angles,
    conjugate,
    limit_coordinates,
    mean_gradient,
    mean_rows,
    rotation_of,
    rotation_vector,
    spring_gradient,
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("unoptimized")

STIFFNESS, REST = (5.0, 3.0, 8.0), (0.1, 0.2, -0.3)
GRAVITY = 9.81


def box(x, y, z, mass):
    return np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12


def chain(laws, links=3):
    """Boxes along x on balls."""
    I = box(0.3, 0.08, 0.05, 1.0)
    return Forest([Link(i - 1, BALL, np.eye(3), [0.3 * (i > 0), 0, 0], [0.15, 0, 0], I, 1.0, dict(laws)) for i in range(links)])


def quaternion(q):
    return Quaternion(Vector(*q[:3]), q[3])


def spring_energy(q):
    phi = rotation_vector(quaternion(q) * conjugate(rotation_of(Vector(*REST))))
    return 0.5 * sum(k * x * x for k, x in zip(STIFFNESS, phi, strict=True))


# ---- the mathematics ---------------------------------------------------------------------------------------------------------


def random_turns(seed=1):
    rng = np.random.default_rng(seed)
    start = Vector(*(rng.normal(size=3) * 0.4))
    by = rng.normal(size=3) * 1e-3
    return rotation_of(start), by, rotation_of(Vector(*by)) * rotation_of(start)


def test_a_spring_gives_the_energy_that_it_loses():
    start, by, end = random_turns()
    gradient = mean_gradient(start, end, Vector(*REST), Vector(*STIFFNESS), Vector(*by))
    gained = spring_energy([*end.v, end.w]) - spring_energy([*start.v, start.w])
    assert np.dot(list(gradient), by) == pytest.approx(gained, rel=1e-12)
    phi = rotation_vector(start * conjugate(rotation_of(Vector(*REST))))
    exact = spring_gradient(phi, Vector(*STIFFNESS))
    for k in range(3):
        step_by = Vector(*(1e-6 * np.eye(3)[k]))
        ends = [rotation_of(step_by * s) * start for s in (1.0, -1.0)]
        slope = np.subtract(*(spring_energy([*e.v, e.w]) for e in ends)) / 2e-6
        assert exact[k] == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("kind", [1.0, 2.0])
def test_rows_of_limits_are_the_derivatives_of_what_they_limit(kind):
    start, by, end = random_turns()
    upper = Vector(0.5, 0.3, 0.4)
    if kind == 2.0:  # at the cone's edge
        c, s = np.cos(0.6), np.sin(0.6)
        edge = 1 / np.hypot(c / 0.5, s / 0.3)
        start = rotation_of(Vector(c * edge, s * edge, 0.0)) * rotation_of(Vector(0.0, 0.0, 0.2))
        end = rotation_of(Vector(*by)) * start
    before, after = (limit_coordinates(kind, q, upper) for q in (start, end))
    rows = mean_rows(before, after, Vector(*by))
    np.testing.assert_allclose([np.dot(list(rows.row(k)), by) for k in range(3)], list(after[0] - before[0]), atol=1e-14)
    for k in range(3):
        ends = [limit_coordinates(kind, rotation_of(Vector(*(s * np.eye(3)[k]))) * start, upper)[0] for s in (1e-6, -1e-6)]
        np.testing.assert_allclose([before[1].row(n)[k] for n in range(3)], list((ends[0] - ends[1]) * 5e5), atol=1e-8)


def test_cardan_angles_are_those_of_three_turns():
    angles = (0.4, -0.7, 1.1)
    q = rotation_of(Vector(0.4, 0.0, 0.0)) * rotation_of(Vector(0.0, -0.7, 0.0)) * rotation_of(Vector(0.0, 0.0, 1.1))
    np.testing.assert_allclose(list(cardan_angles(q.matrix())[0]), angles, atol=1e-14)


# ---- steps -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own_axes", [True, False])
def test_springs_of_balls_keep_energy_to_rounding(own_axes):
    tree = NumberTree(chain({"stiffness": STIFFNESS, "rest": REST}), 2e-3, own_axes=own_axes, tolerance=1e-15)
    scatter(tree, 3)

    def energy():
        kinetic, potential, _ = measure(tree)
        return kinetic, kinetic + potential + sum(spring_energy(f["rotation"]) for f in tree.fields)

    start, most, worst = energy()[1], 0.0, 0.0
    for _ in range(12):
        step(tree)
        kinetic, total = energy()
        most, worst = max(most, kinetic), max(worst, abs(total - start))
    assert worst < 1e-11 * most


def test_friction_of_a_ball_takes_bound_times_path():
    bound = 0.2
    tree = NumberTree(chain({"friction_static": bound, "friction_dynamic": bound}, links=1), 1e-3, tolerance=1e-15)
    scatter(tree, 3)
    for _ in range(5):
        step(tree)
    start, path = sum(measure(tree)[:2]), 0.0
    for _ in range(50):
        step(tree)
        path += 2 * np.linalg.norm(tree.fields[0]["zv1"])  # the mean speed of the step, times it
    assert start - sum(measure(tree)[:2]) == pytest.approx(bound * path, rel=1e-9)


def test_friction_of_a_ball_holds_up_to_its_bound():
    need = 1.0 * GRAVITY * 0.15
    ends = []
    for share in (1.001, 0.999):
        tree = NumberTree(chain({"friction_static": share * need, "friction_dynamic": share * need}, links=1), 1e-3)
        for _ in range(20):
            step(tree)
        ends.append(np.linalg.norm(tree.fields[0]["rotation"][:3]))
    assert ends[0] < 1e-14
    a = 0.001 * need / (box(0.3, 0.08, 0.05, 1.0)[1, 1] + 0.15**2)
    assert ends[1] == pytest.approx(0.25 * a * 0.02**2, rel=1e-3)  # half of the angle ½ a t²


def test_friction_of_each_axis_alone_holds_one_and_lets_the_other_turn():
    laws = {"friction_static": (5.0, 0.0, 5.0), "friction_dynamic": (5.0, 0.0, 5.0), "grouped": 0.0}
    tree = NumberTree(chain(laws, links=1), 1e-3)
    tree.fields[0]["W"] = [0.0, 0.0, 0.0]
    for _ in range(20):
        step(tree)
    x, y, z, _ = tree.fields[0]["rotation"]
    assert y > 1e-3
    assert abs(x) < 1e-15
    assert abs(z) < 1e-15


@pytest.mark.parametrize(
    "laws", [{"ball_limit": 1.0, "limit_lower": -0.1, "limit_upper": 0.1}, {"ball_limit": 2.0, "limit_upper": 0.1}]
)
def test_a_ball_stays_within_its_limits_and_an_impact_keeps_what_it_does_not_touch(laws):
    """It falls about y on to the limit, and spins about its own axis: the limit takes the fall alone."""
    tree = NumberTree(chain(laws | {"damping": 1e-9}, links=1), 1e-3)
    tree.fields[0]["W"] = [0.0, 1e-3, 0.0]
    most = 0.0
    for _ in range(120):
        step(tree)
        q = quaternion(tree.fields[0]["rotation"])
        most = max(most, float(rotation_vector(q).y))
    assert most == pytest.approx(0.1, abs=1e-9)
    assert np.abs(tree.fields[0]["W"]).max() < 1e-12  # it rests there


def test_an_impact_of_a_ball_is_the_nearest_velocity_that_its_limit_allows():
    tree = NumberTree(chain({"ball_limit": 2.0, "limit_upper": (0.5, 0.35, 0.3)}), 1e-3)
    for i, f in enumerate(tree.fields):
        q = np.array([0.1 * np.sin(i + 1.0), 0.05 * np.cos(i) + 0.12 * (i == 0), 0.02 * i, 1.0])
        f["rotation"] = list(q / np.linalg.norm(q))
        f["W"] = [0.0, 1e-3, 0.0]
    while not tree.fields[0]["struck_3"][0]:
        before = [dict(f) for f in tree.fields]
        step(tree)
    after, tree.fields = tree.fields, before
    tree.when_stopped = lambda: iter(())
    step(tree)  # the same without the impact
    R, X = poses(tree.forest, tree.fields)
    origins = [np.zeros(3), R[0] @ [0.3, 0, 0], R[0] @ [0.3, 0, 0] + R[1] @ [0.3, 0, 0]]
    B, M, V, W = np.zeros((18, 9)), np.zeros((18, 18)), [], []
    for i, link in enumerate(tree.forest.links):
        at = 6 * i
        for j in range(i + 1):
            for k in range(3):
                B[at : at + 3, 3 * j + k] = np.cross(np.eye(3)[k], X[i] - origins[j])
                B[at + 3 + k, 3 * j + k] = 1.0
        M[at : at + 3, at : at + 3] = np.eye(3) * link.mass
        M[at + 3 : at + 6, at + 3 : at + 6] = R[i] @ link.inertia @ R[i].T
        for out, f in ((V, tree.fields), (W, after)):
            out += [*(R[i] @ f[i]["V"]), *(R[i] @ f[i]["W"])]
    row = np.zeros(9)
    row[:3] = list(limit_coordinates(2.0, quaternion(tree.fields[0]["rotation"]), Vector(0.5, 0.35, 0.3))[1].row(0))
    K = B.T @ M @ B
    u = np.linalg.solve(K, B.T @ M @ V)
    answer = np.linalg.solve(K, row)
    nearest = B @ (u - answer * (row @ u) / (row @ answer))
    np.testing.assert_allclose(W, nearest, atol=1e-15)
    assert np.abs(row @ u) > 1e-5  # something was stopped


def test_slides_lose_speed_along_their_path():
    """A box on a plane: friction opposes the vector of both speeds, which keeps its direction."""
    bound, mass, h = 0.6, 2.0, 1e-3
    link = Link(-1, SLIDES, inertia=np.eye(3), mass=mass, laws={"friction_static": bound, "friction_dynamic": bound})
    tree = NumberTree(Forest([link]), h, gravity=(0, 0, -GRAVITY))
    tree.fields[0]["V"] = [0.3 * h / 2, 0.4 * h / 2, 0.0]
    for _ in range(300):
        step(tree)
    t = 0.3
    way = 0.5 * t - 0.5 * bound / mass * t * t
    np.testing.assert_allclose(tree.fields[0]["position"][:2], [0.6 * way, 0.8 * way], rtol=1e-12)


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_turns_move_as_two_hinges(sense):
    to_x = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # z along x
    back = np.diag([1.0, -1.0, -1.0]) if sense < 0 else np.eye(3)
    com, I = np.array([0.12, 0.05, 0.03]), box(0.25, 0.08, 0.12, 0.8)
    springs, dampers = ((10.0, 5.0), (0.02, 0.01)) if sense > 0 else ((5.0, 10.0), (0.01, 0.02))
    one = {"stiffness": (*springs, 0.0), "damping": (*dampers, 0.0), "sense": sense}
    two = [{"stiffness": 10.0, "damping": 0.02}, {"stiffness": 5.0, "damping": 0.01}]
    arm = Link(-1, HINGE, com=[0.15, 0, 0], inertia=box(0.3, 0.1, 0.06, 1.0), mass=1.0)
    x = to_x @ back
    links = [arm, Link(0, HINGE, back, [0.3, 0, 0], laws=two[0])]
    last = Link(1, HINGE, back.T @ x, [0, 0, 0], x.T @ com, x.T @ I @ x, 0.8, two[1])
    trees = [
        NumberTree(Forest([arm, Link(0, TURNS, np.eye(3), [0.3, 0, 0], com, I, 0.8, one)]), 2e-3),
        NumberTree(Forest([*links, last]), 2e-3),
    ]
    for _ in range(60):
        for tree in trees:
            step(tree)
    q = [f["q"][0] for f in trees[1].fields]
    angles = trees[0].fields[1]["position"][:2][:: int(sense)]
    np.testing.assert_allclose([trees[0].fields[0]["q"][0], *angles], q, atol=1e-13)
    assert min(np.abs(q)) > 1e-3


ALL = {
    "servo_kp": 30.0, "servo_kd": 0.3, "servo_position": (0.1, 0.2, -0.3), "servo_max_force": 1.5, "friction_static": 0.3,
    "friction_dynamic": 0.2, "stiffness": STIFFNESS, "rest": REST, "damping": (0.02, 0.01, 0.0),
}  # fmt: skip
LIMITED = {
    "limit_lower": (-0.02, -0.01, -1e30),
    "limit_upper": (0.01, 0.02, 1e30),
    "friction_static": 0.1,
    "friction_dynamic": 0.1,
}
MOTOR = {
    "resistance": 0.5, "inductance": 2e-3, "torque_constant": 0.05, "gear_ratio": 10.0, "efficiency": 0.8, "rotor_inertia": 1e-4,
    "voltage": 6.0,
}  # fmt: skip


def mixed():
    links = random_forest(11, [HINGE, SLIDER, BALL], links=5).links
    for link, (kind, laws) in zip(
        links,
        [(HINGE, MOTOR), (BALL, ALL), (SLIDES, LIMITED), (TURNS, LIMITED), (BALL, {"ball_limit": 2.0, "limit_upper": 0.02})],
        strict=True,
    ):
        link.kind, link.laws = kind, dict(laws)
    return Forest(links)


@pytest.mark.slow  # compiles the code of all kinds of joints for a runner; simulations are compared with the former passes
@pytest.mark.parametrize("specialize", [False, True])
def test_all_forms_of_the_laws_agree(specialize):
    forest = mixed()
    tree = NumberTree(forest, 2e-3)
    runner = TreeRunner(forest, 2e-3, specialize=specialize)
    for (i, name), row in runner.rows.items():
        runner.numbers()[row] = np.array(tree.fields[i][name])[:, None]
    limited = False
    for _ in range(25):
        runner.step()
        step(tree)
        limited = limited or any(np.any(f["limit_3"]) for f in tree.fields)
    for (i, name), row in runner.rows.items():
        if name in ("rotation", "position", "q", "current", "stuck_3"):
            np.testing.assert_allclose(runner.numbers()[row, 0], tree.fields[i][name], atol=1e-11, err_msg=f"{name} of link {i}")
    R = matrix(tree.fields[1]["rotation"])
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-13)
    assert limited


# ---- motors ------------------------------------------------------------------------------------------------------------------


def test_a_motor_runs_up_to_its_speed_without_load():
    """L → 0: J ω̇ = k/R (V − k ω); the trapezoidal rule of it, step by step."""
    h, R, k, V, J, C = 1e-3, 0.5, 0.05, 12.0, 1e-4, 2e-4
    laws = {"resistance": R, "torque_constant": k, "rotor_inertia": J, "voltage": V}
    tree = NumberTree(Forest([Link(-1, ROTOR, inertia=np.eye(3) * C, mass=1.0, laws=laws)]), h, gravity=(0, 0, 0))
    speed, c = 0.0, k * k / R
    for _ in range(200):
        step(tree)
        speed = ((J + C - 0.5 * h * c) * speed + h * k * V / R) / (J + C + 0.5 * h * c)
        assert tree.fields[0]["W"][2] * 2 / h == pytest.approx(speed, rel=1e-10)
        assert tree.fields[0]["rotor"][0] == pytest.approx(speed, rel=1e-10)
    assert speed == pytest.approx(V / k * (1 - np.exp(-0.2 * c / (J + C))), rel=1e-3)


def test_a_current_rises_as_its_inductance_lets_it():
    h, R, L = 1e-3, 0.5, 5e-3
    laws = {"resistance": R, "inductance": L, "torque_constant": 1e-9, "voltage": 12.0}
    tree = NumberTree(Forest([Link(-1, HINGE, inertia=np.eye(3), mass=1.0, laws=laws)]), h, gravity=(0, 0, 0))
    for n in range(10):
        step(tree)
        assert tree.fields[0]["current"][0] == pytest.approx(12 / R * (1 - np.exp(-(n + 1) * h * R / L)), rel=1e-12)


def test_friction_grows_with_the_load():
    """A slider that carries 50 N sideways and is pushed along by 9 N, with 0.2 of the load: 9 − 10 N hold, 11 − 10 N move it."""
    for push, moves in ((9.0, False), (11.0, True)):
        laws = {"friction_load": 0.2, "reaction": 50.0, "effort": push}
        tree = NumberTree(Forest([Link(-1, SLIDER, inertia=np.eye(3), mass=2.0, laws=laws)]), 1e-3, gravity=(0, 0, 0))
        for _ in range(100):
            step(tree)
        assert tree.fields[0]["q"][0] == pytest.approx(0.5 * (1.0 / 2.0) * 0.1**2 if moves else 0.0, rel=1e-9, abs=1e-15)


# ---- second gear -------------------------------------------------------------------------------------------------------------


def test_the_second_gear_finds_the_same_steps():
    """Newton's iteration with the exact derivative has the same solution, in every step."""
    ends = []
    for gear in (None, exact):
        tree = NumberTree(mixed(), 2e-3, own_axes=False, tolerance=1e-14, second_gear=gear)
        for _ in range(12):
            if gear is not None:
                tree.gear = 3  # never the first one
            step(tree)
        ends.append(np.concatenate([f[name] for f in tree.fields for name in ("rotation", "position", "q")]))
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-11)


def test_a_free_gyroscope_converges_in_second_gear():
    """A rotor at 1.5 rad a step in a light frame: symmetric factors do not contract, the exact derivative does."""
    frame = Link(-1, BALL, inertia=np.eye(3) * 0.003, mass=0.1)
    rotor = Link(0, ROTOR, inertia=np.diag([0.012, 0.012, 0.02]), mass=1.0)
    tree = NumberTree(Forest([frame, rotor]), 5e-3, gravity=(0, 0, 0), own_axes=False, second_gear=exact)
    tree.fields[1]["W"] = [0.0, 0.0, 300 * 2.5e-3]
    tree.fields[0]["W"] = [0.3 * 2.5e-3, 0.0, 0.0]
    for name in ("z", "z1"):
        tree.fields[1][name] = [300 * 2.5e-3]
    for _ in range(20):
        step(tree)
    assert not getattr(tree, "failed", False)
    assert tree.fields[1]["q"][0] == pytest.approx(20 * 1.5, rel=1e-3)
