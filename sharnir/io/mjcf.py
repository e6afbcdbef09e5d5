"""MJCF in: a model of MuJoCo as a Scene. MuJoCo itself (extra `mjcf`) reads the file and resolves defaults, frames and inertias.

file ── MjSpec ──▶ compiled model ── weld ──▶ bodies ── join ──▶ joints ── touch, drive, tie, sense ──▶ Scene
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.misspellings import by_name
from sharnir.core.spatial import frame_from_axes, quat_conjugate, quat_multiply, quat_rotate
from sharnir.errors import SceneError, is_positive
from sharnir.geometry.shapes import Array, MassProperties, combine
from sharnir.io.folders import Folders
from sharnir.io.geoms import Geoms, Rules, matrix_quat
from sharnir.io.mjcf_drives import add_actuators, add_equalities, add_tendons, drive_of
from sharnir.io.mjcf_files import check_model
from sharnir.io.mjcf_sensors import add_cameras, add_sensors
from sharnir.io.xml import FilePath, naming, read_xml
from sharnir.model.actuators import Friction
from sharnir.model.joint_types import Free, Joint, Prismatic, Revolute, Spherical
from sharnir.scene.scene import Scene

MJCF_LIFT = 1e-12
JOINT_FREE, JOINT_BALL, JOINT_SLIDE, JOINT_HINGE = range(4)
NAMESPACES = {"joint": "joint", "gear": "joint", "spring": "spring", "cable": "cable", "sensor": "sensor"}
"""Namespace of each kind; bodies, terrains, sites and cameras share one, "place"."""
SAME_AXIS = 1e-9
"""Cosine or distance (m) up to which axes are across each other, and anchors one point."""


@dataclass
class Imported:
    """A scene made of a model, the compiled model, and where its joints are: by number, (name here, axes of the joint)."""

    file: str
    scene: Scene
    model: Any
    data: Any
    lift: float
    rules: Rules
    names: dict[int, str] = field(default_factory=dict)  # of bodies, by number of the body they are welded to
    joints: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    frames: dict[tuple[str, int], str] = field(default_factory=dict)  # of ("site", …), ("body", …) and ("camera", its number)
    taken: set[tuple[str, str]] = field(default_factory=set)  # (namespace, name)

    def name(self, kind: str, i: int, otherwise: str = "") -> str:
        """The file's name of a thing; where it has none, one by its kind and number."""
        import mujoco

        found = mujoco.mj_id2name(self.model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), i)
        return found or otherwise or f"{kind} {i}"

    def new(self, name: str, suffix: str) -> str:
        """Reserve a name that is still free in the namespace of its kind, and return it."""
        free, kind = name, NAMESPACES.get(suffix, "place")
        while (kind, free) in self.taken or free == Scene.world:
            free = f"{free} {suffix}"
        if free != name:
            self.note(f"{suffix} {name!r} is called {free!r}, its name is taken")
        self.taken.add((kind, free))
        return free

    def note(self, words: str) -> None:
        """Keep a line for the user."""
        self.scene.notes.append(f"{self.file}: {words}")

    def body(self, i: int) -> str:
        """The name here of the body that a body of the file is part of."""
        return self.names[int(self.model.body_weldid[i])]

    def pose(self, i: int) -> tuple[Array, Array]:
        """Position (m) and rotation of a body of the file at the start."""
        return self.data.xpos[i].copy(), turned(self.data.xquat[i])


