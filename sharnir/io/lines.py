"""On which line of a TOML text each key stands; `tomllib` reads values and does not tell."""

from __future__ import annotations

import re
import tomllib

Keys = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*|[\[\]{}=\n]|[^\[\]{}=\n\"'#]+|.",
    re.DOTALL,
)
_KEY = re.compile(r'"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'|[A-Za-z0-9_-]+")


def key_parts(text: str) -> list[str]:
    """The parts of a dotted key, quotes taken off."""
    return [_unquoted(part) for part in _KEY.findall(text)]


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"v = {part}")["v"])
    except tomllib.TOMLDecodeError:
        return part[1:-1]


def key_lines(text: str) -> dict[Keys, int]:
    """Line (from 1) of each table and key by its path; items of an array of tables are numbered. Keys inside values have none."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    table: Keys = ()
    line, depth, said, in_value = 1, 0, "", False

    def resolve(parts: list[str], array: bool) -> Keys:
        at: Keys = ()
        for i, part in enumerate(parts):
            at = (*at, part)
            last = i == len(parts) - 1
            if last and array:
                counts[at] = counts.get(at, -1) + 1
            if at in counts and (array or not last):
                lines.setdefault(at, line)
                at = (*at, counts[at])
            lines.setdefault(at, line)
        return at

    for token in _TOKEN.findall(text):
        if token == "\n":
            if depth == 0:
                stripped = said.strip()
                if not in_value and stripped.startswith("["):
                    table = resolve(key_parts(stripped), stripped.startswith("[["))
                said, in_value = "", False
        elif in_value:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
            depth = max(depth, 0)
        elif token == "=" and not said.lstrip().startswith("["):
            at = table
            for part in key_parts(said):
                at = (*at, part)
                lines.setdefault(at, line)
            in_value = True
        elif not token.startswith("#"):
            said += token
        line += token.count("\n")
    if said.strip().startswith("[") and not in_value:
        resolve(key_parts(said.strip()), said.strip().startswith("[["))
    return lines


def line_of(lines: dict[Keys, int], path: Keys) -> int:
    """The line of a key, or of the nearest table around it; 1 if nothing is known."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return 1


def shown(path: Keys) -> str:
    """A path as a file has it, such as body."left leg".shape."""
    out = ""
    for key in path:
        if isinstance(key, int):
            out += f"[{key}]"
        else:
            word = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'
            out += f".{word}" if out else word
    return out
