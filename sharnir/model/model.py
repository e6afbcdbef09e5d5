"""Model (what never changes), State (what a step changes), Control (what a user commands).

Per-world arrays are [item, world], the world index last; body 0 is the world itself, at rest at the origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from sharnir.core.strided import of_first
from sharnir.core.types import mat33, np_real, quat, real, vec3
from sharnir.model.actuators import Axis, DCMotor, Servo
from sharnir.model.cables import CableTable
from sharnir.model.joint_types import AxisTable, DriveTable, GearTable, JointTable
from sharnir.model.rope_state import RopeControl, RopeState, arrays_of

FIXED, KINEMATIC, DYNAMIC = 0, 1, 2
DRIVE_WORDS = 4  # commands, and states, of a drive of the table
CAST_WORDS = 5  # commands of a raycast wheel: torque, speed, kd, most, brake
MOTIONS = {"fixed": FIXED, "kinematic": KINEMATIC, "dynamic": DYNAMIC}


@wp.struct
class BodyTable:
    """Constant data of all bodies: kg, kg·m² about the centre of mass in body axes; inverse 0 where the body does not yield."""

    count: wp.int32
    motion: wp.array(dtype=wp.int32)
    mass: wp.array2d(dtype=real)  # [body, world], these and below; shared by all worlds until they are varied (`tables`)
    inv_mass: wp.array2d(dtype=real)
    inertia: wp.array2d(dtype=mat33)
    inv_inertia: wp.array2d(dtype=mat33)


@wp.struct
class State:
    """What a step changes. Positions are those of the centres of mass; world axes throughout."""

    position: wp.array2d(dtype=vec3)  # [body, world] m
    rest: wp.array2d(dtype=vec3)  # [body, world] m, what rounding dropped from `position`
    rotation: wp.array2d(dtype=quat)  # [body, world]
    velocity: wp.array2d(dtype=vec3)  # [body, world] m/s
    spin: wp.array2d(dtype=vec3)  # [body, world] rad/s; of a dynamic body it follows from `momentum`
    momentum: wp.array2d(dtype=vec3)  # [body, world] angular momentum about the centre of mass, kg·m²/s: the stored quantity
    acceleration: wp.array2d(dtype=vec3)  # [body, world] m/s², mean over the last step
    joint_force: wp.array2d(dtype=vec3)  # [joint, world] constraint impulse on the child at its anchor, N·s
    joint_torque: wp.array2d(dtype=vec3)  # [joint, world] constraint impulse moment on the child, N·m·s
    gear_impulse: wp.array2d(dtype=real)  # [gear, world] N·m·s (or N·s) on the first axis
    gear_start: wp.array2d(dtype=real)  # [gear, world] q_a − ratio · q_b, to be kept
    q: wp.array2d(dtype=real)  # [coordinate, world] m, rad; angles are followed step by step, the rest when read
    qd: wp.array2d(dtype=real)  # [speed, world] m/s, rad/s, when read
    axis_impulse: wp.array2d(dtype=real)  # [speed, world] N·s, N·m·s: all that acts on the free axis
    friction_impulse: wp.array2d(dtype=real)  # [speed, world] its dry friction
    limit_impulse: wp.array2d(dtype=real)  # [speed, world] its limit
    drive_impulse: wp.array2d(dtype=real)  # [speed, world] its servo or motor
    current: wp.array2d(dtype=real)  # [speed, world] A, of a DC motor
    stuck: wp.array2d(dtype=wp.int32)  # [speed, world] 1 where friction holds the axis
    dissipated: wp.array2d(dtype=real)  # [joint, world] J, by friction and dampers in the last step
    spring_impulse: wp.array2d(dtype=real)  # [spring, world] N·s
    cable_rest: wp.array2d(dtype=real)  # [run, world] m, what spans of a run hold where it is taut (`cables`)
    cable_angle: wp.array2d(dtype=real)  # [end of a span, world] rad, turns counted
    cable_impulse: wp.array2d(dtype=real)  # [span, world] N·s, tension
    drive_state: wp.array2d(dtype=real)  # [4 · drive + number, world] own (`laws.drives`), two a battery or a raycast wheel
    cable_slides: wp.array2d(dtype=wp.int32)  # [run, world] ±1: slides over the rough sheave after it
    mid_velocity: wp.array2d(dtype=vec3)  # [body, world] half a step before the pose; these and below, of some solvers alone
    mid_momentum: wp.array2d(dtype=vec3)
    mid_force: wp.array2d(dtype=vec3)  # [joint, world] joint_force and joint_torque of the step that led to the pose
    mid_torque: wp.array2d(dtype=vec3)
    mid_current: wp.array2d(dtype=real)  # [speed, world] A
    creep: wp.array2d(dtype=real)  # [speed, world] m, rad, by which an axis has moved since friction holds it
    mid_tense: wp.array2d(dtype=wp.int32)  # [joint, world] −1: it was out in that step; else 0
    felt_force: wp.array2d(dtype=vec3)  # [body, world] N, N·m: what was commanded in that step
    felt_torque: wp.array2d(dtype=vec3)
    felt_joint: wp.array2d(dtype=real)  # [speed, world]
    kept_position: wp.array2d(dtype=vec3)  # [body, world] the state as it was left, to see whether it was changed
    kept_rotation: wp.array2d(dtype=quat)
    kept_velocity: wp.array2d(dtype=vec3)
    kept_momentum: wp.array2d(dtype=vec3)
    last_v: wp.array2d(dtype=vec3)  # [body, world] changes of velocity and of spin (body axes) a second in the last step
    last_w: wp.array2d(dtype=vec3)
    slope_v: wp.array2d(dtype=vec3)  # [body, world] how much more they were than in the step before, and the same then
    slope_w: wp.array2d(dtype=vec3)
    older_v: wp.array2d(dtype=vec3)
    older_w: wp.array2d(dtype=vec3)
    guess_v: wp.array2d(dtype=vec3)  # [body, world] what they are thought to be in the next step
    guess_w: wp.array2d(dtype=vec3)
    rotor: wp.array2d(dtype=real)  # [speed, world] m/s, rad/s, of the axis that a motor's rotor turns with
    row_force: wp.array2d(dtype=real)  # [row, world] N, N·m, of rows beside the tree in the last step
    trend: wp.array2d(dtype=real)  # [body, world] 1: changes of velocity go on from step to step
    tree: wp.array2d(dtype=real)  # [number, world] step, then coordinates, twists and history of links (`engine.tree.runtime`)
    stagger: wp.array(dtype=real)  # [world] s by which mid_velocity is earlier than the pose; 0: the next step starts at the pose
    history: wp.array(dtype=wp.int32)  # [world] steps in the predictor's history (last_v … guess_w), `SolverDirect` only
    open: wp.array(dtype=real)  # [world] m, rad: largest gap that step left
    time: wp.array(dtype=wp.float64)  # [world] s
    failed: wp.array(dtype=wp.int32)  # [world] 0, or 1 + the body whose state would have become non-finite
    idle: wp.array2d(dtype=real)  # [body, world] s, for which it has stood still; these and below: see `sleep`
    asleep: wp.array2d(dtype=wp.int32)  # [body, world] `collision.still.AWAKE`, `ASLEEP`, `WOKEN`
    told: wp.array2d(dtype=real)  # [row, world] commands when bodies fell asleep (`Model.told_rows`)
    quiet: wp.array(dtype=real)  # [world] s, for which ropes have stood still
    resting: wp.array(dtype=wp.int32)  # [world] `sleep.NOBODY` sleeps, `ALL`, `SOME`
    pull: wp.array(dtype=vec3)  # [world] m/s², gravity when bodies fell asleep
    rope: RopeState


@wp.struct
class Control:
    """What a user commands between steps."""

    force: wp.array2d(dtype=vec3)  # [body, world] N, until changed
    torque: wp.array2d(dtype=vec3)  # [body, world] N·m about the centre of mass, until changed
    force_once: wp.array2d(dtype=vec3)  # [body, world] N in the next step alone
    torque_once: wp.array2d(dtype=vec3)  # [body, world] N·m in the next step alone
    joint_force: wp.array2d(dtype=real)  # [speed, world] N, N·m along the free axes, until changed
    enabled: wp.array2d(dtype=wp.int32)  # [joint, world] 0 takes a joint out
    acts: wp.array2d(dtype=wp.int32)  # [joint, world] 1 where something acts on its free axes
    friction_static: wp.array2d(dtype=real)  # [speed, world] N, N·m; see Friction
    friction_dynamic: wp.array2d(dtype=real)
    friction_load: wp.array2d(dtype=real)
    friction_viscous: wp.array2d(dtype=real)
    friction_stribeck: wp.array2d(dtype=real)  # 0: none
    servo_position: wp.array2d(dtype=real)  # [speed, world] see Servo
    servo_velocity: wp.array2d(dtype=real)
    servo_torque: wp.array2d(dtype=real)
    servo_kp: wp.array2d(dtype=real)
    servo_kd: wp.array2d(dtype=real)
    servo_max_force: wp.array2d(dtype=real)
    voltage: wp.array2d(dtype=real)  # [speed, world] V, of a DC motor
    drive_command: wp.array2d(dtype=real)  # [4 · drive + number, world] see `laws.drives`; then CAST_WORDS a raycast wheel
    rope: RopeControl


@wp.struct
class SpringTable:
    """Point-to-point springs, indexed by spring; points from the centre of mass in body axes (m)."""

    count: wp.int32
    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    parent_point: wp.array(dtype=vec3)
    child_point: wp.array(dtype=vec3)
    stiffness: wp.array2d(dtype=real)  # [spring, world]
    rest: wp.array2d(dtype=real)
    damping: wp.array2d(dtype=real)


@dataclass
class Model:
    """Everything about a scene that does not change while it runs, on one device.

    `bodies`, `joints`, `gears` are the device tables; the names give the index of each object (body 0 is the world).
    """

    bodies: BodyTable
    joints: JointTable
    gears: GearTable
    axes: AxisTable
    springs: SpringTable
    cables: CableTable
    drives: DriveTable
    body_names: dict[str, int]
    joint_names: dict[str, int]
    gear_names: dict[str, int]
    spring_names: dict[str, int]
    cable_names: dict[str, int]
    start: dict[str, np.ndarray]
    gravity: tuple[float, float, float]
    worlds: int
    device: Any
    com: np.ndarray  # (bodies, 3) centre of mass in the body's own frame, m
    joint_kinds: list[Any]  # the Joint objects, by index
    joint_axes: list[tuple[Axis, ...]]  # what acts on their free axes at the start
    parents: np.ndarray  # (joints,)
    children: np.ndarray  # (joints,)
    joint_enabled: np.ndarray  # (joints,) bool, at the start
    q_start: np.ndarray
    v_start: np.ndarray
    shapes: list[Any]
    colors: list[tuple[float, float, float] | None]
    finishes: dict[int, tuple[float, float]] = field(default_factory=dict)  # of bodies by index: roughness, metalness, 0 to 1
    visuals: dict[int, Any] = field(default_factory=dict)  # of bodies that look otherwise than their shape: a Shape
    drag_areas: dict[int, float] = field(default_factory=dict)  # m², of bodies on which the air drags
    paths: dict[int, Any] = field(default_factory=dict)
    drive_rows: dict[int, int] = field(default_factory=dict)  # number of the drive of a speed
    batteries: list[Any] = field(default_factory=list)
    drive_commands: list[float] = field(default_factory=list)  # at the start
    casts: list[Any] = field(default_factory=list)  # `collision.describe.Cast`s
    cable_paths: list[Any] = field(default_factory=list)  # `descriptions.CableDescription`s
    frames: dict[str, Any] = field(default_factory=dict)  # `scene.FrameDescription`s
    sensors: dict[str, Any] = field(default_factory=dict)  # `sensors.table.SensorDescription`s
    redundant: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # `Scene.notes`
    told: Any = None  # `said.SceneJournal`: what the scene was told, for files
    inputs: list[Any] = field(default_factory=list)  # `inputs.Input`, of the scene's operator
    rigid: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # (speeds,) axes that a loop holds still
    shaky: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # (speeds,) axes that loops let move at the start alone
    ropes: Any = None  # `rope.build.Ropes`, where there are any
    collision: Any = None  # `collision.describe.CollisionDescription`, where bodies touch
    visible: Any = None  # the same for sensors by rays, if the scene has such and no contact

    def state(self) -> State:
        """A new state at the scene's start."""
        state = State()
        body = "position rest rotation velocity spin momentum acceleration"
        fill(state, self, len(self.com), body)
        fill(state, self, len(self.joint_kinds), "joint_force joint_torque")
        fill(state, self, len(self.gear_names), "gear_impulse gear_start")
        fill(state, self, sum(j.q_size for j in self.joint_kinds), "q")
        fill(state, self, self.speeds, "qd axis_impulse friction_impulse limit_impulse drive_impulse current stuck")
        fill(state, self, len(self.joint_kinds), "dissipated")
        fill(state, self, len(self.spring_names), "spring_impulse")
        fill(state, self, int(self.cables.count), "cable_rest cable_slides")
        fill(state, self, int(self.cables.spans), "cable_impulse")
        fill(state, self, int(self.cables.ends), "cable_angle")
        fill(state, self, self.cast_rows[0] + 2 * len(self.casts), "drive_state")
        fill(state, self, 0, " ".join(OWNED))
        fill(state, self, len(self.com), "idle asleep")
        fill(state, self, self.told_rows, "told")
        fill(state, self, None, "stagger history open time failed quiet resting pull")
        for name, value in self.start.items():
            rows = np.repeat(np.asarray(value, np_real)[:, None], self.worlds, 1)
            getattr(state, name).assign(np.ascontiguousarray(rows))
        if self.ropes is not None:
            state.rope = self.ropes.state()
        return state

    @property
    def speeds(self) -> int:
        """Number of joint speeds in all."""
        return sum(j.v_size for j in self.joint_kinds)

    @property
    def cast_rows(self) -> tuple[int, int]:
        """Where raycast wheels begin in `State.drive_state` and `Control.drive_command`."""
        words = DRIVE_WORDS * int(self.drives.count)
        return words + 2 * int(self.drives.batteries), words

    @property
    def told_rows(self) -> int:
        """Rows of `State.told`: commands of axes and joints, of drives and their states, and of ropes, as `sleep` has them."""
        first, words = self.cast_rows
        rows = len(AXIS_COMMANDS) * self.speeds + len(self.joint_kinds)
        rows += words + CAST_WORDS * len(self.casts) + first + 2 * len(self.casts)
        return rows if self.ropes is None else rows + 3 * self.ropes.count + 10 * self.ropes.slots + 3

    def ties(self) -> np.ndarray:
        """(ties, 2) pairs of bodies that joints (all, in their order), springs, gears and cables join."""
        gears, springs, ends = self.gears, self.springs, self.cables.body.numpy().reshape(-1, 2)
        geared = np.stack([gears.joint_a.numpy(), gears.joint_b.numpy()], 1).astype(int)
        pairs = [np.stack([self.parents, self.children], 1), np.stack([springs.parent.numpy(), springs.child.numpy()], 1)]
        pairs += [self.children[geared], ends]
        if len(ends) > 1:  # spans of one cable follow each other; those of two are joined for nothing
            pairs += [np.stack([ends[:-1, 1], ends[1:, 0]], 1)]
        return np.concatenate([np.asarray(p, np.int32).reshape(-1, 2) for p in pairs])

    def control(self) -> Control:
        """Commands that do nothing."""
        control = Control()
        fill(control, self, len(self.com), "force torque force_once torque_once")
        fill(control, self, self.speeds, "joint_force")
        fill(control, self, len(self.joint_kinds), "acts")
        control.enabled = self.control_enabled()
        rows = [(k, axis) for k, axes in enumerate(self.joint_axes) for axis in axes]
        acts = [
            k.ball is not None or any(a.acts for a in axes) for k, axes in zip(self.joint_kinds, self.joint_axes, strict=True)
        ]
        control.acts.assign(self._column(acts, np.int32))
        for name, values in command_values([axis for _, axis in rows]).items():
            fill(control, self, self.speeds, name)
            if name.startswith("friction"):
                values = [0.0 if none else value for value, none in zip(values, self.frictionless(), strict=True)]
            getattr(control, name).assign(self._column(values, np_real))
        fill(control, self, self.cast_rows[1] + CAST_WORDS * len(self.casts), "drive_command")
        control.drive_command.assign(self._column(self.drive_commands, np_real))
        if self.ropes is not None:
            control.rope = self.ropes.control()
        return control

    def control_enabled(self) -> Any:
        """`Control.enabled` at the start."""
        return wp.array(self._column(self.joint_enabled, np.int32), dtype=wp.int32, device=self.device)

    def frictionless(self) -> np.ndarray:
        """(speeds,) True where a loop holds all axes still that share a friction bound: what it would do there is undetermined,
        and none of it moves or takes anything.
        """
        if not len(self.rigid):
            return np.zeros(self.speeds, bool)
        out = self.rigid.copy()
        for start, axes in zip(self.v_start, self.joint_axes, strict=True):
            groups = np.array([axis.group for axis in axes], int)
            for i, group in enumerate(groups):
                out[start + i] = self.rigid[start : start + len(axes)][groups == group].all()
        return out

    def _column(self, values: Any, dtype: Any) -> np.ndarray:
        """(rows,) repeated over the worlds."""
        return np.ascontiguousarray(np.repeat(np.asarray(values, dtype)[:, None], self.worlds, 1))


