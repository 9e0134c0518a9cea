# SPDX-License-Identifier: Apache-2.0
"""Parametrizations of excitations: the interface used by the design, and the shared base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError, suggest_known
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Sample, Stretchable

SAMPLES_PER_PERIOD = 200
"""Samples per shortest period when searching for the peaks of a motion."""

PEAK_ERROR_RATIO = 1e-5
"""Relative error of a peak value estimated by a parabola through three such samples [-]."""

STEP_OFFSET_RATIO = 1e-9
"""Distance from a jerk step at which both of its sides are evaluated, relative to the duration [-]."""

MAX_COUNTS = {"postures": 20, "periods": 10_000, "harmonics": 100, "degree": 30, "control_points": 1000}
"""Largest counts of a `Demand`, which bound memory and computing time."""


@dataclass(frozen=True)
class Demand:
    """User requirements on an excitation; each form uses the entries that apply to it.

    Attributes:
        period: duration of one cycle [s].
        periods: number of cycles; blended forms repeat the part between the blends, sequential forms the motion of
            each joint.
        harmonics: number of harmonics of a Fourier series.
        seed: seed of random coefficients.
        share: fraction of the limits used by random motions, in (0, 1].
        posture: center configuration; see `MotionLimits.center_and_reach`.
        degree: degree of a spline or polynomial; 0: default of the form.
        control_points: number of control points of a spline.
        frequencies: frequencies of a multisine, or first and last frequency of a chirp [Hz]; empty: those of a Fourier
            series.
        blend: duration of each blend at the ends of blended forms [s].
        closed: whether a spline ends where it begins, so that it can be repeated.
        free_center: whether the center is optimized too, within the limits around `posture`.
        moving: names of the joints that move; the others stay at their center. Empty: all joints.
        amplitude: fixed amplitudes of sequential sines [rad or m], shape (n,); empty: optimized.
        window: for sequential forms, length of the evaluated interval around the middle of each stroke or burst [s];
            0: the entire motion is evaluated.
        postures: for sequential forms, number of configurations in which all joints take their turns, with free
            centers above 1; 0: as many as the parameters need.
        free_period: whether the period is optimized too; `period` is then the initial value, and motions are compared
            as recordings of equal length.
    """

    period: float = 10.0
    periods: int = 1
    harmonics: int = 5
    seed: int = 1
    share: float = 0.9
    posture: tuple[float, ...] = ()
    degree: int = 0
    control_points: int = 20
    frequencies: tuple[float, ...] = ()
    blend: float = 1.0
    closed: bool = True
    free_center: bool = False
    moving: tuple[str, ...] = ()
    amplitude: tuple[float, ...] = ()
    window: float = 0.0
    free_period: bool = False
    postures: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a value is out of range; names it.
        """
        if not 0.0 < self.period < np.inf:
            raise UsageError(f"the period must be a positive number of seconds, not {self.period:g}")
        if self.periods < 1:
            raise UsageError(f"the number of periods must be at least 1, not {self.periods}")
        for name, largest in MAX_COUNTS.items():
            if getattr(self, name) > largest:
                raise UsageError(f"{name} must be at most {largest}, not {getattr(self, name)}")
        if not 0.0 < self.share <= 1.0:
            raise UsageError(f"the usable fraction of the limits must be above 0 and at most 1, not {self.share:g}")
        if not 0.0 < self.blend < np.inf:
            raise UsageError(f"the blend time must be a positive number of seconds, not {self.blend:g}")
        if not all(0.0 < frequency < np.inf for frequency in self.frequencies):
            raise UsageError(f"frequencies must be positive [Hz], not {list(self.frequencies)}")
        if not 0.0 <= self.window < np.inf:
            raise UsageError(f"the window must be 0 or a positive number of seconds, not {self.window:g}")


