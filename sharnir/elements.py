"""How the code that Warp writes for our kernels reaches elements of arrays: C++ that goes before it.

Warp lets an index count from an array's end, computes addresses in 64 bits, and knows nothing of where arrays lie. Ours are never
indexed so, strides and indices fit 32 bits, and all elements lie in a GPU's global memory. Told so, a GPU's compiler writes two
thirds of the instructions, a CPU's fewer branches.

An index of −1, `none`, is read as 0: Warp evaluates both sides of `i >= 0 and x[i] > 0`, and what it reads there is not used.
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


PREAMBLE = _REACH + "".join(_dimensions(n) for n in range(1, 5)) + "}\n"
