# SPDX-License-Identifier: Apache-2.0
"""Requirements in space: minimum distances to the robot itself and to obstacles, and a workspace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.workspace import SIDES, Workspace
from robot_dyn_id.excitation.design.requirement import Margin, Requirement, zero_gradient
from robot_dyn_id.excitation.parametrization import Parametrization
from robot_dyn_id.excitation.trajectory import Sample

SEARCH_CONFIGURATIONS = 50
"""Number of configurations checked for collisions during a search; the result is checked at all samples."""


PASSAGE_CONFIGURATIONS = 9
"""Number of configurations of each passage checked during a search, both ends and the middle included."""


class MinimumDistance(Requirement):
    """Minimum distance between links, and between links and obstacles."""

    def __init__(self, clearance: Clearance, family: Parametrization) -> None:
        """Set the minimum distance.

        Args:
            clearance: distances of the robot and its surroundings, and the least one.
            family: family of the motions: distances are computed in its passages alone.

        Raises:
            UsageError: there is no pair to be checked.
        """
        if not clearance.pairs:
            raise UsageError("no pair of links or obstacles can be checked for collisions: set clearance to 0")
        self._clearance = clearance
        self._passages, self._duration = family.passages, family.duration

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`; relative to the range in which distances are exact."""
        distances = self._clearance.distances(np.ascontiguousarray(motion[0][:, self._selection(motion)]))
        return np.asarray((self._clearance.margin - distances).reshape(1, -1) / self._clearance.within)

    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        selection = self._selection(motion)
        slope = zero_gradient(motion)
        by_distance = -weights[0].reshape(len(self._clearance.pairs), -1) / self._clearance.within
        slope[0][:, selection] = self._clearance.pull_back(np.ascontiguousarray(motion[0][:, selection]), by_distance)
        yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`; all samples of the passages are checked."""
        if self._passages:
            edge, stretch = t[1] - t[0], t[-1] / self._duration  # the latter with a free period
            passed = [(stretch * begin - edge <= t) & (t <= stretch * end + edge) for begin, end in self._passages]
            selection = np.any(passed, axis=0)
            t, motion = t[selection], (np.ascontiguousarray(motion[0][:, selection]), *motion[1:])
        found = self._clearance.find_nearest(motion[0])
        name, spare = found.pair or "all pairs", found.distance - found.least
        return (Margin(f"distance of {name}", found.distance, found.least, spare, "m", float(t[found.number])),)

    def _selection(self, motion: Sample) -> slice | Integers:
        """Samples of a cycle at which distances are compared during a search."""
        count = motion[0].shape[1]
        if not self._passages:
            return slice(None, None, max(1, count // SEARCH_CONFIGURATIONS))
        begins, ends = np.array(self._passages).T
        times = np.linspace(begins, ends, PASSAGE_CONFIGURATIONS)
        return np.unique(np.minimum(np.rint(times * (count / self._duration)), count - 1).astype(np.int64))


class WorkspaceLimits(Requirement):
    """Box in which the origin of a link must stay."""

    def __init__(self, workspace: Workspace) -> None:
        """Select the finite sides of the box."""
        self._workspace = workspace
        self._sides = np.isfinite(np.concatenate([workspace.lower, workspace.upper]))

    def excess(self, motion: Sample) -> Array:
        """See `Requirement`; in m."""
        return np.asarray(-self._workspace.margins(motion[0])[self._sides])

    def gradients(self, motion: Sample, weights: Array) -> Iterator[Sample]:
        """See `Requirement`."""
        for row, side in enumerate(np.flatnonzero(self._sides)):
            slope = zero_gradient(motion)
            by_side = np.zeros((6, motion[0].shape[1]))
            by_side[side] = -weights[row]
            slope[0][:] = self._workspace.pull_back(motion[0], by_side)
            yield slope

    def margins(self, t: Array, motion: Sample) -> tuple[Margin, ...]:
        """See `Requirement`."""
        distances = self._workspace.margins(motion[0])
        found = []
        for side in np.flatnonzero(self._sides):
            worst = int(np.argmin(distances[side]))
            wall = float(np.concatenate([self._workspace.lower, self._workspace.upper])[side])
            distance = float(distances[side, worst])
            found.append(
                Margin(
                    f"{SIDES[side]} side of the workspace of {self._workspace.link}",
                    wall + distance if side < 3 else wall - distance,
                    wall,
                    distance,
                    "m",
                    float(t[worst]),
                )
            )
        return tuple(found)
