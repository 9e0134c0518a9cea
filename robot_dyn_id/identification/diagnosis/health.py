# SPDX-License-Identifier: Apache-2.0
"""Health gate: faults of a recording that are found before anything is estimated from it.

Findings of severity `error` refuse the data. Those whose definition says so can be overruled by naming their code in
the configuration (`ignore:`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.findings import Definition, Finding, Section, Severity
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import least_travel
from robot_dyn_id.signals.survey import Survey
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, MOTION_USES, NO, USES
from robot_dyn_id.wording import format_counts

EFFORT_CONSTANT = Definition(
    "effort_constant",
    Section.HEALTH,
    "error",
    "The effort of a joint is constant, or zero in more than 99 % of the samples: its sensor or topic is not "
    "connected. A warning where other joints have efforts: the joint is moved along by its recorded motion, and left "
    "out of what is identified.",
    "record the effort of the joint, if its model is needed",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="effort",
)

NO_MOTION = Definition(
    "no_motion",
    Section.HEALTH,
    "error",
    "No joint moves by more than 0.02 rad or 5 mm: a static pose does not excite the dynamics.",
    "record a motion of all joints",
    overrulable=True,
    check="rest",
)

POSITION_NOISE = Definition(
    "position_noise",
    Section.HEALTH,
    "error",
    "The positions of a joint scatter by more than 0.02 rad or 5 mm without a motion: more than half of their "
    "variance changes from sample to sample.",
    "check the encoder and the channel of the positions",
    overrulable=True,
    check="positions",
)

POSITIONS_IN_DEGREES = Definition(
    "positions_in_degrees",
    Section.HEALTH,
    "error",
    "Positions exceed a full turn and the position limits of the URDF.",
    "convert positions and velocities to radians",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="positions",
)

POSITIONS_IN_MILLIMETERS = Definition(
    "positions_in_millimeters",
    Section.HEALTH,
    "error",
    "A sliding joint is farther outside of the position limits of the URDF than these are apart.",
    "convert positions and velocities to meters",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="positions",
)

ROWS_UNUSABLE = Definition(
    "rows_unusable",
    Section.HEALTH,
    "error",
    "More than 20 % of the samples are missing, not finite, implausibly large or out of order.",
    "correct the export or the recorder",
    overrulable=True,
    check="rows",
)

EFFORT_SIGN = Definition(
    "effort_sign",
    Section.HEALTH,
    "error",
    "The efforts of the named joints oppose the torque of the other joints' motion, or of the URDF's own masses: "
    "their drives count in the other direction, the gravity vector or an axis of the URDF is wrong, or the URDF "
    "describes another robot with joints of the same names.",
    "check that the URDF describes this robot (axes, lengths) and its gravity vector; if so, set `sign: -1` for "
    "the joints in the configuration, or remove it where it is set",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

EFFORT_IN_AMPERES = Definition(
    "effort_in_amperes",
    Section.HEALTH,
    "error",
    "The efforts of all loaded joints are less than 15 % of the torque of the URDF's own masses, which is typical "
    "of motor currents; or no torques of the robot explain the efforts, and gains of all drives that differ explain "
    "more than a wrong factor of single efforts: then they are read as currents. A model is made, and its verdict is "
    "bad.",
    "give `gain` [N m/A] for each joint in the configuration, or set `effort_kind: current` for gains from the "
    "masses of the URDF",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

EFFORT_COARSE = Definition(
    "effort_coarse",
    Section.HEALTH,
    "warning",
    "The effort of a joint takes fewer than 50 distinct values: its sensor resolves only a few steps.",
    "use a sensor with a finer resolution, or a motion that needs larger efforts",
    check="effort",
)

EFFORT_TOO_LARGE = Definition(
    "effort_too_large",
    Section.HEALTH,
    "warning",
    "The effort is more than four times the torque of the URDF's own masses.",
    "check `gain` in the configuration, the payload, and the masses of the URDF",
    lowers=dict.fromkeys(USES, LIMITED),
    check="sign and unit",
)

JOINT_BARELY_MOVES = Definition(
    "joint_barely_moves",
    Section.HEALTH,
    "warning",
    "A joint moves by less than 0.02 rad or 5 mm: its friction and inertia are not identifiable. It was held, or its "
    "encoder does not count.",
    "record a motion of the joint (its encoder is dead if it moved in this one), or exclude it with `identify:` in "
    "the configuration",
    lowers=dict.fromkeys(MOTION_USES, NO),
    explains_errors=True,
    check="rest",
)

POSITION_LIMITS_EXCEEDED = Definition(
    "position_limits_exceeded",
    Section.HEALTH,
    "warning",
    "Positions exceed the limits of the URDF by more than 0.05 rad or m.",
    "check the zero positions, the units and the limits of the URDF",
    explains_errors=True,
    check="positions",
)

CLOCK_GAPS = Definition(
    "clock_gaps",
    Section.HEALTH,
    "warning",
    "Time stamps are interrupted for more than five sample periods and a period of the cut-off; the recording is "
    "split there. Information only for flexible joints.",
    "check the load of the computer and the network while recording",
    check="gaps",
)

VALUES_MISSING = Definition(
    "values_missing",
    Section.HEALTH,
    "warning",
    "Efforts or velocities of single joints are missing or implausible in more than 1 % of the samples. An effort "
    "that is missing leaves its joint out of that sample. Information below 1 %.",
    "check the driver and the recorder of the joint",
    check="rows",
)

VELOCITY_MISMATCH = Definition(
    "velocity_mismatch",
    Section.HEALTH,
    "warning",
    "Recorded velocities differ from the derivative of the positions by more than 5 %, or are late. Information "
    "if derivatives of the positions are used instead.",
    "use `velocity: derivative`, or correct the velocity filter of the driver",
    check="velocity",
)

VELOCITIES_SCALED = Definition(
    "velocities_scaled",
    Section.HEALTH,
    "warning",
    "Recorded velocities differ from the derivatives of the positions by the same factor on all joints: the time "
    "stamps, or all velocities, are scaled. With wrong stamps all inertias are wrong by the square of the factor.",
    "check the sample rate and the unit of the time stamps; leave the velocities out if these are right",
    lowers=dict.fromkeys((*MOTION_USES, "collision_detection"), LIMITED),
    check="velocity",
)

VELOCITIES_IN_OTHER_UNIT = Definition(
    "velocities_in_other_unit",
    Section.HEALTH,
    "warning",
    "Recorded velocities are the derivatives of the positions in another unit: degrees/s, rpm or turns/s, or with the "
    "opposite sign. Information if derivatives of the positions are used instead.",
    "convert the velocities to rad/s in the direction of the positions, or leave them out",
    lowers=dict.fromkeys((*MOTION_USES, "collision_detection"), LIMITED),
    check="velocity",
)

TOO_LITTLE_MOTION = Definition(
    "too_little_motion",
    Section.HEALTH,
    "warning",
    "The motion, of the bandwidth that it has, holds fewer independent positions than there are parameters.",
    "record longer, in whole periods of an excitation",
)

DEAD_ZERO_SHARE = 0.99
"""Share of samples with zero effort above which an effort counts as not connected."""

COARSE_SHARE = 0.5
"""Share of the samples that distinct values are compared with, where a recording is short."""

COARSE_VALUES = 50
"""Number of distinct efforts below which a sensor counts as coarse."""

NOISE_WHITENESS = 0.5
"""Whiteness of positions without a bandwidth above which they are noise; see `Survey.whiteness`."""

LIMIT_TOLERANCE = 0.05
"""Distance outside a position limit that is tolerated [rad or m]."""

MISSING_SHARE = 0.01
"""Share of a joint's values that are missing above which this is a warning."""

