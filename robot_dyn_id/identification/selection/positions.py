# SPDX-License-Identifier: Apache-2.0
"""Torques that depend on the position of one joint: springs, cables, and what repeats with every turn.

Such a term is confounded with whatever drifts slowly along a motion, so that the second of the `divisions` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.dynamics.terms import PositionPeriodic
from robot_dyn_id.identification.selection.cross_validation import Candidate, compute_relative_loss
from robot_dyn_id.identification.selection.divisions import Divisions
from robot_dyn_id.identification.selection.engine import Tried, weigh_joints
from robot_dyn_id.identification.selection.families import Family
from robot_dyn_id.identification.selection.wide import Placed, Wide

STEP = "position"
"""Step of these terms among the alternatives."""


def choose_positions(
    wide: Wide,
    divisions: Divisions,
    families: Sequence[Family],
    couplings: Sequence[str],
    strength: float,
) -> tuple[tuple[Placed, ...], list[Tried]]:
    """Terms of the position that pay on each joint, family after family, and the alternatives.

    Args:
        wide: all candidate columns.
        divisions: the data.
        families: families of the model.
        couplings: couplings of the model.
        strength: strength of the prior.

    Returns:
        The terms that are taken, and all that were tried with the gain of the division in which they pay less.
    """
    names = wide.regressor.model.joint_names
    taken: tuple[Placed, ...] = ()
    rows: list[Tried] = []
    for family in wide.position_families:
        (term,) = family.terms
        judged = np.ones(len(names), dtype=bool)
        if isinstance(term, PositionPeriodic):
            judged = ~wide.regressor.model.slides
        if not judged.any():
            continue
        columns = [
            wide.columns_of(families, couplings, placed)
            for placed in (taken, {*taken, *((name, term.name) for name in np.array(names)[judged].tolist())})
        ]
        words = [f"{term.name.replace('_', ' ')} of {name}" for name in names]
        compared = []
        for division in divisions.each:
            before, after = (division.errors(Candidate(one, strength)) for one in columns)
            loss = compute_relative_loss(after, before)
            compared.append(weigh_joints(STEP, words, before, after, judged, loss))
        for name, *of_joint in zip(np.array(names)[judged].tolist(), *compared, strict=True):
            least = min(of_joint, key=lambda row: row.gain - row.required)
            rows.append(replace(least, chosen=least.pays))
            if least.pays:
                taken = (*taken, (name, term.name))
    return taken, rows
