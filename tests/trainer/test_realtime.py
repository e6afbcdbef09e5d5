"""Real time: deadlines are kept on the monotonic clock, what comes from outside acts between steps, nothing makes it wait."""

import gc
import os
import sys
import threading
import time

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh
from sharnir.core.graphs import Keeper
from sharnir.io.frames import decode


def door(dt=2e-3, **options):
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.49, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", friction=2.0), scene.world, "door", position=(0, 0, 1))
    return sh.Simulation(scene, dt, **({"solver": "sequential"} | options))


def test_simulated_time_is_the_wall_clocks():
    sim = door()
    sim.step()
    rt = sh.RealTime(sim, rate=500)
    before, started = sim.time, time.perf_counter()
    s = rt.run(0.6)
    took = time.perf_counter() - started
    print(f"{sim.time - before:.4f} s simulated in {took:.4f} s; drift {1e3 * s.drift:.3f} ms\n{s.table()}")
    assert s.ticks == s.steps == 300 and abs(sim.time - before - 0.6) < 1e-12
    assert took > 0.598 - 2e-3, "it did not run ahead of the clock"
    assert s.work.count == s.late.count == 300 and s.late.max >= s.late.percentile(99.9) >= s.late.percentile(50)
    assert s.skipped == 0.0 or s.late.max > 0.1
    assert gc.isenabled() and sys.getswitchinterval() > 1e-3, "what the loop changed is put back"


def test_motion_is_that_of_plain_steps():
    sim, twin = door(), door()
    for each in (sim, twin):
        each.joint("hinge").velocity = 1.0
    sh.RealTime(sim, rate=100, speed=5, budget=None).run(0.4)
    twin.step(200)
    assert sim.joint("hinge").position == twin.joint("hinge").position and sim.time == twin.time


def policy():
    """How the system runs this thread."""
    return (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) if hasattr(os, "sched_getscheduler") else None


def test_a_busy_thread_beside_and_a_loop_that_comes_first():
    """The solver keeps Python's lock in the loop's thread, others give way when it wakes; all is put back afterwards."""
    sim, done, seen, before = door(), threading.Event(), [], policy()
    sim.step()

    def burn():
        while not done.is_set():
            sum(range(100))

    other = threading.Thread(target=burn, daemon=True, name="sharnir burner")  # as threads of ours are called: it follows closely
    other.start()
    rt = sh.RealTime(sim, rate=500, urgent=True, control=lambda sim: seen.append((Keeper.thread, policy())))
    s = rt.run(0.4)
    done.set()
    other.join()
    print(f"with a busy thread beside, {'first' if s.urgent else 'not'} among threads of the machine:\n{s.table()}")
    assert {thread for thread, _ in seen} == {threading.get_ident()} and Keeper.thread == 0
    assert ({way for _, way in seen} == {(os.SCHED_FIFO, 2)}) == s.urgent and policy() == before
    if s.urgent:  # a thread that never lets go would hold it for 5 ms each time
        in_time(s.late.percentile(50), 3e-3, "a tick that comes first")
    slow = sh.RealTime(door(0.02), control=lambda sim: seen.append((Keeper.thread, None)))
    slow.run(0.04)
    assert seen[-1][0] == 0, "a long tick lets others run beside it"


def test_speed_pause_and_resume():
    sim = door()
    sim.step()
    rt = sh.RealTime(sim, speed=4.0)
    started = time.perf_counter()
    rt.run(0.4)
    assert time.perf_counter() - started > 0.09
    with rt:
        rt.pause()
        time.sleep(0.05)
        stood = rt.latest().time
        assert rt.paused and rt.running and rt.post(lambda sim: sim.time).result(1.0) == stood
        time.sleep(0.05)
        assert rt.latest().time == stood and rt.latest().paused
        rt.resume()
        deadline = time.perf_counter() + 5
        while rt.latest().time <= stood and time.perf_counter() < deadline:
            time.sleep(0.01)
        assert rt.latest().time > stood
    assert not rt.running


