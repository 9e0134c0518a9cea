# SPDX-License-Identifier: Apache-2.0
"""Comparison of estimators on the space manipulator: true robots, their data, and the result of each estimator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.prior import Prior, find_inertial_scales, find_term_scales
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, make_joint_coordinates
from robot_dyn_id.dynamics.terms import ImprovedStribeck, RotorInertia, Spring, Term
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators import (
    Estimate,
    Estimator,
    MaximumAPosteriori,
    MaximumAPosterioriConstants,
    OrdinaryLeastSquares,
    Separable,
)
from robot_dyn_id.estimators.constants.ga import run_generations
from robot_dyn_id.estimators.constants.pso import run_swarm
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.papers.figures import Spread
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r.published import (
    MAX_DAMPING,
    MAX_SWARMS,
    AllNumbers,
    Ended,
    convert_from_columns,
    convert_to_columns,
    run_kalman_filter,
    run_marquardt,
)
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.progress import Progress, Stage

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


def make_regressor_of(model: RobotModel, velocities: Array) -> Regressor:
    """Bodies, rotors, springs and improved Stribeck friction of every joint."""
    joints = make_joint_coordinates(model)
    terms: list[tuple[object, Term]] = [(c, kind()) for kind in (RotorInertia, Spring) for c in joints]
    terms += [(c, ImprovedStribeck(float(v))) for c, v in zip(joints, velocities, strict=True)]
    return Regressor(model, tuple(terms))  # type: ignore[arg-type]


def list_parameters(
    model: RobotModel, rng: np.random.Generator | None = None, nominal: tuple[float, ...] = VELOCITIES
) -> tuple[Array, Array]:
    """All parameters, and the Stribeck velocities around the nominal ones; nominal without random numbers."""
    rigid, inertias = model.inertial_parameters, np.array([TABLE_1["Jm"], TABLE_1["k1"]])
    rows, velocities = np.array([TABLE_1[name] for name in ("fc", "fb", "kv1", "kv2", "kv3")]), np.array(nominal)
    if rng is not None:
        rigid, inertias = (x * (1.0 + rng.uniform(-RIGID, RIGID, x.shape)) for x in (rigid, inertias))
        rows, velocities = (x * (1.0 + rng.uniform(-FRICTION, FRICTION, x.shape)) for x in (rows, velocities))
        rows[1] = np.maximum(rows[1], LEAST_RISE * rows[0])
    rows[1] -= rows[0]
    return np.concatenate([rigid, inertias.ravel(), rows.T.ravel()]), velocities


def sample_states(motion: Trajectory, rate: float = RATE) -> Motion:
    """Samples of a whole motion."""
    return Motion(*motion.evaluate(np.arange(0.0, motion.duration, 1.0 / rate))[:3])


@dataclass(frozen=True)
class Conditions:
    """Conditions of a comparison.

    Attributes:
        motion: motion of the identification.
        other: motion along which predictions are evaluated.
        rate: sample rate of both [Hz].
        gravity: gravity [m/s^2].
        velocities: nominal Stribeck velocities [rad/s].
    """

    motion: Motion
    other: Motion
    rate: float = RATE
    gravity: tuple[float, float, float] = STANDARD_GRAVITY
    velocities: tuple[float, ...] = VELOCITIES


@dataclass(frozen=True)
class Outcome:
    """Result of one method on one trial; a method that fails counts with its last point, or infinite errors.

    Attributes:
        estimate: estimate of this package; None if it did not converge, and for the paper's methods.
        cost: half of the sum of squared residuals, all rows alike.
        error: RMS error of the noise-free torque along the other motion over all joints [N m].
        seconds: CPU time [s].
        predicted: predicted torque along the other motion [N m], shape (6, N); infinite if there is no point.
        rest: measured less predicted torque along it [N m], shape (6, N).
        correlation: correlation of measured and predicted torque along it, shape (6,).
        failed: whether the method did not converge.
        course: cost after each step of a search, the least so far if it restarts; empty for the other methods.
    """

    estimate: Estimate | None
    cost: float
    error: float
    seconds: float
    predicted: Array
    rest: Array
    correlation: Array
    failed: bool
    course: Array

    @property
    def rmse(self) -> Array:
        """RMSE of the measured torque along the other motion [N m], shape (6,)."""
        return np.asarray(np.sqrt(np.mean(self.rest**2, axis=1)))

    @property
    def largest(self) -> Array:
        """Largest error of it [N m], shape (6,)."""
        return np.asarray(np.abs(self.rest).max(axis=1))

    @property
    def mae(self) -> Array:
        """Mean absolute error of it [N m], shape (6,)."""
        return np.asarray(np.abs(self.rest).mean(axis=1))


@dataclass(frozen=True)
class NoisyTrial:
    """One true robot and its noisy data; the problem has nominal Stribeck velocities and a nominal prior.

    Attributes:
        conditions: motions, rate, gravity and nominal Stribeck velocities.
        seed: seed of the robot, its noise, and the random starts of the searches.
        regressor: true robot and terms.
        truth: true parameters of all columns, shape (c,).
        problem: identification problem with nominal Stribeck velocities.
        base: base parameters of the problem.
        torque: torque along the recorded motion with noise [N m], shape (6, N).
        clean: torque along the other motion [N m], shape (6, N).
        measured: torque along the other motion with noise [N m], shape (6, N).
        noise: standard deviation of the noise of each joint [N m], shape (6,).
    """

    conditions: Conditions
    seed: int
    regressor: Regressor
    truth: Array
    problem: UnfilteredProblem
    base: BaseParameters
    torque: Array
    clean: Array
    measured: Array
    noise: Array

    @classmethod
    def from_seed(cls, seed: int, level: float, given: Conditions) -> NoisyTrial:
        """Draw the robot and its noise; the same robot for any level of the noise."""
        model, rng = model_of("space6r", given.gravity), np.random.default_rng(seed)
        truth, velocities = list_parameters(model, rng, given.velocities)
        regressor, start = make_regressor_of(model, velocities), make_regressor_of(model, np.array(given.velocities))
        base, noise = compute_base_parameters(start), level * NOISE
        clean = regressor.torque(given.other, truth)
        torque = regressor.torque(given.motion, truth)
        torque += noise[:, None] * rng.normal(size=torque.shape)
        problem = UnfilteredProblem.from_samples(
            start, base.independent, given.motion, torque, given.rate, make_prior_of(model, base.mapping)
        )
        measured = clean + noise[:, None] * rng.normal(size=clean.shape)
        return cls(given, seed, regressor, truth, problem, base, torque, clean, measured, noise)

    @property
    def nominal(self) -> Array:
        """Nominal values of the 108 numbers, shape (108,)."""
        return convert_from_columns(*list_parameters(self.regressor.model, nominal=self.conditions.velocities))

    @property
    def space(self) -> AllNumbers:
        """The box of the paper's searches."""
        start = make_regressor_of(self.regressor.model, np.array(self.conditions.velocities))
        return AllNumbers.from_data(start, self.conditions.motion, self.torque, self.nominal)

    def judged(self, predicted: Array, seconds: float, cost: float = np.inf) -> Outcome:
        """Evaluate a prediction along the other motion."""
        known = np.isfinite(predicted).all()
        pairs = zip(predicted, self.measured, strict=True)
        correlation = np.array([np.corrcoef(p, m)[0, 1] for p, m in pairs]) if known else np.full(len(predicted), -1.0)
        error = float(np.sqrt(np.mean((predicted - self.clean) ** 2)))
        rest = self.measured - predicted
        return Outcome(None, cost, error, seconds, predicted, rest, correlation, not known, np.empty(0))

    def outcome(self, estimator: Estimator) -> Outcome:
        """Estimate with this package, and predict along the other motion."""
        begun = time.process_time()
        try:
            found = estimator.fit(self.problem)
        except ConvergenceError:
            return self.judged(np.full_like(self.clean, np.inf), time.process_time() - begun)
        seconds = time.process_time() - begun
        regressor = found.regressor or self.problem.regressor
        predicted = regressor.torque(self.conditions.other, found.values, self.base.independent)
        cost = 0.5 * float(np.sum(found.residual_rms**2)) * found.rows / len(found.residual_rms)
        course = np.empty(0) if found.costs is None else found.costs
        return replace(self.judged(predicted, seconds, cost), estimate=found, course=course)

    def ended(self, search: Callable[[AllNumbers], Ended]) -> Outcome:
        """Search as the paper does, and predict along the other motion with the last point."""
        begun = time.process_time()
        found = search(self.space)
        return self.judged_end(found, time.process_time() - begun)

    def judged_end(self, found: Ended, seconds: float) -> Outcome:
        """Evaluate the last point of a search of the 108 numbers."""
        values, velocities = convert_to_columns(found.numbers)
        if np.isfinite(found.numbers).all():
            predicted = make_regressor_of(self.regressor.model, np.abs(velocities)).torque(
                self.conditions.other, values
            )
        else:
            predicted = np.full_like(self.clean, np.inf)
        judged = self.judged(predicted, seconds, float(found.course[-1]))
        return replace(judged, failed=judged.failed or not found.converged, course=found.course)

    def judged_truth(self) -> Outcome:
        """Evaluate the true parameters."""
        return self.judged(self.clean, 0.0)

    def with_prior_by_size(self) -> NoisyTrial:
        """The same data with the prior of a URDF."""
        prior = make_prior_of(self.regressor.model, self.base.mapping, by_size=True)
        return replace(self, problem=replace(self.problem, prior=prior))

    def with_known_gravity(self, exact: bool) -> Outcome:
        """Eq. 4: subtract a known gravity torque, identify the rest without weight, and predict with both.

        Args:
            exact: whether the known gravity torque is that of the true robot, in place of the nominal one.
        """
        ground, rest = self.regressor.model, model_of("space6r", (0.0, 0.0, 0.0))
        bodies = self.truth if exact else list_parameters(ground)[0]
        carried = [
            Regressor(ground).torque(Motion(m.q, 0.0 * m.q, 0.0 * m.q), bodies[: len(ground.inertial_parameters)])
            for m in (self.conditions.motion, self.conditions.other)
        ]
        start = make_regressor_of(rest, np.array(self.conditions.velocities))
        base = compute_base_parameters(start)
        problem = UnfilteredProblem.from_samples(
            start, base.independent, self.conditions.motion, self.torque - carried[0], self.conditions.rate
        )
        begun = time.process_time()
        found = Separable(weighted=False).fit(problem)
        seconds = time.process_time() - begun
        regressor = found.regressor or start
        return self.judged(
            regressor.torque(self.conditions.other, found.values, base.independent) + carried[1], seconds
        )


