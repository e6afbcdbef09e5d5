"""Contacts in the steps of a simulation: which rows there are in a step, and what points carried (`contact_rows`)."""

from __future__ import annotations

import re
from typing import Any

import warp as wp

from sharnir.collision.data import CAPSULE, PLANE, SPHERE
from sharnir.collision.data import CONE as CONE_KIND
from sharnir.collision.data import CYLINDER as CYLINDER_KIND
from sharnir.collision.data import ELLIPSOID as ELLIPSOID_KIND
from sharnir.contact.cones import EITHER, JOINTED, NEWTON, SWEEPS, cone_memory
from sharnir.core.types import real, vec3
from sharnir.engine.tree.closures import CONTACT, FRICTION, LIMIT, OF_CASTS, PARAMETERS, ROLLING, SPEEDS, SPINNING, TOUCH
from sharnir.engine.tree.contact_rows import LawRows
from sharnir.engine.tree.forest import HINGE, PRESCRIBED, SLIDER
from sharnir.engine.tree.row_runtime import AT_BLOW, AT_SLIP, carried, kept
from sharnir.engine.tree.row_storage import COUNTS, LAW_TABLES, PER_ROW, RESPONSES, TABLE, TABLES, table_of_world
from sharnir.engine.tree.row_storage import WORK as CLOSURE_WORK
from sharnir.engine.tree.runtime import DONE, HINGE_AT, NATIVE, SLIDER_AT, STUCK, Q, TreeStep, row_table
from sharnir.engine.tree.storage import offsets
from sharnir.laws.casts import CAST

USUAL_PATH = 16  # links on the path of a closure: where paths are longer, there is room for fewer, until more is asked for
MOST_ENTRIES = 200_000  # of the matrices of Newton's iteration: islands that find no room are swept
DEAR = 2_000_000  # multiplications of a factorization: with more, an island is swept
PER_SWEEP = 8  # these for each of a sweep: with less, an island of free bodies is solved by Newton's iteration at once
SLIDES = 1.0e-3  # m/s: a point that moves faster slides, and has the dynamic coefficient
NEAR_LIMIT = 4.0  # times what an axis moves in a step, and may be accelerated in it: a limit that is nearer may act
TIP = 1e-6  # of the radius of a cone: a point that is nearer to the axis is its tip
LOWEST = 0.999  # cosine of the angle up to which a point of a rim is the one that rolls
TURNED = 1.0  # rad, by which the point of a rim may move in a step: beyond that it is taken to stay
GIVEN = offsets(PARAMETERS)
ROUND = " || ".join(f"kind == {int(k)}" for k in (SPHERE, CAPSULE, CYLINDER_KIND, CONE_KIND, ELLIPSOID_KIND))
GIVEN_SIZE = wp.constant(sum(PARAMETERS.values()))
AT_END_GAP, AT_BEND = (wp.constant(offsets(CLOSURE_WORK)[name]) for name in ("end_gap", "bend"))
AT_POINT_A, AT_POINT_B, AT_NORMAL = (wp.constant(GIVEN[name]) for name in ("point_a", "point_b", "axis_a"))
IS_HINGE, IS_SLIDER, IS_FRICTION, IS_LIMIT = (wp.constant(k) for k in (HINGE, SLIDER, FRICTION, LIMIT))
IS_PRESCRIBED = wp.constant(PRESCRIBED)
AT_KIND, AT_A = (wp.constant(len(COUNTS) + TABLES.index(name)) for name in ("kind", "a"))
CYLINDER, CONE, ELLIPSOID = (int(k) for k in (CYLINDER_KIND, CONE_KIND, ELLIPSOID_KIND))
SPHERE_KIND, PLANE_KIND = int(SPHERE), int(PLANE)


def room_of(
    points: int, axes: int, path: int, turning: int, numbers: int, speeds: int, ropes: tuple[int, int] = (0, 0)
) -> dict[str, int]:
    """How much room the rows of so many points and axes with laws need: closures, rows and links on their paths.

    Args:
        path: links on the path of a closure, at most.
        turning: rows of a point that resist turning.
        numbers: of a row on all joints of its path, at most.
        speeds: of all joints.
        ropes: closures of ropes that touch, and the speeds of all points of ropes.
    """
    closures, rows = points * (1 + turning) + 2 * axes, points * (3 + turning) + 2 * axes
    paths = closures * min(path, USUAL_PATH) + path
    responses = min(18 * paths, rows * numbers)  # of a link at most 3 rows with 6 speeds each
    where = min(6 * paths, closures * numbers)
    more, along = ropes
    numbers += 12  # of points of ropes
    return {
        "closures": closures + more, "rows": rows + 3 * more, "paths": paths + more * (4 + min(path, USUAL_PATH)),
        "responses": responses + 3 * more * numbers, "speeds": speeds + along, "where": where + more * numbers, "along": along,
    }  # fmt: skip


LINK_TABLES = ("width", "place", "root", "next", "near_start", "queue", "island", "first_element", "first_speed", "way")


