# SPDX-License-Identifier: Apache-2.0
"""A Python module with the complete dynamics of an identified model: one file that needs NumPy and nothing else."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.evaluator import (
    ExportedLaws,
    describe_origin,
    fill_template,
    read_template,
    report_unknown_driver,
)
from robot_dyn_id.export.model import Exported, report_driver
from robot_dyn_id.findings import Finding
from robot_dyn_id.parameters import NONE, UNKNOWN, ParameterSet


def make_python_module(parameters: ParameterSet) -> Exported:
    """A Python module with the dynamics of a parameter set.

    Raises:
        InputError: parameters that are not finite, or a term that is not a sum of friction laws.
    """
    dynamics = Dynamics.from_parameters(parameters)
    if not np.isfinite(dynamics.parameters).all():
        raise InputError("the parameters are not all finite: a model with them cannot be used by any tool")
    regressor, model = dynamics.regressor, dynamics.regressor.model
    bodies = len(model.body_names)
    terms, findings = _write_terms(dynamics)
    lines = (*describe_origin(parameters), *_describe_torque(parameters))
    comment = "\n".join(lines).replace("\\", "\\\\").replace('"', "'")
    fields = {
        "comment": comment,
        "joints": repr(tuple(model.joint_names)),
        "gravity": repr(model.gravity.tolist()),
        "parent": repr(tuple(model.parent.tolist())),
        "leader": repr(model.leader.tolist()),
        "multiplier": repr(model.multiplier.tolist()),
        "offset": repr(model.offset.tolist()),
        "prismatic": repr(tuple(model.prismatic.tolist())),
        "rotation": _table(model.rotation.tolist()),
        "translation": _table(model.translation.tolist()),
        "axis": _table(model.axis.tolist()),
        "parameters": _table(dynamics.parameters[: 10 * bodies].reshape(bodies, 10).tolist()),
        "load_parameters": _table(regressor.load_bodies.reshape(bodies, 10).tolist()),
        **terms,
    }
    text = fill_template(read_template("numpy_module.py.in"), fields)
    return Exported(text, (*findings, *report_driver(parameters), *report_unknown_driver(parameters)))


def _describe_torque(parameters: ParameterSet) -> list[str]:
    """Whose torque the functions give, as lines of a comment."""
    lines = ["Torques are those of the motors, as the efforts of the training data are."]
    if parameters.effort.robot_compensates == (UNKNOWN,):
        return [
            *lines,
            "It is not known what the robot's driver adds to a command: do not send these torques as commands.",
        ]
    if NONE not in parameters.effort.robot_compensates:
        lines.append(
            f"The robot's driver adds {', '.join(parameters.effort.robot_compensates)}: do not command these twice."
        )
    return lines


def _write_terms(dynamics: Dynamics) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Fields of the terms, and findings about what is left out."""
    found = ExportedLaws.from_dynamics(dynamics)
    laws: list[str] = []
    for law, along, offset, value, loaded in found.friction:
        state, fading = found.state_of(law, along, -1), repr(law.fading) if np.isfinite(law.fading) else "np.inf"
        parts = (repr(law.shape), value, law.constant, law.side, fading, along, offset, loaded, state)
        laws.append(f"    ({', '.join(str(part) for part in parts)}),\n")
    fields = {
        "rotor_inertia": _table(found.inertia.tolist()),
        "constant": repr(found.constant.tolist()),
        "laws": "".join(laws),
        "states": repr(tuple(found.states)),
    }
    return fields, found.findings


def _table(rows: list[list[float]]) -> str:
    """A nested list with one line per entry."""
    return "[\n" + "".join(f"    {row!r},\n" for row in rows) + "]"
