"""Cost of a step of trees in joint coordinates beside MuJoCo: chains of hinges and balls, a 7-joint arm, a humanoid.

Both engines take turns, CPU time of one thread; the ratio is the median over the rounds. Each case is measured as a default
`Simulation` (guard and sleep on), with `--specialize` also as one whose steps are compiled for the model, and, unless `--default`
is given, as the bare step, in code for any forest and in code for this one.

Run: python -m benchmarks.trees [--quick] [--default] [--specialize] [NAME ...]
"""

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from benchmarks.timing import interleave
from sharnir.core.spatial import matrix_to_quat
from sharnir.engine.tree.forest import BALL, HINGE, LAWS, Forest, Link
from sharnir.engine.tree.kernel import TreeRunner

H = 1e-3
TO_Z = {"x": [[0, 0, 1], [1, 0, 0], [0, 1, 0]], "y": [[0, 1, 0], [0, 0, 1], [1, 0, 0]], "z": np.eye(3)}
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
ARM = "zyyxyxy"
ARM_MASSES = [2.0 - 0.2 * i for i in range(7)]
ARM_LAWS = {
    "limit_lower": -2.0, "limit_upper": 2.0, "friction_static": 0.1, "friction_dynamic": 0.1, "servo_kp": 400.0, "servo_kd": 20.0,
}  # fmt: skip
FRICTION = {"friction_static": 0.05, "friction_dynamic": 0.05}


def hinges(axes: str, masses: list[float] | None = None, **laws: float) -> Forest:
    """Boxes of 0.3 m along x, hinged at their ends."""
    Z = [np.array(TO_Z[a], float) for a in axes]
    links = []
    for i, F in enumerate(Z):
        m = masses[i] if masses else 1.0
        P = Z[i - 1] if i else np.eye(3)
        I = F.T @ np.diag([2 * 0.08**2, 0.3**2 + 0.08**2, 0.3**2 + 0.08**2]) @ F * m / 12
        links.append(Link(i - 1, HINGE, P.T @ F, P.T @ [0.3 if i else 0.0, 0, 0], F.T @ [0.15, 0, 0], I, m, dict(laws)))
    return Forest(links)


def balls(n: int, **laws: float) -> Forest:
    """The same boxes on ball joints."""
    I = np.diag([2 * 0.08**2, 0.3**2 + 0.08**2, 0.3**2 + 0.08**2]) / 12
    return Forest([Link(i - 1, BALL, np.eye(3), [0.3 if i else 0.0, 0, 0], [0.15, 0, 0], I, 1.0, dict(laws)) for i in range(n)])


def turn(axis: str, angle: float) -> np.ndarray:
    """The matrix of a rotation about x, y or z."""
    z = np.array(TO_Z[axis], float)
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(z @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ z.T)


def scene(joints: str, masses: list[float] | None = None, friction: float = 0.0, arm: bool = False) -> sh.Scene:
    """The same boxes as a scene, where a round begins; b is a ball joint."""
    out = sh.Scene(gravity=(0.0, 0.0, -9.81))
    parent, R, end = out.world, np.eye(3), np.zeros(3)
    given: dict[str, Any] = {"friction": friction} if friction else {}
    if arm:
        given |= {"limit": (-2.0, 2.0), "drive": sh.Servo(kp=400.0, kd=20.0)}
    for i, (axis, angle) in enumerate(zip(joints, bent(len(joints)) * (not arm), strict=True)):
        m = masses[i] if masses else 1.0
        R = R @ turn("yz"[i % 2] if axis == "b" else axis, angle)
        sizes = np.array([2 * 0.08**2, 0.3**2 + 0.08**2, 0.3**2 + 0.08**2])
        body = out.add_body(
            f"link {i}", mass=m, inertia=sizes * m / 12, position=end + R @ [0.15, 0, 0], rotation=matrix_to_quat(R)
        )
        joint = sh.Spherical(**given) if axis == "b" else sh.Revolute(axis, **given)
        out.add_joint(f"joint {i}", joint, parent, body, position=end)
        parent, end = body, end + R @ [0.3, 0, 0]
    return out


def bent(n: int) -> np.ndarray:
    """Angles at the start."""
    return np.asarray(0.3 * np.sin(1.7 * np.arange(n)))


