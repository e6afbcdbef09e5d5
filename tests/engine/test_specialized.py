"""Steps compiled for one model: the same motion as the generic form, also where laws, joints or forces change while running."""

import re
import warnings

import numpy as np
import pytest

import sharnir as sh
from sharnir.engine.direct import trees
from sharnir.engine.tree import placement
from sharnir.engine.tree.build import Plan
from sharnir.engine.tree.closures import closures_of
from sharnir.engine.tree.generic import generic_kernel
from sharnir.engine.tree.runtime import CPP
from sharnir.engine.tree.special import Specialized

pytestmark = pytest.mark.usefixtures("unoptimized")

FIELDS = (
    "position", "rotation", "velocity", "spin", "joint_force", "joint_torque", "axis_impulse", "friction_impulse",
    "limit_impulse", "drive_impulse", "dissipated",
)  # fmt: skip


def mechanism():
    """A slider, a hinge with everything, a ball and a body welded on, two of them on one base; and a second tree beside."""
    scene = sh.Scene()
    scene.add_body("a", sh.Box(0.3, 0.1, 0.06), mass=1.0, position=(0.15, 0, 0))
    scene.add_body("b", sh.Box(0.25, 0.08, 0.12), mass=0.8, position=(0.42, 0.05, 0.03))
    scene.add_body("c", sh.Box(0.2, 0.05, 0.05), mass=0.4, position=(0.65, 0.05, 0.03))
    scene.add_body("d", sh.Box(0.1, 0.05, 0.05), mass=0.2, position=(0.3, 0.2, 0))
    scene.add_body("e", sh.Box(0.2, 0.04, 0.04), mass=0.3, position=(0.1, -1, 0))
    scene.add_joint("rail", sh.Prismatic("x", spring=(80.0, 0.1), damping=0.5), scene.world, "a", position=(0, 0, 0))
    servo = sh.Servo(0.4, kp=20.0, kd=0.4, max_force=3.0)
    scene.add_joint("elbow", sh.Revolute("y", friction=0.1, limit=(-0.5, 0.6), drive=servo), "a", "b", position=(0.3, 0, 0))
    scene.add_joint("ball", sh.Spherical(), "b", "c", position=(0.55, 0.05, 0.03))
    scene.add_joint("weld", sh.Fixed(), "a", "d", position=(0.3, 0.2, 0))
    scene.add_joint("pendulum", sh.Revolute("y"), scene.world, "e", position=(0, -1, 0))
    return scene


def simulate(specialize, worlds=1, scene=mechanism, **options):
    sim = sh.Simulation(scene(), 1e-3, specialize=specialize, worlds=worlds, **options)
    sim.body("c").angular_velocity = np.linspace(1, 2, worlds)[:, None] * [2.0, -3.0, 1.0] if worlds > 1 else [2.0, -3.0, 1.0]
    return sim


def differences(a, b):
    out = {}
    for name in FIELDS:
        x, y = (getattr(s.state, name).numpy() for s in (a, b))
        out[name] = np.abs(x - y).max() / max(1.0, np.abs(y).max()) if x.size else 0.0
    return out


def steps_alike(a, b, n, bound):
    for _ in range(n):
        a.step()
        b.step()
    assert max(differences(a, b).values()) < bound, differences(a, b)


def is_special(sim):
    return sim.solver._lean and sim.solver._trees.specialized


def generic_was_needed(sim):
    return sim.solver._trees._generic is not None


def test_both_forms_make_the_same_steps(optimized):
    a, b = simulate(True), simulate(False)
    steps_alike(a, b, 100, 1e-8)
    assert is_special(a)
    assert not is_special(b)
    assert not generic_was_needed(a)
    for x, y in zip(a.joint("elbow").reaction, b.joint("elbow").reaction, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-7)


@pytest.fixture
def code_of_a_gpu(monkeypatch):
    """Specialized code as it is written for a GPU, which a CPU runs as well."""

    def specialized(plan, model, control, on_gpu):
        return Specialized(plan, model, control, True)

    monkeypatch.setattr(trees, "Specialized", specialized)


