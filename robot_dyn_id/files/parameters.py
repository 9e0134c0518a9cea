# SPDX-License-Identifier: Apache-2.0
"""`parameters.yaml`: a parameter set as text that can be read and compared, equal to the last bit when read back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import InputError
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.parameters_header import describe_parameters
from robot_dyn_id.files.values import file_errors, read_dataclass, read_value
from robot_dyn_id.parameters import (
    FORMAT_REMEDY,
    FORMAT_VERSION,
    PARAMETERS_FILE,
    UNKNOWN,
    FitFor,
    ParameterSet,
    stored_fields,
)
from robot_dyn_id.text.yaml import Row

WITHOUT_PRIOR = frozenset(
    {
        *("ols", "weighted", "generalized", "robust", "period_averaged", "total_least_squares", "stepwise"),
        *("instrumental", "output_error", "closed_loop_output_error", "separable", "lm", "ga", "pso", "pso_lm"),
    }
)
"""Estimators whose covariance contains no prior; of all others, it may."""

FORMAT = FileFormat("parameters", FORMAT_VERSION, FORMAT_REMEDY)


def write_parameters(path: str | Path, parameters: ParameterSet) -> None:
    """Write a parameter set, below a comment that describes it.

    Raises:
        InputError: the file cannot be written.
    """
    content = {item.name: _plain(getattr(parameters, item.name)) for item in stored_fields()}
    del content["format_version"]  # at the top of the file
    content["states"] = [{name: _plain(value) for name, value in vars(state).items()} for state in parameters.states]
    content["fit_for"] = {
        entry.use: {name: _plain(value) for name, value in vars(entry).items() if name != "use"}
        for entry in parameters.fit_for
    }
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
    path = parameters_file(path)
    content = FORMAT.read(path)
    for name, value in _list_unstored(content).items():
        content.setdefault(name, value)
    given: dict[str, Any] = {"format_version": FORMAT.version, "term_classes": tuple(term_classes)}
    with file_errors(path, InputError):
        return read_dataclass(ParameterSet, content, readers=_READERS, complete=True, **given)


def parameters_file(path: str | Path) -> Path:
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


def _list_unstored(content: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the fields that earlier files of this format do not hold.

    With parameters that are not excited, a prior may have been used in their directions.
    """
    estimator, status = content.get("estimator"), content.get("status")
    excited = isinstance(status, list) and "not excited" not in status
    plain = isinstance(estimator, str) and estimator in WITHOUT_PRIOR and excited
    return {
        "robot_compensates": [UNKNOWN],
        "prior_strength": 0.0 if plain else math.nan,
        "residual_speeds": [],
        "residual_deviations": [],
    }


def _read_fit_for(value: Any, key: str) -> tuple[FitFor, ...]:
    """Answers by use."""
    entries = read_value(dict[str, Any], value, key)
    return tuple(
        read_dataclass(FitFor, entry, f"{key}.{use}", complete=True, use=use) for use, entry in entries.items()
    )


_READERS = {"fit_for": _read_fit_for}


def _plain(value: Any) -> Any:
    """A value as YAML has it: one line for a list, one for each row of a matrix."""
    if isinstance(value, np.ndarray):
        return [Row(row) for row in value.tolist()] if value.ndim == 2 else Row(value.tolist())
    return Row(value) if isinstance(value, tuple) else value
