# SPDX-License-Identifier: Apache-2.0
"""One period of a simulated robot under a position controller: setpoint, torque, and motion."""

from __future__ import annotations

import math

import numpy as np

from robot_dyn_id.kernels.compiled import compiled, compiled_part
from robot_dyn_id.kernels.dynamics import BodyTree
from robot_dyn_id.kernels.stepping import Robots, State, advance, compute_motor_effort, slide
from robot_dyn_id.kernels.trials import feedback


@compiled
def evaluate_polynomials(coefficients, s):  # type: ignore[no-untyped-def]
    """Values and two derivatives of n polynomials, shape (3, n), by Horner's scheme.

    coefficients: lowest power first, shape (p, n).
    """
    result = np.zeros((3, coefficients.shape[1]))
    for j in range(coefficients.shape[1]):
        value, first, half = 0.0, 0.0, 0.0
        for k in range(len(coefficients) - 1, -1, -1):
            half = half * s + first
            first = first * s + value
            value = value * s + coefficients[k, j]
        result[0, j], result[1, j], result[2, j] = value, first, 2.0 * half
    return result


@compiled
def fit_polynomials(duration, start, end, unit):  # type: ignore[no-untyped-def]
    """Coefficients of n polynomials with given derivatives at both ends, lowest power first, shape (6, n).

    duration: duration of the segment.
    start, end: values and given derivatives, shape (r, n) each.
    unit: coefficients on a unit interval for unit derivatives at its start, then at its end, shape (2 r, 2 r).
    """
    order = len(start)
    coefficients = np.zeros((6, start.shape[1]))
    for k in range(2 * order):
        total = unit[k, order] * (end[0] - start[0])  # a joint that is held stays where it is, to the last bit
        for derivative in range(1, order):
            ends = unit[k, derivative] * start[derivative] + unit[k, order + derivative] * end[derivative]
            total = total + ends * duration**derivative
        coefficients[k] = total / duration**k
    coefficients[0] = start[0]
    return coefficients


@compiled_part
def _name_arrays(arrays):  # type: ignore[no-untyped-def]
    """The `Robots` of plain tuples, which numba reads in half the time of named ones at each call from Python."""
    return Robots(BodyTree(*arrays[0]), *arrays[1:])


@compiled
def hold_setpoint(  # type: ignore[no-untyped-def]
    arrays, wanted_q, wanted_dq, wanted_ddq, q, dq, gains, period, limit, aim, slip, total
):
    """Torques of a position controller with an exact model and integral action, shape (n,).

    arrays: `Robots` with L = 1, as plain tuples.
    wanted_q, wanted_dq, wanted_ddq: setpoint, shape (n,) each; friction is that of its motion.
    gains: proportional, derivative, integral, and exponent; see `feedback`.
    limit: effort limits, shape (n,): the integral stops where they are reached.
    aim: positions of the setpoint before, NaN before the first, shape (n,), changed in place.
    slip: Dahl states along the setpoints, shape (m,), changed in place.
    total: integral of the position error, shape (n,), changed in place.
    """
    robot = _name_arrays(arrays)
    if math.isfinite(aim[0]):
        slide(robot, wanted_q - aim, slip)
    aim[:] = wanted_q
    error = wanted_q - q
    acceleration = wanted_ddq + feedback(error, wanted_dq - dq, gains[0], gains[1], gains[3]) + gains[2] * total
    torque = compute_motor_effort(robot, q, dq, acceleration, wanted_dq, slip)
    for j in range(len(q)):
        if abs(torque[j]) < limit[j]:
            total[j] += period * error[j]
    return torque


@compiled
def advance_driven(arrays, effort, limit, external, step, count, state):  # type: ignore[no-untyped-def]
    """Advance the state of a robot under torques that its motors limit, and torques of the environment.

    arrays: `Robots` with L = 1, as plain tuples.
    effort, limit, external: commanded torques, limits, and torques of the environment, shape (n,) each.
    step, count: integration step [s], and number of steps.
    state: `State` as a plain tuple, changed in place.

    Returns the torques of the motors, shape (n,), and whether the simulation has not diverged.
    """
    robot, state = _name_arrays(arrays), State(*state)
    applied = np.minimum(np.maximum(effort, -limit), limit)
    excess = advance(robot, applied + external, step, count, state)
    return applied, excess > 0.0 and math.isfinite(state.q.sum()) and math.isfinite(state.dq.sum())
