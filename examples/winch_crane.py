"""A winch lowers 300 kg on 2 kg of rope and a hook while the jib slews: the load swings, and hangs 4 m lower in the end.

The rope is paid out at its first end, segment by segment; its tension is read where it leaves the jib.
"""

import numpy as np

import sharnir as sh

LOAD, JIB, DROP = 300.0, 5.0, 4.0  # kg, m, m
LOWER, SLEW = (1.0, 12.0), (2.0, 14.0)  # s


def smooth(t: float, a: float, b: float) -> float:
    """From 0 to 1 between a and b, without a jerk at either."""
    s = min(max((t - a) / (b - a), 0.0), 1.0)
    return s**3 * (10 - 15 * s + 6 * s * s)


def tip(t: float) -> np.ndarray:
    turn = np.radians(60) * smooth(t, *SLEW)
    return np.array([JIB * np.cos(turn), JIB * np.sin(turn), 8.0])


def make(dt: float = 1e-2) -> sh.Simulation:
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("jib", sh.Box(0.3, 0.3, 0.3), motion="kinematic", path=tip)
    start = tip(0.0)
    scene.add_body("hook", sh.Capsule(0.08, 0.2), mass=12.0, position=start - (0, 0, 2.2))
    scene.add_body("load", sh.Box(0.8, 0.6, 0.5), mass=LOAD, position=start - (0, 0, 3.25))
    steel = {"radius": 0.006, "mass_per_length": 0.3, "EI": 2.0, "GJ": 1.0, "damping": 0.02}
    scene.add_rope("hoist", start, start - (0, 0, 2), segments=20, attach=("jib", "hook"), reel="start", longest=8.0, **steel)
    scene.add_rope("sling", start - (0, 0, 2.4), start - (0, 0, 3), segments=6, attach=("hook", "load"), **steel)
    return sh.Simulation(scene, dt)


def control(sim: sh.Simulation) -> None:
    """The winch's speed."""
    h = 0.5 * sim.dt
    sim.rope("hoist").reel_speed = DROP * (smooth(sim.time + h, *LOWER) - smooth(sim.time - h, *LOWER)) / sim.dt


def check(sim: sh.Simulation) -> None:
    hoist, swing, stretch, pull = sim.rope("hoist"), [], 0.0, []
    while sim.time < 20.0:
        control(sim)
        sim.step()
        stretch = max(stretch, hoist.stretch, sim.rope("sling").stretch)
        pull.append(hoist.tension[0] / ((LOAD + 12.0 + 0.3 * (hoist.length + 0.6)) * 9.81))
        swing.append(np.linalg.norm((sim.body("load").com - sim.body("jib").position)[:2]))
    down = 8.0 - sim.body("load").com[2]
    print(f"rope {hoist.length:.6f} m in {hoist.segments} segments, stretched by at most {stretch:.0e}; load {down:.4f} m down")
    print(f"pull {min(pull):.3f} to {max(pull):.3f} of the weight; swing {max(swing):.2f}, at last {max(swing[-200:]):.3f} m")
    assert abs(hoist.length - 6.0) < 1e-6 and stretch < 1e-5 and 0.8 < min(pull) < max(pull) < 1.2 and max(swing[-200:]) < 0.3


if __name__ == "__main__":
    check(make())
