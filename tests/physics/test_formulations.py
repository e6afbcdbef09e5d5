"""The direct solver against references of another kind: an integration of high order, the sequential solver, closed forms."""

import numpy as np
import pytest
from test_passive import mechanism
from test_reference_numbers import four_bar

import sharnir as sh
from sharnir.core.spatial import quat_exp, quat_rotate

EXACT = {"tolerances": sh.Tolerances(iterations=300, position_iterations=50, tolerance=1e-14)}


def make(scene, solver, dt, **options):
    """A simulation; the sequential solver iterates until it converges."""
    return sh.Simulation(scene, dt, solver=solver, **(EXACT if solver == "sequential" else {}), **options)


def both(scene, dt, **options):
    return make(scene, "sequential", dt, **options), make(scene, "direct", dt, **options)


def bodies(sim):
    return [name for name in sim.model.body_names if name != "world"]


def places(sim):
    return np.array([sim.body(name).com for name in bodies(sim)])


def run_for(sim, time):
    sim.run(time)
    return sim


# ---- the same laws --------------------------------------------------------------------------------------------------------

F = sh.Friction
MOTOR = sh.DCMotor(
    voltage=12, resistance=1.2, inductance=5e-3, torque_constant=0.05, gear_ratio=10, rotor_inertia=2e-5, efficiency=0.8,
    no_load_friction=0.01,
)  # fmt: skip
LAWS = {  # joint, start speeds, how far off the motion may be at 1 ms in 0.16 s, rad or m
    "hinge, constant": (sh.Revolute("y", friction=0.3), 2.0, 3e-5),
    "hinge, static": (sh.Revolute("y", friction=F(static=0.5, dynamic=0.3)), 2.0, 3e-5),
    "hinge, Stribeck and viscous": (sh.Revolute("y", friction=F(0.5, 0.3, viscous=0.05, stribeck=0.2)), 2.0, 3e-5),
    "hinge, load": (sh.Revolute("y", friction=F(load=0.02)), 2.0, 5e-4),
    "slider, load": (sh.Prismatic((1, 0, -0.5), friction=F(static=2, dynamic=1, load=0.1)), 1.0, 3e-4),
    "ball": (sh.Spherical(friction=0.3), (1, 2, -1), 5e-4),
    "ball, static": (sh.Spherical(friction=F(static=0.6, dynamic=0.3, viscous=0.01)), (1, 2, -1), 5e-4),
    "planar": (sh.Planar("y", friction=1.0), (1, 0.5, 2), 5e-4),
    "cylindrical": (sh.Cylindrical("x", friction=0.5), (1.0, 3.0), 3e-7),
    "universal": (sh.Universal(friction=0.2), (1.0, 2.0), 5e-4),
    "limit": (sh.Revolute("y", limit=(-0.3, 0.4)), 1.0, 1e-5),
    "limit, restitution": (sh.Revolute("y", limit=sh.Limit(-0.3, 0.4, restitution=0.6)), 1.0, 1e-3),
    "Cardan": (sh.Spherical(limit=sh.Cardan(x=(-0.3, 0.3), y=(-0.2, 0.4), z=(-0.2, 0.3))), (2, 1, -1), 1e-3),
    "Cardan, friction": (sh.Spherical(friction=0.2, limit=sh.Cardan((-0.3, 0.3), (-0.2, 0.4), (-0.2, 0.3))), (2, 1, -1), 6e-3),
    # around the narrow end of the cone, between 0.12 and 0.15 s, a step ends along a tangent and the limit takes what the cone
    # turns away: of first order, in all solvers alike; 4e-2, 2.3e-2, 1.1e-2, 6e-3 at 1, 0.5, 0.2, 0.1 ms, 5e-4 before that
    "swing and twist": (sh.Spherical(limit=sh.SwingTwist((0.4, 0.6), (-0.3, 0.3))), (2, 1, -1), 6e-2),
    "spring and damper": (sh.Revolute("y", spring=(20.0, 0.2), damping=0.1), 0.0, 5e-5),
    "ball, spring": (sh.Spherical(spring=(20.0, 0.2), damping=0.1), (1, 2, -1), 5e-4),
    "servo": (sh.Revolute("y", drive=sh.Servo(position=-0.3, kp=100, kd=5, max_force=3.0)), 0.0, 5e-6),
    "servos at caps": (sh.Universal(drive=sh.Servo(position=-0.3, kp=100, kd=5, max_force=1.2)), (0, 0), 1e-3),
    "motor": (sh.Revolute("y", friction=0.05, drive=MOTOR), 0.0, 3e-4),
}


