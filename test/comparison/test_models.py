# SPDX-License-Identifier: Apache-2.0
"""Comparison of models: the same model in other base parameters, changes, other terms, coverage of the test."""

import numpy as np
import pytest
from scipy.stats import kstest
from support.altered import altered
from support.given_parameters import parameter_set
from support.model_nodes import identified, presliding
from support.simulated import ARM, LIFT, Simulated

from robot_dyn_id.comparison.models import adjust_holm, compare_models, mahalanobis
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.report.comparison import describe_combination

TERMS = (Viscous(), Coulomb(), Offset())


def in_other_base_parameters(one):
    """The same model, each base parameter named after the last column that can stand for it."""
    rest = np.arange(len(one.base.column_names))[::-1]
    chosen = []
    for column in rest:
        if np.linalg.matrix_rank(one.base.mapping[:, [*chosen, column]], tol=1e-6) > len(chosen):
            chosen.append(int(column))
    chosen = sorted(chosen)
    to_new = np.linalg.inv(one.base.mapping[:, chosen])
    mapping = to_new @ one.base.mapping
    mapping[:, chosen] = np.eye(len(chosen))
    covariance = to_new @ one.estimate.covariance @ to_new.T
    covariance = (covariance + covariance.T) / 2
    units = dict(zip(one.base.names, one.base.units, strict=True))
    assert set(chosen) != set(one.base.independent.tolist())
    regressor_units = {name: units.get(name) for name in one.base.column_names}
    full = np.append(one.bodies.standard_parameters, one.terms.values)
    kinds = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
    return altered(
        one,
        base={
            "names": tuple(one.base.column_names[c] for c in chosen),
            "expressions": tuple(one.base.column_names[c] for c in chosen),
            "units": tuple(regressor_units[one.base.column_names[c]] or kinds[c % 10] for c in chosen),
            "mapping": mapping,
            "independent": np.array(chosen, dtype=np.uint32),
        },
        estimate={
            "values": mapping @ full,
            "standard_deviations": np.sqrt(np.diag(covariance)),
            "covariance": covariance,
            "interval_lows": np.zeros(0),
            "interval_highs": np.zeros(0),
        },
    )


def shifted(one, number, sigmas):
    """The model with one term parameter changed, by a number of standard deviations of its base parameter."""
    column = int(one.base.independent[number]) - len(one.bodies.standard_parameters)
    values = one.terms.values.copy()
    values[column] += sigmas * one.estimate.standard_deviations[number]
    full = np.append(one.bodies.standard_parameters, values)
    lows, highs = (np.zeros(0),) * 2
    return altered(
        one,
        estimate={"values": one.base.mapping @ full, "interval_lows": lows, "interval_highs": highs},
        terms={"values": values},
    )


def test_a_model_does_not_differ_from_itself_in_whatever_base_parameters():
    one = identified()
    for other in (one, in_other_base_parameters(one)):
        found = compare_models(one, other)
        assert len(found.names) == found.degrees == len(one.base.names) and not found.not_compared
        np.testing.assert_allclose(found.values, found.reference_values, rtol=1e-9, atol=1e-12)
        assert not found.significant and not found.differing.any()
        assert np.all(found.torque.rms <= 1e-9 * found.torque.torque_rms)


def test_a_changed_parameter_is_named_with_its_difference():
    one = identified()
    number = one.base.names.index("fc2")
    found = compare_models(in_other_base_parameters(one), shifted(one, number, 12.0))
    place = found.names.index("fc2")
    assert np.flatnonzero(found.differing).tolist() == [place] and found.significant
    assert found.sigmas[place] == pytest.approx(12.0 / np.sqrt(2.0))
    elbow = np.arange(3) == 1
    assert np.all((found.torque.rms > 1e-6) == elbow)


