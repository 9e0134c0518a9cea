# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a model on held-out data: metrics, cross-check, findings, and traces for plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.crosscheck import PINOCCHIO_SAMPLES, CrossCheck, cross_check
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section, format_findings
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.metrics import Fold, HeldOut, compare, compute_torque_uncertainty
from robot_dyn_id.identification.validation.passivity import report_driving_friction
from robot_dyn_id.identification.validation.rollout import Rollouts, simulate_rollouts
from robot_dyn_id.identification.validation.scales import (
    compute_gravity_deviation,
    compute_inertia_deviation,
    find_constant_torques,
    find_friction_levels,
)
from robot_dyn_id.identification.validation.thinning import ExtremeCurves
from robot_dyn_id.identification.validation.trace import Trace, thin_out
from robot_dyn_id.identification.validation.uses import (
    Criterion,
    ModelScales,
    UseJudgment,
    judge_uses,
    list_criteria,
    list_unloaded,
    report_criteria,
)
from robot_dyn_id.identification.validation.verdict import Verdict, judge_cross_check, judge_prediction
from robot_dyn_id.parameters import Ranges, ResidualProfile
from robot_dyn_id.signals.cleaning import find_effort_sources
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, MOTION_USES, NO
from robot_dyn_id.wording import format_spans

VALIDATED_AT_REST = Definition(
    "validated_at_rest",
    Section.VALIDATION,
    "info",
    "The robot is at rest in a part of the held-out data, where only gravity and stiction are validated. A "
    "warning if that is more than half of the time.",
    "record motion",
    lowers=dict.fromkeys((*MOTION_USES, "collision_detection"), LIMITED),
    check="rest",
)

MASS_MATRIX_INDEFINITE = Definition(
    "mass_matrix_indefinite",
    Section.VALIDATION,
    "warning",
    "The mass matrix is not positive definite in some configurations: the model can predict torques, but must not "
    "be used for forward dynamics or computed-torque control.",
    "record a faster or longer motion, or use the estimator `consistent`",
    lowers=dict.fromkeys(("computed_torque", "forward_simulation"), NO),
)

MAX_REST_SHARE = 0.5
"""Share of the held-out time at rest above which it is a warning."""


@dataclass(frozen=True)
class HeldOutData:
    """Data that a model is judged on, each part with a model that was identified without it.

    Attributes:
        method: origin of the held-out data, one of `HELD_OUT_METHODS`.
        trials: all held-out data; under cross-validation all training data.
        folds: their parts, with the model that predicts each of them.
    """

    method: str
    trials: FilteredTrials
    folds: tuple[Fold, ...]

    @classmethod
    def from_model(cls, method: str, trials: FilteredTrials, model: IdentifiedModel) -> HeldOutData:
        """Data that were not used for identification, all predicted by one model."""
        return cls(method, trials, (Fold.from_model(trials, model),))