def rod_on(joint):
    scene = sh.Scene()
    scene.add_body("rod", sh.Box(0.3, 0.06, 0.04), mass=1.0, position=(0.15, 0.02, 0.01))
    scene.add_joint("j", joint, scene.world, "rod", position=(0, 0, 0))
    return scene


@pytest.mark.parametrize("name", LAWS)
def test_a_joint_follows_its_laws(name):
    """Against an integration in which stick, slip and limits are events."""
    joint, speed, close = LAWS[name]
    off, passes = [], []
    for dt in (1e-3, 5e-4):
        sim, exact = (make(rod_on(joint), "direct", dt) for _ in range(2))
        for s in (sim, exact):
            s.joint("j").velocity = speed
        passes.append(max(sim.step().iterations for _ in range(round(0.16 / dt))))
        exact.integrate(0.16)
        a, b = (np.r_[s.body("rod").com, s.body("rod").rotation] for s in (sim, exact))
        off.append(np.abs(a - b * np.r_[1, 1, 1, np.full(4, np.sign(a[3:] @ b[3:]))]).max())
    print(f"{name}: {off[0]:.1e}, {off[1]:.1e} off; at most {max(passes)} passes")
    strikes = name.startswith(("limit", "Cardan", "swing"))  # how far off depends on where in a step it does
    assert max(off) < close and (strikes or off[1] < 0.75 * off[0] or off[1] < 1e-6) and max(passes) < 20


def test_readings_of_a_tree_and_a_loop_agree():
    """Every joint's reaction, and the rod's, in a driven loop with friction."""
    scene = crank(friction=0.05)
    pair = both(scene, 2e-4)
    for sim in pair:
        sim.joint("axle").drive = sh.Servo(velocity=3.0, kd=5.0)
        sim.step(500)
    for name in pair[0].model.joint_names:
        a, b = (np.concatenate(sim.joint(name).reaction) for sim in pair)
        print(f"{name}: reaction {np.round(a[:3], 4)} N, apart {np.abs(a - b).max():.1e}")
        assert np.abs(a[:3] - b[:3]).max() < 0.02 * (1 + np.abs(a).max()), name
    assert abs(pair[0].energy().total - pair[1].energy().total) < 1e-3


# ---- holds ----------------------------------------------------------------------------------------------------------------


def arm(bounds, axes, dt=0.01):
    scene, last = sh.Scene(), "world"
    for i, (bound, axis) in enumerate(zip(bounds, axes, strict=True)):
        scene.add_body(f"b{i}", sh.Box(0.1, 0.03, 0.02), mass=0.3, position=(0.1 * i + 0.05, 0, 0))
        scene.add_joint(f"j{i}", sh.Revolute(axis, friction=bound), last, f"b{i}", position=(0.1 * i, 0, 0))
        last = f"b{i}"
    return make(scene, "direct", dt)


def test_what_friction_holds_does_not_move_one_bit_in_a_minute(axes="zyyxyx"):
    n = len(axes)
    load = [0.3 * 9.81 * 0.1 * (n - i) ** 2 / 2 for i in range(n)]
    sim = arm([1.01 * x for x in load], axes)
    start = sim.snapshot()
    sim.run(60.0)
    end = sim.snapshot()
    moved = max(np.abs(end[f"state.{f}"] - start[f"state.{f}"]).max() for f in ("q", "position", "rotation", "velocity", "spin"))
    print(f"{n} axes held for 60 s: moved by {moved}")
    assert moved == 0.0 and all(sim.joint(f"j{i}").stuck for i in range(n))
    sim.joint("j1").friction = 0.99 * load[1]
    sim.run(1.0)
    print(f"below its load joint 1 goes to {sim.joint('j1').position:.3f} rad")
    assert abs(sim.joint("j1").position) > 0.01


# ---- passive --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [pytest.param(part, marks=pytest.mark.slow) for part in (0, 1, 2)])
def test_random_passive_mechanisms_lose_energy(part):
    """Friction takes energy in every step; what a limit takes may be given back when its joint is put back in."""
    worst, least, most, lost, worlds = -np.inf, 0.0, 0, 0, 20
    for seed in range(100 + 10 * part, 110 + 10 * part):
        gains = []
        for passive in (False, True):
            scene, speeds = mechanism(seed, passive)
            sim = make(scene, "direct", 1e-3, worlds=worlds)
            for i, name in enumerate(bodies(sim)):
                sim.body(name).velocity, sim.body(name).angular_velocity = speeds[2 * i][:worlds], speeds[2 * i + 1][:worlds]
            sim.step(2)
            energies = [sim.energy().total]
            for k in range(200):
                report = sim.step()
                if passive:
                    limited = [any(np.isfinite(a.limit.lower) for a in axes) or kind.ball is not None
                               for kind, axes in zip(sim.model.joint_kinds, sim.model.joint_axes, strict=True)]  # fmt: skip
                    taken = sim.state.dissipated.numpy()[~np.array(limited)]
                    least, most = min(least, float(taken.min(initial=0.0))), max(most, report.iterations.max())
                    lost += int((~report.converged).sum())
                if k % 5 == 4:
                    energies.append(sim.energy().total)
            gains.append(np.max(energies, 0) - energies[0])
        scale = np.abs(np.array(energies)).max(0) + 0.1
        worst = max(worst, float(((gains[1] - gains[0]) / scale).max()))
    print(f"10 mechanisms × {worlds} worlds: {worst:.1e} above the free twin, least taken {least:.1e} J, at most {most} passes")
    print(f"{lost} of {10 * 200 * worlds} steps not solved to 1e-10 N·s")
    assert worst < 1e-9 and least >= -1e-9 and lost <= 40  # one in a thousand


