# SPDX-License-Identifier: Apache-2.0
"""What a model is worth on data that it has not seen: metrics, cross-check, verdict, and traces for plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.crosscheck import PINOCCHIO_SAMPLES, CrossCheck, cross_check
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Finding, format_findings, format_spans, make_finding
from robot_dyn_id.identification.metrics import HeldOut, compare
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.verdict import Verdict, judge_cross_check, judge_prediction, judge_training
from robot_dyn_id.signals.cleaning import effort_sources
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.stillness import stillness
from robot_dyn_id.signals.survey import Survey
from robot_dyn_id.signals.trials import FilteredTrials

AT_REST = 0.5
"""Share of the held-out time that stands still above which a verdict says little."""


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
        findings: everything that was found about data and model.
        trace: for plots.
        survey: of the data.
        plan: how the signals were treated.
        efforts: what the effort of each joint is made of.
        indefinite: share of the held-out poses in which the mass matrix is not positive definite.
    """

    held_out: HeldOut
    cross_check: CrossCheck
    findings: tuple[Finding, ...]
    trace: Trace
    survey: Survey
    plan: SignalPlan
    efforts: tuple[str, ...]
    indefinite: float

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
    recordings: Sequence[Recording],
    regressor: Regressor,
    columns: Integers,
    values: Array,
    settings: Settings,
    plan: SignalPlan,
    trained: Ranges | None,
    findings: tuple[Finding, ...],
    condition_number: float,
    dropped_share: float,
    seen: Survey,
    unseen: tuple[str, ...] = (),
    covariance: Array | None = None,
) -> Evaluation:
    """Validate parameters on recordings, cross-check the equations on their samples, and judge."""
    efforts, of_efforts = effort_sources(recordings[0], regressor.model.joint_names, settings.drives)
    findings += (*of_efforts, *_report_rest(recordings, regressor.model.joint_names))
    trials = FilteredTrials(recordings, regressor.model.joint_names, settings.drives, plan)
    held_out = compare(regressor, columns, values, trials, trained, covariance)
    if not held_out.samples:
        raise InputError(f"{', '.join(r.source for r in recordings)}: too short to validate on")
    some = _some_motion(trials, held_out.samples)
    check = cross_check(regressor, some)
    indefinite = 1.0 - float(Dynamics(regressor, columns, values).is_positive_definite(some.q.T).mean())
    if indefinite:
        message = (
            f"the mass matrix is not positive definite in {indefinite:.0%} of the poses: the model can predict "
            "torques, but must not be used for forward dynamics or computed-torque control"
        )
        findings += (make_finding("mass_matrix_indefinite", message),)
    if unseen:
        findings += (make_finding("not_excited", f"not excited by these data: {', '.join(unseen)}"),)
    findings += judge_cross_check(check)
    findings += judge_prediction(held_out, bool(regressor.model.inertial_parameters.any()), settings.thresholds)
    findings += judge_training(condition_number, dropped_share, settings.thresholds)
    return Evaluation(
        held_out=held_out,
        cross_check=check,
        findings=tuple(dict.fromkeys(findings)),
        trace=_trace(regressor, columns, values, trials, held_out.samples),
        survey=seen,
        plan=plan,
        efforts=efforts,
        indefinite=indefinite,
    )


def _report_rest(recordings: Sequence[Recording], joints: Sequence[str]) -> tuple[Finding, ...]:
    """Findings about recordings that are at rest in part: warnings if they are most of the time.

    Raises:
        InputError: they do not move at all.
    """
    seen = [stillness(recording, joints) for recording in recordings]
    sources = ", ".join(recording.source for recording in recordings)
    if not any(still.moves for still in seen):
        raise InputError(f"{sources}: stands still throughout: nothing can be validated on it; give data that move")
    share = sum(still.at_rest for still in seen) / sum(still.length for still in seen)
    return tuple(
        make_finding(
            "validated_at_rest",
            f"{recording.source} is at rest {format_spans(still.spans)}: validation there covers gravity and stiction "
            "only",
            severity="warning" if share > AT_REST else "info",
        )
        for recording, still in zip(recordings, seen, strict=True)
        if still.spans
    )


def _some_motion(trials: FilteredTrials, samples: int) -> Motion:
    """A few of all samples, for the cross-check."""
    stride, passed = max(1, samples // PINOCCHIO_SAMPLES), 0
    picked = []
    for piece in trials:
        own = np.flatnonzero(piece.own)
        picked.append(piece.motion.take(own[-passed % stride :: stride]))
        passed += len(own)
    return Motion(*(np.concatenate([getattr(m, name) for m in picked], axis=1) for name in ("q", "dq", "ddq")))


TRACE = 3000
"""Samples kept for plots."""


def _trace(
    regressor: Regressor,
    columns: Integers,
    values: Array,
    trials: FilteredTrials,
    samples: int,
) -> Trace:
    stride = max(1, -(-samples // TRACE))
    parts: list[tuple[Array, Array, Array, Array]] = []
    plan = trials.plan
    for piece in trials:
        rows = np.flatnonzero(piece.own)[::stride]
        if piece.tau is not None and len(rows):
            measured = plan.low_pass.apply(piece.tau, plan.rate)[:, rows]
            predicted = regressor.torque(piece.motion.take(rows), values, columns)
            parts.append((piece.t[rows], measured, piece.tau[:, rows], predicted))
    return Trace(*(np.concatenate([part[i] for part in parts], axis=-1) for i in range(4)))
