"""The mechanisms that are measured, once for each engine: chains of uniform rods, and a tree of arms.

A chain is n rods in a row along x, 1 m and 10 kg in all unless said otherwise, hung on the world and on each other by ball
joints or by hinges about y. Friction is a torque, N·m: of the whole vector with us, of each axis with others. A load is a
solid sphere whose centre hangs on the last rod by a ball joint.
"""

import math
from importlib import import_module
from typing import Any

import numpy as np

import sharnir as sh
from sharnir.core.spatial import quat_rotate

LENGTH = 1.0  # m, of the whole chain
RADIUS = 0.2  # m, of a load at its end
MASS = 10.0  # kg
GRAVITY = 9.81  # m/s²

Vec = tuple[float, float, float]


def joint_of(joint: str, friction: float = 0.0) -> sh.Joint:
    """Our joint."""
    given = {"friction": friction} if friction else {}
    return sh.Spherical(**given) if joint == "ball" else sh.Revolute(axis="y", **given)


def joint_xml(joint: str, friction: float = 0.0) -> str:
    """MuJoCo's."""
    kind = 'type="ball"' if joint == "ball" else 'type="hinge" axis="0 1 0"'
    return f'<joint {kind} frictionloss="{friction!r}"/>'


def rod(n: int, length: float = LENGTH, mass: float = MASS) -> tuple[float, float, Vec]:
    """Length (m), mass (kg) and principal inertias (kg·m², about its centre, long axis x) of one of n rods."""
    l, m = length / n, mass / n
    return l, m, (m * l**2 / 200, m * l**2 / 12, m * l**2 / 12)


def swing_energy(droop: float) -> float:
    """What a straight chain at rest, `droop` rad below the horizontal, can lose until it hangs, J."""
    return MASS * GRAVITY * LENGTH / 2 * (1 - math.sin(droop))


def chain(
    n: int, joint: str, droop: float = 0.0, *,
    friction: float = 0.0, length: float = LENGTH, mass: float = MASS, load: float = 0.0,
) -> sh.Scene:  # fmt: skip
    """Our chain of n rods: straight, at rest, `droop` rad below the horizontal; `load` kg at its end."""
    l, m, inertia = rod(n, length, mass)
    along = np.array([math.cos(droop), 0.0, -math.sin(droop)])
    turn = (0.0, math.sin(droop / 2), 0.0, math.cos(droop / 2))
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    parent = scene.world
    for i in range(n):
        body = scene.add_body(f"rod {i}", mass=m, inertia=inertia, position=(along * (i + 0.5) * l).tolist(), rotation=turn)
        scene.add_joint(f"joint {i}", joint_of(joint, friction), parent, body, position=along * i * l)
        parent = body
    if load:
        scene.add_body("load", sh.Sphere(RADIUS), mass=load, position=along * length)
        scene.add_joint("hook", sh.Spherical(), parent, "load", position=along * length)
    return scene


def tip(sim: sh.Simulation, n: int, length: float = LENGTH) -> np.ndarray:
    """(3,) free end of our chain of n rods, m; (worlds, 3) where there are several."""
    last = sim.body(f"rod {n - 1}")
    return np.asarray(last.position + quat_rotate(last.rotation, np.zeros_like(last.position) + [length / n / 2, 0.0, 0.0]))


