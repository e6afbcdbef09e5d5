"""Gymnasium's environments over worlds: its own checkers, its own cart-pole, autoreset in all three modes, seeds, pictures."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import in_time

import sharnir as sh
from sharnir.learn.tasks import TASKS

gymnasium = pytest.importorskip("gymnasium", reason='the extra is missing: pip install "sharnir[learn]"')
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

WORLDS = 16
QUICK = ("CartPole", "Crane")
OTHERS = sorted(set(sh.gym.TASKS) - set(QUICK))


@pytest.fixture(scope="module")
def poles():
    return sh.gym.VectorEnv("CartPole", num_envs=WORLDS)


def drawn(env, seed=0):
    """Actions of all worlds, the same for the same seed."""
    random = np.random.default_rng(seed)
    space = env.single_action_space
    while True:
        if hasattr(space, "n"):
            yield random.integers(space.n, size=env.num_envs)
        else:
            yield random.uniform(space.low, space.high, (env.num_envs, *space.shape)).astype(np.float32)


def passes_the_checker(name):
    sh.gym  # noqa: B018  registers
    env = gymnasium.make(f"sharnir/{name}-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity.*")  # speeds have no bounds, as in Gymnasium's own
        warnings.filterwarnings("ignore", message=".*did not converge.*")  # tracks that land on the ground at the first step
        check_env(env.unwrapped, skip_render_check=True)
    vector = gymnasium.make_vec(f"sharnir/{name}-v0", num_envs=3)
    seen, _ = vector.reset(seed=3)
    assert vector.observation_space.contains(seen)
    for _, action in zip(range(5), drawn(vector), strict=False):
        seen, reward, ended, cut, info = vector.step(action)
        assert vector.observation_space.contains(seen) and reward.shape == ended.shape == cut.shape == (3,)
        assert ended.dtype == cut.dtype == bool and np.isfinite(reward).all() and "failed" not in info


@pytest.mark.parametrize("name", QUICK)
def test_gymnasium_accepts_the_environment(name):
    passes_the_checker(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_gymnasium_accepts_the_other_environments(name):
    passes_the_checker(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", OTHERS)
def test_random_actions_break_nothing(name):
    env = sh.gym.VectorEnv(name, num_envs=4)
    env.reset(seed=5)
    ends, failed = 0, 0
    for _, action in zip(range(60), drawn(env, 5), strict=False):
        seen, reward, ended, cut, info = env.step(action)
        assert env.observation_space.contains(seen) and np.isfinite(reward).all()
        ends, failed = ends + int((ended | cut).sum()), failed + int(np.sum(info.get("failed", False)))
    print(f"{name}: {ends} episodes ended in 4 x 60 decisions, {failed} worlds failed")
    assert failed == 0


@pytest.mark.parametrize(("skip", "tolerance"), [(1, 2e-3), (10, 3e-4)])
def test_the_cart_pole_moves_as_gymnasiums_own(skip, tolerance):
    theirs = gymnasium.make("CartPole-v1").unwrapped
    theirs.reset(seed=1)
    theirs.tau, theirs.theta_threshold_radians = 5e-5, np.inf  # Euler's rule is of first order
    task = sh.gym.task_of("CartPole")
    task.dt, task.frame_skip = 0.02 / skip, skip
    env = sh.gym.Env(task)
    env.reset(seed=1)
    start = np.array([0.01, 0.2, 0.03, -0.1])
    env.sim.set_state(q=start[[0, 2]], qd=start[[1, 3]])
    theirs.state, worst = start, 0.0
    for k in range(10):
        action = (k // 3) % 2
        for _ in range(400):
            theirs.step(action)
        seen, reward, ended, _, _ = env.step(action)
        worst = max(worst, float(np.abs(seen - np.array(theirs.state)).max()))
        assert reward == 1.0 and ended == (abs(seen[2]) > np.radians(12))
    moved = float(np.abs(np.array(theirs.state) - start).max())
    print(f"largest difference in 0.2 s, steps of {20 / skip:.0f} ms: {worst:.1e} (moved by {moved:.2f}); tolerance {tolerance}")
    assert worst < tolerance < 0.1 < moved


def test_passes_that_the_tasks_leave_out_change_next_to_nothing():
    task, random = sh.gym.task_of("CartPole"), np.random.default_rng(0)
    start, pushes = random.uniform(-0.05, 0.05, (2, 64, 2)), random.choice([-10.0, 10.0], (25, 64))
    seen, passes, gaps = [], [], []
    for options in (task.options, {"solver": "direct"}):
        sim = sh.Simulation(task.scene(), task.dt, worlds=64, **options)
        sim.set_state(q=start[0], qd=start[1])
        made = []
        for push in pushes:
            sim.effort = np.stack([push, 0.0 * push], 1)
            sim.step()
            made.append(sim.solver._passes.numpy().mean())
        seen.append(np.hstack([sim.q, sim.qd]))
        passes.append(np.mean(made))
        gaps.append(float(np.max(sim.constraint_error())))
    off = np.abs(seen[0] - seen[1]).max()
    print(f"{passes[0]:.2f} passes, {passes[1]:.2f} to rounding; {off:.1e} apart after 0.5 s (1e-6), gaps {gaps[0]:.1e} (1e-8)")
    assert off < 1e-6 and gaps[0] < 1e-8 and passes[0] < 0.8 * passes[1]


def test_next_step_autoreset(poles):
    poles.reset(seed=7)
    before, ends = np.zeros(WORLDS, bool), 0
    for _, action in zip(range(60), drawn(poles, 7), strict=False):
        seen, reward, ended, cut, _ = poles.step(action)
        assert (reward[before] == 0).all() and (reward[~before] == 1).all() and not (ended | cut)[before].any()
        assert np.abs(seen[before]).max(initial=0.0) <= poles.task.noise  # a start
        before, ends = ended | cut, ends + int(ended.sum())
    print(f"{ends} episodes ended")
    assert ends > WORLDS and poles.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_same_step_autoreset_and_what_the_other_worlds_do(poles):
    env = sh.gym.VectorEnv("CartPole", num_envs=WORLDS, autoreset_mode=AutoresetMode.SAME_STEP, max_episode_steps=25)
    free = sh.gym.VectorEnv("CartPole", num_envs=WORLDS, autoreset_mode="Disabled", max_episode_steps=10**6)
    for one in (env, free):
        one.reset(seed=7)
    free.task.lean = free.task.room = np.inf  # nothing ends there
    first, cuts, compared = np.ones(WORLDS, bool), 0, 0
    for _, action in zip(range(60), drawn(env, 7), strict=False):
        seen, reward, ended, cut, info = env.step(action)
        over, alone = ended | cut, free.step(action)[0]
        assert (reward == 1).all() and np.array_equal(over, info.get("_final_obs", np.zeros(WORLDS, bool)))
        if over.any():
            assert np.abs(seen[over]).max() <= env.task.noise and not np.array_equal(info["final_obs"][over], seen[over])
            assert np.array_equal(info["final_obs"][over & first], alone[over & first])
        first &= ~over
        assert np.array_equal(seen[first], alone[first])  # to the bit, whatever was reset beside it
        cuts, compared = cuts + int(cut.sum()), compared + int(first.sum())
    print(f"{compared} observations equal to the bit, {cuts} episodes cut at 25 decisions")
    assert cuts > 0 and compared > 100


def test_worlds_are_reset_by_a_mask():
    env = sh.gym.VectorEnv("CartPole", num_envs=4, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=3)
    seen, _ = env.reset(seed=1)
    push = np.ones(4, int)
    for _ in range(2):
        env.step(push)
    mask = np.array([True, False, False, False])
    before = env.step(push)
    assert before[3].all()
    after, _ = env.reset(options={"reset_mask": mask})
    assert np.array_equal(after[1:], before[0][1:]) and np.abs(after[0]).max() <= 0.05 and not np.array_equal(after[0], seen[0])
    with pytest.raises(sh.SimulationError, match="world 1 has ended"):
        env.step(push)
    with pytest.raises(sh.SimulationError, match="reset_mask is 4 booleans"):
        env.reset(options={"reset_mask": np.array([True])})


def test_a_seed_gives_the_same_motion(poles):
    def run(seed):
        seen = [poles.reset(seed=seed)[0]]
        seen += [poles.step(action)[0] for _, action in zip(range(40), drawn(poles), strict=False)]
        return np.array(seen)

    assert np.array_equal(run(3), run(3)) and not np.array_equal(run(3)[0], run(4)[0])


def test_a_curriculum_varies_parameters():
    env = sh.gym.VectorEnv("Crane", num_envs=4, spread={"mass": 0.0})
    env.reset(seed=1)
    assert np.ptp(env.sim.body("load").mass) == 0
    env.spread = {"mass": 0.5}
    env.reset(seed=1)
    mass = env.sim.body("load").mass
    print("masses of the load:", mass.round(1))
    assert 250 <= mass.min() < mass.max() <= 750
    env.step(np.zeros((4, 1), np.float32))


def test_an_own_task_and_its_picture():
    class Pushed(type(sh.gym.task_of("CartPole"))):
        def action_space(self, w):
            return gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

        def act(self, w, action):
            w.set_effort([0], 10.0 * action)

    env = sh.gym.Env(Pushed, render_mode="rgb_array")
    env.reset(seed=1)
    first, before = env.render(), float(env.sim.momentum().linear[0])
    for _ in range(10):
        env.step(np.array([5.0], np.float32))  # clipped to 1: 10 N
    other = env.render()
    assert first.shape == (360, 480, 3) and first.dtype == np.uint8 and (first != other).any()
    gained = float(env.sim.momentum().linear[0]) - before
    print(f"momentum gained in 0.2 s of 10 N: 2 {gained - 2:+.1e} kg m/s; tolerance 1e-9")
    assert abs(gained - 2.0) < 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sh.gym.Env("Pole"), "no task 'Pole'; available: CartPole"),
        (lambda: sh.gym.Env(7), "task is a name"),
        (lambda: sh.gym.VectorEnv("CartPole", 0), "num_envs is a whole number of at least 1, got 0"),
        (lambda: sh.gym.Env("CartPole", render_mode="human"), "render_mode is None or 'rgb_array', got 'human'"),
    ],
)
def test_bad_words_are_refused(call, words):
    with pytest.raises(sh.SimulationError, match=words):
        call()


@pytest.mark.parametrize(
    ("name", "near"), [("ended", "terminated"), ("rewards", "reward"), ("observ", "observe"), ("reset", "start")]
)
def test_a_method_with_nearly_the_name_of_one_of_a_task_warns(name, near):
    with pytest.warns(sh.SceneWarning, match=f"no method '{name}'; is '{near}' meant"):
        type("Own", (sh.gym.Task,), {name: lambda task, w: None})


def test_other_methods_of_a_task_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("Own", (sh.gym.Task,), dict.fromkeys(("height_of", "rewards", "reward"), lambda task, w: None))


@pytest.mark.parametrize("seen", [[1.0, 2.0], np.zeros(3), np.zeros((7, 3))])
def test_observations_of_a_wrong_shape_are_refused(seen):
    own = type("Own", (TASKS["CartPole"],), {"observe": lambda task, w: seen})
    with pytest.raises(sh.SimulationError, match=r"task Own: observe\(\) returns an array \(worlds, n\), here \(1, n\), got "):
        sh.gym.Env(own).reset()


def test_bad_actions_are_refused(poles):
    poles.reset(seed=1)
    for action in (np.ones(3, int), np.full(WORLDS, 2), np.full(WORLDS, 0.5)):
        with pytest.raises(sh.SimulationError, match=f"an action is {WORLDS} whole numbers from 0 to 1"):
            poles.step(action)
    crane = sh.gym.Env("Crane")
    crane.reset(seed=1)
    for number in (np.array([np.nan]), np.zeros(2)):
        with pytest.raises(sh.SimulationError, match=r"an action is finite numbers \(1, 1\)"):
            crane.step(number)


def test_the_library_alone_does_not_need_gymnasium():
    code = (
        "import sys, sharnir as sh; assert 'gymnasium' not in sys.modules; sys.modules['gymnasium'] = None\n"
        "try: sh.gym\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'gymnasium is not installed: pip install "sharnir[learn]"' in done.stdout


def test_resetting_some_worlds_and_setting_some_is_as_all_at_once():
    scene = sh.Scene()
    scene.add_body("arm", sh.Box(1.0, 0.2, 0.1), mass=2.0, position=(0.5, 0, 0))
    scene.add_body("ball", sh.Box(0.4, 0.1, 0.2), mass=1.0, position=(1.2, 0, 0))
    scene.add_joint("shoulder", sh.Revolute("y"), scene.world, "arm", position=(0, 0, 0))
    scene.add_joint("wrist", sh.Spherical(), "arm", "ball", position=(1, 0, 0))
    random = np.random.default_rng(1)
    turn = random.normal(size=4)
    q, qd = np.concatenate([[0.3], turn / np.linalg.norm(turn)]), random.normal(size=4)
    one, many = (sh.Simulation(scene, 0.01, solver="direct", worlds=n) for n in (1, 8))
    start = many.snapshot()
    many.step(3)
    before = many.snapshot()
    many.reset(worlds=[2, 5])  # a quarter or more, array by array
    after = many.snapshot()
    others = np.setdiff1d(np.arange(8), [2, 5])
    for name in ("state.position", "state.rotation", "state.momentum", "state.qd", "control.servo_kp"):
        assert np.array_equal(after[name][:, [2, 5]], start[name][:, [2, 5]])
        assert np.array_equal(after[name][:, others], before[name][:, others])
    many.reset(worlds=[0])  # word by word
    assert np.array_equal(many.snapshot()["state.position"][:, 0], start["state.position"][:, 0])
    for sim, worlds in ((one, None), (many, [6, 1])):
        sim.set_state(q=q, qd=qd, worlds=worlds)
    assert np.allclose(many.q[1], one.q, atol=1e-14) and np.allclose(many.qd[6], one.qd, atol=1e-14)
    for name in ("position", "rotation", "velocity", "spin", "momentum"):
        alone, some = getattr(one.state, name).numpy()[:, 0], getattr(many.state, name).numpy()
        assert np.allclose(some[:, 1], alone, atol=1e-14) and np.array_equal(some[:, 1], some[:, 6])
    kept = many.snapshot()["state.position"]
    assert np.array_equal(kept[:, [2, 5]], start["state.position"][:, [2, 5]])
    for sim in (one, many):
        sim.step(5)
    print("difference after 5 steps:", np.abs(many.q[1] - one.q).max())
    assert np.allclose(many.q[1], one.q, atol=1e-12)


def test_steps_of_many_worlds_and_their_resets_are_cheap():
    from benchmarks import learning

    theirs = learning.stepping(gymnasium.make_vec("CartPole-v1", num_envs=256, vectorization_mode="sync"))
    times = learning.taking_turns(learning.stepping(sh.gym.VectorEnv("CartPole", num_envs=256)), theirs, 3)
    quicker = float(np.median(times["peer cpu"] / times["ours cpu"]))
    ratio, begun = learning.autoreset(1024, 3)
    print(f"SyncVectorEnv takes {quicker:.2f} times the CPU time (asserted: 1); {begun:.0f} resets in a step: {ratio:.2f} (1.5)")
    in_time(1.0, quicker, "a step beside SyncVectorEnv")
    in_time(ratio, 1.5, "a step with resets")
