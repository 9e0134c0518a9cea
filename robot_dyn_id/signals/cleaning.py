# SPDX-License-Identifier: Apache-2.0
"""Repair of a raw recording: what is dropped, why, and where the clock has gaps.

Positions of all joints are needed: samples without them are dropped. An effort or a velocity that is missing leaves the
sample to the other joints.

Every pass makes the same repairs; the counts of one pass are a `Repairs`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import LATEST, Chunk
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section

GAIN_UNUSED = Definition(
    "gain_unused",
    Section.DATA,
    "warning",
    "A gain is configured for a joint whose recorded effort is a torque already.",
    "remove `gain`, or record the current",
)

EFFORT_SOURCES_MIXED = Definition(
    "effort_sources_mixed",
    Section.DATA,
    "warning",
    "The efforts of some joints are computed from currents, those of others are recorded efforts.",
    "check that each joint's effort is in N m or N",
)

LARGEST_POSITION, LARGEST_SPEED, LARGEST_EFFORT, LARGEST_TEMPERATURE = 1e4, 1e4, 1e6, 1e3
"""Magnitudes [rad or m, per s, N m or N, degrees Celsius] that no arm reaches: rows beyond them are dropped."""

CLOSEST = 0.05
"""Stamps closer than this share of the median step are repeated ones: no interpolation stands two values so near."""

LONGEST_STEP, SHORTEST_STEP = 1.0, 1e-6
"""Median steps beyond these [s] are in another unit."""

GAP_STEPS = 5.0
"""Distance of two stamps, in median steps, above which there is a gap between them."""

STAMPS = 20_000
"""Samples that the median step of a recording is taken from."""

NEVER_ADVANCE = (
    "the time stamps never advance: check which column or field they are taken from, and the order of the samples"
)
"""Refusal of a recording in reverse order, or whose clock stands."""


@dataclass(frozen=True)
class Drive:
    """Conversion of the reported quantity of a drive into an effort.

    Attributes:
        gain: effort per motor current [N m/A or N/A]; None for drives that report N m or N.
        sign: 1, or -1 where the drive counts the other way.
        is_known: whether the gain is known; if not, it is relative to the mean of all drives, or 1, and the effort is
            the current that such a drive, or the drive itself, would have.
    """

    gain: float | None = None
    sign: float = 1.0
    is_known: bool = True

    @classmethod
    def from_unknown_gain(cls, sign: float, relative: float = 1.0) -> Drive:
        """Drive whose efforts are currents, as its gain is not known.

        Args:
            sign: see above.
            relative: gain as a ratio to the mean of all drives.
        """
        return cls(relative, sign, is_known=False)


@dataclass
class Repairs:
    """Counts of one pass over the recordings.

    Attributes:
        rows: samples read.
        dropped: samples dropped, by reason.
        missing: values of each joint that are missing or implausible in the other samples, by channel, shape (n,).
        gaps: interruptions of the clock that are too long to be bridged; the trial is split there.
        bridged: interruptions of the clock that are bridged.
    """

    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    missing: dict[str, Integers] = field(default_factory=dict)
    gaps: int = 0
    bridged: int = 0

    @property
    def total_dropped(self) -> int:
        """Samples dropped for any reason."""
        return sum(self.dropped.values())

    def drop(self, reason: str, count: int) -> None:
        """Count samples that were dropped."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def miss(self, channel: str, counts: Integers) -> None:
        """Count values of each joint that are missing."""
        if counts.any():
            self.missing[channel] = self.missing.get(channel, 0) + counts


def compute_median_step(recording: Recording, joints: Sequence[str]) -> float:
    """Median distance of the time stamps [s], from the first `STAMPS` samples of a recording.

    Raises:
        InputError: fewer than two samples, or stamps that never advance or are not in seconds.
    """
    return begin(recording.source, recording.chunks(joints))[0]


def begin(source: str, chunks: Iterator[Chunk]) -> tuple[float, Iterator[Chunk]]:
    """Begin a pass over a recording.

    Args:
        source: its name.
        chunks: its chunks.

    Returns:
        Median distance of its time stamps [s], and its chunks, of which those of the first `STAMPS` samples are held
        until they are read.

    Raises:
        InputError: see `compute_median_step`.
    """
    held: deque[Chunk] = deque()
    count = 0
    for chunk in chunks:
        held.append(chunk)
        count += len(chunk)
        if count >= STAMPS:
            break
    if count < 2:
        raise InputError(f"{source}: only {count} sample{'s' * (count != 1)}, nothing can be identified")
    steps = np.diff(np.concatenate([chunk.t for chunk in held])[:STAMPS])
    steps = steps[steps > 0]
    if not len(steps):
        raise InputError(f"{source}: {NEVER_ADVANCE}")
    step = float(np.median(steps))
    if not SHORTEST_STEP <= step <= LONGEST_STEP:
        raise InputError(f"{source}: its time stamps are {step:.3g} apart in the median: seconds are needed")

    def all_chunks() -> Iterator[Chunk]:
        while held:
            yield held.popleft()
        yield from chunks

    return step, all_chunks()


