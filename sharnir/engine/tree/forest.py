"""A forest of links: what the step knows of a mechanism.

A link hangs on its base (another link, or the ground) by a joint of one kind: a hinge or a slider along z of the joint's frame, a
ball, a weld (no axis), or, on the ground only, a free joint (six axes) or a motion that is prescribed. A joint with more axes is
a row of links of which only the last has mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

HINGE, SLIDER, BALL, FREE, WELD, PRESCRIBED = range(6)
KINDS = ("hinge", "slider", "ball", "free", "weld", "prescribed")
OFF = -1  # kind of a link that is left out of steps in a world
GROUND = -1


@dataclass
class Link:
    """One link; vectors in the axes of its own joint frame unless said.

    Args:
        base: index of the link it hangs on, or GROUND; less than its own index.
        kind: HINGE, SLIDER, BALL, FREE, WELD or PRESCRIBED.
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
    laws: dict[str, float] = field(default_factory=dict)  # by the names in LAWS, those that are not zero


LAWS = {
    "stiffness": 0.0, "rest": 0.0, "damping": 0.0, "friction_static": 0.0, "friction_dynamic": 0.0, "friction_viscous": 0.0,
    "friction_stribeck": 0.0, "limit_lower": -1e30, "limit_upper": 1e30, "restitution": 0.0, "servo_kp": 0.0, "servo_kd": 0.0,
    "servo_position": 0.0, "servo_velocity": 0.0, "servo_torque": 0.0, "servo_max_force": 1e30,
    "effort": 0.0,
}  # parameters of what acts on an axis, and their values where nothing does  # fmt: skip
COMMANDS = ("servo_position", "servo_velocity", "servo_torque", "servo_max_force", "effort")  # these vary as a rule
INERTIAL = {"frame": 9, "anchor": 3, "com": 3, "inertia": 6, "mass": 1}  # numbers per link
PARAMETERS = INERTIAL | dict.fromkeys(LAWS, 1)


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
            **{name: [float(link.laws.get(name, value))] for name, value in LAWS.items()},
        }

    def table(self) -> np.ndarray:
        """All parameters, (links, numbers per link)."""
        return np.array([[x for name in PARAMETERS for x in self.values(i)[name]] for i in range(len(self))])
