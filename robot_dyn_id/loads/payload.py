# SPDX-License-Identifier: Apache-2.0
"""A body of unknown inertia that is fixed to a link: a payload on an identified arm, or a tool behind a force sensor.

A payload adds its ten parameters, expressed in the frame of the joint that carries it, to those of the body there. With
theta the base parameters of the bare arm, known as t with covariance T, those of the loaded arm are

    theta + B X phi,

B the columns of the mapping that belong to the body, X from the link's frame to the joint's. A recording with the
payload gives an estimate l of them, with information R' R from white rows, by a fit that knows nothing of the bare arm:
its residuals are noise, not errors of the arm's model. This leaves generalized least squares for phi of

    l - t = B X phi + error of l - error of t,    covariance (R' R)^-1 + T.

The result equals a fit to all rows of the loaded run, with the estimate of the bare arm as a prior. Its covariance is
enlarged by what the rows differ more than these errors allow (Birge ratio). T may be enlarged
by changes of friction since the bare arm was identified (`allow_friction_change`), and a recording of the bare arm on
the same motion (`correct_by_reference`) cancels what the arm's model does not explain there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import (
    convert_to_central,
    convert_to_parameters,
    is_consistent,
    make_consistent,
    pseudo_inertia,
)
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.estimators.factors import MIN_SINGULAR_VALUE_RATIO, Factors, Solution
from robot_dyn_id.estimators.feasible_gls import WhitenedSolution, solve_whitened
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.loads.fit import LoadFit
from robot_dyn_id.model.kinematics import BASE, Placement
from robot_dyn_id.model.screw import transform
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, ParameterSet

PAYLOAD_NOT_IDENTIFIED = Definition(
    "payload_not_identified",
    Section.LOADS,
    "info",
    "The motion does not determine some inertial parameters of the payload.",
    "turn the joints before the payload about all axes",
)

PAYLOAD_NOT_PHYSICAL = Definition(
    "payload_not_physical",
    Section.LOADS,
    "info",
    "The estimated inertia of the payload is not physically consistent; the consistent body closest to it is used.",
    "record a faster motion with the payload",
)

WHITENING_ORDER = 6
"""Autoregressive order of the noise model of the residuals."""

WHITENING_PASSES = 2
"""Passes of whitening."""

PRIOR_SPREAD = 100.0
"""Relative spread of the prior about the start of the search for a physically consistent body: so weak that the data
decide."""

FLOOR_RATIO = 0.01
"""Smallest pseudo-inertia relative to that of the start, as in the estimator `consistent`."""

DENSITY_KG_M3 = 2000.0
"""Density of a payload of which only the mass is known, between plastics and metals [kg/m^3]."""

NEGATIVE_MASS_SIGMAS = 3.0
"""Number of standard deviations below zero from which a negative mass is significant."""


REFERENCE_SPREAD = 100.0
"""Factor of the standard deviations of the arm before a reference corrects it: the reference decides what it
determines, whatever has changed since the arm was identified."""


@dataclass(frozen=True)
class Payload:
    """Body that is fixed to a link, with the covariance of its parameters.

    Attributes:
        link: link in whose frame all values are given.
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the origin of that frame, of a physically possible body,
            shape (10,).
        covariance: covariance of the unconstrained parameters, shape (10, 10).
        unconstrained: estimate without the constraint of physical consistency, shape (10,).
        not_excited: symbols of parameters that the motion does not determine; their values are a guess.
        findings: findings about the estimate.
        arm_slopes: derivatives of the parameters by the base parameters of the arm below, shape (10, p); None where no
            arm was needed.
    """

    link: str
    parameters: Array
    covariance: Array
    unconstrained: Array
    not_excited: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    arm_slopes: Array | None = None

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.parameters[0])

    @property
    def center_of_mass(self) -> Array:
        """Center of mass in the frame of the link [m], shape (3,)."""
        return convert_to_central(self.parameters)[1]

    @property
    def inertia(self) -> Array:
        """Inertia about the center of mass, along the axes of the link's frame [kg m^2], shape (3, 3)."""
        return convert_to_central(self.parameters)[2]

    @property
    def estimate(self) -> PayloadEstimate:
        """Estimate without the constraint of physical consistency."""
        unexcited = np.isin(INERTIAL_SYMBOLS, self.not_excited)
        return PayloadEstimate(self.link, self.unconstrained, self.covariance, unexcited, self.arm_slopes)

    @property
    def standard_deviations(self) -> Array:
        """Standard deviations (1 sigma) of the parameters, shape (10,); inf if not identifiable."""
        sigma = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(np.isin(INERTIAL_SYMBOLS, self.not_excited), np.inf, sigma)

    @property
    def central_standard_deviations(self) -> Array:
        """Standard deviations of mass, center of mass and Ixx Ixy Iyy Ixz Iyz Izz about it, to first order, (10,)."""
        slopes = compute_central_slopes(self.parameters)
        sigma = np.sqrt(np.maximum(np.diag(slopes @ self.covariance @ slopes.T), 0.0))
        hidden = np.isin(INERTIAL_SYMBOLS, self.not_excited)
        return np.where((slopes[:, hidden] != 0.0).any(axis=1), np.inf, sigma)


