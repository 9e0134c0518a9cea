# SPDX-License-Identifier: Apache-2.0
"""Model of the feed-forward efforts in the points of a commanded trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.controllers import check_robot


class EffortSource:
    """Source of feed-forward efforts: an identified model that is checked with the motion before the robot moves.

    A model that is offered while the robot moves is used from the next start on.
    """

    def __init__(
        self, step: float, returns: bool, robot_compensates: Sequence[str], warn: Callable[[str], object]
    ) -> None:
        """Initialize without feed-forward.

        Args:
            step: time between two points of a trajectory [s].
            returns: whether the robot returns to its initial configuration after the excitation.
            robot_compensates: torques that the driver adds to effort commands, as the user states.
            warn: takes a warning about a model.
        """
        self._step, self._returns, self._compensates, self._warn = step, returns, robot_compensates, warn
        self._motion: tuple[RobotModel, MotionLimits, Excitation] | None = None
        self._parameters: ParameterSet | None = None  # the latest
        self._adopted = False  # those, or their refusal
        self._used: MotionEfforts | None = None
        self._on = self._from_file = False
        self._problem = ""

    def use_file(self, file: str) -> None:
        """Use the model of a file.

        Raises:
            RobotDynIdError: it cannot be read.
        """
        self._on, self._parameters, self._from_file = True, read_parameters(file), True

    def await_models(self, topic: str) -> None:
        """Use models that are offered; `topic` names their source in messages."""
        self._on, self._problem = True, f"no model has been received on {topic}"

    def offer(self, parameters: ParameterSet) -> None:
        """Offer a model."""
        self._parameters, self._adopted = parameters, False

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
            self._warn(f"feed_forward: {finding.message}")
