r"""Points of contact, dry friction and limits, solved together as one problem of cones and intervals.

Unknown are impulses p with speeds u = W p + b, W at least semi-definite and, but for rows of loops, symmetric. The rows are those
of *elements*:

    interval    one row: low ≤ p ≤ high; u = 0 inside, u ≥ 0 at low, u ≤ 0 at high (friction of an axis, a limit; a row of a loop,
                which has no bounds)
    cone        three rows: p₀ ≥ |(p₁, p₂)|, Coulomb's law of a point. Row 0 is the normal; the rows across are scaled by the
                coefficients of friction, so that the cone is a right circular one, whatever they are along and across

Coulomb's law is p = Π(p − ũ/w), Π the projection on the element's set, w any positive number, and ũ = u + |(u₁, u₂)| n (De Saxcé:
with the sliding speed added to the normal one, impulse and speed are those of the minimum of a quadratic on the cone). It is
solved by Newton's iteration with the derivative of this map, whose error has to fall in every step. The map has kinks, where
points stick or slide, press or part; where the iteration stalls at one, the projection is replaced by a smooth one (Chen,
Harker, Kanzow, Smale): of the eigenvalues λ = q₀ ∓ |(q₁, q₂)| of a point q in the cone's algebra, max(0, λ) becomes

    φ(λ) = ½ (λ + √(λ² + 4μ²))

Newton's iteration follows the solution while μ falls to 0 (Hayashi, Yamashita, Fukushima 2005). W may be singular, as where a
table stands on four legs: of all solutions about that near the last impulses is taken, since a small R is added to the
derivative of u.

W is never formed: it is J M⁻¹ Jᵀ + S, M = L Δ⁻¹ Lᵀ the inertia in joint coordinates (`engine.tree.joint_speeds`), S diagonal, the
rows' own compliance. Friction and limits of an axis see one joint speed, points of contact those of the joints between them and
the ground. Either iteration asks each element for g and G with dp = g − G du, so that changes v of joint speeds follow from a
matrix with a row for each of these, however many points there are (`solve_joined`):

    (M + Jᵀ G J) v = Jᵀ g,    du = J v

Its rows begin at the first speed that shares an element or a branch with theirs (a skyline). From the leaves to the roots it
fills nothing. Sweeps know what a unit impulse leaves on the joints' own equations, h = L⁻¹ Jᵀ: W = hᵀ Δ h + S. Where few elements
are friction and limits of axes, so does Newton's iteration: then h takes the place of J, and Δ⁻¹ that of M.

Elements that share joint speeds, directly or through others, are an island. In heaps of free bodies the matrix of an island fills
up: these are swept, one element after the other, with the joint speeds kept up to date (block Gauss-Seidel, forth and back).
"""

NEAREST = {"double": 1e-8, "single": 3e-2}  # R of Newton's iteration, of the element's own response,
FIRMER, FIRMEST = 100.0, {"double": 2e-2, "single": 3e-2}  # by how much it grows where a step does not help, and at most
HELD = 1e30  # 1/Δ of joint speeds that laws lock
SMALL = {"double": 1e-12, "single": 1e-6}  # error, of that without impulses, which counts as none,
ENOUGH = {"double": 1e-9, "single": 1e-5}  # and which is left as it is where it does not fall any more
LEFT = {"double": 0.0, "single": 4.0}  # or times the error of speeds that count as none; impulses with so small an error stay
REPORTED = {
    "double": 1.0,
    "single": 80.0,
}  # times the same speeds: a smaller error counts as converged. In single precision
# such a speed is 4 roundings of the scene's speed; the solver aims at it, but sums over coupled links are less exact than that
REDUCED, NEAR_ENOUGH = 1e-5, {"double": 1e-8, "single": 1e-4}  # what an iteration in a step leaves of the error that it found,
# and at most of that without impulses: passes of the step that follow find the rest of it, reduced as their own errors are
AS_FOUND = {"double": 1e-10, "single": 1e-5}  # error up to which impulses stay as they are: rounding of gaps, which is not
# to be met by impulses that rows which depend on each other leave open, would change these in every pass
SMOOTH, SMOOTHEST, FALLS = 1e-4, 0.1, 0.2  # μ to begin with, at least and at most, of the scale; what a step leaves of it
FINER_PAIRED = 1e-3  # times that error, where M is not symmetric
NEWTONS, LEAPS, LINES, SMOOTHED, ROUNDS = 10, 2, 6, 40, 3
"""Most steps of Newton's iteration; steps in turn of which the last alone has to reduce the error, since others may only change
what sticks, slides or opens; halvings of a step; steps with a smooth projection; rounds of both."""
SWEPT, STOPPED, ELASTIC, PARTED = 1e-5, 1e-3, {"double": 1e-9, "single": 1e-5}, 0.1
"""Error to which islands are swept: in a step, in an impact, in one that throws back, whose energy it is, and where overlapping
bodies are displaced."""
FINER, CALM, NEARLY, CALMING = 0.3, 0.01, 10.0, 16
"""Of that error: the change by a sweep with which it is likely met; what a calm island is swept to, which misses no more than
`NEARLY` times that error to begin with, by at most `CALMING` sweeps."""
NEW = 0.01  # error, of that without impulses, from which on other points stick, slide or open, which a sweep finds at less cost
AGAIN, CHORD = 3, 0.1  # steps in turn with factors of a pass before, and what each has to leave of the error
FEW = 4  # times the joint speeds of an island, at least, of which few have friction or a limit
FEWEST, MOST_SWEPT, ELEMENTS = 25, 60, 12000
"""Most sweeps of an island in a step: as many as visit so many elements, between both bounds."""
LOOK = 8  # sweeps between looks at whether they stall
JOINTED, NEWTON, EITHER, SWEEPS = range(4)
"""Methods by which an island is solved: Newton's iteration, at kinks with a smooth projection; Newton's iteration, then sweeps;
sweeps, then Newton's iteration where they stall; sweeps alone."""
VECTORS = (
    "p",
    "u",
    "f",
    "b",
    "trial",
    "trial_u",
    "trial_f",
    "direction",
    "best",
    "start",
    "g",
    "G0",
    "G1",
    "G2",
    "W0",
    "W1",
    "W2",
    "B0",
    "B1",
    "B2",
)
NUMBERS = ("weight", "part")
ISLANDS = ("scale", "least", "usual", "factored", "rubs")
SPEEDS = ("eta", "row0", "row1", "row2", "delta")
ENTRIES = ("gain", "mass", "gain_up", "mass_up", "entry")
"""Working memory: numbers of every row, of every row's element, where its first row is, of every joint speed, of every island,
of which there are no more than joint speeds, and matrices: L and M within trees, what is above their diagonals, where M is not
symmetric (`paired`), and the one that is factored, in the skyline."""


