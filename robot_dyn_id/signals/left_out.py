# SPDX-License-Identifier: Apache-2.0
"""Rows that are left out on purpose, in contrast to damaged ones, which are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_dyn_id.data.excerpt import Excerpt
from robot_dyn_id.data.exclusion import ExcludingRecording
from robot_dyn_id.data.recording import DerivedRecording, Recording


def count_left_out(recordings: Sequence[Recording], joints: Sequence[str], rate: float) -> Mapping[str, int]:
    """Count rows (samples times joints) that are left out on purpose.

    Args:
        recordings: the recordings, with all that they are derived from.
        joints: names of the joints.
        rate: sample rate [Hz].

    Returns:
        Number of rows by the code of the finding that reports them: the robot at rest, and stretches of single efforts.
    """
    seconds: dict[str, float] = {}

    def add(code: str, duration: float) -> None:
        seconds[code] = seconds.get(code, 0.0) + duration

    for recording in recordings:
        view: object = recording
        while isinstance(view, DerivedRecording):
            if isinstance(view, Excerpt):
                inside = ((max(start, view.start), min(stop, view.stop)) for start, stop in view.without)
                add("rest_left_out", len(joints) * sum(max(0.0, stop - start) for start, stop in inside))
            elif isinstance(view, ExcludingRecording):
                for span in view.efforts:
                    add(span.reason, span.stop - span.start if span.joint in joints else 0.0)
            view = view.recording
    return {code: round(rate * duration) for code, duration in sorted(seconds.items()) if duration > 0.0}
