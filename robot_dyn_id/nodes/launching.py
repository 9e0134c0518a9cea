# SPDX-License-Identifier: Apache-2.0
"""Actions that the launch files share: declared arguments, start of a node, alone or with others in one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch_ros.actions import Node

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.nodes.launch_arguments import ARGUMENTS, COMMON, check_names, read_argument, warn_of_renamed_arguments
from robot_dyn_id.nodes.runtime.parameter_files import check_parameter_file, refuse_renamed_sections
from robot_dyn_id.nodes.starting import has_failed

PACKAGE = "robot_dyn_id"

SIMULATOR_TRAJECTORY = "joint_trajectory_controller/joint_trajectory"
"""Command topic of the simulator before remapping."""


def declare_arguments(*names: str, **defaults: Any) -> list[DeclareLaunchArgument | OpaqueFunction]:
    """Declare the arguments of a launch file: those that every launch file has, and further ones.

    Wrong values end the launch before any node starts: a process that is being started when a launch ends would be
    left behind.

    Args:
        *names: arguments with the default of the table `ARGUMENTS`.
        **defaults: arguments with another default, a text or a list of substitutions.
    """
    declared = list(dict.fromkeys((*COMMON, *names, *defaults)))
    texts = {name: defaults.get(name, ARGUMENTS[name].default) for name in declared}

    def check(context: LaunchContext) -> None:
        check_names(context.argv)
        unset = [name for name, default in texts.items() if _text(context, name) == _perform(context, default)]
        for line in warn_of_renamed_arguments(context.launch_configurations, unset):
            get_logger(PACKAGE).warning(line)
        for name in declared:
            text = _text(context, name)
            if text != "":
                read_argument(name, text)

    actions: list[DeclareLaunchArgument | OpaqueFunction] = []
    for name in declared:
        argument = ARGUMENTS[name]
        actions.append(
            DeclareLaunchArgument(
                name,
                default_value=texts[name],
                description=argument.description,
                choices=argument.choices or None,
            )
        )
    return [*actions, OpaqueFunction(function=check)]


def require_parameters() -> OpaqueFunction:
    """End the launch unless `robot` or `params_file` is given, so that the limits of another robot are never used."""

    def check(context: LaunchContext) -> None:
        if not find_parameter_file(context):
            robots = ", ".join(_robots())
            raise InputError(f"no parameters for your robot: give params_file:=FILE, or robot:= and one of {robots}")

    return OpaqueFunction(function=check)


def find_parameter_file(context: LaunchContext) -> str:
    """File with the parameters of all nodes; empty if neither `params_file` nor `robot` is given.

    Raises:
        InputError: the file does not exist or cannot be used; the launch ends with this line before any node starts.
    """
    file = _text(context, "params_file")
    robot = _text(context, "robot")
    if file:
        if not Path(file).is_file():
            raise InputError(f"params_file:={file}: there is no such file")
        check_parameter_file(file)
        refuse_renamed_sections(file, _parameters)
        return file
    if not robot:
        return ""
    file = share_path("config", f"{robot}.yaml")
    if not Path(file).is_file():
        robots = ", ".join(_robots())
        raise InputError(f"robot:={robot}: there is no {file}; give params_file:=FILE, or one of {robots}")
    return file


def share_path(*parts: str) -> str:
    """Path of a file that the package has installed.

    Args:
        *parts: path below the share folder of the package.
    """
    return str(Path(get_package_share_directory(PACKAGE), *parts))


def urdf_of_robot() -> list[Any]:
    """Path of the URDF that the package has of the robot that the launch argument `robot` names."""
    return [share_path("urdf"), "/", LaunchConfiguration("robot"), ".urdf"]


def include_launch_file(name: str) -> IncludeLaunchDescription:
    """Include a launch file of this package with all its arguments; defaults declared before have priority."""
    return IncludeLaunchDescription(share_path("launch", f"{name}.launch.py"))


def describe(*actions: Any) -> LaunchDescription:
    """Describe a launch: with `composed` true, all its nodes and those of files that it includes run together."""
    return LaunchDescription([OpaqueFunction(function=_begin), *actions, OpaqueFunction(function=_start_together)])


@dataclass
class _Together:
    """Command line of the process of a launch in which all nodes run, and number of the files that are being read."""

    words: list[str] = field(default_factory=list)
    depth: int = 0


_together: WeakKeyDictionary[LaunchContext, _Together] = WeakKeyDictionary()


def _begin(context: LaunchContext) -> None:
    """Begin to read a launch file."""
    _together.setdefault(context, _Together()).depth += 1


def _start_together(context: LaunchContext) -> list[Node]:
    """End a launch file; after the outermost one the process of all nodes is started, if there is one."""
    together = _together[context]
    together.depth -= 1
    words, together.words = (together.words, []) if not together.depth else ([], together.words)
    if not words:
        return []
    arguments = ["--ros-args", "--log-level", _text(context, "log_level"), *words]
    return [Node(package=PACKAGE, executable="composed", arguments=arguments, output="screen", on_exit=_end_launch)]


@dataclass(frozen=True)
class _Start:
    """Executable, namespace, parameters and remappings of a node.

    Attributes:
        executable: name of the executable.
        namespace: namespace; empty: the root.
        file: file of parameters; empty: none.
        values: parameters over those of the file.
        remappings: pairs of names.
    """

    executable: str
    namespace: str
    file: str
    values: Mapping[str, Any]
    remappings: Sequence[tuple[str, str]]

    def alone(self, context: LaunchContext) -> Node:
        """The node in a process of its own."""
        return Node(
            package=PACKAGE,
            executable=self.executable,
            namespace=self.namespace,
            parameters=[*([self.file] if self.file else []), dict(self.values)],
            remappings=list(self.remappings),
            ros_arguments=["--log-level", _text(context, "log_level")],
            output="screen",
            on_exit=_end_launch,
        )

    def words(self) -> list[str]:
        """The same on the command line of `composed`."""
        rules = [f"__ns:=/{self.namespace.lstrip('/')}"] if self.namespace else []
        rules += [f"{old}:={new}" for old, new in self.remappings]
        options = [("-r", rule) for rule in rules] + ([("--params-file", self.file)] if self.file else [])
        options += [("-p", f"{name}:={json.dumps(value)}") for name, value in self.values.items()]  # JSON is YAML
        return ["--node", self.executable, "--ros-args", *(word for option in options for word in option)]


def start_node(
    executable: str,
    arguments: Sequence[str] = (),
    inner_namespace: str = "",
    remappings: Sequence[tuple[str, str]] = (),
    **parameters: object,
) -> OpaqueFunction:
    """Start a node of this package with the parameters of the parameter file; when it ends, the launch ends.

    The exit code of the launch is 1 if the node fails.

    Args:
        executable: name of the executable.
        arguments: launch arguments whose values are parameters of the node; empty ones leave its default.
        inner_namespace: namespace inside that of the launch file.
        remappings: pairs of topic names; `{name}` is replaced by a launch argument, `{root}` by the root namespace.
        **parameters: ROS parameters that replace those of the file. A text `{name}` is the value of that launch
            argument, and leaves the default of the node if the argument is empty; within a text, or the texts of a
            list, it is replaced.
    """

    def start(context: LaunchContext) -> list[Node]:
        namespace = _text(context, "namespace")
        texts = _Texts(lambda name: _text(context, name), root=f"/{namespace}" if namespace else "")
        values: dict[str, Any] = {}
        for name, value in {**{name: f"{{{name}}}" for name in (*arguments, "use_sim_time")}, **parameters}.items():
            argument = str(value)[1:-1]
            if value == f"{{{argument}}}":
                text = _text(context, argument)
                if text != "":
                    values[name] = read_argument(argument, text)
            else:
                values[name] = texts.fill(value)
        begun = _Start(
            executable,
            "/".join(part for part in (namespace, inner_namespace) if part),
            find_parameter_file(context),
            values,
            [(old, new.format_map(texts)) for old, new in remappings],
        )
        if not read_argument("composed", _text(context, "composed")):
            return [begun.alone(context)]
        _together[context].words += begun.words()
        return []

    return OpaqueFunction(function=start)


def _text(context: LaunchContext, name: str) -> str:
    """Text of a launch argument."""
    return str(LaunchConfiguration(name).perform(context))


def _perform(context: LaunchContext, text: Any) -> str:
    """Text of a text or of a list of substitutions."""
    return str(perform_substitutions(context, normalize_to_list_of_substitutions(text)))


def _parameters(name: str) -> set[str]:
    """Names of the parameters of a node."""
    from robot_dyn_id.nodes.runtime.ros_parameters import list_ros_parameters
    from robot_dyn_id.nodes.tables import NODES  # loads all nodes, which a launch rarely needs

    return {row.name for node in NODES if name == node.NAME for row in list_ros_parameters(node.SETTINGS)}


def _robots() -> list[str]:
    """Names of the robots that have a parameter file in this package."""
    return sorted(file.stem for file in Path(share_path("config")).glob("*.yaml"))


def _end_launch(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    """End the launch with the first node that ends: the others would wait for it, or move a robot without a recording.

    Raises:
        RobotDynIdError: the node has failed. Only an exception makes the exit code of `ros2 launch` other than 0.
    """
    if has_failed(event.returncode, context.is_shutdown):
        raise RobotDynIdError(f"{event.process_name} has failed with exit code {event.returncode}")
    return None if context.is_shutdown else Shutdown(reason=f"{event.process_name} has ended")


class _Texts(dict):  # type: ignore[type-arg]
    """Texts for `str.format_map`: given ones, and those of launch arguments."""

    def __init__(self, text: Callable[[str], str], **given: str) -> None:
        super().__init__(given)
        self._text = text

    def __missing__(self, name: str) -> str:
        return self._text(name)

    def fill(self, value: object) -> object:
        """A value in whose text, or list of texts, the names are replaced."""
        if isinstance(value, list):
            return [self.fill(part) for part in value]
        return value.format_map(self) if isinstance(value, str) else value
