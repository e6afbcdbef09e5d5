"""Equal branches of a forest, which code for one model has once, in a loop over them (`model_code`).

Branches hang on the same link, or on the ground, and have the same joints, laws and points of contact in the same order; their
numbers may differ. The first of them stands for all: a number of its links is an array with an entry for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

from sharnir.engine.tree.forest import OFF, Forest

FEWEST = 2  # equal branches
BRANCH = "branch"
"""The variable of emitted code that counts them."""


class Branches:
    """Groups of equal branches.

    Args:
        forest: the links.
        alike: of every link, what has to be equal.
    """

    def __init__(self, forest: Forest, alike: Sequence[Hashable]) -> None:
        self.forest, self.alike = forest, alike
        self.members: dict[
            int, list[list[int]]
        ] = {}  # by the first link of the first branch: the links of every branch, in order
        self.of: dict[int, tuple[int, int, int]] = {}  # of a link in a branch: that first link, the branch, the place in it
        roots = [i for i, link in enumerate(forest.links) if link.base < 0 and link.kind != OFF]
        self._group(roots)

    def _under(self, i: int) -> list[int]:
        """A link and all that hangs on it."""
        out = [i]
        for child in self.forest.children[i]:
            out += self._under(child)
        return sorted(out)

    def _signature(self, i: int) -> Hashable:
        return self.alike[i], tuple(self._signature(child) for child in self.forest.children[i])

    def _group(self, siblings: list[int]) -> None:
        classes: dict[Hashable, list[int]] = {}
        for i in siblings:
            classes.setdefault(self._signature(i), []).append(i)
        for some in classes.values():
            if len(some) < FEWEST:
                self._group(self.forest.children[some[0]])
                continue
            self.members[some[0]] = [self._under(i) for i in some]
            for branch, links in enumerate(self.members[some[0]]):
                for place, i in enumerate(links):
                    self.of[i] = some[0], branch, place

    def first(self, i: int) -> int:
        """The link that stands for a link."""
        return self.members[self.of[i][0]][0][self.of[i][2]] if i in self.of else i

    def all(self, i: int) -> list[int]:
        """The links that a link stands for."""
        if i not in self.of:
            return [i]
        group, _, place = self.of[i]
        return [links[place] for links in self.members[group]]

    def count(self, i: int) -> int:
        """How many links it stands for; 0: it is in no branch."""
        return len(self.members[self.of[i][0]]) if i in self.of else 0

    def where(self, i: int) -> str:
        """Index of a link in arrays of the one that stands for it, in C++; "" where it is in no branch."""
        return f"[{self.of[i][1]}]" if i in self.of else ""

    def value(self, i: int, of: Callable[[int], int]) -> str:
        """C++: a whole number of the link for which the link i stands in the present branch."""
        return by_branch([of(k) for k in self.all(i)])


def by_branch(values: list[Any]) -> str:
    """C++: a whole number by the branch, or the number that all have."""
    first, steps = values[0], {b - a for a, b in pairwise(values)}
    if steps <= {0}:
        return str(first)
    if len(steps) == 1:
        return f"({first} + {steps.pop()}*{BRANCH})"
    chosen = str(values[-1])
    for k in reversed(range(len(values) - 1)):
        chosen = f"{BRANCH} == {k} ? {values[k]} : {chosen}"
    return f"({chosen})"
