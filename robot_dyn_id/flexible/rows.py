# SPDX-License-Identifier: Apache-2.0
"""The equations of an arm with flexible joints, sample by sample: rows of the link side, of springs and of motors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms.sign import sign
from robot_dyn_id.flexible.model import MOTOR, MOTOR_OFFSET, SPRING, FlexibleModel


@dataclass(frozen=True)
class States:
    """N samples of motion and torque of n joints, f of which are flexible.

    Attributes:
        link: motion of the joints, shape (n, N).
        tau: torque sensors, and efforts of the rigid joints [N m or N], shape (n, N); NaN rows where there is none.
        motor: motion of the motors [rad], shape (f, N), or None.
        motor_tau: their torques [N m], shape (f, N), or None.
    """

    link: Motion
    tau: Array
    motor: Motion | None = None
    motor_tau: Array | None = None

    def take(self, index: Integers) -> States:
        """The samples that `index` selects."""
        motor = None if self.motor is None else self.motor.take(index)
        motor_tau = None if self.motor_tau is None else self.motor_tau[:, index]
        return States(self.link.take(index), self.tau[:, index], motor, motor_tau)


@dataclass(frozen=True)
class JointRows:
    """One equation of one joint at N samples.

    Attributes:
        kind: link, spring or motor.
        joint: the joint.
        rows: rows of all p parameters, shape (N, p).
        target: what is measured [N m or N], shape (N,).
    """

    kind: str
    joint: str
    rows: Array
    target: Array


def list_rows_of(model: FlexibleModel, states: States) -> Iterator[JointRows]:
    """Every equation that the measured channels allow, one after the other: all at once are large."""
    yield from _link_rows(model, states)
    if states.motor is not None:
        for place, joint in enumerate(model.joints):
            if np.isfinite(states.motor.q[place]).all():
                yield from _motor_side(model, states, states.motor, place, joint.name)


def _link_rows(model: FlexibleModel, states: States) -> Iterator[JointRows]:
    dense = model.regressor.dense(states.link)[model.base.independent]
    for number, joint in enumerate(model.model.joint_names):
        rows = _empty(model, states)
        rows[:, : len(dense)] = dense[:, number].T
        if joint in model.sensed:
            target = states.tau[number]
        else:
            place = model.numbers.index(number)
            if states.motor is None or not np.isfinite(states.motor.q[place]).all():
                continue
            rows[:, model.columns(SPRING, joint)] = -_spring(model, states, states.motor, place)
            target = np.zeros(len(rows))
        if np.isfinite(target).all():
            yield JointRows("link", joint, rows, target)


def _motor_side(model: FlexibleModel, states: States, motor: Motion, place: int, joint: str) -> Iterator[JointRows]:
    ratio, number = model.joints[place].ratio, model.numbers[place]
    tau = states.tau[number]
    sensed = joint in model.sensed and bool(np.isfinite(tau).all())
    if sensed:
        rows = _empty(model, states)
        rows[:, model.columns(SPRING, joint)] = _spring(model, states, motor, place)
        rows[:, model.columns(("off",), joint)] = 1.0
        yield JointRows("spring", joint, rows, tau)
    torque = None if states.motor_tau is None else states.motor_tau[place]
    if torque is not None and np.isfinite(torque).all() and _moves(motor.dq[place]):
        rows = _empty(model, states)
        friction = sign(motor.dq[place], abs(ratio) * model.smoothing_width)
        rows[:, model.columns(MOTOR, joint)] = np.column_stack([motor.ddq[place], motor.dq[place], friction])
        if sensed:
            rows[:, model.columns((MOTOR_OFFSET,), joint)] = 1.0
            torque = torque - tau / ratio
        else:
            rows[:, model.columns(SPRING, joint)] = _spring(model, states, motor, place) / ratio
        yield JointRows("motor", joint, rows, torque)


def _spring(model: FlexibleModel, states: States, motor: Motion, place: int) -> Array:
    """Columns of stiffness and preload, shape (N, 2)."""
    deflection = motor.q[place] / model.joints[place].ratio - states.link.q[model.numbers[place]]
    return np.column_stack([deflection, np.ones_like(deflection)])


def _empty(model: FlexibleModel, states: States) -> Array:
    return np.zeros((len(states.link), len(model.names)))


def _moves(speed: Array) -> bool:
    return bool(np.any(speed))
