"""Guesses of a step's mean joint speeds from those of the steps before it.

Kept are the last mean speed z1 and its backward differences z2 = ∇z, z3 = ∇²z, … A polynomial through the last p steps goes on to
z1 + … + zp, and misses ∇ᵖ of the speed that is found. In double precision eight steps are kept: where a motion is smooth, the
guess through all of them leaves one or two passes instead of four. What friction and impacts leave is not smooth; some of it
alternates from step to step, which factors (1 + B)ᵐ beside ∇ᵖ take away (B: the step before). The guess is the one that would
have missed the present step by least.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Vector, dot
from sharnir.emit.expressions import absolute, minimum, select

GUESSES = ((2, 0), (3, 0), (4, 0), (8, 0), (5, 1), (6, 2))  # (p, m)
MOST = 8  # numbers that are kept beside the guess
KEPT = {"double": MOST, "float": 3}
"""By the type of numbers: differences of high order are rounding in single precision, so that three go on through four steps."""


def begin(link: Any, name: str, z: Any) -> None:
    """Nothing is known of the last steps: the speed stays."""
    setattr(link, name, z)
    setattr(link, name + "1", z)
    for k in range(2, link.tree.kept + 1):
        setattr(link, f"{name}{k}", z * 0.0 if isinstance(z, Vector) else 0.0)


def restart(link: Any, name: str) -> None:
    """A guess from the last two steps."""
    setattr(link, name, getattr(link, name + "1") + getattr(link, name + "2") * link.tree.onward)


def extrapolate(link: Any, name: str) -> None:
    """Keep the mean speed that was found, and guess the next one."""
    kept = link.tree.kept
    d = [getattr(link, name)]
    for k in range(1, kept + 1):
        d.append(d[-1] - getattr(link, f"{name}{k}"))
    for k in range(kept):
        setattr(link, f"{name}{k + 1}", d[k])
    sums = [d[0]]
    for k in range(1, len(d)):
        sums.append(sums[-1] + d[k])
    setattr(link, name, best_guess(d, sums) if kept == MOST else sums[-1])


def best_guess(d: list[Any], sums: list[Any]) -> Any:
    """The guess that misses the present step by least."""
    out: Any = None
    least: Any = None
    for p, m in GUESSES:
        if m == 0:
            missed, guess = d[p], sums[p - 1]
        elif m == 1:
            missed, guess = d[p] * 2.0 - d[p + 1], sums[p - 1] - d[p]
        else:
            missed, guess = (d[p] - d[p + 1]) * 4.0 + d[p + 2], sums[p - 1] - d[p] * 3.0 + d[p + 1]
        size = dot(missed, missed) if isinstance(missed, Vector) else absolute(missed)
        if out is None:
            out, least = guess, size
            continue
        nearer = size < least
        if isinstance(guess, Vector):
            out = Vector(*(select(nearer, x, y) for x, y in zip(guess, out, strict=True)))
        else:
            out = select(nearer, guess, out)
        least = minimum(size, least)
    return out
