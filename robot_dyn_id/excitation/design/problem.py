# SPDX-License-Identifier: Apache-2.0
"""Optimization problem of a design: objective and requirements with exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.objectives import Objective, Score, smooth_objective
from robot_dyn_id.excitation.design.requirement import SHARPNESS, Margin, Requirement
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Parametrization
from robot_dyn_id.excitation.trajectory import CHECK_STEP_S, Sample

COARSE_SAMPLES = 100
"""Minimum number of samples per cycle in the first stage of a search."""

FINE_SAMPLES = 300
"""Minimum number of samples per cycle in the second stage of a search."""

FINAL_SAMPLES = 1000
"""Minimum number of samples per cycle when motions are compared."""

SLOPES_AT_A_TIME = 32
"""Rows of a Jacobian that are computed together: derivatives of the motion are shared, and memory is bounded."""

SAMPLES_PER_WAVE = 20
"""Minimum number of samples in the shortest period of a motion."""


@dataclass(frozen=True)
class DesignProblem:
    """Search for the coefficients of a parametrization that minimize an objective under requirements.

    Attributes:
        parametrization: family of motions.
        information: Fisher information of a motion.
        objective: function of the information matrix to be minimized.
        limits: motion limits of the joints, into which motions can be scaled directly.
        requirements: all requirements, including the motion limits.
        rate: sampling rate of the recording [Hz].
        prior: information from earlier recordings, shape (p, p).
        must_move: indices of the joints of which less motion than a recording shows is refused.
        samples: minimum number of samples per cycle.
        sharpness: sharpness of the smooth maxima of the requirements.
        evaluations: one entry per evaluation of the objective.
    """

    parametrization: Parametrization
    information: Information
    objective: Objective
    limits: MotionLimits
    requirements: Sequence[Requirement]
    rate: float
    prior: Array
    must_move: Integers
    samples: int = FINAL_SAMPLES
    sharpness: float = SHARPNESS
    evaluations: list[None] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            UsageError: no free coefficients, the rate is not positive, or the prior has other parameters.
        """
        p = len(self.information.names)
        if not self.parametrization.size:
            raise UsageError(
                "the motion has no free coefficients: leave out fixed amplitudes, or set free_center or free_period"
            )
        if not 0.0 < self.rate < np.inf:
            raise UsageError(f"the rate of the recording must be positive, not {self.rate:g} Hz")
        if self.prior.shape != (p, p):
            raise UsageError(f"prior information has the shape {self.prior.shape}, expected {(p, p)}")

    def with_samples(self, samples: int) -> DesignProblem:
        """Same problem with another number of samples; it shares the count of evaluations."""
        return replace(self, samples=samples)

    def with_sharpness(self, sharpness: float) -> DesignProblem:
        """Same problem with another sharpness of the requirements: sharper ones leave a smaller margin."""
        return replace(self, sharpness=sharpness)

    def with_smooth_objective(self, sharpness: float) -> DesignProblem:
        """The same problem with an objective whose gradient has no jumps; see `objectives.smooth_objective`."""
        soft = smooth_objective(self.objective, sharpness)
        return self if soft is self.objective else replace(self, objective=soft)

    @cached_property
    def _times(self) -> Array:
        """Equally spaced times in a period, for which sums converge exponentially (Trefethen and Weideman 2014)."""
        motion = self.parametrization.trajectory(self.parametrization.random(np.random.default_rng(0)))
        count = max(self.samples, int(np.ceil(SAMPLES_PER_WAVE * motion.duration / motion.fastest)))
        return np.arange(count, dtype=np.float64) * (self.parametrization.duration / count)

    @cached_property
    def _evaluated_times(self) -> Array:
        """Times at which the torque is evaluated: `_times`, or as many midpoints of equal parts of the windows."""
        windows = self.parametrization.windows
        if not windows:
            return self._times
        step = sum(end - begin for begin, end in windows) / len(self._times)
        counts = [int(np.ceil((end - begin) / step * (1.0 - 1e-9))) for begin, end in windows]
        parts = [
            begin + (np.arange(count) + 0.5) * ((end - begin) / count)
            for (begin, end), count in zip(windows, counts, strict=True)
        ]
        return np.concatenate(parts)

    def information_matrix(self, x: Array) -> Array:
        """Information matrix of the motion with the coefficients x as recorded, without the prior, shape (p, p)."""
        return self._ratio * self.information.matrix(self._motion(x))

    def objective_value(self, x: Array) -> float:
        """Objective of the motion with the coefficients x, shape (size,)."""
        return self.score(x).value

    def score(self, x: Array) -> Score:
        """Objective and its gradient, shape (size,); the gradient is 0 if a parameter is not identifiable."""
        self.evaluations.append(None)
        score = self.objective(self.information_matrix(x) + self.prior)
        return Score(score.value, lambda: self._gradient(x, score))

    def _gradient(self, x: Array, score: Score) -> Array:
        if not np.isfinite(score.value):
            return np.zeros(len(x))
        by_motion = self.information.pull_back(self._motion(x), self._ratio * score.gradient())
        return self.parametrization.pull_back(x, self._evaluated_times, (*by_motion, np.zeros_like(by_motion[0])))

    def _motion(self, x: Array) -> Motion:
        return Motion(*self.parametrization.sample(x, self._evaluated_times)[:3])

    @property
    def _ratio(self) -> float:
        """Number of recorded samples per evaluated time."""
        windows = self.parametrization.windows
        recorded = sum(end - begin for begin, end in windows) if windows else self.parametrization.duration
        return self.rate * recorded / len(self._evaluated_times)

    def excess(self, x: Array) -> Array:
        """Smooth maximum of the excess of every row of every requirement, shape (rows,); at most 0 if satisfied."""
        motion = self.parametrization.sample(x, self._times)
        return np.concatenate([requirement.smooth_maximum(motion, self.sharpness) for requirement in self.requirements])

    def excess_jacobian(self, x: Array) -> Array:
        """Jacobian of `excess` with respect to the coefficients, shape (rows, size)."""
        motion = self.parametrization.sample(x, self._times)
        slopes = chain.from_iterable(
            requirement.smooth_maximum_gradients(motion, self.sharpness) for requirement in self.requirements
        )
        parts = []
        while some := list(islice(slopes, SLOPES_AT_A_TIME)):
            q, dq, ddq, dddq = (np.array(rows) for rows in zip(*some, strict=True))
            parts.append(self.parametrization.pull_back(x, self._times, (q, dq, ddq, dddq)))
        return np.concatenate(parts)

    def scale_into_limits(self, x: Array) -> Array:
        """Coefficients of the motion with every joint scaled down into its own limits on a fine grid."""
        _, motion = self.sample_finely(x)
        # the motion about which amplitudes are scaled: at rest in its center, or moving from one center to the next
        _, middle = self.sample_finely(self.parametrization.scaled(x, np.zeros(len(self.limits.joint_names))))
        away, *rates = (values - base for values, base in zip(motion, middle, strict=True))
        peaks = [np.abs(values).max(axis=1) for values in rates]
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(away > 0.0, (self.limits.upper[:, None] - middle[0]) / away, np.inf).min(axis=1)
            down = np.where(away < 0.0, (self.limits.lower[:, None] - middle[0]) / away, np.inf).min(axis=1)
        fastest = self.limits.largest_amplitude(np.full(len(up), np.inf), (np.ones(len(up)), *peaks))
        factor = np.nanmin([up, down, fastest, np.ones(len(up))], axis=0)
        return self.parametrization.scaled(x, np.maximum(factor, 0.0) * (1.0 - 1e-9))

    def sample_finely(self, x: Array) -> tuple[Array, Sample]:
        """Times of a fine grid including both ends [s], shape (N,), and the motion at these times."""
        trajectory = self.parametrization.trajectory(x)
        t = np.linspace(0.0, trajectory.duration, 2 + int(trajectory.duration / CHECK_STEP_S))
        return t, trajectory.evaluate(t)

    def margins(self, x: Array) -> tuple[Margin, ...]:
        """Margins of all requirements on a fine grid."""
        t, motion = self.sample_finely(x)
        return tuple(margin for requirement in self.requirements for margin in requirement.margins(t, motion))
