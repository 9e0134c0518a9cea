# SPDX-License-Identifier: Apache-2.0
"""Accuracy with which a motion will determine a payload, before the robot moves.

With R'R the information of the rows of the motion about the base parameters, weighted by the torque error of the arm's
model, and T the covariance of the arm, the estimate of `estimate_on_arm` will have the covariance

    (X' B' R' (E + R T R')^-1 R B X)^-1,

B X the mapping from the ten parameters of the payload to the base parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.loads.payload import (
    Payload,
    check_carrier,
    compute_payload_mapping,
    find_explained,
    make_independent_rows,
)
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS, ParameterSet
from robot_dyn_id.signals.processing import ROWS_PER_PERIOD

PAYLOAD_UNCERTAIN = Definition(
    "payload_uncertain",
    Section.LOADS,
    "warning",
    "The standard deviation of the mass is above 10 % of it, or that of the center of mass above 2 cm.",
    "record a longer motion that turns the payload over",
)

MASS_SHARE = 0.1
"""Standard deviation of the mass, relative to the expected mass, up to which the mass is found."""

CENTER_M = 0.02
"""Standard deviation of the center of mass of the expected mass up to which a first moment is found [m]."""

RADIUS_M = 0.1
"""Radius of gyration whose moment of inertia, with the expected mass, is the largest standard deviation with which a
moment of inertia is found [m]."""


@dataclass(frozen=True)
class PayloadAccuracy:
    """Expected errors of the ten parameters of a payload about the origin of its link.

    Attributes:
        expected_mass: mass that the errors are compared with [kg].
        standard_deviations: standard deviations, shape (10,); inf if the motion does not determine a parameter.
    """

    expected_mass: float
    standard_deviations: Array

    @property
    def tolerances(self) -> Array:
        """Standard deviations up to which the parameters are found, shape (10,)."""
        shares = np.array([MASS_SHARE, *(CENTER_M,) * 3, *(RADIUS_M**2,) * 6])
        return np.asarray(self.expected_mass * shares)

    @property
    def found(self) -> Mask:
        """Parameters that will be found, shape (10,)."""
        return np.asarray(self.standard_deviations <= self.tolerances)

    @property
    def worst_ratio(self) -> float:
        """Largest standard deviation of mass and first moments, relative to its tolerance; above 1 one is not found.

        It is inf where a standard deviation is not a number.
        """
        ratios = (self.standard_deviations / self.tolerances)[:4]
        return float(np.where(np.isnan(ratios), np.inf, ratios).max())

    @property
    def missing(self) -> tuple[str, ...]:
        """Symbols of the parameters that will not be found."""
        return tuple(np.array(INERTIAL_SYMBOLS)[~self.found].tolist())

    def describe(self) -> str:
        """Expected standard deviation of each parameter, a lower bound where errors are correlated, in one line."""
        every = zip(INERTIAL_SYMBOLS, self.standard_deviations, INERTIAL_UNITS, strict=True)
        known = [f"{symbol} +- {sigma:.2g} {unit}" for symbol, sigma, unit in every if np.isfinite(sigma)]
        absent = f"; not found for {self.expected_mass:g} kg: {', '.join(self.missing)}" if self.missing else ""
        return f"expected accuracy (larger errors if the torque error is correlated): {', '.join(known)}{absent}"


def report_uncertainty(payload: Payload) -> tuple[Finding, ...]:
    """Finding about a payload whose mass or center of mass is determined, but only roughly.

    Args:
        payload: an identified payload.
    """
    accuracy = PayloadAccuracy(payload.mass, payload.standard_deviations)
    rough = ~accuracy.found & np.isfinite(accuracy.standard_deviations)
    rough[4:] = False  # moments of inertia matter to fast motions alone
    if not rough.any():
        return ()
    every = zip(INERTIAL_SYMBOLS, payload.parameters, accuracy.standard_deviations, INERTIAL_UNITS, rough, strict=True)
    shown = ", ".join(f"{symbol} {value:.2g} +- {sigma:.2g} {unit}" for symbol, value, sigma, unit, one in every if one)
    limits = f"{MASS_SHARE:.0%} of the mass, {CENTER_M * 100.0:g} cm of its center"
    return (PAYLOAD_UNCERTAIN.found(f"standard deviations above the tolerance ({limits}): {shown}"),)


def predict_noise(arm: ParameterSet, regressor: Regressor, motion: Motion) -> Array:
    """Torque error of an arm's model along a motion, shape (n,) [N m or N]."""
    columns = arm.base.independent
    torque = np.einsum("p,pnk->nk", arm.estimate.values, regressor.dense(motion)[columns])
    return arm.judgment.held_out_error(torque.T)


def predict_accuracy(
    arm: ParameterSet,
    at: Placement,
    motion: Motion,
    moving: Integers,
    duration: float,
    expected_mass: float,
) -> PayloadAccuracy:
    """Accuracy of the payload that a recorded motion will give, with a torque error that is white.

    The parameter set does not store the correlation of the error, which makes the standard deviations of the estimate
    larger: these are a lower bound.

    Args:
        arm: the identified arm, with friction that may have changed (`with_friction_change`).
        at: placement of the link that carries the payload.
        motion: samples of the motion, equally spaced.
        moving: numbers of the joints that move, ascending; the efforts of the others, and of those that the model does
            not explain, are not used.
        duration: duration of the recording [s].
        expected_mass: mass that the errors are compared with [kg].

    Raises:
        InputError: a link that does not move, or an arm whose torque error is not known.
    """
    check_carrier("of the payload", at)
    regressor = Regressor.from_parameters(arm)
    columns, moving = arm.base.independent, moving[find_explained(arm)[moving]]
    if not len(moving):
        return PayloadAccuracy(expected_mass, np.full(10, np.inf))
    problem = UnfilteredProblem.from_samples(regressor, columns, motion, np.zeros_like(motion.q)).only_joints(moving)
    noise = predict_noise(arm, regressor, motion)[moving]
    unknown = [arm.robot.joint_names[number] for number in moving[~((noise > 0.0) & np.isfinite(noise))]]
    if unknown:
        raise InputError(f"the torque error of the arm's model is not known: {', '.join(unknown)}; identify it again")
    rows = ROWS_PER_PERIOD * arm.processing.cutoff_frequency * duration
    root = Factors.from_problem(problem).root(np.sqrt(rows / len(motion)) / noise)
    added = make_independent_rows(root, arm) @ compute_payload_mapping(arm, at)
    solution = Solution.from_rows(np.column_stack([added, np.zeros(len(added))]))
    sigma = np.sqrt(np.maximum(np.diag(solution.inverse), 0.0))
    return PayloadAccuracy(expected_mass, np.where(solution.unexcited, np.inf, sigma))
