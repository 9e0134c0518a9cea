# SPDX-License-Identifier: Apache-2.0
"""A robot that follows a reference under its own controller: the loop of plant, encoders and control law.

One tick of the controller is: read the encoders, compute torques, hold them for a period. Velocities are read from the
plant, or made of encoder readings by a difference and a first-order low-pass, as drives do.
"""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled
from robot_dyn_id.kernels.stepping import State, advance, motor_effort, slide

PREVIOUS, VELOCITY, EFFORT, SPEED, AIM = 0, 1, 2, 3, 4
"""Rows of `memory`: last reading, velocity made of readings, effort, plant's velocity and desired position of the tick
before."""


@compiled
def follow(  # type: ignore[no-untyped-def]
    plant,
    computed,
    proportional,
    derivative,
    resolution,
    share,
    period,
    ticks,
    count,
    q_wanted,
    dq_wanted,
    ddq_wanted,
    q,
    dq,
    dry,
    slip,
    late,
    memory,
    out,
):
    """Follow K + 1 samples of a reference for K of its steps, with n joints and d ticks of delay.

    plant: the robot, `Robots` with L = 1.
    computed: whether the law is computed torque, with the plant's own model, or a PD law.
    proportional, derivative: gains of positions and velocities, shape (n,).
    resolution: steps of the encoders, 0 for none, shape (n,).
    share: what a new difference of readings counts in the velocity; 0: velocities are those of the plant.
    period, ticks: of the controller [s], and how many of them are in a step of the reference.
    count: integration steps in a period.
    q_wanted, dq_wanted, ddq_wanted: reference, between its samples a cubic, shape (n, K + 1).
    q, dq, dry: state, changed in place; see `State`.
    slip: Dahl states of the plant, and those along the reference, of which computed torque takes the friction, shape
        (2, m), changed in place; see `State`.
    late: past positions and velocities, the newest first, shape (d + 1, 2, n), changed in place.
    memory: see above, shape (5, n), changed in place.
    out: q, dq, ddq and torques at the first K samples, shape (4, n, K).

    Accelerations and torques at a sample are means over the ticks before and after it. It returns K, or the number of
    the sample behind which the mass matrix was not positive definite or the state not finite.
    """
    n, steps = len(q), q_wanted.shape[1] - 1
    reading, speed, torque, aim = np.empty(n), np.empty(n), np.empty(n), np.empty((3, n))
    span = period * ticks
    for k in range(steps):
        for tick in range(ticks):
            s = tick / ticks
            for j in range(n):
                q0, q1 = q_wanted[j, k], q_wanted[j, k + 1]
                v0, v1 = span * dq_wanted[j, k], span * dq_wanted[j, k + 1]
                b, c = 3.0 * (q1 - q0) - 2.0 * v0 - v1, 2.0 * (q0 - q1) + v0 + v1
                aim[0, j] = q0 + s * (v0 + s * (b + s * c))
                aim[1, j] = (v0 + s * (2.0 * b + 3.0 * s * c)) / span
                aim[2, j] = (1.0 - s) * ddq_wanted[j, k] + s * ddq_wanted[j, k + 1]
            for age in range(len(late) - 1, 0, -1):
                late[age] = late[age - 1]
            late[0, 0], late[0, 1] = q, dq
            for j in range(n):
                reading[j], speed[j] = late[-1, 0, j], late[-1, 1, j]
                if resolution[j] > 0.0:
                    reading[j] = resolution[j] * np.round(reading[j] / resolution[j])
                if share > 0.0:
                    memory[VELOCITY, j] += share * ((reading[j] - memory[PREVIOUS, j]) / period - memory[VELOCITY, j])
                    speed[j] = memory[VELOCITY, j]
                memory[PREVIOUS, j] = reading[j]
                torque[j] = proportional[j] * (aim[0, j] - reading[j]) + derivative[j] * (aim[1, j] - speed[j])
            if computed:
                slide(plant, aim[0] - memory[AIM], slip[1])
                torque = motor_effort(plant, reading, speed, aim[2] + torque, aim[1].copy(), slip[1])
            memory[AIM] = aim[0]
            before = dq.copy()
            if tick == 0:
                out[0, :, k], out[1, :, k] = q, dq
                out[3, :, k] = 0.5 * (memory[EFFORT] + torque)
            excess = advance(plant, torque, period / count, count, State(q, dq, dry, slip[0]))
            if not (excess > 0.0 and math.isfinite(q.sum() + dq.sum())):
                return k
            if tick == 0:
                out[2, :, k] = (dq - memory[SPEED]) / (2.0 * period)
            memory[EFFORT], memory[SPEED] = torque, before
    return steps
