"""What was recorded of an arm with flexible joints, and the equations that it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.flexible.model import MOTOR, MOTOR_OFFSET, SPRING, FlexibleModel
from robot_dyn_id.regressor import Motion
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.reversals import SIGMAS, noise_left
from robot_dyn_id.stepwise import Equations
from robot_dyn_id.terms.sign import sign

DETAIL = 4.0
"""Positions are low-passed so many times less than the rows: columns are products of them, made before the rows are
filtered together with their torques."""

WIDTHS = 3.0
"""Smoothing widths below which Coulomb friction depends on how fast a joint is: tanh(3) = 0.995."""

DECAYED = math.log(100.0) / math.log(1e9)
"""Share of a filter's settling time after which a hundredth of a disturbance is left."""


def rows_per_second(low_pass: LowPass) -> float:
    """Rows that are kept of filtered ones [Hz]: twice the noise bandwidth, so that white noise counts for what it is.

    The squared gain of a Butterworth filter of order n run both ways is 1 / (1 + (f / cutoff)^2n)^2, whose integral is
    (pi / 2n) / sin(pi / 2n) (1 - 1 / 2n) cutoff.
    """
    part = math.pi / (2 * low_pass.order)
    return 2.0 * low_pass.cutoff * part / math.sin(part) * (1.0 - 1.0 / (2 * low_pass.order))


@dataclass(frozen=True)
class States:
    """N samples of motion and torque of n joints, f of which are flexible.

    Attributes:
        link: of the joints, shape (n, N).
        tau: torque sensors, and efforts of the rigid joints [N m or N], shape (n, N); NaN rows where there is none.
        motor: of the motors [rad], shape (f, N), or None.
        motor_tau: their torques [N m], shape (f, N), or None.
    """

    link: Motion
    tau: Array
    motor: Motion | None = None
    motor_tau: Array | None = None


@dataclass(frozen=True)
class Experiment:
    """One recording of an arm with n joints, f of which are flexible.

    Attributes:
        name: what it is called, `static` or `joint2 alone`.
        rate: samples per second [Hz]; 0: every sample is a pose at rest, the mean of one reached from both sides, so
            that friction does not count.
        q: link encoders [rad or m], shape (n, N).
        tau: torque sensors, and efforts of the rigid joints [N m or N], shape (n, N); NaN rows where there is none.
        motor_q: motor encoders [rad], shape (f, N), NaN rows where there is none, or None.
        motor_tau: motor torques at the motor's shaft [N m], shape (f, N), NaN rows where there is none, or None.
        moving: joints that move; empty: all. Equations of the others are left out: the friction of a joint at rest can
            be anything within its limits.
        periodic: whether the first sample follows the last one.
    """

    name: str
    rate: float
    q: Array
    tau: Array
    motor_q: Array | None = None
    motor_tau: Array | None = None
    moving: tuple[str, ...] = ()
    periodic: bool = False

    def __post_init__(self) -> None:
        """Check shapes and values.

        Raises:
            InputError: shapes that do not fit, a joint angle or part of a channel that is not finite, a negative rate.
        """
        if self.q.ndim != 2 or self.tau.shape != self.q.shape:
            raise InputError(f"{self.name}: q {self.q.shape} and tau {self.tau.shape} must both be (joints, samples)")
        if not 0.0 <= self.rate < np.inf:
            raise InputError(f"{self.name}: the rate must be positive, or 0 for poses at rest, not {self.rate} Hz")
        channels = {"q": self.q, "tau": self.tau, "motor_q": self.motor_q, "motor_tau": self.motor_tau}
        for channel, values in channels.items():
            if values is None:
                continue
            if values.ndim != 2 or values.shape[1] != self.q.shape[1]:
                raise InputError(f"{self.name}: {channel} has shape {values.shape}, expected {self.q.shape[1]} samples")
            finite = np.isfinite(values)
            torn = finite.any(axis=1) & ~finite.all(axis=1) if channel != "q" else ~finite.all(axis=1)
            if torn.any():
                raise InputError(f"{self.name}: {channel} of joint {np.argmax(torn) + 1} is not finite everywhere")

    def states(self, low_pass: LowPass) -> States:
        """Smooth motion, torques as they are.

        Raises:
            UsageError: a cut-off too high for the rate.
        """
        motor = None if self.motor_q is None else self._motion(self.motor_q, low_pass)
        return States(self._motion(self.q, low_pass), self.tau, motor, self.motor_tau)

    def low_passed(self, values: Array, low_pass: LowPass) -> Array:
        """Values filtered along the last axis; a periodic one runs on at its ends."""
        if not self.periodic:
            return low_pass.apply(values, self.rate)
        pad = min(int(low_pass.settling * self.rate) + 1, 20 * values.shape[-1])
        around = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(pad, pad)], mode="wrap")
        return low_pass.apply(around, self.rate)[..., pad:-pad]

    def steady(self, angle: Array, smooth: Array, speed: Array, width: float, low_pass: LowPass) -> NDArray[np.bool_]:
        """Samples whose friction the sign of the velocity tells, shape (N,).

        Slower ones are left out: within a few smoothing widths of rest, or a few standard deviations of the velocity's
        noise (see `signals.reversals`). So are samples that the filter mixes with slower ones.

        Args:
            angle: of one joint or motor as measured, shape (N,).
            smooth: the same filtered, shape (N,).
            speed: its derivative, shape (N,).
            width: smoothing width of its Coulomb friction.
            low_pass: of the rows.
        """
        fine = self._fine(low_pass)
        noise = noise_left(np.asarray(np.mean((angle - smooth) ** 2)), fine.cutoff, self.rate, True)
        slow = (np.abs(speed) <= max(WIDTHS * width, SIGMAS * float(noise))).astype(np.uint8)
        reach = math.ceil(DECAYED * fine.settling * self.rate)
        mixed = maximum_filter1d(slow, 2 * reach + 1, mode="wrap" if self.periodic else "nearest")
        return np.asarray(mixed == 0)

    def _fine(self, low_pass: LowPass) -> LowPass:
        """Of the positions."""
        return LowPass(min(DETAIL * low_pass.cutoff, 0.4 * self.rate), low_pass.order)

    def _motion(self, values: Array, low_pass: LowPass) -> Motion:
        if self.rate == 0.0:
            return Motion(values, np.zeros_like(values), np.zeros_like(values))
        fine = self._fine(low_pass)
        smooth = np.where(np.isfinite(values), self.low_passed(np.nan_to_num(values), fine), np.nan)
        wide = np.pad(smooth, [(0, 0), (8, 8)], mode="wrap" if self.periodic else "edge")
        first = derivative(wide, self.rate)
        return Motion(smooth, first[:, 8:-8], derivative(first, self.rate)[:, 8:-8])


