"""What is done to a running loop from beside it: calls of one object's methods between two steps, from a thread or a process.

    here = Here(rt, hands)            # the loop runs in this process
    here.do("back", 2.0)              # hands.back(2.0) between two steps; what it returns or raises
    here.send("heartbeat")            # the same without waiting

A view that computes much shares Python's lock with the loop if it runs in a thread, and delays it. In a process of its own it has
a `RemoteSession`, whose calls go through pipes to `answer`, which hands them to the loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from multiprocessing.connection import wait
from typing import Any

from sharnir.errors import SceneError, SimulationError
from sharnir.trainer.loop import RealTime

ANSWER = 30.0  # s, after which a loop that does not answer is no longer waited for
IDLE = 0.05  # s between looks at whether all is over
log = logging.getLogger("sharnir")


class LocalSession:
    """Calls of an object's methods between two steps of a loop in this process; at once where that does not run."""

    def __init__(self, rt: RealTime, hands: Any) -> None:
        self.rt, self.hands, self.looping = rt, hands, False
        self._lock = threading.RLock()  # of calls while no loop runs

    def do(self, name: str, *given: Any) -> Any:
        """Call a method between two steps, and return what it returns."""
        if self.looping and threading.current_thread() is not self.rt._thread:
            return self.rt.post(lambda _: getattr(self.hands, name)(*given)).result(ANSWER)
        with self._lock:
            return getattr(self.hands, name)(*given)

    def send(self, name: str, *given: Any) -> None:
        """Have a method called between two steps, without waiting for it."""
        if self.looping:
            self.rt.post(lambda _: getattr(self.hands, name)(*given))
        else:
            self.do(name, *given)

    def start(self) -> None:
        """Let the loop begin."""
        self.rt.start()
        self.looping = True

    def stop(self) -> None:
        """End the loop."""
        self.looping = False
        self.rt.stop()


class RemoteSession:
    """The same from another process, through two pipes: calls that are answered, and those that nobody waits for."""

    def __init__(self, calls: Any, sends: Any) -> None:
        self._calls, self._sends = calls, sends
        self._calling, self._sending = threading.Lock(), threading.Lock()

    def do(self, name: str, *given: Any) -> Any:
        """Call a method between two steps, and return what it returns."""
        try:
            with self._calling:
                self._calls.send((name, given))
                well, value = self._calls.recv()
        except (EOFError, OSError):
            raise CancelledError from None  # the loop is over
        if not well:
            raise value
        return value

    def send(self, name: str, *given: Any) -> None:
        """Have a method called between two steps, without waiting for it."""
        try:
            with self._sending:
                self._sends.send((name, given))
        except OSError:
            raise CancelledError from None

    def start(self) -> None:
        """The loop runs elsewhere."""

    def stop(self) -> None:
        """The loop is stopped elsewhere."""


def answer(calls: Any, sends: Any, here: LocalSession, over: Callable[[], bool]) -> None:
    """Do what comes through the pipes until `over()`, or until their other ends are closed."""
    while not over():
        try:
            ready: list[Any] = wait([calls, sends], IDLE)
            for pipe in ready:
                name, given = pipe.recv()
                if pipe is sends:
                    _send(here, name, given)
                else:
                    calls.send(_answer(here, name, given))
        except (EOFError, OSError):
            return


def _answer(here: LocalSession, name: str, given: tuple[Any, ...]) -> tuple[bool, Any]:
    """Whether it went well, and what came of it."""
    try:
        return True, here.do(name, *given)
    except (CancelledError, TimeoutError):
        return False, SimulationError("the loop does not answer")
    except SimulationError as error:
        return False, SimulationError(str(error))  # what kind of error it was may not pass through a pipe
    except SceneError as error:
        return False, SceneError(str(error))
    except Exception as error:  # a call must not end the machine's loop
        log.exception("the call %r failed", name)
        return False, SimulationError(f"{name}: {error!r}")


def _send(here: LocalSession, name: str, given: tuple[Any, ...]) -> None:
    """A call that nobody waits for; one that fails is logged."""
    try:
        here.send(name, *given)
    except Exception:
        log.exception("the call %r failed", name)
