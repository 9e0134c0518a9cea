# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id base`."""

from __future__ import annotations

import argparse
from typing import Any

from robot_dyn_id.cli import show
from robot_dyn_id.cli.robots import add_robot, read_robot
from robot_dyn_id.dynamics.base_parameters import PIVOTS, compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.parameters import BaseParameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    parser.add_argument(
        "--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="gravity vector in the base frame [m/s^2]"
    )
    parser.add_argument("--pivots", choices=PIVOTS, help="leftmost independent columns, or largest first")
    parser.add_argument("--config", metavar="FILE", help="joints, gravity and terms (YAML)")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Find the base parameters and print them."""
    regressor, pivots = _regressor_of(arguments)
    model, base = regressor.model, compute_base_parameters(regressor, arguments.pivots or pivots)
    if not arguments.json:
        _print(model, base)
    return 0, {
        "count": len(base.names),
        "parameters": [
            {"name": name, "expression": text, "unit": unit}
            for name, text, unit in zip(base.names, base.expressions, base.units, strict=True)
        ],
        "unidentifiable": list(base.unidentifiable),
        "combined": list(base.combined),
        "joints": list(model.joint_names),
    }


def _regressor_of(arguments: argparse.Namespace) -> tuple[Regressor, str]:
    """Regressor of the rigid bodies, with the terms of the configuration if there is one, and the rule of pivots."""
    if arguments.config is None:
        gravity = arguments.gravity or STANDARD_GRAVITY
        return Regressor(RobotModel.from_description(read_robot(arguments), gravity=gravity)), PIVOTS[0]
    from robot_dyn_id.cli.sources import (  # slow to import: all estimators and formats
        read_configuration_from,
        read_robot_from,
    )

    configuration = read_configuration_from(arguments)
    model, settings = read_robot_from(read_robot(arguments), configuration), configuration.settings
    return Regressor(model, place_terms_on_joints(model, settings.fixed_terms, settings.couplings)), settings.pivots


def _print(model: RobotModel, base: BaseParameters) -> None:
    show(f"{model.name}: {len(base.names)} base parameters of {len(base.column_names)}")
    for number, name in enumerate(model.body_names, start=1):
        show(f"  joint {number}: {name}")
    width = max(len(name) for name in base.names)
    for name, text, unit in zip(base.names, base.expressions, base.units, strict=True):
        show(f"{name:<{width}}  {unit:<8}  {text}")
    show(f"not identifiable at all: {', '.join(base.unidentifiable) or 'none'}")
