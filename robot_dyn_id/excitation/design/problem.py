# SPDX-License-Identifier: Apache-2.0
"""What a search for an excitation sees: a figure to be minimised and requirements, with exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.objectives import Objective, Score, softened
from robot_dyn_id.excitation.design.requirement import SHARPNESS, Margin, Requirement
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Parametrization
from robot_dyn_id.excitation.trajectory import CHECK_STEP_S, Sample

COARSE, FINER, JUDGED = 100, 300, 1000
"""Instants at which the first and the last part of a search look, and at which motions are compared."""

PER_WAVE = 20
"""Instants of the fastest wave, at least."""


@dataclass(frozen=True)
class DesignProblem:
    """Coefficients of a parametrization are wanted.

    Attributes:
        parametrization: the family of motions.
        information: what a motion tells.
        objective: figure of the information matrix, to be minimised.
        limits: of the joints: what brings motions into them is known in advance.
        requirements: all that must be kept, the limits of the joints included.
        rate: samples per second that the recording will have [Hz].
        prior: information from earlier recordings, shape (p, p).
        samples: instants at which motions are looked at, at least.
        sharpness: of the maxima that a search sees of its requirements.
        evaluations: one entry for each time that the objective was asked for.
    """

    parametrization: Parametrization
    information: Information
    objective: Objective
    limits: MotionLimits
    requirements: Sequence[Requirement]
    rate: float
    prior: Array
    samples: int = JUDGED
    sharpness: float = SHARPNESS
    evaluations: list[None] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        """Check what does not fit together.

        Raises:
            UsageError: a rate that is not positive, a prior of other parameters.
        """
        p = len(self.information.names)
        if not self.parametrization.size:
            raise UsageError("nothing of the motion is left free: there is nothing to be designed")
        if not 0.0 < self.rate < np.inf:
            raise UsageError(f"the rate of the recording must be positive, not {self.rate:g} Hz")
        if self.prior.shape != (p, p):
            raise UsageError(f"prior information has the shape {self.prior.shape}, expected {(p, p)}")

    def sampled(self, samples: int) -> DesignProblem:
        """The same problem, looked at at `samples` instants; it counts evaluations together with this one."""
        return replace(self, samples=samples)

    def tightened(self, sharpness: float) -> DesignProblem:
        """The same problem with requirements that may be used up to a smaller rest, and bend more at their edges."""
        return replace(self, sharpness=sharpness)

    def softened(self, sharpness: float) -> DesignProblem:
        """The same problem with an objective whose gradient has no jumps; see `objectives.softened`."""
        soft = softened(self.objective, sharpness)
        return self if soft is self.objective else replace(self, objective=soft)

    @cached_property
    def _times(self) -> Array:
        """Equally spaced over a period: sums converge at once for smooth columns (Trefethen and Weideman 2014)."""
        motion = self.parametrization.trajectory(self.parametrization.random(np.random.default_rng(0)))
        count = max(self.samples, int(np.ceil(PER_WAVE * motion.duration / motion.fastest)))
        return np.arange(count, dtype=np.float64) * (self.parametrization.duration / count)

    @cached_property
    def _counted(self) -> Array:
        """Instants whose torque is recorded: those, or as many in the windows, in the middle of equal parts of them."""
        windows = self.parametrization.windows
        if not windows:
            return self._times
        step = sum(end - begin for begin, end in windows) / len(self._times)
        counts = [int(np.ceil((end - begin) / step * (1.0 - 1e-9))) for begin, end in windows]
        parts = [begin + (np.arange(count) + 0.5) * ((end - begin) / count)
                 for (begin, end), count in zip(windows, counts, strict=True)]  # fmt: skip
        return np.concatenate(parts)

    def told(self, x: Array) -> Array:
        """Information of the motion as it will be recorded, without the prior, shape (p, p)."""
        return self._ratio * self.information.matrix(self._motion(x))

    def figure(self, x: Array) -> float:
        """The objective alone."""
        return self.score(x).value

    def score(self, x: Array) -> Score:
        """The objective and its gradient, shape (size,), which is 0 where a parameter is not told at all."""
        self.evaluations.append(None)
        score = self.objective(self.told(x) + self.prior)
        return Score(score.value, lambda: self._gradient(x, score))

    def _gradient(self, x: Array, score: Score) -> Array:
        if not np.isfinite(score.value):
            return np.zeros(len(x))
        by_motion = self.information.pull_back(self._motion(x), self._ratio * score.slope())
        return self.parametrization.pull_back(x, self._counted, (*by_motion, np.zeros_like(by_motion[0])))

    def _motion(self, x: Array) -> Motion:
        return Motion(*self.parametrization.sample(x, self._counted)[:3])

    @property
    def _ratio(self) -> float:
        """Samples of the recording for each instant that is looked at."""
        windows = self.parametrization.windows
        recorded = sum(end - begin for begin, end in windows) if windows else self.parametrization.duration
        return self.rate * recorded / len(self._counted)

    def excess(self, x: Array) -> Array:
        """The largest excess of every row of every requirement: at most 0 where all are kept; shape (rows,)."""
        motion = self.parametrization.sample(x, self._times)
        return np.concatenate([requirement.largest(motion, self.sharpness) for requirement in self.requirements])

    def excess_slopes(self, x: Array) -> Array:
        """Its Jacobian, shape (rows, size)."""
        motion = self.parametrization.sample(x, self._times)
        return np.array(
            [
                self.parametrization.pull_back(x, self._times, slope)
                for requirement in self.requirements
                for slope in requirement.largest_slopes(motion, self.sharpness)
            ]
        )

    def brought_in(self, x: Array) -> Array:
        """The same motion, every joint scaled down as far as its own limits, looked at finely, make it necessary."""
        trajectory = self.parametrization.trajectory(x)
        _, motion = self.finely(x)
        center = trajectory.center[:, None]
        peaks = [np.abs(values).max(axis=1) for values in motion[1:]]
        with np.errstate(divide="ignore", invalid="ignore"):
            up = (self.limits.upper - trajectory.center) / (motion[0] - center).max(axis=1)
            down = (trajectory.center - self.limits.lower) / (center - motion[0]).max(axis=1)
        rates = self.limits.largest_amplitude(np.full(len(up), np.inf), (np.ones(len(up)), *peaks))
        factor = np.nanmin([up, down, rates, np.ones(len(up))], axis=0)
        return self.parametrization.scaled(x, np.maximum(factor, 0.0) * (1.0 - 1e-9))

    def finely(self, x: Array) -> tuple[Array, Sample]:
        """Times of a fine grid, both ends included, and the motion there."""
        trajectory = self.parametrization.trajectory(x)
        t = np.linspace(0.0, trajectory.duration, 2 + int(trajectory.duration / CHECK_STEP_S))
        return t, trajectory.evaluate(t)

    def margins(self, x: Array) -> tuple[Margin, ...]:
        """What a motion leaves of every limit, looked at finely."""
        t, motion = self.finely(x)
        return tuple(margin for requirement in self.requirements for margin in requirement.margins(t, motion))
