# SPDX-License-Identifier: Apache-2.0
"""Residuals of a model along recordings, and the faults that they show: drifts, contacts, another load.

The residuals of a sound model look alike at the beginning and at the end of a recording, in all recordings and at all
times. Sums over short bins are kept, so that the memory does not grow with the sample rate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.data.chunk import Span
from robot_dyn_id.data.corrected import first_stamp, whole_of
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Offset, RotorInertia
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.zeros import report_unknown_zeros
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, USES
from robot_dyn_id.wording import format_shares

LOAD_CHANGED = Definition(
    "load_changed",
    Section.HEALTH,
    "warning",
    "Another load at the last link explains more than 20 % of the residuals of a recording, and 40 % of those of "
    "the clearest joint: the tool or payload was changed between recordings, or while one was recorded. An error where "
    "the model is chosen from a single recording, and another load in a part of it removes more than half of the "
    "squared error in blocks that the model was not fitted to: it has the mean of two loads.",
    "identify and validate with the same tool, or describe each tool by a URDF of its own",
    lowers=dict.fromkeys(USES, LIMITED),
    check="contact",
)

EFFORT_OFFSET_DRIFTS = Definition(
    "effort_offset_drifts",
    Section.HEALTH,
    "warning",
    "The zero of an effort sensor moves along a recording or between recordings. Where the model is chosen from "
    "the data and cross-validation shows it, each recording is fitted with a zero of its own, and the model has "
    "the mean. Information below 10 % of the effort's variation.",
    "zero the torque sensors before the recording, or record with one temperature of the drives",
    lowers=dict.fromkeys(("gravity_compensation", "collision_detection", "payload"), LIMITED),
    check="drift",
)

FRICTION_DRIFTS = Definition(
    "friction_drifts",
    Section.HEALTH,
    "warning",
    "The friction of a joint changes along a recording by more than 15 %: the drives warm up.",
    "warm up the robot before the recording",
    lowers=dict.fromkeys(("forward_simulation", "collision_detection"), LIMITED),
    check="drift",
)

CONTACT = Definition(
    "contact",
    Section.HEALTH,
    "warning",
    "For a short time the torque differs far more than usual from the model: the robot touched something, or the "
    "effort failed.",
    "record without contacts, or leave these times out with `exclude` in the configuration",
    lowers=dict.fromkeys(("collision_detection", "payload"), LIMITED),
    check="contact",
)

BIN_S = 0.25
"""Length of a bin [s]."""

MAX_BINS = 4096
"""Largest number of bins that are kept: those of longer recordings are merged to bins of twice the length."""

MAX_SHORT_BINS = 65536
"""Largest number of bins of `BIN_S` whose largest residuals are kept (4.5 hours); of longer recordings these are the
clearest ones, and the others are counted."""

COUNTS_PER_OCTAVE, COUNTED_OCTAVES = 32, (-48, 48)
"""Resolution and range of these counts, for magnitudes from 2^-48 to 2^48 N m or N."""

BLOCKS, SHORTEST_BLOCK_S = 12, 2.5
"""Number of contiguous blocks of a recording whose scatter shows what is significant, and their least length."""

FEWEST_BLOCKS = 6
"""Number of blocks below which no trend is judged."""

SIGNIFICANT_RATIO = 4.0
"""Trend or difference over its standard deviation above which it is reported."""

OFFSET_SHARE = 0.1
"""Change of a joint's zero, as a share of the RMS of its effort about the mean, above which it is reported."""

FRICTION_SHARE = 0.15
"""Relative change of a joint's friction along a recording above which it is reported."""

CONTACT_RATIO, SINGLE_CONTACT_RATIO, USUAL_QUANTILE = 3.3, 5.0, 0.9
"""Largest residual of a bin over the usual one, a quantile over all bins, above which it counts as a contact:
geometric mean of the two clearest joints, and that of a robot with one joint. One joint alone shows friction that the
model does not contain more often than a contact."""

