# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the payload identifier, and of the excitation publisher that moves the wrist for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from rclpy.parameter import Parameter

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.execution.rehearsal import REHEARSAL_SPEED
from robot_dyn_id.files.payload import make_declared_payload, read_declared
from robot_dyn_id.loads.declared import DeclaredPayload
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import ExcitationSettings, MotionSettings, choose_ground, order_per_joint
from robot_dyn_id.nodes.payload.drivers import DRIVERS, FILE, NO_DRIVER
from robot_dyn_id.nodes.runtime.managed_node import autostart_parameter
from robot_dyn_id.nodes.runtime.ros_parameters import path_parameter, ros_parameter, topic_parameter
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.workflow.payload import DriverFrame
from robot_dyn_id.workflow.payload_motion import PayloadMotion


@dataclass(frozen=True)
class PayloadSettings(MotionSettings):
    """ROS parameters of the payload identifier."""

    link: str = ros_parameter("", "Link that carries the payload, in whose frame the result is given; required")
    parameters: str = path_parameter(
        "", "File parameters.yaml of the bare arm; empty: received on the topic identified_parameters"
    )
    config: str = path_parameter(
        "", "Configuration with the gains and signs of the drives, as of the identification; empty: defaults"
    )
    moving_joints: tuple[str, ...] = ros_parameter(
        (), "Joints that move about the present configuration; empty: the last three before the link"
    )
    window: float = ros_parameter(
        0.5, "Largest distance of a moving joint from the present configuration", "rad or m", 0.02, 3.2
    )
    period: float = ros_parameter(5.0, "Period of the motion", "s", 1.0, 20.0)
    slow_speed: float = ros_parameter(
        REHEARSAL_SPEED,
        "Speed of the slow test, which is one period of the motion, guarded as a rehearsal",
        "",
        0.02,
        REHEARSAL_SPEED,
    )
    warm_up: float = ros_parameter(10.0, "Duration of the motion before the measurement", "s", 0.0, 600.0)
    duration: float = ros_parameter(30.0, "Duration of the measurement", "s", 5.0, 600.0)
    expected_mass: float = ros_parameter(
        1.0, "Mass with which the expected errors are compared before the robot moves", "kg", 0.001, 1000.0
    )
    friction_change: float = ros_parameter(
        0.1,
        "Standard deviation of the change of the friction since the arm was identified, relative to the friction",
        "",
        0.0,
        1.0,
    )
    declared: tuple[float, ...] = ros_parameter(
        (),
        "Payload that the driver assumes, in the frame of the link, 1, 4 or 10 numbers: mass; center of mass; inertia "
        "about it (ixx ixy iyy ixz iyz izz); empty: declared_file",
        "kg, m, kg m^2",
    )
    declared_file: str = path_parameter(
        "", "File like payload.yaml with the payload that the driver assumes; empty: none is compared"
    )
    tool: str = path_parameter(
        "",
        "File like payload.yaml of a tool that the arm was identified with; it is added to what the driver is given, "
        "whose payload begins at the flange",
    )
    driver: str = ros_parameter(
        NO_DRIVER,
        "Driver that the task WRITE writes the payload into: a service of ur_msgs or franka_msgs, or a file per tool",
        choices=(NO_DRIVER, FILE, *DRIVERS),
    )
    driver_service: str = topic_parameter("", "Service of the driver; empty: its usual name")
    driver_frame: str = ros_parameter(
        "", "Link that is the flange of the driver; empty: tool0 for ur, panda_link8 for franka, link for file"
    )
    driver_timeout: float = ros_parameter(5.0, "Longest time in which the driver answers", "s", 0.1, 60.0)
    folder: str = path_parameter(
        "", "Folder for trajectories, recordings and results of all goals; empty: payloads/<date and time>"
    )
    autostart: bool = autostart_parameter()

    @property
    def warm_up_periods(self) -> int:
        """Number of periods of the warm-up."""
        return math.ceil(self.warm_up / self.period - 1e-9)

    @property
    def measured_periods(self) -> int:
        """Number of periods of the measurement, an even one: it is recorded in two halves."""
        return 2 * max(1, math.ceil(0.5 * self.duration / self.period - 1e-9))

    @property
    def warm_time(self) -> float:
        """Time of the motion before the measurement [s]."""
        return self.warm_up_periods * self.period

    @property
    def half_time(self) -> float:
        """Time of the motion until the middle of the measurement [s]."""
        return self.warm_time + 0.5 * self.measured_periods * self.period

    @property
    def full_time(self) -> float:
        """Time of the motion [s]."""
        return (self.warm_up_periods + self.measured_periods) * self.period

    def read_declared(self) -> DeclaredPayload | None:
        """Declared payload; None if none is declared.

        Raises:
            RobotDynIdError: it is given twice, or wrong.
        """
        if self.declared and self.declared_file:
            raise UsageError("parameters declared and declared_file: give one of them")
        if self.declared:
            return make_declared_payload(self.link, self.declared)
        return read_declared(self.declared_file, self.link) if self.declared_file else None

    def make_frame(self, model: RobotModel) -> DriverFrame:
        """Frame of the driver; that of the link without a driver that has one.

        Raises:
            UsageError: see `DriverFrame`.
        """
        usual = DRIVERS[self.driver].frame if self.driver in DRIVERS else self.link
        return DriverFrame(model, self.link, self.driver_frame or usual)

    def make_motion(self, arm: ParameterSet, model: RobotModel, position: Array, mass: float) -> PayloadMotion:
        """Demands on the motion about a configuration.

        Args:
            arm: the identified arm.
            model: the robot, with the limits that motions keep.
            position: the configuration [rad or m], shape (n,).
            mass: declared mass; 0: not declared [kg].

        Raises:
            RobotDynIdError: see `PayloadMotion`.
        """
        keys: dict[str, Any] = {
            "form": "fourier",
            "period": self.period,
            "periods": self.warm_up_periods + self.measured_periods,
            "velocity_scale": self.velocity_scale,
            "margin": self.position_margin,
            "effort_scale": self.effort_scale,
        }
        for name in ("acceleration", "jerk"):
            values = order_per_joint(name, getattr(self, name), model, self.joints)
            if values:
                keys[name] = dict(zip(model.joint_names, values, strict=True))
        if not self.ground or not math.isnan(self.ground_height):
            keys["ground"] = choose_ground(self, True)
        if self.allow_unchecked_collisions:
            keys["clearance"] = 0.0
        return PayloadMotion(
            arm=arm,
            model=model,
            link=self.link,
            position=position,
            joints=self.moving_joints,
            window=self.window,
            duration=self.measured_periods * self.period,
            expected_mass=mass or self.expected_mass,
            friction_change=self.friction_change,
            keys=keys,
            design=self.design,
        )


@dataclass(frozen=True)
class WristSettings(PayloadSettings, ExcitationSettings):
    """ROS parameters of the excitation publisher inside the payload identifier.

    It has those of the payload identifier as well, as both get the arguments of one process.
    """


def list_wrist_parameters(settings: PayloadSettings, **values: Any) -> list[Parameter]:
    """ROS parameters of the excitation publisher that moves the wrist.

    Args:
        settings: parameters of the payload identifier.
        **values: parameters of the excitation publisher.
    """
    given = {item.name: getattr(settings, item.name) for item in fields(MotionSettings)}
    # given even where they are defaults: arguments of the process, which hold for it as well, could be others; "not
    # given" is spelled nan or empty, and needs no value
    return [
        Parameter(name, value=list(value) if isinstance(value, tuple) else value)
        for name, value in {**given, **values}.items()
        if repr(value) not in ("nan", "()")
    ]
