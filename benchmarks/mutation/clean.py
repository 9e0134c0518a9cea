# SPDX-License-Identifier: Apache-2.0
"""Fast simulation of clean recordings: arms whose friction, noise and drives are not exactly those of any model.

Friction slides as in Dahl's model, with breakaway displacements between those that the package offers, grows with the
load and saturates with the velocity; a drive's torque ripples along its turn; friction falls by some per cent while it
warms up. Positions are quantized, velocities are those of a driver, stamps jitter as those of a ROS driver do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.identification.diagnosis.directions import measure_one_way
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.simulation.closed_loop import quantize
from robot_dyn_id.simulation.sensors import draw_colored_noise

URDF_FOLDER = Path(__file__).resolve().parents[2] / "urdf"


@dataclass(frozen=True)
class Arm:
    """Arm of the suite.

    Attributes:
        urdf: file name in the wheel example-robot-data or in the folder `urdf`.
        joints: number of joints from the base on; the others are locked.
        geared: whether efforts are measured at the motors, so that they contain the friction of the gears.
    """

    urdf: str
    joints: int
    geared: bool


ARMS: Mapping[str, Arm] = {
    "panda": Arm("panda.urdf", 7, False),
    "arm7": Arm("arm7.urdf", 7, False),
    "ur5": Arm("ur5_robot.urdf", 6, True),
    "ur10": Arm("ur10_robot.urdf", 6, True),
    "kinova": Arm("kinova.urdf", 6, True),
    "xarm7": Arm("xarm7.urdf", 7, True),
    "z1": Arm("z1.urdf", 6, True),
    "talos_left_arm": Arm("talos_left_arm.urdf", 6, False),
}
"""The arms by name, those that the mutation suite draws from."""

FURTHER_ARMS: Mapping[str, Arm] = {
    "iiwa14": Arm("iiwa14.urdf", 7, False),
    "ur3": Arm("ur3_robot.urdf", 6, True),
    "so101": Arm("so101.urdf", 5, True),
    "planar3r": Arm("planar3r.urdf", 3, False),
}
"""Arms of other studies."""

BREAKAWAY_RAD = np.geomspace(2e-4, 6e-2, 7)
"""Breakaway displacements of the simulated presliding, none of them one of the package's."""

LONGEST_TURN_RAD, FASTEST_RAD_S = 2.2, 2.0
"""Largest excursion from the middle of a joint's range, and largest velocity, whatever the limits."""

REST_S = 1.0
"""Rest before and after a motion."""

DURATION_S, RATE_HZ = 20.0, 100.0
"""Length of a motion without the rest before and after it, and sample rate, unless a fault needs others: long enough
for the parameters of these arms, short enough for hundreds of cases."""

EFFORT_SHARE = 0.8
"""Largest share of the effort limits that a motion uses."""

BACK_SHARE, MOST_DRAWS = 0.1, 20
"""Least share of each joint's travel in the direction in which it travels less, of a motion that is long enough for
it, and motions that are drawn for that: slow arms make few moves, and one that turns no joint back is a fault."""


def find_arm(name: str) -> Arm:
    """An arm by its name."""
    return {**ARMS, **FURTHER_ARMS}[name]


@functools.cache
def urdf_path(name: str) -> Path:
    """File of an arm.

    Raises:
        FileNotFoundError: example-robot-data is not installed.
    """
    own = URDF_FOLDER / find_arm(name).urdf
    if own.exists():
        return own
    files = metadata.files("example-robot-data") or ()
    for file in files:
        if file.name == find_arm(name).urdf:
            return Path(str(file.locate()))
    raise FileNotFoundError(f"{find_arm(name).urdf}: pip install example-robot-data")


@functools.cache
def arm_model(name: str, gravity: tuple[float, float, float] = STANDARD_GRAVITY) -> RobotModel:
    """Model of an arm as its URDF describes it, without the joints of a gripper."""
    whole = RobotModel.from_file(urdf_path(name))
    return RobotModel.from_file(urdf_path(name), whole.joint_names[: find_arm(name).joints], gravity=gravity)


