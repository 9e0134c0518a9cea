# SPDX-License-Identifier: Apache-2.0
"""Passivity of identified friction: within the trained speeds it must brake every joint, never drive it."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.uses import NO

FRICTION_NOT_PASSIVE = Definition(
    "friction_not_passive",
    Section.VALIDATION,
    "warning",
    "The friction of a joint, all of its terms together, has the direction of the motion at a speed within the "
    "trained range: it adds energy, and simulated motions run away.",
    "identify with `estimator: consistent`, which keeps each term of friction positive; where it is used already, "
    "state `terms` without those that may drive, such as `absolute_velocity`, and record both directions alike",
    lowers={"forward_simulation": NO},
)

SPEED_SHARES = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Speeds at which friction is evaluated, as shares of the maximum speed."""

DRIVING_SHARE = 0.01
"""Driving torque that counts, as a share of the largest friction of the joint."""

ROUNDING = 1e-8
"""Driving torque that is rounding, as a share of the largest friction of the robot: tolerance of cone programs."""


def report_driving_friction(dynamics: Dynamics, q: Array, speeds: Array) -> tuple[Finding, ...]:
    """Finding about joints that their own friction drives: simulated motions of them run away.

    Friction is that of a long motion at constant speed, less the torque at rest (offsets, springs).

    Args:
        dynamics: the identified model.
        q: configuration [rad or m], shape (n,).
        speeds: maximum speeds [rad/s or m/s], shape (n,).
    """
    names = dynamics.regressor.model.joint_names
    shares = np.concatenate([-SPEED_SHARES, SPEED_SHARES])
    dq = np.concatenate([share * np.diag(speeds) for share in shares])  # one joint at a time
    still = dynamics.friction(q, np.zeros_like(q))
    moving = np.tile(np.arange(len(q)), len(shares))
    torque = (dynamics.friction(np.tile(q, (len(dq), 1)), dq) - still)[np.arange(len(dq)), moving]
    braking = (torque * np.repeat(np.sign(shares), len(q))).reshape(len(shares), len(q))
    driving = np.maximum(-braking.min(axis=0), 0.0)
    # the solver of a cone program stops at bounds within its own tolerance, relative to the whole problem
    rounding = ROUNDING * np.abs(torque).max(initial=0.0)
    found = np.flatnonzero(driving > np.maximum(DRIVING_SHARE * np.abs(braking).max(axis=0), rounding)).tolist()
    if not found:
        return ()
    units = dynamics.regressor.model.effort_units
    listed = ", ".join(f"{names[joint]} with up to {driving[joint]:.2g} {units[joint]}" for joint in found)
    message = f"the identified friction drives joints within the trained speeds: {listed}"
    return (FRICTION_NOT_PASSIVE.found(message, [names[joint] for joint in found]),)
