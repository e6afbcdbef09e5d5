"""A machine under somebody's hands: it runs here, at its deadlines; its pages have a process of their own.

    drive(sim, "crane")        # says where the operator and the instructor sit; until Ctrl-C

A thread that draws holds Python's lock for milliseconds; a process does not. The pages' process is a copy of this one (fork): its
simulation is never stepped, and shows what the machine's loop hands out. Where the system allows it, the loop comes before all
ordinary processes of the machine (`RealTime(urgent=True)`), the pages among them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import warp as wp

from sharnir.core.extras import need
from sharnir.errors import SimulationError
from sharnir.runtime.record_writer import Recorder
from sharnir.runtime.simulation import Simulation
from sharnir.trainer.loop import Urgent
from sharnir.trainer.session import RemoteSession, answer
from sharnir.view.viewer import Control, Viewer, ended_by_hand, runs

BUDGET = 0.8  # of a tick, that its steps may take


def drive(
    sim: Simulation, title: str = "sharnir", *, control: Control | None = None, until: Callable[[], bool] | None = None,
    budget: float | None = BUDGET, record: Recorder | None = None, **options: Any,
) -> None:  # fmt: skip
    """Let people drive a machine in their browsers until Ctrl-C, or until `until()` is true. Options are those of `Viewer`.

    record: `sim.record_file(file)`, which keeps what people do and what the machine does, from the first step to the last.
    """
    need("viser", "view")
    if not wp.get_device(sim.model.device).is_cpu or "fork" not in multiprocessing.get_all_start_methods():
        viewer = Viewer(sim, title, closed=True, control=control, budget=budget, **options)
        say_where(viewer)
        with ended_by_hand(viewer.stop), record or contextlib.nullcontext():
            viewer.run(until)
        return
    driven = Driven(sim, title, control=control, budget=budget, **options)
    with ended_by_hand(driven.close), record or contextlib.nullcontext():  # begun here: the pages' process has no part in it
        driven.run(until)


class Driven:
    """A machine here, and its pages in a process of their own. Arguments are those of `drive`."""

    def __init__(
        self, sim: Simulation, title: str, *, control: Control | None = None, budget: float | None = BUDGET, **options: Any
    ) -> None:
        warm(sim, budget)
        self.here = runs(sim, control, budget)
        self.here.rt.urgent = True
        kind = multiprocessing.get_context("fork")
        (self._calls, calls), (self._sends, sends) = kind.Pipe(), kind.Pipe()
        given = (sim, title, control, RemoteSession(calls, sends), (self._calls, self._sends), options)
        self._pages = kind.Process(target=_page, args=given, name="sharnir pages", daemon=True)
        self._pages.start()
        calls.close()
        sends.close()

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Until the pages' process ends, or `until()` is true; raises what `control` raised."""
        here = self.here
        with Urgent() if here.rt.urgent else contextlib.nullcontext():  # this thread shares Python's lock with the loop's
            here.start()
            try:
                answer(self._calls, self._sends, here, lambda: here.hands.crash is not None or (until is not None and until()))
            finally:
                here.stop()
        if here.hands.crash is not None:
            raise here.hands.crash
        if self._pages.exitcode:
            raise SimulationError(f"view: the process of the pages ended with {self._pages.exitcode}; what it said stands above")

    def close(self) -> None:
        """End the pages' process."""
        self._calls.close()
        self._sends.close()
        self._pages.join(10)
        if self._pages.is_alive():
            self._pages.terminate()


def warm(sim: Simulation, budget: float | None) -> None:
    """Have all that a step records when it is first made recorded, and leave the simulation as it was."""
    before = sim.snapshot()
    sim.step(budget=budget)
    sim.restore(before)


def _page(
    sim: Simulation, title: str, control: Control | None, loop: RemoteSession, theirs: tuple[Any, ...], options: dict[str, Any]
) -> None:  # fmt: skip
    """The process of the pages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the machine, and that ends this
    for pipe in theirs:
        pipe.close()
    with contextlib.suppress(CancelledError):  # the machine is gone
        viewer = Viewer(sim, title, control=control, loop=loop, closed=True, **options)
        say_where(viewer)
        viewer.run()
        viewer.stop()


def say_where(viewer: Viewer) -> None:
    """Print where people sit."""
    places = {"drive": viewer.drive_url(), "instructor": viewer.drive_url("instructor"), "watch": viewer.watch_url}
    where = "".join(f"  {what + ':':<12}{url}\n" for what, url in places.items())
    sys.stdout.write(f"{viewer.title}\n{where}Ctrl-C ends\n")
    sys.stdout.flush()
