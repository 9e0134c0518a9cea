# SPDX-License-Identifier: Apache-2.0
"""Do the 95 % intervals of the consistent estimator hold the truth, by kind of parameter?

A simulated arm whose bodies are 5 to 15 % heavier than its URDF's is recorded many times along one motion, with white
noise, with noise correlated over 0.1 and 0.5 s, and with resampled residuals of a measured arm (of the folder that
ROBOT_DYN_ID_DATA names, else left out). `consistent` fits it with more terms than it has: rotor inertia, viscous,
double Coulomb, six Dahl elements and saturating viscous friction, most of which are truly zero.

    python benchmarks/consistent_intervals.py --runs 100 --processes 2
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, skipped, table

if __name__ == "__main__":
    one_thread()

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import arms
import numpy as np
from uncertainty import KINDS, measured_residuals, sensors_of

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.prior import nominal_prior
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.excitation import FourierSeries, random_fourier
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulated_recording

ARM, RATE, DURATION, MOTION = "panda", 100.0, 60.0, 1
FITTED = ("rotor_inertia", "offset", "viscous", "double_coulomb", "dahl", "saturating_viscous")
TRUE = {"Ir": 0.1, "off": 0.2, "fv": 2.0, "fcb": 1.0, "fdc": 1.0, "fde": 0.8}
"""True parameters of the first joint's terms by symbol; others are zero, and later joints have less."""
NORMAL = 1.96
LOWEST, HIGHEST = 0.90, 0.98


@dataclass(frozen=True)
class Study:
    """Common data of all runs.

    Attributes:
        regressor: robot and the terms that are fitted.
        base: base parameters.
        parameters: true values of all columns.
        motion: motion that is recorded.
        plan: signal processing.
    """

    regressor: Regressor
    base: BaseParameters
    parameters: Array
    motion: FourierSeries
    plan: SignalPlan

    @property
    def truth(self) -> Array:
        """True base parameters."""
        return np.asarray(self.base.mapping @ self.parameters)

    @property
    def kinds(self) -> Array:
        """Kind of each base parameter: `inertial`, or the name of its term."""
        inertial = 10 * len(self.regressor.model.body_names)
        columns = self.regressor.term_columns
        own = [
            columns[place - inertial].term.name if place >= inertial else "inertial" for place in self.base.independent
        ]
        return np.array(own)


@cache
def study() -> Study:
    """An arm with known friction, and the plan of its recordings."""
    robot = arms.model(ARM)
    regressor = Regressor(robot, terms_on_joints(robot, [TERMS[name]() for name in FITTED]))
    joints = list(robot.body_names)
    size = np.linspace(1.0, 0.2, len(joints))
    terms = []
    for column in regressor.term_columns:
        symbol = column.term.symbols[column.index]
        terms.append(TRUE.get(symbol, 0.0) * size[joints.index(column.coordinate.name)])
    parameters = np.append(arms.true_parameters(robot)[: 10 * len(joints)], terms)
    motion = random_fourier(robot, MOTION)
    times = sample_times(DURATION, RATE)
    first = simulated_recording(regressor, parameters, motion, times, Sensors(arms.NOISE), 0)
    plan = plan_signals(survey([first], first.joint_names, {}), SignalSettings())
    return Study(regressor, base_parameters(regressor), parameters, motion, plan)


class Run(NamedTuple):
    """Errors of one recording's estimate, standard deviations, and whether intervals hold the truth, shape (p,)."""

    errors: Array
    sigmas: Array
    inside: Array


def one(kind: str, seed: int) -> Run:
    """One recording and its estimate."""
    known = study()
    times = sample_times(DURATION, RATE)
    recording = simulated_recording(known.regressor, known.parameters, known.motion, times, sensors_of(kind), seed)
    trials = FilteredTrials([recording], recording.joint_names, {}, known.plan)
    prior = nominal_prior(known.regressor.model, known.base.mapping)
    estimate = Consistent().fit(trials.problem(known.regressor, known.base.independent, prior))
    assert estimate.intervals is not None
    low, high = estimate.intervals.T
    slack = 1e-9 * (high - low)
    inside = (low - slack <= known.truth) & (known.truth <= high + slack)
    return Run(estimate.values - known.truth, estimate.standard_deviations, inside)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of the consistent estimator.")
    parser.add_argument("--runs", type=int, default=100, help="recordings of each kind of noise")
    parser.add_argument("--processes", type=int, default=1, help="processes that share them")
    arguments = parser.parse_args()
    known = study()
    print(f"{ARM}, {len(known.truth)} base parameters, {DURATION:g} s at {RATE:g} Hz, {arguments.runs} runs each\n")
    form = "{:<12} {:<19} {:>6} {:>10} {:>10} {:>14}"
    print(form.format("noise", "kind", "count", "intervals", "1.96 sigma", "error / sigma"))
    goals: list[Goal] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for noise in KINDS:
            if noise == "measured" and isinstance(measured_residuals(), str):
                goals.append(skipped(f"{noise} noise", LOWEST, str(measured_residuals())))
                continue
            runs = list(pool.map(one, [noise] * arguments.runs, range(1, arguments.runs + 1), chunksize=5))
            errors, sigmas, inside = (np.array(values) for values in zip(*runs, strict=True))
            for kind in dict.fromkeys(known.kinds.tolist()):
                own = known.kinds == kind
                held = float(inside[:, own].mean())
                normal = float((np.abs(errors[:, own]) <= NORMAL * sigmas[:, own]).mean())
                ratio = float(np.sqrt(np.mean((errors[:, own] / sigmas[:, own]) ** 2)))
                print(form.format(noise, kind, int(own.sum()), f"{held:.3f}", f"{normal:.3f}", f"{ratio:.2f}"))
                title = f"{noise} noise, {kind}: 95 % intervals that hold the truth"
                goals += [at_least(title, held, LOWEST), at_most(f"{title}, and not too often", held, HIGHEST)]
    print(f"\n{table(goals)}")


if __name__ == "__main__":
    main()
