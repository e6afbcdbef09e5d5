"""Ports: where a rope meets a body of a tree besides its first end, which is eliminated into the body that holds it (`chain`).

A last end on a body, a body tied between the ends: the rope's point moves as the body's, by an unknown impulse μ on the rope and
−μ on the body. A clamped last end has a moment, too: K (ω_body − ω_last) with K = L Lᵀ, which may be singular, so its unknown is
σ = Lᵀ(ω_body − ω_last), and L σ acts on the last element. A winch is a port, too, of which one row counts: the element at the
reel slides (`chain`), ṡ + R q̇ = 0 with q the angle of the drum's joint, by an axial impulse μ in it, and R μ about the axis on
the drum. Three rows each; along the rope, and along those on which it hangs, down to a root (a body, a free end, something that
does not yield, a cut),

    Eᵀ(v, ω) of the rope at the port = Xᵀ v_root + Yᵀ ω_root + G μ + g,        X μ, Y μ: what μ does at the root,

as of a held last point. With N the pushes on the bodies at the port and at the root, R the tree's response to impulses on its
bodies and dV what the pass does without μ:

    (G + Nᵀ R N [+ E]) μ = −(g + Nᵀ dV).

R is all that a solver supplies, as a function from impulses −p on bodies (`body.p_l`, `body.p_a`) to changes of their twists
(`body.dv`, `body.dw`). Its step, w a world:

    take_clamps before `factor`, port_columns after it; once a step:
        for c in range(rows):  push_unit(c), R, read_column(c)
        port_factor
    in a pass, between `ropes_inward` and `ropes_outward`, with dV in dv, dw:
        port_speeds, then if the matrix is new the above; pull_ports: μ, into the ropes' biases and into p; R; add_kept
"""

from typing import Any

import numpy as np
import warp as wp

from sharnir.core.linalg import add_block, clear, close_order, factorise, row_ends, substitute, take
from sharnir.core.types import EPSILON, mat33, real, vec3
from sharnir.engine.rope.chain import SLACK, beyond, is_slack, slide_along
from sharnir.engine.rope.data import BODY, DRIVEN, PORT, ROPE, UNHELD, WOUND, RopeStep
from sharnir.engine.rope.port_data import Ports
from sharnir.engine.rope.slack import reel_element
from sharnir.engine.rope.terms import inverse, times_skew

NO_STIFFNESS = wp.constant(real(64.0 * EPSILON))  # least part of a stiffness's trace that counts as stiffness
WINCH = wp.constant(2)  # of `Ports.turn`


def make_ports(ropes: Any, moves_with: list[int]) -> Ports:
    """The ports of ropes laid out for trees (`Ropes.on_trees`).

    Of each of the solver's bodies `moves_with` tells which trees an impulse on it moves, by a number, −1 for none.
    """
    kind, held, clamp = (getattr(ropes.table, n).numpy() for n in ("kind", "body", "clamp"))
    ties, tie_kind, tie_body = (getattr(ropes.table, n).numpy() for n in ("tie_rope", "tie_kind", "tie_body"))
    found = []
    for k in range(ropes.count):
        if kind[2 * k + 1] == PORT:
            found += [(k, held[2 * k + 1], -1, turn) for turn in range(1 + clamp[2 * k + 1])]
    winch, drum = ropes.table.winch.numpy(), ropes.table.drum_child.numpy()
    found += [(k, drum[k], -1, int(WINCH)) for k in range(ropes.count) if winch[k] >= 0]
    found += [(k, tie_body[t], t, 0) for t, k in enumerate(ties) if tie_kind[t] == PORT]
    rope_of = np.repeat(np.arange(ropes.count), ropes.capacity + 1)

    def feels(k: int, body: int) -> set[tuple[str, int]]:
        """The ropes and trees that a port on a rope and a body moves."""
        trees = {moves_with[body]}
        along = {("rope", k)}
        while kind[2 * k] == ROPE:
            k = int(rope_of[held[2 * k]])
            along.add(("rope", k))
        if kind[2 * k] == BODY:
            trees.add(moves_with[held[2 * k]])
        return along | {("tree", tree) for tree in trees if tree >= 0}

    felt = [feels(int(k), int(body)) for k, body, *_ in found]
    order = close_order([{j for j, other in enumerate(felt) if own & other} - {i} for i, own in enumerate(felt)])
    found, felt = [found[i] for i in order], [felt[i] for i in order]
    first = [3 * min(b for b in range(a + 1) if own & felt[b]) for a, own in enumerate(felt) for _ in range(3)]
    leg, leg_rope, leg_at, entries = [0], [], [], 0
    for k, *_ in found:
        while True:
            leg_rope.append(k)
            leg_at.append(entries)
            entries += ropes.capacity[k] + 1
            if kind[2 * k] != ROPE:
                break
            k = rope_of[held[2 * k]]
        leg.append(len(leg_rope))
    p: Any = Ports()
    p.count = len(found)
    table = np.array(found, np.int32).reshape(-1, 4).T
    tables = dict(zip(("rope", "body", "tie", "turn"), table, strict=True))
    tables |= {"first": np.array(first), "last": row_ends(first)}
    for name, values in (tables | {"leg": leg, "leg_rope": leg_rope, "leg_at": leg_at}).items():
        setattr(p, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=ropes.device))
    sizes = dict.fromkeys(["X", "Y", "UY"], entries) | dict.fromkeys(["root_X", "root_Y", "driven"], len(leg_rope))
    sizes |= dict.fromkeys(["own", "L", "sum"], p.count) | {"rhs": 3 * p.count}
    sizes |= dict.fromkeys(["dv", "dw", "p_l", "p_a"], len(moves_with))
    p.matrix = wp.zeros((3 * p.count, 3 * p.count, ropes.worlds), dtype=real, device=ropes.device)
    for name, size in sizes.items():
        dtype = Ports.vars[name].type.dtype  # type: ignore[attr-defined]
        setattr(p, name, wp.zeros((size, ropes.worlds), dtype=dtype, device=ropes.device))
    return p


