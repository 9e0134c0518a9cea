# SPDX-License-Identifier: Apache-2.0
"""Identified models in the formats of other tools: one file per format, and one line here."""

from collections.abc import Callable

from robot_dyn_id.export.evaluator import c, cpp
from robot_dyn_id.export.mjcf import mjcf
from robot_dyn_id.export.model import Exported
from robot_dyn_id.export.urdf import urdf
from robot_dyn_id.parameters import ParameterSet

FORMATS: dict[str, Callable[[ParameterSet], Exported]] = {"urdf": urdf, "mjcf": mjcf, "c": c, "cpp": cpp}
"""Formats by the name that the command line uses."""

__all__ = ["FORMATS", "Exported", "c", "cpp", "mjcf", "urdf"]
