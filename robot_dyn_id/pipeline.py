"""The straight line from recordings to an identified and validated model; it has no idea of its own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.consistency import is_consistent
from robot_dyn_id.crosscheck import SAMPLES, CrossCheck, cross_check
from robot_dyn_id.dataset import Array, Excerpt, Recording, duration
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import Estimate, Estimator, WeightedLeastSquares
from robot_dyn_id.estimators.smoothing import choose_widths
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.regressor import (
    Integers,
    Layout,
    LinearProblem,
    Motion,
    Regressor,
    regressor_of,
    terms_on_joints,
)
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.signals.cleaning import Drive, Repairs, clean
from robot_dyn_id.signals.diagnosis import delay, nominal_agreement
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.health import compare_with_nominal, examine, refuse
from robot_dyn_id.signals.processing import SignalPlan, Smooth, smooth, tiles
from robot_dyn_id.signals.survey import Survey, survey
from robot_dyn_id.signals.windows import windows
from robot_dyn_id.terms import Coulomb, Offset, Term, Viscous
from robot_dyn_id.validation import HeldOut, Ranges, Thresholds, Verdict, compare, judge, predict

Progress = Callable[[str], None]
"""Takes one line of what is being done."""

VELOCITIES = ("auto", "recorded", "derivative")


@dataclass(frozen=True)
class Settings:
    """Everything that a person may choose about an identification.

    Attributes:
        terms: columns beside the rigid body, on every joint.
        estimator: the estimator.
        drives: gains and signs of joints whose effort is a current.
        cutoff: of the zero-phase low-pass [Hz]; None: from the data.
        filter_order: of one pass.
        velocity: `recorded`, `derivative` of the positions, or `auto`: recorded if it agrees with them.
        pivots: pivot rule of the base parameters, `rref` or `qr`.
        estimate_widths: whether the smoothing width of Coulomb friction is chosen from the data, joint by joint.
        thresholds: of the verdict.
        ignore: health checks whose refusal is overruled.
    """

    terms: tuple[Term, ...] = (Viscous(), Coulomb(), Offset())
    estimator: Estimator = field(default_factory=WeightedLeastSquares)
    drives: Mapping[str, Drive] = field(default_factory=dict)
    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    pivots: str = "rref"
    estimate_widths: bool = False
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            UsageError: unknown velocity source.
        """
        if self.velocity not in VELOCITIES:
            raise UsageError(f"velocity must be one of {', '.join(VELOCITIES)}, not {self.velocity!r}")


@dataclass(frozen=True)
class Trace:
    """Measured and predicted torque along held-out data, thinned for plots; shapes (N,) and (n, N)."""

    t: Array
    measured: Array
    raw: Array
    predicted: Array


@dataclass(frozen=True)
class Evaluation:
    """What a model is worth on data that it has not seen.

    Attributes:
        held_out: metrics.
        cross_check: our equations against Pinocchio's on these samples.
        verdict: with reasons.
        warnings: of the health gate and of the motion.
        trace: for plots.
        survey: of the data.
        plan: how the signals were treated.
    """

    held_out: HeldOut
    cross_check: CrossCheck
    verdict: Verdict
    warnings: tuple[str, ...]
    trace: Trace
    survey: Survey
    plan: SignalPlan


@dataclass(frozen=True)
class Identification:
    """An identified model with everything that speaks for and against it.

    Attributes:
        parameters: the parameter set.
        evaluation: on held-out data; its survey and plan are those of the training data.
        estimate: of the estimator.
        rows: used rows of the linear problem and dropped samples.
        held_out_sources: what it was validated on.
    """

    parameters: ParameterSet
    evaluation: Evaluation
    estimate: Estimate
    rows: tuple[int, int]
    held_out_sources: tuple[str, ...]


def split(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    validation: Sequence[Recording] = (),
    train_range: tuple[float, float] | None = None,
) -> tuple[list[Recording], list[Recording]]:
    """Training and held-out data: as told, else the last trial, else the last third of the only one.

    Raises:
        UsageError: an empty range, or a range together with several trials or other validation data.
    """
    if train_range is None:
        if validation:
            return list(recordings), list(validation)
        if len(recordings) > 1:
            return list(recordings[:-1]), [recordings[-1]]
        length = duration(recordings[0], joints)
        middle = 2.0 * length / 3.0
        return [Excerpt(recordings[0], 0.0, middle)], [Excerpt(recordings[0], middle, math.inf)]
    start, stop = train_range
    if not (math.isfinite(start) and start < stop):
        raise UsageError(f"--train-range {start:g} {stop:g}: the first must be less than the second")
    if len(recordings) > 1:
        raise UsageError("--train-range needs one recording; with several, give the one to hold out with --validate")
    train: list[Recording] = [Excerpt(recordings[0], start, stop)]
    if validation:
        return train, list(validation)
    length = duration(recordings[0], joints)
    if start >= length:
        raise UsageError(f"--train-range {start:g} {stop:g}: {recordings[0].source} is only {length:.1f} s long")
    rest = [Excerpt(recordings[0], -math.inf, start)] if start > 0 else []
    rest += [Excerpt(recordings[0], stop, math.inf)] if stop < length else []
    if not rest:
        raise UsageError(f"--train-range {start:g} {stop:g} leaves nothing to validate on: give --validate as well")
    return train, list(rest)


