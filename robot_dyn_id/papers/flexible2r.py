"""Chen et al. 2021: two flexible joints identified stepwise, excited by polynomials; friction of the links here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.excitation.objectives import Condition
from robot_dyn_id.excitation.polynomial import Polynomial
from robot_dyn_id.papers.inputs import model_of, plan_of, settings_of
from robot_dyn_id.planning import Plan
from robot_dyn_id.terms import Coulomb, Viscous

JOINTS = {"link 1": ("joint1",), "link 2": ("joint2",), "both": ("joint1", "joint2")}
"""The columns of the paper's Table 3, by the joints that move."""

PUBLISHED = {"link 1": 3.2883, "link 2": 3.2901, "both": 3.3003}
"""Condition numbers of the friction columns, raw, velocities in deg/s."""

START = np.deg2rad(30.0)
"""Where both joints begin [rad]."""

PER_DEGREE = 180.0 / np.pi
"""One N m s/deg in N m s/rad: the paper's raw condition numbers have velocities in deg/s."""


def plan(case: str, raw: bool = False, **given: Any) -> Plan:
    """The design of polynomials for the friction of one link, or of both; joints that stand are held.

    Args:
        case: key of `JOINTS`.
        raw: whether the figure is the paper's, the raw condition number in degrees, not that of unit-norm columns.
        given: what takes the place of keys of the design file: the paper's degree is 8.
    """
    settings = settings_of("flexible2r", **given)
    settings = replace(settings, acceleration={k: v for k, v in settings.acceleration.items() if k in JOINTS[case]})
    held = {name: START for name in JOINTS["both"] if name not in JOINTS[case]}
    found = plan_of(settings, model_of("flexible2r", held=held), (Viscous(), Coulomb(0.0)))
    if not raw:
        return found
    units = np.array([PER_DEGREE if name.startswith("fv") else 1.0 for name in found.problem.information.names])
    return replace(found, problem=replace(found.problem, objective=Condition(units)))


def from_the_start(motion: Polynomial) -> Polynomial:
    """A designed motion from where the paper begins, every joint to the side where its range is.

    Friction depends on neither: the design has the middle of the range as its start, so that both sides are open to it;
    joint 1 begins at its lower limit.
    """
    middle: Array = motion.basis(np.array([motion.duration / 2.0]))[0, :, 0]
    side = np.where(motion.coefficients @ middle < 0.0, -1.0, 1.0)
    return replace(motion, centre=np.full(len(side), START), coefficients=side[:, None] * motion.coefficients)
