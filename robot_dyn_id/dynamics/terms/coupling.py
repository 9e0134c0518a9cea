# SPDX-License-Identifier: Apache-2.0
"""Coordinates that are weighted sums of joints, as the motors of coupled wrists turn.

In a Staubli-type wrist the motor of joint 6 turns with q5 + q6 as well: its inertia and its friction act on the sum of
both velocities and appear in the torque of both joints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dynamics.terms.contract import Coordinate, Term, refuse_overlaps
from robot_dyn_id.errors import UsageError
from robot_dyn_id.model.robot import RobotModel

COUPLING_PREFIX = "coupling"
"""Weights are stored among the constants of a parameter set, as `coupling.<joint>`."""


@dataclass(frozen=True)
class Coupling:
    """Terms on a weighted sum of joint positions.

    Attributes:
        name: name of the coupling; its columns are named after it, e.g. `fv_wrist`.
        weights: joint names and their weights.
        terms: terms that act on the sum.
    """

    name: str
    weights: tuple[tuple[str, float], ...]
    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            UsageError: no joint, a joint twice, a weight of 0 or that is not finite, terms that overlap.
        """
        names = [joint for joint, _ in self.weights]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"coupling {self.name}: give every joint that it is a sum of, once, with its weight")
        for joint, weight in self.weights:
            if not 0.0 < abs(weight) < np.inf:
                raise UsageError(f"coupling {self.name}: weight of {joint} must be a number other than 0, not {weight}")
        try:
            refuse_overlaps(self.terms)
        except UsageError as error:
            raise UsageError(f"coupling {self.name}: {error}") from None

    def coordinate(self, model: RobotModel) -> Coordinate:
        """The coordinate on a robot.

        Raises:
            UsageError: the name of a joint, a joint that is unknown or not identified, or revolute and prismatic joints
                or efforts in several units in one sum.
        """
        weights, joints = dict(self.weights), model.joint_names
        if self.name in model.body_names:
            raise UsageError(f"coupling {self.name}: this is the name of a joint; call it something else")
        missing = [joint for joint in weights if joint not in joints]
        if missing:
            raise UsageError(f"coupling {self.name}: {', '.join(missing)} is not among the joints {', '.join(joints)}")
        kinds = {(bool(model.slides[j]), model.effort_units[j]) for j, joint in enumerate(joints) if joint in weights}
        (slides, unit), *others = kinds
        if any(other != slides for other, _ in others):
            raise UsageError(
                f"coupling {self.name}: {', '.join(weights)} are prismatic and revolute: their sum has no unit"
            )
        if others:
            raise UsageError(
                f"coupling {self.name}: the efforts of {', '.join(weights)} have different units, as drive gains are "
                "not known: give the gains, or leave the coupling out"
            )
        along = tuple(weights.get(joint, 0.0) for joint in joints)
        return Coordinate(self.name, f"_{self.name}", along, 0.0, unit, slides)
