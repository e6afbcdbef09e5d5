"""Mechanisms of every kind, commanded while they run: no crash, no number that is not finite, and errors that leave all whole.

Whatever a scene does, a step is made or is not, values read are those of the last good step, reading changes nothing, a snapshot
holds everything, and motions that diverge are told.
"""

import time
import warnings

import numpy as np
import pytest
from mechanisms import any_case

import sharnir as sh

IN_A_RUN, RUNS = 10, 11  # mechanisms in a test


def readings(sim):
    """All that can be read of a simulation, as numbers."""
    out = [sim.time, sim.energy().kinetic, sim.energy().potential, sim.energy().elastic, sim.gaps()]
    out += [sim.momentum().linear, sim.momentum().angular]
    for name in sim.model.body_names:
        body = sim.body(name)
        out += [body.position, body.rotation, body.velocity, body.spin, body.acceleration]
    for name in sim.model.joint_names:
        joint = sim.joint(name)
        out += [joint.dissipated, *joint.reaction]
        if joint.kind.v_size:
            out += [joint.position, joint.velocity, joint.friction_force, joint.limit_force, joint.drive.force, joint.stuck]
    for name in sim._ropes:
        rope = sim.rope(name)
        out += [rope.position, rope.velocity, rope.tension, rope.moment, rope.end_force, rope.stretch]
    report = sim.solver.report
    out += [report.residual, report.iterations, report.projected, report.parts, *report.grades.values()]
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in out])


def command(sim, rng):
    """Something that a user may do between steps."""
    bodies = [n for n in sim.model.body_names if n.startswith("b")]
    joints = [n for n in sim.model.joint_names if sim.joint(n).kind.v_size]
    body = sim.body(bodies[rng.integers(len(bodies))])
    what = rng.integers(8)
    mass = float(sim.model.bodies.mass.numpy()[sim.model.body_names[body.name]])
    if what == 0:
        body.apply_force(10 * mass * rng.normal(size=3), once=bool(rng.integers(2)))
    elif what == 1:
        body.velocity = body.velocity + 0.5 * rng.normal(size=3)
    elif what == 2:
        body.spin = rng.normal(size=3)
    elif what == 3 and joints:
        joint = sim.joint(joints[rng.integers(len(joints))])
        joint.force = mass * rng.normal(size=joint.kind.v_size)
    elif what == 4 and joints:
        joint = sim.joint(joints[rng.integers(len(joints))])
        joint.enabled = not joint.enabled
    elif what == 5 and joints:
        joint = sim.joint(joints[rng.integers(len(joints))])
        joint.friction = float(mass * rng.uniform(0, 1))
    elif what == 6:
        sim.gravity = (0, rng.normal(), -9.81)
    elif what == 7 and "rope" in sim._ropes and sim.model.ropes.described[0].reel >= 0:
        sim.rope("rope").reel_speed = float(0.3 * rng.normal())


def play(case, sim, seed, reading):
    """Run a case with its commands; the last snapshot, whether a step failed, and the slowest step, s."""
    rng = np.random.default_rng([seed, 7])
    slowest = 0.0
    for round_ in range(4):
        if round_ and rng.random() < 0.7:
            command(sim, rng)
        n = int(rng.integers(1, 12))
        saved = sim.snapshot()
        began = time.perf_counter()
        try:
            sim.step(n)
        except sh.SimulationError as error:
            assert str(error)
            if reading:
                check_error(case, sim, saved)
            return sim.snapshot(), True, slowest
        slowest = max(slowest, (time.perf_counter() - began) / n)
        if reading:
            assert np.all(np.isfinite(readings(sim)))
        if reading and round_ == 2:
            there = sim.snapshot()
            sim.restore(saved)
            for _ in range(n):
                sim.step()
            again = sim.snapshot()
            off = [k for k in there if not np.array_equal(there[k], again[k])]
            assert not off, f"restored, and {n} steps one by one: {off}"
    return sim.snapshot(), False, slowest


def check_error(case, sim, saved):
    """After an error all stands as the last good step left it, and reset() is the start."""
    left, values = sim.snapshot(), readings(sim)
    assert np.all(np.isfinite(values)), "after an error"
    good = round((left["state.time"][0] - saved["state.time"][0]) / case.dt)
    sim.restore(saved)
    if good:
        sim.step(good)
    again = sim.snapshot()
    off = [k for k in left if "once" not in k and not np.array_equal(left[k], again[k])]
    assert not off, f"an error leaves what the last good step left: {off}"
    starts_again(case, sim)


def starts_again(case, sim):
    """After an error, reset() is the start."""
    sim.reset()
    fresh = case.simulation()
    for _ in range(3):
        try:
            fresh.step()
        except sh.SimulationError:
            with pytest.raises(sh.SimulationError):
                sim.step()
            return
        sim.step()
        assert np.array_equal(readings(sim), readings(fresh)), "reset() is the start"


def check(seed):
    """One case, read after every step and not at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = any_case(seed)
            sim, twin = case.simulation(), case.simulation()
            sim.step()
        except (sh.SceneError, sh.SimulationError) as refused:
            assert str(refused)
            return "refused", 0.0
        twin.step()
        read, failed, slowest = play(case, sim, seed, reading=True)
        unread, failed_too, _ = play(case, twin, seed, reading=False)
    assert failed == failed_too, "reading changes whether a step fails"
    if not failed:
        off = [k for k in read if k not in ("state.q", "state.qd") and not np.array_equal(read[k], unread[k])]
        assert not off, f"reading changes the motion: {off}"
    return "failed" if failed else "ran", slowest


def check_run(seeds):
    count, broken = {"ran": 0, "failed": 0, "refused": 0}, []
    slowest = 0.0
    for seed in seeds:
        try:
            how, took = check(seed)
            count[how] += 1
            slowest = max(slowest, took)
        except AssertionError as error:
            broken.append(f"seed {seed} ({any_case(seed).solver}): {str(error).splitlines()[0]}")
    print(f"{len(seeds)} mechanisms: {count}, slowest step {1e3 * slowest:.1f} ms")
    assert not broken, broken


@pytest.mark.parametrize("run", range(RUNS))
def test_mechanisms_of_every_kind(run):
    check_run(range(IN_A_RUN * run, IN_A_RUN * (run + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("run", range(100))
def test_many_mechanisms_of_every_kind(run):
    check_run(range(100_000 + 30 * run, 100_000 + 30 * (run + 1)))
