# SPDX-License-Identifier: Apache-2.0
"""Motions that are linear in their coefficients: one class for all families of functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Centered, Demand, Memory
from robot_dyn_id.excitation.trajectory import Sample

DEPENDENT = 1e-9
"""Conditions whose singular values are below this share of the largest follow from the others."""


@dataclass(frozen=True)
class Combination(ABC):
    """q_j(t) = center_j + sum_m coefficients_jm f_m(t), with M functions f that the family and its fields define.

    Attributes:
        center: shape (n,) [rad or m].
        coefficients: shape (n, M) [rad or m].
    """

    name: ClassVar[str]
    """What YAML calls the form."""
    FORMULA: ClassVar[str]
    """The motion in one line, for the file."""
    TIMES: ClassVar[tuple[str, ...]] = ("length",)
    """See `Timed`."""
    RATES: ClassVar[tuple[str, ...]] = ()
    """See `Timed`."""

    center: Array
    coefficients: Array

    def __post_init__(self) -> None:
        """Check that the parts fit together.

        Raises:
            UsageError: wrong shapes, a duration that is not positive.
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
        """How long it takes [s]."""

    @property
    @abstractmethod
    def fastest(self) -> float:
        """See `Excitation`."""

    @property
    @abstractmethod
    def functions(self) -> int:
        """M."""

    @abstractmethod
    def basis(self, t: Array) -> Array:
        """The functions and three derivatives at times `t`, shape (4, M, N)."""

    def draw(self, rng: np.random.Generator, joints: int) -> Array:
        """Random coefficients, shape (joints, M)."""
        return rng.normal(size=(joints, self.functions))

    def evaluate(self, t: Array) -> Sample:
        """See `Trajectory`."""
        q, dq, ddq, dddq = self.coefficients @ self.basis(t)
        return q + self.center[:, None], dq, ddq, dddq


def at_ends(family: Combination) -> Array:
    """Conditions of rest: velocity and acceleration of every function at both ends, shape (4, M)."""
    _, velocity, acceleration, _ = family.basis(np.array([0.0, family.duration]))
    return np.concatenate([velocity.T, acceleration.T])


class LinearParametrization(Centered):
    """Coefficients for which conditions hold: those of an orthonormal basis of their null space are free."""

    def __init__(
        self,
        limits: MotionLimits,
        demand: Demand,
        family: Combination,
        conditions: Array,
        periodic: bool,
        steps: Sequence[float] = (),
    ) -> None:
        """Eliminate the conditions.

        Args:
            limits: of the joints.
            demand: what is asked.
            family: a motion of any coefficients; its other fields are the family.
            conditions: rows that are orthogonal to every joint's coefficients, shape (any, M).
            periodic: whether the motions close.
            steps: times at which the jerk may have steps [s].

        Raises:
            UsageError: the conditions leave nothing free.
            MotionError: a posture outside the limits.
        """
        self.name = family.name
        self._space = _null_space(conditions, family.functions)
        if self._space.shape[1] == 0:
            raise UsageError(
                f"rest at both ends leaves a {family.name} motion with {family.functions} functions nothing free: "
                "ask for more harmonics, frequencies, control points or a higher degree"
            )
        super().__init__(limits, demand, self._space.shape[1], family, periodic, steps)
        self._family, self._memory = family, Memory()

    def trajectory(self, x: Array) -> Combination:
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
        return self._joined(self.reach[:, None] * numbers, self.reach * gradient[0].sum(axis=1))

    def _basis(self, t: Array) -> Array:
        """Functions of the free coefficients, shape (4, K, N)."""
        kept = self._memory.find(t)
        return self._memory.keep(t, self._space.T @ self._family.basis(t)) if kept is None else kept

    def _draw(self, rng: np.random.Generator) -> Array:
        return np.asarray(self._family.draw(rng, len(self.reach)) @ self._space)


def _null_space(conditions: Array, functions: int) -> Array:
    """Orthonormal basis of the coefficients that meet the conditions, shape (functions, K)."""
    size = np.linalg.norm(conditions, axis=1, keepdims=True)
    # rows of different units count alike; a row of rounding errors is no condition
    rows = conditions[(size > DEPENDENT * size.max(initial=0.0)).ravel()]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, directions = np.linalg.svd(np.vstack([rows, np.zeros((1, functions))]))
    rank = int(np.count_nonzero(values > DEPENDENT * values.max(initial=0.0)))
    return np.asarray(directions[rank:].T)
