"""Jing et al., Actuators 2025, 14(10), 497: a space manipulator with six axes and the improved Stribeck friction."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.papers.inputs import model_of, plan_of, settings_of
from robot_dyn_id.planning import Plan
from robot_dyn_id.terms import ImprovedStribeck, RotorInertia


def plan(**given: Any) -> Plan:
    """The design of its Fourier series.

    Args:
        given: what takes the place of keys of the design file.
    """
    return plan_of(settings_of("space6r", **given), model_of("space6r"), (RotorInertia(), ImprovedStribeck()))
