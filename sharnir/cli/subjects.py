"""What a command is about: the simulation of an example, of a file of one's own, or of a recording."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sharnir.cli import examples
from sharnir.io.record_reader import Recording
from sharnir.io.scene_file import SCENE_SUFFIXES, load_scene, read_text
from sharnir.model.model import Model
from sharnir.runtime.simulation import Simulation
from sharnir.runtime.tolerances import gathered
from sharnir.scene.scene import Scene


def is_scene_file(name: str) -> bool:
    """Whether a name is that of a file that holds a scene as data."""
    return Path(name).suffix.lower() in SCENE_SUFFIXES


def values_of(words: Sequence[str]) -> dict[str, Any]:
    """Parameters from words such as mass=12 or kind=steel; a value that is no TOML is a text."""
    out: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise examples.UsageError(f"--set takes NAME=VALUE, such as mass=12, got {word!r}")
        try:
            out[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            out[name] = text
    return out


def own(path: Path, dt: float | None, values: Sequence[str] = (), roots: Sequence[Path] = ()) -> tuple[Simulation, Any]:
    """The simulation of a file of one's own, and its module (None of a scene file): `make(dt)`, `build()`, `sim` or `scene`."""
    if is_scene_file(str(path)):
        scene = load_scene(path, roots=roots, **values_of(values))
        return Simulation(scene, **({"dt": 1e-3} | scene.options | ({} if dt is None else {"dt": dt}))), None
    module = examples.load_file(path)
    try:
        if callable(getattr(module, "make", None)):
            made = module.make() if dt is None else module.make(dt)
        elif callable(getattr(module, "build", None)):
            made = module.build()
        else:
            made = getattr(module, "sim", getattr(module, "scene", None))
    except Exception as error:
        raise examples.UsageError(examples.error_text(error, path)) from None
    if isinstance(made, Scene | Model):
        return Simulation(made, dt or 1e-3), module
    if not isinstance(made, Simulation):
        words = "a function make(dt) or build() that returns a Scene or a Simulation, or a variable sim or scene"
        raise examples.UsageError(f"{path}: has to hold {words}" + ("" if made is None else f", got {made!r}"))
    if dt is not None:
        made.dt = dt
    return made, module


def made(name: str, dt: float | None, values: Sequence[str] = (), roots: Sequence[Path] = ()) -> tuple[Simulation, Any]:
    """The simulation of an example or of a file of one's own, and the module that it comes from (None of a scene file)."""
    if Path(name).suffix == ".py" or is_scene_file(name) or "/" in name:
        return own(Path(name), dt, values, roots)
    module = examples.load(name)
    return (module.make() if dt is None else module.make(dt)), module


def recorded(recording: Recording, scene: str | None = None, trust: bool = False, roots: Sequence[Path] = ()) -> Simulation:
    """The simulation that was recorded, at its start. No file that the recording names is opened or run without trust.

    Args:
        scene: an example or a file to take instead of what the recording says.
        trust: the file that the recording names, such as a .py file, is run or read.
        roots: folders outside of which the scene reads no file; the folder of the scene file, or the current one, if empty.
    """
    facts = recording.facts
    name = scene or facts["name"]
    if scene or (name and (trust or name in examples.examples())):
        return made(name, facts["dt"], (), roots)[0]
    if recording.scene:
        text = read_text(recording.scene, str(recording.path), roots=roots)
        return Simulation(text, facts["dt"], solver=facts["solver"], **gathered(facts["options"]))
    if name:
        does = "run" if Path(name).suffix.lower() == ".py" else "read"
        raise examples.UsageError(
            f"{recording.path}: holds no scene of its own and names {name!r}, which is not {does} unasked: a recording of a "
            f"stranger could name any file. If you trust it, --trust will {does} {name!r}; or give the scene by --scene"
        )
    raise examples.UsageError(f"{recording.path}: does not say of what it is; give --scene, an example or a file")
