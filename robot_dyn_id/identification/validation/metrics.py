# SPDX-License-Identifier: Apache-2.0
"""Prediction metrics of a model on held-out data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.validation.extrapolation import (
    Excess,
    compute_torque_deviation,
    flag_far_outside,
    list_excesses,
)
from robot_dyn_id.identification.validation.scales import (
    DETECTABLE_QUANTILE,
    ApparentLoadFit,
    ErrorHistogram,
    rate_effort,
)
from robot_dyn_id.identification.validation.spectrum import TorqueSpectra, WelchSums
from robot_dyn_id.identification.validation.thinning import ExtremeCurves
from robot_dyn_id.parameters import UNKNOWN, Ranges
from robot_dyn_id.signals.trials import FilteredTrials, iterate_measured_windows
from robot_dyn_id.signals.windows import FilteredWindow


@dataclass(frozen=True)
class Fold:
    """Held-out rows, and a model that was identified without them.

    Attributes:
        trials: the held-out rows; all others are not valid.
        regressor: robot and terms.
        columns: numbers of the independent columns, shape (p,).
        values: base parameters, shape (p,).
        unconstrained: base parameters without the bounds of the estimator; None if it has none.
    """

    trials: FilteredTrials
    regressor: Regressor
    columns: Integers
    values: Array
    unconstrained: Array | None = None

    @classmethod
    def from_model(cls, trials: FilteredTrials, model: IdentifiedModel) -> Fold:
        """Held-out rows that a model predicts."""
        return cls(trials, model.regressor, model.columns, model.values, model.estimate.unconstrained)

    @property
    def dynamics(self) -> Dynamics:
        """Inverse and forward dynamics of the model."""
        return Dynamics(self.regressor, self.columns, self.values)


@dataclass(frozen=True)
class JointMetrics:
    """Prediction of one joint's torque; ratios are to the RMS of the measured torque.

    All figures of a joint without valid held-out samples are NaN.

    Attributes:
        name: name of the joint.
        unit: unit of the torque, N m or N, or that of a drive whose gain is not known.
        slides: whether the joint is prismatic.
        rms: RMS of the low-passed measured torque.
        rmse: RMS error.
        nrmse: rmse / rms.
        correlation: correlation coefficient of predicted and measured torque.
        max_error: largest absolute error.
        mean_error: mean absolute error (MAE); far below rmse where single samples are wrong.
        raw_nrmse: NRMSE against the measured torque as recorded, without low-pass filter.
        constant_nrmse: NRMSE of the best constant.
        nominal_nrmse: NRMSE of the inertial parameters of the URDF; NaN where the effort is not in their unit, or the
            URDF has none.
        own_nrmse: expected NRMSE from the parameter covariance, see `compute_torque_uncertainty`; 0 if not computed.
        dynamic_rms: RMS of the low-passed measured torque without the model's torque at rest: what feedback has to
            supply under gravity compensation alone.
        peak: largest absolute measured torque.
        detectable: absolute error that `DETECTABLE_QUANTILE` of the samples do not exceed: the smallest external torque
            that stands out from the model's errors.
        rated: rated effort, see `rate_effort`; NaN if not computed.
        friction: friction torque at low speed, see `friction_levels`; 0 if not computed.
        load_torque: RMS torque of a point mass of 1 kg at the last link [N m/kg or N/kg]; 0 where the model explains
            too little for its errors to show a payload; NaN if not computed.
        rest_share: share of the samples in which the joint is at rest, see `REST_SPEED_SHARE`; 0 if not computed.
        rest_rmse: RMS error in these samples.
    """

    name: str
    unit: str
    slides: bool
    rms: float
    rmse: float
    nrmse: float
    correlation: float
    max_error: float
    mean_error: float
    raw_nrmse: float
    constant_nrmse: float
    nominal_nrmse: float
    own_nrmse: float = 0.0
    dynamic_rms: float = np.nan
    peak: float = np.nan
    detectable: float = np.nan
    rated: float = np.nan
    friction: float = 0.0
    load_torque: float = np.nan
    rest_share: float = 0.0
    rest_rmse: float = 0.0

    @property
    def within_stiction(self) -> bool:
        """Whether the error at rest is what dry friction can carry, and most of the error."""
        most = self.rest_share * self.rest_rmse**2 > 0.5 * self.rmse**2
        return most and self.rest_rmse <= self.friction

    @property
    def is_validated(self) -> bool:
        """Whether the held-out data have valid samples of the joint."""
        return not np.isnan(self.rmse)

    @property
    def explained(self) -> float:
        """Explained share of the torque variance; negative if the prediction is worse than the mean."""
        return 1.0 - (self.nrmse / self.constant_nrmse) ** 2 if self.constant_nrmse > 0 else 0.0


@dataclass(frozen=True)
class HeldOut:
    """Metrics on data that were not used for estimation.

    Attributes:
        joints: metrics of each joint.
        all_joints_nrmse: norm of all errors / norm of all torques.
        nominal_all_joints_nrmse: the same for the inertial parameters of the URDF; NaN if it has none.
        samples: number of time samples compared.
        method: origin of the held-out data, one of `HELD_OUT_METHODS`.
        outside: share of all joints' samples far outside their trained ranges (by more than half); 0 if unknown.
        slow: joints that never exceed `MIN_SPEED_SHARE` of the trained speed, each with the share that it reaches.
        outside_of: joints and quantities that are far outside in more than `REPORTED_SHARE` of the samples.
        unconstrained_nrmse: all-joint NRMSE without the bounds of the estimator; None if it has none.
        moving_nrmse: all-joint NRMSE of the samples in which each joint moves; NaN if not computed.
        apparent_load: point mass at the last link that explains the errors best [kg], RMS over blocks of
            `LOAD_BLOCK_S`, by the joints with a `load_torque`; NaN if not computed.
        spectra: spectra of recorded torques and residuals; None if not computed.
    """

    joints: tuple[JointMetrics, ...]
    all_joints_nrmse: float
    nominal_all_joints_nrmse: float
    samples: int
    outside: float
    method: str = UNKNOWN
    slow: tuple[tuple[str, float], ...] = ()
    outside_of: tuple[Excess, ...] = ()
    unconstrained_nrmse: float | None = None
    moving_nrmse: float = np.nan
    apparent_load: float = np.nan
    spectra: TorqueSpectra | None = field(default=None, repr=False)

    def list_unexplained(self, least: float) -> tuple[str, ...]:
        """Names of the validated joints of whose torque variance less than a share is explained."""
        return tuple(joint.name for joint in self.joints if joint.is_validated and not joint.explained >= least)

    def with_friction(self, levels: Array) -> HeldOut:
        """The same metrics with the friction torque of each joint, shape (n,)."""
        joints = zip(self.joints, levels.tolist(), strict=True)
        return replace(self, joints=tuple(replace(joint, friction=level) for joint, level in joints))

    def with_uncertainty(self, deviations: Array) -> HeldOut:
        """The same metrics with the expected error of each joint, from `compute_torque_uncertainty`, shape (n,)."""
        joints = zip(self.joints, deviations.tolist(), strict=True)
        return replace(
            self, joints=tuple(replace(joint, own_nrmse=sigma / (joint.rms or 1.0)) for joint, sigma in joints)
        )


@dataclass
class _Sums:
    """Running sums of predictions and measurements, shape (n,) each."""

    samples: int = 0
    outside: Array | float = 0.0
    totals: dict[str, Array] = field(default_factory=dict)
    largest: Array | float = 0.0
    fastest: Array | float = 0.0
    peak: Array | float = 0.0

    def add(self, **values: Array) -> None:
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + value.sum(axis=1)


def compare(
    folds: Sequence[Fold],
    trained: Ranges | None = None,
    extremes: ExtremeCurves | None = None,
    explained: float = 0.0,
) -> HeldOut:
    """Predict the torques of held-out data and compare them with the measured ones.

    Args:
        folds: held-out data, each with the model that predicts them; the low-pass filter of the data is applied to the
            measured efforts, never to the prediction.
        trained: ranges of the training motion; None: ranges are not compared.
        extremes: collects the extremes of the curves for plots; None: they are not needed.
        explained: explained share of a joint's torque variance below which a payload is not looked for in its errors.
    """
    sums = _Sums()
    regressor, bounded = folds[0].regressor, all(fold.unconstrained is not None for fold in folds)
    nominal = np.flatnonzero(regressor.structure[: 10 * len(regressor.model.body_names)].any(axis=1))
    errors = ErrorHistogram.empty(len(regressor.model.joint_names))
    loads = ApparentLoadFit(regressor, folds[0].trials.plan)
    spectra = _empty_spectra(folds[0], len(folds))
    for number, fold, piece, tau in iterate_held_out_windows(folds):
        used, plan = piece.used, fold.trials.plan
        valid = piece.valid[:, used]
        measured = plan.low_pass.apply(tau, plan.rate)[:, used]
        motion = piece.motion.take(used)
        predicted = fold.regressor.torque(motion, fold.values, fold.columns)
        if extremes is not None:
            extremes.add(number, piece, (tau[:, used], measured, predicted, measured - predicted))
        measured, predicted = np.where(valid, measured, 0.0), np.where(valid, predicted, 0.0)
        urdf = np.where(
            valid, fold.regressor.torque(motion, regressor.model.inertial_parameters[nominal], nominal), 0.0
        )
        rest = np.where(valid, fold.regressor.torque(motion.at_rest(), fold.values, fold.columns), 0.0)
        raw = np.where(valid, tau[:, used], 0.0)
        error = predicted - measured
        if bounded and fold.unconstrained is not None:
            free = np.where(valid, fold.regressor.torque(motion, fold.unconstrained, fold.columns), 0.0)
            sums.add(free2=(free - measured) ** 2)
        sums.add(
            count=valid.astype(np.float64),
            tau=measured,
            tau2=measured**2,
            hat=predicted,
            hat2=predicted**2,
            product=predicted * measured,
            error1=np.abs(error),
            error2=error**2,
            raw2=(predicted - raw) ** 2,
            tau_raw2=raw**2,
            urdf2=(urdf - measured) ** 2,
            dynamic2=(measured - rest) ** 2,
        )
        errors.add(error, valid)
        loads.add(piece.segment, piece.number[used], motion, error, valid)
        spectra.add(piece.segment, piece.number[used], np.stack([raw - predicted, raw]), valid)
        sums.largest = np.maximum(sums.largest, np.abs(error).max(axis=1))
        sums.peak = np.maximum(sums.peak, np.abs(measured).max(axis=1))
        sums.samples += measured.shape[1]
        if trained is not None:
            slow = np.abs(motion.dq) < REST_SPEED_SHARE * trained.dq_max[:, None]
            at_rest = (valid & slow).astype(np.float64)
            sums.add(rest=at_rest, rest_error2=at_rest * error**2, rest_tau2=at_rest * measured**2)
            beyond = flag_far_outside(motion, trained)
            sums.outside = sums.outside + np.sum([*beyond, beyond.any(axis=0)], axis=2)
        sums.fastest = np.maximum(sums.fastest, np.abs(motion.dq).max(axis=1))
    if not sums.samples:
        return HeldOut((), np.inf, np.inf, 0, 0.0)
    held_out = _conclude(regressor, sums, errors.quantile(DETECTABLE_QUANTILE), loads, explained)
    held_out = replace(held_out, spectra=spectra.conclude())
    if trained is None:
        return held_out
    shares = np.asarray(sums.outside) / sums.samples
    return replace(
        held_out,
        slow=_list_slow_joints(regressor, sums, trained),
        outside=float(shares[3].mean()),
        outside_of=list_excesses(regressor.model.joint_names, shares[:3]),
    )


def _empty_spectra(fold: Fold, folds: int) -> WelchSums:
    """Sums for the spectra of held-out data that are divided into a number of folds."""
    trials = fold.trials
    return WelchSums.for_stretch(trials.plan.rate, max(trials.survey.durations) / folds, len(trials.joints))


def iterate_held_out_windows(folds: Sequence[Fold]) -> Iterator[tuple[int, Fold, FilteredWindow, Array]]:
    """Windows with held-out rows, with number and value of their fold, and their measured torque, shape (n, N)."""
    for number, window in iterate_measured_windows([(fold.trials, fold.regressor) for fold in folds]):
        assert window.tau is not None, "windows without efforts are skipped"
        yield number, folds[number], window, window.tau


def compute_torque_uncertainty(
    regressor: Regressor, columns: Integers, covariance: Array, trials: FilteredTrials
) -> Array:
    """RMS standard deviation of predicted torques due to the parameter covariance C, (w C w')^1/2 [N m or N], (n,).

    Args:
        regressor: robot and terms.
        columns: numbers of the independent columns, shape (p,).
        covariance: covariance of the base parameters, shape (p, p).
        trials: the motion.
    """
    total, count = np.zeros(len(regressor.model.joint_names)), 0
    for window in trials.along(regressor):
        used = window.used
        if used.any():
            total += (compute_torque_deviation(regressor, columns, covariance, window.motion.take(used)) ** 2).sum(
                axis=1
            )
            count += int(np.count_nonzero(used))
    return np.asarray(np.sqrt(total / max(count, 1)))


REST_SPEED_SHARE = 0.01
"""Fraction of the trained peak velocity below which a joint is at rest: dry friction carries any torque within its own,
which no model predicts."""

MIN_SPEED_SHARE = 0.2
"""Minimum fraction of the trained peak velocity needed to validate inertia and friction."""


def _list_slow_joints(regressor: Regressor, sums: _Sums, trained: Ranges) -> tuple[tuple[str, float], ...]:
    share = np.asarray(sums.fastest) / np.maximum(trained.dq_max, 1e-300)
    names = regressor.model.joint_names
    return tuple((name, s) for name, s in zip(names, share.tolist(), strict=True) if s < MIN_SPEED_SHARE)


def _conclude(
    regressor: Regressor, sums: _Sums, detectable: Array, loads: ApparentLoadFit, explained: float
) -> HeldOut:
    total, peak = sums.totals, np.asarray(sums.peak)
    foreign = np.array([name in regressor.model.drive_units for name in regressor.model.joint_names])
    known_to_urdf = ~foreign & regressor.model.inertial_parameters.any()
    rated = rate_effort(np.where(foreign, np.inf, regressor.model.limits.effort), peak)
    count = np.maximum(total["count"], 1.0)
    error, variance = total["error2"] / count, total["tau2"] / count - (total["tau"] / count) ** 2
    load_torque, apparent_load = loads.solve(error, ~foreign & ~(error > (1.0 - explained) * variance))
    joints = []
    for j, name in enumerate(regressor.model.joint_names):
        n = total["count"][j] or np.nan  # without samples: all figures are NaN
        known = n / n
        mean, hat = total["tau"][j] / n, total["hat"][j] / n
        variance, spread = total["tau2"][j] / n - mean**2, total["hat2"][j] / n - hat**2
        rms = float(np.sqrt(total["tau2"][j] / n))
        scale = 1.0 if rms == 0 else rms
        product = total["product"][j] / n - mean * hat
        correlation = 0.0 if variance <= 0 or spread <= 0 else product / np.sqrt(variance * spread)
        rmse = float(np.sqrt(total["error2"][j] / n))
        at_rest = total["rest"][j] if "rest" in total else 0.0
        joints.append(
            JointMetrics(
                name=name,
                unit=regressor.model.effort_units[j],
                slides=bool(regressor.model.slides[j]),
                rms=rms,
                rmse=rmse,
                nrmse=rmse / scale,
                correlation=float(np.clip(correlation, -1, 1)),
                max_error=float(known * np.asarray(sums.largest)[j]),
                mean_error=float(total["error1"][j] / n),
                raw_nrmse=float(known * np.sqrt(total["raw2"][j] / max(total["tau_raw2"][j], 1e-300))),
                constant_nrmse=float(np.sqrt(max(variance, 0.0))) / scale,
                nominal_nrmse=float(np.sqrt(total["urdf2"][j] / n)) / scale if known_to_urdf[j] else np.nan,
                dynamic_rms=float(np.sqrt(total["dynamic2"][j] / n)),
                peak=float(known * peak[j]),
                detectable=float(detectable[j]),
                rated=float(known * rated[j]),
                load_torque=float(load_torque[j]),
                rest_share=float(at_rest / count[j]),
                rest_rmse=float(np.sqrt(total["rest_error2"][j] / at_rest)) if at_rest else 0.0,
            )
        )
    power, comparable = max(float(total["tau2"].sum()), 1e-300), float(total["tau2"][known_to_urdf].sum())
    urdf_error = float(np.sqrt(total["urdf2"][known_to_urdf].sum() / comparable)) if comparable else np.nan
    moving = np.nan
    if "rest" in total:
        moved = max(float((total["tau2"] - total["rest_tau2"]).sum()), 1e-300)
        moving = float(np.sqrt(max((total["error2"] - total["rest_error2"]).sum(), 0.0) / moved))
    return HeldOut(
        joints=tuple(joints),
        all_joints_nrmse=float(np.sqrt(total["error2"].sum() / power)),
        nominal_all_joints_nrmse=urdf_error,
        moving_nrmse=moving,
        unconstrained_nrmse=float(np.sqrt(total["free2"].sum() / power)) if "free2" in total else None,
        samples=sums.samples,
        outside=0.0,
        apparent_load=apparent_load,
    )
