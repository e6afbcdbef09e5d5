"""What the commands of `sharnir` do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import sharnir
from sharnir.cli import examples
from sharnir.cli.subjects import is_scene_file, made, own, recorded, values_of
from sharnir.cli.warmup import DEMO, DEMO_MACHINE, compile_ahead, compile_all
from sharnir.core.misspellings import meant
from sharnir.core.spatial import quat_conjugate, quat_rotate
from sharnir.core.strided import of_first
from sharnir.core.types import PRECISION
from sharnir.errors import SimulationError, StepWarning
from sharnir.io import record_reader as recordings
from sharnir.io.check import check_file
from sharnir.model.model import MOTIONS
from sharnir.runtime.simulation import Simulation

HEADINGS = ("scene", "time, s", "steps", "µs/step", "× real time", "largest gap, m", "energy drift, %", "above tolerance")

MACHINE, AT_WORK = "krt100_trailer", 6.0  # the demo's machine, and s that it works

# ---- info ----


def warmup(device: str, into: str | None) -> int:
    """All kernels, compiled now; in a folder of their own, if one is named."""
    import warp as wp

    known = [d.alias for d in wp.get_devices()]
    if device not in known:
        raise SimulationError(f"device {device!r} is not here; available: {', '.join(map(repr, known))}")
    if into is None:
        _say(f"kernels for {device} ready in {compile_all(device=device):.1f} s")
        return 0
    folder = Path(into).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    # Warp takes its folder when it is imported: a process that begins there
    command = [sys.executable, "-m", "sharnir", "warmup", "--device", device]
    made = subprocess.run(command, env=os.environ | {"WARP_CACHE_PATH": str(folder)}, check=False).returncode
    if made == 0:
        _say(f"they are in {folder}: copy it to machines with the same sharnir, Warp {wp.config.version} and kind of processor,")
        _say(f"and set WARP_CACHE_PATH={folder} there")
    return made


def info(name: str | None, compile_now: bool, values: Sequence[str] = (), roots: Sequence[Path] = ()) -> int:
    """What is installed, which examples there are, or what one is made of."""
    if compile_now:
        _say(f"kernels for the CPU ready in {compile_all(rare=False):.1f} s")
    if name is not None:
        return _describe(name, values, roots)
    if compile_now:
        return 0
    import warp as wp

    devices = ", ".join(f"{d.alias} ({d.name})" if d.name != d.alias else str(d.alias) for d in wp.get_devices())
    facts = [
        ("sharnir", sharnir.__version__), ("Warp", wp.config.version), ("precision", PRECISION), ("devices", devices),
        ("examples", str(examples.example_folder() or "none found")),
    ]  # fmt: skip
    for what, value in facts:
        _say(f"{what:<10} {value}")
    _say("")
    known = examples.examples()
    width = max(map(len, known), default=0)
    for example, path in known.items():
        _say(f"  {example:<{width}}  {examples.summary(path)}")
    return 0


def _describe(name: str, values: Sequence[str], roots: Sequence[Path]) -> int:
    """What an example or a scene file is made of."""
    if is_scene_file(name):
        sim, about = own(Path(name), None, values, roots)[0], name
    else:
        module = examples.load(name)
        sim, about = module.make(), (module.__doc__ or "").strip()
    model = sim.model
    names = list(model.body_names)
    _say(about)
    _say("")
    motion, mass = model.bodies.motion.numpy(), of_first(model.bodies.mass)
    words = {number: word for word, number in MOTIONS.items()}
    rows = [
        (body, words[int(motion[i])], f"{mass[i]:.6g}" if mass[i] > 0 else "–", _shape(model.shapes[i]))
        for body, i in model.body_names.items()
        if i > 0
    ]
    _table(("body", "motion", "mass, kg", "shape"), rows)
    _say("")
    ends = zip(model.joint_names, model.joint_kinds, model.parents, model.children, strict=True)
    rows = [(joint, kind.kind, " ".join(kind.free) or "none", f"{names[a]} → {names[b]}") for joint, kind, a, b in ends]
    joints, gears = list(model.joint_names), model.gears
    for gear, i in model.gear_names.items():
        a, b = joints[gears.joint_a.numpy()[i]], joints[gears.joint_b.numpy()[i]]
        rows.append((gear, "Gear", f"ratio {gears.ratio.numpy()[i]:g}", f"{a} ~ {b}"))
    if rows:
        _table(("joint", "type", "free axes", "parent → child"), rows)
    else:
        _say("no joints")
    _say("")
    for note in model.notes:
        _say(f"note: {note}")
    _say(f"redundant rows: {', '.join(sim.redundant) or 'none'}")
    return 0


def _shape(shape: Any) -> str:
    return type(shape).__name__ if shape is not None else "–"


# ---- run, view ----


def check(files: Sequence[Path], values: Sequence[str], roots: Sequence[Path] = ()) -> int:
    """Everything that is wrong with scene files."""
    bad = 0
    for file in files:
        problems, notes = check_file(file, roots=roots, **values_of(values))
        for line in problems:
            sys.stderr.write(f"{line}\n")
        for line in notes:
            _say(f"note: {line}")
        bad += bool(problems)
        _say(f"{file}: {'ok' if not problems else f'{len(problems)} wrong'}")
    return int(bad > 0)


def run_file(path: Path, duration: float, values: Sequence[str], roots: Sequence[Path] = ()) -> int:
    """A scene file for a while: how fast, and where its energy stands."""
    sim, _ = own(path, None, values, roots)
    start, started = sim.energy().total, time.perf_counter()
    sim.run(duration)
    wall, energy = time.perf_counter() - started, sim.energy()
    _say(f"{path.name}: {duration:g} s simulated in {wall:.2f} s, step {1e3 * sim.dt:g} ms, {sim.solver_name}")
    _say(f"energy {start:.6g} J at the start, {energy.total:.6g} J now ({energy.kinetic:.6g} J of it kinetic)")
    gap = float(sim.constraint_error()[..., 0].max(initial=0.0))
    _say(f"largest joint gap {gap:.1e} m; {sim.health().not_converged} steps did not meet the tolerance")
    return 0


def run(name: str, duration: float = 5.0, values: Sequence[str] = (), roots: Sequence[Path] = ()) -> int:
    """An example and its check, or a scene file."""
    if is_scene_file(name):
        return run_file(Path(name), duration, values, roots)
    module = examples.load(name)
    started = time.perf_counter()
    try:
        module.check(module.make())
    except AssertionError as error:
        sys.stderr.write(f"sharnir: {name}: the check failed{f': {error}' if str(error) else ''}\n")
        return 1
    _say(f"{name}: ok ({time.perf_counter() - started:.1f} s)")
    return 0


def view(name: str, dt: float | None, options: dict[str, Any], values: Sequence[str] = (), roots: Sequence[Path] = ()) -> int:
    """An example, a scene of one's own or a robot in the browser."""
    from sharnir.core.extras import need

    need("viser", "view")
    sim, module = made(name, dt, values, roots)
    from sharnir.view import viewer

    options["follow"] = options.get("follow") or getattr(module, "FOLLOW", None)
    viewer.serve(sim, Path(name).stem.replace("_", " "), control=getattr(module, "control", None), **options)
    return 0


