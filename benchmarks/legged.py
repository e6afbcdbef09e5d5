"""Robots that stand, walk and fall, beside MuJoCo in the same run: a hexapod, Gymnasium's models, a hand, an arm; two machines.

MuJoCo uses Newton's method, the elliptic cone and the integrator `implicitfast`. Both engines read the same MJCF file, make
steps of the same size and are given the same commands. They take turns, CPU time of one thread; the ratio is the median over the
rounds. Sleep is off. Overlap is the largest at the end of a round, in both engines. The hand and the arm are those of
`gymnasium-robotics`, which this project does not require: without it they are left out. Machines are measured against real time.

Run: python -m benchmarks.legged [--quick] [NAME ...]
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import sharnir as sh
from benchmarks.timing import Pair, interleave
from sharnir.engine.direct.trees import Trees
from sharnir.io.mjcf import Imported, read_mjcf
from sharnir.io.mjcf_drives import law
from sharnir.machine_models.inputs import Inputs
from sharnir.machine_models.krt100 import Krt100
from sharnir.machine_models.mf4 import Mf4

GYM = ("ant", "humanoid", "half_cheetah", "hopper", "walker2d")
ROBOTICS = {"hand": "hand/manipulate_block.xml", "fetch": "fetch/pick_and_place.xml"}
FRAME = 5  # steps between two actions of Gymnasium's models, and in one call
Commands = Callable[[int], np.ndarray]


# ---- the hexapod -------------------------------------------------------------------------------------------------------------

STEP, CALL = 2e-3, 10  # s; steps in one call
COXA, FEMUR, TIBIA, FOOT = 0.06, 0.20, 0.25, 0.02  # m: lengths of the links, radius of a foot
HIPS = [
    (x, side * y, side * yaw) for side in (1, -1) for x, y, yaw in ((0.2, 0.12, 60.0), (0.0, 0.14, 90.0), (-0.2, 0.12, 120.0))
]
SERVO = 'kp="100" kv="1" forcerange="-15 15"'
GRIP = 'friction="0.8 0 0"'


def hexapod() -> str:
    """MJCF: a box of 6 kg on six legs of three hinges with servos and dry friction; round feet alone touch the ground."""
    legs = ""
    for k, (x, y, yaw) in enumerate(HIPS):
        foot = f'<geom type="sphere" size="{FOOT}" pos="0 0 {-TIBIA}" mass="0" contype="1" conaffinity="2" {GRIP}/>'
        tibia = f'<geom type="box" size="0.015 0.015 {TIBIA / 2}" pos="0 0 {-TIBIA / 2}" mass="0.3"/>{foot}'
        femur = f'<geom type="box" size="{FEMUR / 2} 0.02 0.02" pos="{FEMUR / 2} 0 0" mass="0.5"/>'
        coxa = f'<geom type="box" size="{COXA / 2} 0.02 0.02" pos="{COXA / 2} 0 0" mass="0.3"/>'
        legs += (
            f'<body name="coxa {k}" pos="{x} {y} 0" euler="0 0 {yaw}"><joint name="yaw {k}" axis="0 0 1"/>{coxa}'
            f'<body name="femur {k}" pos="{COXA} 0 0"><joint name="lift {k}" axis="0 1 0"/>{femur}'
            f'<body name="tibia {k}" pos="{FEMUR} 0 0"><joint name="knee {k}" axis="0 1 0"/>{tibia}</body></body></body>'
        )
    joints = [f"{kind} {k}" for k in range(len(HIPS)) for kind in ("yaw", "lift", "knee")]
    servos = "".join(f'<position name="{name}" joint="{name}" {SERVO}/>' for name in joints)
    return f"""<mujoco>
        <option timestep="{STEP}"/>
        <default>
            <joint frictionloss="0.1" range="{-math.degrees(1.0)} {math.degrees(1.0)}"/>
            <geom contype="0" conaffinity="0"/>
        </default>
        <worldbody>
            <geom type="plane" size="0 0 1" contype="2" conaffinity="1" {GRIP}/>
            <body name="trunk" pos="0 0 {TIBIA + FOOT}"><freejoint/>
                <geom type="box" size="0.25 0.15 0.05" mass="6"/>{legs}
            </body>
        </worldbody>
        <actuator>{servos}</actuator>
    </mujoco>"""


def gait(amplitude: float, phase: float) -> np.ndarray:
    """Targets of the 18 servos, rad: two tripods in turn swing their legs forward, lifted, and back; amplitude 0 stands."""
    out = np.zeros((len(HIPS), 3))
    for k in range(len(HIPS)):
        own, side = phase + math.pi * (k % 2), 1.0 if k < 3 else -1.0
        out[k, :2] = 0.25 * side * math.sin(own), 0.2 * math.cos(own)
    return np.asarray(amplitude * out.ravel())


# ---- both engines ------------------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """What was seen at the ends of calls."""

    overlap: float = 0.0  # m
    peer_overlap: float = 0.0
    warnings: list[str] = field(default_factory=list)


class Both:
    """One MJCF file in both engines, stepped by calls of so many steps, with the same commands before each.

    Args:
        commands: values of the actuators before call k.
        roots: folders in which further files may stand.
    """

    def __init__(self, path: Path, commands: Commands | None, call: int, *, roots: Sequence[Path] = (), **options: Any) -> None:
        import mujoco

        self.made: Imported = read_mjcf(path, roots=roots)
        self.peer = mujoco.MjModel.from_xml_path(str(path))
        self.peer.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        self.peer.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.peer.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.data = mujoco.MjData(self.peer)
        self.sim = sh.Simulation(self.made.scene, float(self.peer.opt.timestep), sleep=False, **options)
        self.call, self.seen, self.count, self.peer_count = call, Seen(), 0, 0
        self._step = mujoco.mj_step
        self.commands = commands or random_actions(self.peer)
        self._actuators()

    def _actuators(self) -> None:
        """Which actuators command which axes here."""
        rows: dict[str, list[tuple[int, int, float]]] = {"position": [], "velocity": [], "torque": []}
        for a in range(self.peer.nu):
            found, j = law(self.made, a), int(self.peer.actuator_trnid[a, 0])
            if self.made.name("actuator", a) in self.made.scene.inputs and found is not None:
                axis = int(self.sim.index(self.made.joints[j][0]).qd[0])
                rows[found[0]].append((a, axis, found[1]))
        self._targets = [
            (getattr(self.sim.target, word), *(np.array(column) for column in zip(*found, strict=True)))
            for word, found in rows.items()
            if found
        ]

    @property
    def left_out(self) -> int:
        """How many actuators of the file have no counterpart here."""
        return int(self.peer.nu) - sum(len(row[1]) for row in self._targets)

    def ours(self, calls: int = 1) -> None:
        """Make calls of our engine."""
        for _ in range(calls):
            values = self.commands(self.count)
            for target, which, axes, scale in self._targets:
                target[axes] = scale * values[which]
            self.sim.step(self.call)
            self.count += 1

    def theirs(self, calls: int = 1) -> None:
        """Make calls of MuJoCo."""
        for _ in range(calls):
            self.data.ctrl[:] = self.commands(self.peer_count)
            self._step(self.peer, self.data, self.call)
            self.peer_count += 1

    def look(self) -> None:
        """Note the overlaps of this moment."""
        points = self.sim.contacts()
        self.seen.overlap = max(self.seen.overlap, float(-points.gap.min(initial=0.0)))
        if self.data.ncon:
            self.seen.peer_overlap = max(self.seen.peer_overlap, float(-self.data.contact.dist.min()))


def random_actions(model: Any, seed: int = 0, count: int = 4096) -> Commands:
    """Actions within the ranges of the actuators, one after the other."""
    low, high = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, [-1.0, 1.0]).T
    values = np.random.default_rng(seed).uniform(low, high, (count, model.nu))
    return lambda k: values[k % count]


def compare(name: str, both: Both, quick: bool, note: str = "") -> None:
    """Print a row: both engines take turns from the start on."""
    calls, rounds = (5, 20) if quick else (10, 60)
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        try:
            both.ours()
            both.theirs()
            before = both.sim.health()
            pair = interleave(
                lambda: both.ours(calls),
                lambda: both.theirs(calls),
                rounds=rounds,
                steps=(calls * both.call, calls * both.call),
                before=both.look,
            )
        except sh.SimulationError as error:
            print(f"{name:30s} stops at {both.sim.time:.3f} s: {str(error).splitlines()[0]}", flush=True)
            return
    both.look()
    health = both.sim.health()
    failed, steps = health.not_converged - before.not_converged, health.steps - before.steps
    notes = [note] if note else []
    if not (both.sim.solver_name == "direct" and Trees.cover(both.sim.model)):
        notes.append(f"solver {both.sim.solver_name}, former passes")
    if both.left_out:
        notes.append(f"{both.left_out} actuators have no counterpart")
    notes += sorted({str(w.message).splitlines()[0] for w in got})
    row(name, pair, failed, steps, both.seen, "; ".join(notes))


HEAD = f"{'':30s} {'ours':>8s} {'MuJoCo':>8s} {'ratio':>6s} {'not converged':>14s} {'overlap':>9s} {'MuJoCo':>9s}"


def row(name: str, pair: Pair, failed: int, steps: int, seen: Seen, note: str) -> None:
    """Print a line of the table."""
    ours, peer = (float(np.median(t)) * 1e6 for t in (pair.ours, pair.peer))
    share = f"{failed} of {steps}"
    overlaps = f"{1e3 * seen.overlap:6.3f} mm {1e3 * seen.peer_overlap:6.3f} mm"
    print(f"{name:30s} {ours:5.0f} µs {peer:5.0f} µs {pair.ratio:6.2f} {share:>14s} {overlaps}  {note}".rstrip(), flush=True)


# ---- what is measured --------------------------------------------------------------------------------------------------------


@contextmanager
def written(text: str) -> Iterator[Path]:
    """A file with a text, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(text)
        yield path


