# SPDX-License-Identifier: Apache-2.0
"""Explanation of a model and of the data behind it, as values that a report shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.body_prior import has_placeholder_masses
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Offset
from robot_dyn_id.dynamics.terms.contract import FRICTION
from robot_dyn_id.dynamics.terms.laws import SIGN, VISCOUS
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.explanation.excitation import JointExcitation, explain_excitation
from robot_dyn_id.identification.validation.explanation.health import HealthCheck, explain_health
from robot_dyn_id.identification.validation.explanation.joints import (
    JointExplanation,
    explain_joints,
    read_urdf_friction,
)
from robot_dyn_id.identification.validation.explanation.links import LinkExplanation, explain_links
from robot_dyn_id.parameters import INERTIAL_UNITS, ParameterSet
from robot_dyn_id.signals.trials import FilteredTrials


@dataclass(frozen=True)
class TimeAxis:
    """Samples that are shown: every `stride`-th of all that are used.

    Attributes:
        t: time stamps [s], shape (K,).
        trial: number of the recording of each sample, shape (K,).
        samples: number of samples that are used.
        stride: number of samples of which one is shown.
    """

    t: Array
    trial: Integers
    samples: int
    stride: int


@dataclass(frozen=True)
class ParameterExplanation:
    """Comparison of a base parameter with zero and with the URDF.

    Attributes:
        name: name of the base parameter.
        significance: magnitude of the value in standard deviations; NaN if not known.
        urdf: value of the same combination in the URDF; NaN where it does not state all parts.
        difference: value minus that of the URDF in standard deviations; NaN if not known.
    """

    name: str
    significance: float
    urdf: float
    difference: float


@dataclass(frozen=True)
class ModelExplanation:
    """Figures behind a report.

    Attributes:
        time: samples that are shown.
        joints: torque of each joint.
        links: moving bodies.
        excitation: coverage of the ranges of each joint.
        motion_source: data whose motion `excitation` counts: `training data` or `held-out data`.
        health: checks of the data.
        parameters: base parameters compared with the URDF.
    """

    time: TimeAxis
    joints: tuple[JointExplanation, ...]
    links: tuple[LinkExplanation, ...]
    excitation: tuple[JointExcitation, ...]
    motion_source: str
    health: tuple[HealthCheck, ...]
    parameters: tuple[ParameterExplanation, ...]

    @property
    def coverage_95(self) -> float:
        """Share of the valid samples of all joints within the 95 % band; NaN if that of a joint is not known."""
        counts = np.array([np.count_nonzero(joint.series.valid) for joint in self.joints])
        shares = np.array([joint.coverage_95 for joint in self.joints])
        return float(np.average(shares, weights=counts)) if counts.any() else np.nan


def explain(
    evaluation: Evaluation, parameters: ParameterSet, training: FilteredTrials | None = None
) -> ModelExplanation:
    """Explain a model and the data behind it.

    Args:
        evaluation: evaluation on held-out data.
        parameters: parameter set of the model that was evaluated.
        training: data that the model was identified from, whose health is stated; None: a validation, whose own data
            are.

    Raises:
        InputError: see `Regressor.from_parameters`.
    """
    regressor, trace = Regressor.from_parameters(parameters), evaluation.trace
    crossed = evaluation.held_out.method == "cross_validation"
    return ModelExplanation(
        time=TimeAxis(trace.t, trace.trial, trace.samples, trace.stride),
        joints=explain_joints(evaluation, parameters, regressor),
        links=explain_links(parameters, regressor.model),
        excitation=explain_excitation(trace, regressor.model, parameters.ranges),
        motion_source="training data" if crossed else "held-out data",
        health=explain_health(
            training or evaluation.trials, evaluation.findings, regressor.model.limits.effort, training is not None
        ),
        parameters=explain_parameters(parameters, regressor),
    )


def explain_parameters(parameters: ParameterSet, regressor: Regressor) -> tuple[ParameterExplanation, ...]:
    """Compare the base parameters with zero and with the URDF.

    Args:
        parameters: the parameter set.
        regressor: its robot and terms.
    """
    nominal = read_urdf_values(regressor)
    unknown = np.isnan(nominal)
    urdf = parameters.base.mapping @ np.where(unknown, 0.0, nominal)
    urdf[(parameters.base.mapping[:, unknown] != 0.0).any(axis=1)] = np.nan
    sigma = np.where(
        np.isfinite(parameters.estimate.standard_deviations), parameters.estimate.standard_deviations, np.nan
    )
    sigma = np.where(sigma > 0.0, sigma, np.nan)
    significance, difference = np.abs(parameters.estimate.values) / sigma, (parameters.estimate.values - urdf) / sigma
    rows = zip(parameters.base.names, significance.tolist(), urdf.tolist(), difference.tolist(), strict=True)
    return tuple(ParameterExplanation(*row) for row in rows)


def read_urdf_values(regressor: Regressor) -> Array:
    """Values of all columns in the URDF, shape (c,); NaN where it states none.

    Inertial parameters are stated unless they are missing or placeholders, viscous and Coulomb friction where a joint
    has the tag `dynamics` and no other friction terms, which would be a part of the same friction. Nothing is stated in
    the unit of a drive whose gain is not known.
    """
    model = regressor.model
    values = np.full(len(regressor.names), np.nan)
    if not has_placeholder_masses(model):
        known = np.array(model.inertial_units) == np.tile(INERTIAL_UNITS, len(model.body_names))
        values[: known.size] = np.where(known, model.inertial_parameters, np.nan)
    for joint, friction in read_urdf_friction(model.urdf).items():
        if joint in model.drive_units:
            continue
        places = _simple_friction(regressor, joint)
        for shape, value in ((VISCOUS, friction.damping), (SIGN, friction.friction)):
            if shape in places:
                values[places[shape]] = value
    return values


def _simple_friction(regressor: Regressor, joint: str) -> dict[str, int]:
    """Columns of viscous and Coulomb friction of a joint by the shape of their law; empty with other friction terms."""
    places: dict[str, int] = {}
    for number, column in enumerate(regressor.term_columns, start=regressor.model.inertial_parameters.size):
        laws = column.term.laws or ()
        if column.coordinate.name != joint or column.term.cause != FRICTION or isinstance(column.term, Offset):
            continue
        if len(laws) != 1 or laws[0].shape not in (VISCOUS, SIGN) or column.term.signal or laws[0].shape in places:
            return {}
        places[laws[0].shape] = number
    return places