CONTACT_SHARE = 0.1
"""Share of bins above which large residuals are not contacts but the model's own error."""

LOAD_SHARE, LOAD_JOINT_SHARE = 0.2, 0.4
"""Share of the residual's power, and of that of the clearest joint, which a change of the last link's mass explains on
data that it was not fitted to, above which the load has changed: sound recordings reach 0.09 and 0.45."""

LOAD_BLOCKS, SHORTEST_LOAD_BLOCK_S = 24, 0.5
"""Number of contiguous blocks of a recording of which some may have another load than the rest, and least length."""

LOAD_SPEED_SHARE = 0.05
"""Velocity of a joint, as a share of the largest one until then, below which its residuals show no load."""

LOAD_COLUMNS = 4
"""Mass and first moments of the last link, by which another load is found."""


@dataclass(frozen=True)
class ShortBins:
    """Largest residuals of n joints in bins of `BIN_S`: of all bins, or of the B clearest and the counts of the others.

    Attributes:
        t: time of each bin [s], shape (B,).
        trial: number of the trial of each bin, shape (B,).
        largest: largest magnitude [N m or N], shape (n, B).
        others: number of other bins by magnitude, shape (n, H).
    """

    t: Array
    trial: Array
    largest: Array
    others: Integers

    @classmethod
    def empty(cls, joints: int) -> ShortBins:
        """No bins of a number of joints."""
        low, high = COUNTED_OCTAVES
        counts = np.zeros((joints, (high - low) * COUNTS_PER_OCTAVE), dtype=np.int64)
        return cls(np.zeros(0), np.zeros(0), np.zeros((joints, 0)), counts)

    @property
    def count(self) -> int:
        """Number of all bins."""
        return len(self.t) + int(self.others[0].sum())

    @cached_property
    def usual(self) -> Array:
        """Quantile `USUAL_QUANTILE` of the largest magnitudes [N m or N], shape (n,)."""
        if not self.others.any():
            return np.asarray(np.quantile(self.largest, USUAL_QUANTILE, axis=1))
        middle = 2.0 ** (COUNTED_OCTAVES[0] + (np.arange(self.others.shape[1]) + 0.5) / COUNTS_PER_OCTAVE)
        found = []
        for largest, counts in zip(self.largest, self.others, strict=True):
            values = np.concatenate([largest, middle])
            order = np.argsort(values)
            below = np.cumsum(np.concatenate([np.ones(len(largest), dtype=np.int64), counts])[order])
            found.append(values[order][np.searchsorted(below, USUAL_QUANTILE * below[-1])])
        return np.array(found)

    @cached_property
    def ratio(self) -> Array:
        """Largest magnitudes over the usual ones, shape (n, B)."""
        usual = self.usual[:, None]
        return np.divide(self.largest, usual, out=np.zeros_like(self.largest), where=usual > 0)

    @cached_property
    def clarity(self) -> Array:
        """Geometric mean of the ratios of the two clearest joints, or the ratio of a single joint, shape (B,)."""
        ordered = np.sort(self.ratio, axis=0)
        return np.asarray(np.sqrt(ordered[-1] * ordered[-2]) if len(ordered) > 1 else ordered[-1])

    def with_bins(self, t: Array, trial: Array, largest: Array) -> ShortBins:
        """The same with later bins; if there are too many, half of the largest number are kept."""
        whole = ShortBins(
            np.append(self.t, t),
            np.append(self.trial, trial),
            np.concatenate([self.largest, largest], axis=1),
            self.others,
        )
        if len(whole.t) <= MAX_SHORT_BINS:
            return whole
        order = np.argsort(-whole.clarity, kind="stable")
        kept, rest = np.sort(order[: MAX_SHORT_BINS // 2]), order[MAX_SHORT_BINS // 2 :]
        smallest = 2.0 ** COUNTED_OCTAVES[0]
        octaves = np.log2(np.maximum(whole.largest[:, rest], smallest)) - COUNTED_OCTAVES[0]
        place = np.minimum((octaves * COUNTS_PER_OCTAVE).astype(np.int64), self.others.shape[1] - 1)
        counts = [np.bincount(one, minlength=self.others.shape[1]) for one in place]
        return ShortBins(whole.t[kept], whole.trial[kept], whole.largest[:, kept], self.others + np.array(counts))


@dataclass(frozen=True)
class ResidualHistory:
    """Sums over B bins of the residuals of n joints, measured minus predicted torque, both low-passed.

    Attributes:
        joint_names: the joints.
        width: length of a bin [s].
        short: largest magnitudes in bins of `BIN_S`, however long the recordings are; their times count from the first
            stamp of the complete recording.
        t: time of each bin from the beginning of its trial [s], shape (B,).
        trial: number of the trial of each bin, shape (B,).
        sources: names of the complete recordings, by number of the trial.
        count: number of samples, shape (n, B).
        total: sum of the residuals [N m or N], shape (n, B).
        power: sum of their squares, shape (n, B).
        largest: largest magnitude, shape (n, B).
        friction: sums of the predicted friction, of its square, and of its product with the residual, shape (3, n, B).
        effort: sums of the measured effort and of its square, shape (2, n, B).
        load_gram: products of the columns of the last link's mass and first moments where a joint moves, shape
            (n, B, 4, 4).
        load_product: their products with the residual, shape (n, B, 4).
    """

    joint_names: tuple[str, ...]
    width: float
    short: ShortBins
    t: Array
    trial: Integers
    sources: tuple[str, ...]
    count: Array
    total: Array
    power: Array
    largest: Array
    friction: Array
    effort: Array
    load_gram: Array
    load_product: Array

    @classmethod
    def from_trials(cls, model: IdentifiedModel, trials: FilteredTrials) -> ResidualHistory | None:
        """Sum the residuals of a model along trials; None if no sample is usable."""
        parts: list[tuple[Array, ...]] = []
        width, most = BIN_S, max(MAX_BINS, 2 * len(trials.recordings))
        names = model.regressor.model.joint_names
        short = ShortBins.empty(len(names))
        for part in _bin_sums(model, trials):
            parts.append(part)
            short = short.with_bins(part[0], part[1], part[_LARGEST])
            while sum(len(one[0]) for one in parts) > most:
                width *= 2.0
                parts = [_merge_bins(_join_bins(parts), width)]
        if not parts:
            return None
        t, trial, *sums = _join_bins(parts)
        starts = {number: t[trial == number].min() for number in np.unique(trial)}
        begun = np.array([starts[number] for number in trial])
        first = {int(number): first_stamp(trials.recordings[int(number)], names) for number in starts}
        short = replace(short, t=short.t - np.array([first[int(number)] for number in short.trial]))
        sources = tuple(whole_of(recording).source for recording in trials.recordings)
        return cls(names, width, short, t - begun, trial.astype(np.int64), sources, *sums)

    @cached_property
    def swing(self) -> Array:
        """RMS of the effort of each joint about its mean [N m or N], shape (n,)."""
        count = np.maximum(self.count.sum(axis=1), 1)
        mean, square = self.effort.sum(axis=2) / count
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))

    @cached_property
    def rms(self) -> Array:
        """RMS of the residual of each joint [N m or N], shape (n,)."""
        return np.asarray(np.sqrt(self.power.sum(axis=1) / np.maximum(self.count.sum(axis=1), 1)))


