# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of a node: the fields of one dataclass, each declared once, and refused with a reason when wrong."""

from __future__ import annotations

import difflib
import errno
import math
from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterType
from rclpy.exceptions import NameValidationException
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.validate_full_topic_name import validate_full_topic_name
from rclpy.validate_topic_name import validate_topic_name

from robot_dyn_id.errors import UsageError

Settings = TypeVar("Settings")

BUILT_IN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or beginnings of their names, that every node of ROS 2 has."""

LARGEST = 1e9
"""Largest magnitude of a number [SI]: what is above it is not a quantity of a robot, and times overflow."""

PATH, TOPIC = "file or folder", "name of a topic, a service or an action"
"""Kinds of text that can be checked without the robot."""

TYPES: dict[Any, tuple[int, str]] = {
    bool: (ParameterType.PARAMETER_BOOL, "bool"),
    int: (ParameterType.PARAMETER_INTEGER, "integer"),
    float: (ParameterType.PARAMETER_DOUBLE, "double"),
    str: (ParameterType.PARAMETER_STRING, "string"),
    tuple[str, ...]: (ParameterType.PARAMETER_STRING_ARRAY, "string_array"),
    tuple[float, ...]: (ParameterType.PARAMETER_DOUBLE_ARRAY, "double_array"),
}
"""Types that fields may have: constant and name of the type in ROS."""


@dataclass(frozen=True)
class Rule:
    """Meaning of a parameter and the values that it may have.

    Attributes:
        description: one sentence without a full stop.
        unit: empty if it has none.
        minimum, maximum: range of a number, or of each number of an array.
        choices: strings that are allowed; empty allows all.
        kind: `PATH` or `TOPIC` for text that is one; empty for other text.
        changeable: whether it can be changed while the node runs.
    """

    description: str
    unit: str
    minimum: float
    maximum: float
    choices: tuple[str, ...]
    kind: str = ""
    changeable: bool = False

    def constraint(self) -> str:
        """Allowed values as text; empty if all values are allowed."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.minimum > -math.inf and self.maximum < math.inf:
            return f"within {self.minimum:g} and {self.maximum:g}"
        if self.minimum > -math.inf:
            return f"at least {self.minimum:g}"
        return f"at most {self.maximum:g}" if self.maximum < math.inf else ""

    def refusal(self, value: Any) -> str:
        """Reason why a value of the right type is refused; empty if it is allowed."""
        values = value if isinstance(value, tuple) else (value,)
        texts = [item for item in values if isinstance(item, str)]
        numbers = [item for item in values if isinstance(item, (int, float))]
        required = self.constraint() or "finite"
        if self.choices and not set(texts).issubset(self.choices):
            return f"must be {required}"
        if not all(math.isfinite(item) and self.minimum <= item <= self.maximum for item in numbers):
            return f"must be {required}"
        if any(isinstance(item, float) and abs(item) > LARGEST for item in numbers):
            return f"must have a magnitude of at most {LARGEST:g}"
        if isinstance(value, tuple):
            if "" in texts:
                return "must not hold an empty text"
            if len(set(texts)) < len(texts):
                return f"must name {next(item for item in texts if texts.count(item) > 1)} once"
        return next(filter(None, (self._wrong_text(item) for item in texts)), "")

    def _wrong_text(self, text: str) -> str:
        """Reason why a text is not what `kind` states; empty if it is."""
        if self.kind == PATH:
            try:
                Path(text).expanduser().stat()
            except RuntimeError:
                return f"must be the name of a {PATH}, and there is no user {text.partition('/')[0]}"
            except ValueError:
                return f"must be the name of a {PATH}"
            except OSError as error:  # whether it is there, and what it is, is found where it is used
                return f"must be the name of a {PATH}, and is too long" if error.errno == errno.ENAMETOOLONG else ""
        if self.kind == TOPIC:
            try:
                validate_topic_name(text)
                validate_full_topic_name(expand_topic_name(text, "node", "/"))
            except NameValidationException as error:
                return f"must be the {TOPIC}: {str(error).partition(': ')[2].splitlines()[0].rstrip(':')}"
            if text[:1] == "~" and text[1:2] not in ("", "/"):  # of which rcl accepts short ones
                return f"must be the {TOPIC}: '~' must be followed by '/'"
        return ""


def ros_parameter(
    default: Any,
    description: str,
    unit: str = "",
    minimum: float = -math.inf,
    maximum: float = math.inf,
    choices: Sequence[str] = (),
) -> Any:
    """Field of a settings dataclass that is a ROS parameter, which cannot be changed.

    Args:
        default: default value.
        description: one sentence without a full stop.
        unit: SI unit; empty if there is none.
        minimum: smallest value that is allowed.
        maximum: largest value that is allowed.
        choices: strings that are allowed; empty allows all.
    """
    rule = Rule(description, unit, minimum, maximum, tuple(choices))
    return field(default=default, metadata={"rule": rule})


def latency_parameter(default: float = 0.1, minimum: float = 0.002) -> Any:
    """Field `latency` of the settings of a node that watches ages, see `Latency` [s]."""
    text = "Longest delay of a message that is tolerated, from which other limits follow"
    return ros_parameter(default, text, "s", minimum, 10.0)


def path_parameter(default: Any, description: str) -> Any:
    """Field for the name of a file or folder, or several; see `ros_parameter`."""
    return field(default=default, metadata={"rule": Rule(description, "", -math.inf, math.inf, (), PATH)})