@dataclass(frozen=True)
class Drives:
    """Friction and inertia of the drives, one value per joint.

    Attributes:
        coulomb: friction of a joint without load [N m or N].
        load: additional friction, as a ratio to the magnitude of the gravity torque.
        viscous: friction at 1 rad/s [N m or N].
        power: power of the velocity that the viscous friction grows with.
        asymmetry: relative difference of both directions.
        rotor: rotor inertia at the joint [kg m^2].
        offset: zero error of the effort [N m or N].
        ripple: amplitude of the torque ripple [N m or N].
        shares: shares of the friction that slide at each of `BREAKAWAY_RAD`, shape (n, 7).
    """

    coulomb: Array
    load: Array
    viscous: Array
    power: Array
    asymmetry: Array
    rotor: Array
    offset: Array
    ripple: Array
    shares: Array

    def torque(self, gravity: Array, q: Array, dq: Array, slid: Array, level: Array | float = 1.0) -> Array:
        """Friction without ripple and offset [N m or N]; arrays of the joints come first, and may have samples behind.

        Args:
            gravity: torque of gravity, on which the friction depends.
            q: positions.
            dq: velocities.
            slid: mean deflection of the elements that slide at `BREAKAWAY_RAD`, from -1 to 1.
            level: ratio of the dry friction to that of the cold drive.
        """
        coulomb, load, asymmetry, viscous, power = (
            value.reshape(-1, *(1,) * (q.ndim - 1))
            for value in (self.coulomb, self.load, self.asymmetry, self.viscous, self.power)
        )
        dry = level * (coulomb + load * np.abs(gravity)) * (1.0 + asymmetry * np.sign(dq))
        return np.asarray(dry * slid + viscous * np.sign(dq) * np.abs(dq) ** power)


@dataclass(frozen=True)
class Recipe:
    """Recipe of a recording.

    Attributes:
        duration: length of the motion [s], without the rest before and after it; by default longer for slow arms.
        kind: `periodic` or `moves` (point to point); empty: drawn.
        warming: relative loss of friction over the recording.
        one_way: joints that move forward only.
        load: inertial parameters instead of the true ones, shape (10 b,).
        rest: rest before and after the motion [s].
        change: another motion instead of the one that was drawn.
        take: number of the repetition of the same motion, with noise of its own.
    """

    duration: float = DURATION_S
    kind: str = ""
    warming: float = 0.02
    one_way: Sequence[int] = ()
    load: Array | None = None
    rest: float = REST_S
    change: Callable[[Motion], Motion] | None = None
    take: int = 0


