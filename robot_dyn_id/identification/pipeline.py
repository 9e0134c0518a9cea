# SPDX-License-Identifier: Apache-2.0
"""The straight line from recordings to an identified and validated model; it has no idea of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Integers
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.consistency import report_negative_terms
from robot_dyn_id.dynamics.prior import Prior
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.essential import Essential
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.assembly import assemble
from robot_dyn_id.identification.estimation import estimated, known_before
from robot_dyn_id.identification.evaluation import Evaluation, evaluate
from robot_dyn_id.identification.identifiability import Identifiability, identifiability
from robot_dyn_id.identification.metrics import compare
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.diagnosis import delay, nominal_agreement
from robot_dyn_id.signals.health import check_motion_content, compare_with_nominal, examine, refuse
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.reversals import slowest_speeds, velocity_noise
from robot_dyn_id.signals.stillness import report_rest_left_out
from robot_dyn_id.signals.survey import Survey, survey
from robot_dyn_id.signals.trials import FilteredTrials, plan_signals, require_signals

Progress = Callable[[str], None]
"""Takes one line of what is being done."""


@dataclass(frozen=True)
class Identification:
    """An identified model with everything that speaks for and against it.

    Attributes:
        parameters: the parameter set.
        evaluation: on held-out data; its survey and plan are those of the training data.
        estimate: of the estimator.
        rows: used rows of the linear problem and dropped samples.
        held_out_sources: what it was validated on.
        unconstrained_nrmse: held-out error of all joints without the bounds of the estimator; None if it has none.
        essential: what a backward elimination has left out, if it was asked for.
        identifiable: every parameter's identifiability.
    """

    parameters: ParameterSet
    evaluation: Evaluation
    estimate: Estimate
    rows: tuple[int, int]
    held_out_sources: tuple[str, ...]
    unconstrained_nrmse: float | None = None
    essential: Essential | None = None
    identifiable: tuple[Identifiability, ...] = ()


def identify(
    training: Sequence[Recording],
    held_out: Sequence[Recording],
    model: RobotModel,
    settings: Settings,
    software_version: str,
    progress: Progress = lambda line: None,
) -> Identification:
    """Identify a robot's dynamics and validate it on data that it has not seen.

    Args:
        training: trials to estimate from.
        held_out: trials to validate on.
        model: the robot; its joints are the ones identified.
        settings: the choices.
        software_version: written into the result.
        progress: told what is being done.

    Raises:
        InputError: data that cannot be used, named.
        UnsafeDataError: the health gate refuses.
        UsageError: contradictory settings.
    """
    joints = model.joint_names
    progress("surveying the recordings")
    seen = survey(training, joints, settings.drives)
    findings = refuse(examine(seen, model), settings.ignore, seen.sources)
    plan = plan_signals(seen, settings.cutoff, settings.filter_order, settings.velocity)
    plan = plan.periodic(settings.period) if settings.period else plan
    trials = FilteredTrials(training, joints, settings.drives, plan)
    _require_length(seen, plan)
    progress("finding the base parameters")
    regressor = Regressor(model, terms_on_joints(model, settings.terms, settings.couplings))
    require_signals(regressor, seen)
    base = base_parameters(regressor, pivots=settings.pivots)
    agreement = nominal_agreement(regressor, trials)
    findings += refuse(compare_with_nominal(joints, *agreement), settings.ignore, seen.sources)
    trained = trials.ranges
    plan, more = _without_reversals(trials, settings)
    trials = replace(trials, plan=plan)
    findings += more
    progress(f"estimating {len(base.names)} base parameters ({settings.estimator.name})")
    prior = known_before(settings, regressor, base)
    problem = trials.problem(regressor, base.independent, prior)
    whole = base
    base, estimate, reduction = estimated(problem, whole, settings, progress)
    regressor = estimate.regressor or regressor
    if estimate.condition_number > settings.thresholds.condition_number:
        findings += check_motion_content(seen, len(base.names))
    free = estimate.values if estimate.unconstrained is None else estimate.unconstrained
    findings += report_negative_terms(regressor, base, free, estimate.standard_deviations)
    findings += estimate.findings + delay(regressor, base.independent, estimate.values, trials)
    progress("validating on held-out data")
    dropped = seen.repairs.total_dropped
    evaluation = evaluate(
        held_out,
        regressor,
        base.independent,
        estimate.values,
        settings,
        plan,
        trained,
        findings,
        estimate.condition_number,
        dropped / max(1, seen.repairs.rows),
        seen,
        estimate.unexcited,
        estimate.covariance,
    )
    rest = report_rest_left_out([*training, *held_out])
    evaluation = evaluation.with_findings((*rest, *_report_contradictions(prior, base, estimate)))
    parameters = assemble(
        regressor, base, estimate, evaluation, trained, settings.estimator.name, software_version, training
    )
    free_nrmse = _without_bounds(regressor, base.independent, estimate, held_out, settings, plan)
    sources = tuple(recording.source for recording in held_out)
    told_of = identifiability(regressor, whole, parameters.names, parameters.status)
    rows = estimate.rows, dropped
    return Identification(parameters, evaluation, estimate, rows, sources, free_nrmse, reduction, told_of)


def _report_contradictions(prior: Prior | None, base: BaseParameters, estimate: Estimate) -> tuple[Finding, ...]:
    """See `Prior.report_contradictions`; the base may have been reduced meanwhile."""
    if prior is None:
        return ()
    reduced = replace(prior, mapping=base.mapping)
    return reduced.report_contradictions(base.names, estimate.values, estimate.standard_deviations)


def _without_bounds(
    regressor: Regressor,
    columns: Integers,
    estimate: Estimate,
    held_out: Sequence[Recording],
    settings: Settings,
    plan: SignalPlan,
) -> float | None:
    """Held-out error of all joints of what the estimate is without its bounds."""
    if estimate.unconstrained is None:
        return None
    trials = FilteredTrials(held_out, regressor.model.joint_names, settings.drives, plan)
    return compare(regressor, columns, estimate.unconstrained, trials).all_joints_nrmse


def _without_reversals(trials: FilteredTrials, settings: Settings) -> tuple[SignalPlan, tuple[Finding, ...]]:
    """The plan with the least speed of each joint's rows, and findings."""
    slowest, findings = slowest_speeds(
        trials.joints,
        settings.reversal_speed,
        settings.reversal_speeds,
        lambda: velocity_noise(trials),
        trials.max_speeds,
    )
    return replace(trials.plan, slowest=slowest), findings


