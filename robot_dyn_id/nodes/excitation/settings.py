# SPDX-License-Identifier: Apache-2.0
"""ROS parameters of the excitation publisher, and what they make of a robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from robot_dyn_id.errors import MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.collision.clearance import DEEPER, NOT_CHECKED, UNCHECKED, Clearance
from robot_dyn_id.excitation.collision.meshes import folders_above
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.execution.feedback import REST_SPEED
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.recording_watch import AUTO, IGNORE, REQUIRED
from robot_dyn_id.excitation.execution.supervision import unobstructed
from robot_dyn_id.excitation.limits import DEFAULT_ACCELERATION, DEFAULT_POSITION_MARGIN
from robot_dyn_id.excitation.parametrization import MAX_COUNTS
from robot_dyn_id.excitation.placeholders import placeholder_limits, refuse_placeholders
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Scaled, Trajectory
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.joint_limits import JointLimitsFile, read_joint_limits
from robot_dyn_id.files.trajectory import StoredExcitation, read_trajectory
from robot_dyn_id.findings import format_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.messages.conversions import most_points
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter

TRAJECTORY, ACTION = "trajectory", "action"
COMMANDS = "joint_trajectory_controller/joint_trajectory"
GOALS, ACTION_TYPE = "joint_trajectory_controller/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory"

WAY_OUT = "have it checked (`robot-dyn-id design`), or set allow_unchecked_collisions to true"

APPROACH_SHARE = 0.1
"""Share of the points of one message that is kept for the approach, whose length is not known before the start."""

SHORTEST_HORIZON = 0.05
"""Less than this and every scheduling delay brakes the robot [s]."""

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
    periods: int = ros_parameter(
        3, "Number of periods; with sequential forms of each joint", minimum=1, maximum=MAX_COUNTS["periods"]
    )
    harmonics: int = ros_parameter(5, "Harmonics of a Fourier series", minimum=3, maximum=MAX_COUNTS["harmonics"])
    frequencies: tuple[float, ...] = ros_parameter(
        (), "Of a multisine, or the first and the last of a chirp; empty: the harmonics", unit="Hz", minimum=0.001
    )
    degree: int = ros_parameter(0, "Of a bspline (at least 3) or polynomial (at least 8); 0: 5 or 10", minimum=0,
                                maximum=MAX_COUNTS["degree"])  # fmt: skip
    control_points: int = ros_parameter(
        20, "Of a bspline, for each joint", minimum=4, maximum=MAX_COUNTS["control_points"]
    )
    blend: float = ros_parameter(1.0, "Time in which fourier_blend and chirp swell and fade", unit="s", minimum=0.01)
    seed: int = ros_parameter(1, "Seed of random coefficients", minimum=0)
    amplitude_share: float = ros_parameter(0.8, "Share of the limits that is used", minimum=0.01, maximum=1.0)
    posture: tuple[float, ...] = ros_parameter(
        (), "Center of the motion; empty: the middle of the position limits", unit="rad or m"
    )
    speed_scale: float = ros_parameter(1.0, "The motion takes its time divided by this", minimum=0.001, maximum=1.0)
    amplitude_scale: float = ros_parameter(1.0, "The motion goes as far from its center times this", minimum=0.001,
                                           maximum=1.0)  # fmt: skip
    ground: bool = ros_parameter(
        True, "Whether the ground is an obstacle; for motions of form: a designed motion brings its own surroundings"
    )
    ground_height: float = ros_parameter(
        math.nan,
        "Height of the ground in the base frame; nan: the base's origin, or the lowest point of what is fixed to it",
        unit="m",
    )
    design: str = ros_parameter(
        "",
        "Design file whose folders, SRDF and stand_ins the check for collisions uses, and for motions of form also its "
        "ground, obstacles and allowed pairs; those of a designed motion must not differ from them",
    )
    allow_unchecked_collisions: bool = ros_parameter(
        False, "Run motions that are not checked for collisions; then approach and return are not checked either"
    )
    dry_run: bool = ros_parameter(False, "Check all and publish the motion on ~/preview, but never command the robot")
    joint_limits: str = ros_parameter(
        "", "joint_limits.yaml of MoveIt: narrows the limits of the URDF, and replaces those that are placeholders"
    )
    velocity_scale: float = ros_parameter(1.0, "Share of the URDF's velocity limits", minimum=0.001, maximum=1.0)
    acceleration: tuple[float, ...] = ros_parameter(
        (DEFAULT_ACCELERATION,), "Largest acceleration, also of braking", unit="rad/s^2 or m/s^2", minimum=0.001
    )
    jerk: tuple[float, ...] = ros_parameter(
        (), "Largest jerk, except of braking; empty: not limited", unit="rad/s^3 or m/s^3", minimum=0.001
    )
    position_margin: float = ros_parameter(
        DEFAULT_POSITION_MARGIN, "Distance kept to the URDF's position limits", unit="rad or m", minimum=0.0
    )
    tracking_error: tuple[float, ...] = ros_parameter(
        (0.2,), "Distance between command and measurement that stops the robot", unit="rad or m", minimum=0.0
    )
    velocity_tolerance: float = ros_parameter(
        0.1, "Share by which measured speed above the limit of velocity stops the robot", minimum=0.0, maximum=10.0
    )
    effort_scale: float = ros_parameter(
        0.9, "Share of the URDF's effort limits above which measured effort stops the robot; 0: not watched, which is "
        "the only way to run with an effort limit of 0 or another placeholder in the URDF without effort_limit",
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
        "To the topic command_topic; action: as goals of command_action, whose results are watched",
        choices=(TRAJECTORY, ACTION),
    )
    horizon: float = ros_parameter(
        0.3,
        "Length of the stamped pieces in which the motion is sent, with braking to rest behind each, renewed after a "
        "third of it: if this node dies, the robot rests after this and v / a; 0: whole, and nothing stops it then",
        unit="s",
        minimum=0.0,
        maximum=10.0,
    )
    rate: float = ros_parameter(100.0, "Points per second", unit="Hz", minimum=20.0, maximum=1000.0)
    recording: str = ros_parameter(
        AUTO,
        "Brake, and do not start, unless the joint states are recorded by every recorder and identifier in the graph; "
        "auto: there may be none; required: there must be one; ignore: not watched",
        choices=(AUTO, REQUIRED, IGNORE),
    )
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
        obstruction: reason why a motion to or from the excitation would collide; empty if it would not.
    """

    limits: MotionLimits
    excitation: Excitation
    thresholds: GuardThresholds
    label: str
    remark: str = ""
    obstruction: Callable[[Trajectory], str] = unobstructed


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
    model = _with_true_limits(model, settings)
    limits = MotionLimits.from_model(
        model, acceleration, settings.velocity_scale, settings.position_margin, jerk or (np.inf,)
    )
    if settings.trajectory:
        stored, remark = _from_file(model, limits, settings)
        excitation, label = stored.excitation, f"{settings.trajectory} ({stored.cycle.name})"
    else:
        stored, remark = None, ""
        excitation, label = make_excitation(settings.form, limits, _demand(settings, posture)), settings.form
    cycle = excitation.cycle if isinstance(excitation, Repeated) else excitation
    if (settings.speed_scale, settings.amplitude_scale) != (1.0, 1.0):
        excitation = Scaled(excitation, settings.speed_scale, settings.amplitude_scale)
    _check_points(settings, excitation, model)
    thresholds = _thresholds(model, limits, settings)
    if settings.allow_unchecked_collisions:
        remark = "; ".join(part for part in (remark, "nothing is checked for collisions, as allowed") if part)
        return Plan(limits, excitation, thresholds, label, remark)
    path = Scaled(cycle, 1.0, settings.amplitude_scale)
    clearance = _clearance(model, settings, stored)
    # a designed motion may touch by rounding errors: another amplitude or another URDF is another path
    designed = stored is not None and not remark and settings.amplitude_scale == 1.0
    hit = clearance.collision(path, DEEPER if designed else 0.0)
    if hit:
        advice = "choose another posture, amplitude or seed, or give the surroundings as they are (ground, design)"
        if stored is not None:
            advice = (
                "design it again; if it was designed with an srdf or folders, name that design file (parameter design)"
            )
        raise MotionError(f"{label}: the motion collides: {hit}; {advice}")
    if clearance.stand_ins:
        words = f"collisions are checked with stand-ins for {', '.join(clearance.stand_ins)}"
        remark = "; ".join(part for part in (remark, words) if part)
    ends = path.evaluate(np.array([0.0, path.duration]))[0]
    return Plan(limits, excitation, thresholds, label, remark, partial(clearance.obstruction, free=ends))


