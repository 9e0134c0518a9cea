# SPDX-License-Identifier: Apache-2.0
"""Comparison of our equations with Pinocchio's and with the Kronecker form, on given samples.

Three programs that share no code must agree: the compiled regressor, Pinocchio, and the literal matrices of
`kronecker`. Pinocchio reads the URDF text again, so that a model that was changed since does not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics import kronecker
from robot_dyn_id.dynamics.base_parameters import (
    MIN_COLUMN_NORM,
    RANK_TOLERANCE,
    compute_echelon,
    count_sufficient_samples,
    draw_random_motion,
    stack_regressor,
)
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.model.robot import RobotModel, make_configuration_of, parse_with_pinocchio, reduce_pinocchio

MAX_DIFFERENCE_RATIO = 1e-10
"""Maximum difference that counts as rounding, relative to the largest entry."""

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Rounding of an entry of a regressor, relative to the largest column."""

PINOCCHIO_SAMPLES = 200
"""Number of samples compared with Pinocchio."""

KRONECKER_SAMPLES = 5
"""Number of samples compared with the Kronecker form, which takes milliseconds per sample."""

SAMPLES_PER_BLOCK = 16
"""Number of samples per block: regressors of humanoids are large."""


@dataclass(frozen=True)
class CrossCheck:
    """Differences are max |difference| / max |entry| over the samples.

    Attributes:
        regressor: our regressor and Pinocchio's.
        kronecker: our regressor and the Kronecker form's.
        torque: our regressor times the parameters and Pinocchio's recursive Newton-Euler algorithm.
        mass_matrix: that of `dynamics` and that of the Kronecker form, the worse of them, and Pinocchio's.
        rank_ours: rank of our rigid-body regressor at random states, the number of its base parameters.
        rank_pinocchio: rank of Pinocchio's at the same states.
        samples: number of samples compared.
    """

    regressor: float
    kronecker: float
    torque: float
    mass_matrix: float
    rank_ours: int
    rank_pinocchio: int
    samples: int

    @property
    def max_difference(self) -> float:
        """The largest of all differences; NaN if one is."""
        return float(np.max([self.regressor, self.kronecker, self.torque, self.mass_matrix]))

    @property
    def passed(self) -> bool:
        """Whether anything was compared, all differences are rounding and the ranks are the same."""
        same_rank = self.rank_ours == self.rank_pinocchio
        return self.samples > 0 and same_rank and self.max_difference <= MAX_DIFFERENCE_RATIO


def cross_check(regressor: Regressor, motion: Motion, parameters: Array | None = None) -> CrossCheck:
    """Compare the rigid-body columns of a regressor with Pinocchio and with the Kronecker form.

    The ranks are those at random states: the rank of a recorded motion that excites little depends on rounding.

    Args:
        regressor: the regressor; columns of terms are ignored.
        motion: samples; `PINOCCHIO_SAMPLES` of them, evenly spread, are compared.
        parameters: standard parameters for torque and mass matrix, shape (10 b,); by default the model's own.

    Raises:
        ModelError: Pinocchio does not read the model's URDF.
    """
    model = regressor.model
    rigid = Regressor(model)
    peer = _Pinocchio.from_robot(model, parameters)
    values = model.inertial_parameters if parameters is None else parameters
    dynamics = Dynamics(rigid, np.arange(len(rigid.names)), values)
    many = list(_blocks(_spread(motion, PINOCCHIO_SAMPLES)))
    few = list(_blocks(_spread(motion, KRONECKER_SAMPLES)))
    excited = draw_random_motion(model, count_sufficient_samples(rigid))
    return CrossCheck(
        regressor=_difference((_by_sample(rigid, block), peer.regressor(block)) for block in many),
        kronecker=_difference((_by_sample(rigid, block), _kronecker_regressor(model, block)) for block in few),
        torque=_difference((rigid.torque(block, values).T, peer.torque(block)) for block in many),
        mass_matrix=_difference(
            (ours, peer.mass_matrix(block))
            for block in few
            for ours in (dynamics.mass_matrix(block.q.T), _kronecker_mass(model, block, values))
        ),
        rank_ours=_find_rank(stack_regressor(rigid, excited)),
        rank_pinocchio=_find_rank(peer.regressor(excited).reshape(-1, len(rigid.names))),
        samples=sum(len(block) for block in many),
    )


def _find_rank(stack: Array) -> int:
    """Rank of a stacked regressor; rounding of large entries is not independent of a small column.

    Angles of a URDF that are rounded, such as 1.5707963, make columns that are nearly zero.
    """
    norms = np.linalg.norm(stack, axis=0)
    kept = norms[norms >= MIN_COLUMN_NORM]
    rounding = ROUNDING * kept.max() / kept.min() if len(kept) else 0.0
    return compute_echelon(stack, tolerance=max(RANK_TOLERANCE, rounding)).rank


def compare_accelerations(dynamics: Dynamics, motion: Motion) -> float:
    """Forward dynamics of rigid bodies against M^-1 (tau - h) with Pinocchio's M, h and torques tau of the motion.

    Args:
        dynamics: without terms; its base parameters are those of the robot's URDF.
        motion: samples.

    Returns:
        Max |difference| / max |entry|.

    Raises:
        InputError: see `Dynamics.forward_dynamics`.
    """
    peer = _Pinocchio.from_robot(dynamics.regressor.model, None)
    torque = peer.torque(motion)
    bias = peer.torque(replace(motion, ddq=np.zeros_like(motion.ddq)))
    reference = np.asarray(np.linalg.solve(peer.mass_matrix(motion), (torque - bias)[..., None])[..., 0], np.float64)
    return _difference([(dynamics.forward_dynamics(motion.q.T, motion.dq.T, torque), reference)])


