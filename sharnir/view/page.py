"""A motion as one file: a page with the picture, a timeline and nothing from elsewhere, that opens by a double click.

with sim.html("crane.html", fps=30):
    sim.run(10.0)
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.spatial import quat_rotate
from sharnir.errors import SimulationError, is_positive
from sharnir.io.meshes import tints
from sharnir.runtime.log import Observer
from sharnir.runtime.measures import poses
from sharnir.view.picture import Looks
from sharnir.view.pieces import PALETTE, coil, outermost, round_length

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
MAX_FRAMES = 20_000  # frames of a page
ROD_COLOUR = (70, 80, 90)


class Page(Observer):
    """Frames of a running simulation (its first world), written as one HTML file when it is closed.

    Args:
        sim: its first world is shown. path: ends in .html.
        fps: frames a simulated second. title: above the picture; the file's name if None. follow: a body to move along with.
    """

    def __init__(
        self, sim: Owner, path: str | Path, fps: float = 30.0, title: str | None = None, follow: str | None = None
    ) -> None:
        self._sim, self.path = sim, Path(path)
        if self.path.suffix != ".html":
            raise SimulationError(f"html: a file that ends in .html, got {str(path)!r}")
        if not is_positive(fps):
            raise SimulationError(f"html: fps is a positive finite number, got {fps!r}")
        if follow is not None:
            sim.body(follow)
        self.title = self.path.stem.replace("_", " ") if title is None else str(title)
        self.follow = follow
        self._every = max(1, round(1.0 / fps / sim.dt))
        self._left = self._every
        self._times: list[float] = []
        self._poses: list[np.ndarray] = []
        self._looks = Looks(sim, 1.0)
        self._lines: dict[str, tuple[float, tuple[int, int, int], bool, list[np.ndarray]]] = {}

    def end(self) -> None:
        """Write the file."""
        self.write()

    def __len__(self) -> int:
        return len(self._times)

    def take(self) -> None:
        """Remember how things are now."""
        if len(self._times) >= MAX_FRAMES:
            return
        sim = self._sim
        place, turn, _ = poses(sim, 0)
        lines: dict[str, np.ndarray] = {}
        for name in sim.model.ropes.names if sim.model.ropes is not None else ():
            points = sim.rope(name).position
            lines[f"rope/{name}"] = points if sim.worlds == 1 else points[0]
        for name in sim.model.cable_names:
            lines[f"cable/{name}"] = sim.cable(name).points if sim.worlds == 1 else np.zeros((0, 3))
        for name in sim.model.spring_names:
            a, b = (np.atleast_2d(p)[0] for p in sim.spring(name).ends)
            wound = coil(a, b, 0.05 * max(float(np.linalg.norm(b - a)), 1e-6))
            lines[f"spring/{name}"] = np.vstack([wound[:, 0], wound[-1:, 1]])
        self.add(sim.time, place, turn, lines)

    def add(self, time: float, place: np.ndarray, turn: np.ndarray, lines: dict[str, np.ndarray]) -> None:
        """A frame: s, (bodies, 3) m of the bodies' frames, (bodies, 4) quaternions, and points (n, 3) of ropes, by kind/name."""
        drawn = list(self._looks.bodies)
        self._times.append(float(time))
        self._poses.append(np.concatenate([place[drawn], turn[drawn]], 1).astype(np.float32))
        ropes = list(self._sim.model.ropes.names) if self._sim.model.ropes is not None else []
        for k, (word, points) in enumerate(lines.items()):
            if word not in self._lines:
                kind, _, name = word.partition("/")
                rope = kind == "rope"
                radius = self._sim.model.ropes.described[ropes.index(name)].radius if rope else 0.0
                colour = PALETTE[(self._looks.moving + k) % len(PALETTE)] if rope else ROD_COLOUR
                self._lines[word] = radius, colour, rope, [np.zeros((0, 3), np.float32)] * (len(self._times) - 1)
            self._lines[word][3].append(np.asarray(points, np.float32))

    # ---- the file ----

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners of what is seen, floors far larger than the rest left out."""
        moving = [(k, i) for k, i in enumerate(self._looks.bodies) if i not in self._looks.still]
        chosen = moving or list(enumerate(self._looks.bodies))
        points = [np.concatenate([p for p in line[3]]) for line in self._lines.values() if sum(map(len, line[3]))]
        every = np.array(self._poses)[:: max(1, len(self._poses) // 50)].astype(float)
        for k, i in chosen:
            corners = outermost(self._looks.bodies[i][0][0])
            for frame in every[:, k]:
                points.append(frame[:3] + quat_rotate(np.tile(frame[3:], (len(corners), 1)), corners))
        cloud = np.concatenate(points) if points else np.zeros((1, 3))
        return cloud.min(0), cloud.max(0)

    def contents(self) -> dict[str, Any]:
        """What the page is given."""
        low, high = self._box()
        size = max(float(np.linalg.norm(high - low)), 1e-3)
        planes = [p for p in self._looks.planes() if abs(p.rotation[0]) + abs(p.rotation[1]) < 1e-9]
        floor = float(planes[0].position[2]) if planes else 0.0 if -1e-3 * size <= low[2] <= 0.2 * size else float(low[2])
        names = [self._looks.names[i] for i in self._looks.bodies]
        follow, home, at, far = -1, [0.0, 0.0, 0.0], 0.5 * (low + high) - np.array([0, 0, 0.04 * size]), 1.3 * size
        if self.follow in names:
            follow = names.index(self.follow)
            home = self._poses[0][follow, :3].astype(float).tolist()
            corners = self._looks.bodies[self._sim.model.body_names[self.follow]][0][0]
            at, far = np.array(home), min(far, 7.0 * float(np.linalg.norm(np.ptp(corners, axis=0))))
        bodies = []
        for i, ((vertices, faces), colour) in self._looks.bodies.items():
            painted = self._looks.paint.get(i)
            own = {} if painted is None else {"tints": text(tints(painted), np.float32), "colour": [1.0, 1.0, 1.0]}
            bodies.append(
                {
                    "name": self._looks.names[i], "colour": [c / 255 for c in colour], "vertices": text(vertices, np.float32),
                    "normals": text(normals(vertices, faces), np.float32), "faces": text(faces, np.uint32),
                    "finish": self._looks.finish(i),
                }
                | own
            )  # fmt: skip
        lines = [
            {
                "name": word.partition("/")[2], "radius": max(radius, 0.0025 * far), "colour": [c / 255 for c in colour],
                "smooth": smooth, "points": text(np.concatenate(points), np.float32),
                "counts": text([len(p) for p in points], np.uint32),
            }
            for word, (radius, colour, smooth, points) in self._lines.items()
        ]  # fmt: skip
        some = f"{len(bodies)} bod{'y' if len(bodies) == 1 else 'ies'}"
        return {
            "title": self.title, "about": f"{some}, {self._times[-1] - self._times[0]:.1f} s; drag to look around",
            "times": text(self._times, np.float32), "poses": text(np.array(self._poses), np.float32), "bodies": bodies,
            "lines": lines, "floor": floor, "shadows": not self._looks.sim.model.collision or bool(planes),
            "cell": round_length(size / 8), "follow": follow, "home": home,
            "camera": {"turn": -1.15 if np.ptp([low[0], high[0]]) >= np.ptp([low[1], high[1]]) else -0.4, "tilt": 0.36,
                       "far": far, "at": at.tolist()},
        }  # fmt: skip

    def write(self) -> Path:
        """Write the file; returns its path."""
        if not self._times:
            raise SimulationError("html: no frame was taken; step inside `with sim.html(…)`")
        template = (Path(__file__).parent / "scrub.html").read_text(encoding="utf-8")
        words = json.dumps(self.contents(), allow_nan=False).replace("<", "\\u003c")  # no name ends the script
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(template.replace("/*DATA*/", words), encoding="utf-8")
        return self.path


def text(values: Any, kind: Any) -> str:
    """An array's memory as base64."""
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()


def normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(n, 3) outward directions at vertices, the mean over the faces that share one."""
    corners = np.asarray(vertices, float)[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    out = np.zeros((len(vertices), 3))
    for k in range(3):
        np.add.at(out, faces[:, k], across)
    return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-300))
