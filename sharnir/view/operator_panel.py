"""The operator's desk: a page around the picture, with keys, a gamepad and sliders, and an instructor's page beside it.

`/drive` and `/instructor` are pages of the viewer's own server, so one port and one origin; `/desk` is their socket. Whoever
connects gives the token that was in the address. One page operates at a time, the first that asks; others watch. Pages send what
is held ten times a second or more: an operator of whom nothing is heard for half a second is lost, and every input goes to its
safe value. What a page sends is decoded by `sharnir.core.bounded_json`: a bad message is counted (`refused`, `last_refusal`) and
ignored, and what is wrong with an instructor's is shown on the pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import secrets
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.bounded_json import Message, MessageError, decode, is_number, is_text, same_token, show
from sharnir.sensors.noise import FAULTS
from sharnir.trainer.failures import FAILURES
from sharnir.view.panel import within

# The Viewer; it stands a floor above, so that it is not named here.
Owner = Any
LOST = 0.5  # s, simulated, after which an operator who is silent is lost
DEAD = 0.12  # of a stick's way, that counts as nothing
PERIOD = 0.1  # s, between messages to pages
WORST = 20  # bad messages, after which a page is disconnected
RANGES = {"back": (0.0, 1e3), "friction": (0.01, 5.0), "gravity": (0.0, 50.0), "wind": (-60.0, 60.0)}
"""What an instructor may set: s back in time; a factor; m/s² downwards; m/s along x."""
JOBS = ("freeze", "resume", "reset", *RANGES, "fail", "repair")
log = logging.getLogger("sharnir")


class OperatorPanel:
    """Who sits at the desk of a viewer, and what they hold."""

    def __init__(self, title: str, token: str | None = None) -> None:
        self.title, self.token = title, secrets.token_urlsafe(12) if token is None else token
        self.watch_token = secrets.token_urlsafe(12)
        """Lets one look, where the viewer is closed."""
        self.viewer: Owner = None  # set when it stands
        self.operator: Any = None  # the connection of the page that operates
        self.people = self.refused = 0
        """Pages that are connected, messages that were refused."""
        self.last_refusal = ""
        """Why the last message was refused."""

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
            role = self._greeted(await asyncio.wait_for(connection.recv(), 10.0))
            if not role:
                await connection.close(1008, "the token is not this desk's")
                return
            while self.viewer is None:  # the server is there a moment before the machine
                await asyncio.sleep(0.02)
            self.people += 1
            await connection.send(json.dumps({"title": self.title, "role": role, **self._described()}))
            teller = asyncio.ensure_future(self._tell(connection))
            bad = 0
            async for text in connection:
                bad += not await self._receive(connection, role, text)
                if bad >= WORST:
                    await connection.close(1008, f"{WORST} bad messages")
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

    def _greeted(self, text: Any) -> str:
        """The role of a page by its first message; "" where that has not the token."""
        try:
            first = decode(text)
        except MessageError as error:
            self._count(error)
            return ""
        if not same_token(first.fields.get("token"), self.token):
            self._count("the token is missing or wrong")
            return ""
        role = first.fields.get("role")
        return str(role) if role in ("operator", "instructor") else "watcher"

    def _count(self, why: object) -> None:
        self.refused, self.last_refusal = self.refused + 1, str(why)

    async def _receive(self, connection: Any, role: str, text: Any) -> bool:
        """Execute one message of a page; False where it is refused. No message ends the conversation by itself."""
        try:
            await self._take(connection, role, decode(text))
            return True
        except MessageError as error:
            self._count(error)
        except CancelledError:
            raise
        except Exception as error:
            log.exception("a message of a page failed")
            self._count(f"the message failed: {error!r}")
        return False

    def _described(self) -> dict[str, Any]:
        sim = self.viewer.sim
        inputs = [
            {
                "name": given.name, "low": given.low, "high": given.high, "safe": given.safe, "about": given.about,
                "keys": list(given.keys), "pad": given.pad,
            }
            for given in sim.inputs.described.values()
        ]  # fmt: skip
        driven = [name for name, k in sim.model.joint_names.items() if any(a.drive is not None for a in sim.model.joint_axes[k])]
        free = [name for name, k in sim.model.joint_names.items() if sim.model.joint_kinds[k].v_size > 0]
        parts = {
            "motor": driven, "brake": free, "joint": list(sim.model.joint_names), "input": list(sim.inputs),
            "rope": list(sim.model.ropes.names) if sim.model.ropes is not None else [],
        }  # fmt: skip
        sensors = {name: sim.sensor(name) for name in sim.model.sensors}
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

    async def _take(self, connection: Any, role: str, message: Message) -> None:
        """Do what a page asks for."""
        if "do" in message:
            if role != "instructor":
                raise MessageError(f"do is for the instructor, and this page is the {role}'s")
            await asyncio.to_thread(self.instruct, message)
        elif "take" in message:
            if role != "operator" or message.fields["take"] is not True:
                raise MessageError(f"take is true, and for an operator; got {show(message.fields['take'])} of the {role}")
            if self.operator is None:
                self.operator = connection
                self.viewer.loop.send("sit", LOST)
        elif "leave" in message:
            if self.operator is connection:
                self.leave()
        elif self.operator is connection:
            self.hold(message)
        elif "keys" not in message and "slide" not in message:  # a watcher's keys do nothing
            raise MessageError("a message has one of the fields do, take, leave, keys, slide")

    def leave(self) -> None:
        """The operator goes: nobody drives."""
        self.operator = None
        with contextlib.suppress(CancelledError):  # so may the machine have gone
            self.viewer.loop.send("leave")

    def hold(self, message: Message) -> None:
        """Keys, sticks and buttons that are held now, or a slider that was moved."""
        inputs, loop = self.viewer.sim.inputs.described, self.viewer.loop
        if "slide" in message:
            pair = message.items("slide", 2)
            if len(pair) != 2 or not is_text(pair[0]) or pair[0] not in inputs or not is_number(pair[1]):
                raise MessageError(f"slide is [input, number], the input one of {', '.join(inputs)}, got {show(pair)}")
            given = inputs[pair[0]]
            loop.send("slide", given.name, min(max(float(pair[1]), given.low), given.high))
            return
        message.value("keys")
        held = set(message.texts("keys"))
        axes, buttons = message.numbers("axes"), message.numbers("buttons")
        shares = {}
        for name, given in inputs.items():
            share = sum((1.0, -1.0)[i] for i, key in enumerate(given.keys) if key in held) + stick(given.pad, axes, buttons)
            shares[name] = min(max(share, -1.0), 1.0)
        loop.send("hold", shares)

    def instruct(self, message: Message) -> None:
        """What an instructor does: freeze, resume, reset, back, weather, failures. What is wrong is shown on the pages."""
        try:
            self._instruct(message)
        except MessageError as error:
            self.viewer.refuse(str(error))
            raise

    def _instruct(self, message: Message) -> None:
        """The whole message is checked before anything is done."""
        viewer, what = self.viewer, message.text("do", JOBS)
        if what in RANGES:
            low, high = RANGES[what]
            if not is_number(message.fields.get("value")) or not low <= message.fields["value"] <= high:
                got = show(message.fields.get("value"))
                raise MessageError(f"value of {what!r} is a finite number from {low:g} to {high:g}, got {got}")
            value = float(message.fields["value"])
            if what == "back":
                viewer.back(value)
            else:
                viewer.act("weather", what, {"gravity": (0.0, 0.0, -value), "wind": (value, 0.0, 0.0)}.get(what, value))
        elif what == "fail":
            viewer.act("fail", message.text("kind", FAILURES), message.text("name"))
        elif what == "repair":
            which = ("kind", "name") if "kind" in message else ()
            viewer.act("repair", *(message.text(word, FAILURES if word == "kind" else None) for word in which))
        else:
            {"freeze": viewer.pause, "resume": viewer.play, "reset": viewer.reset}[what]()
            viewer.act("note", what)


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
