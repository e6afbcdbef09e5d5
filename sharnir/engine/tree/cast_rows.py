"""Cast wheels beside the forest: the turning of each is a number that points of contact share (`laws.casts`).

A point on a wheel (`Contact.cast`) yields along the rim by b²/(I + h k), and leads by b ω_free; what the impulses of all points
turn the wheel by is summed up while these are kept (`turn`), and so is its load, for the brake of the next step.
"""

from __future__ import annotations

from typing import Any

from sharnir.emit.algebra import Vector, cross, dot
from sharnir.emit.expressions import absolute, select, sign
from sharnir.engine.tree.cable_rows import Span
from sharnir.engine.tree.closures import CAST


class Cast(Span):
    """A wheel: `omega` and `angle` are its state, `turn` and `load` a quarter of the moment and of the force on it in the last
    step, `inertia` and `rolling` (m) its own, `torque`, `speed`, `gain`, `most` and `brake` what is commanded. `free` is its
    speed at the end of the step without the ground's friction, `mobility` how it answers that.
    """

    def begin(self, c: Any) -> None:
        h, I, omega = c.h, c.inertia, c.omega
        asked = c.torque + c.gain * (c.speed - omega)
        spent = absolute(asked) * I > c.most * (I + h * c.gain)
        c.given_torque, c.given_gain = select(spent, sign(asked) * c.most, c.torque), select(spent, 0.0, c.gain)
        torque, gain = c.given_torque, c.given_gain
        size = I + h * gain
        moves = I * omega + h * (torque + gain * c.speed)
        pushed, bound = moves + 4.0 * h * c.turn, h * c.brake + c.rolling * (4.0 * h * c.load)
        held = absolute(pushed) <= bound
        c.free = select(held, 0.0, (moves - sign(pushed) * bound) / size)
        c.mobility = select(held, 0.0, 1.0 / size)

    def evaluate(self, c: Any) -> list[Any]:
        return []

    def carries(self, c: Any, impulses: list[Any]) -> Vector:
        return Vector(0.0, 0.0, 0.0)


CASTS = {CAST: Cast()}


def share_wheel(c: Any) -> None:
    """How a point yields along the rim of its wheel, and by how much that leads; in an impact the wheel turns freely."""
    wheel, rests = c.rows.at(c.cast), c.rows.resting
    pull = select(c.rows.closing, 0.0, dot(cross(c.axis_a, c.axis_b), c.belt_pull) * c.friction_across)
    c.soft = pull * pull * select(rests, 1.0 / wheel.inertia, wheel.mobility)
    c.by_a = pull * c.h * select(rests, 0.5 * wheel.omega, 0.25 * wheel.free)


def press_wheel(c: Any, force: Vector) -> None:
    """A quarter of the force of a step at a point of a wheel."""
    wheel = c.rows.at(c.cast)
    wheel.turn, wheel.load = wheel.turn + dot(c.belt_pull, force), wheel.load + dot(c.axis_a, force)


def strike_wheel(c: Any, blow: Vector) -> None:
    """The impulse of an impact at a point of a wheel."""
    wheel = c.rows.at(c.cast)
    wheel.omega = wheel.omega + dot(c.belt_pull, blow) / wheel.inertia


def release_wheels(tree: Any) -> None:
    """Before the forces of a step are told to wheels."""
    for c in tree.rows.runs(CAST):
        c.turn, c.load = 0.0, 0.0


def turn_wheels(tree: Any) -> None:
    """Speeds and angles at the end of the step: a wheel turns by the mean of both speeds."""
    for c in tree.rows.runs(CAST):
        before, now, h = c.omega, c.free + c.mobility * (4.0 * c.h * c.turn), c.h
        mean = 0.5 * (before + now)
        c.omega, c.angle = now, c.angle + h * mean
        tree.note_work(h * mean * (c.given_torque + c.given_gain * (c.speed - now)))
