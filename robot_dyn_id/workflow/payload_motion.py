# SPDX-License-Identifier: Apache-2.0
"""Motion of the wrist about the present configuration that determines a payload: check of the configuration, design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import MotionError, UsageError, suggest_known
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.planning import find_torque_noise, make_design_task, make_motion_limits
from robot_dyn_id.excitation.design.postures import find_unexcited
from robot_dyn_id.excitation.design.reduction import ReducedRegressor
from robot_dyn_id.excitation.design.search import design as search_design
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.forms.registry import make_parametrization
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.loads.payload import allow_friction_change, check_carrier, find_friction_columns
from robot_dyn_id.loads.payload_accuracy import PayloadAccuracy, predict_accuracy
from robot_dyn_id.model.kinematics import Kinematics, Placement, find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS, BaseParameters, ParameterSet
from robot_dyn_id.progress import Progress, ignore_progress
from robot_dyn_id.workflow.excitation import DesignResult

WRIST_JOINTS = 3
"""Number of joints before the payload that move by default."""

DRAWS = 6
"""Number of random motions, of which the one that determines the payload best counts."""

SAMPLES = 200
"""Samples of a period in which the accuracy is computed."""

TURNS_RAD = (0.5, 1.0, 1.5)
"""Turns of a joint, to both sides, that are tried to find a better configuration [rad]."""

VERTICAL = 0.98
"""Cosine of the angle between an axis and the vertical above which the axis is called vertical."""

QUICK = SearchEffort(draws=30, starts=3, finished=1, steps=40)
"""Effort of the design: seconds, as the robot waits."""


@dataclass(frozen=True)
class PayloadMotion:
    """Demands on the motion that determines a payload.

    Attributes:
        arm: the identified arm.
        model: the robot, with the limits that motions keep; its joints are those of the arm.
        link: link that carries the payload.
        position: present configuration [rad or m], shape (n,).
        joints: names of the joints that move; empty: the last `WRIST_JOINTS` before the link.
        window: largest distance of a moving joint from the present configuration [rad or m].
        duration: duration of the recording [s].
        expected_mass: mass that the expected errors are compared with [kg].
        friction_change: see `PayloadOptions`.
        keys: keys of a design file in place of those of `design`, such as `period`, `acceleration`.
        design: design file with the surroundings and further demands; empty: none.
    """

    arm: ParameterSet
    model: RobotModel
    link: str
    position: Array
    joints: tuple[str, ...]
    window: float
    duration: float
    expected_mass: float
    friction_change: float
    keys: Mapping[str, Any]
    design: str = ""

    def __post_init__(self) -> None:
        """Check the robot and the joints.

        Raises:
            UsageError: an unknown joint, one that does not move the link, or a robot with other joints than the arm.
            InputError: a link that does not move.
        """
        if self.arm.robot.joint_names != self.model.joint_names:
            raise UsageError(
                f"the arm was identified with the joints {', '.join(self.arm.robot.joint_names)}; the controller has "
                f"{', '.join(self.model.joint_names)}: set the parameter joints, or identify the arm with these joints"
            )
        check_carrier(self.link, self.at)
        before = self._joints_before
        for name in self.joints:
            if name not in before:
                raise UsageError(f"joint {name} does not move {self.link}; {suggest_known(name, before)}")

    @cached_property
    def at(self) -> Placement:
        """Placement of the link."""
        return find_placement_of(self.model, self.link)

    @cached_property
    def _joints_before(self) -> list[str]:
        """Names of the joints that move the link, the last first."""
        names, body = [], self.at.body
        while body >= 0:
            names.append(self.model.joint_names[self.model.leader[body]])
            body = int(self.model.parent[body])
        return list(dict.fromkeys(names))

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the joints that move, in the model's order."""
        chosen = self.joints or self._joints_before[:WRIST_JOINTS]
        return tuple(name for name in self.model.joint_names if name in chosen)

    @property
    def numbers(self) -> Integers:
        """Numbers of the joints that move, ascending."""
        return np.array([self.model.joint_names.index(name) for name in self.moving], dtype=np.int64)

    @cached_property
    def settings(self) -> DesignSettings:
        """Settings of the design."""
        names = self.model.joint_names
        own = {
            "moving": self.moving,
            "posture": dict(zip(names, self.position.tolist(), strict=True)),
            "objective": "d_optimal",
            "search": QUICK,
        }
        return read_design_settings(self.design or None, **{**own, **self.keys})

    @cached_property
    def window_model(self) -> RobotModel:
        """The robot with limits that leave the moving joints the window and the speeds that the arm was identified at.

        At higher speeds its friction would be extrapolated.
        """
        limits, margin, n = self.model.limits, self.settings.margin, self.numbers
        velocity = limits.velocity.copy()
        velocity[n] = np.minimum(velocity, self.arm.ranges.dq_max / self.settings.velocity_scale)[n]
        lower, upper = limits.lower.copy(), limits.upper.copy()
        lower[n] = np.maximum(lower, self.position - self.window - margin)[n]
        upper[n] = np.minimum(upper, self.position + self.window + margin)[n]
        return replace(self.model, limits=replace(limits, lower=lower, upper=upper, velocity=velocity))

    @cached_property
    def uncertain_arm(self) -> ParameterSet:
        """The arm with the friction that may have changed."""
        return allow_friction_change(self.arm, self.friction_change, Regressor.from_parameters(self.arm))

    def accuracy(self, motion: Trajectory) -> PayloadAccuracy:
        """Accuracy of the payload that one period of a motion, repeated over the duration, gives."""
        step = self.settings.demand.period / SAMPLES
        times = np.linspace(0.5 * step, (SAMPLES - 0.5) * step, SAMPLES)
        q, dq, ddq, _ = motion.evaluate(times)
        sampled = Motion(q, dq, ddq)
        return predict_accuracy(self.uncertain_arm, self.at, sampled, self.numbers, self.duration, self.expected_mass)


