# SPDX-License-Identifier: Apache-2.0
"""Fourth stage: base parameters and their estimate."""

from __future__ import annotations

from dataclasses import dataclass

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.fit.estimation import Fit, fit_model
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.chosen import Chosen
from robot_dyn_id.identification.validation.verdict import judge_training
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.signals.trials import FilteredTrials


@dataclass(frozen=True)
class Fitted:
    """An estimated model.

    Attributes:
        chosen: data and columns that it was fitted to.
        base: base parameters of these columns.
        fit: the model, and how it was estimated.
        findings: findings about the estimate.
    """

    chosen: Chosen
    base: BaseParameters
    fit: Fit
    findings: tuple[Finding, ...]

    @classmethod
    def from_chosen(cls, chosen: Chosen, progress: Progress) -> Fitted:
        """Estimate the base parameters.

        Args:
            chosen: data and columns.
            progress: callback that receives every stage of the work.

        Raises:
            InputError: too few rows.
            ConvergenceError: more than a tenth of the draws of a bootstrap do not converge.
        """
        progress(Stage("finding the base parameters"))
        base = compute_base_parameters(chosen.regressor, pivots=chosen.settings.pivots)
        fit = fit_model(chosen.trials, chosen.regressor, base, chosen.settings, progress)
        return cls(chosen, base, fit, (*fit.findings, *judge_fit(fit.model, chosen.trials, chosen.settings)))

    @property
    def model(self) -> IdentifiedModel:
        """The identified model."""
        return self.fit.model


def judge_fit(model: IdentifiedModel, trials: FilteredTrials, settings: Settings) -> tuple[Finding, ...]:
    """Findings about condition number and dropped samples.

    Args:
        model: the identified model.
        trials: the data.
        settings: thresholds of the verdict.
    """
    repairs = trials.survey.repairs
    dropped_share = repairs.total_dropped / max(1, repairs.rows)
    return judge_training(model.estimate.condition_number, dropped_share, settings.thresholds)
