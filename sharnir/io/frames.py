"""Frames: where everything is at one instant, as arrays, and as bytes for streams and other processes.

A frame as bytes, little endian, one header of 64 bytes and float32 values (`docs/tutorials/realtime.md` tells it to receivers):

    0   4s   "SHFR"               32  u32  bodies n
    4   u16  version, 1           36  u32  ropes r
    6   u16  size of the header   40  u32  points of ropes m
    8   u64  steps made           44  u32  values of channels c
    16  f64  simulated time, s    48  u32  size of all, bytes
    24  f64  wall clock, s        52  u32  check (CRC-32) of the names: which layout this is
                                  56  u32  1: paused
                                  60  u32  check (CRC-32) of what follows

    n × 7 of x, y, z (m), qx, qy, qz, qw;  r × u32 points of each rope;  m × 3 of x, y, z (m);  c values
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharnir.core.bounded_json import Message
from sharnir.core.bounded_json import decode as decode_message
from sharnir.errors import SimulationError

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
FRAME_MAGIC, FRAME_VERSION = b"SHFR", 1
FRAME_HEADER = struct.Struct("<4sHHQddIIIIIIII")
MAX_NAME_BYTES = 1 << 26  # bytes of the names of a layout, at most


@dataclass(frozen=True)
class Layout:
    """Names of what a frame holds, in order; `check` is what frames carry of it."""

    bodies: tuple[str, ...]
    ropes: tuple[str, ...]
    channels: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name, names of its values
    check: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", zlib.crc32(json.dumps([self.bodies, self.ropes, self.channels]).encode()))

    def to_json(self) -> str:
        """The names for a receiver."""
        channels = [{"name": name, "values": list(values)} for name, values in self.channels]
        names = {"layout": self.check, "bodies": list(self.bodies), "ropes": list(self.ropes), "channels": channels}
        return json.dumps(names, ensure_ascii=False)


def read_layout(data: str | bytes | memoryview) -> Layout:
    """The names that `Layout.to_json` wrote; a MessageError where they are none."""
    given = decode_message(data, max_bytes=MAX_NAME_BYTES)
    bodies, ropes = (tuple(given.texts(word, MAX_NAME_BYTES, MAX_NAME_BYTES)) for word in ("bodies", "ropes"))
    channels = []
    for item in given.items("channels", MAX_NAME_BYTES):
        each = Message(item if isinstance(item, dict) else {})
        channels.append((each.text("name", longest=MAX_NAME_BYTES), tuple(each.texts("values", MAX_NAME_BYTES, MAX_NAME_BYTES))))
    return Layout(bodies, ropes, tuple(channels))


@dataclass(slots=True)
class Frame:
    """Where everything is at one instant; copies, which nobody writes afterwards. World axes, m; rotations x, y, z, w."""

    time: float  # s, simulated
    step: int  # steps made so far
    wall: float  # s, of the wall clock (since 1970) when it was taken
    position: np.ndarray  # (bodies, 3) of the bodies' own frames
    rotation: np.ndarray  # (bodies, 4)
    points: np.ndarray  # (points, 3) of all ropes, one after the other
    counts: np.ndarray  # (ropes,) how many points each has
    channels: np.ndarray = field(default_factory=lambda: np.zeros(0))  # values of the named channels, one after the other
    paused: bool = False

    def ropes(self) -> list[np.ndarray]:
        """(points, 3) of each rope."""
        return np.split(self.points, np.cumsum(self.counts)[:-1]) if len(self.counts) else []

    def encode(self, layout: Layout) -> bytes:
        """The frame as bytes."""
        poses = np.concatenate([self.position, self.rotation], 1)
        parts = [poses.astype("<f4"), self.counts.astype("<u4"), self.points.astype("<f4"), self.channels.astype("<f4")]
        body = b"".join(part.tobytes() for part in parts)
        head = (
            FRAME_MAGIC, FRAME_VERSION, FRAME_HEADER.size, self.step, self.time, self.wall, len(poses), len(self.counts),
            len(self.points), len(self.channels), FRAME_HEADER.size + len(body), layout.check, int(self.paused), zlib.crc32(body),
        )  # fmt: skip
        return FRAME_HEADER.pack(*head) + body


def decode(data: bytes | memoryview) -> tuple[Frame, int]:
    """A frame from bytes, and the check of its layout; an error where they are none, or damaged."""
    if len(data) < FRAME_HEADER.size:
        raise SimulationError(f"frame: at least {FRAME_HEADER.size} bytes, got {len(data)}")
    magic, version, head, step, t, wall, n, r, m, c, size, layout, flags, check = FRAME_HEADER.unpack_from(data)
    if magic != FRAME_MAGIC or version != FRAME_VERSION or head != FRAME_HEADER.size:
        raise SimulationError(f"frame: begins with {FRAME_MAGIC!r}, version {FRAME_VERSION}; got {magic!r}, version {version}")
    if size != len(data) or size != head + 28 * n + 4 * r + 12 * m + 4 * c or zlib.crc32(data[head:]) != check:
        raise SimulationError(f"frame: damaged ({len(data)} bytes, {size} announced)")
    poses = np.frombuffer(data, "<f4", 7 * n, head).reshape(n, 7).astype(float)
    counts = np.frombuffer(data, "<u4", r, head + 28 * n).astype(int)
    points = np.frombuffer(data, "<f4", 3 * m, head + 28 * n + 4 * r).reshape(m, 3).astype(float)
    channels = np.frombuffer(data, "<f4", c, head + 28 * n + 4 * r + 12 * m).astype(float)
    if counts.sum() != m:
        raise SimulationError(f"frame: damaged ({m} points of ropes, {counts.sum()} announced)")
    return Frame(t, step, wall, poses[:, :3], poses[:, 3:], points, counts, channels, bool(flags & 1)), layout
