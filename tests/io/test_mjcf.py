"""MJCF models as scenes: their accelerations are MuJoCo's, and what has no counterpart is named."""

import importlib.util
import pathlib
import re
import time
import warnings

import numpy as np
import pytest
from damage import damaged, unfinished

import sharnir as sh
from sharnir import dynamics as dyn
from sharnir.core.spatial import quat_conjugate, quat_multiply, quat_rotate
from sharnir.io.mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco")
FOLDERS = {"gymnasium": "envs/mujoco/assets", "dm_control": "suite", "gymnasium_robotics": "envs/assets"}
FEW = ("ant", "hopper", "half_cheetah", "humanoid", "walker2d", "swimmer", "reacher", "pusher", "inverted_double_pendulum")
HANDS = ("hand/reach", "fetch/reach", "fetch/push", "adroit_hand/adroit_door")


def folder(package):
    """Where a package has its models; it is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return pathlib.Path(spec.submodule_search_locations[0]) / FOLDERS[package]


class Pair:
    """A model here and there, as trees on which nothing acts but gravity, springs and dampers; without armature."""

    def __init__(self, file):
        self.made = read_mjcf(file, roots=[file.parent.parent], meshes=False, contact=False)
        scene, m = self.made.scene, self.made.model
        trees = {name for name, _ in self.made.joints.values()}
        for name in [name for name in scene.joints if name not in trees]:
            del scene.joints[name]
        for kind in (scene.gears, scene.cables, scene.springs, scene.inputs):
            kind.clear()
        self.model = scene.build()
        self.tree = dyn.links(self.model)
        self.bodies = list(scene.bodies.values())
        off = mujoco.mjtDisableBit
        for bit in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_EQUALITY, off.mjDSBL_FRICTIONLOSS, off.mjDSBL_ACTUATION):
            m.opt.disableflags |= bit
        m.opt.density = m.opt.viscosity = 0
        for values in (m.dof_armature, m.tendon_stiffness, m.tendon_damping, m.tendon_armature, m.body_gravcomp):
            values[:] = 0
        mujoco.mj_setConst(m, self.made.data)

    def error(self, rng):
        """Of the accelerations at a random state, relative to the largest."""
        m, d, t = self.made.model, self.made.data, self.tree
        Q, V, turns = dyn.neutral(t).astype(float), np.zeros(t.nv), {}
        d.qpos[:], d.qvel[:] = m.qpos0, rng.uniform(-1, 1, m.nv)
        for j, (name, axes) in self.made.joints.items():
            k, kind, qa, va = self.model.joint_names[name], int(m.jnt_type[j]), int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
            q0, v0, start = int(t.q_start[k]), int(t.v_start[k]), self.bodies[self.model.children[k]]
            if kind >= 2:
                i = list(self.model.joint_kinds[k].free).index(axes[0])
                Q[q0 + i] = rng.uniform(-0.8, 0.8)
                d.qpos[qa], V[v0 + i] = m.qpos0[qa] + Q[q0 + i], d.qvel[va]
                continue
            turn, at = rng.normal(size=4), 3 * (kind == 0)
            turn /= np.linalg.norm(turn)
            if kind == 0:
                Q[q0 : q0 + 3] = rng.normal(size=3)
                d.qpos[qa : qa + 3], V[v0 : v0 + 3] = start.position + Q[q0 : q0 + 3], d.qvel[va : va + 3]
            d.qpos[qa + at : qa + at + 4] = turn[[3, 0, 1, 2]]
            turns[j] = turn if kind == 0 else quat_multiply(start.rotation, turn)
            Q[q0 + at : q0 + at + 4] = quat_multiply(turns[j], quat_conjugate(start.rotation))
            V[v0 + at : v0 + at + 3] = quat_rotate(turns[j], d.qvel[va + at : va + at + 3])
        mujoco.mj_forward(m, d)
        A, ours = dyn.forward_dynamics(t, Q, V, dyn.passive_forces(t, Q, V)), np.zeros(m.nv)
        for j, (name, axes) in self.made.joints.items():
            k, kind, va = self.model.joint_names[name], int(m.jnt_type[j]), int(m.jnt_dofadr[j])
            v0, at = int(t.v_start[k]), 3 * (kind == 0)
            if kind >= 2:
                ours[va] = A[v0 + list(self.model.joint_kinds[k].free).index(axes[0])]
                continue
            ours[va : va + at] = A[v0 : v0 + at]
            ours[va + at : va + at + 3] = quat_rotate(quat_conjugate(turns[j]), A[v0 + at : v0 + at + 3])
        return np.abs(ours - d.qacc).max() / np.abs(d.qacc).max()


def worst_of(file):
    pair, rng = Pair(file), np.random.default_rng(0)
    worst = max(pair.error(rng) for _ in range(5))
    print(f"{file.parent.name}/{file.name}: {len(pair.bodies) - 1} bodies, accelerations {worst:.1e} of their scale off MuJoCo's")
    return worst


def test_accelerations_of_gymnasium_models():
    worst = max(worst_of(folder("gymnasium") / f"{name}.xml") for name in FEW)
    print(f"worst of {len(FEW)} models: {worst:.1e}")
    assert worst < 1e-10


@pytest.mark.slow
def test_accelerations_of_all_models():
    files = sorted(folder("gymnasium").glob("*.xml")) + sorted(folder("dm_control").glob("*.xml"))
    files = [file for file in files if file.name != "lqr.xml"]  # a template without joints
    files += [folder("gymnasium_robotics") / f"{name}.xml" for name in HANDS]
    errors = [worst_of(file) for file in files]
    print(f"worst of {len(files)} models: {max(errors):.1e}")
    assert max(errors) < 1e-10


MODEL = """<mujoco model="all">
  <option timestep="0.004" gravity="0 0 -9.8"/>
  <default><geom density="500"/><joint damping="0.1"/></default>
  <asset><hfield name="hills" nrow="4" ncol="5" size="2 3 0.5 0.1" elevation="0 0 0 0 0 0 1 2 1 0 0 1 2 1 0 0 0 0 0 0"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" friction="0.8"/>
    <geom name="hills" type="hfield" hfield="hills" pos="9 0 0"/>
    <geom name="post" type="cylinder" size="0.1 0.5" pos="3 0 0.5"/>
    <camera name="eye" pos="0 0 3" fovy="60"/>
    <body name="cart" pos="0 0 1">
      <joint name="slide" type="slide" axis="1 0 0" range="-1 1" limited="true"/>
      <geom type="box" size="0.2 0.1 0.05" contype="1" conaffinity="0" rgba="1 0 0 1"/>
      <site name="hook" pos="0.2 0 0"/>
      <site name="under" pos="0.15 0 -0.1" euler="150 0 0"/>
      <body name="tray" pos="0 0 0.1"><geom type="box" size="0.1 0.1 0.01" contype="1" conaffinity="0"/></body>
      <body name="pole" pos="0 0 -0.05">
        <joint name="hinge" type="hinge" axis="0 1 0" stiffness="2" springref="10" frictionloss="0.05" ref="5"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03" contype="1" conaffinity="0"/>
        <site name="grip" pos="0 0 -0.3" euler="0 30 0"/>
        <body name="hand" pos="0 0 -0.5">
          <joint name="ball" type="ball"/>
          <geom type="ellipsoid" size="0.1 0.05 0.04" contype="1" conaffinity="0"/>
        </body>
      </body>
    </body>
    <body name="rotor" pos="0 2 1">
      <joint name="spin" type="hinge" axis="0 0 1" armature="0.5" damping="0"/>
      <geom type="cylinder" size="0.2 0.02"/>
    </body>
    <body name="ball" pos="1 0 2"><freejoint name="loose"/><geom type="sphere" size="0.1" condim="6"/>
      <site name="top" pos="0 0 0.1"/></body>
  </worldbody>
  <contact><exclude body1="cart" body2="ball"/></contact>
  <equality><joint name="screw" joint1="spin" joint2="slide" polycoef="0 3 0 0 0"/></equality>
  <tendon><spatial name="string" stiffness="30" springlength="0.7"><site site="hook"/><site site="top"/></spatial></tendon>
  <actuator>
    <motor name="push" joint="slide" gear="5" ctrlrange="-1 1"/>
    <position name="turn" joint="hinge" kp="40" kv="2" ctrlrange="-1 1"/>
    <muscle name="flesh" joint="spin"/>
  </actuator>
  <sensor>
    <jointpos name="angle" joint="hinge"/><accelerometer name="pull" site="grip"/><gyro name="gyro" site="grip" noise="0.1"/>
    <rangefinder name="height" site="under" cutoff="7"/><force name="load" site="grip"/><torque name="twist" site="grip"/>
    <force name="loose" site="top"/><framepos name="where" objtype="site" objname="hook"/><subtreecom name="com" body="cart"/>
    <framequat name="tilt" objtype="camera" objname="eye"/><clock name="clock"/>
  </sensor>
