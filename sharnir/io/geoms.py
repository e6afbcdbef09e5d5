"""Geoms of an MJCF model: what bodies look like and collide with, grounds, terrains, who touches whom."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from sharnir.collision.material import Material
from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate, quat_to_matrix
from sharnir.errors import SceneError
from sharnir.geometry.shapes import Array, Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from sharnir.io.meshes import Drawing, Skin

GEOM_PLANE, GEOM_HFIELD, GEOM_SPHERE, GEOM_CAPSULE, GEOM_ELLIPSOID, GEOM_CYLINDER, GEOM_BOX, GEOM_MESH = range(8)
MAKERS: dict[int, Callable[[Any], Callable[..., Shape]]] = {
    GEOM_SPHERE: lambda s: lambda **k: Sphere(s[0], **k),
    GEOM_CAPSULE: lambda s: lambda **k: Capsule(s[0], 2 * s[1], **k),
    GEOM_ELLIPSOID: lambda s: lambda **k: Ellipsoid(s[0], s[1], s[2], **k),
    GEOM_CYLINDER: lambda s: lambda **k: Cylinder(s[0], 2 * s[1], **k),
    GEOM_BOX: lambda s: lambda **k: Box(2 * s[0], 2 * s[1], 2 * s[2], **k),
}
"""Shapes of a geom's sizes (half lengths there, full ones here), by its type."""
CLASSES = 31
"""Kinds of geoms that groups can tell apart: bits of a group."""
PLAIN_GEOM = (1, 1, -1, -1)
"""Kind of a geom with MuJoCo's defaults, as of whatever a user adds to the scene: group 1."""
Kind = tuple[int, int, int, int]  # contype, conaffinity, body if pairs of its geoms are excluded, geom if it has pairs of its own


