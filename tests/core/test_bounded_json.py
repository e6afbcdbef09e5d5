"""Messages from outside: whatever arrives is decoded or refused by name, no message ends a thread, tokens are compared safely."""

import asyncio
import json
import random
import socket
import threading
import time

import numpy as np
import pytest
from damage import mutated_message

import sharnir as sh
from sharnir.core import bounded_json
from sharnir.core.bounded_json import MessageError, decode, decode_json, same_token
from sharnir.io.frames import Layout, read_layout
from sharnir.trainer.shared_frames import _OWN, BOARD_HEAD, BOARD_MAGIC, BOARD_VERSION, Watcher
from sharnir.trainer.streams import Allowance, Stream

DIGITS = "9" * 3000


def door():
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.0, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=20.0), scene.world, "door", position=(0, 0, 1))
    scene.add_input("push", "joint/hinge.torque", scale=60.0, keys=("w", "s"), pad="-axis 1")
    return sh.Simulation(scene, 0.01, solver="sequential")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "no text"),
        ("", "is JSON"),
        ("[]", "JSON object"),
        ("[" * 4000, "at most 8 lists"),
        ('{"a": ' * 9 + "1" + "}" * 9, "at most 8 lists"),
        ('{"a": "' + "x" * 5000 + '"}', "at most 4096 bytes"),
        ("é" * 3000, "at most 4096 bytes"),
        ('{"a": 1, "a": 2}', "'a' is given twice"),
        (3, "no text"),
        (None, "no text"),
    ],
)
def test_what_is_no_message_is_one_error(data, words):
    with pytest.raises(MessageError, match=words):
        decode(data)


def test_fields_are_read_by_type():
    given = decode(f'{{"n": {DIGITS}, "nan": NaN, "far": 1e999, "text": "\\ud800", "yes": true, "x": 2.5, "list": [1, null]}}')
    for name, shown in (("n", "a number of 3000"), ("nan", "got nan"), ("far", "got inf"), ("text", "ud800"), ("yes", "True")):
        with pytest.raises(MessageError, match=f"^{name} is a finite number from 0 to 50, got .*{shown[4:]}"):
            given.number("x" if name == "x" else name, 0.0, 50.0)
    with pytest.raises(MessageError, match=r"^text is a text"):
        given.text("text")
    with pytest.raises(MessageError, match=r"^x is one of a, b, got 2\.5"):
        given.text("x", ("a", "b"))
    with pytest.raises(MessageError, match="the field 'y' is missing"):
        given.number("y")
    with pytest.raises(MessageError, match="'n' is unknown; allowed: x"):
        given.allow_only("x")
    assert given.number("x", 0, 3) == 2.5 and given.numbers("list") == [1.0, 0.0]
    json.dumps({"error": bounded_json.show("\ud800")}).encode()


def test_tokens_are_compared_whatever_the_text():
    assert same_token("sésame", "sésame") and not same_token("\ud800", "secret") and not same_token(None, "secret")
    assert not same_token(["secret"], "secret") and not same_token("", "secret")


class Posted:
    """A loop that keeps what is posted."""

    def __init__(self, sim):
        self.sim, self.posted, self.layout = sim, [], Layout(("door",), ())

    def latest(self):
        return sh.RealTime(self.sim).latest()

    def post(self, what):
        self.posted.append(what)

    def pause(self):
        self.posted.append("pause")

    resume = pause


def test_no_datagram_ends_the_command_thread():
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bad = [
        '{"token":"\\ud800"}',
        f'{{"token":"secret","control":"push","value":{DIGITS}}}',
        "\ud800",
        '{"token":1}',
        '{"token":"secret","control":"push","value":NaN}',
        '{"token":"secret","control":["push"],"value":1}',
    ]
    with out, sh.RealTime(door()) as rt, Stream(rt, commands=0, token="secret") as stream:
        end = time.monotonic() + 10

        def send(text):
            out.sendto(text.encode("utf-8", "surrogatepass"), ("127.0.0.1", stream.command_port))

        for text in bad:
            send(text)
        while stream.refused < len(bad) and time.monotonic() < end:
            time.sleep(0.01)
        assert stream.refused == len(bad) and stream.taken == 0
        assert stream.last_refusal == "control is a text of at most 256 characters, got ['push']"
        send('{"token":"secret","control":"push","value":7}')  # the thread still listens
        while not stream.taken and time.monotonic() < end:
            time.sleep(0.01)
        assert stream.taken == 1 and rt.post(lambda sim: sim.inputs.command("push")).result(5) == 1.0