def arms(friction: float) -> sh.Scene:
    """30 hinged rods of 0.1 m and 1 kg: a trunk of 6, straight and level, and 4 arms of 6 that spread from its end.

    Hinges turn about y and z of their limb in turn, so all of it moves in space.
    """
    links = 6
    l, m, inertia = rod(10)
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    limbs = [("trunk", scene.world, 0.0, np.zeros(3))]
    limbs += [
        (f"arm {i}", f"trunk {links - 1}", yaw, np.array([links * l, 0.0, 0.0])) for i, yaw in enumerate((-0.9, -0.3, 0.3, 0.9))
    ]
    for name, parent, yaw, root in limbs:
        along = l * np.array([math.cos(yaw), math.sin(yaw), 0.0])
        turn = (0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
        for i in range(links):
            centre = (root + along * (i + 0.5)).tolist()
            body = scene.add_body(f"{name} {i}", mass=m, inertia=inertia, position=centre, rotation=turn)
            hinge = sh.Revolute(axis="yz"[i % 2], friction=friction)
            scene.add_joint(f"{name} hinge {i}", hinge, parent, body, position=root + along * i, rotation=turn)
            parent = body
    return scene


SERVO = {"kp": 200.0, "kd": 20.0, "max_force": 60.0}  # N·m/rad, N·m·s/rad, N·m
ARM_FRICTION, ARM_LIMIT, ARM_TARGET = 0.5, 2.0, 0.4  # N·m, rad, rad


def servo_arm(n: int = 7) -> sh.Scene:
    """A robot arm of n hinges about z and y in turn, with limits, dry friction and servos; rods as in a chain of n."""
    l, m, inertia = rod(n)
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    parent = scene.world
    for i in range(n):
        body = scene.add_body(f"rod {i}", mass=m, inertia=inertia, position=((i + 0.5) * l, 0.0, 0.0))
        servo = sh.Servo(position=ARM_TARGET, **SERVO)
        hinge = sh.Revolute("zy"[i % 2], limit=(-ARM_LIMIT, ARM_LIMIT), friction=ARM_FRICTION, drive=servo)
        scene.add_joint(f"joint {i}", hinge, parent, body, position=(i * l, 0.0, 0.0))
        parent = body
    return scene


def servo_arm_xml(n: int = 7, dt: float = 1e-3) -> str:
    """The same for MuJoCo, implicit in the dampings of its servos."""
    l, m, inertia = rod(n)
    diagonal, bodies, drives = " ".join(map(repr, inertia)), "", ""
    for i in reversed(range(n)):
        axis = ("0 0 1", "0 1 0")[i % 2]
        limits = f'limited="true" range="{-ARM_LIMIT} {ARM_LIMIT}" frictionloss="{ARM_FRICTION}"'
        joint = f'<joint name="j{i}" type="hinge" axis="{axis}" {limits}/>'
        inertial = f'<inertial pos="{l / 2!r} 0 0" mass="{m!r}" diaginertia="{diagonal}"/>'
        bodies = f'<body pos="{l * (i > 0)!r} 0 0">{joint}{inertial}{bodies}</body>'
        bound = f'forcelimited="true" forcerange="{-SERVO["max_force"]} {SERVO["max_force"]}"'
        drives += f'<position joint="j{i}" kp="{SERVO["kp"]}" kv="{SERVO["kd"]}" {bound}/>'
    option = f'timestep="{dt!r}" integrator="implicitfast" gravity="0 0 {-GRAVITY!r}"'
    return (
        f'<mujoco><compiler angle="radian"/><option {option}><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><actuator>{drives}</actuator></mujoco>"
    )


def chain_xml(
    n: int, joint: str, droop: float = 0.0, dt: float = 1e-3, *,
    friction: float = 0.0, noslip: int = 0, length: float = LENGTH, mass: float = MASS, load: float = 0.0,
    constraints: bool = True,
) -> str:  # fmt: skip
    """The same for MuJoCo: nested bodies, Euler's method, no contacts; `noslip` sweeps of its second solver, for friction.

    Without `constraints` MuJoCo does not look for limits, friction and contacts at all: its quickest step.
    """
    l, m, inertia = rod(n, length, mass)
    turn = f"{math.cos(droop / 2)!r} 0 {math.sin(droop / 2)!r} 0"
    diagonal = " ".join(map(repr, inertia))
    bodies = ""
    if load:
        inertial = f'<inertial pos="0 0 0" mass="{load!r}" diaginertia="{" ".join([repr(0.4 * load * RADIUS**2)] * 3)}"/>'
        bodies = f'<body pos="{l!r} 0 0">{joint_xml("ball")}{inertial}</body>'
    for i in reversed(range(n)):
        place = f'quat="{turn}"' if i == 0 else f'pos="{l!r} 0 0"'
        inertial = f'<inertial pos="{l / 2!r} 0 0" mass="{m!r}" diaginertia="{diagonal}"/>'
        bodies = f"<body {place}>{joint_xml(joint, friction)}{inertial}{bodies}</body>"
    option = f'timestep="{dt!r}" integrator="Euler" gravity="0 0 {-GRAVITY!r}" noslip_iterations="{noslip}"'
    flag = 'contact="disable"' + ' constraint="disable"' * (not constraints)
    return f"<mujoco><option {option}><flag {flag}/></option><worldbody>{bodies}</worldbody></mujoco>"


class MujocoChain:
    """A chain in MuJoCo, with the few values that are compared; options are those of `chain_xml`."""

    def __init__(self, n: int, joint: str, droop: float = 0.0, dt: float = 1e-3, **options: Any) -> None:
        import mujoco  # the peer is optional, and slow to import

        self._mujoco: Any = mujoco
        mujoco.set_mju_user_warning(lambda text: None)  # `failed` tells
        self.model = mujoco.MjModel.from_xml_string(chain_xml(n, joint, droop, dt, **options))
        self.data = mujoco.MjData(self.model)
        self._rod = 0.0 if options.get("load") else options.get("length", LENGTH) / n  # m, from the last body's frame to the end

    def reset(self) -> None:
        """Back to the start."""
        self._mujoco.mj_resetData(self.model, self.data)

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        self._mujoco.mj_step(self.model, self.data, n)

    def step_each(self, n: int) -> None:
        """Advance by n steps, one a call."""
        step, model, data = self._mujoco.mj_step, self.model, self.data
        for _ in range(n):
            step(model, data)

    @property
    def failed(self) -> bool:
        """Whether MuJoCo found its state bad, and began anew."""
        return bool(self.data.warning.number.any())

    def energy(self) -> tuple[float, float]:
        """Potential and kinetic energy now, J; the former is zero at the origin."""
        self._mujoco.mj_fwdPosition(self.model, self.data)
        self._mujoco.mj_fwdVelocity(self.model, self.data)
        self._mujoco.mj_energyPos(self.model, self.data)
        self._mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy[0]), float(self.data.energy[1])

    def tip(self) -> np.ndarray:
        """(3,) free end of the last rod, or the load, now, m."""
        self._mujoco.mj_kinematics(self.model, self.data)
        return np.array(self.data.xpos[-1] + self.data.xmat[-1].reshape(3, 3)[:, 0] * self._rod)

    def rotation(self) -> np.ndarray:
        """(4,) of the last rod now: x, y, z, w."""
        self._mujoco.mj_kinematics(self.model, self.data)
        return np.roll(self.data.xquat[-1], -1)


