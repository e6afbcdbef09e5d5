"""URDF in: a robot's links and joints as a Scene.

    file ── read_xml ──▶ elements with lines ── read_robot ──▶ links, joints ── order_links ──▶ a tree
         ── group_links ──▶ bodies ── fill_scene ──▶ Scene

A file is not trusted: no document type (so no entities), no network, no file outside the given roots; every refusal names
the file, the line, the element, the value, and what is allowed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.misspellings import by_name
from sharnir.core.spatial import quat_conjugate, quat_exp, quat_multiply, quat_rotate, quat_to_matrix, unit_quat
from sharnir.errors import SceneError, SceneFileError, is_positive
from sharnir.geometry.shapes import TRIANGLE_SLACK, Array, MassProperties, Shape, combine
from sharnir.io.meshes import Drawing, Maker, Meshes, read_geometry
from sharnir.io.xml import Element, FilePath, log, naming, read_xml
from sharnir.model.actuators import Servo
from sharnir.model.joint_types import Fixed, Free, Gear, Joint, Planar, Prismatic, Revolute, Spherical
from sharnir.scene.scene import Scene

Pose = tuple[Array, Array]  # position (m), unit quaternion (x, y, z, w)
HERE: Pose = (np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))

MOMENT_ROUNDING = 1e-9
"""A negative moment of this size is taken for rounding, kg·m²."""

NO_GYRATION = 1e-6
"""A principal moment is missing where its radius of gyration is below this, m."""

URDF_LIFT = 1e-3
"""What a body without mass or inertia gets, see `load_urdf`."""


@by_name
def load_urdf(
    path: FilePath,
    *,
    roots: Sequence[FilePath] = (),
    merge_fixed: bool = True,
    floating: bool = False,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    meshes: bool = True,
    lift: float = URDF_LIFT,
) -> Scene:
    """The robot of a URDF file, every joint at its zero, as a Scene; bodies and joints keep the names of the file.

    Bodies. A body's frame is its link's. A link without `<inertial>`, or with zero mass, is massless and is part of the link
    it is fixed to. The root link stands on the ground: as a fixed body named after it, or, if it and all that is fixed to it
    have neither mass nor geometry, as the world itself. Geometry gives no mass: `<visual>` is drawn (`<collision>` where there
    is none), and `<collision>` is what the body collides with. A body has the colour of its first `<material>`.

    Repairs. A body that moves needs mass and inertia. What a file lacks is lifted from zero by the small number `lift`; every
    such change is a warning and a note, with file, line, link and values:
    - a massless link that moves and carries others gets the share `lift` of their mass and of their inertia;
    - a principal moment that is zero (below mass · (1 µm)²) or negative becomes mass · (lift · 1 m)²;
    - principal moments that no body has (the largest above the sum of the others) are kept, and noted;
    - a moving joint with neither mass nor inertia below it is left out, its links drawn where they are at zero;
    - a joint that mimics one which the file does not have moves by itself.

    Joints. `<limit effort>` becomes the bound of an idle servo (`sim.joint(name).drive`), `<limit velocity>` is not enforced,
    `<dynamics>` is damping and dry friction. A `<mimic>` is a gear; the joint starts at its offset, since a gear keeps
    what it finds at the start, so that q = multiplier · q_other + offset holds. With multiplier 0 the joint is held at
    the offset by its limit. A link called "world" that is not the world is called "world_link".
    Calibration, safety controllers, transmissions and tags of other tools are ignored.

    Notes. What was repaired, renamed, left out or ignored is a line of `scene.notes`, in the order in which it was met.

    Args:
        path: the file; expand xacro first.
        roots: folders in which meshes are looked for, and outside of which none is read; the file's own if empty.
            `package://name/rest` is root/name/rest or root/rest. An absolute path elsewhere is left out with a note, a
            path that climbs out of the roots (by `..` or a symbolic link) is an error.
        merge_fixed: links on fixed joints become part of their parent's body; otherwise bodies with a `Fixed` joint.
        floating: the root is a free body.
        gravity: m/s².
        meshes: draw meshes (files .stl, .obj, .ply, .off, .dae); one that is missing or unreadable is left out with a note.
        lift: see repairs. The smaller, the closer to the file, and the slower sequential impulses converge; the direct
            solver and `sh.dynamics` do not mind 1e-9.
    """
    if not is_positive(lift) or lift > 1.0:
        raise SceneError(f"load_urdf: lift is a number above 0 and at most 1, got {lift!r}")
    file, scene = Path(path), Scene(gravity)
    with naming(file):
        root = read_xml(file)
        robot = read_robot(root, Meshes(file, roots) if meshes else None)
        note_ignored(root)
        order, scene.notes = order_links(robot), root.notes
        starts, gears = read_mimics(robot)
        place_links(order, starts)
        fill_scene(scene, robot, group_links(order, merge_fixed, floating), starts, gears, floating, lift)
    return scene


# ---- links and joints as the file has them ---------------------------------------------------------------------------


@dataclass(frozen=True)
class JointType:
    """How one URDF type is made here; `axes` is the number of free axes, `range`: whether it needs a `<limit>`."""

    make: Callable[[Array, dict[str, Any]], Joint]
    axes: int
    range: bool = False


JOINT_TYPES = {
    "revolute": JointType(lambda axis, acts: Revolute(axis.tolist(), **acts), 1, range=True),
    "continuous": JointType(lambda axis, acts: Revolute(axis.tolist(), **acts), 1),
    "prismatic": JointType(lambda axis, acts: Prismatic(axis.tolist(), **acts), 1, range=True),
    "fixed": JointType(lambda axis, acts: Fixed(), 0),
    "floating": JointType(lambda axis, acts: Free(**acts), 6),
    "planar": JointType(lambda axis, acts: Planar(axis.tolist(), **acts), 3),
    "spherical": JointType(lambda axis, acts: Spherical(**acts), 3),
    "ball": JointType(lambda axis, acts: Spherical(**acts), 3),
}
AXIS_TYPES = ("revolute", "continuous", "prismatic", "planar")
READ = {"robot": ("link", "joint", "material"), "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")}
"""Elements that are read, or say nothing about a motion, by the element that holds them; others are ignored, and noted."""


@dataclass(slots=True, eq=False)
class Link:
    """A link; `above` is the joint that carries it, `pose` that of its frame at the start."""

    name: str
    element: Element
    mass: MassProperties  # in the link's frame; 0 kg where there is none
    drawn: list[tuple[Pose, Maker]]
    collision: list[tuple[Pose, Maker]]
    color: tuple[float, ...] | None = None  # of the first `<visual>` that has one
    above: UrdfJoint | None = None
    below: list[UrdfJoint] = field(default_factory=list)
    pose: Pose = HERE
    empty: bool = False  # neither mass nor inertia in the link and all that it carries


@dataclass(slots=True, eq=False)
class UrdfJoint:
    name: str
    element: Element
    kind: str
    parent: Link
    child: Link
    origin: Pose
    axis: Array
    acts: dict[str, Any]

    @property
    def type(self) -> JointType:
        return JOINT_TYPES[self.kind]

    def moved(self, q: float) -> Pose:
        """The child's frame in the joint's at coordinate q of its one axis."""
        if self.kind == "prismatic":
            return q * self.axis, HERE[1]
        return HERE[0], quat_exp(q * self.axis)


@dataclass(slots=True)
class Robot:
    element: Element
    links: dict[str, Link]
    joints: dict[str, UrdfJoint]


def read_robot(root: Element, meshes: Meshes | None) -> Robot:
    """Links and joints, each checked by itself; joints hung on their links."""
    if root.tag != "robot":
        root.refuse("a URDF starts with <robot>")
    for child in root.children:
        if child.tag.startswith("xacro:"):
            child.refuse("a macro; expand the file with xacro first")
    robot = Robot(root, {}, {})
    paints = {paint.attributes.get("name", ""): color for paint in root.all("material") if (color := read_color(paint, {}))}
    wrong: list[str] = []  # all of it is told at once
    named = {element.attributes.get("name") for element in root.all("link")}
    for element in (*root.all("link"), *root.all("joint")):
        ends = [child.attributes.get("link") for child in element.children if child.tag in ("parent", "child")]
        if element.tag == "joint" and any(end in named and end not in robot.links for end in ends):
            continue  # it hangs on a link that has been told of
        taken: dict[str, Any] = robot.links if element.tag == "link" else robot.joints
        try:
            refuse_taken(taken, element)
            made = read_link(element, meshes, paints) if element.tag == "link" else read_joint(element, robot.links)
            taken[made.name] = made
        except SceneError as error:
            wrong.append(str(error))
    if not robot.links and not wrong:
        root.refuse("needs at least one <link>", "name")
    if wrong:
        raise SceneFileError(wrong)
    return robot


def note_ignored(root: Element) -> None:
    """One note for each kind of element that is not read, with how many there are."""
    found: dict[str, list[Element]] = {}
    for holder in (root, *root.all("joint")):
        for element in holder.children:
            if element.tag not in READ[holder.tag]:
                found.setdefault(element.tag, []).append(element)
    for tag, elements in found.items():
        root.notes.append(f"{root.file}:{elements[0].line}: <{tag}>: ignored, {len(elements)} in all")
        log.debug("%s", root.notes[-1])


def refuse_taken(taken: dict[str, Any], element: Element) -> None:
    """Refuse a second element of the same name."""
    name = element.text("name")
    if name in taken:
        element.refuse(f"a name of its own, line {taken[name].element.line} has the same", "name")


def origin(element: Element) -> Pose:
    """The `<origin>` inside, which is optional: xyz in m, rpy the angles of R = R(z, yaw) R(y, pitch) R(x, roll)."""
    given = element.one("origin")
    if given is None:
        return HERE
    xyz = given.numbers("xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" in given.attributes:
        if "rpy" in given.attributes:
            given.refuse("rpy or quat_xyzw, not both", "rpy", "quat_xyzw")
        return xyz, unit_quat(given.numbers("quat_xyzw", 4), given.where("quat_xyzw"))
    turns = [quat_exp(angle * e) for angle, e in zip(given.numbers("rpy", 3, (0.0, 0.0, 0.0)), np.eye(3), strict=True)]
    return xyz, quat_multiply(quat_multiply(turns[2], turns[1]), turns[0])


def read_link(element: Element, meshes: Meshes | None, paints: dict[str, tuple[float, ...]]) -> Link:
    """A link with its mass properties in its own frame."""
    visual, collision = read_shapes(element, "visual", meshes), read_shapes(element, "collision", meshes)
    found = [read_color(paint, paints) for owner in element.all("visual") for paint in owner.all("material")]
    color = next((paint for paint in found if paint), None)
    return Link(element.text("name"), element, read_inertial(element.one("inertial")), visual or collision, collision, color)


def read_color(material: Element, paints: dict[str, tuple[float, ...]]) -> tuple[float, ...] | None:
    """Red, green, blue from 0 to 1 of a `<material>`: its own, else that of the robot's material of that name."""
    given = material.one("color")
    if given is None or "rgba" not in given.attributes:
        return paints.get(material.attributes.get("name", ""))
    return tuple(np.clip(given.numbers("rgba", 4)[:3], 0.0, 1.0).tolist())


