# SPDX-License-Identifier: Apache-2.0
"""Model of the feed-forward efforts in the points of a commanded trajectory."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.excitation.execution.approach import enter, return_motion
from robot_dyn_id.excitation.execution.rehearsal import slow_limits
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.trajectory import Excitation
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.identification.prediction.feed_forward import FeedForward
from robot_dyn_id.identification.prediction.motion_efforts import MotionEfforts
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.nodes.messages.conversions import parameter_set
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RobotNode
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import check_robot

TOPIC = "identified_parameters"
"""Value of the parameter `feed_forward` for the models of an identifier; others are files, or empty."""


class EffortSource:
    """Source of feed-forward efforts: an identified model that is checked with the motion before the robot moves.

    A model that is received while the robot moves is used from the next start on.
    """

    def __init__(self, node: RobotNode) -> None:
        """Read the file that the parameter `feed_forward` names, or subscribe to the models of an identifier.

        Raises:
            RobotDynIdError: a file that cannot be read.
        """
        settings = node.settings
        self._log = node.get_logger()
        self._step, self._compensates = 1.0 / settings.rate, settings.robot_compensates
        self._returns: bool = settings.return_to_start
        self._motion: tuple[RobotModel, MotionLimits, Excitation] | None = None
        self._parameters: ParameterSet | None = None  # the latest
        self._adopted = False  # those, or their refusal
        self._from_file = False
        self._used: MotionEfforts | None = None
        self._on = bool(settings.feed_forward)
        self._problem = f"no model has been received on {TOPIC}"
        if settings.feed_forward == TOPIC:
            node.create_subscription(ParameterSetMsg, TOPIC, self._take, LATCHED)
        elif settings.feed_forward:
            self._parameters, self._from_file = read_parameters(settings.feed_forward), True

    def take_robot(self, model: RobotModel, limits: MotionLimits, excitation: Excitation) -> None:
        """Set the robot and its motion; a model in use is checked with them again.

        Raises:
            RobotDynIdError: the model of the file cannot be used, see `refusal`.
        """
        self._motion, self._used, self._adopted = (model, limits, excitation), None, False
        try:
            self._adopt()
        except RobotDynIdError:
            if self._from_file:  # another model can still be received
                raise

    def refusal(self, position: Array | None, since: float, home: Array | None = None) -> str:
        """Reason why the motion cannot begin with feed-forward efforts; empty if it can, or without feed-forward.

        The robot must be at rest: the latest model is used from now on if it can be.

        Args:
            position: measured positions [rad or m], shape (n,); None before the first joint states.
            since: time of the excitation at which it begins [s].
            home: configuration to which the robot only returns, slowly [rad or m], shape (n,); None for the excitation.
        """
        if not self._on or self._motion is None or position is None:  # without a robot there are other reasons
            return ""
        try:
            self._adopt()
            if self._used is None or self._problem:
                return f"feed_forward: {self._problem}"
            _, limits, excitation = self._motion
            if home is not None:
                self._used.check("the return", return_motion(position, home, slow_limits(limits)))
                return ""
            self._used.check("the approach", enter(excitation, since, position, limits).lead)
            if self._returns:
                end = excitation.evaluate(np.array([excitation.duration]))[0][:, 0]
                self._used.check("the return", return_motion(end, position, limits))
        except RobotDynIdError as error:
            return f"feed_forward: {error}"
        return ""

    def efforts(self, points: TrajectoryPoints) -> Array | None:
        """Efforts of trajectory points [N m or N], shape (N, n); None without feed-forward."""
        return None if self._used is None else self._used.efforts(points)

    def _take(self, message: ParameterSetMsg) -> None:
        self._parameters, self._adopted = parameter_set(message), False

    def _adopt(self) -> None:
        """Use the model that was received last from now on; one that is refused leaves the model in use.

        Raises:
            RobotDynIdError: it belongs to another robot or other joints, its verdict is bad, it is not known what the
                driver adds, or the excitation exceeds the effort limits.
        """
        if self._parameters is None or self._motion is None or self._adopted:
            return
        parameters, self._adopted = self._parameters, True
        model, _, excitation = self._motion
        try:
            check_robot(parameters, model.urdf)
            feed_forward = FeedForward.from_parameters(parameters, self._compensates)
            used = MotionEfforts.from_model(feed_forward, model, self._step)
            findings = used.check("the excitation", excitation)
        except RobotDynIdError as error:
            self._problem = str(error)
            raise
        self._used, self._problem = used, ""
        for finding in findings:
            self._log.warning(f"feed_forward: {finding.message}")
