"""Actuators, equalities and tendons of an MJCF model, where they have a counterpart."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate
from sharnir.errors import SceneError
from sharnir.model.actuators import Servo
from sharnir.model.joint_types import Fixed, Gear, Spherical

UNBOUNDED_CONTROL = 1e3
"""Of a control whose actuator has no range."""
EQUALITY_CONNECT, EQUALITY_WELD, EQUALITY_JOINT = range(3)


def actuator_of(made: Any, j: int) -> int | None:
    """The number of the one actuator on a joint."""
    m = made.model
    found = [a for a in range(m.nu) if int(m.actuator_trntype[a]) == 0 and int(m.actuator_trnid[a, 0]) == j]
    return found[0] if len(found) == 1 else None


def law(made: Any, a: int) -> tuple[str, float, float, float] | None:
    """(word of the command, its scale, kp, kd) of an actuator as a servo of its joint; None where it is none.

    force = gain · ctrl + bias₀ + bias₁ · length + bias₂ · velocity, length = gear · q, torque = gear · force.
    """
    m = made.model
    gear = float(m.actuator_gear[a, 0])
    gain, bias = float(m.actuator_gainprm[a, 0]), [float(v) for v in m.actuator_biasprm[a, :3]]
    fixed, affine = int(m.actuator_gaintype[a]) == 0, int(m.actuator_biastype[a]) == 1
    if int(m.actuator_dyntype[a]) != 0 or not fixed or int(m.actuator_biastype[a]) > 1 or gear == 0:
        return None
    if not affine or not any(bias):
        return "torque", gain * gear, 0.0, 0.0
    kp, kd = -bias[1] * gear**2, -bias[2] * gear**2
    if bias[0] or kp < 0 or kd < 0:
        return None
    if kp > 0 and np.isclose(gain, -bias[1], rtol=1e-9):
        return "position", 1.0 / gear, kp, kd
    if kp == 0 and kd > 0 and np.isclose(gain, -bias[2], rtol=1e-9):
        return "velocity", 1.0 / gear, kp, kd
    return "torque", gain * gear, kp, kd


def drive_of(made: Any, j: int) -> Servo | None:
    """The drive of a joint: that of its actuator, with the joint's armature; None if it has neither."""
    m, a = made.model, actuator_of(made, j)
    armature = float(m.dof_armature[m.jnt_dofadr[j]])
    found = law(made, a) if a is not None else None
    if a is None or found is None:
        return Servo(armature=armature) if armature > 0 else None
    limited = bool(m.actuator_forcelimited[a])
    most = float(np.abs(m.actuator_forcerange[a]).max() * abs(m.actuator_gear[a, 0])) if limited else np.inf
    return Servo(kp=found[2], kd=found[3], max_force=most, armature=armature)


def add_actuators(made: Any) -> None:
    """A control for each actuator that is a drive; the others are noted."""
    m = made.model
    for a in range(m.nu):
        name = made.name("actuator", a)
        j = int(m.actuator_trnid[a, 0])
        found = law(made, a)
        if int(m.actuator_trntype[a]) != 0 or found is None or actuator_of(made, j) is None or j not in made.joints:
            made.note(f"actuator {name!r} is left out: it is no motor, position or velocity servo of one joint, alone there")
            continue
        joint, free = made.joints[j]
        if len(free) != 1:
            made.note(f"actuator {name!r} is left out: joint {joint!r} is a ball or free")
            continue
        word, scale, _, _ = found
        low, high = (
            (float(v) for v in m.actuator_ctrlrange[a]) if m.actuator_ctrllimited[a] else (-UNBOUNDED_CONTROL, UNBOUNDED_CONTROL)
        )
        if not m.actuator_ctrllimited[a]:
            made.note(f"actuator {name!r} has no ctrlrange; its control goes from {low:g} to {high:g}")
        if word == "position" and m.qpos0[m.jnt_qposadr[j]]:
            made.note(f"the command of actuator {name!r} counts from the pose of the file, as joint {joint!r} does")
        safe = min(max(0.0, low), high)
        name = made.new(name, "input") if name in made.scene.inputs else name
        try:
            made.scene.add_input(name, f"joint/{joint}.{word}", low=low, high=high, scale=scale, safe=safe)
        except SceneError as error:
            made.note(f"actuator {name!r} is left out: {error}")