def measure_hexapod(amplitude: float, quick: bool) -> None:
    """Standing (amplitude 0) or walking, by code for any forest and by code for this one where that is served."""
    name = "hexapod walking" if amplitude else "hexapod standing"
    for specialize in (None, True):
        with written(hexapod()) as path:
            try:
                commands = lambda k: gait(amplitude, 2 * math.pi * k * CALL * STEP)  # noqa: E731
                both = Both(path, commands, CALL, specialize=specialize)
            except sh.SimulationError as error:
                print(f"{name + ', specialized':30s} not served: {error}", flush=True)
                continue
        compare(name + ", specialized" * bool(specialize), both, quick)


def folder_of(package: str) -> Path | None:
    """Where a package is installed; None if it is not."""
    found = find_spec(package)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def measure_gym(name: str, quick: bool) -> None:
    """A model of Gymnasium with random actions, each held for five steps of the file."""
    home = folder_of("gymnasium")
    if home is None:
        print(f"{name:30s} left out: gymnasium is not installed")
        return
    compare(name, Both(home / f"envs/mujoco/assets/{name}.xml", None, FRAME), quick)


def measure_robotics(name: str, quick: bool) -> None:
    """A model of gymnasium-robotics with random actions."""
    home = folder_of("gymnasium_robotics")
    if home is None:
        print(f"{name:30s} left out: gymnasium-robotics is not installed")
        return
    assets = home / "envs/assets"
    compare(name, Both(assets / ROBOTICS[name], None, FRAME, roots=[assets]), quick)


