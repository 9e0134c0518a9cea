"""Inertias of all bodies of a chain from the wrenches of its hinges.

In a frame in the centre of mass along the principal axes a body has only m, Ixx, Iyy, Izz: the form in quaternions of
multibody programs, whose Euler equation S diag(J) = M is the moment of `wrench`. Unlike joint torques, hinge wrenches
show each body by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from robot_dyn_id.excitation.kinematics import Kinematics, Placement
from robot_dyn_id.parameters import INERTIAL_SYMBOLS, INERTIAL_UNITS
from robot_dyn_id.problem import LinearProblem, Tile
from robot_dyn_id.regressor import Motion
from robot_dyn_id.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.wrench import CHANNELS, FrameMotion, cross, frame_motion, wrench_regressor

ALL = tuple(range(10))
CENTROIDAL = (0, 4, 6, 9)
"""The parameters that a body has in a frame along its principal axes in its centre of mass: m, Ixx, Iyy, Izz."""

EXCITED = 10.0
"""A direction of parameters is excited if it moves the wrench by more than so many times the motion's precision."""

SHARE = 1e-3
"""Least share of an entry in an unexcited direction that counts."""


@dataclass(frozen=True)
class ChainBody:
    """One body of a chain, N samples, everything along the axes of the world.

    Attributes:
        rotation: of the body's frame to the world, shape (3, 3, N).
        position: of that frame's origin [m], shape (3, N).
        acceleration: of it, without gravity [m/s^2], shape (3, N).
        rate: angular velocity along the axes of the body's frame [rad/s], shape (3, N).
        rate_change: angular acceleration along them [rad/s^2], shape (3, N).
        hinge: point that the inner hinge's wrench is told about [m], shape (3, N).
        wrench: (moment; force) that the inner neighbour exerts on the body there, along the axes of the world [N m, N],
            shape (6, N).
    """

    rotation: Array
    position: Array
    acceleration: Array
    rate: Array
    rate_change: Array
    hinge: Array
    wrench: Array

    def __post_init__(self) -> None:
        """Check the samples.

        Raises:
            InputError: a field of another shape, or with values that are not finite.
        """
        samples = self.wrench.shape[-1]
        for item in fields(self):
            values = getattr(self, item.name)
            shape = {"rotation": (3, 3), "wrench": (6,)}.get(item.name, (3,))
            if values.shape != (*shape, samples):
                raise InputError(f"{item.name} of a body: its shape is {values.shape}, not {(*shape, samples)}")
            if not (finite := np.isfinite(values.reshape(-1, samples)).all(axis=0)).all():
                raise InputError(
                    f"{item.name} of a body: not finite at sample {int(np.argmin(finite)) + 1} of {samples}; leave "
                    "such samples out of all bodies"
                )

    def motion(self, gravity: Sequence[float]) -> FrameMotion:
        """The motion of its frame."""
        felt = self.acceleration - np.asarray(gravity)[:, None]
        return FrameMotion(np.einsum("jin,jn->in", self.rotation, felt), self.rate, self.rate_change)


def centroidal_frames(model: RobotModel) -> tuple[Placement, ...]:
    """A frame in the centre of mass of every body, along the axes of its joint's frame.

    Raises:
        InputError: a body without mass.
    """
    frames = []
    for body, inertia in enumerate(model.inertial_parameters.reshape(-1, 10)):
        if not inertia[0] > 0.0:
            raise InputError(f"{model.name}: the body of {model.body_names[body]} has no mass: give it one in the URDF")
        frames.append(Placement(body, np.eye(3), inertia[1:4] / inertia[0]))
    return tuple(frames)