CHECKED_POSES = 10_000
"""Number of random poses in which the mass matrix of a physically consistent model is checked."""


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a model on held-out data.

    Attributes:
        held_out: metrics of the prediction.
        cross_check: comparison of the equations with those of Pinocchio on samples of these data.
        findings: everything that was found about data and model.
        trace: measured and predicted torque for plots.
        trials: the held-out data; under cross-validation all training data.
        efforts: source of the effort of each joint.
        indefinite: share of the poses in which the mass matrix is not positive definite: held-out ones and, of models
            that are physically consistent, `CHECKED_POSES` random ones.
        criteria: figures that decide about the uses of the model.
        rollouts: simulations under the recorded efforts.
    """

    held_out: HeldOut
    cross_check: CrossCheck
    findings: tuple[Finding, ...]
    trace: Trace
    trials: FilteredTrials
    efforts: tuple[str, ...]
    indefinite: float
    criteria: tuple[Criterion, ...]
    rollouts: Rollouts

    @property
    def uses(self) -> tuple[UseJudgment, ...]:
        """Answers about the uses of the model."""
        names = [joint.name for joint in self.held_out.joints]
        return judge_uses(names, self.criteria, self.findings, list_unloaded(self.held_out))

    @property
    def plan(self) -> SignalPlan:
        """Decisions about the signals."""
        return self.trials.plan

    @property
    def verdict(self) -> Verdict:
        """The verdict that the findings lead to."""
        return Verdict.from_findings(self.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)

    def with_findings(self, findings: Iterable[Finding]) -> Evaluation:
        """The evaluation with further findings, each once."""
        return replace(self, findings=tuple(dict.fromkeys((*self.findings, *findings))))


def evaluate(
    model: IdentifiedModel,
    data: HeldOutData,
    trained: Ranges,
    settings: Settings,
    profile: ResidualProfile | None = None,
) -> Evaluation:
    """Evaluate a model on held-out data: predict, cross-check the equations, and judge.

    Args:
        model: the identified model.
        data: held-out data, filtered like the training data, and the models that predict them.
        trained: ranges of the training motion.
        settings: thresholds of the verdict, and drives of the joints.
        profile: residuals of the training data over the speed; None: not known, or these are the training data.

    Raises:
        InputError: data at rest throughout, or too short.
    """
    robot, held_out = model.regressor.model, data.trials
    efforts, findings = find_effort_sources(held_out.recordings[0], robot.joint_names, settings.drives)
    findings += _report_rest(held_out)
    extremes = ExtremeCurves(thin_out(held_out))
    metrics = replace(compare(data.folds, trained, extremes, settings.thresholds.explained), method=data.method)
    if not metrics.samples:
        raise InputError(f"{held_out.sources}: too short to validate on")
    metrics = metrics.with_uncertainty(
        compute_torque_uncertainty(model.regressor, model.columns, model.estimate.covariance, held_out)
    )
    states = _sample_motion(held_out, metrics.samples)
    metrics = metrics.with_friction(find_friction_levels(model.regressor, model.columns, model.values, states, trained))
    check = cross_check(model.regressor, states)
    poses = states.q.T
    if model.estimate.full is not None:
        poses = np.concatenate([poses, draw_random_motion(robot, CHECKED_POSES).q.T])
    indefinite = 1.0 - float(model.dynamics.is_positive_definite(poses).mean())
    if indefinite:
        message = (
            f"the mass matrix is not positive definite in {indefinite:.0%} of the poses: the model can predict "
            "torques, but must not be used for forward dynamics or computed-torque control"
        )
        findings += (MASS_MATRIX_INDEFINITE.found(message),)
    findings += report_driving_friction(model.dynamics, states.q.mean(axis=1), trained.dq_max)
    findings += judge_cross_check(check)
    findings += judge_prediction(metrics, settings.thresholds, profile)
    scales = _measure_scales(model, data.folds, states)
    criteria = list_criteria(metrics, scales, trained, settings.thresholds)
    findings += report_criteria(criteria, scales.rollouts)
    return Evaluation(
        held_out=metrics,
        cross_check=check,
        findings=tuple(dict.fromkeys(findings)),
        trace=Trace.from_folds(model, data.folds, metrics.samples, extremes, profile),
        trials=held_out,
        efforts=efforts,
        indefinite=indefinite,
        criteria=criteria,
        rollouts=scales.rollouts,
    )


def _measure_scales(model: IdentifiedModel, folds: Sequence[Fold], poses: Motion) -> ModelScales:
    """Uncertainty of a model in held-out poses, and rollouts along held-out data."""
    regressor, columns, covariance = model.regressor, model.columns, model.estimate.covariance
    return ModelScales(
        gravity_deviation=compute_gravity_deviation(regressor, columns, covariance, poses),
        constant=find_constant_torques(regressor, columns, model.values, poses),
        inertia_deviation=compute_inertia_deviation(regressor, columns, model.values, covariance, poses),
        rollouts=simulate_rollouts([(fold.dynamics, fold.trials) for fold in folds]),
    )


def _report_rest(trials: FilteredTrials) -> tuple[Finding, ...]:
    """Findings about recordings that are partly at rest: warnings if this is most of their time.

    Raises:
        InputError: no recording moves.
    """
    recordings, rests = trials.recordings, trials.survey.rests
    if not any(rest.moves for rest in rests):
        raise InputError(f"{trials.sources}: at rest throughout, cannot be used for validation: record motion")
    share = sum(rest.at_rest for rest in rests) / sum(rest.length for rest in rests)
    return tuple(
        VALIDATED_AT_REST.found(
            f"{recording.source} is at rest {format_spans(rest.spans)}: validation there covers gravity and stiction "
            "only",
            severity="warning" if share > MAX_REST_SHARE else "info",
        )
        for recording, rest in zip(recordings, rests, strict=True)
        if rest.spans
    )


def _sample_motion(trials: FilteredTrials, samples: int) -> Motion:
    """About `PINOCCHIO_SAMPLES` of all samples, equally spaced, for the cross-check."""
    stride, passed = max(1, samples // PINOCCHIO_SAMPLES), 0
    picked = []
    for window in trials:
        own = np.flatnonzero(window.used)
        picked.append(window.motion.take(own[-passed % stride :: stride]))
        passed += len(own)
    q, dq, ddq = (np.concatenate([getattr(m, name) for m in picked], axis=1) for name in ("q", "dq", "ddq"))
    return Motion(q, dq, ddq)
