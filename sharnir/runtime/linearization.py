"""Derivatives of the next step of a simulation: `Simulation.linearize`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir import dynamics
from sharnir.core.misspellings import meant
from sharnir.core.spatial import quat_rotate, skew
from sharnir.core.strided import of_first
from sharnir.errors import SimulationError
from sharnir.model.joint_setting import disabled

# The Simulation; it stands a floor above, so that it is not named here.
Owner = Any
OF_JOINT = {
    "effort": "effort", "drive.position": "servo_position", "drive.velocity": "servo_velocity", "drive.voltage": "voltage",
}  # fmt: skip
QUICK_CURRENT = 1e-3  # of the time of a step: currents that follow the voltage in less do so at once (`laws.axis.motor_decay`)
BODY_INPUTS = {"force": "push_f", "torque": "push_n"}


@dataclass(frozen=True)
class Linearization:
    """The next step about the present state: x₁ = A x₀ + B u.

    x has small changes of the coordinates, along the speeds (a ball's as a rotation vector in its parent's joint frame), and then
    of the speeds, both in the order of `Simulation.qd`; the six of bodies that no joint ties to the ground come behind those of
    the joints: of the frame's origin, then of the rotation, in world axes.

    Args:
        A: (2n, 2n), or (worlds, 2n, 2n).
        B: (2n, m), or (worlds, 2n, m).
        states: a name for each of the n speeds.
        inputs: a name for each column of B.
        switches: whether something stops in the step: an axis comes to rest by friction, or meets a limit. A and B are those of
            the step without the impact at its end. (worlds,) where there are several.
    """

    A: np.ndarray
    B: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    switches: Any

    def __repr__(self) -> str:
        switches = ", switches" if np.any(self.switches) else ""
        return f"Linearization({len(self.states)} speeds, {len(self.inputs)} inputs{switches})"


class Linearizer:
    """Linearizes steps of a simulation as they are bound now, for some inputs.

    Args:
        inputs: see `Simulation.linearize`.
    """

    def __init__(self, sim: Owner, inputs: Iterable[str] | None) -> None:
        from sharnir.engine.tree.linearize import Directions
        from sharnir.engine.tree.tangent import RESULT, SEED, SEED_SIZE, start_of
        from sharnir.engine.tree.tangent_code import NOT_FOUND

        check_covered(sim)
        solver = sim.solver
        if solver._bound is None or solver._bound[0] is not sim._state:
            solver._bind(sim._state, sim.commands)
        self.bound, self.asked, self.not_found = solver._bound, inputs, NOT_FOUND
        self.resting = sim._state.resting.numpy()  # a view
        links, self.places = dynamics.links(sim), solver._trees.plan.places
        self.n, self.states = links.nv, speed_names(sim, links)
        rows, self.floating = rows_of(self.places, links)
        given = columns_of(sim, self.places, efforts(sim, self.places) if inputs is None else inputs)
        self.inputs = tuple(name for name, *_ in given)
        count = 2 * self.n + len(given)
        seeds = np.zeros((sim.worlds, count, len(self.places), SEED_SIZE))
        for k, (i, number) in enumerate(rows):
            seeds[:, k, i, number] = seeds[:, self.n + k, i, start_of(SEED, "speed") + number] = 1.0
        for k, (_, i, name, number) in enumerate(given):
            seeds[:, 2 * self.n + k, i, start_of(SEED, name) + number] = 1.0
        self.directions = Directions(solver._trees, self.bound[2], count)
        self.directions.seed(seeds)
        where = [self.directions.place(i, number + at) for at in (0, start_of(RESULT, "speed")) for i, number in rows]
        self.where = np.stack(where, 1) if where else np.zeros((sim.worlds, 0, count), int)

    def __call__(self, sim: Owner) -> Linearization:
        state = sim.state
        if self.resting.any():  # what sleeps has no steps to differentiate
            sim.solver.wake(sim._state)
        marks = self.directions.follow()
        if marks.any() and self.not_found in marks:
            w = f" in world {int(np.flatnonzero(marks == self.not_found)[0])}" if sim.worlds > 1 else ""
            words = f"the next step does not converge as a whole{w}; take a smaller dt than {sim.dt:g} s"
            raise SimulationError(f"linearize: {words}")
        both = self.directions.results[self.where]
        for i, at in self.floating:
            body = self.places[i].body
            rotation, spin = (x.numpy()[body].astype(float) for x in (state.rotation, state.spin))
            arm, end = np.broadcast_to(sim.model.com[body], spin.shape), self.directions.ends[:, i]
            before = at_frame(quat_rotate(rotation, arm), spin)
            after = at_frame(quat_rotate(end[:, :4], arm), end[:, 4:] * (2.0 / sim.dt))
            own = [*range(at, at + 6), *range(self.n + at, self.n + at + 6)]
            both[:, :, own] = both[:, :, own] @ np.linalg.inv(before)
            both[:, own] = after @ both[:, own]
        if sim.worlds == 1:
            both, stops = both[0], bool(marks[0])
        else:
            stops = marks != 0
        A, B = both[..., : 2 * self.n], both[..., 2 * self.n :]
        return Linearization(A, B, self.states, self.inputs, stops)


def linearize(sim: Owner, inputs: Iterable[str] | None) -> Linearization:
    """See `Simulation.linearize`."""
    asked, made = inputs if inputs is None or isinstance(inputs, str) else tuple(inputs), sim._linearizer
    if made is None or made.bound is not sim.solver._bound or made.asked != asked or sim.solver._bound[0] is not sim._state:
        made = sim._linearizer = Linearizer(sim, asked)
    return made(sim)  # type: ignore[no-any-return]


def at_frame(arm: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """(worlds, 12, 12) changes of a body's frame from those of its centre of mass, which is at `arm` from there.

    Of place, turn, velocity and angular velocity: p = c − arm, v = v_c − ω × arm, and a turn δθ changes the arm by δθ × arm.
    """
    S, W = (np.array([skew(a) for a in x]) for x in (arm, spin))
    out = np.broadcast_to(np.eye(12), (len(arm), 12, 12)).copy()
    out[:, 0:3, 3:6] = out[:, 6:9, 9:12] = S
    out[:, 6:9, 3:6] = W @ S
    return out


def rows_of(places: Sequence[Any], links: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Of each speed: its link, and the number there; and the links of bodies that float, with their first speed."""
    rows, floating = [(0, 0)] * links.nv, []
    for i, p in enumerate(places):
        at = p.axis if p.axis >= 0 or not speeds_of(p) else int(links.v_start[links.links[links.link_of[p.body]].joint])
        for k in range(speeds_of(p)):
            rows[at + k] = i, (3 if speeds_of(p) == 3 else 0) + k
        if speeds_of(p) == 6:
            floating.append((i, at))
    return rows, floating


