# SPDX-License-Identifier: Apache-2.0
"""The simulated robot and its sensors: determinism, tracking, effort commands, noise, delay, pace."""

import numpy as np
import pinocchio
import pytest
from support.robots import panda_arm

from robot_dyn_id.data.trajectory_points import Setpoint, TrajectoryPoints
from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.simulation.controllers import ComputedTorque, Gains, compute_wanted_acceleration
from robot_dyn_id.simulation.plant import Plant, make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import (
    EFFORT,
    Actuation,
    RealTimePacer,
    SensorStream,
    SimulatedRobot,
    simulate_motion,
)

START = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.7])
ZERO = np.zeros(7)


def arm(viscous=1.0, coulomb=0.5):
    return make_nominal_dynamics(panda_arm(), np.full(7, viscous), np.full(7, coulomb), 0.01)


def robot(**options):
    return SimulatedRobot(arm(), START, 1e-3, Actuation(**options))


def target(offset=0.5, duration=1.0):
    return TrajectoryPoints(np.array([duration]), START[None, :] + offset, np.zeros((1, 7)), np.zeros((1, 7)))


def test_what_follows_a_motion_has_its_states_and_the_torques_that_move_it():
    motion = draw_random_fourier(panda_arm(), 1, period=2.0)
    q, _, ddq = (x.T for x in motion.evaluate(np.arange(2000) * 1e-3)[:3])
    true = simulate_motion(SimulatedRobot(arm(), q[0], 1e-3, Actuation(limit_effort=False)), motion)
    assert len(true) == 2000 and np.allclose(true.t, np.arange(2000) * 1e-3)
    assert np.abs(true.q - q).max() < 1e-3
    expected = arm().inverse_dynamics(true.q, true.dq, ddq)
    assert np.linalg.norm(true.tau - expected) < 0.02 * np.linalg.norm(expected)
    with pytest.raises(InputError, match="away from where joint number 1 is"):
        simulate_motion(SimulatedRobot(arm(), q[0] + 0.5, 1e-3), motion)


def test_the_position_servo_tracks_and_arrives():
    made, worst = robot(), 0.0
    made.tracker.follow(target(), 0.0, 0.0)
    for _ in range(1500):
        wanted = made.tracker.setpoint(made.time).q
        worst = max(worst, np.abs(made.tick()[0] - wanted).max())
    assert worst < 1e-3
    assert np.abs(made.plant.q - START - 0.5).max() < 1e-4


def test_measured_efforts_are_those_of_the_motion():
    """The state's torque by inverse dynamics, with the acceleration by central differences."""
    made = robot()
    made.tracker.follow(target(), 0.0, 0.0)
    q, dq, tau = np.array([made.tick() for _ in range(900)]).transpose(1, 0, 2)
    ddq = (dq[2:] - dq[:-2]) / 2e-3
    expected = arm().inverse_dynamics(q[1:-1], dq[1:-1], ddq)
    sliding = slice(150, 800)  # while Coulomb friction is saturated
    assert np.abs(dq[sliding]).min() > 0.04
    assert np.abs(tau[1:-1] - expected)[sliding].max() < 2e-3 * np.abs(tau).max()


@pytest.mark.parametrize("link", ["panda_link4", "panda_link8"])
def test_a_wrench_acts_at_the_origin_of_a_link_and_along_its_axes_until_it_ends(link):
    """Joint torque against Pinocchio's Jacobian of the frame, and the acceleration that it causes."""
    model, wrench = panda_arm(), np.array([5.0, -3.0, 8.0, 0.3, -0.2, 0.1])
    dynamics = arm(0.0, 0.0)
    made = SimulatedRobot(dynamics, START, 1e-3, Actuation(EFFORT))
    truth = pinocchio.buildModelFromXML(model.urdf)
    truth = pinocchio.buildReducedModel(truth, list(range(8, truth.njoints)), pinocchio.neutral(truth))
    frame = truth.getFrameId(link)
    jacobian = pinocchio.computeFrameJacobian(truth, truth.createData(), START, frame, pinocchio.ReferenceFrame.LOCAL)
    gravity = dynamics.gravity(START)
    made.command_effort(gravity)
    made.apply_wrench(find_placement_of(model, link), wrench, 2.5e-3)
    np.testing.assert_allclose(made.external_torque, jacobian.T @ wrench, atol=1e-12)
    _, _, effort = made.tick()
    np.testing.assert_allclose(effort, gravity, err_msg="the effort is that of the motors")
    expected = dynamics.forward_dynamics(START, ZERO, gravity + jacobian.T @ wrench)
    np.testing.assert_allclose(made.plant.dq, 1e-3 * expected, rtol=0.02, atol=1e-4)
    made.tick()
    assert made.external_torque is not None
    made.tick()
    assert made.external_torque is None, "after 2.5 ms"
    made.apply_wrench(find_placement_of(model, link), wrench, 1.0)
    made.apply_wrench(find_placement_of(model, link), 0.0 * wrench, 1.0)
    assert not made.external_torque.any(), "the next wrench replaces it"
    for wrong in (np.nan, 1e300):
        with pytest.raises(InputError, match="not finite, or above"):
            made.apply_wrench(find_placement_of(model, link), wrong * wrench, 1.0)