def clean(
    recording: Recording,
    joints: Sequence[str],
    drives: Mapping[str, Drive] | None,
    step: float,
    repairs: Repairs,
    longest_gap: float = 0.0,
) -> Iterator[tuple[int, Chunk]]:
    """Stream a recording with its efforts in N m or N and its clock going forward.

    Args:
        recording: the trial.
        joints: the columns wanted.
        drives: drives of the joints whose effort is a current, or has the wrong sign; None: efforts are not read.
        step: median distance of the stamps [s]; `GAP_STEPS` of them make a gap.
        repairs: counts are added to it.
        longest_gap: longest gap that does not begin a new segment [s].

    Yields:
        Number of the uninterrupted segment, and samples of it. Efforts and velocities that are missing are NaN.

    Raises:
        InputError: no efforts, or a current without a gain.
    """
    latest = last = -np.inf  # latest stamp of all usable samples, and of those that are kept
    segment = 0
    warmth = np.full((1, len(joints)), np.nan)
    for raw in recording.chunks(joints):
        repairs.rows += len(raw)
        chunk = _kinematics_only(raw) if drives is None else make_efforts(raw, recording, joints, drives)
        if chunk.temperature is not None:
            warmth = hold_values(chunk.temperature, warmth)
            chunk = replace(chunk, temperature=warmth)
        chunk, keep = _usable(chunk, repairs)
        forward = np.maximum.accumulate(np.concatenate([[latest], np.where(keep, chunk.t, -np.inf)]))
        latest = float(forward[-1])
        ahead = chunk.t - forward[:-1]
        repeated = keep & (ahead >= 0.0) & (ahead < CLOSEST * step)
        repairs.drop("time stamp repeated", int(np.count_nonzero(repeated)))
        repairs.drop("time stamp going backward", int(np.count_nonzero(keep & (ahead < 0.0))))
        keep &= ahead >= CLOSEST * step
        chunk = chunk if keep.all() else chunk.take(keep)
        if not len(chunk):
            continue
        steps = np.diff(chunk.t, prepend=last if np.isfinite(last) else chunk.t[0])
        jumps = np.flatnonzero(steps > max(GAP_STEPS * step, longest_gap))
        repairs.bridged += int(np.count_nonzero(steps > GAP_STEPS * step)) - len(jumps)
        last = float(chunk.t[-1])
        for number, part in enumerate(np.split(np.arange(len(chunk)), jumps)):
            if number > 0:
                segment += 1
                repairs.gaps += 1
            if len(part):
                yield segment, chunk.take(slice(part[0], part[-1] + 1))


def hold_values(values: Array, before: Array) -> Array:
    """Values with what is missing taken from the row before, as slower sensors need it, shape (n, joints).

    Args:
        values: values of consecutive samples, NaN where missing.
        before: earlier samples, of which the last counts.
    """
    joined = np.concatenate([before[-1:], values])
    latest = np.maximum.accumulate(np.where(np.isfinite(joined), np.arange(len(joined))[:, None], 0), axis=0)
    return np.take_along_axis(joined, latest, axis=0)[1:]


def _kinematics_only(raw: Chunk) -> Chunk:
    return Chunk(t=raw.t, q=raw.q, dq=raw.dq, temperature=raw.temperature, reference=raw.reference)


def _usable(chunk: Chunk, repairs: Repairs) -> tuple[Chunk, Mask]:
    """The chunk with NaN for efforts and velocities that are implausible, and its rows with usable positions.

    A row without the effort of any joint counts as dropped, although its positions are used.
    """
    keep = np.abs(chunk.t) <= LATEST  # false where not a number
    repairs.drop("time stamp not finite", int(np.count_nonzero(~keep)))
    channels = (
        ("position", chunk.q, LARGEST_POSITION),
        ("temperature", chunk.temperature, LARGEST_TEMPERATURE),
        ("reference", chunk.reference, LARGEST_POSITION),
    )
    for name, values, largest in channels:
        if values is None or _within(values, largest):
            continue
        finite = np.isfinite(values).all(axis=1)
        plausible = (np.abs(np.where(np.isfinite(values), values, 0.0)) <= largest).all(axis=1)
        repairs.drop(f"{name} missing or not finite", int(np.count_nonzero(keep & ~finite)))
        repairs.drop(f"{name} implausibly large", int(np.count_nonzero(keep & finite & ~plausible)))
        keep = keep & finite & plausible
    dq, tau = (
        values if values is None or _within(values, largest) else np.where(np.abs(values) <= largest, values, np.nan)
        for values, largest in ((chunk.dq, LARGEST_SPEED), (chunk.tau, LARGEST_EFFORT))
    )
    if dq is not None and dq is not chunk.dq:
        repairs.miss("velocity", np.count_nonzero(~np.isfinite(dq) & keep[:, None], axis=0))
    if tau is not None and chunk.tau is not None and tau is not chunk.tau:
        lost: Mask = np.asarray(~np.isfinite(tau) & keep[:, None])
        whole: Mask = np.asarray(lost.all(axis=1))
        finite = np.isfinite(chunk.tau).all(axis=1)
        repairs.drop("effort missing or not finite", int(np.count_nonzero(whole & ~finite)))
        repairs.drop("effort implausibly large", int(np.count_nonzero(whole & finite)))
        repairs.miss("effort", np.count_nonzero(lost & ~whole[:, None], axis=0))
    return replace(chunk, dq=dq, tau=tau), keep


