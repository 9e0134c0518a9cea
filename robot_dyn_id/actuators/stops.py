# SPDX-License-Identifier: Apache-2.0
"""End stops and contacts: joints that do not go where their drives push them.

A joint in free motion is simulated beyond the positions that it reached by the error of the simulation. One that is
stopped there is simulated far beyond, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.actuators.fit import STEP_S
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import split_into_limbs
from robot_dyn_id.actuators.spread import PARTS
from robot_dyn_id.actuators.validation import simulate
from robot_dyn_id.arrays import Array
from robot_dyn_id.identification.selection.engine import weigh_joints
from robot_dyn_id.model.robot import RobotModel


@dataclass(frozen=True)
class EndStop:
    """Position beyond which a joint does not move.

    Attributes:
        joint: name of the joint.
        position: the position [rad or m].
    """

    joint: str
    position: float


def find_stops(model: RobotModel, actuators: ActuatorModel, motions: Sequence[CommandedMotion]) -> tuple[EndStop, ...]:
    """Ends of the measured positions that are stops by the rule of `weigh`.

    A stop there must remove errors of the simulation in most parts of the motions.

    Args:
        model: robot model.
        actuators: actuators of its joints.
        motions: motions of its joints.

    Raises:
        InputError: a simulation diverges.
    """
    limbs = split_into_limbs(model)
    least, most = (end([end(motion.q, axis=0) for motion in motions], axis=0) for end in (np.min, np.max))
    free: list[Array] = []
    stopped: dict[str, list[Array]] = {"least": [], "most": []}
    for motion in motions:
        positions = simulate(limbs, actuators, motion, STEP_S)
        free += _sum_parts(positions - motion.q)
        stopped["least"] += _sum_parts(np.maximum(positions, least) - motion.q)
        stopped["most"] += _sum_parts(np.minimum(positions, most) - motion.q)
    found = []
    for side, ends in (("least", least), ("most", most)):
        names = [f"{name} {side}" for name in model.joint_names]
        tried = weigh_joints("actuators", names, np.array(free), np.array(stopped[side]))
        pairs = zip(tried, model.joint_names, ends.tolist(), strict=True)
        found += [EndStop(name, position) for one, name, position in pairs if one.pays]
    return tuple(found)


def _sum_parts(errors: Array) -> list[Array]:
    """Sums of squares of consecutive parts of time, shape (n,) each."""
    return [np.asarray(np.sum(part**2, axis=0)) for part in np.array_split(errors, PARTS)]
