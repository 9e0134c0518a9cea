# SPDX-License-Identifier: Apache-2.0
"""Design files: the demands on an excitation as checked values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.optimizers import SearchEffort
from robot_dyn_id.excitation.design.settings import DEMAND_KEYS, PURPOSES, DesignSettings
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.files.shared import read_section
from robot_dyn_id.files.values import file_errors, list_field_hints, read_dataclass, read_mapping
from robot_dyn_id.model.joint_values import ALL_JOINTS


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


def read_design_settings(*paths: str | Path | None, **given: Any) -> DesignSettings:
    """Read design files.

    Values are combined key by key, and mappings entry by entry, so that a limit of one joint leaves those of the
    others; a number replaces the values of all joints.

    Args:
        paths: the files, or names of robots, see `list_robot_names`; the values of later ones take precedence. None for
            no file.
        given: values by key, which take precedence over those of the files.

    Raises:
        UsageError: not readable, an unknown key (the nearest known one is named), or a value of the wrong type.
    """
    hints = list_field_hints(DesignSettings) | {key: list_field_hints(Demand)[key] for key in DEMAND_KEYS}
    known = {key: hint for key, hint in hints.items() if key != "demand"}
    files = [path for path in paths if path is not None]
    content: dict[str, Any] = {}
    for path in files:
        demands = read_section(path, "design", "design file")
        with file_errors(path, UsageError):
            read_mapping(known, {} if demands is None else demands)
        content = _combine(content, demands or {})
    with file_errors(files[-1] if files else None, UsageError):
        return design_settings(**_combine(read_mapping(known, content), given))


def _combine(below: Any, above: Any) -> Any:
    """A value of a design with another one that takes precedence: mappings entry by entry."""
    if not isinstance(above, Mapping) or ALL_JOINTS in above:
        return above
    if isinstance(below, (int, float)) and not isinstance(below, bool):
        below = {ALL_JOINTS: below}
    if not isinstance(below, Mapping):
        return above
    return {**below, **{key: _combine(below[key], value) if key in below else value for key, value in above.items()}}
