# SPDX-License-Identifier: Apache-2.0
"""A linear problem beside the same motion of a simulated robot, row by row; for estimators that simulate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.problem import LinearProblem, Origin, Smooth, Tile
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators.factors import find_used_rows
from robot_dyn_id.signals.filtering import derivative
from robot_dyn_id.simulation.closed_loop import ControllerModel, Replay, quantize


@dataclass(frozen=True)
class Replayed:
    """The problem with parts of its rows taken from simulations of the same instants.

    Columns are simulated without the steps of the encoders: of simulated noise they would be as biased as of measured.

    Attributes:
        measured: the problem, with the columns that depend on the direction of motion (friction) as simulated, and
            torques less what the simulated ones, encoders in the loop, are more than rows made the same way of the
            simulated readings: of noisy velocities and of readings in a loop rows are wrong on average, which no
            instrument mends.
        simulated: columns as simulated, and the measured torques.
        linearised: columns as simulated; torques that the measured ones are more than the simulated, encoders in the
            loop, and what the columns give with the parameters of the simulation.
    """

    measured: LinearProblem
    simulated: LinearProblem
    linearised: LinearProblem

    @staticmethod
    def of(
        problem: LinearProblem, origin: Origin, controller: ControllerModel, robot: Dynamics, values: Array
    ) -> Replayed:
        """Simulate a robot with the base parameters `values` when the rows are walked; see `closed_loop.Replay`."""
        ideal_replay = Replay(replace(controller, resolution=()), robot)
        replay = Replay(controller, robot) if rough(controller) else ideal_replay
        ideal = origin.along(ideal_replay)
        loop = origin.along(lambda pieces: read(replay(pieces), origin, controller))
        frictions = directed(origin.regressor)[origin.columns]

        def mixed(tile: Tile, other: Tile) -> Array:
            rows = np.append(frictions[problem.supports[tile.joint]], False)[:, None]
            return np.where(rows, other.block, tile.block)

        def measured() -> Iterator[Tile]:
            for tile, told in zip(beside(problem, ideal, mixed), loop.tiles(), strict=True):
                rows = frictions[problem.supports[tile.joint]][:, None]
                columns = np.where(rows, tile.block[:-1], told.block[:-1])
                more = told.block[-1] - values[problem.supports[tile.joint]] @ columns
                tile.block[-1] = np.where(find_used_rows(tile.block), tile.block[-1] - more, 0.0)
                yield tile

        def linearised() -> Iterator[Tile]:
            for tile, told in zip(beside(problem, ideal, simulated_columns), loop.tiles(), strict=True):
                more = values[problem.supports[tile.joint]] @ tile.block[:-1] - told.block[-1]
                tile.block[-1] = np.where(find_used_rows(tile.block), tile.block[-1] + more, 0.0)
                yield tile

        return Replayed(
            replace(problem, tiles=measured),
            replace(problem, tiles=lambda: beside(problem, ideal, simulated_columns)),
            replace(problem, tiles=linearised),
        )


def rough(controller: ControllerModel) -> bool:
    """Whether encoders are simulated."""
    return any(step > 0.0 for _, step in controller.resolution)


def read(pieces: Iterable[Smooth], origin: Origin, controller: ControllerModel) -> Iterator[Smooth]:
    """Simulated windows with motions made of the encoders' readings, as the recorded ones are."""
    steps = controller.values_of_joints("resolution", origin.regressor.model.joint_names)[:, None]
    for piece in pieces:
        rate = 1.0 / float(piece.t[1] - piece.t[0])
        q = origin.low_pass(quantize(piece.motion.q, steps))
        dq = derivative(q, rate)
        yield replace(piece, motion=replace(piece.motion, q=q, dq=dq, ddq=derivative(dq, rate)))


def simulated_columns(_tile: Tile, other: Tile) -> Array:
    """The columns of the second walk."""
    return other.block


def beside(problem: LinearProblem, along: LinearProblem, mix: Callable[[Tile, Tile], Array]) -> Iterator[Tile]:
    """Columns made of those of two walks, and the torques and left out rows of the first."""
    for tile, other in zip(problem.tiles(), along.tiles(), strict=True):
        block = mix(tile, other)
        block[-1] = tile.block[-1]
        yield replace(tile, block=np.where(find_used_rows(tile.block), block, 0.0))


def directed(regressor: Regressor) -> Mask:
    """Which columns change when a motion turns round at the same acceleration: viscous and dry friction, shape (c,)."""
    y, dy, ddy = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 16))
    found = np.zeros(len(regressor.names), dtype=bool)
    inertial = len(found) - len(regressor.term_columns)
    for number, column in enumerate(regressor.term_columns):
        there, back = (column.term.columns(y, sign * dy, ddy)[column.index] for sign in (1.0, -1.0))
        found[inertial + number] = not np.array_equal(there, back)
    return found
