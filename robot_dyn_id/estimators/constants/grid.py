# SPDX-License-Identifier: Apache-2.0
"""Grid search of free constants on compressed data."""

from __future__ import annotations

from itertools import product

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.estimators.constants.constants import Constants
from robot_dyn_id.estimators.constants.projected import PROJECTED_RANK_TOLERANCE, Projected, solve_gram

GRID_STARTS = 5
"""Number of starts: the same relative grid position of all terms."""

MAX_SWEEPS = 20
"""Maximum number of sweeps over all terms from one start."""


def search_grid(projected: Projected, grid: int) -> Array:
    """Find the logarithms of the constants of the lowest cost on a grid over their ranges, shape (k,).

    Terms are optimized in turn, from several starts, until no choice changes.

    Args:
        projected: cost of the k constants.
        grid: number of values of each constant; the root of twice as many for each of several constants of a term.
    """
    constants = projected.constants
    candidates = {number: _candidates(constants, own, grid) for number, own in constants.numbers.items()}
    mixing, places = projected.mixing(candidates)
    gram, torque = projected.left_over(mixing / projected.norms(mixing))
    found: tuple[float, dict[int, int]] = (-np.inf, {})
    for start in np.linspace(0.0, 1.0, GRID_STARTS):
        choice = {number: round(start * (len(own) - 1)) for number, own in candidates.items()}
        most = -np.inf
        for _ in range(MAX_SWEEPS):
            before = dict(choice)
            for number, own in places.items():
                chosen = [places[other][i] for other, i in choice.items() if other != number]
                explained = _explained(gram, torque, np.concatenate([*chosen, own[0, :0]]), own)
                choice[number] = int(np.argmax(explained))
                most = float(explained.max())
            if choice == before:
                break
        found = max(found, (most, choice), key=lambda pair: pair[0])
    logarithms = np.empty(len(constants.lower))
    for number, i in found[1].items():
        logarithms[constants.numbers[number]] = candidates[number][i]
    return logarithms


def _candidates(constants: Constants, own: list[int], grid: int) -> Array:
    """Logarithms of one term's constants, shape (candidates, constants of the term)."""
    count = grid if len(own) == 1 else max(2, round(np.sqrt(2.0 * grid)))
    return np.array(list(product(*(np.linspace(constants.lower[i], constants.upper[i], count) for i in own))))


def _explained(gram: Array, torque: Array, others: Integers, own: Integers) -> Array:
    """Squared torque explained by the other terms' columns and those of each candidate, shape (candidates,).

    Args:
        gram: Gram matrix of the unit-norm columns of all candidates.
        torque: their products with the torque.
        others: columns of the other terms.
        own: columns of each candidate, shape (candidates, m).
    """
    flat = own.ravel()
    solved = solve_gram(gram[np.ix_(others, others)], np.column_stack([torque[others], gram[np.ix_(others, flat)]]))
    moment = (torque[flat] - gram[np.ix_(flat, others)] @ solved[:, 0]).reshape(own.shape)
    through = solved[:, 1:].reshape(len(others), *own.shape)
    rest = gram[own[:, :, None], own[:, None, :]] - np.einsum(
        "com,ocn->cmn", gram[own][:, :, others].swapaxes(1, 2), through
    )
    values, vectors = np.linalg.eigh(rest)
    along = np.einsum("cmn,cm->cn", vectors, moment) ** 2
    gain = np.divide(along, values, out=np.zeros_like(along), where=values > PROJECTED_RANK_TOLERANCE).sum(axis=1)
    return np.asarray(torque[others] @ solved[:, 0] + gain)
