"""Derivatives of steps of a simulation's trees, as arrays: for `runtime.linearization` and `runtime.rollout`."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.strided import columns as columns_of
from sharnir.emit.algebra import SYMMETRIC
from sharnir.core.types import load_modules, np_real, real
from sharnir.engine.tree.adjoint import OF_LINKS, PARAMETERS, PARAMETERS_SIZE
from sharnir.engine.tree.adjoint_code import adjoint_kernel, begin_motion
from sharnir.engine.tree.code import TABLES
from sharnir.engine.tree.forest import ONE_AXIS
from sharnir.engine.tree.storage import PUSH, ROW, ROW_APART, START
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

        def zeros(n: int) -> Any:
            return wp.zeros(n, dtype=real, device=device)

        some = self.worlds * self.blocks * self.links * LANES
        self._inputs = [zeros(2 * numbers * self.worlds), zeros(ROW * (self.links + 1) * LANES * self.worlds)]
        self._inputs += [acts_of(trees)]
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


class Motion:
    """Steps of a simulation's trees that are kept, to go back along them.

    Args:
        trees: `direct.trees.Trees` of a simulation on a CPU.
        bound: what steps are given: state, commands, and an array of one `TreeStep`.
        steps: how many.
        columns: (link, field of `tangent.SEED`, number) of each command that varies.
    """

    def __init__(self, trees: Any, bound: Any, steps: int, columns: list[tuple[int, str, int]]) -> None:
        m = trees.model
        self.trees, self.state, self.step, self.steps = trees, bound[0], bound[2], steps
        self.worlds, self.links, self.columns, self.device = m.worlds, len(trees.plan.places), columns, m.device
        self.live, self.live_hit = self.state.tree.numpy(), trees.hit.numpy()  # views
        self.states = np.zeros((steps + 1, *self.live.shape), np_real)
        self.hits = np.zeros((max(1, steps), self.worlds), np.int32)
        self.controls = np.zeros((max(1, steps), len(columns), self.worlds), np_real)
        self.fresh = wp.zeros(self.worlds, dtype=wp.int32, device=self.device)
        load_modules([begin_motion.module], self.device)
        wp.launch(begin_motion, dim=self.worlds, inputs=[self.step, self.fresh], device=self.device)
        self.states[0] = self.live
        self.live[0, self.fresh.numpy() == 1] = 0.0  # so that the step takes it up

    def keep(self, k: int) -> None:
        """Keep what step k led to."""
        self.states[k + 1] = self.live
        self.hits[k] = self.live_hit

    def back(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Slopes of a cost, from those by states: (step, world, link, number of `RESULT`).

        Returns those by what is given, (step, world, link, number of `SEED`), at the start the state as well; those by numbers of
        links, (world, link, number of `PARAMETERS`); and the step that does not converge as a whole, or −1.
        """
        kernel, shape = adjoint_kernel(), (self.steps + 1, self.worlds, self.links)
        load_modules([kernel.module], self.device)
        h2 = 0.25 * float(self.trees.solver.dt) ** 2
        at = [ROW * (i + 1) + START[name] + k for i, name, k in self.columns]
        pushes = [name in PUSH for _, name, _ in self.columns]
        out, told = np.zeros((*shape, SEED_SIZE), np_real), np.zeros(self.worlds, np.int32)
        by_parameters = np.zeros((self.worlds, self.links, PARAMETERS_SIZE), np_real)
        rows = (ROW + ROW_APART) * (self.links + 1)

        def given(x: Any, dtype: Any) -> Any:
            return wp.array(np.ascontiguousarray(x).ravel(), dtype=dtype, device=self.device, copy=False)

        wp.launch(
            kernel, dim=self.worlds, device=self.device,
            inputs=[
                self.step, self.fresh, self.steps, self.live.shape[0], len(at), given(self.states, real),
                given(self.hits, wp.int32), given(self.controls, real), given(np.array(at, np.int32), wp.int32),
                given(np.where(pushes, h2, 1.0).astype(np_real), real), given(np.array(pushes, np_real), real),
                wp.zeros(2 * rows * self.worlds, dtype=real, device=self.device),
                wp.zeros(ROW * (self.links + 1) * self.worlds, dtype=real, device=self.device), acts_of(self.trees),
                given(cost.astype(np_real), real), given(out, real), given(by_parameters, real), given(told, wp.int32),
            ],
        )  # fmt: skip
        return out, by_parameters, int(max(-1 - told.min(), -1))

    def numbers(self, control: Any) -> np.ndarray:
        """(1 or worlds, link, number of `PARAMETERS`) as they are now."""
        m, plan = self.trees.model, copy(self.trees.plan)
        of_links = plan._numbers()
        worlds = max(1, *(x.shape[1] for x in of_links.values()))
        laws: dict[str, np.ndarray] = {}
        for name in PARAMETERS.keys() - OF_LINKS.keys():
            where, _, field = TABLES.get(name, f"control.{name}").rpartition(".")
            laws[name] = columns_of(getattr(control if where == "control" else getattr(m, where), field))
            worlds = max(worlds, laws[name].shape[1])
        out, at = np.zeros((worlds, self.links, PARAMETERS_SIZE)), 0
        for name, size in PARAMETERS.items():
            if name in OF_LINKS:
                x = of_links[name]
                if name == "inertia":
                    x = np.stack([x[..., r, c] for r, c in SYMMETRIC], -1)
                out[:, :, at : at + size] = np.swapaxes(x.reshape(*x.shape[:2], size), 0, 1)
            else:
                for i, p in enumerate(plan.places):
                    if p.axis >= 0 and p.kind in ONE_AXIS:
                        out[:, i, at] = laws[name][p.axis]
            at += size
        return out


def acts_of(trees: Any) -> Any:
    """1 for links with one axis, on which laws may act."""
    acts = np.tile([int(p.kind in ONE_AXIS) for p in trees.plan.places], trees.model.worlds)
    return wp.array(acts.astype(np.int32), dtype=wp.int32, device=trees.model.device)
