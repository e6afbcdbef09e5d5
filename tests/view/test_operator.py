"""The operator's desk: roles, tokens, keys and sticks over the socket, senseless messages, the past, a pull; and a browser."""

import asyncio
import json
import pathlib
import random
import socket
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh
from sharnir.cli import examples

pytest.importorskip("viser")
websockets = pytest.importorskip("websockets")
from browser import Browser, chromium  # noqa: E402

from sharnir.sensors.noise import FAULTS  # noqa: E402
from sharnir.view.drive import drive  # noqa: E402
from sharnir.view.operator_panel import stick  # noqa: E402
from sharnir.view.viewer import Viewer  # noqa: E402

PORT = 8765
OUT = pathlib.Path(__file__).parents[2] / "out" / "browser"


def door():
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.0, position=(0.45, 0, 1), color="#a9744f")
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=20.0), scene.world, "door", position=(0, 0, 1))
    scene.add_sensor("gap", "distance", "door", to="world", noise=sh.sensors.Noise(sigma=0.01))
    scene.add_input("push", "joint/hinge.torque", scale=60.0, keys=("w", "s"), pad="-axis 1", about="part of 60 N·m")
    return sh.Simulation(scene, 0.01, solver="sequential")


@pytest.fixture
def viewer():
    made = Viewer(door(), "<b>door</b>", port=PORT, wait=False)
    yield made
    made.stop()


def talk(viewer, *conversations):
    """Run coroutines `f(connect)`, where connect(role) gives a socket that has said hello."""

    async def connect(role, token=None):
        socket = await websockets.connect(f"ws://127.0.0.1:{viewer.server.get_port()}/desk", max_size=None)
        await socket.send(json.dumps({"token": viewer.desk.token if token is None else token, "role": role}))
        return socket, json.loads(await socket.recv())

    async def all_of_them():
        return [await conversation(connect) for conversation in conversations]

    return asyncio.run(all_of_them())


