"""Launches that are recorded once and replayed: a plain launch costs 40 µs on the CPU, a replay 1."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import warp as wp

LOCK = threading.RLock()
"""Held while launches are recorded, and around all other work of Warp between steps: there is one recorder for all threads."""


class Threads:
    """Threads that share work. A forked process, which has none of its parent's threads, gets new ones when it needs them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._start()

    def _start(self) -> None:
        self._pool, self._process = ThreadPoolExecutor(self.count, "sharnir"), os.getpid()

    def submit(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a thread call `work`."""
        if self._process != os.getpid():
            self._start()
        return self._pool.submit(work, *args)


class Keeper:
    """The thread whose replays keep Python's lock: a loop with deadlines, which would have to wait for it after each; 0: none.

    Replays of all other threads let go of it, so that they run side by side.
    """

    thread = 0


def record(launch: Callable[[], None], device: Any) -> Any:
    """The graph of some launches."""
    with LOCK, wp.ScopedCapture(device=device) as capture:
        launch()
    return capture.graph


def replayer(graph: Any) -> Callable[[], object]:
    """A function without arguments that replays a graph; on the CPU it goes straight to the device's library."""
    core: Any = getattr(getattr(getattr(wp, "_src", None), "context", None), "runtime", None)
    straight = getattr(getattr(core, "core", None), "wp_apic_cpu_replay_state", None)
    state = getattr(graph, "apic_state", None)
    if straight is None or state is None or not graph.device.is_cpu or graph._native_graph is not None:
        return lambda: wp.capture_launch(graph)

    keeping = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(ctypes.cast(straight, ctypes.c_void_p).value or 0)
    me = threading.get_ident

    def replay(straight: Callable[[Any], bool] = straight, state: Any = state, graph: Any = graph) -> None:
        if not (keeping if Keeper.thread and Keeper.thread == me() else straight)(state):
            wp.capture_launch(graph)  # tells what is wrong

    return replay


class Recorded:
    """Some launches, recorded when they are first made."""

    __slots__ = ("_device", "_launch", "_replay")

    def __init__(self, launch: Callable[[], None], device: Any) -> None:
        self._launch, self._device = launch, device
        self._replay: Callable[[], object] | None = None

    def __call__(self) -> None:
        if self._replay is None:
            self._replay = replayer(record(self._launch, self._device))
        self._replay()

    def forget(self) -> None:
        """Record them anew: arrays that they take were replaced."""
        self._replay = None
