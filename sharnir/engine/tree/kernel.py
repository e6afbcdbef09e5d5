"""Warp kernels of the tree's step: one thread per world, many steps per launch."""

import hashlib
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import CPU_FLAGS
from sharnir.engine.tree.closures import RowTables
from sharnir.engine.tree.code import loop_code, loop_memory, state_size, stored_fields, unrolled_code
from sharnir.engine.tree.forest import USUAL, Forest
from sharnir.engine.tree.row_storage import packed_tables, row_memory
from sharnir.engine.tree.storage import TOGETHER, TOLERANCE

REALS: dict[str, Any] = {"double": wp.float64, "single": wp.float32}
CPP = {"double": "double", "single": "float"}
_kernels: dict[str, Any] = {}  # by module name


def tree_kernel(body: str, precision: str) -> Any:
    """The kernel whose threads run the given C++ body; the same kernel for the same body."""
    real = REALS[precision]
    name = "sharnir.tree_" + hashlib.sha256((precision + body).encode()).hexdigest()[:16]
    if name in _kernels:
        return _kernels[name]

    @wp.func_native(body)
    def tree_steps(
        state: wp.array(dtype=real), worlds: int, w: int, steps: int, h: real, tolerance: real, limit: int,
        parameters: wp.array(dtype=real), law_values: wp.array(dtype=real), parameter_stride: int, parameter_world: int,
        links: int, base_of: wp.array(dtype=int), kind_of: wp.array(dtype=int),
        acts_on: wp.array(dtype=int), law_tolerance: real, memory: wp.array(dtype=real),
        gx: real, gy: real, gz: real, row_tables: wp.array(dtype=int), row_numbers: wp.array(dtype=real), row_stride: int,
        row_world: int,
    ) -> int:  # fmt: skip
        """Advance a world; returns the number of iterations."""
        return 0

    @wp.kernel(module=name, enable_backward=False)
    def run_tree(
        state: wp.array(dtype=real), worlds: int, steps: int, h: real, tolerance: real, limit: int,
        parameters: wp.array(dtype=real), law_values: wp.array(dtype=real), parameter_stride: int, parameter_world: int,
        links: int, base_of: wp.array(dtype=int), kind_of: wp.array(dtype=int),
        acts_on: wp.array(dtype=int), law_tolerance: real, memory: wp.array(dtype=real),
        gx: real, gy: real, gz: real, row_tables: wp.array(dtype=int), row_numbers: wp.array(dtype=real), row_stride: int,
        row_world: int, iterations: wp.array(dtype=int),
    ):  # fmt: skip
        w = wp.tid()
        iterations[w] = tree_steps(
            state, worlds, w, steps, h, tolerance, limit, parameters, law_values, parameter_stride, parameter_world, links,
            base_of, kind_of, acts_on, law_tolerance, memory, gx, gy, gz, row_tables, row_numbers, row_stride, row_world,
        )  # fmt: skip

    options = {"fast_math": precision == "single", "enable_backward": False, "cpu_compiler_flags": CPU_FLAGS}
    run_tree.module.options |= options
    _kernels[name] = run_tree
    return run_tree


def kinds_of(forest: Forest) -> tuple[int, ...]:
    """Kinds of joints that code for any forest is to know: the usual ones, and those that the forest has beside."""
    return tuple(sorted({*USUAL, *(link.kind for link in forest.links)}))


