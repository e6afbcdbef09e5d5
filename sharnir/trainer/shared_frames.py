"""Frames for another process, through shared memory: a viewer or a recorder there can neither hold nor slow down the loop.

    board = Board(rt)                      # in the process of the loop; board.name goes to the other
    frames = Watcher(name)                 # there; frames.latest(), frames.layout

Three frames stand side by side; the newest is written where nobody was told to look, then its number is. A reader that was
overtaken sees by the frame's check that it is torn, and takes the next.
"""

from __future__ import annotations

import struct
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from sharnir.core.bounded_json import MessageError
from sharnir.errors import SimulationError
from sharnir.io.frames import Frame, decode, read_layout
from sharnir.trainer.loop import RealTime

FRAME_SLOTS = 3
BOARD_HEAD = struct.Struct("<8sQIII")  # magic, number of the newest, bytes of the names, of a slot, version
BOARD_MAGIC, BOARD_VERSION = b"SHBOARD\0", 1
ROPE_BYTES = 12 * 4096  # bytes beyond the first frame: a rope may be paid out
_OWN: set[str] = set()  # boards of this process


class SharedFrames:
    """Shows the frames of a loop in shared memory; `close` takes it down."""

    def __init__(self, rt: RealTime, name: str | None = None) -> None:
        self._layout = rt.layout
        names = rt.layout.to_json().encode()
        self._slot = 4 + len(rt.latest().encode(rt.layout)) + (ROPE_BYTES if rt.layout.ropes else 0)
        self._first = BOARD_HEAD.size + len(names)
        self._memory = SharedMemory(name, create=True, size=self._first + FRAME_SLOTS * self._slot)
        self._buffer = _buffer(self._memory)
        self.name = self._memory.name
        """To be given to the other process."""
        _OWN.add(self.name)
        self._number = 0
        BOARD_HEAD.pack_into(self._buffer, 0, BOARD_MAGIC, 0, len(names), self._slot, BOARD_VERSION)
        self._buffer[BOARD_HEAD.size : self._first] = names
        self.show(rt.latest())
        rt.add_board(self)

    def show(self, frame: Frame) -> None:
        """Put up a frame; one that has grown beyond its room is left out."""
        data = frame.encode(self._layout)
        if len(data) + 4 > self._slot:
            return
        at = self._first + self._slot * ((self._number + 1) % FRAME_SLOTS)
        struct.pack_into("<I", self._buffer, at, len(data))
        self._buffer[at + 4 : at + 4 + len(data)] = data
        self._number += 1
        struct.pack_into("<Q", self._buffer, 8, self._number)

    def close(self) -> None:
        """Take it down; readers keep what they have."""
        self._memory.close()
        self._memory.unlink()
        _OWN.discard(self.name)


class Watcher:
    """Reads a board from another process."""

    def __init__(self, name: str) -> None:
        try:
            self._memory = SharedMemory(name)
        except FileNotFoundError:
            raise SimulationError(f"Watcher: no board is named {name!r}") from None
        if name not in _OWN:
            _leave(self._memory)
        self._buffer = _buffer(self._memory)
        try:
            self._read_head(name)
        except SimulationError:
            self._memory.close()
            raise

    def _read_head(self, name: str) -> None:
        """Sizes and names, checked against the memory that is there."""
        size = len(self._buffer)
        magic, _, names, self._slot, version = (
            BOARD_HEAD.unpack_from(self._buffer) if size >= BOARD_HEAD.size else (b"", 0, 0, 0, 0)
        )
        if magic != BOARD_MAGIC or version != BOARD_VERSION:
            raise SimulationError(f"Watcher: {name!r} is not a board of version {BOARD_VERSION}")
        self._first = BOARD_HEAD.size + names
        if self._slot < 4 or self._first + FRAME_SLOTS * self._slot > size:
            raise SimulationError(f"Watcher: {name!r} announces {names} bytes of names and slots of {self._slot} bytes in {size}")
        try:
            self.layout = read_layout(bytes(self._buffer[BOARD_HEAD.size : self._first]))
        except MessageError as error:
            raise SimulationError(f"Watcher: {name!r} has no names: {error}") from None

    def latest(self) -> Frame:
        """The newest frame."""
        for _ in range(1000):
            (number,) = struct.unpack_from("<Q", self._buffer, 8)
            at = self._first + self._slot * (number % FRAME_SLOTS)
            (size,) = struct.unpack_from("<I", self._buffer, at)
            try:
                return decode(bytes(self._buffer[at + 4 : at + 4 + min(size, self._slot - 4)]))[0]
            except SimulationError:  # torn: there is a newer one
                continue
        raise SimulationError("Watcher: the board shows no whole frame")

    def close(self) -> None:
        """Look no more."""
        self._memory.close()


def _buffer(memory: SharedMemory) -> memoryview:
    assert memory.buf is not None
    return memory.buf


def _leave(memory: Any) -> None:
    """The board is its maker's to take down, not the reader's (before Python 3.13 every process that looks wants to)."""
    resource_tracker.unregister(memory._name, "shared_memory")