def cone_memory(rows: int, speeds: int, own: int, entries: int) -> int:
    """Numbers of working memory for so many rows, joint speeds, entries of L and entries of the skyline."""
    return (len(VECTORS) + len(NUMBERS)) * rows + (len(SPEEDS) + len(ISLANDS)) * speeds + 2 * own + 2 * entries


def cone_solver(real: str) -> str:
    """C++: `solve_cones(rows, islands, speeds, sought, last)`, which returns what error is left, of that without impulses;
    0 where it is as small as it is sought.

    `sought` is the error to which islands are swept; `last`: it is not called again with the same responses.

    It uses what the code around it defines:

        number(k)       the working memory, from `at_cone` on
        element[e], rows_of(e)          the first row of element e, and how many it has: 3 of a cone, 1 of an interval
        first_element[i], first_speed[i]    those of island i: elements of different islands share no joint speed
        way_of(i)       the method by which island i is solved
        low_of(r), high_of(r)           bounds; `high_of` is less than 0 for a cone that is left out
        soft_of(r)      the row's compliance, less than 0 for a row of a loop that has no impulse
        is_loop(r)      whether the row is one of a loop, without bounds
        tiny_of(e)      a speed that counts as none
        usual_of(e)     a speed that is usual: sweeps leave no error that is small for it
        size_of(e), where_of(e)         how many joint speeds impulses of the element leave something on, and which
        many_of(e)                      how many of these, the first ones, the element sees
        along(at, i), left(at, i)       the numbers J and h of a row there, which begin at `row_at(r)`
        stride                          between numbers of working memory
        own_first[d], own_start[d]      the first entry of row d of L and of M, and where column 0 of that row would be
        sky_first[d], sky_start[d]      the same of the matrix that is factored

    p has the impulses to begin with and those found, b the speeds with those to begin with.
    """
    kind = "double" if real == "double" else "single"
    numbers = {
        "HELD": HELD, "NEAREST": NEAREST[kind], "FIRMER": FIRMER, "FIRMEST": FIRMEST[kind], "STOPPED": STOPPED,
        "SMALL": SMALL[kind], "ENOUGH": ENOUGH[kind], "AS_FOUND": AS_FOUND[kind], "LEFT": LEFT[kind], "REPORTED": REPORTED[kind],
        "REDUCED": REDUCED, "NEAR_ENOUGH": NEAR_ENOUGH[kind],
        "SMOOTH": SMOOTH, "SMOOTHEST": SMOOTHEST, "FALLS": FALLS,
        "FINER": FINER, "CALM": CALM, "NEARLY": NEARLY, "CALMING": CALMING,
        "NEW": NEW, "AGAIN": AGAIN, "CHORD": CHORD, "FEW": FEW,
        "FEWEST": FEWEST, "MOST_SWEPT": MOST_SWEPT, "ELEMENTS": ELEMENTS, "LOOK": LOOK,
        "JOINTED": JOINTED, "NEWTON": NEWTON, "EITHER": EITHER, "SWEEPS": SWEEPS,
        "FINER_PAIRED": FINER_PAIRED, "NEWTONS": NEWTONS, "LEAPS": LEAPS, "LINES": LINES, "SMOOTHED": SMOOTHED, "ROUNDS": ROUNDS,
    }  # fmt: skip
    of_rows = len(VECTORS) + len(NUMBERS)
    places = [f"#define cone_{name}(r) number(at_cone + {k}*rows + (r))" for k, name in enumerate((*VECTORS, *NUMBERS))]
    of_speeds = enumerate((*SPEEDS, *ISLANDS))
    places += [f"#define cone_{name}(d) number(at_cone + {of_rows}*rows + {k}*speeds + (d))" for k, name in of_speeds]
    at = f"at_cone + {of_rows}*rows + {len(SPEEDS) + len(ISLANDS)}*speeds"
    shifts = ("", *(f" + {n}*own_start[speeds]" for n in ("1", "2", "3", "(paired ? 4 : 2)")))
    places += [f"#define cone_{name}(k) number({at}{shift} + (k))" for name, shift in zip(ENTRIES, shifts, strict=True)]
    text = SOLVER
    for name, x in numbers.items():
        text = text.replace(f"<{name}>", repr(x) if isinstance(x, int) else f"real({x!r})")
    return "\n".join([APART, EVERY_ROW, *places, text, "#undef apart", "#undef every_row"])


