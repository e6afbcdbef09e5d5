"""Vectors, matrices and quaternions of any scalars: floats, `Expression`s or dual numbers.

`Identity`, `ByMatrix`, `AboutZ` and `Chained` turn vectors and matrices from the axes of one frame to those of another, each in
the cheapest form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sharnir.emit.expressions import Scalar, sqrt

SYMMETRIC = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # entries that a `Symmetric` stores


class Vector:
    """Three scalars."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Any, y: Any, z: Any) -> None:
        self.x, self.y, self.z = x, y, z

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.y, self.z))

    def __getitem__(self, i: int) -> Any:
        return (self.x, self.y, self.z)[i]

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vector:
        return Vector(self.x * s, self.y * s, self.z * s)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"Vector({self.x!r}, {self.y!r}, {self.z!r})"


ZERO = Vector(0.0, 0.0, 0.0)


def dot(a: Sequence[Any] | Vector, b: Sequence[Any] | Vector) -> Any:
    """Sum of products."""
    out: Any = 0.0
    for x, y in zip(a, b, strict=True):
        out = out + x * y
    return out


def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


class Matrix:
    """Three rows of three scalars."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows = tuple(tuple(r) for r in rows)

    @staticmethod
    def from_entries(e: Sequence[Any]) -> Matrix:
        """From nine entries, row by row."""
        return Matrix((e[0:3], e[3:6], e[6:9]))

    def entries(self) -> list[Any]:
        """Nine entries, row by row."""
        return [x for r in self.rows for x in r]

    def __getitem__(self, at: tuple[int, int]) -> Any:
        return self.rows[at[0]][at[1]]

    def column(self, j: int) -> Vector:
        """Column j."""
        return Vector(*(r[j] for r in self.rows))

    def row(self, i: int) -> Vector:
        """Row i."""
        return Vector(*self.rows[i])

    @property
    def T(self) -> Matrix:
        """The transpose."""
        return Matrix(tuple(zip(*self.rows, strict=True)))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vector):
            return Vector(*(dot(r, other) for r in self.rows))
        columns = [other.column(j) for j in range(3)]
        return Matrix([[dot(r, c) for c in columns] for r in self.rows])

    def inverse(self) -> Matrix:
        """The inverse, by cofactors."""
        x, y, z = (self.column(j) for j in range(3))
        rows = cross(y, z), cross(z, x), cross(x, y)
        k = 1.0 / dot(x, rows[0])
        return Matrix([list(r * k) for r in rows])

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix([[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)])

    def __sub__(self, other: Matrix) -> Matrix:
        return Matrix([[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)])


IDENTITY = Matrix(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
NO_MATRIX = Matrix(((0.0,) * 3,) * 3)


class Symmetric:
    """A symmetric matrix by its six entries xx yy zz xy xz yz."""

    __slots__ = ("e",)

    def __init__(self, e: Sequence[Any]) -> None:
        self.e = tuple(e)

    @staticmethod
    def upper(m: Any) -> Symmetric:
        """The diagonal and upper entries of a matrix that is symmetric."""
        return Symmetric([m[i, j] for i, j in SYMMETRIC])

    def entries(self) -> list[Any]:
        """Six entries."""
        return list(self.e)

    def __getitem__(self, at: tuple[int, int]) -> Any:
        i, j = sorted(at)
        return self.e[SYMMETRIC.index((i, j))]

    def column(self, j: int) -> Vector:
        """Column j."""
        return Vector(*(self[i, j] for i in range(3)))

    @property
    def full(self) -> Matrix:
        """All nine entries."""
        return Matrix([[self[i, j] for j in range(3)] for i in range(3)])

    def __matmul__(self, other: Any) -> Any:
        return self.full @ other

    def __add__(self, other: Symmetric) -> Symmetric:
        return Symmetric([x + y for x, y in zip(self.e, other.e, strict=True)])

    def __sub__(self, other: Symmetric) -> Symmetric:
        return Symmetric([x - y for x, y in zip(self.e, other.e, strict=True)])

    def inverse(self) -> Symmetric:
        """The inverse of a positive definite matrix, by its Cholesky factors (no digits are lost as by cofactors)."""
        a, b, c, d, e, f = self.e  # xx yy zz xy xz yz
        p = 1.0 / a
        l1, l2 = d * p, e * p
        q = 1.0 / (b - l1 * d)
        m = f - l1 * e
        l3 = m * q
        r = 1.0 / (c - l2 * e - l3 * m)
        # L⁻ᵀ D⁻¹ L⁻¹ with L⁻¹ = [1; −l1 1; k −l3 1]
        k = l1 * l3 - l2
        xz, yz = k * r, -(l3 * r)
        return Symmetric([p + l1 * l1 * q + k * xz, q - l3 * yz, r, -(l1 * q) + k * yz, xz, yz])


NO_SYMMETRIC = Symmetric((0.0,) * 6)


def skew(a: Vector) -> Matrix:
    """The matrix of a × ·."""
    return Matrix(((0.0, -a.z, a.y), (a.z, 0.0, -a.x), (-a.y, a.x, 0.0)))


def outer(a: Vector, b: Vector) -> Matrix:
    """a bᵀ."""
    return Matrix([[x * y for y in b] for x in a])


def square(a: Vector, s: Scalar = 1.0) -> Symmetric:
    """s a aᵀ."""
    sa = a * s
    return Symmetric([sa[i] * a[j] for i, j in SYMMETRIC])


# ---- rotations ---------------------------------------------------------------------------------------------------------------


def mean_rotation(g: Vector, k: Any = None) -> Matrix:
    """The matrix M of the mean, over a step, of vectors that turn by the Cayley map of 2g: M x = ½ (x + cay(2g) x).

    `k` is 1/(1 + g²), where that is known.
    """
    k = 1.0 / (1.0 + dot(g, g)) if k is None else k
    s = g * k
    xx, yy, zz, xy, xz, yz = (s[i] * g[j] for i, j in SYMMETRIC)
    return Matrix(
        (
            (k + xx, xy - s.z, xz + s.y),
            (xy + s.z, k + yy, yz - s.x),
            (xz - s.y, yz + s.x, k + zz),
        )
    )


class Identity:
    """No rotation: both frames have the same axes."""

    def inward(self, x: Any) -> Any:
        return x

    def outward(self, x: Any) -> Any:
        return x

    similar = similar_symmetric = outward


class ByMatrix:
    """x in the outer axes is R x of the inner ones."""

    def __init__(self, R: Matrix) -> None:
        self.R = R

    def inward(self, x: Vector) -> Vector:
        """From the base's axes to the link's."""
        return Vector(*(dot(self.R.column(j), x) for j in range(3)))

    def outward(self, x: Vector) -> Vector:
        """From the link's axes to the base's."""
        turned: Vector = self.R @ x
        return turned

    def similar(self, m: Matrix) -> Matrix:
        """R m Rᵀ."""
        half = self.R @ m
        return Matrix([[dot(r, s) for s in self.R.rows] for r in half.rows])

    def similar_symmetric(self, m: Symmetric) -> Symmetric:
        """R m Rᵀ of a symmetric matrix."""
        half = self.R @ m.full
        return Symmetric([dot(half.rows[i], self.R.rows[j]) for i, j in SYMMETRIC])


class AboutZ:
    """A rotation about z by an angle given by its cosine and sine."""

    def __init__(self, c: Scalar, s: Scalar) -> None:
        self.c, self.s = c, s

    def inward(self, x: Vector) -> Vector:
        return Vector(self.c * x.x + self.s * x.y, self.c * x.y - self.s * x.x, x.z)

    def outward(self, x: Vector) -> Vector:
        return Vector(self.c * x.x - self.s * x.y, self.s * x.x + self.c * x.y, x.z)

    def similar(self, m: Matrix) -> Matrix:
        turned = Matrix([list(self.outward(m.column(j))) for j in range(3)])  # rows are columns of R m
        return Matrix([list(self.outward(turned.column(i))) for i in range(3)])

    def similar_symmetric(self, m: Symmetric) -> Symmetric:
        c, s = self.c, self.s
        xx, yy, zz, xy, xz, yz = m.e
        cs = c * s
        d = xx - yy
        e = 2.0 * (cs * xy) + s * s * d
        return Symmetric([xx - e, yy + e, zz, cs * d + (c * c - s * s) * xy, c * xz - s * yz, s * xz + c * yz])


class Chained:
    """One rotation after another; the first is the outer one."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def inward(self, x: Vector) -> Vector:
        for r in self.parts:
            x = r.inward(x)
        return x

    def outward(self, x: Vector) -> Vector:
        for r in reversed(self.parts):
            x = r.outward(x)
        return x

    def similar(self, m: Matrix) -> Matrix:
        for r in reversed(self.parts):
            m = r.similar(m)
        return m

    def similar_symmetric(self, m: Symmetric) -> Symmetric:
        for r in reversed(self.parts):
            m = r.similar_symmetric(m)
        return m


