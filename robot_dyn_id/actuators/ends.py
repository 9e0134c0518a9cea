# SPDX-License-Identifier: Apache-2.0
"""Ends of the motion of joints: end stops, contacts, and references that drives do not follow.

A joint in free motion is simulated beyond the positions that it reached by the error of the simulation. One that does
not go where its drive pushes it is simulated far beyond, again and again. Either the joint is stopped there, or its
drive does not follow references beyond an end: both are fitted, and the one that predicts parts of the motion better
that it was not fitted to is a part of the model, if it pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from robot_dyn_id.actuators.comparison import compare_fits
from robot_dyn_id.actuators.fit import STEP_S, ActuatorFit, LimbMotion, fit_actuators
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import Limb
from robot_dyn_id.actuators.spread import PARTS
from robot_dyn_id.actuators.start import EffortRows, solve_limb
from robot_dyn_id.actuators.validation import simulate
from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.selection.engine import weigh_joints
from robot_dyn_id.kernels.actuators import LOWER_REFERENCE, LOWER_STOP, UPPER_REFERENCE, UPPER_STOP

CAUSES = ((LOWER_STOP, LOWER_REFERENCE), (UPPER_STOP, UPPER_REFERENCE))
"""Parameters that may be the cause of a lower and of an upper end."""

SHARES = (0.2, 0.4, 0.6, 0.8)
"""Ends of references that fits may start from, as shares of the way from their median to their extreme."""


def find_blocked(
    limbs: Sequence[Limb], actuators: ActuatorModel, motions: Sequence[CommandedMotion]
) -> list[tuple[int, int]]:
    """Joints, by number, that do not go beyond an end of their measured positions, 0 the lower and 1 the upper one.

    Without what is simulated beyond the end, the errors of the simulation are smaller in the parts of the motions by
    the rule of `weigh`.

    Args:
        limbs: the limbs.
        actuators: actuators of all joints.
        motions: motions of all joints.

    Raises:
        InputError: a simulation diverges.
    """
    least, most = _find_extremes(motions)
    free: list[Array] = []
    ended: tuple[list[Array], list[Array]] = ([], [])
    for motion in motions:
        positions, _ = simulate(limbs, actuators, motion, STEP_S)
        free += _sum_parts(positions - motion.q)
        ended[0].extend(_sum_parts(np.maximum(positions, least) - motion.q))
        ended[1].extend(_sum_parts(np.minimum(positions, most) - motion.q))
    return [
        (joint, side)
        for side in (0, 1)
        for joint, tried in enumerate(
            weigh_joints("actuators", actuators.joint_names, np.array(free), np.array(ended[side]))
        )
        if tried.pays
    ]


def fit_ends(
    limbs: Sequence[Limb],
    motions: Sequence[CommandedMotion],
    stretches: Sequence[LimbMotion],
    fit: ActuatorFit,
    block: float,
) -> ActuatorFit:
    """The fit with the ends that its joints have, each with the cause that predicts better.

    Args:
        limbs: the limbs.
        motions: motions of all joints.
        stretches: their windows.
        fit: fitted actuators without ends.
        block: length of the blocks of the normal equations [s].
    """
    extremes = _find_extremes(motions)
    ranges = _find_ranges(stretches, fit)
    blocked = find_blocked(limbs, fit.actuators, motions)
    for joint, side in dict.fromkeys([*blocked, *ranges]):
        position = extremes[side][joint]
        starts = zip(CAUSES[side], (position, ranges.get((joint, side), position)), strict=True)
        candidates = []
        for kind, start in starts:
            values = fit.actuators.values
            values[kind, joint] = start
            actuators = ActuatorModel.from_values(fit.actuators.joint_names, values)
            with suppress(InputError):  # the simulation diverges
                candidates.append(fit_actuators(stretches, actuators, fit.layout.add(kind, joint), block, fit.initial))
        fit = _choose(stretches, fit, candidates, block)
    return fit


def _find_ranges(stretches: Sequence[LimbMotion], fit: ActuatorFit) -> dict[tuple[int, int], float]:
    """Ends of references, by joint and side, with which a linear fit to the effort is better by the rule of `weigh`."""
    joints = fit.actuators.joint_names
    references: list[list[Array]] = [[] for _ in joints]
    for stretch in stretches:
        for joint, column in zip(stretch.joints.tolist(), stretch.motion.reference.T, strict=True):
            references[joint].append(column)
    columns = [np.concatenate(parts) for parts in references]
    middle = np.array([np.median(column) for column in columns])
    extremes = np.array([[column.min(), column.max()] for column in columns]).T
    ends = {
        (side, share): middle + share * (extremes[side] - middle) for side in range(len(CAUSES)) for share in SHARES
    }
    free, errors = _compare_efforts(stretches, fit, ends)
    best: dict[tuple[int, int], tuple[float, float]] = {}
    for (side, share), parts in errors.items():
        for joint, tried in enumerate(weigh_joints("actuators", joints, free, parts)):
            if tried.pays:
                found = tried.gain, float(ends[side, share][joint])
                best[joint, side] = max(found, best.get((joint, side), found))
    return {place: end for place, (_, end) in best.items()}


def _compare_efforts(
    stretches: Sequence[LimbMotion], fit: ActuatorFit, ends: Mapping[tuple[int, float], Array]
) -> tuple[Array, dict[tuple[int, float], Array]]:
    """Squared errors of linear fits without an end of the references and with each, shape (parts, n).

    They are shares of the effort, which the end changes. Each stretch has a fit of its own.
    """
    n = len(fit.actuators.joint_names)
    missed: dict[tuple[int, float] | None, list[Array]] = {None: [], **{key: [] for key in ends}}
    for stretch in stretches:
        own = fit.actuators.select(stretch.limb.joint_names)
        estimated = fit.layout.index[:, stretch.joints] >= 0
        rows = EffortRows.from_motion(stretch.limb, stretch.motion, own.values)
        for key, errors in missed.items():
            lower, upper = (
                ends[key][stretch.joints] if key and key[0] == side else np.full(len(stretch.joints), infinity)
                for side, infinity in enumerate((-np.inf, np.inf))
            )
            limited = rows.delayed(stretch.motion.within(lower, upper), own.delay)
            values = solve_limb(limited, own.values, estimated)
            given, taken = limited.effort(ActuatorModel.from_values(own.joint_names, values))
            size = np.linalg.norm(given, axis=1, keepdims=True)
            no_effort = np.full_like(given, given.shape[1] ** -0.5)  # a gain of zero explains nothing
            shares = np.divide(given - taken, size, out=no_effort, where=size > 0.0)
            for part in _sum_parts(shares.T):
                errors.append(np.zeros(n))
                errors[-1][stretch.joints] = part
    arrays = {key: np.array(errors) for key, errors in missed.items() if key}
    return np.array(missed[None]), arrays


def _choose(
    stretches: Sequence[LimbMotion], fit: ActuatorFit, candidates: Sequence[ActuatorFit], block: float
) -> ActuatorFit:
    """The candidate with the smallest errors in parts that it was not fitted to, of those that pay against the fit."""
    tried = compare_fits([(stretches, one) for one in (fit, *candidates)], block)
    paying = [(one.loss, place) for place, one in enumerate(tried) if one.pays]
    return candidates[min(paying)[1]] if paying else fit


def _find_extremes(motions: Sequence[CommandedMotion]) -> tuple[Array, Array]:
    """Least and largest measured positions [rad or m], shape (n,) each."""
    return (
        np.min([motion.q.min(axis=0) for motion in motions], axis=0),
        np.max([motion.q.max(axis=0) for motion in motions], axis=0),
    )


def _sum_parts(errors: Array) -> list[Array]:
    """Sums of squares of consecutive parts of time, shape (n,) each."""
    return [np.asarray(np.sum(part**2, axis=0)) for part in np.array_split(errors, PARTS)]
