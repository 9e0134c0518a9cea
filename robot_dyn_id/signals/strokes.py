# SPDX-License-Identifier: Apache-2.0
"""Logistic strokes in a recording, and velocities and accelerations as functions of the measured angle.

On a stroke q = low + span / (1 + exp(-steepness (t - middle))) velocity and acceleration are functions of the angle
(Qian et al., dynamic parameter identification with a Logistic excitation trajectory), so that its noise is not
differentiated. Low end, span, steepness and middle of every stroke are fitted to the recorded angles; the trajectory
that was commanded is not needed. What moves otherwise, such as the transit between two configurations, the approach of
the first one, or a motion of another form, has derivatives instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section

STROKES_USED = Definition(
    "strokes_used",
    Section.DATA,
    "info",
    "Velocities and accelerations are functions of the angle on logistic strokes, and derivatives elsewhere.",
)

MOVING_SHARE = 0.1
"""Speed above which a joint is on a stroke, as a share of its largest speed in the recording."""

USED_SPEED_SHARE = 0.1
"""Speed on a stroke above which the functions of the angle are used, as a share of its largest speed."""

FAST_SHARE = 0.3
"""The same of strokes that are brought to rest faster than the logistic function."""

SAME_SHAPE = 0.05
"""Relative difference of the ends and the steepness of two strokes below which they have one shape."""

LARGEST_DEVIATION = 0.0015
"""RMS deviation of a stroke from the logistic function, averaged over `PARTS` parts, above which it is refused, as a
share of its span, in addition to what noise leaves of itself: half a sine deviates by 0.0025, a quintic by 0.002."""

RESTING_SHARE = 1.5
"""Time around the middle of a stroke in which the joint follows it, in terms of the time in which the functions of the
angle are used: at its ends it comes to rest, while a part of another motion goes on."""

NOISE_DEVIATIONS = 5.0
"""Standard deviations of the mean square of `PARTS` means of noise that are still noise."""

SHORTEST_SPAN = 50.0
"""Shortest span of a stroke, in standard deviations of the noise of the angles."""

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
        used_share: speed above which the functions of the angle are used, as a share of the largest.
    """

    trial: int
    joint: int
    low: float = 0.0
    span: float = 1.0
    steepness: float = 1.0
    middle: float = 0.0
    direction: float = 1.0
    used_share: float = USED_SPEED_SHARE

    @property
    def half(self) -> float:
        """Half the time around the middle in which the functions of the angle are used [s]."""
        return 2.0 * float(np.arccosh(1.0 / np.sqrt(self.used_share))) / self.steepness

    def is_reverse_of(self, other: JointStroke) -> bool:
        """Whether it is the other stroke in the other direction, within `SAME_SHAPE`."""
        ends = abs(self.low - other.low), abs(self.low + self.span - other.low - other.span)
        steepness = abs(self.steepness / other.steepness - 1.0)
        return self.direction != other.direction and max(*(e / self.span for e in ends), steepness) < SAME_SHAPE

    def angle(self, t: Array) -> Array:
        """Angle at times [s], shape (N,) both."""
        u = self.direction * self.steepness * (t - self.middle)
        return np.asarray(self.low + 0.5 * self.span * (1.0 + np.tanh(0.5 * u)))


@dataclass(frozen=True)
class RecordedStrokes:
    """Strokes of all joints in some trials.

    Attributes:
        found: the strokes.
        shares: share of each joint's time of motion in which the functions of the angle are used; NaN at rest.
    """

    found: tuple[JointStroke, ...]
    shares: tuple[float, ...]

    @classmethod
    def from_recordings(cls, recordings: Sequence[Recording], joints: Sequence[str]) -> RecordedStrokes:
        """Fit the strokes of recordings; there may be none."""
        found: list[JointStroke] = []
        total, used = np.zeros((2, len(joints)))
        for trial, recording in enumerate(recordings):
            t, q = _thinned(recording, joints)
            for joint in range(len(joints)):
                moving, strokes = _find_strokes(t, q[:, joint], trial, joint)
                found += strokes
                times = np.concatenate([t[own] for own in moving]) if moving else t[:0]
                on_stroke = np.zeros(len(times), dtype=bool)
                for stroke in strokes:
                    on_stroke |= np.abs(times - stroke.middle) <= stroke.half
                total[joint] += len(times)
                used[joint] += np.count_nonzero(on_stroke)
        shares = np.divide(used, total, out=np.full(len(joints), np.nan), where=total > 0.0)
        return cls(tuple(found), tuple(shares.tolist()))

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


def report_strokes(strokes: RecordedStrokes, names: Sequence[str]) -> tuple[Finding, ...]:
    """Information about the share of each joint's motion that is on strokes.

    Raises:
        InputError: no joint moves on a stroke.
    """
    if not strokes.found:
        raise InputError("no joint moves on a logistic stroke: use velocity: derivative")
    texts = [f"{name} {share:.0%}" for name, share in zip(names, strokes.shares, strict=True) if not math.isnan(share)]
    message = (
        "velocities and accelerations are functions of the angle in these shares of the time that joints move, and "
        f"derivatives elsewhere: {', '.join(texts)}"
    )
    return (STROKES_USED.found(message),)


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
    speed = _smoothed_speed(t, q)
    fastest = float(np.abs(speed).max())
    if fastest < SLOWEST_STROKE:
        return []
    sign = np.sign(speed) * (np.abs(speed) > MOVING_SHARE * fastest)
    edges = np.flatnonzero(np.diff(sign, prepend=0.0, append=0.0))
    return [slice(a, b) for a, b in itertools.pairwise(edges.tolist()) if sign[a] and b - a >= FEWEST_SAMPLES]


