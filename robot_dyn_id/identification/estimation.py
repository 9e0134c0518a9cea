# SPDX-License-Identifier: Apache-2.0
"""One estimation as the settings want it: prior, estimator, bootstrap, essential parameters."""

from __future__ import annotations

from collections.abc import Callable

from robot_dyn_id.dynamics.base_parameters import BaseParameters
from robot_dyn_id.dynamics.prior import Prior, earlier_prior, nominal_prior
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.bootstrap import bootstrap_estimate
from robot_dyn_id.estimators.essential import Essential, essential, reduce_to_essential
from robot_dyn_id.identification.settings import Settings


def estimated(
    problem: LinearProblem, base: BaseParameters, settings: Settings, progress: Callable[[str], None]
) -> tuple[BaseParameters, Estimate, Essential | None]:
    """Base parameters and their estimate, with the bootstrap and the elimination that were asked for."""
    estimate = settings.estimator.fit(problem)
    if settings.bootstrap:
        progress(f"estimating {settings.bootstrap} times more (bootstrap)")
        estimate = bootstrap_estimate(settings.estimator, problem, estimate, settings.bootstrap)
    if not settings.essential:
        return base, estimate, None
    found = essential(estimate, base.names, settings.essential)
    return *reduce_to_essential(base, estimate, found), found


def known_before(settings: Settings, regressor: Regressor, base: BaseParameters) -> Prior | None:
    """The earlier parameter set if one is given, else the URDF if it has masses."""
    model = regressor.model
    if settings.prior is not None:
        return earlier_prior(settings.prior, regressor, base.mapping)
    return nominal_prior(model, base.mapping) if model.inertial_parameters.any() else None
