# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the payload that the wrist motion of the node `payload_identifier` determines, on an identified arm.

A simulated UR5 and Panda are identified from one 20 s motion of all joints with new noise every time, so that their
model is not true. Then friction changes by 10 % (one sigma, joint by joint), and a payload of random mass, center and
shape is identified from 30 s of a wrist motion that was designed for the configuration: once, as it does not depend on
the noise. Signals, filters and estimator are those of the node.

    python benchmarks/payload_flow.py --runs 20
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse
import time
from dataclasses import dataclass
from typing import NamedTuple

import arms
import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.consistency import convert_to_parameters
from robot_dyn_id.estimators import GeneralizedLeastSquares
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.declared import DeclaredPayload, compare_declared
from robot_dyn_id.loads.identification import PayloadOptions, estimate_payload
from robot_dyn_id.loads.payload import find_friction_columns, transform_parameters
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from robot_dyn_id.workflow.payload_motion import PayloadMotion, design_payload_motion

RATE, TRAINING_S, DURATION_S = 250.0, 20.0, 30.0
FRICTION_CHANGE = 0.1
SETTINGS = Settings(estimator=GeneralizedLeastSquares())


@dataclass(frozen=True)
class Case:
    """A robot, the link that carries the payload, a configuration, and the errors of its sensors.

    Attributes:
        link: link that carries the payload.
        position: configuration of the payload identification [rad].
        acceleration: limit of all joints [rad/s^2].
        effort: standard deviation of the efforts [N m].
        correlation_time: correlation time of a part of the effort noise of the same size [s].
    """

    link: str
    position: tuple[float, ...]
    acceleration: float
    effort: tuple[float, ...]
    correlation_time: float = 0.05


CASES = {
    "ur5": Case("tool0", (0.0, -1.57, 1.2, -1.0, -1.2, 0.3), 8.0, (1.0, 1.0, 0.7, 0.3, 0.3, 0.2)),
    "panda": Case("panda_hand", (0.0, -0.6, 0.0, -2.0, 0.3, 1.4, 0.5), 8.0, (0.3, 0.6, 0.4, 0.4, 0.1, 0.1, 0.05)),
}


class Run(NamedTuple):
    """Errors of mass [kg], center (3) [m] and central inertia (6) [kg m^2], their sigmas, and tests of declarations."""

    errors: Array
    sigmas: Array
    square: float
    mass: float
    true_accepted: bool
    wrong_accepted: bool


def random_body(rng: np.random.Generator) -> Array:
    """A brick of 0.5 to 3 kg with sides of 6 to 20 cm, 5 to 15 cm from the link and up to 4 cm off its axis."""
    mass, sides = rng.uniform(0.5, 3.0), rng.uniform(0.06, 0.2, 3)
    center = np.array([*rng.uniform(-0.04, 0.04, 2), rng.uniform(0.05, 0.15)])
    second = np.diag(sides**2) / 12.0 + np.outer(center, center)
    return convert_to_parameters(mass * np.block([[second, center[:, None]], [center[None], np.ones((1, 1))]]))


class Study:
    """A robot with its true parameters and the two motions."""

    def __init__(self, arm: str) -> None:
        """Design the motion on an arm that was identified once."""
        self.case = CASES[arm]
        self.regressor = arms.with_friction(arm)
        self.model = self.regressor.model
        self.parameters = arms.true_parameters(self.model)
        self.at = find_placement_of(self.model, self.case.link)
        self.training = draw_random_fourier(self.model, 1, period=10.0)
        identified = self.identify(0)
        began = time.perf_counter(), time.process_time()
        keys = {"period": 5.0, "periods": 8, "acceleration": {"all": self.case.acceleration}, "ground": False}
        demands = PayloadMotion(
            identified,
            self.model,
            self.case.link,
            np.array(self.case.position),
            (),
            0.5,
            DURATION_S,
            1.0,
            FRICTION_CHANGE,
            keys,
        )
        result, self.accuracy = design_payload_motion(demands)
        self.design_seconds = time.perf_counter() - began[0], time.process_time() - began[1]
        self.motion = result.trajectory

    def record(self, motion: Trajectory, duration: float, parameters: Array, seed: int) -> ArrayRecording:
        """Recording of a motion with white and correlated effort noise and noise of positions and velocities."""
        sensors = Sensors(np.array(self.case.effort), 2e-5, 1e-3, self.case.correlation_time)
        return simulate_recording(self.regressor, parameters, motion, sample_times(duration, RATE), sensors, seed)

    def identify(self, seed: int) -> ParameterSet:
        """The bare arm."""
        recording = self.record(self.training, TRAINING_S, self.parameters, seed)
        return identify([recording], [recording], self.model, SETTINGS, "benchmark").parameters

    def run(self, seed: int) -> Run:
        """An arm identified with new noise, and a payload on it after the friction has changed."""
        rng = np.random.default_rng(seed)
        arm, body = self.identify(1000 + seed), random_body(rng)
        loaded = self.parameters.copy()
        columns = find_friction_columns(self.regressor)
        loaded[columns] *= 1.0 + FRICTION_CHANGE * rng.standard_normal(int(columns.sum()))
        loaded[10 * self.at.body : 10 * self.at.body + 10] += transform_parameters(self.at) @ body
        recording = self.record(self.motion, DURATION_S, loaded, 2000 + seed)
        options = PayloadOptions(friction_change=FRICTION_CHANGE)
        estimate, _ = estimate_payload([recording], arm, self.case.link, SETTINGS, options)
        payload = estimate.payload()
        shown = np.array([payload.mass, *payload.center_of_mass, *_packed(payload.inertia)])
        wrong = estimate.values - body
        kept = ~estimate.unexcited
        covariance = estimate.covariance[np.ix_(kept, kept)]
        heavier = body * np.array([1.2, *(1.0,) * 9])
        tests = [
            compare_declared(estimate, DeclaredPayload(self.case.link, b, "mass and center of mass"))
            for b in (_part(body), _part(heavier))
        ]
        return Run(
            shown - _properties(body),
            payload.central_standard_deviations,
            float(wrong[kept] @ np.linalg.solve(covariance, wrong[kept])) / kept.sum(),
            float(body[0]),
            tests[0].accepted,
            tests[1].accepted,
        )


