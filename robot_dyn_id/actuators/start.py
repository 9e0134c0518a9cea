# SPDX-License-Identifier: Apache-2.0
"""Linear start of the fit of actuators: least squares on the commanded effort, for several delays.

With measured motion the equation of a joint is linear in everything but the delay and the times at which the drive is
at its limit: given these, the limit is linear too. Delay and armature are nearly confounded in it; simulations under
the commands alone choose the delay to start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.interpolate import CubicSpline

from robot_dyn_id.actuators.fit import InitialState, LimbMotion
from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.actuators.model import SIGNED, ActuatorModel
from robot_dyn_id.actuators.motion import SHORT_WINDOW_S, CommandedMotion
from robot_dyn_id.actuators.rollout import Limb
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.identification.selection.engine import LEAST_GAIN
from robot_dyn_id.kernels.actuators import (
    ARMATURE,
    BREAKAWAY,
    COULOMB,
    DELAY,
    KD,
    KINDS,
    KP,
    LIMIT,
    LOAD_COULOMB,
    OFFSET,
    VISCOUS,
)
from robot_dyn_id.kernels.presliding import slide
from robot_dyn_id.signals.filtering import STENCIL, LowPass, derivative

DELAYS_S = (0.0, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1)
"""Delays from which the fit may start [s]; it ends at any."""

CUTOFF_HZ = 15.0
"""Cut-off of the low-pass that all columns pass [Hz], at most `CUTOFF_SHARE` of the sample rate."""

CUTOFF_SHARE = 0.15

LONGEST_PERIOD_S = 5e-3
"""Longest sample period of the equations [s]: slower recordings are interpolated. The reference changes at known times
in between."""

THRESHOLDS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of the largest commanded effort from which on a drive is first taken to be at its limit."""

PASSES = 3
"""Solutions of the linear equations from each threshold, each with the times at the limit of the one before."""

MECHANICAL = (ARMATURE, VISCOUS, COULOMB, OFFSET)
"""Terms of every joint."""

TERMS = (*MECHANICAL, LOAD_COULOMB)
"""Terms that joints may have."""

LINEAR = (*TERMS, KP, KD, LIMIT)
"""Kinds of the columns."""


