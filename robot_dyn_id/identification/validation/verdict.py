# SPDX-License-Identifier: Apache-2.0
"""Verdict on an identified model: the findings that follow from the thresholds, and the word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from robot_dyn_id.dynamics.crosscheck import CrossCheck
from robot_dyn_id.findings import Definition, Finding, Section, Severity, format_findings
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.extrapolation import OUTSIDE_TRAINING, format_excesses, report_excesses
from robot_dyn_id.identification.validation.metrics import HeldOut, JointMetrics
from robot_dyn_id.parameters import ResidualProfile
from robot_dyn_id.uses import LIMITED, MOTION_USES, NO, USES
from robot_dyn_id.wording import format_shares

CROSS_CHECK_FAILED = Definition(
    "cross_check_failed",
    Section.VALIDATION,
    "error",
    "The regressor or the dynamics differ from Pinocchio's on the held-out samples.",
    "report the fault with the URDF",
)

HELD_OUT_ERROR = Definition(
    "held_out_error",
    Section.VALIDATION,
    "error",
    "The error on held-out data is above `thresholds.bad_nrmse`.",
    "check signs, gains and terms of the joints with the largest errors, then record again",
)

STICTION_AT_REST = Definition(
    "stiction_at_rest",
    Section.VALIDATION,
    "warning",
    "The error on held-out data is above `thresholds.bad_nrmse`, but not where the joints move: most of it is of "
    "joints at rest, whose dry friction carries any torque within its own.",
    "validate on a motion of all joints",
    lowers=dict.fromkeys(MOTION_USES, LIMITED),
)

NO_BETTER_THAN_CONSTANT = Definition(
    "no_better_than_constant",
    Section.VALIDATION,
    "error",
    "The prediction of a joint that carries a share of the torque is not better than the best constant.",
    "check the effort of the joint, and record a larger motion of it",
)

WORSE_THAN_URDF = Definition(
    "worse_than_urdf",
    Section.VALIDATION,
    "error",
    "The held-out error is more than 10 % above that of the URDF's own parameters.",
    "record a richer motion, or use an estimator with a prior",
)

JOINT_NOT_IDENTIFIABLE = Definition(
    "joint_not_identifiable",
    Section.VALIDATION,
    "warning",
    "Apart from its mean, less than half of the variance of a joint's torque is explained. Information if the "
    "error is below the friction of the joint, or below `thresholds.rated_share` of its rated effort.",
    "record a larger and faster motion of the joint",
    lowers=dict.fromkeys(MOTION_USES, LIMITED),
)

JOINT_HELD_OUT_ERROR = Definition(
    "joint_held_out_error",
    Section.VALIDATION,
    "warning",
    "The held-out error of a joint is above `thresholds.joint_nrmse`. Information if it is below the friction of "
    "the joint, or below `thresholds.rated_share` of its rated effort.",
    "check the effort of the joint and its friction terms",
)

HELD_OUT_WORSE_THAN_TRAINED = Definition(
    "held_out_worse_than_trained",
    Section.VALIDATION,
    "warning",
    "On recordings of their own, the error of a joint is more than `thresholds.limited_ratio` times the largest that "
    "its training data have at any speed, and above `thresholds.rated_share` of its rated effort: the robot, its load, "
    "its calibration or the recording differ from those that the model is of, or the motion is another one.",
    "compare tool, payload, zeros of the encoders, units and time stamps of both recordings; if they are the same, "
    "train on motion like the held-out one",
    lowers=dict.fromkeys(USES, LIMITED),
)

CONDITION_NUMBER_HIGH = Definition(
    "condition_number_high",
    Section.VALIDATION,
    "info",
    "Some parameters are poorly conditioned: the motion hardly separates their effects, so that single parameters "
    "are uncertain. A warning for flexible joints.",
    "use a richer excitation",
)

ROWS_DROPPED = Definition(
    "rows_dropped",
    Section.VALIDATION,
    "warning",
    "More than `thresholds.dropped_share` of the samples were dropped; the report lists the reasons.",
    "check the recorder and the units of the channels",
    check="rows",
)

PREDICTION_UNCERTAIN = Definition(
    "prediction_uncertain",
    Section.USES,
    "info",
    "The covariance of the parameters makes the predicted torque more uncertain than `thresholds.own_nrmse`.",
    "train longer, or on motion like the held-out one",
)

HELD_OUT_TOO_SLOW = Definition(
    "held_out_too_slow",
    Section.VALIDATION,
    "warning",
    "A joint reaches less than 20 % of its trained velocity in the held-out motion, which is too slow to validate "
    "inertia and friction.",
    "validate on a motion like the trained one",
    lowers=dict.fromkeys(MOTION_USES, LIMITED),
)

JOINT_NOT_VALIDATED = Definition(
    "joint_not_validated",
    Section.VALIDATION,
    "warning",
    "The held-out data have no valid effort of a joint: its prediction is unknown, and the model is fit for no use.",
    "record the effort of every joint in the held-out data",
    lowers=dict.fromkeys(USES, NO),
)


@dataclass(frozen=True)
class Verdict:
    """Verdict on a model.

    Attributes:
        word: `good`, `suspect` or `bad`.
        reasons: errors, then warnings, one line of text each.
    """

    word: str
    reasons: tuple[str, ...]

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> Verdict:
        """The verdict that findings lead to: bad with an error, suspect with a warning, else good."""
        findings = tuple(findings)
        errors, warnings = (format_findings(findings, severity) for severity in ("error", "warning"))
        return cls("bad" if errors else "suspect" if warnings else "good", (*errors, *warnings))


def judge_cross_check(check: CrossCheck) -> tuple[Finding, ...]:
    """Finding about a cross-check that failed."""
    if check.passed:
        return ()
    message = f"the cross-check with Pinocchio failed: largest difference {check.max_difference:.1e}"
    return (CROSS_CHECK_FAILED.found(message),)


def judge_prediction(
    held_out: HeldOut, thresholds: Thresholds, profile: ResidualProfile | None = None
) -> tuple[Finding, ...]:
    """Findings about the prediction of held-out data.

    Args:
        held_out: metrics.
        thresholds: thresholds of the verdict.
        profile: residuals of the training data; None: not known, or the held-out data are the training data.
    """
    findings = _judge_all_joints(held_out, thresholds)
    missing = [joint.name for joint in held_out.joints if not joint.is_validated]
    if missing:
        message = f"the held-out data have no valid effort of joint {', '.join(missing)}: it is not validated"
        findings.append(JOINT_NOT_VALIDATED.found(message, missing))
    validated = [joint for joint in held_out.joints if joint.is_validated]
    power = sum(joint.rms**2 for joint in validated)
    for joint in validated:
        findings += _judge_joint(joint, joint.rms**2 >= thresholds.constant_share**2 * power, thresholds)
    if profile is not None:
        names, largest = [joint.name for joint in held_out.joints], profile.deviations.max(axis=1).tolist()
        findings += _compare_with_training(validated, dict(zip(names, largest, strict=True)), thresholds)
    if held_out.all_joints_nrmse > (1 + thresholds.nominal_margin) * held_out.nominal_all_joints_nrmse:
        message = (
            f"held-out error {held_out.all_joints_nrmse:.1%} is worse than that of the URDF's own parameters, "
            f"{held_out.nominal_all_joints_nrmse:.1%}"
        )
        findings.append(WORSE_THAN_URDF.found(message))
    return (*findings, *_judge_motion(held_out, thresholds))


def _judge_all_joints(held_out: HeldOut, thresholds: Thresholds) -> list[Finding]:
    """Findings about the error of all joints; one that joints at rest make within their friction is not the model's."""
    if held_out.all_joints_nrmse <= thresholds.bad_nrmse:
        return []
    message = f"held-out error of all joints is {held_out.all_joints_nrmse:.1%}, above {thresholds.bad_nrmse:.0%}"
    stuck = [joint for joint in held_out.joints if joint.within_stiction]
    if not (stuck and held_out.moving_nrmse <= thresholds.bad_nrmse):
        return [HELD_OUT_ERROR.found(message)]
    shares = format_shares([(joint.name, joint.rest_share) for joint in stuck])
    message += (
        f", but {held_out.moving_nrmse:.1%} where the joints move; at rest, where dry friction carries any torque "
        f"within its own: {shares} of the samples"
    )
    return [STICTION_AT_REST.found(message, [joint.name for joint in stuck])]