# ---- loops ----------------------------------------------------------------------------------------------------------------


def crank(friction=0.0):
    """A slider-crank whose rail closes the loop."""
    scene = sh.Scene(gravity=(0, -9.81, 0))
    scene.add_body("crank", sh.Box(0.2, 0.02, 0.02), mass=0.5, position=(0.1, 0, 0))
    scene.add_body("rod", sh.Box(0.5, 0.02, 0.02), mass=1.0, position=(0.45, 0, 0))
    scene.add_body("slider", sh.Box(0.1, 0.1, 0.1), mass=2.0, position=(0.7, 0, 0))
    f = friction or None
    scene.add_joint("axle", sh.Revolute("z", friction=f), scene.world, "crank", position=(0, 0, 0))
    scene.add_joint("pin", sh.Revolute("z", friction=f), "crank", "rod", position=(0.2, 0, 0))
    scene.add_joint("wrist", sh.Cylindrical("z", friction=f), "rod", "slider", position=(0.7, 0, 0))
    scene.add_joint("rail", sh.Prismatic("x", friction=f), scene.world, "slider", position=(0.7, 0, 0))
    return scene


def universal_loop():
    """A ring of four bars on universal, ball and hinge joints, closed on the ground."""
    scene = sh.Scene()
    points = np.array([[0, 0, 0], [0.3, 0.1, 0.2], [0.7, -0.1, 0.1], [0.9, 0.2, -0.2], [1.0, 0, 0]])
    kinds = [sh.Revolute((0.2, 1, 0)), sh.Universal(), sh.Spherical(), sh.Universal(("z", "y")), sh.Revolute((0, 0.3, 1))]
    for i in range(4):
        scene.add_body(f"b{i}", sh.Box(0.2, 0.03, 0.04), mass=1.0, position=points[i : i + 2].mean(0))
    ends = ["world", "b0", "b1", "b2", "b3", "world"]
    for i, kind in enumerate(kinds):
        scene.add_joint(f"j{i}", kind, ends[i], ends[i + 1], position=points[i])
    return scene


def stewart():
    """A platform on six legs, each a slider between a universal joint and a ball."""
    scene = sh.Scene()
    scene.add_body("top", sh.Box(0.5, 0.5, 0.05), mass=3.0, position=(0, 0, 0.6))
    for i in range(6):
        a, b = (np.pi / 3 * (i + (0.3 if i % 2 else -0.3)), np.pi / 3 * (i + (-0.2 if i % 2 else 0.2)))
        foot, head = np.array([0.5 * np.cos(a), 0.5 * np.sin(a), 0]), np.array([0.25 * np.cos(b), 0.25 * np.sin(b), 0.6])
        n = (head - foot) / np.linalg.norm(head - foot)
        for part, share in (("lower", 0.25), ("upper", 0.75)):
            scene.add_body(f"{part}{i}", sh.Box(0.03, 0.03, 0.2), mass=0.3, position=foot + share * (head - foot))
        side = np.cross(n, (0, 0, 1))
        side /= np.linalg.norm(side)
        scene.add_joint(f"foot{i}", sh.Universal((side, np.cross(n, side))), scene.world, f"lower{i}", position=foot)
        leg = sh.Prismatic(n, spring=(400.0, 0.0), damping=5.0, friction=0.5)
        scene.add_joint(f"leg{i}", leg, f"lower{i}", f"upper{i}", position=(foot + head) / 2)
        scene.add_joint(f"head{i}", sh.Spherical(friction=0.01), f"upper{i}", "top", position=head)
    return scene


