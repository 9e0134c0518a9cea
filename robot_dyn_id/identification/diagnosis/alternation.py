# SPDX-License-Identifier: Apache-2.0
"""Samples that alternate between two sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.cleaning import Drive, read_reported_efforts
from robot_dyn_id.uses import NO, USES

SAMPLES_ALTERNATE = Definition(
    "samples_alternate",
    Section.HEALTH,
    "error",
    "Values of a channel go to and fro from each sample to the next, by more than noise does, as where two nodes "
    "publish joint states on one topic. A low-pass leaves their mean, which neither of them has measured.",
    "stop one of the two publishers (`ros2 topic info -v` names them), and record again",
    overrulable=True,
    lowers=dict.fromkeys(USES, NO),
    check="sign and unit",
)

LARGEST_OF_NOISE = 4.0
"""Mean squared difference of consecutive samples over that of every second sample. It is 1 for white noise, 3/2, 2 and
5/2 for noise that is differentiated once, twice and three times, and infinite for two constant values in turn."""


class AlternationObserver:
    """Observer of positions, velocities and efforts that alternate."""

    def __init__(self, source: str, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a recording of n joints, with drives of those whose effort is a current."""
        self.source, self.joints, self.drives = source, tuple(joints), drives
        self._sums = {name: np.zeros((2, len(joints))) for name in ("positions", "velocities", "efforts")}

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        efforts = read_reported_efforts(chunk, self.joints, self.drives)
        for name, values in (("positions", chunk.q), ("velocities", chunk.dq), ("efforts", efforts)):
            if values is not None and len(values) > 2:
                with np.errstate(over="ignore", invalid="ignore"):
                    steps, pairs = np.diff(values, axis=0)[1:] ** 2, (values[2:] - values[:-2]) ** 2
                    finite = np.isfinite(steps) & np.isfinite(pairs)
                    self._sums[name] += [np.where(finite, one, 0.0).sum(axis=0) for one in (steps, pairs)]

    def conclude(self) -> tuple[Finding, ...]:
        """Finding about channels that alternate."""
        found = {
            name: [self.joints[joint] for joint in np.flatnonzero(steps > LARGEST_OF_NOISE * pairs)]
            for name, (steps, pairs) in self._sums.items()
        }
        if not any(found.values()):
            return ()
        listed = "; ".join(f"{name} of {', '.join(joints)}" for name, joints in found.items() if joints)
        message = f"{self.source}: values alternate from sample to sample, as those of two publishers: {listed}"
        return (SAMPLES_ALTERNATE.found(message, dict.fromkeys(name for joints in found.values() for name in joints)),)
