"""A ray tracer for films and camera sensors: one ray per pixel and four at edges, with sun, sky and shadows.

A picture takes four kernels. Two list the solids for each tile of pixels and for each cell of a grid across the sun's direction;
then each pixel traces its ray and one shadow ray against the lists, and pixels at edges are traced again with four rays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from sharnir.collision.data import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE
from sharnir.collision.rays import Span, ball_span, box_span, capsule_span, cone_span, cut, disc_span, everywhere, nowhere, passes
from sharnir.core.graphs import LOCK, Threads
from sharnir.core.spatial import quat_to_matrix
from sharnir.core.types import inline_less, mat33, real, vec3
from sharnir.io.meshes import linear, srgb
from sharnir.model.descriptions import PLAIN_FINISH
from sharnir.model.model import FIXED
from sharnir.view.looks import CHECKERED_GROUND, Gallery, Tubes
from sharnir.view.pieces import round_length
from sharnir.view.shading import HORIZON, checker, lit, sky_colour

inline_less("sharnir.tracer", slp=False)

SUN = np.array([0.42, -0.55, 0.95]) / np.linalg.norm([0.42, -0.55, 0.95])
"""Unit vector towards the sun."""
NEAR_PLANE = wp.constant(real(1.0e-3))  # m: what is nearer to the eye is not drawn
FAR_PLANE = wp.constant(real(1.0e9))  # m
MOST_LAYERS = wp.constant(6)  # transparent surfaces in a row, at most
BACKS = wp.constant(8)  # back faces of a mesh in a row that a ray passes, at most
SUN_RADIUS = wp.constant(real(0.008))  # rad, for the four rays of a pixel at an edge
CONTRAST = wp.constant(wp.float32(0.12))  # difference of two pixels' keys that makes an edge
CURVE = wp.constant(wp.float32(4095.0))  # steps of a table from linear shares to sRGB
CELLS = 48  # of the sun's grid, each way
TILE_PIXELS = 16  # pixels
MOST_LISTED = 16_000_000  # entries in the lists of all tiles
THIN = 0.75  # pixels: half the least width of a tube


@wp.struct
class Scenery:
    """All that is drawn, in world coordinates, and the lists that say what may be met where."""

    count: wp.int32
    kind: wp.array(dtype=wp.int32)
    size: wp.array(dtype=vec3)
    radius: wp.array(dtype=real)
    bound: wp.array(dtype=real)  # m, of a ball about `place` that holds the solid
    place: wp.array(dtype=vec3)
    own: wp.array(dtype=mat33)  # from its own axes to the world's
    mesh: wp.array(dtype=wp.uint64)
    two_sided: wp.array(dtype=wp.int32)  # 1 where a mesh is seen from inside
    colour: wp.array(dtype=wp.vec4f)  # linear red, green, blue, opacity
    finish: wp.array(dtype=wp.vec2f)  # roughness, metalness, 0 to 1
    pattern: wp.array(dtype=wp.int32)
    first_tint: wp.array(dtype=wp.int32)  # into `tints`, by face; −1: none
    first_normal: wp.array(dtype=wp.int32)  # into `normals`, by vertex
    tints: wp.array(dtype=wp.vec4f)
    finishes: wp.array(dtype=wp.vec2f)  # beside each of `tints`
    normals: wp.array(dtype=wp.vec3f)
    square: real  # m, of a checkered ground
    haze: real  # m: distance at which 63 % of the ground is lost in haze
    sun: vec3
    aside: vec3  # unit vectors across the sun's direction
    upward: vec3
    grid_x: real  # m, corner of the grid across the sun's direction
    grid_y: real
    grid_cell: real  # m
    grid_count: wp.array(dtype=wp.int32)  # [cell]
    grid_list: wp.array2d(dtype=wp.int32)  # [cell, entry]
    spread: real  # m by which the sun's width moves a shadow, at most
    tile_count: wp.array(dtype=wp.int32)  # [tile]
    tile_list: wp.array2d(dtype=wp.int32)


@wp.struct
class Lens:
    """A pinhole camera."""

    eye: vec3
    right: vec3
    up: vec3
    ahead: vec3
    focal: real  # pixels
    width: wp.int32
    height: wp.int32
    tile: wp.int32  # pixels
    across: wp.int32  # tiles in a row


@wp.struct
class Film:
    """What is known of each pixel."""

    colour: wp.array(dtype=wp.vec3f)  # linear
    key: wp.array(dtype=wp.float32)  # jumps at edges
    depth: wp.array(dtype=wp.float32)  # m along the camera's axis; ∞ where nothing is
    solid: wp.array(dtype=wp.int32)  # −1: none
    curve: wp.array(dtype=wp.uint8)  # sRGB, 0 to 255, of linear shares in even steps
    rgb: wp.array2d(dtype=wp.uint8)  # [pixel, channel]


@wp.struct
class Found:
    """Where a ray meets a solid: m along the ray, unit normal in world axes, and the face of a mesh."""

    far: real
    n: vec3
    solid: wp.int32
    face: wp.int32


@wp.func
def pixel_ray(c: Lens, x: real, y: real) -> vec3:
    """Unit vector through a point of the picture; x, y: pixels from its upper left corner."""
    u = (x - real(0.5) * real(c.width)) / c.focal
    v = (real(0.5) * real(c.height) - y) / c.focal
    return wp.normalize(c.ahead + c.right * u + c.up * v)


@wp.func
def solid_span(kind: int, size: vec3, r: real, o: vec3, d: vec3) -> Span:
    """The part of a line that is inside a solid with a closed form, in its own axes."""
    if kind == SPHERE:
        return ball_span(vec3(r, r, r), o, d)
    if kind == BOX:
        return box_span(size, o, d)
    if kind == CAPSULE:
        return capsule_span(r, size[1], o, d)
    if kind == CYLINDER:
        return disc_span(size[0], size[1], o, d)
    if kind == CONE:
        return cone_span(size[0], size[1], o, d)
    if kind == ELLIPSOID:
        return ball_span(size, o, d)
    if kind == PLANE:
        return cut(everywhere(), vec3(real(0.0), real(0.0), real(1.0)), o[2], d)
    return nowhere()


@wp.func
def mesh_found(s: wp.array(dtype=Scenery), i: int, o: vec3, d: vec3, least: real, best: Found) -> Found:
    """The nearer of what was found so far and a mesh; o, d: in the mesh's own axes."""
    start = least
    tries = int(0)
    while tries < BACKS:
        tries += 1
        at = o + d * start
        hit = wp.mesh_query_ray(
            s[0].mesh[i],
            wp.vec3(wp.float32(at[0]), wp.float32(at[1]), wp.float32(at[2])),
            wp.vec3(wp.float32(d[0]), wp.float32(d[1]), wp.float32(d[2])),
            wp.float32(best.far - start),
        )
        if not hit.result:
            return best
        far = start + real(hit.t)
        if hit.sign > wp.float32(0.0) or s[0].two_sided[i] != 0:
            if far < best.far:
                best.far = far
                best.solid = i
                best.face = hit.face
                w = wp.float32(1.0) - hit.u - hit.v
                k = s[0].first_normal[i]
                n = (
                    s[0].normals[k + wp.mesh_get_index(s[0].mesh[i], hit.face * 3)] * hit.u
                    + s[0].normals[k + wp.mesh_get_index(s[0].mesh[i], hit.face * 3 + 1)] * hit.v
                    + s[0].normals[k + wp.mesh_get_index(s[0].mesh[i], hit.face * 3 + 2)] * w
                )
                if hit.sign < wp.float32(0.0):
                    n = -n
                best.n = s[0].own[i] * wp.normalize(vec3(real(n[0]), real(n[1]), real(n[2])))
            return best
        start = far + real(1.0e-4) * (real(1.0) + far)
    return best


