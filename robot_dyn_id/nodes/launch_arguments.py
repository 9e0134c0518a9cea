# SPDX-License-Identifier: Apache-2.0
"""Arguments of the launch files: default, meaning and check of each, in one table.

This module does not import `launch`, so that documentation and tests can read the table without a ROS 2 distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.text.yaml import parse_yaml


def read_yaml_value(text: str) -> Any:
    """Read a launch argument that is written as YAML."""
    return parse_yaml(text, "launch argument")


def read_boolean(text: str) -> bool:
    """Read a launch argument that is `true` or `false`.

    Raises:
        ValueError: the text is not one of them.
        InputError: the text is not YAML.
    """
    value = read_yaml_value(text)
    if not isinstance(value, bool):
        raise ValueError("give true or false")
    return value


def read_number(text: str) -> float:
    """Read a launch argument that is a number.

    Raises:
        ValueError: the text is not one.
    """
    return float(text)


@dataclass(frozen=True)
class LaunchArgument:
    """An argument of launch files.

    Attributes:
        default: default value as text; a launch file may replace it.
        description: text for `ros2 launch PACKAGE FILE --show-args`.
        read: function that converts the text to the value of a ROS parameter.
        choices: texts that are allowed; empty allows all.
    """

    default: str
    description: str
    read: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()


COMMON = ("robot", "params_file", "namespace", "use_sim_time", "log_level", "composed")
"""Arguments that every launch file has."""

ARGUMENTS: dict[str, LaunchArgument] = {
    "robot": LaunchArgument("", "Robot whose file in the config folder of this package holds the node parameters"),
    "params_file": LaunchArgument("", "YAML file with the parameters of all nodes; replaces the file of `robot`"),
    "namespace": LaunchArgument("", "Namespace of all nodes and topics; give each robot its own"),
    "use_sim_time": LaunchArgument("", "true: use /clock; empty: as set in the parameter file", read_boolean),
    "log_level": LaunchArgument("info", "Log level of all nodes", choices=("debug", "info", "warn", "error", "fatal")),
    "composed": LaunchArgument(
        "false", "true: all nodes in one process, with half of the memory; false: a process for each", read_boolean
    ),
    "latency": LaunchArgument(
        "",
        "Longest delay of a message that is tolerated [s], more on a busy computer; empty: as in the parameter file",
        read_number,
    ),
    "urdf": LaunchArgument("", "URDF or xacro file; empty: received on the topic robot_description"),
    "terms": LaunchArgument(
        "", "YAML file with friction, rotors and springs of the simulated robot; empty: those of the node parameters"
    ),
    "folder": LaunchArgument("", "Folder for the results; empty: runs/identifier-<date and time>"),
    "bag": LaunchArgument("bags/%Y-%m-%d_%H-%M-%S", "Folder of the new bag; strftime codes are replaced"),
    "topics": LaunchArgument("", "Topics to record, for example \"['joint_states', 'other']\"", read_yaml_value),
    "controller": LaunchArgument("joint_trajectory_controller", "Name of the trajectory controller of the robot"),
    "start": LaunchArgument(
        "false", "true: move as soon as all nodes are ready; false: wait for excitation_publisher/start", read_boolean
    ),
    "autostart": LaunchArgument(
        "true",
        "true: configure and activate the nodes that can move the robot; false: wait for `ros2 lifecycle set`",
        read_boolean,
    ),
    "rehearsal": LaunchArgument(
        "true",
        "true: full speed is refused until a run at 10 % of it has succeeded; false: only for simulated robots",
        read_boolean,
    ),
    "require_effort": LaunchArgument("true", "false: also move if the joint states contain no effort", read_boolean),
    "recording": LaunchArgument(
        "",
        "required: move only while the joint states are recorded; auto: only if a recorder runs; ignore: always",
        choices=("", "required", "auto", "ignore"),
    ),
    "data": LaunchArgument("", "Recordings to identify from, for example \"['a', 'b']\"", read_yaml_value),
    "validation": LaunchArgument(
        "", "Recordings to validate on, for example \"['a']\"; empty: cross-validation on the data", read_yaml_value
    ),
    "identification_config": LaunchArgument(
        "", "Configuration of the identification (gains, terms, filter), as `robot-dyn-id --config`; empty: defaults"
    ),
    "trajectory": LaunchArgument(
        "", "File trajectory.yaml of `robot-dyn-id design`; empty: trajectory described by the node parameters"
    ),
    "speed_scale": LaunchArgument("", "Time scaling; 0.5 takes twice as long; empty: as designed", read_yaml_value),
    "amplitude_scale": LaunchArgument("", "Amplitude scaling about the center; empty: as designed", read_yaml_value),
    "dry_run": LaunchArgument("", "true: check and publish the motion, never move the robot", read_boolean),
    "parameters": LaunchArgument("", "File parameters.yaml of an earlier identification"),
    "frame": LaunchArgument(
        "", "Link at whose origin the external wrench is estimated; empty: the one that the last joint moves"
    ),
    "link": LaunchArgument("", "Link that carries the payload, in whose frame the result is given"),
    "payload": LaunchArgument(
        "", "File like payload.yaml of the body that the simulated robot carries; empty: it carries nothing"
    ),
    "declared": LaunchArgument(
        "",
        "Payload that the driver assumes, for example [1.2, 0.0, 0.0, 0.05]: mass; center of mass; inertia about it",
        read_yaml_value,
    ),
    "driver": LaunchArgument(
        "none", "Driver that an identified payload is written into on request", choices=("none", "file", "ur", "franka")
    ),
    "calibration": LaunchArgument(
        "", "File gravity.yaml of an earlier calibration, in use until the next one; empty: none"
    ),
    "trust_urdf_mass": LaunchArgument(
        "false", "true: the total mass of the URDF fixes the scale of masses and gains", read_boolean
    ),
    "compensate": LaunchArgument(
        "false",
        "true: command efforts against gravity as soon as there is a calibration; false: wait for `ros2 lifecycle set "
        "/gravity_compensator` with configure and activate",
        read_boolean,
    ),
    "effort_controller": LaunchArgument(
        "forward_effort_controller", "Name of the controller that takes efforts in drive units on its topic commands"
    ),
    "law": LaunchArgument(
        "gravity_compensation",
        "Control law; computed_torque follows the topic computed_torque_controller/joint_trajectory",
        choices=("gravity_compensation", "computed_torque"),
    ),
}
"""Arguments by name."""

RENAMED = {"config": "params_file", "settings": "identification_config"}
"""Arguments of version 0.1.0 and their present names."""


def read_argument(name: str, text: str) -> Any:
    """Value of a launch argument.

    Raises:
        UsageError: the text has the wrong type.
    """
    argument = ARGUMENTS[name]
    try:
        return argument.read(text)
    except (ValueError, InputError) as error:
        reason = str(error) if isinstance(error, ValueError) else "not valid YAML"
        raise UsageError(f"{name}:={text}: {reason} ({argument.description})") from None


def check_names(command_line: Sequence[str]) -> None:
    """Refuse arguments of a command line that have been renamed.

    Raises:
        UsageError: with the present name.
    """
    for word in command_line:
        name, separator, text = word.partition(":=")
        if separator and name in RENAMED:
            raise UsageError(f"{name}:= is now {RENAMED[name]}:=; write {RENAMED[name]}:={text}")


def warn_of_renamed_arguments(configurations: Mapping[str, str], unset: Sequence[str]) -> list[str]:
    """Warnings of former names that an including launch file may have passed.

    They cannot be refused: the configurations of the including file itself are visible too, and may have these names.

    Args:
        configurations: launch configurations by name, with those of the including file.
        unset: arguments of the launch file that have their default value.
    """
    return [
        f"{old}={configurations[old]!r} has no effect here: the argument is now called {new}"
        for old, new in RENAMED.items()
        if new in unset and configurations.get(old)
    ]
