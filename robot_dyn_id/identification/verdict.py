# SPDX-License-Identifier: Apache-2.0
"""Verdict on an identified model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot_dyn_id.identification.extrapolation import spoken
from robot_dyn_id.identification.metrics import HeldOut


@dataclass(frozen=True)
class Thresholds:
    """What makes a verdict; ratios.

    Attributes:
        bad_nrmse: all-joint NRMSE above this is bad.
        joint_nrmse: a joint's NRMSE above this is suspect.
        constant_share: a joint that carries this share of the torque must be better than a constant.
        nominal_margin: an error this much above that of the URDF's own parameters is bad.
        explained: a joint of whose torque variance less than this is explained is not identifiable.
        condition_number: above this (unit-norm columns) is suspect.
        dropped_share: dropped rows above this are suspect.
        outside_share: samples far outside the trained ranges above this are suspect.
        own_nrmse: a joint whose torque the model's own uncertainty makes this uncertain is suspect.
    """

    bad_nrmse: float = 0.30
    joint_nrmse: float = 0.30
    constant_share: float = 0.05
    nominal_margin: float = 0.10
    explained: float = 0.5
    condition_number: float = 1000.0
    dropped_share: float = 0.01
    outside_share: float = 0.05
    own_nrmse: float = 0.10


@dataclass(frozen=True)
class Verdict:
    """`good`, `suspect` or `bad`, with the reasons."""

    word: str
    reasons: tuple[str, ...]


def judge(
    held_out: HeldOut,
    thresholds: Thresholds,
    cross_check_passed: bool,
    condition_number: float,
    dropped_share: float,
    has_nominal: bool,
    warnings: Sequence[str] = (),
) -> Verdict:
    """The verdict of an identification or validation; `warnings` make it suspect."""
    limit = thresholds
    bad, suspect = [], list(warnings)
    if not cross_check_passed:
        bad.append("the cross-check with Pinocchio failed")
    if not held_out.all_joints_nrmse <= limit.bad_nrmse:
        bad.append(f"held-out error of all joints is {held_out.all_joints_nrmse:.1%}, above {limit.bad_nrmse:.0%}")
    power = sum(joint.rms**2 for joint in held_out.joints)
    for joint in held_out.joints:
        carries = joint.rms**2 >= limit.constant_share**2 * power
        if carries and not joint.nrmse < joint.constant_nrmse:
            bad.append(f"joint {joint.name}: the prediction is not better than a constant")
        elif not joint.explained >= limit.explained:
            suspect.append(
                f"joint {joint.name} is not identifiable from these data: apart from its mean, "
                f"{max(joint.explained, 0):.0%} of its torque is explained"
            )
        elif joint.nrmse > limit.joint_nrmse:
            suspect.append(f"joint {joint.name}: held-out error is {joint.nrmse:.1%}, above {limit.joint_nrmse:.0%}")
    if has_nominal and held_out.all_joints_nrmse > (1 + limit.nominal_margin) * held_out.nominal_all_joints_nrmse:
        bad.append(
            f"worse than the URDF's own parameters ({held_out.all_joints_nrmse:.1%} against "
            f"{held_out.nominal_all_joints_nrmse:.1%})"
        )
    if condition_number > limit.condition_number:
        suspect.append(f"the condition number {condition_number:.3g} (unit-norm columns) is above "
                       f"{limit.condition_number:g}: the motion tells some parameters badly")  # fmt: skip
    if dropped_share > limit.dropped_share:
        suspect.append(f"{dropped_share:.1%} of the rows were dropped")
    if held_out.outside > limit.outside_share:
        which = f" ({spoken(held_out.outside_of)})" if held_out.outside_of else ""
        suspect.append(f"{held_out.outside:.0%} of the held-out samples lie far outside the trained motion{which}")
    unsure = [(j.name, j.own_nrmse) for j in held_out.joints if j.own_nrmse > limit.own_nrmse]
    if unsure:
        told = ", ".join(f"{name} {share:.0%}" for name, share in unsure)
        suspect.append(f"errors of the parameters alone make the torque of this motion uncertain by, joint {told}; "
                       f"train longer, or on such motion")  # fmt: skip
    if held_out.slow:
        told = ", ".join(f"{name} {share:.0%}" for name, share in held_out.slow)
        suspect.append(f"the held-out motion is weak, and its error says little: of the trained top speed it reaches, "
                       f"joint {told}; validate on a motion like the trained one")  # fmt: skip
    return Verdict("bad" if bad else "suspect" if suspect else "good", tuple(bad + suspect))
