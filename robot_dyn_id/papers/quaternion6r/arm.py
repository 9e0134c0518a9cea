# SPDX-License-Identifier: Apache-2.0
"""Robot of `quaternion6r`: simulated signals, motions, and the paper's own fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.loads.chain import CENTROIDAL, ChainBody, centroidal_frames, find_joint_motion, simulate_chain
from robot_dyn_id.loads.chain_estimate import EXCITED_RATIO, ChainEstimate, identify_chain
from robot_dyn_id.loads.chain_likelihood import Reading, identify_moving_chain
from robot_dyn_id.loads.wrench import cross, wrench_regressor
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.model.quaternions import quaternion_rates, rate_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.inputs import model_of

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
        frames = centroidal_frames(model)
        inertias = model.inertial_parameters.reshape(-1, 10)[:, CENTROIDAL]
        offset = np.array([frame.position[0] for frame in frames])
        inertias[:, 2:] -= (inertias[:, 0] * offset**2)[:, None]  # about the center of mass, which is on the x axis
        return cls(model, frames, inertias)

    def recorded(self, motion: Motion) -> list[Signals]:
        """Signals of the paper's simulation."""
        return [Signals.from_body(body) for body in simulate_chain(self.model, motion, self.frames)]

    def bodies(self, signals: Sequence[Signals]) -> list[ChainBody]:
        """Chain as in the paper: positions follow from quaternions and lengths, hinges are at both ends."""
        made: list[ChainBody] = []
        hinge = np.zeros_like(signals[0].force)
        for read, frame in zip(signals, self.frames, strict=True):
            unit = read.quaternion / np.linalg.norm(read.quaternion, axis=0)
            rotation, rate, change = quaternion_rates(unit, read.first, read.second)
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
        for frame, read, size in zip(self.frames, signals, noise_of(signals), strict=True):
            angles = np.repeat([size["quaternion"], size["first"], size["second"]], 4)
            deviations = np.concatenate([angles, np.full(3, size["acceleration"])])
            motion, wrench = np.concatenate([read.angles, read.acceleration]), np.concatenate([read.moment, read.force])
            readings.append(Reading(frame, motion, deviations, wrench, np.array([size["moment"], size["force"]])))
        start = find_joint_motion(self.model, self.bodies(signals), self.frames)
        return identify_moving_chain(self.model, readings, observed, start, precision=NOISE)

    def rounded(self, motion: Motion, digits: int) -> list[Signals]:
        """Signals rounded to a number of significant digits."""
        return [read.changed(to_digits(digits)) for read in self.recorded(motion)]

    def printed(self, motion: Motion, digits: int) -> ChainEstimate:
        """Found from such signals."""
        return self.fitted(self.rounded(motion, digits), 1.0 / PRINTED[0], 10.0**-digits)


def accelerated(times: Array, acceleration: float = ACCELERATION, posture: Sequence[float] = POSTURE) -> Motion:
    """From rest, hinges 1 and 2 at a constant angular acceleration, the others locked."""
    moves = acceleration * np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])[:, None]
    return Motion(np.array(posture)[:, None] + moves * times**2 / 2, moves * times, moves * np.ones_like(times))


def swinging(times: Array) -> Motion:
    """Not the paper's: hinge k swings about its posture by 30 degrees with (7 - k) / 10 Hz, the first ones fastest."""
    w = 2.0 * np.pi * 0.1 * np.arange(6.0, 0.0, -1.0)[:, None]
    size, wave = np.deg2rad(30.0), np.sin(w * times)
    return Motion(np.array(POSTURE)[:, None] + size * wave, size * w * np.cos(w * times), -size * w**2 * wave)


def body_by_body(bodies: Sequence[ChainBody], precision: float) -> Array:
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


def to_digits(digits: int) -> Change:
    """Rounding to a number of significant digits."""
    return np.vectorize(lambda value: float(f"{value:.{digits - 1}e}"))


def with_noise(rng: np.random.Generator) -> Change:
    """Signals with white noise of `NOISE` times the root mean square of their three or four parts."""
    return lambda values: values + NOISE * _rms(values) * rng.normal(size=values.shape)


def noise_of(signals: Sequence[Signals]) -> list[dict[str, float]]:
    """One sigma of the noise of each body's signals, by name; infinite where a signal is 0 but for rounding."""
    sizes = [{name: _rms(values) for name, values in vars(read).items()} for read in signals]
    least = {name: ROUNDING * max(size[name] for size in sizes) for name in sizes[0]}
    return [{name: NOISE * value if value > least[name] else np.inf for name, value in size.items()} for size in sizes]


def _rms(values: Array) -> float:
    """Root mean square of all parts of a signal."""
    return float(np.sqrt((values**2).mean()))