def rods_and_springs(stiffness=50.0, rest=0.1):
    """Two bars on rods, a spring between them, or a rod where stiffness is None."""
    scene = sh.Scene()
    for i in range(2):
        scene.add_body(f"b{i}", sh.Box(0.4, 0.05, 0.05), mass=1.0, position=(0.6 * i, 0, 0))
        for x in (-0.2, 0.2):
            ends = [(0.6 * i + 1.2 * x, 0.1 * x, 0.5), (0.6 * i + x, 0, 0)]
            scene.add_joint(f"rod{i}{x}", sh.Distance(), scene.world, f"b{i}", position=ends)
    if stiffness is None:
        scene.add_joint("s", sh.Distance(), "b0", "b1", position=[(0.2, 0, 0), (1.0, 0, 0)])
    else:
        scene.add_spring("s", "b0", "b1", at_a=(0.2, 0, 0), at_b=(0.4, 0, 0), stiffness=stiffness, rest=rest)
    return scene


LOOPS = {"crank": crank, "universal loop": universal_loop, "Stewart platform": stewart, "rods and spring": rods_and_springs}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_stay_closed_and_move_as_with_impulses(name):
    scene = LOOPS[name]()
    apart, gap = [], 0.0
    for dt in (1e-3, 5e-4):
        pair = both(scene, dt)
        for _ in range(20):
            for sim in pair:
                sim.run(0.01)
            gap = max(gap, pair[1].constraint_error().max())
        apart.append(np.abs(places(pair[0]) - places(pair[1])).max())
    print(f"{name}: apart {apart[0]:.1e}, {apart[1]:.1e} m after 0.2 s, gap {gap:.1e}")
    assert gap < 1e-9 and (apart[1] < 0.75 * apart[0] or apart[1] < 1e-8)


def test_friction_and_motors_on_every_joint_of_a_loop():
    scene, apart = crank(friction=0.1), []
    for dt in (1e-3, 5e-4):
        pair = both(scene, dt)
        for sim in pair:
            for name, speed in (("axle", 2.0), ("rail", -0.3)):
                sim.joint(name).drive = sh.Servo(velocity=speed, kd=2.0, max_force=3.0)
            sim.run(0.3)
        apart.append(abs(pair[0].joint("axle").position - pair[1].joint("axle").position))
    print(f"driven at both ends, friction: apart {apart[0]:.1e}, {apart[1]:.1e} rad, gap {pair[1].constraint_error().max():.1e}")
    assert apart[1] < 0.7 * apart[0] and pair[1].constraint_error().max() < 1e-9


def test_gears_and_a_screw():
    scene = sh.Scene()
    for i, x in enumerate((0, 0.3)):
        scene.add_body(f"w{i}", sh.Box(0.2, 0.05, 0.1), mass=1.0, position=(x + 0.05, 0, 0))
        scene.add_joint(f"a{i}", sh.Revolute("y", friction=0.02), scene.world, f"w{i}", position=(x, 0, 0))
    scene.add_joint("gear", sh.Gear("a0", "a1", -2.0))
    scene.add_body("nut", sh.Box(0.1, 0.1, 0.05), mass=1.0, position=(1, 0, 0))
    scene.add_joint("screw", sh.Cylindrical("z"), scene.world, "nut", position=(1, 0, 0))
    scene.add_joint("thread", sh.Gear(("screw", "z"), ("screw", "rz"), 0.01))
    pair = both(scene, 2e-4)
    for sim in pair:
        sim.run(0.5)
    a, b = (np.r_[sim.joint("a0").position, sim.joint("screw").position] for sim in pair)
    q = pair[1].joint("a0").position + 2 * pair[1].joint("a1").position
    z, turn = pair[1].joint("screw").position
    print(f"apart {np.abs(a - b).max():.1e}, gear off {q:.1e} rad, thread off {z - 0.01 * turn:.1e} m")
    assert abs(q) < 1e-9 and abs(z - 0.01 * turn) < 1e-9 and np.abs(a - b).max() < 1e-3 * np.abs(a).max()
    assert pair[0].joint("gear").reaction == pytest.approx(pair[1].joint("gear").reaction, rel=1e-2)


def test_looking_at_gears_does_not_change_the_motion():
    """How far joints and gears stand open is found from the bodies; the coordinates stay those of the solver."""
    scene = sh.Scene()
    for i in range(2):
        scene.add_body(f"w{i}", sh.Box(0.2, 0.05, 0.1), mass=1.0 + i, position=(i + 0.05, 0.02, 0))
        scene.add_joint(f"a{i}", sh.Revolute((0.3, 1.0, 0.2)), scene.world, f"w{i}", position=(i, 0, 0))
    scene.add_joint("gear", sh.Gear("a0", "a1", -1.3))
    seen, unseen = (sh.Simulation(scene, 5e-3, solver="direct") for _ in range(2))
    for _ in range(50):
        for sim in (seen, unseen):
            sim.step()
        gaps = seen.constraint_error().max(), seen.joint("gear").gap, seen.joint("a0").anchor, seen.joint("a0").axes
    a, b = seen.snapshot(), unseen.snapshot()
    print(f"gaps {gaps[0]:.1e}, {gaps[1]:.1e}; apart {np.abs(a['state.position'] - b['state.position']).max():.1e} m")
    assert all(np.array_equal(a[k], b[k]) for k in a)


