# SPDX-License-Identifier: Apache-2.0
"""Comparison of estimators on the space manipulator: true robots, their data, and the result of each estimator."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.prior import Prior, inertial_scales, term_scales
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, joint_coordinates
from robot_dyn_id.dynamics.terms import ImprovedStribeck, RotorInertia, Spring, Term
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators import (
    Estimate,
    Estimator,
    Genetic,
    LevenbergMarquardt,
    MaximumAPosteriori,
    MaximumAPosterioriConstants,
    OrdinaryLeastSquares,
    ParticleSwarm,
    Separable,
    SwarmThenMarquardt,
)
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.papers.figures import Extent
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.progress import Progress

TABLE_1 = {
    "Jm": (4.9695, 7.2326, 2.0867, 1e-6, 3.7425, 1.5),
    "k1": (0.02258, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6),
    "fc": (14.8791, 12.0478, 15.5775, 4.0419, 4.5851, 4.2),
    "fb": (20.1409, 12.3278, 18.3598, 6.0389, 7.3202, 6.0),
    "kv1": (19.7469, 37.8161, 14.1530, 7.3522, 5.3967, 5.0),
    "kv2": (0.0574, 0.4232, -0.3233, 0.7128, 0.2969, 0.20),
    "kv3": (-0.1671, -0.1859, -0.0090, -0.0300, 0.2570, 0.05),
    "vb": (1e-3, 1e-3, 0.0055, 1e-3, 0.0011, 0.0050),
}
"""Friction, rotors and springs of the paper's Table 1; its column of joint 6 is missing, that one is chosen."""

VELOCITIES = (0.05, 0.06, 0.04, 0.05, 0.08, 0.06)
"""Stribeck velocities of the comparison [rad/s]: those of the table lie below what 100 Hz shows."""

NOISE = np.array([3.9462, 5.0670, 3.2432, 1.4322, 1.0583, 1.1699])
"""Noise of the simulated torques: the RMSE of the paper's Table 2 [N m]."""

RATE = 100.0
"""Sample rate [Hz]."""

LEVELS = (1.0, 0.1)
"""Levels of the noise, as fractions of the paper's RMSE."""

RIGID, FRICTION, LEAST_RISE = 0.2, 0.3, 1.05
"""Largest relative deviations of a true robot from the nominal one (rigid, friction), and its smallest fb / fc."""


ZERO = 1e-3
"""Prior uncertainty of a parameter that is zero in the table, as a fraction of the size of its body."""


def regressor_of(model: RobotModel, velocities: Array) -> Regressor:
    """Bodies, rotors, springs and improved Stribeck friction of every joint."""
    joints = joint_coordinates(model)
    terms: list[tuple[object, Term]] = [(c, kind()) for kind in (RotorInertia, Spring) for c in joints]
    terms += [(c, ImprovedStribeck(float(v))) for c, v in zip(joints, velocities, strict=True)]
    return Regressor(model, tuple(terms))  # type: ignore[arg-type]


def parameters(model: RobotModel, rng: np.random.Generator | None = None) -> tuple[Array, Array]:
    """All parameters, and the Stribeck velocities; nominal without random numbers."""
    rigid, inertias = model.inertial_parameters, np.array([TABLE_1["Jm"], TABLE_1["k1"]])
    rows, velocities = np.array([TABLE_1[name] for name in ("fc", "fb", "kv1", "kv2", "kv3")]), np.array(VELOCITIES)
    if rng is not None:
        rigid, inertias = (x * (1.0 + rng.uniform(-RIGID, RIGID, x.shape)) for x in (rigid, inertias))
        rows, velocities = (x * (1.0 + rng.uniform(-FRICTION, FRICTION, x.shape)) for x in (rows, velocities))
        rows[1] = np.maximum(rows[1], LEAST_RISE * rows[0])
    rows[1] -= rows[0]
    return np.concatenate([rigid, inertias.ravel(), rows.T.ravel()]), velocities


def states(motion: Trajectory, rate: float = RATE) -> Motion:
    """Samples of a whole motion."""
    return Motion(*motion.evaluate(np.arange(0.0, motion.duration, 1.0 / rate))[:3])


