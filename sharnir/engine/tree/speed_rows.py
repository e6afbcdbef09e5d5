"""Rows whose impulses are bounded, over joint speeds: their numbers J and h on joints, in emitted code (`joint_speeds`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharnir.contact.cones import NUMBERS, SPEEDS, VECTORS
from sharnir.emit.algebra import Vector, cross
from sharnir.emit.expressions import value
from sharnir.engine.tree.closures import FRICTION, LIMIT
from sharnir.engine.tree.joint_speeds import (
    add_own,
    answer_to_own,
    gains,
    know_response,
    lever_of,
    natural,
    own_speeds,
    size_of,
)
from sharnir.engine.tree.row_storage import RESPONSES, ClosureView, LoopRows
from sharnir.engine.tree.rows import ways

PUSHED = """for (int d = 0; d < n_speeds; ++d) cone_eta(d) = real(0.0);
for (int c = n_equal_closures; c < n_closures; ++c) for (int r = t_row_start[c]; r < t_row_start[c + 1]; ++r) {{
const int at = row_at(r), size = many_of_closure(c); const Table where = t_where + t_where_start[c];
const real* const seen = by_left ? &left(at, 0) : &along(at, 0);
for (int i = 0; i < size; ++i) cone_eta(where[i]) += seen[stride*i]*{rest}; }}
if (!by_left) leave_on_joints(0, n_speeds);"""
"""C++: what impulses of laws, in `rest`, leave on the joints' own equations."""


