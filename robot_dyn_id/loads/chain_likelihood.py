# SPDX-License-Identifier: Apache-2.0
"""Inertias of a chain whose motion is measured with errors too: the greatest likelihood of all signals at once.

`identify_chain` takes the motion of each body as it is measured. Here positions, velocities and accelerations of the
joints are unknown at every sample beside the inertias; the motions of all bodies tell them, which the chain holds
together, and so do the wrenches. Gauss-Newton steps eliminate them sample by sample, which leaves the information on
the inertias (a Schur complement). The covariance is that of the samples' scores between two of its inverses, so that
it holds for noise of another size than was given. What products of errors add it does not see, and with unknowns at
every sample that does not vanish however many samples there are (Neyman and Scott 1948): the noise must be small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares
from robot_dyn_id.loads.chain import CENTROIDAL, ChainBody, simulated_chain
from robot_dyn_id.loads.chain_estimate import ChainEstimate, Shown, chain_problem, excited
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.model.robot import RobotModel

STEPS = 3
"""Of Gauss and Newton; the first is from a motion that is already within its errors."""

DIFFERENCE = 1e-6
"""Of joint positions, velocities and accelerations, for slopes [rad, rad/s, rad/s^2, or m]."""


BLIND = 1e13
"""Condition number of what is told of a state from which on part of it is rounding."""


@dataclass(frozen=True)
class Reading:
    """What is measured of one body, N samples, every error independent of the others.

    Attributes:
        motion: signals of its motion, shape (k, N).
        deviations: one sigma of each, shape (k,); infinite where a signal is not to count.
        wrench: at its inner hinge, see `ChainBody`, shape (6, N).
        noise: one sigma of the moment and of the force [N m, N], shape (2,).
    """

    motion: Array
    deviations: Array
    wrench: Array
    noise: Array

    def __post_init__(self) -> None:
        """Check the sizes of the noise.

        Raises:
            UsageError: a standard deviation that is not positive.
        """
        if not (np.all(self.deviations > 0.0) and np.all(self.noise > 0.0)):
            raise UsageError("standard deviations of a reading must be positive; infinite for what is not to count")


Observed = Callable[[int, ChainBody], Array]
"""What the signals of a body's motion are if it moves so: from its number and motion, shape (k, samples)."""


def identify_moving_chain(
    model: RobotModel,
    frames: Sequence[Placement],
    readings: Sequence[Reading],
    observed: Observed,
    start: Motion,
    columns: Sequence[int] = CENTROIDAL,
    precision: float = 1e-6,
) -> ChainEstimate:
    """Inertial parameters of every body of a robot from noisy motions and the wrenches of all hinges.

    Args:
        model: the robot, of which only the kinematics and gravity count.
        frames: of each body.
        readings: of each body.
        observed: what they would be without noise.
        start: motion of the joints, near the real one: what encoders say, or `chain.joint_motion`.
        columns: see `identify_chain`.
        precision: see `identify_chain`.

    Raises:
        InputError: the motion of a joint is not told at some sample; see also `identify_chain`, `simulated_chain`.
    """
    noise = np.array([reading.noise for reading in readings])
    motion, state, gravity = start, np.concatenate([start.q, start.dq, start.ddq]), tuple(model.gravity)
    bodies = _measured(model, frames, readings, motion)
    shown = excited(bodies, gravity, columns, precision)
    found = OrdinaryLeastSquares().fit(chain_problem(bodies, noise, 1.0, gravity, columns, shown)).values
    for _ in range(STEPS):
        bodies = _measured(model, frames, readings, motion)
        rows = _rows(chain_problem(bodies, noise, 1.0, gravity, columns, shown))
        error, slopes = _around(model, frames, readings, observed, state, _inertias(found, columns, shown))
        told = np.einsum("ksn,ktn->nst", slopes, slopes)
        wrenches = slopes[-len(rows) :]
        both = np.einsum("ksn,kpn->nsp", wrenches, rows)
        right = np.einsum("ksn,kn->ns", slopes, error)
        if np.linalg.cond(told).max() > BLIND:
            raise InputError("the signals do not tell the motion of all joints: measure more, or see `identify_chain`")
        solved = np.linalg.solve(told, np.concatenate([both, right[:, :, None]], axis=2))
        information = np.einsum("kpn,kqn->pq", rows, rows) - np.einsum("nsp,nsq->pq", both, solved[:, :, :-1])
        scores = np.einsum("kpn,kn->np", rows, error[-len(rows) :]) - np.einsum("nsp,ns->np", both, solved[:, :, -1])
        step = np.linalg.solve(information, scores.sum(axis=0))
        found = found + step
        state = state + (solved[:, :, -1] - solved[:, :, :-1] @ step).T
        motion = Motion(*np.split(state, 3))
    spread = np.linalg.solve(information, (scores - scores.mean(axis=0)).T)
    return ChainEstimate.of(columns, shown, found, spread @ spread.T)


def _measured(
    model: RobotModel, frames: Sequence[Placement], readings: Sequence[Reading], motion: Motion
) -> list[ChainBody]:
    """The chain moved so, with the wrenches that were measured."""
    moved = simulated_chain(model, motion, frames)
    return [replace(body, wrench=reading.wrench) for body, reading in zip(moved, readings, strict=True)]


def _rows(problem: LinearProblem) -> Array:
    """Slopes of all wrenches over their noise with respect to the parameters, shape (6 n, p, N)."""
    tiles = list(problem.tiles())
    rows = np.zeros((len(tiles), len(problem.names), tiles[0].block.shape[1]))
    for tile in tiles:
        rows[tile.joint, problem.supports[tile.joint]] = tile.block[:-1]
    return rows


def _inertias(found: Array, columns: Sequence[int], shown: Sequence[Shown]) -> Array:
    """`INERTIAL_SYMBOLS` of all bodies, shape (n, 10), from what was found along the directions that are shown."""
    inertias, first = np.zeros((len(shown), 10)), 0
    for own, (directions, _) in zip(inertias, shown, strict=True):
        own[list(columns)] = directions @ found[first : (first := first + directions.shape[1])]
    return inertias


def _around(
    model: RobotModel,
    frames: Sequence[Placement],
    readings: Sequence[Reading],
    observed: Observed,
    state: Array,
    inertias: Array,
) -> tuple[Array, Array]:
    """Errors of all signals over their noise, motions first, (m, N), and slopes of the signals by the state, (m, s, N).

    All states beside the present one are worked on at once, one sample of them behind the other.
    """
    size, samples = state.shape
    beside = np.repeat(state[:, None], size + 1, axis=1)
    beside[np.arange(size), np.arange(size) + 1] += DIFFERENCE
    moved = simulated_chain(model, Motion(*np.split(beside.reshape(size, -1), 3)), frames, inertias)
    motions: list[Array] = []
    wrenches: list[Array] = []
    for number, (body, reading) in enumerate(zip(moved, readings, strict=True)):
        for values, measured, deviations, kept in (
            (observed(number, body), reading.motion, reading.deviations, motions),
            (body.wrench, reading.wrench, np.repeat(reading.noise, 3), wrenches),
        ):
            kept.append((measured[:, None] - values.reshape(len(values), -1, samples)) / deviations[:, None, None])
    errors = np.concatenate([*motions, *wrenches])
    return errors[:, 0], (errors[:, :1] - errors[:, 1:]) / DIFFERENCE
