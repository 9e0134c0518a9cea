# SPDX-License-Identifier: Apache-2.0
"""Preparation of a design: the optimization problem for a robot, its terms and the user's settings."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.regressor import Regressor, find_inertia_rows, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Term, Viscous
from robot_dyn_id.errors import MotionError, UsageError, suggest_known
from robot_dyn_id.excitation.center import DIGITS, Load, choose_center
from robot_dyn_id.excitation.collision.clearance import NOT_CHECKED, UNCHECKED, Clearance
from robot_dyn_id.excitation.collision.obstacles import Surroundings
from robot_dyn_id.excitation.collision.workspace import Workspace
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.joint_requirements import EffortLimits, ExcludedBand, JointLimits
from robot_dyn_id.excitation.design.objectives import OBJECTIVES, Objective, a_optimal, l_optimal
from robot_dyn_id.excitation.design.postures import choose_postures
from robot_dyn_id.excitation.design.problem import COARSE_SAMPLES, DesignProblem
from robot_dyn_id.excitation.design.reduction import EarlierFit, ReducedRegressor
from robot_dyn_id.excitation.design.requirement import Requirement
from robot_dyn_id.excitation.design.settings import FEWEST_SAMPLES, DesignSettings
from robot_dyn_id.excitation.design.space_requirements import MinimumDistance, WorkspaceLimits
from robot_dyn_id.excitation.design.torques import TorqueModel
from robot_dyn_id.excitation.forms.registry import make_parametrization
from robot_dyn_id.excitation.limits import DEFAULT_ACCELERATION, REST_SPEED, MotionLimits, scale_effort_limits
from robot_dyn_id.excitation.parametrization import Demand, Parametrization, find_moving_joints
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import BaseParameters, ParameterSet

DEFAULT_NOISE_RATIO = 0.01
"""Default torque noise relative to a joint's effort limit [-]; without an effort limit the noise is 1 N m or N."""

RISE_TIME_S = 0.5
"""Time to reach the velocity limit from rest, which defines the acceleration limit of joints without one [s].

It is bounded by `DEFAULT_ACCELERATION`, the default limit of the node.
"""

ACTUATOR_TERMS: tuple[Term, ...] = (RotorInertia(), Viscous(), Coulomb(), Offset())
"""Terms of a joint that stand for its actuator."""

INERTIA_POSES = 20
"""Number of configurations in which `joint_inertias` counts the diagonal of the mass matrix."""

TARGETED_PARAMETERS = 10
"""Number of parameters that a motion after an earlier recording targets: those whose errors change the torque most."""


def make_motion_limits(settings: DesignSettings, model: RobotModel) -> tuple[MotionLimits, tuple[str, ...]]:
    """Motion limits of the joints.

    Args:
        settings: settings of the design.
        model: robot model.

    Returns:
        The limits, and a note for the joints of every limit that had to be assumed.

    Raises:
        RobotDynIdError: the limits do not allow a joint to move.
    """
    acceleration = make_joint_array(settings.acceleration, model.joint_names, "acceleration", math.nan)
    velocity = np.where(np.isfinite(model.limits.velocity), model.limits.velocity, 1.0)
    fallback = np.minimum(velocity / RISE_TIME_S, DEFAULT_ACCELERATION)
    assumed = np.isnan(acceleration)
    joints_of: dict[str, list[str]] = {}
    for j in np.flatnonzero(assumed):
        joints_of.setdefault(f"{fallback[j]:.3g} {model.position_units[j]}/s^2", []).append(model.joint_names[j])
    notes = tuple(
        f"{', '.join(joints)}: no acceleration limit given; {limit} is assumed" for limit, joints in joints_of.items()
    )
    jerk = make_joint_array(settings.jerk, model.joint_names, "jerk", math.inf)
    bound = np.where(assumed, fallback, acceleration).tolist()
    return MotionLimits.from_model(model, bound, settings.velocity_scale, settings.margin, jerk.tolist()), notes