def test_what_is_posted_acts_between_steps_and_errors_go_to_who_posted():
    sim = door()
    with sh.RealTime(sim) as rt:
        done = [rt.post(lambda sim, k=k: (k, threading.current_thread().name)) for k in range(50)]
        names = [future.result(5.0) for future in done]
        assert [k for k, _ in names] == list(range(50)), "in the order in which they were posted"
        assert {name for _, name in names} == {"sharnir real time"}
        with pytest.raises(sh.SimulationError, match="no joint is named 'nobody'"):
            rt.post(lambda sim: sim.joint("nobody")).result(5.0)

        def push(sim):
            sim.joint("hinge").effort = 40.0

        rt.post(push).result(5.0)
        deadline = time.perf_counter() + 5
        while not rt.post(lambda sim: sim.joint("hinge").velocity).result(5.0) > 0 and time.perf_counter() < deadline:
            pass
        assert rt.post(lambda sim: sim.joint("hinge").velocity).result(5.0) > 0
        assert rt.statistics.command.count >= 52 and rt.running and rt.error is None
    late = rt.post(lambda sim: 1)
    assert not late.done()


def test_overruns_are_caught_up_skipped_or_slow():
    """A control that takes 25 ms once, at ticks of 5 ms: what is simulated in the end tells the policy."""
    told = {}
    for overrun in ("catch-up", "skip", "slow"):
        sim, calls = door(5e-3), []

        def control(sim, calls=calls):
            calls.append(time.perf_counter())
            if len(calls) == 5:
                time.sleep(0.0265)

        sim.step()
        rt = sh.RealTime(sim, control=control, overrun=overrun, catch_up=10.0, budget=None)
        s = rt.run(0.15)
        told[overrun] = s.skipped
        assert s.misses >= 1 and s.ticks == 30
        grid = (calls[-1] - calls[0]) / 5e-3
        print(f"{overrun}: {1e3 * s.skipped:.2f} ms skipped, {s.misses} missed, the last tick at {grid:.2f}")
        if overrun == "skip":
            assert abs(s.skipped / 5e-3 - round(s.skipped / 5e-3)) < 1e-6 and s.skipped >= 0.02
    assert told["catch-up"] == 0.0 and told["slow"] >= 0.015


def test_a_step_that_fails_stops_time_and_not_the_loop():
    sim = door()

    def control(sim):
        if sim.time > 0.02:
            raise sh.SimulationError("a fuse blew")

    with sh.RealTime(sim, control=control) as rt:
        deadline = time.perf_counter() + 5
        while rt.error is None and time.perf_counter() < deadline:
            time.sleep(0.002)
        assert str(rt.error) == "a fuse blew" and rt.paused and rt.running
        rt.post(lambda sim: sim.reset()).result(5.0)
        rt.resume()
        assert rt.error is None
    with pytest.raises(sh.SimulationError, match="a fuse blew"):
        sh.RealTime(sim, control=control).run(1.0)


def test_frames_are_where_things_are_and_survive_as_bytes():
    sim = door()
    sim.joint("hinge").velocity = 2.0
    rt = sh.RealTime(sim, speed=10.0)
    rt.run(0.3)
    frame = rt.latest()
    assert frame.time == sim.time and rt.layout.bodies == ("door",)
    assert np.allclose(frame.position[0], sim.body("door").position, atol=1e-15)
    data = frame.encode(rt.layout)
    back, layout = decode(data)
    assert layout == rt.layout.check and back.step == frame.step and back.time == frame.time
    assert np.allclose(back.position, frame.position, atol=1e-7) and np.allclose(back.rotation, frame.rotation, atol=1e-7)
    refused = 0
    for k in range(len(data)):
        damaged = bytearray(data)
        damaged[k] ^= 0x10
        try:
            decode(bytes(damaged))
        except sh.SimulationError:
            refused += 1
        else:  # the numbers of the header are any
            assert 8 <= k < 32 or 52 <= k < 60
    assert refused >= len(data) - 32


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"rate": 300}, "rate is 500 Hz"), ({"rate": 1000}, "rate is 500 Hz"), ({"rate": -1}, "rate is"),
        ({"speed": 0}, "speed is a positive"), ({"overrun": "wait"}, "overrun is one of"),
        ({"budget": -1}, "budget is a positive"),
        ({"frames": 0}, "frames is a positive"), ({"world": 1}, "world is a number from 0 to 0"),
    ],
)  # fmt: skip
def test_mistakes_are_told(wrong, words):
    with pytest.raises(sh.SimulationError, match=words):
        sh.RealTime(door(), **wrong)
