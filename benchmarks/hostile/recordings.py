# SPDX-License-Identifier: Apache-2.0
"""Simulated robots with hostile features, and their recordings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from mutation.clean import BREAKAWAY_RAD, draw_moves, draw_periodic, presliding

from hostile.robots import (
    FEWEST_AXES,
    MOST_AXES,
    PLACEHOLDER_RATING,
    SPEED_M_S,
    SPEED_RAD_S,
    draw_links,
    make_placeholders,
    make_urdf,
    measure_scales,
    order_links,
    vary_bodies,
)
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.simulation.closed_loop import quantize
from robot_dyn_id.simulation.sensors import draw_colored_noise

FEATURES: Mapping[str, int] = {
    "prismatic": 2,
    "branch": 4,
    "coupled wrist": 3,
    "cables": 2,
    "parallelogram": 3,
    "over-compensated": 2,
    "currents": 2,
    "missing sensors": 3,
    "failed reads": 2,
    "tilted base": 2,
    "delayed efforts": 2,
    "placeholder URDF": 2,
    "coarse encoders": 2,
}
"""Features that robots combine, and the number of axes that each needs at least."""

MOST_SAMPLES = 15_000
"""Samples of a recording."""

REST_S = 1.0
"""Rest before and after a motion."""


@dataclass(frozen=True)
class Drives:
    """Drives of n joints, and what they report; see `Robot`.

    Attributes:
        coulomb: friction of a joint without load [N m or N], shape (n,).
        viscous: friction at unit speed; negative where a drive subtracts too much, shape (n,).
        load: additional friction, as a ratio to the magnitude of the gravity torque, shape (n,).
        rotor: rotor inertia at the joint [kg m^2 or kg], shape (n,).
        offset: zero error of the effort [N m or N], shape (n,).
        shares: shares of the friction that slide at each of `BREAKAWAY_RAD`, shape (n, 7).
        stiffness: stiffness of cables [N m/rad or N/m], shape (n,).
        stiffening: cubic part of the cables' torque, shape (n,).
        rest: position in which cables are free [rad or m], shape (n,).
        coupled: weights of the joint positions that the last motor turns with, shape (n, n): identity without coupling.
        gain: recorded effort times gain is the torque, shape (n,).
        delay: delay of the recorded effort [s], shape (n,).
        noise: standard deviation of the effort noise [N m or N], shape (n,).
        resolution: resolution of the encoders [rad or m].
    """

    coulomb: Array
    viscous: Array
    load: Array
    rotor: Array
    offset: Array
    shares: Array
    stiffness: Array
    stiffening: Array
    rest: Array
    coupled: Array
    gain: Array
    delay: Array
    noise: Array
    resolution: float


@dataclass(frozen=True)
class Robot:
    """A robot, and what its user has of it.

    Attributes:
        seed: seed that it was drawn from.
        features: features that it combines.
        true: model of the real robot, with its gravity vector.
        credible: the model with the URDF's masses of a careful author, and the true gravity.
        described: the model that the user has.
        drives: drives and sensors.
        measured: joints that have an effort sensor, shape (n,).
        dead: value that joints without a sensor report; NaN: none.
        channel: channel of the efforts, `tau` or `current`.
        rate: samples per second.
        velocities: whether velocities are recorded.
    """

    seed: int
    features: tuple[str, ...]
    true: RobotModel
    credible: RobotModel
    described: RobotModel
    drives: Drives
    measured: Mask
    dead: float
    channel: str
    rate: float
    velocities: bool

    @classmethod
    def draw(cls, seed: int) -> Robot:
        """Draw a robot with two to four features."""
        rng = np.random.default_rng((29, seed))
        axes = int(rng.integers(FEWEST_AXES, MOST_AXES + 1))
        possible = [name for name, least in FEATURES.items() if axes >= least]
        count = min(int(rng.integers(2, 5)), len(possible))
        features = tuple(sorted(rng.choice(possible, size=count, replace=False).tolist(), key=possible.index))
        links = draw_links(rng, axes, features)
        real = vary_bodies(rng, links)
        gravity = _draw_gravity(rng) if "tilted base" in features else STANDARD_GRAVITY
        unrated = RobotModel.from_urdf(make_urdf(real, [1.0] * len(real)), gravity=gravity)
        scale, inertia = measure_scales(unrated, real, rng)
        ratings = dict(zip(unrated.joint_names, (1.5 * scale).tolist(), strict=True))
        rated = [float(f"{ratings.get(link.name, 100.0):.2g}") for link in links]
        given, given_ratings = links, rated
        if "placeholder URDF" in features:
            given, given_ratings = make_placeholders(rng, links), [PLACEHOLDER_RATING] * len(links)
        drives = _draw_drives(
            rng, unrated, features, scale, inertia, [link.reach for link in order_links(unrated, links)]
        )
        measured, dead = np.ones(axes, dtype=bool), math.nan
        if "missing sensors" in features:
            measured[rng.choice(axes, size=int(rng.integers(1, max(2, axes // 2))), replace=False)] = False
            dead = float(rng.choice([0.0, math.nan, 0.37]))
        coarse = "coarse encoders" in features
        return cls(
            seed=seed,
            features=features,
            true=RobotModel.from_urdf(make_urdf(real, rated), gravity=gravity),
            credible=RobotModel.from_urdf(make_urdf(links, rated), gravity=gravity),
            described=RobotModel.from_urdf(make_urdf(given, given_ratings)),
            drives=drives,
            measured=measured,
            dead=dead,
            channel=str(rng.choice(["tau", "current"])) if "currents" in features else "tau",
            rate=float(rng.choice([100.0, 125.0, 200.0, 250.0, 500.0])),
            velocities=bool(rng.random() < (0.0 if coarse else 0.7)),
        )

    @property
    def title(self) -> str:
        """Axes and features."""
        return f"{len(self.true.joint_names)} axes, " + ", ".join(self.features)


def _draw_gravity(rng: np.random.Generator) -> tuple[float, float, float]:
    """Gravity vector in a base that is tilted by 2 to 8 degrees."""
    tilt, heading = np.radians(rng.uniform(2.0, 8.0)), rng.uniform(0.0, 2 * np.pi)
    g = abs(STANDARD_GRAVITY[2])
    return (
        float(g * np.sin(tilt) * np.cos(heading)),
        float(g * np.sin(tilt) * np.sin(heading)),
        float(-g * np.cos(tilt)),
    )


def _draw_drives(
    rng: np.random.Generator,
    model: RobotModel,
    features: tuple[str, ...],
    scale: Array,
    inertia: Array,
    reach: list[float],
) -> Drives:
    n = len(scale)
    geared = rng.random() < 0.7
    coulomb = scale * (rng.uniform(0.02, 0.08, n) if geared else rng.uniform(0.005, 0.02, n))
    speed = np.where(model.slides, SPEED_M_S, SPEED_RAD_S)
    viscous = rng.uniform(0.3, 1.5, n) * coulomb / (0.5 * speed)
    if "over-compensated" in features:
        viscous = -rng.uniform(0.2, 0.7, n) * coulomb / speed
    stiffness, stiffening, rest = np.zeros(n), np.zeros(n), np.zeros(n)
    if "cables" in features:
        held = rng.choice(n, size=int(rng.integers(1, max(2, n // 2 + 1))), replace=False)
        bound = np.array(reach)[held]
        stiffness[held] = rng.uniform(0.05, 0.25, len(held)) * scale[held] / bound
        stiffening[held] = rng.uniform(0.0, 0.3, len(held)) * stiffness[held] / bound**2
        rest[held] = rng.uniform(-0.5, 0.5, len(held)) * bound
    coupled = np.eye(n)
    if "coupled wrist" in features:
        coupled[n - 1, n - 2] = float(rng.choice([1.0, -1.0]))
    gain, delay = np.ones(n), np.zeros(n)
    if "currents" in features:
        gain = scale / rng.uniform(2.0, 10.0, n)
    if "delayed efforts" in features:
        late = np.ones(n, dtype=bool) if rng.random() < 0.7 else rng.random(n) < 0.5
        delay[late] = rng.uniform(0.005, 0.05)
    return Drives(
        coulomb=coulomb,
        viscous=viscous,
        load=rng.uniform(0.0, 0.05, n) if geared else np.zeros(n),
        rotor=(rng.uniform(0.2, 1.0, n) if geared else rng.uniform(0.0, 0.05, n)) * inertia,
        offset=rng.uniform(-0.3, 0.3, n) * coulomb,
        shares=rng.dirichlet(np.full(len(BREAKAWAY_RAD), 0.5), n),
        stiffness=stiffness,
        stiffening=stiffening,
        rest=rest,
        coupled=coupled,
        gain=gain,
        delay=delay,
        noise=scale * rng.uniform(0.002, 0.01, n),
        resolution=2 * np.pi / 2.0 ** (rng.integers(11, 14) if "coarse encoders" in features else rng.integers(16, 21)),
    )


@dataclass(frozen=True)
class Take:
    """One recorded motion; shapes (n, N).

    Attributes:
        robot: the robot.
        t: stamps [s], shape (N,).
        reading: measured positions.
        velocity: measured velocities, or None.
        torque: true torques of all drives with the noise of their sensors, without delay.
        late: the same with the delay of the recorded efforts.
        failed: samples that the user's recording has no reading of, shape (N,).
        failed_position: position that a failed read reports [rad].
    """

    robot: Robot
    t: Array
    reading: Array
    velocity: Array | None
    torque: Array
    late: Array
    failed: Mask
    failed_position: float

    def as_recorded(self, name: str) -> ArrayRecording:
        """The recording as the user has it."""
        robot = self.robot
        q, effort = self.reading.copy(), self.late / robot.drives.gain[:, None]
        dq = None if self.velocity is None else self.velocity.copy()
        effort[~robot.measured] = robot.dead
        q[:, self.failed] = self.failed_position
        effort[:, self.failed] = 0.0
        if dq is not None:
            dq[:, self.failed] = 0.0
        channels = {robot.channel: effort.T}
        chunk = Chunk(self.t, q.T, None if dq is None else dq.T, **channels)
        return ArrayRecording(name, robot.true.joint_names, chunk)

    def as_known(self, name: str) -> ArrayRecording:
        """The recording without its faults: torques in N m, in time; joints without a sensor have NaN."""
        torque = np.where(self.robot.measured[:, None], self.torque, np.nan)
        velocity = None if self.velocity is None else self.velocity.T
        return ArrayRecording(name, self.robot.true.joint_names, Chunk(self.t, self.reading.T, velocity, torque.T))


def record(robot: Robot, number: int) -> Take:
    """Record a motion; each number is another one."""
    rng = np.random.default_rng((29, robot.seed, 1, number))
    model, drives = robot.true, robot.drives
    n = len(model.joint_names)
    duration = min(float(rng.uniform(30.0, 60.0)), MOST_SAMPLES / robot.rate - 2 * REST_S)
    count = round((duration + 2 * REST_S) * robot.rate)
    t = np.arange(count) / robot.rate
    reach = 0.9 * np.minimum(-model.limits.lower, model.limits.upper)
    reach = reach * rng.uniform(0.5, 0.95, n)
    speed = np.where(model.slides, SPEED_M_S, SPEED_RAD_S) * rng.uniform(0.4, 1.0)
    draw = draw_periodic if rng.random() < 0.5 else draw_moves
    motion = draw(rng, t - REST_S, duration, np.zeros(n), reach, speed)
    torque = _compute_torques(robot, motion) + draw_colored_noise(0.95 * drives.noise, count, robot.rate, 0.0, rng)
    torque = torque + draw_colored_noise(0.3 * drives.noise, count, robot.rate, 0.1, rng)
    late = np.array([np.interp(t - delay, t, row) for row, delay in zip(torque, drives.delay, strict=True)])
    reading = quantize(motion.q + 0.2 * drives.resolution * rng.normal(size=motion.q.shape), drives.resolution)
    velocity = motion.dq + 3e-3 * rng.normal(size=motion.dq.shape) if robot.velocities else None
    failed = np.zeros(count, dtype=bool)
    if "failed reads" in robot.features:
        starts = rng.choice(count, size=int(rng.integers(3, 15)), replace=False)
        for start in starts:
            failed[start : start + int(rng.integers(1, 4))] = True
    jitter = np.clip(0.02 * rng.normal(size=count), -0.2, 0.2) / robot.rate
    return Take(robot, t + jitter, reading, velocity, torque, late, failed, float(rng.choice([0.0, -np.pi])))


def _compute_torques(robot: Robot, motion: Motion) -> Array:
    """True torques along a motion, shape (n, N)."""
    drives, regressor = robot.drives, Regressor(robot.true, ())
    still = Motion(motion.q, np.zeros_like(motion.q), np.zeros_like(motion.q))
    gravity = regressor.torque(still, robot.true.inertial_parameters)
    rigid = regressor.torque(motion, robot.true.inertial_parameters)
    turned, speed, acceleration = (drives.coupled @ values for values in (motion.q, motion.dq, motion.ddq))
    level = drives.coulomb[:, None] + drives.load[:, None] * np.abs(gravity)
    motor = (
        level * presliding(turned, drives.shares)
        + drives.viscous[:, None] * speed
        + drives.rotor[:, None] * acceleration
    )
    away = motion.q - drives.rest[:, None]
    cables = drives.stiffness[:, None] * away + drives.stiffening[:, None] * away**3
    return rigid + drives.coupled.T @ motor + cables + drives.offset[:, None]
