# SPDX-License-Identifier: Apache-2.0
"""Samples that alternate between two sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.chance import find_critical_ratio
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

LARGEST_OF_NOISE = 2.5
"""Mean squared difference of consecutive samples over that of every second sample, of noise that is differentiated
three times. It is 1 for white noise, 3/2 and 2 for noise that is differentiated once and twice, and infinite for two
constant values in turn."""

POWERS = np.array([2.0, 4.0])
"""Powers of the differences whose sums are kept: they give the ratio, and what few large differences add to it."""


class AlternationObserver:
    """Observer of positions, velocities and efforts that alternate."""

    def __init__(self, source: str, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
        """Begin a recording of n joints, with drives of those whose effort is a current."""
        self.source, self.joints, self.drives = source, tuple(joints), drives
        # differences of consecutive samples, and of every second one, by their power and joint
        self._sums = {name: np.zeros((2, 2, len(joints))) for name in ("positions", "velocities", "efforts")}

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        efforts = read_reported_efforts(chunk, self.joints, self.drives)
        for name, values in (("positions", chunk.q), ("velocities", chunk.dq), ("efforts", efforts)):
            if values is not None and len(values) > 2:
                with np.errstate(over="ignore", invalid="ignore"):
                    differences = np.stack([np.diff(values, axis=0)[1:], values[2:] - values[:-2]])
                    powers = np.abs(differences[:, None]) ** POWERS[:, None, None]
                    finite = np.isfinite(powers).all(axis=(0, 1))
                    self._sums[name] += np.where(finite, powers, 0.0).sum(axis=2)

    def conclude(self) -> tuple[Finding, ...]:
        """Finding about channels that alternate."""
        channels = len(self._sums) * len(self.joints)
        found = {
            name: [self.joints[joint] for joint in np.flatnonzero(_alternate(sums[0], sums[1], channels))]
            for name, sums in self._sums.items()
        }
        if not any(found.values()):
            return ()
        listed = "; ".join(f"{name} of {', '.join(joints)}" for name, joints in found.items() if joints)
        message = f"{self.source}: values alternate from sample to sample, as those of two publishers: {listed}"
        return (SAMPLES_ALTERNATE.found(message, dict.fromkeys(name for joints in found.values() for name in joints)),)


def _alternate(steps: Array, pairs: Array, channels: int) -> Mask:
    """Whether the values of joints alternate by more than noise does by chance, shape (n,).

    Args:
        steps: sums of the powers of the differences of consecutive samples, shape (2, n).
        pairs: the same of every second sample.
        channels: number of channels of joints that are compared at once.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(steps[0] / (LARGEST_OF_NOISE * pairs[0]))
        variances = np.nan_to_num([steps[1] / steps[0] ** 2, pairs[1] / pairs[0] ** 2])  # of the logarithms of the sums
        counts = 1.0 / variances[0]
        critical = np.array([find_critical_ratio(count, channels) for count in counts.tolist()])
        return np.asarray(excess > critical * np.sqrt(variances.sum(axis=0)))
