"""Drives of the table against closed forms: curves, batteries, engine and clutch, hydraulic cylinders."""

import math

import numpy as np
import pytest

import sharnir as sh

SOLVERS = ("direct", "sequential")


def show(what, error, allowed):
    print(f"{what}: {error:.3g} (allowed {allowed:g})")
    assert error <= allowed, f"{what}: {error:.3g} > {allowed:g}"


def flywheel(drive, inertia=2.0, **actions):
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", mass=1.0, inertia=(inertia, inertia, inertia))
    scene.add_joint("shaft", sh.Revolute("z", drive=drive, **actions), scene.world, "wheel", position=(0, 0, 0))
    return scene


def slide(drive, mass=1000.0, lift=True, limit=(0.0, 1.0)):
    scene = sh.Scene(gravity=(0, 0, -9.81 if lift else 0.0))
    scene.add_body("load", sh.Box(0.2, 0.2, 0.2), mass=mass)
    scene.add_joint("ram", sh.Prismatic("z", drive=drive, limit=limit), scene.world, "load", position=(0, 0, 0))
    return scene


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_motor_follows_its_curve(solver):
    """Falling torque M₀ (1 − ω/ω₀) at the rotor, gear N: u = (ω₀/N)(1 − e^(−t/τ)), τ = I ω₀/(N² M₀ η); as much back."""
    M0, w0, N, eta, inertia = 2.0, 300.0, 20.0, 0.9, 2.0
    motor = sh.Motor(curve=[(0, M0), (w0, 0.0)], gear_ratio=N, efficiency=eta, command=1.0)
    sim = sh.Simulation(flywheel(motor), dt=0.001, solver=solver)
    tau = inertia * w0 / (N * N * M0 * eta)
    worst = 0.0
    for _ in range(600):
        sim.step()
        worst = max(worst, abs(sim.joint("shaft").velocity - w0 / N * (1 - math.exp(-sim.time / tau))) / (w0 / N))
    show(f"motor with a curve, {solver}", worst, 2e-3)
    force = sim.joint("shaft").drive.force
    show(f"its torque, {solver}", abs(force / (N * eta * M0 * (1 - N * sim.joint("shaft").velocity / w0)) - 1), 5e-3)


