# SPDX-License-Identifier: Apache-2.0
"""A robot that follows a reference under its own controller: the loop of plant, encoders and control law.

One tick of the controller is: read the encoders, compute torques, hold them for a period. Velocities are read from the
plant, or made of encoder readings by a difference and a first-order low-pass, as drives do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.kernels.compiled import compiled
from robot_dyn_id.kernels.stepping import State, advance, compute_motor_effort, slide


class Loop(NamedTuple):
    """Loop of a robot with n joints and its controller.

    Attributes:
        computed: whether the law is computed torque, with the plant's own model, or a PD law.
        proportional, derivative: gains of positions and velocities, shape (n,).
        resolution: steps of the encoders, 0 for none, shape (n,).
        share: what a new difference of readings counts in the velocity; 0: velocities are those of the plant.
        period: time between two ticks of the controller [s].
        ticks: number of ticks in a step of the reference.
        steps: number of integration steps in a period.
    """

    computed: bool
    proportional: Array
    derivative: Array
    resolution: Array
    share: float
    period: float
    ticks: int
    steps: int


class LoopState(NamedTuple):
    """State of the loop with d ticks of delay, changed in place.

    Attributes:
        robot: state of the robot.
        aimed: Dahl states along the reference, of which computed torque takes the friction, shape (m,).
        late: past positions and velocities, the newest first, shape (d + 1, 2, n).
        reading: reading of the tick before, shape (n,).
        velocity: velocity made of readings, shape (n,).
        effort: effort of the tick before, shape (n,).
        speed: plant's velocity of the tick before, shape (n,).
        aim: desired position of the tick before, shape (n,).
    """

    robot: State
    aimed: Array
    late: Array
    reading: Array
    velocity: Array
    effort: Array
    speed: Array
    aim: Array


@compiled
def follow(plant, loop, q_wanted, dq_wanted, ddq_wanted, state, out):  # type: ignore[no-untyped-def]
    """Follow K + 1 samples of a reference for K of its steps, with n joints.

    plant: the robot, `Robots` with L = 1.
    loop, state: see `Loop` and `LoopState`.
    q_wanted, dq_wanted, ddq_wanted: reference, between its samples a cubic, shape (n, K + 1).
    out: q, dq, ddq and torques at the first K samples, shape (4, n, K).

    Accelerations and torques at a sample are means over the ticks before and after it. It returns K, or the number of
    the sample behind which the mass matrix was not positive definite or the state not finite.
    """
    computed, proportional, derivative, resolution, share, period, ticks, count = loop
    q, dq, late = state.robot.q, state.robot.dq, state.late
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
                    state.velocity[j] += share * ((reading[j] - state.reading[j]) / period - state.velocity[j])
                    speed[j] = state.velocity[j]
                state.reading[j] = reading[j]
                torque[j] = proportional[j] * (aim[0, j] - reading[j]) + derivative[j] * (aim[1, j] - speed[j])
            if computed:
                slide(plant, aim[0] - state.aim, state.aimed)
                torque = compute_motor_effort(plant, reading, speed, aim[2] + torque, aim[1].copy(), state.aimed)
            state.aim[:] = aim[0]
            before = dq.copy()
            if tick == 0:
                out[0, :, k], out[1, :, k] = q, dq
                out[3, :, k] = 0.5 * (state.effort + torque)
            excess = advance(plant, torque, period / count, count, state.robot)
            if not (excess > 0.0 and math.isfinite(q.sum() + dq.sum())):
                return k
            if tick == 0:
                out[2, :, k] = (dq - state.speed) / (2.0 * period)
            state.effort[:], state.speed[:] = torque, before
    return steps
