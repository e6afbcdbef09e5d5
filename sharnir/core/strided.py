"""Tables of constants on the device, [item, world]: shared by all worlds (the stride of the world is 0) until they are varied."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp


def table(values: Any, dtype: Any, worlds: int, device: Any) -> Any:
    """A device array [item, world] of values (items, 1, …), which all worlds share, or (items, worlds, …), or (items, …)."""
    size = tuple(getattr(dtype, "_shape_", ()))
    given = np.asarray(values)
    given = given.reshape(len(given), *size) if given.size == 0 else given
    if given.ndim == 1 + len(size):
        given = given[:, None]
    if len(given) == 0:
        return wp.zeros((0, worlds), dtype=dtype, device=device)
    if given.shape[1] == worlds > 1:
        return wp.array(np.ascontiguousarray(given), dtype=dtype, device=device)
    base = wp.array(np.ascontiguousarray(given[:, 0]), dtype=dtype, device=device)
    stride = wp.types.type_size_in_bytes(dtype)
    out = wp.array(ptr=base.ptr, dtype=dtype, shape=(len(given), worlds), strides=(stride, 0), device=device, copy=False)
    out._base = base  # whose memory it is
    return out


def is_shared(array: Any) -> bool:
    """Whether all worlds have the same values."""
    return getattr(array, "_base", None) is not None


def columns(array: Any) -> np.ndarray:
    """(items, 1, …) of a table that worlds share, (items, worlds, …) of one that was varied; a copy."""
    if is_shared(array):
        return np.array(array._base.numpy(), float)[:, None]
    return np.array(array.numpy(), float)


def of_first(array: Any) -> np.ndarray:
    """(items, …) of the first world; a copy."""
    return np.asarray(columns(array)[:, 0]) if len(array) else columns(array).reshape(0, *array.numpy().shape[2:])


def put(array: Any, values: np.ndarray) -> None:
    """Give a whole table other values, (items, 1 or worlds, …) as `columns` has them."""
    if is_shared(array):
        array._base.assign(np.ascontiguousarray(values[:, 0]))
    else:
        array.assign(np.ascontiguousarray(np.broadcast_to(values, array.numpy().shape)))


def write(array: Any, row: int, values: np.ndarray, dtype: Any, worlds: int, device: Any) -> Any:
    """Give row i values (1 or worlds, …); returns the table, a new one where it begins to vary."""
    same = len(values) == 1 or bool((values == values[:1]).all())
    if is_shared(array) and not (same or worlds == 1):
        array = table(np.repeat(columns(array), worlds, 1), dtype, worlds, device)
    target = array._base if is_shared(array) else array
    now = target.numpy()
    now[row] = values[0] if is_shared(array) else values
    if not wp.get_device(device).is_cpu:
        target.assign(now)
    return array
