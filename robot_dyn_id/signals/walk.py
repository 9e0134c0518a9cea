"""The walk over all recordings that training, validation and prediction make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from robot_dyn_id.dataset import Recording
from robot_dyn_id.errors import UsageError
from robot_dyn_id.signals.cleaning import Drive, Repairs, clean, median_step
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan, Smooth, smooth
from robot_dyn_id.signals.survey import Survey
from robot_dyn_id.signals.windows import windows


def walker(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    plan: SignalPlan,
    need_effort: bool = True,
    keep_edges: bool = False,
) -> Callable[[], Iterator[Smooth]]:
    """A re-iterable walk over the smooth windows of all trials; segments are numbered through."""
    steps = [median_step(recording, joints) for recording in recordings]

    def walk() -> Iterator[Smooth]:
        base = 0
        for recording, step in zip(recordings, steps, strict=True):
            last = -1
            cleaned = clean(recording, joints, drives, step, Repairs(), need_effort)
            for window in windows(cleaned, plan.cut):
                last = window.segment
                yield replace(smooth(window, plan, keep_edges), segment=base + window.segment)
            base += last + 1

    return walk


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
