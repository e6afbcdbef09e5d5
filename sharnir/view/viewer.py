"""A simulation in the browser: every body, joint axes, play and pause; served to this machine alone.

    import sharnir.view.viewer as viewer
    viewer.serve(sim)            # until Ctrl-C

`Viewer` holds the picture and moves it; `Viewer.run` is the clock: about 60 pictures a second, in real time where the
simulation is fast enough, else slower and never behind (time that cannot be simulated is skipped, not owed).
"""

from __future__ import annotations

import contextlib
import html
import io
import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sharnir import assembly
from sharnir.errors import SimulationError
from sharnir.model import FIXED, KINEMATIC
from sharnir.shapes import Triangles
from sharnir.simulation import Simulation
from sharnir.spatial import quat_rotate
from sharnir.view import need

Control = Callable[[Simulation], None]

PICTURES = 60  # a second
SHARE = 0.75  # of a picture's time that steps may take; the rest goes to the picture
WATCHED = 8.0  # s of motion that the first view takes in
ROOM = 1.15  # around that motion, in the first view
WORLD = 0  # of several worlds the first is shown

PALETTE = (
    (78, 121, 167), (242, 142, 43), (89, 161, 79), (225, 87, 89), (118, 183, 178),
    (176, 122, 161), (237, 201, 72), (156, 117, 95), (255, 157, 167), (100, 143, 206),
)  # fmt: skip
GREY, SILVER = (150, 155, 160), (190, 195, 200)
TURN, SLIDE, BALL, ROD = (214, 69, 65), (38, 166, 91), (142, 68, 173), (70, 80, 90)


