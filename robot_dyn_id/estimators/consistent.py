# SPDX-License-Identifier: Apache-2.0
"""Physically consistent estimate: weighted least squares of all parameters within what a real robot can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.base_parameters import combine_columns
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import LinearProblem, RegressorProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.bounded_intervals import NORMAL, BoundedNormal
from robot_dyn_id.estimators.consistent_fit import FLOOR, ConsistentFit, fit_consistent
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Method, compress_rows
from robot_dyn_id.estimators.link_cost import LinkCost, accumulate_blocks, cross_validate_links
from robot_dyn_id.estimators.sandwich import compute_score_covariance
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.options import CheckedOptions, Order, Range
from robot_dyn_id.uses import LIMITED

LINKS_CONTRADICTED = Definition(
    "links_contradicted",
    Section.ESTIMATES,
    "warning",
    "Physically consistent links predict held-out blocks more than 2 % worse than bodies that cannot exist, with "
    "the same columns and signs: signals or kinematics contradict every real robot.",
    "check the units, signs and delays of the efforts and the kinematics of the URDF, or record longer",
    lowers=dict.fromkeys(("computed_torque", "forward_simulation"), LIMITED),
)

DEFAULT_STRENGTH = 1.0
"""Strength of the prior where none has been chosen."""

MAX_INFLATION = 30.0
"""Variance inflation factor of a friction column by the others of its joint above which they nearly replace it."""

RIDGE = 1e-9
"""Added to unit diagonals that are inverted, so that columns may be equal."""

MAX_COST_OF_LINKS = 1.02
"""Ratio of held-out errors with and without consistent links above which the data contradict every real robot."""


@dataclass(frozen=True)
class Consistent(CheckedOptions):
    """All standard parameters: every body a real one, friction and rotor inertia not negative.

    Least squares with one weight per joint and a pull of the bodies towards those of the URDF, or of its geometry where
    it has no masses; an earlier parameter set pulls all parameters that it knows. Intervals are those of the profile of
    the likelihood within the signs, see `bounded_intervals`; they contain the prior's uncertainty.

    Attributes:
        strength: information of the prior: 1 takes an error as large as a body's scales (mass, mass times length, mass
            times length squared) for one standard deviation of independent residuals; 0 only determines what the data
            do not; None: `DEFAULT_STRENGTH`, an identification chooses it by cross-validation.
        size: factor of the bodies of the prior: masses of a URDF that were not weighed, ratings and efforts
            in other units say nothing about it; an identification chooses between 1 and what the efforts show.
        floor: minimum pseudo-inertia of a body, as a share of the prior's (in the Loewner order).
        weights: weight of each joint; empty: 1 / RMS of the residuals of `weighted`.
        signed: names of columns that may be negative although they are friction or inertia.
        autoregressive_order: AR order of the noise model; 0: white residuals.
        method: `qr` or `gram`.
    """

    strength: Annotated[float | None, Range(0.0)] = None
    size: Annotated[float, Range(0.0, includes_low=False)] = 1.0
    floor: Annotated[float, Range(0, 1, includes_low=False, includes_high=False)] = FLOOR
    weights: tuple[float, ...] = ()
    signed: tuple[str, ...] = ()
    autoregressive_order: Order = 6
    method: Method = "qr"

    name: ClassVar[str] = "consistent"
    uses_prior: ClassVar[bool] = True

    @property
    def known_strength(self) -> float:
        """The strength; `DEFAULT_STRENGTH` where none has been chosen."""
        return DEFAULT_STRENGTH if self.strength is None else self.strength

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: a problem that is not one of a regressor, or weights of another number of joints.
            InputError: fewer rows than parameters.
        """
        if not isinstance(problem, RegressorProblem):
            raise UsageError("consistent: the problem has no robot: use another estimator")
        if self.weights and len(self.weights) != len(problem.joint_names):
            raise UsageError(f"consistent: {len(self.weights)} weights for {len(problem.joint_names)} joints")
        factors = compress_rows(problem, self.method)
        ordinary, plain, weights = solve_reweighted(factors)
        if self.weights:
            weights = np.array(self.weights)
            plain = factors.solve(weights)
        task = ConsistentTask.from_problem(problem, factors.stack(weights), self)
        found = task.fit()
        values = task.mapping @ found.values
        noise, middle = compute_score_covariance(problem, values, plain.inverse, weights, self.autoregressive_order)
        information = np.sum(factors.stack(weights)[:, :-1] ** 2, axis=0)
        intervals, covariance = task.find_uncertainty(found, middle, information)
        solution = replace(ordinary, values=values)
        estimate = Estimate.from_solution(problem.names, factors, ordinary, solution, covariance, noise)
        deviations = np.sqrt(np.diag(plain.inverse @ middle @ plain.inverse))
        return replace(
            estimate,
            regularized_towards=f"{describe_prior_source(task, problem.prior)}, strength {self.known_strength:g}",
            prior_strength=found.strength / self.size**2,  # relative to bodies of the size that the URDF states
            full=found.values,
            intervals=np.where(np.isinf(estimate.standard_deviations)[:, None], task.unknown, intervals),
            unconstrained=plain.values,
            unconstrained_deviations=np.where(task.find_replaceable(), np.inf, deviations),
            findings=(*task.prior.findings, *report_cost_of_links(problem, task, found, factors, weights)),
        )

    def find_nearest(
        self, prior: Prior, regressor: Regressor, root: Array, values: Array
    ) -> tuple[Array, tuple[Finding, ...]]:
        """Find the physically consistent parameters nearest to given base parameters.

        Args:
            prior: prior of the robot.
            regressor: robot and terms.
            root: R of the information R' R of the base parameters, shape (p, p).
            values: base parameters, shape (p,).

        Returns:
            All parameters, shape (c,), and a finding about each body of the prior that had to be changed.

        Raises:
            InputError: a prior without masses.
        """
        bodies = BodyPrior.from_model(regressor.model)
        rows = np.column_stack([root @ prior.mapping, root @ values])
        found = fit_consistent(
            rows.T @ rows, bodies, flag_not_negative(regressor), self.known_strength, floor=self.floor
        )
        return found.values, bodies.findings


