"""Identification of an arm with flexible joints: a plan from the data, then step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.base_parameters import random_motion
from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.flexible.experiment import Experiment, States, equations, rows_of
from robot_dyn_id.flexible.model import FlexibleModel
from robot_dyn_id.regressor import Motion
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.stepwise import LIMIT, SAMPLES, Equations, Plan, StepwiseSolution, plan_steps, solve_steps

DEFLECTION = 3e-3
"""Spread of the springs' deflections in pseudo-observations [rad or m]: raw condition numbers depend on it."""

SEEDS = 5
"""Draws of pseudo-observations."""


@dataclass(frozen=True)
class FlexibleIdentification:
    """What was found of an arm with flexible joints.

    Attributes:
        names: the p parameters.
        expressions: what each is a combination of.
        units: units.
        solution: values, covariance and plan.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    units: tuple[str, ...]
    solution: StepwiseSolution

    def __str__(self) -> str:
        """The plan, then a line per parameter."""
        found = zip(self.names, self.solution.values, self.solution.standard_deviations, self.units, strict=True)
        lines = [
            f"{name:<12} not identified" if math.isnan(value) else f"{name:<12} {value:>12.6g} +- {sigma:<10.2g} {unit}"
            for name, value, sigma, unit in found
        ]
        return "\n".join([str(self.solution.plan), "", *lines])


def identify_flexible(
    model: FlexibleModel,
    experiments: Sequence[Experiment],
    low_pass: LowPass | None = None,
    limit: float = LIMIT,
    scaling: str = "columns",
) -> FlexibleIdentification:
    """Plan from what the experiments show, then identify.

    Args:
        model: the arm.
        experiments: poses at rest, motions of single joints, motions of all: what there is.
        low_pass: of columns and torques; 8 Hz by default.
        limit: greatest condition number of groups that are not split; infinite: all that can be is solved at once.
        scaling: of the condition number, `columns` (of unit norm) or `none`.

    Raises:
        InputError: experiments of another robot, of the same name, or with nothing in them to identify from.
        UsageError: a cut-off too high for a rate, an unknown scaling.
    """
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        raise InputError(f"experiments must have different names, not {', '.join(names)}")
    low_pass = low_pass or LowPass(8.0)
    found = [one for experiment in experiments for one in equations(model, experiment, low_pass)]
    if not any(np.abs(one.triangle[:, -1]).max() > 0.0 for one in found):
        raise InputError("no torque is measured: every experiment needs tau, or motor_q and motor_tau")
    plan = plan_steps(model.groups, [found], len(model.names), limit, scaling)
    solution = solve_steps(plan, model.groups, found, len(model.names))
    return FlexibleIdentification(model.names, model.expressions, model.units, solution)


def pseudo_observations(
    model: FlexibleModel, moving: Sequence[str] | None = None, seed: int = 0, samples: int | None = None
) -> list[Equations]:
    """Equations at random states within the limits of the joints, before anything was recorded.

    Args:
        model: the arm.
        moving: joints that move, the others stand at the middle of their range; None: poses at rest.
        seed: of the states.
        samples: by default 5 times the least number that could determine all parameters of the link side.
    """
    rng = np.random.default_rng(seed)
    joints = len(model.model.joint_names)
    count = samples or SAMPLES * -(-len(model.base.names) // joints)
    link = random_states(model, moving, rng, count)
    at = np.array(model.numbers)
    ratio = np.array([joint.ratio for joint in model.joints])[:, None]
    deflection = DEFLECTION * rng.normal(size=(len(at), count))
    motor = Motion(ratio * (link.q[at] + deflection), ratio * link.dq[at], ratio * link.ddq[at])
    states = States(link, np.zeros_like(link.q), motor, np.zeros_like(motor.q))
    name = "static" if moving is None else " and ".join(moving) + " moving"
    return [
        Equations.of(f"{name}: {row.kind} of {row.joint}", f"{name}: {row.kind}", row.rows, row.target)
        for row in rows_of(model, states)
        if moving is None or row.joint in moving
    ]


def random_states(model: FlexibleModel, moving: Sequence[str] | None, rng: np.random.Generator, count: int) -> Motion:
    """Positions and velocities within the limits of the joints (a turn, 2 rad/s without), accelerations +- 5."""
    limits, free = model.model.limits, random_motion(model.model, count, int(rng.integers(2**31)))
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


def pseudo_plan(model: FlexibleModel, limit: float = LIMIT, scaling: str = "columns") -> Plan:
    """The plan that poses at rest, motions of single joints and motions of all joints would allow."""
    joints = model.model.joint_names
    kinds: list[Sequence[str] | None] = [None, *([name] for name in joints), *([joints] if len(joints) > 1 else [])]
    draws = [[one for kind in kinds for one in pseudo_observations(model, kind, seed)] for seed in range(SEEDS)]
    return plan_steps(model.groups, draws, len(model.names), limit, scaling)
