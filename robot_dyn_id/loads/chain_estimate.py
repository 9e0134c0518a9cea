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
from robot_dyn_id.estimators.weighting import solve_reweighted
from robot_dyn_id.loads.chain import ALL, CENTROIDAL, ChainBody, express_at_point
from robot_dyn_id.loads.wrench import CHANNELS, wrench_regressor
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS

EXCITED_RATIO = 10.0
"""Change of the wrench, as a multiple of the precision of the motion, above which a direction counts as excited."""

MIN_SHARE = 1e-3
"""Smallest share of a parameter in an unexcited direction that makes it unidentifiable."""

MAX_CONTRADICTION = 25.0
"""F statistic (squared: 5 standard deviations) of the ten parameters of each body against the chosen ones, above which
the frames of the bodies are not what the chosen parameters need."""

Excitation = tuple[Array, Mask]
"""Excited directions of a body's c parameters, shape (c, r), and the identifiable parameters, shape (c,)."""


@dataclass(frozen=True)
class ChainEstimate:
    """Inertial parameters of the n bodies of a chain.

    Attributes:
        names: names of the parameters, numbered like the bodies from 1, shape (n, c).
        units: units of the c parameters of a body.
        values: values, SI, shape (n, c); NaN if not identifiable.
        standard_deviations: standard deviations (1 sigma), shape (n, c); inf if not identifiable.
        not_excited: names of the parameters that are not identifiable.
        rank: number of independent combinations of the parameters that are identifiable.
    """

    names: NDArray[np.str_]
    units: tuple[str, ...]
    values: Array
    standard_deviations: Array
    not_excited: tuple[str, ...]
    rank: int

    @classmethod
    def from_directions(
        cls, columns: Sequence[int], excitations: Sequence[Excitation], found: Array, covariance: Array
    ) -> ChainEstimate:
        """Parameters from estimates along the excited directions.

        Args:
            columns: indices of the c parameters in `INERTIAL_SYMBOLS`.
            excitations: excited directions of each body.
            found: estimates along these directions, those of the first body first.
            covariance: covariance of the estimates.
        """
        values, sigmas = (np.full((len(excitations), len(columns)), x) for x in (np.nan, np.inf))
        first = 0
        for number, (directions, identifiable) in enumerate(excitations):
            part = slice(first, first := first + directions.shape[1])
            values[number, identifiable] = (directions @ found[part])[identifiable]
            variances = np.diag(directions @ covariance[part, part] @ directions.T)
            sigmas[number, identifiable] = np.sqrt(variances)[identifiable]
        names = np.array([[f"{INERTIAL_SYMBOLS[c]}{n + 1}" for c in columns] for n in range(len(excitations))])
        units = tuple(INERTIAL_UNITS[column] for column in columns)
        return cls(names, units, values, sigmas, tuple(names[np.isnan(values)].tolist()), first)


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
    sensors are independent of one another, which those of the differences between neighbors would not be.

    Args:
        bodies: the chain from the base outwards.
        rate: samples per second [Hz].
        gravity: gravity vector along the axes of the world [m/s^2].
        columns: indices of the parameters of a body, in its frame, that are identified: `CENTROIDAL`, or `ALL`.
        noise: standard deviations of each hinge's moment and force, shape (n, 2) [N m, N]; default: estimated
            from the residuals of each channel, at first proportional to the readings of the hinge.
        precision: relative precision of the motion. Directions of parameters that change a body's wrench by less
            than `EXCITED_RATIO` times this share of the change of the best excited direction are not identifiable: NaN.

    Raises:
        InputError: no bodies, bodies of different numbers of samples, hinges whose wrench is zero (without `noise`),
            no excitation, too few samples, frames that are not those of the center of mass and the principal axes where
            the columns need these.
        UsageError: noise that is not positive.
    """
    sigma = _noise(bodies, noise)
    shown = find_excitations(bodies, gravity, columns, precision)
    problem = make_chain_problem(bodies, sigma, rate, gravity, columns, shown)
    if len(columns) < len(ALL):
        wider = find_excitations(bodies, gravity, ALL, precision)
        check_frames(problem, make_chain_problem(bodies, sigma, rate, gravity, ALL, wider), precision)
    found = (WeightedLeastSquares() if noise is None else OrdinaryLeastSquares()).fit(problem)
    return ChainEstimate.from_directions(columns, shown, found.values, found.covariance)


def check_frames(chosen: LinearProblem, every: LinearProblem, precision: float) -> None:
    """Refuse frames in which the wrenches need more than the chosen parameters.

    An F test of nested fits: all ten parameters of every body against the chosen ones, with the weights of the former.
    What is below the precision of the motion does not count.

    Raises:
        InputError: the chosen parameters do not explain the wrenches.
    """
    narrow, wide = Factors.from_problem(chosen), Factors.from_problem(every)
    extra, spare = wide.parameters - narrow.parameters, int(wide.counts.sum()) - wide.parameters
    if extra <= 0 or spare <= 0:
        return
    _, best, _ = solve_reweighted(wide)
    signal = np.array([float(np.sum(triangle[:, -1] ** 2)) for triangle in wide.triangles])
    floor = (EXCITED_RATIO * precision) ** 2 * signal
    left = np.maximum(wide.squared_residuals(best.values), floor)
    weights = np.where(left > 0.0, np.sqrt(wide.counts / np.where(left > 0.0, left, 1.0)), 0.0)
    remaining = narrow.squared_residuals(narrow.solve(weights).values)
    contradiction = float(weights**2 @ np.maximum(remaining - left, 0.0)) / extra
    contradiction /= float(weights**2 @ left) / spare
    if contradiction > MAX_CONTRADICTION:
        raise InputError(
            "the wrenches contradict the frames of the bodies: their origins are not the centers of mass, or their "
            f"axes are not principal (F = {contradiction:.3g} with {extra} more parameters); identify all ten "
            "parameters of every body (ALL), or give frames along the principal axes in the centers of mass"
        )


def bound_deviations(
    bodies: Sequence[ChainBody],
    noise: Array,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    columns: Sequence[int] = CENTROIDAL,
    precision: float = 1e-6,
) -> Array:
    """Cramer-Rao bound of the standard deviations, shape (n, c); inf if not identifiable.

    It holds for white normal noise of known size on the wrenches and an exactly known motion, and rates a motion before
    anything is measured. Arguments: see `identify_chain`.
    """
    shown = find_excitations(bodies, gravity, columns, precision)
    problem = make_chain_problem(bodies, _noise(bodies, noise), 1.0, gravity, columns, shown)
    inverse = np.linalg.inv(Factors.from_problem(problem).root(np.ones(len(problem.joint_names))))
    return ChainEstimate.from_directions(
        columns, shown, np.zeros(len(inverse)), inverse @ inverse.T
    ).standard_deviations


def _noise(bodies: Sequence[ChainBody], given: Array | None) -> Array:
    """Standard deviations of the moments and forces, shape (n, 2): as given, or proportional to the readings."""
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


def find_excited(rows: Array, units: Sequence[str], share: float) -> Excitation:
    """Excited directions of parameters.

    Parameters of one unit share a scale: a column of rounding errors must not be made as long as a real one.

    Args:
        rows: rows of the parameters, or their triangular factor, shape (any, c).
        units: unit of each parameter.
        share: singular value, as a share of the largest, above which a direction is excited.
    """
    kinds, norms = np.array(units), np.linalg.norm(rows, axis=0)
    scale = np.array([norms[kinds == unit].max() for unit in kinds])
    scale = np.where(scale > 0.0, scale, 1.0)
    _, singular, right = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"))
    excited = np.zeros(len(right), dtype=bool)
    excited[: len(singular)] = singular > share * singular.max(initial=0.0)
    hidden = np.abs(right[~excited]).max(axis=0, initial=0.0) > max(MIN_SHARE, share)
    return right[excited].T / scale[:, None], ~hidden


def find_excitations(
    bodies: Sequence[ChainBody], gravity: Sequence[float], columns: Sequence[int], precision: float
) -> list[Excitation]:
    """Excited directions of the parameters of each body; arguments: see `identify_chain`.

    Raises:
        InputError: no direction of any body is excited.
    """
    units = [INERTIAL_UNITS[column] for column in columns]
    shown = [
        find_excited(rows.transpose(0, 2, 1).reshape(-1, len(columns)), units, EXCITED_RATIO * precision)
        for rows in (wrench_regressor(body.motion(gravity))[:, columns] for body in bodies)
    ]
    if not any(directions.size for directions, _ in shown):
        raise InputError("no parameter of the chain is excited: no body is accelerated or loaded by gravity")
    return shown


def make_chain_problem(
    bodies: Sequence[ChainBody],
    sigma: Array,
    rate: float,
    gravity: Sequence[float],
    columns: Sequence[int],
    shown: Sequence[Excitation],
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
            rows = [
                express_at_point(body, part, at.hinge) for body, part in zip(bodies[hinge:], own[hinge:], strict=True)
            ]
            stacked = np.concatenate([*rows, at.wrench[:, None]], axis=1)
            stacked[:3] /= sigma[hinge, 0]
            stacked[3:] /= sigma[hinge, 1]
            for channel in range(6):
                yield Tile(6 * hinge + channel, 0, np.ascontiguousarray(stacked[channel]))

    return LinearProblem(names, joints, supports, tiles, rate)