def _part(body: Array) -> Array:
    return np.where(np.arange(10) < 4, body, 0.0)


def _packed(inertia: Array) -> Array:
    return inertia[(0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]


def _properties(body: Array) -> Array:
    from robot_dyn_id.dynamics.consistency import convert_to_central

    mass, center, inertia = convert_to_central(body)
    return np.array([mass, *center, *_packed(inertia)])


def report(arm: str, runs: int) -> list[Goal]:
    """Print the errors of a robot; returns the goals."""
    study = Study(arm)
    done = [study.run(seed) for seed in range(runs)]
    errors, sigmas = np.array([run.errors for run in done]), np.array([run.sigmas for run in done])
    masses = np.array([run.mass for run in done])
    known = np.isfinite(sigmas)
    share = [float((np.abs(errors) < k * sigmas)[known].mean()) for k in (2.0, 3.0)]
    z = np.sqrt((np.where(known, errors / sigmas, 0.0) ** 2).sum(axis=0) / known.sum(axis=0))
    rms = np.sqrt((errors**2).mean(axis=0))
    seconds, cpu = study.design_seconds
    relative = float(np.sqrt(((errors[:, 0] / masses) ** 2).mean()))
    center = 1e3 * np.sqrt((errors[:, 1:4] ** 2).sum(axis=1).mean())
    center_sigma = 1e3 * np.median(np.sqrt((sigmas[:, 1:4] ** 2).sum(axis=1)))
    moments, moments_sigma = rms[4:].mean(), np.median(sigmas[:, 4:], axis=0).mean()
    accepted = [np.mean([getattr(run, name) for run in done]) for name in ("true_accepted", "wrong_accepted")]
    print(f"{arm}: design {seconds:.1f} s ({cpu:.1f} s CPU); {study.accuracy.describe()}")
    print(f"  mass: rms error {relative:.2%}, {rms[0]:.4f} kg, sigma {np.median(sigmas[:, 0]):.4f} kg")
    print(f"  center: rms error {center:.2f} mm, sigma {center_sigma:.2f} mm")
    print(f"  inertia: rms error {moments:.5f} kg m^2, sigma {moments_sigma:.5f} kg m^2")
    print(f"  errors over sigma, rms: {np.array2string(z, precision=2)}")
    print(f"  within 2, 3 sigma: {share[0]:.3f} {share[1]:.3f}")
    print(f"  true mass and center accepted: {accepted[0]:.2f}; 20 % more mass accepted: {accepted[1]:.2f}", flush=True)
    return [
        at_most(f"{arm}: mass, rms relative", relative, 0.05),
        at_least(f"{arm}: truth within 2 sigma", share[0], 0.88),
        at_least(f"{arm}: truth within 3 sigma", share[1], 0.97),
        at_most(f"{arm}: design, CPU time [s]", cpu, 20.0),
    ]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Payloads from a wrist motion on a noisily identified arm.")
    parser.add_argument("--runs", type=int, default=20, help="draws of noise, friction and payload")
    parser.add_argument("--arms", nargs="+", default=list(CASES), choices=list(CASES))
    arguments = parser.parse_args()
    goals = [goal for arm in arguments.arms for goal in report(arm, arguments.runs)]
    print(f"\n{table(goals)}")


if __name__ == "__main__":
    main()
