# SPDX-License-Identifier: Apache-2.0
"""Estimation that never returns what plain least squares would not: failed estimators are replaced, and reported."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators import Estimate, Estimator, WeightedLeastSquares
from robot_dyn_id.estimators.factors import Factors, Grams
from robot_dyn_id.estimators.link_cost import accumulate_blocks
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.findings import Definition, Section
from robot_dyn_id.identification.fit.noise_directions import fit_excited

ESTIMATOR_REPLACED = Definition(
    "estimator_replaced",
    Section.ESTIMATES,
    "warning",
    "The estimator did not converge, or its estimate is far worse than that of least squares, which is used instead.",
    "change its options, or fix the constants of the terms that these data do not determine",
)

MAX_TRAINING_RATIO = 2.0
"""Ratio of the training errors of all joints to those of least squares above which an estimate has failed."""

MAX_HELD_OUT_RATIO = 1.2
"""Ratio of the errors on held-out blocks with the constants of an estimate to those with the given ones above which the
constants have failed."""

MAX_TORQUE_RATIO = 20.0
"""Ratio of the torque of a joint's terms to the RMS of its torque above which constants have failed."""

SPEEDS = 200
"""Number of speeds of each sign at which the terms are evaluated, from 1e-4 of the maximum speed."""

TEMPERATURE = 25.0
"""Temperature at which terms are evaluated [degrees Celsius]."""

MIN_EIGENVALUE_RATIO = 1e-12
"""Eigenvalues of unit-diagonal normal matrices below this share of the largest are rounding."""


def fit_or_fall_back(estimator: Estimator, problem: LinearProblem) -> tuple[Estimate, Estimator]:
    """Fit an estimator; if it fails, weighted least squares with a finding that gives the reason.

    It fails if it does not converge, if its training errors are far above those of least squares (except where a prior
    biases it by intention), or if constants that it has chosen predict held-out blocks worse than the given ones.

    Args:
        estimator: the estimator.
        problem: the problem.

    Returns:
        The estimate, and the estimator that made it, which repeats it in the same directions, see `fit_excited`.

    Raises:
        InputError: too few rows.
    """
    plain = WeightedLeastSquares()
    if isinstance(estimator, WeightedLeastSquares):
        return fit_excited(estimator, problem)
    try:
        estimate, used = fit_excited(estimator, problem)
        reason = find_failure(problem, estimate, biased=estimator.uses_prior or bool(estimate.regularized_towards))
    except ConvergenceError as error:
        reason = str(error)
    if not reason:
        return estimate, used
    fallback, used = fit_excited(plain, problem)
    message = f"estimator {estimator.name} failed, weighted least squares is used instead: {reason}"
    finding = ESTIMATOR_REPLACED.found(message)
    return replace(fallback, findings=(*fallback.findings, finding)), used


def find_failure(problem: LinearProblem, estimate: Estimate, *, biased: bool) -> str:
    """Reason why an estimate is worse than that of weighted least squares; empty if it is not.

    Args:
        problem: the problem that was solved.
        estimate: its estimate.
        biased: whether the estimate may have larger training errors because a prior attracts it.
    """
    if biased and estimate.regressor is None:
        return ""
    factors = Factors.from_problem(problem)
    _, plain, weights = solve_reweighted(factors)
    counts = factors.counts
    if not biased:
        ours = float(np.sqrt(np.sum(counts * estimate.residual_rms**2)))
        theirs = float(np.sqrt(factors.squared_residuals(plain.values).sum()))
        if not ours <= MAX_TRAINING_RATIO * theirs + np.finfo(float).eps * np.linalg.norm(_torques(factors)):
            return f"its training errors are {ours / max(theirs, 1e-300):.3g} times as large"
    if estimate.regressor is not None and isinstance(problem, RegressorProblem):
        chosen = problem.with_columns(estimate.regressor, problem.columns)
        ratio = _held_out_error(chosen, counts, weights) / max(_held_out_error(problem, counts, weights), 1e-300)
        if not ratio <= MAX_HELD_OUT_RATIO:
            return f"held-out blocks are predicted {ratio:.3g} times worse with its constants than with the given ones"
        return _find_excess(chosen, estimate, np.array([_rms(factors, joint) for joint in range(len(counts))]))
    return ""


def _find_excess(problem: RegressorProblem, estimate: Estimate, rms: Array) -> str:
    """Joint whose terms alone reach many times its torque somewhere within its speeds; empty if there is none.

    Constants between the samples' speeds let a column hide from all rows, with a parameter of any size.
    """
    regressor, joints = problem.regressor, len(problem.joint_names)
    inertial = problem.columns < 10 * len(regressor.model.body_names)
    values = np.where(inertial, 0.0, estimate.values)
    grid = np.geomspace(1e-4, 1.0, SPEEDS)
    shares = np.concatenate([-grid[::-1], grid])
    for joint, (name, speed) in enumerate(zip(problem.joint_names, problem.max_speeds().tolist(), strict=True)):
        dq = np.zeros((joints, len(shares)))
        dq[joint] = shares * speed
        zero = np.zeros_like(dq)
        motion = Motion(zero, dq, zero, temperature=np.full_like(dq, TEMPERATURE))
        largest = float(np.abs(regressor.torque(motion, values, problem.columns)[joint]).max())
        if not largest <= MAX_TORQUE_RATIO * rms[joint]:
            return f"its friction on joint {name} reaches {largest:.3g}, with torques of {rms[joint]:.3g} RMS"
    return ""


def _rms(factors: Factors, joint: int) -> float:
    """RMS of a joint's torque [N m or N]."""
    return float(np.linalg.norm(factors.triangles[joint][:, -1]) / np.sqrt(max(1, int(factors.counts[joint]))))


def _torques(factors: Factors) -> Array:
    """Torque columns of the compressed rows."""
    return np.concatenate([triangle[:, -1] for triangle in factors.triangles])


def _held_out_error(problem: LinearProblem, counts: Integers, weights: Array) -> float:
    """Root of the sum of squared errors on blocks, each predicted by least squares of the others [N m or N]."""
    blocks = accumulate_blocks(problem, counts)
    totals = [block.total(weights) for block in blocks]
    whole = reduce(add, totals)
    return float(np.sqrt(sum(_square(block, whole - own) for block, own in zip(blocks, totals, strict=True))))


def _square(block: Grams, gram: Array) -> float:
    """Sum of squared errors on a block of the solution of the other blocks."""
    size = np.sqrt(np.maximum(np.diag(gram)[:-1], 1e-300))
    values, vectors = np.linalg.eigh(gram[:-1, :-1] / size / size[:, None])
    shown = values > MIN_EIGENVALUE_RATIO * values[-1]
    solution = vectors[:, shown] @ ((vectors[:, shown].T @ (gram[:-1, -1] / size)) / values[shown]) / size
    return float(block.squared_residuals(solution).sum())
