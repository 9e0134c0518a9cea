# SPDX-License-Identifier: Apache-2.0
"""Robot of `quaternion6r`: simulated signals, motions, and the paper's own fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.loads.chain import CENTROIDAL, ChainBody, find_centroidal_frames, find_joint_motion, simulate_chain
from robot_dyn_id.loads.chain_estimate import EXCITED_RATIO, ChainEstimate, identify_chain
from robot_dyn_id.loads.chain_likelihood import Reading, identify_moving_chain
from robot_dyn_id.loads.wrench import cross, wrench_regressor
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.model.quaternions import compute_quaternion_rates, rate_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.quaternion6r.euler import compute_angle_rates, rate_angles

GRAVITY = (0.0, 0.0, -9.80665)
"""Gravity in the base frame [m/s^2]."""

PRINTED = np.array([0.3, 0.6, 0.9, 1.2, 1.5])
"""Times at which the paper samples its simulation [s]."""

LENGTH = 2.0
"""Duration of that simulation [s]."""

ACCELERATION = np.deg2rad(30.0)
"""Acceleration of hinges 1 and 2 from rest [rad/s^2]; it gives the 60 degrees of the paper's 2 s."""

POSTURE = (0.0, 0.0, np.pi / 2, 0.0, np.pi / 2, 0.0)
"""Assumed configuration of the hinges at the start [rad]."""

NOISE = 1e-3
"""Noise as a fraction of each signal's root mean square."""

ROUNDING = 1e-9
"""Signals below this fraction of the largest one of their kind count as 0."""

Change = Callable[[Array], Array]


@dataclass(frozen=True)
class Signals:
    """Signals of a body that the paper takes from its simulation, N samples.

    Attributes:
        quaternion: rotation from body to world, scalar first, shape (4, N).
        first, second: derivatives of the quaternion [1/s, 1/s^2], shape (4, N).
        acceleration: acceleration of the center of mass in world axes, without gravity [m/s^2], shape (3, N).
        moment, force: wrench of the inner hinge in world axes [N m, N], shape (3, N).
    """

    quaternion: Array
    first: Array
    second: Array
    acceleration: Array
    moment: Array
    force: Array

    @classmethod
    def from_body(cls, body: ChainBody) -> Signals:
        """Signals of a body."""
        angles = rate_quaternions(body.rotation, body.rate, body.rate_change)
        return cls(*angles, body.acceleration, body.wrench[:3], body.wrench[3:])

    @property
    def angles(self) -> Array:
        """Quaternion and derivatives, shape (12, N)."""
        return np.concatenate([self.quaternion, self.first, self.second])

    @property
    def turned(self) -> tuple[Array, Array, Array]:
        """Rotation, angular velocity and acceleration along the axes of the body, of the normalized quaternion."""
        return compute_quaternion_rates(
            self.quaternion / np.linalg.norm(self.quaternion, axis=0), self.first, self.second
        )

    def changed(self, change: Change, wrench_only: bool = False) -> Signals:
        """Apply a change to every signal, or to those of the hinge only."""
        names = ("moment", "force") if wrench_only else [item.name for item in fields(self)]
        return Signals(**{k: change(v) if k in names else v for k, v in vars(self).items()})