def make_prior_of(model: RobotModel, mapping: Array, by_size: bool = False) -> Prior:
    """Prior of the nominal robot.

    Args:
        model: the robot.
        mapping: map from all parameters to the base parameters.
        by_size: whether an inertial parameter is as uncertain as the body is large (m, m r, m r^2), which is what is
            known of a robot by its URDF, instead of as large as its own value, which is how the true ones are drawn.
    """
    nominal, _ = list_parameters(model)
    inertial, terms = np.split(nominal, [len(model.inertial_parameters)])
    sizes = find_inertial_scales(model)
    own = sizes if by_size else np.maximum(np.abs(inertial), ZERO * sizes)
    friction = find_term_scales(make_regressor_of(model, np.array(VELOCITIES)), terms)
    return Prior("nominal robot", nominal, np.append(own, friction), mapping)


Method = Callable[[NoisyTrial], Outcome]
"""A method of the comparison."""

PARTICLES, ITERATIONS, SLOW_ITERATIONS = 100, 300, 800
"""Particles and iterations of the paper's swarm, and those of one as long as the paper's times suggest."""

SWARM, SLOW_SWARM, HYBRID, KALMAN = "pso", "pso, 800 iterations", "pso_lm", "kalman filter"
"""Names of the swarms, of the paper's method, and of its Kalman filter."""