class Rules:
    """Which geoms of a model may touch, as MuJoCo has it: kinds of geoms, and for each kind those that it touches.

    Bits (`contype`, `conaffinity`) say so for kinds. Where a body that is excluded from touching another shares its rigid body
    with others, its geoms are of a kind of their own; so are geoms of `<pair>`, which touch whatever the other rules say.
    """

    def __init__(self, model: Any) -> None:
        self.m = model
        have = set(model.geom_bodyid.tolist())
        self.excluded = {frozenset((int(code) >> 16, int(code) & 0xFFFF)) for code in model.exclude_signature}
        self.excluded = {pair for pair in self.excluded if pair <= have and len(pair) == 2}
        self.pairs = {frozenset((int(a), int(b))) for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True)}
        self.filters_parents = not filter_off(model)
        self.notes: list[str] = []
        shared = {int(model.body_weldid[b]) for b in have if model.body_weldid[b] != b} | {0}
        self.whole = {p for p in self.excluded if not any(int(model.body_weldid[b]) in shared for b in p)}
        """Exclusions of bodies that are rigid bodies of their own."""
        self.by_kind = self.excluded - self.whole
        """Exclusions of bodies by kinds of their geoms."""
        bodies = {pair: frozenset(int(model.geom_bodyid[g]) for g in pair) for pair in self.pairs}
        self.opened: set[frozenset[int]] = set()
        """Rigid bodies of which one hangs on the other, and that touch by a pair of geoms."""
        for p in (p for p in bodies.values() if len(p) == 2):
            if self.neighbours(*p):  # other geoms of the two rigid bodies pass through each other
                self.opened.add(frozenset(int(model.body_weldid[b]) for b in p))
                first, second = ([b for b in range(model.nbody) if model.body_weldid[b] == model.body_weldid[x]] for x in p)
                self.by_kind |= {frozenset((x, y)) for x in first for y in second}
            elif p in self.excluded:
                self.by_kind.add(p)
        self.whole -= self.by_kind
        self.pairs = {pair for pair in self.pairs if bodies[pair] in self.by_kind or not self.bits_meet(*pair)}
        self._mark()
        if len(self.kinds) > CLASSES:
            self.notes.append("exclude and pair hold for rigid bodies as a whole: they tell too many kinds of geoms apart")
            self.whole, self.by_kind, self.pairs, self.opened = set(self.excluded), set(), set(), set()
            self._mark()
        if len(self.kinds) > CLASSES:
            self.notes.append(f"geoms are {len(self.kinds)} kinds by contype and conaffinity, at most {CLASSES}: all may touch")

    def _mark(self) -> None:
        """Number the kinds of geoms that may touch others."""
        self._marked = {b for pair in self.by_kind for b in pair}
        self._paired = {g for pair in self.pairs for g in pair}
        self.kinds: dict[Kind, int] = {PLAIN_GEOM: 0}
        for g in range(self.m.ngeom):
            kind = self.kind(g)
            if kind[:2] != (0, 0) or kind[3] >= 0:
                self.kinds.setdefault(kind, len(self.kinds))

    def bits_meet(self, a: int, b: int) -> bool:
        """Whether `contype` and `conaffinity` let two geoms touch."""
        m = self.m
        return bool((m.geom_contype[a] & m.geom_conaffinity[b]) | (m.geom_contype[b] & m.geom_conaffinity[a]))

    def neighbours(self, a: int, b: int) -> bool:
        """Whether MuJoCo excludes two bodies because one hangs on the other."""
        m = self.m
        first, second = int(m.body_weldid[a]), int(m.body_weldid[b])
        if not self.filters_parents or 0 in (first, second):
            return False
        above = [int(m.body_weldid[m.body_parentid[b]]) for b in (first, second)]
        return second == above[0] or first == above[1]

    def kind(self, g: int) -> Kind:
        """What decides whether a geom touches others."""
        m, body = self.m, int(self.m.geom_bodyid[g])
        marks = (body if body in self._marked else -1, g if g in self._paired else -1)
        return int(m.geom_contype[g]), int(m.geom_conaffinity[g]), *marks

    def meet(self, a: Kind, b: Kind) -> bool:
        """Whether geoms of two kinds touch, on bodies that do."""
        if frozenset((a[3], b[3])) in self.pairs:
            return True
        if frozenset((a[2], b[2])) in self.by_kind:
            return False
        return bool((a[0] & b[1]) | (b[0] & a[1]))

    def collides(self, g: int) -> bool:
        """Whether a geom may touch anything, of the file or of what a user adds."""
        kind = self.kind(g)
        return self.meet(kind, PLAIN_GEOM) or any(self.meet(kind, other) for other in self.kinds)

    def group(self, g: int) -> tuple[int, int]:
        """(bits, mask): its kind, and those that it touches."""
        kind = self.kind(g)
        return 1 << self.kinds[kind], sum(1 << k for other, k in self.kinds.items() if self.meet(kind, other))

    def any_contact(self) -> bool:
        """Whether two geoms of the file may touch, of which one moves."""
        m = self.m
        bodies: dict[int, set[Kind]] = {}  # by rigid body: kinds of its geoms
        for g in (g for g in range(m.ngeom) if self.kind(g) in self.kinds):
            bodies.setdefault(int(m.body_weldid[m.geom_bodyid[g]]), set()).add(self.kind(g))
        moves = [w for w in bodies if w != 0 and m.body_mocapid[w] < 0]
        for a in moves:
            for b in (b for b in bodies if b != a):
                apart = self.neighbours(a, b) or frozenset((a, b)) in self.whole
                for kind, other in ((x, y) for x in bodies[a] for y in bodies[b]):
                    if frozenset((kind[3], other[3])) in self.pairs or (self.meet(kind, other) and not apart):
                        return True
        return False


def filter_off(model: Any) -> bool:
    """Whether a file lets a body touch the one it hangs on."""
    import mujoco

    return bool(model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)


