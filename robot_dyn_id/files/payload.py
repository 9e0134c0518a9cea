# SPDX-License-Identifier: Apache-2.0
"""`payload.yaml`: a body on a link as text; written by `robot-dyn-id payload`, read as the known load of `gains`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import is_consistent, parameters_of, violation
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.urdf import inertial_text
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import INERTIAL_SYMBOLS
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.text.yaml import Row, read_yaml, yaml_text

FORMAT = "robot_dyn_id payload 1"

MOMENTS = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
"""About the center of mass, along the axes of the link's frame."""

_PLACES = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)


def payload_summary(payload: Payload) -> dict[str, Any]:
    """What is known of a payload: SI; a standard deviation is None where the data do not tell."""
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
        "not_seen": list(payload.not_seen),
        "findings": [finding.summary() for finding in payload.findings],
    }


def write_payload(path: str | Path, payload: Payload, **more: Any) -> dict[str, Any]:
    """Write a payload with its covariance and the `<inertial>` of a URDF; returns the summary.

    Args:
        path: of the file.
        payload: the body.
        more: further entries of the summary.

    Raises:
        InputError: the file cannot be written.
    """
    summary = {**payload_summary(payload), **more}
    rows = [Row(row) for row in payload.covariance.tolist()]
    content = {"format": FORMAT, **_in_lines(summary), "covariance": rows, "urdf": inertial_text(payload.parameters)}
    write_atomically(Path(path), yaml_text(content))
    return summary


def read_payload(path: str | Path) -> Payload:
    """A payload that is known: `link`, `mass`, `center_of_mass` and `inertia` of a file count, all else does not.

    Raises:
        InputError: not readable, an entry that is missing or no number, or a body that could not exist.
    """
    content = read_yaml(path, "payload")
    if not isinstance(content, dict) or not isinstance(content.get("link"), str):
        raise InputError(f"{path}: a payload needs link, mass [kg], center_of_mass [m] and inertia [kg m^2]")
    try:
        moments = content["inertia"]
        mass, center = float(content["mass"]), np.array(content["center_of_mass"], dtype=np.float64)
        inertia = np.zeros((3, 3))
        inertia[_PLACES] = [float(moments[name]) for name in MOMENTS]
    except KeyError as missing:
        raise InputError(f"{path}: {missing.args[0]} is missing") from None
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{path}: mass, center_of_mass and inertia must be numbers, [x, y, z] and "
                         f"{{{', '.join(MOMENTS)}}}") from None  # fmt: skip
    if center.shape != (3,):
        raise InputError(f"{path}: center_of_mass must be three numbers [m]")
    body = _body(mass, center, inertia + np.triu(inertia, 1).T)
    if not np.isfinite(body).all():
        raise InputError(f"{path}: mass, center_of_mass and inertia must be finite, and so must their products")
    if not is_consistent(body):
        raise InputError(f"{path}: no real body is like that: {violation(body) or 'it is flat'}")
    return Payload(content["link"], body, np.zeros((10, 10)), body)


def _body(mass: float, center: Array, inertia: Array) -> Array:
    """The ten parameters about the origin from mass, center of mass and inertia about it."""
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(center, center)
    moment = mass * center
    return parameters_of(np.block([[second, moment[:, None]], [moment[None], np.full((1, 1), mass)]]))


def _in_lines(value: Any) -> Any:
    """Lists of numbers as one line each."""
    if isinstance(value, dict):
        return {key: _in_lines(entry) for key, entry in value.items()}
    return Row(value) if isinstance(value, list) else value