def add_equalities(made: Any) -> None:
    """Joints and gears that hold bodies and coordinates together; they are noted where they have no counterpart."""
    m = made.model
    for e in range(m.neq):
        kind, name = int(m.eq_type[e]), made.name("equality", e)
        a, b = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        body_objects = int(m.eq_objtype[e]) == 1
        active = bool(m.eq_active0[e])
        if kind in (EQUALITY_CONNECT, EQUALITY_WELD) and body_objects and made.body(a) != made.body(b):
            tie(made, made.new(name, "joint"), kind, e, (a, b), active)
        elif not active:
            made.note(f"equality {name!r} is not active at the start, and is left out")
        elif kind == EQUALITY_JOINT and b >= 0 and not np.any(m.eq_data[e, 2:5]) and m.eq_data[e, 1] and both_single(made, a, b):
            if m.eq_data[e, 0]:
                made.note(f"equality {name!r} keeps what its joints are at the start; its offset {m.eq_data[e, 0]:g} is left out")
            made.scene.add_joint(made.new(name, "gear"), Gear(made.joints[a][0], made.joints[b][0], float(m.eq_data[e, 1])))
        else:
            made.note(f"equality {name!r} is left out: it is no connect or weld of two bodies, nor of two joints in proportion")


def both_single(made: Any, a: int, b: int) -> bool:
    """Whether two joints are different ones of ours with one axis each."""
    found = [made.joints.get(j, ("", ())) for j in (a, b)]
    single = all(name and len(made.scene.joints[name].joint.free) == 1 for name, _ in found)
    return single and found[0][0] != found[1][0]


def tie(made: Any, name: str, kind: int, e: int, bodies: tuple[int, int], active: bool) -> None:
    """A ball where two bodies are connected, or a weld; each anchor on its own body, so that they may start apart.

    One that is not active starts disabled (`sim.joint(name).enabled = True` or `.attach()`).
    """
    m, scene, (a, b) = made.model, made.scene, bodies
    frames = []
    first = 0 if kind == EQUALITY_CONNECT else 3
    for i, rows in ((a, slice(first, first + 3)), (b, slice(3 - first, 6 - first))):
        place, turn = made.pose(i)
        owner = scene.bodies[made.body(i)]
        back = quat_conjugate(owner.rotation)
        point = place + quat_rotate(turn, m.eq_data[e, rows])
        own = quat_multiply(back, turn)
        if kind == EQUALITY_WELD and i == a:
            w, x, y, z = m.eq_data[e, 6:10]
            own = quat_multiply(own, np.array([x, y, z, w]))
        frames.append((quat_rotate(back, point - owner.position), own / np.linalg.norm(own)))
    joint = Spherical() if kind == EQUALITY_CONNECT else Fixed()
    touch = not made.rules.neighbours(a, b)
    try:
        scene.add_joint(
            name, joint, made.body(a), made.body(b), parent_frame=frames[0], child_frame=frames[1], collide=touch, enabled=active
        )
    except SceneError as error:
        made.note(f"equality {name!r} is left out: {error}")


def add_tendons(made: Any) -> None:
    """Spatial tendons between two sites: a spring where they are elastic, a cable where they are limited from above."""
    m = made.model
    for t in range(m.ntendon):
        name = made.name("tendon", t)
        wraps = range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))
        sites = [int(m.wrap_objid[w]) for w in wraps] if all(int(m.wrap_type[w]) == 3 for w in wraps) else []
        ends = [made.body(int(m.site_bodyid[s])) for s in sites]
        if len(sites) != 2 or ends[0] == ends[1]:
            made.note(f"tendon {name!r} is left out: it is no line between two sites of two bodies")
            continue
        frames = [made.scene.bodies[body] for body in ends]
        points = [
            quat_rotate(quat_conjugate(f.rotation), made.data.site_xpos[s] - f.position)
            for f, s in zip(frames, sites, strict=True)
        ]
        stiffness, damping = float(m.tendon_stiffness[t]), float(m.tendon_damping[t])
        try:
            if stiffness or damping:
                rest = float(np.mean(m.tendon_lengthspring[t]))
                made.scene.add_spring(
                    made.new(name, "spring"),
                    *ends,
                    at_a=points[0],
                    at_b=points[1],
                    stiffness=stiffness,
                    rest=rest,
                    damping=damping,
                )
            if m.tendon_limited[t]:
                path = [(body, point.tolist()) for body, point in zip(ends, points, strict=True)]
                made.scene.add_cable(made.new(name, "cable"), path, length=float(m.tendon_range[t, 1]))
            elif not stiffness and not damping:
                made.note(f"tendon {name!r} is left out: nothing acts on it")
        except SceneError as error:
            made.note(f"tendon {name!r} is left out: {error}")
