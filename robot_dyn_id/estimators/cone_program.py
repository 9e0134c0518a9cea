# SPDX-License-Identifier: Apache-2.0
"""Convex quadratic programs over 4 x 4 positive semidefinite matrices and non-negative numbers.

    minimize x' P x / 2 + q' x   subject to   Z(k) - floor E >= 0 for every body k,   x(i) >= 0 for i bounded

The first 10 b coordinates of x are those of the symmetric matrices Z(1) ... Z(b) in `BASIS`. The method is the
primal-dual interior-point method with Nesterov-Todd scaling and Mehrotra's correction (Vandenberghe, The CVXOPT linear
and quadratic cone program solvers, 2010): 10 to 30 steps, each with one Cholesky factorization of P and a diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from robot_dyn_id.arrays import Array, Integers

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_STEPS = 80
"""Maximum number of steps; 10 to 30 are typical."""

MAX_STEP_SHARE = 0.99
"""Share of the step to the boundary of the cones that is taken."""

HESSIAN_REGULARIZATION = 1e-13
"""Added to the unit diagonal of a Hessian, so that it stays positive definite in spite of rounding."""

MIN_PROGRESS = 1e-9
"""Steps shorter than this end the iteration: rounding prevents further progress."""


def _symmetric_basis() -> Array:
    """Orthonormal basis of the symmetric 4 x 4 matrices, shape (10, 4, 4)."""
    basis = []
    for i in range(4):
        for j in range(i + 1):
            element = np.zeros((4, 4))
            element[i, j] = element[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(element)
    return np.array(basis)


BASIS = _symmetric_basis()


def matrix_coordinates(matrices: Array) -> Array:
    """Coordinates of symmetric matrices in `BASIS`, shape (..., 4, 4) -> (..., 10)."""
    return np.asarray(np.einsum("...ij,sij->...s", matrices, BASIS))


@dataclass(frozen=True)
class ConePoint:
    """Elements of the product of the cones, or of its dual: matrices (b, 4, 4) and numbers (l,)."""

    matrices: Array
    numbers: Array

    @classmethod
    def identity(cls, bodies: int, numbers: int) -> Self:
        """The identity element."""
        return cls(np.tile(np.eye(4), (bodies, 1, 1)), np.ones(numbers))

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue or number; infinite if there is none."""
        values = np.linalg.eigvalsh(self.matrices).ravel()
        return float(min(values.min(initial=np.inf), self.numbers.min(initial=np.inf)))

    def plus(self, other: ConePoint, factor: float = 1.0) -> ConePoint:
        """This point plus a multiple of another one."""
        return ConePoint(self.matrices + factor * other.matrices, self.numbers + factor * other.numbers)

    def dot(self, other: ConePoint) -> float:
        """Inner product."""
        return float(np.sum(self.matrices * other.matrices) + self.numbers @ other.numbers)


@dataclass(frozen=True)
class ConeProgram:
    """A program as above.

    Attributes:
        quadratic: P, positive definite, shape (c, c).
        linear: q, shape (c,).
        bodies: number of matrices b.
        bounded: indices of the coordinates that are not negative, shape (l,).
        floor: smallest eigenvalue of the matrices.
    """

    quadratic: Array
    linear: Array
    bodies: int
    bounded: Integers
    floor: float

    def solve(self, tolerance: float) -> tuple[Array, Array]:
        """Solve the program.

        Args:
            tolerance: duality gap at which the iteration ends. It also ends where rounding prevents further progress.

        Returns:
            The coordinates, shape (c,), which may violate bounds by rounding, and the multipliers of the bounds, (l,).
        """
        x, s, z = self._start()
        for _ in range(MAX_STEPS):
            gap = s.dot(z)
            dual_residual = self.quadratic @ x + self.linear - self._expand(z)
            primal_residual = self._room(x).plus(s, -1.0)
            size = max(1.0, float(np.abs(self.linear).max(initial=0.0)))
            if (
                gap <= tolerance
                and np.abs(dual_residual).max() <= 1e-9 * size
                and primal_residual.dot(primal_residual) <= 1e-20 * max(1.0, s.dot(s))
            ):
                break
            try:
                step = _Newton(self, s, z).step(dual_residual, primal_residual)
            except LinAlgError:
                break
            if step is None:
                break
            dx, ds, dz, length = step
            x, s, z = x + length * dx, s.plus(ds, length), z.plus(dz, length)
            if length < MIN_PROGRESS:
                break
        return x, z.numbers

    def _start(self) -> tuple[Array, ConePoint, ConePoint]:
        """Start of the iteration: minimum with a unit weight on the bounds, moved into the cones."""
        unit = ConePoint.identity(self.bodies, len(self.bounded))
        floor = ConePoint(self.floor * unit.matrices, 0.0 * unit.numbers)
        hessian = self.quadratic.copy()
        at = np.append(np.arange(10 * self.bodies), self.bounded)
        hessian[at, at] += 1.0
        x = _solve(hessian)(self._expand(floor) - self.linear)
        s = self._room(x)
        z = ConePoint(-s.matrices, -s.numbers)
        s, z = (point if point.smallest > 0.0 else point.plus(unit, 1.0 - point.smallest) for point in (s, z))
        return x, s, z

    def _room(self, x: Array) -> ConePoint:
        """Elements that the program keeps in the cones."""
        matrices = np.einsum("ks,sij->kij", x[: 10 * self.bodies].reshape(-1, 10), BASIS)
        return ConePoint(matrices - self.floor * np.eye(4), x[self.bounded])

    def _expand(self, z: ConePoint) -> Array:
        """Adjoint of `_room`, shape (c,)."""
        out = np.zeros(len(self.linear))
        out[: 10 * self.bodies] = matrix_coordinates(z.matrices).ravel()
        out[self.bounded] += z.numbers
        return out