@by_name
def load_mjcf(
    path: FilePath, *, roots: Sequence[FilePath] = (), gravity: Sequence[float] | None = None, meshes: bool = True,
    contact: bool = True, lift: float = MJCF_LIFT,
) -> Scene:  # fmt: skip
    """The model of an MJCF file as a Scene, as it stands at `qpos0`; names are those of the file. Needs `sharnir[io]`.

    Bodies welded to each other are one body, those without a joint to the world fixed ones; what they were called are frames, and
    so are sites. Coordinates count from the pose of the file (MuJoCo's from `ref`). Hinges and slides of one body are one joint
    where they are across each other, through one point, and none is driven; else each is a joint of its own, between bodies whose
    mass and inertia are the small share `lift` of what they carry.

    Limits, damping, springs, `frictionloss` and `armature` (of a hinge or slide) are those of our joints. Actuators
    on joints are drives, with a control of the actuator's name: motors torques, `position` and `velocity` servos. Equalities
    `connect`, `weld` and, of two joints, `joint` are joints and gears; spatial tendons between two sites springs or cables. Geoms
    are what bodies look like and collide with, planes and height fields of the world grounds and terrains. Bodies touch where
    MuJoCo's do (`contype`, `conaffinity`, `exclude`, `pair`, not a body and the one it hangs on), with or without a plane.
    Contact is rigid: `solref` and `solimp` are not read.

    Accelerometers and gyros are sensors "imu" (`acceleration`, `rate`), range finders "lidar" of one ray, force and torque
    sensors "force" in the joint that holds the site's body; of joints, frames and the like a note tells where the same is read.
    Cameras are frames that look along x.

    Whatever has no counterpart is a line of `scene.notes`.

    Args:
        roots: folders outside of which no file is read (includes, meshes, height fields, textures); the file's own if empty.
        gravity: m/s²; the file's if None.
        meshes: whether meshes are taken (the convex hull collides).
        contact: False: nothing touches.
        lift: see above; the smaller, the closer to MuJoCo, and the slower sequential impulses converge.
    """
    with naming(Path(path)):
        return read_mjcf(path, roots=roots, gravity=gravity, meshes=meshes, contact=contact, lift=lift).scene


def read_mjcf(
    path: FilePath, *, roots: Sequence[FilePath] = (), gravity: Sequence[float] | None = None, meshes: bool = True,
    contact: bool = True, lift: float = MJCF_LIFT,
) -> Imported:  # fmt: skip
    """As `load_mjcf`, with what the scene was made of."""
    if not is_positive(lift) or lift > 1.0:
        raise SceneError(f"load_mjcf: lift is a number above 0 and at most 1, got {lift!r}")
    file = Path(path)
    model, data = compiled(file, Folders("load_mjcf", file.parent, roots))
    pull: Any = np.zeros(3) if disabled(model, "gravity") else model.opt.gravity
    contact = contact and not disabled(model, "contact") and not disabled(model, "constraint")
    rules = Rules(model)
    on: Any = (rules.any_contact() or None) if contact else False  # None: as soon as a user adds a ground
    scene = Scene(pull if gravity is None else gravity, on)
    made = Imported(file.name, scene, model, data, lift, rules)
    if on is None and model.ngeom:
        made.note("no two geoms of the file may touch; there is contact as soon as the scene has a ground")
    geoms = Geoms(made, meshes, rules)
    welds = [int(i) for i in range(model.nbody) if model.body_weldid[i] == i]
    made.names[0] = Scene.world
    for i in welds[1:]:
        add_body(made, i, geoms)
    geoms.add_still()
    for i in welds[1:]:
        join(made, i)
    add_frames(made)
    geoms.add_rules()
    if not disabled(model, "equality") and not disabled(model, "constraint"):
        add_equalities(made)
    add_tendons(made)
    add_actuators(made)
    add_cameras(made)
    add_sensors(made)
    note_rest(made)
    scene.touch.expected.clear()  # materials are the file's: where nothing touches, nothing does in MuJoCo
    return made


def compiled(file: Path, folders: Folders) -> tuple[Any, Any]:
    """The model as MuJoCo compiles it, and its data at the start."""
    from sharnir.core.extras import MissingExtra

    try:
        import mujoco
    except ImportError:
        raise MissingExtra(f"{file}: MJCF needs MuJoCo, which is not installed: pip install sharnir[io]") from None
    root = read_xml(file)  # bounded, without entities, and with the line of what is no XML
    if root.tag not in ("mujoco", "mujocoinclude"):
        root.refuse("an MJCF file starts with <mujoco>")
    check_model(file, root, folders)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = mujoco.MjSpec.from_file(str(file))
            # The ranges of muscles, which are not read, would be found by simulating the file, which may not come to an end.
            spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE
            model = spec.compile()
            data = mujoco.MjData(model)
            mujoco.mj_kinematics(model, data)
    except Exception as error:  # MuJoCo's own errors, of several kinds
        raise SceneError(f"{file.name}: {' '.join(str(error).split())}") from None
    arrays = (
        model.body_mass, model.body_inertia, data.xpos, data.xquat, model.jnt_range, model.opt.gravity, data.xanchor,
        data.xaxis,
    )  # fmt: skip
    if not all(np.isfinite(values).all() for values in arrays):
        raise SceneError(f"{file.name}: masses, poses and ranges are finite numbers; some of the file's are not")
    return model, data