class SpeedRows(LoopRows):
    """Rows of any forest with those whose impulses are bounded, which `contact.cones` solves for."""

    kept = (*RESPONSES, "k")
    of_speeds = ("J", "h")
    row_place: Any  # where a number of row r is

    def take_act(self, link: Any, k: Any) -> Any:
        """The unit impulse of a row on a link, which is zero again afterwards."""
        places = self._sums(link, k)[:6]
        x = [self.program.read(p) for p in places]
        for p in places:
            self.program.write(p, 0.0)
        return Vector(*x[:3]), Vector(*x[3:])

    def add(self, link: Any, k: Any, act: Any, rate: Any, bounded: bool = False) -> None:
        if not bounded:
            super().add(link, k, act, rate)
            return
        for place, x in zip(self._sums(link, k), (y for vector in act for y in vector), strict=False):
            self.program.write(place, self.program.read(place) + x)

    def closures_by_path(self) -> Iterator[Any]:
        with self.tree.sweep(), self.program.block("for (int c = 0; c < n_equal_closures; ++c) {"):
            self.say_ends()
            yield ClosureView(self, "c")

    def see_speeds(self, joint: Any, link: Any, r: Any, at: Any, act: Any, x: list[Any]) -> None:
        l, n, own = act
        h = natural(joint, link, (l, n), own)
        self.put_responses(r, at, h=h, k=answer_to_own(joint, link, x, self._response(len(h), "i")))

    by_left = value("by_left", "bool")
    """Whether h takes the place of J, see `contact.cones`."""

    def carry_bounded(self, c: Any) -> None:
        """Unit impulses carried to the ground: h, or J, as if no joint yielded."""
        p = self.program
        with p.block("if (c >= n_equal_closures && by_left) {"):
            self._carry(c, True)
        with p.block(f"else if (c >= n_equal_closures && t_kind[c] != {FRICTION} && t_kind[c] != {LIMIT}) {{"):
            self._carry(c, False)

    def _carry(self, c: Any, yields: bool) -> None:
        for link, at in self.path(c):
            own = link.take("path_e") if yields else 0.0
            for joint in ways(link):
                lever, response = lever_of(joint, link), self._response(size_of(joint), "i")
                for r in c.row_range():
                    k = c.number(r)
                    l, n = self.take_act(link, k)
                    seen = natural(joint, link, (l, n), own)
                    self.put_responses(r, at, **{"h" if yields else "J": seen})
                    for by, (g_l, g_n) in zip(seen, gains(joint, link, response) if yields else (), strict=False):
                        l, n = l - g_l * by, n - g_n * by
                    self.add(link.base, k, (l, n + cross(lever, l)), None, True)

    def _response(self, size: int, i: str) -> list[Any]:
        """Δ of the joint of link i, known or to be written."""
        return [self.program.read(self._response_place(i, k)) for k in range(size)]

    @staticmethod
    def _response_place(i: str, k: Any) -> str:
        place = f"{len(VECTORS) + len(NUMBERS)}*n_rows + {SPEEDS.index('delta')}*n_speeds + t_place[{i}] + {k}"
        return f"number(at_cone + {place})"

    def begin_carrying(self) -> None:
        """Δ of all joints, and what couples them, L."""
        p = self.program
        p.forget("""if (n_rows > n_equal) { const int rows = n_rows, speeds = n_speeds; choose_way(rows, speeds, n_islands);
for (int d = 0; d < speeds; ++d) { cone_delta(d) = real(1.0); const int row = own_start[d];
if (!by_left) for (int k = own_first[d]; k < d; ++k) cone_gain(row + k) = real(0.0); } }""")
        for link in self.tree.links():
            with p.block("if (t_place[i] >= 0) {"):
                p.say("const int place = t_place[i]; (void)place; int width = 0; real gain[3][6];")
                for joint in ways(link):
                    response = know_response(joint, link)
                    for k, x in enumerate(response):
                        p.write(self._response_place("i", k), x)
                    with p.block("if (!by_left) {"):
                        lever = lever_of(joint, link)
                        for k, (l, n) in enumerate(gains(joint, link, response)):
                            for m, x in enumerate((*l, *(n + cross(lever, l)))):
                                p.write(f"gain[{k}][{m}]", x)
                            p.say(f"width = {k + 1};")
                p.say("const int rows = n_rows, speeds = n_speeds; (void)rows; (void)speeds;")
                with p.block("for (int up = bases[i]; width > 0 && up >= 0; up = bases[up]) {"):
                    p.say("const int i = up;")
                    self.tree.say_link()
                    for joint in ways(link):
                        with p.block("for (int k = 0; k < width; ++k) {"):
                            l, n = (Vector(*(p.read(f"gain[k][{m}]") for m in of)) for of in (range(3), range(3, 6)))
                            for m, x in enumerate(natural(joint, link, (l, n))):
                                p.write(f"cone_gain(t_own_start[t_place[i] + {m}] + place + k)", x)
                            for m, x in enumerate(n + cross(lever_of(joint, link), l)):
                                p.write(f"gain[k][{3 + m}]", x)

    def _joints_with_speeds(self) -> Iterator[tuple[Any, Any]]:
        """Links whose joint speeds rows change, and their joints; these speeds are from `place` on."""
        p = self.program
        for link in self.tree.links():
            with p.block("if (t_place[i] >= 0) {"):
                p.say(f"const int place = at_cone + {len(VECTORS) + len(NUMBERS)}*n_rows + t_place[i]; (void)place;")
                for joint in ways(link):
                    yield link, joint

    def answer_along_speeds(self) -> None:
        p = self.program
        with p.block("if (n_rows > n_equal) {"):
            for link, joint in self._joints_with_speeds():
                for k, x in enumerate(own_speeds(joint, link, self._response(size_of(joint), "i"))):
                    p.write(f"number(place + {k})", x)
            p.forget(f"""{{ const int rows = n_rows, speeds = n_speeds; if (!by_left) follow_joints(0, n_speeds);
for (int c = n_equal_closures; c < n_closures; ++c) for (int r = t_row_start[c]; r < t_row_start[c + 1]; ++r) {{
const int at = row_at(r), size = many_of_closure(c); const Table where = t_where + t_where_start[c];
const real* const seen = by_left ? &left(at, 0) : &along(at, 0);
real sum = real(0.0); for (int i = 0; i < size; ++i) sum += seen[stride*i]*cone_eta(where[i]);
{self.row_place("rest")} -= sum; }} }}""")

    def correct_along_speeds(self) -> None:
        p = self.program
        with p.block("if (n_rows > n_equal) {"):
            p.forget(f"{{ const int rows = n_rows, speeds = n_speeds; {PUSHED.format(rest=self.row_place('rest'))} }}")
            for link, joint in self._joints_with_speeds():
                size = size_of(joint)
                add_own(joint, link, self._response(size, "i"), [p.read(f"number(place + {k})") for k in range(size)])
