# SPDX-License-Identifier: Apache-2.0
"""Torque of each joint in detail: causes of the prediction, its 95 % band, residuals over the motion, spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.torque_parts import CAUSES, find_cause_of, list_merged_parameters
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.spectrum import TorqueSpectra
from robot_dyn_id.identification.validation.thinning import CURVES
from robot_dyn_id.identification.validation.trace import Trace
from robot_dyn_id.parameters import ParameterSet, ResidualProfile

BAND = 1.959963984540054
"""Standard deviations of the ends of a 95 % interval of the normal distribution."""

SCATTER_SAMPLES = 1500
"""Largest number of samples of a scatter plot."""


@dataclass(frozen=True)
class Scatter:
    """Samples of a joint over its motion; shape (S,) each.

    Attributes:
        t: time stamps [s].
        position: positions [rad or m].
        speed: velocities [rad/s or m/s].
        residual: measured minus predicted torque [N m or N].
        friction: measured torque minus all predicted parts but friction: the data under the friction curve.
    """

    t: Array
    position: Array
    speed: Array
    residual: Array
    friction: Array


@dataclass(frozen=True)
class JointSpectrum:
    """Amplitude densities of a joint; see `TorqueSpectra`.

    Attributes:
        frequency: frequencies [Hz], shape (F,).
        residual: density of the recorded minus the predicted torque, shape (F,).
        measured: density of the recorded torque, shape (F,).
        cutoff: cut-off frequency of the filter of the efforts [Hz].
        sections: number of sections that were averaged.
    """

    frequency: Array
    residual: Array
    measured: Array
    cutoff: float
    sections: int


@dataclass(frozen=True)
class UrdfFriction:
    """Friction of a joint in the URDF: viscous `damping` [N m s or N s/m] and Coulomb `friction` [N m or N]."""

    damping: float
    friction: float


@dataclass(frozen=True)
class TorqueSeries:
    """Torques of a joint at K samples [N m or N], shape (K,) each; the five causes add up to `predicted`.

    Attributes:
        raw: as recorded.
        measured: low-passed.
        predicted: predicted by a model that was identified without the sample.
        residual: measured minus predicted.
        half_width: half of the 95 % band of the measured torque about the prediction, see `_band_deviation`; NaN if
            nothing is known that is independent of the sample.
        gravity, inertia, coriolis, friction, rest: see `TorqueParts`.
        valid: whether the sample counts.
        extremes: smallest and largest values of `raw`, `measured`, `predicted` and `residual` from each sample up to
            the next one, by name, shape (2, K) each; empty if these are all samples.
    """

    raw: Array
    measured: Array
    predicted: Array
    residual: Array
    half_width: Array
    gravity: Array
    inertia: Array
    coriolis: Array
    friction: Array
    rest: Array
    valid: Mask
    extremes: dict[str, Array]


@dataclass(frozen=True)
class JointExplanation:
    """Torque of one joint in detail.

    Attributes:
        name: name of the joint.
        unit: unit of the effort, N m or N, or that of a drive whose gain is not known.
        position_unit: rad or m.
        rated: effort limit of the URDF; None without, or with an effort in another unit.
        error_of_rated: RMS error on held-out data as a share of `rated`; None without.
        series: torques over time.
        rms: RMS of each cause and of the prediction (`total`), over the valid samples.
        rest_terms: names of the terms that `rest` consists of, without those that are zero.
        merged: expressions of base parameters of this joint that combine causes, each counted for its first name.
        coverage_95: share of the valid samples within the 95 % band; NaN if the band of one is not known.
        scatter: samples over the motion.
        spectrum: spectra of residual and recorded torque; None if no stretch is long enough.
        friction_urdf: friction in the URDF; None without, or with an effort in another unit.
    """

    name: str
    unit: str
    position_unit: str
    rated: float | None
    error_of_rated: float | None
    series: TorqueSeries
    rms: dict[str, float]
    rest_terms: tuple[str, ...]
    merged: tuple[str, ...]
    coverage_95: float
    scatter: Scatter
    spectrum: JointSpectrum | None
    friction_urdf: UrdfFriction | None


def explain_joints(
    evaluation: Evaluation, parameters: ParameterSet, regressor: Regressor
) -> tuple[JointExplanation, ...]:
    """Explain the torque of every joint.

    Args:
        evaluation: evaluation on held-out data.
        parameters: the parameter set.
        regressor: its robot and terms.
    """
    frictions, foreign = read_urdf_friction(parameters.robot.urdf), regressor.model.drive_units
    return tuple(
        _explain(evaluation, parameters, regressor, joint, frictions.get(name) if name not in foreign else None)
        for joint, name in enumerate(parameters.robot.joint_names)
    )


def _explain(
    evaluation: Evaluation, parameters: ParameterSet, regressor: Regressor, joint: int, friction: UrdfFriction | None
) -> JointExplanation:
    metrics, model = evaluation.held_out.joints[joint], regressor.model
    limit = float(model.limits.effort[joint])
    comparable = np.isfinite(limit) and limit > 0.0 and metrics.name not in model.drive_units
    rated = limit if comparable else None
    series = _make_series(evaluation, parameters, joint)
    valid = series.valid
    inside = np.abs(series.residual[valid]) <= series.half_width[valid]
    known = bool(valid.any()) and bool(np.isfinite(series.half_width[valid]).all())
    columns = parameters.base.independent
    acting = regressor.structure[columns, joint]
    merged = [
        number for number in list_merged_parameters(regressor, columns, parameters.base.mapping) if acting[number]
    ]
    return JointExplanation(
        name=metrics.name,
        unit=metrics.unit,
        position_unit=model.position_units[joint],
        rated=rated,
        error_of_rated=None if rated is None or not metrics.is_validated else metrics.rmse / rated,
        series=series,
        rms={name: _rms(getattr(series, name)[valid]) for name in CAUSES} | {"total": _rms(series.predicted[valid])},
        rest_terms=_name_rest(parameters, regressor, joint),
        merged=tuple(parameters.base.expressions[number] for number in merged),
        coverage_95=float(inside.mean()) if known else np.nan,
        scatter=_make_scatter(evaluation, series, joint),
        spectrum=_pick_spectrum(evaluation.held_out.spectra, joint, evaluation.plan.low_pass.cutoff),
        friction_urdf=friction,
    )


def _make_series(evaluation: Evaluation, parameters: ParameterSet, joint: int) -> TorqueSeries:
    trace = evaluation.trace
    return TorqueSeries(
        raw=trace.raw[joint],
        measured=trace.measured[joint],
        predicted=trace.predicted[joint],
        residual=trace.residual[joint],
        half_width=BAND * _band_deviation(trace, parameters, joint),
        valid=trace.valid[joint],
        extremes={name: trace.extremes[:, number, joint] for number, name in enumerate(CURVES)}
        if trace.stride > 1
        else {},
        **{name: getattr(trace.parts, name)[joint] for name in CAUSES},
    )


def _band_deviation(trace: Trace, parameters: ParameterSet, joint: int) -> Array:
    """Standard deviation of the measured torque about the prediction, shape (K,); NaN if it is not known.

    It uses no residual of the samples that it judges: under cross-validation the residuals of the other blocks at the
    same speed, else those of the training data, and the deviation by the covariance of the parameters.
    A parameter set without residuals has the error on held-out data that it states, as a share of the predicted torque.
    """
    deviation, velocity = trace.deviation[joint], trace.motion.dq
    folds = np.unique(trace.fold)
    if len(folds) > 1:
        spread = np.full(len(trace.t), np.nan)
        for fold in folds:
            own = trace.fold == fold
            profile = ResidualProfile.from_samples(trace.residual, velocity, trace.valid & ~own)
            if profile is not None:
                spread[own] = profile.along(joint, velocity[joint, own])
        return np.asarray(np.hypot(deviation, spread))
    if trace.profile is not None:
        return np.asarray(np.hypot(deviation, trace.profile.along(joint, velocity[joint])))
    stated = parameters.judgment.held_out_nrmse[joint] if len(parameters.judgment.held_out_nrmse) else np.nan
    return np.asarray(np.hypot(deviation, stated * _rms(trace.predicted[joint, trace.valid[joint]])))


def _make_scatter(evaluation: Evaluation, series: TorqueSeries, joint: int) -> Scatter:
    trace = evaluation.trace
    kept = np.flatnonzero(series.valid)
    kept = kept[:: max(1, -(-len(kept) // SCATTER_SAMPLES))]
    return Scatter(
        t=trace.t[kept],
        position=trace.motion.q[joint, kept],
        speed=trace.motion.dq[joint, kept],
        residual=series.residual[kept],
        friction=(series.residual + series.friction)[kept],
    )


def _pick_spectrum(spectra: TorqueSpectra | None, joint: int, cutoff: float) -> JointSpectrum | None:
    if spectra is None or not spectra.sections[joint]:
        return None
    sections = int(spectra.sections[joint])
    return JointSpectrum(spectra.frequency, spectra.residual[joint], spectra.measured[joint], cutoff, sections)


def _name_rest(parameters: ParameterSet, regressor: Regressor, joint: int) -> tuple[str, ...]:
    """Terms of the cause `rest` that act on a joint."""
    first = 10 * len(regressor.model.body_names)
    columns, structure = parameters.base.independent, regressor.structure
    found = []
    for column, value in zip(columns.tolist(), parameters.estimate.values.tolist(), strict=True):
        if column < first or value == 0.0 or not structure[column, joint]:
            continue
        term = regressor.term_columns[column - first]
        if find_cause_of(term, regressor.model) == "rest":
            coupled = term.coordinate.name not in regressor.model.body_names
            found.append(f"{term.term.name} of {term.coordinate.name}" if coupled else term.term.name)
    return tuple(dict.fromkeys(found))


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def read_urdf_friction(text: str) -> dict[str, UrdfFriction]:
    """Friction of the joints of a URDF that state it, by the name of the joint."""
    found = {}
    for joint in ElementTree.fromstring(text.lstrip("\ufeff \t\r\n")).iter("joint"):
        element = joint.find("dynamics")
        if element is not None:
            damping, friction = (_number(element.get(key)) for key in ("damping", "friction"))
            found[joint.get("name", "")] = UrdfFriction(damping, friction)
    return found


def _number(text: str | None) -> float:
    """A number of a URDF, 0 where it is not stated or not a number."""
    try:
        return float(text or 0.0)
    except ValueError:
        return 0.0
