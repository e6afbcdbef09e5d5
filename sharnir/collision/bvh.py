"""Trees of boxes over the triangles of a mesh, built once on the host, walked on the device without a stack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAF = 4
"""Triangles in a leaf, at most (7 fit the encoding)."""

CONVEX = 1e-3
"""Sine of the angle by which an edge has to stick out to be felt as one."""


@dataclass
class MeshTree:
    """Nodes depth first; `next` is the node after a whole subtree, `leaf` the first triangle · 8 + their number, 0 for none."""

    low: np.ndarray
    high: np.ndarray
    next: np.ndarray
    leaf: np.ndarray
    triangles: np.ndarray  # (n, 3, 3) in the order of the leaves
    edges: np.ndarray  # bits of those edges and corners that stick out


def mesh_tree(triangles: np.ndarray, first: int) -> MeshTree:
    """The tree of (n, 3, 3) triangles whose numbers begin at `first`: split at the median along the longest side."""
    low, high = triangles.min(axis=1), triangles.max(axis=1)
    middle = 0.5 * (low + high)
    order: list[int] = []
    nodes: list[tuple[np.ndarray, np.ndarray, int, int]] = []
    stack: list[tuple[np.ndarray, int]] = [(np.arange(len(triangles)), -1)]
    ends: list[int] = []
    while stack:
        rows, close = stack.pop()
        if close >= 0:  # all below it is done
            ends[close] = len(nodes)
            continue
        here = len(nodes)
        box = low[rows].min(axis=0), high[rows].max(axis=0)
        if len(rows) <= LEAF:
            nodes.append((*box, 0, (first + len(order)) * 8 + len(rows)))
            order.extend(rows.tolist())
            ends.append(here + 1)
            continue
        axis = int(np.argmax(middle[rows].max(axis=0) - middle[rows].min(axis=0)))
        rows = rows[np.argsort(middle[rows, axis], kind="stable")]
        nodes.append((*box, 0, 0))
        ends.append(-1)
        half = len(rows) // 2
        stack += [(rows, here), (rows[half:], -1), (rows[:half], -1)]
    place = np.array(order, int)
    return MeshTree(
        np.array([n[0] for n in nodes]), np.array([n[1] for n in nodes]), np.array(ends), np.array([n[3] for n in nodes]),
        triangles[place], outer_edges(triangles)[place],
    )  # fmt: skip


def outer_edges(triangles: np.ndarray) -> np.ndarray:
    """Bits 0 to 2: edge k (corner k to k + 1) sticks out or is open; bits 3 to 5: corner k has such an edge."""
    points, index = np.unique(np.round(triangles.reshape(-1, 3), 9), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3)
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    middle = triangles.mean(axis=1)
    ends = faces, np.roll(faces, -1, axis=1)
    keys = (ends[0] * len(points) + ends[1]).ravel()
    order = np.argsort(keys, kind="stable")
    back = (ends[1] * len(points) + ends[0]).ravel()
    at = np.minimum(np.searchsorted(keys[order], back), len(keys) - 1)
    there = keys[order][at] == back
    other = order[at] // 3
    own = np.repeat(np.arange(len(faces)), 3)
    down = np.sum((middle[other] - middle[own]) * normal[own], axis=1) < 0
    turn = np.linalg.norm(np.cross(normal[own], normal[other]), axis=1)
    away = (turn > CONVEX) | (np.sum(normal[own] * normal[other], axis=1) < 0)
    out = (~there | (down & away)).reshape(-1, 3)
    sharp = np.zeros(len(points), bool)
    for k in range(3):
        sharp[ends[0][out[:, k], k]] = sharp[ends[1][out[:, k], k]] = True
    bits = np.zeros(len(faces), int)
    for k in range(3):
        bits += (out[:, k] << k) + (sharp[faces[:, k]].astype(int) << (3 + k))
    return bits