def test_losses_are_those_of_the_map():
    grid = ([0.0, 100.0], [0.0, 2.0], [[0.5, 0.6], [0.7, 0.9]])
    motor = sh.Motor(curve=[(0, 1.0), (1000.0, 1.0)], command=1.0, losses=grid, gear_ratio=1.0)
    sim = sh.Simulation(flywheel(motor), dt=0.001)
    sim.joint("shaft").velocity = 50.0
    sim.step()
    speed = 50.0
    show("power", abs(sim.joint("shaft").drive.power / (speed / np.mean([0.5, 0.6, 0.7, 0.9])) - 1), 1e-6)
    sim.joint("shaft").drive.command = -1.0
    sim.step()
    show("given back", abs(sim.joint("shaft").drive.power / (-50.0 * 0.675) - 1), 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_battery_sags_with_all_that_it_feeds(solver):
    """Two motors that stand on one battery: V = E/(1 + R Σ c²/R_m); each pulls with its share, and turning they sag less."""
    E, R, Rm, k = 24.0, 0.1, 0.4, 0.05
    battery = sh.Battery(E, resistance=R)
    scene = sh.Scene(gravity=(0, 0, 0))
    for i, command in enumerate((1.0, 0.5)):
        scene.add_body(f"wheel {i}", mass=1.0, inertia=(1, 1, 1), position=(i, 0, 0))
        motor = sh.DCMotor(resistance=Rm, torque_constant=k, battery=battery, command=command)
        scene.add_joint(f"shaft {i}", sh.Revolute("z", drive=motor), scene.world, f"wheel {i}", position=(i, 0, 0))
    sim = sh.Simulation(scene, dt=0.001, solver=solver)
    sim.step()
    V = E / (1 + R * (1 + 0.25) / Rm)
    drives = [sim.joint(f"shaft {i}").drive for i in range(2)]
    show(f"sagged voltage, {solver}", abs(drives[0].battery_voltage / V - 1), 1e-6)
    for drive, command in zip(drives, (1.0, 0.5), strict=True):
        show(f"torque, {solver}", abs(drive.force / (k * command * V / Rm) - 1), 1e-3)
    sim.run(0.099)
    show(f"charge, {solver}", abs(drives[0].battery_used / (0.1 * V * 1.25 / Rm) - 1), 2e-3)
    assert drives[1].battery_voltage == drives[0].battery_voltage


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_engine_lets_its_clutch_in(solver):
    """Slipping, the clutch gives its bound; locked, crank and wheel turn as one, and no angular momentum is lost between them."""
    J, G, inertia, bound = 0.5, 10.0, 60.0, 80.0
    half = 0.026 if solver == "sequential" else 1e-6  # of 20 steps: its speeds stand at half steps when a gear is changed
    engine = sh.Engine(
        curve=[(0, 100.0), (1000, 100.0)], inertia=J, drag=0.0, idle=30.0, clutch=bound, gears=(G, 5.0), throttle=1.0
    )
    sim = sh.Simulation(flywheel(engine, inertia), dt=0.001, solver=solver)
    shaft = sim.joint("shaft")
    sim.run(0.3)
    assert shaft.velocity == 0.0  # no gear is in
    show(f"crank alone, {solver}", abs(shaft.drive.engine_speed / (30.0 + 100 / J * 0.3) - 1), 1e-9)
    before = shaft.drive.engine_speed
    shaft.drive.throttle, shaft.drive.gear = 0.0, 1
    sim.run(0.02)
    show(f"it slips with its bound, {solver}", abs(shaft.velocity / (G * bound / inertia * 0.02) - 1), half)
    show(f"and that brakes the crank, {solver}", abs(shaft.drive.engine_speed / (before - bound / J * 0.02) - 1), half)
    while shaft.drive.engine_speed > G * shaft.velocity + 1e-6 and sim.time < 1.0:
        sim.step()
    show(
        f"momentum, {solver}",
        abs((J * shaft.drive.engine_speed + inertia / G * shaft.velocity) / (J * before) - 1),
        1e-6 if solver != "sequential" else 2e-3,
    )
    speed, start = shaft.velocity, sim.time
    shaft.drive.throttle = 0.5
    sim.run(0.1)
    a = G * 50.0 / (inertia + G * G * J)
    show(
        f"locked, {solver}: acceleration",
        abs((shaft.velocity - speed) / (a * (sim.time - start)) - 1),
        1e-3 if half < 0.01 else 1e-2,
    )
    show(f"locked, {solver}: slip, rad/s", abs(shaft.drive.engine_speed - G * shaft.velocity), 5e-4 if half < 0.01 else 0.02)
    shaft.drive.gear = 0
    held = shaft.velocity
    sim.run(0.05)
    show(f"out of gear, {solver}", abs(shaft.velocity - held), 1e-9 if half < 0.01 else 2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_cylinder_moves_by_flow_and_holds_by_pressure(solver):
    """Speed Q/A under load, half the command half the speed; shut it creeps by its leak; overloaded it gives way."""
    ram = sh.HydraulicCylinder(pressure=1.0e7, flow=5.0e-4, area=5.0e-3, rod_area=2.5e-3, leak=1e-12, command=1.0, cushion=0.1)
    sim = sh.Simulation(slide(ram, mass=2000.0), dt=0.002, solver=solver)
    joint, droop = sim.joint("ram"), 2000 * 9.81 * 1e-12 / 5.0e-3**2
    sim.run(0.2)
    show(f"speed of the flow, {solver}", abs(joint.velocity / (0.1 - droop) - 1), 1e-3)
    show(f"pressure, {solver}", abs(joint.drive.pressure / (2000 * 9.81 / 5.0e-3) - 1), 1e-3)
    joint.drive.command = 0.5
    sim.run(0.2)
    show(f"half the flow, {solver}", abs(joint.velocity / (0.05 - droop) - 1), 1e-3)
    joint.drive.command = 0.0
    sim.run(0.2)
    show(f"shut, it creeps by its leak, {solver}", abs(joint.velocity / -droop - 1), 1e-2)
    joint.drive.command = 1.0
    fastest = 0.0
    for _ in range(10000):
        sim.step()
        room = 1.0 - joint.position
        if room < 0.09:
            fastest = max(fastest, joint.velocity / max(0.1 * room / 0.1, 0.005))
        if room < 1e-3:
            break
    show(f"cushioned, {solver}: of the throttled speed", fastest, 1.05)
    heavy = sh.Simulation(slide(ram, mass=2.0e4), dt=0.002, solver=solver)
    heavy.joint("ram").position = 0.5
    heavy.run(0.1)
    a = (1.0e7 * 5.0e-3 - 2.0e4 * 9.81) / 2.0e4
    show(f"overloaded, it gives way, {solver}", abs(heavy.joint("ram").velocity / (a * 0.1) - 1), 1e-2)


def test_what_drives_refuse():
    wrong = [
        (lambda: sh.Motor(curve=[(0, 1)]), "curve is at least two pairs"),
        (lambda: sh.Motor(curve=[(5, 1), (1, 0)]), "speeds of the curve rise"),
        (lambda: sh.Motor(gear_ratio=0.0), "gear_ratio is a finite number other than 0"),
        (lambda: sh.Motor(command=math.nan), "command is a number from -1 to 1, got nan"),
        (lambda: sh.Engine(gears=(3.0, 0.0)), "other than 0"),
        (lambda: sh.Engine(gear=7), "gear is a number from -1 to 3, got 7"),
        (lambda: sh.HydraulicCylinder(area=0.0), "area is a positive finite number, got 0"),
        (lambda: sh.Battery(-12.0), "voltage is a positive finite number"),
        (lambda: sh.DCMotor(battery=sh.Battery(12.0), voltage=3.0), "follows from command="),
    ]
    for make, words in wrong:
        with pytest.raises(sh.SceneError, match=words):
            make()
    with pytest.raises(sh.SceneError, match=r"joint 'ram'.*cushion needs a limit"):
        slide(sh.HydraulicCylinder(cushion=0.1), limit=None).build()
    sim = sh.Simulation(slide(sh.HydraulicCylinder()), dt=0.01)
    with pytest.raises(sh.SimulationError, match=r"joint 'ram': drive.command is a finite number.*got nan"):
        sim.joint("ram").drive.command = math.nan
    with pytest.warns(sh.StepWarning, match="lies from -1 to 1, got 3.0; it is limited"):
        sim.joint("ram").drive.command = 3.0
    sim.joint("ram").drive.command = 4.0  # said once
    assert sim.joint("ram").drive.command == 1.0
    with pytest.raises(sh.SimulationError, match="has no Engine: throttle"):
        sim.joint("ram").drive.throttle = 1.0
    for drive, words in (
        (sh.Engine(), "joint 'shaft': an Engine's clutch holds or slips"),
        (sh.Motor(battery=sh.Battery(12.0)), "joint 'shaft': a Motor with a curve takes power from its Battery"),
        (sh.DCMotor(battery=sh.Battery(12.0, capacity=5.0)), "Battery 'battery' runs out, after 5 A·s"),
    ):
        with pytest.raises(sh.SimulationError, match=words):
            sh.Simulation(flywheel(drive), dt=0.01).integrate(0.1)


def test_smooth_drives_are_integrated_to_tolerances():
    """Each against its closed form: all are u = u₁ (1 − e^(−t/τ)) here."""
    M0, w0, N, eta, inertia, t = 2.0, 300.0, 20.0, 0.9, 2.0, 0.3
    found = []

    def check(what, scene, joint, speed, tau):
        sim = sh.Simulation(scene, dt=0.001)
        sim.integrate(t, rtol=1e-11, atol=1e-11)
        exact = speed * (1 - math.exp(-t / tau))
        found.append(f"{what} {abs(sim.joint(joint).velocity / exact - 1):.1e}")
        show(what, abs(sim.joint(joint).velocity / exact - 1), 1e-9)
        return sim

    motor = sh.Motor(curve=[(0, M0), (w0, 0.0)], gear_ratio=N, efficiency=eta, command=0.5)
    check("motor with a curve", flywheel(motor), "shaft", w0 / N, inertia * w0 / (N * N * 0.5 * M0 * eta))
    # two motors on a battery of R: together as one, of half their resistance, behind R
    E, R, r, k, c = 24.0, 0.2, 0.5, 0.05, 0.8
    battery = sh.Battery(E, R)
    scene = sh.Scene(gravity=(0, 0, 0))
    for name in ("left", "right"):
        scene.add_body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        drive = sh.DCMotor(resistance=r, torque_constant=k, gear_ratio=N, battery=battery, command=c)
        scene.add_joint(f"{name} shaft", sh.Revolute("z", drive=drive), scene.world, name, position=(0, 0, 0))
    behind = r + 2 * c * c * R
    tau = behind / (N * k) ** 2
    sim = check("motors on a battery", scene, "left shaft", c * E / (k * N), tau)
    gave = 2 * c * (c * E / behind) * tau * (1 - math.exp(-t / tau))  # ∫ Σ c i
    show("what the battery gave", abs(sim.joint("left shaft").drive.battery_used / gave - 1), 1e-9)
    A, Q, leak, m = 5e-3, 1e-3, 1e-6, 1000.0
    cylinder = sh.HydraulicCylinder(command=0.7, area=A, flow=Q, leak=leak, pressure=1e9)
    check("cylinder", slide(cylinder, m, lift=False), "ram", 0.7 * Q / A, m * leak / (A * A))


def test_worlds_have_their_own_commands():
    sim = sh.Simulation(flywheel(sh.Motor(curve=[(0, 1.0), (1000, 1.0)])), dt=0.01, worlds=3)
    sim.joint("shaft").drive.command = [0.0, 0.5, 1.0]
    sim.run(0.1)
    assert np.allclose(sim.joint("shaft").velocity, np.array([0.0, 0.5, 1.0]) * 0.1 / 2.0)
    drive = sim.joint("shaft").drive
    drive.set_number("gear_ratio", [1.0, 2.0, 4.0])
    assert np.array_equal(drive.number("gear_ratio"), [1.0, 2.0, 4.0])
    before = sim.joint("shaft").velocity
    sim.run(0.1)
    assert np.allclose(sim.joint("shaft").velocity - before, np.array([0.0, 0.5 * 2, 4.0]) * 0.1 / 2.0)
    with pytest.raises(sh.SimulationError, match=r"joint 'shaft': gear_ratio is .*got 0"):
        drive.set_number("gear_ratio", 0)
    with pytest.raises(sh.SimulationError, match="Motor has no number 'pressure'; allowed: gear_ratio, efficiency"):
        drive.number("pressure")


@pytest.mark.parametrize("way", ["direct", "sequential", "integrate"])
@pytest.mark.parametrize("kind", ["turn", "slide"])
def test_the_armature_of_a_servo_swings_with_its_axis(way, kind):
    """A body on a servo of kp alone: q = q₀ cos(√(kp/(I + armature)) t), and the servo's force is −kp q."""
    kp, armature, start = 40.0, 1.5, 0.3
    scene = sh.Scene(gravity=(0, 0, 0))
    scene.add_body("b", sh.Box(0.2, 0.2, 0.2), mass=2.0, inertia=(0.5, 0.5, 0.5))
    servo = sh.Servo(kp=kp, armature=armature)
    joint = sh.Revolute("z", drive=servo) if kind == "turn" else sh.Prismatic("z", drive=servo)
    scene.add_joint("j", joint, scene.world, "b", position=(0, 0, 0))
    sim = sh.Simulation(scene, 1e-3, solver="sequential" if way == "sequential" else "direct")
    sim.joint("j").position = start
    omega = np.sqrt(kp / ((0.5 if kind == "turn" else 2.0) + armature))
    if way == "integrate":
        sim.integrate(1.0)
    else:
        sim.run(1.0)
    found, exact = sim.joint("j").position, start * np.cos(omega)
    print(f"{kind}, {way}: {found:.7f} of {exact:.7f}; force {sim.joint('j').drive.force if way != 'integrate' else 0:.4f}")
    assert found == pytest.approx(exact, abs=1e-9 if way == "integrate" else 2e-4)
    if way != "integrate":
        assert sim.joint("j").drive.force == pytest.approx(-kp * exact, abs=0.1)
