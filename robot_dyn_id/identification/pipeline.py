# SPDX-License-Identifier: Apache-2.0
"""Identification pipeline: recordings in, validated parameter set out.

`identify` and `validate` share their steps: `prepare_trials`, `evaluate`, and findings that each step returns. Between
`prepare_trials` and `fit_model` a caller can choose a model: `FilteredTrials.problem` gives the rows of any columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.compensation import check_compensations
from robot_dyn_id.dynamics.prior import check_prior_robot
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import Consistent, Estimate
from robot_dyn_id.estimators.essential import Essential
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.assembly import assemble, describe_effort, describe_training
from robot_dyn_id.identification.correction import (
    correct_channels,
    correct_positions,
    correct_trials,
    interpret_efforts,
    read_as_trained,
    realign,
    refuse_short,
    report_compensated,
    report_unknown_gains,
)
from robot_dyn_id.identification.diagnosis.agreement import nominal_agreement
from robot_dyn_id.identification.diagnosis.diagnosis import examine_lengths
from robot_dyn_id.identification.diagnosis.fingerprint import report_repeated, report_trained, take_fingerprint
from robot_dyn_id.identification.diagnosis.health import compare_with_nominal, examine, refuse, soften_for_validation
from robot_dyn_id.identification.diagnosis.residuals import examine_held_out
from robot_dyn_id.identification.fit.estimation import describe_prior, fit_fold, fit_model
from robot_dyn_id.identification.fit.identifiability import Identifiability, identifiability
from robot_dyn_id.identification.fit.load import with_fitted_load
from robot_dyn_id.identification.fit.shared_motion import report_shared_motion
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.selection.choice import GIVEN_PRIOR_STRENGTH, Options, Selection, choose_model
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.cross_validation import METHOD, count_blocks, cross_validate
from robot_dyn_id.identification.validation.evaluation import Evaluation, HeldOutData, evaluate
from robot_dyn_id.identification.validation.holdout import held_out_method
from robot_dyn_id.identification.validation.metrics import Fold
from robot_dyn_id.identification.validation.residual_profile import profile_residuals
from robot_dyn_id.identification.validation.trace import thin_out
from robot_dyn_id.identification.validation.verdict import judge_training
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import Fingerprint, ParameterSet
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.signals.reversals import exclude_reversals
from robot_dyn_id.signals.stillness import report_rest_left_out
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, require_signals

GRAVITY_OF_PRIOR = Definition(
    "gravity_of_prior",
    Section.ESTIMATES,
    "info",
    "No gravity vector was given, and the parameter set that is the prior has another one than the default, such "
    "as that of a tilted base: the model has it, too.",
    "give the gravity vector if the base has been mounted in another way since",
)


@dataclass(frozen=True)
class Identification:
    """Result of an identification: parameters, evaluation and diagnostics.

    Attributes:
        parameters: the parameter set.
        model: the identified model, as the estimator returned it.
        evaluation: evaluation on held-out data, with all findings.
        training: data that the model was identified from.
        essential: result of the backward elimination, if one was requested.
        identifiable: identifiability of every parameter.
        selection: choice of the model, and the alternatives; None if nothing was chosen.
    """

    parameters: ParameterSet
    model: IdentifiedModel
    evaluation: Evaluation
    training: FilteredTrials
    essential: Essential | None = None
    identifiable: tuple[Identifiability, ...] = ()
    selection: Selection | None = None

    @property
    def estimate(self) -> Estimate:
        """The estimate of the base parameters."""
        return self.model.estimate

    @property
    def rows(self) -> tuple[int, int]:
        """Number of rows used in the estimation, and of samples dropped before."""
        return self.estimate.rows, self.training.survey.repairs.total_dropped

    @property
    def held_out_sources(self) -> tuple[str, ...]:
        """Names of the held-out recordings; under cross-validation those of all training data."""
        return tuple(recording.source for recording in self.evaluation.trials.recordings)

    @property
    def unconstrained_nrmse(self) -> float | None:
        """Held-out error of all joints without the bounds of the estimator; None if it has none."""
        return self.evaluation.held_out.unconstrained_nrmse

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found about data and model."""
        return self.evaluation.findings