def check_configuration(motion: PayloadMotion) -> PayloadAccuracy:
    """Accuracy that the present configuration allows, by random motions within the window.

    Raises:
        MotionError: the wrist cannot move, or mass or first moments will not be found; says what to change.
    """
    accuracy = _reachable(motion)
    if not accuracy.worst_ratio <= 1.0:
        raise MotionError(f"{_refusal(motion, accuracy)}; {advise(motion)}")
    return accuracy


def design_payload_motion(
    motion: PayloadMotion, progress: Progress = ignore_progress
) -> tuple[DesignResult, PayloadAccuracy]:
    """Design the motion that determines the payload best, and compute its accuracy.

    Raises:
        MotionError: no motion within limits and free space was found, or mass or first moments will not be found.
        UsageError: demands that contradict one another.
    """
    settings, model = motion.settings, motion.window_model
    reduced = ReducedRegressor.from_regressor(Regressor.from_parameters(motion.arm)).regressor
    task = make_design_task(settings, model, reduced, motion.arm, target=_target(motion, reduced))
    found = search_design(task.problem, OPTIMIZERS[settings.optimizer], settings.seed, settings.search, progress)
    accuracy = motion.accuracy(found.excitation)
    if not accuracy.worst_ratio <= 1.0:
        raise MotionError(f"{_refusal(motion, accuracy)}; {advise(motion)}")
    return DesignResult(motion.model, settings, task, found), accuracy


def _refusal(motion: PayloadMotion, accuracy: PayloadAccuracy) -> str:
    """Parameters that the configuration does not determine, and axes that are vertical."""
    bodies = [motion.model.body_names.index(name) for name in motion.moving]
    turned = Kinematics(motion.model).poses(motion.position[:, None]).rotation[0, bodies]
    axes = np.einsum("bij,bj->bi", turned, motion.model.axis[bodies])
    down = motion.model.gravity / max(float(np.linalg.norm(motion.model.gravity)), 1e-9)
    vertical = [name for name, cosine in zip(motion.moving, np.abs(axes @ down), strict=True) if cosine > VERTICAL]
    symbols = ", ".join(symbol for symbol in INERTIAL_SYMBOLS[:4] if symbol in accuracy.missing)
    why = f" (vertical axes: {', '.join(vertical)})" if vertical else ""
    return (
        f"in this configuration the motion of {', '.join(motion.moving)} does not determine {symbols} of a payload of "
        f"{motion.expected_mass:g} kg{why}"
    )


