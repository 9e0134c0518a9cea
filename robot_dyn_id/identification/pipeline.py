# SPDX-License-Identifier: Apache-2.0
"""Identification pipeline: recordings in, validated parameter set out.

Each stage is a value: recordings are `Read`, `Examined`, a model is `Chosen`, `Fitted` and `Judged`. A caller can stop
at any of them, or begin with one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.estimators import Estimate
from robot_dyn_id.estimators.essential import Essential
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.assembly import assemble
from robot_dyn_id.identification.diagnosis.residuals import examine_held_out
from robot_dyn_id.identification.fit.identifiability import Identifiability, identifiability
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.selection.choice import Selection
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.chosen import Chosen
from robot_dyn_id.identification.stages.examined import Examined, filter_to_validate
from robot_dyn_id.identification.stages.fitted import Fitted, judge_fit
from robot_dyn_id.identification.stages.judged import Judged
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.identification.validation.evaluation import Evaluation, HeldOutData, evaluate
from robot_dyn_id.identification.validation.residual_profile import ResidualProfile
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.signals.ranges import Ranges
from robot_dyn_id.signals.trials import FilteredTrials


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
    def essential(self) -> Essential | None:
        """Result of the backward elimination, if one was requested."""
        return self.judged.fitted.fit.essential

    @cached_property
    def identifiable(self) -> tuple[Identifiability, ...]:
        """Identifiability of every parameter."""
        fitted, parameters = self.judged.fitted, self.parameters
        return identifiability(fitted.model.regressor, fitted.base, parameters.names, parameters.status)

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

    def with_findings(self, findings: Sequence[Finding]) -> Identification:
        """The result with further findings, each once."""
        judged = replace(self.judged, evaluation=self.evaluation.with_findings(findings))
        return replace(self, judged=judged)


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
    progress(Stage("comparing efforts and motion"))
    read = Read.from_recordings(training, held_out, model, settings)
    examined = Examined.from_read(read, progress)
    chosen = Chosen.from_examined(examined, progress)
    fitted = Fitted.from_chosen(chosen, progress)
    judged = Judged.from_fitted(fitted, progress)
    return Identification(assemble(judged, software_version), judged)


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
    read = Read.to_validate(recordings, parameters, settings)
    trials, found = filter_to_validate(read, model.regressor, settings.signals_of(parameters), progress)
    found += judge_fit(model, trials, settings)
    found += examine_held_out(model, trials, parameters.offset_deviations)
    progress(Stage("predicting"))
    data = HeldOutData.from_model(read.method, trials, model)
    ranges, profile = Ranges.from_parameters(parameters), ResidualProfile.from_parameters(parameters)
    return evaluate(model, data, ranges, read.settings, profile).with_findings((*read.findings, *found))
