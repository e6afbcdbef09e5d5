"""What an operator does to a running machine: inputs, drives, pulled bodies, time turned back, weather and failures.

`OperatorActions` lives in the process that makes the steps. All that it does is done between two of them
(`sharnir.trainer.session`), whatever thread or process asked for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.errors import SceneError, SimulationError
from sharnir.model.model import MOTIONS
from sharnir.trainer.failures import fail, forget, repair, weather

# The Simulation, the RealTime and the Viewer; they stand floors above, so that they are not named here.
Owner = Any
PAST_EVERY, PAST_KEPT = 0.25, 240  # s between pictures of the past, and how many
PULL_TIME = 0.15  # s, in about which a pulled body follows
MOST_PULL = 5.0  # times the weight of all that moves (or 9.81 m/s² of it): the bound of a pull
EVENTS_SHOWN = 12  # events that are shown
PULL_COLOUR = (230, 126, 34)


class Past:
    """Snapshots of the last minute."""

    def __init__(self, sim: Owner) -> None:
        self._sim = sim
        self._kept: deque[tuple[float, Any]] = deque(maxlen=PAST_KEPT)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def look(self) -> None:
        """Remember now, if it is time."""
        now = self._sim.time
        if not self._kept or now - self._kept[-1][0] >= PAST_EVERY - 1e-9:
            self._kept.append((now, self._sim.snapshot()))

    @property
    def length(self) -> float:
        """s that one can go back."""
        return float(self._sim.time - self._kept[0][0]) if self._kept else 0.0

    def go_back(self, seconds: float) -> bool:
        """Put back the newest snapshot that is at least so old, or the oldest; False where there is none."""
        if not self._kept:
            return False
        wanted = self._sim.time - seconds
        while len(self._kept) > 1 and self._kept[-1][0] > wanted + 1e-9:
            self._kept.pop()
        self._sim.restore(self._kept[-1][1])
        return True


class Pull:
    """A spring between a point of a body and a hand, with a bound on its force."""

    def __init__(self, sim: Owner) -> None:
        self.sim = sim
        self.body: str | None = None
        self.arm: Any = np.zeros(3)  # m, of the point, in the body's frame
        self.goal: Any = np.zeros(3)  # m, world
        self.force: Any = np.zeros(3)
        """(3,) N, of the last step."""
        mass = np.asarray(sim.model.bodies.mass.numpy(), float)
        self._mass = mass[:, 0] if mass.ndim == 2 else mass
        moving = sim.model.bodies.motion.numpy() == MOTIONS["dynamic"]
        self.bound = MOST_PULL * 9.81 * float(self._mass[moving].sum()) if moving.any() else 0.0
        """N, the most that a hand pulls with."""

    @property
    def active(self) -> bool:
        """Whether a hand holds something."""
        return self.body is not None

    def take(self, name: str, point: Any, aim: Any) -> None:
        """Take hold of a body at a point and pull it towards another, both in the world, m."""
        body = self.sim.body(name)
        point, aim = np.asarray(point, float), np.asarray(aim, float)
        if point.shape == aim.shape == (3,) and np.isfinite(point).all() and np.isfinite(aim).all():
            self.arm = quat_rotate(quat_conjugate(body.rotation), point - body.position)
            self.goal, self.body = aim, name
            self.sim.inputs.note("pull", name, None, "operator")

    def aim(self, point: Any) -> None:
        """Pull towards another point, m."""
        if np.shape(point) == (3,) and np.isfinite(point).all():
            self.goal = np.asarray(point, float)

    def let_go(self) -> None:
        """Nothing is held."""
        if self.body is not None:
            self.sim.inputs.note("pull", self.body, 0.0, "operator")
        self.body, self.force = None, np.zeros(3)

    def act(self) -> None:
        """The force of the next step: critically damped for the body's mass, within the bound."""
        name = self.body
        if name is None:
            return
        body = self.sim.body(name)
        point = body.position + quat_rotate(body.rotation, self.arm)
        mass = max(float(self._mass[self.sim.model.body_names[name]]), 1e-6)
        slow = max(PULL_TIME, 4 * self.sim.dt)  # explicit: the step has to be short beside it
        speed = body.velocity + np.cross(body.angular_velocity, point - body.com)
        force = mass * ((self.goal - point) / slow**2 - 2 * speed / slow)
        self.force = force * min(1.0, self.bound / max(float(np.linalg.norm(force)), 1e-300))
        body.apply_force(self.force, at=point)