def simulated_chain(model: RobotModel, motion: Motion, frames: Sequence[Placement]) -> list[ChainBody]:
    """What exact sensors in all hinges of a robot with the inertias of its URDF show.

    Args:
        model: the robot; every body hangs at the one before it.
        motion: of its joints, N samples.
        frames: of each body, in which its motion is told.

    Raises:
        InputError: a tree with branches.
    """
    if not np.array_equal(model.parent, np.arange(len(model.parent)) - 1):
        raise InputError(f"{model.name}: not a chain, as a body carries two others")
    poses, gravity = Kinematics(model).poses(motion.q), np.asarray(model.gravity)[:, None]
    hinges = [poses.position[:, body].T for body in range(len(frames))]
    needed: list[Array] = []
    for body, inertia in enumerate(model.inertial_parameters.reshape(-1, 10)):
        own = wrench_regressor(frame_motion(model, motion, Placement(body, np.eye(3), np.zeros(3))))
        turned = np.moveaxis(poses.rotation[:, body], 0, -1)
        needed.append(np.einsum("ijn,fjn->fin", turned, np.einsum("icn,c->in", own, inertia).reshape(2, 3, -1)))
    made: list[ChainBody] = []
    for frame in frames:
        moving = frame_motion(model, motion, frame)
        turned = np.moveaxis(poses.rotation[:, frame.body] @ frame.rotation, 0, -1)
        place = hinges[frame.body] + (poses.rotation[:, frame.body] @ frame.position).T
        acceleration = np.einsum("ijn,jn->in", turned, moving.acceleration) + gravity
        hinge = hinges[frame.body]
        wrench = sum(
            np.concatenate([moment + cross(hinges[body] - hinge, force), force])
            for body, (moment, force) in enumerate(needed)
            if body >= frame.body
        )
        made.append(ChainBody(turned, place, acceleration, moving.rate, moving.rate_change, hinge, np.asarray(wrench)))
    return made


@dataclass(frozen=True)
class ChainEstimate:
    """Inertial parameters of the n bodies of a chain.

    Attributes:
        names: of the entries, numbered like the bodies from 1, shape (n, c).
        units: of the c parameters of a body.
        values: SI, shape (n, c); NaN where the motion does not tell.
        standard_deviations: one sigma, shape (n, c); infinite there.
        not_excited: names of those entries.
    """

    names: NDArray[np.str_]
    units: tuple[str, ...]
    values: Array
    standard_deviations: Array
    not_excited: tuple[str, ...]


def identify_chain(
    bodies: Sequence[ChainBody],
    rate: float,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    columns: Sequence[int] = CENTROIDAL,
    noise: Array | None = None,
    precision: float = 1e-6,
) -> ChainEstimate:
    """Inertial parameters of every body from the wrenches of all hinges.

    All bodies are fitted together, hinge wrench by hinge wrench: hinge i carries bodies i to n, and the errors of the
    sensors are independent of one another, which those of the differences between neighbours would not be.

    Args:
        bodies: the chain from the base outwards.
        rate: samples per second [Hz].
        gravity: along the axes of the world [m/s^2].
        columns: which of the ten parameters of a body in its frame are sought: `CENTROIDAL`, or `ALL`.
        noise: standard deviations of each hinge's moment and force, shape (n, 2) [N m, N]; default: that of each
            channel is found from its residuals, at first in proportion to what the hinge measures.
        precision: relative precision of the motion. Directions of parameters that move a body's wrench by less than
            `EXCITED` times this share of what the best excited direction does are not told: NaN.

    Raises:
        InputError: no bodies, bodies of different numbers of samples, hinges that show nothing (without `noise`),
            nothing excited, too few samples.
        UsageError: noise that is not positive.
    """
    sigma = _noise(bodies, noise)
    own = [wrench_regressor(body.motion(gravity))[:, columns] for body in bodies]
    shown = [_shown(rows, columns, EXCITED * precision) for rows in own]
    rows = [part.transpose(0, 2, 1) @ directions for part, (directions, _) in zip(own, shown, strict=True)]
    problem = _chain_problem(bodies, rows, sigma, rate)
    found = (WeightedLeastSquares() if noise is None else OrdinaryLeastSquares()).fit(problem)
    values, sigmas = (np.full((len(bodies), len(columns)), x) for x in (np.nan, np.inf))
    first = 0
    for number, (directions, told) in enumerate(shown):
        part = slice(first, first := first + directions.shape[1])
        values[number, told] = (directions @ found.values[part])[told]
        sigmas[number, told] = np.sqrt(np.diag(directions @ found.covariance[part, part] @ directions.T))[told]
    names = np.array([[f"{INERTIAL_SYMBOLS[c]}{n + 1}" for c in columns] for n in range(len(bodies))])
    units = tuple(INERTIAL_UNITS[column] for column in columns)
    return ChainEstimate(names, units, values, sigmas, tuple(names[np.isnan(values)].tolist()))


