# SPDX-License-Identifier: Apache-2.0
"""Reading design files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from robot_dyn_id.errors import UsageError, suggestion
from robot_dyn_id.excitation.design.optimizers import SearchEffort
from robot_dyn_id.excitation.design.settings import DEMANDED, DesignSettings
from robot_dyn_id.excitation.parametrization import Demand
from robot_dyn_id.text.yaml import read_yaml


def design_settings(**keys: Any) -> DesignSettings:
    """Settings from the flat keys of a file, of the right types.

    Raises:
        UsageError: names the key.
    """
    if isinstance(keys.get("search"), Mapping):
        keys["search"] = _effort(keys["search"])
    demand = Demand(**{key: value for key, value in keys.items() if key in DEMANDED})
    return DesignSettings(demand=demand, **{key: value for key, value in keys.items() if key not in DEMANDED})


def read_design_settings(path: str | Path | None, **given: Any) -> DesignSettings:
    """Read a design file; what is given takes the place of its keys.

    Raises:
        UsageError: not readable, an unknown key (the nearest known one is named), a value of the wrong type.
    """
    content = {} if path is None else read_yaml(path, "design file", UsageError) or {}
    hints = get_type_hints(DesignSettings) | {key: get_type_hints(Demand)[key] for key in DEMANDED}
    del hints["demand"]
    if not isinstance(content, dict):
        raise UsageError(f"{path}: must hold keys and values")
    try:
        for key in content:
            if key not in hints:
                raise UsageError(f"unknown key {key!r}; {suggestion(key, list(hints))}")
        return design_settings(**{k: _value(k, v, hints[k]) for k, v in content.items()} | given)
    except UsageError as error:
        raise UsageError(f"{path}: {error}" if path is not None else str(error)) from None


def _value(key: str, value: Any, hint: Any) -> Any:
    if hint is Any:
        return value
    kind = getattr(hint, "__origin__", hint)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is SearchEffort:
        return _effort(value)
    if kind is tuple:
        inner = hint.__args__[0]
        if not isinstance(value, list):
            raise UsageError(f"{key}: must be a list, not {value!r}")
        return tuple(value if inner is Any else (_value(key, entry, inner) for entry in value))
    if kind is Mapping:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return {"all": float(value)}  # one number for all joints
        if not isinstance(value, dict):
            raise UsageError(f"{key}: must be keys and values, not {value!r}")
        return value
    if type(value) is not kind:
        raise UsageError(f"{key}: must be {WORDS[kind]}, not {value!r}")
    return value


WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def _effort(content: Any) -> SearchEffort:
    if not isinstance(content, dict):
        raise UsageError(f"search: must be keys and values, not {content!r}")
    hints = get_type_hints(SearchEffort)
    for key in content:
        if key not in hints:
            raise UsageError(f"search: unknown key {key!r}; {suggestion(key, list(hints))}")
    return SearchEffort(**{key: _value(f"search: {key}", value, hints[key]) for key, value in content.items()})
