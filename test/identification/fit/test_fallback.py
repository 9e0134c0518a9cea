# SPDX-License-Identifier: Apache-2.0
"""An estimator that fails is replaced by weighted least squares, and reported."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.linear_problems import PLAN, arm, arm_problem, noisy
from support.simulated import Simulated

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Stribeck, Viscous
from robot_dyn_id.estimators import ESTIMATORS, Robust, WeightedLeastSquares
from robot_dyn_id.identification.fit.fallback import find_failure, fit_or_fall_back
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.signals.trials import FilteredTrials


@pytest.fixture(scope="module")
def problem():
    return arm_problem(noisy(1))


def test_one_that_does_not_converge_is_replaced(problem):
    estimator = Robust(iterations=1)
    plain = WeightedLeastSquares().fit(problem)
    estimate, used = fit_or_fall_back(estimator, problem)
    assert used == WeightedLeastSquares()
    np.testing.assert_array_equal(estimate.values, plain.values)
    (finding,) = (one for one in estimate.findings if one.code == "estimator_replaced")
    assert finding.message.startswith(f"estimator {estimator.name} failed")
    assert "after 1" in finding.message


@pytest.mark.parametrize("name", ["generalized", "robust", "map", "consistent", "separable", "ols"])
def test_estimators_that_work_are_kept(problem, name):
    estimator = ESTIMATORS[name]()
    estimate, used = fit_or_fall_back(estimator, problem)
    assert used == estimator
    assert "estimator_replaced" not in {one.code for one in estimate.findings}


@dataclass(frozen=True)
class Tenfold:
    """An estimator that is wrong by a factor of ten."""

    name: ClassVar[str] = "tenfold"
    uses_prior: ClassVar[bool] = False

    def fit(self, problem):
        plain = WeightedLeastSquares().fit(problem)
        return replace(plain, values=10.0 * plain.values, residual_rms=9.0 * plain.residual_rms)


def test_the_whole_pipeline_names_the_estimator_that_was_used():
    robot = arm()[0]
    training, rest = split([noisy(1)], robot.joints)
    result = identify(training, rest, robot.model, Settings(estimator=Tenfold()), "test")
    assert result.parameters.provenance.estimator == "weighted"
    assert "estimator_replaced" in {one.code for one in result.findings}
    assert result.parameters.judgment.held_out_all_joints_nrmse < 0.1


def test_constants_that_predict_worse_than_the_given_ones_have_failed(problem):
    model = arm()[0].model
    useless = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(smoothing_width=100.0), Offset())))
    plain = WeightedLeastSquares().fit(problem)
    assert find_failure(problem, plain, biased=False) == ""
    reason = find_failure(problem, replace(plain, regressor=useless), biased=False)
    assert "times worse with its constants" in reason


def test_friction_that_hides_between_the_samples_speeds_has_failed():
    robot = Simulated(terms=(Viscous(), Stribeck(), Offset()))
    trials = FilteredTrials([robot.record(duration=20.0, noise=0.1)], robot.joints, {}, PLAN)
    problem = trials.problem(robot.regressor, robot.base.independent)
    plain = WeightedLeastSquares().fit(problem)
    assert find_failure(problem, replace(plain, regressor=robot.regressor), biased=False) == ""
    hidden = plain.values.copy()
    hidden[robot.base.names.index("dfs2")] = 1e6
    reason = find_failure(problem, replace(plain, values=hidden, regressor=robot.regressor), biased=False)
    assert reason.startswith("its friction on joint elbow reaches")
