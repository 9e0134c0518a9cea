# SPDX-License-Identifier: Apache-2.0
"""Identified models in the formats of other tools: one file per format, and one line here."""

from collections.abc import Callable
from dataclasses import replace

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.controller_parameters import (
    make_admittance_controller,
    make_cartesian_controllers,
    make_crisp_controllers,
    make_robotis_gravity_compensation,
)
from robot_dyn_id.export.evaluator import make_c_header, make_cpp_header
from robot_dyn_id.export.mjcf import make_mjcf
from robot_dyn_id.export.model import Exported
from robot_dyn_id.export.numpy_module import make_python_module
from robot_dyn_id.export.sdf import make_sdf
from robot_dyn_id.export.urdf import make_urdf
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import Judgment, ParameterSet
from robot_dyn_id.simulation.controllers import find_credible_limits, refuse_unsafe
from robot_dyn_id.uses import YES

EXPORT_OF_BAD_VERDICT = Definition(
    "export_of_bad_verdict",
    Section.PREDICTION,
    "warning",
    "The verdict on the exported parameters is bad, or holding the arm takes more than its effort limits: torques "
    "that are computed from them can be wrong.",
    "identify again; command no torques of this model",
)

NOT_FIT_FOR_SIMULATION = Definition(
    "not_fit_for_simulation",
    Section.PREDICTION,
    "warning",
    "The format is that of a simulator, and the model is limited or not fit for simulation: what it computes "
    "differs from the robot by more than this use should have.",
    "identify from a faster motion, with frequent reversals",
)

SIMULATORS = ("mjcf", "sdf")
"""Formats of simulators."""

FORMATS: dict[str, Callable[[ParameterSet], Exported]] = {
    "urdf": make_urdf,
    "mjcf": make_mjcf,
    "sdf": make_sdf,
    "python": make_python_module,
    "c": make_c_header,
    "cpp": make_cpp_header,
    "crisp_controllers": make_crisp_controllers,
    "gravity_compensation_controller": make_robotis_gravity_compensation,
}
"""Formats by the name that the command line uses."""

TOOL_FORMATS: dict[str, Callable[[Payload], Exported]] = {
    "admittance_controller": make_admittance_controller,
    "cartesian_controllers": make_cartesian_controllers,
}
"""Formats of a payload, by name."""

__all__ = ["FORMATS", "TOOL_FORMATS", "Exported", "export_model"]


def export_model(
    name: str, parameters: ParameterSet, allow_bad_verdict: bool = False, action: str = "identify again"
) -> Exported:
    """Write a parameter set in the format of another tool.

    Tools compute torques from every one of these formats, and know neither verdict nor uses: a model that no controller
    may use is refused, see `refuse_unsafe`.

    Args:
        name: format, a key of `FORMATS`.
        parameters: identified parameter set.
        allow_bad_verdict: also export a set that must not command torques, which a finding reports.
        action: advice to the user about such a set.

    Raises:
        InputError: a set that must not command torques, drive gains that are not known, or parameters that the format
            cannot carry.
    """
    parameters.refuse_unknown_gains()
    dynamics = Dynamics.from_parameters(parameters)
    findings: tuple[Finding, ...] = ()
    try:
        refuse_unsafe(parameters, dynamics, find_credible_limits(dynamics.regressor.model), action)
    except InputError as error:
        if not allow_bad_verdict:
            raise
        findings = (EXPORT_OF_BAD_VERDICT.found(f"the exported model must not command torques: {error}"),)
    if name in SIMULATORS:
        findings += _report_simulation(parameters.judgment)
    exported = FORMATS[name](parameters)
    return replace(exported, findings=(*findings, *exported.findings))


def _report_simulation(judgment: Judgment) -> tuple[Finding, ...]:
    """Finding about a model that simulations are limited with, or not fit for."""
    return tuple(
        NOT_FIT_FOR_SIMULATION.found(
            f"fit for forward simulation: {one.answer}, {one.figure:.2g} of {one.threshold:.2g} {one.unit}", one.joints
        )
        for one in judgment.fit_for
        if one.use == "forward_simulation" and one.answer != YES
    )