@dataclass(frozen=True)
class ConsistentTask:
    """All that a physically consistent fit needs.

    Attributes:
        gram: Gram matrix of the weighted rows of all columns, and of the rows of an earlier set, (c + 1, c + 1).
        earlier: information that an earlier set contributes to it, shape (c, c).
        prior: prior bodies.
        mapping: base = mapping @ full, shape (p, c).
        bounded: mask of the terms that are not negative, shape (c - 10 b,).
        strength: information of the prior.
        floor: least pseudo-inertia of a body, as a share of the prior's.
        names: names of the bodies.
        joints: number of the coordinate that each term acts on, shape (c - 10 b,).
    """

    gram: Array
    earlier: Array
    prior: BodyPrior
    mapping: Array
    bounded: Mask
    strength: float
    floor: float
    names: tuple[str, ...]
    joints: Integers

    @classmethod
    def from_problem(cls, problem: RegressorProblem, stack: Array, options: Consistent) -> ConsistentTask:
        """Make the task of a problem.

        Args:
            problem: the problem.
            stack: its weighted rows [W tau], compressed, shape (any, p + 1).
            options: options of the estimator.
        """
        regressor, prior = problem.regressor, problem.prior
        mapping = combine_columns(regressor, problem.columns) if prior is None else prior.mapping
        columns = mapping.shape[1]
        rows = np.column_stack([stack[:, :-1] @ mapping, stack[:, -1]])
        strength, earlier = options.known_strength, np.zeros((columns, columns))
        bodies = BodyPrior.from_model(regressor.model)
        if prior is not None and prior.individual:
            bodies = BodyPrior.from_bodies(prior.source, prior.values[: bodies.bodies.size], regressor.model)
        bodies = bodies.scaled(options.size)
        if prior is not None and not prior.individual:
            known = np.sqrt(strength) * prior.rows(1.0)
            known = np.column_stack([known[:, :-1] @ mapping, known[:, -1]])
            rows, strength = np.concatenate([rows, known]), 0.0
            earlier = known[:, :-1].T @ known[:, :-1]
        names = np.array(regressor.names[bodies.bodies.size :])
        bounded = flag_not_negative(regressor) & ~np.isin(names, options.signed)
        labels = [column.coordinate.label for column in regressor.term_columns]
        return cls(
            gram=rows.T @ rows,
            earlier=earlier,
            prior=bodies,
            mapping=mapping,
            bounded=bounded,
            strength=strength,
            floor=options.floor,
            names=regressor.model.body_names,
            joints=np.unique(labels, return_inverse=True)[1],
        )

    def fit(self, *, links: bool = True) -> ConsistentFit:
        """See `fit_consistent`."""
        return fit_consistent(self.gram, self.prior, self.bounded, self.strength, links=links, floor=self.floor)

    @property
    def signed(self) -> Mask:
        """Base parameters that are one bounded column each, shape (p,)."""
        bounded = np.append(np.zeros(self.prior.bodies.size, dtype=bool), self.bounded)
        return np.asarray((np.count_nonzero(self.mapping, axis=1) == 1) & ((self.mapping != 0.0) @ bounded))

    @property
    def unknown(self) -> Array:
        """Intervals of base parameters that the data do not excite: all that the signs allow, shape (p, 2)."""
        return np.column_stack([np.where(self.signed, 0.0, -np.inf), np.full(len(self.mapping), np.inf)])

    def find_uncertainty(self, fit: ConsistentFit, middle: Array, information: Array) -> tuple[Array, Array]:
        """Find 95 % intervals of the base parameters, shape (p, 2), and a covariance that fits them, (p, p).

        A bound that the data contradict does not make a value certain: an interval has at least the deviation with all
        else known.

        Args:
            fit: the estimate.
            middle: covariance of the score of the weighted rows of the base parameters, shape (p, p).
            information: squared norm of the weighted column of each base parameter, shape (p,).
        """
        least = self._least_deviations(fit, middle, information)
        at = np.flatnonzero(fit.live)
        bounded = np.append(np.zeros(self.prior.bodies.size, dtype=bool), self.bounded)[at]
        half = self.mapping.T @ _find_root(middle)
        scores = half @ half.T + self._prior_information(fit)
        known = np.ix_(at, at)
        normal = BoundedNormal.from_scores(fit.normal[known], fit.right[at], scores[known], bounded)
        mapping, values = self.mapping[:, at], self.mapping @ fit.values
        low, high = normal.find_intervals(mapping).T
        low, high = np.minimum(low, values - NORMAL * least), np.maximum(high, values + NORMAL * least)
        low = np.where(self.signed, np.maximum(low, 0.0), low)
        deviations = np.full(len(at), np.inf)
        places = mapping[self.signed].argmax(axis=1)
        deviations[places] = (np.maximum(high - values, values - low) / NORMAL)[self.signed]
        covariance = mapping @ normal.find_covariance(deviations) @ mapping.T
        return np.column_stack([low, high]), covariance

    def _least_deviations(self, fit: ConsistentFit, middle: Array, information: Array) -> Array:
        """Standard deviation of each base parameter with all others known, shape (p,); 0 without information.

        The prior counts as it does in the covariance: its information is added to that of the data.
        """
        at = np.flatnonzero(fit.live)
        normal, mapping = fit.normal[np.ix_(at, at)], self.mapping[:, at]
        size = 1.0 / np.sqrt(np.diag(normal))
        root = cholesky(normal * size * size[:, None] + RIDGE * np.eye(len(at)), lower=True)
        rows = solve_triangular(root, (mapping * size).T, lower=True)
        combined = rows.T @ rows
        known = np.diag(combined) > 0.0
        scale = 1.0 / np.sqrt(np.where(known, np.diag(combined), 1.0))
        inverse = np.linalg.inv(combined * scale * scale[:, None] + RIDGE * np.eye(len(scale)))
        of_prior = np.where(known, np.maximum(np.diag(inverse) * scale**2 - information, 0.0), 0.0)
        total = information + of_prior
        deviations = np.sqrt(np.diag(middle) + of_prior)
        return np.divide(deviations, total, out=np.zeros_like(total), where=information > 0.0)

    def find_replaceable(self) -> Mask:
        """Base parameters of columns that other bounded columns of the same joint nearly replace, shape (p,)."""
        inertial = self.prior.bodies.size
        found = np.zeros(self.mapping.shape[1], dtype=bool)
        for joint in np.unique(self.joints):
            own = inertial + np.flatnonzero(self.bounded & (self.joints == joint))
            normal = self.gram[np.ix_(own, own)]
            size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
            unit = normal / size / size[:, None] + RIDGE * np.eye(len(own))
            found[own] = np.diag(np.linalg.inv(unit)) > MAX_INFLATION
        return np.asarray((np.abs(self.mapping) @ found) > 0.0)

    def _prior_information(self, fit: ConsistentFit) -> Array:
        """Information of the prior, shape (c, c)."""
        information = self.earlier.copy()
        at = np.arange(self.prior.bodies.size)
        information[at, at] += fit.strength / self.prior.scales.ravel() ** 2
        return information


