# SPDX-License-Identifier: Apache-2.0
"""Last stage: the model on data that it was not identified from, and all findings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.residuals import examine_held_out
from robot_dyn_id.identification.fit.estimation import fit_fold
from robot_dyn_id.identification.fit.load import fit_load
from robot_dyn_id.identification.fit.shared_motion import report_shared_motion
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.selection.choice import Selection
from robot_dyn_id.identification.stages.examined import filter_as_trained, filter_to_validate, make_known_regressor
from robot_dyn_id.identification.stages.fitted import Fitted, judge_fit
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.identification.validation.cross_validation import METHOD, count_blocks, cross_validate
from robot_dyn_id.identification.validation.evaluation import Evaluation, HeldOutData, evaluate
from robot_dyn_id.identification.validation.metrics import Fold
from robot_dyn_id.identification.validation.residual_profile import profile_residuals
from robot_dyn_id.identification.validation.trace import thin_out
from robot_dyn_id.parameters import ParameterSet, ResidualProfile
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.signals.trials import FilteredTrials


@dataclass(frozen=True)
class Judged:
    """A model with its evaluation.

    Attributes:
        fitted: the model.
        evaluation: evaluation on held-out data, with the findings of all stages.
    """

    fitted: Fitted
    evaluation: Evaluation

    @classmethod
    def from_fitted(cls, fitted: Fitted, progress: Progress) -> Judged:
        """Evaluate a model on held-out recordings, or by cross-validation without any.

        Args:
            fitted: the model.
            progress: callback that receives every stage of the work.

        Raises:
            InputError: held-out data that cannot be used.
            UnsafeDataError: a health check refuses the held-out data.
        """
        chosen = fitted.chosen
        examined, trials, settings = chosen.examined, chosen.trials, chosen.settings
        data, profile, found = _hold_out(fitted, progress)
        stages = (examined.read, examined, chosen, fitted)
        findings = (*(one for stage in stages for one in stage.findings), *found)
        evaluation = evaluate(fitted.model, data, trials.ranges, settings, profile).with_findings(findings)
        return cls(fitted, replace(evaluation, findings=report_shared_motion(trials, evaluation.findings)))


def judge_parameters(read: Read, parameters: ParameterSet, progress: Progress) -> Evaluation:
    """Evaluate a model that was identified before.

    Args:
        read: recordings to validate on.
        parameters: the identified model.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
    """
    model, settings = IdentifiedModel.from_parameters(parameters), read.settings
    trials, found = filter_to_validate(read, model.regressor, settings.signals_of(parameters), progress)
    found += judge_fit(model, trials, settings)
    found += examine_held_out(model, trials, parameters.effort.offset_deviations)
    progress(Stage("predicting"))
    data = HeldOutData.from_model(read.method, trials, model)
    profile = parameters.residuals if parameters.residuals.is_known else None
    return evaluate(model, data, parameters.ranges, settings, profile).with_findings((*read.findings, *found))


def _hold_out(fitted: Fitted, progress: Progress) -> tuple[HeldOutData, ResidualProfile | None, tuple[Finding, ...]]:
    """Held-out data, residuals of the training data if these are others, and findings about the held-out data."""
    chosen, model = fitted.chosen, fitted.model
    read, selection, trials, settings = chosen.examined.read, chosen.selection, chosen.trials, chosen.settings
    if read.held_out:
        progress(Stage("validating on held-out data"))
        own = (Fold.from_model(trials, model),) if selection is None else _list_folds(selection)
        profile = profile_residuals(own, thin_out(trials))
        others, found = filter_as_trained(chosen.examined, trials, model.regressor)
        found += examine_held_out(model, others, trials.offset_deviations)
        return HeldOutData.from_model(read.method, others, model), profile, found
    if selection is not None:
        return HeldOutData(METHOD, trials, _list_folds(selection)), None, ()
    unloaded = make_known_regressor(chosen.examined.model, settings)

    def fit_part(part: FilteredTrials) -> IdentifiedModel:
        return fit_fold(part, fit_load(unloaded, part), fitted.base, settings)

    data, not_validated = cross_validate(trials, fit_part, count_blocks(settings.estimator), progress)
    return data, None, not_validated


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
