"""What a motion must keep to: as numbers for a search, with exact gradients, and as margins for people.

The excess of a requirement is dimensionless, at most 0 where it is kept: how far a value is beyond its limit, as a
share of the limit. A requirement has some rows (one for each joint and side, say), each with a value at many instants;
a search sees one smooth number for each row, which is at least the largest of them (Kreisselmeier and Steinhauser
1979), so that what it keeps is kept at every instant that it looks at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision import Clearance
from robot_dyn_id.excitation.information import regressor_gradient
from robot_dyn_id.excitation.limits import ROUNDING, MotionLimits
from robot_dyn_id.excitation.trajectory import Sample
from robot_dyn_id.excitation.workspace import SIDES, Workspace
from robot_dyn_id.regressor import Motion, Regressor

SHARPNESS = 300.0
"""Of the smooth maximum: ten instants near the largest value are told as 0.8 % of the limit more than it."""

POSES = 50
"""Postures in which a search looks for collisions, spread over the motion; afterwards every one is looked at."""


@dataclass(frozen=True)
class Margin:
    """How much of a limit a motion leaves.

    Attributes:
        name: what is limited, with the joint or the pair.
        reached: the extreme value.
        limit: its limit.
        margin: what is left, in the same unit; negative beyond the limit.
        unit: of all three.
        time: when the value is extreme [s].
    """

    name: str
    reached: float
    limit: float
    margin: float
    unit: str
    time: float

    @property
    def kept(self) -> bool:
        """Whether the limit is kept, to rounding."""
        return self.margin >= -ROUNDING * max(1.0, abs(self.limit))

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"{self.name}: reaches {self.reached:.4g} {self.unit} at {self.time:.3f} s, limit {self.limit:.4g} "
            f"{self.unit}"
        )


class Requirement(ABC):
    """The contract. A requirement looks at a sample of a motion of n joints at N instants."""

    @abstractmethod
    def excess(self, motion: Sample) -> Array:
        """By how much each value is beyond its limit, as a share of it, shape (rows, values)."""

    @abstractmethod
    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """For every row, the derivatives of sum(weights * excess) over its values by the motion.

        Args:
            motion: at N instants.
            weights: shape (rows, values).
        """

    @abstractmethod
    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """What is left of every limit; `t` are the times [s], shape (N,)."""

    def largest(self, motion: Sample) -> Array:
        """The smooth maximum of every row, shape (rows,)."""
        excess = self.excess(motion)
        peak = excess.max(axis=1)
        return np.asarray(peak + np.log(np.exp(SHARPNESS * (excess - peak[:, None])).sum(axis=1)) / SHARPNESS)

    def largest_slopes(self, motion: Sample) -> Iterator[Sample]:
        """Derivatives of `largest` by the motion, row by row."""
        excess = self.excess(motion)
        weights = np.exp(SHARPNESS * (excess - excess.max(axis=1, keepdims=True)))
        return self.slopes(motion, weights / weights.sum(axis=1, keepdims=True))


class JointLimits(Requirement):
    """Position, velocity, acceleration and jerk of every joint; both sides of a limit are one row."""

    def __init__(self, limits: MotionLimits) -> None:
        """Take what is limited at all."""
        self._limits, (_, reach) = limits, limits.around()
        lower_and_upper = [(limits.lower, limits.upper, reach, "position", "")]
        for bound, word, per in (
            (limits.velocity, "velocity", "/s"),
            (limits.acceleration, "acceleration", "/s^2"),
            (limits.jerk, "jerk", "/s^3"),
        ):
            lower_and_upper.append((-bound, bound, bound, word, per))
        self._rows = [
            (order, j, float(lower[j]), float(upper[j]), float(scale[j]), word, limits.unit(j) + per)
            for j in range(len(limits.joint_names))
            for order, (lower, upper, scale, word, per) in enumerate(lower_and_upper)
            if np.isfinite(lower[j]) or np.isfinite(upper[j])
        ]

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        return np.array(
            [
                np.concatenate([motion[order][j] - upper, lower - motion[order][j]]) / scale
                for order, j, lower, upper, scale, *_ in self._rows
            ]
        )

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for weight, (order, j, _, _, scale, *_) in zip(weights, self._rows, strict=True):
            slope = _nothing(motion)
            slope[order][j] = _both_sides(weight) / scale
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        return tuple(
            _nearer(f"{word} of {self._limits.joint_names[j]}", unit, t, motion[order][j], lower, upper)
            for order, j, lower, upper, _, word, unit in self._rows
        )


class EffortLimits(Requirement):
    """The torque or force of every joint, by a model: of the URDF, or identified."""

    def __init__(self, regressor: Regressor, parameters: Array, effort: Array) -> None:
        """Take the model.

        Args:
            regressor: robot and terms.
            parameters: of all columns, shape (c,).
            effort: limits [N m or N], shape (n,); infinite where there is none.

        Raises:
            UsageError: no joint has a limit.
        """
        self._regressor, self._parameters, self._effort = regressor, parameters, effort
        self._joints = np.flatnonzero(np.isfinite(effort))
        if not len(self._joints):
            raise UsageError("no joint has an effort limit: leave the torque out of the constraints")

    def _torque(self, motion: Sample) -> Array:
        return self._regressor.torque(Motion(*motion[:3]), self._parameters)

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        share = self._torque(motion)[self._joints] / self._effort[self._joints][:, None]
        return np.concatenate([share, -share], axis=1) - 1.0

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        used = np.flatnonzero(self._parameters)
        for weight, joint in zip(weights, self._joints, strict=True):
            slots = np.full((len(self._parameters), len(self._effort)), -1)
            slots[used, joint] = np.arange(len(used))
            cotangent = np.outer(self._parameters[used], _both_sides(weight) / self._effort[joint])
            by_motion = regressor_gradient(self._regressor, Motion(*motion[:3]), slots, cotangent)
            yield (*by_motion, np.zeros_like(motion[3]))

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        torque, model, limit = self._torque(motion), self._regressor.model, self._effort
        return tuple(
            _nearer(f"effort of {model.joint_names[j]}", model.effort_units[j], t, torque[j], -limit[j], limit[j])
            for j in self._joints
        )


class Separation(Requirement):
    """Distance of the robot from itself and from obstacles."""

    def __init__(self, clearance: Clearance, margin: float) -> None:
        """Take the geometry.

        Args:
            clearance: of the robot and what is around it.
            margin: distance that is kept in the search [m]; afterwards only contact is not allowed.

        Raises:
            UsageError: a negative margin, or nothing to be compared.
        """
        if not 0.0 <= margin < clearance.within:
            raise UsageError(f"clearance {margin:g} m must be at least 0 and less than {clearance.within:g} m")
        if not clearance.pairs:
            raise UsageError("no pair of links or obstacles can be checked for collisions: leave the clearance out")
        self._clearance, self._margin = clearance, margin

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`: as a share of 0.1 m, the range in which distances are known."""
        near = self._margin - self._clearance.distances(np.ascontiguousarray(motion[0][:, self._seen(motion)]))
        return np.asarray(near.reshape(1, -1) / self._clearance.within)

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        seen, slope = self._seen(motion), _nothing(motion)
        by_distance = -weights[0].reshape(len(self._clearance.pairs), -1) / self._clearance.within
        slope[0][:, seen] = self._clearance.pull_back(np.ascontiguousarray(motion[0][:, seen]), by_distance)
        yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; all instants are looked at."""
        distance, pair = self._clearance.smallest(motion[0])
        worst = int(np.argmin(distance))
        name = self._clearance.pairs[pair[worst]] if pair[worst] >= 0 else "all pairs"
        nearest = float(distance[worst])
        return (Margin(f"distance of {name}", nearest, 0.0, nearest, "m", float(t[worst])),)

    @staticmethod
    def _seen(motion: Sample) -> slice:
        return slice(None, None, max(1, motion[0].shape[1] // POSES))


class InWorkspace(Requirement):
    """The room that a frame stays in."""

    def __init__(self, workspace: Workspace) -> None:
        """Take the walls that there are."""
        self._workspace = workspace
        self._walls = np.isfinite(np.concatenate([workspace.lower, workspace.upper]))

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`: in m."""
        return np.asarray(-self._workspace.margins(motion[0])[self._walls])

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for row, side in enumerate(np.flatnonzero(self._walls)):
            slope, one = _nothing(motion), np.zeros((6, motion[0].shape[1]))
            one[side] = -weights[row]
            slope[0][:] = self._workspace.pull_back(motion[0], one)
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        left, found = self._workspace.margins(motion[0]), []
        for side in np.flatnonzero(self._walls):
            worst = int(np.argmin(left[side]))
            wall = float(np.concatenate([self._workspace.lower, self._workspace.upper])[side])
            out = float(left[side, worst])
            found.append(
                Margin(
                    f"{SIDES[side]} side of the workspace of {self._workspace.link}",
                    wall + out if side < 3 else wall - out,
                    wall,
                    out,
                    "m",
                    float(t[worst]),
                )
            )
        return tuple(found)