def _spread(motion: Motion, count: int) -> Motion:
    """At most `count` samples, evenly spread."""
    return motion.take(slice(0, None, max(1, -(-len(motion) // count))))


def _blocks(motion: Motion) -> Iterator[Motion]:
    for start in range(0, len(motion), SAMPLES_PER_BLOCK):
        yield motion.take(slice(start, start + SAMPLES_PER_BLOCK))


def _difference(pairs: Iterable[tuple[Array, Array]]) -> float:
    """Max |a - b| / max |b| over all pairs, or max |a - b| where all b are zero."""
    difference = 0.0
    largest = 0.0
    for ours, reference in pairs:
        difference = float(np.maximum(difference, np.max(np.abs(ours - reference))))  # max() would lose a NaN
        largest = max(largest, float(np.max(np.abs(reference))))
    return difference / largest if largest > 0.0 else difference


def _by_sample(regressor: Regressor, motion: Motion) -> Array:
    """Our regressor, shape (N, n, c)."""
    return regressor.dense(motion).transpose(2, 1, 0)


def _kronecker_regressor(model: RobotModel, motion: Motion) -> Array:
    states = zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True)
    return np.array([kronecker.torque_regressor(model, *state) for state in states])


def _kronecker_mass(model: RobotModel, motion: Motion, parameters: Array) -> Array:
    return np.array([kronecker.mass_regressor(model, q) @ parameters for q in motion.q.T])


@dataclass(frozen=True)
class _Pinocchio:
    """Pinocchio's equations for a robot; mimic joints are free ones, projected: G' Y, G' tau, G' M G.

    Attributes:
        robot: the robot.
        model: Pinocchio's model, the joints held that the robot holds.
        weighted: models whose weighted sum has the wanted parameters, for what is linear in them.
    """

    robot: RobotModel
    model: Any
    weighted: tuple[tuple[float, Any], ...]

    @classmethod
    def from_robot(cls, robot: RobotModel, parameters: Array | None) -> _Pinocchio:
        full = _parse(robot.urdf, tuple(float(g) for g in robot.gravity))
        model = reduce_pinocchio(full, robot.body_names, robot.held)
        if parameters is None:
            return cls(robot, model, ((1.0, model),))
        # Pinocchio divides first moments by masses, which may be zero in a realization of base parameters.
        lift = np.zeros((len(robot.body_names), 10))
        lift[:, 0] = 1.0 + 2.0 * np.abs(parameters.reshape(lift.shape)[:, 0])
        lifted = _with_inertias(model, parameters.reshape(lift.shape) + lift)
        return cls(robot, model, ((1.0, lifted), (-1.0, _with_inertias(model, lift))))

    def states(self, motion: Motion) -> Iterator[tuple[Array, Array, Array]]:
        """Configuration, velocity and acceleration of all bodies, sample by sample."""
        coupling = self.robot.coupling
        q = make_configuration_of(self.model, self.robot.body_names, motion.q.T @ coupling.T + self.robot.offset)
        return zip(q, motion.dq.T @ coupling.T, motion.ddq.T @ coupling.T, strict=True)

    def regressor(self, motion: Motion) -> Array:
        """Shape (N, n, 10 b)."""
        from pinocchio import computeJointTorqueRegressor as compute

        data = self.model.createData()
        project = self.robot.coupling.T
        # For one velocity Pinocchio returns a vector.
        shape = self.model.nv, -1
        return np.array([project @ compute(self.model, data, *state).reshape(shape) for state in self.states(motion)])

    def torque(self, motion: Motion) -> Array:
        """Shape (N, n)."""
        import pinocchio

        total = np.zeros(motion.q.T.shape)
        for weight, model in self.weighted:
            data = model.createData()
            tau = np.array([pinocchio.rnea(model, data, *state) for state in self.states(motion)])
            total += weight * tau @ self.robot.coupling
        return total

    def mass_matrix(self, motion: Motion) -> Array:
        """Shape (N, n, n)."""
        import pinocchio

        coupling = self.robot.coupling
        total = np.zeros((len(motion), len(motion.q), len(motion.q)))
        for weight, model in self.weighted:
            data = model.createData()
            upper = np.array([np.triu(pinocchio.crba(model, data, q)) for q, _, _ in self.states(motion)])
            full = upper + np.triu(upper, 1).transpose(0, 2, 1)
            total += weight * (coupling.T @ full @ coupling)
        return total


@lru_cache(maxsize=4)
def _parse(urdf: str, gravity: tuple[float, ...]) -> Any:
    """Pinocchio's model; parsing takes longer than all comparisons."""
    return parse_with_pinocchio(urdf, "robot description", np.array(gravity))


def _with_inertias(model: Any, parameters: Array) -> Any:
    """A copy of a model with the standard parameters of all bodies replaced, shape (b, 10)."""
    import pinocchio

    copy = model.copy()
    for joint, values in enumerate(parameters, start=1):
        copy.inertias[joint] = pinocchio.Inertia.FromDynamicParameters(values)
    return copy
