# SPDX-License-Identifier: Apache-2.0
"""A motion under a controller, tick by tick: a plant, what its sensors show, and a model that makes torques of it."""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled
from robot_dyn_id.kernels.stepping import advance, compute_motor_effort, slide


@compiled
def feedback(error, rate, proportional, derivative, exponent):  # type: ignore[no-untyped-def]
    """Kp |e|^a sgn e + Kd |e'|^b sgn e' with b = 2 a / (1 + a), all of shape (n,): linear for a = 1.

    For a below 1 the error is zero after a finite time (Bhat and Bernstein, IEEE Trans. Autom. Control 43, 1998).
    """
    other = 2.0 * exponent / (1.0 + exponent)
    return (
        proportional * np.sign(error) * np.abs(error) ** exponent + derivative * np.sign(rate) * np.abs(rate) ** other
    )


@compiled
def run_trial(  # type: ignore[no-untyped-def]
    plant, known, scale, gains, period, count, limit, wanted, noise, resolution, state, aimed, true, measured
):
    """Follow a motion from its first sample to its last; at each the controller reads the sensors once.

    plant, known: the robot and the controller's model, `Robots` with L = 1 each.
    scale: 0: computed torque with the model; else that many times its mass matrix alone moves the robot.
    gains: proportional and derivative, shape (n,) each, and exponent; see `feedback`.
    period, count: time between two ticks of the controller [s], and integration steps in it.
    limit: greatest efforts, shape (n,).
    wanted: positions, velocities and accelerations, shape (3, K, n).
    noise: what the sensors add to positions, velocities and efforts, shape (K, 3, n).
    resolution: resolution of the encoders; 0: not quantized.
    state: state of the robot, changed in place; see `State`.
    aimed: Dahl states of the controller's model along the motion, changed in place; see `State`.
    true: filled with the positions, shape (K, n).
    measured: output, the measurements, shape (K, 3, n); the effort at a sample is the mean of those before and
        after it.

    It returns K, or the index of the sample after which the simulation diverged.
    """
    q, dq = state.q, state.dq
    n, samples = len(q), wanted.shape[1]
    before, rest = np.zeros(n), np.zeros(n)
    for k in range(samples):
        true[k] = q
        measured[k, 0], measured[k, 1] = q + noise[k, 0], dq + noise[k, 1]
        if resolution > 0.0:
            measured[k, 0] = resolution * np.round(measured[k, 0] / resolution)
        error, rate = wanted[0, k] - measured[k, 0], wanted[1, k] - measured[k, 1]
        aim = wanted[2, k] + feedback(error, rate, gains[0], gains[1], gains[2])
        if scale > 0.0:
            torque = compute_motor_effort(known, measured[k, 0].copy(), rest, scale * aim, rest, aimed)
            torque -= compute_motor_effort(known, measured[k, 0].copy(), rest, rest, rest, aimed)
        else:
            if k:
                slide(known, wanted[0, k] - wanted[0, k - 1], aimed)
            reading = measured[k, 0].copy(), measured[k, 1].copy()
            torque = compute_motor_effort(known, reading[0], reading[1], aim, wanted[1, k].copy(), aimed)
        torque = np.minimum(np.maximum(torque, -limit), limit)
        measured[k, 2] = noise[k, 2] + (0.5 * (before + torque) if k else torque)
        before = torque
        excess = advance(plant, torque, period / count, count, state)
        if not (excess > 0.0 and math.isfinite(q.sum() + dq.sum())):
            return k
    return samples
