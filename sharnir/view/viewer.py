"""A simulation in the browser: bodies, joints, ropes, forces, contacts; sliders and plots; served to this machine alone.

    sim.view()                                # until Ctrl-C
    viewer = sim.view(block=False)            # goes on in a thread; viewer.stop() ends it

Time is kept by `sharnir.trainer` (absolute deadlines, bounded catch-up), in a thread of its own; where somebody drives
(`sharnir.view.drive`), pages have a process of their own. `Viewer` holds the picture and moves it, up to 30 times a second, from
copies that the loop hands out. What an operator does goes to the loop and acts between two steps (`OperatorActions`). Time
runs only while a page is open.
"""

from __future__ import annotations

import contextlib
import html
import io
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from sharnir.core.misspellings import Checked
from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.runtime.measures import poses
from sharnir.runtime.mirror import Mirror, take
from sharnir.runtime.simulation import Simulation
from sharnir.trainer.access_guard import check_address, known, open_server, shown_by
from sharnir.trainer.loop import RealTime
from sharnir.trainer.operator_session import Grip, OperatorActions
from sharnir.trainer.session import LocalSession, RemoteSession
from sharnir.trainer.statistics import Statistics
from sharnir.view.camera import VIEWS, Ride, Views
from sharnir.view.operator_panel import OperatorPanel
from sharnir.view.panel import PHONE, Plot, Sliders, within
from sharnir.view.picture import Layers, Looks, Picture, Scale, legend, watch
from sharnir.view.pieces import figures, round_length, table
from sharnir.view.stage import THEMES, Stage, one_of

Control = Callable[[Simulation], None]

PICTURES = 30  # a second, at most
DRAWING_SHARE = 0.25  # of the time that drawing may take; where it takes long, there are fewer pictures
TICK = 0.002  # s, at least, of a tick of the loop
WORLD_SPACING = 1.25  # of a world's width, from the middle of one to that of the next
SLOWEST_PACE = 0.05  # simulated seconds per second
MOST_WORLDS = 64  # that are shown at once
LAYER_LABELS = {
    "axes": ("Joint axes", "Red: turns, green: slides, violet: ball"),
    "names": ("Names", "Of the bodies"),
    "forces": ("Joint forces", "What each joint does to its child, at its anchor"),
    "tensions": ("Rope tension", "Of ropes and cables; blue: none, red: the largest of late"),
    "contacts": ("Contacts", "Points, normals (blue) and forces (red) on the second body"),
    "collision": ("What touches", "Outlines of the shapes that collide"),
}


