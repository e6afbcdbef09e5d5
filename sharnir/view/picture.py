"""One world of a simulation as nodes of a page: bodies, joints, ropes, springs, forces, contacts; and how large a scene is.

Everything hangs on the node of its world, marks and names on those of their bodies: a picture moves bodies, ropes and what
changes its shape, and nothing else.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.core.strided import of_first
from sharnir.errors import SimulationError
from sharnir.geometry.shapes import Triangles
from sharnir.io.meshes import as_glb, coloured, finishes, is_painted, paint
from sharnir.model.descriptions import PLAIN_FINISH
from sharnir.model.model import FIXED, KINEMATIC
from sharnir.runtime.measures import poses
from sharnir.view.pieces import (
    PALETTE,
    Colour,
    along,
    ball,
    coil,
    creased,
    cylinder,
    double_arrow,
    joined,
    outermost,
    part_mesh,
    round_length,
    safe,
    sector,
    smooth,
)

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
LEAST_SEEN = 1e-7  # of the picture's size: less is not seen to move
ROPE_LEAST = 0.003  # of the picture's size: thinner ropes are drawn as thick as this
FADE = 0.98  # of the largest force seen, that is left after a picture
WATCH_TIME, WATCH_WORK = 8.0, 1.5  # s of motion that the first view takes in; s of work that this may cost
FIXED_COLOUR, SILVER, TERRAIN_COLOUR = (150, 155, 160), (190, 195, 200), (142, 134, 112)
TURN_COLOUR, SLIDE_COLOUR, BALL_COLOUR, ROD_COLOUR, SPRING_COLOUR = (
    (214, 69, 65), (38, 166, 91), (142, 68, 173), (70, 80, 90), (90, 120, 90),
)  # fmt: skip
STICK_COLOUR, ARC, STRIPE = (120, 30, 45), (236, 188, 96), (250, 250, 250)
ROPE_PARTS_DRAWN = 4  # parts of a segment of a rope, drawn
FORCE_COLOUR, PRESS, NORMAL = (230, 126, 34), (192, 57, 43), (41, 128, 185)
SLACK_COLOUR, TIGHT_COLOUR = (
    np.array([70.0, 110.0, 200.0]),
    np.array([220.0, 50.0, 40.0]),
)  # a rope without pull, and with the largest seen


@dataclass
class Layers:
    """What is shown beside bodies and ropes."""

    axes: bool = True
    names: bool = False
    forces: bool = False
    tensions: bool = False
    contacts: bool = False
    collision: bool = False


class Scale:
    """How long a force is drawn: of the largest of late, rounded, so that arrows do not jump; an impact is forgotten."""

    def __init__(self, length: float) -> None:
        self.length, self.most = length, 0.0

    def fade(self) -> None:
        """One picture on."""
        self.most *= FADE

    def see(self, forces: np.ndarray) -> float:
        """m per N, after having seen these (n, 3), N."""
        if len(forces):
            self.most = max(self.most, float(np.linalg.norm(forces, axis=1).max()))
        return 1 / self.force_per_length if self.most > 0 else 0.0

    @property
    def force_per_length(self) -> float:
        """N per m of an arrow; 0 before a force was seen."""
        return 2 * round_length(self.most) / self.length if self.most > 0 else 0.0

    @property
    def top(self) -> float:
        """The smallest of 1, 2, 5 · 10ⁿ N that is not below the largest force of late; 0 before one was seen."""
        return 1 / round_length(1 / self.most) if self.most > 0 else 0.0


@dataclass
class Mark:
    """What hangs on a body: its mesh, and where in the body's frame."""

    name: str
    body: int
    mesh: Triangles
    colour: Colour
    position: np.ndarray
    wxyz: np.ndarray
    joint: str = ""  # whose axis it is


