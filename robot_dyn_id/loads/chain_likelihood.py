# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood estimation of the inertias of a chain whose motion is measured with errors too.

`identify_chain` takes the motion of each body as it is measured. Here positions, velocities and accelerations of the
joints are unknown at every sample in addition to the inertias; the motions of all bodies, which the chain couples, and
the wrenches determine them. Gauss-Newton steps eliminate them sample by sample, which leaves the information on the
inertias (a Schur complement). The covariance is that of the samples' scores between two of its inverses (sandwich), so
that it also holds for noise of another size than given. Products of errors are neglected; with unknowns at every sample
their bias does not vanish with the number of samples (Neyman and Scott 1948): the noise must be small.
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
from robot_dyn_id.loads.chain import CENTROIDAL, ChainBody, simulate_chain
from robot_dyn_id.loads.chain_estimate import ChainEstimate, Excitation, find_excitations, make_chain_problem
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.model.robot import RobotModel

GAUSS_NEWTON_STEPS = 3
"""Number of Gauss-Newton steps; the start is already within the errors of the motion."""

DIFFERENCE = 1e-6
"""Step of joint positions, velocities and accelerations for numerical derivatives [rad, rad/s, rad/s^2, or m]."""

MAX_CONDITION_NUMBER = 1e13
"""Condition number of the information on a state above which part of it is rounding."""


@dataclass(frozen=True)
class Reading:
    """Measured signals of one body, N samples, with independent errors.

    Attributes:
        frame: frame of the body, in which its inertia is given.
        motion: signals of the body's motion, shape (k, N).
        deviations: standard deviation of each signal, shape (k,); inf for a signal that is not used.
        wrench: wrench of the inner hinge, see `ChainBody`, shape (6, N).
        noise: standard deviations of the moment and of the force [N m, N], shape (2,).
    """

    frame: Placement
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
            raise UsageError("standard deviations of a reading must be positive; inf for a signal that is not used")


Observation = Callable[[int, ChainBody], Array]
"""Sensor model: the exact signals, shape (k, samples), of a body of this number that moves so."""


def identify_moving_chain(
    model: RobotModel,
    readings: Sequence[Reading],
    observed: Observation,
    start: Motion,
    columns: Sequence[int] = CENTROIDAL,
    precision: float = 1e-6,
) -> ChainEstimate:
    """Inertial parameters of every body of a robot from noisy motions and the wrenches of all hinges.

    Args:
        model: the robot, of which only kinematics and gravity are used.
        readings: measured signals of each body.
        observed: sensor model of the motion signals.
        start: initial motion of the joints, from encoders or `chain.find_joint_motion`.
        columns: see `identify_chain`.
        precision: see `identify_chain`.

    Raises:
        InputError: the motion of a joint is not determined at some sample; see also `identify_chain`, `simulate_chain`.
    """
    noise = np.array([reading.noise for reading in readings])
    motion, gravity = start, tuple(model.gravity)
    state = np.concatenate([start.q, start.dq, start.ddq])
    bodies = _measured(model, readings, motion)
    shown = find_excitations(bodies, gravity, columns, precision)
    found = OrdinaryLeastSquares().fit(make_chain_problem(bodies, noise, 1.0, gravity, columns, shown)).values
    for _ in range(GAUSS_NEWTON_STEPS):
        bodies = _measured(model, readings, motion)
        rows = _rows(make_chain_problem(bodies, noise, 1.0, gravity, columns, shown))
        error, slopes = _linearize(model, readings, observed, state, _inertias(found, columns, shown))
        state_information = np.einsum("ksn,ktn->nst", slopes, slopes)
        wrenches = slopes[-len(rows) :]
        both = np.einsum("ksn,kpn->nsp", wrenches, rows)
        right = np.einsum("ksn,kn->ns", slopes, error)
        if np.linalg.cond(state_information).max() > MAX_CONDITION_NUMBER:
            raise InputError(
                "the signals do not determine the motion of all joints: measure more, or use `identify_chain`"
            )
        solved = np.linalg.solve(state_information, np.concatenate([both, right[:, :, None]], axis=2))
        information = np.einsum("kpn,kqn->pq", rows, rows) - np.einsum("nsp,nsq->pq", both, solved[:, :, :-1])
        scores = np.einsum("kpn,kn->np", rows, error[-len(rows) :]) - np.einsum("nsp,ns->np", both, solved[:, :, -1])
        step = np.linalg.solve(information, scores.sum(axis=0))
        found = found + step
        state = state + (solved[:, :, -1] - solved[:, :, :-1] @ step).T
        q, dq, ddq = np.split(state, 3)
        motion = Motion(q, dq, ddq)
    spread = np.linalg.solve(information, (scores - scores.mean(axis=0)).T)
    return ChainEstimate.from_directions(columns, shown, found, spread @ spread.T)


def _measured(model: RobotModel, readings: Sequence[Reading], motion: Motion) -> list[ChainBody]:
    """The chain along a motion, with the measured wrenches."""
    moved = simulate_chain(model, motion, [reading.frame for reading in readings])
    return [replace(body, wrench=reading.wrench) for body, reading in zip(moved, readings, strict=True)]


def _rows(problem: LinearProblem) -> Array:
    """Slopes of all wrenches over their noise with respect to the parameters, shape (6 n, p, N)."""
    tiles = list(problem.tiles())
    rows = np.zeros((len(tiles), len(problem.names), tiles[0].block.shape[1]))
    for tile in tiles:
        rows[tile.joint, problem.supports[tile.joint]] = tile.block[:-1]
    return rows


def _inertias(found: Array, columns: Sequence[int], shown: Sequence[Excitation]) -> Array:
    """`INERTIAL_SYMBOLS` of all bodies, shape (n, 10), from the estimates along the excited directions."""
    inertias, first = np.zeros((len(shown), 10)), 0
    for own, (directions, _) in zip(inertias, shown, strict=True):
        own[list(columns)] = directions @ found[first : (first := first + directions.shape[1])]
    return inertias


def _linearize(
    model: RobotModel,
    readings: Sequence[Reading],
    observed: Observation,
    state: Array,
    inertias: Array,
) -> tuple[Array, Array]:
    """Errors of all signals over their noise, motions first, (m, N), and their derivatives by the state, (m, s, N).

    All perturbed states are simulated at once, as samples one behind the other.
    """
    size, samples = state.shape
    perturbed = np.repeat(state[:, None], size + 1, axis=1)
    perturbed[np.arange(size), np.arange(size) + 1] += DIFFERENCE
    frames = [reading.frame for reading in readings]
    q, dq, ddq = np.split(perturbed.reshape(size, -1), 3)
    moved = simulate_chain(model, Motion(q, dq, ddq), frames, inertias)
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
