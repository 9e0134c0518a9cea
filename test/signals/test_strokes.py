# SPDX-License-Identifier: Apache-2.0
"""Logistic strokes in recordings: their fit, and velocities and accelerations as functions of the angle."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import joint, urdf

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.strokes import RecordedStrokes, report_strokes
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

MODEL = RobotModel.from_urdf(
    urdf(joint("one", "base", "l1", axis="0 1 0"), joint("two", "l1", "l2", axis="0 1 0"), links=2)
)
MOTION = Logistic(np.array([0.3, -0.2]), 8.0, 2, (1, 0), np.array([1.5, 1.0]), np.array([6.0, 7.0]))


def recorded(motion=MOTION, noise=1e-4, seed=0):
    sensors = Sensors(np.full(2, 0.01), noise, None)
    t = sample_times(motion.duration, 200.0)
    return simulate_recording(Regressor(MODEL), MODEL.inertial_parameters, motion, t, sensors, seed)


def test_every_stroke_is_found_with_its_shape():
    found = RecordedStrokes.from_recordings([recorded()], MODEL.joint_names).found
    assert [stroke.joint for stroke in found] == [0] * 4 + [1] * 4
    assert [stroke.direction for stroke in found] == [1.0, -1.0] * 4
    for stroke in found:
        span, steepness, center = (values[stroke.joint] for values in (MOTION.span, MOTION.steepness, MOTION.center))
        assert stroke.span == pytest.approx(span, rel=2e-3)
        assert stroke.steepness == pytest.approx(steepness, rel=5e-3)
        assert stroke.low + span / 2.0 == pytest.approx(center, abs=2e-3)


def test_rates_from_the_angle_have_less_noise_than_derivatives():
    """On the strokes, at the same filters: the noise of the angle is not differentiated."""
    recording = recorded(noise=1e-3)
    strokes = RecordedStrokes.from_recordings([recording], MODEL.joint_names)
    errors = {}
    for velocity in ("derivative", "logistic"):
        signals = SignalSettings(10.0, velocity=velocity, motion_cutoff=10.0)
        trials = FilteredTrials.from_recordings([recording], MODEL.joint_names, {}, signals)
        assert trials.plan.velocity_source == velocity
        pairs = [[], []]
        for window in trials:
            on_stroke = strokes.covered(0, window.t, 2) & window.own
            exact = MOTION.evaluate(window.t)
            for pair, ours, true in zip(pairs, (window.motion.dq, window.motion.ddq), exact[1:3], strict=True):
                pair.append(np.array([ours[on_stroke] - true[on_stroke], true[on_stroke]]))
        stacked = [np.linalg.norm(np.concatenate(pair, axis=1), axis=1) for pair in pairs]
        errors[velocity] = [float(wrong / size) for wrong, size in stacked]
    assert errors["logistic"][0] < 0.03 and errors["logistic"][1] < 0.05, errors
    assert errors["logistic"][1] < 0.2 * errors["derivative"][1], errors


def test_strokes_are_those_of_the_recordings_that_are_filtered():
    signals = SignalSettings(10.0, velocity="logistic")
    trials = FilteredTrials.from_recordings([recorded()], MODEL.joint_names, {}, signals)
    moved = replace(MOTION, center=MOTION.center + 0.4)
    others = trials.with_recordings([recorded(moved), recorded()])
    low = {(stroke.trial, stroke.joint): stroke.low for stroke in others.plan.strokes.found}
    assert low[0, 0] - low[1, 0] == pytest.approx(0.4, abs=2e-3)
    assert trials.decimated().plan.strokes is trials.plan.strokes


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-3])
def test_other_motions_are_no_strokes(noise):
    """A Fourier series, and the quintic transit between two configurations, whose strokes are found."""
    names = MODEL.joint_names
    assert not RecordedStrokes.from_recordings([recorded(draw_random_fourier(MODEL, 1), noise)], names).found
    both = replace(MOTION, further=MOTION.center[None] + [0.5, -0.4], transit=3.0)
    found = RecordedStrokes.from_recordings([recorded(both, noise)], names)
    assert len(found.found) == 16
    assert all(0.7 < share < 1.0 for share in found.shares)
    still = ArrayRecording("still", names, Chunk(np.arange(100) / 100.0, np.zeros((100, 2)), None, np.zeros((100, 2))))
    found = RecordedStrokes.from_recordings([still], names)
    assert not found.found and np.isnan(found.shares).all()
    with pytest.raises(InputError, match="no joint moves on a logistic stroke"):
        report_strokes(found, names)


def test_short_strokes_are_found_in_noise():
    """0.18 rad with 1e-3 rad of noise."""
    short = replace(MOTION, span=np.array([0.18, 0.18]))
    found = RecordedStrokes.from_recordings([recorded(short, 1e-3)], MODEL.joint_names)
    assert len(found.found) == 8
    (finding,) = report_strokes(found, MODEL.joint_names)
    assert finding.code == "strokes_used" and "one 100%" in finding.message
