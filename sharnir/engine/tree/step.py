"""The energy–momentum step of a forest in joint coordinates (theory, section 4, "lean trees").

Unknown are the mean joint speeds s of the step. In scaled quantities, h the step:

    z = ½ h s                 mean joint speed
    g = ½ h ω̄, u = ½ h v̄     mean twist of a link: spin, and velocity of its joint frame's origin
    W = ½ h ω, V = ½ h v      twist that is stored, at the ends of steps: spin, and velocity of the centre of mass
    f, n                      momentum that a link lacks, force and moment about its joint frame's origin, times ¼ h

M x = ½ (x + cay(2g) x) is the mean of a vector that turns with a link. Axes and arms at their means do no work, so energy and
momenta are kept to rounding. Gravity is an acceleration of the ground.

The functions below are called with numbers (`NumberTree`), or record device code, as a loop over the links (`LoopTree`) or for
one forest (`UnrolledTree`). A tree has its vectors in world axes or in the links' own axes at the start of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharnir.emit.algebra import IDENTITY, NO_MATRIX, SYMMETRIC, ZERO, Matrix, Symmetric, Vector, cross, dot, mean_rotation, skew
from sharnir.emit.expressions import absolute, select
from sharnir.engine.tree.cable_rows import judge_runs, keep_runs
from sharnir.engine.tree.joints import OneAxis, Prescribed, Slider
from sharnir.engine.tree.rows import begin_rows, close_rows, evaluate_rows, keep_rows, report_rows
from sharnir.engine.tree.several_axes import SeveralAxes
from sharnir.laws.axis import FREE_AXIS

RINGS = 0.1  # of the spins of two bodies: by more they do not fit their joint
RINGS_SLOWLY = 1e-7  # rad in half a step: spins that are as small are let be
STILL = 1e-12  # rad, or of the scene's length, in half a step: what moves less, held by friction, stands still
CLOSINGS = 20  # rounds, at most, in which rows that stand open are closed


def step(tree: Any) -> None:
    """One step: iterate, finish; where something stopped, velocities are made to fit."""
    solve(tree)
    finish(tree)
    for _ in tree.when_stopped():
        project(tree)


def solve(tree: Any) -> None:
    """Find the mean joint speeds of the step.

    With symmetric factors, which are made once as long as laws do not change; where these do not contract, by Newton's iteration
    with the exact derivative (`exact`), begun anew.
    """
    for factor in tree.iterations():
        for _ in tree.first_iteration():
            for _ in tree.when_restarted():
                restart(tree)
            tree.choose_start()
            begin(tree)
            if tree.ropes:
                tree.ropes.tell("roped_begin")
        if tree.ropes:
            tree.ropes.inward()
        if tree.rows:
            evaluate_rows(tree)
        for _ in tree.in_second_gear():
            tree.second_gear.linearize(tree)
            know_responses(tree, tree.second_gear.linearize)
            if tree.rows:
                tree.second_gear.close_rows(tree)
            tree.clear_change()
            update_twists(tree, tree.second_gear.correct)
            if tree.ropes:
                tree.ropes.follow()
        for _ in tree.in_first_gear():
            compute_momenta(tree, factor)
            know_responses(tree, compute_momenta, factor)
            if tree.rows:
                close_rows(tree, factor)
            tree.clear_change()
            update_twists(tree, correct)
            if tree.ropes:
                tree.ropes.follow()
        if tree.rows and tree.rows.more:
            judge_runs(tree)
        for _ in tree.when_suspect():
            judge_laws(tree)


def restart(tree: Any) -> None:
    """A guess that overshoots less, after iterations that did not converge."""
    for link in tree.links():
        for joint in link.joints():
            joint.restart(link)


def know_responses(tree: Any, compute: Callable[..., None], *how: bool) -> None:
    """Where laws need the responses of their axes and these were not known: begin again, now that they are."""
    for again in tree.when_unknown():
        learn_responses(tree)
        if again:
            begin(tree)
            if tree.rows:
                evaluate_rows(tree)
            compute(tree, *how)


def judge_laws(tree: Any) -> None:
    """Linearize laws anew where they do something else than expected."""
    for link in tree.judged_links():
        for joint in link.joints():
            for _ in link.acting():
                joint.judge(link)


def learn_responses(tree: Any) -> None:
    """Responses of the axes that laws act on."""
    for link in tree.links():
        for joint in link.joints():
            for _ in link.acting():
                joint.learn_response(link)


def guess(tree: Any) -> None:
    """Mean joint speeds where nothing is known of the last steps: those of the stored twists."""
    place_links(tree)
    for link in tree.links():
        for joint in link.joints():
            joint.guess(link)


def report(tree: Any) -> None:
    """After the mean speeds are found: what joints carry, and what acts on their axes."""
    if tree.rows:
        evaluate_rows(tree)
        report_rows(tree)
    if tree.ropes:
        tree.ropes.tell("roped_report")
    for link in tree.links(inward=True):
        f, n = carried_momentum(tree, link, *missing_momentum(link, link.com_mean))
        for joint in link.joints():
            before = link.p_lost if tree.goes_on is not False else 0.0
            joint.report(link, f, n)
            if tree.goes_on is not False:  # a step made in parts loses the sum of what these lose
                link.p_lost = link.p_lost + select(tree.goes_on, before, 0.0)


# ---- before the iterations ---------------------------------------------------------------------------------------------------


def begin(tree: Any) -> None:
    """Directions and inertias of the start of the step; laws of the axes; mean twists as they are guessed."""
    tree.clear_stopped()
    for link in tree.links():
        place(tree, link)
        for joint in link.joints():
            for _ in tree.unless_restarted():
                joint.extrapolate(link)
            for _ in link.acting():
                joint.begin(link)
        if not tree.rows:
            update_twist(tree, link)
    if tree.rows:
        begin_rows(tree)
        update_twists(tree)


def place_links(tree: Any) -> None:
    """Directions and inertias of all links where they are."""
    if not tree.own_axes:
        for link in tree.links():
            place(tree, link)


def place(tree: Any, link: Any) -> None:
    """Directions and inertia of a link where it is, if the tree keeps them in world axes."""
    if tree.own_axes:
        return
    base = link.base
    for joint in link.joints():
        R = base.R @ link.frame
        link.axis_w = R.column(2)
        link.anchor_w = base.R @ joint.anchor(link)
        link.R = R @ joint.turned(link)
        if tree.keeps_origins:
            link.origin = base.origin + link.anchor_w
    link.com_w = link.R @ link.com
    half = link.R @ link.inertia.full
    link.inertia_w = Symmetric([dot(half.row(i), link.R.row(j)) for i, j in SYMMETRIC])


# ---- outwards: twists from joint speeds --------------------------------------------------------------------------------------


def correct(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
    """Correct a joint's mean speeds, given the twist that its base carries to it; returns the largest change."""
    return joint.correct(link, u, g)


