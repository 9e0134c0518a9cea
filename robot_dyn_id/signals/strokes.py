# SPDX-License-Identifier: Apache-2.0
"""Logistic strokes in a recording, and velocities and accelerations as functions of the measured angle.

On a stroke q = low + span / (1 + exp(-steepness (t - middle))) velocity and acceleration are functions of the angle
(Qian et al., dynamic parameter identification with a Logistic excitation trajectory), so that its noise is not
differentiated. Low end, span, steepness and middle of every stroke are fitted to the recorded angles; the trajectory
that was commanded is not needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError

MOVING_SHARE = 0.1
"""Speed above which a joint is on a stroke, as a share of its largest speed in the recording."""

USED_SPEED_SHARE = 0.1
"""Speed on a stroke above which the functions of the angle are used, as a share of its largest speed."""

LARGEST_DEVIATION = 0.0015
"""RMS deviation of a stroke from the logistic function, averaged over `PARTS` parts, above which it is refused, as a
share of its span: half a sine deviates by 0.0025. Noise averages out."""

PARTS = 10
"""Parts of a stroke over which its deviation is averaged."""

FITTED_RATE_HZ = 100.0
"""Largest number of samples per second that strokes are fitted to."""

SMOOTHING_S = 0.1
"""Time over which the speed is averaged to find the strokes [s]."""

SLOWEST_STROKE = 0.01
"""Largest speed of a joint below which it is at rest: noise of encoders [rad/s or m/s]."""

FEWEST_SAMPLES = 2 * PARTS
"""Fewest samples of a stroke."""


def compute_rates_at_angle(
    q: Array, low: Array, span: Array, steepness: Array, direction: Array
) -> tuple[Array, Array]:
    """Velocity and acceleration of a logistic stroke as functions of the angle alone.

    With u = q - low: dq = direction steepness / span u (span - u), ddq = (steepness / span)^2 u (span - u)
    (span - 2 u). A measured angle yields both without differentiation; its error has the largest effect near the ends
    of a stroke, where u (span - u) is small.

    Args:
        q: angles or positions [rad or m], any shape.
        low: lower end of the stroke [rad or m], of a shape that broadcasts with q, like all other arguments.
        span: length of the stroke [rad or m].
        steepness: steepness of the stroke [1/s].
        direction: commanded direction, 1 rising or -1 falling.
    """
    u, rate = q - low, steepness / span
    return direction * rate * u * (span - u), rate**2 * u * (span - u) * (span - 2.0 * u)


@dataclass(frozen=True)
class JointStroke:
    """One stroke of one joint.

    Attributes:
        trial: number of the trial.
        joint: index of the joint.
        low: lower end [rad or m].
        span: length [rad or m].
        steepness: steepness [1/s].
        middle: time of the middle [s].
        direction: 1 rising, -1 falling.
    """

    trial: int
    joint: int
    low: float
    span: float
    steepness: float
    middle: float
    direction: float

    @property
    def half(self) -> float:
        """Half the time around the middle in which the functions of the angle are used [s]."""
        return 2.0 * float(np.arccosh(1.0 / np.sqrt(USED_SPEED_SHARE))) / self.steepness

    def angle(self, t: Array) -> Array:
        """Angle at times [s], shape (N,) both."""
        return self.low + self.span / (1.0 + np.exp(-self.direction * self.steepness * (t - self.middle)))


@dataclass(frozen=True)
class RecordedStrokes:
    """Strokes of all joints in some trials.

    Attributes:
        found: the strokes.
    """

    found: tuple[JointStroke, ...]

    @classmethod
    def from_recordings(cls, recordings: Sequence[Recording], joints: Sequence[str]) -> RecordedStrokes:
        """Fit the strokes of recordings.

        Raises:
            InputError: a joint moves otherwise than on logistic strokes, or no joint moves.
        """
        found: list[JointStroke] = []
        for trial, recording in enumerate(recordings):
            t, q = _thinned(recording, joints)
            for joint, name in enumerate(joints):
                for own in _moving(t, q[:, joint]):
                    stroke, deviation = _fit(t[own], q[own, joint], trial, joint)
                    if deviation > LARGEST_DEVIATION:
                        raise InputError(
                            f"{recording.source}: joint {name} deviates by {deviation:.1%} of its way from a logistic "
                            f"stroke between {t[own.start]:.2f} and {t[own.stop - 1]:.2f} s: use velocity: derivative"
                        )
                    found.append(stroke)
        if not found:
            raise InputError(f"{', '.join(one.source for one in recordings)}: no strokes: use velocity: derivative")
        return cls(tuple(found))

    def rates(self, trial: int, t: Array, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array]:
        """Velocities and accelerations, shape (n, N) each: functions of the angle on a stroke, else the given ones.

        Args:
            trial: number of the trial.
            t: times [s], shape (N,).
            q: measured positions [rad or m], shape (n, N).
            dq: velocities outside of the strokes, shape (n, N).
            ddq: accelerations outside of the strokes, shape (n, N).
        """
        dq, ddq = dq.copy(), ddq.copy()
        for stroke, own in self._in_trial(trial, t):
            shape = np.array(stroke.low), np.array(stroke.span), np.array(stroke.steepness)
            rates = compute_rates_at_angle(q[stroke.joint, own], *shape, np.array(stroke.direction))
            dq[stroke.joint, own], ddq[stroke.joint, own] = rates
        return dq, ddq

    def covered(self, trial: int, t: Array, joints: int) -> Mask:
        """Samples in which the functions of the angle are used, shape (n, N)."""
        covered = np.zeros((joints, len(t)), dtype=bool)
        for stroke, own in self._in_trial(trial, t):
            covered[stroke.joint] |= own
        return covered

    def _in_trial(self, trial: int, t: Array) -> Iterator[tuple[JointStroke, Mask]]:
        """Strokes of a trial, and the samples on each of them, shape (N,)."""
        for stroke in self.found:
            if stroke.trial == trial:
                yield stroke, np.abs(t - stroke.middle) <= stroke.half


def _thinned(recording: Recording, joints: Sequence[str]) -> tuple[Array, Array]:
    """Times, shape (N,), and positions, shape (N, n), with at most `FITTED_RATE_HZ` samples per second."""
    times: list[Array] = []
    positions: list[Array] = []
    for chunk in recording.chunks(joints):
        sound = np.asarray(np.isfinite(chunk.q).all(axis=1))
        slot = np.floor(chunk.t * FITTED_RATE_HZ)
        first = sound & (np.diff(slot, prepend=-np.inf) > 0.0)
        times.append(chunk.t[first])
        positions.append(chunk.q[first])
    return np.concatenate(times), np.concatenate(positions)


def _moving(t: Array, q: Array) -> list[slice]:
    """Stretches in which a joint moves in one direction."""
    if len(t) < FEWEST_SAMPLES:
        return []
    reach = max(1, round(SMOOTHING_S / 2.0 / float(np.median(np.diff(t)))))
    index = np.arange(len(t))
    before, after = np.maximum(index - reach, 0), np.minimum(index + reach, len(t) - 1)
    speed = (q[after] - q[before]) / (t[after] - t[before])
    fastest = float(np.abs(speed).max())
    if fastest < SLOWEST_STROKE:
        return []
    sign = np.sign(speed) * (np.abs(speed) > MOVING_SHARE * fastest)
    edges = np.flatnonzero(np.diff(sign, prepend=0.0, append=0.0))
    return [slice(a, b) for a, b in itertools.pairwise(edges.tolist()) if sign[a] and b - a >= FEWEST_SAMPLES]


def _fit(t: Array, q: Array, trial: int, joint: int) -> tuple[JointStroke, float]:
    """Fit a logistic function; with the RMS deviation from it as a share of its span."""
    from scipy.optimize import least_squares  # slow to import, and seldom used

    direction = float(np.sign(q[-1] - q[0])) or 1.0
    span, middle = 1.2 * abs(float(q[-1] - q[0])), float(t.mean())
    start = np.array([float(q.mean()), np.log(span), np.log(6.0 / float(t[-1] - t[0])), 0.0])

    def stroke(x: Array) -> JointStroke:
        size = float(np.exp(x[1]))
        return JointStroke(
            trial, joint, float(x[0]) - size / 2.0, size, float(np.exp(x[2])), middle + float(x[3]), direction
        )

    found = stroke(least_squares(lambda x: stroke(x).angle(t) - q, start, x_scale=np.array([span, 1.0, 1.0, 1.0])).x)
    means = [part.mean() for part in np.array_split(found.angle(t) - q, PARTS)]
    return found, float(np.sqrt(np.mean(np.square(means)))) / found.span
