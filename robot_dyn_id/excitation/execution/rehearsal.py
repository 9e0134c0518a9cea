# SPDX-License-Identifier: Apache-2.0
"""Rehearsal: a slow run of an excitation that must succeed before the robot moves at full speed.

Time scaled by s leaves the path, and with it the effort of gravity, as it is. Velocities and the effort of viscous
friction are s times as large, accelerations and the efforts of inertia and velocity s^2 times. A rehearsal therefore
shows collisions, position limits, the tracking of the controller, and efforts at rest; the efforts of the full speed
are those that only the guard of the effort limits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Scaled

REHEARSAL_SPEED = 0.1
"""Fraction of the designed speed of an excitation, and of the motion limits, that is slow."""

DIGEST_SAMPLES, DIGEST_DECIMALS = 2001, 6
"""Instants of a motion that its digest contains, and the decimals of its positions [rad or m]."""


@dataclass(frozen=True)
class ExcitationRun:
    """One execution of an excitation.

    Attributes:
        motion: the motion that is executed.
        rehearsal: whether it is the slow run of the excitation.
        speed: fraction of the designed speed.
    """

    motion: Excitation
    rehearsal: bool = False
    speed: float = 1.0

    @property
    def slow(self) -> bool:
        """Whether the run needs no rehearsal."""
        return self.rehearsal or self.speed <= REHEARSAL_SPEED

    @classmethod
    def rehearse(cls, excitation: Excitation, speed: float) -> ExcitationRun:
        """Slow run of one period, in which the entire path is traced.

        Args:
            excitation: the excitation.
            speed: fraction of the designed speed that `excitation` has.
        """
        factor = min(1.0, REHEARSAL_SPEED / speed)
        return cls(_one_period(excitation, factor), True, factor * speed)


def _one_period(excitation: Excitation, factor: float) -> Excitation:
    """The first period of an excitation with its speed scaled by `factor`."""
    if isinstance(excitation, Scaled):  # the scaling is the outermost
        return Scaled(_one_period(excitation.motion, 1.0), factor * excitation.speed, excitation.amplitude)
    cycle = excitation.cycle if isinstance(excitation, Repeated) else excitation
    return cycle if factor == 1.0 else Scaled(cycle, factor, 1.0)


def slow_limits(limits: MotionLimits) -> MotionLimits:
    """Motion limits of slow motions: `REHEARSAL_SPEED` times those of velocity, acceleration and jerk."""
    return replace(
        limits,
        velocity=REHEARSAL_SPEED * limits.velocity,
        acceleration=REHEARSAL_SPEED * limits.acceleration,
        jerk=REHEARSAL_SPEED * limits.jerk,
    )


def hash_motion(excitation: Excitation, joint_names: Sequence[str], urdf_sha256: str) -> str:
    """SHA-256 of an excitation of a robot: joints, URDF, duration at the designed speed, and positions.

    Args:
        excitation: the excitation at its designed speed.
        joint_names: joint names, shape (n,).
        urdf_sha256: SHA-256 of the URDF.

    Returns:
        Hexadecimal digits.
    """
    positions = excitation.evaluate(np.linspace(0.0, excitation.duration, DIGEST_SAMPLES))[0]
    rounded = np.round(positions, DIGEST_DECIMALS) + 0.0  # no negative zeros
    text = f"{' '.join(joint_names)} {urdf_sha256} {excitation.duration:.6f} ".encode()
    return hashlib.sha256(text + np.ascontiguousarray(rounded).tobytes()).hexdigest()
