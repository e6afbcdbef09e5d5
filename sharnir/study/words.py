"""Words for what varies from run to run: "joint/hinge.friction", "body/door.mass", "joint/a.drive.kp", "sim.gravity[2]".

A word is kind/name.value as in `record`; the value is what the view of that name lets one set, one number a world. A component of
a vector or of a pair is told by its number: "joint/hinge.limit[1]"; a number of a friction law by its name:
"joint/hinge.friction.viscous". A word without a dot is free: it is handed to the functions of the study by that name.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sharnir.core.renamed import present_name
from sharnir.errors import SceneError, SimulationError
from sharnir.model.actuators import Friction
from sharnir.runtime.log import SHORT_WORDS

if TYPE_CHECKING:
    from sharnir.runtime.simulation import Simulation

VARIED_KINDS = ("joint", "body", "spring", "cable", "rope")
WORLD_VALUES = ("gravity", "wind")  # values of the simulation that are one a world
FORM = re.compile(r"(?:(?P<kind>[a-z]+)/(?P<name>.+?)|sim)\.(?P<path>[A-Za-z_]+(?:\.[A-Za-z_]+)*)(?:\[(?P<index>\d+)\])?")


def is_free(word: str) -> bool:
    """Whether a word is a name of the user's own, for the functions of a study."""
    return isinstance(word, str) and word.isidentifier()


class Parameter:
    """One number a world of a simulation, to be set by its word."""

    __slots__ = ("index", "kind", "name", "path", "word")

    def __init__(self, word: str) -> None:
        found = FORM.fullmatch(word) if isinstance(word, str) else None
        if found is None or (found["kind"] is not None and found["kind"] not in VARIED_KINDS):
            allowed = ", ".join(VARIED_KINDS)
            raise SimulationError(
                f"vary: {word!r} is not a kind/name.value such as 'joint/hinge.friction' or 'sim.gravity[2]', nor a name of "
                f"your own for a function; kinds: {allowed}"
            )
        self.word, self.kind, self.name = word, found["kind"] or "sim", found["name"] or ""
        self.path: list[str] = found["path"].split(".")
        self.path[0] = SHORT_WORDS.get(self.path[0], self.path[0]) if self.kind == "joint" else self.path[0]
        self.index = None if found["index"] is None else int(found["index"])

    def __repr__(self) -> str:
        return f"<parameter {self.word}>"

    def _owner(self, sim: Simulation) -> Any:
        """The view whose property is set."""
        owner = sim if self.kind == "sim" else getattr(sim, self.kind)(self.name)
        for step in self.path[:-1]:
            owner = getattr(owner, step, None)
        return owner

    def check(self, sim: Simulation) -> None:
        """Refuse what is not there or cannot be set."""
        if self._law is not None:
            getattr(sim, self.kind)(self.name)
            return
        owner = self._owner(sim)
        last = self.path[-1] = present_name(owner, self.path[-1])
        names = [n for n in dir(type(owner)) if isinstance(getattr(type(owner), n), property) and not n.startswith("_")]
        settable = [n for n in names if getattr(type(owner), n).fset is not None]
        if self.kind == "sim":
            settable = list(WORLD_VALUES)
        if last not in settable:
            what = "is read, not set" if last in names and self.kind != "sim" else "is not there, or the same in all worlds"
            raise SimulationError(f"vary: {self.word!r} {what}; allowed: {', '.join(settable) or 'nothing'}")

    @property
    def _law(self) -> str | None:
        """The number of a friction law that is meant, if one is."""
        if self.kind == "joint" and len(self.path) == 2 and self.path[0] == "friction":
            names = [f.name for f in fields(Friction)]
            if self.path[1] not in names:
                raise SimulationError(f"vary: {self.word!r}: a friction has {', '.join(names)}")
            return self.path[1]
        return None

    def put(self, sim: Simulation, values: np.ndarray) -> None:
        """Set it to values (worlds,)."""
        given: Any = np.array(values, float)
        law = self._law
        if law is not None:
            view = sim.joint(self.name)
            now = view.friction
            if isinstance(now, dict):
                raise SimulationError(f"vary: {self.word!r}: axes of joint {self.name!r} differ in their friction")
            each = now if isinstance(now, list) else [now] * sim.worlds
            both = {"dynamic": None} if law == "static" else {}  # None: as the static one
            try:
                view.friction = [
                    replace(f, **({law: float(v)} | (both if f.dynamic == f.static else {})))
                    for f, v in zip(each, given, strict=True)
                ]
            except SceneError as error:
                raise SimulationError(str(error)) from None
            return
        owner = self._owner(sim)
        last = self.path[-1] = present_name(owner, self.path[-1])
        if self.index is None:
            setattr(owner, last, given if sim.worlds > 1 else float(given[0]))
            return
        now = getattr(owner, last)
        if isinstance(now, tuple) and self.index < len(now):
            parts = [part if sim.worlds > 1 else float(part) for part in now]
            parts[self.index] = given if sim.worlds > 1 else float(given[0])
            setattr(owner, last, tuple(parts))
            return
        array = np.array(now, float)
        width = array.shape[-1] if array.ndim else 0
        if isinstance(now, tuple | dict) or self.index >= width:
            raise SimulationError(f"vary: {self.word!r}: [{self.index}] is not among its components (0 to {width - 1})")
        array = np.broadcast_to(array, (sim.worlds, width)).copy()
        array[:, self.index] = given
        setattr(owner, last, array if sim.worlds > 1 else array[0])

    def get(self, sim: Simulation) -> np.ndarray | None:
        """(worlds,) what it is now; None where that is not a number."""
        law = self._law
        if law is not None or self.path[-1] == "friction":
            now = sim.joint(self.name).friction
            each = now if isinstance(now, list) else [now] * sim.worlds
            return None if isinstance(now, dict) else np.array([getattr(f, law or "static") for f in each], float)
        now = getattr(self._owner(sim), self.path[-1])
        if isinstance(now, dict):
            return None
        if self.index is not None:
            now = now[self.index] if isinstance(now, tuple) else np.asarray(now, float)[..., self.index]
        try:
            return np.broadcast_to(np.asarray(now, float), (sim.worlds,)).copy()
        except (TypeError, ValueError):
            return None


def parameters(sim: Simulation, words: list[str]) -> list[Parameter]:
    """The parameters of words, each seen to be there and to be one a world."""
    out = []
    for word in words:
        parameter = Parameter(word)
        parameter.check(sim)
        try:
            now = parameter.get(sim)
            if now is not None:
                parameter.put(sim, now)
        except (SimulationError, AttributeError, TypeError, ValueError) as error:
            raise SimulationError(f"vary: {word!r} cannot be one number a world: {error}") from None
        out.append(parameter)
    return out
