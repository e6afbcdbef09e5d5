"""Cables as a user describes and reads them: what is refused, by name, and what a view tells."""

import math

import numpy as np
import pytest

import sharnir as sh


def scene():
    out = sh.Scene()
    out.add_body("load", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0.1, 0, 0))
    out.add_body("dot", mass=1.0, position=(3, 0, 0))
    return out


WRONG = {
    "radius of 0": (["load", sh.Sheave("world", 0.0), "world"], None, r"radius of the Sheave on 'world'.*above 0 m, got 0.0"),
    "drum of 0": ([sh.Drum("world", 0.0), "load"], None, r"radius of the Drum.*got 0.0"),
    "unknown body": (["load", ("wrld", (0, 0, 1))], None, r"'wrld' is not a body"),
    "one place": (["load"], None, "at least two places"),
    "sheave at an end": ([sh.Sheave("world", 0.1), "load"], None, "an end is a body"),
    "fixed between": (["load", ("world", (0, 0, 1)), "world"], None, "between its ends"),
    "too short": (["load", ("world", (0.1, 0, 2))], 1.5, r"it is 1.5 m long, and its path at the start 2 m; allowed"),
    "nan": (["load", ("world", (0, 0, 1))], math.nan, "length is a finite length above 0 m, got nan"),
    "the other way round": (
        ["load", sh.Sheave("world", 0.1, at=(0.2, 0, 2), axis="-y"), ("world", (2, 0, 2.1))], None, r"would wind 28\d° about",
    ),
    "friction": (["load", sh.Sheave("world", 0.1, at=(0, 0, 2), friction=-1.0), "world"], None, "friction is a finite number"),
    "axis": (["load", sh.Sheave("world", 0.1, at=(0, 0, 2), axis="q"), "world"], None, "axis is 'x', 'y', 'z'"),
    "nothing moves": ([("world", (0, 0, 1)), ("world", (0, 1, 1))], None, "none of its bodies is dynamic"),
    "circles overlap": (["load", sh.Sheave("world", 1.0, at=(0, 0, 0.5)), "world"], None, "no line touches both circles"),
    "point mass": ([("dot", (0, 0, 0.1)), "world"], None, "'dot' is a point mass"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_cable_is_refused_by_name(what):
    path, length, words = WRONG[what]
    with pytest.raises(sh.SceneError, match=words) as error:
        scene().add_cable("hoist", path, length=length)
    assert "cable 'hoist'" in str(error.value)


def test_what_a_view_tells():
    s = scene()
    path = ["load", sh.Sheave("world", 0.1, at=(0.2, 0, 2)), ("world", (0.3, 0, 0))]
    s.add_cable("hoist", path, length=5.0)
    sim = sh.Simulation(s, dt=0.01, worlds=2)
    view = sim.cable("hoist")
    assert np.allclose(view.span_length, [[2, 2], [2, 2]])
    assert np.allclose(view.wrap, math.pi) and np.allclose(view.length, 5.0)
    assert np.allclose(view.slack, 1 - 0.1 * math.pi) and np.all(view.tension == 0)
    assert view.points.shape[1] == 3 and np.allclose(view.points[[0, -1]], [(0.1, 0, 0), (0.3, 0, 0)])
    view.length = [4.4, 5.0]
    assert np.allclose(view.length, [4.4, 5.0])
    sim.run(0.3)
    assert view.tension[0, 0] > 0 and view.tension[1, 0] == 0
    with pytest.raises(sh.SimulationError, match=r"cable 'hoist': length is .* above 0 m"):
        view.length = -1.0
    with pytest.raises(sh.SimulationError, match="no cable is named 'x'; available: 'hoist'"):
        sim.cable("x")
    state = sim.snapshot()
    sim.run(0.1)
    then = sim.body("load").position
    sim.restore(state)
    sim.run(0.1)
    assert np.array_equal(then, sim.body("load").position)


def test_cables_are_not_left_out_silently():
    s = scene()
    s.add_cable("hoist", ["load", ("world", (0, 0, 1))])
    with pytest.raises(sh.SimulationError, match="cable 'hoist'"):
        sh.dynamics.mass_matrix(s.build(), np.zeros(7))
