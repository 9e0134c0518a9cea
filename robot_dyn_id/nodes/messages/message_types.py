# SPDX-License-Identifier: Apache-2.0
"""Types of messages, services and actions by their names, and definitions of messages as a bag keeps them."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from rclpy.exceptions import NoTypeSupportImportedException
from rclpy.type_support import check_for_type_support
from rosidl_generator_py.import_type_support_impl import UnsupportedTypeSupport

from robot_dyn_id.errors import InputError

_SEPARATOR = "=" * 80
_NUMBERS = {"boolean": "bool", "octet": "byte", "float": "float32", "double": "float64"}
"""IDL's names of types that .msg files call otherwise."""

_INTERFACE = re.compile(r"([a-z][a-z0-9_]*)/(msg|srv|action)/([A-Z][A-Za-z0-9]*)", re.ASCII)
"""Names as ROS 2 allows them: whoever offers a topic on the network chooses its text, and the package is imported."""

_GROUPS = {"msg": "message", "srv": "service", "action": "action"}

_SEQUENCE = re.compile(r"sequence<(.+?)(?:, (\d+))?>")
_ARRAY = re.compile(r"(.+)\[(\d+)\]")
_BOUNDED_TEXT = re.compile(r"(w?string)<(\d+)>")


def find_message_class(type_name: str) -> Any:
    """The class of a type such as `sensor_msgs/msg/JointState`.

    Raises:
        InputError: it is not installed, its library cannot be loaded, or it is not a message type.
    """
    found = _INTERFACE.fullmatch(type_name)
    if found is None or found[2] != "msg":
        raise InputError(f"{type_name[:100]!r} is not a message type of ROS 2")
    return find_interface_class(type_name)


def find_interface_class(type_name: str) -> Any:
    """The class of a message, service or action, whose package need not be installed.

    Its library is loaded as well: rclpy would load it with the first publisher, and raise an error of its own there.

    Args:
        type_name: name such as `ur_msgs/srv/SetPayload`.

    Raises:
        InputError: it is not installed, its library cannot be loaded, or it is not a type of ROS 2.
    """
    found = _INTERFACE.fullmatch(type_name)
    if found is None:
        raise InputError(f"{type_name[:100]!r} is not a type of ROS 2")
    package, group, name = found.groups()
    try:
        kind = getattr(import_module(f"{package}.{group}"), name)
    except (ImportError, AttributeError):
        raise InputError(
            f"{_GROUPS[group]} type {type_name} is not known here; install {package}, or source the workspace that "
            "has it"
        ) from None
    try:
        check_for_type_support(kind)
    except (UnsupportedTypeSupport, NoTypeSupportImportedException, AttributeError) as error:
        cause = " ".join(str(error.__context__ or error).split())
        raise InputError(
            f"the library of {package} with the {_GROUPS[group]} type {type_name} cannot be loaded ({cause}); build "
            f"{package} for this distribution of ROS 2, or source the workspace that has it"
        ) from None
    return kind


def make_definition(message: Any) -> str:
    """The .msg text of a message class, without comments and constants, followed by those of its parts."""
    texts: dict[str, str] = {}
    _collect(message, texts)
    first, *others = texts.items()
    return "\n".join([first[1], *(f"{_SEPARATOR}\nMSG: {name}\n{text}" for name, text in others)])


def begins_with_header(message: Any) -> bool:
    """Whether the first field of a message class is a std_msgs/Header."""
    return next(iter(message.get_fields_and_field_types().values()), "") == "std_msgs/Header"


def _collect(message: Any, texts: dict[str, str]) -> None:
    """Add the text of a message class and of all its parts that are not there yet, by `package/Name`."""
    package = message.__module__.split(".")[0]
    fields = {name: _kind(kind) for name, kind in message.get_fields_and_field_types().items()}
    texts[f"{package}/{message.__name__}"] = "".join(f"{kind} {name}\n" for name, kind in fields.items())
    for kind in fields.values():
        part = kind.split("[")[0]
        if "/" in part and part not in texts:
            _collect(find_message_class(part.replace("/", "/msg/")), texts)


def _kind(idl: str) -> str:
    """A field's type as a .msg file has it, from rclpy's words for it, such as `sequence<double, 7>`."""
    if found := _SEQUENCE.fullmatch(idl):
        return f"{_kind(found[1])}[{'<=' + found[2] if found[2] else ''}]"
    if found := _ARRAY.fullmatch(idl):
        return f"{_kind(found[1])}[{found[2]}]"
    if found := _BOUNDED_TEXT.fullmatch(idl):
        return f"{found[1]}<={found[2]}"
    return _NUMBERS.get(idl, idl)