def _find_root(covariance: Array) -> Array:
    """Root L of a covariance L L', shape (p, p): products with it stay positive, however large the other factor is."""
    size = np.sqrt(np.diag(covariance))
    unit = np.divide(covariance, size * size[:, None], out=np.zeros_like(covariance), where=size * size[:, None] > 0.0)
    values, vectors = np.linalg.eigh(unit)
    return np.asarray(size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def describe_prior_source(task: ConsistentTask, earlier: Prior | None) -> str:
    """Origin of the prior: the robot description or its geometry, or an earlier parameter set."""
    return task.prior.source if earlier is None or earlier.individual else earlier.source


def report_cost_of_links(
    problem: LinearProblem, task: ConsistentTask, found: ConsistentFit, factors: Factors, weights: Array
) -> tuple[Finding, ...]:
    """Finding about data that contradict every robot with consistent links.

    The blocks are evaluated only if the training errors are larger than the limit.
    """
    signs_only = task.fit(links=False)
    squares = [float(factors.squared_residuals(task.mapping @ one.values).sum()) for one in (found, signs_only)]
    if squares[0] <= MAX_COST_OF_LINKS**2 * squares[1]:
        return ()
    blocks = accumulate_blocks(problem, factors.counts)
    cost = cross_validate_links(blocks, weights, task.mapping, task.prior, task.bounded, task.strength)
    return judge_links(cost, [name for name, low in zip(task.names, found.at_floor, strict=True) if low])


def judge_links(cost: LinkCost, at_limit: Sequence[str]) -> tuple[Finding, ...]:
    """Finding if consistent links cost more than `MAX_COST_OF_LINKS`.

    Args:
        cost: errors on held-out blocks.
        at_limit: names of the bodies on the boundary of what is physically consistent.
    """
    if cost.ratio <= MAX_COST_OF_LINKS:
        return ()
    message = (
        f"physically consistent links predict held-out blocks {cost.ratio - 1.0:.0%} worse than bodies that cannot "
        f"exist; bodies at the limit: {', '.join(at_limit) or 'none'}"
    )
    return (LINKS_CONTRADICTED.found(message, at_limit),)
