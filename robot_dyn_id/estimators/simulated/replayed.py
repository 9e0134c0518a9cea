# SPDX-License-Identifier: Apache-2.0
"""Linear problem whose rows come in part from a simulation of the recorded motion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.data.stream import RepeatableStream
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem, Tile, find_used_rows
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.signals.filtering import derivative
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay, quantize


@dataclass(frozen=True)
class Replayed:
    """The problem with parts of its rows taken from simulations of the same instants.

    Columns are simulated without the resolution of the encoders: with it they would be as biased as the measured ones.

    Attributes:
        measured: the problem, with the columns that depend on the direction of motion (friction) taken from the
            simulation, and with a correction of the torques: from them is subtracted what the torques simulated with
            encoders in the loop exceed the torques of rows computed from the simulated encoder readings. Rows computed
            from noisy velocities or from readings inside a loop have a systematic error, which instruments cannot
            correct.
        simulated: simulated columns with the measured torques.
        linearized: simulated columns; the torque is the measured one minus the one simulated with encoders in the
            loop, plus the torque that the columns give with the parameters of the simulation.
    """

    measured: LinearProblem
    simulated: LinearProblem
    linearized: LinearProblem

    @classmethod
    def from_robot(
        cls, problem: RecordedProblem, controller: ControllerModel, robot: Dynamics, values: Array
    ) -> Replayed:
        """Simulate a robot; the simulation runs during the passes over the rows, see `closed_loop.Replay`.

        Args:
            problem: the recorded rows.
            controller: controller of the robot.
            robot: dynamics of the robot.
            values: base parameters of the robot, shape (p,).
        """
        ideal_replay = Replay(replace(controller, resolution=()), robot, problem.windows)
        replay = Replay(controller, robot, problem.windows) if reads_encoders(controller) else ideal_replay
        ideal = problem.with_motion(ideal_replay)
        loop = problem.with_motion(simulate_encoder_readings(replay, problem, controller))
        frictions = find_velocity_dependent_columns(problem.regressor)[problem.columns]

        def mixed(tile: Tile, other: Tile) -> Array:
            rows = np.append(frictions[problem.supports[tile.joint]], False)[:, None]
            return np.where(rows, other.block, tile.block)

        def measured() -> Iterator[Tile]:
            for tile, read in zip(merge_tiles(problem, ideal, mixed), loop.tiles(), strict=True):
                rows = frictions[problem.supports[tile.joint]][:, None]
                columns = np.where(rows, tile.block[:-1], read.block[:-1])
                excess = read.block[-1] - values[problem.supports[tile.joint]] @ columns
                tile.block[-1] = np.where(find_used_rows(tile.block), tile.block[-1] - excess, 0.0)
                yield tile

        def linearized() -> Iterator[Tile]:
            for tile, read in zip(merge_tiles(problem, ideal, merge_simulated_columns), loop.tiles(), strict=True):
                excess = values[problem.supports[tile.joint]] @ tile.block[:-1] - read.block[-1]
                tile.block[-1] = np.where(find_used_rows(tile.block), tile.block[-1] + excess, 0.0)
                yield tile

        return cls(
            replace(problem, tiles=measured),
            replace(problem, tiles=lambda: merge_tiles(problem, ideal, merge_simulated_columns)),
            replace(problem, tiles=linearized),
        )


def reads_encoders(controller: ControllerModel) -> bool:
    """Whether encoders with a finite resolution are simulated."""
    return any(step > 0.0 for _, step in controller.resolution)


def simulate_encoder_readings(
    windows: Iterable[FilteredWindow], problem: RecordedProblem, controller: ControllerModel
) -> RepeatableStream[FilteredWindow]:
    """Simulated windows with the motion computed from encoder readings, as that of the recorded windows is.

    Args:
        windows: simulated windows.
        problem: the recorded rows, whose motion filter is applied.
        controller: controller whose encoders are read.
    """
    joints = problem.regressor.model.joint_names
    resolution = make_joint_array(controller.resolution, joints, "controller: resolution")[:, None]

    def readings() -> Iterator[FilteredWindow]:
        for window in windows:
            rate = 1.0 / float(window.t[1] - window.t[0])
            q = problem.filter_positions(quantize(window.motion.q, resolution))
            dq = derivative(q, rate)
            yield replace(window, motion=replace(window.motion, q=q, dq=dq, ddq=derivative(dq, rate)))

    return RepeatableStream(readings)


def merge_simulated_columns(_recorded: Tile, simulated: Tile) -> Array:
    """The block of the simulated tile, for `merge_tiles`."""
    return simulated.block


def merge_tiles(
    recorded: LinearProblem, simulated: LinearProblem, merge: Callable[[Tile, Tile], Array]
) -> Iterator[Tile]:
    """Tiles with columns of two problems, and the torques and excluded samples of the recorded one.

    Args:
        recorded: the recorded problem.
        simulated: the same rows of a simulated motion.
        merge: block of two tiles; its last row is replaced by the recorded torque.
    """
    for tile, other in zip(recorded.tiles(), simulated.tiles(), strict=True):
        block = merge(tile, other)
        block[-1] = tile.block[-1]
        yield replace(tile, block=np.where(find_used_rows(tile.block), block, 0.0))


def find_velocity_dependent_columns(regressor: Regressor) -> Mask:
    """Columns that change if a motion reverses its velocity at the same acceleration: friction, shape (c,)."""
    y, dy, ddy = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 16))
    found = np.zeros(len(regressor.names), dtype=bool)
    inertial = len(found) - len(regressor.term_columns)
    for number, column in enumerate(regressor.term_columns):
        forward, backward = (column.term.columns(y, sign * dy, ddy)[column.index] for sign in (1.0, -1.0))
        found[inertial + number] = not np.array_equal(forward, backward)
    return found
