"""How far a robot stays from itself and from what stands around it.

Distances between convex shapes are coal's (Montaut et al., GJK++, 2024), negative where shapes overlap: the depth.
Meshes are taken as their convex hulls, which contain them, so that a hollow counts as solid. Pairs of bounding spheres
that are far apart are not looked at more closely: distances saturate at `within`, and are exact below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.distances import Distances, Solids
from robot_dyn_id.excitation.kinematics import BASE, link_placements
from robot_dyn_id.excitation.obstacles import Obstacle
from robot_dyn_id.excitation.shapes import collision_geometry
from robot_dyn_id.excitation.srdf import disabled_pairs
from robot_dyn_id.robot import Integers, RobotModel

WITHIN = 0.1
"""Distances are exact below this [m]."""

POSES = 300
"""Random postures in which pairs that always touch are found."""

BLOCK = 1000
"""Postures that are looked at together: memory does not grow with the length of a motion."""


@dataclass(frozen=True)
class Encounter:
    """Where two things come closer to each other than they should.

    Attributes:
        pair: their names.
        begin, end: first and last time at which they are too close [s].
        time: when they are closest [s].
        distance: then [m]; negative where they overlap, the depth.
    """

    pair: str
    begin: float
    end: float
    time: float
    distance: float

    def __str__(self) -> str:
        """One line for people."""
        how = f"{-self.distance:.4f} m deep in each other" if self.distance < 0.0 else f"{self.distance:.4f} m apart"
        return f"{self.pair} are {how} at {self.time:.3f} s (too close from {self.begin:.3f} to {self.end:.3f} s)"


class Clearance:
    """Distances of the links of a robot from each other and from obstacles.

    Attributes:
        model: the robot.
        pairs: names of what is compared, `link and link` or `link and obstacle`; shape (pairs,).
        notes: one line for everything that is not checked, or not as the URDF says.
        within: where distances saturate [m].
    """

    model: RobotModel
    pairs: tuple[str, ...]
    notes: tuple[str, ...]
    within: float

    def __init__(
        self,
        model: RobotModel,
        obstacles: Sequence[Obstacle] = (),
        folders: Sequence[str | Path] = (),
        allowed: Sequence[tuple[str, str]] = (),
        srdf: str | Path | None = None,
        within: float = WITHIN,
    ) -> None:
        """Choose the pairs: every two links of bodies that are not neighbours, every moving link and every obstacle.

        Left out, and noted, are pairs of links that touch in every one of many random postures or in the neutral one
        (0, or the middle of the limits where 0 is outside them): a robot that can be built does not, so these are
        shapes that are larger than the robot.

        Args:
            model: the robot.
            obstacles: in the base frame.
            folders: where meshes of `package://` and relative names are looked for.
            allowed: names of links and obstacles that may touch.
            srdf: a file of MoveIt's, whose `disable_collisions` are allowed too.
            within: where distances saturate [m].

        Raises:
            ModelError: a broken origin or size in the URDF.
            InputError: the SRDF file cannot be read.
            UsageError: an unknown name in `allowed`, a name that is used twice, or an obstacle
                that a link is in whatever the posture.
        """
        if not within > 0.0:
            raise UsageError(f"within {within:g} must be positive [m]")
        geometry = collision_geometry(model, folders)
        solids = Solids(model, geometry.shapes, obstacles)
        names, around = tuple(link_placements(model)), [obstacle.name for obstacle in obstacles]
        for name in around:
            if name in names or around.count(name) > 1:
                raise UsageError(f"obstacle {name}: a link or another obstacle has that name, choose one of its own")
        known = {*names, *around}
        for name in {name for pair in allowed for name in pair} - known:
            raise UsageError(f"allowed pair: {name} is no link or obstacle; there are {', '.join(sorted(known))}")
        disabled = {frozenset(pair) for pair in [*allowed, *(disabled_pairs(srdf) if srdf else ())]}
        links = {shape.link: shape.placement.body for shape in geometry.shapes}
        candidates = [pair for pair in _candidates(model, links, around) if frozenset(pair) not in disabled]
        touching = _touching(solids, candidates, around)
        chosen = [pair for pair in candidates if pair not in touching]
        self.model, self.within = model, within
        self.pairs = tuple(f"{first} and {second}" for first, second in chosen)
        self.notes = (
            *geometry.notes,
            *(f"{first} and {second}: touch {why}; not checked" for (first, second), why in touching.items()),
            *(() if chosen else ("no pair of links or obstacles can be checked for collisions",)),
        )
        self._solids = solids.paired(chosen)

    def measure(self, q: Array, within: float | None = None) -> Distances:
        """Distances and their slopes at postures `q` [rad or m], shape (n, N); they saturate at `within` [m]."""
        return self._solids.measure(q, self.within if within is None else within)

    def distances(self, q: Array) -> Array:
        """Distances at postures `q` [rad or m] of shape (n, N), shape (pairs, N) [m]."""
        return self.measure(q).values

    def smallest(self, q: Array) -> tuple[Array, Integers]:
        """The smallest distance at each posture [m], shape (N,), and the number of its pair; -1 where there is none."""
        values = np.concatenate([np.full((1, q.shape[1]), self.within), self.distances(q)])
        pair = np.argmin(values, axis=0)
        return np.take_along_axis(values, pair[None], axis=0)[0], pair - 1

    def pull_back(self, q: Array, weights: Array) -> Array:
        """Slope of sum(weights * distances) with respect to `q`, shape (n, N); weights have shape (pairs, N)."""
        return self.measure(q).pull_back(weights)

    def encounters(self, t: Array, q: Array, margin: float = 0.0) -> tuple[Encounter, ...]:
        """Every pair that comes closer than `margin` [m], the deepest first.

        Args:
            t: times [s], shape (N,).
            q: postures [rad or m], shape (n, N).
            margin: distance that is kept; 0: contact.
        """
        found: dict[int, Encounter] = {}
        for start in range(0, len(t), BLOCK):
            times = t[start : start + BLOCK]
            values = self._solids.measure(q[:, start : start + BLOCK], margin + 1e-3, slopes=False).values
            for pair in np.flatnonzero((values < margin).any(axis=1)):
                close = times[values[pair] < margin]
                worst = int(np.argmin(values[pair]))
                new = Encounter(
                    self.pairs[pair], float(close[0]), float(close[-1]), float(times[worst]), float(values[pair, worst])
                )
                old = found.get(int(pair), new)
                deeper = new if new.distance < old.distance else old
                found[int(pair)] = Encounter(new.pair, old.begin, new.end, deeper.time, deeper.distance)
        return tuple(sorted(found.values(), key=lambda encounter: encounter.distance))

    def check(self, t: Array, q: Array, margin: float = 0.0) -> None:
        """Compare a motion with the margin; see `encounters`.

        Raises:
            MotionError: names the pair that comes closest, when and how close, and how many more there are.
        """
        found = self.encounters(t, q, margin)
        if found:
            more = f"; {len(found) - 1} more pairs are too close" if len(found) > 1 else ""
            raise MotionError(f"{found[0]}, {margin:g} m must be kept{more}")


def _candidates(model: RobotModel, links: dict[str, int], around: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of names that can move against each other and are not neighbours."""
    names = list(links)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            a, b = links[first], links[second]
            neighbours = (b != BASE and model.parent[b] == a) or (a != BASE and model.parent[a] == b)
            if a != b and not neighbours:
                yield first, second
    for first in names:
        if links[first] != BASE:
            yield from ((first, obstacle) for obstacle in around)


def _touching(
    solids: Solids, candidates: Sequence[tuple[str, str]], around: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Pairs of links that touch whatever the robot does, and when.

    Raises:
        UsageError: a link that is always in an obstacle.
    """
    limits = solids.model.limits
    lower, upper = (np.clip(bound, -np.pi, np.pi) for bound in (limits.lower, limits.upper))
    inside = (limits.lower <= 0.0) & (limits.upper >= 0.0)
    neutral = np.where(inside, 0.0, (lower + upper) / 2.0)
    shares = np.random.default_rng(0).random((len(lower), POSES))
    postures = np.column_stack([neutral, lower[:, None] + (upper - lower)[:, None] * shares])
    contact = solids.paired(candidates).measure(postures, 1e-6, slopes=False).values <= 0.0
    found = {}
    for pair, touches in zip(candidates, contact, strict=True):
        always = bool(touches.all())
        if always and pair[1] in around:
            raise UsageError(
                f"{pair[0]} is in the obstacle {pair[1]} whatever the posture: correct the obstacle, or allow the pair"
            )
        if always or (touches[0] and pair[1] not in around):
            found[pair] = "in every posture" if always else "in the neutral posture"
    return found
