"""Changes of a robot that works: how soon a payload is seen and weighed, false alarms, and what a moment costs.

A 7-axis arm, identified from 60 s with the same noise (autoregressive, 0.1 s), repeats a random period;
60 s are learned from.

    python benchmarks/online.py --seeds 10 --minutes 30 --processes 2
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

from robot_dyn_id import __version__
from robot_dyn_id.consistency import parameters_of
from robot_dyn_id.dataset import Array
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.monitoring import ResidualMonitor
from robot_dyn_id.online import RecursiveLeastSquares
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.pipeline import identify
from robot_dyn_id.regressor import Motion
from robot_dyn_id.settings import Settings
from robot_dyn_id.simulation import Sensors, coloured_noise, simulated_recording

ARM, RATE, CUTOFF, CORRELATION, QUIET = "panda", 200.0, 10.0, 0.1, 60.0
SENSORS = Sensors(NOISE, correlation_time=CORRELATION)
CENTRE, RADIUS = np.array([0.02, 0.01, 0.2]), 0.04
"""Of the payload: centre of mass in the frame of the last joint, radius of gyration about it [m]."""
DETECTION = {2.0: 0.2, 0.5: 0.5, 0.2: 1.0}
"""Payloads [kg], and the time within which they are to be seen [s]."""
SETTLING = {0.05: 2.0, 0.02: 3.0}
"""Relative errors of a 2 kg payload, and the time within which they are to be reached for good [s]."""
AFTER = 6.0
"""Time that is looked at after the step [s]."""


@cache
def model() -> ParameterSet:
    """What an equally noisy recording tells of the arm."""
    regressor = arms.with_friction(ARM)
    parameters = arms.true_parameters(regressor.model)
    trials = [
        simulated_recording(regressor, parameters, random_fourier(regressor.model, s), 60.0, 100.0, SENSORS, s)
        for s in (1, 2)
    ]
    return identify(trials[:1], trials[1:], regressor.model, Settings(), __version__).parameters


def payload(mass: float) -> Array:
    """Its standard parameters in the frame of the last joint, shape (10,)."""
    moments = RADIUS**2 / 3.0 * np.eye(3) + np.outer(CENTRE, CENTRE)
    return parameters_of(mass * np.block([[moments, CENTRE[:, None]], [CENTRE[None, :], np.ones((1, 1))]]))


class Outcome(NamedTuple):
    """Of one motion: when something was detected [s], and masses that were told then, with the times, shape (k, 2)."""

    detections: tuple[float, ...]
    masses: Array


def watched(seed: int, mass: float, step: float, duration: float) -> Outcome:
    """A motion of `duration` during which a payload is taken up at `step` [s]."""
    regressor, rng = arms.with_friction(ARM), np.random.default_rng(seed)
    motion = random_fourier(regressor.model, 100 + seed)
    t = np.arange(round(duration * RATE)) / RATE
    q, dq, ddq, _ = motion.evaluate(t % motion.period)
    states = Motion(q, dq, ddq)
    truth = arms.true_parameters(regressor.model)
    tau = regressor.torque(states, truth) + coloured_noise(NOISE, len(t), RATE, CORRELATION, rng)
    loaded, late = np.zeros(len(truth)), t >= step
    last = 10 * (len(regressor.model.body_names) - 1)
    loaded[last : last + 10] = payload(mass)
    tau[:, late] += regressor.torque(states.take(late), loaded)
    shown_q = q + SENSORS.position * rng.normal(size=q.shape)
    shown_dq = dq + (SENSORS.velocity or 0.0) * rng.normal(size=q.shape)
    monitor = ResidualMonitor(model(), CUTOFF, 10.0, quiet=QUIET)
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
    t, told = outcome.masses.T
    outside = t[(np.abs(told - mass) > error * mass)]
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


def moment_time(samples: int = 4000) -> float:
    """CPU time of a joint state at 1 kHz through filter, prediction, residual and watch, median [s]."""
    motion = random_fourier(arms.model(ARM), 3)
    t = np.arange(samples) * 1e-3
    q, dq, _, _ = motion.evaluate(t)
    monitor, times = ResidualMonitor(model(), CUTOFF, 10.0, quiet=1.0), []
    for k in range(samples):
        start = process_time()
        if monitor.add(t[k], q[:, k], dq[:, k], NOISE * np.sin(t[k])):
            monitor.residual()
        times.append(process_time() - start)
    return float(np.median(times[samples // 2 :]))


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Payload steps and false alarms.")
    parser.add_argument("--seeds", type=int, default=10, help="motions with each payload")
    parser.add_argument("--minutes", type=float, default=30.0, help="motion without one")
    parser.add_argument("--processes", type=int, default=1, help="processes that share them")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    steps = [QUIET + 10.0 + 0.37 * seed for seed in seeds]
    ends = [step + AFTER for step in steps]
    goals: list[Goal] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        quiet = pool.submit(watched, 1000, 0.0, 0.0, QUIET + 60.0 * arguments.minutes + 1.0)
        for mass, within in DETECTION.items():
            outcomes = list(pool.map(watched, seeds, [mass] * len(steps), steps, ends))
            both = list(zip(outcomes, steps, strict=True))
            first = [next((d for d in o.detections if d >= s), np.inf) - s for o, s in both]
            early = sum(any(d < s for d in o.detections) for o, s in both)
            title = f"payload of {mass:g} kg: seen after, worst of {len(steps)} motions [s]"
            share = float(np.mean(np.array(first) <= within))
            goals.append(at_most(title, max(first), within, median=float(np.median(first)), share=share, early=early))
            for error, time in SETTLING.items():
                found = [settled(o, mass, s, error) for o, s in both]
                title = f"payload of {mass:g} kg: mass within {error:.0%} for good after, median [s]"
                share = float(np.mean(np.array(found) <= time))
                figures = {"worst": max(found), "share": share}
                if mass == max(DETECTION):
                    goals.append(at_most(title, float(np.median(found)), time, **figures))
        alarms = len(quiet.result().detections)
        goals.append(at_most(f"false alarms in {arguments.minutes:g} min", alarms, 0))
    goals.append(at_most("update of 64 base parameters, 7 joints [s]", update_time(), 1e-3))
    goals.append(at_most("joint state at 1 kHz, all that follows from it, median [s]", moment_time(), 1e-3))
    print(table(goals))


if __name__ == "__main__":
    main()