class MujocoTree:
    """The same in MuJoCo."""

    def __init__(self, joints: str, masses: list[float] | None = None, friction: float = 0.0, arm: bool = False) -> None:
        import mujoco

        n = len(joints)
        bodies = ""
        for i, a in enumerate(joints):
            kind = 'type="ball"' if a == "b" else f'axis="{AXES[a]}"'
            limit = 'range="-2 2" limited="true"' if arm else ""
            m = masses[i] if masses else 1.0
            bodies += (
                f'<body pos="{0.3 if i else 0} 0 0"><joint name="j{i}" {kind} frictionloss="{friction}" {limit}/>'
                f'<geom type="box" size=".15 .04 .04" pos=".15 0 0" mass="{m}" contype="0" conaffinity="0"/>'
            )
        servos = "".join(f'<position joint="j{i}" kp="400" kv="20"/>' for i in range(n)) if arm else ""
        text = (
            f'<mujoco><compiler angle="radian"/><option timestep="{H}" integrator="{"implicitfast" if arm else "Euler"}"/>'
            f"<worldbody>{bodies}{'</body>' * n}</worldbody><actuator>{servos}</actuator></mujoco>"
        )
        self.joints = joints
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self._step, self._reset = mujoco.mj_step, mujoco.mj_resetData

    def reset(self) -> None:
        """Back to the start."""
        self._reset(self.model, self.data)
        n = len(self.joints)
        if "b" in self.joints:
            for i, q in enumerate(bent(n)):
                about = np.array([0.0, 1.0, 0.0]) if i % 2 == 0 else np.array([0.0, 0.0, 1.0])
                self.data.qpos[4 * i : 4 * i + 4] = [np.cos(q / 2), *(np.sin(q / 2) * about)]
        elif self.model.nu == 0:
            self.data.qpos[:] = bent(n)

    def step(self, n: int) -> None:
        """Make n steps."""
        self._step(self.model, self.data, n)


def reset(runner: TreeRunner, arm: bool = False) -> None:
    """The start of a runner's worlds."""
    s = np.zeros((runner.numbers().shape[0], runner.worlds))
    angles = bent(len(runner.forest))
    for (i, name), row in runner.rows.items():
        if name == "q" and not arm:
            s[row] = angles[i]
        if name == "rotation":
            about = np.array([0.0, 1.0, 0.0]) if i % 2 == 0 else np.array([0.0, 0.0, 1.0])
            s[row] = np.array([*(np.sin(angles[i] / 2) * about), np.cos(angles[i] / 2)])[:, None]
    runner.state.assign(s.ravel())


def cases(sizes: tuple[int, ...] = (10, 30, 100)) -> dict[str, tuple[Forest, MujocoTree, int]]:
    """Forest, peer and steps of a round, by name."""
    out = {}
    for n in sizes:
        axes = ("yz" * n)[:n]
        steps = {10: 1000, 30: 300, 100: 60}.get(n, 300)
        out[f"{n} hinges"] = hinges(axes), MujocoTree(axes), steps
        out[f"{n} hinges, friction"] = hinges(axes, **FRICTION), MujocoTree(axes, friction=0.05), steps
        out[f"{n} balls"] = balls(n), MujocoTree("b" * n), steps // 2
        out[f"{n} balls, friction"] = balls(n, **FRICTION), MujocoTree("b" * n, friction=0.05), steps // 2
    out["arm"] = hinges(ARM, ARM_MASSES, **ARM_LAWS), MujocoTree(ARM, ARM_MASSES, 0.1, arm=True), 400
    return out