def _smoothed_speed(t: Array, q: Array) -> Array:
    """Mean speed over `SMOOTHING_S` around each sample, shape (N,)."""
    reach = max(1, round(SMOOTHING_S / 2.0 / float(np.median(np.diff(t)))))
    index = np.arange(len(t))
    before, after = np.maximum(index - reach, 0), np.minimum(index + reach, len(t) - 1)
    return np.asarray((q[after] - q[before]) / (t[after] - t[before]))


def _find_strokes(t: Array, q: Array, trial: int, joint: int) -> tuple[list[slice], list[JointStroke]]:
    """Stretches in which a joint moves, and its strokes; t and q have the shape (N,).

    A stroke that is brought to rest faster than the logistic function is one where it is fast, if the joint makes it in
    the other direction too: short parts of many motions are near a logistic function.
    """
    moving = _moving(t, q)
    found: list[JointStroke] = []
    parts: list[JointStroke] = []
    for own in moving:
        stroke = _fit(t, q, own, JointStroke(trial, joint))
        if stroke is not None:
            found.append(stroke)
            continue
        part = _fit(t, q, _fast(t, q, own), JointStroke(trial, joint, used_share=FAST_SHARE))
        if part is not None:
            parts.append(part)
    return moving, found + [part for part in parts if any(part.is_reverse_of(other) for other in parts)]


def _fast(t: Array, q: Array, own: slice) -> slice:
    """Part of a stretch in which a joint has more than `FAST_SHARE` of the largest speed in it."""
    speed = np.abs(_smoothed_speed(t, q)[own])
    fast = np.flatnonzero(speed > FAST_SHARE * speed.max())
    return slice(own.start + int(fast[0]), own.start + int(fast[-1]) + 1)


def _fit(every: Array, angles: Array, own: slice, kind: JointStroke) -> JointStroke | None:
    """Fit a logistic function; None if the angles deviate from it, or are those of another smooth step.

    Args:
        every: times of the recording [s], shape (N,).
        angles: angles at these times, shape (N,).
        own: stretch that it is fitted to.
        kind: trial, joint, and the share of the speed above which the functions of the angle are used.
    """
    t, q = every[own], angles[own]
    direction = float(np.sign(q[-1] - q[0]))
    span, middle, length = abs(float(q[-1] - q[0])), float(t.mean()), float(t[-1] - t[0])
    if len(t) < FEWEST_SAMPLES or span == 0.0:
        return None

    def stroke(x: Array) -> JointStroke:
        size, steepness = np.exp(x[1:3]).tolist()
        return replace(
            kind,
            low=float(x[0]) - size / 2.0,
            span=size,
            steepness=steepness,
            middle=middle + float(x[3]),
            direction=direction,
        )

    scale = np.array([span, 1.0, 1.0, 1.0])
    start = np.array([float(q.mean()), np.log(1.2 * span), np.log(6.0 / length), 0.0])
    best, rest = _minimize(lambda x: stroke(x).angle(t) - q, start, scale)
    if kind.used_share < FAST_SHARE:
        first = stroke(best)
        around = np.abs(every - first.middle) <= RESTING_SHARE * first.half
        t, q = every[around], angles[around]
        best, rest = _minimize(lambda x: stroke(x).angle(t) - q, best, scale)
        if stroke(best).half > RESTING_SHARE * first.half:
            return None
    found = stroke(best)
    noise = float(np.std(np.diff(rest))) / np.sqrt(2.0)
    if found.span < SHORTEST_SPAN * noise:
        return None
    means = np.array([part.mean() for part in np.array_split(rest, PARTS)])
    left = noise**2 * PARTS / len(rest) * (1.0 + NOISE_DEVIATIONS * np.sqrt(2.0 / PARTS))
    if np.mean(means**2) > (LARGEST_DEVIATION * found.span) ** 2 + left:
        return None
    start[2] = np.log(1.25 * length)
    for step in (_quintic, _half_sine):

        def other(x: Array, step: Callable[[Array], Array] = step) -> Array:
            s = np.clip((t - middle - x[3]) / np.exp(x[2]) + 0.5, 0.0, 1.0)
            return np.asarray(x[0] + direction * np.exp(x[1]) * (step(s) - 0.5) - q)

        if np.sum(rest**2) > np.sum(_minimize(other, start, scale)[1] ** 2) + (NOISE_DEVIATIONS * noise) ** 2:
            return None
    return found


def _quintic(s: Array) -> Array:
    return np.asarray(s**3 * (10.0 + s * (6.0 * s - 15.0)))


def _half_sine(s: Array) -> Array:
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * s))


def _minimize(residuals: Callable[[Array], Array], start: Array, scale: Array) -> tuple[Array, Array]:
    """Least squares from a start: the minimum and its residuals."""
    from scipy.optimize import leastsq  # slow to import, and seldom used

    # a fifth of the time of `least_squares`, which takes the differences for the Jacobian in Python
    x, _, course, _, _ = leastsq(residuals, start, diag=1.0 / scale, full_output=True)
    return np.asarray(x), np.asarray(course["fvec"])