@dataclass(frozen=True)
class EffortRows:
    """Equations of the effort of one limb along a measured motion, low-passed, N samples of n joints.

    Attributes:
        motion: low-passed positions, velocities and accelerations, shape (n, N) each.
        links: torque of the rigid links [N m or N], shape (n, N).
        columns: torques per unit of each of `TERMS`, positive where they oppose the drive, shape (5, n, N).
        q, dq: positions and velocities that the drive gets, without the low-pass, shape (n, M).
        reference: mean reference around each sample, shape (n, M).
        t: times of these [s], shape (M,).
        low_pass: the low-pass, which all terms pass once: where it attenuates, it does so with both sides.
        edge: samples at both ends that are left out: derivatives are rough there.
    """

    motion: tuple[Array, Array, Array]
    links: Array
    columns: Array
    q: Array
    dq: Array
    reference: Array
    t: Array
    low_pass: LowPass
    edge: int

    @classmethod
    def from_motion(cls, limb: Limb, motion: CommandedMotion, known: Array) -> EffortRows:
        """Equations of a motion.

        Args:
            limb: the links.
            motion: motion of its joints.
            known: values of the actuators, of which delays and breakaway displacements are used, shape (14, n).
        """
        finer = max(1, int(np.ceil(motion.period / LONGEST_PERIOD_S - 1e-9)))
        rate = finer / motion.period
        low_pass = LowPass(min(CUTOFF_HZ, CUTOFF_SHARE / motion.period), 2)
        t = motion.t[0] + np.arange(int((motion.t[-1] - motion.t[0]) * rate + 1e-6) + 1) / rate
        q = np.ascontiguousarray(CubicSpline(motion.t, motion.q)(t).T)
        smooth = low_pass.apply(q, rate)
        dq = derivative(smooth, rate)
        ddq = derivative(dq, rate)
        edge = finer * len(STENCIL)
        inner = slice(edge, len(t) - edge)
        friction, load = find_directions(smooth, dq, known[BREAKAWAY]), limb.inverse_dynamics(smooth, dq, 0.0 * ddq)
        dry, loaded = low_pass.apply(friction, rate), low_pass.apply(np.abs(load) * friction, rate)
        columns = np.stack([ddq, dq, dry, np.ones_like(q), loaded])[:, :, inner]
        links = limb.inverse_dynamics(smooth, dq, ddq)[:, inner]
        motion_rows = smooth[:, inner], dq[:, inner], ddq[:, inner]
        rows = cls(motion_rows, links, columns, q, np.gradient(q, 1.0 / rate, axis=1), q, t, low_pass, edge)
        return rows.delayed(motion, known[DELAY])

    def delayed(self, motion: CommandedMotion, delay: Array) -> EffortRows:
        """The same with another delay of the reference of each joint [s], shape (n,)."""
        at, held = motion.held
        half = 0.5 * (self.t[1] - self.t[0])
        ends = np.array([self.t[0] - half - delay.max(initial=0.0) - 1.0, self.t[-1] + half + 1.0])
        knots = np.concatenate([[min(ends[0], at[0] - 1.0)], at, [max(ends[1], at[-1] + 1.0)]])
        levels = np.concatenate([held[:1], held])  # the first one also holds before it
        total = np.concatenate([np.zeros((1, held.shape[1])), np.cumsum(np.diff(knots)[:, None] * levels, axis=0)])
        reference = [
            np.interp(self.t + half - late, knots, column) - np.interp(self.t - half - late, knots, column)
            for late, column in zip(delay.tolist(), total.T, strict=True)
        ]
        return replace(self, reference=np.array(reference) / (2.0 * half))

    def effort(self, actuators: ActuatorModel) -> tuple[Array, Array]:
        """Effort of the drives, and that which the motion takes by the model, shape (n, N) each."""
        parts = actuators.values[list(TERMS)][:, :, None] * self.columns
        drives = [self.drive_effort(j, values) for j, values in enumerate(actuators.values.T)]
        return np.array(drives), self.links + parts.sum(axis=0)

    def commanded(self, j: int, values: Array) -> Array:
        """Effort that the drive of a joint commands, were it not limited, without the low-pass, shape (M,)."""
        return np.asarray(values[KP] * (self.reference[j] - self.q[j]) - values[KD] * self.dq[j])

    def drive_effort(self, j: int, values: Array) -> Array:
        """Effort of the drive of a joint, low-passed, shape (N,); values of shape (14,)."""
        return self.smooth(np.clip(self.commanded(j, values), -values[LIMIT], values[LIMIT]))

    def sample(self, motion: CommandedMotion, mask: Mask) -> Mask:
        """Whether a mask of the samples of a motion, shape (M, n), holds at the equations or within an edge, (n, N)."""
        holds = np.array([np.interp(self.t, motion.t, column) > 0.0 for column in mask.T.astype(float)])
        around = sliding_window_view(holds, 2 * self.edge + 1, axis=1)
        return np.asarray(around.any(axis=-1))

    def smooth(self, values: Array) -> Array:
        """Low-passed values without the edges; the last axis is time."""
        rate = 1.0 / (self.t[1] - self.t[0])
        return self.low_pass.apply(values, rate)[..., self.edge : len(self.t) - self.edge]


def find_directions(q: Array, dq: Array, displacement: Array) -> Array:
    """Direction of the friction of joints, the state of those with a breakaway displacement, shape (n, N).

    Args:
        q: positions [rad or m], shape (n, N).
        dq: velocities [rad/s or m/s], shape (n, N).
        displacement: breakaway displacements [rad or m], 0 for none, shape (n,).
    """
    directions, elastic = np.sign(dq), displacement > 0.0
    if elastic.any():
        states = np.ascontiguousarray(directions[elastic].T)
        slide(np.diff(q[elastic], axis=1, prepend=q[elastic, :1]).T.copy(), displacement[elastic], states)
        directions[elastic] = states.T
    return np.asarray(directions)


def find_start(stretches: Sequence[LimbMotion], known: ActuatorModel, layout: ParameterLayout) -> ActuatorModel:
    """Actuators to start from; limits that are estimated and seem not to be reached are infinite.

    Of each limb the stretch is used in which it follows its commands worst: limits are reached there.

    Args:
        stretches: windows of motions.
        known: known values; those that are estimated have no effect.
        layout: parameters; the start has a value of its own for each joint.
    """
    worst: dict[tuple[str, ...], LimbMotion] = {}
    for stretch in sorted(stretches, key=_tracking_error):
        worst[stretch.limb.joint_names] = stretch
    rows = {
        names: EffortRows.from_motion(one.limb, one.motion, known.values[:, one.joints]) for names, one in worst.items()
    }

    def start_from(delay: float) -> tuple[float, Array]:
        values = known.values
        values[DELAY] = np.where(layout.index[DELAY] >= 0, delay, values[DELAY])
        values[LIMIT] = np.where(layout.index[LIMIT] >= 0, np.inf, values[LIMIT])
        total = 0.0
        for names, stretch in worst.items():
            joints = stretch.joints
            own = rows[names].delayed(stretch.motion, values[DELAY, joints])
            values[:, joints] = solve_limb(own, values[:, joints], layout.index[:, joints] >= 0)
            try:
                total += _simulate(stretch, values[:, joints])
            except InputError:  # the simulation has diverged
                total = np.inf
        return total, values

    delays = DELAYS_S if np.any(layout.index[DELAY] >= 0) else (0.0,)
    with closing(map_in_order(start_from, delays)) as results:
        _, values = min(results, key=lambda one: one[0])
    return ActuatorModel.from_values(known.joint_names, values)