@dataclass(frozen=True)
class DesignTask:
    """A design problem with the data needed to present its solution.

    Attributes:
        problem: optimization problem.
        objective: name of the objective.
        limits: motion limits of the joints.
        center: configuration about which the joints move [rad or m], shape (n,).
        torques: model of the torques needed by a motion, including the payload.
        effort: effort limits [N m or N], shape (n,); infinite for joints without a limit.
        clearance: collision check; None if collisions are not checked.
        surroundings: surroundings of the robot, stored with the motion.
        notes: assumed limits, terms that are left out, and collision pairs that are not checked.
        usage: shares of the rated speeds and efforts that the motion may use, and the friction in them, in words.
        earlier: earlier identification whose information is added to that of the motion; None: none is.
    """

    problem: DesignProblem
    objective: str
    limits: MotionLimits
    center: Array
    torques: TorqueModel
    effort: Array
    clearance: Clearance | None
    surroundings: Surroundings
    notes: tuple[str, ...]
    usage: str
    earlier: EarlierFit | None = None

    @property
    def collision_check(self) -> str:
        """Basis of the collision check, one of `CHECKS`."""
        return NOT_CHECKED if self.clearance is None else self.clearance.basis

    @property
    def collision_note(self) -> str:
        """Note on the collision check for the user; empty if all links have shapes of their own."""
        if self.clearance is None:
            return f"{UNCHECKED}: the clearance is 0"
        return self.clearance.note


def make_design_task(
    settings: DesignSettings,
    model: RobotModel,
    regressor: Regressor,
    prior: ParameterSet | None = None,
    include_prior: bool = False,
    target: BaseParameters | None = None,
) -> DesignTask:
    """Set up the design problem for a robot.

    Args:
        settings: settings of the design.
        model: robot model.
        regressor: regressor of the robot with the terms to be identified.
        prior: earlier identification, used to compute the torques that are limited.
        include_prior: whether the information of the earlier identification is added to that of the motion.
        target: parameters that the motion is designed to identify; None: base parameters of the moving joints.

    Raises:
        RobotDynIdError: settings that contradict the robot or each other, or an earlier identification whose drive
            gains are not known: it predicts currents, which effort limits do not limit.
    """
    limits, notes = make_motion_limits(settings, model)
    if settings.purpose == "actuators":
        regressor = regressor.with_terms(place_terms_on_joints(model, ACTUATOR_TERMS))
    elif settings.purpose == "computed_torque" and not any(term == RotorInertia() for _, term in regressor.terms):
        regressor = regressor.with_terms((*regressor.terms, *place_terms_on_joints(model, (RotorInertia(),))))
    reduced = ReducedRegressor.from_regressor(regressor)
    notes += tuple(f"term {name}: the motion is designed without it" for name in reduced.left_out)
    amplitude = make_joint_array(settings.amplitude, model.joint_names, "amplitude", 0.0)
    demand = replace(settings.demand, amplitude=tuple(amplitude) if settings.amplitude else ())
    moving = find_moving_joints(limits, demand).tolist()
    surroundings = design_surroundings(settings)
    clearance = make_clearance(settings, model, surroundings) if settings.clearance > 0.0 else None
    torques = _torque_model(settings, model, prior)
    effort = scale_effort_limits(model.limits.effort, settings.effort_scale)
    posture, remark = _posture(settings, model, limits, demand, clearance, _load(model, torques, effort))
    notes += (remark,) if remark else ()
    demand = replace(demand, posture=posture)
    base = target or _select_parameters(settings, _list_parameters(settings, reduced.regressor, moving))
    earlier = EarlierFit.from_parameters(prior, reduced, base) if prior and include_prior else None
    information = Information(reduced.regressor, base, find_torque_noise(settings.noise, model))
    demand = choose_postures(settings.form, demand, limits, information)
    family = make_parametrization(settings.form, limits, demand)
    check_waves(family, limits, settings.rate)
    complete = not (settings.identified or settings.parameters or earlier)
    must_move = np.array(moving if complete else [], dtype=np.int64)
    if not demand.free_period:
        check_travel(limits, family.duration, must_move)
    requirements = list(_requirements(settings, model, limits, family, clearance))
    if np.isfinite(effort).any():
        requirements.insert(1, EffortLimits(torques, effort))
    name, objective = _objective(settings, information, earlier)
    problem = DesignProblem(
        family,
        information,
        objective,
        limits,
        tuple(requirements),
        settings.rate,
        np.zeros((len(base.names),) * 2) if earlier is None else earlier.information,
        must_move,
    )
    notes = (*notes, *(clearance.notes if clearance else ()))
    usage = _usage(settings, torques, effort)
    center, _ = limits.center_and_reach(demand.posture)
    return DesignTask(problem, name, limits, center, torques, effort, clearance, surroundings, notes, usage, earlier)


