# SPDX-License-Identifier: Apache-2.0
"""Feed-forward efforts of trajectories in files and bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.data.trajectory_rows import Rows, TrajectoryRows, list_rows
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.joint_trajectory import read_joint_trajectory, write_joint_trajectory
from robot_dyn_id.files.trajectory import is_designed, read_trajectory
from robot_dyn_id.files.values import file_errors
from robot_dyn_id.findings import Definition, Finding, Section, format_findings
from robot_dyn_id.identification.prediction.feed_forward import FeedForward, FeedForwardEfforts, format_violation
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.recordings.bag_files import is_storage
from robot_dyn_id.recordings.joint_trajectories import read_joint_trajectory_message
from robot_dyn_id.report.folder import make_output_folder

EFFORT_ABOVE_LIMIT = Definition(
    "effort_above_limit",
    Section.PREDICTION,
    "error",
    "The 95 % upper bound of a joint's torque along a trajectory, or of its command, which lacks what the driver "
    "adds, exceeds the effort limit of the URDF. The bound contains the covariance of the parameters and the "
    "held-out error.",
    "slow the trajectory down",
)

EFFORT_UNBOUNDED = Definition(
    "effort_unbounded",
    Section.PREDICTION,
    "error",
    "The torque of a joint along a trajectory depends on a parameter that is not identifiable: it has no upper "
    "bound that could be compared with the effort limit.",
    "identify with an excitation in which this joint and those after it move, or with a simpler friction model",
)

POINTS_PER_SECOND_HZ = 100.0
"""Points of a designed trajectory [Hz]."""


@dataclass(frozen=True)
class FilledTrajectory:
    """A trajectory with efforts.

    Attributes:
        trajectory: trajectory with the efforts at every point, and with the velocities and accelerations that were
            given; slowed down if that was requested.
        efforts: efforts along it, uncertainties and violations of torque limits.
        speed: speed relative to the given trajectory.
        findings: all findings, violations included.
    """

    trajectory: TrajectoryRows
    efforts: FeedForwardEfforts
    speed: float
    findings: tuple[Finding, ...]

    @property
    def compensated(self) -> tuple[str, ...]:
        """Parts of the torque that the driver adds, which the efforts do not contain."""
        return self.efforts.compensated

    @property
    def within_limits(self) -> bool:
        """Whether no torque limit may be exceeded."""
        return not self.efforts.violations

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)

    def save(self, path: str | Path) -> None:
        """Write the trajectory as YAML, for `ros2 topic pub --yaml-file`.

        Raises:
            InputError: the file cannot be written.
        """
        make_output_folder(Path(path).parent)
        write_joint_trajectory(path, self.trajectory)


def load_trajectory(
    path: str | Path, model: RobotModel, topic: str | None = None, message: int | None = None
) -> TrajectoryRows:
    """Load a trajectory: a JointTrajectory as YAML or from a bag, or a `trajectory.yaml` of this package.

    Example:
        ```python
        motion = rdi.load_trajectory("motion.yaml", robot)
        ```

    Args:
        path: the file, or the folder of a bag.
        model: the robot, all of whose joints the trajectory must have.
        topic: topic of a bag; None: its only one of the type JointTrajectory.
        message: number of the message in a bag, from 0; None: the only one.

    Raises:
        RobotDynIdError: not readable, not a trajectory, or one for another robot.
        UsageError: a topic or message of a file that is not a bag.
    """
    path = Path(path).expanduser()
    rows = _read(path, model, topic, message)
    with file_errors(path, InputError):
        TrajectoryPoints.from_rows(model.joint_names, replace(rows, efforts=((),) * len(rows.times)))
    return rows


def _read(path: Path, model: RobotModel, topic: str | None, message: int | None) -> TrajectoryRows:
    if path.is_dir() or is_storage(path):
        return read_joint_trajectory_message(path, topic, message)
    if topic is not None or message is not None:
        raise UsageError(f"{path}: topic and message are those of a bag")
    if is_designed(path):
        stored = read_trajectory(path)
        stored.check_robot(model, stored.limits)
        return sample_trajectory(stored.excitation, stored.joint_names)
    return read_joint_trajectory(path)


def sample_trajectory(
    motion: Trajectory, joint_names: Sequence[str], rate: float = POINTS_PER_SECOND_HZ
) -> TrajectoryRows:
    """Points of a motion, with velocities and accelerations.

    Args:
        motion: motion of n joints.
        joint_names: their names.
        rate: points per second [Hz].
    """
    t = np.linspace(0.0, motion.duration, 1 + int(np.ceil(motion.duration * rate)))
    q, dq, ddq, _ = motion.evaluate(t)
    return TrajectoryRows.from_arrays(joint_names, t, q.T, dq.T, ddq.T)


def fill_efforts(
    parameters: ParameterSet,
    trajectory: TrajectoryRows,
    robot_compensates: Sequence[str] = (),
    slow_down: bool = False,
) -> FilledTrajectory:
    """Fill the efforts of a trajectory, without what the driver adds, and check torque limits.

    Example:
        ```python
        motion = rdi.load_trajectory("motion.yaml", robot)  # a JointTrajectory, as `ros2 topic echo` writes it
        filled = rdi.fill_efforts(result.parameters, motion, robot_compensates=["gravity"])
        print(filled.within_limits, filled.warnings)
        filled.save("with_efforts.yaml")
        ```

    Args:
        parameters: identified parameter set.
        trajectory: trajectory of all its joints; missing velocities and accelerations are those of the splines that
            a joint trajectory controller interpolates.
        robot_compensates: torques that the driver adds to a command, or `["none"]`; empty: as the parameter set states.
        slow_down: slow the trajectory down until the torques are within their limits.

    Raises:
        InputError: other joints, values that are not finite, a bad verdict, a driver of which it is not known what it
            adds, or limits that no speed keeps.
        UsageError: `robot_compensates` contradicts the parameter set.
    """
    feed_forward = FeedForward.from_parameters(parameters, robot_compensates)
    joints = parameters.robot.joint_names
    points = TrajectoryPoints.from_rows(joints, replace(trajectory, efforts=((),) * len(trajectory.times)))
    speed, efforts = feed_forward.slowed(points) if slow_down else (1.0, feed_forward.along(points))
    order = [joints.index(name) for name in trajectory.joint_names]
    filled = replace(
        trajectory,
        times=tuple(round(time / speed) for time in trajectory.times),
        velocities=_scaled(trajectory.velocities, speed),
        accelerations=_scaled(trajectory.accelerations, speed**2),
        efforts=list_rows(efforts.efforts[:, order]),
    )
    exceeded = tuple(
        EFFORT_ABOVE_LIMIT.found(format_violation(violation), (violation.joint,))
        if np.isfinite(violation.bound)
        else EFFORT_UNBOUNDED.found(format_violation(violation), (violation.joint,))
        for violation in efforts.violations
    )
    return FilledTrajectory(filled, efforts, speed, (*exceeded, *efforts.findings))


def _scaled(rows: Rows, factor: float) -> Rows:
    return rows if factor == 1.0 else tuple(tuple(factor * value for value in row) for row in rows)