class Viewer:
    """The picture of one simulation (of several worlds the first), with its controls.

    Args:
        sim: steps only while the viewer runs it; may be changed from outside while it is paused.
        title: shown above the controls.
        port: of http://127.0.0.1; the next free one is taken where it is busy.
        speed: simulated seconds per second.
        paused: wait for Play.
        control: called with the simulation before each step; may set forces.
    """

    def __init__(
        self,
        sim: Simulation,
        title: str = "sharnir",
        *,
        port: int = 8080,
        speed: float = 1.0,
        paused: bool = False,
        control: Control | None = None,
    ) -> None:
        viser = need("viser", "view")
        self.sim, self.title, self.control = sim, title, control
        self._start = sim.snapshot()  # with the commands that were set before the viewer opened
        self.error = ""
        self._lock = threading.RLock()  # buttons call from other threads
        self._stop = threading.Event()
        self._owed = 0.0  # simulated time due, s
        self._step_cost = 0.0  # s, a running mean; 0 while unknown
        self._rates = (0.0, 0.0)  # steps a second, real-time factor
        self._told = -math.inf
        self._since = (time.perf_counter(), sim.time, 0)  # wall time, simulated time, steps since the rates were told
        self._steps = 0
        low, high = _watch(sim, control)
        with contextlib.redirect_stdout(io.StringIO()):  # its banner; `serve` says where the picture is
            self.server: Any = viser.ViserServer(host="127.0.0.1", port=port, label=title, verbose=False)
        self._dress(low, high)
        self._add_bodies(float(np.linalg.norm(high - low)))
        self._add_joints(float(np.linalg.norm(high - low)))
        self._add_ropes(float(np.linalg.norm(high - low)))
        self._add_controls(title, speed, paused)
        self.show()
        self.tell()

    # ---- what one can do ----

    @property
    def url(self) -> str:
        """Where the picture is."""
        return f"http://127.0.0.1:{self.server.get_port()}"

    @property
    def paused(self) -> bool:
        """Whether time stands."""
        return self._paused

    @property
    def speed(self) -> float:
        """Simulated seconds per second."""
        return float(self._speed.value)

    @speed.setter
    def speed(self, value: float) -> None:
        self._speed.value = value

    def play(self) -> None:
        """Let time run."""
        with self._lock:
            self._owed, self._paused = 0.0, False
            self._since = (time.perf_counter(), self.sim.time, self._steps)
            self._play.label = "Pause"

    def pause(self) -> None:
        """Stop time; the picture stays."""
        with self._lock:
            self._paused, self._rates = True, (0.0, 0.0)
            self._play.label = "Play"

    def step(self, n: int = 1) -> None:
        """Pause, and make n steps."""
        with self._lock:
            self.pause()
            self._advance(n)
            self.show()
            self.tell()

    def reset(self) -> None:
        """Back to how the viewer found it; playing goes on if it was playing."""
        with self._lock:
            self.sim.restore(self._start)
            self._fail("")
            self._owed = 0.0
            self._since = (time.perf_counter(), self.sim.time, self._steps)
            self.show()
            self.tell()

    def show_axes(self, visible: bool) -> None:
        """Show or hide the joints' axes."""
        with self._lock:
            self._axes_on.value = visible
            for _, _, handle in self._marks:
                handle.visible = visible
            self.show()

    def stop(self) -> None:
        """End `run` and close the page's server."""
        self._stop.set()
        with self._lock, contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # ---- the clock ----

    def run(self) -> None:
        """Run until `stop` or Ctrl-C."""
        last = time.perf_counter()
        while not self._stop.is_set():
            now = time.perf_counter()
            self.tick(now - last)
            last = now
            self._stop.wait(max(0.0, 1 / PICTURES - (time.perf_counter() - now)))

    def tick(self, elapsed: float) -> None:
        """One picture: simulate what `elapsed` wall-clock seconds ask for, as far as there is time, and show it."""
        with self._lock:
            if self._stop.is_set():
                return
            if not self._paused:
                self._owed += min(elapsed, 0.1) * self.speed
                due = int(self._owed / self.sim.dt + 1e-9)
                fits = max(1, int(SHARE / PICTURES / self._step_cost)) if self._step_cost else 1
                if due > fits:
                    self._owed, due = 0.0, fits
                else:
                    self._owed -= due * self.sim.dt
                if due:
                    self._advance(due)
                    self.show()
            if time.perf_counter() - self._told > 0.1:
                self.tell()

    def _advance(self, n: int) -> None:
        started = time.perf_counter()
        try:
            if self.control is None:
                self.sim.step(n)
            else:  # forces that it applies act in one step
                for _ in range(n):
                    self.control(self.sim)
                    self.sim.step()
            self._steps += n
        except SimulationError as error:
            self.pause()
            self._fail(str(error))
        cost = (time.perf_counter() - started) / n
        self._step_cost = 0.9 * self._step_cost + 0.1 * cost if self._step_cost else cost

    # ---- what is drawn ----

    def show(self) -> None:
        """Move the picture to the simulation's state."""
        place, turn, centre = self._poses()
        wxyz = turn[:, [3, 0, 1, 2]]
        with self.server.atomic():
            for i, handle in self._moving:
                handle.position, handle.wxyz = place[i], wxyz[i]
            if self._rod_handles:
                self._show_rods(centre, turn)
            for name, handle in self._ropes.items():
                handle.points = _segments(self.sim, name)
            if self._marks and self._axes_on.value:
                self._show_marks()

    def tell(self) -> None:
        """Write time, energies and speed beside the picture."""
        now = time.perf_counter()
        self._told = now
        then, sim_then, steps_then = self._since
        if not self._paused and now - then > 0.5:
            self._rates = ((self._steps - steps_then) / (now - then), (self.sim.time - sim_then) / (now - then))
            self._since = (now, self.sim.time, self._steps)
        energy = self.sim.energy()
        kinetic, potential, total = (float(np.atleast_1d(e)[WORLD]) for e in (energy.kinetic, energy.potential, energy.total))
        steps, factor = self._rates
        moving = not self._paused and factor > 0
        self._values.content = _table(
            ("time", f"{self.sim.time:.3f}", "s"),
            ("kinetic energy", _figures(kinetic), "J"),
            ("potential energy", _figures(potential), "J"),
            ("total energy", _figures(total), "J"),
            ("steps a second", f"{steps:,.0f}".replace(",", " ") if moving else "–", ""),
            ("real-time factor", f"{factor:.2f}" if moving else "–", ""),
        )

    def _poses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Frame origins (bodies, 3), rotations (bodies, 4) as x, y, z, w, and centres of mass (bodies, 3)."""
        state = self.sim.state
        turn = state.rotation.numpy()[:, WORLD].astype(float)
        centre = state.position.numpy()[:, WORLD].astype(float)
        return centre - quat_rotate(turn, self.sim.model.com), turn, centre

    def _fail(self, message: str) -> None:
        self.error = message
        self._warning.content = f"**Stopped.** {message}" if message else ""
        self._warning.visible = bool(message)

    # ---- building the picture ----

    def _dress(self, low: np.ndarray, high: np.ndarray) -> None:
        """Light, ground and the first view, for a scene that moves within the box from low to high."""
        scene, size = self.server.scene, float(np.linalg.norm(high - low))
        scene.set_up_direction("+z")
        scene.configure_environment_map("studio", environment_intensity=0.6)
        # A scene that stands on z = 0 keeps its floor there; any other gets one a little below.
        floor = 0.0 if -1e-3 * size <= low[2] <= 0.2 * size else float(low[2]) - 0.06 * size
        cell = _round_length(size / 8)
        middle = 0.5 * (low + high)
        x, y = np.round(middle[:2] / (5 * cell)) * 5 * cell
        scene.add_grid(
            "/ground", width=80 * cell, height=80 * cell, cell_size=cell, section_size=5 * cell, cell_color=(232, 235, 238),
            section_color=(205, 211, 217), fade_distance=6 * size, shadow_opacity=0.2, position=(float(x), float(y), floor),
        )  # fmt: skip
        extent = high - low
        across = np.array([0.45, -1.0, 0.38] if extent[0] >= extent[1] else [1.0, -0.45, 0.38])
        fov = math.radians(45)
        camera = self.server.initial_camera
        camera.fov = fov
        camera.look_at = tuple(middle)
        camera.position = tuple(middle + across / np.linalg.norm(across) * ROOM * 0.5 * size / math.tan(fov / 2))
        camera.near, camera.far = 0.005 * size, 100 * size

    def _add_bodies(self, size: float) -> None:
        model, scene = self.sim.model, self.server.scene
        place, turn, _ = self._poses()
        motion = model.bodies.motion.numpy()
        self.handles: dict[str, Any] = {}
        self._moving: list[tuple[int, Any]] = []
        for name, i in model.body_names.items():
            shape, path = model.shapes[i], f"/bodies/{_safe(name)}"
            colour = {FIXED: GREY, KINEMATIC: SILVER}.get(int(motion[i]), PALETTE[len(self._moving) % len(PALETTE)])
            if shape is not None:
                vertices, faces = shape.mesh()
            elif i == 0:
                continue  # the world has no picture but the ground
            else:
                vertices, faces = _ball(0.012 * size)
                vertices = vertices + model.com[i]
            vertices, faces = _creased(vertices, faces)
            handle = scene.add_mesh_simple(
                path, vertices.astype(np.float32), faces.astype(np.uint32), color=colour,
                position=place[i], wxyz=turn[i, [3, 0, 1, 2]],
            )  # fmt: skip
            self.handles[name] = handle
            if motion[i] != FIXED:
                self._moving.append((i, handle))

    def _add_joints(self, size: float) -> None:
        """Marks at the anchors: pins along free rotations, arrows along free translations, balls; and rods."""
        model = self.sim.model
        names = list(model.joint_names)
        self._marks: list[tuple[int, int, Any]] = []  # joint, number of its free axis, handle
        rods: list[int] = []
        rod = model.joints.rod.numpy() if model.joint_kinds else np.zeros(0)
        rows = assembly.evaluate(model, self.sim.state)[WORLD] if model.joint_kinds else None
        for k, joint in enumerate(model.joint_kinds):
            if rod[k] > 0:
                rods.append(k)
            elif rows is not None and joint.mask != 63:  # a free body has no axis worth a mark
                slides = joint.v_size - len(joint.turns)
                for i in range(slides if len(joint.turns) == 3 else joint.v_size):
                    axis = rows.free_linear[k, i] + rows.free_angular[k, i]
                    half = float(np.clip(self._reach(k, rows.point[k], axis) + 0.035 * size, 0.05 * size, 0.7 * size))
                    mesh, colour = (
                        (_arrow(0.004 * size, half), SLIDE) if i < slides else (_cylinder(0.0045 * size, 2 * half), TURN)
                    )
                    self._marks.append((k, i, self._add_mark(f"/axes/{_safe(names[k])}.{i}", mesh, colour)))
                if len(joint.turns) == 3:
                    ball = self._add_mark(f"/axes/{_safe(names[k])}.ball", _ball(0.016 * size), BALL)
                    self._marks.append((k, slides, ball))
        self._mark_joint, self._mark_axis = (np.array([mark[i] for mark in self._marks], int) for i in (0, 1))
        self._rod_handles = [
            self._add_mark(f"/rods/{_safe(names[k])}", _rod(0.003 * size, float(rod[k])), ROD, shadow=True) for k in rods
        ]
        table = model.joints
        self._rod_ends = [
            (np.asarray(body)[rods], point.numpy()[rods].astype(float))
            for body, point in ((model.parents, table.parent_point), (model.children, table.child_point))
        ]

    def _add_ropes(self, size: float) -> None:
        """Ropes as lines of their thickness (thin ones thicker, to be seen), each in a colour of its own."""
        ropes = self.sim.model.ropes
        self._ropes: dict[str, Any] = {}
        for k, name in enumerate(ropes.names if ropes is not None else ()):
            self._ropes[name] = self.server.scene.add_line_segments(
                f"/ropes/{_safe(name)}", _segments(self.sim, name), PALETTE[(len(self._moving) + k) % len(PALETTE)],
                thickness=max(2 * ropes.described[k].radius, 0.006 * size),
            )  # fmt: skip

    def _reach(self, joint: int, anchor: np.ndarray, axis: np.ndarray) -> float:
        """How far a joint's bodies reach from its anchor along an axis, m: a mark has to stick out of them."""
        model, (place, turn, _) = self.sim.model, self._poses()
        far = 0.0
        for body in (int(model.parents[joint]), int(model.children[joint])):
            if model.shapes[body] is not None:
                vertices = np.asarray(model.shapes[body].mesh()[0])
                along = (place[body] + quat_rotate(np.tile(turn[body], (len(vertices), 1)), vertices) - anchor) @ axis
                far = max(far, float(np.abs(along).max()))
        return far

    def _add_mark(self, path: str, mesh: Triangles, colour: tuple[int, int, int], shadow: bool = False) -> Any:
        vertices, faces = mesh[0].astype(np.float32), mesh[1].astype(np.uint32)
        return self.server.scene.add_mesh_simple(path, vertices, faces, color=colour, cast_shadow=shadow)

    def _show_marks(self) -> None:
        rows = assembly.evaluate(self.sim.model, self.sim.state)[WORLD]
        joint, axis = self._mark_joint, self._mark_axis
        place, wxyz = rows.point[joint], _along(rows.free_linear[joint, axis] + rows.free_angular[joint, axis])
        for i, (_, _, handle) in enumerate(self._marks):
            handle.position, handle.wxyz = place[i], wxyz[i]

    def _show_rods(self, centre: np.ndarray, turn: np.ndarray) -> None:
        a, b = (centre[body] + quat_rotate(turn[body], point) for body, point in self._rod_ends)
        middle, wxyz = 0.5 * (a + b), _along(b - a)
        for i, handle in enumerate(self._rod_handles):
            handle.position, handle.wxyz = middle[i], wxyz[i]

    def _add_controls(self, title: str, speed: float, paused: bool) -> None:
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, control_layout="floating", brand_color=(47, 109, 181))
        gui.set_panel_label(title)
        self._paused = paused
        self._play = gui.add_button("Play" if paused else "Pause", hint="Let time run, or stop it")
        self._single = gui.add_button(f"Step {1e3 * self.sim.dt:g} ms", hint="Pause, and make one step", color="gray")
        self._reset = gui.add_button("Reset", hint="Back to the start", color="gray")
        self._speed = gui.add_slider(
            "Speed", min=0.05, max=max(2.0, speed), step=0.05, initial_value=speed, hint="Simulated seconds per second"
        )
        self._axes_on = gui.add_checkbox("Joint axes", True, hint="Red: turns, green: slides, violet: ball")
        self._values = gui.add_html("")
        self._warning = gui.add_markdown("", visible=False)
        self._play.on_click(lambda _: self.play() if self.paused else self.pause())
        self._single.on_click(lambda _: self.step())
        self._reset.on_click(lambda _: self.reset())
        self._axes_on.on_update(lambda _: self.show_axes(self._axes_on.value))


