# SPDX-License-Identifier: Apache-2.0
"""Sequential motions, in which one joint moves at a time, and sequential sines.

Sequential sines: Wang et al., Sensors 2025, 25(18), 5749. Here all joints may take their turns in several
configurations, one after the other: with parallel and perpendicular axes, one configuration leaves parameters without
excitation (of 36 base parameters of a UR5, 32 are excited in one, and all in two).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import CenteredParametrization, Demand, find_moving_joints
from robot_dyn_id.excitation.trajectory import Sample, multiply, smooth_step, step_time, window

TRANSIT_MARGIN = 1.0 + 1e-6
"""Time of a transit relative to the shortest one, for rounding errors [-]."""


@dataclass(frozen=True)
class SequentialMotion(ABC):
    """Base class of motions in which one joint moves at a time.

    The time in which a joint moves is called its turn.

    Attributes:
        center: first center configuration [rad or m], shape (n,).
        period: period of the motion within a turn [s].
        periods: number of periods in a turn, at least 1.
        order: indices of the moving joints in the order of their turns: distal to proximal, so that the parameters of
            a joint are separated from those of the bodies that it carries. The other joints do not move.
        further: further center configurations, in which all joints take their turns again [rad or m], shape (k, n).
        transit: time of a move of all joints from one configuration to the next [s].
    """

    name: ClassVar[str]
    """Name of the form in configuration files."""
    FORMULA: ClassVar[str]
    """Formula of the motion, written to trajectory files."""
    TIMES: ClassVar[tuple[str, ...]] = ("period", "transit")
    """See `Stretchable`."""
    RATES: ClassVar[tuple[str, ...]] = ()
    """See `Stretchable`."""

    center: Array
    period: float
    periods: int
    order: tuple[int, ...]
    further: Array = field(default_factory=lambda: np.zeros((0, 0)), kw_only=True)
    transit: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        """Check shapes, order and period.

        Raises:
            UsageError: a joint does not exist or has two turns, wrong shapes, or a time is not positive.
        """
        n = len(self.center)
        if not len(self.further):  # an empty list in a file has no columns
            object.__setattr__(self, "further", np.zeros((0, n)))
        if len(self.further) and (self.further.shape[1:] != (n,) or not 0.0 < self.transit < np.inf):
            raise UsageError(
                f"further configurations of a {self.name} motion need {n} numbers each, and a transit time"
            )
        if not 0.0 < self.period < np.inf or self.periods < 1:
            raise UsageError(f"a {self.name} motion needs a positive period, and at least one")
        if not 0.0 <= self.transit < np.inf:
            raise UsageError(f"the transit of a {self.name} motion must last a finite time, not {self.transit:g} s")
        turns = sorted(self.order)
        if not turns or turns != sorted(set(turns) & set(range(n))):
            raise UsageError(
                f"a {self.name} motion needs at most one turn for each of its {n} joints, and at least one turn"
            )
        if any(numbers.shape != (n,) for numbers in self.numbers()):
            raise UsageError(f"a {self.name} motion needs one number for each of its {n} joints")

    @property
    @abstractmethod
    def turn(self) -> float:
        """Duration of the turn of one joint [s]."""

    @property
    @abstractmethod
    def fastest(self) -> float:
        """See `Excitation`."""

    @abstractmethod
    def numbers(self) -> tuple[Array, ...]:
        """Parameters of each joint in addition to its center, shape (n,) each."""

    @property
    @abstractmethod
    def middles(self) -> tuple[float, ...]:
        """Middle of every stroke or burst of a turn, from the beginning of the turn [s]."""

    @property
    @abstractmethod
    def passage(self) -> tuple[float, float]:
        """Part of a turn in which the joint passes through all positions of the turn, from its beginning [s]."""

    @abstractmethod
    def rest(self, joint: int) -> float:
        """Position of a joint relative to its center before and after its turn [rad or m]."""

    @abstractmethod
    def move(self, joint: int, t: Array) -> Array:
        """Position of a joint relative to its center during its turn, which begins and ends at rest.

        Args:
            joint: index of the joint.
            t: times from the beginning of the turn [s], shape (N,).

        Returns:
            Position and three derivatives, shape (4, N).
        """

    @property
    def centers(self) -> Array:
        """All center configurations [rad or m], shape (k + 1, n)."""
        return np.vstack([self.center, self.further]) if len(self.further) else self.center[None]

    @property
    def stay(self) -> float:
        """Time in one configuration [s]."""
        return self.turn * len(self.order)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.stay + len(self.further) * (self.stay + self.transit)

    @property
    def passages(self) -> tuple[tuple[float, float], ...]:
        """Intervals in which the motion passes through all of its positions [s]: one in each turn, and transits."""
        visits = (self.stay + self.transit) * np.arange(1 + len(self.further))
        turns = (visits[:, None] + self.turn * np.arange(len(self.order))).ravel()
        begin, end = self.passage
        within = [(float(turn + begin), float(turn + end)) for turn in turns]
        return (*within, *((float(visit - self.transit), float(visit)) for visit in visits[1:]))

    def turns(self, t: Array) -> Iterator[tuple[int, Mask, Array]]:
        """Iterate over the joints that move.

        Args:
            t: times of the motion [s], shape (N,).

        Yields:
            Index of the joint, mask of the times within its turns, shape (N,), and times from the beginning of the
            turn, limited to the turn [s], shape (N,).
        """
        within = t - self._visit(t) * (self.stay + self.transit)
        now = np.where(within > self.stay, -1, np.clip(np.floor(within / self.turn), 0, len(self.order) - 1))
        if not len(self.further):
            now = np.clip(np.floor(t / self.turn), 0, len(self.order) - 1)
        for place, joint in enumerate(self.order):
            yield joint, now == place, np.clip(within - place * self.turn, 0.0, self.turn)

    def shares(self, t: Array) -> Array:
        """Share of each center configuration in the position, with three time derivatives, shape (4, k + 1, N)."""
        shares = np.zeros((4, 1 + len(self.further), len(t)))
        shares[0, 0] = 1.0
        for number in range(len(self.further)):
            begin = (number + 1) * self.stay + number * self.transit
            step = np.array(smooth_step((t - begin) / self.transit))
            step /= self.transit ** np.arange(4.0)[:, None]
            shares[:, number] -= step
            shares[:, number + 1] += step
        return shares

    def _visit(self, t: Array) -> Array:
        """Number of the configuration in which, or in the transit from which, the motion is, shape (N,)."""
        return np.clip(np.floor(t / (self.stay + self.transit)), 0, len(self.further))

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        values = np.einsum("dkt,kn->dnt", self.shares(t), self.centers)
        for joint, own, local in self.turns(t):
            rest = self.rest(joint)
            values[0, joint] += rest
            if own.any():
                values[:, joint, own] += self.move(joint, local[own])
                values[0, joint, own] -= rest
        return values[0], values[1], values[2], values[3]


class SequentialParametrization(CenteredParametrization):
    """Base class of parametrizations of sequential motions."""

    def __init__(
        self,
        limits: MotionLimits,
        demand: Demand,
        prototype: SequentialMotion,
        *,
        coefficients: int,
        jerk_steps: Sequence[float],
    ) -> None:
        """See `CenteredParametrization`: one turn contains all peaks; `jerk_steps` are times within it.

        Raises:
            UsageError: a window is longer than its stroke or burst, or a moving joint does not exist.
            MotionError: the center configuration is outside the limits.
        """
        self.name = prototype.name
        super().__init__(
            limits, demand, prototype, coefficients=coefficients, jerk_steps=jerk_steps, span=prototype.turn
        )
        self._visits = max(1, demand.postures)
        self._free = demand.free_center or self._visits > 1
        self._transit = TRANSIT_MARGIN * step_time(limits, 2.0 * self.reach) if self._visits > 1 else 0.0
        visiting = replace(prototype, transit=self._transit, further=np.zeros((self._visits - 1, len(self.reach))))
        self.duration = visiting.duration
        self.passages = visiting.passages
        if demand.window:
            self.windows = _windows(visiting, demand.window)

    @abstractmethod
    def trajectory(self, x: Array) -> SequentialMotion:
        """See `Parametrization`."""

    @abstractmethod
    def _derivatives(self, motion: SequentialMotion, joint: int, t: Array) -> Array:
        """Derivatives of `motion.move(joint, t)` with respect to the joint's coefficients, shape (K, 4, N)."""

    def sample(self, x: Array, t: Array) -> Sample:
        """See `Parametrization`."""
        return self.trajectory(x).evaluate(t)

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """See `Parametrization`."""
        motion, stacked = self.trajectory(x), np.array(gradient)
        scalars = stacked.shape[1:-2]
        numbers = np.zeros((*scalars, len(self.reach), self._numbers))
        for joint, own, local in motion.turns(t):
            moving = self._derivatives(motion, joint, local[own])
            standing = self._derivatives(motion, joint, np.zeros(1))[:, 0, 0]
            numbers[..., joint, :] = np.einsum("kdt,d...t->...k", moving, stacked[..., joint, own], optimize=True)
            numbers[..., joint, :] += standing * gradient[0][..., joint, ~own].sum(axis=-1, keepdims=True)
        by_center = self.reach * np.einsum("dkt,d...nt->...kn", motion.shares(t), stacked, optimize=True)
        return self._joined(numbers, by_center.reshape(*scalars, -1))

    def _visiting(self, x: Array) -> dict[str, Any]:
        """Fields of the motion that depend on the further configurations."""
        if self._visits == 1:
            return {}
        relative = x[-len(self.reach) * (self._visits - 1) :].reshape(self._visits - 1, -1)
        return {"further": self.center + self.reach * relative, "transit": self._transit}

    def _away(self, x: Array, t: Array) -> Sample:
        motion = self.trajectory(x)
        q, dq, ddq, dddq = np.stack([motion.move(joint, t) for joint in range(len(self.reach))], axis=1)
        return q, dq, ddq, dddq