def test_the_code_of_a_gpu_makes_the_same_steps(code_of_a_gpu, monkeypatch):
    """Numbers in registers, in shared memory, and where they stand: few registers, so that all of these are used."""
    monkeypatch.setitem(placement.IN_REGISTERS, CPP, 40)
    monkeypatch.setitem(placement.IN_SHARED, CPP, 60)
    a, b = simulate(True, 2), simulate(False, 2)
    for sim in (a, b):
        sim.randomize(1, mass=0.2)
        sim.step(60)
        for _ in range(40):
            sim.step()
    assert not generic_was_needed(a)
    body = a.solver._trees._special.body
    assert len(re.findall(r"#define \w+_\d+_\d+ shared_number", body)) == 60
    assert "#define z1_1_0 scratch_number(" in body
    assert "#define mass_0_0 scratch_number(" in body
    assert "#define g_0_0 scratch_number(" not in body
    assert max(differences(a, b).values()) < 1e-8, differences(a, b)


def test_generic_steps_are_neither_compiled_nor_loaded_before_they_are_needed(monkeypatch):
    asked = []
    monkeypatch.setattr(trees, "generic_kernel", lambda *kinds: asked.append(kinds) or generic_kernel(*kinds))
    sim = simulate(True)
    sim.step(5)
    assert not asked
    sim.joint("ball").enabled = False
    sim.step(5)
    assert len(asked) == 1


def pressed():
    """A rod that lies on its limit, pressed on it by a servo, and one that slides down against friction."""
    scene = sh.Scene()
    scene.add_body("a", sh.Box(0.3, 0.05, 0.05), mass=1.0, position=(0.15, 0, 0))
    drive = sh.Servo(1.0, kp=5.0, max_force=2.0)
    scene.add_joint("hinge", sh.Revolute("y", limit=(-0.1, 0.2), friction=0.1, drive=drive), scene.world, "a", position=(0, 0, 0))
    scene.add_body("c", sh.Box(0.1, 0.1, 0.1), mass=0.5, position=(0, 1, 0))
    scene.add_joint("rail", sh.Prismatic("z", friction=1.0), scene.world, "c", position=(0, 1, 0))
    return scene


def test_impulses_at_a_limit_are_shared_among_laws_as_in_the_generic_form():
    sims = [sh.Simulation(pressed(), 1e-3, specialize=s, sleep=False) for s in (True, False)]
    for sim in sims:
        sim.step(300)
    assert np.abs(sims[0].state.limit_impulse.numpy()).max() > 1e-3
    assert max(differences(*sims).values()) < 1e-10, differences(*sims)


def test_a_cpu_takes_the_generic_form_unless_told():
    sim = simulate(None)
    sim.step()
    assert not is_special(sim)


def test_many_steps_a_call_are_the_same_as_one_by_one_and_a_world_is_the_same_in_a_batch():
    a, b, alone = simulate(True, 3), simulate(True, 3), simulate(True)
    alone.body("c").angular_velocity = np.asarray(a.body("c").angular_velocity)[1]
    a.step(40)
    for _ in range(40):
        b.step()
        alone.step()
    for name in FIELDS:
        x, y, z = (getattr(s.state, name).numpy() for s in (a, b, alone))
        np.testing.assert_array_equal(x, y, err_msg=name)
        np.testing.assert_array_equal(x[:, 1], z[:, 0], err_msg=name)


