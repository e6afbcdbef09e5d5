"""What users do wrong: each is told by an error of ours that names the object or the argument; nothing is silent or raw."""

import copy
import functools
import inspect

import numpy as np
import pytest

import sharnir as sh

NAN, INF = float("nan"), float("inf")


def scene():
    out = sh.Scene()
    out.add_body("a", sh.Box(0.2, 0.2, 0.4), mass=1.0, position=(0, 0, -0.2))
    out.add_joint("j", sh.Revolute("y", drive=sh.Servo(kp=5.0, kd=1.0)), out.world, "a", position=(0, 0, 0))
    out.add_body("b", sh.Sphere(0.1), mass=1.0, position=(0, 0, -0.6))
    out.add_joint("ball", sh.Spherical(), "a", "b", position=(0, 0, -0.5))
    out.add_body("c", sh.Sphere(0.1), mass=1.0, position=(1, 0, 0))
    out.add_joint("rod", sh.Distance(), out.world, "c", position=[(1, 0, 1), (1, 0, 0.1)])
    out.add_spring("s", "a", "c", stiffness=1.0)
    out.add_rope("r", (2, 0, 0), (2, 0, -1), segments=4, mass_per_length=0.1)
    return out


DESCRIBED = {
    "a body twice": lambda s: s.add_body("a", sh.Sphere(1)),
    "a mass of nothing": lambda s: s.add_body("n", sh.Sphere(1), mass=0),
    "a mass of NaN": lambda s: s.add_body("n", sh.Sphere(1), mass=NAN),
    "a word for a mass": lambda s: s.add_body("n", sh.Sphere(1), mass="heavy"),
    "a position of two": lambda s: s.add_body("n", sh.Sphere(1), position=(1, 2)),
    "a rotation of nothing": lambda s: s.add_body("n", sh.Sphere(1), rotation=(0, 0, 0, 0)),
    "a motion unknown": lambda s: s.add_body("n", sh.Sphere(1), motion="kinetic"),
    "a path of a dynamic body": lambda s: s.add_body("n", sh.Sphere(1), path=lambda t: (0, 0, 0)),
    "an inertia that is negative": lambda s: s.add_body("n", sh.Sphere(1), inertia=(1, 1, -1)),
    "a shape that is none": lambda s: s.add_body("n", "box"),
    "a box of no width": lambda s: sh.Box(0, 1, 1),
    "a joint to nobody": lambda s: s.add_joint("n", sh.Fixed(), "world", "nobody", position=(0, 0, 0)),
    "a joint to itself": lambda s: s.add_joint("n", sh.Fixed(), "a", "a", position=(0, 0, 0)),
    "a joint without a place": lambda s: s.add_joint("n", sh.Fixed(), "world", "a"),
    "an axis unknown": lambda s: sh.Revolute("w"),
    "an axis of nothing": lambda s: sh.Revolute((0, 0, 0)),
    "a limit upside down": lambda s: s.add_joint("n", sh.Revolute("x", limit=(1, 0)), "world", "b", position=(0, 0, 0)),
    "a limit of a ball": lambda s: s.add_joint("n", sh.Spherical(limit=(0, 1)), "world", "b", position=(0, 0, 0)),
    "friction below 0": lambda s: s.add_joint("n", sh.Revolute("x", friction=-1), "world", "b", position=(0, 0, 0)),
    "a target without kp": lambda s: sh.Servo(position=1.0),
    "a gear on a ball": lambda s: s.add_joint("n", sh.Gear("ball", "j")),
    "a gear of nothing": lambda s: sh.Gear("j", "j", 0.0),
    "a frame on nobody": lambda s: s.add_frame("n", "nobody"),
    "a frame twice": lambda s: [s.add_frame("n", "a") for _ in range(2)],
    "a spring to nobody": lambda s: s.add_spring("n", "a", "nobody"),
    "a spring below 0": lambda s: s.add_spring("n", "a", "b", stiffness=-1),
    "a rope of no length": lambda s: s.add_rope("n", (0, 0, 0), (0, 0, 0)),
    "a rope that is too short": lambda s: s.add_rope("n", (0, 0, 0), (1, 0, 0), length=0.5),
    "a gravity of two": lambda s: setattr(s, "gravity", (0, 0)),
    "a word that means nothing": lambda s: setattr(s, "gravty", 1),
    "no step": lambda s: sh.Simulation(s, 0.0),
    "a solver unknown": lambda s: sh.Simulation(s, 1e-3, solver="magic"),
    "an option unknown": lambda s: sh.Simulation(s, 1e-3, iteratons=3),
    "worlds of half": lambda s: sh.Simulation(s, 1e-3, worlds=1.5),
    "a device unknown": lambda s: sh.Simulation(s, 1e-3, device="tpu"),
    "no scene": lambda s: sh.Simulation(3, 1e-3),
}

