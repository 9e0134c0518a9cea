# SPDX-License-Identifier: Apache-2.0
"""Simulated recordings: what the sensors of a known robot would have shown along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

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
        velocity: of the velocity noise, or None if velocities are not recorded.
        correlation_time: of the effort noise [s]; 0 is white noise.
        resolution: step of the position encoders [rad or m]; 0 is none.
        residuals: residuals of a real recording at the same rate [N m or N], shape (n, M), that the effort noise is
            drawn from as well, or None.
        block: length of the pieces that they are drawn in [s].
    """

    effort: Array
    position: float = 1e-5
    velocity: float | None = 1e-3
    correlation_time: float = 0.0
    resolution: float = 0.0
    residuals: Array | None = None
    block: float = 1.0


def colored_noise(
    sigma: Array,
    samples: int,
    rate: float,
    correlation_time: float,
    rng: np.random.Generator,
    before: Array | None = None,
) -> Array:
    """First-order autoregressive noise of standard deviation `sigma`, shape (n, samples).

    Its autocorrelation falls to 1/e after `correlation_time` [s]; 0 is white noise. It goes on from the values
    `before`, shape (n,), or begins stationary.
    """
    white = sigma[:, None] * rng.normal(size=(len(sigma), samples))
    if correlation_time == 0.0:
        return white
    keep = np.exp(-1.0 / (rate * correlation_time))
    driven = np.sqrt(1.0 - keep**2) * white
    driven[:, 0] = white[:, 0] if before is None else driven[:, 0] + keep * before
    return np.asarray(lfilter([1.0], [1.0, -keep], driven, axis=1))


def resample_residuals(residuals: Array, samples: int, block: int, rng: np.random.Generator) -> Array:
    """Noise made of pieces of recorded residuals, shape (n, samples).

    Circular block bootstrap (Politis and Romano 1992): pieces of `block` samples from random places, all joints from
    the same one: correlation in time and between joints is kept, and every residual is as likely as any other.

    Raises:
        UsageError: a block that is not within 1 and the number of residuals.
    """
    if not 1 <= block <= residuals.shape[1]:
        raise UsageError(f"blocks of {block} samples cannot be drawn from {residuals.shape[1]} residuals")
    starts = rng.integers(residuals.shape[1], size=-(-samples // block))
    places = (starts[:, None] + np.arange(block)).ravel()[:samples]
    return residuals[:, places % residuals.shape[1]]


def simulated_recording(
    regressor: Regressor,
    parameters: Array,
    motion: Trajectory,
    duration: float,
    rate: float,
    sensors: Sensors,
    seed: int,
    source: str = "simulation",
) -> ArrayRecording:
    """Record a robot of known parameters that follows a motion exactly.

    Args:
        regressor: robot and terms.
        parameters: of all columns, shape (c,).
        motion: what the robot does; it can be evaluated for so long.
        duration: [s].
        rate: samples per second [Hz].
        sensors: their errors.
        seed: of the noise.
        source: name of the recording.

    Raises:
        UsageError: less than two samples, or see `resample_residuals`.
    """
    count = round(duration * rate)
    if count < 2:
        raise UsageError(f"{duration:g} s at {rate:g} Hz are only {count} samples")
    t = np.arange(count) / rate
    q, dq, ddq, _ = motion.evaluate(t)
    tau = regressor.torque(Motion(q, dq, ddq), parameters)
    return measured(regressor.model.joint_names, Chunk(t, q.T, dq.T, tau.T), sensors, seed, source)


def measured(
    joint_names: Sequence[str], true: Chunk, sensors: Sensors, seed: int, source: str = "simulation"
) -> ArrayRecording:
    """What sensors show of true states.

    Args:
        joint_names: of the columns.
        true: samples at a constant rate, with velocities and efforts.
        sensors: their errors.
        seed: of the noise.
        source: name of the recording.

    Raises:
        UsageError: velocities or efforts are missing, or see `resample_residuals`.
    """
    if true.dq is None or true.tau is None:
        raise UsageError("sensors are simulated on samples that have velocities and efforts")
    rng = np.random.default_rng(seed)
    count, rate = len(true), (len(true) - 1) / float(true.t[-1] - true.t[0])
    q, shape = true.q.T, (len(joint_names), len(true))
    tau = true.tau.T + colored_noise(sensors.effort, count, rate, sensors.correlation_time, rng)
    position = quantize(q + sensors.position * rng.normal(size=shape), sensors.resolution)
    velocity = None if sensors.velocity is None else true.dq + (sensors.velocity * rng.normal(size=shape)).T
    if sensors.residuals is not None:  # last, so that a seed's other noise does not depend on them
        tau = tau + resample_residuals(sensors.residuals, count, round(sensors.block * rate), rng)
    return ArrayRecording(source, tuple(joint_names), Chunk(true.t, position.T, velocity, tau.T))