def equations(model: FlexibleModel, experiment: Experiment, low_pass: LowPass) -> list[Equations]:
    """The equations that an experiment gives, columns and torques filtered alike.

    Samples whose friction nobody knows count as nothing on both sides before they are filtered: what is left of an
    equation still holds; see `Experiment.steady`.

    Raises:
        InputError: arrays of another robot.
        UsageError: a cut-off too high for the rate.
    """
    joints, flexible = len(model.model.joint_names), len(model.joints)
    motors = [x for x in (experiment.motor_q, experiment.motor_tau) if x is not None]
    if len(experiment.q) != joints or any(len(x) != flexible for x in motors):
        raise InputError(f"{experiment.name}: the robot has {joints} joints, {flexible} of them flexible")
    unknown = [name for name in experiment.moving if name not in model.model.joint_names]
    if unknown:
        raise InputError(f"{experiment.name}: {unknown[0]} moves, but is no joint of {model.model.name}")
    found, states = [], experiment.states(low_pass)
    for row in rows_of(model, states):
        if experiment.moving and row.joint not in experiment.moving:
            continue
        rows, target, share = row.rows, row.target, 1.0
        if experiment.rate > 0.0:
            counted = _counted(model, experiment, states, row, low_pass)
            share = float(counted.mean())
            both = experiment.low_passed((np.column_stack([rows, target]) * counted[:, None]).T, low_pass).T
            both = both[:: max(1, round(experiment.rate / rows_per_second(low_pass)))]
            rows, target = both[:, :-1], both[:, -1]
        if share > 0.0:
            name = f"{experiment.name}: {row.kind} of {row.joint}"
            found.append(Equations.of(name, f"{experiment.name}: {row.kind}", rows, target, share))
    return found


@dataclass(frozen=True)
class JointRows:
    """One equation of one joint at N samples.

    Attributes:
        kind: link, spring or motor.
        joint: the joint.
        rows: of all p parameters, shape (N, p).
        target: what is measured [N m or N], shape (N,).
    """

    kind: str
    joint: str
    rows: Array
    target: Array


def _counted(
    model: FlexibleModel, experiment: Experiment, states: States, row: JointRows, low_pass: LowPass
) -> NDArray[np.bool_]:
    """Samples of an equation that count, shape (N,): those of springs all do."""
    number, width = model.model.joint_names.index(row.joint), model.smoothing_width
    if row.kind == "link":
        return experiment.steady(experiment.q[number], states.link.q[number], states.link.dq[number], width, low_pass)
    if row.kind == "motor" and states.motor is not None and experiment.motor_q is not None:
        place = model.numbers.index(number)
        width *= abs(model.joints[place].ratio)
        motor, speed = states.motor.q[place], states.motor.dq[place]
        return experiment.steady(experiment.motor_q[place], motor, speed, width, low_pass)
    return np.ones(len(row.target), dtype=bool)


def rows_of(model: FlexibleModel, states: States) -> list[JointRows]:
    """Every equation that the measured channels allow."""
    found = _link_rows(model, states)
    if states.motor is not None:
        for place, joint in enumerate(model.joints):
            if np.isfinite(states.motor.q[place]).all():
                found += _motor_side(model, states, states.motor, place, joint.name)
    return found


def _link_rows(model: FlexibleModel, states: States) -> list[JointRows]:
    dense = model.regressor.dense(states.link)[model.base.independent]
    found = []
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
            found.append(JointRows("link", joint, rows, target))
    return found


def _motor_side(model: FlexibleModel, states: States, motor: Motion, place: int, joint: str) -> list[JointRows]:
    ratio, number = model.joints[place].ratio, model.numbers[place]
    tau, found = states.tau[number], []
    sensed = joint in model.sensed and bool(np.isfinite(tau).all())
    if sensed:
        rows = _empty(model, states)
        rows[:, model.columns(SPRING, joint)] = _spring(model, states, motor, place)
        rows[:, model.columns(("off",), joint)] = 1.0
        found.append(JointRows("spring", joint, rows, tau))
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
        found.append(JointRows("motor", joint, rows, torque))
    return found


def _spring(model: FlexibleModel, states: States, motor: Motion, place: int) -> Array:
    """Columns of stiffness and preload, shape (N, 2)."""
    deflection = motor.q[place] / model.joints[place].ratio - states.link.q[model.numbers[place]]
    return np.column_stack([deflection, np.ones_like(deflection)])


def _empty(model: FlexibleModel, states: States) -> Array:
    return np.zeros((len(states.link), len(model.names)))


def _moves(speed: Array) -> bool:
    return bool(np.any(speed))