def test_a_seed_is_a_run():
    def run(seed):
        made, sensors = robot(), SensorStream(Sensors(np.full(7, 0.1), 1e-4, 1e-3, 0.05), 1000.0, 0.0, seed)
        made.tracker.follow(target(), 0.0, 0.0)
        return np.array([sensors.measure(*made.tick()) for _ in range(1500)])

    assert np.array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_effort_commands_are_followed_until_they_are_old():
    made = robot(mode=EFFORT, effort_timeout=0.02)
    assert not made.tick()[2].any()
    command = arm(0.0, 0.0).gravity(START)
    made.command_effort(command)
    applied = np.array([made.tick()[2] for _ in range(40)])
    assert np.allclose(applied[5:15], command)
    assert not applied[25:].any()


def test_gravity_compensation_holds_the_arm():
    dynamics = arm(0.0, 0.0)
    made = SimulatedRobot(dynamics, START, 1e-3, Actuation(EFFORT))
    for _ in range(1000):
        made.command_effort(dynamics.gravity(made.plant.q))
        made.tick()
    assert np.abs(made.plant.q - START).max() < 1e-6


@pytest.mark.parametrize(
    ("command", "words"),
    [(np.zeros(6), "has 6 values, expected 7"), (np.array([0, np.nan, 0, 0, 0, 0, 0]), "panda_joint2 is nan")],
)
def test_wrong_effort_commands_are_refused(command, words):
    with pytest.raises(InputError, match=words):
        robot(mode=EFFORT).command_effort(command)


def test_computed_torque_makes_the_error_a_linear_oscillator():
    """Without friction the errors obey e'' + Kd e' + Kp e = 0, critically damped."""
    dynamics, gains, w = arm(0.0, 0.0), Gains.from_bandwidth(10.0), 10.0
    plant = Plant(dynamics, START)
    wanted, law = Setpoint(START - 0.2, ZERO, ZERO), ComputedTorque(dynamics, gains)
    for k in range(400):
        t = k * 1e-3
        assert np.allclose(plant.q - wanted.q, 0.2 * (1 + w * t) * np.exp(-w * t), atol=2e-3)
        plant.advance(law.effort(wanted, plant.q, plant.dq, 1e-3).wanted, 1e-3)


def test_computed_torque_is_inverse_dynamics_on_the_trajectory():
    dynamics, rng = arm(), np.random.default_rng(1)
    setpoint = Setpoint(*rng.normal(size=(3, 7)))
    law = ComputedTorque(dynamics, Gains.from_bandwidth(10.0))
    torque = law.effort(setpoint, setpoint.q, setpoint.dq, 1e-3).wanted
    assert np.allclose(torque, dynamics.inverse_dynamics(*setpoint))
    assert np.allclose(compute_wanted_acceleration(setpoint, setpoint.q, setpoint.dq, Gains(1.0, 1.0)), setpoint.ddq)


def test_motors_at_their_limits_do_not_wind_up():
    """A step that no motor can follow: it arrives all the same, without a long overshoot."""
    made = robot()
    jump = TrajectoryPoints(np.array([0.11]), START[None, :] + [[0.6, 0, 0, 0, 0, 0, 0]])
    made.tracker.follow(jump, 0.0, 0.0)
    way = np.array([made.tick()[0][0] for _ in range(2000)]) - START[0]
    assert way.max() < 1.0
    assert abs(way[-1] - 0.6) < 1e-3


# --- sensors


def shown(sensors, count=6000, delay=0.0, rate=1000.0, states=None):
    stream = SensorStream(sensors, rate, delay, 3)
    states = np.zeros((count, 3, 7)) if states is None else states
    return np.array([stream.measure(*state) for state in states])


def test_noise_has_its_size_in_every_channel():
    noise = shown(Sensors(np.linspace(0.1, 0.7, 7), 1e-4, 1e-3))
    assert np.allclose(noise[:, 0].std(axis=0), 1e-4, rtol=0.05)
    assert np.allclose(noise[:, 1].std(axis=0), 1e-3, rtol=0.05)
    assert np.allclose(noise[:, 2].std(axis=0), np.linspace(0.1, 0.7, 7), rtol=0.05)


def test_colored_noise_continues_over_its_blocks():
    noise = shown(Sensors(np.ones(7), 0.0, 0.0, 0.05), 100_000)[:, 2]
    assert noise.std() == pytest.approx(1.0, rel=0.05)
    jumps = np.abs(np.diff(noise, axis=0))
    at_blocks = jumps[1023::1024].mean()
    assert at_blocks == pytest.approx(jumps.mean(), rel=0.25)


