"""The part of a Simulation that is about keeping: values in memory, recordings and checkpoints in files."""

from __future__ import annotations

import os
from pathlib import Path

from sharnir.core.renamed import Former
from sharnir.errors import SimulationError
from sharnir.runtime import checkpoint
from sharnir.runtime.log import Log
from sharnir.runtime.record_writer import Recorder


class CheckpointAccess:
    """The part of a Simulation that is about files."""

    __slots__ = ()

    def save(self, path: str | Path) -> Path:
        """Write all that changes (state, commands, parameters) to a file, from which `load` goes on bit for bit.

        An older file of that name stays until the new one is whole.
        """
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            with part.open("wb") as stream:
                stream.write(self._dump())
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, file)
        finally:
            part.unlink(missing_ok=True)
        return file

    def load(self, path: str | Path) -> None:
        """Go on from a file of `save`; one that is damaged or of another scene or solver is refused by name."""
        file = Path(path)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise SimulationError(f"{file}: cannot be read: {error.strerror or error}") from None
        self._load(data, str(file))

    def _dump(self) -> bytes:
        return checkpoint.dump(self)

    def _load(self, data: bytes, who: str) -> None:
        checkpoint.restore(self, data, who)

    def record(self, *words: str, every: float | int = 1) -> Log:
        """Record values while steps are made: `with sim.record("joint/*.q", "rope/r.tension", "sim.energy", every=0.01) as log`.

        Args:
            words: kind/name.value, where the name may be a pattern (`sharnir.runtime.log`).
            every: so many steps, or (a float) so many seconds.

        `log.time`, `log["joint/a.q"]`, `log.plot()`, `log.to_csv(path)`, `to_npz`, `to_parquet`.
        """
        return Log(self, words, every)

    record_to = Former("record_file")

    def record_file(self, path: str | Path, *, rate: float = 60.0, key: float = 5.0, name: str = "") -> Recorder:
        """Record everything to a file (MCAP) that `sharnir.Recording` reads and replays: `with sim.record_file("run.mcap")`.

        Args:
            rate: how often a second of simulated time poses, joints and ropes are kept for looking at, Hz. Besides, all commands
                are kept exactly, and checks of every step.
            key: s of simulated time between complete, exact states.
            name: of what is recorded, such as an example's; `sharnir replay` finds its scene by it.
        """
        return Recorder(self, path, rate=rate, key=key, name=name)
