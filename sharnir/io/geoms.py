"""Geoms of an MJCF model: what bodies look like and collide with, grounds, terrains, who touches whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.errors import SceneError
from sharnir.io.meshes import Drawing, Skin
from sharnir.shapes import Array, Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from sharnir.spatial import quat_conjugate, quat_multiply, quat_rotate, quat_to_matrix

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
MAKERS: dict[int, Callable[[Any], Callable[..., Shape]]] = {
    SPHERE: lambda s: lambda **k: Sphere(s[0], **k),
    CAPSULE: lambda s: lambda **k: Capsule(s[0], 2 * s[1], **k),
    ELLIPSOID: lambda s: lambda **k: Ellipsoid(s[0], s[1], s[2], **k),
    CYLINDER: lambda s: lambda **k: Cylinder(s[0], 2 * s[1], **k),
    BOX: lambda s: lambda **k: Box(2 * s[0], 2 * s[1], 2 * s[2], **k),
}
"""Shapes of a geom's sizes (half lengths there, full ones here), by its type."""
CLASSES = 30


class Geoms:
    """The geoms of a model as it is imported (`mjcf.Imported`)."""

    def __init__(self, made: Any, meshes: bool) -> None:
        self.made, self.m, self.d, self.meshes = made, made.model, made.data, meshes
        self.hulls: dict[int, tuple[Array, Any]] = {}
        self.classes: dict[tuple[int, int], int] = {}
        still = [g for g in range(self.m.ngeom) if self.m.body_weldid[self.m.geom_bodyid[g]] == 0]
        planes = [g for g in still if int(self.m.geom_type[g]) == PLANE]
        for g in [*planes[:1], *range(self.m.ngeom)]:  # the world's planes are of the first class
            self.classes.setdefault(self.kind(g), len(self.classes))
        if not planes and self.classes:
            self.classes = {kind: k + 1 for kind, k in self.classes.items()}

    def kind(self, g: int) -> tuple[int, int]:
        """Its bits: those it has, and those it asks for."""
        return int(self.m.geom_contype[g]), int(self.m.geom_conaffinity[g])

    def of_body(self, parts: list[int], position: Array, rotation: Array) -> dict[str, Any]:
        """Arguments of `add_body` for the geoms of bodies welded together, in a frame."""
        m, back = self.m, quat_conjugate(rotation)
        drawn: list[Shape] = []
        touching: list[Shape] = []
        kinds: set[tuple[int, int]] = set()
        material, color = None, None
        for g in (g for g in range(m.ngeom) if int(m.geom_bodyid[g]) in parts):
            place = quat_rotate(back, self.d.geom_xpos[g] - position)
            turn = quat_multiply(back, matrix_quat(self.d.geom_xmat[g]))
            at = {"position": tuple(place.tolist()), "rotation": tuple((turn / np.linalg.norm(turn)).tolist())}
            look, touch = self.shapes(g, at)
            if look is not None:
                drawn.append(look)
                color = tuple(np.clip(m.geom_rgba[g, :3], 0, 1).tolist()) if color is None else color
            if touch is not None and self.kind(g) != (0, 0):
                touching.append(touch)
                kinds.add(self.kind(g))
                material = self.material(g) if material is None else material
        out: dict[str, Any] = {"shape": Drawing(*drawn) if drawn else None, "color": color, "material": material}
        out["collision"] = touching
        out["collide"] = bool(touching) and None  # False where nothing touches
        if len(self.classes) > 1 and kinds and max(self.classes.values()) < CLASSES:
            out["group"] = self.group(kinds)
        return out

    def group(self, kinds: set[tuple[int, int]]) -> tuple[int, int]:
        """(bits, mask): a bit for each kind of the model, and those of the kinds that touch one of these."""
        bits = sum(1 << self.classes[kind] for kind in kinds)
        met = {other for other in self.classes for kind in kinds if (kind[0] & other[1]) | (other[0] & kind[1])}
        return bits, sum(1 << self.classes[other] for other in met)

    def material(self, g: int) -> Material:
        """How it rubs: sliding, torsion (m) and rolling (m)."""
        slide, torsion, rolling = (max(float(v), 0.0) for v in self.m.geom_friction[g])
        condim = int(self.m.geom_condim[g])
        turning: dict[str, Any] = {"torsion": torsion if condim > 3 else 0.0, "rolling": rolling if condim > 4 else 0.0}
        return Material(slide if condim > 1 else 0.0, **turning)

    def shapes(self, g: int, at: dict[str, Any]) -> tuple[Shape | None, Shape | None]:
        """What a geom looks like, and what touches others."""
        m, kind = self.m, int(self.m.geom_type[g])
        name = self.made.name("geom", g)
        if kind in MAKERS:
            shape = MAKERS[kind]([float(v) for v in m.geom_size[g]])(**at)
            return shape, shape
        if kind == MESH and self.meshes:
            return self.mesh(g, at)
        if kind == MESH:
            return None, None
        if kind not in (PLANE, HFIELD) or self.m.body_weldid[m.geom_bodyid[g]] != 0:
            self.made.note(f"geom {name!r} is left out: a shape without a counterpart, or a plane on a body that moves")
        return None, None

    def mesh(self, g: int, at: dict[str, Any]) -> tuple[Shape | None, Shape | None]:
        """Its triangles, and their convex hull."""
        m, k = self.m, int(self.m.geom_dataid[g])
        rows = slice(int(m.mesh_vertadr[k]), int(m.mesh_vertadr[k] + m.mesh_vertnum[k]))
        vertices = m.mesh_vert[rows].astype(float)
        faces = m.mesh_face[int(m.mesh_faceadr[k]) : int(m.mesh_faceadr[k] + m.mesh_facenum[k])].astype(int)
        look = Skin(vertices, faces, **at)
        if self.kind(g) == (0, 0):
            return look, None
        try:
            if k not in self.hulls:
                import trimesh

                hull = trimesh.convex.convex_hull(vertices)
                self.hulls[k] = np.array(hull.vertices), np.array(hull.faces)
            return look, Mesh(self.hulls[k], **at)
        except (SceneError, ImportError, ValueError, RuntimeError) as error:
            self.made.note(f"geom {self.made.name('geom', g)!r} touches nothing, it has no convex hull: {error}")
            return look, None

    # ---- what stands still ----

    def add_still(self) -> None:
        """Geoms of the world, and of bodies that are welded to it: grounds, terrains, fixed bodies."""
        m, made = self.m, self.made
        for i in (k for k in range(m.nbody) if m.body_weldid[k] == 0):
            own = [g for g in range(m.ngeom) if int(m.geom_bodyid[g]) == i]
            for g in own:
                if int(m.geom_type[g]) == PLANE and self.kind(g) != (0, 0):
                    normal = self.d.geom_xmat[g].reshape(3, 3)[:, 2]
                    made.scene.add_ground(float(normal @ self.d.geom_xpos[g]), normal=normal.copy(), material=self.material(g))
                if int(m.geom_type[g]) == HFIELD:
                    self.add_terrain(g)
            if any(int(m.geom_type[g]) not in (PLANE, HFIELD) for g in own):
                position, rotation = made.pose(i)
                name = made.new(made.name("body", i) if i else "world geoms", "body")
                content = self.of_body([i], position, rotation)
                made.scene.add_body(name, content.pop("shape"), position=position, rotation=rotation, motion="fixed", **content)

    def add_terrain(self, g: int) -> None:
        """A height field of the world."""
        m, made, k = self.m, self.made, int(self.m.geom_dataid[g])
        rows, columns = int(m.hfield_nrow[k]), int(m.hfield_ncol[k])
        x, y, top, _ = (float(v) for v in m.hfield_size[k])
        heights = m.hfield_data[int(m.hfield_adr[k]) :][: rows * columns].reshape(rows, columns).T.astype(float) * top
        turn = quat_to_matrix(matrix_quat(self.d.geom_xmat[g]))
        name = made.new(made.name("geom", g), "terrain")
        if np.abs(turn - np.eye(3)).max() > 1e-9:
            made.note(f"the height field {name!r} is turned, and is left out")
            return
        made.scene.add_terrain(name, heights, size=(2 * x, 2 * y), position=self.d.geom_xpos[g].copy(), material=self.material(g))

    def add_rules(self) -> None:
        """Pairs of bodies that do not touch, and pairs of geoms that touch in a way of their own."""
        m, made = self.m, self.made
        for code in m.exclude_signature:
            a, b = made.body(int(code) >> 16), made.body(int(code) & 0xFFFF)
            if a != b:
                made.scene.ignore(a, b)
        for p in range(m.npair):
            a, b = (made.body(int(m.geom_bodyid[int(ids[p])])) for ids in (m.pair_geom1, m.pair_geom2))
            if a != b:
                made.scene.set_pair(a, b, Material(float(max(m.pair_friction[p, 0], 0.0))))
        if made.scene.touch.on and len(set(m.geom_friction[:, 0].tolist())) > 1:
            made.note("where two geoms meet, MuJoCo takes the larger friction, this scene √(μ_a μ_b)")


def matrix_quat(matrix: Any) -> Array:
    """The quaternion (x, y, z, w) of a rotation matrix, row by row."""
    import mujoco

    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(matrix, float).ravel())
    return np.array([out[1], out[2], out[3], out[0]])
