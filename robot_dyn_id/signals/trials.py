# SPDX-License-Identifier: Apache-2.0
"""Surveyed and filtered recordings: the stream that identification, validation and prediction read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.corrected import KeptSpans, Stored, as_corrected, excluded_mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.stream_store import STREAMS, Identity, StreamStore
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.problem import Tile
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.parameters import ParameterSet, Ranges
from robot_dyn_id.signals.blocks import ALL_FITS, BLOCKS, Blocks, KeptBlocks
from robot_dyn_id.signals.cleaning import Drive, Repairs, clean, compute_median_step
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import RecordedProblem, SignalPlan, filter_window
from robot_dyn_id.signals.ranges import measure_ranges
from robot_dyn_id.signals.strokes import RecordedStrokes
from robot_dyn_id.signals.survey import Survey, survey
from robot_dyn_id.signals.term_states import integrate_states
from robot_dyn_id.signals.windows import FilteredWindow, Window, cut_windows
from robot_dyn_id.signals.zeros import EffortZeros

EXCLUDED_PERIODS = 0.5
"""Time around efforts that are left out whose rows are left out too, in periods of the cut-off."""

MAX_OVERSAMPLING = 10.0
"""Largest rate of the uniform grid, as a multiple of the rate of the recordings: more samples hold nothing new."""

SHORTEST_SPAN_PERIODS = 40.0
"""Shortest span of an excerpt, in periods of the cut-off; the cut ends of a segment take five of them."""


@dataclass(frozen=True)
class SignalSettings:
    """Choices about signals; what is not chosen follows from the recordings.

    Attributes:
        cutoff: cut-off frequency of the zero-phase regression filter [Hz]; None: from the recordings.
        filter_order: Butterworth order of each pass of both filters.
        velocity: `recorded`, `derivative` of the positions, `logistic`: functions of the angle on logistic strokes, or
            `auto`: recorded if it agrees with the positions.
        period: period of a periodic motion [s]; 0: unknown.
        motion_cutoff: cut-off frequency of the zero-phase motion filter [Hz]; None: equal to `cutoff`, or from the
            recordings if that is.
        velocity_required: whether recorded velocities that are missing are refused; if not, derivatives replace them.
        sample_rate: rate of the uniform grid that recordings are interpolated to [Hz]; None: from the recordings.
    """

    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    period: float = 0.0
    motion_cutoff: float | None = None
    velocity_required: bool = True
    sample_rate: float | None = None

    @classmethod
    def from_parameters(cls, parameters: ParameterSet, velocity: str = "auto") -> SignalSettings:
        """Choices about signals with the filters of a parameter set.

        Args:
            parameters: the identified model.
            velocity: `recorded`, `derivative` of the positions, or `auto`: as the model was identified, with
                derivatives where no velocities are recorded.
        """
        own = velocity == "auto"
        return cls(
            cutoff=parameters.processing.cutoff_frequency,
            filter_order=parameters.processing.filter_order,
            velocity=parameters.processing.velocity_source if own else velocity,
            motion_cutoff=parameters.processing.motion_cutoff_frequency,
            velocity_required=not own,
        )


@dataclass(frozen=True)
class FilteredTrials:
    """Recordings with all decisions about their signals: a stream of filtered windows.

    Iterating starts a new pass over all trials and yields the same windows each time; their segments are numbered
    consecutively. Filtered windows are computed in the first pass, and read from a store in later ones.

    Attributes:
        recordings: the trials.
        joints: names of the joints, in the order of all arrays.
        drives: gains and signs of joints whose recorded effort is a current.
        plan: decisions about the signals.
        need_effort: whether samples without efforts are dropped; without it efforts are not read.
        keep_edges: whether the ends of segments are kept (prediction) or cut off (estimation).
        surveyed: survey of these recordings where it has been made already.
        known_ranges: ranges of their motion where they have been computed already.
        kept: blocks whose rows are used; None: all rows, guards included.
        zeros: zeros of the efforts in each recording, which are subtracted; None: there is only that of the model.
        store: filtered windows of each recording and tiles of problems, shared with all trials that are derived from
            these; None: every pass computes them again.
    """

    recordings: Sequence[Recording]
    joints: Sequence[str]
    drives: Mapping[str, Drive]
    plan: SignalPlan
    need_effort: bool = True
    keep_edges: bool = False
    surveyed: Survey | None = field(default=None, repr=False, compare=False)
    known_ranges: Ranges | None = field(default=None, repr=False, compare=False)
    kept: KeptBlocks | None = None
    zeros: EffortZeros | None = None
    store: StreamStore | None = field(default_factory=StreamStore, repr=False, compare=False)

    @classmethod
    def from_recordings(
        cls,
        recordings: Sequence[Recording],
        joints: Sequence[str],
        drives: Mapping[str, Drive],
        settings: SignalSettings,
        *,
        need_effort: bool = True,
        keep_edges: bool = False,
    ) -> FilteredTrials:
        """Survey recordings and decide about their signals.

        Args:
            recordings: the trials.
            joints: names of the joints.
            drives: gains and signs of joints whose recorded effort is a current.
            settings: choices about signals.
            need_effort: see the attribute.
            keep_edges: see the attribute.

        Raises:
            InputError: the recordings have no usable samples, or a period is not a whole number of samples.
            UsageError: recorded velocities are requested, but not recorded.
        """
        surveyed = survey(recordings, joints, drives, need_effort)
        trials = cls.from_survey(surveyed, recordings, drives, settings)
        return replace(trials, need_effort=need_effort, keep_edges=keep_edges)

    @classmethod
    def from_survey(
        cls, surveyed: Survey, recordings: Sequence[Recording], drives: Mapping[str, Drive], settings: SignalSettings
    ) -> FilteredTrials:
        """Decide about the signals of recordings that have been surveyed; see `from_recordings`."""
        joints, plan = surveyed.joint_names, plan_signals(surveyed, settings)
        plan = plan.periodic(settings.period) if settings.period else plan
        if settings.velocity == "logistic":
            plan = replace(plan, strokes=RecordedStrokes.from_recordings(recordings, joints))
        surveyed = surveyed.with_longest_gap(plan.longest_gap)
        store = StreamStore(streams=STREAMS * (1 + len(recordings)))
        return cls(recordings, joints, drives, plan, surveyed=surveyed, store=store)

    def __iter__(self) -> Iterator[FilteredWindow]:
        """Start a pass."""
        return map(self._select, self._undivided())

    def _undivided(self) -> Iterator[FilteredWindow]:
        """Start a pass with the rows of all blocks and the efforts as they are recorded."""
        base = 0
        for trial, recording in enumerate(self.recordings):
            last = -1
            for window in self._filtered(trial):
                last = window.segment
                margin = EXCLUDED_PERIODS / self.plan.low_pass.cutoff
                valid = window.valid & ~excluded_mask(recording, self.joints, window.t, margin)
                yield replace(window, segment=base + window.segment, trial=trial, valid=valid)
            base += last + 1

    def _select(self, window: FilteredWindow) -> FilteredWindow:
        """An undivided window with the rows of the blocks that are kept, and its efforts less their zeros."""
        valid, tau = window.valid, window.tau
        if self.kept is not None:
            valid = valid & self.kept.mask(window.trial, window.t)
        if self.zeros is not None and tau is not None:
            tau = tau - self.zeros.values[window.trial][:, None]
        return replace(window, valid=valid, tau=tau)

    def _filtered(self, trial: int) -> Iterator[FilteredWindow]:
        """Start a pass over the filtered windows of one recording, their segments numbered from 0."""

        def start() -> Iterator[FilteredWindow]:
            for window in self._windows(trial):
                yield filter_window(window, self.plan, self.keep_edges)

        if self.store is None or self.plan.strokes is not None:
            return start()
        return self.store.stream(("windows", self._key_of(trial)), start, lambda window: window.nbytes)

    @property
    def signals_key(self) -> Hashable:
        """Key that is equal for trials whose filtered windows differ in nothing but their blocks and zeros."""
        if self.plan.strokes is not None:
            return Identity(self)
        return tuple(self._key_of(trial) for trial in range(len(self.recordings)))

    def _key_of(self, trial: int) -> tuple[Hashable, ...]:
        """Key of all that the filtered windows of one recording depend on."""
        drives = tuple(sorted(self.drives.items())) if self.need_effort else None
        plan = replace(self.plan, slowest=(), rest=0.0, row_stride=1, period=None)
        return Identity(self.recordings[trial]), tuple(self.joints), drives, plan, self.keep_edges

    def tiles(self, problem: RecordedProblem) -> Iterator[Tile]:
        """Tiles of a problem of these trials, kept from its first pass on if it is repeated, else from the second.

        Those of some blocks alone are those of all, with rows of zeros.
        """
        if self.store is None or self.plan.strokes is not None:
            yield from problem.compute_tiles(self)
            return
        whole = replace(self, kept=None)
        zeros = None if self.zeros is None else self.zeros.values.tobytes()
        key = ("tiles", self.signals_key, self.plan, zeros, Identity(problem.regressor), problem.columns.tobytes())
        last, left_out = (-1, np.nan), np.zeros(0, dtype=bool)
        skipped = 0 if problem.repeated else 1
        for tile in self.store.stream(key, lambda: problem.compute_tiles(whole), lambda tile: tile.nbytes, skipped):
            block = tile.block.copy()  # readers overwrite it
            if self.kept is not None and tile.t is not None:
                place = (tile.segment, float(tile.t[0]))
                if place != last:  # all joints have the same stamps
                    last, left_out = place, ~self.kept.mask(tile.trial, tile.t)
                block[:, left_out] = 0.0
            yield replace(tile, block=block)

    def along(self, regressor: Regressor) -> Iterator[FilteredWindow]:
        """Start a pass with the states of a regressor's terms in the motion, integrated along each segment.

        Everything that evaluates a regressor along recordings uses this pass.
        """
        return integrate_states(self, regressor, 1.0 / self.plan.rate)

    def windows(self) -> Iterator[Window]:
        """Start a pass over the windows before they are filtered."""
        base = 0
        for trial in range(len(self.recordings)):
            last = -1
            for window in self._windows(trial):
                last = window.segment
                yield replace(window, segment=base + window.segment)
            base += last + 1

    def _windows(self, trial: int) -> Iterator[Window]:
        """Start a pass over the windows of one recording, their segments numbered from 0."""
        recording, step = self.recordings[trial], self._steps[trial]
        drives, cut = self.drives if self.need_effort else None, replace(self.plan.cut, recorded_step=step)
        for window in cut_windows(clean(recording, self.joints, drives, step, Repairs(), cut.longest_gap), cut):
            yield replace(window, trial=trial)

    @cached_property
    def survey(self) -> Survey:
        """Survey of the recordings.

        Raises:
            InputError: see `signals.survey.survey`.
        """
        if self.surveyed is not None:
            return self.surveyed
        surveyed = survey(self.recordings, self.joints, self.drives, self.need_effort)
        return surveyed.with_longest_gap(self.plan.longest_gap)

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges of the motion.

        Raises:
            InputError: no sample is used.
        """
        return self.known_ranges or measure_ranges(self)

    @property
    def max_speeds(self) -> Array:
        """Maximum speed of each joint [rad/s or m/s], shape (n,)."""
        return self.ranges.dq_max

    @property
    def offset_deviations(self) -> Array:
        """Standard deviation of the zero of each joint's effort between recordings; empty if not known."""
        return np.zeros(0) if self.zeros is None else self.zeros.deviations

    @cached_property
    def _steps(self) -> tuple[float, ...]:
        if self.surveyed is not None:
            return self.surveyed.steps
        return tuple(compute_median_step(recording, self.joints) for recording in self.recordings)

    @property
    def sources(self) -> str:
        """Names of the recordings, for messages."""
        return ", ".join(recording.source for recording in self.recordings)

    def problem(
        self, regressor: Regressor, columns: Integers, prior: Prior | None = None, *, repeated: bool = False
    ) -> RecordedProblem:
        """Linear problem of some columns of a regressor; see `RecordedProblem.from_windows`.

        Args:
            regressor: robot and terms.
            columns: columns that are the parameters, shape (p,).
            prior: prior knowledge of the parameters, or None.
            repeated: whether several passes over its tiles will be made, so that they are kept from the first one on.
        """
        problem = RecordedProblem.from_windows(regressor, columns, self, self.plan, prior)
        problem = replace(problem, repeated=repeated)
        return replace(problem, tiles=lambda: self.tiles(problem))

    def require_length(self) -> None:
        """Refuse recordings that are too short for the filter.

        Raises:
            InputError: no stretch without interruption is long enough.
        """
        longest = max(self.survey.durations)
        needed = (2 * self.plan.edge + 16) / self.plan.rate
        if longest < needed:
            raise InputError(
                f"{self.sources}: the longest uninterrupted stretch lasts {longest:.2f} s; "
                f"a cut-off of {self.plan.low_pass.cutoff:.3g} Hz needs {needed:.4g} s: record for longer"
            )

    def with_thresholds(self, slowest: tuple[float, ...], rest: float = 0.0) -> FilteredTrials:
        """The same windows with low-velocity thresholds: rows of slower joints are excluded.

        Args:
            slowest: threshold of each joint [rad/s or m/s].
            rest: speed below which a joint is at rest, and its rows are kept [rad/s or m/s].
        """
        return replace(self, plan=replace(self.plan, slowest=slowest, rest=rest), known_ranges=self.ranges)

    def decimated(self) -> FilteredTrials:
        """The same recordings with only as many filtered samples per second as the filters need.

        Those of a periodic motion are left as they are: its period is a whole number of samples.
        """
        if self.plan.period is not None:
            return self
        return replace(self, plan=self.plan.decimated(), known_ranges=None)

    def with_motion(self, motion_cutoff: float, recorded_velocity: bool) -> FilteredTrials:
        """The same recordings and regression filter with another motion filter and source of the velocities.

        Args:
            motion_cutoff: cut-off frequency of the motion filter [Hz].
            recorded_velocity: whether velocities are the recorded ones.

        Raises:
            UsageError: recorded velocities are requested, but not recorded.
        """
        if recorded_velocity and not self.survey.has_velocity:
            raise UsageError(f"{self.sources}: no velocities are recorded; use velocity: derivative")
        motion_pass = replace(self.plan.low_pass, cutoff=motion_cutoff)
        plan = replace(self.plan, motion_pass=motion_pass, recorded_velocity=recorded_velocity)
        return replace(self, plan=plan, known_ranges=None)

    def with_recordings(self, recordings: Sequence[Recording], surveyed: Survey | None = None) -> FilteredTrials:
        """Other recordings of the same joints, filtered in the same way.

        Args:
            recordings: the recordings.
            surveyed: their survey if it has been made already.
        """
        plan = self.plan
        same = len(recordings) == len(self.recordings) and all(map(is_, recordings, self.recordings))
        if same and self.kept is None and self.zeros is None:
            return self
        if plan.strokes is not None:
            plan = replace(plan, strokes=RecordedStrokes.from_recordings(recordings, self.joints))
        surveyed = None if surveyed is None else surveyed.with_longest_gap(plan.longest_gap)
        others = replace(self, plan=plan, recordings=recordings, surveyed=surveyed, known_ranges=None)
        return replace(others, kept=None, zeros=None)

    def blocks(self, count: int = BLOCKS) -> Blocks:
        """Division into blocks for cross-validation; trials at rest throughout are not divided.

        Args:
            count: number of blocks; data that are too short make fewer.

        Raises:
            InputError: data that are too short for two blocks.
        """
        plan = self.plan
        moving = [trial for trial, rest in enumerate(self.survey.rests) if rest.moves]
        stretches = [one for one in self.survey.stretches if one.trial in moving or not moving]
        edge, period = plan.edge / plan.rate, plan.period or 0.0
        return Blocks.from_stretches(stretches, count, plan.low_pass.cutoff, edge, period)

    def excerpt(self, blocks: Blocks, samples: int) -> FilteredTrials:
        """The same signals in about a given number of recorded samples, spans that are spread over all blocks.

        What costs more passes than a result needs samples is computed from them. Trials that are not divided stay
        complete, and so do those of a periodic motion and of logistic strokes.

        Args:
            blocks: division of the trials.
            samples: number of recorded samples; there are more if spans would be shorter than
                `SHORTEST_SPAN_PERIODS`. Shorter recordings are returned as they are.
        """
        plan = self.plan
        used = sum(piece.duration for piece in blocks.pieces)
        duration = samples / plan.native_rate
        if plan.period is not None or plan.strokes is not None or used <= duration:
            return self
        pieces = blocks.spread(duration, SHORTEST_SPAN_PERIODS / plan.low_pass.cutoff)
        store = StreamStore(streams=len(self.recordings))
        divided = {piece.trial for piece in blocks.pieces}
        parts: list[Recording] = []
        for trial, recording in enumerate(self.recordings):
            spans = tuple((piece.start, piece.stop) for piece in pieces if piece.trial == trial)
            whole = as_corrected(recording)
            part = replace(whole, corrections=(*whole.corrections, KeptSpans(spans), Stored(store)))
            parts.append(part if trial in divided else recording)
        surveyed = replace(self.survey, steps=tuple(compute_median_step(part, self.joints) for part in parts))
        return replace(self, recordings=parts, surveyed=surveyed, known_ranges=None, store=None)

    def without_block(self, number: int, blocks: Blocks | None = None) -> FilteredTrials:
        """The rows of all blocks but one; rows of that block and of the guards are zero.

        Filters run over all samples, so that no ends are lost.

        Args:
            number: number of the block.
            blocks: the division; by default that of `blocks`.
        """
        blocks = blocks or self.blocks()
        return self._keep(blocks, frozenset((ALL_FITS, *range(blocks.count))) - {number})

    def block_only(self, number: int, blocks: Blocks | None = None) -> FilteredTrials:
        """The rows of a single block; all others are zero.

        Args:
            number: number of the block.
            blocks: the division; by default that of `blocks`.
        """
        return self._keep(blocks or self.blocks(), frozenset({number}))

    def _keep(self, blocks: Blocks, kept: frozenset[int]) -> FilteredTrials:
        return replace(self, surveyed=self.survey, known_ranges=None, kept=KeptBlocks(blocks, kept))


