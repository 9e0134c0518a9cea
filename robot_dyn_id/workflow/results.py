# SPDX-License-Identifier: Apache-2.0
"""Results of complete tasks: values that print themselves, write their files and draw their plots."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dyn_id.data.stream_store import StreamStore
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.parameters import GAIN_REMEDY, ParameterSet, describe_unknown_gains
from robot_dyn_id.report.advice import RunFiles
from robot_dyn_id.report.figure import draw_torque_figure
from robot_dyn_id.report.folder import PARAMETERS, make_output_folder, write_results
from robot_dyn_id.report.summary import summarize_evaluation, summarize_identification
from robot_dyn_id.report.text import format_evaluation, format_identification

if TYPE_CHECKING:
    from robot_dyn_id.report.figure import Figure


def make_dynamics(parameters: ParameterSet) -> Dynamics:
    """Inverse and forward dynamics of an identified robot.

    Example:
        ```python
        dynamics = rdi.make_dynamics(rdi.load_parameters("run/parameters.yaml"))
        tau = dynamics.inverse_dynamics(q, dq, ddq)
        ```

    Args:
        parameters: identified parameter set.

    Raises:
        InputError: a set that this version cannot read.

    Warns:
        UserWarning: the verdict is bad; or drive gains are not known, so that efforts are not in N m or N, see
            `Dynamics.effort_units`.
    """
    if parameters.judgment.verdict == "bad":
        warnings.warn(f"the model of {parameters.robot.name} is bad: do not control a robot with it", stacklevel=2)
    if parameters.unknown_gains:
        warnings.warn(f"{describe_unknown_gains(parameters.drive_units)}: {GAIN_REMEDY}", stacklevel=2)
    return Dynamics.from_parameters(parameters)


@dataclass(frozen=True, repr=False)
class IdentificationResult:
    """An identified model with its evaluation on held-out data.

    `print(result)` shows the table of `robot-dyn-id identify`. The model is `result.parameters`, the verdict
    `result.evaluation.verdict`.

    Attributes:
        identification: the identification, with the estimate, the choice of the model and the training data.
        decoded: decoded recordings; None: they are in memory, or decoded in each pass.
    """

    identification: Identification
    decoded: StreamStore | None = field(default=None, compare=False)

    @property
    def parameters(self) -> ParameterSet:
        """The parameter set."""
        return self.identification.parameters

    @property
    def evaluation(self) -> Evaluation:
        """Evaluation on held-out data, with all findings."""
        return self.identification.evaluation

    def close(self) -> None:
        """Free the memory and the temporary files of the recordings; later passes over them decode and filter again."""
        for store in (self.decoded, self.identification.training.store, self.evaluation.trials.store):
            if store is not None:
                store.close()

    def dynamics(self) -> Dynamics:
        """Inverse and forward dynamics of the identified robot; see `make_dynamics`."""
        return make_dynamics(self.parameters)

    def __repr__(self) -> str:
        """Robot, verdict and error in one line, as for the last line of a notebook's cell."""
        parameters, judgment = self.parameters, self.parameters.judgment
        return (
            f"<IdentificationResult: {parameters.robot.name}, {judgment.verdict}, {len(parameters.base.names)} base "
            f"parameters, held-out NRMSE {judgment.held_out_all_joints_nrmse:.2%}; print() shows the tables>"
        )

    def __str__(self) -> str:
        """Held-out errors per joint, cross-check, the model, uses, findings, and the verdict."""
        return format_identification(self.identification)

    def save(self, folder: str | Path, files: RunFiles | None = None) -> dict[str, Any]:
        """Write `parameters.yaml`, `report.json` and `report.html`, and replace those of an earlier run.

        Args:
            folder: the folder of the results, created if needed.
            files: files of the identification, for the commands on the page; None: those that the results name.

        Returns:
            Content of `report.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        folder = make_output_folder(folder)
        explanation = explain(self.evaluation, self.parameters, self.identification.training)
        summary = summarize_identification(self.identification, str(folder / PARAMETERS), explanation)
        write_results(folder, summary, explanation, self.parameters, files)
        write_parameters(folder / PARAMETERS, self.parameters)
        return summary

    def plot(self) -> Figure:
        """Measured and predicted effort of every joint over the held-out data, as a matplotlib figure.

        Raises:
            UsageError: matplotlib is not installed.
        """
        return draw_torque_figure(self.evaluation)


@dataclass(frozen=True)
class ValidationResult:
    """Evaluation of an identified model on other recordings.

    `print(result)` shows the table of `robot-dyn-id validate`.

    Attributes:
        evaluation: the evaluation, with all findings.
        parameters: the model that was evaluated.
    """

    evaluation: Evaluation
    parameters: ParameterSet

    def __str__(self) -> str:
        """Held-out errors per joint, cross-check, warnings and verdict."""
        return format_evaluation(self.evaluation)

    def summary(self, parameters_file: str = "") -> dict[str, Any]:
        """Content of `report.json`.

        Args:
            parameters_file: file that the parameters were read from.
        """
        return summarize_evaluation(self.evaluation, parameters_file, self.parameters)

    def save(self, folder: str | Path, parameters_file: str = "") -> dict[str, Any]:
        """Write `report.json` and `report.html`, and replace those of an earlier run.

        Args:
            folder: the folder of the results, created if needed.
            parameters_file: file that the parameters were read from.

        Returns:
            Content of `report.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        folder, explanation = make_output_folder(folder), explain(self.evaluation, self.parameters)
        summary = summarize_evaluation(self.evaluation, parameters_file, self.parameters, explanation)
        write_results(folder, summary, explanation, self.parameters)
        return summary

    def plot(self) -> Figure:
        """Measured and predicted effort of every joint, as a matplotlib figure.

        Raises:
            UsageError: matplotlib is not installed.
        """
        return draw_torque_figure(self.evaluation)