@wp.func
def nearer(s: wp.array(dtype=Scenery), i: int, eye: vec3, d: vec3, least: real, best: Found) -> Found:
    """The nearer of what was found so far and solid i, if it is entered beyond `least` m of the ray."""
    kind = s[0].kind[i]
    o = eye - s[0].place[i]
    if kind != PLANE and passes(o, d, best.far, s[0].bound[i]):
        return best
    own = s[0].own[i]
    into = wp.transpose(own)
    x = into * o
    v = into * d
    if kind == MESH:
        return mesh_found(s, i, x, v, least, best)
    base = real(0.0)  # closed forms lose least near the solid
    if kind != PLANE:
        base = -wp.dot(x, v)
    span = solid_span(kind, s[0].size[i], s[0].radius[i], x + v * base, v)
    a = span.a + base
    if span.a <= span.b and a > least and a < best.far:
        best.far = a
        best.n = own * span.n
        best.solid = i
        best.face = -1
    return best


@wp.func
def albedo(s: wp.array(dtype=Scenery), f: Found, eye: vec3, d: vec3, angle: real) -> wp.vec4f:
    """Linear colour and opacity where a ray meets a solid; angle: rad, of a pixel."""
    c = s[0].colour[f.solid]
    if f.face >= 0 and s[0].first_tint[f.solid] >= 0:
        c = s[0].tints[s[0].first_tint[f.solid] + f.face]
    if s[0].pattern[f.solid] == CHECKERED_GROUND:
        p = wp.transpose(s[0].own[f.solid]) * (eye + d * f.far - s[0].place[f.solid])
        slant = wp.max(wp.abs(wp.dot(f.n, d)), real(0.02))
        wide = f.far * angle / (slant * s[0].square)
        b = checker(wp.float32(p[0] / s[0].square), wp.float32(p[1] / s[0].square), wp.float32(wide))
        c = wp.vec4f(c[0] * b, c[1] * b, c[2] * b, c[3])
    return c


