# SPDX-License-Identifier: Apache-2.0
"""Files of terms with known parameters, such as friction, rotors and springs of a simulated robot.

    improved_stribeck: {stribeck_velocity: 0.05, fci: [14.9, 12.0], dfi: {shoulder: 5.3}, kva: 20.0, kvb: 0.0, kvc: 0.0}
    rotor_inertia: {Ir: [5.0, 7.2]}

Keys of a term are the symbols of its parameters, 0 by default, and its constants. Values are for all joints, one for
each in order, or by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import make_joint_coordinates
from robot_dyn_id.dynamics.terms import TERMS, Coordinate, Term, refuse_overlaps
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.values import check_keys, choice, file_errors
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.text.yaml import read_yaml

ValuedTerms = tuple[tuple[Coordinate, Term, Array], ...]
"""Coordinates, terms on them, and the parameters of each, shape (symbols,)."""


def read_term_values(path: str | Path, model: RobotModel) -> ValuedTerms:
    """Read the terms of a robot with their parameters.

    Args:
        path: the file.
        model: the robot; a value has the unit of the term's parameter on its joint.

    Raises:
        UsageError: not readable, an unknown term, key or joint, terms that overlap, or a value of the wrong type.
    """
    content = read_yaml(path, "terms with values", UsageError)
    with file_errors(path, UsageError):
        check_keys({} if content is None else content, tuple(TERMS))
        found = [entry for name, keys in (content or {}).items() for entry in _read_term(name, keys, model)]
        for joint in model.joint_names:
            refuse_overlaps(term for at, term, _ in found if at.name == joint)
    return tuple(found)


def _read_term(name: str, keys: Any, model: RobotModel) -> ValuedTerms:
    """One term on all joints."""
    term = TERMS[choice(list(TERMS))(name, "")]()
    keys = {} if keys is None else keys
    check_keys(keys, (*term.symbols, *term.constants), name)
    joints = model.joint_names
    at = {coordinate.name: coordinate for coordinate in make_joint_coordinates(model)}
    columns = {
        key: make_joint_array(_sequence(keys.get(key, default), f"{name}.{key}"), joints, f"{name}.{key}", default)
        for key, default in {**dict.fromkeys(term.symbols, 0.0), **term.constants}.items()
    }
    entries = []
    for number, joint in enumerate(joints):
        values = np.array([columns[symbol][number] for symbol in term.symbols])
        entries.append((at[joint], term.with_constants({key: columns[key][number] for key in term.constants}), values))
    return tuple(entries)


def _sequence(value: Any, key: str) -> Any:
    """Values by joint or in order.

    Raises:
        UsageError: a value in order is not a number.
    """
    if isinstance(value, dict):
        return value
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if not isinstance(entry, (bool, int, float)):
            raise UsageError(f"{key}: must be a number, not {entry!r}")
    return entries
