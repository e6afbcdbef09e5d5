"""Misspelt names: what is probably meant by an argument or an attribute that does not exist."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import cache
from types import FunctionType
from typing import Any, TypeVar

from sharnir.errors import ArgumentError, Spelled

ATTRIBUTE_SYNONYMS = {
    "angle": "position", "angles": "position", "pos": "position", "pose": "position", "xpos": "position",
    "location": "position", "origin": "position", "anchor": "position", "pivot": "position", "qpos": "q | position",
    "qvel": "qd | velocity", "vel": "velocity", "speed": "velocity", "linear_velocity": "velocity", "linvel": "velocity",
    "cvel": "velocity", "omega": "angular_velocity", "angvel": "angular_velocity", "gyro": "angular_velocity",
    "orientation": "rotation", "quat": "rotation", "quaternion": "rotation", "xquat": "rotation", "orn": "rotation",
    "euler": "rotation=sharnir.rpy(roll, pitch, yaw)", "rpy": "rotation=sharnir.rpy(roll, pitch, yaw)",
    "axis": "joint=sharnir.Revolute(axis='y')", "axisangle": "rotation=sharnir.about('y', 0.5)",
    "degrees": "angle=math.radians(…)", "torque": "effort | command", "tau": "effort", "ctrl": "commands | drive",
    "actuator_force": "applied_effort", "xfrc_applied": "apply_force", "qfrc_applied": "effort", "add_force": "apply_force",
    "force_at": "apply_force", "apply_impulse": "velocity", "apply_external_force": "apply_force", "point": "at", "where": "at",
    "target": "drive.position | position", "set_target": "drive.position", "setpoint": "drive.position | position",
    "command": "drive.command", "range": "limit", "lower": "limit=(lower, upper)", "upper": "limit=(lower, upper)",
    "lo": "limit=(lower, upper)", "jnt_range": "limit", "min": "limit=(lower, upper) | lower",
    "max": "limit=(lower, upper) | upper", "limit": "joint=sharnir.Revolute('y', limit=(lower, upper))",
    "drive": "joint=sharnir.Revolute('y', drive=…)", "damping": "kd | joint=sharnir.Revolute('y', damping=…) | drag_area",
    "linear_damping": "drag_area", "air_drag": "drag_area", "motor": "drive", "actuator": "drive", "servo": "drive",
    "kp": "drive=sharnir.Servo(kp=…, kd=…)", "kd": "drive=sharnir.Servo(kp=…, kd=…)", "p_gain": "kp", "d_gain": "kd",
    "kv": "kd", "armature": "drive=sharnir.Servo(armature=…)", "max_torque": "max_force", "forcerange": "max_force",
    "force_limit": "max_force", "effort_limit": "max_force", "k": "stiffness", "c": "damping", "spring_constant": "stiffness",
    "rest_length": "rest", "stiffness": "kp | spring=(stiffness, rest) | E",
    "mu": "friction | material=sharnir.Material(friction=…)", "frictionloss": "friction",
    "lateral_friction": "friction | material", "friction_coefficient": "friction | material=sharnir.Material(friction=…)",
    "static_friction": "friction | static", "dynamic_friction": "dynamic", "rolling_friction": "rolling",
    "spinning_friction": "torsion", "friction": "material=sharnir.Material(friction=…)",
    "restitution": "material=sharnir.Material(restitution=…)",
    "bounce": "restitution | material=sharnir.Material(restitution=…)", "elasticity": "restitution",
    "bounciness": "restitution", "bouncyness": "restitution", "solref": "stiffness", "solimp": "damping",
    "fixed": "motion='fixed'", "static": "motion='fixed'", "is_static": "motion='fixed'", "kinematic": "motion='kinematic'",
    "fixed_base": "motion='fixed'", "use_fixed_base": "motion='fixed' | fixed", "type": "motion", "body_type": "motion",
    "geometry": "shape", "geom": "shape", "collider": "collision", "collisions": "collide", "enable_collision": "collide",
    "size": "x, y, z (full lengths, m) | shape=sharnir.Box(x, y, z) | radius, length (m) | radius (m)",
    "half_extents": "x, y, z (full lengths, m) | shape=sharnir.Box(x, y, z)", "extents": "x, y, z (full lengths, m)",
    "dimensions": "x, y, z (full lengths, m)", "r": "radius", "diameter": "radius (half of it)",
    "thickness": "radius (half of it)", "height": "length", "half_length": "length", "h": "length", "l": "length",
    "file": "source", "filename": "source | path", "path": "source", "vertices": "source", "weight": "mass", "m": "mass",
    "rho": "density", "colour": "color", "rgba": "color", "rgb": "color", "timestep": "dt | sharnir.Simulation(scene, dt=…)",
    "time_step": "dt | sharnir.Simulation(scene, dt=…)", "delta_time": "dt", "dt": "sharnir.Simulation(scene, dt=…)",
    "gravity": "sharnir.Scene(gravity=(0, 0, -9.81))", "substeps": "dt=… (a smaller step, s) | n", "integrator": "solver",
    "num_worlds": "worlds", "num_envs": "worlds", "n_envs": "worlds", "nworld": "worlds", "envs": "worlds",
    "seconds": "duration", "time": "duration", "steps": "n", "num_steps": "n", "count": "n", "link": "body", "links": "bodies",
    "base": "parent", "body_a": "parent", "body_b": "child", "bodyA": "parent", "bodyB": "child",
    "length": "sharnir.Scene.add_rope(length=…)", "start_body": "attach=(…, …) (bodies at the ends)",
    "end_body": "attach=(…, …) (bodies at the ends)", "bend_stiffness": "EI", "youngs_modulus": "E", "young": "E",
    "simulate": "run", "advance": "run", "mj_step": "step", "step_simulation": "step", "update": "step",
    "integrate_to": "integrate", "render": "view", "show": "view", "gui": "view", "plot": "record", "raycast": "ray_cast",
    "ray_test": "ray_cast", "collisions_of": "contacts", "ncon": "contacts", "get_contact_points": "contacts", "data": "state",
    "nq": "q", "nv": "qd", "num_joints": "joints", "num_bodies": "bodies", "t": "time", "substep": "step",
    "momentum_angular": "angular", "angular_momentum": "angular", "linear_momentum": "linear", "potential_energy": "potential",
    "kinetic_energy": "kinetic", "add_sphere": "add_body(name, sharnir.Sphere(radius), mass=…)",
    "add_box": "add_body(name, sharnir.Box(x, y, z), mass=…)",
    "add_capsule": "add_body(name, sharnir.Capsule(radius, length), mass=…)", "create_body": "add_body",
    "add_rigid_body": "add_body", "add_cylinder": "add_body(name, sharnir.Cylinder(radius, length), mass=…)",
    "add_link": "add_body", "add": "add_body", "add_hinge": "add_joint(name, sharnir.Revolute('y'), parent, child, position=…)",
    "create_joint": "add_joint", "add_revolute": "add_joint(name, sharnir.Revolute('y'), parent, child, position=…)",
    "add_constraint": "add_joint", "add_slider": "add_joint(name, sharnir.Prismatic('z'), parent, child, position=…)",
    "add_plane": "add_ground", "add_floor": "add_ground", "add_ground_plane": "add_ground", "add_heightfield": "add_terrain",
    "add_motor": "set_drive", "add_actuator": "set_drive",
    "add_gear": "add_joint(name, sharnir.Gear(joint_a, joint_b, ratio=…))",
    "add_wheel": "sharnir.Wheel(radius, width, mass).add(scene, …)", "add_cable": "add_cable", "set_gravity": "gravity",
    "compile": "build", "finalize": "build", "from_urdf": "sharnir.load_urdf(file)", "from_mjcf": "sharnir.load_mjcf(file)",
    "from_file": "sharnir.load_scene(file)", "load": "load_scene | load_urdf", "load_model": "load_scene",
    "MjModel": "load_mjcf", "load_xml": "load_mjcf", "from_xml_path": "load_mjcf", "load_sdf": "load_urdf",
    "load_usd": "load_scene", "load_toml": "load_scene", "hinge": "Revolute", "pin": "Revolute", "continuous": "Revolute",
    "slider": "Prismatic", "slide": "Prismatic", "ball": "Spherical", "ballsocket": "Spherical", "pointtopoint": "Spherical",
    "p2p": "Spherical", "weld": "Fixed", "lock": "Fixed", "floating": "Free", "freejoint": "Free", "rod": "Distance",
    "cuboid": "Box", "cube": "Box", "plane": "Scene.add_ground()", "ground": "Scene.add_ground()",
    "heightfield": "Scene.add_terrain()", "trimesh": "Mesh", "hull": "Mesh", "pill": "Capsule",
    "body": "Scene.add_body(name, shape)", "rigidbody": "Scene.add_body(name, shape)", "articulation": "Scene",
    "world": "Scene", "sim": "Simulation", "simulator": "Simulation", "space": "Scene", "engine": "Simulation",
    "mjdata": "Simulation", "connect": "Simulation(scene, dt)", "step": "Simulation.step()", "pd": "PID", "pdcontroller": "PID",
    "ik": "inverse_kinematics", "fk": "forward_kinematics", "jac": "jacobian", "p": "kp", "d": "kd", "i": "ki", "gain": "kp",
}  # fmt: skip
"""What other engines call things (classes in lower case): ours, or how it is written; of several the first whose first word
is known there, or that is a name of the library."""
LEAST_LIKENESS = 0.7
"""How like a misspelt word is, at least, by `difflib`."""


def plain(word: str) -> str:
    """A word without its case, underscores and what says that it is read, assigned or a joint."""
    word = word.lower().replace("_", "")
    return word.removeprefix("get").removeprefix("set").removesuffix("joint") or word


def likely(word: str, known: Collection[str]) -> str:
    """What was probably meant by a word, one of those known first; "" where nothing is near."""
    for other in (ATTRIBUTE_SYNONYMS.get(word) or ATTRIBUTE_SYNONYMS.get(plain(word)) or "").split(" | "):
        if other.startswith("sharnir.") or (other and re.findall(r"\w+", other)[0] in known):
            return other
    same = next((name for name in known if plain(name) == plain(word)), None)
    alike = [name for name in known if name[:3] == word[:3]]
    near = get_close_matches(word, known, 3, LEAST_LIKENESS) or get_close_matches(word, alike, 1)
    return same or next((name for name in near if name[0] == word[0]), near[0] if near else "")


def meant(word: str, known: Collection[str]) -> str:
    """A question about what was probably meant; "" where nothing is near."""
    other = likely(word, known)
    return f"; is {repr(other) if other in known else other} meant?" if other else ""


_signature = cache(inspect.signature)


@cache
def arguments_of(cls: type) -> tuple[str, ...]:
    """Names of what the classes of an object take; () where they take any."""
    names: dict[str, None] = {}
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is None or base is object:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        names |= {p.name: None for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return tuple(names)


def check_arguments(
    who: str, function: Callable[..., Any], known: Collection[str], args: Any, keywords: dict[str, Any], owner: Any = (None,)
) -> None:  # fmt: skip
    """Refuse arguments that do not exist, or are missing, by name.

    Args:
        who: what is called, for messages.
        function: what is called. owner: its first argument, which is not among `args`; () if it has none.
        known: names of all arguments, if it takes others by `**keywords`.
    """
    former = getattr(function, "former", {})
    keywords = {former.get(word, word): value for word, value in keywords.items()}
    takes = f"it takes {', '.join(known)}" if known else "it takes no arguments"
    for word in keywords:
        if word not in known:
            raise ArgumentError(f"{who} has no argument {word!r}{meant(word, known)}; {takes}")
    try:
        _signature(function).bind(*owner, *args, **keywords)
    except TypeError as error:
        given = ", ".join([repr(a) for a in args] + [f"{k}={v!r}" for k, v in keywords.items()])
        raise ArgumentError(f"{who}: {error}; {takes}, got ({given})") from None


def asked(who: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that refuses arguments that do not exist, or are missing, by name; others cost it nothing."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        try:
            return function(self, *args, **keywords)
        except TypeError:
            kinds = list(_signature(function).parameters.values())[1:]
            known = [kind.name for kind in kinds if kind.kind is not kind.VAR_KEYWORD]
            check_arguments(who, function, known if len(known) == len(kinds) else [*known, *keywords], args, keywords)
            raise

    call.asked = True  # type: ignore[attr-defined]
    return call


F = TypeVar("F", bound=Callable[..., Any])


def by_name(function: F) -> F:
    """A decorator of a function: arguments that do not exist, or are missing, are refused by name; others cost it nothing."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            check_arguments(function.__name__, function, list(_signature(function).parameters), args, keywords, ())
            raise

    return call  # type: ignore[return-value]


UNCHECKED_METHODS = frozenset({"apply_force", "apply_torque"})  # methods that are called in each step: to ask costs them too much


def ask_all(cls: type) -> None:
    """Have all public methods of a class checked so, but those that are called often."""
    methods: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        methods |= vars(base)
    made: dict[Any, Any] = {}  # a method may have two spellings
    for name, method in methods.items():
        if isinstance(method, FunctionType) and name[0] != "_" and name not in UNCHECKED_METHODS and not hasattr(method, "asked"):
            made[method] = made.get(method) or asked(f"{cls.__name__}.{name}", method)
            setattr(cls, name, made[method])


class Checked(Spelled):
    """A base of what a user makes with arguments: one that does not exist is refused with what is probably meant."""

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        if args or keywords:  # a copy is made without
            own: Any = cls
            check_arguments(cls.__name__, own.__init__, arguments_of(own), args, keywords)
        return super().__new__(cls)


def names_of(module: str, known: Collection[str]) -> Callable[[str], Any]:
    """A `__getattr__` of a module, for names that it does not have."""

    def missing(name: str) -> Any:
        near = "" if name.startswith("_") else meant(name, known)
        raise AttributeError(f"{module} has no {name!r}{near}; it has {', '.join(known)}")

    return missing
