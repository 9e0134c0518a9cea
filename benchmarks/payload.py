# SPDX-License-Identifier: Apache-2.0
"""Accuracy of a payload on an arm that was itself identified from noisy data.

A simulated Panda runs one 10 s D-optimal motion twice, bare and with 1, 2 and 5 kg on its hand, with new noise every
time: white, or pieces of a measured arm's residuals (of the folder that ROBOT_DYN_ID_DATA names, else left out). The
arm comes from the bare run alone. Signals, filters and estimator are those of `robot-dyn-id payload`.

    ROBOT_DYN_ID_DATA=<measured recordings> python benchmarks/payload.py --runs 40 --processes 2
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, skipped, table

if __name__ == "__main__":
    one_thread()

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import arms
import numpy as np
from uncertainty import measured_residuals, sensors_of

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.consistency import convert_to_central, convert_to_parameters
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators import GeneralizedLeastSquares
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import make_design_task
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.assembly import replace_covariance, replace_values
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.payload import estimate_on_arm, transform_parameters
from robot_dyn_id.model.kinematics import Placement, find_placement_of
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.survey import survey
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, plan_signals
from robot_dyn_id.simulation.sensors import sample_times, simulate_recording

ARM, LINK, RATE, DURATION = "panda", "panda_hand", 100.0, 20.0
MASSES, CENTER, SIDES = (1.0, 2.0, 5.0), np.array([0.03, -0.02, 0.12]), np.array([0.10, 0.15, 0.20])
KINDS = ("white", "measured")
LIMITS = {
    ("white", 1.0): (0.004, 1.5),
    ("white", 2.0): (0.002, 0.8),
    ("white", 5.0): (0.001, 0.4),
    ("measured", 1.0): (0.010, 3.0),
    ("measured", 2.0): (0.005, 1.5),
    ("measured", 5.0): (0.002, 0.8),
}
"""Root mean square of the mass's error as a share of it, and of the center's [mm]."""
TWO, THREE = (0.85, 0.99), 0.95


@dataclass(frozen=True)
class Twice:
    """A motion from rest to rest, again and again."""

    once: Trajectory

    def evaluate(self, t: Array) -> tuple[Array, Array, Array, Array]:
        """As `Trajectory.evaluate`."""
        return self.once.evaluate(np.mod(t, DURATION / 2))


class Study(NamedTuple):
    """Common data of all runs: robot, its parameters, motion, plan of the signals, a bare arm, where the payload is."""

    regressor: Regressor
    parameters: Array
    motion: Twice
    plan: SignalPlan
    arm: ParameterSet
    at: Placement

    def record(self, kind: str, payload: Array, seed: int) -> ArrayRecording:
        """One recording with a body on the hand."""
        parameters = self.parameters.copy()
        parameters[10 * self.at.body : 10 * self.at.body + 10] += transform_parameters(self.at) @ payload
        return simulate_recording(
            self.regressor, parameters, self.motion, sample_times(DURATION, RATE), sensors_of(kind), seed
        )

    def problem(self, recording: ArrayRecording) -> LinearProblem:
        """Its rows."""
        trials = FilteredTrials([recording], recording.joint_names, {}, self.plan)
        return trials.problem(self.regressor, self.arm.base.independent)


def brick(mass: float) -> Array:
    """The payload."""
    second = np.diag(SIDES**2) / 12.0 + np.outer(CENTER, CENTER)
    return convert_to_parameters(mass * np.block([[second, CENTER[:, None]], [CENTER[None], np.ones((1, 1))]]))


@cache
def study() -> Study:
    """Design the motion, and identify the bare arm once for all that does not depend on the noise."""
    regressor = arms.with_friction(ARM)
    acceleration = dict(zip(regressor.model.joint_names, (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0), strict=True))
    settings = DesignSettings(
        acceleration=acceleration, objective="d_optimal", clearance=0.0, velocity_scale=0.95, effort_scale=1.0
    )
    motion = Twice(
        design(make_design_task(settings, regressor.model, regressor).problem, OPTIMIZERS["gradient"]).excitation
    )
    parameters = arms.true_parameters(regressor.model)
    first = simulate_recording(regressor, parameters, motion, sample_times(DURATION, RATE), sensors_of("white"), 0)
    found = identify([first], [first], regressor.model, Settings(estimator=GeneralizedLeastSquares()), "benchmark")
    plan = plan_signals(
        survey([first], first.joint_names, {}), SignalSettings(found.parameters.processing.cutoff_frequency)
    )
    at = find_placement_of(regressor.model, LINK)
    return Study(Regressor.from_parameters(found.parameters), parameters, motion, plan, found.parameters, at)


class Run(NamedTuple):
    """Errors of mass [kg], center (3) [m] and central inertia (6) [kg m^2], their sigmas, and the joint score."""

    errors: Array
    sigmas: Array
    frozen: Array  # sigmas of who takes the arm for certain
    square: float


def principal_properties(parameters: Array) -> Array:
    """Mass, center and central inertia of a body, shape (10,)."""
    mass, center, inertia = convert_to_central(parameters)
    return np.array([mass, *center, *inertia[(0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]])


def one(kind: str, seed: int) -> list[Run]:
    """One bare run, and one with each payload on top of it."""
    known = study()
    bare = GeneralizedLeastSquares().fit(known.problem(known.record(kind, np.zeros(10), seed)))
    arm = replace_covariance(replace_values(known.arm, bare.values), bare.covariance)
    certain = replace_covariance(arm, np.zeros_like(arm.estimate.covariance))
    runs = []
    for number, mass in enumerate(MASSES):
        recording = known.record(kind, brick(mass), 10_000 * (number + 1) + seed)
        estimates = (estimate_on_arm(a, known.problem(recording), LINK, known.at) for a in (arm, certain))
        payload, other = (estimate.payload() for estimate in estimates)
        wrong = payload.unconstrained - brick(mass)
        runs.append(
            Run(
                principal_properties(payload.parameters) - principal_properties(brick(mass)),
                payload.central_standard_deviations,
                other.central_standard_deviations,
                float(wrong @ np.linalg.solve(payload.covariance, wrong)),
            )
        )
    return runs


def rows(kind: str, results: list[list[Run]]) -> Iterator[tuple[str, list[Goal]]]:
    """A line and the goals of each mass."""
    for number, mass in enumerate(MASSES):
        runs = [result[number] for result in results]
        errors, sigmas, frozen = (np.array([getattr(run, name) for run in runs]) for name in Run._fields[:3])
        of_mass = float(np.sqrt((errors[:, 0] ** 2).mean()) / mass)
        of_center = float(1e3 * np.sqrt((errors[:, 1:4] ** 2).sum(axis=1).mean()))
        inside = [float((np.abs(errors) < count * sigmas).mean()) for count in (2, 3)]
        z, z_frozen = (float(np.sqrt(((errors / s)[:, :4] ** 2).mean())) for s in (sigmas, frozen))
        name, limits = f"payload {mass:g} kg, {kind} noise", LIMITS[kind, mass]
        line = (
            f"{name:<32} mass {of_mass:.3%} center {of_center:.2f} mm, z {z:.2f} (arm taken for certain "
            f"{z_frozen:.2f}), within 2, 3 sigma {inside[0]:.3f} {inside[1]:.3f}, score of 10: "
            f"{np.mean([run.square for run in runs]):.1f}"
        )
        yield (
            line,
            [
                at_most(f"{name}: mass, rms", of_mass, limits[0]),
                at_most(f"{name}: center of mass, rms [mm]", of_center, limits[1]),
                at_least(f"{name}: truth within 2 sigma", inside[0], TWO[0]),
                at_most(f"{name}: and not too often", inside[0], TWO[1]),
                at_least(f"{name}: truth within 3 sigma", inside[1], THREE),
            ],
        )


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Payloads on a noisily identified arm.")
    parser.add_argument("--runs", type=int, default=40, help="seeds of each kind of noise")
    parser.add_argument("--processes", type=int, default=1, help="processes that share them")
    arguments = parser.parse_args()
    goals = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for kind in KINDS:
            if kind == "measured" and isinstance(why := measured_residuals(), str):
                goals.append(skipped("payload, measured noise", 0.0, why))
                continue
            results = list(pool.map(one, [kind] * arguments.runs, range(1, arguments.runs + 1), chunksize=5))
            for line, limits in rows(kind, results):
                print(line, flush=True)
                goals += limits
    print(f"\n{table(goals)}")


if __name__ == "__main__":
    main()