@dataclass(frozen=True)
class SpaceArm:
    """The robot of the paper.

    Attributes:
        model: robot model.
        frames: frames at the centers of mass of the bodies.
        truth: m, J11, J22, J33 of the bodies, shape (6, 4) [kg, kg m^2].
    """

    model: RobotModel
    frames: tuple[Placement, ...]
    truth: Array

    @classmethod
    def from_urdf(cls) -> SpaceArm:
        """Arm of the URDF."""
        model = model_of("quaternion6r", GRAVITY)
        frames = find_centroidal_frames(model)
        inertias = model.inertial_parameters.reshape(-1, 10)[:, CENTROIDAL]
        offset = np.array([frame.position[0] for frame in frames])
        inertias[:, 2:] -= (inertias[:, 0] * offset**2)[:, None]  # about the center of mass, which is on the x axis
        return cls(model, frames, inertias)

    def recorded(self, motion: Motion) -> list[Signals]:
        """Signals of the paper's simulation."""
        return [Signals.from_body(body) for body in simulate_chain(self.model, motion, self.frames)]

    def bodies(self, signals: Sequence[Signals]) -> list[ChainBody]:
        """Chain as in the paper: positions follow from quaternions and lengths, hinges are at both ends."""
        return self._chained(signals, [read.turned for read in signals])

    def bodies_of_angles(self, motion: Motion, change: Change) -> list[ChainBody]:
        """The chain from signals with Euler angles in the place of quaternions, each of them changed.

        Samples at which the angles of a body are singular are left out of all bodies. A body whose posture is singular
        throughout, as that of body 1 whose long axis stays vertical, keeps its quaternion.
        """
        exact = simulate_chain(self.model, motion, self.frames)
        angles = [np.stack(rate_angles(body.rotation, body.rate, body.rate_change)) for body in exact]
        regular = [np.isfinite(one).all(axis=(0, 1)) for one in angles]
        usable = np.all([own for own in regular if own.any()], axis=0)
        read = [Signals.from_body(body).changed(lambda x: change(x[..., usable])) for body in exact]
        turned = [
            compute_angle_rates(*change(one[..., usable])) if own.any() else signals.turned
            for one, own, signals in zip(angles, regular, read, strict=True)
        ]
        return self._chained(read, turned)

    def _chained(self, signals: Sequence[Signals], turned: Sequence[tuple[Array, Array, Array]]) -> list[ChainBody]:
        """Bodies one behind the other, from their rotations, angular velocities and accelerations."""
        made: list[ChainBody] = []
        hinge = np.zeros_like(signals[0].force)
        for read, frame, (rotation, rate, change) in zip(signals, self.frames, turned, strict=True):
            half = np.einsum("ijn,j->in", rotation, frame.position)
            wrench = np.concatenate([read.moment, read.force])
            made.append(ChainBody(rotation, hinge + half, read.acceleration, rate, change, hinge, wrench))
            hinge = hinge + 2.0 * half
        return made

    def fitted(self, signals: Sequence[Signals], rate: float, precision: float = 1e-6) -> ChainEstimate:
        """Identify all bodies together, see `identify_chain`."""
        return identify_chain(self.bodies(signals), rate, GRAVITY, precision=precision)

    def fitted_with_motion(self, signals: Sequence[Signals]) -> ChainEstimate:
        """Identify all bodies and the motion of the hinges from signals with `NOISE`, see `identify_moving_chain`."""

        def observed(number: int, body: ChainBody) -> Array:
            """With the sign of the measured quaternion: both signs are the same rotation."""
            expected, measured = Signals.from_body(body), signals[number].quaternion
            sign = (expected.quaternion * np.tile(measured, expected.quaternion.shape[1] // measured.shape[1])).sum(
                axis=0
            )
            return np.concatenate([expected.angles * np.where(sign < 0.0, -1.0, 1.0), expected.acceleration])

        readings = []
        for frame, read, size in zip(self.frames, signals, estimate_noise_of(signals), strict=True):
            angles = np.repeat([size["quaternion"], size["first"], size["second"]], 4)
            deviations = np.concatenate([angles, np.full(3, size["acceleration"])])
            motion, wrench = np.concatenate([read.angles, read.acceleration]), np.concatenate([read.moment, read.force])
            readings.append(Reading(frame, motion, deviations, wrench, np.array([size["moment"], size["force"]])))
        start = find_joint_motion(self.model, self.bodies(signals), self.frames)
        return identify_moving_chain(self.model, readings, observed, start, precision=NOISE)

    def rounded(self, motion: Motion, digits: int) -> list[Signals]:
        """Signals rounded to a number of significant digits."""
        return [read.changed(round_to_digits(digits)) for read in self.recorded(motion)]

    def printed(self, motion: Motion, digits: int) -> ChainEstimate:
        """Found from such signals."""
        return self.fitted(self.rounded(motion, digits), 1.0 / PRINTED[0], 10.0**-digits)


def make_accelerated_motion(
    times: Array, acceleration: float = ACCELERATION, posture: Sequence[float] = POSTURE
) -> Motion:
    """From rest, hinges 1 and 2 at a constant angular acceleration, the others locked."""
    moves = acceleration * np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])[:, None]
    return Motion(np.array(posture)[:, None] + moves * times**2 / 2, moves * times, moves * np.ones_like(times))


def make_swinging(times: Array) -> Motion:
    """Not the paper's: hinge k swings about its posture by 30 degrees with (7 - k) / 10 Hz, the first ones fastest."""
    w = 2.0 * np.pi * 0.1 * np.arange(6.0, 0.0, -1.0)[:, None]
    size, wave = np.deg2rad(30.0), np.sin(w * times)
    return Motion(np.array(POSTURE)[:, None] + size * wave, size * w * np.cos(w * times), -size * w**2 * wave)


def move_through_singular_posture(times: Array, nearest: float) -> Motion:
    """Not the paper's: the paper's motion from another posture, body 2 passes a pitch of 90 degrees at 0.9 s.

    Args:
        times: samples [s], shape (N,).
        nearest: pitch that is left to 90 degrees at 0.9 s [rad].
    """
    posture = (0.0, -np.pi / 2 - ACCELERATION * PRINTED[2] ** 2 / 2 + nearest, *POSTURE[2:])
    return make_accelerated_motion(times, posture=posture)


