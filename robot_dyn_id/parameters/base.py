# SPDX-License-Identifier: Apache-2.0
"""Base (minimal) parameters and their estimate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.parameters.rules import AGREEMENT, refused, rule

MOST_COLUMNS = 2000
"""Greatest number of columns."""

MOST_BASE = 1000
"""Greatest number of base parameters."""

LONGEST_EXPRESSION = 48 * MOST_COLUMNS
"""Greatest length of an expression [characters]; a column adds its coefficient (12), its name, and a sign."""


@dataclass(frozen=True)
class BaseParameters:
    """The minimal set of p parameters of a regressor with c columns: 10 per moving body, then the linear terms.

    Attributes:
        names: each is named after its independent column, shape (p,).
        expressions: the combination of columns' parameters that it is, `Izz1 + 0.1296 m2`.
        units: units.
        independent: the independent columns, ascending, shape (p,).
        mapping: base = mapping @ full, shape (p, c).
        column_names: names of the c columns.
    """

    names: tuple[str, ...] = field(metadata=rule(most=MOST_BASE, unique=True))
    expressions: tuple[str, ...] = field(repr=False, metadata=rule("base", longest=LONGEST_EXPRESSION))
    units: tuple[str, ...] = field(repr=False, metadata=rule("base"))
    independent: Integers = field(repr=False, metadata=rule("base"))
    mapping: Array = field(repr=False, metadata=rule("base", "columns", finite=True))
    column_names: tuple[str, ...] = field(repr=False, metadata=rule(most=MOST_COLUMNS, unique=True))

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Names of the columns that no torque depends on."""
        used = np.any(self.mapping != 0.0, axis=0)
        return tuple(name for name, flag in zip(self.column_names, used, strict=True) if not flag)

    @property
    def combined(self) -> tuple[str, ...]:
        """Names of the columns that are identifiable only in combination with others."""
        crowded = np.count_nonzero(self.mapping, axis=1) > 1
        combined = np.any(self.mapping[crowded] != 0.0, axis=0)
        return tuple(name for name, flag in zip(self.column_names, combined, strict=True) if flag)

    def only(self, chosen: Integers) -> BaseParameters:
        """Select some of the parameters by their indices; the others are assumed to be known."""
        names, expressions, units = (
            tuple(values[i] for i in chosen) for values in (self.names, self.expressions, self.units)
        )
        mapping = self.mapping[chosen]
        return replace(
            self,
            names=names,
            expressions=expressions,
            units=units,
            independent=self.independent[chosen],
            mapping=mapping,
        )

    def check(self) -> None:
        """Refuse combinations that are not named after independent columns.

        The identity on the independent columns makes them distinct and the rank of the mapping full.
        """
        columns = self.independent
        if not np.all((columns >= 0) & (columns < len(self.column_names))):
            raise refused("base.independent names a column that does not exist")
        if np.abs(self.mapping[:, columns] - np.eye(len(columns))).max() > AGREEMENT:
            raise refused("base.mapping is not the identity on independent")
        for number, column in enumerate(columns):
            if self.names[number] != self.column_names[column]:
                raise refused(f"{self.names[number]} is not the name of its column, {self.column_names[column]}")


@dataclass(frozen=True)
class BaseEstimate:
    """Estimate of p base parameters, SI.

    Attributes:
        values: values, shape (p,).
        standard_deviations: standard deviations (1 sigma); inf if not identifiable from the data.
        interval_lows: lower ends of the 95 % intervals of the values, shape (p,); empty if the estimator has none. They
            are not symmetric where a sign or what other parameters may take over limits a parameter: friction that was
            estimated as zero has an interval from zero on.
        interval_highs: upper ends of these intervals, shape (p,); empty if the estimator has none.
        status: `good`, `weak` or `not excited`, for each base parameter.
        covariance: covariance of the values, shape (p, p).
        condition_number: condition number of the regressor of the training data.
        condition_number_scaling: `columns` or `none`.
        prior_strength: information of the prior on single links that the covariance contains, see `Consistent`; 0
            without a prior; NaN: not known.
    """

    values: Array = field(metadata=rule("base", finite=True))
    standard_deviations: Array = field(metadata=rule("base", least=0.0))
    interval_lows: Array = field(repr=False, metadata=rule("base", optional=True))
    interval_highs: Array = field(repr=False, metadata=rule("base", optional=True))
    status: tuple[str, ...] = field(metadata=rule("base", words=("good", "weak", "not excited")))
    covariance: Array = field(repr=False, metadata=rule("base", "base"))
    condition_number: float = field(metadata=rule())
    condition_number_scaling: str = field(metadata=rule(words=("columns", "none")))
    prior_strength: float = field(metadata=rule(finite=True, least=0.0, nan=True))

    def check(self) -> None:
        """Refuse intervals, a condition number or a covariance that no estimator gives."""
        if len(self.interval_lows) != len(self.interval_highs):
            raise refused("estimate.interval_lows and interval_highs have different lengths")
        if not np.all(self.interval_lows <= self.interval_highs):
            raise refused("estimate.interval_lows holds NaN, or is greater than interval_highs")
        if not self.condition_number >= 1.0 - AGREEMENT:
            raise refused(f"estimate.condition_number is {self.condition_number}, expected 1 or more")
        self._check_covariance()

    def _check_covariance(self) -> None:
        """Refuse a covariance that is not symmetric, semidefinite and consistent with the finite deviations."""
        known = np.isfinite(self.standard_deviations)
        variance = np.diag(self.covariance)
        if np.isnan(self.covariance).any() or not (variance >= 0.0).all():
            raise refused("estimate.covariance holds NaN, or a variance below 0")
        sigma = self.standard_deviations[known]
        block = self.covariance[np.ix_(known, known)]
        if not np.isfinite(block).all() or np.any(np.abs(np.sqrt(variance[known]) - sigma) > AGREEMENT * sigma):
            raise refused("estimate.covariance does not have the squares of standard_deviations on its diagonal")
        scale = np.where(sigma > 0.0, sigma, 1.0)
        correlation = block / scale / scale[:, None]
        if np.any(np.abs(correlation - correlation.T) > AGREEMENT):
            raise refused("estimate.covariance is not symmetric")
        if np.any(np.linalg.eigvalsh(correlation) < -AGREEMENT * max(len(sigma), 1)):
            raise refused("estimate.covariance is not positive semidefinite")