_AXES = (0, 0, 1, 1, 1, 1, 2, 2, 1, 1)
"""Axis of the bins in the arrays of `ResidualHistory`, from `t` on."""

_LARGEST = 5
"""Number of the largest magnitude among these arrays; all others but the first two are sums."""


def _join_bins(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Sums of consecutive bins, end to end."""
    return tuple(
        np.concatenate(arrays, axis=axis) for arrays, axis in zip(zip(*parts, strict=True), _AXES, strict=True)
    )


def _merge_bins(sums: tuple[Array, ...], width: float) -> tuple[Array, ...]:
    """Sums of bins that are merged to longer ones; trials stay apart.

    Args:
        sums: sums of consecutive bins, in the order of the attributes of `ResidualHistory`.
        width: length of the longer bins [s].
    """
    t, trial = sums[:2]
    edges = np.flatnonzero((np.diff(np.floor(t / width), prepend=-np.inf) != 0.0) | (np.diff(trial, prepend=-1) != 0))
    return (
        t[edges],
        trial[edges],
        *(
            (np.maximum if number == _LARGEST else np.add).reduceat(one, edges, axis=axis)
            for number, (one, axis) in enumerate(zip(sums[2:], _AXES[2:], strict=True), start=2)
        ),
    )


@dataclass(frozen=True)
class Levels:
    """Zero and friction of n joints in each of K trials, with standard deviations from a jackknife over blocks.

    Attributes:
        offset: mean residual where the predicted friction is zero [N m or N], shape (K, n).
        offset_change: change of it along the trial [N m or N], shape (K, n).
        friction_change: change of the friction along the trial, as a ratio to the predicted one, shape (K, n).
        deviations: standard deviations of the three, shape (3, K, n).
    """

    offset: Array
    offset_change: Array
    friction_change: Array
    deviations: Array

    @classmethod
    def from_residuals(cls, residuals: ResidualHistory) -> Levels:
        """Fit r = a + b x + (c + d x) f to each trial, x from -1/2 to 1/2 along it, f the predicted friction."""
        fits = [_fit_trial(residuals, number) for number in np.unique(residuals.trial)]
        values, deviations = (np.array(arrays) for arrays in zip(*fits, strict=True))  # (K, n, 4)
        kept = [0, 1, 3]
        offset, offset_change, friction_change = np.moveaxis(values[..., kept], 2, 0)
        return cls(offset, offset_change, friction_change, np.moveaxis(deviations[..., kept], 2, 0))

    def clearest_change(self, changes: Array, deviations: Array) -> tuple[Array, Array]:
        """Change with the largest ratio to its standard deviation among all trials, and that ratio, shape (n,) each."""
        ratio = np.abs(changes) / np.maximum(deviations, 1e-300)
        place = np.argmax(ratio, axis=0)[None]
        return np.take_along_axis(changes, place, 0)[0], np.take_along_axis(ratio, place, 0)[0]

    def clearest_difference(self) -> tuple[Array, Array]:
        """Difference of a trial's zero from the mean of the others, as `clearest_change`; short trials do not count."""
        judged = np.isfinite(self.deviations[0]).all(axis=1)
        count, offset = int(judged.sum()), self.offset[judged]
        if count < 2:
            return np.zeros(offset.shape[1]), np.zeros(offset.shape[1])
        difference = (offset - offset.mean(axis=0)) * count / (count - 1)
        variance = self.deviations[0, judged] ** 2
        others = (variance.sum(axis=0) - variance) / (count - 1) ** 2
        return self.clearest_change(difference, np.sqrt(variance + others))


def _block_edges(residuals: ResidualHistory, inside: Mask, most: int, shortest: float) -> Integers:
    """First bin of each contiguous block of a trial.

    Args:
        residuals: residuals of all trials.
        inside: bins of the trial, mask of shape (B,).
        most: largest number of blocks.
        shortest: least length of a block [s].
    """
    t = residuals.t[inside]
    length = float(t.max()) + residuals.width
    blocks = max(1, min(most, int(length / shortest)))
    number = np.minimum((t / length * blocks).astype(np.int64), blocks - 1)
    return np.flatnonzero(np.diff(number, prepend=-1))


def _fit_trial(residuals: ResidualHistory, number: int) -> tuple[Array, Array]:
    """Parameters of `Levels.from_residuals` of one trial and their standard deviations, shape (n, 4) each.

    Standard deviations are infinite where a trial has too few blocks.
    """
    inside = residuals.trial == number
    t, edges = residuals.t[inside], _block_edges(residuals, inside, BLOCKS, SHORTEST_BLOCK_S)
    x = t / max(float(t.max()), residuals.width) - 0.5
    f, ff, fr = residuals.friction[..., inside]
    one, r = residuals.count[:, inside], residuals.total[:, inside]
    zero = np.stack([one, one * x, f, f * x])
    rows = [zero, zero * x, np.stack([f, f * x, ff, ff * x]), np.stack([f * x, f * x**2, ff * x, ff * x**2])]
    gram = np.add.reduceat(np.stack(rows), edges, axis=-1).transpose(3, 2, 0, 1)  # blocks, joints, 4, 4
    product = np.add.reduceat(np.stack([r, r * x, fr, fr * x]), edges, axis=-1).transpose(2, 1, 0)
    values = _solve(gram.sum(axis=0), product.sum(axis=0))
    if len(edges) < FEWEST_BLOCKS:
        return values, np.full(values.shape, np.inf)
    without = _solve(gram.sum(axis=0) - gram, product.sum(axis=0) - product)
    return values, np.sqrt((len(edges) - 1) * ((without - without.mean(axis=0)) ** 2).mean(axis=0))


def _bin_sums(model: IdentifiedModel, trials: FilteredTrials) -> Iterator[tuple[Array, ...]]:
    """Sums over the bins of each window, in the order of the attributes of `ResidualHistory`."""
    regressor, plan = model.regressor, trials.plan
    bodies, inertial = Regressor(regressor.model), 10 * len(regressor.model.body_names)
    fastest = np.zeros((len(regressor.model.joint_names), 1))
    sliding = np.array(
        [
            column >= inertial
            and not isinstance(regressor.term_columns[column - inertial].term, (Offset, RotorInertia))
            for column in model.columns
        ]
    )
    for window in trials.along(regressor):
        if window.tau is None or not window.used.any():
            continue
        own = np.flatnonzero(window.own)
        valid = window.valid[:, own].astype(np.float64)
        measured, predicted = (
            plan.low_pass.apply(torque, plan.rate)[:, own] for torque in (window.tau, model.torque(window.motion))
        )
        residual = valid * (measured - predicted)
        friction = valid * regressor.torque(window.motion.take(own), model.values[sliding], model.columns[sliding])
        speed = np.abs(window.motion.dq[:, own])
        fastest = np.maximum(fastest, speed.max(axis=1, keepdims=True))
        moves = speed > LOAD_SPEED_SHARE * fastest  # dry friction holds a joint at rest at any torque within its own
        load = valid * moves * _load_torques(bodies, window.motion.take(own))
        edges = np.flatnonzero(np.diff(np.floor(window.t[own] / BIN_S), prepend=-np.inf))
        pairs = [np.add.reduceat(one * load, edges, axis=2) for one in load]
        yield (
            window.t[own][edges],
            np.full(len(edges), window.trial),
            np.add.reduceat(valid, edges, axis=1),
            np.add.reduceat(residual, edges, axis=1),
            np.add.reduceat(residual**2, edges, axis=1),
            np.maximum.reduceat(np.abs(residual), edges, axis=1),
            np.add.reduceat(np.stack([friction, friction**2, friction * residual]), edges, axis=2),
            np.add.reduceat(valid * np.stack([measured, measured**2]), edges, axis=2),
            np.stack(pairs).transpose(2, 3, 0, 1),
            np.add.reduceat(load * residual, edges, axis=2).transpose(1, 2, 0),
        )


def _load_torques(bodies: Regressor, motion: Motion) -> Array:
    """Torques of unit mass and unit first moments of the last body, shape (4, n, N)."""
    first = 10 * (len(bodies.model.body_names) - 1)
    return bodies.dense(motion, columns=slice(first, first + LOAD_COLUMNS))


def examine_residuals(model: IdentifiedModel, trials: FilteredTrials) -> tuple[Finding, ...]:
    """Findings about drifts, contacts and loads along the trials that a model was identified from."""
    residuals = ResidualHistory.from_trials(model, trials)
    if residuals is None:
        return ()
    levels = Levels.from_residuals(residuals)
    return (
        *_examine_offsets(residuals, levels),
        *_examine_friction(residuals, levels),
        *_examine_contacts(residuals),
        *_examine_load(residuals, whole=bool(residuals.trial.any())),
    )


def _select(residuals: ResidualHistory, change: Array, flags: Mask) -> list[tuple[str, float]]:
    return [
        (name, float(value)) for name, value, flag in zip(residuals.joint_names, change, flags, strict=True) if flag
    ]


def _examine_offsets(residuals: ResidualHistory, levels: Levels) -> tuple[Finding, ...]:
    """Zeros of the efforts that move along a trial or between trials."""
    findings = []
    for where, (change, ratio) in (
        ("along a recording", levels.clearest_change(levels.offset_change, levels.deviations[1])),
        ("between recordings", levels.clearest_difference()),
    ):
        share = np.divide(np.abs(change), residuals.swing, out=np.zeros_like(change), where=residuals.swing > 0)
        moved = (ratio > SIGNIFICANT_RATIO) & (share > OFFSET_SHARE)
        if moved.any():
            which = _select(residuals, share, moved)
            message = (
                f"the zero of the effort moves {where}, by a share of the effort's variation of {format_shares(which)}"
            )
            findings.append(EFFORT_OFFSET_DRIFTS.found(message, [name for name, _ in which]))
    return tuple(findings)


def _examine_friction(residuals: ResidualHistory, levels: Levels) -> tuple[Finding, ...]:
    """Friction that changes along a trial, of single joints or of all together."""
    change, ratio = levels.clearest_change(levels.friction_change, levels.deviations[2])
    changed = (ratio > SIGNIFICANT_RATIO) & (np.abs(change) > FRICTION_SHARE)
    weight = 1.0 / np.maximum(levels.deviations[2], 1e-6) ** 2
    total = weight.sum(axis=1)
    mean = np.divide((weight * levels.friction_change).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    together = (np.abs(mean) * np.sqrt(total) > SIGNIFICANT_RATIO) & (np.abs(mean) > FRICTION_SHARE)
    if not (changed.any() or together.any()):
        return ()
    which = _select(residuals, change, changed | together.any())
    message = f"friction changes along a recording: {format_shares(which)}"
    return (FRICTION_DRIFTS.found(message, [name for name, _ in which]),)


def _examine_contacts(residuals: ResidualHistory) -> tuple[Finding, ...]:
    """Short times of residuals far above the usual ones."""
    short = residuals.short
    touched = short.clarity > (CONTACT_RATIO if len(residuals.joint_names) > 1 else SINGLE_CONTACT_RATIO)
    touched &= ~_flag_ends(short, touched)
    # where all bins that are kept are large, others may be too
    if not touched.any() or touched.all() or touched.sum() > CONTACT_SHARE * short.count:
        return ()
    largest = short.ratio[:, touched].max(axis=1)
    joints = [name for name, one in zip(residuals.joint_names, largest, strict=True) if one > 0.5 * largest.max()]
    found: dict[str, list[Span]] = {}
    for number in np.unique(short.trial[touched]).tolist():
        times = short.t[touched & (short.trial == number)]
        begins = np.flatnonzero(np.diff(times, prepend=-np.inf) > 2 * BIN_S)
        ends = times[np.append(begins[1:], len(times)) - 1] + BIN_S
        found[residuals.sources[int(number)]] = list(zip(times[begins].tolist(), ends.tolist(), strict=True))
    several = len(residuals.sources) > 1
    first = [f"{start:.1f} s" + several * f" of {source}" for source, spans in found.items() for start, _ in spans]
    listed = ", ".join(first[:5]) + (", ..." if len(first) > 5 else "")
    message = (
        f"for a short time the torque differs far more than usual from the model ({', '.join(joints)}): at {listed}"
    )
    lines = {source: f"[{', '.join(map(_exclusion_of, spans))}]" for source, spans in found.items()}
    entries = ", ".join(f"{json.dumps(Path(source).name)}: {line}" for source, line in lines.items())
    line = f"{{{entries}}}" if several else next(iter(lines.values()))
    action = f"record without contacts, or leave these times out with `exclude: {line}` in the configuration"
    return (CONTACT.found(message, joints, action=action),)


def _flag_ends(short: ShortBins, touched: Mask) -> Mask:
    """Bins of stretches that begin or end a trial, shape (B,): a contact is a short time between usual ones."""
    ends = np.zeros(len(touched), dtype=bool)
    for number in np.unique(short.trial):
        of_trial = np.flatnonzero(short.trial == number)
        for order in (of_trial, of_trial[::-1]):
            usual = np.flatnonzero(~touched[order])
            ends[order[: usual[0]] if len(usual) else order] = True
    return ends


def _exclusion_of(span: Span) -> str:
    """A span with a bin on both sides, as the configuration states it."""
    return f"[{max(0.0, span[0] - BIN_S):.1f}, {span[1] + BIN_S:.1f}]"


def examine_held_out(model: IdentifiedModel, held_out: FilteredTrials, deviations: Array) -> tuple[Finding, ...]:
    """Findings about held-out data: another load at the last link, and zeros of efforts that differ.

    Args:
        model: the identified model.
        held_out: recordings that were not used.
        deviations: `ParameterSet.offset_deviations` of the model.
    """
    residuals = ResidualHistory.from_trials(model, held_out)
    if residuals is None:
        return ()
    robot = model.regressor.model
    differences = Levels.from_residuals(residuals).offset if deviations.any() else None
    zeros = report_unknown_zeros(robot.joint_names, robot.effort_units, deviations, differences)
    return (*_examine_load(residuals, whole=True), *zeros)


@dataclass(frozen=True)
class _LoadChange:
    """Loads at the last link, inside a stretch of a trial and outside of it, that explain the residuals of the trial.

    Attributes:
        share: share of the power of the residuals that is explained, joints weighted by their noise.
        clearest: largest such share of one joint.
        mass: mass inside minus that outside, or the mass of a whole trial [kg].
        start: begin of the stretch from that of the trial [s], 0 for a whole trial.
        stop: its end [s], infinite if it ends with the trial.
    """

    share: float
    clearest: float
    mass: float
    start: float = 0.0
    stop: float = np.inf

    @property
    def is_clear(self) -> bool:
        """Whether the load explains so much that it has changed."""
        return self.share > LOAD_SHARE and self.clearest > LOAD_JOINT_SHARE

    @property
    def when(self) -> str:
        """Times of the stretch as text; empty for a whole trial."""
        if self.start == 0.0:
            return ""
        return f", from about {self.start:.0f} " + ("s on" if self.stop == np.inf else f"to {self.stop:.0f} s")


def _examine_load(residuals: ResidualHistory, *, whole: bool) -> tuple[Finding, ...]:
    """Load at the last link that explains the residuals of a trial, or of a stretch of it.

    Args:
        residuals: residuals of the trials.
        whole: whether a load of a whole trial can differ from that of the model.
    """
    noise = residuals.rms
    weight = np.divide(1.0, noise**2, out=np.zeros_like(noise), where=noise > 0)
    changes = [
        change
        for number in np.unique(residuals.trial)
        for change in _list_load_changes(residuals, number, weight, whole=whole)
        if change.is_clear
    ]
    if not changes:
        return ()
    best = max(changes, key=lambda change: change.share)
    message = (
        f"another load at the last link, by {best.mass:+.2g} kg{best.when}, explains {best.share:.0%} of the "
        "residuals of a recording"
    )
    return (LOAD_CHANGED.found(message),)


def _list_load_changes(residuals: ResidualHistory, number: int, weight: Array, *, whole: bool) -> list[_LoadChange]:
    """Loads of one trial: one for all of it, and those inside and outside of stretches of blocks that explain more.

    Mass and first moments are fitted to every other block, and judged on the blocks between them.
    """
    inside = residuals.trial == number
    edges = _block_edges(residuals, inside, LOAD_BLOCKS, SHORTEST_LOAD_BLOCK_S)
    count, starts = len(edges), residuals.t[inside][edges]
    grams = np.add.reduceat(residuals.load_gram[:, inside], edges, axis=1)
    products = np.add.reduceat(residuals.load_product[:, inside], edges, axis=1)
    power = residuals.power[:, inside].sum(axis=1)
    halves = np.arange(count) % 2 == np.array([[1], [0]])

    def explain(blocks: Mask) -> tuple[Array, Array]:
        """Power per joint that one load of each set of blocks, (s, count), explains, (s, n), and its mass, (s,)."""
        parts = (blocks[:, None] & halves).astype(np.float64)
        gram, product = np.tensordot(parts, grams, (2, 1)), np.tensordot(parts, products, (2, 1))
        weighted, targets = np.einsum("j,shjkl->shkl", weight, gram), np.einsum("j,shjk->shk", weight, product)
        others = _solve(weighted, targets)[:, ::-1]
        explained = np.einsum("shjk,shk->sj", 2.0 * product - np.einsum("shjkl,shl->shjk", gram, others), others)
        return explained, _solve(weighted.sum(axis=1), targets.sum(axis=1))[:, 0]

    def change(explained: Array, mass: float, **times: float) -> _LoadChange:
        shares = np.divide(explained, power, out=np.zeros_like(power), where=power > 0)
        return _LoadChange(float(weight @ explained / (weight @ power)), float(shares.max()), float(mass), **times)

    visible = halves & (np.einsum("j,jekk->e", weight, grams) > 0.0)
    if weight @ power <= 0.0 or not visible.any(axis=1).all():
        return []
    everything = np.ones((1, count), dtype=bool)
    common = change(*(values[0] for values in explain(everything)))
    changes = [common] if whole else []
    bounds = np.array(list(combinations(range(1, count + 1), 2)), dtype=np.int64).reshape(-1, 2)
    stretches = (np.arange(count) >= bounds[:, :1]) & (np.arange(count) < bounds[:, 1:])
    judged = [(sets @ visible.T.astype(np.int64) > 0).all(axis=1) for sets in (stretches, ~stretches)]
    chosen = np.logical_and(*judged)
    if not chosen.any():
        return changes
    within, without = explain(stretches[chosen]), explain(~stretches[chosen])
    for (first, last), explained, mass in zip(
        bounds[chosen].tolist(), within[0] + without[0], within[1] - without[1], strict=True
    ):
        stretched = change(explained, mass, start=float(starts[first]), stop=float([*starts, np.inf][last]))
        if stretched.share > common.share + LOAD_SHARE:
            changes.append(stretched)
    return changes


def _solve(gram: Array, product: Array) -> Array:
    """Least squares with a ridge of 1e-6 of the diagonal.

    Args:
        gram: shape (..., k, k).
        product: shape (..., k).
    """
    diagonal = np.diagonal(gram, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(axis=-1, keepdims=True) + 1e-300))
    scaled = gram / (scale[..., :, None] * scale[..., None, :]) + 1e-6 * np.eye(gram.shape[-1])
    return np.asarray(np.linalg.solve(scaled, (product / scale)[..., None])[..., 0] / scale)
