"""Files and messages damaged at random: what the tests of everything that arrives from outside share."""

import re

NUMBERS = (
    "1e308",
    "-1e308",
    "-1",
    "0",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "99999999999999999999",
    "true",
    '"x"',
    "[]",
    "{}",
    "1e9",
    "[1,2]",
)


def damaged(text, rng, numbers=NUMBERS):
    """A text with one to three things wrong: lines gone, doubled or swapped, other bytes, numbers, names or words misspelt."""
    for _ in range(int(rng.integers(1, 4))):
        lines = text.split("\n")
        i, j = (int(k) for k in rng.integers(0, len(lines), 2))
        match int(rng.integers(0, 9)):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3 | 4:
                found = list(re.finditer(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?", text))
                if found:
                    at = found[int(rng.integers(0, len(found)))]
                    text = text[: at.start()] + str(rng.choice(numbers)) + text[at.end() :]
                continue
            case 5:
                words = list(re.finditer(r"[A-Za-z_]{3,}", text))
                if not words:
                    continue
                at = words[int(rng.integers(0, len(words)))]
                word = list(at[0])
                k = int(rng.integers(0, len(word)))
                word[k] = str(rng.choice(["", word[k] * 2, "q"]))
                text = text[: at.start()] + "".join(word) + text[at.end() :]
                continue
            case 6:
                names = list(re.finditer(r'"([^"\n]*)"', text))
                if len(names) > 1:
                    a, b = (names[int(k)] for k in rng.integers(0, len(names), 2))
                    text = text[: a.start()] + b[0] + text[a.end() :]
                continue
            case 7:
                k = int(rng.integers(0, len(text)))
                text = text[:k] + "".join(map(chr, rng.integers(0, 256, 3))) + text[k + int(rng.integers(0, 4)) :]
                continue
            case 8:
                text = text[: int(rng.integers(0, len(text)))] or " "
                continue
        text = "\n".join(lines) or " "
    return text or " "


def unfinished(scene):
    """Whether a number of a scene's descriptions is not finite where it has to be."""
    import numpy as np

    bodies = [
        x
        for b in scene.bodies.values()
        for x in (b.mass, b.com, b.inertia, b.position, b.rotation, b.velocity, b.angular_velocity)
    ]
    joints = [x for j in scene.joints.values() for x in (j.parent_point, j.child_point, j.parent_frame, j.child_frame)]
    ropes = [x for r in scene.ropes.values() for x in (r.points, r.lengths, r.rotations, r.velocity, r.density, r.EI, r.GJ)]
    return not all(np.isfinite(x).all() for x in [*bodies, *joints, *ropes])


WORDS = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 3000,
    b"-0",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\\udc00x"',
    b"1e-400",
    b"[" * 3000,
    b'"' + b"x" * 4000 + b'"',
    b"\xff\xfe",
    b"\x00",
    "\ud800".encode("utf-8", "surrogatepass"),
    b'"hinge"',
    b'"do"',
    b"99999999999999999999",
    b"1e9",
    b'"push"',
    b'{"value":1}',
)


def mutated_message(text, rng):
    """A JSON message with up to three things wrong, as bytes: values replaced, bytes changed, parts doubled, moved or cut off."""
    data = text.encode()
    for _ in range(rng.randrange(4)):
        values = list(re.finditer(rb'"[^"]*"|-?\d[\d.e+-]*|true|false|null|\[|\{|[\]},:]', data))
        at = rng.choice(values) if values else None
        match rng.randrange(7):
            case 0 | 1 | 2 if at is not None:
                data = data[: at.start()] + rng.choice(WORDS) + data[at.end() :]
            case 3:
                k = rng.randrange(len(data) + 1)
                data = data[:k] + rng.randbytes(rng.randrange(1, 4)) + data[k + rng.randrange(3) :]
            case 4 if at is not None:
                data = data[: at.start()] + at[0] + data[at.start() :]
            case 5:
                data = data[: rng.randrange(len(data) + 1)]
            case 6 if at is not None:
                other = rng.choice(values)
                data = data[: at.start()] + other[0] + data[at.end() :]
    return data
