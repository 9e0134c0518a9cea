# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots with 6-axis sensors in their hinges: what cannot be used is refused."""

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.chain import find_centroidal_frames, find_joint_frames, simulate_chain
from robot_dyn_id.loads.chain_recording import RecordedSensor, identify_recorded_chain
from robot_dyn_id.loads.payload import transform_parameters
from robot_dyn_id.simulation.base_sensor import BaseSensor, WrenchErrors
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_driver import SimulatedDriver
from robot_dyn_id.simulation.simulated_robot import Actuation, SensorStream, SimulatedRobot, follow

ROBOT = Simulated()
BODIES = [*zip(find_centroidal_frames(ROBOT.model), ROBOT.model.inertial_parameters.reshape(-1, 10), strict=True)]
RECORDING = ROBOT.record(seed=3, rate=100.0, duration=10.0)


def test_a_robot_without_sensors_is_refused():
    with pytest.raises(InputError, match="no hinge has a sensor"):
        identify_recorded_chain(RECORDING, [], ROBOT.model, Settings())


def test_wrenches_of_another_time_are_refused():
    readings = np.random.default_rng(0).normal(size=(6, len(RECORDING.samples.t)))
    later = RecordedSensor.in_hinge(ROBOT.model, 0, WrenchRecording("later", RECORDING.samples.t + 1e3, readings))
    with pytest.raises(InputError, match="no samples of the sensors lie within the motion"):
        identify_recorded_chain(RECORDING, [later], ROBOT.model, Settings())


def test_a_joint_at_rest_excites_nothing_by_its_noise():
    """Without the wrist's motion only sums of its inertia and the forearm's are identifiable, whatever its encoder shows."""
    still = ROBOT.record(seed=3, rate=100.0, duration=20.0, velocity=0.0, still=(2,))
    rng, samples = np.random.default_rng(0), still.samples
    noisy = changed(still, q=lambda q: q + 1e-4 * rng.normal(size=q.shape))
    motion = draw_random_fourier(ROBOT.model, 3)
    motion.coefficients[2] = 0.0
    first = simulate_chain(ROBOT.model, Motion(*motion.evaluate(samples.t)[:3]), find_joint_frames(ROBOT.model))[0]
    own = np.concatenate([np.einsum("jin,jn->in", first.rotation, part) for part in np.split(first.wrench, 2)])
    readings = WrenchRecording("base", samples.t, own + 1e-3 * rng.normal(size=own.shape))
    sensor = RecordedSensor.in_hinge(ROBOT.model, 0, readings)
    found = [identify_recorded_chain(one, [sensor], ROBOT.model, Settings(), True).estimate for one in (still, noisy)]
    assert found[0].rank == found[1].rank < 12 and found[0].not_excited == found[1].not_excited
    assert {"Ixx2", "Ixx3"} <= set(found[1].not_excited)


@pytest.mark.slow
def test_long_rest_does_not_outweigh_the_motion():
    """Ten minutes at one pose, whose encoders are off by 1e-3 rad, after 20 s of motion."""
    recording = ROBOT.record(seed=3, rate=100.0, duration=20.0, velocity=0.0)
    t, motion = recording.samples.t, draw_random_fourier(ROBOT.model, 3)
    states = np.array(motion.evaluate(t)[:3])
    end = np.repeat(np.stack([states[0, :, -1], np.zeros(3), np.zeros(3)])[:, :, None], 60000, axis=2)
    whole, stamps = np.concatenate([states, end], axis=2), np.arange(len(t) + 60000) / 100.0
    first = simulate_chain(ROBOT.model, Motion(*whole), find_joint_frames(ROBOT.model))[0]
    own = np.concatenate([np.einsum("jin,jn->in", first.rotation, part) for part in np.split(first.wrench, 2)])
    rng = np.random.default_rng(0)
    readings = WrenchRecording("base", stamps, own + 1e-3 * rng.normal(size=own.shape))
    q = whole[0] + 1e-6 * rng.normal(size=whole[0].shape)
    q[:, len(t) :] += 1e-3
    long = ArrayRecording("long", ROBOT.joints, Chunk(stamps, q.T, None, None))
    sensor = RecordedSensor.in_hinge(ROBOT.model, 0, readings)
    found = identify_recorded_chain(long, [sensor], ROBOT.model, Settings(), True)
    assert [one.code for one in found.findings] == ["rest_left_out"]
    truth = [np.linalg.solve(transform_parameters(frame), one)[[0, 4, 6, 9]] for frame, one in BODIES]
    shown = np.isfinite(found.estimate.values)
    errors = (found.estimate.values - truth)[shown] / found.estimate.standard_deviations[shown]
    assert len(errors) >= 9 and np.sqrt(np.mean(np.square(errors))) < 2.0


