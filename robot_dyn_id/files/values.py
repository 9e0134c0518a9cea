# SPDX-License-Identifier: Apache-2.0
"""Typed reading of YAML: the only way from plain values to the fields of a dataclass, checked by their type hints.

All functions raise a `UsageError` whose message begins with the dotted key; `file_errors` adds the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import RobotDynIdError, UsageError, suggest_known
from robot_dyn_id.files.spelling import refuse_old_spelling
from robot_dyn_id.model.joint_values import ALL_JOINTS, JointValues
from robot_dyn_id.text.yaml import suggest_exponent

Value = TypeVar("Value")

Reader = Callable[[Any, str], Any]
"""Turns a plain value and its dotted key into the value of a field; raises a `UsageError` that names the key."""

NO_READERS: Mapping[str, Reader] = MappingProxyType({})

WORDS: dict[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
"""Plain types as messages name them."""

LIST_WORDS: dict[Any, str] = {str: "strings", int: "integers", float: "numbers", bool: "true or false"}
"""The same for the entries of a list."""


@contextmanager
def file_errors(path: str | Path | None, error: type[RobotDynIdError]) -> Iterator[None]:
    """Name the file in every error that is raised within, as errors of one class.

    Args:
        path: file that is read; None for values that come from no file.
        error: class of the errors.

    Raises:
        RobotDynIdError: of the class `error`.
    """
    try:
        yield
    except RobotDynIdError as problem:
        action = "" if problem.action == problem.advice else problem.action
        raise error(problem.message if path is None else f"{path}: {problem.message}", action) from None


def read_dataclass(
    kind: type[Value],
    content: Any,
    key: str = "",
    readers: Mapping[str, Reader] = NO_READERS,
    complete: bool = False,
    **given: Any,
) -> Value:
    """Make a dataclass from keys and values.

    Args:
        kind: dataclass, whose fields are the keys; nested dataclasses, sequences and mappings are read by their hints.
        content: mapping that YAML gave.
        key: dotted key of the content in its file; empty for the whole file.
        readers: readers of fields that need more than their type hint, by field name.
        complete: whether every field must be given, also those with a default.
        given: values of fields that are not in the content.

    Returns:
        The checked dataclass.

    Raises:
        UsageError: an unknown key (the nearest known one is named), a missing key, or a value of the wrong type.
        RobotDynIdError: the dataclass refuses its values; the message begins with the key.
    """
    hints = {name: hint for name, hint in list_field_hints(kind).items() if name not in given}
    values = read_mapping(hints, content, key, readers)
    for item in fields(kind):  # type: ignore[arg-type]
        optional = item.default is not MISSING or item.default_factory is not MISSING
        if item.name in hints and item.name not in values and (complete or not optional):
            raise UsageError(f"{_prefix(key)}{item.name} is missing")
    try:
        return kind(**values, **given)
    except RobotDynIdError as error:
        if not key:
            raise
        raise type(error)(f"{key}: {error.message}") from None


def read_mapping(
    hints: Mapping[str, Any], content: Any, key: str = "", readers: Mapping[str, Reader] = NO_READERS
) -> dict[str, Any]:
    """Values of known keys, each read by its type hint or its reader.

    Args:
        hints: type hint of each known key.
        content: mapping that YAML gave.
        key: dotted key of the content in its file; empty for the whole file.
        readers: readers in place of type hints, by key.

    Returns:
        The values by key, in the order of the content.

    Raises:
        UsageError: an unknown key (the nearest known one is named), or a value of the wrong type.
    """
    check_keys(content, tuple(hints), key)
    values = {}
    for name, value in content.items():
        path = f"{key}.{name}" if key else name
        values[name] = readers[name](value, path) if name in readers else read_value(hints[name], value, path)
    return values


def check_keys(content: Any, known: Sequence[str], key: str = "") -> None:
    """Check that a content is a mapping with known keys only.

    Args:
        content: what YAML gave.
        known: the keys that may be there.
        key: dotted key of the content in its file; empty for the whole file.

    Raises:
        UsageError: not a mapping, or an unknown key; the nearest known one, or its present spelling, is named.
    """
    if not isinstance(content, dict):
        raise UsageError(f"{_prefix(key)}must hold keys and values, not {content!r}")
    for name in content:
        if name not in known:
            refuse_old_spelling(name, f"{key}.{name}" if key else "")
            raise UsageError(f"{_prefix(key)}unknown key {name!r}; {suggest_known(name, known)}")


def read_value(hint: Any, value: Any, key: str) -> Any:
    """One value, as a type hint asks for it.

    Integers become numbers where a number is expected, lists become tuples or arrays, and mappings of numbers by joint
    may be one number, which is that of all joints. A type with None is that type: a key without a value is refused.

    Args:
        hint: `str`, `int`, `float`, `bool`, `Any`, a dataclass, a union of these, or a tuple, mapping or array of them.
        value: plain value that YAML gave.
        key: dotted key, for messages.

    Raises:
        UsageError: a value of the wrong type.
        TypeError: a type hint that cannot be read; a mistake in the dataclass, not in the file.
    """
    if hint is Any:
        return value
    if hint in WORDS:
        return _scalar(hint, value, key)
    if is_dataclass(hint) and isinstance(hint, type):
        return read_dataclass(hint, value, key)
    origin, inner = get_origin(hint), get_args(hint)
    if hint == JointValues:
        return tuple(_by_name(float, value, key).items())
    if origin in (Union, UnionType):
        return _alternative([part for part in inner if part is not NoneType], value, key)
    if origin is tuple:
        return _tuple(inner, value, key)
    if origin is np.ndarray:
        return _array(get_args(inner[1])[0], value, key)
    if origin in (dict, Mapping) and inner[0] is str:
        return _by_name(inner[1], value, key)
    raise TypeError(f"{key}: values of the type {hint} cannot be read")


def choice(known: Sequence[str], what: str = "unknown value") -> Reader:
    """Reader of a word that must be one of the known ones.

    Args:
        known: the words.
        what: beginning of the message for an unknown one.
    """

    def read(value: Any, key: str) -> str:
        if not isinstance(value, str) or value not in known:
            raise UsageError(f"{key}: {what} {value!r}; {suggest_known(value, known)}")
        return value

    return read


def list_field_hints(kind: Any) -> dict[str, Any]:
    """Type hint of each field of a dataclass that its constructor takes, in order."""
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind) if item.init}


def _prefix(key: str) -> str:
    return f"{key}: " if key else ""


def _scalar(kind: Any, value: Any, key: str) -> Any:
    if kind is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise UsageError(f"{key}: must be a number below 1.8e308") from None
    if type(value) is not kind:
        hint = suggest_exponent(value) if kind is float else ""
        raise UsageError(f"{key}: must be {WORDS[kind]}, not {value!r}{hint}")
    return np.nan if value != value else value  # YAML's NaN has a sign bit


def _alternative(kinds: Sequence[Any], value: Any, key: str) -> Any:
    """The value as the first of some types that it has."""
    if len(kinds) == 1:
        return read_value(kinds[0], value, key)
    for kind in kinds:
        try:
            return read_value(kind, value, key)
        except UsageError:
            continue
    raise UsageError(f"{key}: must be {' or '.join(WORDS.get(kind, str(kind)) for kind in kinds)}, not {value!r}")


def _tuple(inner: tuple[Any, ...], value: Any, key: str) -> tuple[Any, ...]:
    """A list of any length (`tuple[X, ...]`) or of a fixed one (`tuple[X, X, X]`)."""
    words = LIST_WORDS.get(inner[0], "entries")
    if inner[-1] is not Ellipsis and not (isinstance(value, list) and len(value) == len(inner)):
        raise UsageError(f"{key}: must be a list of {len(inner)} {words}, not {value!r}")
    if not isinstance(value, list):
        raise UsageError(f"{key}: must be a list, not {value!r}")
    return tuple(read_value(inner[0], entry, f"{key}[{place}]") for place, entry in enumerate(value))


def _by_name(kind: Any, value: Any, key: str) -> dict[str, Any]:
    """Values by name; one number in place of numbers by joint is that of all joints."""
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = {ALL_JOINTS: value}
    if not isinstance(value, dict):
        raise UsageError(f"{key}: must hold keys and values, not {value!r}")
    return {str(name): read_value(kind, entry, f"{key}.{name}") for name, entry in value.items()}


def _array(kind: Any, value: Any, key: str) -> Array:
    """A list of numbers, or of rows of equal length, as an array."""
    rows = value if isinstance(value, list) else None
    if rows is None:
        raise UsageError(f"{key}: must be a list, not {value!r}")
    nested = [isinstance(row, list) for row in rows]
    entries = [entry for row, inner in zip(rows, nested, strict=True) for entry in (row if inner else [row])]
    allowed: set[type] = {bool} if kind is np.bool_ else {int, float} if kind is np.float64 else {int}
    if not set(map(type, entries)) <= allowed:
        wrong = next(entry for entry in entries if type(entry) not in allowed)
        words = LIST_WORDS[bool if kind is np.bool_ else float if kind is np.float64 else int]
        raise UsageError(f"{key}: must hold {words}, not {wrong!r}")
    if len({len(row) if inner else None for row, inner in zip(rows, nested, strict=True)}) > 1:
        raise UsageError(f"{key}: its rows have different lengths")
    try:
        array: Array = np.array(rows, dtype=kind)
    except OverflowError:
        raise UsageError(f"{key}: holds a number out of the range of {np.dtype(kind).name}") from None
    if kind is np.float64:
        array[np.isnan(array)] = np.nan  # YAML's NaN has a sign bit
    return array
