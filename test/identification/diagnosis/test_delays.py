# SPDX-License-Identifier: Apache-2.0
"""Delay and drift of efforts: estimated within their uncertainty, not confused with hysteresis, and removed."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.observations import corrected, samples_of
from support.robots import joint, urdf
from support.simulated import Simulated, at_chunk_size, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import Excerpt, ExcludedSpan, Exclusions, excluded_mask
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.identification.diagnosis.delays import (
    DELAY_STEP_S,
    SMALLEST_DELAY_S,
    EffortDelay,
    estimate_delay,
)
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.stages.correction import realign
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

DATA = os.environ.get("ROBOT_DYN_ID_DATA")

ROBOT = Simulated()
UPRIGHT = urdf(
    joint("base_turn", "base", "l1", rpy="0 0 0", xyz="0 0 0.3"),
    joint("shoulder", "l1", "l2", axis="0 1 0", rpy="0 0 0", xyz="0 0 0.2"),
    joint("elbow", "l2", "l3", axis="0 1 0", rpy="0 0 0", xyz="0.4 0 0"),
    links=3,
)


@pytest.fixture(scope="module")
def exact():
    return ROBOT.record(duration=40.0, rate=200.0, noise=0.02)


def late(recording, delay, drift=0.0):
    """The recording with efforts that are late by delay + drift (t - middle)."""
    t = recording.samples.t
    times = t - delay - drift * (t - t.mean())
    return changed(recording, tau=CubicSpline(t, recording.samples.tau)(np.clip(times, t[0], t[-1])))


def trials_of(recording):
    return FilteredTrials.from_recordings([recording], ROBOT.joints, {}, SignalSettings())


def delay_of(recording):
    return estimate_delay(MotionSamples.from_trials(trials_of(recording)), ROBOT.model)


@pytest.mark.parametrize("milliseconds", [-25, 25])
def test_a_delay_is_found_with_its_size(exact, milliseconds):
    found = delay_of(late(exact, 1e-3 * milliseconds))
    assert found.significant and not found.drifts
    assert abs(found.delay - 1e-3 * milliseconds) < 3e-3


def test_no_delay_is_found_where_there_is_none(exact):
    assert not delay_of(exact).significant
    assert not delay_of(late(exact, 2e-3)).significant


def test_hysteresis_is_not_a_delay(exact):
    """Presliding friction of 20 mrad lags behind the motion; no rigid-body torque is late."""
    q = exact.samples.q
    state, states = np.zeros(3), np.zeros_like(q)
    for row in range(1, len(q)):
        step = q[row] - q[row - 1]
        state = np.sign(step) - (np.sign(step) - state) * np.exp(-np.abs(step) / 0.02)
        states[row] = state
    assert not delay_of(changed(exact, tau=exact.samples.tau + 3.0 * states)).significant


@pytest.mark.parametrize("lag", [0.1, 0.3])
def test_friction_alone_that_is_late_is_no_delay(exact, lag):
    """Moved efforts fit the friction columns much better, but no rigid-body torque is late."""
    t, dq = exact.samples.t, exact.samples.dq
    late_rate = np.stack([np.interp(t - lag, t, of_joint) for of_joint in dq.T], axis=1)
    assert not delay_of(changed(exact, tau=exact.samples.tau + 100.0 * np.tanh(late_rate / 0.02))).significant


def test_a_long_delay_is_found_under_large_friction(exact):
    friction = 10.0 * np.tanh(exact.samples.dq / 0.02)
    found = delay_of(late(changed(exact, tau=exact.samples.tau + friction), 0.6))
    assert found.significant and abs(found.delay - 0.6) < 0.03


def test_a_drift_is_found_and_removed(exact):
    drifting = late(exact, 0.0, 2e-3)
    realigned = realign(trials_of(drifting), ROBOT.model)
    trials, findings = realigned.trials, realigned.findings
    assert "clock_drift" in {one.code for one in findings}
    left = estimate_delay(MotionSamples.from_trials(trials), ROBOT.model)
    assert abs(left.drift) < 2e-4 and abs(left.delay) < 3e-3


@pytest.mark.slow
def test_a_long_delay_is_removed_in_steps(exact):
    realigned = realign(trials_of(late(exact, 0.08)), ROBOT.model)
    trials, (finding,) = realigned.trials, realigned.findings
    assert [row.step for row in realigned.tried if row.chosen] == ["delay"]
    assert finding.code == "effort_delayed"
    left = estimate_delay(MotionSamples.from_trials(trials), ROBOT.model)
    assert abs(left.delay) < SMALLEST_DELAY_S


@pytest.mark.parametrize(("delay", "drift"), [(1.8, 0.0), (-1.2, 0.0), (0.4, 0.02)])
def test_delays_of_more_than_the_time_of_the_motion_are_found(exact, delay, drift):
    found = delay_of(late(exact, delay, drift))
    assert found.significant and abs(found.delay - delay) < 0.03 and abs(found.drift - drift) < 3e-3
    assert found.drifts == (drift > 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("period", [2.0, 2.03, 2.5])
def test_delays_of_periodic_motion_are_the_shortest_that_explain_it(period):
    periodic = ROBOT.record(duration=30.0, rate=200.0, noise=0.02, period=period)
    for delay, expected in ((0.1, 0.1), (0.5, 0.5), (-0.5, -0.5), (0.7 * period, -0.3 * period)):
        found = delay_of(late(periodic, delay))
        assert found.significant and abs(found.delay - expected) < DELAY_STEP_S / 2 and not found.drifts


def test_a_delay_of_seconds_of_slow_periodic_motion_is_found():
    found = delay_of(late(ROBOT.record(duration=40.0, rate=200.0, noise=0.02, period=10.0), 2.97))
    assert found.significant and abs(found.delay - 2.97) < 0.03


def test_a_collision_is_no_delay():
    """Half a second of large efforts: efforts at other times fit it better, and everything else worse."""
    recording = ROBOT.record(seed=3, duration=30.0, noise=0.05)
    tau = recording.samples.tau.copy()
    tau[1500:1550, 1] += 300.0
    assert not delay_of(changed(recording, tau=tau)).significant


def test_a_delay_of_an_upright_arm_is_found():
    """Without weight on the first joint: its rigid-body torque is not mixed with what friction explains."""
    robot = Simulated(UPRIGHT)
    found = late(robot.record(duration=30.0, rate=200.0, noise=0.02), 0.03)
    trials = FilteredTrials.from_recordings([found], robot.joints, {}, SignalSettings())
    delay = estimate_delay(MotionSamples.from_trials(trials), robot.model)
    assert delay.significant and abs(delay.delay - 0.03) < 4e-3


def test_the_effort_of_a_single_joint_may_be_late(exact):
    tau = exact.samples.tau.copy()
    tau[:, 1] = late(exact, 0.03).samples.tau[:, 1]
    realigned = realign(trials_of(changed(exact, tau=tau)), ROBOT.model)
    (finding,) = realigned.findings
    assert (finding.code, finding.joints) == ("effort_delayed", (ROBOT.joints[1],))
    moved = samples_of(realigned.trials.recordings[0]).tau
    inside = slice(100, -100)
    scale = np.abs(exact.samples.tau).max(axis=0)
    assert np.abs(tau - exact.samples.tau)[inside, 1].max() > 0.1 * scale[1]
    np.testing.assert_allclose(moved[inside, 1], exact.samples.tau[inside, 1], atol=0.03 * scale[1])
    np.testing.assert_allclose(moved[inside, ::2], exact.samples.tau[inside, ::2], atol=0.01 * scale.max())


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
@pytest.mark.parametrize(("number", "delay"), [(None, 0.0), (1, 0.05), (2, 0.1)])
def test_a_late_effort_of_a_measured_arm_is_judged_by_the_errors_of_its_joint(number, delay):
    """Most of the error of the whole arm is that of this joint, in some blocks of time more than in others."""
    folder = Path(DATA) / "panda_gaz2019"
    with np.load(folder / "train_0_14s.npz") as stored:
        t, q, dq, tau, joints = (stored[key] for key in ("t", "q", "dq", "tau", "joint_names"))
    names = tuple(joints.tolist())
    if number is not None:
        tau[:, number] = np.interp(t - delay, t, tau[:, number])
    trials = FilteredTrials.from_recordings(
        [ArrayRecording("arm", names, Chunk(t, q, dq, tau))], names, {}, SignalSettings()
    )
    realigned = realign(trials, RobotModel.from_file(folder / "model.urdf", names))
    found = [(one.code, one.joints) for one in realigned.findings]
    assert found == ([] if number is None else [("effort_delayed", (names[number],))])


def constant(delay):
    return EffortDelay(delay, 1e-4, 0.0, 1e-6, 0.0, 1.0, 1.0, 20.0)


@pytest.mark.parametrize("size", [7, 500, 100_000])
def test_realigned_efforts_do_not_depend_on_the_chunks(exact, size):
    moved = corrected(at_chunk_size(exact, size), constant(0.05))
    found = Chunk.join(list(moved.chunks(ROBOT.joints)))
    whole = samples_of(corrected(at_chunk_size(exact, 10**6), constant(0.05)))
    np.testing.assert_array_equal(found.t, exact.samples.t)
    np.testing.assert_array_equal(found.q, exact.samples.q)
    inside = slice(50, -50)
    scale = np.abs(exact.samples.tau).max()
    np.testing.assert_allclose(found.tau[inside], whole.tau[inside], atol=0.02 * scale)
    np.testing.assert_allclose(found.tau[inside], np.roll(exact.samples.tau, -10, axis=0)[inside], atol=0.02 * scale)


def test_excluded_efforts_move_with_the_efforts(exact):
    t = exact.samples.t
    view = corrected(exact, Exclusions((ExcludedSpan("elbow", 2.0, 3.0, "effort_saturated"),)))
    for delay in (0.2, -0.05):
        moved = view.corrected(constant(delay), constant(0.01))
        mask = excluded_mask(moved, ROBOT.joints, t, 1e-9)
        np.testing.assert_allclose(t[mask[1]][[0, -1]], [1.99 - delay, 2.99 - delay], atol=1e-6)


def test_an_excerpt_stays_one(exact):
    part = corrected(exact, Excerpt(0.0, 10.0, ((2.0, 3.0),)))
    moved = part.corrected(constant(0.01))
    assert moved.corrections == (constant(0.01), part.excerpt)
    assert moved.seams == part.seams and moved.source == part.source


def test_missing_efforts_stay_missing(exact):
    tau = exact.samples.tau.copy()
    tau[1000:1100] = np.nan
    moved = corrected(changed(exact, tau=tau), constant(0.05))
    found = Chunk.join(list(moved.chunks(ROBOT.joints))).tau
    assert np.isnan(found[1000:1080]).all() and np.isfinite(found[1200:]).all()
