# SPDX-License-Identifier: Apache-2.0
"""Node `gravity_compensator`: holds the weight of an arm without torque sensors by efforts in drive units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rcl_interfaces.msg import SetParametersResult
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation.execution.state_guard import TIMELY_STATES, TROUBLE_REPORTED_S, StateGuard
from robot_dyn_id.files.gravity import StoredGravity, parse_gravity, read_gravity
from robot_dyn_id.loads.gravity_compensation import GravityCompensation, GravityLaw
from robot_dyn_id.model.joint_values import joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.joint_state import JointOrder, receive
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
    WARN,
    Interface,
)
from robot_dyn_id.nodes.runtime.robot_source import DESCRIPTION, RobotSource
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, path_parameter, ros_parameter
from robot_dyn_id.nodes.runtime.running import run

CALIBRATION = "gravity_calibration"

CHECKS_PER_TIMEOUT = 4
"""Checks of the age of the joint states per timeout."""

LARGEST_TEXT = 1_000_000
"""Length of a calibration on the topic above which it is not read."""


@dataclass(frozen=True)
class GravityCompensatorSettings:
    """ROS parameters of the node."""

    urdf: str = path_parameter("", "URDF or xacro file of the calibration; empty: received on robot_description")
    calibration: str = path_parameter(
        "", "File gravity.yaml of `robot-dyn-id gravity`; empty: received on the topic gravity_calibration"
    )
    joints: tuple[str, ...] = ros_parameter(
        (), "Order of the joints in effort_command, those of the calibration; empty: as in the calibration"
    )
    scale: float = changeable(ros_parameter(1.0, "Share of gravity that is commanded", "", 0.0, 1.0))
    effort_limit: tuple[float, ...] = ros_parameter(
        (),
        "Largest effort in drive units, one value for all joints or one per joint in the order of the calibration; "
        "empty: the largest that each drive showed at the calibration",
        "drive units",
        1e-6,
    )
    ramp_time: float = ros_parameter(
        1.0,
        "Duration of every change of the efforts: from those that the joint states have at the start (zero if they "
        "have none), to another scale or calibration, and to zero at the end, when an arm without brakes sags",
        "s",
        0.05,
        4.0,
    )
    timeout: float = ros_parameter(
        0.1,
        "Age at which joint states are stale, by their arrival and by their stamps; zero effort is commanded then, "
        f"until {TIMELY_STATES} joint states in a row have come within it",
        "s",
        0.002,
        10.0,
    )
    autostart: bool = autostart_parameter()


class GravityCompensator(ManagedNode):
    """Efforts against gravity in response to every joint state; see `GravityCompensation`."""

    NAME = "gravity_compensator"
    PURPOSE = (
        "holds the weight of an arm without torque sensors by efforts in drive units, from its gravity calibration"
    )
    SETTINGS = GravityCompensatorSettings
    ENDS_ON_FAULT = True
    INTERFACES = (
        Interface(
            PUBLISHES,
            "effort_command",
            Float64MultiArray,
            "Efforts in drive units, in the order of the parameter joints",
            RELIABLE,
        ),
        Interface(SUBSCRIBES, "joint_states", JointState, "Measured positions, and efforts for the start", SENSOR),
        DESCRIPTION,
        Interface(
            SUBSCRIBES,
            CALIBRATION,
            String,
            "Text of gravity.yaml, if no file is given; if it is refused, the present one stays in use",
            LATCHED,
        ),
    )

    def set_up(self) -> None:
        """Make what does not depend on the robot."""
        self._active = self._configured = self._releasing = False
        self._commands, self._condition = self.publisher("effort_command"), Condition(self.get_logger())
        self._source: RobotSource | None = None
        self._urdf, self._refused = "", ""
        self._offered: StoredGravity | None = None
        self._compensation: GravityCompensation | None = None
        self._drifting: tuple[str, ...] = ()
        self._guard: StateGuard | None = None  # of the compensation
        self._message = Float64MultiArray()
        self._trouble, self._troubled = "", -np.inf
        if not self.settings.calibration:
            self.subscription(CALIBRATION, self._take_calibration)
        self.subscription("joint_states", self._take_state)
        self.add_on_set_parameters_callback(self._change)
        self._scale: float = self.settings.scale
        self.create_timer(self.settings.timeout / CHECKS_PER_TIMEOUT, self._look, clock=self.steady)

    def configure(self) -> None:
        """Read the calibration and the robot, as far as they are given.

        Raises:
            MotionError: the efforts of the time before still fade.
            RobotDynIdError: a file that cannot be read, or a calibration that is refused.
        """
        self._check_released()
        if self.settings.calibration:
            self._offered = read_gravity(self.settings.calibration)
        self._source = RobotSource(self, self.settings.urdf, (), self._take_robot)
        self._configured = True
        self._look()

    def activate(self) -> None:
        """Command efforts from the next joint states on, beginning at those that the drives have.

        Raises:
            MotionError: the efforts still fade after a deactivation.
        """
        self._check_released()
        if self._compensation is not None and self._guard is not None:
            self._compensation.rest()
            self._guard.restart()
        self._active = True
        self._look()

    def deactivate(self) -> None:
        """Reduce the efforts to zero, in response to joint states as before."""
        self._release()
        self._active = False
        self._look()

    def clean_up(self) -> None:
        """Drop the robot and its calibration as soon as the efforts are zero."""
        self._configured = False
        if not self._releasing:
            self._drop()

    def _drop(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source, self._compensation, self._guard, self._urdf = None, None, None, ""

    def _release(self) -> None:
        """Begin to reduce the efforts to zero, if any are commanded."""
        if self._active and self._compensation is not None and self._compensation.holds:
            self._compensation.release()
            self._releasing = True

    def _check_released(self) -> None:
        """Check that no effort is commanded from before a deactivation.

        Raises:
            MotionError: the efforts still fade.
        """
        if self._releasing:  # an arm that is let go of in one step falls
            raise MotionError("the efforts still fade to zero after the deactivation: try again when they have")

    # --- robot and calibration

    def _take_robot(self, model: RobotModel) -> None:
        self._urdf = model.urdf
        self._decide()

    def _take_calibration(self, message: String) -> None:
        try:
            if len(message.data) > LARGEST_TEXT:
                raise InputError(f"it has {len(message.data)} characters, more than {LARGEST_TEXT}")
            before, self._offered = self._offered, parse_gravity(message.data, CALIBRATION)
            try:
                self._decide()
            except RobotDynIdError:
                self._offered = before
                raise
        except RobotDynIdError as error:
            if self._compensation is None:
                self._refused = f"calibration refused: {error}"
            else:  # an arm that is let go of falls
                self._condition.refuse(f"calibration, the one in use stays: {error}")
        self._look()

    def _decide(self) -> None:
        """Use the calibration that was offered last for the robot, if both are known.

        Raises:
            RobotDynIdError: it may not move this robot.
        """
        if not self._urdf or self._offered is None:
            return
        offered, names = self._offered, self._offered.joint_names
        offered.quality.refuse_uncertain(names)
        law = GravityLaw(offered.model(self._urdf), offered.by_joint)
        rated = offered.quality.largest
        if self.settings.effort_limit:
            rated = joint_array(self.settings.effort_limit, names, "parameter effort_limit")
            law.check_rated(rated)
        places = self._places(names)
        if self._compensation is None:
            self._compensation = GravityCompensation(law, rated, self._scale, self.settings.ramp_time)
            self._guard = StateGuard(law.model, self.settings.timeout)
            self._guard.expect(self._seconds())
        else:
            self._compensation.replace_law(law, rated)
        self._order, self._order_of_command = JointOrder(names), places
        self._drifting, self._refused = offered.quality.drifting(names), ""

    def _places(self, names: tuple[str, ...]) -> list[int]:
        """Place in the calibration of every joint of the command.

        Raises:
            UsageError: the parameter `joints` has other joints than the calibration.
        """
        wanted = self.settings.joints or names
        if sorted(wanted) != sorted(names):
            raise UsageError(
                f"parameter joints: {', '.join(wanted)} are not the joints of the calibration, {', '.join(names)}: "
                "give the order in which the controller takes them, or calibrate the joints that it commands"
            )
        return [names.index(name) for name in wanted]

    def _change(self, parameters: list[Any]) -> SetParametersResult:
        for parameter in parameters:  # the others are read-only
            if parameter.name == "scale":
                if not 0.0 <= parameter.value <= 1.0:  # rclpy accepts NaN in any range
                    return SetParametersResult(successful=False, reason="scale must be within 0 and 1")
                self._scale = float(parameter.value)
                if self._compensation is not None:
                    self._compensation.rescale(self._scale)
        return SetParametersResult(successful=True)

    # --- control

    def _take_state(self, message: JointState) -> None:
        compensation, guard = self._compensation, self._guard
        if compensation is None or guard is None or not self._order.concerns(message):
            return
        heard = guard.heard
        try:
            receive(guard, self._order, message, self._seconds(), self._ros_seconds(), ("position",))
        except InputError as error:
            self._condition.refuse(f"joint state: {error}")
        compensation.observe(guard.position, guard.fault)
        if guard.heard == heard:  # nothing that was on time
            return
        if not guard.timely and not self._releasing:
            self._command_rest()
        if self._releasing or (self._commanding() and guard.ready):
            present = None if compensation.begun else self._present(message)
            self._command(compensation.command(guard.step, present), compensation)

    def _present(self, message: JointState) -> Array | None:
        """Measured efforts in drive units, shape (n,); None: not known."""
        if not self._order.has(message, "effort"):
            return None
        try:
            return self._order.read(message, ("effort",))[0]
        except InputError as error:
            self._condition.refuse(f"joint state: {error}: the efforts begin at zero")
            return None

    def _commanding(self) -> bool:
        """Whether efforts are to be commanded; another node of this name may command the robot."""
        return self._releasing or (self._active and self.namesakes.settled)

    def _command(self, effort: Array, compensation: GravityCompensation) -> None:
        """Publish an effort, or end the release."""
        if compensation.released:
            self._end_release()
            return
        self._publish(effort)
        if len(compensation.limited):
            joint = int(compensation.limited[0])
            if self._seconds() - self._troubled > TROUBLE_REPORTED_S:  # one line for a trouble that lasts
                name, rated = compensation.joint_names[joint], compensation.rated[joint]
                self._trouble = f"the effort of joint {name} is limited to {rated:.4g} drive units: the arm may sink"
            self._troubled = self._seconds()

    def _publish(self, effort: Array) -> None:
        self._message.data = np.asarray(effort)[self._order_of_command].tolist()
        self._commands.publish(self._message)

    def _end_release(self) -> None:
        """Command zero effort after a release."""
        self._releasing = False
        self._command_rest()
        if not self._configured:
            self._drop()

    def _command_rest(self) -> None:
        """Command zero effort, if any effort was commanded."""
        if self._compensation is not None:
            zero = self._compensation.rest()
            if any(self._message.data):
                self._publish(zero)

    def _look(self) -> None:
        """Report the state; joint states that have ceased are answered by one last command, zero."""
        guard, now = self._guard, self._seconds()
        if guard is None or guard.silent(now):
            if self._releasing:
                self._end_release()
            else:
                self._command_rest()
        if self.starting:
            return
        level, text = self._state()
        values = {} if level != STALE or guard is None else {"age of joint states [s]": f"{now - guard.heard:.3f}"}
        self._condition.report(level, text, values)

    def _state(self) -> tuple[bytes, str]:
        """Diagnostic level and message."""
        compensation, source = self._compensation, self._source
        if not self._active:
            return OK, f"{self.lifecycle}: no effort before the node is activated"
        if self._refused:
            return ERROR, self._refused
        if source is not None and source.problem:
            return (STALE if source.problem.startswith("waiting") else ERROR), source.problem
        guard = self._guard
        if compensation is None or guard is None:
            return STALE, f"waiting for {self.resolve_topic_name(CALIBRATION)}"
        obstacle, faulty = guard.obstacle(self._seconds())
        if obstacle:
            count = self.count_publishers("joint_states")
            return (ERROR if faulty else STALE), f"{obstacle}; joint_states has {count} publishers"
        if not self.namesakes.settled:
            return STALE, f"no effort yet: {self.namesakes.obstacle()}"
        if self._seconds() - self._troubled < TROUBLE_REPORTED_S:
            return ERROR, self._trouble
        text = f"compensates gravity, scale {compensation.scale:g}"
        if self._drifting:
            names = ", ".join(self._drifting)
            return WARN, f"{text}; may drift, as friction is below the error of the calibration: {names}"
        return OK, text

    def stop(self) -> bool:
        """Reduce the efforts to zero; at once after an internal error, or without joint states."""
        self._release()
        self._active = False
        if self.internal_errors or not self.count_publishers("joint_states"):
            self._command_rest()
            return True
        return not self._releasing


def main() -> int:
    """Run the node."""
    return run(GravityCompensator)