class Parametrization(Protocol):
    """Interface of a family of motions of n joints, one motion for each vector x of free coefficients.

    Coefficients are of order 1: amplitudes are in units of a joint's reach, see `MotionLimits.center_and_reach`.

    Attributes:
        duration: duration of one cycle [s]; with a free period, in the time scale of `sample`.
        periodic: whether the cycle can be repeated without stops.
        windows: start and end times of the evaluated intervals [s]; empty: the entire cycle.
        passages: start and end times of intervals in which the motion passes through all of its positions, so that
            distances have to be computed in them alone [s]; empty: the entire cycle.
    """

    duration: float
    periodic: bool
    windows: tuple[tuple[float, float], ...]
    passages: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """Name of the form, as in configuration files."""

    @property
    def size(self) -> int:
        """Number of free coefficients of all joints."""

    def trajectory(self, x: Array) -> Stretchable:
        """Motion with the coefficients x, shape (size,): a frozen value that can be written to a file."""

    def sample(self, x: Array, t: Array) -> Sample:
        """Evaluate the motion with the coefficients x; what does not depend on x is cached.

        Args:
            x: coefficients, shape (size,).
            t: times [s], shape (N,).

        Returns:
            Position, velocity, acceleration and jerk, shape (n, N) each.
        """

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """Gradients with respect to the coefficients: transposed Jacobian of `sample` times gradients.

        Args:
            x: coefficients, shape (size,).
            t: times [s], shape (N,).
            gradient: derivatives of scalars with respect to the four arrays of `sample`, shape (..., n, N) each.

        Returns:
            Derivatives of the scalars with respect to x, shape (..., size).
        """

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """Draw random coefficients, with every joint scaled to `share` of the limit that it reaches first.

        Args:
            rng: random number generator.
            share: fraction of the limits, in (0, 1].

        Returns:
            Coefficients, shape (size,).
        """

    def scaled(self, x: Array, factor: Array) -> Array:
        """Scale the amplitude of every joint about its center.

        Args:
            x: coefficients, shape (size,).
            factor: scale factor of each joint, shape (n,).

        Returns:
            Coefficients of the scaled motion, shape (size,).
        """


