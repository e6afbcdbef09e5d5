"""A forest of links: what the step knows of a mechanism.

A link hangs on its base (another link, or the ground) by a joint of one kind: a hinge or a slider along z of the joint's frame, a
ball, a weld (no axis), or, on the ground only, a free joint (six axes) or a motion that is prescribed. A joint with more axes is
a row of links of which only the last has mass. A rotor is a hinge whose link is symmetric about it and carries nothing
(`with_rotors`). Slides are two or three translations in
one link, turns two rotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

HINGE, SLIDER, BALL, FREE, WELD, PRESCRIBED, ROTOR, SLIDES, TURNS = range(9)
KINDS = ("hinge", "slider", "ball", "free", "weld", "prescribed", "rotor", "slides", "turns")
USUAL = (HINGE, SLIDER, BALL, FREE, WELD, PRESCRIBED)  # kinds that code for any forest knows, unless others are asked for
ONE_AXIS = (HINGE, SLIDER, ROTOR)  # kinds with one axis
TURNING = (HINGE, ROTOR)  # those of them whose coordinate is an angle
SEVERAL = (BALL, SLIDES, TURNS)  # kinds whose laws are those of several axes
OFF = -1  # kind of a link that is left out of steps in a world
GROUND = -1


@dataclass
class Link:
    """One link; vectors in the axes of its own joint frame unless said.

    Args:
        base: index of the link it hangs on, or GROUND; less than its own index.
        kind: HINGE, SLIDER, BALL, FREE, WELD, PRESCRIBED, ROTOR, SLIDES or TURNS.
        frame: (3, 3) axes of the joint frame as columns, in the base's frame, where the joint's coordinates are zero.
        anchor: (3,) m, origin of the joint frame in the base's frame.
        com: (3,) m, centre of mass from the joint frame's origin.
        inertia: (3, 3) kg·m², about the centre of mass.
        mass: kg; 0 for the links inside a joint with several axes.
    """

    base: int
    kind: int
    frame: np.ndarray = field(default_factory=lambda: np.eye(3))
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    mass: float = 0.0
    # by the names in LAWS, those that are not zero; of a joint with several axes one value for all or one for each axis, and by
    # the names in JOINT_LAWS
    laws: dict[str, Any] = field(default_factory=dict)


LAWS = {
    "stiffness": 0.0, "rest": 0.0, "damping": 0.0, "friction_static": 0.0, "friction_dynamic": 0.0, "friction_viscous": 0.0,
    "friction_stribeck": 0.0, "limit_lower": -1e30, "limit_upper": 1e30, "restitution": 0.0, "servo_kp": 0.0, "servo_kd": 0.0,
    "servo_position": 0.0, "servo_velocity": 0.0, "servo_torque": 0.0, "servo_max_force": 1e30,
    "effort": 0.0, "friction_load": 0.0, "resistance": 0.0, "inductance": 0.0, "torque_constant": 0.0, "gear_ratio": 1.0,
    "efficiency": 1.0, "rotor_inertia": 0.0, "voltage": 0.0, "implicit": 0.0,
}  # parameters of what acts on an axis, and their values where nothing does  # fmt: skip
COMMANDS = ("servo_position", "servo_velocity", "servo_torque", "servo_max_force", "effort", "voltage")  # these vary as a rule
INERTIAL = {"frame": 9, "anchor": 3, "com": 3, "inertia": 6, "mass": 1}  # numbers per link
LAWS_3 = {name + "_3": name for name in LAWS}  # the same of each axis of a joint with several
JOINT_LAWS = {"grouped": 1.0, "ball_limit": 0.0, "sense": 1.0, "reaction": 0.0, "loaded": 1.0, "slides": 2.0}
"""Of any joint: `reaction` of the last step, N, and `loaded` 0 if there was none yet. Of a joint with several axes in one link:
`grouped` 1 if one friction bound is that of the vector of all; `ball_limit`, see `laws.ball.CARDAN`; `sense` −1 if laws are in
the axes of the link, not of its base, and coordinates are those of the base seen from it; `slides`, how many translations."""
PARAMETERS = INERTIAL | dict.fromkeys(LAWS, 1) | dict.fromkeys(LAWS_3, 3) | dict.fromkeys(JOINT_LAWS, 1)


def is_symmetric(inertia: Any, com: Any, mass: Any) -> bool:
    """Whether links, (…, 3, 3), (…, 3), (…), are all symmetric about z of their joint frame, to rounding."""
    I, com = np.asarray(inertia, float), np.asarray(com, float)
    off = np.max([abs(I[..., 0, 0] - I[..., 1, 1]), *(abs(I[..., r, c]) for r, c in ((0, 1), (0, 2), (1, 2)))], axis=0)
    beside = np.asarray(mass) * (com[..., 0] ** 2 + com[..., 1] ** 2)
    about = I[..., 2, 2]
    return bool(np.all((off <= 1e-12 * I.max((-2, -1))) & (beside <= 1e-20 * about) & (about > 0)))


def with_rotors(links: Sequence[Link]) -> list[Link]:
    """The same links, where those on a hinge that carry nothing and are symmetric about it are rotors."""
    bases = {link.base for link in links}
    out = []
    for i, link in enumerate(links):
        rotor = link.kind == HINGE and i not in bases and is_symmetric(link.inertia, link.com, link.mass)
        out.append(replace(link, kind=ROTOR) if rotor else link)
    return out


class Forest:
    """Links in an order in which every base comes before what hangs on it."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = list(links)
        self.children: list[list[int]] = [[] for _ in self.links]
        for i, link in enumerate(self.links):
            if not GROUND <= link.base < i:
                raise ValueError(f"link {i}: its base is {link.base}, allowed: {GROUND} (the ground) to {i - 1}")
            if link.kind in (FREE, PRESCRIBED) and link.base != GROUND:
                raise ValueError(f"link {i}: a {KINDS[link.kind]} joint hangs on the ground, not on link {link.base}")
            if link.base >= 0 and self.links[link.base].kind == ROTOR:
                raise ValueError(f"link {i}: it hangs on link {link.base}, a rotor, which carries nothing")
            if link.kind == ROTOR and not is_symmetric(link.inertia, link.com, link.mass):
                raise ValueError(f"link {i}: a rotor is symmetric about its axis, got inertia {link.inertia}, centre {link.com}")
            if link.base >= 0:
                self.children[link.base].append(i)

    def __len__(self) -> int:
        return len(self.links)

    def values(self, i: int) -> dict[str, list[float]]:
        """The parameters of a link as lists of numbers, by name."""
        link = self.links[i]
        I = np.asarray(link.inertia, float)
        return {
            "frame": np.asarray(link.frame, float).ravel().tolist(),
            "anchor": [float(x) for x in link.anchor],
            "com": [float(x) for x in link.com],
            "inertia": [float(I[r, c]) for r, c in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))],
            "mass": [float(link.mass)],
            **self.law_values(link),
        }

    @staticmethod
    def law_values(link: Link) -> dict[str, list[float]]:
        """The parameters of what acts on a link's axes."""
        several = link.kind in SEVERAL
        one = {} if several else link.laws
        each = link.laws if several else {}
        out = {name: [float(one.get(name, value))] for name, value in LAWS.items()}
        for name, of_axis in LAWS_3.items():
            out[name] = np.broadcast_to(np.asarray(each.get(of_axis, LAWS[of_axis]), float), 3).tolist()
        return out | {name: [float(link.laws.get(name, value))] for name, value in JOINT_LAWS.items()}

    def table(self) -> np.ndarray:
        """Inertial parameters, (links, numbers per link)."""
        return np.array([[x for name in INERTIAL for x in self.values(i)[name]] for i in range(len(self))])

    def law_table(self) -> np.ndarray:
        """What acts, (links, 3, numbers): of each axis by LAWS, then of the joint by JOINT_LAWS."""
        out = np.zeros((len(self), 3, len(LAWS) + len(JOINT_LAWS)))
        for i, link in enumerate(self.links):
            x = self.values(i)
            for k in range(3):
                axis = [x[name + "_3"][k] if link.kind in SEVERAL else x[name][0] for name in LAWS]
                out[i, k] = axis + [x[name][0] for name in JOINT_LAWS]
        return out
