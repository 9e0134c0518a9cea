# SPDX-License-Identifier: Apache-2.0
"""Whether the parameters of an arm with flexible joints can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.flexible import Agreement, FlexibleIdentification, FlexibleModel, overall
from robot_dyn_id.identification.verdict import Thresholds, Verdict

KINDS = ("link", "spring", "motor")
"""Of equations."""

POSITIVE = ("K", "Jm", "fvm", "fcm", "fv", "fc", "Ir")
"""Symbols of parameters that no joint has below zero."""

SIGMAS = 3.0
"""Standard deviations below zero at which one is told."""


def judge_flexible(
    model: FlexibleModel, found: FlexibleIdentification, held_out: Sequence[Agreement], thresholds: Thresholds
) -> Verdict:
    """The verdict.

    Bad: held-out equations of one kind, of all joints together, are worse than `bad_nrmse`. Suspect: one of them is
    worse than `joint_nrmse`; nothing is held out, or no equation of a kind that it was identified from; a group of
    parameters is not identified, or only from columns whose condition number is above `condition_number`; a stiffness,
    inertia or friction is below zero by three standard deviations.

    Args:
        model: the arm.
        found: what was identified.
        held_out: errors on experiments that it was not identified from.
        thresholds: of the configuration.
    """
    bad, suspect = [], []
    for kind in KINDS:
        error = overall(held_out, kind)
        if error > thresholds.bad_nrmse:
            bad.append(f"held-out error of the {kind} equations is {error:.1%}, above {thresholds.bad_nrmse:.0%}")
        elif held_out and np.isnan(error) and np.isfinite(overall(found.fit, kind)):
            suspect.append(f"held out: no {kind} equation that can be told: validate on a motion with every sensor")
    suspect += [
        f"{one.equation}: held-out error is {one.nrmse:.1%}, above {thresholds.joint_nrmse:.0%}"
        for one in held_out
        if one.nrmse > thresholds.joint_nrmse
    ]
    if not held_out:
        suspect.append("nothing is held out: give another recording with --validate")
    for joint in model.joints:
        own = [group.name for group in model.groups if group.name.endswith(f" of {joint.name}")]
        if set(own) <= set(found.unidentified):
            suspect.append(f"joint {joint.name}: nothing of it is identified")
    suspect += [f"not identified: {group}: {why}" for group, why in found.unidentified.items()]
    for step in found.solution.plan.steps:
        if (condition := step.observability.condition_numbers["columns"]) > thresholds.condition_number:
            what = f"condition number {condition:.2g}, above {thresholds.condition_number:g}"
            suspect.append(f"{', '.join(step.groups)}: {what}: record other motions, and in both directions")
    signs = zip(found.names, found.expressions, found.solution.values, found.solution.standard_deviations, strict=True)
    suspect += [
        f"{name} is {value:.3g} +- {sigma:.2g}, which no joint has below zero: look at signs, gear ratio and zeros"
        for name, expression, value, sigma in signs
        if expression == name and name.rstrip("0123456789") in POSITIVE and value < -SIGMAS * sigma
    ]
    word = "bad" if bad else "suspect" if suspect else "good"
    return Verdict(word, (*bad, *suspect))