def test_failed_reads_of_the_encoders_change_no_body():
    recording = ROBOT.record(seed=3, rate=100.0, duration=20.0, velocity=0.0)
    t = recording.samples.t
    motion = Motion(*draw_random_fourier(ROBOT.model, 3).evaluate(t)[:3])
    first = simulate_chain(ROBOT.model, motion, find_joint_frames(ROBOT.model))[0]
    own = np.concatenate([np.einsum("jin,jn->in", first.rotation, part) for part in np.split(first.wrench, 2)])
    noise = 1e-3 * np.random.default_rng(0).normal(size=own.shape)
    sensor = RecordedSensor.in_hinge(ROBOT.model, 0, WrenchRecording("base", t, own + noise))
    failed = motion.q.T.copy()
    failed[[300, 901, 1502]] = -np.pi
    sound, damaged = (
        identify_recorded_chain(
            ArrayRecording("arm", ROBOT.joints, Chunk(t, q, None, None)), [sensor], ROBOT.model, Settings(), True
        )
        for q in (motion.q.T, failed)
    )
    assert [one.code for one in damaged.findings] == ["encoder_spikes"]
    shown = np.isfinite(sound.estimate.values)
    errors = (damaged.estimate.values - sound.estimate.values)[shown] / sound.estimate.standard_deviations[shown]
    assert shown.sum() >= 9 and np.abs(errors).max() < 1.0


def test_gaps_of_the_sensor_are_not_interpolated():
    """A second without readings, twice, in which the arm moves on."""
    exact, t = ROBOT.record(seed=3, rate=100.0, duration=30.0, velocity=0.0), np.arange(3000) / 100.0
    motion = Motion(*draw_random_fourier(ROBOT.model, 3).evaluate(t)[:3])
    first, rng = simulate_chain(ROBOT.model, motion, find_joint_frames(ROBOT.model))[0], np.random.default_rng(0)
    own = np.concatenate([np.einsum("jin,jn->in", first.rotation, part) for part in np.split(first.wrench, 2)])
    own += 1e-3 * rng.normal(size=own.shape)
    there = ~(((t > 7.0) & (t < 8.0)) | ((t > 15.0) & (t < 16.0)))
    sensor = RecordedSensor.in_hinge(ROBOT.model, 0, WrenchRecording("base", t[there], own[:, there]))
    assert not sensor.covers(np.array([6.95, 7.5, 8.05]), 0.1).any()
    assert sensor.covers(np.array([0.0, 6.8, 8.2, t[-1]]), 0.1).all()
    found = identify_recorded_chain(exact, [sensor], ROBOT.model, Settings(), True).estimate
    truth = [np.linalg.solve(transform_parameters(frame), one)[[0, 4, 6, 9]] for frame, one in BODIES]
    shown = np.isfinite(found.values)
    assert np.sqrt(np.mean(np.square(((found.values - truth) / found.standard_deviations)[shown]))) < 2.0


@pytest.mark.slow
def test_the_simulated_sensor_under_the_base_identifies_the_simulated_arm():
    """An arm with friction under its position controller, 200 readings per second, drives and efforts unknown."""
    model, noise = ROBOT.model, WrenchErrors(0.01, 0.002)
    motion = draw_random_fourier(model, 3)
    dynamics = make_nominal_dynamics(model, np.ones(3), np.ones(3), 0.02)
    robot = SimulatedRobot(dynamics, motion.evaluate(np.zeros(1))[0][:, 0], 1e-3, Actuation(limit_effort=False))
    quiet = SensorStream(Sensors(np.zeros(3), 0.0, 0.0), 1000.0, 0.0, 0)
    driver = SimulatedDriver(robot, Drives(np.ones(3), np.zeros(3)), quiet, base=BaseSensor(robot, noise))
    follow(robot, motion)
    q, readings = [], []
    for _ in range(1000 * int(motion.duration)):
        q.append(driver.tick()[0])
        readings.append(driver.measure_wrench()[[3, 4, 5, 0, 1, 2]])
    t, rng = np.arange(len(q))[::5] / 1000.0, np.random.default_rng(0)
    angles = np.array(q)[::5] + 1e-5 * rng.normal(size=(len(t), 3))
    recording = ArrayRecording("simulated", ROBOT.joints, Chunk(t, angles, None, None))
    wrench = WrenchRecording("base_wrench", t, np.array(readings)[::5].T, "base")
    sensor = RecordedSensor.in_link_frame(model, "base", wrench)
    found = identify_recorded_chain(recording, [sensor], model, Settings(), True).estimate
    truth = [np.linalg.solve(transform_parameters(frame), one)[[0, 4, 6, 9]] for frame, one in BODIES]
    shown = np.isfinite(found.values)
    errors = ((found.values - truth) / found.standard_deviations)[shown]
    assert len(errors) == 12 and np.sqrt(np.mean(np.square(errors))) < 2.0
