# SPDX-License-Identifier: Apache-2.0
"""Choice of the strength of the prior."""

from __future__ import annotations

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.wide import Wide

STRENGTH_STEP = 10.0
"""Ratio of two strengths of the prior that are tried."""

STRENGTH_RANGE = (0.01, 1000.0)
"""Weakest and strongest prior that is tried."""


def choose_strength(
    wide: Wide, validation: CrossValidation, columns: Integers, reference: Array, start: float
) -> tuple[float, list[Tried]]:
    """Strength with the least loss of physically consistent fits, from a start towards the smaller losses.

    Args:
        wide: all candidate columns.
        validation: the blocks.
        columns: columns of the model, shape (p,).
        reference: errors of the reference model, shape (blocks, n).
        start: strength that is tried first.

    Returns:
        The strength, and all that were tried.
    """
    if wide.estimator.strength is not None:
        return wide.estimator.strength, []
    losses: dict[float, float] = {}

    def loss(strength: float) -> float:
        if strength not in losses:
            errors = wide.find_consistent_errors(validation, Candidate(columns, strength))
            losses[strength] = compute_relative_loss(errors, reference)
        return losses[strength]

    best = start
    while True:
        around = [best / STRENGTH_STEP, best, best * STRENGTH_STEP]
        inside = [s for s in around if STRENGTH_RANGE[0] * 0.99 <= s <= STRENGTH_RANGE[1] * 1.01]
        least = min(inside, key=loss)
        if least == best:
            break
        best = least
    return best, [
        Tried("prior_strength", f"{strength:g}", losses[strength], chosen=strength == best)
        for strength in sorted(losses)
    ]