CHANGES = {
    "friction": lambda sim, x: setattr(sim.joint("pendulum"), "friction", x(0.2, 0.0)),
    "torque": lambda sim, x: setattr(sim.joint("pendulum"), "effort", x(0.5, 0.0)),
    "disabled": lambda sim, x: setattr(sim.joint("ball"), "enabled", x(False, True)),
    "outer force": lambda sim, x: sim.body("e").apply_force(x([0.0, 0.0, 3.0], [0.0, 0.0, 0.0]), once=False),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.filterwarnings("ignore:joint 'pendulum'")
def test_what_changes_in_one_world_is_stepped_there_and_leaves_the_others_alone(what):
    """Against the generic form; and worlds without the change go on to the bit as if it had not been made."""
    a, b, quiet = simulate(True, 3), simulate(False, 3), simulate(True, 3)
    for sim in (a, b, quiet):
        sim.step(20)
    for sim in (a, b):
        CHANGES[what](sim, lambda yes, no: np.array([no, yes, no]))
    for sim in (a, b, quiet):
        sim.step(30)
    assert generic_was_needed(a)
    assert max(differences(a, b).values()) < 1e-8, differences(a, b)
    np.testing.assert_array_equal(a.state.position.numpy()[:, [0, 2]], quiet.state.position.numpy()[:, [0, 2]])
    assert np.abs(a.state.position.numpy()[:, 1] - quiet.state.position.numpy()[:, 1]).max() > 1e-6
    for sim in (a, b):
        CHANGES[what](sim, lambda yes, no: np.array([no, no, no]))
        sim.step(30)
    assert max(differences(a, b).values()) < 1e-7, differences(a, b)
    np.testing.assert_allclose(a.joint("elbow").position, b.joint("elbow").position, atol=1e-8)
    assert not a.solver._trees._whole.mark.numpy().any()  # the specialized form has taken up the world again


def test_a_law_that_the_compiled_form_does_not_have_is_told_once():
    sim = simulate(True)
    sim.step(5)
    sim.joint("pendulum").friction = 0.2
    with pytest.warns(sh.StepWarning, match=r"joint 'pendulum': friction_static acts, .* generic form"):
        sim.step(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(5)
        sim.joint("pendulum").friction = 0.3
        sim.step(5)


def test_values_of_laws_that_act_may_change_without_leaving_the_compiled_form():
    a, b = simulate(True, 2), simulate(False, 2)
    for sim in (a, b):
        sim.step(5)
        sim.joint("elbow").friction = [0.3, 0.05]
        sim.joint("elbow").drive.kp = [10.0, 30.0]
        sim.randomize(1, mass=0.2)
        sim.gravity = (0.0, 1.0, -5.0)
        sim.step(50)
    assert not generic_was_needed(a)
    assert max(differences(a, b).values()) < 1e-8, differences(a, b)


def test_states_of_one_form_are_continued_by_the_other():
    a, b = simulate(True), simulate(False)
    a.step(30)
    b.restore(a.snapshot())
    steps_alike(b, a, 30, 1e-8)
    mark = b.snapshot()
    other = simulate(True)
    other.restore(mark)
    steps_alike(other, b, 30, 1e-8)
    kept = a.snapshot()
    a.step(20)
    end = a.state.position.numpy().copy()
    a.restore(kept)
    a.step(20)
    np.testing.assert_array_equal(a.state.position.numpy(), end)


def resting():
    """Two pendulums at rest."""
    scene = sh.Scene()
    for k in range(2):
        scene.add_body(f"p{k}", sh.Box(0.04, 0.04, 0.3), mass=0.3, position=(0, k, -0.15))
        scene.add_joint(f"j{k}", sh.Revolute("y", friction=0.01), scene.world, f"p{k}", position=(0, k, 0))
    scene.add_body("c", sh.Box(0.1, 0.1, 0.1), mass=1.0, position=(2, 0, -0.2))
    scene.add_joint("swings", sh.Revolute("x"), scene.world, "c", position=(2, 0, 0))
    return scene


def test_trees_that_sleep_beside_one_that_moves_and_wake():
    sims = [simulate(s, scene=resting) for s in (True, False)]
    for sim in sims:
        sim.step(700)
        assert sim.body("p0").asleep
        assert not sim.body("c").asleep
    assert max(differences(*sims).values()) < 1e-8
    for sim in sims:
        sim.joint("j0").velocity = sim.joint("j1").velocity = 1.0
        sim.step(50)
        assert not sim.body("p0").asleep
    assert max(differences(*sims).values()) < 1e-8
    assert not sims[0].solver._trees._whole.mark.numpy().any()


def settling():
    """An arm of two hinges that a servo and friction bring to rest."""
    scene = sh.Scene()
    last = scene.world
    for k in range(2):
        scene.add_body(f"p{k}", sh.Box(0.04, 0.04, 0.3), mass=0.3, position=(0, 0, -0.15 - 0.3 * k))
        drive = sh.Servo(position=0.1, kp=20.0, kd=1.0, max_force=5.0)
        scene.add_joint(f"j{k}", sh.Revolute("xy"[k], friction=0.02, drive=drive), last, f"p{k}", position=(0, 0, -0.3 * k))
        last = f"p{k}"
    return scene


@pytest.mark.parametrize("kernels", ["of a CPU", "of a GPU"])
def test_what_falls_asleep_within_a_call_and_is_woken_by_a_command_needs_no_generic_steps(kernels, request):
    if kernels == "of a GPU":
        request.getfixturevalue("code_of_a_gpu")
    sims = [sh.Simulation(settling(), 1e-3, worlds=2, specialize=s) for s in (True, False)]
    for sim in sims:
        sim.joint("j0").drive.position = [0.1, 0.3]
        for _ in range(150):
            sim.step(17)
        assert np.all(sim.body("p1").asleep)
    assert not generic_was_needed(sims[0])
    np.testing.assert_allclose(sims[0].time, sims[1].time, rtol=1e-14)
    assert max(differences(*sims).values()) < 1e-8, differences(*sims)
    for sim in sims:
        sim.joint("j1").drive.position = [0.1, -0.3]
        sim.step(17)
        assert np.array_equal(sim.body("p1").asleep, [True, False])
        sim.step(100)
    assert not generic_was_needed(sims[0])
    assert max(differences(*sims).values()) < 1e-8, differences(*sims)


def test_a_world_sleeps_beside_one_that_is_left_to_generic_steps(code_of_a_gpu):
    """It makes its steps once, however many turns the other takes."""
    sim = sh.Simulation(settling(), 1e-3, worlds=2, specialize=True)
    for _ in range(150):
        sim.step(17)
    assert np.all(sim.body("p1").asleep)
    sim.body("p1").apply_force([(0, 0, 0), (0.0, 2.0, 0.0)], once=False)
    before = np.array(sim.time)
    for _ in range(3):
        sim.step(17)
    assert generic_was_needed(sim)
    assert np.array_equal(sim.body("p1").asleep, [True, False])
    np.testing.assert_allclose(np.array(sim.time) - before, 3 * 17e-3, rtol=1e-9)


def loop():
    scene = mechanism()
    scene.add_joint("rod", sh.Distance(), "c", "e", position=[(0.65, 0.05, 0.03), (0.1, -1, 0)])
    return scene


def breakable():
    scene = mechanism()
    scene.add_body("f", sh.Box(0.1, 0.2, 0.1), mass=1.0, position=(0, 2, 0))
    scene.add_joint("fuse", sh.Revolute("x"), scene.world, "f", position=(0, 2, 0), break_force=50.0)
    return scene


def spinning():
    """A frame on a hinge, in which two wheels turn, one with friction and a servo that reaches its bound; one floats beside."""
    scene = sh.Scene()
    turned = (0, 0, np.sin(0.25), np.cos(0.25))
    scene.add_body("frame", sh.Box(0.3, 0.2, 0.1), mass=2.0, position=(0.2, 0, 0))
    scene.add_joint("gimbal", sh.Revolute("y", damping=0.01), scene.world, "frame", position=(0, 0, 0))
    servo = sh.Servo(velocity=60.0, kd=0.02, max_force=0.3)
    for k, laws in enumerate(({}, {"friction": 0.05, "drive": servo})):
        at = (0.2 + 0.1 * k, 0.1, 0.05)
        scene.add_body(f"wheel {k}", mass=0.5, inertia=(0.002, 0.0012, 0.0012), rotation=turned, position=at)
        scene.add_joint(f"axle {k}", sh.Revolute("x", **laws), "frame", f"wheel {k}", position=at, rotation=turned)
    scene.add_body("c", sh.Box(0.1, 0.2, 0.1), mass=1.0, position=(0, 2, 0))
    return scene


def test_rotors_make_the_same_steps_in_both_forms():
    sims = [simulate(s, scene=spinning) for s in (True, False)]
    for sim in sims:
        sim.joint("axle 0").velocity = 300.0
        sim.step(50)
        for _ in range(50):
            sim.step()
    assert is_special(sims[0])
    assert not generic_was_needed(sims[0])
    assert sims[0].joint("axle 1").velocity > 10.0
    found = differences(*sims)
    assert max(found[name] for name in ("position", "rotation")) < 1e-12, found
    assert max(found.values()) < 1e-8, found


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (loop, "'rod' joins bodies beside the tree"),
        (breakable, "joint 'fuse' may break"),
    ],
)
def test_what_cannot_be_specialized_is_refused_by_name(scene, words):
    with pytest.raises(sh.SimulationError, match=words):
        sh.Simulation(scene(), 1e-3, specialize=True)
    sh.Simulation(scene(), 1e-3, specialize=None)


