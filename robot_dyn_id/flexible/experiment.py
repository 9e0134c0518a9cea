# SPDX-License-Identifier: Apache-2.0
"""Recorded experiments with an arm with flexible joints, and their equations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.stepwise import Equations
from robot_dyn_id.flexible.model import FlexibleModel
from robot_dyn_id.flexible.rows import JointRows, States, list_rows_of
from robot_dyn_id.signals.filtering import LowPass, derivative
from robot_dyn_id.signals.processing import EDGE
from robot_dyn_id.signals.reversals import SIGMAS, estimate_noise_left

DETAIL = 4.0
"""Cut-off of the positions over that of the rows: columns are products of positions, made before the rows are filtered
together with their torques."""

WIDTHS = 3.0
"""Smoothing widths below which Coulomb friction depends on how fast a joint is: tanh(3) = 0.995."""

BLOCK = 8192
"""Samples whose columns are made at a time, so that memory does not grow with all of them."""

DECAYED = math.log(100.0) / math.log(1e9)
"""Share of a filter's settling time after which a hundredth of a disturbance is left."""


def compute_rows_per_second(low_pass: LowPass) -> float:
    """Rows that are kept of filtered ones [Hz]: twice the noise bandwidth, so that white noise counts for what it is.

    The squared gain of a Butterworth filter of order n run both ways is 1 / (1 + (f / cutoff)^2n)^2, whose integral is
    (pi / 2n) / sin(pi / 2n) (1 - 1 / 2n) cutoff.
    """
    part = math.pi / (2 * low_pass.order)
    return 2.0 * low_pass.cutoff * part / math.sin(part) * (1.0 - 1.0 / (2 * low_pass.order))


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

    def steady(self, angle: Array, smooth: Array, speed: Array, width: float, low_pass: LowPass) -> Mask:
        """Samples whose friction follows from the sign of the velocity, shape (N,).

        Slower ones are left out: within a few smoothing widths of rest, or a few standard deviations of the velocity's
        noise (see `signals.reversals`). So are samples that the filter mixes with slower ones.

        Args:
            angle: measured angle of one joint or motor, shape (N,).
            smooth: the filtered angle, shape (N,).
            speed: derivative of the filtered angle, shape (N,).
            width: smoothing width of the Coulomb friction.
            low_pass: low-pass filter of the rows.
        """
        from scipy.ndimage import maximum_filter1d  # slow to import, and seldom used

        slow = (np.abs(speed) <= max(self.slowest(angle, smooth, width, low_pass))).astype(np.uint8)
        reach = math.ceil(DECAYED * self._fine(low_pass).settling * self.rate)
        mixed = maximum_filter1d(slow, 2 * reach + 1, mode="wrap" if self.periodic else "nearest")
        return np.asarray(mixed == 0)

    def slowest(self, angle: Array, smooth: Array, width: float, low_pass: LowPass) -> tuple[float, float]:
        """Speeds below which the smoothing width and the velocity's noise decide about friction; see `steady`."""
        cutoff = self._fine(low_pass).cutoff
        noise = estimate_noise_left(np.asarray(np.mean((angle - smooth) ** 2)), cutoff, self.rate, True)
        return WIDTHS * width, SIGMAS * float(noise)

    def within(self, low_pass: LowPass) -> Mask:
        """Samples at which the filter of the angles sees both sides, shape (N,).

        Raises:
            InputError: the recording is shorter than the ends of the filter.
        """
        inside = np.ones(self.q.shape[1], dtype=bool)
        if self.rate > 0.0 and not self.periodic:
            edge = math.ceil(EDGE / self._fine(low_pass).cutoff * self.rate)
            if 2 * edge >= len(inside):
                raise InputError(
                    f"{self.name}: {len(inside) / self.rate:.3g} s are too short for a low-pass of "
                    f"{low_pass.cutoff:g} Hz: record more than {2 * edge / self.rate:.3g} s"
                )
            inside[:edge] = inside[-edge:] = False
        return inside

    def _fine(self, low_pass: LowPass) -> LowPass:
        """Low-pass filter of the positions."""
        return LowPass(min(DETAIL * low_pass.cutoff, 0.4 * self.rate), low_pass.order)

    def _motion(self, values: Array, low_pass: LowPass) -> Motion:
        if self.rate == 0.0:
            return Motion(values, np.zeros_like(values), np.zeros_like(values))
        fine = self._fine(low_pass)
        smooth = np.where(np.isfinite(values), self.low_passed(np.nan_to_num(values), fine), np.nan)
        wide = np.pad(smooth, [(0, 0), (8, 8)], mode="wrap" if self.periodic else "edge")
        first = derivative(wide, self.rate)
        return Motion(smooth, first[:, 8:-8], derivative(first, self.rate)[:, 8:-8])


