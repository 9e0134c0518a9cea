# SPDX-License-Identifier: Apache-2.0
"""Inputs of the papers: URDFs and design files that are installed with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import DesignTask, make_design_task
from robot_dyn_id.excitation.design.search import Design, design
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.text.yaml import read_yaml


def model_of(
    paper: str, gravity: Sequence[float] = STANDARD_GRAVITY, held: Mapping[str, float] | None = None
) -> RobotModel:
    """Load the robot of a paper, with some joints locked.

    Raises:
        InputError: its URDF is not installed.
    """
    file = find_shared_file(f"urdf/{paper}.urdf")
    whole = RobotModel.from_file(file, gravity=gravity)
    moving = [name for name in whole.joint_names if name not in (held or {})]
    return RobotModel.from_file(file, moving, held, gravity)


def read_node_parameters(paper: str, node: str) -> dict[str, Any]:
    """Read the ROS parameters of a node from the configuration of the paper's robot.

    Raises:
        InputError: the file is not installed.
    """
    parameters: dict[str, Any] = read_yaml(find_shared_file(f"config/{paper}.yaml"), "configuration of the nodes")[
        f"/**/{node}"
    ]["ros__parameters"]
    return parameters


def read_settings_of(paper: str, **given: Any) -> DesignSettings:
    """Read the design file of a paper; keyword arguments replace its keys.

    Raises:
        InputError: the file is not installed.
    """
    return read_design_settings(find_shared_file(f"config/design/papers/{paper}.yaml"), **given)


def plan_of(settings: DesignSettings, model: RobotModel, terms: Sequence[Term]) -> DesignTask:
    """Set up the design problem of a robot with terms on all of its joints."""
    return make_design_task(settings, model, Regressor(model, place_terms_on_joints(model, terms)))


def optimize_design(paper: str, plan: DesignTask, **given: Any) -> Design:
    """Optimize the motion of a plan with the optimizer, the seed and the effort of a paper's design file.

    Args:
        paper: name of the paper.
        plan: design problem.
        given: replacements of the keys `optimizer`, `seed` and `search`.

    Raises:
        MotionError: no motion meets all requirements.
        UsageError: the optimizer is not installed.
    """
    settings = read_settings_of(paper, **given)
    return design(plan.problem, OPTIMIZERS[settings.optimizer], settings.seed, settings.search)
