"""Arms with flexible joints: model of link and motor side, identification step by step, simulation."""

from robot_dyn_id.flexible.experiment import Experiment
from robot_dyn_id.flexible.identification import (
    FlexibleIdentification,
    identify_flexible,
    pseudo_observations,
    pseudo_plan,
)
from robot_dyn_id.flexible.model import FlexibleJoint, FlexibleModel
from robot_dyn_id.flexible.simulation import FlexiblePlant, Noise

__all__ = [
    "Experiment",
    "FlexibleIdentification",
    "FlexibleJoint",
    "FlexibleModel",
    "FlexiblePlant",
    "Noise",
    "identify_flexible",
    "pseudo_observations",
    "pseudo_plan",
]
