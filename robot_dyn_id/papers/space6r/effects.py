# SPDX-License-Identifier: Apache-2.0
"""Claims of the paper about friction, tested: Stribeck velocities, temperature, and the weightless arm."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion, Regressor, make_joint_coordinates
from robot_dyn_id.dynamics.terms import Coulomb, ImprovedStribeck, TemperatureCoulomb, Term
from robot_dyn_id.estimators import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.estimators.constants.derived import ConstantDerivatives
from robot_dyn_id.estimators.factors import Solution
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r.trials import (
    NOISE,
    RATE,
    TABLE_1,
    VELOCITIES,
    NoisyTrial,
    list_parameters,
    make_regressor_of,
)

WEIGHTLESS = (0.0, 0.0, 0.0)

ALPHA, REFERENCE = -0.06, 20.0
"""Change of the Coulomb friction [N m/K], which the paper does not print, from its reference temperature [C] on."""

TEMPERATURES = np.arange(-40.0, 81.0, 10.0)
"""Temperatures of the experiment [C]."""

SLOW, SPEEDS = 0.3, np.linspace(0.15, 1.2, 8)
"""Constant speeds of joint 1 [rad/s], up to its limit."""

STAY, TEMPERATURE_NOISE = 5.0, 3.9
"""Time at each temperature [s]; noise of the torque [N m]."""


LEAST_BREAKAWAY = 1.2
"""Smallest fb / fc of the bound on Stribeck velocities: at the 1.02 of joint 2, vb is hardly identifiable."""


def compute_ranks(gravity: tuple[float, float, float]) -> tuple[int, ...]:
    """Identifiable parameters of the bodies, then with rotors, springs, linear friction, and fb and vb besides."""
    model = model_of("space6r", gravity)
    whole = make_regressor_of(model, np.array(VELOCITIES))
    rotors, springs, friction = whole.terms[:6], whole.terms[6:12], whole.terms[12:]
    counts = [
        len(compute_base_parameters(Regressor(model, terms)).names) for terms in ((), rotors, (*rotors, *springs))
    ]
    full = Regressor(model, (*whole.terms, *((coordinate, ConstantDerivatives(term)) for coordinate, term in friction)))
    nonlinear = np.array([name.startswith(("dfi", "stribeck_velocity")) for name in full.names])
    chosen = compute_base_parameters(full, order=np.argsort(nonlinear, kind="stable").tolist()).independent
    return (*counts, int(np.count_nonzero(~nonlinear[chosen])), len(chosen))


def compute_velocity_deviations(velocity: float, motion: Motion) -> Array:
    """Cramer-Rao bound of the standard deviation of log(vb), joint by joint, rigid parameters known, shape (6,).

    The friction is that of Table 1 with fb at least `LEAST_BREAKAWAY` fc.

    Args:
        velocity: Stribeck velocity of all joints [rad/s].
        motion: recorded motion.
    """
    term, found = ImprovedStribeck(velocity), []
    for joint, dq in enumerate(motion.dq):
        still = np.zeros_like(dq)
        fc = TABLE_1["fc"][joint]
        rise = max(TABLE_1["fb"][joint], LEAST_BREAKAWAY * fc) - fc
        slope = rise * ConstantDerivatives(term).columns(still, dq, still)[1]
        bound = Solution.from_rows(np.column_stack([*term.columns(still, dq, still), slope, still]) / NOISE[joint])
        found.append(np.inf if bound.unexcited[-1] else float(np.sqrt(bound.inverse[-1, -1])))
    return np.array(found)


@dataclass(frozen=True)
class Heat:
    """Coulomb friction of joint 1 at temperatures, each number with its standard deviation.

    Attributes:
        one: alpha, and the intercept at the reference temperature, from one direction of one speed, shape (2, 2).
        both: alpha from both directions of that speed, shape (2,).
        several: alpha, fc, kv1 from several speeds, shape (3, 2).
    """

    one: Array
    both: Array
    several: Array

    @classmethod
    def from_seed(cls, seed: int) -> Heat:
        """Drive at constant speeds, and fit."""
        rng = np.random.default_rng(seed)
        names, coulomb = ("ft1", "fc1"), (Coulomb(0.0),)
        one = _fitted(np.array([SLOW]), names, coulomb, rng)
        both = _fitted(np.array([SLOW, -SLOW]), names, coulomb, rng)
        several = _fitted(SPEEDS, ("ft1", "fci1", "kva1", "kvb1", "kvc1"), (_law(),), rng)
        return cls(one, both[0], several[:3])


def _law() -> ImprovedStribeck:
    """Friction law of joint 1."""
    return ImprovedStribeck(TABLE_1["vb"][0])


def _fitted(speeds: Array, names: tuple[str, ...], terms: tuple[Term, ...], rng: np.random.Generator) -> Array:
    """Friction parameters of joint 1 and their standard deviations, from runs at constant speeds, shape (p, 2)."""
    model = model_of("space6r", held={f"joint{number}": 0.0 for number in range(2, 7)})
    (joint,), heat = make_joint_coordinates(model), TemperatureCoulomb(0.0, REFERENCE)
    grid, count = np.meshgrid(speeds, TEMPERATURES), round(STAY * RATE)
    dq, temperature = (np.repeat(values.ravel(), count)[None] for values in grid)
    still = np.zeros_like(dq)
    motion = Motion(still, dq, still, temperature)  # its axis is upright: the angle does not matter
    true = Regressor(model, ((joint, heat), (joint, _law())))
    fc, fb, *rest = (TABLE_1[name][0] for name in ("fc", "fb", "kv1", "kv2", "kv3"))
    torque = true.torque(motion, np.array([*np.zeros(10), ALPHA, fc, fb - fc, *rest]))
    torque += TEMPERATURE_NOISE * rng.normal(size=torque.shape)
    regressor = Regressor(model, ((joint, heat), *((joint, term) for term in terms)))
    columns = np.array([regressor.names.index(name) for name in names])
    # the noise is white: with AR order 0 the standard deviations are those of ordinary least squares
    found = OrdinaryLeastSquares(0).fit(UnfilteredProblem.from_samples(regressor, columns, motion, torque, RATE))
    return np.column_stack([found.values, found.standard_deviations])


@dataclass(frozen=True)
class Weightless:
    """The same true robot with and without weight.

    Attributes:
        friction: its share of the nominal torque, root mean squares, with and without weight, shape (2, 6).
        to_ground: error of the torque on the ground, identified without weight [N m], shape (6,).
        to_orbit: error without weight, identified on the ground, shape (6,).
    """

    friction: Array
    to_ground: Array
    to_orbit: Array

    @classmethod
    def from_trial(cls, ground: NoisyTrial) -> Weightless:
        """Identify in one place, vb nominal, and predict in the other."""
        level, there = float(ground.noise[0] / NOISE[0]), replace(ground.conditions, gravity=WEIGHTLESS)
        orbit = NoisyTrial.from_seed(ground.seed, level, there)
        return cls(
            np.array([_friction_share(trial, ground.conditions.motion) for trial in (ground, orbit)]),
            _carried(orbit, ground),
            _carried(ground, orbit),
        )


def _friction_share(trial: NoisyTrial, motion: Motion) -> Array:
    whole = trial.regressor
    nominal, friction = list_parameters(whole.model)[0], 10 * 6 + 12
    own = np.where(np.arange(len(nominal)) < friction, 0.0, nominal)
    size = [np.sqrt(np.mean(whole.torque(motion, values) ** 2, axis=1)) for values in (own, nominal)]
    return np.asarray(size[0] / size[1])


def _carried(source: NoisyTrial, target: NoisyTrial) -> Array:
    """Error in the target with the parameters identified in the source; unidentifiable ones are zero."""
    values = np.zeros(len(source.truth))
    values[source.base.independent] = WeightedLeastSquares().fit(source.problem).values
    regressor = Regressor(target.regressor.model, source.problem.regressor.terms)
    return np.asarray(np.sqrt(np.mean((regressor.torque(target.conditions.other, values) - target.clean) ** 2, axis=1)))


@dataclass(frozen=True)
class ParameterBound:
    """Bound of the relative error of the parameters (eq. 7), with spectral norms of the observation matrix Y.

    |dx| / |x| <= kappa(Y) / (1 - kappa(Y) |dY| / |Y|) (|dtau| / |tau| + |dY| / |Y|), while kappa(Y) |dY| / |Y| < 1.

    Attributes:
        condition_number: kappa(Y).
        matrix_error: |dY| / |Y|, of Stribeck velocities that are not those of the robot.
        torque_error: |dtau| / |tau|.
        error: |dx| / |x| of least squares.
    """

    condition_number: float
    matrix_error: float
    torque_error: float
    error: float

    @classmethod
    def from_trial(cls, trial: NoisyTrial, known: bool) -> ParameterBound:
        """Bound and error of a trial, with the nominal Stribeck velocities, or with those of the robot (`known`)."""
        motion, columns = trial.conditions.motion, trial.base.independent
        true = _stack(trial.regressor, motion, columns)
        used = true if known else _stack(trial.problem.regressor, motion, columns)
        size = np.linalg.norm(used, 2)
        parameters, torque = trial.base.mapping @ trial.truth, trial.torque.ravel()
        noise = torque - true @ parameters
        found = np.linalg.lstsq(used, torque)[0]
        ratio = np.linalg.norm(found - parameters) / np.linalg.norm(parameters)
        changed = np.linalg.norm(true - used, 2) / size
        share = np.linalg.norm(noise) / np.linalg.norm(torque)
        return cls(float(np.linalg.cond(used)), float(changed), float(share), float(ratio))

    @property
    def product(self) -> float:
        """kappa(Y) |dY| / |Y|."""
        return self.condition_number * self.matrix_error

    @property
    def bound(self) -> float:
        """The bound; infinite where it is not defined."""
        if self.product >= 1.0:
            return np.inf
        return self.condition_number / (1.0 - self.product) * (self.torque_error + self.matrix_error)


def _stack(regressor: Regressor, motion: Motion, columns: Integers) -> Array:
    """Observation matrix of some columns, shape (n N, p), joint by joint."""
    dense = regressor.dense(motion)[columns]
    return np.asarray(dense.reshape(len(columns), -1).T)


@dataclass(frozen=True)
class Remainder:
    """Error of the linearized friction law (eq. 6), and the bound that the remainder of its Taylor series has.

    Attributes:
        error: largest difference of the linearized law from the law over all speeds and deviations [N m], shape (6,).
        bound: half of the largest second derivative times the square of the deviation [N m], shape (6,).
    """

    error: Array
    bound: Array

    @classmethod
    def from_share(cls, share: float, velocities: tuple[float, ...] = VELOCITIES) -> Remainder:
        """Linearize in vb at the nominal friction.

        Args:
            share: largest deviation of vb, as a share of the nominal one.
            velocities: nominal Stribeck velocities [rad/s].
        """
        errors, bounds = [], []
        for joint, velocity in enumerate(velocities):
            rise = TABLE_1["fb"][joint] - TABLE_1["fc"][joint]
            speed = np.linspace(0.0, 5.0 * velocity, 2001)
            vb = velocity * np.linspace(1.0 - share, 1.0 + share, 201)[:, None]
            ratio = (speed / vb) ** 2
            law, middle = rise * np.exp(-ratio), (speed / velocity) ** 2
            first = rise * np.exp(-middle) * (1.0 + 2.0 * middle * (vb - velocity) / velocity)
            second = rise * np.exp(-ratio) * (4.0 * ratio**2 - 6.0 * ratio) / vb**2
            errors.append(np.abs(law - first).max())
            bounds.append(0.5 * np.abs(second).max() * (share * velocity) ** 2)
        return cls(np.array(errors), np.array(bounds))