def command_values(axes: list[Axis]) -> dict[str, list[float]]:
    """The commands (fields of Control) that friction and drives of some axes stand for."""
    out: dict[str, list[float]] = {name: [] for name in VARIED_COMMANDS}
    for axis in axes:
        servo = axis.drive if isinstance(axis.drive, Servo) else Servo()
        motor = axis.drive if isinstance(axis.drive, DCMotor) else DCMotor()
        own = abs(motor.gear_ratio) * motor.no_load_friction
        f = axis.friction
        values = {
            "friction_static": f.static + own,
            "friction_dynamic": (f.static if f.dynamic is None else f.dynamic) + own,
            "friction_load": f.load, "friction_viscous": f.viscous, "friction_stribeck": f.stribeck or 0.0,
            "servo_position": servo.position, "servo_velocity": servo.velocity, "servo_torque": servo.torque,
            "servo_kp": servo.kp, "servo_kd": servo.kd, "servo_max_force": min(servo.max_force, 1e30), "voltage": motor.voltage,
        }  # fmt: skip
        for name in VARIED_COMMANDS:
            out[name].append(values[name])
    return out


def fill(struct: Any, model: Model, rows: int | None, names: str) -> None:
    """Give the named array fields of a Warp struct zeros, [row, world] or, without rows, [world]."""
    shape = (model.worlds,) if rows is None else (rows, model.worlds)
    for name in names.split():
        dtype = struct._cls.vars[name].type.dtype
        setattr(struct, name, wp.zeros(shape, dtype=dtype, device=model.device))


