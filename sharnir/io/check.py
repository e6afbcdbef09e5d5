"""What is wrong with a scene file, all of it at once, without running it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sharnir.errors import SceneError, SceneFileError, SceneWarning
from sharnir.io.scene_file import Reader, load_scene
from sharnir.io.xml import FilePath
from sharnir.scene.scene import Scene


def check_file(path: FilePath, *, roots: Sequence[FilePath] = (), **parameters: Any) -> tuple[list[str], list[str]]:
    """What is wrong with a file (.toml, .urdf, .xml), a line each with its place, and what may be a mistake or was left out.

    A file that can be read is also built: joints that do not fit together are among the problems. roots: as of `load_scene`.
    """
    file, problems = Path(path), []
    scene: Scene | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SceneWarning)  # they are among the notes
        try:
            if file.suffix.lower() == ".toml":
                reader = Reader(roots)
                scene = reader.read(file, parameters)
                problems = reader.sorted_problems()
            else:
                scene = load_scene(file, roots=roots, **parameters)
            if not problems and scene is not None:
                scene.build()
        except SceneFileError as error:
            problems = error.problems
        except SceneError as error:
            problems = [str(error) if file.name in str(error) else f"{file.name}: {error}"]
    return problems, scene.notes if scene is not None else []
