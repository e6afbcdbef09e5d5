"""Where the specialized code of a GPU keeps the numbers of links between sweeps: in registers, shared or global memory.

A thread steps one world. It has at most 255 registers, and an arm of seven hinges with all laws needs some 350 numbers from one
sweep to the next. What the compiler finds no register for it writes to local memory, to so many places that no cache holds them.
So the numbers that are used least are given places in shared memory. Histories of mean speeds, parameters that are others in each
world, and what finds no room are in global memory, those of a warp beside each other, so that a place is a constant offset. A
fence before each sweep makes the compiler read all of these again, instead of keeping them.

The code of a step is about as long as a multiprocessor's cache of instructions. So all warps that it can have at once are one
block, which begins each step together (`ALL_MADE`): an instruction that one of them has fetched serves the others, also where
their worlds take different numbers of passes. Parameters that all worlds share are in shared memory, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sharnir.engine.tree.storage import TOGETHER

MOST_WARPS = 8  # of a block: those of 255 registers that a multiprocessor has room for
ASIDE = 4096  # bytes of a block's shared memory for what is not a number of a thread: Warp's, and parameters
IN_REGISTERS = {"float": 125, "double": 50}  # numbers of all links that registers hold beside what a sweep computes
IN_SHARED = {"float": 440, "double": 220}
"""Numbers of a thread in shared memory, at most: four warps beside each other find room in 227 kB. Half as many leave room for
eight, which is what 255 registers allow."""
FEW = {"float": 55, "double": 0}  # numbers that are left in global memory rather than to have half as many warps
ALL_MADE = "all_made"
"""Whether no world of a block has steps left to make; asked by all of its threads at once, before each step."""
FENCE = "fence_of_sweep;"
SELDOM = (
    "if (stopped) {", "if (renew) {", "if (suspect) {", "if (unknown && !learned) {", "if (restarted) {", "if (reporting) {",
    "if (smooth > real(0.0)) {",
)  # fmt: skip
"""Heads of blocks that few steps reach."""
ENTER = """#ifdef __CUDA_ARCH__
extern __shared__ char shared_of_block[];
REAL* const copies = (REAL*)shared_of_block; const REAL* const given = t.data[0].parameters.data;
const int lanes = __popc(__activemask());
for (int k = threadIdx.x%TOGETHER; k < COUNT; k += lanes) copies[k] = given[k];  // each warp, so that none waits for another
__syncwarp(__activemask());
#endif
return 0;"""
"""C++ that copies the parameters that all worlds share, before anything else."""
NUMBER = re.compile(r"\b[A-Za-z]\w*_\d+_\d+\b")  # of a link: field, link, component


def threads(worlds: int, numbers: int, size: int, device: Any) -> int:
    """Threads of a block, for so many worlds of a device and so many numbers of `size` bytes in shared memory: those of all warps
    that a multiprocessor can have at once, where there are enough worlds for them, else those of one.
    """
    warps = min(MOST_WARPS, (device.max_shared_memory_per_block - ASIDE) // max(1, numbers * size * TOGETHER))
    return TOGETHER * (warps if worlds >= warps * TOGETHER * device.sm_count else 1)


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


def read_early(body: str, names: set[str]) -> str:
    """The program, with numbers in global memory read where a sweep begins: all at once, not each where the sweep needs it."""
    lines = body.split("\n")
    out: list[str] = []
    k = sweeps = 0
    while k < len(lines):
        out.append(lines[k])
        k += 1
        if out[-1] != FENCE:
            continue
        sweeps += 1
        depth, end = 0, k
        while end < len(lines) and lines[end] != FENCE and depth >= 0:
            depth += lines[end].count("{") - lines[end].count("}")
            end += 1
        unwritten = set(names)
        early: dict[str, None] = {}
        sweep: list[str] = []
        for line in lines[k:end]:
            written = NUMBER.match(line)
            head = written[0] if written and line[written.end() :].startswith(" = ") else ""
            parts = NUMBER.split(line[len(head) :])
            read = NUMBER.findall(line[len(head) :])
            early |= dict.fromkeys(name for name in read if name in unwritten)
            read = [f"early{sweeps}_{name}" if name in unwritten else name for name in read]
            sweep.append(head + "".join(a + b for a, b in zip(parts, [*read, ""], strict=True)))
            unwritten.discard(head)
        out += [f"const real early{sweeps}_{name} = {name};" for name in early] + sweep
        k = end
    return "\n".join(out)


class Placement:
    """Places of the numbers of links.

    Args:
        body: the program, with a FENCE before each sweep.
        real: the type of its numbers in C++.
        once: numbers that belong in global memory in any case.
        stored: numbers of the state; those that most steps do not read belong there, too.
        listed: numbers of axes, of which code reads the k-th: in shared memory, one after another.
        parameters: how many of them all worlds share.
    """

    def __init__(
        self, body: str, real: str, once: set[str], stored: set[str], listed: Sequence[str] = (), parameters: int = 0
    ) -> None:
        uses = carried(body)
        once = (once | {n for n in stored if n not in uses}) - set(listed)
        kept = sorted((n for n in uses if n not in once and n not in set(listed)), key=lambda n: (uses[n], n))
        asked, half = len(kept) - IN_REGISTERS[real] + len(listed), IN_SHARED[real] // 2
        over = max(0, asked - (half if asked <= half + FEW[real] else IN_SHARED[real]))
        self.scratch = sorted(once) + kept[:over]
        self.shared = [*listed, *kept[over : max(over, len(kept) - IN_REGISTERS[real])]]
        self.real, self.numbers = real, max(1, len(self.shared))
        self.parameters = parameters if parameters * 8 <= ASIDE // 2 else 0  # the others are read where they are
        places = {name: f"scratch_number({k})" for k, name in enumerate(self.scratch)}
        places |= {name: f"shared_number({k})" for k, name in enumerate(self.shared)}
        self.places = places
        """Places in shared and in global memory, by number."""

    def enter(self) -> str:
        """C++ that the threads of a block run first."""
        return ENTER.replace("REAL", self.real).replace("TOGETHER", str(TOGETHER)).replace("COUNT", str(self.parameters))

    def of_block(self, threads: int) -> int:
        """Numbers in the shared memory of a block."""
        return self.parameters + self.numbers * threads

    def begin(self) -> Iterator[str]:
        """C++ before the program. A thread of a CPU has an array instead of shared memory."""
        yield "#ifdef __CUDA_ARCH__\nextern __shared__ char shared_of_block[];"
        at = f"{self.parameters} + threadIdx.x/{TOGETHER}*{self.numbers * TOGETHER} + threadIdx.x%{TOGETHER}"
        yield f"real* const shared_numbers = (real*)shared_of_block + {at};"
        yield f"#define shared_number(k) shared_numbers[(k)*{TOGETHER}]"
        yield f"#define shared_parameter(k) {'((real*)shared_of_block)' if self.parameters else 'parameters'}[k]"
        yield f'#define {FENCE[:-1]} asm volatile("" ::: "memory")\n#define {ALL_MADE}(made) !__syncthreads_or(!(made))'
        yield f"#else\nreal shared_numbers[{self.numbers}];\n#define shared_number(k) shared_numbers[k]"
        yield f"#define shared_parameter(k) parameters[k]\n#define {FENCE[:-1]}\n#define {ALL_MADE}(made) (made)\n#endif"
        rows = len(self.scratch) * TOGETHER
        yield f"real* const scratch_rows = x.scratch.data + (size_t)(w/{TOGETHER})*{rows} + w%{TOGETHER}; (void)scratch_rows;"
        yield "#ifdef __CUDA_ARCH__\n__builtin_assume(__isGlobal(scratch_rows));\n#endif"
        yield f"#define scratch_number(k) scratch_rows[(k)*{TOGETHER}]"
        yield from (f"#define {name} {place}" for name, place in self.places.items())

    def end(self) -> Iterator[str]:
        """The reverse, after it."""
        yield from (
            f"#undef {name}"
            for name in (*self.places, "shared_number", "scratch_number", "shared_parameter", ALL_MADE, FENCE[:-1])
        )