def _with_true_limits(model: RobotModel, settings: ExcitationSettings) -> RobotModel:
    """The robot with limits narrowed by `joint_limits`.

    Raises:
        ModelError: placeholders instead of limits.
        InputError: a broken file.
    """
    file = read_joint_limits(settings.joint_limits, model) if settings.joint_limits else JointLimitsFile()
    watched = settings.effort_scale > 0.0 and not settings.effort_limit
    kinds = ("position", "velocity", *(("effort",) if watched else ()))
    refuse_placeholders(
        placeholder_limits(model, file.known, kinds),
        "give the parameter joint_limits, or for efforts effort_limit, or effort_scale 0.0 to leave them unwatched",
    )
    return file.narrowed(model)


def _clearance(model: RobotModel, settings: ExcitationSettings, stored: StoredExcitation | None) -> Clearance:
    """What motions are compared with.

    Raises:
        MotionError: nothing, though the user has not allowed it.
        UsageError: surroundings that differ from those of a designed motion.
    """
    design = read_design_settings(settings.design or None)
    if stored is not None and stored.collision_check == NOT_CHECKED:
        raise MotionError(f"{settings.trajectory}: {UNCHECKED} when it was designed; {WAY_OUT}")
    around = Surroundings(_ground(settings, design.ground), design.obstacles, design.allowed, design.clearance)
    if stored is not None:
        _refuse_other_surroundings(settings, around, stored.surroundings)
        around = stored.surroundings
    clearance = Clearance(
        model,
        around.obstacles,
        (*design.folders, *folders_above(settings.urdf)),
        around.allowed,
        design.srdf or None,
        stand_ins=design.stand_ins != "none",
        ground=around.ground,
        margin=around.clearance,
    )
    if clearance.basis == NOT_CHECKED:
        raise MotionError(f"{clearance.words}; {WAY_OUT}")
    return clearance


