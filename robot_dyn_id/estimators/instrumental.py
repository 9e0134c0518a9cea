"""Instrumental variables: the errors of noisy positions are in the columns, those of a simulated robot are not.

IDIM-IV (Janot, Vandanjon and Gautier 2014): theta = (Z' W)^-1 Z' tau, with the columns Z of a simulated robot that has
the parameters of the step before and follows the same reference under the same controller. Noise of W is not in Z, so
that it does not bias the estimate as it biases least squares, where it is in W' W.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from robot_dyn_id.closed_loop import UNTOLD, Controller
from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.fitting import check_options, conclude, factors_of, inverse_rms, sandwich
from robot_dyn_id.estimators.replayed import (
    SETTLED,
    Replayed,
    moved,
    require,
    simulate,
    started,
    within,
)
from robot_dyn_id.problem import LinearProblem

WEAKEST = 1e-3
"""Least agreement of instruments with any direction of the motion, 1 where they are the same."""


@dataclass(frozen=True)
class Instrumental:
    """`weighted` with the columns of a simulated robot as instruments.

    The covariance is that of `weighted`, a sandwich, with the instruments in it.

    Attributes:
        controller: what moved the robot.
        iterations: simulations after which it is given up.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    controller: Controller = UNTOLD
    iterations: int = 20
    autoregressive_order: int = 6

    name: ClassVar[str] = "instrumental"
    uses_prior: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a negative order, no iteration at all.
        """
        check_options(self.name, self.autoregressive_order, iterations=self.iterations)

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is told, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: it does not follow, the simulated motion tells nothing of the recorded one, or nothing
                settles.
        """
        plain = factors_of(problem)
        seen = plain.solve(np.ones(len(plain.counts)))
        origin = require(self.name, problem, self.controller)
        rows, values, weights = started(problem, origin, seen)
        for _ in range(self.iterations):
            replayed, notes = simulate(problem, origin, self.controller, values, rows, weights)
            rows = Factors.of(replayed.measured)
            before, weights = values, inverse_rms(rows, values)
            values, bread = self._solve(replayed, within(rows, weights, seen).root, weights)
            if moved(values - before, rows, weights) <= SETTLED:
                break
        else:
            raise ConvergenceError(
                f"instrumental: the parameters still move after {self.iterations} simulations: check the controller's "
                "gains, or give more iterations"
            )
        noise, covariance = sandwich(
            replayed.measured, values, bread, weights, self.autoregressive_order, replayed.simulated
        )
        found = conclude(problem, rows, seen, replace(seen, values=values), covariance, noise)
        return replace(found, notes=notes)

    @staticmethod
    def _solve(replayed: Replayed, root: Array, weights: Array) -> tuple[Array, Array]:
        """The estimate, and G of G sum w^2 Z' tau, in the directions that the measured columns show.

        Raises:
            ConvergenceError: the instruments do not tell a direction that the motion shows.
        """
        size = len(root)
        cross, moment = np.zeros((size, size)), np.zeros(size)
        pairs = zip(replayed.measured.tiles(), replayed.simulated.tiles(), strict=True)
        for tile, other in pairs:
            support, square = replayed.measured.supports[tile.joint], weights[tile.joint] ** 2
            products = square * (other.block[:-1] @ tile.block.T)
            cross[np.ix_(support, support)] += products[:, :-1]
            moment[support] += products[:, -1]
        seen = root.T @ cross @ root
        if len(seen) and not np.linalg.svd(seen, compute_uv=False)[-1] > WEAKEST:
            raise ConvergenceError(
                "instrumental: the simulated motion is too unlike the recorded one: check the gains of the controller, "
                "and give the recording its reference"
            )
        bread = root @ np.linalg.solve(seen, root.T)
        return bread @ moment, bread