@dataclass(frozen=True)
class Trial:
    """One motion of a known arm, with everything that its measured effort consists of; shapes (n, N).

    Attributes:
        t: times [s], shape (N,).
        motion: true positions, velocities and accelerations.
        gravity: torque of gravity.
        inertial: remaining torque of the links and rotors.
        friction: friction, ripple and offset.
        noise: effort noise.
        reading: measured positions.
        velocity: recorded velocities, or None.
        stamps: recorded stamps [s], shape (N,).
    """

    t: Array
    motion: Motion
    gravity: Array
    inertial: Array
    friction: Array
    noise: Array
    reading: Array
    velocity: Array | None
    stamps: Array

    @property
    def effort(self) -> Array:
        """Measured effort without noise."""
        return self.gravity + self.inertial + self.friction

    @property
    def rate(self) -> float:
        """Samples per second."""
        return float((len(self.t) - 1) / (self.t[-1] - self.t[0]))

    def recording(self, robot: RobotModel, **channels: Array | None) -> ArrayRecording:
        """The recording, with channels replaced: `t` (N,), `q`, `dq`, `tau` (n, N)."""
        values = {"t": self.stamps, "q": self.reading, "dq": self.velocity, "tau": self.effort + self.noise}
        values.update(channels)
        rows = {name: None if value is None else np.ascontiguousarray(value.T) for name, value in values.items()}
        return ArrayRecording("simulated", robot.joint_names, Chunk(**rows))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Bench:
    """A simulated arm that can be recorded again and again.

    Attributes:
        name: arm.
        robot: the robot as its URDF describes it, which is what the tool is given.
        regressor: its rigid-body regressor.
        parameters: true inertial parameters, shape (10 b,).
        drives: true friction.
        noise: standard deviation of the effort noise [N m or N], shape (n,).
        rate: samples per second.
        seed: seed of everything that is random.
    """

    name: str
    robot: RobotModel
    regressor: Regressor
    parameters: Array
    drives: Drives
    noise: Array
    rate: float
    seed: int

    @classmethod
    def draw(cls, name: str, seed: int) -> Bench:
        """Draw an arm: masses up to 15 % off the URDF's, drives and noise."""
        rng = np.random.default_rng((sum(name.encode()), seed, 1))
        robot, geared = arm_model(name), find_arm(name).geared
        n = len(robot.joint_names)
        effort = np.minimum(robot.limits.effort, 400.0)
        regressor = Regressor(robot, ())
        heavier = np.repeat(rng.uniform(0.9, 1.15, len(robot.body_names)), 10)
        level = rng.uniform(0.015, 0.04, n) if geared else rng.uniform(0.005, 0.012, n)
        coulomb = level * effort
        diagonal = _mean_inertia(robot, rng)
        rotor = rng.uniform(0.2, 0.8, n) * diagonal if geared else rng.uniform(0.0, 0.05, n) * diagonal
        shares = rng.dirichlet(np.full(len(BREAKAWAY_RAD), 0.7), n)
        drives = Drives(
            coulomb=coulomb,
            load=rng.uniform(0.0, 0.06 if geared else 0.01, n),
            viscous=rng.uniform(0.3, 1.2, n) * coulomb,
            power=rng.uniform(0.6, 1.0, n),
            asymmetry=rng.uniform(-0.05, 0.05, n),
            rotor=rotor + 1e-5 * effort,
            offset=rng.uniform(-0.3, 0.3, n) * coulomb,
            ripple=rng.uniform(0.0, 0.1, n) * coulomb,
            shares=shares,
        )
        noise = effort * (rng.uniform(0.002, 0.005, n) if geared else rng.uniform(0.001, 0.003, n))
        return cls(name, robot, regressor, heavier * robot.inertial_parameters, drives, noise, RATE_HZ, seed)

    def record(self, number: int = 0, **options: Any) -> Trial:
        """Record a motion.

        Args:
            number: number of the motion; each has its own.
            options: attributes of the `Recipe`.
        """
        rng = np.random.default_rng((sum(self.name.encode()), self.seed, 2, number))
        recipe = Recipe(**({"duration": DURATION_S * _slowness(self.name)} | options))
        recipe = replace(recipe, kind=recipe.kind or str(rng.choice(["periodic", "moves"])))
        count = round(recipe.duration * self.rate)
        t = np.arange(count + 2 * round(recipe.rest * self.rate)) / self.rate
        motion = self._draw_motion(rng, t, recipe)
        for _ in range(MOST_DRAWS):
            if recipe.duration < DURATION_S or (measure_one_way(motion.dq) <= 1.0 - BACK_SHARE).all():
                break
            motion = self._draw_motion(rng, t, recipe)
        if len(recipe.one_way):
            motion = _forward_only(motion, t, recipe.one_way, self.name, rng)
        if recipe.take:
            rng = np.random.default_rng((sum(self.name.encode()), self.seed, 3, number, recipe.take))
        return self._measure(rng, t, motion if recipe.change is None else recipe.change(motion), recipe)

    def _draw_motion(self, rng: np.random.Generator, t: Array, recipe: Recipe) -> Motion:
        """A motion within the limits of position, velocity and effort, made narrower or slower until it is."""
        middle, reach, speed = _ranges(self.name)
        draw = draw_periodic if recipe.kind == "periodic" else draw_moves
        states = rng.bit_generator.state
        share = rng.uniform(0.5, 0.9)
        wide, fast = share, share
        for _ in range(12):
            local = np.random.default_rng(0)
            local.bit_generator.state = states
            motion = draw(local, t - recipe.rest, recipe.duration, middle, wide * reach, fast * speed)
            limit = EFFORT_SHARE * self.robot.limits.effort[:, None]
            still = Motion(motion.q, np.zeros_like(motion.q), np.zeros_like(motion.q))
            if np.any(np.abs(self.regressor.torque(still, self.parameters)) > limit):
                wide *= 0.8
            elif np.any(np.abs(self.regressor.torque(motion, self.parameters)) > limit):
                fast *= 0.75
            elif np.any(np.abs(motion.dq) > self.robot.limits.velocity[:, None]):
                fast *= 0.9
            else:
                break
        return motion

    def _measure(self, rng: np.random.Generator, t: Array, motion: Motion, recipe: Recipe) -> Trial:
        """Torques and sensor readings along a motion."""
        n, drives, warming = len(self.noise), self.drives, recipe.warming
        parameters = self.parameters if recipe.load is None else recipe.load
        still = Motion(motion.q, np.zeros_like(motion.q), np.zeros_like(motion.q))
        gravity = self.regressor.torque(still, parameters)
        inertial = self.regressor.torque(motion, parameters) - gravity + drives.rotor[:, None] * motion.ddq
        level = 1.0 - warming * (1.0 - np.exp(-t / 60.0)) / (1.0 - np.exp(-t[-1] / 60.0))
        ripple = drives.ripple[:, None] * np.sin(rng.integers(20, 100, n)[:, None] * motion.q)
        friction = drives.torque(gravity, motion.q, motion.dq, presliding(motion.q, drives.shares), level)
        friction = friction + ripple + drives.offset[:, None]
        count = len(t)
        noise = draw_colored_noise(0.95 * self.noise, count, self.rate, 0.0, rng)
        noise = noise + draw_colored_noise(0.3 * self.noise, count, self.rate, 0.1, rng)
        resolution = 2 * np.pi / 2.0 ** rng.integers(16, 21)
        reading = quantize(motion.q + 0.2 * resolution * rng.normal(size=(n, count)), resolution)
        recorded = bool(rng.random() < 0.7)
        velocity = motion.dq + 3e-3 * rng.normal(size=(n, count)) if recorded else None
        stamps = t + np.clip(0.02 / self.rate * rng.normal(size=count), -0.2 / self.rate, 0.2 / self.rate)
        return Trial(t, motion, gravity, inertial, friction, noise, reading, velocity, stamps)