@one_blas_thread()
def identify(
    training: Sequence[Recording],
    held_out: Sequence[Recording],
    model: RobotModel,
    settings: Settings,
    software_version: str,
    progress: Progress = ignore_progress,
) -> Identification:
    """Identify a robot's dynamics, and validate them on held-out data.

    Args:
        training: trials to estimate from.
        held_out: trials to validate on; empty: blocked cross-validation on the training data.
        model: the robot; its joints are identified.
        settings: choices of the identification.
        software_version: version that is written into the parameter set.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
        UsageError: contradictory settings.
    """
    method = held_out_method(training, held_out)
    fingerprint, repeated = _compare_recordings(training, held_out, model.joint_names, settings)
    prepared = prepare_training(training, held_out, model, settings, progress)
    trials, model, settings, kind = prepared.trials, prepared.model, prepared.settings, prepared.effort_kind
    held_out, excluded = prepared.held_out, prepared.excluded
    findings = (*repeated, *prepared.findings)
    unloaded = _fixed_regressor(model, settings)
    selection = None
    if settings.chooses_model:
        options = replace(_options(settings, model), without_blocks=not held_out)
        selection = choose_model(trials, model, options, progress)
        trials, regressor = selection.trials, selection.regressor
        settings = replace(settings, estimator=selection.complete(settings.estimator))
        findings = tuple(finding for finding in findings if finding.code not in selection.replaced_codes)
        findings += selection.findings
    else:
        regressor = with_fitted_load(unloaded, trials)
    progress(Stage("finding the base parameters"))
    base = base_parameters(regressor, pivots=settings.pivots)
    fit = fit_model(trials, regressor, base, settings, progress)
    findings += (*excluded, *fit.findings, *_judge_training(fit.model, trials, settings))
    findings += report_rest_left_out([*prepared.read, *held_out])
    profile = None
    if held_out:
        progress(Stage("validating on held-out data"))
        own = (Fold.from_model(trials, fit.model),) if selection is None else _list_folds(selection)
        profile = profile_residuals(own, thin_out(trials))
        others, found = _prepare_held_out(held_out, trials, fit.model.regressor, settings)
        findings += (*found, *examine_held_out(fit.model, others, trials.offset_deviations))
        data = HeldOutData.from_model(method, others, fit.model)
    elif selection is not None:
        data = HeldOutData(METHOD, trials, _list_folds(selection))
    else:

        def fit_part(part: FilteredTrials) -> IdentifiedModel:
            return fit_fold(part, with_fitted_load(unloaded, part), base, settings)

        data, not_validated = cross_validate(trials, fit_part, count_blocks(settings.estimator), progress)
        findings += not_validated
    evaluation = evaluate(fit.model, data, trials.ranges, settings, profile).with_findings(findings)
    evaluation = replace(evaluation, findings=report_shared_motion(trials, evaluation.findings))
    effort = describe_effort(trials, kind, settings.robot_compensates)
    provenance = describe_training(trials, fingerprint, fit.estimator, software_version)
    parameters = assemble(fit.model, evaluation, trials, effort, provenance)
    return Identification(
        parameters=parameters,
        model=fit.model,
        evaluation=evaluation,
        training=trials,
        essential=fit.essential,
        identifiable=identifiability(fit.model.regressor, base, parameters.base.names, parameters.estimate.status),
        selection=selection,
    )


@dataclass(frozen=True)
class PreparedTrials:
    """Training data that a model can be fitted to.

    Attributes:
        trials: the training data, corrected and filtered.
        read: the recordings behind them, as their efforts are read.
        held_out: recordings to validate on, as their efforts are read.
        model: the robot, with the gravity that the efforts contain.
        settings: the settings with the drives of the efforts.
        effort_kind: content of the measured effort.
        findings: findings about the data.
        excluded: findings about rows that are excluded because of their velocity.
    """

    trials: FilteredTrials
    read: Sequence[Recording]
    held_out: Sequence[Recording]
    model: RobotModel
    settings: Settings
    effort_kind: str
    findings: tuple[Finding, ...]
    excluded: tuple[Finding, ...]

    @property
    def fixed_regressor(self) -> Regressor:
        """Robot with the terms that are known before any choice, and the load of a first fit."""
        return with_fitted_load(_fixed_regressor(self.model, self.settings), self.trials)


