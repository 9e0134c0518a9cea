# SPDX-License-Identifier: Apache-2.0
"""Output-error fit of the actuators of one limb: simulated positions under position commands against measured ones.

Gauss-Newton with the derivatives of the simulation. Each window of a recording is simulated as a whole from an initial
state that is estimated too (multiple shooting without the condition that windows join). Joints are weighted by the
errors that remain; the only bounds are those of physics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.actuators.model import SIGNED, ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import Limb
from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.non_negative import solve_bounded
from robot_dyn_id.kernels.actuators import KINDS

MAX_STEPS = 40
"""Largest number of Gauss-Newton steps; 5 to 10 are usual."""

CONVERGED = 1e-5
"""Relative decrease of the errors that ends the iteration; 95 % intervals correspond to changes that are larger by
orders of magnitude."""

DAMPINGS = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Additions to the diagonal of the normal matrix, relative to it, that are tried until a step reduces the errors."""

START_SAMPLES = 5
"""Number of samples from which the initial velocity of a window is computed."""


@dataclass(frozen=True)
class InitialState:
    """State at the beginning of a window.

    Attributes:
        q: positions [rad or m], shape (n,).
        v: velocities [rad/s or m/s], shape (n,).
    """

    q: Array
    v: Array

    @classmethod
    def from_motion(cls, motion: CommandedMotion) -> InitialState:
        """The first samples of a motion."""
        count = min(START_SAMPLES, len(motion.t))
        slope = np.polyfit(motion.t[:count] - motion.t[0], motion.q[:count], 1)[0]
        return cls(motion.q[0].copy(), slope)


@dataclass(frozen=True)
class LimbState:
    """Actuators of a limb, and the initial states of the windows.

    Attributes:
        actuators: the actuators.
        initial: initial states, one per window.
    """

    actuators: ActuatorModel
    initial: tuple[InitialState, ...]

    def changed(self, columns: Integers, step: Array, initial: Sequence[Array]) -> LimbState:
        """The state after a step of the parameters `columns`, shape (p,), and of each initial state, shape (2 n,)."""
        values, n = self.actuators.values, len(self.actuators.joint_names)
        flat = values.reshape(-1)
        flat[columns] += step
        signed = np.repeat([kind == SIGNED for kind in KINDS], n)
        flat[~signed] = np.maximum(flat[~signed], 0.0)
        return LimbState(
            ActuatorModel.from_values(self.actuators.joint_names, values),
            tuple(
                InitialState(one.q + change[:n], one.v + change[n:])
                for one, change in zip(self.initial, initial, strict=True)
            ),
        )


@dataclass(frozen=True)
class LimbFit:
    """Fitted actuators of a limb.

    Attributes:
        limb: the links.
        state: actuators and initial states.
        columns: numbers of the p fitted parameters, n kind + joint.
        weights: inverse of the mean square errors of the joints, shape (n,).
        errors: RMS of the position errors of the joints [rad or m], shape (n,).
        normal: normal matrix of the parameters, initial states eliminated, shape (p, p).
        gradient: of the weighted errors, shape (p,); zero but for parameters at their bound.
        scores: sums over blocks of what each sample adds to the gradient, shape (blocks, p).
        recordings: number of the recording of each block, shape (blocks,).
        limited: share of the time in which each joint's effort is at its limit, shape (n,).
        steps: number of Gauss-Newton steps.
    """

    limb: Limb
    state: LimbState
    columns: Integers
    weights: Array
    errors: Array
    normal: Array
    gradient: Array
    scores: Array
    recordings: Integers
    limited: Array
    steps: int


@dataclass(frozen=True)
class _Window:
    """Errors of a window and their derivatives.

    Attributes:
        error: measured less simulated positions, shape (N, n).
        slopes: derivatives of the simulated positions, shape (N, n, p + 2 n); empty without.
        limited: see `LimbFit`.
    """

    error: Array
    slopes: Array
    limited: Array


def fit_limb(
    limb: Limb,
    motions: Sequence[CommandedMotion],
    start: ActuatorModel,
    columns: Integers,
    block: float,
) -> LimbFit:
    """Fit the actuators of one limb.

    Args:
        limb: the links.
        motions: windows of its motions.
        start: actuators to start from.
        columns: numbers of the parameters that are fitted, n kind + joint.
        block: length of the blocks of scores [s].

    Raises:
        InputError: the simulation diverges from the start.
    """
    state = LimbState(start, tuple(InitialState.from_motion(motion) for motion in motions))
    windows = _simulate(limb, motions, state, columns)
    squares, count = _sum_squares(windows), sum(len(one.error) for one in windows)
    steps = 0
    while steps < MAX_STEPS:
        steps += 1
        weights = count / np.maximum(squares, np.finfo(float).tiny)
        accepted = None
        for damping in DAMPINGS:
            candidate = state.changed(columns, *_step(state, windows, columns, weights, damping))
            try:
                errors = _sum_squares(_simulate(limb, motions, candidate, None))
            except InputError:
                continue
            if np.log(errors / squares).sum() < 0.0:
                accepted = candidate
                break
        if accepted is None:
            break
        gain = -np.log(errors / squares).mean()
        state, squares = accepted, errors
        windows = _simulate(limb, motions, state, columns)
        if gain < CONVERGED:
            break
    return _conclude(limb, motions, state, columns, windows, squares / count, block, steps)


