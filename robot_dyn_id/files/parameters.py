# SPDX-License-Identifier: Apache-2.0
"""`parameters.yaml`: a parameter set as text that can be read and compared, equal to the last bit when read back."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.values import file_errors, read_dataclass
from robot_dyn_id.parameters import FORMAT_REMEDY, FORMAT_VERSION, ParameterSet
from robot_dyn_id.text.yaml import Row

FORMAT = FileFormat("parameters", FORMAT_VERSION, FORMAT_REMEDY)


def write_parameters(path: str | Path, parameters: ParameterSet) -> None:
    """Write a parameter set.

    Raises:
        InputError: the file cannot be written.
    """
    FORMAT.write(path, {item.name: _plain(getattr(parameters, item.name)) for item in fields(parameters)})


def read_parameters(path: str | Path) -> ParameterSet:
    """Read a parameter set.

    Raises:
        InputError: not readable, not a parameter set, of another format version, or a field that is missing or of the
            wrong type.
    """
    content = FORMAT.read(path)
    with file_errors(path, InputError):
        return read_dataclass(ParameterSet, content, complete=True, format_version=FORMAT.version)


def _plain(value: Any) -> Any:
    """A value as YAML has it: one line for a list, one for each row of a matrix."""
    if isinstance(value, np.ndarray):
        return [Row(row) for row in value.tolist()] if value.ndim == 2 else Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value