@dataclass(frozen=True)
class PayloadEstimate:
    """Estimate of the ten parameters of a body on a link that need not be physically possible: there may be no body.

    Attributes:
        link: link in whose frame the values are given.
        values: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the origin of that frame, shape (10,).
        covariance: covariance of the values, shape (10, 10).
        unexcited: parameters that the motion does not determine, shape (10,).
        arm_slopes: derivatives of the values by the base parameters of the arm below, shape (10, p); None where no arm
            was needed.
        fit: fit to the recording; None where the estimate is not that of a recording.
    """

    link: str
    values: Array
    covariance: Array
    unexcited: Mask
    arm_slopes: Array | None = None
    fit: LoadFit | None = None

    @property
    def has_mass(self) -> bool:
        """Whether the mass is identifiable and above zero, so that there may be a body."""
        return bool(self.values[0] > 0.0 and not self.unexcited[0])

    def payload(self) -> Payload:
        """Physically possible body of the estimate.

        Raises:
            InputError: the mass is not positive, or not identifiable.
        """
        found = make_consistent_payload(self.link, self.values, self.covariance, self.unexcited)
        return replace(found, arm_slopes=self.arm_slopes)


def transform_parameters(placement: Placement) -> Array:
    """Matrix X from the parameters of a body in a placed frame to those in the frame of its joint, shape (10, 10)."""
    frame = transform(placement.rotation, placement.position)
    return np.asarray(convert_to_parameters(frame @ pseudo_inertia(np.eye(10)) @ frame.T)).T


def move_parameters(parameters: Array, source: Placement, target: Placement) -> Array:
    """Parameters of a body given in the frame of one link, in that of another link of the same body, shape (10,).

    Raises:
        InputError: a joint lies between the two links.
    """
    if source.body != target.body:
        raise InputError(
            "the payload is given in the frame of a link that a joint separates from the link of the result"
        )
    return np.asarray(np.linalg.solve(transform_parameters(target), transform_parameters(source) @ parameters))


def move_payload(payload: Payload, link: str, source: Placement, target: Placement) -> Payload:
    """A payload with its covariance in the frame of another link of the same body.

    A parameter to which one contributes that the motion does not determine is not determined either.

    Args:
        payload: the payload.
        link: the other link.
        source: placement of the link of the payload.
        target: placement of the other link.

    Raises:
        InputError: a joint lies between the two links.
    """
    matrix = np.column_stack([move_parameters(unit, source, target) for unit in np.eye(10)])
    free = np.isin(INERTIAL_SYMBOLS, payload.not_excited)
    unknown = (np.abs(matrix[:, free]) > np.sqrt(np.finfo(float).eps)).any(axis=1)
    return replace(
        payload,
        link=link,
        parameters=matrix @ payload.parameters,
        covariance=matrix @ payload.covariance @ matrix.T,
        unconstrained=matrix @ payload.unconstrained,
        not_excited=tuple(str(symbol) for symbol in np.array(INERTIAL_SYMBOLS)[unknown]),
        arm_slopes=None if payload.arm_slopes is None else matrix @ payload.arm_slopes,
    )


def compute_central_slopes(parameters: Array) -> Array:
    """Derivatives of mass, center of mass and inertia about it by the ten parameters of a body, shape (10, 10)."""
    m, h = parameters[0], parameters[1:4]
    slopes = np.eye(10)
    slopes[1:4, 0], slopes[1:4, 1:4] = -h / m**2, np.eye(3) / m
    packed = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)
    slopes[4:, 0] = ((h @ h * np.eye(3) - np.outer(h, h)) / m**2)[packed]
    for axis, unit in enumerate(np.eye(3)):
        change = 2.0 * h[axis] * np.eye(3) - np.outer(unit, h) - np.outer(h, unit)
        slopes[4:, 1 + axis] = -change[packed] / m
    return slopes


