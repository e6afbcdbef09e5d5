"""Single worlds put back to a kept state without leaving the device: arrays [item, world] that stand in one memory."""

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.types import load_modules


@wp.kernel(module="sharnir.worlds")
def put_back(
    live: wp.array(dtype=wp.int32),
    kept: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    words: wp.array(dtype=wp.int32),
    chosen: wp.array(dtype=wp.int32),
) -> None:
    """Row r of the memory begins at a word and has so many a world."""
    r, k = wp.tid()
    n = words[r]
    at = start[r] + chosen[k] * n
    for i in range(n):
        live[at + i] = kept[at + i]


class Image:
    """A copy of a memory as it is now, and where the rows of its arrays stand."""

    def __init__(self, memory: Any, arrays: list[Any]) -> None:
        self.device, size = memory.device, memory.capacity // 4
        load_modules([put_back.module], self.device)
        self._memory, self._copy = memory, wp.clone(memory)  # which stay alive
        self._live, self._kept = (
            wp.array(ptr=m.ptr, dtype=wp.int32, shape=(size,), device=self.device, copy=False) for m in (memory, self._copy)
        )
        start: list[int] = []
        words: list[int] = []
        for array in arrays:
            if array.size:
                item = wp.types.type_size_in_bytes(array.dtype) // 4
                rows = array.shape[0] if array.ndim == 2 else 1
                first = (array.ptr - memory.ptr) // 4
                start += [first + r * item * array.shape[-1] for r in range(rows)]
                words += [item] * rows
        self._start = wp.array(np.array(start, np.int32), dtype=wp.int32, device=self.device)
        self._words = wp.array(np.array(words, np.int32), dtype=wp.int32, device=self.device)

    def put_back(self, worlds: np.ndarray) -> None:
        """Make some worlds what they were."""
        chosen = wp.array(worlds.astype(np.int32), dtype=wp.int32, device=self.device)
        inputs = [self._live, self._kept, self._start, self._words, chosen]
        wp.launch(put_back, dim=(len(self._start), len(worlds)), inputs=inputs, device=self.device)
