"""Which files a scene file may read: those inside its own folder, or inside the roots that the caller gives; nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from sharnir.errors import SceneError
from sharnir.io.xml import FilePath


class Folders:
    """Roots inside which files are read, symbolic links followed.

    Args:
        who: the function whose argument `roots` is, for messages.
        folder: of the file that is read; the only root where none are given.
        roots: folders, each with all that is below it.
    """

    def __init__(self, who: str, folder: Path, roots: Sequence[FilePath] = ()) -> None:
        if isinstance(roots, str | PathLike):
            raise SceneError(f"{who}: roots is a list of folders, got {str(roots)!r}")
        self.who = who
        self.roots = [Path(os.path.realpath(root)) for root in (roots or [folder])]
        for given, root in zip(roots, self.roots, strict=False):
            if not root.is_dir():
                raise SceneError(f"{who}: roots are folders, got {str(given)!r}")

    def contain(self, path: Path) -> bool:
        """Whether a path is inside a root, wherever its symbolic links lead."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):  # a name with a zero byte, or a circle of links
            return False
        return any(real.is_relative_to(root) for root in self.roots)

    def __str__(self) -> str:
        named = ", ".join(repr(str(root)) for root in self.roots)
        return f"a file inside the roots {named}; see roots= of {self.who}, --root on the command line"


def everywhere(folder: FilePath) -> list[Path]:
    """Roots that exclude nothing, for a text that this process wrote itself."""
    return [Path(Path(os.path.abspath(folder)).anchor)]