@dataclass(frozen=True)
class TooSlow:
    """An equation that is left out, as all of its samples are too slow for their friction to be known.

    Attributes:
        name: the equation.
        group: parameters that it would have determined: `friction of joint1`, `motor of joint1`.
        fastest: greatest speed of the joint or motor [rad/s or m/s].
        width: speed below which the smoothing width decides [rad/s or m/s].
        noise: speed below which the noise of the velocity decides [rad/s or m/s].
    """

    name: str
    group: str
    fastest: float
    width: float
    noise: float

    def __str__(self) -> str:
        """The speed that is needed, and the reason."""
        return (
            f"{self.name} reaches {self.fastest:.3g}/s, and must stay above {self.width:.3g}/s ({WIDTHS:g} smoothing "
            f"widths) and {self.noise:.3g}/s ({SIGMAS:g} standard deviations of the velocity's noise) for long enough"
        )


@dataclass(frozen=True)
class FilteredRows:
    """Rows of one equation of an experiment, of a block of its samples, filtered.

    Attributes:
        name: name of experiment and equation.
        family: equations of one family may be solved together; see `Equations`.
        rows: rows of all p parameters, shape (N, p).
        target: what is measured [N m or N], shape (N,).
        samples: numbers of the samples, shape (N,).
        counted: samples of the whole experiment that count, shape (any,); the others were zero before the filter.
    """

    name: str
    family: str
    rows: Array
    target: Array
    samples: Integers
    counted: Mask


def make_equations(
    model: FlexibleModel, experiment: Experiment, low_pass: LowPass, too_slow: list[TooSlow] | None = None
) -> list[Equations]:
    """Equations of an experiment, with columns and torques filtered alike; see `filter_rows`."""
    found, shares = dict[str, Equations](), dict[str, float]()
    for block in filter_rows(model, experiment, low_pass, too_slow):
        name, new = block.name, Equations.from_rows(block.name, block.family, block.rows, block.target)
        found[name] = found[name].join_rows(new, len(model.names)) if name in found else new
        shares[name] = float(block.counted.mean())
    return [replace(one, count=max(1, round(shares[one.name] * one.count))) for one in found.values()]


def filter_rows(
    model: FlexibleModel, experiment: Experiment, low_pass: LowPass, too_slow: list[TooSlow] | None = None
) -> Iterator[FilteredRows]:
    """Rows of the equations of an experiment, block by block, with columns and torques filtered alike.

    Samples whose friction is unknown, and those at the ends where the filter of the angles is one-sided, are set to
    zero on both sides before filtering, so that the rest of the equation still holds; see `Experiment.steady`.

    Args:
        model: the arm.
        experiment: the recorded experiment.
        low_pass: low-pass filter of the rows.
        too_slow: list to which equations are added that are left out since every sample is too slow.

    Raises:
        InputError: arrays of another robot, or a recording shorter than the filter's ends.
        UsageError: a cut-off too high for the rate.
    """
    _check(model, experiment)
    states, within, counted = experiment.states(low_pass), experiment.within(low_pass), dict[str, Mask]()
    for part, own in _blocks(experiment, low_pass):
        for row in list_rows_of(model, states.take(part)):
            name = f"{experiment.name}: {row.kind} of {row.joint}"
            if name not in counted:
                counted[name], slow = _counted(model, experiment, states, row, within, low_pass)
                if slow is not None and too_slow is not None:
                    too_slow.append(slow)
            if counted[name].any():
                rows, target = _filtered(experiment, row, counted[name][part], own, low_pass)
                family = f"{experiment.name}: {row.kind}"
                yield FilteredRows(name, family, rows, target, part[own], counted[name])


