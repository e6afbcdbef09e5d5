"""Parts that solvers share, by themselves: the ladder that divides a step, and small systems within envelopes."""

import numpy as np
import pytest
import warp as wp

from sharnir.core.linalg import close_order, factorise, row_ends, substitute
from sharnir.core.types import EPSILON, np_real, real
from sharnir.engine.substeps import dividing, halve

wp.set_module_options({"enable_backward": False})
FINEST = 16


@wp.struct
class Trial:
    """A step that is met where no part of it is longer than `most` sixteenths, before `hard` of them also longer than 1."""

    most: wp.int32
    hard: wp.int32
    passes: wp.int32  # tries that are allowed
    at: wp.array(dtype=wp.int32)  # sixteenths made so far, tries, parts, ways
    sizes: wp.array(dtype=wp.int32)  # of all tries, negative where missed


@wp.func
def begin(s: wp.array(dtype=Trial), w: int):
    s[0].at[0] = 0


@wp.func
def make(s: wp.array(dtype=Trial), w: int, share: real, way: int) -> bool:
    size = int(wp.round(share * real(FINEST)))
    met = size <= s[0].most and (size == 1 or s[0].at[0] >= s[0].hard)
    if way == 2:
        met = True
    tries = s[0].at[1]
    s[0].sizes[tries] = wp.where(met, size, -size)
    s[0].at[1] = tries + 1
    if met:
        s[0].at[0] = s[0].at[0] + size
    return met


@wp.func
def keep(s: wp.array(dtype=Trial), w: int, part: int) -> bool:
    return True


@wp.func
def ease_by_halves(s: wp.array(dtype=Trial), w: int, size: int, way: int):
    return halve(size, way)


@wp.func
def ease_by_ways(s: wp.array(dtype=Trial), w: int, size: int, way: int):
    """A second way before smaller parts, a third where there are none."""
    if size == 1:
        return 1, 2
    if way == 0:
        return size, 1
    return size >> 1, 1


@wp.func
def end(s: wp.array(dtype=Trial), w: int, parts: int, ways: int):
    s[0].at[2] = parts
    s[0].at[3] = ways


@wp.func
def may(s: wp.array(dtype=Trial), w: int) -> bool:
    return s[0].at[1] < s[0].passes


@wp.func
def stop(s: wp.array(dtype=Trial), w: int, share: real) -> int:
    s[0].at[0] = s[0].at[0] + int(wp.round(share * real(FINEST)))
    return 1


growing = dividing("growing", FINEST, begin, make, keep, ease_by_halves, end, may=may, stop=stop, grows=True)
softening = dividing("softening", FINEST, begin, make, keep, ease_by_ways, end, may=may, stop=stop, grows=False)


@wp.kernel
def run_growing(s: wp.array(dtype=Trial)):
    growing(s, 0)


@wp.kernel
def run_softening(s: wp.array(dtype=Trial)):
    softening(s, 0)


@wp.kernel
def solve(M: wp.array3d(dtype=real), first: wp.array(dtype=wp.int32), last: wp.array(dtype=wp.int32), x: wp.array2d(dtype=real)):
    w = wp.tid()
    factorise(M, first, last, x.shape[0], w)
    substitute(M, first, last, x, x.shape[0], w)


def tries(kernel, most=FINEST, hard=0, passes=1000):
    """Sizes of all tries (missed: negative), sixteenths made, parts, ways."""
    trial = Trial()
    trial.most, trial.hard, trial.passes = most, hard, passes
    trial.at, trial.sizes = wp.zeros(4, dtype=wp.int32, device="cpu"), wp.zeros(100, dtype=wp.int32, device="cpu")
    wp.launch(kernel, 1, inputs=[wp.array([trial], dtype=Trial, device="cpu")], device="cpu")
    made, count, parts, ways = trial.at.numpy().tolist()
    return trial.sizes.numpy()[:count].tolist(), made, parts, ways


def test_a_step_is_made_whole_where_it_can():
    for kernel in (run_growing, run_softening):
        assert tries(kernel) == ([16], 16, 1, 1)


def test_parts_are_halved_and_grow_again():
    sizes, made, parts, _ = tries(run_growing, hard=1)
    print(sizes)
    assert sizes == [-16, -8, -4, -2, 1, 1, 2, 4, 8] and (made, parts) == (16, 5)
    assert tries(run_growing, most=0)[:3] == ([-16, -8, -4, -2, -1], 0, 0)  # given up: nothing is made


def test_no_passes_are_left():
    sizes, made, parts, _ = tries(run_growing, most=4, passes=4)
    assert sizes == [-16, -8, 4, 4] and (made, parts) == (16, 3)  # two parts, and what was done about the rest


def test_easier_ways_before_smaller_parts():
    sizes, made, parts, ways = tries(run_softening, most=0)
    assert sizes == [-16, -16, -8, -4, -2] + 16 * [-1, 1] and (made, parts, ways) == (16, 16, 4)
    sizes, made, parts, ways = tries(run_softening, most=8)
    assert sizes == [-16, -16, 8, 8] and (made, parts, ways) == (16, 2, 2)


@pytest.mark.parametrize("seed", range(3))
def test_systems_within_envelopes(seed):
    """Not quite symmetric matrices of a graph with few edges, their numbers in close order, against NumPy."""
    rng, n = np.random.default_rng(seed), 20
    near = [set() for _ in range(n)]
    for i, j in rng.integers(0, n, (n, 2)):
        near[i] |= {int(j)} - {int(i)}
        near[j] |= {int(i)} - {int(j)}
    order = close_order(near)
    assert sorted(order) == list(range(n))
    place = {i: at for at, i in enumerate(order)}
    first = [min([at, *(place[j] for j in near[i])]) for at, i in enumerate(order)]
    last = row_ends(first)
    assert all(last[i] == max(j for j in range(n) if j >= i and first[j] <= i) for i in range(n))
    M = np.zeros((n, n, 2))
    for i in range(n):
        for j in near[i]:
            M[place[i], place[j]] = rng.normal(size=2)
    M[range(n), range(n)] = np.abs(M).sum(1) + 1.0
    b = rng.normal(size=(n, 2))
    x = wp.array(b, dtype=real, device="cpu")
    tables = [wp.array(np.array(v, np.int32), dtype=wp.int32, device="cpu") for v in (first, last)]
    wp.launch(solve, 2, inputs=[wp.array(M.astype(np_real), dtype=real, device="cpu"), *tables, x], device="cpu")
    off = max(np.abs(x.numpy()[:, w] - np.linalg.solve(M[:, :, w], b[:, w])).max() for w in range(2))
    inside = sum(int(last[i]) - first[i] + 1 for i in range(n)) / n**2
    print(f"off by {off:.1e} (tolerance {100 * EPSILON:.1e}), {inside:.0%} of the matrix")
    assert off < 100 * EPSILON and inside < 0.8
