# SPDX-License-Identifier: Apache-2.0
"""Optimism of the cross-validated error, as motion filter, load and tilt of the base are chosen from all blocks.

The whole choice, these included, is repeated on the data without each block, and the model predicts that block. The
ratio of this error to the cross-validated error of the package is what its choice from all blocks hides.

    python nested_choice.py URDF RECORDING...
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from robot_dyn_id import Settings, open_recording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.identification.fit.estimation import fit_fold
from robot_dyn_id.identification.selection.choice import Selection, choose_model
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.validation.metrics import Fold, compare
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings


def describe(selection: Selection) -> str:
    """Motion filter and tilt of a choice."""
    gravity = selection.regressor.model.gravity
    plan = selection.trials.plan
    source = "recorded" if plan.recorded_velocity else "derived"
    return f"{plan.motion_pass.cutoff:.3g} Hz {source}, gravity {np.round(gravity, 3).tolist()}"


def nested_fold(trials: FilteredTrials, robot: RobotModel, block: int) -> tuple[Fold, str]:
    """A block, and the model that was chosen and fitted without it.

    Args:
        trials: all data.
        robot: the robot.
        block: number of the block.
    """
    blocks = trials.blocks()
    selection = choose_model(trials.without_block(block, blocks), robot, Options(without_blocks=False))
    base = compute_base_parameters(selection.regressor)
    settings = Settings(estimator=selection.complete(Consistent()))
    model = fit_fold(selection.trials, selection.regressor, base, settings)
    return Fold.from_model(selection.trials.block_only(block, blocks), model), describe(selection)


def main(urdf: str, recordings: list[str]) -> None:
    """Print the two errors and their ratio."""
    opened = [open_recording(name) for name in recordings]
    robot = RobotModel.from_file(Path(urdf))
    joints = [name for name in robot.joint_names if all(name in one.joint_names for one in opened)]
    robot = RobotModel.from_file(Path(urdf), joints, dict.fromkeys(set(robot.joint_names) - set(joints), 0.0))
    trials = FilteredTrials.from_recordings(opened, robot.joint_names, {}, SignalSettings()).decimated()
    selection = choose_model(trials, robot, Options())
    print(f"all blocks: {describe(selection)}", flush=True)
    folds = [
        Fold(
            replace(selection.trials.block_only(one.block, selection.blocks), zeros=one.effort_zeros),
            selection.wide,
            one.columns,
            one.values,
        )
        for one in selection.block_models
    ]
    nested = []
    for block in range(selection.blocks.count):
        fold, text = nested_fold(trials, robot, block)
        nested.append(fold)
        print(f"without block {block}: {text}", flush=True)
    shared, full = compare(folds).all_joints_nrmse, compare(nested).all_joints_nrmse
    print(f"cross-validated {shared:.3%}, everything repeated {full:.3%}, ratio {full / shared:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