RUNNING = {
    "no body of that name": lambda s: s.body("x"),
    "no joint of that name": lambda s: s.joint("x"),
    "no rope of that name": lambda s: s.rope("x"),
    "no spring of that name": lambda s: s.spring("x"),
    "no gear of that name": lambda s: s.gear("x"),
    "no frame of that name": lambda s: s.frame("x"),
    "half a step": lambda s: s.step(0.5),
    "no steps": lambda s: s.step(0),
    "a budget below 0": lambda s: s.step(budget=-1),
    "a run back in time": lambda s: s.run(-1),
    "a position of NaN": lambda s: setattr(s.body("a"), "position", (0, 0, NAN)),
    "a velocity of a word": lambda s: setattr(s.body("a"), "velocity", "fast"),
    "a velocity of one": lambda s: setattr(s.body("a"), "velocity", 3.0),
    "a rotation of five": lambda s: setattr(s.body("a"), "rotation", (1, 2, 3, 4, 5)),
    "the world moved": lambda s: setattr(s.body("world"), "position", (0, 0, 1)),
    "a force of NaN": lambda s: s.body("a").apply_force((0, 0, NAN)),
    "a force of two": lambda s: s.body("a").apply_force((0, 0)),
    "a force on the world": lambda s: s.body("world").apply_force((0, 0, 1)),
    "a force at NaN": lambda s: s.body("a").apply_force((0, 0, 1), at=(0, NAN, 0)),
    "a joint's position of a word": lambda s: setattr(s.joint("j"), "position", "up"),
    "a joint's velocity of INF": lambda s: setattr(s.joint("j"), "velocity", INF),
    "a rod's position": lambda s: setattr(s.joint("rod"), "position", 1.0),
    "a rod's drive": lambda s: setattr(s.joint("rod").drive, "max_force", 1.0),
    "a target of NaN": lambda s: setattr(s.joint("j").drive, "position", NAN),
    "a target of a ball without kp": lambda s: setattr(s.joint("ball").drive, "position", 0.1),
    "a voltage without a motor": lambda s: setattr(s.joint("j").drive, "voltage", 1.0),
    "a resistance without a motor": lambda s: setattr(s.joint("j").drive, "resistance", 1.0),
    "kp below 0": lambda s: setattr(s.joint("j").drive, "kp", -1),
    "a drive of a word": lambda s: setattr(s.joint("j"), "drive", "servo"),
    "a limit of one": lambda s: setattr(s.joint("j"), "limit", 3),
    "a limit of an axis that is not free": lambda s: setattr(s.joint("j"), "limit", {"rz": (0, 1)}),
    "a limit of a ball set": lambda s: setattr(s.joint("ball"), "limit", (0, 1)),
    "a spring below 0": lambda s: setattr(s.joint("j"), "spring", (-1, 0)),
    "a damping of a rod": lambda s: setattr(s.joint("rod"), "damping", 1.0),
    "friction of a word": lambda s: setattr(s.joint("j"), "friction", "dry"),
    "a mass below 0": lambda s: setattr(s.body("a"), "mass", -1),
    "masses of too many worlds": lambda s: setattr(s.body("a"), "mass", [1.0, 2.0]),
    "an inertia of NaN": lambda s: setattr(s.body("a"), "inertia", (1, 1, NAN)),
    "a spring's stiffness of a word": lambda s: setattr(s.spring("s"), "stiffness", "stiff"),
    "a rope's EI of NaN": lambda s: setattr(s.rope("r"), "EI", NAN),
    "a reel that is none": lambda s: setattr(s.rope("r"), "reel_speed", 1.0),
    "a point that a rope has not": lambda s: s.rope("r").apply_force(99, (0, 0, 1)),
    "a gravity of a word": lambda s: setattr(s, "gravity", "down"),
    "a step below 0": lambda s: setattr(s, "dt", -1e-3),
    "coordinates of too few": lambda s: setattr(s, "q", [1.0]),
    "efforts of NaN": lambda s: setattr(s, "effort", [NAN] * 4),
    "targets of too many": lambda s: setattr(s.target, "position", [0.0] * 99),
    "no joint matches": lambda s: s.index("leg*"),
    "a world too far": lambda s: s.reset(worlds=[3]),
    "a snapshot of a number": lambda s: s.restore(3),
    "nothing to record": lambda s: s.record("joint/x.q"),
    "a film of no kind": lambda s: s.video("x.txt"),
    "a spread of 2": lambda s: s.randomize(seed=1, mass=2.0),
    "a spread unknown": lambda s: s.randomize(seed=1, colour=0.1),
    "an integration back in time": lambda s: s.integrate(-1.0),
}