class _Newton:
    """One predictor-corrector step of a program at (s, z) inside the cones."""

    def __init__(self, program: ConeProgram, s: ConePoint, z: ConePoint) -> None:
        """Scale the cones so that s and z become the same diagonal, and factorize the Hessian.

        Raises:
            LinAlgError: rounding has moved s or z out of the cones, or the Hessian is not positive definite.
        """
        self.program = program
        lower_s, lower_z = np.linalg.cholesky(s.matrices), np.linalg.cholesky(z.matrices)
        left, sizes, _ = np.linalg.svd(np.swapaxes(lower_z, 1, 2) @ lower_s)
        self.sizes = sizes
        self.inverse = np.swapaxes(lower_z @ left, 1, 2) / np.sqrt(sizes)[:, :, None]
        if not np.all((s.numbers > 0.0) & (z.numbers > 0.0)):
            raise LinAlgError("numbers outside the cone")
        self.width = np.sqrt(s.numbers / z.numbers)
        self.middle = ConePoint(sizes[:, :, None] * np.eye(4), np.sqrt(s.numbers * z.numbers))
        half = np.einsum("kij,sjl,kml->ksim", self.inverse, BASIS, self.inverse)
        blocks = np.einsum("ksij,ktij->kst", half, half)
        hessian = program.quadratic.copy()
        for body, block in enumerate(blocks):
            of_body = slice(10 * body, 10 * body + 10)
            hessian[of_body, of_body] += block
        hessian[program.bounded, program.bounded] += z.numbers / s.numbers
        self.solve = _solve(hessian)

    def step(
        self, dual_residual: Array, primal_residual: ConePoint
    ) -> tuple[Array, ConePoint, ConePoint, float] | None:
        """Directions of x, s and z, and the length of the step; None if they are not finite."""
        middle = self.middle
        count = 4 * len(middle.matrices) + len(middle.numbers)
        gap = middle.dot(middle)
        affine = ConePoint(-middle.matrices, -middle.numbers)
        _, s, z = self._direction(dual_residual, primal_residual, affine)
        length = min(1.0, self._longest(s), self._longest(z))
        after = middle.plus(s, length).dot(middle.plus(z, length))
        target = gap / count * min(1.0, max(0.0, after / gap)) ** 3
        product = 0.5 * (s.matrices @ z.matrices + z.matrices @ s.matrices)
        identity = np.eye(4)
        sums = 0.5 * (self.sizes[:, :, None] + self.sizes[:, None, :])
        correction = ConePoint(
            (target * identity - product) / sums - middle.matrices,
            (target - s.numbers * z.numbers) / middle.numbers - middle.numbers,
        )
        dx, s, z = self._direction(dual_residual, primal_residual, correction)
        if not np.all(np.isfinite(dx)):
            return None
        length = min(1.0, MAX_STEP_SHARE * min(self._longest(s), self._longest(z)))
        root = np.linalg.inv(self.inverse)
        ds = ConePoint(root @ s.matrices @ np.swapaxes(root, 1, 2), s.numbers * self.width)
        return dx, ds, self._unscale(z), length

    def _direction(
        self, dual_residual: Array, primal_residual: ConePoint, wanted: ConePoint
    ) -> tuple[Array, ConePoint, ConePoint]:
        """Direction of x, and the scaled ones of s and z, whose sum is `wanted`."""
        program = self.program
        rest = wanted.plus(self._scale(primal_residual), -1.0)
        dx = self.solve(program._expand(self._unscale(rest)) - dual_residual)
        ds = self._scale(self._change(dx).plus(primal_residual))
        return dx, ds, wanted.plus(ds, -1.0)

    def _change(self, dx: Array) -> ConePoint:
        """Change of those elements along a direction of x."""
        program = self.program
        matrices = np.einsum("ks,sij->kij", dx[: 10 * program.bodies].reshape(-1, 10), BASIS)
        return ConePoint(matrices, dx[program.bounded])

    def _scale(self, s: ConePoint) -> ConePoint:
        """Scaled direction of s."""
        turned = np.swapaxes(self.inverse, 1, 2)
        return ConePoint(self.inverse @ s.matrices @ turned, s.numbers / self.width)

    def _unscale(self, z: ConePoint) -> ConePoint:
        """Direction of z from the scaled one."""
        turned = np.swapaxes(self.inverse, 1, 2)
        return ConePoint(turned @ z.matrices @ self.inverse, z.numbers / self.width)

    def _longest(self, step: ConePoint) -> float:
        """Longest step along a scaled direction within the cones."""
        root = 1.0 / np.sqrt(self.sizes)
        relative = ConePoint(step.matrices * root[:, :, None] * root[:, None, :], step.numbers / self.middle.numbers)
        return 1.0 / max(1e-300, -relative.smallest)


def _solve(hessian: Array) -> Callable[[Array], Array]:
    """Solver of equations with a positive-definite matrix, refined once.

    Raises:
        LinAlgError: the matrix is not positive definite.
    """
    size = 1.0 / np.sqrt(np.diag(hessian))
    unit = hessian * size * size[:, None]
    factor = cho_factor(unit + HESSIAN_REGULARIZATION * np.eye(len(size)))

    def solve(right: Array) -> Array:
        scaled = size * right
        found = cho_solve(factor, scaled)
        found += cho_solve(factor, scaled - unit @ found)
        return np.asarray(size * found)

    return solve
