"""Ropes as described: shapes, views, and mistakes that are refused with a word on what is allowed."""

import numpy as np
import pytest

import sharnir as sh


def rope(**given):
    scene = sh.Scene()
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(1, 0, 0))
    scene.add_body("point", mass=1.0, position=(2, 0, 0))
    scene.add_rope("r", **({"start": (0, 0, 0), "end": (1, 0, 0)} | given))
    return scene


@pytest.mark.parametrize(
    "given, words",
    [
        ({"length": 0.5}, "does not reach"),
        ({"segments": 0}, "segments"),
        ({"segments": [1, -1]}, "relative lengths"),
        ({"radius": -1.0}, "radius"),
        ({"E": 1e6, "EI": 1.0}, "not both"),
        ({"EI": -1.0}, "EI"),
        ({"attach": ("nobody", None)}, "not a body"),
        ({"attach": "ball"}, "pair"),
        ({"clamp": (True, False)}, "attached"),
        ({"points": [(0, 0, 0)]}, "give start"),
        ({"start": None, "points": [(0, 0, 0)]}, "two or more"),
        ({"rest_curvature": (1, 2, 3)}, "rest_curvature"),
        ({"reel": "middle"}, "reel"),
        ({"end": (2, 0, 0), "attach": (None, "point"), "clamp": (False, True)}, "point mass"),
        ({"name": "ball"}, "taken"),
        ({"start": "here"}, "start is three finite numbers .* got 'here'"),
        ({"end": (0, 0, 0)}, "one point"),
        ({"segments": True}, "segments"),
        ({"start": None, "end": None, "points": [(0, 0, 0), (1,)]}, "points is two or more"),
        ({"rest_curvature": (float("nan"), 0)}, "rest_curvature is two finite"),
        ({"rest_twist": "much"}, "rest_twist is a finite number .* got 'much'"),
        ({"twist": "much"}, "twist is a finite number .* got 'much'"),
        ({"velocity": (1, 2)}, r"velocity is three finite numbers .* got \(1, 2\)"),
        ({"velocity": (float("inf"), 0, 0)}, "velocity is three finite"),
        ({"attach": ("ball", None), "clamp": ("yes", False)}, "clamp is True, False or a direction .* got 'yes'"),
        ({"reel": "start", "longest": "long"}, "longest is a finite length .* got 'long'"),
        ({"reel": "start", "longest": float("inf")}, "longest is a finite length"),
        ({"longest": 3.0}, "longest goes with reel"),
    ],
)
def test_mistakes_are_refused(given, words):
    scene = sh.Scene()
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(1, 0, 0))
    scene.add_body("point", mass=1.0, position=(2, 0, 0))
    given = {"name": "r", "start": (0, 0, 0), "end": (1, 0, 0)} | given
    with pytest.raises(sh.SceneError, match=words) as error:
        scene.add_rope(**given)
    print(error.value)


def test_shapes_and_views():
    sim = sh.Simulation(rope(length=1.5, segments=30, attach=("world", "ball")), 0.01)
    r = sim.rope("r")
    assert r.segments == 30 and r.position.shape == (31, 3) and r.rotation.shape == (30, 4) and r.tension.shape == (30,)
    assert r.moment.shape == (31, 3) and r.twist.shape == (31,) and r.curvature.shape == (31, 2) and r.end_force.shape == (2, 3)
    assert abs(r.length - 1.5) < 1e-12 and r.stretch < 1e-12 and r.position[:, 2].min() < -0.4
    graded = sh.Simulation(rope(segments=[1, 2, 3]), 0.01).rope("r")
    print(np.diff(graded.position[:, 0]))
    assert np.allclose(np.diff(graded.position[:, 0]), np.array([1, 2, 3]) / 6)
    many = sh.Simulation(rope(segments=5, attach=("world", None)), 0.01, worlds=3)
    many.run(0.1)
    assert many.rope("r").position.shape == (3, 6, 3) and many.rope("r").length.shape == (3,)


def test_what_a_view_refuses():
    sim = sh.Simulation(rope(segments=5, attach=("world", None)), 0.01)
    for act, words in (
        (lambda: sim.rope("x"), "no rope"),
        (lambda: setattr(sim.rope("r"), "reel_speed", 1.0), "no reel"),
        (lambda: sim.rope("r").apply_force(9, (0, 0, 1)), "6 points, 0 to 5"),
        (lambda: sim.rope("r").apply_force(2.5, (0, 0, 1)), "a point is a whole number, got 2.5"),
        (lambda: sim.rope("r").cut("first"), "an element is a whole number, got 'first'"),
        (lambda: setattr(sim.rope("r"), "velocity", (1, 2)), r"three for each of 6, got \(1, 2\)"),
        (lambda: setattr(sim.rope("r"), "velocity", np.zeros((4, 3))), r"got shape \(4, 3\)"),
        (lambda: setattr(sim.rope("r"), "angular_velocity", "fast"), "three for each of 5, got 'fast'"),
        (lambda: sim.integrate(1.0), "stepped"),
        (lambda: sh.Simulation(rope(), 0.01, closing="position"), "closing='position' was removed in 0.3.0; leave it out"),
    ):
        with pytest.raises(sh.SimulationError, match=words):
            act()


@pytest.mark.parametrize("point", [0, 5, 2.5, "middle", True])
def test_a_body_is_tied_between_the_ends(point):
    with pytest.raises(sh.SceneError, match=f"a point from 1 to 4 .* got {point!r}"):
        rope(segments=5, attach=("world", None)).tie_rope("r", point, "ball")


def test_an_end_that_is_not_clamped_may_be_said_so_by_none():
    held = rope(attach=("ball", None), clamp=(None, None)).ropes["r"].ends
    assert not held[0].clamp and not held[1].clamp


def test_velocities_are_set_for_all_points_each_point_or_each_world():
    sim = sh.Simulation(rope(segments=5), 0.01, worlds=2)
    r = sim.rope("r")
    for value in ((1, 2, 3), np.ones((6, 3)), np.arange(36.0).reshape(2, 6, 3)):
        r.velocity = value
        assert np.array_equal(r.velocity, np.broadcast_to(value, (2, 6, 3)))


def test_a_rope_that_cannot_stay_finite_is_named_and_stays():
    sim = sh.Simulation(rope(segments=5, attach=("world", None)), 0.01)
    sim.run(0.1)
    before = sim.rope("r").position
    sim.rope("r").apply_force(3, (1e300, 1e300, 0))
    with pytest.raises(sh.SimulationError, match="rope 'r'"):
        sim.run(0.1)
    assert np.array_equal(before, sim.rope("r").position)