def test_a_difference_of_no_single_parameter_names_the_combination():
    """Two estimates with a correlation of 0.999 differ by two sigma each in opposite directions: far more together."""
    one = identified()
    i, j = one.base.names.index("fv2"), one.base.names.index("fc2")
    covariance = np.diag(np.diag(one.estimate.covariance))
    sigma = np.sqrt(np.diag(covariance))
    covariance[i, j] = covariance[j, i] = 0.999 * sigma[i] * sigma[j]
    one = altered(one, estimate={"covariance": covariance, "interval_lows": np.zeros(0), "interval_highs": np.zeros(0)})
    found = compare_models(one, shifted(shifted(one, i, 2.0), j, -2.0))
    assert found.significant and not found.differing.any()
    combination = found.combination
    assert set(combination.names) == {"fv2", "fc2"}
    assert combination.loadings[0] == pytest.approx(np.sqrt(0.5)) and combination.loadings[1] == pytest.approx(
        -np.sqrt(0.5)
    )
    assert abs(combination.sigmas) == pytest.approx(4.0 / np.sqrt(2.0) / np.sqrt(2.0 * 0.001), rel=1e-6)
    assert combination.sigmas**2 == pytest.approx(combination.share * found.chi_square)
    assert all(name in describe_combination(found) for name in ("fv2", "fc2"))
    assert describe_combination(compare_models(one, one)) == ""


@pytest.mark.slow
def test_what_has_no_counterpart_is_named():
    one, other = identified(), presliding()
    found = compare_models(one, other)
    assert {name[:2] for name in one.base.names} >= {"fc"}
    assert all(name.startswith(("fc", "fd")) for name in found.not_compared)
    assert {name for name in one.base.names if name.startswith("fc")} <= set(found.not_compared)
    assert len(found.names) == len(one.base.names) - 3

    robot = compare_models(one, parameter_set(LIFT, terms=TERMS))
    assert not robot.names and robot.torque is None and robot.degrees == 0 and np.isnan(robot.p_value)

    constants = compare_models(one, parameter_set(ARM, terms=(Viscous(), Coulomb(0.5), Offset())))
    assert {"fc1", "fc2", "fc3"} <= set(constants.not_compared) and "fv1" in constants.names


def test_parameters_that_were_not_excited_are_left_out():
    one = identified()
    sigmas, covariance = one.estimate.standard_deviations.copy(), one.estimate.covariance.copy()
    sigmas[0] = np.inf
    covariance[0] = covariance[:, 0] = np.inf
    unknown = altered(one, estimate={"standard_deviations": sigmas, "covariance": covariance})
    for pair in ((one, unknown), (unknown, one)):
        found = compare_models(*pair)
        assert one.base.names[0] not in found.names and one.base.names[0] in found.not_compared
        assert len(found.names) == len(one.base.names) - 1
        assert np.isinf(found.torque.expected).any() and np.all(found.torque.rms < 1e-9)


@pytest.mark.slow
def test_models_of_the_same_robot_differ_as_often_as_the_test_states():
    robot = Simulated(ARM)
    settings = Settings(terms=TERMS, estimator=ESTIMATORS["weighted"]())

    def model(seed):
        training = robot.record(seed=seed, duration=10.0, rate=50.0, noise=0.1)
        held_out = robot.record(seed=100 + seed, duration=5.0, rate=50.0, noise=0.1)
        return identify([training], [held_out], robot.model, settings, "test").parameters

    models = [model(seed) for seed in range(1, 25)]
    probabilities = [compare_models(one, other).p_value for one, other in zip(models[::2], models[1::2], strict=True)]
    assert kstest(probabilities, "uniform").pvalue > 0.001, probabilities


def test_holm_is_bonferroni_for_the_smallest_and_stops_at_the_first_that_passes():
    p = np.array([0.04, 0.004, 0.011, 0.012])
    assert (adjust_holm(p) <= 0.05).tolist() == [True, True, True, True]
    assert (adjust_holm(p) <= 0.03).tolist() == [False, True, False, False]
    assert (adjust_holm(np.zeros(0)) <= 0.05).tolist() == []


def test_mahalanobis_leaves_out_directions_without_variance():
    factor = np.array([[1.0, 0.0], [1e3, 1.0], [0.0, 2.0]])
    distance, degrees = mahalanobis(factor @ np.array([1.0, 2.0]), factor @ factor.T)
    assert degrees == 2 and distance == pytest.approx(5.0)
    assert mahalanobis(np.zeros(2), np.zeros((2, 2))) == (0.0, 0)