</mujoco>
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "all.xml").write_text(MODEL)
    return tmp_path / "all.xml"


def test_a_model_with_everything(model, tmp_path):
    scene = sh.load_mjcf(model)
    bodies, joints = scene.bodies, scene.joints
    assert {"cart", "pole", "hand", "rotor", "ball", "hills", "world geoms"} < set(bodies) and "tray" in scene.frames
    assert abs(bodies["cart"].mass - 500 * (0.4 * 0.2 * 0.1 + 0.2 * 0.2 * 0.02)) < 1e-12
    slide, hinge, spin = (joints[name].axes[0] for name in ("slide", "hinge", "spin"))
    assert (slide.limit.lower, slide.limit.upper, slide.damping) == (-1, 1, 0.1)
    assert abs(hinge.rest - np.radians(5)) < 1e-12 and hinge.stiffness == 2 and hinge.friction.static == 0.05
    assert hinge.drive.kp == 40 and hinge.drive.kd == 2 and spin.drive.armature == 0.5
    assert isinstance(joints["ball"].joint, sh.Spherical) and isinstance(joints["loose"].joint, sh.Free)
    assert scene.gears["screw"].ratio == 3 and scene.springs["string"].rest == 0.7 and scene.springs["string"].stiffness == 30
    assert scene.inputs["push"].scale == 5 and scene.inputs["turn"].target == "joint/hinge.position"
    assert scene.options == {"dt": 0.004} and scene.gravity[2] == -9.8
    floor = scene.touch.bodies["world"]
    assert floor.parts[0].kind == "plane" and floor.parts[0].material.friction == 0.8
    groups = {name: c.groups or [(c.group, c.mask)] for name, c in scene.touch.bodies.items()}
    (cart, tray), (ball,), ground = groups["cart"], groups["ball"], floor.parts[0].group
    for a, b, meet in ((cart, ground, 1), (cart, cart, 0), (cart, ball, 0), (tray, ball, 1), (tray, cart, 0), (ball, ball, 1)):
        assert bool(a[0] & b[1]) == bool(a[1] & b[0]) == meet, "the exclusion is of the cart, not of the tray on it"
    for words in ("'flesh' is left out", "camera 'eye' is a frame", "joint 'hinge' counts from the pose"):
        assert any(words in note for note in scene.notes), words
    scene.save(tmp_path / "all.toml")
    assert list(sh.load_scene(tmp_path / "all.toml").bodies) == list(bodies)
    assert list(sh.load_scene(model).joints) == list(joints)