@pytest.mark.parametrize("what", DESCRIBED)
def test_wrong_descriptions_are_told(what):
    with pytest.raises((sh.SceneError, sh.SimulationError)) as told:
        DESCRIBED[what](scene())
    print(f"{what}: {told.value}")
    assert len(str(told.value)) > 15 and "object has no attribute" not in str(told.value)


@pytest.fixture(scope="module")
def running():
    return sh.Simulation(scene(), 1e-3)


@pytest.mark.parametrize("what", RUNNING)
def test_wrong_words_to_a_simulation_are_told(what, running):
    before = running.snapshot()
    with pytest.raises((sh.SceneError, sh.SimulationError)) as told:
        RUNNING[what](running)
    print(f"{what}: {told.value}")
    assert len(str(told.value)) > 15 and "object has no attribute" not in str(told.value)
    after = running.snapshot()
    changed = [name for name in before if not np.array_equal(before[name], after[name], equal_nan=True)]
    assert not changed, f"{what} was refused, and {changed} changed"


# ---- every argument of every call, given what it never is ----

NEVER = (NAN, object(), {"a": 1}, [[1, 2], [3]], 1j, b"z")
NONE_BUT = (sh.SceneError, sh.SimulationError)
LAWS = ("limit", "friction", "spring", "damping", "drive")
MADE = {
    sh.Box: (1.0, 1.0, 1.0), sh.Sphere: (1.0,), sh.Capsule: (1.0, 1.0), sh.Cylinder: (1.0, 1.0), sh.Cone: (1.0, 1.0),
    sh.Ellipsoid: (1.0, 1.0, 1.0), sh.Revolute: ("x",), sh.Prismatic: ("x",), sh.Cylindrical: ("x",), sh.PointOnLine: ("x",),
    sh.Universal: (("x", "y"),), sh.Planar: ("x",), sh.Distance: (), sh.Friction: (1.0,), sh.Servo: (), sh.DCMotor: (),
    sh.Limit: (), sh.Cardan: (), sh.SwingTwist: (), sh.Material: (), sh.Motor: (), sh.Battery: (12.0,), sh.Engine: (),
    sh.HydraulicCylinder: (), sh.Wheel: (0.3, 0.2, 10.0), sh.Tire: (1e4,), sh.Suspension: (1e4,), sh.Steering: (),
    sh.sensors.Noise: (), sh.Tolerances: (),
    sh.Track: ([(0, 0, 0.1), (1, 0, 0.1)], 0.1, 5.0),
}  # fmt: skip
ADDED = {
    "add_body": {"name": "n", "shape": sh.Sphere(0.1)},
    "add_joint": {"name": "n", "joint": sh.Spherical(), "parent": "world", "child": "b", "position": (0, 0, 0)},
    "add_spring": {"name": "n", "a": "a", "b": "b"},
    "add_rope": {"name": "n", "start": (0, 0, 5), "end": (1, 0, 5)},
    "add_ground": {},
    "add_terrain": {"name": "n", "heights": np.zeros((4, 4)), "size": (1, 1)},
    "add_frame": {"name": "n", "body": "a"},
    "add_sensor": {"name": "n", "kind": "lidar", "on": "a"},
    "add_cable": {"name": "n", "path": ["a", "b"]},
    "add_belt": {"joint": "j", "body": "a", "shapes": [sh.Sphere(0.1)], "radius": 0.1},
    "add_raycast_wheel": {"name": "n", "body": "a", "shape": sh.Sphere(0.1), "axis": (0, 1, 0), "radius": 0.1, "inertia": 1.0},
    "ignore": {"a": "a", "b": "b"},
    "set_drive": {"joints": "j", "drive": sh.Servo()},
    "set_pair": {"a": "a", "b": "b", "material": sh.Material()},
}
ASKED = {
    "step": {"n": 1, "budget": 1.0, "iterations": 1}, "run": {"duration": 0.1}, "reset": {"worlds": 0},
    "restore": {"snapshot": None}, "index": {"pattern": "*"}, "randomize": {"seed": 1},
    "ray_cast": {"origin": (0, 0, 5), "direction": (0, 0, -1)}, "distance": {"a": "a", "b": "b"},
    "shape_cast": {"shape": sh.Sphere(0.1), "position": (0, 0, 5), "rotation": (0, 0, 0, 1), "direction": (0, 0, -1)},
    "overlaps": {"shape": sh.Sphere(0.1), "position": (0, 0, 5), "rotation": (0, 0, 0, 1)},
    "contact_force": {"a": "a", "b": "b"},
    **{kind: {"name": "a"} for kind in ("body", "joint", "rope", "spring", "gear", "frame", "sensor")},
}  # fmt: skip