def _within(values: Array, largest: float) -> bool:
    """Whether all values are numbers of at most this magnitude."""
    return bool((np.abs(values) <= largest).all())  # false where not a number


def make_efforts(raw: Chunk, recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]) -> Chunk:
    """The chunk with efforts in N m or N: currents times gain and sign where a joint has them.

    A joint with a gain takes its current; without a current channel its effort, unless the source says that this is a
    torque already. A sign without a gain turns the effort.

    Raises:
        InputError: no effort at all, or a current without a gain.
    """
    _check_gains(raw, recording, joints, drives)
    sources = [_source(raw, recording, joint, drives.get(joint, Drive())) for joint in joints]
    first = sources[0][0]
    if all(channel is first and factor == 1.0 for channel, factor in sources):
        tau = first
    else:
        tau = np.empty_like(raw.q)
        for column, (channel, factor) in enumerate(sources):
            tau[:, column] = channel[:, column] * factor
    return Chunk(t=raw.t, q=raw.q, dq=raw.dq, tau=tau, temperature=raw.temperature, reference=raw.reference)


def _source(raw: Chunk, recording: Recording, joint: str, drive: Drive) -> tuple[Array, float]:
    """The channel that a joint's effort is made of, and the factor; see `_check_gains`."""
    if drive.gain is not None and raw.current is not None:
        return raw.current, drive.gain * drive.sign
    assert raw.tau is not None
    if drive.gain is not None and recording.effort_is_torque:
        return raw.tau, 1.0
    return raw.tau, drive.sign * (1.0 if drive.gain is None else drive.gain)


def _check_gains(raw: Chunk, recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]) -> None:
    """Refuse a recording without efforts, and joints that have only a current and no gain.

    Raises:
        InputError: there are such joints; all of them are named.
    """
    if raw.tau is not None:
        return
    if raw.current is None:
        raise InputError(
            f"{recording.source}: no effort is recorded; identification needs efforts of every joint (effort of joint "
            "states; tau or current of arrays)"
        )
    missing = [joint for joint in joints if drives.get(joint, Drive()).gain is None]
    if missing:
        entries = ", ".join(f"{joint}: {{gain: ...}}" for joint in missing)
        raise InputError(
            f"{recording.source}: only currents of {', '.join(missing)} are recorded; give their gains [N m/A or N/A] "
            f"in the configuration, `joints: {{{entries}}}`"
        )


def flag_current(raw: Chunk, joints: Sequence[str], drives: Mapping[str, Drive]) -> Mask:
    """Joints whose effort is made of the current channel, shape (n,); see `make_efforts`."""
    gains = [drives.get(joint, Drive()).gain for joint in joints]
    return np.array([raw.current is not None and (raw.tau is None or gain is not None) for gain in gains], dtype=bool)


def read_reported_efforts(raw: Chunk, joints: Sequence[str], drives: Mapping[str, Drive]) -> Array | None:
    """Values that the efforts are made of, before gains and signs, shape (N, n); None where nothing is recorded."""
    if raw.tau is None or raw.current is None:
        return raw.current if raw.tau is None else raw.tau
    return np.where(flag_current(raw, joints, drives), raw.current, raw.tau)


def find_effort_sources(
    recording: Recording, joints: Sequence[str], drives: Mapping[str, Drive]
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Source of each joint's effort.

    Args:
        recording: the trial.
        joints: joints, n.
        drives: drives of the joints whose effort is a current, or has the wrong sign.

    Returns:
        Source of each joint's effort, such as `current x 3.1`, n; findings about gains.

    Raises:
        InputError: no effort at all, or a current without a gain.
    """
    first = next((chunk for chunk in recording.chunks(joints) if len(chunk)), None)
    if first is None:
        return ("",) * len(joints), ()
    _check_gains(first, recording, joints, drives)
    words, currents, unused = [], [], []
    for joint in joints:
        drive = drives.get(joint, Drive())
        channel, factor = _source(first, recording, joint, drive)
        is_current = channel is first.current
        words.append(("current" if is_current else "effort") + (f" x {factor:g}" if factor != 1.0 else ""))
        currents += [joint] if is_current else []
        unused += [joint] if drive.gain is not None and not is_current and recording.effort_is_torque else []
    findings = []
    if unused:
        message = f"the gain of {', '.join(unused)} is not used: the recording holds torques already"
        findings.append(GAIN_UNUSED.found(message, unused))
    if currents and len(currents) < len(joints):
        others = ", ".join(joint for joint in joints if joint not in currents)
        message = f"the efforts of {', '.join(currents)} are current times gain, those of {others} recorded efforts"
        findings.append(EFFORT_SOURCES_MIXED.found(message, joints))
    return tuple(words), tuple(findings)
