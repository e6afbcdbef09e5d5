"""Shortens the C++ that Warp writes for our kernels: compilers take half the time for it, and make shorter code.

Warp 1.19 gives each operation a variable of its own. `t[0].state.tree[1, w]` copies the description of an array (64 bytes) into
one, after two that nobody reads; tables of arrays are copied for each function that takes one; structures come with functions for
adjoints, which ours have none of; and a kernel over one axis is written twice, for arrays without gaps and with. A compiler finds
out what of it is not needed, in most of its time.

Each rule replaces what Warp writes word for word and leaves alone what looks different, so that with a later version of Warp code
at worst stays as long as it is. What is computed stays the same: elements are read where Warp reads them; only descriptions of
arrays, which no kernel changes, are read later.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import warp as wp

from sharnir.core.lazy_source import OURS

RULES = "// shortened, 2\n"
"""Part of the code of our modules, and so of the key under which compiled forms are cached: to be counted up with the rules."""
_MACROS = "\n// avoid namespacing of float type"  # which Warp defines after all headers
_VIEW = """
namespace wp {
template <typename T, typename... Indices> inline CUDA_CALLABLE array_t<T> view(const array_t<T>& a, Indices... indices)
{
    array_t<T> whole = a;
    return view(whole, indices...);
}
}
"""  # Warp's own takes no array that must not be changed

_ADJOINT = re.compile(r"^(?:static )?(?:CUDA_CALLABLE )?[\w:<>, ]+ (?:adj_\w+|add)\([^{;]*\)\n\{.*?\n?^\}\n", re.M | re.S)
_INCREMENT = re.compile(r"\n    CUDA_CALLABLE \w+& operator \+= .*?return \*this;\}\n", re.S)
_STRUCT = re.compile(r"^struct (\w+)\n\{\n(.*?)^\};", re.M | re.S)
_HEAD = re.compile(r"^static [^\n(]+\(\n(?:    [^\n]+\n)+\{", re.M)
_ARGUMENT = re.compile(r"^    (wp::array_t<.*>|\w+) (var_\w+[,)])", re.M)
_GIVEN = re.compile(r"^    (wp::array_t<.*>|\w+) (var_\w+ = _wp_args->\w+;)", re.M)
_TWICE = re.compile(r"^    const bool wp_linear_contiguous = .*\n    if \(wp_linear_contiguous\)\n.*\n    else\n    (.*\n)", re.M)
_BODY = re.compile(r"^ +//---------\n +// primal vars\n(.*?)^ +//---------\n +// forward\n(.*?)^(?=\}| {4}\}\n\})", re.M | re.S)
_FUNCTION = re.compile(r"^static ([^\n(]+\(\n(?:    [^\n]+\n)+\{)(.*?)^\}$", re.M | re.S)
_APART = "#ifdef __CUDA_ARCH__\n#define sharnir_apart\n#else\n#define sharnir_apart __attribute__((noinline))\n#endif\n"
LONG = 20  # lines of a function that stays one on a CPU, one that holds all others takes longer to compile
_NAME = re.compile(r"\bvar_\w+")
_DECLARED = re.compile(r"^ +(const )?(.+?) (var_\d+)(?: = (.*))?;$")
_SET = re.compile(r"^( +)(var_\d+) = (.*);$")
_ASSIGNED = re.compile(r"^( +)wp::assign\((var_\w+), (.*)\);$")
_INTEGER = re.compile(r"-?\d+")
_ARITHMETIC = re.compile(r"wp::(add|sub|mul)\((\w+), (\w+)\)")
_CHOICE = re.compile(r"wp::where\((\w+), (\w+), (\w+)\)")
_SIGNS = {"add": "+", "sub": "-", "mul": "*"}
_SCALARS = ("wp::int32", "wp::float64", "wp::float32")
_LOAD_OF = "wp::load((&"


def shorten(source: str, apart: bool = False) -> str:
    """The same code, shorter; of a module without adjoints. `apart`: a CPU calls long functions, it does not inline them."""
    source = source.replace(_MACROS, _VIEW + _MACROS, 1) if "wp::view(" in source else source
    source = _INCREMENT.sub("", _ADJOINT.sub("", source))
    structures: dict[str, bool] = {}  # whether they are tables: made of arrays, and of other tables
    for name, fields in _STRUCT.findall(source):
        structures[name] = "wp::array_t<" in fields or any(table in fields for table, is_one in structures.items() if is_one)
    tables = {name for name, is_one in structures.items() if is_one}

    def by_reference(match: re.Match[str]) -> str:
        kind, rest = match.groups()
        return f"    const {kind}& {rest}" if kind in tables or kind.startswith("wp::array_t<") else match[0]

    source = _HEAD.sub(lambda head: _ARGUMENT.sub(by_reference, head[0]), source)
    source = _TWICE.sub(r"\1", _GIVEN.sub(by_reference, source))
    source = _BODY.sub(lambda body: _Body(body[1], body[2], tables).text(), source)
    return _FUNCTION.sub(_stay_apart, source.replace(_MACROS, "\n" + _APART + _MACROS, 1)) if apart else source


def _stay_apart(function: re.Match[str]) -> str:
    """A function, which stays one on a CPU if it is long."""
    return f"static sharnir_apart {function[1]}{function[2]}}}" if function[2].count("\n") > LONG else function[0]


class _Body:
    """What a function does.

    Args:
        declared: its variables, a line each.
        forward: its lines.
        tables: names of structures whose arrays no kernel changes.
    """

    def __init__(self, declared: str, forward: str, tables: set[str]) -> None:
        self.tables = tables
        self.kinds: dict[str, str] = {}
        self.declared: list[tuple[str, str]] = []
        constants: dict[str, str] = {}
        for line in declared.split("\n"):
            found = _DECLARED.match(line)
            if found and found[1] and found[2] == "wp::int32" and _INTEGER.fullmatch(found[4]):
                constants[found[3]] = found[4] if found[4][0] != "-" else f"({found[4]})"
            elif line:
                name = found[3] if found else ""
                self.kinds[name] = found[2] if found else ""
                self.declared.append((name, line))
        lines = "\n".join(line for line in forward.split("\n") if line and not line.lstrip().startswith("//"))
        lines = _NAME.sub(lambda name: constants.get(name[0], name[0]), lines)
        self.lines = lines.split("\n") if lines else []
        self.uses = Counter(_NAME.findall(lines))
        self.sets = Counter(found[2] for line in self.lines if (found := _SET.match(line) or _ASSIGNED.match(line)))
        self.instead: dict[str, str] = {}  # of variables: what they stand for

    def text(self) -> str:
        """Its lines, those of variables that are left first."""
        out = []
        for line in self.lines:
            if self.instead:
                line = _NAME.sub(lambda name: self.instead.get(name[0], name[0]), line)
            found = _SET.match(line)
            if found:
                value = self._value(found[2], found[3])
                if value:
                    out.append(f"{found[1]}{found[2]} = {value};")
            else:
                out.append(_ASSIGNED.sub(r"\1\2 = \3;", line))
        lines = "\n".join(out)
        left = set(_NAME.findall(lines))
        declared = "".join(f"{line}\n" for name, line in self.declared if not name or name in left)
        return f"{declared}{lines}\n"

    def _value(self, name: str, value: str) -> str:
        """What is given to a variable; "" if it stands for that."""
        kind = self.kinds.get(name, "")
        if self.sets[name] == 1 and self._stands(name, kind, value):
            return ""
        if value.startswith(_LOAD_OF):
            return value[len(_LOAD_OF) : -2]
        if value.startswith("wp::load("):
            return f"*{value[len('wp::load(') : -1]}"
        if value.startswith("wp::copy("):
            return value[len("wp::copy(") : -1]
        operation = _ARITHMETIC.fullmatch(value) if kind in _SCALARS else None
        if operation:
            return f"{operation[2]} {_SIGNS[operation[1]]} {operation[3]}"
        choice = _CHOICE.fullmatch(value)
        return f"{choice[1]} ? {choice[2]} : {choice[3]}" if choice else value

    def _stands(self, name: str, kind: str, value: str) -> bool:
        """Whether a variable is not needed: nobody reads it, or what it holds is written where it is read."""
        if kind.endswith("*"):
            if self.uses[name] == 1:
                return True
            if value.startswith("&("):
                self.instead[name] = f"(&{value[1:]})"
                return True
            if value.startswith("wp::address(") and self.uses[name] == 2 and self._is_kept(value):
                self.instead[name] = value
                return True
        elif value.startswith(_LOAD_OF) and (kind.startswith("wp::array_t<") or kind in self.tables):
            self.instead[name] = value[len(_LOAD_OF) : -2]
            return True
        return False

    def _is_kept(self, value: str) -> bool:
        """Whether all variables in it have one value."""
        return all(self.sets[name] <= 1 for name in _NAME.findall(value))


def shorten_ours() -> None:
    """Have Warp compile the short form of modules of ours from now on."""
    context: Any = getattr(getattr(wp, "_src", None), "context", None)
    builder: Any = getattr(context, "ModuleBuilder", None)
    write = getattr(builder, "codegen", None)
    if write is None:
        return

    def codegen(self: Any, device: Any) -> str:
        source: str = write(self, device)
        ours = str(getattr(self.module, "name", "")).startswith(OURS)
        adjoints = any(getattr(kernel.adj, "used_by_backward_kernel", True) for kernel in self.kernels)
        if adjoints or not ours:
            return source
        return shorten(source, "-O1" in str(self.module.options.get("cpu_compiler_flags", "")))

    builder.codegen = codegen
