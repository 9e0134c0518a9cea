# SPDX-License-Identifier: Apache-2.0
"""Torques of an identified model along a recording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.health import examine_motion
from robot_dyn_id.identification.diagnosis.positions import correct_motion
from robot_dyn_id.identification.diagnosis.zeros import report_unknown_zeros
from robot_dyn_id.identification.validation.extrapolation import flag_far_outside, list_excesses, report_excesses
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, require_signals

SAMPLES_NOT_PREDICTED = Definition(
    "samples_not_predicted",
    Section.PREDICTION,
    "info",
    "The motion around some time stamps is not recorded.",
    "record without gaps",
)


def predict_recording(
    recording: Recording, parameters: ParameterSet, velocity: str = "auto", ignore: Sequence[str] = ()
) -> tuple[Array, Array, tuple[Finding, ...]]:
    """Predict the torques at the time stamps of a recording; measured efforts are never read.

    Args:
        recording: the recorded motion.
        parameters: the identified model; its filter is applied to the motion.
        velocity: source of the velocities: `recorded`, `derivative` or `auto`, see `SignalSettings`.
        ignore: codes of errors about the motion that are overruled.

    Returns:
        Stamps [s], shape (N,); torques [N m or N], or currents as the drives report them where their gain is not known,
        shape (N, n), NaN where the motion is not usable; findings.

    Raises:
        InputError: the recording cannot be used.
        UnsafeDataError: a health check refuses the motion.
    """
    regressor = Regressor.from_parameters(parameters)
    joints = parameters.robot.joint_names
    signals = SignalSettings.from_parameters(parameters, velocity)
    corrected, jumps = correct_motion(recording, regressor.model)
    trials = FilteredTrials.from_recordings([corrected], joints, {}, signals, need_effort=False, keep_edges=True)
    require_signals(regressor, trials.survey)
    unsound = examine_motion(trials, regressor.model, ignore)
    columns = parameters.base.independent
    times, torques, segments = [], [], []
    relative = parameters.effort.relative_gains if len(parameters.effort.relative_gains) else np.ones(len(joints))
    trained, far = parameters.ranges, np.zeros((3, len(joints)))
    for piece in trials.along(regressor):
        motion = piece.motion.take(piece.own)
        times.append(piece.t[piece.own])
        torques.append(regressor.torque(motion, parameters.estimate.values, columns) / relative[:, None])
        far += flag_far_outside(motion, trained).sum(axis=2)
        segments.append(np.full(len(times[-1]), piece.segment))
    grid, tau, segment = np.concatenate(times), np.concatenate(torques, axis=1).T, np.concatenate(segments)
    t = np.concatenate([chunk.t for chunk in recording.chunks(joints)])
    out = _predict_at_stamps(t, grid, tau, segment, 1.0 / trials.plan.rate)
    lost = int(np.isnan(out).any(axis=1).sum())
    units = regressor.model.effort_units
    findings = (*jumps, *unsound, *report_excesses(list_excesses(joints, far / max(1, len(grid)))))
    findings += report_unknown_zeros(joints, units, parameters.effort.offset_deviations)
    if lost:
        message = f"{lost} of {len(t)} samples could not be predicted: their motion is missing"
        gaps = trials.survey.repairs.gaps
        if gaps:
            longest = f"{trials.plan.longest_gap:.2g} s"
            message += f"; the recording has {gaps} gap{'s' * (gaps != 1)} longer than {longest}"
        findings = (SAMPLES_NOT_PREDICTED.found(message), *findings)
    return t, out, findings


def _predict_at_stamps(t: Array, grid: Array, tau: Array, segment: np.ndarray, step: float) -> Array:
    """Predictions at stamps `t` from those on the grid; NaN outside every segment.

    The last step of the grid ends up to one step before the last stamp: its line is continued.
    """
    out = np.full((len(t), tau.shape[1]), np.nan)
    for number in np.unique(segment):
        of_segment = segment == number
        times, values = grid[of_segment], tau[of_segment]
        inside = (t >= times[0] - 1e-9) & (t <= times[-1] + step)
        out[inside] = interpolate_linear(t[inside], times, values, hold_ends=True)
        if len(times) > 1:
            slope = (values[-1] - values[-2]) / max(times[-1] - times[-2], 0.5 * step)
            out[inside] += np.maximum(t[inside] - times[-1], 0.0)[:, None] * slope
    return out
