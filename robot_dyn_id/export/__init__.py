# SPDX-License-Identifier: Apache-2.0
"""Identified models in the formats of other tools: one file per format, and one line here."""

from collections.abc import Callable

from robot_dyn_id.export.controller_parameters import (
    admittance_controller,
    cartesian_controllers,
    crisp_controllers,
    robotis_gravity_compensation,
)
from robot_dyn_id.export.evaluator import c, cpp
from robot_dyn_id.export.mjcf import mjcf
from robot_dyn_id.export.model import Exported
from robot_dyn_id.export.urdf import urdf
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import ParameterSet

FORMATS: dict[str, Callable[[ParameterSet], Exported]] = {
    "urdf": urdf,
    "mjcf": mjcf,
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

__all__ = ["FORMATS", "TOOL_FORMATS", "Exported"]
