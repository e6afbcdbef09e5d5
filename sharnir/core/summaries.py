"""One line about an object: what `repr` says of simulations, scenes, reports, contacts, bodies, joints and ropes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# The objects stand floors above, so that they are not named here.
Owner = Any


def counted(**counts: int) -> list[str]:
    """Things that there are, as words: `counted(body=2, joint=1)` is ["2 bodies", "1 joint"]."""
    words = {"body": "bodies"}
    return [f"{n} {name if n == 1 else words.get(name, name + 's')}" for name, n in counts.items() if n]


def numbers(values: Any) -> str:
    """A value with four digits, a vector in brackets."""
    found = np.round(np.asarray(values, float), 12) + 0.0  # no "-0"
    if found.ndim == 0:
        return f"{float(found):.4g}"
    return "(" + ", ".join(f"{x:.4g}" for x in found) + ")"


def simulation(sim: Owner, shares: Sequence[Owner] = ()) -> str:
    """Of a Simulation: what moves, how it is stepped, and where its clock stands; `shares` hold worlds of it."""
    shares = shares or (sim,)
    model = shares[0].model
    ropes = 0 if model.ropes is None else len(model.ropes.described)
    parts = counted(
        body=len(model.body_names) - 1, joint=len(model.joint_kinds), gear=len(model.gear_names),
        spring=len(model.spring_names), cable=len(model.cable_names), rope=ropes,
    )  # fmt: skip
    parts += ["contact"] * (model.collision is not None)
    where = ", ".join(f"{counted(world=part.worlds)[0]} on {part.model.device}" for part in shares)
    where = str(model.device) if sim.worlds == 1 else where
    clock = f"dt = {sim.dt:g} s, t = {sim.time:g} s"
    return f"<Simulation: {', '.join(parts) or 'empty'}; solver {sim.solver_name}, {clock}, {where}>"


def scene(described: Owner) -> str:
    """Of a Scene: what was described, and whether bodies collide."""
    parts = counted(
        body=len(described.bodies) - 1, joint=len(described.joints), gear=len(described.gears),
        spring=len(described.springs), cable=len(described.cables), rope=len(described.ropes),
    )  # fmt: skip
    contact = "on" if described.touch.on else "off"
    return f"<Scene: {', '.join(parts) or 'empty'}; contact {contact}, gravity {numbers(described.gravity)} m/s²>"


def report(made: Owner) -> str:
    """Of a Report: whether the step is right, what it took, and what is wrong."""
    took = "" if made.elapsed <= 0.0 else f", {1e6 * made.elapsed:.0f} µs"
    late = ", deadline missed" if made.deadline_missed else ""
    converged, iterations = np.atleast_1d(made.converged), np.atleast_1d(made.iterations)
    if len(converged) > 1:
        most = f"at most {int(iterations.max())} iterations"
        return f"<Report: {int(converged.sum())} of {len(converged)} worlds converged, {most}{took}{late}>"
    verdict = "converged" if converged[0] else f"not converged: {', '.join(made.problems)}"
    count = counted(iteration=int(iterations[0])) or ["no iteration"]
    return f"<Report: {verdict}, {count[0]}, residual {float(made.residual):.2g}{took}{late}>"


def contacts(points: Owner) -> str:
    """Of points of contact: how many, between how many pairs, how they press and overlap."""
    if not len(points):
        return "<no contacts>"
    pairs = len({frozenset(pair) for pair in zip(points.body_a, points.body_b, strict=True)})
    force = float(np.linalg.norm(points.force, axis=1).sum())
    found = f"{counted(contact=len(points))[0]} of {counted(pair=pairs)[0]} of bodies"
    return f"<{found}, {force:.4g} N in all, smallest gap {float(points.gap.min()):.2g} m>"


def body(view: Owner) -> str:
    """Of a body: where it is, and how fast it moves."""
    if view._sim.worlds > 1:
        return f"<body {view.name!r} in {view._sim.worlds} worlds>"
    return f"<body {view.name!r} at {numbers(view.position)} m, {numbers(np.linalg.norm(view.velocity))} m/s>"


def joint(view: Owner) -> str:
    """Of a joint: its kind, and where it stands."""
    kind = view.kind.kind
    if view._sim.worlds > 1 or view.kind.v_size == 0:
        return f"<joint {view.name!r}: {kind}{f' in {view._sim.worlds} worlds' if view._sim.worlds > 1 else ''}>"
    return f"<joint {view.name!r}: {kind}, position {numbers(view.position)}, velocity {numbers(view.velocity)}>"


def rope(view: Owner) -> str:
    """Of a rope: its length, and the largest tension."""
    if view._sim.worlds > 1:
        return f"<rope {view.name!r} in {view._sim.worlds} worlds>"
    return f"<rope {view.name!r}: {float(view.length):.4g} m, tension up to {float(np.max(view.tension)):.4g} N>"
