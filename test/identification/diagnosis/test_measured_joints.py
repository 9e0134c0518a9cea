# SPDX-License-Identifier: Apache-2.0
"""Faults of single joints of measured arms: gains are known where the other joints determine them, causes are named."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.identification.diagnosis.diagnosis import diagnose
from robot_dyn_id.identification.diagnosis.gain_factors import estimate_gain_factors
from robot_dyn_id.identification.diagnosis.samples import MotionSamples, RigidRows
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

DATA = os.environ.get("ROBOT_DYN_ID_DATA")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set"),
]


def read(folder, name, factors=1.0):
    """A robot, and a recording of it with efforts times factors."""
    with np.load(Path(str(DATA)) / folder / f"{name}.npz") as stored:
        t, q, dq, tau, joints = (stored[key] for key in ("t", "q", "dq", "tau", "joint_names"))
    names = tuple(joints.tolist())
    model = RobotModel.from_file(Path(str(DATA)) / folder / "model.urdf", names)
    return model, ArrayRecording("arm", names, Chunk(t, q, dq, tau * factors))


def test_a_gain_that_all_large_factors_explain_alike_is_not_known():
    """The seventh joint of this arm carries nothing: free bodies fit its effort alone once the others do not count."""
    model, recording = read("kuka_lwr4_iit", "train_m3_fast")
    trials = FilteredTrials.from_recordings([recording], model.joint_names, {}, SignalSettings())
    samples = MotionSamples.from_trials(trials)
    last = estimate_gain_factors(RigidRows.from_samples(samples, [model]), samples)[-1]
    assert last.value > 5.0 and last.advantage > 0.5 and last.sharpness < 0.05 and not last.significant
    found = {(one.code, name) for one in diagnose(samples, model).findings for name in one.joints}
    assert ("gain_unverifiable", model.joint_names[-1]) in found
    assert "gain_inconsistent" not in {code for code, _ in found}


@pytest.mark.parametrize(("joint", "factor", "code"), [(3, 2.0, "gain_inconsistent"), (2, -1.0, "effort_sign")])
def test_one_wrong_factor_of_torques_does_not_make_them_currents(joint, factor, code):
    """Drives with different gains would explain them, too, but no better than this factor."""
    factors = np.ones(7)
    factors[joint] = factor
    model, recording = read("fer_unisa_bag", "train_0_16s", factors)
    with pytest.raises(UnsafeDataError) as refused:
        identify([recording], [], model, Settings(), "test")
    assert [(one.code, one.joints) for one in refused.value.findings if one.severity == "error"] == [
        (code, (model.joint_names[joint],))
    ]


def test_a_refusal_names_the_encoder_that_may_be_dead():
    """Its joint moved: the efforts of the others contradict the robot, and the encoder is the cause."""
    model, recording = read("fer_unisa_bag", "train_0_16s")
    stuck = np.where(np.arange(7) == 4, 0.2, recording.samples.q)
    dead = replace(recording, samples=replace(recording.samples, q=stuck, dq=None))
    with pytest.raises(
        UnsafeDataError, match=r"possible cause: fer_joint5 barely moves.*its encoder is dead"
    ) as refused:
        identify([dead], [], model, Settings(), "test")
    assert "joint_barely_moves" in {one.code for one in refused.value.findings}