def mf4_with_door() -> tuple[sh.Simulation, Inputs, Callable[[float], dict[str, float]]]:
    """MF-4 drives up to a door with friction in its hinge, pushes it open and backs off."""
    scene, robot = sh.Scene(), Mf4()
    scene.add_ground(material=sh.Material(friction=0.8))
    scene.add_body("door", sh.Box(0.04, 0.9, 2.0), mass=26.49, position=(2.4, 0, 1.01), material=sh.Material(friction=0.2))
    scene.add_joint("hinge", sh.Revolute("z", limit=(0.0, 2.2), friction=20.0), "world", "door", position=(2.4, 0.45, 1.01))
    robot.add(scene, position=(0.0, -0.15, 0.0))
    sim = sh.Simulation(scene, 2e-3)

    def drive(t: float) -> dict[str, float]:
        throttle = 0.0 if t < 4.0 else 0.5 if t < 7.0 else -0.5 if t < 9.0 else 0.0
        return {"shoulder": 2.3, "elbow": -2.3, "front": 0.117, "rear": 0.117, "throttle": throttle}

    return sim, Inputs(sim, robot.inputs()), drive


def krt100(trailer: str) -> tuple[sh.Simulation, Inputs, Callable[[float], dict[str, float]]]:
    """KRT100-MP with its trailer in a turn on level ground."""
    scene, robot = sh.Scene(), Krt100(trailer=trailer)
    scene.add_ground(material=sh.Material(friction=0.9))
    robot.add(scene)
    sim = sh.Simulation(scene, 5e-3)
    return sim, Inputs(sim, robot.inputs()), lambda t: {"throttle": 0.5, "steer": 0.05}


