# SPDX-License-Identifier: Apache-2.0
"""Stepwise identification: the plan by rank and condition, and the steps with their covariance."""

from robot_dyn_id.estimators.stepwise.equations import SCALINGS, Equations, Group, Observability
from robot_dyn_id.estimators.stepwise.plan import (
    MAX_CONDITION_NUMBER,
    SAMPLE_FACTOR,
    Step,
    StepwisePlan,
    make_prescribed_plan,
    plan_steps,
)
from robot_dyn_id.estimators.stepwise.solution import StepwiseSolution, determine, solve_steps

__all__ = [
    "MAX_CONDITION_NUMBER",
    "SAMPLE_FACTOR",
    "SCALINGS",
    "Equations",
    "Group",
    "Observability",
    "Step",
    "StepwisePlan",
    "StepwiseSolution",
    "determine",
    "make_prescribed_plan",
    "plan_steps",
    "solve_steps",
]
