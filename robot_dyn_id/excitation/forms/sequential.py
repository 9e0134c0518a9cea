# SPDX-License-Identifier: Apache-2.0
"""One joint after the other, the others standing: the family of such motions, and sines in it.

Sequential sines: Wang et al., Sensors 2025, 25(18), 5749.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Centered, Demand, moving_joints
from robot_dyn_id.excitation.trajectory import Sample, product, window


@dataclass(frozen=True)
class Turns(ABC):
    """Joints that move one after the other.

    Attributes:
        center: shape (n,) [rad or m].
        period: of what a joint does in its turn [s].
        periods: how many of them in a turn; at least 1.
        order: the joints in the order of their turns: distal to proximal, so that a joint's parameters are told apart
            from those of the bodies that it carries. Others stand.
    """

    name: ClassVar[str]
    """What YAML calls the form."""
    FORMULA: ClassVar[str]
    """The motion in one line, for the file."""
    TIMES: ClassVar[tuple[str, ...]] = ("period",)
    """See `Timed`."""
    RATES: ClassVar[tuple[str, ...]] = ()
    """See `Timed`."""

    center: Array
    period: float
    periods: int
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check that the parts fit together.

        Raises:
            UsageError: a joint that does not exist or has two turns, wrong shapes, no duration.
        """
        n = len(self.center)
        if not 0.0 < self.period < np.inf or self.periods < 1:
            raise UsageError(f"a {self.name} motion needs a positive period, and at least one")
        turns = sorted(self.order)
        if not turns or turns != sorted(set(turns) & set(range(n))):
            raise UsageError(f"a {self.name} motion needs one turn for each of its {n} joints, or for some of them")
        if any(numbers.shape != (n,) for numbers in self.numbers()):
            raise UsageError(f"a {self.name} motion needs one number for each of its {n} joints")

    @property
    @abstractmethod
    def turn(self) -> float:
        """How long one joint moves [s]."""

    @property
    @abstractmethod
    def fastest(self) -> float:
        """See `Excitation`."""

    @abstractmethod
    def numbers(self) -> tuple[Array, ...]:
        """What a joint has beside its center, shape (n,) each."""

    @property
    @abstractmethod
    def middles(self) -> tuple[float, ...]:
        """Middle of every stroke or burst of a turn, since its beginning [s]."""

    @abstractmethod
    def rest(self, joint: int) -> float:
        """A joint's distance from its center before and after its turn [rad or m]."""

    @abstractmethod
    def move(self, joint: int, t: Array) -> Array:
        """A joint's distance from its center in its turn and three derivatives, shape (4, N); at both ends it rests.

        Args:
            joint: its number.
            t: since the beginning of its turn [s], shape (N,).
        """

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.turn * len(self.order)

    def turns(self, t: Array) -> Iterator[tuple[int, Mask, Array]]:
        """Every joint, which of the times are in its turn, shape (N,), and the times since its beginning, (N,).

        Before and after it, the times are those of its ends.
        """
        now = np.clip(np.floor(t / self.turn), 0, len(self.order) - 1)
        for place, joint in enumerate(self.order):
            yield joint, now == place, np.clip(t - place * self.turn, 0.0, self.turn)

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        values = np.zeros((4, len(self.center), len(t)))
        for joint, own, local in self.turns(t):
            values[0, joint] = self.rest(joint)
            if own.any():
                values[:, joint, own] = self.move(joint, local[own])
        return values[0] + self.center[:, None], values[1], values[2], values[3]


class SequentialParametrization(Centered):
    """What motions in turns share; `trajectory` and `_slopes` are the family's own."""

    def __init__(
        self, limits: MotionLimits, demand: Demand, numbers: int, prototype: Turns, steps: Sequence[float]
    ) -> None:
        """See `Centered`: all peaks are in one turn, and `steps` are times in it.

        Raises:
            UsageError: a window that is longer than what it is around, or a moving joint that does not exist.
            MotionError: a posture outside the limits.
        """
        self.name = prototype.name
        super().__init__(limits, demand, numbers, prototype, False, steps, prototype.turn)
        if demand.window:
            self.windows = _windows(prototype, demand.window)

    @abstractmethod
    def trajectory(self, x: Array) -> Turns:
        """See `Parametrization`."""

    @abstractmethod
    def _slopes(self, motion: Turns, joint: int, t: Array) -> Array:
        """Derivatives of `motion.move(joint, t)` with respect to the joint's numbers, shape (numbers, 4, N)."""

    def sample(self, x: Array, t: Array) -> Sample:
        """See `Parametrization`."""
        return self.trajectory(x).evaluate(t)

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """See `Parametrization`."""
        motion, stacked = self.trajectory(x), np.array(gradient)
        numbers = np.zeros((len(self.reach), self._numbers))
        for joint, own, local in motion.turns(t):
            moving = self._slopes(motion, joint, local[own])
            standing = self._slopes(motion, joint, np.zeros(1))[:, 0, 0]
            numbers[joint] = np.einsum("kdn,dn->k", moving, stacked[:, joint, own])
            numbers[joint] += standing * gradient[0][joint, ~own].sum()
        return self._joined(numbers, self.reach * gradient[0].sum(axis=1))

    def _away(self, x: Array, t: Array) -> Sample:
        motion = self.trajectory(x)
        q, dq, ddq, dddq = np.stack([motion.move(joint, t) for joint in range(len(self.reach))], axis=1)
        return q, dq, ddq, dddq


