# SPDX-License-Identifier: Apache-2.0
"""Rollouts: simulations without feedback under recorded efforts, from recorded states, and their errors with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.plant import Plant

HORIZONS_S = (0.1, 1.0, 5.0)
"""Times after which the simulated positions are compared with the recorded ones [s]."""

START_INTERVAL_S = 1.0
"""Time between the starts of two rollouts [s]; longer in long recordings, see `MAX_ROLLOUT_S`."""

LONG_ROLLOUT_EVERY = 5
"""One rollout in this many is simulated to the last horizon, the others to the one before: errors there state little
about the model and take most of the time."""

MAX_ROLLOUT_S, MAX_ROLLOUT_SAMPLES = 75.0, 20_000
"""Largest simulated time of all rollouts [s], some 40 of them: the median of more changes little; and largest number of
simulated samples."""

MAX_PARTS = 3
"""Largest number of models, such as those of a cross-validation, that are simulated: each needs a pass over data."""


@dataclass(frozen=True)
class Rollouts:
    """Errors of simulated positions.

    Attributes:
        errors: median absolute error after each of `HORIZONS_S` [rad or m], shape (3, n); infinite where at least half
            of the simulations diverge, NaN where no recording is that long.
        count: number of simulations that reach the first horizon in the recording.
        problem: reason why nothing can be simulated; empty if it can.
    """

    errors: Array
    count: int
    problem: str = ""


@dataclass
class _Rollout:
    """One simulation: the plant, the grid numbers of its start and its end, and whether it has diverged."""

    plant: Plant
    start: int
    end: int
    diverged: bool = False


@dataclass
class _Runs:
    """Simulations under way along one stream of windows, and the errors found so far.

    Attributes:
        dynamics: the model.
        rate: rate of the grid [Hz].
        interval: samples between the starts of two rollouts.
        errors: absolute errors of finished horizons, each of shape (n,), by horizon; extended.
        active: simulations under way.
        idle: plants that can be used again.
        segment: number of the present segment.
        begin: grid number of the first sample of the present stretch: efforts of all joints without interruption.
        following: grid number that continues the stretch.
    """

    dynamics: Dynamics
    rate: float
    interval: int
    errors: tuple[list[Array], ...]
    active: list[_Rollout] = field(default_factory=list)
    idle: list[Plant] = field(default_factory=list)
    segment: int = -1
    begin: int = 0
    following: int = -1

    @property
    def offsets(self) -> list[int]:
        """Number of samples of each horizon."""
        return [max(1, round(horizon * self.rate)) for horizon in HORIZONS_S]

    def add(self, window: FilteredWindow) -> None:
        """Simulate along the samples of one window.

        Raises:
            InputError: the model cannot be simulated at all.
        """
        assert window.tau is not None
        used = np.flatnonzero(window.own & window.valid.all(axis=0))
        numbers = window.number[used]
        breaks = np.append(np.flatnonzero(np.diff(numbers) != 1) + 1, len(used))
        place = 0
        while place < len(used):
            k, number = int(used[place]), int(numbers[place])
            continues = (window.segment, number) == (self.segment, self.following)
            since = (number - self.begin) % self.interval
            if continues and since and not self.active:  # on to the next start, or to an interruption
                place = min(place + self.interval - since, int(breaks[np.searchsorted(breaks, place, side="right")]))
                self.following = int(numbers[place - 1]) + 1
                continue
            place += 1
            if not continues:
                self.idle += [one.plant for one in self.active]
                self.active, self.segment, self.begin = [], window.segment, number
            self.following = number + 1
            self._compare(number, window.motion.q[:, k])
            if (number - self.begin) % self.interval == 0:
                plant = self.idle.pop() if self.idle else Plant(self.dynamics, window.motion.q[:, k])
                plant.place(window.motion, k)
                is_long = (number - self.begin) // self.interval % LONG_ROLLOUT_EVERY == 0
                self.active.append(_Rollout(plant, number, number + self.offsets[-1 if is_long else -2]))
            after = min(k + 1, window.tau.shape[1] - 1)
            self._advance(0.5 * (window.tau[:, k] + window.tau[:, after]))

    def _compare(self, number: int, q: Array) -> None:
        """Note the errors of the rollouts that reach a horizon, and end those that reach their end."""
        for one in self.active:
            for offset, found in zip(self.offsets, self.errors, strict=True):
                if number - one.start == offset:
                    found.append(np.full(len(q), np.inf) if one.diverged else np.abs(one.plant.q - q))
        for one in [one for one in self.active if number >= one.end]:
            self._end(one)

    def _end(self, one: _Rollout) -> None:
        """End a rollout; its plant is used again."""
        self.active.remove(one)
        self.idle.append(one.plant)

    def _advance(self, effort: Array) -> None:
        """Advance by one sample; a rollout that diverges has no finite error at its remaining horizons.

        It stays under way, as it only counts at horizons that the recording reaches.
        """
        for one in self.active:
            try:
                if not one.diverged:
                    one.plant.advance(effort, 1.0 / self.rate)
            except RobotDynIdError:
                one.diverged = True


_Part = TypeVar("_Part")


def _pick_parts(parts: Sequence[_Part]) -> list[_Part]:
    """At most `MAX_PARTS` parts, those in the middle of equal groups."""
    count = min(MAX_PARTS, len(parts))
    return [parts[(2 * number + 1) * len(parts) // (2 * count)] for number in range(count)]


def simulate_rollouts(parts: Sequence[tuple[Dynamics, FilteredTrials]]) -> Rollouts:
    """Simulate a model under the recorded efforts, again and again from the recorded state.

    Efforts contain noise, and an arm is unstable in most poses: errors grow exponentially, and those of the last
    horizon state little about the model. The first two matter for predictive control and short simulations.

    Args:
        parts: models, each with the recordings, or rows of them, that it was not identified from; at least one. Only
            `MAX_PARTS` of them are used, evenly spaced: those in the middle of equal groups.
    """
    errors: tuple[list[Array], ...] = tuple([] for _ in HORIZONS_S)
    joints = len(parts[0][0].regressor.model.joint_names)
    for dynamics, trials in _pick_parts(parts):
        rate = trials.plan.rate
        # of all parts together, as each has its share of the samples
        mean_length = HORIZONS_S[-2] + (HORIZONS_S[-1] - HORIZONS_S[-2]) / LONG_ROLLOUT_EVERY
        simulated = sum(trials.survey.durations) * mean_length / START_INTERVAL_S
        excess = max(1.0, simulated / MAX_ROLLOUT_S, simulated * rate / MAX_ROLLOUT_SAMPLES)
        interval = max(1, round(START_INTERVAL_S * rate * excess))
        runs = _Runs(dynamics, rate, interval, errors)
        try:
            for window in trials.along(dynamics.regressor):
                if window.tau is not None:
                    runs.add(window)
        except RobotDynIdError as error:
            return Rollouts(np.full((len(HORIZONS_S), joints), np.nan), 0, error.message)
    medians = [np.median(found, axis=0) if found else np.full(joints, np.nan) for found in errors]
    return Rollouts(np.array(medians), len(errors[0]))
