# SPDX-License-Identifier: Apache-2.0
"""Convex quadratic programs over 4 x 4 positive semidefinite matrices and non-negative numbers.

    minimize x' P x / 2 + q' x   subject to   Z(k) - floor E >= 0 for every body k,   x(i) >= 0 for i bounded

The first 10 b coordinates of x are those of the symmetric matrices Z(1) ... Z(b) in `BASIS`. The method is the
primal-dual interior-point method with Nesterov-Todd scaling and Mehrotra's correction (Vandenberghe, The CVXOPT linear
and quadratic cone program solvers, 2010): 10 to 30 steps, each with one Cholesky factorization of P and a diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.kernels.cholesky import CholeskyFactor

MAX_STEPS = 80
"""Maximum number of steps; 10 to 30 are typical."""

MAX_STEP_SHARE = 0.99
"""Share of the step to the boundary of the cones that is taken."""

CENTERING_EXPONENT = 2
"""Exponent of the expected reduction of the gap in Mehrotra's target; with 3 (as in CVXOPT) 2 to 8 % more steps are
taken."""

HESSIAN_REGULARIZATION = 1e-13
"""Added to the diagonal of a Hessian, as a share of it, so that it stays positive definite in spite of rounding."""

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


_FLAT = BASIS.reshape(10, 16)


def convert_to_coordinates(matrices: Array) -> Array:
    """Coordinates of symmetric matrices in `BASIS`, shape (..., 4, 4) -> (..., 10)."""
    return np.asarray(matrices.reshape(*matrices.shape[:-2], 16) @ _FLAT.T)


def convert_to_matrices(coordinates: Array) -> Array:
    """Symmetric matrices of coordinates in `BASIS`, shape (..., 10) -> (..., 4, 4)."""
    return np.asarray((coordinates @ _FLAT).reshape(*coordinates.shape[:-1], 4, 4))


_IDENTITY = convert_to_coordinates(np.eye(4))


@dataclass(frozen=True)
class ConeProgram:
    """A program as above.

    Elements of the product of the cones, and of its dual, are vectors of 10 b coordinates of matrices and l numbers.

    Attributes:
        quadratic: P, positive definite, shape (c, c).
        linear: q, shape (c,).
        bodies: number of matrices b.
        bounded: indices of the coordinates that are not negative, from 10 b on, shape (l,).
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
        workspace = np.empty((2, *self.quadratic.shape))
        x, s, z = self._start(workspace)
        size = max(1.0, float(np.abs(self.linear).max(initial=0.0)))
        for _ in range(MAX_STEPS):
            gap = float(s @ z)
            dual_residual = self.quadratic @ x + self.linear - self._expand(z)
            primal_residual = self._room(x) - s
            if (
                gap <= tolerance
                and np.abs(dual_residual).max() <= 1e-9 * size
                and primal_residual @ primal_residual <= 1e-20 * max(1.0, float(s @ s))
            ):
                break
            try:
                step = _Newton(self, s, z, workspace).step(dual_residual, primal_residual)
            except np.linalg.LinAlgError:
                break
            if step is None:
                break
            dx, ds, dz, length = step
            x, s, z = x + length * dx, s + length * ds, z + length * dz
            if length < MIN_PROGRESS:
                break
        return x, z[self.inertial :]

    @property
    def inertial(self) -> int:
        """Number of the coordinates of matrices, 10 b."""
        return 10 * self.bodies

    @cached_property
    def in_cones(self) -> Integers:
        """Coordinates of x that the cones constrain, shape (10 b + l,)."""
        return np.append(np.arange(self.inertial), self.bounded)

    @cached_property
    def identity(self) -> Array:
        """The identity element of the cones, shape (10 b + l,)."""
        return np.append(np.tile(_IDENTITY, self.bodies), np.ones(len(self.bounded)))

    @cached_property
    def _least(self) -> Array:
        """The floor of every element, shape (10 b + l,)."""
        return np.append(np.tile(self.floor * _IDENTITY, self.bodies), np.zeros(len(self.bounded)))

    def smallest(self, elements: Array, scale: Array | None = None) -> float:
        """Smallest eigenvalue or number of some elements; infinite if there is none.

        Args:
            elements: the elements, shape (k, 10 b + l).
            scale: factor of the rows and columns of the matrices, shape (b, 4); None: 1.
        """
        least = float(elements[:, self.inertial :].min(initial=np.inf))
        if not self.bodies:
            return least
        matrices = convert_to_matrices(elements[:, : self.inertial].reshape(len(elements), self.bodies, 10))
        if scale is not None:
            matrices *= scale[:, :, None] * scale[:, None, :]
        return min(least, float(np.linalg.eigvalsh(matrices).min()))

    def _start(self, workspace: Array) -> tuple[Array, Array, Array]:
        """Start of the iteration: minimum with a unit weight on the bounds, moved into the cones."""
        hessian = workspace[0]
        hessian[:] = self.quadratic
        hessian[self.in_cones, self.in_cones] += 1.0
        x = _Equations(workspace).solve(self._expand(self._least) - self.linear)
        s = self._room(x)
        s, z = (
            point if least > 0.0 else point + (1.0 - least) * self.identity
            for point, least in ((s, self.smallest(s[None])), (-s, self.smallest(-s[None])))
        )
        return x, s, z

    def _room(self, x: Array) -> Array:
        """Elements that the program keeps in the cones."""
        return np.asarray(x[self.in_cones] - self._least)

    def _expand(self, z: Array) -> Array:
        """Adjoint of `_room`, shape (c,)."""
        out = np.zeros(len(self.linear))
        out[self.in_cones] = z
        return out