class Looks:
    """What the worlds of a simulation look like: meshes and colours, found once for all of them."""

    def __init__(self, sim: Owner, size: float) -> None:
        self.sim, self.size = sim, size
        model = sim.model
        motion = model.bodies.motion.numpy()
        self.parts: dict[int, list[Any]] = {}  # of each body, what touches
        for shape in model.collision.shapes if model.collision is not None else ():
            self.parts.setdefault(shape.body, []).append(shape.part)
        self.bodies: dict[int, tuple[Triangles, Colour]] = {}
        self.names = {i: name for name, i in model.body_names.items()}
        self.paint: dict[int, Any] = {}  # of bodies with colours of their own: a surface (`trimesh.Trimesh`)
        self.files: dict[int, bytes] = {}  # of those, and of bodies with a roughness or metalness: what pages are sent (glTF)
        moving = 0
        for i, own in enumerate(model.shapes):
            shape = model.visuals.get(i, own)
            given, mesh = model.colors[i], self._body_mesh(i, shape)
            colour = {FIXED: FIXED_COLOUR if shape is not None else TERRAIN_COLOUR, KINEMATIC: SILVER}.get(int(motion[i]))
            if colour is None:
                colour, moving = PALETTE[moving % len(PALETTE)], moving + 1
            colour = colour if given is None else tuple(round(255 * c) for c in given)
            if shape is not None and is_painted(shape):
                made = self.paint[i] = paint(shape, colour)
                mesh = np.asarray(made.vertices), np.asarray(made.faces)
                self.files[i] = as_glb(made, model.finishes.get(i))
            elif mesh is not None and i in model.finishes:
                self.files[i] = as_glb(coloured(*mesh, colour), model.finishes[i])
            if mesh is not None:
                self.bodies[i] = mesh, colour
        self._far = {i: outermost(vertices) for i, ((vertices, _), _) in self.bodies.items()}
        self.still = [i for i in self.bodies if motion[i] == FIXED]
        self.moving = moving
        self.marks = self._marks()
        self.rods = [k for k, length in enumerate(model.joints.rod.numpy()) if length > 0] if model.joint_kinds else []
        self.ends = [
            (np.asarray(model.parents), of_first(model.joints.parent_point)),
            (np.asarray(model.children), of_first(model.joints.child_point)),
        ]

    def finish(self, i: int) -> list[float]:
        """Roughness and metalness of a body, 0 to 1; of a painted one without its own, the mean of its file's."""
        own = self.sim.model.finishes.get(i, PLAIN_FINISH)
        return [float(x) for x in (own if own is not PLAIN_FINISH or i not in self.paint else finishes(self.paint[i]).mean(0))]

    def _body_mesh(self, i: int, shape: Any) -> Triangles | None:
        """A body's own shape, else what touches of it, else a small ball; nothing of the world but its terrain."""
        if shape is not None:
            return creased(*(np.asarray(a) for a in shape.mesh()))
        meshes = [mesh for part in self.parts.get(i, ()) if (mesh := part_mesh(part)) is not None]
        if meshes:
            return creased(*joined(meshes))
        if i == 0:
            return None
        vertices, faces = ball(0.012 * self.size)
        return vertices + self.sim.model.com[i], faces

    def collision(self, i: int) -> Triangles | None:
        """What touches of a body, where that is not what it looks like anyway."""
        meshes = [mesh for part in self.parts.get(i, ()) if (mesh := part_mesh(part)) is not None]
        return joined(meshes) if meshes else None

    def extent(self) -> np.ndarray:
        """(3,) m, size of a box around all that is drawn of a world at the start, terrains and floors too."""
        low, high = self.corners(list(self.bodies))
        return np.asarray(high - low)

    def corners(self, bodies: list[int] | None = None) -> np.ndarray:
        """(2, 3) m, of the box around bodies of the first world as they are now; None: those that move, else all; and ropes."""
        place, turn, _ = poses(self.sim, 0)
        ropes = self.sim.model.ropes.names if bodies is None and self.sim.model.ropes is not None else ()
        if bodies is None:
            bodies = [i for i in self.bodies if i not in self.still] or list(self.bodies)
        points = [place[i] + quat_rotate(np.tile(turn[i], (len(self._far[i]), 1)), self._far[i]) for i in bodies]
        points += [rope_segments(self.sim, name, 0)[0].reshape(-1, 3) for name in ropes]
        every = np.concatenate(points) if points else np.zeros((1, 3))
        return np.array([every.min(0), every.max(0)])

    def planes(self) -> list[Any]:
        """The grounds of the scene."""
        return [part for parts in self.parts.values() for part in parts if part.kind == "plane"]

    def _marks(self) -> list[Mark]:
        """Pins along free rotations, double arrows along free slides, balls: each on the body in which it stands still."""
        model = self.sim.model
        out: list[Mark] = []
        if not model.joint_kinds:
            return out
        names = list(model.joint_names)
        place, turn, _ = poses(self.sim, 0)
        rod = model.joints.rod.numpy()
        for k, joint in enumerate(model.joint_kinds):
            if rod[k] > 0 or joint.mask == 63:  # a free body has no axis worth a mark
                continue
            view = self.sim.joint(names[k])
            anchor = np.atleast_2d(view.anchor)[0]
            slides = joint.v_size - len(joint.turns)
            shown = slides if len(joint.turns) == 3 else joint.v_size
            jobs = list(view.axes.values())[:shown]
            for i, axis in enumerate(jobs):
                body = int(model.parents[k] if self._on_parent(joint, i, slides, jobs) else model.children[k])
                half = self._reach(k, anchor, axis, place, turn)
                thin = min(0.0045 * self.size, 0.1 * half)
                mesh, colour = (double_arrow(thin, half), SLIDE_COLOUR) if i < slides else (cylinder(thin, 2 * half), TURN_COLOUR)
                back = quat_conjugate(turn[body])
                out.append(
                    Mark(
                        f"{safe(names[k])}.{i}", body, mesh, colour, quat_rotate(back, anchor - place[body]),
                        along(quat_rotate(back, axis)[None])[0], names[k],
                    )
                )  # fmt: skip
                if joint.v_size == 1 and i >= slides:
                    out += self._arc(names[k], k, view, anchor, axis, place, turn)
            if len(joint.turns) == 3:
                body = int(model.children[k])
                at = quat_rotate(quat_conjugate(turn[body]), anchor - place[body])
                radius = 0.3 * self._reach(k, anchor, np.array([0.0, 0.0, 1.0]), place, turn)
                still = np.array([1.0, 0.0, 0.0, 0.0])
                out.append(Mark(f"{safe(names[k])}.ball", body, ball(min(0.016 * self.size, radius)), BALL_COLOUR, at, still))
        return out

    def _arc(
        self, name: str, k: int, view: Any, anchor: np.ndarray, axis: np.ndarray, place: np.ndarray, turn: np.ndarray
    ) -> list[Mark]:
        """How far a hinge turns, as a ring on the parent that begins where the child stands; none without limits."""
        low, high = (float(np.ravel(end)[0]) for end in (view.limit if view.limit is not None else (-np.inf, np.inf)))
        if not (abs(low) < 7 and abs(high) < 7 and low < high):
            return []
        child, parent = int(self.sim.model.children[k]), int(self.sim.model.parents[k])
        toward = place[child] + quat_rotate(turn[child], self.sim.model.com[child]) - anchor
        toward = toward - (toward @ axis) * axis
        reach = float(np.linalg.norm(toward))
        if reach < 1e-6:
            toward, reach = np.cross(axis, (0.0, 0.0, 1.0) if abs(axis[2]) < 0.9 else (1.0, 0.0, 0.0)), 0.0
        toward, now = toward / np.linalg.norm(toward), float(np.ravel(view.position)[0])
        radius = float(np.clip(0.5 * reach, 0.02 * self.size, 0.12 * self.size))
        vertices, faces = sector(anchor, axis, toward, (low - now, high - now), radius)
        local = quat_rotate(np.tile(quat_conjugate(turn[parent]), (len(vertices), 1)), vertices - place[parent])
        still = np.array([1.0, 0.0, 0.0, 0.0])
        return [Mark(f"{safe(name)}.limits", parent, (local, faces), ARC, np.zeros(3), still)]

    @staticmethod
    def _on_parent(joint: Any, i: int, slides: int, axes: list[np.ndarray]) -> bool:
        """Whether an axis stands still in the parent alone: the first of two rotations, and slides that a rotation turns away."""
        turns = axes[slides:]
        if i >= slides:
            return len(joint.turns) == 2 and i == slides
        return len(joint.turns) > 1 or any(abs(axes[i] @ turn) < 1 - 1e-9 for turn in turns)

    def _reach(self, joint: int, anchor: np.ndarray, axis: np.ndarray, place: np.ndarray, turn: np.ndarray) -> float:
        """How long half a mark is, m: it sticks out of the smaller of the joint's bodies, and is no larger than the picture."""
        model, far = self.sim.model, []
        for body in (int(model.parents[joint]), int(model.children[joint])):
            if model.shapes[body] is not None:
                vertices = outermost(np.asarray(model.shapes[body].mesh()[0]))
                points = place[body] + quat_rotate(np.tile(turn[body], (len(vertices), 1)), vertices) - anchor
                far.append((float(np.linalg.norm(np.ptp(vertices, axis=0))), float(np.abs(points @ axis).max())))
        if not far:
            return 0.05 * self.size
        wide, reach = min(far)
        return float(np.clip(reach + 0.1 * wide, 0.01 * self.size, 0.5 * self.size))


