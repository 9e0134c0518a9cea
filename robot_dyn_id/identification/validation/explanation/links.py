# SPDX-License-Identifier: Apache-2.0
"""Links as bodies: mass, center of mass and inertia, with the standard deviations of those that data determine.

The torque of a robot depends on combinations of its links' parameters. Those of single links are a realization of these
combinations: its values come from the prior wherever the data do not determine them, and have no standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.body_prior import BodyPrior, has_placeholder_masses
from robot_dyn_id.dynamics.link_body import SYMBOLS, LinkBody, compute_determined_covariance, find_lone_parameters
from robot_dyn_id.model.kinematics import link_placements
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import INERTIAL_UNITS, ParameterSet, inertial_names

DETERMINED, COMBINED, WITHOUT_TORQUE = "determined", "in combination", "without torque"
"""Words for a parameter whose value the data determine, only in combination with others, and not at all."""

BY_PRIOR = "by the prior"
"""Word for a parameter whose value follows from the prior rather than from the data, see `DETERMINED_SHARE`."""

UNKNOWN = "unknown"
"""Word for a parameter whose standard deviation contains a prior of unknown strength."""


@dataclass(frozen=True)
class LinkParameter:
    """A standard parameter of a body.

    Attributes:
        name: name, such as `mx7`.
        unit: unit of the value.
        value: value in the realization of the parameter set.
        sigma: standard deviation; NaN unless the status is `DETERMINED`.
        status: `DETERMINED`, `COMBINED`, `WITHOUT_TORQUE`, `BY_PRIOR`, `UNKNOWN`, or `not excited`.
        expression: base parameter that contains it; empty if no torque depends on it.
        urdf: value of the URDF; NaN without.
        difference: value minus that of the URDF in standard deviations; NaN if one of them is not known.
    """

    name: str
    unit: str
    value: float
    sigma: float
    status: str
    expression: str
    urdf: float
    difference: float


@dataclass(frozen=True)
class LinkExplanation:
    """A moving body of the robot: the link that a joint moves, with the links that are fixed to it.

    Attributes:
        name: name of the link.
        joint: joint that moves it.
        lumped: names of the other links that are part of the body.
        identified: the body of the parameter set.
        urdf: the body of the URDF; None if its masses are missing or placeholders.
        determined: `yes`: the data determine all its parameters; `partly`; `no`; `UNKNOWN`.
        parameters: its ten standard parameters.
    """

    name: str
    joint: str
    lumped: tuple[str, ...]
    identified: LinkBody
    urdf: LinkBody | None
    determined: str
    parameters: tuple[LinkParameter, ...]


def explain_links(parameters: ParameterSet, model: RobotModel) -> tuple[LinkExplanation, ...]:
    """Describe the bodies of a parameter set next to those of its URDF, in the order of the bodies.

    Bodies whose parameters depend on currents of unknown gain are left out: their numbers
    are not masses and inertias.

    Args:
        parameters: the parameter set.
        model: its robot.
    """
    covariance = compute_determined_covariance(parameters, BodyPrior.from_model(model).scales)
    words = (DETERMINED, UNKNOWN if np.isnan(parameters.estimate.prior_strength) else BY_PRIOR)
    states = _list_states(parameters, covariance, words)
    nominal = None if has_placeholder_masses(model) else model.inertial_parameters
    listed = _list_parameters(parameters, covariance, states, nominal)
    carried = _links_of_bodies(model)
    found = []
    for number, joint in enumerate(model.body_names):
        own = slice(SYMBOLS * number, SYMBOLS * (number + 1))
        if model.inertial_units[own] != INERTIAL_UNITS:
            continue
        rows = tuple(listed[own])
        determined = sum(row.status == DETERMINED for row in rows)
        none = UNKNOWN if any(row.status == UNKNOWN for row in rows) else "no"
        found.append(
            LinkExplanation(
                name=carried[number][0],
                joint=joint,
                lumped=carried[number][1:],
                identified=LinkBody.from_parameters(parameters.bodies.standard_parameters[own], covariance[own, own]),
                urdf=None if nominal is None else LinkBody.from_parameters(nominal[own]),
                determined="yes" if determined == SYMBOLS else "partly" if determined else none,
                parameters=rows,
            )
        )
    return tuple(found)


def _list_states(parameters: ParameterSet, covariance: Array, words: tuple[str, str]) -> list[tuple[str, str]]:
    """Status and expression of every standard parameter.

    Args:
        parameters: the parameter set.
        covariance: covariance of what the data determine, NaN elsewhere, shape (10 b, 10 b).
        words: status of parameters alone that have one, and of those that have none.
    """
    bodies = len(parameters.robot.body_names)
    alone, columns = find_lone_parameters(parameters), parameters.base.independent
    found = []
    for column in range(SYMBOLS * bodies):
        if column in alone:
            word = parameters.estimate.status[alone[column]]
            word = word if word == "not excited" else words[int(np.isnan(covariance[column, column]))]
            found.append((word, parameters.base.expressions[alone[column]]))
            continue
        rows = np.flatnonzero(parameters.base.mapping[:, column])
        own = [row for row in rows if columns[row] == column]
        largest = rows[np.argmax(np.abs(parameters.base.mapping[rows, column]))] if len(rows) else -1
        if not len(rows):
            found.append((WITHOUT_TORQUE, ""))
        else:
            found.append((COMBINED, parameters.base.expressions[own[0] if own else largest]))
    return found


def _list_parameters(
    parameters: ParameterSet, covariance: Array, states: list[tuple[str, str]], nominal: Array | None
) -> list[LinkParameter]:
    """All standard parameters, numbered like the moving joints."""
    sigmas = np.sqrt(np.diag(covariance))
    names = inertial_names(len(parameters.robot.body_names))
    given = np.full(len(sigmas), np.nan) if nominal is None else nominal
    rows = []
    for number, (name, (status, expression)) in enumerate(zip(names, states, strict=True)):
        value, sigma, urdf = (
            float(parameters.bodies.standard_parameters[number]),
            float(sigmas[number]),
            float(given[number]),
        )
        difference = (value - urdf) / sigma if sigma > 0.0 else np.nan
        unit = INERTIAL_UNITS[number % SYMBOLS]
        rows.append(LinkParameter(name, unit, value, sigma, status, expression, urdf, difference))
    return rows


def _links_of_bodies(model: RobotModel) -> list[tuple[str, ...]]:
    """Names of the links of each body, first that of its joint."""
    links: list[list[str]] = [[] for _ in model.body_names]
    for link, place in link_placements(model).items():
        if place.body >= 0:
            links[place.body].append(link)
    return [tuple(own) for own in links]
