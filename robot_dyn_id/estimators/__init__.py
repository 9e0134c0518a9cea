"""Estimators under one contract. A new one is one file and one line here."""

from robot_dyn_id.estimators.consistent import Consistent
from robot_dyn_id.estimators.contract import Estimate, Estimator
from robot_dyn_id.estimators.least_squares import (
    GeneralizedLeastSquares,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)

ESTIMATORS: dict[str, type[Estimator]] = {
    estimator.name: estimator
    for estimator in (WeightedLeastSquares, Consistent, GeneralizedLeastSquares, OrdinaryLeastSquares)
}
"""Estimators by the name that configurations use."""

__all__ = [
    "ESTIMATORS",
    "Consistent",
    "Estimate",
    "Estimator",
    "GeneralizedLeastSquares",
    "OrdinaryLeastSquares",
    "WeightedLeastSquares",
]