def test_sensors_and_cameras(model):
    """Those with a counterpart read what MuJoCo's do, of a state in motion; notes tell where the others are read."""
    scene = sh.load_mjcf(model)
    kinds = {name: given.kind for name, given in scene.sensors.items()}
    assert kinds == {"pull": "imu", "gyro": "imu", "height": "lidar", "load": "force", "twist": "force"}
    for words in ("'angle' (jointpos): read sim.joint('hinge').position", "'where' (framepos): read sim.frame('hook').position",
                  "'com' (subtreecom): it is left out", "'loose' (force): it is left out", "'clock' (clock): read sim.time",
                  "'tilt' (framequat): read sim.frame('eye').rotation", "'gyro' (gyro): its noise 0.1",
                  "about the anchor of joint 'hinge', 0.3 m"):  # fmt: skip
        assert any(words in note for note in scene.notes), words
    for kind in (scene.gears, scene.springs):
        kind.clear()
    m = read_mjcf(model).model
    m.eq_active0[:] = 0
    m.tendon_stiffness[:] = 0
    m.opt.timestep = 1e-4
    d, sim = mujoco.MjData(m), sh.Simulation(scene, 1e-4, solver="sequential")
    d.ctrl[1] = m.qpos0[m.jnt_qposadr[m.joint("hinge").id]]  # the pose from which the servo here counts
    sim.step(400)
    while d.time < sim.time - 1e-9:
        mujoco.mj_step(m, d)
    mujoco.mj_forward(m, d)
    mujoco.mj_sensorAcc(m, d)
    found = {"pull": sim.sensor("pull").acceleration, "gyro": sim.sensor("gyro").rate, "height": sim.sensor("height").ranges,
             "load": sim.sensor("load").force}  # fmt: skip
    for name, value in found.items():
        theirs = d.sensor(name).data
        off = np.abs(value - theirs).max() / np.abs(theirs).max()
        print(f"{name}: {np.round(value, 5)}, MuJoCo {np.round(theirs, 5)}: {off:.1e} off")
        assert off < 2e-3
    eye = sim.frame("eye")
    assert np.allclose(quat_rotate(eye.rotation, (1, 0, 0)), (0, 0, -1)) and np.allclose(
        quat_rotate(eye.rotation, (0, 0, 1)), (0, 1, 0)
    )
    depth = sh.sensors.DepthCamera(sim, "eye", width=4, height=3, ignore=["cart", "pole", "hand", "ball"]).depth
    assert np.allclose(depth, 3.0), "the floor below it"


