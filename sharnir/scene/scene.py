"""Scene: what a user describes, object by object, checked as it is said; `build()` makes the Model of it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import warp as wp

from sharnir.collision.describe import ContactScene
from sharnir.collision.material import Material, checked
from sharnir.core import summaries
from sharnir.core.journal import Journaled
from sharnir.core.renamed import Former, former_arguments
from sharnir.core.spatial import quat_rotate, unit_quat
from sharnir.core.types import begin_modules, load_modules
from sharnir.engine.rope import describe as roping
from sharnir.engine.rope.build import Ropes
from sharnir.errors import SceneError, SceneWarning, callers_level, is_positive, number
from sharnir.geometry.shapes import Shape
from sharnir.geometry.terrain import Terrain
from sharnir.model import assembly
from sharnir.model.cable_tables import CableDescription, Drum, Sheave, cable_start, cable_table, describe_cable
from sharnir.model.descriptions import (
    BodyDescription,
    FrameDescription,
    JointDescription,
    SpringDescription,
    looks,
    mass_properties,
    start_pose,
    vector,
)
from sharnir.model.drive_tables import drive_table
from sharnir.model.joint_types import Gear, Joint, axis_table, joint_tables
from sharnir.model.kinematics import read_joints
from sharnir.model.model import FIXED, MOTIONS, Model
from sharnir.scene.inputs import Input, add_input
from sharnir.scene.joint_placement import (
    Frame,
    check_flags,
    describe_joint,
    far_from_both,
    gear_axis,
    joint_frames,
    limits_in_degrees,
    neighbours,
    with_drive,
)
from sharnir.scene.parts import Collider, Inertia, Rope, Visual
from sharnir.scene.tables import body_table, gear_table, spring_table
from sharnir.scene.wheels import add_belt, raycast_wheel
from sharnir.sensors.table import SensorDescription, add_sensor

log = logging.getLogger("sharnir")
NAMED_APART = (("bodies", "frames", "ropes"), ("joints", "gears"), ("springs",), ("cables",), ("sensors",))
"""Kinds that share one namespace: two objects within a group have different names."""
FAR_TIE = 5.0  # body widths: a rope tied to it from farther off may be a mistake


class Scene(Journaled):
    """A mechanism in the making. Bodies and joints have names; `scene.world` is the name of the ground.

    Args:
        gravity: acceleration, m/s², world axes.
        contact: whether bodies touch each other; None: as soon as there is a ground, a terrain or a body with collide=True. Then
            every body with a shape does, but for neighbours at an enabled joint. A warning says so if bodies have materials (as
            wheels do) and the scene has no contact; False says that none is meant.
    """

    world = "world"

    def __init__(self, gravity: Sequence[float] = (0.0, 0.0, -9.81), contact: bool | None = None) -> None:
        self.gravity = vector(gravity, "Scene", "gravity (m/s²)")
        zero, still = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        ground = BodyDescription(self.world, None, FIXED, 0.0, zero, np.zeros((3, 3)), zero, still, zero, zero, None)
        self.bodies: dict[str, BodyDescription] = {self.world: ground}
        self.joints: dict[str, JointDescription] = {}
        self.gears: dict[str, Gear] = {}
        self.springs: dict[str, SpringDescription] = {}
        self.cables: dict[str, CableDescription] = {}
        self.ropes: dict[str, roping.RopeDescription] = {}
        self.touch = ContactScene(contact)
        self.frames: dict[str, FrameDescription] = {}
        self.inputs: dict[str, Input] = {}
        self.sensors: dict[str, SensorDescription] = {}
        self.notes: list[str] = []
        """What may be a mistake, and what an importer changed in its file, left out or found odd there: a line each."""
        self.calls, self.options, self._inside = [], {}, False
        self._built, self._whole = False, True

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and "_whole" in self.__dict__:
            near = get_close_matches(name, [n for n in (*self.__dict__, *dir(type(self))) if not n.startswith("_")], 1)
            raise SceneError(f"Scene: {name!r} = {value!r} means nothing" + (f"; is {near[0]!r} meant?" if near else ""))
        if name == "gravity":
            value = vector(value, "Scene", "gravity (m/s²)")
            if self.__dict__.get("_built"):
                self._note(f"Scene: gravity = {value.tolist()}: simulations made so far keep theirs; set sim.gravity there")
        super().__setattr__(name, value)

    # ---- bodies ----

    def __repr__(self) -> str:
        return summaries.scene(self)

    @former_arguments(spin="angular_velocity")
    def add_body(
        self,
        name: str,
        shape: Shape | None = None,
        *,
        mass: float | None = None,
        density: float | None = None,
        inertia: Inertia | Any = None,
        com: Sequence[float] | None = None,
        position: Sequence[float] | None = None,
        rotation: Sequence[float] | None = None,
        velocity: Sequence[float] = (0.0, 0.0, 0.0),
        angular_velocity: Sequence[float] = (0.0, 0.0, 0.0),
        motion: Literal["dynamic", "fixed", "kinematic"] = "dynamic",
        path: Callable[[float], Any] | None = None,
        material: Material | None = None,
        collision: Shape | Sequence[Shape] | Collider | None = None,
        collide: bool | None = None,
        group: int | tuple[int, int] | Sequence[tuple[int, int]] | None = None,
        surface_velocity: Sequence[float] | None = None,
        color: Sequence[float] | str | None = None,
        roughness: float | None = None,
        metalness: float | None = None,
        visual: Shape | Sequence[Shape] | str | Visual | None = None,
        drag_area: float = 0.0,
        strict: bool = True,
        relative_to: str | None = None,
    ) -> str:
        """Add a body; returns its name, by which joints and a simulation refer to it.

        Args:
            shape: gives mass properties (and a picture); density 1000 kg/m³ unless `mass` or `density` is given.
            mass: kg. Without a shape and without `inertia` the body is a point mass.
            inertia: kg·m² about the centre of mass, body's axes, (3, 3), its diagonal, or an `Inertia`; the shape's if None.
            com: centre of mass in the body's frame, m; the shape's if not given.
            position, rotation: pose of the body's own frame in the world, or in that of the body `relative_to`: m, unit
                quaternion (x, y, z, w); the origin, or the start of `path`.
            velocity: of the centre of mass, m/s, world axes. angular_velocity: rad/s, world axes.
            motion: "dynamic", "fixed", or "kinematic" (prescribed: it pushes and is not pushed).
            path: of a kinematic body, time (s) → (position, rotation), or position alone.
            material: how its surface rubs and bounces; `Material()` if None.
            collision: what touches others, a shape or several in the body's frame, or a `Collider`; `shape` if None. A `Mesh` is
                its triangles on a body that stays, its convex hull on one that moves, or parts (`Mesh(…, decompose=True)`).
            collide: False: it touches nothing. True: as None, and turns contact on (see Scene).
            group: bits of the groups it belongs to (1 if None), or (those, bits of the groups it touches), or a list of such
                pairs, one per shape of `collision`.
            surface_velocity: of its surface, as of a conveyor, m/s, in the body's axes.
            color: in pictures: (red, green, blue) from 0 to 1, "#rrggbb" or a name ("red").
            roughness, metalness: in pictures, 0 to 1: polished to matt, paint to bare metal; None: the file's, or 0.5 and 0.
            visual: what it looks like, if not like its shape: a file (.glb, .obj, .stl, …) in m and the body's axes, with its
                colours and textures, a `Surface(file, scale, position=…, rotation=…)`, shapes, a `Visual`. It touches nothing.
            drag_area: c_d A, m², by which air that flows past (`sim.wind`) drags on it: ½ ρ c_d A |w − v| (w − v), N.
            strict: False: an inertia that no body has (one moment above the sum of the others) is taken as it is.
        """
        who = f"body {name!r}"
        self._new_name(name, "bodies")
        if not isinstance(motion, str) or motion not in MOTIONS:
            raise SceneError(f"{who}: motion is one of {', '.join(map(repr, MOTIONS))}, got {motion!r}")
        if path is not None and (motion != "kinematic" or not callable(path)):
            raise SceneError(f"{who}: a path is a function of time that moves a kinematic body, got {path!r}, motion {motion!r}")
        if shape is not None and not isinstance(shape, Shape):
            raise SceneError(f"{who}: shape is one of the shapes of sharnir (Box, Sphere, …), got {shape!r}")
        if shape is None and density is not None:
            raise SceneError(f"{who}: density needs a shape")
        if shape is None and mass is None and motion == "dynamic":
            raise SceneError(f"{who}: a dynamic body needs a shape or a mass")
        used = shape if shape is not None and (motion == "dynamic" or shape.volume > 0) else None
        total, centre, tensor = mass_properties(who, used, mass, density, com, inertia, strict)
        other = None if relative_to is None else self._body(who, "relative_to", relative_to)
        place, turn = start_pose(name, path, position, rotation, other)
        self._ask_of_order(who, rotation)
        if motion == "fixed" and (np.any(velocity) or np.any(angular_velocity)):
            raise SceneError(f"{who}: a fixed body does not move, got velocity {velocity}, angular velocity {angular_velocity}")
        self.bodies[name] = BodyDescription(
            name, shape, MOTIONS[motion], total, centre, tensor, place, turn,
            vector(velocity, who, "velocity (m/s)"), vector(angular_velocity, who, "angular_velocity (rad/s)"), path,
            **looks(color, roughness, metalness, visual, drag_area, who),
        )  # fmt: skip
        self.touch.add_body(name, collide, collision, material, group, surface_velocity)
        return name

    # ---- contact ----

    def add_ground(
        self, height: float = 0.0, *, normal: Any = "z", material: Material | None = None,
        group: int | tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """A plane of the world: `height` (m) along `normal` (a letter or a vector), which points out of the ground.

        group: as in `add_body`.
        """
        self.touch.add_ground(self.world, height, normal, material, group)

    def add_terrain(
        self,
        name: str,
        heights: Any,
        *,
        size: Sequence[float] | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        material: Material | None = None,
        friction: Any = None,
        group: int | tuple[int, int] | None = None,
    ) -> str:
        """A fixed height field, solid below. Returns its name.

        `sharnir.geometry.terrain` makes heights of hills, stairs, rubble, images.

        Args:
            heights: m, (along x, along y), evenly spaced; or a `Terrain`, which has its size and friction with it.
            size: m, full size along x and y. position: of its middle, m; heights count from there.
            friction: a map: the material's coefficient in each cell, (along x − 1, along y − 1). group: as in `add_body`.
        """
        self._new_name(name, "bodies")
        if isinstance(heights, Terrain):
            heights, size, friction = heights.heights, size or heights.size, heights.friction if friction is None else friction
        self.touch.add_terrain(name, heights, size, material, friction, group)
        contact = self.touch.bodies[name]
        self.add_body(name, motion="fixed", position=position)
        self.touch.bodies[name] = contact
        return name

    def ignore(self, a: str, b: str) -> None:
        """Let two bodies, or a rope and a body, pass through each other."""
        if roping.ignore_rope(self.ropes, self.bodies, a, b):
            return
        names = [self._body("ignore", what, body).name for what, body in (("a", a), ("b", b))]
        self.touch.ignored.add(self.touch.pair("ignore", *names))

    def set_pair(self, a: str, b: str, material: Material) -> None:
        """Give the contact of two bodies a material of its own; neighbours at a joint touch each other then too."""
        names = [self._body("set_pair", what, body).name for what, body in (("a", a), ("b", b))]
        self.touch.pairs[self.touch.pair("set_pair", *names)] = checked(material, f"pair {a!r}, {b!r}")
        self.touch.expected.append(f"the pair {a!r}, {b!r} has a material")

    add_belt = add_belt
    add_raycast_wheel = raycast_wheel
    add_cast_wheel = Former("add_raycast_wheel")

    def add_frame(
        self, name: str, body: str, *, position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    ) -> str:  # fmt: skip
        """Fix a frame to a body, for sensors, tools and markers; returns its name (`sim.frame(name)`).

        Args:
            position, rotation: in the body's frame, m and a unit quaternion (x, y, z, w).
        """
        who = f"frame {name!r}"
        self._new_name(name, "frames")
        owner = self._body(who, "body", body)
        turn = unit_quat(rotation, who)
        self.frames[name] = FrameDescription(owner.name, vector(position, who, "position (m)"), turn)
        return name

    # ---- joints ----

    def add_joint(
        self,
        name: str,
        joint: Joint | Gear,
        parent: str | None = None,
        child: str | None = None,
        *,
        position: Any = None,
        rotation: Sequence[float] | None = None,
        parent_frame: Frame | None = None,
        child_frame: Frame | None = None,
        break_force: float | None = None,
        break_torque: float | None = None,
        collide: bool = False,
        enabled: bool = True,
    ) -> str:
        """Connect two bodies; joint coordinates are the child's motion relative to the parent. Returns the joint's name.

        Args:
            joint: `Revolute(...)`, `Spherical()`, … or `Gear(...)`, which couples two joints and takes no bodies.
            position, rotation: the joint's anchor (m) and frame in the world, now; coordinates are 0 there. A `Distance` takes
                two points, on the parent and on the child.
            parent_frame, child_frame: instead, the (position, rotation) of the joint frame in each body's frame; the mechanism
                may start unassembled then.
            break_force, break_torque: what the joint carries (N, N·m) before it breaks: `enabled` is False from then on.
            collide: True: the two bodies collide although the joint connects them. False: they do not while it is enabled; a
                joint to the world does not exclude the ground (but for a body that it welds to the world).
            enabled: False: the joint starts disabled and does not hold, as the joint of a hook that has grabbed nothing yet:
                the bodies start and collide as if it were not there, until `sim.joint(name).attach()` or `enabled = True`.
        """
        who = f"joint {name!r}"
        self._new_name(name, "joints")
        check_flags(who, collide=collide, enabled=enabled)
        if isinstance(joint, Gear):
            if not enabled or any(
                v is not None for v in (parent, child, position, rotation, parent_frame, child_frame, break_force, break_torque)
            ):
                raise SceneError(f"{who}: a gear couples two joints and takes no bodies, positions, frames, strength or enabled=")
            for end in (joint.joint_a, joint.joint_b):
                gear_axis(self.joints, who, end)
            if joint.joint_a == joint.joint_b:
                raise SceneError(f"{who}: a gear couples two different axes, got {joint.joint_a!r} twice")
            self.gears[name] = joint
            return name
        if not isinstance(joint, Joint):
            raise SceneError(f"{who}: joint is one of the joints of sharnir (Revolute, Spherical, …), got {joint!r}")
        a, b = self._body(who, "parent", parent), self._body(who, "child", child)
        if a is b:
            raise SceneError(f"{who}: parent and child are both {a.name!r}; allowed are two different bodies")
        if MOTIONS["dynamic"] not in (a.motion, b.motion):
            raise SceneError(f"{who}: neither {a.name!r} nor {b.name!r} is dynamic; at least one has to be")

        frames = joint_frames(who, joint, a, b, position, rotation, parent_frame, child_frame)
        index = list(self.bodies)
        made = describe_joint(name, joint, (a, b), (index.index(a.name), index.index(b.name)), frames)
        for what, value in (("break_force", break_force), ("break_torque", break_torque)):
            if value is not None:
                if not is_positive(value):
                    raise SceneError(f"{who}: {what} is a positive finite number, got {value!r}")
                setattr(made, what, float(value))
        made.enabled = enabled
        self.joints[name] = made
        if enabled:
            for words in (far_from_both(made, (a, b)), limits_in_degrees(made)):
                if words:
                    self._note(words)
        if collide:
            self.touch.asked.add(self.touch.pair(who, a.name, b.name))
        return name

    def set_drive(self, joints: str, drive: Any) -> list[str]:
        """Give joints of the scene a drive, as those of a robot from a file; returns their names.

        Args:
            joints: a name, or a pattern as "hip*".
            drive: as a joint takes it: `Servo(...)`, a motor, or one for each axis. A `Servo` without `max_force` keeps the bound
                of the servo that the joint had.
        """
        names = [name for name in self.joints if fnmatchcase(name, str(joints))]
        if not names:
            raise SceneError(f"set_drive: no joint is called {joints!r}; joints are {', '.join(self.joints) or 'none'}")
        made = {name: with_drive(self.joints[name], drive) for name in names}  # all of them, or none
        self.joints |= made
        return names

    def add_spring(
        self,
        name: str,
        a: str,
        b: str,
        *,
        at_a: Sequence[float] = (0.0, 0.0, 0.0),
        at_b: Sequence[float] = (0.0, 0.0, 0.0),
        stiffness: float = 0.0,
        rest: float | None = None,
        damping: float = 0.0,
    ) -> str:
        """A spring and damper between a point of body a and one of body b (each in its body's frame, m). Returns its name.

        Args:
            stiffness: N/m. rest: length without force, m; the distance at the start if None. damping: N·s/m along the line.
        """
        who = f"spring {name!r}"
        self._new_name(name, "springs")
        first, second = self._body(who, "a", a), self._body(who, "b", b)
        if first is second:
            raise SceneError(f"{who}: both ends are on {a!r}; allowed are two different bodies")
        if MOTIONS["dynamic"] not in (first.motion, second.motion):
            raise SceneError(f"{who}: neither {a!r} nor {b!r} is dynamic; at least one has to be")
        points = [vector(at_a, who, "at_a (m)"), vector(at_b, who, "at_b (m)")]
        ends = [body.position + quat_rotate(body.rotation, p) for body, p in zip((first, second), points, strict=True)]
        length = float(np.linalg.norm(ends[1] - ends[0])) if rest is None else rest
        numbers = [
            number(who, what, v, least=0.0) for what, v in (("stiffness", stiffness), ("rest", length), ("damping", damping))
        ]
        for body, point in zip((first, second), points, strict=True):
            if body.motion == MOTIONS["dynamic"] and not np.any(body.inertia) and np.linalg.norm(point - body.com) > 1e-9:
                raise SceneError(
                    f"{who}: body {body.name!r} is a point mass; a spring holds it at its centre, got {point.tolist()}"
                )
        index = list(self.bodies)
        self.springs[name] = SpringDescription(
            index.index(a), index.index(b), points[0] - first.com, points[1] - second.com, *numbers
        )
        return name

    def add_cable(
        self, name: str, path: Sequence[str | tuple[str, Sequence[float]] | Sheave | Drum], *, length: float | None = None
    ) -> str:
        """A massless cable that runs over sheaves and may be wound on drums: it pulls, never pushes. Returns its name.

        Args:
            path: from one end to the other: an end is a body, (body, point in its frame, m) or `Drum(…)`, what lies between them
                `Sheave(…)`. Its length is shared by all parts; of a drum what is wound up is not counted.
            length: m; that of the path at the start if None, which is taut then.
        """
        self._new_name(name, "cables")
        self.cables[name] = describe_cable(name, path, length, self.bodies)
        return name

    # ---- ropes ----

    def add_rope(
        self, name: str, start: Sequence[float] | None = None, end: Sequence[float] | None = None, *,
        points: Any = None, length: float | None = None, segments: int | Sequence[float] = 50, radius: float = 0.01,
        density: float = 1000.0, mass_per_length: float | None = None,
        E: float | None = None, G: float | None = None, EI: float | None = None, GJ: float | None = None,
        rest_curvature: Any = (0.0, 0.0), rest_twist: Any = 0.0, twist: float = 0.0,
        damping: float = 0.0, drag: float = 0.0, drag_coefficient: float = 0.0,
        breaking_load: float | None = None, rod: bool = False,
        attach: tuple[str | None, str | None] = (None, None), clamp: tuple[Any, Any] = (False, False),
        reel: Literal["start", "end"] | None = None, longest: float | None = None, winch: tuple[str, float] | None = None,
        velocity: Any = (0.0, 0.0, 0.0), material: Material | None = None, collide: bool = True,
        like: Rope | None = None,
    ) -> str:  # fmt: skip
        """Add a rope that does not stretch, bends and twists. Returns its name.

        Args:
            start, end: its ends in the world, m; straight between them, or hanging if `length` (m) is more than their distance.
            points: instead, a polyline (points, 3), m, or a function of a fraction 0 … 1 that returns a point.
            segments: how many, or their relative lengths from the start.
            radius: m. density: kg/m³, or mass_per_length: kg/m.
            E, G: Pa, of a solid round rope; or EI, GJ: N·m², as measured. None: it bends and twists freely.
            rest_curvature: 1/m about the first two axes of its elements, and rest_twist, rad/m, without load; one value or one a
                place (segments + 1).
            twist: rad, from end to end at the start, besides the one at rest.
            damping: s, how long bend and twist lag behind their moments; the shape at rest does not depend on it.
            drag: N·s/m², viscous, a metre of rope. drag_coefficient: of air across it (about 1.2).
            breaking_load: N, at which an element tears.
            rod: True: an element pushes like a rigid rod; False: it pushes no harder than π² EI/l², at which it buckles, and goes
                slack.
            attach: bodies ("world" included) to which its ends are tied where they are, or ropes, at their nearest point; None
                leaves an end free. See also `tie_rope`.
            clamp: whether an end's direction is held too: as it starts, or a direction (3,) in which it leaves or enters.
            reel: "start" or "end", from which it is paid out and taken in (`sim.rope(name).reel_speed`), up to `longest`, m.
            winch: (joint, radius): its reel is a drum of that radius, m, on a joint of one rotation, which takes it in where it
                turns on; tension turns it back. The drum's inertia, drive, brake and limits are the joint's and its bodies'.
                A negative radius winds the other way. Beyond `longest`, and when all is in, the rope slips.
            velocity: m/s, one for all or one a point.
            material: how its surface rubs; `Material()` if None. collide: False: it touches nothing; never what holds it.
            like: a `Rope` with properties that several ropes share; its fields replace the arguments of the same names.
        """
        if like is not None:  # `Journaled` has replaced a Rope by its fields
            raise SceneError(f"rope {name!r}: like is a Rope, got {like!r}")
        self._new_name(name, "ropes")
        who = f"rope {name!r}"
        rope = roping.describe(
            name, start, end, points=points, length=length, segments=segments, radius=radius, density=density,
            mass_per_length=mass_per_length, E=E, G=G, EI=EI, GJ=GJ, rest_curvature=rest_curvature, rest_twist=rest_twist,
            twist=twist, damping=damping, drag=drag, drag_coefficient=drag_coefficient, breaking_load=breaking_load, rod=rod,
            reel=reel, longest=longest, velocity=velocity, gravity=self.gravity,
        )  # fmt: skip
        for what, pair in (("attach", attach), ("clamp", clamp)):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise SceneError(f"{who}: {what} is a pair, one for each end, got {pair!r}")
        for side, (body, clamped) in enumerate(zip(attach, clamp, strict=True)):
            held = False if clamped is None else clamped
            if isinstance(body, str) and body in self.ropes:
                roping.tie_end(rope, side, self.ropes[body], held)
            elif body is not None:
                self._hold_end(rope, side, self._body(who, "attach", body), held)
            elif held is not False:
                raise SceneError(f"{who}: a clamped end is attached to a body or to the world, got clamp={clamp!r}")
        words = roping.too_tight(rope, self.gravity) if all(end.body == 0 for end in rope.ends) else None
        if words:
            self._note(words)
        if winch is not None:
            roping.wind(rope, winch, self.joints)
        roping.touch_as(rope, material, collide)
        if material is not None and collide:
            self.touch.expected.append(f"{who} has a material")
        self.ropes[name] = rope
        return name

    def _hold_end(self, rope: roping.RopeDescription, side: int, body: BodyDescription, clamp: Any) -> None:
        """Tie an end to a body, where both are."""
        who, dynamic = f"rope {rope.name!r}", body.motion == MOTIONS["dynamic"]
        roping.hold(rope, bool(side), list(self.bodies).index(body.name), body.position, body.rotation, body.com, clamp)
        arm = float(np.linalg.norm(rope.ends[side].point))
        reach = float(np.sqrt(6 * np.trace(body.inertia) / body.mass)) if dynamic and body.mass else np.inf
        if arm > FAR_TIE * max(reach, 1e-9) and np.any(body.inertia):
            self._note(
                f"{who}: its end is {arm:.3g} m from body {body.name!r}, which is {reach:.3g} m wide; is it meant to be there?"
            )
        if (arm > 1e-9 or clamp is not False) and dynamic and not np.any(body.inertia):
            raise SceneError(f"{who}: body {body.name!r} is a point mass; a rope holds it at its centre, without a clamp")

    def _ask_of_order(self, who: str, rotation: Any) -> None:
        """Say that a quaternion is probably meant with w first."""
        if isinstance(rotation, tuple | list) and tuple(rotation) == (1, 0, 0, 0):
            turned = "half a turn about x: quaternions are (x, y, z, w)"
            self._note(f"{who}: rotation=(1, 0, 0, 0) is {turned}; leave it out for no turn, or say sh.about('x', math.pi)")

    def _note(self, words: str) -> None:
        """Say what may be a mistake; it is kept in `notes`."""
        self.notes.append(words)
        warnings.warn(words, SceneWarning, stacklevel=callers_level())

    def tie_rope(self, rope: str, point: int, body: str) -> None:
        """Tie a body to a point between the ends of a rope (counted from the first end), where that point is; it may turn."""
        who = f"rope {rope!r}"
        if rope not in self.ropes:
            raise SceneError(
                f"tie_rope: {rope!r} is not a rope of the scene; available: {', '.join(map(repr, self.ropes)) or 'none'}"
            )
        roping.tie_point(self.ropes[rope], point, self._body(who, "body", body), list(self.bodies).index(body))

    add_input = add_input
    add_control, controls = Former("add_input"), Former("inputs")
    add_sensor = add_sensor

    def _new_name(self, name: str, kind: str) -> None:
        """Raise a SceneError if this is not a valid name, or is already used in the namespace of its kind."""
        if not isinstance(name, str) or not name:
            raise SceneError(f"a name is a non-empty string, got {name!r}")
        among = next(kinds for kinds in NAMED_APART if kind in kinds)
        if any(name in getattr(self, other) for other in among):
            those = f"{', '.join(among[:-1])} and {among[-1]}" if len(among) > 1 else among[0]
            raise SceneError(f"the name {name!r} is taken; {those} have different names")

    def _body(self, who: str, what: str, name: str | None) -> BodyDescription:
        if not isinstance(name, str) or name not in self.bodies:
            raise SceneError(f"{who}: {what} {name!r} is not a body of the scene; available: {', '.join(map(repr, self.bodies))}")
        return self.bodies[name]

    # ---- model ----

    def build(self, worlds: int = 1, device: str = "cpu", begin: Callable[[Model], None] | None = None) -> Model:
        """The Model: checked, assembled, with the redundant rows of its loops found and reported by name.

        Args:
            worlds: number of copies that run at once.
            device: "cpu" or "cuda:0".
            begin: is called with the Model of one world before its start is found.
        """
        if len(self.bodies) == 1 and not self.ropes:
            raise SceneError("the scene is empty: add a body")
        if device not in [d.alias for d in wp.get_devices()]:
            known = ", ".join(repr(d.alias) for d in wp.get_devices())
            raise SceneError(f"device {device!r} is not here; available: {known}")
        if not isinstance(worlds, int) or worlds < 1:
            raise SceneError(f"worlds is a whole number of at least 1, got {worlds!r}")
        self._free_of_point_joints()
        missing = self.touch.missing()
        odd = [words for words in (missing, self.touch.upside_down(self.gravity)) if words]
        for words in odd + self.touch.filled(list(self.bodies.values())):
            if words not in self.notes:
                self._note(words)
        self._built = True
        begin_modules([read_joints.module], device)
        one = self._tables(1, device)  # on a GPU too: a CPU's kernels need not be compiled then
        if begin is not None:
            begin(one)
        load_modules([read_joints.module], device)
        state = one.state()
        assembly.assemble_start(one, state)
        redundant, rigid, shaky = assembly.look_at_loops(one, state)
        if redundant:
            log.info("redundant rows in closed loops (the motion is right, their reactions are shared): %s", ", ".join(redundant))
        assembly.set_spin(one, state, state.spin.numpy().astype(float))
        assembly.read_all(one, state)
        assembly.start_gears(one, state)
        names = ("position", "rotation", "velocity", "spin", "momentum", "q", "qd", "gear_start", "drive_state")
        start = {n: getattr(state, n).numpy()[:, 0].copy() for n in names}
        start |= cable_start(list(self.cables.values()), start["position"].astype(float), start["rotation"].astype(float))
        model = one if worlds == 1 else self._tables(worlds, device)
        model.start, model.redundant, model.rigid, model.notes = start, redundant, rigid, list(self.notes)
        model.shaky = shaky
        model.told = self.told()
        if self.ropes:
            roping.keep_apart(self.ropes.values(), list(self.bodies))
            motion = np.array([b.motion for b in self.bodies.values()])
            jointed = bool(self.joints or self.springs or self.cables)
            model.ropes = Ropes(list(self.ropes.values()), motion, worlds, device, trees=jointed)
        joined = neighbours(list(self.joints.values()))
        model.collision = self.touch.build(list(self.bodies.values()), joined)
        if model.collision is None and any(sensor.kind in ("lidar", "depth") for sensor in self.sensors.values()):
            model.visible = self.touch.build(list(self.bodies.values()), joined, seen=True)
        return model

    def _free_of_point_joints(self) -> None:
        """A body that is to turn needs an inertia; a point mass never turns."""
        for body in self.bodies.values():
            if body.motion == MOTIONS["dynamic"] and not np.any(body.inertia) and np.any(body.angular_velocity):
                raise SceneError(
                    f"body {body.name!r} is a point mass and cannot turn, got angular_velocity {body.angular_velocity.tolist()}"
                )

    def _tables(self, worlds: int, device: str) -> Model:
        """The device tables of bodies, joints and gears as described."""
        bodies = list(self.bodies.values())
        joints = list(self.joints.values())
        gear_ends = [(gear_axis(self.joints, n, g.joint_a), gear_axis(self.joints, n, g.joint_b)) for n, g in self.gears.items()]
        com = np.array([b.com for b in bodies])
        rotation = np.array([b.rotation for b in bodies])
        start = {
            "position": np.array([b.position for b in bodies]) + quat_rotate(rotation, com),
            "rotation": rotation,
            "velocity": np.array([b.velocity for b in bodies]),
            "spin": np.array([b.angular_velocity for b in bodies]),
        }
        table = joint_tables(joints, worlds, device)
        drives = drive_table([j.name for j in joints], [j.axes for j in joints], table, self.touch.casts, worlds, device)
        start["drive_state"] = np.array(drives.pop("drive_state"))
        q_sizes, v_sizes = [j.joint.q_size for j in joints], [j.joint.v_size for j in joints]
        return Model(
            bodies=body_table(bodies, worlds, device),
            joints=table,
            gears=gear_table(self.gears.values(), gear_ends, device),
            axes=axis_table(joints, worlds, device),
            springs=spring_table(list(self.springs.values()), worlds, device),
            cables=cable_table(list(self.cables.values()), worlds, device),
            body_names={b.name: i for i, b in enumerate(bodies)},
            joint_names={j.name: i for i, j in enumerate(joints)},
            gear_names={n: i for i, n in enumerate(self.gears)},
            spring_names={n: i for i, n in enumerate(self.springs)},
            cable_names={n: i for i, n in enumerate(self.cables)},
            cable_paths=list(self.cables.values()),
            start=start,
            gravity=(float(self.gravity[0]), float(self.gravity[1]), float(self.gravity[2])),
            worlds=worlds,
            device=device,
            com=com,
            joint_kinds=[j.joint for j in joints],
            joint_axes=[j.axes for j in joints],
            parents=np.array([j.parent for j in joints], int),
            children=np.array([j.child for j in joints], int),
            joint_enabled=np.array([j.enabled for j in joints], bool),
            q_start=np.cumsum([0, *q_sizes])[:-1],
            v_start=np.cumsum([0, *v_sizes])[:-1],
            shapes=[b.shape for b in bodies],
            colors=[b.color for b in bodies],
            finishes={i: b.finish for i, b in enumerate(bodies) if b.finish is not None},
            visuals={i: b.visual for i, b in enumerate(bodies) if b.visual is not None},
            drag_areas={i: b.drag_area for i, b in enumerate(bodies) if b.drag_area > 0},
            paths={i: b.path for i, b in enumerate(bodies) if b.path is not None},
            frames=dict(self.frames),
            inputs=list(self.inputs.values()),
            sensors=dict(self.sensors),
            **drives,
        )
