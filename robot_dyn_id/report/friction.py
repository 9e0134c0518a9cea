# SPDX-License-Identifier: Apache-2.0
"""Friction of a joint over its speed, and over its displacement after a reversal, from the base parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.parameters import ParameterSet

POINTS = 201
"""Speeds of a curve."""

REVERSAL_DISPLACEMENTS = np.geomspace(1e-4, 1.0, POINTS)
"""Displacements after a reversal [rad or m]."""


@dataclass(frozen=True)
class FrictionCurve:
    """Effort of a joint's terms at constant speed.

    Attributes:
        joint: name of the joint.
        unit: unit of the effort.
        speed_unit: unit of the speed.
        speed: over the trained range, denser around zero, shape (N,).
        effort: shape (N,).
        sigma: one standard deviation of it, or None if a parameter was not excited.
        parameters: numbers of the base parameters that it is made of.
    """

    joint: str
    unit: str
    speed_unit: str
    speed: Array
    effort: Array
    sigma: Array | None
    parameters: Integers


def compute_friction_curve(parameters: ParameterSet, regressor: Regressor, joint: int) -> FrictionCurve | None:
    """The friction of a joint, mimic followers included; None without friction terms or without motion.

    Args:
        parameters: the parameter set.
        regressor: the one that it belongs to.
        joint: number of the joint.
    """
    fastest = float(parameters.ranges.dq_max[joint])
    speed = fastest * np.linspace(-1.0, 1.0, POINTS) ** 3
    effort = _sum_columns(parameters, _columns_at(regressor, joint, speed))
    if effort is None or not fastest > 0:
        return None
    return FrictionCurve(
        joint=parameters.robot.joint_names[joint],
        unit=regressor.model.effort_units[joint],
        speed_unit=f"{regressor.model.position_units[joint]}/s",
        speed=speed,
        effort=effort.values,
        sigma=effort.sigma,
        parameters=effort.parameters,
    )


@dataclass(frozen=True)
class ReversalCurve:
    """Effort of a joint's terms with states after a reversal from long sliding.

    Attributes:
        unit: unit of the effort.
        displacement_unit: unit of the displacement.
        displacement: distance from the reversal, shape (N,).
        effort: shape (N,).
        sigma: one standard deviation of it, or None if a parameter was not excited.
    """

    unit: str
    displacement_unit: str
    displacement: Array
    effort: Array
    sigma: Array | None


def compute_reversal_curve(parameters: ParameterSet, regressor: Regressor, joint: int) -> ReversalCurve | None:
    """Presliding friction of a joint, mimic followers included; None without terms that have states.

    All other joints are at rest at zero. The reversal is at zero, from negative to positive velocity.

    Args:
        parameters: the parameter set.
        regressor: the one that it belongs to.
        joint: number of the joint.
    """
    q = np.zeros((len(regressor.model.joint_names), len(REVERSAL_DISPLACEMENTS) + 2))
    q[joint, 0], q[joint, 2:] = SLIDING_DISPLACEMENT, REVERSAL_DISPLACEMENTS
    rest = np.zeros_like(q)
    motion = regressor.with_states(Motion(q, rest, rest), step=1.0).take(slice(2, None))
    first = len(regressor.names) - len(regressor.term_columns)
    rows = regressor.dense(motion)[first:, joint]
    columns = {
        first + number: row
        for number, (row, column) in enumerate(zip(rows, regressor.term_columns, strict=True))
        if column.term.state_count and np.any(row)
    }
    effort = _sum_columns(parameters, columns)
    if effort is None:
        return None
    model = regressor.model
    units = model.effort_units[joint], model.position_units[joint]
    return ReversalCurve(*units, REVERSAL_DISPLACEMENTS, effort.values, effort.sigma)


SLIDING_DISPLACEMENT = 10.0
"""Displacement before a reversal, far beyond any breakaway [rad or m]."""


@dataclass(frozen=True)
class _Effort:
    """Effort of some columns along N points.

    Attributes:
        values: shape (N,).
        sigma: one standard deviation, shape (N,), or None if a parameter was not excited.
        parameters: numbers of the base parameters that it is made of.
    """

    values: Array
    sigma: Array | None
    parameters: Integers


def _sum_columns(parameters: ParameterSet, columns: dict[int, Array]) -> _Effort | None:
    """Effort of columns, given by their numbers; None if none of them has a base parameter."""
    base = np.flatnonzero(np.isin(parameters.base.independent, list(columns)))
    if not len(base):
        return None
    curves = np.array([columns[int(column)] for column in parameters.base.independent[base]])
    variance = np.einsum("ik,ij,jk->k", curves, parameters.estimate.covariance[np.ix_(base, base)], curves)
    known = bool(np.all(np.isfinite(parameters.estimate.standard_deviations[base])))
    sigma = np.sqrt(np.maximum(variance, 0.0)) if known else None
    return _Effort(np.asarray(parameters.estimate.values[base] @ curves), sigma, base)


def _columns_at(regressor: Regressor, joint: int, speed: Array) -> dict[int, Array]:
    """Column number and effort on the joint per unit parameter, of all columns that act on it at constant speed.

    Positions are zero and all other joints are at rest.
    """
    n, first = len(regressor.model.joint_names), len(regressor.names) - len(regressor.term_columns)
    moving = np.zeros((n, len(speed)))
    moving[joint] = speed
    columns = regressor.dense(Motion(np.zeros_like(moving), moving, np.zeros_like(moving)))[first:, joint]
    return {first + number: values for number, values in enumerate(columns) if np.any(values)}
