# SPDX-License-Identifier: Apache-2.0
"""Torque of a model split by cause: gravity, inertia, Coriolis and centrifugal forces, friction, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor, TermColumn
from robot_dyn_id.dynamics.terms.contract import FRICTION, REST
from robot_dyn_id.model.robot import RobotModel


@dataclass(frozen=True)
class TorqueParts:
    """Torques of n joints at N samples by cause [N m or N], shape (n, N) each; their sum is the torque of the model.

    The bodies are those of the independent columns. What a base parameter combines counts for its independent column,
    see `list_merged_parameters`: the data do not separate it.

    Attributes:
        gravity: torque of the bodies at rest.
        inertia: torque of the bodies that is linear in the accelerations.
        coriolis: torque of the bodies that is quadratic in the velocities, Coriolis and centrifugal.
        friction: torque of friction terms, offsets included.
        rest: torque of all other terms: rotor inertias, springs, and all terms of couplings.
    """

    gravity: Array
    inertia: Array
    coriolis: Array
    friction: Array
    rest: Array

    @classmethod
    def from_motion(cls, regressor: Regressor, columns: Integers, values: Array, motion: Motion) -> TorqueParts:
        """Split the torque of a model along a motion.

        Args:
            regressor: robot and terms.
            columns: numbers of the independent columns, shape (p,).
            values: base parameters, shape (p,).
            motion: N samples, with the states of the regressor's terms where it has some.
        """
        bodies = columns < 10 * len(regressor.model.body_names)
        still = np.zeros_like(motion.dq)
        at_rest, steady = replace(motion, dq=still, ddq=still), replace(motion, ddq=still)
        gravity, without_acceleration, rigid = (
            regressor.bodies.torque(one, values[bodies], columns[bodies]) for one in (at_rest, steady, motion)
        )
        causes = np.array([find_cause_of(column, regressor.model) for column in regressor.term_columns])
        by_cause = {}
        for cause in (FRICTION, REST):
            own = ~bodies
            own[own] = causes[columns[own] - 10 * len(regressor.model.body_names)] == cause
            by_cause[cause] = regressor.torque(motion, values[own], columns[own])
        return cls(
            gravity=gravity,
            inertia=rigid - without_acceleration,
            coriolis=without_acceleration - gravity,
            friction=by_cause[FRICTION],
            rest=by_cause[REST],
        )

    @property
    def total(self) -> Array:
        """Torque of the model, shape (n, N)."""
        return self.gravity + self.inertia + self.coriolis + self.friction + self.rest

    @property
    def stacked(self) -> Array:
        """All parts in the order of the attributes, shape (5, n, N)."""
        return np.stack([getattr(self, name) for name in CAUSES])


CAUSES = tuple(item.name for item in fields(TorqueParts))
"""Names of the causes, in the order of the attributes."""


def find_cause_of(column: TermColumn, model: RobotModel) -> str:
    """Cause that a column of a term counts for: that of the term on a joint, the rest on a coupling."""
    return column.term.cause if column.coordinate.name in model.body_names else REST


def list_merged_parameters(regressor: Regressor, columns: Integers, mapping: Array) -> Integers:
    """Base parameters that combine parameters of different causes, such as a link's inertia and a rotor's.

    Args:
        regressor: robot and terms.
        columns: numbers of the independent columns, shape (p,).
        mapping: base = mapping @ full, shape (p, c).

    Returns:
        Their numbers, ascending.
    """
    bodies = 10 * len(regressor.model.body_names)
    causes = np.array(
        ["bodies"] * bodies + [find_cause_of(column, regressor.model) for column in regressor.term_columns]
    )
    own = causes[columns][:, None]
    return np.flatnonzero(((mapping != 0.0) & (causes[None, :] != own)).any(axis=1))