def test_a_refusal_on_a_websocket_names_the_field():
    client = pytest.importorskip("websockets.sync.client")
    values = ((DIGITS, "a number of 3000 characters"), ("NaN", "nan"), ("-1e999", "-inf"), ('"1"', "'1'"))
    with sh.RealTime(door()) as rt, Stream(rt, websocket=0, token="secret") as stream:
        ws = client.connect(f"ws://127.0.0.1:{stream.port}")
        for value, shown in values:
            ws.send(f'{{"token":"secret","control":"push","value":{value}}}')
            told = next(m for m in iter(lambda: ws.recv(5), None) if isinstance(m, str) and "error" in json.loads(m))
            assert json.loads(told)["error"] == f"value is a finite number, got {shown}"
        ws.close()


def fuzz_commands(count):
    """Mutated commands, as UDP and WebSocket hand them over: how many were executed and refused."""
    sim, rng = door(), random.Random(3)
    stream = Stream.__new__(Stream)
    stream.rt, stream._token = Posted(sim), "secret"
    stream.refused = stream.taken = 0
    seeds = [
        '{"token":"secret","control":"push","value":0.5}',
        '{"token":"secret","do":"pause"}',
        '{"token":"secret","do":"release"}',
    ]

    class Always(Allowance):
        def take(self):
            return True

    for k in range(count):
        data = mutated_message(rng.choice(seeds), rng)
        why = stream._receive(data if k % 2 else data.decode("utf-8", "replace"), k % 3 == 0, Always())
        assert "failed" not in why, (data, why)
        json.dumps({"error": why}).encode()
    for what in stream.rt.posted:
        if callable(what):
            what(sim)
    assert -1 <= sim.inputs.command("push") <= 1
    return stream.taken, stream.refused


def test_mutated_commands_are_executed_or_refused():
    taken, refused = fuzz_commands(500)
    print(f"500 mutated commands: {taken} executed, {refused} refused")
    assert refused > 100


@pytest.mark.slow
def test_ten_thousand_mutated_commands():
    taken, refused = fuzz_commands(10_000)
    print(f"10000 mutated commands: {taken} executed, {refused} refused")
    assert refused > 2000 and taken > 100


# ---- the operator's and the instructor's pages ----


class Page:
    """A viewer as the desk sees it; a loop that does what it is asked at once."""

    def __init__(self, sim):
        from sharnir.trainer.operator_session import OperatorActions

        self.sim, self.loop, self.error, self.paused = sim, self, "", False
        self.hands = OperatorActions(sim, None, lambda sim, worlds: None)

    def send(self, name, *given):
        getattr(self.hands, name)(*given)

    def act(self, name, *given):
        try:
            getattr(self.hands, name)(*given)
            self.error = ""
        except (sh.SceneError, sh.SimulationError) as error:
            self.error = str(error)

    def refuse(self, why):
        self.error = why

    def pause(self):
        self.paused = True

    def play(self):
        self.paused = False

    def reset(self):
        self.act("reset")

    def back(self, seconds):
        self.pause()
        self.act("back", seconds)


@pytest.fixture
def desk():
    pytest.importorskip("viser")
    from sharnir.view.operator_panel import OperatorPanel

    made = OperatorPanel("door", "secret")
    made.viewer = Page(door())
    return made


def test_what_an_instructor_sends_is_checked_before_it_is_done(desk):
    page, sim = desk.viewer, desk.viewer.sim
    before = sim.gravity.tolist()
    for what, values, allowed in (
        ("gravity", ("NaN", "Infinity", "-3", "1e9", '"x"', "null", DIGITS, "[1]", "true"), "0 to 50"),
        ("wind", ("NaN", "1e9"), "-60 to 60"),
        ("friction", ("NaN", "0", "-1"), "0.01 to 5"),
        ("back", ("NaN", '"nonsense"', "{}", "-1", "null", "1e400"), "0 to 1000"),
    ):
        for value in values:
            assert not asyncio.run(desk._receive(None, "instructor", f'{{"do":"{what}","value":{value}}}'))
            assert page.error.startswith(f"value of '{what}' is a finite number from {allowed}, got "), page.error
            assert not page.paused and sim.gravity.tolist() == before
    assert not asyncio.run(desk._receive(None, "instructor", '{"do":"back"}')) and not page.paused
    assert not asyncio.run(desk._receive(None, "instructor", '{"do":"fail","kind":"engine","name":"hinge"}'))
    assert page.error.startswith("kind is one of motor, brake,") and page.error.endswith("got 'engine'")
    assert asyncio.run(desk._receive(None, "instructor", '{"do":"gravity","value":1.62}')) and page.error == ""
    assert sim.gravity.tolist() == [0, 0, -1.62] and desk.refused == 22


