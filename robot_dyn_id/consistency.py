"""Physical consistency of parameters: could a real robot have them?

A body's parameters are consistent if and only if its 4 x 4 pseudo-inertia matrix is positive definite (Wensing, Kim and
Slotine 2018).
"""

from __future__ import annotations

import numpy as np

from robot_dyn_id.base_parameters import BaseParameters
from robot_dyn_id.dataset import Array
from robot_dyn_id.regressor import Regressor

SIGMAS = 3.0
"""So many standard deviations below zero are no accident."""


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


def is_consistent(parameters: Array) -> bool:
    """Whether every body of a robot's standard parameters, shape (10 b,), has a positive-definite pseudo-inertia."""
    return bool(np.all(np.linalg.eigvalsh(pseudo_inertia(parameters.reshape(-1, 10))) > 0.0))


def negative_terms(regressor: Regressor, base: BaseParameters, values: Array, sigmas: Array) -> tuple[str, ...]:
    """A sentence about each friction or rotor inertia that is significantly negative.

    Such a value is a symptom of the data or the model (a late effort, a wrong smoothing width, too little motion), and
    a controller that feeds it forward drives where it should brake.

    Args:
        regressor: robot and terms.
        base: its base parameters; those that combine a term with others are passed over.
        values: of the base parameters, shape (p,).
        sigmas: their standard deviations.
    """
    first = 10 * len(regressor.model.body_names)
    alone = np.count_nonzero(base.mapping, axis=1) == 1
    told: dict[str, list[str]] = {}
    for column, value, sigma, single in zip(base.independent, values, sigmas, alone, strict=True):
        if column < first or not single or not value < -SIGMAS * sigma:
            continue
        term = regressor.term_columns[column - first]
        if term.term.symbols[term.index] in term.term.not_negative:
            text = f"{regressor.names[column]} is {value:.3g} +- {sigma:.2g}"
            told.setdefault(term.coordinate.name, []).append(text)
    causes = {False: "a late effort, a wrong smoothing width or too little motion", True: "the sign of its effort"}
    return tuple(
        f"joint {joint}: {' and '.join(texts)}, which no joint has below zero: look for {causes[len(texts) > 1]}"
        for joint, texts in told.items()
    )
