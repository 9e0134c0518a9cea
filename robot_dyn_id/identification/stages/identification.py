# SPDX-License-Identifier: Apache-2.0
"""Result of an identification."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robot_dyn_id.errors import make_storable
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.essential import Essential
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.assembly import describe_model, profile_residuals
from robot_dyn_id.identification.fit.identifiability import Identifiability, assess_identifiability
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.selection.choice import Selection
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.settings import store_drives
from robot_dyn_id.identification.stages.judged import Judged
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.verdict import Verdict
from robot_dyn_id.parameters import (
    LONGEST_LINE,
    Effort,
    Judgment,
    ParameterSet,
    Provenance,
    SignalProcessing,
    implied_compensations,
)
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

    @classmethod
    def from_judged(cls, judged: Judged, software_version: str) -> Self:
        """Put the parameter set together.

        Args:
            judged: the model, its evaluation, and all that led to them.
            software_version: version of this package.
        """
        fitted, evaluation = judged.fitted, judged.evaluation
        training, examined = fitted.chosen.trials, fitted.chosen.examined
        plan, kind = training.plan, examined.effort_kind
        adds = examined.read.settings.robot_compensates or implied_compensations(kind)
        parameters = ParameterSet(
            **describe_model(fitted.model, training.ranges),
            effort=Effort(kind, adds, *store_drives(training.drives, training.joints), training.offset_deviations),
            processing=SignalProcessing(
                sample_rate=plan.rate,
                cutoff_frequency=plan.low_pass.cutoff,
                motion_cutoff_frequency=plan.motion_pass.cutoff,
                filter_order=plan.low_pass.order,
                velocity_source="recorded" if plan.recorded_velocity else "derivative",
            ),
            residuals=profile_residuals(evaluation),
            provenance=Provenance(
                sources=tuple(make_storable(recording.source, LONGEST_LINE) for recording in training.recordings),
                sha256=training.survey.sha256,
                fingerprint=examined.fingerprint,
                estimator=fitted.fit.estimator,
                software_version=software_version,
            ),
            judgment=Judgment(
                held_out_nrmse=np.array([joint.nrmse for joint in evaluation.held_out.joints]),
                held_out_all_joints_nrmse=evaluation.held_out.all_joints_nrmse,
                held_out_method=evaluation.held_out.method,
                verdict=evaluation.verdict.word,
                reasons=tuple(make_storable(reason, LONGEST_LINE) for reason in evaluation.verdict.reasons),
                fit_for=tuple(judgment.fit for judgment in evaluation.uses),
                unexplained_joints=evaluation.held_out.list_unexplained(examined.read.settings.thresholds.explained),
            ),
        )
        return cls(parameters, judged)

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
