# SPDX-License-Identifier: Apache-2.0
"""The health gate: what is wrong with a recording, before anything is estimated from it.

Each finding warns or refuses. A refusal can be overruled by naming its check in the configuration (`health.ignore`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.survey import Survey

CHECKS = ("effort", "motion", "degrees", "limits", "dropped", "velocity", "sign", "amperes", "delay")
"""Names of the checks."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        check: name of the check.
        text: one line naming the joints, and what to do.
        refuses: whether identification must not go on.
    """

    check: str
    text: str
    refuses: bool


def examine(survey: Survey, model: RobotModel) -> tuple[Finding, ...]:
    """All findings that the survey alone can show."""
    return (
        *_efforts(survey),
        *_motion(survey, model),
        *_positions(survey, model),
        *_rows(survey),
        *_velocities(survey),
    )


def refuse(findings: Iterable[Finding], ignore: Sequence[str], sources: Sequence[str]) -> tuple[str, ...]:
    """The findings as warnings.

    Raises:
        UnsafeDataError: a finding that refuses and is not to be ignored.
    """
    findings = tuple(findings)
    fatal = [finding for finding in findings if finding.refuses and finding.check not in ignore]
    if fatal:
        texts, checks = "; ".join(f.text for f in fatal), ", ".join(f.check for f in fatal)
        raise UnsafeDataError(f"{', '.join(sources)}: {texts} (health check: {checks})")
    return tuple(finding.text for finding in findings)


def _named(survey: Survey, flags: np.ndarray) -> str:
    return ", ".join(name for name, flag in zip(survey.joint_names, flags, strict=True) if flag)


def _efforts(survey: Survey) -> list[Finding]:
    dead = (survey.tau_max == survey.tau_min) | (survey.zero_rows > 0.99)
    findings = []
    if dead.any():
        findings.append(
            Finding(
                "effort",
                f"the effort of {_named(survey, dead)} is constant or zero: nothing can be learnt of "
                f"it; leave the joint out (joints: ... in --config)",
                refuses=True,
            )
        )
    coarse = ~dead & (survey.tau_distinct < 50)
    if coarse.any():
        findings.append(
            Finding(
                "effort",
                f"the effort of {_named(survey, coarse)} takes fewer than 50 values: a few counts of its sensor",
                refuses=False,
            )
        )
    return findings


def _motion(survey: Survey, model: RobotModel) -> list[Finding]:
    slides = np.array([unit == "N" for unit in model.effort_units])
    still = survey.q_max - survey.q_min < np.where(slides, 0.005, 0.02)
    if still.all():
        return [Finding("motion", "no joint moves: a constant posture tells nothing about dynamics", refuses=True)]
    if still.any():
        return [
            Finding(
                "motion",
                f"{_named(survey, still)} hardly moves: its friction and inertia cannot be told",
                refuses=False,
            )
        ]
    return []


def _positions(survey: Survey, model: RobotModel) -> list[Finding]:
    lower, upper = model.limits.lower, model.limits.upper
    beyond = (survey.q_min < lower - 0.05) | (survey.q_max > upper + 0.05)
    turns = np.maximum(np.abs(survey.q_min), np.abs(survey.q_max))
    degrees = beyond & ~model.prismatic[[model.body_names.index(n) for n in model.joint_names]] & (turns > 2 * math.pi)
    if degrees.any():
        return [
            Finding(
                "degrees",
                f"positions of {_named(survey, degrees)} reach {turns[degrees].max():.0f} and leave the "
                f"URDF's limits: they look like degrees, radians are needed",
                refuses=True,
            )
        ]
    if beyond.any():
        return [Finding("limits", f"positions of {_named(survey, beyond)} leave the URDF's limits", refuses=False)]
    return []


def _rows(survey: Survey) -> list[Finding]:
    share = survey.repairs.total_dropped / max(1, survey.repairs.rows)
    if share > 0.2:
        counts = ", ".join(f"{n} {reason}" for reason, n in sorted(survey.repairs.dropped.items()))
        return [Finding("dropped", f"{share:.0%} of the rows are unusable ({counts})", refuses=True)]
    if survey.repairs.gaps:
        return [
            Finding(
                "dropped", f"{survey.repairs.gaps} gaps in the time stamps: the recording is split there", refuses=False
            )
        ]
    return []


def _velocities(survey: Survey) -> list[Finding]:
    if not survey.has_velocity or survey.velocity_agrees:
        return []
    late = 1e3 * float(np.median(survey.velocity_lag[survey.bandwidth > 0]))
    return [
        Finding(
            "velocity",
            f"the recorded velocities disagree with the positions (late by {late:.0f} ms in the median): "
            "derivatives of the positions are used",
            refuses=False,
        )
    ]


def compare_with_nominal(
    names: Sequence[str], slopes: Array, correlations: Array, nominal_rms: Array
) -> tuple[Finding, ...]:
    """Wrong sign or unit of efforts, seen against the torque of the URDF's own parameters.

    Args:
        names: joints.
        slopes: measured over nominal torque, both about their means, shape (n,).
        correlations: of the two, shape (n,).
        nominal_rms: RMS of the nominal torque about its mean [N m or N], shape (n,).
    """
    carries = nominal_rms > 0.1 * nominal_rms.max(initial=0.0)
    reversed_ = carries & (correlations < -0.8)
    findings = []
    if reversed_.any():
        flipped = ", ".join(n for n, flag in zip(names, reversed_, strict=True) if flag)
        findings.append(
            Finding(
                "sign",
                f"the effort of {flipped} has the wrong sign against the URDF's own weight: set its sign in "
                "--config, or check the gravity vector and the URDF's axes",
                refuses=True,
            )
        )
    clear = carries & (correlations > 0.8)
    small = clear & (slopes < 0.15)
    if clear.any() and small.sum() == clear.sum():
        findings.append(
            Finding(
                "amperes",
                f"efforts are {float(np.median(slopes[clear])):.2g} of the URDF's own weight: they "
                "look like amperes; give gains [N m/A] in --config",
                refuses=True,
            )
        )
    large = clear & (slopes > 4.0)
    if large.any():
        told = ", ".join(
            f"{n} ({slope:.0f} times)" for n, slope, flag in zip(names, slopes, large, strict=True) if flag
        )
        findings.append(
            Finding(
                "amperes",
                f"the effort is far above the URDF's own weight: {told}; check the gain in --config, and the payload",
                refuses=False,
            )
        )
    return tuple(findings)


def too_little_motion(survey: Survey, parameters: int) -> tuple[str, ...]:
    """A warning if the motion is shorter than what as many numbers as there are parameters could describe, else none.

    Motion of a joint that changes no faster than its bandwidth B is 2 B numbers per second (Shannon). Many more samples
    of it, and rows of them, only repeat these.
    """
    seconds, pace = sum(survey.durations), 2.0 * float(np.sum(survey.bandwidth))
    if pace == 0.0 or pace * seconds >= parameters:
        return ()
    return (
        f"too little motion: {seconds:.1f} s of it, of bandwidths up to {survey.bandwidth.max():.2g} Hz, are some "
        f"{pace * seconds:.0f} independent positions for {parameters} parameters: record longer, whole periods of an "
        f"excitation",
    )
