# SPDX-License-Identifier: Apache-2.0
"""Excitation of a robot as it is executed: from a file or of a random form, within limits and free of collisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_dyn_id.errors import MotionError, RobotDynIdError, UsageError
from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.center import DIGITS, choose_center
from robot_dyn_id.excitation.collision.clearance import EXTRA_DEPTH_M, NOT_CHECKED, UNCHECKED, Clearance
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.design.planning import design_surroundings, make_clearance
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.execution.guard import GuardThresholds
from robot_dyn_id.excitation.execution.supervision import report_unobstructed
from robot_dyn_id.excitation.quintic_path import QuinticPath
from robot_dyn_id.excitation.trajectory import Excitation, Repeated, Scaled, Trajectory, check_excitation, check_limits
from robot_dyn_id.files.joint_trajectory import is_joint_trajectory, read_joint_trajectory
from robot_dyn_id.files.trajectory import StoredExcitation, read_trajectory
from robot_dyn_id.findings import format_findings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.workflow.gravity_poses import plan_gravity_poses

WAY_OUT = "have it checked (`robot-dyn-id design`), or set allow_unchecked_collisions to true"

HELD_POSES = "held_poses"
"""Form of the excitation whose poses are planned for the robot, see `plan_gravity_poses`."""


@dataclass(frozen=True)
class MotionRequest:
    """Motion that is to be executed, and how it is checked for collisions.

    Attributes:
        trajectory: file of a designed trajectory or of a JointTrajectory; empty: a motion of `form`.
        form: name of a form, or `HELD_POSES`.
        demand: demands on the motion of a form; without a posture its center is chosen.
        joints: names of the joints in the order in which the user gives values.
        scales: fractions of the speed of the motion, and of its amplitude about the center [-].
        design: settings of a design with the surroundings, of which a designed motion has its own, and the shapes.
        unchecked: whether a motion may be executed without any check.
    """

    trajectory: str
    form: str
    demand: Demand
    joints: tuple[str, ...]
    scales: tuple[float, float]
    design: DesignSettings
    unchecked: bool

    def make_clearance(self, model: RobotModel, stored: StoredExcitation | None = None) -> Clearance:
        """Distances of the robot in its surroundings.

        Raises:
            MotionError: nothing can be checked, though the user has not allowed it.
            UsageError: surroundings that differ from those of the designed motion.
        """
        around = design_surroundings(self.design)
        if stored is not None:
            if stored.collision_check == NOT_CHECKED:
                raise MotionError(f"{self.trajectory}: {UNCHECKED} when it was designed; {WAY_OUT}")
            self._refuse_other(around, stored.surroundings)
            around = stored.surroundings
        clearance = make_clearance(self.design, model, around)
        if clearance.basis == NOT_CHECKED:
            raise MotionError(f"{clearance.note}; {WAY_OUT}")
        return clearance

    def _refuse_other(self, given: Surroundings, stored: Surroundings) -> None:
        """Refuse surroundings that would be ignored, as the designed motion has its own.

        Raises:
            UsageError: names the difference.
        """
        parts = map(_parts, (given, Surroundings(), stored))
        for name, now, default, then in zip(("ground", "obstacles", "allowed"), *parts, strict=True):
            if now not in (default, then):
                raise UsageError(
                    f"{self.trajectory} was designed with another {name} than the parameters ground, ground_height or "
                    "design give: leave it out, or design the motion again with it"
                )


def _parts(around: Surroundings) -> tuple[object, object, object]:
    """Ground, obstacles and allowed pairs as they compare: a ground at 1 m is not `true`."""
    return (isinstance(around.ground, bool), float(around.ground)), around.entries, around.allowed


@dataclass(frozen=True)
class ExcitationPlan:
    """Excitation of a robot with its limits.

    Attributes:
        limits: motion limits.
        excitation: commanded motion.
        thresholds: thresholds of the guard that stops the robot.
        label: name of the excitation in messages.
        remark: remark for the log; empty if there is none.
        obstruction: function that returns the reason why a motion to or from the excitation would collide; empty if it
            would not.
    """

    limits: MotionLimits
    excitation: Excitation
    thresholds: GuardThresholds
    label: str
    remark: str = ""
    obstruction: Callable[[Trajectory], str] = report_unobstructed


def plan_excitation(
    model: RobotModel,
    limits: MotionLimits,
    thresholds: GuardThresholds,
    request: MotionRequest,
    accept: Callable[[Excitation], None],
) -> ExcitationPlan:
    """Read or make the motion that is requested, and check it for collisions.

    Args:
        model: robot model.
        limits: its motion limits.
        thresholds: thresholds of the guard.
        request: the request.
        accept: function that raises what else prevents the execution of the motion.

    Raises:
        UsageError: a demand that leaves no motion, or other surroundings than those of a designed motion.
        InputError: a trajectory file that is broken or for another robot.
        MotionError: a motion outside the limits, no poses that can be reached, or a collision.
    """
    excitation: Excitation
    stored, remark, clearance, label = None, "", None, request.form
    if request.trajectory and is_joint_trajectory(request.trajectory):
        excitation, label = _from_points(model, limits, request), request.trajectory
    elif request.trajectory:
        stored, remark = _from_file(model, limits, request)
        excitation, label = stored.excitation, f"{request.trajectory} ({stored.cycle.name})"
    elif request.form == HELD_POSES:
        poses = plan_gravity_poses(model, limits, request.make_clearance(model))
        excitation, label = poses.path, f"{poses.poses} held poses"
    else:
        demand = request.demand
        if not demand.posture and not request.unchecked:
            clearance = request.make_clearance(model)
            posture, remark = _choose_posture(limits, clearance, request.joints)
            demand = replace(demand, posture=posture)
        excitation = make_excitation(request.form, limits, demand)
    cycle, (speed, amplitude) = excitation.cycle if isinstance(excitation, Repeated) else excitation, request.scales
    if request.scales != (1.0, 1.0):
        excitation = Scaled(excitation, speed, amplitude)
    accept(excitation)
    if request.unchecked:
        remark = _joined(remark, "nothing is checked for collisions, as allowed")
        return ExcitationPlan(limits, excitation, thresholds, label, remark)
    path = Scaled(cycle, 1.0, amplitude)
    clearance = clearance or request.make_clearance(model, stored)
    # a designed motion may touch by rounding errors: another amplitude or another URDF is another path
    designed = stored is not None and not remark and amplitude == 1.0
    hit = clearance.collision(path, EXTRA_DEPTH_M if designed else 0.0)
    if hit:
        advice = "choose another posture, amplitude or seed, or give the surroundings as they are (ground, design)"
        if request.trajectory:
            advice = "plan it again, or give the surroundings as they are (ground, design)"
        if stored is not None:
            advice = (
                "design it again; if it was designed with an srdf or folders, name that design file (parameter design)"
            )
        raise MotionError(f"{label}: the motion collides: {hit}; {advice}")
    if clearance.stand_ins:
        remark = _joined(remark, f"collisions are checked with stand-ins for {', '.join(clearance.stand_ins)}")
    ends = path.evaluate(np.array([0.0, path.duration]))[0]
    return ExcitationPlan(limits, excitation, thresholds, label, remark, partial(clearance.obstruction, free=ends))


def _joined(*remarks: str) -> str:
    return "; ".join(filter(None, remarks))


def _choose_posture(
    limits: MotionLimits, clearance: Clearance, joints: tuple[str, ...]
) -> tuple[tuple[float, ...], str]:
    """Center of a random motion where none is given, and a remark if it is not the middle of the limits.

    Raises:
        MotionError: no configuration has free space around it.
    """
    center = choose_center(limits, clearance)
    values = dict(zip(limits.joint_names, center.position.tolist(), strict=True))
    line = f"posture: [{', '.join(f'{values[name] + 0.0:.{DIGITS}f}' for name in joints or limits.joint_names)}]"
    chosen = center.replace_middle(
        f"give the parameter with your own values, {line}, or the surroundings as they are (ground, design)"
    )
    return chosen, f"{center.remark}: {line}" if chosen else ""


def _from_file(model: RobotModel, limits: MotionLimits, request: MotionRequest) -> tuple[StoredExcitation, str]:
    """Content of the file, and the differences of the robot though the motion fits."""
    stored = read_trajectory(request.trajectory)
    try:
        findings = stored.check_robot(model, limits, *request.scales)
    except RobotDynIdError as error:
        raise type(error)(f"{request.trajectory}: {error}") from None
    return stored, "; ".join(format_findings(findings))


def _from_points(model: RobotModel, limits: MotionLimits, request: MotionRequest) -> QuinticPath:
    """Motion of a file with a JointTrajectory.

    Raises:
        InputError: a broken file, or one for other joints.
        MotionError: a motion outside the limits, or that is not at rest at both ends.
    """
    rows = read_joint_trajectory(request.trajectory)
    try:
        path = QuinticPath.from_rows(rows, model.joint_names)
        check_excitation(path, 1, model.joint_names)
        check_limits(Scaled(path, *request.scales), limits)
    except RobotDynIdError as error:
        raise type(error)(f"{request.trajectory}: {error}") from None
    return path
