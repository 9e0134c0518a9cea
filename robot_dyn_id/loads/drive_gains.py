# SPDX-License-Identifier: Apache-2.0
"""Drive gains (torque constant times gear ratio) from recordings of currents with and without a known payload.

Currents alone give every parameter of a joint's row divided by its gain; only a known payload relates them to N m. With
the payload phi in one of two runs,

    current = Y theta / g             without it
    current = Y theta / g + Y_p phi / g   with it,

which is linear in the joint's own theta / g and in 1 / g. Both runs are fitted together, joint by joint, with white
rows: the errors are in the current, which is alone on the left, so that 1 / g is not biased towards zero as it would be
with current as a column (where total least squares corrects it: Gautier and Briot 2014; Khalil, Gautier and Lemoine
2007 compare the methods). The gain of a joint does not depend on the other joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.feasible_gls import solve_whitened
from robot_dyn_id.findings import Finding
from robot_dyn_id.loads.fit import LoadFit
from robot_dyn_id.loads.payload import WHITENING_ORDER, WHITENING_PASSES

IDENTIFIABLE_SIGMAS = 3.0
"""Number of standard deviations by which the inverse of an identifiable gain differs from zero."""


@dataclass(frozen=True)
class DriveGain:
    """Gain of the drive of one joint.

    Attributes:
        joint: name of the joint.
        value: effort per current [N m/A or N/A]; NaN if not identifiable. Negative if positive current gives negative
            effort.
        standard_deviation: standard deviation (1 sigma), to first order; inf if not identifiable.
    """

    joint: str
    value: float
    standard_deviation: float


@dataclass(frozen=True)
class DriveGains:
    """Gains of the drives of all joints.

    Attributes:
        gains: gain of each joint.
        fit: fit to the currents of both runs.
        findings: findings about the recordings.
    """

    gains: tuple[DriveGain, ...]
    fit: LoadFit
    findings: tuple[Finding, ...] = ()


def identify_drive_gains(bare: LinearProblem, loaded: LinearProblem, added: Array) -> DriveGains:
    """Gain of the drive of every joint.

    Args:
        bare: currents without the payload, as rows of the p base parameters.
        loaded: currents with the payload, as rows of the same parameters.
        added: base parameters that the payload adds, SI, shape (p,).

    Raises:
        InputError: problems of other parameters, a payload that adds nothing, too few rows.
    """
    if bare.names != loaded.names or bare.joint_names != loaded.joint_names:
        raise InputError("the recordings with and without payload are not of the same joints and terms")
    if not np.any(added):
        raise InputError("the payload changes no joint torque: it needs a mass, on a link that moves")
    both = _together(bare, loaded, added)
    found = solve_whitened(both, WHITENING_ORDER, WHITENING_PASSES, "qr", Factors.solve)
    solution = found.solution
    places = np.cumsum([len(support) + 1 for support in bare.supports]) - 1
    gains = []
    for joint, place in zip(bare.joint_names, places, strict=True):
        inverse, sigma = float(solution.values[place]), float(np.sqrt(solution.inverse[place, place]))
        identifiable = not solution.unexcited[place] and abs(inverse) > IDENTIFIABLE_SIGMAS * sigma
        gains.append(
            DriveGain(joint, 1.0 / inverse, sigma / inverse**2) if identifiable else DriveGain(joint, np.nan, np.inf)
        )
    return DriveGains(tuple(gains), LoadFit.from_factors(both, found.plain, solution.values))


def _together(bare: LinearProblem, loaded: LinearProblem, added: Array) -> LinearProblem:
    """Both runs as rows of each joint's own parameters over its gain, the inverse of the gain behind them."""
    ends = np.cumsum([0, *(len(support) + 1 for support in bare.supports)])
    names = tuple(
        f"{name} of {joint}"
        for joint, support in zip(bare.joint_names, bare.supports, strict=True)
        for name in (*(bare.names[column] for column in support), "1 / gain")
    )

    def tiles() -> Iterator[Tile]:
        for number, tile in chain(((0, tile) for tile in bare.tiles()), ((1, tile) for tile in loaded.tiles())):
            columns, current = tile.block[:-1], tile.block[-1:]
            felt = number * added[bare.supports[tile.joint]] @ columns
            block = np.concatenate([columns, felt[None], current])
            yield Tile(tile.joint, 2 * tile.segment + number, block, tile.trial, tile.t)

    supports = tuple(np.arange(first, last) for first, last in pairwise(ends))
    return LinearProblem(names, bare.joint_names, supports, tiles, loaded.rate)