def _noise(bodies: Sequence[ChainBody], given: Array | None) -> Array:
    """Standard deviations of each hinge's moment and force, shape (n, 2): those given, or in proportion to them."""
    if not bodies:
        raise InputError("a chain without bodies: give one ChainBody per hinge, the base's first")
    samples = [body.wrench.shape[1] for body in bodies]
    for number, count in enumerate(samples, 1):
        if count != samples[0]:
            raise InputError(f"hinge {number}: {count} samples, but {samples[0]} of hinge 1; give the same ones of all")
    if given is not None:
        sigma = np.asarray(given, dtype=np.float64)
        if sigma.shape != (len(bodies), 2) or not np.all(sigma > 0.0):
            raise UsageError("noise must be positive, a moment's and a force's for every hinge")
        return sigma
    sizes = np.array([np.sqrt((body.wrench.reshape(2, 3, -1) ** 2).sum(axis=1).mean(axis=1)) for body in bodies])
    for number, size in enumerate(sizes, 1):
        if not size.any():
            raise InputError(f"hinge {number}: its wrench is 0 throughout; connect its sensor, or give `noise`")
    for what, size in zip(("moment", "force"), sizes.max(axis=0), strict=True):
        if not size:
            raise InputError(f"hinges 1 to {len(bodies)}: every {what} is 0 throughout; give `noise`")
    return np.where(sizes > 0.0, sizes, sizes.max(axis=0))


def _shown(rows: Array, columns: Sequence[int], share: float) -> tuple[Array, NDArray[np.bool_]]:
    """Directions of a body's parameters that its motion excites, (c, r), and the entries that they tell, (c,).

    Parameters of one unit share a scale: a column of rounding errors must not be made as long as a real one.
    """
    flat = rows.transpose(0, 2, 1).reshape(-1, len(columns))
    units = np.array([INERTIAL_UNITS[column] for column in columns])
    norms = np.linalg.norm(flat, axis=0)
    scale = np.array([norms[units == unit].max() for unit in units])
    scale = np.where(scale > 0.0, scale, 1.0)
    _, singular, right = np.linalg.svd(np.linalg.qr(flat / scale, mode="r"))
    excited = np.zeros(len(right), dtype=bool)
    excited[: len(singular)] = singular > share * singular.max(initial=0.0)
    hidden = np.abs(right[~excited]).max(axis=0, initial=0.0) > max(SHARE, share)
    return right[excited].T / scale[:, None], ~hidden


def _chain_problem(bodies: Sequence[ChainBody], own: Sequence[Array], sigma: Array, rate: float) -> LinearProblem:
    """Rows of all hinge wrenches over their noise; one channel of one hinge after the other."""
    sizes = np.cumsum([0, *(rows.shape[2] for rows in own)])
    if not sizes[-1]:
        raise InputError("nothing of the chain is excited: no body feels an acceleration or gravity")
    names = tuple(f"direction {number + 1}" for number in range(sizes[-1]))
    joints = tuple(f"hinge {number + 1} {channel}" for number in range(len(bodies)) for channel in CHANNELS)
    supports = tuple(np.arange(sizes[number], sizes[-1]) for number in range(len(bodies)) for _ in CHANNELS)

    def tiles() -> Iterator[Tile]:
        for hinge, at in enumerate(bodies):
            rows = [_carried(body, part, at.hinge) for body, part in zip(bodies[hinge:], own[hinge:], strict=True)]
            stacked = np.concatenate([*rows, at.wrench[:, None]], axis=1)
            stacked[:3] /= sigma[hinge, 0]
            stacked[3:] /= sigma[hinge, 1]
            for channel in range(6):
                yield Tile(6 * hinge + channel, 0, np.ascontiguousarray(stacked[channel]))

    return LinearProblem(names, joints, supports, tiles, rate)


def _carried(body: ChainBody, rows: Array, point: Array) -> Array:
    """A body's rows (6, N, r) in its frame as wrenches about a point along the axes of the world, shape (6, r, N)."""
    moment, force = (np.einsum("ijn,jnr->irn", body.rotation, part) for part in (rows[:3], rows[3:]))
    return np.concatenate([moment + cross((body.position - point)[:, None], force), force])