def disabled(model: Any, what: str) -> bool:
    """Whether a file's `<flag>` has put something out."""
    import mujoco

    return bool(model.opt.disableflags & getattr(mujoco.mjtDisableBit, f"mjDSBL_{what.upper()}"))


def turned(quat: Any) -> Array:
    """A quaternion (x, y, z, w) of MuJoCo's (w, x, y, z)."""
    return np.array([quat[1], quat[2], quat[3], quat[0]], float)


# ---- bodies ----


def add_body(made: Imported, i: int, geoms: Geoms) -> None:
    """A body that moves: all that is welded to it, in its frame."""
    m = made.model
    parts = [k for k in range(m.nbody) if m.body_weldid[k] == i]
    position, rotation = made.pose(i)
    back = quat_conjugate(rotation)
    name = made.names[i] = made.new(made.name("body", i), "body")
    properties = []
    for k in parts:
        if m.body_mass[k] > 0:
            place, turn = made.pose(k)
            own = MassProperties(float(m.body_mass[k]), np.zeros(3), np.diag(m.body_inertia[k]).astype(float))
            own = own.moved(m.body_ipos[k], turned(m.body_iquat[k]))
            properties.append(own.moved(quat_rotate(back, place - position), quat_multiply(back, turn)))
    mocap = m.body_mocapid[i] >= 0
    content: dict[str, Any] = {"position": position, "rotation": rotation, "motion": "kinematic" if mocap else "dynamic"}
    if not mocap:
        whole = combine(properties) if properties else MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if not whole.mass > 0:
            raise SceneError(f"{made.file}: body {name!r} moves and has no mass")
        content |= {"mass": whole.mass, "com": whole.com, "strict": False}
        low = float(np.linalg.eigvalsh(whole.inertia)[0])
        least = 1e-9 * float(np.trace(whole.inertia))
        content["inertia"] = whole.inertia
        if low <= least:
            content["inertia"] = whole.inertia + (least or whole.mass * made.lift**2) * np.eye(3)
            made.note(f"body {name!r} has next to no inertia about an axis; it is lifted")
    content |= geoms.of_body(parts, position, rotation)
    made.scene.add_body(name, content.pop("shape"), **content)


def add_frames(made: Imported) -> None:
    """Bodies that became part of others, and sites, as frames."""
    m = made.model
    places = [("body", i, i, made.data.xpos[i], turned(made.data.xquat[i])) for i in range(1, m.nbody) if m.body_weldid[i] != i]
    places += [
        ("site", i, int(m.site_bodyid[i]), made.data.site_xpos[i], matrix_quat(made.data.site_xmat[i])) for i in range(m.nsite)
    ]
    for kind, i, body, place, turn in places:
        owner = made.body(body)
        base = made.scene.bodies[owner]
        back = quat_conjugate(base.rotation)
        name = made.frames[kind, i] = made.new(made.name(kind, i), kind)
        at: Any = {"position": quat_rotate(back, place - base.position), "rotation": quat_multiply(back, turn)}
        made.scene.add_frame(name, owner, **at)


# ---- joints ----


def join(made: Imported, i: int) -> None:
    """The joints of a body: one of ours where that says the same, else one each with small bodies between them."""
    m = made.model
    first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
    parent, child = made.body(int(m.body_parentid[i])), made.names[i]
    js = list(range(first, first + count))
    if not js or int(m.jnt_type[js[0]]) == JOINT_FREE:
        if js:
            join_free(made, js[0], child)
        return
    together = frame_of(made, js) if len(js) > 1 else None
    if together is not None:
        join_together(made, js, together, parent, child)
        return
    rigid = frozenset((i, int(m.body_weldid[m.body_parentid[i]])))
    if len(js) > 1 and not met(made, parent, child) and rigid not in made.rules.opened:
        made.scene.ignore(parent, child)  # as neighbours at a joint; here are bodies between them
    for k, j in enumerate(js):
        last = k == len(js) - 1
        below = child if last else add_between(made, i, j)
        add_joint(made, j, parent, below)
        parent = below


