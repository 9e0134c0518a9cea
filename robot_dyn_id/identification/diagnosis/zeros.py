# SPDX-License-Identifier: Apache-2.0
"""Estimation with zeros of the efforts that differ between recordings.

The model has one offset per joint, the mean of the zeros of all samples. Its parameters are estimated from what the
rows of a recording are above their mean (within transformation, Wooldridge 2010, section 10.5), so that their
covariance contains that the zeros are estimated as well. The offset of another recording is uncertain by the standard
deviation of the zeros between recordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.problem import Tile, find_used_rows
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Offset
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.bounded_intervals import NORMAL
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.zeros import EffortZeros

EFFORT_ZERO_UNKNOWN = Definition(
    "effort_zero_unknown",
    Section.HEALTH,
    "info",
    "The zeros of the efforts differ between the training recordings. The offset of the model is their mean, and "
    "the zero of another recording differs from it; validation states by how much.",
    "measure the zero in a known pose, and subtract it from the effort",
    check="drift",
)


def center_rows(problem: RecordedProblem, zeros: EffortZeros) -> RecordedProblem:
    """The problem whose rows have, for joints with zeros that differ, the same mean in each recording.

    Args:
        problem: the linear problem of all recordings.
        zeros: zeros of the efforts in these recordings.
    """
    joints, judged = zeros.joints, zeros.judged
    recordings = len(judged)
    counts = np.zeros((recordings, len(joints)))
    sums = [np.zeros((recordings, len(support) + 1)) for support in problem.supports]
    for tile in problem.tiles():
        if joints[tile.joint] and judged[tile.trial]:
            counts[tile.trial, tile.joint] += np.count_nonzero(find_used_rows(tile.block))
            sums[tile.joint][tile.trial] += tile.block.sum(axis=1)  # rows that are not used are zero
    shifts = [
        total.sum(axis=0) / max(count.sum(), 1.0) - total / np.maximum(count, 1.0)[:, None]
        for total, count in zip(sums, counts.T, strict=True)
    ]

    def tiles() -> Iterator[Tile]:
        for tile in problem.tiles():
            if joints[tile.joint] and judged[tile.trial]:
                shift = shifts[tile.joint][tile.trial][:, None]
                yield replace(tile, block=tile.block + np.where(find_used_rows(tile.block), shift, 0.0))
            else:
                yield tile

    return replace(problem, tiles=tiles)


def add_deviations(estimate: Estimate, regressor: Regressor, base: BaseParameters, zeros: EffortZeros) -> Estimate:
    """The estimate with the variance that the zero of another recording has about the mean.

    Args:
        estimate: estimate with the mean zeros as offsets.
        regressor: robot and terms.
        base: its base parameters.
        zeros: zeros of the efforts in the recordings.
    """
    variance = zeros.variances_of_another
    inertial = len(regressor.names) - len(regressor.term_columns)
    names = regressor.model.joint_names
    added = np.zeros_like(estimate.covariance)
    for number, column in enumerate(regressor.term_columns):
        if isinstance(column.term, Offset) and column.coordinate.name in names:
            effect = base.mapping[:, inertial + number]
            added += variance[names.index(column.coordinate.name)] * np.outer(effect, effect)
    deviations = np.sqrt(estimate.standard_deviations**2 + np.diag(added))
    return replace(
        estimate,
        covariance=estimate.covariance + added,
        standard_deviations=deviations,
        intervals=_widen(estimate, deviations, np.diag(added)),
    )


def _widen(estimate: Estimate, deviations: Array, added: Array) -> Array | None:
    """Intervals of the base parameters whose variance has increased by `added`, shape (p, 2)."""
    if estimate.intervals is None:
        return None
    symmetric = estimate.values[:, None] + NORMAL * deviations[:, None] * np.array([-1.0, 1.0])
    return np.where(added[:, None] > 0.0, symmetric, estimate.intervals)


def report_unknown_zeros(
    joint_names: Sequence[str], units: Sequence[str], deviations: Array, differences: Array | None = None
) -> tuple[Finding, ...]:
    """Finding about a model whose offsets are those of no recording, as the zeros of the efforts differ.

    Args:
        joint_names: names of the joints, n.
        units: units of their efforts.
        deviations: `ParameterSet.offset_deviations`.
        differences: zeros of the recordings that are predicted, relative to the model, shape (K, n); None: they are not
            known.
    """
    listed, names = [], []
    for number in np.flatnonzero(deviations).tolist():
        text = f"{joint_names[number]} {deviations[number]:.3g} {units[number]}"
        if differences is not None:
            text += " (here " + ", ".join(f"{one:+.3g}" for one in differences[:, number].tolist()) + ")"
        listed.append(text)
        names.append(joint_names[number])
    if not names:
        return ()
    message = (
        "the offset of the model is the mean of zeros that differ between recordings, with a standard deviation of, "
        f"joint {', '.join(listed)}"
    )
    return (EFFORT_ZERO_UNKNOWN.found(message, names),)
