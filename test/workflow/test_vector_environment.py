# SPDX-License-Identifier: Apache-2.0
"""The vector environment follows Gymnasium's interface: spaces, seeds, ends of episodes, and the three autoresets."""

from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.simulated import ARM

pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from support.processes import run_python

from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import UsageError
from robot_dyn_id.workflow.batch_simulation import BatchSimulation
from robot_dyn_id.workflow.vector_environment import Episodes, RobotVectorEnv

COUNT = 5


@cache
def identified():
    parameters = parameter_set(ARM, terms=(Viscous(), Coulomb(0.01)))
    sigma = 0.01 * np.abs(parameters.estimate.values)
    ranges = {"q_min": np.zeros(3), "q_max": np.zeros(3), "dq_max": np.ones(3), "ddq_max": np.ones(3)}
    uncertain = {"standard_deviations": sigma, "covariance": np.diag(sigma**2)}
    return altered(parameters, estimate=uncertain, judgment={"verdict": "good"}, ranges=ranges)


def upright(q, dq, effort):
    return -np.sum(q**2 + 0.1 * dq**2 + 0.01 * effort**2, axis=1)


def environment(steps=8, mode=AutoresetMode.NEXT_STEP, start=None):
    return RobotVectorEnv(BatchSimulation(identified(), COUNT, seed=0), upright, Episodes(0.01, steps, start, mode))


def random_start(rng, count):
    return rng.uniform(-0.3, 0.3, (count, 3)), rng.uniform(-0.1, 0.1, (count, 3))


def rollout(env, steps, seed=0):
    env.action_space.seed(seed)
    results = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        results += env.step(env.action_space.sample())[:4]
    return results


def test_spaces_rewards_and_info():
    env = environment()
    assert isinstance(env, VectorEnv)
    assert env.action_space.shape == (COUNT, 3)
    assert env.single_observation_space.shape == (6,)
    np.testing.assert_array_equal(env.single_action_space.high, 5.0)
    observations, info = env.reset(seed=0)
    assert observations in env.observation_space
    assert info == {}
    actions = np.full((COUNT, 3), 9.0, dtype=np.float32)
    observations, rewards, terminated, truncated, info = env.step(actions)
    assert observations in env.observation_space
    np.testing.assert_array_equal(info["effort"], 5.0)
    assert info["limited"].all() and info["_limited"].all()
    np.testing.assert_allclose(rewards, upright(env.batch.q, env.batch.dq, env.batch.effort))
    assert (terminated.dtype, truncated.dtype) == (bool, bool)


def test_the_seed_repeats_everything():
    one, again, other = (rollout(environment(start=random_start), 20, seed) for seed in (1, 1, 2))
    for here, there in zip(one, again, strict=True):
        np.testing.assert_array_equal(here, there)
    assert np.abs(one[0] - other[0]).max() > 0.0


def test_next_step_ignores_the_action_after_an_end():
    env = environment(steps=3)
    env.reset(seed=0)
    ends = [env.step(np.ones((COUNT, 3)))[3].all() for _ in range(3)]
    assert ends == [False, False, True]
    observations, rewards, terminated, truncated, info = env.step(np.ones((COUNT, 3)))
    np.testing.assert_array_equal(observations, 0.0)
    np.testing.assert_array_equal(rewards, 0.0)
    assert not (terminated | truncated | info["_effort"]).any()
    assert env.step(np.ones((COUNT, 3)))[0].any()


def test_same_step_returns_the_last_observation_of_the_episode():
    env = environment(steps=3, mode=AutoresetMode.SAME_STEP)
    env.reset(seed=0)
    for _ in range(2):
        assert "final_obs" not in env.step(np.ones((COUNT, 3)))[4]
    observations, rewards, _, truncated, info = env.step(np.ones((COUNT, 3)))
    assert truncated.all() and info["_final_obs"].all()
    np.testing.assert_array_equal(observations, 0.0)
    assert np.abs(np.stack(info["final_obs"])).min() > 0.0
    assert np.all(rewards < 0.0)
    assert not env.step(np.ones((COUNT, 3)))[3].any()


def test_without_autoreset_ended_environments_are_reset_by_mask():
    env = environment(steps=1, mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    assert env.step(np.ones((COUNT, 3)))[3].all()
    with pytest.raises(UsageError, match="environment 0 has no episode"):
        env.step(np.ones((COUNT, 3)))
    for wrong in (np.ones(COUNT), np.ones(2, dtype=bool)):
        with pytest.raises(UsageError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})
    observations, _ = env.reset(options={"reset_mask": np.arange(COUNT) > 0})
    np.testing.assert_array_equal(observations[1:], 0.0)
    assert observations[0].any()
    env.reset(options={"reset_mask": np.arange(COUNT) == 0})
    env.step(np.ones((COUNT, 3)))


def test_a_joint_beyond_its_limits_ends_its_episode_alone():
    def start(rng, count):
        q = np.zeros((count, 3))
        q[0, 1] = 2.999
        return q, np.where(q > 0.0, 2.0, 0.0)

    env = environment(start=start)
    env.reset(seed=0)
    assert env.batch.position_limits[1][1] == 3.0
    terminated = env.step(np.zeros((COUNT, 3)))[2]
    assert terminated.tolist() == [True, *[False] * (COUNT - 1)]


def test_it_works_with_the_wrappers_of_gymnasium():
    env = RecordEpisodeStatistics(environment(steps=4))
    env.reset(seed=0)
    lengths = []
    for _ in range(12):
        info = env.step(env.action_space.sample())[4]
        lengths += info["episode"]["l"][info["_episode"]].tolist() if "episode" in info else []
    assert set(lengths) == {4}


def test_wrong_use_is_refused():
    env = environment()
    with pytest.raises(UsageError, match="shape"):
        env.step(np.ones((COUNT, 2)))
    env.reset(seed=0)
    with pytest.raises(UsageError, match="nan for joint shoulder of environment 2"):
        env.step(np.where(np.arange(COUNT)[:, None] == 2, np.nan, np.zeros((COUNT, 3))))
    with pytest.raises(UsageError, match="reward: shape"):
        RobotVectorEnv(BatchSimulation(identified(), 2), lambda q, dq, effort: 0.0).step(np.zeros((2, 3)))
    for period in (0.0, 60.1, np.inf, np.nan):
        with pytest.raises(UsageError, match="period"):
            Episodes(period=period)
    with pytest.raises(UsageError, match="steps"):
        Episodes(steps=0)


@pytest.mark.slow
def test_without_gymnasium_its_names_exist_and_using_them_says_what_is_missing():
    program = """
import sys
sys.modules["gymnasium"] = None
import robot_dyn_id as rdi
from robot_dyn_id import *
assert hasattr(rdi, "RobotVectorEnv") and Episodes().steps == 1000
try:
    RobotVectorEnv(None, None)
except rdi.RobotDynIdError as error:
    print(error)
"""
    done = run_python(program, check=True)
    assert "pip install 'robot-dyn-id[gym]'" in done.stdout
