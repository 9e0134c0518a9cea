# SPDX-License-Identifier: Apache-2.0
"""Coverage of the robot's ranges by a motion: positions, speeds, reversals, time at rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.identification.validation.trace import Trace
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import Ranges

REST_SHARE = 0.01
"""Share of the trained speed below which a joint counts as at rest."""

LONGEST_STEP_S = 0.1
"""Time between two kept samples up to which reversals are counted [s]."""


@dataclass(frozen=True)
class JointExcitation:
    """Coverage of one joint's ranges.

    Attributes:
        name: name of the joint.
        unit: rad or m.
        position_limits: limits of the URDF, shape (2,); NaN: none.
        speed_limit: limit of the URDF; NaN: none.
        trained_positions: least and greatest position of the training data, shape (2,).
        trained_speed: greatest speed of the training data.
        trained_acceleration: greatest acceleration of the training data.
        used_position: share of the range of positions that the training data cover; NaN without limits.
        used_speed: greatest trained speed as a share of the limit; NaN without a limit.
        reversals: number of changes of the direction; None where too few samples are kept to count them.
        rest: share of the samples at rest.
    """

    name: str
    unit: str
    position_limits: Array
    speed_limit: float
    trained_positions: Array
    trained_speed: float
    trained_acceleration: float
    used_position: float
    used_speed: float
    reversals: int | None
    rest: float


def explain_excitation(trace: Trace, model: RobotModel, trained: Ranges) -> tuple[JointExcitation, ...]:
    """Compare a motion with the ranges of a robot.

    Args:
        trace: samples of the motion.
        model: the robot.
        trained: ranges of the training data.
    """
    return tuple(_explain(trace, model, trained))


def _explain(trace: Trace, model: RobotModel, trained: Ranges) -> Iterator[JointExcitation]:
    for joint, name in enumerate(model.joint_names):
        dq = trace.motion.dq[joint]
        limits = np.array([model.limits.lower[joint], model.limits.upper[joint]])
        limited = bool(np.isfinite(limits).all() and limits[1] > limits[0])
        fastest = float(model.limits.velocity[joint])
        span = np.array([trained.q_min[joint], trained.q_max[joint]])
        top = float(trained.dq_max[joint])
        moving = top > 0.0
        yield JointExcitation(
            name=name,
            unit=model.position_units[joint],
            position_limits=limits if limited else np.full(2, np.nan),
            speed_limit=fastest if np.isfinite(fastest) and fastest > 0.0 else np.nan,
            trained_positions=span,
            trained_speed=top,
            trained_acceleration=float(trained.ddq_max[joint]),
            used_position=float(np.ptp(span) / np.ptp(limits)) if limited else np.nan,
            used_speed=top / fastest if np.isfinite(fastest) and fastest > 0.0 else np.nan,
            reversals=_count_reversals(trace, joint, REST_SHARE * top),
            rest=float(np.mean(np.abs(dq) <= REST_SHARE * top)) if moving else 1.0,
        )


def _count_reversals(trace: Trace, joint: int, threshold: float) -> int | None:
    """Changes of direction between velocities above a threshold, within each recording."""
    if len(trace.t) < 2 or float(np.median(np.diff(trace.t))) > LONGEST_STEP_S:
        return None
    count = 0
    for trial in np.unique(trace.trial):
        velocity = trace.motion.dq[joint, trace.trial == trial]
        signs = np.sign(velocity[np.abs(velocity) > threshold])
        count += int(np.count_nonzero(np.diff(signs)))
    return count
