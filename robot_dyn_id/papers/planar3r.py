"""Wang et al., Sensors 2025, 25(18), 5749: three parallel axes, one joint excited by a sine at a time."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.papers.inputs import model_of, plan_of, settings_of
from robot_dyn_id.planning import Plan
from robot_dyn_id.terms import Coulomb, Viscous

GRAVITY = (0.0, 0.0, -9.8)
"""[m/s^2]"""

PUBLISHED = {"joint3": 47.73, "joint2": 52.95, "joint1": 54.34}
"""Condition numbers, joints in the order in which they are excited."""


def plan(joint: str, **given: Any) -> Plan:
    """The design of one joint's sine: the paper's amplitude, posture of all joints and frequency free.

    The parameters are the independent columns of all three torques while the others stand: 7, 9 and 11 for joints 3, 2
    and 1, the best reading of the paper's condition numbers.

    Args:
        joint: that moves.
        given: what takes the place of keys of the design file.
    """
    settings = settings_of("planar3r", moving=(joint,), **given)
    return plan_of(settings, model_of("planar3r", GRAVITY), (Viscous(), Coulomb(0.0)))