def test_looking_at_joints_beside_a_body_on_a_path_does_not_change_the_motion():
    """A path gives its body a velocity in every step, which is no change from outside: coordinates are those of the solver."""
    scene = sh.Scene()
    scene.add_body("cart", sh.Box(0.2, 0.2, 0.2), motion="kinematic", path=lambda t: (0.2 * np.sin(3 * t), 0, 0))
    scene.add_body("arm", sh.Box(0.1, 0.1, 0.5), mass=1.0, position=(0.1, 0, -0.3))
    scene.add_joint("ball", sh.Spherical(), "cart", "arm", position=(0, 0, 0))
    seen, unseen = (sh.Simulation(scene, 5e-3, solver="direct") for _ in range(2))
    for _ in range(50):
        for sim in (seen, unseen):
            sim.step()
        assert np.all(np.isfinite(seen.joint("ball").position))
    a, b = seen.snapshot(), unseen.snapshot()
    print(f"apart {np.abs(a['state.position'] - b['state.position']).max():.1e} m")
    assert all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("stiffness", [1e2, 1e4])
def test_springs_between_points_follow_an_integration(stiffness):
    scene, off = rods_and_springs(stiffness, rest=0.8 + 10.0 / stiffness), []
    exact = make(scene, "direct", 1e-3)
    exact.integrate(0.2, rtol=1e-10, atol=1e-10)
    for dt in (1e-3, 5e-4):
        off.append(np.abs(places(run_for(make(scene, "direct", dt), 0.2)) - places(exact)).max())
    print(f"k = {stiffness:g} N/m: {off[0]:.1e}, {off[1]:.1e} m off after 0.2 s")
    assert off[1] < 0.35 * off[0] and off[0] < 3e-6


def test_a_spring_stiffer_than_steps_resolve_holds_like_a_rod():
    sim, rod = (make(scene, "direct", 1e-3) for scene in (rods_and_springs(1e9, rest=None), rods_and_springs(None)))
    stretch = apart = 0.0
    for _ in range(20):
        for one in (sim, rod):
            one.run(0.01)
        stretch = max(stretch, abs(sim.spring("s").length - sim.spring("s").rest))
        apart = max(apart, np.abs(places(sim) - places(rod)).max())
    print(f"k = 1e9 N/m: stretch up to {stretch:.1e} m, {apart:.1e} m from a rod in its place")
    assert stretch < 1e-7 and apart < 1e-6


# ---- between steps --------------------------------------------------------------------------------------------------------


def projected(velocity, spin):
    """Twists nearest in kinetic energy to those given that a chain of four boxes allows: hinge about y, ball, hinge about y."""
    inertia = np.array([0.05**2 + 0.1**2, 0.2**2 + 0.1**2, 0.2**2 + 0.05**2]) / 12
    inverse, rows = 1 / np.tile(np.r_[np.ones(3), inertia], 4), []
    for i in (1, 2, 3):
        arms = [np.cross(np.eye(3), (0.1, 0, 0)), np.cross(np.eye(3), (-0.1, 0, 0))]  # rows of ω × arm, of the two bodies
        J = np.zeros((5 if i % 2 else 3, 24))
        J[:3, 6 * i - 6 : 6 * i - 3], J[:3, 6 * i : 6 * i + 3] = -np.eye(3), np.eye(3)
        J[:3, 6 * i - 3 : 6 * i], J[:3, 6 * i + 3 : 6 * i + 6] = -arms[0].T, arms[1].T
        if i % 2:
            J[3:, 6 * i - 3 : 6 * i], J[3:, 6 * i + 3 : 6 * i + 6] = -np.eye(3)[[0, 2]], np.eye(3)[[0, 2]]
        rows.append(J)
    J, V = np.concatenate(rows), np.concatenate([velocity, spin], 1).ravel()
    return (V - inverse * (J.T @ np.linalg.solve(J * inverse @ J.T, J @ V))).reshape(4, 6)