def moves(name: str, runner: TreeRunner, peer: MujocoTree, steps: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """What a round does in each engine: a piece of motion from the start; the arm's targets change every 20 steps."""
    if name != "arm":

        def ours() -> None:
            reset(runner)
            runner.step(steps)

        def theirs() -> None:
            peer.reset()
            peer.step(steps)

        return ours, theirs
    commands = runner.laws.numpy().reshape(len(runner.forest), -1)[:, list(LAWS).index("servo_position")]
    clock = {"ours": 0, "theirs": 0}

    def target(who: str) -> float:
        clock[who] += 1
        return float(np.sin(3.0 * clock[who] * 20 * H))

    def arm() -> None:
        for _ in range(steps // 20):
            commands[:] = target("ours")
            runner.step(20)

    def other_arm() -> None:
        for _ in range(steps // 20):
            peer.data.ctrl[:] = target("theirs")
            peer.step(20)

    return arm, other_arm


def measure(name: str, forest: Forest, peer: MujocoTree, steps: int, rounds: int, **options: Any) -> None:
    """Print the cost of one form of a case."""
    started = time.process_time()
    runner = TreeRunner(forest, H, **options)
    reset(runner, name == "arm")
    runner.step(1)
    compiling = time.process_time() - started
    reset(runner, name == "arm")
    ours, theirs = moves(name, runner, peer, steps)
    pair = interleave(ours, theirs, rounds=rounds, steps=(steps, steps))
    passes = runner.iterations.numpy()[0] / (20 if name == "arm" else steps)
    form = "specialized" if options.get("specialize") else "generic"
    line(name, form, pair, f"passes {passes:.2f}  first step {compiling:.1f} s")


def line(name: str, form: str, pair: Any, more: str = "") -> None:
    """Print a row of the table."""
    ours, peer = (np.median(t) * 1e6 for t in (pair.ours, pair.peer))
    print(f"{name:22s} {form:30s} {ours:8.2f} µs  MuJoCo {peer:8.2f} µs  ratio {pair.ratio:.3f}  {more}", flush=True)


def measure_simulation(name: str, peer: MujocoTree, steps: int, rounds: int, friction: float, special: bool = False) -> None:
    """Print the cost of a simulation of a case, a default one or one that is specialized."""
    arm, form = name == "arm", "default" + ", specialized" * special
    sim = sh.Simulation(scene(peer.joints, ARM_MASSES if arm else None, friction, arm), H, specialize=special)
    if not arm:

        def restart() -> None:  # and a step each: what a reset costs is no part of a step
            sim.reset()
            peer.reset()
            sim.step()
            peer.step(1)

        restart()
        sim.step(steps)
        runs = (lambda: sim.step(steps)), (lambda: peer.step(steps))
        line(name, form, interleave(*runs, rounds=rounds, steps=(steps, steps), before=restart))
        return
    position, clock = sim.target.position, {"ours": 0, "theirs": 0}

    def target(who: str, each: int) -> float:
        clock[who] += each
        return float(np.sin(3.0 * clock[who] * H))

    for each in (20, 1):  # steps of a call, before which all targets are set by array

        def ours(each: int = each) -> None:
            for _ in range(steps // each):
                position[:] = target("ours", each)
                sim.step(each)

        def theirs(each: int = each) -> None:
            for _ in range(steps // each):
                peer.data.ctrl[:] = target("theirs", each)
                peer.step(each)

        ours()
        how = form if each > 1 else f"{form}, 1 a call"
        line(name, how, interleave(ours, theirs, rounds=rounds, steps=(steps, steps)))


def measure_humanoid(rounds: int, steps: int = 200) -> None:
    """Print the cost of Gymnasium's humanoid, falling without contact, both engines at its own step."""
    import mujoco

    found = find_spec("gymnasium")
    if found is None or found.origin is None:
        print("humanoid: gymnasium is not installed")
        return
    path = Path(found.origin).parent / "envs/mujoco/assets/humanoid.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model = spec.compile()
    data, sim = mujoco.MjData(model), sh.Simulation(sh.load_mjcf(path, contact=False), model.opt.timestep)

    def restart() -> None:
        sim.reset()
        mujoco.mj_resetData(model, data)
        sim.step()
        mujoco.mj_step(model, data)

    restart()
    sim.step(steps)
    runs = (lambda: sim.step(steps)), (lambda: mujoco.mj_step(model, data, steps))
    pair = interleave(*runs, rounds=rounds, steps=(steps, steps), before=restart)
    line("humanoid", "default", pair, f"in joint coordinates: {sim.solver._lean}")


def main(arguments: list[str]) -> None:
    """Print a table."""
    wp.config.quiet = True
    quick = "--quick" in arguments
    names = [a for a in arguments if not a.startswith("--")]
    for name, (forest, peer, steps) in cases((10, 30) if quick else (10, 30, 100)).items():
        if names and name not in names:
            continue
        friction = float(forest.links[0].laws.get("friction_static", 0.0))
        for special in (False, True) if "--specialize" in arguments and len(forest) <= 30 else (False,):
            measure_simulation(name, peer, steps, 5 if quick else 15, friction, special)
        if "--default" in arguments:
            continue
        for specialize in (False, True):
            if specialize and (len(forest) > 30 or (quick and len(forest) > 10)):
                continue
            if "--generic" in arguments and specialize:
                continue
            measure(name, forest, peer, steps, 5 if quick else 15, specialize=specialize)
    if not names or "humanoid" in names:
        measure_humanoid(5 if quick else 15)


if __name__ == "__main__":
    main(sys.argv[1:])
