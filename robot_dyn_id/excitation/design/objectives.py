# SPDX-License-Identifier: Apache-2.0
"""What makes one motion better than another: figures of the information matrix, to be minimised, with their gradients.

All take M, shape (p, p): the information of a motion (`Information.matrix`) or of several (a sum), with what is known
from earlier recordings added (the inverse of their covariance). They return the figure and its derivatives by the
entries of M, a symmetric matrix that `Information.pull_back` continues with; these only when they are asked for: line
searches want values, and eigenvalues alone cost less than half. Where M leaves a combination of parameters open, the
figure is infinite, and the derivatives, which would show no way, are 0. All figures are logarithms: searches end where
a figure changes by less than some number, and weigh it against what a motion is beyond its limits, whatever the sizes
of the parameters and of the noise.

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
from scipy.special import logsumexp, softmax

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError

SINGULAR = 1e-12
"""Eigenvalues of M below this share of the largest are rounding: sums of squares show no more."""


@dataclass(frozen=True)
class Score:
    """A figure, and a function that works out its derivatives: by the entries of M, shape (p, p), unless told."""

    value: float
    slope: Callable[[], Array]


Objective = Callable[[Array], Score]


def d_optimal(information: Array) -> Score:
    """-log det M / p: the mean logarithm of the variances along the axes of the parameters' confidence ellipsoid.

    Differences between motions depend neither on units nor on the choice of the base parameters.
    """
    known = _inverse(information)
    if known is None:
        return _open(information)
    covariance, log_determinant = known
    return Score(-log_determinant / len(information), lambda: -covariance / len(information))


def a_optimal(information: Array, chosen: Integers | None = None, scale: ArrayLike = 1.0) -> Score:
    """Logarithm of the sum of the variances of the chosen parameters, each relative to its scale.

    Args:
        information: M.
        chosen: numbers of the parameters that count; all by default. The others are unknown too.
        scale: what an error of a parameter is compared with, in its unit: one for each, shape (p,), or one for all.

    Raises:
        UsageError: a scale that is not positive, or parameters that do not exist.
    """
    p = len(information)
    members = np.arange(p) if chosen is None else np.asarray(chosen, dtype=np.int64)
    if not len(members) or members.min() < 0 or members.max() >= p:
        raise UsageError(f"a_optimal: parameters {members.tolist()} are not among the {p} of the information")
    factors = _positive(scale, p, "a_optimal")[members]
    known = _inverse(information)
    if known is None:
        return _open(information)
    spread = known[0][members] / factors[:, None]
    total = float(np.sum(spread[:, members].diagonal() / factors))
    return Score(float(np.log(total)), lambda: -spread.T @ spread / total)


@dataclass(frozen=True, eq=False)
class ConditionNumber:
    """Logarithm of the condition number of the weighted, stacked base regressor.

    The derivatives jump where the largest or the smallest singular value is a double one.

    Attributes:
        scale: units that the parameters are in, as multiples of those of SI: one for each, shape (p,), or one for all.
            None: columns scaled to unit norm, which no unit changes.
        sharpness: see `softened`; infinite for the exact figure.
    """

    scale: ArrayLike | None = None
    sharpness: float = np.inf

    def __call__(self, information: Array) -> Score:
        """The figure and its derivatives.

        Raises:
            UsageError: a scale that is not positive.
        """
        factors = None if self.scale is None else _positive(self.scale, len(information), "condition")
        spectrum = _spectrum(information, factors)
        if spectrum is None:
            return _open(information)
        high, low = spectrum.mean(self.sharpness), spectrum.mean(-self.sharpness)
        return Score(0.5 * (high.value - low.value), lambda: 0.5 * (high.slope() - low.slope()))


condition = ConditionNumber()
"""With columns scaled to unit norm."""

condition_raw = ConditionNumber(1.0)
"""With columns as they are: it depends on units."""


def weakest(information: Array, scale: ArrayLike | None = None) -> Score:
    """Logarithm of the largest variance that a combination of the parameters, of unit length in their scales, has.

    The derivatives jump where two combinations are equally weak.

    Args:
        information: M.
        scale: what an error of a parameter is compared with, in its unit: one for each, shape (p,), or one for all. By
            default the standard deviation that it would have were all others known: then the figure tells how badly the
            motion confuses parameters with one another, 0 at best, and not how large the motion is.

    Raises:
        UsageError: a scale that is not positive.
    """
    spectrum = _spectrum(information, None if scale is None else _positive(scale, len(information), "weakest"))
    if spectrum is None:
        return _open(information)
    least = spectrum.mean(-np.inf)
    return Score(-least.value, lambda: -least.slope())


def softened(objective: Objective, sharpness: float) -> Objective:
    """An objective without the jumps of its derivatives, for a search that follows them; others as they are.

    The largest and the smallest eigenvalue give way to power means of all, which lie above and below them, the closer
    the larger the sharpness. Where a design is good, many combinations of parameters are equally weak: there the exact
    condition number has no gradient that a search could follow.
    """
    return replace(objective, sharpness=sharpness) if isinstance(objective, ConditionNumber) else objective


OBJECTIVES: dict[str, Objective] = {
    "d_optimal": d_optimal,
    "condition": condition,
    "condition_raw": condition_raw,
    "a_optimal": a_optimal,
    "weakest": weakest,
}
"""Objectives by the name that configurations use; `d_optimal` is the default of designs."""


def _open(information: Array) -> Score:
    """Of an M that leaves a combination of parameters open."""
    return Score(float("inf"), lambda: np.zeros_like(information))


def _positive(scale: ArrayLike, p: int, name: str) -> Array:
    values = np.asarray(scale, dtype=np.float64)
    if values.shape not in ((), (p,)) or not np.all((values > 0.0) & np.isfinite(values)):
        raise UsageError(f"{name}: scales {values} must be positive, one for each of the {p} parameters or one for all")
    return np.broadcast_to(values, (p,))


def _norms(information: Array) -> Array | None:
    """Norms of the columns of the weighted, stacked base regressor; None where a parameter is not seen at all."""
    squares = information.diagonal()
    return np.sqrt(squares) if np.all(squares > 0.0) and np.all(np.isfinite(information)) else None


def _inverse(information: Array) -> tuple[Array, float] | None:
    """M^-1 and log det M; None where it has none to rounding."""
    norms = _norms(information)
    if norms is None:
        return None
    factor, failed = lapack.dpotrf(information / np.outer(norms, norms), lower=1)
    inverse, _ = (None, failed) if failed else lapack.dpotri(factor, lower=1)
    # the trace of the inverse is at least 1 / smallest eigenvalue, and no more than p times that
    if inverse is None or not np.trace(inverse) * SINGULAR < len(information):
        return None
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())) + np.sum(np.log(norms)))
    return inverse / np.outer(norms, norms), log_determinant


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvalues of M, its rows and columns scaled by factors.

    Attributes:
        values: ascending, shape (p,).
        scaled: M with the factors, shape (p, p).
        factors: shape (p,).
        normed: whether the factors are those that make the diagonal 1, and change with M.
    """

    values: Array
    scaled: Array
    factors: Array
    normed: bool

    @cached_property
    def vectors(self) -> Array:
        """As columns, each times the factors, shape (p, p)."""
        return np.asarray(self.factors[:, None] * np.linalg.eigh(self.scaled)[1])

    def slope(self, number: int) -> Array:
        """Derivatives of an eigenvalue by the entries of M."""
        return self._slope(np.arange(len(self.values)) == number)

    def mean(self, power: float) -> Score:
        """Logarithm of the eigenvalues' power sum, divided by the power, and its derivatives by the entries of M.

        That is the logarithm of the largest eigenvalue for an infinite power, of the smallest for minus infinity.
        """
        if np.isinf(power):
            number = len(self.values) - 1 if power > 0.0 else 0
            extreme = self.values[number]
            return Score(float(np.log(extreme)), lambda: self.slope(number) / extreme)
        raised = power * np.log(self.values)
        return Score(float(logsumexp(raised) / power), lambda: self._slope(softmax(raised) / self.values))

    def _slope(self, weights: Array) -> Array:
        """Derivatives by the entries of M of a number, from those by the eigenvalues, shape (p,)."""
        slope = (self.vectors * weights) @ self.vectors.T
        if self.normed:
            slope[np.diag_indices_from(slope)] -= self.vectors**2 @ (weights * self.values)
        return np.asarray(slope)


def _spectrum(information: Array, factors: Array | None) -> _Spectrum | None:
    """With the factors given, or those that make the diagonal 1; None where M is singular to rounding."""
    norms = _norms(information)
    if norms is None:
        return None
    used = 1.0 / norms if factors is None else factors
    scaled = information * np.outer(used, used)
    # from the upper triangle, matrices whose diagonal spans decades lose digits of their small eigenvalues
    values, _, failed = lapack.dsyev(scaled, compute_v=0, lower=1)
    if failed or not values[0] > SINGULAR * values[-1]:
        return None
    return _Spectrum(values, scaled, used, factors is None)
