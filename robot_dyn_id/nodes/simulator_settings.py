# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the simulator, and the robot and sensors that they describe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.joint_values import joint_array
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter
from robot_dyn_id.simulation.plant import nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import (
    BANDWIDTH,
    EFFORT,
    FASTEST,
    MODES,
    POSITION,
    SensorStream,
    SimulatedRobot,
)

URDF, PARAMETERS = "urdf", "parameters"
MODELS = (URDF, PARAMETERS)
"""What is simulated: the URDF with the friction of the settings, or an identified parameter set."""


@dataclass(frozen=True)
class SimulatorSettings:
    """ROS parameters of the simulator."""

    urdf: str = ros_parameter("", "URDF or xacro file of the robot; empty: from robot_description or the parameters")
    model: str = ros_parameter(
        "urdf", "Masses and friction: of the URDF and these parameters, or identified_parameters", choices=MODELS
    )
    joints: tuple[str, ...] = ros_parameter((), "Joints that move; empty: all")
    gravity: tuple[float, ...] = ros_parameter(STANDARD_GRAVITY, "Gravity in the base frame", "m/s^2")
    viscous: tuple[float, ...] = ros_parameter((), "Viscous friction of all joints or of each", "N m s or N s/m", 0.0)
    coulomb: tuple[float, ...] = ros_parameter((), "Coulomb friction of all joints or of each", "N m or N", 0.0)
    smoothing_width: float = ros_parameter(0.01, "Velocity within which Coulomb friction is smoothed", "rad/s", 0.0)
    initial_position: tuple[float, ...] = ros_parameter(
        (), "Where the joints stand at first; empty: at 0, or as near as their limits allow", "rad or m"
    )
    control: str = ros_parameter(POSITION, "What is followed: joint trajectories, or effort commands", choices=MODES)
    bandwidth: float = ros_parameter(BANDWIDTH, "Of the position controller", "rad/s", 1.0, 200.0)
    limit_effort: bool = ros_parameter(True, "Whether the motors have the effort limits of the URDF")
    effort_timeout: float = ros_parameter(0.1, "Age at which an effort command gives way to zero", "s", 0.001)
    effort_wait: float = ros_parameter(
        0.0,
        "With `clock`, time stands still while the newest effort command is older than this, for at most 10 s: a "
        "controller on a busy computer loses time, not the robot; 0: time waits for nobody",
        "s", 0.0)  # fmt: skip
    brakes: bool = ros_parameter(False, "In effort control the joints stand still until the first effort command")
    rate: float = ros_parameter(1000.0, "Ticks of control per second", "Hz", 10.0, FASTEST)
    publish_rate: float = ros_parameter(1000.0, "Joint states per second, a whole fraction of the rate", "Hz", 1.0)
    effort_noise: tuple[float, ...] = ros_parameter((), "Standard deviation of all joints or each", "N m or N", 0.0)
    effort_correlation_time: float = ros_parameter(0.0, "Correlation time of the effort noise", "s", 0.0)
    position_noise: float = ros_parameter(0.0, "Standard deviation of positions", "rad or m", 0.0)
    velocity_noise: float = ros_parameter(0.0, "Standard deviation of velocities", "rad/s or m/s", 0.0)
    resolution: float = ros_parameter(0.0, "Step of the position encoders; 0 is none", "rad or m", 0.0)
    delay: float = ros_parameter(0.0, "Time by which all sensors are late", "s", 0.0, 1.0)
    seed: int = ros_parameter(0, "Of the noise")
    clock: bool = ros_parameter(False, "Publish /clock, with time that begins at 0, for nodes with use_sim_time")
    real_time_factor: float = ros_parameter(1.0, "Speed of that clock; 0: as fast as possible", "", 0.0)

    @property
    def ticks_per_message(self) -> int:
        """Ticks from one message of joint states to the next.

        Raises:
            UsageError: not a whole number of them.
        """
        ratio = self.rate / self.publish_rate
        if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6:
            raise UsageError(f"publish_rate {self.publish_rate:g} must be rate {self.rate:g} over a whole number")
        return round(ratio)

    @property
    def waits(self) -> float:
        """Age of an effort command at which time stands still [s]; infinite if it never does.

        Raises:
            UsageError: no time that could stand still, or no effort commands.
        """
        if self.effort_wait and not (self.clock and self.control == EFFORT):
            raise UsageError("effort_wait needs clock to be true, and control to be effort")
        return self.effort_wait or math.inf

    @property
    def factor(self) -> float:
        """How much faster than the clock of the computer it runs; 0: as fast as possible.

        Raises:
            UsageError: another speed, but no clock that would tell anybody.
        """
        if self.real_time_factor != 1.0 and not self.clock:
            raise UsageError("real_time_factor needs clock to be true: other nodes must be told the time")
        return self.real_time_factor

    def nominal(self, robot: RobotDescription) -> Dynamics:
        """Dynamics of a URDF with the friction of the settings.

        Raises:
            RobotDynIdError: a URDF that cannot be read, unknown joints, friction for another number of joints.
        """
        model = RobotModel.from_description(robot, self.joints or None, gravity=self.gravity)
        viscous, coulomb = (joint_array(getattr(self, n), model.joint_names, n) for n in ("viscous", "coulomb"))
        return nominal_dynamics(model, viscous, coulomb, self.smoothing_width)

    def robot(self, dynamics: Dynamics) -> SimulatedRobot:
        """The robot at its place.

        Raises:
            RobotDynIdError: positions for another number of joints, dynamics that cannot be simulated.
        """
        model = dynamics.regressor.model
        limits = model.limits
        start = joint_array(self.initial_position, model.joint_names, "initial_position")
        if not self.initial_position:
            start = np.clip(start, limits.lower, limits.upper)
        return SimulatedRobot(
            dynamics, start, 1.0 / self.rate, self.control, self.limit_effort, self.effort_timeout, self.bandwidth,
            self.brakes,
        )  # fmt: skip

    def sensors(self, joint_names: Sequence[str]) -> SensorStream:
        """The sensors of the joints.

        Args:
            joint_names: names of the joints.

        Raises:
            UsageError: noise for another number of joints.
        """
        effort = joint_array(self.effort_noise, joint_names, "effort_noise")
        errors = Sensors(
            effort, self.position_noise, self.velocity_noise, self.effort_correlation_time, self.resolution
        )
        return SensorStream(errors, self.publish_rate, self.delay, self.seed)