class OperatorActions:
    """What people do to a machine, where its steps are made; every method is called between two steps.

    Args:
        sim: the machine. control: called with it before each step.
        look: of the simulation and a number of worlds: a copy for those who look (`sharnir.runtime.mirror.take`).
    """

    def __init__(self, sim: Owner, control: Callable[[Any], None] | None, look: Callable[[Any, int], Any]) -> None:
        self.sim, self.control, self._look = sim, control, look
        self._start = sim.snapshot()  # with the commands that were set before
        self.past, self.pull = Past(sim), Pull(sim)
        self.rt: Owner = None  # set when it stands
        self.crash: Exception | None = None
        """What `control` raised."""
        self._shares: dict[str, float] = {}  # how far keys and sticks are held

    # ---- time ----

    def before(self, sim: Owner) -> None:
        """Before each step."""
        self.past.look()
        if self.control is not None:
            try:
                self.control(sim)
            except (SceneError, SimulationError):
                raise
            except Exception as error:
                self.crash = error
                raise SimulationError(f"control(sim): {error!r}") from error
        if self.pull.active:
            self.pull.act()

    def nothing(self) -> None:
        """Only be heard."""

    def pause(self) -> None:
        """Let time stand after this tick."""
        self.rt.pause()

    def resume(self) -> None:
        """Let time run."""
        self.rt.resume()

    def pace(self, speed: float) -> None:
        """Simulated seconds per second."""
        self.rt.speed = speed

    def advance(self, n: int) -> None:
        """Make n steps."""
        for _ in range(n):
            self.before(self.sim)
            self.sim.step()

    def reset(self) -> None:
        """Back to the start; what failed is whole again."""
        self.sim.restore(self._start)
        forget(self.sim)
        self.past.clear()

    def back(self, seconds: float) -> None:
        """Back by so many simulated seconds, as far as is remembered."""
        if self.past.go_back(seconds):
            self.sim.inputs.note("back", "", seconds)

    # ---- status ----

    def look(self, worlds: int) -> Any:
        """A copy, with the contacts of so many worlds, and what is pulled: body, point in its frame, goal."""
        return self._look(self.sim, worlds), (self.pull.body, self.pull.arm, self.pull.goal)

    def told(self) -> dict[str, Any]:
        """How it is, for the panel and the desk."""
        controls, rt = self.sim.inputs, self.rt
        values = {name: float(np.ravel(controls[name])[0]) for name in controls}
        events = list(controls.events)[-EVENTS_SHOWN:]
        return {
            "time": self.sim.time, "past": self.past.length, "values": values, "statistics": rt.statistics,
            "events": [[e.time, e.kind, e.name, e.value if np.ndim(e.value) == 0 else "…", e.by] for e in events],
            "faults": [f"{kind}/{name}" for kind, name in controls.faults], "error": "" if rt.error is None else str(rt.error),
        }  # fmt: skip

    # ---- the operator ----

    def sit(self, timeout: float) -> None:
        """Somebody operates: of whom nothing is heard for so many simulated seconds is lost."""
        self.sim.inputs.timeout = timeout

    def leave(self) -> None:
        """Nobody operates: all inputs go to their safe values."""
        self._shares = {}
        self.sim.inputs.release("lost", "operator")

    def slide(self, name: str, value: float) -> None:
        """A slider of an input was moved."""
        self.sim.inputs.set(name, value, "operator")

    def hold(self, shares: dict[str, float]) -> None:
        """How far every input is held by keys and sticks now, −1 to 1."""
        controls = self.sim.inputs
        if controls.silent:  # all was released: what is still held acts anew
            self._shares = {}
        for name, share in shares.items():
            if share != self._shares.get(name, 0.0):
                self._shares[name] = share
                controls.hold(name, share)
        controls.heartbeat()

    def grab(self, name: str, point: Any, aim: Any) -> None:
        """Pull a body."""
        self.pull.take(name, point, aim)

    def aim(self, point: Any) -> None:
        """Pull it elsewhere."""
        self.pull.aim(point)

    def let_go(self) -> None:
        """Pull no more."""
        self.pull.let_go()

    def drive(self, joint: str, what: str, axis: int, value: float) -> None:
        """Command one axis of a drive, in all worlds."""
        view = self.sim.joint(joint)
        if view.kind.v_size == 1:
            setattr(view.drive, what, value)
            return
        now = np.asarray(getattr(view.drive, what), float)
        row = (now[0] if now.ndim == 2 else now).copy()
        row[axis] = value
        setattr(view.drive, what, row)

    def reel(self, rope: str, value: float) -> None:
        """The speed of a reel, m/s."""
        self.sim.rope(rope).reel_speed = value

    def place(self, joint: str, value: float) -> None:
        """Put a joint somewhere, at rest."""
        view = self.sim.joint(joint)
        view.position = value
        view.velocity = 0.0

    # ---- the instructor ----

    def note(self, kind: str) -> None:
        """Remember what the instructor did."""
        self.sim.inputs.note(kind, "")

    def weather(self, what: str, value: Any) -> None:
        """Change friction, gravity or wind."""
        weather(self.sim, **{what: value})

    def fail(self, kind: str, name: str) -> None:
        """Let something fail."""
        fail(self.sim, kind, name)

    def repair(self, *which: str) -> None:
        """Undo a failure (kind, name), or all."""
        repair(self.sim, *which)


class Grip:
    """Shift and the left button on a body: drawn as a spring, and sent to those who pull."""

    def __init__(self, sim: Owner, viewer: Owner) -> None:
        self._viewer, self._held = viewer, False
        none = np.zeros((1, 2, 3), np.float32)
        scene = viewer.server.scene
        self._line = scene.add_line_segments("/view/0/pull", none, PULL_COLOUR, thickness=0.005 * viewer.size, visible=False)
        motion = sim.model.bodies.motion.numpy()
        for name, handle in viewer.handles.items():
            if motion[sim.model.body_names[name]] == MOTIONS["dynamic"] and sim.worlds == 1:
                handle.on_drag("left", modifier="shift")(self._dragged(name))

    def _dragged(self, name: str) -> Any:
        async def drag(event: Any) -> None:
            if not self._viewer.may_act(event.client_id):
                return
            shift, send = np.asarray(self._viewer._root.position, float), self._viewer.loop.send
            start, end = (np.asarray(p, float) - shift for p in (event.start_position, event.end_position))
            if event.phase == "end":
                self._held = False
                send("let_go")
            elif event.phase == "start" or not self._held:
                self._held = True
                send("grab", name, start, end)
            else:
                send("aim", end)

        return drag

    def show(self, shown: Owner, pulled: tuple[str | None, Any, Any]) -> None:
        """Draw the spring, at the bodies of what is shown."""
        name, arm, goal = pulled
        self._line.visible = name is not None
        if name is not None:
            body = shown.body(name)
            self._line.points = np.array([[body.position + quat_rotate(body.rotation, arm), goal]], np.float32)
