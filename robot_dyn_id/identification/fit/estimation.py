# SPDX-License-Identifier: Apache-2.0
"""Estimation of a model from filtered trials: prior, estimator, bootstrap, essential parameters, diagnosis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from robot_dyn_id.dynamics.body_prior import has_placeholder_masses
from robot_dyn_id.dynamics.consistency import report_negative_terms
from robot_dyn_id.dynamics.prior import Prior, check_prior_joints, make_earlier_prior, make_nominal_prior
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.bootstrap import bootstrap_estimate
from robot_dyn_id.estimators.essential import Essential, eliminate_parameters, reduce_to_essential
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.health import check_motion_content
from robot_dyn_id.identification.diagnosis.residuals import examine_residuals
from robot_dyn_id.identification.diagnosis.zeros import add_deviations, center_rows
from robot_dyn_id.identification.fit.fallback import fit_or_fall_back
from robot_dyn_id.identification.fit.identifiability import find_inseparable
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import BaseParameters, ParameterSet
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED

NOT_EXCITED = Definition(
    "not_excited",
    Section.ESTIMATES,
    "warning",
    "The motion does not excite some base parameters; they stay at the prior, or at zero without one. Information "
    "where no motion separates them, as rounded angles of the robot description leave parameters apart that are "
    "one for exact angles.",
    "record a motion of the joints that the report names for each parameter",
    lowers=dict.fromkeys(("computed_torque", "forward_simulation", "payload"), LIMITED),
)

BOUND_DEVIATIONS = 1e-3
"""Distance from zero, in standard deviations, up to which a parameter is at a bound of zero."""


@dataclass(frozen=True)
class Fit:
    """Result of an estimation.

    Attributes:
        model: the identified model.
        estimator: name of the estimator that was used.
        essential: result of the backward elimination, if one was requested.
        findings: findings about the estimate and the training data.
    """

    model: IdentifiedModel
    estimator: str
    essential: Essential | None
    findings: tuple[Finding, ...]


def fit_model(
    trials: FilteredTrials, regressor: Regressor, base: BaseParameters, settings: Settings, progress: Progress
) -> Fit:
    """Estimate base parameters, with the bootstrap and the elimination that the settings request.

    Args:
        trials: training data.
        regressor: robot and terms.
        base: their base parameters.
        settings: choices of the identification.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: too few rows.
        ConvergenceError: more than a tenth of the draws of a bootstrap do not converge.
    """
    stage = Stage(f"estimating {len(base.names)} base parameters ({settings.estimator.name})")
    progress(stage)
    prior = choose_prior(settings, regressor, base)
    problem = trials.problem(regressor, base.independent, prior, repeated=True)
    if trials.zeros is not None:
        problem = center_rows(problem, trials.zeros)
    estimate, estimator = fit_or_fall_back(settings.estimator, _with_counted_passes(problem, stage, progress))
    if settings.bootstrap:
        estimate = bootstrap_estimate(estimator, problem, estimate, settings.bootstrap, progress)
    if trials.zeros is not None:
        estimate = add_deviations(estimate, regressor, base, trials.zeros)
    model, elimination = _eliminate(IdentifiedModel(estimate.regressor or regressor, base, estimate), settings)
    return Fit(
        model, estimator.name, elimination, (*_diagnose(model, trials, settings), *_compare_with_prior(model, prior))
    )


def _with_counted_passes(problem: LinearProblem, stage: Stage, progress: Progress) -> LinearProblem:
    """The same problem, of which every pass over the data is reported: the measure of how far an iteration has come."""
    numbers = count(1)

    def tiles() -> Iterator[Tile]:
        progress(replace(stage, detail=f"pass {next(numbers)} over the data"))
        return problem.tiles()

    return replace(problem, tiles=tiles)


def fit_fold(trials: FilteredTrials, regressor: Regressor, base: BaseParameters, settings: Settings) -> IdentifiedModel:
    """Estimate base parameters as `fit_model` does, for a prediction alone: without bootstrap and diagnosis.

    Args:
        trials: training data of the fold.
        regressor: robot and terms.
        base: their base parameters.
        settings: choices of the identification.

    Raises:
        InputError: too few rows.
    """
    prior = choose_prior(settings, regressor, base)
    problem = trials.problem(regressor, base.independent, prior, repeated=True)
    problem = replace(problem, values_only=not settings.essential)  # an elimination follows the standard deviations
    estimate, _ = fit_or_fall_back(settings.estimator, problem)
    return _eliminate(IdentifiedModel(estimate.regressor or regressor, base, estimate), settings)[0]


def _eliminate(model: IdentifiedModel, settings: Settings) -> tuple[IdentifiedModel, Essential | None]:
    """The model with its essential parameters, and the result of the elimination, if one is requested."""
    if not settings.essential:
        return model, None
    elimination = eliminate_parameters(model.estimate, model.base.names, settings.essential)
    base, estimate = reduce_to_essential(model.base, model.estimate, elimination)
    return IdentifiedModel(model.regressor, base, estimate), elimination


def choose_prior(settings: Settings, regressor: Regressor, base: BaseParameters) -> Prior | None:
    """Choose the prior of an identification.

    Returns:
        The parameter set or the robot description that the settings name; else the URDF, unless its masses are missing
        or placeholders; else None.

    Raises:
        InputError: a robot description of other joints, or without masses; a parameter set of other columns.
    """
    model = regressor.model
    if isinstance(settings.prior, ParameterSet):
        return make_earlier_prior(settings.prior, regressor, base.mapping)
    if settings.prior is None:
        return None if has_placeholder_masses(model) else make_nominal_prior(model, base.mapping)
    return make_nominal_prior(describe_prior(settings.prior, model), base.mapping)


def describe_prior(prior: RobotDescription, model: RobotModel) -> RobotModel:
    """The robot of another description, with the joints and the gravity of a model.

    Raises:
        InputError: other moving joints, or joints elsewhere.
        ModelError: a description that cannot be used.
    """
    described = RobotModel.from_description(prior, model.joint_names, model.held, tuple(model.gravity))
    if described.body_names != model.body_names:
        raise InputError(f"prior: {prior.source} has other moving joints than the robot")
    check_prior_joints(described, model, f"robot description {prior.source}")
    if has_placeholder_masses(described):
        raise InputError(f"prior: the masses of {prior.source} are missing or placeholders")
    return described


def count_free(estimate: Estimate) -> int:
    """Number of parameters that are not at a bound of zero, where a solver leaves rounding."""
    return int(np.count_nonzero(np.abs(estimate.values) > BOUND_DEVIATIONS * estimate.standard_deviations))


def _diagnose(model: IdentifiedModel, trials: FilteredTrials, settings: Settings) -> tuple[Finding, ...]:
    """Findings about an estimate and the data that it is from."""
    estimate, base = model.estimate, model.base
    findings: tuple[Finding, ...] = ()
    if estimate.condition_number > settings.thresholds.condition_number:
        findings += check_motion_content(trials.survey, count_free(estimate))
    values, deviations = estimate.values, estimate.standard_deviations
    if not settings.chooses_terms:  # of many families, only the signs separate the parts
        values = values if estimate.unconstrained is None else estimate.unconstrained
        deviations = deviations if estimate.unconstrained_deviations is None else estimate.unconstrained_deviations
    findings += report_negative_terms(model.regressor, base, values, deviations)
    findings += estimate.findings
    findings += examine_residuals(model, trials)
    return findings + _report_unexcited(model)


def _report_unexcited(model: IdentifiedModel) -> tuple[Finding, ...]:
    """Findings about parameters that the data do not excite; information where no motion would."""
    names = model.estimate.unexcited
    if not names:
        return ()
    together = find_inseparable(model.regressor, model.base, names)
    alone = [name for name in names if name not in together]
    findings: tuple[Finding, ...] = ()
    if alone:
        joints = model.regressor.joints_of(alone)
        message = f"{len(alone)} parameters of joint {', '.join(joints)} are not excited by these data"
        findings += (NOT_EXCITED.found(message, joints),)
    if together:
        joints = model.regressor.joints_of(together)
        message = (
            f"{len(together)} parameters of joint {', '.join(joints)} are not separable by any motion, as axes are "
            "nearly perpendicular or parallel"
        )
        action = "none: only a combination of them acts on the torque"
        findings += (NOT_EXCITED.found(message, joints, "info", action),)
    return findings


def _compare_with_prior(model: IdentifiedModel, prior: Prior | None) -> tuple[Finding, ...]:
    """See `Prior.report_contradictions`; an elimination may have reduced the base parameters."""
    if prior is None:
        return ()
    estimate = model.estimate
    same_base = replace(prior, mapping=model.base.mapping)
    return same_base.report_contradictions(
        model.base.names, estimate.values, estimate.standard_deviations, model.regressor.joints_of
    )