class PinocchioChain:
    """A chain of n hinges in Pinocchio: accelerations by its articulated-body algorithm, semi-implicit Euler steps."""

    def __init__(self, n: int, droop: float = 0.0, dt: float = 1e-3) -> None:
        self._pin: Any = import_module("pinocchio")  # optional
        l, m, inertia = rod(n)
        self.model = self._pin.Model()
        self.model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        joint = 0
        for i in range(n):
            place = self._pin.SE3(np.eye(3), np.array([l if i else 0.0, 0.0, 0.0]))
            joint = self.model.addJoint(joint, self._pin.JointModelRY(), place, f"joint {i}")
            own = self._pin.Inertia(m, np.array([l / 2, 0.0, 0.0]), np.diag(inertia))
            self.model.appendBodyToJoint(joint, own, self._pin.SE3.Identity())
        self.data, self._dt = self.model.createData(), dt
        self.q, self.v, self._tau = np.zeros(n), np.zeros(n), np.zeros(n)
        self.q[0] = droop

    def step_each(self, n: int) -> None:
        """Advance by n steps, one a call."""
        aba, integrate, model, data, tau, dt = self._pin.aba, self._pin.integrate, self.model, self.data, self._tau, self._dt
        q, v = self.q, self.v
        for _ in range(n):
            v = v + aba(model, data, q, v, tau) * dt
            q = integrate(model, q, v * dt)
        self.q, self.v = q, v