def test_the_rule_that_chooses_the_form_on_a_gpu_knows_rows_beside_a_tree():
    """A GPU takes specialized code where nothing speaks against it: a loop does, on every device."""
    for scene, words in ((mechanism, ""), (loop, "rows beside the tree join bodies")):
        model = scene().build()
        plan = Plan(model)
        assert trees.refusal(plan, closures_of(plan) if plan.beside else [], model.control(), trees.LARGEST) == words


def test_code_is_known_before_the_start_of_a_scene_is_found():
    """So that a GPU compiles it meanwhile; other values of laws need no other code, other laws do."""
    early = []
    model = mechanism().build(3, begin=lambda one: early.append(Specialized(Plan(one), one, one.control(), True)))
    plan, control = Plan(model), model.control()
    assert Specialized(plan, model, control, True).body == early[0].body
    for x in (control.servo_kp, control.servo_position, control.friction_static):
        x.assign(1.5 * x.numpy())
    assert early[0].fits(plan, model, control)
    assert Specialized(plan, model, control, True).body == early[0].body
    control.friction_static.fill_(0.3)
    assert not early[0].fits(plan, model, control)


def test_other_solvers_and_values_are_refused():
    with pytest.raises(sh.SimulationError, match="'specialize' is not an option of solver 'sequential'"):
        sh.Simulation(mechanism(), 1e-3, solver="sequential", specialize=True)
    with pytest.raises(sh.SimulationError, match="specialize is True, False or None, got 3"):
        sh.Simulation(mechanism(), 1e-3, specialize=3)


