"""Which solver steps a scene: the words of `Simulation(solver=…)`, and what "auto" stands for."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import warp as wp

from sharnir.engine.articulated.spanning_tree import Links
from sharnir.errors import SimulationError
from sharnir.model.model import Model

SOLVERS = {
    "sequential": "sharnir.engine.sequential.solver.SolverSequential",
    "direct": "sharnir.engine.direct.solver.SolverDirect",
}
"""Where the classes are: imported when a scene needs one, since each declares hundreds of device functions."""
ROPES_ALONE = "sharnir.engine.rope.solver.SolverRope"
SOLVER_WORDS = ("auto", *SOLVERS)
WIDE_ROWS = 120  # rows beside a tree that all feel each other (twenty loops on one tree): from there on sweeps are far quicker


def solver_class(place: str) -> Any:
    """The class at a dotted place."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)


def asked_for(solver: str, method: str | None) -> str:
    """The word that a user meant, with a warning where it is one of the last release."""
    if method is not None:
        if solver not in ("auto", "impulse") or method not in ("sequential", "direct"):
            raise SimulationError(
                f"Simulation: method={method!r} beside solver={solver!r}; give solver= alone, one of "
                f"{', '.join(map(repr, SOLVER_WORDS))}"
            )
        _old(f"method={method!r}", method)
        return method
    if solver == "impulse":
        _old("solver='impulse'", "sequential")
        return "sequential"
    if solver == "articulated":
        raise SimulationError("solver='articulated' was removed in 0.3.0: it was the direct solver; use solver='direct'")
    if solver not in SOLVER_WORDS:
        raise SimulationError(f"solver {solver!r} is unknown; allowed: {', '.join(map(repr, SOLVER_WORDS))}")
    return solver


def _old(word: str, new: str) -> None:
    words = f"{word} is now solver={new!r}, and will be refused in the next release"
    warnings.warn(words, FutureWarning, stacklevel=4)


def automatic(model: Model) -> str:
    """The solver of a scene, from its counts alone: direct, or sequential where many loops meet on one tree."""
    moving = len(model.joint_kinds) + len(model.gear_names) + len(model.spring_names) + int(model.cables.count)
    if 6 * moving <= WIDE_ROWS or moving < len(model.com):
        return "direct"
    table = Links(model, without=[], at_com=True, keeps=True).closures
    widest = int((table.last.numpy() - table.first.numpy()).max(initial=0)) + 1
    return "sequential" if widest > WIDE_ROWS else "direct"


def chosen(model: Model, word: str) -> tuple[str, Any]:
    """The name of the solver that steps a model, and its class; `word` as `asked_for` returned it."""
    ropes = model.ropes
    jointed = bool(model.joint_kinds or model.spring_names or model.cable_names)
    if ropes is not None and not jointed and not ropes.refused and model.collision is None:
        return "rope", solver_class(ROPES_ALONE)  # the one engine of ropes without joints, whatever solver was asked for
    touching = ropes is not None and any(rope.collide for rope in ropes.described)
    if word == "auto" and model.casts and ropes is not None:
        word = "direct"  # the one that knows both
    if word == "auto" and model.collision is not None and (touching or not jointed or model.casts):
        word = "sequential"  # free bodies, raycast wheels and ropes that touch cost less so
    if word == "auto":
        word = automatic(model) if ropes is None or not ropes.refused else "direct"
    return word, solver_class(SOLVERS[word])


def begin_early(model: Model, worlds: int, word: str, specialize: bool | None) -> None:
    """Let a GPU compile what plain trees need in so many worlds, while their scene is built: `model` is that of one world."""
    plain = word != "sequential" and specialize is not False and model.collision is None and model.ropes is None
    if plain and model.joint_kinds and wp.get_device(model.device).is_cuda:
        from sharnir.engine.direct import trees

        trees.begin_early(model, worlds, specialize)