def update_twists(tree: Any, correct: Any = None) -> None:
    """Mean twists of all links from the ground outwards; with `correct`, after the joint speeds are corrected."""
    for link in tree.links():
        update_twist(tree, link, correct)


def update_twist(tree: Any, link: Any, correct: Any = None) -> None:
    """The mean twist of a link, and mean arms."""
    for joint in link.joints():
        joint.arms(link)
        u, g = joint.carried(link)
        if correct is not None:
            tree.raise_change(correct(joint, link, u, g))
        link.u_before, link.g_before, link.g_old = u, g, link.g
        u, g = joint.moved(link, u, g)
        link.u, link.g = link.turn.inward(u), link.turn.inward(g)
        for _ in link.acting():
            joint.update_ratio(link)
        if not tree.rows:
            turn_with(tree, link)
    if tree.rows:
        turn_with(tree, link)


def turn_with(tree: Any, link: Any) -> None:
    """How vectors turn with a link whose mean spin is known. In the code of each joint's kind, but for less code with rows: what
    was just computed is not read from memory."""
    if tree.keeps_k:
        link.k = 1.0 / (1.0 + dot(link.g, link.g))
    else:
        link.M = mean_rotation(link.g)
    link.com_mean = link.mean(link.local_com)


# ---- inwards: momenta and inertias -------------------------------------------------------------------------------------------