def presliding(q: Array, shares: Array) -> Array:
    """Sum of Dahl elements along positions, from -1 to 1, shape (n, N).

    Args:
        q: positions, shape (n, N).
        shares: shares of the elements with `BREAKAWAY_RAD`, shape (n, 7).
    """
    steps = np.diff(q, axis=1, prepend=q[:, :1])
    signs = np.sign(steps)
    decay = np.exp(-np.abs(steps)[:, None, :] / BREAKAWAY_RAD[:, None])  # (n, 7, N)
    z, total = np.zeros(shares.shape), np.empty(q.shape)
    for k in range(q.shape[1]):
        sign = signs[:, k : k + 1]
        z = sign + (z - sign) * decay[:, :, k]
        total[:, k] = (shares * z).sum(axis=1)
    return total


def change_drives(bench: Bench, **values: Array) -> Bench:
    """The bench with other friction."""
    return replace(bench, drives=replace(bench.drives, **values))


def _mean_inertia(robot: RobotModel, rng: np.random.Generator) -> Array:
    """Mean diagonal of the mass matrix of the links over random configurations, shape (n,)."""
    n, draws = len(robot.joint_names), 20
    regressor = Regressor(replace(robot, gravity=np.zeros(3)), ())
    q, zero = rng.uniform(-1.5, 1.5, (n, draws)), np.zeros((n, draws))
    diagonal = [
        regressor.torque(Motion(q, zero, np.eye(n)[:, [j]] * np.ones((1, draws))), robot.inertial_parameters)[j].mean()
        for j in range(n)
    ]
    return np.array(diagonal)


@functools.cache
def _middle(name: str) -> Array:
    """Configuration that motions surround: the middle of the limits, or one near it that the drives can hold."""
    robot = arm_model(name)
    regressor = Regressor(robot, ())
    lower, upper = _limits(robot)
    draws = np.random.default_rng(0).uniform(-0.35, 0.35, (len(lower), 200)) * (upper - lower)[:, None]
    draws[:, 0] = 0.0
    q = (lower + upper)[:, None] / 2 + draws
    still = Motion(q, np.zeros_like(q), np.zeros_like(q))
    used = np.abs(regressor.torque(still, robot.inertial_parameters) / robot.limits.effort[:, None]).max(axis=0)
    return np.asarray(q[:, 0 if used[0] < EFFORT_SHARE / 2 else int(np.argmin(used))])


def _limits(robot: RobotModel) -> tuple[Array, Array]:
    """Limits of the positions, finite ones where the URDF has none."""
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -LONGEST_TURN_RAD)
    return lower, np.where(np.isfinite(robot.limits.upper), robot.limits.upper, LONGEST_TURN_RAD)


