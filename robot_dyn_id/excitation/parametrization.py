# SPDX-License-Identifier: Apache-2.0
"""Families of excitations that a design chooses among: the contract, and what is common to all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError, suggestion
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Sample, Timed

OVERSAMPLING = 200
"""Samples per period of the fastest wave where peaks are looked for."""

BETWEEN = 1e-5
"""By how much, as a share, a parabola through three such samples may miss a peak."""

BESIDE = 1e-9
"""How close to a step of the jerk its two sides are looked at, as a share of the duration."""


LARGEST = {"periods": 10_000, "harmonics": 100, "degree": 30, "control_points": 1000}
"""Largest counts of a `Demand`: beyond them a motion needs unreasonable memory and time."""


@dataclass(frozen=True)
class Demand:
    """What is asked of an excitation; every form takes what it knows.

    Attributes:
        period: of one cycle [s].
        periods: how many; forms that are blended in and out repeat what is between, sequential ones every joint's turn.
        harmonics: of a Fourier series.
        seed: of random coefficients.
        share: of the limits that is used.
        posture: its center; see `MotionLimits.around`.
        degree: of a spline or polynomial; 0 for the form's own.
        control_points: of a spline.
        frequencies: of a multisine, or the first and the last of a chirp [Hz]; empty for those of a Fourier series.
        blend: how long a motion that is blended in and out takes for either [s].
        closed: whether a spline ends where it begins, so that it can be repeated.
        free_center: whether the center is chosen too, within the limits around the posture.
        moving: joints that move; the others stand at their center. Empty: all.
        amplitude: of sequential sines, fixed [rad or m], shape (n,); empty: free.
        window: of sequential forms: only what is recorded so long around the middle of every stroke or burst counts
            [s]; 0: all.
        free_period: whether the period is chosen too; then `period` is where the search begins, and motions are
            compared as recordings of equal length.
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

    def __post_init__(self) -> None:
        """Refuse what leaves no motion.

        Raises:
            UsageError: names the value.
        """
        if not 0.0 < self.period < np.inf:
            raise UsageError(f"the period must be a positive number of seconds, not {self.period:g}")
        if self.periods < 1:
            raise UsageError(f"the number of periods must be at least 1, not {self.periods}")
        for name, largest in LARGEST.items():
            if getattr(self, name) > largest:
                raise UsageError(f"{name} must be at most {largest}, not {getattr(self, name)}")
        if not 0.0 < self.share <= 1.0:
            raise UsageError(f"the share of the limits must be above 0 and at most 1, not {self.share:g}")
        if not 0.0 < self.blend < np.inf:
            raise UsageError(f"the time of blending must be a positive number of seconds, not {self.blend:g}")
        if not all(0.0 < frequency < np.inf for frequency in self.frequencies):
            raise UsageError(f"frequencies must be positive [Hz], not {list(self.frequencies)}")
        if not 0.0 <= self.window < np.inf:
            raise UsageError(f"the window must be 0 or a positive number of seconds, not {self.window:g}")


class Parametrization(Protocol):
    """The contract: motions of n joints, one for every vector x of free coefficients.

    Numbers of order 1 are reasonable: what belongs to a joint is in units of its reach, see `MotionLimits.around`.

    Attributes:
        duration: of one cycle [s]; of a family whose period is free, by the clock of `sample`.
        periodic: whether the cycle can be repeated without a stop between.
        windows: beginnings and ends of what is recorded of it [s]; empty: all.
    """

    duration: float
    periodic: bool
    windows: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """What YAML calls it."""

    @property
    def size(self) -> int:
        """Number of free coefficients, all joints together."""

    def trajectory(self, x: Array) -> Timed:
        """The motion, a frozen value that can be written to a file."""

    def sample(self, x: Array, t: Array) -> Sample:
        """The motion at times `t`, shape (n, N) each; what does not depend on x is kept for the same times."""

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """Transposed Jacobian of `sample` times four arrays of shape (n, N); shape (size,)."""

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """Random coefficients, every joint scaled exactly to its first limit times `share`; shape (size,)."""

    def scaled(self, x: Array, factor: Array) -> Array:
        """Coefficients of the motion with every joint's distance from its center times `factor`, shape (n,)."""


class Memory:
    """Keeps what is computed from some arrays of times, the latest few of them."""

    KEPT = 4

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kept: list[tuple[Array, Array]] = []

    def find(self, t: Array) -> Array | None:
        """What belongs to these times; None if it is not kept."""
        return next((values for times, values in self._kept if np.array_equal(times, t)), None)

    def keep(self, t: Array, values: Array) -> Array:
        """Keep it."""
        self._kept = [(t.copy(), values), *self._kept[: self.KEPT - 1]]
        return values


