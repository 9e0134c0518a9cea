# SPDX-License-Identifier: Apache-2.0
"""`payload.yaml`: a body on a link as text, written by payload identification and read as a known load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import convert_to_parameters, find_violation, is_consistent
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.urdf import format_inertial
from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.files.spelling import refuse_old_spellings
from robot_dyn_id.files.values import file_errors, read_dataclass
from robot_dyn_id.loads.declared import PARTS, SIGNIFICANCE, DeclaredPayload, DeclaredTest
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import INERTIAL_SYMBOLS
from robot_dyn_id.text.yaml import Row, read_yaml

FORMAT = FileFormat("payload", 2, "identify the payload again with this version of robot_dyn_id")

MOMENTS = {"ixx": (0, 0), "ixy": (0, 1), "iyy": (1, 1), "ixz": (0, 2), "iyz": (1, 2), "izz": (2, 2)}
"""Moments of inertia about the center of mass, along the axes of the link's frame, by place in the matrix."""

_PLACES = tuple(zip(*MOMENTS.values(), strict=True))


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


KEYS = tuple(field.name for field in fields(_Body))
"""Keys of a known payload."""


def summarize_payload(payload: Payload) -> dict[str, Any]:
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
        The summary, see `summarize_payload`, with these entries.

    Raises:
        InputError: the file cannot be written.
    """
    summary = {**summarize_payload(payload), **entries}
    rows = [Row(row) for row in payload.covariance.tolist()]
    FORMAT.write(path, {**_in_lines(summary), "covariance": rows, "urdf": format_inertial(payload.parameters)})
    return summary


def read_payload(path: str | Path) -> Payload:
    """Read a known payload: `link`, `mass`, `center_of_mass` and `inertia` of a file; other keys are ignored.

    A file with the key `format` is one that this tool has written; one without it may be written by hand.

    Raises:
        InputError: not readable, another kind of file or format version, an entry that is missing or not a number, or a
            body that is not physically possible.
    """
    content = _content(path, "payload")
    with file_errors(path, InputError):
        body = read_dataclass(_Body, _known(content) if isinstance(content, Mapping) else content)
        parameters = _parameters(body)
        if not np.isfinite(parameters).all():
            raise InputError("mass, center_of_mass and inertia must be finite, and so must their products")
        if not is_consistent(parameters):
            raise InputError(f"not a physically possible body: {find_violation(parameters) or 'it is flat'}")
    return Payload(body.link, parameters, np.zeros((10, 10)), parameters)


def _content(path: str | Path, name: str) -> Any:
    """Content of a file; spellings are checked, and with the key `format` the kind and the format version."""
    content = read_yaml(path, name)
    if isinstance(content, Mapping) and "format" in content:
        FORMAT.check(content, path)
    with file_errors(path, InputError):
        refuse_old_spellings(content)
    return content


def _known(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in KEYS if name in content}


def read_declared(path: str | Path, link: str) -> DeclaredPayload:
    """Read a declared payload: `mass`, and where they are declared `center_of_mass` and `inertia`; see `read_payload`.

    Files that this tool has written declare all three, and their other keys are ignored. A key of a file written by
    hand that is unknown may be a misspelled declaration, which would not be tested.

    Args:
        path: the file.
        link: link of a file without the key `link`.

    Raises:
        InputError: see `read_payload`; an unknown key of a file written by hand; an inertia without a center of mass.
    """
    content = _content(path, "declared payload")
    with file_errors(path, InputError):
        if not isinstance(content, Mapping):
            raise InputError(f"must be a mapping with the keys {', '.join(KEYS)}")
        if "inertia" in content and "center_of_mass" not in content:
            raise InputError("inertia is declared without center_of_mass")
        body: _Body | _PartlyDeclared
        if "format" in content:
            body = read_dataclass(_Body, {"link": link, **_known(content)})
        else:
            body = read_dataclass(_PartlyDeclared, {"link": link, **content})
        center = body.center_of_mass or ()
        inertia = () if body.inertia is None else astuple(body.inertia)
        return make_declared_payload(body.link, (body.mass, *center, *inertia))


def make_declared_payload(link: str, numbers: Sequence[float]) -> DeclaredPayload:
    """Declared payload of numbers.

    Args:
        link: link in whose frame they are given.
        numbers: mass [kg]; mass and center of mass [m]; or these and Ixx Ixy Iyy Ixz Iyz Izz about it [kg m^2]. A mass
            of 0 declares all ten.

    Raises:
        InputError: another count of numbers, values that are not finite, or a body that is not physically possible.
    """
    if len(numbers) not in PARTS.values():
        raise InputError(
            f"a declared payload has 1, 4 or 10 numbers (mass; center of mass; inertia about it), not {len(numbers)}"
        )
    if not np.isfinite(numbers).all() or numbers[0] < 0.0:
        values = " ".join(f"{number:g}" for number in numbers)
        raise InputError(f"a declared payload has a mass of 0 or more and finite values, not {values}")
    declared = len(numbers) if numbers[0] else 10  # no payload: all ten are 0
    part = next(name for name, count in PARTS.items() if count == declared)
    center = tuple(numbers[1:4]) if len(numbers) > 1 else (0.0, 0.0, 0.0)
    inertia = _Inertia(*numbers[4:]) if len(numbers) > 4 else _Inertia(*(0.0,) * 6)
    parameters = _parameters(_Body(link, float(numbers[0]), (center[0], center[1], center[2]), inertia))
    if len(numbers) == 10 and numbers[0] > 0.0 and not (np.isfinite(parameters).all() and is_consistent(parameters)):
        why = find_violation(parameters) or "it is flat"
        raise InputError(f"the declared payload is not a physically possible body: {why}")
    return DeclaredPayload(link, np.where(np.arange(10) < PARTS[part], parameters, 0.0), part)


def summarize_declared(test: DeclaredTest) -> dict[str, Any]:
    """Test of a declared payload as keys and values, SI."""
    pairs = zip(test.differences.tolist(), test.standard_deviations.tolist(), strict=True)
    return {
        "mass": test.declared.mass,
        "part": test.declared.part,
        "accepted": test.accepted,
        "p_value": test.p_value,
        "significance": SIGNIFICANCE,
        "chi_square": test.statistic,
        "degrees_of_freedom": test.degrees,
        "compared": list(test.compared),
        "differences": {name: list(pair) for name, pair in zip(test.names, pairs, strict=True)},
    }


@dataclass(frozen=True)
class _PartlyDeclared:
    """Keys of a payload that is declared in part."""

    link: str
    mass: float
    center_of_mass: tuple[float, float, float] | None = None
    inertia: _Inertia | None = None


def _parameters(body: _Body) -> Array:
    """The ten parameters about the origin from mass, center of mass and inertia about it."""
    mass, center = body.mass, np.array(body.center_of_mass)
    inertia = np.zeros((3, 3))
    inertia[_PLACES] = astuple(body.inertia)
    inertia = inertia + np.triu(inertia, 1).T
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by the caller
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(center, center)
        moment = mass * center
    return convert_to_parameters(np.block([[second, moment[:, None]], [moment[None], np.full((1, 1), mass)]]))


def _in_lines(value: Any) -> Any:
    """A value whose lists are written in one line each."""
    if isinstance(value, dict):
        return {key: _in_lines(entry) for key, entry in value.items()}
    return Row(value) if isinstance(value, list) else value
