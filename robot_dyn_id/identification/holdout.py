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
    """Split recordings into training and held-out data.

    By default the last trial that contains motion is held out, or the last third of the moving time of a single trial.
    Long rests are left out; a trial that is at rest throughout is a static pose to train on. `train_range` and
    `validation` are used as they are.

    Args:
        recordings: the trials.
        joints: names of the joints.
        validation: recordings to hold out; `recordings` are then all for training.
        train_range: start and stop of the training data in a single recording [s]; the rest is held out.

    Returns:
        Training and held-out recordings.

    Raises:
        UsageError: an empty range, a range together with several trials, or a range that leaves nothing to hold out.
        InputError: a recording that cannot be split.
    """
    if train_range is not None:
        return _split_at(recordings, joints, validation, train_range)
    rests = [stillness(recording, joints) for recording in recordings]
    without_rest = [_leave_out_rest(*pair) for pair in zip(recordings, rests, strict=True)]
    if validation:
        return without_rest, list(validation)
    moving = [number for number, rest in enumerate(rests) if rest.moves] or list(range(len(recordings)))
    last = moving[-1]
    others = [recording for number, recording in enumerate(without_rest) if number != last]
    if len(moving) > 1:
        return others, [without_rest[last]]
    if rests[last].length == 0.0:
        raise InputError(f"{recordings[last].source}: only one sample, or time stamps that never advance")
    boundary = rests[last].instant(2.0 / 3.0)
    train = _leave_out_rest(recordings[last], rests[last], (0.0, boundary))
    return [*others, train], [_leave_out_rest(recordings[last], rests[last], (boundary, math.inf))]


def _leave_out_rest(recording: Recording, rest: Stillness, span: Span = (-math.inf, math.inf)) -> Recording:
    """Part of a recording without its time at rest, or with it if the recording does not move at all."""
    start, stop = span
    without = tuple(s for s in rest.spans if s[1] > start and s[0] < stop) if rest.moves else ()
    if not without and span == (-math.inf, math.inf):
        return recording
    ends_at_rest = bool(without) and without[-1][1] == rest.length
    return Excerpt(recording, start, min(stop, rest.length) if ends_at_rest else stop, without)


def _split_at(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    validation: Sequence[Recording],
    train_range: tuple[float, float],
) -> tuple[list[Recording], list[Recording]]:
    """Split a recording at a training range; the remainder is held out without its time at rest."""
    start, stop = train_range
    if not (math.isfinite(start) and start < stop):
        raise UsageError(f"training range {start:g} to {stop:g} s: the first must be less than the second")
    if len(recordings) > 1:
        raise UsageError(
            f"a training range requires a single recording, not {len(recordings)}: specify held-out recordings instead"
        )
    train: list[Recording] = [Excerpt(recordings[0], start, stop)]
    if validation:
        return train, list(validation)
    rest = stillness(recordings[0], joints)
    if start >= rest.length:
        raise UsageError(
            f"training range {start:g} to {stop:g} s: {recordings[0].source} is only {rest.length:.1f} s long"
        )
    sides = [(-math.inf, start)] if start > 0 else []
    sides += [(stop, math.inf)] if stop < rest.length else []
    if not sides:
        raise UsageError(
            f"training range {start:g} to {stop:g} s leaves nothing to validate on: give held-out recordings as well"
        )
    moving = [side for side in sides if rest.moves and any(a < side[1] and b > side[0] for a, b in rest.moving())]
    if not moving:
        raise UsageError(
            f"training range {start:g} to {stop:g} s leaves nothing to validate on that moves: {recordings[0].source} "
            f"is at rest {format_spans(rest.spans)}; give held-out recordings as well"
        )
    return train, [_leave_out_rest(recordings[0], rest, side) for side in moving]
