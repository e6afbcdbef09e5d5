"""What `sharnir record` and `sharnir replay` do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sharnir.cli.subjects import made, recorded
from sharnir.io.record_reader import Recording
from sharnir.trainer.loop import RealTime


def record(
    name: str, out: Path | None, duration: float, dt: float | None, rate: float, real_time: bool, roots: Sequence[Path] = ()
) -> int:
    """Run something and record it."""
    sim, module = made(name, dt, (), roots)
    control, path = getattr(module, "control", None), out or Path(f"{Path(name).stem}.mcap")
    steps = max(1, round(duration / sim.dt))
    with sim.record_file(path, rate=rate, name=name):
        if real_time:
            print(RealTime(sim, control=control).run(duration).table())
        else:
            for k in range(steps):
                if control is not None:
                    control(sim)
                sim.step()
                _bar((k + 1) / steps, f"{sim.time:7.2f} s")
    size = path.stat().st_size
    print(f"wrote {path}: {steps} steps, {size / 1e6:.2f} MB ({60 * size / 1e6 / (steps * sim.dt):.2f} MB a minute)")
    return 0


def replay(
    file: Path, scene: str | None, plot: Path | None, csv: Path | None, usd: Path | None, trust: bool = False,
    roots: Sequence[Path] = (),
) -> int:  # fmt: skip
    """Make a recorded motion again."""
    recording = Recording(file)
    cut = "" if recording.whole else "; it was cut off, and is read up to its last chunk"
    print(f"{file}: {recording.steps} steps of {1e3 * recording.facts['dt']:g} ms, {len(recording)} times{cut}")
    for path, write in ((plot, recording.plot), (csv, recording.to_csv), (usd, recording.to_usd)):
        if path is not None:
            print(f"wrote {write(path)}")
    replayed = recording.replay(recorded(recording, scene, trust, roots), _bar)
    print(replayed)
    return 0 if replayed.equal else 1


def _bar(share: float, words: str = "") -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{'█' * int(24 * share):░<24} {words}" + ("\n" if share >= 1 else ""))
        sys.stderr.flush()
