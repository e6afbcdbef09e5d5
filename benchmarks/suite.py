"""The list of benchmarks: what is measured, how, and what it should come to."""

import inspect
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import sharnir as sh
from benchmarks.scenes import (
    LENGTH,
    ROPE_LENGTH,
    SPAN,
    ElasticaRope,
    MujocoChain,
    MujocoRope,
    PinocchioChain,
    RapierRod,
    ScipyChain,
    arms,
    chain,
    heavy_pendulum,
    rigid_pendulum,
    rope,
    swing_energy,
    tip,
)
from benchmarks.timing import Pair, busy_neighbour, interleave, wait

DT = 1e-3  # s
ITERATIONS = 20  # velocity sweeps; tolerance 0 has all of them made
POSITION_ITERATIONS = inspect.signature(sh.SolverSequential).parameters["position_iterations"].default
NOSLIP = 20  # MuJoCo's second solver, without which its friction creeps
BUDGET = 200e-6  # s
FINE = 1e-4  # s, step of the hinge chains
# s, the largest steps at which a swinging rope of 50 segments lasts 10 s: with ours its period is 2 % too long (it is stable
# beyond 0.4 s), MuJoCo's flex stretches by 12 % (by more with longer steps), its capsules and PyElastica fail above
SEGMENTS, ROPE_DT, FLEX_DT, CAPSULES_DT, ELASTICA_DT = 50, 80e-3, 10e-3, 10e-3, 2e-4
DROOP = 1.0  # rad
ROD: dict[str, Any] = {"friction": 1.5, "length": 0.2, "mass": 1.0}  # N·m, m, kg: gravity's torque on it is 0.98 N·m


@dataclass(frozen=True)
class Figure:
    """What came out: ours, the peer's, and the ratio where it means something. A speed-up is peer over ours."""

    ours: float
    peer: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Target:
    """A bound for `of` ("ours" or "ratio")."""

    of: str
    relation: str
    value: float
    unit: str = ""

    def met(self, figure: Figure) -> bool | None:
        """Whether the figure keeps the bound; None where there is nothing to compare."""
        value = getattr(figure, self.of)
        return None if value is None else bool(value <= self.value if self.relation == "≤" else value >= self.value)

    def __str__(self) -> str:
        return f"{self.relation} {self.value:g} {self.unit}".strip()


@dataclass(frozen=True)
class Benchmark:
    """One row of the table; `measure(quick)` returns its figure. Slow ones are left out of a quick run unless named."""

    name: str
    about: str
    unit: str
    measure: Callable[[bool], Figure]
    target: Target | None = None
    slow: bool = False


# How a chain is stepped; the sweeps of the first are all made
WAYS: dict[str, dict[str, Any]] = {
    "sequential": {"solver": "sequential", "tolerances": sh.Tolerances(iterations=ITERATIONS, tolerance=0.0)},
    "direct": {"solver": "direct"},
}


def simulate(
    way: str, n: int, joint: str, *, droop: float = 0.0, dt: float = DT, friction: float = 0.0, **options: Any
) -> sh.Simulation:
    """Our chain with the settings of every benchmark."""
    return sh.Simulation(chain(n, joint, droop, friction=friction), dt, **WAYS[way], **options)


def step_each(sim: sh.Simulation, n: int) -> None:
    """n steps, one a call."""
    step = sim.step
    for _ in range(n):
        step()


def rounds(quick: bool) -> int:
    """Of runs that take turns."""
    return 7 if quick else 31


def micro(pair: Pair) -> Figure:
    """Medians in µs."""
    return Figure(float(np.median(pair.ours)) * 1e6, float(np.median(pair.peer)) * 1e6, pair.ratio)


# ---- speed -----------------------------------------------------------------------------------------------------------


