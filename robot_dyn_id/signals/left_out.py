# SPDX-License-Identifier: Apache-2.0
"""Rows that are left out on purpose, in contrast to damaged ones, which are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.data.excerpt import Excerpt
from robot_dyn_id.data.exclusion import ExcludingRecording
from robot_dyn_id.data.recording import DerivedRecording, Recording


def count_left_out(recordings: Sequence[Recording], joints: Sequence[str]) -> Mapping[str, int]:
    """Count rows (samples times joints) that are left out on purpose.

    Args:
        recordings: the recordings, with all that they are derived from.
        joints: names of the joints.

    Returns:
        Number of rows by the code of the finding that reports them: the robot at rest, stretches of single efforts, and
        stretches with a frozen encoder, which count for all joints.
    """
    rows: dict[str, int] = {}

    def add(code: str, count: int) -> None:
        rows[code] = rows.get(code, 0) + count

    for recording in recordings:
        view: object = recording
        while isinstance(view, DerivedRecording):
            if isinstance(view, Excerpt) and view.left_out:
                moving = _count_samples(replace(view, excluded=()), joints)
                if view.without:
                    complete = _count_samples(replace(view, without=(), excluded=()), joints)
                    add("rest_left_out", len(joints) * (complete - moving))
                add("times_excluded", len(joints) * (moving - _count_samples(view, joints)))
            elif isinstance(view, ExcludingRecording):
                for code, count in view.count_efforts(joints).items():
                    add(code, count)
                if view.positions:
                    lost = _count_samples(view.recording, joints) - _count_samples(view, joints)
                    add("encoder_frozen", len(joints) * lost)
            view = view.recording
    return {code: count for code, count in sorted(rows.items()) if count}


def count_seams(recording: Recording) -> int:
    """Number of interruptions of a recording that are spans left out on purpose."""
    count = 0
    view: object = recording
    while isinstance(view, DerivedRecording):
        if isinstance(view, Excerpt | ExcludingRecording):
            count += view.seams
        view = view.recording
    return count


def _count_samples(recording: Recording, joints: Sequence[str]) -> int:
    """Number of samples with finite stamps."""
    return sum(int(np.count_nonzero(np.isfinite(chunk.t))) for chunk in recording.chunks(joints))