def random_tree(seed):
    """A tree of seven bodies, some joints the other way round, with laws on most axes; the first body floats in some of them."""
    rng = np.random.default_rng(seed)
    scene, names = sh.Scene(), ["world"]
    places = {"world": np.zeros(3)}
    kinds = [
        lambda: sh.Revolute("xyz"[rng.integers(3)], friction=0.05, limit=(-0.3, 0.4), drive=sh.Servo(0.3, kp=5.0, kd=0.1)),
        lambda: sh.Revolute("xyz"[rng.integers(3)], spring=(3.0, 0.2), damping=0.02),
        lambda: sh.Revolute("y", drive=sh.DCMotor(6.0, 0.5, 1e-3, 0.05, 10.0, 0.8, 1e-4)),
        lambda: sh.Prismatic("x", spring=(90.0, 0.02), friction=0.2, limit=(-0.05, 0.05)),
        lambda: sh.Spherical(damping={"rx": 0.02, "ry": 0.01}, spring={"rz": (1.0, 0.1)}),
        lambda: sh.Spherical(),
        lambda: sh.Universal(("y", "z"), damping=0.02, limit=(-0.3, 0.3)),
        lambda: sh.Cylindrical("x", damping=0.05, spring={"x": (50.0, 0.01)}),
        lambda: sh.Fixed(),
    ]
    for i in range(7):
        base = names[rng.integers(len(names))] if i else "world"
        at = places[base] + rng.uniform(-0.2, 0.2, 3)
        places[f"b{i}"] = at + rng.uniform(-0.15, 0.15, 3)
        scene.add_body(f"b{i}", sh.Box(*rng.uniform(0.05, 0.3, 3)), mass=rng.uniform(0.3, 2.0), position=places[f"b{i}"])
        if i or seed % 2:
            pair = (base, f"b{i}") if rng.random() < 0.7 or base == "world" else (f"b{i}", base)
            scene.add_joint(f"j{i}", kinds[rng.integers(len(kinds))](), *pair, position=at)
        names.append(f"b{i}")
    return scene


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_trees_with_all_laws_make_the_same_steps_in_both_forms(seed, monkeypatch):
    monkeypatch.setitem(trees.ACTED, "double", 1.0)  # solved to rounding
    sims = [sh.Simulation(random_tree(seed), 1e-3, specialize=s, sleep=False) for s in (True, False)]
    for sim in sims:
        sim.body("b6").angular_velocity = [3.0, -2.0, 1.0]
        sim.step(50)
        for _ in range(50):
            sim.step()
    assert is_special(sims[0])
    found = differences(*sims)
    assert max(found[name] for name in ("position", "rotation")) < 1e-12, found
    assert max(found.values()) < 1e-8, found