def many_a_call(
    way: str, n: int, joint: str, quick: bool, *, droop: float = 0.0, dt: float = DT, friction: float = 0.0, **peer_options: Any
) -> Figure:
    """A step, of many in one call: the first of the fall, over and over."""
    sim = simulate(way, n, joint, droop=droop, dt=dt, friction=friction)
    peer = MujocoChain(n, joint, droop, dt, friction=friction, **peer_options)
    steps = max(20, (2000 if quick else 5000) // n)

    def restart() -> None:  # and a step each: what a reset costs is no part of a step
        sim.reset()
        peer.reset()
        sim.step()
        peer.step(1)

    runs = (lambda: sim.step(steps)), (lambda: peer.step(steps))
    return micro(interleave(*runs, rounds=rounds(quick), steps=(steps, steps), before=restart))


def one_a_call(way: str, n: int, joint: str, peer: Callable[[], Any], quick: bool, **given: Any) -> Figure:
    """A step, of one in a call; `peer` makes the other, if it is installed."""
    sim, steps = simulate(way, n, joint, **given), 300 if n < 100 else 60
    try:
        other = peer()
    except ImportError:
        alone = interleave(lambda: step_each(sim, steps), lambda: None, rounds=rounds(quick), steps=(steps, 1))
        return Figure(float(np.median(alone.ours)) * 1e6)
    each = interleave(lambda: step_each(sim, steps), lambda: other.step_each(steps), rounds=rounds(quick), steps=(steps, steps))
    return micro(each)


def cost_per_joint(way: str, joint: str, quick: bool, **given: Any) -> Figure:
    """A step divided by the number of joints: 1000 against 10.

    The long chain starts anew in every round: twenty sweeps do not hold a thousand joints for long.
    """
    long, short = (simulate(way, n, joint, **given) for n in (1000, 10))
    steps = 5 if quick else 10
    calls = (lambda: long.step(steps)), (lambda: short.step(100 * steps))
    return micro(interleave(*calls, rounds=rounds(quick), steps=(1000 * steps, 1000 * steps), before=long.reset))


def integration(quick: bool) -> Figure:
    """A hinge chain integrated at 1e-9 for 10 s, ms; the ratio is the speed-up."""
    model, peer = chain(10, "hinge", DROOP).build(), ScipyChain(10, DROOP)
    q, duration = np.zeros(10), 1.0 if quick else 10.0
    ours = partial(sh.dynamics.integrate, model, q, q, [duration], rtol=1e-9, atol=1e-9)
    pair = interleave(ours, lambda: peer.run(duration, 1e-9), rounds=2 if quick else 5, warm_up=1)
    return Figure(float(np.median(pair.ours)) * 1e3, float(np.median(pair.peer)) * 1e3, 1 / pair.ratio)


def rope_speed(peer: Callable[[], Any], dt: float, quick: bool) -> Figure:
    """CPU time of a simulated second of a swinging rope, ms, each engine at its largest step; the ratio is the speed-up."""
    sim, duration = sh.Simulation(rope(SEGMENTS), ROPE_DT), 0.36 if quick else 1.2
    steps = round(duration / ROPE_DT), round(duration / dt)
    try:
        other = peer()
    except ImportError:
        alone = interleave(lambda: sim.step(steps[0]), lambda: None, rounds=rounds(quick))
        return Figure(float(np.median(alone.ours)) / duration * 1e3)

    def restart() -> None:
        sim.reset()
        other.reset()

    calls = (lambda: sim.step(steps[0])), (lambda: other.step(steps[1]))
    pair = interleave(*calls, rounds=7 if quick else 15, before=restart)
    if other.failed:
        raise RuntimeError("the peer's rope failed: its step is too large")
    ours, theirs = (float(np.median(t)) / duration * 1e3 for t in (pair.ours, pair.peer))
    return Figure(ours, theirs, 1 / pair.ratio)


def cost_per_segment(quick: bool) -> Figure:
    """A step of a hanging rope divided by the number of segments: 1000 against 20."""
    long, short = (sh.Simulation(rope(n, 0.0), 15e-3) for n in (1000, 20))
    steps = 5 if quick else 10
    calls = (lambda: long.step(steps)), (lambda: short.step(50 * steps))
    return micro(interleave(*calls, rounds=rounds(quick), steps=(1000 * steps, 1000 * steps)))


def call_overhead(quick: bool) -> Figure:
    """What a call of `step()` costs beyond a step of many in one call."""
    sim = simulate("sequential", 10, "ball")
    steps = 300
    pair = interleave(lambda: step_each(sim, steps), lambda: sim.step(steps), rounds=rounds(quick), steps=(steps, steps))
    return Figure(pair.difference * 1e6)


def two_threads(quick: bool) -> Figure:
    """64 worlds on two threads against one."""
    two, one = (simulate("sequential", 10, "ball", worlds=64, threads=t) for t in (2, 1))
    calls = (lambda: two.step(10)), (lambda: one.step(10))
    figure = micro(interleave(*calls, rounds=rounds(quick), steps=(10, 10), clock=time.perf_counter))
    return Figure(figure.ours, figure.peer, 1 / figure.ratio if figure.ratio else None)


@cache
def budgeted(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps of 30 joints that do not converge within the budget, while another process computes: (steps,) each.

    Times of the steps, s; sweeps; and, taking turns with them, times of a loop that looks at the clock until the budget is
    over: what is beyond it there, the operating system took.
    """
    sim = sh.Simulation(arms(0.5), DT, tolerances=sh.Tolerances(iterations=1000, tolerance=1e-14), solver="sequential")
    steps = 1000 if quick else 10_000
    times, sweeps, waits = np.zeros(steps), np.zeros(steps, int), np.zeros(steps)
    with busy_neighbour():
        for _ in range(100):  # the first captures the stages and learns how long they take
            sim.step(budget=BUDGET)
        for i in range(steps):
            report = sim.step(budget=BUDGET)
            times[i], sweeps[i], waits[i] = report.elapsed, report.iterations, wait(BUDGET)
    return times, sweeps, waits


def budget_time(percent: float, quick: bool) -> Figure:
    """That percentile of the times, µs."""
    times, _, waits = budgeted(quick)
    ours, loop = (float(np.percentile(t, percent)) * 1e6 for t in (times, waits))
    return Figure(ours, loop)


def budget_sweeps(quick: bool) -> Figure:
    """Mean number of sweeps."""
    return Figure(float(budgeted(quick)[1].mean()))


FIRST_STEP = """
import time
started = time.perf_counter()
import sharnir
from benchmarks.scenes import chain
sharnir.Simulation(chain(10, "ball"), 1e-3, solver="sequential").step()
print(time.perf_counter() - started)
"""


def first_step(cache: str | None) -> float:
    """Import, scene, build and one step in a fresh interpreter, s; `cache` is where compiled kernels are kept."""
    environment = os.environ | ({"WARP_CACHE_PATH": cache} if cache else {})
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", FIRST_STEP], env=environment, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the first step in a fresh interpreter failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def cold_start(quick: bool) -> Figure:
    """With no compiled kernels."""
    with tempfile.TemporaryDirectory() as cache:
        return Figure(first_step(cache))


def warm_start(quick: bool) -> Figure:
    """With compiled kernels, median of a few."""
    first_step(None)
    return Figure(float(np.median([first_step(None) for _ in range(1 if quick else 5)])))


# ---- accuracy --------------------------------------------------------------------------------------------------------


def joint_gap(way: str, n: int, joint: str, droop: float, dt: float, quick: bool) -> Figure:
    """Largest distance between the two anchors of a joint in 10 s, seen every millisecond, over the length of a rod."""
    sim = simulate(way, n, joint, droop=droop, dt=dt)
    stride, largest = max(1, round(1e-3 / dt)), 0.0
    for _ in range(round((1.0 if quick else 10.0) / (stride * dt))):
        sim.step(stride)
        largest = max(largest, float(sim.constraint_error()[..., 0].max()))
    return Figure(largest / (LENGTH / n))


def energy_change(way: str, n: int, joint: str, droop: float, dt: float, quick: bool, *, duration: float = 2.0) -> Figure:
    """Energy after a time against that at the start, in % of what the swing has."""
    sim, peer = simulate(way, n, joint, droop=droop, dt=dt), MujocoChain(n, joint, droop, dt)
    steps, percent = round(duration / dt), 100 / swing_energy(droop)
    start, peer_start = sim.energy().total, sum(peer.energy())
    sim.step(steps)
    peer.step(steps)
    ours, other = (sim.energy().total - start) * percent, (sum(peer.energy()) - peer_start) * percent
    return Figure(ours, None, None) if peer.failed else Figure(ours, other, abs(ours / other))


@cache
def exact_tip(n: int, joint: str, droop: float) -> np.ndarray:
    """(3,) free end of a chain after 1 s, m, integrated to ten digits."""
    sim = simulate("direct", n, joint, droop=droop)
    sim.integrate(1.0, rtol=1e-11, atol=1e-11)
    return tip(sim, n)


def tip_error(way: str, n: int, joint: str, droop: float, dt: float, quick: bool) -> Figure:
    """How far the free end is from where it should be after 1 s, m."""
    sim, peer, exact = simulate(way, n, joint, droop=droop, dt=dt), MujocoChain(n, joint, droop, dt), exact_tip(n, joint, droop)
    sim.run(1.0)
    peer.step(round(1.0 / dt))
    ours, other = (float(np.linalg.norm(end - exact)) for end in (tip(sim, n), peer.tip()))
    return Figure(ours, other, ours / other)


@cache
def heavy_load(way: str, dt: float) -> tuple[Figure, Figure]:
    """300 kg on 30 links of 0.3 kg, let go at 30°: stretch in 10 s, and how wide it swings from 5 s on, degrees."""
    n, given = 30, {"droop": np.radians(60.0), "length": 3.0, "mass": 0.3, "load": 300.0}
    sim, peer = sh.Simulation(chain(n, "ball", **given), dt, **WAYS[way]), MujocoChain(n, "ball", dt=dt, **given)
    ends: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(round(10.0 / dt)):
        sim.step()
        peer.step(1)
        ends.append((sim.body("load").com, peer.tip()))
    x, z = np.array(ends).T[[0, 2]]  # (engines, steps)
    stretch = np.abs(np.hypot(x, z) / given["length"] - 1).max(1)
    widest = np.degrees(np.arctan2(np.abs(x), -z))[:, len(ends) // 2 :].max(1)
    figures = [Figure(float(f[0]), None if peer.failed else float(f[1])) for f in (stretch, widest)]
    return figures[0], figures[1]


@cache
def hanging(quick: bool) -> tuple[Figure, Figure]:
    """A rope hung at both ends at our largest step, MuJoCo's flex at its: error of the sag, and stretch, after 10 s."""
    sim, peer = (
        sh.Simulation(rope(SEGMENTS, 0.0), ROPE_DT),
        MujocoRope(SEGMENTS, FLEX_DT, flex=True, swing=0.0),
    )
    duration = 1.0 if quick else 10.0
    sim.step(round(duration / ROPE_DT))
    peer.step(round(duration / FLEX_DT))
    k = 1.0  # 2 sinh(k)/k = length/span: Newton's iteration
    for _ in range(50):
        k -= (np.sinh(k) - ROPE_LENGTH / SPAN * k) / (np.cosh(k) - ROPE_LENGTH / SPAN)
    sag = SPAN / (2 * k) * (np.cosh(k) - 1)
    both = np.array([sim.rope("rope").position, peer.points()])
    off = np.abs(-both[:, :, 2].min(1) / sag - 1)
    stretch = np.abs(np.linalg.norm(np.diff(both, axis=1), axis=2) / (ROPE_LENGTH / SEGMENTS) - 1).max(1)
    return Figure(float(off[0]), float(off[1])), Figure(float(stretch[0]), float(stretch[1]))


def period(angle: np.ndarray, dt: float) -> float:
    """Mean time between upward passages of zero, s."""
    up = np.flatnonzero((angle[:-1] < 0) & (angle[1:] >= 0))
    return float(np.diff(up + angle[up] / (angle[up] - angle[up + 1])).mean() * dt)


@cache
def loaded_rope(dt: float) -> tuple[Figure, Figure, Figure]:
    """A heavy pendulum on a light rope, 10 s: stretch, error of its period in %, width of the swing from 5 s on, degrees."""
    sim = heavy_pendulum(dt)
    view, ends, stretch = sim.rope("rope"), [], 0.0
    for _ in range(round(10.0 / dt)):
        sim.step()
        ends.append(view.position[-1])
        stretch = max(stretch, view.stretch)
    swing = np.arctan2(np.array(ends)[:, 0], -np.array(ends)[:, 2])
    exact = period(rigid_pendulum(np.linspace(5e-3, 10.0, 2000)), 5e-3)
    off = abs(period(swing, dt) / exact - 1) * 100
    return Figure(stretch), Figure(off), Figure(float(np.degrees(np.abs(swing[len(swing) // 2 :]).max())))


def angle(rotation: np.ndarray) -> float:
    """Of a quaternion x, y, z, w; small ones are exact, too."""
    return float(2 * np.arctan2(np.linalg.norm(rotation[:3]), abs(rotation[3])))


def hold(joint: str, peer: Callable[..., Any], options: dict[str, Any], quick: bool) -> Figure:
    """How far a level rod turns in 10 s whose joint's friction is half as much again as gravity needs, rad."""
    sim = sh.Simulation(chain(1, joint, **ROD), DT, **WAYS["sequential"])
    steps = round((1.0 if quick else 10.0) / DT)
    sim.step(steps)
    ours = angle(sim.body("rod 0").rotation)
    if peer is RapierRod and find_spec("rapier3d") is None:
        return Figure(ours)
    other = peer(joint=joint, **ROD, **options)
    other.step(steps)
    return Figure(ours, angle(other.rotation()))


# ---- the list --------------------------------------------------------------------------------------------------------

SPEED = [
    Benchmark("ball-chain", "step of a 10-ball chain, many a call; MuJoCo", "µs",
              partial(many_a_call, "sequential", 10, "ball"), Target("ratio", "≤", 2.0, "×")),
    Benchmark("ball-chain-single", "step of a 10-ball chain, 1 a call; MuJoCo", "µs",
              partial(one_a_call, "sequential", 10, "ball", partial(MujocoChain, 10, "ball")), Target("ratio", "≤", 2.0, "×")),
    Benchmark("hinge-chain", "step of a 10-hinge chain, many a call; MuJoCo", "µs",
              partial(many_a_call, "sequential", 10, "hinge")),
    Benchmark("hinge-chain-single", "step of a 10-hinge chain, 1 a call; MuJoCo", "µs",
              partial(one_a_call, "sequential", 10, "hinge", partial(MujocoChain, 10, "hinge"))),
    *(
        Benchmark(f"{joint}-friction-{friction:g}{'-noslip' * bool(noslip)}",
                  f"step of a 10-{joint} chain, friction {friction:g} N·m; MuJoCo{f', noslip {noslip}' * bool(noslip)}", "µs",
                  partial(many_a_call, "sequential", 10, joint, friction=friction, noslip=noslip),
                  target if friction == 0.2 and not noslip else None)
        for joint, target in (("ball", Target("ratio", "≤", 0.8, "×")), ("hinge", Target("ratio", "≤", 2.5, "×")))
        for friction in (0.2, 1.0)
        for noslip in (0, NOSLIP)
    ),
    *(
        Benchmark(f"direct-{n}", f"step of a {n}-ball chain, direct; MuJoCo", "µs",
                  partial(many_a_call, "direct", n, "ball"), Target("ratio", "≤", bound, "×"))
        for n, bound in ((10, 0.9), (30, 0.35), (100, 0.045))
    ),
    *(
        Benchmark(f"direct-{joint}-friction-{friction:g}", f"the same of 10 {joint}s, friction {friction:g} N·m; MuJoCo", "µs",
                  partial(many_a_call, "direct", 10, joint, friction=friction),
                  Target("ratio", "≤", bound, "×") if friction == 0.2 else None)
        for joint, bound in (("ball", 0.3), ("hinge", 0.7))
        for friction in (0.2, 1.0)
    ),
    *(
        Benchmark(f"direct-hinge-{n}", f"step of a {n}-hinge chain, direct, many a call; MuJoCo", "µs",
                  partial(many_a_call, "direct", n, "hinge", droop=DROOP, dt=FINE, constraints=False),
                  Target("ratio", "≤", bound, "×"))
        for n, bound in ((10, 0.9), (30, 0.8), (100, 0.3))
    ),
    *(
        Benchmark(f"direct-hinge-single-{n}", f"the same of {n} hinges, 1 a call; Pinocchio", "µs",
                  partial(one_a_call, "direct", n, "hinge", partial(PinocchioChain, n, DROOP, FINE), droop=DROOP, dt=FINE),
                  Target("ratio", "≤", 1.0, "×") if n == 10 else None)
        for n in (10, 30, 100)
    ),
    Benchmark("joint-cost", "cost per joint, chain of 1000; chain of 10", "µs",
              partial(cost_per_joint, "sequential", "ball"), Target("ratio", "≤", 1.3, "×")),
    Benchmark("direct-cost", "the same, direct", "µs",
              partial(cost_per_joint, "direct", "ball"), Target("ratio", "≤", 1.2, "×")),
    Benchmark("direct-hinge-cost", "the same, direct, hinges", "µs",
              partial(cost_per_joint, "direct", "hinge", droop=DROOP, dt=FINE), Target("ratio", "≤", 1.2, "×")),
    Benchmark("integration", "10 s of a 10-hinge chain at 1e-9; SciPy's DOP853 (speed-up)", "ms",
              integration, Target("ratio", "≥", 20.0, "×")),
    *(
        Benchmark(f"rope-{name}", f"1 s of a swinging rope, {ROPE_DT * 1e3:g} ms; {versus}, {dt * 1e3:g} ms (speed-up)", "ms",
                  partial(rope_speed, partial(peer, SEGMENTS, dt), dt), Target("ratio", "≥", bound, "×"))
        for name, versus, peer, dt, bound in (
            ("flex", "MuJoCo's flex", partial(MujocoRope, flex=True), FLEX_DT, 5.0),
            ("capsules", "MuJoCo's capsules", partial(MujocoRope, flex=False), CAPSULES_DT, 20.0),
            ("elastica", "PyElastica", ElasticaRope, ELASTICA_DT, 20.0),
        )
    ),
    Benchmark("rope-cost", "cost per segment, rope of 1000; of 20", "µs", cost_per_segment, Target("ratio", "≤", 1.2, "×")),
    Benchmark("overhead", "overhead of a call of step()", "µs", call_overhead, Target("ours", "≤", 8.0, "µs")),
    Benchmark("threads", "step of 64 chains, 2 threads; 1 thread (speed-up)", "µs",
              two_threads, Target("ratio", "≥", 1.8, "×")),
    *(
        Benchmark(f"budget-{name}", f"{name} of a step of 30 joints, budget 200 µs; idle loop", "µs",
                  partial(budget_time, percent), Target("ours", "≤", 300.0, "µs") if name == "p99" else None)
        for name, percent in (("p50", 50.0), ("p99", 99.0), ("max", 100.0))
    ),
    Benchmark("budget-sweeps", "sweeps of such a step, mean", "", budget_sweeps),
    Benchmark("cold-start", "import to first step, kernels compiled", "s",
              cold_start, Target("ours", "≤", 40.0, "s"), slow=True),
    Benchmark("warm-start", "import to first step, kernels cached", "s", warm_start, Target("ours", "≤", 2.0, "s")),
]  # fmt: skip

ACCURACY = [
    *(
        Benchmark(f"{name}-{joint}-{dt * 1e3:g}ms", f"{about}, 10-{joint} chain, dt = {dt * 1e3:g} ms{versus}", unit,
                  partial(measure, "sequential", 10, joint, droop, dt))
        for name, about, versus, unit, measure in (
            ("gap", "joint gap / rod length, 10 s", "", "", joint_gap),
            ("energy", "energy change in 2 s", "; MuJoCo", "%", energy_change),
        )
        for joint, droop in (("hinge", 1.0), ("ball", 0.0))
        for dt in (1e-3, 0.5e-3)
    ),
    Benchmark("direct-gap", "joint gap / rod length, 10 s, 10-ball chain, 1 ms, direct", "",
              partial(joint_gap, "direct", 10, "ball", 0.0, DT)),
    *(
        Benchmark(f"{way}-{name}", f"{about}, 10-ball chain, 1 ms, {way}; MuJoCo", unit,
                  partial(measure, way, 10, "ball", 0.0, DT))
        for name, about, unit, measure in (
            ("energy", "energy change in 10 s", "%", partial(energy_change, duration=10.0)),
            ("tip", "error of the free end after 1 s", "m", tip_error),
        )
        for way in ("sequential", "direct")
    ),
    *(
        Benchmark(f"heavy-{name}-{dt * 1e3:g}ms",
                  f"300 kg on 0.3 kg of links, {dt * 1e3:g} ms, direct: {about}; MuJoCo (– where it fails)", unit,
                  partial(lambda dt, i, quick: heavy_load("direct", dt)[i], dt, i), target)
        for dt in (1e-3, 5e-3)
        for i, (name, about, unit, target) in enumerate((
            ("stretch", "stretch in 10 s", "", Target("ours", "≤", 1e-5)),
            ("swing", "reaches after 5 s, from 30°", "°", Target("ours", "≥", 29.9, "°")),
        ))
    ),
    *(
        Benchmark(f"rope-{name}", f"hanging rope, {ROPE_DT * 1e3:g} ms: {about}; MuJoCo's flex, {FLEX_DT * 1e3:g} ms", "",
                  partial(lambda i, quick: hanging(quick)[i], i), Target("ours", "≤", bound))
        for i, (name, about, bound) in enumerate((("sag", "error of its sag", 3e-3), ("stretch", "stretch", 1e-6)))
    ),
    *(
        Benchmark(f"rope-heavy-{name}-{dt * 1e3:g}ms", f"300 kg on 0.3 kg of rope, {dt * 1e3:g} ms: {about}", unit,
                  partial(lambda dt, i, quick: loaded_rope(dt)[i], dt, i), target)
        for dt, bound in ((5e-3, 0.3), (15e-3, 0.6))
        for i, (name, about, unit, target) in enumerate((
            ("stretch", "stretch in 10 s", "", Target("ours", "≤", 1e-6)),
            ("period", "error of its period", "%", Target("ours", "≤", bound, "%")),
            ("swing", "reaches after 5 s, from 30°", "°", Target("ours", "≥", 29.5, "°")),
        ))
    ),
]  # fmt: skip

PEERS: list[tuple[str, str, Callable[..., Any], dict[str, Any]]] = [
    ("mujoco", "MuJoCo", MujocoChain, {"n": 1}),
    ("mujoco-noslip", f"MuJoCo, noslip {NOSLIP}", MujocoChain, {"n": 1, "noslip": NOSLIP}),
    ("rapier", "Rapier, motor", RapierRod, {}),
    ("rapier-reduced", "Rapier, motor, reduced", RapierRod, {"reduced": True}),
]
HOLD = [
    Benchmark(f"hold-{joint}-{name}", f"turn of a held rod in 10 s, {joint}; {versus}", "rad",
              partial(hold, joint, peer, options), Target("ours", "≤", 1e-12, "rad"))
    for joint in ("hinge", "ball")
    for name, versus, peer, options in PEERS
]  # fmt: skip

BENCHMARKS = SPEED + ACCURACY + HOLD