def iterate_measured_windows(parts: Sequence[tuple[FilteredTrials, Regressor]]) -> Iterator[tuple[int, FilteredWindow]]:
    """Start a pass over the windows with efforts and used rows of several parts, those of each part in order of time.

    Parts of the same signals and terms, such as the blocks of a cross-validation, share one pass.

    Args:
        parts: recordings, or some blocks of them, each with the regressor whose terms have states along them.

    Yields:
        Number of the part, and a window.
    """
    groups: dict[Hashable, list[int]] = {}
    for number, (trials, regressor) in enumerate(parts):
        groups.setdefault((trials.signals_key, regressor.terms), []).append(number)  # states depend on terms alone
    for numbers in groups.values():
        trials, regressor = parts[numbers[0]]
        for window in integrate_states(trials._undivided(), regressor, 1.0 / trials.plan.rate):
            for number in numbers:
                own = parts[number][0]._select(window)
                if own.tau is not None and own.used.any():
                    yield number, own


def require_signals(regressor: Regressor, surveyed: Survey) -> None:
    """Refuse data without temperatures for terms that need them.

    Raises:
        InputError: a term needs a signal that is not recorded.
    """
    needing = [term.name for _, term in regressor.terms if term.signal == "temperature"]
    if needing and not surveyed.has_temperature:
        raise InputError(
            f"{', '.join(surveyed.sources)}: term {needing[0]} needs the temperatures of the joints: give them as key "
            f"temperature of .npz, the columns temperature_<joint> of .csv or a topic of a bag, or leave the term out"
        )