def walker(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    plan: SignalPlan,
    need_effort: bool = True,
    keep_edges: bool = False,
) -> Callable[[], Iterator[Smooth]]:
    """A re-iterable walk over the smooth windows of all trials; segments are numbered through."""

    def walk() -> Iterator[Smooth]:
        base = 0
        for recording in recordings:
            last = -1
            cleaned = clean(recording, joints, drives, 1.0 / plan.rate, Repairs(), need_effort)
            for window in windows(cleaned, plan.cut):
                last = window.segment
                yield replace(smooth(window, plan, keep_edges), segment=base + window.segment)
            base += last + 1

    return walk


def plan_signals(seen: Survey, cutoff: float | None, order: int, velocity: str) -> SignalPlan:
    """The decisions about the signals, from a survey and what the user fixed."""
    low_pass = LowPass(seen.cutoff if cutoff is None else cutoff, order)
    recorded = seen.recorded_velocity if velocity == "auto" else velocity == "recorded" and seen.has_velocity
    return SignalPlan.of(seen.rate, low_pass, recorded)


def linear_problem(
    regressor: Regressor, columns: Integers, walk: Callable[[], Iterator[Smooth]], plan: SignalPlan
) -> LinearProblem:
    """The stream of tiles that estimators solve, for some columns of a regressor."""
    layout = Layout.of(regressor, columns)
    return LinearProblem(
        names=tuple(regressor.names[column] for column in columns),
        joint_names=regressor.model.joint_names,
        supports=layout.supports,
        tiles=lambda: tiles(regressor, layout, walk, plan),
        rate=plan.row_rate,
    )


def identify(
    training: Sequence[Recording],
    held_out: Sequence[Recording],
    model: RobotModel,
    settings: Settings,
    software_version: str,
    progress: Progress = lambda line: None,
) -> Identification:
    """Identify a robot's dynamics and validate it on data that it has not seen.

    Args:
        training: trials to estimate from.
        held_out: trials to validate on.
        model: the robot; its joints are the ones identified.
        settings: the choices.
        software_version: written into the result.
        progress: told what is being done.

    Raises:
        InputError: data that cannot be used, named.
        UnsafeDataError: the health gate refuses.
        UsageError: contradictory settings.
    """
    joints = model.joint_names
    progress("surveying the recordings")
    seen = survey(training, joints, settings.drives)
    warnings = refuse(examine(seen, model), settings.ignore, seen.sources)
    plan = plan_signals(seen, settings.cutoff, settings.filter_order, settings.velocity)
    walk = walker(training, joints, settings.drives, plan)
    _require_length(seen, plan)
    progress("finding the base parameters")
    regressor = Regressor(model, terms_on_joints(model, settings.terms))
    base = base_parameters(regressor, pivots=settings.pivots)
    agreement = nominal_agreement(regressor, walk, plan)
    warnings += refuse(compare_with_nominal(joints, *agreement), settings.ignore, seen.sources)
    trained = Ranges.of(walk())
    if settings.estimate_widths:
        progress("choosing the smoothing widths")
        regressor = choose_widths(
            regressor,
            base.independent,
            trained.dq_max,
            lambda wide, columns: linear_problem(wide, columns, walk, plan),
        )
        base = base_parameters(regressor, pivots=settings.pivots)
    progress(f"estimating {len(base.names)} base parameters ({settings.estimator.name})")
    estimate = settings.estimator.fit(linear_problem(regressor, base.independent, walk, plan))
    warnings += estimate.notes + delay(regressor, base.independent, estimate.values, walk, plan)
    progress("validating on held-out data")
    dropped = seen.repairs.total_dropped
    evaluation = evaluate(
        held_out, regressor, base.independent, estimate.values, settings, plan, trained, warnings,
        estimate.condition_number, dropped / max(1, seen.repairs.rows), seen, estimate.unseen,
    )  # fmt: skip
    parameters = _parameter_set(regressor, base, estimate, evaluation, trained, settings, software_version, training)
    return Identification(parameters, evaluation, estimate, (estimate.rows, dropped), tuple(r.source for r in held_out))


