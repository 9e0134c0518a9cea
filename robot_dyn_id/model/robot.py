# SPDX-License-Identifier: Apache-2.0
"""The robot model: a tree of moving bodies, read from URDF.

Bodies are the moving joints with everything that is fixed to them lumped in, in Pinocchio's order (parents first).
Mimic followers are bodies of their own: with n independent joints and b bodies, q_full = coupling q + offset.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.errors import ModelError, UsageError, suggest_nearest
from robot_dyn_id.model.screw_chain import make_chain_urdf, make_screws
from robot_dyn_id.model.urdf import RobotDescription, resolve_mimics
from robot_dyn_id.parameters import FORCE_UNIT, INERTIAL_UNITS, TORQUE_UNIT, ParameterSet, inertial_units_over

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Default gravity in the base frame, the value of Pinocchio [m/s^2]."""

MAX_GRAVITY = 30.0
"""Largest magnitude of a gravity vector [m/s^2]: above that of any planet of the solar system (Jupiter: 24.8)."""

UNIT_TOLERANCE = 0.01
"""Difference from 1 up to which the magnitude of a gravity vector is that of a unit vector."""


def check_gravity(gravity: Sequence[float]) -> None:
    """Check a gravity vector.

    Args:
        gravity: gravity vector in the base frame [m/s^2].

    Raises:
        UsageError: not three finite numbers, a unit vector, or a vector in another unit; the message has the vector of
            this direction in m/s^2.
    """
    if len(gravity) != 3 or not all(math.isfinite(number) for number in gravity):
        raise UsageError(f"gravity {list(gravity)} must be 3 numbers")
    magnitude = math.hypot(*gravity)
    if magnitude <= MAX_GRAVITY and abs(magnitude - 1.0) > UNIT_TOLERANCE:
        return
    what = f"a magnitude of {magnitude:.4g} m/s^2, above {MAX_GRAVITY:g}" if magnitude > MAX_GRAVITY else "length 1"
    largest = max(map(abs, gravity))
    direction = [number / largest for number in gravity]  # magnitudes of 1e300 have no finite sum of squares
    standard = [round(9.81 * number / math.hypot(*direction), 3) + 0.0 for number in direction]
    raise UsageError(f"gravity {list(gravity)} has {what}: give it in m/s^2, `gravity: {standard}`")


