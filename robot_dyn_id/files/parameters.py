# SPDX-License-Identifier: Apache-2.0
"""`parameters.yaml`: a parameter set as text that can be read and compared, equal to the last bit when read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.parameters_header import describe_parameters
from robot_dyn_id.files.values import file_errors, read_dataclass
from robot_dyn_id.parameters import FORMAT_REMEDY, FORMAT_VERSION, PARAMETERS_FILE, ParameterSet
from robot_dyn_id.text.yaml import Row

FORMAT = FileFormat("parameters", FORMAT_VERSION, FORMAT_REMEDY)


def write_parameters(path: str | Path, parameters: ParameterSet) -> None:
    """Write a parameter set, below a comment that describes it.

    Raises:
        InputError: the file cannot be written.
    """
    content = {name: _plain(part) for name, part in parameters.parts.items()}
    FORMAT.write(path, content, describe_parameters(parameters))


def read_parameters(path: str | Path, term_classes: Sequence[type[Term]] = ()) -> ParameterSet:
    """Read a parameter set.

    Args:
        path: the file, or the folder of results with `parameters.yaml`.
        term_classes: classes of the user's own terms, if the set was identified with some.

    Raises:
        InputError: a folder without `parameters.yaml`, not readable, not a parameter set, of another format version, or
            a field that is missing or of the wrong type.
    """
    path = find_parameters_file(path)
    content = FORMAT.read(path)
    with file_errors(path, InputError):
        return read_dataclass(ParameterSet, content, term_classes=tuple(term_classes))


def find_parameters_file(path: str | Path) -> Path:
    """The file of a parameter set: `parameters.yaml` of a folder of results, or the file that is given.

    Raises:
        InputError: a folder without `parameters.yaml`.
    """
    file = Path(path)
    if not file.is_dir():
        return file
    if not (file / PARAMETERS_FILE).is_file():
        raise InputError(f"{path}: a folder without {PARAMETERS_FILE}: give the folder of an identification, or a file")
    return file / PARAMETERS_FILE


def _plain(value: Any) -> Any:
    """A value as YAML has it: one line for a list, one for each row of a matrix, a section for a part."""
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, np.ndarray):
        return [Row(row) for row in value.tolist()] if value.ndim == 2 else Row(value.tolist())
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value] if any(map(is_dataclass, value)) else Row(value)
    return value
