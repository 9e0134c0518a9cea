# SPDX-License-Identifier: Apache-2.0
"""Changes during operation: time until a payload is detected and its mass estimated, false alarms, and cost per sample.

A 7-axis arm, identified from 60 s with the same noise (autoregressive, 0.1 s), repeats a random period;
60 s are learned from. False alarms are counted in motions that go on like the learned one, and in others.

    python benchmarks/online.py --seeds 10 --minutes 30 --motions 2 --processes 2
"""

from __future__ import annotations

from measuring import Goal, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from time import process_time
from typing import NamedTuple

import arms
import numpy as np
from arms import NOISE

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_parameters
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.online import RecursiveLeastSquares, WatchSettings
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.sensors import Sensors, draw_colored_noise, sample_times, simulate_recording
from robot_dyn_id.version import __version__

ARM, RATE, CUTOFF, CORRELATION, QUIET = "panda", 200.0, 10.0, 0.1, 60.0
SENSORS = Sensors(NOISE, correlation_time=CORRELATION)
CENTER, RADIUS = np.array([0.02, 0.01, 0.2]), 0.04
"""Payload: center of mass in the frame of the last joint, radius of gyration about it [m]."""
DETECTION = {2.0: 0.2, 0.5: 0.5, 0.2: 1.0}
"""Payloads [kg], and the time within which they must be detected [s]."""
SETTLING = {0.05: 2.0, 0.02: 3.0}
"""Relative errors of the mass of a 2 kg payload, and the time after which they must not be exceeded [s]."""
AFTER = 6.0
"""Evaluated duration after the step [s]."""


@cache
def model() -> ParameterSet:
    """Arm identified from an equally noisy recording."""
    regressor = arms.with_friction(ARM)
    parameters = arms.true_parameters(regressor.model)
    trials = [
        simulate_recording(
            regressor, parameters, draw_random_fourier(regressor.model, s), sample_times(60.0, 100.0), SENSORS, s
        )
        for s in (1, 2)
    ]
    return identify(trials[:1], trials[1:], regressor.model, Settings(), __version__).parameters


def payload(mass: float) -> Array:
    """Its standard parameters in the frame of the last joint, shape (10,)."""
    moments = RADIUS**2 / 3.0 * np.eye(3) + np.outer(CENTER, CENTER)
    return convert_to_parameters(mass * np.block([[moments, CENTER[:, None]], [CENTER[None, :], np.ones((1, 1))]]))


def added(mass: float) -> Array:
    """Contribution of a payload to all parameters, shape (c,)."""
    regressor = arms.with_friction(ARM)
    parameters, last = np.zeros(len(regressor.names)), 10 * (len(regressor.model.body_names) - 1)
    parameters[last : last + 10] = payload(mass)
    return parameters


class Outcome(NamedTuple):
    """Outcome of one motion: time of detection [s], and reported masses with their times, shape (k, 2)."""

    detections: tuple[float, ...]
    masses: Array


def watched(seed: int, mass: float, step: float, duration: float, other: bool = False) -> Outcome:
    """A motion of `duration` during which a payload is taken up at `step` [s]; behind the learning another one."""
    regressor, rng = arms.with_friction(ARM), np.random.default_rng(seed)
    t = np.arange(round(duration * RATE)) / RATE
    t[t > QUIET + 1.0] += 1.0 if other else 0.0  # silence, in which it goes to where the other motion begins
    learned, later = (draw_random_fourier(regressor.model, 100 + number) for number in (seed, seed + 500 * other))
    parts = [m.evaluate(s % m.period)[:3] for m, s in ((learned, t[t <= QUIET + 1.0]), (later, t[t > QUIET + 1.0]))]
    q, dq, ddq = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
    states = Motion(q, dq, ddq)
    truth = arms.true_parameters(regressor.model)
    tau = regressor.torque(states, truth) + draw_colored_noise(NOISE, len(t), RATE, CORRELATION, rng)
    tau[:, t >= step] += regressor.torque(states.take(t >= step), added(mass))
    shown_q = q + SENSORS.position * rng.normal(size=q.shape)
    shown_dq = dq + (SENSORS.velocity or 0.0) * rng.normal(size=q.shape)
    monitor = ResidualMonitor(model(), CUTOFF, 10.0, settings=WatchSettings(quiet=QUIET))
    detections, masses = [], []
    for k in range(len(t)):
        if monitor.add(t[k], shown_q[:, k], shown_dq[:, k], tau[:, k]) and monitor.watch.due(t[k]):
            monitor.residual()
            if monitor.watch.detected not in (*detections, np.nan) and np.isfinite(monitor.watch.detected):
                detections.append(monitor.watch.detected)
            masses += [(t[k], c.values[0]) for c in monitor.watch.changes if c.part.name == "payload"]
    return Outcome(tuple(detections), np.array(masses).reshape(-1, 2))