class QuietBand(Requirement):
    """A band of frequencies, a resonance say, in which no joint is accelerated."""

    SHARE = 0.02
    """What may be left in the band: root mean square acceleration as a share of the limit of acceleration."""

    def __init__(self, limits: MotionLimits, duration: float, low: float, high: float) -> None:
        """Choose the frequencies.

        Args:
            limits: of the joints; their accelerations must be limited.
            duration: of the motion that is looked at [s].
            low: beginning of the band [Hz].
            high: its end [Hz].

        Raises:
            UsageError: no band, one that holds no frequency of a motion of this duration, or no acceleration limit.
        """
        orders = np.arange(np.ceil(low * duration - 1e-9), np.floor(high * duration + 1e-9) + 1)
        if not 0.0 < low <= high or not len(orders):
            raise UsageError(
                f"band {low:g} to {high:g} Hz holds no multiple of 1 / {duration:g} s: there is nothing to be avoided"
            )
        if not np.all(np.isfinite(limits.acceleration)):
            raise UsageError("a band of frequencies is kept quiet compared with acceleration limits: give them")
        self._limits, self._orders, self._band = limits, orders, (low, high)

    def _amplitudes(self, motion: Sample) -> tuple[Array, Array]:
        """Fourier coefficients of the accelerations, shape (n, frequencies), and what they are made with."""
        count = motion[2].shape[1]
        waves = np.exp(-2j * np.pi * np.outer(np.arange(count), self._orders) / count) / count
        return motion[2] @ waves, waves

    def _rms(self, motion: Sample) -> tuple[Array, Array, Array]:
        coefficients, waves = self._amplitudes(motion)
        return np.sqrt(2.0 * np.sum(np.abs(coefficients) ** 2, axis=1)), coefficients, waves

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`."""
        return np.asarray(self._rms(motion)[0] / (self.SHARE * self._limits.acceleration) - 1.0)[:, None]

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        rms, coefficients, waves = self._rms(motion)
        for j, limit in enumerate(self.SHARE * self._limits.acceleration):
            slope = _nothing(motion)
            if rms[j] > 0.0:
                by_acceleration = 2.0 * np.real(waves @ coefficients[j].conj()) / rms[j]
                slope[2][j] = weights[j, 0] / limit * by_acceleration
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; the times are equally spaced over the whole motion."""
        open_end: Sample = tuple(values[:, :-1] for values in motion)  # type: ignore[assignment]
        rms, allowed = self._rms(open_end)[0], self.SHARE * self._limits.acceleration
        worst = int(np.argmax(rms / allowed))
        name = f"acceleration of {self._limits.joint_names[worst]} from {self._band[0]:g} to {self._band[1]:g} Hz"
        reached, limit = float(rms[worst]), float(allowed[worst])
        return (Margin(name, reached, limit, limit - reached, f"{self._limits.unit(worst)}/s^2", 0.0),)


def _both_sides(weights: Array) -> Array:
    """Weights of the excess over an upper limit and then of that under a lower one, as weights of the values."""
    half = len(weights) // 2
    return weights[:half] - weights[half:]


def _nearer(name: str, unit: str, t: Array, values: Array, lower: float, upper: float) -> Margin:
    """What is left of the side that is nearer to its limit."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if upper - values[high] <= values[low] - lower:
        return Margin(name, float(values[high]), float(upper), float(upper - values[high]), unit, float(t[high]))
    return Margin(name, float(values[low]), float(lower), float(values[low] - lower), unit, float(t[low]))


def _nothing(motion: Sample) -> Sample:
    """Derivatives that are 0."""
    zeros = np.zeros((4, *motion[0].shape))
    return zeros[0], zeros[1], zeros[2], zeros[3]
