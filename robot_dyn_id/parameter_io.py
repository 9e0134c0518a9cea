"""`parameters.yaml`: a parameter set as text for people to read and compare, equal to the last bit when read back."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import yaml

from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.yaml_files import read_yaml

FORMAT = "robot_dyn_id parameters 1"

MATRICES = ("covariance", "mapping")


class _Dumper(yaml.SafeDumper):
    """Arrays in one line each, texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


class Row(list[Any]):
    """A list that is written in one line."""


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    Row, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
)


def _plain(name: str, value: Any) -> Any:
    if name in MATRICES:
        return [Row(row) for row in np.asarray(value).tolist()]
    if isinstance(value, np.ndarray):
        return Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value


def yaml_text(content: dict[str, Any]) -> str:
    """YAML whose numbers read back as the same to the last bit: the shortest texts for which they do."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=2**31, allow_unicode=True)


def part_of(path: Path) -> Path:
    """The file that takes what is written until it is complete and renamed."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def write_atomically(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all; what UTF-8 does not have, as in names of files, is escaped.

    Raises:
        InputError: the folder cannot be written to.
    """
    part = part_of(path)
    try:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_parameters(path: str | Path, parameters: ParameterSet) -> None:
    """Write a parameter set.

    Raises:
        InputError: the file cannot be written.
    """
    content = {"format": FORMAT}
    content.update({item.name: _plain(item.name, getattr(parameters, item.name)) for item in fields(parameters)})
    write_atomically(Path(path), yaml_text(content))


def read_parameters(path: str | Path) -> ParameterSet:
    """Read a parameter set.

    Raises:
        InputError: not readable, not a parameter set, or a field missing or of the wrong kind.
    """
    content = read_yaml(path, "parameters")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a parameter file of this tool (its first line must read `format: {FORMAT}`)")
    hints = get_type_hints(ParameterSet)
    values = {}
    for item in fields(ParameterSet):
        if item.name not in content:
            raise InputError(f"{path}: {item.name} is missing")
        try:
            values[item.name] = _typed(hints[item.name], content[item.name])
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{path}: {item.name} cannot be read as {_kind(hints[item.name])}") from None
    if not values["names"]:  # an empty list has no second dimension
        values.update(covariance=np.zeros((0, 0)), mapping=np.zeros((0, len(values["column_names"]))))
    try:
        return ParameterSet(**values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _kind(hint: Any) -> str:
    return (
        getattr(hint, "__name__", str(hint)).replace("ndarray", "a list of numbers").replace("tuple", "a list of texts")
    )


def _typed(hint: Any, value: Any) -> Any:
    if hint in (str, bool, int, float):
        if hint is not float and not isinstance(value, hint):
            raise TypeError(hint)
        return np.nan if value != value else hint(value)  # YAML's NaN has a sign bit; ours has none
    if getattr(hint, "__origin__", None) is tuple:
        if not (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
            raise TypeError(hint)
        return tuple(value)
    if "uint32" in str(hint):
        if not all(type(entry) is int for entry in value):
            raise TypeError(hint)
        return np.array(value, dtype=np.uint32)
    numbers = np.array(value, dtype=np.float64)
    numbers[np.isnan(numbers)] = np.nan  # as above
    return numbers