def _usage(settings: DesignSettings, torques: TorqueModel, effort: Array) -> str:
    """Shares of the limits that a motion may use, in words."""
    speeds = f"limits: at most {settings.velocity_scale:.0%} (velocity_scale) of the rated or given speeds"
    if not np.isfinite(effort).any():
        return f"{speeds}; efforts are not limited"
    return f"{speeds} and {settings.effort_scale:.0%} (effort_scale) of such efforts, with {torques.friction}"


def _load(model: RobotModel, torques: TorqueModel, effort: Array) -> Load | None:
    """Static efforts and their limits; None if efforts are not limited."""
    return Load(torques.at_rest, effort, model.effort_units) if np.isfinite(effort).any() else None


def _posture(
    settings: DesignSettings,
    model: RobotModel,
    limits: MotionLimits,
    demand: Demand,
    clearance: Clearance | None,
    load: Load | None,
) -> tuple[tuple[float, ...], str]:
    """Center of the motion, and a note if it is another one than the user expects.

    Raises:
        UsageError: positions of some joints only.
        MotionError: the given configuration collides, or none has free space around it.
    """
    given = _positions(settings.posture, model, "posture")
    if clearance is None or demand.free_center:
        return given, ""
    if given:
        position, _ = limits.center_and_reach(given)
        found = clearance.find_nearest(position[:, None])
        if found.distance < found.least:
            apart = (
                f"are {found.distance:.3g} m apart" if found.distance >= 0.0 else f"overlap by {-found.distance:.3g} m"
            )
            raise MotionError(
                f"posture: {found.pair} {apart} in this configuration, and {found.least:g} m is the clearance; choose "
                "another one, a smaller clearance, or leave the key out"
            )
        return given, ""
    moving = np.isin(np.arange(len(limits.joint_names)), find_moving_joints(limits, demand))
    center = choose_center(limits, clearance, load, moving)
    line = format_posture(model.joint_names, center.position)
    if center.overloaded:
        cure = "raise the efforts (effort_limit, effort_scale) if the joints can hold the arm"
    else:
        cure = "correct the surroundings (ground: false if z = 0 of the base is free, ground: -0.5 if it is lower)"
    chosen = center.replace_middle(f"{cure}, or give a configuration in the design file, with your own values:\n{line}")
    return chosen, f"posture: {center.remark}, and to be changed in the design file: {line}" if chosen else ""


def format_posture(joint_names: Sequence[str], position: Array) -> str:
    """Line of a design file with a configuration [rad or m]."""
    pairs = ", ".join(f"{name}: {value:.{DIGITS}f}" for name, value in zip(joint_names, position + 0.0, strict=True))
    return f"posture: {{{pairs}}}"


def check_waves(family: Parametrization, limits: MotionLimits, rate: float) -> None:
    """Check that a recording can show the motions of a family, and that they move the robot.

    Args:
        family: family of motions.
        limits: motion limits of the joints.
        rate: sampling rate of the recording [Hz].

    Raises:
        UsageError: too few samples of the fastest wave, or no motion within the limits is faster than noise.
    """
    x = family.random(np.random.default_rng(0), 1.0)
    trajectory = family.trajectory(x)
    samples = rate * trajectory.fastest
    if 0.0 < samples < FEWEST_SAMPLES:
        raise UsageError(
            f"the fastest wave of the motion takes {trajectory.fastest:.3g} s: {samples:.2g} samples at the rate of "
            f"{rate:g} Hz, fewer than {FEWEST_SAMPLES}; choose a longer period, fewer "
            "harmonics or lower frequencies, or give the rate of your recording (rate)"
        )
    speed = np.abs(family.sample(x, np.linspace(0.0, family.duration, COARSE_SAMPLES))[1]).max(axis=1)
    slow = (speed < REST_SPEED) & (speed < 0.5 * limits.velocity)
    if slow.all():
        raise UsageError(
            f"a motion of {family.duration:.3g} s within the limits is not faster than {speed.max():.2g} rad/s or m/s, "
            f"as noise is (below {REST_SPEED:g}): choose a longer period if the acceleration limits it, a shorter "
            "one if the range does"
        )