def _require_length(seen: Survey, plan: SignalPlan) -> None:
    needed = (2 * plan.edge + 16) / plan.rate
    if max(seen.durations) < needed:
        raise InputError(
            f"{', '.join(seen.sources)}: the longest uninterrupted stretch lasts {max(seen.durations):.2f} s; "
            f"a cut-off of {plan.low_pass.cutoff:.3g} Hz needs {needed:.2f} s"
        )


def validate(
    recordings: Sequence[Recording],
    parameters: ParameterSet,
    settings: Settings,
    progress: Progress = lambda line: None,
) -> Evaluation:
    """Judge an identified model on other recordings. Terms, filter and joints are those of the parameter set.

    Raises:
        InputError: data that cannot be used, named.
        UnsafeDataError: the health gate refuses.
    """
    regressor = Regressor.from_parameters(parameters)
    progress("surveying the recordings")
    seen = survey(recordings, parameters.joint_names, settings.drives)
    findings = refuse(examine(seen, regressor.model), settings.ignore, seen.sources)
    require_signals(regressor, seen)
    plan = plan_signals(seen, parameters.cutoff_frequency, parameters.filter_order, settings.velocity)
    _require_length(seen, plan)
    progress("predicting")
    trained = Ranges.from_parameters(parameters)
    return evaluate(
        recordings,
        regressor,
        parameters.independent_columns.astype(np.int64),
        parameters.values,
        settings,
        plan,
        trained,
        findings,
        parameters.condition_number,
        seen.repairs.total_dropped / max(1, seen.repairs.rows),
        seen,
        covariance=parameters.covariance,
    )