# ---- along the ropes --------------------------------------------------------------------------------------------------------


@wp.func
def root_of(K: mat33) -> mat33:
    """L with K = L Lᵀ, K positive or singular: columns by the largest pivot left."""
    S = K
    L = mat33(real(0.0))
    least = wp.trace(K) * NO_STIFFNESS
    for column in range(3):
        p = int(0)
        for i in range(1, 3):
            if S[i, i] > S[p, p]:
                p = i
        pivot = S[p, p]
        if pivot > least:
            l = vec3(S[0, p], S[1, p], S[2, p]) / wp.sqrt(pivot)
            S = S - wp.outer(l, l)
            for i in range(3):
                L[i, column] = l[i]
    return L


@wp.func
def take_clamps(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Interfaces of clamped last ends, out of the elimination into their ports."""
    for a in range(p[0].count):
        if p[0].turn[a] == 1:
            k = p[0].rope[a]
            i = r[0].ropes.first[k] + r[0].state.segments[k, w]
            p[0].L[a, w] = root_of(r[0].work.K[i, w])
            r[0].work.K[i, w] = mat33(real(0.0))
            r[0].work.J[i, w] = mat33(real(0.0))


@wp.func
def top_slot(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, leg: int, w: int) -> int:
    """The slot at which a leg begins: the port's, or where the rope of the leg before hangs."""
    if leg > p[0].leg[a]:
        return r[0].ropes.body[2 * p[0].leg_rope[leg - 1]]
    if p[0].tie[a] >= 0:
        return r[0].ropes.tie_slot[p[0].tie[a]]
    k = p[0].rope[a]
    if p[0].turn[a] == WINCH:
        return reel_element(r, k, w)
    return r[0].ropes.first[k] + r[0].state.segments[k, w] - p[0].turn[a]


@wp.func
def is_wound(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int) -> bool:
    """Whether the winch of a port acts on its rope."""
    i = reel_element(r, p[0].rope[a], w)
    return r[0].work.slack[i, w] == WOUND and r[0].state.cut[i, w] == 0


@wp.func
def first_column(v: vec3) -> mat33:
    """v, of the one row of a winch that counts."""
    return wp.outer(v, vec3(real(1.0), real(0.0), real(0.0)))


@wp.func
def is_cut(r: wp.array(dtype=RopeStep), first: int, i: int, w: int) -> bool:
    """Whether point i of a rope hangs on nothing."""
    if i > first:
        return r[0].state.cut[i - 1, w] == 1
    return False


@wp.func
def is_loose(r: wp.array(dtype=RopeStep), first: int, i: int, w: int) -> bool:
    """Whether point i of a rope slides along the element before it."""
    if i > first:
        return is_slack(r, i - 1, w)
    return False


@wp.func
def find_columns(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int):
    """X and Y of a port along its path, and its G."""
    X = wp.identity(n=3, dtype=real)
    Y = mat33(real(0.0))
    G = mat33(real(0.0))
    wound = bool(False)
    if p[0].turn[a] == 1:
        X = mat33(real(0.0))
        Y = p[0].L[a, w]
    elif p[0].turn[a] == WINCH:
        X = mat33(real(0.0))
        G = wp.identity(n=3, dtype=real)
        wound = is_wound(r, p, a, w)
        if wound:
            i = reel_element(r, p[0].rope[a], w) + 1
            give = r[0].work.slide[i, w]
            G[0, 0] = give
            X = first_column(r[0].work.slide_v[i, w] * (-give))
            Y = first_column(r[0].work.slide_w[i, w] * (-give))
            Y = Y + wp.transpose(times_skew(wp.transpose(X), r[0].work.d[i - 1, w] * (-r[0].work.reach[i - 1, w])))
    for leg in range(p[0].leg[a], p[0].leg[a + 1]):
        k = p[0].leg_rope[leg]
        first = r[0].ropes.first[k]
        held = r[0].ropes.kind[2 * k + 1] == DRIVEN
        driven = mat33(real(0.0))
        top = top_slot(r, p, a, leg, w)
        if wound and held and leg == p[0].leg[a]:
            D = beyond(r, top + 1, w, r[0].work.X[top + 1, w], r[0].work.Y[top + 1, w])
            driven = first_column(r[0].work.d[top, w] * D * r[0].work.slide[top + 1, w])
        for back in range(top - first + 1):
            i = top - back
            at = p[0].leg_at[leg] + i - first
            p[0].X[at, w] = X
            p[0].Y[at, w] = Y
            UY = r[0].work.U[i, w] * Y
            p[0].UY[at, w] = UY
            G = G + wp.transpose(Y) * UY
            X = X - r[0].work.B[i, w] * UY
            Y = r[0].work.K[i, w] * UY
            if held:
                driven = driven + wp.transpose(r[0].work.Y[i, w]) * UY
            if is_cut(r, first, i, w):
                if held:
                    D = beyond(r, i, w, r[0].work.X[i, w], r[0].work.Y[i, w])
                    driven = driven + wp.transpose(D) * r[0].work.loose[i, w] * X
                G = G + wp.transpose(X) * r[0].work.loose[i, w] * X
                X = mat33(real(0.0))
                Y = mat33(real(0.0))
            elif is_loose(r, first, i, w):
                slides = slide_along(r, i, w, X)
                if held:
                    D = beyond(r, i, w, r[0].work.X[i, w], r[0].work.Y[i, w])
                    driven = driven + wp.outer(r[0].work.d[i - 1, w] * D, slides)
                G = G + wp.outer(r[0].work.d[i - 1, w] * X, slides)
                X = X - wp.outer(r[0].work.slide_v[i, w], slides)
                Y = Y - wp.outer(r[0].work.slide_w[i, w], slides)
            if i > first:
                arm = r[0].work.d[i - 1, w] * (-r[0].work.reach[i - 1, w])
                Y = Y + wp.transpose(times_skew(wp.transpose(X), arm))
        if held:  # the last point stays: what holds it pushes back
            H = r[0].work.G[k, w] * driven
            G = G - wp.transpose(driven) * H
            X = X - r[0].work.last_X[k, w] * H
            Y = Y - r[0].work.last_Y[k, w] * H
        if r[0].ropes.kind[2 * k] == UNHELD:
            G = G + wp.transpose(X) * inverse(r[0].work.Z_A[k, w]) * X
        p[0].driven[leg, w] = driven
        p[0].root_X[leg, w] = X
        p[0].root_Y[leg, w] = Y
    p[0].own[a, w] = G


@wp.func
def left(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), i: int, at: int, w: int) -> mat33:
    """X of an entry once its element is eliminated: what the point before, or a piece that is cut off, feels of μ."""
    return p[0].X[at, w] - r[0].work.B[i, w] * p[0].UY[at, w]


