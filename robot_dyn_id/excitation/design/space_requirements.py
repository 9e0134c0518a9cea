# SPDX-License-Identifier: Apache-2.0
"""Requirements on where the robot is: apart from itself and from obstacles, and within a room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.workspace import SIDES, Workspace
from robot_dyn_id.excitation.design.requirement import Margin, Requirement, no_slope
from robot_dyn_id.excitation.trajectory import Sample

POSES = 50
"""Postures in which a search looks for collisions, spread over the motion; afterwards every one is looked at."""


class Separation(Requirement):
    """Distance of the robot from itself and from obstacles."""

    def __init__(self, clearance: Clearance, margin: float) -> None:
        """Take the geometry.

        Args:
            clearance: of the robot and what is around it.
            margin: distance that is kept in the search [m]; afterwards only contact is not allowed.

        Raises:
            UsageError: a negative margin, or nothing to be compared.
        """
        if not 0.0 <= margin < clearance.within:
            raise UsageError(f"clearance {margin:g} m must be at least 0 and less than {clearance.within:g} m")
        if not clearance.pairs:
            raise UsageError("no pair of links or obstacles can be checked for collisions: leave the clearance out")
        self._clearance, self._margin = clearance, margin

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`: as a share of 0.1 m, the range in which distances are known."""
        near = self._margin - self._clearance.distances(np.ascontiguousarray(motion[0][:, self._seen(motion)]))
        return np.asarray(near.reshape(1, -1) / self._clearance.within)

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        seen, slope = self._seen(motion), no_slope(motion)
        by_distance = -weights[0].reshape(len(self._clearance.pairs), -1) / self._clearance.within
        slope[0][:, seen] = self._clearance.pull_back(np.ascontiguousarray(motion[0][:, seen]), by_distance)
        yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; all instants are looked at."""
        distance, pair = self._clearance.smallest(motion[0])
        worst = int(np.argmin(distance))
        name = self._clearance.pairs[pair[worst]] if pair[worst] >= 0 else "all pairs"
        nearest = float(distance[worst])
        return (Margin(f"distance of {name}", nearest, 0.0, nearest, "m", float(t[worst])),)

    @staticmethod
    def _seen(motion: Sample) -> slice:
        return slice(None, None, max(1, motion[0].shape[1] // POSES))


class InWorkspace(Requirement):
    """The room that a frame stays in."""

    def __init__(self, workspace: Workspace) -> None:
        """Take the walls that there are."""
        self._workspace = workspace
        self._walls = np.isfinite(np.concatenate([workspace.lower, workspace.upper]))

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`: in m."""
        return np.asarray(-self._workspace.margins(motion[0])[self._walls])

    def slopes(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for row, side in enumerate(np.flatnonzero(self._walls)):
            slope, one = no_slope(motion), np.zeros((6, motion[0].shape[1]))
            one[side] = -weights[row]
            slope[0][:] = self._workspace.pull_back(motion[0], one)
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        left, found = self._workspace.margins(motion[0]), []
        for side in np.flatnonzero(self._walls):
            worst = int(np.argmin(left[side]))
            wall = float(np.concatenate([self._workspace.lower, self._workspace.upper])[side])
            out = float(left[side, worst])
            found.append(
                Margin(
                    f"{SIDES[side]} side of the workspace of {self._workspace.link}",
                    wall + out if side < 3 else wall - out,
                    wall,
                    out,
                    "m",
                    float(t[worst]),
                )
            )
        return tuple(found)
