# SPDX-License-Identifier: Apache-2.0
"""Cost of merging the factors of a fleet: time of a node of the tree, and what a recording sends."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.bench.kernels import Arm
from robot_dyn_id.bench.measuring import REPEATS, BenchFigure, measure_interleaved
from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.estimators.row_statistics import RowStatistics

BRANCHES, SAMPLES = 8, 2000
"""Branches of the tree, and rows of each joint in a recording."""

NOISE_NM = 0.2

NOISE_ORDER = 6
"""Order of the autoregressive noise model."""

NODES = 10
"""Nodes that are merged in a measured run."""


def measure_fleet(repeats: int = REPEATS) -> list[BenchFigure]:
    """Merge of the row statistics of recordings of a 7-axis arm with 64 parameters, and their size.

    Args:
        repeats: measured runs.
    """
    arm = Arm.from_samples(SAMPLES)
    parts = []
    for seed in range(BRANCHES):
        torque = arm.torque + NOISE_NM * np.random.default_rng(seed).normal(size=arm.torque.shape)
        problem = UnfilteredProblem.from_samples(arm.regressor, arm.independent, arm.motion, torque)
        parts.append(RowStatistics.from_problem(problem, NOISE_ORDER))

    def merge() -> None:
        for _ in range(NODES):
            RowStatistics.merged(parts)

    found = measure_interleaved({"merge": merge}, repeats)["merge"]
    arrays = (*parts[0].factors.triangles, *parts[0].scores)
    title = f"fleet: {len(arm.independent)} parameters"
    return [
        BenchFigure(f"{title}, merge of {BRANCHES} factors", 1e3 * found.seconds / NODES, "ms", spread=found.spread),
        BenchFigure(f"{title}, factor of a recording", sum(array.nbytes for array in arrays) / 1e3, "kB"),
    ]
