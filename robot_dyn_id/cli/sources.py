# SPDX-License-Identifier: Apache-2.0
"""Options of all commands that take a configuration."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from robot_dyn_id.dynamics.terms.friction import replace_friction
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.files.configuration import Configuration, read_configuration
from robot_dyn_id.files.prior import read_prior
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import COMPENSATIONS
from robot_dyn_id.recordings.bag_files import is_bag
from robot_dyn_id.recordings.lerobot import is_episode
from robot_dyn_id.workflow.joints import check_fixed

CONFIGURATION_UNUSED = Definition(
    "configuration_unused",
    Section.DATA,
    "info",
    "Entries of the configuration do not apply to this task or to these data.",
    "remove the entries",
)


def add_configuration(parser: argparse.ArgumentParser, bags: bool = True) -> None:
    """`--config`; for commands that read bags `--topic` and `--definitions`."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="gains, joints, filter, terms, estimator, thresholds (YAML), or the name of a robot (such as ur5e)",
    )
    if not bags:
        return
    parser.add_argument("--topic", help="topic of bags with the joint states (default: the only one)")
    parser.add_argument(
        "--definitions", metavar="DIR", help="folder with .msg files of types whose definition a bag lacks"
    )


def list_configuration_words(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The options of `add_configuration` as the command line has them."""
    given = {name: getattr(arguments, name) for name in ("config", "topic", "definitions")}
    return tuple(word for name, value in given.items() if value is not None for word in (f"--{name}", value))


def add_exclusion(parser: argparse.ArgumentParser) -> None:
    """`--exclude`, for commands that can leave times of a recording out."""
    parser.add_argument(
        "--exclude",
        nargs=2,
        type=float,
        action="append",
        metavar=("A", "B"),
        help="leave these seconds of the recording out, as findings count them; repeatable",
    )


def add_compensation(parser: argparse.ArgumentParser) -> None:
    """`--robot-compensates`, for commands whose output is commanded to a robot."""
    parser.add_argument(
        "--robot-compensates",
        nargs="+",
        choices=COMPENSATIONS[1:],
        default=(),
        metavar="WORD",
        help="what the driver adds to a command: gravity, friction, coriolis or none; default: as the parameters state",
    )


def read_configuration_from(arguments: argparse.Namespace) -> Configuration:
    """The configuration file with the command line's own options over it.

    Raises:
        UsageError: a wrong file, or options that contradict it.
    """
    configuration = read_configuration(arguments.config)
    given = {
        name: getattr(arguments, name)
        for name in ("topic", "definitions", "cutoff", "essential", "bootstrap")
        if getattr(arguments, name, None) is not None
    }
    if getattr(arguments, "gravity", None) is not None:
        given["gravity"] = tuple(arguments.gravity)
    if getattr(arguments, "estimator", None) is not None:
        given["estimator"] = ESTIMATORS[arguments.estimator]()
    if getattr(arguments, "friction", None) is not None:
        given["terms"] = replace_friction(configuration.settings.fixed_terms, arguments.friction)
    if getattr(arguments, "prior", None) is not None:
        given["prior"] = read_prior(arguments.prior)
    if getattr(arguments, "exclude", None):
        if isinstance(configuration.settings.exclude, Mapping):
            raise UsageError("--exclude: the configuration names the recordings under `exclude`: add the times there")
        given["exclude"] = (*configuration.settings.exclude, *map(tuple, arguments.exclude))
    configuration = configuration.with_values(**given)
    _check_bags(arguments, configuration)
    return configuration


def _check_bags(arguments: argparse.Namespace, configuration: Configuration) -> None:
    """Refuse entries that only apply to bags, or to other kinds of recordings, where none is one.

    Raises:
        UsageError: such an entry, which would have no effect.
    """
    values = [getattr(arguments, name, None) or () for name in ("data", "validate", "bare", "loaded")]
    paths = [Path(path) for value in values for path in ([value] if isinstance(value, str) else value)]
    if not hasattr(arguments, "definitions") or not paths:
        return
    for names, kind, applies in (
        (("topic", "reference_topic", "channel_topics", "definitions"), "bags", is_bag),
        (("position_unit",), "data sets of LeRobot", is_episode),
    ):
        entries = [name for name in names if getattr(configuration, name)]
        if entries and not any(applies(path) for path in paths):
            raise UsageError(f"{', '.join(entries)}: only for {kind}, and no recording is one; leave this out")


def report_unused(configuration: Configuration, keys: Sequence[str], task: str) -> tuple[Finding, ...]:
    """Findings about entries of the configuration that differ from their defaults and do not apply to a task.

    Args:
        configuration: the configuration.
        keys: attributes of `Configuration` and `Settings` that the task does not use.
        task: the task, for the message.
    """
    values, defaults = ({**vars(one.settings), **vars(one)} for one in (configuration, Configuration()))
    unused = [name for name in keys if values[name] != defaults[name]]
    if not unused:
        return ()
    return (CONFIGURATION_UNUSED.found(f"the configuration's {', '.join(unused)}: not used for {task}"),)


def read_robot_from(robot: RobotDescription, configuration: Configuration) -> RobotModel:
    """The robot with the joints that are identified, for commands without a recording.

    Raises:
        ModelError: the robot description cannot be used, or has not the joints of the configuration.
    """
    gravity = configuration.gravity or STANDARD_GRAVITY
    whole = RobotModel.from_description(robot, gravity=gravity)
    check_fixed(configuration.held, whole)
    moving = [name for name in configuration.identify or whole.joint_names if name not in configuration.held]
    return RobotModel.from_description(robot, joints=moving, held=configuration.held, gravity=gravity)
