"""A mobile crane: outriggers, slewing platform, luffing and telescoping boom, winch and hook block, all hydraulic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharnir.core.spatial import frame_from_axes, quat_rotate
from sharnir.errors import SceneError, number
from sharnir.geometry.shapes import Box, Compound, Cylinder
from sharnir.machine_models.hydraulics import Place, add_ram
from sharnir.machine_models.inputs import Input
from sharnir.model.actuators import Friction, HydraulicCylinder
from sharnir.model.cable_tables import Drum, Sheave
from sharnir.model.descriptions import vector
from sharnir.model.joint_types import Prismatic, Revolute, Spherical
from sharnir.scene.scene import Scene

CRANE_PRESSURE = 2.5e7  # Pa
BOOM_PIVOT, RAM_FOOT, RAM_ON_BOOM = (
    (-1.2, 3.0),
    (0.9, 1.7),
    (3.2, -0.45),
)  # m: of the boom; of its ram below, and on the boom along and across it
CRANE_INPUTS = {  # joint, about, keys, stick
    "slew": ("slew", "part of 0.15 rad/s, to the left positive", ("a", "d"), "-axis 0"),
    "luff": ("luff", "part of the flow of the boom's ram, up positive", ("w", "s"), "-axis 1"),
    "telescope": ("telescope", "part of its flow, out positive", ("e", "q"), "axis 2"),
    "hoist": ("winch", "part of the winch's flow, up positive", ("r", "f"), "-axis 3"),
}


@dataclass(frozen=True)
class MobileCrane:
    """A crane of the 30 t class; figures are chosen for that class, none are a maker's.

    Args:
        name: of the crane; its bodies and joints are called after it.
        angle: rad, of the boom above the level at the start. out: m, by which it is telescoped then.
        parts: of the hoist's reeving, an even number: the hook is lifted by so many parts of the cable.
        hook: m, of the hook above the ground at the start.
        outriggers: half the distances between their feet, m, along and across.
        jacks: whether each foot is on a ram of its own, called "leg 0 ram" …, which lift the carrier together by the input
            "jacks", or each by its drive's command; without, they are set and locked.
        chassis, platform, boom, inner, block: kg: of the carrier, the upper works with counterweight, the boom's two parts, the
            hook block.
    """

    name: str = "crane"
    angle: float = math.radians(50.0)
    out: float = 1.0
    parts: int = 4
    hook: float = 2.5
    outriggers: tuple[float, float] = (3.2, 2.8)
    jacks: bool = False
    chassis: float = 18000.0
    platform: float = 9000.0
    boom: float = 2500.0
    inner: float = 1200.0
    block: float = 200.0

    def __post_init__(self) -> None:
        who = f"MobileCrane {self.name!r}"
        number(who, "angle (rad)", self.angle, least=math.radians(10.0), most=math.radians(75.0))
        number(who, "out (m)", self.out, least=0.0, most=7.0)
        for what in ("chassis", "platform", "boom", "inner", "block"):
            number(who, f"{what} (kg)", getattr(self, what), least=1.0)
        if self.parts not in (2, 4, 6, 8):
            raise SceneError(f"{who}: parts is 2, 4, 6 or 8, got {self.parts!r}")

    def add(self, scene: Scene, position: Sequence[float] = (0.0, 0.0, 0.0), heading: float = 0.0) -> str:
        """Put it on ground of the height of `position` (m), on its outriggers; returns the carrier's name."""
        place, n = Place(f"MobileCrane {self.name!r}", position, heading), self.name
        feet = [] if self.jacks else [self._foot(x, y) for x, y in self._corners()]
        frame = Box(8.0, 2.5, 0.8, position=(0, 0, 1.2))
        beams = [Box(0.4, 2 * self.outriggers[1], 0.3, position=(x, 0, 0.95)) for x in (self.outriggers[0], -self.outriggers[0])]
        scene.add_body(
            f"{n} carrier", Compound(frame, *beams, *(part for foot in feet for part in foot)),
            mass=self.chassis, com=(0, 0, 1.0), collision=[frame, *(foot[1] for foot in feet)],
            position=place.at(0, 0, 0), rotation=place.turn, color="#f2b134",
        )  # fmt: skip
        if self.jacks:
            self._jacks(scene, place)
        works = Compound(Box(4.0, 2.4, 0.9, position=(-0.6, 0, -0.2)), Box(1.0, 2.4, 1.2, position=(-2.2, 0, 0.2)))
        scene.add_body(
            f"{n} platform", works, mass=self.platform, com=(-1.4, 0, 0.0), position=place.at(0, 0, 2.3), rotation=place.turn,
            collide=False, color="#f2b134",
        )  # fmt: skip
        motor = HydraulicCylinder(pressure=CRANE_PRESSURE, flow=3.0e-3, area=0.02, leak=1e-12)
        scene.add_joint(f"{n} slew", Revolute("z", drive=motor), f"{n} carrier", f"{n} platform", position=place.at(0, 0, 1.6))
        self._boom(scene, place)
        self._hoist(scene, place)
        return f"{n} carrier"

    def _corners(self) -> list[tuple[float, float]]:
        """Where its feet are, m."""
        return [(sx * self.outriggers[0], sy * self.outriggers[1]) for sx in (1, -1) for sy in (1, -1)]

    def _foot(self, x: float, y: float) -> tuple[Box, Box]:
        """A leg and its foot."""
        return Box(0.2, 0.2, 0.9, position=(x, y, 0.55)), Box(0.6, 0.6, 0.1, position=(x, y, 0.05))

    def _jacks(self, scene: Scene, place: Place) -> None:
        """Four legs, each on a ram, their feet on the ground."""
        for i, (x, y) in enumerate(self._corners()):
            leg, (post, foot) = f"{self.name} leg {i}", self._foot(0.0, 0.0)
            scene.add_body(
                leg,
                Compound(post, foot),
                mass=250.0,
                collision=foot,
                position=place.at(x, y, 0),
                rotation=place.turn,
                color="#5b6470",
            )
            ram = HydraulicCylinder(pressure=CRANE_PRESSURE, flow=1.0e-3, area=0.015, leak=1e-13)
            down = Prismatic([0, 0, -1], drive=ram, limit=(-0.3, 0.3))
            scene.add_joint(f"{leg} ram", down, f"{self.name} carrier", leg, position=place.at(x, y, 0.8), rotation=place.turn)

    def _point(self, along: float, across: float) -> tuple[float, float, float]:
        """A point of the boom in the machine's frame, m from its pivot, along and across it."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        return BOOM_PIVOT[0] + along * c - across * s, 0.0, BOOM_PIVOT[1] + along * s + across * c

    def _boom(self, scene: Scene, place: Place) -> None:
        n, turn = self.name, place.turned(self.angle)
        parts = (("boom", Box(10.0, 0.6, 0.8), self.boom, 4.8), ("inner boom", Box(9.0, 0.45, 0.6), self.inner, 5.3 + self.out))
        for part, shape, mass, middle in parts:
            scene.add_body(
                f"{n} {part}",
                shape,
                mass=mass,
                position=place.at(*self._point(middle, 0)),
                rotation=turn,
                collide=False,
                color="#f2b134",
            )
        scene.add_joint(f"{n} pivot", Revolute(place.left), f"{n} platform", f"{n} boom", position=place.at(*self._point(0, 0)))
        ram = HydraulicCylinder(pressure=CRANE_PRESSURE, flow=4.0e-3, area=0.05, leak=1e-14)
        end = self._point(*RAM_ON_BOOM)
        add_ram(
            scene, f"{n} luff", place, f"{n} platform", (RAM_FOOT[0], 0, RAM_FOOT[1]), f"{n} boom", end, ram, (-2.5, 2.5), 500.0
        )
        push = HydraulicCylinder(pressure=CRANE_PRESSURE, flow=2.0e-3, area=0.01, leak=1e-14, cushion=0.2)
        slide = Prismatic("x", drive=push, limit=(-self.out, 7.0 - self.out))
        scene.add_joint(
            f"{n} telescope", slide, f"{n} boom", f"{n} inner boom", position=place.at(*self._point(0, 0)), rotation=turn
        )

    def _hoist(self, scene: Scene, place: Place) -> None:
        """A winch behind the boom, its cable over the boom's head to the hook block, as often as there are parts."""
        n, r = self.name, 0.2
        across: Any = frame_from_axes(np.array(place.left))
        head = self.head()
        scene.add_body(
            f"{n} drum", Cylinder(0.25, 0.8), mass=300.0, collide=False,
            position=place.at(-2.2, 0, 3.4), rotation=across, color="#5b6470",
        )  # fmt: skip
        motor = HydraulicCylinder(pressure=CRANE_PRESSURE, flow=3.0e-3, area=6.0e-4, leak=1e-15)
        winch = Revolute(place.left, drive=motor, friction=Friction(20.0))
        scene.add_joint(f"{n} winch", winch, f"{n} platform", f"{n} drum", position=place.at(-2.2, 0, 3.4))
        scene.add_body(
            f"{n} hook",
            Box(0.3, 0.3, 0.6),
            mass=self.block,
            position=place.at(head[0], 0, self.hook),
            rotation=place.turn,
            color="#c0392b",
        )
        at_head = np.array([4.5, 0.0, 0.0])
        path: list[Any] = [Drum(f"{n} drum", 0.25, axis="z")]
        for _ in range(self.parts // 2):
            path += [
                Sheave(f"{n} inner boom", r, at=at_head.tolist()),
                Sheave(f"{n} hook", r, at=(0, 0, 0.1)),
            ]
        c, s = math.cos(self.angle), math.sin(self.angle)
        end = at_head + np.array([-r * c, 0, r * s])  # straight above the block's far side
        path.append((f"{n} inner boom", end.tolist()))
        scene.add_cable(f"{n} cable", path)

    def head(self) -> tuple[float, float, float]:
        """Where the hook hangs at the start: m, in the machine's frame."""
        return self._point(9.8 + self.out, 0.0)[0], 0.0, self.hook

    def add_sling(self, scene: Scene, load: str, at: Sequence[float] = (0.0, 0.0, 0.0), *, enabled: bool = True) -> str:
        """A hook for a body of the scene, at a point of its frame (m); returns the joint's name.

        enabled=False: it starts without the load. `sim.joint(name).attach()` near the load takes it, `enabled = False` lets go.
        """
        name, body = f"{self.name} sling {load}", scene.bodies[load]
        point = body.position + quat_rotate(body.rotation, vector(at, f"MobileCrane {self.name!r}", "at (m)"))
        scene.add_joint(name, Spherical(friction=5.0), f"{self.name} hook", load, position=point, enabled=enabled)
        scene.ignore(f"{self.name} hook", load)
        return name

    def inputs(self) -> list[Input]:
        """slew, luff, telescope, hoist: each −1 to 1 of its flow; and where there are any, jacks, all alike."""

        def act(joint: str, sign: float) -> Any:
            def command(sim: Any, value: Any) -> None:
                sim.joint(joint).drive.command = sign * value

            return command

        def lift(sim: Any, value: Any) -> None:
            for i in range(4):
                sim.joint(f"{self.name} leg {i} ram").drive.command = value

        made = [
            Input(word, act(f"{self.name} {joint}", -1.0 if word == "hoist" else 1.0), rate=1.0, about=about, keys=keys, pad=pad)
            for word, (joint, about, keys, pad) in CRANE_INPUTS.items()
        ]
        if self.jacks:
            made.append(Input("jacks", lift, rate=1.0, about="part of the jacks' flow, the carrier up positive", keys=("t", "g")))
        return made
