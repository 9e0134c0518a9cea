# SPDX-License-Identifier: Apache-2.0
"""Inertias of all bodies of a chain from sensors in some of its hinges: 6-axis sensors, joint torques, or both.

With a sensor in every hinge each body is identifiable. A sensor under the base carries all bodies at once. Of all ten
parameters of every body it gives combinations only, as joint torques do (Ayusawa, Venture and Nakamura 2014): mass and
inertia can be exchanged across a hinge without any effect below it. If the centers of mass and principal axes are known
(`CENTROIDAL`), such an exchange is possible only where they lie on the axes of the hinges or in line with them; on
other arms one sensor identifies every body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors, compress_rows
from robot_dyn_id.estimators.sandwich import compute_sandwich
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.loads.chain import ChainBody, express_at_point
from robot_dyn_id.loads.chain_estimate import EXCITED_RATIO, ChainEstimate, find_excited
from robot_dyn_id.loads.wrench import CHANNELS, wrench_regressor
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS

OFFSET = "offset of "
"""Beginning of the names of offsets."""

AUTOREGRESSIVE_ORDER = 6
"""Order of the noise model of each channel."""


@dataclass(frozen=True)
class HingeSensor:
    """Sensor in a hinge.

    Attributes:
        hinge: index of the hinge, 0 at the base.
        channels: names of its k components.
        axes: the components as wrenches (moment; force) along the axes of the world about the hinge, shape (k, 6, N).
        readings: components of the hinge's wrench [N m, N], shape (k, N).
    """

    hinge: int
    channels: tuple[str, ...]
    axes: Array
    readings: Array

    @classmethod
    def six_axis(cls, bodies: Sequence[ChainBody], hinge: int = 0) -> HingeSensor:
        """6-axis sensor along the axes of the world, with the wrench of a body as its readings."""
        wrench = bodies[hinge].wrench
        return cls(hinge, CHANNELS, np.repeat(np.eye(6)[:, :, None], wrench.shape[1], axis=2), wrench)

    @classmethod
    def torque(cls, bodies: Sequence[ChainBody], hinge: int, axis: Array) -> HingeSensor:
        """Torque about the axis of a revolute joint.

        Args:
            bodies: the chain, with the wrenches that are read.
            hinge: index of the joint.
            axis: its axis along the axes of the world, shape (3, N).
        """
        along = np.concatenate([axis, np.zeros_like(axis)])[None]
        return cls(hinge, ("torque",), along, np.einsum("kin,in->kn", along, bodies[hinge].wrench))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the channels with the number of the hinge, from 1."""
        return tuple(f"hinge {self.hinge + 1} {channel}" for channel in self.channels)

    def rows(self, bodies: Sequence[ChainBody], gravity: Sequence[float], columns: Sequence[int]) -> Array:
        """Rows of all bodies' parameters in the readings, shape (k, n c, N); zero for bodies before the hinge."""
        found = np.zeros((len(self.channels), len(bodies) * len(columns), self.axes.shape[2]))
        point = bodies[self.hinge].hinge
        for number, body in enumerate(bodies[self.hinge :], self.hinge):
            own = wrench_regressor(body.motion(gravity))[:, columns].transpose(0, 2, 1)
            carried = express_at_point(body, own, point)
            part = slice(number * len(columns), (number + 1) * len(columns))
            found[:, part] = np.einsum("kin,icn->kcn", self.axes, carried)
        return found


def _every_sample(block: Array) -> Array:
    return block


@dataclass(frozen=True)
class ChainWindow:
    """A part of a recording of a chain, sampled without interruption.

    Attributes:
        bodies: the chain along its motion; their wrenches are not read.
        sensors: the sensors.
        reduce: filter and selection of samples, from values of shape (k, N) to (k, rows).
        segment: number of the uninterrupted segment.
    """

    bodies: Sequence[ChainBody]
    sensors: Sequence[HingeSensor]
    reduce: Callable[[Array], Array] = _every_sample
    segment: int = 0


