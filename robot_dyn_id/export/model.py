# SPDX-License-Identifier: Apache-2.0
"""Content of a parameter set for exported models: bodies, and the terms that a format can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import violation
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Finding, format_findings, make_finding
from robot_dyn_id.parameters import ParameterSet


@dataclass(frozen=True)
class Exported:
    """A model in another format.

    Attributes:
        text: content of the file.
        findings: findings about what the format cannot carry, which stays in `parameters.yaml`.
    """

    text: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)


@dataclass(frozen=True)
class ExportModel:
    """A parameter set as others see a robot.

    Attributes:
        regressor: robot and terms.
        bodies: standard parameters of each body, with positive masses, shape (b, 10).
        terms: value of each of the format's own attributes, by joint: {joint: {attribute: value}}.
        findings: findings about what is left out.
        impossible: what makes bodies those of no real robot; empty for a consistent set.
    """

    regressor: Regressor
    bodies: Array
    terms: dict[str, dict[str, float]]
    findings: tuple[Finding, ...]
    impossible: str

    @classmethod
    def from_parameters(cls, parameters: ParameterSet, places: Mapping[str, str]) -> ExportModel:
        """The model with the terms that a format can carry.

        Args:
            parameters: the set.
            places: the format's attribute for each of those terms, by the term's name.

        Raises:
            InputError: parameters that are not finite, or a body without mass, which a file of links cannot describe.
        """
        regressor = Regressor.from_parameters(parameters)
        names = regressor.model.body_names
        full = np.concatenate([parameters.standard_parameters, parameters.term_values])
        if not parameters.physically_consistent:
            full = _nearest(parameters, regressor, full)
        if not np.isfinite(full).all():
            raise InputError("the parameters are not all finite: a model with them cannot be used by any tool")
        bodies = full[: 10 * len(names)].reshape(-1, 10)
        for name, body in zip(names, bodies, strict=True):
            if not body[0] > 0.0:
                raise InputError(
                    f"joint {name}: the parameters give its link no mass ({body[0]:.3g} kg): a model of links cannot "
                    f"carry that; identify with `estimator: consistent`"
                )
        faults = [f"joint {n}: {why}" for n, body in zip(names, bodies, strict=True) if (why := violation(body))]
        terms, findings = _placed(parameters, full[10 * len(names) :], places, names)
        return cls(regressor, bodies, terms, findings, "; ".join(faults))


def _nearest(parameters: ParameterSet, regressor: Regressor, full: Array) -> Array:
    """Parameters with the same torque that differ least from the URDF's (and from the terms' values).

    The representative of a set that is not consistent has zeros in all dependent columns, masses among them.
    """
    inertial = regressor.model.inertial_parameters
    start = np.append(inertial, full[len(inertial) :])
    change = np.linalg.lstsq(parameters.mapping, parameters.values - parameters.mapping @ start, rcond=None)[0]
    return np.asarray(start + change)


def _placed(
    parameters: ParameterSet, values: Array, places: Mapping[str, str], joints: tuple[str, ...]
) -> tuple[dict[str, dict[str, float]], tuple[Finding, ...]]:
    placed: dict[str, dict[str, float]] = {name: {} for name in joints}
    left_out: dict[str, list[str]] = {}
    for name, joint, value in zip(parameters.term_names, parameters.term_joints, values, strict=True):
        if name not in places or joint not in placed:
            left_out.setdefault(f"{name} cannot be stored in this format", []).append(joint)
        elif value < 0.0:
            left_out.setdefault(f"{name} below zero would drive the joint", []).append(joint)
        else:
            placed[joint][places[name]] = float(value)
    widths = [c for c in parameters.term_constant_names if c.partition(".")[0] in places]
    findings = []
    for why, names in left_out.items():
        message = f"{why}: left out for {', '.join(dict.fromkeys(names))}, kept in the parameter file"
        findings.append(make_finding("term_not_exported", message, dict.fromkeys(names)))
    if "coulomb.smoothing_width" in widths:
        message = "coulomb friction is written without its smoothing width: it is discontinuous at rest"
        findings.append(make_finding("smoothing_not_exported", message))
    return placed, tuple(findings)
