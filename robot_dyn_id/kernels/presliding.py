# SPDX-License-Identifier: Apache-2.0
"""Presliding states along a motion: exact solution of the Dahl equation between samples of a position."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.kernels.compiled import compiled, samples


@compiled
def slide(moved, displacement, states):  # type: ignore[no-untyped-def]
    """Integrate z' = (dy / d) (1 - z sign(dy)) over N samples of m elements; each moves one way between two samples.

    moved: motion from the sample before to each sample [rad or m], shape (N, m); its first row is not read.
    displacement: breakaway displacements d [rad or m], shape (m,).
    states: z in [-1, 1], shape (N, m): its first row is given, the others are filled.
    """
    for row in range(1, len(states)):
        for k in samples(states.shape[1]):
            way = np.sign(moved[row, k])
            states[row, k] = way - (way - states[row - 1, k]) * np.exp(-abs(moved[row, k]) / displacement[k])