UNUSABLE_SHARE = 0.2
"""Share of unusable samples above which a recording is refused."""

CARRIES_RATIO = 0.1
"""Nominal torque of a joint, as a ratio to the largest one, above which it is compared with the effort."""

AGREES_CORRELATION = 0.8
"""Correlation of effort and nominal torque above which their ratio is meaningful; below its negative, the sign is
wrong."""

AMPERES_RATIO, TOO_LARGE_RATIO = 0.15, 4.0
"""Ratio of effort to nominal torque below which it looks like a current, and above which it is too large."""


SCALED_VELOCITY, SCALED_SPREAD, LARGEST_SCALE = 0.05, 0.02, 10.0
"""Ratio of the recorded velocities to the derivatives of the positions, less 1, above which time or velocities are
scaled, its largest spread over the joints, and the largest ratio."""

VELOCITY_UNITS = {
    "degrees/s": 180.0 / math.pi,
    "rpm": 30.0 / math.pi,
    "turns/s": 0.5 / math.pi,
    "the opposite direction": -1.0,
}
"""Units of velocities that are not rad/s, by their number in 1 rad/s; m/s have only another direction."""


TRAINING_NEEDS = frozenset({"effort_coarse", "joint_barely_moves", "velocity_mismatch"})
"""Warnings about what only training needs: a short part of the same recording may well validate, and the held-out error
shows what velocities do that were chosen then."""