class ScipyChain:
    """A chain of n hinges by SciPy's solve_ivp on a right-hand side in NumPy, in the angles of the rods to the horizontal.

    Σ_j a_ij cos(φ_i − φ_j) φ̈_j = g b_i cos φ_i − Σ_j a_ij sin(φ_i − φ_j) φ̇_j²: φ is the droop, a and b are constant.
    """

    def __init__(self, n: int, droop: float = 0.0) -> None:
        from scipy.integrate import solve_ivp
        from scipy.linalg.lapack import dposv

        l, m, inertia = rod(n)
        i = np.arange(n)
        beyond = n - np.maximum(i[:, None], i) - 0.5  # rods that both move, the last of the two by half
        a = m * l * l * beyond
        a[i, i] = inertia[1] + m * l * l * (n - i - 0.75)
        b = GRAVITY * m * l * (n - i - 0.5)
        self._solve_ivp, self.start = solve_ivp, np.concatenate([np.full(n, droop), np.zeros(n)])

        def rate(_t: float, y: np.ndarray) -> np.ndarray:
            c, s, w = np.cos(y[:n]), np.sin(y[:n]), y[n:]
            w2 = w * w
            across = a * c  # a_ij c_j
            along = a * s
            M = across * c[:, None] + along * s[:, None]
            force = b * c - s * (across @ w2) + c * (along @ w2)
            out = np.empty(2 * n)
            out[:n] = w
            out[n:] = dposv(M, force, overwrite_a=True)[1]
            return out

        self.rate = rate

    def run(self, duration: float, tolerance: float) -> np.ndarray:
        """(2n,) angles and their rates after a time, s, by DOP853 at rtol = atol = tolerance."""
        done = self._solve_ivp(self.rate, (0.0, duration), self.start, "DOP853", rtol=tolerance, atol=tolerance)
        return np.asarray(done.y[:, -1])


class RapierRod:
    """One rod on a joint in rapier3d, whose joints have no friction: a motor of speed 0 and bounded torque stands in for it.

    Args:
        reduced: rapier's joints in reduced coordinates, in place of its impulse joints; these damp, by 0.1 N·m·s.
    """

    def __init__(
        self, joint: str, *, friction: float, length: float, mass: float, reduced: bool = False, dt: float = 1e-3
    ) -> None:
        rapier3d: Any = import_module("rapier3d")  # optional
        gain = 1e6  # N·m·s; more changes nothing
        force = rapier3d.MotorModel.FORCE_BASED  # the gain counts as it is, not per inertia
        l, m, inertia = rod(1, length, mass)
        self._world: Any = rapier3d.PhysicsWorld(gravity=(0.0, 0.0, -GRAVITY))
        self._world.integration_parameters.dt = dt
        base = self._world.add_body(rapier3d.RigidBodyBuilder(rapier3d.RigidBodyType.FIXED).build())
        body = rapier3d.RigidBodyBuilder(rapier3d.RigidBodyType.DYNAMIC).translation((l / 2, 0.0, 0.0)).can_sleep(False)
        body = body.additional_mass_properties(rapier3d.MassProperties((0.0, 0.0, 0.0), m, inertia))
        self._body = self._world.add_body(body.build())
        if joint == "hinge":
            made = rapier3d.RevoluteJointBuilder((0.0, 1.0, 0.0))
            made = made.motor_velocity(0.0, gain).motor_max_force(friction).motor_model(force)
        else:
            made = rapier3d.SphericalJointBuilder()
            for axis in (rapier3d.JointAxis.ANG_X, rapier3d.JointAxis.ANG_Y, rapier3d.JointAxis.ANG_Z):
                made = made.motor_velocity(axis, 0.0, gain).motor_max_force(axis, friction).motor_model(axis, force)
        made = made.local_anchor1((0.0, 0.0, 0.0)).local_anchor2((-l / 2, 0.0, 0.0)).build()
        (self._world.multibody_joints if reduced else self._world.impulse_joints).insert(base, self._body, made)

    def step(self, n: int) -> None:
        """Advance by n steps."""
        for _ in range(n):
            self._world.step()

    def rotation(self) -> np.ndarray:
        """(4,) of the rod now: x, y, z, w."""
        turn = self._world.rigid_bodies[self._body].rotation
        return np.array([turn.i, turn.j, turn.k, turn.w])


# ---- ropes -----------------------------------------------------------------------------------------------------------

# 2.8 m over a span of 2 m, soft; in the plane of its catenary, or swung about the line through its ends by SWING and let go
ROPE: dict[str, Any] = {"radius": 0.015, "density": 1200.0, "E": 0.05e6, "G": 0.1e6}
ROPE_LENGTH, SPAN, SWING = 2.8, 2.0, 0.5  # m, m, rad


def rope(n: int, swing: float = SWING) -> sh.Scene:
    """Our rope of n segments."""
    hung = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    hung.add_rope("rope", (0, 0, 0), (SPAN, 0, 0), length=ROPE_LENGTH, segments=n, attach=("world", "world"), **ROPE)
    if not swing:
        return hung
    x, _, z = sh.Simulation(hung, 1.0).rope("rope").position.T
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    points = np.stack([x, -z * np.sin(swing), z * np.cos(swing)], 1)
    scene.add_rope("rope", points=points, segments=n, attach=("world", "world"), **ROPE)
    return scene


