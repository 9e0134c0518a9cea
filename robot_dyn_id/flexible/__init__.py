# SPDX-License-Identifier: Apache-2.0
"""Arms with flexible joints: model of link and motor side, identification step by step, simulation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dyn_id.flexible.agreement import Agreement, compute_agreements, compute_overall
    from robot_dyn_id.flexible.experiment import Experiment, make_equations
    from robot_dyn_id.flexible.identification import (
        CUTOFF,
        FlexibleIdentification,
        find_least_experiments,
        identify_flexible,
        make_pseudo_observations,
        make_pseudo_plan,
    )
    from robot_dyn_id.flexible.model import FlexibleJoint, FlexibleModel
    from robot_dyn_id.flexible.simulation import FlexiblePlant, Noise

_MODULES = {
    "Agreement": "agreement",
    "CUTOFF": "identification",
    "Experiment": "experiment",
    "FlexibleIdentification": "identification",
    "FlexibleJoint": "model",
    "FlexibleModel": "model",
    "FlexiblePlant": "simulation",
    "Noise": "simulation",
    "compute_agreements": "agreement",
    "make_equations": "experiment",
    "identify_flexible": "identification",
    "find_least_experiments": "identification",
    "compute_overall": "agreement",
    "make_pseudo_observations": "identification",
    "make_pseudo_plan": "identification",
}
"""Modules of the public names: they are imported on first use, as most commands need only the model."""

__all__ = [
    "CUTOFF",
    "Agreement",
    "Experiment",
    "FlexibleIdentification",
    "FlexibleJoint",
    "FlexibleModel",
    "FlexiblePlant",
    "Noise",
    "compute_agreements",
    "compute_overall",
    "find_least_experiments",
    "identify_flexible",
    "make_equations",
    "make_pseudo_observations",
    "make_pseudo_plan",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
