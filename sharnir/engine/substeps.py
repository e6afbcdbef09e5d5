"""A step and its parts: made in one where that can be met, else in halves, quarters, …; what was not plain is counted.

What a part is, each solver says by functions that it hands to `dividing`. The ladder knows how much of the step is made and how
much is tried next; a part that is met becomes the state, one that is missed is tried in an easier way, or smaller.
"""

from typing import Any

import warp as wp

from sharnir.core.types import real

SPENT = wp.constant(-(1 << 20))  # of `State.failed`, less a body: the step needs more passes than it may take


def dividing(
    name: str, finest: int, begin: Any, make: Any, keep: Any, ease: Any, end: Any, *, may: Any, stop: Any, grows: bool,
) -> Any:  # fmt: skip
    """A whole step as a device function (s, w), of what makes its parts.

    Args:
        finest: parts into which a step may be divided, a power of two.
        begin: (s, w), before the first part.
        make: (s, w, share, way) → bool, tries the next part, this share of the step; whether it is met. Way 0 comes first.
        keep: (s, w, part) → bool, makes the part that was met, the part-th, the state; False where it is not finite.
        ease: (s, w, size, way) → (size, way), after a miss: what is tried next. A size is a number of finest parts: the
            same for another way, `finest` to begin the whole step anew, 0 to give up: the state is the solver's to restore.
        end: (s, w, parts, ways), `ways` the sum of 2^way over the ways in which parts were made.
        may: (s, w) → bool, whether passes are left. Where they are not, stop: (s, w, share) → int ends the step, the
            share of it that is left, and returns how many parts that made.
        grows: parts become larger again behind what made them small.
    """

    @wp.func(name=name)
    def whole_step(s: Any, w: int) -> None:
        at = int(0)
        size = int(wp.static(finest))
        way = int(0)
        ways = int(0)
        parts = int(0)
        begin(s, w)
        while at < wp.static(finest):
            if not may(s, w):
                parts = parts + stop(s, w, real(wp.static(finest) - at) / real(wp.static(finest)))
                break
            if make(s, w, real(size) / real(wp.static(finest)), way):
                if not keep(s, w, parts):
                    break
                at = at + size
                parts = parts + 1
                ways = ways | (1 << way)
                way = wp.min(way, 1)
                if wp.static(grows):
                    while size < wp.static(finest) and at % (2 * size) == 0:
                        size = 2 * size
            else:
                size, way = ease(s, w, size, way)
                if size == 0:
                    break
                if size == wp.static(finest):
                    at = 0
                    parts = 0
        end(s, w, parts, ways)

    return whole_step


@wp.func
def halve(size: int, way: int) -> tuple[int, int]:
    """Smaller parts in the same way; none where the finest was missed."""
    return size >> 1, way
