"""Derivatives of steps of a simulation's trees, as arrays: for `runtime.linearization` and `runtime.rollout`."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.strided import columns as columns_of
from sharnir.core.types import load_modules, np_real, real
from sharnir.emit.algebra import SYMMETRIC
from sharnir.engine.tree.adjoint_code import adjoint_kernel
from sharnir.engine.tree.code import TABLES, stored_fields
from sharnir.engine.tree.forest import ONE_AXIS
from sharnir.engine.tree.motion_code import motion_kernel
from sharnir.engine.tree.runtime import CPP, ROOM
from sharnir.engine.tree.storage import PUSH, ROW, ROW_APART, START
from sharnir.engine.tree.tangent import ENDS_SIZE, LANES, OF_LINKS, PARAMETERS, PARAMETERS_SIZE, RESULT, RESULT_SIZE, SEED_SIZE
from sharnir.engine.tree.tangent_code import tangent_kernel
from sharnir.errors import SimulationError


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
        self._seeds.assign(in_lanes(seeds, self.bound.device))

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
    """Steps of a simulation's trees that are made and kept.

    Args:
        trees: `direct.trees.Trees` of a simulation on a CPU.
        bound: what steps are given, an array of one `TreeStep`.
        columns: (link, field of `tangent.SEED`, number) of each command that varies.
        controls: (world, step, column) their values.
    """

    def __init__(self, trees: Any, bound: Any, columns: list[tuple[int, str, int]], controls: np.ndarray) -> None:
        m = trees.model
        self.trees, self.bound, self.columns, self.steps = trees, bound, columns, controls.shape[1]
        self.worlds, self.links, self.device = m.worlds, len(trees.plan.places), m.device
        rows = trees.solver._bound[0].tree.shape[0]
        at = [ROW * (i + 1) + START[name] + k for i, name, k in columns]
        pushes = np.array([name in PUSH for _, name, _ in columns])
        self._states = self._zeros((self.steps + 1) * rows * self.worlds)
        self._hits = wp.zeros(self.steps * self.worlds, dtype=wp.int32, device=self.device)
        kept = [self._states, self._hits, self._given(np.moveaxis(controls, 0, -1)), self._given(at, wp.int32)]
        kept += [self._given(np.where(pushes, 0.25 * trees.solver.dt**2, 1.0)), self._given(pushes)]
        self._before = [bound, self.steps, rows, len(columns)], kept
        self._memory = self._zeros(2 * (ROW + ROW_APART) * (self.links + 1) * self.worlds)

    def _zeros(self, n: int, dtype: Any = real) -> Any:
        return wp.zeros(n, dtype=dtype, device=self.device)

    def _given(self, x: Any, dtype: Any = real) -> Any:
        kind = np_real if dtype is real else np.int32
        return wp.array(np.ascontiguousarray(x, kind).ravel(), dtype=dtype, device=self.device)

    def make(self, seeds: np.ndarray, by_parameters: np.ndarray, begin: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Make the steps, and follow directions: (world, direction, link, number of `SEED`), and the same of `PARAMETERS`.

        They begin where the simulation stands, or, without `begin`, where they began before.

        Returns speeds (step, world, link, number), and how states change, (step, world, direction, link, number of `RESULT`).
        """
        kernel, count = motion_kernel(), seeds.shape[1]
        load_modules([kernel.module], self.device)
        blocks, told = -(-count // LANES), self._zeros(self.worlds, wp.int32)
        each = self.worlds * blocks * self.links * LANES
        speeds = self._zeros((self.steps + 1) * self.worlds * self.links * RESULT["speed"])
        results = self._zeros((self.steps + 1) * each * RESULT_SIZE)
        numbers, kept = self._before
        inputs = [
            *numbers,
            blocks,
            int(begin),
            *kept,
            self._memory,
            self._zeros(ROW * (self.links + 1) * LANES * self.worlds * blocks),
        ]
        inputs += [acts_of(self.trees), speeds, in_lanes(seeds, self.device), in_lanes(by_parameters, self.device), results, told]
        wp.launch(kernel, dim=self.worlds, device=self.device, inputs=inputs)
        self._check(told)
        found = results.numpy().reshape(self.steps + 1, self.worlds, blocks, self.links, RESULT_SIZE, LANES)
        found = np.moveaxis(found, -1, 3).reshape(self.steps + 1, self.worlds, -1, self.links, RESULT_SIZE)
        return speeds.numpy().reshape(self.steps + 1, self.worlds, self.links, -1), found[:, :, :count]

    def _check(self, told: Any) -> None:
        """Refuse steps that are divided."""
        missed = told.numpy()
        if (missed < 0).any():
            w = int(np.flatnonzero(missed < 0)[0])
            where = f" in world {w}" if self.worlds > 1 else ""
            dt = self.trees.solver.dt
            words = f"step {-1 - missed[w]} does not converge as a whole{where}; take a smaller dt than {dt:g} s"
            raise SimulationError(f"rollout: {words}")

    @property
    def hits(self) -> np.ndarray:
        """(step, world) whether something stopped at the end."""
        return np.asarray(self._hits.numpy().reshape(self.steps, self.worlds) != 0)

    def kept(self, link: int, name: str) -> np.ndarray:
        """(world, step, numbers) of a field of a link in all states."""
        at, kind = 2 + ROOM * link, self.trees.plan.places[link].kind
        for field, size in stored_fields(kind, True, CPP):
            if field == name:
                states = self._states.numpy().reshape(self.steps + 1, -1, self.worlds)
                found: np.ndarray = np.moveaxis(states[:, at : at + size], -1, 0).astype(float)
                return found
            at += size
        raise KeyError(name)

    def back(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of a cost, from those by states: (step, world, link, number of `RESULT`).

        Returns those by what is given, (step, world, link, number of `SEED`), at the start the state as well; and those by
        numbers of links, (world, link, number of `PARAMETERS`).
        """
        kernel, shape = adjoint_kernel(), (self.steps + 1, self.worlds, self.links)
        load_modules([kernel.module], self.device)
        out, told = self._zeros(int(np.prod(shape)) * SEED_SIZE), self._zeros(self.worlds, wp.int32)
        by_parameters = self._zeros(self.worlds * self.links * PARAMETERS_SIZE)
        numbers, kept = self._before
        inputs = [*numbers, *kept, self._memory, self._zeros(ROW * (self.links + 1) * self.worlds), acts_of(self.trees)]
        inputs += [self._given(cost), out, by_parameters, told]
        wp.launch(kernel, dim=self.worlds, device=self.device, inputs=inputs)
        self._check(told)
        return out.numpy().reshape(*shape, SEED_SIZE), by_parameters.numpy().reshape(*shape[1:], PARAMETERS_SIZE)

    def stiffness(self) -> dict[int, np.ndarray]:
        """Of links with drives or dampers, (world, step): what `laws.axis.resolved_share` judges."""
        numbers, at, out = self.numbers(self.trees.solver._bound[1]), dict[str, int](), dict[int, np.ndarray]()
        end = 0
        for name, size in PARAMETERS.items():
            at[name], end = end, end + size
        dt = self.trees.solver.dt
        for i, p in enumerate(self.trees.plan.places):
            if p.kind in ONE_AXIS:
                x = {name: numbers[:, i, k][:, None] for name, k in at.items()}
                kp, c = x["servo_kp"], x["damping"] + x["friction_viscous"] + x["servo_kd"]
                motor = (x["torque_constant"] * x["gear_ratio"]) ** 2 / np.where(x["resistance"] > 0, x["resistance"], np.inf)
                rotor = np.where(x["resistance"] > 0, x["rotor_inertia"] * x["gear_ratio"] ** 2, 0.0)
                known = self.kept(i, "SU")[..., 0]
                with np.errstate(divide="ignore", invalid="ignore"):
                    out[i] = np.where(known > 0, np.maximum(4 * dt * dt * kp, 2 * dt * (c + motor)) / (known + rotor), 0.0)
        return out

    def numbers(self, control: Any) -> np.ndarray:
        """`link_numbers` of now."""
        return link_numbers(self.trees, control)


def link_numbers(trees: Any, control: Any) -> np.ndarray:
    """(1 or worlds, link, number of `PARAMETERS`) as they are now."""
    m, plan = trees.model, copy(trees.plan)
    of_links = plan._numbers()
    worlds = max(1, *(x.shape[1] for x in of_links.values()))
    laws: dict[str, np.ndarray] = {}
    for name in PARAMETERS.keys() - OF_LINKS.keys():
        where, _, field = TABLES.get(name, f"control.{name}").rpartition(".")
        laws[name] = columns_of(getattr(control if where == "control" else getattr(m, where), field))
        worlds = max(worlds, laws[name].shape[1])
    out, at = np.zeros((worlds, len(plan.places), PARAMETERS_SIZE)), 0
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


def in_lanes(x: np.ndarray, device: Any) -> Any:
    """(world, direction, link, number) as kernels take them, some directions beside each other."""
    worlds, count, links, size = x.shape
    blocks = -(-count // LANES)
    given = np.zeros((worlds, blocks * LANES, links, size), np_real)
    given[:, :count] = x
    given = np.moveaxis(given.reshape(worlds, blocks, LANES, links, size), 2, -1)
    return wp.array(np.ascontiguousarray(given).ravel(), dtype=real, device=device)


def acts_of(trees: Any) -> Any:
    """1 for links with one axis, on which laws may act."""
    acts = np.tile([int(p.kind in ONE_AXIS) for p in trees.plan.places], trees.model.worlds)
    return wp.array(acts.astype(np.int32), dtype=wp.int32, device=trees.model.device)