def met(made: Imported, parent: str, child: str) -> bool:
    """Whether two bodies touch though one hangs on the other, as MuJoCo has it."""
    return parent == Scene.world or not made.rules.filters_parents


def add_joint(made: Imported, j: int, parent: str, child: str) -> None:
    """One joint of the file as one of ours."""
    m, kind = made.model, int(made.model.jnt_type[j])
    name = made.new(made.name("joint", j), "joint")
    axis = made.data.xaxis[j].tolist()
    acts = actions(made, j)
    joint: Joint = Spherical(**acts) if kind == JOINT_BALL else (Revolute if kind == JOINT_HINGE else Prismatic)(axis, **acts)
    if kind == JOINT_BALL:
        if m.jnt_limited[j]:
            made.note(f"the limit of the ball {name!r} is left out: it bounds the angle of the whole turn")
    made.scene.add_joint(name, joint, parent, child, position=made.data.xanchor[j].copy(), collide=met(made, parent, child))
    made.joints[j] = name, tuple(joint.free)


def join_free(made: Imported, j: int, child: str) -> None:
    """A body that is free needs no joint, unless something acts on it there."""
    m, at = made.model, int(made.model.jnt_dofadr[j])
    damping = m.dof_damping[at : at + 6]
    name = made.new(made.name("joint", j), "joint")
    acts = {"damping": dict(zip(("x", "y", "z", "rx", "ry", "rz"), map(float, damping), strict=True))} if damping.any() else {}
    if m.jnt_stiffness[j] or m.dof_armature[at : at + 6].any() or m.dof_frictionloss[at : at + 6].any():
        made.note(f"stiffness, armature and frictionloss of the free joint {name!r} are left out")
    made.scene.add_joint(name, Free(**acts), Scene.world, child, position=made.scene.bodies[child].position)
    made.joints[j] = name, ("x", "y", "z", "rx", "ry", "rz")


def frame_of(made: Imported, js: list[int]) -> tuple[Array, list[str]] | None:
    """The frame in which several joints of one body are axes of one of ours, and their names there; None if there is none.

    Slides come first, along axes across each other; then up to two hinges across each other, through one point.
    """
    m, d = made.model, made.data
    kinds = [int(m.jnt_type[j]) for j in js]
    driven = set(m.actuator_trnid[m.actuator_trntype == 0, 0].tolist()) | set(m.eq_obj1id.tolist()) | set(m.eq_obj2id.tolist())
    wrapped = set(m.wrap_objid[m.wrap_type == 1].tolist())
    if JOINT_BALL in kinds or kinds != sorted(kinds) or kinds.count(JOINT_HINGE) > 2 or any(j in driven | wrapped for j in js):
        return None
    hinges = [j for j, kind in zip(js, kinds, strict=True) if kind == JOINT_HINGE]
    if len(hinges) == 2 and np.linalg.norm(d.xanchor[hinges[0]] - d.xanchor[hinges[1]]) > SAME_AXIS:
        return None
    lines: list[Array] = []
    which = []
    for j in js:
        cosines = [float(d.xaxis[j] @ line) for line in lines]
        same = [k for k, c in enumerate(cosines) if c > 1 - SAME_AXIS]
        if not same and any(abs(c) > SAME_AXIS for c in cosines):
            return None
        which.append(same[0] if same else len(lines))
        if not same:
            lines.append(d.xaxis[j].copy())
    if len(lines) > 3 or len({(kind == JOINT_HINGE, k) for kind, k in zip(kinds, which, strict=True)}) < len(js):
        return None
    right = len(lines) < 3 or float(np.linalg.det(lines)) > 0
    letters = "xyz" if right else "xzy"
    second = lines[1] if len(lines) > 1 else None
    frame = frame_from_axes(lines[0], second, slots=(0, "xyz".index(letters[1])))
    return np.asarray(frame), [("r" if kind == JOINT_HINGE else "") + letters[k] for kind, k in zip(kinds, which, strict=True)]


