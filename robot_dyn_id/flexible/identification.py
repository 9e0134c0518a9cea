# SPDX-License-Identifier: Apache-2.0
"""Identification of an arm with flexible joints: a plan from the data, then step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.stepwise import (
    MAX_CONDITION_NUMBER,
    SAMPLE_FACTOR,
    Equations,
    Observability,
    StepwisePlan,
    StepwiseSolution,
    plan_steps,
    solve_steps,
)
from robot_dyn_id.flexible.agreement import Agreement, compute_agreements
from robot_dyn_id.flexible.experiment import Experiment, TooSlow, make_equations
from robot_dyn_id.flexible.model import FlexibleModel
from robot_dyn_id.flexible.rows import States, list_rows_of
from robot_dyn_id.signals.filtering import LowPass

DEFLECTION = 3e-3
"""Spread of the springs' deflections in pseudo-observations [rad or m]: raw condition numbers depend on it."""

CUTOFF = 8.0
"""Default cut-off frequency of the low-pass of columns and torques [Hz]."""

SEEDS = 5
"""Number of draws of pseudo-observations."""


@dataclass(frozen=True)
class FlexibleIdentification:
    """Identified arm with flexible joints.

    Attributes:
        names: names of the p parameters.
        expressions: combination of standard parameters that each is.
        units: units of the parameters.
        solution: values, covariance and plan.
        fit: errors of the equations that the parameters were identified from.
        unidentified: reason for each group that is not identified.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    units: tuple[str, ...]
    solution: StepwiseSolution
    fit: tuple[Agreement, ...]
    unidentified: Mapping[str, str]

    def __str__(self) -> str:
        """The plan, then a line per parameter."""
        found = zip(self.names, self.solution.values, self.solution.standard_deviations, self.units, strict=True)
        lines = [
            f"{name:<12} not identified" if math.isnan(value) else f"{name:<12} {value:>12.6g} +- {sigma:<10.2g} {unit}"
            for name, value, sigma, unit in found
        ]
        return "\n".join([str(self.solution.plan), "", *lines])


@one_blas_thread()
def identify_flexible(
    model: FlexibleModel,
    experiments: Sequence[Experiment],
    low_pass: LowPass | None = None,
    limit: float = MAX_CONDITION_NUMBER,
    scaling: str = "columns",
) -> FlexibleIdentification:
    """Plan the steps from the recorded equations, then identify.

    Args:
        model: the arm.
        experiments: poses at rest, motions of single joints, motions of all joints, as available.
        low_pass: low-pass filter of columns and torques; with the cut-off `CUTOFF` by default.
        limit: largest condition number of a group that is not split; inf: all groups are solved at once.
        scaling: scaling of the condition number, `columns` (of unit norm) or `none`.

    Raises:
        InputError: experiments of another robot, of the same name, all too slow for friction to be known, or with
            nothing in them to identify from.
        UsageError: a cut-off too high for a rate, an unknown scaling.
    """
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        raise InputError(f"experiments must have different names, not {', '.join(names)}")
    low_pass, too_slow = low_pass or LowPass(CUTOFF), list[TooSlow]()
    found = [one for experiment in experiments for one in make_equations(model, experiment, low_pass, too_slow)]
    if not any(np.abs(one.triangle[:, -1]).max() > 0.0 for one in found):
        if too_slow:
            raise InputError(
                "every motion is too slow for its friction to be known: move faster, or give a smaller smoothing_width "
                f"or cutoff; {too_slow[0]}"
            )
        raise InputError(f"{', '.join(names)}: no torque is measured: give tau, or motor_q and motor_tau")
    plan = plan_steps(model.groups, [found], len(model.names), limit, scaling)
    solution = solve_steps(plan, model.groups, found, len(model.names))
    why = {group: _why(model, experiments, too_slow, group) for group in plan.unidentifiable}
    fit = compute_agreements(model, found, solution.values)
    return FlexibleIdentification(model.names, model.expressions, model.units, solution, fit, why)


def _why(model: FlexibleModel, experiments: Sequence[Experiment], too_slow: Sequence[TooSlow], group: str) -> str:
    """Why a group of parameters is not identified."""
    kind, _, joint = group.partition(" of ")
    if kind in ("motor", "spring"):
        place = [one.name for one in model.joints].index(joint)
        if not _measured([one.motor_q for one in experiments], place):
            return "the angle of its motor is not measured"
        blind = joint not in model.sensed and "its spring's torque is known from nothing else: "
        if (kind == "motor" or blind) and not _measured([one.motor_tau for one in experiments], place):
            return f"{blind or ''}the torque of its motor is not measured"
    elif joint in model.sensed:
        place = model.model.joint_names.index(joint)
        if not _measured([one.tau for one in experiments], place):
            return "its torque is not measured"
    if kind not in ("gravity", "offset", "spring") and not any(
        one.rate > 0.0 and (not one.moving or joint in one.moving) for one in experiments
    ):
        return "it moves in no experiment"
    slow = next((one for one in too_slow if one.group == group), None)
    return f"too slow: {slow}" if slow else "not distinguishable from the others in these data"


def _measured(channels: Sequence[Array | None], place: int) -> bool:
    return any(values is not None and bool(np.isfinite(values[place]).all()) for values in channels)


def make_pseudo_observations(
    model: FlexibleModel, moving: Sequence[str] | None = None, seed: int = 0, samples: int | None = None
) -> list[Equations]:
    """Equations at random states within the limits of the joints, before anything was recorded.

    Args:
        model: the arm.
        moving: joints that move; the others are at the middle of their range. None: poses at rest.
        seed: seed of the random states.
        samples: number of states; default: 5 times the smallest number that determines all parameters of the link side.
    """
    rng = np.random.default_rng(seed)
    joints = len(model.model.joint_names)
    count = samples or SAMPLE_FACTOR * -(-len(model.base.names) // joints)
    link = draw_random_states(model, moving, rng, count)
    at = np.array(model.numbers)
    ratio = np.array([joint.ratio for joint in model.joints])[:, None]
    deflection = DEFLECTION * rng.normal(size=(len(at), count))
    motor = Motion(ratio * (link.q[at] + deflection), ratio * link.dq[at], ratio * link.ddq[at])
    states = States(link, np.zeros_like(link.q), motor, np.zeros_like(motor.q))
    name = _called(model, moving)
    return [
        Equations.from_rows(f"{name}: {row.kind} of {row.joint}", f"{name}: {row.kind}", row.rows, row.target)
        for row in list_rows_of(model, states)
        if moving is None or row.joint in moving
    ]


def draw_random_states(
    model: FlexibleModel, moving: Sequence[str] | None, rng: np.random.Generator, count: int
) -> Motion:
    """Positions and velocities within the limits of the joints (a turn, 2 rad/s without), accelerations +- 5."""
    limits, free = model.model.limits, draw_random_motion(model.model, count, int(rng.integers(2**31)))
    bounded = np.isfinite(limits.upper - limits.lower)[:, None]
    lower, upper = limits.lower[:, None], limits.upper[:, None]
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, (lower + upper) / 2, 0.0)
        q = np.where(bounded, lower + (upper - lower) * rng.uniform(size=free.q.shape), free.q)
    fastest = np.where(np.isfinite(limits.velocity), limits.velocity, 2.0)[:, None]
    goes: Array = np.array([moving is not None and name in moving for name in model.model.joint_names])[:, None]
    still = np.zeros_like(q)
    return Motion(
        q=q if moving is None else np.where(goes, q, middle),
        dq=np.where(goes, fastest * rng.uniform(-1, 1, q.shape), still),
        ddq=np.where(goes, free.ddq, still),
    )


def _called(model: FlexibleModel, moving: Sequence[str] | None) -> str:
    """Name of an experiment."""
    if moving is None:
        return "static"
    everything = len(moving) == len(model.model.joint_names) > 1
    return "all joints moving" if everything else f"{' and '.join(moving)} moving"


def _kinds(model: FlexibleModel) -> list[Sequence[str] | None]:
    """Poses at rest, motions of single joints, a motion of all: the joints that move."""
    joints = model.model.joint_names
    return [None, *([name] for name in joints), *([joints] if len(joints) > 1 else [])]


def make_pseudo_plan(
    model: FlexibleModel, limit: float = MAX_CONDITION_NUMBER, scaling: str = "columns"
) -> StepwisePlan:
    """The plan that poses at rest, motions of single joints and motions of all joints would allow."""
    kinds = _kinds(model)
    draws = [[one for kind in kinds for one in make_pseudo_observations(model, kind, seed)] for seed in range(SEEDS)]
    return plan_steps(model.groups, draws, len(model.names), limit, scaling)


def find_least_experiments(model: FlexibleModel) -> tuple[str, ...]:
    """Smallest set of experiments of `make_pseudo_plan` that identifies as many parameters as all of them.

    Others make the parameters more precise and the steps better conditioned. Motions of single joints are the first to
    be left out, then poses.
    """
    kinds = _kinds(model)
    rows = {
        _called(model, kind): [one.expand(len(model.names))[:, :-1] for one in make_pseudo_observations(model, kind)]
        for kind in kinds
    }

    def rank(names: Sequence[str]) -> int:
        return Observability.from_rows(np.concatenate([part for name in names for part in rows[name]])).rank

    needed = list(rows)
    static, alone = needed[0], needed[1:-1]
    most = rank(needed)
    for name in (*alone, static):
        rest = [other for other in needed if other != name]
        needed = rest if rank(rest) == most else needed
    return tuple(needed)