def compute_momenta(tree: Any, factor: bool) -> None:
    """What every joint lacks along its axes, from the leaves inwards; with `factor`, articulated inertias, too."""
    for anew in tree.branches(factor):
        compute_momenta_once(tree, anew)


def compute_momenta_once(tree: Any, factor: bool) -> None:
    for link in tree.links(inward=True):
        com = link.com_mean
        f, n = (ZERO if tree.closing is True else unless(tree.closing, x) for x in missing_momentum(link, com))
        f, n = carried_momentum(tree, link, f, n)
        inertia = articulated_inertia(link, com) if factor else None
        for joint in link.joints():
            joint.eliminate(link, f, n, inertia)


def carried_momentum(tree: Any, link: Any, f: Vector, n: Vector) -> tuple[Vector, Vector]:
    """What a joint carries: momentum that its link and all that hangs on it lack, less the impulses of rows."""
    handed_f, handed_n = link.gathered("f", "n")
    f, n = f + handed_f, n + handed_n
    if tree.rows:
        f, n = f - link.take("row_f"), n - link.take("row_n")
    if tree.ropes:
        hung_f, hung_n, *_ = tree.ropes.hung(link)
        if not tree.laws_are_rows:  # where a pose is closed, links alone are displaced
            hung_f, hung_n = unless(tree.closing, hung_f), unless(tree.closing, hung_n)
        f, n = f + hung_f, n + hung_n
    return f, n


def missing_momentum(link: Any, com: Vector) -> tuple[Vector, Vector]:
    """Momentum that a link gains in the step less the impulses that act on it, about its joint frame's origin."""
    v = link.u + cross(link.g, com)
    f = (v - link.V) * link.mass
    I = link.local_inertia
    n = I @ (link.g - link.W) + half_turned(link, I @ (link.g * 2.0 - link.W))
    if link.tree.pushed and link.tree.resting is not True:
        f, n = f - unless(link.tree.resting, link.push_f), n - unless(link.tree.resting, link.push_n)
    return f, n + cross(com, f)


def unless(condition: Any, x: Vector) -> Vector:
    """A vector, or zero where the condition holds."""
    return x if condition is False else Vector(*(select(condition, 0.0, y) for y in x))


def half_turned(link: Any, x: Vector) -> Vector:
    """M x − x: half of what the step's rotation changes of a vector; so little is lost by rounding."""
    g = link.g
    k = link.k if link.tree.keeps_k else 1.0 / (1.0 + dot(g, g))
    changed: Vector = cross(g, x + cross(g, x)) * k
    return changed


def articulated_inertia(link: Any, com: Vector) -> tuple[Symmetric, Matrix, Symmetric]:
    """Inertia of a link and what hangs on it: f = A u + Hᵀ g, n = H u + I g."""
    m = link.mass
    mc = com * m
    s = Vector(mc.x * com.x, mc.y * com.y, mc.z * com.z)
    parallel = Symmetric([s.y + s.z, s.x + s.z, s.x + s.y, -(mc.x * com.y), -(mc.x * com.z), -(mc.y * com.z)])
    A, H, I = link.gathered("A", "H", "I")
    if link.tree.ropes:
        A, H, I = (x + y for x, y in zip((A, H, I), link.tree.ropes.hung_inertia(link), strict=True))
    return A + Symmetric([m, m, m, 0.0, 0.0, 0.0]), H + skew(mc), I + parallel + link.local_inertia


# ---- after the iterations ----------------------------------------------------------------------------------------------------


def finish(tree: Any) -> None:
    """Twists and coordinates of the end of the step, and how the mean speeds of the next are guessed."""
    tree.clear_missed()
    for link in tree.links():
        end_twist(tree, link)
        for joint in link.joints():
            if tree.laws_are_rows and isinstance(joint, OneAxis):
                stand_still(link)
                tree.note_stopped(rings(joint, link), link.at)
            joint.advance(link)
            joint.predict(link)
    if tree.rows:
        keep_rows(tree)
        if tree.rows.more:
            keep_runs(tree)
    tree.choose_guess()


