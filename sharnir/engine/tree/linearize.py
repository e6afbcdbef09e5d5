"""Derivatives of the next step of a simulation's trees, as arrays: for `runtime.linearization`."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import load_modules, np_real, real
from sharnir.engine.tree.forest import ONE_AXIS
from sharnir.engine.tree.storage import ROW, ROW_APART
from sharnir.engine.tree.tangent import ENDS_SIZE, LANES, RESULT_SIZE, SEED_SIZE
from sharnir.engine.tree.tangent_code import tangent_kernel


class Directions:
    """Follows directions through the next step of trees.

    Args:
        trees: `direct.trees.Trees` of a simulation on a CPU.
        bound: what steps are given, an array of one `TreeStep`.
        count: how many directions, in each world.
    """

    def __init__(self, trees: Any, bound: Any, count: int) -> None:
        m, places = trees.model, trees.plan.places
        self.bound, self.links, self.worlds, device = bound, len(places), m.worlds, m.device
        self.count, self.blocks = count, -(-count // LANES)
        self.kernel = tangent_kernel()
        load_modules([self.kernel.module], device)
        numbers = (ROW + ROW_APART) * (self.links + 1)
        acts = np.tile([int(p.kind in ONE_AXIS) for p in places], self.worlds)

        def zeros(n: int) -> Any:
            return wp.zeros(n, dtype=real, device=device)

        some = self.worlds * self.blocks * self.links * LANES
        self._inputs = [zeros(2 * numbers * self.worlds), zeros(ROW * (self.links + 1) * LANES * self.worlds)]
        self._inputs += [wp.array(acts.astype(np.int32), dtype=wp.int32, device=device)]
        self._seeds, self._results = zeros(some * SEED_SIZE), zeros(some * RESULT_SIZE)
        self._ends = zeros(self.worlds * self.links * ENDS_SIZE)
        self._told = wp.zeros(self.worlds, dtype=wp.int32, device=device)
        self.results: Any = self._results.numpy()  # views
        self.told: np.ndarray = self._told.numpy()
        self.ends: Any = self._ends.numpy().reshape(self.worlds, self.links, ENDS_SIZE)
        """(world, link, number of `ENDS`) of the step itself."""
        self._launch: Any = None

    def seed(self, seeds: np.ndarray) -> None:
        """Give the directions: (world, direction, link, number of `SEED`)."""
        given = np.zeros((self.worlds, self.blocks * LANES, self.links, SEED_SIZE), np_real)
        given[:, : self.count] = seeds
        shape = (self.worlds, self.blocks, LANES, self.links, SEED_SIZE)
        self._seeds.assign(np.moveaxis(given.reshape(shape), 2, -1).ravel())

    def place(self, link: int, number: int) -> np.ndarray:
        """(world, direction) where a number of `RESULT` of a link stands in `results`."""
        world, k = np.arange(self.worlds)[:, None], np.arange(self.count)[None]
        found: np.ndarray = (((world * self.blocks + k // LANES) * self.links + link) * RESULT_SIZE + number) * LANES + k % LANES
        return found

    def follow(self) -> np.ndarray:
        """Follow the directions; (world,) what is told of each world."""
        if self._launch is None:
            inputs = [self.bound, 0, self.blocks, *self._inputs, self._seeds, self._results, self._ends, self._told]
            how = {"device": self.bound.device, "record_cmd": True}
            self._launch = wp.launch(self.kernel, dim=self.worlds, inputs=inputs, **how)
        self._launch.launch()
        return self.told
