"""Output error: the torques of a simulated robot are fitted to the measured ones.

DIDIM (Gautier, Janot and Vandanjon 2013): the robot is simulated under its controller along the reference, and only
torques are compared, so that noise of the measured positions plays no part. In closed loop the simulated motion hardly
depends on the parameters, and the slopes of the simulated torques are the columns of the simulated motion: each
Gauss-Newton step is a least squares problem of the measured torques on simulated columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from robot_dyn_id.closed_loop import UNTOLD, Controller
from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.fitting import check_options, conclude, factors_of, reweighted, sandwich
from robot_dyn_id.estimators.replayed import check_iterations, require, settled, simulate
from robot_dyn_id.problem import LinearProblem


@dataclass(frozen=True)
class OutputError:
    """`weighted` on the columns of a simulated robot that the estimate itself belongs to.

    The covariance is that of `weighted` on those columns, a sandwich.

    Attributes:
        controller: what moved the robot.
        iterations: simulations after which it is given up.
        autoregressive_order: past rows that a residual is predicted from; 0 takes residuals for white.
    """

    controller: Controller = UNTOLD
    iterations: int = 20
    autoregressive_order: int = 6

    name: ClassVar[str] = "output_error"
    uses_prior: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: a negative order, no iteration at all.
        """
        check_options(self.autoregressive_order)
        check_iterations(self.name, self.iterations)

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            UsageError: no controller is told, or one of other joints.
            InputError: the robot cannot be simulated.
            ConvergenceError: it does not follow, or nothing settles.
        """
        rows = factors_of(problem)
        origin = require(self.name, problem, self.controller)
        _, solution, weights = reweighted(rows)
        for _ in range(self.iterations):
            before = solution.values
            replayed, notes = simulate(problem, origin, self.controller, before, rows, weights)
            rows = Factors.of(replayed.simulated)
            ordinary, solution, weights = reweighted(rows)
            if settled(solution.values - before, rows, weights):
                break
        else:
            raise ConvergenceError(
                f"output_error: the parameters still move after {self.iterations} simulations: check the controller's "
                "gains, or give more iterations"
            )
        noise, covariance = sandwich(
            replayed.simulated, solution.values, solution.inverse, weights, self.autoregressive_order
        )
        return replace(conclude(problem, rows, ordinary, solution, covariance, noise), notes=notes)