VARIED_COMMANDS = (
    "friction_static", "friction_dynamic", "friction_load", "friction_viscous", "friction_stribeck", "servo_position",
    "servo_velocity", "servo_torque", "servo_kp", "servo_kd", "servo_max_force", "voltage",
)  # fmt: skip
AXIS_COMMANDS = (
    "joint_force", "friction_static", "friction_dynamic", "friction_load", "friction_viscous", "friction_stribeck",
    "servo_position", "servo_kp", "servo_velocity", "servo_torque", "servo_kd", "servo_max_force", "voltage",
)  # fmt: skip
SLEEP_FIELDS = ("idle", "asleep", "resting")
"""Fields of State that contact detection has, too."""
OWNED = (
    "mid_velocity", "mid_momentum", "mid_force", "mid_torque", "mid_current", "mid_tense", "creep",
    "felt_force", "felt_torque", "felt_joint", "kept_position", "kept_rotation", "kept_velocity", "kept_momentum",
    "last_v", "last_w", "slope_v", "slope_w", "older_v", "older_w", "guess_v", "guess_w", "trend", "rotor", "row_force",
    "tree",
)  # fmt: skip
"""Fields of State that a solver has for itself (`Solver.furnish`); others have none."""
STATE_FIELDS, CONTROL_FIELDS = arrays_of(State), arrays_of(Control)


