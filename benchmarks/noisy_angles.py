# SPDX-License-Identifier: Apache-2.0
"""Bias by the encoders of a robot's joints: least squares, instrumental variables and output error.

Two axes in a vertical plane under a PD law at 1 kHz that reads encoders of 12 bits (2 pi / 4096 rad) and makes
velocities of their readings by differences behind a first-order low-pass at 50 Hz. Recorded at the same rate, 20 s:
readings, reference, and torques with white noise of 0.1 N m. The loop is written out here, on `Plant` only, tick by
tick. Every run has another noise and another start of the motion by less than an encoder step. Columns and torques pass
the zero-phase low-pass of fourth order that the table names, the positions before that the same one; velocities are
derivatives of them. Bias is the root mean square over the base parameters of |mean over the runs - truth| / |truth|.

    python benchmarks/noisy_angles.py --runs 8
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, one_thread, table

if __name__ == "__main__":
    one_thread()

import argparse
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators import (
    ClosedLoopOutputError,
    Estimate,
    Estimator,
    Instrumental,
    OutputError,
    WeightedLeastSquares,
)
from robot_dyn_id.excitation import FourierSeries, draw_random_fourier
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.closed_loop import ControllerModel, quantize
from robot_dyn_id.simulation.plant import Plant

LINK = """<link name="{0}"><inertial><origin xyz="{1} 0.02 0.05"/><mass value="{2}"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="{3}" iyz="0.002" izz="{3}"/></inertial></link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3} 0 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="3" effort="200"/></joint>"""
URDF = "".join(
    [
        '<robot name="two_axes"><link name="base"/>',
        LINK.format("upper", 0.25, 6.0, 0.15),
        JOINT.format("shoulder", "base", "upper", 0.0),
        LINK.format("fore", 0.2, 3.0, 0.05),
        JOINT.format("elbow", "upper", "fore", 0.5),
        "</robot>",
    ]
)

RATE, DURATION, NOISE = 1000.0, 20.0, 0.1
RESOLUTION = 2.0 * np.pi / 4096
VELOCITY_CUTOFF = 50.0
PROPORTIONAL, DERIVATIVE = np.array([600.0, 150.0]), np.array([40.0, 10.0])
FRICTION = {"fv": (2.0, 0.8), "fc": (3.0, 1.2), "off": (0.5, -0.3)}
CUTOFFS = (4.0, 5.0, 7.0, 10.0, 20.0, 50.0)
CUTOFFS_WITH_GOALS = (10.0, 20.0, 50.0)
"""Cut-off frequencies of the simulating estimators [Hz]; least squares may use the best of all."""
INTERVALS = (0.90, 0.98)


@dataclass(frozen=True)
class Robot:
    """The robot with its parameters of all columns, and the base parameters."""

    regressor: Regressor
    parameters: Array
    base: BaseParameters

    @property
    def truth(self) -> Array:
        """Base parameters, shape (p,)."""
        return self.base.mapping @ self.parameters


@cache
def robot() -> Robot:
    """Masses of the URDF made heavier by 15 %, and friction."""
    model = RobotModel.from_urdf(URDF)
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(), Offset())))
    parameters = np.concatenate([1.15 * model.inertial_parameters, *FRICTION.values()])
    return Robot(regressor, parameters, compute_base_parameters(regressor))


@cache
def motion() -> FourierSeries:
    """Reference motion of the robot."""
    return draw_random_fourier(robot().regressor.model, 3)


def recording(seed: int) -> ArrayRecording:
    """One run of the loop."""
    rng, known = np.random.default_rng(seed), robot()
    count = round(RATE * DURATION)
    t = np.arange(count) / RATE
    q_wanted, dq_wanted, _, _ = motion().evaluate(t)
    shift = RESOLUTION * rng.uniform(-0.5, 0.5, 2)
    q_wanted = q_wanted + shift[:, None]
    plant = Plant(Dynamics(known.regressor, np.arange(len(known.parameters)), known.parameters), q_wanted[:, 0])
    share = 1.0 - np.exp(-2.0 * np.pi * VELOCITY_CUTOFF / RATE)
    speed, before, effort = np.zeros(2), quantize(plant.q, RESOLUTION), None
    q, tau = np.empty((2, count)), np.empty((2, count))
    for k in range(count):
        reading = quantize(plant.q, RESOLUTION)
        speed = speed + share * ((reading - before) * RATE - speed)
        wanted = PROPORTIONAL * (q_wanted[:, k] - reading) + DERIVATIVE * (dq_wanted[:, k] - speed)
        q[:, k], tau[:, k] = reading, wanted if effort is None else 0.5 * (wanted + effort)
        before, effort = reading, wanted
        plant.advance(wanted, 1.0 / RATE)
    tau += NOISE * rng.normal(size=tau.shape)
    return ArrayRecording("loop", known.regressor.model.joint_names, Chunk(t, q.T, tau=tau.T, reference=q_wanted.T))


def estimators() -> tuple[Estimator, ...]:
    """Least squares, and those that know the loop."""
    names = robot().regressor.model.joint_names
    proportional, derivative = (tuple(zip(names, g.tolist(), strict=True)) for g in (PROPORTIONAL, DERIVATIVE))
    loop = ControllerModel(
        "pd", proportional, derivative, RATE, (("all", RESOLUTION),), velocity_cutoff=VELOCITY_CUTOFF
    )
    return WeightedLeastSquares(), Instrumental(loop), OutputError(loop), ClosedLoopOutputError(loop)


def estimate(recorded: ArrayRecording, estimator: Estimator, cutoff: float) -> Estimate:
    """One estimate behind one filter."""
    known, plan = robot(), SignalPlan.from_low_pass(RATE, LowPass(cutoff), False)
    trials = FilteredTrials([recorded], recorded.joint_names, {}, plan)
    prior = make_nominal_prior(known.regressor.model, known.base.mapping)
    return estimator.fit(trials.problem(known.regressor, known.base.independent, prior))


@dataclass(frozen=True)
class Figures:
    """Result of one estimator with one filter: bias, fraction of 95 % intervals that hold the truth, CPU time [s]."""

    bias: float
    held: float
    seconds: float


def measured(runs: int) -> dict[str, dict[float, Figures]]:
    """Figures by name and cut-off."""
    recorded = [recording(seed) for seed in range(runs)]
    truth = robot().truth
    figures: dict[str, dict[float, Figures]] = {}
    for estimator in estimators():
        for cutoff in CUTOFFS if isinstance(estimator, WeightedLeastSquares) else CUTOFFS_WITH_GOALS:
            start = time.process_time()
            found = [estimate(one, estimator, cutoff) for one in recorded]
            seconds = (time.process_time() - start) / runs
            errors = np.array([one.values - truth for one in found])
            held = np.mean(np.abs(errors) <= 1.96 * np.array([one.standard_deviations for one in found]))
            bias = float(np.sqrt(np.mean((errors.mean(axis=0) / truth) ** 2)))
            figures.setdefault(estimator.name, {})[cutoff] = Figures(bias, float(held), seconds)
            print(
                f"{estimator.name:<24} {cutoff:>4g} Hz  bias {bias:.3%}  held {held:.2f}  {seconds:.2f} s", flush=True
            )
    return figures


def goals(figures: dict[str, dict[float, Figures]]) -> list[Goal]:
    """Goals of the comparison."""
    plain, instrumental, output, positions = (figures[e.name] for e in estimators())
    luckiest = min(plain.values(), key=lambda f: f.bias).bias
    wanted = []
    for cutoff, most in ((10.0, 0.6), (50.0, 0.45)):
        ratio = instrumental[cutoff].bias / plain[cutoff].bias
        wanted.append(at_most(f"instrumental, {cutoff:g} Hz: bias over that of weighted", ratio, most))
    for cutoff in (10.0, 50.0):
        ratio = output[cutoff].bias / plain[cutoff].bias
        wanted.append(at_most(f"output_error, {cutoff:g} Hz: bias over that of weighted", ratio, 0.25))
        ratio = output[cutoff].bias / luckiest
        wanted.append(at_most(f"output_error, {cutoff:g} Hz: over weighted at its luckiest filter", ratio, 0.5))
    simulating = {"instrumental": instrumental, "output_error": output, ClosedLoopOutputError.name: positions}
    for name, by_cutoff in simulating.items():
        for cutoff in (10.0, 50.0):
            held = by_cutoff[cutoff].held
            wanted.append(at_least(f"{name}, {cutoff:g} Hz: 95 % intervals that hold the truth", held, INTERVALS[0]))
    return wanted


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Bias by encoders.")
    parser.add_argument("--runs", type=int, default=8, help="recordings")
    print(table(goals(measured(parser.parse_args().runs))))


if __name__ == "__main__":
    main()
