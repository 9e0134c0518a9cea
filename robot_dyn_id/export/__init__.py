# SPDX-License-Identifier: Apache-2.0
"""Identified models in the formats of other tools: one file per format, and one line here."""

from collections.abc import Callable
from dataclasses import replace

from robot_dyn_id.export.controller_parameters import (
    admittance_controller,
    cartesian_controllers,
    crisp_controllers,
    robotis_gravity_compensation,
)
from robot_dyn_id.export.evaluator import c, cpp
from robot_dyn_id.export.mjcf import mjcf
from robot_dyn_id.export.model import Exported
from robot_dyn_id.export.numpy_module import python
from robot_dyn_id.export.sdf import sdf
from robot_dyn_id.export.urdf import urdf
from robot_dyn_id.findings import make_finding
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import ParameterSet

FORMATS: dict[str, Callable[[ParameterSet], Exported]] = {
    "urdf": urdf,
    "mjcf": mjcf,
    "sdf": sdf,
    "python": python,
    "c": c,
    "cpp": cpp,
    "crisp_controllers": crisp_controllers,
    "gravity_compensation_controller": robotis_gravity_compensation,
}
"""Formats by the name that the command line uses."""

TOOL_FORMATS: dict[str, Callable[[Payload], Exported]] = {
    "admittance_controller": admittance_controller,
    "cartesian_controllers": cartesian_controllers,
}
"""Formats of a payload, by name."""

__all__ = ["FORMATS", "TOOL_FORMATS", "Exported", "export_model"]


def export_model(name: str, parameters: ParameterSet, allow_bad_verdict: bool = False) -> Exported:
    """Write a parameter set in the format of another tool.

    Args:
        name: format, a key of `FORMATS`.
        parameters: identified parameter set.
        allow_bad_verdict: also export a set with the verdict bad, which a finding reports. Tools compute torques from
            every one of these formats, and do not know the verdict.

    Raises:
        InputError: a bad verdict, drive gains that are not known, or parameters that the format cannot carry.
    """
    parameters.refuse_unknown_gains()
    if not allow_bad_verdict:
        parameters.refuse_bad_verdict()
    exported = FORMATS[name](parameters)
    if parameters.verdict != "bad":
        return exported
    message = f"the verdict on the exported parameters is bad ({'; '.join(parameters.reasons)})"
    return replace(exported, findings=(make_finding("export_of_bad_verdict", message), *exported.findings))
