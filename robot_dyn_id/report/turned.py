# SPDX-License-Identifier: Apache-2.0
"""Solids of revolution as polygons, to be drawn."""

from __future__ import annotations

import numpy as np

from robot_dyn_id.arrays import Array

ROUND = 20
"""Corners of a circle."""

Polygons = tuple[Array, list[list[int]]]
"""Corners [m], shape (c, 3), and the corners of each face, counted from outside against the clock."""


def turn_profile(radii: Array, heights: Array) -> Polygons:
    """A profile turned about z, from below, with lids."""
    angles = 2.0 * np.pi / ROUND * np.arange(ROUND)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    rings = [np.column_stack([r * circle, np.full(ROUND, z)]) for r, z in zip(radii, heights, strict=True)]
    faces = [list(range(ROUND))[::-1], list(range((len(rings) - 1) * ROUND, len(rings) * ROUND))]
    for ring in range(len(rings) - 1):
        below, above = ring * ROUND, (ring + 1) * ROUND
        faces += [[below + i, below + (i + 1) % ROUND, above + (i + 1) % ROUND, above + i] for i in range(ROUND)]
    return np.concatenate(rings), faces
