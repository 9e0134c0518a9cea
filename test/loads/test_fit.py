# SPDX-License-Identifier: Apache-2.0
"""Fit of loads to their recordings: errors of each row, and the verdict."""

import numpy as np
import pytest

from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.loads.fit import LoadFit

RNG = np.random.default_rng(0)


def test_errors_are_those_of_the_rows():
    columns, values = RNG.normal(size=(2, 50, 1)), np.array([2.0])
    measured = columns @ values + 0.1 * RNG.normal(size=(2, 50))
    stacks = [np.column_stack([one, tau]) for one, tau in zip(columns, measured, strict=True)]
    triangles = tuple(np.linalg.qr(stack, mode="r") for stack in stacks)
    factors = Factors(1, (np.array([0]), np.array([0])), triangles, np.array([50, 50]))
    stamps = np.arange(50) / 10.0

    def tiles():
        for number, stack in enumerate(stacks):
            block = stack.T.copy()
            block[:, 0] = 0.0  # an excluded sample
            yield Tile(number, 0, block, t=stamps)

    problem = LinearProblem(("theta",), ("a", "b"), factors.supports, tiles, 10.0)
    fit = LoadFit.from_factors(problem, factors, values)
    assert [curve.row for curve in fit.curves()] == ["a", "b"]
    for curve, column, tau in zip(fit.curves(), columns, measured, strict=True):
        np.testing.assert_array_equal(curve.t, stamps)
        assert np.isnan(curve.measured[0]) and np.isnan(curve.predicted[0])
        np.testing.assert_allclose(curve.measured[1:], tau[1:])
        np.testing.assert_allclose(curve.predicted[1:], 2.0 * column[1:, 0])
    residuals = measured - columns @ values
    expected = np.linalg.norm(residuals, axis=1) / np.linalg.norm(measured, axis=1)
    np.testing.assert_allclose(fit.errors, expected, rtol=1e-9)
    assert fit.overall == pytest.approx(np.linalg.norm(residuals) / np.linalg.norm(measured))


@pytest.mark.parametrize(
    ("overall", "complete", "word"),
    [(0.1, True, "good"), (0.1, False, "suspect"), (0.4, True, "bad"), (float("nan"), True, "bad")],
)
def test_the_verdict_follows_the_error_and_what_is_identified(overall, complete, word):
    fit = LoadFit(("a", "b"), np.array([0.5, 0.1]), overall, np.array([0.2, 0.3]))
    assert fit.verdict(complete, 0.3) == word
    findings = fit.findings(0.3)
    assert [finding.code for finding in findings] == (["load_fit_error"] if word == "bad" else [])
    assert all(finding.joints == ("a",) for finding in findings)
