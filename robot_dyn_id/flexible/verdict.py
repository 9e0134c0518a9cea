# SPDX-License-Identifier: Apache-2.0
"""Findings about an identified arm with flexible joints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from robot_dyn_id.findings import Finding, make_finding
from robot_dyn_id.flexible import Agreement, FlexibleIdentification, FlexibleModel, overall
from robot_dyn_id.identification.verdict import Thresholds

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
        error = overall(held_out, kind)
        if error > thresholds.bad_nrmse:
            message = f"held-out error of the {kind} equations is {error:.1%}, above {thresholds.bad_nrmse:.0%}"
            yield make_finding("held_out_error", message)
        elif held_out and np.isnan(error) and np.isfinite(overall(found.fit, kind)):
            yield make_finding("equations_not_validated", f"the held-out data determine no {kind} equation")
    for one in held_out:
        if one.nrmse > thresholds.joint_nrmse:
            message = f"{one.equation}: held-out error is {one.nrmse:.1%}, above {thresholds.joint_nrmse:.0%}"
            yield make_finding("joint_held_out_error", message)
    if not held_out:
        yield make_finding("nothing_held_out", "nothing is held out")


def _judge_groups(model: FlexibleModel, found: FlexibleIdentification) -> Iterator[Finding]:
    for joint in model.joints:
        own = [group.name for group in model.groups if group.name.endswith(f" of {joint.name}")]
        if set(own) <= set(found.unidentified):
            yield make_finding(
                "flexible_joint_not_identified",
                f"joint {joint.name}: none of its parameters is identified",
                [joint.name],
            )
    for group, why in found.unidentified.items():
        yield make_finding("group_not_identified", f"not identified: {group}: {why}")


def _judge_conditioning(found: FlexibleIdentification, thresholds: Thresholds) -> Iterator[Finding]:
    for step in found.solution.plan.steps:
        if (condition := step.observability.condition_numbers["columns"]) > thresholds.condition_number:
            yield make_finding(
                "condition_number_high",
                f"{', '.join(step.groups)}: condition number {condition:.2g}, above {thresholds.condition_number:g}",
                severity="warning",
                action="record other motions, in both directions",
            )


def _judge_signs(found: FlexibleIdentification) -> Iterator[Finding]:
    values, deviations = found.solution.values, found.solution.standard_deviations
    for name, expression, value, sigma in zip(found.names, found.expressions, values, deviations, strict=True):
        if expression == name and name.rstrip("0123456789") in POSITIVE and value < -NEGATIVE_SIGMAS * sigma:
            yield make_finding(
                "negative_parameter",
                f"{name} = {value:.3g} +- {sigma:.2g} is negative, which is not physical",
                action="check signs, gear ratio and zero positions",
            )
