# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the simulator, and the robot and sensors that they describe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.drives import CommandedDrives
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.link_body import SYMBOLS
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.files.actuators import read_actuators
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.files.term_values import read_term_values
from robot_dyn_id.loads.payload import check_carrier, transform_parameters
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.runtime.ros_parameters import latency_parameter, path_parameter, ros_parameter, topic_parameter
from robot_dyn_id.parameters import COMPENSATED_PARTS
from robot_dyn_id.simulation.base_sensor import BaseSensor, WrenchErrors
from robot_dyn_id.simulation.controllers import EffortGains
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.plant import make_nominal_dynamics
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.simulation.simulated_robot import (
    BANDWIDTH,
    EFFORT,
    FASTEST,
    MODES,
    POSITION,
    Actuation,
    SensorStream,
    SimulatedRobot,
)
from robot_dyn_id.simulation.trajectory_controller import STOPPED_VELOCITY_TOLERANCE, Tolerances

URDF, PARAMETERS, ACTUATORS = "urdf", "parameters", "actuators"
MODELS = (URDF, PARAMETERS, ACTUATORS)
"""Sources of the dynamics: the URDF with the friction of the settings, an identified parameter set, or the URDF with
identified actuators that are received."""

WITHOUT_ACTUATORS = (
    *("joints", "gravity", "viscous", "coulomb", "terms", "temperature", "bandwidth", "robot_compensates"),
    *("proportional_gains", "derivative_gains", "integral_gains", "limit_effort"),
)
"""Parameters that identified actuators replace."""