def make_sensor_problem(
    samples: Callable[[], Iterable[ChainWindow]],
    gravity: Sequence[float],
    columns: Sequence[int],
    rate: float,
    offsets: bool = False,
) -> LinearProblem:
    """Linear problem of the parameters of all bodies, in the order of the bodies, and of the sensors' offsets.

    Args:
        samples: function that starts a pass over the recording; every window has the same sensors.
        gravity: gravity vector along the axes of the world [m/s^2].
        columns: indices of the c parameters of a body, in its frame.
        rate: samples per second [Hz].
        offsets: whether every channel has an unknown constant offset.

    Raises:
        InputError: no samples.
    """
    first = next(iter(samples()), None)
    if first is None:
        raise InputError("no samples of the sensors lie within the motion")
    bodies, sensors = first.bodies, first.sensors
    size = len(bodies) * len(columns)
    names = tuple(f"{INERTIAL_SYMBOLS[c]}{number}" for number in range(1, len(bodies) + 1) for c in columns)
    channels = tuple(name for sensor in sensors for name in sensor.names)
    biases = tuple(f"{OFFSET}{name}" for name in channels) if offsets else ()
    supports: list[Integers] = []
    for sensor in sensors:
        for _ in sensor.channels:
            own = [size + len(supports)] if offsets else []
            supports.append(np.array([*range(sensor.hinge * len(columns), size), *own]))

    def tiles() -> Iterator[Tile]:
        for window in samples():
            number = 0
            for sensor in window.sensors:
                rows = sensor.rows(window.bodies, gravity, columns)
                for row, reading in zip(rows, sensor.readings, strict=True):
                    constant = [np.ones((1, len(reading)))] if offsets else []
                    block = np.concatenate([row[sensor.hinge * len(columns) :], *constant, reading[None]])
                    yield Tile(number, window.segment, np.ascontiguousarray(window.reduce(block)))
                    number += 1

    return LinearProblem((*names, *biases), channels, tuple(supports), tiles, rate)


def identify_from_sensors(problem: LinearProblem, columns: Sequence[int], precision: float = 1e-6) -> ChainEstimate:
    """Inertial parameters of every body, each channel weighted by its residuals.

    Args:
        problem: rows of `make_sensor_problem`.
        columns: those of the problem.
        precision: relative precision of the motion. Directions of parameters that change the readings by less than
            `EXCITED_RATIO` times this share of the change of the best excited direction are not identifiable.

    Raises:
        InputError: fewer rows than parameters, or no parameter is excited.
    """
    factors = compress_rows(problem)
    _, _, weights = solve_reweighted(factors)
    directions, identifiable = _excitation(problem, factors, weights, columns, precision)
    stack = factors.stack(weights)
    part, *_ = np.linalg.lstsq(stack[:, :-1] @ directions, stack[:, -1], rcond=None)
    root = np.linalg.qr(stack[:, :-1] @ directions, mode="r")
    spread = directions @ np.linalg.inv(root)
    values = directions @ part
    _, covariance = compute_sandwich(problem, values, spread @ spread.T, weights, AUTOREGRESSIVE_ORDER)
    return _estimate(problem, columns, directions, identifiable, (values, np.sqrt(np.diag(covariance))))


def bound_from_sensors(
    problem: LinearProblem, columns: Sequence[int], noise: Array, precision: float = 1e-6
) -> ChainEstimate:
    """Cramer-Rao bound of the standard deviations for white normal noise of known size; the values are zero.

    Args:
        problem: rows of `make_sensor_problem`.
        columns: those of the problem.
        noise: standard deviation of every channel [N m, N], shape (channels,).
        precision: see `identify_from_sensors`.
    """
    factors = Factors.from_problem(problem)
    directions, identifiable = _excitation(problem, factors, 1.0 / noise, columns, precision)
    root = np.linalg.qr(factors.stack(1.0 / noise)[:, :-1] @ directions, mode="r")
    spread = directions @ np.linalg.inv(root)
    least = np.linalg.norm(spread, axis=1)
    return _estimate(problem, columns, directions, identifiable, (np.zeros(len(spread)), least))


def _excitation(
    problem: LinearProblem, factors: Factors, weights: Array, columns: Sequence[int], precision: float
) -> tuple[Array, Mask]:
    """Excited directions of all unknowns, shape (p, r), and the identifiable ones, shape (p,); offsets come last."""
    offsets = _count_offsets(problem)
    units = [INERTIAL_UNITS[column] for column in columns] * ((factors.parameters - offsets) // len(columns))
    return find_excited(factors.root(weights), [*units, *["offset"] * offsets], EXCITED_RATIO * precision)


def _count_offsets(problem: LinearProblem) -> int:
    return sum(name.startswith(OFFSET) for name in problem.names)


def _estimate(
    problem: LinearProblem, columns: Sequence[int], directions: Array, identifiable: Mask, found: tuple[Array, Array]
) -> ChainEstimate:
    """Table of the parameters of the bodies; `found` are values and standard deviations of all unknowns."""
    offsets = _count_offsets(problem)
    size, shape = len(problem.names) - offsets, (-1, len(columns))
    names = np.array(problem.names[:size]).reshape(shape)
    values, sigmas = (
        np.where(identifiable, x, missing)[:size].reshape(shape)
        for x, missing in zip(found, (np.nan, np.inf), strict=True)
    )
    units = tuple(INERTIAL_UNITS[column] for column in columns)
    rank = directions.shape[1] - offsets  # columns of offsets are independent of one another
    return ChainEstimate(names, units, values, sigmas, tuple(names[np.isnan(values)].tolist()), rank)
