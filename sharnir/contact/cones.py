r"""Points of contact, dry friction and limits, solved together as one problem of cones and intervals.

Unknown are impulses p with speeds u = W p + b, W at least semi-definite and, but for rows of loops, symmetric. The rows are those
of *elements*:

    interval    one row: low ≤ p ≤ high; u = 0 inside, u ≥ 0 at low, u ≤ 0 at high (friction of an axis, a limit; a row of a loop,
                which has no bounds)
    cone        three rows: p₀ ≥ |(p₁, p₂)|, Coulomb's law of a point. Row 0 is the normal; the rows across are scaled by the
                coefficients of friction, so that the cone is a right circular one, whatever they are along and across

Coulomb's law is p = Π(p − ũ/w), Π the projection on the element's set, w any positive number, and ũ = u + |(u₁, u₂)| n (De Saxcé:
with the sliding speed added to the normal one, impulse and speed are those of the minimum of a quadratic on the cone). It is
solved by Newton's iteration with the derivative of this map, whose error has to fall in every step. Where it does not,
the term |(u₁, u₂)| is kept as it is, which makes the problem convex: the minimum of ½ λᵀWλ + Σ ψ(Wλ + b), smooth, with
−∂ψ/∂u = Π(p_k − u/R), is found by Newton's iteration with an exact search along each line, which cannot fail. Then the term is
renewed, and so on. W may be singular, as where a table stands on four legs: of all solutions about that near the last impulses is
taken, since a small R is added to the derivative of u.

W is never formed. With the joints' own equations made diagonal, W = K H + S: H (columns h of rows) spreads impulses over joint
speeds, K collects speeds of rows, S is diagonal, the rows' own compliance. Either iteration asks each element for g and G with
dp = g − G du, so that what impulses do to joint speeds follows from a matrix with a row for each speed, however many points there
are, and which has few entries where trees branch (`solve_joined`):

    (E + H G K) dη = H g,    du = K dη

Its rows begin at the first speed that shares an element with theirs (a skyline). From the leaves to the roots it fills nothing.
"""

NEAREST = {"double": 1e-8, "single": 3e-2}  # R of Newton's iteration, of the element's own response
SOFT = 1e-3  # R of the convex problem
SMALL = {"double": 1e-12, "single": 1e-6}  # error, of that without impulses, which counts as none,
ENOUGH = {"double": 1e-9, "single": 1e-5}  # and which is left as it is where it does not fall any more
LEFT = {"double": 1.0, "single": 4.0}  # or times the error of speeds that count as none; impulses with so small an error stay
FLAT = {"double": 0.0, "single": 0.25}  # of that error: what ends a convex problem
AS_FOUND = {"double": 1e-10, "single": 1e-5}  # error up to which impulses stay as they are: rounding of gaps, which is not
# to be met by impulses that rows which depend on each other leave open, would change these in every pass
NEWTONS, LINES, CONVEX, SHIFTS, ROUNDS = 10, 6, 30, 4, 5
"""Most steps of Newton's iteration; halvings of a step; steps for a convex problem; such problems in turn; rounds of both."""
VECTORS = ("p", "u", "q", "f", "b", "trial", "trial_u", "trial_f", "near", "direction", "best", "way", "g", "G0", "G1", "G2")
NUMBERS = ("weight", "pull", "shift", "part")
SPEEDS = ("eta", "row0", "row1", "row2")
"""Working memory: numbers of every row, of every row's element, where its first row is, and of every joint speed."""


def cone_memory(rows: int, speeds: int, entries: int) -> int:
    """Numbers of working memory for so many rows, joint speeds and entries of the skyline."""
    return (len(VECTORS) + len(NUMBERS)) * rows + len(SPEEDS) * speeds + 2 * entries


