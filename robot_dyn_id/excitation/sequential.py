"""One joint after the other, each with a sine, the others standing (Wang et al., Sensors 2025, 25(18), 5749)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Sample, smooth_step


@dataclass(frozen=True)
class SequentialSine:
    """q_j = posture_j + amplitude_j w(t) sin(2 pi t / period) while it is joint j's turn, posture_j otherwise.

    Over one period at the beginning and one at the end of a turn, w(t) grows from 0 to 1 and falls back: both ends are
    at rest, without acceleration.

    Attributes:
        period: of the sine [s].
        periods: of full amplitude in each turn; at least 1.
        posture: shape (n,) [rad or m].
        amplitude: shape (n,) [rad or m].
        order: the joints in the order of their turns: distal to proximal, so that a joint's parameters are told apart
            from those of the bodies that it carries.
    """

    period: float
    periods: int
    posture: Array
    amplitude: Array
    order: tuple[int, ...]

    @property
    def turn(self) -> float:
        """How long one joint moves [s]."""
        return (self.periods + 2) * self.period

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return self.turn * len(self.order)

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        values = np.zeros((4, len(self.posture), len(t)))
        values[0] = self.posture[:, None]
        turn = np.clip(np.floor(t / self.turn), 0, len(self.order) - 1)
        for place, joint in enumerate(self.order):
            now = turn == place
            local = t[now] - place * self.turn
            values[:, joint, now] += self.amplitude[joint] * _burst(local, self.period, self.periods)
        return values[0], values[1], values[2], values[3]


def _burst(t: Array, period: float, periods: int) -> Array:
    """A sine of amplitude 1 that swells over one period and fades over another, and its derivatives, shape (4, N)."""
    rise, fall = smooth_step(t / period), smooth_step(t / period - (periods + 1))
    w0, w1, w2, w3 = ((rise[d] - fall[d]) / period**d for d in range(4))
    omega = 2.0 * np.pi / period
    s0, s1, s2, s3 = (omega**d * np.sin(omega * t + d * np.pi / 2) for d in range(4))
    return np.array(
        [
            w0 * s0,
            w1 * s0 + w0 * s1,
            w2 * s0 + 2.0 * w1 * s1 + w0 * s2,
            w3 * s0 + 3.0 * w2 * s1 + 3.0 * w1 * s2 + w0 * s3,
        ]
    )


def sequential_within(
    limits: MotionLimits, period: float = 4.0, periods: int = 1, share: float = 0.9, posture: Sequence[float] = ()
) -> SequentialSine:
    """Sines that bring every joint to its first limit.

    Args:
        limits: of the joints.
        period: of the sines [s].
        periods: of full amplitude per joint.
        share: of the limits that is used.
        posture: where the joints stand while it is not their turn; see `MotionLimits.around`.

    Raises:
        UsageError: period, periods, share or posture that leave no motion.
        MotionError: a posture outside the limits.
    """
    if not (period > 0 and periods >= 1 and 0 < share <= 1):
        raise UsageError("a sequential sine needs a positive period, at least one of them and a share in (0, 1]")
    centre, reach = limits.around(posture)
    n = len(centre)
    one = SequentialSine(period, periods, np.zeros(1), np.ones(1), (0,))
    q, dq, ddq, _ = one.evaluate(np.linspace(0.0, one.duration, 1000 * (periods + 2) + 1))
    # The fade mirrors the rise. A grid of h misses a smooth peak by h^2 / 8 times its curvature: 1e-4 is beyond that.
    peaks = [np.full(n, np.abs(value).max() * (1.0 + 1e-4)) for value in (q, dq, ddq)]
    amplitude = share * limits.largest_amplitude(reach, (peaks[0], peaks[1], peaks[2]))
    return SequentialSine(period, periods, centre, amplitude, tuple(reversed(range(n))))