@dataclass(frozen=True)
class Limits:
    """Limits of the independent joints, shape (n,) each; infinite where the URDF gives none."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


@dataclass(frozen=True)
class RobotModel:
    """Kinematic tree, nominal inertias and gravity of a robot with n independent joints and b moving bodies.

    Example:
        ```python
        robot = rdi.RobotModel.from_file("arm.urdf", gravity=(0.0, 0.0, -9.81))
        print(robot.name, robot.joint_names, robot.limits.velocity)
        ```

    Attributes:
        name: the robot's name.
        urdf: the URDF text.
        joint_names: independent joints, shape (n,).
        body_names: moving joints, mimic followers included, shape (b,).
        parent: parent body, -1 for the base, shape (b,).
        rotation: rotation of the joint frame to its parent's at q = 0, shape (b, 3, 3).
        translation: origin of the joint frame in its parent's [m], shape (b, 3).
        axis: unit motion axis in the joint frame, shape (b, 3).
        prismatic: whether the joint slides, shape (b,).
        leader: the independent joint that moves each body, shape (b,).
        multiplier: mimic multiplier, 1 for independent joints, shape (b,).
        offset: mimic offset [rad or m], shape (b,).
        inertial_parameters: nominal standard parameters, m mx my mz Ixx Ixy Iyy Ixz Iyz Izz of each body in its joint
            frame about that frame's origin, shape (10 b,).
        gravity: gravity vector in the base frame [m/s^2], shape (3,).
        held: positions of the locked joints [rad or m].
        limits: limits of the independent joints.
        drive_units: units of efforts that are not N m or N, as their drive gains are not known, by joint name.
    """

    name: str
    urdf: str = field(repr=False)
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    parent: Integers
    rotation: Array = field(repr=False)
    translation: Array = field(repr=False)
    axis: Array = field(repr=False)
    prismatic: Mask
    leader: Integers
    multiplier: Array
    offset: Array
    inertial_parameters: Array = field(repr=False)
    gravity: Array
    held: dict[str, float]
    limits: Limits = field(repr=False)
    drive_units: Mapping[str, str] = field(default_factory=dict)

    @property
    def coupling(self) -> Array:
        """G of q_full = G q + offset, shape (b, n)."""
        matrix = np.zeros((len(self.body_names), len(self.joint_names)))
        matrix[np.arange(len(self.body_names)), self.leader] = self.multiplier
        return matrix

    @property
    def slides(self) -> Mask:
        """Whether each independent joint is prismatic, shape (n,)."""
        return self.prismatic[[self.body_names.index(name) for name in self.joint_names]]

    @property
    def position_units(self) -> tuple[str, ...]:
        """Unit of each independent joint's position: m for prismatic joints, else rad."""
        return tuple("m" if slides else "rad" for slides in self.slides)

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of each independent joint's effort: N for prismatic joints, else N m; see `drive_units`."""
        kinds = zip(self.joint_names, self.slides, strict=True)
        return tuple(self.drive_units.get(name, FORCE_UNIT if slides else TORQUE_UNIT) for name, slides in kinds)

    @property
    def inertial_units(self) -> tuple[str, ...]:
        """Unit of each standard parameter, shape (10 b,).

        A body that is moved by joints with `drive_units` has the units that follow from the last of them: its
        parameters are not in kg, kg m and kg m^2, as they also have to explain these efforts.
        """
        units: list[tuple[str, ...]] = []
        for parent, leader in zip(self.parent.tolist(), self.leader.tolist(), strict=True):
            drive = self.drive_units.get(self.joint_names[leader])
            inherited = units[parent] if parent >= 0 else INERTIAL_UNITS
            units.append(inertial_units_over(drive, bool(self.slides[leader])) if drive else inherited)
        return tuple(unit for body in units for unit in body)

    @classmethod
    def from_urdf(
        cls,
        text: str,
        joints: Sequence[str] | None = None,
        held: Mapping[str, float] | None = None,
        gravity: Sequence[float] = STANDARD_GRAVITY,
    ) -> RobotModel:
        """Model of the text of a plain URDF; see `from_description`."""
        return cls.from_description(RobotDescription(text), joints, held, gravity)

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> RobotModel:
        """Model of a parameter set: its own URDF, joints, locked joints, gravity and units of efforts."""
        held = dict(zip(parameters.robot.held_joint_names, parameters.robot.held_joint_positions.tolist(), strict=True))
        model = cls.from_urdf(
            parameters.robot.urdf, parameters.robot.joint_names, held, tuple(parameters.robot.gravity)
        )
        return replace(model, drive_units=parameters.drive_units)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        joints: Sequence[str] | None = None,
        held: Mapping[str, float] | None = None,
        gravity: Sequence[float] = STANDARD_GRAVITY,
    ) -> RobotModel:
        """Model of a file; see `from_description` and `RobotDescription.from_file`."""
        return cls.from_description(RobotDescription.from_file(path), joints, held, gravity)

    @classmethod
    def from_screws(
        cls,
        axes: Sequence[Sequence[float]],
        origins: Sequence[Sequence[float]],
        gravity: Sequence[float] = STANDARD_GRAVITY,
    ) -> RobotModel:
        """Model of a serial chain of revolute joints from their screw axes; its nominal inertias are 0.

        A file of screws has names, prismatic joints, limits and inertias too: `from_file`.

        Args:
            axes: joint axes in the base frame at configuration 0, shape (n, 3).
            origins: a point on each axis in the base frame [m], shape (n, 3): the origin of the joint's frame.
            gravity: gravity vector in the base frame [m/s^2].

        Raises:
            UsageError: axes or origins of another shape, or an axis without a direction.
        """
        return cls.from_urdf(make_chain_urdf(make_screws(axes, origins)), gravity=gravity)

    @classmethod
    def from_description(
        cls,
        description: RobotDescription,
        joints: Sequence[str] | None = None,
        held: Mapping[str, float] | None = None,
        gravity: Sequence[float] = STANDARD_GRAVITY,
    ) -> RobotModel:
        """Model of a robot description.

        Args:
            description: plain URDF and its origin.
            joints: names of the independent joints; all others are locked. Default: all that move and do not mimic.
            held: where joints that are not kept stand [rad or m]; 0 where not given. Positions of mimic joints follow
                from their leaders whatever is given.
            gravity: gravity vector in the base frame [m/s^2]: a tilted or hanging base is a turned vector.

        Raises:
            ModelError: broken, xacro, floating base, planar joint, closed loop, unknown joint, no joints.
            UsageError: see `check_gravity`, or a held position is not a number.
        """
        check_gravity(gravity)
        if not all(math.isfinite(number) for number in (held or {}).values()):
            raise UsageError(f"held positions {held} must be finite")
        text, label = description.text, description.source
        tree = description.root()
        return _model_from(text, label, tree, joints, dict(held or {}), np.array(gravity, dtype=np.float64))