def test_resolution_and_delay():
    states = np.cumsum(np.full((50, 3, 7), 0.0013), axis=0)
    late = shown(Sensors(ZERO, 0.0, 0.0, resolution=0.01), delay=0.005, states=states)
    assert np.allclose(late[5:, 0], 0.01 * np.round(states[:-5, 0] / 0.01))
    assert np.array_equal(late[5:, 2], states[:-5, 2])


def test_residuals_cannot_be_streamed():
    with pytest.raises(UsageError, match="no noise from recorded residuals"):
        SensorStream(Sensors(np.ones(7), residuals=np.ones((7, 10))), 1000.0, 0.0, 0)


# --- pace


def test_every_timer_does_its_own_tick_in_spite_of_jitter():
    pace, rng = RealTimePacer(1_000_000), np.random.default_rng(0)
    fired = 5_000_300_000 + 1_000_000 * np.arange(1000) + rng.integers(-300_000, 300_000, 1000)
    fired[0] = 5_000_300_000
    assert [pace.due(int(now)) for now in fired] == [1] * 1000
    assert (pace.start, pace.lost) == (5_000_300_000, 0)


def test_what_was_missed_is_made_up_for_unless_it_is_long():
    pace = RealTimePacer(1_000_000)
    assert pace.due(0) == 1
    assert pace.due(20_000_000) == 20
    assert pace.due(1_020_000_000) == 500
    assert (pace.start, pace.lost) == (500_000_000, 500_000_000)
    assert pace.due(1_021_000_000) == 1


def test_a_robot_that_follows_trajectories_makes_up_for_more_piece_by_piece():
    pace = RealTimePacer(1_000_000, patience=RealTimePacer.PATIENCE)
    pace.due(0)
    assert [pace.due(1_900_000_000 + k) for k in range(5)] == [500, 500, 500, 400, 0]
    assert (pace.start, pace.lost) == (0, 0)
    assert [pace.due(4_900_000_000 + k) for k in range(5)] == [500, 500, 500, 500, 0]
    assert (pace.start, pace.lost) == (1_000_000_000, 1_000_000_000)


def test_ticks_that_are_the_time_of_others_do_not_leap():
    pace = RealTimePacer(1_000_000, patience=RealTimePacer.IMPATIENCE)
    assert pace.due(0) == 1
    assert pace.due(400_000_000) == 20
    assert pace.due(401_000_000) == 1


def test_faster_than_the_clock():
    pace = RealTimePacer(1_000_000, factor=10.0)
    pace.due(0)
    assert sum(pace.due(k * 1_000_000) for k in range(1, 101)) == 1000


def moved_in_a_second(robot, effort):
    """Largest displacement of a joint in a second of effort commands, which a function of the state computes."""
    for _ in range(1000):
        robot.command_effort(effort(robot.plant.q, robot.plant.dq))
        robot.tick()
    return np.abs(robot.plant.q - START).max()


@pytest.mark.slow
@pytest.mark.parametrize("parts", [("gravity",), ("gravity", "coriolis"), ("gravity", "friction")])
def test_a_driver_that_adds_gravity_holds_the_arm_and_needs_no_second_gravity_torque(parts):
    def made():
        return robot(mode=EFFORT, robot_compensates=parts)

    assert moved_in_a_second(made(), lambda q, dq: np.zeros(7)) < 1e-3
    driver, model = DriverCompensation(arm(), parts), arm()
    assert moved_in_a_second(made(), lambda q, dq: model.gravity(q) - driver.torque(q, np.zeros(7))) < 1e-3
    twice, lifted = made(), model.gravity(START)
    assert moved_in_a_second(twice, lambda q, dq: model.gravity(q)) > 0.5
    loaded = np.argmax(np.abs(lifted))
    assert (twice.plant.q - START)[loaded] * lifted[loaded] > 0.0  # driven upward, against its weight


@pytest.mark.slow
def test_computed_torque_follows_whatever_the_driver_adds():
    dynamics, wanted = arm(viscous=0.02, coulomb=0.0), Setpoint(START + 0.1, ZERO, ZERO)
    for parts in ((), ("gravity",), ("gravity", "friction", "coriolis")):
        made = SimulatedRobot(dynamics, START, 1e-3, Actuation(mode=EFFORT, robot_compensates=parts))
        law = ComputedTorque(dynamics, Gains.from_bandwidth(15.0), DriverCompensation(dynamics, parts))
        for _ in range(1500):
            made.command_effort(law.effort(wanted, made.plant.q, made.plant.dq, 1e-3).wanted)
            made.tick()
        assert np.abs(made.plant.q - START - 0.1).max() < 5e-3, parts