# ---- quaternions (x, y, z, w) ------------------------------------------------------------------------------------------------


class Quaternion:
    """A rotation by four scalars x, y, z, w."""

    __slots__ = ("v", "w")

    def __init__(self, v: Vector, w: Any) -> None:
        self.v, self.w = v, w

    def entries(self) -> list[Any]:
        """x, y, z, w."""
        return [*self.v, self.w]

    def __mul__(self, other: Quaternion) -> Quaternion:
        a, b = self, other
        return Quaternion(b.v * a.w + a.v * b.w + cross(a.v, b.v), a.w * b.w - dot(a.v, b.v))

    def normalized(self) -> Quaternion:
        """Of length 1; a Newton step removes what a fast square root has left."""
        k = 1.0 / sqrt(dot(self.v, self.v) + self.w * self.w)
        v, w = self.v * k, self.w * k
        off = 0.5 - 0.5 * (dot(v, v) + w * w)
        return Quaternion(v + v * off, w + w * off)

    def matrix(self) -> Matrix:
        """The rotation as a matrix; the length must be 1."""
        d = self.v * 2.0
        xx, yy, zz, xy, xz, yz = (d[i] * self.v[j] for i, j in SYMMETRIC)
        wx, wy, wz = (k * self.w for k in d)
        return Matrix(
            (
                (1.0 - (yy + zz), xy - wz, xz + wy),
                (xy + wz, 1.0 - (xx + zz), yz - wx),
                (xz - wy, yz + wx, 1.0 - (xx + yy)),
            )
        )
