# SPDX-License-Identifier: Apache-2.0
"""Commanded and measured positions of a recording, in stretches that can be simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import HeldCommands

LONGEST_WINDOW_S = 30.0
"""Longest stretch that is simulated from one initial state [s]: what is kept of it stays small."""

SHORT_WINDOW_S = 1.0
"""Length of the windows for a start [s]: simulations that begin again do not get far from the measured motion."""

GAP_PERIODS = 5.0
"""Sample periods between two samples that interrupt a motion: the reference in between is not known."""

LEAST_SAMPLES = 20
"""Least number of samples of a stretch."""


@dataclass(frozen=True)
class CommandedMotion:
    """Motion of n joints under position commands, N samples without a gap.

    Attributes:
        source: name of the recording, for messages.
        joint_names: names of the joints.
        t: times [s], shape (N,), increasing.
        q: measured positions [rad or m], shape (N, n).
        reference: commanded positions [rad or m], shape (N, n); each is held until the next.
        before: times, shape (E,), and commanded positions, shape (E, n), of the samples before the first one, which a
            delay reaches back to; None: not known, as at the beginning of a recording.
    """

    source: str
    joint_names: tuple[str, ...]
    t: Array = field(repr=False)
    q: Array = field(repr=False)
    reference: Array = field(repr=False)
    before: tuple[Array, Array] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check shapes and values.

        Raises:
            InputError: arrays of other shapes, values that are not finite, or times that do not increase.
        """
        shape = (len(self.t), len(self.joint_names))
        for name in ("q", "reference"):
            if getattr(self, name).shape != shape:
                raise InputError(f"{self.source}: {name} has shape {getattr(self, name).shape}, expected {shape}")
        finite = all(np.isfinite(values).all() for values in (self.t, self.q, self.reference))
        if not finite or len(self.t) < 2 or not np.all(np.diff(self.t) > 0.0):
            raise InputError(f"{self.source}: positions must be finite, at two or more increasing times")

    @property
    def held(self) -> tuple[Array, Array]:
        """Times, shape (M,), and commanded positions, shape (M, n), with those before."""
        if self.before is None:
            return self.t, self.reference
        return np.concatenate([self.before[0], self.t]), np.concatenate([self.before[1], self.reference])

    def commands(self, reach: float) -> HeldCommands:
        """The commanded positions as the kernels take them.

        Args:
            reach: time before the motion from which commands are needed [s].
        """
        at, reference = self.held
        first = max(0, int(np.searchsorted(at, self.t[0] - reach, side="right")) - 1)
        at, reference = np.ascontiguousarray(at[first:]), np.ascontiguousarray(reference[first:])
        return HeldCommands(np.ascontiguousarray(self.t), at, reference)

    @property
    def period(self) -> float:
        """Median sample period [s]."""
        return float(np.median(np.diff(self.t)))

    def within(self, lower: Array, upper: Array) -> CommandedMotion:
        """The motion with references within a range of each joint [rad or m], shape (n,) each."""
        before = self.before and (self.before[0], np.clip(self.before[1], lower, upper))
        return replace(self, reference=np.clip(self.reference, lower, upper), before=before)

    def joints(self, names: Sequence[str]) -> CommandedMotion:
        """The motion of some joints, in the order given."""
        columns = [self.joint_names.index(name) for name in names]
        before = self.before and (self.before[0], self.before[1][:, columns])
        return replace(
            self, joint_names=tuple(names), q=self.q[:, columns], reference=self.reference[:, columns], before=before
        )

    def part(self, first: int, last: int) -> CommandedMotion:
        """The samples from `first` to the one before `last`."""
        rows, (at, reference) = slice(first, last), self.held
        earlier = len(at) - len(self.t) + first
        before = (at[:earlier], reference[:earlier]) if earlier else None
        return replace(self, t=self.t[rows], q=self.q[rows], reference=self.reference[rows], before=before)

    def windows(self, length: float = LONGEST_WINDOW_S) -> Iterator[CommandedMotion]:
        """Stretches of equal length, the longest that are not above `length` [s]; the next begins where one ends."""
        count = max(1, int(np.ceil((self.t[-1] - self.t[0]) / length - 1e-9)))
        ends = np.linspace(0, len(self.t) - 1, count + 1).astype(int).tolist()
        for first, last in pairwise(ends):
            yield self.part(first, last + 1)


def read_motions(recording: Recording, joints: Sequence[str]) -> tuple[CommandedMotion, ...]:
    """Motions of a recording, cut where samples are missing; samples without position, reference or time are left out.

    Args:
        recording: the recording.
        joints: names of the joints.

    Raises:
        InputError: no commanded positions, or no stretch of `LEAST_SAMPLES` samples.
    """
    chunk = Chunk.join(list(recording.chunks(joints)))
    if chunk.reference is None:
        raise InputError(
            f"{recording.source}: no commanded positions: record them as `reference` (see docs/configuration.md), or "
            "name their topic with `reference_topic`"
        )
    complete = np.isfinite(chunk.t) & np.isfinite(chunk.q).all(axis=1) & np.isfinite(chunk.reference).all(axis=1)
    t, q, reference = chunk.t[complete], chunk.q[complete], chunk.reference[complete]
    newest = np.maximum.accumulate(t)
    later = np.concatenate([[True], t[1:] > newest[:-1]])[: len(t)]
    t, q, reference = t[later], q[later], reference[later]
    period = float(np.median(np.diff(t))) if len(t) > 1 else np.inf
    cuts = np.flatnonzero(np.diff(t) > GAP_PERIODS * period) + 1
    ends = [0, *cuts.tolist(), len(t)]
    motions = tuple(
        CommandedMotion(recording.source, tuple(joints), t[first:last], q[first:last], reference[first:last])
        for first, last in pairwise(ends)
        if last - first >= LEAST_SAMPLES
    )
    if not motions:
        raise InputError(
            f"{recording.source}: {len(t)} samples with position and reference of all joints in a row, expected at "
            f"least {LEAST_SAMPLES}: record a longer motion"
        )
    return motions
