# SPDX-License-Identifier: Apache-2.0
"""Joints that share one channel: the same values in every sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import Drive, read_reported_efforts
from robot_dyn_id.uses import NO, USES

CHANNELS_EQUAL = Definition(
    "channels_equal",
    Section.HEALTH,
    "error",
    "Positions or efforts of two joints are the same number in every sample, while they change: two sensors never "
    "agree to the last bit, so that one channel stands in the place of the other. A simulated robot may move two "
    "joints alike.",
    "correct the export or the driver, which writes one channel twice; overrule it if the joints do move alike",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="positions",
)

FEWEST_CHANGES = 16
"""Number of changes from sample to sample that two coarse sensors do not share by chance."""


class EqualityObserver:
    """Observer of channels of different joints with the same values."""

    def __init__(self, source: str, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a recording of joints, with drives of those whose effort is a current."""
        self.source, self.joints, self.drives = source, tuple(joints), drives
        pairs = list(combinations(range(len(joints)), 2))
        self._changes = {name: dict.fromkeys(pairs, 0) for name in ("positions", "efforts")}
        """Changes of each pair of joints whose values have been equal so far."""

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        self._compare("positions", chunk.q)
        self._compare("efforts", read_reported_efforts(chunk, self.joints, self.drives))

    def _compare(self, name: str, values: Array | None) -> None:
        if values is None:
            return
        self._changes[name] = {
            (one, other): changes + int(np.count_nonzero(np.abs(np.diff(values[:, one])) > 0.0))
            for (one, other), changes in self._changes[name].items()
            if np.array_equal(values[:, one], values[:, other], equal_nan=True)
        }

    def conclude(self) -> tuple[Finding, ...]:
        """Finding about joints that share a channel."""
        shared = {
            name: [pair for pair, changes in pairs.items() if changes >= FEWEST_CHANGES]
            for name, pairs in self._changes.items()
        }
        joints = [self.joints[number] for number in sorted({n for pairs in shared.values() for n in chain(*pairs)})]
        if not joints:
            return ()
        listed = "; ".join(
            f"{name} of {', '.join(f'{self.joints[one]} and {self.joints[other]}' for one, other in pairs)}"
            for name, pairs in shared.items()
            if pairs
        )
        return (CHANNELS_EQUAL.found(f"{self.source}: the same value in every sample: {listed}", joints),)
