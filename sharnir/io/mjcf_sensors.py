"""Sensors and cameras of an MJCF model: those that have a counterpart, and for the others where the same is read, or a note."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate
from sharnir.errors import SceneError

FARTHEST_RAY = 1e6
"""m, of a range finder without a cutoff."""
ALONG_Z = (0.0, -math.sqrt(0.5), 0.0, math.sqrt(0.5))
"""Turns the x of a lidar to the z of its site, along which a range finder looks."""
ONTO_X = (-0.5, 0.5, 0.5, 0.5)
"""Turns our axes of a camera (x ahead, z up) to MuJoCo's (−z ahead, y up)."""
JOINT_SENSORS = {"jointpos": "position", "jointvel": "velocity", "ballquat": "position", "ballangvel": "velocity"}
OF_ACTUATORS = {"actuatorpos": "position", "actuatorvel": "velocity", "actuatorfrc": "drive.force"}
OF_FRAMES = {
    "framepos": "position", "framequat": "rotation", "framexaxis": "rotation", "frameyaxis": "rotation", "framezaxis": "rotation",
    "framelinvel": "velocity", "frameangvel": "angular_velocity", "velocimeter": "velocity",
}  # fmt: skip
"""What sensors of these kinds tell, and the word by which we read it off a joint, or a frame."""


def add_cameras(made: Any) -> None:
    """A frame for each camera, that looks along its x: for `Camera`, `DepthCamera` and the viewer."""
    import mujoco

    m = made.model
    for i in range(m.ncam):
        owner, (place, turn) = made.body(int(m.cam_bodyid[i])), made.pose(int(m.cam_bodyid[i]))
        w, x, y, z = m.cam_quat[i]
        turn, place = (
            quat_multiply(turn, quat_multiply(np.array([x, y, z, w]), np.array(ONTO_X))),
            place + quat_rotate(turn, m.cam_pos[i]),
        )
        name = made.frames["camera", i] = made.new(made.name("camera", i), "camera")
        base = made.scene.bodies[owner]
        back = quat_conjugate(base.rotation)
        at: Any = {"position": quat_rotate(back, place - base.position), "rotation": quat_multiply(back, turn)}
        made.scene.add_frame(name, owner, **at)
        wide = 2 * math.atan(math.tan(0.5 * math.radians(float(m.cam_fovy[i]))) * 4 / 3)
        how = f"sensors.Camera(sim, {name!r}, field={min(wide, 3.0):.4g}), or DepthCamera, see what it sees at 4:3"
        if int(m.cam_mode[i]) != int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED):
            how = f"it is fixed to body {owner!r} as at the start, where MuJoCo's follows; {how}"
        made.note(f"camera {name!r} is a frame: {how}")


def add_sensors(made: Any) -> None:
    """Sensors by name; those without a counterpart are noted, with where the same is read if it is."""
    import mujoco

    m = made.model
    for i in range(m.nsensor):
        kind = mujoco.mjtSensor(int(m.sensor_type[i])).name.removeprefix("mjSENS_").lower()
        name = made.name("sensor", i)
        try:
            why = add_sensor(made, i, kind, name)
        except SceneError as error:
            why = f"it is left out: {error}"
        if why:
            made.note(f"sensor {name!r} ({kind}): {why}")
        elif m.sensor_noise[i]:
            made.note(f"sensor {name!r} ({kind}): its noise {m.sensor_noise[i]:g} is left out, as MuJoCo does")


def add_sensor(made: Any, i: int, kind: str, name: str) -> str:
    """One sensor; what there is to say of it."""
    m, scene = made.model, made.scene
    at, cutoff = int(m.sensor_objid[i]), float(m.sensor_cutoff[i])
    if kind in ("accelerometer", "gyro"):
        scene.add_sensor(made.new(name, "sensor"), "imu", made.frames["site", at])
        return ""
    if kind == "rangefinder" and ("site", at) in made.frames and int(m.sensor_objtype[i]) == site_type():
        if not scene.touch.bodies:
            return "it is left out: rays meet collision shapes, of which there are none"
        reach = (0.0, cutoff or FARTHEST_RAY)
        scene.add_sensor(made.new(name, "sensor"), "lidar", made.frames["site", at], rotation=ALONG_Z, count=1, reach=reach)
        return ""
    if kind in ("force", "torque"):
        body = int(m.site_bodyid[at])
        joints = [j for j, (_, axes) in made.joints.items() if int(m.jnt_bodyid[j]) == body and len(axes) < 6]
        if not joints:
            return "it is left out: its body hangs on no joint, in which forces are measured"
        joint = made.joints[max(joints)][0]
        scene.add_sensor(made.new(name, "sensor"), "force", joint, frame=made.frames["site", at])
        words = []
        far = float(np.linalg.norm(made.data.site_xpos[at] - made.data.xanchor[max(joints)]))
        if kind == "torque" and far > 1e-9:
            words.append(f"it counts about the anchor of joint {joint!r}, {far:.3g} m from the site")
        if any((axis[0] == "r") == (kind == "torque") for axis in scene.joints[joint].joint.free):
            words.append("what acts along the joint's own free axes is not in it")
        return "; ".join(words)
    return elsewhere(made, i, kind, at)


def elsewhere(made: Any, i: int, kind: str, at: int) -> str:
    """Where a simulation tells what a sensor would."""
    m = made.model
    if kind in OF_ACTUATORS:
        at = int(m.actuator_trnid[at, 0]) if int(m.actuator_trntype[at]) == 0 else -1
    if kind in JOINT_SENSORS or kind in OF_ACTUATORS:
        if at not in made.joints:
            return "it is left out"
        joint, axes = made.joints[at]
        one = "" if len(made.scene.joints[joint].joint.free) == len(axes) else f" (its axis {axes[0]})"
        return f"read sim.joint({joint!r}).{(JOINT_SENSORS | OF_ACTUATORS)[kind]}{one}"
    if kind in OF_FRAMES:
        where = frame_at(made, i, at)
        own = ", in world axes" if kind == "velocimeter" or int(m.sensor_refid[i]) >= 0 else ""
        return f"read sim.frame({where!r}).{OF_FRAMES[kind]}{own}" if where else "it is left out"
    return {"clock": "read sim.time", "touch": "read sim.contacts()"}.get(kind, "it is left out")


def frame_at(made: Any, i: int, at: int) -> str:
    """The frame or body here that a sensor of the file is at; "" for none."""
    import mujoco

    word = mujoco.mjtObj(int(made.model.sensor_objtype[i])).name.removeprefix("mjOBJ_").lower()
    if word in ("body", "xbody"):
        return str(made.frames.get(("body", at), made.body(at)))
    return str(made.frames.get((word, at), ""))


def site_type() -> int:
    """The number of sites among the kinds of objects."""
    import mujoco

    return int(mujoco.mjtObj.mjOBJ_SITE)
