# SPDX-License-Identifier: Apache-2.0
"""Directions that the joints move in: Coulomb friction and a constant offset differ only where a joint turns back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.uses import LIMITED, MOTION_USES

ONE_WAY_MOTION = Definition(
    "one_way_motion",
    Section.HEALTH,
    "warning",
    "A joint moves in one direction only: its Coulomb friction and a constant effort have the same effect.",
    "record a motion that reverses every joint",
    lowers=dict.fromkeys(MOTION_USES, LIMITED),
)

ONE_WAY_SHARE = 0.97
"""Share of a joint's travel in one direction above which it moves one way only."""

LEAST_TRAVEL = 0.05
"""Travel below which a joint is not judged [rad or m]."""


def examine_directions(names: Sequence[str], q: Array, segment: Integers) -> tuple[Finding, ...]:
    """Finding about joints that move one way only.

    Args:
        names: joints, n.
        q: positions at N consecutive samples [rad or m], shape (n, N).
        segment: number of the uninterrupted segment of each sample, shape (N,).
    """
    steps = np.diff(q, axis=1)[:, np.diff(segment) == 0]
    travel = np.abs(steps).sum(axis=1)
    joints = [
        name
        for name, one_way, length in zip(names, flag_one_way(steps), travel, strict=True)
        if one_way and length > LEAST_TRAVEL
    ]
    if not joints:
        return ()
    moves = "moves" if len(joints) == 1 else "move"
    message = f"{', '.join(joints)} {moves} in one direction only: friction is not separable from a constant effort"
    return (ONE_WAY_MOTION.found(message, joints),)


def measure_one_way(steps: Array) -> Array:
    """Share of each joint's travel in the direction that it travels more in, from 0.5 to 1; 0 at rest; shape (n,).

    Args:
        steps: changes of the positions, or velocities at a constant rate, shape (n, N).
    """
    forward, travel = np.maximum(steps, 0.0).sum(axis=1), np.abs(steps).sum(axis=1)
    return np.asarray(np.maximum(forward, travel - forward) / np.maximum(travel, np.finfo(float).tiny))


def flag_one_way(steps: Array) -> Mask:
    """Joints that move in one direction only, shape (n,); see `measure_one_way`."""
    return np.asarray(measure_one_way(steps) > ONE_WAY_SHARE)
