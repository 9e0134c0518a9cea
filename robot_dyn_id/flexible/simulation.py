# SPDX-License-Identifier: Apache-2.0
"""An arm with flexible joints, simulated under the control of its motors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms.sign import sign
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.flexible.experiment import Experiment
from robot_dyn_id.flexible.model import MOTOR, SPRING, FlexibleModel
from robot_dyn_id.signals.filtering import derivative

KNOTS = 2e-3
"""Time between knots of what is fed forward [s]."""

FINE = 5e-5
"""Longest step of the derivatives of motor angles [s]: friction goes through zero in some milliseconds."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations of white sensor noise.

    Attributes:
        q: link encoders [rad or m].
        motor_q: motor encoders [rad].
        tau: torque sensors [N m or N].
        motor_tau: motor torques [N m].
    """

    q: float = 0.0
    motor_q: float = 0.0
    tau: float = 0.0
    motor_tau: float = 0.0

    def added(self, experiment: Experiment, seed: int) -> Experiment:
        """The experiment as sensors with this noise would have shown it."""
        rng = np.random.default_rng(seed)

        def noisy(values: Array, sigma: float) -> Array:
            return values + sigma * rng.normal(size=values.shape)

        motor_q = None if experiment.motor_q is None else noisy(experiment.motor_q, self.motor_q)
        motor_tau = None if experiment.motor_tau is None else noisy(experiment.motor_tau, self.motor_tau)
        q, tau = noisy(experiment.q, self.q), noisy(experiment.tau, self.tau)
        return Experiment(
            experiment.name, experiment.rate, q, tau, motor_q, motor_tau, experiment.moving, experiment.periodic
        )


@dataclass(frozen=True)
class FlexiblePlant:
    """An arm all of whose joints are flexible, with known parameters.

    Its motors follow a motion under proportional and derivative feedback of their own angles, with the gravity of the
    wanted pose fed forward, also through the springs.

    Attributes:
        model: the arm.
        values: its parameters, shape (p,).
        stiffness: proportional gain relative to the spring's stiffness at the motor.
        damping: damping ratio of the motor under that gain.
    """

    model: FlexibleModel
    values: Array
    stiffness: float = 0.5
    damping: float = 0.7

    def __post_init__(self) -> None:
        """Check the joints.

        Raises:
            InputError: a rigid joint, or not one value for each parameter.
        """
        if self.model.numbers != tuple(range(len(self.model.model.joint_names))):
            raise InputError("only arms all of whose joints are flexible, named in their order, can be simulated")
        if self.values.shape != (len(self.model.names),):
            raise InputError(f"{len(self.model.names)} parameters are needed, not {self.values.shape}")

    def _of(self, symbols: tuple[str, ...]) -> list[Array]:
        """Values of some symbols, one array over the joints each."""
        rows = [self.values[self.model.columns(symbols, joint.name)] for joint in self.model.joints]
        return list(np.array(rows).T)

    @property
    def _ratio(self) -> Array:
        return np.array([joint.ratio for joint in self.model.joints])

    @property
    def _offset(self) -> Array:
        columns = [self.model.columns(("off",), joint.name) for joint in self.model.joints]
        return np.array([self.values[column].sum() for column in columns])

    @property
    def _dynamics(self) -> Dynamics:
        """Dynamics of the link side without offsets, which belong to the sensors."""
        values = self.values[: len(self.model.base.names)].copy()
        values[[name.startswith("off") for name in self.model.base.names]] = 0.0
        return Dynamics(self.model.regressor, self.model.base.independent, values)

    def poses(self, name: str, q: Array) -> Experiment:
        """Sensor readings at rest at the poses q, shape (n, N)."""
        gravity = self._dynamics.gravity(q.T).T
        motor_q, motor_tau = self._at_rest(q, gravity)
        return Experiment(name, 0.0, q, gravity + self._offset[:, None], motor_q, motor_tau)

    def _at_rest(self, q: Array, gravity: Array) -> tuple[Array, Array]:
        ratio, (stiffness, preload) = self._ratio[:, None], (x[:, None] for x in self._of(SPRING))
        return ratio * (q + (gravity - preload) / stiffness), gravity / ratio

    def run(
        self, name: str, motion: Trajectory, period: float, rate: float, moving: tuple[str, ...] = (), settle: int = 1
    ) -> Experiment:
        """Follow a periodic motion, and record its last period.

        Args:
            name: name of the experiment.
            motion: periodic motion of the links, at rest at time 0.
            period: period of the motion [s].
            rate: sample rate of the recording [Hz].
            moving: joints that move; empty: all.
            settle: periods before the one that is recorded.

        Raises:
            InputError: the integration breaks down.
        """
        from scipy.integrate import solve_ivp  # slow to import, and seldom used

        law = _Law(self, motion, period)
        t = np.arange(round(period * rate)) / rate + settle * period
        start = motion.evaluate(np.zeros(1))[0]
        state = np.concatenate([start[:, 0], 0 * start[:, 0], self._at_rest(start, law.gravity(start))[0][:, 0]])
        state = np.append(state, np.zeros(len(start)))
        found = solve_ivp(law.slope, (0.0, t[-1]), state, "LSODA", t_eval=t, rtol=1e-8, atol=1e-10, max_step=0.02)
        if not found.success:
            raise InputError(f"{name}: the simulation broke down at {found.t[-1]:.3g} s: {found.message}")
        q, _, motor_q, motor_dq = np.split(found.y, 4)
        tau = law.spring_torque(q, motor_q)
        motor_tau = np.array([law.effort(*x) for x in zip(t, motor_q.T, motor_dq.T, strict=True)]).T
        return Experiment(name, rate, q, tau + self._offset[:, None], motor_q, motor_tau, moving, True)

    def along(
        self, name: str, motion: Trajectory, period: float, rate: float, moving: tuple[str, ...] = ()
    ) -> Experiment:
        """Sensor readings of one period while the links follow a motion exactly, with unlimited motors.

        No controller and no integration: torques follow from the links' motion, motor angles from the torques, and
        motor torques from the angles' derivatives. Much faster than `run`, but with a smoothing width below
        about 0.01 rad/s a link that reverses slowly needs a motor jerk that usual sample rates cannot represent; use
        `run` there.

        Args:
            name: name of the experiment.
            motion: periodic motion of the links.
            period: period of the motion [s].
            rate: sample rate of the recording [Hz].
            moving: joints that move; empty: all.
        """
        times = math.ceil(1.0 / (FINE * rate))
        q, dq, ddq, _ = motion.evaluate(np.arange(round(period * rate) * times) / (rate * times))
        tau = self._dynamics.inverse_dynamics(q.T, dq.T, ddq.T).T
        ratio, (stiffness, preload) = self._ratio[:, None], (x[:, None] for x in self._of(SPRING))
        motor_q = ratio * (q + (tau - preload) / stiffness)
        around = np.pad(motor_q, [(0, 0), (8, 8)], mode="wrap")
        first = derivative(around, rate * times)
        motor_dq, motor_ddq = first[:, 8:-8], derivative(first, rate * times)[:, 8:-8]
        inertia, viscous, coulomb = (x[:, None] for x in self._of(MOTOR))
        dry = coulomb * np.asarray(sign(motor_dq / (self.model.smoothing_width * np.abs(ratio)), 1.0))
        motor_tau = inertia * motor_ddq + viscous * motor_dq + dry + tau / ratio
        q, tau, motor_q, motor_tau = (x[:, ::times] for x in (q, tau + self._offset[:, None], motor_q, motor_tau))
        return Experiment(name, rate, q, tau, motor_q, motor_tau, moving, True)


class _Law:
    """The controlled arm as a differential equation of (q, dq, m, dm)."""

    def __init__(self, plant: FlexiblePlant, motion: Trajectory, period: float) -> None:
        self.period, self.dynamics, self.ratio = period, plant._dynamics, plant._ratio
        self.inertia, self.viscous, self.coulomb = plant._of(MOTOR)
        self.stiffness, self.preload = plant._of(SPRING)
        from scipy.interpolate import CubicSpline  # slow to import, and seldom used

        self.width = plant.model.smoothing_width * np.abs(self.ratio)
        self.gain = plant.stiffness * self.stiffness / self.ratio**2
        self.rate = 2 * plant.damping * np.sqrt(self.gain * self.inertia)
        knots = np.linspace(0.0, period, 1 + math.ceil(period / KNOTS))
        q, dq, _, _ = motion.evaluate(knots)
        gravity, ratio = self.gravity(q), self.ratio[:, None]
        rest = ratio * (q + (gravity - self.preload[:, None]) / self.stiffness[:, None])
        fed = gravity / ratio + self.gain[:, None] * rest + self.rate[:, None] * ratio * dq
        self.fed_forward = CubicSpline(knots, fed, axis=1)

    def gravity(self, q: Array) -> Array:
        """Gravity torque, shape (n, N)."""
        return self.dynamics.gravity(q.T).T

    def spring_torque(self, q: Array, motor_q: Array) -> Array:
        """Torque in the springs, shape (n, N)."""
        deflection = motor_q / self.ratio[:, None] - q
        return self.stiffness[:, None] * deflection + self.preload[:, None]

    def effort(self, t: float, motor_q: Array, motor_dq: Array) -> Array:
        """Torque of the motors."""
        return np.asarray(self.fed_forward(t % self.period) - self.gain * motor_q - self.rate * motor_dq)

    def slope(self, t: float, state: Array) -> Array:
        """Derivative of the state."""
        q, dq, motor_q, motor_dq = np.split(state, 4)
        tau = self.spring_torque(q[:, None], motor_q[:, None])[:, 0]
        ddq = self.dynamics.forward_dynamics(q, dq, tau)
        torque = self.effort(t, motor_q, motor_dq) - tau / self.ratio - self.viscous * motor_dq
        return np.concatenate([dq, ddq, motor_dq, (torque - self._dry(motor_dq)) / self.inertia])

    def _dry(self, motor_dq: Array) -> Array:
        return self.coulomb * np.asarray(sign(motor_dq / self.width, 1.0))