def _windows(motion: SequentialMotion, width: float) -> tuple[tuple[float, float], ...]:
    visits = (motion.stay + motion.transit) * np.arange(1 + len(motion.further))[:, None, None]
    turns = motion.turn * np.arange(len(motion.order))[:, None]
    middles = (visits + turns + np.array(motion.middles)).ravel()
    longest = float(np.diff([-middles[0], *middles, 2.0 * motion.duration - middles[-1]]).min())
    if width > longest * (1.0 + 1e-9):
        raise UsageError(f"a window of {width:g} s does not fit into the {longest:g} s of a {motion.name} motion")
    return tuple((float(middle - width / 2.0), float(middle + width / 2.0)) for middle in middles)


@dataclass(frozen=True)
class SequentialSine(SequentialMotion):
    """q_j = center_j + amplitude_j v(t) sin(2 pi t / period) in the turn of joint j, center_j otherwise.

    The window v(t) rises from 0 to 1 over the first period of a turn and falls back over the last, so that both ends
    are at rest with zero acceleration. `periods` counts the periods with full amplitude.

    Attributes:
        amplitude: amplitudes [rad or m], shape (n,).
    """

    name: ClassVar[str] = "sequential_sine"
    FORMULA: ClassVar[str] = (
        "center_j + amplitude_j v(s) sin(2 pi s / period) in joint j's turn, s from 0 to (periods + 2) period, v a "
        "quintic in and out over one period each; center_j otherwise"
    )

    amplitude: Array

    @property
    def turn(self) -> float:
        """See `SequentialMotion`."""
        return (self.periods + 2) * self.period

    @property
    def middles(self) -> tuple[float, ...]:
        """See `SequentialMotion`."""
        return (self.turn / 2.0,)

    @property
    def passage(self) -> tuple[float, float]:
        """See `SequentialMotion`: the first period with full amplitude."""
        return self.period, 2.0 * self.period

    @property
    def fastest(self) -> float:
        """The period [s]."""
        return self.period

    def numbers(self) -> tuple[Array, ...]:
        """See `SequentialMotion`."""
        return (self.amplitude,)

    def rest(self, joint: int) -> float:
        """See `SequentialMotion`."""
        return 0.0

    def move(self, joint: int, t: Array) -> Array:
        """See `SequentialMotion`."""
        return np.asarray(self.amplitude[joint] * self.burst(t))

    def burst(self, t: Array) -> Array:
        """Motion of a turn with amplitude 1 and its three derivatives, shape (4, N)."""
        omega = 2.0 * np.pi / self.period
        s0, s1, s2, s3 = (omega**d * np.sin(omega * t + d * np.pi / 2) for d in range(4))
        return np.array(multiply(window(t, self.turn, self.period), (s0, s1, s2, s3)))

    @staticmethod
    def make(limits: MotionLimits, demand: Demand) -> SequentialParametrization:
        """Make the parametrization by amplitudes in units of the reach; without coefficients if they are fixed.

        Raises:
            UsageError: fixed amplitudes are not positive or not given for all moving joints.
            MotionError: the center configuration is outside the limits.
        """
        return _Sines(limits, demand)