class TreeRunner:
    """A forest in some worlds, stepped by emitted code.

    Args:
        forest: the links.
        h: step, s.
        specialize: code for this forest, instead of the loop that serves every forest.
        tolerance: error of a scaled mean speed (rad, m) that a step may leave; `storage.TOLERANCE` unless given.
        law_tolerance: impulse (N·m·s, N·s) up to which laws of an axis may be missed.
        limit: iterations of a step at most.
        per_world: `parameters` and `laws` are [number, world] instead of [number], for the caller to set.
        rows: of closures beside the forest; not with `specialize`.
    """

    def __init__(
        self, forest: Forest, h: float, *, specialize: bool = False, precision: str = "double", worlds: int = 1,
        device: Any = "cpu", gravity: tuple[float, float, float] = (0.0, 0.0, -9.81), tolerance: float | None = None,
        law_tolerance: float = 1e-12, limit: int = 30, per_world: bool = False, rows: RowTables | None = None,
    ) -> None:  # fmt: skip
        self.forest, self.h, self.worlds, self.device, self.gravity = forest, h, worlds, device, gravity
        self.tolerance = TOLERANCE[precision] if tolerance is None else tolerance
        self.law_tolerance, self.limit = law_tolerance, limit
        on_gpu = wp.get_device(device).is_cuda  # there less code counts for more than fewer operations
        real_name = CPP[precision]
        known = kinds_of(forest)
        if specialize and rows is not None:
            raise ValueError("specialize is True and rows are given: code for one forest knows no rows beside it")
        if specialize:
            body = unrolled_code(forest, real_name, factor_always=on_gpu)
        else:
            body = loop_code(real_name, kinds=known, rows=rows is not None)
        if not per_world:  # constant places need no registers for their addresses
            body = body.replace("*parameter_stride + w*parameter_world", "")
        real = REALS[precision]
        self._kernel = tree_kernel(body, precision)
        self.state = wp.zeros(state_size(forest, real_name) * worlds, dtype=real, device=device)
        self._strides = [worlds, 1] if per_world else [1, 0]

        def values(x: np.ndarray) -> Any:
            return wp.array(np.repeat(x.ravel(), self._strides[0]), dtype=real, device=device)

        self.parameters, self.laws = values(forest.table()), values(forest.law_table())

        def column(values: list[int]) -> Any:
            return wp.array(np.array(values, np.int32), dtype=int, device=device)

        self._tables = [column([link.base for link in forest.links]), column([link.kind for link in forest.links])]
        geared = set() if rows is None else rows.geared
        self._tables.append(column([int(bool(link.laws) or i in geared) for i, link in enumerate(forest.links)]))
        numbers = np.zeros(0) if rows is None else rows.parameters().ravel()
        self._rows = [column([] if rows is None else packed_tables(rows)), wp.array(numbers, dtype=real, device=device), 1, 0]
        memory = loop_memory(forest) + (0 if rows is None else row_memory(rows))
        room = -(-worlds // TOGETHER) * TOGETHER if on_gpu else worlds
        self._memory = wp.zeros(memory * room, dtype=real, device=device)
        self.iterations = wp.zeros(worlds, dtype=int, device=device)
        self._settings: Any = None  # of the recorded launch
        self._launch: Any = None
        self.rows: dict[tuple[int, str], slice] = {}
        at = 0
        for i, link in enumerate(forest.links):
            for name, size in stored_fields(link.kind, real=real_name):
                self.rows[i, name] = slice(at, at + size)
                at += size

    def numbers(self) -> np.ndarray:
        """The state as (numbers, worlds); on the CPU a view of it. `rows` says where a link's fields are."""
        return np.asarray(self.state.numpy()).reshape(-1, self.worlds)

    def step(self, n: int = 1) -> None:
        """Make n steps of all worlds; `iterations` counts theirs, [world]."""
        settings = (n, self.h, self.tolerance, self.law_tolerance, self.limit, self.gravity)
        if settings != self._settings:  # a recorded launch costs a third of a new one
            inputs = [self.state, self.worlds, n, self.h, self.tolerance, self.limit, self.parameters, self.laws]
            inputs += [*self._strides, len(self.forest)]
            inputs += [*self._tables, self.law_tolerance, self._memory, *map(float, self.gravity), *self._rows]
            self._launch = wp.launch(
                self._kernel, dim=self.worlds, inputs=inputs, outputs=[self.iterations], device=self.device, record_cmd=True
            )
            self._settings = settings
        self._launch.launch()
