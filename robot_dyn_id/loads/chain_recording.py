# SPDX-License-Identifier: Apache-2.0
"""Inertias of all bodies of a robot from a recording with 6-axis sensors in its hinges, or one under its base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.channel_faults import find_saturation
from robot_dyn_id.identification.diagnosis.positions import correct_motion
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.chain import ALL, CENTROIDAL, find_centroidal_frames, find_joint_frames, move_chain
from robot_dyn_id.loads.chain_estimate import ChainEstimate, check_frames
from robot_dyn_id.loads.chain_sensors import ChainWindow, HingeSensor, identify_from_sensors, make_sensor_problem
from robot_dyn_id.loads.wrench import CHANNELS, cross
from robot_dyn_id.model.kinematics import BASE, Kinematics, Placement, Poses, find_placement_of
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import least_travel
from robot_dyn_id.recordings.merged import GAP_STEPS
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.stillness import find_stillness, report_rest_left_out
from robot_dyn_id.signals.trials import EXCLUDED_PERIODS, FilteredTrials

PRECISION = 1e-8
"""Relative precision of the regressor: directions that change the wrenches by less than ten times this share are
rounding. Noise of the motion does not add any: which directions exist follows from the kinematics, and joints that do
not move are taken to be at rest."""

UNDER_BASE = "base"
"""Name of the place of a sensor under the base."""

NEGATIVE_SIGMAS = 3.0
"""Standard deviations by which all masses are negative where the readings have the opposite sign."""


@dataclass(frozen=True)
class RecordedSensor:
    """6-axis sensor in a hinge of a robot, or under its base, and its readings.

    Under the base it carries the first hinge and what is at rest, whose weight is part of its offset.

    Attributes:
        name: `UNDER_BASE`, or the joint.
        hinge: index of the hinge whose wrench it shows; 0 under the base.
        at: frame about whose origin, and along whose axes, it shows the wrench.
        sign: 1: it shows what the inner body exerts on the outer one; -1: the opposite.
        readings: its readings.
    """

    name: str
    hinge: int
    at: Placement
    sign: float
    readings: WrenchRecording

    @classmethod
    def in_hinge(cls, model: RobotModel, hinge: int, readings: WrenchRecording) -> RecordedSensor:
        """Sensor of a multibody program: what the inner body exerts, in the frame of the joint, on the outer body."""
        return cls(model.body_names[hinge], hinge, Placement(hinge, np.eye(3), np.zeros(3)), 1.0, readings)

    @classmethod
    def in_link_frame(
        cls, model: RobotModel, place: str, readings: WrenchRecording, link: str = "", reaction: bool = False
    ) -> RecordedSensor:
        """Sensor in the frame of a link.

        Args:
            model: the robot.
            place: `UNDER_BASE`, or the joint in whose hinge it is.
            readings: its readings.
            link: link whose frame it has; empty: that of the messages.
            reaction: False: it shows what the outer body exerts on it (at rest the weight of the robot points down);
                True: the opposite.

        Raises:
            UsageError: a place that the robot does not have.
            InputError: no frame, an unknown one, or one that is not fixed to the bodies at the sensor.
        """
        if place != UNDER_BASE and place not in model.body_names:
            places = ", ".join((UNDER_BASE, *model.body_names))
            raise UsageError(f"a sensor cannot be at {place}; the places of {model.name} are {places}")
        hinge = 0 if place == UNDER_BASE else model.body_names.index(place)
        frame = link or readings.frame
        if not frame:
            raise InputError(
                f"{readings.source}: it states no frame (header.frame_id); name the link whose frame it has"
            )
        at = find_placement_of(model, frame)
        inner = int(model.parent[hinge])
        bodies = (inner,) if place == UNDER_BASE else (inner, hinge)
        if at.body not in bodies:
            holder = "is fixed to the base" if at.body == BASE else f"moves with {model.body_names[at.body]}"
            expected = "the base" if place == UNDER_BASE else f"a body of the hinge {place}"
            raise InputError(f"{readings.source}: its frame {frame} {holder}; the frame must be fixed to {expected}")
        return cls(place, hinge, at, 1.0 if reaction else -1.0, readings)

    def check(self) -> None:
        """Refuse readings that are not measurements.

        Raises:
            InputError: a sensor without a signal, or one that saturates.
        """
        wrench = self.readings.wrench
        changed = np.append(True, np.diff(wrench).any(axis=0))  # at rest a noiseless sensor repeats any value
        if changed.sum() == 1:
            raise InputError(f"{self.readings.source}: the wrench is constant; is the sensor connected?")
        for channel, values in zip(CHANNELS, wrench, strict=True):
            for limit in find_saturation(values[changed]):
                share = float(np.mean(np.isclose(values, limit, rtol=0.0, atol=1e-8)))
                unit = "N m" if channel.startswith("moment") else "N"
                raise InputError(
                    f"{self.readings.source}: the sensor saturates: {channel} is at {limit:g} {unit} in {share:.2g} of "
                    "the samples; record a slower motion, or use a sensor with a larger range"
                )

    def covers(self, t: Array, margin: float) -> Mask:
        """Samples at which it has readings, shape (N,): not before the first one, behind the last one, or in gaps.

        Args:
            t: stamps [s], shape (N,).
            margin: time on both sides of a gap that its interpolated values reach by filters [s].
        """
        own = self.readings.t
        steps, inside = np.diff(own), (t >= own[0]) & (t <= own[-1])
        for gap in np.flatnonzero(steps > GAP_STEPS * np.median(steps)):
            inside &= (t < own[gap] - margin) | (t > own[gap + 1] + margin)
        return np.asarray(inside)

    def along(self, poses: Poses) -> Array:
        """Its channels as wrenches about the hinge along the axes of the world, shape (6, 6, N)."""
        turned = poses.rotation[:, self.at.body]
        rotation = np.moveaxis(turned @ self.at.rotation, 0, -1)
        origin = poses.position[:, self.at.body] + turned @ self.at.position
        lever = (poses.position[:, self.hinge] - origin).T
        axes = np.zeros((6, 6, rotation.shape[2]))
        axes[:3, :3] = axes[3:, 3:] = rotation.transpose(1, 0, 2)
        for axis in range(3):  # moment about the frame's origin: m + lever x f
            axes[axis, 3:] = cross(rotation[:, axis], lever)
        return self.sign * axes


@dataclass(frozen=True)
class IdentifiedChain:
    """Bodies of a robot from the wrenches of its hinges.

    Attributes:
        bodies: names of the bodies' joints.
        frames: frame of each body in which its parameters are given.
        estimate: parameters of the bodies.
        sensors: places of the sensors.
        findings: findings about the recording.
    """

    bodies: tuple[str, ...]
    frames: tuple[Placement, ...]
    estimate: ChainEstimate
    sensors: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def identify_recorded_chain(
    joints: Recording,
    sensors: Sequence[RecordedSensor],
    model: RobotModel,
    settings: Settings,
    principal: bool = False,
    precision: float = PRECISION,
) -> IdentifiedChain:
    """Identify all bodies of a robot with 6-axis sensors.

    Time at rest of more than 5 s is left out: its samples show one pose, more exactly than those in motion, so that
    what is wrong with that pose would outweigh the motion.

    Args:
        joints: motion of the robot; efforts are not read.
        sensors: the sensors; every channel has an unknown offset.
        model: the robot, a chain; its joints are those of the recording.
        settings: cut-off, source of the velocities.
        principal: whether centers of mass and principal axes are those of the robot description, so that m, Ixx, Iyy
            and Izz in them remain; otherwise all ten parameters in the frames of the joints.
        precision: see `identify_from_sensors`.

    Raises:
        InputError: data that cannot be used, no motion, stamps that do not overlap, a robot that is not a chain,
            wrenches that contradict the centers of mass and principal axes, or have the opposite sign.
    """
    if not sensors:
        raise InputError(f"{joints.source}: no hinge has a sensor")
    for sensor in sensors:
        sensor.check()
    still = InputError(f"{joints.source}: no joint moves: wrenches at rest do not identify the bodies; record a motion")
    rest = find_stillness(joints, model.joint_names)
    if not rest.moves:
        raise still
    (whole, jumps), signals = correct_motion(joints, model), replace(settings.signals, period=0.0)
    moving = whole.select(replace(whole.excerpt, without=rest.spans))
    trials = FilteredTrials.from_recordings([moving], model.joint_names, {}, signals, need_effort=False)
    travel = trials.ranges.q_max - trials.ranges.q_min
    resting = travel < least_travel(model.slides)
    if resting.all():
        raise still
    gravity, plan = tuple(model.gravity), trials.plan

    def windows(frames: tuple[Placement, ...]) -> Iterator[ChainWindow]:
        for window in trials:
            inside = [one.covers(window.t, EXCLUDED_PERIODS / plan.low_pass.cutoff) for one in sensors]
            rows = np.all([window.own & (window.number % plan.row_stride == 0), *inside], axis=0)
            if not rows.any():
                continue
            motion = _hold(window.motion, resting)
            poses = Kinematics(model).poses(motion.q)
            bodies = move_chain(model, motion, frames, poses)
            found = []
            for one in sensors:
                t, wrench = one.readings.t, one.readings.wrench
                read = np.ascontiguousarray(interpolate_linear(window.t, t, wrench.T, hold_ends=True).T)
                found.append(HingeSensor(one.hinge, CHANNELS, one.along(poses), read))
            yield ChainWindow(bodies, found, partial(_rows, plan, rows), window.segment)

    frames = find_centroidal_frames(model) if principal else find_joint_frames(model)
    columns = CENTROIDAL if principal else ALL
    problem = make_sensor_problem(partial(windows, frames), gravity, columns, plan.row_rate, offsets=True)
    if principal:
        every = make_sensor_problem(partial(windows, frames), gravity, ALL, plan.row_rate, offsets=True)
        check_frames(problem, every, precision)
    estimate = identify_from_sensors(problem, columns, precision)
    _check_sign(estimate, sensors)
    places, findings = tuple(one.name for one in sensors), (*jumps, *report_rest_left_out([moving]))
    return IdentifiedChain(model.body_names, frames, estimate, places, findings)


def _check_sign(estimate: ChainEstimate, sensors: Sequence[RecordedSensor]) -> None:
    """Refuse masses that are all negative.

    Raises:
        InputError: the readings have the opposite sign.
    """
    mass, sigma = estimate.values[:, 0], estimate.standard_deviations[:, 0]
    known = np.isfinite(mass)
    if known.any() and (mass[known] < -NEGATIVE_SIGMAS * sigma[known]).all():
        source = ", ".join(one.readings.source for one in sensors)
        raise InputError(
            f"{source}: every mass would be negative: the sensor shows the opposite wrench (that of the robot on the "
            "sensor, or that of the sensor on the robot); change the sign"
        )


def _hold(motion: Motion, resting: Mask) -> Motion:
    """The motion without the noise of joints that are at rest, which would excite their bodies."""
    q, moving = motion.q.copy(), ~resting[:, None]
    q[resting] = q[resting].mean(axis=1, keepdims=True)
    return Motion(q, motion.dq * moving, motion.ddq * moving)


def _rows(plan: SignalPlan, rows: Mask, block: Array) -> Array:
    """Low-passed values at the samples that become rows."""
    return plan.low_pass.apply(block, plan.rate)[:, rows]