def read_shapes(element: Element, tag: str, meshes: Meshes | None) -> list[tuple[Pose, Maker]]:
    """Places in a link's frame, and what makes the shapes there, of its `<visual>` or `<collision>` elements."""
    found = [(origin(owner), read_geometry(owner, meshes)) for owner in element.all(tag)]
    return [(pose, make) for pose, make in found if make is not None]


def read_inertial(inertial: Element | None) -> MassProperties:
    """Mass, centre and inertia about it, turned into the link's axes."""
    if inertial is None:
        return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
    mass = inertial.need("mass").number("value", least=0.0)
    place, turn = origin(inertial)
    tensor = np.zeros((3, 3))
    given = inertial.one("inertia")
    if given is not None:
        for i, j, name in ((0, 0, "ixx"), (1, 1, "iyy"), (2, 2, "izz")):
            tensor[i, j] = given.number(name, least=-MOMENT_ROUNDING)
        for i, j, name in ((0, 1, "ixy"), (0, 2, "ixz"), (1, 2, "iyz")):
            tensor[i, j] = tensor[j, i] = given.number(name, 0.0)
    R = quat_to_matrix(turn)
    return MassProperties(mass, place, R @ tensor @ R.T)


def read_joint(element: Element, links: dict[str, Link]) -> UrdfJoint:
    """A joint, hung between its links."""
    kind = element.text("type")
    if kind not in JOINT_TYPES:
        element.refuse(f"type is one of {', '.join(JOINT_TYPES)}", "type")
    parent, child = (link_of(element.need(tag), links) for tag in ("parent", "child"))
    if parent is child:
        element.refuse(f"parent and child are two links, both are {parent.name!r}")
    if child.above is not None:
        other = f"joint {child.above.name!r}, line {child.above.element.line}, has it too"
        element.need("child").refuse(f"a link with one parent; {other}", "link")
    axis, acts = read_axis(element, kind), read_actions(element, kind)
    joint = UrdfJoint(element.text("name"), element, kind, parent, child, origin(element), axis, acts)
    child.above = joint
    parent.below.append(joint)
    return joint