def table_room(room: dict[str, int], tables: Any, links: int) -> dict[str, int]:
    """More entries of the tables of rows than those of `tables`, by name."""
    closures, rows, paths = room["closures"], room["rows"], room["paths"]
    sizes = tables.sizes()
    all_closures, speeds = closures + len(tables.closures) + 1, room["speeds"]
    out = dict.fromkeys(("kind", "a", "b", "row_start", "path_start"), closures)
    out |= dict.fromkeys(("path", "offset", "speeds"), paths) | {"y_start": rows}
    out |= dict.fromkeys(("element", "of"), sizes["rows"] + all_closures) | {
        "where_start": all_closures,
        "near": 6 * all_closures,
    }
    out |= {"where": room["where"] + 6 * len(tables.tables["path"])}
    out |= dict.fromkeys(("sky_first", "sky_start", "own_first", "own_start"), speeds + 1)
    return out | dict.fromkeys(LINK_TABLES, links + 2)


def entries_of(speeds: int) -> int:
    """Entries of the skyline of so many joint speeds for which there is room."""
    return min(speeds * (speeds + 1) // 2, MOST_ENTRIES)


def law_memory(room: dict[str, int], tables: Any) -> int:
    """Numbers of working memory for the rows of laws, beside those of `tables`."""
    rows, speeds, sizes = room["rows"], room["speeds"], tables.sizes()
    work = sum(CLOSURE_WORK.values()) * room["closures"] + len(PER_ROW) * rows
    seen = len(LawRows.of_speeds)
    work += seen * room["responses"] + (len(LawRows.kept) - len(RESPONSES) + seen) * sizes["responses"]
    along = room["along"]
    own = own_entries(tables) + 7 * along
    return work + cone_memory(rows + sizes["rows"], speeds, own, entries_of(speeds)) + 2 * own * (along > 0)


def own_entries(tables: Any) -> int:
    """Entries of M within trees, at most: any joint may float."""
    of_tree: dict[int, int] = {}
    root: list[int] = []
    for i, link in enumerate(tables.forest.links):
        root.append(root[link.base] if link.base >= 0 else i)
        of_tree[root[i]] = of_tree.get(root[i], 0) + SPEEDS[link.kind]
    return sum(n * (n + 13) // 2 for n in of_tree.values()) + 21 * len(root)


def table_at(name: str) -> str:
    """C++: the table of a world."""
    return f"(all + all[{len(COUNTS) + TABLES.index(name)}])"


NAMES = ("kind", "a", "b", "row_start", "path_start", "path", "offset", "y_start", "speeds", *LAW_TABLES)
# which joint speeds rows change, in an order in which the matrix of these (`contact.cones`) has short rows: trees in the order of
# a walk along what joins them (Cuthill, McKee 1969), from their leaves to their roots
ORDER = """const int all_links = links + x.rope_most;  // ropes that touch stand behind the links, as free ones
const auto point_at = [&](int n, int k) { const int m = (int)x.row_numbers.data[(GIVEN_ALL*n + LEVER)*x.row_stride + w*x.row_world];
return x.rope_ends.data[(ROPE_ENDS*m + 10 + k)*worlds + w]; };
const auto base_at = [&](int i) { return i < links ? bases[i] : -1; };
int islands = 0, speeds = 0, at_where = 0, at_sky = 0; t_first_speed[0] = 0;
for (int i = 0; i < all_links; ++i) { t_width[i] = 0; t_place[i] = -1; t_island[i] = -1; t_way[i] = 0; t_near_start[i] = 0;
t_root[i] = base_at(i) < 0 ? i : t_root[base_at(i)]; }
t_near_start[all_links] = 0;
const auto each_pair = [&](int n, const auto& join) { int one = -1, before = -1;
for (int k = t_path_start[n]; k < t_path_start[n + 1]; ++k) { const int root = t_root[t_path[k]];
if (one < 0) one = root; else if (root != one && root != before) { before = root; join(one, root); } } };
for (int n = 0; n < c; ++n) { for (int k = t_path_start[n]; k < t_path_start[n + 1]; ++k)
t_width[t_path[k]] = t_path[k] < links ? wp::max(t_width[t_path[k]], t_speeds[k]) : x.rope_width.data[(t_path[k] - links)*worlds + w];
each_pair(n, [&](int one, int two) { ++t_near_start[one]; ++t_near_start[two]; }); }
{ int sum = 0; for (int i = 0; i <= all_links; ++i) { sum += t_near_start[i]; t_near_start[i] = sum; } }
for (int n = 0; n < c; ++n)
each_pair(n, [&](int one, int two) { t_near[--t_near_start[one]] = two; t_near[--t_near_start[two]] = one; });
// the links of a tree, the last one first, in `next`, from the root's place in `queue` on
for (int i = 0; i < all_links; ++i) { t_queue[i] = -1; t_next[i] = -1; }
for (int i = 0; i < all_links; ++i) { t_next[i] = t_queue[t_root[i]]; t_queue[t_root[i]] = i; }
// a walk: trees that are found wait in `sky_first`, where there is room
for (int begin = 0; begin < all_links; ++begin) if (t_root[begin] == begin && t_queue[begin] >= 0) {
int head = 0, tail = 0; const Table wait = t_sky_first; wait[tail++] = begin;
int from = begin;  // the walk begins at what a first one ends with
for (int turn = 0; turn < 2; ++turn) {
if (turn == 1) { for (int k = 0; k < tail; ++k) t_sky_start[wait[k]] = 0; wait[0] = from; tail = 1; }
else for (int i = 0; i < all_links; ++i) t_sky_start[i] = 0;
t_sky_start[wait[0]] = 1;
for (head = 0; head < tail; ++head) { const int tree = wait[head]; from = tree;
for (int k = t_near_start[tree]; k < t_near_start[tree + 1]; ++k) { const int other = t_near[k];
if (!t_sky_start[other]) { t_sky_start[other] = 1; wait[tail++] = other; } } } }
bool jointed = false;
for (head = 0; head < tail; ++head) { const int tree = wait[head]; int size = 0; t_island[tree] = islands;
for (int i = t_queue[tree]; i >= 0; i = t_next[i]) if (t_width[i] > 0) { t_place[i] = speeds; speeds += t_width[i]; ++size; }
t_queue[tree] = -1; jointed = jointed || size > 1 || tree >= links; }
if (speeds > t_first_speed[islands]) { t_way[islands] = jointed; t_first_speed[++islands] = speeds; } }
// the first speed of what hangs on a link, in `next`
for (int i = 0; i < all_links; ++i) t_next[i] = t_place[i] >= 0 ? t_place[i] : speeds;
for (int i = all_links - 1; i >= 0; --i) { int first = t_next[i];
for (int d = 0; d < t_width[i]; ++d) t_own_first[t_place[i] + d] = i >= links ? t_place[i] + 3*wp::max(0, d/3 - 1)
: first < t_place[i] ? first : t_place[i] + d;
if (base_at(i) >= 0) t_next[base_at(i)] = wp::min(t_next[base_at(i)], first); }
for (int d = 0, at_own = 0; d <= speeds; ++d) { t_own_start[d] = at_own - (d < speeds ? t_own_first[d] : 0);
if (d < speeds) at_own += d - t_own_first[d] + 1; }
for (int d = 0; d < speeds; ++d) t_sky_first[d] = t_own_first[d];
for (int n = 0; n < c; ++n) { t_where_start[n] = at_where; int first = speeds;
for (int k = t_path_start[n]; k < t_path_start[n + 1]; ++k) { int place = t_place[t_path[k]];
if (t_path[k] >= links) place += 3*point_at(n, k - t_path_start[n]);
if (t_speeds[k] > 0) first = wp::min(first, place);
for (int d = 0; d < t_speeds[k]; ++d) t_where[at_where++] = place + d; }
for (int k = t_where_start[n]; k < at_where; ++k) t_sky_first[t_where[k]] = wp::min(t_sky_first[t_where[k]], first);
}
t_where_start[c] = at_where;
// elements, island by island
const auto island_of = [&](int n) { for (int k = t_path_start[n]; k < t_path_start[n + 1]; ++k)
if (t_speeds[k] > 0) return t_island[t_root[t_path[k]]]; return -1; };
const auto step_of = [&](int n) { return t_kind[n] == CONTACT || t_kind[n] == TOUCH ? 3 : 1; };
for (int i = 0; i <= islands; ++i) t_first_element[i] = 0;
for (int n = 0; n < c; ++n) { const int i = island_of(n); if (i < 0) continue;
if (n < equal_closures) t_way[i] = 1;
t_first_element[i + 1] += (t_row_start[n + 1] - t_row_start[n])/step_of(n); }
for (int i = 0; i < islands; ++i) t_first_element[i + 1] += t_first_element[i];
for (int n = 0; n < c; ++n) { const int i = island_of(n); if (i < 0) continue;
for (int row = t_row_start[n]; row < t_row_start[n + 1]; row += step_of(n)) {
t_element[t_first_element[i]] = row; t_of[t_first_element[i]] = n; ++t_first_element[i]; } }
for (int i = islands; i > 0; --i) t_first_element[i] = t_first_element[i - 1];
t_first_element[0] = 0;
// the matrix, where there is room for an island's
for (int i = 0; i < islands; ++i) { real work = real(0.0), sweep = real(0.0); int size = 0;
for (int e = t_first_element[i]; e < t_first_element[i + 1]; ++e)
sweep += real(2*step_of(t_of[e])*(t_where_start[t_of[e] + 1] - t_where_start[t_of[e]]));
for (int d = t_first_speed[i]; d < t_first_speed[i + 1]; ++d) { const int width = d - t_sky_first[d] + 1;
size += width; work += real(width)*real(width); }
const bool fits = at_sky + size <= x.most_entries;
t_way[i] = !fits || (work > real(DEAR) && x.rope_most == 0) ? SWEEPS : t_way[i] ? JOINTED : work <= real(PER_SWEEP)*sweep ? NEWTON : EITHER;
if (fits) for (int d = t_first_speed[i]; d < t_first_speed[i + 1]; ++d) {
t_sky_start[d] = at_sky - t_sky_first[d]; at_sky += d - t_sky_first[d] + 1; } }"""
for _name, _number in {
    "CONTACT": CONTACT, "TOUCH": TOUCH, "SWEEPS": SWEEPS, "JOINTED": JOINTED, "NEWTON": NEWTON, "EITHER": EITHER, "PER_SWEEP": PER_SWEEP,
    "DEAR": DEAR, "GIVEN_ALL": sum(PARAMETERS.values()), "LEVER": GIVEN["lever"], "ROPE_ENDS": 14,
}.items():  # fmt: skip
    ORDER = re.sub(rf"\b{_name}\b", str(_number), ORDER)
# surfaces that are those of ellipsoids about the cores of points: of an ellipsoid the squares of its half axes, of a rim those
# of a disc; the tip of a cone turns with the body
ROLLS = f"""const auto rolls = [&](int shape, int body, const vec& at, const vec& m, int first) -> real {{
const int kind = x.shapes.kind.data[shape];
for (int k = 0; k < 6; ++k) give(first + k) = real(0.0);
if (kind != {ELLIPSOID} && kind != {CYLINDER} && kind != {CONE}) return real(0.0);
const auto turn = wp::quat_to_matrix(wp::mul(shared(state.rotation, body), x.shapes.rotation.data[shape]));
vec squares = x.shapes.size.data[shape];
if (kind != {ELLIPSOID}) {{
const vec axle = vec(turn.data[0][2], turn.data[1][2], turn.data[2][2]), out = wp::sub(at, middle(shape, body));
const vec radial = wp::sub(out, wp::mul(axle, wp::dot(axle, out))), across = wp::sub(m, wp::mul(axle, wp::dot(axle, m)));
const real radius = wp::length(radial), tilt = wp::length(across);
if (!(radius > real({TIP})*squares[0])) return real(1.0);
// how fast the point runs on the rim
const real along = wp::dot(wp::cross(axle, across), wp::cross(m, shared(state.spin, body)));
if (wp::dot(radial, across) < real({LOWEST})*radius*tilt || !(wp::abs(along)*h < real({TURNED})*tilt*tilt)) return real(0.0);
squares = vec(radius, radius, real(0.0)); }}
const int rows[] = {{0, 1, 2, 0, 0, 1}}, columns[] = {{0, 1, 2, 1, 2, 2}};
for (int e = 0; e < 6; ++e) for (int k = 0; k < 3; ++k)
give(first + e) += squares[k]*squares[k]*turn.data[rows[e]][k]*turn.data[columns[e]][k];
return real(1.0); }};"""
# points of contact of ropes and what holds these: on the ropes themselves, whose points are as many speeds each, and on links
ROPE_ENDS = 14  # numbers of `TreeStep.rope_ends` of a closure
GATHER_ROPES = f"""for (int m = 0; x.rope_most > 0 && m < x.rope_live.data[w]; ++m) {{
const auto of_rope = [&](int k) {{ return x.rope_ends.data[({ROPE_ENDS}*m + k)*worlds + w]; }};
const int a = of_rope(1), b = of_rope(2); same = false;
if (c - equal_closures >= x.most_laws || r - equal + 3 > x.most_rows) {{ ++lost; break; }}
x.point_of.data[c - equal_closures + x.most_laws*w] = -1; give({GIVEN["on"]}) = real(1.0);
const int begin = path, room = t_path_start[equal_closures] + x.most_paths; int size = 0;
for (int point = 0; point < of_rope(4); ++point) {{
t_path[path] = links + of_rope(6 + point); t_offset[path] = size; t_speeds[path] = 3; size += 3; ++path; }}
const auto enter = [&](int k) -> bool {{ if (path >= room - 4) {{ path = begin; ++lost; return false; }}
t_path[path] = k; t_offset[path] = size; t_speeds[path] = speeds_of[kinds[k]]; size += t_speeds[path]; ++path; return true; }};
int i = a, j = b; bool fits = true;
while (fits && i != j) {{ const int k = wp::max(i, j); fits = enter(k); if (i == k) i = bases[i]; else j = bases[j]; }}
for (; fits && i >= 0; i = bases[i]) fits = enter(i);
if (!fits) break;
t_kind[c] = of_rope(0); t_a[c] = a; t_b[c] = b; give({GIVEN["lever"]}) = real(m); give({GIVEN["belt"]}) = give({GIVEN["frame"]}) = real(-1.0);
for (int k = 0; k < 3; ++k) {{ t_y_start[r + 1] = t_y_start[r] + size; ++r; }}
t_row_start[c + 1] = r; t_path_start[c + 1] = path; ++c; }}"""
GATHER = f"""{NATIVE}
{TABLE}
const Table all = {table_of_world("x.")};
{" ".join(f"const Table t_{name} = {table_at(name)};" for name in NAMES)}
const int equal = all[{COUNTS.index("equal")}], equal_closures = all[{COUNTS.index("equal_closures")}], links = x.links;
const int* const kinds = x.kind.data + w*links; const int* const bases = x.base.data + w*links;
const int* const acts = x.acts.data + w*links;
const int speeds_of[] = {{{", ".join(map(str, SPEEDS))}}};
int c = equal_closures, r = equal, path = t_path_start[equal_closures], lost = 0;
const int known = all[{COUNTS.index("closures")}]; bool same = !fresh;  // closures as in the last step have their tables
const real h = x.settings.dt.data[0];
#define give(k) x.row_numbers.data[({sum(PARAMETERS.values())}*c + (k))*x.row_stride + w*x.row_world]
#define table(a, k) (*(const real*)((const char*)x.a.data + (k)*x.a.strides[0] + w*x.a.strides[1]))
const auto add = [&](int kind, int a, int b, int rows, int point, int belt = -1, int frame = -1) -> bool {{
if (c - equal_closures >= x.most_laws || r - equal + rows > x.most_rows) {{ ++lost; same = false; return false; }}
x.point_of.data[c - equal_closures + x.most_laws*w] = point; give({GIVEN["on"]}) = real(1.0);
same = same && c < known && t_kind[c] == kind && t_a[c] == a && t_b[c] == b
&& give({GIVEN["belt"]}) == real(belt) && give({GIVEN["frame"]}) == real(frame);
if (same) {{ r = t_row_start[c + 1]; path = t_path_start[c + 1]; return true; }}
const int begin = path, room = t_path_start[equal_closures] + x.most_paths; int size = 0;
const auto enter = [&](int k) -> bool {{ if (path >= room) {{ path = begin; ++lost; return false; }}
t_path[path] = k; t_offset[path] = size; t_speeds[path] = speeds_of[kinds[k]]; size += t_speeds[path]; ++path; return true; }};
if (belt < 0 && frame < 0) {{ int i = a, j = b;  // up to where both meet, then on
while (i != j) {{ const int k = wp::max(i, j); if (!enter(k)) return false; if (i == k) i = bases[i]; else j = bases[j]; }}
for (; i >= 0; i = bases[i]) if (!enter(i)) return false; }}
else {{ int ends[4] = {{a, b, belt, frame}};
for (;;) {{ const int k = wp::max(wp::max(ends[0], ends[1]), wp::max(ends[2], ends[3])); if (k < 0) break;
if (!enter(k)) return false;
for (int e = 0; e < 4; ++e) if (ends[e] == k) ends[e] = bases[k]; }} }}
t_kind[c] = kind; t_a[c] = a; t_b[c] = b;
for (int k = 0; k < rows; ++k) {{ t_y_start[r + 1] = t_y_start[r] + size; ++r; }}
t_row_start[c + 1] = r; t_path_start[c + 1] = path;
give({GIVEN["belt"]}) = real(belt); give({GIVEN["frame"]}) = real(frame); return true; }};
const auto moving = [&](int body) {{ const int link = x.link_of.data[body]; return link >= 0 && kinds[link] >= 0 ? link : -1; }};
const auto local = [&](int link, int body, const vec& p) -> vec {{
if (link < 0) return p;
const auto turn = wp::mul(shared(state.rotation, body), shared(own_turn, link));
const vec origin = wp::add(shared(state.position, body), wp::quat_rotate(shared(state.rotation, body), shared(own_point, link)));
return wp::quat_rotate_inv(turn, wp::sub(p, origin)); }};
const auto radius = [&](int shape) -> real {{ const int kind = x.shapes.kind.data[shape];
return kind == {CYLINDER} || kind == {CONE} || kind == {ELLIPSOID} ? real(-1.0) : x.shapes.radius.data[shape]; }};
const auto middle = [&](int shape, int body) -> vec {{
return wp::add(shared(state.position, body), wp::quat_rotate(shared(state.rotation, body), x.shapes.position.data[shape])); }};
{ROLLS}
const int points = x.contacts.count.data[w];
const auto of_wheel = [&](int k, int what) -> real& {{
return x.row_numbers.data[({sum(PARAMETERS.values())}*x.cast_closure.data[k] + what)*x.row_stride + w*x.row_world]; }};
for (int k = 0; k < x.casts.count; ++k) if (x.casts.state.data[k] >= 0)
of_wheel(k, {OF_CASTS.index("turn")}) = of_wheel(k, {OF_CASTS.index("load")}) = real(0.0);
for (int p = 0; p < points; ++p) {{
const int body_a = cell(contacts.body_a, p), body_b = cell(contacts.body_b, p);
const int a = moving(body_a), b = moving(body_b);
const int driven = cell(contacts.belt_body, p) > 0 ? moving(cell(contacts.belt_body, p)) : -1;
const int frame = driven >= 0 ? moving(cell(contacts.belt_frame, p)) : -1;
const bool held_a = a < 0 || kinds[a] == {PRESCRIBED}, held_b = b < 0 || kinds[b] == {PRESCRIBED};
if (held_a && held_b && driven < 0) continue;  // nothing moves
if (!add({CONTACT}, a, b, 3, p, driven, frame)) continue;
const vec n = cell(contacts.normal, p), at = cell(contacts.point, p); const real gap = cell(contacts.gap, p);
const int shape_a = cell(contacts.shape_a, p), shape_b = cell(contacts.shape_b, p);
const int kind_a = x.shapes.kind.data[shape_a], kind_b = x.shapes.kind.data[shape_b];
vec at_a = wp::sub(at, wp::mul(n, real(0.5)*gap)), at_b = wp::add(at, wp::mul(n, real(0.5)*gap));
// of what is on its way the point is somewhere between: on balls and planes it is known
if (kind_a == {SPHERE_KIND}) at_a = wp::add(middle(shape_a, body_a), wp::mul(n, x.shapes.radius.data[shape_a]));
if (kind_b == {SPHERE_KIND}) at_b = wp::sub(middle(shape_b, body_b), wp::mul(n, x.shapes.radius.data[shape_b]));
if (kind_a == {PLANE_KIND} && kind_b != {SPHERE_KIND}) {{
at_a = wp::sub(at, wp::mul(n, wp::dot(n, wp::sub(at, middle(shape_a, body_a))))); at_b = wp::add(at_a, wp::mul(n, gap)); }}
else if (kind_b == {PLANE_KIND} && kind_a != {SPHERE_KIND}) {{
at_b = wp::sub(at, wp::mul(n, wp::dot(n, wp::sub(at, middle(shape_b, body_b))))); at_a = wp::sub(at_b, wp::mul(n, gap)); }}
else if (kind_a == {SPHERE_KIND} && kind_b != {SPHERE_KIND}) at_b = wp::add(at_a, wp::mul(n, gap));
else if (kind_b == {SPHERE_KIND} && kind_a != {SPHERE_KIND}) at_a = wp::sub(at_b, wp::mul(n, gap));
const vec pa = local(a, body_a, at_a), pb = local(b, body_b, at_b);
vec s = cell(contacts.along, p);
if (!(wp::length_sq(s) > real(0.5))) {{
const vec e = wp::abs(n[0]) < real(0.6) ? vec(real(1.0), real(0.0), real(0.0)) : vec(real(0.0), real(1.0), real(0.0));
s = wp::normalize(wp::cross(wp::cross(n, e), n)); }}
auto mu = cell(contacts.friction, p); const vec last = cell(contacts.impulse, p), runs = cell(contacts.surface, p);
const bool tire = (cell(contacts.special, p) & 1) != 0;
const int special = cell(contacts.special, p), wheel = (special & {int(CAST)}) != 0 ? special >> 8 : -1;
const vec pull = driven >= 0 || wheel >= 0 ? cell(contacts.belt_pull, p) : vec();
const vec axle = driven >= 0 ? cell(contacts.belt_axis, p) : vec();
const vec arm_a = wp::sub(at, shared(state.position, body_a)), arm_b = wp::sub(at, shared(state.position, body_b));
const vec turn_a = wp::cross(shared(state.spin, body_a), arm_a), turn_b = wp::cross(shared(state.spin, body_b), arm_b);
const vec over = wp::sub(shared(state.velocity, body_b), shared(state.velocity, body_a));
if (cell(contacts.dynamic, p) < mu[0]) {{ bool slides;
if (tire) {{ const real first = wp::dot(s, last)*mu[1], second = wp::dot(wp::cross(n, s), last)*mu[0];
// a tread that holds slips, too
slides = wp::sqrt(first*first + second*second) > real(0.999)*wp::dot(n, last)*mu[0]*mu[1]; }}
else {{ vec slip = wp::add(wp::add(over, wp::sub(turn_b, turn_a)), runs);
if (driven >= 0) slip = wp::add(slip, wp::mul(pull, wp::dot(axle, wp::sub(shared(state.spin, cell(contacts.belt_body, p)),
shared(state.spin, cell(contacts.belt_frame, p))))));
slides = wp::length(wp::sub(slip, wp::mul(n, wp::dot(n, slip)))) > real({SLIDES}); }}
if (slides) mu = wp::mul(mu, cell(contacts.dynamic, p)/mu[0]); }}
real fade = real(0.0); const bool yields = tire && cell(contacts.relaxation, p) > real(0.0);
if (yields) {{ const bool of_a = (special & 8) != 0;  // how fast the middle of the wheel passes the ground
vec passes = over; if (of_a || wheel >= 0) passes = wp::add(passes, turn_b);
if (!of_a || wheel >= 0) passes = wp::sub(passes, turn_a); passes = wp::sub(passes, wp::mul(n, wp::dot(n, passes)));
fade = wp::length(passes)/cell(contacts.relaxation, p); }}
for (int k = 0; k < 3; ++k) {{ give({GIVEN["point_a"]} + k) = pa[k]; give({GIVEN["point_b"]} + k) = pb[k];
give({GIVEN["axis_a"]} + k) = n[k]; give({GIVEN["axis_b"]} + k) = s[k];
give({GIVEN["surface"]} + k) = runs[k]; give({GIVEN["last"]} + k) = last[k]*(real(0.25)/h);
give({GIVEN["belt_axis"]} + k) = axle[k]; give({GIVEN["belt_pull"]} + k) = pull[k]; }}
give({GIVEN["cast"]}) = real(-1.0);
if (wheel >= 0) {{ give({GIVEN["cast"]}) = real(x.cast_closure.data[wheel]);
of_wheel(wheel, {OF_CASTS.index("turn")}) += wp::dot(pull, last)*(real(0.25)/h);
of_wheel(wheel, {OF_CASTS.index("load")}) += wp::dot(n, last)*(real(0.25)/h); }}
give({GIVEN["friction_along"]}) = mu[0]; give({GIVEN["friction_across"]}) = mu[1];
give({GIVEN["restitution"]}) = cell(contacts.restitution, p); give({GIVEN["fade"]}) = fade;
give({GIVEN["balls"]}) = kind_a == {SPHERE_KIND} && kind_b == {SPHERE_KIND};
give({GIVEN["radius_a"]}) = radius(shape_a); give({GIVEN["radius_b"]}) = radius(shape_b);
give({GIVEN["stiffness"]}) = cell(contacts.stiffness, p); give({GIVEN["damping"]}) = cell(contacts.damping, p);
give({GIVEN["shear_along"]}) = yields ? cell(contacts.shear, p)[0] : real(0.0);
give({GIVEN["shear_across"]}) = yields ? cell(contacts.shear, p)[1] : real(0.0);
const auto core = [&](int shape, int body, int link, const vec& at, const vec& inward) -> vec {{
const int kind = x.shapes.kind.data[shape];
if (kind == {SPHERE_KIND} || kind == {CYLINDER} || kind == {CONE} || kind == {ELLIPSOID}) {{
vec centre = middle(shape, body);
if (kind == {CYLINDER} || kind == {CONE}) {{ const vec axle = wp::quat_rotate(shared(state.rotation, body), wp::quat_rotate(
x.shapes.rotation.data[shape], vec(real(0.0), real(0.0), real(1.0))));  // beside the point, on the axle
centre = wp::add(centre, wp::mul(axle, wp::dot(axle, wp::sub(at, centre)))); }}
return local(link, body, centre); }}
return local(link, body, wp::add(at, wp::mul(inward, x.shapes.radius.data[shape]))); }};
const auto is_round = [&](int shape) {{ const int kind = x.shapes.kind.data[shape]; return {ROUND}; }};
const bool round_a = is_round(shape_a), round_b = is_round(shape_b);  // the point goes with what is round
give({GIVEN["share"]}) = round_b && !round_a ? real(1.0) : round_a && !round_b ? real(0.0) : real(0.5);
const vec ca = core(shape_a, body_a, a, at_a, wp::mul(n, real(-1.0))), cb = core(shape_b, body_b, b, at_b, n);
for (int k = 0; k < 3; ++k) {{ give({GIVEN["core_a"]} + k) = ca[k]; give({GIVEN["core_b"]} + k) = cb[k]; }}
give({GIVEN["rolls_a"]}) = rolls(shape_a, body_a, at_a, n, {GIVEN["round_a"]});
give({GIVEN["rolls_b"]}) = rolls(shape_b, body_b, at_b, wp::mul(n, real(-1.0)), {GIVEN["round_b"]});
++c;
const auto resist = [&](int kind, real lever, int back, real across) {{ if (!add(kind, a, b, 1, -1)) return;
for (int k = 0; k < 3; ++k) {{ give({GIVEN["axis_a"]} + k) = n[k]; give({GIVEN["axis_b"]} + k) = s[k]; }}
give({GIVEN["lever"]}) = lever; give({GIVEN["rows_back"]}) = real(back); give({GIVEN["across"]}) = across; ++c; }};
const real rolling = cell(contacts.rolling, p), torsion = cell(contacts.torsion, p);
if (torsion > real(0.0)) resist({SPINNING}, torsion, 3, real(0.0));
if (rolling > real(0.0)) {{ const int back = torsion > real(0.0) ? 4 : 3;
resist({ROLLING}, rolling, back, real(0.0)); resist({ROLLING}, rolling, back + 1, real(1.0)); }} }}
{GATHER_ROPES}
for (int i = 0; i < links; ++i) if (acts[i] && (kinds[i] == {HINGE} || kinds[i] == {SLIDER})) {{
const int axis = x.axis.data[i];
if (!(table(control.friction_static, axis) > real(0.0)
|| table(control.friction_dynamic, axis) > real(0.0)
|| table(control.friction_load, axis) > real(0.0))) cell(state.tree, x.first.data[i] + {int(STUCK)}) = real(0.0);
else if (add({FRICTION}, i, -1, 1, -1)) {{ give({GIVEN["last"]}) = cell(state.friction_impulse, axis)*(real(0.25)/h); ++c; }}
const int first = x.first.data[i], at_z = first + (kinds[i] == {HINGE} ? {int(HINGE_AT["z"])} : {int(SLIDER_AT["z"])});
const real q = cell(state.tree, first + {int(Q)});
const real way = real({NEAR_LIMIT})*(real(2.0)*wp::abs(cell(state.tree, at_z)) + x.fall*h*h);
for (int side = -1; side < 2; side += 2) {{
const real room = side > 0 ? q - table(axes.lower, axis) : table(axes.upper, axis) - q;
if (room < way) if (add({LIMIT}, i, -1, 1, -1)) {{ give({GIVEN["stiffness"]}) = real(0.0);
give({GIVEN["side"]}) = real(side);
give({GIVEN["last"]}) = wp::max(real(side)*cell(state.limit_impulse, axis), real(0.0))*(real(0.25)/h); ++c; }} }} }}
if (!same || c != known) {{
{ORDER}
all[{COUNTS.index("closures")}] = c; all[{COUNTS.index("rows")}] = r; all[{COUNTS.index("responses")}] = t_y_start[r];
all[{COUNTS.index("islands")}] = islands; all[{COUNTS.index("speeds")}] = speeds; }}
#undef give
#undef table
{DONE}return lost;"""


@wp.func_native(GATHER)
def gather_laws(t: wp.array(dtype=TreeStep), w: int, fresh: int) -> int:
    """The rows of points of contact, and of friction and limits of axes, in the step that begins; how many had no room.

    `fresh`: links may hang otherwise than in the last step.
    """
    return 0


@wp.func
def given_vector(t: wp.array(dtype=TreeStep), k: int, where: int, w: int) -> vec3:
    """A vector among the parameters of the k-th of these closures."""
    at = GIVEN_SIZE * (t[0].closures + k) + where
    x = vec3(real(0.0))
    for c in range(3):
        x[c] = t[0].row_numbers[(at + c) * t[0].row_stride + w * t[0].row_world]
    return x


@wp.func
def point_velocity(t: wp.array(dtype=TreeStep), k: int, b: int, where: int, w: int) -> vec3:
    """Velocity of a body at its point of the k-th of these closures, at the end of the step."""
    i = t[0].link_of[b]
    if i < 0:
        return vec3(real(0.0))
    turn = t[0].state.rotation[b, w] * t[0].own_turn[i, w]
    arm = wp.quat_rotate(turn, given_vector(t, k, where, w)) + wp.quat_rotate(t[0].state.rotation[b, w], t[0].own_point[i, w])
    return t[0].state.velocity[b, w] + wp.cross(t[0].state.spin[b, w], arm)


@wp.func
def is_moved(t: wp.array(dtype=TreeStep), b: int, w: int) -> bool:
    """Whether steps move a body by what acts on it."""
    i = t[0].link_of[b]
    if i < 0:
        return False
    kind = t[0].kind[i + t[0].links * w]
    return kind >= 0 and kind != IS_PRESCRIBED


@wp.func
def store_contacts(t: wp.array(dtype=TreeStep), w: int):
    """Impulses of points of contact, of friction and of limits, as of a whole step."""
    for p in range(t[0].contacts.count[w]):
        if not (is_moved(t, t[0].contacts.body_a[p, w], w) or is_moved(t, t[0].contacts.body_b[p, w], w)):
            continue  # what sleeps rests on what it rested on
        t[0].contacts.impulse[p, w] = vec3(real(0.0))
        t[0].blow[p, w] = vec3(real(0.0))
        t[0].slip[p, w] = vec3(real(0.0))
        t[0].bend[p, w] = real(0.0)
    scale = real(4.0) * t[0].settings.dt[0] / (t[0].part[w] * t[0].part[w])
    for i in range(t[0].links):
        kind = t[0].kind[i + t[0].links * w]
        if kind == IS_HINGE or kind == IS_SLIDER:
            t[0].state.friction_impulse[t[0].axis[i], w] = real(0.0)
            t[0].state.limit_impulse[t[0].axis[i], w] = real(0.0)
    at_kind = row_table(t, AT_KIND, w) + t[0].closures
    at_link = row_table(t, AT_A, w) + t[0].closures
    count = row_table(t, 0, w) - t[0].closures
    for k in range(count):
        kind = row_table(t, at_kind + k, w)
        if kind == IS_FRICTION or kind == IS_LIMIT:
            axis = t[0].axis[row_table(t, at_link + k, w)]
            force = carried(t, t[0].closures + k, w)[0] * scale
            if kind == IS_FRICTION:
                t[0].state.friction_impulse[axis, w] = force
            elif force != real(0.0):
                t[0].state.limit_impulse[axis, w] = force
        p = t[0].point_of[k + t[0].most_laws * w]
        if p >= 0:
            t[0].contacts.impulse[p, w] = carried(t, t[0].closures + k, w) * scale
            t[0].bend[p, w] = kept(t, t[0].closures + k, w, AT_BEND)[0]
            t[0].blow[p, w] = kept(t, t[0].closures + k, w, AT_BLOW)
            u = point_velocity(t, k, t[0].contacts.body_b[p, w], AT_POINT_B, w) + t[0].contacts.surface[p, w]
            u = u - point_velocity(t, k, t[0].contacts.body_a[p, w], AT_POINT_A, w)
            if t[0].contacts.belt_body[p, w] > 0:
                belt = t[0].contacts.belt_body[p, w]
                turn = t[0].state.spin[belt, w] - t[0].state.spin[t[0].contacts.belt_frame[p, w], w]
                u = u + t[0].contacts.belt_pull[p, w] * wp.dot(t[0].contacts.belt_axis[p, w], turn)
            if t[0].contacts.stiffness[p, w] > real(0.0):  # which tells the energy of its spring
                t[0].contacts.gap[p, w] = kept(t, t[0].closures + k, w, AT_END_GAP)[0]
            n = given_vector(t, k, AT_NORMAL, w)
            t[0].contacts.normal[p, w] = n
            t[0].slip[p, w] = u - n * wp.dot(n, u)
            if t[0].taken[w] == real(0.0):  # impacts changed nothing
                t[0].slip[p, w] = kept(t, t[0].closures + k, w, AT_SLIP) * (real(2.0) / t[0].part[w])
