# SPDX-License-Identifier: Apache-2.0
"""Update of friction in orbit: the monitor of the running robot finds and estimates a risen breakaway torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.dynamics.terms import ImprovedStribeck, RotorInertia
from robot_dyn_id.estimators import Separable
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r.trials import NOISE, RATE, VELOCITIES, list_parameters, make_regressor_of
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from robot_dyn_id.version import __version__

WEIGHTLESS = (0.0, 0.0, 0.0)

JOINT, RISE = 0, 0.3
"""Joint whose breakaway torque fb rises, and by which share."""

LEVEL = 0.1
"""Noise of the torques, as a share of the paper's RMSE."""

CHANGE, END, PERIOD = 90.0, 150.0, 20.0
"""Time of the rise, end of the motion, and its period [s]."""

CUTOFF, WINDOW = 10.0, 10.0
"""Cut-off [Hz] and window [s] of the monitor."""


@dataclass(frozen=True)
class FrictionRise:
    """A breakaway torque that has risen, as the monitor reports it.

    Attributes:
        true: true rise of fb [N m].
        estimated: estimated rise [N m]; NaN if it was not found.
        standard_deviation: its standard deviation [N m].
        delay: time from the rise to its detection [s]; infinite if it was not found.
        others: other parts of the robot that were reported as changed.
    """

    true: float
    estimated: float
    standard_deviation: float
    delay: float
    others: tuple[str, ...]

    @classmethod
    def from_seed(cls, seed: int) -> FrictionRise:
        """Identify a weightless robot, let it move, and let the breakaway torque of a joint rise."""
        model, rng = model_of("space6r", WEIGHTLESS), np.random.default_rng(seed)
        truth, velocities = list_parameters(model, rng)
        regressor = make_regressor_of(model, velocities)
        sensors = Sensors(LEVEL * NOISE, 0.0, 1e-4)
        data = [
            simulate_recording(
                regressor,
                truth,
                draw_random_fourier(model, number, PERIOD),
                sample_times(3.0 * PERIOD, RATE),
                sensors,
                seed,
            )
            for number in (1, 2)
        ]
        terms = (RotorInertia(), ImprovedStribeck(float(np.mean(VELOCITIES))))
        settings = Settings(terms=terms, estimator=Separable(), velocity="recorded")
        known = identify(data[:1], data[1:], model, settings, __version__).parameters
        risen, place = truth.copy(), regressor.names.index(f"dfi{JOINT + 1}")
        rise = RISE * (truth[place] + truth[place - 1])
        risen[place] += rise
        t = np.arange(0.0, END, 1.0 / RATE)
        motion = Motion(*draw_random_fourier(model, 3, PERIOD).evaluate(t % PERIOD)[:3])
        torque = np.where(t < CHANGE, regressor.torque(motion, truth), regressor.torque(motion, risen))
        torque += sensors.effort[:, None] * rng.normal(size=torque.shape)
        return cls._reported(ResidualMonitor(known, CUTOFF, WINDOW), t, motion, torque, rise)

    @classmethod
    def _reported(cls, monitor: ResidualMonitor, t: Array, motion: Motion, torque: Array, rise: float) -> FrictionRise:
        for k, time in enumerate(t):
            if monitor.add(float(time), motion.q[:, k], motion.dq[:, k], torque[:, k]) and monitor.watch.due(time):
                monitor.residual()
        symbol, found, others = f"dfi{JOINT + 1}", (np.nan, np.nan, np.inf), []
        for change in monitor.watch.changes:
            if symbol in change.part.symbols:
                place = change.part.symbols.index(symbol)
                found = (
                    *(float(change.values[place]), float(change.standard_deviations[place])),
                    change.since - CHANGE,
                )
            elif change.significant:
                others.append(change.part.title)
        return cls(rise, *found, tuple(others))
