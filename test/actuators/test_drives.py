# SPDX-License-Identifier: Apache-2.0
"""Drives step by step: the motion of the whole simulation, torques of the environment, payloads, simulated robots."""

from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.drives import CommandedDrives
from robot_dyn_id.actuators.rollout import simulate_commands, split_into_limbs
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.simulated_robot import Actuation, SimulatedRobot

LIMBS = split_into_limbs(MODEL)

NUMBERS = np.zeros(3)

DAMPED = replace(TRUTH, kd=5.0 * TRUTH.kd, coulomb=NUMBERS)
"""Drives with which the arm comes to rest within some seconds."""


def rough():
    """Limits, end stops and delays that are not those of whole steps."""
    return replace(
        TRUTH,
        limit=np.array([18.0, 15.0, 4.0]),
        delay=np.array([0.0081, 0.0067, 0.0112]),
        upper_stop=np.array([0.1, np.inf, 0.05]),
        lower_reference=np.array([-np.inf, -0.1, -np.inf]),
    )


def dry(actuators):
    """The same with presliding friction and friction that depends on the load."""
    return replace(actuators, load_coulomb=np.full(3, 0.05), breakaway_displacement=np.array([0.01, 0.0, 0.003]))


@pytest.mark.parametrize("actuators", [TRUTH, rough(), dry(rough())], ids=["free", "rough", "presliding"])
def test_steps_are_those_of_the_whole_simulation_to_rounding(actuators):
    motion = record(noise=0.0, duration=3.0, rate=500.0)
    motion = replace(motion, before=(motion.t[:1] - 1.0, motion.q[:1]))
    whole = simulate_commands(MODEL, actuators, motion)
    q, dq = motion.q[0].copy(), np.zeros(3)
    drives, positions, limited = CommandedDrives(actuators, LIMBS, q), [q.copy()], np.zeros(3, dtype=bool)
    for reference in motion.reference[:-1]:
        drives.advance(q, dq, reference, 2e-3)
        positions.append(q.copy())
        limited |= drives.limited
    np.testing.assert_allclose(positions, whole, rtol=0.0, atol=1e-10)
    assert limited.all() == np.isfinite(actuators.limit).all()


def robot(q, actuators, model=MODEL):
    dynamics = make_nominal_dynamics(model, NUMBERS, NUMBERS, 0.0)
    return SimulatedRobot(dynamics, q, 2e-3, Actuation(drives=CommandedDrives(actuators, (), q)))


def rest(robot, duration=6.0):
    """Position and effort after a time."""
    for _ in range(round(duration / robot.period)):
        _, dq, effort = robot.tick()
    assert np.abs(dq).max() < 1e-6
    return robot.plant.q.copy(), effort


def weigh(q, model=MODEL):
    return Dynamics.from_model(model).inverse_dynamics(q, NUMBERS, NUMBERS)


@pytest.mark.slow
def test_at_rest_the_drives_carry_weight_offset_and_environment():
    actuators, reference = DAMPED, np.array([0.3, 0.4, -0.2])
    arm = robot(reference, actuators)
    q, effort = rest(arm)
    np.testing.assert_allclose(effort, weigh(q) + actuators.offset, atol=1e-4)
    np.testing.assert_allclose(effort, actuators.kp * (reference - q), atol=1e-4)
    external = np.array([1.0, -2.0, 0.5])
    drives, q, dq = CommandedDrives(actuators, LIMBS, reference), reference.copy(), np.zeros(3)
    for _ in range(3000):
        effort = drives.advance(q, dq, reference, 2e-3, external)
    np.testing.assert_allclose(effort + external, weigh(q) + actuators.offset, atol=1e-4)


@pytest.mark.slow
def test_a_payload_is_carried_from_the_time_it_is_taken_up():
    actuators, reference = DAMPED, np.array([0.3, 0.4, -0.2])
    arm = robot(reference, actuators)
    rest(arm)
    heavier = replace(MODEL, inertial_parameters=1.5 * MODEL.inertial_parameters)
    arm.replace_dynamics(make_nominal_dynamics(heavier, NUMBERS, NUMBERS, 0.0))
    q, effort = rest(arm)
    np.testing.assert_allclose(effort, weigh(q, heavier) + actuators.offset, atol=1e-4)


def test_commanded_positions_are_held_and_wrong_ones_refused():
    arm = robot(np.zeros(3), TRUTH)
    with pytest.raises(InputError, match="the position command has 2 values, expected 3: shoulder, elbow, wrist"):
        arm.command_position(np.zeros(2))
    with pytest.raises(InputError, match="the position command of joint elbow is nan"):
        arm.command_position(np.array([0.0, np.nan, 0.0]))
    arm.command_position(np.array([0.2, 0.3, 0.4]))
    q, _ = rest(arm, 3.0)
    assert np.abs(q - [0.2, 0.3, 0.4]).max() < 0.2
    assert np.abs(q).min() > 0.05


def test_a_simulation_that_diverges_keeps_the_state_before():
    wild = replace(TRUTH, kp=np.full(3, 1e9), kd=np.full(3, 0.0))
    drives, q, dq = CommandedDrives(wild, LIMBS, NUMBERS), np.full(3, 0.1), np.zeros(3)
    with pytest.raises(InputError, match="diverged"):
        drives.advance(q, dq, np.full(3, 1e6), 1.0)
    np.testing.assert_array_equal(q, 0.1)
    np.testing.assert_array_equal(dq, 0.0)