def measure_machine(name: str, make: Callable[[], tuple[sh.Simulation, Inputs, Any]], quick: bool, until: float = 10.0) -> None:
    """Print how many times faster than real time a drive is, as a user gets it."""
    sim, inputs, drive = make()
    inputs.step()
    took, steps, overlap, turn = 0.0, 0, 0.0, 50
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        while sim.time < (until / 4 if quick else until):
            for key, value in drive(sim.time).items():
                inputs[key] = value
            started = time.thread_time()
            try:
                inputs.step(turn)
            except sh.SimulationError as error:
                print(f"{name:30s} stops at {sim.time:.3f} s: {str(error).splitlines()[0]}", flush=True)
                break
            took, steps = took + time.thread_time() - started, steps + turn
            overlap = max(overlap, float(-sim.contacts().gap.min(initial=0.0)))
    health = sim.health()
    each, notes = took / max(1, steps), sorted({str(w.message).splitlines()[0] for w in got})
    path = "" if sim.solver_name == "direct" and Trees.cover(sim.model) else f"solver {sim.solver_name}, former passes"
    print(
        f"{name:30s} {1e6 * each:5.0f} µs {sim.dt / each:8.1f} × real time {health.not_converged:5d} of {health.steps} "
        f"{1e3 * overlap:6.3f} mm  {'; '.join(w for w in (path, *notes) if w)}",
        flush=True,
    )


CASES: dict[str, Callable[[bool], None]] = {
    "standing": lambda quick: measure_hexapod(0.0, quick),
    "walking": lambda quick: measure_hexapod(1.0, quick),
    **{name: (lambda quick, name=name: measure_gym(name, quick)) for name in GYM},  # type: ignore[misc]
    **{name: (lambda quick, name=name: measure_robotics(name, quick)) for name in ROBOTICS},  # type: ignore[misc]
    "mf4": lambda quick: measure_machine("MF-4 with the door, 2 ms", mf4_with_door, quick),
    "krt100": lambda quick: measure_machine("KRT100-MP, hitch, 5 ms", lambda: krt100("hitch"), quick),
    "krt100_rope": lambda quick: measure_machine("KRT100-MP, rope, 5 ms", lambda: krt100("rope"), quick),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.legged", description="Robots with contact beside MuJoCo.")
    parser.add_argument("--quick", action="store_true", help="few rounds: a look, not a result")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(CASES)}")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in CASES:
            parser.error(f"no case is named {name!r}; available: {', '.join(CASES)}")
    if find_spec("mujoco") is None:
        print("MuJoCo is not installed: pip install sharnir[io]")
        return 1
    print(HEAD, flush=True)
    for name in options.names or CASES:
        CASES[name](options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
