# SPDX-License-Identifier: Apache-2.0
"""Identification that keeps a factor of its recordings, and updates with further recordings from that factor."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.files.configuration import Configuration
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.assembly import add_data_of
from robot_dyn_id.identification.diagnosis.fingerprint import report_added, take_fingerprint
from robot_dyn_id.identification.factor import Factor, UpdatedLeastSquares, require_mergeable
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import Fingerprint, urdf_hash
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings
from robot_dyn_id.workflow.joints import make_robot_for
from robot_dyn_id.workflow.results import IdentificationResult


@dataclass(frozen=True)
class UpdatedIdentification:
    """An identification, and the factor that continues it.

    Attributes:
        result: the identification; its evaluation is that on the recordings that were given.
        factor: factor of all recordings, earlier ones included.
    """

    result: IdentificationResult
    factor: Factor


def identify_with_factor(
    robot: RobotDescription,
    configuration: Configuration,
    trials: DataSelection,
    earlier: Factor | None = None,
    progress: Progress = ignore_progress,
) -> UpdatedIdentification:
    """Identify a robot from recordings and the factor of earlier ones, and make the factor of all of them.

    The parameters are those of an identification from all recordings at once. Filters and sample rate are those of the
    factor. The error is cross-validated on the blocks of the new recordings, with the earlier ones in every fold.

    Args:
        robot: plain URDF and its origin.
        configuration: content of the configuration file; the estimator is `weighted`, or left to its default.
        trials: the recordings.
        earlier: factor of the earlier recordings; None: there are no earlier ones.
        progress: callback that receives every stage of the work.

    Returns:
        The identification and the factor; the caller closes the former when it has been saved.

    Raises:
        InputError: a factor of another robot or of other options, which are named; or a recording that is among the
            earlier ones, added or held out.
        UsageError: an estimator or an option that factors do not suffice for.
        RobotDynIdError: see `identify_recordings`.
    """
    settings = configuration.settings
    if settings.estimator == Consistent():
        settings = replace(settings, estimator=WeightedLeastSquares())
    order = require_mergeable(settings)
    findings: tuple[Finding, ...] = ()
    if earlier is not None:
        earlier.check_robot(urdf_hash(robot.text))
        estimator = UpdatedLeastSquares(autoregressive_order=order, earlier=earlier)
        settings = replace(earlier.complete(settings), estimator=estimator)
        joints = make_robot_for(robot, configuration, trials.recordings).joint_names
        findings = _compare_with_earlier(trials, joints, earlier.fingerprint)
    with ExitStack() as opened:
        result = identify_recordings(robot, replace(configuration, settings=settings), trials, progress)
        opened.callback(result.close)
        progress(Stage("making the factor"))
        found = result.identification
        model, kind = found.model, found.parameters.effort.kind
        factor = Factor.from_trials(found.training, model.regressor, model.base, settings, kind)
        factor = replace(factor, fingerprint=found.parameters.provenance.fingerprint)  # as they were recorded
        if earlier is not None:
            factor = Factor.merged([earlier, factor])
            parameters = add_data_of(found.parameters, factor)
            result = replace(result, identification=replace(found.with_findings(findings), parameters=parameters))
        opened.pop_all()  # the caller closes it
    return UpdatedIdentification(result, factor)


def _compare_with_earlier(trials: DataSelection, joints: tuple[str, ...], earlier: Fingerprint) -> tuple[Finding, ...]:
    """Findings about samples that occur among the earlier recordings too, by which they count twice.

    Raises:
        InputError: most of a recording does.
    """
    training, held_out = split(list(trials.recordings), joints, list(trials.held_out), trials.train_range)
    prints, others = ([take_fingerprint(one, joints) for one in group] for group in (training, held_out))
    findings = report_added(training, prints, earlier)
    validated = (held_out, others) if held_out else (training, prints)
    return (*findings, *report_added(*validated, earlier, held_out=True))
