"""Qian et al.: a 2-joint arm excited by Logistic strokes, joint 2 first, then joint 1."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.papers.inputs import model_of, plan_of, settings_of
from robot_dyn_id.planning import Plan

GRAVITY = (0.0, 0.0, -9.8)
"""Not printed; the paper's torques fit it [m/s^2]."""

PUBLISHED = 213.8
"""Sum of both condition numbers at the published optimum, at 100 Hz; joint 1 leaves the limits there."""


def plan(joint: str, **given: Any) -> Plan:
    """The design of one joint's strokes, the other joint held: its angle does not change the condition number.

    Args:
        joint: that moves.
        given: what takes the place of keys of the design file.
    """
    held = {name: 0.0 for name in ("joint1", "joint2") if name != joint}
    return plan_of(settings_of("logistic2r", **given), model_of("logistic2r", GRAVITY, held), ())
