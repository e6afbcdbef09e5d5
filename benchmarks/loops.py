"""Cost of a step of N four-bars in a row, which share their uprights: simulations with default settings, by both solvers.

Both take turns, many steps per call, CPU time of one thread; the median over the rounds. The parallelograms stand up at first and
pass their singular poses, where they lie flat, once a second about.

Run: python -m benchmarks.loops [--quick] [N ...]
"""

import sys
import time
from typing import Any

import numpy as np

import sharnir as sh

H, GRAVITY = 1e-3, (0.0, -9.81, 0.0)


def four_bars(n: int) -> sh.Scene:
    """n + 1 uprights and n couplers on hinges about z, all tops at 1 m/s."""
    scene = sh.Scene(gravity=GRAVITY)
    body: Any = {"mass": 1.0, "inertia": (1e-3, 1 / 12, 1 / 12)}
    up = np.array([0, 0, np.sqrt(0.5), np.sqrt(0.5)])
    for i in range(n + 1):
        scene.add_body(f"link{i}", **body, position=(i, 0.5, 0), rotation=up, velocity=(0.5, 0, 0), angular_velocity=(0, 0, -1))
        scene.add_joint(f"A{i}", sh.Revolute("z"), scene.world, f"link{i}", position=(i, 0, 0))
    for i in range(n):
        scene.add_body(f"coupler{i}", **body, position=(i + 0.5, 1, 0), velocity=(1, 0, 0))
        scene.add_joint(f"B{i}", sh.Revolute("z"), f"link{i}", f"coupler{i}", position=(i, 1, 0))
        scene.add_joint(f"C{i}", sh.Revolute("z"), f"coupler{i}", f"link{i + 1}", position=(i + 1, 1, 0))
    return scene


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    rounds, steps = (3, 50) if quick else (7, 400)
    for n in [int(a) for a in arguments if a.isdigit()] or [5, 10, 20, 40]:
        makers = {name: sh.Simulation(four_bars(n), H, solver=name) for name in ("direct", "sequential")}
        times: dict[str, list[float]] = {name: [] for name in makers}
        for k in range(rounds + 1):
            for name, maker in makers.items():
                start = time.process_time()
                maker.step(steps)
                if k:
                    times[name].append((time.process_time() - start) / steps * 1e6)
        found = {name: float(np.median(x)) for name, x in times.items()}
        text = ", ".join(f"{name} {x:.0f} ({x / n:.1f} a bar)" for name, x in found.items())
        print(f"{n} four-bars: {text} µs per step; direct {found['direct'] / found['sequential']:.2f} × sequential")


if __name__ == "__main__":
    main(sys.argv[1:])