def rope_points(n: int, swing: float = SWING) -> np.ndarray:
    """(n + 1, 3) points of that rope at the start, m."""
    return np.array(sh.Simulation(rope(n, swing), 1.0).rope("rope").position)


def rope_xml(points: np.ndarray, dt: float) -> str:
    """The rope as MuJoCo's one-dimensional flex: points that slide, lengths between them as soft constraints."""
    n = len(points) - 1
    mass = ROPE["density"] * math.pi * ROPE["radius"] ** 2 * ROPE_LENGTH
    vertices = " ".join(map(repr, points.ravel().tolist()))
    elements = " ".join(f"{i} {i + 1}" for i in range(n))
    option = f'timestep="{dt!r}" integrator="implicitfast" gravity="0 0 {-GRAVITY!r}"'
    flex = (
        f'<flexcomp name="rope" type="direct" dim="1" mass="{mass!r}" radius="{ROPE["radius"]}" point="{vertices}" '
        f'element="{elements}"><pin id="0 {n}"/><edge equality="true"/></flexcomp>'
    )
    return f'<mujoco><option {option}><flag contact="disable"/></option><worldbody>{flex}</worldbody></mujoco>'


def frames(points: np.ndarray) -> np.ndarray:
    """(n, 3, 3) axes of the segments, columns: along it, across the plane of the rope, and the third."""
    along = np.diff(points, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    across = np.cross(points[-1] - points[0], points[len(points) // 2] - points[0])
    across = np.broadcast_to(across / np.linalg.norm(across), along.shape)
    return np.stack([along, across, np.cross(along, across)], 2)


def capsules_xml(points: np.ndarray, dt: float) -> str:
    """The rope as nested capsules on ball joints with springs EI/l, the last one's end connected to the world.

    Joints are damped by 1e-3 N·m·s: without that steps of 2 ms fail within 10 s.
    """
    n, r = len(points) - 1, ROPE["radius"]
    l = ROPE_LENGTH / n
    m = ROPE["density"] * math.pi * r**2 * l
    inertia = " ".join(map(repr, (m * r**2 / 2, *(m * (l**2 / 12 + r**2 / 4),) * 2)))
    inertial = f'<inertial pos="{l / 2!r} 0 0" mass="{m!r}" diaginertia="{inertia}"/>'
    spring = f'stiffness="{ROPE["E"] * math.pi * r**4 / 4 / l!r}"'
    turns = frames(points)
    turns = np.concatenate([turns[:1], turns[:-1].transpose(0, 2, 1) @ turns[1:]])
    bodies = f'<site name="end" pos="{l!r} 0 0"/>'
    for i in reversed(range(n)):
        place = f'pos="{l!r} 0 0"' if i else f'pos="{" ".join(map(repr, points[0].tolist()))}"'
        axes = " ".join(map(repr, turns[i].T[:2].ravel().tolist()))
        joint = f'<joint type="ball" damping="1e-3" {spring if i else ""}/>'
        bodies = f'<body name="rod {i}" {place} xyaxes="{axes}">{joint}{inertial}{bodies}</body>'
    option = f'timestep="{dt!r}" integrator="implicitfast" gravity="0 0 {-GRAVITY!r}"'
    end = f'<equality><connect body1="rod {n - 1}" anchor="{l!r} 0 0"/></equality>'
    return f'<mujoco><option {option}><flag contact="disable"/></option><worldbody>{bodies}</worldbody>{end}</mujoco>'


class MujocoRope:
    """A rope of n segments in MuJoCo: its one-dimensional flex, or capsules on ball joints with springs."""

    def __init__(self, n: int, dt: float, *, flex: bool, swing: float = SWING) -> None:
        import mujoco  # the peer is optional, and slow to import

        self._mujoco: Any = mujoco
        mujoco.set_mju_user_warning(lambda text: None)  # `failed` tells
        self.model = mujoco.MjModel.from_xml_string((rope_xml if flex else capsules_xml)(rope_points(n, swing), dt))
        self.data, self._flex = mujoco.MjData(self.model), flex

    def reset(self) -> None:
        """Back to the start."""
        self._mujoco.mj_resetData(self.model, self.data)

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        self._mujoco.mj_step(self.model, self.data, n)

    @property
    def failed(self) -> bool:
        """Whether MuJoCo found its state bad, and began anew."""
        return bool(self.data.warning.number.any())

    def points(self) -> np.ndarray:
        """(n + 1, 3) now, m."""
        self._mujoco.mj_forward(self.model, self.data)
        if self._flex:
            return np.array(self.data.flexvert_xpos)
        return np.concatenate([self.data.xpos[1:], self.data.site_xpos])


class ElasticaRope:
    """A rope of n segments in PyElastica: a Cosserat rod whose stretching and shearing is a part of its motion.

    With E and G of the rope it would be twice as long; `stiffer` times as stiff along and across it stretches by 1 %.
    """

    def __init__(self, n: int, dt: float, *, stiffer: float = 45.0, swing: float = SWING) -> None:
        self._elastica: Any = import_module("elastica")  # optional
        self._start, self._dt, self._stiffer = rope_points(n, swing), dt, stiffer
        self._stepper = self._elastica.PositionVerlet()
        self.reset()

    def reset(self) -> None:
        """Back to the start."""
        ea, points = self._elastica, self._start
        n = len(points) - 1
        rod = ea.CosseratRod.straight_rod(
            n, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), ROPE_LENGTH, ROPE["radius"], ROPE["density"],
            youngs_modulus=ROPE["E"], shear_modulus=ROPE["G"],
        )  # fmt: skip
        rod.shear_matrix *= self._stiffer
        rod.position_collection[...] = points.T
        along, across, third = frames(points).transpose(2, 1, 0)
        rod.director_collection[...] = np.stack([across, third, along])

        class Collection(ea.BaseSystemCollection, ea.Constraints, ea.Forcing):  # type: ignore[misc, name-defined]
            pass

        system = Collection()
        system.append(rod)
        system.constrain(rod).using(ea.FixedConstraint, constrained_position_idx=(0, -1))
        system.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -GRAVITY]))
        system.finalize()
        self.rod, self._system, self._time = rod, system, 0.0

    def step(self, n: int) -> None:
        """Advance by n steps."""
        step, system, t, dt = self._stepper.step, self._system, self._time, self._dt
        for _ in range(n):
            t = step(system, t, dt)
        self._time = t

    @property
    def failed(self) -> bool:
        """Whether the state is not finite."""
        return not bool(np.isfinite(self.rod.position_collection).all())

    def points(self) -> np.ndarray:
        """(n + 1, 3) now, m."""
        return np.array(self.rod.position_collection.T)


