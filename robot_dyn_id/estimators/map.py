"""Maximum a posteriori: least squares that also believe in what was known before."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors, Solution
from robot_dyn_id.estimators.fitting import check_options, conclude, whitened
from robot_dyn_id.problem import LinearProblem


@dataclass(frozen=True)
class MaximumAPosteriori:
    """`generalized` with a Gaussian prior, |W theta - tau|^2 + |A theta - b|^2, both of unit variance.

    The prior is the problem's: of the URDF or of an earlier parameter set, see `Prior.rows`. What the data do not show
    stays at it. The estimate is biased towards it, and the covariance, the posterior's, is right if the prior is.

    Attributes:
        spread: standard deviation of a parameter before the data, as a share of its size on this robot.
        autoregressive_order: past rows that a residual is predicted from.
        passes: whitening passes.
    """

    spread: float = 0.25
    autoregressive_order: int = 6
    passes: int = 2

    name: ClassVar[str] = "map"
    uses_prior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a spread that is not positive, a negative order, no pass at all.
        """
        check_options(self.name, self.autoregressive_order, passes=self.passes)
        if not 0.0 < self.spread < math.inf:
            raise UsageError(f"map: spread must be positive, not {self.spread}")

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: the problem has no prior.
        """
        if problem.prior is None:
            raise UsageError("map: there is no prior: complete the masses of the URDF, or use another estimator")
        rows, center = problem.prior.rows(self.spread), problem.prior.center

        def solve(white: Factors, weights: Array) -> Solution:
            stack = white.stack(weights, rows)
            stack[:, -1] -= stack[:, :-1] @ center  # so that what rounding hides stays at the prior, not at zero
            solution = Solution.of(stack)
            return replace(solution, values=center + solution.values)

        found = whitened(problem, self.autoregressive_order, self.passes, "qr", solve)
        return conclude(
            problem,
            found.plain,
            found.ordinary,
            found.solution,
            found.solution.inverse,
            found.noise,
            drawn_to=f"{problem.prior.source}, give or take {self.spread:.0%} of each parameter's size",
        )
