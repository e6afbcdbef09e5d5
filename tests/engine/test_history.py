"""Guesses of mean speeds from those of the last steps."""

import numpy as np
import pytest

from sharnir.emit.algebra import Vector
from sharnir.engine.tree import history
from sharnir.engine.tree.forest import HINGE, Forest, Link
from sharnir.engine.tree.kernel import TreeRunner

pytestmark = pytest.mark.usefixtures("unoptimized")


class Kept:
    """A link that has a history and nothing else, and its tree."""

    kept, onward, choice = history.MOST, 1.0, history.FIRST

    @property
    def tree(self):
        return self

    @property
    def guess_weights(self):
        return history.weights(*history.GUESSES[self.choice])

    def note_missed(self, k, x):
        self.missed[k] = x


def guesses(speeds, name="z"):
    """What is guessed before each step, where nothing was known before the first."""
    link, out = Kept(), []
    history.begin(link, name, speeds[0])
    for z in speeds:
        history.guess(link, name)
        out.append(getattr(link, name))
        setattr(link, name, z)
        link.missed = {}
        history.keep(link, name)
        link.choice = history.best([link.missed[k] for k in range(len(history.GUESSES))])
    return out


T = np.arange(24) * 0.05
SMOOTH = 1.0 + T - 2.0 * T**3 + T**7


@pytest.mark.parametrize(
    ("speeds", "from_step"),
    [(SMOOTH, 9), (1.0 + T**2 + 1e-3 * (-1.0) ** np.arange(24), 9), (T**3 + (1e-3 + T) * (-1.0) ** np.arange(24), 9)],
    ids=["polynomial", "alternates", "alternates more and more"],
)
def test_motions_that_go_on_are_guessed(speeds, from_step):
    off = np.abs(np.array(guesses(list(speeds))) - speeds)
    assert off[from_step:].max() < 1e-11 < off[:from_step].max()


def test_vectors_are_guessed_as_a_whole():
    found = guesses([Vector(x, 2.0 * x, -x) for x in SMOOTH], "zv")
    off = [max(abs(a - b) for a, b in zip(v, (x, 2.0 * x, -x), strict=True)) for v, x in zip(found, SMOOTH, strict=True)]
    assert max(off[9:]) < 1e-11


def test_a_sudden_change_is_forgotten_at_once():
    """Guesses after a blow that continue from the two steps since then, not from what was before it."""
    speeds = np.where(np.arange(20) < 10, SMOOTH[:20], 5.0 + 0.1 * np.arange(20))
    off = np.abs(np.array(guesses(list(speeds))) - speeds)
    assert off[13:].max() < 1e-9 and off[11:].max() < 5.0


def test_smooth_motion_takes_one_pass():
    """Ten hinges that swing out of the plane, at the accuracy that keeps energy to 1e-9."""
    turn = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    links = [
        Link(i - 1, HINGE, turn if i % 2 else turn.T, (0.3 if i else 0.0, 0, 0), (0.15, 0, 0), np.eye(3) * 0.01, 1.0)
        for i in range(10)
    ]
    runner = TreeRunner(Forest(links), 1e-3)
    runner.step(30)
    runner.step(200)
    assert runner.iterations.numpy()[0] < 1.3 * 200
