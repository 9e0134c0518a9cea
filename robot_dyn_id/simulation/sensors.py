# SPDX-License-Identifier: Apache-2.0
"""Simulated recordings: measurements of a known robot along a motion, with sensor errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.simulation.closed_loop import quantize


@dataclass(frozen=True)
class Sensors:
    """Sensor errors, one value per joint.

    Attributes:
        effort: standard deviation of the effort noise [N m or N], shape (n,).
        position: standard deviation of the position noise [rad or m].
        velocity: standard deviation of the velocity noise [rad/s or m/s]; None if velocities are not recorded.
        correlation_time: correlation time of the effort noise [s]; 0: white noise.
        resolution: resolution of the position encoders [rad or m]; 0: not quantized.
        residuals: residuals of a real recording at the same rate [N m or N], shape (n, M), which are resampled and
            added to the effort noise, or None.
        block: length of the resampled blocks [s].
    """

    effort: Array
    position: float = 1e-5
    velocity: float | None = 1e-3
    correlation_time: float = 0.0
    resolution: float = 0.0
    residuals: Array | None = None
    block: float = 1.0


def draw_colored_noise(
    sigma: Array,
    samples: int,
    rate: float,
    correlation_time: float,
    rng: np.random.Generator,
    before: Array | None = None,
) -> Array:
    """Draw first-order autoregressive noise.

    Args:
        sigma: standard deviations, shape (n,).
        samples: number of samples.
        rate: sampling rate [Hz].
        correlation_time: time after which the autocorrelation is 1/e [s]; 0: white noise.
        rng: random number generator.
        before: values before the first sample, shape (n,); stationary by default.

    Returns:
        Noise, shape (n, samples).
    """
    white = sigma[:, None] * rng.normal(size=(len(sigma), samples))
    if correlation_time == 0.0:
        return white
    from scipy.signal import lfilter  # slow to import, and seldom used

    keep = np.exp(-1.0 / (rate * correlation_time))
    driven = np.sqrt(1.0 - keep**2) * white
    driven[:, 0] = white[:, 0] if before is None else driven[:, 0] + keep * before
    return np.asarray(lfilter([1.0], [1.0, -keep], driven, axis=1))


def resample_residuals(residuals: Array, samples: int, block: int, rng: np.random.Generator) -> Array:
    """Resample recorded residuals by a circular block bootstrap (Politis and Romano 1992).

    Blocks start at random samples common to all joints, which preserves the correlation in time and between joints.

    Args:
        residuals: recorded residuals, shape (n, M).
        samples: number of samples.
        block: length of the blocks [samples].
        rng: random number generator.

    Returns:
        Noise, shape (n, samples).

    Raises:
        UsageError: the block length is not within 1 and M.
    """
    if not 1 <= block <= residuals.shape[1]:
        raise UsageError(f"blocks of {block} samples cannot be drawn from {residuals.shape[1]} residuals")
    starts = rng.integers(residuals.shape[1], size=-(-samples // block))
    places = (starts[:, None] + np.arange(block)).ravel()[:samples]
    return residuals[:, places % residuals.shape[1]]


def sample_times(duration: float, rate: float) -> Array:
    """Equally spaced sample times from 0 on [s].

    Args:
        duration: duration [s].
        rate: sampling rate [Hz].

    Raises:
        UsageError: fewer than two samples.
    """
    count = round(duration * rate)
    if count < 2:
        raise UsageError(f"{duration:g} s at {rate:g} Hz are only {count} samples")
    return np.arange(count) / rate


def simulate_recording(
    regressor: Regressor, parameters: Array, motion: Trajectory, t: Array, sensors: Sensors, seed: int
) -> ArrayRecording:
    """Simulate the recording of a robot with known parameters that follows a motion exactly.

    Args:
        regressor: regressor of the robot and its terms.
        parameters: parameters of all columns, shape (c,).
        motion: motion of the robot, defined at all sample times.
        t: sample times at a constant rate [s], shape (N,); see `sample_times`.
        sensors: sensor errors.
        seed: seed of the noise.

    Raises:
        UsageError: see `resample_residuals`.
    """
    q, dq, ddq, _ = motion.evaluate(t)
    tau = regressor.torque(regressor.with_states(Motion(q, dq, ddq), float(t[1] - t[0])), parameters)
    return add_sensor_errors(regressor.model.joint_names, Chunk(t, q.T, dq.T, tau.T), sensors, seed)


def add_sensor_errors(
    joint_names: Sequence[str], true: Chunk, sensors: Sensors, seed: int, source: str = "simulation"
) -> ArrayRecording:
    """Add sensor errors to true states.

    Args:
        joint_names: joint names of the columns.
        true: true states at a constant rate, with velocities and efforts.
        sensors: sensor errors.
        seed: seed of the noise.
        source: name of the recording.

    Raises:
        UsageError: velocities or efforts are missing, or see `resample_residuals`.
    """
    if true.dq is None or true.tau is None:
        raise UsageError("sensors are simulated on samples that have velocities and efforts")
    rng = np.random.default_rng(seed)
    count, rate = len(true), (len(true) - 1) / float(true.t[-1] - true.t[0])
    q, shape = true.q.T, (len(joint_names), len(true))
    tau = true.tau.T + draw_colored_noise(sensors.effort, count, rate, sensors.correlation_time, rng)
    position = quantize(q + sensors.position * rng.normal(size=shape), sensors.resolution)
    velocity = None if sensors.velocity is None else true.dq + (sensors.velocity * rng.normal(size=shape)).T
    if sensors.residuals is not None:  # last, so that a seed's other noise does not depend on them
        tau = tau + resample_residuals(sensors.residuals, count, round(sensors.block * rate), rng)
    return ArrayRecording(source, tuple(joint_names), Chunk(true.t, position.T, velocity, tau.T))
