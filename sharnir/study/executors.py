"""Where chunks are run: in this process, in others on this machine, or as Ray tasks. Rows come back in any order, each once."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import Any

from sharnir.core.extras import need
from sharnir.errors import SceneError, SimulationError
from sharnir.study.job import Broken, Job, Part, Runner, answer, called
from sharnir.study.worker import receive, send

WORKER_TRIES = 5  # how often a chunk is begun whose worker dies
EXECUTORS = ("local", "ray")
Rows = dict[str, Any]
Done = Iterator[tuple[Part, Rows]]


def rows_of(reply: tuple[bool, Any]) -> Rows:
    """The rows of an answer, or its error raised."""
    fine, told = reply
    if fine:
        return dict(told)
    kind, text = told
    raise SceneError(text) if kind == "SceneError" else SimulationError(text)


def packed(job: Job, far: bool = False) -> bytes:
    """A job as bytes. Functions that a worker cannot import travel by value (cloudpickle); so do all to a `far` one."""
    functions = [f for f in (job.source, *job.measure) if callable(f)]
    loose = [f for f in functions if far or not _importable(f)]
    try:
        if not loose:
            return pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        cloudpickle = need("cloudpickle", "study")
        for module in {sys.modules.get(getattr(f, "__module__", None) or "") for f in loose}:
            if module is not None and module.__name__.partition(".")[0] not in ("__main__", "sharnir", "builtins"):
                cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(job))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        names = ", ".join(repr(called(f)) for f in functions) or "the scene"
        raise SimulationError(
            f"run_study: {names} cannot be sent to another process ({error}); workers=1 needs no sending"
        ) from None


def _importable(function: Any) -> bool:
    """Whether another process finds a function by its name."""
    name, where = getattr(function, "__qualname__", None), getattr(function, "__module__", None) or "__main__"
    if name is None:
        return True  # an object, which knows how it is pickled
    found = PathFinder.find_spec(where.partition(".")[0]) is not None
    return found and getattr(sys.modules.get(where), name, None) is function


def here(runner: Callable[[], Runner], parts: Iterator[Part]) -> Done:
    """In this process, one after the other."""
    made: Runner | None = None
    for part in parts:
        made = made or runner()
        try:
            yield part, made.rows(part)
        except Broken as error:
            raise SimulationError(str(error)) from error


class _Worker(threading.Thread):
    """A thread that keeps one process busy, and starts another where it dies."""

    def __init__(self, data: bytes, todo: queue.Queue[Part], done: queue.Queue[Any]) -> None:
        super().__init__(daemon=True)
        self.data, self.todo, self.done = data, todo, done
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def run(self) -> None:
        try:
            while not self.stopped:
                try:
                    part = self.todo.get_nowait()
                except queue.Empty:
                    break
                self._tell((part, self._rows(part)))
        except BaseException as error:
            self._tell((None, error))
        finally:
            self.end()

    def _tell(self, what: Any) -> None:
        """Hand over what came, unless nobody asks any more."""
        while not self.stopped:
            try:
                return self.done.put(what, timeout=0.5)
            except queue.Full:
                continue

    def _rows(self, part: Part) -> Rows:
        code: int | None = None
        for _ in range(WORKER_TRIES):
            if self.process is None:
                words = [sys.executable, "-c", "from sharnir.study.worker import serve; serve()"]
                path = os.pathsep.join(p for p in sys.path if p)
                environment = os.environ | {"PYTHONPATH": path}
                self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            if self.stopped:  # meanwhile
                self.process.kill()
            assert self.process.stdin is not None and self.process.stdout is not None
            try:
                send(self.process.stdin, (sys.path, self.data, part))
                return rows_of(receive(self.process.stdout))
            except (EOFError, OSError):  # it died; the chunk is begun anew
                code = self.process.wait()
                self.process = None
                if self.stopped:
                    break
        return part.rows({}, [f"its worker ended {WORKER_TRIES} times (exit code {code})"] * len(part))

    def end(self) -> None:
        """Let the process go."""
        self.stopped = True
        process = self.process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()


def local(data: bytes, parts: list[Part], workers: int, watch: Callable[[list[int]], None] | None = None) -> Done:
    """In so many processes of this machine; `watch` is told the ids of those that run, before each chunk that comes back."""
    todo: queue.Queue[Part] = queue.Queue()
    done: queue.Queue[Any] = queue.Queue(maxsize=4 * workers)
    for part in parts:
        todo.put(part)
    threads = [_Worker(data, todo, done) for _ in range(min(workers, len(parts)))]
    for thread in threads:
        thread.start()
    try:
        for _ in parts:
            part, rows = done.get()
            if isinstance(rows, BaseException):
                raise rows
            if watch is not None:
                watch([t.process.pid for t in threads if t.process is not None])
            yield part, rows
    finally:
        for thread in threads:
            thread.end()


def _knock(address: str | None) -> None:
    """See that somebody listens at host:port; Ray itself would wait for minutes."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def on_ray(data: bytes, parts: list[Part], workers: int | None, address: str | None) -> Done:
    """As tasks of a Ray cluster: the one that is connected, that at an address, or one of this machine."""
    ray = need("ray")
    started = not ray.is_initialized()
    if started:
        try:
            _knock(address)
            given = {"num_cpus": workers} if address is None else {}
            ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, configure_logging=False, **given)
        except (ConnectionError, ValueError, RuntimeError, OSError, TimeoutError) as error:
            raise SimulationError(f"run_study: no Ray cluster answers at address={address!r}: {error}") from None
    try:
        task = ray.remote(max_retries=WORKER_TRIES, num_cpus=1)(answer)
        job = ray.put(data)
        slots = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        left, running = iter(parts), dict[Any, Part]()
        while True:
            for part in left:
                running[task.remote(job, part)] = part
                if len(running) >= 2 * slots:
                    break
            if not running:
                return
            ready, _ = ray.wait(list(running), num_returns=1)
            for reference in ready:
                part = running.pop(reference)
                try:
                    reply = ray.get(reference)
                except ray.exceptions.RayError as error:
                    text = str(error).strip().splitlines()[0]
                    reply = True, part.rows({}, [f"its worker ended {WORKER_TRIES} times ({text})"] * len(part))
                yield part, rows_of(reply)
    finally:
        if started:
            ray.shutdown()