def parse_with_pinocchio(text: str, label: str, gravity: Array) -> Any:
    """Pinocchio's model of a URDF with its root welded; mimic joints are free joints in it.

    Raises:
        ModelError: Pinocchio refuses the text.
    """
    import pinocchio

    with _quiet_parser() as parser_output:
        try:
            model = pinocchio.buildModelFromXML(text)
        except Exception:  # the reason is what the C++ parser printed
            raise ModelError(f"{label}: broken URDF ({parser_output() or 'rejected by Pinocchio'})") from None
        if parser_output("inertial element"):  # Pinocchio continues without the mass of the link
            raise ModelError(f"{label}: broken URDF ({parser_output('inertial element')})")
    model.gravity.linear = gravity
    return model


_catching = threading.Lock()
"""Held while standard error is caught: the last of two threads would restore it to what the first has put there."""


@contextmanager
def _quiet_parser() -> Iterator[Callable[..., str]]:
    """Catch what the C++ URDF parser prints on standard error.

    Yields a function that gives its first line with some words, by default its first line.
    """
    with _catching, tempfile.TemporaryFile() as caught:

        def first_line(words: str = "") -> str:
            caught.seek(0)
            lines = caught.read().decode(errors="replace").split("\n")
            return next((line.replace("Error:", "").strip() for line in lines if line.strip() and words in line), "")

        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield first_line
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def make_configuration_of(model: Any, names: Sequence[str], positions: Array) -> Array:
    """Pinocchio configurations with the named joints at `positions`, shape (..., joints) -> (..., nq).

    Continuous joints are (cos, sin) pairs in Pinocchio; all joints that are not named stand at 0.
    """
    import pinocchio

    configurations = np.zeros((*positions.shape[:-1], model.nq)) + pinocchio.neutral(model)
    for column, name in enumerate(names):
        joint = model.joints[model.getJointId(name)]
        angle = positions[..., column]
        if joint.nq == 2:
            configurations[..., joint.idx_q] = np.cos(angle)
            configurations[..., joint.idx_q + 1] = np.sin(angle)
        else:
            configurations[..., joint.idx_q] = angle
    return np.asarray(configurations)


def reduce_pinocchio(model: Any, bodies: Sequence[str], held: Mapping[str, float]) -> Any:
    """Pinocchio's model with only `bodies` free and every other joint fixed at its held position (0 by default)."""
    import pinocchio

    names = list(model.names)[1:]
    positions = np.array([held.get(name, 0.0) for name in names])
    locked = [model.getJointId(name) for name in names if name not in bodies]
    if not locked:
        return model
    model, links = model.copy(), {}
    for frame in model.frames:  # Pinocchio finds a joint by its name, which a link must not have then
        if frame.name in names and frame.type == pinocchio.BODY:
            links[f"{frame.name} "] = frame.name
            frame.name = f"{frame.name} "
    reduced = pinocchio.buildReducedModel(model, locked, make_configuration_of(model, names, positions))
    for frame in reduced.frames:
        frame.name = links.get(frame.name, frame.name)
    return reduced