def html(
    name: str, dt: float | None, path: Path, duration: float, follow: str | None, values: Sequence[str] = (),
    roots: Sequence[Path] = (), trust: bool = False,
) -> int:  # fmt: skip
    """One HTML file of a motion: of an example or a scene of one's own, which is simulated, or of a recording."""
    from sharnir.view.page import Page

    if Path(name).suffix == ".mcap":
        _say(f"wrote {_recorded(Path(name), path, follow, roots, trust)}")
        return 0
    sim, module = made(name, dt, values, roots)
    control = getattr(module, "control", None)
    page = Page(sim, path, title=Path(name).stem.replace("_", " "), follow=follow or getattr(module, "FOLLOW", None))
    _film(sim, page, duration, control)
    _say(f"wrote {page.path}")
    return 0


def _film(sim: Simulation, page: Any, duration: float, control: Callable[[Any], None] | None) -> None:
    """Run a simulation for a page."""
    with page:
        for _ in range(max(1, round(duration / sim.dt))):
            if control is not None:
                control(sim)
            sim.step()


def _recorded(recording: Path, path: Path, follow: str | None, roots: Sequence[Path], trust: bool) -> Path:
    """The page of a recording; its looks are those of the scene that it was made of."""
    from sharnir.view.page import Page

    found = recordings.Recording(recording)
    sim = recorded(found, None, trust, roots)
    page = Page(sim, path, title=recording.stem.replace("_", " "), follow=follow)
    names = list(sim.model.body_names)
    at, turn, _ = poses_of(sim)
    place, turns = (np.repeat(x[None], len(found.time), 0) for x in (at, turn))
    for k, body in enumerate(names):
        if f"body/{body}.position" in found.names:
            place[:, k], turns[:, k] = found[f"body/{body}.position"], found[f"body/{body}.rotation"]
    ropes = [word for word in found.names if word.startswith("rope/") and word.endswith(".position")]
    for i, now in enumerate(found.time):
        lines = {word.removesuffix(".position"): found[word][i] for word in ropes}
        page.add(float(now), place[i], turns[i], lines)
    return page.write()


