# SPDX-License-Identifier: Apache-2.0
"""The walk over all recordings that training, validation and prediction make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.problem import Smooth
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.signals.cleaning import Drive, Repairs, clean, median_step
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan, smooth
from robot_dyn_id.signals.survey import Survey
from robot_dyn_id.signals.windows import Window, windows


def walker(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    plan: SignalPlan,
    need_effort: bool = True,
    keep_edges: bool = False,
) -> Callable[[], Iterator[Smooth]]:
    """A re-iterable walk over the smooth windows of all trials; segments are numbered through."""
    walk = window_walker(recordings, joints, drives, plan, need_effort)
    return lambda: (smooth(window, plan, keep_edges) for window in walk())


def window_walker(
    recordings: Sequence[Recording],
    joints: Sequence[str],
    drives: Mapping[str, Drive],
    plan: SignalPlan,
    need_effort: bool = True,
) -> Callable[[], Iterator[Window]]:
    """A re-iterable walk over the windows of all trials before they are smooth; segments are numbered through."""
    steps = [median_step(recording, joints) for recording in recordings]

    def walk() -> Iterator[Window]:
        base = 0
        for recording, step in zip(recordings, steps, strict=True):
            last = -1
            cleaned = clean(recording, joints, drives, step, Repairs(), need_effort)
            for window in windows(cleaned, plan.cut):
                last = window.segment
                yield replace(window, segment=base + window.segment)
            base += last + 1

    return walk


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