def serve(
    sim: Simulation, title: str = "sharnir", *, port: int = 8080, speed: float = 1.0, control: Control | None = None
) -> None:
    """Show a simulation in the browser until Ctrl-C."""
    viewer = Viewer(sim, title, port=port, speed=speed, control=control)
    sys.stdout.write(f"{title}: open {viewer.url} in a browser; Ctrl-C ends\n")
    sys.stdout.flush()
    try:
        viewer.run()
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    finally:
        viewer.stop()


# ---- how large the scene is ----


def _segments(sim: Simulation, name: str) -> np.ndarray:
    """(n, 2, 3) ends of a rope's segments, torn ones left out."""
    rope = sim.rope(name)
    points, broken = (x if sim.worlds == 1 else x[WORLD] for x in (rope.position, rope.broken))
    return np.asarray(np.stack([points[:-1], points[1:]], 1)[~broken], np.float32)


def _watch(sim: Simulation, control: Control | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the box in which the scene moves at first: it is run ahead for a while and put back as it was."""
    model = sim.model
    owner: list[int] = []
    outline: list[np.ndarray] = []
    for i, shape in enumerate(model.shapes):
        if shape is not None or i > 0:
            points = _outermost(np.asarray(shape.mesh()[0])) if shape is not None else model.com[i][None]
            outline.append(points)
            owner += [i] * len(points)
    local = np.concatenate([np.zeros((0, 3)), *outline])

    def box() -> tuple[np.ndarray, np.ndarray]:
        turn = sim.state.rotation.numpy()[:, WORLD].astype(float)
        place = sim.state.position.numpy()[:, WORLD].astype(float) - quat_rotate(turn, model.com)
        points = place[owner] + quat_rotate(turn[owner], local)
        if model.joint_kinds:
            points = np.concatenate([points, assembly.evaluate(model, sim.state)[WORLD].point, *_grounded_ends(sim)])
        if model.ropes is not None:
            points = np.concatenate([points, *(_segments(sim, name).reshape(-1, 3) for name in model.ropes.names)])
        return points.min(0), points.max(0)

    low, high = box()
    first = max(float(np.linalg.norm(high - low)), 1e-3)
    before, deadline = sim.snapshot(), time.perf_counter() + 1.5
    stride = max(1, round(WATCHED / 160 / sim.dt))
    with contextlib.suppress(SimulationError):
        for _ in range(max(1, round(WATCHED / stride / sim.dt))):
            if control is None:
                sim.step(stride)
            else:
                for _ in range(stride):
                    control(sim)
                    sim.step()
            lower, upper = (f(a, b) for f, a, b in zip((np.minimum, np.maximum), (low, high), box(), strict=True))
            if np.linalg.norm(upper - lower) > 4 * first or time.perf_counter() > deadline:
                break  # something flies off, or takes long: what was seen so far has to do
            low, high = lower, upper
    sim.restore(before)
    room = 0.05 * max(float(np.linalg.norm(high - low)), 1e-3)
    return low - room * (high - low < room), high + room * (high - low < room)


def _outermost(vertices: np.ndarray) -> np.ndarray:
    """A few vertices that reach as far as all of them, in many directions."""
    if len(vertices) <= 64:
        return vertices
    i = np.arange(64) + 0.5
    z, around = 1 - i / 32, i * math.pi * (1 + math.sqrt(5))  # a spiral that covers the sphere evenly
    directions = np.stack([np.sqrt(1 - z**2) * np.cos(around), np.sqrt(1 - z**2) * np.sin(around), z])
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)], axis=1)
    return np.asarray(vertices[np.unique((vertices @ directions).argmax(0))])


def _grounded_ends(sim: Simulation) -> list[np.ndarray]:
    """Anchors on the world, where rods and rails begin."""
    model = sim.model
    on_world = np.flatnonzero(model.parents == 0)
    return [model.joints.parent_point.numpy()[on_world].astype(float)] if len(on_world) else []


# ---- meshes and words ----


def _along(direction: np.ndarray) -> np.ndarray:
    """(n, 4) rotations (w, x, y, z) that take local z to the given directions (n, 3)."""
    d = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    w, x, y = 1 + d[:, 2], -d[:, 1], d[:, 0]
    back = w < 1e-9  # straight down: half a turn about x
    q = np.stack([np.where(back, 0.0, w), np.where(back, 1.0, x), np.where(back, 0.0, y), np.zeros_like(w)], axis=1)
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def _creased(vertices: np.ndarray, faces: np.ndarray) -> Triangles:
    """The same surface with vertices doubled at sharp edges, so that boxes look like boxes and balls like balls."""
    trimesh = need("trimesh", "view")
    smooth = trimesh.graph.smooth_shade(trimesh.Trimesh(vertices, faces, process=True), angle=math.radians(35))
    return np.asarray(smooth.vertices), np.asarray(smooth.faces)


def _cylinder(radius: float, length: float) -> Triangles:
    mesh = need("trimesh.creation", "view").cylinder(radius=radius, height=length, sections=20)
    return _creased(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _ball(radius: float) -> Triangles:
    mesh = need("trimesh.creation", "view").icosphere(subdivisions=3, radius=radius)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _rod(radius: float, length: float) -> Triangles:
    """A rod along z with a ball at either end."""
    create = need("trimesh.creation", "view")
    parts = [create.cylinder(radius=radius, height=length, sections=20)]
    for end in (0.5, -0.5):
        parts.append(create.icosphere(subdivisions=2, radius=2.5 * radius))
        parts[-1].apply_translation((0, 0, end * length))
    both = need("trimesh", "view").util.concatenate(parts)
    return _creased(np.asarray(both.vertices), np.asarray(both.faces))


def _arrow(radius: float, half: float) -> Triangles:
    """A double arrow along z of length 2 · half: the axis of a slide."""
    create = need("trimesh.creation", "view")
    height = 8 * radius
    parts = [create.cylinder(radius=radius, height=2 * (half - height), sections=20)]
    for end in (1.0, -1.0):
        head = create.cone(radius=3 * radius, height=height, sections=24)
        head.apply_translation((0, 0, half - height))
        if end < 0:
            head.apply_transform(np.diag([1.0, -1.0, -1.0, 1.0]))
        parts.append(head)
    both = need("trimesh", "view").util.concatenate(parts)
    return _creased(np.asarray(both.vertices), np.asarray(both.faces))


def _round_length(length: float) -> float:
    """The largest of 1, 2, 5 · 10ⁿ that is not above a length."""
    power = 10.0 ** math.floor(math.log10(length))
    return next(m * power for m in (5.0, 2.0, 1.0) if m * power <= length * (1 + 1e-9))


def _figures(value: float) -> str:
    """Five significant figures that do not jump about while a value changes slowly."""
    if abs(value) < 1e-9:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3e}".replace("-", "−")
    digits = 5 - (math.floor(math.log10(abs(value))) + 1 if abs(value) >= 1 else 1)
    return f"{value:.{max(digits, 0)}f}".replace("-", "−")


def _safe(name: str) -> str:
    """A body's name as one segment of a path."""
    return name.replace("/", "∕")


def _table(*rows: tuple[str, str, str]) -> str:
    cells = "".join(
        f'<tr><td style="color:#66737f;padding:1px 0">{html.escape(what)}</td><td style="text-align:right;font-variant-numeric:'
        f'tabular-nums;padding:1px 4px 1px 0">{html.escape(value)}</td><td style="width:1em">{unit}</td></tr>'
        for what, value, unit in rows
    )
    return f'<table style="width:calc(100% - 2em);margin:0.4em 1em;font-size:0.86em;border-collapse:collapse">{cells}</table>'
