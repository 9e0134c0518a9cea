# SPDX-License-Identifier: Apache-2.0
"""Errors of the equations of an arm with flexible joints on an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.estimators.stepwise import Equations
from robot_dyn_id.flexible.model import SPRING, FlexibleModel


@dataclass(frozen=True)
class Agreement:
    """Error of one equation, filtered, of the samples that count.

    Attributes:
        equation: experiment, kind and joint, such as `both: link of joint1`.
        rms: RMS of the measured torque [N m or N]; of the spring's torque in link equations of joints without a sensor.
        error: RMS of the residual [N m or N]; NaN if a parameter of the equation is not identified.
    """

    equation: str
    rms: float
    error: float

    @property
    def nrmse(self) -> float:
        """Error as a share of the torque; NaN where there is none."""
        return self.error / self.rms if self.rms > 0.0 else np.nan


def compute_agreements(model: FlexibleModel, equations: Sequence[Equations], values: Array) -> tuple[Agreement, ...]:
    """Errors of equations under parameters, NaN where not identified, shape (p,)."""
    springs = np.concatenate([model.columns(SPRING, joint.name) for joint in model.joints])
    found = []
    for one in equations:
        rows = one.expand(len(values))
        left = rows[:, :-1][:, one.columns] @ values[one.columns] - rows[:, -1]
        torque, own = rows[:, -1], np.intersect1d(one.columns, springs)
        if not torque.any():
            torque = rows[:, own] @ values[own]
        root = np.sqrt(one.count)
        found.append(Agreement(one.name, float(np.linalg.norm(torque) / root), float(np.linalg.norm(left) / root)))
    return tuple(found)


def compute_overall(found: Sequence[Agreement], kind: str) -> float:
    """NRMSE of all equations of one kind (link, spring, motor) whose parameters are identified; NaN if none is."""
    known = [one for one in found if f": {kind} of " in one.equation and np.isfinite(one.error)]
    torque = np.linalg.norm([one.rms for one in known])
    return float(np.linalg.norm([one.error for one in known]) / torque) if torque > 0.0 else np.nan
