# SPDX-License-Identifier: Apache-2.0
"""Design files: the demands on an excitation as checked values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.optimizers import SearchEffort
from robot_dyn_id.excitation.design.settings import DEMAND_KEYS, PURPOSES, DesignSettings
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.files.shared import read_section
from robot_dyn_id.files.values import file_errors, list_field_hints, read_dataclass, read_mapping


def design_settings(**keys: Any) -> DesignSettings:
    """Settings of a design from the flat keys of a file, whose values have their types, with defaults of the purpose.

    Args:
        keys: values by key; `search` may be a mapping.

    Raises:
        UsageError: a value that no design can have; its key is named.
    """
    keys = PURPOSES.get(keys.get("purpose", ""), {}) | keys
    if isinstance(keys.get("search"), dict):
        keys["search"] = read_dataclass(SearchEffort, keys["search"], "search")
    demand = Demand(**{key: value for key, value in keys.items() if key in DEMAND_KEYS})
    return DesignSettings(demand=demand, **{key: value for key, value in keys.items() if key not in DEMAND_KEYS})


def read_design_settings(path: str | Path | None, **given: Any) -> DesignSettings:
    """Read a design file.

    Args:
        path: the file, or the name of a robot, see `robot_names`; None for no file.
        given: values by key that replace those of the file.

    Raises:
        UsageError: not readable, an unknown key (the nearest known one is named), or a value of the wrong type.
    """
    content = None if path is None else read_section(path, "design", "design file")
    hints = list_field_hints(DesignSettings) | {key: list_field_hints(Demand)[key] for key in DEMAND_KEYS}
    known = {key: hint for key, hint in hints.items() if key != "demand"}
    with file_errors(path, UsageError):
        return design_settings(**read_mapping(known, {} if content is None else content) | given)
