# SPDX-License-Identifier: Apache-2.0
"""Poses held at rest in a recording, and the direction from which each joint reached them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.signals.cleaning import NEVER_ADVANCE

SHORTEST_S = 0.4
"""Shortest rest that is a hold [s]."""

SETTLING_S = 0.2
"""Time after the last motion in which the drive settles, and which is left out [s]."""

LEAD_S = 0.1
"""Time before the next motion that is left out: the drive breaks static friction before the encoder moves [s]."""

STEPS = 3.0
"""Change of position that is a motion, in steps of the encoder."""

TRAVEL_RATIO = 2e-3
"""Change of position that is a motion, relative to the joint's range in the recording [-]."""


@dataclass(frozen=True)
class Holds:
    """Poses held at rest, N of them.

    Attributes:
        q: positions [rad or m], shape (n, N).
        drive: mean effort of the drives in their unit, shape (n, N).
        direction: direction of the last motion of each joint before the hold, 1, -1, or 0 if it did not move, shape
            (n, N).
    """

    q: Array
    drive: Array
    direction: Array

    def __len__(self) -> int:
        """Number of holds."""
        return int(self.q.shape[1])


@dataclass(frozen=True)
class _Track:
    """Stamps [s], shape (N,), positions [rad or m] and drive efforts, shape (N, n) each."""

    t: Array
    q: Array
    drive: Array


def find_holds(recordings: Sequence[Recording], joints: Sequence[str]) -> Holds:
    """Poses in which no joint moves.

    Args:
        recordings: recordings with positions, and currents or efforts in the unit of the drives.
        joints: names of the n joints.

    Raises:
        InputError: a recording without efforts and currents, or whose stamps never advance; no rest between motions.
    """
    found = [hold for recording in recordings for hold in _holds_of(_track(recording, joints))]
    if not found:
        raise InputError(
            f"no pose is held for {SHORTEST_S:g} s after a motion: stop at each pose, which is reached from both sides"
        )
    q, drive, direction = (np.array(values).T for values in zip(*found, strict=True))
    return Holds(q, drive, direction)


def _track(recording: Recording, joints: Sequence[str]) -> _Track:
    """All samples with finite values; the holds of an arm without torque sensors are some thousand samples long."""
    stamps, positions, drives = [], [], []
    for chunk in recording.chunks(joints):
        drive = chunk.tau if chunk.current is None else chunk.current
        if drive is None:
            raise InputError(
                f"{recording.source}: neither currents nor efforts: record what the drives need to hold the arm"
            )
        stamps.append(chunk.t)
        positions.append(chunk.q)
        drives.append(drive)
    t, q, drive = (np.concatenate(parts) for parts in (stamps, positions, drives))
    good = np.isfinite(t) & np.isfinite(q).all(axis=1) & np.isfinite(drive).all(axis=1)
    t, q, drive = t[good], q[good], drive[good]
    if len(t) > 1 and not (np.diff(t) > 0.0).any():
        raise InputError(f"{recording.source}: {NEVER_ADVANCE}")
    forward = t > np.maximum.accumulate(np.concatenate([[-np.inf], t[:-1]]))  # as `clean` does
    return _Track(t[forward], q[forward], drive[forward])


def _holds_of(track: _Track) -> Iterator[tuple[Array, Array, Array]]:
    """Mean position and drive of each hold, with the directions of the last motions."""
    if len(track.t) < 3:
        return
    step = _motion_step(track.q)
    last, direction = track.q[0].copy(), np.zeros(track.q.shape[1])
    moved = np.zeros(len(track.t), dtype=bool)
    directions = np.zeros_like(track.q)
    for number, q in enumerate(track.q):
        moving: Mask = np.abs(q - last) > step
        direction[moving] = np.sign(q - last)[moving]
        last[moving] = q[moving]
        moved[number] = moving.any()
        directions[number] = direction
    events = np.concatenate([np.flatnonzero(moved), [len(track.t)]])
    for begin, end in pairwise(events):
        rest: Integers = np.arange(begin, end)
        duration = track.t[rest[-1]] - track.t[begin]
        since = track.t[rest] - track.t[begin]
        rest = rest[(since >= SETTLING_S) & (since <= duration - LEAD_S)]
        if len(rest) > 1 and duration >= SHORTEST_S:
            yield track.q[rest].mean(axis=0), track.drive[rest].mean(axis=0), directions[begin].copy()


def _motion_step(q: Array) -> Array:
    """Change of position that is a motion, shape (n,)."""
    steps = []
    for values in q.T:
        apart = np.diff(np.unique(values))
        resolution = float(np.quantile(apart, 0.1)) if len(apart) else 0.0
        steps.append(max(STEPS * resolution, TRAVEL_RATIO * float(np.ptp(values)), 1e-9))
    return np.array(steps)