class CenteredParametrization(ABC):
    """Base class of parametrizations in which every joint has a center and the same number of coefficients.

    x contains the coefficients of the moving joints, joint by joint, followed by the centers of all joints in units of
    the reach if the center is free.

    Attributes:
        center, reach: see `MotionLimits.center_and_reach`.
        moving: indices of the joints that move, ascending.
    """

    periodic: bool = False
    windows: tuple[tuple[float, float], ...] = ()
    passages: tuple[tuple[float, float], ...] = ()

    AMPLITUDES: ClassVar[slice] = slice(None)
    """Coefficients of a joint that are proportional to its distance from the center."""

    def __init__(
        self,
        limits: MotionLimits,
        demand: Demand,
        prototype: Excitation,
        *,
        coefficients: int,
        jerk_steps: Sequence[float] = (),
        span: float | None = None,
    ) -> None:
        """Prepare what does not depend on x.

        Args:
            limits: motion limits of the joints.
            demand: user requirements.
            prototype: a motion of the family that is as fast as the fastest one drawn by `random`.
            coefficients: number of coefficients of each joint.
            jerk_steps: times at which the jerk may have steps [s].
            span: length of the initial part that contains all peaks [s]; the entire motion by default.

        Raises:
            UsageError: a moving joint does not exist.
            MotionError: the center configuration is outside the limits.
        """
        self.center, self.reach = limits.center_and_reach(demand.posture)
        self.moving = find_moving_joints(limits, demand)
        self.duration = prototype.duration
        self._limits = limits
        self._visits = 1
        self._numbers = coefficients
        self._free = demand.free_center
        end = self.duration if span is None else span
        self._grid = np.linspace(0.0, end, 1 + int(np.ceil(SAMPLES_PER_PERIOD * end / prototype.fastest)))
        sides = np.array(jerk_steps)[:, None] + STEP_OFFSET_RATIO * end * np.array([-1.0, 1.0])
        self._sides = np.clip(sides.ravel(), 0.0, end)

    @property
    def size(self) -> int:
        """See `Parametrization`."""
        return len(self.moving) * self._numbers + self._visits * len(self.reach) * self._free

    def _parts(self, x: Array) -> tuple[Array, Array]:
        """Coefficients of each joint (0 if it does not move), shape (n, K), and centers [rad or m], shape (n,)."""
        n, count = len(self.reach), len(self.moving) * self._numbers
        numbers = np.zeros((n, self._numbers))
        numbers[self.moving] = x[:count].reshape(len(self.moving), self._numbers)
        return numbers, self.center + self.reach * (x[count : count + n] if self._free else np.zeros(n))

    def _joined(self, numbers: Array, shift: Array) -> Array:
        """Combine coefficients and relative centers of all visits, or derivatives with respect to them, as in x.

        Args:
            numbers: coefficients, shape (..., n, K).
            shift: relative centers, visit by visit, shape (..., visits n).
        """
        own = numbers[..., self.moving, :].reshape(*numbers.shape[:-2], -1)
        return np.concatenate([own, shift], axis=-1) if self._free else own

    @abstractmethod
    def trajectory(self, x: Array) -> Stretchable:
        """See `Parametrization`."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> Array:
        """Draw coefficients with amplitudes of any size, shape (n, K)."""

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """See `Parametrization`."""
        numbers = self._draw(rng)
        shift = rng.uniform(-0.5, 0.5, self._visits * len(self.reach)) if self._free else np.zeros(len(self.reach))
        x = self._joined(numbers, shift)
        room = self.reach * (1.0 - np.abs(shift).reshape(-1, len(self.reach)).max(axis=0))
        largest = self._limits.largest_amplitude(room, self._peaks(x))
        return self.scaled(x, np.where(np.isfinite(largest), share * largest, 1.0))

    def scaled(self, x: Array, factor: Array) -> Array:
        """See `Parametrization`."""
        numbers, _ = self._parts(x)
        numbers[:, self.AMPLITUDES] *= factor[:, None]
        return self._joined(numbers, x[len(self.moving) * self._numbers :])

    def _away(self, x: Array, t: Array) -> Sample:
        """Motion relative to its center, in the part that contains all peaks."""
        motion = self.trajectory(x)
        q, dq, ddq, dddq = self._evaluate(motion, t)
        return q - motion.center[:, None], dq, ddq, dddq

    def _evaluate(self, motion: Any, t: Array) -> Sample:
        """Motion of this parametrization at the times at which peaks are looked for."""
        return motion.evaluate(t)  # type: ignore[no-any-return]

    def _peaks(self, x: Array) -> Sample:
        """Peak distance from the center, velocity, acceleration and jerk, shape (n,) each."""
        smooth = [_peak(values) for values in self._away(x, self._grid)]
        steps = [
            np.abs(values).max(axis=1, initial=0.0) * (1.0 + PEAK_ERROR_RATIO) for values in self._away(x, self._sides)
        ]
        q, dq, ddq, dddq = (np.maximum(*pair) for pair in zip(smooth, steps, strict=True))
        return q, dq, ddq, dddq


def find_moving_joints(limits: MotionLimits, demand: Demand) -> Integers:
    """Indices of the joints moved by an excitation, ascending.

    Raises:
        UsageError: a joint name is unknown.
    """
    names = limits.joint_names
    for name in demand.moving:
        if name not in names:
            raise UsageError(f"moving: {name} is not a joint; {suggest_known(name, list(names))}")
    return np.array([j for j, name in enumerate(names) if name in (demand.moving or names)], dtype=np.int64)


def _peak(values: Array) -> Array:
    """Peak absolute value of finely sampled functions by parabolic interpolation, (n, N) -> (n,)."""
    size = np.abs(values)
    before, here, after = size[:, :-2], size[:, 1:-1], size[:, 2:]
    bend = np.pad(2.0 * here - before - after, ((0, 0), (1, 1)))
    adjacent, bend = np.maximum(bend[:, :-2], bend[:, 2:]), bend[:, 1:-1]
    # at a step of the function or of its slope, adjacent curvatures differ, and there is no peak between samples
    top = (here >= before) & (here >= after) & (bend > 0.0) & (bend < 2.0 * adjacent)
    rise = np.where(top, (after - before) ** 2 / (8.0 * np.where(top, bend, 1.0)), 0.0)
    return np.asarray(np.maximum(size.max(axis=1), (here + rise).max(axis=1)) * (1.0 + PEAK_ERROR_RATIO))
