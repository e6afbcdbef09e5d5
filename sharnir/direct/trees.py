"""Trees in joint coordinates, as `SolverDirect` steps them (`engine.tree`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from sharnir.engine.tree.build import Plan
from sharnir.engine.tree.forest import BALL, PRESCRIBED, ROTOR, SLIDES, TURNS
from sharnir.engine.tree.runtime import ROOM, TreeSettings, TreeStep, generic_kernel
from sharnir.engine.tree.storage import ROW, ROW_APART
from sharnir.model import KINEMATIC, Control, Model, State, fill, scene_scale
from sharnir.rope.solver import HEARD, MOST_PASSES, NEVER
from sharnir.sleep import SLOWEST, joining, reaches, rest_of
from sharnir.solver import write
from sharnir.spatial import matrix_to_quat
from sharnir.tables import table
from sharnir.types import PRECISION, alone, load_modules, quat, real, vec3

TOLERANCE = {"double": 2e-14, "single": 5e-6}  # error of mean speeds that iterations may leave, of the scene's speed
ROUNDING = {"double": 1e-16, "single": 1e-7}  # rad or scene lengths, times the links: what changes by rounding
LAW_TOLERANCE, LEAST_LAW = 1e-12, 1e-14  # of the scene's impulses: by which a law may be missed, and the least that is asked for
FINEST = 1e-4  # rad or scene lengths in half a step at the scene's speed: finer is rounding
PASSES = 30  # of an iteration: then the step is divided


class Trees:
    """The trees of a solver's model: what their kernel is given.

    Args:
        solver: the `SolverDirect` whose model it is.
    """

    def __init__(self, solver: Any) -> None:
        self.solver, self.model = solver, solver.model
        self.plan = Plan(self.model)
        m = self.model
        self.measures = not (m.bodies.motion.numpy() == KINEMATIC).any()
        """Whether steps measure the energy that is given: all but that of bodies on prescribed motions."""
        self.work = wp.zeros(m.worlds, dtype=real, device=m.device)
        self.rotors = [p.body for p in self.plan.places if p.kind == ROTOR]

    @staticmethod
    def cover(model: Model) -> bool:
        """Whether all of a model is trees: nothing touches, no rope hangs, nothing joins links beside the forest."""
        if model.collision is not None or model.ropes is not None or model.casts or not len(model.com):
            return False
        return not Plan(model).beside

    def act_on(self, control: Control) -> bool:
        """Whether all laws that act are known to the trees."""
        m = self.model
        if not m.speeds:
            return True
        motors = m.axes.resistance.numpy().any(-1)
        friction = control.friction_static.numpy() + control.friction_dynamic.numpy() + control.friction_load.numpy()
        groups = m.axes.group.numpy()
        several = {p.axis: len(p.slots) or 3 for p in self.plan.places if p.kind in (BALL, SLIDES, TURNS)}
        for k, kind in enumerate(m.joint_kinds):
            axes = range(int(m.v_start[k]), int(m.v_start[k]) + kind.v_size)
            together = {a + n for a in axes if a in several for n in range(several[a])}
            if motors[sorted(together)].any():
                return False
            single = [a for a in axes if a not in together]
            shared = [a for a in single if (groups[single] == groups[a]).sum() > 1]
            if friction[shared].any():
                return False
        return True

    @property
    def rows(self) -> int:
        """Numbers of `State.tree`."""
        return 2 + ROOM * len(self.plan.places)

    @property
    def takes(self) -> float:
        """About how long a pass takes on one core, s."""
        return 0.3e-6 * max(1, len(self.plan.places))

    def caps(self, iterations: int | None) -> list[int]:
        """Most passes of an iteration and of a step; 1 where a step that has used them up ends as it is; steps of a launch."""
        most = MOST_PASSES if iterations is None else iterations
        steps = max(1, int(HEARD / (4 * self.takes))) if wp.get_device(self.model.device).is_cpu else NEVER
        return [0, PASSES, most, int(iterations is not None), 0, 1, steps, 0]

    def bind(self, state: State, control: Control) -> tuple[Any, Any]:
        """The structure for these arrays, as an array of one, and itself."""
        solver, m, plan = self.solver, self.model, self.plan
        device, places, n = m.device, plan.places, len(plan.places)
        t = TreeStep()
        t.bodies, t.joints, t.axes, t.drives, t.control = m.bodies, m.joints, m.axes, m.drives, control
        t.state = t.now = state
        t.settings = TreeSettings()
        for name in TreeSettings.vars:  # type: ignore[attr-defined]
            setattr(t.settings, name, getattr(solver.settings, name))
        t.tally, t.links, t.worlds = solver.tally, n, m.worlds

        def ints(values: list[int]) -> Any:
            return wp.array(np.array(values, np.int32), dtype=wp.int32, device=device)

        carries: list[int] = []
        number: list[int] = []
        body = -1
        for p in reversed(places):
            body = p.body if p.body >= 0 else body
            carries.insert(0, body)
        for p in places:
            number.append(p.axis - int(m.v_start[p.joint]) if p.axis >= 0 else 0)
        t.base_built, t.kind_built = ints([p.base for p in places]), ints([p.kind for p in places])
        t.joint, t.body, t.carries, t.number = (
            ints([p.joint for p in places]),
            ints([p.body for p in places]),
            ints(carries),
            ints(number),
        )
        t.axis, t.sense = ints([p.axis for p in places]), ints([p.sense for p in places])
        t.slides = ints([3 if p.kind == BALL else len(p.slots) for p in places])
        t.first = ints([2 + ROOM * i for i in range(n)])
        t.base, t.kind, t.acts = (wp.full(n * m.worlds, -2, dtype=wp.int32, device=device) for _ in range(3))
        x = plan.numbers
        t.frame = table(matrix_to_quat(x["frame"]), quat, m.worlds, device)
        t.anchor, t.com = (table(x[name], vec3, m.worlds, device) for name in ("anchor", "com"))
        t.own_turn = table(matrix_to_quat(plan.own_turn), quat, m.worlds, device)
        t.own_point = table(plan.own_point, vec3, m.worlds, device)
        numbers = plan.table()
        varied = numbers.shape[1] > 1
        t.parameters = wp.array(numbers.ravel(), dtype=real, device=device)
        t.parameter_stride, t.parameter_world = numbers.shape[1], int(varied)
        t.memory = wp.zeros((ROW + ROW_APART) * (n + 1) * m.worlds, dtype=real, device=device)
        on_cpu = wp.get_device(device).is_cpu
        t.memory_number, t.memory_world = (1, (ROW + ROW_APART) * (n + 1)) if on_cpu else (m.worlds, 1)
        t.own_axes = 0
        mass, length, speed = scene_scale(m, solver.dt)
        t.tolerance = TOLERANCE[PRECISION] * max(0.5 * solver.dt * speed / length, FINEST)
        t.tolerance *= max(1.0, 0.1 * float(solver.settings.tolerance.numpy()[2]))
        t.rounding = max(400 * t.tolerance, ROUNDING[PRECISION] * len(places))
        impulse = mass * length * speed
        t.law_tolerance, t.per_change = LAW_TOLERANCE * impulse * min(1.0, 1e3 * solver.dt), 1.0
        if int(solver.settings.absolute.numpy()[0]):  # an impulse, N·s or N·m·s
            t.law_tolerance = max(float(solver.settings.tolerance.numpy()[0]), LEAST_LAW * impulse)
            t.per_change = 2.0 * mass * length / solver.dt
        reach = reaches(m)
        t.reach = wp.array(
            [reach[p.body] if p.body >= 0 and p.kind != PRESCRIBED else -1.0 for p in places], dtype=real, device=device
        )
        t.slowest = SLOWEST * speed
        strength = np.minimum(m.joints.break_force.numpy(), m.joints.break_torque.numpy()) if m.joint_kinds else np.ones(0)
        t.breakable = int(((strength < 1e30) & (strength > 0)).any())
        t.work = self.work
        fill(t, m, n, "turn origin")
        fill(t, m, None, "pushed passes change part taken hit slow loaded")
        t.parts, t.projected, t.done, t.residual = solver.parts, solver.projected, solver.done, solver.residual
        t.grades, t.made = solver.grades, solver._made
        solver._watch(state, control, 0)
        t.contacts = joining(m, state, control)
        self._rest = rest_of(m, solver.settings, state, state, control, t.contacts)
        t.rest = self._rest[0]
        kinds = {p.kind for p in places if p.kind >= 0}
        solver._kernel, solver._passes = generic_kernel(int(m.drives.count) > 0, kinds), t.passes
        solver._pace = self.takes
        write(solver.settings.iterations, solver._caps(solver._capped))
        load_modules([solver._kernel.module], device)
        return alone(t, TreeStep, device), t
