# SPDX-License-Identifier: Apache-2.0
"""Findings about an identified arm with flexible joints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from robot_dyn_id.dynamics.consistency import NEGATIVE_PARAMETER
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.flexible import Agreement, FlexibleIdentification, FlexibleModel, compute_overall
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.verdict import (
    CONDITION_NUMBER_HIGH,
    HELD_OUT_ERROR,
    JOINT_HELD_OUT_ERROR,
)

NOTHING_HELD_OUT = Definition(
    "nothing_held_out",
    Section.FLEXIBLE,
    "warning",
    "No experiment is held out, so that the model is not validated.",
    "give other experiments",
)

EQUATIONS_NOT_VALIDATED = Definition(
    "equations_not_validated",
    Section.FLEXIBLE,
    "warning",
    "The held-out experiments determine no equation of a kind (link, spring or motor).",
    "validate on a motion recorded with every sensor",
)

FLEXIBLE_JOINT_NOT_IDENTIFIED = Definition(
    "flexible_joint_not_identified",
    Section.FLEXIBLE,
    "warning",
    "No parameter of a flexible joint is identified.",
    "record a motion of the joint",
)

GROUP_NOT_IDENTIFIED = Definition(
    "group_not_identified",
    Section.FLEXIBLE,
    "warning",
    "A group of parameters is not identified from these experiments.",
    "record the experiments that the plan names",
)

KINDS = ("link", "spring", "motor")
"""Kinds of equations."""

POSITIVE = ("K", "Jm", "fvm", "fcm", "fv", "fc", "Ir")
"""Symbols of parameters that are positive for every joint."""

NEGATIVE_SIGMAS = 3.0
"""Number of standard deviations below zero from which a negative parameter is reported."""


def judge_flexible(
    model: FlexibleModel, found: FlexibleIdentification, held_out: Sequence[Agreement], thresholds: Thresholds
) -> tuple[Finding, ...]:
    """Findings about an identification with flexible joints.

    Error: held-out equations of one kind, of all joints together, are worse than `bad_nrmse`. Warning: one of them is
    worse than `joint_nrmse`; nothing is held out, or no equation of a kind that it was identified from; a group of
    parameters is not identified, or only from columns whose condition number is above `condition_number`; a stiffness,
    inertia or friction is negative by three standard deviations.

    Args:
        model: the arm.
        found: the identification.
        held_out: errors on experiments that it was not identified from.
        thresholds: thresholds of the configuration.
    """
    return (
        *_judge_held_out(found, held_out, thresholds),
        *_judge_groups(model, found),
        *_judge_conditioning(found, thresholds),
        *_judge_signs(found),
    )


def _judge_held_out(
    found: FlexibleIdentification, held_out: Sequence[Agreement], thresholds: Thresholds
) -> Iterator[Finding]:
    for kind in KINDS:
        error = compute_overall(held_out, kind)
        if error > thresholds.bad_nrmse:
            message = f"held-out error of the {kind} equations is {error:.1%}, above {thresholds.bad_nrmse:.0%}"
            yield HELD_OUT_ERROR.found(message)
        elif held_out and np.isnan(error) and np.isfinite(compute_overall(found.fit, kind)):
            yield EQUATIONS_NOT_VALIDATED.found(f"the held-out data determine no {kind} equation")
    for one in held_out:
        if one.nrmse > thresholds.joint_nrmse:
            message = f"{one.equation}: held-out error is {one.nrmse:.1%}, above {thresholds.joint_nrmse:.0%}"
            yield JOINT_HELD_OUT_ERROR.found(message)
    if not held_out:
        yield NOTHING_HELD_OUT.found("nothing is held out")


def _judge_groups(model: FlexibleModel, found: FlexibleIdentification) -> Iterator[Finding]:
    for joint in model.joints:
        own = [group.name for group in model.groups if group.name.endswith(f" of {joint.name}")]
        if set(own) <= set(found.unidentified):
            yield FLEXIBLE_JOINT_NOT_IDENTIFIED.found(
                f"joint {joint.name}: none of its parameters is identified",
                [joint.name],
            )
    for group, why in found.unidentified.items():
        yield GROUP_NOT_IDENTIFIED.found(f"not identified: {group}: {why}")


def _judge_conditioning(found: FlexibleIdentification, thresholds: Thresholds) -> Iterator[Finding]:
    for step in found.solution.plan.steps:
        if (condition := step.observability.condition_numbers["columns"]) > thresholds.condition_number:
            yield CONDITION_NUMBER_HIGH.found(
                f"{', '.join(step.groups)}: condition number {condition:.2g}, above {thresholds.condition_number:g}",
                severity="warning",
                action="record other motions, in both directions",
            )


def _judge_signs(found: FlexibleIdentification) -> Iterator[Finding]:
    values, deviations = found.solution.values, found.solution.standard_deviations
    for name, expression, value, sigma in zip(found.names, found.expressions, values, deviations, strict=True):
        if expression == name and name.rstrip("0123456789") in POSITIVE and value < -NEGATIVE_SIGMAS * sigma:
            yield NEGATIVE_PARAMETER.found(
                f"{name} = {value:.3g} +- {sigma:.2g} is negative, which is not physical",
                action="check signs, gear ratio and zero positions",
            )
