r"""Points of contact, dry friction and limits, solved together as one problem of cones and intervals.

Unknown are impulses p with speeds u = W p + b, W symmetric and at least semi-definite. The rows are those of *elements*:

    interval    one row: low ≤ p ≤ high; u = 0 inside, u ≥ 0 at low, u ≤ 0 at high (friction of an axis, a limit)
    cone        three rows: p₀ ≥ |(p₁, p₂)|, Coulomb's law of a point. Row 0 is the normal; the rows across are scaled by the
                coefficients of friction, so that the cone is a right circular one, whatever they are along and across

Coulomb's law is p = Π(p − ũ/w), Π the projection on the element's set, w any positive number, and ũ = u + |(u₁, u₂)| n (De Saxcé:
with the sliding speed added to the normal one, impulse and speed are those of the minimum of a quadratic on the cone). It is
solved by Newton's iteration with the derivative of this map (`NEWTON`), whose error has to fall in every step. Where it does not,
the term |(u₁, u₂)| is kept as it is, which makes the problem convex: the minimum of ½ λᵀWλ + Σ ψ(Wλ + b), smooth, with
−∂ψ/∂u = Π(p_k − u/R), is found by Newton's iteration with an exact search along each line, which cannot fail. Then the term is
renewed, and so on (`CONVEX`). W may be singular, as where a table stands on four legs: of all solutions that near the last
impulses p_k is taken, since a small R (p − p_k) is added to u.
"""

NEAREST = {"double": 1e-9, "single": 1e-4}  # R of Newton's iteration, of the element's own response
SOFT = 1e-3  # R of the convex problem
SMALL = {"double": 1e-12, "single": 1e-6}  # error, of that without impulses, which counts as none
NEWTONS, LINES, CONVEX, SHIFTS, ROUNDS = 8, 6, 30, 4, 5
"""Most steps of Newton's iteration; halvings of a step; steps for a convex problem; such problems in turn; rounds of both."""
VECTORS = ("p", "u", "q", "f", "b", "trial", "trial_u", "trial_f", "near", "direction", "lambda", "lambda_u", "way", "right")
NUMBERS = ("weight", "pull", "shift", "reach")
"""Working memory: numbers of every row, and of every row's element, where its first row is."""


def cone_memory(rows: int) -> int:
    """Numbers of working memory for so many rows."""
    return (len(VECTORS) + len(NUMBERS)) * rows + rows * rows


def cone_solver(real: str) -> str:
    """C++: `solve_cones(rows, count)`, which returns what error is left, of that without impulses.

    It uses `number(k)`, the working memory from `at_cone` on; `response(r, s)`, W for r ≥ s;
    `alone_of(r)`, the response of row r where nothing else holds its bodies, of which rounding is a part, and
    `blur_of(r)` another; `low_of(r)`, `high_of(r)`, which is
    less than 0 for a cone that is left out;
    `element[e]`, the first row of element e, `element[count]` = rows; `active`, room for as many whole numbers as there are rows.
    p has the impulses to begin with and those found, b the speeds without impulses.
    """
    kind = "double" if real == "double" else "single"
    numbers = {
        "NEAREST": NEAREST[kind], "SOFT": SOFT, "SMALL": SMALL[kind], "NEWTONS": NEWTONS, "LINES": LINES, "CONVEX": CONVEX,
        "SHIFTS": SHIFTS, "ROUNDS": ROUNDS,
    }  # fmt: skip
    places = [f"#define cone_{name}(r) number(at_cone + {k}*rows + (r))" for k, name in enumerate((*VECTORS, *NUMBERS))]
    places.append(f"#define cone_matrix(r, s) number(at_cone + {len(VECTORS) + len(NUMBERS)}*rows + (r)*rows + (s))")
    text = SOLVER
    for name, x in numbers.items():
        text = text.replace(f"<{name}>", repr(x) if isinstance(x, int) else f"real({x!r})")
    return "\n".join([APART, *places, text, "#undef apart"])