def _tracking_error(stretch: LimbMotion) -> float:
    return float(np.mean((stretch.motion.reference - stretch.motion.q) ** 2))


def _simulate(stretch: LimbMotion, values: Array) -> float:
    """Sum over the joints of the logarithms of the square errors of short simulations."""
    actuators = ActuatorModel.from_values(stretch.limb.joint_names, values)
    squares = []
    for window in stretch.motion.windows(SHORT_WINDOW_S):
        state = InitialState.from_motion(window)
        positions, _ = state.simulate(stretch.limb, actuators, window)
        squares.append(np.mean((window.q - positions) ** 2, axis=0))
    return float(np.log(np.maximum(np.mean(squares, axis=0), np.finfo(float).tiny)).sum())


def solve_limb(rows: EffortRows, values: Array, estimated: Mask) -> Array:
    """Values of the joints of a limb with those that are estimated by least squares, shape (14, n).

    Args:
        rows: equations.
        values: known values, shape (14, n).
        estimated: those that are estimated, shape (14, n).
    """
    return np.stack([_solve_joint(rows, values[:, j], estimated[:, j], j) for j in range(values.shape[1])], axis=1)


def _solve_joint(rows: EffortRows, values: Array, estimated: Mask, j: int) -> Array:
    """Values of a joint: with the limit of the smallest errors, if it removes `LEAST_GAIN` of them."""
    free = _solve_linear(rows, values, estimated, j, np.zeros(len(rows.t)))
    if np.isinf(values[LIMIT]) and not estimated[LIMIT]:
        return free
    largest = float(np.abs(rows.commanded(j, free)).max())
    candidates, solved = [], dict[bytes, Array]()
    for threshold in [share * largest for share in THRESHOLDS] if estimated[LIMIT] else [float(values[LIMIT])]:
        found, level = free, threshold
        for _ in range(PASSES):
            commanded = rows.commanded(j, found)
            limited = np.sign(commanded) * (np.abs(commanded) > level)
            times = limited.astype(np.int8).tobytes()
            if times not in solved:  # thresholds lead to the same times at the limit
                solved[times] = _solve_linear(rows, values, estimated, j, limited)
            found = solved[times]
            level = found[LIMIT]
        candidates.append(found)
    shares = [_compute_share(rows, one, j) for one in candidates]
    best = int(np.argmin(shares))
    required = LEAST_GAIN if estimated[LIMIT] else 0.0
    return candidates[best] if shares[best] < (1.0 - required) * _compute_share(rows, free, j) else free


def _solve_linear(rows: EffortRows, values: Array, estimated: Mask, j: int, limited: Array) -> Array:
    """Values of a joint by least squares, shape (14,), given when its drive is at its limit: -1 or 1, else 0."""
    inside = limited == 0.0
    drive = rows.smooth(np.stack([(rows.q[j] - rows.reference[j]) * inside, rows.dq[j] * inside, -limited]))
    columns = np.concatenate([rows.columns[:, j], drive])
    found, target = values.copy(), -rows.links[j]
    used = set(LINEAR)
    if not limited.any():
        found[LIMIT] = np.inf if estimated[LIMIT] else values[LIMIT]
        used.remove(LIMIT)
        if estimated[KD]:  # viscous friction has the same effect
            found[VISCOUS] = 0.0
            used.remove(VISCOUS)
    for place, kind in enumerate(LINEAR):
        if kind in used and not estimated[kind]:
            target = target - values[kind] * columns[place]
    free = [kind for kind in LINEAR if kind in used and estimated[kind]]
    matrix = columns[[LINEAR.index(kind) for kind in free]]
    bounded = np.array([KINDS[kind] not in SIGNED for kind in free], dtype=bool)
    found[free] = solve_bounded(matrix @ matrix.T, matrix @ target, bounded)
    return found


def _compute_share(rows: EffortRows, values: Array, j: int) -> float:
    """Square errors of the effort of a joint, as a share of the effort: a limit near zero leaves hardly any of both."""
    effort = rows.drive_effort(j, values)
    error = effort - rows.links[j] - values[list(TERMS)] @ rows.columns[:, j]
    return float(np.sum(error**2) / np.sum(effort**2)) if effort.any() else np.inf
