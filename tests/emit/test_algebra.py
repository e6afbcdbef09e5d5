"""The algebra folds constants, and computes the same with floats and in emitted code."""

import numpy as np
import pytest

from sharnir.emit.algebra import AboutZ, ByMatrix, Chained, Matrix, Quaternion, Symmetric, Vector, cross, dot, mean_rotation
from sharnir.emit.expressions import Expression, clamp, maximum, select, sqrt, value
from sharnir.emit.program import Program


def numbers(m):
    return np.array([[m[i, j] for j in range(3)] for i in range(3)])


def rotation(rng):
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    return Quaternion(Vector(*map(float, q[:3])), float(q[3])).matrix()


def test_constants_fold():
    x, y = value("x"), value("y")
    assert 0.0 * x == 0.0 and x * 1.0 is x and x + 0.0 is x and x - x == 0.0
    negative = -x
    assert -negative is x and x + y is x + y
    assert x - -y is x + y
    assert dot(Vector(0.0, 1.0, 0.0), Vector(x, y, x)) is y
    assert cross(Vector(0.0, 0.0, 1.0), Vector(x, y, 0.0)).z == 0.0
    assert select(True, x, y) is x and select(x < y, 2.0, 2.0) == 2.0


def test_an_expression_has_no_truth_value_before_it_runs():
    with pytest.raises(TypeError, match="select"):
        bool(value("x") < 1.0)


def test_symmetric_inverse():
    rng = np.random.default_rng(1)
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        A = A @ A.T + 0.01 * np.eye(3)
        s = Symmetric([A[0, 0], A[1, 1], A[2, 2], A[0, 1], A[0, 2], A[1, 2]])
        np.testing.assert_allclose(numbers(s.inverse()) @ A, np.eye(3), atol=1e-11)


def test_rotations_turn_vectors_and_matrices_alike():
    rng = np.random.default_rng(2)
    R = rotation(rng)
    c, s = np.cos(0.7), np.sin(0.7)
    turn = Chained(ByMatrix(R), AboutZ(float(c), float(s)))
    Q = numbers(R) @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    x, H = rng.normal(size=3), rng.normal(size=(3, 3))
    A = H + H.T
    np.testing.assert_allclose(list(turn.outward(Vector(*x))), Q @ x, atol=1e-15)
    np.testing.assert_allclose(list(turn.inward(Vector(*x))), Q.T @ x, atol=1e-15)
    np.testing.assert_allclose(numbers(turn.similar(Matrix(H))), Q @ H @ Q.T, atol=1e-14)
    sym = turn.similar_symmetric(Symmetric([A[0, 0], A[1, 1], A[2, 2], A[0, 1], A[0, 2], A[1, 2]]))
    np.testing.assert_allclose(numbers(sym), Q @ A @ Q.T, atol=1e-14)


def test_mean_rotation_is_the_mean_of_start_and_end():
    g = np.array([0.2, -0.1, 0.4])
    S = np.array([[0, -g[2], g[1]], [g[2], 0, -g[0]], [-g[1], g[0], 0]])
    cayley = np.linalg.solve(np.eye(3) - S, np.eye(3) + S)
    np.testing.assert_allclose(numbers(mean_rotation(Vector(*g))), 0.5 * (np.eye(3) + cayley), atol=1e-15)


def run(program, inputs):
    """The program's writes by Python: its C++ is plain enough."""
    text = program.finish()
    names = dict(inputs)
    for line in text.splitlines():
        line = line.removeprefix("const real ").removeprefix("const bool ").rstrip(";")
        for cpp, python in (("real(", "float("), ("wp::", ""), ("&&", " and "), ("||", " or ")):
            line = line.replace(cpp, python)
        exec(line, {"root": np.sqrt, "quotient": lambda a, b: a / b, "max": max, "min": min, "abs": abs}, names)
    return names, text


def test_a_program_prints_shared_expressions_once_and_others_in_place():
    p = Program()
    x, y = p.read("x"), p.read("y")
    s = sqrt(x * x + y * y)
    p.write("a", s * x)
    p.write("b", maximum(s, 2.0) - y)
    p.write("c", clamp(s, 0.0, 1.0))
    unused = x * 3.0
    assert isinstance(unused, Expression)
    names, text = run(p, {"x": 3.0, "y": 4.0})
    assert text.count("root") == 1 and "3.0" not in text
    assert (names["a"], names["b"], names["c"]) == (15.0, 1.0, 1.0)


def test_what_was_written_is_not_read_again():
    p = Program()
    x = p.read("x")
    p.write("x", x + 1.0)
    p.write("y", p.read("x") * 2.0)
    names, text = run(p, {"x": 1.0})
    assert names["y"] == 4.0 and text.count("= x;") == 1


def test_loops_that_are_written_alike_become_one_function():
    p = Program(shared={"row": "real* const"})
    for resting in ("false", "true"):
        with p.function(("resting",), (resting,)), p.block("for (int i = 0; i < n; ++i) {"):
            p.write("row[i]", p.read("row[i]") * 2.0)
    with p.function(), p.block("for (int i = 0; i < n; ++i) {"):
        p.write("row[i]", p.read("row[i]") * 3.0)
    text, functions = p.finish(), p.functions()
    assert text.split() == ["part0(row,", "false);", "part0(row,", "true);", "part1(row);"]
    assert functions.count("[&](real* const row, const bool resting)") == 1 and functions.count("2.0") == 1


def test_nothing_is_known_after_a_call():
    p = Program(remembers=True)
    p.write("x", p.read("y") + 1.0)
    with p.function():
        p.write("x", 5.0)
    p.write("z", p.read("x") * 2.0)
    assert "= x;" in p.finish().split("part0();")[1]
