# SPDX-License-Identifier: Apache-2.0
"""What the launch files share: their arguments, each described once, and how a node is started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.nodes.runtime.parameter_files import check_parameter_file
from robot_dyn_id.nodes.starting import INTERRUPTED
from robot_dyn_id.text.yaml import parse_yaml

PACKAGE = "robot_dyn_id"

TRAJECTORY = "joint_trajectory_controller/joint_trajectory"
"""What the simulator listens to, before it is remapped."""

ASKED_TO_END = (0, INTERRUPTED, -signal.SIGINT)
"""Exit codes of a node that ends after the launch has asked it to: also while Python or the node still loads."""


def _yaml(text: str) -> Any:
    """Value of a launch argument that is written as YAML."""
    return parse_yaml(text, "launch argument")


def _boolean(text: str) -> bool:
    value = _yaml(text)
    if not isinstance(value, bool):
        raise ValueError("give true or false")
    return value


ARGUMENTS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "robot": ("", str, "robot whose file in this package's config folder sets the parameters of all nodes"),
    "config": ("", str, "file with the parameters of all nodes, instead of that of `robot`; neither: defaults"),
    "urdf": ("", str, "URDF or xacro file; empty: from the topic robot_description"),
    "namespace": ("", str, "namespace of all nodes and topics, one for each robot"),
    "use_sim_time": ("", _boolean, "true: time from /clock"),
    "folder": ("", str, "folder for the results; empty: runs/identifier-<date and time>"),
    "bag": ("bags/%Y-%m-%d_%H-%M-%S", str, "folder of the new bag; codes of strftime are filled in"),
    "topics": ("", _yaml, "topics to record: \"['joint_states', 'other']\"; empty: joint_states"),
    "controller": ("joint_trajectory_controller", str, "trajectory controller that moves the robot"),
    "start": ("false", _boolean, "true: move at once; otherwise call excitation_publisher/start"),
    "require_effort": ("true", _boolean, "false: move also where joint states carry no effort"),
    "recording": (
        "",
        str,
        "required: no motion without its recording; auto: if there is a recorder; ignore: not watched",
    ),
    "data": ("", _yaml, "recordings to identify from: \"['a', 'b']\""),
    "validation": ("", _yaml, "recordings to validate on: \"['a']\"; empty: a part of the data is held out"),
    "settings": ("", str, "configuration file of the identification (gains, terms, filter); empty: defaults"),
    "trajectory": ("", str, "trajectory.yaml of `robot-dyn-id design`; empty: the form of the parameters"),
    "speed_scale": ("", _yaml, "slower than designed: 0.5 takes twice the time; empty: as designed"),
    "amplitude_scale": ("", _yaml, "smaller than designed, about its center; empty: as designed"),
    "dry_run": ("", _boolean, "true: check and show the motion, never move"),
    "parameters": ("", str, "parameters.yaml of an earlier identification"),
    "law": (
        "gravity_compensation",
        str,
        "gravity_compensation, or computed_torque to follow computed_torque_controller/joint_trajectory",
    ),
}
"""Default, how the text is read, and description; a launch file may give another default."""


def arguments(*names: str, **defaults: Any) -> list[DeclareLaunchArgument | OpaqueFunction]:
    """Declare arguments of a launch file, some of them with another default: a text, or substitutions.

    Wrong values end the launch before any node: a process that is being started when a launch ends is left behind.
    """

    def check(context: LaunchContext) -> None:
        for name in (*names, *defaults):
            text = str(LaunchConfiguration(name).perform(context))
            if text != "":
                _value(name, text)

    declared: list[DeclareLaunchArgument | OpaqueFunction] = []
    for name in (*names, *defaults):
        default, _, description = ARGUMENTS[name]
        value = defaults.get(name, default)
        declared.append(DeclareLaunchArgument(name, default_value=value, description=description))
    return [*declared, OpaqueFunction(function=check)]


def needs_configuration() -> OpaqueFunction:
    """End the launch unless `robot` or `config` is given: limits made for another robot must not drive this one."""

    def check(context: LaunchContext) -> None:
        if not configuration(context):
            raise InputError("name the configuration of your robot: config:=FILE, or robot:= and one of " + _robots())

    return OpaqueFunction(function=check)


def configuration(context: LaunchContext) -> str:
    """The file with the parameters of all nodes; empty if neither `config` nor `robot` is given.

    Raises:
        InputError: there is no such file, or it cannot be used; the launch ends with this line, before any node starts.
    """
    config, robot = (str(LaunchConfiguration(name).perform(context)) for name in ("config", "robot"))
    if config and not Path(config).is_file():
        raise InputError(f"config:={config}: there is no such file")
    if config:
        check_parameter_file(config)
    if config or not robot:
        return config
    file = shared("config", f"{robot}.yaml")
    if not Path(file).is_file():
        raise InputError(f"robot:={robot}: there is no {file}; give config:=FILE, or one of {_robots()}")
    return file


def _robots() -> str:
    """Names of the robots that have a configuration here."""
    return ", ".join(sorted(file.stem for file in Path(shared("config")).glob("*.yaml")))


def shared(*parts: str) -> str:
    """A file of the installed package."""
    return str(Path(get_package_share_directory(PACKAGE), *parts))


def included(name: str) -> IncludeLaunchDescription:
    """Another launch file of this package with all its arguments; those declared before it keep their defaults."""
    return IncludeLaunchDescription(shared("launch", f"{name}.launch.py"))


def node(
    executable: str,
    given: Sequence[str] = (),
    inside: str = "",
    remappings: Sequence[tuple[str, str]] = (),
    **parameters: object,
) -> OpaqueFunction:
    """Start a node of this package, with the parameters of the configuration file; if it ends, all others do.

    The exit code of the launch is 1 if the node has failed.

    Args:
        executable: its name.
        given: launch arguments that are parameters of the node as well; empty ones leave its default.
        inside: a further namespace.
        remappings: of topics; a name in braces is the text of a launch argument, `{root}` the root of the namespace.
        **parameters: ROS parameters over those of the file. A launch argument in braces, and nothing else, is its
            value, and leaves the default of the node if it is empty; within a text it is filled in.
    """

    def start(context: LaunchContext) -> list[Node]:
        def text(name: str) -> str:
            return str(LaunchConfiguration(name).perform(context))

        config = configuration(context)
        texts = _Texts(text, root=f"/{text('namespace')}" if text("namespace") else "")
        wanted = {**{name: f"{{{name}}}" for name in (*given, "use_sim_time")}, **parameters}
        values = {}
        for name, value in wanted.items():
            argument = str(value)[1:-1]
            if value == f"{{{argument}}}":
                if text(argument) != "":
                    values[name] = _value(argument, text(argument))
            else:
                values[name] = value.format_map(texts) if isinstance(value, str) else value
        return [
            Node(
                package=PACKAGE,
                executable=executable,
                namespace="/".join(part for part in (text("namespace"), inside) if part),
                parameters=[*([config] if config else []), values],
                remappings=[(old, new.format_map(texts)) for old, new in remappings],
                output="screen",
                on_exit=_ended,
            )
        ]

    return OpaqueFunction(function=start)


def _value(argument: str, text: str) -> Any:
    """Value of a launch argument.

    Raises:
        UsageError: the text is not one of the argument's type.
    """
    try:
        return ARGUMENTS[argument][1](text)
    except (ValueError, InputError) as error:
        reason = str(error) if isinstance(error, ValueError) else "not valid YAML"
        raise UsageError(f"{argument}:={text}: {reason} ({ARGUMENTS[argument][2]})") from None


def _ended(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    """End the launch with the first node that ends: the others would wait for it, or move a robot that is not recorded.

    Raises:
        RobotDynIdError: the node has failed. Only an exception makes the exit code of `ros2 launch` other than 0.
    """
    if event.returncode not in (ASKED_TO_END if context.is_shutdown else (0,)):
        raise RobotDynIdError(f"{event.process_name} has failed with exit code {event.returncode}")
    return None if context.is_shutdown else Shutdown(reason=f"{event.process_name} has ended")


class _Texts(dict):  # type: ignore[type-arg]
    """Texts of launch arguments, looked up by name, and those that are given."""

    def __init__(self, text: Callable[[str], str], **given: str) -> None:
        super().__init__(given)
        self._text = text

    def __missing__(self, name: str) -> str:
        return self._text(name)
