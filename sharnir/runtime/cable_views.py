"""The view of one cable of a running simulation: names and NumPy values over the arrays beneath."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from sharnir.core.graphs import LOCK
from sharnir.errors import Bound, SimulationError
from sharnir.model.cable_tables import CableDescription, centre, rim, runs_of, span

Owner = Any  # the Simulation; it stands a floor above, so that it is not named here
ARC_PART = math.radians(10.0)  # of an arc as it is drawn


class CableView(Bound):
    """One cable of a running simulation; with several worlds, values have a leading world axis."""

    __slots__ = ("_cable", "_run", "_sim", "_span", "name")

    def __init__(self, sim: Owner, index: int, name: str) -> None:
        self._sim, self.name = sim, name
        paths: list[CableDescription] = sim.model.cable_paths
        self._cable = paths[index]
        self._span = sum(len(c.nodes) - 1 for c in paths[:index])
        self._run = sum(len(runs_of(c)) for c in paths[:index])

    def __repr__(self) -> str:
        return f"<cable {self.name!r}>"

    @property
    def _spans(self) -> slice:
        return slice(self._span, self._span + len(self._cable.nodes) - 1)

    @property
    def tension(self) -> Any:
        """(spans,) N, in each part between two places of its path, of the last step; 0 where it is slack."""
        return self._sim._out(np.array(self._sim._moving.cable_impulse[self._spans], float).T / self._sim.dt)

    @property
    def span_length(self) -> Any:
        """(spans,) m, from tangent point to tangent point."""
        return self._sim._out(np.array([[length for _, _, length in self._lines(w)] for w in range(self._sim.worlds)]))

    @property
    def wrap(self) -> Any:
        """(spans − 1,) rad, the angle about each sheave."""
        angle = np.array(self._sim._moving.cable_angle, float)[2 * self._span : 2 * self._spans.stop]
        return self._sim._out((angle[2::2] - angle[1:-1:2]).T)

    @property
    def slack(self) -> Any:
        """m, by which the cable is longer than its path; 0 (but for rounding) where it is taut."""
        return self._sim._out(self._slack())

    @property
    def length(self) -> Any:
        """m, of its path and what is slack; on drums nothing is counted. Settable: put in, or taken out, at the last end."""
        return self._sim._out(self._taken() + self._slack())

    @length.setter
    def length(self, value: Any) -> None:
        given = self._sim._in(value, 1, f"cable {self.name!r}", "length (m)").reshape(-1)
        if not np.all(given > 0):
            raise SimulationError(f"cable {self.name!r}: length is a finite length above 0 m, got {value!r}")
        by = given - (self._taken() + self._slack())
        with LOCK:
            rest = self._sim.state.cable_rest
            values = np.array(rest.numpy())
            values[self._run + len(runs_of(self._cable)) - 1] += by
            rest.assign(values)

    @property
    def points(self) -> Any:
        """(n, 3) m, world: its path, arcs as polylines; of the first world where there are several."""
        return self._path()[0]

    def _path(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3) m, the path in the first world, and (n − 1,) the span that each part belongs to, arcs to the one before."""
        out: list[np.ndarray] = []
        spans: list[int] = []
        nodes, angle = self._cable.nodes, np.array(self._sim._moving.cable_angle, float)[:, 0]
        lines = self._lines(0)
        for i, (a, b, _) in enumerate(lines):
            node = nodes[i]
            if i > 0 and node.radius:
                arc = angle[2 * (self._span + i)] - angle[2 * (self._span + i) - 1]
                place, turn = (np.array(x[:, 0], float) for x in (self._sim._moving.position, self._sim._moving.rotation))
                c, axis = centre(node, place, turn)
                start = out[-1] - c
                for part in np.linspace(0, arc, max(2, int(abs(arc) / ARC_PART) + 1))[1:-1]:
                    turned = start * math.cos(part) + np.cross(axis, start) * math.sin(part)
                    out.append(c + turned)
            out += [a, b]
            spans += [max(i - 1, 0)] * (len(out) - 2 - len(spans)) + [i]
        return np.array(out), np.array(spans)

    def _lines(self, w: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Both tangent points and the length of every span."""
        out = []
        place, turn = (np.array(x[:, w], float) for x in (self._sim._moving.position, self._sim._moving.rotation))
        for a, b in itertools.pairwise(self._cable.nodes):
            n, l = span(f"cable {self.name!r}", a, b, place, turn)
            (c1, a1), (c2, a2) = centre(a, place, turn), centre(b, place, turn)
            out.append((c1 + rim(n, a1, a.radius), c2 + rim(n, a2, b.radius), l))
        return out

    def _held(self) -> np.ndarray:
        """(worlds,) m, ΣC of all spans, see `cables`."""
        radii = np.array([[a.radius, b.radius] for a, b in zip(self._cable.nodes, self._cable.nodes[1:], strict=False)])
        angle = np.array(self._sim._moving.cable_angle, float)[2 * self._span : 2 * self._spans.stop]
        lengths = np.array([[l for _, _, l in self._lines(w)] for w in range(self._sim.worlds)])
        return np.asarray(lengths.sum(1) + (radii[:, :1] * angle[0::2] - radii[:, 1:] * angle[1::2]).sum(0))

    def _slack(self) -> np.ndarray:
        runs = slice(self._run, self._run + len(runs_of(self._cable)))
        return np.asarray(np.array(self._sim._moving.cable_rest, float)[runs].sum(0) - self._held())

    def _taken(self) -> np.ndarray:
        """(worlds,) m, spans and arcs."""
        angle = np.array(self._sim._moving.cable_angle, float)[2 * self._span : 2 * self._spans.stop]
        lengths = np.array([[l for _, _, l in self._lines(w)] for w in range(self._sim.worlds)]).sum(1)
        radii = np.array([node.radius for node in self._cable.nodes[1:-1]])
        return np.asarray(lengths + (radii[:, None] * (angle[2::2] - angle[1:-1:2])).sum(0))
