# SPDX-License-Identifier: Apache-2.0
"""Objectives: their values against the definitions, their derivatives against finite differences, matrices without rank."""

import numpy as np
import pytest

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.objectives import (
    OBJECTIVES,
    a_optimal,
    condition,
    condition_raw,
    d_optimal,
    l_optimal,
    weakest,
)

P = 12
RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(60, P)) @ np.diag(np.geomspace(0.1, 10.0, P)) + 0.1 * RNG.normal(size=(60, 1))
M = ROWS.T @ ROWS
COVARIANCE = np.linalg.inv(M)
SCALE = np.geomspace(3.0, 0.1, P)
COMBINATIONS = RNG.normal(size=(5, P))

CASES = {
    **OBJECTIVES,
    "a_optimal of some": lambda matrix: a_optimal(matrix, np.array([2, 5, 11]), SCALE),
    "l_optimal": lambda matrix: l_optimal(matrix, COMBINATIONS),
    "weakest to scale": lambda matrix: weakest(matrix, SCALE),
}


def logarithm_of_the_condition(rows):
    values = np.linalg.svd(rows, compute_uv=False)
    return np.log(values[0] / values[-1])


UNIT = ROWS / np.linalg.norm(ROWS, axis=0)
NORMED_COVARIANCE = np.linalg.inv(UNIT.T @ UNIT)

DEFINITIONS = {
    "d_optimal": -np.linalg.slogdet(M)[1] / P,
    "condition": logarithm_of_the_condition(UNIT),
    "condition_raw": logarithm_of_the_condition(ROWS),
    "a_optimal": np.log(np.trace(COVARIANCE)),
    "a_optimal of some": np.log(sum(COVARIANCE[i, i] / SCALE[i] ** 2 for i in (2, 5, 11))),
    "joint_inertias": np.log(np.trace(COVARIANCE)),  # of no robot: the parameters themselves
    "l_optimal": np.log(np.trace(COMBINATIONS @ COVARIANCE @ COMBINATIONS.T)),
    "weakest": np.log(np.linalg.eigvalsh(NORMED_COVARIANCE)[-1]),
    "weakest to scale": np.log(np.linalg.eigvalsh(COVARIANCE / np.outer(SCALE, SCALE))[-1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_value_is_that_of_the_definition(case):
    assert CASES[case](M).value == pytest.approx(DEFINITIONS[case], rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_the_derivatives_are_those_of_finite_differences(case):
    gradient = CASES[case](M).gradient()
    assert np.array_equal(gradient, gradient.T)
    for seed in range(5):
        half = np.random.default_rng(seed).normal(size=(P, P)) * np.sqrt(np.outer(M.diagonal(), M.diagonal()))
        change, step = half + half.T, 1e-4
        ends = [CASES[case](M + share * step * change).value for share in (-2, -1, 1, 2)]
        expected = (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12.0 * step)
        assert np.sum(gradient * change) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("case", ["d_optimal", "a_optimal", "a_optimal of some", "weakest to scale"])
def test_more_information_is_better(case):
    """The others say how unequal the information is, not how much."""
    more = RNG.normal(size=(30, P))
    assert CASES[case](M + more.T @ more).value < CASES[case](M).value
    assert np.all(np.linalg.eigvalsh(CASES[case](M).gradient()) <= 1e-12)


def test_scaled_figures_do_not_depend_on_units():
    units = np.geomspace(1e-3, 1e3, P)
    other = M * np.outer(units, units)
    assert condition(other).value == pytest.approx(condition(M).value, rel=1e-9)
    assert weakest(other).value == pytest.approx(weakest(M).value, rel=1e-9)
    assert weakest(other, SCALE / units).value == pytest.approx(weakest(M, SCALE).value, rel=1e-9)
    assert a_optimal(other, scale=SCALE / units).value == pytest.approx(a_optimal(M, scale=SCALE).value, rel=1e-9)
    assert d_optimal(other).value - d_optimal(M).value == pytest.approx(-2.0 * np.log(units).mean(), abs=1e-9)
    assert condition_raw(other).value != pytest.approx(condition_raw(M).value, rel=0.1)


def test_the_best_figures_are_those_of_parameters_that_are_not_confused():
    known = np.diag(np.geomspace(1.0, 9.0, P))
    assert condition(known).value == pytest.approx(0.0, abs=1e-12)
    assert condition_raw(known).value == pytest.approx(np.log(3.0), rel=1e-12)
    assert weakest(known).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("case", ["d_optimal", "a_optimal", "a_optimal of some", "weakest to scale"])
def test_less_noise_moves_a_figure_and_leaves_its_differences(case):
    """So that a search with an absolute tolerance ends at the same motion, whatever the size of the noise."""
    louder = CASES[case](1e-6 * M)
    assert louder.value - CASES[case](M).value == pytest.approx(np.log(1e6), abs=1e-9)
    np.testing.assert_allclose(1e-6 * louder.gradient(), CASES[case](M).gradient(), rtol=1e-6, atol=1e-12)


def broken():
    """Matrices that leave something open, as sums of squares give them and exactly."""
    rng = np.random.default_rng(2)
    twice = ROWS.copy()
    twice[:, 7] = twice[:, 2] - 3.0 * twice[:, 4]
    unexcited = ROWS.copy()
    unexcited[:, 3] = 0.0
    for name, rows in {
        "a combination": twice,
        "a parameter": unexcited,
        "few rows": ROWS[:5],
        "one row": ROWS[:1],
        "all the same": np.repeat(rng.normal(size=(60, 1)), P, axis=1),
    }.items():
        yield name, rows.T @ rows
    yield "nothing", np.zeros((P, P))
    yield "indefinite", M - 2.0 * np.linalg.eigvalsh(M)[-1] * np.eye(P)
    yield "no number", np.full((P, P), np.nan)
    yield "overflow", np.where(np.eye(P) > 0, np.inf, M)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", dict(broken()))
def test_what_leaves_parameters_open_is_infinitely_bad(case, name):
    score = CASES[case](dict(broken())[name])
    value, gradient = score.value, score.gradient()
    assert value == np.inf
    assert gradient.shape == (P, P)
    assert not gradient.any()


@pytest.mark.parametrize("case", CASES)
def test_what_is_known_before_closes_what_a_motion_leaves_open(case):
    prior = np.diag(1.0 / SCALE**2)
    for name in ("a combination", "a parameter", "few rows", "nothing"):
        matrix = dict(broken())[name] + prior
        score = CASES[case](matrix)
        assert np.isfinite(score.value)
        assert np.all(np.isfinite(score.gradient()))


@pytest.mark.parametrize("scale", [0.0, -np.ones(P), np.ones(P - 1), np.nan])
def test_a_scale_that_is_none_is_refused(scale):
    for objective in (a_optimal, weakest):
        with pytest.raises(UsageError, match=rf"{objective.__name__}: scales .* must be positive"):
            objective(M, scale=scale)


@pytest.mark.parametrize("chosen", [[], [P], [-1]])
def test_parameters_that_do_not_exist_are_refused(chosen):
    with pytest.raises(UsageError, match=rf"are not among the {P}"):
        a_optimal(M, np.array(chosen))