class _Sines(SequentialParametrization):
    """One coefficient for each joint, its amplitude, or no coefficient if the amplitudes are fixed."""

    def __init__(self, limits: MotionLimits, demand: Demand) -> None:
        n, rise = len(limits.joint_names), demand.period
        self._order = tuple(reversed(find_moving_joints(limits, demand).tolist()))
        self._fixed = np.array(demand.amplitude, dtype=np.float64)
        if len(self._fixed) and (self._fixed.shape != (n,) or not np.all(self._fixed[list(self._order)] > 0.0)):
            raise UsageError("amplitude: give a positive number for every joint that moves, or leave it out")
        self._demand = demand
        prototype = self._motion(np.zeros(n), np.zeros(n))
        steps = (0.0, rise, prototype.turn - rise, prototype.turn)
        coefficients = 0 if len(self._fixed) else 1
        super().__init__(limits, demand, prototype, coefficients=coefficients, jerk_steps=steps)

    def _motion(self, center: Array, amplitude: Array) -> SequentialSine:
        return SequentialSine(center, self._demand.period, self._demand.periods, self._order, amplitude)

    def trajectory(self, x: Array) -> SequentialSine:
        numbers, center = self._parts(x)
        fixed = np.where(np.isin(np.arange(len(center)), self.moving), self._fixed, 0.0) if len(self._fixed) else None
        amplitude = self.reach * numbers[:, 0] if fixed is None else fixed
        return replace(self._motion(center, amplitude), **self._visiting(x))

    def _derivatives(self, motion: SequentialMotion, joint: int, t: Array) -> Array:
        assert isinstance(motion, SequentialSine)
        return np.asarray(self.reach[joint] * motion.burst(t)[None])[: self._numbers]

    def _draw(self, rng: np.random.Generator) -> Array:
        return np.ones((len(self.reach), self._numbers))