APART = """#ifdef __CUDA_ARCH__
#define apart
#else
#define apart __attribute__((noinline))
#endif"""  # functions that stay such: else they are compiled several times
SOLVER = r"""
const auto solve_cones = [&](const int rows, const int count) apart -> real {
const auto times_response = [&](int r, const auto& x) apart { real sum = real(0.0);
for (int s = 0; s <= r; ++s) sum += response(r, s)*x(s);
for (int s = r + 1; s < rows; ++s) sum += response(s, r)*x(s);
return sum; };
// projection of the three or one numbers from r on, q in and out; what kind of part of the set it is on: 0 the tip or an end of
// the interval, 1 inside, 2 on the surface
const auto project = [&](int r, int size, real* q) apart -> int {
if (size == 1) { const real low = low_of(r), high = high_of(r);
if (q[0] <= low) { q[0] = low; return 0; } if (q[0] >= high) { q[0] = high; return 0; } return 1; }
if (high_of(r) < real(0.0)) { q[0] = q[1] = q[2] = real(0.0); return 0; }
const real t = wp::sqrt(q[1]*q[1] + q[2]*q[2]);
if (t <= q[0]) return 1;
if (t <= -q[0]) { q[0] = q[1] = q[2] = real(0.0); return 0; }
const real k = real(0.5)*(q[0] + t), by = k/t; q[0] = k; q[1] *= by; q[2] *= by; return 2; };
// derivative of the projection at q, times the vector x
const auto project_rate = [&](int part, const real* q, int size, real* x) apart {
if (part == 1) return;
if (part == 0) { for (int k = 0; k < size; ++k) x[k] = real(0.0); return; }
const real t = wp::sqrt(q[1]*q[1] + q[2]*q[2]), d1 = q[1]/t, d2 = q[2]/t, k = real(0.5)*(q[0] + t)/t;
const real along = d1*x[1] + d2*x[2], across = d1*x[2] - d2*x[1];
const real n = real(0.5)*(x[0] + along);
x[0] = n; x[1] = d1*n - d2*(k*across); x[2] = d2*n + d1*(k*across); };
// speeds and errors of impulses: u, f from p; `shifted`: the sliding speed that belongs to the normal one is as it was
const auto judge = [&](const auto& p, const auto& u, const auto& f, bool shifted, bool near) apart -> real { real sum = real(0.0);
for (int e = 0; e < count; ++e) { const int r = element[e], size = element[e + 1] - r; real x[3], q[3];
const real w = cone_weight(r);
for (int k = 0; k < size; ++k) { real y = times_response(r + k, p) + cone_b(r + k);
if (near) y += cone_pull(r)*(p(r + k) - cone_near(r + k)); u(r + k) = y; x[k] = y; }
if (size == 3) x[0] += shifted ? cone_shift(r) : wp::sqrt(x[1]*x[1] + x[2]*x[2]);
for (int k = 0; k < size; ++k) q[k] = p(r + k) - x[k]/w;
project(r, size, q);
for (int k = 0; k < size; ++k) { const real y = p(r + k) - q[k]; f(r + k) = y; sum += w*y*y; } }
return wp::sqrt(sum); };
const auto at_p = [&](int r) -> real& { return cone_p(r); }; const auto at_u = [&](int r) -> real& { return cone_u(r); };
const auto at_f = [&](int r) -> real& { return cone_f(r); }; const auto at_trial = [&](int r) -> real& { return cone_trial(r); };
const auto at_trial_u = [&](int r) -> real& { return cone_trial_u(r); };
const auto at_trial_f = [&](int r) -> real& { return cone_trial_f(r); };
const auto at_direction = [&](int r) -> real& { return cone_direction(r); };
// solve the matrix of the `size` active rows for `right`, in place, by elimination with the largest pivot of a column
const auto eliminate = [&](int size) apart -> bool {
for (int c = 0; c < size; ++c) { int best = c; real most = wp::abs(cone_matrix(c, c));
for (int r = c + 1; r < size; ++r) { const real x = wp::abs(cone_matrix(r, c)); if (x > most) { most = x; best = r; } }
if (!(most > real(0.0))) return false;
if (best != c) { for (int s = c; s < size; ++s) { const real x = cone_matrix(c, s); cone_matrix(c, s) = cone_matrix(best, s);
cone_matrix(best, s) = x; } const real x = cone_right(c); cone_right(c) = cone_right(best); cone_right(best) = x; }
const real pivot = real(1.0)/cone_matrix(c, c);
for (int r = c + 1; r < size; ++r) { const real x = cone_matrix(r, c)*pivot; if (x == real(0.0)) continue;
for (int s = c + 1; s < size; ++s) cone_matrix(r, s) -= x*cone_matrix(c, s);
cone_right(r) -= x*cone_right(c); } }
for (int r = size - 1; r >= 0; --r) { real x = cone_right(r);
for (int s = r + 1; s < size; ++s) x -= cone_matrix(r, s)*cone_right(s);
cone_right(r) = x/cone_matrix(r, r); }
return true; };
real scale = real(0.0);
for (int e = 0; e < count; ++e) { const int r = element[e], size = element[e + 1] - r;
real w = real(0.0), s = real(0.0), alone = real(0.0);
for (int k = 0; k < size; ++k) { w += response(r + k, r + k); alone += alone_of(r + k); s += cone_b(r + k)*cone_b(r + k); }
w = wp::max(w, real(1e-6)*alone)/real(size); if (!(w > real(0.0))) w = real(1.0);
cone_weight(r) = w; cone_pull(r) = alone > real(0.0) ? (<NEAREST> + blur_of(r))*alone/real(size) : w; scale += s/w; }
scale = wp::sqrt(scale);
for (int r = 0; r < rows; ++r) cone_near(r) = cone_p(r);
real error = judge(at_p, at_u, at_f, false, false);
real best = error; for (int r = 0; r < rows; ++r) cone_lambda(r) = cone_p(r);
for (int round = 0; round < <ROUNDS> && !(error <= <SMALL>*scale); ++round) {
// Newton's iteration for Coulomb's law
real left = judge(at_p, at_u, at_f, false, true); bool falls = true;
for (int n = 0; n < <NEWTONS> && falls && !(left <= real(0.1)*<SMALL>*scale); ++n) {
int size = 0;
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r; const real w = cone_weight(r); real q[3];
const real slide = rs == 3 ? wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0);
for (int k = 0; k < rs; ++k) q[k] = cone_p(r + k) - (cone_u(r + k) + (k == 0 ? slide : real(0.0)))/w;
for (int k = 0; k < rs; ++k) cone_q(r + k) = q[k];
const int part = project(r, rs, q); cone_reach(r) = real(part);
for (int k = 0; k < rs; ++k) { cone_direction(r + k) = -cone_f(r + k); if (part > 0) active[size++] = r + k; } }
{ int e = 0, a = 0;
while (a < size) { while (element[e + 1] <= active[a]) ++e;
const int r = element[e], rs = element[e + 1] - r; const real w = cone_weight(r); const int part = (int)cone_reach(r);
real q[3]; for (int k = 0; k < rs; ++k) q[k] = cone_q(r + k);
const real slide = rs == 3 ? wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0);
const real d1 = slide > real(0.0) ? cone_u(r + 1)/slide : real(0.0), d2 = slide > real(0.0) ? cone_u(r + 2)/slide : real(0.0);
real known[3] = {real(0.0), real(0.0), real(0.0)};
for (int s = 0, b = 0; s < rows; ++s) { real x[3];
for (int k = 0; k < rs; ++k) { const int i = wp::max(r + k, s), j = wp::min(r + k, s); x[k] = -response(i, j)/w;
if (s == r + k) x[k] += real(1.0) - cone_pull(r)/w; }
if (rs == 3) x[0] += d1*(x[1] - (s == r + 1 ? real(1.0) : real(0.0))) + d2*(x[2] - (s == r + 2 ? real(1.0) : real(0.0)));
project_rate(part, q, rs, x);
if (b < size && active[b] == s) { for (int k = 0; k < rs;
++k) cone_matrix(a + k, b) = (s == r + k ? real(1.0) : real(0.0)) - x[k]; ++b; }
else for (int k = 0; k < rs; ++k) known[k] += x[k]*cone_direction(s); }
for (int k = 0; k < rs; ++k) cone_right(a + k) = -cone_f(r + k) + known[k];
a += rs; } }
if (!eliminate(size)) break;
for (int a = 0; a < size; ++a) cone_direction(active[a]) = cone_right(a);
real by = real(1.0); falls = false;
for (int k = 0; k < <LINES> && !falls; ++k, by *= real(0.5)) {
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r; real x[3];
for (int i = 0; i < rs; ++i) x[i] = cone_p(r + i) + by*cone_direction(r + i);
project(r, rs, x); for (int i = 0; i < rs; ++i) cone_trial(r + i) = x[i]; }
const real now = judge(at_trial, at_trial_u, at_trial_f, false, true);
if (now < (real(1.0) - real(0.1)*by)*left) { falls = true; left = now;
for (int r = 0; r < rows; ++r) { cone_p(r) = cone_trial(r); cone_u(r) = cone_trial_u(r); cone_f(r) = cone_trial_f(r); } } } }
error = judge(at_p, at_u, at_f, false, false);
if (error < best) { best = error; for (int r = 0; r < rows; ++r) cone_lambda(r) = cone_p(r); }
for (int r = 0; r < rows; ++r) cone_near(r) = cone_p(r);
if (falls || error <= <SMALL>*scale) continue;
// convex problems with the sliding speed as it is; λ is kept in `trial`, W λ + b in `trial_u`, Π in `q`
for (int r = 0; r < rows; ++r) cone_trial(r) = cone_p(r);
for (int turn = 0; turn < <SHIFTS>; ++turn) {
for (int e = 0; e < count; ++e) { const int r = element[e]; cone_shift(r) = element[e + 1] - r == 3 ?
wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0); }
const auto aim = [&](int e, real by, real* q) apart -> int { const int r = element[e], rs = element[e + 1] - r;
const real soft = <SOFT>*cone_weight(r);
for (int k = 0; k < rs;
++k) q[k] = cone_near(r + k) - (cone_trial_u(r + k) + by*cone_way(r + k) + (k == 0 ? cone_shift(r) : real(0.0)))/soft;
real x[3]; for (int k = 0; k < rs; ++k) x[k] = q[k];
const int part = project(r, rs, x); for (int k = 0; k < rs; ++k) cone_q(r + k) = x[k]; return part; };
for (int r = 0; r < rows; ++r) { cone_trial_u(r) = times_response(r, at_trial) + cone_b(r); cone_way(r) = real(0.0); }
for (int n = 0; n < <CONVEX>; ++n) {
real off = real(0.0); int size = 0;
for (int e = 0; e < count; ++e) { real q[3]; const int part = aim(e, real(0.0), q), r = element[e], rs = element[e + 1] - r;
cone_reach(r) = real(part);
for (int k = 0; k < rs; ++k) { const real g = cone_q(r + k) - cone_trial(r + k); cone_direction(r + k) = g;
cone_trial_f(r + k) = q[k];
off += cone_weight(r)*g*g; if (part > 0) active[size++] = r + k; } }
if (wp::sqrt(off) <= real(1e-6)*scale) break;
{ int e = 0, a = 0;
while (a < size) { while (element[e + 1] <= active[a]) ++e;
const int r = element[e], rs = element[e + 1] - r; const int part = (int)cone_reach(r); const real soft = <SOFT>*cone_weight(r);
real q[3]; for (int k = 0; k < rs; ++k) q[k] = cone_trial_f(r + k);
real known[3] = {real(0.0), real(0.0), real(0.0)};
for (int s = 0, b = 0; s < rows; ++s) { real x[3];
for (int k = 0; k < rs; ++k) { const int i = wp::max(r + k, s), j = wp::min(r + k, s); x[k] = response(i, j)/soft; }
project_rate(part, q, rs, x);
if (b < size && active[b] == s) { for (int k = 0; k < rs;
++k) cone_matrix(a + k, b) = (s == r + k ? real(1.0) : real(0.0)) + x[k]; ++b; }
else for (int k = 0; k < rs; ++k) known[k] -= x[k]*cone_direction(s); }
for (int k = 0; k < rs; ++k) cone_right(a + k) = cone_direction(r + k) + known[k];
a += rs; } }
if (!eliminate(size)) break;
for (int a = 0; a < size; ++a) cone_direction(active[a]) = cone_right(a);
real rise = real(0.0), slope = real(0.0);
for (int r = 0; r < rows; ++r) cone_way(r) = times_response(r, at_direction);
for (int r = 0; r < rows; ++r) { rise += cone_way(r)*cone_trial(r); slope += cone_way(r)*cone_direction(r); }
if (!(slope > real(0.0))) break;
const auto along = [&](real by, real& curve) apart -> real { real sum = rise + by*slope; curve = slope;
for (int e = 0; e < count; ++e) { real q[3], x[3]; const int part = aim(e, by, q), r = element[e], rs = element[e + 1] - r;
const real soft = <SOFT>*cone_weight(r);
for (int k = 0; k < rs; ++k) { sum -= cone_way(r + k)*cone_q(r + k); x[k] = cone_way(r + k); }
project_rate(part, q, rs, x); for (int k = 0; k < rs; ++k) curve += cone_way(r + k)*x[k]/soft; }
return sum; };
real curve, low = real(0.0), high = real(-1.0), by = real(1.0); const real start = along(real(0.0), curve);
for (int k = 0; k < 30; ++k) { const real now = along(by, curve);
if (wp::abs(now) <= real(0.1)*wp::abs(start)) break;
if (now < real(0.0)) low = by; else high = by;
const real next = by - now/curve;
if (high < real(0.0)) by = now < real(0.0) ? wp::max(next, real(1.5)*by) : next;
else by = next > low && next < high ? next : real(0.5)*(low + high); }
for (int r = 0; r < rows; ++r) { cone_trial(r) += by*cone_direction(r); cone_trial_u(r) += by*cone_way(r);
cone_way(r) = real(0.0); } }
for (int e = 0; e < count; ++e) { real q[3]; aim(e, real(0.0), q); }
for (int r = 0; r < rows; ++r) cone_p(r) = cone_q(r);
error = judge(at_p, at_u, at_f, false, false);
if (error < best) { best = error; for (int r = 0; r < rows; ++r) cone_lambda(r) = cone_p(r); }
if (error <= <SMALL>*scale) break; }
for (int r = 0; r < rows; ++r) cone_near(r) = cone_p(r); }
for (int r = 0; r < rows; ++r) cone_p(r) = cone_lambda(r);
return scale > real(0.0) ? best/scale : real(0.0); };
"""