class Centered(ABC):
    """What parametrizations share in which every joint has a center and some numbers.

    x holds the numbers of the joints that move, joint by joint, and then, if they are free, the centers of all joints
    in units of the reach.

    Attributes:
        center, reach: see `MotionLimits.around`.
        moving: numbers of the joints that move, ascending.
    """

    windows: tuple[tuple[float, float], ...] = ()

    AMPLITUDES: ClassVar[slice] = slice(None)
    """Which of a joint's numbers are proportional to its distance from the center."""

    def __init__(
        self,
        limits: MotionLimits,
        demand: Demand,
        numbers: int,
        prototype: Excitation,
        periodic: bool,
        steps: Sequence[float] = (),
        span: float | None = None,
    ) -> None:
        """Set up what does not depend on x.

        Args:
            limits: of the joints.
            demand: what is asked.
            numbers: of each joint.
            prototype: any motion of the family, as fast as `random` makes them.
            periodic: whether it closes.
            steps: times at which the jerk may have steps [s].
            span: part of the motion in which all peaks are [s]; all of it by default.

        Raises:
            UsageError: a moving joint that does not exist.
            MotionError: a posture outside the limits.
        """
        self.center, self.reach = limits.around(demand.posture)
        self.moving = moving_joints(limits, demand)
        self._limits, self._numbers, self._free = limits, numbers, demand.free_center
        self.duration, self.periodic = prototype.duration, periodic
        end = self.duration if span is None else span
        self._grid = np.linspace(0.0, end, 1 + int(np.ceil(OVERSAMPLING * end / prototype.fastest)))
        beside = np.array(steps)[:, None] + BESIDE * end * np.array([-1.0, 1.0])
        self._sides = np.clip(beside.ravel(), 0.0, end)

    @property
    def size(self) -> int:
        """See `Parametrization`."""
        return len(self.moving) * self._numbers + len(self.reach) * self._free

    def _parts(self, x: Array) -> tuple[Array, Array]:
        """Numbers, 0 of joints that stand, shape (n, numbers), and centers [rad or m], shape (n,)."""
        n, count = len(self.reach), len(self.moving) * self._numbers
        numbers = np.zeros((n, self._numbers))
        numbers[self.moving] = x[:count].reshape(len(self.moving), self._numbers)
        return numbers, self.center + self.reach * (x[count:] if self._free else np.zeros(n))

    def _joined(self, numbers: Array, shift: Array) -> Array:
        """Numbers and centers in units of the reach, or derivatives with respect to them, as x has them."""
        own = numbers[self.moving].ravel()
        return np.concatenate([own, shift]) if self._free else own

    @abstractmethod
    def trajectory(self, x: Array) -> Timed:
        """See `Parametrization`."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> Array:
        """Random numbers, amplitudes of any size, shape (n, numbers)."""

    def random(self, rng: np.random.Generator, share: float = 0.9) -> Array:
        """See `Parametrization`."""
        numbers = self._draw(rng)
        shift = rng.uniform(-0.5, 0.5, len(self.reach)) if self._free else np.zeros(len(self.reach))
        x = self._joined(numbers, shift)
        room = self.reach * (1.0 - np.abs(shift))
        largest = self._limits.largest_amplitude(room, self._peaks(x))
        return self.scaled(x, np.where(np.isfinite(largest), share * largest, 1.0))

    def scaled(self, x: Array, factor: Array) -> Array:
        """See `Parametrization`."""
        numbers, center = self._parts(x)
        numbers = numbers.copy()
        numbers[:, self.AMPLITUDES] *= factor[:, None]
        return self._joined(numbers, (center - self.center) / self.reach)

    def _away(self, x: Array, t: Array) -> Sample:
        """The motion as seen from its center, in the part in which all peaks are."""
        motion = self.trajectory(x)
        q, dq, ddq, dddq = motion.evaluate(t)
        return q - motion.center[:, None], dq, ddq, dddq

    def _peaks(self, x: Array) -> Sample:
        """Largest distance from the center, velocity, acceleration and jerk, shape (n,) each."""
        smooth = [_peak(values) for values in self._away(x, self._grid)]
        steps = [np.abs(values).max(axis=1, initial=0.0) * (1.0 + BETWEEN) for values in self._away(x, self._sides)]
        q, dq, ddq, dddq = (np.maximum(*pair) for pair in zip(smooth, steps, strict=True))
        return q, dq, ddq, dddq


def moving_joints(limits: MotionLimits, demand: Demand) -> Integers:
    """Numbers of the joints that a demand moves, ascending.

    Raises:
        UsageError: a joint that does not exist.
    """
    names = limits.joint_names
    for name in demand.moving:
        if name not in names:
            raise UsageError(f"moving: {name} is not a joint; {suggestion(name, list(names))}")
    return np.array([j for j, name in enumerate(names) if name in (demand.moving or names)], dtype=np.int64)


def _peak(values: Array) -> Array:
    """Largest absolute value of finely sampled functions, (n, N) -> (n,): parabolas lie between three neighbours."""
    size = np.abs(values)
    before, here, after = size[:, :-2], size[:, 1:-1], size[:, 2:]
    bend = np.pad(2.0 * here - before - after, ((0, 0), (1, 1)))
    beside, bend = np.maximum(bend[:, :-2], bend[:, 2:]), bend[:, 1:-1]
    # where the function or its slope steps at a sample, the neighbours do not bend alike, and it has no top between
    top = (here >= before) & (here >= after) & (bend > 0.0) & (bend < 2.0 * beside)
    rise = np.where(top, (after - before) ** 2 / (8.0 * np.where(top, bend, 1.0)), 0.0)
    return np.asarray(np.maximum(size.max(axis=1), (here + rise).max(axis=1)) * (1.0 + BETWEEN))
