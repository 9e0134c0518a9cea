# SPDX-License-Identifier: Apache-2.0
"""Inertias of all bodies of a chain from the wrenches of its hinges, with the motion taken as it is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.loads.chain import CENTROIDAL, ChainBody, carried
from robot_dyn_id.loads.wrench import CHANNELS, wrench_regressor
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS

EXCITED = 10.0
"""A direction of parameters is excited if it moves the wrench by more than so many times the motion's precision."""

SHARE = 1e-3
"""Least share of an entry in an unexcited direction that counts."""

Shown = tuple[Array, Mask]
"""Directions of a body's c parameters that its motion excites, (c, r), and which entries they tell, (c,)."""


@dataclass(frozen=True)
class ChainEstimate:
    """Inertial parameters of the n bodies of a chain.

    Attributes:
        names: of the entries, numbered like the bodies from 1, shape (n, c).
        units: of the c parameters of a body.
        values: SI, shape (n, c); NaN where the motion does not tell.
        standard_deviations: one sigma, shape (n, c); infinite there.
        not_excited: names of those entries.
    """

    names: NDArray[np.str_]
    units: tuple[str, ...]
    values: Array
    standard_deviations: Array
    not_excited: tuple[str, ...]

    @staticmethod
    def of(columns: Sequence[int], shown: Sequence[Shown], found: Array, covariance: Array) -> ChainEstimate:
        """From what was found along the directions that are shown, of the first body first."""
        values, sigmas = (np.full((len(shown), len(columns)), x) for x in (np.nan, np.inf))
        first = 0
        for number, (directions, told) in enumerate(shown):
            part = slice(first, first := first + directions.shape[1])
            values[number, told] = (directions @ found[part])[told]
            sigmas[number, told] = np.sqrt(np.diag(directions @ covariance[part, part] @ directions.T))[told]
        names = np.array([[f"{INERTIAL_SYMBOLS[c]}{n + 1}" for c in columns] for n in range(len(shown))])
        units = tuple(INERTIAL_UNITS[column] for column in columns)
        return ChainEstimate(names, units, values, sigmas, tuple(names[np.isnan(values)].tolist()))


def identify_chain(
    bodies: Sequence[ChainBody],
    rate: float,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    columns: Sequence[int] = CENTROIDAL,
    noise: Array | None = None,
    precision: float = 1e-6,
) -> ChainEstimate:
    """Inertial parameters of every body from the wrenches of all hinges.

    All bodies are fitted together, hinge wrench by hinge wrench: hinge i carries bodies i to n, and the errors of the
    sensors are independent of one another, which those of the differences between neighbours would not be.

    Args:
        bodies: the chain from the base outwards.
        rate: samples per second [Hz].
        gravity: along the axes of the world [m/s^2].
        columns: which of the ten parameters of a body in its frame are sought: `CENTROIDAL`, or `ALL`.
        noise: standard deviations of each hinge's moment and force, shape (n, 2) [N m, N]; default: that of each
            channel is found from its residuals, at first in proportion to what the hinge measures.
        precision: relative precision of the motion. Directions of parameters that move a body's wrench by less than
            `EXCITED` times this share of what the best excited direction does are not told: NaN.

    Raises:
        InputError: no bodies, bodies of different numbers of samples, hinges that show nothing (without `noise`),
            nothing excited, too few samples.
        UsageError: noise that is not positive.
    """
    sigma, shown = _noise(bodies, noise), excited(bodies, gravity, columns, precision)
    problem = chain_problem(bodies, sigma, rate, gravity, columns, shown)
    found = (WeightedLeastSquares() if noise is None else OrdinaryLeastSquares()).fit(problem)
    return ChainEstimate.of(columns, shown, found.values, found.covariance)


def least_deviations(
    bodies: Sequence[ChainBody],
    noise: Array,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    columns: Sequence[int] = CENTROIDAL,
    precision: float = 1e-6,
) -> Array:
    """What no unbiased estimate comes below: one sigma of every entry, shape (n, c), infinite where none is told.

    The bound of Cramer and Rao for white normal noise of known size on the wrenches, with the motion known exactly: it
    tells before any measurement whether a motion is worth making. Arguments: see `identify_chain`.
    """
    shown = excited(bodies, gravity, columns, precision)
    problem = chain_problem(bodies, _noise(bodies, noise), 1.0, gravity, columns, shown)
    inverse = np.linalg.inv(Factors.from_problem(problem).root(np.ones(len(problem.joint_names))))
    return ChainEstimate.of(columns, shown, np.zeros(len(inverse)), inverse @ inverse.T).standard_deviations


