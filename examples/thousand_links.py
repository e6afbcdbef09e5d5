"""A trolley carries a chain of a thousand links aside: a wave runs down, and the free end stays for 2√(L/g) before it follows.

A hanging chain is a string under its own weight. With the trolley's place f(t) its free end stands, where angles are small, at

    f + Σ q_k,   q̈_k + ω_k² q_k = −2 f̈ / (z_k J₁(z_k)),   ω_k = ½ z_k √(g/L),   z_k the zeros of J₀     (D. Bernoulli, 1733).
"""

import numpy as np

import sharnir as sh

LINKS, LENGTH, MASS = 1000, 10.0, 20.0  # m, kg in all
WAY, TIME = 0.5, 2.0  # m, s: how far the trolley goes, and how long that takes


def trolley(t: float) -> tuple[float, float, float]:
    """A smooth way from rest to rest."""
    s = min(t / TIME, 1.0)
    return (WAY * s**3 * (10 - 15 * s + 6 * s * s), 0, 0)


def make(dt: float = 1e-2) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    l, m = LENGTH / LINKS, MASS / LINKS
    last = scene.add_body("trolley", sh.Box(0.6, 0.3, 0.2), motion="kinematic", path=trolley)
    for i in range(LINKS):
        inertia = (m * l**2 / 12, m * l**2 / 12, m * l**2 / 200)
        scene.add_body(f"link{i}", sh.Box(0.02, 0.02, l), mass=m, inertia=inertia, position=(0, 0, -(i + 0.5) * l))
        scene.add_joint(f"joint{i}", sh.Spherical(), last, f"link{i}", position=(0, 0, -i * l))
        last = f"link{i}"
    return sh.Simulation(scene, dt, solver="direct")


def bernoulli(t: np.ndarray, modes: int = 12) -> np.ndarray:
    """(times,) where the free end of the chain is at times a small step apart, m."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    z = np.pi * (np.arange(modes) + 0.75)
    for _ in range(5):  # Newton's method: J₀' = −J₁
        j0, j1 = (np.cos(n * angle - z[:, None] * np.sin(angle)).mean(1) for n in (0, 1))
        z = z + j0 / j1
    w, f = z / 2 * np.sqrt(9.81 / LENGTH), np.array([trolley(s)[0] for s in t])
    push = np.gradient(np.gradient(f, t), t)[:, None] * np.exp(-1j * w * t[:, None])
    q = np.imag(np.exp(1j * w * t[:, None]) * np.cumsum(push, 0) * (t[1] - t[0])) / w
    return f - (q * 2 / (z * j1)).sum(1)


def check(sim: sh.Simulation) -> None:
    tip, gap, energies = [], 0.0, []
    while sim.time < 6.0:
        sim.step()
        tip.append((sim.time, sim.body(f"link{LINKS - 1}").com[0]))
        if sim.time > TIME:
            energies.append(sim.energy().total)
        gap = max(gap, sim.constraint_error().max()) if len(tip) % 100 == 0 else gap
    t, x = np.array(tip).T
    off, early = np.abs(x - bernoulli(t)).max() / np.ptp(x), np.abs(x[t < 2 * np.sqrt(LENGTH / 9.81)]).max() / WAY
    swing = MASS * 9.81 * WAY**2 / LENGTH / 2  # J, of the order of what the trolley gave
    up, change = (np.max(energies) - energies[0]) / swing, (energies[-1] - energies[0]) / swing
    print(f"end within {100 * off:.2f} % of Bernoulli's; moved {100 * early:.2f} % of the way before the wave came")
    print(f"gap {gap:.1e} m; energy since the trolley stopped at most {up:+.1e}, at the end {change:+.1e} of the swing's")
    assert off < 0.01 and gap < 1e-9 and up < 2e-4


if __name__ == "__main__":
    check(make())
