"""Scalars that record the operations on them.

An `Expression` is a node of a graph: an operation and its arguments, each an `Expression` or a float. Operations with the
constants 0 and ±1 fold, equal nodes are the same object. `Program` prints the graph as C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Union

Scalar = Union[float, "Expression"]
Condition = Union[bool, "Expression"]

_nodes: dict[tuple[object, ...], Expression] = {}  # one object for equal operations on equal arguments


class Expression:
    """A number or truth value that is known when the emitted code runs.

    `op` is a C++ operator or function, or "value" for a named variable that does not change while the expression lives.
    """

    __slots__ = ("__weakref__", "args", "kind", "op")

    def __init__(self, op: str, args: tuple[object, ...], kind: str) -> None:
        self.op, self.args, self.kind = op, args, kind  # kind: "real", "bool" or "int"

    def __add__(self, other: Scalar) -> Scalar:
        if isinstance(other, Expression):
            return sub(self, other.args[0]) if other.op == "neg" else node("+", self, other)
        return self if other == 0.0 else node("+", self, float(other))

    def __radd__(self, other: float) -> Scalar:
        return self if other == 0.0 else node("+", float(other), self)

    def __sub__(self, other: Scalar) -> Scalar:
        return sub(self, other)

    def __rsub__(self, other: float) -> Scalar:
        return -self if other == 0.0 else node("-", float(other), self)

    def __mul__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            if other == 0.0:
                return 0.0
            if other == 1.0:
                return self
            if other == -1.0:
                return -self
            return node("*", float(other), self)
        if self.op == "neg":
            return -(_scalar(self.args[0]) * other)
        if other.op == "neg":
            return -(self * _scalar(other.args[0]))
        return node("*", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        if not isinstance(other, Expression):
            return self * (1.0 / other)
        return node("/", self, other)

    def __rtruediv__(self, other: float) -> Scalar:
        return 0.0 if other == 0.0 else node("/", float(other), self)

    def __neg__(self) -> Expression:
        return self.args[0] if self.op == "neg" else node("neg", self)  # type: ignore[return-value]

    def __lt__(self, other: Scalar) -> Expression:
        return node("<", self, other, kind="bool")

    def __le__(self, other: Scalar) -> Expression:
        return node("<=", self, other, kind="bool")

    def __gt__(self, other: Scalar) -> Expression:
        return node(">", self, other, kind="bool")

    def __ge__(self, other: Scalar) -> Expression:
        return node(">=", self, other, kind="bool")

    def __and__(self, other: Condition) -> Condition:
        if isinstance(other, Expression):
            return node("&&", self, other, kind="bool")
        return self if other else False

    __rand__ = __and__

    def __or__(self, other: Condition) -> Condition:
        if isinstance(other, Expression):
            return node("||", self, other, kind="bool")
        return True if other else self

    __ror__ = __or__

    def __invert__(self) -> Expression:
        return node("!", self, kind="bool")

    def __bool__(self) -> bool:
        raise TypeError("the value is known only when the emitted code runs: use select() or Program.when()")

    def __repr__(self) -> str:
        inner = ", ".join(a if isinstance(a, str) else repr(a) for a in self.args)
        return f"{self.op}({inner})"


def node(op: str, *args: object, kind: str = "real") -> Expression:
    """The expression of an operation; the same object for the same operation on the same arguments."""
    key = (op, kind, *(id(a) if isinstance(a, Expression) else a for a in args))
    found = _nodes.get(key)
    if found is None:
        found = _nodes[key] = Expression(op, args, kind)
    return found


def forget_nodes() -> None:
    """Drop the table of expressions; called when a program is finished."""
    _nodes.clear()


def value(name: str, kind: str = "real") -> Expression:
    """A variable of the emitted code that does not change any more."""
    return node("value", name, kind=kind)


def _scalar(x: object) -> Scalar:
    return x  # type: ignore[return-value]


def sub(a: Scalar, b: object) -> Scalar:
    """a − b."""
    if isinstance(b, Expression):
        if b.op == "neg":
            return a + _scalar(b.args[0])
        if not isinstance(a, Expression) and a == 0.0:
            return -b
        return 0.0 if a is b else node("-", a, b)
    return a + -float(b)  # type: ignore[arg-type, operator]


# ---- functions ---------------------------------------------------------------------------------------------------------------


def _function(name: str, compute: Callable[..., float]) -> Callable[..., Scalar]:
    def apply(*args: Scalar) -> Scalar:
        if any(isinstance(a, Expression) for a in args):
            return node(name, *args)
        return compute(*args)

    apply.__name__, apply.__doc__ = name, f"{name} of numbers or expressions."
    return apply


sqrt = _function("sqrt", math.sqrt)
atan = _function("atan", math.atan)
atan_root = _function("atan_root", lambda x: math.atan(math.sqrt(x)) / math.sqrt(x))  # atan(t)/t, of t²
sin = _function("sin", math.sin)
cos = _function("cos", math.cos)
atan = _function("atan", math.atan)
atan2 = _function("atan2", math.atan2)
exp = _function("exp", math.exp)
absolute = _function("abs", abs)
maximum = _function("max", max)
minimum = _function("min", min)


def select(condition: Condition, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, else `no`; both are computed."""
    if isinstance(condition, Expression):
        if yes is no or (not isinstance(yes, Expression) and yes == no):
            return yes
        return node("?", condition, yes, no)
    return yes if condition else no


def sign(x: Scalar) -> Scalar:
    """−1 for negative numbers, else 1."""
    return select(x < 0.0, -1.0, 1.0)


def clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but no less than `low` and no more than `high`."""
    return minimum(maximum(x, low), high)
