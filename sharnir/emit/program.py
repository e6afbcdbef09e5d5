"""A program of reads, writes, loops and branches over expressions, printed as the body of a C++ function.

Statements are kept in straight regions, which control flow bounds. At the end of a region the expressions that its writes and
conditions need are printed: those used once inside others, those used more often as constants of their own. An expression that no
write needs is never printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sharnir.emit.expressions import Condition, Expression, Scalar, forget_nodes, value

INFIX = {"+", "-", "*", "<", "<=", ">", ">=", "&&", "||"}
LONGEST = 12  # operations in one printed expression; longer ones get constants for their parts
TYPES = {"real": "real", "bool": "bool", "int": "int", "reals": "reals"}
NAMED = {"/": "quotient", "sqrt": "root", "atan_root": "atan_root"}  # operations that `QUOTIENTS` defines
QUOTIENTS = """#if defined(__CUDA_ARCH__) && {doubles}
const auto quotient = [](double a, double b) {{ double r; asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
r = fma(fma(-b, r, 1.0), r, r); const double q = a*r; return fma(fma(-b, q, a), r, q); }};
const auto root = [](double x) {{ double r; asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
double g = x*r, k = 0.5*r; const double e = fma(-g, k, 0.5); g = fma(g, e, g); k = fma(k, e, k);
return x == 0.0 ? x : fma(fma(-g, g, x), k, g); }};
#else
#define quotient(a, b) ((a)/(b))
#define root(x) wp::sqrt(x)
#endif
#define atan_root(x) quotient(wp::atan(root(x)), root(x))"""
"""Division and square root, before a program that computes with doubles, or with floats. A GPU has neither for doubles: there a
first value of 20 bits is improved by Newton's steps to all but the last bit, without the branches of the standard functions."""
FUNCTIONS = """#ifdef __CUDA_ARCH__
#define separate
#define all_global(p) __builtin_assume(__isGlobal(p))
#else
#define separate __attribute__((noinline))
#define all_global(p)
#endif"""  # on a GPU a function that stays one costs more time than it saves
UNDEFINED = "#undef quotient\n#undef root\n#undef atan_root\n#undef separate\n#undef all_global"  # after a program