def wrong(call, given, name):
    """What a call does with values that this argument never has, where it is no error of ours."""
    out = []
    for value in NEVER:
        try:
            call(**{**given, name: value})
        except NONE_BUT as told:
            if len(str(told)) < 15:
                out.append(f"{name}={value!r}: {told}")
        except Exception as raw:
            out.append(f"{name}={value!r}: {type(raw).__name__} {raw}")
        else:
            out.append(f"{name}={value!r} was taken")
    return out


def check_all(calls):
    """Each (label, call, given, argument names)."""
    found = [f"{label}: {off}" for label, call, given, names in calls for name in names for off in wrong(call, given, name)]
    kinds = sum(len(names) for *_, names in calls)
    print(f"{kinds} arguments, {kinds * len(NEVER)} calls: {len(found)} silent or raw")
    assert not found, found
    return kinds


def arguments(call, leave=()):
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(call).parameters.values() if p.kind in named and p.name not in ("self", *leave)]


def test_no_part_of_a_scene_takes_what_it_never_is():
    calls = []
    for kind, values in MADE.items():
        names = arguments(kind, LAWS if issubclass(kind, sh.Joint) else ())  # those are checked with the joint's name
        given = dict(zip(names, values, strict=False))
        calls.append((kind.__name__, kind, given, names))
    assert check_all(calls) >= 80


def test_no_call_of_a_scene_takes_what_it_never_is():
    made = scene()

    def call(method):
        return lambda **given: getattr(copy.deepcopy(made), method)(**given)

    def take(kind, **given):
        copy.deepcopy(made).add_joint("n", kind(**given), "a", "c", position=(0, 0, 0))

    def over(wheel, **given):
        copy.deepcopy(made).add_cable("n", ["a", wheel(**given), "c"][: 3 if wheel is sh.Sheave else 2])

    calls = [(method, call(method), given, arguments(getattr(sh.Scene, method), ("scene",))) for method, given in ADDED.items()]
    for wheel in (sh.Sheave, sh.Drum):
        given = {"body": "b", "radius": 0.05}
        run = functools.partial(over, wheel)
        calls.append((wheel.__name__, run, given, arguments(wheel)))
    for kind, names in (
        ("lidar", "position rotation noise count field elevations reach ignore groups"),
        ("depth", "width height"),
    ):
        calls.append((f"add_sensor {kind}", call("add_sensor"), {"name": "n", "kind": kind, "on": "a"}, names.split()))
    for law in LAWS:
        for kind in (sh.Revolute, sh.Spherical, sh.Universal):
            calls.append((kind.__name__, functools.partial(take, kind), {}, [law]))
    assert check_all(calls) > 70


def test_no_call_of_a_simulation_takes_what_it_never_is():
    touching = scene()
    touching.add_ground(-9.0)
    sim = sh.Simulation(touching, 1e-3)
    calls = [(method, getattr(sim, method), given, list(given)) for method, given in ASKED.items()]
    calls.append(("apply_force", sim.body("a").apply_force, {"force": (0, 0, 1)}, ["force", "at"]))
    calls.append(("rope's", sim.rope("r").apply_force, {"point": 1, "force": (0, 0, 1)}, ["point", "force"]))
    at = [("body", sim.body("a")), ("joint", sim.joint("j")), ("drive", sim.joint("j").drive), ("spring", sim.spring("s"))]
    for label, view in [*at, ("rope", sim.rope("r")), ("simulation", sim), ("target", sim.target)]:
        names = [n for kind in type(view).__mro__ for n, v in vars(kind).items() if isinstance(v, property) and v.fset]
        calls.append((label, lambda view=view, **given: [setattr(view, *pair) for pair in given.items()], {}, sorted(set(names))))
    options = ["tolerances", "worlds", "threads", "device", "solver", "dt"]
    plain = sh.Scene()
    plain.add_body("a", sh.Sphere(0.1), mass=1.0)
    calls.append(("Simulation", lambda **given: sh.Simulation(plain, **given), {"dt": 1e-3}, [*options, "on_divergence"]))
    assert check_all(calls) > 80
