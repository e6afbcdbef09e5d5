"""The step of a forest as C++: the body of a function that advances one world by some steps.

The function's arguments are those of `kernel.tree_kernel`. The state is stored [number, world], link by link.
"""

from __future__ import annotations

from collections.abc import Iterator

from sharnir.emit.program import Program
from sharnir.engine.tree.forest import HINGE, PARAMETERS, Forest
from sharnir.engine.tree.row_storage import LINK_FIELDS, RowLoopTree
from sharnir.engine.tree.step import step
from sharnir.engine.tree.storage import FIELDS_OF, HISTORY, SIZES, LoopTree, UnrolledTree

PER_LINK = sum(PARAMETERS.values())
HEAD = """typedef {real} real;
const real quarter = real(0.25)*h*h, fall = h*wp::sqrt(gx*gx + gy*gy + gz*gz);
const real gravity0 = quarter*gx, gravity1 = quarter*gy, gravity2 = quarter*gz;
int count = 0, failed = 0; real change = real(0.0);
int changed = 0, wrong = 0, fewest = 0, patience = 0; bool one = false, unknown = false, stopped = false;"""


def stored_fields(kind: int) -> Iterator[tuple[str, int]]:
    """Names and sizes of the state of a link, in the order in which it is stored."""
    for name in FIELDS_OF[kind]:
        if name in ("c", "s"):
            continue
        history = [name + n for n in ("", "1", "2", "3")] if name in HISTORY else [name]
        for field in history:
            yield field, SIZES[field]
    yield "V", 3
    yield "W", 3


def state_size(forest: Forest) -> int:
    """Numbers of state of a world."""
    return sum(size for link in forest.links for _, size in stored_fields(link.kind))


def unrolled_code(forest: Forest, real: str = "double", own_axes: bool = True, factor_always: bool = False) -> str:
    """Code for one forest."""
    program = Program()
    tree = UnrolledTree(forest, program, own_axes, factor_always)
    loads, stores, at = [], [], 0
    for i, link in enumerate(forest.links):
        for name, size in stored_fields(link.kind):
            for k in range(size):
                loads.append(f"{name}_{i}_{k} = stored({at});")
                stores.append(f"stored({at}) = {name}_{i}_{k};")
                at += 1
        if link.kind == HINGE:
            loads.append(f"c_{i}_0 = wp::cos(q_{i}_0); s_{i}_0 = wp::sin(q_{i}_0);")
    with program.block("for (int step = 0; step < steps; ++step) {"):
        program.say("unknown = false;")
        step(tree)
    body = program.finish()
    declared = [f"{name}_{i}_{k}" for name, size in tree.stored.items() for i in range(len(forest)) for k in range(size)]
    used = [d for d in declared if d in body or any(d in x for x in loads)]
    lines = [
        HEAD.format(real=real),
        "#define parameter(k) parameters.data[(k)*parameter_stride + w*parameter_world]",
        "#define stored(k) state.data[(k)*worlds + w]",
        "real " + ", ".join(f"{d} = real(0.0)" for d in used) + ";",
        *loads,
        body,
        *stores,
        "#undef parameter",
        "#undef stored",
        "return count;",
    ]
    return "\n".join(lines)


def loop_code(
    real: str = "double", own_axes: bool = False, factor_always: bool = False, kinds: tuple[int, ...] | None = None,
    rows: bool = False,
) -> str:  # fmt: skip
    """Code for any forest (with joints of these kinds), and any rows beside it."""
    program = Program()
    tree = (RowLoopTree if rows else LoopTree)(program, own_axes, factor_always, kinds)
    with program.block("for (int step = 0; step < steps; ++step) {"):
        program.say("unknown = false;")
        step(tree)
    body = program.finish()
    row, start = tree.row, tree.start

    def copy(load: bool) -> str:
        out = ["{ int at = 0; for (int i = 0; i < links; ++i) {", f"const int own = {row}*(i + 1);"]
        for kind in tree.kinds:
            out.append(f"if (kinds[i] == {kind}) {{")
            for name, size in stored_fields(kind):
                for k in range(size):
                    place = f"number(own + {start[name] + k})"
                    out.append(f"{place} = stored(at);" if load else f"stored(at) = {place};")
                    out.append("++at;")
            if load and kind == HINGE:
                q, c, s = (f"number(own + {start[n]})" for n in "qcs")
                out.append(f"{c} = wp::cos({q}); {s} = wp::sin({q});")
            out.append("}")
        if load:
            sums = ("f", "n", "A", "H", "I", "given", "slope", "lock")
            sizes = {n: SIZES[n] for n in sums} | (LINK_FIELDS if rows else {})
            clear = [f"number(own + {start[n] + k}) = real(0.0);" for n, size in sizes.items() for k in range(size)]
            given = [
                f"number(own + {k}) = parameters.data[({PER_LINK}*i + {k})*parameter_stride + w*parameter_world];"
                for k in range(PER_LINK)
            ]
            out += clear + given
        return "\n".join([*out, "}}"])

    ground = [f"for (int k = 0; k < {row}; ++k) number(k) = real(0.0);"]
    for name in ("M", "R"):
        ground += [f"number({start[name] + k}) = real(1.0);" for k in (0, 4, 8)]
    for k in range(3):
        ground += [f"number({start['u'] + k}) = -gravity{k};", f"number({start['gravity'] + k}) = gravity{k};"]
    lines = [
        HEAD.format(real=real),
        *(tree.rows.head() if rows else ()),
        "#define stored(k) state.data[(k)*worlds + w]",
        "#ifdef __CUDA_ARCH__",
        "#define number(k) memory.data[(k)*worlds + w]",
        "#else",
        f"real* const row_of_world = memory.data + w*{'(at_matrix + 2*n_matrix)' if rows else f'{row}*(links + 1)'};",
        "#define number(k) row_of_world[k]",
        "#endif",
        "const int* const bases = base_of.data; const int* const kinds = kind_of.data; const int* const acts = acts_on.data;",
        *ground,
        copy(True),
        body,
        copy(False),
        *(["#undef given"] if rows else ()),
        "#undef number",
        "#undef stored",
        "return count;",
    ]
    return "\n".join(lines)


def loop_memory(forest: Forest) -> int:
    """Numbers of working memory of a world."""
    return sum(SIZES.values()) * (len(forest) + 1)