def topic_parameter(default: Any, description: str) -> Any:
    """Field for the name of a topic, a service or an action, or several; see `ros_parameter`."""
    return field(default=default, metadata={"rule": Rule(description, "", -math.inf, math.inf, (), TOPIC)})


def changeable(parameter: Any) -> Any:
    """The same field for a parameter that can be changed while the node runs."""
    rule = replace(parameter.metadata["rule"], changeable=True)
    return field(default=parameter.default, metadata={"rule": rule})


@dataclass(frozen=True)
class ParameterRow:
    """One ROS parameter as the documentation lists it."""

    name: str
    type_name: str
    default: Any
    rule: Rule


def list_ros_parameters(settings: type) -> tuple[ParameterRow, ...]:
    """The ROS parameters of a settings dataclass."""
    hints = get_type_hints(settings)
    return tuple(
        ParameterRow(item.name, TYPES[hints[item.name]][1], item.default, item.metadata["rule"])
        for item in fields(settings)
    )


def declare(node: Node, settings: type[Settings]) -> Settings:
    """Declare the parameters of a node and read the values that it was started with.

    The parameters are read-only, except for those that are `changeable`. The node must have been created with
    `automatically_declare_parameters_from_overrides`, so that misspelled names are detected.

    Raises:
        UsageError: an unknown parameter, a value of the wrong type or out of range.
    """
    hints = get_type_hints(settings)
    known = {item.name: item for item in fields(settings)}  # type: ignore[arg-type]
    for name in node.get_parameters_by_prefix(""):
        if name not in known and not name.startswith(BUILT_IN):
            near = difflib.get_close_matches(name, known, 1)
            raise UsageError(f"unknown parameter {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    simulated_time = node.get_parameter("use_sim_time").value
    if not isinstance(simulated_time, bool):  # rclpy logs it and goes on with the clock of the computer
        raise UsageError(f"parameter use_sim_time must be of type {TYPES[bool][1]}, not {simulated_time!r}")
    values = {}
    for name, item in known.items():
        value = item.default
        if node.has_parameter(name):
            value = read_value(item, node.get_parameter(name).value, hints[name])
            node.undeclare_parameter(name)
        if value is MISSING:
            raise UsageError(f"parameter {name} is not given ({item.metadata['rule'].description})")
        values[name] = value
        descriptor = _descriptor(name, hints[name], item.metadata["rule"])
        if value == ():  # an empty list has no type of its own
            node.declare_parameter(name, descriptor.type, descriptor, ignore_override=True)
        else:
            given = list(value) if isinstance(value, tuple) else value
            node.declare_parameter(name, given, descriptor, ignore_override=True)
    return settings(**values)


def change_settings(settings: Settings, parameters: Sequence[Parameter]) -> Settings:
    """The settings with new values of those parameters that can be changed.

    Args:
        settings: present settings.
        parameters: new values of parameters of the node; those that every node has are left out.

    Raises:
        UsageError: a value of the wrong type or out of range.
    """
    hints = get_type_hints(type(settings))
    known = {item.name: item for item in fields(settings) if item.metadata["rule"].changeable}  # type: ignore[arg-type]
    values = {
        one.name: read_value(known[one.name], one.value, hints[one.name]) for one in parameters if one.name in known
    }
    return replace(settings, **values)  # type: ignore[type-var]


def read_value(item: Field[Any], given: Any, wanted: Any) -> Any:
    """Check the value of a parameter, and convert it: an integer to a double, a list to a tuple.

    Args:
        item: field of a settings dataclass.
        given: value that ROS has read.
        wanted: type of the field.

    Returns:
        Value of this type.

    Raises:
        UsageError: another type, or a value that is refused; that of the default never is.
    """
    name, rule, value = item.name, item.metadata["rule"], given
    if wanted is float and type(given) is int:
        value = float(given)
    elif wanted in (tuple[str, ...], tuple[float, ...]) and not isinstance(given, (str, bytes)):
        kind = str if wanted == tuple[str, ...] else float
        try:
            items = tuple(given)
        except TypeError:
            items = (None,)
        right = all(isinstance(x, str) if kind is str else type(x) in (int, float) for x in items)
        value = tuple(kind(x) for x in items) if right else None
    if not (type(value) is wanted or (isinstance(value, tuple) and wanted not in (bool, int, float, str))):
        raise UsageError(f"parameter {name} must be of type {TYPES[wanted][1]}, not {given!r}")
    refusal = rule.refusal(value)
    if refusal and repr(value) != repr(item.default):  # NaN is not equal to itself
        unit = f" [{rule.unit}]" if rule.unit else ""
        raise UsageError(f"parameter {name} {refusal}{unit}, not {given!r}")
    return value


def _descriptor(name: str, wanted: Any, rule: Rule) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        name=name,
        type=TYPES[wanted][0],
        description=rule.description + (f" [{rule.unit}]" if rule.unit else ""),
        additional_constraints=rule.constraint(),
        read_only=not rule.changeable,
    )
    bounded = rule.minimum > -math.inf or rule.maximum < math.inf
    if bounded and wanted is float:
        lower, upper = max(rule.minimum, -1e308), min(rule.maximum, 1e308)
        descriptor.floating_point_range = [FloatingPointRange(from_value=lower, to_value=upper)]
    elif bounded and wanted is int:
        lower, upper = max(rule.minimum, -(2**62)), min(rule.maximum, 2**62)
        descriptor.integer_range = [IntegerRange(from_value=int(lower), to_value=int(upper))]
    return descriptor