class Geoms:
    """The geoms of a model as it is imported (`mjcf.Imported`)."""

    def __init__(self, made: Any, meshes: bool, rules: Rules) -> None:
        self.made, self.m, self.d, self.meshes, self.rules = made, made.model, made.data, meshes, rules
        self.hulls: dict[int, tuple[Array, Any]] = {}
        self.fixed: dict[int, str] = {}  # names of fixed bodies, by number of the file's
        self.terrains: dict[int, str] = {}  # by number of the geom
        for words in rules.notes:
            made.note(words)

    def of_body(self, parts: list[int], position: Array, rotation: Array) -> dict[str, Any]:
        """Arguments of `add_body` for the geoms of bodies welded together, in a frame."""
        m, back = self.m, quat_conjugate(rotation)
        drawn: list[Shape] = []
        touching: list[Shape] = []
        geoms: list[int] = []
        color = None
        for g in (g for g in range(m.ngeom) if int(m.geom_bodyid[g]) in parts):
            place = quat_rotate(back, self.d.geom_xpos[g] - position)
            turn = quat_multiply(back, matrix_quat(self.d.geom_xmat[g]))
            at = {"position": tuple(place.tolist()), "rotation": tuple((turn / np.linalg.norm(turn)).tolist())}
            look, touch = self.shapes(g, at)
            if look is not None:
                drawn.append(look)
                color = tuple(np.clip(m.geom_rgba[g, :3], 0, 1).tolist()) if color is None else color
            if touch is not None and self.rules.collides(g):
                touching.append(touch)
                geoms.append(g)
        materials = [self.material(g) for g in geoms]
        if any(material != materials[0] for material in materials):
            name = self.made.name("body", parts[0])
            self.made.note(
                f"geoms of body {name!r} differ in friction; that of {self.made.name('geom', geoms[0])!r} holds for all"
            )
        out: dict[str, Any] = {"shape": Drawing(*drawn) if drawn else None, "color": color}
        out |= {"material": materials[0] if materials else None, "collision": touching}
        out["collide"] = None if touching else False
        groups = [self.group(g) for g in geoms]
        if any(group is not None for group in groups):
            out["group"] = groups[0] if len(set(groups)) == 1 else groups
        return out

    def group(self, g: int) -> tuple[int, int] | None:
        """(bits, mask) of a geom; None if all geoms of the file have MuJoCo's defaults, or are too many kinds."""
        return self.rules.group(g) if 1 < len(self.rules.kinds) <= CLASSES else None

    def material(self, *geoms: int) -> Material:
        """How a geom rubs, or two where they touch: sliding, torsion (m) and rolling (m), as MuJoCo combines them.

        The larger values hold, and the larger `condim`; those of one geom alone if its `priority` is higher.
        """
        m = self.m
        first = max(int(m.geom_priority[g]) for g in geoms)
        chosen = [g for g in geoms if int(m.geom_priority[g]) == first]
        slide, torsion, rolling = (max(0.0, *(float(m.geom_friction[g, k]) for g in chosen)) for k in range(3))
        condim = max(int(m.geom_condim[g]) for g in chosen)
        turning: dict[str, Any] = {"torsion": torsion if condim > 3 else 0.0, "rolling": rolling if condim > 4 else 0.0}
        return Material(slide if condim > 1 else 0.0, **turning)

    def shapes(self, g: int, at: dict[str, Any]) -> tuple[Shape | None, Shape | None]:
        """What a geom looks like, and what touches others."""
        m, kind = self.m, int(self.m.geom_type[g])
        name = self.made.name("geom", g)
        if kind in MAKERS:
            shape = MAKERS[kind]([float(v) for v in m.geom_size[g]])(**at)
            return shape, shape
        if kind == GEOM_MESH and self.meshes:
            return self.mesh(g, at)
        if kind == GEOM_MESH:
            return None, None
        if kind not in (GEOM_PLANE, GEOM_HFIELD) or self.m.body_weldid[m.geom_bodyid[g]] != 0:
            self.made.note(f"geom {name!r} is left out: a shape without a counterpart, or a plane on a body that moves")
        return None, None

    def mesh(self, g: int, at: dict[str, Any]) -> tuple[Shape | None, Shape | None]:
        """Its triangles, and their convex hull."""
        m, k = self.m, int(self.m.geom_dataid[g])
        rows = slice(int(m.mesh_vertadr[k]), int(m.mesh_vertadr[k] + m.mesh_vertnum[k]))
        vertices = m.mesh_vert[rows].astype(float)
        faces = m.mesh_face[int(m.mesh_faceadr[k]) : int(m.mesh_faceadr[k] + m.mesh_facenum[k])].astype(int)
        look = Skin(vertices, faces, **at)
        if not self.rules.collides(g):
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
                if int(m.geom_type[g]) == GEOM_PLANE and self.rules.collides(g):
                    normal = self.d.geom_xmat[g].reshape(3, 3)[:, 2]
                    height = float(normal @ self.d.geom_xpos[g])
                    made.scene.add_ground(height, normal=normal.copy(), material=self.material(g), group=self.group(g))
                if int(m.geom_type[g]) == GEOM_HFIELD:
                    self.add_terrain(g)
            if any(int(m.geom_type[g]) not in (GEOM_PLANE, GEOM_HFIELD) for g in own):
                position, rotation = made.pose(i)
                name = self.fixed[i] = made.new(made.name("body", i) if i else "world geoms", "body")
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
        if not self.rules.collides(g):
            made.note(f"the height field {name!r} touches nothing, and is left out")
            return
        at: dict[str, Any] = {"size": (2 * x, 2 * y), "position": self.d.geom_xpos[g].copy()}
        made.scene.add_terrain(name, heights, material=self.material(g), group=self.group(g), **at)
        self.terrains[g] = name

    def add_rules(self) -> None:
        """Pairs of bodies that do not touch, and pairs of geoms that touch in a way of their own."""
        m, made = self.m, self.made
        for pair in self.rules.whole:
            a, b = (self.fixed.get(i) or made.body(i) for i in sorted(pair))
            if a != b:
                made.scene.ignore(a, b)
        if made.scene.touch.on:
            self.add_materials()
        for p in range(m.npair):
            a, b = (self.owner(int(ids[p])) for ids in (m.pair_geom1, m.pair_geom2))
            if a != b:
                made.scene.set_pair(a, b, Material(float(max(m.pair_friction[p, 0], 0.0))))
                made.note(f"the friction of pair {made.name('pair', p)!r} holds for all geoms of {a!r} and {b!r}")

    def add_materials(self) -> None:
        """Give pairs of bodies the friction that MuJoCo gives their geoms, where this scene would combine it otherwise."""
        m, made, rules = self.m, self.made, self.rules
        owned: dict[str, list[int]] = {}
        for g in (g for g in range(m.ngeom) if rules.kind(g) in rules.kinds):
            owned.setdefault(self.owner(g), []).append(g)
        moves = {name for name, geoms in owned.items() if m.body_weldid[m.geom_bodyid[geoms[0]]] != 0}
        for a, b in combinations(owned, 2):
            if a not in moves and b not in moves:
                continue
            found = [self.material(g, h) for g in owned[a] for h in owned[b] if self.touch(g, h)]
            own, other = (self.material(owned[name][0]) for name in (a, b))
            combined = Material(
                float(np.sqrt(own.along * other.along)),
                torsion=max(own.torsion, other.torsion),
                rolling=max(own.rolling, other.rolling),
            )
            if all(material == combined for material in found):
                continue
            made.scene.set_pair(a, b, found[0])
            if any(material != found[0] for material in found):
                made.note(
                    f"geoms of {a!r} and {b!r} differ in friction; that of the first two, {found[0].along:g}, holds for all"
                )

    def touch(self, g: int, h: int) -> bool:
        """Whether two geoms of different rigid bodies touch by the rules for kinds and neighbours."""
        bodies = frozenset((int(self.m.geom_bodyid[g]), int(self.m.geom_bodyid[h])))
        if self.rules.neighbours(*sorted(bodies)) or bodies in self.rules.whole:
            return False
        return self.rules.meet(self.rules.kind(g), self.rules.kind(h))

    def owner(self, g: int) -> str:
        """The body here to which a geom belongs."""
        body = int(self.m.geom_bodyid[g])
        if int(self.m.geom_type[g]) == GEOM_PLANE:
            return str(self.made.body(body))
        return self.terrains.get(g) or self.fixed.get(body) or str(self.made.body(body))


def matrix_quat(matrix: Any) -> Array:
    """The quaternion (x, y, z, w) of a rotation matrix, row by row."""
    import mujoco

    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(matrix, float).ravel())
    return np.array([out[1], out[2], out[3], out[0]])