async def until(what, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_one_operates_and_others_watch(viewer):
    sim, controls = viewer.sim, viewer.sim.inputs

    async def people(connect):
        first, told = await connect("operator")
        assert told["title"] == "<b>door</b>" and [i["name"] for i in told["inputs"]] == ["push"]
        second, _ = await connect("operator")
        await first.send(json.dumps({"take": True}))
        await until(lambda: viewer.desk.operator is not None)
        await second.send(json.dumps({"take": True}))
        await second.send(json.dumps({"keys": ["s"]}))
        await first.send(json.dumps({"keys": ["w"]}))
        await until(lambda: controls.command("push") == 1.0)
        sim.step(20)
        assert sim.joint("hinge").velocity > 0.1  # the state proves it
        await first.send(json.dumps({"keys": [], "axes": [0.0, 1.0], "buttons": []}))
        await until(lambda: controls.command("push") == -1.0)
        await first.send(json.dumps({"slide": ["push", 7.0]}))
        await until(lambda: controls.command("push") == 1.0)
        sim.step(60)  # and says nothing more
        assert controls.command("push") == 0.0 and controls.events[-1].kind == "lost"
        for _ in range(2):  # held again, lost again, and held on
            await first.send(json.dumps({"keys": ["w"]}))
            await until(lambda: controls.command("push") == 1.0)
            sim.step(60)
            assert controls.command("push") == 0.0
        await first.send(json.dumps({"keys": ["w"]}))
        await first.close()
        await until(lambda: viewer.desk.operator is None and controls.command("push") == 0.0)
        await second.close()

    talk(viewer, people)


def test_an_instructor_freezes_changes_and_lets_fail(viewer):
    sim = viewer.sim

    async def lesson(connect):
        socket, told = await connect("instructor")
        assert [kind for kind, parts in told["parts"].items() if parts == ["gap"]] == [f"sensor {how}" for how in FAULTS]
        for message in ({"do": "freeze"}, {"do": "gravity", "value": 1.62}, {"do": "fail", "kind": "brake", "name": "hinge"}):
            await socket.send(json.dumps(message))
        await until(lambda: sim.inputs.faults)
        assert viewer.paused and sim.gravity.tolist() == [0, 0, -1.62]
        kinds = [(e.kind, e.name, e.by) for e in sim.inputs.events]
        assert kinds == [
            ("freeze", "", "instructor"), ("parameter", "gravity", "instructor"), ("failure", "brake/hinge", "instructor"),
        ]  # fmt: skip
        await socket.send(json.dumps({"do": "fail", "kind": "motor", "name": "hinge"}))  # it has none
        await until(lambda: "no drive" in viewer.error)
        await socket.send(json.dumps({"do": "reset"}))
        await until(lambda: not sim.inputs.faults)
        await socket.close()
        operator, _ = await connect("operator")
        await operator.send(json.dumps({"do": "freeze"}))  # not his to do
        await operator.close()

    talk(viewer, lesson)


def test_a_wrong_token_is_refused_and_so_are_strangers(viewer):
    async def stranger(connect):
        with pytest.raises(websockets.ConnectionClosed) as refused:
            await connect("operator", "guess")
        assert refused.value.rcvd.code == 1008
        url = f"ws://127.0.0.1:{viewer.server.get_port()}/desk"
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(url, origin="http://evil.example")

    talk(viewer, stranger)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_senseless_messages_do_not_disturb_a_step(viewer, count):
    rng, sim = random.Random(1), viewer.sim
    alone = door()
    alone.step(200)

    def nonsense():
        words = ["keys", "axes", "buttons", "slide", "take", "do", "token", "x"]
        values = [
            None,
            1e400,
            "w",
            [],
            [["push", 1]],
            {"a": {}},
            -1,
            True,
            ["push", "nan"],
            ["push", float("nan")],
            "fail",
            "x" * 5000,
        ]
        kind = rng.random()
        if kind < 0.2:
            return rng.randbytes(rng.randrange(200))
        if kind < 0.4:
            return "".join(chr(rng.randrange(32, 0x3000)) for _ in range(rng.randrange(100)))
        return json.dumps({rng.choice(words): rng.choice(values) for _ in range(rng.randrange(1, 4))} | {"keys2": 0})

    async def attack(connect):
        sent = 0
        stalled, _ = await connect("operator")  # which never reads what it is told
        while sent < count:
            socket, _ = await connect(rng.choice(["operator", "instructor", "watcher"]))
            try:
                for _ in range(min(25, count - sent)):
                    sent += 1
                    await socket.send(nonsense())
            except websockets.ConnectionClosed:
                pass
            await socket.close()
        await stalled.close()
        return sent

    viewer.pause()
    start = sim.snapshot()
    (sent,) = talk(viewer, attack)
    print(f"{sent} messages; the door's inputs: {dict(sim.inputs)}")
    sim.restore(start)
    sim.step(200)
    assert np.array_equal(sim.snapshot()["state.position"], alone.snapshot()["state.position"]) and np.isfinite(sim.q).all()


def while_driven(sim, job, title, **options):
    """Have a machine driven as `sharnir drive` does it, with pages in a process of their own, while `job()` runs in a thread."""
    ended = threading.Event()

    def run():
        try:
            job()
        finally:
            ended.set()

    thread = threading.Thread(target=run)

    def over():  # is asked first when the process of the pages has begun
        if thread.ident is None:
            thread.start()
        return ended.is_set()

    drive(sim, title, until=over, token="mine", **options)
    thread.join(60)


def test_a_driven_machine_runs_beside_its_pages_and_is_recorded(tmp_path):
    """A held key moves the machine here, an instructor freezes and changes it, time keeps its pace; and all of it is made again
    from the recording."""
    sim, seen, port = door(), {}, PORT + 3

    async def people():
        url, deadline = f"ws://127.0.0.1:{port}/desk", time.monotonic() + 30
        while True:
            try:
                operator, instructor = [await websockets.connect(url) for _ in range(2)]
                break
            except OSError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
        for one, role in ((operator, "operator"), (instructor, "instructor")):
            await one.send(json.dumps({"token": "mine", "role": role}))
        await operator.send(json.dumps({"take": True}))
        await until(lambda: sim.time > 0)
        began = time.monotonic(), sim.time
        while sim.inputs["push"] < 1.0 or time.monotonic() - began[0] < 0.6:
            await operator.send(json.dumps({"keys": ["w"]}))
            await asyncio.sleep(0.05)
            assert time.monotonic() < deadline
        seen["pace"] = (sim.time - began[1]) / (time.monotonic() - began[0])
        await instructor.send(json.dumps({"do": "freeze"}))
        async for text in operator:
            told = json.loads(text)
            if told.get("paused") and "missed" in told["pace"]:
                seen["told"] = told
                break
        await asyncio.sleep(0.1)
        frozen = sim.time
        await asyncio.sleep(0.1)
        seen["frozen"], seen["angle"] = sim.time == frozen, sim.joint("hinge").position
        lesson = [
            ("back", {"value": 0.3}),
            ("gravity", {"value": 1.62}),
            ("fail", {"kind": "brake", "name": "hinge"}),
            ("resume", {}),
        ]
        for word, more in lesson:
            await instructor.send(json.dumps({"do": word, **more}))
        await until(lambda: sim.time < frozen)
        back = sim.time
        await until(lambda: sim.time > back + 0.1, 10.0)

    file = tmp_path / "driven.mcap"
    while_driven(sim, lambda: asyncio.run(people()), "door", port=port, wait=False, record=sim.record_file(file))
    kinds = [(e.kind, e.by) for e in sim.inputs.events]
    recording = sh.Recording(file)
    replayed = recording.replay(door())
    print(f"{seen['pace']:.3f} s a second; {seen['told']['pace']}; {kinds}; recorded, and made again: {replayed}")
    assert seen["frozen"] and seen["angle"] > 0.05 and 0 < seen["pace"] < 1.5
    in_time(0.5, seen["pace"], "half of the simulated time")
    assert ("command", "operator") in kinds and ("freeze", "instructor") in kinds and seen["told"]["values"]["push"] == 1.0
    assert {("back", ""), ("parameter", "gravity"), ("failure", "brake/hinge")} <= {
        (e["kind"], e["name"]) for e in recording.events()
    }
    assert replayed.equal and replayed.steps == recording.steps > 60


def test_sticks_have_a_dead_zone():
    assert stick("axis 0", [0.1], []) == 0.0 and stick("axis 0", [1.0], []) == 1.0 and stick("-axis 0", [1.0], []) == -1.0
    assert stick("button 1", [], [0.0, 1.0]) == 1.0
    for wrong in ([None], ["x"], [float("nan")], [], [[1]]):
        assert stick("axis 0", wrong, []) == 0.0


def test_back_in_time_and_a_pull(viewer):
    sim = viewer.sim
    viewer.control = lambda sim: setattr(sim.joint("hinge"), "effort", 25.0)
    for _ in range(20):
        viewer.loop.do("advance", 10)
    seen = sim.time, sim.joint("hinge").position
    viewer.back(0.5)
    assert sim.time == pytest.approx(1.5, abs=0.26) and sim.joint("hinge").position < seen[1] and viewer.paused
    viewer.control = lambda sim: None
    sim.reset()
    viewer.hands.pull.take("door", (0.9, 0, 1), (0.9, 1.0, 1))
    viewer.loop.do("advance", 100)
    assert sim.joint("hinge").position > 0.3 and np.linalg.norm(viewer.hands.pull.force) <= viewer.hands.pull.bound
    viewer.hands.pull.let_go()
    viewer.loop.do("advance", 100)
    assert sim.joint("hinge").stuck


# ---- in a browser ----


def share(picture):
    """How much of the picture between the panels is coloured; 0 while it is being faded in."""
    found = (np.ptp(picture[60:, 320:555], axis=2) > 25).mean()
    return found if found > 1e-3 else 0.0


def driven(sim, title, key, moved, folder, follow=None):
    """A machine in a browser: a key, a slider, a fake gamepad, each seen in the state, and pause; what the page said."""
    viewer = sim.view(title, port=PORT + 1, block=False, follow=follow)
    browser = Browser(folder)
    try:
        browser.open(viewer.drive_url())
        browser.until("!document.getElementById('take').hidden")
        browser.until(lambda: viewer.open_pages > 0 and sim.time > 0.05)
        browser.ask("document.getElementById('take').click()")
        browser.until("document.getElementById('role').textContent === 'you drive'")
        given = next(g for g in sim.inputs.described.values() if key in g.keys)
        before = moved()
        browser.key(key, True)
        browser.until(lambda: sim.inputs.command(given.name) == given.high)
        browser.until(lambda: abs(moved() - before) > 0.02)
        coloured = browser.until(lambda: share(browser.picture(OUT / f"{title}.png")))
        browser.key(key, False)
        browser.until(lambda: sim.inputs.command(given.name) == given.safe)
        slider = f"rows[{json.dumps(given.name)}].slider"

        def slide():  # again, where a page that was drawing for half a second was taken for lost
            browser.ask(f"{slider}.value = {given.high / 2}; {slider}.oninput(); 0")
            time.sleep(0.2)
            return abs(sim.inputs.command(given.name) - given.high / 2) < 0.02

        browser.until(slide)
        turn, number = (-1.0 if given.pad.startswith("-") else 1.0), int(given.pad.split()[1])
        axes = [0.0] * 4
        axes[number] = -turn
        browser.ask(f"navigator.getGamepads = () => [{{connected: true, axes: {axes}, buttons: []}}]")
        browser.until(lambda: sim.inputs.command(given.name) == given.low)
        browser.ask("navigator.getGamepads = () => []")
        browser.until(lambda: sim.inputs.command(given.name) == given.safe)
        viewer.pause()
        stands = sim.time
        time.sleep(0.2)
        assert sim.time == stands
        own = tuple(f"{kind}://127.0.0.1:{PORT + 1}" for kind in ("http", "ws"))
        foreign = [url for url in browser.requests if not url.startswith((*own, "data:", "blob:"))]
        print(f"{title}: {coloured:.2%} of the picture is coloured; errors {browser.errors}; foreign requests {foreign}")
        return coloured, browser.errors, foreign
    finally:
        browser.close()
        viewer.stop()


@pytest.mark.slow
def test_a_key_in_a_browser_opens_the_door(tmp_path):
    chromium()
    sim = door()
    coloured, errors, foreign = driven(sim, "door", "w", lambda: sim.joint("hinge").position, tmp_path)
    assert coloured > 1e-3 and not errors and not foreign


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "moved"),
    [
        ("mf4_door", "w", lambda sim: sim.body("mf4").position[0]),
        ("mobile_crane", "a", lambda sim: sim.joint("crane slew").position),
        ("krt100_trailer", "w", lambda sim: sim.body("krt100").position[0]),
    ],
)
def test_machines_are_driven_in_a_browser(name, key, moved, tmp_path):
    chromium()
    module = examples.load(name)
    sim = module.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coloured, errors, foreign = driven(sim, name, key, lambda: moved(sim), tmp_path, getattr(module, "FOLLOW", None))
    assert coloured > 1e-3 and not errors and not foreign


