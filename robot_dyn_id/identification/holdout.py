# SPDX-License-Identifier: Apache-2.0
"""Splitting recordings into training and held-out data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from robot_dyn_id.data.chunk import Span
from robot_dyn_id.data.excerpt import Excerpt
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import format_spans
from robot_dyn_id.signals.stillness import Stillness, stillness


def split(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    validation: Sequence[Recording] = (),
    train_range: tuple[float, float] | None = None,
) -> tuple[list[Recording], list[Recording]]:
    """Training and held-out data: as told, else the last trial that moves, else the last third of the only one.

    Long stillness is left out, and the third is one of the time that moves; a trial that stands still throughout is a
    posture to train on. `train_range` and `validation` are taken as they are.

    Raises:
        UsageError: an empty range, or a range together with several trials or other validation data.
        InputError: nothing that could be split.
    """
    if train_range is not None:
        return _split_at(recordings, joints, validation, train_range)
    seen = [stillness(recording, joints) for recording in recordings]
    if validation:
        return [_moving(*pair) for pair in zip(recordings, seen, strict=True)], list(validation)
    moving = [place for place, still in enumerate(seen) if still.moves] or list(range(len(recordings)))
    last = moving[-1]
    whole = [_moving(*pair) for pair in zip(recordings, seen, strict=True)]
    others = [recording for place, recording in enumerate(whole) if place != last]
    if len(moving) > 1:
        return others, [whole[last]]
    if seen[last].length == 0.0:
        raise InputError(f"{recordings[last].source}: only one sample, or time stamps that never advance")
    middle = seen[last].instant(2.0 / 3.0)
    train = _moving(recordings[last], seen[last], (0.0, middle))
    return [*others, train], [_moving(recordings[last], seen[last], (middle, math.inf))]


def _moving(recording: Recording, still: Stillness, span: Span = (-math.inf, math.inf)) -> Recording:
    """A part of a recording without its stillness, if it moves at all."""
    start, stop = span
    without = tuple(s for s in still.spans if s[1] > start and s[0] < stop) if still.moves else ()
    if not without and span == (-math.inf, math.inf):
        return recording
    ends = bool(without) and without[-1][1] == still.length
    return Excerpt(recording, start, min(stop, still.length) if ends else stop, without)


def _split_at(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    validation: Sequence[Recording],
    train_range: tuple[float, float],
) -> tuple[list[Recording], list[Recording]]:
    """Training data of a range, and the rest of the recording without its stillness."""
    start, stop = train_range
    if not (math.isfinite(start) and start < stop):
        raise UsageError(f"training range {start:g} to {stop:g} s: the first must be less than the second")
    if len(recordings) > 1:
        raise UsageError("a training range needs one recording; of several, name the one to hold out")
    train: list[Recording] = [Excerpt(recordings[0], start, stop)]
    if validation:
        return train, list(validation)
    still = stillness(recordings[0], joints)
    if start >= still.length:
        raise UsageError(
            f"training range {start:g} to {stop:g} s: {recordings[0].source} is only {still.length:.1f} s long"
        )
    sides = [(-math.inf, start)] if start > 0 else []
    sides += [(stop, math.inf)] if stop < still.length else []
    if not sides:
        raise UsageError(
            f"training range {start:g} to {stop:g} s leaves nothing to validate on: give held-out recordings as well"
        )
    rest = [side for side in sides if still.moves and any(a < side[1] and b > side[0] for a, b in still.moving())]
    if not rest:
        raise UsageError(
            f"training range {start:g} to {stop:g} s leaves nothing to validate on that moves: {recordings[0].source} "
            f"is at rest {format_spans(still.spans)}; give held-out recordings as well"
        )
    return train, [_moving(recordings[0], still, side) for side in rest]