def join_together(made: Imported, js: list[int], together: tuple[Array, list[str]], parent: str, child: str) -> None:
    """Several joints of the file as one of ours."""
    frame, axes = together[0].tolist(), together[1]
    words: dict[str, dict[str, Any]] = {}
    for j, axis in zip(js, axes, strict=True):
        for what, value in actions(made, j).items():
            words.setdefault(what, {})[axis] = value
    laws: Any = words
    joint = Joint(axes, **laws)
    name = made.new(made.name("joint", js[0]), "joint")
    place = made.data.xanchor[js[-1]].copy()
    made.scene.add_joint(name, joint, parent, child, position=place, rotation=frame, collide=met(made, parent, child))
    for j, axis in zip(js, axes, strict=True):
        made.joints[j] = name, (axis,)
    told = ", ".join(f"{made.name('joint', j)!r} ({axis})" for j, axis in zip(js, axes, strict=True))
    made.note(f"joint {name!r} has the axes of {told}")


def add_between(made: Imported, i: int, j: int) -> str:
    """A small body between two joints of one body."""
    m = made.model
    name = made.new(f"{made.names[i]} {made.name('joint', j)}", "body")
    mass = float(m.body_subtreemass[i])
    inertia = float(np.linalg.eigvalsh(made.scene.bodies[made.names[i]].inertia)[2])
    made.scene.add_body(
        name, mass=made.lift * mass, inertia=(made.lift * inertia,) * 3, position=made.data.xanchor[j].copy(), collide=False
    )
    made.note(f"body {name!r} of {made.lift * mass:.3g} kg stands between the joints of body {made.names[i]!r}")
    return name


def actions(made: Imported, j: int) -> dict[str, Any]:
    """What acts on the axis of a joint."""
    m, at = made.model, int(made.model.jnt_dofadr[j])
    ref = float(m.qpos0[m.jnt_qposadr[j]]) if int(m.jnt_type[j]) != JOINT_BALL else 0.0
    name = made.name("joint", j)
    out: dict[str, Any] = {}
    rigid = disabled(m, "constraint")
    if m.jnt_limited[j] and not rigid and not disabled(m, "limit") and int(m.jnt_type[j]) != JOINT_BALL:
        out["limit"] = (float(m.jnt_range[j, 0]) - ref, float(m.jnt_range[j, 1]) - ref)
        if not out["limit"][0] <= out["limit"][1]:
            raise SceneError(f"{made.file}: joint {name!r}: its range is (lower, upper), got {m.jnt_range[j].tolist()}")
    if m.dof_damping[at] > 0 and not disabled(m, "damper"):
        out["damping"] = float(m.dof_damping[at])
    if m.dof_frictionloss[at] > 0 and not rigid and not disabled(m, "frictionloss"):
        out["friction"] = Friction(float(m.dof_frictionloss[at]))
    if m.jnt_stiffness[j] > 0 and not disabled(m, "spring"):
        if int(m.jnt_type[j]) == JOINT_BALL:
            made.note(f"the stiffness of the ball {name!r} is left out")
        else:
            out["spring"] = (float(m.jnt_stiffness[j]), float(m.qpos_spring[m.jnt_qposadr[j]]) - ref)
    if ref:
        made.note(f"joint {name!r} counts from the pose of the file, where MuJoCo has {ref:g}")
    drive = drive_of(made, j) if int(m.jnt_type[j]) != JOINT_BALL else None
    if drive is not None:
        out["drive"] = drive
    elif m.dof_armature[at] > 0:
        made.note(f"armature {m.dof_armature[at]:g} of the ball {name!r} is left out")
    return out


def note_rest(made: Imported) -> None:
    """What the model has and this scene has not."""
    m = made.model
    counts = {
        "keyframes": m.nkey, "lights": m.nlight, "flexes": m.nflex, "plugins": m.nplugin, "skins": m.nskin,
    }  # fmt: skip
    for what, count in counts.items():
        if count:
            made.note(f"{count} {what} left out")
    if m.opt.density or m.opt.viscosity or m.opt.wind.any():
        made.note(f"density {m.opt.density:g} kg/m³, viscosity {m.opt.viscosity:g} Pa·s and wind of the medium are left out")
    if np.any(m.body_gravcomp):
        made.note("gravcomp of bodies is left out")
    made.scene.options.setdefault("dt", float(m.opt.timestep))
