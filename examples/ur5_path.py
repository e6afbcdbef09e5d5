"""A UR5 leads its tool round a circle: inverse kinematics says the angles, inverse dynamics the torques."""

import sys
from pathlib import Path

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_rotate

FILE = "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
TOOL, POINT = "wrist_3_link", np.array([0, 0.0823, 0])  # the flange, in the frame of the last link
CENTRE, RADIUS, RATE = np.array([0.45, 0.2, 0.35]), 0.15, np.pi  # m, m, rad/s
UPRIGHT = np.array([0.0, 0.0, -1.0, 1.0]) / np.sqrt(2)  # the tool points along x
NEAR = np.array([0.5, -1.3, 1.5, -0.1, 2.1, -3.1])  # rad, elbow up


def circle(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Place, velocity and acceleration of the tool."""
    out, along = (RADIUS * np.array([0, np.cos(angle), np.sin(angle)]) for angle in (RATE * t, RATE * t + np.pi / 2))
    return CENTRE + out, RATE * along, -(RATE**2) * out


def plan(sim: sh.Simulation, t: float, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles (next to `near`), speeds and accelerations that lead the tool along without turning it."""
    place, velocity, acceleration = circle(t)
    arm = sh.dynamics.of(sim)
    q = arm.inverse_kinematics(TOOL, place, rotation=UPRIGHT, point=POINT, start=near)
    J = arm.jacobian(q, TOOL, POINT)
    v = np.linalg.solve(J, [*velocity, 0, 0, 0])
    J_rate = (arm.jacobian(q + 1e-6 * v, TOOL, POINT) - J) / 1e-6
    return q, v, np.linalg.solve(J, [*acceleration, 0, 0, 0] - J_rate @ v)


def make(dt: float = 2e-3) -> sh.Simulation:
    file = next((f for f in (Path(p) / FILE for p in sys.path) if f.is_file()), None)
    if file is None:
        raise SystemExit("ur5_path needs the robot's files: pip install example-robot-data")
    sim = sh.Simulation(sh.load_urdf(file, roots=[file.parents[4]]), dt, solver="direct")
    q, v, _ = plan(sim, 0.0, NEAR)
    sim.set_state(q=q, qd=v)
    return sim


def control(sim: sh.Simulation) -> None:
    """Computed torque: what gives the planned acceleration, and pulls back to the plan."""
    sim.effort = sh.control.computed_torque(sim, sim.q, sim.qd, plan(sim, sim.time, sim.q), kp=400.0)


def check(sim: sh.Simulation) -> None:
    worst, tool = 0.0, sim.body(TOOL)
    while sim.time < 2 * np.pi / RATE:
        control(sim)
        sim.step()
        worst = max(worst, np.linalg.norm(tool.position + quat_rotate(tool.rotation, POINT) - circle(sim.time)[0]))
    print(f"the tool stays within {1e3 * worst:.3f} mm of its circle of {1e3 * RADIUS:g} mm")
    assert worst < 5e-4


if __name__ == "__main__":
    check(make())
