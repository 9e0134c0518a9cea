# SPDX-License-Identifier: Apache-2.0
"""A link as a body: mass, center of mass and inertia, with the standard deviations of what data determine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_central, is_consistent
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, ParameterSet

SYMBOLS = len(INERTIAL_SYMBOLS)
"""Number of standard parameters of a body."""

DETERMINED_SHARE = 0.5
"""Standard deviation up to which data determine a parameter, as a share of its size on such a link: mass, mass times
length, mass times length squared, or of the prior's standard deviation where that is less. With a greater one the data
say less than the size of the robot, or the prior, does."""


@dataclass(frozen=True)
class LinkBody:
    """Mass, center of mass and inertia of a body.

    Attributes:
        mass: mass [kg].
        mass_sigma: its standard deviation; NaN if the data do not determine it.
        center: center of mass in the frame of the body's joint [m], shape (3,); NaN without mass.
        center_sigma: standard deviations, NaN as above, shape (3,).
        inertia: inertia about the center of mass along the axes of the frame [kg m^2], shape (3, 3).
        inertia_sigma: standard deviations, NaN as above, shape (3, 3).
        principal: principal moments, ascending [kg m^2], shape (3,).
        axes: directions of the principal axes in the frame, as columns, shape (3, 3).
        semi_axes: semi-axes of the ellipsoid of uniform density with this mass and inertia along `axes` [m], shape
            (3,); NaN for a body that cannot exist.
        consistent: whether the body is physically consistent.
    """

    mass: float
    mass_sigma: float
    center: Array
    center_sigma: Array
    inertia: Array
    inertia_sigma: Array
    principal: Array
    axes: Array
    semi_axes: Array
    consistent: bool

    @classmethod
    def from_parameters(cls, parameters: Array, covariance: Array | None = None) -> LinkBody:
        """Describe a body.

        Args:
            parameters: its standard parameters, shape (10,).
            covariance: their covariance, NaN in the rows and columns of what the data do not determine, shape (10, 10);
                None: nothing is determined.
        """
        covariance = np.full((SYMBOLS, SYMBOLS), np.nan) if covariance is None else covariance
        sigma = _propagate(parameters, covariance)
        mass = float(parameters[0])
        unknown = np.full(3, np.nan)
        _, center, inertia = convert_to_central(parameters) if mass != 0.0 else (mass, unknown, _tensor(parameters[4:]))
        principal, axes = np.linalg.eigh(inertia)
        axes[:, 2] *= np.linalg.det(axes)
        second = 0.5 * principal.sum() - principal  # of mass along the axes [kg m^2]
        solid = mass > 0.0 and bool(np.all(second > 0.0))
        return cls(
            mass=mass,
            mass_sigma=float(sigma[0]),
            center=center,
            center_sigma=sigma[1:4],
            inertia=inertia,
            inertia_sigma=_tensor(sigma[4:]),
            principal=principal,
            axes=axes,
            semi_axes=np.sqrt(5.0 * second / mass) if solid else unknown,
            consistent=is_consistent(parameters),
        )


def _tensor(six: Array) -> Array:
    """Symmetric matrix of xx xy yy xz yz zz."""
    xx, xy, yy, xz, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _propagate(parameters: Array, covariance: Array) -> Array:
    """Standard deviations of mass, center and central inertia, to first order, shape (10,).

    NaN where one of the parameters that a quantity depends on is not determined.
    """
    mass, moment = parameters[0], parameters[1:4]
    jacobian = np.zeros((SYMBOLS, SYMBOLS))
    jacobian[0, 0] = 1.0
    if mass != 0.0:
        center = moment / mass
        jacobian[1:4, 0], jacobian[1:4, 1:4] = -center / mass, np.eye(3) / mass
        jacobian[4:, 4:] = np.eye(6)
        for row, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), start=4):
            # I_c = I - (h'h E - h h') / m
            same = float(i == j)
            jacobian[row, 0] = same * center @ center - center[i] * center[j]
            jacobian[row, 1:4] -= 2.0 * same * center
            jacobian[row, 1 + i] += center[j]
            jacobian[row, 1 + j] += center[i]
    used = jacobian != 0.0
    used[1:4, 0] = True  # a center at zero depends on the mass, too
    known = np.isfinite(np.diag(covariance))
    variance = np.einsum("ij,jk,ik->i", jacobian, np.where(np.isfinite(covariance), covariance, 0.0), jacobian)
    complete = ~(used & ~known).any(axis=1) & (mass != 0.0)
    return np.where(complete, np.sqrt(np.maximum(variance, 0.0)), np.nan)


def find_lone_parameters(parameters: ParameterSet) -> dict[int, int]:
    """Number of the base parameter of each standard parameter that is one, by column."""
    bodies = len(parameters.robot.body_names)
    rows = np.flatnonzero(np.count_nonzero(parameters.base.mapping, axis=1) == 1)
    columns = parameters.base.independent
    return {int(columns[row]): int(row) for row in rows if columns[row] < SYMBOLS * bodies}


def compute_standard_covariance(parameters: ParameterSet) -> Array:
    """Covariance of the standard parameters that the data determine alone; NaN elsewhere, shape (10 b, 10 b)."""
    bodies = len(parameters.robot.body_names)
    covariance = np.full((SYMBOLS * bodies, SYMBOLS * bodies), np.nan)
    known = {
        column: row
        for column, row in find_lone_parameters(parameters).items()
        if parameters.estimate.status[row] != "not excited"
    }
    columns, rows = list(known), list(known.values())
    covariance[np.ix_(columns, columns)] = parameters.estimate.covariance[np.ix_(rows, rows)]
    return covariance


def compute_determined_covariance(parameters: ParameterSet, scales: Array) -> Array:
    """`compute_standard_covariance` with NaN also where data do not determine a parameter, shape (10 b, 10 b).

    Nothing counts as determined where the strength of the prior in the covariance is not known.

    Args:
        parameters: the parameter set.
        scales: sizes of the parameters on such links, see `BodyPrior.scales`, shape (b, 10).
    """
    covariance = compute_standard_covariance(parameters)
    determined = np.zeros(len(covariance), dtype=bool)
    if not np.isnan(parameters.estimate.prior_strength):
        limits = DETERMINED_SHARE * scales.ravel() / np.sqrt(max(1.0, parameters.estimate.prior_strength))
        determined = np.sqrt(np.diag(covariance)) <= limits
        for column, row in find_lone_parameters(parameters).items():
            determined[column] &= parameters.estimate.status[row] == "good"
    covariance[~determined] = np.nan
    covariance[:, ~determined] = np.nan
    return covariance
