# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the excitation publisher, and the excitation of a robot that they describe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.excitation.execution.recording_watch import AUTO, IGNORE, REQUIRED
from robot_dyn_id.excitation.limits import DEFAULT_ACCELERATION, DEFAULT_POSITION_MARGIN, scale_effort_limits
from robot_dyn_id.excitation.parametrization import MAX_COUNTS
from robot_dyn_id.excitation.placeholders import find_placeholder_limits, refuse_placeholders
from robot_dyn_id.excitation.trajectory import (
    Excitation,
)
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.joint_limits import JointLimitsFile, read_joint_limits
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.packages import list_folders_above
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.conversions import find_most_points
from robot_dyn_id.nodes.runtime.managed_node import autostart_parameter
from robot_dyn_id.nodes.runtime.ros_parameters import latency_parameter, path_parameter, ros_parameter, topic_parameter
from robot_dyn_id.parameters import COMPENSATED_PARTS, NONE
from robot_dyn_id.workflow.excitation_plan import HELD_POSES, ExcitationPlan, MotionRequest, plan_excitation

TRAJECTORY, ACTION = "trajectory", "action"
COMMANDS = "joint_trajectory_controller/joint_trajectory"
GOALS, ACTION_TYPE = "joint_trajectory_controller/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory"

APPROACH_SHARE = 0.1
"""Share of the points of one message that is kept for the approach, whose length is not known before the start."""

FEWEST_POINTS = 10
"""For each period of the fastest wave, so that interpolation between them is the motion."""


