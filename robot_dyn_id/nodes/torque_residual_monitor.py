# SPDX-License-Identifier: Apache-2.0
"""Node `torque_residual_monitor`: torque residual of the identified model on live joint states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.arrays import Array
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message
from robot_dyn_id.nodes.messages.joint_state_source import names_parameter, type_parameter
from robot_dyn_id.nodes.model_observer import OBSERVES, ModelObserver
from robot_dyn_id.nodes.runtime.diagnostics import OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, publishes, serves
from robot_dyn_id.nodes.runtime.ros_parameters import changeable, latency_parameter, ros_parameter
from robot_dyn_id.online.assessment import assess
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.online.watch import WatchSettings
from robot_dyn_id.parameters import ParameterSet

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
    latency: float = latency_parameter()
    joint_states_type: str = type_parameter()
    recorded_joints: tuple[str, ...] = names_parameter()


class TorqueResidualMonitor(ModelObserver[ResidualMonitor]):
    """Comparison of measured torque with that of the identified model."""

    NAME = "torque_residual_monitor"
    PURPOSE = "publishes the torque residual of the identified model, and reports whether the model still fits"
    SETTINGS = TorqueResidualMonitorSettings
    CHECK_PERIOD_S = 0.2
    INTERFACES = (
        publishes("torque_residual", TorqueResidual, "Measured (low-pass filtered) minus predicted torque", SENSOR),
        publishes(
            "~/tracked_parameters",
            ParameterSetMsg,
            "Values and covariance estimated from the latest motion, with payloads; marked as tracked in `estimator` "
            "and `reasons`; the other fields are those of the identified model",
            LATCHED,
        ),
        *OBSERVES,
        serves("~/reset", Trigger, "Restart the learning of thresholds; present changes are accepted as normal"),
    )

    def set_up(self) -> None:
        """See `ModelObserver`."""
        self._residuals = self.publisher("torque_residual")
        self._tracked = self.publisher("~/tracked_parameters")
        self._published = -np.inf
        self.create_timer(TRACKED_PERIOD_S, self._publish_tracked, clock=self.steady)

    def make_monitor(self, parameters: ParameterSet) -> ResidualMonitor:
        """See `ModelObserver`."""
        settings: TorqueResidualMonitorSettings = self.settings
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

    def use(self, parameters: ParameterSet, monitor: ResidualMonitor) -> None:
        """See `ModelObserver`."""
        self._published, self._message = -np.inf, TorqueResidual(joint_names=list(parameters.robot.joint_names))
        self.get_logger().info(f"{parameters.robot.name}: a model with {len(parameters.base.names)} base parameters")

    def add(self, message: JointState, t: float, q: Array, dq: Array | None, tau: Array) -> None:
        """See `ModelObserver`."""
        assert self._monitor is not None
        if not self._monitor.add(t, q, dq, tau) or 0.0 <= t - self._published < 0.999 / self.settings.rate:
            return
        self._published = t
        residual = self._monitor.residual()
        out = self._message
        out.header.stamp = message.header.stamp
        out.measured, out.predicted = residual.measured.tolist(), residual.predicted.tolist()
        out.residual, out.standard_deviation = residual.difference.tolist(), residual.standard_deviation.tolist()
        self._residuals.publish(out)

    def assess(self) -> Diagnosis:
        """See `ModelObserver`."""
        assert self._monitor is not None
        assessment = assess(self._monitor, self.settings.warn_factor, self.settings.warn_floor)
        values = {**assessment.values, "velocities": "measured" if self._measured else "differentiated positions"}
        return Diagnosis(OK if assessment.fits else WARN, assessment.message, values)

    def _publish_tracked(self) -> None:
        tracked = None if self._monitor is None else self._monitor.tracked
        if tracked is not None:
            self._tracked.publish(self.stamped(make_parameter_set_message(tracked)))