def test_speeds_that_joints_do_not_allow_are_projected():
    scene = sh.Scene(gravity=(0, 0, 0))
    rng = np.random.default_rng(3)
    velocity, spin = rng.normal(size=(2, 4, 3))
    for i in range(4):
        motion = {"velocity": velocity[i], "angular_velocity": spin[i]}
        scene.add_body(f"b{i}", sh.Box(0.2, 0.05, 0.1), mass=1.0, position=(0.2 * i, 0, 0), **motion)
        if i:
            joint = sh.Revolute("y") if i % 2 else sh.Spherical()
            scene.add_joint(f"j{i}", joint, f"b{i - 1}", f"b{i}", position=(0.2 * i - 0.1, 0, 0))
    exact = projected(velocity, spin)
    for sim in both(scene, 1e-9):
        start = sim.momentum()
        sim.step()
        found = np.array([np.r_[sim.body(name).velocity, sim.body(name).angular_velocity] for name in bodies(sim)])
        off, now = np.abs(found - exact).max(), sim.momentum()
        lost = max(np.abs(now.linear - start.linear).max(), np.abs(now.angular - start.angular).max())
        print(f"{sim.solver_name}: speeds within {off:.1e} of the projection, momenta kept to {lost:.1e}")
        assert off < 1e-6 and lost < 1e-9


@pytest.mark.parametrize("joint", [sh.Revolute("y"), sh.Spherical()])
def test_what_hangs_on_a_driven_base_feels_it(joint):
    apart = []
    for dt in (2e-3, 1e-3):
        scene = sh.Scene()
        scene.add_body("cart", sh.Box(0.1, 0.1, 0.1), motion="kinematic")
        scene.add_body("bob", sh.Box(0.05, 0.05, 0.4), mass=1.0, position=(0, 0, -0.2))
        scene.add_joint("j", joint, "cart", "bob", position=(0, 0, 0))
        pair = both(scene, dt)
        for k in range(round(0.5 / dt)):
            for sim in pair:
                sim.body("cart").velocity = (np.sin(5 * k * dt), 0.3 * np.cos(3 * k * dt), 0)
                sim.body("cart").angular_velocity = (0, 0, 0.5 * k * dt)
                sim.step()
        tilt = quat_rotate(pair[1].body("bob").rotation, np.array([0, 0, 1.0]))
        apart.append(np.abs(places(pair[0]) - places(pair[1])).max())
    print(f"{joint.kind}: apart {apart[0]:.1e}, {apart[1]:.1e} m; the bob hangs at {np.degrees(np.arccos(tilt[2])):.1f}°")
    assert tilt[2] < 0.999 and apart[1] < 0.7 * apart[0] + 1e-9 and pair[1].constraint_error().max() < 1e-12


def test_positions_speeds_and_commands_set_between_steps():
    sim = arm([0.0] * 4, "yxyz", dt=1e-3)
    sim.step(50)
    sim.joint("j1").position, sim.joint("j2").velocity = 0.4, -1.5
    before = sim.energy().total
    assert sim.joint("j1").position == pytest.approx(0.4, abs=1e-12)
    sim.step()
    print(f"energy {before:.6f} J, a step later {sim.energy().total:.6f} J; speed {sim.joint('j2').velocity:.4f} of -1.5 rad/s")
    assert sim.energy().total == pytest.approx(before, abs=0.02)
    sim.gravity, sim.dt = (0, 0, 0), 5e-4
    start = sim.energy().kinetic
    sim.step(200)
    assert sim.energy().kinetic == pytest.approx(start, rel=0.02)
    assert sim.time == pytest.approx(0.051 + 0.1)


def test_a_violated_limit_is_repaired_without_kinetic_energy():
    for joint, position in (
        (sh.Revolute("z", limit=(-1, 1)), 1.3),
        (sh.Cylindrical("z", limit={"rz": (-1, 1)}), (0.0, -1.3)),
        (sh.Spherical(limit=sh.Cardan(x=(-0.5, 0.5))), quat_exp(np.array([0.8, 0, 0]))),
    ):
        scene = rod_on(joint)
        scene.gravity = (0, 0, 0)
        sim = make(scene, "direct", 1e-3)
        sim.joint("j").position = position
        sim.step(20)
        print(f"{joint.kind}: back at {np.round(sim.joint('j').position, 9)}, kinetic energy {sim.energy().kinetic:.1e} J")
        assert sim.energy().kinetic < 1e-18
        q = np.atleast_1d(sim.joint("j").position)
        if len(q) == 4:
            z = quat_rotate(q, np.array([0, 0, 1.0]))
            assert abs(np.arctan2(-z[1], z[2]) - 0.5) < 1e-6
        else:
            assert abs(abs(q[-1]) - 1) < 1e-6


