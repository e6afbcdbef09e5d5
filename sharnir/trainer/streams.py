"""Frames sent to others, latest wins, and commands taken from them: over UDP and over a WebSocket, on this machine by default.

    stream = Stream(rt, websocket=8090, udp="127.0.0.1:5005", token="secret")
    ...
    stream.close()

Frames are as `sharnir.io.frames` says. A WebSocket's client gets the layout (names, as JSON text) first and then frames; over UDP
the layout comes once a second between them. A client that is slow gets fewer frames, never older ones, and nobody waits for it.

Commands are JSON: {"token": …, "control": "throttle", "value": 0.5}, {"token": …, "do": "pause" | "resume" | "release"}; on a
WebSocket the token is needed once. A bad command is counted (`refused`, `last_refusal`) and otherwise ignored; on a WebSocket
its sender gets {"error": …}. UDP sends no answer, since the address of its sender may be forged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import socket
import threading
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from sharnir.core.bounded_json import MAX_MESSAGE_BYTES, MessageError, decode, same_token
from sharnir.core.extras import need
from sharnir.errors import SceneError, SimulationError, is_positive
from sharnir.trainer.access_guard import QUIET_LOG, allowed
from sharnir.trainer.loop import RealTime

DATAGRAM = 65000  # bytes of a frame that fits one
MAX_COMMANDS = 200  # commands a second from one client; more are refused
DOES = ("pause", "resume", "release")
log = logging.getLogger("sharnir")


class Stream:
    """Sends the frames of a loop, and takes commands.

    Args:
        rt: the loop; it takes frames at its own rate (`RealTime(frames=)`), of which the newest is sent.
        websocket: port to serve on; 0 takes a free one, None: no WebSocket.
        udp: "host:port" to send to, or several; None: none.
        commands: port on which commands are taken over UDP; 0 takes a free one, None: none.
        host: address to serve on; other than 127.0.0.1 opens it to others.
        rate: frames a second, Hz.
        token: a secret without which no command is taken; "" takes none at all.
        page: a file that is served at "/", such as a receiver.
    """

    def __init__(
        self, rt: RealTime, *, websocket: int | None = None, udp: str | list[str] | None = None, commands: int | None = None,
        host: str = "127.0.0.1", rate: float = 60.0, token: str = "", page: str | Path | None = None,
    ) -> None:  # fmt: skip
        if not is_positive(rate):
            raise SimulationError(f"Stream: rate is a positive finite number, got {rate!r}")
        self.rt, self.host, self._period, self._token = rt, host, 1 / float(rate), token
        self._targets = [_address(word) for word in ([udp] if isinstance(udp, str) else udp or [])]
        self._page = None if page is None else Path(page).read_text(encoding="utf-8")
        self.sent = self.refused = self.taken = 0
        """Frames sent, messages refused, commands taken."""
        self.last_refusal = ""
        """Why the last message was refused."""
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []
        self.port = self.command_port = 0
        """Ports of the WebSocket and of commands over UDP."""
        size = len(rt.latest().encode(rt.layout))
        if self._targets and size > DATAGRAM:
            raise SimulationError(
                f"Stream: a frame of this scene has {size} bytes; over UDP at most {DATAGRAM} go: take a WebSocket"
            )
        if self._targets:
            self._start("sharnir udp", self._send_datagrams)
        if commands is not None:
            self._ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._ear.bind((host, commands))
            self._ear.settimeout(0.1)
            self.command_port = self._ear.getsockname()[1]
            self._start("sharnir commands", self._hear_datagrams)
        if websocket is not None:
            ready: threading.Event = threading.Event()
            self._wrong: OSError | None = None
            self._start("sharnir websocket", lambda: asyncio.run(self._serve(websocket, ready)))
            ready.wait(10)
            if self._wrong is not None:
                raise SimulationError(f"Stream: {host}:{websocket} cannot be served on: {self._wrong}")

    def _start(self, name: str, what: Any) -> None:
        self._threads.append(threading.Thread(target=what, name=name, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        """Send and take no more."""
        self._done.set()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- UDP ----

    def _send_datagrams(self) -> None:
        told = last = -math.inf
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            while not self._done.wait(self._period):
                frame = self.rt.latest()
                if frame.wall == last:
                    continue
                last, packets = frame.wall, [frame.encode(self.rt.layout)]
                if time.monotonic() - told > 1.0:
                    told, packets = time.monotonic(), [self.rt.layout.to_json().encode(), *packets]
                for target in self._targets:
                    for packet in packets:
                        with contextlib.suppress(OSError):  # full, or nobody there: the next one is newer
                            out.sendto(packet, target)
                self.sent += 1

    def _hear_datagrams(self) -> None:
        allowance = Allowance()
        with self._ear:
            while not self._done.is_set():
                try:
                    data, _sender = self._ear.recvfrom(MAX_MESSAGE_BYTES + 1)
                except (TimeoutError, OSError):
                    continue
                self._receive(data, False, allowance)

    # ---- WebSocket ----

    async def _serve(self, port: int, ready: threading.Event) -> None:
        server = need("websockets.asyncio.server", "io")
        options: dict[str, Any] = {"max_size": MAX_MESSAGE_BYTES, "max_queue": 8, "write_limit": 1 << 16, "compression": None}
        try:
            running = await server.serve(
                self._meet,
                self.host,
                port,
                process_request=self._ask,
                ping_interval=5,
                ping_timeout=10,
                logger=QUIET_LOG,
                **options,
            )
        except OSError as error:
            self._wrong = error
            ready.set()
            return
        self.port = next(iter(running.sockets)).getsockname()[1]
        ready.set()
        while not self._done.is_set():
            await asyncio.sleep(0.05)
        running.close(close_connections=True)

    def _ask(self, connection: Any, request: Any) -> Any:
        said = [request.headers.get_all(name) for name in ("Host", "Origin")]
        why = "a header is given twice" if max(map(len, said)) > 1 else ""
        why = why or allowed(self.host, *(values[0] if values else None for values in said))
        if why:
            self.refused += 1
            return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
        if request.headers.get("Upgrade") is None:
            if self._page is None or request.path != "/":
                return connection.respond(HTTPStatus.NOT_FOUND, "there is a WebSocket here\n")
            response = connection.respond(HTTPStatus.OK, self._page)
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = "text/html; charset=utf-8"
            return response
        return None

    async def _meet(self, client: Any) -> None:
        """One client: frames out, commands in, until it goes or stalls for good."""
        closed = need("websockets.exceptions", "io").ConnectionClosed
        hearing = asyncio.create_task(self._hear(client))
        last = -math.inf
        try:
            await client.send(self.rt.layout.to_json())
            while not self._done.is_set():
                frame = self.rt.latest()
                if frame.wall != last:
                    last = frame.wall
                    await client.send(frame.encode(self.rt.layout))  # waits here alone where the client is slow
                    self.sent += 1
                await asyncio.sleep(self._period)
        except closed:
            pass
        finally:
            hearing.cancel()

    async def _hear(self, client: Any) -> None:
        known, allowance = False, Allowance()
        closed = need("websockets.exceptions", "io").ConnectionClosed
        with contextlib.suppress(closed, asyncio.CancelledError):
            async for message in client:
                why = self._receive(message, known, allowance)
                if why:
                    await client.send(json.dumps({"error": why}))
                else:
                    known = True

    # ---- commands ----

    def _receive(self, data: Any, known: bool, allowance: Allowance) -> str:
        """Execute one message, or count it and return why it is refused. No message ends the thread that calls this."""
        try:
            if not allowance.take():
                raise MessageError(f"more than {MAX_COMMANDS} commands a second")
            self._command(data, known)
            return ""
        except MessageError as error:
            why = str(error)
        except Exception as error:
            log.exception("a command failed")
            why = f"the command failed: {error!r}"
        self.refused, self.last_refusal = self.refused + 1, why
        return why

    def _command(self, data: Any, known: bool) -> None:
        """Execute one message."""
        message = decode(data)
        token = message.fields.pop("token", None)
        if not known and not (self._token and same_token(token, self._token)):
            raise MessageError("the token is missing or wrong")
        if not message.fields:
            return
        if "do" in message:
            message.allow_only("do")
            word = message.text("do", DOES)
            if word == "release":
                self.rt.post(lambda sim: sim.inputs.release(by="network"))
            else:
                getattr(self.rt, word)()
        else:
            message.allow_only("control", "value", "do")
            inputs = self.rt.sim.inputs.described
            name = message.text("control")
            if name not in inputs:
                raise MessageError(f"there is no input {name!r}; available: {', '.join(inputs) or 'none'}")
            low, high = inputs[name].low, inputs[name].high
            value = min(max(message.number("value"), low), high)
            self.rt.post(lambda sim: sim.inputs.set(name, value, by="network"))
        self.taken += 1


class Allowance:
    """So many messages a second, and no more."""

    def __init__(self) -> None:
        self._left, self._then = float(MAX_COMMANDS), time.monotonic()

    def take(self) -> bool:
        """Whether one more is allowed."""
        now = time.monotonic()
        self._left, self._then = min(float(MAX_COMMANDS), self._left + MAX_COMMANDS * (now - self._then)), now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def _address(word: str) -> tuple[str, int]:
    host, _, port = word.rpartition(":") if isinstance(word, str) else ("", "", "")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise SceneError(f"Stream: udp is 'host:port', got {word!r}")
    return host, int(port)