def _simulate(
    limb: Limb, motions: Sequence[CommandedMotion], state: LimbState, columns: Integers | None
) -> list[_Window]:
    """Simulate all windows, with derivatives by `columns` unless they are None."""
    windows = []
    for motion, initial in zip(motions, state.initial, strict=True):
        positions, rollout = limb.simulate(state.actuators, motion, initial.q, initial.v)
        slopes = np.empty(0) if columns is None else rollout.differentiate(columns)
        windows.append(_Window(motion.q - positions, slopes, rollout.limited))
    return windows


def _sum_squares(windows: Sequence[_Window]) -> Array:
    return np.asarray(np.sum([np.sum(window.error**2, axis=0) for window in windows], axis=0))


def _step(
    state: LimbState, windows: Sequence[_Window], columns: Integers, weights: Array, damping: float
) -> tuple[Array, list[Array]]:
    """Gauss-Newton step of the parameters, and of the initial state of each window."""
    n, p = len(weights), len(columns)
    normal, gradient = np.zeros((p, p)), np.zeros(p)
    parts = []
    for window in windows:
        part = _Eliminated.from_window(window, weights, p)
        parts.append(part)
        normal += part.normal
        gradient += part.gradient
    diagonal = np.diag(normal)
    ridge = 1e-12 * diagonal.max(initial=0.0)
    damped = normal + np.diag(damping * diagonal + ridge)
    now = state.actuators.values.reshape(-1)[columns]
    bounded = np.array([KINDS[column // n] != SIGNED for column in columns], dtype=bool)
    step = solve_bounded(damped, gradient + damped @ now, bounded) - now
    return step, [part.back(step) for part in parts]


@dataclass(frozen=True)
class _Eliminated:
    """Normal equations of a window without its initial state.

    Attributes:
        normal: shape (p, p).
        gradient: shape (p,).
        initial: initial state at the present parameters, less the present one, shape (2 n,).
        share: what a change of the parameters takes from it, shape (2 n, p).
    """

    normal: Array
    gradient: Array
    initial: Array
    share: Array

    @classmethod
    def from_window(cls, window: _Window, weights: Array, p: int) -> _Eliminated:
        root = np.sqrt(weights)
        rows = (window.slopes * root[None, :, None]).reshape(-1, window.slopes.shape[2])
        error = (window.error * root).reshape(-1)
        own, shared = rows[:, p:], rows[:, :p]
        matrix = own.T @ own
        # the first sample alone is as good as any: without it a joint that sticks has no initial velocity
        matrix += np.diag(1e-9 * np.diag(matrix).max() + np.zeros(len(matrix)))
        cross = own.T @ shared
        share, initial = np.linalg.solve(matrix, cross), np.linalg.solve(matrix, own.T @ error)
        return cls(shared.T @ shared - cross.T @ share, shared.T @ error - cross.T @ initial, initial, share)

    def back(self, step: Array) -> Array:
        """Step of the initial state."""
        return np.asarray(self.initial - self.share @ step)


def _conclude(
    limb: Limb,
    motions: Sequence[CommandedMotion],
    state: LimbState,
    columns: Integers,
    windows: Sequence[_Window],
    variances: Array,
    block: float,
    steps: int,
) -> LimbFit:
    weights, p = 1.0 / np.maximum(variances, np.finfo(float).tiny), len(columns)
    normal, gradient, scores, numbers = np.zeros((p, p)), np.zeros(p), [], []
    sources = list(dict.fromkeys(motion.source for motion in motions))
    for motion, window in zip(motions, windows, strict=True):
        part = _Eliminated.from_window(window, weights, p)
        normal += part.normal
        gradient += part.gradient
        projected = window.slopes[:, :, :p] - window.slopes[:, :, p:] @ part.share
        samples = np.einsum("kjp,kj,j->kp", projected, window.error, weights)
        count = max(1, round((motion.t[-1] - motion.t[0]) / block))
        ends = np.linspace(0, len(samples), count + 1).astype(int)[:-1]
        scores.append(np.add.reduceat(samples, ends, axis=0))
        numbers += [sources.index(motion.source)] * count
    durations = np.array([len(motion.t) for motion in motions], dtype=np.float64)
    limited = np.average([window.limited for window in windows], axis=0, weights=durations)
    return LimbFit(
        limb,
        state,
        columns,
        weights,
        np.sqrt(variances),
        normal,
        gradient,
        np.concatenate(scores),
        np.array(numbers),
        limited,
        steps,
    )
