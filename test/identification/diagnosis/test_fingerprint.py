# SPDX-License-Identifier: Apache-2.0
"""Training data are recognized among held-out data, under any name and with any stamps, and other data are not."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import TERMS, Simulated, changed

from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.diagnosis.fingerprint import DIGESTS, take_fingerprint
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.parameters import Fingerprint

ROBOT = Simulated()
SETTINGS = Settings(estimator=WeightedLeastSquares(), terms=TERMS)


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=40.0, noise=0.1)


def fingerprint(recording):
    return take_fingerprint(recording, ROBOT.joints)


def codes(findings):
    return {one.code for one in findings}


COPIES = {
    "copy under another name": (lambda r: replace(r, source="other"), 1.0),
    "other stamps": (lambda r: changed(r, t=lambda t: 3.0 * t + 1e9), 1.0),
    "three seconds of it": (lambda r: changed(r, rows=slice(2000, 2300)), 1.0),
    "every third sample": (lambda r: changed(r, rows=slice(0, None, 3)), 1.0),
    "nine digits as text": (lambda r: changed(r, q=lambda q: np.round(q, 9), tau=lambda tau: np.round(tau, 9)), 0.7),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_and_parts_are_recognized(recording, name):
    make, least = COPIES[name]
    assert fingerprint(make(recording)).share_in(fingerprint(recording)) >= least


def test_other_recordings_of_the_same_motion_are_not(recording):
    """Exactly the same positions, and efforts that differ by a ten-thousandth of their noise."""
    again = changed(recording, tau=lambda tau: tau + 1e-5)
    assert fingerprint(again).share_in(fingerprint(recording)) == 0.0


def test_the_share_of_a_recording_that_is_partly_trained_is_estimated(recording):
    trained = Fingerprint.joined([fingerprint(changed(recording, rows=slice(0, 2400)))])
    assert fingerprint(recording).share_in(trained) == pytest.approx(0.6, abs=0.1)
    assert len(trained.digests) == DIGESTS


def test_stamps_count_where_they_are_those_of_a_clock(recording):
    early = fingerprint(recording)
    assert early.starts.tolist() == [0.0]
    assert early.overlap_with(early) == 0.0
    dated = fingerprint(changed(recording, t=lambda t: t + 1.7e9))
    later = fingerprint(changed(recording, t=lambda t: t + 1.7e9 + 30.0, tau=lambda tau: 2.0 * tau))
    assert later.overlap_with(dated) == pytest.approx(0.25, abs=0.01)
    assert fingerprint(replace(recording, epoch=1_700_000_000 * 10**9)).overlap_with(dated) == pytest.approx(
        1.0, abs=1e-6
    )


@pytest.fixture(scope="module")
def parameters(recording):
    return identify([recording], [], ROBOT.model, SETTINGS, "test").parameters


@pytest.mark.slow
def test_a_parameter_set_recognizes_the_recordings_that_it_is_from(recording, parameters, tmp_path):
    write_parameters(tmp_path / "p.yaml", parameters)
    stored = read_parameters(tmp_path / "p.yaml")
    part = replace(changed(recording, rows=slice(1000, 3000), t=lambda t: t - 10.0), source="part.npz")
    evaluation = validate([part], stored, SETTINGS)
    (finding,) = [one for one in evaluation.findings if one.code == "held_out_in_training"]
    assert finding.severity == "warning"
    assert finding.message.startswith("100% of the samples of part.npz are training data")
    assert evaluation.verdict.word == "suspect"
    assert "yes" not in {use.fit.answer for use in evaluation.uses}
    other = validate([ROBOT.record(seed=2, duration=20.0, noise=0.1)], stored, SETTINGS)
    assert "held_out_in_training" not in codes(other.findings)


@pytest.mark.slow
def test_held_out_data_that_are_training_data_are_reported(recording):
    copy = replace(recording, source="copy.npz")
    result = identify([recording], [copy], ROBOT.model, SETTINGS, "test")
    assert "held_out_in_training" in codes(result.findings)
    resampled = changed(copy, t=lambda t: t + 1.7e9, tau=lambda tau: tau + 1e-5)
    dated = changed(recording, t=lambda t: t + 1.7e9)
    result = identify([dated], [resampled], ROBOT.model, SETTINGS, "test")
    (finding,) = [one for one in result.findings if one.code == "held_out_in_training"]
    assert finding.message.startswith("100% of copy.npz was recorded while")


@pytest.mark.slow
def test_a_recording_that_is_given_twice_is_reported(recording):
    part = replace(changed(recording, rows=slice(0, 1500)), source="part.npz")
    found = identify([recording, part], [], ROBOT.model, SETTINGS, "test").findings
    (finding,) = [one for one in found if one.code == "recording_repeated"]
    assert finding.message.startswith("part.npz and simulation have 100% ")
    other = ROBOT.record(seed=2, duration=20.0, noise=0.1)
    assert not codes(identify([recording, other], [], ROBOT.model, SETTINGS, "test").findings) & {
        "recording_repeated",
        "held_out_in_training",
    }
