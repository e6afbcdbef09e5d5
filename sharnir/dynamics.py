"""Dynamics of trees as functions: NumPy in, NumPy out, one state or many at once (`sh.dynamics`).

q are the joint coordinates of a model in the order of its joints, v their speeds (see conventions); a mechanism that no joint
ties to the ground gets a `Free` joint of its own: coordinates (position of the body's frame, quaternion) and speeds come last.
Shapes are (nq,), (nv,), or (n, nq), (n, nv) for n states at once; results follow.

    M(q) a + bias(q, v) = tau        bias holds gravity, Coriolis and centrifugal forces

A loop is cut at a body, whose second half hangs on the joint that closes it: q and v have the coordinates of every joint, and
must fit together. `forward_dynamics` and `integrate` keep the loop closed; M, bias and `inverse_dynamics` are the cut tree's.
"""

from threading import get_ident
from typing import TYPE_CHECKING, Any

from sharnir.core.misspellings import names_of
from sharnir.integrate.bound import Dynamics
from sharnir.integrate.mechanics import (
    Trajectory,
    between,
    bias_forces,
    check_integrable,
    forward_dynamics,
    forward_kinematics,
    from_state,
    gravity_torques,
    integrate,
    inverse_dynamics,
    inverse_kinematics,
    jacobian,
    linearize,
    links,
    mass_matrix,
    moved,
    natural_frequencies,
    neutral,
    passive_forces,
    rates,
    reactions,
    rhs,
    static_equilibrium,
    to_state,
)

__all__ = [
    "Trajectory", "between", "bias_forces", "check_integrable", "forward_dynamics", "forward_kinematics", "from_state",
    "gravity_torques", "integrate", "inverse_dynamics", "inverse_kinematics", "jacobian", "linearise", "linearize", "links",
    "mass_matrix", "moved", "natural_frequencies", "neutral", "of", "passive_forces", "rates", "reactions", "rhs",
    "static_equilibrium", "to_state",
]  # fmt: skip

if not TYPE_CHECKING:  # or every word would be right
    __getattr__ = names_of("sharnir.dynamics", __all__)


linearise = linearize
"""The British spelling."""


def of(model: Any) -> Dynamics:
    """These functions bound to a scene, a model or a simulation: `arm = sh.dynamics.of(scene)`, then `arm.mass_matrix(q)`."""
    t = links(model)
    made: dict[int, Dynamics] = t.model.__dict__.setdefault("_bound", {})  # lives with the model, one a thread
    thread = get_ident()
    if thread not in made or made[thread].tree is not t:
        made[thread] = Dynamics(t)
    return made[thread]
