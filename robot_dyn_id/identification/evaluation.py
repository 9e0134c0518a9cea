# SPDX-License-Identifier: Apache-2.0
"""What a model is worth on data that it has not seen: metrics, cross-check, verdict, and traces for plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.crosscheck import PINOCCHIO_SAMPLES, CrossCheck, cross_check
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.extrapolation import extrapolation
from robot_dyn_id.identification.metrics import HeldOut, compare
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.verdict import Verdict, judge
from robot_dyn_id.signals.cleaning import effort_sources
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.stillness import spoken, stillness
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
        verdict: with reasons.
        warnings: of the health gate and of the motion.
        trace: for plots.
        survey: of the data.
        plan: how the signals were treated.
        efforts: what the effort of each joint is made of.
        indefinite: share of the held-out poses in which the mass matrix is not positive definite.
    """

    held_out: HeldOut
    cross_check: CrossCheck
    verdict: Verdict
    warnings: tuple[str, ...]
    trace: Trace
    survey: Survey
    plan: SignalPlan
    efforts: tuple[str, ...]
    indefinite: float


def evaluate(
    recordings: Sequence[Recording],
    regressor: Regressor,
    columns: Integers,
    values: Array,
    settings: Settings,
    plan: SignalPlan,
    trained: Ranges | None,
    warnings: tuple[str, ...],
    condition_number: float,
    dropped_share: float,
    seen: Survey,
    unseen: tuple[str, ...] = (),
    covariance: Array | None = None,
) -> Evaluation:
    """Validate parameters on recordings, cross-check the equations on their samples, and judge."""
    efforts, more = effort_sources(recordings[0], regressor.model.joint_names, settings.drives)
    at_rest, counts = _at_rest(recordings, regressor.model.joint_names)
    warnings += more + (at_rest if counts else ())
    trials = FilteredTrials(recordings, regressor.model.joint_names, settings.drives, plan)
    held_out = compare(regressor, columns, values, trials, trained, covariance)
    if not held_out.samples:
        raise InputError(f"{', '.join(r.source for r in recordings)}: too short to validate on")
    some = _some_motion(trials, held_out.samples)
    check = cross_check(regressor, some)
    indefinite = 1.0 - float(Dynamics(regressor, columns, values).is_positive_definite(some.q.T).mean())
    if indefinite:
        warnings += (
            f"the mass matrix is not positive definite in {indefinite:.0%} of the poses: the model predicts torques, "
            f"but is none for forward dynamics or computed torque (weak inertias: move faster, or record longer)",
        )
    if unseen:
        warnings += (f"not excited by these data: {', '.join(unseen)}",)
    verdict = judge(
        held_out, settings.thresholds, check.passed, condition_number, dropped_share,
        bool(regressor.model.inertial_parameters.any()), warnings,
    )  # fmt: skip
    told = held_out.outside > settings.thresholds.outside_share  # by the verdict
    more = at_rest if told else (*at_rest, *extrapolation(held_out.outside_of))
    return Evaluation(
        held_out=held_out,
        cross_check=check,
        verdict=verdict,
        warnings=tuple(dict.fromkeys((*warnings, *verdict.reasons, *more))),
        trace=_trace(regressor, columns, values, trials, held_out.samples),
        survey=seen,
        plan=plan,
        efforts=efforts,
        indefinite=indefinite,
    )


def _at_rest(recordings: Sequence[Recording], joints: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Warnings for recordings that stand still in part, and whether most of the time does.

    Raises:
        InputError: they do not move at all.
    """
    seen = [stillness(recording, joints) for recording in recordings]
    sources = ", ".join(recording.source for recording in recordings)
    if not any(still.moves for still in seen):
        raise InputError(f"{sources}: stands still throughout: nothing can be validated on it; give data that move")
    texts = tuple(
        f"{recording.source} stands still {spoken(still.spans)}: there it is validated at rest; give data that move"
        for recording, still in zip(recordings, seen, strict=True)
        if still.spans
    )
    share = sum(still.at_rest for still in seen) / sum(still.length for still in seen)
    return texts, share > AT_REST


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