def _judge_joint(joint: JointMetrics, carries: bool, thresholds: Thresholds) -> list[Finding]:
    """Findings about one joint; `carries`: whether its share of the torque is considerable."""
    if carries and not (joint.nrmse < joint.constant_nrmse or joint.within_stiction):
        message = f"joint {joint.name}: the prediction is not better than a constant"
        return [NO_BETTER_THAN_CONSTANT.found(message, [joint.name])]
    # little torque, all of it noise and friction, gives large ratios: what matters then is the error in N m
    harmless = joint.rmse <= max(joint.friction, thresholds.rated_share * joint.rated)
    severity: Severity = "info" if harmless else "warning"
    error = f"held-out error {joint.rmse:.3g} {joint.unit} of {joint.rms:.3g} {joint.unit} RMS"
    if not joint.explained >= thresholds.explained:
        message = (
            f"joint {joint.name} is not identifiable from these data: {max(joint.explained, 0):.0%} of the variance "
            f"of its torque is explained ({error})"
        )
        return [JOINT_NOT_IDENTIFIABLE.found(message, [joint.name], severity)]
    if joint.nrmse > thresholds.joint_nrmse:
        message = f"joint {joint.name}: {error}, above {thresholds.joint_nrmse:.0%}"
        return [JOINT_HELD_OUT_ERROR.found(message, [joint.name], severity)]
    return []