RANDOM_START = 1
"""Second part of the seed of a random start, the first is that of the robot."""


def run_swarm_of_paper(iterations: int) -> Method:
    """The paper's swarm."""

    def run(trial: NoisyTrial) -> Outcome:
        def search(space: AllNumbers) -> Ended:
            return Ended(*run_swarm(space, np.random.default_rng(trial.seed), PARTICLES, iterations), True)

        return trial.ended(search)

    return run


def run_hybrid(trial: NoisyTrial) -> Outcome:
    """The paper's PSO-LM: a swarm with random starts, then Levenberg-Marquardt.

    It restarts only where mu exceeds its limit, one particle where the search was; the end with the lowest F counts.
    """

    def search(space: AllNumbers) -> Ended:
        rng = np.random.default_rng(trial.seed)
        ends: list[Ended] = []
        course: list[Array] = []
        for _ in range(MAX_SWARMS):
            known = min(ends, key=lambda end: float(end.course[-1])).numbers if ends else None
            point, costs = run_swarm(space, rng, PARTICLES, ITERATIONS, known)
            found = run_marquardt(space, point, MAX_DAMPING)
            ends.append(found)
            course += [costs, found.course]
            if not found.exceeded:
                break
        best = min(ends, key=lambda end: float(end.course[-1]))
        return replace(best, course=np.minimum.accumulate(np.concatenate(course)))

    return trial.ended(search)


