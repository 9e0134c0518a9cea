# SPDX-License-Identifier: Apache-2.0
"""Base class of the nodes that compare joint states with the identified model, and command nothing."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from sensor_msgs.msg import JointState

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.joint_state import JointOrder, convert_to_seconds
from robot_dyn_id.nodes.messages.joint_state_source import subscribe
from robot_dyn_id.nodes.runtime.computation import Computation, LatestComputation
from robot_dyn_id.nodes.runtime.diagnostics import ERROR, STALE, Diagnosis
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, STREAM, RobotNode, subscribes
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.plant import warm_up

Monitor = TypeVar("Monitor")

OBSERVES = (
    subscribes("joint_states", JointState, "Measured joint states, or joint_states_type", STREAM),
    subscribes("identified_parameters", ParameterSetMsg, "Identified model", LATCHED),
)
"""Interfaces of every such node."""


class ModelObserver(RobotNode, Generic[Monitor]):
    """A node with a monitor of the identified model, which is prepared while joint states are handled.

    Its settings have the fields `latency`, `quiet`, `joint_states_type` and `recorded_joints`, and its interfaces
    `OBSERVES` and the service `~/reset`.
    """

    CHECK_PERIOD_S: ClassVar[float]
    """Time between two reports of the condition [s]."""

    def begin(self) -> None:
        """Set the node up."""
        self._monitor: Monitor | None = None
        self._heard, self._since, self._measured = -math.inf, -math.inf, True
        self._models = LatestComputation(self._prepare)
        warm_up()
        self.set_up()
        self.subscription("identified_parameters", self._models.submit)
        subscribe(self, self._take_state)
        self.service("~/reset", self._reset)
        self.create_timer(self.CHECK_PERIOD_S, self._look, clock=self.steady)
        self._look()

    @abstractmethod
    def set_up(self) -> None:
        """Make what does not depend on the model."""

    @abstractmethod
    def make_monitor(self, parameters: ParameterSet) -> Monitor:
        """The monitor of a model; may be called in a thread.

        Raises:
            RobotDynIdError: the model cannot be used.
        """

    def is_new(self, parameters: ParameterSet) -> bool:
        """Whether a model is another one than the present one; may be called in a thread."""
        return True

    @abstractmethod
    def use(self, parameters: ParameterSet, monitor: Monitor) -> None:
        """Adapt to another model.

        Raises:
            RobotDynIdError: the model cannot be used; the present one stays.
        """

    @abstractmethod
    def add(self, message: JointState, t: float, q: Array, dq: Array | None, tau: Array) -> None:
        """Take joint states; the velocities are None where they are to be derived from the positions."""

    @abstractmethod
    def assess(self) -> Diagnosis:
        """Diagnosis while joint states come."""

    def is_awaited(self) -> bool:
        """See `RobotNode`."""
        return self._monitor is None and self.count_publishers("identified_parameters") > 0

    def is_measured(self, message: JointState) -> bool:
        """Whether the velocities of joint states are used."""
        return self._order.has(message, "velocity")

    def _prepare(self, message: ParameterSetMsg) -> tuple[ParameterSet, Monitor] | None:
        parameters = ParameterSet.from_message(message)
        return (parameters, self.make_monitor(parameters)) if self.is_new(parameters) else None

    def _reset(self, request: Any, answer: Any) -> str:
        """Restart, as if the model had just been received.

        Raises:
            InputError: there is no model.
        """
        if self._monitor is None:
            raise InputError("there is no model yet: waiting for identified_parameters")
        self._monitor = self.make_monitor(self._parameters)
        self.use(self._parameters, self._monitor)
        self._look()
        return f"learning restarts from {self.settings.quiet:g} s of motion"

    def _take_state(self, message: JointState) -> None:
        if self._monitor is None or not self._order.concerns(message):
            return
        measured = self.is_measured(message)
        try:
            if measured:
                q, dq, tau = self._order.read(message)
            else:
                (q, tau), dq = self._order.read(message, ("position", "effort")), None
        except InputError as error:
            self.refuse(f"joint state: {error}")
            return
        self._heard, self._measured = self._seconds(), measured
        self.add(message, convert_to_seconds(message.header.stamp), q, dq, tau)

    def _take_model(self, prepared: Computation[tuple[ParameterSet, Monitor] | None]) -> None:
        """Use a model that has been prepared, or report the reason for its refusal."""
        try:
            found = prepared.result()
            if found is None:
                return
            self.use(*found)
        except RobotDynIdError as error:
            self.refuse(f"identified_parameters: {error}")
            return
        self._parameters, self._monitor = found
        self._since = self._seconds()
        self._order = JointOrder(self._parameters.robot.joint_names)
        self.hardware_id = self._parameters.robot.name

    def _look(self) -> None:
        """Take a model that has been prepared, and report the condition, or what is missing."""
        prepared = self._models.poll()
        if prepared is not None:
            self._take_model(prepared)
        if self._monitor is None:
            self.condition.report(STALE, "waiting for identified_parameters")
            return
        found, now = self.assess(), self._seconds()
        age, limit = now - self._heard, Latency(self.settings.latency).unobserved
        if min(age, now - self._since) <= limit or found.level == ERROR:
            self.condition.report(found.level, found.message, found.values)
            return
        what = f"joint states are older than {limit:g} s" if math.isfinite(age) else "no joint states"
        publishers = self.count_publishers("joint_states")
        values = {**found.values, "age of joint states [s]": f"{age:.3f}"}
        self.condition.report(STALE, f"{what}; joint_states has {publishers} publishers", values)
