# SPDX-License-Identifier: Apache-2.0
"""Reading of what is known of a robot before its identification: a parameter set, or a robot description."""

from __future__ import annotations

from pathlib import Path

from robot_dyn_id.errors import InputError
from robot_dyn_id.files.parameters import find_parameters_file, read_parameters
from robot_dyn_id.model.screw_file import has_screws
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.text.files import read_text

PRIOR_LIMIT = 64 * 2**20
"""Maximum size of a prior [characters]."""


def read_prior(path: str | Path) -> ParameterSet | RobotDescription:
    """Read an earlier parameter set, or the file of a robot: XML and screws are robot descriptions.

    Args:
        path: the file, or the folder of results with `parameters.yaml`.

    Raises:
        InputError: not readable, or neither of the two.
        ModelError: a robot description that cannot be used.
    """
    path = find_parameters_file(path)
    text = read_text(path, "prior", PRIOR_LIMIT, InputError)
    if text.lstrip("\ufeff \t\r\n").startswith("<") or has_screws(text):
        return RobotDescription.from_file(path)
    return read_parameters(path)
