# SPDX-License-Identifier: Apache-2.0
"""A small tilt of the base against the gravity vector that was given."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.selection.cross_validation import Candidate, compute_relative_loss
from robot_dyn_id.identification.selection.divisions import Divisions
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.tilt import tilt_robot
from robot_dyn_id.identification.selection.wide import Wide
from robot_dyn_id.model.robot import RobotModel

BASE_TILTED = Definition(
    "base_tilted",
    Section.ESTIMATES,
    "info",
    "A small tilt of the base against the gravity vector that was given explains the torques significantly better "
    "in cross-validation; the model has the tilted gravity vector.",
    "check the mounting of the robot, and give the gravity vector of the message to other tools",
    check="gravity",
)

MAX_TILT_DEG = 10.0
"""Largest tilt of the base that is a small error of the mounting [deg]; a larger one is a wrong gravity vector."""


def find_tilt(
    wide: Wide, divisions: Divisions, candidate: Candidate, model: RobotModel
) -> tuple[RobotModel | None, Tried]:
    """The robot on a base that is tilted, if the tilt is small and pays, and the alternative.

    Args:
        wide: all candidate columns, with those of a tilt.
        divisions: the data.
        candidate: columns and strength of the model.
        model: the robot with the gravity vector that was given.
    """
    assert wide.tilt is not None
    with_tilt = replace(candidate, columns=np.append(candidate.columns, wide.tilt))
    before, after = (partial(wide.find_consistent_errors, candidate=one) for one in (candidate, with_tilt))
    components = wide.consistent(divisions.times, with_tilt, all_rows=True)[wide.tilt]
    turned = tilt_robot(wide.regressor.model, components)
    name = f"{_measure_angle(wide.regressor.model, turned):.2f} deg"
    loss = compute_relative_loss(after(divisions.times), divisions.times.errors(wide.reference))
    row = divisions.weigh("base_tilt", name, before, after, loss=loss)
    chosen = _measure_angle(model, turned) < MAX_TILT_DEG and row.pays
    return (turned if chosen else None), replace(row, chosen=chosen)


def _measure_angle(model: RobotModel, turned: RobotModel) -> float:
    """Angle between two gravity vectors of a magnitude [deg]."""
    cosine = model.gravity @ turned.gravity / np.linalg.norm(model.gravity) ** 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def report_tilt(model: RobotModel, turned: RobotModel, row: Tried) -> Finding:
    """Finding about a tilt that is a part of the model.

    Args:
        model: the robot with the gravity vector that was given.
        turned: the robot with that of the model.
        row: the alternative.
    """
    vector = " ".join(f"{component:.4g}" for component in turned.gravity)
    degrees = _measure_angle(model, turned)
    message = (
        f"the base is tilted by {degrees:.2f} deg against the gravity vector that was given: this removes "
        f"{row.gain:.0%} (+- {row.deviation:.0%}) of the squared error; the model has the gravity vector {vector}"
    )
    return BASE_TILTED.found(message)