def settled(outcome: Outcome, mass: float, step: float, error: float) -> float:
    """Time after the step from which on the mass is within a relative error [s]."""
    t, reported = outcome.masses.T
    outside = t[(np.abs(reported - mass) > error * mass)]
    begin = float(t[0]) if len(t) else np.inf
    return max(begin, float(outside[-1]) if len(outside) else 0.0) - step


def update_time(columns: int = 64, joints: int = 7, updates: int = 3000) -> float:
    """CPU time of one recursive update of all base parameters [s]."""
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(64, joints, columns)), rng.normal(size=(64, joints))
    ours = RecursiveLeastSquares(np.zeros(columns), np.full(columns, 100.0))
    ours.update(rows[0], targets[0], 0.9999)
    start = process_time()
    for k in range(updates):
        ours.update(rows[k % 64], targets[k % 64], 0.9999)
    return (process_time() - start) / updates


def moment_times(seconds: float = 10.0) -> Array:
    """CPU times of joint states at 1 kHz, each through filter, prediction, residual and watch, shape (k,) [s].

    Thresholds are learned from 4 s; at 8 s a payload is taken up, and eight explanations are weighed.
    """
    regressor = arms.with_friction(ARM)
    motion, t = draw_random_fourier(regressor.model, 3), np.arange(round(1e3 * seconds)) * 1e-3
    q, dq, ddq, _ = motion.evaluate(t)
    states, truth = Motion(q, dq, ddq), arms.true_parameters(regressor.model)
    tau = regressor.torque(states, truth) + draw_colored_noise(
        NOISE, len(t), 1e3, CORRELATION, np.random.default_rng(0)
    )
    tau[:, t >= 8.0] += regressor.torque(states.take(t >= 8.0), added(max(DETECTION)))
    monitor, times = ResidualMonitor(model(), CUTOFF, 10.0, settings=WatchSettings(quiet=4.0)), []
    for k in range(len(t)):
        start = process_time()
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]):
            monitor.residual()
        times.append(process_time() - start)
    return np.array(times[5000:])


def goals_of(mass: float, outcomes: list[Outcome], steps: list[float]) -> list[Goal]:
    """Detection and settling of a payload."""
    both = list(zip(outcomes, steps, strict=True))
    first = [next((d for d in o.detections if d >= s), np.inf) - s for o, s in both]
    early = sum(any(d < s for d in o.detections) for o, s in both)
    within, title = DETECTION[mass], f"payload of {mass:g} kg: detected after, worst of {len(steps)} motions [s]"
    share = float(np.mean(np.array(first) <= within))
    goals = [at_most(title, max(first), within, median=float(np.median(first)), share=share, early=early)]
    for error, time in SETTLING.items() if mass == max(DETECTION) else ():
        found = [settled(o, mass, s, error) for o, s in both]
        title = f"payload of {mass:g} kg: mass within {error:.0%} for good after, median [s]"
        share = float(np.mean(np.array(found) <= time))
        goals.append(at_most(title, float(np.median(found)), time, worst=max(found), share=share))
    return goals


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Payload steps and false alarms.")
    parser.add_argument("--seeds", type=int, default=10, help="motions with each payload")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--minutes", type=float, default=30.0, help="each motion without one")
    parser.add_argument("--motions", type=int, default=2, help="without one, of either kind")
    parser.add_argument("--processes", type=int, default=1, help="processes that share them")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    steps = [QUIET + 10.0 + 0.37 * (seed - seeds[0]) for seed in seeds]
    ends = [step + AFTER for step in steps]
    goals: list[Goal] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        quiet = {
            other: [
                pool.submit(watched, 1000 + seeds[0] + one, 0.0, 0.0, QUIET + 60.0 * arguments.minutes + 1.0, other)
                for one in range(arguments.motions)
            ]
            for other in (False, True)
        }
        for mass in DETECTION:
            goals += goals_of(mass, list(pool.map(watched, seeds, [mass] * len(steps), steps, ends)), steps)
        for other, runs in quiet.items():
            alarms = sum(len(run.result().detections) for run in runs)
            kind = "other motions than learned" if other else "the learned motion"
            goals.append(at_most(f"false alarms in {len(runs)} x {arguments.minutes:g} min of {kind}", alarms, 0))
    goals.append(at_most("update of 64 base parameters, 7 joints [s]", update_time(), 1e-3))
    times = moment_times()
    figures = {"mean": float(times.mean()), "99 %": float(np.quantile(times, 0.99))}
    title = "joint state at 1 kHz, all that follows from it, median [s]"
    goals.append(at_most(title, float(np.median(times)), 1e-3, **figures))
    print(table(goals))


if __name__ == "__main__":
    main()