def advise(motion: PayloadMotion) -> str:
    """Change that makes a payload identifiable, as an instruction: another configuration, or another joint that moves.

    Collisions are not checked.
    """
    best, words = np.inf, "move the payload to another link, or record a motion of all joints"
    for name in motion._joints_before:
        for turn in (*TURNS_RAD, *(-turn for turn in TURNS_RAD)):
            ratio = _tried(motion, name, turn)
            if ratio < best:
                best = ratio
                words = f"turn {name} by {turn:+g} rad"
    if best <= 1.0:
        return words
    further = [name for name in motion._joints_before if name not in motion.moving]
    for name in further[:2]:
        moved = replace(motion, joints=(*motion.moving, name))
        if _ratio(moved) <= 1.0:
            return f"let {name} move as well (parameter moving_joints)"
    return "widen the window, record longer, or let further joints move (parameter moving_joints)"


def _tried(motion: PayloadMotion, name: str, turn: float) -> float:
    """Worst ratio of the accuracy with a joint turned; infinite where the joint cannot be."""
    number = motion.model.joint_names.index(name)
    position = motion.position.copy()
    position[number] += turn
    limits, margin = motion.model.limits, motion.settings.margin + 0.5 * motion.window
    if not limits.lower[number] + margin <= position[number] <= limits.upper[number] - margin:
        return float(np.inf)
    return _ratio(replace(motion, position=position))


def _ratio(motion: PayloadMotion) -> float:
    try:
        return _reachable(motion).worst_ratio
    except MotionError:
        return float(np.inf)


def _reachable(motion: PayloadMotion) -> PayloadAccuracy:
    """Best accuracy of random motions within the window.

    Raises:
        MotionError: a joint is at a position limit.
    """
    limits, _ = make_motion_limits(motion.settings, motion.window_model)
    demand = replace(motion.settings.demand, posture=tuple(motion.position.tolist()))
    family, rng = make_parametrization(motion.settings.form, limits, demand), np.random.default_rng(0)
    drawn = [motion.accuracy(family.trajectory(family.random(rng, 1.0))) for _ in range(DRAWS)]
    return min(drawn, key=lambda accuracy: accuracy.worst_ratio)


def _target(motion: PayloadMotion, regressor: Regressor) -> BaseParameters:
    """Parameters that the motion is designed for: those of the payload, and the friction of the moving joints.

    Parameters that the moving joints cannot determine in any motion are left out.
    """
    body, bodies = motion.at.body, 10 * len(motion.model.body_names)
    friction = find_friction_columns(regressor)
    places = [
        bodies + number
        for number, column in enumerate(regressor.term_columns)
        if column.coordinate.name in motion.moving and (friction[bodies + number] or column.term.name == "offset")
    ]
    columns = np.array([*range(10 * body, 10 * body + 10), *places], dtype=np.int64)
    mapping = np.zeros((len(columns), len(regressor.names)))
    mapping[np.arange(len(columns)), columns] = 1.0
    names = tuple(regressor.names[column] for column in columns)
    units = (*INERTIAL_UNITS, *(regressor.units[column] for column in places))
    every = BaseParameters(names, names, units, columns, mapping, regressor.names)
    limits, _ = make_motion_limits(motion.settings, motion.window_model)
    demand = replace(motion.settings.demand, posture=tuple(motion.position.tolist()))
    family, rng = make_parametrization(motion.settings.form, limits, demand), np.random.default_rng(0)
    times = (np.arange(SAMPLES) + 0.5) / SAMPLES * family.duration
    information = Information(regressor, every, find_torque_noise(motion.settings.noise, motion.model))
    drawn = [Motion(*family.sample(family.random(rng, 1.0), times)[:3]) for _ in range(DRAWS)]
    hidden = find_unexcited(np.sum([information.matrix(one) for one in drawn], axis=0), names)
    return every.only(np.flatnonzero([name not in hidden for name in names]))
