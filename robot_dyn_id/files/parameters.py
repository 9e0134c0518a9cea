# SPDX-License-Identifier: Apache-2.0
"""`parameters.yaml`: a parameter set as text for people to read and compare, equal to the last bit when read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet, stored_fields
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import Row, read_yaml, yaml_text

FORMAT = "robot_dyn_id parameters 1"

MATRICES = ("covariance", "mapping")


def _plain(name: str, value: Any) -> Any:
    if name in MATRICES:
        return [Row(row) for row in np.asarray(value).tolist()]
    if isinstance(value, np.ndarray):
        return Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value


def write_parameters(path: str | Path, parameters: ParameterSet) -> None:
    """Write a parameter set.

    Raises:
        InputError: the file cannot be written.
    """
    content = {"format": FORMAT}
    content.update({item.name: _plain(item.name, getattr(parameters, item.name)) for item in stored_fields()})
    write_atomically(Path(path), yaml_text(content))


def read_parameters(path: str | Path, term_classes: Sequence[type[Term]] = ()) -> ParameterSet:
    """Read a parameter set.

    Args:
        path: the file.
        term_classes: classes of the user's own terms, if the set was identified with some.

    Raises:
        InputError: not readable, not a parameter set, or a field missing or of the wrong kind.
    """
    content = read_yaml(path, "parameters")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a parameter file of this tool (its first line must read `format: {FORMAT}`)")
    hints = get_type_hints(ParameterSet)
    values = {}
    for item in stored_fields():
        if item.name not in content:
            raise InputError(f"{path}: {item.name} is missing")
        try:
            values[item.name] = _typed(hints[item.name], content[item.name])
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{path}: {item.name} cannot be read as {_kind(hints[item.name])}") from None
    if not values["names"]:  # an empty list has no second dimension
        values.update(covariance=np.zeros((0, 0)), mapping=np.zeros((0, len(values["column_names"]))))
    try:
        return ParameterSet(**values, term_classes=tuple(term_classes))
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