def check_travel(limits: MotionLimits, duration: float, joints: Integers) -> None:
    """Check that the limits allow joints to move as far as a recording has to show.

    Args:
        limits: motion limits of the joints.
        duration: duration of the motion [s].
        joints: indices of the joints that have to move.

    Raises:
        MotionError: a joint cannot; names it.
    """
    by_rates = np.minimum(limits.velocity * duration, limits.acceleration * duration**2 / 4.0)
    resting = limits.list_barely_moving(np.minimum(limits.upper - limits.lower, by_rates), joints)
    if resting:
        raise MotionError(
            f"within the limits of position, velocity and acceleration joints move too little in {duration:.3g} s for "
            f"friction and inertia to be identifiable: at most {', '.join(resting)}; give larger limits "
            "(velocity_limit, velocity_scale, acceleration, margin) or a longer period, or leave them out (joints)"
        )


def _positions(values: Mapping[str, float], model: RobotModel, key: str) -> tuple[float, ...]:
    """Positions of all joints in the model's order; empty if none are given."""
    given = make_joint_array(values, model.joint_names, key, math.nan)
    if values and np.isnan(given).any():
        missing = [name for name, value in zip(model.joint_names, given, strict=True) if math.isnan(value)]
        raise UsageError(f"{key}: the position of {', '.join(missing)} is missing; give all joints or none")
    return tuple(given) if values else ()


def _list_parameters(settings: DesignSettings, regressor: Regressor, moving: Sequence[int]) -> BaseParameters:
    """Base parameters of the moving joints, or of their actuators alone."""
    if settings.purpose != "actuators":
        return compute_base_parameters(regressor, moving=moving)
    bodies, joints = 10 * len(regressor.model.body_names), [regressor.model.joint_names[joint] for joint in moving]
    places = [bodies + place for place, column in enumerate(regressor.term_columns) if column.coordinate.name in joints]
    columns = np.array(places, dtype=np.int64)
    mapping = np.zeros((len(columns), len(regressor.names)))
    mapping[np.arange(len(columns)), columns] = 1.0
    names, units = (tuple(values[place] for place in places) for values in (regressor.names, regressor.units))
    return BaseParameters(names, names, units, columns, mapping, regressor.names)


def _select_parameters(settings: DesignSettings, base: BaseParameters) -> BaseParameters:
    """Base parameters that the motion is designed to identify."""
    for pattern in settings.identified:
        if not fnmatch.filter(base.names, pattern):
            raise UsageError(f"identified: no base parameter matches {pattern}; {suggest_known(pattern, base.names)}")
    wanted = [any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.identified) for name in base.names]
    return base.only(np.flatnonzero(wanted)) if settings.identified else base


def find_least_known_parameters(earlier: EarlierFit) -> tuple[str, ...]:
    """Names of the parameters of an earlier identification whose errors change the torque most, in descending order."""
    order = np.argsort(-earlier.torque_shares, kind="stable")
    return tuple(earlier.names[number] for number in order[:TARGETED_PARAMETERS])


def _objective(settings: DesignSettings, information: Information, earlier: EarlierFit | None) -> tuple[str, Objective]:
    names = information.names
    name = settings.objective or ("d_optimal" if earlier is None else "a_optimal")
    chosen = settings.parameters or (
        () if earlier is None or settings.objective else find_least_known_parameters(earlier)
    )
    for wanted in chosen:
        if wanted not in names:
            raise UsageError(f"parameters: {wanted} is not a base parameter; {suggest_known(wanted, list(names))}")
    if name == "joint_inertias":
        return name, partial(l_optimal, combinations=_combine_joint_inertias(information))
    if name != "a_optimal":
        return name, OBJECTIVES[name]
    places = np.array([list(names).index(wanted) for wanted in chosen]) if chosen else None
    return name, partial(a_optimal, chosen=places, scale=1.0 if earlier is None else _torque_scale(earlier))


def _combine_joint_inertias(information: Information) -> Array:
    """Diagonal of the mass matrix in some configurations, as combinations of the base parameters, shape (k, p).

    Each is relative to its value for the bodies of the robot description, or for those that its geometry suggests.
    """
    regressor, base = information.regressor, information.base
    expected = BodyPrior.from_model(regressor.model).bodies.ravel()
    rows = find_inertia_rows(regressor, draw_random_motion(regressor.model, INERTIA_POSES))
    return np.concatenate([(own[base.independent] / (expected @ own[: len(expected)])).T for own in rows])


