"""Whether machines keep their deadlines: MF-4 at a door, and a crane with its rope, at 500 Hz beside a bare timer loop.

The bare loop waits for the same deadlines and does nothing: what it misses, the machine's other work took. Both take turns in one
run, before all ordinary threads where the system allows that (`RealTime(urgent=True)`), unless --ordinary. Beside the simulation
run a recorder (a thread), a process that reads every frame from shared memory, and a thread that posts commands.
Targets: missed ticks less than 0.1 % above the bare loop's, drift below 1 ms, command to motion p99 ≤ 20 ms.
With --view the machine runs as `sharnir drive` runs it: pictures are drawn, and sent to a page (a process that takes all it is
sent) in place of the one that reads frames.
Run: python -m benchmarks.realtime [--seconds 60] [--turn 5] [--load] [--no-record] [--view] [--ordinary]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import sharnir as sh
from sharnir.cli.examples import example_folder
from sharnir.trainer.loop import Quiet, Urgent
from sharnir.trainer.shared_frames import SharedFrames
from sharnir.trainer.statistics import Statistics, Times

RATE, PORT = 500, 8790
WATCH = """
import sys, time
from sharnir.trainer.shared_frames import Watcher
watcher = Watcher(sys.argv[1])
print("ready", flush=True)
while True:
    watcher.latest()
    time.sleep(1 / 60)
"""
PAGE = """
import asyncio, sys, msgspec, viser, websockets
port = sys.argv[1]
camera = dict(
    type="ViewerCameraMessage", wxyz=(1.0, 0.0, 0.0, 0.0), position=(3.0, 3.0, 3.0), fov=0.8, near=0.1, far=100.0,
    image_height=560, image_width=900, look_at=(0.0, 0.0, 0.0), up_direction=(0.0, 0.0, 1.0),
)
async def main():
    names, key = [f"viser-v{viser.__version__}"], {"Cookie": f"sharnir-{port}=mine"}
    address = f"ws://127.0.0.1:{port}/"
    async with websockets.connect(address, subprotocols=names, additional_headers=key, max_size=None) as socket:
        await socket.send(msgspec.msgpack.encode(camera))
        print("ready", flush=True)
        async for _ in socket:
            pass
asyncio.run(main())
"""
BUSY = "while True: pass"


def example(name: str) -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, Path(str(example_folder())) / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bare(seconds: float, urgent: bool = False) -> Statistics:
    """A loop that waits for its deadlines, and does nothing."""
    s, clock, wait = Statistics(Times(), Times(), Times()), time.perf_counter, sh.RealTime._wait
    with Quiet(), Urgent(2, friends=True) if urgent else contextlib.nullcontext():
        due = clock()
        for _ in range(round(seconds * RATE)):
            wait(None, due)  # type: ignore[arg-type]
            late = clock() - due
            s.late.add(max(0.0, late))
            s.ticks += 1
            due += 1 / RATE
            s.misses += clock() > due
    return s


def poster(rt: sh.RealTime, done: threading.Event) -> None:
    """Somebody who gives a command twenty times a second."""
    while not done.wait(0.05):
        if rt.running:
            rt.post(lambda sim: sim.time)


def watched(driven: Any, seconds: float) -> Statistics:
    """A turn of a machine that is looked at."""
    ends = time.perf_counter() + seconds
    driven.run(lambda: time.perf_counter() > ends)
    return driven.here.rt.statistics  # type: ignore[no-any-return]


def measure(name: str, seconds: float, turn: float, record: bool, view: bool, urgent: bool = True) -> tuple[float, float, float]:
    """Prints what was measured; shares missed by the machine and the bare loop, %, and the largest drift of a turn, s."""
    module = example(name)
    sim = module.make(1 / RATE)
    control = getattr(module, "control", None)
    driven = None
    if view:
        from sharnir.view.drive import Driven

        driven = Driven(sim, name, control=control, port=PORT, token="mine")
        while socket.socket().connect_ex(("127.0.0.1", PORT)):
            time.sleep(0.1)
            watched(driven, 0.1)
    rt = driven.here.rt if driven is not None else sh.RealTime(sim, rate=RATE, control=control)
    rt.urgent = urgent
    if driven is None:
        rt.run(0.5)
    board, done = SharedFrames(rt), threading.Event()
    beside = [PAGE, str(PORT)] if driven is not None else [WATCH, board.name]
    watcher = subprocess.Popen([sys.executable, "-c", *beside], stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None and watcher.stdout.readline() == "ready\n"
    hand = threading.Thread(target=poster, args=(rt, done), daemon=True)
    hand.start()
    ticks, misses, drift, all_bare, told = 0, 0, 0.0, [0, 0], []
    late, work, command = Times(), Times(), Times()
    with tempfile.TemporaryDirectory() as folder:
        recorder = sim.record_file(Path(folder) / "run.mcap") if record else None
        if recorder is not None:
            recorder.__enter__()
        for _ in range(max(1, round(seconds / turn))):
            b = bare(turn, urgent)
            all_bare[0] += b.misses
            all_bare[1] += b.ticks
            s = rt.run(turn) if driven is None else watched(driven, turn)
            ticks, misses, drift = ticks + s.ticks, misses + s.misses, max(drift, s.drift)
            told.append(s)
            for total, part in ((late, s.late), (work, s.work), (command, s.command)):
                total._bins = [x + y for x, y in zip(total._bins, part._bins, strict=True)]
                total.count, total.sum, total.max = total.count + part.count, total.sum + part.sum, max(total.max, part.max)
        size = 0.0
        if recorder is not None:
            recorder.__exit__()
            size = recorder.path.stat().st_size / 1e6 * 60 / (sim.dt * recorder.steps)
    done.set()
    hand.join()
    watcher.send_signal(signal.SIGTERM)
    watcher.wait()
    board.close()
    if driven is not None:
        driven.close()
    whole = Statistics(work, late, command, ticks, sum(s.steps for s in told), misses, sum(s.cut for s in told),
                       sum(s.skipped for s in told), drift)  # fmt: skip
    ours, theirs = 100 * misses / ticks, 100 * all_bare[0] / all_bare[1]
    first = "before all ordinary threads" if told[0].urgent else "as an ordinary thread"
    print(f"\n{name}, {RATE} Hz, {ticks / RATE:.0f} s beside a bare loop, {first}; recording {size:.1f} MB a minute")
    print(whole.table())
    print(f"missed {ours:.3f} %, bare loop {theirs:.3f} %: {ours - theirs:+.3f} % (target < 0.1)")
    print(f"largest drift of a turn {1e3 * drift:.3f} ms (target < 1)")
    print(f"command to motion p99 {1e3 * command.percentile(99):.2f} ms (target ≤ 20)")
    return ours, theirs, drift


def main() -> None:
    """Both machines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.realtime", description="Deadlines kept beside a bare timer loop.")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each machine (default: 60)")
    parser.add_argument("--turn", type=float, default=5.0, help="s after which the bare loop has its turn (default: 5)")
    parser.add_argument("--load", action="store_true", help="with the other cores busy")
    parser.add_argument("--no-record", action="store_true", help="without a recorder beside it")
    parser.add_argument("--view", action="store_true", help="as `sharnir drive` runs them, with a page open")
    parser.add_argument("--ordinary", action="store_true", help="as ordinary threads, although others might be asked to wait")
    options = parser.parse_args()
    warnings.simplefilter("ignore", sh.StepWarning)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range((os.cpu_count() or 1) - 1)] if options.load else []
    try:
        for name in ("mf4_door", "winch_crane"):
            measure(name, options.seconds, options.turn, not options.no_record, options.view, not options.ordinary)
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
