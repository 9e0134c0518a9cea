# SPDX-License-Identifier: Apache-2.0
"""A design problem from the demands of a person, for one robot with the terms that are to be identified."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import BaseParameters, base_parameters
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, UsageError, suggestion
from robot_dyn_id.excitation.collision.clearance import NOT_CHECKED, UNCHECKED, Clearance
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.collision.workspace import Workspace
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.joint_requirements import EffortLimits, ExcludedBand, JointLimits, Torques
from robot_dyn_id.excitation.design.objectives import OBJECTIVES, Objective, a_optimal
from robot_dyn_id.excitation.design.problem import DesignProblem
from robot_dyn_id.excitation.design.requirement import Requirement
from robot_dyn_id.excitation.design.settings import DesignSettings
from robot_dyn_id.excitation.design.space_requirements import InWorkspace, Separation
from robot_dyn_id.excitation.forms.registry import make_parametrization
from robot_dyn_id.excitation.limits import DEFAULT_ACCELERATION, MotionLimits
from robot_dyn_id.excitation.parametrization import moving_joints
from robot_dyn_id.model.kinematics import placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet

NOISE = 0.01
"""Torque noise where none is given, as a share of a joint's effort limit; 1 N m or N where it has none."""


RISE = 0.5
"""Where the acceleration of a joint is not limited, it may reach its velocity limit in this time [s], within
`DEFAULT_ACCELERATION`, which is all that the node allows by default."""

WEAKEST = 10
"""After an earlier recording, the motion is to tell so many parameters: those known worst as a share of their value."""


def motion_limits(settings: DesignSettings, model: RobotModel) -> tuple[MotionLimits, tuple[str, ...]]:
    """Limits of the joints, and a line for every limit that had to be assumed.

    Raises:
        RobotDynIdError: limits that leave no motion.
    """
    acceleration = per_joint(settings.acceleration, model, "acceleration", math.nan)
    velocity = np.where(np.isfinite(model.limits.velocity), model.limits.velocity, 1.0)
    fallback = np.minimum(velocity / RISE, DEFAULT_ACCELERATION)
    assumed = np.isnan(acceleration)
    notes = tuple(
        f"joint {model.joint_names[j]}: no acceleration limit is given, and a URDF has none; {fallback[j]:.3g} "
        f"{'m' if model.effort_units[j] == 'N' else 'rad'}/s^2 is assumed"
        for j in np.flatnonzero(assumed)
    )
    jerk = per_joint(settings.jerk, model, "jerk", math.inf)
    bound = np.where(assumed, fallback, acceleration).tolist()
    return MotionLimits.from_model(model, bound, settings.velocity_scale, settings.margin, jerk.tolist()), notes


@dataclass(frozen=True)
class DesignTask:
    """What is to be searched, and what those who show it need.

    Attributes:
        problem: for a search.
        objective: its name.
        limits: of the joints.
        torques: what a motion needs, payload included.
        effort: limits of it [N m or N], shape (n,); infinite where there is none.
        clearance: None where collisions are left out.
        surroundings: of the robot, for the file of the motion.
        notes: what had to be assumed, and what is not checked.
    """

    problem: DesignProblem
    objective: str
    limits: MotionLimits
    torques: Torques
    effort: Array
    clearance: Clearance | None
    surroundings: Surroundings
    notes: tuple[str, ...]

    @property
    def collision_check(self) -> str:
        """What the motion is compared with, one of `CHECKS`."""
        return NOT_CHECKED if self.clearance is None else self.clearance.basis

    @property
    def collision_words(self) -> str:
        """The same in words; empty where all links have shapes of their own."""
        if self.clearance is None:
            return f"{UNCHECKED}: the clearance is 0"
        return self.clearance.words


