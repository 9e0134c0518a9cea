# SPDX-License-Identifier: Apache-2.0
"""Values by joint: given by name or in order, one array in the order of the joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError, suggest_known

ALL_JOINTS = "all"
"""Name in place of a joint's: the value of the joints that are not named."""

JointValues = tuple[tuple[str, float], ...]
"""Values by joint name, hashable; `ALL_JOINTS` is the name of the joints that are not named."""


def make_joint_array(
    values: Mapping[str, float] | JointValues | Sequence[float] | Array,
    joints: Sequence[str],
    key: str,
    default: float = 0.0,
) -> Array:
    """One value per joint, in the order of the joints.

    Args:
        values: values by joint name, where `all` is the value of the joints that are not named; or in order, one for
            all joints or one for each; empty for the default.
        joints: names of the n joints.
        key: name of the values, for messages.
        default: value of the joints that have none.

    Returns:
        A new array, shape (n,).

    Raises:
        UsageError: a joint that is not one of `joints`, a value that is not a number, or another number of values.
    """
    if isinstance(values, Mapping):
        return _from_names(values, joints, key, default)
    entries = list(values)
    if entries and isinstance(entries[0], tuple):
        return _from_names(dict(entries), joints, key, default)
    if len(entries) not in (0, 1, len(joints)):
        raise UsageError(f"{key} has {len(entries)} values, expected 1 or one for each of {', '.join(joints)}")
    return np.broadcast_to(np.array(entries or [default], dtype=np.float64), len(joints)).copy()


def _from_names(values: Mapping[str, float], joints: Sequence[str], key: str, default: float) -> Array:
    for name, value in values.items():
        if name not in (*joints, ALL_JOINTS):
            raise UsageError(f"{key}: {name} is not a joint; {suggest_known(name, list(joints))}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{key}.{name}: must be a number, not {value!r}")
    return np.array([float(values.get(name, values.get(ALL_JOINTS, default))) for name in joints], dtype=np.float64)