def _noise(bodies: Sequence[ChainBody], given: Array | None) -> Array:
    """Standard deviations of each hinge's moment and force, shape (n, 2): those given, or in proportion to them."""
    if not bodies:
        raise InputError("a chain without bodies: give one ChainBody per hinge, the base's first")
    samples = [body.wrench.shape[1] for body in bodies]
    for number, count in enumerate(samples, 1):
        if count != samples[0]:
            raise InputError(f"hinge {number}: {count} samples, but {samples[0]} of hinge 1; give the same ones of all")
    if given is not None:
        sigma = np.asarray(given, dtype=np.float64)
        if sigma.shape != (len(bodies), 2) or not np.all(sigma > 0.0):
            raise UsageError("noise must be positive, a moment's and a force's for every hinge")
        return sigma
    sizes = np.array([np.sqrt((body.wrench.reshape(2, 3, -1) ** 2).sum(axis=1).mean(axis=1)) for body in bodies])
    for number, size in enumerate(sizes, 1):
        if not size.any():
            raise InputError(f"hinge {number}: its wrench is 0 throughout; connect its sensor, or give `noise`")
    for what, size in zip(("moment", "force"), sizes.max(axis=0), strict=True):
        if not size:
            raise InputError(f"hinges 1 to {len(bodies)}: every {what} is 0 throughout; give `noise`")
    return np.where(sizes > 0.0, sizes, sizes.max(axis=0))


def _shown(rows: Array, columns: Sequence[int], share: float) -> Shown:
    """What a body's motion excites of its parameters, from its rows (6, c, N).

    Parameters of one unit share a scale: a column of rounding errors must not be made as long as a real one.
    """
    flat = rows.transpose(0, 2, 1).reshape(-1, len(columns))
    units = np.array([INERTIAL_UNITS[column] for column in columns])
    norms = np.linalg.norm(flat, axis=0)
    scale = np.array([norms[units == unit].max() for unit in units])
    scale = np.where(scale > 0.0, scale, 1.0)
    _, singular, right = np.linalg.svd(np.linalg.qr(flat / scale, mode="r"))
    excited = np.zeros(len(right), dtype=bool)
    excited[: len(singular)] = singular > share * singular.max(initial=0.0)
    hidden = np.abs(right[~excited]).max(axis=0, initial=0.0) > max(SHARE, share)
    return right[excited].T / scale[:, None], ~hidden


def excited(
    bodies: Sequence[ChainBody], gravity: Sequence[float], columns: Sequence[int], precision: float
) -> list[Shown]:
    """What the motion of each body excites of its parameters; arguments: see `identify_chain`.

    Raises:
        InputError: nothing at all.
    """
    shown = [_shown(wrench_regressor(b.motion(gravity))[:, columns], columns, EXCITED * precision) for b in bodies]
    if not any(directions.size for directions, _ in shown):
        raise InputError("nothing of the chain is excited: no body feels an acceleration or gravity")
    return shown


def chain_problem(
    bodies: Sequence[ChainBody],
    sigma: Array,
    rate: float,
    gravity: Sequence[float],
    columns: Sequence[int],
    shown: Sequence[Shown],
) -> LinearProblem:
    """Rows of all hinge wrenches over their noise, (n, 2), channel by channel of one hinge after the other."""
    own = [
        wrench_regressor(body.motion(gravity))[:, columns].transpose(0, 2, 1) @ directions
        for body, (directions, _) in zip(bodies, shown, strict=True)
    ]
    sizes = np.cumsum([0, *(rows.shape[2] for rows in own)])
    names = tuple(f"direction {number + 1}" for number in range(sizes[-1]))
    joints = tuple(f"hinge {number + 1} {channel}" for number in range(len(bodies)) for channel in CHANNELS)
    supports = tuple(np.arange(sizes[number], sizes[-1]) for number in range(len(bodies)) for _ in CHANNELS)

    def tiles() -> Iterator[Tile]:
        for hinge, at in enumerate(bodies):
            rows = [carried(body, part, at.hinge) for body, part in zip(bodies[hinge:], own[hinge:], strict=True)]
            stacked = np.concatenate([*rows, at.wrench[:, None]], axis=1)
            stacked[:3] /= sigma[hinge, 0]
            stacked[3:] /= sigma[hinge, 1]
            for channel in range(6):
                yield Tile(6 * hinge + channel, 0, np.ascontiguousarray(stacked[channel]))

    return LinearProblem(names, joints, supports, tiles, rate)