@dataclass(frozen=True)
class MotionSettings:
    """ROS parameters of every node that moves a robot by trajectories.

    Arrays have one value for all joints or one per joint, in the order of `joints` or the URDF.
    """

    urdf: str = path_parameter("", "URDF or xacro file; empty: received on the topic robot_description")
    joints: tuple[str, ...] = ros_parameter((), "Joints of the trajectory controller; empty: all moving joints")
    ground: bool = ros_parameter(
        True, "Treat the ground as an obstacle; a designed trajectory has its own surroundings instead"
    )
    ground_height: float = ros_parameter(
        math.nan,
        "Height of the ground in the base frame; nan: origin of the base, or lowest point of the bodies fixed to it",
        unit="m",
    )
    design: str = path_parameter(
        "",
        "Design file with folders, SRDF and stand_ins of the collision check, and for random motions also clearance, "
        "ground, obstacles and allowed pairs; those of a designed trajectory must be the same",
    )
    allow_unchecked_collisions: bool = ros_parameter(
        False, "Run motions without any collision check, including approach and return"
    )
    joint_limits: str = path_parameter(
        "", "joint_limits.yaml of MoveIt; narrows the limits of the URDF and replaces placeholders"
    )
    velocity_scale: float = ros_parameter(
        1.0, "Fraction of the velocity limits of the URDF", minimum=0.001, maximum=1.0
    )
    acceleration: tuple[float, ...] = ros_parameter(
        (DEFAULT_ACCELERATION,), "Maximum acceleration, also for braking", unit="rad/s^2 or m/s^2", minimum=0.001
    )
    jerk: tuple[float, ...] = ros_parameter(
        (), "Maximum jerk, except for braking; empty: not limited", unit="rad/s^3 or m/s^3", minimum=0.001
    )
    position_margin: float = ros_parameter(
        DEFAULT_POSITION_MARGIN, "Distance to the position limits of the URDF", unit="rad or m", minimum=0.0
    )
    tracking_error: tuple[float, ...] = ros_parameter(
        (0.2,), "Tracking error that stops the robot", unit="rad or m", minimum=1e-6
    )
    velocity_tolerance: float = ros_parameter(
        0.1,
        "Fraction by which the measured velocity may exceed its limit before the robot is stopped",
        minimum=0.0,
        maximum=10.0,
    )
    effort_scale: float = ros_parameter(
        0.9,
        "Fraction of the effort limits of the URDF above which the measured effort stops the robot; 0: not monitored, "
        "required if the URDF has placeholders and effort_limit is empty",
        minimum=0.0,
        maximum=1.0,
    )
    effort_limit: tuple[float, ...] = ros_parameter(
        (),
        "Measured effort that stops the robot, in the unit of the joint states; empty: effort_scale applies",
        unit="N m or N",
        minimum=0.001,
    )
    guard_time: float = ros_parameter(
        0.1,
        "Time for which velocity or effort must exceed its limit, in 3 joint states or more, to stop the robot",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    latency: float = latency_parameter(minimum=0.02)  # two ticks of the supervision
    mode: str = ros_parameter(
        TRAJECTORY,
        "trajectory: command by command_topic; action: by goals of command_action, whose results are monitored",
        choices=(TRAJECTORY, ACTION),
    )
    segments: bool = ros_parameter(
        True,
        "Send the motion in stamped segments of three times the latency, each followed by braking to rest and replaced "
        "after a third of it: if this node dies, the robot is at rest after this time plus v / a; false: send the "
        "whole motion, which nothing stops then",
    )
    rate: float = ros_parameter(100.0, "Trajectory points per second", unit="Hz", minimum=20.0, maximum=1000.0)
    command_topic: str = topic_parameter(COMMANDS, "Topic of the trajectory controller")
    command_action: str = topic_parameter(GOALS, "Action of the trajectory controller for mode action")


@dataclass(frozen=True)
class ExcitationSettings(MotionSettings):
    """ROS parameters of the excitation publisher."""

    trajectory: str = path_parameter(
        "",
        "File of a designed trajectory (trajectory.yaml), or of a JointTrajectory with velocities and accelerations "
        "(poses.yaml of `robot-dyn-id gravity --plan`); empty: one from the parameters form to posture",
    )
    form: str = ros_parameter(
        "fourier",
        f"Form of a random excitation; {HELD_POSES}: poses held after approaches from both sides, for the calibration "
        "of gravity, to which the parameters from period to posture do not apply",
        choices=(*FORMS, HELD_POSES),
    )
    period: float = ros_parameter(
        10.0,
        "Period of the motion; with sequential forms of the motion of each joint",
        unit="s",
        minimum=0.1,
        maximum=3600.0,
    )
    periods: int = ros_parameter(
        3, "Number of periods; with sequential forms for each joint", minimum=1, maximum=MAX_COUNTS["periods"]
    )
    harmonics: int = ros_parameter(5, "Harmonics of a Fourier series", minimum=3, maximum=MAX_COUNTS["harmonics"])
    frequencies: tuple[float, ...] = ros_parameter(
        (),
        "Frequencies of a multisine, or first and last frequency of a chirp; empty: the harmonics",
        unit="Hz",
        minimum=0.001,
    )
    degree: int = ros_parameter(
        0,
        "Degree of a bspline (at least 3) or polynomial (at least 8); 0: 5 or 10",
        minimum=0,
        maximum=MAX_COUNTS["degree"],
    )
    control_points: int = ros_parameter(
        20, "Number of control points of a bspline per joint", minimum=4, maximum=MAX_COUNTS["control_points"]
    )
    blend: float = ros_parameter(1.0, "Fade-in and fade-out time of fourier_blend and chirp", unit="s", minimum=0.01)
    seed: int = ros_parameter(1, "Seed of the random coefficients", minimum=0)
    amplitude_share: float = ros_parameter(0.8, "Fraction of the motion limits that is used", minimum=0.01, maximum=1.0)
    posture: tuple[float, ...] = ros_parameter(
        (),
        "Center of the motion; empty: middle of the position limits, or a configuration with free space around it "
        "where the middle has none",
        unit="rad or m",
    )
    speed_scale: float = ros_parameter(1.0, "Time scaling; 0.5 takes twice as long", minimum=0.001, maximum=1.0)
    amplitude_scale: float = ros_parameter(1.0, "Amplitude scaling about the center", minimum=0.001, maximum=1.0)
    dry_run: bool = ros_parameter(
        False, "Check everything and publish the motion on ~/preview, but never command the robot"
    )
    require_effort: bool = ros_parameter(
        True, "Refuse to move while the joint states contain no effort, which an identification needs"
    )
    recording: str = ros_parameter(
        AUTO,
        "Move only while every recorder and identifier in the graph records the joint states; auto: none is needed; "
        "required: at least one is needed; ignore: recording is not monitored",
        choices=(AUTO, REQUIRED, IGNORE),
    )
    feed_forward: str = path_parameter(
        "",
        "Model of the efforts in the trajectory points: a file parameters.yaml, or identified_parameters for the "
        "topic; the controller must command efforts; empty: no efforts",
    )
    robot_compensates: tuple[str, ...] = ros_parameter(
        (),
        "Torques that the driver adds to effort commands, which feed_forward leaves out; empty: as the model states",
        choices=(NONE, *COMPENSATED_PARTS),
    )
    return_to_start: bool = ros_parameter(True, "Return to the initial position after the excitation")
    start: bool = ros_parameter(False, "Start automatically as soon as everything is ready; false: wait for ~/start")
    rehearsal: bool = ros_parameter(
        True,
        "Refuse full speed until a run at 10 % of it has succeeded in this process; with start the slow run comes "
        "first",
    )
    autostart: bool = autostart_parameter()
    runs: int = ros_parameter(
        1,
        "Number of automatic runs; each run after the first starts when new parameters have been identified",
        minimum=1,
    )


def make_plan(model: RobotModel, settings: ExcitationSettings) -> ExcitationPlan:
    """Make the excitation that the parameters describe for a robot.

    Raises:
        UsageError: lists of wrong lengths, or a demand that leaves no motion.
        InputError: a trajectory file that is broken or for another robot.
        ModelError: limits that leave a joint no motion.
        MotionError: a motion outside the limits, no poses that can be reached, or a collision.
    """
    acceleration, jerk, posture = (
        order_per_joint(name, getattr(settings, name), model, settings.joints)
        for name in ("acceleration", "jerk", "posture")
    )
    model = narrow_limits(model, settings)
    limits = MotionLimits.from_model(
        model, acceleration, settings.velocity_scale, settings.position_margin, jerk or (np.inf,)
    )
    thresholds = _thresholds(model, limits, settings)
    check = partial(_check_points, settings, model)
    return plan_excitation(model, limits, thresholds, _request(settings, posture), check)


def _request(settings: ExcitationSettings, posture: tuple[float, ...]) -> MotionRequest:
    demand = Demand(
        period=settings.period,
        periods=settings.periods,
        harmonics=settings.harmonics,
        seed=settings.seed,
        share=settings.amplitude_share,
        posture=posture,
        degree=settings.degree,
        control_points=settings.control_points,
        frequencies=settings.frequencies,
        blend=settings.blend,
    )
    design = read_design_settings(settings.design or None)
    folders = (*design.folders, *list_folders_above(settings.urdf))
    return MotionRequest(
        settings.trajectory,
        settings.form,
        demand,
        settings.joints,
        (settings.speed_scale, settings.amplitude_scale),
        replace(design, ground=choose_ground(settings, design.ground), folders=folders),
        settings.allow_unchecked_collisions,
    )


def narrow_limits(model: RobotModel, settings: MotionSettings) -> RobotModel:
    """The robot with limits narrowed by `joint_limits`.

    Raises:
        ModelError: placeholders instead of limits.
        InputError: a broken file.
    """
    file = read_joint_limits(settings.joint_limits, model) if settings.joint_limits else JointLimitsFile()
    monitored = settings.effort_scale > 0.0 and not settings.effort_limit
    kinds = ("position", "velocity", *(("effort",) if monitored else ()))
    refuse_placeholders(
        find_placeholder_limits(model, file.known, kinds),
        "give the parameter joint_limits, or for efforts effort_limit, or effort_scale 0.0 to leave them unmonitored",
    )
    return file.narrowed(model)


def choose_ground(settings: MotionSettings, designed: bool | float) -> bool | float:
    """The ground by the node's parameters, or by the design file where they say nothing of it."""
    if not settings.ground:
        return False
    return designed if math.isnan(settings.ground_height) else settings.ground_height


def _thresholds(model: RobotModel, limits: MotionLimits, settings: ExcitationSettings) -> GuardThresholds:
    """Thresholds that stop the robot.

    Raises:
        UsageError: lists of wrong lengths.
    """
    tracking, effort = (
        np.array(order_per_joint(name, getattr(settings, name), model, settings.joints))
        for name in ("tracking_error", "effort_limit")
    )
    if not len(effort):
        effort = scale_effort_limits(model.limits.effort, settings.effort_scale)
    return GuardThresholds.from_limits(
        limits,
        settings.velocity_tolerance,
        tracking=tracking,
        effort=effort,
        patience=settings.guard_time,
        timeout=Latency(settings.latency).stale,
    )


def _check_points(settings: ExcitationSettings, model: RobotModel, excitation: Excitation) -> None:
    points = settings.rate * excitation.fastest
    if points < FEWEST_POINTS:
        raise UsageError(
            f"parameter rate gives {points:.3g} points per period of the fastest wave in the motion, fewer than "
            f"{FEWEST_POINTS}: make it at least {FEWEST_POINTS / excitation.fastest:g} Hz, or the period longer"
        )
    count = excitation.duration * settings.rate
    most = int((1.0 - APPROACH_SHARE) * find_most_points(model.joint_names))
    if not settings.segments and count > most:
        raise UsageError(
            f"a trajectory of {excitation.duration:g} s has {count:.0f} points at {settings.rate:g} Hz, more than "
            f"{most}: lower rate or periods, or leave segments true"
        )


def preview_step(settings: ExcitationSettings, excitation: Excitation, joint_names: Sequence[str]) -> float:
    """Time between two points of the preview [s]: that of the commands, or longer where they would be too many."""
    return max(1.0 / settings.rate, excitation.duration / (find_most_points(joint_names) - 1))


def order_per_joint(name: str, values: Sequence[float], model: RobotModel, joints: Sequence[str]) -> tuple[float, ...]:
    """One value for each of the model's joints, given in the order of `joints`; empty where none is given."""
    names = list(joints or model.joint_names)
    given = make_joint_array(values, names, f"parameter {name}").tolist() if values else []
    return tuple(given[names.index(joint)] for joint in model.joint_names) if given else ()