def link_of(element: Element, links: dict[str, Link]) -> Link:
    """The link that one end of a joint names."""
    if element.text("link") not in links:
        element.refuse("the name of a link of the file", "link")
    return links[element.text("link")]


def read_axis(element: Element, kind: str) -> Array:
    """The unit axis of a joint (the normal of a planar one), x if not given."""
    axis = element.one("axis")
    if axis is None or kind not in AXIS_TYPES:
        return np.array([1.0, 0.0, 0.0])
    xyz = axis.numbers("xyz", 3)
    largest = float(np.abs(xyz).max())
    if largest < 1e-9:
        axis.refuse("a vector other than zero", "xyz")
    return np.asarray(xyz / largest / np.linalg.norm(xyz / largest))


def read_actions(element: Element, kind: str) -> dict[str, Any]:
    """What acts on the free axes: limits, the bound of a drive, damping, friction."""
    acts: dict[str, Any] = {}
    free = JOINT_TYPES[kind].axes
    limit = element.one("limit")
    if limit is None and JOINT_TYPES[kind].range:
        element.refuse(f"a {kind} joint needs <limit lower='…' upper='…'>; without limits it is continuous")
    if limit is not None and free == 1:
        if JOINT_TYPES[kind].range:
            ends = limit.number("lower", 0.0, infinite=True), limit.number("upper", 0.0, infinite=True)
            if ends[0] > ends[1]:
                limit.refuse("lower is at most upper", "lower", "upper")
            acts["limit"] = ends
        effort = limit.number("effort", 0.0, infinite=True)
        if effort > 0:
            acts["drive"] = Servo(max_force=effort)
    dynamics = element.one("dynamics")
    if dynamics is not None and free:
        for what in ("damping", "friction"):
            value = dynamics.number(what, 0.0, least=0.0)
            if value > 0:
                acts[what] = value
    return acts