def _torque_scale(earlier: EarlierFit) -> Array:
    """Change of each parameter that changes the torque of a joint by its own size, shape (p,); 1 where not known."""
    shares, deviations = earlier.torque_shares, earlier.standard_deviations
    known = np.isfinite(shares) & (shares > 0.0)
    return np.asarray(np.divide(deviations, shares, out=np.ones_like(deviations), where=known))


def design_surroundings(settings: DesignSettings) -> Surroundings:
    """Surroundings of the robot in a design."""
    return Surroundings(settings.ground, tuple(settings.obstacles), tuple(settings.allowed), settings.clearance)


def make_clearance(settings: DesignSettings, model: RobotModel, surroundings: Surroundings) -> Clearance:
    """Distances of the robot in its surroundings, with the shapes of a design."""
    return Clearance(
        model,
        surroundings.scene(),
        folders=settings.folders,
        srdf=settings.srdf or None,
        stand_ins=settings.stand_ins != "none",
    )


def _requirements(
    settings: DesignSettings,
    model: RobotModel,
    limits: MotionLimits,
    family: Parametrization,
    clearance: Clearance | None,
) -> Iterator[Requirement]:
    """Requirements except effort limits."""
    yield JointLimits(limits)
    if clearance is not None and clearance.pairs:
        yield MinimumDistance(clearance, family)
    if settings.workspace:
        box = settings.workspace
        yield WorkspaceLimits(Workspace(model, box["link"], np.array(box["lower"]), np.array(box["upper"])))
    if settings.quiet_band:
        yield ExcludedBand(limits, family.duration, *settings.quiet_band)


def _torque_model(settings: DesignSettings, model: RobotModel, prior: ParameterSet | None) -> TorqueModel:
    torques = TorqueModel.from_model(model, settings.friction) if prior is None else TorqueModel.from_parameters(prior)
    return torques.with_load(make_payload_parameters(model, settings.payload)) if settings.payload else torques


def make_payload_parameters(model: RobotModel, payload: Mapping[str, Any]) -> Array:
    """Standard parameters of a point mass attached to a link.

    Args:
        model: robot model with b bodies.
        payload: keys `link`, `mass` [kg] and `position` in the link frame [m].

    Returns:
        Contribution to the standard parameters of all bodies, shape (10 b,).

    Raises:
        UsageError: invalid mass or position, or a link that does not move.
        ModelError: the link does not exist.
    """
    try:
        mass, at = float(payload["mass"]), np.array(payload["position"], dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("payload: mass must be a number and position three numbers [kg, m]") from None
    placement = find_placement_of(model, str(payload["link"]))
    if not (mass > 0.0 and at.shape == (3,)) or placement.body < 0:
        raise UsageError("payload: needs a positive mass, a position of three numbers, and a link that moves")
    x, y, z = placement.rotation @ at + placement.position
    inertia = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    parameters = np.zeros((len(model.body_names), 10))
    parameters[placement.body] = mass * np.array([1.0, x, y, z, *inertia])
    return parameters.ravel()


def list_given_limits(values: Mapping[str, float], model: RobotModel, key: str) -> dict[str, float]:
    """Limits by joint name, for the joints for which one is given.

    Args:
        values: limits by joint name; `all` applies to the joints that are not named.
        model: robot model.
        key: name of the setting, for messages.

    Raises:
        UsageError: a joint name is unknown, or a limit is not positive.
    """
    limits = make_joint_array(values, model.joint_names, key, math.nan)
    for name, value in zip(model.joint_names, limits, strict=True):
        if not (math.isnan(value) or 0.0 < value < math.inf):
            raise UsageError(f"{key}.{name}: must be a positive number, not {value:g}")
    return {name: float(value) for name, value in zip(model.joint_names, limits, strict=True) if not math.isnan(value)}


def find_torque_noise(values: Mapping[str, float], model: RobotModel) -> Array:
    """Standard deviation of the torque noise [N m or N], shape (n,): as given, or relative to the effort limits."""
    effort = np.where(
        np.isfinite(model.limits.effort) & (model.limits.effort > 0.0), model.limits.effort, 1.0 / DEFAULT_NOISE_RATIO
    )
    given = make_joint_array(values, model.joint_names, "noise", math.nan)
    return np.where(np.isnan(given), DEFAULT_NOISE_RATIO * effort, given)
