"""How the code that Warp writes for our kernels reaches elements of arrays and multiplies 3 × 3 matrices: C++ before it.

Warp lets an index count from an array's end, computes addresses in 64 bits, and knows nothing of where arrays lie. Ours are never
indexed so, strides and indices fit 32 bits, and all elements lie in a GPU's global memory. Told so, a GPU's compiler writes
code two thirds as long, a CPU's fewer branches.

An index of −1, `none`, is read as 0: Warp evaluates both sides of `i >= 0 and x[i] > 0`, and what it reads there is not used.

Warp's operations on matrices are loops. A GPU's compiler that is in a hurry (`types.inline_less`) leaves them as loops, over
matrices in memory then; written out, they stay in registers.
"""

_REACH = """
namespace wp {
inline CUDA_CALLABLE size_t sharnir_way(int index, int stride)
{
    return size_t(unsigned(index < 0 ? 0 : index)) * size_t(unsigned(stride));
}

template <typename T> inline CUDA_CALLABLE T* sharnir_at(const array_t<T>& a, size_t way)
{
    T* p = reinterpret_cast<T*>(reinterpret_cast<char*>(a.data) + way);
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(p));
#endif
    return p;
}
"""

# Overloads for arrays alone are nearer than Warp's own, which are for arrays of all kinds
_ONE = """
template <typename T> inline CUDA_CALLABLE T* address(const array_t<T>& a, {indices})
{{
    return sharnir_at(a, {way});
}}
template <typename T> inline CUDA_CALLABLE void array_store(const array_t<T>& a, {indices}, T value)
{{
    *address(a, {names}) = value;
}}
"""


def _dimensions(n: int) -> str:
    """Overloads for arrays of n dimensions."""
    names = "ijkl"[:n]
    way = " + ".join(f"sharnir_way({name}, a.strides[{k}])" for k, name in enumerate(names))
    return _ONE.format(indices=", ".join(f"int {name}" for name in names), names=", ".join(names), way=way)


_NINE = [(i, j) for i in range(3) for j in range(3)]
_COMPONENT_SUM, _OUTER = "a.data[{i}][{j}] {sign} b.data[{i}][{j}]", "a.c[{i}] * b.c[{j}]"
_PRODUCT = "a.data[{i}][0] * b.data[0][{j}] + a.data[{i}][1] * b.data[1][{j}] + a.data[{i}][2] * b.data[2][{j}]"
_TIMES, _BEFORE = (" + ".join(f"a.{of} * b.{by}" for of, by in pairs) for pairs in (
    [(f"data[{{i}}][{k}]", f"c[{k}]") for k in range(3)], [(f"c[{k}]", f"data[{k}][{{i}}]") for k in range(3)],
))  # fmt: skip


def _written_out(name: str, result: str, given: str, entry: str, **words: str) -> str:
    """An operation whose result has an entry such as this in each place."""
    places = _NINE if result.startswith("mat") else [(i, 0) for i in range(3)]
    entries = ", ".join(entry.format(i=i, j=j, **words) for i, j in places)
    return f"template <typename T> inline CUDA_CALLABLE {result} {name}({given})\n{{\n    return {result}({entries});\n}}\n"


def _matrices() -> str:
    """Operations on matrices of 3 × 3."""
    m, v = "mat_t<3, 3, T>", "vec_t<3, T>"
    a, b = (f"const {m}& a", f"const {m}& b")
    return "".join((
        _written_out("add", m, f"{a}, {b}", _COMPONENT_SUM, sign="+"),
        _written_out("sub", m, f"{a}, {b}", _COMPONENT_SUM, sign="-"),
        _written_out("neg", m, a, "-a.data[{i}][{j}]"),
        _written_out("mul", m, f"{a}, T b", "a.data[{i}][{j}] * b"),
        _written_out("mul", m, f"{a}, {b}", _PRODUCT),
        _written_out("mul", v, f"{a}, const {v}& b", _TIMES),
        _written_out("mul", v, f"const {v}& a, {b}", _BEFORE),
        _written_out("transpose", m, a, "a.data[{j}][{i}]"),
        _written_out("outer", m, f"const {v}& a, const {v}& b", _OUTER),
    ))  # fmt: skip


PREAMBLE = _REACH + "".join(_dimensions(n) for n in range(1, 5)) + _matrices() + "}\n"
