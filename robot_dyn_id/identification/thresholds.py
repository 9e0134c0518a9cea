# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the verdict and of the answers about uses."""

from __future__ import annotations

from dataclasses import dataclass

from robot_dyn_id.errors import UsageError

ERROR_RATIOS = ("bad_nrmse", "joint_nrmse")
"""Thresholds of errors relative to the torque: above 1 a model would be worse than none."""


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the verdict and of the answers about uses; ratios.

    Attributes:
        bad_nrmse: all-joint NRMSE above which the verdict is bad.
        joint_nrmse: NRMSE of a joint above which its error is reported: a warning if the error also exceeds friction
            and `rated_share`, else information.
        constant_share: share of the torque above which a joint must be predicted better than by a constant.
        nominal_margin: excess of the error over that of the URDF's own parameters above which the verdict is bad.
        explained: explained share of a joint's torque variance below which the joint is not identifiable.
        condition_number: condition number (unit-norm columns) above which it is reported.
        dropped_share: share of dropped rows above which the verdict is suspect.
        outside_share: share of samples far outside the trained ranges above which the verdict is suspect.
        own_nrmse: expected error of a joint due to the parameter covariance above which it is reported.
        friction_share: error that gravity compensation tolerates, as a share of the friction that holds the joint.
        rated_share: error that gravity compensation and feed-forward always tolerate, as a share of the rated effort.
        tracking_share: tracking error with feed-forward or computed torque that is tolerated, as a share of that of the
            same feedback with gravity compensation alone.
        rollout_share: position error after 1 s of simulation without feedback, as a share of the trained range.
        contact_share: smallest detectable external torque that collision detection tolerates, as a share of the rated
            effort.
        payload_share: apparent payload that payload estimation tolerates, as a share of the mass that needs the rated
            effort of a joint.
        limited_ratio: ratio of figure and threshold up to which the answer about a use is limited.
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
    friction_share: float = 1.0
    rated_share: float = 0.02
    tracking_share: float = 0.50
    rollout_share: float = 0.10
    contact_share: float = 0.10
    payload_share: float = 0.02
    limited_ratio: float = 3.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a threshold that is negative or not a number, or an error above the torque itself.
        """
        for name, value in vars(self).items():
            if not value >= 0.0:
                raise UsageError(f"{name} must be 0 or larger, not {value:g}")
            if name in ERROR_RATIOS and not value <= 1.0:
                raise UsageError(
                    f"{name} is a ratio from 0 to 1, not {value:g}: 30 % are 0.3, and 1 is the torque itself"
                )
