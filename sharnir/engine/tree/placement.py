"""Where the specialized code of a GPU keeps the numbers of links between sweeps: in registers, shared or global memory.

A thread steps one world. It has at most 255 registers, and an arm of seven hinges with all laws needs some 350 numbers from one
sweep to the next. What the compiler finds no register for it writes to local memory, to so many places that no cache holds them.
So the numbers that are used least are given places in shared memory. Histories of mean speeds, parameters that are others in each
world, and what finds no room are in global memory, those of a warp beside each other, so that a place is a constant offset. A
fence before each sweep makes the compiler read all of these again, instead of keeping them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sharnir.engine.tree.runtime import TOGETHER

THREADS = TOGETHER  # of a block: one warp, so that few worlds occupy all of a GPU and a block needs little shared memory
IN_REGISTERS = {"float": 125, "double": 50}  # numbers of all links that registers hold beside what a sweep computes
IN_SHARED = {"float": 370, "double": 185}
"""Numbers of a thread in shared memory, at most: 48 kB are a block's. Up to 220 numbers of single precision leave room for eight
warps beside each other, which is what 255 registers allow."""
FENCE = "fence_of_sweep;"
SELDOM = (
    "if (stopped) {", "if (renew) {", "if (suspect) {", "if (unknown && !learned) {", "if (restarted) {", "if (reporting) {",
    "if (smooth > real(0.0)) {",
)  # fmt: skip
"""Heads of blocks that few steps reach."""
NUMBER = re.compile(r"\b[A-Za-z]\w*_\d+_\d+\b")  # of a link: field, link, component


def often(body: str) -> Iterator[str]:
    """Lines of a program that most steps reach."""
    depth, inside = 0, 0
    for line in body.split("\n"):
        depth += line.count("{") - line.count("}")
        if inside and depth < inside:
            inside = 0
        elif not inside and line.startswith(SELDOM):
            inside = depth
        if not inside:
            yield line


def carried(body: str) -> Counter[str]:
    """Numbers that are kept from one sweep to another, and how often most steps use them."""
    uses: Counter[str] = Counter()
    kept: set[str] = set()
    seen: set[str] = set()
    for line in often(body):
        if line == FENCE:
            seen.clear()
            continue
        names = NUMBER.findall(line)
        uses.update(names)
        written = names[0] if names and line.startswith(f"{names[0]} = ") else None
        for name in names[1:] if written else names:
            if name not in seen:  # read before it is written
                kept.add(name)
        seen.update(names)
    return Counter({name: uses[name] for name in kept})


class Placement:
    """Places of the numbers of links.

    Args:
        body: the program, with a FENCE before each sweep.
        real: the type of its numbers in C++.
        once: numbers that belong in global memory in any case.
        stored: numbers of the state; those that most steps do not read belong there, too.
    """

    def __init__(self, body: str, real: str, once: set[str], stored: set[str]) -> None:
        uses = carried(body)
        once = once | {n for n in stored if n not in uses}
        kept = sorted((n for n in uses if n not in once), key=lambda n: (uses[n], n))
        over = max(0, len(kept) - IN_REGISTERS[real] - IN_SHARED[real])
        self.scratch = sorted(once) + kept[:over]
        self.shared = kept[over : max(over, len(kept) - IN_REGISTERS[real])]
        places = {name: f"scratch_number({k})" for k, name in enumerate(self.scratch)}
        places |= {name: f"shared_number({k})" for k, name in enumerate(self.shared)}
        self.places = places
        """Places in shared and in global memory, by number."""

    def begin(self) -> Iterator[str]:
        """C++ before the program. A thread of a CPU has an array instead of shared memory."""
        n = max(1, len(self.shared))
        yield f"#ifdef __CUDA_ARCH__\n__shared__ real shared_numbers[{n}*{THREADS}];"
        yield f"#define shared_number(k) shared_numbers[(k)*{THREADS} + threadIdx.x]"
        yield f'#define {FENCE[:-1]} asm volatile("" ::: "memory")'
        yield f"#else\nreal shared_numbers[{n}];\n#define shared_number(k) shared_numbers[k]\n#define {FENCE[:-1]}\n#endif"
        rows = len(self.scratch) * TOGETHER
        yield f"real* const scratch_rows = x.scratch.data + (size_t)(w/{TOGETHER})*{rows} + w%{TOGETHER}; (void)scratch_rows;"
        yield "#ifdef __CUDA_ARCH__\n__builtin_assume(__isGlobal(scratch_rows));\n#endif"
        yield f"#define scratch_number(k) scratch_rows[(k)*{TOGETHER}]"
        yield from (f"#define {name} {place}" for name, place in self.places.items())

    def end(self) -> Iterator[str]:
        """The reverse, after it."""
        yield from (f"#undef {name}" for name in (*self.places, "shared_number", "scratch_number", FENCE[:-1]))
