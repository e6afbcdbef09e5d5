"""The operator's desk: a page around the picture, with keys, a gamepad and sliders, and an instructor's page beside it.

`/drive` and `/instructor` are pages of the viewer's own server, so one port and one origin; `/desk` is their socket. Whoever
connects gives the token that was in the address. One page operates at a time, the first that asks; others watch. Pages send what
is held ten times a second or more: an operator of whom nothing is heard for half a second is lost, and every input goes to its
safe value. What a page sends is never taken as it is: it has to be small, well formed, and to name what is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import math
import secrets
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.failures import FAILURES
from sharnir.sensors.noise import FAULTS
from sharnir.view.panel import within

# The Viewer; it stands a floor above, so that it is not named here.
Owner = Any
LOST = 0.5  # s, simulated, after which an operator who is silent is lost
LARGEST = 4096  # characters of a message
DEAD = 0.12  # of a stick's way, that counts as nothing
PERIOD = 0.1  # s, between what pages are told
WORST = 20  # messages without sense, after which a page is sent away


class Desk:
    """Who sits at the desk of a viewer, and what they hold."""

    def __init__(self, title: str, token: str | None = None) -> None:
        self.title, self.token = title, secrets.token_urlsafe(12) if token is None else token
        self.watch_token = secrets.token_urlsafe(12)
        """Lets one look, where the viewer is closed."""
        self.viewer: Owner = None  # set when it stands
        self.operator: Any = None  # the connection of the page that operates
        self.people = 0

    def pages(self) -> dict[str, Any]:
        """Pages by path."""
        return {"/drive": self._page, "/instructor": self._page}

    def sockets(self) -> dict[str, Any]:
        """Handlers of sockets by path."""
        return {"/desk": self._serve}

    @staticmethod
    def _page() -> str:
        return (Path(__file__).parent / "drive.html").read_text(encoding="utf-8")

    # ---- a page ----

    async def _serve(self, connection: Any) -> None:
        """Talk to one page until it goes."""
        teller: Any = None
        try:
            first = self._parsed(await asyncio.wait_for(connection.recv(), 10.0))
            if first is None or not hmac.compare_digest(str(first.get("token", "")).encode(), self.token.encode()):
                await connection.close(1008, "the token is not this desk's")
                return
            role = str(first.get("role")) if first.get("role") in ("operator", "instructor") else "watcher"
            while self.viewer is None:  # the server is there a moment before the machine
                await asyncio.sleep(0.02)
            self.people += 1
            await connection.send(json.dumps({"title": self.title, "role": role, **self._described()}))
            teller = asyncio.ensure_future(self._tell(connection))
            senseless = 0
            async for text in connection:
                message = self._parsed(text)
                if message is None or not await self._take(connection, role, message):
                    senseless += 1
                    if senseless >= WORST:
                        await connection.close(1008, "that makes no sense")
                        return
        except (TimeoutError, OSError):
            pass
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "websockets":
                raise
        finally:
            if teller is not None:
                self.people -= 1
                teller.cancel()
            if self.operator is connection:
                self.leave()

    async def _tell(self, connection: Any) -> None:
        """Ten times a second, what is; a page that does not read is not waited for by anybody else."""
        while True:
            await connection.send(json.dumps(self._state(connection)))
            await asyncio.sleep(PERIOD)

    @staticmethod
    def _parsed(text: Any) -> dict[str, Any] | None:
        if not isinstance(text, str) or len(text) > LARGEST:
            return None
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def _described(self) -> dict[str, Any]:
        sim = self.viewer.sim
        inputs = [
            {
                "name": given.name, "low": given.low, "high": given.high, "safe": given.safe, "about": given.about,
                "keys": list(given.keys), "pad": given.pad,
            }
            for given in sim.controls.inputs.values()
        ]  # fmt: skip
        driven = [name for name, k in sim.model.joint_names.items() if any(a.drive is not None for a in sim.model.joint_axes[k])]
        free = [name for name, k in sim.model.joint_names.items() if sim.model.joint_kinds[k].v_size > 0]
        parts = {
            "motor": driven, "brake": free, "joint": list(sim.model.joint_names), "input": list(sim.controls),
            "rope": list(sim.model.ropes.names) if sim.model.ropes is not None else [],
        }  # fmt: skip
        sensors = dict(sim._sensors)
        noisy = [name for name, sensor in sensors.items() if np.any(sensor.noise.sigma)]
        parts |= {f"sensor {how}": noisy if how in ("bias", "noise") else list(sensors) for how in FAULTS}
        can = {"friction": sim.solver.collider is not None, "wind": sim.model.ropes is not None or bool(sim.model.drag_areas)}
        return {"inputs": inputs, "parts": {kind: names[:200] for kind, names in parts.items() if names}, "can": can}

    def _state(self, connection: Any) -> dict[str, Any]:
        viewer = self.viewer
        told = {word: viewer.told[word] for word in ("time", "past", "values", "events", "faults")}
        return told | {
            "paused": viewer.paused, "people": self.people, "operating": self.operator is connection,
            "taken": self.operator is not None, "error": viewer.error, "pace": viewer.pace,
        }  # fmt: skip

    # ---- what pages may do ----

    async def _take(self, connection: Any, role: str, message: dict[str, Any]) -> bool:
        """Do what a page asks for; False where it makes no sense."""
        if "do" in message:
            return role == "instructor" and await asyncio.to_thread(self.instruct, message)
        if role == "operator" and message.get("take") is True:
            if self.operator is None:
                self.operator = connection
                self.viewer.loop.send("sit", LOST)
            return True
        if "leave" in message:
            if self.operator is connection:
                self.leave()
            return True
        if self.operator is not connection:
            return "keys" in message or "slide" in message  # a watcher's keys do nothing
        return self.hold(message)

    def leave(self) -> None:
        """The operator goes: nobody drives."""
        self.operator = None
        with contextlib.suppress(CancelledError):  # so may the machine have gone
            self.viewer.loop.send("leave")

    def hold(self, message: dict[str, Any]) -> bool:
        """Keys, sticks and buttons that are held now, or a slider that was moved."""
        inputs, loop = self.viewer.sim.controls.inputs, self.viewer.loop
        if "slide" in message:
            pair = message["slide"]
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or pair[0] not in inputs:
                return False
            given = inputs[pair[0]]
            number = within(pair[1], given.low, given.high)
            if number is None:
                return False
            loop.send("slide", given.name, number)
            return True
        keys, axes, buttons = (message.get(word, []) for word in ("keys", "axes", "buttons"))
        if not all(isinstance(x, list) and len(x) <= 64 for x in (keys, axes, buttons)) or "keys" not in message:
            return False
        held = {key for key in keys if isinstance(key, str)}
        shares = {}
        for name, given in inputs.items():
            share = sum((1.0, -1.0)[i] for i, key in enumerate(given.keys) if key in held) + stick(given.pad, axes, buttons)
            shares[name] = min(max(share, -1.0), 1.0)
        loop.send("hold", shares)
        return True

    def instruct(self, message: dict[str, Any]) -> bool:
        """What an instructor does: freeze, go on, reset, back, weather, failures."""
        viewer, what = self.viewer, message["do"]
        name, kind, value = str(message.get("name")), message.get("kind"), message.get("value")
        jobs: dict[Any, Any] = {
            "freeze": lambda: (viewer.pause(), viewer.act("note", "freeze")),
            "resume": lambda: (viewer.play(), viewer.act("note", "resume")),
            "reset": lambda: (viewer.reset(), viewer.act("note", "reset")),
            "back": lambda: viewer.back(within(value, 0.0, 1e3) or 0.0),
            "friction": lambda: viewer.act("weather", what, within(value, 0.01, 5.0)),
            "gravity": lambda: viewer.act("weather", what, (0.0, 0.0, -(within(value, 0.0, 50.0) or 0.0))),
            "wind": lambda: viewer.act("weather", what, (within(value, -60.0, 60.0) or 0.0, 0.0, 0.0)),
            "fail": lambda: viewer.act("fail", str(kind), name),
            "repair": lambda: viewer.act("repair", *((kind, name) if isinstance(kind, str) and kind in FAILURES else ())),
        }
        if not isinstance(what, str) or what not in jobs:
            return False
        jobs[what]()
        return True


def stick(word: str, axes: list[Any], buttons: list[Any]) -> float:
    """How far a stick or a button of a gamepad is held, −1 to 1: "axis 1", "-axis 1", "button 0"."""
    kind, _, number = word.lstrip("-").partition(" ")
    values = {"axis": axes, "button": buttons}.get(kind)
    if values is None or int(number) >= len(values):
        return 0.0
    value = within(values[int(number)], -1.0, 1.0)
    if value is None or not math.isfinite(value) or abs(value) < DEAD:
        return 0.0
    value = math.copysign((abs(value) - DEAD) / (1 - DEAD), value)
    return -value if word.startswith("-") else value
