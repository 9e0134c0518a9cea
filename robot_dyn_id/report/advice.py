# SPDX-License-Identifier: Apache-2.0
"""Next steps with an identified model: uses that it is fit for, with their limits, and the motion that adds one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.export import export_model
from robot_dyn_id.identification.diagnosis.health import JOINT_BARELY_MOVES
from robot_dyn_id.identification.validation.uses import INERTIA_UNCERTAIN
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.uses import list_joints


@dataclass(frozen=True)
class NextStep:
    """Step that a model is fit for.

    Attributes:
        use: one of `USES`.
        text: result of the step in words; with the joints that limit it where the answer is `limited`.
        command: command of the package with its options, without files.
        file: usual name of the file or folder that it writes from the robot, the model or a recording of the
            identification; empty: it needs more than these, such as a running robot.
    """

    use: str
    text: str
    command: tuple[str, ...]
    file: str = ""


STEPS = (
    NextStep("gravity_compensation", "controller that carries the weight", ("node", "computed_torque_controller")),
    NextStep("feed_forward", "torque that the model predicts", ("predict",), "torque.npz"),
    NextStep("computed_torque", "model in C++ for a controller", ("export", "--format", "cpp"), "model.hpp"),
    NextStep("forward_simulation", "model for a simulator", ("export", "--format", "mjcf"), "model.xml"),
    NextStep("collision_detection", "external torque of a running arm", ("node", "external_torque_estimator")),
    NextStep("payload", "load at the last link, from a recording with it", ("payload",)),
)
"""Steps by use."""

DESIGN = NextStep(
    "computed_torque",
    "motion that shows the inertias, for computed torque",
    ("design", "--for", "computed_torque"),
    "motion",
)
"""Step where the inertias are too uncertain for computed torque, or of joints that hardly moved."""

DESIGNED_FOR = frozenset({INERTIA_UNCERTAIN.code, JOINT_BARELY_MOVES.code})
"""Codes of findings that a designed motion removes."""


def advise(parameters: ParameterSet, summary: Mapping[str, Any]) -> list[NextStep]:
    """Steps that make sense: not for a use with the answer `no`, and without exports that would be refused.

    Args:
        parameters: the model.
        summary: `verdict` and `fit_for` of `report.summary`.
    """
    found = []
    for step in STEPS:
        fit = summary["fit_for"][step.use]
        if summary["verdict"] == "bad" or fit["answer"] == "no" or not _possible(parameters, step):
            continue
        joints = list_joints(fit["joints"], parameters.robot.joint_names) or "all joints"
        limit = f" (limited: {joints})" if fit["answer"] == "limited" else ""
        found.append(replace(step, text=step.text + limit))
    if DESIGNED_FOR & set(summary["fit_for"]["computed_torque"]["because"]) and summary["verdict"] != "bad":
        found.append(DESIGN)
    return found


def _possible(parameters: ParameterSet, step: NextStep) -> bool:
    """Whether the format of an export can carry the model."""
    try:
        if step.command[0] == "export":
            export_model(step.command[-1], parameters)
    except RobotDynIdError:
        return False
    return True