def speeds_of(place: Any) -> int:
    """Speeds of a link's joint."""
    from sharnir.engine.tree.forest import BALL, FREE, ONE_AXIS

    return 1 if place.kind in ONE_AXIS else {BALL: 3, FREE: 6}.get(place.kind, 0)


def speed_names(sim: Owner, links: Any) -> tuple[str, ...]:
    """Names of speeds: of the joint or the body that floats, with a number where it has several."""
    bodies = {b: name for name, b in sim.model.body_names.items()}
    names = [*sim.model.joint_names, *(bodies[links.children[k]] for k in range(len(sim.model.joint_names), len(links.kinds)))]
    return tuple(
        name if kind.v_size == 1 else f"{name}[{k}]"
        for name, kind in zip(names, links.kinds, strict=True)
        for k in range(kind.v_size)
    )


def efforts(sim: Owner, places: Sequence[Any]) -> list[str]:
    """Inputs unless given: the efforts of all joints with one axis."""
    from sharnir.engine.tree.forest import ONE_AXIS

    kinds, single = sim.model.joint_kinds, {p.joint for p in places if p.kind in ONE_AXIS}
    return [f"{name}.effort" for name, k in sim.model.joint_names.items() if k in single and kinds[k].v_size == 1]


def columns_of(
    sim: Owner, places: Sequence[Any], inputs: Iterable[str], who: str = "linearize"
) -> list[tuple[str, int, str, int]]:  # fmt: skip
    """Of each column: its name, its link, the field there, and the number of that."""
    m, out = sim.model, []
    if isinstance(inputs, str):
        raise SimulationError(f"{who}: inputs are a list of words, got the one word {inputs!r}; write [{inputs!r}]")
    for word in inputs:
        parts = [part for part in (*OF_JOINT, *BODY_INPUTS) if str(word).endswith("." + part)]
        name, part = (word[: -len(parts[0]) - 1], parts[0]) if parts else (str(word), "effort")
        if part in OF_JOINT:
            if name not in m.joint_names:
                raise SimulationError(f"{who}: input {word!r}: no joint {name!r}{meant(name, list(m.joint_names))}")
            k = m.joint_names[name]
            found = [i for i, p in enumerate(places) if p.joint == k and speeds_of(p) == 1]
            if len(found) != m.joint_kinds[k].v_size or not found:
                kind = type(m.joint_kinds[k]).__name__
                raise SimulationError(f"{who}: input {word!r}: joint {name!r} is {kind}; allowed: axes that are single ones")
            found.sort(key=lambda i: places[i].axis)
            several = len(found) > 1
            out += [(f"{name}.{part}[{n}]" if several else f"{name}.{part}", i, OF_JOINT[part], 0) for n, i in enumerate(found)]
        else:
            if name not in m.body_names:
                raise SimulationError(f"{who}: input {word!r}: no body {name!r}{meant(name, list(m.body_names))}")
            i = next((i for i, p in enumerate(places) if p.body == m.body_names[name] and not p.part), None)
            if i is None:
                raise SimulationError(f"{who}: input {word!r}: body {name!r} does not move")
            out += [(f"{name}.{part}[{axis}]", i, BODY_INPUTS[part], axis) for axis in range(3)]
    return out


