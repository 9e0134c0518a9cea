# SPDX-License-Identifier: Apache-2.0
"""Reduction of friction to the terms that a motion is designed for.

Parallel elements of presliding friction, several smoothing widths and powers of the speed have nearly the same columns:
the information about their shares would dominate a design that is to excite bodies and friction levels. A motion is
designed for their sums, see `Term.design_term`; terms that depend on other signals than the motion are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Coordinate, Term
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import BaseParameters, ParameterSet, Ranges
from robot_dyn_id.signals.torque_shares import compute_torque_shares


@dataclass(frozen=True)
class ReducedRegressor:
    """Regressor of the terms that a motion is designed for.

    Attributes:
        original: regressor with all terms, c columns.
        regressor: robot and reduced terms, r columns.
        sums: the reduced columns' parameters are sums @ parameters of the c columns, shape (r, c).
        left_out: names of terms that no column stands for.
    """

    original: Regressor
    regressor: Regressor
    sums: Array
    left_out: tuple[str, ...]

    @classmethod
    def from_regressor(cls, regressor: Regressor) -> ReducedRegressor:
        """Reduce the terms of a regressor."""
        bodies = 10 * len(regressor.model.body_names)
        kept = [(at, term) for at, term in regressor.terms if term.design_term == term]
        places = {(at.name, name): (at, term) for at, term in kept for name in (term.name, *term.includes)}
        for at, term in regressor.terms:
            design = term.design_term
            if design is not None and (at.name, design.name) not in places:
                places[at.name, design.name] = (at, design)
                kept.append((at, design))
        reduced = regressor.with_terms(kept)
        first: dict[tuple[Coordinate, Term], int] = {}
        for number, column in enumerate(reduced.term_columns):
            first.setdefault((column.coordinate, column.term), bodies + number)
        sums = np.zeros((len(reduced.names), len(regressor.names)))
        sums[:bodies, :bodies] = np.eye(bodies)
        for number, column in enumerate(regressor.term_columns):
            design = column.term.design_term
            if design is not None:
                own = first[places[column.coordinate.name, design.name]]
                sums[own + (column.index if design == column.term else 0), bodies + number] = 1.0
        missing = dict.fromkeys(term.name for _, term in regressor.terms if term.design_term is None)
        return cls(regressor, reduced, sums, tuple(missing))


@dataclass(frozen=True)
class EarlierFit:
    """Earlier identification, as base parameters of a design.

    Attributes:
        base: base parameters of the design, p.
        regressor: the reduced regressor that they belong to.
        values: their values, SI, shape (p,).
        standard_deviations: infinite for those that were not identifiable, shape (p,).
        covariance: covariance of the others, shape (p, p).
        trained: ranges of the training motion.
    """

    base: BaseParameters
    regressor: Regressor
    values: Array
    standard_deviations: Array
    covariance: Array
    trained: Ranges

    @classmethod
    def from_parameters(cls, prior: ParameterSet, reduced: ReducedRegressor, base: BaseParameters) -> EarlierFit:
        """Express a parameter set in the base parameters of a design.

        Args:
            prior: the parameter set.
            reduced: reduction of its regressor.
            base: base parameters of the reduced regressor.

        Raises:
            InputError: a parameter set with other columns.
        """
        if reduced.original.names != prior.base.column_names:
            raise InputError(
                "the earlier identification has other parameters than this design: use the same robot, joints and "
                "terms (--config)"
            )
        known = np.isfinite(prior.estimate.standard_deviations)
        full = np.concatenate([prior.bodies.standard_parameters, prior.terms.values])
        slopes = base.mapping @ reduced.sums[:, prior.base.independent]
        covariance = slopes[:, known] @ prior.estimate.covariance[np.ix_(known, known)] @ slopes[:, known].T
        lost = np.abs(slopes[:, ~known]).max(axis=1, initial=0.0) > NEGLIGIBLE_SLOPE
        deviations = np.where(lost, np.inf, np.sqrt(np.maximum(np.diag(covariance), 0.0)))
        values = base.mapping @ reduced.sums @ full
        return cls(base, reduced.regressor, values, deviations, covariance, prior.ranges)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.base.names

    @property
    def information(self) -> Array:
        """Information matrix: inverse of the covariance, shape (p, p), with zeros for what was not identifiable."""
        known = np.isfinite(self.standard_deviations) & (self.standard_deviations > 0.0)
        information = np.zeros_like(self.covariance)
        information[np.ix_(known, known)] = np.linalg.pinv(self.covariance[np.ix_(known, known)], hermitian=True)
        return information

    @property
    def torque_shares(self) -> Array:
        """See `signals.torque_shares`, shape (p,)."""
        return compute_torque_shares(
            self.regressor, self.base.independent, self.values, self.standard_deviations, self.trained
        )


NEGLIGIBLE_SLOPE = 1e-9
"""Slope of a base parameter by one of the parameter set below which it does not depend on it."""