class Program:
    """Records statements.

    Reads and writes name a *place*: a C++ lvalue such as `z_3` or `work[17*i + 2]`. `known` remembers what was last written to a
    place in the present region, so that it is not read again.

    Args:
        remembers: known places are not read again after a branch, either: right for places in memory. Variables are read again,
            so that nothing has to be kept for them while the branch runs.
        shared: types by name of what functions use most and do not change: they are given it, so that it stays in registers.
    """

    def __init__(self, remembers: bool = False, shared: dict[str, str] | None = None) -> None:
        self.remembers = remembers
        self.shared = {} if shared is None else shared
        self.lines: list[str] = []
        self._region: list[tuple[str, str, Any]] = []  # (what, place or text, value)
        self._names: dict[int, str] = {}  # of expressions that are printed and can be seen
        self._scopes: list[list[int]] = [[]]  # which of them leave with a scope
        self._kept: list[Expression] = []  # so that their ids stay theirs
        self._known: dict[str, Scalar] = {}
        self._written: list[set[str]] = [set()]  # places, by scope
        self._count = 0
        self._functions: dict[str, str] = {}  # names by text
        self._parameters: tuple[str, ...] = ()  # of the function that is being recorded
        self.called = ""  # the function that was recorded last

    # -- statements

    def read(self, place: str, kind: str = "real") -> Scalar:
        """The value of a place now."""
        if place in self._known:
            return self._known[place]
        name = self.name()
        self._region.append(("read", f"const {TYPES[kind]} {name} = {place};", None))
        self._known[place] = found = value(name, kind)
        return found

    def write(self, place: str, x: Scalar) -> None:
        """Give a place a value."""
        self._region.append(("write", place, x))
        self._known[place] = x
        self._written[-1].add(place)

    def add(self, place: str, x: Scalar) -> None:
        """Add to a place, which is not read here."""
        self._region.append(("add", place, x))

    def say(self, text: str) -> None:
        """A statement as it stands."""
        self._region.append(("say", text, None))

    def forget(self, text: str) -> None:
        """A statement as it stands, after which all places are read again, so that nothing has to be kept for them."""
        self._flush([])
        self.lines.append(text)
        self._known = {}

    @contextmanager
    def block(self, head: str, *needs: Condition) -> Iterator[None]:
        """A nested scope, such as a loop; `head` ends in "{" and has {0}, {1} … where the texts of `needs` belong.

        With `remembers`, a branch knows what was known before it, and what it does not write is known after it; else, and in a
        loop, all is forgotten.
        """
        self._flush(list(needs))
        self.lines.append(head.format(*(self._text(n) for n in needs)) if needs else head)
        self._scopes.append([])
        self._written.append(set())
        branch = self.remembers and head.startswith(("if", "else"))
        outer, self._known = (self._known, dict(self._known)) if branch else ({}, {})
        yield
        self._flush([])
        for e in self._scopes.pop():
            del self._names[e]
        written = self._written.pop()
        self._written[-1] |= written
        self._known = {place: x for place, x in outer.items() if place not in written}
        self.lines.append("}")

    @contextmanager
    def function(self, parameters: tuple[str, ...] = (), arguments: tuple[str, ...] = ()) -> Iterator[None]:
        """Statements that become a function, called here; those that are written alike are one function.

        A compiler takes longer for one long function than for several short ones. It may use what is declared before the program
        alone; `parameters`, of type bool, are those of functions inside it instead of their own. Nothing is known at its start
        and after it.
        """
        self._flush([])
        own = (self.lines, self._names, self._scopes, self._known, self._written, self._count, self._parameters)
        if self._parameters:
            parameters = arguments = self._parameters
        self.lines, self._names, self._scopes, self._known, self._written, self._count = [], {}, [[]], {}, [set()], 0
        self._parameters = parameters
        yield
        self._flush([])
        given = [f"{kind} {name}" for name, kind in self.shared.items()] + [f"const bool {name}" for name in parameters]
        apart = " ".join(f"all_global({name});" for name, kind in self.shared.items() if "*" in kind)
        text = f"({', '.join(given)}) separate {{{apart}\n" + "\n".join(self.lines) + "\n};"
        name = self._functions.setdefault(text, f"part{len(self._functions)}")
        written = set.union(*self._written)
        self.lines, self._names, self._scopes, self._known, self._written, self._count, self._parameters = own
        self._written[-1] |= written
        self.called = name
        self.call(name, arguments)

    def call(self, name: str, arguments: tuple[str, ...] = ()) -> None:
        """Call a function that was recorded before."""
        self._flush([])
        self._known = {}
        self.lines.append(f"{name}({', '.join((*self.shared, *arguments))});")

    def functions(self) -> str:
        """The functions that it calls, to stand before it."""
        if not self._functions:
            return ""
        return "\n".join([FUNCTIONS, *(f"const auto {name} = [&]{text}" for text, name in self._functions.items())])

    def leave(self, condition: Condition) -> None:
        """Leave the innermost loop where the condition holds."""
        self._flush([condition])
        self.lines.append(f"if ({self._text(condition)}) break;")

    def finish(self) -> str:
        """The text of the program."""
        self._flush([])
        forget_nodes()
        return "\n".join(self.lines)

    # -- printing

    def name(self, stem: str = "t") -> str:
        """A name that nothing else in the function has."""
        self._count += 1
        return f"{stem}{self._count}"

    def _flush(self, needs: list[Any]) -> None:
        """Print the region, and constants for what the `needs` of a following statement share."""
        roots = [x for what, _, x in self._region if what in ("write", "add")] + needs
        uses: dict[int, int] = {}
        stack: list[Any] = list(roots)
        while stack:
            e = stack.pop()
            if isinstance(e, Expression) and e.op != "value" and id(e) not in self._names:
                uses[id(e)] = count = uses.get(id(e), 0) + 1
                if count == 1:
                    stack.extend(e.args)
        for what, place, x in self._region:
            if what in ("write", "add"):
                self._print(x, uses)
                self.lines.append(f"{place} {'=' if what == 'write' else '+='} {self._text(x)};")
            else:
                self.lines.append(place)
        for x in needs:
            self._print(x, uses)
        self._region = []

    def _print(self, root: Any, uses: dict[int, int]) -> None:
        """Constants for all that the expression needs and that is used more than once, or is long."""
        if not isinstance(root, Expression):
            return
        names, size = self._names, dict[int, int]()
        stack: list[tuple[Expression, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if e.op == "value" or id(e) in names or id(e) in size:
                continue
            inner = [a for a in e.args if isinstance(a, Expression)]
            if not ready:
                stack.append((e, True))
                stack.extend((a, False) for a in reversed(inner))
                continue
            size[id(e)] = 1 + sum(size.get(id(a), 0) for a in inner if id(a) not in names)
            plain = e.op == "neg" and (inner[0].op == "value" or id(inner[0]) in names)
            if (uses.get(id(e), 0) > 1 and not plain) or size[id(e)] > LONGEST:
                name = self.name()
                self.lines.append(f"const {TYPES[e.kind]} {name} = {self._text(e)};")
                names[id(e)] = name
                self._scopes[-1].append(id(e))
                self._kept.append(e)

    def _sum(self, e: Expression) -> str:
        """A sum; products are added one by one, so that each of them is one operation with the addition."""
        a, b = e.args
        products = self._products(b, e.op == "-")
        if products is None and e.op == "+" and not self._is_product(b):
            products = self._products(a, False)
            a = b if products else a
        if not products:
            return f"({self._text(a)} {e.op} {self._text(b)})"
        out = self._text(a)
        for minus, x in products:
            out = f"({out} {'-' if minus else '+'} {self._text(x)})"
        return out

    def _is_product(self, e: Any) -> bool:
        return isinstance(e, Expression) and e.op == "*" and id(e) not in self._names

    def _products(self, e: Any, minus: bool) -> list[tuple[bool, Expression]] | None:
        """The terms of a sum that is printed here, and whether they are subtracted, if all are products of more than one."""
        if not isinstance(e, Expression) or e.op not in ("+", "-") or id(e) in self._names:
            return None
        out: list[tuple[bool, Expression]] = []
        for x, less in ((e.args[0], minus), (e.args[1], minus != (e.op == "-"))):
            inner = [(less, x)] if self._is_product(x) else self._products(x, less)
            if inner is None:
                return None
            out += inner  # type: ignore[arg-type]
        return out

    def _text(self, e: Any) -> str:
        if not isinstance(e, Expression):
            if isinstance(e, bool):
                return "true" if e else "false"
            return f"real({float(e)!r})"
        if e.op == "value":
            return str(e.args[0])
        name = self._names.get(id(e))
        if name is not None:
            return name
        if e.op in ("+", "-"):
            return self._sum(e)
        a = [self._text(x) for x in e.args]
        if e.op == "?" and e.kind == "reals":  # C++ chooses between numbers of one type
            for k in (1, 2):
                x = e.args[k]
                a[k] = a[k] if isinstance(x, Expression) and x.kind == "reals" else f"(reals)({a[k]})"
        if e.op in INFIX:
            return f"({a[0]} {e.op} {a[1]})"
        if e.op == "neg":
            return f"(-{a[0]})"
        if e.op == "!":
            return f"(!{a[0]})"
        if e.op == "?":
            return f"({a[0]} ? {a[1]} : {a[2]})"
        return f"{NAMED.get(e.op, f'wp::{e.op}')}({', '.join(a)})"