class Picture:
    """The nodes of one world beneath `root`, a node that stands where the world is shown."""

    def __init__(self, server: Any, looks: Looks, world: int, root: str, scale: Scale, pulls: Scale) -> None:
        self.server, self.looks, self.world, self.root, self.scale, self.pulls = server, looks, world, root, scale, pulls
        sim, scene, size = looks.sim, server.scene, looks.size
        model = sim.model
        place, turn, _ = poses(sim, world)
        self.handles: dict[str, Any] = {}
        self._shown = np.full((len(place), 7), np.inf)  # m: where bodies were last drawn; rotations times the size
        self._moving: list[tuple[int, Any]] = []
        for i, (mesh, colour) in looks.bodies.items():
            name, at = f"{root}/bodies/{safe(looks.names[i])}", {"position": place[i], "wxyz": turn[i, [3, 0, 1, 2]]}
            if i in looks.files:
                node = scene.add_glb(name, looks.files[i], **at)
            else:
                vertices, faces = mesh[0].astype(np.float32), mesh[1].astype(np.uint32)
                side = "double" if model.shapes[i] is None or i in model.visuals else "front"
                node = scene.add_mesh_simple(name, vertices, faces, color=colour, side=side, **at)
            self.handles[looks.names[i]] = node
            if i not in looks.still:
                self._moving.append((i, node))
        self.marks = [(mark, self._add_mark(mark)) for mark in looks.marks]
        acts = sim.commands.acts.numpy()[:, 0] if sim.worlds == 1 else ()
        rubs = {name for name, act in zip(model.joint_names, acts, strict=False) if act}
        self._rubbing = [(sim.joint(mark.joint), mark.colour, handle) for mark, handle in self.marks if mark.joint in rubs]
        self._stuck = [False] * len(self._rubbing)
        self._labels = {
            name: scene.add_label(f"{root}/bodies/{safe(name)}/name", name, position=tuple(model.com[i]), visible=False)
            for i, name in looks.names.items()
            if i > 0
        }
        self.picked: str | None = None
        """A body whose name is shown, whatever the layers are."""
        self._outlines: list[Any] = []  # of what touches; made when they are asked for
        line = {"thickness": 0.006 * size}
        none = np.zeros((1, 2, 3), np.float32)
        self._rods = scene.add_line_segments(f"{root}/rods", none, ROD_COLOUR, visible=bool(looks.rods), **line)
        springs = bool(model.spring_names)
        self._springs = scene.add_line_segments(f"{root}/springs", none, SPRING_COLOUR, visible=springs, thickness=0.004 * size)
        cables = bool(model.cable_names)
        self._cables = scene.add_line_segments(f"{root}/cables", none, ROD_COLOUR, visible=cables, thickness=0.004 * size)
        self._ropes: dict[str, Any] = {}
        self._stripes: dict[str, Any] = {}
        self._radius: dict[str, float] = {}
        for k, name in enumerate(model.ropes.names if model.ropes is not None else ()):
            self._ropes[name] = scene.add_line_segments(
                f"{root}/ropes/{safe(name)}", rope_segments(sim, name, world)[0], PALETTE[(looks.moving + k) % len(PALETTE)],
                thickness=max(2 * model.ropes.described[k].radius, ROPE_LEAST * size),
            )  # fmt: skip
            self._radius[name] = 0.5 * max(2 * model.ropes.described[k].radius, ROPE_LEAST * size)
            self._stripes[name] = scene.add_line_segments(
                f"{root}/ropes/{safe(name)}/stripe", none, STRIPE, thickness=0.5 * self._radius[name], visible=True
            )
        self._plain = {name: np.array(handle.colors) for name, handle in self._ropes.items()}
        arrow = {"shaft_radius": 0.004 * size, "head_radius": 0.011 * size, "head_length": 0.028 * size, "visible": False}
        self._forces = scene.add_arrows(f"{root}/joint forces", none, FORCE_COLOUR, **arrow)
        self._presses = scene.add_arrows(f"{root}/contact forces", none, PRESS, **arrow)
        self._normals = scene.add_line_segments(f"{root}/contact normals", none, NORMAL, visible=False, thickness=0.003 * size)
        self._points = scene.add_point_cloud(
            f"{root}/contacts", none[0], NORMAL, point_size=0.012 * size, point_shape="circle", precision="float32", visible=False
        )

    def _add_mark(self, mark: Mark) -> Any:
        looks = self.looks
        on = f"{self.root}/bodies/{safe(looks.names[mark.body])}" if mark.body in looks.bodies else self.root
        position, wxyz = mark.position, mark.wxyz
        vertices, faces = mark.mesh[0].astype(np.float32), mark.mesh[1].astype(np.uint32)
        return self.server.scene.add_mesh_simple(
            f"{on}/axes/{mark.name}", vertices, faces, color=mark.colour, cast_shadow=False, position=position, wxyz=wxyz
        )

    def rub(self) -> None:
        """Axes of joints whose friction holds are dark."""
        for k, (joint, colour, handle) in enumerate(self._rubbing):
            stuck = bool(np.all(joint.stuck))
            if stuck != self._stuck[k]:
                self._stuck[k] = stuck
                handle.color = STICK_COLOUR if stuck else colour

    def lay(self, layers: Layers) -> None:
        """Show or hide what stands still on the bodies."""
        for _, handle in self.marks:
            handle.visible = layers.axes
        for name, handle in self._labels.items():
            handle.visible = layers.names or name == self.picked
        if layers.collision and not self._outlines:
            for i, name in self.looks.names.items():
                mesh = self.looks.collision(i)
                if mesh is not None:
                    vertices, faces = mesh[0].astype(np.float32), mesh[1].astype(np.uint32)
                    on = f"{self.root}/bodies/{safe(name)}" if i in self.looks.bodies else self.root
                    self._outlines.append(
                        self.server.scene.add_mesh_simple(f"{on}/touches", vertices, faces, color=NORMAL, wireframe=True)
                    )
        for handle in self._outlines:
            handle.visible = layers.collision
        for name, handle in self._ropes.items():
            if not layers.tensions:
                handle.colors = self._plain[name]
        if not layers.tensions:
            self._cables.colors = np.tile(np.array(ROD_COLOUR, np.uint8), (len(self._cables.points), 2, 1))

    def show(self, layers: Layers, contacts: list[Any]) -> None:
        """Move the nodes to where the world is; contacts of every world, where they are shown."""
        sim = self.looks.sim
        place, turn, centre = poses(sim, self.world)
        wxyz = turn[:, [3, 0, 1, 2]]
        now = np.concatenate([place, self.looks.size * wxyz], 1)
        moved = np.abs(now - self._shown).max(1) > LEAST_SEEN * self.looks.size
        self._shown[moved] = now[moved]  # what is not seen to move is not sent
        for i, handle in self._moving:
            if moved[i]:
                handle.position, handle.wxyz = place[i], wxyz[i]
        if self.looks.rods:
            ends = self._ends(centre, turn)[:, self.looks.rods]
            self._rods.points = ends.transpose(1, 0, 2).astype(np.float32)
        if sim.model.cable_names and self.world == 0:
            self._show_cables(layers.tensions)
        if sim.model.spring_names:
            radius = 0.012 * self.looks.size
            pairs = [[np.atleast_2d(p)[self.world] for p in sim.spring(name).ends] for name in sim.model.spring_names]
            self._springs.points = np.concatenate([coil(a, b, radius) for a, b in pairs]).astype(np.float32)
        for name, handle in self._ropes.items():
            points, pulls = rope_segments(sim, name, self.world)
            if len(points) > 1 and np.array_equal(points[:-1, 1], points[1:, 0]):  # whole: a smooth curve, with a stripe
                points, pulls = joined_smoothly(points), np.repeat(pulls, ROPE_PARTS_DRAWN)
                self._stripes[name].points = stripe(sim, name, self.world, self._radius[name])
            else:
                self._stripes[name].visible = False
            handle.visible = bool(len(points))
            if len(points):
                handle.points = points
                if layers.tensions:
                    self.pulls.see(pulls[:, None] * (1.0, 0.0, 0.0))
                    handle.colors = tension_colours(pulls, self.pulls.top)
        self._show_forces(centre, turn, layers.forces)
        self._show_contacts(contacts[self.world] if layers.contacts and len(contacts) > self.world else None)

    def _show_cables(self, tensions: bool) -> None:
        """Cables of the first world, coloured by their tension if that is wanted."""
        sim = self.looks.sim
        lines, pulls = [], []
        for name in sim.model.cable_names:
            cable = sim.cable(name)
            points, spans = cable._path()
            lines.append(np.stack([points[:-1], points[1:]], 1))
            pulls.append(np.asarray(cable.tension, float).reshape(sim.worlds, -1)[0][spans])
        line = np.concatenate(lines).astype(np.float32)
        if line.shape != self._cables.points.shape:  # a colour for each part, before there is another number of them
            self._cables.colors = np.array(ROD_COLOUR, np.uint8)
        self._cables.points = line
        if tensions:
            pull = np.concatenate(pulls)
            self.pulls.see(pull[:, None] * (1.0, 0.0, 0.0))
            self._cables.colors = tension_colours(pull, self.pulls.top)

    def _ends(self, centre: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """(2, joints, 3) anchors of all joints on parent and child."""
        return np.array([centre[body] + quat_rotate(turn[body], point) for body, point in self.looks.ends])

    def _show_forces(self, centre: np.ndarray, turn: np.ndarray, on: bool) -> None:
        """What the joints do to their children, as arrows at the anchors."""
        sim = self.looks.sim
        if not on or not sim.model.joint_kinds:
            self._forces.visible = False
            return
        force = sim.state.joint_force.numpy()[:, self.world].astype(float) / sim.dt
        self._arrows(self._forces, self._ends(centre, turn)[1], force)

    def _arrows(self, handle: Any, at: np.ndarray, force: np.ndarray) -> None:
        reach = force * self.scale.see(force)
        long = np.linalg.norm(reach, axis=1) > 1e-3 * self.looks.size
        handle.visible = bool(long.any())
        if long.any():
            handle.points = np.stack([at[long], (at + reach)[long]], 1).astype(np.float32)

    def _show_contacts(self, found: Any) -> None:
        """Points, normals and forces on the second body of each contact."""
        some = found is not None and len(found) > 0
        self._points.visible = self._normals.visible = some
        if found is None or not some:
            self._presses.visible = False
            return
        at, normal = found.point.astype(np.float32), found.normal.astype(np.float32)
        self._points.points = at
        self._normals.points = np.stack([at, at + np.float32(0.05 * self.looks.size) * normal], 1)
        self._arrows(self._presses, found.point, found.force)


# ---- where things are ----


def rope_segments(sim: Owner, name: str, world: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2, 3) ends of a rope's segments and (n,) their tensions, N; torn ones left out."""
    rope = sim.rope(name)
    points, broken, pull = (x if sim.worlds == 1 else x[world] for x in (rope.position, rope.broken, rope.tension))
    whole = ~np.asarray(broken)
    return np.asarray(np.stack([points[:-1], points[1:]], 1)[whole], np.float32), np.asarray(pull)[whole]


def joined_smoothly(segments: np.ndarray) -> np.ndarray:
    """(FINE n, 2, 3) segments of a smooth curve through those of a rope (n, 2, 3) that is whole."""
    curve = smooth(np.vstack([segments[:, 0], segments[-1:, 1]]).astype(float), ROPE_PARTS_DRAWN)
    return np.stack([curve[:-1], curve[1:]], 1).astype(np.float32)


def stripe(sim: Owner, name: str, world: int, radius: float) -> np.ndarray:
    """(n, 2, 3) a line on the surface of a rope, which shows its twist."""
    rope = sim.rope(name)
    points, turn = (np.asarray(x if sim.worlds == 1 else x[world], float) for x in (rope.position, rope.rotation))
    aside = quat_rotate(turn, np.tile([1.0, 0.0, 0.0], (len(turn), 1)))
    line = smooth(0.5 * (points[:-1] + points[1:]) + radius * aside, ROPE_PARTS_DRAWN)
    return np.asarray(np.stack([line[:-1], line[1:]], 1), np.float32)


def tension_colours(pulls: np.ndarray, most: float) -> np.ndarray:
    """(n, 2, 3) colours of segments: blue without pull, red with the largest, N."""
    share = np.clip(pulls / most if most > 0 else 0 * pulls, 0.0, 1.0)[:, None]
    return np.repeat((SLACK_COLOUR + share * (TIGHT_COLOUR - SLACK_COLOUR))[:, None], 2, 1).astype(np.uint8)


def legend(layers: Layers, forces: Scale, pulls: Scale) -> str:
    """What arrows and colours of the layers that are shown mean, as HTML; empty if nothing is shown."""
    rows: list[tuple[str, str]] = []
    per_length = f"1 m is {forces.force_per_length:g} N" if forces.most > 0 else "none yet"
    if layers.forces:
        rows.append((f"rgb{FORCE_COLOUR}", f"joint force on the child: {per_length}"))
    if layers.contacts:
        rows.append((f"rgb{PRESS}", f"contact force on the second body: {per_length}"))
        rows.append((f"rgb{NORMAL}", "contact point and normal"))
    if layers.tensions:
        low, high = (f"rgb({c[0]:g}, {c[1]:g}, {c[2]:g})" for c in (SLACK_COLOUR, TIGHT_COLOUR))
        rows.append((f"linear-gradient(90deg, {low}, {high})", f"rope tension: 0 to {pulls.top:g} N"))
    swatch = '<span style="flex:none;width:2.6em;height:0.7em;margin-right:0.6em;border-radius:2px;background:{}"></span>'
    lines = "".join(
        f'<div style="display:flex;align-items:baseline">{swatch.format(colour)}<span>{words}</span></div>'
        for colour, words in rows
    )
    return f'<div style="margin:0.2em 1em;font-size:0.86em">{lines}</div>' if rows else ""


def watch(sim: Owner, control: Callable[[Any], None] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box in which the first world moves at first: it is run ahead for a while and put back as it was."""
    model = sim.model
    motion = model.bodies.motion.numpy()
    outline: dict[int, np.ndarray] = {}
    for i, shape in enumerate(model.shapes):
        if shape is not None:
            outline[i] = outermost(np.asarray(shape.mesh()[0]))
        elif i > 0 and motion[i] != FIXED:
            outline[i] = model.com[i][None]
    ends = [
        (np.asarray(model.parents), of_first(model.joints.parent_point)),
        (np.asarray(model.children), of_first(model.joints.child_point)),
    ]

    def box(bodies: list[int]) -> tuple[np.ndarray, np.ndarray]:
        place, turn, centre = poses(sim, 0)
        points = [place[i] + quat_rotate(np.tile(turn[i], (len(outline[i]), 1)), outline[i]) for i in bodies]
        points += [centre[body] + quat_rotate(turn[body], arm) for body, arm in ends if len(body)]
        if model.ropes is not None:
            points += [rope_segments(sim, name, 0)[0].reshape(-1, 3) for name in model.ropes.names]
        every = np.concatenate([np.zeros((0, 3)), *points])
        return (every.min(0), every.max(0)) if len(every) else (np.zeros(3), np.ones(3))

    movers = [i for i in outline if motion[i] != FIXED]
    low, high = box(movers or list(outline))
    first = max(float(np.linalg.norm(high - low)), 1e-3)
    around = [i for i in outline if i not in movers and np.linalg.norm(np.ptp(outline[i], axis=0)) < 4 * first]
    low, high = box(movers + around)  # a floor that is far larger than all that moves does not count
    first = max(float(np.linalg.norm(high - low)), 1e-3)
    before, deadline, latest = sim.snapshot(), time.thread_time() + WATCH_WORK, time.perf_counter() + 4 * WATCH_WORK
    stride = max(1, round(WATCH_TIME / 160 / sim.dt))
    with contextlib.suppress(SimulationError):
        for _ in range(max(1, round(WATCH_TIME / stride / sim.dt))):
            if control is None:
                sim.step(stride)
            else:
                for _ in range(stride):
                    control(sim)
                    sim.step()
            lower, upper = (f(a, b) for f, a, b in zip((np.minimum, np.maximum), (low, high), box(movers + around), strict=True))
            late = time.thread_time() > deadline or time.perf_counter() > latest
            if np.linalg.norm(upper - lower) > 4 * first or late:
                break  # something flies off, or takes long: what was seen so far has to do
            low, high = lower, upper
    sim.restore(before)
    room = 0.05 * max(float(np.linalg.norm(high - low)), 1e-3)
    return low - room * (high - low < room), high + room * (high - low < room)
