# SPDX-License-Identifier: Apache-2.0
"""Stribeck friction by `separable`: the lowest minimum, physical constants, and what the data cannot show."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, make_joint_coordinates, place_terms_on_joints
from robot_dyn_id.dynamics.terms import ImprovedStribeck
from robot_dyn_id.estimators import LevenbergMarquardt, Separable
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.estimates import count_effective_rows, report_ambiguous
from robot_dyn_id.estimators.constants.linearized import Linearized
from robot_dyn_id.estimators.constants.minima import Minimum
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.signals.reversals import exclude_reversals
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

GIVEN = Simulated(terms=(ImprovedStribeck(),))
SIGNALS = SignalSettings(cutoff=30.0, velocity="derivative")


def drawn(seed, rise=None, slowest=0.0):
    """Problem of a recording with drawn friction, its parameters and its Stribeck velocities."""
    rng, model = np.random.default_rng(seed), GIVEN.model
    motion = draw_random_fourier(model, seed, 10.0, share=0.5)
    top = np.abs(motion.evaluate(sample_times(10.0, 200.0))[1]).max(axis=1)
    velocities = top * rng.uniform(0.02, 0.15, 3)
    sliding = rng.uniform(1.0, 3.0, 3)
    above = sliding * rng.uniform(0.2, 0.6, 3) if rise is None else np.full(3, rise)
    viscous = sliding * rng.uniform(0.3, 1.2, 3) / top
    friction = np.array([sliding, above, viscous, 0.05 * viscous, 0.05 * viscous]).T.ravel()
    rigid = GIVEN.parameters[: 10 * len(model.body_names)]
    pairs = zip(make_joint_coordinates(model), velocities, strict=True)
    true = Regressor(model, tuple((at, ImprovedStribeck(float(v))) for at, v in pairs))
    truth = np.concatenate([rigid, friction])
    sensors = Sensors(np.full(3, 0.05), 2e-6, None)
    recording = simulate_recording(true, truth, motion, sample_times(20.0, 200.0), sensors, seed)
    trials = FilteredTrials.from_recordings([recording], model.joint_names, {}, SIGNALS)
    trials, _ = exclude_reversals(trials, slowest, {})
    regressor = Regressor(model, place_terms_on_joints(model, (ImprovedStribeck(),)))
    base = compute_base_parameters(regressor)
    return trials.problem(regressor, base.independent), base.mapping @ truth, velocities


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_minimum_is_that_of_the_truth(seed):
    """Also where a peak of single samples, or one that rises with speed, has a lower cost."""
    problem, truth, velocities = drawn(seed)
    found = Separable().fit(problem)
    assert np.abs([one.value for one in found.constants] / velocities - 1.0).max() < 0.3
    assert np.mean(np.abs(found.values - truth) < 3.0 * found.standard_deviations) > 0.9
    local = LevenbergMarquardt().fit(problem)
    if all(np.isfinite(one.standard_deviation) for one in local.constants):
        assert found.costs[-1] < local.costs[-1] + 1e-3


@pytest.mark.slow
def test_a_peak_that_is_not_there_has_no_width():
    problem, _, _ = drawn(1, rise=0.0, slowest=0.01)
    found = Separable().fit(problem)
    rises = [i for i, name in enumerate(problem.names) if name.startswith("dfi")]
    assert np.all(found.values[rises] == 0.0) and np.all(np.isinf(found.standard_deviations[rises]))
    assert all(np.isinf(one.standard_deviation) for one in found.constants)
    assert "constants_not_identified" in {one.code for one in found.findings}
    assert set(found.unexcited) == {problem.names[i] for i in rises}


def test_a_local_search_reports_friction_that_rises_with_speed():
    """`lm` from Stribeck velocities far above the true ones, which imitate viscous friction."""
    problem, _, _ = drawn(3)
    far = [(at, replace(term, stribeck_velocity=0.9)) for at, term in problem.regressor.terms]
    found = LevenbergMarquardt().fit(problem.with_columns(problem.regressor.with_terms(far), problem.columns))
    rises = [i for i, name in enumerate(problem.names) if name.startswith("dfi")]
    below = found.values[rises] < -3.0 * found.standard_deviations[rises]
    assert ("peak_negative" in {one.code for one in found.findings}) == below.any()
    assert below.any()


def test_rows_that_are_left_out_bound_what_they_would_show():
    problem, _, _ = drawn(1, slowest=0.05)
    constants = Constants.from_problem(problem, "separable")
    np.testing.assert_allclose(np.exp(constants.lower), 0.025)


def test_effective_rows():
    """N rows of equal size count N; one among zeros counts one."""
    problem, _, _ = drawn(1)
    constants = Constants.from_problem(problem, "separable")
    at = Linearized.from_constants(constants, np.log([0.2, 1e-4, 0.2]) + 0.0 * constants.lower, True)
    rows = count_effective_rows(at.problem(at.values, np.ones(3, dtype=bool)), len(problem.names))
    assert rows[0] > 50.0 and rows[2] > 50.0 and rows[1] < 20.0


def test_a_second_minimum_within_the_noise_is_reported():
    problem, _, _ = drawn(1, slowest=0.01)
    estimate = Separable().fit(problem)
    constants = Constants.from_problem(problem, "separable")
    logarithms = np.log([one.value for one in estimate.constants])
    found = Linearized.from_constants(constants, logarithms, True)
    away = Minimum(logarithms + np.array([0.0, 1.0, 0.0]), found.cost + 1.0, np.ones(len(problem.names), dtype=bool))
    (finding,) = report_ambiguous(estimate, found, [away])
    assert finding.code == "constants_ambiguous" and "stribeck_velocity of elbow" in finding.message
    far = Minimum(away.logarithms, found.cost + 1e3, away.positive)
    assert not report_ambiguous(estimate, found, [far])