class Viewer(Checked):
    """The picture of one simulation, with its controls.

    Args:
        sim: steps only while the viewer runs it; may be changed from outside while it is paused.
        title: shown above the controls.
        port: the next free one is taken where it is busy.
        host: where pages are served; anything but this machine's own address opens the controls to others.
        speed: simulated seconds per second.
        paused: wait for Play.
        control: called with the simulation before each step; may set forces.
        worlds: how many of several worlds are shown side by side, up to 64.
        follow: a body that the picture moves along with.
        plot: values that are plotted, as `sim.record` takes them: "joint/elbow.q", "sim.energy".
        wait: False: time runs although no page is open.
        budget: share of a tick that its steps may take, as of `RealTime`; None: the solver takes the time that it needs.
        token: what lets an operator or an instructor in; None: one that nobody can guess.
        closed: nobody looks without a token either, and the panel beside the picture neither moves nor stops the machine: that
            is for the operator and the instructor.
        loop: where the simulation runs, if that is another process.
        theme: "light" or "dark".
        camera: "all", "front", "side" or "top": from where all is seen at first.
    """

    def __init__(
        self,
        sim: Simulation,
        title: str = "sharnir",
        *,
        port: int = 8080,
        host: str = "127.0.0.1",
        speed: float = 1.0,
        paused: bool = False,
        control: Control | None = None,
        worlds: int = 9,
        follow: str | None = None,
        plot: Sequence[str] = (),
        wait: bool = True,
        budget: float | None = None,
        token: str | None = None,
        closed: bool = False,
        loop: RemoteSession | None = None,
        theme: str = "light",
        camera: str = "all",
    ) -> None:
        self._check(sim, speed, worlds, follow)
        one_of("a theme", theme, THEMES)
        one_of("a camera", camera, VIEWS)
        check_address(host, port)
        self.sim, self.title, self.wait = sim, title, wait
        self.error = ""
        self._lock = threading.RLock()  # of the picture: buttons call from other threads; the loop never takes it
        self._stop, self._stands = threading.Event(), True
        self._rates = (0.0, 0.0)  # steps a second, real-time factor
        self._told = self._drawn = -math.inf
        self._since = (time.perf_counter(), sim.time, 0)  # wall time, simulated time, steps since the rates were shown
        self._paced = 0.0  # the speed that the loop was given
        self.pace = ""
        """How the loop keeps its deadlines, in words."""
        self.layers = Layers()
        low, high = watch(sim, control)
        self.size = float(np.linalg.norm(high - low))
        self.mirror = Mirror(sim, alone=loop is not None)
        self.loop: LocalSession | RemoteSession = runs(sim, control, budget) if loop is None else loop
        looks = Looks(self.mirror.sim, self.size)
        self.desk = OperatorPanel(title, token)
        self.closed = closed
        tokens = (self.desk.token, self.desk.watch_token) if closed else ()
        self.server: Any = open_server(host, port, title, self.desk.pages(), self.desk.sockets(), tokens)
        self._host = host
        shown = min(sim.worlds, worlds)
        wide = math.ceil(math.sqrt(shown))
        stride = np.maximum(WORLD_SPACING * np.maximum(high - low, looks.extent())[:2], 0.2 * self.size)
        self._root = self.server.scene.add_frame("/view", show_axes=False)
        self._scale, self._pulls = (Scale(round_length(0.3 * self.size)) for _ in range(2))
        self._worlds: list[Any] = []
        self.pictures: list[Picture] = []
        for w in range(shown):
            offset = np.array([(w % wide) * stride[0], (w // wide) * stride[1], 0.0])
            self._worlds.append(self.server.scene.add_frame(f"/view/{w}", show_axes=False, position=offset))
            self.pictures.append(Picture(self.server, looks, w, f"/view/{w}", self._scale, self._pulls))
        rows = math.ceil(shown / wide)
        self._dress(looks, low, high + np.array([(wide - 1) * stride[0], (rows - 1) * stride[1], 0.0]), theme, camera)
        self._followed, self._home = follow, np.zeros(3)
        self._add_controls(title, speed, paused)
        self._ride = Ride(self.server, self.mirror.sim)
        self.sliders = Sliders(self.server.gui, self.mirror.sim, self.size, self._hand, closed)
        self.plot = Plot(self.server.gui, self.mirror.sim, tuple(plot))
        self._grip = Grip(sim, self)
        for name, handle in self.handles.items():
            handle.on_click(lambda _, name=name: self.pick(None if self.pictures[0].picked == name else name))
        self.told: dict[str, Any] = self.loop.do("told")
        """How the machine was when it was last asked."""
        self.follow(follow)
        self.desk.viewer = self
        self.show()
        self.tell()

    @staticmethod
    def _check(sim: Simulation, speed: float, worlds: int, follow: str | None) -> None:
        if not is_positive(speed):
            raise SimulationError(f"view: speed is a positive finite number, got {speed!r}")
        if worlds.__class__ is not int or not 1 <= worlds <= MOST_WORLDS:
            raise SimulationError(f"view: worlds is a whole number from 1 to {MOST_WORLDS}, got {worlds!r}")
        if follow is not None:
            sim.body(follow)

    # ---- what one can do ----

    @property
    def url(self) -> str:
        """Where the picture is."""
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::", "") else self._host
        return f"http://{host}:{self.server.get_port()}"

    def may_act(self, client: int) -> bool:
        """Whether the hand of a page counts: of a closed viewer, that of one who may drive."""
        return not self.closed or known(shown_by(self.server, client), (self.desk.token,))

    @property
    def watch_url(self) -> str:
        """Where one looks and does not act, with the token that is needed if the viewer is closed."""
        return f"{self.url}/?token={self.desk.watch_token}" if self.closed else self.url

    def drive_url(self, role: str = "drive") -> str:
        """Where the operator ("drive") or the "instructor" sits; the token in it lets them in."""
        return f"{self.url}/{role}?token={self.desk.token}"

    @property
    def hands(self) -> OperatorActions:
        """What acts on the simulation, where it runs in this process."""
        if isinstance(self.loop, RemoteSession):
            raise SimulationError("view: the simulation runs in another process")
        return self.loop.hands  # type: ignore[no-any-return]

    @property
    def control(self) -> Control | None:
        """Called with the simulation before each step."""
        return self.hands.control

    @control.setter
    def control(self, value: Control | None) -> None:
        self.hands.control = value

    @property
    def handles(self) -> dict[str, Any]:
        """The nodes of the bodies of the first world, by name."""
        return self.pictures[0].handles

    @property
    def paused(self) -> bool:
        """Whether time stands."""
        return self._paused

    @property
    def speed(self) -> float:
        """Simulated seconds per second; what a page sends is brought within the slider's range."""
        number = within(self._speed.value, SLOWEST_PACE, self._fastest)
        return self._told_speed if self.closed or number is None else number

    @speed.setter
    def speed(self, value: float) -> None:
        if not is_positive(value):
            raise SimulationError(f"view: speed is a positive finite number, got {value!r}")
        self._speed.value = self._told_speed = min(max(float(value), SLOWEST_PACE), self._fastest)

    @property
    def open_pages(self) -> int:
        """How many pages look at it."""
        return len(self.server.get_clients())

    def play(self) -> None:
        """Let time run."""
        self._paused, self._play.label = False, "Pause"

    def pause(self) -> None:
        """Stop time; the picture stays."""
        self._paused, self._rates, self._play.label = True, (0.0, 0.0), "Play"
        self._stands = True
        self.loop.do("pause")
        self.loop.do("nothing")  # a tick may have been under way; this answer comes after it

    def step(self, n: int = 1) -> None:
        """Pause, and make n steps."""
        self.pause()
        self._do("Stopped", "advance", n)
        self.tell()

    def reset(self) -> None:
        """Back to how the viewer found it; playing goes on if it was playing."""
        self.act("reset")
        self.tell()

    def back(self, seconds: float) -> None:
        """Pause, and go back by so many simulated seconds, as far as is remembered (the last minute, four times a second)."""
        self.pause()
        self.act("back", seconds)
        self.tell()

    def act(self, name: str, *given: Any) -> None:
        """Call a method of `OperatorActions` between two steps, and say on the page why where that cannot be."""
        self._do("Refused", name, *given)

    def refuse(self, why: str) -> None:
        """Say on the pages why something was not done."""
        self._fail(why, "Refused")

    def _do(self, word: str, name: str, *given: Any) -> None:
        try:
            self.loop.do(name, *given)
            self._fail("")
        except (SceneError, SimulationError) as error:
            self._fail(str(error), word)
        self.show()

    def _hand(self, name: str, *given: Any) -> None:
        """What a hand on a slider does; one on a joint stops time."""
        if name == "place":
            self.pause()
        self.act(name, *given)

    def show_layer(self, name: str, visible: bool = True) -> None:
        """Show or hide axes, names, forces, tensions, contacts or collision."""
        if name not in LAYER_LABELS:
            raise SimulationError(f"view: a layer is one of {', '.join(map(repr, LAYER_LABELS))}, got {name!r}")
        with self._lock:
            setattr(self.layers, name, bool(visible))
            if name in self._boxes:
                self._boxes[name].value = bool(visible)
            for picture in self.pictures:
                picture.lay(self.layers)
        self.show()

    def follow(self, body: str | None) -> None:
        """Move the picture along with a body of the first world, or with none."""
        if body is not None:
            self.sim.body(body)
        with self._lock:
            self._followed = body
            if body is not None:
                self._home = self._body_place(body) + self._root.position
            self._follow.value = NO_BODY if body is None else body
        self.show()

    def ride(self, where: str | None) -> None:
        """Let the pages' cameras ride with a body, as they look at it now, or look along the x axis of a frame; None: neither."""
        with self._lock:
            self._ride.choose(where)
            self._camera.value = NO_CAMERA if where is None else where
        self.show()

    def look_from(self, side: str) -> None:
        """Put the pages' cameras so that all is seen: "all" (from a corner), "front" (from ahead, x), "side" or "top"."""
        self.ride(None)
        with self._lock:
            self.views.look_from(side)

    def set_theme(self, theme: str) -> None:
        """Light or dark: sky, ground, lights and the panel."""
        with self._lock:
            self.stage.set_theme(theme)
            self._dark.value = theme == "dark"

    def pick(self, body: str | None) -> None:
        """Show a body's name in the picture, and its mass and speed on the panel; None: of none."""
        if body is not None:
            self.sim.body(body)
        with self._lock:
            self.pictures[0].picked = body
            self.pictures[0].lay(self.layers)

    def stop(self) -> None:
        """End `run` and close the page's server."""
        self._stop.set()
        self.loop.stop()
        with self._lock, contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # ---- time ----

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Run until `stop`, Ctrl-C, or (asked after each picture) `until()` is true; raises what `control` raised."""
        self.loop.start()
        over = until or (lambda: False)
        try:
            with contextlib.suppress(CancelledError):  # the loop ended while something was asked for
                while not self._stop.is_set() and not over() and self.crash is None:
                    started = time.perf_counter()
                    try:
                        self.look()
                    except RuntimeError as error:  # viser wakes its sender from this thread, too: the next picture is sent anew
                        if "mutated during iteration" not in str(error):
                            raise
                    took = time.perf_counter() - started
                    self._stop.wait(max(1 / PICTURES, took / DRAWING_SHARE) - took)
        finally:
            self.loop.stop()
        if self.crash is not None:
            raise self.crash

    @property
    def crash(self) -> Exception | None:
        """What `control` raised, where it runs in this process."""
        return None if isinstance(self.loop, RemoteSession) else self.hands.crash

    def look(self) -> None:
        """One look at the loop: let it run or stand, draw what is new, and tell how it is, ten times a second."""
        pages, loop = self.open_pages, self.loop
        stands = self._paused or (self.wait and pages == 0)
        if self.speed != self._paced:
            self._paced = self.speed
            loop.do("pace", self._paced)
        if stands != self._stands:
            loop.do("pause" if stands else "resume")
            self._stands, self._since = stands, (-math.inf, 0.0, 0)
        if pages:
            self.show()
        if time.perf_counter() - self._told > 0.1:
            self.tell(pages > 0)
            if self.told["error"] and not self._stands and not self._paused:
                self._paused, self._stands, self._play.label = True, True, "Play"
                self._fail(self.told["error"])

    # ---- what is drawn ----

    def show(self) -> None:
        """Move the picture to the simulation's state."""
        copy, pulled = self.loop.do("look", len(self.pictures) if self.layers.contacts else 0)
        with self._lock:
            if self._stop.is_set():
                return
            self.mirror.put(copy)
            with self.server.atomic():
                self._scale.fade()
                self._pulls.fade()
                for picture in self.pictures:
                    picture.show(self.layers, copy.contacts)
                if self._followed is not None:
                    self._root.position = self._home - self._body_place(self._followed)
                self._grip.show(self.mirror.sim, pulled)
            self._ride.show(np.asarray(self._root.position, float))
            self.plot.take()

    def _body_place(self, name: str) -> np.ndarray:
        return np.asarray(poses(self.mirror.sim, 0)[2][self.sim.model.body_names[name]])

    def tell(self, panel: bool = True) -> None:
        """Ask how the machine is, for the desk; and write time, energies and speed on the panel, and move sliders and plots."""
        self.told, self._told = self.loop.do("told"), time.perf_counter()
        statistics, (then, sim_then, steps_then) = self.told["statistics"], self._since
        passed = self._told - then
        if not self._paused and passed > 0.5:
            self._since = (self._told, self.told["time"], statistics.steps)
            if math.isfinite(then):
                self._rates = ((statistics.steps - steps_then) / passed, (self.told["time"] - sim_then) / passed)
            self.pace = pace(statistics)
        with self._lock:
            if panel and not self._stop.is_set():
                self._tell()

    def _tell(self) -> None:
        now, shown = time.perf_counter(), self.mirror.sim
        energy = shown.energy()
        kinds = (energy.kinetic, energy.potential, energy.elastic, energy.total)
        kinetic, potential, elastic, total = (float(np.atleast_1d(e)[0]) for e in kinds)
        steps, factor = self._rates
        moving = not self._paused and factor > 0
        rows = [
            ("time", f"{shown.time:.3f}", "s"),
            ("kinetic energy", figures(kinetic), "J"),
            ("potential energy", figures(potential), "J"),
            *([("elastic energy", figures(elastic), "J")] if elastic else []),
            ("total energy", figures(total), "J"),
            ("steps a second", f"{steps:,.0f}".replace(",", " ") if moving else "–", ""),
            ("real-time factor", f"{factor:.2f}" if moving else "–", ""),
        ]
        if self.layers.contacts and self.mirror.contacts:
            rows.append(("contacts", str(len(self.mirror.contacts[0])), ""))
        picked = self.pictures[0].picked
        if picked is not None:
            body = shown.body(picked)
            speed = float(np.linalg.norm(np.reshape(body.velocity, (-1, 3))[0]))
            rows += [("picked", picked, ""), ("its mass", figures(float(np.ravel(body.mass)[0])), "kg")]
            rows += [("its speed", figures(speed), "m/s")]
        if self._scale.most > 0 and (self.layers.forces or self.layers.contacts):
            rows.append(("largest force of late", figures(self._scale.most), "N"))
        if self._pulls.most > 0 and self.layers.tensions:
            rows.append(("largest tension of late", figures(self._pulls.most), "N"))
        if self.sim.worlds > 1:
            rows.append(("worlds shown", f"{len(self.pictures)} of {self.sim.worlds}", ""))
        rows.append(("squares of the ground", f"{self.stage.section:g}", "m"))
        self._values.content = table(*rows)
        self._legend.content = legend(self.layers, self._scale, self._pulls)
        self._legend.visible = bool(self._legend.content)
        self.pictures[0].rub()
        self.sliders.show()
        if now - self._drawn > 0.2:
            self._drawn = now
            self.plot.show()

    def _fail(self, message: str, word: str = "Stopped") -> None:
        self.error = message
        self._warning.content = (
            f'<p style="margin:0.4em 1em"><b>{word}.</b> {html.escape(message, quote=False)}</p>' if message else ""
        )
        self._warning.visible = bool(message)

    # ---- building the page ----

    def _dress(self, looks: Looks, low: np.ndarray, high: np.ndarray, theme: str, camera: str) -> None:
        """Light, sky, ground and the first view, for worlds that move within the box from low to high."""
        self.stage = Stage(self.server, self.size, np.array([low, high]), looks.planes(), theme)
        self._looks = looks
        self.views = Views(self.server, self._corners, camera, np.array([low, high]))

    def _corners(self) -> np.ndarray:
        """(2, 3) m, of the box around all worlds as they are shown now."""
        low, high = self._looks.corners()
        places = np.array([handle.position for handle in self._worlds]) + self._root.position
        return np.array([low + places.min(0), high + places.max(0)])

    def _add_controls(self, title: str, speed: float, paused: bool) -> None:
        gui, model = self.server.gui, self.sim.model
        gui.set_panel_label(title)
        gui.add_html(PHONE)
        self._paused, acts = paused, {"visible": not self.closed}
        self._play = gui.add_button("Play" if paused else "Pause", hint="Let time run, or stop it", **acts)
        self._single = gui.add_button(f"Step {1e3 * self.sim.dt:g} ms", hint="Pause, and make one step", color="gray", **acts)
        self._reset = gui.add_button("Reset", hint="Back to the start", color="gray", **acts)
        self._fastest = max(2.0, float(speed))
        self._told_speed = min(max(float(speed), SLOWEST_PACE), self._fastest)
        self._speed = gui.add_slider(
            "Speed", min=SLOWEST_PACE, max=self._fastest, step=0.05, initial_value=self._told_speed,
            hint="Simulated seconds per second", **acts,
        )  # fmt: skip
        self._view = gui.add_button_group("View", tuple(VIEWS), hint="See all of it, from a side")
        self._view.on_click(self._on_view)
        self._values = gui.add_html("")
        self._legend = gui.add_html("", visible=False)
        self._warning = gui.add_html("", visible=False)
        joints, touching = bool(model.joint_kinds), model.collision is not None
        there = {"axes": joints, "forces": joints, "tensions": model.ropes is not None or bool(model.cable_names)} | {
            "contacts": touching,
            "collision": touching,
        }
        self._boxes: dict[str, Any] = {}
        with gui.add_folder("Show", expand_by_default=False):
            for name, (label, hint) in LAYER_LABELS.items():
                if there.get(name, True):
                    box = self._boxes[name] = gui.add_checkbox(label, getattr(self.layers, name), hint=hint)
                    box.on_update(lambda event, name=name: self._on_box(event, name))
            bodies = [name for name, i in model.body_names.items() if i > 0][:500]
            self._follow = gui.add_dropdown("Follow", (NO_BODY, *bodies), initial_value=NO_BODY, hint="Move along with a body")
            hint = "Ride with a body as it is seen now, or look along a frame"
            self._camera = gui.add_dropdown(
                "Camera", (NO_CAMERA, *bodies, *list(model.frames)[:500]), initial_value=NO_CAMERA, hint=hint
            )
            self._dark = gui.add_checkbox("Dark", self.stage.theme == "dark", hint="Sky, ground and panel for dark rooms")
        self._dark.on_update(self._on_dark)
        self._follow.on_update(self._on_follow)
        self._camera.on_update(self._on_camera)
        if self.closed:
            return
        self._play.on_click(lambda _: self.play() if self.paused else self.pause())
        self._single.on_click(lambda _: self.step())
        self._reset.on_click(lambda _: self.reset())

    def _on_box(self, event: Any, name: str) -> None:
        if event.client is not None:
            self.show_layer(name, bool(self._boxes[name].value))

    def _on_follow(self, event: Any) -> None:
        if event.client is not None:
            word = self._follow.value
            self.follow(word if word in self.sim.model.body_names and word != NO_BODY else None)

    def _on_dark(self, event: Any) -> None:
        if event.client is not None:
            self.set_theme("dark" if self._dark.value else "light")

    def _on_view(self, event: Any) -> None:
        if event.client is not None and self._view.value in VIEWS:
            if self._ride.where is not None:
                self.ride(None)
            with self._lock:
                self.views.look_from(self._view.value, event.client)

    def _on_camera(self, event: Any) -> None:
        if event.client is not None:
            word, model = self._camera.value, self.sim.model
            self.ride(word if word != NO_CAMERA and (word in model.body_names or word in model.frames) else None)


NO_BODY, NO_CAMERA = "– nobody –", "– free –"


def pace(s: Statistics) -> str:
    """How a loop keeps its deadlines, in words."""
    work, late = (1e3 * times.percentile(99) for times in (s.work, s.late))
    cut = f", {s.cut} steps cut short" if s.cut else ""
    skipped = f", {s.skipped:.2f} s left out" if s.skipped > 1e-3 else ""
    return f"ticks: work {work:.2f} ms, late {late:.2f} ms (99 %); {100 * s.missed_share:.2f} % missed{cut}{skipped}"


def runs(sim: Simulation, control: Control | None, budget: float | None) -> LocalSession:
    """A loop for a simulation, not yet started and with time standing, and the hands that act on it."""
    hands = OperatorActions(sim, control, take)
    hands.rt = RealTime(sim, 1 / (max(1, round(TICK / sim.dt)) * sim.dt), control=hands.before, budget=budget, frames=1.0)
    hands.rt.pause()
    return LocalSession(hands.rt, hands)


def serve(
    sim: Simulation, title: str = "sharnir", *, block: bool = True, until: Callable[[], bool] | None = None, **options: Any
) -> Viewer:
    """Show a simulation in the browser: until Ctrl-C, or in a thread of its own (`block=False`). Options are those of Viewer.

    It ends when `until()` is true.
    """
    viewer = Viewer(sim, title, **options)
    if not block:
        threading.Thread(target=viewer.run, name="sharnir viewer", daemon=True).start()
        return viewer
    sys.stdout.write(f"{title}: open {viewer.url} in a browser; time runs while a page is open; Ctrl-C ends\n")
    sys.stdout.flush()
    with ended_by_hand(viewer.stop):
        viewer.run(until)
    return viewer


@contextlib.contextmanager
def ended_by_hand(stop: Callable[[], None]) -> Iterator[None]:
    """Around what runs until Ctrl-C, which is no error here; `stop()` comes after it however it ends."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    finally:
        stop()
