# SPDX-License-Identifier: Apache-2.0
"""One value per joint, from values by joint name or from values in the order of the joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError, suggestion

PerJoint = tuple[tuple[str, float], ...]
"""Pairs of joint name and value; the name `all` gives the value of the joints that are not named."""


def values_by_name(values: Mapping[str, float], joint_names: Sequence[str], key: str, default: float) -> Array:
    """Arrange values given by joint name in the order of the joints.

    Args:
        values: values by joint name; `all` gives the value of the joints that are not named.
        joint_names: names of the n joints.
        key: name of the setting, for messages.
        default: value of joints without an entry.

    Returns:
        One value per joint, shape (n,).

    Raises:
        UsageError: a joint name is unknown, or a value is not a number.
    """
    for name, value in values.items():
        if name not in (*joint_names, "all"):
            raise UsageError(f"{key}: {name} is not a joint; {suggestion(name, list(joint_names))}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{key}.{name}: must be a number, not {value!r}")
    return np.array([float(values.get(name, values.get("all", default))) for name in joint_names])


def values_in_order(
    values: Sequence[float], joint_names: Sequence[str], key: str, default: float = 0.0, order: Sequence[str] = ()
) -> Array:
    """Arrange values given as a list in the order of the joints.

    Args:
        values: no value (the default is used), one value for all joints, or one value per joint.
        joint_names: names of the n joints.
        key: name of the setting, for messages.
        default: value of all joints if none is given.
        order: joints in the order of the values; the order of `joint_names` by default.

    Returns:
        One value per joint, shape (n,).

    Raises:
        UsageError: wrong number of values.
    """
    order = list(order or joint_names)
    if len(values) not in (0, 1, len(order)):
        raise UsageError(f"{key} has {len(values)} values, expected 1 or one for each of {', '.join(order)}")
    if len(values) <= 1:
        return np.full(len(joint_names), values[0] if len(values) else default, dtype=np.float64)
    return np.array([values[order.index(name)] for name in joint_names], dtype=np.float64)
