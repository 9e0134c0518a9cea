# SPDX-License-Identifier: Apache-2.0
"""Validity of a parameter set: held-out errors, verdict, and the uses that it is fit for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.parameters.robot import MOST_BODIES
from robot_dyn_id.parameters.rules import MOST_PER_ENTRY, UNKNOWN, refused, rule
from robot_dyn_id.uses import ANSWERS, USES

HELD_OUT_METHODS = (UNKNOWN, "cross_validation", "recordings", "range")
"""Origins of held-out data: blocked cross-validation, recordings of their own, or a range of the training data."""


@dataclass(frozen=True)
class FitFor:
    """Whether a model is fit for a use, and the figure that the answer rests on.

    Attributes:
        use: one of `USES`.
        answer: one of `ANSWERS`.
        figure: measured figure; NaN if it could not be determined.
        unit: unit of figure and threshold.
        threshold: value of the figure up to which the answer is yes.
        because: codes of the findings that the answer rests on.
        joints: joints that limit the answer; empty if it holds for the whole arm.
    """

    use: str = field(metadata=rule(words=USES))
    answer: str = field(metadata=rule(words=ANSWERS))
    figure: float
    unit: str = field(metadata=rule())
    threshold: float
    because: tuple[str, ...] = field(default=(), metadata=rule(most=MOST_PER_ENTRY))
    joints: tuple[str, ...] = field(default=(), metadata=rule(most=MOST_PER_ENTRY))


@dataclass(frozen=True)
class Judgment:
    """Validity of a model of n joints.

    Attributes:
        held_out_nrmse: NRMSE of each joint on held-out data, a ratio, shape (n,).
        held_out_all_joints_nrmse: NRMSE of all joints on held-out data, a ratio.
        held_out_method: origin of the held-out data, one of `HELD_OUT_METHODS`.
        verdict: good, suspect or bad.
        reasons: reasons why the verdict is not good.
        fit_for: uses that the model is fit for; empty if they have not been judged.
        unexplained_joints: joints of whose held-out effort the model explains too little for loads to be found in it.
    """

    held_out_nrmse: Array = field(metadata=rule("joints", least=0.0, nan=True))  # NaN: its held-out torque is zero
    held_out_all_joints_nrmse: float = field(metadata=rule(least=0.0, nan=True))
    held_out_method: str = field(metadata=rule(words=HELD_OUT_METHODS))
    verdict: str = field(metadata=rule(words=("good", "suspect", "bad")))
    reasons: tuple[str, ...] = field(metadata=rule(most=1000))
    fit_for: tuple[FitFor, ...] = field(metadata=rule(most=100, longest=0))
    unexplained_joints: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))

    @property
    def held_out_shares(self) -> Array:
        """Held-out NRMSE of each joint, shape (n,); that of all joints where a joint has none."""
        own = self.held_out_nrmse
        return np.where(np.isfinite(own), own, self.held_out_all_joints_nrmse)

    def held_out_error(self, torque: Array) -> Array:
        """Torque error of the model along a motion [N m or N], shape (n,): held-out NRMSE times RMS torque.

        Args:
            torque: torque of the model [N m or N], shape (N, n).
        """
        return np.asarray(self.held_out_shares * np.sqrt(np.mean(torque**2, axis=0)))

    def check(self) -> None:
        """Refuse answers about a use that is there twice."""
        uses = [entry.use for entry in self.fit_for]
        if len(set(uses)) < len(uses):
            raise refused("judgment.fit_for has one use twice")
