"""Dynamics of trees as functions: NumPy in, NumPy out, one state or many at once (`sh.dynamics`).

q are the joint coordinates of a model in the order of its joints, v their speeds (see conventions); a mechanism that no joint
ties to the ground gets a `Free` joint of its own: coordinates (position of the body's frame, quaternion) and speeds come last.
Shapes are (nq,), (nv,), or (n, nq), (n, nv) for n states at once; results follow.

    M(q) a + bias(q, v) = tau        bias holds gravity, Coriolis and centrifugal forces

A loop is cut at a body, whose second half hangs on the joint that closes it: q and v have the coordinates of every joint, and
must fit together. `forward_dynamics` and `integrate` keep the loop closed; M, bias and `inverse_dynamics` are the cut tree's.
"""

from threading import get_ident
from typing import Any

from sharnir.bound import Dynamics
from sharnir.mechanics import (
    Trajectory as Trajectory,
)
from sharnir.mechanics import (
    bias_forces as bias_forces,
)
from sharnir.mechanics import (
    check_integrable as check_integrable,
)
from sharnir.mechanics import (
    forward_dynamics as forward_dynamics,
)
from sharnir.mechanics import (
    forward_kinematics as forward_kinematics,
)
from sharnir.mechanics import (
    from_state as from_state,
)
from sharnir.mechanics import (
    gravity_torques as gravity_torques,
)
from sharnir.mechanics import (
    integrate as integrate,
)
from sharnir.mechanics import (
    inverse_dynamics as inverse_dynamics,
)
from sharnir.mechanics import (
    inverse_kinematics as inverse_kinematics,
)
from sharnir.mechanics import (
    jacobian as jacobian,
)
from sharnir.mechanics import (
    linearise as linearise,
)
from sharnir.mechanics import (
    links as links,
)
from sharnir.mechanics import (
    mass_matrix as mass_matrix,
)
from sharnir.mechanics import (
    moved as moved,
)
from sharnir.mechanics import (
    natural_frequencies as natural_frequencies,
)
from sharnir.mechanics import (
    neutral as neutral,
)
from sharnir.mechanics import (
    passive_forces as passive_forces,
)
from sharnir.mechanics import (
    rates as rates,
)
from sharnir.mechanics import (
    reactions as reactions,
)
from sharnir.mechanics import (
    rhs as rhs,
)
from sharnir.mechanics import (
    static_equilibrium as static_equilibrium,
)
from sharnir.mechanics import (
    to_state as to_state,
)


def of(model: Any) -> Dynamics:
    """These functions bound to a scene, a model or a simulation: `arm = sh.dynamics.of(scene)`, then `arm.mass_matrix(q)`."""
    t = links(model)
    made: dict[int, Dynamics] = t.model.__dict__.setdefault("_bound", {})  # lives with the model, one a thread
    thread = get_ident()
    if thread not in made or made[thread].tree is not t:
        made[thread] = Dynamics(t)
    return made[thread]
