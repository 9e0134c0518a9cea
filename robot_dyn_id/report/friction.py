# SPDX-License-Identifier: Apache-2.0
"""Friction of a joint as a curve over its speed, from the base parameters and their covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.parameters import ParameterSet

POINTS = 201
"""Speeds of a curve."""


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


def friction_curve(parameters: ParameterSet, regressor: Regressor, joint: int) -> FrictionCurve | None:
    """The friction of a joint, mimic followers included; None without friction terms or without motion.

    Args:
        parameters: the parameter set.
        regressor: the one that it belongs to.
        joint: number of the joint.
    """
    fastest = float(parameters.dq_max[joint])
    speed = fastest * np.linspace(-1.0, 1.0, POINTS) ** 3
    columns = _columns_at(regressor, joint, speed)
    base = np.flatnonzero(np.isin(parameters.independent_columns, list(columns)))
    if not len(base) or not fastest > 0:
        return None
    curves = np.array([columns[int(column)] for column in parameters.independent_columns[base]])
    variance = np.einsum("ik,ij,jk->k", curves, parameters.covariance[np.ix_(base, base)], curves)
    known = bool(np.all(np.isfinite(parameters.standard_deviations[base])))
    unit = regressor.model.effort_units[joint]
    return FrictionCurve(
        joint=parameters.joint_names[joint],
        unit=unit,
        speed_unit="m/s" if unit == "N" else "rad/s",
        speed=speed,
        effort=parameters.values[base] @ curves,
        sigma=np.sqrt(np.maximum(variance, 0.0)) if known else None,
        parameters=base,
    )


def _columns_at(regressor: Regressor, joint: int, speed: Array) -> dict[int, Array]:
    """Column number and effort on the joint per unit parameter, of all columns that act on it at constant speed.

    Positions are zero and all other joints are at rest.
    """
    n, first = len(regressor.model.joint_names), len(regressor.names) - len(regressor.term_columns)
    moving = np.zeros((n, len(speed)))
    moving[joint] = speed
    columns = regressor.dense(Motion(np.zeros_like(moving), moving, np.zeros_like(moving)))[first:, joint]
    return {first + number: values for number, values in enumerate(columns) if np.any(values)}