@dataclass(frozen=True)
class Outcome:
    """Result of one estimator on one trial.

    Attributes:
        estimate: None where it does not converge; the figures are not numbers then.
        cost: half of the sum of squared residuals, all rows alike.
        error: RMS error of the noise-free torque along the other motion over all joints [N m].
        misfit: RMSE of the measured torque along it over the noise, per joint, shape (6,).
        correlation: correlation of measured and predicted torque along it, shape (6,).
        seconds: CPU time [s].
        predicted: predicted torque along it [N m], shape (6, N).
    """

    estimate: Estimate | None
    cost: float
    error: float
    misfit: Array
    correlation: Array
    seconds: float
    predicted: Array


@dataclass(frozen=True)
class NoisyTrial:
    """One true robot and its noisy data; the problem has nominal Stribeck velocities and a nominal prior.

    Attributes:
        regressor: true robot and terms.
        truth: true parameters of all columns, shape (c,).
        problem: identification problem with nominal Stribeck velocities.
        base: base parameters of the problem.
        motion: recorded motion.
        torque: torque along the recorded motion with noise [N m], shape (6, N).
        other: motion of the prediction.
        clean: torque along the other motion [N m], shape (6, N).
        measured: torque along the other motion with noise [N m], shape (6, N).
        noise: standard deviation of the noise of each joint [N m], shape (6,).
    """

    regressor: Regressor
    truth: Array
    problem: UnfilteredProblem
    base: BaseParameters
    motion: Motion
    torque: Array
    other: Motion
    clean: Array
    measured: Array
    noise: Array

    @classmethod
    def from_seed(
        cls,
        seed: int,
        level: float,
        motion: Motion,
        other: Motion,
        gravity: tuple[float, float, float] = STANDARD_GRAVITY,
    ) -> NoisyTrial:
        """Draw the robot and its noise; the same robot for any level of the noise."""
        model, rng = model_of("space6r", gravity), np.random.default_rng(seed)
        truth, velocities = parameters(model, rng)
        regressor, start = regressor_of(model, velocities), regressor_of(model, np.array(VELOCITIES))
        base, noise = base_parameters(start), level * NOISE
        clean = regressor.torque(other, truth)
        torque = regressor.torque(motion, truth)
        torque += noise[:, None] * rng.normal(size=torque.shape)
        problem = UnfilteredProblem.from_samples(
            start, base.independent, motion, torque, RATE, prior_of(model, base.mapping)
        )
        measured = clean + noise[:, None] * rng.normal(size=clean.shape)
        return cls(regressor, truth, problem, base, motion, torque, other, clean, measured, noise)

    def judged(self, predicted: Array, estimate: Estimate | None, cost: float, seconds: float) -> Outcome:
        """Evaluate a prediction along the other motion."""
        misfit = np.sqrt(np.mean((predicted - self.measured) ** 2, axis=1)) / self.noise
        correlation = [np.corrcoef(p, m)[0, 1] for p, m in zip(predicted, self.measured, strict=True)]
        error = float(np.sqrt(np.mean((predicted - self.clean) ** 2)))
        return Outcome(estimate, cost, error, misfit, np.array(correlation), seconds, predicted)

    def outcome(self, estimator: Estimator) -> Outcome:
        """Estimate, and predict along the other motion."""
        begun = time.process_time()
        try:
            found = estimator.fit(self.problem)
        except ConvergenceError:
            return self.judged(np.full_like(self.clean, np.nan), None, np.nan, time.process_time() - begun)
        seconds = time.process_time() - begun
        regressor = found.regressor or self.problem.regressor
        predicted = regressor.torque(self.other, found.values, self.base.independent)
        cost = 0.5 * float(np.sum(found.residual_rms**2)) * found.rows / len(found.residual_rms)
        return self.judged(predicted, found, cost, seconds)

    def judged_truth(self) -> Outcome:
        """Evaluate the true parameters."""
        return self.judged(self.clean, None, np.nan, 0.0)

    def with_prior_by_size(self) -> NoisyTrial:
        """The same data with the prior of a URDF."""
        prior = prior_of(self.regressor.model, self.base.mapping, by_size=True)
        return replace(self, problem=replace(self.problem, prior=prior))


