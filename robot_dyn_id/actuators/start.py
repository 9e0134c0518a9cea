# SPDX-License-Identifier: Apache-2.0
"""Linear start of the fit of actuators: least squares on the commanded effort, for several delays.

With measured motion the equation of a joint is linear in everything but the delay. Delay and armature are nearly
confounded in it; simulations under the commands alone choose the delay to start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from robot_dyn_id.actuators.fit import Layout, Stretch
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB, DELAY, KD, KP, OFFSET, VISCOUS
from robot_dyn_id.signals.filtering import LowPass, derivative

DELAYS_S = (0.0, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1)
"""Delays from which the fit may start [s]; it ends at any."""

CUTOFF_HZ = 15.0
"""Cut-off of the low-pass that all columns pass [Hz], at most `CUTOFF_SHARE` of the sample rate."""

CUTOFF_SHARE = 0.15

LINEAR = (ARMATURE, VISCOUS, COULOMB, OFFSET, KP, KD)
"""Kinds of the columns."""


@dataclass(frozen=True)
class EffortRows:
    """Equations of the effort of one limb along a measured motion, low-passed, N samples of n joints.

    Attributes:
        links: torque of the rigid links [N m or N], shape (n, N).
        columns: torques per unit of each of `LINEAR`, positive where they oppose the drive, shape (6, n, N); that of
            the gains for no delay of the reference.
    """

    links: Array
    columns: Array

    @classmethod
    def from_motion(cls, stretch: Stretch, motion: CommandedMotion, delay: Array) -> EffortRows:
        """Equations of a motion with the reference delayed.

        Args:
            stretch: the limb.
            motion: motion of its joints.
            delay: delay of the reference of each joint [s], shape (n,).
        """
        rate = 1.0 / motion.period
        low_pass = LowPass(min(CUTOFF_HZ, CUTOFF_SHARE * rate), 2)
        even = motion.t[0] + np.arange(int((motion.t[-1] - motion.t[0]) * rate + 1e-6) + 1) / rate
        q = np.ascontiguousarray([np.interp(even, motion.t, column) for column in motion.q.T])
        reference = np.stack([_delay(even, motion, j, float(delay[j])) for j in range(len(q))])
        smooth = low_pass.apply(q, rate)
        dq = derivative(smooth, rate)
        ddq = derivative(dq, rate)
        links = stretch.limb.inverse_dynamics(smooth, dq, ddq)
        gain = q - reference  # of the measured position, as the drive computes it
        columns = np.stack([ddq, dq, np.sign(dq), np.ones_like(q), gain, np.gradient(q, 1.0 / rate, axis=1)])
        kept = slice(4, q.shape[1] - 4)
        return cls(low_pass.apply(links, rate)[:, kept], low_pass.apply(columns, rate)[:, :, kept])

    def effort(self, actuators: ActuatorModel) -> tuple[Array, Array]:
        """Commanded effort, and that which the motion takes by the model, shape (n, N) each; no limit is applied."""
        values = actuators.values[list(LINEAR)][:, :, None]
        parts = values * self.columns
        return -parts[4:].sum(axis=0), self.links + parts[:4].sum(axis=0)


def _delay(t: Array, motion: CommandedMotion, joint: int, delay: float) -> Array:
    """Reference of a joint at times less a delay."""
    number = np.clip(np.searchsorted(motion.t, t - delay, side="right") - 1, 0, len(motion.t) - 1)
    return np.asarray(motion.reference[number, joint])


def find_start(stretches: Sequence[Stretch], known: ActuatorModel, layout: Layout) -> ActuatorModel:
    """Actuators to start from.

    Args:
        stretches: windows of motions.
        known: known values; those that are estimated have no effect.
        layout: parameters; the start has a value of its own for each joint.

    Raises:
        InputError: the simulation diverges for all delays.
    """
    first = {stretch.limb.joint_names: stretch for stretch in reversed(stretches)}
    best: tuple[float, ActuatorModel] | None = None
    reason: InputError | None = None
    for delay in DELAYS_S if np.any(layout.index[DELAY] >= 0) else (0.0,):
        values = known.values
        values[DELAY] = np.where(layout.index[DELAY] >= 0, delay, values[DELAY])
        squares = np.zeros(values.shape[1])
        try:
            for stretch in first.values():
                joints = stretch.joints
                values[:, joints] = _solve(stretch, values[:, joints], layout.index[:, joints] >= 0)
                actuators = ActuatorModel.from_values(stretch.limb.joint_names, values[:, joints])
                positions, _ = stretch.limb.simulate(actuators, stretch.motion)
                squares[joints] = np.mean((stretch.motion.q - positions) ** 2, axis=0)
        except InputError as error:
            reason = error
            continue
        total = float(np.log(np.maximum(squares, np.finfo(float).tiny)).sum())
        if best is None or total < best[0]:
            best = total, ActuatorModel.from_values(known.joint_names, values)
    if best is None:
        assert reason is not None
        raise reason
    return best[1]


def _solve(stretch: Stretch, values: Array, estimated: Mask) -> Array:
    """Values of a limb with those that are estimated replaced by least squares, shape (8, n)."""
    rows = EffortRows.from_motion(stretch, stretch.motion, values[DELAY])
    values = values.copy()
    for j in range(values.shape[1]):
        free = [place for place, kind in enumerate(LINEAR) if estimated[kind, j]]
        given = sum(
            (values[kind, j] * rows.columns[place, j] for place, kind in enumerate(LINEAR) if not estimated[kind, j]),
            np.zeros(rows.links.shape[1]),
        )
        matrix, target = rows.columns[free, j].T, -rows.links[j] - given
        norms = np.linalg.norm(matrix, axis=0)
        norms[norms == 0.0] = 1.0
        lower = [-np.inf if LINEAR[place] == OFFSET else 0.0 for place in free]
        found = lsq_linear(matrix / norms, target, (lower, np.inf)).x / norms
        for place, value in zip(free, found, strict=True):
            values[LINEAR[place], j] = value if LINEAR[place] == OFFSET else max(value, 0.0)
    return values
