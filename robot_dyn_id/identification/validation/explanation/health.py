# SPDX-License-Identifier: Apache-2.0
"""Health of the data as a list of checks: what was checked and what was found, also where nothing was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.findings import Finding
from robot_dyn_id.signals.survey import Survey
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.wording import format_counts

CHECKS = (
    *("clock", "gaps", "rows", "rest", "positions", "velocity", "effort"),
    *("clipping", "delay", "sign and unit", "gravity", "drift", "contact", "repetition"),
)
"""Checks of data; `Definition.check` names that of a finding."""

NO_VELOCITY = "no velocities are recorded, positions are differentiated"
"""Reason why recorded velocities are not checked."""

PASSED, LOOK, NOT_CHECKED = "passed", "look here", "not checked"
"""Results of a check."""

TRAINING_CHECKS = frozenset({"sign and unit", "gravity", "drift", "contact"})
"""Checks that only an identification makes: efforts against the URDF, and residuals of one fit against each other."""


@dataclass(frozen=True)
class HealthCheck:
    """One check of the data.

    Attributes:
        check: stable name, one of `CHECKS`.
        result: `PASSED`: checked, without a finding of severity warning or error; `LOOK`: with one; `NOT_CHECKED`: the
            data do not allow this check, or it is made of training data only.
        found: one sentence with figures.
        codes: codes of the findings.
        joints: joints that the findings concern.
    """

    check: str
    result: str
    found: str
    codes: tuple[str, ...]
    joints: tuple[str, ...]


def explain_health(
    trials: FilteredTrials, findings: Sequence[Finding], effort_limits: Array, trained: bool = True
) -> tuple[HealthCheck, ...]:
    """List the checks of recordings.

    Args:
        trials: the recordings.
        findings: findings about them.
        effort_limits: effort limits of the URDF [N m or N], shape (n,); infinite or 0 without a limit.
        trained: whether a model was identified from them, rather than validated on them.
    """
    rows = []
    clipping = partial(_note_clipping, effort_limits=effort_limits)
    notes: Mapping[str, Callable[[FilteredTrials], str]] = {**_NOTES, "clipping": clipping}
    for check in CHECKS:
        own = [one for one in findings if one.definition.check == check]
        text = notes[check](trials) if check in notes else "nothing found"
        if own:
            messages = "; ".join(dict.fromkeys(one.message for one in own))
            text = f"{messages}; {text}" if check in notes else messages
        joints = tuple(dict.fromkeys(joint for one in own for joint in one.joints))
        reason = _reason_unchecked(check, trials, effort_limits, trained)
        if any(one.severity != "info" for one in own):
            result = LOOK
        elif reason or any(one.code == "gain_unverifiable" for one in own):
            result = NOT_CHECKED
            text = reason if reason and not own else text
        else:
            result = PASSED
        rows.append(HealthCheck(check, result, text, tuple(dict.fromkeys(one.code for one in own)), joints))
    return tuple(rows)


def _reason_unchecked(check: str, trials: FilteredTrials, effort_limits: Array, trained: bool) -> str:
    """Why the data do not allow a check; empty if they do."""
    if check == "velocity" and not trials.survey.has_velocity:
        return NO_VELOCITY
    if check == "clipping" and (limited := _is_limited(effort_limits)).sum() < len(limited):
        without = ", ".join(np.array(trials.joints)[~limited].tolist())
        return (
            f"no effort stays at its largest or smallest value, but the URDF states no effort limit of {without}: a "
            "drive at its limit behind a sensor that measures noise is not found"
        )
    return "checked at an identification only" if check in TRAINING_CHECKS and not trained else ""


def _note_clock(trials: FilteredTrials) -> str:
    survey: Survey = trials.survey
    seconds = sum(survey.durations)
    return f"{survey.rate:.4g} samples per second, {seconds:.1f} s in {len(survey.trials)} recordings"


def _note_gaps(trials: FilteredTrials) -> str:
    repairs = trials.survey.repairs
    return f"{repairs.gaps} gaps at which the data are split, {repairs.bridged} shorter ones bridged"


def _note_rows(trials: FilteredTrials) -> str:
    repairs = trials.survey.repairs
    dropped = f" ({format_counts(repairs.dropped)})" if repairs.dropped else ""
    missing = {channel: int(counts.sum()) for channel, counts in sorted(repairs.missing.items())}
    absent = f", single values missing: {format_counts(missing)}" if missing else ""
    return f"{repairs.total_dropped} of {repairs.rows} samples dropped{dropped}{absent}"


def _note_rest(trials: FilteredTrials) -> str:
    left_out = trials.survey.left_out
    return f"rows left out on purpose: {format_counts(left_out)}" if left_out else "nothing left out"


def _is_limited(effort_limits: Array) -> Mask:
    """Joints with an effort limit, shape (n,)."""
    return np.isfinite(effort_limits) & (effort_limits > 0.0)


def _note_clipping(trials: FilteredTrials, effort_limits: Array) -> str:
    """Largest effort as a share of the limit of its joint."""
    limited = _is_limited(effort_limits)
    if not limited.any():
        return "the URDF states no effort limits"
    largest = np.maximum(np.abs(trials.survey.tau_max), np.abs(trials.survey.tau_min))
    shares = np.divide(largest, effort_limits, out=np.zeros_like(largest), where=limited)
    joint = int(np.argmax(shares))
    return f"efforts reach up to {shares[joint]:.0%} of the limit of the URDF ({trials.joints[joint]})"


def _note_velocity(trials: FilteredTrials) -> str:
    survey = trials.survey
    if not survey.has_velocity:
        return NO_VELOCITY
    late = np.abs(survey.velocity_lag[np.isfinite(survey.velocity_lag)])
    used = "used" if trials.plan.recorded_velocity else "not used"
    return f"recorded velocities are {used}, delay against the positions up to {1e3 * late.max(initial=0.0):.1f} ms"


def _note_effort(trials: FilteredTrials) -> str:
    fewest = int(trials.survey.tau_distinct.min())
    return f"at least {fewest} distinct values of every joint"


_NOTES: Mapping[str, Callable[[FilteredTrials], str]] = {
    "clock": _note_clock,
    "gaps": _note_gaps,
    "rows": _note_rows,
    "rest": _note_rest,
    "velocity": _note_velocity,
    "effort": _note_effort,
}
"""Figures of checks that are stated whatever was found."""