def estimate_on_arm(arm: ParameterSet, loaded: LinearProblem, link: str, at: Placement) -> PayloadEstimate:
    """Estimate of the payload of a recording, on an arm that was identified without it.

    Args:
        arm: the bare arm, with the covariance of its base parameters.
        loaded: the recording, as rows of the same base parameters (`arm.base.independent`).
        link: link that carries the payload.
        at: placement of the link; see `kinematics.find_placement_of`.

    Raises:
        InputError: a link that does not move, other base parameters.
    """
    check_carrier(link, at)
    mapped = _MappedRows.from_recording(arm, loaded, at)
    solution = Solution.from_rows(np.column_stack([mapped.added, mapped.difference]))
    covariance = mapped.excess(solution) * solution.inverse
    slopes = -solution.inverse @ mapped.added.T @ mapped.rows
    found = mapped.found
    values = arm.estimate.values + compute_payload_mapping(arm, at) @ solution.values
    fit = LoadFit.from_factors(loaded, found.plain, values)
    return PayloadEstimate(link, solution.values, covariance, solution.unexcited, slopes, fit)


def shows_payload(arm: ParameterSet, joint: LinearProblem, payload: PayloadEstimate, at: Placement) -> bool:
    """Whether the efforts of a joint are likelier with a payload than without it.

    The likelihoods are those of the rows of the joint under the payload of the others, with its covariance, and under
    the bare arm. Parameters of the payload that the others do not determine are left out of both.

    Args:
        arm: the bare arm, with the covariance of its base parameters.
        joint: rows of the joint alone, of the same base parameters.
        payload: estimate of the payload from other joints.
        at: placement of the link of the payload.
    """
    if not payload.has_mass:
        return False
    mapped = _MappedRows.from_recording(arm, joint, at)
    known = scipy.linalg.null_space(mapped.added[:, payload.unexcited].T)
    added, without = known.T @ mapped.added, known.T @ mapped.difference
    lower = np.linalg.cholesky(np.eye(len(added)) + added @ payload.covariance @ added.T)
    with_payload = np.linalg.solve(lower, without - added @ payload.values)
    return bool(with_payload @ with_payload + 2.0 * np.log(np.diag(lower)).sum() < without @ without)


@dataclass(frozen=True)
class _MappedRows:
    """White rows of a recording, whose errors include those of the arm.

    Attributes:
        found: estimate of the base parameters from the recording alone.
        rows: rows of the p base parameters, shape (any, p).
        added: the same rows of the parameters of the payload, shape (any, 10).
        difference: what the rows measure beyond the arm, shape (any,).
    """

    found: WhitenedSolution
    rows: Array
    added: Array
    difference: Array

    @classmethod
    def from_recording(cls, arm: ParameterSet, loaded: LinearProblem, at: Placement) -> _MappedRows:
        """Rows of a recording.

        Raises:
            InputError: other base parameters.
        """
        _check_columns(arm, loaded)
        found = solve_whitened(loaded, WHITENING_ORDER, WHITENING_PASSES, "qr", Factors.solve)
        rows = make_independent_rows(found.white.root(1.0 / found.noise), arm)
        difference = rows @ (found.solution.values - arm.estimate.values)
        return cls(found, rows, rows @ compute_payload_mapping(arm, at), difference)

    def excess(self, solution: Solution) -> float:
        """Factor by which the errors of the rows exceed those that are known, as variances; at least 1 (Birge ratio).

        What neither noise nor the covariance of the arm explains is in the payload, too.
        """
        degrees = int(np.linalg.matrix_rank(self.rows)) - int((~solution.unexcited).sum())
        residual = self.difference - self.added @ solution.values
        return max(1.0, float(residual @ residual) / degrees) if degrees > 0 else 1.0


def check_carrier(link: str, at: Placement) -> None:
    """Refuse a link that no joint moves.

    Raises:
        InputError: the link belongs to the base.
    """
    if at.body == BASE:
        raise InputError(
            f"link {link} does not move, so that no torque depends on a payload on it: name a link behind a joint"
        )