def whirl(dt):
    """Two universal joints that pass close to their singular poses: at 5 ms passes on the mean speeds led to no finite state."""
    scene = sh.Scene()
    scene.add_body("a", mass=27.019, inertia=(0.93169, 0.71417, 0.26295), position=(0.69005, 0.44130, 0.86878))
    scene.add_joint("j", sh.Universal(("y", "z")), "world", "a", position=(0.34503, 0.22065, 0.43439))
    scene.add_body("b", mass=5.5459, inertia=(0.01291, 0.01072, 0.01153), position=(0.32958, -0.79459, 2.12572))
    scene.add_joint("k", sh.Universal(("y", "z"), friction=0.01), "a", "b", position=(0.50982, -0.17665, 1.49725))
    return sh.Simulation(scene, dt, solver="direct")


def test_a_step_too_long_for_its_motion_is_divided():
    sim, ones, kept = whirl(2e-2), whirl(2e-2), whirl(2e-2)
    divided = 0
    for _ in range(40):
        divided += sim.step(10).fallbacks["divided"]
        for _ in range(10):
            ones.step()
    kept.step(333)
    saved = kept.snapshot()
    kept.step(20)
    kept.restore(saved)
    kept.step(67)
    a = sim.snapshot()
    for other in (ones, kept):
        b = other.snapshot()
        assert all(np.array_equal(a[name], b[name]) for name in a)
    fine = whirl(5e-4)
    energies = []
    for s in (sim, fine):
        rows = []
        for _ in range(40):
            s.step(round(0.02 / s.dt))
            rows.append(s.energy().total)
        energies.append(np.mean(rows))
    print(f"{divided} of 400 steps in parts; mean energy {energies[0]:.0f} J, at 0.5 ms {energies[1]:.0f} J")
    assert divided > 0 and abs(energies[0] - energies[1]) < 150.0


# ---- scales, laws in loops, limits of balls -------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_joint_that_allows_everything_leaves_the_centre_of_mass_alone(dt):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(1, 0.5, 0.3), mass=1.0, angular_velocity=(0, 3, 12))
    scene.add_joint("f", sh.Free(), "world", "b", position=(1, 0, 0))
    sim = run_for(make(scene, "direct", dt), 2.0)
    away = np.linalg.norm(sim.body("b").com)
    print(f"anchored 1 m off, {dt * 1e3:g} ms: the centre moved {away:.1e} m")
    assert away < 1e-9


def test_ten_four_bars_pass_their_singular_poses_at_a_long_step():
    """Iterations on the mean speeds used to diverge here."""
    sim = make(four_bar(10, 1e-3).model, "direct", 5e-3)
    start, gap = sim.energy().total, 0.0
    for _ in range(100):
        sim.run(0.1)
        gap = max(gap, sim.constraint_error().max())
    spread = np.ptp([sim.joint(f"A{i}").velocity for i in range(11)])
    print(f"10 s: gap {gap:.1e}, speeds within {spread:.1e} rad/s, energy {sim.energy().total - start:.2f} of {start:.0f} J")
    assert gap < 1e-6 and spread < 0.02 and abs(sim.energy().total - start) < 1e-6 * start


@pytest.mark.parametrize(("length", "mass"), [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-9), (1.0, 1e9), (1e-3, 1e-3)])
def test_a_scaled_pendulum_moves_as_that_of_one_metre(length, mass):
    """Three hinges, one with friction; times stay the same because gravity is scaled, too."""
    found = []
    for L, m in ((1.0, 1.0), (length, mass)):
        scene, base = sh.Scene(gravity=(0, 0, -9.81 * L)), "world"
        for i in range(3):
            scene.add_body(f"b{i}", sh.Box(L, 0.1 * L, 0.1 * L), mass=m, position=((i + 0.5) * L, 0, 0))
            joint = sh.Revolute("y", friction=0.3 * m * L**2 if i == 1 else None)
            scene.add_joint(f"j{i}", joint, base, f"b{i}", position=(i * L, 0, 0))
            base = f"b{i}"
        sim = sh.Simulation(scene, 2e-3, solver="direct")
        assert all(sim.step().converged for _ in range(300))
        found.append([sim.joint(f"j{i}").position for i in range(3)])
    apart = np.abs(np.subtract(*found)).max()
    print(f"{length:g} m, {mass:g} kg: {apart:.1e} rad apart")
    assert apart < 2e-13


def locked_door():
    """A hinge with friction between bodies that are bolted together beside it."""
    scene = sh.Scene()
    scene.add_body("frame", sh.Box(0.1, 0.1, 2), mass=10.0, position=(0, 0, -1))
    scene.add_body("door", sh.Box(0.9, 0.04, 2), mass=30.0, position=(0.5, 0, -1))
    scene.add_joint("hang", sh.Spherical(), "world", "frame", position=(0, 0, 0))
    scene.add_joint("hinge", sh.Revolute("z", friction=5.0), "frame", "door", position=(0.05, 0, -1))
    scene.add_joint("bolt", sh.Fixed(), "frame", "door", position=(0.95, 0, -1))
    return scene