def _require_length(seen: Survey, plan: SignalPlan) -> None:
    needed = (2 * plan.edge + 16) / plan.rate
    if max(seen.durations) < needed:
        raise InputError(
            f"{', '.join(seen.sources)}: the longest uninterrupted stretch lasts {max(seen.durations):.2f} s; a cut-off of "
            f"{plan.low_pass.cutoff:.3g} Hz needs {needed:.2f} s"
        )


def evaluate(
    recordings: Sequence[Recording],
    regressor: Regressor,
    columns: np.ndarray,
    values: Array,
    settings: Settings,
    plan: SignalPlan,
    trained: Ranges | None,
    warnings: tuple[str, ...],
    condition_number: float,
    dropped_share: float,
    seen: Survey,
    unseen: tuple[str, ...] = (),
) -> Evaluation:
    """Validate parameters on recordings, cross-check the equations on their samples, and judge."""
    walk = walker(recordings, regressor.model.joint_names, settings.drives, plan)
    held_out = compare(regressor, columns, values, walk, plan, trained)
    if not held_out.samples:
        raise InputError(f"{', '.join(r.source for r in recordings)}: too short to validate on")
    check = cross_check(regressor, _some_motion(walk))
    if unseen:
        warnings += (f"not excited by these data: {', '.join(unseen)}",)
    verdict = judge(
        held_out, settings.thresholds, check.passed, condition_number, dropped_share,
        bool(regressor.model.inertial_parameters.any()), warnings,
    )  # fmt: skip
    return Evaluation(
        held_out=held_out,
        cross_check=check,
        verdict=verdict,
        warnings=tuple(dict.fromkeys((*warnings, *verdict.reasons))),
        trace=_trace(regressor, columns, values, walk, plan, held_out.samples),
        survey=seen,
        plan=plan,
    )


