# SPDX-License-Identifier: Apache-2.0
"""Robot of a parameter set."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.parameters.rules import refused, rule

LONGEST_URDF = 2**24
"""Greatest length of the URDF text [characters]."""

STRONGEST_GRAVITY = 20.0
"""Greatest gravity [m/s^2]: twice the Earth's."""

MOST_BODIES = 100
"""Greatest number of joints."""


def urdf_hash(urdf: str) -> str:
    """Hexadecimal SHA-256 of a robot description, by which a controller knows its robot."""
    return hashlib.sha256(urdf.encode()).hexdigest()


@dataclass(frozen=True)
class IdentifiedRobot:
    """Robot that was identified, with n joints and b moving bodies.

    Attributes:
        name: name of the robot in its URDF.
        urdf: text of the URDF.
        urdf_sha256: hash of the URDF, by which a controller identifies its robot.
        joint_names: names of the n joints.
        held_joint_names: names of the locked joints.
        held_joint_positions: positions of the locked joints [rad or m].
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        body_names: names of the b moving joints, mimic joints included.
    """

    name: str = field(metadata=rule())
    urdf: str = field(repr=False, metadata=rule(longest=0))
    urdf_sha256: str = field(metadata=rule())
    joint_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))
    held_joint_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))
    held_joint_positions: Array = field(metadata=rule("held", finite=True))
    gravity: Array = field(metadata=rule("axes", finite=True))
    body_names: tuple[str, ...] = field(metadata=rule(most=MOST_BODIES, unique=True))

    def check(self) -> None:
        """Refuse a URDF, joints or a gravity that no identification writes."""
        if len(self.urdf) > LONGEST_URDF:
            raise refused(f"robot.urdf has {len(self.urdf)} characters, at most {LONGEST_URDF} are read")
        if not self.urdf.lstrip("\ufeff \t\r\n").startswith("<"):
            raise refused(
                "robot.urdf is not the text of a URDF: it must begin with '<' (the name of a file is not read)"
            )
        if urdf_hash(self.urdf) != self.urdf_sha256:
            raise refused("its URDF is not the one it was identified with (the hash differs)")
        strange = next((name for name in self.joint_names if name not in self.body_names), None)
        if strange is not None:
            raise refused(f"robot.joint_names has {strange}, which is not one of body_names")
        both = next((name for name in self.held_joint_names if name in self.joint_names), None)
        if both is not None:
            raise refused(f"joint {both} is among joint_names and held_joint_names")
        strength = float(np.linalg.norm(self.gravity))
        if strength > STRONGEST_GRAVITY:
            raise refused(f"robot.gravity is {strength:.4g} m/s^2, expected at most {STRONGEST_GRAVITY:g}")
