# SPDX-License-Identifier: Apache-2.0
"""Recordings that were surveyed and are filtered: the stream that identification, validation and prediction read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.signals.cleaning import Drive, Repairs, clean, median_step
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import RecordedProblem, SignalPlan, filter_window
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.survey import Survey, survey
from robot_dyn_id.signals.windows import FilteredWindow, Window, windows


@dataclass(frozen=True)
class FilteredTrials:
    """Recordings with all decisions about their signals: a stream of filtered windows.

    Iterating starts a new pass over all trials and yields the same windows each time; their segments are numbered
    consecutively. No more than one window is in memory.

    Attributes:
        recordings: the trials.
        joints: names of the joints, in the order of all arrays.
        drives: gains and signs of joints whose recorded effort is a current.
        plan: decisions about the signals.
        need_effort: whether samples without efforts are dropped; without it efforts are not read.
        keep_edges: whether the ends of segments are kept (prediction) or cut off (estimation).
        surveyed: survey of these recordings where it has been made already.
    """

    recordings: Sequence[Recording]
    joints: Sequence[str]
    drives: Mapping[str, Drive]
    plan: SignalPlan
    need_effort: bool = True
    keep_edges: bool = False
    surveyed: Survey | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[FilteredWindow]:
        """Start a pass."""
        return (filter_window(window, self.plan, self.keep_edges) for window in self.windows())

    def windows(self) -> Iterator[Window]:
        """Start a pass over the windows before they are filtered."""
        base = 0
        for recording, step in zip(self.recordings, self._steps, strict=True):
            last = -1
            cleaned = clean(recording, self.joints, self.drives, step, Repairs(), self.need_effort)
            for window in windows(cleaned, self.plan.cut):
                last = window.segment
                yield replace(window, segment=base + window.segment)
            base += last + 1

    @cached_property
    def survey(self) -> Survey:
        """Survey of the recordings.

        Raises:
            InputError: see `signals.survey.survey`.
        """
        return self.surveyed or survey(self.recordings, self.joints, self.drives, self.need_effort)

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges of the motion.

        Raises:
            InputError: no sample is used.
        """
        return Ranges.from_windows(self)

    @property
    def max_speeds(self) -> Array:
        """Maximum speed of each joint [rad/s or m/s], shape (n,)."""
        return self.ranges.dq_max

    @cached_property
    def _steps(self) -> tuple[float, ...]:
        return tuple(median_step(recording, self.joints) for recording in self.recordings)

    @property
    def sources(self) -> str:
        """Names of the recordings, for messages."""
        return ", ".join(recording.source for recording in self.recordings)

    def problem(self, regressor: Regressor, columns: Integers, prior: Prior | None = None) -> RecordedProblem:
        """Linear problem of some columns of a regressor; see `RecordedProblem.from_windows`."""
        return RecordedProblem.from_windows(regressor, columns, self, self.plan, prior)

    def with_recordings(self, recordings: Sequence[Recording]) -> FilteredTrials:
        """Other recordings of the same joints, filtered in the same way."""
        return replace(self, recordings=recordings, surveyed=None)


def require_signals(regressor: Regressor, seen: Survey) -> None:
    """Refuse data without temperatures, or a URDF without masses, for terms that need them.

    Raises:
        InputError: the term and the data or the robot, named.
    """
    loaded = [term.name for _, term in regressor.terms if term.signal == "load"]
    if loaded and not regressor.model.inertial_parameters.any():
        raise InputError(
            f"{regressor.model.name}: term {loaded[0]} needs the masses and inertias of the URDF, and it has none: "
            f"complete the URDF, or leave the term out"
        )
    needing = [term.name for _, term in regressor.terms if term.signal == "temperature"]
    if needing and not seen.has_temperature:
        raise InputError(
            f"{', '.join(seen.sources)}: term {needing[0]} needs the temperatures of the joints: give them as key "
            f"temperature of .npz or the columns temperature_<joint> of .csv, or leave the term out"
        )


def plan_signals(seen: Survey, cutoff: float | None, order: int, velocity: str) -> SignalPlan:
    """The decisions about the signals, from a survey and what the user fixed.

    Raises:
        UsageError: recorded velocities are asked for, and there are none.
    """
    if velocity == "recorded" and not seen.has_velocity:
        raise UsageError(f"{', '.join(seen.sources)}: no velocities are recorded; use velocity: derivative")
    low_pass = LowPass(seen.cutoff if cutoff is None else cutoff, order)
    recorded = seen.recorded_velocity if velocity == "auto" else velocity == "recorded"
    return SignalPlan.of(seen.rate, low_pass, recorded)
