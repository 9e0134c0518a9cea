# SPDX-License-Identifier: Apache-2.0
"""`payload.yaml`: a body on a link as text, written by payload identification and read as a known load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import is_consistent, parameters_of, violation
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.urdf import inertial_text
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.spelling import refuse_old_spellings
from robot_dyn_id.files.values import file_errors, read_dataclass
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import INERTIAL_SYMBOLS
from robot_dyn_id.text.yaml import Row, read_yaml

FORMAT = FileFormat("payload", 2, "identify the payload again with this version of robot_dyn_id")

MOMENTS = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
"""Moments of inertia about the center of mass, along the axes of the link's frame."""

_PLACES = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)


@dataclass(frozen=True)
class _Inertia:
    """Moments of inertia about the center of mass [kg m^2], in the order of `MOMENTS`."""

    ixx: float
    ixy: float
    iyy: float
    ixz: float
    iyz: float
    izz: float


@dataclass(frozen=True)
class _Body:
    """Keys of a known payload; SI, in the frame of the link."""

    link: str
    mass: float
    center_of_mass: tuple[float, float, float]
    inertia: _Inertia


def payload_summary(payload: Payload) -> dict[str, Any]:
    """Identified payload as keys and values, SI; a standard deviation is None where it is not identifiable."""
    sigma = [float(value) if np.isfinite(value) else None for value in payload.central_standard_deviations]
    moments = payload.inertia[_PLACES].tolist()
    return {
        "link": payload.link,
        "mass": payload.mass,
        "center_of_mass": payload.center_of_mass.tolist(),
        "inertia": dict(zip(MOMENTS, moments, strict=True)),
        "standard_deviations": {
            "mass": sigma[0],
            "center_of_mass": sigma[1:4],
            "inertia": dict(zip(MOMENTS, sigma[4:], strict=True)),
        },
        "parameters": dict(zip(INERTIAL_SYMBOLS, payload.parameters.tolist(), strict=True)),
        "not_excited": list(payload.not_excited),
        "findings": [finding.summary() for finding in payload.findings],
    }


def write_payload(path: str | Path, payload: Payload, **entries: Any) -> dict[str, Any]:
    """Write a payload with its covariance and the `<inertial>` of a URDF.

    Args:
        path: the file.
        payload: the body.
        entries: further entries of the summary.

    Returns:
        The summary, see `payload_summary`, with these entries.

    Raises:
        InputError: the file cannot be written.
    """
    summary = {**payload_summary(payload), **entries}
    rows = [Row(row) for row in payload.covariance.tolist()]
    FORMAT.write(path, {**_in_lines(summary), "covariance": rows, "urdf": inertial_text(payload.parameters)})
    return summary


def read_payload(path: str | Path) -> Payload:
    """Read a known payload: `link`, `mass`, `center_of_mass` and `inertia` of a file; other keys are ignored.

    A file with the key `format` is one that this tool has written; one without it may be written by hand.

    Raises:
        InputError: not readable, another format version, an entry that is missing or not a number, or a body that is
            not physically possible.
    """
    content = read_yaml(path, "payload")
    if isinstance(content, Mapping) and "format" in content:
        FORMAT.check(content, path)
    with file_errors(path, InputError):
        refuse_old_spellings(content)
        names = ("link", "mass", "center_of_mass", "inertia")
        known = {name: content[name] for name in names if name in content} if isinstance(content, dict) else content
        body = read_dataclass(_Body, known)
        parameters = _parameters(body)
        if not np.isfinite(parameters).all():
            raise InputError("mass, center_of_mass and inertia must be finite, and so must their products")
        if not is_consistent(parameters):
            raise InputError(f"not a physically possible body: {violation(parameters) or 'it is flat'}")
    return Payload(body.link, parameters, np.zeros((10, 10)), parameters)


def _parameters(body: _Body) -> Array:
    """The ten parameters about the origin from mass, center of mass and inertia about it."""
    mass, center = body.mass, np.array(body.center_of_mass)
    inertia = np.zeros((3, 3))
    inertia[_PLACES] = astuple(body.inertia)
    inertia = inertia + np.triu(inertia, 1).T
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by the caller
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(center, center)
        moment = mass * center
    return parameters_of(np.block([[second, moment[:, None]], [moment[None], np.full((1, 1), mass)]]))


def _in_lines(value: Any) -> Any:
    """A value whose lists are written in one line each."""
    if isinstance(value, dict):
        return {key: _in_lines(entry) for key, entry in value.items()}
    return Row(value) if isinstance(value, list) else value