def identify_body_by_body(bodies: Sequence[ChainBody], precision: float) -> Array:
    """The paper's own fit: m and the inertias of every body from what its two hinges exert, shape (6, 4).

    m by the vertical part of Newton's equation, J by Euler's S J = M about the center of mass, each by plain least
    squares. NaN where columns of S depend on one another, to `EXCITED_RATIO` times the precision of the motion.
    """
    found, limit = np.full((len(bodies), len(CENTROIDAL)), np.nan), EXCITED_RATIO * precision
    for number, body in enumerate(bodies):
        inner, c = body.wrench, body.position - body.hinge
        outer = bodies[number + 1].wrench if number + 1 < len(bodies) else np.zeros_like(inner)
        felt = body.acceleration[2] - GRAVITY[2]
        found[number, 0] = felt @ (inner[5] - outer[5]) / (felt @ felt)
        moment = inner[:3] - outer[:3] - cross(c, inner[3:]) - cross(c, outer[3:])
        own = np.einsum("jin,jn->ni", body.rotation, moment)
        columns = wrench_regressor(body.motion(GRAVITY))[:3, CENTROIDAL[1:]].transpose(2, 0, 1).reshape(-1, 3)
        _, singular, right = np.linalg.svd(columns, full_matrices=False)
        hidden = right[singular < limit * singular[0]]
        identifiable = np.abs(hidden).max(axis=0, initial=0.0) < limit
        found[number, 1:][identifiable] = (np.linalg.pinv(columns, rcond=limit) @ own.ravel())[identifiable]
    return found


def estimate_masses_by_direction(bodies: Sequence[ChainBody]) -> Array:
    """Mass of every body from each component of Newton's equation in the world, as in the paper's Tables 2 and 3.

    Returns:
        Masses [kg], shape (6, 3): horizontal, horizontal, vertical; NaN where a center of mass is not accelerated.
    """
    found = np.full((len(bodies), 3), np.nan)
    for number, body in enumerate(bodies):
        outer = bodies[number + 1].wrench if number + 1 < len(bodies) else np.zeros_like(body.wrench)
        felt = body.acceleration - np.array(GRAVITY)[:, None]
        square = (felt**2).sum(axis=1)
        shown = square > (ROUNDING * np.abs(GRAVITY[2])) ** 2 * felt.shape[1]
        found[number, shown] = (felt * (body.wrench - outer)[3:]).sum(axis=1)[shown] / square[shown]
    return found


def forward_form(body: ChainBody, outer: ChainBody | None, inertia: Array) -> Array:
    """Second derivative of a body's quaternion from the wrenches of its hinges: the paper's A q'' = B (eqs. 13 to 16).

    Args:
        body: the body.
        outer: the next body, which is exerted on; None for the last one.
        inertia: principal moments of inertia [kg m^2], shape (3,).

    Returns:
        Second derivative of the quaternion [1/s^2], shape (4, N).
    """
    c = body.position - body.hinge
    moment = body.wrench[:3] - cross(c, body.wrench[3:])
    if outer is not None:
        moment = moment - outer.wrench[:3] - cross(outer.hinge - body.position, outer.wrench[3:])
    own, diagonal = np.einsum("jin,jn->in", body.rotation, moment), inertia[:, None]
    change = (own - cross(body.rate, diagonal * body.rate)) / diagonal
    return rate_quaternions(body.rotation, body.rate, change)[2]


def round_to_digits(digits: int) -> Change:
    """Rounding to a number of significant digits."""
    return np.vectorize(lambda value: float(f"{value:.{digits - 1}e}"))


def add_noise(rng: np.random.Generator) -> Change:
    """Signals with white noise of `NOISE` times the root mean square of their three or four parts."""
    return lambda values: values + NOISE * _rms(values) * rng.normal(size=values.shape)


def estimate_noise_of(signals: Sequence[Signals]) -> list[dict[str, float]]:
    """One sigma of the noise of each body's signals, by name; infinite where a signal is 0 but for rounding."""
    sizes = [{name: _rms(values) for name, values in vars(read).items()} for read in signals]
    least = {name: ROUNDING * max(size[name] for size in sizes) for name in sizes[0]}
    return [{name: NOISE * value if value > least[name] else np.inf for name, value in size.items()} for size in sizes]


def _rms(values: Array) -> float:
    """Root mean square of all parts of a signal."""
    return float(np.sqrt((values**2).mean()))
