"""ROS parameters of the excitation publisher, and what they make of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.supervision import Supervisor
from robot_dyn_id.nodes.ros_parameters import ros_parameter
from robot_dyn_id.robot import RobotModel

TRAJECTORY, STREAMING = "trajectory", "streaming"
COMMANDS = "joint_trajectory_controller/joint_trajectory"

MOST_POINTS = 100_000
"""Of one message: 20 MB for seven joints."""

FEWEST_POINTS = 10
"""For each period of the highest harmonic, so that interpolation between them is the motion."""


@dataclass(frozen=True)
class ExcitationSettings:
    """ROS parameters; lists have one value for all joints or one for each, in the order of `joints` (or the URDF)."""

    urdf: str = ros_parameter("", "URDF or xacro file; empty: from the topic robot_description")
    joints: tuple[str, ...] = ros_parameter((), "Joints that the controller commands; empty: all that move")
    form: str = ros_parameter("fourier", "Form of the excitation", choices=tuple(FORMS))
    period: float = ros_parameter(10.0, "Period of the series or of each joint's sine", unit="s", minimum=0.1)
    periods: int = ros_parameter(3, "Number of periods; with sequential_sine of each joint", minimum=1, maximum=10000)
    harmonics: int = ros_parameter(5, "Harmonics of a Fourier series", minimum=3, maximum=100)
    seed: int = ros_parameter(1, "Seed of random coefficients", minimum=0)
    amplitude_share: float = ros_parameter(0.8, "Share of the limits that is used", minimum=0.01, maximum=1.0)
    posture: tuple[float, ...] = ros_parameter(
        (), "Centre of the motion; empty: the middle of the position limits", unit="rad or m"
    )
    velocity_scale: float = ros_parameter(1.0, "Share of the URDF's velocity limits", minimum=0.001, maximum=1.0)
    acceleration: tuple[float, ...] = ros_parameter(
        (5.0,), "Largest acceleration, also of braking", unit="rad/s^2 or m/s^2", minimum=0.001
    )
    position_margin: float = ros_parameter(
        0.05, "Distance kept to the URDF's position limits", unit="rad or m", minimum=0.0
    )
    tracking_error: tuple[float, ...] = ros_parameter(
        (0.2,), "Distance between command and measurement that stops the robot", unit="rad or m", minimum=0.0
    )
    timeout: float = ros_parameter(
        0.1, "Silence of the joint states that stops the robot", unit="s", minimum=0.01, maximum=10.0
    )
    mode: str = ros_parameter(
        TRAJECTORY,
        "The whole motion in one message that begins when the controller receives it, or streaming: at every sample "
        "a stamped message with the next 0.1 s and braking to rest after them",
        choices=(TRAJECTORY, STREAMING),
    )
    rate: float = ros_parameter(100.0, "Points per second, and messages per second of streaming", unit="Hz",
                                minimum=20.0, maximum=1000.0)  # fmt: skip
    start: bool = ros_parameter(False, "Start by itself, once, when all is ready; otherwise ~/start is waited for")
    command_topic: str = ros_parameter(COMMANDS, "Topic of the trajectory controller")


def supervisor_of(model: RobotModel, settings: ExcitationSettings) -> tuple[MotionLimits, Supervisor]:
    """Limits of a robot, and the supervisor of the excitation that is asked for.

    Raises:
        UsageError: lists of wrong lengths, or a demand that leaves no motion.
        ModelError: limits that leave a joint no motion.
        MotionError: a motion outside the limits.
    """
    acceleration, tracking = (
        _per_joint(name, getattr(settings, name), model, settings.joints) for name in ("acceleration", "tracking_error")
    )
    posture = _per_joint("posture", settings.posture, model, settings.joints) if settings.posture else ()
    limits = MotionLimits.of(model, acceleration, settings.velocity_scale, settings.position_margin)
    demand = Demand(
        settings.period,
        settings.periods,
        settings.harmonics,
        settings.seed,
        settings.amplitude_share,
        posture,
    )
    _check_points(settings)
    excitation = make_excitation(settings.form, limits, demand)
    count = excitation.duration * settings.rate
    if settings.mode == TRAJECTORY and count > MOST_POINTS:
        raise UsageError(
            f"a trajectory of {excitation.duration:g} s has {count:.0f} points at {settings.rate:g} Hz, more than "
            f"{MOST_POINTS}: lower rate or periods, or set mode to streaming"
        )
    return limits, Supervisor(excitation, limits, np.array(tracking), settings.timeout)


def _check_points(settings: ExcitationSettings) -> None:
    waves = settings.harmonics if settings.form == "fourier" else 1
    points = settings.rate * settings.period / waves
    if points < FEWEST_POINTS:
        raise UsageError(
            f"parameter rate gives {points:.3g} points per period of the highest harmonic, fewer than {FEWEST_POINTS}: "
            f"make it at least {FEWEST_POINTS * waves / settings.period:g} Hz, or the period longer"
        )


def _per_joint(name: str, values: Sequence[float], model: RobotModel, joints: Sequence[str]) -> tuple[float, ...]:
    """One value for each of the model's joints."""
    names = list(joints or model.joint_names)
    if len(values) == 1:
        values = [*values] * len(names)
    if len(values) != len(names):
        raise UsageError(f"parameter {name} has {len(values)} values, expected 1 or one for each of {', '.join(names)}")
    return tuple(values[names.index(joint)] for joint in model.joint_names)
