# SPDX-License-Identifier: Apache-2.0
"""Identified model: what predicts torques."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.parameters import BaseParameters, ParameterSet


@dataclass(frozen=True)
class IdentifiedModel:
    """Robot, terms, base parameters and their estimate.

    Attributes:
        regressor: robot and terms, with the constants that the estimator found.
        base: the p base parameters.
        estimate: their values and covariance.
    """

    regressor: Regressor
    base: BaseParameters
    estimate: Estimate

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> IdentifiedModel:
        """The model of a parameter set; residuals and row counts of its estimation are not stored in it (NaN and 0).

        Raises:
            InputError: a parameter set that contradicts its URDF or terms.
        """
        regressor = Regressor.from_parameters(parameters)
        stored, unknown = parameters.estimate, np.full(len(parameters.robot.joint_names), np.nan)
        estimate = Estimate(
            values=stored.values,
            covariance=stored.covariance,
            standard_deviations=stored.standard_deviations,
            condition_number=stored.condition_number,
            residual_rms=unknown,
            noise_rms=unknown,
            rows=0,
            prior_strength=stored.prior_strength,
        )
        return cls(regressor, parameters.base, estimate)

    @property
    def columns(self) -> Integers:
        """Independent columns of the regressor, shape (p,)."""
        return self.base.independent

    @property
    def values(self) -> Array:
        """Base parameters, shape (p,)."""
        return self.estimate.values

    @property
    def dynamics(self) -> Dynamics:
        """Inverse and forward dynamics."""
        return Dynamics(self.regressor, self.columns, self.values)

    def torque(self, motion: Motion) -> Array:
        """Torques along a motion of N samples [N m or N], shape (n, N)."""
        return self.regressor.torque(motion, self.values, self.columns)