@wp.func
def mobility(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, b: int, w: int) -> mat33:
    """G between two ports: what they share of their paths, bodies at the roots at rest."""
    G = mat33(real(0.0))
    for la in range(p[0].leg[a], p[0].leg[a + 1]):
        for lb in range(p[0].leg[b], p[0].leg[b + 1]):
            if p[0].leg_rope[la] == p[0].leg_rope[lb]:
                k = p[0].leg_rope[la]
                first = r[0].ropes.first[k]
                top = wp.min(top_slot(r, p, a, la, w), top_slot(r, p, b, lb, w))
                for back in range(top - first + 1):
                    i = top - back
                    x = p[0].leg_at[la] + i - first
                    y = p[0].leg_at[lb] + i - first
                    G = G + wp.transpose(p[0].Y[x, w]) * p[0].UY[y, w]
                    if is_cut(r, first, i, w):
                        G = G + wp.transpose(left(r, p, i, x, w)) * r[0].work.loose[i, w] * left(r, p, i, y, w)
                    elif is_loose(r, first, i, w):
                        G = G + wp.outer(r[0].work.d[i - 1, w] * left(r, p, i, x, w), slide_along(r, i, w, left(r, p, i, y, w)))
                if r[0].ropes.kind[2 * k + 1] == DRIVEN:
                    G = G - wp.transpose(p[0].driven[la, w]) * r[0].work.G[k, w] * p[0].driven[lb, w]
                if r[0].ropes.kind[2 * k] == UNHELD:
                    G = G + wp.transpose(p[0].root_X[la, w]) * inverse(r[0].work.Z_A[k, w]) * p[0].root_X[lb, w]
    return G