def _blocks(experiment: Experiment, low_pass: LowPass) -> Iterator[tuple[Integers, Integers]]:
    """Blocks of samples with margins in which filters settle, and the samples of each that become rows.

    The rate of the rows is that of independent samples behind the low-pass: see `compute_rows_per_second`.
    """
    size = experiment.q.shape[1]
    if experiment.rate == 0.0:
        yield np.arange(size), np.arange(size)
        return
    stride = max(1, round(experiment.rate / compute_rows_per_second(low_pass)))
    margin = math.ceil(low_pass.settling * experiment.rate)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        part = np.arange(start - margin, stop + margin)
        part = part if experiment.periodic else part[(part >= 0) & (part < size)]
        yield part % size, np.flatnonzero((part >= start) & (part < stop) & (part % stride == 0))


def _check(model: FlexibleModel, experiment: Experiment) -> None:
    joints, flexible = len(model.model.joint_names), len(model.joints)
    motors = [x for x in (experiment.motor_q, experiment.motor_tau) if x is not None]
    if len(experiment.q) != joints or any(len(x) != flexible for x in motors):
        raise InputError(f"{experiment.name}: the robot has {joints} joints, {flexible} of them flexible")
    unknown = [name for name in experiment.moving if name not in model.model.joint_names]
    if unknown:
        raise InputError(f"{experiment.name}: {unknown[0]} moves, but is not a joint of {model.model.name}")


def _filtered(
    experiment: Experiment, row: JointRows, counted: Mask, own: Integers, low_pass: LowPass
) -> tuple[Array, Array]:
    """Rows and target of a block through the low-pass, what does not count as zero; those that become rows."""
    if experiment.rate == 0.0:
        return row.rows, row.target
    there = np.flatnonzero(row.rows.any(axis=0))
    both = np.concatenate([row.rows[:, there].T, row.target[None]]) * counted
    both = low_pass.apply(both, experiment.rate)[:, own]
    rows = np.zeros((len(own), row.rows.shape[1]))
    rows[:, there] = both[:-1].T
    return rows, both[-1]


def _counted(
    model: FlexibleModel,
    experiment: Experiment,
    states: States,
    row: JointRows,
    within: Mask,
    low_pass: LowPass,
) -> tuple[Mask, TooSlow | None]:
    """Samples of an equation that count, shape (N,): whose friction is known, of springs all; and why none is."""
    if experiment.moving and row.joint not in experiment.moving:
        return np.zeros_like(within), None
    if experiment.rate == 0.0 or row.kind == "spring":
        return within, None
    number, width, group = model.model.joint_names.index(row.joint), model.smoothing_width, "friction"
    angle, motion, place = experiment.q, states.link, number
    if row.kind == "motor" and states.motor is not None and experiment.motor_q is not None:
        place, group = model.numbers.index(number), "motor"
        angle, motion, width = experiment.motor_q, states.motor, width * abs(model.joints[place].ratio)
    of_joint = angle[place], motion.q[place], motion.dq[place]
    counted = within & experiment.steady(*of_joint, width, low_pass)
    if counted.any():
        return counted, None
    fastest, speeds = float(np.abs(of_joint[2]).max()), experiment.slowest(*of_joint[:2], width, low_pass)
    name = f"{experiment.name}: {row.kind} of {row.joint}"
    return counted, TooSlow(name, f"{group} of {row.joint}", fastest, *speeds)
