"""A mobile: bars that hang on bars by hinges, cardan and ball joints, pushed: both solvers against an exact integration."""

import numpy as np

import sharnir as sh

DROP, LEVELS = 0.25, (1.2, 0.5, 0.25)  # m: how far a bar's centre is below its joint, half lengths of the bars
JOINTS = (sh.Universal(("x", "y")), sh.Spherical(), sh.Revolute("y"))  # of each level


def hang(scene: sh.Scene, place: np.ndarray, above: str, level: int, name: str) -> None:
    """A bar below a point of the one above, and two bars below its own ends."""
    reach = LEVELS[level]
    shape = sh.Compound(sh.Box(2 * reach, 0.03, 0.03), sh.Box(0.01, 0.01, DROP, position=(0, 0, DROP / 2)))
    scene.add_body(name, shape, mass=2.0 * reach, position=place - [0, 0, DROP])
    ends = (above, name) if level < 2 else (name, above)  # either body may be called the parent
    scene.add_joint(name, JOINTS[level], *ends, position=place)
    if level + 1 < len(LEVELS):
        for side, way in (("l", -1), ("r", 1)):
            hang(scene, place + [way * reach, 0, -DROP], name, level + 1, name + side)


def make(dt: float = 1e-3, solver: str = "direct") -> sh.Simulation:
    scene = sh.Scene()
    hang(scene, np.array([0, 0, 2.0]), scene.world, 0, "bar")
    sim = sh.Simulation(scene, dt, solver=solver)
    sim.joint("bar").velocity = (0.6, 1.0)
    sim.joint("barl").velocity = (1.0, 0.5, 2.0)
    sim.joint("barrr").velocity = 3.0
    return sim


def places(sim: sh.Simulation) -> np.ndarray:
    return np.array([sim.body(name).position for name in sim.model.body_names])


def check(sim: sh.Simulation) -> None:
    impulse, exact = make(sim.dt, "sequential"), make(sim.dt)
    energy = sim.energy().total
    off = {sim: 0.0, impulse: 0.0}
    for t in np.arange(1, 9) * 0.25:
        path = exact.integrate(t, rtol=1e-11, atol=1e-11)
        for stepped in off:
            stepped.run(t - stepped.time)
            off[stepped] = max(off[stepped], np.abs(places(stepped) - places(exact)).max())
    lost = abs(sim.energy().total - energy)
    print(
        f"2 s at {sim.dt * 1e3:g} ms against an integration to 1e-11 (its last 0.25 s took {path.steps} steps): "
        f"direct solver within {off[sim]:.1e} m, energy {lost:.1e} J, gaps {sim.constraint_error().max():.0e} m; "
        f"sequential solver within {off[impulse]:.1e} m, gaps {impulse.constraint_error().max():.0e} m"
    )
    assert max(off.values()) < 5e-3 and sim.constraint_error().max() < 1e-12 and lost < 1e-2


if __name__ == "__main__":
    check(make())