@wp.func
def wound_by(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, b: int, w: int) -> vec3:
    """By how much the row of a winch a is moved by a port whose path crosses its element, beyond what both paths share."""
    out = vec3(real(0.0))
    if p[0].turn[a] == WINCH and p[0].turn[b] != WINCH:
        k = p[0].rope[a]
        i = reel_element(r, k, w) + 1
        for leg in range(p[0].leg[b], p[0].leg[b + 1]):
            if p[0].leg_rope[leg] == k and top_slot(r, p, b, leg, w) >= i:
                if is_wound(r, p, a, w):
                    out = slide_along(r, i, w, left(r, p, i, p[0].leg_at[leg] + i - r[0].ropes.first[k], w))
    return out


@wp.func
def port_columns(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """X, Y and G of all ports; once a step."""
    for a in range(p[0].count):
        find_columns(r, p, a, w)


@wp.func
def start_matrix(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """G of all ports. A straight rope has no mobility along itself: it takes a small slack."""
    clear(p[0].matrix, p[0].first, p[0].last, 3 * p[0].count, w)
    for a in range(p[0].count):
        for b in range(p[0].first[3 * a] / 3, a):
            G = mobility(r, p, a, b, w) + wp.transpose(first_column(wound_by(r, p, a, b, w)))
            G = G + first_column(wound_by(r, p, b, a, w))
            add_block(p[0].matrix, 3 * a, 3 * b, w, G)
            add_block(p[0].matrix, 3 * b, 3 * a, w, wp.transpose(G))
        own = p[0].own[a, w]
        for i in range(3):
            for j in range(i):
                own[j, i] = own[i, j]
        more = real(1.0)
        if p[0].turn[a] == 0:
            more = SLACK * wp.trace(own) + real(1.0e-30)
        elif p[0].turn[a] == WINCH:
            more = real(0.0)
        add_block(p[0].matrix, 3 * a, 3 * a, w, own + wp.identity(n=3, dtype=real) * more)


# ---- on the bodies ----------------------------------------------------------------------------------------------------------


@wp.func
def port_arm(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int) -> vec3:
    """From the centre of a port's body to its point."""
    if p[0].tie[a] >= 0:
        return r[0].work.tie_arm[p[0].tie[a], w]
    return r[0].work.arm[2 * p[0].rope[a] + 1, w]


@wp.func
def moving_arm(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int) -> vec3:
    """The arm by which a port's point moves with its body."""
    if p[0].tie[a] >= 0:
        return r[0].work.tie_end[p[0].tie[a], w]
    return r[0].work.end_arm[2 * p[0].rope[a] + 1, w]


@wp.func
def clear_push(r: wp.array(dtype=RopeStep), w: int):
    """Clear the impulses on bodies."""
    for b in range(r[0].bodies.count):
        r[0].body.p_l[b, w] = vec3(real(0.0))
        r[0].body.p_a[b, w] = vec3(real(0.0))


@wp.func
def push_port(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int, mu: vec3):
    """Add N μ of a port to −p."""
    leg = p[0].leg[a + 1] - 1
    k = p[0].leg_rope[leg]
    if r[0].ropes.kind[2 * k] == BODY:
        b = r[0].ropes.body[2 * k]
        f = p[0].root_X[leg, w] * mu
        l = p[0].root_Y[leg, w] * mu + wp.cross(r[0].work.arm[2 * k, w], f)
        r[0].body.p_l[b, w] = r[0].body.p_l[b, w] - f
        r[0].body.p_a[b, w] = r[0].body.p_a[b, w] - l
    b = p[0].body[a]
    if p[0].turn[a] == WINCH:
        if is_wound(r, p, a, w):
            l = r[0].work.lever[p[0].rope[a], w] * mu[0]
            base = r[0].ropes.drum_parent[p[0].rope[a]]
            r[0].body.p_a[b, w] = r[0].body.p_a[b, w] - l
            r[0].body.p_a[base, w] = r[0].body.p_a[base, w] + l
    elif p[0].turn[a] == 1:
        r[0].body.p_a[b, w] = r[0].body.p_a[b, w] + p[0].L[a, w] * mu
    else:
        r[0].body.p_l[b, w] = r[0].body.p_l[b, w] + mu
        r[0].body.p_a[b, w] = r[0].body.p_a[b, w] + wp.cross(port_arm(r, p, a, w), mu)


@wp.func
def port_speed(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int) -> vec3:
    """Nᵀ dV of a port."""
    b = p[0].body[a]
    u = -r[0].body.dw[b, w] * p[0].L[a, w]
    if p[0].turn[a] == 0:
        u = -(r[0].body.dv[b, w] + wp.cross(r[0].body.dw[b, w], moving_arm(r, p, a, w)))
    elif p[0].turn[a] == WINCH:
        u = vec3(real(0.0))
        if is_wound(r, p, a, w):
            turn = r[0].body.dw[b, w] - r[0].body.dw[r[0].ropes.drum_parent[p[0].rope[a]], w]
            u[0] = wp.dot(r[0].work.drum_rate[p[0].rope[a], w], turn)
    leg = p[0].leg[a + 1] - 1
    k = p[0].leg_rope[leg]
    if r[0].ropes.kind[2 * k] == BODY:
        b = r[0].ropes.body[2 * k]
        omega = r[0].body.dw[b, w]
        v = r[0].body.dv[b, w] + wp.cross(omega, r[0].work.end_arm[2 * k, w])
        u = u + v * p[0].root_X[leg, w] + omega * p[0].root_Y[leg, w]
    return u


# ---- the system -------------------------------------------------------------------------------------------------------------


@wp.func
def push_unit(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), column: int, w: int):
    """One on a row alone: the tree's response to it is a column."""
    if column == 0:
        start_matrix(r, p, w)
    clear_push(r, w)
    e = vec3(real(0.0))
    e[column % 3] = real(1.0)
    push_port(r, p, column / 3, w, e)


@wp.func
def read_column(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), column: int, w: int):
    """Add what a push on one row does to all."""
    for a in range(p[0].first[column] / 3, p[0].last[column] / 3 + 1):
        u = port_speed(r, p, a, w)
        for x in range(3):
            p[0].matrix[3 * a + x, column, w] = p[0].matrix[3 * a + x, column, w] + u[x]


