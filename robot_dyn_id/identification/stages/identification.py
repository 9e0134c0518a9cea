# SPDX-License-Identifier: Apache-2.0
"""Result of an identification."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.essential import Essential
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.fit.identifiability import Identifiability, assess_identifiability
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.selection.choice import Selection
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.stages.judged import Judged
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.verdict import Verdict
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.trials import FilteredTrials

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Identification:
    """Result of an identification: parameters, and the stages that led to them.

    Attributes:
        parameters: the parameter set.
        judged: the last stage, which holds all others.
    """

    parameters: ParameterSet
    judged: Judged

    @property
    def evaluation(self) -> Evaluation:
        """Evaluation on held-out data, with all findings."""
        return self.judged.evaluation

    @property
    def verdict(self) -> Verdict:
        """The verdict of the evaluation."""
        return self.evaluation.verdict

    @property
    def model(self) -> IdentifiedModel:
        """The identified model, as the estimator returned it."""
        return self.judged.fitted.model

    @property
    def training(self) -> FilteredTrials:
        """Data that the model was identified from."""
        return self.judged.fitted.chosen.trials

    @property
    def selection(self) -> Selection | None:
        """Choice of the model, and the alternatives; None if nothing was chosen."""
        return self.judged.fitted.chosen.selection

    @property
    def tried(self) -> tuple[Tried, ...]:
        """All that was compared by held-out errors, in this order: meanings of the efforts, corrections, models."""
        chosen = self.judged.fitted.chosen
        selected = () if chosen.selection is None else chosen.selection.tried
        return (*chosen.examined.read.tried, *chosen.examined.tried, *selected)

    @property
    def essential(self) -> Essential | None:
        """Result of the backward elimination, if one was requested."""
        return self.judged.fitted.fit.essential

    @cached_property
    def identifiable(self) -> tuple[Identifiability, ...]:
        """Identifiability of every parameter."""
        fitted, parameters = self.judged.fitted, self.parameters
        return assess_identifiability(
            fitted.model.regressor, fitted.base, parameters.base.names, parameters.estimate.status
        )

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

    def with_findings(self, findings: Iterable[Finding]) -> Self:
        """The result with further findings, each once."""
        judged = replace(self.judged, evaluation=self.evaluation.with_findings(findings))
        return replace(self, judged=judged)