def fuzz_pages(desk, count):
    """Mutated messages of an operator and an instructor: how many were executed and refused."""
    rng, sim, done = random.Random(5), desk.viewer.sim, 0
    seeds = [
        '{"keys":["w"],"axes":[0.1,-0.5],"buttons":[0,1]}',
        '{"slide":["push",0.5]}',
        '{"take":true}',
        '{"leave":true}',
        '{"do":"gravity","value":1.62}',
        '{"do":"wind","value":3}',
        '{"do":"back","value":2}',
        '{"do":"reset"}',
        '{"do":"freeze"}',
        '{"do":"fail","kind":"brake","name":"hinge"}',
        '{"do":"repair","kind":"brake","name":"hinge"}',
        '{"do":"repair"}',
        '{"token":"secret","role":"operator"}',
    ]

    async def attack():
        nonlocal done
        operator = object()
        for k in range(count):
            text = mutated_message(rng.choice(seeds), rng).decode("utf-8", "surrogateescape" if k % 2 else "replace")
            desk._greeted(text)
            done += await desk._receive(operator, "instructor" if k % 3 else "operator", text)
            assert "failed" not in desk.last_refusal, (text, desk.last_refusal)
            if k % 50 == 0:
                sim.step()

    asyncio.run(attack())
    assert np.isfinite(sim.q).all() and np.isfinite(sim.gravity).all() and np.abs(sim.gravity).max() <= 50
    return done, desk.refused


def test_mutated_messages_of_pages_are_executed_or_refused(desk):
    done, refused = fuzz_pages(desk, 400)
    print(f"400 mutated messages of pages: {done} executed, {refused} refused")
    assert done > 20 and refused > 100


@pytest.mark.slow
def test_ten_thousand_mutated_messages_of_pages(desk):
    done, refused = fuzz_pages(desk, 10_000)
    print(f"10000 mutated messages of pages: {done} executed, {refused} refused")
    assert done > 500 and refused > 2000


def test_a_call_that_fails_does_not_end_the_machine():
    """A page's process calls methods of the machine through pipes; one that raises anything is answered with an error."""
    from multiprocessing import Pipe

    from sharnir.trainer.session import LocalSession, RemoteSession, answer

    class Broken:
        def fail(self):
            raise KeyError("x")

        def fine(self):
            return 3

    (calls, there_calls), (sends, there_sends) = Pipe(), Pipe()
    here, there = LocalSession(sh.RealTime(door()), Broken()), RemoteSession(there_calls, there_sends)
    over = threading.Event()
    machine = threading.Thread(target=answer, args=(calls, sends, here, over.is_set), daemon=True)
    machine.start()
    with pytest.raises(sh.SimulationError, match="fail: KeyError"):
        there.do("fail")
    there.send("fail")
    there.send("nothing like it")
    assert there.do("fine") == 3 and machine.is_alive()
    over.set()
    machine.join(5)


# ---- shared memory ----


def test_a_board_whose_sizes_are_wrong_is_refused():
    from multiprocessing.shared_memory import SharedMemory

    names = Layout(("door",), ()).to_json().encode()
    good = BOARD_HEAD.pack(BOARD_MAGIC, 1, len(names), 100, BOARD_VERSION) + names + bytes(300)
    bad = [
        b"", good[:10], BOARD_HEAD.pack(BOARD_MAGIC, 1, 1 << 31, 100, BOARD_VERSION) + names + bytes(300),
        BOARD_HEAD.pack(BOARD_MAGIC, 1, len(names), 1 << 31, BOARD_VERSION) + names + bytes(300),
        good.replace(b'"bodies"', b'"bodied"', 1),
        good.replace(b'["door"]', b'[["do"]]', 1), good.replace(b"{", b"[", 1),
    ]  # fmt: skip
    for data in bad:
        memory = SharedMemory(create=True, size=max(len(data), 1))
        memory.buf[: len(data)] = data
        _OWN.add(memory.name)
        try:
            if data == bad[4]:  # a layout without bodies is one: it has no whole frame
                watcher = Watcher(memory.name)
                with pytest.raises(sh.SimulationError, match="no whole frame"):
                    watcher.latest()
                watcher.close()
            else:
                with pytest.raises(sh.SimulationError, match="Watcher"):
                    Watcher(memory.name)
        finally:
            memory.close()
            memory.unlink()
    given = Layout(("a", "b"), ("r",), (("seat", ("x", "y")),))
    assert read_layout(given.to_json()) == given and decode_json("[1]") == [1]