@wp.func
def port_factor(p: wp.array(dtype=Ports), w: int):
    """Once all columns are read."""
    factorise(p[0].matrix, p[0].first, p[0].last, 3 * p[0].count, w)


@wp.func
def port_gap(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int) -> vec3:
    """g of a port: how its point changes in the pass if bodies at roots do not move and nothing pulls there."""
    g = vec3(real(0.0))
    if p[0].turn[a] == WINCH:
        if not is_wound(r, p, a, w):
            return g
        g[0] = r[0].work.slides[reel_element(r, p[0].rope[a], w) + 1, w]
    for leg in range(p[0].leg[a], p[0].leg[a + 1]):
        k = p[0].leg_rope[leg]
        first = r[0].ropes.first[k]
        top = top_slot(r, p, a, leg, w)
        for back in range(top - first + 1):
            i = top - back
            at = p[0].leg_at[leg] + i - first
            g = g + (r[0].work.e[i, w] - r[0].work.bias[i, w]) * p[0].UY[at, w]
            if i > first:
                if r[0].state.cut[i - 1, w] == 1:
                    g = g + r[0].work.loose_v[i, w] * left(r, p, i, at, w)
                else:
                    g = g + r[0].work.c[i - 1, w] * p[0].X[at, w]
                    if is_slack(r, i - 1, w):
                        g = g + (r[0].work.d[i - 1, w] * left(r, p, i, at, w)) * r[0].work.slides[i, w]
        if r[0].ropes.kind[2 * k + 1] == DRIVEN:
            g = g - (r[0].work.G[k, w] * r[0].work.g[k, w]) * p[0].driven[leg, w]
        if r[0].ropes.kind[2 * k] == UNHELD:
            g = g - (inverse(r[0].work.Z_A[k, w]) * r[0].work.p_l[k, w]) * p[0].root_X[leg, w]
    return g


