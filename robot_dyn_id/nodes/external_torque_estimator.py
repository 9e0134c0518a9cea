# SPDX-License-Identifier: Apache-2.0
"""Node `external_torque_estimator`: torque and wrench of the environment by a momentum observer, and contacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.model.description import is_same_robot
from robot_dyn_id.model.kinematics import link_at_the_end
from robot_dyn_id.msg import ExternalTorque
from robot_dyn_id.nodes.messages.joint_state_source import names_parameter, type_parameter
from robot_dyn_id.nodes.model_observer import OBSERVES, ModelObserver
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, OK, WARN, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, publishes, serves, subscribes
from robot_dyn_id.nodes.runtime.ros_parameters import latency_parameter, ros_parameter
from robot_dyn_id.online.contact import ContactMonitor, ContactSettings, ContactState
from robot_dyn_id.online.external_wrench import COMPONENTS, FrameWrench, WrenchPrior
from robot_dyn_id.online.momentum_observer import ObserverSettings
from robot_dyn_id.parameters import ParameterSet

AUTO, MEASURED, DERIVED = "auto", "measured", "derived"


@dataclass(frozen=True)
class ExternalTorqueEstimatorSettings:
    """ROS parameters of the estimator."""

    frame: str = ros_parameter("", "Link at whose origin the wrench acts; empty: the one that the last joint moves")
    gain: tuple[float, ...] = ros_parameter(
        (60.0,),
        "Gain of the observer, one value for all joints or one per joint; its inverse is the time constant",
        "1/s",
        0.1,
    )
    velocity: str = ros_parameter(
        AUTO,
        "Source of the velocities: measured, derived from the positions, or auto: measured where there are any",
        choices=(AUTO, MEASURED, DERIVED),
    )
    cutoff: float = ros_parameter(
        40.0,
        "Cutoff frequency of the causal low-pass of derived velocities, and before presliding friction",
        "Hz",
        1.0,
        500.0,
    )
    effort_delay: float = ros_parameter(
        0.0, "Time by which efforts are late with respect to positions; negative: early", "s", -0.1, 0.1
    )
    rate: float = ros_parameter(250.0, "Maximum rate of tests and messages", "Hz", 1.0, 1000.0)
    quiet: float = ros_parameter(60.0, "Duration of motion without contact for learning the thresholds", "s", 10.0)
    false_alarms: float = ros_parameter(100.0, "Mean time between false alarms of all tests together", "h", 0.01)
    expected_force: float = ros_parameter(100.0, "Prior standard deviation of each component of the force", "N", 0.1)
    expected_moment: float = ros_parameter(
        20.0, "The same of the moment; 0: contacts at the origin of the frame have none", "N m", 0.0
    )
    latency: float = latency_parameter()
    joint_states_type: str = type_parameter()
    recorded_joints: tuple[str, ...] = names_parameter()


class ExternalTorqueEstimator(ModelObserver[ContactMonitor]):
    """Momentum observer with learned thresholds."""

    NAME = "external_torque_estimator"
    PURPOSE = "estimates the torque of the environment on the joints and its wrench at a frame, and reports contacts"
    SETTINGS = ExternalTorqueEstimatorSettings
    CHECK_PERIOD_S = 0.1
    INTERFACES = (
        publishes("external_torque", ExternalTorque, "Joint torque of the environment, contact and wrench", SENSOR),
        publishes(
            "external_wrench",
            WrenchStamped,
            "Wrench of the environment on the frame; NaN in components that the joints do not measure; not published "
            "during the learning",
            SENSOR,
        ),
        *OBSERVES,
        subscribes("robot_description", String, "URDF, if published: the model must be of this robot", LATCHED),
        serves("~/reset", Trigger, "Restart the learning of noise and thresholds"),
    )

    def set_up(self) -> None:
        """See `ModelObserver`."""
        self._torques, self._wrenches = self.publisher("external_torque"), self.publisher("external_wrench")
        self._state: ContactState | None = None
        self._description, self._mismatch = "", ""
        self._unmeasured: tuple[str, ...] = ()
        self.subscription("robot_description", self._take_description)

    # --- the robot and its model

    def _take_description(self, message: Any) -> None:
        self._description = message.data
        if self._monitor is not None:
            self._compare(self._parameters)

    def make_monitor(self, parameters: ParameterSet) -> ContactMonitor:
        """See `ModelObserver`."""
        settings: ExternalTorqueEstimatorSettings = self.settings
        return ContactMonitor(
            parameters,
            ObserverSettings(tuple(settings.gain), settings.cutoff, settings.effort_delay),
            ContactSettings(settings.quiet, 3600.0 * settings.false_alarms, settings.rate),
        )

    def is_new(self, parameters: ParameterSet) -> bool:
        """See `ModelObserver`; a set that is published again must not restart the learning."""
        return self._monitor is None or not self._monitor.observer.parameters.predicts_as(parameters)

    def use(self, parameters: ParameterSet, monitor: ContactMonitor) -> None:
        """See `ModelObserver`."""
        model = monitor.observer.regressor.model
        frame = self.settings.frame or link_at_the_end(model)
        prior = WrenchPrior(self.settings.expected_force, self.settings.expected_moment)
        self._wrench = FrameWrench(model, frame, prior)
        if self._state is not None and self._state.contact:
            self.get_logger().warning("the model changes during a contact: learning must begin without one")
        self._state = None
        self._message = ExternalTorque(joint_names=list(parameters.robot.joint_names))
        self._message.header.frame_id = frame
        self._compare(parameters)
        self.get_logger().info(f"{parameters.robot.name}: wrench at {frame}; learning needs motion without contact")

    def _compare(self, parameters: ParameterSet) -> None:
        """Compare a model with the robot that is described, if one is."""
        self._mismatch = ""
        if not self._description:
            return
        try:
            same = is_same_robot(parameters.robot.urdf, self._description)
        except RobotDynIdError as error:
            self.refuse(f"robot_description: {error}")
            return
        if not same:
            self._mismatch = "the identified model is of another robot than robot_description"

    # --- joint states

    def is_measured(self, message: JointState) -> bool:
        """See `ModelObserver`."""
        wanted = self.settings.velocity
        return wanted == MEASURED or (wanted == AUTO and super().is_measured(message))

    def add(self, message: JointState, t: float, q: Array, dq: Array | None, tau: Array) -> None:
        """See `ModelObserver`."""
        assert self._monitor is not None
        state = None if self._mismatch else self._monitor.add(t, q, dq, tau)
        if state is None:
            return
        began = state.contact and not (self._state is not None and self._state.contact)
        self._state = state
        self._publish(message.header.stamp, state)
        if began:
            self._look()

    def _publish(self, stamp: Any, state: ContactState) -> None:
        assert self._monitor is not None
        out, names = self._message, self._message.joint_names
        out.header.stamp = stamp
        out.torque = state.estimate.torque.tolist()
        out.standard_deviation = np.sqrt(np.diag(state.covariance)).tolist()
        out.limit = state.limits.tolist()
        nearest = int(np.argmax(state.statistics[:, 0] / state.thresholds[:, 0]))
        out.statistic, out.threshold = float(state.statistics[nearest, 0]), float(state.thresholds[nearest, 0])
        out.contact = state.contact
        out.contact_duration = state.estimate.t - state.since if state.contact else 0.0
        out.contact_joints = [names[joint] for joint in state.joints]
        out.learning = self._monitor.learning
        wrench, covariance = np.full(6, np.nan), np.full((6, 6), np.nan)
        self._unmeasured = COMPONENTS
        if self._monitor.noise is not None:
            found = self._wrench.estimate(state.estimate.q, state.estimate.torque, state.covariance)
            wrench, covariance = found.published
            self._unmeasured = found.unmeasured
            stamped = WrenchStamped(header=out.header)
            force, moment = stamped.wrench.force, stamped.wrench.torque
            force.x, force.y, force.z, moment.x, moment.y, moment.z = wrench.tolist()
            self._wrenches.publish(stamped)
        out.wrench, out.wrench_covariance = wrench, covariance.ravel()
        out.unmeasured = list(self._unmeasured)
        self._torques.publish(out)

    # --- condition

    def assess(self) -> Diagnosis:
        """See `ModelObserver`: contact or learning."""
        monitor = self._monitor
        assert monitor is not None
        values = self._values(monitor)
        if self._mismatch:
            return Diagnosis(ERROR, self._mismatch, values)
        if self._state is not None and self._state.contact:
            return Diagnosis(WARN, "contact", values)
        if monitor.noise is not None:
            return Diagnosis(OK, "no contact", values)
        if monitor.refusal:
            return Diagnosis(WARN, f"learning was refused and begins again: {monitor.refusal}", values)
        return Diagnosis(OK, "learning from motion without contact; contacts are not detected yet", values)

    def _values(self, monitor: ContactMonitor) -> dict[str, object]:
        """Quantities behind the condition."""
        names, parameters = monitor.observer.parameters.robot.joint_names, monitor.observer.parameters
        values: dict[str, object] = {
            "motion that learning needs [s]": f"{monitor.learning:.0f}",
            "interruptions of the joint states": monitor.observer.interruptions,
            "velocities": "measured" if self._measured else "derived from the positions",
            "effort": parameters.effort.kind,
            "wrench components not measured": ", ".join(self._unmeasured) or "none",
        }
        state = self._state
        if state is not None and monitor.noise is not None:
            for name, torque, limit in zip(names, state.estimate.torque, state.limits, strict=True):
                values[f"{name}: external torque (limit)"] = f"{torque:.3g} ({limit:.3g})"
            values["joints beyond their limits"] = ", ".join(names[joint] for joint in state.joints) or "none"
        return values