class _Newton:
    """One predictor-corrector step of a program at (s, z) inside the cones."""

    def __init__(self, program: ConeProgram, s: Array, z: Array, workspace: Array) -> None:
        """Scale the cones so that s and z become the same diagonal, and factorize the Hessian.

        Args:
            program: the program.
            s: an element inside the cones.
            z: one of their dual.
            workspace: memory of the Hessian and its factor, shape (2, c, c).

        Raises:
            LinAlgError: rounding has moved s or z out of the cones, or the Hessian is not positive definite.
        """
        self.program = program
        split = program.inertial
        numbers_s, numbers_z = s[split:], z[split:]
        if not (np.all(numbers_s > 0.0) and np.all(numbers_z > 0.0)):
            raise np.linalg.LinAlgError("numbers outside the cone")
        self.width = np.sqrt(numbers_s / numbers_z)
        hessian = workspace[0]
        hessian[:] = program.quadratic
        hessian[program.bounded, program.bounded] += numbers_z / numbers_s
        self.sizes = np.empty((program.bodies, 4))
        diagonal = np.empty((program.bodies, 10))
        if program.bodies:
            matrices = convert_to_matrices(np.array([s[:split], z[:split]]).reshape(2, program.bodies, 10))
            lower_s, lower_z = np.linalg.cholesky(matrices)
            left, self.sizes, _ = np.linalg.svd(np.swapaxes(lower_z, 1, 2) @ lower_s)
            inverse = np.swapaxes(lower_z @ left, 1, 2) / np.sqrt(self.sizes)[:, :, None]
            # matrix R of Z -> inverse Z inverse' in coordinates
            product = inverse[:, :, None, :, None] * inverse[:, None, :, None, :]
            self.scaling = _FLAT @ product.reshape(-1, 16, 16) @ _FLAT.T
            self.unscaling = np.swapaxes(self.scaling, 1, 2)
            for body, block in enumerate(self.unscaling @ self.scaling):
                of_body = slice(10 * body, 10 * body + 10)
                hessian[of_body, of_body] += block
            diagonal = self.sizes @ _FLAT[:, ::5].T
        self.middle = np.append(diagonal, np.sqrt(numbers_s * numbers_z))
        self.equations = _Equations(workspace)

    def step(self, dual_residual: Array, primal_residual: Array) -> tuple[Array, Array, Array, float] | None:
        """Directions of x, s and z, and the length of the step; None if they are not finite."""
        middle, program, split = self.middle, self.program, self.program.inertial
        primal = self._scale(primal_residual)
        count = 4 * program.bodies + len(self.width)
        gap = float(middle @ middle)
        _, s, z = self._direction(dual_residual, primal, -middle, refine=False)  # for its length alone
        length = min(1.0, self._longest(s, z))
        after = float((middle + length * s) @ (middle + length * z))
        target = gap / count * min(1.0, max(0.0, after / gap)) ** CENTERING_EXPONENT
        numbers = middle[split:]
        correction = np.empty(len(middle))
        correction[split:] = (target - s[split:] * z[split:]) / numbers
        if program.bodies:
            matrices_s, matrices_z = convert_to_matrices(np.array([s[:split], z[:split]]).reshape(2, -1, 10))
            product = matrices_s @ matrices_z
            product = 0.5 * (product + np.swapaxes(product, 1, 2))
            sums = 0.5 * (self.sizes[:, :, None] + self.sizes[:, None, :])
            correction[:split] = convert_to_coordinates((target * np.eye(4) - product) / sums).ravel()
        dx, s, z = self._direction(dual_residual, primal, correction - middle)
        if not np.all(np.isfinite(dx)):
            return None
        length = min(1.0, MAX_STEP_SHARE * self._longest(s, z))
        return dx, dx[program.in_cones] + primal_residual, self._unscale(z), length

    def _direction(
        self, dual_residual: Array, primal: Array, wanted: Array, *, refine: bool = True
    ) -> tuple[Array, Array, Array]:
        """Direction of x, and the scaled ones of s and z, whose sum is `wanted`.

        Args:
            dual_residual: residual of the gradient, shape (c,).
            primal: scaled residual of s, shape (10 b + l,).
            wanted: sum of the scaled directions, shape (10 b + l,).
            refine: whether the solution of the equations is refined.
        """
        program = self.program
        right = program._expand(self._unscale(wanted - primal)) - dual_residual
        dx = self.equations.solve(right, refine=refine)
        ds = self._scale(dx[program.in_cones]) + primal
        return dx, ds, wanted - ds

    def _scale(self, s: Array) -> Array:
        """Scaled direction of s."""
        split = self.program.inertial
        out = np.empty(len(s))
        if split:
            out[:split] = (self.scaling @ s[:split].reshape(-1, 10, 1)).ravel()
        out[split:] = s[split:] / self.width
        return out

    def _unscale(self, z: Array) -> Array:
        """Direction of z from the scaled one."""
        split = self.program.inertial
        out = np.empty(len(z))
        if split:
            out[:split] = (self.unscaling @ z[:split].reshape(-1, 10, 1)).ravel()
        out[split:] = z[split:] / self.width
        return out

    def _longest(self, *steps: Array) -> float:
        """Longest step along scaled directions within the cones."""
        split = self.program.inertial
        relative = np.array(steps)
        relative[:, split:] /= self.middle[split:]
        return 1.0 / max(1e-300, -self.program.smallest(relative, scale=1.0 / np.sqrt(self.sizes)))


class _Equations:
    """Equations with a positive-definite matrix."""

    def __init__(self, workspace: Array) -> None:
        """Factorize a matrix; neither the rounding of a Cholesky factor nor its ridge depends on the units.

        Args:
            workspace: the matrix, and memory for its factor, shape (2, c, c). To allocate both at each step would take
                longer than to fill them.

        Raises:
            LinAlgError: the matrix is not positive definite.
        """
        self.matrix, regularized = workspace
        regularized[:] = self.matrix
        regularized.ravel()[:: len(regularized) + 1] *= 1.0 + HESSIAN_REGULARIZATION
        self.factor = CholeskyFactor.from_matrix(regularized, overwrite=True)

    def solve(self, right: Array, *, refine: bool = True) -> Array:
        """Solution of the equations, shape (c,).

        Args:
            right: right side, shape (c,).
            refine: whether the solution is corrected once by its residual.
        """
        found = self.factor.solve(right)
        return found + self.factor.solve(right - self.matrix @ found) if refine else found
