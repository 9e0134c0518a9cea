# SPDX-License-Identifier: Apache-2.0
"""Parameters of controllers of other packages, as YAML: friction models, and tools that a controller carries.

Formulas: `get_friction` of crisp_controllers (`utils/friction_model.hpp`), `update` of gravity_compensation_controller
(ROBOTIS, open_manipulator), `AdmittanceRule` of admittance_controller (ros2_controllers), cartesian_controllers (FZI).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.compensation import decide_compensations
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.friction_curves import FrictionCurves
from robot_dyn_id.export.model import Exported
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.text.yaml import Row, format_yaml

FRICTION_LEFT_OUT = Definition(
    "friction_left_out",
    Section.PREDICTION,
    "info",
    "A controller of another package cannot compensate friction next to what the driver adds to a command.",
    "compare the friction that the driver compensates with the identified one",
)

DRIVE_UNITS_NOT_EXPORTED = Definition(
    "drive_units_not_exported",
    Section.PREDICTION,
    "info",
    "A controller scales torques to the units of its drives, which no recording shows.",
    "set the scaling factors from the manual of the drives, or tune them",
)

TOOL_INERTIA_NOT_EXPORTED = Definition(
    "tool_inertia_not_exported",
    Section.PREDICTION,
    "info",
    "A controller compensates the weight of its tool, not its inertia.",
    "move the tool slowly",
)

STEEPEST = 200.0
"""Largest slope fp2 of a sigmoid [s/rad]: the smoothing width 2 / fp2 is 0.01 rad/s, below which feedback chatters."""

FLATTEST = 0.01
"""Smallest slope fp2 of a sigmoid [s/rad]."""

WEIGHT_PER_MASS = 9.81
"""Gravity that admittance_controller and cartesian_controllers assume [m/s^2]."""


def make_crisp_controllers(parameters: ParameterSet) -> Exported:
    """Friction of the controllers of crisp_controllers, and what the driver leaves for them to add.

    The sigmoid fp1 / (1 + exp(-fp2 (dq + fp3))) - fp1 / (1 + exp(-fp2 fp3)) with fp3 = 0 is fp1 / 2 tanh(fp2 dq / 2):
    smoothed Coulomb friction fc tanh(dq / w) is exact with fp1 = 2 fc and fp2 = 2 / w. Other dry friction is fitted.

    Raises:
        InputError: it is not known what the driver adds to a command.
    """
    compensated = decide_compensations(parameters)
    curves = FrictionCurves.from_parameters(parameters)
    fitted = [_sigmoid(speeds, dry) for speeds, dry in zip(curves.speeds, curves.dry, strict=True)]
    fp1, fp2 = (np.array(column) for column in zip(*fitted, strict=True))
    content = {
        "joints": Row(parameters.robot.joint_names),
        **{f"use_{part}{suffix}": part not in compensated for part, suffix in _CRISP_PARTS},
        "friction": {"fp1": Row(fp1.tolist()), "fp2": Row(fp2.tolist()), "fp3": Row([0.0] * len(fp1))},
    }
    finding = curves.report_difference(
        parameters, lambda dq: compute_crisp_friction(dq, fp1, fp2, np.zeros_like(fp1)), "crisp_controllers"
    )
    comment = "crisp_controllers: gravity and inertia are those of its URDF, which the export as URDF writes"
    return Exported(_text(comment, content), (finding,))


_CRISP_PARTS = (("friction", ""), ("gravity", "_compensation"), ("coriolis", "_compensation"))


def compute_crisp_friction(dq: Array, fp1: Array, fp2: Array, fp3: Array) -> Array:
    """Friction of crisp_controllers [N m], of the shape of `dq`."""
    return np.asarray(fp1 / (1.0 + np.exp(-fp2 * (dq + fp3))) - fp1 / (1.0 + np.exp(-fp2 * fp3)))


def _sigmoid(speeds: Array, dry: Array) -> tuple[float, float]:
    """Level fp1 and slope fp2 of the sigmoid that is nearest to the dry friction of a joint."""
    from scipy.optimize import minimize_scalar  # slow to import

    def fit(log_slope: float) -> tuple[float, float]:
        shape = 0.5 * np.tanh(0.5 * np.exp(log_slope) * speeds)
        level = max(0.0, float(shape @ dry / (shape @ shape)))
        return float(np.sum((level * shape - dry) ** 2)), level

    if not np.any(dry > 0.0):
        return 0.0, STEEPEST
    grid = np.linspace(np.log(FLATTEST), np.log(STEEPEST), 200)
    best = int(np.argmin([fit(one)[0] for one in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda one: fit(one)[0], bounds=bounds, method="bounded", options={"xatol": 1e-10})
    log_slope = min((float(found.x), float(bounds[0]), float(bounds[1])), key=lambda one: fit(one)[0])
    return fit(log_slope)[1], float(np.exp(log_slope))


def make_robotis_gravity_compensation(parameters: ParameterSet) -> Exported:
    """Friction scalars and torque scaling of gravity_compensation_controller (ROBOTIS).

    It compensates friction by s (1 + threshold - 10 |v|) v for speeds up to (1 + threshold) / 10, which is made the
    largest trained speed; s is the largest scalar with which it nowhere exceeds the identified friction.

    It scales one velocity for friction and Coriolis torques: where the driver adds the latter, neither is compensated.

    Raises:
        InputError: it is not known whether the driver adds gravity, or it does.
    """
    compensated = decide_compensations(parameters)
    if "gravity" in compensated:
        raise InputError(
            "robot_compensates has gravity: this controller would add it a second time and drive the arm upward; do "
            "not use it with this driver"
        )
    curves = FrictionCurves.from_parameters(parameters)
    speeds, moving = curves.speeds, curves.moving
    thresholds = 10.0 * speeds[:, -1] - 1.0
    tent = (1.0 + thresholds[:, None] - 10.0 * speeds) * speeds
    inside = slice(0, speeds.shape[1] - 1)
    adds_friction = not {"friction", "coriolis"}.intersection(compensated)
    scalars = np.maximum(0.0, (moving[:, inside] / tent[:, inside]).min(axis=1)) * adds_friction
    zeros, n = Row([0.0] * len(scalars)), len(scalars)
    scaling = parameters.effort.drive_signs / np.where(
        parameters.effort.drive_gains > 0.0, parameters.effort.drive_gains, 1.0
    )
    content = {
        "joints": Row(parameters.robot.joint_names),
        "kinetic_friction_scalars": Row(scalars.tolist()),
        "kinetic_friction_torque_scalars": zeros,
        "friction_compensation_velocity_thresholds": Row(thresholds.tolist()),
        "static_friction_scalars": zeros,
        "static_friction_velocity_thresholds": zeros,
        "unloaded_effort_offsets": zeros,
        "unloaded_effort_thresholds": zeros,
        "input_velocity_scaling_factors": Row([0.0 if "coriolis" in compensated else 1.0] * n),
        "input_acceleration_scaling_factors": zeros,
        "torque_scaling_factors": Row(scaling.tolist() if len(scaling) else [1.0] * n),
    }
    if adds_friction:
        finding = curves.report_difference(
            parameters,
            lambda dq: compute_robotis_friction(dq, scalars, thresholds),
            "gravity_compensation_controller",
        )
    else:
        why = "the driver adds it" if "friction" in compensated else "its velocity is 0, as the driver adds coriolis"
        message = f"gravity_compensation_controller compensates no friction: {why}"
        finding = FRICTION_LEFT_OUT.found(message, parameters.robot.joint_names)
    unit = "A per N m" if len(scaling) else "1: no drive gains were identified"
    units = DRIVE_UNITS_NOT_EXPORTED.found(
        f"torque_scaling_factors are {unit}: multiply them by the drive's command units per A or per N m",
        parameters.robot.joint_names,
    )
    comment = "gravity_compensation_controller (ROBOTIS): gravity is that of its URDF, which the export as URDF writes"
    return Exported(_text(comment, content), (finding, units))


def compute_robotis_friction(dq: Array, scalars: Array, thresholds: Array) -> Array:
    """Kinetic friction of gravity_compensation_controller without load dependence [N m], of the shape of `dq`."""
    rate = np.maximum(0.0, 1.0 - (10.0 * np.abs(dq) - thresholds))
    return np.asarray(scalars * rate * dq)


def make_admittance_controller(payload: Payload) -> Exported:
    """Tool of admittance_controller (ros2_controllers): weight and center of gravity at the force-torque sensor."""
    content = {
        "gravity_compensation": {
            "frame": {"id": payload.link},
            "CoG": {"pos": Row(payload.center_of_mass.tolist()), "force": WEIGHT_PER_MASS * payload.mass},
        }
    }
    comment = (
        f"admittance_controller: CoG.pos is that of the frame {payload.link}, whose origin must be that of the "
        "force-torque sensor; z of fixed_world_frame must point upward"
    )
    return Exported(_text(comment, content), (_inertia_lost("admittance_controller", payload),))


def make_cartesian_controllers(payload: Payload) -> Exported:
    """Tool of the force and compliance controllers of cartesian_controllers (ROS 1 branch)."""
    center = payload.center_of_mass.tolist()
    content = {
        "gravity": {"x": 0.0, "y": 0.0, "z": -WEIGHT_PER_MASS},
        "tool": {"mass": payload.mass, **dict(zip(("com_x", "com_y", "com_z"), center, strict=True))},
    }
    lines = (
        f"# cartesian_controllers, ROS 1 branch: tool is in the frame {payload.link}, which must be end_effector_link",
        "# gravity is that of an upright robot_base_link. The ROS 2 branch has no gravity compensation of a tool.",
    )
    return Exported("\n".join(lines) + f"\n{format_yaml(content)}", (_inertia_lost("cartesian_controllers", payload),))


def _inertia_lost(name: str, payload: Payload) -> Finding:
    message = f"{name} takes mass and center of mass of a tool: its inertia at {payload.link} is left out"
    return TOOL_INERTIA_NOT_EXPORTED.found(message)


def _text(comment: str, content: dict[str, Any]) -> str:
    return f"# {comment}\n" + format_yaml({"/**": {"ros__parameters": content}})
