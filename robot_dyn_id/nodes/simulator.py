# SPDX-License-Identifier: Apache-2.0
"""Node `simulator`: a robot with friction and sensors, commanded by trajectories or efforts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.actuators.drives import warm_up as warm_up_drives
from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, RobotDynIdError, UsageError
from robot_dyn_id.model.urdf import RobotDescription, find_root_link
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import read_trajectory_points
from robot_dyn_id.nodes.runtime.diagnostics import OK, STALE, WARN
from robot_dyn_id.nodes.runtime.pacing import PacedCall
from robot_dyn_id.nodes.runtime.robot_node import (
    LATCHED,
    RELIABLE,
    SENSOR,
    RobotNode,
    executes,
    publishes,
    serves,
    subscribes,
)
from robot_dyn_id.nodes.simulated_controller import ACTION_TYPE, STATE_TYPE, WITHOUT_ACTION, SimulatedController
from robot_dyn_id.nodes.simulator_settings import ACTUATORS, PARAMETERS, SimulatorSettings
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.joint_state_frame import JointStateFrame
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.simulation.plant import warm_up
from robot_dyn_id.simulation.simulated_driver import SimulatedDriver
from robot_dyn_id.simulation.simulated_robot import EFFORT, POSITION, RealTimePacer, SimulatedRobot
from robot_dyn_id.simulation.trajectory_controller import SUCCESSFUL, TrajectoryEnd

DESCRIPTION, MODEL, DRIVES = "robot_description", "identified_parameters", "identified_actuators"
"""Topics that describe a robot."""

BATCH_S = 0.005
"""Time that ticks take in a row, as fast as possible, before messages are looked at [s]."""

SHORTEST_PERIOD_S = 1e-3
"""Shortest period of the timer [s]: faster robots do several ticks each time."""

FEEDBACK_RATE_HZ = 20.0
"""Rate of the feedback of a goal, by simulated time [Hz]: that of joint_trajectory_controller."""

REPORTS_PER_SECOND = 10
"""Reports of the state per second of simulated time."""


class SimulatorCommands:
    """Receives commands, which are refused before there is a robot."""

    def __init__(self, node: RobotNode, ended: Callable[[TrajectoryEnd], None]) -> None:
        """Subscribe.

        Args:
            node: the simulator.
            ended: takes the end of a trajectory that a command has stopped.
        """
        self._settings: SimulatorSettings = node.settings
        self._refuse, self._ended = node.refuse, ended
        self._driver: SimulatedDriver | None = None
        topic = f"{self._settings.controller}/joint_trajectory"
        node.create_subscription(JointTrajectory, topic, self._labeled("joint trajectory", self._follow), RELIABLE)
        node.subscription("effort_command", self._labeled("effort command", self._take_effort))
        node.subscription("applied_wrench", self._labeled("applied wrench", self._apply))
        if self._settings.has_drives:
            node.subscription("position_command", self._labeled("position command", self._take_position))
        if self._settings.payload:
            node.service("~/carry_payload", self._carry)

    def use(self, driver: SimulatedDriver, bare: Dynamics, laden: Dynamics, begun: Callable[[], int]) -> None:
        """Command a robot.

        Args:
            driver: its driver.
            bare: its dynamics without the payload.
            laden: its dynamics with the payload.
            begun: stamp of its tick 0 [ns].
        """
        self._driver, self._bare, self._laden, self._begun = driver, bare, laden, begun

    def _labeled(self, what: str, take: Callable[[SimulatedDriver, Any], None]) -> Callable[[Any], None]:
        """Callback of a command, whose refusals name it."""

        def call(message: Any) -> None:
            try:
                take(self._present(), message)
            except InputError as error:
                self._refuse(f"{what}: {error}")

        return call

    def _present(self) -> SimulatedDriver:
        """The driver.

        Raises:
            InputError: there is no robot yet.
        """
        if self._driver is None:
            raise InputError("there is no robot yet")
        return self._driver

    def _carry(self, request: Any, answer: Any) -> str:
        """Take the payload up, or drop it."""
        dynamics = self._laden if request.data else self._bare
        self._present().robot.replace_dynamics(self._settings.warmed(dynamics))
        return "carries its payload" if request.data else "carries nothing"

    def _follow(self, driver: SimulatedDriver, message: JointTrajectory) -> None:
        robot = driver.robot
        if self._settings.control == EFFORT:
            raise InputError("the parameter control is effort")
        if message.points:
            robot.controller.follow(*self.read(message), robot.time)
        elif (end := robot.controller.stop(robot.time)) is not None:
            self._ended(end)

    def read(self, message: JointTrajectory) -> tuple[TrajectoryPoints, float]:
        """Points of a trajectory and its start time [s].

        Raises:
            InputError: it cannot be followed by this robot, or leaves its position limits; or effort commands are being
                followed.
        """
        robot, stamp = self._present().robot, message.header.stamp
        robot.take_positions()
        model = robot.plant.dynamics.model
        rest = robot.tracker.setpoint(robot.time).q if self._settings.allow_partial_joints_goal else None
        points = read_trajectory_points(message, model.joint_names, rest)
        points.check_limits(model.joint_names, model.limits.lower, model.limits.upper)
        begins_now = stamp.sec == 0 and stamp.nanosec == 0
        start = 1e-9 * (stamp.sec * 1_000_000_000 + stamp.nanosec - self._begun())
        return points, robot.time if begins_now else start

    def _take_effort(self, driver: SimulatedDriver, message: Any) -> None:
        if self._settings.control == POSITION:
            raise InputError("the parameter control is position")
        driver.command(np.array(message.data))

    def _take_position(self, driver: SimulatedDriver, message: Any) -> None:
        driver.robot.command_position(np.array(message.data))

    def _apply(self, driver: SimulatedDriver, message: Any) -> None:
        force, moment = message.wrench.force, message.wrench.torque
        wrench = np.array([force.x, force.y, force.z, moment.x, moment.y, moment.z])
        driver.apply_wrench(message.header.frame_id, wrench, self._settings.wrench_duration)


INTERFACES = (
    publishes("joint_states", JointState, "Simulated measurements", RELIABLE),
    publishes(
        "base_wrench",
        WrenchStamped,
        "Wrench that the robot exerts on a sensor under its base, in the frame of the URDF's root link, if base_wrench "
        "is true",
        RELIABLE,
    ),
    publishes("robot_description", String, "URDF, unless it was received on this topic", LATCHED),
    publishes("/clock", Clock, "Simulated time, if enabled", RELIABLE),
    subscribes(DESCRIPTION, String, "URDF, if it is not given otherwise", LATCHED),
    subscribes(MODEL, ParameterSetMsg, "Identified model, if the parameter model is parameters", LATCHED),
    subscribes(DRIVES, ActuatorSetMsg, "Identified actuators, if the parameter model is actuators", LATCHED),
    subscribes(
        "joint_trajectory_controller/joint_trajectory",
        JointTrajectory,
        "Trajectory to follow in position control, prefix: parameter controller; without points: hold",
        RELIABLE,
    ),
    executes(
        "joint_trajectory_controller/follow_joint_trajectory",
        ACTION_TYPE,
        "Trajectory to follow with tolerances, if control_msgs is installed",
    ),
    publishes(
        "joint_trajectory_controller/controller_state",
        STATE_TYPE,
        "Reference, feedback and error of the trajectory controller, if control_msgs is installed",
        RELIABLE,
    ),
    subscribes("effort_command", Float64MultiArray, "Efforts in effort control", SENSOR),
    subscribes(
        "position_command",
        Float64MultiArray,
        "Positions that identified actuators follow until the next ones, as those of forward_command_controller",
        SENSOR,
    ),
    subscribes(
        "applied_wrench",
        WrenchStamped,
        "Force and moment of the environment on the link header.frame_id, at its origin and along its axes, until "
        "the next one or for wrench_duration",
        RELIABLE,
    ),
    serves(
        "~/carry_payload",
        SetBool,
        "Take up the body of the parameter payload (true), or drop it (false); offered if there is one",
    ),
)


@dataclass(frozen=True)
class KnownRobot:
    """Knowledge of a robot from files and topics, which is complete before it is simulated.

    Attributes:
        settings: parameters of the simulator.
        description: its description; None until it is received.
        actuators: its identified actuators; None until they are received, or without any.
        identified: its identified dynamics; None until they are received, or if those of the description are simulated.
    """

    settings: SimulatorSettings
    description: RobotDescription | None
    actuators: ActuatorSet | None
    identified: Dynamics | None = None

    @classmethod
    def from_files(cls, settings: SimulatorSettings) -> KnownRobot:
        """Read the files of the parameters.

        Raises:
            RobotDynIdError: a file that cannot be read, or actuators that cannot be simulated.
        """
        actuators = settings.read_drives()
        return cls(settings, RobotDescription.from_file(settings.urdf) if settings.urdf else None, actuators)

    @property
    def missing(self) -> list[str]:
        """Topics on which the rest is received."""
        source = self.settings.model
        awaited = {
            MODEL: source == PARAMETERS and self.identified is None,
            DRIVES: source == ACTUATORS and self.actuators is None,
            DESCRIPTION: source != PARAMETERS and self.description is None,
        }
        return [topic for topic, waits in awaited.items() if waits]

    @property
    def is_described(self) -> bool:
        """Whether the description comes from elsewhere than its topic."""
        return bool(self.settings.urdf) or self.settings.model == PARAMETERS

    def take(self, topic: str, message: Any) -> KnownRobot:
        """The same with the content of a message.

        Raises:
            InputError: a model or actuators that cannot be simulated.
        """
        if topic == DESCRIPTION:
            return replace(self, description=RobotDescription(message.data))
        if topic == DRIVES:
            return replace(self, actuators=self.settings.choose_drives(ActuatorSet.from_message(message)))
        try:
            parameters = ParameterSet.from_message(message)
            urdf = parameters.robot.urdf if self.description is None else self.description.text
            names = parameters.robot.joint_names
            return replace(self, identified=make_usable_dynamics(parameters, urdf, names, needs_mass_matrix=True))
        except RobotDynIdError as error:  # of the sender, not of this node
            raise InputError(str(error)) from None

    def make_dynamics(self) -> Dynamics:
        """Dynamics of the robot, when nothing is missing.

        Raises:
            RobotDynIdError: see `SimulatorSettings.nominal`.
        """
        if self.identified is not None:
            return self.identified
        assert self.description is not None
        return self.settings.nominal(self.description, self.actuators)


class Simulator(RobotNode):
    """Simulated robot with its driver, in fixed time steps."""

    NAME = "simulator"
    PURPOSE = "simulates a robot with friction and sensors from a URDF or from an identified ParameterSet"
    SETTINGS = SimulatorSettings
    INTERFACES = INTERFACES

    _interfaces: SimulatedController | None = None

    def begin(self) -> None:
        """Set the node up, and begin as soon as the robot is known.

        Raises:
            RobotDynIdError: wrong parameters, or a robot that cannot be simulated.
        """
        settings: SimulatorSettings = self.settings
        self._every, self._nanoseconds = settings.ticks_per_message, round(1e9 / settings.rate)
        self._report_ticks = max(1, round(settings.rate / REPORTS_PER_SECOND))
        follows = settings.control == POSITION
        patience = RealTimePacer.PATIENCE if follows else RealTimePacer.BATCH
        patience = RealTimePacer.IMPATIENCE if settings.clock else patience
        self._pace = RealTimePacer(self._nanoseconds, settings.factor, patience)
        self._states = self.publisher("joint_states")
        self._clock_publisher = self.publisher("/clock") if settings.clock else None
        self._robot: SimulatedRobot | None = None
        self._lost = 0
        self._wait = settings.waits
        self._known = KnownRobot.from_files(settings)
        warm_up()
        if settings.has_drives:
            warm_up_drives()
        self._commands = SimulatorCommands(self, self._end_trajectory)
        for topic in self._known.missing:
            self.subscription(topic, partial(self._take, topic))
        self._begin_if_complete(self._known)

    # --- which robot

    def _take(self, topic: str, message: Any) -> None:
        """Take a message that describes the robot, and begin when nothing is missing."""
        if self._robot is None:
            try:
                known = self._known.take(topic, message)
                self._begin_if_complete(known)
                self._known = known
            except UsageError as error:  # nothing that comes later would make the node's own parameters right
                self.end = error
            except InputError as error:
                self.refuse(f"{topic}: {error}")

    def _begin_if_complete(self, known: KnownRobot) -> None:
        """Begin with a robot, or report what is missing.

        Raises:
            RobotDynIdError: wrong parameters, or a robot that cannot be simulated.
        """
        if known.missing:
            self.condition.report(STALE, f"waiting for {known.missing[0]}")
        else:
            self._begin(known.make_dynamics(), known.is_described, known.actuators)

    def _begin(self, dynamics: Dynamics, publish: bool, actuators: ActuatorSet | None) -> None:
        """Place the robot, make what each tick needs, and start the timer."""
        model = dynamics.regressor.model
        joints = len(model.joint_names)
        settings, laden = self.settings, self.settings.laden(dynamics)
        sensors, robot = settings.sensors(model.joint_names), settings.robot(laden, actuators)
        drives, base = settings.drives(model.joint_names), settings.base_sensor(robot)
        self._driver = SimulatedDriver(robot, drives, sensors, self._wait, base)
        if base is not None:
            self._base_publisher = self.publisher("base_wrench")
            self._base_message = WrenchStamped()
            self._base_message.header.frame_id = find_root_link(RobotDescription(model.urdf).root())
        self._commands.use(self._driver, dynamics, laden, self._begin_stamp)
        self._frame, self._moment = JointStateFrame(model.joint_names, 3 * [joints]), (0, 0)
        if publish:
            self._description = self.publisher("robot_description")
            self._description.publish(String(data=model.urdf))
        self._robot, self.hardware_id = robot, model.name
        if self.settings.control != EFFORT:
            self._offer_controller(robot)
        self._report()
        factor = self.settings.factor
        period = max(SHORTEST_PERIOD_S, 1.0 / (self.settings.rate * factor)) if factor > 0.0 else SHORTEST_PERIOD_S
        self._calls = self.paced_call = PacedCall(period, self.guarded(self._run))

    def _offer_controller(self, robot: SimulatedRobot) -> None:
        """Offer the action and the state topic of the trajectory controller, where control_msgs can be loaded."""
        settings: SimulatorSettings = self.settings
        try:
            self._interfaces = SimulatedController(self, robot, settings.controller, self._commands.read, self.refuse)
        except InputError as error:
            self.get_logger().info(f"{WITHOUT_ACTION} ({error})")
            return
        self._feedback_ticks = max(1, round(settings.rate / FEEDBACK_RATE_HZ))
        state_rate = settings.controller_state_rate
        self._state_ticks = max(1, round(settings.rate / state_rate)) if state_rate else 0

    # --- time

    def _run(self) -> None:
        """Do the ticks that are due."""
        try:
            if self.settings.factor == 0.0:
                begin = time.monotonic()
                while time.monotonic() < begin + BATCH_S and not self._driver.waits:
                    self._tick()
            else:
                now = time.monotonic_ns() if self._clock_publisher else self.ros_ns()
                for _ in range(self._pace.due(now) if now else 0):  # 0: the clock of others has not begun
                    if self._driver.waits:
                        break
                    self._tick()
        except InputError as error:  # a robot that broke down moves no more
            self.end = error
            self._calls.cancel()

    def _tick(self) -> None:
        robot = self._robot
        assert robot is not None
        number, now, stamp = robot.ticks, robot.time, self._begin_stamp() + robot.ticks * self._nanoseconds
        state = self._driver.tick()
        if robot.ended is not None:
            self._end_trajectory(robot.ended)
        self._moment = divmod(stamp, 1_000_000_000)
        if self._interfaces is not None:
            self._publish_controller(self._interfaces, number, now, state)
        if number % self._every == 0:
            if self._clock_publisher:
                self._clock_publisher.publish(Clock(clock=self._stamp()))
            measured = self._driver.measure(state)
            self._states.publish(self._frame.encode(*self._moment, measured.tobytes()))
            self._publish_wrench(self._driver.measure_wrench())
        if number % self._report_ticks == 0:
            self._report()

    def _stamp(self) -> Time:
        """Time of the latest tick."""
        seconds, nanoseconds = self._moment
        return Time(sec=seconds, nanosec=nanoseconds)

    def _publish_wrench(self, wrench: Array | None) -> None:
        """Publish the wrench under the base, if there is a sensor."""
        if wrench is None:
            return
        message, (force, moment) = self._base_message, wrench.reshape(2, 3).tolist()
        message.header.stamp = self._stamp()
        for part, values in ((message.wrench.force, force), (message.wrench.torque, moment)):
            part.x, part.y, part.z = values
        self._base_publisher.publish(message)

    def _publish_controller(
        self, interfaces: SimulatedController, number: int, now: float, state: tuple[Array, ...]
    ) -> None:
        """Publish the state of the trajectory controller and feedback of its goal, if they are due."""
        present = now, state[0], state[1]
        if self._state_ticks and number % self._state_ticks == 0:
            interfaces.publish(self._stamp(), *present)
        if number % self._feedback_ticks == 0:
            interfaces.feed_back(self._stamp(), *present)

    def _end_trajectory(self, end: TrajectoryEnd) -> None:
        """Report the end of a trajectory, and end its goal."""
        if self._interfaces is not None:
            self._interfaces.end(end)
        if end.code != SUCCESSFUL:
            self.get_logger().warning(": ".join(filter(None, (end.text, end.detail))))

    def _begin_stamp(self) -> int:
        """Stamp of tick 0 [ns]."""
        return 0 if self._clock_publisher else self._pace.start

    def _report(self) -> None:
        """Report the state of the robot."""
        robot = self._robot
        assert robot is not None
        beyond, lost, self._lost = robot.plant.beyond_stops(), self._pace.lost - self._lost, self._pace.lost
        values = {"ticks": robot.ticks, "time left out [ms]": self._pace.lost // 1_000_000}
        if beyond:
            self.condition.report(WARN, f"beyond the position limits: {', '.join(beyond)}", values)
        elif lost and not self._clock_publisher:  # else the time of all has only gone more slowly
            self.condition.report(WARN, "the computer is too slow for this rate: time was left out", values)
        else:
            self.condition.report(OK, robot.doing, values)

    def destroy_node(self) -> None:
        """Leave the graph with the action."""
        if self._interfaces is not None:
            self._interfaces.destroy()
        super().destroy_node()
