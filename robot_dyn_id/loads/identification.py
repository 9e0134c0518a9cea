# SPDX-License-Identifier: Apache-2.0
"""Identification of loads from recordings: a payload from joint torques, a tool from a wrench, drive gains."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.observation import observe_recordings
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.correction import correct_positions
from robot_dyn_id.identification.stages.examined import filter_recordings, report_earlier
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.loads.drive_gains import DriveGains, identify_drive_gains
from robot_dyn_id.loads.payload import (
    Payload,
    PayloadEstimate,
    allow_friction_change,
    compute_payload_mapping,
    correct_by_reference,
    estimate_at_sensor,
    estimate_on_arm,
    find_explained,
    shows_payload,
    transform_parameters,
)
from robot_dyn_id.loads.wrench import CHANNELS, compute_frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import Placement, find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, ParameterSet, Ranges, least_travel
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import FilteredWindow

FASTER_THAN_ARM = Definition(
    "faster_than_arm",
    Section.LOADS,
    "info",
    "The motion with the payload is faster than the training data of the bare arm, so that friction is extrapolated.",
    "record the payload at the speeds of the bare arm",
)

PAYLOAD_JOINT_AT_REST = Definition(
    "payload_joint_at_rest",
    Section.LOADS,
    "info",
    "Joints are at rest while others move: dry friction holds them at any torque within its own, so that their "
    "efforts are not used.",
    "move these joints too if the mass is poorly identified",
)

PAYLOAD_JOINT_UNEXPLAINED = Definition(
    "payload_joint_unexplained",
    Section.LOADS,
    "info",
    "The model of the bare arm explains little of the effort of joints, and that effort does not show the payload that "
    "the other joints show, as for a lift whose screw locks itself: it is not used.",
    "compare the effort of these joints at rest with and without the payload",
)

PAYLOAD_CONTRADICTED = Definition(
    "payload_contradicted",
    Section.LOADS,
    "warning",
    "A rigid body on the arm explains the recording with the payload much worse than the model of the arm explained "
    "its own held-out data (more than `thresholds.limited_ratio` times the error of all joints, or of one): the "
    "efforts, zeros or time stamps of the two differ, or the payload is not rigid.",
    "record bare arm and payload one after the other, and check gains, zeros and time stamps of the second one",
)

ARM_MODEL_DOUBTFUL = Definition(
    "arm_model_doubtful",
    Section.LOADS,
    "warning",
    "The model of the bare arm that a payload is identified on is not good itself: what is wrong in its torques "
    "is in the payload, beyond the standard deviations.",
    "identify the bare arm again, after the actions of its findings",
)

FASTER_RATIO = 1.1
"""Ratio of the speed to that in the training data of the bare arm above which it is reported."""

BIASES = tuple(f"bias of {channel}" for channel in CHANNELS)


@dataclass(frozen=True)
class PayloadOptions:
    """Choices about the identification of a payload on an arm.

    Attributes:
        reference: trials of the bare arm on the same motion, which correct the arm's model along it; empty: none.
        friction_change: standard deviation of the change of the friction since the arm was identified, relative to its
            values.
    """

    reference: Sequence[Recording] = ()
    friction_change: float = 0.0


DEFAULT_OPTIONS = PayloadOptions()


def identify_payload(
    loaded: Sequence[Recording],
    arm: ParameterSet,
    link: str,
    settings: Settings,
    options: PayloadOptions = DEFAULT_OPTIONS,
) -> tuple[Payload, tuple[Finding, ...]]:
    """Identify the payload of recordings, on an arm that was identified without it; see `estimate_payload`.

    Returns:
        The payload, and findings about the recordings.

    Raises:
        InputError: see `estimate_payload`; no payload.
        UnsafeDataError: the health gate refuses.
    """
    estimate, findings = estimate_payload(loaded, arm, link, settings, options)
    return estimate.payload(), findings


@one_blas_thread()
def estimate_payload(
    loaded: Sequence[Recording],
    arm: ParameterSet,
    link: str,
    settings: Settings,
    options: PayloadOptions = DEFAULT_OPTIONS,
) -> tuple[PayloadEstimate, tuple[Finding, ...]]:
    """Estimate the payload of recordings, on an arm that was identified without it.

    Joints that are at rest are left out: dry friction holds them at any torque within its own. So are joints whose
    effort the model of the arm does not explain, unless it shows the payload of the others more than none.

    Args:
        loaded: trials with the payload.
        arm: the bare arm, whose joints, terms and filter are used.
        link: link that carries the payload.
        settings: drives, source of the velocities, findings to overrule.
        options: reference of the bare arm, change of the friction.

    Returns:
        The estimate, and findings about the recordings.

    Raises:
        InputError: data that cannot be used, a link that does not move, an arm whose drive gains are not known, no
            joint that moves and whose effort the arm explains.
        UnsafeDataError: the health gate refuses.
    """
    arm.refuse_unknown_gains()
    regressor = Regressor.from_parameters(arm)
    at = find_placement_of(regressor.model, link)
    if options.friction_change:
        arm = allow_friction_change(arm, options.friction_change, regressor)
    trials, moving, findings = _payload_trials(loaded, arm, regressor, settings)
    beyond = _report_faster(arm, trials.ranges)
    columns = arm.base.independent
    if options.reference:
        bare, both, _ = _payload_trials(options.reference, arm, regressor, settings)
        arm = correct_by_reference(arm, bare.problem(regressor, columns).only_joints(np.flatnonzero(moving & both)))
    problem = trials.problem(regressor, columns)
    estimate, used = _estimate_on_joints(arm, problem, moving, link, at)
    if options.reference:  # its errors are those of the reference, no longer those of the arm
        estimate = replace(estimate, arm_slopes=None)
    contradicted = _report_contradicted(arm, estimate, settings.thresholds.limited_ratio)
    left_out = (*_report_rest(arm, moving), *_report_unexplained(arm, moving & ~used))
    return estimate, (*_report_arm(arm), *contradicted, *findings, *beyond, *left_out)


def _payload_trials(
    recordings: Sequence[Recording], arm: ParameterSet, regressor: Regressor, settings: Settings
) -> tuple[FilteredTrials, Mask, tuple[Finding, ...]]:
    """Filtered recordings, the joints that move in them, shape (n,), and findings about them."""
    read = Read.to_validate(recordings, arm, settings)
    trials, found, prints = filter_recordings(read.held_out, regressor, read.settings, settings.signals_of(arm))
    findings = (*read.findings, *found, *report_earlier(read, read.held_out, prints))
    travel = trials.ranges.q_max - trials.ranges.q_min
    moving = travel > least_travel(regressor.model.slides)
    if not moving.any():  # accepted by the user's overruling: then all rows are what there is
        moving[:] = True
    resting = set(np.array(arm.robot.joint_names)[~moving].tolist())
    return trials, moving, tuple(one for one in findings if not _only_about(one, resting))


def _only_about(finding: Finding, resting: Collection[str]) -> bool:
    """Whether a warning is about the motion of joints that are left out."""
    return finding.code == "joint_barely_moves" and set(finding.joints) <= set(resting)


def _report_arm(arm: ParameterSet) -> tuple[Finding, ...]:
    """Finding about a model of the bare arm that is not good."""
    if arm.judgment.verdict == "good":
        return ()
    message = f"the verdict on the model of the bare arm is {arm.judgment.verdict} ({'; '.join(arm.judgment.reasons)})"
    return (ARM_MODEL_DOUBTFUL.found(message),)


def _report_contradicted(arm: ParameterSet, estimate: PayloadEstimate, ratio: float) -> tuple[Finding, ...]:
    """Finding about a recording that differs from arm and payload more than the arm from its own held-out data.

    All joints together, or one of those that the payload was estimated on.
    """
    known, fit = arm.judgment.held_out_all_joints_nrmse, estimate.fit
    if fit is None:
        return ()
    names, profile = arm.robot.joint_names, arm.residuals
    usual = np.sqrt((profile.deviations**2).mean(axis=1)) if profile.is_known else np.zeros(len(names))
    apart = {}
    for row, name in enumerate(fit.rows):
        joint, here = names.index(name), float(fit.errors[row])
        there = float(arm.judgment.held_out_nrmse[joint])
        # relative to a small effort any error is large
        if here > ratio * there and fit.residuals[row] > ratio * usual[joint]:
            apart[name] = here, there
    if not apart and not fit.overall > ratio * known:
        return ()
    message = (
        f"arm and payload differ from the recording by {fit.overall:.1%} of the efforts; the model of the arm differed "
        f"by {known:.1%} from its own held-out data"
    )
    if apart:
        listed = ", ".join(f"{name} {here:.1%} and {there:.1%}" for name, (here, there) in apart.items())
        message += f"; by joint, here and there: {listed}"
    return (PAYLOAD_CONTRADICTED.found(message, apart),)


def _report_rest(arm: ParameterSet, moving: Mask) -> tuple[Finding, ...]:
    """Finding about joints that are left out because they are at rest."""
    resting = np.array(arm.robot.joint_names)[~moving].tolist()
    message = f"left out because they are at rest: {', '.join(resting)}"
    return (PAYLOAD_JOINT_AT_REST.found(message, resting),) if resting else ()


def _estimate_on_joints(
    arm: ParameterSet, problem: LinearProblem, moving: Mask, link: str, at: Placement
) -> tuple[PayloadEstimate, Mask]:
    """Estimate by the joints that move and whose effort the arm explains, or shows the payload that those show.

    Returns:
        The estimate, and the joints that it is from, shape (n,).

    Raises:
        InputError: no joint that moves, and whose effort the arm explains.
    """
    used = moving & find_explained(arm)
    if not used.any():
        unexplained = ", ".join(arm.judgment.unexplained_joints)
        raise InputError(
            f"the model of the arm explains too little of the effort of {unexplained} to find a payload in it, and no "
            "other joint moves: move others, or identify the arm again"
        )
    estimate = estimate_on_arm(arm, problem.only_joints(np.flatnonzero(used)), link, at)
    shown = [
        number
        for number in np.flatnonzero(moving & ~used).tolist()
        if shows_payload(arm, problem.only_joints([number]), estimate, at)
    ]
    if shown:
        used[shown] = True
        estimate = estimate_on_arm(arm, problem.only_joints(np.flatnonzero(used)), link, at)
    return estimate, used


def _report_unexplained(arm: ParameterSet, left_out: Mask) -> tuple[Finding, ...]:
    """Finding about joints that are left out because their effort is neither explained nor shows the payload."""
    joints = np.array(arm.robot.joint_names)[left_out].tolist()
    message = f"left out because the effort shows neither the model of the arm nor the payload: {', '.join(joints)}"
    return (PAYLOAD_JOINT_UNEXPLAINED.found(message, joints),) if joints else ()


def _report_faster(arm: ParameterSet, motion: Ranges) -> tuple[Finding, ...]:
    """Finding about joints that move faster than in the training data of the arm, where friction is extrapolated."""
    faster = np.array(arm.robot.joint_names)[motion.dq_max > FASTER_RATIO * arm.ranges.dq_max].tolist()
    message = f"faster than in the training data of the bare arm: {', '.join(faster)}"
    return (FASTER_THAN_ARM.found(message, faster),) if faster else ()


def add_payload(arm: ParameterSet, payload: Payload) -> ParameterSet:
    """The arm that carries a payload: base parameters, covariance, standard parameters; all else as the arm's.

    Errors of the bare arm that the payload was found on top of are partly in the payload too, with the other sign: the
    covariance is that of the sum.

    Raises:
        InputError: a link that does not move with the arm's joints, or an arm whose drive gains are not known.
    """
    arm.refuse_unknown_gains()
    at = find_placement_of(Regressor.from_parameters(arm).model, payload.link)
    added = compute_payload_mapping(arm, at)
    covariance = arm.estimate.covariance + added @ payload.covariance @ added.T
    if payload.arm_slopes is not None:
        cross = added @ payload.arm_slopes @ arm.estimate.covariance
        covariance += cross + cross.T
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    standard = np.array(arm.bodies.standard_parameters)
    standard[10 * at.body : 10 * at.body + 10] += transform_parameters(at) @ payload.parameters
    estimate = replace(
        arm.estimate,
        values=arm.estimate.values + added @ payload.parameters,
        covariance=covariance,
        standard_deviations=np.where(np.isinf(arm.estimate.standard_deviations), np.inf, sigma),
    )
    bodies = replace(arm.bodies, standard_parameters=standard, physically_consistent=is_consistent(standard))
    return replace(arm, estimate=estimate, bodies=bodies)


def estimate_tool(
    joints: Recording,
    wrench: WrenchRecording,
    model: RobotModel,
    link: str,
    settings: Settings,
    reaction: bool = False,
) -> tuple[PayloadEstimate, Array, Array]:
    """Estimate the body behind a 6-axis force-torque sensor.

    Args:
        joints: motion of the arm; efforts are not read.
        wrench: readings of the sensor, with time stamps of the same clock.
        model: the robot; its joints are those of the recording.
        link: link whose frame is that of the sensor.
        settings: cut-off, source of the velocities.
        reaction: False: the readings are the wrench of the tool on the sensor (at rest its weight points down); True:
            that of the sensor on the tool.

    Returns:
        The estimate, the offsets of the sensor (moment; force) [N m, N], and their standard deviations, shape (6,)
        each.

    Raises:
        InputError: data that cannot be used, stamps that do not overlap.
    """
    at = find_placement_of(model, link)
    signals = replace(settings.signals, period=0.0)
    trials = FilteredTrials.from_recordings([joints], model.joint_names, {}, signals, need_effort=False)
    plan = trials.plan
    sign = 1.0 if reaction else -1.0

    def tiles() -> Iterator[Tile]:
        for window in trials:
            rows = _covered(window, wrench, plan)
            if not rows.any():
                continue
            body = sign * wrench_regressor(compute_frame_motion(model, window.motion, at))
            readings = np.ascontiguousarray(interpolate_linear(window.t, wrench.t, wrench.wrench.T, hold_ends=True).T)
            for channel in range(6):
                parts = body[channel, _SUPPORTS[channel][:-1]], np.ones((1, len(window.t))), readings[None, channel]
                block = np.concatenate(parts)
                filtered = plan.low_pass.apply(block, plan.rate)[:, rows]
                yield Tile(channel, window.segment, filtered, window.trial, window.t[rows])

    if not any(_covered(window, wrench, plan).any() for window in trials):
        raise InputError(
            f"{wrench.source}: no sample of the wrench lies within the motion of {joints.source}: are both stamped by "
            "one clock?"
        )
    supports = tuple(np.array(support) for support in _SUPPORTS)
    problem = LinearProblem((*INERTIAL_SYMBOLS, *BIASES), CHANNELS, supports, tiles, plan.row_rate)
    return estimate_at_sensor(problem, link)


_SUPPORTS = tuple(
    (*((1, 2, 3, 4, 5, 6, 7, 8, 9) if channel < 3 else (0, 1, 2, 3)), 10 + channel) for channel in range(6)
)
"""Columns of each channel: moments do not depend on the mass, forces not on the inertia; each has its offset."""


def _covered(window: FilteredWindow, wrench: WrenchRecording, plan: SignalPlan) -> np.ndarray:
    """Mask of the samples of a window that become rows."""
    inside = (window.t >= wrench.t[0]) & (window.t <= wrench.t[-1])
    return np.asarray(window.own & inside & (window.number % plan.row_stride == 0))


@one_blas_thread()
def identify_gains(
    bare: Sequence[Recording],
    loaded: Sequence[Recording],
    model: RobotModel,
    payload: Payload,
    settings: Settings,
) -> DriveGains:
    """Identify the gain of every joint's drive from currents with and without a known payload.

    Args:
        bare: trials without the payload.
        loaded: trials with the payload.
        model: the robot; its joints are those of the recordings.
        payload: link and parameters of the payload.
        settings: terms, cut-off, source of the velocities.

    Raises:
        InputError: data that cannot be used, or without currents.
        UnsafeDataError: a health check refuses the data.
        UsageError: gains in the settings.
    """
    if any(drive.gain is not None for drive in settings.drives.values()):
        raise UsageError("gains are identified here: leave `gain` out of the configuration")
    joints = model.joint_names
    currents = {name: Drive(1.0, drive.sign) for name, drive in _drives(joints, settings).items()}
    regressor = Regressor(model, place_terms_on_joints(model, settings.fixed_terms, settings.couplings))
    base = compute_base_parameters(regressor, pivots=settings.pivots)
    problems, signals = [], replace(settings.signals, period=0.0)
    findings: tuple[Finding, ...] = ()
    for recordings in (bare, loaded):
        continued, jumps = correct_positions(observe_recordings(recordings, model, currents, False))
        trials, found, _ = filter_recordings(continued, regressor, replace(settings, drives=currents), signals)
        signals = replace(signals, cutoff=trials.plan.low_pass.cutoff)
        problems.append(trials.problem(regressor, base.independent))
        findings += (*jumps, *found)
    at = find_placement_of(model, payload.link)
    added = base.mapping[:, 10 * at.body : 10 * at.body + 10] @ transform_parameters(at) @ payload.parameters
    return replace(identify_drive_gains(problems[0], problems[1], added), findings=findings)


def _drives(joints: Sequence[str], settings: Settings) -> Mapping[str, Drive]:
    return {name: settings.drives.get(name, Drive()) for name in joints}
