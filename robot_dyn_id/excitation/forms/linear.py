# SPDX-License-Identifier: Apache-2.0
"""Motions that are linear in their coefficients, and their parametrization for any family of functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.cache import Cache
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import CenteredParametrization, Demand
from robot_dyn_id.excitation.trajectory import Sample

DEPENDENT_RATIO = 1e-9
"""Relative singular value below which a condition depends linearly on the others [-]."""


@dataclass(frozen=True)
class LinearMotion(ABC):
    """q_j(t) = center_j + sum_m coefficients_jm f_m(t), with M functions f defined by the subclass and its fields.

    Attributes:
        center: center configuration [rad or m], shape (n,).
        coefficients: coefficients of the functions [rad or m], shape (n, M).
    """

    name: ClassVar[str]
    """Name of the form in configuration files."""
    FORMULA: ClassVar[str]
    """Formula of the motion, written to trajectory files."""
    TIMES: ClassVar[tuple[str, ...]] = ("length",)
    """See `Stretchable`."""
    RATES: ClassVar[tuple[str, ...]] = ()
    """See `Stretchable`."""

    center: Array
    coefficients: Array

    def __post_init__(self) -> None:
        """Check shapes and duration.

        Raises:
            UsageError: wrong shapes, or the duration is not positive.
        """
        n, functions = len(self.center), self.functions
        if not 0.0 < self.duration < np.inf or functions < 1:
            raise UsageError(f"a {self.name} motion needs a positive duration and at least one function")
        if self.coefficients.shape != (n, functions):
            raise UsageError(
                f"coefficients have the shape {self.coefficients.shape}, expected {(n, functions)}: one row for each "
                "position of the center, one column for each function"
            )

    @property
    @abstractmethod
    def duration(self) -> float:
        """Duration [s]."""

    @property
    @abstractmethod
    def fastest(self) -> float:
        """See `Excitation`."""

    @property
    @abstractmethod
    def functions(self) -> int:
        """Number of functions M."""

    @abstractmethod
    def basis(self, t: Array) -> Array:
        """Functions and their three derivatives at times `t` [s], shape (4, M, N)."""

    def draw(self, rng: np.random.Generator, joints: int) -> Array:
        """Draw random coefficients, shape (joints, M)."""
        return rng.normal(size=(joints, self.functions))

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        return self.combine(self.basis(t))

    def combine(self, basis: Array) -> Sample:
        """Motion at the times of its functions, shape (4, M, N), see `basis`."""
        q, dq, ddq, dddq = self.coefficients @ basis
        return q + self.center[:, None], dq, ddq, dddq


def rest_conditions(family: LinearMotion) -> Array:
    """Conditions for rest at both ends: velocity and acceleration of every function, shape (4, M)."""
    _, velocity, acceleration, _ = family.basis(np.array([0.0, family.duration]))
    return np.concatenate([velocity.T, acceleration.T])


class LinearParametrization(CenteredParametrization):
    """Linear motions under linear conditions, parametrized by an orthonormal basis of the conditions' null space."""

    def __init__(
        self,
        limits: MotionLimits,
        demand: Demand,
        family: LinearMotion,
        conditions: Array,
        *,
        periodic: bool,
        jerk_steps: Sequence[float] = (),
    ) -> None:
        """Eliminate the conditions.

        Args:
            limits: motion limits of the joints.
            demand: user requirements.
            family: a motion with any coefficients, whose other fields define the functions.
            conditions: rows orthogonal to the coefficients of every joint, shape (any, M).
            periodic: whether the motion ends where it begins.
            jerk_steps: times at which the jerk may have steps [s].

        Raises:
            UsageError: the conditions determine all coefficients.
            MotionError: the center configuration is outside the limits.
        """
        self.name = family.name
        self._space = _null_space(conditions, family.functions)
        if self._space.shape[1] == 0:
            raise UsageError(
                f"a {family.name} motion with {family.functions} functions is fully determined by rest at both ends: "
                "use more harmonics, frequencies or control points, or a higher degree"
            )
        super().__init__(limits, demand, family, coefficients=self._space.shape[1], jerk_steps=jerk_steps)
        self.periodic = periodic
        self._family = family
        self._cache: Cache[Array] = Cache()
        self._at_peaks: Cache[Array] = Cache()

    def trajectory(self, x: Array) -> LinearMotion:
        """See `Parametrization`."""
        numbers, center = self._parts(x)
        coefficients = self.reach[:, None] * (numbers @ self._space.T)
        return replace(self._family, center=center, coefficients=coefficients)

    def sample(self, x: Array, t: Array) -> Sample:
        """See `Parametrization`."""
        numbers, center = self._parts(x)
        q, dq, ddq, dddq = (self.reach[:, None] * numbers) @ self._basis(t)
        return q + center[:, None], dq, ddq, dddq

    def pull_back(self, x: Array, t: Array, gradient: Sample) -> Array:
        """See `Parametrization`."""
        basis = self._basis(t)
        numbers = sum(gradient[d] @ basis[d].T for d in range(4))
        return self._joined(self.reach[:, None] * numbers, self.reach * gradient[0].sum(axis=-1))

    def _basis(self, t: Array) -> Array:
        """Functions of the free coefficients, shape (4, K, N)."""
        return self._cache.get(t.tobytes(), lambda: self._space.T @ self._family.basis(t))

    def _evaluate(self, motion: LinearMotion, t: Array) -> Sample:
        return motion.combine(self._at_peaks.get(t.tobytes(), lambda: self._family.basis(t)))

    def _draw(self, rng: np.random.Generator) -> Array:
        return np.asarray(self._family.draw(rng, len(self.reach)) @ self._space)


def _null_space(conditions: Array, functions: int) -> Array:
    """Orthonormal basis of the coefficients that satisfy the conditions, shape (functions, K)."""
    size = np.linalg.norm(conditions, axis=1, keepdims=True)
    # rows are normalized, as their units differ; rows that consist of rounding errors are ignored
    rows = conditions[(size > DEPENDENT_RATIO * size.max(initial=0.0)).ravel()]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, directions = np.linalg.svd(np.vstack([rows, np.zeros((1, functions))]))
    rank = int(np.count_nonzero(values > DEPENDENT_RATIO * values.max(initial=0.0)))
    return np.asarray(directions[rank:].T)