def check_covered(sim: Owner, who: str = "linearize") -> None:
    """Refuse, by name, what the derivative does not know yet."""
    from sharnir.engine.tree.build import LOOSE_MASK

    m, why = sim.model, ""
    if sim.solver_name != "direct":
        raise SimulationError(f"{who}: the solver is {sim.solver_name!r}; allowed: solver='direct'")
    if not sim._on_cpu:
        raise SimulationError(f"{who}: the device is {m.device}; allowed: device='cpu'")
    trees = sim.solver._trees
    if m.collision is not None:
        why = "bodies may touch; leave contact out"
    elif m.ropes is not None:
        why = f"rope {next(iter(m.ropes.names))!r} hangs on bodies"
    elif trees is None or trees.closures:
        why = "loops, gears, cables or springs join bodies beside the tree"
    elif int(m.drives.count):
        why = f"joint {list(m.joint_names)[int(m.drives.joint.numpy()[0])]!r} has an engine or a cylinder"
    elif sim.solver.specialize:
        why = "specialize=True; leave it out"
    else:
        names, off = list(m.joint_names), disabled(m, sim.commands)
        motors: Any = of_first(m.axes.inductance) > QUICK_CURRENT * sim.dt * of_first(m.axes.resistance) if m.speeds else ()
        loads: Any = (sim.commands.friction_load.numpy() > 0).any(-1) if m.speeds else ()
        acts = sim.commands.acts.numpy().any(-1) if names else ()
        for k, name in enumerate(names):
            axes = slice(int(m.v_start[k]), int(m.v_start[k]) + m.joint_kinds[k].v_size)
            several = len(m.joint_kinds[k].turns) == 3 and (acts[k] or np.any(sim.effort[..., axes]))
            shared = any(p.joint == k and p.slots for p in trees.plan.places)
            if m.joint_kinds[k].mask == LOOSE_MASK and not acts[k]:
                why = f"joint {name!r} leaves all motions free; leave it out"
            elif k in off:
                why = f"joint {name!r} is disabled"
            elif np.any(motors[axes]):
                why = f"joint {name!r} has a motor whose current lags (its inductance)"
            elif np.any(loads[axes]):
                why = f"joint {name!r} has friction that grows with its load"
            elif several or shared:
                why = f"laws act on several axes of joint {name!r} together"
    if why:
        allowed = "trees of joints with one axis and what acts on these, balls and bodies that float"
        raise SimulationError(f"{who}: {why}; allowed: {allowed}")
