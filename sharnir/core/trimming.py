"""Leaves out of a Warp module what the scenes that use it do not have: the same kernels, without loops over joints, say.

A module is told which counts are 0 and which kinds of shapes do not occur. Loops and branches that these decide are dropped from
the source of its kernels and of all functions that they call, before Warp writes code: what is called from there alone is neither
written nor compiled. The result computes the same, in a fraction of the compile time. Where Warp has no such functions, modules
are compiled whole.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import warp as wp

TRIMS = 1
"""To be counted up with the rules: part of the key under which compiled modules are cached."""


@dataclass(frozen=True)
class Absent:
    """What the scenes of a module do not have.

    Args:
        zeros: fields that are 0, or arrays whose elements are, by the end of their path: "joints.count", "special".
        kinds: names of constants that no value equals, nor exceeds.
        false: names of functions that return False.
    """

    zeros: Collection[str] = ()
    kinds: Collection[str] = ()
    false: Collection[str] = ()

    @property
    def key(self) -> str:
        """A line of code that no other module has."""
        return f"// trimmed, {TRIMS}: {sorted(self.zeros)} {sorted(self.kinds)} {sorted(self.false)}\n".replace("'", "")


_absent: dict[str, Absent] = {}


def leave_out(module: str, absent: Absent) -> None:
    """Have a module built without some things; its options name `absent.key`, so that it is cached apart."""
    _absent[module] = absent


def trim_modules() -> None:
    """Have Warp do so from now on."""
    adjoint: Any = getattr(getattr(getattr(wp, "_src", None), "codegen", None), "Adjoint", None)
    build = getattr(adjoint, "build", None)
    if build is None:
        return

    def build_trimmed(self: Any, builder: Any, *given: Any, **more: Any) -> None:
        absent = _absent.get(str(getattr(getattr(builder, "module", None), "name", "")))
        if absent is None:
            build(self, builder, *given, **more)
            return
        whole = self.tree
        self.tree = trimmed(whole, absent)
        try:
            build(self, builder, *given, **more)
        finally:
            self.tree = whole

    adjoint.build = build_trimmed


def trimmed(tree: ast.Module, absent: Absent) -> ast.Module:
    """The source of a function, without what is absent."""
    out, known = copy.deepcopy(tree), -1
    names: dict[str, bool] = {}
    while len(names) > known:  # a name of what is known decides more
        known = len(names)
        out = _Trimmer(absent, names).visit(out)
        names = names | _constants(out)
    return out


def _constants(tree: ast.Module) -> dict[str, bool]:
    """Names that are set once, to True or False."""
    values: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(getattr(node.value, "value", None))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            values.setdefault(node.arg, []).append(None)
    for node in ast.walk(tree):  # each plain assignment was seen twice
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id].remove(None)
    return {name: found[0] for name, found in values.items() if len(found) == 1 and isinstance(found[0], bool)}


class _Trimmer(ast.NodeTransformer):
    """Puts in what is known, and drops what does not happen."""

    def __init__(self, absent: Absent, names: dict[str, bool]) -> None:
        self.zeros = [tuple(path.split(".")) for path in absent.zeros]
        self.kinds, self.false, self.names = set(absent.kinds), set(absent.false), names

    def _is_zero(self, node: ast.expr) -> bool:
        """Whether the end of a path names what is 0."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.insert(0, node.id)
        return any(len(parts) >= len(path) and tuple(parts[-len(path) :]) == path for path in self.zeros)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A count."""
        if isinstance(node.ctx, ast.Load) and self._is_zero(node):
            return _constant(node, 0)
        return _expression(self.generic_visit(node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """An element of an array; one that is written stays."""
        if isinstance(node.value, ast.Attribute) and self._is_zero(node.value):
            return _constant(node, 0) if isinstance(node.ctx, ast.Load) else node
        return _expression(self.generic_visit(node))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What is known by a name."""
        known = isinstance(node.ctx, ast.Load) and node.id in self.names
        return _constant(node, self.names[node.id]) if known else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A function that returns False."""
        if isinstance(node.func, ast.Name) and node.func.id in self.false:
            return _constant(node, False)
        return _expression(self.generic_visit(node))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A kind that does not occur, or two numbers."""
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        op, other = node.ops[0], node.comparators[0]
        if isinstance(other, ast.Name) and other.id in self.kinds:
            if isinstance(op, ast.Eq | ast.GtE | ast.Gt):
                return _constant(node, False)
            return _constant(node, True) if isinstance(op, ast.NotEq | ast.Lt) else node
        return _folded(node, node.left, other)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Two numbers, or 0 of something."""
        self.generic_visit(node)
        if isinstance(node.op, ast.BitAnd | ast.Mult) and any(_value(x) == 0 for x in (node.left, node.right)):
            return _constant(node, 0)
        return _folded(node, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Not."""
        self.generic_visit(node)
        known = isinstance(node.op, ast.Not) and _value(node.operand) is not None
        return _constant(node, not _value(node.operand)) if known else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """And, or."""
        self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)  # the value that decides
        left = [value for value in node.values if _value(value) is None]
        if any(_value(value) is not None and bool(_value(value)) is decides for value in node.values):
            return _constant(node, decides)
        if not left:
            return _constant(node, not decides)
        node.values = left
        return left[0] if len(left) == 1 else node

    def visit_If(self, node: ast.If) -> Any:
        """A branch that is decided."""
        node.test = self.visit(node.test)
        value = _value(node.test)
        if value is not None:
            return self._block(node.body if value else node.orelse)
        node.body, node.orelse = self._block(node.body) or [ast.copy_location(ast.Pass(), node)], self._block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> Any:
        """A loop that is not entered."""
        node.iter = self.visit(node.iter)
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            last = call.args[0 if len(call.args) == 1 else 1]
            first = 0 if len(call.args) == 1 else _value(call.args[0])
            if _value(last) is not None and first is not None and len(call.args) < 3 and _value(last) <= first:
                return []
        node.body = self._block(node.body) or [ast.copy_location(ast.Pass(), node)]
        return node

    def visit_While(self, node: ast.While) -> Any:
        """A loop that is not entered."""
        node.test = self.visit(node.test)
        if _value(node.test) is not None and not _value(node.test):
            return []
        node.body = self._block(node.body) or [ast.copy_location(ast.Pass(), node)]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function itself."""
        node.body = self._block(node.body) or [ast.copy_location(ast.Pass(), node)]
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements, up to the first return."""
        out: list[ast.stmt] = []
        for statement in body:
            found = self.visit(statement)
            out += found if isinstance(found, list) else [] if found is None else [found]
            if out and isinstance(out[-1], ast.Return | ast.Break | ast.Continue):
                break
        return out


def _expression(node: Any) -> ast.expr:
    return node


def _constant(at: ast.expr, value: Any) -> ast.expr:
    return ast.copy_location(ast.Constant(value), at)


def _value(node: Any) -> Any:
    """The number or truth of a constant; None of all else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _folded(node: Any, left: ast.expr, right: ast.expr) -> ast.expr:
    """An operation of two constants as one."""
    if _value(left) is None or _value(right) is None:
        return _expression(node)
    source = ast.Expression(ast.copy_location(copy.deepcopy(node), node))
    return _constant(node, eval(compile(ast.fix_missing_locations(source), "constant", "eval")))
