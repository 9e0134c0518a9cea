# SPDX-License-Identifier: Apache-2.0
"""Torques that depend on the position of one joint: springs, cables, and what repeats with every turn.

Such a term is confounded with whatever drifts slowly along a motion: it predicts the neighboring blocks of time, and
fails on the next recording. It is believed only if it also predicts positions that it was not fitted to: bands of each
joint's range, which are left out whenever the joint was there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Integers, Mask
from robot_dyn_id.dynamics.terms import PositionPeriodic, Spring
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.engine import Tried, weigh_joints
from robot_dyn_id.identification.selection.families import Family
from robot_dyn_id.identification.selection.wide import Placed, Wide
from robot_dyn_id.signals.trials import FilteredTrials

STEP = "position"
"""Step of these terms among the alternatives."""


def multiply_bands(trials: FilteredTrials, wide: Wide, count: int) -> BlockGrams | None:
    """Products of all columns in bands of the position of each joint; None where no term of positions is tried.

    Args:
        trials: the trials.
        wide: all candidate columns.
        count: number of bands.
    """
    if not wide.position_families:
        return None
    springs = {
        column.coordinate.name: wide.inertial + number
        for number, column in enumerate(wide.regressor.term_columns)
        if isinstance(column.term, Spring)
    }
    positions = [springs[name] for name in wide.regressor.model.joint_names]
    return BlockGrams.from_bands(trials, wide.regressor, positions, count)


def choose_positions(
    wide: Wide,
    folds: Sequence[CrossValidation],
    families: Sequence[Family],
    couplings: Sequence[str],
    strength: float,
    allowed: Collection[Placed] | None = None,
) -> tuple[tuple[Placed, ...], list[Tried]]:
    """Terms of the position that pay on each joint, family after family, and the alternatives.

    Args:
        wide: all candidate columns.
        folds: divisions of the data, in each of which a term must pay: blocks of time, and bands of positions.
        families: families of the model.
        couplings: couplings of the model.
        strength: strength of the prior.
        allowed: terms that are tried; None: all.

    Returns:
        The terms that are taken, and all that were tried with the gain of the division in which they pay less.
    """
    names = wide.regressor.model.joint_names
    taken: tuple[Placed, ...] = ()
    rows: list[Tried] = []
    for family in wide.position_families:
        (term,) = family.terms
        judged = np.array([allowed is None or (name, term.name) in allowed for name in names])
        if isinstance(term, PositionPeriodic):
            judged &= ~wide.regressor.model.slides
        if not judged.any():
            continue
        columns = [
            wide.columns_of(families, couplings, placed)
            for placed in (taken, {*taken, *((name, term.name) for name in np.array(names)[judged].tolist())})
        ]
        compared = [_compare(fold, columns, strength, names, term.name, judged) for fold in folds]
        for name, *of_joint in zip(np.array(names)[judged].tolist(), *compared, strict=True):
            least = min(of_joint, key=lambda row: row.gain - row.required)
            rows.append(replace(least, chosen=least.pays))
            if least.pays:
                taken = (*taken, (name, term.name))
    return taken, rows


def _compare(
    fold: CrossValidation, columns: Sequence[Integers], strength: float, names: Sequence[str], term: str, judged: Mask
) -> list[Tried]:
    """Gains on each joint that is judged."""
    before, after = (fold.errors(Candidate(one, strength)) for one in columns)
    loss = compute_relative_loss(after, before)
    words = [f"{term.replace('_', ' ')} of {name}" for name in names]
    return weigh_joints(STEP, words, before, after, judged, loss)
