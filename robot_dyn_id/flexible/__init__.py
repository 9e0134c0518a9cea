# SPDX-License-Identifier: Apache-2.0
"""Arms with flexible joints: model of link and motor side, identification step by step, simulation."""

from robot_dyn_id.flexible.agreement import Agreement, agreements, overall
from robot_dyn_id.flexible.experiment import Experiment, equations
from robot_dyn_id.flexible.identification import (
    CUTOFF,
    FlexibleIdentification,
    identify_flexible,
    least_experiments,
    pseudo_observations,
    pseudo_plan,
)
from robot_dyn_id.flexible.model import FlexibleJoint, FlexibleModel
from robot_dyn_id.flexible.simulation import FlexiblePlant, Noise

__all__ = [
    "CUTOFF",
    "Agreement",
    "Experiment",
    "FlexibleIdentification",
    "FlexibleJoint",
    "FlexibleModel",
    "FlexiblePlant",
    "Noise",
    "agreements",
    "equations",
    "identify_flexible",
    "least_experiments",
    "overall",
    "pseudo_observations",
    "pseudo_plan",
]
