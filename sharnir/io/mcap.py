"""MCAP, the container: a writer whose file is whole up to its last chunk at any time, and a reader that takes what there is.

A file is magic, records (an opcode, a size of 8 bytes, a content), magic. Messages stand in chunks, compressed with zstd and
checked by a CRC; a clean end adds an index, with which viewers find their way at once. See https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sharnir.core.extras import need
from sharnir.errors import SimulationError

MCAP_MAGIC = b"\x89MCAP0\r\n"
OP_HEADER, OP_FOOTER, OP_SCHEMA, OP_CHANNEL, OP_MESSAGE, OP_CHUNK, OP_MESSAGE_INDEX, OP_CHUNK_INDEX = range(1, 9)
OP_ATTACHMENT, OP_ATTACHMENT_INDEX, OP_STATISTICS, OP_METADATA, OP_METADATA_INDEX, OP_SUMMARY_OFFSET, OP_DATA_END = range(9, 16)
MAX_UNPACKED = 1 << 28  # bytes that a file's messages may take, where it is small
MAX_RATIO = 64  # times the size of the file, where it is large
MAX_WINDOW = 1 << 27  # bytes that the unpacking of a chunk looks back
PER_MESSAGE = 200  # bytes that a message takes beside its content


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def _map(values: dict[str, str]) -> bytes:
    data = b"".join(_text(key) + _text(value) for key, value in values.items())
    return struct.pack("<I", len(data)) + data


def record(opcode: int, content: bytes) -> bytes:
    """One record as bytes."""
    return struct.pack("<BQ", opcode, len(content)) + content


class Writer:
    """Writes a file; `flush` puts what was added since the last one into a chunk and hands it to the operating system."""

    def __init__(self, stream: BinaryIO, library: str) -> None:
        self._stream, self._at = stream, 0
        self._press = need("zstandard", "io").ZstdCompressor(level=3)
        self._schemas: list[bytes] = []
        self._channels: list[bytes] = []
        self._counts: dict[int, int] = {}
        self._messages: list[tuple[int, int, bytes]] = []
        self._chunks: list[bytes] = []
        self._indices: list[tuple[int, bytes]] = []
        self._span = [0, 0]
        self._put(MCAP_MAGIC + record(OP_HEADER, _text("") + _text(library)))

    def _put(self, data: bytes) -> int:
        at = self._at
        self._stream.write(data)
        self._stream.flush()
        self._at += len(data)
        return at

    def add_channel(self, topic: str, encoding: str, schema: tuple[str, str, str] | None = None) -> int:
        """The number of a new channel; a schema is (name, encoding, text)."""
        number = 0
        if schema is not None:
            number = len(self._schemas) + 1
            name, kind, text = schema
            self._schemas.append(record(OP_SCHEMA, struct.pack("<H", number) + _text(name) + _text(kind) + _text(text)))
            self._put(self._schemas[-1])
        channel = len(self._channels) + 1
        content = struct.pack("<HH", channel, number) + _text(topic) + _text(encoding) + _map({})
        self._channels.append(record(OP_CHANNEL, content))
        self._put(self._channels[-1])
        return channel

    def add_metadata(self, name: str, values: dict[str, str]) -> None:
        """Words about the file."""
        data = record(OP_METADATA, _text(name) + _map(values))
        at = self._put(data)
        self._indices.append((OP_METADATA_INDEX, struct.pack("<QQ", at, len(data)) + _text(name)))

    def add_attachment(self, name: str, kind: str, data: bytes, when: int) -> None:
        """A file within the file."""
        content = struct.pack("<QQ", when, when) + _text(name) + _text(kind) + struct.pack("<Q", len(data)) + data
        whole = record(OP_ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))
        at = self._put(whole)
        words = struct.pack("<QQQQQ", at, len(whole), when, when, len(data)) + _text(name) + _text(kind)
        self._indices.append((OP_ATTACHMENT_INDEX, words))

    def add(self, channel: int, when: int, data: bytes) -> None:
        """A message; ns."""
        self._messages.append((channel, when, data))

    def flush(self) -> None:
        """Write a chunk of what was added since the last."""
        if not self._messages:
            return
        messages, self._messages = self._messages, []
        index: dict[int, list[tuple[int, int]]] = {}
        parts, at = [], 0
        for channel, when, data in messages:
            number = self._counts[channel] = self._counts.get(channel, 0) + 1
            parts.append(record(OP_MESSAGE, struct.pack("<HIQQ", channel, number, when, when) + data))
            index.setdefault(channel, []).append((when, at))
            at += len(parts[-1])
        plain = b"".join(parts)
        first, last = min(m[1] for m in messages), max(m[1] for m in messages)
        if not self._chunks:
            self._span[0] = first
        self._span[1] = max(self._span[1], last)
        packed = self._press.compress(plain)
        words = struct.pack("<QQQI", first, last, len(plain), zlib.crc32(plain)) + _text("zstd")
        chunk = record(OP_CHUNK, words + struct.pack("<Q", len(packed)) + packed)
        entries = {
            channel: record(
                OP_MESSAGE_INDEX, struct.pack("<HI", channel, 16 * len(found)) + b"".join(struct.pack("<QQ", *f) for f in found)
            )
            for channel, found in index.items()
        }
        start, offsets, after = self._at, [], self._at + len(chunk)
        for channel, entry in entries.items():
            offsets.append(struct.pack("<HQ", channel, after))
            after += len(entry)
        self._put(chunk + b"".join(entries.values()))
        told = struct.pack("<QQQQ", first, last, start, len(chunk)) + struct.pack("<I", 10 * len(offsets)) + b"".join(offsets)
        told += struct.pack("<Q", after - start - len(chunk)) + _text("zstd") + struct.pack("<QQ", len(packed), len(plain))
        self._chunks.append(told)

    def close(self) -> None:
        """Write the rest and the index."""
        self.flush()
        self._put(record(OP_DATA_END, struct.pack("<I", 0)))
        start = self._at
        groups = [
            (OP_SCHEMA, b"".join(self._schemas)), (OP_CHANNEL, b"".join(self._channels)),
            (OP_CHUNK_INDEX, b"".join(record(OP_CHUNK_INDEX, c) for c in self._chunks)),
            *((kind, record(kind, content)) for kind, content in self._indices),
        ]  # fmt: skip
        total = sum(self._counts.values())
        counts = b"".join(struct.pack("<HQ", *item) for item in sorted(self._counts.items()))
        kinds = [kind for kind, _ in self._indices]
        told = struct.pack("<QHIIIIQQ", total, len(self._schemas), len(self._channels), kinds.count(OP_ATTACHMENT_INDEX),
                           kinds.count(OP_METADATA_INDEX), len(self._chunks), *self._span)  # fmt: skip
        groups.append((OP_STATISTICS, record(OP_STATISTICS, told + struct.pack("<I", len(counts)) + counts)))
        self._put(b"".join(data for _, data in groups))
        self._put(record(OP_FOOTER, struct.pack("<QQI", start, 0, 0)) + MCAP_MAGIC)


@dataclass
class Contents:
    """What a file holds: channels by number, words, attachments; `whole` where it was closed, else it ends with a chunk."""

    channels: dict[int, tuple[str, str]]  # topic, encoding
    metadata: dict[str, dict[str, str]]
    attachments: dict[str, bytes]
    messages: list[tuple[str, int, bytes]]  # topic, time (ns), content
    whole: bool
    room: int = 0  # bytes that messages may still take
    allowed: int = 0  # bytes that they may take in all

    def spend(self, size: int) -> None:
        """Take memory, as far as it is allowed."""
        self.room -= size
        if self.room < 0:
            raise ValueError(f"its messages take at most {self.allowed} bytes when unpacked (see max_bytes of Recording)")


class _Cursor:
    """Reads the fields of a record."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values[0] if len(values) == 1 else values

    def some(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise struct.error("too short")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return self.some(self.take("I")).decode()

    def map(self) -> dict[str, str]:
        inner, out = _Cursor(self.some(self.take("I"))), {}
        while inner._at < len(inner._data):
            key = inner.text()
            out[key] = inner.text()
        return out

    def rest(self) -> bytes:
        return self._data[self._at :]


def read(path: Path, max_bytes: int | None = None) -> Contents:
    """All of a file; of one that was cut off, what stands before the cut. Damage within is an error that says where.

    max_bytes: memory that its messages may take; a multiple of the file's size if None, so that a small file cannot fill it.
    """
    with path.open("rb") as stream:
        if not (begins := stream.read(len(MCAP_MAGIC))).startswith(MCAP_MAGIC):
            raise SimulationError(f"{path}: is no MCAP file (it begins with {begins!r})")
        data = begins + stream.read()
    allowed = max(MAX_UNPACKED, MAX_RATIO * len(data)) if max_bytes is None else max_bytes
    out = Contents({}, {}, {}, [], False, allowed, allowed)
    for at, opcode, content in _records(data, len(MCAP_MAGIC)):
        try:
            if opcode == OP_DATA_END:
                out.whole = data.endswith(MCAP_MAGIC) and len(data) > len(MCAP_MAGIC)
                return out
            _take(out, opcode, content)
        except (struct.error, UnicodeDecodeError, ValueError, need("zstandard", "io").ZstdError) as error:
            raise SimulationError(f"{path}: is damaged at byte {at}: {error}") from None
    return out


def _records(data: bytes, at: int) -> Iterator[tuple[int, int, bytes]]:
    while at + 9 <= len(data):
        opcode, size = struct.unpack_from("<BQ", data, at)
        if opcode == 0 or size > len(data) - at - 9:
            return  # cut off
        yield at, opcode, data[at + 9 : at + 9 + size]
        at += 9 + size


def _take(out: Contents, opcode: int, content: bytes) -> None:
    c = _Cursor(content)
    if opcode == OP_CHANNEL:
        number, _schema = c.take("HH")
        out.channels[number] = c.text(), c.text()
    elif opcode == OP_METADATA:
        name = c.text()
        out.metadata[name] = c.map()
    elif opcode == OP_ATTACHMENT:
        c.take("QQ")
        name, _kind = c.text(), c.text()
        out.attachments[name] = c.some(c.take("Q"))
        if c.take("I") != zlib.crc32(content[:-4]):
            raise ValueError(f"the check of attachment {name!r} does not fit")
    elif opcode == OP_MESSAGE:
        channel, _number, when, _published = c.take("HIQQ")
        out.spend(len(content) + PER_MESSAGE)
        out.messages.append((out.channels[channel][0] if channel in out.channels else "", when, c.rest()))
    elif opcode == OP_CHUNK:
        _first, _last, size, check = c.take("QQQI")
        kind, packed = c.text(), c.some(c.take("Q"))
        if kind not in ("zstd", ""):
            raise ValueError(f"compression {kind!r}; allowed: zstd, none")
        plain = _unpacked(out, packed, size) if kind else packed
        if check and zlib.crc32(plain) != check:
            raise ValueError("the check of a chunk does not fit")
        for _, inner, message in _records(plain, 0):
            if inner == OP_CHUNK:
                raise ValueError("a chunk within a chunk")
            _take(out, inner, message)


def _unpacked(out: Contents, packed: bytes, size: int) -> bytes:
    """The content of a chunk, of the size that is announced; memory is taken once that size is allowed."""
    zstandard = need("zstandard", "io")
    out.spend(size)
    out.room += size  # its messages count
    announced = zstandard.frame_content_size(packed)
    if announced not in (-1, size):
        raise ValueError(f"a chunk unpacks to {announced} bytes, {size} are announced")
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    with unpacker.stream_reader(packed) as stream:
        plain = bytes(stream.read(size + 1))
    if len(plain) != size:
        raise ValueError(f"a chunk unpacks to {len(plain)} bytes, {size} are announced")
    return plain
