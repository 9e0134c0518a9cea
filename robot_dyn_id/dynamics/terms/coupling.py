# SPDX-License-Identifier: Apache-2.0
"""Coordinates that are weighted sums of joints, as the motors of coupled wrists turn.

In a Staubli-type wrist the motor of joint 6 turns with q5 + q6 as well: its inertia and its friction act on the sum of
both velocities and appear in the torque of both joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dynamics.terms.contract import Coordinate, Term, refuse_overlaps
from robot_dyn_id.errors import UsageError

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

    def coordinate(self, units: Mapping[str, str], bodies: Sequence[str]) -> Coordinate:
        """The coordinate on a robot.

        Args:
            units: unit of the effort of each joint, in their order.
            bodies: names of all moving joints.

        Raises:
            UsageError: the name of a joint, a joint that is unknown or not identified, or revolute and prismatic joints
                in one sum.
        """
        weights = dict(self.weights)
        if self.name in bodies:
            raise UsageError(f"coupling {self.name}: this is the name of a joint; call it something else")
        missing = [joint for joint in weights if joint not in units]
        if missing:
            raise UsageError(f"coupling {self.name}: {', '.join(missing)} is not among the joints {', '.join(units)}")
        kinds = {units[joint] for joint in weights}
        if len(kinds) > 1:
            raise UsageError(
                f"coupling {self.name}: {', '.join(weights)} are prismatic and revolute: their sum has no unit"
            )
        along = tuple(weights.get(joint, 0.0) for joint in units)
        return Coordinate(self.name, f"_{self.name}", along, 0.0, kinds.pop())