@pytest.mark.slow
def test_names_with_html_in_them_are_text_in_a_browser(tmp_path):
    """Titles, parts, labels, sliders, plots, the desk and its events: nothing of a name becomes an element of a page."""
    chromium()
    name, hinge = "<img src=x onerror=window.top.hurt=1>", "<img src=x onerror=window.top.hurt=2>"
    scene = sh.Scene()
    scene.add_body(name, sh.Box(0.9, 0.04, 2.0), position=(0.45, 0, 1), color="#a9744f")
    scene.add_joint(hinge, sh.Revolute("z", drive=sh.Servo(kd=5.0)), scene.world, name, position=(0, 0, 1))
    scene.add_input(name, f"joint/{hinge}.velocity", keys=("w",), about=name)
    sim = sh.Simulation(scene, 0.01, solver="sequential")
    viewer = sim.view(name, port=PORT + 4, block=False, plot=(f"joint/{hinge}.q",))
    browser = Browser(tmp_path)
    try:
        viewer.show_layer("names")
        viewer.pick(name)
        viewer.act("fail", "brake", hinge)
        browser.open(viewer.drive_url("instructor"))
        browser.until(lambda: viewer.open_pages > 0 and sim.time > 0.2)
        browser.until(f"document.body.innerText.includes({json.dumps(name)})")
        inner = "document.getElementById('picture').contentDocument"
        browser.until(f"{inner}.body.innerText.includes({json.dumps(name)})")
        found = browser.ask(f"[document, {inner}].map((d) => d.querySelectorAll('img[src=x]').length)")
        browser.picture(OUT / "names.png")
        print(f"images made of names: {found}; errors {browser.errors}")
        assert found == [0, 0] and browser.ask("window.hurt === undefined") and not browser.errors
    finally:
        browser.close()
        viewer.stop()


