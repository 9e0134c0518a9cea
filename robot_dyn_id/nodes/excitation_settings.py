"""ROS parameters of the excitation publisher, and what they make of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.errors import RobotDynIdError, UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.feedback import REST_SPEED
from robot_dyn_id.excitation.guard import Thresholds
from robot_dyn_id.excitation.trajectory import Excitation, Scaled
from robot_dyn_id.nodes.ros_parameters import ros_parameter
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.trajectory_io import read_trajectory

TRAJECTORY, STREAMING, ACTION = "trajectory", "streaming", "action"
COMMANDS = "joint_trajectory_controller/joint_trajectory"
GOALS, ACTION_TYPE = "joint_trajectory_controller/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory"

MOST_POINTS = 100_000
"""Of one message: 20 MB for seven joints."""

FEWEST_POINTS = 10
"""For each period of the fastest wave, so that interpolation between them is the motion."""


@dataclass(frozen=True)
class ExcitationSettings:
    """ROS parameters; lists have one value for all joints or one for each, in the order of `joints` (or the URDF)."""

    urdf: str = ros_parameter("", "URDF or xacro file; empty: from the topic robot_description")
    joints: tuple[str, ...] = ros_parameter((), "Joints that the controller commands; empty: all that move")
    trajectory: str = ros_parameter(
        "",
        "File of a designed motion (trajectory.yaml), instead of a random one by all parameters from form to posture",
    )
    form: str = ros_parameter("fourier", "Form of the excitation", choices=tuple(FORMS))
    period: float = ros_parameter(10.0, "Period of the motion, or of what each joint does in its turn", unit="s",
                                  minimum=0.1)  # fmt: skip
    periods: int = ros_parameter(3, "Number of periods; with sequential forms of each joint", minimum=1, maximum=10000)
    harmonics: int = ros_parameter(5, "Harmonics of a Fourier series", minimum=3, maximum=100)
    frequencies: tuple[float, ...] = ros_parameter(
        (), "Of a multisine, or the first and the last of a chirp; empty: the harmonics", unit="Hz", minimum=0.001
    )
    degree: int = ros_parameter(0, "Of a bspline (at least 3) or polynomial (at least 8); 0: 5 or 10", minimum=0,
                                maximum=30)  # fmt: skip
    control_points: int = ros_parameter(20, "Of a bspline, for each joint", minimum=4, maximum=1000)
    blend: float = ros_parameter(1.0, "Time in which fourier_blend and chirp swell and fade", unit="s", minimum=0.01)
    seed: int = ros_parameter(1, "Seed of random coefficients", minimum=0)
    amplitude_share: float = ros_parameter(0.8, "Share of the limits that is used", minimum=0.01, maximum=1.0)
    posture: tuple[float, ...] = ros_parameter(
        (), "Centre of the motion; empty: the middle of the position limits", unit="rad or m"
    )
    speed_scale: float = ros_parameter(1.0, "The motion takes its time divided by this", minimum=0.001, maximum=1.0)
    amplitude_scale: float = ros_parameter(1.0, "The motion goes as far from its centre times this", minimum=0.001,
                                           maximum=1.0)  # fmt: skip
    dry_run: bool = ros_parameter(False, "Check all and publish the motion on ~/preview, but never command the robot")
    velocity_scale: float = ros_parameter(1.0, "Share of the URDF's velocity limits", minimum=0.001, maximum=1.0)
    acceleration: tuple[float, ...] = ros_parameter(
        (5.0,), "Largest acceleration, also of braking", unit="rad/s^2 or m/s^2", minimum=0.001
    )
    jerk: tuple[float, ...] = ros_parameter(
        (), "Largest jerk, except of braking; empty: not limited", unit="rad/s^3 or m/s^3", minimum=0.001
    )
    position_margin: float = ros_parameter(
        0.05, "Distance kept to the URDF's position limits", unit="rad or m", minimum=0.0
    )
    tracking_error: tuple[float, ...] = ros_parameter(
        (0.2,), "Distance between command and measurement that stops the robot", unit="rad or m", minimum=0.0
    )
    velocity_tolerance: float = ros_parameter(
        0.1, "Share by which measured speed above the limit of velocity stops the robot", minimum=0.0, maximum=10.0
    )
    effort_scale: float = ros_parameter(
        0.9, "Share of the URDF's effort limits above which measured effort stops the robot; 0: not watched",
        minimum=0.0, maximum=1.0)  # fmt: skip
    effort_limit: tuple[float, ...] = ros_parameter(
        (), "Measured effort that stops the robot, instead of that share, in the unit of the joint states",
        unit="N m or N", minimum=0.001)  # fmt: skip
    guard_time: float = ros_parameter(
        0.1, "Time with too much speed or effort that stops the robot; less, or less than 3 joint states, is noise",
        unit="s", minimum=0.0, maximum=1.0)  # fmt: skip
    require_effort: bool = ros_parameter(
        True, "Refuse to move while joint states carry no effort, without which nothing can be identified"
    )
    timeout: float = ros_parameter(
        0.1, "Silence of the joint states that stops the robot", unit="s", minimum=0.01, maximum=10.0
    )
    mode: str = ros_parameter(
        TRAJECTORY,
        "The whole motion in one message that begins when the controller receives it; action: the same as a goal, "
        "whose result is watched; streaming: at every sample a stamped message with the next 0.1 s and braking to rest",
        choices=(TRAJECTORY, STREAMING, ACTION),
    )
    rate: float = ros_parameter(100.0, "Points per second, and messages per second of streaming", unit="Hz",
                                minimum=20.0, maximum=1000.0)  # fmt: skip
    return_to_start: bool = ros_parameter(True, "Go back to where the robot stood, once the excitation is over")
    start: bool = ros_parameter(False, "Start by itself when all is ready; otherwise ~/start is waited for")
    runs: int = ros_parameter(
        1, "How often it starts by itself; after the first time whenever new parameters were identified", minimum=1
    )
    command_topic: str = ros_parameter(COMMANDS, "Topic of the trajectory controller")
    command_action: str = ros_parameter(GOALS, "Action of the trajectory controller, for mode action")


@dataclass(frozen=True)
class Plan:
    """What the parameters make of a robot.

    Attributes:
        limits: of the motion.
        excitation: the motion.
        thresholds: what stops the robot.
        label: what it is, for people.
        remark: what a person should know; empty if nothing.
    """

    limits: MotionLimits
    excitation: Excitation
    thresholds: Thresholds
    label: str
    remark: str = ""


def plan_of(model: RobotModel, settings: ExcitationSettings) -> Plan:
    """Limits of a robot, and the excitation that is asked for.

    Raises:
        UsageError: lists of wrong lengths, or a demand that leaves no motion.
        InputError: a trajectory file that is broken or for another robot.
        ModelError: limits that leave a joint no motion.
        MotionError: a motion outside the limits.
    """
    acceleration, jerk, posture = (
        _per_joint(name, getattr(settings, name), model, settings.joints)
        for name in ("acceleration", "jerk", "posture")
    )
    limits = MotionLimits.of(model, acceleration, settings.velocity_scale, settings.position_margin, jerk or (np.inf,))
    excitation, label, remark = _from_file(model, limits, settings) if settings.trajectory else (
        make_excitation(settings.form, limits, _demand(settings, posture)), settings.form, ""
    )  # fmt: skip
    if (settings.speed_scale, settings.amplitude_scale) != (1.0, 1.0):
        excitation = Scaled(excitation, settings.speed_scale, settings.amplitude_scale)
    _check_points(settings, excitation)
    return Plan(limits, excitation, _thresholds(model, limits, settings), label, remark)


def _thresholds(model: RobotModel, limits: MotionLimits, settings: ExcitationSettings) -> Thresholds:
    """What stops the robot.

    Raises:
        UsageError: lists of wrong lengths.
    """
    tracking, effort = (
        np.array(_per_joint(name, getattr(settings, name), model, settings.joints))
        for name in ("tracking_error", "effort_limit")
    )
    if not len(effort):
        share = settings.effort_scale * model.limits.effort
        effort = np.where(share > 0.0, share, np.inf)  # many a URDF says 0 where nobody knew
    # noise alone makes a robot that stands look as fast as this, however small its limit
    velocity = np.maximum((1.0 + settings.velocity_tolerance) * limits.velocity, REST_SPEED)
    return Thresholds(tracking, velocity, effort, settings.guard_time, settings.timeout)


def _demand(settings: ExcitationSettings, posture: tuple[float, ...]) -> Demand:
    return Demand(
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


def _from_file(model: RobotModel, limits: MotionLimits, settings: ExcitationSettings) -> tuple[Excitation, str, str]:
    """Motion, label and remark."""
    stored = read_trajectory(settings.trajectory)
    try:
        remark = stored.matched(model, limits, settings.speed_scale, settings.amplitude_scale)
    except RobotDynIdError as error:
        raise type(error)(f"{settings.trajectory}: {error}") from None
    return stored.excitation, f"{settings.trajectory} ({stored.cycle.name})", remark


def _check_points(settings: ExcitationSettings, excitation: Excitation) -> None:
    points = settings.rate * excitation.fastest
    if points < FEWEST_POINTS:
        raise UsageError(
            f"parameter rate gives {points:.3g} points per period of the fastest wave in the motion, fewer than "
            f"{FEWEST_POINTS}: make it at least {FEWEST_POINTS / excitation.fastest:g} Hz, or the period longer"
        )
    count = excitation.duration * settings.rate
    if settings.mode != STREAMING and count > MOST_POINTS:
        raise UsageError(
            f"a trajectory of {excitation.duration:g} s has {count:.0f} points at {settings.rate:g} Hz, more than "
            f"{MOST_POINTS}: lower rate or periods, or set mode to streaming"
        )


def preview_step(settings: ExcitationSettings, excitation: Excitation) -> float:
    """Time between two points of the preview [s]: that of the commands, or longer where they would be too many."""
    return max(1.0 / settings.rate, excitation.duration / MOST_POINTS)


def _per_joint(name: str, values: Sequence[float], model: RobotModel, joints: Sequence[str]) -> tuple[float, ...]:
    """One value for each of the model's joints; none where none is given."""
    names = list(joints or model.joint_names)
    if not values:
        return ()
    if len(values) == 1:
        values = [*values] * len(names)
    if len(values) != len(names):
        raise UsageError(f"parameter {name} has {len(values)} values, expected 1 or one for each of {', '.join(names)}")
    return tuple(values[names.index(joint)] for joint in model.joint_names)