def _some_motion(walk: Callable[[], Iterator[Smooth]]) -> Motion:
    """A few samples of every window, for the cross-check."""
    picked = []
    for piece in walk():
        own = np.flatnonzero(piece.own)
        if len(own):
            picked.append(piece.motion.take(own[:: max(1, len(own) // SAMPLES)]))
    return Motion(*(np.concatenate([getattr(m, name) for m in picked], axis=1) for name in ("q", "dq", "ddq")))


TRACE = 3000
"""Samples kept for plots."""


def _trace(
    regressor: Regressor,
    columns: np.ndarray,
    values: Array,
    walk: Callable[[], Iterator[Smooth]],
    plan: SignalPlan,
    samples: int,
) -> Trace:
    stride = max(1, -(-samples // TRACE))
    parts: list[tuple[Array, Array, Array, Array]] = []
    for piece in walk():
        rows = np.flatnonzero(piece.own)[::stride]
        if piece.tau is not None and len(rows):
            measured = plan.low_pass.apply(piece.tau, plan.rate)[:, rows]
            predicted = predict(regressor, columns, values, piece.motion.take(rows))
            parts.append((piece.t[rows], measured, piece.tau[:, rows], predicted))
    return Trace(*(np.concatenate([part[i] for part in parts], axis=-1) for i in range(4)))


WEAK = 0.3
"""A parameter whose standard deviation is more than this share of its value is weak."""


def _parameter_set(
    regressor: Regressor,
    base: BaseParameters,
    estimate: Estimate,
    evaluation: Evaluation,
    trained: Ranges,
    settings: Settings,
    software_version: str,
    training: Sequence[Recording],
) -> ParameterSet:
    model, plan, seen = regressor.model, evaluation.plan, evaluation.survey
    inertial = 10 * len(model.body_names)
    full = np.zeros(len(regressor.names))
    full[base.independent] = estimate.values
    spread = np.full(len(regressor.names), np.inf)
    spread[base.independent] = estimate.standard_deviations
    columns = regressor.term_columns
    constants = [(f"{term.name}.{k}", c.name, v) for c, term in regressor.terms for k, v in term.constants.items()]
    with np.errstate(invalid="ignore"):
        weak = ~(estimate.standard_deviations <= WEAK * np.abs(estimate.values))
    status = np.where(np.isinf(estimate.standard_deviations), "not excited", np.where(weak, "weak", "good"))
    return ParameterSet(
        robot_name=model.name,
        urdf=model.urdf,
        urdf_sha256=hashlib.sha256(model.urdf.encode()).hexdigest(),
        joint_names=model.joint_names,
        held_joint_names=tuple(model.held),
        held_joint_positions=np.array(list(model.held.values()), dtype=np.float64),
        gravity=model.gravity,
        body_names=model.body_names,
        names=base.names,
        expressions=base.expressions,
        units=base.units,
        values=estimate.values,
        standard_deviations=estimate.standard_deviations,
        status=tuple(str(word) for word in status),
        covariance=estimate.covariance,
        column_names=base.column_names,
        mapping=base.mapping,
        independent_columns=base.independent.astype(np.uint32),
        standard_parameters=full[:inertial],
        physically_consistent=is_consistent(full[:inertial]),
        term_names=tuple(column.term.name for column in columns),
        term_joints=tuple(column.coordinate.name for column in columns),
        term_values=full[inertial:],
        term_standard_deviations=spread[inertial:],
        term_constant_names=tuple(name for name, _, _ in constants),
        term_constant_joints=tuple(joint for _, joint, _ in constants),
        term_constant_values=np.array([value for _, _, value in constants], dtype=np.float64),
        sample_rate=plan.rate,
        cutoff_frequency=plan.low_pass.cutoff,
        filter_order=plan.low_pass.order,
        data_sources=tuple(recording.source for recording in training),
        data_sha256=seen.sha256,
        estimator=settings.estimator.name,
        software_version=software_version,
        held_out_nrmse=np.array([joint.nrmse for joint in evaluation.held_out.joints]),
        held_out_all_joints_nrmse=evaluation.held_out.all_joints_nrmse,
        condition_number=estimate.condition_number,
        condition_number_scaling="columns",
        verdict=evaluation.verdict.word,
        reasons=evaluation.verdict.reasons,
        q_min=trained.q_min,
        q_max=trained.q_max,
        dq_max=trained.dq_max,
        ddq_max=trained.ddq_max,
    )


def validate(
    recordings: Sequence[Recording],
    parameters: ParameterSet,
    settings: Settings,
    progress: Progress = lambda line: None,
) -> Evaluation:
    """Judge an identified model on other recordings. Terms, filter and joints are those of the parameter set.

    Raises:
        InputError: data that cannot be used, named.
        UnsafeDataError: the health gate refuses.
    """
    regressor = regressor_of(parameters)
    progress("surveying the recordings")
    seen = survey(recordings, parameters.joint_names, settings.drives)
    warnings = refuse(examine(seen, regressor.model), settings.ignore, seen.sources)
    plan = plan_signals(seen, parameters.cutoff_frequency, parameters.filter_order, settings.velocity)
    _require_length(seen, plan)
    progress("predicting")
    trained = Ranges(parameters.q_min, parameters.q_max, parameters.dq_max, parameters.ddq_max)
    return evaluate(
        recordings, regressor, parameters.independent_columns.astype(np.int64), parameters.values, settings, plan, trained,
        warnings, parameters.condition_number, seen.repairs.total_dropped / max(1, seen.repairs.rows), seen,
    )  # fmt: skip


def predict_recording(
    recording: Recording, parameters: ParameterSet, velocity: str = "auto"
) -> tuple[Array, Array, tuple[str, ...]]:
    """Torques at a recording's own time stamps; measured efforts are never read.

    Returns:
        Stamps [s], shape (N,); torques [N m or N], shape (N, n), NaN where the motion is not usable; warnings.
    """
    regressor = regressor_of(parameters)
    joints = parameters.joint_names
    seen = survey([recording], joints, {}, need_effort=False)
    plan = plan_signals(seen, parameters.cutoff_frequency, parameters.filter_order, velocity)
    columns = parameters.independent_columns.astype(np.int64)
    times, torques, segments = [], [], []
    for piece in walker([recording], joints, {}, plan, need_effort=False, keep_edges=True)():
        times.append(piece.t[piece.own])
        torques.append(predict(regressor, columns, parameters.values, piece.motion.take(piece.own)))
        segments.append(np.full(len(times[-1]), piece.segment))
    grid, tau, segment = np.concatenate(times), np.concatenate(torques, axis=1).T, np.concatenate(segments)
    t = np.concatenate([chunk.t for chunk in recording.chunks(joints)])
    out = _interpolated(t, grid, tau, segment, 1.0 / plan.rate)
    lost = int(np.isnan(out).any(axis=1).sum())
    warnings = (f"{lost} of {len(t)} samples could not be predicted: their motion is missing",) if lost else ()
    return t, out, warnings


def _interpolated(t: Array, grid: Array, tau: Array, segment: np.ndarray, step: float) -> Array:
    """Predictions at stamps `t` from those on the grid; NaN outside every segment."""
    out = np.full((len(t), tau.shape[1]), np.nan)
    for number in np.unique(segment):
        of_segment = segment == number
        times, values = grid[of_segment], tau[of_segment]
        inside = (t >= times[0] - 1e-9) & (t <= times[-1] + step)
        for joint in range(tau.shape[1]):
            out[inside, joint] = np.interp(t[inside], times, values[:, joint])
    return out
