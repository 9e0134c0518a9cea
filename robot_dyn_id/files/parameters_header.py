# SPDX-License-Identifier: Apache-2.0
"""Comment at the top of `parameters.yaml`: links and friction joint by joint, to be read without a program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.link_body import SYMBOLS, LinkBody, compute_determined_covariance
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import GAIN_REMEDY, INERTIAL_UNITS, ParameterSet, describe_unknown_gains

NOTE = (
    "",
    "A summary; programs read the fields below it. SI units: kg, m, rad, N, s. +- gives a standard deviation (inf:",
    "not excited); those of the estimators `consistent` and `map` contain the information of their prior. A number of",
    "a link has one only if the data determine it alone, to half of its usual size on such a link. All others are one",
    "choice of values that gives the identified torque: near the prior or the URDF. With a prior of unknown strength",
    "no number of a link has one.",
)
"""Lines about the numbers."""

LONGEST_EXPRESSION = 90
"""Longest text of a combination that is written whole [characters]."""


def describe_parameters(parameters: ParameterSet) -> str:
    """Summary of a parameter set as lines of a comment, each with `#` and a line break."""
    sections = (_describe_origin, _list_base, _list_links, _list_terms)
    lines = [line for section in sections for line in (*section(parameters), "")]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _describe_origin(parameters: ParameterSet) -> Iterator[str]:
    error = parameters.judgment.held_out_all_joints_nrmse
    held_out = f", error on held-out data {100.0 * error:.2f} % of the torque" if math.isfinite(error) else ""
    yield f"Identified dynamics of {parameters.robot.name}. Verdict: {parameters.judgment.verdict}{held_out}."
    if parameters.judgment.fit_for:
        uses = [f"{entry.use.replace('_', ' ')} {entry.answer}" for entry in parameters.judgment.fit_for]
        yield f"Fit for: {', '.join(uses)}."
    if parameters.unknown_gains:
        yield f"NOT A TORQUE MODEL: {describe_unknown_gains(parameters.drive_units)}."
        yield f"To do: {GAIN_REMEDY}."
    yield from NOTE


def _list_base(parameters: ParameterSet) -> Iterator[str]:
    """Base parameters of the bodies and combinations with terms: what the data determine of them."""
    yield "Base parameters of the links: what the torque depends on"
    rows = zip(
        *(parameters.base.names, parameters.estimate.values, parameters.estimate.standard_deviations),
        *(parameters.base.units, parameters.base.expressions, parameters.base.independent),
        strict=True,
    )
    for name, value, sigma, unit, expression, column in rows:
        if column >= SYMBOLS * len(parameters.robot.body_names) and expression == name:
            continue  # listed by joint
        short = len(expression) <= LONGEST_EXPRESSION
        text = expression if short else expression[:LONGEST_EXPRESSION].rsplit(" ", 2)[0] + " ..."
        combined = f"  = {text}" if expression != name else ""
        number = _number(float(value), float(sigma)) if sigma < np.inf else f"{value:.4g} +- inf"
        yield f"  {name} {number} {unit}{combined}"


def _list_links(parameters: ParameterSet) -> Iterator[str]:
    """Mass, center of mass and central inertia of every body."""
    model = None
    with suppress(InputError):  # a URDF that this version does not read
        model = RobotModel.from_parameters(parameters)
    units = model.inertial_units if model else INERTIAL_UNITS * len(parameters.robot.body_names)
    covariance = _link_covariance(parameters, model)
    yield "Links, in the frame of their joint: mass, center of mass, inertia about it"
    for number, name in enumerate(parameters.robot.body_names):
        own = slice(SYMBOLS * number, SYMBOLS * (number + 1))
        if units[own] != INERTIAL_UNITS:
            yield f"  {name} (not listed: its parameters have units such as {units[own][-1]})"
            continue
        body = LinkBody.from_parameters(parameters.bodies.standard_parameters[own], covariance[own, own])
        yield f"  {name}{'' if body.consistent else ' (no real body has these values)'}"
        yield f"    mass {_number(body.mass, body.mass_sigma)} kg"
        if np.isfinite(body.center).all():
            yield f"    center {_vector(body.center, body.center_sigma)} m"
        diagonal, products = [(0, 0), (1, 1), (2, 2)], [(0, 1), (0, 2), (1, 2)]
        for label, places in (("xx yy zz", diagonal), ("xy xz yz", products)):
            values = np.array([body.inertia[place] for place in places])
            sigmas = np.array([body.inertia_sigma[place] for place in places])
            yield f"    inertia {label} {_vector(values, sigmas)} kg m^2"


def _link_covariance(parameters: ParameterSet, model: RobotModel | None) -> Array:
    """Covariance of the parameters of links that the data determine alone, NaN elsewhere, shape (10 b, 10 b).

    Nothing counts as determined with a prior of unknown strength, or by a URDF that gives links no sizes.
    """
    scales = np.zeros((len(parameters.robot.body_names), SYMBOLS))
    with suppress(InputError):  # links without sizes
        scales = BodyPrior.from_model(model).scales if model else scales
    return compute_determined_covariance(parameters, scales)


def _list_terms(parameters: ParameterSet) -> Iterator[str]:
    """Values of the terms, joint by joint in the order of the robot, then those of couplings."""
    if not parameters.terms.names:
        yield "Friction: none"
        return
    yield "Friction and other terms"
    first = SYMBOLS * len(parameters.robot.body_names)
    alone = np.count_nonzero(parameters.base.mapping, axis=1) == 1
    lone = {name for name, single in zip(parameters.base.names, alone, strict=True) if single}
    deviations = {
        name: float(sigma)
        for name, sigma in zip(parameters.base.column_names[first:], parameters.terms.standard_deviations, strict=True)
        if name in lone
    }
    units = parameters.drive_units
    joints = [name for name in parameters.robot.body_names if name in parameters.terms.joints]
    others = [name for name in dict.fromkeys(parameters.terms.joints) if name not in parameters.robot.body_names]
    for joint in (*joints, *others):
        yield f"  {joint}{f' (effort in {units[joint]})' if joint in units else ''}"
        own = [number for number, name in enumerate(parameters.terms.joints) if name == joint]
        for term in dict.fromkeys(parameters.terms.names[number] for number in own):
            columns = [number for number in own if parameters.terms.names[number] == term]
            values = [
                f"{name} {_number(float(parameters.terms.values[column]), deviations.get(name, math.nan))}"
                for column in columns
                for name in (parameters.base.column_names[first + column],)
            ]
            yield f"    {term}: {', '.join(values)}"


def _vector(values: Array, sigmas: Array) -> str:
    return " ".join(_number(float(value), float(sigma)) for value, sigma in zip(values, sigmas, strict=True))


def _number(value: float, sigma: float) -> str:
    """A value, with its standard deviation to two digits if that is known: `0.231 +- 0.015`."""
    if not (math.isfinite(sigma) and sigma > 0.0):
        return f"{value:.4g}"
    decimals = min(max(0, 1 - math.floor(math.log10(sigma))), 12)
    rounded = round(value, decimals) + 0.0  # no negative zero
    return f"{rounded:.{decimals}f} +- {sigma:.{decimals}f}"