def plan_signals(surveyed: Survey, settings: SignalSettings) -> SignalPlan:
    """Decide about the signals from a survey and the choices of the user.

    Args:
        surveyed: survey of the recordings.
        settings: choices about signals.

    Raises:
        UsageError: recorded velocities are requested, but not recorded, or the sample rate does not suit the recordings
            or the filters.
    """
    velocity = settings.velocity
    if velocity == "recorded" and not surveyed.has_velocity:
        if settings.velocity_required:
            raise UsageError(f"{', '.join(surveyed.sources)}: no velocities are recorded; use velocity: derivative")
        velocity = "derivative"
    order = settings.filter_order
    recorded = surveyed.recorded_velocity if velocity == "auto" else velocity == "recorded"
    chosen = settings.cutoff is None
    cutoff = surveyed.cutoff if settings.cutoff is None else settings.cutoff
    motion_cutoff = settings.motion_cutoff
    if motion_cutoff is None:
        motion_cutoff = surveyed.motion_cutoff(recorded) if chosen else cutoff
    longest = max(surveyed.durations)
    if settings.motion_cutoff is not None and motion_cutoff * longest < 1.0:
        raise UsageError(
            f"motion_cutoff {motion_cutoff:g} Hz removes all motion of {', '.join(surveyed.sources)}, which last "
            f"{longest:.4g} s: leave it out"
        )
    rate = settings.sample_rate or surveyed.rate
    if rate > MAX_OVERSAMPLING * surveyed.rate:
        raise UsageError(
            f"sample_rate {rate:g} Hz is more than {MAX_OVERSAMPLING:g} times the {surveyed.rate:.4g} Hz of "
            f"{', '.join(surveyed.sources)}: leave it out, or give at most {MAX_OVERSAMPLING * surveyed.rate:.4g}"
        )
    if settings.sample_rate is not None:
        LowPass(max(cutoff, motion_cutoff)).require_rate(rate)
    return SignalPlan.from_low_pass(rate, LowPass(cutoff, order), recorded, LowPass(motion_cutoff, order))
