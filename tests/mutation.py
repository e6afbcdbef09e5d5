"""Mutated files, one entry point a class: what is read is right, or refused by a named error; nothing else may happen.

    python tests/mutation.py checkpoint 10000     # in a process of its own: prints counts, the longest case and the memory

Each class has `case(rng)`: one mutated file is made and read; True where it was accepted. Any exception but those of the library,
and any case that takes longer than LONGEST seconds, is a failure.
"""

import contextlib
import json
import pathlib
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
import zlib

import numpy as np
from damage import NUMBERS as COMMON
from damage import damaged

import sharnir as sh
from sharnir.io import mcap
from sharnir.runtime import checkpoint

LONGEST = 30.0  # s of CPU time of one case
EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
JUNK = [
    None,
    True,
    -1,
    0,
    3,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    {},
    [1, 2],
    [[]],
    {"a": 1},
    10**30,
    -(10**9),
    "9" * 5000,
    "../../etc/passwd",
    [1e9] * 3,
    "<f8",
    2**31,
]
NUMBERS = (
    *COMMON,
    "10000000",
    "1000000",
    "65537",
    '"= 10 ** 9"',
    '"/etc/passwd"',
    '"../x.toml"',
    "[10000000, 10000000]",
    '"={i}"',
    "20000",
)


def door():
    scene = sh.Scene()
    scene.add_body("door", sh.Box(0.9, 0.04, 2.0), mass=26.0, position=(0.45, 0, 1))
    scene.add_joint("hinge", sh.Revolute("z", limit=(0, 2.0), friction=20.0), scene.world, "door", position=(0, 0, 1))
    scene.add_input("push", "joint/hinge.torque", scale=60.0, keys=("w", "s"))
    scene.add_sensor("gap", "distance", "door", to="world", noise=sh.sensors.Noise(sigma=0.01))
    return sh.Simulation(scene, 0.01, solver="sequential")


def cart(solver, ground=True, rope=True):
    """A cart on the ground with an arm and a rope that lies beside it: whole numbers of every kind."""
    scene = sh.Scene()
    if ground:
        scene.add_ground()
    scene.add_body("cart", sh.Box(0.4, 0.3, 0.2), mass=5.0, position=(0, 0, 0.1))
    scene.add_body("arm", sh.Box(0.1, 0.1, 0.4), mass=1.0, position=(0, 0, 0.4))
    scene.add_joint("pivot", sh.Revolute("y", drive=sh.Servo(kp=10.0, kd=5.0)), "cart", "arm", position=(0, 0, 0.2))
    if rope:
        scene.add_rope("tail", (-0.2, 0, 0.1), (-0.8, 0, 0.1), segments=4, radius=0.01, mass_per_length=0.1, EI=0.01, GJ=0.01,
                       attach=("cart", None))  # fmt: skip
    return sh.Simulation(scene, 5e-3, solver=solver, on_divergence="ignore")


