"""Warp kernel of the tree's step with rows beside the forest: one thread per world, many steps per launch."""

import hashlib
from typing import Any

import numpy as np
import warp as wp

from sharnir.engine.tree.closures import RowTables
from sharnir.engine.tree.code import loop_code, loop_memory, state_size, stored_fields
from sharnir.engine.tree.kernel import CPP, REALS
from sharnir.engine.tree.row_storage import packed_tables, row_memory
from sharnir.engine.tree.storage import TOLERANCE

_kernels: dict[str, Any] = {}  # by module name


def row_kernel(body: str, precision: str) -> Any:
    """The kernel whose threads run the given C++ body; the same kernel for the same body."""
    real = REALS[precision]
    name = "sharnir.rows_" + hashlib.sha256((precision + body).encode()).hexdigest()[:16]
    if name in _kernels:
        return _kernels[name]

    @wp.func_native(body)
    def tree_steps(
        state: wp.array(dtype=real), worlds: int, w: int, steps: int, h: real, tolerance: real, limit: int,
        parameters: wp.array(dtype=real), law_values: wp.array(dtype=real), parameter_stride: int, parameter_world: int,
        links: int, base_of: wp.array(dtype=int), kind_of: wp.array(dtype=int), acts_on: wp.array(dtype=int),
        law_tolerance: real, memory: wp.array(dtype=real),
        gx: real, gy: real, gz: real, row_tables: wp.array(dtype=int), row_numbers: wp.array(dtype=real), row_stride: int,
        row_world: int,
    ) -> int:  # fmt: skip
        """Advance a world; returns the number of iterations."""
        return 0

    @wp.kernel(module=name, enable_backward=False)
    def run_tree(
        state: wp.array(dtype=real), worlds: int, steps: int, h: real, tolerance: real, limit: int,
        parameters: wp.array(dtype=real), law_values: wp.array(dtype=real), parameter_stride: int, parameter_world: int,
        links: int, base_of: wp.array(dtype=int), kind_of: wp.array(dtype=int), acts_on: wp.array(dtype=int),
        law_tolerance: real, memory: wp.array(dtype=real),
        gx: real, gy: real, gz: real, row_tables: wp.array(dtype=int), row_numbers: wp.array(dtype=real), row_stride: int,
        row_world: int, iterations: wp.array(dtype=int),
    ):  # fmt: skip
        w = wp.tid()
        iterations[w] = tree_steps(
            state, worlds, w, steps, h, tolerance, limit, parameters, law_values, parameter_stride, parameter_world, links,
            base_of, kind_of, acts_on, law_tolerance, memory, gx, gy, gz, row_tables, row_numbers, row_stride, row_world,
        )  # fmt: skip

    run_tree.module.options |= {"fast_math": precision == "single", "enable_backward": False}
    _kernels[name] = run_tree
    return run_tree


class RowRunner:
    """A forest with rows beside it in some worlds, stepped by emitted code; arguments as those of `TreeRunner`."""

    def __init__(
        self, tables: RowTables, h: float, *, precision: str = "double", worlds: int = 1, device: Any = "cpu",
        gravity: tuple[float, float, float] = (0.0, 0.0, -9.81), tolerance: float | None = None, law_tolerance: float = 1e-12,
        limit: int = 30,
    ) -> None:  # fmt: skip
        forest = self.forest = tables.forest
        self.tables, self.h, self.worlds, self.device, self.gravity = tables, h, worlds, device, gravity
        self.tolerance = TOLERANCE[precision] if tolerance is None else tolerance
        self.law_tolerance, self.limit = law_tolerance, limit
        real = REALS[precision]
        self._kernel = row_kernel(loop_code(CPP[precision], rows=True), precision)
        self.state = wp.zeros(state_size(forest, CPP[precision]) * worlds, dtype=real, device=device)
        self.parameters = wp.array(forest.table().ravel(), dtype=real, device=device)
        self.laws = wp.array(forest.law_table().ravel(), dtype=real, device=device)

        def column(values: list[int]) -> Any:
            return wp.array(np.array(values, np.int32), dtype=int, device=device)

        self._tables = [column([link.base for link in forest.links]), column([link.kind for link in forest.links])]
        self._tables.append(column([int(bool(link.laws) or i in tables.geared) for i, link in enumerate(forest.links)]))
        self._rows = [column(packed_tables(tables)), wp.array(tables.parameters().ravel(), dtype=real, device=device)]
        self._memory = wp.zeros((loop_memory(forest) + row_memory(tables)) * worlds, dtype=real, device=device)
        self.iterations = wp.zeros(worlds, dtype=int, device=device)
        self.rows: dict[tuple[int, str], slice] = {}
        at = 0
        for i, link in enumerate(forest.links):
            for name, size in stored_fields(link.kind, real=CPP[precision]):
                self.rows[i, name] = slice(at, at + size)
                at += size

    def numbers(self) -> np.ndarray:
        """The state as (numbers, worlds); on the CPU a view of it. `rows` says where a link's fields are."""
        return np.asarray(self.state.numpy()).reshape(-1, self.worlds)

    def step(self, n: int = 1) -> None:
        """Make n steps of all worlds; `iterations` counts theirs, [world]."""
        inputs = [self.state, self.worlds, n, self.h, self.tolerance, self.limit, self.parameters, self.laws, 1, 0]
        inputs += [len(self.forest), *self._tables, self.law_tolerance, self._memory, *map(float, self.gravity)]
        inputs += [*self._rows, 1, 0]
        wp.launch(self._kernel, dim=self.worlds, inputs=inputs, outputs=[self.iterations], device=self.device)
