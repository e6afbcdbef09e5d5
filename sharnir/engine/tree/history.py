"""Guesses of a step's mean joint speeds from those of the steps before it.

Kept are the last mean speed z1 and its backward differences z2 = ∇z, z3 = ∇²z, … A polynomial through the last p steps goes on to
z1 + … + zp, and misses ∇ᵖ of the speed that is found. In double precision eight steps are kept: where a motion is smooth, the
guess through all of them leaves one or two passes instead of four. What friction and impacts leave is not smooth; some of it
alternates from step to step, which factors (1 + B)ᵐ beside ∇ᵖ take away (B: the step before). All links are guessed alike, by the
one of `GUESSES` that would have missed the present step by least in their sum.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Vector
from sharnir.emit.expressions import absolute

GUESSES = ((2, 0), (3, 0), (4, 0), (8, 0), (5, 1), (6, 2))  # (p, m)
FIRST = 2  # of them, where nothing is known
MOST = 8  # numbers that are kept beside the guess
KEPT = {"double": MOST, "float": 3}
"""By the type of numbers: differences of high order are rounding in single precision, so that three go on through four steps."""


def weights(p: int, m: int) -> list[float]:
    """By which a guess takes what is kept."""
    more = {0: [], 1: [-1.0], 2: [-3.0, 1.0]}[m]
    return [*[1.0] * p, *more, *[0.0] * (MOST - p - len(more))]


def begin(link: Any, name: str, z: Any) -> None:
    """Nothing is known of the last steps: the speed stays."""
    setattr(link, name, z)
    setattr(link, name + "1", z)
    for k in range(2, link.tree.kept + 1):
        setattr(link, f"{name}{k}", z * 0.0 if isinstance(z, Vector) else 0.0)


def restart(link: Any, name: str) -> None:
    """A guess from the last two steps."""
    setattr(link, name, getattr(link, name + "1") + getattr(link, name + "2") * link.tree.onward)


def guess(link: Any, name: str) -> None:
    """The mean speed of the step that begins."""
    if link.tree.kept < MOST:  # `keep` made it
        return
    z: Any = getattr(link, name + "1")
    for k, weight in enumerate(link.tree.guess_weights[1:], 2):
        z = z + getattr(link, f"{name}{k}") * weight
    setattr(link, name, z)


def keep(link: Any, name: str, unit: Any = 1.0) -> None:
    """Keep the mean speed that was found, and note what guesses would have missed; `unit` makes it an angle."""
    kept = link.tree.kept
    d = [getattr(link, name)]
    for k in range(1, kept + 1):
        d.append(d[-1] - getattr(link, f"{name}{k}"))
    for k in range(kept):
        setattr(link, f"{name}{k + 1}", d[k])
    if kept < MOST:
        z = d[0]
        for x in d[1:]:
            z = z + x
        setattr(link, name, z)
        return
    for k, (p, m) in enumerate(GUESSES):
        missed = d[p]
        if m:
            missed = d[p] * 2.0 - d[p + 1] if m == 1 else (d[p] - d[p + 1]) * 4.0 + d[p + 2]
        size: Any = 0.0
        for x in missed if isinstance(missed, Vector) else (missed,):
            size = size + absolute(x)
        link.tree.note_missed(k, size * unit)


def best(missed: list[float]) -> int:
    """The guess that missed least."""
    return missed.index(min(missed))
