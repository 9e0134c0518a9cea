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

from robot_dyn_id.actuators.fit import LimbMotion, ParameterLayout
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import ARMATURE, COULOMB, DELAY, KD, KP, LIMIT, OFFSET, VISCOUS
from robot_dyn_id.signals.filtering import LowPass, derivative

DELAYS_S = (0.0, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1)
"""Delays from which the fit may start [s]; it ends at any."""

CUTOFF_HZ = 15.0
"""Cut-off of the low-pass that all columns pass [Hz], at most `CUTOFF_SHARE` of the sample rate."""

CUTOFF_SHARE = 0.15

EDGE = 4
"""Samples at both ends that are left out: derivatives are rough there."""

LIMIT_SHARES = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of the largest commanded effort at which a limit is tried."""

LEAST_GAIN = 0.01
"""Relative decrease of the square errors below which a limit is not worth another fit."""

LINEAR = (ARMATURE, VISCOUS, COULOMB, OFFSET, KP, KD)
"""Kinds of the columns."""


@dataclass(frozen=True)
class EffortRows:
    """Equations of the effort of one limb along a measured motion, low-passed, N samples of n joints.

    Attributes:
        links: torque of the rigid links [N m or N], shape (n, N).
        columns: torques per unit of each of `LINEAR`, positive where they oppose the drive, shape (6, n, N).
        drive: columns of the gains before the low-pass, shape (2, n, M).
        rate: their sample rate [Hz].
        low_pass: the low-pass.
    """

    links: Array
    columns: Array
    drive: Array
    rate: float
    low_pass: LowPass

    @classmethod
    def from_motion(cls, stretch: LimbMotion, motion: CommandedMotion, delay: Array) -> EffortRows:
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
        filtered = low_pass.apply(columns, rate)[:, :, EDGE:-EDGE]
        return cls(low_pass.apply(links, rate)[:, EDGE:-EDGE], filtered, columns[4:], rate, low_pass)

    def effort(self, actuators: ActuatorModel) -> tuple[Array, Array]:
        """Effort of the drives, and that which the motion takes by the model, shape (n, N) each."""
        parts = actuators.values[list(LINEAR)][:4, :, None] * self.columns[:4]
        return self.drive_effort(actuators.kp, actuators.kd, actuators.limit), self.links + parts.sum(axis=0)

    def drive_effort(self, kp: Array, kd: Array, limit: Array) -> Array:
        """Effort of the drives, low-passed, shape (n, N), of gains and limits of shape (n,)."""
        effort = -(kp[:, None] * self.drive[0] + kd[:, None] * self.drive[1])
        limited = np.clip(effort, -limit[:, None], limit[:, None])
        return self.low_pass.apply(limited, self.rate)[:, EDGE:-EDGE]


def _delay(t: Array, motion: CommandedMotion, joint: int, delay: float) -> Array:
    """Reference of a joint at times less a delay."""
    at, reference = motion.held
    number = np.clip(np.searchsorted(at, t - delay, side="right") - 1, 0, len(at) - 1)
    return np.asarray(reference[number, joint])


def find_start(stretches: Sequence[LimbMotion], known: ActuatorModel, layout: ParameterLayout) -> ActuatorModel:
    """Actuators to start from; limits that are estimated and seem not to be reached are infinite.

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
        values[LIMIT] = np.where(layout.index[LIMIT] >= 0, np.inf, values[LIMIT])
        try:
            total = 0.0
            for stretch in first.values():
                joints = stretch.joints
                total += _start_limb(stretch, values, joints, layout.index[:, joints] >= 0)
        except InputError as error:
            reason = error
            continue
        if best is None or total < best[0]:
            best = total, ActuatorModel.from_values(known.joint_names, values)
    if best is None:
        assert reason is not None
        raise reason
    return best[1]


def _start_limb(stretch: LimbMotion, values: Array, joints: Integers, estimated: Mask) -> float:
    """Replace the values of a limb that are estimated, in place; the sum of the logarithms of the square errors.

    A limit is proposed where it makes the linear errors smaller, and kept where it does so with those of a simulation.

    Raises:
        InputError: the simulation diverges.
    """
    rows = EffortRows.from_motion(stretch, stretch.motion, values[DELAY, joints])
    best = values[:, joints]
    residuals = [_solve_joint(rows, best, estimated, j) for j in range(len(joints))]
    total = _simulate(stretch, best)
    for j in np.flatnonzero(estimated[LIMIT]).tolist():
        limited = _propose_limit(rows, best, estimated, j, residuals[j])
        if limited is not None:
            other = _simulate(stretch, limited)
            if other < total:
                best, total = limited, other
    values[:, joints] = best
    return total


def _simulate(stretch: LimbMotion, values: Array) -> float:
    actuators = ActuatorModel.from_values(stretch.limb.joint_names, values)
    positions, _ = stretch.limb.simulate(actuators, stretch.motion)
    squares = np.mean((stretch.motion.q - positions) ** 2, axis=0)
    return float(np.log(np.maximum(squares, np.finfo(float).tiny)).sum())


def _propose_limit(rows: EffortRows, values: Array, estimated: Mask, j: int, residual: float) -> Array | None:
    """Values with the limit of a joint that has the smallest linear errors; None if it is not reached."""
    largest = float(np.abs(rows.drive_effort(values[KP], values[KD], values[LIMIT])[j]).max())
    best = None
    for share in LIMIT_SHARES:
        tried = values.copy()
        tried[LIMIT, j] = share * largest
        error = _solve_joint(rows, tried, estimated, j)
        if error < (1.0 - LEAST_GAIN) * residual:
            best, residual = tried, error
    return best


def _solve_joint(rows: EffortRows, values: Array, estimated: Mask, j: int) -> float:
    """Replace the linear values of a joint that are estimated by least squares, in place; the sum of square errors.

    With a finite limit gains are not estimated: the effort is not linear in them.
    """
    limited = np.isfinite(values[LIMIT, j])
    kinds = LINEAR[:4] if limited else LINEAR
    free = [place for place, kind in enumerate(kinds) if estimated[kind, j]]
    target = -rows.links[j]
    if limited:
        target = target + rows.drive_effort(values[KP], values[KD], values[LIMIT])[j]
    for place, kind in enumerate(kinds):
        if not estimated[kind, j]:
            target = target - values[kind, j] * rows.columns[place, j]
    matrix = rows.columns[free, j].T
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0.0] = 1.0
    lower = [-np.inf if LINEAR[place] == OFFSET else 0.0 for place in free]
    found = lsq_linear(matrix / norms, target, (lower, np.inf)).x / norms
    for place, value in zip(free, found, strict=True):
        values[LINEAR[place], j] = value if LINEAR[place] == OFFSET else max(value, 0.0)
    return float(np.sum((target - matrix @ found) ** 2))
