"""Messages from outside: JSON of bounded size, depth and digits, whose fields are read by type.

    message = decode(data)                      # a Message, or a MessageError, whatever the data are
    value = message.number("value", 0.0, 50.0)  # or a MessageError: value is a finite number from 0 to 50, got nan

Everything that arrives over UDP, a WebSocket or shared memory, and the JSON inside recordings and checkpoints, is read here.
Nothing but a `MessageError` is raised: it names the field, the value and what is allowed.
"""

from __future__ import annotations

import hmac
import json
import math
import re
from collections.abc import Collection
from typing import Any

from sharnir.errors import SimulationError

MAX_MESSAGE_BYTES = 4096  # of a message
MAX_MESSAGE_DEPTH = 8  # lists and objects inside each other
MAX_DIGITS = 64  # characters of a number
MAX_TEXT = 256  # characters of a text field
MAX_SHOWN = 60  # characters of a value that an error repeats
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class MessageError(SimulationError):
    """A message cannot be used: which field, which value, and what is allowed."""


class LongNumber:
    """A number with more digits than `MAX_DIGITS`; no field accepts it."""

    def __init__(self, text: str) -> None:
        self._size = len(text)

    def __repr__(self) -> str:
        return f"a number of {self._size} characters"


def show(value: Any) -> str:
    """A value for an error message: short, and without characters that cannot be sent."""
    text = ascii(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def decode_json(data: Any, *, max_bytes: int = MAX_MESSAGE_BYTES, max_depth: int = MAX_MESSAGE_DEPTH) -> Any:
    """The value of a JSON text. Numbers may be non-finite or a `LongNumber`: whoever reads a field checks its type."""
    if not isinstance(data, str | bytes | bytearray | memoryview):
        raise MessageError(f"a message is JSON in UTF-8, got no text but {type(data).__name__}")
    if len(data) > max_bytes or (isinstance(data, str) and len(data.encode("utf-8", "surrogatepass")) > max_bytes):
        raise MessageError(f"a message has at most {max_bytes} bytes, got {len(data)}")
    try:
        text = data if isinstance(data, str) else bytes(data).decode()
    except UnicodeDecodeError:
        raise MessageError("a message is JSON in UTF-8; these bytes are no text") from None
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > max_depth:
            raise MessageError(f"a message has at most {max_depth} lists and objects inside each other")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_whole, parse_float=_real)
    except MessageError:
        raise
    except (ValueError, RecursionError) as error:
        raise MessageError(f"a message is JSON: {str(error)[:MAX_SHOWN]}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MessageError(f"the field {show(twice)} is given twice; allowed: once")
    return out


def _whole(text: str) -> Any:
    return int(text) if len(text) <= MAX_DIGITS else LongNumber(text)


def _real(text: str) -> Any:
    return float(text) if len(text) <= MAX_DIGITS else LongNumber(text)


def is_number(value: Any) -> bool:
    """Whether a decoded value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_text(value: Any, longest: int = MAX_TEXT) -> bool:
    """Whether a decoded value is a text that can be encoded, of at most so many characters."""
    return isinstance(value, str) and len(value) <= longest and not any("\ud800" <= c <= "\udfff" for c in value)


def same_token(given: Any, token: str) -> bool:
    """Whether a token is the right one, whatever was given; the time it takes tells nothing about the right one."""
    if not isinstance(given, str):
        return False
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode("utf-8", "surrogatepass"))


class Message:
    """The fields of one message, read by type; each reader raises a MessageError that names the field."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def allow_only(self, *names: str) -> None:
        """Reject fields that nobody reads."""
        for name in self.fields:
            if name not in names:
                raise MessageError(f"the field {show(name)} is unknown; allowed: {', '.join(names)}")

    def value(self, name: str) -> Any:
        """A field that has to be there."""
        if name not in self.fields:
            raise MessageError(f"the field {name!r} is missing")
        return self.fields[name]

    def text(self, name: str, allowed: Collection[str] | None = None, longest: int = MAX_TEXT) -> str:
        """A text, one of those allowed if they are given."""
        found = self.value(name)
        if not is_text(found, longest) or (allowed is not None and found not in allowed):
            words = f"a text of at most {longest} characters" if allowed is None else f"one of {', '.join(allowed) or 'none'}"
            raise MessageError(f"{name} is {words}, got {show(found)}")
        return str(found)

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number within a range."""
        found = self.value(name)
        if not is_number(found) or not low <= found <= high:
            bounds = "" if low == -math.inf and high == math.inf else f" from {low:g} to {high:g}"
            raise MessageError(f"{name} is a finite number{bounds}, got {show(found)}")
        return float(found)

    def items(self, name: str, most: int = 64) -> list[Any]:
        """A list of at most so many items; empty where the field is missing."""
        found = self.fields.get(name, [])
        if not isinstance(found, list) or len(found) > most:
            raise MessageError(f"{name} is a list of at most {most} items, got {show(found)}")
        return found

    def texts(self, name: str, most: int = 64, longest: int = MAX_TEXT) -> list[str]:
        """A list of texts; empty where the field is missing."""
        found = self.items(name, most)
        for item in found:
            if not is_text(item, longest):
                raise MessageError(f"{name} is a list of texts, got {show(item)}")
        return found

    def numbers(self, name: str, most: int = 64) -> list[float]:
        """A list of finite numbers, where null counts as 0; empty where the field is missing."""
        found = self.items(name, most)
        for item in found:
            if item is not None and not is_number(item):
                raise MessageError(f"{name} is a list of finite numbers, got {show(item)}")
        return [0.0 if item is None else float(item) for item in found]


def decode(data: Any, *, max_bytes: int = MAX_MESSAGE_BYTES, max_depth: int = MAX_MESSAGE_DEPTH) -> Message:
    """A message: one JSON object."""
    found = decode_json(data, max_bytes=max_bytes, max_depth=max_depth)
    if not isinstance(found, dict):
        raise MessageError(f"a message is a JSON object, got {show(found)}")
    return Message(found)
