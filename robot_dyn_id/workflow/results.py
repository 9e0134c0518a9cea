# SPDX-License-Identifier: Apache-2.0
"""Results of complete tasks: values that print themselves, write their files and draw their plots."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dyn_id.data.stream_store import StreamStore
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.parameters import GAIN_REMEDY, ParameterSet, describe_unknown_gains
from robot_dyn_id.report.figure import torque_figure
from robot_dyn_id.report.folder import PARAMETERS, output_folder, write_results
from robot_dyn_id.report.summary import evaluation_summary, identification_summary
from robot_dyn_id.report.text import evaluation_text, identification_text

if TYPE_CHECKING:
    from robot_dyn_id.report.figure import Figure


@dataclass(frozen=True)
class IdentifiedParameters(ParameterSet):
    """A parameter set that makes its own dynamics.

    Example:
        ```python
        dynamics = rdi.load_parameters("run/parameters.yaml").dynamics()
        tau = dynamics.inverse_dynamics(q, dq, ddq)
        ```
    """

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> IdentifiedParameters:
        """The same values, with methods that use them."""
        return cls(**{item.name: getattr(parameters, item.name) for item in fields(ParameterSet)})

    def dynamics(self) -> Dynamics:
        """Inverse and forward dynamics of the identified robot.

        Raises:
            InputError: a set that this version cannot read.

        Warns:
            UserWarning: the verdict is bad; or drive gains are not known, so that efforts are not in N m or N, see
                `Dynamics.effort_units`.
        """
        if self.judgment.verdict == "bad":
            warnings.warn(f"the model of {self.robot.name} is bad: do not control a robot with it", stacklevel=2)
        if self.unknown_gains:
            warnings.warn(f"{describe_unknown_gains(self.drive_units)}: {GAIN_REMEDY}", stacklevel=2)
        return Dynamics.from_parameters(self)


@dataclass(frozen=True, repr=False)
class IdentificationResult(Identification):
    """An identified model with its evaluation on held-out data.

    `print(result)` shows the table of `robot-dyn-id identify`. The model is `result.parameters`, the verdict
    `result.evaluation.verdict`.

    Attributes:
        decoded: decoded recordings; None: they are in memory, or decoded in each pass.
    """

    decoded: StreamStore | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_identification(
        cls, identification: Identification, decoded: StreamStore | None = None
    ) -> IdentificationResult:
        """The same values, with methods that print, write and draw them."""
        values = {item.name: getattr(identification, item.name) for item in fields(Identification)}
        parameters = IdentifiedParameters.from_parameters(identification.parameters)
        return cls(**{**values, "parameters": parameters}, decoded=decoded)

    def close(self) -> None:
        """Free the memory and the temporary files of the recordings; later passes over them decode and filter again."""
        for store in (self.decoded, self.training.store, self.evaluation.trials.store):
            if store is not None:
                store.close()

    def dynamics(self) -> Dynamics:
        """Inverse and forward dynamics of the identified robot; see `IdentifiedParameters.dynamics`."""
        return IdentifiedParameters.from_parameters(self.parameters).dynamics()

    def __repr__(self) -> str:
        """Robot, verdict and error in one line, as for the last line of a notebook's cell."""
        parameters, judgment = self.parameters, self.parameters.judgment
        return (
            f"<IdentificationResult: {parameters.robot.name}, {judgment.verdict}, {len(parameters.base.names)} base "
            f"parameters, held-out NRMSE {judgment.held_out_all_joints_nrmse:.2%}; print() shows the tables>"
        )

    def __str__(self) -> str:
        """Held-out errors per joint, cross-check, the model, uses, findings, and the verdict."""
        return identification_text(self)

    def save(self, folder: str | Path) -> dict[str, Any]:
        """Write `parameters.yaml`, `report.json` and `report.html`, and replace those of an earlier run.

        Args:
            folder: the folder of the results, created if needed.

        Returns:
            Content of `report.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        folder = output_folder(folder)
        explanation = explain(self.evaluation, self.parameters, self.training)
        summary = identification_summary(self, str(folder / PARAMETERS), explanation)
        write_results(folder, summary, explanation, self.parameters)
        write_parameters(folder / PARAMETERS, self.parameters)
        return summary

    def plot(self) -> Figure:
        """Measured and predicted effort of every joint over the held-out data, as a matplotlib figure.

        Raises:
            UsageError: matplotlib is not installed.
        """
        return torque_figure(self.evaluation)


@dataclass(frozen=True, kw_only=True)
class ValidationResult(Evaluation):
    """Evaluation of an identified model on other recordings.

    `print(result)` shows the table of `robot-dyn-id validate`.

    Attributes:
        parameters: the model that was evaluated.
    """

    parameters: ParameterSet

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, parameters: ParameterSet) -> ValidationResult:
        """The same values, with methods that print, write and draw them."""
        values = {item.name: getattr(evaluation, item.name) for item in fields(Evaluation)}
        return cls(**values, parameters=parameters)

    def __str__(self) -> str:
        """Held-out errors per joint, cross-check, warnings and verdict."""
        return evaluation_text(self)

    def summary(self, parameters_file: str = "") -> dict[str, Any]:
        """Content of `report.json`.

        Args:
            parameters_file: file that the parameters were read from.
        """
        return evaluation_summary(self, parameters_file, self.parameters)

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
        folder, explanation = output_folder(folder), explain(self, self.parameters)
        summary = evaluation_summary(self, parameters_file, self.parameters, explanation)
        write_results(folder, summary, explanation, self.parameters)
        return summary

    def plot(self) -> Figure:
        """Measured and predicted effort of every joint, as a matplotlib figure.

        Raises:
            UsageError: matplotlib is not installed.
        """
        return torque_figure(self)