def make_independent_rows(root: Array, arm: ParameterSet) -> Array:
    """Rows whose errors, those of the arm included, are independent and of unit variance, shape (any, p).

    (R'R)^-1 + T has the inverse R' (E + R T R')^-1 R, also where the loaded motion does not excite all parameters.

    Args:
        root: R, with R' R the information of the loaded rows about the base parameters, shape (any, p).
        arm: the arm, with the covariance T of its base parameters.
    """
    root = _without(root, np.isinf(arm.estimate.standard_deviations))
    lower = np.linalg.cholesky(np.eye(len(root)) + root @ arm.estimate.covariance @ root.T)
    return np.asarray(np.linalg.solve(lower, root))


def find_explained(arm: ParameterSet) -> Mask:
    """Joints of an identified arm whose effort its model explains, so that a load shows in it, shape (n,)."""
    return ~np.isin(arm.robot.joint_names, arm.judgment.unexplained_joints)


def allow_friction_change(arm: ParameterSet, ratio: float, regressor: Regressor) -> ParameterSet:
    """The arm, with friction that may have changed since it was identified, as by temperature.

    Args:
        arm: the identified arm.
        ratio: standard deviation of the change of each friction parameter, relative to its value.
        regressor: regressor of the arm.
    """
    friction = find_friction_columns(regressor)[arm.base.independent]
    return _with_covariance(
        arm, arm.estimate.covariance + np.diag(np.where(friction, ratio * arm.estimate.values, 0.0) ** 2)
    )


def find_friction_columns(regressor: Regressor) -> Mask:
    """Columns that depend on the sign of the velocity, shape (c,)."""
    still, one = np.zeros(1), np.ones(1)
    flags = [
        bool(np.any(column.term.columns(still, one, still) != column.term.columns(still, -one, still)))
        for column in regressor.term_columns
    ]
    return np.array([False] * (len(regressor.names) - len(flags)) + flags)


def correct_by_reference(arm: ParameterSet, reference: LinearProblem) -> ParameterSet:
    """The arm, corrected along a motion by a recording of the bare arm: a Kalman update of its base parameters.

    What the recording does not determine is hardly known afterwards: the result is for the same motion only.

    Args:
        arm: the bare arm, with the covariance of its base parameters.
        reference: the recording of the bare arm, as rows of the same base parameters.

    Raises:
        InputError: other base parameters.
    """
    _check_columns(arm, reference)
    found = solve_whitened(reference, WHITENING_ORDER, WHITENING_PASSES, "qr", Factors.solve)
    root = _without(found.white.root(1.0 / found.noise), np.isinf(arm.estimate.standard_deviations))
    weighted = REFERENCE_SPREAD**2 * (root @ arm.estimate.covariance)
    gain = np.linalg.solve(np.eye(len(root)) + weighted @ root.T, weighted).T
    values = arm.estimate.values + gain @ (root @ (found.solution.values - arm.estimate.values))
    covariance = REFERENCE_SPREAD**2 * arm.estimate.covariance - gain @ weighted
    return _with_covariance(replace_values(arm, values), 0.5 * (covariance + covariance.T))