def design_task(
    settings: DesignSettings,
    model: RobotModel,
    regressor: Regressor,
    prior: ParameterSet | None = None,
    after: bool = False,
) -> DesignTask:
    """What is to be searched, for one robot.

    Args:
        settings: the demands.
        model: the robot.
        regressor: of it, with the terms that are to be identified.
        prior: an earlier identification: its torques are those that are limited.
        after: whether what it already tells counts.

    Raises:
        RobotDynIdError: demands that do not fit the robot or one another.
    """
    limits, notes = motion_limits(settings, model)
    signals = sorted({term.name for _, term in regressor.terms if term.signal})
    if signals:
        raise UsageError(f"a motion cannot be designed for the term {signals[0]}, which depends on more than it")
    posture = _positions(settings.posture, model, "posture")
    amplitude = per_joint(settings.amplitude, model, "amplitude", 0.0)
    demand = replace(settings.demand, posture=posture, amplitude=tuple(amplitude) if settings.amplitude else ())
    base = _told(settings, base_parameters(regressor, moving=moving_joints(limits, demand).tolist()))
    known = prior_information(prior, base.names) if prior and after else np.zeros((len(base.names),) * 2)
    family = make_parametrization(settings.form, limits, demand)
    surroundings = Surroundings(settings.ground, tuple(settings.obstacles), tuple(settings.allowed), settings.clearance)
    clearance = _clearance(settings, model, surroundings)
    torques, scale = _torques(settings, model, prior), settings.effort_scale
    effort = scale * model.limits.effort if scale > 0.0 else np.full(len(model.joint_names), math.inf)
    requirements = list(_requirements(settings, model, limits, family.duration, clearance))
    if np.isfinite(effort).any():
        requirements.insert(1, EffortLimits(torques, effort))
    name, objective = _objective(settings, base.names, prior if after else None)
    problem = DesignProblem(
        family,
        Information(regressor, base, torque_noise(settings.noise, model)),
        objective,
        limits,
        tuple(requirements),
        settings.rate,
        known,
    )
    notes = (*notes, *(clearance.notes if clearance else ()))
    return DesignTask(problem, name, limits, torques, effort, clearance, surroundings, notes)


def _positions(values: Mapping[str, float], model: RobotModel, key: str) -> tuple[float, ...]:
    """One position for every joint, or none at all."""
    given = per_joint(values, model, key, math.nan)
    if values and np.isnan(given).any():
        missing = [name for name, value in zip(model.joint_names, given, strict=True) if math.isnan(value)]
        raise UsageError(f"{key}: give a position for {', '.join(missing)} too, or none at all")
    return tuple(given) if values else ()


def _told(settings: DesignSettings, base: BaseParameters) -> BaseParameters:
    """The base parameters that are to be told."""
    for pattern in settings.identified:
        if not fnmatch.filter(base.names, pattern):
            raise UsageError(f"identified: no base parameter is called {pattern}; {suggestion(pattern, base.names)}")
    wanted = [any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.identified) for name in base.names]
    return base.only(np.flatnonzero(wanted)) if settings.identified else base


def least_known_parameters(prior: ParameterSet) -> tuple[str, ...]:
    """The parameters that an earlier identification knows worst, as a share of their values, the worst first."""
    with np.errstate(divide="ignore"):
        share = prior.standard_deviations / np.abs(prior.values)
    return tuple(prior.names[number] for number in np.argsort(-share, kind="stable")[:WEAKEST])


def _objective(settings: DesignSettings, names: Sequence[str], prior: ParameterSet | None) -> tuple[str, Objective]:
    name = settings.objective or ("d_optimal" if prior is None else "a_optimal")
    chosen = settings.parameters or (() if prior is None or settings.objective else least_known_parameters(prior))
    for wanted in chosen:
        if wanted not in names:
            raise UsageError(f"parameters: {wanted} is not a base parameter; {suggestion(wanted, list(names))}")
    if name != "a_optimal":
        return name, OBJECTIVES[name]
    places = np.array([list(names).index(wanted) for wanted in chosen]) if chosen else None
    # an error counts as a share of the value; of a value near 0, as a share of its own uncertainty
    scale = 1.0 if prior is None else np.maximum(np.abs(prior.values), prior.standard_deviations)
    usable = np.where(np.isfinite(scale) & (scale > 0.0), scale, 1.0)
    return name, partial(a_optimal, chosen=places, scale=usable)


def _clearance(settings: DesignSettings, model: RobotModel, surroundings: Surroundings) -> Clearance | None:
    obstacles, allowed = surroundings.obstacles, surroundings.allowed
    if settings.clearance <= 0.0:
        return None
    stand_ins = settings.stand_ins != "none"
    return Clearance(
        model,
        obstacles,
        settings.folders,
        allowed,
        settings.srdf or None,
        stand_ins=stand_ins,
        ground=surroundings.ground,
        margin=surroundings.clearance,
    )