def prepare_training(
    training: Sequence[Recording],
    held_out: Sequence[Recording],
    model: RobotModel,
    settings: Settings,
    progress: Progress = ignore_progress,
) -> PreparedTrials:
    """Read, check, correct and filter recordings to identify from.

    Args:
        training: trials to estimate from.
        held_out: trials to validate on; only the meaning of their efforts is decided here.
        model: the robot; its joints are identified.
        settings: choices of the identification.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
        UsageError: contradictory settings.
    """
    progress(Stage("comparing efforts and motion"))
    (training, continued), (held_out, others) = (correct_positions(group, model) for group in (training, held_out))
    meaning = interpret_efforts(training, held_out, model, settings)
    model, turned = _with_gravity_of_prior(meaning.model, settings)
    settings = replace(settings, drives=meaning.drives)
    regressor = _fixed_regressor(model, settings)
    trials, findings = prepare_trials(meaning.training, regressor, settings, settings.signals, progress)
    corrected = correct_trials(trials, model, settings)
    compensated = corrected.weightless and not model.drive_units  # a current stays one, with gravity or without
    kind = "gravity_compensated" if compensated else meaning.effort_kind
    check_compensations(kind, settings.robot_compensates)
    trials, model = corrected.trials, corrected.model
    agreement = compare_with_nominal(model.joint_names, *nominal_agreement(_fixed_regressor(model, settings), trials))
    findings = (*continued, *others, *meaning.findings, *turned, *findings, *corrected.findings)
    refuse_short(agreement, settings.ignore, trials)
    findings += refuse(agreement, settings.ignore, trials.survey.sources)
    trials, excluded = exclude_reversals(trials, settings.reversal_speed, settings.reversal_speeds, settings.rest_speed)
    return PreparedTrials(trials, meaning.training, meaning.held_out, model, settings, kind, findings, excluded)


def _compare_recordings(
    training: Sequence[Recording], held_out: Sequence[Recording], joints: Sequence[str], settings: Settings
) -> tuple[Fingerprint, tuple[Finding, ...]]:
    """Fingerprint of the training data, and findings about recordings that occur twice.

    A prior from data that the model is validated on makes the error there too small, too.
    """
    prints, others = ([take_fingerprint(one, joints) for one in group] for group in (training, held_out))
    trained = Fingerprint.joined(prints)
    findings = (*report_repeated(training, prints), *report_trained(held_out, others, trained))
    if isinstance(settings.prior, ParameterSet):
        earlier = settings.prior.provenance.fingerprint
        validated = (held_out, others) if held_out else (training, prints)
        findings += report_trained(*validated, earlier, "training data of the prior")
    return trained, findings


def _prepare_held_out(
    recordings: Sequence[Recording], training: FilteredTrials, regressor: Regressor, settings: Settings
) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """Held-out recordings, corrected, examined and filtered like the training data, and findings about them.

    Raises:
        InputError: a term needs a signal that is not recorded.
        UnsafeDataError: a health check refuses the data.
    """
    model = regressor.model
    sound, faults = correct_channels(recordings, model.joint_names, training.drives)
    trials = training.with_recordings(sound)
    require_signals(regressor, trials.survey)
    velocity = "recorded" if training.plan.recorded_velocity else "derivative"
    found = (*faults, *soften_for_validation(examine(trials.survey, model, velocity)))
    findings = refuse(found, settings.ignore, trials.survey.sources)
    aligned, delayed = realign(trials, model)
    return aligned, (*findings, *delayed)


def _with_gravity_of_prior(model: RobotModel, settings: Settings) -> tuple[RobotModel, tuple[Finding, ...]]:
    """Robot with the gravity vector of an earlier parameter set, such as a tilt of the base, where none was given."""
    prior = settings.prior
    if not (isinstance(prior, ParameterSet) and settings.base_tilt and prior.robot.gravity.any()):
        return model, ()
    if not np.allclose(model.gravity, STANDARD_GRAVITY) or np.allclose(model.gravity, prior.robot.gravity):
        return model, ()
    vector = " ".join(f"{component:.4g}" for component in prior.robot.gravity)
    message = f"the gravity vector is that of the prior, {vector}, as none was given"
    return replace(model, gravity=prior.robot.gravity), (GRAVITY_OF_PRIOR.found(message),)


def _fixed_regressor(model: RobotModel, settings: Settings) -> Regressor:
    """Robot with the terms that are known before any choice: none of them if they are chosen from the data.

    Raises:
        InputError: a prior with other joints than are to be identified, or other units of their efforts, or of another
            robot.
    """
    if isinstance(settings.prior, ParameterSet):
        check_prior_robot(settings.prior, model)
        if settings.prior.drive_units != model.drive_units:
            raise InputError(
                f"prior: the parameter set of {settings.prior.robot.name} has efforts in other units, as drive gains "
                "are not known: identify both with the gains"
            )
    if isinstance(settings.prior, ParameterSet) and settings.terms is None and not settings.couplings:
        if settings.prior.robot.joint_names != model.joint_names:
            raise InputError(
                f"prior: the parameter set of {settings.prior.robot.name} has other joints than are to be identified"
            )
        return replace(Regressor.from_parameters(settings.prior), model=model)
    terms = () if settings.chooses_terms else settings.fixed_terms
    return Regressor(model, terms_on_joints(model, terms, settings.couplings))


