# SPDX-License-Identifier: Apache-2.0
"""Residual of an identified model during operation of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.momentum import is_accelerated
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.identification import assembly
from robot_dyn_id.identification.validation.extrapolation import Excess, flag_far_outside, list_excesses
from robot_dyn_id.kernels.recursive_filters import compute_steps_since, second_order
from robot_dyn_id.online.friction_columns import FrictionColumns
from robot_dyn_id.online.watch import DEFAULT_SETTINGS, ModelWatch, WatchSettings
from robot_dyn_id.parameters import ParameterSet

MOVING_RATIO = 0.05
"""Speed above which a joint moves, as a ratio to its maximum speed in the training data. Below, stiction takes any
value up to the breakaway torque, which no model can predict."""

MIN_MOTION_S = 2.0
"""Duration of motion after which a joint is assessed [s]."""

SECTION_S = 0.25
"""Duration of motion per mean square [s]; longer than the impulse response of the filter."""

DIFFERENTIATOR_RATIO = 4.0
"""Cut-off of the low-pass that differentiates positions, as a ratio to that of the monitor; it adds little delay."""

TRIMMED_SHARE = 0.15
"""Share of the sections, those with the largest residuals, that is excluded. A stop or a new command causes a torque
pulse of a few milliseconds, which efforts sampled at 200 Hz do not resolve and no model predicts. A model that does not
fit has large residuals in most of the motion."""


class CausalFilter:
    """Second-order low-pass with both poles at -w, and the derivative of its output, for samples at any times.

    A state-variable filter: input u, output y with y'' + 2 w y' + w^2 y = w^2 u, where u is linear between samples,
    solved exactly. Position, velocity, torque and (by y') acceleration pass the same filter and have the same delay,
    unlike with a derivative filter on the velocity alone.
    """

    def __init__(self, cutoff: float) -> None:
        """Start without samples, for a cut-off [Hz]: w = 2 pi cutoff."""
        self._w = 2 * np.pi * cutoff
        self._last: tuple[Array, Array, Array]
        self.reset()

    def reset(self) -> None:
        """Reset the filter to steady state at the next sample."""
        self._t, self._since = -np.inf, np.inf

    @property
    def settled(self) -> bool:
        """Whether the initial state has decayed to 0.3 % at the latest sample."""
        return bool(self.settled_at(np.array(self._t)))

    def add(self, t: float, u: Array) -> tuple[Array, Array]:
        """Add a sample.

        Args:
            t: time, later than that of the previous sample [s].
            u: values, any shape.

        Returns:
            Output and its derivative.
        """
        y, dy = self.follow(np.array([t]), np.asarray(u)[None])
        return y[0], dy[0]

    def settled_at(self, t: Array) -> Mask:
        """Whether the initial state has decayed to 0.3 % at times since the latest reset, shape (N,)."""
        return np.asarray(t - self._since >= 8.0 / self._w)

    def follow(self, t: Array, u: Array) -> tuple[Array, Array]:
        """Add N samples.

        Args:
            t: increasing times, later than those of previous samples [s], shape (N,).
            u: values, shape (N, ...).

        Returns:
            Output and its derivative at each sample, shape (N, ...) each.
        """
        flat = np.reshape(u, (len(u), -1)).astype(np.float64, copy=False)
        if not np.isfinite(self._t):
            self._t, self._since = float(t[0]), float(t[0])
            self._last = flat[0], flat[0], np.zeros(flat.shape[1])
        before, y, dy = self._last
        step = np.concatenate([[0.0], compute_steps_since(self._t, t)])
        inputs, outputs, slopes = np.concatenate([before[None], flat]), *np.empty((2, len(flat) + 1, flat.shape[1]))
        outputs[0], slopes[0] = y, dy
        begin = int(step[1] == 0.0)  # the first sample of all is the steady state itself
        if begin:
            outputs[1], slopes[1] = y, dy
        second_order(
            self._w, step[begin:], np.exp(-self._w * step[begin:]), inputs[begin:], outputs[begin:], slopes[begin:]
        )
        self._t = float(t[-1])
        self._last = flat[-1], outputs[-1], slopes[-1]
        return outputs[1:].reshape(np.shape(u)), slopes[1:].reshape(np.shape(u))


@dataclass(frozen=True)
class Residual:
    """Measured and predicted torque at one time, shape (n,) each [N m or N].

    Attributes:
        measured: measured torque, low-passed.
        predicted: torque predicted by the model.
        standard_deviation: standard deviation of `predicted`; infinite if it depends on an unidentifiable parameter.
        velocity: joint velocity, low-passed [rad/s or m/s].
    """

    measured: Array
    predicted: Array
    standard_deviation: Array
    velocity: Array

    @property
    def difference(self) -> Array:
        """Measured - predicted."""
        return self.measured - self.predicted


class Columns:
    """Low-passed torques, motion and columns of a regressor, from a stream of joint states.

    The columns of friction pass the same low-pass as the torque (parallel filtering, Gautier 1997): evaluated at the
    low-passed velocity, they would exceed the low-passed friction at reversals. The columns of the rigid body and of
    terms of the acceleration are smooth and are evaluated along the low-passed motion, which provides the acceleration.
    States of terms are integrated along the positions that are added. They are kept over a `restart`.
    """

    def __init__(self, regressor: Regressor, cutoff: float) -> None:
        """Start without samples, for a cut-off of the low-pass [Hz]."""
        self._shape = regressor.structure.shape
        self.filter = CausalFilter(cutoff)
        self._friction = FrictionColumns(regressor)
        self._smooth_rows = np.setdiff1d(np.arange(self._shape[0]), self._friction.rows)
        self._smooth = regressor.with_terms(tuple(pair for pair in regressor.terms if is_accelerated(pair[1])))
        self.has_states = self._friction.has_states
        self.reset()

    def reset(self) -> None:
        """Restart without a history."""
        self.filter.reset()
        self._friction.reset()

    def add(self, t: float, state: Array) -> None:
        """Add positions, velocities and torques at the time t [s], shape (3, n), later than the previous ones."""
        values, slopes = self.follow(np.array([t]), state[None])
        self._values, self._slopes = values[0], slopes[0]

    def follow(self, t: Array, states: Array) -> tuple[Array, Array]:
        """Add N states, as `add` adds one.

        Args:
            t: times [s], shape (N,).
            states: positions, velocities and torques, shape (N, 3, n).

        Returns:
            The states and the columns of friction, low-passed, and their derivatives, shape (N, 3 + k, n) each.
        """
        friction = self._friction.follow(t, states[:, 0].T, states[:, 1].T)
        return self.filter.follow(t, np.concatenate([states, friction.transpose(2, 0, 1)], axis=1))

    def read(self) -> tuple[Motion, Array, Array]:
        """Motion, torques, shape (n,), and columns, shape (c, n), all low-passed."""
        motion, tau, columns = self.assemble(self._values[None], self._slopes[None])
        return motion, tau[0], columns[:, :, 0]

    def assemble(self, values: Array, slopes: Array) -> tuple[Motion, Array, Array]:
        """Motion, torques, shape (N, n), and columns, shape (c, n, N), of what `follow` returns."""
        q, dq, tau = values[:, :3].swapaxes(0, 1)
        motion = Motion(q.T.copy(), dq.T.copy(), slopes[:, 1].T.copy())
        columns = np.empty((*self._shape, len(values)))
        columns[self._smooth_rows] = self._smooth.dense(motion)
        columns[self._friction.rows] = values[:, 3:].transpose(1, 2, 0)
        return motion, tau, columns


class ResidualMonitor:
    """Residuals of a parameter set in a stream of joint states, with their size in motion and changes of the robot.

    Example:
        ```python
        monitor = rdi.ResidualMonitor(rdi.load_parameters("run/parameters.yaml"), cutoff=5.0, window=10.0)
        for chunk in recording.chunks(recording.joint_names):
            for t, q, dq, tau in zip(chunk.t, chunk.q, chunk.dq, chunk.tau):
                monitor.add(t, q, dq, tau)
        print(monitor.rms)
        ```

    Attributes:
        parameters: identified parameter set.
        watch: detection of changes from the residuals.
        longest_gap: time without joint states after which the filters restart [s].
        interruptions: number of longer times without joint states; no residuals are valid until the filters settle.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        cutoff: float,
        window: float,
        longest_gap: float = 0.1,
        settings: WatchSettings = DEFAULT_SETTINGS,
    ) -> None:
        """Start without joint states.

        Args:
            parameters: identified parameter set.
            cutoff: cut-off of the filter [Hz].
            window: duration of the latest motion that is assessed [s]; a multiple of `SECTION_S`.
            longest_gap: time without joint states after which the filters restart [s].
            settings: settings of the detection of changes.

        Raises:
            InputError: a set that this version cannot read; no joint has the name of the payload body.
            UsageError: a cut-off that is not positive.
        """
        self.parameters = parameters
        self.longest_gap = longest_gap
        regressor = self._regressor = Regressor.from_parameters(parameters)
        self._independent = parameters.base.independent
        self._columns, self._trained = Columns(regressor, cutoff), parameters.ranges
        self.watch = ModelWatch(parameters, regressor, cutoff, longest_gap, settings)
        joints = len(parameters.robot.joint_names)
        self._differentiator, self._differentiates = CausalFilter(DIFFERENTIATOR_RATIO * cutoff), False
        self._effort_factors = parameters.effort_factors
        self.interruptions = 0
        self._last, self._evaluated = -np.inf, -np.inf
        self._moved, self._joints = np.zeros(joints), np.arange(joints)
        self._time = np.zeros((round(max(window / SECTION_S, 1.0)), joints))
        self._integrals = np.zeros((5, *self._time.shape))  # residual^2, torque^2 and `outside` per section

    def add(self, t: float, q: Array, dq: Array | None, tau: Array) -> bool:
        """Add a joint state, shape (n,) each; states that are not later than the previous one are ignored.

        `tau` is the effort as the drives report it; gains and signs of the parameter set are applied.

        Without velocities (None), positions and torques first pass a causal low-pass of `DIFFERENTIATOR_RATIO` times
        the cut-off, whose derivative gives the velocities: all three have the same delay. With states of friction,
        which noise of the positions would wear away, positions, velocities and torques pass it as well.

        Returns:
            Whether the filter has settled, so that `residual` is valid.
        """
        if t <= self._last:
            if t < self._last - self.longest_gap:  # time was set back: a bag starts again
                self._restart()
                self._columns.reset()
                self._last = self._evaluated = -np.inf
            else:
                return False
        if t > self._last + self.longest_gap or (dq is None) != self._differentiates:
            self.interruptions += bool(np.isfinite(self._last) and t > self._last + self.longest_gap)
            self._restart()
        tau = self._effort_factors * tau
        self._last, self._differentiates = t, dq is None
        if dq is None:
            (q, tau), (dq, _) = self._differentiator.add(t, np.array((q, tau)))
            if not self._differentiator.settled:
                return False
        elif self._columns.has_states:
            (q, dq, tau), _ = self._differentiator.add(t, np.array((q, dq, tau)))
        self._columns.add(t, np.array((q, dq, tau)))
        return self._columns.filter.settled

    def _restart(self) -> None:
        """Reset the filters."""
        self._columns.filter.reset()
        self._differentiator.reset()

    def residual(self) -> Residual:
        """Compute the residual at the latest state and include it in the assessment."""
        motion, tau, columns = self._columns.read()
        columns = columns[self._independent]  # (p, n)
        residual = Residual(tau, self.parameters.estimate.values @ columns, self._deviation(columns), motion.dq[:, 0])
        passed = min(self._last - self._evaluated, self.longest_gap)
        self._evaluated = self._last
        moving = np.abs(residual.velocity) > MOVING_RATIO * self._trained.dq_max
        squares = np.array((residual.difference, tau)) ** 2
        far = flag_far_outside(motion, self._trained)[:, :, 0]
        self._count(np.where(moving, passed, 0.0), np.concatenate([squares, far]))
        if self.watch.due(self._last):
            self.watch.add(self._last, columns, tau, residual.difference, moving)
        return residual

    def _count(self, passed: Array, values: Array) -> None:
        """Add values, shape (5, n), that held for `passed` [s], shape (n,), to the present section of each joint.

        The sections are a ring buffer: a new section of a joint replaces its oldest.
        """
        before, after = (np.floor(moved / SECTION_S) for moved in (self._moved, self._moved + passed))
        self._moved += passed
        part = after.astype(np.int64) % len(self._time)
        begun = self._joints[after > before]
        self._time[part[begun], begun] = self._integrals[:, part[begun], begun] = 0.0
        self._time[part, self._joints] += passed
        self._integrals[:, part, self._joints] += passed * values

    @property
    def _squares(self) -> Array:
        """Trimmed mean squares of residual and torque over the motion, shape (2, n)."""
        time = np.maximum(self._time, 1e-300)
        order = np.argsort(self._integrals[0] / time, axis=0)  # sections without motion come first and have no weight
        filled = np.count_nonzero(self._time, axis=0)
        left_out = np.clip(np.ceil(TRIMMED_SHARE * filled), 0, np.maximum(filled - 1, 0))
        kept = np.arange(len(time))[:, None] < len(time) - left_out
        every = np.array((self._time, *self._integrals[:2]))
        total, *squares = np.sum(np.take_along_axis(every, order[None], axis=1), axis=1, where=kept)
        return np.asarray(np.array(squares) / np.maximum(total, 1e-300))

    @property
    def assessed(self) -> Mask:
        """Flags of the joints that have moved long enough for an assessment, shape (n,)."""
        return self._moved >= MIN_MOTION_S

    @property
    def rms(self) -> Array:
        """RMS residual during motion, trimmed [N m or N], shape (n,)."""
        return np.asarray(np.sqrt(self._squares[0]))

    @property
    def nrmse(self) -> Array:
        """Ratio of RMS residual to RMS torque during motion, both trimmed, shape (n,)."""
        return np.asarray(self.rms / np.sqrt(np.maximum(self._squares[1], 1e-300)))

    def worse(self, factor: float, floor: float) -> tuple[str, ...]:
        """Names of the assessed joints whose NRMSE exceeds `floor` and `factor` times the held-out NRMSE."""
        allowed = np.maximum(factor * self.parameters.judgment.held_out_nrmse, floor)
        flags = self.assessed & (self.nrmse > allowed)
        return tuple(name for name, flag in zip(self.parameters.robot.joint_names, flags, strict=True) if flag)

    @property
    def outside(self) -> tuple[Excess, ...]:
        """Joints and quantities far outside the training motion, with the share of the assessed motion."""
        shares = np.sum(self._integrals[2:], axis=1) / np.maximum(np.sum(self._time, axis=0), 1e-300)
        return list_excesses(self.parameters.robot.joint_names, np.where(self.assessed, shares, 0.0))

    @property
    def tracked(self) -> ParameterSet | None:
        """Parameter set with base parameters, standard deviations and covariance estimated from recent motion.

        It is marked as tracked; everything else is copied from the identified set. None until the noise model is
        learned.
        """
        found = self.watch.tracked
        return None if found is None else assembly.make_tracked(self.parameters, *found, self._regressor)

    @cached_property
    def _unknown(self) -> Mask:
        """Parameters without a finite variance."""
        return np.asarray(~np.isfinite(np.diag(self.parameters.estimate.covariance)))

    @cached_property
    def _covariance(self) -> Array:
        """Covariance of the parameters, with zeros for those without a finite variance."""
        known = ~self._unknown
        return np.asarray(np.where(known & known[:, None], self.parameters.estimate.covariance, 0.0))

    def _deviation(self, columns: Array) -> Array:
        """Standard deviation of the predicted torque, shape (n,)."""
        variance = np.sum(columns * (self._covariance @ columns), axis=0)
        unsure = np.any(columns[self._unknown] != 0.0, axis=0)
        return np.where(unsure, np.inf, np.sqrt(np.maximum(variance, 0.0)))