def mutated_value(value, rng):
    """A value of JSON with something wrong at a random depth."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        out = dict(value)
        match rng.randrange(4):
            case 0:
                del out[key]
            case 1:
                out[key + "x"] = out.pop(key)
            case _:
                out[key] = mutated_value(value[key], rng)
        return out
    if isinstance(value, list) and value and rng.random() < 0.8:
        at, out = rng.randrange(len(value)), list(value)
        match rng.randrange(4):
            case 0:
                del out[at]
            case 1:
                out.insert(at, out[rng.randrange(len(out))])
            case _:
                out[at] = mutated_value(value[at], rng)
        return out
    return rng.choice(JUNK)


def mutated_array(array, rng):
    """An array with other content, type or shape."""
    out = np.array(array)
    match rng.randrange(8):
        case 0:
            return out.astype(rng.choice([np.float32, np.int32, np.int64, np.uint8, bool]))
        case 1:
            return out.reshape(-1)
        case 2:
            return out[: len(out) // 2] if out.ndim else out[None]
        case 3:
            return np.repeat(out, 2, 0) if out.ndim else np.repeat(out, 3)
        case 4 if out.size:
            out[...] = 0
            return out
    if not out.size:
        return np.zeros((3, 1))
    for _ in range(rng.choice([1, 1, 5])):
        flat, at = out.reshape(-1), rng.randrange(out.size)
        if out.dtype.kind == "f":
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e10, 0.0, 1e-300, -flat[at], 1e6])
        else:
            flat[at] = rng.choice([-1, 1, 2, 7, 100, 2**31 - 1, -(2**31), 2**20, 12])
    return out


class Checkpoint:
    """Checkpoints whose content is wrong and whose checksum is right; and bytes changed at random."""

    def __init__(self, _folder):
        self.sims = self.scenes()
        self.all = []
        for sim in self.sims:
            sim.step(6)
            data = checkpoint.dump(sim)
            self.all.append((sim, data, *checkpoint.unpack(data, "x")))

    def scenes(self):
        return [door(), cart("sequential"), cart("direct", rope=False), cart("direct", ground=False)]

    def packed(self, description, arrays, rng):
        listed = [[name, a.dtype.str, list(a.shape)] for name, a in arrays.items()]
        if rng.random() < 0.3:
            listed = mutated_value(listed, rng)
        told = description | {"arrays": listed}
        if rng.random() < 0.4:
            told = mutated_value(told, rng)
        text = json.dumps(told).encode()
        body = zlib.compress(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays.values()), 1)
        if rng.random() < 0.05:
            body = rng.randbytes(len(body))
        digest = checkpoint._digest(len(text), len(body), text, body)
        return (
            checkpoint.SAVE_HEAD.pack(checkpoint.SAVE_MAGIC, checkpoint.SAVE_FORMAT, len(text), len(body), digest) + text + body
        )

    def case(self, rng):
        sim, good, description, arrays = rng.choice(self.all)
        arrays = dict(arrays)
        for _ in range(rng.randrange(3)):
            name = rng.choice(list(arrays))
            match rng.randrange(10):
                case 0:
                    del arrays[name]
                case 1:
                    arrays[name + "x"] = arrays.pop(name)
                case _:
                    arrays[name] = mutated_array(arrays[name], rng)
        data = self.packed(description, arrays, rng)
        if rng.random() < 0.1:
            at = rng.randrange(len(good))
            data = good[:at] + rng.randbytes(rng.randrange(4)) + good[at + rng.randrange(4) :]
        before = sim.time
        try:
            checkpoint.restore(sim, data, "file")
        except sh.SimulationError as error:
            assert str(error).startswith("file: ") and sim.time == before, error
            return False
        with contextlib.suppress(sh.SimulationError):
            sim.step(2)
        checkpoint.restore(sim, good, "good")
        return True


class Recording:
    """Recordings whose messages are wrong and whose checksums are right, read and replayed; and bytes changed at random."""

    def __init__(self, folder):
        self.path = folder / "run.mcap"
        self.all = []
        for sim in (door(), cart("direct", rope=False), cart("direct", ground=False)):
            with sim.record_file(self.path, rate=20, key=0.1):
                for k in range(5):
                    if sim.inputs:
                        sim.inputs["push"] = 0.3 * k
                    else:
                        sim.joint("pivot").drive.position = 0.1 * k
                    sim.step(5)
            self.all.append((sim, self.path.read_bytes(), mcap.read(self.path)))
        self.count = 0

    def written(self, contents, rng):
        facts = {key: json.loads(value) for key, value in contents.metadata["sharnir"].items()}
        files, messages = dict(contents.attachments), list(contents.messages)
        match rng.randrange(4):
            case 0:
                facts = mutated_value(facts, rng)
                facts = facts if isinstance(facts, dict) else {"x": facts}
            case 1:
                name = rng.choice(list(files))
                files[name] = self.bytes(files[name], rng)
            case _:
                for _ in range(rng.choice([1, 1, 3])):
                    if not messages:
                        break
                    at = rng.randrange(len(messages))
                    topic, when, data = messages[at]
                    match rng.randrange(6):
                        case 0:
                            del messages[at]
                        case 1:
                            messages.insert(rng.randrange(len(messages)), messages[at])
                        case 2:
                            messages[at] = rng.choice(messages)[0], when, data
                        case _:
                            messages[at] = topic, when, self.bytes(data, rng)
        with self.path.open("wb") as stream:
            writer = mcap.Writer(stream, "x")
            writer.add_metadata("sharnir", {key: json.dumps(value) for key, value in facts.items()})
            for name, data in files.items():
                writer.add_attachment(name, "x", data, 0)
            topics = {topic: writer.add_channel(topic, "x") for topic in dict.fromkeys(m[0] for m in messages)}
            for topic, when, data in messages:
                writer.add(topics[topic], when, data)
            writer.close()

    def bytes(self, data, rng):
        """Data with bytes changed, cut off or added; of JSON also a value."""
        if data[:1] == b"{" and rng.random() < 0.6:
            with contextlib.suppress(ValueError):  # it was mutated before
                return json.dumps(mutated_value(json.loads(data), rng)).encode()
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                return data[:at]
            case 1:
                return data[:at] + rng.randbytes(8) + data[at:]
            case 2 if len(data) >= at + 4:
                return data[:at] + struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1, 1000])) + data[at + 4 :]
        return data[:at] + rng.randbytes(rng.randrange(1, 5)) + data[at + 3 :]

    def case(self, rng):
        sim, good, contents = rng.choice(self.all)
        if rng.random() < 0.2:
            at = rng.randrange(len(good))
            self.path.write_bytes(good[:at] + rng.randbytes(rng.randrange(4)) + good[at + rng.randrange(4) :])
        else:
            self.written(contents, rng)
        self.count += 1
        try:
            found = sh.Recording(self.path)
            found.events()
            found.key_times()
            assert isinstance(found.scene, str) and np.isfinite(found.time).all()
            found.columns()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self.count % 100 == 0:
                    self.made(found)
                found.replay(sim)
        except (sh.SimulationError, sh.SceneError) as error:
            assert str(error), error
            return False
        return True

    @staticmethod
    def made(found):
        from sharnir.cli.examples import UsageError
        from sharnir.cli.subjects import recorded

        with contextlib.suppress(UsageError):
            recorded(found)


class Texts:
    """Files of text, damaged line by line, number by number, name by name."""

    suffix, numbers, texts = "", NUMBERS, ()

    def __init__(self, folder):
        self.folder = folder

    def case(self, rng):
        numpy = np.random.default_rng(rng.randrange(2**32))
        text = damaged(rng.choice(self.texts), numpy, self.numbers)
        file = self.folder / f"bad{self.suffix}"
        file.write_bytes(text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.read(file)
        except sh.SceneError as error:
            for line in getattr(error, "problems", [str(error)]):
                assert "cannot be made of these values" not in line or "Error" in line, line
                assert line.partition(":")[0].endswith((".toml", ".xml", ".urdf")), line
            return False
        return True

    def read(self, file):
        sh.load_scene(file)


class Scene(Texts):
    """Scene files in TOML, of the examples and of one with counts, parts, ropes, stairs and fields."""

    suffix = ".toml"

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "leg.toml").write_text('[parameters]\nlength = 0.5\n[body.thigh]\nmass = 1.0\nposition = [0, 0, "= -length"]\n')
        self.texts = [*(p.read_text() for p in sorted((EXAMPLES / "scenes").glob("*.toml"))), EVERYTHING]


EVERYTHING = """
[parameters]
n = 3
width = 0.5
[scene]
gravity = [0, 0, -9.81]
[simulation]
dt = 0.002
solver = "sequential"
[ground]
[terrain.field]
heights = {type = "sum", of = [
  {type = "hill", size = [4, 4], height = 0.5, radius = 1.0},
  {type = "rubble", size = [4, 4], height = 0.1, seed = 3},
]}
[body.steps]
motion = "fixed"
shape = {type = "stairs", rise = 0.1, tread = 0.3, count = 4, width = 1.0}
[body."link {i}"]
repeat = {i = "= n"}
shape = {type = "Capsule", radius = 0.05, length = "= width"}
mass = 1.5
position = [0, 0, "= 2 + i * 0.6"]
[joint."hinge {i}"]
repeat = {i = 2}
type = "Revolute"
axis = "y"
limit = [-1.0, 1.0]
friction = 0.2
parent = "link {i}"
child = "= 'link ' if i > 9 else 'link 1'"
position = [0, 0, 2.3]
[rope.line]
start = [1, 0, 1]
end = [2, 0, 1]
segments = 8
mass_per_length = 0.2
[spring.s]
a = "world"
b = "link 0"
stiffness = 100.0
[input.lever]
target = "joint/hinge 0.effort"
scale = 10.0
[place.left]
file = "leg.toml"
position = [0, 1, 1]
set = {length = 0.7}
"""


class Mjcf(Texts):
    """MJCF files; MuJoCo's compiler reads those that pass."""

    suffix = ".xml"
    numbers = (
        *COMMON[:9],
        "x",
        "",
        "1 2",
        "100000",
        "5000",
        "../x",
        "/etc/passwd",
        "1e9",
    )

    def __init__(self, folder):
        super().__init__(folder)
        from test_mjcf import MODEL

        more = '<mujoco><size memory="1M" nuserdata="3"/><compiler meshdir="." angle="radian"/>\n'
        more += '<worldbody><replicate count="3" offset="1 0 0">\n<body name="b"><freejoint/>'
        more += '<geom type="sphere" size="0.1"/></body></replicate></worldbody></mujoco>'
        self.texts = [MODEL, MODEL, more]