def _requirements(
    settings: DesignSettings,
    model: RobotModel,
    limits: MotionLimits,
    duration: float,
    clearance: Clearance | None,
) -> Iterator[Requirement]:
    """All but the efforts."""
    yield JointLimits(limits)
    if clearance is not None and clearance.pairs:
        yield Separation(clearance, settings.clearance)
    if settings.workspace:
        room = settings.workspace
        yield InWorkspace(Workspace(model, room["link"], np.array(room["lower"]), np.array(room["upper"])))
    if settings.quiet_band:
        yield ExcludedBand(limits, duration, *settings.quiet_band)


def _torques(settings: DesignSettings, model: RobotModel, prior: ParameterSet | None) -> Torques:
    if prior is None:
        regressor, parameters = Regressor(model), model.inertial_parameters.copy()
    else:
        regressor = Regressor.from_parameters(prior)
        parameters = np.concatenate([prior.standard_parameters, prior.term_values])
    if settings.payload:
        parameters[: 10 * len(model.body_names)] += payload_parameters(model, settings.payload)
    return Torques(regressor, parameters)


def payload_parameters(model: RobotModel, payload: Mapping[str, Any]) -> Array:
    """Standard parameters of a point mass on a link, shape (10 b,).

    Raises:
        UsageError: a mass or position that is none.
        ModelError: no such link.
    """
    try:
        mass, at = float(payload["mass"]), np.array(payload["position"], dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("payload: mass must be a number and position three numbers [kg, m]") from None
    placement = placement_of(model, str(payload["link"]))
    if not (mass > 0.0 and at.shape == (3,)) or placement.body < 0:
        raise UsageError("payload: needs a positive mass, three numbers for its position, and a link that moves")
    x, y, z = placement.rotation @ at + placement.position
    inertia = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    parameters = np.zeros((len(model.body_names), 10))
    parameters[placement.body] = mass * np.array([1.0, x, y, z, *inertia])
    return parameters.ravel()


def per_joint(values: Mapping[str, float], model: RobotModel, key: str, default: float) -> Array:
    """Values by joint name, `all` for those that are not named, in the model's order, shape (n,).

    Raises:
        UsageError: a joint that the robot does not have, a value that is no number.
    """
    for name, value in values.items():
        if name not in (*model.joint_names, "all"):
            raise UsageError(f"{key}: {name} is not a joint; {suggestion(name, list(model.joint_names))}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{key}.{name}: must be a number, not {value!r}")
    return np.array([float(values.get(name, values.get("all", default))) for name in model.joint_names])


def given_limits(values: Mapping[str, float], model: RobotModel, key: str) -> dict[str, float]:
    """Limits of the joints that have one, by name.

    Raises:
        UsageError: a joint that the robot does not have, or a limit that is not positive.
    """
    limits = per_joint(values, model, key, math.nan)
    for name, value in zip(model.joint_names, limits, strict=True):
        if not (math.isnan(value) or 0.0 < value < math.inf):
            raise UsageError(f"{key}.{name}: must be a positive number, not {value:g}")
    return {name: float(value) for name, value in zip(model.joint_names, limits, strict=True) if not math.isnan(value)}


def torque_noise(values: Mapping[str, float], model: RobotModel) -> Array:
    """Torque noise of every joint, as given or as a share of its effort limit, shape (n,)."""
    effort = np.where(np.isfinite(model.limits.effort) & (model.limits.effort > 0.0), model.limits.effort, 1.0 / NOISE)
    given = per_joint(values, model, "noise", math.nan)
    return np.where(np.isnan(given), NOISE * effort, given)


def prior_information(prior: ParameterSet, names: Sequence[str]) -> Array:
    """What an earlier identification tells, shape (p, p): the inverse of its covariance, 0 where it tells nothing.

    Raises:
        InputError: it has other base parameters.
    """
    if tuple(names) != tuple(prior.names):
        raise InputError(
            "the earlier identification has other base parameters than this design: use the same robot, joints and "
            "terms (--config)"
        )
    known = np.isfinite(prior.standard_deviations) & (prior.standard_deviations > 0.0)
    information = np.zeros((len(names),) * 2)
    information[np.ix_(known, known)] = np.linalg.pinv(prior.covariance[np.ix_(known, known)], hermitian=True)
    return information
