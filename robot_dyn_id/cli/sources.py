"""What the verbs that read a robot and recordings share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from robot_dyn_id.configuration import FRICTION, Configuration, read_configuration
from robot_dyn_id.dataset import Recording
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.recordings import FileRecording, open_recording
from robot_dyn_id.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.terms import TERMS


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """`--config`, and `--topic` for bags."""
    parser.add_argument("--config", metavar="FILE", help="gains, joints, filter, terms, estimator, thresholds (YAML)")
    parser.add_argument("--topic", help="JointState topic of bags (default: the only one)")


def configuration_from(arguments: argparse.Namespace) -> Configuration:
    """The configuration file with the command line's own options over it.

    Raises:
        UsageError: a wrong file, or options that contradict it.
    """
    configuration = read_configuration(arguments.config)
    given = {
        name: getattr(arguments, name) for name in ("topic", "cutoff") if getattr(arguments, name, None) is not None
    }
    if getattr(arguments, "gravity", None) is not None:
        given["gravity"] = tuple(arguments.gravity)
    if getattr(arguments, "estimator", None) is not None:
        given["estimator"] = ESTIMATORS[arguments.estimator]()
    if getattr(arguments, "friction", None) is not None:
        kept = [term for term in configuration.terms if term.name not in ("viscous", "coulomb")]
        present = {term.name: term for term in configuration.terms}
        friction = [present.get(name, TERMS[name]()) for name in FRICTION[arguments.friction]]
        given["terms"] = (*friction, *kept)
    return replace(configuration, **given)


def open_all(paths: Sequence[str], topic: str | None) -> list[FileRecording]:
    """Open recordings; each is a trial of its own."""
    return [open_recording(path, topic) for path in paths]


def robot_for(robot: str, configuration: Configuration, recordings: Sequence[Recording]) -> RobotModel:
    """The robot with the joints that the recordings hold, all others standing still.

    Raises:
        ModelError: the robot description cannot be used.
        InputError: recordings that hold none of its joints, or not those that were asked for.
    """
    gravity = configuration.gravity or STANDARD_GRAVITY
    whole = RobotModel.from_urdf(robot, gravity=gravity)
    _known(configuration, whole, robot)
    recorded = [name for name in whole.joint_names if all(name in r.joint_names for r in recordings)]
    if not recorded:
        names = ", ".join(dict.fromkeys(n for r in recordings for n in r.joint_names)) or "no joints at all"
        sources = ", ".join(r.source for r in recordings)
        raise InputError(
            f"{sources}: none of the robot's joints ({', '.join(whole.joint_names)}) is in it; it holds {names}"
        )
    wanted = configuration.identify or tuple(n for n in recorded if n not in configuration.held)
    missing = [name for name in wanted if name not in recorded]
    if missing:
        raise InputError(f"{', '.join(r.source for r in recordings)}: joint {', '.join(missing)} is not in it")
    if not wanted:
        raise UsageError("every joint of the recording is held: there is nothing to identify")
    return RobotModel.from_urdf(robot, joints=wanted, held=configuration.held, gravity=gravity)


def _known(configuration: Configuration, model: RobotModel, robot: str) -> None:
    movable = {*model.joint_names, *model.body_names}
    for name in (*configuration.joints, *(configuration.identify or ())):
        if name not in movable:
            raise UsageError(f"{name} of the configuration is not a moving joint of {robot}")


def unrecorded(model: RobotModel, configuration: Configuration) -> tuple[str, ...]:
    """A warning for joints whose position nobody gave."""
    assumed = [name for name in model.held if name not in configuration.held]
    return (f"taken to stand still at 0: {', '.join(assumed)}",) if assumed else ()


def notes(recordings: Sequence[FileRecording], joints: Sequence[str]) -> tuple[str, ...]:
    """What the files had to say about the samples of `joints`: drops and repairs, each once."""
    return tuple(dict.fromkeys(note for recording in recordings for note in recording.notes(joints)))


def strangers(recordings: Sequence[Recording], model: RobotModel) -> tuple[str, ...]:
    """A warning for recorded joints that the robot does not have, which may be misspelt ones."""
    known = {*model.body_names, *model.held}
    names = dict.fromkeys(name for recording in recordings for name in recording.joint_names if name not in known)
    return (f"recorded, but not a moving joint of the URDF: {', '.join(names)}",) if names else ()
