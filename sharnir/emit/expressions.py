"""Scalars that record the operations on them.

An `Expression` is a node of a graph: an operation and its arguments, each an `Expression` or a float. Operations with the
constants 0 and ±1 fold, equal nodes are the same object. `Program` prints the graph as C++.

A `Dual` is a number or expression with its rate of change; all functions here take it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Union

Scalar = Union[float, "Expression", "Dual"]
Condition = Union[bool, "Expression"]

_nodes: dict[tuple[object, ...], Expression] = {}  # one object for equal operations on equal arguments


class Expression:
    """A number or truth value that is known when the emitted code runs.

    `op` is a C++ operator or function, or "value" for a named variable that does not change while the expression lives.
    """

    __slots__ = ("__weakref__", "args", "kind", "op")

    def __init__(self, op: str, args: tuple[object, ...], kind: str) -> None:
        self.op, self.args, self.kind = op, args, kind  # kind: "real", "bool", "int" or "reals", some at once

    def __add__(self, other: Scalar) -> Scalar:
        if isinstance(other, Expression):
            return sub(self, other.args[0]) if other.op == "neg" else node("+", self, other)
        if isinstance(other, Dual):
            return NotImplemented
        return self if other == 0.0 else node("+", self, float(other))

    def __radd__(self, other: float) -> Scalar:
        return self if other == 0.0 else node("+", float(other), self)

    def __sub__(self, other: Scalar) -> Scalar:
        return NotImplemented if isinstance(other, Dual) else sub(self, other)

    def __rsub__(self, other: float) -> Scalar:
        return -self if other == 0.0 else node("-", float(other), self)

    def __mul__(self, other: Scalar) -> Scalar:
        if isinstance(other, Dual):
            return NotImplemented
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
        if isinstance(other, Dual):
            return NotImplemented
        if not isinstance(other, Expression):
            return self * (1.0 / other)
        return node("/", self, other)

    def __rtruediv__(self, other: float) -> Scalar:
        return 0.0 if other == 0.0 else node("/", float(other), self)

    def __neg__(self) -> Expression:
        return self.args[0] if self.op == "neg" else node("neg", self)  # type: ignore[return-value]

    def __lt__(self, other: Scalar) -> Expression:
        return node("<", self, value_of(other), kind="bool")

    def __le__(self, other: Scalar) -> Expression:
        return node("<=", self, value_of(other), kind="bool")

    def __gt__(self, other: Scalar) -> Expression:
        return node(">", self, value_of(other), kind="bool")

    def __ge__(self, other: Scalar) -> Expression:
        return node(">=", self, value_of(other), kind="bool")

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
        many = kind == "real" and any(isinstance(a, Expression) and a.kind == "reals" for a in args)
        found = _nodes[key] = Expression(op, args, "reals" if many else kind)
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


class Dual:
    """A value, and its rate of change along a direction, or along many: an array."""

    __slots__ = ("rate", "value")
    __array_ufunc__ = None

    def __init__(self, value: Any, rate: Any) -> None:
        self.value, self.rate = value, rate

    def __add__(self, other: Any) -> Any:
        return dual(self.value + value_of(other), plus(self.rate, rate_of(other)))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Dual(-self.value, -self.rate)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        x, y = value_of(other), rate_of(other)
        return dual(self.value * x, plus(times(self.rate, x), times(y, self.value)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / other)

    def __rtruediv__(self, other: Any) -> Any:
        inverse = 1.0 / self.value
        return dual(inverse, times(self.rate, -(inverse * inverse))) * other

    def __lt__(self, other: Any) -> Any:
        return self.value < value_of(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= value_of(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > value_of(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= value_of(other)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.rate!r})"


def dual(value: Any, rate: Any) -> Any:
    """A number with its rate; the number itself if the rate is known to be zero."""
    return value if is_none(rate) else Dual(value, rate)


def is_none(rate: Any) -> bool:
    """Whether a rate is known to be zero."""
    return isinstance(rate, float) and rate == 0.0


def value_of(x: Any) -> Any:
    """A number without its rate."""
    return x.value if isinstance(x, Dual) else x


def rate_of(x: Any) -> Any:
    """The rate of a number."""
    return x.rate if isinstance(x, Dual) else 0.0


def plus(a: Any, b: Any) -> Any:
    """The sum of two rates."""
    return b if is_none(a) else a if is_none(b) else a + b


def times(rate: Any, by: Any) -> Any:
    """A rate times a number."""
    return 0.0 if is_none(rate) or is_none(by) else rate * by


# ---- functions ---------------------------------------------------------------------------------------------------------------


def _function(name: str, compute: Callable[..., float], *slopes: Callable[..., Any]) -> Callable[..., Scalar]:
    """A function of numbers; `slopes`: its derivatives by each of them, of its value and them."""

    def apply(*args: Any) -> Any:
        if any(isinstance(a, Dual) for a in args):
            values = [value_of(a) for a in args]
            out, rate = apply(*values), 0.0
            for a, slope in zip(args, slopes, strict=True):
                if isinstance(a, Dual):
                    rate = plus(rate, times(a.rate, slope(out, *values)))
            return dual(out, rate)
        if any(isinstance(a, Expression) for a in args):
            return node(name, *args)
        return compute(*args)

    apply.__name__, apply.__doc__ = name, f"{name} of numbers or expressions."
    return apply


sqrt = _function("sqrt", math.sqrt, lambda y, x: 0.5 / y)
atan = _function("atan", math.atan, lambda y, x: 1.0 / (1.0 + x * x))


def _atan_root_slope(y: Any, x: Any) -> Any:
    """Near 0 a series is used instead; there it is finite, since what is not used may be multiplied by 0 (`tree.adjoint`)."""
    far = x > 1e-8
    return select(far, (1.0 / (1.0 + x) - y) * 0.5 / select(far, x, 1.0), 0.0)


# atan(t)/t, of t²
atan_root = _function("atan_root", lambda x: math.atan(math.sqrt(x)) / math.sqrt(x), _atan_root_slope)
sin: Callable[..., Any] = _function("sin", math.sin, lambda y, x: cos(x))
cos: Callable[..., Any] = _function("cos", math.cos, lambda y, x: -sin(x))
atan2 = _function("atan2", math.atan2, lambda _, y, x: x / (x * x + y * y), lambda _, y, x: -(y / (x * x + y * y)))
exp = _function("exp", math.exp, lambda y, x: y)
absolute = _function("abs", abs, lambda _, x: select(x < 0.0, -1.0, 1.0))
maximum = _function("max", max, lambda _, x, y: select(x < y, 0.0, 1.0), lambda _, x, y: select(x < y, 1.0, 0.0))
minimum = _function("min", min, lambda _, x, y: select(y < x, 0.0, 1.0), lambda _, x, y: select(y < x, 1.0, 0.0))


def select(condition: Condition, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, else `no`; both are computed."""
    if isinstance(yes, Dual) or isinstance(no, Dual):
        found: Scalar = dual(select(condition, value_of(yes), value_of(no)), _select_rate(condition, rate_of(yes), rate_of(no)))
        return found
    if isinstance(condition, Expression):
        if yes is no or (not isinstance(yes, Expression) and yes == no):
            return yes
        return node("?", condition, yes, no)
    return yes if condition else no


def _select_rate(condition: Condition, yes: Any, no: Any) -> Any:
    if isinstance(condition, Expression):
        return select(condition, yes, no)
    return yes if condition else no


def sign(x: Scalar) -> Scalar:
    """−1 for negative numbers, else 1."""
    return select(x < 0.0, -1.0, 1.0)


def clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but no less than `low` and no more than `high`."""
    return minimum(maximum(x, low), high)