def run_random_marquardt(trial: NoisyTrial) -> Outcome:
    """Levenberg-Marquardt from a random point of the box."""
    rng = np.random.default_rng([trial.seed, RANDOM_START])
    return trial.ended(lambda space: run_marquardt(space, rng.uniform(space.lower, space.upper)))


def run_genetic(trial: NoisyTrial) -> Outcome:
    """A genetic algorithm with as many evaluations as the swarm."""
    return trial.ended(lambda space: Ended(*run_generations(space, trial.seed, PARTICLES, ITERATIONS), True))


PAPER: dict[str, Method] = {
    "least squares, vb nominal": lambda trial: trial.outcome(OrdinaryLeastSquares()),
    KALMAN: lambda trial: trial.ended(lambda space: run_kalman_filter(space, trial.nominal, trial.noise)),
    "lm": lambda trial: trial.ended(lambda space: run_marquardt(space, trial.nominal)),
    "lm, random start": run_random_marquardt,
    SWARM: run_swarm_of_paper(ITERATIONS),
    HYBRID: run_hybrid,
}
"""The paper's methods, as printed: all 108 numbers, from the nominal values or from random ones."""

SLOW: dict[str, Method] = {SLOW_SWARM: run_swarm_of_paper(SLOW_ITERATIONS), "ga": run_genetic}
"""Those that search for longer."""

OURS: dict[str, Method] = {
    "separable": lambda trial: trial.outcome(Separable(weighted=False)),
    "separable, weighted": lambda trial: trial.outcome(Separable()),
    "map, vb nominal": lambda trial: trial.outcome(MaximumAPosteriori()),
    "map_constants": lambda trial: trial.outcome(MaximumAPosterioriConstants()),
    "map_constants, prior by size": lambda trial: trial.with_prior_by_size().outcome(MaximumAPosterioriConstants()),
}
"""Methods of this package; all rows alike, as in the paper, except where weights are the point."""

TRUTH = "truth"
"""Name of the true parameters among the methods."""


@dataclass(frozen=True)
class Trials:
    """Outcomes at one level of the noise.

    Attributes:
        level: level of the noise.
        trials: one trial for each seed.
        outcomes: results by method, one for each trial; slow methods have those of the first trials only.
    """

    level: float
    trials: tuple[NoisyTrial, ...]
    outcomes: dict[str, tuple[Outcome, ...]]

    @classmethod
    def from_methods(
        cls, level: float, given: Conditions, methods: Mapping[str, tuple[Method, int]], progress: Progress
    ) -> Trials:
        """Run methods, each on its number of draws.

        Args:
            level: level of the noise.
            given: conditions of all draws.
            methods: method and number of draws, by name.
            progress: callback that receives every stage of the work.
        """
        count = max(draws for _, draws in methods.values())
        trials = tuple(NoisyTrial.from_seed(seed, level, given) for seed in range(count))
        outcomes = {}
        for name, (method, draws) in methods.items():
            found = []
            for draw, trial in enumerate(trials[:draws]):
                progress(Stage(f"noise x {level:g}, {given.rate:g} Hz: {name}", draw, draws))
                found.append(method(trial))
            outcomes[name] = tuple(found)
        return cls(level, trials, {**outcomes, TRUTH: tuple(trial.judged_truth() for trial in trials)})

    def spread(self, method: str, what: Callable[[Outcome], float]) -> Spread:
        """A figure of every trial; those of failed ones are at their last point."""
        outcomes = self.outcomes[method]
        return Spread(np.array([what(outcome) for outcome in outcomes]), sum(outcome.failed for outcome in outcomes))

    def ratio(self, method: str, peer: str, what: Callable[[Outcome], float]) -> Spread:
        """Ratios of a figure of two methods, trial by trial."""
        pairs = list(zip(self.outcomes[method], self.outcomes[peer], strict=False))
        values = [what(one) / what(two) if np.isfinite(what(two)) else 0.0 for one, two in pairs]
        return Spread(np.array(values), sum(one.failed or two.failed for one, two in pairs))


def compute_error(outcome: Outcome) -> float:
    """Error of the noise-free torque."""
    return outcome.error


def measure_seconds(outcome: Outcome) -> float:
    """CPU time [s], also without convergence."""
    return outcome.seconds


def compute_cost(outcome: Outcome) -> float:
    """Half of the sum of squared residuals."""
    return outcome.cost
