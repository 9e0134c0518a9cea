# SPDX-License-Identifier: Apache-2.0
"""Origin of a parameter set: its training data and how they are recognized.

A fingerprint holds the smallest of the digests of all samples (bottom-k sketch, Broder 1997). Which samples these are
depends on their content alone, so that a copy, a cut or every second sample of a recording shares them, whatever its
name and its time stamps. Where stamps are those of a clock, they show resampled copies too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.arrays import Array
from robot_dyn_id.parameters.rules import refused, rule

DIGESTS = 512
"""Number of digests that are kept of a set of recordings."""

LARGEST_DIGEST = 2**32 - 1

MIN_SHARED_DIGESTS = 3
"""Number of common digests below which they are taken for coincidence."""


@dataclass(frozen=True)
class Fingerprint:
    """Digests and time spans of recordings.

    Attributes:
        digests: the smallest digests, ascending, at most `DIGESTS`.
        starts: first stamp of each recording [s since the epoch of its clock]; 0 where stamps are not those of a clock.
        stops: last stamp of each recording [s].
    """

    digests: NDArray[np.uint32] = field(repr=False, metadata=rule(most=10_000))
    starts: Array = field(repr=False, metadata=rule("recordings", optional=True, finite=True))
    stops: Array = field(repr=False, metadata=rule("recordings", optional=True, finite=True))

    @classmethod
    def joined(cls, fingerprints: Sequence[Fingerprint]) -> Fingerprint:
        """Fingerprint of several recordings together."""
        digests = np.unique(np.concatenate([one.digests for one in fingerprints]))[:DIGESTS]
        starts, stops = (np.concatenate([getattr(one, name) for one in fingerprints]) for name in ("starts", "stops"))
        return cls(digests, starts, stops)

    @property
    def limit(self) -> int:
        """Largest digest up to which all are kept."""
        return int(self.digests[-1]) if len(self.digests) == DIGESTS else LARGEST_DIGEST

    def share_in(self, other: Fingerprint) -> float:
        """Estimated share of the samples that are samples of another fingerprint's recordings."""
        limit = min(self.limit, other.limit)
        ours = self.digests[self.digests <= limit]
        common = int(np.isin(ours, other.digests).sum())
        return common / len(ours) if common >= MIN_SHARED_DIGESTS else 0.0

    def common_with(self, other: Fingerprint) -> float:
        """Estimated share of the samples of one fingerprint that are those of the other; the larger of the two."""
        return max(self.share_in(other), other.share_in(self))

    def overlap_with(self, other: Fingerprint) -> float:
        """Share of the time that lies in the time spans of another fingerprint's recordings, by the same clock."""
        total, inside = 0.0, 0.0
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            total += stop - start
            parts = np.minimum(stop, other.stops) - np.maximum(start, other.starts)
            inside += min(stop - start, float(np.maximum(parts, 0.0).sum())) if start > 0.0 else 0.0
        return inside / total if total > 0.0 else 0.0

    def check(self) -> None:
        """Refuse stamps that are not pairs."""
        if len(self.starts) != len(self.stops):
            raise refused("provenance.fingerprint.starts and stops have different lengths")


@dataclass(frozen=True)
class Provenance:
    """Origin of a parameter set.

    Attributes:
        sources: recordings used for training.
        sha256: hash of their content.
        fingerprint: fingerprint of these recordings, by which held-out data are compared with them; its arrays are
            empty if it was not computed.
        estimator: name of the estimator.
        software_version: version of this package.
    """

    sources: tuple[str, ...] = field(metadata=rule(most=10_000))
    sha256: str = field(metadata=rule())
    fingerprint: Fingerprint
    estimator: str = field(metadata=rule())
    software_version: str = field(metadata=rule())