def end_twist(tree: Any, link: Any) -> None:
    """The twist of a link at the end of the step."""
    com = link.com_mean
    gravity = tree.gravity
    if tree.own_axes:
        link.gravity = gravity = link.turn.inward(link.base.gravity)
    mean = link.u + cross(link.g, com) + gravity
    if tree.pushed:
        for _ in tree.when_pushed():
            tree.note_work((dot(link.push_f, mean) + dot(link.push_n, link.g)) * (8.0 / (tree.h * tree.h)))
    v = mean * 2.0 - link.V
    if tree.own_axes:  # what is stored is in the axes of the end of the step
        link.V = turned_back(link.M, v)
        link.W = link.g * 2.0 - link.W
    else:
        link.V = v
        link.W = (link.g - half_turned(link, link.W)) * 2.0 - link.W


def stand_still(link: Any) -> None:
    """An axis that friction held in the last step and holds in this one, as a row, does not creep by rounding."""
    held = (link.stuck > 0.5) & (absolute(link.row_friction) < 0.25 * (1.0 - 1e-9) * link.h * link.row_bound)
    link.z = select(held & (absolute(link.z) * link.unit < STILL), 0.0, link.z)


def rings(joint: OneAxis, link: Any) -> Any:
    """Whether spins at the end of the step do not fit a joint by more than what a long step misses.

    What does not fit goes to and fro from step to step, since means alone are asked to; friction at points of contact, which is
    against speeds of the end, may feed it. Then velocities are projected.
    """
    x, axis, spins = link.W - link.base.W, link.base.mean(link.local_axis) * 2.0 - link.local_axis, (link.W, link.base.W)
    if not isinstance(joint, Slider):
        x = x - axis * dot(axis, x)
    size = sum(dot(w, w) for w in spins)
    return dot(x, x) > size * (RINGS * RINGS + size) + RINGS_SLOWLY * RINGS_SLOWLY


def turned_back(M: Matrix, x: Vector) -> Vector:
    """cay(−2g) x = 2 Mᵀ x − x."""
    return Vector(*(dot(M.column(k), x) * 2.0 - x[k] for k in range(3)))


# ---- impacts -----------------------------------------------------------------------------------------------------------------


def kinetic(link: Any, V: Vector, W: Vector) -> Any:
    """Kinetic energy of a link, times ¼ h²."""
    return (dot(V, V) * link.mass + dot(W, link.local_inertia @ W)) * 0.5


def project(tree: Any) -> None:
    """Velocities of the end of a step in which something stopped: the nearest, by kinetic energy, that fit the joints.

    Axes that friction holds stay at rest, those that met a limit leave it at the speed of restitution.
    """
    with tree.at_rest():
        for _ in tree.project_rounds():
            fit_speeds(tree)
        if tree.rows:
            tree.rows.clear_taken()
        tree.stands = True
        for link in tree.links():
            for joint in link.joints():
                v, w = link.u + cross(link.g, link.local_com), joint.spin(link, link.g)
                taken = kinetic(link, link.V, link.W) - kinetic(link, v, w)
                if tree.laws_are_rows:
                    tree.rows.note_taken(taken)
                    if isinstance(joint, OneAxis | SeveralAxes):
                        joint.turn_rotor(link, 0.0, tree.rows.note_taken, turns=False)
                    continue
                tree.note_lost(taken)
                link.V, link.W = v, w
        tree.stands = False
        if tree.rows:
            if tree.ropes and tree.laws_are_rows:
                tree.rows.note_taken(tree.ropes.throw_back(None))
            tree.rows.pay_lifting()
            tree.rows.note_impacts()
        if tree.ropes and tree.laws_are_rows:
            tree.note_lost(tree.ropes.throw_back(tree.rows.bounce))
        for link in tree.links():
            for joint in link.joints():
                if isinstance(joint, OneAxis | SeveralAxes):
                    joint.turn_rotor(link, tree.rows.bounce if tree.laws_are_rows else 0.0, tree.note_lost)
                if tree.laws_are_rows:
                    throw_back(tree, link, link.u + cross(link.g, link.local_com), joint.spin(link, link.g))
                joint.release(link)


