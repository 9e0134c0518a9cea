# SPDX-License-Identifier: Apache-2.0
"""Torques that depend on the position of one joint: springs, cables, and what repeats with every turn.

Such a term is confounded with whatever drifts slowly along a motion, so that the second of the `divisions` decides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    wide: Wide, divisions: Divisions, families: Sequence[Family], couplings: Sequence[str], strength: float
) -> tuple[tuple[Placed, ...], list[Tried]]:
    """Terms of the position that pay on each joint, family after family, and the alternatives.

    A term is first compared with none on all joints at once. As the spring of one joint makes the bodies wrong that
    move others, each of those that pay is then compared with all of them but itself.

    Args:
        wide: all candidate columns.
        divisions: the data.
        families: families of the model.
        couplings: couplings of the model.
        strength: strength of the prior.

    Returns:
        The terms that are taken, and all that were tried with the gain of the division in which they pay less.
    """
    names, slides = wide.regressor.model.joint_names, wide.regressor.model.slides.tolist()
    taken: tuple[Placed, ...] = ()
    rows: list[Tried] = []

    def compare(
        term: str, joints: Collection[str], without: Collection[Placed], placed: Collection[Placed]
    ) -> list[Tried]:
        """Gains on some joints, each in the division in which it pays less."""
        judged = np.array([name in joints for name in names])
        words = [f"{term.replace('_', ' ')} of {name}" for name in names]
        compared = []
        for division in divisions.each:
            before, after = (
                division.errors(Candidate(wide.columns_of(families, couplings, one), strength))
                for one in (without, placed)
            )
            loss = compute_relative_loss(after, before)
            compared.append(weigh_joints(STEP, words, before, after, judged, loss))
        return [min(of_joint, key=lambda row: row.gain - row.required) for of_joint in zip(*compared, strict=True)]

    for family in wide.position_families:
        (term,) = family.terms
        turning = isinstance(term, PositionPeriodic)
        joints = [name for name, slide in zip(names, slides, strict=True) if not (slide and turning)]
        if not joints:
            continue
        found = dict(
            zip(joints, compare(term.name, joints, taken, {*taken, *((j, term.name) for j in joints)}), strict=True)
        )
        paying = [(joint, term.name) for joint, row in found.items() if row.pays]
        if len(paying) > 1:
            for joint, _ in paying:
                others = {*taken, *paying} - {(joint, term.name)}
                (found[joint],) = compare(term.name, [joint], others, {*taken, *paying})
        taken += tuple(one for one in paying if found[one[0]].pays)
        rows += [replace(row, chosen=row.pays) for row in found.values()]
    return taken, rows