@pytest.mark.slow
def test_a_driven_machine_in_a_browser(tmp_path):
    """As `sharnir drive` runs it: pages in a process of their own, behind a token."""
    chromium()
    sim, seen, port = door(), {}, PORT + 5

    def look():
        browser = Browser(tmp_path)
        try:
            deadline = time.monotonic() + 60
            with socket.socket() as s:
                while s.connect_ex(("127.0.0.1", port)):
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            browser.open(f"http://127.0.0.1:{port}/drive?token=mine")
            browser.until("!document.getElementById('take').hidden")
            browser.until(lambda: sim.time > 0.05)  # a page looks
            browser.ask("document.getElementById('take').click()")
            browser.until("document.getElementById('role').textContent === 'you drive'")
            browser.key("w", True)
            browser.until(lambda: sim.inputs["push"] == 1.0)
            browser.until(lambda: share(browser.picture(OUT / "driven.png")))
            seen.update(errors=browser.errors, pace=browser.ask("document.getElementById('pace').textContent"))
        finally:
            browser.close()

    while_driven(sim, look, "driven", port=port)
    print(seen, f"the door stands at {sim.joint('hinge').position:.3f} rad")
    assert not seen["errors"] and "missed" in seen["pace"] and sim.joint("hinge").position > 0.02
