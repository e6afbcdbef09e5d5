"""What ropes add to the direct solver: joints, what acts on them, bodies and ropes are found in one solve."""

from __future__ import annotations

from typing import Any

import warp as wp

from sharnir.core.types import EPSILON, alone, load_modules, real
from sharnir.engine.base import Solver, check_iterations
from sharnir.engine.direct.data import SIDES, PortRows, Roped
from sharnir.engine.direct.energy.rope import TOUCHING, energy_rope_steps
from sharnir.engine.rope.data import MIXED, PORT, RopeSettings, RopeStep, RopeTable
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.ports import make_ports
from sharnir.engine.rope.solver import PASSES, TOLERANCE, rope_settings, rope_step, shared
from sharnir.engine.rope.touch_data import RopeTouch
from sharnir.engine.rope.touch_tables import touch_table, touches
from sharnir.model.model import Control, Model, State, fill
from sharnir.model.rope_state import ROPE_STATE_FIELDS, RopeState


class RopesOnTrees:
    """The ropes of a `SolverDirect`: they meet the bodies of its trees at ports (`rope.ports`).

    Args:
        solver: which has the model, laid out for trees, and the settings.
        iterations, tolerance: see `SolverRope`.
        touching: points of contact of ropes that steps in joint coordinates left.
    """

    def __init__(self, solver: Solver, iterations: int | None, tolerance: float | None, touching: Any = None) -> None:
        self.model: Model = solver.model
        self.device, self._collider = solver.device, solver.collider
        self.iterations = PASSES if iterations is None else check_iterations(iterations, 1, "rope_iterations")
        tolerance = max(TOLERANCE if tolerance is None else tolerance, 100 * EPSILON)
        self.settings: Any = rope_settings(RopeSettings(), tolerance, [self.iterations], self.device)
        self.settings.dt, self.settings.gravity = solver.settings.dt, solver.settings.gravity
        self.kernel = energy_rope_steps if self.model.collision is None else TOUCHING
        self.touching = touching
        if touching is None and touches(self.model):
            self.touching = touch_table(self.model, None)

    @property
    def ports(self) -> int:
        """Number of ends at which ropes meet trees beside the one that each hangs on."""
        return int((self.model.ropes.table.kind.numpy() == PORT).sum())

    @property
    def entries(self) -> int:
        """Points of contact of ropes for which the small problem has room."""
        return 0 if self.touching is None else int(self.touching.columns) // 3

    def make_room(self) -> None:
        """Room for twice as many of them; to be bound again."""
        self.touching = touch_table(self.model, None, self.touching)

    def bind(self, s: Any, state: State, control: Control, moves_with: list[int]) -> None:
        """Give the structure of the trees what ropes need of it, and make those of the ropes."""
        m = self.model
        rope = rope_step(m, state, control, self.settings)
        s.roped = 1
        bodies = s.position.shape[0]
        fill(s, m, bodies, "rope_A rope_B rope_D rope_l rope_a")
        rope.body.A, rope.body.B, rope.body.D = s.rope_A, s.rope_B, s.rope_D
        rope.body.v, rope.body.w, rope.body.x, rope.body.q = s.work.acceleration, s.work.turning, s.position, s.rotation
        rope.body.dv, rope.body.dw = s.work.change_l, s.work.change_a
        rope.h, rope.kick = s.drift, s.kick
        if self.touching is not None:  # surfaces act on a rope's points as what is tied to them does
            table = shared(rope.ropes, RopeTable)
            table.tied = wp.full(table.count, 1, dtype=wp.int32, device=self.device)
            rope.ropes = table
        ports = make_ports(m.ropes, moves_with)
        if m.collision is not None:
            touch = s.touch
            touch.ports = self._port_rows(ports, bodies, touch.line.shape[0])
            s.touch = touch
        other = self._apart(s, rope, bodies)
        self._kept = rope, other, ports
        self._roped: Any = Roped()
        self._roped.rope, self._roped.other = (alone(x, RopeStep, self.device) for x in (rope, other))
        self._roped.ports = alone(ports, Ports, self.device)
        self._roped.touches = int(self.touching is not None)
        if self.touching is not None:
            self._roped.touch = alone(self.touching, RopeTouch, self.device)
            self._roped.collision = self._collider.array
        load_modules([self.kernel.module], self.device)

    def _port_rows(self, ports: Any, bodies: int, lines: int) -> Any:
        """What contacts need of the ports: the same matrix, and room for its rows as pushes on bodies."""
        rows: Any = PortRows()
        rows.count = 3 * ports.count
        rows.matrix, rows.first, rows.last = ports.matrix, ports.first, ports.last
        fill(rows, self.model, rows.count, "x")
        fill(rows, self.model, int(SIDES) * rows.count, "body push_l push_a rate_l rate_a")
        fill(rows, self.model, bodies, "kept_l kept_a")
        rows.W = wp.zeros((lines, rows.count, self.model.worlds), dtype=real, device=self.device)
        self._rows = rows  # its arrays stay alive
        return rows

    def join(self, step: Any) -> None:
        """Take the structure of the trees' step, on the device."""
        self._roped.step = step
        self._array = alone(self._roped, Roped, self.device)

    def _apart(self, s: Any, rope: Any, bodies: int) -> Any:
        """Arrays of its own: arms by which points move, mixed passes; returns a state to go back to."""
        m = self.model
        fill(rope.body, m, bodies, "last_v last_w")
        fill(rope.body, m, (int(MIXED) + 1) * bodies, "mix_fv mix_fw mix_v mix_w")
        fill(rope.work, m, 2 * m.ropes.count, "end_arm")
        fill(rope.work, m, m.ropes.table.ties, "tie_end")
        fill(rope.work, m, (int(MIXED) + 1) * s.row_impulse.shape[0], "mix_rows")
        safe = shared(rope, RopeStep)
        safe.state = RopeState()
        for name in ROPE_STATE_FIELDS:
            setattr(safe.state, name, wp.empty_like(getattr(rope.state, name)))
        return safe

    def make(self, first: int, worlds: int, steps: Any) -> None:
        """Launch the steps of a call."""
        wp.launch(self.kernel, dim=worlds, inputs=[self._array, first, steps], device=self.device)