def fit_speeds(tree: Any) -> None:
    """The twists nearest to those of the links that fit the joints."""
    stand(tree)
    if tree.ropes:
        tree.ropes.stand()
    if tree.rows:
        begin_rows(tree)
        evaluate_rows(tree)
    compute_momenta_once(tree, True)
    if tree.rows:
        close_rows(tree, True)
    tree.stands = True
    for link in tree.links():
        for joint in link.joints():
            u, g = joint.carried(link)
            joint.follow(link, u, g)
            u, g = joint.moved(link, u, g)
            link.u, link.g = link.turn.inward(u), link.turn.inward(g)
    tree.stands = False


def throw_back(tree: Any, link: Any, v: Vector, w: Vector) -> None:
    """Velocities of a link after an impact that would leave v and w: beyond these by a part of what they change."""
    v, w = v + (v - link.V) * tree.rows.bounce, w + (w - link.W) * tree.rows.bounce
    tree.note_lost(kinetic(link, link.V, link.W) - kinetic(link, v, w))
    link.V, link.W = v, w


def stand(tree: Any) -> None:
    """All links where they are, and none moves."""
    place_links(tree)
    for link in tree.links():
        link.u, link.g, link.M, link.com_mean = ZERO, ZERO, IDENTITY, link.local_com
        if tree.keeps_k:
            link.k = 1.0
        for joint in link.joints():
            joint.arms(link)
            joint.hold(link)


def close_pose(tree: Any) -> None:
    """Close rows that stand open by displacements alone, the least by mass: velocities never learn of it.

    To be followed by `guess`: mean speeds serve as displacements.
    """
    with tree.at_rest(closes=True):
        tree.rows.begin_closing()
        rounds = tree.rounds(CLOSINGS)
        for _ in rounds:
            stand(tree)
            if tree.ropes and tree.laws_are_rows:
                tree.ropes.stand_closing()
            begin_rows(tree)
            evaluate_rows(tree)
            if tree.ropes and tree.laws_are_rows:
                tree.rows.raise_open(tree.ropes.open, 0.0)
            rounds.leave(tree.rows.is_closed())
            for link in tree.links():
                for joint in link.joints():
                    loosen(joint, link)
            compute_momenta_once(tree, True)
            close_rows(tree, True)
            update_twists(tree, displace)
            if tree.ropes and tree.laws_are_rows:
                tree.ropes.raise_links()
            for link in tree.links():
                if tree.laws_are_rows:
                    moved = (link.u + cross(link.g, link.com_mean)) * 2.0
                    tree.rows.note_lifted(-(dot(moved, tree.gravity) * link.mass))
                for joint in link.joints():
                    if not isinstance(joint, Prescribed):
                        joint.advance(link)


def repair_limits(tree: Any) -> None:
    """Displace axes that passed a limit."""
    for link in tree.links():
        for joint in link.joints():
            for _ in link.acting():
                if isinstance(joint, OneAxis):
                    joint.return_to_limit(link, repairs=True)
                elif isinstance(joint, SeveralAxes):
                    joint.return_to_limits(link, repairs=True)


def loosen(joint: Any, link: Any) -> None:
    """Nothing holds the axes of a joint."""
    if isinstance(joint, OneAxis):
        link.lock = link.jump = 0.0
    elif isinstance(joint, SeveralAxes):
        for _ in link.acting():
            link.lock3, link.lock_to_3, link.mode = NO_MATRIX, ZERO, FREE_AXIS


def displace(joint: Any, link: Any, u: Vector, g: Vector) -> Any:
    """Displacements of a joint, given those that its base carries to it."""
    joint.follow(link, u, g)
    return 0.0
