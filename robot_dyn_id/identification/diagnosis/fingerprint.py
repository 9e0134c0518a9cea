# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of recordings, by which training data are recognized among held-out data; see `Fingerprint`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.data.chunk import LATEST, Chunk
from robot_dyn_id.data.corrected import Excerpt, first_of
from robot_dyn_id.data.observer import observe
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.parameters import Fingerprint
from robot_dyn_id.parameters.provenance import DIGESTS
from robot_dyn_id.uses import LIMITED, USES

RECORDING_REPEATED = Definition(
    "recording_repeated",
    Section.DATA,
    "warning",
    "Two training recordings have samples in common: they count twice, so that standard deviations and "
    "cross-validated errors are too small.",
    "leave one of the recordings out",
    check="repetition",
)

HELD_OUT_IN_TRAINING = Definition(
    "held_out_in_training",
    Section.VALIDATION,
    "warning",
    "Held-out data are among the training data, or among those of a parameter set that is the prior: the same "
    "samples under any name, a part of them, or a recording of the same time by the same clock.",
    "validate on a recording of its own, or identify without held-out data: the model is cross-validated then",
    lowers=dict.fromkeys(USES, LIMITED),
    check="repetition",
)

LARGEST_VALUE = 1e30
"""Magnitude to which values are limited for single precision."""

REPORTED_SHARE = 0.05
"""Share of common samples, or of common time, above which it is reported."""

REFUSED_SHARE = 0.5
"""Share of common samples above which a recording is not added to earlier ones: most of it would count twice."""

EARLIEST_CLOCK_S = 1e8
"""Time stamps below this [s] count from the start of a recording or a simulation, not from an epoch."""


def take_fingerprint(recording: Recording, joints: Sequence[str]) -> Fingerprint:
    """Fingerprint of all samples of a recording.

    Args:
        recording: the recording.
        joints: joints whose positions and efforts count.

    Raises:
        InputError: a recording that cannot be read.
    """
    observer = FingerprintObserver(recording.epoch)
    observe(recording, joints, observer)
    return observer.conclude()


class FingerprintObserver:
    """Observer of the digests and the time span of a recording, or of a part of it."""

    def __init__(self, epoch: int, part: Excerpt | None = None) -> None:
        """Begin a recording with an epoch (see `Recording`), of which a part counts; None: all of it."""
        self.epoch, self.part = epoch, part
        self._digests = np.zeros(0, dtype=np.uint32)
        self._origin: float | None = None
        self._first, self._last = np.inf, -np.inf

    def observe(self, chunk: Chunk) -> None:
        """See `Observer`."""
        if self.part is not None:
            self._origin = first_of(chunk.t) if self._origin is None else self._origin
            chunk = chunk.take(self.part.kept(chunk.t - (np.nan if self._origin is None else self._origin)))
        stamps = chunk.t[np.abs(chunk.t) <= LATEST]  # false where not a number
        self._digests = np.union1d(self._digests, digest_samples(chunk))[:DIGESTS]
        self._first = min(self._first, stamps.min(initial=np.inf))
        self._last = max(self._last, stamps.max(initial=-np.inf))

    def conclude(self) -> Fingerprint:
        """The fingerprint."""
        epoch = 1e-9 * self.epoch
        dated = np.isfinite(self._first) and self._first + epoch >= EARLIEST_CLOCK_S
        first, last = (time + epoch if dated else 0.0 for time in (self._first, self._last))
        return Fingerprint(self._digests, np.array([first]), np.array([last]))


def digest_samples(chunk: Chunk) -> NDArray[np.uint32]:
    """Digest of position and effort of each sample, shape (N,).

    Values count in single precision: a copy as text need not be exact to the last bit. The mixing function is that of
    splitmix64 (Steele, Lea and Flood 2014).
    """
    effort = chunk.current if chunk.tau is None else chunk.tau
    channels = np.nan_to_num(np.column_stack([chunk.q] if effort is None else [chunk.q, effort]))
    limited = np.clip(channels, -LARGEST_VALUE, LARGEST_VALUE)
    bits = np.ascontiguousarray(limited.astype(np.float32) + np.float32(0.0)).view(np.uint32)  # -0.0 becomes 0.0
    digest = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        digest = (digest + column + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        digest = (digest ^ (digest >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        digest ^= digest >> np.uint64(31)
    return (digest >> np.uint64(32)).astype(np.uint32)


def report_repeated(recordings: Sequence[Recording], fingerprints: Sequence[Fingerprint]) -> tuple[Finding, ...]:
    """Findings about training recordings that repeat samples of an earlier one."""
    findings = []
    for number, (recording, ours) in enumerate(zip(recordings, fingerprints, strict=True)):
        for other, theirs in zip(recordings[:number], fingerprints[:number], strict=True):
            share = ours.common_with(theirs)
            if share > REPORTED_SHARE:
                message = f"{recording.source} and {other.source} have {share:.0%} of the samples of one in common"
                findings.append(RECORDING_REPEATED.found(message))
                break
    return tuple(findings)


def report_trained(
    recordings: Sequence[Recording],
    fingerprints: Sequence[Fingerprint],
    trained: Fingerprint,
    name: str = "training data",
) -> tuple[Finding, ...]:
    """Findings about held-out recordings that the model, or its prior, was identified from.

    Args:
        recordings: held-out recordings; under cross-validation all.
        fingerprints: their fingerprints.
        trained: fingerprint of the data that model or prior were identified from.
        name: name of these data in messages.
    """
    findings = []
    for recording, ours in zip(recordings, fingerprints, strict=True):
        samples, time = ours.share_in(trained), ours.overlap_with(trained)
        if samples > REPORTED_SHARE:
            message = f"{samples:.0%} of the samples of {recording.source} are {name}"
        elif time > REPORTED_SHARE:
            message = f"{time:.0%} of {recording.source} was recorded while the {name} were"
        else:
            continue
        findings.append(
            HELD_OUT_IN_TRAINING.found(f"{message}: the error there is that of the fit, not of a prediction")
        )
    return tuple(findings)


def report_added(
    recordings: Sequence[Recording], fingerprints: Sequence[Fingerprint], earlier: Fingerprint, held_out: bool = False
) -> tuple[Finding, ...]:
    """Findings about recordings that repeat samples of the earlier ones that they are added to.

    Args:
        recordings: recordings that are added, or held out.
        fingerprints: their fingerprints.
        earlier: fingerprint of the earlier recordings.
        held_out: whether the recordings are held out, and not added.

    Raises:
        InputError: most of a recording is among the earlier ones, or most of these are in it.
    """
    findings = []
    for recording, ours in zip(recordings, fingerprints, strict=True):
        share = ours.common_with(earlier)
        message = (
            f"{recording.source} and the recordings of the factor have {share:.0%} of the samples of one in common"
        )
        if share > REFUSED_SHARE:
            use = "held out" if held_out else "added"
            raise InputError(f"{message}: it cannot be {use}; leave it out, or use a factor without it")
        if share > REPORTED_SHARE and not held_out:
            findings.append(RECORDING_REPEATED.found(message))
    if held_out:
        return report_trained(recordings, fingerprints, earlier, "recordings of the factor")
    return tuple(findings)