@wp.func
def sunlight(s: wp.array(dtype=Scenery), p: vec3, sun: vec3) -> wp.float32:
    """Share of the sun that reaches a point: what stands in the way takes its opacity off."""
    cell = s[0].grid_cell
    x = wp.int32(wp.floor((wp.dot(p, s[0].aside) - s[0].grid_x) / cell))
    y = wp.int32(wp.floor((wp.dot(p, s[0].upward) - s[0].grid_y) / cell))
    share = wp.float32(1.0)
    if x < 0 or y < 0 or x >= wp.static(CELLS) or y >= wp.static(CELLS):
        return share
    at = y * wp.static(CELLS) + x
    for k in range(s[0].grid_count[at]):
        i = s[0].grid_list[at, k]
        f = Found()
        f.far = FAR_PLANE
        f.solid = -1
        f = nearer(s, i, p, sun, real(0.0), f)
        if f.solid >= 0:
            opaque = s[0].colour[i][3]
            if f.face >= 0 and s[0].first_tint[i] >= 0:
                opaque = s[0].tints[s[0].first_tint[i] + f.face][3]
            share = share * (wp.float32(1.0) - opaque)
            if share < wp.float32(0.01):
                return wp.float32(0.0)
    return share


@wp.func
def trace(s: wp.array(dtype=Scenery), c: Lens, tile: int, d: vec3, sun: vec3, first: Found) -> wp.vec4f:
    """Linear colour along a ray, and a number that jumps at edges of solids and shadows; first: what the ray meets first."""
    out = wp.vec3f()
    through = wp.float32(1.0)
    key = wp.float32(0.0)
    angle = real(1.0) / c.focal
    f = first
    sun32 = wp.vec3f(wp.float32(sun[0]), wp.float32(sun[1]), wp.float32(sun[2]))
    d32 = wp.vec3f(wp.float32(d[0]), wp.float32(d[1]), wp.float32(d[2]))
    layer = int(0)
    while layer < MOST_LAYERS:
        layer += 1
        if f.solid < 0:
            out = out + sky_colour(d32[2]) * through
            return wp.vec4f(out[0], out[1], out[2], key)
        a = albedo(s, f, c.eye, d, angle)
        n = f.n
        open = wp.float32(0.0)
        if wp.dot(n, sun) > real(0.0):
            p = c.eye + d * f.far + n * (real(1.0e-5) + real(3.0e-5) * f.far)
            open = sunlight(s, p, sun)
        n32 = wp.vec3f(wp.float32(n[0]), wp.float32(n[1]), wp.float32(n[2]))
        finish = s[0].finish[f.solid]
        if s[0].first_tint[f.solid] >= 0:
            finish = s[0].finishes[s[0].first_tint[f.solid] + f.face]
        light = lit(wp.vec3f(a[0], a[1], a[2]), n32, d32, sun32, open, finish)
        bright = light[0] + light[1] + light[2]
        if s[0].pattern[f.solid] == CHECKERED_GROUND:
            bright = wp.float32(2.0) * (open + n32[2])
        key += through * bright
        if s[0].pattern[f.solid] == CHECKERED_GROUND:  # far ground fades into the horizon
            keep = wp.float32(wp.exp(-f.far / s[0].haze))
            light = HORIZON + (light - HORIZON) * keep
        out = out + light * (through * a[3])
        through = through * (wp.float32(1.0) - a[3])
        if through < wp.float32(0.02):
            return wp.vec4f(out[0], out[1], out[2], key)
        f = trace_ray(s, c, tile, d, f.far + real(1.0e-4) * (real(1.0) + f.far))
    out = out + sky_colour(d32[2]) * through
    return wp.vec4f(out[0], out[1], out[2], key)


