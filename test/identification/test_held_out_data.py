# SPDX-License-Identifier: Apache-2.0
"""Held-out data: joints and signals that they lack, their health, and data that the prior was identified from."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM, TERMS, Simulated, changed

from robot_dyn_id.dynamics.terms import TERMS as ALL_TERMS
from robot_dyn_id.errors import InputError, UnsafeDataError
from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.report.text import list_joint_rows

ROBOT = Simulated()
SETTINGS = Settings(terms=TERMS, estimator=WeightedLeastSquares())


@pytest.fixture(scope="module")
def recordings():
    return [ROBOT.record(seed, duration=20.0, noise=0.05) for seed in (1, 2)]


def finding(findings, code):
    return next((one for one in findings if one.code == code), None)


def without_last_effort(tau):
    tau[:, -1] = np.nan
    return tau


def check_unvalidated_wrist(evaluation):
    wrist = evaluation.held_out.joints[-1]
    assert not wrist.is_validated and np.isnan([wrist.nrmse, wrist.rms, wrist.rated, wrist.max_error]).all()
    assert all(joint.is_validated for joint in evaluation.held_out.joints[:-1])
    assert list(list_joint_rows(evaluation))[-1] == (ROBOT.joints[-1], "-", "-", "-", "-", "-", "N m")
    assert np.isfinite(evaluation.held_out.all_joints_nrmse)
    assert finding(evaluation.findings, "joint_not_validated").joints == (ROBOT.joints[-1],)
    assert evaluation.verdict.word == "suspect"
    for use in evaluation.uses:
        assert use.fit.answer == "no" and use.joints[ROBOT.joints[-1]] == "no", use.fit.use


def test_a_joint_without_held_out_effort_is_fit_for_nothing(recordings):
    missing = changed(recordings[1], tau=without_last_effort)
    result = identify(recordings[:1], [missing], ROBOT.model, SETTINGS, "test")
    assert ("effort_constant", ("wrist",)) in [(one.code, one.joints) for one in result.findings]
    check_unvalidated_wrist(result.evaluation)
    assert np.isnan(result.parameters.judgment.held_out_nrmse[-1])
    check_unvalidated_wrist(validate([missing], result.parameters, SETTINGS))


def test_held_out_data_are_examined(recordings):
    degrees = changed(recordings[1], q=np.degrees, dq=None)
    with pytest.raises(UnsafeDataError):
        identify(recordings[:1], [degrees], ROBOT.model, SETTINGS, "test")


def test_held_out_data_without_temperature_are_refused(recordings):
    settings = Settings(terms=(*TERMS, ALL_TERMS["temperature_coulomb"]()), estimator=WeightedLeastSquares())
    t = recordings[0].samples.t
    warm = changed(recordings[0], temperature=30.0 + 0.5 * t[:, None] * np.ones(3))
    with pytest.raises(InputError, match="temperature"):
        identify([warm], recordings[1:], ROBOT.model, settings, "test")


TILTED = Simulated(gravity=(0.8, 0.0, -9.78))


@pytest.fixture(scope="module")
def tilted():
    return [TILTED.record(seed, duration=20.0, noise=0.05) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def refining(tilted):
    """Settings with a prior from the first recording on the tilted base."""
    return replace(
        SETTINGS,
        prior=identify(tilted[:1], tilted[2:], TILTED.model, SETTINGS, "test").parameters,
        estimator=Consistent(strength=1.0),
    )


@pytest.mark.slow
def test_a_prior_from_the_data_that_validate_is_reported(tilted, refining):
    """As held-out recording, and under cross-validation; other recordings are not."""
    for training, held_out, name in (([1], [0], "held out"), ([0], [], "cross-validated"), ([1], [2], "")):
        result = identify(
            [tilted[number] for number in training],
            [tilted[number] for number in held_out],
            TILTED.model,
            refining,
            "test",
        )
        found = finding(result.findings, "held_out_in_training")
        assert bool(found) == bool(name), name
        assert not found or "training data of the prior" in found.message


def test_the_name_of_the_prior_is_in_the_result(tilted, refining):
    result = identify(tilted[1:2], tilted[2:], TILTED.model, refining, "test")
    assert result.estimate.regularized_towards == f"parameter set of {TILTED.model.name}, strength 1"


@pytest.mark.parametrize(
    "change", [('xyz="0.1 -0.2 0.3"', 'xyz="0.1 -0.2 0.4"'), ('axis xyz="0 1 0"', 'axis xyz="1 0 0"')]
)
@pytest.mark.parametrize("kind", ["parameter set", "robot description"])
def test_a_prior_of_another_robot_with_the_same_names_is_refused(tilted, refining, change, kind):
    text = ARM.replace(*change)
    assert text != ARM
    other = Simulated(text)
    prior = RobotDescription(text)
    if kind == "parameter set":
        recordings = [other.record(seed, duration=20.0, noise=0.05) for seed in (1, 2)]
        prior = identify(recordings[:1], recordings[1:], other.model, SETTINGS, "test").parameters
    with pytest.raises(InputError, match=rf"prior: joint (shoulder|elbow) of the {kind}.* another robot"):
        identify(tilted[1:2], tilted[2:], TILTED.model, replace(refining, prior=prior), "test")


def test_a_short_held_out_part_is_no_reason_to_suspect_a_model(tilted):
    """Efforts of 1.3 s take few distinct values, whatever their resolution."""
    short = [replace(tilted[2], samples=tilted[2].samples.take(slice(500, 640)))]
    coarse = [changed(one, tau=lambda tau: np.round(tau / 0.5) * 0.5) for one in short]
    result = identify(tilted[:2], coarse, TILTED.model, SETTINGS, "test")
    found = finding(result.findings, "effort_coarse")
    assert found
    assert found.severity == "info"
    (again,) = [one for one in validate(coarse, result.parameters, SETTINGS).findings if one.code == "effort_coarse"]
    assert again.severity == "info"


@pytest.mark.slow
def test_the_prior_gives_the_gravity_vector_where_none_was_given(tilted, refining):
    result = identify(tilted[1:2], tilted[2:], ROBOT.model, refining, "test")
    np.testing.assert_array_equal(result.parameters.robot.gravity, TILTED.model.gravity)
    assert finding(result.findings, "gravity_of_prior")
    given = identify(tilted[1:2], tilted[2:], ROBOT.model, replace(refining, base_tilt=False), "test")
    np.testing.assert_array_equal(given.parameters.robot.gravity, ROBOT.model.gravity)
    assert not finding(given.findings, "gravity_of_prior")
    errors = [one.evaluation.held_out.all_joints_nrmse for one in (result, given)]
    assert errors[0] < 0.5 * errors[1]