def _windows(motion: Turns, width: float) -> tuple[tuple[float, float], ...]:
    turns = motion.turn * np.arange(len(motion.order))[:, None]
    middles = (turns + np.array(motion.middles)).ravel()
    longest = float(np.diff([-middles[0], *middles, 2.0 * motion.duration - middles[-1]]).min())
    if width > longest * (1.0 + 1e-9):
        raise UsageError(f"a window of {width:g} s is longer than the {longest:g} s of a {motion.name} that it is in")
    return tuple((float(middle - width / 2.0), float(middle + width / 2.0)) for middle in middles)


@dataclass(frozen=True)
class SequentialSine(Turns):
    """q_j = center_j + amplitude_j v(t) sin(2 pi t / period) while it is joint j's turn, center_j otherwise.

    Over one period at the beginning and one at the end of a turn, v(t) grows from 0 to 1 and falls back: both ends are
    at rest, without acceleration. `periods` are those of full amplitude.

    Attributes:
        amplitude: shape (n,) [rad or m].
    """

    name: ClassVar[str] = "sequential_sine"
    FORMULA: ClassVar[str] = (
        "center_j + amplitude_j v(s) sin(2 pi s / period) in joint j's turn, s from 0 to (periods + 2) period, v a "
        "quintic in and out over one period each; center_j otherwise"
    )

    amplitude: Array

    @property
    def turn(self) -> float:
        """See `Turns`."""
        return (self.periods + 2) * self.period

    @property
    def middles(self) -> tuple[float, ...]:
        """See `Turns`."""
        return (self.turn / 2.0,)

    @property
    def fastest(self) -> float:
        """The period [s]."""
        return self.period

    def numbers(self) -> tuple[Array, ...]:
        """See `Turns`."""
        return (self.amplitude,)

    def rest(self, joint: int) -> float:
        """See `Turns`."""
        return 0.0

    def move(self, joint: int, t: Array) -> Array:
        """See `Turns`."""
        return np.asarray(self.amplitude[joint] * self.burst(t))

    def burst(self, t: Array) -> Array:
        """A turn of amplitude 1, shape (4, N)."""
        omega = 2.0 * np.pi / self.period
        s0, s1, s2, s3 = (omega**d * np.sin(omega * t + d * np.pi / 2) for d in range(4))
        return np.array(product(window(t, self.turn, self.period), (s0, s1, s2, s3)))

    @staticmethod
    def make(limits: MotionLimits, demand: Demand) -> SequentialParametrization:
        """Amplitudes, in units of the reach, of sines of one period; none where they are fixed.

        Raises:
            UsageError: fixed amplitudes of other joints, or not of all that move.
            MotionError: a posture outside the limits.
        """
        return _Sines(limits, demand)


class _Sines(SequentialParametrization):
    """One number for each joint, its amplitude, or none where that is fixed."""

    def __init__(self, limits: MotionLimits, demand: Demand) -> None:
        n, rise = len(limits.joint_names), demand.period
        self._order = tuple(reversed(moving_joints(limits, demand).tolist()))
        self._fixed = np.array(demand.amplitude, dtype=np.float64)
        if len(self._fixed) and (self._fixed.shape != (n,) or not np.all(self._fixed[list(self._order)] > 0.0)):
            raise UsageError("amplitude: give a positive number for every joint that moves, or none at all")
        self._demand = demand
        prototype = self._motion(np.zeros(n), np.zeros(n))
        steps = (0.0, rise, prototype.turn - rise, prototype.turn)
        super().__init__(limits, demand, 0 if len(self._fixed) else 1, prototype, steps)

    def _motion(self, center: Array, amplitude: Array) -> SequentialSine:
        return SequentialSine(center, self._demand.period, self._demand.periods, self._order, amplitude)

    def trajectory(self, x: Array) -> SequentialSine:
        numbers, center = self._parts(x)
        if not len(self._fixed):
            return self._motion(center, self.reach * numbers[:, 0])
        return self._motion(center, np.where(np.isin(np.arange(len(center)), self.moving), self._fixed, 0.0))

    def _slopes(self, motion: Turns, joint: int, t: Array) -> Array:
        assert isinstance(motion, SequentialSine)
        return np.asarray(self.reach[joint] * motion.burst(t)[None])[: self._numbers]

    def _draw(self, rng: np.random.Generator) -> Array:
        return np.ones((len(self.reach), self._numbers))
