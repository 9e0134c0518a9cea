# SPDX-License-Identifier: Apache-2.0
"""Joints whose velocities are nearly proportional: their friction and inertia act together in all data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.trials import FilteredTrials

JOINTS_IN_PROPORTION = Definition(
    "joints_in_proportion",
    Section.ESTIMATES,
    "info",
    "The velocities of two joints are proportional in all training data (squared correlation above 0.99): their "
    "friction and inertia have the same columns, so that only sums of them are determined.",
    "record a motion that moves the joints separately",
)

MOST_SHARED_MOTION = 0.99
"""Largest squared correlation of the velocities of two joints that are coupled: above, the columns of the coupling are
those of the joints themselves, and the variance of the parameters is inflated more than a hundredfold."""

EXPLAINED_CODES = frozenset(
    {"negative_parameter", "friction_not_passive", "gain_inconsistent", "joint_not_identifiable", "sign_contradicted"}
)
"""Findings about a joint that may follow from a motion in proportion to that of another joint."""


def find_shared_motion(trials: FilteredTrials) -> Mask:
    """Mask of the pairs of joints whose velocities are nearly proportional, shape (n, n)."""
    joints = len(trials.joints)
    moments = np.zeros((joints, joints))
    for window in trials:
        velocities = window.motion.dq[:, window.own]
        moments += velocities @ velocities.T
    return flag_shared_motion(moments)


def flag_shared_motion(moments: Array) -> Mask:
    """Mask of the pairs of joints whose velocities are nearly proportional, shape (n, n).

    Args:
        moments: sums of the products of the velocities, shape (n, n).
    """
    power = np.diag(moments)
    return np.asarray(moments**2 > MOST_SHARED_MOTION * np.outer(power, power))


def report_shared_motion(trials: FilteredTrials, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add a finding about joints that move in proportion, and state this cause where another finding follows from it.

    Args:
        trials: training data.
        findings: everything that was found about them and the model.
    """
    together = np.triu(find_shared_motion(trials), 1)
    pairs = [(trials.joints[i], trials.joints[j]) for i, j in np.argwhere(together).tolist()]
    if not pairs:
        return tuple(findings)
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    listed = ", ".join(f"{one} and {other}" for one, other in pairs)
    message = f"joints move in proportion in all training data: {listed}; their friction and inertia are not separable"
    added = JOINTS_IN_PROPORTION.found(message, names)
    return (*(_explain(one, pairs) for one in findings), added)


def _explain(finding: Finding, pairs: list[tuple[str, str]]) -> Finding:
    """The finding with the motion to record, if it concerns joints that move in proportion."""
    concerned = [pair for pair in pairs if set(pair) & set(finding.joints)]
    if finding.code not in EXPLAINED_CODES or not concerned:
        return finding
    *first, last = dict.fromkeys(name for pair in concerned for name in pair)
    action = (
        f"record a motion that moves {', '.join(first)} and {last} separately: in these data they move in proportion"
    )
    return replace(finding, action=action)