def _ground(settings: ExcitationSettings, designed: bool | float) -> bool | float:
    """The ground by the node's parameters, or by the design file where they say nothing of it."""
    if not settings.ground:
        return False
    return designed if math.isnan(settings.ground_height) else settings.ground_height


def _refuse_other_surroundings(settings: ExcitationSettings, given: Surroundings, stored: Surroundings) -> None:
    """Refuse surroundings that would be ignored, as a designed motion has its own.

    Raises:
        UsageError: names what differs.
    """
    different = [
        name
        for name, now, default, then in zip(
            ("ground", "obstacles", "allowed"), *map(_parts, (given, Surroundings(), stored)), strict=True
        )
        if now not in (default, then)
    ]
    if different:
        raise UsageError(
            f"{settings.trajectory} was designed with another {different[0]} than the parameters ground, ground_height "
            "or design give: leave it out, or design the motion again with it"
        )


def _parts(around: Surroundings) -> tuple[object, object, object]:
    """Ground, obstacles and allowed pairs as they compare: a ground at 1 m is not `true`."""
    return (isinstance(around.ground, bool), float(around.ground)), around.entries, around.allowed


def _thresholds(model: RobotModel, limits: MotionLimits, settings: ExcitationSettings) -> GuardThresholds:
    """What stops the robot.

    Raises:
        UsageError: lists of wrong lengths.
    """
    tracking, effort = (
        np.array(_per_joint(name, getattr(settings, name), model, settings.joints))
        for name in ("tracking_error", "effort_limit")
    )
    if not len(effort):
        scale = settings.effort_scale
        effort = scale * model.limits.effort if scale > 0.0 else np.full(len(model.joint_names), np.inf)
    # noise alone makes a robot that stands look as fast as this, however small its limit
    velocity = np.maximum((1.0 + settings.velocity_tolerance) * limits.velocity, REST_SPEED)
    return GuardThresholds(tracking, velocity, effort, settings.guard_time, settings.timeout)


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


def _from_file(model: RobotModel, limits: MotionLimits, settings: ExcitationSettings) -> tuple[StoredExcitation, str]:
    """Content of the file, and what is different though the motion fits."""
    stored = read_trajectory(settings.trajectory)
    try:
        findings = stored.matched(model, limits, settings.speed_scale, settings.amplitude_scale)
        remark = "; ".join(format_findings(findings))
    except RobotDynIdError as error:
        raise type(error)(f"{settings.trajectory}: {error}") from None
    return stored, remark


def _check_points(settings: ExcitationSettings, excitation: Excitation, model: RobotModel) -> None:
    points = settings.rate * excitation.fastest
    if points < FEWEST_POINTS:
        raise UsageError(
            f"parameter rate gives {points:.3g} points per period of the fastest wave in the motion, fewer than "
            f"{FEWEST_POINTS}: make it at least {FEWEST_POINTS / excitation.fastest:g} Hz, or the period longer"
        )
    if 0.0 < settings.horizon < SHORTEST_HORIZON:
        raise UsageError(f"parameter horizon is {settings.horizon:g} s: make it 0 or at least {SHORTEST_HORIZON:g} s")
    count = excitation.duration * settings.rate
    most = int((1.0 - APPROACH_SHARE) * most_points(model.joint_names))
    if not settings.horizon and count > most:
        raise UsageError(
            f"a trajectory of {excitation.duration:g} s has {count:.0f} points at {settings.rate:g} Hz, more than "
            f"{most}: lower rate or periods, or leave horizon above 0"
        )


def preview_step(settings: ExcitationSettings, excitation: Excitation, joint_names: Sequence[str]) -> float:
    """Time between two points of the preview [s]: that of the commands, or longer where they would be too many."""
    return max(1.0 / settings.rate, excitation.duration / (most_points(joint_names) - 1))


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
