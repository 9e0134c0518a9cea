# SPDX-License-Identifier: Apache-2.0
"""Matching the joints of a robot with those of its recordings."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.health import LIMIT_TOLERANCE
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import least_travel
from robot_dyn_id.recordings import FileRecording
from robot_dyn_id.signals.cleaning import LARGEST_POSITION
from robot_dyn_id.uses import LIMITED, USES

JOINTS_ASSUMED_FIXED = Definition(
    "joints_assumed_fixed",
    Section.DATA,
    "info",
    "Joints of the URDF are not recorded, and taken to be fixed at position 0.",
    "give their positions with `held` in the configuration if they are elsewhere",
    explains_errors=True,
)

FIXED_JOINT_DIFFERS = Definition(
    "fixed_joint_differs",
    Section.DATA,
    "warning",
    "A joint that is fixed for the identification is recorded, and moves, or rests elsewhere, by more than 0.02 "
    "rad or 5 mm: its motion and pose are in the efforts of the others.",
    "identify the joint too, or record again with this joint where it is fixed",
    lowers=dict.fromkeys(USES, LIMITED),
)

JOINTS_UNKNOWN = Definition(
    "joints_unknown",
    Section.DATA,
    "info",
    "Recorded joints are not moving joints of the URDF.",
    "check the names of the joints",
    explains_errors=True,
)

LEAST_SIMILARITY = 0.8
"""Similarity of two names of joints, by difflib, from which on one may be the other misspelled."""


def match_joints(
    robot: RobotModel,
    recordings: Sequence[Recording],
    fixed: Mapping[str, float],
    joints: Sequence[str] | None = None,
) -> RobotModel:
    """Restrict a robot to the joints that all recordings contain; the others are fixed.

    Args:
        robot: the robot with all its joints, or those that may be identified.
        recordings: recordings of it.
        fixed: positions of joints that are not identified [rad or m]; 0 where not given.
        joints: joints to identify; by default all recorded ones that are not in `fixed`.

    Raises:
        InputError: recordings that contain none of its joints, or not all of `joints`, or one with a misspelled name.
        UsageError: no joint is left.
    """
    _check_spelling(robot, recordings, fixed)
    recorded = [name for name in robot.joint_names if all(name in r.joint_names for r in recordings)]
    sources = ", ".join(r.source for r in recordings)
    without = [r for r in recordings if not set(r.joint_names) & set(robot.joint_names)]
    if not recorded and 0 < len(without) < len(recordings):
        one = without[0]
        raise InputError(
            f"{one.source}: none of the robot's joints ({', '.join(robot.joint_names)}) is in it, and they are in "
            f"{next(r.source for r in recordings if r not in without)}; it holds {', '.join(one.joint_names)}: leave "
            "this recording out, if it is of another robot, or rename its joints"
        )
    if not recorded:
        names = ", ".join(dict.fromkeys(n for r in recordings for n in r.joint_names)) or "no joints at all"
        raise InputError(
            f"{sources}: none of the robot's joints ({', '.join(robot.joint_names)}) is in it; it holds {names}: "
            "rename them in the recording, or give the robot description that has these names"
        )
    wanted = joints or tuple(name for name in recorded if name not in fixed)
    missing = [name for name in wanted if name not in recorded]
    if missing:
        raise InputError(f"{sources}: joint {', '.join(missing)} is not in it")
    if not wanted:
        raise UsageError("every joint of the recording is held: there is nothing to identify")
    description = RobotDescription(robot.urdf, robot.name)
    return RobotModel.from_description(description, joints=wanted, held=fixed, gravity=tuple(robot.gravity))


def _check_spelling(robot: RobotModel, recordings: Sequence[Recording], fixed: Collection[str]) -> None:
    """Refuse a joint of the robot that a recording has under a misspelled name: it would be taken as fixed.

    Raises:
        InputError: a recorded name that the robot does not have has the digits of a joint that is missing, and its
            letters in another order or case, or some more or fewer; or one name alone is missing, and one that is
            unknown is similar. Other letters may be those of another arm.
    """
    known = {*robot.joint_names, *robot.body_names, *robot.held, *fixed}
    for recording in recordings:
        missing = [name for name in robot.joint_names if name not in recording.joint_names and name not in fixed]
        unknown = [name for name in recording.joint_names if name not in known]
        alone = len(missing) == len(unknown) == 1
        for name in unknown:
            near = difflib.get_close_matches(name, missing, 1, LEAST_SIMILARITY)
            typed = [one for one in missing if _is_typing_error(name, one)]
            misspelled = [*near, *typed] if alone else [one for one in near if one in typed]
            if misspelled:
                raise InputError(
                    f"{recording.source}: the robot has no joint {name}, and the recording has no {misspelled[0]}: "
                    f"correct the name in the recording or in the URDF, or give the position of {misspelled[0]} with "
                    "`held` in the configuration"
                )


def _is_typing_error(name: str, other: str) -> bool:
    """Whether two names have the same digits, and one all letters of the other."""
    digits, letters = (
        [[char for char in word.casefold() if char.isalpha() == wanted and char.isalnum()] for word in (name, other)]
        for wanted in (False, True)
    )
    more, fewer = Counter(letters[0]), Counter(letters[1])
    return digits[0] == digits[1] and not (more - fewer and fewer - more)


def make_robot_for(
    robot: RobotDescription, configuration: Configuration, recordings: Sequence[Recording]
) -> RobotModel:
    """Model of a robot with the joints that a configuration and the recordings leave to identify; see `match_joints`.

    Raises:
        ModelError: the robot description cannot be used.
        InputError: see `match_joints`.
        UsageError: the configuration names a joint that the robot does not have, or fixes one outside its limits.
    """
    whole = RobotModel.from_description(robot, gravity=configuration.gravity or STANDARD_GRAVITY)
    _check_names(configuration, whole)
    check_fixed(configuration.held, whole)
    return match_joints(whole, recordings, configuration.held, configuration.identify)


def _check_names(configuration: Configuration, model: RobotModel) -> None:
    movable = {*model.joint_names, *model.body_names}
    for name in (*configuration.joints, *(configuration.identify or ())):
        if name not in movable:
            near = difflib.get_close_matches(name, movable, 1)
            hint = f"did you mean {near[0]}?" if near else f"its joints are {', '.join(model.joint_names)}"
            raise UsageError(f"{name} of the configuration is not a moving joint of {model.name}; {hint}")


def check_fixed(fixed: Mapping[str, float], model: RobotModel) -> None:
    """Check that joints are fixed within their limits, or within a full turn where the URDF gives none.

    Args:
        fixed: positions by joint name [rad or m].
        model: the robot with these joints.

    Raises:
        UsageError: a position outside the limits.
    """
    limits = zip(model.joint_names, model.limits.lower, model.limits.upper, model.position_units, strict=True)
    for name, lower, upper, unit in limits:
        position = fixed.get(name, 0.0)
        turn = 2.0 * math.pi if unit == "rad" else math.inf
        low, high = lower if math.isfinite(lower) else -turn, upper if math.isfinite(upper) else turn
        if position == 0.0 or low - LIMIT_TOLERANCE <= position <= high + LIMIT_TOLERANCE:
            continue
        radians = math.radians(position)
        degrees = unit == "rad" and low - LIMIT_TOLERANCE <= radians <= high + LIMIT_TOLERANCE
        hint = f": if these are degrees, give `held: {radians:.4g}`" if degrees else ""
        raise UsageError(
            f"joint {name}: held at {position:g} {unit}, outside its range from {low:.4g} to {high:.4g} {unit}{hint}"
        )


def report_fixed(model: RobotModel, recordings: Sequence[Recording]) -> tuple[Finding, ...]:
    """Findings about fixed joints that are recorded, and move there or rest elsewhere.

    Args:
        model: the robot with its fixed joints.
        recordings: recordings of it.
    """
    recorded = {name for recording in recordings for name in recording.joint_names}
    if not recorded & set(model.held):
        return ()
    whole = RobotModel.from_urdf(model.urdf)
    findings = []
    for name, unit in zip(whole.joint_names, whole.position_units, strict=True):
        if name not in model.held or name not in recorded:
            continue
        low, high = _range_of(name, [recording for recording in recordings if name in recording.joint_names])
        least = least_travel(unit == "m")
        fixed = model.held[name]
        if not max(high, fixed) - min(low, fixed) > least:  # also where no position is recorded
            continue
        message = f"{name} is fixed at {fixed:g} {unit}, but recorded from {low:.3g} to {high:.3g} {unit}"
        moves = high - low > least
        action = (
            f"identify {name} too, or record again with this joint at rest"
            if moves
            else f"set `joints: {{{name}: {{held: {0.5 * (low + high):.4g}}}}}` in the configuration"
        )
        findings.append(FIXED_JOINT_DIFFERS.found(message, [name], action=action))
    return tuple(findings)


def _range_of(joint: str, recordings: Sequence[Recording]) -> tuple[float, float]:
    """Least and greatest recorded position of a joint; infinite and reversed if there is none."""
    low, high = math.inf, -math.inf
    for recording in recordings:
        for chunk in recording.chunks([joint]):
            positions = chunk.q[np.abs(chunk.q) <= LARGEST_POSITION]
            low = min(low, float(positions.min(initial=low)))
            high = max(high, float(positions.max(initial=high)))
    return low, high


def report_unrecorded(model: RobotModel, given: Collection[str]) -> tuple[Finding, ...]:
    """Finding about fixed joints whose position is not given but assumed."""
    assumed = [name for name in model.held if name not in given]
    message = f"assumed fixed at 0: {', '.join(assumed)}"
    return (JOINTS_ASSUMED_FIXED.found(message, assumed),) if assumed else ()


def report_recordings(recordings: Sequence[Recording], joints: Sequence[str]) -> tuple[Finding, ...]:
    """Findings of the files about the samples of `joints`: dropped and repaired ones, each once."""
    files = [recording for recording in recordings if isinstance(recording, FileRecording)]
    return tuple(dict.fromkeys(finding for recording in files for finding in recording.findings(joints)))


def report_unknown_joints(
    recordings: Sequence[Recording], model: RobotModel, others: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Finding about recorded joints that the robot does not have, which may be misspelled.

    Args:
        recordings: the recordings.
        model: the robot.
        others: names that are expected for another reason.
    """
    known = {*model.body_names, *model.held, *others}
    names = dict.fromkeys(name for recording in recordings for name in recording.joint_names if name not in known)
    message = f"recorded joints that are not moving joints of the URDF: {', '.join(names)}"
    return (JOINTS_UNKNOWN.found(message, names),) if names else ()