class Urdf(Texts):
    """URDF files: a robot with all joints, meshes that are not there, mimics."""

    suffix = ".urdf"
    numbers = Mjcf.numbers

    def __init__(self, folder):
        super().__init__(folder)
        inertial = '<inertial><mass value="1.5"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
        shape = '<collision><origin xyz="0 0 0.1" rpy="0 0 1"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
        mesh = '<visual><geometry><mesh filename="package://robot/part.stl" scale="1 1 1"/></geometry></visual>'
        links = "\n".join(f'<link name="l{i}">\n{inertial}\n{shape}\n{mesh if i % 2 else ""}\n</link>' for i in range(5))
        types = ("revolute", "continuous", "prismatic", "fixed")
        joints = "\n".join(
            f'<joint name="j{i}" type="{kind}">\n<origin xyz="0.1 0 0.2" rpy="0 0.5 0"/>\n<parent link="l{i}"/>\n'
            f'<child link="l{i + 1}"/>\n<axis xyz="0 1 0"/>\n<limit lower="-1" upper="1" effort="10" velocity="3"/>\n'
            '<dynamics damping="0.1" friction="0.2"/>\n'
            + ('<mimic joint="j0" multiplier="2" offset="0.1"/>\n' if i == 2 else "") + "</joint>"
            for i, kind in enumerate(types)
        )  # fmt: skip
        self.texts = [f'<?xml version="1.0"?>\n<robot name="r">\n{links}\n{joints}\n</robot>\n']


