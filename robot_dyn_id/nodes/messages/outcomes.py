# SPDX-License-Identifier: Apache-2.0
"""Messages about an identification and of its model; modules of estimation are loaded with them."""

from __future__ import annotations

from pathlib import Path

from robot_dyn_id.errors import RobotDynIdError, UnsafeDataError, make_storable
from robot_dyn_id.findings import format_findings
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import (
    make_actuator_set_message,
    make_finding_message,
    make_parameter_set_message,
)
from robot_dyn_id.parameters import LONGEST_LINE
from robot_dyn_id.workflow.actuators import ActuatorResult


def make_model_message(found: Identification | ActuatorResult) -> ParameterSetMsg | ActuatorSetMsg:
    """The message of an identified model; its header is left for the node to fill."""
    if isinstance(found, ActuatorResult):
        return make_actuator_set_message(found.actuator_set)
    return make_parameter_set_message(found.parameters)


def make_identification_report(
    outcome: Identification | ActuatorResult | RobotDynIdError, folder: Path
) -> IdentificationReport:
    """The message about an identification, or about why there is none; its header is left for the node to fill."""
    message = IdentificationReport()
    if isinstance(outcome, RobotDynIdError):
        message.verdict, message.reasons = "failed", [str(outcome)]
        if isinstance(outcome, UnsafeDataError):
            message.findings = [make_finding_message(finding) for finding in outcome.findings]
        return message
    message.verdict = outcome.verdict.word
    message.reasons = list(outcome.verdict.reasons)
    message.folder = make_storable(str(folder), LONGEST_LINE)
    if isinstance(outcome, ActuatorResult):
        message.warnings = list(format_findings(outcome.findings))
        message.findings = [make_finding_message(finding) for finding in outcome.findings]
        message.joint_names, message.data_sources = list(outcome.model.joint_names), list(outcome.sources)
        if outcome.held_out is not None:
            message.held_out_nrmse = outcome.held_out.efforts.tolist()
            message.held_out_all_joints_nrmse = outcome.held_out.all_efforts
        return message
    evaluation, parameters = outcome.evaluation, outcome.parameters
    message.warnings = list(evaluation.warnings)
    message.findings = [make_finding_message(finding) for finding in evaluation.findings]
    message.joint_names = list(parameters.robot.joint_names)
    message.held_out_nrmse = parameters.judgment.held_out_nrmse.tolist()
    message.held_out_all_joints_nrmse = parameters.judgment.held_out_all_joints_nrmse
    message.condition_number = parameters.estimate.condition_number
    message.cross_check_max_difference = evaluation.cross_check.max_difference
    message.cross_check_rank = evaluation.cross_check.rank_ours
    message.cross_check_rank_pinocchio = evaluation.cross_check.rank_pinocchio
    message.rows_used, message.rows_dropped = outcome.rows
    message.data_sources = list(parameters.provenance.sources)
    return message
