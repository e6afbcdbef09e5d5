"""Streams: frames arrive as they were, latest wins, strangers and noise are refused, and no step waits for anybody."""

import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sharnir as sh
from sharnir.io.frames import decode
from sharnir.trainer import channels
from sharnir.trainer.shared_frames import SharedFrames, Watcher
from sharnir.trainer.streams import Stream

client = pytest.importorskip("websockets.sync.client")
RECEIVER = Path(__file__).parents[2] / "examples" / "receivers" / "receiver.py"


def door():
    scene = sh.Scene(gravity=(0, 0, -9.81))
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.49, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", friction=2.0), scene.world, "door", position=(0, 0, 1))
    scene.add_input("push", "joint/hinge.effort", scale=30.0)
    sim = sh.Simulation(scene, 4e-3, solver="sequential")
    sim.step(2, budget=1e-3)
    return sim


@pytest.fixture
def running():
    sim = door()
    rt = sh.RealTime(sim, frames=100)
    rt.add_channel("seat", channels.motion(sim, "door", (0.45, 0, 0)))
    rt.add_channel("stick", channels.lever(sim, "hinge", scale=0.1))
    rt.add_channel("sound", channels.sound(sim, engine="hinge"))
    with rt, Stream(rt, websocket=0, commands=0, token="open sesame", rate=100, page=RECEIVER.with_name("page.html")) as stream:
        yield rt, stream


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_frames_come_and_commands_go(running):
    rt, stream = running
    with client.connect(f"ws://127.0.0.1:{stream.port}") as ws:
        layout = json.loads(ws.recv(5))
        assert layout["bodies"] == ["door"] and [c["name"] for c in layout["channels"]] == ["seat", "stick", "sound"]
        frames = [decode(ws.recv(5)) for _ in range(20)]
        times = [frame.time for frame, _ in frames]
        assert times == sorted(times) and {check for _, check in frames} == {layout["layout"]}
        assert abs(frames[-1][0].channels[2] - 9.81) < 0.2, "a seat at rest is pushed up by g"
        ws.send(json.dumps({"control": "push", "value": 1.0}))
        ws.send(json.dumps({"token": "open sesame", "control": "push", "value": 1.0}))
        ws.send(json.dumps({"control": "pull", "value": 1.0}))  # known by now
        told = []
        assert until(lambda: told.append(ws.recv(5)) or sum(isinstance(m, str) for m in told) == 2)
        told = [json.loads(m)["error"] for m in told if isinstance(m, str)]
        assert told == ["the token is missing or wrong", "there is no input 'pull'; available: 'push'".replace("'push'", "push")]
        assert until(lambda: rt.post(lambda sim: sim.joint("hinge").velocity).result(5) > 0.01)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(json.dumps({"token": "open sesame", "do": "pause"}).encode(), ("127.0.0.1", stream.command_port))
        assert until(lambda: rt.paused)


def test_strangers_are_refused(running):
    _rt, stream = running
    exceptions = pytest.importorskip("websockets.exceptions")
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        with pytest.raises(exceptions.InvalidStatus if "Origin" in headers else Exception):
            client.connect(f"ws://127.0.0.1:{stream.port}", additional_headers=headers)
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{stream.port}/", timeout=5) as page:
        assert b"Draws bodies" in page.read()
    with pytest.raises(sh.SceneError, match="udp is 'host:port'"):
        Stream(_rt, udp="nowhere")


def attack(rt, stream, n):
    """Random messages from one client, while another never reads."""
    rng = np.random.default_rng(4)
    words = [b"{", b"[]", b'{"token": 1}', b'{"control": []}', b"\xff\xfe", b'{"do": "stop"}', b'{"token": "x", "value": 1e999}']
    stalled = socket.create_connection(("127.0.0.1", stream.port))
    key = "Host: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    stalled.sendall(f"GET / HTTP/1.1\r\n{key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    before, out = rt.statistics.steps, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with client.connect(f"ws://127.0.0.1:{stream.port}", max_queue=4096) as ws:
        for k in range(n):
            data = words[int(rng.integers(len(words)))] if rng.random() < 0.3 else rng.bytes(int(rng.integers(1, 300)))
            if k % 2:
                out.sendto(data, ("127.0.0.1", stream.command_port))
            else:
                ws.send(data)
            if k % 50 == 0:
                time.sleep(0.005)
        ws.recv(5)
    out.close()
    stalled.close()
    return rt.statistics.steps - before


def test_noise_and_a_stalled_client_disturb_no_step(running):
    rt, stream = running
    made = attack(rt, stream, 600)
    s = rt.statistics
    print(f"600 messages, {stream.refused} refused, {stream.taken} taken; {made} steps meanwhile\n{s.table()}")
    assert made > 5 and stream.taken == 0 and stream.refused > 100 and rt.error is None
    assert rt.post(lambda sim: sim.joint("hinge").velocity).result(5) == 0.0


@pytest.mark.slow
def test_ten_thousand_messages(running):
    rt, stream = running
    made = attack(rt, stream, 10_000)
    s = rt.statistics
    print(f"10000 messages, {stream.refused} refused; {made} steps meanwhile\n{s.table()}")
    assert stream.taken == 0 and rt.error is None and made > 100


def test_the_receiver_of_thirty_lines_receives():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert sum(bool(line.strip()) for line in RECEIVER.read_text().partition("def ")[2].splitlines()) <= 30
    receive = runpy.run_path(str(RECEIVER))["receive"]
    rt, seen = sh.RealTime(door(), frames=80), []

    def listen():
        for frame in receive(port):
            seen.append(frame)
            if len(seen) >= 30:
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    with rt, Stream(rt, udp=f"127.0.0.1:{port}", rate=80):
        thread.join(20)
    rate = 29 / (seen[-1][0] - seen[0][0])
    print(f"{len(seen)} frames, {rate:.0f} a second of simulated time")
    assert len(seen) == 30 and "door" in seen[-1][1] and len(seen[-1][1]["door"]) == 7


WATCH = """import sys; from sharnir.trainer.shared_frames import Watcher
f = Watcher(sys.argv[1]).latest(); print(f.time, *f.position[0])"""


def show_on_a_board(look):
    sim = door()
    rt = sh.RealTime(sim, speed=5.0)
    board = SharedFrames(rt)
    try:
        rt.run(0.4)
        look(board.name, rt.latest())
    finally:
        board.close()


def test_a_board_shows_the_newest_frame():
    def look(name, latest):
        watcher = Watcher(name)
        frame = watcher.latest()
        assert frame.time == latest.time and watcher.layout.bodies == ("door",)
        assert np.allclose(frame.position, latest.position, atol=1e-7)
        watcher.close()

    show_on_a_board(look)
    with pytest.raises(sh.SimulationError, match="no board is named"):
        Watcher("nowhere at all")


@pytest.mark.slow
def test_another_process_sees_it():
    def look(name, latest):
        words = [sys.executable, "-c", WATCH, name]
        said = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=True).stdout.split()
        assert float(said[0]) == latest.time and np.allclose([float(x) for x in said[1:]], latest.position[0], atol=1e-7)

    show_on_a_board(look)
