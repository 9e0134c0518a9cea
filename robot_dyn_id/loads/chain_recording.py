# SPDX-License-Identifier: Apache-2.0
"""Inertias of all bodies of a robot from a recording with 6-axis sensors in its hinges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.chain import ALL, CENTROIDAL, find_centroidal_frames, find_joint_frames, move_chain
from robot_dyn_id.loads.chain_estimate import ChainEstimate, check_frames
from robot_dyn_id.loads.chain_sensors import ChainWindow, HingeSensor, identify_from_sensors, make_sensor_problem
from robot_dyn_id.loads.wrench import CHANNELS
from robot_dyn_id.model.kinematics import Kinematics, Placement
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials

PRECISION = 1e-4
"""Relative precision of a recorded and filtered motion: directions that change the wrenches by less than ten times this
share are noise of the motion."""


@dataclass(frozen=True)
class IdentifiedChain:
    """Bodies of a robot from the wrenches of its hinges.

    Attributes:
        bodies: names of the bodies' joints.
        frames: frame of each body in which its parameters are given.
        estimate: parameters of the bodies.
        hinges: indices of the hinges with sensors.
    """

    bodies: tuple[str, ...]
    frames: tuple[Placement, ...]
    estimate: ChainEstimate
    hinges: tuple[int, ...]


def identify_recorded_chain(
    joints: Recording,
    wrenches: Mapping[int, WrenchRecording],
    model: RobotModel,
    settings: Settings,
    principal: bool = False,
    precision: float = PRECISION,
) -> IdentifiedChain:
    """Identify all bodies of a robot whose hinges have 6-axis sensors.

    Args:
        joints: motion of the robot; efforts are not read.
        wrenches: for each hinge with a sensor, by its index, the wrench that the inner body exerts on the outer one,
            about the origin and along the axes of the joint's frame, which turns with the outer body.
        model: the robot, a chain; its joints are those of the recording.
        settings: cut-off, source of the velocities.
        principal: whether centers of mass and principal axes are those of the robot description, so that m, Ixx, Iyy
            and Izz in them remain; otherwise all ten parameters in the frames of the joints.
        precision: see `identify_from_sensors`.

    Raises:
        InputError: data that cannot be used, stamps that do not overlap, a robot that is not a chain, wrenches that
            contradict the centers of mass and principal axes.
    """
    signals = replace(settings.signals, period=0.0)
    trials = FilteredTrials.from_recordings([joints], model.joint_names, {}, signals, need_effort=False)
    gravity, plan = tuple(model.gravity), trials.plan

    def windows(frames: tuple[Placement, ...]) -> Iterator[ChainWindow]:
        for window in trials:
            inside = [(window.t >= one.t[0]) & (window.t <= one.t[-1]) for one in wrenches.values()]
            rows = np.all([window.own & (window.number % plan.row_stride == 0), *inside], axis=0)
            if not rows.any():
                continue
            poses = Kinematics(model).poses(window.motion.q)
            bodies = move_chain(model, window.motion, frames, poses)
            sensors = []
            for hinge, one in wrenches.items():
                read = np.ascontiguousarray(interpolate_linear(window.t, one.t, one.wrench.T, hold_ends=True).T)
                turned = np.moveaxis(poses.rotation[:, hinge], 0, -1)
                sensors.append(HingeSensor(hinge, CHANNELS, _along(turned), read))
            yield ChainWindow(bodies, sensors, partial(_rows, plan, rows), window.segment)

    if not wrenches:
        raise InputError(f"{joints.source}: no hinge has a sensor")
    frames = find_centroidal_frames(model) if principal else find_joint_frames(model)
    columns = CENTROIDAL if principal else ALL
    problem = make_sensor_problem(partial(windows, frames), gravity, columns, plan.row_rate, offsets=True)
    if principal:
        every = make_sensor_problem(partial(windows, frames), gravity, ALL, plan.row_rate, offsets=True)
        check_frames(problem, every, precision)
    estimate = identify_from_sensors(problem, columns, precision)
    return IdentifiedChain(model.body_names, frames, estimate, tuple(wrenches))


def _along(rotation: Array) -> Array:
    """Unit wrenches along the axes of rotating frames, in the world, from rotations of shape (3, 3, N)."""
    axes = np.zeros((6, 6, rotation.shape[2]))
    axes[:3, :3] = axes[3:, 3:] = rotation.transpose(1, 0, 2)
    return axes


def _rows(plan: SignalPlan, rows: Mask, block: Array) -> Array:
    """Low-passed values at the samples that become rows."""
    return plan.low_pass.apply(block, plan.rate)[:, rows]