class TouchingRope(Checkpoint):
    """The same for a rope beside contacts, whose direct steps take longer to compile than all the others together."""

    def scenes(self):
        return [cart("direct")]


ENTRIES = {
    "checkpoint": Checkpoint,
    "touching rope": TouchingRope,
    "recording": Recording,
    "scene": Scene,
    "mjcf": Mjcf,
    "urdf": Urdf,
}


def late(*_):
    """What a case that takes too long ends with."""
    raise TimeoutError(f"a case takes longer than {LONGEST} s")


def run(entry, count, seed=0, folder=None):
    """Counts of accepted and refused cases, and the longest in s of CPU time; raises on the first failure."""
    assert sh.Simulation  # imported before anything is timed
    before = signal.signal(signal.SIGPROF, late)
    try:
        with tempfile.TemporaryDirectory() as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attack = ENTRIES[entry](pathlib.Path(folder or made))
            accepted, longest = 0, 0.0
            for k in range(seed, seed + count):
                started = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, LONGEST)
                try:
                    accepted += attack.case(random.Random(k))
                except Exception as error:
                    raise AssertionError(f"{entry}, case {k}: {type(error).__name__}: {error}") from error
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                longest = max(longest, time.process_time() - started)
    finally:
        signal.signal(signal.SIGPROF, before)
    return accepted, count - accepted, longest


def main():
    """One entry point in a process of its own."""
    entry, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    accepted, refused, longest = run(entry, count, seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"accepted": accepted, "refused": refused, "longest_s": round(longest, 2), "peak_MB": round(peak)}))


if __name__ == "__main__":
    main()
