# SPDX-License-Identifier: Apache-2.0
"""Identified actuators under position commands for simulators: MuJoCo, Isaac Lab, Gazebo, and all that read URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import find_violation
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.mjcf import make_bodies
from robot_dyn_id.export.model import PRESLIDING_NOT_EXPORTED, TERM_NOT_EXPORTED
from robot_dyn_id.export.sdf import SdfWorld
from robot_dyn_id.export.urdf import format_numbers, make_urdf_with_friction
from robot_dyn_id.findings import Finding
from robot_dyn_id.kernels.actuators import LIMIT, LOWER_STOP, OFFSET, UPPER_STOP
from robot_dyn_id.model.robot import RobotModel

TIMESTEP_S = 0.001
"""Time step of the MuJoCo model [s]; delays are kept in steps."""

ISAAC_STEP_S = 0.005
"""Physics step of Isaac Lab for which the delays are written [s]."""

FRICTION_SOLVER = {"solreffriction": f"{2.0 * TIMESTEP_S:g} 1"}
"""Stiffest friction that MuJoCo allows: that of its defaults creeps, by 3 mrad where friction is large."""

FAR = 1e10
"""Largest number of MuJoCo, beyond which it ends a simulation (`mjMAXVAL`): no joint gets there."""

LIMIT_SOLVER = {"solreflimit": f"{2.0 * TIMESTEP_S:g} 2"}
"""Stiffest end stops that MuJoCo allows, with twice the critical damping: joints rebound with less."""

MJCF_COMMENT = (
    " control of each actuator: commanded position; offset and limits of the effort are in biasprm and forcerange, "
    "ends of the references in ctrlrange, end stops in range; delay needs a version of MuJoCo with actuator delays, "
    "and after a reset mj_initCtrlHistory with the first reference: earlier commands are 0 otherwise "
)


URDF_COMMENT = (
    " identified friction of drives under position commands; a URDF has no place for armature, offset, delay, gains "
    "and ends of references: they are in actuators.yaml, as are identified end stops "
)

SDF_COMMENT = (
    " topic cmd_pos of each joint: commanded position; SDF has no place for armature, delay and ends of references, "
    "identified end stops are in actuators.yaml, and the controller of Gazebo damps the derivative of the error "
    "instead of the velocity "
)

REMEDY = "use actuators.yaml, with the node `simulator` or `CommandedSimulation`"
"""Advice where a model of another simulator lacks something."""

CONTROLLER = {
    "filename": "gz-sim-joint-position-controller-system",
    "name": "gz::sim::systems::JointPositionController",
}
"""Plugin of Gazebo that holds a joint at a commanded position."""


def make_position_mjcf(model: RobotModel, actuators: ActuatorModel) -> str:
    """MJCF of a robot whose controls are commanded positions.

    Each actuator has the force kp (control - q) - kv dq - offset; armature, viscous and Coulomb friction and end stops,
    the `range`, are attributes of the joints; an end that is not known is that of the robot description, or `FAR` away.
    MuJoCo's stops yield for some milliseconds at an impact. The ends of the references are the `ctrlrange`. Delays are
    those of MuJoCo to half a time step. Shapes are not written.

    Args:
        model: robot model.
        actuators: actuators of its joints.

    Raises:
        InputError: inertias that MuJoCo's compiler refuses.
    """
    bodies = _take_bodies(model, "MuJoCo")
    terms = {
        name: {"armature": armature, "damping": viscous, "frictionloss": coulomb, **FRICTION_SOLVER}
        for name, armature, viscous, coulomb in zip(
            actuators.joint_names,
            actuators.armature.tolist(),
            actuators.viscous.tolist(),
            actuators.coulomb.tolist(),
            strict=True,
        )
    }
    for number, name in enumerate(actuators.joint_names):
        stops = actuators.values[[LOWER_STOP, UPPER_STOP], number]
        if np.isfinite(stops).any():
            described = np.array([model.limits.lower[number], model.limits.upper[number]])
            stops = np.where(np.isfinite(stops), stops, described)
            terms[name] |= {"range": _format_range(stops), **LIMIT_SOLVER}
    root = make_bodies(model, bodies, terms)
    option = root.find("option")
    assert option is not None
    option.set("timestep", format_numbers([TIMESTEP_S]))
    option.set("integrator", "RK4")  # implicitfast lags by half a step, 2 mrad at 4 rad/s
    root.insert(0, ElementTree.Comment(MJCF_COMMENT))
    drives = ElementTree.SubElement(root, "actuator")
    for number, name in enumerate(actuators.joint_names):
        offset, delay, kp, kd, limit, _, _, lower, upper = actuators.values[OFFSET:, number].tolist()
        drive = ElementTree.SubElement(drives, "general", name=name, joint=name, biastype="affine")
        drive.set("gainprm", format_numbers([kp]))
        drive.set("biasprm", format_numbers([-offset, -kp, -kd]))
        if np.isfinite(limit):
            drive.set("forcerange", format_numbers([-limit - offset, limit - offset]))
        if np.isfinite([lower, upper]).any():
            drive.set("ctrlrange", _format_range(np.array([lower, upper])))
        steps = round(delay / TIMESTEP_S)
        if steps:
            drive.set("delay", format_numbers([steps * TIMESTEP_S]))
            drive.set("nsample", str(steps + 2))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def report_left_out(actuators: ActuatorModel) -> tuple[Finding, ...]:
    """Findings about friction that none of these models has, and `actuators.yaml` has."""
    found = []
    loaded, elastic = (
        tuple(name for name, value in zip(actuators.joint_names, values.tolist(), strict=True) if value)
        for values in (actuators.load_coulomb, actuators.breakaway_displacement)
    )
    if loaded:
        message = (
            f"models of other simulators cannot store load_coulomb of {', '.join(loaded)}: they have the Coulomb "
            "friction of the mean load of the recordings"
        )
        found.append(TERM_NOT_EXPORTED.found(message, loaded, action=REMEDY))
    if elastic:
        message = f"presliding friction of {', '.join(elastic)} is written as Coulomb friction for other simulators"
        found.append(PRESLIDING_NOT_EXPORTED.found(message, elastic, action=REMEDY))
    return tuple(found)


def _format_range(ends: Array) -> str:
    """Both ends of a range, which MuJoCo wants to be finite."""
    return format_numbers(np.clip(ends, -FAR, FAR))


def _take_bodies(model: RobotModel, tool: str) -> Array:
    """Standard parameters of the bodies, shape (b, 10).

    Raises:
        InputError: inertias that the tool refuses.
    """
    bodies = model.inertial_parameters.reshape(-1, 10)
    for name, body in zip(model.body_names, bodies, strict=True):
        reason = find_violation(body)
        if reason:
            raise InputError(f"{tool} refuses inertias that no real robot has ({name}: {reason}): correct the robot")
    return bodies


def make_friction_urdf(model: RobotModel, actuators: ActuatorModel, *, links: bool = False) -> str:
    """URDF of a robot with the viscous and the Coulomb friction of its actuators; all else is kept.

    Args:
        model: robot model.
        actuators: actuators of its joints.
        links: whether the links of the model, which are others than those of its URDF, are written too.
    """
    return make_urdf_with_friction(model, _take_friction(actuators), URDF_COMMENT, links=links)


def make_position_sdf(model: RobotModel, actuators: ActuatorModel) -> str:
    """SDF world of a robot whose joints have position controllers of Gazebo, with gains, effort limits and offsets.

    Armature and delay are lost. Shapes are not written.

    Args:
        model: robot model.
        actuators: actuators of its joints.

    Raises:
        InputError: inertias that Gazebo refuses.
    """
    world = SdfWorld.from_robot(model, _take_bodies(model, "Gazebo"), _take_friction(actuators))
    world.root.insert(0, ElementTree.Comment(SDF_COMMENT))
    for number, name in enumerate(actuators.joint_names):
        offset, _, kp, kd, limit = actuators.values[OFFSET : LIMIT + 1, number].tolist()
        plugin = ElementTree.SubElement(world.robot, "plugin", CONTROLLER)
        joint = world.joints[model.body_names.index(name)]
        values = {"p_gain": kp, "i_gain": 0.0, "d_gain": kd, "cmd_offset": -offset}
        if np.isfinite(limit):
            values |= {"cmd_max": limit - offset, "cmd_min": -limit - offset}
        ElementTree.SubElement(plugin, "joint_name").text = joint
        ElementTree.SubElement(plugin, "sub_topic").text = f"{joint}/cmd_pos"
        for key, value in values.items():
            ElementTree.SubElement(plugin, key).text = format_numbers([value])
    return world.text


def _take_friction(actuators: ActuatorModel) -> dict[str, dict[str, float]]:
    """Attributes of `<dynamics>`, by joint name."""
    return {
        name: {"damping": viscous, "friction": coulomb}
        for name, viscous, coulomb in zip(
            actuators.joint_names, actuators.viscous.tolist(), actuators.coulomb.tolist(), strict=True
        )
    }


def make_isaac_lab(actuators: ActuatorModel) -> str:
    """Python source of an actuator configuration of Isaac Lab, with delays in physics steps.

    Offsets have no place in it: `REFERENCE_OFFSETS` are to be added to commanded positions. Nor have end stops and the
    ends of references.

    Args:
        actuators: the actuators.
    """
    delays = np.round(actuators.delay / ISAAC_STEP_S).astype(int).tolist()
    lines = [
        '"""Identified actuators for Isaac Lab, written by robot_dyn_id; SI units."""',
        "",
        "from isaaclab.actuators import DelayedPDActuatorCfg",
        "",
        f"PHYSICS_STEP = {ISAAC_STEP_S}  # of the delays, which are numbers of steps",
        "",
        "REFERENCE_OFFSETS = " + _format_values(actuators.joint_names, -np.nan_to_num(actuators.bias)),
        '"""Added to commanded positions [rad or m]: constant torques, by joint."""',
        "",
        "ACTUATORS = {",
    ]
    for steps in sorted(set(delays)):
        names = [name for name, delay in zip(actuators.joint_names, delays, strict=True) if delay == steps]
        own = actuators.select(names)
        entries: Mapping[str, Array] = {
            "stiffness": own.kp,
            "damping": own.kd,
            "armature": own.armature,
            "friction": own.coulomb,
            "dynamic_friction": own.coulomb,
            "viscous_friction": own.viscous,
        }
        lines += [
            f'    "delay_{steps}": DelayedPDActuatorCfg(',
            f"        joint_names_expr={names!r},",
            *(f"        {key}={_format_values(names, values)}," for key, values in entries.items()),
        ]
        if np.isfinite(own.limit).all():
            lines.append(f"        effort_limit={_format_values(names, own.limit)},")
        lines += [f"        min_delay={steps},", f"        max_delay={steps},", "    ),"]
    return "\n".join([*lines, "}", ""])


def _format_values(names: tuple[str, ...] | list[str], values: Array) -> str:
    return "{" + ", ".join(f"{name!r}: {value!r}" for name, value in zip(names, values.tolist(), strict=True)) + "}"
