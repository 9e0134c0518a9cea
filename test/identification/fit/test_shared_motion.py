# SPDX-License-Identifier: Apache-2.0
"""Joints that move in proportion: named with the motion that separates them, and as the cause of what follows."""

import numpy as np
import pytest
from support.simulated import ARM, TERMS, Simulated, changed

from robot_dyn_id.errors import InputError, UnsafeDataError
from robot_dyn_id.findings import find_definition
from robot_dyn_id.identification.fit.shared_motion import flag_shared_motion, report_shared_motion
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings


def test_pairs_are_those_of_proportional_velocities():
    t = np.linspace(0.0, 20.0, 2000)
    one, other = np.sin(t), np.sin(1.7 * t)
    velocities = np.array([one, -3.0 * one + 0.01 * other, other, np.zeros_like(t)])
    found = flag_shared_motion(velocities @ velocities.T)
    assert np.argwhere(np.triu(found, 1)).tolist() == [[0, 1]]


@pytest.fixture(scope="module")
def trials():
    """Training data in which the wrist follows the elbow."""
    arm = Simulated(ARM)
    recording = arm.record(1, noise=0.1)

    def follow(values):
        values[:, 2] = 0.5 * values[:, 1]
        return values

    together = changed(recording, q=follow, dq=follow)
    return identify([together], [], arm.model, Settings(terms=TERMS, ignore=("gain_inconsistent",)), "test")


@pytest.mark.slow
def test_an_identification_names_them(trials):
    (finding,) = [one for one in trials.findings if one.code == "joints_in_proportion"]
    assert finding.joints == ("elbow", "wrist")


def test_findings_that_follow_say_which_motion_to_record(trials):
    given = (
        find_definition("negative_parameter").found("joint wrist: fv3 negative", ["wrist"]),
        find_definition("negative_parameter").found("joint shoulder: fv1 negative", ["shoulder"]),
        find_definition("effort_outliers").found("wrist", ["wrist"]),
    )
    found = report_shared_motion(trials.training, given)
    assert "elbow and wrist separately" in found[0].action
    assert found[1:3] == given[1:]
    assert found[3].code == "joints_in_proportion"


@pytest.mark.parametrize("samples", [100, 400])
def test_a_recording_that_is_too_short_to_show_a_wrong_sign_is_called_too_short(samples):
    arm = Simulated(ARM)
    recording = arm.record(1, noise=0.05, rate=200.0)
    reversed_ = changed(recording, slice(0, samples), tau=lambda tau: -tau)
    with pytest.raises(InputError, match=r"s of motion are too short.*record longer"):
        identify([reversed_], [], arm.model, Settings(terms=TERMS), "test")


def test_a_longer_one_shows_it():
    arm = Simulated(ARM)
    reversed_ = changed(arm.record(1, noise=0.05), tau=lambda tau: -tau)
    with pytest.raises(UnsafeDataError) as refused:
        identify([reversed_], [], arm.model, Settings(terms=TERMS), "test")
    assert "effort_sign" in str(refused.value)