def _ranges(name: str) -> tuple[Array, Array, Array]:
    """Middle and reach of the positions, and the velocity, that motions use."""
    robot, middle = arm_model(name), _middle(name)
    lower, upper = _limits(robot)
    reach = np.minimum(np.minimum(upper - middle, middle - lower), LONGEST_TURN_RAD)
    return middle, reach, np.minimum(robot.limits.velocity, FASTEST_RAD_S)


def _slowness(name: str) -> float:
    """Time scale of an arm's motions over that of an arm whose median joint does 1 rad/s, at least 1."""
    return max(1.0, 1.0 / float(np.median(_ranges(name)[2])))


def draw_periodic(
    rng: np.random.Generator, t: Array, duration: float, middle: Array, reach: Array, speed: Array
) -> Motion:
    """Five harmonics of 10 to 16 s per joint, more for slow arms, from rest to rest."""
    period = rng.uniform(10.0, 16.0) * max(1.0, 1.0 / float(np.median(speed)))
    n, w = len(middle), 2 * np.pi / period * np.arange(1, 6)
    amplitude, phase = rng.normal(size=(n, 5)) / np.arange(1, 6), rng.uniform(0, 2 * np.pi, (n, 5))
    angle = w[:, None] * t
    wave = [
        sum(amplitude[:, [h]] * w[h] ** d * np.sin(angle[h] + phase[:, [h]] + d * np.pi / 2) for h in range(5))
        for d in range(3)
    ]
    scale = np.minimum(reach / np.abs(wave[0]).max(axis=1), speed / np.abs(wave[1]).max(axis=1))[:, None]
    x, dx, ddx = (scale * values for values in wave)
    f, df, ddf = _fade(t, duration, period / 6)
    start = middle[:, None]
    return Motion(start + f * x, df * x + f * dx, ddf * x + 2 * df * dx + f * ddx)


def _fade(t: Array, duration: float, time: float) -> tuple[Array, Array, Array]:
    """A window that swells and fades within a time, with two continuous derivatives, 0 outside the duration."""
    up, down = _quintic(t / time), _quintic((duration - t) / time)
    value = up[0] * down[0]
    first = (up[1] * down[0] - up[0] * down[1]) / time
    second = (up[2] * down[0] - 2 * up[1] * down[1] + up[0] * down[2]) / time**2
    return value, first, second


def _quintic(s: Array) -> tuple[Array, Array, Array]:
    """Minimum-jerk step from 0 to 1 and its derivatives."""
    inside = (s > 0) & (s < 1)
    s = np.clip(s, 0.0, 1.0)
    value = s**3 * (10 - 15 * s + 6 * s**2)
    return value, np.where(inside, 30 * s**2 * (1 - s) ** 2, 0.0), np.where(inside, 60 * s * (1 - s) * (1 - 2 * s), 0.0)


def draw_moves(
    rng: np.random.Generator, t: Array, duration: float, middle: Array, reach: Array, speed: Array
) -> Motion:
    """Minimum-jerk moves between random configurations with short rests between them."""
    q = np.repeat(middle[:, None], len(t), axis=1)
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    here, start = middle, 0.0
    while start < duration:
        there = middle + reach * rng.uniform(-1.0, 1.0, len(middle))
        length = float(np.max(1.875 * np.abs(there - here) / speed)) + 0.2
        if start + length > duration:
            break
        step = _quintic((t - start) / length)
        q = q + (there - here)[:, None] * step[0]
        dq = dq + (there - here)[:, None] * step[1] / length
        ddq = ddq + (there - here)[:, None] * step[2] / length**2
        here, start = there, start + length + rng.uniform(0.1, 0.6)
    return Motion(q, dq, ddq)


def _forward_only(motion: Motion, t: Array, joints: Sequence[int], name: str, rng: np.random.Generator) -> Motion:
    """The motion with some joints that creep from one end of their range to the other with changing velocity."""
    middle, reach, _ = _ranges(name)
    q, dq, ddq = (values.copy() for values in (motion.q, motion.dq, motion.ddq))
    length, w = float(t[-1]), 2 * np.pi * rng.uniform(0.15, 0.3)
    for j in joints:
        mean = 1.6 * reach[j] / length
        q[j] = middle[j] - 0.8 * reach[j] + mean * (t - 0.8 * np.sin(w * t) / w)
        dq[j] = mean * (1.0 - 0.8 * np.cos(w * t))
        ddq[j] = mean * 0.8 * w * np.sin(w * t)
    return Motion(q, dq, ddq)
