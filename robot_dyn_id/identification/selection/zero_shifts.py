# SPDX-License-Identifier: Apache-2.0
"""Zeros of the efforts that differ between recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.residuals import EFFORT_OFFSET_DRIFTS, OFFSET_SHARE
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation, compute_relative_loss
from robot_dyn_id.identification.selection.engine import Tried, weigh_joints
from robot_dyn_id.identification.selection.wide import Wide
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.zeros import FEWEST_RECORDINGS, EffortZeros


def find_zeros(
    wide: Wide, validation: CrossValidation, candidate: Candidate, reference: Array
) -> tuple[tuple[int, ...], list[Tried]]:
    """Joints whose effort has another zero in each recording, and an alternative for each joint.

    The zero in a held-out block is that of the other blocks of its recording.

    Args:
        wide: all candidate columns.
        validation: the blocks.
        candidate: columns and strength of the model.
        reference: errors of the reference model, shape (blocks, n).
    """
    grams = validation.grams
    if wide.terms_given or grams.count_divided(validation.blocks) < FEWEST_RECORDINGS:
        return (), []
    joints = tuple(range(len(validation.weights)))
    before, after = validation.errors(candidate), validation.with_zeros(joints, None).errors(candidate)
    names, loss = wide.regressor.model.joint_names, compute_relative_loss(after, reference)
    rows = [replace(row, chosen=row.pays) for row in weigh_joints("effort_zero", names, before, after, loss=loss)]
    return tuple(joint for joint, row in enumerate(rows) if row.chosen), rows


def estimate_zeros(validation: CrossValidation, values: Array, *, all_rows: bool = False) -> EffortZeros:
    """Zeros of the efforts in the recordings that are divided into blocks.

    Args:
        validation: the blocks, and the joints whose zeros differ.
        values: parameters of all columns, shape (c,).
        all_rows: whether rows in no block are used too.
    """
    judged = validation.grams.recording_counts[:, list(validation.blocks)].any(axis=(0, 1))
    zeros, counts = validation.find_zeros(values, all_rows=all_rows), validation.count_rows(all_rows=all_rows)
    return EffortZeros(zeros, np.asarray(judged), counts)


def report_zeros(model: RobotModel, zeros: EffortZeros, tried: Sequence[Tried], variation: Array) -> Finding:
    """Finding about zeros that differ; a warning where they differ by a considerable share of the effort.

    Args:
        model: the robot.
        zeros: the zeros.
        tried: alternatives.
        variation: RMS of each joint's effort about its mean [N m or N], shape (n,).
    """
    gains = {row.name: row.gain for row in tried if row.step == "effort_zero"}
    deviations, units = zeros.deviations, model.effort_units
    places = np.flatnonzero(zeros.joints).tolist()
    names = [model.joint_names[j] for j in places]
    listed = ", ".join(
        f"{name} {deviations[j]:.3g} {units[j]} ({gains[name]:.0%} of its squared error)"
        for j, name in zip(places, names, strict=True)
    )
    message = (
        f"the zero of the effort differs between recordings, with a standard deviation of, joint {listed}: each "
        "recording was fitted with a zero of its own, and the model has the mean; the held-out errors are those with "
        "known zeros"
    )
    large = bool((deviations > OFFSET_SHARE * variation).any())
    return EFFORT_OFFSET_DRIFTS.found(message, names, "warning" if large else "info")