def heavy_pendulum(dt: float, segments: int = 20) -> sh.Simulation:
    """300 kg on 3 m, 0.3 kg of rope, held 0.2 m off its centre, let go at 30°."""
    a = math.radians(30)
    down, turn = np.array([math.sin(a), 0.0, -math.cos(a)]), (0.0, -math.sin(a / 2), 0.0, math.cos(a / 2))
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add_body("load", sh.Box(0.4, 0.4, 0.4), mass=300.0, position=3.2 * down, rotation=turn)
    scene.add_rope(
        "rope", (0, 0, 0), 3 * down, segments=segments, radius=0.01, mass_per_length=0.1, EI=0.0, GJ=0.0, attach=("world", "load")
    )
    return sh.Simulation(scene, dt)


def rigid_pendulum(times: np.ndarray) -> np.ndarray:
    """The same with a stiff rod for the rope, integrated to nine digits: angle of the rod at these times, rad."""
    a = math.radians(30)
    down, turn = np.array([math.sin(a), 0.0, -math.cos(a)]), (0.0, -math.sin(a / 2), 0.0, math.cos(a / 2))
    scene = sh.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add_body("rod", mass=0.3, inertia=(0.225, 0.225, 1e-5), position=1.5 * down, rotation=turn)
    scene.add_body("load", sh.Box(0.4, 0.4, 0.4), mass=300.0, position=3.2 * down, rotation=turn)
    scene.add_joint("top", sh.Revolute("y"), "world", "rod", position=(0, 0, 0))
    scene.add_joint("low", sh.Revolute("y"), "rod", "load", position=3 * down)
    sim = sh.Simulation(scene, 0.01, solver="direct")
    return np.asarray(a - sim.integrate(float(times[-1]), rtol=1e-9, atol=1e-9, times=times).q[:, 0])
