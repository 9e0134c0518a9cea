# SPDX-License-Identifier: Apache-2.0
"""Splitting recordings into training and held-out data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from robot_dyn_id.data.chunk import Span
from robot_dyn_id.data.corrected import Corrected, Excerpt, as_corrected, whole_of
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import UsageError
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.signals.stillness import Stillness, find_stillness
from robot_dyn_id.wording import format_spans


def split(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    validation: Sequence[Recording] = (),
    train_range: tuple[float, float] | None = None,
) -> tuple[list[Recording], list[Recording]]:
    """Split recordings into training and held-out data.

    Without `validation` and `train_range` all recordings are training data, and a model is judged by cross-validation.
    Long rests are left out; a trial that is at rest throughout is a static pose to train on. `train_range` and
    `validation` are used as they are.

    Args:
        recordings: the trials.
        joints: names of the joints.
        validation: recordings to hold out.
        train_range: start and stop of the training data in a single recording [s]; the rest is held out.

    Returns:
        Training and held-out recordings; without held-out recordings the model is cross-validated.

    Raises:
        UsageError: an empty range, a range together with several trials, or a range that leaves nothing to hold out.
    """
    if train_range is not None:
        return _split_at(recordings, joints, validation, train_range)
    training = [_leave_out_rest(recording, _rest_of(recording, joints)) for recording in recordings]
    return training, list(validation)


def exclude_spans(recording: Recording, joints: Sequence[str], spans: Sequence[Span]) -> Corrected:
    """Leave times of a recording out.

    Args:
        recording: the complete recording.
        joints: names of the joints.
        spans: starts and stops [s], counted from the first stamp of the recording.

    Raises:
        UsageError: a span that is empty, reversed or outside of the recording, or spans that leave nothing.
    """
    length = _rest_of(recording, joints).length
    part = Excerpt(excluded=tuple(sorted(spans)))
    for start, stop in spans:
        if not start < stop:
            raise UsageError(f"exclude {start:g} to {stop:g} s: the first must be less than the second")
        if not (stop > 0.0 and start < length):
            raise UsageError(
                f"exclude {start:g} to {stop:g} s: {recording.source} lasts from 0 to {length:.1f} s, counted from its "
                "first sample"
            )
    if any(start <= 0.0 and stop >= length for start, stop in part.left_out):
        raise UsageError(f"exclude: nothing of {recording.source} is left, which lasts {length:.1f} s")
    return as_corrected(recording).select(part)


def _rest_of(recording: Recording, joints: Sequence[str]) -> Stillness:
    """Time at rest in the complete recording."""
    found = as_corrected(recording)
    return find_stillness(found.complete, joints) if found.observation is None else observation_of(found).stillness


def find_held_out_method(training: Sequence[Recording], held_out: Sequence[Recording]) -> str:
    """Origin of held-out recordings, one of `HELD_OUT_METHODS`: parts of the trained ones, or recordings of their own.

    Args:
        training: training data.
        held_out: held-out data; empty: cross-validation.
    """
    if not held_out:
        return "cross_validation"
    trained = [whole_of(recording) for recording in training]
    return "range" if any(whole_of(recording) is one for recording in held_out for one in trained) else "recordings"


def _cut(recording: Recording, start: float, stop: float, without: tuple[Span, ...] = ()) -> Corrected:
    """Part of a recording; what is excluded from it stays excluded."""
    whole = as_corrected(recording)
    return whole.select(replace(whole.excerpt, start=start, stop=stop, without=without))


def _leave_out_rest(recording: Recording, rest: Stillness, span: Span = (-math.inf, math.inf)) -> Recording:
    """Part of a recording without its time at rest, or with it if the recording does not move at all."""
    start, stop = span
    without = tuple(s for s in rest.spans if s[1] > start and s[0] < stop) if rest.moves else ()
    if not without and span == (-math.inf, math.inf):
        return recording
    ends_at_rest = bool(without) and without[-1][1] == rest.length
    return _cut(recording, start, min(stop, rest.length) if ends_at_rest else stop, without)


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
    train: list[Recording] = [_cut(recordings[0], start, stop)]
    if validation:
        return train, list(validation)
    rest = _rest_of(recordings[0], joints)
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
