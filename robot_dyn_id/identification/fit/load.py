# SPDX-License-Identifier: Apache-2.0
"""First fits of an identification: the inertial parameters that load-dependent friction computes its load from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators.consistent_fit import fit_consistent
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.weighting import compute_weights_from_squares
from robot_dyn_id.signals.trials import FilteredTrials

STRENGTH = 1.0
"""Strength of the prior bodies in the first fits: they determine the load where the data do not."""


def fit_load(regressor: Regressor, trials: FilteredTrials) -> Regressor:
    """Regressor whose load is that of a first fit to the same data.

    Without load-dependent friction the bodies would take its place, and be in error by more than their uncertainty:
    they are fitted once without it, and once more with it, on the load that follows.

    The bodies of the first fit are physically consistent, so that the load is plausible in untrained poses too. Where
    the URDF has no masses, the prior is made from its geometry and rated efforts.

    Args:
        regressor: robot and terms; without load-dependent terms, or with load parameters, it is returned as it is.
        trials: training data.

    Raises:
        InputError: no rows.
    """
    if regressor.load_parameters or not any(term.signal == "load" for _, term in regressor.terms):
        return regressor
    without = regressor.with_terms([pair for pair in regressor.terms if pair[1].signal != "load"])
    first = replace(regressor, load_parameters=_fit_bodies(without, trials))
    return replace(regressor, load_parameters=_fit_bodies(first, trials))


def _fit_bodies(regressor: Regressor, trials: FilteredTrials) -> tuple[float, ...]:
    """Standard parameters of a physically consistent fit."""
    grams = Grams.from_problem(trials.problem(regressor, np.arange(len(regressor.names))))
    prior, bounded = BodyPrior.from_model(regressor.model), flag_not_negative(regressor)
    values = np.zeros(len(regressor.names))
    for _ in range(2):  # weights from the torques, then from the residuals
        weights = compute_weights_from_squares(grams.squared_residuals(values), len(values), grams.counts)
        total = grams.total(weights)
        values = fit_consistent(total, prior.scaled(prior.find_factor(total)), bounded, STRENGTH).values
    return tuple(values[: prior.bodies.size].tolist())