def cone_solver(real: str) -> str:
    """C++: `solve_cones(rows, count, speeds)`, which returns what error is left, of that without impulses.

    It uses what the code around it defines:

        number(k)       the working memory, from `at_cone` on
        element[e]      the first row of element e; `element[count]` = rows
        low_of(r), high_of(r)           bounds; `high_of` is less than 0 for a cone that is left out
        soft_of(r)      the row's compliance, less than 0 for a row of a loop that has no impulse
        is_loop(r)      whether the row is one of a loop, without bounds
        tiny_of(e)      a speed that counts as none
        size_of(e), where_of(e)         how many joint speeds the element has to do with, and which
        spread(at, i), collect(at, i)   the numbers h and k of a row there, which begin at `row_at(r)`
        sky_first[d], sky_start[d]      the first entry of row d of the matrix, and where column 0 of that row would be

    p has the impulses to begin with and those found, b the speeds with those to begin with.
    """
    kind = "double" if real == "double" else "single"
    numbers = {
        "NEAREST": NEAREST[kind], "SOFT": SOFT, "SMALL": SMALL[kind], "ENOUGH": ENOUGH[kind], "LEFT": LEFT[kind],
        "FLAT": FLAT[kind], "AS_FOUND": AS_FOUND[kind],
        "NEWTONS": NEWTONS, "LINES": LINES, "CONVEX": CONVEX, "SHIFTS": SHIFTS, "ROUNDS": ROUNDS,
    }  # fmt: skip
    of_rows = len(VECTORS) + len(NUMBERS)
    places = [f"#define cone_{name}(r) number(at_cone + {k}*rows + (r))" for k, name in enumerate((*VECTORS, *NUMBERS))]
    places += [f"#define cone_{name}(d) number(at_cone + {of_rows}*rows + {k}*speeds + (d))" for k, name in enumerate(SPEEDS)]
    at = f"at_cone + {of_rows}*rows + {len(SPEEDS)}*speeds"
    places.append(f"#define cone_lower(d, s) number({at} + 2*(sky_start[d] + (s)))")
    places.append(f"#define cone_upper(s, d) number({at} + 2*(sky_start[d] + (s)) + 1)")
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
const auto solve_cones = [&](const int rows, const int count, const int speeds) apart -> real {
const auto is_off = [&](int r) { return soft_of(r) < real(0.0); };
// joint speeds η = H x of impulses x, and speeds K η of a row
const auto spread_all = [&](const auto& x) apart { for (int d = 0; d < speeds; ++d) cone_eta(d) = real(0.0);
for (int e = 0; e < count; ++e) { const int size = size_of(e); const auto where = where_of(e);
for (int r = element[e]; r < element[e + 1]; ++r) { const real by = x(r); if (by == real(0.0)) continue; const int at = row_at(r);
for (int i = 0; i < size; ++i) cone_eta(where[i]) += spread(at, i)*by; } } };
const auto collect_one = [&](int e, int r) -> real { const int size = size_of(e), at = row_at(r);
const auto where = where_of(e); real sum = real(0.0);
for (int i = 0; i < size; ++i) sum += collect(at, i)*cone_eta(where[i]); return sum; };
// projection of the three or one numbers from r on, q in and out; what kind of part of the set it is on: 0 the tip or an end of
// the interval, 1 inside, 2 on the surface
const auto project = [&](int r, int size, real* q) apart -> int {
if (size == 1) { const real low = low_of(r), high = high_of(r);
if (is_loop(r)) { if (is_off(r)) { q[0] = real(0.0); return 0; } return 1; }
if (q[0] <= low) { q[0] = low; return 0; } if (q[0] >= high) { q[0] = high; return 0; } return 1; }
if (high_of(r) < real(0.0)) { q[0] = q[1] = q[2] = real(0.0); return 0; }
const real t = wp::sqrt(q[1]*q[1] + q[2]*q[2]);
if (t <= q[0]) return 1;
if (t <= -q[0]) { q[0] = q[1] = q[2] = real(0.0); return 0; }
const real k = real(0.5)*(q[0] + t), by = k/t; q[0] = k; q[1] *= by; q[2] *= by; return 2; };
// derivative of the projection at q, times the vector x
const auto project_rate = [&](int part, const real* q, int size, real* x) {
if (part == 1) return;
if (part == 0) { for (int k = 0; k < size; ++k) x[k] = real(0.0); return; }
const real t = wp::sqrt(q[1]*q[1] + q[2]*q[2]), d1 = q[1]/t, d2 = q[2]/t, k = real(0.5)*(q[0] + t)/t;
const real along = d1*x[1] + d2*x[2], across = d1*x[2] - d2*x[1];
const real n = real(0.5)*(x[0] + along);
x[0] = n; x[1] = d1*n - d2*(k*across); x[2] = d2*n + d1*(k*across); };
// speeds and errors of impulses: u, f from p
const auto judge = [&](const auto& p, const auto& u, const auto& f) apart -> real { real sum = real(0.0);
spread_all(p);
for (int e = 0; e < count; ++e) { const int r = element[e], size = element[e + 1] - r; real x[3], q[3];
const real w = cone_weight(r);
for (int k = 0; k < size; ++k) { real y = collect_one(e, r + k) + cone_b(r + k) + wp::max(soft_of(r + k), real(0.0))*p(r + k);
u(r + k) = y; x[k] = y; }
if (size == 3) x[0] += wp::sqrt(x[1]*x[1] + x[2]*x[2]);
for (int k = 0; k < size; ++k) q[k] = p(r + k) - x[k]/w;
project(r, size, q);
for (int k = 0; k < size; ++k) { const real y = p(r + k) - q[k]; f(r + k) = y; sum += w*y*y; } }
return wp::sqrt(sum); };
const auto at_p = [&](int r) -> real& { return cone_p(r); }; const auto at_u = [&](int r) -> real& { return cone_u(r); };
const auto at_f = [&](int r) -> real& { return cone_f(r); }; const auto at_trial = [&](int r) -> real& { return cone_trial(r); };
const auto at_trial_u = [&](int r) -> real& { return cone_trial_u(r); };
const auto at_trial_f = [&](int r) -> real& { return cone_trial_f(r); };
const auto at_direction = [&](int r) -> real& { return cone_direction(r); };
// g and G of an element from B dp + Q T du/v = c, where Q is the derivative of the projection at q, T = E + n dᵀ that of ũ, S the
// compliance; B = E − Q + Q (R + T S)/v for Coulomb's law (`natural`), E + Q (R + T S)/v for the convex problem
const auto answer = [&](int r, int size, int part, const real* q, real d1, real d2, real pull, real v, bool natural,
real* c) apart {
if (part == 0 || is_off(r)) { for (int k = 0; k < size; ++k) { cone_g(r + k) = c[k];
cone_G0(r + k) = cone_G1(r + k) = cone_G2(r + k) = real(0.0); } return; }
if (size == 1) { const real B = (natural ? real(0.0) : real(1.0)) + (pull + soft_of(r))/v; cone_g(r) = c[0]/B;
cone_G0(r) = real(1.0)/(v*B); cone_G1(r) = cone_G2(r) = real(0.0); return; }
real Q[3][3], A[3][3], B[3][3];
for (int j = 0; j < 3; ++j) { real x[3] = {real(0.0), real(0.0), real(0.0)}; x[j] = real(1.0); project_rate(part, q, 3, x);
for (int i = 0; i < 3; ++i) Q[i][j] = x[i]; }
for (int i = 0; i < 3; ++i) { A[i][0] = Q[i][0]/v; A[i][1] = (Q[i][1] + Q[i][0]*d1)/v; A[i][2] = (Q[i][2] + Q[i][0]*d2)/v; }
for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j)
B[i][j] = (i == j ? real(1.0) : real(0.0)) - (natural ? Q[i][j] : real(0.0))
+ Q[i][j]*(pull/v) + A[i][j]*soft_of(r + j);
real C[3][3];
for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) {
const int a = (i + 1) % 3, b = (i + 2) % 3, x = (j + 1) % 3, y = (j + 2) % 3;
C[j][i] = B[a][x]*B[b][y] - B[a][y]*B[b][x]; }
const real by = real(1.0)/(B[0][0]*C[0][0] + B[0][1]*C[1][0] + B[0][2]*C[2][0]);
for (int i = 0; i < 3; ++i) { real G[3], x = real(0.0);
for (int k = 0; k < 3; ++k) x += C[i][k]*c[k];
for (int j = 0; j < 3; ++j) { G[j] = real(0.0); for (int k = 0; k < 3; ++k) G[j] += C[i][k]*A[k][j]; }
cone_g(r + i) = x*by; cone_G0(r + i) = G[0]*by; cone_G1(r + i) = G[1]*by; cone_G2(r + i) = G[2]*by; } };
// direction = g − G du, where (E + H G K) dη = H g, du = K dη
const auto solve_joined = [&]() apart -> bool {
for (int d = 0; d < speeds; ++d) { for (int s = sky_first[d]; s < d; ++s) cone_lower(d, s) = cone_upper(s, d) = real(0.0);
cone_lower(d, d) = real(1.0); cone_eta(d) = real(0.0); }
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r, size = size_of(e), at = row_at(r);
const auto where = where_of(e);
for (int k = 0; k < rs; ++k) { const real by = cone_g(r + k); if (by == real(0.0)) continue; const int at = row_at(r + k);
for (int i = 0; i < size; ++i) cone_eta(where[i]) += spread(at, i)*by; }
if (cone_part(r) == real(0.0)) continue;
if (rs == 1) { const real G = cone_G0(r);
for (int i = 0; i < size; ++i) { const int d = where[i]; const real by = spread(at, i)*G;
for (int j = 0; j < size; ++j) { const int s = where[j];
if (s <= d) cone_lower(d, s) += by*collect(at, j); else cone_upper(d, s) += by*collect(at, j); } } continue; }
const int at_1 = row_at(r + 1), at_2 = row_at(r + 2);
for (int j = 0; j < size; ++j) { const real x = collect(at, j), y = collect(at_1, j), z = collect(at_2, j);
cone_row0(j) = cone_G0(r)*x + cone_G1(r)*y + cone_G2(r)*z;
cone_row1(j) = cone_G0(r + 1)*x + cone_G1(r + 1)*y + cone_G2(r + 1)*z;
cone_row2(j) = cone_G0(r + 2)*x + cone_G1(r + 2)*y + cone_G2(r + 2)*z; }
for (int i = 0; i < size; ++i) { const int d = where[i]; const real x = spread(at, i), y = spread(at_1, i), z = spread(at_2, i);
for (int j = 0; j < size; ++j) { const int s = where[j]; const real by = x*cone_row0(j) + y*cone_row1(j) + z*cone_row2(j);
if (s <= d) cone_lower(d, s) += by; else cone_upper(d, s) += by; } } }
// L U, L with a unit diagonal and U's diagonal, inverted, at lower(d, d)
for (int d = 0; d < speeds; ++d) { const int first = sky_first[d];
for (int s = first; s < d; ++s) { real lower = cone_lower(d, s), upper = cone_upper(s, d);
for (int k = wp::max(first, sky_first[s]); k < s; ++k) { lower -= cone_lower(d, k)*cone_upper(k, s);
upper -= cone_lower(s, k)*cone_upper(k, d); }
cone_lower(d, s) = lower*cone_lower(s, s); cone_upper(s, d) = upper; }
real own = cone_lower(d, d), x = cone_eta(d);
for (int k = first; k < d; ++k) { own -= cone_lower(d, k)*cone_upper(k, d); x -= cone_lower(d, k)*cone_eta(k); }
if (!(wp::abs(own) > real(0.0))) return false;
cone_lower(d, d) = real(1.0)/own; cone_eta(d) = x; }
for (int d = speeds - 1; d >= 0; --d) { const real x = cone_eta(d)*cone_lower(d, d); cone_eta(d) = x;
for (int k = sky_first[d]; k < d; ++k) cone_eta(k) -= cone_upper(k, d)*x; }
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r;
real u[3] = {real(0.0), real(0.0), real(0.0)};
const bool moves = cone_part(r) > real(0.0);
if (moves) for (int k = 0; k < rs; ++k) u[k] = collect_one(e, r + k);
for (int k = 0; k < rs; ++k) cone_direction(r + k) = cone_g(r + k)
- (moves ? cone_G0(r + k)*u[0] + cone_G1(r + k)*u[1] + cone_G2(r + k)*u[2] : real(0.0)); }
return true; };
spread_all(at_p);
for (int e = 0; e < count; ++e) for (int r = element[e]; r < element[e + 1]; ++r)
cone_b(r) -= collect_one(e, r) + wp::max(soft_of(r), real(0.0))*cone_p(r);
real scale = real(0.0), least = real(0.0);
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r, size = size_of(e);
const bool out = rs == 3 ? high_of(r) < real(0.0) : is_loop(r) ? is_off(r) : low_of(r) == high_of(r);
real w = real(0.0), s = real(0.0);
for (int k = 0; k < rs; ++k) { const int at = row_at(r + k); for (int i = 0; i < size; ++i) w += spread(at, i)*collect(at, i);
w += wp::max(soft_of(r + k), real(0.0)); s += cone_b(r + k)*cone_b(r + k); if (out) cone_p(r + k) = real(0.0);
cone_near(r + k) = cone_p(r + k); }
w /= real(rs); if (!(w > real(0.0))) w = real(1.0);
cone_weight(r) = w; cone_pull(r) = <NEAREST>*w; if (!out) { scale += s/w; least += tiny_of(e)*tiny_of(e)/w; } }
scale = wp::sqrt(scale); least = wp::max(wp::sqrt(least), <SMALL>*scale);
real error = judge(at_p, at_u, at_f);
if (error <= wp::max(<AS_FOUND>*scale, <LEFT>*least)) return scale > real(0.0) ? error/scale : real(0.0);
real best = error; for (int r = 0; r < rows; ++r) cone_best(r) = cone_p(r);
for (int round = 0; round < <ROUNDS> && !(error <= least); ++round) {
// Newton's iteration for Coulomb's law
bool falls = true;
for (int n = 0; n < <NEWTONS> && falls && !(error <= least); ++n) {
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r;
const real w = cone_weight(r); real q[3], x[3], c[3];
const real slide = rs == 3 ? wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0);
const real by = slide > real(0.0) ? real(1.0)/slide : real(0.0);
const real d1 = rs == 3 ? cone_u(r + 1)*by : real(0.0), d2 = rs == 3 ? cone_u(r + 2)*by : real(0.0);
for (int k = 0; k < rs; ++k) { q[k] = x[k] = cone_p(r + k) - (cone_u(r + k) + (k == 0 ? slide : real(0.0)))/w;
c[k] = -cone_f(r + k); }
const int part = project(r, rs, x); cone_part(r) = real(part);
answer(r, rs, part, q, d1, d2, cone_pull(r), w, true, c); }
if (!solve_joined()) break;
real by = real(1.0); falls = false;
for (int k = 0; k < <LINES> && !falls; ++k, by *= real(0.5)) {
for (int e = 0; e < count; ++e) { const int r = element[e], rs = element[e + 1] - r; real x[3];
for (int i = 0; i < rs; ++i) x[i] = cone_p(r + i) + by*cone_direction(r + i);
project(r, rs, x); for (int i = 0; i < rs; ++i) cone_trial(r + i) = x[i]; }
const real now = judge(at_trial, at_trial_u, at_trial_f);
if (now < (real(1.0) - real(0.1)*by)*error) { falls = true; error = now;
for (int r = 0; r < rows; ++r) { cone_p(r) = cone_trial(r); cone_u(r) = cone_trial_u(r); cone_f(r) = cone_trial_f(r); } } } }
if (error < best) { best = error; for (int r = 0; r < rows; ++r) cone_best(r) = cone_p(r); }
if (falls || error <= wp::max(<ENOUGH>*scale, <LEFT>*least)) { if (falls) continue; break; }
// convex problems with the sliding speed as it is; λ is kept in `trial`, W λ + b in `trial_u`, Π in `q`
for (int r = 0; r < rows; ++r) { cone_trial(r) = cone_p(r); if (!is_loop(r)) cone_near(r) = cone_p(r); }
const real renewed = round == 0 ? real(1.0) : real(0.5);  // of the sliding speed: where it would swing, half of it
for (int turn = 0; turn < (round == 0 ? 1 : 4)*<SHIFTS>; ++turn) {
for (int e = 0; e < count; ++e) { const int r = element[e]; const real by = turn == 0 ? real(1.0) : renewed;
cone_shift(r) = element[e + 1] - r == 3 ? (turn == 0 ? real(0.0) : (real(1.0) - by)*cone_shift(r))
+ by*wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0); }
const auto softened = [&](int r) { return is_loop(r) ? cone_pull(r) : <SOFT>*cone_weight(r); };
const auto aim = [&](int e, real by, real* q) apart -> int { const int r = element[e], rs = element[e + 1] - r;
const real soft = softened(r);
for (int k = 0; k < rs;
++k) q[k] = cone_near(r + k) - (cone_trial_u(r + k) + by*cone_way(r + k) + (k == 0 ? cone_shift(r) : real(0.0)))/soft;
real x[3]; for (int k = 0; k < rs; ++k) x[k] = q[k];
const int part = project(r, rs, x); for (int k = 0; k < rs; ++k) cone_q(r + k) = x[k]; return part; };
const auto respond = [&](const auto& x, const auto& u) { spread_all(x);
for (int e = 0; e < count; ++e) for (int r = element[e]; r < element[e + 1]; ++r)
u(r) = collect_one(e, r) + wp::max(soft_of(r), real(0.0))*x(r); };
const auto at_way = [&](int r) -> real& { return cone_way(r); };
respond(at_trial, at_trial_u);
for (int r = 0; r < rows; ++r) { cone_trial_u(r) += cone_b(r); cone_way(r) = real(0.0); }
for (int n = 0; n < <CONVEX>; ++n) {
real off = real(0.0);
for (int e = 0; e < count; ++e) { real q[3], c[3]; const int part = aim(e, real(0.0), q), r = element[e], rs = element[e + 1] - r;
cone_part(r) = real(part);
for (int k = 0; k < rs; ++k) { c[k] = cone_q(r + k) - cone_trial(r + k); off += cone_weight(r)*c[k]*c[k]; }
answer(r, rs, part, q, real(0.0), real(0.0), real(0.0), softened(r), false, c); }
if (wp::sqrt(off) <= wp::max(real(1e-6)*scale, <FLAT>*least)) break;
if (!solve_joined()) break;
real rise = real(0.0), slope = real(0.0);
respond(at_direction, at_way);
for (int r = 0; r < rows; ++r) { rise += cone_way(r)*cone_trial(r); slope += cone_way(r)*cone_direction(r); }
if (!(slope > real(0.0))) break;
const auto along = [&](real by, real& curve) apart -> real { real sum = rise + by*slope; curve = slope;
for (int e = 0; e < count; ++e) { real q[3], x[3]; const int part = aim(e, by, q), r = element[e], rs = element[e + 1] - r;
const real soft = softened(r);
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
for (int r = 0; r < rows; ++r) cone_p(r) = is_loop(r) ? cone_trial(r) : cone_q(r);
error = judge(at_p, at_u, at_f);
if (error < best) { best = error; for (int r = 0; r < rows; ++r) cone_best(r) = cone_p(r); }
if (error <= least) break; } }
for (int r = 0; r < rows; ++r) cone_p(r) = cone_best(r);
return best > least ? best/scale : real(0.0); };
"""