def _compare_with_training(
    joints: Sequence[JointMetrics], trained: Mapping[str, float], thresholds: Thresholds
) -> list[Finding]:
    """Findings about joints whose error is far above that of the training data.

    Args:
        joints: metrics of joints.
        trained: largest RMS of the residuals of the training data at any speed, by joint [N m or N].
        thresholds: thresholds of the verdict.
    """
    worse = [
        (joint.name, joint.rmse / trained[joint.name])
        for joint in joints
        if joint.rmse > thresholds.limited_ratio * trained[joint.name] > 0.0
        and not joint.rmse <= thresholds.rated_share * joint.rated
    ]
    if not worse:
        return []
    listed = ", ".join(f"{name} {ratio:.2g} times" for name, ratio in worse)
    message = f"the held-out error is far above that of the training data: joint {listed}"
    return [HELD_OUT_WORSE_THAN_TRAINED.found(message, [name for name, _ in worse])]


def _judge_motion(held_out: HeldOut, thresholds: Thresholds) -> list[Finding]:
    """Findings about the held-out motion, compared with the training motion."""
    findings = []
    if held_out.outside > thresholds.outside_share:
        which = f" ({format_excesses(held_out.outside_of)})" if held_out.outside_of else ""
        message = f"{held_out.outside:.0%} of the held-out samples are far outside the training motion{which}"
        joints = dict.fromkeys(excess.joint for excess in held_out.outside_of)
        findings.append(OUTSIDE_TRAINING.found(message, joints, "warning"))
    else:
        findings += report_excesses(held_out.outside_of)
    uncertain = [(joint.name, joint.own_nrmse) for joint in held_out.joints if joint.own_nrmse > thresholds.own_nrmse]
    if uncertain:
        message = f"predicted torque is uncertain due to parameter covariance: joint {format_shares(uncertain)}"
        findings.append(PREDICTION_UNCERTAIN.found(message, [name for name, _ in uncertain]))
    if held_out.slow:
        message = (
            "the held-out motion is too slow to validate inertia and friction: of the trained top speed it reaches, "
            f"joint {format_shares(held_out.slow)}"
        )
        findings.append(HELD_OUT_TOO_SLOW.found(message, [name for name, _ in held_out.slow]))
    return findings


def judge_training(condition_number: float, dropped_share: float, thresholds: Thresholds) -> tuple[Finding, ...]:
    """Findings about the training data.

    Args:
        condition_number: condition number of the training rows with unit-norm columns.
        dropped_share: share of the samples that were dropped.
        thresholds: thresholds of the verdict.
    """
    findings = []
    if condition_number > thresholds.condition_number:
        message = "some parameters are not excited at all: the condition number is infinite"
        if math.isfinite(condition_number):
            message = (
                f"some parameters are poorly conditioned: condition number {condition_number:.3g} (unit-norm columns), "
                f"above {thresholds.condition_number:g}"
            )
        findings.append(CONDITION_NUMBER_HIGH.found(message))
    if dropped_share > thresholds.dropped_share:
        findings.append(ROWS_DROPPED.found(f"{dropped_share:.1%} of the samples were dropped"))
    return tuple(findings)