# ---- the tree --------------------------------------------------------------------------------------------------------


def order_links(robot: Robot) -> list[Link]:
    """All links, parents first; refused unless they are one tree."""
    tops = [link for link in robot.links.values() if link.above is None]
    if len(tops) > 1:
        tops[1].element.refuse(f"one link without a parent, the root; {', '.join(repr(t.name) for t in tops[:8])} have none")
    order = list(tops)
    for link in order:
        order += [joint.child for joint in link.below]
    if len(order) < len(robot.links):
        known = set(map(id, order))
        joint = next(link.above for link in robot.links.values() if id(link) not in known and link.above is not None)
        joint.element.refuse(f"a tree; {joint.parent.name!r} and {joint.child.name!r} are in a cycle, or behind one")
    for link in reversed(order):
        link.empty = not (link.mass.mass or link.mass.inertia.any()) and all(joint.child.empty for joint in link.below)
    return order


@dataclass(frozen=True)
class Follow:
    """q = multiplier · q of the leader + offset, where the leader follows no other joint."""

    leader: str
    multiplier: float
    offset: float


def read_mimics(robot: Robot) -> tuple[dict[str, float], dict[str, Follow]]:
    """Start values of the joints that follow others, by name, and whom they follow."""
    own: dict[str, tuple[Element, Follow]] = {}
    for joint in robot.joints.values():
        mimic = joint.element.one("mimic")
        if mimic is None or joint.type.axes == 0:
            continue
        leader = robot.joints.get(mimic.text("joint"))
        if leader is None:
            mimic.note("the file has no such joint; this one moves by itself", "joint")
            continue
        if joint.type.axes != 1 or leader.type.axes != 1:
            mimic.refuse(f"one free axis follows another, here {joint.kind} and {leader.kind}", "joint")
        own[joint.name] = mimic, Follow(leader.name, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
    follows: dict[str, Follow] = {}
    for name, (mimic, _) in own.items():
        total, seen = Follow(name, 1.0, 0.0), set()
        while total.leader in own:
            if total.leader in seen:
                mimic.refuse("no circle of joints that follow each other", "joint")
            seen.add(total.leader)
            step = own[total.leader][1]
            total = Follow(step.leader, total.multiplier * step.multiplier, total.multiplier * step.offset + total.offset)
        if robot.joints[name].kind != "prismatic" and abs(total.offset) > math.pi:
            mimic.refuse("an angle starts within ±π", "offset")
        follows[name] = total
    return {name: follow.offset for name, follow in follows.items()}, follows


def compose(a: Pose, b: Pose) -> Pose:
    """The pose b, given in the frame a."""
    return a[0] + quat_rotate(a[1], b[0]), quat_multiply(a[1], b[1])


def relative(a: Pose, b: Pose) -> Pose:
    """The pose b in the frame a, both given in the world."""
    back = quat_conjugate(a[1])
    return quat_rotate(back, b[0] - a[0]), quat_multiply(back, b[1])


def place_links(order: list[Link], starts: dict[str, float]) -> None:
    """Forward kinematics at the start: zero, but for joints that follow others with an offset."""
    for link in order:
        for joint in link.below:
            at = compose(link.pose, joint.origin)
            q = starts.get(joint.name, 0.0)
            lower, upper = joint.acts.get("limit", (-math.inf, math.inf))
            if not lower <= q <= upper:
                joint.element.note(f"starts at {q:g}, outside its limit ({lower:g}, {upper:g})", level=logging.INFO)
            joint.child.pose = compose(at, joint.moved(q)) if q else at


# ---- bodies and the scene --------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Group:
    """Links that are one body; `joint` carries it, None for the root."""

    links: list[Link]
    joint: UrdfJoint | None
    mass: float = 0.0

    @property
    def main(self) -> Link:
        """The link whose name and frame the body has: the topmost, unless that is a world with something fixed to it."""
        top = self.links[0]
        if top.name == Scene.world and not top.mass.mass and not top.drawn:
            return next((link for link in self.links if link.mass.mass or link.drawn), top)
        return top

    def properties(self) -> MassProperties:
        """Those of all its links, in the body's frame."""
        return combine(self._seen(self.links))

    def lifted(self, lift: float) -> MassProperties | None:
        """Of a massless group: a share of what it carries, at its joint, beside what inertia it has; None if that is nothing."""
        carried = self.links[:1]
        for link in carried:
            carried += [joint.child for joint in link.below]
        own = sum((part.inertia for part in self._seen(self.links)), np.zeros((3, 3)))
        mass, moment = 0.0, float(np.linalg.eigvalsh(own)[2])
        if any(link.mass.mass for link in carried):
            whole = combine(self._seen(carried))
            mass, moment = whole.mass, float(np.linalg.eigvalsh(whole.inertia)[2])
        share = lift * (mass or moment)  # of inertia alone, as if 1 m off
        return MassProperties(share, np.zeros(3), own + lift * moment * np.eye(3)) if share > 0 else None

    def _seen(self, links: list[Link]) -> list[MassProperties]:
        """Mass properties of links in the body's frame, at the start."""
        return [link.mass.moved(*relative(self.main.pose, link.pose)) for link in links]

    def drawing(self) -> Drawing | None:
        """What is drawn of it."""
        made = [self._made(link, pose, make) for link in self.links for pose, make in link.drawn]
        return Drawing(*made) if made else None

    def collision(self) -> list[Shape]:
        """What it collides with, each shape at its place in the body's frame."""
        return [self._made(link, pose, make) for link in self.links for pose, make in link.collision]

    def _made(self, link: Link, pose: Pose, make: Maker) -> Shape:
        """A shape of a link, placed in the body's frame."""
        position, rotation = relative(self.main.pose, compose(link.pose, pose))
        return make(position=tuple(position.tolist()), rotation=tuple(rotation.tolist()))


def group_links(order: list[Link], merge_fixed: bool, floating: bool) -> list[Group]:
    """Which links are one body, parents first; the first group is the root's."""
    groups: list[Group] = []
    group_of: dict[int, Group] = {}
    for link in order:
        joint = link.above
        group = None if joint is None else group_of[id(joint.parent)]
        if joint is not None and group is not None and (joint.kind == "fixed" or link.empty):
            if joint.kind != "fixed":
                joint.element.note("left out, there is no mass below it")
            carries_none = group.mass == 0.0 and (floating or group is not groups[0])
            if merge_fixed or link.mass.mass == 0.0 or carries_none:
                group.links.append(link)
                group.mass += link.mass.mass
                group_of[id(link)] = group
                continue
        group = Group([link], joint, link.mass.mass)
        groups.append(group)
        group_of[id(link)] = group
    return groups


def fill_scene(
    scene: Scene, robot: Robot, groups: list[Group], starts: dict[str, float], follows: dict[str, Follow], floating: bool,
    lift: float,
) -> None:  # fmt: skip
    """Bodies, joints and gears of the scene."""
    root = groups[0]
    body_of = {id(link): group for group in groups for link in group.links}
    body_name: dict[int, str] = {id(root): scene.world}
    if floating or root.mass or root.drawing() is not None:
        body_name[id(root)] = add_body(scene, root, "dynamic" if floating else "fixed", lift)
    for group in groups[1:]:
        body_name[id(group)] = add_body(scene, group, "dynamic", lift)

    for group in groups[1:]:
        joint = group.joint
        assert joint is not None
        above = body_of[id(joint.parent)]
        above_frame = HERE if body_name[id(above)] == scene.world else above.main.pose
        acts = dict(joint.acts)
        if joint.name in follows and follows[joint.name].multiplier == 0.0:
            acts["limit"] = (starts[joint.name],) * 2
        scene.add_joint(
            joint.name,
            joint.type.make(joint.axis, acts),
            body_name[id(above)],
            body_name[id(group)],
            parent_frame=_frame(relative(above_frame, compose(joint.parent.pose, joint.origin))),
            child_frame=_frame(HERE),
        )
    taken = set(robot.joints)
    for follower, gear in gear_pairs(scene.joints.keys(), follows):
        element = robot.joints[follower].element
        scene.add_joint(new_name(element, f"{follower}_mimic", "_gear", taken), gear)


def add_body(scene: Scene, group: Group, motion: str, lift: float) -> str:
    """One body of the scene; returns its name."""
    link = group.main
    name = new_name(link.element, link.name, "_link", set(scene.bodies))
    position, rotation = _frame(link.pose)
    place: dict[str, Any] = {"position": position, "rotation": rotation, "motion": motion, "collision": group.collision()}
    place["color"] = next((part.color for part in group.links if part.color), None)
    whole = None
    if group.mass:
        whole = group.properties()
    elif motion == "dynamic":
        whole = group.lifted(lift)
        if whole is None:
            link.element.refuse("a link that moves needs a mass, here or further on: <inertial> with <mass value='…'> above 0")
        moment = np.linalg.eigvalsh(whole.inertia)[2]
        link.element.note(f"moves without mass; taken as {whole.mass:.6g} kg, {moment:.6g} kg·m²")
    if whole is not None:
        place |= {"mass": whole.mass, "com": whole.com.tolist()}
    if whole is not None and motion == "dynamic":
        place |= {"inertia": lifted_inertia(group, whole, lift), "strict": False}
    return scene.add_body(name, group.drawing(), **place)


def lifted_inertia(group: Group, whole: MassProperties, lift: float) -> Array:
    """The inertia with all principal moments above zero; noted where one had to be lifted, or where no body has them."""
    given, axes = np.linalg.eigh(whole.inertia)
    moments, taken = given, "kept"
    if given[0] <= max(1e-9 * given[2], whole.mass * NO_GYRATION**2):
        moments = np.maximum(given, max(whole.mass * lift**2, 1e-9 * given[2]))
        taken = "taken as ({:.6g}, {:.6g}, {:.6g})".format(*moments)
    if np.array_equal(moments, given) and given[2] - given[1] - given[0] <= TRIANGLE_SLACK * given[2]:
        return whole.inertia
    others = f" (with {', '.join(repr(link.name) for link in group.links if link is not group.main)})" * (len(group.links) > 1)
    has = "has the principal moments ({:.6g}, {:.6g}, {:.6g}) kg·m²".format(*given)
    group.main.element.note(f"no body of {whole.mass:g} kg{others} {has}; {taken}")
    return np.asarray(axes @ np.diag(moments) @ axes.T) if moments is not given else whole.inertia


def gear_pairs(names: Set[str], follows: dict[str, Follow]) -> Iterator[tuple[str, Gear]]:
    """(follower, gear); where the leader itself was left out, its first follower leads the others."""
    stand_in: dict[str, tuple[str, float]] = {}
    for follower, follow in follows.items():
        if follower not in names or follow.multiplier == 0.0:
            continue
        if follow.leader in names:
            yield follower, Gear(follower, follow.leader, follow.multiplier)
        elif follow.leader in stand_in:
            other, multiplier = stand_in[follow.leader]
            yield follower, Gear(follower, other, follow.multiplier / multiplier)
        else:
            stand_in[follow.leader] = follower, follow.multiplier


def new_name(element: Element, name: str, suffix: str, taken: set[str]) -> str:
    """A name not taken yet: that of the file, or with suffixes and a note; it is taken then."""
    free = name
    while free in taken:
        free += suffix
    if free != name:
        element.note(f"called {free!r}, {name!r} is taken", level=logging.INFO)
    taken.add(free)
    return free


def _frame(pose: Pose) -> tuple[list[float], list[float]]:
    return pose[0].tolist(), (pose[1] / np.linalg.norm(pose[1])).tolist()
