"""The benchmarks compare like with like, and their table says what was measured."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sharnir as sh
from benchmarks.__main__ import main, table
from benchmarks.scenes import (
    GRAVITY,
    LENGTH,
    MASS,
    ROPE_LENGTH,
    ElasticaRope,
    MujocoChain,
    MujocoRope,
    PinocchioChain,
    RapierRod,
    ScipyChain,
    arms,
    chain,
    rope,
    swing_energy,
    tip,
)
from benchmarks.suite import BENCHMARKS, ROD, WAYS, Benchmark, Figure, Target, angle, hold, simulate
from benchmarks.timing import busy_neighbour, interleave, wait

N = 10


@pytest.mark.parametrize(("joint", "droop"), [("ball", 0.0), ("hinge", 1.0)])
def test_both_engines_have_the_same_chain(joint: str, droop: float) -> None:
    pytest.importorskip("mujoco")
    dt = 1e-5
    sim, peer = sh.Simulation(chain(N, joint, droop), dt, solver="sequential"), MujocoChain(N, joint, droop, dt)
    masses = [body.mass for body in chain(N, joint, droop).bodies.values()]
    assert sum(masses) == pytest.approx(MASS, rel=1e-12)
    assert float(peer.model.body_mass.sum()) == pytest.approx(MASS, rel=1e-12)
    assert sim.energy().total == pytest.approx(-MASS * GRAVITY * LENGTH / 2 * np.sin(droop), abs=1e-9)
    np.testing.assert_allclose(tip(sim, N), peer.tip(), atol=1e-12)

    steps = round(0.1 / dt)
    sim.step(steps)
    peer.step(steps)
    potential, kinetic = peer.energy()
    apart = np.linalg.norm(tip(sim, N) - peer.tip())
    fell = np.linalg.norm(tip(sim, N) - LENGTH * np.array([np.cos(droop), 0.0, -np.sin(droop)]))
    print(f"{joint}: tips {apart:.1e} m apart after a way of {fell:.3f} m (6e-6 allowed, the peer being of first order)")
    print(f"kinetic {sim.energy().kinetic:.6f} and {kinetic:.6f} J, potential {sim.energy().potential:.6f} and {potential:.6f} J")
    assert fell > 0.02
    assert apart < 6e-6
    assert sim.energy().kinetic == pytest.approx(kinetic, rel=3e-4)
    assert sim.energy().potential == pytest.approx(potential, abs=3e-4 * kinetic)


def test_both_engines_have_the_same_load() -> None:
    pytest.importorskip("mujoco")
    dt, given = 1e-5, {"droop": 1.0, "length": 0.6, "mass": 0.3, "load": 5.0}
    sim, peer = sh.Simulation(chain(3, "ball", **given), dt, solver="direct"), MujocoChain(3, "ball", dt=dt, **given)
    start = peer.tip()
    np.testing.assert_allclose(sim.body("load").com, start, atol=1e-12)
    sim.step(5000)
    peer.step(5000)
    apart, way = np.linalg.norm(sim.body("load").com - peer.tip()), np.linalg.norm(peer.tip() - start)
    print(f"loads {apart:.1e} m apart after a way of {way:.4f} m")
    assert apart < 1e-3 * way and way > 5e-3 and not peer.failed


@pytest.mark.parametrize("way", WAYS)
def test_every_way_steps_the_same_chain(way: str) -> None:
    sim = simulate(way, N, "ball", dt=1e-4)
    sim.run(0.1)
    reference = simulate("direct", N, "ball")
    reference.integrate(0.1)
    apart = np.linalg.norm(tip(sim, N) - tip(reference, N))
    print(f"{way}: free end {apart:.1e} m off after 0.1 s")
    assert apart < 1e-4


def test_pinocchio_has_the_same_chain() -> None:
    pytest.importorskip("pinocchio")
    dt = 1e-5
    sim, peer = sh.Simulation(chain(N, "hinge", 1.0), dt, solver="direct"), PinocchioChain(N, 1.0, dt)
    start = peer.q.copy()
    sim.step(5000)
    peer.step_each(5000)
    q = np.array([float(sim.joint(f"joint {i}").position) for i in range(N)])
    print(f"angles {np.abs(q + start - peer.q).max():.1e} rad apart after turning by up to {np.abs(q).max():.3f} rad")
    np.testing.assert_allclose(q + start, peer.q, atol=2e-5)  # both are of first order, and place speeds differently
    assert np.abs(q).max() > 0.005


def test_scipy_has_the_same_chain() -> None:
    pytest.importorskip("scipy")
    peer, q = ScipyChain(N, 1.0), np.zeros(N)
    path = sh.dynamics.integrate(chain(N, "hinge", 1.0).build(), q, q, [1.0], rtol=1e-10, atol=1e-10)
    end = peer.run(1.0, 1e-10)
    apart = np.abs(1.0 + np.cumsum(path.q[-1]) - end[:N]).max(), np.abs(np.cumsum(path.v[-1]) - end[N:]).max()
    print(f"angles {apart[0]:.1e} rad apart after 1 s, rates {apart[1]:.1e} rad/s")
    assert apart[0] < 1e-9 and apart[1] < 1e-7


@pytest.mark.parametrize("joint", ["ball", "hinge"])
def test_both_engines_have_the_same_friction(joint: str) -> None:
    pytest.importorskip("mujoco")
    dt, given = 1e-4, {"friction": 0.3, "length": 0.2, "mass": 1.0}  # gravity needs 0.98 N·m: it slides
    sim, peer = sh.Simulation(chain(1, joint, **given), dt), MujocoChain(1, joint, dt=dt, noslip=20, **given)
    sim.step(1000)
    peer.step(1000)
    ours, other = angle(sim.body("rod 0").rotation), angle(peer.rotation())
    free = sh.Simulation(chain(1, joint, length=0.2, mass=1.0), dt, solver="sequential")
    free.step(1000)
    print(f"{joint}: {ours:.6f} and {other:.6f} rad, without friction {angle(free.body('rod 0').rotation):.6f}")
    assert ours == pytest.approx(other, rel=2e-3)
    assert 0.1 < ours < 0.8 * angle(free.body("rod 0").rotation)
    peer.reset()
    assert angle(peer.rotation()) == 0.0


@pytest.mark.parametrize("joint", ["ball", "hinge"])
def test_a_held_rod_stays(joint: str) -> None:
    pytest.importorskip("mujoco")
    figure = hold(joint, MujocoChain, {"n": 1}, True)
    print(f"{joint}: ours turned by {figure.ours:.1e} rad, MuJoCo's by {figure.peer:.1e} rad")
    assert figure.ours <= 1e-12
    assert figure.peer is not None and figure.peer > 1e-3


@pytest.mark.parametrize("joint", ["ball", "hinge"])
def test_rapier_has_the_same_rod(joint: str) -> None:
    pytest.importorskip("rapier3d")
    peer = RapierRod(joint, **(ROD | {"friction": 0.0}))
    sim = sh.Simulation(chain(1, joint, **(ROD | {"friction": 0.0})), 1e-3)
    peer.step(100)
    sim.step(100)
    assert angle(peer.rotation()) == pytest.approx(angle(sim.body("rod 0").rotation), rel=0.02)


@pytest.mark.parametrize("which", ["flex", "capsules", pytest.param("elastica", marks=pytest.mark.slow)])
def test_all_engines_have_the_same_rope(which: str) -> None:
    pytest.importorskip("elastica" if which == "elastica" else "mujoco")
    n, dt = 20, 1e-4
    sim = sh.Simulation(rope(n), 1e-3)
    peer = ElasticaRope(n, dt, stiffer=200.0) if which == "elastica" else MujocoRope(n, dt, flex=which == "flex")
    start = sim.rope("rope").position
    np.testing.assert_allclose(peer.points(), start, atol=1e-3 * ROPE_LENGTH / n)
    for _ in range(3):
        sim.step(100)
        peer.step(1000)
    apart = np.abs(peer.points() - sim.rope("rope").position).max()
    moved = np.abs(sim.rope("rope").position - start).max()
    allowed = 0.12 if which == "flex" else 0.02  # a flex gives way along itself
    print(f"{which}: {apart:.4f} m apart after a way of {moved:.3f} m ({allowed} allowed)")
    assert moved > 0.2 and apart < allowed and not peer.failed


def test_a_target_without_a_peer_is_neither_met_nor_missed() -> None:
    target = Target("ratio", "≥", 5.0, "×")
    assert target.met(Figure(1.0)) is None and target.met(Figure(1.0, 6.0, 6.0)) is True
    assert "–" in table([(Benchmark("name", "about", "ms", lambda quick: Figure(1.0), target), Figure(1.0))])


def test_a_missing_peer_leaves_its_cell_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.suite.find_spec", lambda name: None)
    assert hold("hinge", RapierRod, {}, True).peer is None


def test_an_angle_of_a_quaternion() -> None:
    for value in (0.0, 1e-17, 0.4, 3.0):
        assert angle(np.array([0.0, np.sin(value / 2), 0.0, np.cos(value / 2)])) == pytest.approx(value, rel=1e-12)
        assert angle(-np.array([0.0, np.sin(value / 2), 0.0, np.cos(value / 2)])) == pytest.approx(value, rel=1e-12)


def test_the_arms_are_thirty_hinges_in_a_tree() -> None:
    scene = arms(0.5)
    sim = sh.Simulation(scene, 1e-3, solver="sequential")
    assert len(scene.joints) == len(scene.bodies) - 1 == 30  # one of the bodies is the world
    assert sim.constraint_error().max() < 1e-12
    first, last = sim.step(iterations=1).residual, sim.step(iterations=50).residual
    print(f"residual {first:.1e} after 1 sweep, {last:.1e} after 50 N·s")
    assert last > 1e-14  # the budget ends the sweeps, not the tolerance


def test_the_neighbour_is_stopped() -> None:
    before = multiprocessing.active_children()
    with pytest.raises(ZeroDivisionError), busy_neighbour():
        (child,) = set(multiprocessing.active_children()) - set(before)
        assert child.is_alive()
        raise ZeroDivisionError
    assert multiprocessing.active_children() == before


def test_waiting_takes_its_time() -> None:
    assert wait(1e-3) >= 1e-3


def test_a_hanging_chain_has_no_swing_left() -> None:
    assert swing_energy(np.pi / 2) == pytest.approx(0.0, abs=1e-12)
    assert swing_energy(0.0) == pytest.approx(MASS * GRAVITY * LENGTH / 2)


def test_runs_take_turns() -> None:
    calls = ""

    def act(name: str) -> None:
        nonlocal calls
        calls += name

    pair = interleave(lambda: act("o"), lambda: act("p"), rounds=3, warm_up=1, before=lambda: act("."))
    assert calls == ".op.po.op.po"
    assert pair.ours.shape == pair.peer.shape == (3,)


def test_a_target_bounds_from_its_side() -> None:
    assert Target("ratio", "≤", 2.0).met(Figure(3.0, 2.0, 1.5))
    assert not Target("ratio", "≥", 1.8).met(Figure(3.0, 2.0, 1.5))
    assert not Target("ours", "≤", 2.0).met(Figure(3.0))


def test_names_are_unique() -> None:
    names = [b.name for b in BENCHMARKS]
    assert len(set(names)) == len(names)


def test_the_table_is_aligned() -> None:
    results = [
        (Benchmark("a", "short", "µs", lambda quick: Figure(1.0), Target("ratio", "≤", 2.0, "×")), Figure(3.0, 2.0, 1.5)),
        (Benchmark("b", "a longer one", "%", lambda quick: Figure(1.0)), Figure(-0.000123)),
        (Benchmark("c", "broken", "s", lambda quick: Figure(1.0), Target("ours", "≤", 2.0, "s")), None),
    ]
    lines = table(results).splitlines()
    print("\n".join(lines))
    assert len({len(line) for line in lines}) == 1
    assert lines[2].split() == ["short", "3.00", "µs", "2.00", "µs", "1.50", "×", "≤", "2", "×", "yes"]
    assert "-1.2e-04 %" in lines[3]
    assert "crashed" in lines[4]


def test_a_crash_is_told_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def crash(quick: bool) -> Figure:
        raise ZeroDivisionError

    def work(quick: bool) -> Figure:
        return Figure(1.0)

    missed = Benchmark("missed", "a target that is not met", "s", work, Target("ours", "≤", 0.5, "s"))
    assert main([], [missed]) == 0
    assert main([], [Benchmark("crash", "a crash", "s", crash), missed]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.slow
def test_one_benchmark_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "overhead", "--json", str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert "[1/1] overhead" in done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("overhead of a call")]
    assert row.split()[-1] in ("yes", "no")
    (figure,) = json.loads(file.read_text(encoding="utf-8"))["benchmarks"]
    assert figure["name"] == "overhead" and figure["target"] == "≤ 8 µs"
