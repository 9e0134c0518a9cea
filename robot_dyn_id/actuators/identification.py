# SPDX-License-Identifier: Apache-2.0
"""Identification of actuators from recordings under position commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.actuators.comparison import compare_fits
from robot_dyn_id.actuators.ends import fit_ends
from robot_dyn_id.actuators.fit import (
    ActuatorFit,
    InitialState,
    LimbMotion,
    correct_steps,
    divide,
    fit_actuators,
    solve_step,
)
from robot_dyn_id.actuators.friction import Added, fit_friction
from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.actuators.links import Links, find_scale, fit_links
from robot_dyn_id.actuators.model import ABSENT, ActuatorModel
from robot_dyn_id.actuators.motion import SHORT_WINDOW_S, CommandedMotion
from robot_dyn_id.actuators.order import find_reference_order
from robot_dyn_id.actuators.rollout import Limb, split_into_limbs
from robot_dyn_id.actuators.spread import (
    PARTS,
    EstimateSpread,
    compare_layouts,
    correlate,
    solve_scaled,
)
from robot_dyn_id.actuators.start import MECHANICAL, find_start
from robot_dyn_id.actuators.uncertainty import ActuatorUncertainty
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.chance import find_critical_ratio
from robot_dyn_id.errors import InputError, UsageError, suggest_known
from robot_dyn_id.identification.selection.engine import LEAST_GAIN
from robot_dyn_id.kernels.actuators import (
    ARMATURE,
    BREAKAWAY,
    COULOMB,
    DELAY,
    KD,
    KINDS,
    KP,
    LIMIT,
    LOAD_COULOMB,
    OFFSET,
    VISCOUS,
)
from robot_dyn_id.model.robot import RobotModel

BLOCK_S = 1.0
"""Length of the blocks of the normal equations [s], of which longer parts are made."""

CORRECTIONS = 2
"""Passes in which the errors of the time steps are subtracted: those of the first are of a fit that has them."""

SHORT_STEPS = 6
"""Most Gauss-Newton steps of the first fit."""

LEAST_MOTION = 1e-3
"""Least range of the positions of a joint [rad or m]: a joint that does not move has no dynamics."""

OF_TYPES = (ARMATURE, VISCOUS, COULOMB, LOAD_COULOMB, BREAKAWAY, KP, KD)
"""Parameters that motors of one type may share; offsets belong to single joints, and delays to the bus."""


@dataclass(frozen=True)
class KnownDrives:
    """Known values of the drives of n joints.

    Attributes:
        kp: gains of positions [N m/rad or N/m], shape (n,); NaN where not known.
        kd: gains of velocities [N m s/rad or N s/m], shape (n,); NaN where not known.
        limit: limits of the effort [N m or N], shape (n,); NaN where not known.
    """

    kp: Array
    kd: Array
    limit: Array

    @classmethod
    def from_gains(
        cls,
        joints: Sequence[str],
        kp: Mapping[str, float],
        kd: Mapping[str, float],
        limit: Mapping[str, float] | None = None,
    ) -> KnownDrives:
        """Values by joint name; joints that are not named have none that is known.

        Raises:
            UsageError: a joint that the robot does not have, or a value that is negative or not a number.
        """
        columns = []
        for name, given in (("kp", kp), ("kd", kd), ("limit", limit or {})):
            for joint, value in given.items():
                if joint not in joints:
                    raise UsageError(f"{name}: {joint} is not a joint of the robot; {suggest_known(joint, joints)}")
                if not 0.0 <= value < np.inf or (name != "kd" and value == 0.0):
                    raise UsageError(f"{name} of {joint} must be a positive number, not {value:g}")
            columns.append(np.array([given.get(joint, np.nan) for joint in joints]))
        return cls(*columns)


@dataclass(frozen=True)
class Shared:
    """Test of whether joints have one value of a parameter.

    Attributes:
        kind: the parameter, one of `KINDS`.
        joints: names of the joints.
        agreed: whether the data agree with one value.
        gain: share of the weighted square errors that single values remove, in parts that they were not fitted to.
        deviation: standard error of the gain.
    """

    kind: str
    joints: tuple[str, ...]
    agreed: bool
    gain: float
    deviation: float


@dataclass(frozen=True)
class ActuatorEstimate:
    """Identified actuators of a robot with n joints.

    Attributes:
        links: the links that were given, or others that predict better.
        actuators: the actuators.
        uncertainty: their uncertainty.
        errors: RMS of the position errors of the joints in the simulation of the recordings [rad or m], shape (n,).
        tracking: RMS of the distance of the measured from the commanded positions [rad or m], shape (n,).
        limited: share of the time in which each joint is at its effort limit, shape (n,).
        ended: share of the time in which each joint is at a stop, or its reference beyond its range, shape (n,).
        largest: largest commanded effort of each joint in the simulation [N m or N], shape (n,).
        loads: smallest and largest load of each joint in it, the torque of the links without acceleration and without
            its sign [N m or N], shape (2, n).
        shared: tests of shared values.
        friction: tests of friction that joints may have.
        recordings: number of recordings.
        order: number of the reference that each joint follows, see `find_reference_order`.
    """

    links: Links
    actuators: ActuatorModel
    uncertainty: ActuatorUncertainty
    errors: Array
    tracking: Array
    limited: Array
    ended: Array
    largest: Array
    loads: Array
    shared: tuple[Shared, ...]
    friction: tuple[Added, ...]
    recordings: int
    order: tuple[int, ...]


def identify(
    model: RobotModel,
    motions: Sequence[CommandedMotion],
    drives: KnownDrives,
    types: Sequence[Sequence[str]] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> ActuatorEstimate:
    """Identify actuators.

    The links are those of the model, or others near them where these predict better. kd and viscous friction have the
    same effect while the effort is not at its limit: where kd is not known and the limit is not reached, it is
    estimated with the viscous friction in it.

    Args:
        model: robot model.
        motions: motions of all its joints; those with the same source are of one recording.
        drives: known values of the drives.
        types: groups of joints whose motors are of one type; their values are shared where the data agree.
        progress: receives what is being done.

    Raises:
        InputError: a joint that does not move, or a simulation that diverges.
    """
    joints = model.joint_names
    _refuse_rest(motions, joints)
    limbs: Sequence[Limb] = split_into_limbs(model)
    stretches: Sequence[LimbMotion] = divide(limbs, motions, joints)
    known = _make_known(joints, drives)
    layout = _make_layout(drives)
    progress("finding a start by least squares on the commanded effort")
    start = find_start(stretches, known, layout)
    layout, values = _leave_out_limits(layout, start.values, np.isinf(start.limit))
    start = ActuatorModel.from_values(joints, values)
    progress(f"fitting {layout.count} parameters to {len(stretches)} simulations")
    one_delay = layout.share(DELAY, range(len(joints)))
    short = divide(limbs, motions, joints, SHORT_WINDOW_S)
    start = fit_actuators(short, start, one_delay, BLOCK_S, max_steps=SHORT_STEPS).actuators
    fit = _fit_from(stretches, start, one_delay)
    measured = stretches
    stretches, fit = correct_steps(measured, fit, CORRECTIONS, BLOCK_S)
    fit = fit_ends(limbs, motions, stretches, fit, BLOCK_S)
    fit = _drop_limits(stretches, fit)
    progress("fitting links near those of the robot description")
    links, stretches, fit = _free_links(model, measured, stretches, fit)
    measured = _move(measured, split_into_limbs(links.robot)) if links.gain else measured
    progress("trying friction that depends on the load, and presliding")
    stretches, fit, friction = fit_friction(measured, stretches, fit, BLOCK_S)
    layout = fit.layout.separate(DELAY)
    fit, shared = _test_delay(stretches, fit, layout)
    fit, tests = _test_types(stretches, fit, list(_find_types(types, joints)))
    shared += tests
    return _conclude(links, stretches, fit, tuple(shared), friction, motions)


def _fit_from(stretches: Sequence[LimbMotion], start: ActuatorModel, layout: ParameterLayout) -> ActuatorFit:
    """Fit from actuators with which no motion was simulated before."""
    initial = [
        InitialState.from_simulation(one.limb, start.select(one.limb.joint_names), one.motion) for one in stretches
    ]
    return fit_actuators(stretches, start, layout, BLOCK_S, initial)


def _free_links(
    model: RobotModel, measured: Sequence[LimbMotion], stretches: Sequence[LimbMotion], fit: ActuatorFit
) -> tuple[Links, Sequence[LimbMotion], ActuatorFit]:
    """Other links as long as they pay in efforts and in simulations, else those given, with windows and fit.

    Actuators that were fitted with wrong links make up for them: the links are fitted again with the new ones.
    """
    limbs = described = split_into_limbs(model)
    measured, stretches = (_move(part, limbs) for part in (measured, stretches))
    links = Links.from_description(model, find_scale(limbs, stretches, fit))
    while True:
        other, start = fit_links(links, described, limbs, stretches, fit)
        if other is links:
            return links, stretches, fit
        moved = split_into_limbs(other.robot)
        try:
            free = _fit_from(_move(stretches, moved), start, fit.layout)
            corrected, free = correct_steps(_move(measured, moved), free, 1, BLOCK_S)
        except InputError:  # the simulation diverges
            return links, stretches, fit
        (tried,) = compare_fits([(stretches, fit), (corrected, free)], BLOCK_S)
        if not tried.pays:
            return links, stretches, fit
        gain = 1.0 - (1.0 - links.gain) * (1.0 - tried.gain)
        limbs, links, stretches, fit = moved, replace(other, gain=gain), corrected, free


def _move(stretches: Sequence[LimbMotion], limbs: Sequence[Limb]) -> list[LimbMotion]:
    """Windows with the limbs of the same joints of another robot."""
    own = {limb.joint_names: limb for limb in limbs}
    return [replace(stretch, limb=own[stretch.limb.joint_names]) for stretch in stretches]


def _refuse_rest(motions: Sequence[CommandedMotion], joints: Sequence[str]) -> None:
    """Refuse joints that do not move, and commands that do not move them.

    Raises:
        InputError: such a joint; commands that are constant, or in degrees.
    """
    sources = ", ".join(dict.fromkeys(motion.source for motion in motions))
    ranges = np.max([np.ptp(motion.q, axis=0) for motion in motions], axis=0)
    commanded = np.max([np.ptp(motion.reference, axis=0) for motion in motions], axis=0)
    if not commanded.any():
        raise InputError(f"{sources}: the commanded positions are constant: nothing moves the robot by command")
    ratio = float(np.median(commanded / np.maximum(ranges, LEAST_MOTION)))
    if ratio > math.sqrt(math.degrees(1.0)):  # closer to degrees than to radians, on a scale of ratios
        raise InputError(
            f"{sources}: commanded positions vary {ratio:.0f} times as far as the measured ones: they appear to be in "
            "degrees; convert them to radians"
        )
    still = [name for name, width in zip(joints, ranges, strict=True) if not width > LEAST_MOTION]
    if still:
        raise InputError(
            f"{sources}: {', '.join(still)} moves by less than {LEAST_MOTION:g} rad or m: record a motion of it, or "
            "fix it (`joints: {NAME: {held: POSITION}}` in the configuration)"
        )


def _make_known(joints: Sequence[str], drives: KnownDrives) -> ActuatorModel:
    values = np.zeros((len(KINDS), len(joints)))
    values[KP], values[KD] = np.nan_to_num(drives.kp), np.nan_to_num(drives.kd)
    for kind, value in ABSENT.items():
        values[KINDS.index(kind)] = value
    values[LIMIT] = np.where(np.isnan(drives.limit), np.inf, drives.limit)
    return ActuatorModel.from_values(joints, values)


def _make_layout(drives: KnownDrives) -> ParameterLayout:
    estimated = np.zeros((len(KINDS), len(drives.kp)), dtype=bool)
    estimated[[ARMATURE, COULOMB, OFFSET, DELAY]] = True
    estimated[KP], estimated[KD] = np.isnan(drives.kp), np.isnan(drives.kd)
    estimated[VISCOUS] = True
    estimated[LIMIT] = np.isnan(drives.limit)
    return ParameterLayout.from_mask(estimated)


def _leave_out_limits(layout: ParameterLayout, values: Array, joints: Mask) -> tuple[ParameterLayout, Array]:
    """Layout and values without the limits of some joints, whose unknown kd is then that of viscous friction too."""
    damped = joints & (layout.index[KD] >= 0)
    values = values.copy()
    values[LIMIT, joints] = ABSENT["limit"]
    values[KD, damped] += values[VISCOUS, damped]
    values[VISCOUS, damped] = 0.0
    return layout.without(LIMIT, joints).without(VISCOUS, damped), values


def _test_delay(
    stretches: Sequence[LimbMotion], fit: ActuatorFit, layout: ParameterLayout
) -> tuple[ActuatorFit, list[Shared]]:
    """Give each joint a delay of its own where that predicts better."""
    joints = fit.actuators.joint_names
    if len(joints) < 2:
        return fit, []
    equations = fit_actuators(stretches, fit.actuators, layout, BLOCK_S, fit.initial, max_steps=0).equations
    found = compare_layouts(equations, fit.actuators.values, layout, fit.layout, name="delay")
    test = Shared("delay", joints, not found.pays, found.gain, found.deviation)
    if test.agreed:
        return fit, [test]
    return fit_actuators(stretches, fit.actuators, layout, BLOCK_S, fit.initial), [test]


def _test_types(
    stretches: Sequence[LimbMotion], fit: ActuatorFit, types: Sequence[Sequence[int]]
) -> tuple[ActuatorFit, list[Shared]]:
    """Share the values of motors of one type as long as single values do not predict better.

    Each sharing is tested together with those that were accepted before: many small losses are one that matters.
    """
    tests, layout, values = [], fit.layout, fit.actuators.values
    tried = [(numbers, kind) for numbers in types for kind in OF_TYPES]
    tried = [(numbers, kind) for numbers, kind in tried if len(np.unique(fit.layout.index[kind, list(numbers)])) > 1]
    for numbers, kind in tried:
        narrow = layout.share(kind, numbers)
        found = compare_layouts(fit.equations, values, fit.layout, narrow, name=KINDS[kind], alternatives=len(tried))
        names = tuple(fit.actuators.joint_names[number] for number in numbers)
        tests.append(Shared(KINDS[kind], names, not found.pays, found.gain, found.deviation))
        if tests[-1].agreed:
            layout = narrow
    if layout.count == fit.layout.count:
        return fit, tests
    start = ActuatorModel.from_values(fit.actuators.joint_names, layout.write(values, layout.read(values)))
    return fit_actuators(stretches, start, layout, BLOCK_S, fit.initial), tests


def _find_types(types: Sequence[Sequence[str]], joints: Sequence[str]) -> Iterator[list[int]]:
    """Numbers of the joints of each type.

    Raises:
        UsageError: a joint that the robot does not have, or one with two types.
    """
    named: dict[str, int] = {}
    for group, names in enumerate(types):
        for name in names:
            if name not in joints:
                raise UsageError(f"types: {name} is not a joint of the robot; {suggest_known(name, joints)}")
            if named.setdefault(name, group) != group:
                raise UsageError(f"types: {name} has two types; name it once")
        yield [joints.index(name) for name in names]


def _drop_limits(stretches: Sequence[LimbMotion], fit: ActuatorFit) -> ActuatorFit:
    """Drop the limits, first all together, without which the square errors grow by less than `LEAST_GAIN`.

    The start proposes those that make the linear errors smaller, and errors of the model have some use for any value.
    """
    joints = np.flatnonzero(fit.layout.index[LIMIT] >= 0)
    trials = [joints] if len(joints) > 1 else []
    for tried in [*trials, *joints[:, None]]:
        if (fit.layout.index[LIMIT, tried] < 0).any():  # dropped with the others
            continue
        layout, values = _leave_out_limits(fit.layout, fit.actuators.values, np.isin(range(len(fit.errors)), tried))
        start = ActuatorModel.from_values(fit.actuators.joint_names, values)
        try:
            without = fit_actuators(stretches, start, layout, BLOCK_S, fit.initial)
        except InputError:  # the drive that is not limited diverges
            continue
        if 2.0 * np.log(without.errors / fit.errors).sum() <= -np.log1p(-LEAST_GAIN):
            fit = without
    return fit


def _conclude(
    links: Links,
    stretches: Sequence[LimbMotion],
    fit: ActuatorFit,
    shared: tuple[Shared, ...],
    friction: tuple[Added, ...],
    motions: Sequence[CommandedMotion],
) -> ActuatorEstimate:
    """Intervals by physics: those of values that are not negative end at zero, and hold the estimate."""
    spread, layout = EstimateSpread.from_equations(fit.equations), fit.layout
    now, bounded = fit.parameters, layout.bounded
    # where a value is at its bound, the gradient says how far below the data want it; where the fit has ended before
    # its step was small, the minimum may be as far away as the step
    after = now + _newton(fit)
    of_links = np.zeros(fit.actuators.values.shape)
    of_links[list(MECHANICAL)] = find_critical_ratio(PARTS, 2) * links.deviations
    half_width = np.hypot(spread.half_width, layout.read(of_links))
    low, high = np.minimum(now, after) - half_width, np.maximum(now, after) + half_width
    low = np.where(bounded, np.maximum(low, 0.0), low)
    # a bound that the data contradict does not make a value certain: the model errs, and by more than the half width
    high = np.where(bounded & (now == 0.0), np.maximum(after, 0.0) + half_width, high)
    none = np.full(fit.actuators.values.shape, np.nan)
    return ActuatorEstimate(
        links,
        fit.actuators,
        ActuatorUncertainty(
            layout.index,
            layout.write(none, low),
            layout.write(none, high),
            layout.write(none, spread.between),
            correlate(fit.equations.matrix),
        ),
        fit.errors,
        np.sqrt(np.mean(np.concatenate([(motion.q - motion.reference) ** 2 for motion in motions]), axis=0)),
        fit.equations.limited,
        fit.equations.ended,
        fit.equations.largest.max(axis=0),
        fit.equations.loads,
        shared,
        friction,
        len({stretch.recording for stretch in stretches}),
        find_reference_order(motions),
    )


def _newton(fit: ActuatorFit) -> Array:
    """Next Gauss-Newton step, of values at their bound without it, shape (p,)."""
    bounded, now = fit.layout.bounded, fit.parameters
    at_bound = bounded & (now == 0.0)
    step = solve_step(fit.equations, now, bounded)
    return np.where(at_bound, solve_scaled(fit.equations.matrix, fit.equations.gradient), step)
