# SPDX-License-Identifier: Apache-2.0
"""Test of a declared payload against the one that a recording shows.

With the estimate p of covariance C and the declared parameters d, (p - d)' C^-1 (p - d) is chi-square distributed with
as many degrees of freedom as parameters are compared, if d is true. The estimate need not be a possible body, so that
"no payload" (mass 0) can be tested too. Parameters that are not declared, or that the motion does not determine, are
left out, whatever their value: C is then that of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.loads.payload import PayloadEstimate, compute_central_slopes
from robot_dyn_id.parameters import INERTIAL_SYMBOLS

PAYLOAD_DECLARED_WRONG = Definition(
    "payload_declared_wrong",
    Section.LOADS,
    "error",
    "The declared payload is not the one that the arm carries: the difference is larger than the errors of the "
    "estimate allow, at the level of significance of the test.",
    "declare the identified payload, or remove what the arm carries",
)

SIGNIFICANCE = 0.01
"""Probability of rejecting a declared payload that is true."""

PARTS = {"mass": 1, "mass and center of mass": 4, "mass, center of mass and inertia": 10}
"""Parts of a payload that can be declared, with the number of leading parameters that they determine."""

QUANTITIES = (
    *("mass", "center x", "center y", "center z"),
    *("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"),
)
"""Mass, center of mass and moments of inertia about it, in the order of `compute_central_slopes`."""


@dataclass(frozen=True)
class DeclaredPayload:
    """Payload that a user or a driver declares, in the frame of a link.

    Attributes:
        link: link in whose frame the values are given.
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz about the origin of that frame, shape (10,); those that are not
            declared are 0.
        part: declared part, a key of `PARTS`.
    """

    link: str
    parameters: Array
    part: str = "mass, center of mass and inertia"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InputError: a mass below zero, a value that is not finite, or a moment without a mass.
        """
        mass = self.parameters[0]
        if not np.isfinite(self.parameters).all() or mass < 0.0:
            values = " ".join(f"{value:g}" for value in self.parameters)
            raise InputError(f"the declared mass must be 0 or more and all values finite, not {values}")
        if mass == 0.0 and self.parameters[1:].any():
            raise InputError("a declared mass of 0 kg has neither a center of mass nor an inertia")

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.parameters[0])

    @property
    def declared(self) -> Mask:
        """Declared parameters, shape (10,)."""
        return np.arange(10) < PARTS[self.part]


@dataclass(frozen=True)
class DeclaredTest:
    """Result of the test of a declared payload.

    Attributes:
        declared: the declared payload.
        statistic: (p - d)' C^-1 (p - d) of the compared parameters.
        degrees: number of compared parameters.
        p_value: probability of a statistic at least as large if the declared payload is true.
        compared: symbols of the compared parameters.
        names: quantities of `sigmas`.
        differences: identified less declared: mass [kg]; center of mass [m] and inertia about it [kg m^2] where they
            are declared, to first order about the declared body.
        standard_deviations: standard deviations of the differences.
    """

    declared: DeclaredPayload
    statistic: float
    degrees: int
    p_value: float
    compared: tuple[str, ...]
    names: tuple[str, ...]
    differences: Array
    standard_deviations: Array

    @property
    def accepted(self) -> bool:
        """Whether the declared payload may be the true one."""
        return self.p_value >= SIGNIFICANCE

    @property
    def sigmas(self) -> Array:
        """Differences in standard deviations."""
        return np.asarray(self.differences / self.standard_deviations)

    def describe(self) -> str:
        """One sentence with the identified and the declared mass, and the result."""
        mass = self.declared.mass + self.differences[0] if self.names[:1] == ("mass",) else np.nan
        identified = f", {mass:.4g} +- {self.standard_deviations[0]:.2g} kg identified without limits on the body"
        word = "agrees with" if self.accepted else "contradicts"
        return (
            f"{self.declared.mass:.4g} kg declared{identified if np.isfinite(mass) else ''}: the declared payload "
            f"{word} the recording (chi-square {self.statistic:.4g} with {self.degrees} degrees of freedom, "
            f"p = {self.p_value:.2g})"
        )

    def findings(self) -> tuple[Finding, ...]:
        """Finding about a declared payload that is rejected."""
        return () if self.accepted else (PAYLOAD_DECLARED_WRONG.found(self.describe()),)


def compare_declared(estimate: PayloadEstimate, declared: DeclaredPayload) -> DeclaredTest:
    """Test a declared payload against an estimate.

    Args:
        estimate: estimate of the payload, which need not be a possible body.
        declared: declared payload, in the frame of the same link.

    Raises:
        InputError: another link, or no declared parameter is identifiable.
    """
    if declared.link != estimate.link:
        raise InputError(
            f"the payload is declared in the frame of {declared.link} and identified in that of {estimate.link}"
        )
    compared = declared.declared & ~estimate.unexcited
    if not compared.any():
        raise InputError(
            "the motion determines no parameter of the declared payload: turn the joints before it about all axes"
        )
    difference = (estimate.values - declared.parameters)[compared]
    covariance = estimate.covariance[np.ix_(compared, compared)]
    scale = np.sqrt(np.diag(covariance))
    scaled = difference / scale
    statistic = float(scaled @ np.linalg.solve(covariance / scale / scale[:, None], scaled))
    names, slopes = _shown(declared, compared)
    sigma = np.sqrt(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))
    return DeclaredTest(
        declared,
        statistic,
        int(compared.sum()),
        float(chdtrc(compared.sum(), max(statistic, 0.0))),
        tuple(np.array(INERTIAL_SYMBOLS)[compared].tolist()),
        names,
        slopes @ difference,
        sigma,
    )


def _shown(declared: DeclaredPayload, compared: Mask) -> tuple[tuple[str, ...], Array]:
    """Quantities that are shown, and their derivatives by the compared parameters, shape (quantities, compared)."""
    if declared.mass == 0.0:
        return ("mass",) * bool(compared[0]), np.eye(int(compared.sum()))[: int(compared[0])]
    slopes = compute_central_slopes(declared.parameters)
    kept = declared.declared & ~(slopes[:, ~compared] != 0.0).any(axis=1)
    return tuple(np.array(QUANTITIES)[kept].tolist()), slopes[np.ix_(kept, compared)]