def scene_scale(model: Model, dt: float) -> tuple[float, float, float]:
    """(kg, m, m/s) that a scene's tolerances follow: a usual mass, a usual length, and a speed that is about 1 for 1 m and 1 ms.

    The length is that of levers and radii of gyration. The speed follows √(g length), or that gained in 100 steps; without
    gravity it is a length in 1000 steps. So scenes that are alike but for their units have tolerances that are alike.
    """
    mass, inertia = of_first(model.bodies.mass), of_first(model.bodies.inertia)
    on = model.bodies.motion.numpy() == DYNAMIC
    if not on.any():
        return 1.0, 1.0, 1.0
    lengths = np.sqrt(np.trace(inertia[on], axis1=1, axis2=2) / mass[on])
    joints = model.joints
    for points, bodies in (
        (of_first(joints.parent_point), model.parents),
        (of_first(joints.child_point), model.children),
    ):
        if model.joint_kinds:
            lengths = np.append(lengths, np.linalg.norm(points, axis=1)[on[bodies] & model.joint_enabled])
    lengths = lengths[lengths > 0]
    length = float(np.exp(np.log(lengths).mean())) if len(lengths) else 1.0
    usual = float(np.exp(np.log(mass[on]).mean()))
    g = float(np.linalg.norm(model.gravity))
    return usual, length, max(100.0 * g * dt, 0.32 * (g * length) ** 0.5) if g > 0 else length / (1000.0 * dt)