@wp.func
def clear_ports(p: wp.array(dtype=Ports), w: int):
    """At the beginning of a pass."""
    for a in range(p[0].count):
        p[0].sum[a, w] = vec3(real(0.0))


@wp.func
def port_speeds(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """The right-hand sides for the changes at hand, which are kept."""
    for a in range(p[0].count):
        u = -(port_gap(r, p, a, w) + port_speed(r, p, a, w) + p[0].sum[a, w])
        for x in range(3):
            p[0].rhs[3 * a + x, w] = u[x]
    for b in range(r[0].body.dv.shape[0]):
        p[0].dv[b, w] = r[0].body.dv[b, w]
        p[0].dw[b, w] = r[0].body.dw[b, w]


@wp.func
def add_kept(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """The changes that were kept, on top of the response to the ports."""
    for b in range(r[0].body.dv.shape[0]):
        r[0].body.dv[b, w] = r[0].body.dv[b, w] + p[0].dv[b, w]
        r[0].body.dw[b, w] = r[0].body.dw[b, w] + p[0].dw[b, w]


@wp.func
def pull_rope(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), a: int, w: int, mu: vec3):
    """Add what the impulse μ of a port does along its path to the biases from which the ropes follow."""
    k = p[0].rope[a]
    if p[0].turn[a] == 1:
        i = r[0].ropes.first[k] + r[0].state.segments[k, w]
        r[0].state.moment[i, w] = r[0].state.moment[i, w] - p[0].L[a, w] * mu
        p[0].sum[a, w] = p[0].sum[a, w] + mu
    elif p[0].turn[a] == WINCH:
        if not is_wound(r, p, a, w):
            return
        i = reel_element(r, k, w) + 1
        r[0].work.slides[i, w] = r[0].work.slides[i, w] + r[0].work.slide[i, w] * mu[0]
    if p[0].tie[a] >= 0:
        t = p[0].tie[a]
        i = r[0].ropes.tie_slot[t]
        r[0].state.tie_force[t, w] = r[0].state.tie_force[t, w] + mu
        r[0].work.tie_p[i, w] = r[0].work.tie_p[i, w] - mu
    for leg in range(p[0].leg[a], p[0].leg[a + 1]):
        k = p[0].leg_rope[leg]
        first = r[0].ropes.first[k]
        top = top_slot(r, p, a, leg, w)
        for i in range(first, top + 1):
            at = p[0].leg_at[leg] + i - first
            r[0].work.bias[i, w] = r[0].work.bias[i, w] - p[0].Y[at, w] * mu
            if is_cut(r, first, i, w):
                push = left(r, p, i, at, w) * mu
                r[0].work.loose_v[i, w] = r[0].work.loose_v[i, w] + r[0].work.loose[i, w] * push
            elif is_loose(r, first, i, w):
                more = wp.dot(slide_along(r, i, w, left(r, p, i, at, w)), mu)
                r[0].work.slides[i, w] = r[0].work.slides[i, w] + more
        f = p[0].root_X[leg, w] * mu
        r[0].work.g[k, w] = r[0].work.g[k, w] + p[0].driven[leg, w] * mu
        r[0].work.p_l[k, w] = r[0].work.p_l[k, w] - f
        r[0].work.p_a[k, w] = r[0].work.p_a[k, w] - p[0].root_Y[leg, w] * mu
        if r[0].ropes.kind[2 * k] == ROPE:
            i = r[0].ropes.body[2 * k]
            r[0].work.tie_p[i, w] = r[0].work.tie_p[i, w] - f


@wp.func
def pull_ports(r: wp.array(dtype=RopeStep), p: wp.array(dtype=Ports), w: int):
    """Solve for μ; it pulls ropes and, by −p, bodies."""
    substitute(p[0].matrix, p[0].first, p[0].last, p[0].rhs, 3 * p[0].count, w)
    clear_push(r, w)
    for a in range(p[0].count):
        mu = take(p[0].rhs, 3 * a, w)
        push_port(r, p, a, w, mu)
        pull_rope(r, p, a, w, mu)
