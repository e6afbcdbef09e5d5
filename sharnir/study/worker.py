"""A worker process (`serve`): it reads a job and chunks from its input and writes rows to its output."""

from __future__ import annotations

import os
import pickle
import sys
from typing import IO, Any


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message: its length, then its pickle."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(data).to_bytes(8, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message; EOFError where the other side has gone."""
    head = stream.read(8)
    size = int.from_bytes(head, "little")
    data = stream.read(size) if len(head) == 8 else b""
    if len(head) < 8 or len(data) < size:
        raise EOFError
    return pickle.loads(data)


def serve() -> None:
    """Answer each chunk by (True, rows) or (False, an error), until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print does not get between the rows
    while True:
        try:
            path, data, part = receive(sys.stdin.buffer)
        except EOFError:
            return
        sys.path[:] = path
        from sharnir.study.job import answer

        try:
            send(out, answer(data, part))
        except BrokenPipeError:  # whoever asked is gone
            os._exit(0)
