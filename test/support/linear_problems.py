# SPDX-License-Identifier: Apache-2.0
"""Linear problems with known parameters: random columns, and a recorded arm."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.signal import lfilter

from robot_dyn_id.dynamics.prior import make_nominal_prior
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.estimators import (
    ESTIMATORS,
)
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from support.simulated import Simulated, changed

SUPPORTS = (np.arange(6), np.arange(2, 8))
TRUTH = np.array([3.0, -1.0, 0.5, 20.0, -0.02, 7.0, 1.0, -4.0])


def problem(columns, torques, supports=SUPPORTS, size=100, segments=1):
    """A linear problem of given rows: columns (rows, support) and torques (rows,) of each joint, in tiles of `size`."""
    count = 1 + max(int(support.max()) for support in supports)

    def tiles():
        for segment in range(segments):
            length = len(torques[0]) // segments
            for start in range(segment * length, (segment + 1) * length, size):
                stop = min(start + size, (segment + 1) * length)
                for joint, (w, tau) in enumerate(zip(columns, torques, strict=True)):
                    yield Tile(joint, segment, np.vstack([w[start:stop].T, tau[start:stop]]))

    names = tuple(f"p{number}" for number in range(count))
    return LinearProblem(names, tuple(f"j{i}" for i in range(len(supports))), supports, tiles, 10.0)


def rows(noise=(0.0, 0.0), count=400, seed=0):
    """Columns of two joints that share some parameters, and torques of the truth with noise."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=(count, len(support))) for support in SUPPORTS]
    torques = [
        w @ TRUTH[support] + sigma * rng.normal(size=count)
        for w, support, sigma in zip(columns, SUPPORTS, noise, strict=True)
    ]
    return columns, torques


def stacked(columns, torques, weights=(1.0, 1.0)):
    """The whole problem as one matrix, for numpy."""
    blocks = []
    for w, support, weight in zip(columns, SUPPORTS, weights, strict=True):
        block = np.zeros((len(w), len(TRUTH)))
        block[:, support] = weight * w
        blocks.append(block)
    return np.vstack(blocks), np.concatenate([weight * tau for weight, tau in zip(weights, torques, strict=True)])


PLAN = SignalPlan.from_low_pass(100.0, LowPass(5.0), False)
NOISE = np.array([0.5, 0.8, 0.2])
PERIOD = 10.0


every_estimator = pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "closed_loop_output_error"])
"""But the one that needs a robot whose motion depends on its parameters: test_closed_loop_output_error.py."""


@cache
def arm():
    robot = Simulated()
    return robot, robot.record(duration=35.0)


def arm_problem(recording=None, robot=None, plan=PLAN):
    """The linear problem of an arm's recording, with the URDF as prior."""
    robot = robot or arm()[0]
    trials = FilteredTrials([recording or arm()[1]], robot.joints, {}, plan.periodic(PERIOD))
    prior = make_nominal_prior(robot.model, robot.base.mapping)
    return trials.problem(robot.regressor, robot.base.independent, prior)


def noisy(seed, correlation_time=0.0):
    """The arm's recording with new noise on its torques."""
    recording = arm()[1]
    noise = np.random.default_rng(seed).normal(size=recording.samples.tau.shape)
    if correlation_time:
        keep = np.exp(-0.01 / correlation_time)
        noise = lfilter([np.sqrt(1 - keep**2)], [1.0, -keep], noise, axis=0)
    return changed(recording, tau=lambda tau: tau + noise * NOISE)


def cut(problem, count):
    """The first rows of each joint only."""

    def tiles():
        left = {}
        for tile in problem.tiles():
            size = left.setdefault(tile.joint, count)
            left[tile.joint] = max(0, size - tile.block.shape[1])
            yield replace(tile, block=np.ascontiguousarray(tile.block[:, :size]))

    return replace(problem, tiles=tiles)
