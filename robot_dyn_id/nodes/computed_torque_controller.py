# SPDX-License-Identifier: Apache-2.0
"""Node `computed_torque_controller`, an example: gravity compensation or computed torque with the identified model."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.compensation import DriverCompensation, check_compensations
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.state_guard import TIMELY_STATES, TROUBLE_REPORTED_S, StateGuard
from robot_dyn_id.model.joint_values import joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import parameter_set, waypoints
from robot_dyn_id.nodes.messages.joint_state import JointOrder, receive, seconds
from robot_dyn_id.nodes.runtime.diagnostics import Condition
from robot_dyn_id.nodes.runtime.managed_node import ManagedNode, autostart_parameter
from robot_dyn_id.nodes.runtime.robot_node import (
    ERROR,
    LATCHED,
    OK,
    PUBLISHES,
    RELIABLE,
    SENSOR,
    STALE,
    SUBSCRIBES,
    Interface,
)
from robot_dyn_id.nodes.runtime.ros_parameters import path_parameter, ros_parameter
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.parameters import COMPENSATED_PARTS, COMPENSATIONS, UNKNOWN, ParameterSet
from robot_dyn_id.simulation.controllers import (
    CommandedEfforts,
    ComputedTorque,
    Gains,
    LawEffort,
    ScaledNominalInertia,
    rated_efforts,
    refuse_unsafe,
    slew_rates,
    usable_dynamics,
)
from robot_dyn_id.simulation.plant import warm_up
from robot_dyn_id.simulation.trajectory_tracking import STOPPING, Setpoint, TrajectoryTracker
from robot_dyn_id.uses import ANSWERS

Studied = tuple[ParameterSet, Dynamics]
"""A parameter set and its dynamics."""

GRAVITY, COMPUTED_TORQUE = "gravity_compensation", "computed_torque"

CHECKS_PER_TIMEOUT = 4
"""Checks of the age of the joint states per timeout."""


@dataclass(frozen=True)
class ComputedTorqueControllerSettings:
    """ROS parameters of the controller."""

    urdf: str = path_parameter("", "URDF or xacro file of the robot; empty: from robot_description")
    law: str = ros_parameter(
        GRAVITY, "Control law: compensate gravity only, or follow trajectories", choices=(GRAVITY, COMPUTED_TORQUE)
    )
    robot_compensates: tuple[str, ...] = ros_parameter(
        (),
        "Torques that the robot's driver adds to effort commands, which are not commanded again, or none; empty: as "
        "the identified model states, which is refused where neither states it",
        choices=COMPENSATIONS,
    )
    bandwidth: float = ros_parameter(20.0, "Bandwidth of the position error under computed torque", "rad/s", 0.1, 200.0)
    proportional: tuple[float, ...] = ros_parameter(
        (), "Proportional gain, one value for all joints or one per joint; empty: from bandwidth", "1/s^2", 0.0
    )
    derivative: tuple[float, ...] = ros_parameter(
        (), "Derivative gain, one value for all joints or one per joint; empty: from bandwidth", "1/s", 0.0
    )
    exponent: float = ros_parameter(
        1.0,
        "Exponent of position errors; below 1 the feedback converges in finite time, and the gains apply to errors of "
        "1 rad (or m) and 1 rad/s",
        "",
        0.1,
        1.0,
    )
    start_droop: float = ros_parameter(
        0.0,
        "Maximum gravity sag with which the inertia of the URDF may be used until a model is identified, for masses of "
        "0.5 to 1.5 times those of the URDF (computed torque only); 0: no effort without a model",
        "rad or m",
        0.0,
    )
    timeout: float = ros_parameter(
        0.05,
        "Age at which joint states are stale, by their arrival and by their stamps; zero effort is commanded then, "
        f"until {TIMELY_STATES} joint states in a row have come within it",
        "s",
        0.002,
        10.0,
    )
    effort_limit: tuple[float, ...] = ros_parameter(
        (),
        "Rated effort of the commands, and of the motors, which give a command and what the driver adds to it (before "
        "a model is identified its friction is unknown, and counts as 0); one value for all joints or one per joint; "
        "lowers limits of the URDF or replaces missing ones",
        "N m or N",
        0.001,
    )
    blend_time: float = ros_parameter(
        1.0,
        "Transition time from the efforts of one model to those of the next, and to zero effort where joint states "
        "have a fault",
        "s",
        0.0,
        10.0,
    )
    start_time: float = ros_parameter(
        0.1,
        "Ramp time from zero effort to that of the model, and back when the node is deactivated; an arm without brakes "
        "sags meanwhile",
        "s",
        0.0,
        10.0,
    )
    autostart: bool = autostart_parameter()


class ComputedTorqueController(ManagedNode):
    """Efforts in response to every joint state, from the identified model or, if enabled, the inertia of the URDF."""

    NAME = "computed_torque_controller"
    PURPOSE = (
        "example of a controller with the identified model: gravity compensation or computed torque by effort commands"
    )
    SETTINGS = ComputedTorqueControllerSettings
    ENDS_ON_FAULT = True
    INTERFACES = (
        Interface(PUBLISHES, "effort_command", Float64MultiArray, "Efforts in the joint order of the model", RELIABLE),
        Interface(SUBSCRIBES, "joint_states", JointState, "Measured joint states", SENSOR),
        Interface(SUBSCRIBES, "robot_description", String, "URDF, if no file is given", LATCHED),
        Interface(
            SUBSCRIBES,
            "identified_parameters",
            ParameterSetMsg,
            "Identified model; if it is refused, the present one stays in use",
            LATCHED,
        ),
        Interface(
            SUBSCRIBES, "~/joint_trajectory", JointTrajectory, "Trajectory to follow under computed torque", RELIABLE
        ),
    )

    def set_up(self) -> None:
        """Make what does not depend on the robot.

        Raises:
            UsageError: robot_compensates contradicts itself.
        """
        self._active = self._configured = False
        self._deactivated: float | None = None  # time of the deactivation, until the effort is zero
        self._description = ""
        self._commands, self._condition = self.publisher("effort_command"), Condition(self.get_logger())
        self._gains = self._feedback_gains()
        check_compensations(UNKNOWN, self.settings.robot_compensates)
        self._compensation: DriverCompensation | None = None  # of the dynamics, before those are known of the URDF's
        self._dynamics: Dynamics | None = None
        self._law: ComputedTorque | None = None  # of the dynamics
        self._start: ScaledNominalInertia | None = None  # used until there are dynamics
        self._offered: ParameterSetMsg | None = None
        self._worker = ThreadPoolExecutor(1)  # for models that are received while another one is in use
        self._studied: Future[Studied | RobotDynIdError] | None = None
        self._studying: tuple[ParameterSetMsg | None, RobotModel | None] = None, None  # whose result that is
        self._refused = ""
        self._tracker: TrajectoryTracker | None = None  # while joint states are fresh
        self._efforts: CommandedEfforts | None = None  # of the robot that is moved
        self._robot: RobotModel | None = None
        self._joints = set[str]()  # of the robot, that have been in joint states
        self._guard: StateGuard | None = None  # of the robot that is moved
        self._faulted = False  # whether the efforts fade because of the joint states
        self._time, self._message = 0.0, Float64MultiArray()
        self._trouble, self._troubled = "", -np.inf
        warm_up()
        if not self.settings.urdf:
            self.subscription("robot_description", self._take_description)
        self.subscription("identified_parameters", self._take_parameters)
        self.subscription("joint_states", self._take_state)
        self.subscription("~/joint_trajectory", self._follow)
        self.create_timer(self.settings.timeout / CHECKS_PER_TIMEOUT, self._look, clock=self.steady)
        self._look()

    def configure(self) -> None:
        """Take the robot and the model that are known.

        Raises:
            MotionError: the efforts of the robot before still fade.
            ModelError: the URDF cannot be read.
            UsageError: a parameter has another number of values than the robot joints.
        """
        self._check_faded()
        if self.settings.urdf:
            self._robot = RobotModel.from_file(self.settings.urdf)
        elif self._description:
            self._robot = RobotModel.from_urdf(self._description)
        if self._robot is not None:
            names = self._robot.joint_names
            self._gains.per_joint(names)
            joint_array(self.settings.effort_limit, names, "parameter effort_limit")
        self._configured = True
        self._decide()
        self._look()

    def activate(self) -> None:
        """Command efforts from the next joint states on, beginning at zero.

        Raises:
            MotionError: the efforts still fade after a deactivation.
        """
        self._check_faded()
        self._active, self._tracker = True, None
        if self._guard is not None:
            self._guard.restart()
        self._look()

    def deactivate(self) -> None:
        """Let the setpoint brake, and then reduce the efforts to zero, in response to joint states as before."""
        if self._active and self._tracker is not None:
            self._tracker.hold(self._time)
            self._deactivated = self._seconds()
        self._active = False
        self._look()

    def clean_up(self) -> None:
        """Drop the robot and its model as soon as the efforts are zero."""
        self._configured = False
        if self._deactivated is None:
            self._drop_model()

    def _drop_model(self) -> None:
        self._dynamics = self._law = self._start = self._robot = self._efforts = self._guard = None
        self._joints.clear()

    def _check_faded(self) -> None:
        """Check that no effort is commanded from before a deactivation.

        Raises:
            MotionError: the setpoint still brakes, or the efforts still fade.
        """
        if self._deactivated is None:
            return
        if self._commanded_share() > 0.0:  # an arm that is let go of in one step falls
            raise MotionError("the efforts still fade to zero after the deactivation: try again when they have")
        self._end_fading()

    def _end_fading(self) -> None:
        """Command zero effort after a deactivation."""
        self._deactivated = self._tracker = None
        self._command_rest()
        if not self._configured:
            self._drop_model()

    def _commanded_share(self) -> float:
        """Share of the effort that is commanded: 1 while active; it fades to 0 after a deactivation."""
        if self._deactivated is None:
            return 1.0
        fading = self._seconds() - self._deactivated - STOPPING
        if fading <= 0.0:
            return 1.0
        return max(0.0, 1.0 - fading / self.settings.start_time) if self.settings.start_time else 0.0

    def _feedback_gains(self) -> Gains:
        """Gains from the parameters of the node."""
        settings, usual = self.settings, Gains.from_bandwidth(self.settings.bandwidth)
        return replace(
            usual,
            proportional=_per_joint(settings.proportional) if settings.proportional else usual.proportional,
            derivative=_per_joint(settings.derivative) if settings.derivative else usual.derivative,
            exponent=settings.exponent,
        )

    # --- the model

    def _take_description(self, message: Any) -> None:
        self._description = message.data
        if not self._configured:
            return
        if self._robot is not None and message.data == self._robot.urdf:
            return
        if self._model is not None:  # an arm that is let go of falls
            self._condition.refuse("robot_description has changed: restart the node to use the new one")
            return
        try:
            self._robot = RobotModel.from_urdf(message.data)
        except RobotDynIdError as error:
            self._condition.refuse(f"robot_description: {error}")
        else:
            self._joints.clear()
            self._decide()

    def _take_parameters(self, message: ParameterSetMsg) -> None:
        self._offered = message
        self._decide()

    def _decide(self) -> None:
        """Use the parameters that were offered last if they may move this robot; else those in use stay."""
        if self._robot is None or not self._joints:
            return
        if self._offered is None:
            self._begin_unknown()
            return
        if self._model is None:  # nothing is commanded that could be late
            self._conclude(self._study(self._offered, self._robot, frozenset(self._joints)))
        elif self._studied is None:  # else the latest is taken when that has ended
            self._studying = self._offered, self._robot
            self._studied = self._worker.submit(self._study, self._offered, self._robot, frozenset(self._joints))

    def _study(self, message: ParameterSetMsg, robot: RobotModel, joints: frozenset[str]) -> Studied | RobotDynIdError:
        """Make the dynamics of a message, for a node that goes on to command; returns the reason for a refusal."""
        try:
            parameters = parameter_set(message)
            needs_mass_matrix = self.settings.law == COMPUTED_TORQUE
            return parameters, usable_dynamics(parameters, robot.urdf, joints, needs_mass_matrix)
        except RobotDynIdError as error:
            return error

    def _look_at_study(self) -> None:
        """Use the model of the worker if it is ready and still the latest."""
        if self._studied is None or not self._studied.done():
            return
        studied, self._studied = self._studied, None
        message, robot = self._studying
        if message is self._offered and robot is self._robot:
            self._conclude(studied.result())
        else:
            self._decide()

    def _conclude(self, studied: Studied | RobotDynIdError) -> None:
        """Use the model, or report why it is refused."""
        assert self._robot is not None
        try:
            if isinstance(studied, RobotDynIdError):
                raise studied
            self._use(*studied)
        except RobotDynIdError as error:
            self._refused = f"parameters refused: {error}"
            if self._model is None:
                self._begin_unknown()
            if self._model is not None:  # an arm that is let go of falls
                self._condition.refuse(f"identified_parameters, the model in use stays: {error}")
        else:
            self._refused = ""
        self._look()

    def _use(self, parameters: ParameterSet, dynamics: Dynamics) -> None:
        """Go over to a model.

        Raises:
            RobotDynIdError: it may not move this robot.
        """
        model, used = dynamics.regressor.model, self._model
        if used is not None and used.joint_names != model.joint_names:
            raise InputError(
                f"its joints are {', '.join(model.joint_names)}, those of the model in use "
                f"{', '.join(used.joint_names)}: restart the node to use it"
            )
        compensation = DriverCompensation.from_parameters(parameters, dynamics, self.settings.robot_compensates)
        rated = self._rated(model)
        self._check_gains(model)
        position = None if self._guard is None or self._tracker is None else self._guard.position
        refuse_unsafe(parameters, dynamics, rated, q=position)
        if self._dynamics is None:  # an arm without a model hangs away from its setpoint: it is held where it is
            self._tracker = None
        self._dynamics, self._compensation = dynamics, compensation
        self._law = ComputedTorque(dynamics, self._gains, compensation)
        self._begin_law(model, rated)
        for fit in parameters.judgment.fit_for:
            if fit.use == self.settings.law and fit.answer != ANSWERS[0]:
                joints = f" ({', '.join(fit.joints)})" if fit.joints else ""
                self.get_logger().warning(f"the model is fit for {fit.use}: {fit.answer}{joints}; see its report")

    def _begin_unknown(self) -> None:
        """Move by the URDF's inertia, if that is requested."""
        model = self._robot
        if self._start is not None or self.settings.law != COMPUTED_TORQUE or not self.settings.start_droop:
            return
        if model is None or not self._joints.issuperset(model.joint_names):
            return  # more joint states are to come
        try:
            rated = self._rated(model)
            self._check_gains(model)
            start = ScaledNominalInertia.from_robot(self.settings.start_droop, model, self._gains)
        except RobotDynIdError as error:
            self._refused = f"no start without a model: {error}"
        else:
            parts = tuple(part for part in self.settings.robot_compensates if part in COMPENSATED_PARTS)
            self._start, self._compensation = start, DriverCompensation(start.prior, parts)
            self._begin_law(model, rated)
        self._look()

    def _rated(self, model: RobotModel) -> Array:
        """Efforts that may be commanded, shape (n,).

        Raises:
            InputError: a joint without a rating.
            UsageError: the parameter effort_limit does not fit the robot; the node ends, as nothing that comes later
                would make it right.
        """
        try:
            return rated_efforts(model, self.settings.effort_limit)
        except UsageError as error:
            self.end = error
            raise

    def _check_gains(self, model: RobotModel) -> None:
        """Check that there is one gain for all joints, or one for each.

        Raises:
            UsageError: another number of gains; the node ends, as nothing that comes later would make it right.
        """
        try:
            self._gains.per_joint(model.joint_names)
        except UsageError as error:
            self.end = error
            raise

    def _begin_law(self, model: RobotModel, rated: Array) -> None:
        """Take up another law, without a jump of the efforts."""
        if self._efforts is None:
            self._order, self._guard = JointOrder(model.joint_names), StateGuard(model, self.settings.timeout)
            self._guard.expect(self._seconds())
            feedback = self._gains.bandwidths(model.joint_names) if self.settings.law == COMPUTED_TORQUE else 0.0
            slew = slew_rates(model, rated, feedback)
            self._efforts = CommandedEfforts(rated, self.settings.start_time, self.settings.blend_time, slew)
        else:
            self._efforts.change()

    @property
    def _model(self) -> RobotModel | None:
        """The robot that can be moved; None if none can."""
        if self._dynamics is not None:
            return self._dynamics.regressor.model
        return None if self._start is None else self._start.prior.regressor.model

    # --- control

    def _take_state(self, message: Any) -> None:
        robot = self._robot
        if robot is not None and not self._joints.issuperset(new := set(robot.joint_names).intersection(message.name)):
            self._joints |= new
            self._decide()
        guard = self._guard
        if self._model is None or guard is None or not self._order.concerns(message):
            return
        now, state = self._seconds(), None
        heard = guard.heard
        try:
            state = receive(guard, self._order, message, now, self._ros_seconds(), ("position", "velocity"))
            self._time = seconds(message.header.stamp)
        except InputError as error:
            self._condition.refuse(f"joint state: {error}")
        if guard.heard == heard:  # nothing that was on time
            return
        if not guard.timely:
            self._lose_states()
        if not self._active and self._deactivated is None:
            return
        if not self.namesakes.settled:  # another controller of this name may command the robot
            return
        if self._commanded_share() == 0.0:
            self._end_fading()
        elif guard.fault:
            self._fade(guard)
        elif state is not None and (guard.ready or self._tracker is not None):
            self._control(guard.step, *state)

    def _control(self, step: float, q: Array, dq: Array) -> None:
        """Command the effort of the law at a trusted joint state."""
        if self._faulted and self._efforts is not None:
            self._faulted = False
            self._efforts.change()
        if self._tracker is None:
            self._tracker = TrajectoryTracker(q)
            if self._law is not None:
                self._law.restart()
        self._command(self._effort(self._tracker.setpoint(self._time), q, dq, step), step, self._commanded_share())

    def _fade(self, guard: StateGuard) -> None:
        """Reduce the efforts to zero: no law can follow from joint states that have a fault."""
        assert self._efforts is not None and self._compensation is not None and guard.position is not None
        if not self._faulted:
            self._faulted, self._tracker = True, None
            self._efforts.change()
        zero = np.zeros_like(guard.position)
        effort = LawEffort(zero, self._compensation.torque(guard.position, zero))
        self._command(effort, guard.step, self._commanded_share())

    def _lose_states(self) -> None:
        """Command zero effort, if any effort was commanded, as the robot may be elsewhere when its states come back."""
        if self._tracker is not None or self._faulted:
            self._tracker, self._faulted = None, False
            self._command_rest()

    def _command(self, effort: LawEffort, step: float, share: float) -> None:
        """Publish a share of what the motors may be given of a law's effort."""
        efforts, model = self._efforts, self._model
        assert efforts is not None and model is not None
        self._message.data = efforts.command(effort.wanted, step, effort.added, share).tolist()
        self._commands.publish(self._message)
        if len(efforts.invalid):  # not held by setpoints that may have caused it
            self._tracker = None
            joint = model.joint_names[efforts.invalid[0]]
            self._trouble = f"the effort of joint {joint} is not finite: zero effort for all joints"
        elif len(efforts.limited):
            number = int(efforts.limited[0])
            if self._seconds() - self._troubled > TROUBLE_REPORTED_S:  # one line for a trouble that lasts
                self._trouble = (
                    f"the effort of joint {model.joint_names[number]} is limited to its rating, "
                    f"{efforts.rated[number]:g} {model.effort_units[number]}: check the model and the trajectory"
                )
        else:
            return
        self._troubled = self._seconds()

    def _effort(self, setpoint: Setpoint, q: Array, dq: Array, step: float) -> LawEffort:
        assert self._compensation is not None
        if self._dynamics is None or self._law is None:
            assert self._start is not None
            return LawEffort(self._start.effort(setpoint, q, dq, self._gains), self._compensation.torque(q, dq))
        with np.errstate(all="ignore"):  # what is not finite is not commanded
            if self.settings.law == GRAVITY:
                wanted = self._dynamics.gravity(q) - self._compensation.torque(q, np.zeros_like(q))
                return LawEffort(np.asarray(wanted), self._compensation.torque(q, dq))
            return self._law.effort(setpoint, q, dq, step)

    def _follow(self, message: JointTrajectory) -> None:
        try:
            if self._model is None or self._tracker is None or self.settings.law != COMPUTED_TORQUE:
                raise InputError(f"needs a model, joint states, and the law {COMPUTED_TORQUE}")
            if not self._active:
                raise InputError("the node is not active")
            if message.points:
                model = self._model
                points = waypoints(message, model.joint_names)
                points.check_limits(model.joint_names, model.limits.lower, model.limits.upper, model.limits.velocity)
                self._tracker.follow(points, seconds(message.header.stamp) or self._time, self._time)
            else:
                self._tracker.hold(self._time)
        except InputError as error:
            self._condition.refuse(f"joint trajectory: {error}")

    def _look(self) -> None:
        """Report the state; joint states that have ceased are answered by one last command, zero."""
        self._look_at_study()
        guard, now = self._guard, self._seconds()
        silent = guard is None or guard.silent(now)
        if silent:
            self._lose_states()
        if self._deactivated is not None and (silent or self._commanded_share() == 0.0):
            self._end_fading()
        obstacle, faulty = ("no joint states: no effort", False) if guard is None else guard.obstacle(now)
        recent = self._seconds() - self._troubled < TROUBLE_REPORTED_S
        if self.starting:
            return
        if not self._active:
            self._condition.report(OK, f"{self.lifecycle}: no effort before the node is activated")
        elif self._robot is None:
            self._condition.report(STALE, "waiting for robot_description")
        elif not self._joints or (self._model is not None and obstacle):
            publishers = self.count_publishers("joint_states")
            values = {} if guard is None else {"age of joint states [s]": f"{now - guard.heard:.3f}"}
            level = ERROR if faulty else STALE
            self._condition.report(level, f"{obstacle}; joint_states has {publishers} publishers", values)
        elif self._model is not None and not self.namesakes.settled:
            self._condition.report(STALE, f"no effort yet: {self.namesakes.obstacle()}")
        elif self._model is not None and recent:
            self._condition.report(ERROR, self._trouble)
        elif self._dynamics is not None:
            self._condition.report(OK, f"commands efforts by {self.settings.law}")
        elif self._start is not None:
            law = f"commands efforts by the URDF's inertia, {self._start.scale:.3g} times"
            friction = "friction" in self.settings.robot_compensates
            self._condition.report(OK, law + friction * "; effort_limit leaves out the driver's friction, unknown yet")
        elif self._refused:
            self._condition.report(ERROR, self._refused)
        else:
            self._condition.report(STALE, "waiting for identified_parameters")

    def _command_rest(self) -> None:
        """Command zero effort, if any effort was commanded."""
        if self._efforts is not None and self._message.data:
            self._message.data = self._efforts.rest().tolist()
            self._commands.publish(self._message)

    def stop(self) -> bool:
        """Leave the motors without effort."""
        self._dynamics = self._law = self._start = None
        self._command_rest()
        return True

    def destroy_node(self) -> None:
        """Leave the graph, and drop a model that is being prepared."""
        worker: ThreadPoolExecutor | None = getattr(self, "_worker", None)  # none of a node that was refused
        if worker is not None:
            worker.shutdown(wait=False, cancel_futures=True)
        super().destroy_node()


def _per_joint(values: tuple[float, ...]) -> float | tuple[float, ...]:
    """A single value for all joints as a number."""
    return values[0] if len(values) == 1 else values


def main() -> int:
    """Run the node."""
    return run(ComputedTorqueController)
