# SPDX-License-Identifier: Apache-2.0
"""Rollouts: simulations without feedback under recorded efforts, from recorded states, and their errors with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.signals.trials import FilteredTrials, iterate_measured_windows
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.plant import CompiledDynamics
from robot_dyn_id.simulation.plant_lanes import PlantLanes

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
"""Largest number of models, such as those of a cross-validation, that are simulated."""


@dataclass(frozen=True)
class Rollouts:
    """Errors of simulated positions.

    Attributes:
        errors: median absolute error after each of `HORIZONS_S` [rad or m], shape (3, n); infinite where at least half
            of the simulations diverge, NaN where no recording is that long.
        count: number of simulations that reach the first horizon in the recording.
        problem: reason why nothing is simulated; empty if something is.
    """

    errors: Array
    count: int
    problem: str = ""


@dataclass
class _Rollout:
    """One simulation to come: its start, the efforts along it, and what it is compared with.

    Attributes:
        dynamics: the model, at the temperatures of the start.
        start: grid number of the start.
        end: grid number of the end.
        q, dq: state at the start, shape (n,) each.
        slip: states of the friction laws at the start, shape (m,).
        efforts: efforts from each sample to the next, in portions of shape (n, N).
        recorded: recorded positions, shape (n,), at the horizons that the recording reaches, the first ones.
    """

    dynamics: CompiledDynamics
    start: int
    end: int
    q: Array
    dq: Array
    slip: Array
    efforts: list[Array] = field(default_factory=list)
    recorded: list[Array] = field(default_factory=list)


@dataclass
class _Runs:
    """Simulations along one stream of windows.

    Attributes:
        dynamics: the model.
        rate: rate of the grid [Hz].
        interval: samples between the starts of two rollouts.
        found: all rollouts.
        active: those whose end has not been reached.
        segment: number of the present segment.
        begin: grid number of the first sample of the present stretch: efforts of all joints without interruption.
        following: grid number that continues the stretch.
        with_effort: whether any sample has a usable effort of each joint, shape (n,).
    """

    dynamics: Dynamics
    rate: float
    interval: int
    found: list[_Rollout] = field(default_factory=list)
    active: list[_Rollout] = field(default_factory=list)
    segment: int = -1
    begin: int = 0
    following: int = -1
    with_effort: Mask = field(default_factory=lambda: np.zeros(1, dtype=bool))

    @classmethod
    def from_part(cls, dynamics: Dynamics, trials: FilteredTrials) -> _Runs:
        """Runs of a model along recordings, with starts so far apart that all parts together stay below the limits."""
        rate = trials.plan.rate
        # of all parts together, as each has its share of the samples
        mean_length = HORIZONS_S[-2] + (HORIZONS_S[-1] - HORIZONS_S[-2]) / LONG_ROLLOUT_EVERY
        simulated = sum(trials.survey.durations) * mean_length / START_INTERVAL_S
        excess = max(1.0, simulated / MAX_ROLLOUT_S, simulated * rate / MAX_ROLLOUT_SAMPLES)
        return cls(dynamics, rate, max(1, round(START_INTERVAL_S * rate * excess)))

    @cached_property
    def offsets(self) -> list[int]:
        """Number of samples of each horizon."""
        return [max(1, round(horizon * self.rate)) for horizon in HORIZONS_S]

    @cached_property
    def compiled(self) -> CompiledDynamics:
        """The model in the form of the kernels."""
        return CompiledDynamics(self.dynamics)

    @cached_property
    def warms(self) -> bool:
        """Whether a term of the model depends on temperatures."""
        return any(group.term.signal == "temperature" for group in self.dynamics.regressor.term_groups)

    def add(self, window: FilteredWindow) -> None:
        """Collect states and efforts of one window.

        Raises:
            InputError: the model cannot be simulated at all.
        """
        assert window.tau is not None
        self.with_effort = self.with_effort | (window.own & window.valid).any(axis=1)
        used = np.flatnonzero(window.own & window.valid.all(axis=0))
        efforts = 0.5 * (window.tau + np.append(window.tau[:, 1:], window.tau[:, -1:], axis=1))
        for stretch in np.split(used, np.flatnonzero(np.diff(window.number[used]) != 1) + 1) if len(used) else ():
            first, last = int(stretch[0]), int(stretch[-1])
            number = int(window.number[first])
            if (window.segment, number) != (self.segment, self.following):
                self.active, self.segment, self.begin = [], window.segment, number
            self.following = number + last - first + 1
            for start in range(number + (self.begin - number) % self.interval, self.following, self.interval):
                self._start(window.motion, first + start - number, start)
            for one in self.active:
                self._extend(one, window.motion.q[:, first : last + 1], efforts[:, first : last + 1], number)
            self.active = [one for one in self.active if one.end >= self.following]

    def _start(self, motion: Motion, sample: int, number: int) -> None:
        """Start a rollout in the state of a motion at one sample.

        Raises:
            InputError: the mass matrix is not positive definite.
        """
        at = motion.take(slice(sample, sample + 1))
        q, dq = at.q[:, 0], at.dq[:, 0]
        if not self.found:
            self.dynamics.forward_dynamics(q, np.zeros_like(q), np.zeros_like(q))  # names the joint
        compiled = self.compiled
        if self.warms and at.temperature is not None:
            compiled = CompiledDynamics(self.dynamics.at_temperature(at.temperature[:, 0]))
        is_long = (number - self.begin) // self.interval % LONG_ROLLOUT_EVERY == 0
        end = number + self.offsets[-1 if is_long else -2]
        self.active.append(_Rollout(compiled, number, end, q.copy(), dq.copy(), compiled.slip(at.states)))
        self.found.append(self.active[-1])

    def _extend(self, one: _Rollout, q: Array, efforts: Array, number: int) -> None:
        """Extend a rollout by the samples of a stretch, of which the first one has the grid number `number`."""
        one.efforts.append(efforts[:, max(one.start - number, 0) : max(one.end - number, 0)].copy())
        for offset in self.offsets:
            place = one.start + offset - number
            if 0 <= place < q.shape[1] and one.start + offset <= one.end:
                one.recorded.append(q[:, place].copy())

    def simulate(self) -> tuple[list[Array], ...]:
        """Absolute errors at each horizon, of shape (n,); infinite after a rollout has diverged."""
        errors: tuple[list[Array], ...] = tuple([] for _ in HORIZONS_S)
        groups: dict[int, list[_Rollout]] = {}
        for one in self.found:
            if one.recorded:
                groups.setdefault(id(one.dynamics), []).append(one)  # rollouts at temperatures are alone
        for group in groups.values():
            self._simulate(group, errors)
        return errors

    def _simulate(self, together: list[_Rollout], errors: tuple[list[Array], ...]) -> None:
        """Simulate rollouts of the same dynamics together, those that reach a horizon on to the next one."""
        states = (np.stack([getattr(one, name) for one in together], axis=1) for name in ("q", "dq", "slip"))
        lanes, done = PlantLanes(together[0].dynamics, *states), 0
        for horizon, (offset, found) in enumerate(zip(self.offsets, errors, strict=True)):
            reaching = np.array([len(one.recorded) > horizon for one in together])
            if not reaching.any():
                return
            lanes.take(reaching)
            together = [one for one, flag in zip(together, reaching.tolist(), strict=True) if flag]
            efforts = np.stack([np.concatenate(one.efforts, axis=1)[:, :offset] for one in together], axis=-1)
            for sample in range(done, offset):
                lanes.advance(efforts[:, sample], 1.0 / self.rate)
            done = offset
            for one, q, diverged in zip(together, lanes.q.T, lanes.diverged.tolist(), strict=True):
                found.append(np.full(len(q), np.inf) if diverged else np.abs(q - one.recorded[horizon]))


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
    picked = _pick_parts(parts)
    every = [_Runs.from_part(dynamics, trials) for dynamics, trials in picked]
    try:
        for number, window in iterate_measured_windows([(trials, dynamics.regressor) for dynamics, trials in picked]):
            every[number].add(window)
        for runs in every:
            for of_horizon, found in zip(errors, runs.simulate(), strict=True):
                of_horizon += found
    except RobotDynIdError as error:
        return Rollouts(np.full((len(HORIZONS_S), joints), np.nan), 0, error.message)
    medians = [np.median(found, axis=0) if found else np.full(joints, np.nan) for found in errors]
    problem = ""
    if not errors[0]:
        names = parts[0][0].regressor.model.joint_names
        efforts = np.any([runs.with_effort for runs in every], axis=0)
        missing = [name for name, known in zip(names, efforts.tolist(), strict=True) if not known]
        problem = (
            f"the held-out data have no effort of {', '.join(missing)}"
            if missing
            else f"no stretch of the held-out data lasts {HORIZONS_S[0]:g} s with the efforts of all joints"
        )
    return Rollouts(np.array(medians), len(errors[0]), problem)
