# SPDX-License-Identifier: Apache-2.0
"""From recordings to the body at the end of an arm: a payload from joint torques, a tool from a wrench, drive gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.drive_gains import DriveGain, drive_gains
from robot_dyn_id.loads.payload import Payload, moved, payload_at_sensor, payload_mapping, payload_on_arm
from robot_dyn_id.loads.wrench import CHANNELS, frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.health import examine, refuse
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, plan_signals, require_signals
from robot_dyn_id.signals.windows import FilteredWindow

FASTER = 1.1
"""Speeds beyond this share of those that the bare arm was identified at are told."""

BIASES = tuple(f"bias of {channel}" for channel in CHANNELS)


def identify_payload(
    loaded: Sequence[Recording], arm: ParameterSet, link: str, settings: Settings
) -> tuple[Payload, tuple[Finding, ...]]:
    """The payload of recordings on top of an arm that was identified without it; and findings.

    Args:
        loaded: trials with the payload.
        arm: the bare arm; joints, terms and filter are its own.
        link: what carries the payload.
        settings: drives, source of the velocities, health checks to overrule.

    Raises:
        InputError: data that cannot be used, a link that does not move, no payload.
        UnsafeDataError: the health gate refuses.
    """
    regressor = Regressor.from_parameters(arm)
    at = placement_of(regressor.model, link)
    seen = survey(loaded, arm.joint_names, settings.drives)
    findings = refuse(examine(seen, regressor.model), settings.ignore, seen.sources)
    require_signals(regressor, seen)
    plan = plan_signals(seen, arm.cutoff_frequency, arm.filter_order, settings.velocity)
    trials = FilteredTrials(loaded, arm.joint_names, settings.drives, plan)
    beyond = _report_faster(arm, trials.ranges)
    columns = arm.independent_columns.astype(np.int64)
    payload = payload_on_arm(arm, trials.problem(regressor, columns), link, at)
    return payload, (*findings, *beyond)


def _report_faster(arm: ParameterSet, motion: Ranges) -> tuple[Finding, ...]:
    """Finding about joints that move faster than in the training data of the arm, where friction is extrapolated."""
    faster = np.array(arm.joint_names)[motion.dq_max > FASTER * arm.dq_max].tolist()
    message = f"faster than in the training data of the bare arm: {', '.join(faster)}"
    return (make_finding("faster_than_arm", message, faster),) if faster else ()


def with_payload(arm: ParameterSet, payload: Payload) -> ParameterSet:
    """The arm that carries a payload: base parameters, covariance, standard parameters; all else as the arm's.

    Errors of the bare arm that the payload was found on top of are partly in the payload too, with the other sign: the
    covariance is that of the sum.

    Raises:
        InputError: a link that does not move with the arm's joints.
    """
    at = placement_of(Regressor.from_parameters(arm).model, payload.link)
    added = payload_mapping(arm, at)
    covariance = arm.covariance + added @ payload.covariance @ added.T
    if payload.arm_slopes is not None:
        cross = added @ payload.arm_slopes @ arm.covariance
        covariance += cross + cross.T
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    standard = np.array(arm.standard_parameters)
    standard[10 * at.body : 10 * at.body + 10] += moved(at) @ payload.parameters
    return replace(
        arm,
        values=arm.values + added @ payload.parameters,
        covariance=covariance,
        standard_deviations=np.where(np.isinf(arm.standard_deviations), np.inf, sigma),
        standard_parameters=standard,
        physically_consistent=is_consistent(standard),
    )


def identify_tool(
    joints: Recording,
    wrench: WrenchRecording,
    model: RobotModel,
    link: str,
    settings: Settings,
    reaction: bool = False,
) -> tuple[Payload, Array, Array]:
    """The body behind a 6-axis sensor; the sensor's offsets (moment; force) [N m, N], and one sigma of them, (6,) each.

    Args:
        joints: motion of the arm; efforts are not read.
        wrench: of the sensor, stamped like the joints.
        model: the robot; its joints are those of the recording.
        link: the sensor's frame.
        settings: cut-off, source of the velocities.
        reaction: False: the sensor shows what the tool exerts on it (at rest a weight points down); True: what it
            exerts on the tool.

    Raises:
        InputError: data that cannot be used, stamps that do not overlap, a mass that is not positive.
    """
    at = placement_of(model, link)
    seen = survey([joints], model.joint_names, {}, need_effort=False)
    plan = plan_signals(seen, settings.cutoff, settings.filter_order, settings.velocity)
    trials = FilteredTrials([joints], model.joint_names, {}, plan, need_effort=False)
    sign = 1.0 if reaction else -1.0

    def tiles() -> Iterator[Tile]:
        for piece in trials:
            rows = _covered(piece, wrench, plan)
            if not rows.any():
                continue
            body = sign * wrench_regressor(frame_motion(model, piece.motion, at))
            shown = np.array([np.interp(piece.t, wrench.t, channel) for channel in wrench.wrench])
            for channel in range(6):
                block = np.concatenate([body[channel, _SUPPORTS[channel][:-1]], np.ones((1, len(piece.t))),
                                        shown[None, channel]])  # fmt: skip
                yield Tile(channel, piece.segment, plan.low_pass.apply(block, plan.rate)[:, rows])

    if not any(_covered(piece, wrench, plan).any() for piece in trials):
        raise InputError(f"{wrench.source}: no sample of the wrench lies within the motion of {joints.source}: are "
                         f"both stamped by one clock?")  # fmt: skip
    supports = tuple(np.array(support) for support in _SUPPORTS)
    problem = LinearProblem((*INERTIAL_SYMBOLS, *BIASES), CHANNELS, supports, tiles, plan.row_rate)
    return payload_at_sensor(problem, link)


_SUPPORTS = tuple(
    (*((1, 2, 3, 4, 5, 6, 7, 8, 9) if channel < 3 else (0, 1, 2, 3)), 10 + channel) for channel in range(6)
)
"""Parameters in each channel: no moment knows the mass, no force the inertia; each has its offset."""


def _covered(piece: FilteredWindow, wrench: WrenchRecording, plan: SignalPlan) -> np.ndarray:
    """Which samples of a window become rows."""
    inside = (piece.t >= wrench.t[0]) & (piece.t <= wrench.t[-1])
    return np.asarray(piece.own & inside & (piece.number % plan.row_stride == 0))


def identify_gains(
    bare: Sequence[Recording],
    loaded: Sequence[Recording],
    model: RobotModel,
    payload: Payload,
    settings: Settings,
) -> tuple[DriveGain, ...]:
    """Gain of every joint's drive from currents with and without a payload that is known.

    Args:
        bare: trials without it.
        loaded: trials with it.
        model: the robot; its joints are those of the recordings.
        payload: on which link, and its parameters.
        settings: terms, cut-off, source of the velocities.

    Raises:
        InputError: data that cannot be used, or without currents.
        UsageError: gains in the settings.
    """
    if any(drive.gain is not None for drive in settings.drives.values()):
        raise UsageError("gains are given already: leave `gain` out of the configuration, they are what is sought")
    joints = model.joint_names
    currents = {name: Drive(1.0, drive.sign) for name, drive in _drives(joints, settings).items()}
    regressor = Regressor(model, terms_on_joints(model, settings.terms, settings.couplings))
    base = base_parameters(regressor, pivots=settings.pivots)
    problems, cutoff = [], settings.cutoff
    for recordings in (bare, loaded):
        seen = survey(recordings, joints, currents)
        require_signals(regressor, seen)
        plan = plan_signals(seen, cutoff, settings.filter_order, settings.velocity)
        cutoff = plan.low_pass.cutoff
        trials = FilteredTrials(recordings, joints, currents, plan)
        problems.append(trials.problem(regressor, base.independent))
    at = placement_of(model, payload.link)
    added = base.mapping[:, 10 * at.body : 10 * at.body + 10] @ moved(at) @ payload.parameters
    return drive_gains(problems[0], problems[1], added)


def _drives(joints: Sequence[str], settings: Settings) -> Mapping[str, Drive]:
    return {name: settings.drives.get(name, Drive()) for name in joints}
