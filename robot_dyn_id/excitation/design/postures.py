# SPDX-License-Identifier: Apache-2.0
"""Number of configurations that a sequential motion needs, and what no such motion excites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import MotionError, RobotDynIdError
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.forms.registry import FORMS, make_parametrization
from robot_dyn_id.excitation.forms.sequential import SequentialMotion
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.parametrization import Demand

MOST_POSTURES = 6
"""Largest number of configurations that is tried."""

DRAWS = 4
"""Number of random motions, of which the one that excites most counts."""

SAMPLES_PER_TURN = 40
"""Samples of a turn in which the excitation is evaluated."""

MIN_SINGULAR_VALUE_RATIO = 1e-6
"""Singular values of unit-norm columns below this share of the largest belong to directions that are not excited."""

MIN_COMPONENT = 1e-3
"""Smallest component of a parameter in such a direction with which it is listed."""


def choose_postures(form: str, demand: Demand, limits: MotionLimits, information: Information) -> Demand:
    """Determine the least number of configurations in which a sequential motion excites all parameters.

    Other forms, demands with a number of their own, and motions of some of the joints are returned as they are.

    Args:
        form: key of `FORMS`.
        demand: requirements on the motion.
        limits: motion limits of the joints.
        information: Fisher information of a motion about the parameters.

    Raises:
        MotionError: no number of configurations is sufficient; names the parameters and the forms that excite them.
        UsageError: see `make_parametrization`.
    """
    partial = bool(demand.moving) and set(demand.moving) != set(limits.joint_names)
    sequential = form in FORMS and issubclass(FORMS[form], SequentialMotion)
    if demand.postures or partial or not sequential:
        return demand
    together = np.zeros((len(information.names),) * 2)
    for count in range(1, MOST_POSTURES + 1):
        tried = replace(demand, postures=count)
        for matrix in _drawn(form, tried, limits, information):
            if not len(find_unexcited(matrix, information.names)):
                return tried
            together += matrix
    missing = find_unexcited(together, information.names)
    if not missing:
        return replace(demand, postures=MOST_POSTURES)
    others = [other for other in FORMS if other != form and _excites(other, demand, limits, information)]
    instead = f"use the form {' or '.join(others)}" if others else "leave out terms or joints"
    raise MotionError(
        f"no {form} motion in up to {MOST_POSTURES} configurations excites {', '.join(missing)}: {instead}"
    )


def find_unexcited(matrix: Array, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the parameters with a component in a direction that an information matrix does not contain.

    Args:
        matrix: information matrix, shape (p, p).
        names: names of the parameters, shape (p,).
    """
    norms = np.sqrt(np.diag(matrix))
    least = MIN_SINGULAR_VALUE_RATIO * norms.max(initial=0.0)
    scale = np.where(norms > least, norms, 1.0)
    squares, directions = np.linalg.eigh(matrix / np.outer(scale, scale))
    hidden = squares < (MIN_SINGULAR_VALUE_RATIO**2) * squares.max(initial=0.0)
    found = (np.abs(directions[:, hidden]).max(axis=1, initial=0.0) > MIN_COMPONENT) | (norms <= least)
    return tuple(np.array(names)[found].tolist())


def _drawn(form: str, demand: Demand, limits: MotionLimits, information: Information) -> list[Array]:
    """Information matrices of random motions."""
    family, rng = make_parametrization(form, limits, demand), np.random.default_rng(0)
    count = SAMPLES_PER_TURN * len(limits.joint_names) * max(1, demand.postures)
    times = (np.arange(count) + 0.5) / count * family.duration
    if family.windows:
        times = times[[any(begin <= t <= end for begin, end in family.windows) for t in times]]
    return [information.matrix(Motion(*family.sample(family.random(rng, 1.0), times)[:3])) for _ in range(DRAWS)]


def _excites(form: str, demand: Demand, limits: MotionLimits, information: Information) -> bool:
    """Whether a random motion of another form excites all parameters."""
    try:
        drawn = _drawn(form, replace(demand, postures=0, window=0.0, amplitude=()), limits, information)
    except RobotDynIdError:  # such as chirps, which need frequencies
        return False
    return any(not find_unexcited(matrix, information.names) for matrix in drawn)
