# SPDX-License-Identifier: Apache-2.0
"""Physical consistency of parameters: could a real robot have them?

A body's parameters are consistent if and only if its 4 x 4 pseudo-inertia matrix is positive definite (Wensing, Kim and
Slotine 2018): positive mass, and principal moments of inertia that obey the triangle inequalities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.uses import LIMITED

NEGATIVE_PARAMETER = Definition(
    "negative_parameter",
    Section.ESTIMATES,
    "warning",
    "A friction, inertia or stiffness is negative by more than three standard deviations, which is not physical.",
    "check for a delayed effort signal, a wrong smoothing width, a wrong sign, and too little motion",
    lowers=dict.fromkeys(("computed_torque", "forward_simulation"), LIMITED),
)

PRIOR_NOT_PHYSICAL = Definition(
    "prior_not_physical",
    Section.ESTIMATES,
    "info",
    "A link of the URDF has a mass or inertia that no body can have, or hardly one; a body close to it is the prior.",
    "correct the inertia in the URDF",
)

SIGMAS = 3.0
"""Number of standard deviations below zero that counts as significant."""

FLATTEST = 1e-4
"""Least second moment of mass of a body's prior, as a share of its greatest: a rod is 1/60 as thick as long."""

ROUNDED = 1e-10
"""Second moment about the center of mass, as a share of the largest squared distance of a center, that is a rounding
error of the moments about the joint."""

SMALLEST = 1e-2
"""Least radius of gyration of a body's prior, as a share of the robot's typical one."""

LIGHTEST = 1e-3
"""Least mass of a body's prior, as a share of the robot's mean."""


