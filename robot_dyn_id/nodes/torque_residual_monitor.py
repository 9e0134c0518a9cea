# SPDX-License-Identifier: Apache-2.0
"""Node `torque_residual_monitor`: torque residual of the identified model on live joint states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.nodes.messages.joint_state import JointOrder, convert_to_seconds
from robot_dyn_id.nodes.messages.joint_state_source import names_parameter, subscribe, type_parameter
from robot_dyn_id.nodes.runtime.diagnostics import OK, STALE, WARN
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, STREAM, Interface, RobotNode
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, ros_parameter
from robot_dyn_id.nodes.runtime.running import run
from robot_dyn_id.online.assessment import assess
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.online.watch import WatchSettings
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.plant import warm_up

CHECK_PERIOD_S = 0.2
"""Time between two assessments of the model [s]."""

TRACKED_PERIOD_S = 1.0
"""Period of `~/tracked_parameters` [s]."""


@dataclass(frozen=True)
class TorqueResidualMonitorSettings:
    """ROS parameters of the monitor."""

    rate: float = changeable(ros_parameter(100.0, "Maximum rate of torque_residual", "Hz", 0.1, 1000.0))
    cutoff: float = ros_parameter(
        10.0, "Cutoff frequency of the causal low-pass filter of positions, velocities and efforts", "Hz", 0.1, 200.0
    )
    window: float = ros_parameter(10.0, "Duration of motion for the RMS residual, without its largest peaks", "s", 0.1)
    warn_factor: float = changeable(
        ros_parameter(3.0, "Warn if the residual exceeds this multiple of the held-out error", "", 1.0)
    )
    warn_floor: float = changeable(ros_parameter(0.1, "Normalized residual below which no warning is given", "", 0.0))
    quiet: float = ros_parameter(60.0, "Duration of motion without changes for learning the thresholds", "s", 1.0)
    false_alarms: float = ros_parameter(100.0, "Mean time between false alarms of one test statistic", "h", 0.1)
    memory: float = ros_parameter(60.0, "Time constant of the tracked parameters", "s", 1.0)
    payload_body: str = ros_parameter("", "Joint of the body that carries a payload; empty: the last joint")
    timeout: float = ros_parameter(0.5, "Age at which joint states are stale", "s", 0.01)
    joint_states_type: str = type_parameter()
    recorded_joints: tuple[str, ...] = names_parameter()


class TorqueResidualMonitor(RobotNode):
    """Comparison of measured torque with that of the identified model."""

    NAME = "torque_residual_monitor"
    PURPOSE = "publishes the torque residual of the identified model, and reports whether the model still fits"
    SETTINGS = TorqueResidualMonitorSettings
    INTERFACES = (
        Interface.publishes(
            "torque_residual", TorqueResidual, "Measured (low-pass filtered) minus predicted torque", SENSOR
        ),
        Interface.publishes(
            "~/tracked_parameters",
            ParameterSetMsg,
            "Values and covariance estimated from the latest motion, with payloads; marked as tracked in `estimator` "
            "and `reasons`; the other fields are those of the identified model",
            LATCHED,
        ),
        Interface.subscribes("joint_states", JointState, "Measured joint states, or joint_states_type", STREAM),
        Interface.subscribes("identified_parameters", ParameterSetMsg, "Identified model", LATCHED),
        Interface.serves(
            "~/reset", Trigger, "Restart the learning of thresholds; present changes are accepted as normal"
        ),
    )

    def begin(self) -> None:
        """Set the node up."""
        self._residuals = self.publisher("torque_residual")
        self._tracked = self.publisher("~/tracked_parameters")
        self._monitor: ResidualMonitor | None = None
        self._heard, self._published = -np.inf, -np.inf
        self._measured = True
        warm_up()
        self.subscription("identified_parameters", self._take_parameters)
        subscribe(self, self._take_state)
        self.service("~/reset", self._reset)
        self.create_timer(CHECK_PERIOD_S, self._look, clock=self.steady)
        self.create_timer(TRACKED_PERIOD_S, self._publish_tracked, clock=self.steady)
        self._look()

    def _take_parameters(self, message: ParameterSetMsg) -> None:
        try:
            self._monitor = self._make_monitor(ParameterSet.from_message(message))
        except RobotDynIdError as error:
            self.refuse(f"identified_parameters: {error}")
            return
        parameters = self._monitor.parameters
        self.hardware_id = parameters.robot.name
        self._order = JointOrder(parameters.robot.joint_names)
        self._message = TorqueResidual(joint_names=list(parameters.robot.joint_names))
        self.get_logger().info(f"{parameters.robot.name}: a model with {len(parameters.base.names)} base parameters")

    def _make_monitor(self, parameters: ParameterSet) -> ResidualMonitor:
        settings = self.settings
        return ResidualMonitor(
            parameters,
            settings.cutoff,
            settings.window,
            settings=WatchSettings(
                payload_body=settings.payload_body,
                quiet=settings.quiet,
                false_alarm_interval=3600.0 * settings.false_alarms,
                memory=settings.memory,
            ),
        )

    def _reset(self, request: Any, response: Any) -> Any:
        """Restart, as if the model had just been received."""
        if self._monitor is None:
            response.message = "there is no model yet: waiting for identified_parameters"
            return response
        self._monitor, self._published = self._make_monitor(self._monitor.parameters), -np.inf
        response.success = True
        response.message = f"learning restarts from {self.settings.quiet:g} s of motion"
        self._look()
        return response

    def _take_state(self, message: Any) -> None:
        if self._monitor is None or not self._order.concerns(message):
            return
        t = convert_to_seconds(message.header.stamp)
        try:
            measured = self._order.has(message, "velocity")
            if measured:
                q, dq, tau = self._order.read(message)
                settled = self._monitor.add(t, q, dq, tau)
            else:
                q, tau = self._order.read(message, ("position", "effort"))
                settled = self._monitor.add(t, q, None, tau)
        except InputError as error:
            self.refuse(f"joint state: {error}")
            return
        self._heard, self._measured = self._seconds(), measured
        if not settled or 0.0 <= t - self._published < 0.999 / self.settings.rate:
            return
        self._published = t
        residual = self._monitor.residual()
        out = self._message
        out.header.stamp = message.header.stamp
        out.measured, out.predicted = residual.measured.tolist(), residual.predicted.tolist()
        out.residual, out.standard_deviation = residual.difference.tolist(), residual.standard_deviation.tolist()
        self._residuals.publish(out)

    def _look(self) -> None:
        """Report the assessment of the model, or what is missing for it."""
        monitor, settings = self._monitor, self.settings
        if monitor is None:
            self.condition.report(STALE, "waiting for identified_parameters")
            return
        assessment = assess(monitor, settings.warn_factor, settings.warn_floor)
        values = {**assessment.values, "velocities": "measured" if self._measured else "differentiated positions"}
        age = self._seconds() - self._heard
        if age <= settings.timeout:
            self.condition.report(OK if assessment.fits else WARN, assessment.message, values)
            return
        what = f"joint states are older than {settings.timeout:g} s" if np.isfinite(age) else "no joint states"
        values["age of joint states [s]"] = f"{age:.3f}"
        publishers = self.count_publishers("joint_states")
        self.condition.report(STALE, f"{what}; joint_states has {publishers} publishers", values)

    def _publish_tracked(self) -> None:
        tracked = None if self._monitor is None else self._monitor.tracked
        if tracked is not None:
            out = make_parameter_set_message(tracked)
            out.header.stamp = self.get_clock().now().to_msg()
            self._tracked.publish(out)


def main() -> int:
    """Run the node."""
    return run(TorqueResidualMonitor)
