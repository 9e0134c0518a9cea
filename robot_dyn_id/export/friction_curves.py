# SPDX-License-Identifier: Apache-2.0
"""Friction of each joint as a curve over its own velocity, for controllers with a friction model of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms.laws import POWER, VISCOUS
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.parameters import ParameterSet

FRICTION_APPROXIMATED = Definition(
    "friction_approximated",
    Section.PREDICTION,
    "info",
    "A controller of another package has a friction model of its own: what it cannot hold (viscous friction, "
    "dependence on load and position, presliding, offsets) is left out, and other shapes are approximated. The "
    "largest differences are given.",
    "use the parameter file, or exported source code, for the complete friction",
)

SPEEDS = 400
"""Number of speeds of a curve."""

CONFIGURATIONS = 20
"""Number of random configurations over which friction is averaged, as it may depend on position and load."""


@dataclass(frozen=True)
class FrictionCurves:
    """Friction of n joints at m speeds up to those of the training data, each joint moving alone.

    Attributes:
        dynamics: identified dynamics.
        speeds: speeds in ascending order, above 0 [rad/s or m/s], shape (n, m).
        moving: half the difference of the friction in both directions, mean over configurations [N m or N], shape
            (n, m).
        dry: the same without terms that grow with a power of the velocity, shape (n, m).
    """

    dynamics: Dynamics
    speeds: Array
    moving: Array
    dry: Array

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> FrictionCurves:
        """Evaluate the friction of a parameter set.

        Raises:
            InputError: parameters that are not finite.
        """
        dynamics = Dynamics.from_parameters(parameters)
        if not np.isfinite(dynamics.parameters).all():
            raise InputError("the parameters are not all finite: a model with them cannot be used by any tool")
        growing = np.concatenate(
            [
                np.ravel(group.numbers[law.symbol])
                for group in dynamics.regressor.term_groups
                for law in group.term.laws or ()
                if law.shape in (VISCOUS, POWER)
            ]
            or [np.zeros(0, dtype=np.int64)]
        )
        first = 10 * len(dynamics.regressor.model.body_names)
        dry = replace(dynamics, values=np.where(np.isin(dynamics.columns, first + growing), 0.0, dynamics.values))
        fastest = np.where(parameters.ranges.dq_max > 0.0, parameters.ranges.dq_max, 1.0)
        speeds = fastest[:, None] * np.arange(1, SPEEDS + 1) / SPEEDS
        low, high = parameters.ranges.q_min, np.maximum(parameters.ranges.q_min, parameters.ranges.q_max)
        q = np.random.default_rng(0).uniform(low, high, (CONFIGURATIONS, len(low)))
        return cls(dynamics, speeds, *(_odd_part(one, q, speeds) for one in (dynamics, dry)))

    def report_difference(self, parameters: ParameterSet, model: Callable[[Array], Array], format_name: str) -> Finding:
        """Finding about the largest difference between the friction of the parameter set and that of a format.

        Args:
            parameters: the parameter set.
            model: friction of the format, (N, n) from velocities (N, n).
            format_name: name of the format.
        """
        rng = np.random.default_rng(1)
        fastest, low = self.speeds[:, -1], parameters.ranges.q_min
        shape = (CONFIGURATIONS * SPEEDS, len(low))
        dq = rng.uniform(-fastest, fastest, shape)
        q = rng.uniform(low, np.maximum(low, parameters.ranges.q_max), shape)
        whole = self.dynamics.friction(q, dq)
        apart, largest = np.abs(whole - model(dq)).max(axis=0), np.abs(whole).max(axis=0)
        units = self.dynamics.regressor.model.effort_units
        listed = ", ".join(
            f"{name} {a:.2g} of {b:.2g} {unit}"
            for name, a, b, unit in zip(parameters.robot.joint_names, apart, largest, units, strict=True)
        )
        message = f"friction of {format_name} differs from the identified one, within the trained motion by {listed}"
        return FRICTION_APPROXIMATED.found(message, parameters.robot.joint_names)


def _odd_part(dynamics: Dynamics, q: Array, speeds: Array) -> Array:
    curves = np.empty_like(speeds)
    for joint, own in enumerate(speeds):
        dq = np.zeros((len(own), len(speeds)))
        dq[:, joint] = own
        both = [
            np.mean([dynamics.friction(np.broadcast_to(one, dq.shape), side * dq)[:, joint] for one in q], axis=0)
            for side in (1.0, -1.0)
        ]
        curves[joint] = 0.5 * (both[0] - both[1])
    return curves
