"""The figure of docs/theory.md: energy of 30 rods let go from horizontal, by every method and by other engines.

Run: python -m benchmarks.whip [PICTURE]
"""

import sys
from typing import Any

import numpy as np

import sharnir as sh
from benchmarks.scenes import GRAVITY, MASS, MujocoChain, chain, rod

COUNT, DT, SECONDS, EVERY = 30, 1e-3, 10.0, 10
SCALE = MASS * GRAVITY * 0.5  # J

OURS = {
    "direct": {"solver": "direct"},
    "sequential": {"solver": "sequential"},
}


def ours(options: dict[str, Any]) -> np.ndarray:
    """Energy over its scale, against the start, every EVERY steps."""
    sim = sh.Simulation(chain(COUNT, "ball"), DT, **options)
    start, out = sim.energy().total, []
    for _ in range(round(SECONDS / DT / EVERY)):
        sim.step(EVERY)
        out.append((sim.energy().total - start) / SCALE)
    return np.array(out)


def by_mujoco(integrator: str) -> np.ndarray:
    """Energy as of `ours`, by MuJoCo."""
    import mujoco

    peer = MujocoChain(COUNT, "ball", dt=DT)
    peer.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    start, out = sum(peer.energy()), []
    for _ in range(round(SECONDS / DT / EVERY)):
        peer.step(EVERY)
        out.append((sum(peer.energy()) - start) / SCALE)
    return np.array(out)


def by_rapier() -> np.ndarray:
    """Energy as of `ours`, by Rapier with its defaults."""
    import rapier3d as r

    l, m, inertia = rod(COUNT)
    world = r.PhysicsWorld(gravity=r.Vec3(0.0, 0.0, -GRAVITY))
    world.integration_parameters.dt = DT
    last = world.rigid_bodies.insert(r.RigidBody.fixed())
    bodies = []
    for i in range(COUNT):
        given = r.MassProperties(local_com=r.Vec3(0, 0, 0), mass=m, principal_inertia=r.Vec3(*inertia))
        builder = (
            r.RigidBody.dynamic().translation(r.Vec3((i + 0.5) * l, 0, 0)).additional_mass_properties(given).can_sleep(False)
        )
        body = world.rigid_bodies.insert(builder)
        joint = r.SphericalJointBuilder().local_anchor1(r.Vec3(0.5 * l if i else 0.0, 0, 0)).local_anchor2(r.Vec3(-0.5 * l, 0, 0))
        world.impulse_joints.insert(last, body, joint.build(), True)
        bodies.append(body)
        last = body

    def energy() -> float:
        found = [world.rigid_bodies[b] for b in bodies]
        return sum(b.kinetic_energy() + m * GRAVITY * b.translation.z for b in found)

    start, out = energy(), []
    for _ in range(round(SECONDS / DT / EVERY)):
        for _ in range(EVERY):
            world.step()
        out.append((energy() - start) / SCALE)
    return np.array(out)


def main(picture: str) -> None:
    """Run them all, print the largest deviations, draw."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = {name: ours(options) for name, options in OURS.items()}
    curves |= {f"MuJoCo, {i}": by_mujoco(i) for i in ("EULER", "RK4")}
    try:
        curves["Rapier"] = by_rapier()
    except ImportError:
        print("Rapier: not installed (pip install rapier3d)")
    t = (np.arange(round(SECONDS / DT / EVERY)) + 1) * DT * EVERY
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 6.5), sharex=True, layout="constrained")
    for name, value in curves.items():
        print(f"{name:28s} from {value.min():+.2e} to {value.max():+.2e} of {SCALE:.1f} J, at the end {value[-1]:+.2e}")
        above.plot(t, 100 * np.clip(value, -1.5, 1.5), label=name, lw=2 if name == "direct" else 1)
        below.semilogy(t, np.maximum(np.abs(value), 1e-16), lw=2 if name == "direct" else 1)
    above.set_ylabel("energy against the start, %")
    above.set_ylim(-110, 60)
    above.legend(fontsize=8, ncols=2)
    below.set_ylabel("|energy against the start|")
    below.set_xlabel("time, s")
    above.set_title(f"{COUNT} rods on ball joints let go from horizontal, {DT * 1e3:g} ms")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/whip.png")