def examine(survey: Survey, model: RobotModel, velocity: str = "auto") -> tuple[Finding, ...]:
    """All findings that the survey alone can show.

    Args:
        survey: survey of the recordings.
        model: the robot.
        velocity: source of the velocities, see `SignalSettings`; those that are not used are not examined.
    """
    return (
        *_examine_efforts(survey),
        *_examine_motion(survey, model),
        *_examine_positions(survey, model),
        *_examine_rows(survey),
        *_examine_missing(survey),
        *_examine_velocities(survey, velocity, model.slides),
    )


def examine_motion(trials: FilteredTrials, model: RobotModel, ignore: Sequence[str]) -> tuple[Finding, ...]:
    """Findings about a motion along which a model predicts or simulates efforts.

    Args:
        trials: the motion.
        model: the robot.
        ignore: codes of errors that are overruled.

    Raises:
        UnsafeDataError: an error that is not overruled.
    """
    survey, velocity = trials.survey, "recorded" if trials.plan.recorded_velocity else "derivative"
    velocities = _examine_velocities(survey, velocity, model.slides)
    found = (*_examine_positions(survey, model), *soften_for_validation(velocities))
    return refuse(found, ignore, survey.sources)


def soften_for_validation(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings about data that a model is validated on: warnings about what only training data need as information."""
    return tuple(
        replace(one, severity="info") if one.code in TRAINING_NEEDS and one.severity == "warning" else one
        for one in findings
    )


def overrule(findings: Iterable[Finding], ignore: Sequence[str]) -> tuple[Finding, ...]:
    """The findings, errors whose codes the user overrules as warnings."""
    return tuple(
        replace(one, severity="warning") if one.severity == "error" and one.code in ignore else one for one in findings
    )


def refuse(findings: Iterable[Finding], ignore: Sequence[str], sources: Sequence[str]) -> tuple[Finding, ...]:
    """Refuse data with errors.

    Args:
        findings: findings about the data.
        ignore: codes of errors that are overruled.
        sources: names of the recordings.

    Returns:
        The findings, overruled errors as warnings.

    Raises:
        UnsafeDataError: an error that is not overruled.
    """
    judged = overrule(findings, ignore)
    errors = tuple(one for one in judged if one.severity == "error")
    if errors:
        raise UnsafeDataError.from_findings(errors, sources)
    return judged


def _select(names: Sequence[str], flags: Mask) -> tuple[str, ...]:
    """Names whose flag is set."""
    return tuple(name for name, flag in zip(names, flags, strict=True) if flag)


def find_dead(survey: Survey) -> Mask:
    """Mask of the joints whose effort is constant, zero or missing, shape (n,)."""
    return np.asarray((survey.tau_max == survey.tau_min) | (survey.zero_rows > DEAD_ZERO_SHARE))


def _examine_efforts(survey: Survey) -> list[Finding]:
    findings = []
    dead = find_dead(survey)
    if dead.any():
        joints = _select(survey.joint_names, dead)
        message = f"the effort of {', '.join(joints)} is constant, zero or missing and cannot be used"
        if dead.all():
            findings.append(EFFORT_CONSTANT.found(message, joints))
        else:
            left_out = f"{message}: the recorded motion is used, and nothing else is identified there"
            findings.append(EFFORT_CONSTANT.found(left_out, joints, "warning"))
    few = min(COARSE_VALUES, COARSE_SHARE * (survey.repairs.rows - survey.repairs.total_dropped))
    coarse = ~dead & (survey.tau_distinct < few)
    if coarse.any():
        joints = _select(survey.joint_names, coarse)
        message = f"the effort of {', '.join(joints)} takes fewer than {COARSE_VALUES} distinct values"
        findings.append(EFFORT_COARSE.found(message, joints))
    return findings


def _examine_motion(survey: Survey, model: RobotModel) -> list[Finding]:
    fixed = survey.q_max - survey.q_min < least_travel(model.slides)
    if fixed.all():
        return [NO_MOTION.found("no joint moves: a static pose does not excite the dynamics")]
    noise = ~fixed & (survey.bandwidth == 0.0) & (survey.whiteness > NOISE_WHITENESS)
    if noise.any():
        joints = _select(survey.joint_names, noise)
        size = float((survey.q_max - survey.q_min)[noise].max())
        message = f"the positions of {', '.join(joints)} are noise: they scatter by {size:.2g} from sample to sample"
        return [POSITION_NOISE.found(message, joints)]
    if fixed.any():
        joints = _select(survey.joint_names, fixed)
        moves = "moves" if len(joints) == 1 else "move"
        message = f"{', '.join(joints)} barely {moves}: friction and inertia are not identifiable"
        return [JOINT_BARELY_MOVES.found(message, joints)]
    return []


def _examine_positions(survey: Survey, model: RobotModel) -> list[Finding]:
    units = find_position_units(model, survey.q_min, survey.q_max)
    if units:
        return units
    outside = _flag_outside(model, survey.q_min, survey.q_max)
    if outside.any():
        joints = _select(survey.joint_names, outside)
        message = f"positions of {', '.join(joints)} exceed the limits of the URDF"
        return [POSITION_LIMITS_EXCEEDED.found(message, joints)]
    return []


def find_position_units(model: RobotModel, low: Array, high: Array) -> list[Finding]:
    """Findings about positions that are not in radians or meters.

    Revolute joints are beyond a full turn and beyond the limits of the URDF, sliding ones farther beyond these than
    they are apart.

    Args:
        model: robot model with n joints.
        low: least position of each joint [rad or m], shape (n,).
        high: largest position of each joint [rad or m], shape (n,).
    """
    largest, limits = np.maximum(np.abs(low), np.abs(high)), model.limits
    outside = _flag_outside(model, low, high)
    turned = outside & ~model.slides & (largest > 2 * math.pi)
    slid = outside & model.slides & (np.maximum(limits.lower - low, high - limits.upper) > limits.upper - limits.lower)

    def describe(joints: Mask, per_unit: float, name: str) -> str:
        fits = per_unit * largest <= np.maximum(np.abs(limits.lower), np.abs(limits.upper)) + LIMIT_TOLERANCE
        unit = f"in {name}" if fits[joints].any() else f"counts of an encoder, as {name} would exceed them, too"
        return (
            f"positions of {', '.join(_select(model.joint_names, joints))} reach {largest[joints].max():.0f} and "
            f"exceed the limits of the URDF: they appear to be {unit}"
        )

    findings = []
    if turned.any():
        message = describe(turned, math.radians(1.0), "degrees")
        findings.append(POSITIONS_IN_DEGREES.found(message, _select(model.joint_names, turned)))
    if slid.any():
        message = describe(slid, 1e-3, "millimeters")
        findings.append(POSITIONS_IN_MILLIMETERS.found(message, _select(model.joint_names, slid)))
    return findings


def _flag_outside(model: RobotModel, low: Array, high: Array) -> Mask:
    return (low < model.limits.lower - LIMIT_TOLERANCE) | (high > model.limits.upper + LIMIT_TOLERANCE)


def _examine_rows(survey: Survey) -> list[Finding]:
    share = survey.repairs.total_dropped / max(1, survey.repairs.rows)
    if share > UNUSABLE_SHARE:
        counts = format_counts(survey.repairs.dropped)
        return [ROWS_UNUSABLE.found(f"{share:.0%} of the samples are unusable ({counts})")]
    if survey.repairs.gaps:
        gaps = f"{survey.repairs.gaps} gap{'s' * (survey.repairs.gaps != 1)}"
        return [CLOCK_GAPS.found(f"{gaps} in the time stamps: the recording is split there")]
    return []


def _examine_missing(survey: Survey) -> list[Finding]:
    """Findings about values of single joints that are missing or implausible, one for each channel."""
    findings = []
    for channel, counts in sorted(survey.repairs.missing.items()):
        if channel == "effort":  # joints without any effort have a finding of their own
            counts = np.where(find_dead(survey), 0, counts)
        if not counts.any():
            continue
        shares = counts / max(1, survey.repairs.rows)
        ratios = zip(survey.joint_names, shares.tolist(), strict=True)
        listed = ", ".join(f"{name} {share:.2g}" for name, share in ratios if share > 0.0)
        message = f"{channel} values are missing or implausible in these shares of the samples: {listed}"
        severity: Severity = "info" if shares.max() < MISSING_SHARE else "warning"
        findings.append(VALUES_MISSING.found(message, _select(survey.joint_names, counts > 0), severity))
    return findings


def _examine_velocities(survey: Survey, velocity: str, slides: Mask) -> list[Finding]:
    missing = survey.repairs.missing.get("velocity", 0) / max(1, survey.repairs.rows)  # a finding of its own
    known = np.isfinite(survey.velocity_gain) & (missing < MISSING_SHARE)
    if not survey.has_velocity:
        return []
    converted, findings = np.zeros_like(known), []
    for unit, factor in VELOCITY_UNITS.items():
        alike = known & (~slides | (factor < 0.0)) & (np.abs(survey.velocity_gain / factor - 1.0) < SCALED_SPREAD)
        if alike.any():
            findings.append(_report_unit(survey, unit, alike, velocity))
        converted |= alike
    if velocity == "derivative":
        findings = []
    known &= ~converted
    findings += _examine_time_scale(survey.velocity_gain[known])
    if survey.velocity_agrees_where(known) or velocity == "derivative":
        return findings
    late_ms = 1e3 * float(np.median(survey.velocity_lag[known & (survey.bandwidth > 0)]))
    message = f"the recorded velocities disagree with the positions (median delay {late_ms:.0f} ms): "
    if velocity == "recorded":
        return [*findings, VELOCITY_MISMATCH.found(f"{message}they are used all the same")]
    unused = f"{message}derivatives of the positions are used"
    return [*findings, VELOCITY_MISMATCH.found(unused, severity="info")]


def _report_unit(survey: Survey, unit: str, joints: Mask, velocity: str) -> Finding:
    """Recorded velocities of some joints, shape (n,), that are in another unit."""
    names = _select(survey.joint_names, joints)
    ratio = float(np.median(survey.velocity_gain[joints]))
    message = (
        f"the recorded velocities of {', '.join(names)} are {ratio:.3g} times the derivatives of the positions, as "
        f"those in {unit}: "
    )
    if velocity == "recorded":
        return VELOCITIES_IN_OTHER_UNIT.found(f"{message}they are used all the same", names)
    return VELOCITIES_IN_OTHER_UNIT.found(f"{message}derivatives of the positions are used", names, "info")


def _examine_time_scale(gain: Array) -> list[Finding]:
    """Recorded velocities that are the same multiple of the derivatives of the positions on several joints."""
    ratio = float(np.median(gain)) if len(gain) > 1 else 1.0
    if not 1.0 / LARGEST_SCALE < ratio < LARGEST_SCALE or abs(ratio - 1.0) < SCALED_VELOCITY:
        return []
    if np.abs(gain / ratio - 1.0).max() >= SCALED_SPREAD:
        return []
    message = f"on all joints the recorded velocities are {ratio:.3g} times the derivatives of the positions"
    return [VELOCITIES_SCALED.found(message)]


def compare_with_nominal(
    names: Sequence[str], slopes: Array, correlations: Array, nominal_rms: Array, *, weighed: bool = True
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Compare efforts with the torque of the URDF's own parameters: wrong sign or unit.

    Args:
        names: joints, n.
        slopes: ratio of measured to nominal torque, both about their means, shape (n,).
        correlations: correlation of the two, shape (n,).
        nominal_rms: RMS of the nominal torque about its mean [N m or N], shape (n,).
        weighed: whether the URDF has masses of this robot; placeholders show signs alone.

    Returns:
        Findings, and doubts about the unit of all efforts, which a model may predict all the same.
    """
    carries = nominal_rms > CARRIES_RATIO * nominal_rms.max(initial=0.0)
    findings, doubts = [], []
    reversed_ = carries & (correlations < -AGREES_CORRELATION)
    if reversed_.any():
        joints = _select(names, reversed_)
        message = f"the effort of {', '.join(joints)} has the opposite sign of the torque of the URDF's masses"
        findings.append(EFFORT_SIGN.found(message, joints))
    clear = carries & (correlations > AGREES_CORRELATION) & weighed
    small = clear & (slopes < AMPERES_RATIO)
    if clear.any() and small.sum() == clear.sum():
        ratio = float(np.median(slopes[clear]))
        message = f"efforts are {ratio:.2g} of the torque of the URDF's masses: they appear to be in amperes"
        doubts.append(EFFORT_IN_AMPERES.found(message, _select(names, small)))
    large = clear & (slopes > TOO_LARGE_RATIO)
    if large.any():
        ratios = zip(names, slopes, large, strict=True)
        listed = ", ".join(f"{name} ({slope:.0f} times)" for name, slope, flag in ratios if flag)
        message = f"the effort is far above the torque of the URDF's masses: {listed}"
        findings.append(EFFORT_TOO_LARGE.found(message, _select(names, large)))
    return tuple(findings), tuple(doubts)


def check_motion_content(survey: Survey, parameters: int) -> tuple[Finding, ...]:
    """Compare the information content of the motion with the number of parameters.

    The motion of a joint that has a bandwidth B is determined by 2 B numbers per second (Shannon). More samples of it,
    and rows of them, only repeat these.

    Args:
        survey: survey of the training data.
        parameters: number of parameters that are not at a bound.
    """
    positions = count_independent_positions(survey)
    if positions == 0.0 or positions >= parameters:
        return ()
    message = (
        f"too little motion: {sum(survey.durations):.1f} s of bandwidths up to {survey.bandwidth.max():.2g} Hz hold "
        f"about {positions:.0f} independent positions for {parameters} parameters"
    )
    return (TOO_LITTLE_MOTION.found(message),)


def count_independent_positions(survey: Survey) -> float:
    """Number of independent positions in a motion of the bandwidth that it has; see `check_motion_content`."""
    return sum(survey.durations) * 2.0 * float(np.sum(survey.bandwidth))
