# SPDX-License-Identifier: Apache-2.0
"""Objectives of a design: functions of the information matrix to be minimized, with their gradients.

All take the information matrix M, shape (p, p), of a motion (`Information.matrix`) or of several (a sum), plus prior
information (the inverse of a covariance). They return the value and its derivatives with respect to the entries of M, a
symmetric matrix that `Information.pull_back` propagates to the motion. Derivatives are computed only when requested, as
line searches need values only, and eigenvalues alone take less than half the time. If M is singular, the value is
infinite and the derivatives are 0. All objectives are logarithms, so that stopping tolerances and penalties do not
depend on the sizes of the parameters and of the noise.

References: Pukelsheim, Optimal Design of Experiments, 2006; Magnus, On differentiating eigenvalues and eigenvectors,
1985.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError

SINGULAR_RATIO = 1e-12
"""Eigenvalues of M relative to the largest below which they are rounding errors of sums of squares [-]."""


@dataclass(frozen=True)
class Score:
    """Value of an objective and a function that computes its gradient, by default with respect to M, shape (p, p)."""

    value: float
    gradient: Callable[[], Array]


Objective = Callable[[Array], Score]


def d_optimal(information: Array) -> Score:
    """-log det M / p: mean log variance along the axes of the confidence ellipsoid of the parameters.

    Differences between motions do not depend on units or on the choice of the base parameters.
    """
    inverse = _inverse(information)
    if inverse is None:
        return _singular(information)
    covariance, log_determinant = inverse
    return Score(-log_determinant / len(information), lambda: -covariance / len(information))


def a_optimal(information: Array, chosen: Integers | None = None, scale: ArrayLike = 1.0) -> Score:
    """Logarithm of the sum of the variances of the chosen parameters, each relative to its scale.

    Args:
        information: information matrix M, shape (p, p).
        chosen: indices of the parameters whose variances are included; all by default. All others are unknown too.
        scale: reference value for the error of each parameter in its unit, shape (p,), or one value for all.

    Raises:
        UsageError: a scale is not positive, or an index is out of range.
    """
    p = len(information)
    members = np.arange(p) if chosen is None else np.asarray(chosen, dtype=np.int64)
    if not len(members) or members.min() < 0 or members.max() >= p:
        raise UsageError(f"a_optimal: parameters {members.tolist()} are not among the {p} of the information")
    factors = _positive(scale, p, "a_optimal")[members]
    return l_optimal(information, np.eye(p)[members] / factors[:, None])


def l_optimal(information: Array, combinations: Array | None = None) -> Score:
    """Logarithm of the sum of the variances of linear combinations of the parameters (Atkinson et al. 2007, 10.6).

    Args:
        information: information matrix M, shape (p, p).
        combinations: coefficients of each combination, shape (k, p); by default the parameters themselves.
    """
    rows = np.eye(len(information)) if combinations is None else combinations
    inverse = _inverse(information)
    if inverse is None:
        return _singular(information)
    spread = rows @ inverse[0]
    total = float(np.sum(spread * rows))
    return Score(float(np.log(total)), lambda: -spread.T @ spread / total)


@dataclass(frozen=True, eq=False)
class ConditionNumber:
    """Logarithm of the condition number of the weighted, stacked base regressor.

    The gradient is discontinuous where the largest or the smallest singular value is a multiple one.

    Attributes:
        scale: units of the parameters as multiples of SI units, shape (p,), or one value for all. None: columns are
            scaled to unit norm, so that the value does not depend on units.
        sharpness: see `smooth_objective`; infinite for the exact value.
    """

    scale: ArrayLike | None = None
    sharpness: float = np.inf

    def __call__(self, information: Array) -> Score:
        """Evaluate the objective at an information matrix, shape (p, p).

        Raises:
            UsageError: a scale is not positive.
        """
        factors = None if self.scale is None else _positive(self.scale, len(information), "condition")
        spectrum = _spectrum(information, factors)
        if spectrum is None:
            return _singular(information)
        high, low = spectrum.mean(self.sharpness), spectrum.mean(-self.sharpness)
        return Score(0.5 * (high.value - low.value), lambda: 0.5 * (high.gradient() - low.gradient()))


condition = ConditionNumber()
"""Condition number with columns scaled to unit norm."""

condition_raw = ConditionNumber(1.0)
"""Condition number with columns in SI units."""


def weakest(information: Array, scale: ArrayLike | None = None) -> Score:
    """Logarithm of the largest variance of a combination of the parameters of unit length in their scales.

    The gradient is discontinuous where two combinations have the same largest variance.

    Args:
        information: information matrix M, shape (p, p).
        scale: reference value for the error of each parameter in its unit, shape (p,), or one value for all. By default
            the standard deviation with all other parameters known: the value then measures the correlation of the
            parameters (0 if uncorrelated) independently of the size of the motion.

    Raises:
        UsageError: a scale is not positive.
    """
    spectrum = _spectrum(information, None if scale is None else _positive(scale, len(information), "weakest"))
    if spectrum is None:
        return _singular(information)
    least = spectrum.mean(-np.inf)
    return Score(-least.value, lambda: -least.gradient())


def smooth_objective(objective: Objective, sharpness: float) -> Objective:
    """Replace an objective with discontinuous gradient by a smooth approximation; others are returned unchanged.

    The largest and the smallest eigenvalue are replaced by power means, which bound them from above and below and
    converge to them with increasing sharpness. At good designs many eigenvalues are equally small, and the gradient of
    the exact condition number is not suitable for a search.
    """
    return replace(objective, sharpness=sharpness) if isinstance(objective, ConditionNumber) else objective


OBJECTIVES: dict[str, Objective] = {
    "d_optimal": d_optimal,
    "condition": condition,
    "condition_raw": condition_raw,
    "a_optimal": a_optimal,
    "joint_inertias": l_optimal,
    "weakest": weakest,
}
"""Objectives by their name in configuration files; `d_optimal` is the default."""


def _singular(information: Array) -> Score:
    """Score of a singular M."""
    return Score(float("inf"), lambda: np.zeros_like(information))


def _positive(scale: ArrayLike, p: int, name: str) -> Array:
    values = np.asarray(scale, dtype=np.float64)
    if values.shape not in ((), (p,)) or not np.all((values > 0.0) & np.isfinite(values)):
        raise UsageError(f"{name}: scales {values} must be positive, one for each of the {p} parameters or one for all")
    return np.broadcast_to(values, (p,))


def _norms(information: Array) -> Array | None:
    """Column norms of the weighted, stacked base regressor, shape (p,); None if a column is 0."""
    squares = information.diagonal()
    return np.sqrt(squares) if np.all(squares > 0.0) and np.all(np.isfinite(information)) else None


def _inverse(information: Array) -> tuple[Array, float] | None:
    """M^-1 and log det M; None if M is numerically singular."""
    norms = _norms(information)
    if norms is None:
        return None
    factor, failed = lapack.dpotrf(information / np.outer(norms, norms), lower=1)
    inverse, _ = (None, failed) if failed else lapack.dpotri(factor, lower=1)
    # the trace of the inverse is at least 1 / smallest eigenvalue, and no more than p times that
    if inverse is None or not np.trace(inverse) * SINGULAR_RATIO < len(information):
        return None
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())) + np.sum(np.log(norms)))
    return inverse / np.outer(norms, norms), log_determinant


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvalues of M with scaled rows and columns.

    Attributes:
        values: eigenvalues, ascending, shape (p,).
        scaled: scaled matrix, shape (p, p).
        factors: scale factors, shape (p,).
        normed: whether the factors make the diagonal 1, and thus depend on M.
    """

    values: Array
    scaled: Array
    factors: Array
    normed: bool

    @cached_property
    def vectors(self) -> Array:
        """Eigenvectors as columns, multiplied by the factors, shape (p, p)."""
        return np.asarray(self.factors[:, None] * np.linalg.eigh(self.scaled)[1])

    def gradient(self, number: int) -> Array:
        """Derivatives of an eigenvalue with respect to the entries of M."""
        return self._gradient(np.arange(len(self.values)) == number)

    def mean(self, power: float) -> Score:
        """Logarithm of the power mean of the eigenvalues, without the factor of their number.

        For the power inf or -inf this is the logarithm of the largest or the smallest eigenvalue.
        """
        if np.isinf(power):
            number = len(self.values) - 1 if power > 0.0 else 0
            extreme = self.values[number]
            return Score(float(np.log(extreme)), lambda: self.gradient(number) / extreme)
        raised = power * np.log(self.values)
        largest = float(raised.max())
        shares = np.exp(raised - largest)
        total = float(shares.sum())
        return Score((largest + np.log(total)) / power, lambda: self._gradient(shares / total / self.values))

    def _gradient(self, weights: Array) -> Array:
        """Derivatives with respect to the entries of M, from those with respect to the eigenvalues, shape (p,)."""
        slope = (self.vectors * weights) @ self.vectors.T
        if self.normed:
            slope[np.diag_indices_from(slope)] -= self.vectors**2 @ (weights * self.values)
        return np.asarray(slope)


def _spectrum(information: Array, factors: Array | None) -> _Spectrum | None:
    """Spectrum with given factors, or with those that make the diagonal 1; None if M is numerically singular."""
    norms = _norms(information)
    if norms is None:
        return None
    used = 1.0 / norms if factors is None else factors
    scaled = information * np.outer(used, used)
    # the lower triangle: with the upper one, small eigenvalues of badly scaled matrices lose digits
    values, _, failed = lapack.dsyev(scaled, compute_v=0, lower=1)
    if failed or not values[0] > SINGULAR_RATIO * values[-1]:
        return None
    return _Spectrum(values, scaled, used, factors is None)