def pseudo_inertia(parameters: Array) -> Array:
    """Pseudo-inertia matrices of bodies.

    Args:
        parameters: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz of each body about its frame's origin, shape (..., 10).

    Returns:
        [[tr(I)/2 E - I, h], [h', m]], shape (..., 4, 4).
    """
    m, mx, my, mz, ixx, ixy, iyy, ixz, iyz, izz = np.moveaxis(np.asarray(parameters, dtype=np.float64), -1, 0)
    half = 0.5 * (ixx + iyy + izz)
    rows = [
        [half - ixx, -ixy, -ixz, mx],
        [-ixy, half - iyy, -iyz, my],
        [-ixz, -iyz, half - izz, mz],
        [mx, my, mz, m],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def convert_to_parameters(pseudo: Array) -> Array:
    """The parameters of pseudo-inertia matrices: `pseudo_inertia` backwards, shape (..., 4, 4) -> (..., 10)."""
    entries = np.moveaxis(pseudo, (-2, -1), (0, 1))
    xx, yy, zz = entries[0, 0], entries[1, 1], entries[2, 2]
    values = [
        *(entries[3, 3], entries[0, 3], entries[1, 3], entries[2, 3]),
        *(yy + zz, -entries[0, 1], xx + zz, -entries[0, 2], -entries[1, 2], xx + yy),
    ]
    return np.stack(values, axis=-1)


def convert_to_central(parameters: Array) -> tuple[float, Array, Array]:
    """Mass, center of mass (3,) and inertia about it (3, 3) of a body's parameters, shape (10,).

    Raises:
        ZeroDivisionError: no mass.
    """
    m, *moment = parameters[:4].tolist()
    xx, xy, yy, xz, yz, zz = parameters[4:]
    if m == 0.0:
        raise ZeroDivisionError("a body without mass has no center")
    center = np.array(moment) / m
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return m, center, about_origin - m * (center @ center * np.eye(3) - np.outer(center, center))


def is_consistent(parameters: Array) -> bool:
    """Whether every body of a robot's standard parameters, shape (10 b,), has a positive-definite pseudo-inertia."""
    return bool(np.all(np.linalg.eigvalsh(pseudo_inertia(parameters.reshape(-1, 10))) > 0.0))


def find_violation(parameters: Array) -> str:
    """Reason why a body's parameters, shape (10,), are not physically consistent; empty if they are."""
    if not parameters[0] > 0.0:
        return f"its mass is {parameters[0]:.3g} kg"
    least, middle, most = np.linalg.eigvalsh(convert_to_central(parameters)[2])
    if not least > 0.0:
        return f"a principal moment of inertia is {least:.3g} kg m^2"
    if not least + middle > most:
        return f"its principal moments {least:.3g}, {middle:.3g}, {most:.3g} kg m^2 break the triangle inequality"
    return ""


def flag_not_negative(regressor: Regressor) -> Mask:
    """Flags of the term columns that are friction or inertia and cannot be negative, shape (c - 10 b,)."""
    columns = regressor.term_columns
    return np.array([column.term.symbols[column.index] in column.term.not_negative for column in columns], dtype=bool)


def make_consistent(parameters: Array, names: Sequence[str]) -> tuple[Array, tuple[Finding, ...]]:
    """Physically consistent bodies close to the given ones, and a finding about each that is not.

    Masses and second moments of mass get floors that scale with the robot.

    Args:
        parameters: standard parameters of b bodies, shape (b, 10).
        names: names of the bodies, b.

    Raises:
        InputError: no body has a positive mass: there is no scale.
    """
    masses = parameters[:, 0]
    if not np.any(masses > 0.0):
        raise InputError(
            "the URDF gives no moving link a mass, so there is nothing to stay near to: write estimates of the masses "
            "and inertias into it, or choose the estimator weighted"
        )
    lightest = LIGHTEST * masses[masses > 0.0].mean()
    spreads = [_spread(body) for body in parameters if body[0] >= lightest]
    greatest = [np.linalg.eigvalsh(spread)[-1] for spread in spreads]
    reach = float(np.max(np.linalg.norm(parameters[:, 1:4], axis=1) / np.maximum(masses, lightest)))
    typical = float(np.median([value for value in greatest if value > ROUNDED * reach**2] or [(0.1 * reach) ** 2]))
    if not typical > 0.0:
        raise InputError(
            "the URDF gives no moving link an inertia or a center of mass off its joint: write estimates into it, or "
            "choose the estimator weighted"
        )
    bodies, findings = [], []
    for name, body in zip(names, parameters, strict=True):
        mass = max(float(body[0]), lightest)
        center = body[1:4] / mass if body[0] >= lightest else np.zeros(3)
        values, vectors = np.linalg.eigh(_spread(body) if body[0] >= lightest else np.zeros((3, 3)))
        floor = max(FLATTEST * values[-1], SMALLEST**2 * typical)
        if mass > body[0] or values[0] < floor:
            message = (
                f"joint {name}: the URDF's inertia is not (or barely) physically consistent "
                f"({find_violation(body) or 'it is almost flat'}): the prior is a body close to it"
            )
            findings.append(PRIOR_NOT_PHYSICAL.found(message, [name]))
        second = (vectors * np.maximum(values, floor)) @ vectors.T + np.outer(center, center)
        pseudo = mass * np.block([[second, center[:, None]], [center[None, :], np.ones((1, 1))]])
        bodies.append(convert_to_parameters(pseudo))
    return np.array(bodies), tuple(findings)


def _spread(body: Array) -> Array:
    """Second moments of mass about the center of mass, per mass [m^2], shape (3, 3)."""
    mass, _, inertia = convert_to_central(body)
    return np.asarray((0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass)


def report_negative_terms(
    regressor: Regressor, base: BaseParameters, values: Array, sigmas: Array
) -> tuple[Finding, ...]:
    """Findings about joints with a friction or rotor inertia that is significantly negative.

    Such a value is a symptom of the data or the model (a late effort, a wrong smoothing width, too little motion), and
    a controller that feeds it forward drives where it should brake.

    Args:
        regressor: robot and terms.
        base: its base parameters; those that combine a term with others are passed over.
        values: values of the base parameters, shape (p,).
        sigmas: their standard deviations, shape (p,).
    """
    first = 10 * len(regressor.model.body_names)
    alone, bounded = np.count_nonzero(base.mapping, axis=1) == 1, flag_not_negative(regressor)
    found: dict[str, list[str]] = {}
    for column, value, sigma, single in zip(base.independent, values, sigmas, alone, strict=True):
        if column < first or not single or not value < -SIGMAS * sigma:
            continue
        if bounded[column - first]:
            term = regressor.term_columns[column - first]
            text = f"{regressor.names[column]} = {value:.3g} +- {sigma:.2g}"
            found.setdefault(term.coordinate.name, []).append(text)
    actions = {
        False: "check for a delayed effort signal, a wrong smoothing width and too little motion",
        True: "check the sign of the effort",
    }
    return tuple(
        NEGATIVE_PARAMETER.found(
            f"joint {joint}: {' and '.join(texts)} negative, which is not physical",
            [joint],
            action=actions[len(texts) > 1],
        )
        for joint, texts in found.items()
    )