def _list_folds(selection: Selection) -> tuple[Fold, ...]:
    """Every block with the model that was fitted without it, and the zeros of the efforts elsewhere."""
    return tuple(
        Fold(
            replace(selection.trials.block_only(one.block, selection.blocks), zeros=one.effort_zeros),
            selection.wide,
            one.columns,
            one.values,
            one.unconstrained,
        )
        for one in selection.block_models
    )


def _options(settings: Settings, model: RobotModel) -> Options:
    """Parts of the model that settings leave to be chosen from the data."""
    estimator = settings.estimator if isinstance(settings.estimator, Consistent) else Consistent()
    prior = None
    if isinstance(settings.prior, RobotDescription):
        prior = BodyPrior.from_model(describe_prior(settings.prior, model))
        if estimator.strength is None:
            estimator = replace(estimator, strength=GIVEN_PRIOR_STRENGTH)
    return Options(
        terms=settings.terms,
        couplings=settings.couplings,
        estimator=estimator,
        motion_filter=settings.motion_cutoff is None,
        velocity=settings.velocity == "auto",
        base_tilt=settings.base_tilt,
        reduced=prior is not None,
        prior=prior,
    )


@one_blas_thread()
def validate(
    recordings: Sequence[Recording], parameters: ParameterSet, settings: Settings, progress: Progress = ignore_progress
) -> Evaluation:
    """Evaluate an identified model on other recordings. Terms, filter and joints are those of the parameter set.

    Args:
        recordings: trials to validate on.
        parameters: the identified model.
        settings: drives of the joints that are not those of the parameter set, source of velocities, thresholds and
            health checks to overrule.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used, or gains of joints whose gain was not known when they were identified.
        UnsafeDataError: a health check refuses the data.
    """
    model = IdentifiedModel.from_parameters(parameters)
    settings = replace(settings, drives=settings.drives_of(parameters))
    continued, jumps = correct_positions(recordings, model.regressor.model)
    read = read_as_trained(continued, parameters.effort.kind)
    trials, findings = prepare_trials(read, model.regressor, settings, settings.signals_of(parameters), progress)
    findings = (*jumps, *soften_for_validation(findings))
    trials, delayed = realign(trials, model.regressor.model)
    findings += (*delayed, *_judge_training(model, trials, settings))
    findings += examine_held_out(model, trials, parameters.effort.offset_deviations)
    prints = [take_fingerprint(one, parameters.robot.joint_names) for one in recordings]
    findings += report_trained(recordings, prints, parameters.provenance.fingerprint)
    findings += (*report_compensated(parameters.effort.kind), *report_unknown_gains(parameters.drive_units))
    progress(Stage("predicting"))
    data = HeldOutData.from_model("recordings", trials, model)
    profile = parameters.residuals if parameters.residuals.is_known else None
    return evaluate(model, data, parameters.ranges, settings, profile).with_findings(findings)


def prepare_trials(
    recordings: Sequence[Recording],
    regressor: Regressor,
    settings: Settings,
    signals: SignalSettings,
    progress: Progress = ignore_progress,
) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """Survey recordings, check their health, and decide about their signals.

    Args:
        recordings: the trials.
        regressor: robot and terms that the signals must suffice for.
        settings: drives of the joints, and health checks to overrule.
        signals: choices about signals.
        progress: callback that receives every stage of the work.

    Returns:
        The filtered trials, and findings about them.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
    """
    progress(Stage("surveying the recordings"))
    model = regressor.model
    sound, faults = correct_channels(recordings, model.joint_names, settings.drives)
    trials = FilteredTrials.from_recordings(sound, model.joint_names, settings.drives, signals)
    trials = trials if regressor.peaked else trials.decimated()
    found = (*examine_lengths(model), *faults, *examine(trials.survey, model, signals.velocity))
    findings = refuse(found, settings.ignore, trials.survey.sources)
    require_signals(regressor, trials.survey)
    trials.require_length()
    return trials, findings


def _judge_training(model: IdentifiedModel, trials: FilteredTrials, settings: Settings) -> tuple[Finding, ...]:
    """Findings about condition number and dropped samples."""
    repairs = trials.survey.repairs
    dropped_share = repairs.total_dropped / max(1, repairs.rows)
    return judge_training(model.estimate.condition_number, dropped_share, settings.thresholds)