APART = """#ifdef __CUDA_ARCH__
#define apart
#else
#define apart __attribute__((noinline))
#endif"""  # functions that stay such: else they are compiled several times
EVERY_ROW = "#define every_row(e, r) for (int e = from; e < to; ++e) for (int r = element[e]; r < element[e] + rows_of(e); ++r)"
SOLVER = r"""
#ifndef is_paired
#define is_paired false
#define own_weight(e) real(0.0)
#endif
const bool paired = is_paired;  // M is not symmetric
const real finer = paired ? real(<FINER_PAIRED>) : real(1.0);
int swept = 0; bool helped = false;  // sweeps in the step that is made, and whether Newton's iteration helped them
bool weighed = false, opened = false, massed = false;  // whether own responses, errors without impulses, and M are known
bool by_left = false;  // whether h takes the place of J
// L⁻¹ and L⁻ᵀ of what is in `eta`: what impulses leave on the joints' own equations, and speeds, of what joints do by themselves
const auto leave_on = [&](const int rows, const int speeds, const int begin, const int end) apart {
for (int d = begin; d < end; ++d) { const int row = own_start[d]; real sum = cone_eta(d);
for (int k = own_first[d]; k < d; ++k) sum -= cone_gain(row + k)*cone_eta(k);
cone_eta(d) = sum; } };
const auto follow_from = [&](const int rows, const int speeds, const int begin, const int end) apart {
for (int d = end - 1; d >= begin; --d) { const int row = own_start[d]; const real by = cone_eta(d);
for (int k = own_first[d]; k < d; ++k) cone_eta(k) -= (paired ? cone_gain_up(row + k) : cone_gain(row + k))*by; } };
// h of an element's rows; of a row of a loop, which has it, J
const auto leave_left = [&](const int e, const int rows, const int speeds) apart {
const int size = size_of(e), many = many_of(e), r = element[e], at = row_at(r); const auto where = where_of(e);
if (rows_of(e) == 1) { const bool loop = is_loop(r);
for (int i = 0; i < size; ++i) { const int d = where[i], first = own_first[d], row = own_start[d];
real sum = loop ? -left(at, i) : i < many ? along(at, i) : real(0.0);
for (int j = 0; j < i; ++j) if (where[j] >= first && where[j] < d) sum -= cone_gain(row + where[j])*left(at, j);
if (loop) along(at, i) = -sum; else left(at, i) = sum; }
return; }
const int at_1 = row_at(r + 1), at_2 = row_at(r + 2);
for (int i = 0; i < size; ++i) { const int d = where[i], first = own_first[d], row = own_start[d];
real x = along(at, i), y = along(at_1, i), z = along(at_2, i);
for (int j = 0; j < i; ++j) if (where[j] >= first && where[j] < d) { const real by = cone_gain(row + where[j]);
x -= by*left(at, j); y -= by*left(at_1, j); z -= by*left(at_2, j); }
left(at, i) = x; left(at_1, i) = y; left(at_2, i) = z; } };
// with new factors of the forest: whether h takes the place of J, where few rows see one joint speed alone
const auto choose_way = [&](const int rows, const int speeds, const int islands) apart { massed = false; int axes = 0;
for (int e = 0; e < first_element[islands]; ++e) axes += many_of(e) < size_of(e);
by_left = !paired && <FEW>*axes <= speeds;
for (int i = 0; i < islands; ++i) cone_factored(i) = real(0.0); };
// what of h and J is not known of rows with several joint speeds
const auto couple_joints = [&](const int rows, const int speeds, const int islands) apart { if (by_left) return;
for (int e = 0; e < first_element[islands]; ++e) if (many_of(e) == size_of(e)) leave_left(e, rows, speeds); };
const auto find_mass = [&](const int rows, const int speeds) apart { massed = true;
for (int d = 0; d < speeds; ++d) { const int row = own_start[d], first = own_first[d]; const real delta = cone_delta(d);
const real own = delta > real(0.0) ? real(1.0)/delta : real(<HELD>); cone_row0(d) = own;
for (int s = first; s <= d; ++s) { const int other = own_start[s];
real sum = s == d ? own : cone_gain(row + s)*cone_row0(s);
for (int k = wp::max(first, own_first[s]); k < s; ++k)
sum += cone_gain(row + k)*(s == d ? cone_gain(row + k) : cone_gain(other + k))*cone_row0(k);
cone_mass(row + s) = sum;
if (!paired) continue;
real back = s == d ? own : cone_row0(s)*cone_gain_up(row + s);
sum = s == d ? own : cone_gain(row + s)*cone_row0(s);
for (int k = wp::max(first, own_first[s]); k < s; ++k) {
back += (s == d ? cone_gain(row + k) : cone_gain(other + k))*cone_row0(k)*cone_gain_up(row + k);
sum += cone_gain(row + k)*cone_row0(k)*(s == d ? cone_gain_up(row + k) : cone_gain_up(other + k)); }
cone_mass(row + s) = sum; cone_mass_up(row + s) = back; } } };
#define leave_on_joints(begin, end) leave_on(rows, speeds, begin, end)
#define follow_joints(begin, end) follow_from(rows, speeds, begin, end)
const auto solve_cones = [&](const int rows, const int islands, const int speeds, const real sought, const bool last)
apart -> real {
int from = 0, to = 0, begin = 0, end = 0, swept_now = 0;  // elements and joint speeds of the island that is solved, sweeps
const real* const seen = by_left ? &left(0, 0) : &along(0, 0);  // numbers of rows, which stand one after the other
const auto many_seen = [&](int e) { return by_left ? size_of(e) : many_of(e); };
const auto is_off = [&](int r) { return soft_of(r) < real(0.0); };
// joint speeds of impulses x, and the speed of a row by joint speeds; with h, by what each joint does by itself, Δ h x
const auto spread_all = [&](const auto& x) apart { for (int d = begin; d < end; ++d) cone_eta(d) = real(0.0);
for (int e = from; e < to; ++e) { const int many = many_seen(e); const auto where = where_of(e);
for (int r = element[e], stop = r + rows_of(e); r < stop; ++r) { const real by = x(r); if (by == real(0.0)) continue;
const int at = row_at(r);
for (int i = 0; i < many; ++i) cone_eta(where[i]) += seen[stride*(at + i)]*by; } }
if (!by_left) leave_on_joints(begin, end);
for (int d = begin; d < end; ++d) cone_eta(d) *= cone_delta(d); };
const auto move_all = [&](const auto& x) apart { spread_all(x); if (!by_left) follow_joints(begin, end); };
const auto collect_one = [&](int e, int r) -> real { const int many = many_seen(e), at = row_at(r);
const auto where = where_of(e); real sum = real(0.0);
for (int i = 0; i < many; ++i) sum += seen[stride*(at + i)]*cone_eta(where[i]); return sum; };
const auto collect_left = [&](int e, int r) -> real { const int size = size_of(e), at = row_at(r);
const auto where = where_of(e); real sum = real(0.0);
for (int i = 0; i < size; ++i) sum += left(at, i)*cone_eta(where[i]); return sum; };
real scale = real(0.0), least = real(0.0), usual = real(0.0), error = real(0.0), mu = real(0.0), hold = <NEAREST>;
// max(0, x) and its derivative, smooth where m > 0
const auto positive = [&](real x, real m, real& rate) -> real {
if (m == real(0.0)) { rate = x > real(0.0) ? real(1.0) : real(0.0); return wp::max(x, real(0.0)); }
const real root = wp::sqrt(x*x + real(4.0)*m*m); rate = real(0.5)*(real(1.0) + x/root);
return x > real(0.0) ? real(0.5)*(x + root) : real(2.0)*m*m/(root - x); };
// projection of the three or one numbers from r on, q in and out, and its derivative, by `rates`: of a number, or along the
// normal, along the friction to itself and to the normal, across it; its direction. Whether the derivative is not zero
const auto project = [&](int r, int size, real m, real* q, real* rates) apart -> bool {
if (size == 1) { const real low = low_of(r), high = high_of(r); rates[0] = real(1.0);
if (is_loop(r)) { if (is_off(r)) { q[0] = rates[0] = real(0.0); return false; } return true; }
if (low < real(-1e29)) return true;
const real x = q[0];
if (m == real(0.0)) { q[0] = wp::min(wp::max(x, low), high); rates[0] = x > low && x <= high ? real(1.0) : real(0.0);
return rates[0] != real(0.0); }
if (high - low < real(10.0)*m) m = real(0.1)*(high - low);
real more; q[0] = low + positive(x - low, m, rates[0]) - positive(x - high, m, more);
rates[0] -= more; return rates[0] != real(0.0); }
rates[0] = rates[1] = rates[2] = rates[4] = real(0.0); rates[3] = real(1.0);
if (high_of(r) < real(0.0)) { q[0] = q[1] = q[2] = real(0.0); return false; }
const real t = wp::sqrt(q[1]*q[1] + q[2]*q[2]), n = q[0];
if (t > real(0.0)) { rates[3] = q[1]/t; rates[4] = q[2]/t; }
if (m == real(0.0)) {
if (t < n) { rates[0] = rates[2] = real(1.0); return true; }
if (t <= -n) { q[0] = q[1] = q[2] = real(0.0); return false; }
const real k = real(0.5)*(n + t); rates[0] = rates[1] = real(0.5); rates[2] = k/t;
q[0] = k; q[1] = rates[3]*k; q[2] = rates[4]*k; return true; }
real low_rate, high_rate; const real low = positive(n - t, m, low_rate), high = positive(n + t, m, high_rate);
rates[0] = real(0.5)*(low_rate + high_rate); rates[1] = real(0.5)*(high_rate - low_rate);
rates[2] = t > real(1e-3)*m ? real(0.5)*(high - low)/t : rates[0];
const real k = real(0.5)*(high - low); q[0] = real(0.5)*(low + high); q[1] = rates[3]*k; q[2] = rates[4]*k;
return high_rate != real(0.0); };
// speeds and errors of impulses: u, f from p
const auto judge = [&](const auto& p, const auto& u, const auto& f) apart -> real { real sum = real(0.0);
move_all(p);
for (int e = from; e < to; ++e) { const int r = element[e], size = rows_of(e); real x[3], q[3], rates[5];
const real w = cone_weight(r);
for (int k = 0; k < size; ++k) { real y = collect_one(e, r + k) + cone_b(r + k) + wp::max(soft_of(r + k), real(0.0))*p(r + k);
u(r + k) = y; x[k] = y; }
if (size == 3) x[0] += wp::sqrt(x[1]*x[1] + x[2]*x[2]);
for (int k = 0; k < size; ++k) q[k] = p(r + k) - x[k]/w;
project(r, size, mu*scale/wp::sqrt(w), q, rates);
for (int k = 0; k < size; ++k) { const real y = p(r + k) - q[k]; f(r + k) = y; sum += w*y*y; } }
return wp::sqrt(sum); };
const auto at_p = [&](int r) -> real& { return cone_p(r); }; const auto at_u = [&](int r) -> real& { return cone_u(r); };
const auto at_f = [&](int r) -> real& { return cone_f(r); }; const auto at_trial = [&](int r) -> real& { return cone_trial(r); };
const auto at_trial_u = [&](int r) -> real& { return cone_trial_u(r); };
const auto at_trial_f = [&](int r) -> real& { return cone_trial_f(r); };
// g and G of an element from B dp + Q T du/w = −f, where Q is the derivative of the projection, T = E + n dᵀ that of ũ, S the
// compliance; B = E − Q + Q (R + T S)/w
const auto answer = [&](int e) apart { const int r = element[e], size = rows_of(e); const real w = cone_weight(r);
real q[3], rates[5]; const real pull = hold*w;
const real slide = size == 3 ? wp::sqrt(cone_u(r + 1)*cone_u(r + 1) + cone_u(r + 2)*cone_u(r + 2)) : real(0.0);
const real by_slide = slide > real(0.0) ? real(1.0)/slide : real(0.0);
for (int k = 0; k < size; ++k) q[k] = cone_p(r + k) - (cone_u(r + k) + (k == 0 ? slide : real(0.0)))/w;
const bool moves = project(r, size, mu*scale/wp::sqrt(w), q, rates);
cone_part(r) = moves ? real(1.0) : real(0.0);
if (!moves) { for (int k = 0; k < size; ++k) { cone_g(r + k) = -cone_f(r + k);
cone_G0(r + k) = cone_G1(r + k) = cone_G2(r + k) = real(0.0); } return; }
if (size == 1) { const real Q = rates[0], B = real(1.0) - Q + Q*(pull + soft_of(r))/w; cone_g(r) = -cone_f(r)/B;
cone_B0(r) = real(1.0)/B; cone_G0(r) = Q/(w*B); cone_G1(r) = cone_G2(r) = real(0.0); return; }
const real d1 = cone_u(r + 1)*by_slide, d2 = cone_u(r + 2)*by_slide, x = rates[3], y = rates[4];
const real along = rates[0], across = rates[2], mixed = rates[1];
const real Q[3][3] = {{along, mixed*x, mixed*y}, {mixed*x, along*x*x + across*y*y, (along - across)*x*y},
{mixed*y, (along - across)*x*y, along*y*y + across*x*x}};
real A[3][3], B[3][3];
for (int i = 0; i < 3; ++i) { A[i][0] = Q[i][0]/w; A[i][1] = (Q[i][1] + Q[i][0]*d1)/w; A[i][2] = (Q[i][2] + Q[i][0]*d2)/w; }
for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j)
B[i][j] = (i == j ? real(1.0) : real(0.0)) - Q[i][j] + Q[i][j]*(pull/w) + A[i][j]*wp::max(soft_of(r + j), real(0.0));
real C[3][3];
for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) {
const int a = (i + 1) % 3, b = (i + 2) % 3, x = (j + 1) % 3, y = (j + 2) % 3;
C[j][i] = B[a][x]*B[b][y] - B[a][y]*B[b][x]; }
const real by = real(1.0)/(B[0][0]*C[0][0] + B[0][1]*C[1][0] + B[0][2]*C[2][0]);
for (int i = 0; i < 3; ++i) { real G[3], sum = real(0.0);
for (int k = 0; k < 3; ++k) sum -= C[i][k]*cone_f(r + k);
for (int j = 0; j < 3; ++j) { G[j] = real(0.0); for (int k = 0; k < 3; ++k) G[j] += C[i][k]*A[k][j]; }
cone_B0(r + i) = C[i][0]*by; cone_B1(r + i) = C[i][1]*by; cone_B2(r + i) = C[i][2]*by;
cone_g(r + i) = sum*by; cone_G0(r + i) = G[0]*by; cone_G1(r + i) = G[1]*by; cone_G2(r + i) = G[2]*by; } };
// M + Jᵀ G J, or the same with Δ⁻¹ and h, factored
const auto factor_joined = [&]() apart -> bool {
if (!massed && !by_left) find_mass(rows, speeds);
for (int d = begin; d < end; ++d) { const int row = 2*sky_start[d], own = own_start[d], first = by_left ? d : own_first[d];
for (int k = row + 2*sky_first[d]; k < row + 2*first; ++k) cone_entry(k) = real(0.0);
if (by_left) cone_entry(row + 2*d) = cone_delta(d) > real(0.0) ? real(1.0)/cone_delta(d) : real(<HELD>);
else for (int k = first; k <= d; ++k) { cone_entry(row + 2*k) = cone_mass(own + k);
cone_entry(row + 2*k + 1) = paired ? cone_mass_up(own + k) : cone_mass(own + k); } }
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e), many = many_seen(e), at = row_at(r);
const auto where = where_of(e);
if (cone_part(r) == real(0.0)) continue;
if (rs == 1) { const real G = cone_G0(r);
for (int j = 0; j < many; ++j) { const int d = where[j], row = 2*sky_start[d]; const real y = seen[stride*(at + j)]*G;
for (int i = 0; i < j; ++i) { const int s = where[i]; const real both = seen[stride*(at + i)]*y;
const int place = s < d ? row + 2*s : 2*(sky_start[s] + d);
cone_entry(place) += both; cone_entry(place + 1) += both; }
cone_entry(row + 2*d) += seen[stride*(at + j)]*y; } continue; }
const int at_1 = row_at(r + 1), at_2 = row_at(r + 2);
for (int j = 0; j < many; ++j) { const real x = seen[stride*(at + j)], y = seen[stride*(at_1 + j)], z = seen[stride*(at_2 + j)];
cone_row0(j) = cone_G0(r)*x + cone_G1(r)*y + cone_G2(r)*z;
cone_row1(j) = cone_G0(r + 1)*x + cone_G1(r + 1)*y + cone_G2(r + 1)*z;
cone_row2(j) = cone_G0(r + 2)*x + cone_G1(r + 2)*y + cone_G2(r + 2)*z; }
for (int j = 0; j < many; ++j) { const int d = where[j], row = 2*sky_start[d];
const real x = seen[stride*(at + j)], y = seen[stride*(at_1 + j)], z = seen[stride*(at_2 + j)];
const real a = cone_row0(j), b = cone_row1(j), c = cone_row2(j);
for (int i = 0; i < j; ++i) { const int s = where[i];
const real lower = x*cone_row0(i) + y*cone_row1(i) + z*cone_row2(i);
const real upper = seen[stride*(at + i)]*a + seen[stride*(at_1 + i)]*b + seen[stride*(at_2 + i)]*c;
const bool order = s < d; const int place = order ? row + 2*s : 2*(sky_start[s] + d);
cone_entry(place) += order ? lower : upper; cone_entry(place + 1) += order ? upper : lower; }
cone_entry(row + 2*d) += x*a + y*b + z*c; } }
// L U, L with a unit diagonal and U's diagonal, inverted, on the diagonal: of row d the pairs L(d, k), U(k, d)
for (int d = begin; d < end; ++d) { const int first = sky_first[d], row = 2*sky_start[d];
for (int s = first; s < d; ++s) { const int other = 2*sky_start[s];
real lower = cone_entry(row + 2*s), upper = cone_entry(row + 2*s + 1);
for (int k = 2*wp::max(first, sky_first[s]); k < 2*s; k += 2) { lower -= cone_entry(row + k)*cone_entry(other + k + 1);
upper -= cone_entry(other + k)*cone_entry(row + k + 1); }
cone_entry(row + 2*s) = lower*cone_entry(other + 2*s); cone_entry(row + 2*s + 1) = upper; }
real own = cone_entry(row + 2*d);
for (int k = first; k < d; ++k) own -= cone_entry(row + 2*k)*cone_entry(row + 2*k + 1);
if (!(wp::abs(own) > real(0.0))) return false;
cone_entry(row + 2*d) = real(1.0)/own; }
return true; };
// direction = g − G du, where (M + Jᵀ G J) v = Jᵀ g, du = J v, with the factors that there are
const auto take_direction = [&]() apart {
for (int d = begin; d < end; ++d) cone_eta(d) = real(0.0);
for (int e = from; e < to; ++e) { const int many = many_seen(e); const auto where = where_of(e);
for (int r = element[e], stop = r + rows_of(e); r < stop; ++r) { const real by = cone_g(r); if (by == real(0.0)) continue;
const int at = row_at(r);
for (int i = 0; i < many; ++i) cone_eta(where[i]) += seen[stride*(at + i)]*by; } }
for (int d = begin; d < end; ++d) { const int row = 2*sky_start[d]; real x = cone_eta(d);
for (int k = sky_first[d]; k < d; ++k) x -= cone_entry(row + 2*k)*cone_eta(k);
cone_eta(d) = x; }
for (int d = end - 1; d >= begin; --d) { const int row = 2*sky_start[d];
const real x = cone_eta(d)*cone_entry(row + 2*d); cone_eta(d) = x;
for (int k = sky_first[d]; k < d; ++k) cone_eta(k) -= cone_entry(row + 2*k + 1)*x; }
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e);
real u[3] = {real(0.0), real(0.0), real(0.0)};
const bool moves = cone_part(r) > real(0.0);
if (moves) for (int k = 0; k < rs; ++k) u[k] = collect_one(e, r + k);
for (int k = 0; k < rs; ++k) cone_direction(r + k) = cone_g(r + k)
- (moves ? cone_G0(r + k)*u[0] + cone_G1(r + k)*u[1] + cone_G2(r + k)*u[2] : real(0.0)); } };
const auto solve_joined = [&]() apart -> bool { if (!factor_joined()) return false;
take_direction(); return true; };
// own responses of elements, and how large they are
const auto weigh = [&]() apart { for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e), size = size_of(e);
const auto where = where_of(e);
real w = real(0.0);
if (many_seen(e) < size) { const real by = along(row_at(r), 0); w = by*by*cone_delta(where[0]);  // as with its base at rest
w = wp::max(w, own_weight(e)); cone_weight(r) = w > real(0.0) ? w : real(1.0); continue; }
for (int k = 0; k < rs; ++k) { real x = real(0.0), y = real(0.0), z = real(0.0); const int at = row_at(r + k);
const int at_1 = row_at(r + rs/2), at_2 = row_at(r + rs - 1);
for (int i = 0; i < size; ++i) { const real by = left(at, i)*cone_delta(where[i]);
x += by*left(row_at(r), i); if (rs == 3) { y += by*left(at_1, i); z += by*left(at_2, i); } }
const real soft = wp::max(soft_of(r + k), real(0.0));
x += k == 0 ? soft : real(0.0); y += k == 1 ? soft : real(0.0); z += k == 2 ? soft : real(0.0);
cone_W0(r + k) = x; cone_W1(r + k) = y; cone_W2(r + k) = z; w += k == 0 ? x : k == 1 ? y : z; }
w /= real(rs); w = wp::max(w, own_weight(e)); if (!(w > real(0.0))) w = real(1.0);
cone_weight(r) = w; } };
// one element after the other, in place: what impulses leave on joints follows them
const auto sweep_once = [&](bool back) apart -> real { real sum = real(0.0);
for (int k = from; k < to; ++k) { const int e = back ? from + to - 1 - k : k, r = element[e], size = size_of(e);
const auto where = where_of(e); const real w = cone_weight(r);
if (rows_of(e) == 1) { const real own = cone_W0(r); if ((is_loop(r) && is_off(r)) || !(own > real(0.0))) continue;
real rates[5]; const real p = cone_p(r); real q = p - (collect_left(e, r) + cone_b(r) + wp::max(soft_of(r), real(0.0))*p)/own;
project(r, 1, real(0.0), &q, rates); const real by = q - p; if (by == real(0.0)) continue;
cone_p(r) = q; sum += w*by*by; const int at = row_at(r);
for (int i = 0; i < size; ++i) cone_eta(where[i]) += cone_delta(where[i])*left(at, i)*by; continue; }
if (high_of(r) < real(0.0)) continue;
const int at = row_at(r), at_1 = row_at(r + 1), at_2 = row_at(r + 2);
const real p0 = cone_p(r), p1 = cone_p(r + 1), p2 = cone_p(r + 2);
real u0 = cone_b(r) + wp::max(soft_of(r), real(0.0))*p0, u1 = cone_b(r + 1) + wp::max(soft_of(r + 1), real(0.0))*p1;
real u2 = cone_b(r + 2) + wp::max(soft_of(r + 2), real(0.0))*p2;
for (int i = 0; i < size; ++i) { const real x = cone_eta(where[i]);
u0 += left(at, i)*x; u1 += left(at_1, i)*x; u2 += left(at_2, i)*x; }
const real own = cone_W0(r); if (!(own > real(0.0))) continue;
const real normal = wp::max(real(0.0), p0 - u0/own), by = normal - p0;
u1 += cone_W0(r + 1)*by; u2 += cone_W0(r + 2)*by;
const real a = cone_W1(r + 1), b = real(0.5)*(cone_W2(r + 1) + cone_W1(r + 2)), c = cone_W2(r + 2), det = a*c - b*b;
real q1 = p1, q2 = p2;
if (det > <SMALL>*a*c) { q1 -= (c*u1 - b*u2)/det; q2 -= (a*u2 - b*u1)/det; }
real size_2 = q1*q1 + q2*q2;
if (size_2 > normal*normal || !(det > <SMALL>*a*c)) {
const real most = real(0.5)*(a + c + wp::sqrt((a - c)*(a - c) + real(4.0)*b*b));
const real share = most > real(0.0) ? real(1.0)/most : real(0.0);
q1 = p1 - u1*share; q2 = p2 - u2*share; size_2 = q1*q1 + q2*q2;
if (size_2 > normal*normal) { const real cut = normal/wp::sqrt(size_2); q1 *= cut; q2 *= cut; } }
const real by_1 = q1 - p1, by_2 = q2 - p2; sum += w*(by*by + by_1*by_1 + by_2*by_2);
cone_p(r) = normal; cone_p(r + 1) = q1; cone_p(r + 2) = q2;
for (int i = 0; i < size; ++i)
cone_eta(where[i]) += cone_delta(where[i])*(left(at, i)*by + left(at_1, i)*by_1 + left(at_2, i)*by_2); }
return wp::sqrt(sum); };
// sweeps forth and back in turn; where they stall, and others may go on, fewer; returns how many
const auto sweep = [&](real goal, int most, bool others) apart -> int { spread_all(at_p);
for (int e = from; e < to; ++e) if (many_seen(e) < size_of(e)) { leave_left(e, rows, speeds);
const int size = size_of(e), at = row_at(element[e]); const auto where = where_of(e); real own = real(0.0);
for (int i = 0; i < size; ++i) own += left(at, i)*left(at, i)*cone_delta(where[i]);
cone_W0(element[e]) = own + wp::max(soft_of(element[e]), real(0.0)); }
real last = real(-1.0); int n = 0;
while (n < most) { const real now = sweep_once(n % 2 == 1); ++n;
if (now <= goal) break;
if (n % <LOOK> == 0) { const real rate = now/last;
if (others && last > real(0.0) && (most - n)*wp::log(rate) > <LOOK>*wp::log(goal/now)) break; last = now; } }
return n; };
// error of impulses whose speeds u are known
const auto measure = [&]() apart -> real { real sum = real(0.0);
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e); real x[3], q[3], rates[5];
const real w = cone_weight(r);
for (int k = 0; k < rs; ++k) x[k] = cone_u(r + k);
if (rs == 3) x[0] += wp::sqrt(x[1]*x[1] + x[2]*x[2]);
for (int k = 0; k < rs; ++k) q[k] = cone_p(r + k) - x[k]/w;
project(r, rs, real(0.0), q, rates);
for (int k = 0; k < rs; ++k) { const real y = cone_p(r + k) - q[k]; cone_f(r + k) = y; sum += w*y*y; } }
return wp::sqrt(sum); };
// error of the impulses to begin with; `full`: with what is needed to find others
const auto open_island = [&](int island, bool full) apart -> bool {
if (!weighed) weigh();
every_row(e, r) cone_u(r) = cone_b(r);
if (full || !opened) { move_all(at_p); scale = least = usual = real(0.0); bool moved = false;
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e); real s = real(0.0);
const bool out = rs == 3 ? high_of(r) < real(0.0) : is_loop(r) ? is_off(r) : low_of(r) == high_of(r);
for (int k = 0; k < rs; ++k) { cone_b(r + k) -= collect_one(e, r + k) + wp::max(soft_of(r + k), real(0.0))*cone_p(r + k);
s += cone_b(r + k)*cone_b(r + k); if (out && cone_p(r + k) != real(0.0)) { cone_p(r + k) = real(0.0); moved = true; } }
if (!out) { scale += s/cone_weight(r); least += tiny_of(e)*tiny_of(e)/cone_weight(r);
usual += usual_of(e)*usual_of(e)/cone_weight(r); } }
scale = wp::sqrt(scale); least = wp::max(wp::sqrt(least), <SMALL>*scale);
usual = wp::max(wp::sqrt(usual), scale);
cone_scale(island) = scale; cone_least(island) = least; cone_usual(island) = usual;
error = moved ? judge(at_p, at_u, at_f) : measure(); return true; }
scale = cone_scale(island); least = cone_least(island); usual = cone_usual(island); error = measure(); return false; };
const auto keep = [&]() apart { every_row(e, r) cone_best(r) = cone_p(r); };
const auto take_best = [&]() apart { every_row(e, r) cone_p(r) = cone_best(r); };
// error after a part of the step `direction`, in `trial`
const auto try_part = [&](real by) apart -> real {
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e); real x[3], rates[5];
for (int i = 0; i < rs; ++i) x[i] = cone_p(r + i) + by*cone_direction(r + i);
if (mu == real(0.0)) project(r, rs, real(0.0), x, rates);
for (int i = 0; i < rs; ++i) cone_trial(r + i) = x[i]; }
return judge(at_trial, at_trial_u, at_trial_f); };
const auto take_trial = [&]() apart {
every_row(e, r) { cone_p(r) = cone_trial(r); cone_u(r) = cone_trial_u(r); cone_f(r) = cone_trial_f(r); } };
// a step of Newton's iteration: whether the error fell, and by what part of the step; where it did not, with a larger R
const auto step_on = [&](real& by) apart -> bool { for (; hold <= <FIRMEST>; hold *= <FIRMER>) {
for (int e = from; e < to; ++e) answer(e);
if (!solve_joined()) continue;
by = real(1.0);
for (int k = 0; k < <LINES>; ++k, by *= real(0.5)) {
const real now = try_part(by);
if (now < (real(1.0) - real(0.1)*by)*error) { error = now; take_trial();
hold = wp::max(hold/<FIRMER>, <NEAREST>); return true; } } }
hold = <NEAREST>; return false; };
// a step with the factors and the derivatives of another one: whether it left little of the error
const auto step_again = [&]() apart -> bool {
for (int e = from; e < to; ++e) { const int r = element[e], rs = rows_of(e);
for (int i = 0; i < rs; ++i) { real g = cone_f(r + i);
if (cone_part(r) > real(0.0)) g = rs == 1 ? cone_B0(r)*cone_f(r)
: cone_B0(r + i)*cone_f(r) + cone_B1(r + i)*cone_f(r + 1) + cone_B2(r + i)*cone_f(r + 2);
cone_g(r + i) = -g; } }
take_direction();
const real now = try_part(real(1.0));
if (!(now <= <CHORD>*error)) return false;
error = now; take_trial(); return true; };
// whole steps, whether or not the error falls in each; whether it did in the end
const auto leap = [&]() apart -> bool { const real start = error; every_row(e, r) cone_start(r) = cone_p(r);
for (int n = 0; n < <LEAPS>; ++n) {
for (int e = from; e < to; ++e) answer(e);
if (!solve_joined()) break;
error = try_part(real(1.0)); take_trial();
if (error < real(0.9)*start) return true; }
every_row(e, r) cone_p(r) = cone_start(r);
error = judge(at_p, at_u, at_f); return false; };
// one last step, if it helps
const auto finish = [&]() apart { for (int e = from; e < to; ++e) answer(e);
if (!solve_joined()) return;
const real now = try_part(real(1.0)); if (now < error) { error = now; take_trial(); } };
// Newton's iteration for Coulomb's law; whether the error fell in all its steps
const auto iterate = [&](int island) apart -> bool { bool falls = true, leaps = true;
if (cone_factored(island) > real(0.0))
for (int n = 0; n < <AGAIN> && !(error <= least); ++n) if (!step_again()) break;
if (error <= least) return true;
cone_factored(island) = real(1.0);
for (int n = 0; n < <NEWTONS> && falls && !(error <= least); ++n) { real by;
if (paired && error <= <AS_FOUND>*scale) { finish(); return true; }  // about as near as rounding lets it
leaps = leaps && leap(); falls = leaps || step_on(by); }
return falls; };
// Newton's iteration with a smooth projection, which becomes the right one
const auto follow = [&](real start, real& best) apart { mu = start; error = judge(at_p, at_u, at_f);
for (int n = 0; n < <SMOOTHED>; ++n) { real by; if (!step_on(by)) break;
const real smooth = mu, now = error; mu = real(0.0);
error = judge(at_p, at_trial_u, at_trial_f); if (error < best) { best = error; keep(); }
if (error <= wp::max(least, <ENOUGH>*scale)) break;
mu = smooth; error = now; if (now <= smooth*scale) { mu *= by > real(0.3) ? <FALLS> : real(0.5);
error = judge(at_p, at_u, at_f); } }
mu = real(0.0); };
// Newton's iteration in both ways in turn, for mechanisms
const auto solve_jointed = [&](int island) apart {
if (!paired && error > <NEW>*scale && (by_left || last)) { sweep(real(0.0), 3, false); error = judge(at_p, at_u, at_f); }
real best = error; keep();
for (int round = 0; round < <ROUNDS> && !(error <= least); ++round) { const bool falls = iterate(island);
if (error < best) { best = error; keep(); }
if (paired && best <= <AS_FOUND>*scale) break;
if (falls) continue;
if (!paired && best <= wp::max(<ENOUGH>*scale, <LEFT>*least)) { if (round == <ROUNDS> - 1) break;  // other points may be open, or slide
sweep(real(0.0), <LOOK>, false); error = judge(at_p, at_u, at_f); continue; }
take_best();
follow(round == 0 ? wp::min(wp::max(real(10.0)*best/scale, <SMOOTH>), <SMOOTHEST>) : <SMOOTHEST>, best);
take_best(); error = judge(at_p, at_u, at_f); }
take_best(); error = best; };
// sweeps, and Newton's iteration before them or, once in a step, after these
const auto solve_free = [&](int island, int way) apart { const real enough = wp::max(least, sought*usual);
if (way == <NEWTON>) { iterate(island); if (error <= <ENOUGH>*scale) return; }
const int most = wp::clamp(<ELEMENTS>/wp::max(to - from, 1), <FEWEST>, <MOST_SWEPT>);
if (swept >= most) return;
const bool calm = error <= <NEARLY>*enough;  // as at rest, where what is left in one step is there again in the next ones
int made = sweep((calm ? <CALM> : <FINER>)*enough, calm ? wp::min(<CALMING>, most - swept) : most - swept,
way == <EITHER> && !helped && !calm);
error = judge(at_p, at_u, at_f);
if (error > enough && !calm && way == <EITHER> && !helped) { helped = true; iterate(island);
if (error > enough) { made += sweep(<FINER>*enough, most - swept - made, false); error = judge(at_p, at_u, at_f); } }
swept_now = wp::max(swept_now, made); };
const auto solve_island = [&](int island) apart -> real { const int how = way_of(island);
const bool known = open_island(island, false);
const bool as_found = error <= wp::max(finer*<AS_FOUND>*scale, <LEFT>*least)
|| (how > <NEWTON> && error <= (last || opened ? real(1.0) : <CALM>)*sought*usual);
if (!as_found) { if (!known) open_island(island, true);
if (how == <JOINTED>) { if (!last) least = wp::max(least, wp::clamp(<REDUCED>*error, finer*<AS_FOUND>*scale, <NEAR_ENOUGH>*scale));
solve_jointed(island); }
else solve_free(island, how); }
hold = <NEAREST>;
const real none = wp::max(wp::max(real(1.0), <LEFT>)*least, <REPORTED>*cone_least(island));  // less counts as converged
if (how == <JOINTED>) return error > none ? error/scale : real(0.0);
return error > wp::max(none, <STOPPED>*usual) ? error/usual : real(0.0); };
real left = real(0.0);
for (int island = 0; island < islands; ++island) {
from = first_element[island]; to = first_element[island + 1]; begin = first_speed[island]; end = first_speed[island + 1];
left = wp::max(left, solve_island(island)); }
weighed = true; opened = !last;
swept += swept_now;
return left; };
"""