def _with_covariance(arm: ParameterSet, covariance: Array) -> ParameterSet:
    """The arm with another covariance; parameters that were not identifiable remain so."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    estimate = replace(
        arm.estimate,
        covariance=covariance,
        standard_deviations=np.where(np.isinf(arm.estimate.standard_deviations), np.inf, sigma),
        interval_lows=np.zeros(0),
        interval_highs=np.zeros(0),
    )
    return replace(arm, estimate=estimate)


def _check_columns(arm: ParameterSet, problem: LinearProblem) -> None:
    if problem.names != tuple(arm.base.column_names[column] for column in arm.base.independent):
        raise InputError("the rows of the loaded arm are not those of the arm's base parameters")


def compute_payload_mapping(arm: ParameterSet, at: Placement) -> Array:
    """Mapping from the parameters of a payload on a link to the base parameters that it adds, shape (p, 10)."""
    return np.asarray(arm.base.mapping[:, 10 * at.body : 10 * at.body + 10] @ transform_parameters(at))


def estimate_at_sensor(wrench: LinearProblem, link: str) -> tuple[PayloadEstimate, Array, Array]:
    """Estimate of the body behind a 6-axis force-torque sensor.

    Args:
        wrench: rows of six channels; the ten parameters in the sensor's frame first, then offsets of the sensor.
        link: link of the sensor.

    Returns:
        The estimate, the other parameters of the reading, and their standard deviations.
    """
    whitened = solve_whitened(wrench, WHITENING_ORDER, WHITENING_PASSES, "qr", Factors.solve)
    found, fit = whitened.solution, LoadFit.from_factors(wrench, whitened.plain, whitened.solution.values)
    sigma = np.where(found.unexcited, np.inf, np.sqrt(np.diag(found.inverse)))
    estimate = PayloadEstimate(link, found.values[:10], found.inverse[:10, :10], found.unexcited[:10], fit=fit)
    return estimate, found.values[10:], sigma[10:]


def make_consistent_payload(link: str, values: Array, covariance: Array, unexcited: Mask) -> Payload:
    """Payload of an estimate; if that is not physically possible, the closest possible one in the metric of its errors.

    Args:
        link: link in whose frame the parameters are given.
        values: the ten parameters, shape (10,).
        covariance: covariance of the values, shape (10, 10).
        unexcited: parameters that the motion does not excite, shape (10,).

    Raises:
        InputError: a mass that is not positive.
    """
    mass, sigma = values[0], np.sqrt(covariance[0, 0])
    if unexcited[0]:
        raise InputError(
            f"the mass on link {link} is not identifiable from this motion: turn the link over by the joints before "
            "it, or name another link"
        )
    if not mass > 0.0:
        why = (
            "the sign of the wrench or of the efforts is wrong, or their unit is not that of the bare arm"
            if mass < -NEGATIVE_MASS_SIGMAS * sigma
            else "there may be none"
        )
        raise InputError(f"the mass on link {link} is {mass:.3g} +- {sigma:.2g} kg: {why}")
    not_excited = tuple(str(symbol) for symbol in np.array(INERTIAL_SYMBOLS)[unexcited])
    if is_consistent(values) and not not_excited:
        return Payload(link, values, covariance, values)
    bodies, _ = make_consistent((values if values[1:].any() else _ball(mass))[None], (link,))
    size, directions = np.linalg.eigh(covariance / (scale := _scale(bodies[0])) / scale[:, None])
    shown = size > np.finfo(float).eps * size[-1]
    root = (directions[:, shown] / np.sqrt(size[shown])).T / scale
    rows = np.column_stack([root, root @ values])
    radius = np.sqrt(bodies[:, [4, 6, 9]].sum(axis=1) / (2.0 * bodies[:, 0]))
    prior = BodyPrior(f"payload on {link}", bodies, bodies[:, 0], radius)
    nothing = np.zeros(0, dtype=bool)
    full = fit_consistent(rows.T @ rows, prior, nothing, PRIOR_SPREAD**-2, floor=FLOOR_RATIO).values
    step = root @ (full - values)
    findings = []
    if not_excited:
        symbols = ", ".join(not_excited)
        message = f"the motion does not determine {symbols} of the payload: the values written are a guess"
        findings.append(PAYLOAD_NOT_IDENTIFIED.found(message))
    if not is_consistent(values):
        message = (
            "the estimated inertia is not physically consistent: the payload is the consistent body closest to it, "
            f"{np.sqrt(step @ step / len(step)):.1f} standard deviations away"
        )
        findings.append(PAYLOAD_NOT_PHYSICAL.found(message))
    return Payload(link, full, covariance, values, not_excited, tuple(findings))


def _ball(mass: float) -> Array:
    """A ball of `DENSITY_KG_M3` about the origin, shape (10,): used where only the mass is known."""
    radius = np.cbrt(3.0 * mass / (4.0 * np.pi * DENSITY_KG_M3))
    moment = 0.4 * mass * radius**2
    return np.array([mass, 0.0, 0.0, 0.0, moment, 0.0, moment, 0.0, 0.0, moment])


def _scale(body: Array) -> Array:
    """Orders of magnitude of the ten parameters of a body."""
    m, trace = body[0], body[[4, 6, 9]].sum()
    radius = np.sqrt(trace / (2.0 * m))
    return np.asarray(m * radius ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2]))


def _without(root: Array, free: Array) -> Array:
    """The rows of an information root that do not depend on some of the parameters, shape (any, p)."""
    if not free.any():
        return root
    basis, singular, _ = np.linalg.svd(root[:, free])
    rank = np.count_nonzero(singular > MIN_SINGULAR_VALUE_RATIO * singular.max(initial=0.0))
    return np.asarray(basis[:, rank:].T @ root)
