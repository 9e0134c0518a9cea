# SPDX-License-Identifier: Apache-2.0
"""Internal states of terms along filtered windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import TermStates
from robot_dyn_id.signals.windows import FilteredWindow


def integrate_states(windows: Iterable[FilteredWindow], regressor: Regressor, step: float) -> Iterator[FilteredWindow]:
    """Add the states of a regressor's terms to filtered windows, integrated along each segment.

    A window continues with the states of the one before it at the first sample that the filter of both has settled at.
    At earlier samples of the overlap, which belong to the window before, the states are held.

    Args:
        windows: windows of consecutive segments, in order.
        regressor: robot and terms.
        step: time between two samples of the windows [s].
    """
    if not regressor.state_groups:
        yield from windows
        return
    last: FilteredWindow | None = None
    for window in windows:
        follows = last is not None and last.segment == window.segment
        first = window.settled.start if follows else 0
        start = _states_at(last, int(window.number[first])) if last is not None and follows else None
        settled = regressor.integrate(window.motion.q[:, first:], step, start)
        states = {term: np.pad(values, ((0, 0), (0, 0), (first, 0)), mode="edge") for term, values in settled.items()}
        last = replace(window, motion=replace(window.motion, states=states))
        yield last


def _states_at(window: FilteredWindow, number: int) -> TermStates | None:
    """States at the sample with a grid number, or None if the window does not hold it."""
    at = int(np.searchsorted(window.number, number))
    if at == len(window.number) or window.number[at] != number or window.motion.states is None:
        return None
    return {term: values[..., at : at + 1] for term, values in window.motion.states.items()}