def locked_pair():
    """Two that tumble, on a hinge with friction and a joint that holds everything."""
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("a", sh.Box(0.5, 0.5, 1), mass=1.0, position=(0.3, 1.2, -0.2), velocity=(0.2, 0.2, 0.9))
    scene.add_body("b", sh.Box(1, 0.5, 0.3), mass=1.0, position=(-1.1, 1.4, 0.6), angular_velocity=(-8.8, 1.7, -4))
    scene.add_joint("j", sh.Revolute(friction=10.0), "a", "b", position=(1, 0, 0.7))
    scene.add_joint("k", sh.Fixed(), "a", "b", position=(-0.1, -1, 0.1))
    return scene


@pytest.mark.parametrize("scene", [locked_door, locked_pair])
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_friction_on_a_joint_that_a_loop_locks(scene, dt):
    sim = sh.Simulation(scene(), dt, solver="direct")
    sim.step()
    start, met = sim.energy().total, True
    for _ in range(200):
        met &= sim.step().converged
    gained, gap = sim.energy().total - start, sim.constraint_error().max()
    print(f"{scene.__name__}, {dt * 1e3:g} ms: energy {gained:.1e} J, gap {gap:.1e}")
    assert met and abs(gained) < 1e-6 and gap < 1e-9


def beyond_cardan(rotation):
    x, y, z = (quat_rotate(rotation, axis) for axis in np.eye(3))
    angles = np.arctan2(-z[1], z[2]), np.arcsin(z[0]), np.arctan2(-y[0], x[0])
    return max(abs(a) - bound for a, bound in zip(angles, (0.3, 0.2, 0.25), strict=True))


def beyond_cone(half):
    def beyond(rotation):
        z, twist = quat_rotate(rotation, np.array([0.0, 0, 1])), 2 * np.arctan2(rotation[2], rotation[3])
        heading = np.array([-z[1], z[0]]) / max(np.hypot(z[0], z[1]), 1e-12)
        room = 1 / np.hypot(*(heading / half))
        return max(np.arctan2(np.hypot(z[0], z[1]), z[2]) - room, abs((twist + np.pi) % (2 * np.pi) - np.pi) - 0.3)

    return beyond


BALLS = {
    "Cardan": (sh.Cardan((-0.3, 0.3), (-0.2, 0.2), (-0.25, 0.25)), beyond_cardan),
    "cone": (sh.SwingTwist((0.4, 0.4), (-0.3, 0.3)), beyond_cone(np.array([0.4, 0.4]))),
    "unequal cone": (sh.SwingTwist((0.25, 0.6), (-0.3, 0.3)), beyond_cone(np.array([0.25, 0.6]))),
}


@pytest.mark.parametrize("name", BALLS)
def test_limits_of_a_shaken_ball_joint_are_met(name):
    limit, beyond = BALLS[name]
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(0.3, 0.2, 0.1), mass=1.0, position=(0.1, 0.05, 0))
    scene.add_joint("j", sh.Spherical(limit=limit), "world", "b", position=(0, 0, 0))
    sim, rng, worst = sh.Simulation(scene, 1e-3, solver="direct"), np.random.default_rng(0), 0.0
    for k in range(1500):
        if k % 40 == 0:
            torque = 3 * rng.normal(size=3)
        sim.body("b").apply_torque(torque)
        sim.step()
        worst = max(worst, beyond(sim.joint("j").position))
    print(f"{name}: {worst:.1e} rad beyond its limits")
    assert worst < 7.5e-11


def test_a_gear_on_a_joint_that_is_taken_out_leaves_steps_repeatable():
    scene, found = sh.Scene(), []
    for i in range(2):
        scene.add_body(f"w{i}", sh.Box(0.2, 0.05, 0.1), mass=1.0 + i, position=(i + 0.05, 0.02, 0))
        scene.add_joint(f"a{i}", sh.Revolute((0.3, 1.0, 0.2)), scene.world, f"w{i}", position=(i, 0, 0))
    scene.add_joint("gear", sh.Gear("a0", "a1", -1.3))
    for calls, steps in ((10, 1), (1, 10)):
        sim = sh.Simulation(scene, 5e-3, solver="direct")
        sim.step(5)
        sim.joint("a1").enabled = False
        for _ in range(calls):
            sim.step(steps)
        found.append(sim.state.position.numpy().copy())
    print(f"ten steps and step(10): {np.abs(found[0] - found[1]).max():.1e} m apart")
    assert np.array_equal(*found)
