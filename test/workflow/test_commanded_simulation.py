# SPDX-License-Identifier: Apache-2.0
"""Robots under position commands: the motion of the fitted simulation, draws from the uncertainty, an environment."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import UsageError
from robot_dyn_id.workflow.actuators import DriveSettings, identify_actuators
from robot_dyn_id.workflow.commanded_simulation import CommandedSimulation

GAINS = DriveSettings(*(dict(zip(MODEL.joint_names, values.tolist(), strict=True)) for values in (TRUTH.kp, TRUTH.kd)))


def recording(seed, factor=1.0):
    motion = record(truth=replace(TRUTH, coulomb=factor * TRUTH.coulomb), seed=seed, duration=5.0, rate=50.0)
    return ArrayRecording(f"run {seed}", MODEL.joint_names, Chunk(t=motion.t, q=motion.q, reference=motion.reference))


@pytest.fixture(scope="module")
def result():
    training = [recording(seed, factor) for seed, factor in enumerate((0.9, 1.0, 1.1))]
    return identify_actuators(MODEL, training, recording(3), GAINS)


@pytest.mark.slow
def test_steps_are_those_of_the_whole_simulation(result):
    """Delays reach back to earlier commands, and each call begins where the one before ended."""
    motion = record(truth=result.actuators, noise=0.0, duration=3.0, rate=50.0)
    held = replace(motion, before=(motion.t[:1] - 1.0, motion.q[:1]))
    whole = simulate_commands(MODEL, result.actuators, held)
    batch = CommandedSimulation(result, 2)
    batch.reset(motion.q[0])
    for sample, reference in enumerate(motion.reference[:-1]):
        assert np.abs(batch.q[0] - whole[sample]).max() < 1e-3
        batch.step(np.tile(reference, (2, 1)), 0.02)
    np.testing.assert_array_equal(batch.q[0], batch.q[1])
    assert np.ptp(whole, axis=0).min() > 0.2


def test_a_reset_robot_has_no_past(result):
    batch = CommandedSimulation(result, 2)
    batch.reset([0.1, 0.2, 0.0])
    batch.step(np.full((2, 3), 0.5), 0.1)
    batch.reset([0.1, 0.2, 0.0], environments=[1])
    batch.step(np.full((2, 3), 0.1), 0.1)
    fresh = CommandedSimulation(result, 1)
    fresh.reset([0.1, 0.2, 0.0])
    fresh.step(np.full((1, 3), 0.1), 0.1)
    np.testing.assert_allclose(batch.q[1], fresh.q[0], atol=1e-9)
    assert np.abs(batch.q[0] - batch.q[1]).max() > 0.01


def test_the_seed_decides_and_the_spread_scales(result):
    one, same, other = (CommandedSimulation(result, 3, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.actuators[2].values, same.actuators[2].values)
    assert not np.array_equal(one.actuators[2].values, other.actuators[2].values)
    identified = result.actuator_set
    (drawn,) = draw_actuators(identified.actuators, identified.uncertainty, 1, 5)
    np.testing.assert_array_equal(one.actuators[0].values, drawn.values, "as the node simulator draws")
    none = CommandedSimulation(result, 3, seed=5, spread=0.0)
    np.testing.assert_allclose(none.actuators[0].values, result.actuators.values)


def test_wrong_arguments_are_refused(result):
    with pytest.raises(UsageError, match="give that of identify_actuators"):
        CommandedSimulation(None, 1)
    with pytest.raises(UsageError, match="environments: 0"):
        CommandedSimulation(result, 0)
    batch = CommandedSimulation(result, 2)
    with pytest.raises(UsageError, match="reference: shape"):
        batch.step(np.zeros((1, 3)))
    with pytest.raises(UsageError, match="duration: 0 s"):
        batch.step(np.zeros((2, 3)), 0.0)


def test_a_vector_environment_commands_positions(result):
    pytest.importorskip("gymnasium")
    from robot_dyn_id.workflow.vector_environment import Episodes, RobotVectorEnv

    batch = CommandedSimulation(result, 4, seed=0)
    environment = RobotVectorEnv(batch, lambda q, dq, effort: -np.abs(q - 0.3).sum(axis=1), Episodes(0.02, 100))
    lower, upper = MODEL.limits.lower, MODEL.limits.upper
    np.testing.assert_allclose(environment.single_action_space.low, lower, rtol=1e-6)
    np.testing.assert_allclose(environment.single_action_space.high, upper, rtol=1e-6)
    environment.reset(seed=0)
    for _ in range(99):
        observations, rewards, terminated, truncated, _ = environment.step(np.full((4, 3), 0.3))
    assert not (terminated | truncated).any()
    assert rewards.min() > -0.3  # held against weight and friction
    assert len(np.unique(observations[:, 0])) == 4  # four different robots
    assert environment.step(np.full((4, 3), 0.3))[3].all()