@wp.func
def trace_ray(s: wp.array(dtype=Scenery), c: Lens, tile: int, d: vec3, least: real) -> Found:
    """What a ray from the eye meets first beyond `least` m."""
    f = Found()
    f.far = FAR_PLANE
    f.solid = -1
    f.face = -1
    for k in range(s[0].tile_count[tile]):
        f = nearer(s, s[0].tile_list[tile, k], c.eye, d, least, f)
    return f


@wp.kernel(module="sharnir.tracer", enable_backward=False)
def list_tiles(s: wp.array(dtype=Scenery), c: Lens) -> None:
    """Lists for each tile of pixels the solids that its rays may meet."""
    tile = wp.tid()
    x = real(tile % c.across * c.tile)
    y = real(tile // c.across * c.tile)
    w = real(c.tile)
    axis = pixel_ray(c, x + real(0.5) * w, y + real(0.5) * w)
    cosine = wp.min(wp.dot(axis, pixel_ray(c, x, y)), wp.dot(axis, pixel_ray(c, x + w, y)))
    cosine = wp.min(cosine, wp.min(wp.dot(axis, pixel_ray(c, x, y + w)), wp.dot(axis, pixel_ray(c, x + w, y + w))))
    sine = wp.sqrt(wp.max(real(1.0) - cosine * cosine, real(0.0)))
    count = int(0)
    for i in range(s[0].count):
        v = s[0].place[i] - c.eye
        far = wp.length(v)
        bound = s[0].bound[i]
        seen = 1
        if s[0].kind[i] != PLANE and far > bound and cosine > real(0.0):
            b = bound / far
            a = wp.sqrt(real(1.0) - b * b)
            if wp.dot(v, axis) < (a * cosine - b * sine) * far - real(1.0e-9) * far:
                seen = 0
        if seen == 1:
            s[0].tile_list[tile, count] = i
            count += 1
    s[0].tile_count[tile] = count


@wp.kernel(module="sharnir.tracer", enable_backward=False)
def list_cells(s: wp.array(dtype=Scenery)) -> None:
    """Lists for each cell across the sun's direction the solids that may shade points in it."""
    cell = wp.tid()
    half = real(0.5) * s[0].grid_cell
    x = s[0].grid_x + s[0].grid_cell * (real(cell % wp.static(CELLS)) + real(0.5))
    y = s[0].grid_y + s[0].grid_cell * (real(cell // wp.static(CELLS)) + real(0.5))
    count = int(0)
    for i in range(s[0].count):
        reach = half + s[0].bound[i] + s[0].spread
        near_x = wp.abs(wp.dot(s[0].place[i], s[0].aside) - x) <= reach
        near_y = wp.abs(wp.dot(s[0].place[i], s[0].upward) - y) <= reach
        if s[0].kind[i] != PLANE and near_x and near_y:
            s[0].grid_list[cell, count] = i
            count += 1
    s[0].grid_count[cell] = count


@wp.func
def tile_of(c: Lens, x: int, y: int) -> int:
    """The tile that a pixel is in."""
    return y // c.tile * c.across + x // c.tile


@wp.kernel(module="sharnir.tracer", enable_backward=False)
def trace_pixels(s: wp.array(dtype=Scenery), c: Lens, film: Film, first: int) -> None:
    """One ray through the middle of each pixel, from pixel `first` on."""
    q = first + wp.tid()
    x = q % c.width
    y = q // c.width
    d = pixel_ray(c, real(x) + real(0.5), real(y) + real(0.5))
    tile = tile_of(c, x, y)
    f = trace_ray(s, c, tile, d, NEAR_PLANE)
    film.solid[q] = f.solid
    film.depth[q] = wp.float32(wp.inf)
    if f.solid >= 0:
        film.depth[q] = wp.float32(f.far * wp.dot(d, c.ahead))
    seen = trace(s, c, tile, d, s[0].sun, f)
    film.colour[q] = wp.vec3f(seen[0], seen[1], seen[2])
    film.key[q] = seen[3]


@wp.func
def differs(film: Film, q: int, other: int) -> bool:
    """Whether there is an edge between two pixels."""
    if film.solid[q] != film.solid[other]:
        return True
    return wp.abs(film.key[q] - film.key[other]) > CONTRAST


@wp.kernel(module="sharnir.tracer", enable_backward=False)
def finish_pixels(s: wp.array(dtype=Scenery), c: Lens, film: Film, first: int, fine: int) -> None:
    """Pixels at edges are the mean of four rays (fine = 1), towards four points of the sun; all are converted to sRGB."""
    q = first + wp.tid()
    x = q % c.width
    y = q // c.width
    out = film.colour[q]
    edge = False
    if fine == 1:
        if x > 0:
            edge = edge or differs(film, q, q - 1)
        if x + 1 < c.width:
            edge = edge or differs(film, q, q + 1)
        if y > 0:
            edge = edge or differs(film, q, q - c.width)
        if y + 1 < c.height:
            edge = edge or differs(film, q, q + c.width)
    if edge:
        out = wp.vec3f()
        tile = tile_of(c, x, y)
        for k in range(4):
            a = real(k % 2) * real(0.5) - real(0.25)
            b = real(k // 2) * real(0.5) - real(0.25)
            d = pixel_ray(c, real(x) + real(0.5) + a, real(y) + real(0.5) + b)
            sun = wp.normalize(s[0].sun + (s[0].aside * a + s[0].upward * b) * (real(4.0) * SUN_RADIUS))
            colour = trace(s, c, tile, d, sun, trace_ray(s, c, tile, d, NEAR_PLANE))
            for j in range(3):
                out[j] = out[j] + wp.float32(0.25) * wp.min(colour[j], wp.float32(1.0))
    for j in range(3):
        film.rgb[q, j] = film.curve[wp.int32(wp.clamp(out[j], wp.float32(0.0), wp.float32(1.0)) * CURVE + wp.float32(0.5))]


class Tracer:
    """Renders the first world of a simulation.

    Args:
        sim: the simulation. size: width and height of a picture, pixels.
    """

    _threads: Threads | None = None

    def __init__(self, sim: Any, size: tuple[int, int]) -> None:
        self.gallery, self.size = Gallery(sim), size
        self._device = wp.get_device(sim.model.device)
        self._solids = len(self.gallery.solids)
        self._room = -1
        self._fill_tables()
        low, high = self.box()
        self.reach = max(float(np.linalg.norm(high - low)), 1e-3)
        """m, length of the diagonal of all that was there at the start."""
        self._middle = 0.5 * (low + high)
        low, high = self.box(moving=True)
        moves = float(np.linalg.norm(high - low))
        self._square = round_length(min(max(0.25 * moves, 0.01 * self.reach), self.reach) if moves > 0 else self.reach / 8)
        count = size[0] * size[1]
        with LOCK, wp.ScopedDevice(self._device):
            self._film = Film()
            self._film.colour = wp.zeros(count, dtype=wp.vec3f)
            self._film.key = wp.zeros(count, dtype=wp.float32)
            self._film.depth = wp.zeros(count, dtype=wp.float32)
            self._film.solid = wp.zeros(count, dtype=wp.int32)
            self._film.curve = wp.array(srgb(np.linspace(0.0, 1.0, 4096)), dtype=wp.uint8)
            self._film.rgb = wp.zeros((count, 3), dtype=wp.uint8)

    def box(self, moving: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Corners of a box around all solids and tubes as they are now, without endless planes; moving: of bodies that move."""
        place, turn = self.gallery.poses()
        points = [np.zeros((0, 3))]
        motion = self.gallery.sim.model.bodies.motion.numpy()
        for solid in self.gallery.solids:
            if solid.kind != PLANE and not (moving and motion[solid.body] == FIXED):
                own = quat_to_matrix(turn[solid.body])
                middle = place[solid.body] + own @ solid.position
                size, r = solid.size, solid.radius
                half = {SPHERE: (r, r, r), CAPSULE: (r, r, r + size[1]), CYLINDER: (size[0], size[0], size[1])}.get(
                    solid.kind, size
                )
                half = (size[0], size[0], size[1]) if solid.kind == CONE else half
                spread = np.abs(own @ quat_to_matrix(solid.rotation)) @ np.asarray(half)
                points.append(np.array([middle - spread, middle + spread]))
        tubes = self.gallery.tubes()
        every = np.concatenate([*points, tubes.a, tubes.b])
        return (every.min(0), every.max(0)) if len(every) else (np.zeros(3), np.zeros(3))

    def _fill_tables(self) -> None:
        """What does not change between pictures: meshes, and the columns of solids."""
        solids = self.gallery.solids
        tints, finishes, normals = [np.zeros((0, 4))], [np.zeros((0, 2))], [np.zeros((0, 3))]
        self._meshes: list[Any] = []
        ids, first_tint, first_normal = [], [], []
        with LOCK, wp.ScopedDevice(self._device):
            for solid in solids:
                made = solid.surface
                first_tint.append(-1 if made is None or made.tints is None else sum(map(len, tints)))
                first_normal.append(sum(map(len, normals)))
                ids.append(0)
                if made is not None:
                    corners = wp.array(made.vertices, dtype=wp.vec3)
                    mesh = wp.Mesh(corners, wp.array(made.faces.ravel(), dtype=wp.int32))
                    self._meshes.append(mesh)
                    ids[-1] = mesh.id
                    normals.append(made.normals)
                    if made.tints is not None:
                        tints.append(linear(made.tints))
                        finishes.append(np.tile(solid.finish, (len(made.tints), 1)) if made.finishes is None else made.finishes)
            self._tints = wp.array(np.concatenate(tints), dtype=wp.vec4f)
            self._finishes = wp.array(np.concatenate(finishes), dtype=wp.vec2f)
            self._normals = wp.array(np.concatenate(normals), dtype=wp.vec3f)
        self._body = np.array([s.body for s in solids], int)
        self._position = np.array([s.position for s in solids]).reshape(-1, 3)
        self._own = quat_to_matrix(np.array([s.rotation for s in solids]).reshape(-1, 4))
        self._columns: dict[str, tuple[Any, np.ndarray, Any]] = {  # type, values of solids, value of tubes
            "kind": (wp.int32, np.array([s.kind for s in solids], np.int32), CAPSULE),
            "size": (vec3, np.array([s.size for s in solids], float).reshape(-1, 3), 0.0),
            "radius": (real, np.array([s.radius for s in solids], float), 0.0),
            "bound": (real, np.array([1.0001 * s.bound for s in solids], float), 0.0),
            "mesh": (wp.uint64, np.array(ids, np.uint64), 0),
            "two_sided": (wp.int32, np.array([s.surface is not None and s.surface.two_sided for s in solids], np.int32), 0),
            "colour": (wp.vec4f, linear(np.array([s.colour for s in solids], float).reshape(-1, 4)), 1.0),
            "finish": (wp.vec2f, np.array([s.finish for s in solids], float).reshape(-1, 2), PLAIN_FINISH),
            "pattern": (wp.int32, np.array([s.pattern for s in solids], np.int32), 0),
            "first_tint": (wp.int32, np.array(first_tint, np.int32), -1),
            "first_normal": (wp.int32, np.array(first_normal, np.int32), 0),
            "place": (vec3, np.zeros((len(solids), 3)), 0.0),
            "own": (mat33, np.zeros((len(solids), 3, 3)), 0.0),
        }

    def _make_room(self, count: int) -> None:
        """Arrays for so many solids and tubes."""
        if count == self._room:
            return
        self._room, s, room = count, Scenery(), max(count, 1)
        width, height = self.size
        self._tile = TILE_PIXELS
        while (tiles := -(-width // self._tile) * -(-height // self._tile)) > 1 and tiles * room > MOST_LISTED:
            self._tile *= 2
        with wp.ScopedDevice(self._device):
            for name, (kind, values, fill) in self._columns.items():
                more = np.full((room - len(values), *values.shape[1:]), fill, values.dtype)
                setattr(s, name, wp.array(np.concatenate([values, more]), dtype=kind))
            s.count, s.tints, s.finishes, s.normals = count, self._tints, self._finishes, self._normals
            s.grid_count, s.grid_list = wp.zeros(CELLS**2, dtype=wp.int32), wp.zeros((CELLS**2, room), dtype=wp.int32)
            s.tile_count, s.tile_list = wp.zeros(tiles, dtype=wp.int32), wp.zeros((tiles, room), dtype=wp.int32)
        aside = np.cross([0.0, 1.0, 0.0], SUN)
        aside /= np.linalg.norm(aside)
        s.sun, s.aside, s.upward = vec3(*SUN), vec3(*aside), vec3(*np.cross(SUN, aside))
        self._across = np.array([aside, np.cross(SUN, aside)])
        self._scenery, self._tiles = s, tiles

    def _place(self, camera: Any) -> None:
        """Put solids and tubes where they are now."""
        tubes, n = self.gallery.tubes(), self._solids
        self._make_room(n + len(tubes.a))
        place, turn = self.gallery.poses()
        body = quat_to_matrix(turn)[self._body]
        values = {
            "place": np.concatenate(
                [place[self._body] + np.einsum("nij,nj->ni", body, self._position), 0.5 * (tubes.a + tubes.b)]
            ),
            "own": np.concatenate([body @ self._own, frames_along(tubes.b - tubes.a)]),
        }
        bound = self._columns["bound"][1]
        if len(tubes.a):
            values |= self._tube_columns(tubes, values["place"][n:], camera)
            bound = values["bound"]
        s = self._scenery
        if len(values["place"]):
            for name, column in values.items():
                getattr(s, name).assign(np.ascontiguousarray(column))
        solid = np.ones(len(bound), bool)
        solid[:n] = self._columns["kind"][1] != PLANE
        solid &= np.isfinite(values["place"]).all(1)
        across, room = values["place"][solid] @ self._across.T, bound[solid][:, None]
        low, high = ((across - room).min(0), (across + room).max(0)) if solid.any() else (np.zeros(2), np.ones(2))
        s.spread = 2.5 * float(SUN_RADIUS) * float(np.max(high - low))
        s.grid_x, s.grid_y = (float(v) for v in low - s.spread)
        s.grid_cell = float(np.max(high - low) + 2 * s.spread) / CELLS
        s.square = self._square
        s.haze = 20.0 * max(self.reach, float(np.linalg.norm(np.asarray(camera.eye) - self._middle)))

    def _tube_columns(self, tubes: Tubes, middle: np.ndarray, camera: Any) -> dict[str, np.ndarray]:
        """Columns that change where there are tubes; one that would be thinner than a pixel and a half is drawn as wide."""
        half = 0.5 * np.linalg.norm(tubes.b - tubes.a, axis=1)
        radius = np.maximum(tubes.radius, THIN * np.linalg.norm(middle - camera.eye, axis=1) / camera.focal)
        colour = linear(np.concatenate([tubes.colour, np.ones((len(half), 1))], 1))
        size = np.stack([0.0 * half, half, 0.0 * half], 1)
        more = {"size": size, "radius": radius, "bound": 1.0001 * (half + radius), "colour": colour}
        return {name: np.concatenate([self._columns[name][1], column]) for name, column in more.items()}

    def render(self, camera: Any, fine: bool = True) -> np.ndarray:
        """(height, width, 3) of 0 to 255, what a camera sees now; fine: edges are smoothed."""
        width, height = self.size
        lens = Lens()
        lens.eye = vec3(*camera.eye)
        lens.right, lens.up, lens.ahead = (vec3(*row) for row in camera.axes)
        lens.focal, lens.width, lens.height = float(camera.focal), width, height
        with LOCK:
            self._place(camera)
            s, film = wp.array([self._scenery], dtype=Scenery, device=self._device), self._film
            lens.tile, lens.across = self._tile, -(-width // self._tile)
            wp.launch(list_tiles, self._tiles, [s, lens], device=self._device)
            wp.launch(list_cells, CELLS**2, [s], device=self._device)
            self._share(trace_pixels, [s, lens, film])
            self._share(finish_pixels, [s, lens, film], int(fine))
            rgb = film.rgb.numpy()
        return np.array(rgb).reshape(height, width, 3)

    def _share(self, kernel: Any, given: list[Any], *more: Any) -> None:
        """Launch a kernel over all pixels; on the CPU the rows are shared between threads."""
        count = self.size[0] * self.size[1]
        cores = min(os.cpu_count() or 1, 8) if wp.get_device(self._device).is_cpu else 1
        chunk = -(-count // (4 * cores)) if cores > 1 else count
        commands: list[Callable[[], Any]] = []
        for first in range(0, count, chunk):
            dim = min(chunk, count - first)
            command = wp.launch(kernel, dim, [*given, first, *more], device=self._device, record_cmd=True)
            commands.append(command.launch)
        if cores == 1:
            commands[0]()
            return
        if Tracer._threads is None:
            Tracer._threads = Threads(cores - 1)
        waiting = iter(commands)

        def work() -> None:
            for command in waiting:
                command()

        others = [Tracer._threads.submit(work) for _ in range(cores - 1)]
        work()
        for other in others:
            other.result()

    @property
    def depth(self) -> np.ndarray:
        """(height, width) m along the camera's axis in the last picture; ∞ where nothing was."""
        return np.array(self._film.depth.numpy()).reshape(self.size[::-1])

    @property
    def bodies(self) -> np.ndarray:
        """(height, width) index of the body in the last picture; −1: none, −2: a rope, cable, spring or rod."""
        solid = self._film.solid.numpy().reshape(self.size[::-1])
        table = np.concatenate([self._body, np.full(max(self._room - self._solids, 0), -2), [-1]])
        return np.asarray(table[solid])


def frames_along(way: np.ndarray) -> np.ndarray:
    """(n, 3, 3) axes whose z is along the given vectors (n, 3)."""
    length = np.linalg.norm(way, axis=1, keepdims=True)
    z = np.where(length > 1e-12, way / np.maximum(length, 1e-12), [0.0, 0.0, 1.0])
    other = np.where(np.abs(z[:, 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    x = np.cross(other, z)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], 2)