@dataclass(frozen=True)
class SimulatorSettings:
    """ROS parameters of the simulator."""

    urdf: str = path_parameter("", "URDF or xacro file of the robot; empty: from robot_description or the parameters")
    model: str = ros_parameter(
        "urdf",
        "Source of the dynamics: urdf (with the friction of these parameters), parameters (identified_parameters), or "
        "actuators (the URDF with identified_actuators)",
        choices=MODELS,
    )
    joints: tuple[str, ...] = ros_parameter((), "Moving joints, the others are locked; empty: all")
    mass_factors: tuple[float, ...] = ros_parameter(
        (),
        "Factors of mass and inertia of the moving bodies in comparison with the URDF, which is published unchanged, "
        "one for all or one per body; empty: 1",
        minimum=0.01,
    )
    drive_gains: tuple[float, ...] = ros_parameter(
        (),
        "Joint torque per unit of the efforts in joint states and commands, one for all joints or one per joint; "
        "negative where a drive counts in the other direction; empty: 1",
        "N m or N",
    )
    backlash: tuple[float, ...] = ros_parameter(
        (),
        "Width of the backlash between encoder and link, one value for all joints or one per joint; quasi-static: the "
        "link hangs from its drive by half of it",
        "rad or m",
        0.0,
    )
    gravity: tuple[float, ...] = ros_parameter(STANDARD_GRAVITY, "Gravity in the base frame", "m/s^2")
    viscous: tuple[float, ...] = ros_parameter(
        (), "Viscous friction, one value for all joints or one per joint", "N m s or N s/m", 0.0
    )
    coulomb: tuple[float, ...] = ros_parameter(
        (), "Coulomb friction, one value for all joints or one per joint", "N m or N", 0.0
    )
    smoothing_width: float = ros_parameter(0.01, "Smoothing width of the Coulomb friction", "rad/s", 0.0)
    terms: str = path_parameter(
        "",
        "YAML file with further terms and their values: Stribeck friction, rotors, springs, ...; see "
        "docs/simulation.md; empty: none",
    )
    actuators: str = path_parameter(
        "",
        "File actuators.yaml of robot-dyn-id actuators: drives that follow commanded positions with these gains, "
        "delays, friction and ends, and with these links; empty: none, or received if model is actuators",
    )
    actuator_draw: int = ros_parameter(
        0,
        "Seed of actuators that are drawn from the uncertainty of the identified ones, as the first of "
        "CommandedSimulation; 0: the identified ones",
        minimum=0,
    )
    payload: str = path_parameter(
        "",
        "File like payload.yaml of a body that the robot carries, until ~/carry_payload drops it; empty: none",
    )
    temperature: tuple[float, ...] = ros_parameter(
        (), "Temperature of all joints or of each one; empty: reference temperature of the terms", "degrees Celsius"
    )
    initial_position: tuple[float, ...] = ros_parameter(
        (), "Initial joint positions; empty: 0, or the nearest position within the limits", "rad or m"
    )
    control: str = ros_parameter(
        POSITION,
        "Command interface: joint trajectories, effort commands, or either: trajectories until the first effort "
        "command, and again from a trajectory that comes after the effort commands have ended",
        choices=MODES,
    )
    controller: str = topic_parameter(
        "joint_trajectory_controller",
        "Name of the trajectory controller: prefix of its topics and its action",
    )
    controller_state_rate: float = ros_parameter(
        50.0, "Rate of controller_state, for which there must be a subscriber; 0: not published", "Hz", 0.0
    )
    path_tolerance: tuple[float, ...] = ros_parameter(
        (),
        "Position error that aborts a trajectory, one value for all or one per joint; 0: none",
        "rad or m",
        0.0,
    )
    goal_tolerance: tuple[float, ...] = ros_parameter(
        (), "Position error up to which a goal is reached, one value for all or one per joint; 0: any", "rad or m", 0.0
    )
    goal_time: float = ros_parameter(
        0.0, "Time after the end of a trajectory until which the goal must be reached; 0: not limited", "s", 0.0
    )
    stopped_velocity_tolerance: float = ros_parameter(
        STOPPED_VELOCITY_TOLERANCE,
        "Velocity up to which a goal is reached, if efforts are commanded; 0: any",
        "rad/s or m/s",
        0.0,
    )
    proportional_gains: tuple[float, ...] = ros_parameter(
        (),
        "Gains of a trajectory controller that commands efforts, one for all joints or one per joint; empty: it "
        "commands positions, which the robot follows with its exact model and bandwidth",
        "N m/rad or N/m",
        0.0,
    )
    derivative_gains: tuple[float, ...] = ros_parameter(
        (), "Gains of the velocity error of such a controller", "N m s/rad or N s/m", 0.0
    )
    integral_gains: tuple[float, ...] = ros_parameter(
        (), "Gains of the integrated position error of such a controller", "N m/(rad s) or N/(m s)", 0.0
    )
    allow_partial_joints_goal: bool = ros_parameter(
        True, "Follow trajectories of a part of the joints; the others hold their present command"
    )
    bandwidth: float = ros_parameter(BANDWIDTH, "Bandwidth of the position controller", "rad/s", 1.0, 200.0)
    limit_effort: bool = ros_parameter(True, "Apply the effort limits of the URDF")
    latency: float = latency_parameter()
    effort_wait: float = ros_parameter(
        0.0,
        "With clock, simulated time pauses while the latest effort command is older than this, for at most 10 s; "
        "0 disables the pause",
        "s",
        0.0,
    )
    robot_compensates: tuple[str, ...] = ros_parameter(
        (),
        "Torques that the simulated driver adds to effort commands, with the simulated robot's own model; empty: none",
        choices=COMPENSATED_PARTS,
    )
    wrench_duration: float = ros_parameter(
        0.5, "Time for which an applied wrench acts unless another follows", "s", 0.001
    )
    brakes: bool = ros_parameter(False, "Hold the joints with brakes until the first effort command")
    rate: float = ros_parameter(1000.0, "Control rate", "Hz", 10.0, FASTEST)
    publish_rate: float = ros_parameter(1000.0, "Rate of the joint states; rate must be a multiple of it", "Hz", 1.0)
    effort_noise: tuple[float, ...] = ros_parameter(
        (), "Standard deviation of the efforts, one value for all joints or one per joint", "N m or N", 0.0
    )
    effort_correlation_time: float = ros_parameter(0.0, "Correlation time of the effort noise", "s", 0.0)
    position_noise: float = ros_parameter(0.0, "Standard deviation of the positions", "rad or m", 0.0)
    velocity_noise: float = ros_parameter(0.0, "Standard deviation of the velocities", "rad/s or m/s", 0.0)
    resolution: float = ros_parameter(0.0, "Resolution of the position encoders; 0: continuous", "rad or m", 0.0)
    base_wrench: bool = ros_parameter(
        False,
        "Publish the wrench that the robot exerts on a 6-axis sensor under its base, with each joint state; needs "
        "model to be urdf or actuators",
    )
    base_wrench_noise: tuple[float, ...] = ros_parameter(
        (), "Standard deviations of its forces [N] and moments [N m], two values; empty: 0", "", 0.0
    )
    delay: float = ros_parameter(0.0, "Delay of all sensors", "s", 0.0, 1.0)
    seed: int = ros_parameter(0, "Seed of the noise", minimum=0)
    clock: bool = ros_parameter(False, "Publish simulated time, starting at 0, on /clock")
    real_time_factor: float = ros_parameter(1.0, "Real-time factor of /clock; 0: as fast as possible", "", 0.0)

    @property
    def ticks_per_message(self) -> int:
        """Number of control cycles per joint state.

        Raises:
            UsageError: it is not an integer.
        """
        ratio = self.rate / self.publish_rate
        if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6:
            raise UsageError(f"publish_rate {self.publish_rate:g} must be rate {self.rate:g} over an integer")
        return round(ratio)

    @property
    def waits(self) -> float:
        """Age of an effort command at which simulated time pauses [s]; inf if it never pauses.

        Raises:
            UsageError: there is no simulated time, or the robot does not take effort commands.
        """
        if self.effort_wait and (not self.clock or self.control == POSITION):
            raise UsageError("effort_wait needs clock to be true, and control to be effort or either")
        return self.effort_wait or math.inf

    @property
    def factor(self) -> float:
        """Real-time factor; 0: as fast as possible.

        Raises:
            UsageError: the factor is not 1, but the simulated time is not published.
        """
        if self.real_time_factor != 1.0 and not self.clock:
            raise UsageError("real_time_factor needs clock to be true: other nodes need the simulated time")
        return self.real_time_factor

    @property
    def has_drives(self) -> bool:
        """Whether identified actuators move the robot.

        Raises:
            UsageError: parameters that contradict them.
        """
        if not self.actuators and self.model != ACTUATORS:
            if self.actuator_draw:
                raise UsageError("actuator_draw needs actuators, or model to be actuators")
            return False
        if self.actuators and self.model != URDF:
            raise UsageError("actuators need model to be urdf: they are read, not received")
        if self.control != POSITION:
            raise UsageError("actuators need control to be position: their drives follow positions")
        defaults = {field.name: field.default for field in fields(self)}
        given = [name for name in WITHOUT_ACTUATORS if getattr(self, name) != defaults[name]]
        if given:
            raise UsageError(f"{given[0]} and actuators are both given: the actuators determine it; leave out one")
        return True

    def read_drives(self) -> ActuatorSet | None:
        """Identified actuators of the file that are simulated; None without a file.

        Raises:
            RobotDynIdError: the file cannot be read, or see `choose_drives`.
        """
        return self.choose_drives(read_actuators(self.actuators)) if self.actuators else None

    def choose_drives(self, identified: ActuatorSet) -> ActuatorSet:
        """Actuators that are simulated: the identified ones, or drawn ones.

        Raises:
            InputError: they are not fit for simulation, or an interval is infinite.
        """
        identified.refuse_unfit()
        if not self.actuator_draw:
            return identified
        (drawn,) = draw_actuators(identified.actuators, identified.uncertainty, 1, self.actuator_draw)
        return replace(identified, actuators=drawn)

    def nominal(self, robot: RobotDescription, actuators: ActuatorSet | None = None) -> Dynamics:
        """Dynamics of a URDF with the friction of the settings; with actuators, of their links alone.

        Args:
            robot: the robot.
            actuators: actuators that move it; None: efforts do.

        Raises:
            RobotDynIdError: a URDF or a file of terms or actuators that cannot be read, actuators of another robot,
                unknown joints, another number of values, or friction both in the settings and in the file.
        """
        if actuators is None:
            model = RobotModel.from_description(robot, self.joints or None, gravity=self.gravity)
        else:
            model = actuators.model(robot.text)
        viscous, coulomb = (make_joint_array(getattr(self, n), model.joint_names, n) for n in ("viscous", "coulomb"))
        further = read_term_values(self.terms, model) if self.terms else ()
        for name, given in (("viscous", viscous), ("coulomb", coulomb)):
            overlapping = [term.name for _, term, _ in further if name in {term.name, *term.includes}]
            if overlapping and given.any():
                raise UsageError(f"{name}: {overlapping[0]} of {self.terms} contains this friction already")
        dynamics = make_nominal_dynamics(model, viscous, coulomb, self.smoothing_width, further)
        if not self.mass_factors:
            return dynamics
        factors = np.repeat(make_joint_array(self.mass_factors, model.body_names, "mass_factors"), SYMBOLS)
        values = dynamics.values.copy()
        values[: len(factors)] *= factors
        return replace(dynamics, values=values)

    def drives(self, joint_names: Sequence[str]) -> Drives:
        """Drives of the robot.

        Raises:
            UsageError: values for another number of joints, or a gain of zero.
        """
        gains = make_joint_array(self.drive_gains, joint_names, "drive_gains", 1.0)
        if not gains.all():
            raise UsageError(f"drive_gains {list(self.drive_gains)} must not be zero")
        return Drives(gains, make_joint_array(self.backlash, joint_names, "backlash"))

    def laden(self, dynamics: Dynamics) -> Dynamics:
        """Dynamics of the robot with its payload.

        Raises:
            RobotDynIdError: a file that cannot be read, or a link that does not exist or does not move.
        """
        if not self.payload:
            return dynamics
        body = read_payload(self.payload)
        at = find_placement_of(dynamics.regressor.model, body.link)
        check_carrier(body.link, at)
        return dynamics.carrying(at.body, transform_parameters(at) @ body.parameters)

    def warmed(self, dynamics: Dynamics) -> Dynamics:
        """Dynamics at the temperature of the settings."""
        return dynamics.at_temperature(self.temperature) if self.temperature else dynamics

    def robot(self, dynamics: Dynamics, actuators: ActuatorSet | None = None) -> SimulatedRobot:
        """Simulated robot at its initial position.

        Args:
            dynamics: its dynamics.
            actuators: actuators that move it; None: efforts do.

        Raises:
            RobotDynIdError: positions for another number of joints, dynamics that cannot be simulated, or a driver that
                adds torques to effort commands though it takes none.
        """
        if self.mass_factors and self.model == PARAMETERS:
            raise UsageError(
                "mass_factors need model to be urdf or actuators: identified parameters are simulated as they are"
            )
        if self.robot_compensates and self.control == POSITION and not self.proportional_gains:
            raise UsageError(
                "robot_compensates needs control to be effort or either, or proportional_gains: positions are followed "
                "without effort commands"
            )
        dynamics = self.warmed(dynamics)
        model = dynamics.regressor.model
        limits = model.limits
        start = make_joint_array(self.initial_position, model.joint_names, "initial_position")
        if not self.initial_position:
            start = np.clip(start, limits.lower, limits.upper)
        actuation = Actuation(
            self.control,
            self.limit_effort,
            Latency(self.latency).stale,
            self.bandwidth,
            self.brakes,
            self.robot_compensates,
            self._gains(model.joint_names),
            self._tolerances(model.joint_names),
            None if actuators is None else CommandedDrives(actuators.actuators.select(model.joint_names), (), start),
        )
        return SimulatedRobot(dynamics, start, 1.0 / self.rate, actuation)

    def _gains(self, joint_names: Sequence[str]) -> EffortGains | None:
        """Gains of a trajectory controller that commands efforts; None if it commands positions.

        Raises:
            UsageError: gains for another number of joints, or without proportional gains or position control.
        """
        names = ("proportional_gains", "derivative_gains", "integral_gains")
        if not self.proportional_gains:
            if self.derivative_gains or self.integral_gains:
                raise UsageError("derivative_gains and integral_gains need proportional_gains")
            return None
        if self.control == EFFORT:
            raise UsageError(
                "proportional_gains need control to be position or either: effort commands are not fed back"
            )
        return EffortGains(*(make_joint_array(getattr(self, name), joint_names, name) for name in names))

    def _tolerances(self, joint_names: Sequence[str]) -> Tolerances:
        """Default tolerances of the trajectory controller.

        Raises:
            UsageError: tolerances for another number of joints.
        """
        path, goal = (
            make_joint_array(getattr(self, name), joint_names, name) for name in ("path_tolerance", "goal_tolerance")
        )
        return Tolerances.from_positions(path, goal, self.goal_time, self.stopped_velocity_tolerance)

    def base_sensor(self, robot: SimulatedRobot) -> BaseSensor | None:
        """Sensor under the base of the robot; None if it has none.

        Raises:
            UsageError: identified parameters, which do not determine this wrench, or another number of values.
        """
        if not self.base_wrench:
            return None
        if self.model == PARAMETERS:
            raise UsageError(
                "base_wrench needs model to be urdf or actuators: identified parameters determine torques alone"
            )
        if len(self.base_wrench_noise) not in (0, 2):
            raise UsageError(f"base_wrench_noise has {len(self.base_wrench_noise)} values, expected 2")
        force, moment = self.base_wrench_noise or (0.0, 0.0)
        return BaseSensor(robot, WrenchErrors(force, moment, self.delay, self.seed))

    def sensors(self, joint_names: Sequence[str]) -> SensorStream:
        """Sensors of the robot.

        Args:
            joint_names: names of the joints.

        Raises:
            UsageError: noise for another number of joints.
        """
        effort = make_joint_array(self.effort_noise, joint_names, "effort_noise")
        errors = Sensors(
            effort, self.position_noise, self.velocity_noise, self.effort_correlation_time, self.resolution
        )
        return SensorStream(errors, self.publish_rate, self.delay, self.seed)