def test_sensors_of_a_quadruped():
    scene = sh.load_mjcf(folder("dm_control") / "quadruped.xml")
    kinds = [given.kind for given in scene.sensors.values()]
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    print(f"quadruped: {counts}; {[note for note in scene.notes if 'sensor' in note][:3]}")
    assert counts["imu"] == 2 and counts["lidar"] > 5 and "egocentric" in scene.frames


def test_an_armature_is_a_rotor(tmp_path):
    text = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 1 0" armature="0.3"/>
      <geom type="box" size="0.1 0.1 0.2" pos="0.3 0 0"/></body></worldbody></mujoco>"""
    (tmp_path / "rotor.xml").write_text(text)
    sim = sh.Simulation(sh.load_mjcf(tmp_path / "rotor.xml"), 1e-4, solver="sequential")
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    sim.step(10)
    found = sim.joint("j").velocity / sim.time
    print(f"{found:.8f} rad/s² with the rotor, MuJoCo {d.qacc[0]:.8f}")
    assert abs(found / d.qacc[0] - 1) < 1e-4


def attack(seeds, folder):
    """Read damaged files: how many were refused, and how long the longest took (s)."""
    numbers = ("1e308", "-1e308", "-1", "0", "1e-320", "nan", "inf", "-inf", "99999999999999999999", "x", "", "1 2")
    refused, longest = 0, 0.0
    for seed in seeds:
        text = damaged(MODEL, np.random.default_rng(seed), numbers)
        (folder / "bad.xml").write_bytes(text.encode("utf-8", "replace"))
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scene = sh.load_mjcf(folder / "bad.xml")
                assert not unfinished(scene), seed
            except sh.SceneError as error:
                refused += 1
                assert str(error).startswith("bad.xml:"), (seed, str(error))
        longest = max(longest, time.process_time() - started)
    return refused, longest


def test_damaged_models_are_refused(tmp_path):
    refused, longest = attack(range(60), tmp_path)
    print(f"60 damaged models: {refused} refused, each with its place; the longest took {longest:.2f} s")
    assert refused > 20


@pytest.mark.slow
def test_two_thousand_damaged_models(tmp_path):
    refused, longest = attack(range(2000), tmp_path)
    print(f"2000 damaged models: {refused} refused, each with its place; the longest took {longest:.2f} s")
    assert refused > 1000 and longest < 20


def test_without_the_extra_it_is_named(model, monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *args, **keywords):
        if name == "mujoco":
            raise ImportError
        return real(name, *args, **keywords)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Exception, match=re.escape("pip install sharnir[io]")):
        sh.load_mjcf(model)