def prior_of(model: RobotModel, mapping: Array, by_size: bool = False) -> Prior:
    """Prior of the nominal robot.

    Args:
        model: the robot.
        mapping: map from all parameters to the base parameters.
        by_size: whether an inertial parameter is as uncertain as the body is large (m, m r, m r^2), which is what is
            known of a robot by its URDF, instead of as large as its own value, which is how the true ones are drawn.
    """
    nominal, _ = parameters(model)
    inertial, terms = np.split(nominal, [len(model.inertial_parameters)])
    sizes = inertial_scales(model)
    own = sizes if by_size else np.maximum(np.abs(inertial), ZERO * sizes)
    friction = term_scales(regressor_of(model, np.array(VELOCITIES)), terms)
    return Prior("nominal robot", nominal, np.append(own, friction), mapping)


def contenders(full: bool) -> dict[str, Estimator]:
    """Estimators, all rows alike as in the paper but where weights are the point."""
    found: dict[str, Estimator] = {
        "ols, vb nominal": OrdinaryLeastSquares(),
        "lm": LevenbergMarquardt(weighted=False),
        "pso": ParticleSwarm(weighted=False),
        "pso_lm": SwarmThenMarquardt(weighted=False),
        "separable": Separable(weighted=False),
        "separable, weighted": Separable(),
        "map, vb nominal": MaximumAPosteriori(),
        "map_constants": MaximumAPosterioriConstants(),
    }
    if full:
        found["pso, 800 iterations"] = ParticleSwarm(weighted=False, iterations=800)
        found["ga"] = Genetic(weighted=False)
    return found


@dataclass(frozen=True)
class Trials:
    """Outcomes at one level of the noise.

    Attributes:
        level: level of the noise.
        trials: one trial for each seed.
        outcomes: results by method, one for each trial.
    """

    level: float
    trials: tuple[NoisyTrial, ...]
    outcomes: dict[str, tuple[Outcome, ...]]

    @classmethod
    def from_methods(cls, level: float, extent: Extent, motion: Motion, other: Motion, progress: Progress) -> Trials:
        """Run all methods on all seeds."""
        trials = tuple(NoisyTrial.from_seed(seed, level, motion, other) for seed in range(extent.slow_seeds))
        outcomes: dict[str, tuple[Outcome, ...]] = {}
        for name, estimator in contenders(extent.full).items():
            progress(f"noise x {level:g}: {name}")
            outcomes[name] = tuple(trial.outcome(estimator) for trial in trials)
        by_size = [trial.with_prior_by_size() for trial in trials]
        outcomes["map_constants, prior by size"] = tuple(
            trial.outcome(MaximumAPosterioriConstants()) for trial in by_size
        )
        outcomes["truth"] = tuple(trial.judged_truth() for trial in trials)
        return cls(level, trials, outcomes)

    def each(self, method: str, what: Callable[[Outcome], float]) -> Array:
        """A figure of every trial, shape (seeds,); NaN where the method did not converge."""
        return np.array([what(outcome) for outcome in self.outcomes[method]])

    def median(self, method: str, what: Callable[[Outcome], float]) -> float:
        """Median of a figure over the trials that converged."""
        return over_known(np.median, self.each(method, what))

    def ratio(self, method: str, peer: str, what: Callable[[Outcome], float], over: Callable[[Array], Any]) -> float:
        """Ratio of a figure of two methods, trial by trial, where both converged."""
        return over_known(over, self.each(method, what) / self.each(peer, what))


def over_known(over: Callable[[Array], Any], values: Array) -> float:
    """Statistic of the finite values; NaN if no value is finite."""
    known = values[np.isfinite(values)]
    return float(over(known)) if len(known) else np.nan


def error(outcome: Outcome) -> float:
    """Error of the noise-free torque."""
    return outcome.error


def seconds(outcome: Outcome) -> float:
    """CPU time [s], also without convergence."""
    return outcome.seconds


def cost(outcome: Outcome) -> float:
    """Half of the sum of squared residuals."""
    return outcome.cost