def poses_of(sim: Simulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the bodies of the first world are."""
    from sharnir.runtime.measures import poses

    return poses(sim, 0)


def drive(
    name: str, dt: float | None, options: dict[str, Any], values: Sequence[str] = (), record: Path | None = None,
    roots: Sequence[Path] = (),
) -> int:  # fmt: skip
    """A machine with its controls in the browser; recorded, where a file is named."""
    sim, module = made(name, dt, values, roots)
    if not sim.inputs:
        raise examples.UsageError(f"{name} has no inputs: add them with scene.add_input, or see `sharnir view {name}`")
    from sharnir.view import drive as desk

    options["follow"] = options.get("follow") or getattr(module, "FOLLOW", None)
    title = Path(name).stem.replace("_", " ")
    known = "" if values else name  # with values of its own, the scene is the one that is written in the recording
    desk.drive(sim, title, record=None if record is None else sim.record_file(record, name=known), **options)
    if record is not None:
        _say(f"wrote {record}: {record.stat().st_size / 1e6:.2f} MB; `sharnir replay {record}` makes the motion again")
    return 0


def score(name: str | None, out: Path, by_hand: bool, port: int) -> int:
    """Exercises: a list of them, or one by its automatic driver or by hand, with its protocol; 1 where it is not passed."""
    from sharnir.trainer.exercises.exercise import Session
    from sharnir.trainer.exercises.three import EXERCISES

    if name is None:
        width = max(map(len, EXERCISES))
        for exercise in EXERCISES.values():
            _say(f"  {exercise.name:<{width}}  {exercise.about}")
        return 0
    if name not in EXERCISES:
        raise examples.UsageError(f"no exercise is named {name!r}{meant(name, EXERCISES)}; there are: {', '.join(EXERCISES)}")
    session = Session(EXERCISES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)
        if by_hand:
            from sharnir.view import drive as desk

            desk.drive(
                session.sim, name.replace("_", " "), port=port, control=session.look, paused=True,
                follow=session.exercise.follow, until=lambda: session.over,
            )  # fmt: skip
        else:
            session.run(session.exercise.driver)
    if not session.over:
        _say("not finished")
        return 1
    _say(session.protocol.words())
    _say(f"wrote {session.protocol.html(out / f'{name}.html')}")
    return 0 if session.protocol.passed else 1


def bench(name: str, duration: float, dt: float | None, values: Sequence[str] = (), roots: Sequence[Path] = ()) -> int:
    """What a step takes: the middle, 99 % and the longest, and how much faster than the wall clock that is."""
    sim, module = made(name, dt, values, roots)
    control, took = getattr(module, "control", None), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)
        sim.step()  # which captures what is replayed
        for _ in range(max(10, round(duration / sim.dt))):
            if control is not None:
                control(sim)
            started = time.perf_counter()
            sim.step()
            took.append(time.perf_counter() - started)
    middle, rare, longest = 1e6 * np.quantile(took, (0.5, 0.99, 1.0))
    factor = len(took) * sim.dt / sum(took)
    rows = [(name, str(len(took)), f"{1e3 * sim.dt:g}", f"{middle:.1f}", f"{rare:.1f}", f"{longest:.1f}", f"{factor:.1f}")]
    _table(("scene", "steps", "dt, ms", "middle, µs", "99 %, µs", "longest, µs", "× real time"), rows, words=1)
    return 0


def compare(name: str, duration: float, out: Path) -> int:
    """What a step size costs an example."""
    from sharnir.study.compare import compare as compared

    found = compared(examples.load(name).make, duration=duration)
    _say(found.table())
    _say(f"wrote {found.plot(out / f'compare_{name}.png')}")
    return 0


# ---- demo ----


@dataclass
class Recording:
    """What the demo keeps of a run, one entry a picture."""

    steps: int = 0
    wall: float = 0.0  # s, stepping alone
    time: list[float] = field(default_factory=list)
    kinetic: list[float] = field(default_factory=list)
    potential: list[float] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)  # J, by friction since the start
    gap: float = 0.0  # m, the largest seen
    missed: int = 0  # steps that did not meet the tolerance
    pushed: float = 0.0  # s, until when something pushes from outside; energy is kept from there on, or taken by friction

    def row(self, name: str) -> tuple[str, ...]:
        """A line of the demo's table."""
        duration = self.time[-1] - self.time[0]
        total = np.add(self.kinetic, self.potential) + self.taken
        scale = max(max(self.kinetic), float(np.ptp(self.potential)), 1e-300)
        alone = total[np.array(self.time) > self.pushed - 1e-9]
        change = 100 * float(np.abs(alone - alone[0]).max()) / scale
        return (
            name, f"{duration:.1f}", str(self.steps), f"{1e6 * self.wall / self.steps:.1f}", f"{duration / self.wall:.0f}",
            f"{self.gap:.1e}", f"{change:.2g}", str(self.missed),
        )  # fmt: skip


def _record(
    name: str, sim: Simulation, duration: float, observe: Callable[[], Any], push: tuple[float, Callable[[], None]] | None = None
) -> Recording:
    """Run a simulation, looking at it 100 times a second; `push` is when a push ends and what ends it."""
    recording = Recording(pushed=push[0] if push else 0.0)
    stride = max(1, round(0.01 / sim.dt))
    pictures = max(1, round(duration / stride / sim.dt))
    before = sim.snapshot()
    sim.step()  # the first step captures the graph; what is timed is a running simulation
    sim.restore(before)
    rubbing = [sim.joint(joint) for joint in sim.model.joint_names] if sim.commands.acts.numpy().any() else []
    live, taken = sys.stderr.isatty(), 0.0
    for picture in range(pictures + 1):
        if picture:
            if push and sim.time > push[0] - 0.5 * sim.dt:
                push[1]()
            for n in [1] * stride if rubbing else [stride]:  # dissipation is reported for the last step only
                started = time.perf_counter()
                sim.step(n)
                recording.wall += time.perf_counter() - started
                recording.steps += n
                taken += sum(joint.dissipated for joint in rubbing)
        energy = sim.energy()
        recording.time.append(sim.time)
        recording.kinetic.append(energy.kinetic)
        recording.potential.append(energy.potential)
        recording.taken.append(taken)
        recording.gap = max(recording.gap, float(sim.constraint_error()[0, :, 0].max(initial=0.0)))
        recording.values.append(observe())
        if live and (picture % 10 == 0 or picture == pictures):
            bar = "█" * (24 * picture // pictures)
            sys.stderr.write(f"\r{name:<14} {bar:░<24} {sim.time:5.1f} s")
            sys.stderr.flush()
    sys.stderr.write("\n" if live else f"{name}: {sim.time:.1f} s simulated\n")
    recording.missed = sim.health().not_converged
    return recording


def demo(out: Path) -> int:
    """A door and a chain, a table, plots."""
    from sharnir.view import plots

    plots.require()
    compile_ahead(DEMO)
    example = examples.load("swinging_door")
    door, chain = example.make(), examples.load("chain").make()
    hinge = door.joint("hinge")

    def let_go() -> None:
        hinge.effort = 0.0

    nodes = _chain_nodes(chain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)  # the table counts them
        door_run = _record("swinging door", door, 2.0, lambda: (hinge.position, hinge.velocity), (example.PUSH, let_go))
        chain_run = _record("chain", chain, 5.0, nodes)

    _say("")
    _table(HEADINGS, [door_run.row("swinging door"), chain_run.row("chain")], words=1)
    _say("")
    angle, speed = np.array(door_run.values).T
    subtitles = [
        f"step {1e3 * sim.dt:g} ms, {len(sim.model.com) - 1} {'body' if len(sim.model.com) == 2 else 'bodies'}, "
        f"largest joint gap {run.gap:.1e} m"
        for sim, run in ((door, door_run), (chain, chain_run))
    ]
    pictures = [
        plots.door(out / "door.png", np.array(door_run.time), angle, speed, example.PUSH, subtitles[0]),
        plots.chain(
            out / "chain.png", np.array(chain_run.time), np.array(chain_run.values), np.array(chain_run.kinetic),
            np.array(chain_run.potential), subtitles[1],
        ),
    ]  # fmt: skip
    for path in pictures:
        _say(f"wrote {path}")
    compile_ahead(DEMO_MACHINE)
    page = _machine(out / "machine.html")
    _say(f"wrote {page}")
    _say(f"open {page} by a double click: a machine at work, to look at from all sides and to scrub")
    return 0


def _machine(path: Path) -> Path:
    """A machine at work, as one file."""
    from sharnir.view.page import Page

    example = examples.load(MACHINE)
    sim = example.make()
    sys.stderr.write(f"{MACHINE}: {AT_WORK:g} s for {path}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepWarning)
        page = Page(sim, path, fps=25.0, title="KRT100 with a trailer", follow=example.FOLLOW)
        _film(sim, page, AT_WORK, example.control)
    return page.path


def _chain_nodes(sim: Simulation) -> Callable[[], np.ndarray]:
    """A function that gives x and z of every hinge of the chain and of its tip, (hinges + 1, 2) m."""
    rods = [sim.body(f"rod{i}") for i in range(sum(name.startswith("rod") for name in sim.model.body_names))]
    hinges = np.array([sim.joint(f"hinge{i}").anchor for i in range(len(rods))])

    def poses() -> tuple[np.ndarray, np.ndarray]:
        return np.array([rod.com for rod in rods]), np.array([rod.rotation for rod in rods])

    centre, turn = poses()
    arm = quat_rotate(quat_conjugate(turn), hinges - centre)  # from a rod's middle to its upper hinge, in its own axes

    def nodes() -> np.ndarray:
        centre, turn = poses()
        reach = quat_rotate(turn, arm)
        return np.concatenate([centre + reach, (centre - reach)[-1:]])[:, [0, 2]]

    return nodes


# ---- words ----


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int | None = None) -> None:
    """An aligned table; the first `words` columns hold words (all if None), the others numbers."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    words = len(widths) if words is None else words

    def line(cells: Sequence[str]) -> str:
        padded = (c.ljust(w) if i < words else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return "  ".join(padded).rstrip()

    _say(line(headings))
    _say("  ".join("─" * w for w in widths))
    for row in rows:
        _say(line(row))
