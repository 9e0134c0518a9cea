# SPDX-License-Identifier: Apache-2.0
"""Estimators under one contract. A new one is one file and one line here."""

from robot_dyn_id.estimators.consistent import Consistent
from robot_dyn_id.estimators.constants.ga import Genetic
from robot_dyn_id.estimators.constants.lm import LevenbergMarquardt
from robot_dyn_id.estimators.constants.map_constants import MaximumAPosterioriConstants
from robot_dyn_id.estimators.constants.pso import ParticleSwarm
from robot_dyn_id.estimators.constants.pso_lm import SwarmThenMarquardt
from robot_dyn_id.estimators.constants.separable import Separable
from robot_dyn_id.estimators.contract import Estimate, Estimator
from robot_dyn_id.estimators.least_squares import (
    GeneralizedLeastSquares,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from robot_dyn_id.estimators.map import MaximumAPosteriori
from robot_dyn_id.estimators.period_averaged import PeriodAveraged
from robot_dyn_id.estimators.ridge import Ridge
from robot_dyn_id.estimators.robust import Robust
from robot_dyn_id.estimators.simulated.closed_loop_output_error import ClosedLoopOutputError
from robot_dyn_id.estimators.simulated.instrumental import Instrumental
from robot_dyn_id.estimators.simulated.output_error import OutputError
from robot_dyn_id.estimators.stepwise.estimator import Stepwise
from robot_dyn_id.estimators.total_least_squares import TotalLeastSquares

ESTIMATORS: dict[str, type[Estimator]] = {
    estimator.name: estimator
    for estimator in (
        WeightedLeastSquares,
        Consistent,
        GeneralizedLeastSquares,
        OrdinaryLeastSquares,
        Robust,
        MaximumAPosteriori,
        MaximumAPosterioriConstants,
        Ridge,
        Separable,
        Stepwise,
        Instrumental,
        OutputError,
        ClosedLoopOutputError,
        TotalLeastSquares,
        PeriodAveraged,
        LevenbergMarquardt,
        ParticleSwarm,
        SwarmThenMarquardt,
        Genetic,
    )
}
"""Estimators by the name that configurations use."""

PRIOR_USERS = ", ".join(name for name, estimator in ESTIMATORS.items() if estimator.uses_prior)
"""Names of those that use a prior."""

__all__ = [
    "ESTIMATORS",
    "PRIOR_USERS",
    "ClosedLoopOutputError",
    "Consistent",
    "Estimate",
    "Estimator",
    "GeneralizedLeastSquares",
    "Genetic",
    "Instrumental",
    "LevenbergMarquardt",
    "MaximumAPosteriori",
    "MaximumAPosterioriConstants",
    "OrdinaryLeastSquares",
    "OutputError",
    "ParticleSwarm",
    "PeriodAveraged",
    "Ridge",
    "Robust",
    "Separable",
    "Stepwise",
    "SwarmThenMarquardt",
    "TotalLeastSquares",
    "WeightedLeastSquares",
]