def _model_from(
    text: str,
    label: str,
    root: ElementTree.Element,
    joints: Sequence[str] | None,
    held: dict[str, float],
    gravity: Array,
) -> RobotModel:
    full = parse_with_pinocchio(text, label, gravity)
    moving = list(full.names)[1:]
    followers = {name: mimic for name, mimic in resolve_mimics(root, label).items() if name in moving}
    independent = [name for name in moving if name not in followers]
    for name in [*(joints or ()), *held]:
        if name not in independent and not (name in held and name in followers):
            why = f"mimics {followers[name][0]}" if name in followers else "is not a moving joint of the robot"
            listed = f"{', '.join(independent)}{suggest_nearest(name, independent)}"
            raise ModelError(f"{label}: joint {name} {why}; its joints are {listed}")
    kept = [name for name in independent if joints is None or name in joints]
    if not kept:
        raise ModelError(f"{label}: no joint moves, there is nothing to identify")
    positions = {name: held.get(name, 0.0) for name in independent if name not in kept}
    leaders = {name: (name, 1.0, 0.0) for name in kept}
    for name, (leader, multiplier, offset) in followers.items():
        if leader in kept:
            leaders[name] = (leader, multiplier, offset)
        else:
            positions[name] = multiplier * positions.get(leader, 0.0) + offset
    reduced = reduce_pinocchio(full, list(leaders), positions)
    return RobotModel(urdf=text, gravity=gravity, held=positions, **_structure(reduced, label, kept, leaders))


def _structure(
    model: Any, label: str, kept: Sequence[str], leaders: Mapping[str, tuple[str, float, float]]
) -> dict[str, Any]:
    """Fields of a robot model that follow from Pinocchio's: joints, bodies, inertias, limits."""
    bodies = list(model.names)[1:]
    subspaces = np.array([_motion_subspace(model.joints[i + 1], label, name) for i, name in enumerate(bodies)])
    prismatic = np.linalg.norm(subspaces[:, :3], axis=1) > 0.5
    axis = np.where(prismatic[:, None], subspaces[:, :3], subspaces[:, 3:])
    placements = [model.jointPlacements[i + 1] for i in range(len(bodies))]
    of_kept = [bodies.index(name) for name in kept]
    return dict(
        name=model.name,
        joint_names=tuple(kept),
        body_names=tuple(bodies),
        parent=np.array([model.parents[i + 1] - 1 for i in range(len(bodies))], dtype=np.int64),
        rotation=np.array([p.rotation for p in placements]),
        translation=np.array([p.translation for p in placements]),
        axis=axis,
        prismatic=prismatic,
        leader=np.array([kept.index(leaders[name][0]) for name in bodies], dtype=np.int64),
        multiplier=np.array([leaders[name][1] for name in bodies]),
        offset=np.array([leaders[name][2] for name in bodies]),
        inertial_parameters=np.concatenate([model.inertias[i + 1].toDynamicParameters() for i in range(len(bodies))]),
        limits=_limits(model, of_kept),
    )


def _motion_subspace(joint: Any, label: str, name: str) -> Array:
    """Linear and angular part of a one-degree-of-freedom joint's motion, shape (6,)."""
    if joint.nv != 1:
        raise ModelError(
            f"{label}: joint {name} has {joint.nv} degrees of freedom; only revolute and prismatic ones do"
        )
    data = joint.createData()
    joint.calc(data, np.array([1.0, 0.0]) if joint.nq == 2 else np.zeros(1))
    subspace = np.asarray(data.S, dtype=np.float64).reshape(6)
    if not abs(np.linalg.norm(subspace) - 1.0) < 1e-6:
        raise ModelError(f"{label}: joint {name} has the axis 0 0 0")
    return subspace


def _limits(model: Any, bodies: Sequence[int]) -> Limits:
    joints = [model.joints[i + 1] for i in bodies]
    continuous = np.array([joint.nq == 2 for joint in joints])

    def of(values: Array, indices: Sequence[int], unlimited: float) -> Array:
        picked = np.array([values[i] for i in indices], dtype=np.float64)
        return np.where(np.isfinite(picked), picked, math.inf) if unlimited > 0 else picked

    index_q, index_v = [j.idx_q for j in joints], [j.idx_v for j in joints]
    lower = np.where(continuous, -math.inf, of(model.lowerPositionLimit, index_q, -1))
    upper = np.where(continuous, math.inf, of(model.upperPositionLimit, index_q, -1))
    return Limits(lower, upper, of(model.velocityLimit, index_v, 1), of(model.effortLimit, index_v, 1))
