"""Arithmetic in scene files: `"= 2 * mass"` is a value, `"link {i}"` a text with values in it. Nothing of Python is run.

A tree of `ast` nodes is walked, of which only numbers, texts, names, arithmetic, comparisons, lists and a few functions are
known.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from sharnir.errors import SceneError

MAX_CHARACTERS = 500
"""Characters of an expression, at most."""

_MATHS = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp", "log", "hypot", "radians", "degrees", "floor", "ceil",
)  # fmt: skip
ALLOWED_FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(math, name) for name in _MATHS} | {
    "abs": abs, "min": min, "max": max, "round": round,
}  # fmt: skip
CONSTANTS = {"pi": math.pi, "tau": math.tau, "inf": math.inf}

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression over names and the functions above; a SceneError says what is wrong with it."""
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise SceneError(f"an expression has at most {MAX_CHARACTERS} characters, got {len(text)}")
    try:
        tree = ast.parse(text, mode="eval")
        return _value(tree.body, names)
    except SceneError as error:
        raise SceneError(f"{text!r}: {error}") from None
    except SyntaxError:
        raise SceneError(f"{text!r} is no expression, such as 2 * length + 0.1") from None
    except ZeroDivisionError:
        raise SceneError(f"{text!r} divides by 0") from None
    except (ArithmeticError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise SceneError(f"{text!r} has no value: {error}") from None


def fill_in(text: str, names: Mapping[str, Any]) -> str:
    """A text with the values of what stands in braces in it; double braces are braces."""

    def part(found: re.Match[str]) -> str:
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[1] is None:
            raise SceneError(f"{text!r}: a brace without the other; write {{{{ for a brace itself")
        value = evaluate(found[1], names)
        if not isinstance(value, int | float | str):
            raise SceneError(f"{text!r}: {found[1]!r} is not a number or text that could stand there, got {value!r}")
        return str(value)

    return _BRACES.sub(part, text) if "{" in text or "}" in text else text


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(id=name):
            return _named(name, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _number(_value(operand, names))
            return -value if isinstance(sign, ast.USub) else value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_number(_value(left, names)), _number(_value(right, names)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            value = _BINARY[type(op)](_number(_value(left, names)), _number(_value(right, names)))
            return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](_value(left, names), _value(right, names))
        case ast.BoolOp(op=op, values=values):
            truths = (_value(v, names) for v in values)
            return all(truths) if isinstance(op, ast.And) else any(truths)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part, names) for part in parts]
        case ast.Subscript(value=of, slice=at):
            return _item(_value(of, names), _value(at, names))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in ALLOWED_FUNCTIONS:
            return ALLOWED_FUNCTIONS[name](*(_number(_value(a, names)) for a in args))
    raise SceneError(f"allowed are numbers, names, + - * / // % **, comparisons, lists and {', '.join(ALLOWED_FUNCTIONS)}")


def _named(name: str, names: Mapping[str, Any]) -> Any:
    if name in names:
        return names[name]
    if name in CONSTANTS:
        return CONSTANTS[name]
    near = get_close_matches(name, [*names, *CONSTANTS], 1)
    known = f"is {near[0]!r} meant?" if near else f"known: {', '.join(names) or 'none'}"
    raise SceneError(f"the name {name!r} is unknown; {known}")


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise SceneError(f"arithmetic is for numbers, got {value!r}")
    return value


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and 0 <= b <= 63 and abs(a) <= 2**10:
        value = a**b
        return float(value) if abs(value) >= 2**63 else value
    value = float(a) ** float(b)
    if isinstance(value, complex):
        raise SceneError(f"{a:g} to the power of {b:g} is no real number")
    return value


def _item(of: Any, at: Any) -> Any:
    if not isinstance(of, list | tuple) or not isinstance(at, int):
        raise SceneError(f"[ ] takes a whole number and a list, got {of!r}[{at!r}]")
    if not -len(of) <= at < len(of):
        raise SceneError(f"item {at} of a list of {len(of)}")
    return of[at]
