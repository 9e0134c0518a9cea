# SPDX-License-Identifier: Apache-2.0
"""How far a robot stays from itself and from what stands around it.

Links without shapes have capsules as stand-ins (`stand_ins.py`), and the ground is an obstacle, unless the user says
otherwise: a motion that nothing was compared with must not look like one that fits.

Distances between convex shapes are coal's (Montaut et al., GJK++, 2024), negative where shapes overlap: the depth.
Meshes are taken as their convex hulls, which contain them, so that a hollow counts as solid. Pairs of bounding spheres
that are far apart are not looked at more closely: distances saturate at `within`, and are exact below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.collision.distances import Distances, Solids
from robot_dyn_id.excitation.collision.obstacles import GROUND, Obstacle, ground_at
from robot_dyn_id.excitation.collision.shapes import NO_GEOMETRY, LinkGeometry, Shape, collision_geometry, corners_of
from robot_dyn_id.excitation.collision.srdf import disabled_pairs
from robot_dyn_id.excitation.collision.stand_ins import thinned, with_stand_ins, without_stand_ins
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.model.kinematics import BASE, link_placements
from robot_dyn_id.model.robot import RobotModel

WITHIN = 0.1
"""Distances are exact below this [m]."""

POSES = 300
"""Random postures in which pairs that always touch are found."""

BLOCK = 1000
"""Postures that are looked at together: memory does not grow with the length of a motion."""


SHAPES, STAND_INS, NOT_CHECKED = CHECKS = ("shapes", "stand_ins", "not_checked")
"""What a motion was compared with: the shapes of the URDF, stand-ins for some of them, or nothing."""

UNCHECKED = "NOT CHECKED FOR COLLISIONS"
"""What must be said of a motion that was compared with nothing, or not with all links."""

BELOW = 0.05
"""What is fixed to the base may reach so far below z = 0 before the ground is taken to be lower than that [m]."""

TURN, SLIDE = 0.01, 0.005
"""Steps in which a path is checked [rad, m]."""

DEEPER = 1e-3
"""Two things that overlap where a path begins may overlap by so much more on it [m]."""

ROOM = 0.01
"""A stand-in can be further away from an obstacle than the margin by this, in some posture [m]."""

CHANGE = 1e-6
"""A distance that changes by less whatever the posture does not depend on it [m]."""


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
        basis: one of `CHECKS`: `not_checked` if a link that needs a shape has none.
        stand_ins: names of the links whose shapes are stand-ins.
        lacking: names of the links that need a shape and have none.
        shapes: of all links, stand-ins included.
        obstacles: the ground included.
        notes: one line for everything that is not checked, or not as the URDF says.
        within: where distances saturate [m].
    """

    model: RobotModel
    pairs: tuple[str, ...]
    basis: str
    stand_ins: tuple[str, ...]
    lacking: tuple[str, ...]
    shapes: tuple[Shape, ...]
    obstacles: tuple[Obstacle, ...]
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
        stand_ins: bool = True,
        ground: bool | float = True,
        margin: float = 0.0,
    ) -> None:
        """Choose the pairs: every two links of bodies that are not neighbours, every moving link and every obstacle.

        Left out, and noted, are pairs of links that touch in every one of many random postures or in the neutral one
        (0, or the middle of the limits where 0 is outside them): a robot that can be built does not, so these are
        shapes that are larger than the robot. Links that are in the ground whatever the posture stand on it, and are
        noted too. Pairs whose distance is the same in every posture are left out.

        The ground is the plane z = 0 of the base, whatever the direction of gravity: a base is mounted on a surface,
        be it floor, wall or ceiling. Where shapes that are fixed to the base reach below it, as a torso or a pedestal
        does, the ground is where they end.

        Args:
            model: the robot.
            obstacles: in the base frame.
            folders: where meshes of `package://` and relative names are looked for.
            allowed: names of links and obstacles that may touch.
            srdf: a file of MoveIt's, whose `disable_collisions` are allowed too.
            within: where distances saturate [m].
            stand_ins: whether capsules take the place of missing shapes.
            ground: whether there is ground, or its height [m]; an obstacle called `ground` takes its place.
            margin: distance that motions are to keep [m]: stand-ins are made so that they can.

        Raises:
            ModelError: a broken origin or size in the URDF.
            InputError: the SRDF file cannot be read.
            UsageError: an unknown name in `allowed`, a name that is used twice, or an obstacle
                that a link is in whatever the posture.
        """
        if not within > 0.0:
            raise UsageError(f"within {within:g} must be positive [m]")
        read = collision_geometry(model, folders)
        geometry = with_stand_ins(model, read) if stand_ins else without_stand_ins(model, read)
        remarks: list[str] = []
        if ground is not False and not any(obstacle.name == GROUND for obstacle in obstacles):
            height, remark = _ground_height(geometry, ground)
            obstacles = (*obstacles, ground_at(height))
            remarks += [remark] if remark else []
        postures = _postures(model)
        shapes = _fitted(model, geometry.shapes, obstacles, postures, margin)
        solids = Solids(model, shapes, obstacles)
        names, around = tuple(link_placements(model)), [obstacle.name for obstacle in obstacles]
        for name in around:
            if name in names or around.count(name) > 1:
                raise UsageError(f"obstacle {name}: a link or another obstacle has that name, choose one of its own")
        known = {*names, *around}
        for name in {name for pair in allowed for name in pair} - known:
            raise UsageError(f"allowed pair: {name} is no link or obstacle; there are {', '.join(sorted(known))}")
        disabled = {frozenset(pair) for pair in [*allowed, *(disabled_pairs(srdf) if srdf else ())]}
        links = {shape.link: shape.placement.body for shape in shapes}
        candidates = [pair for pair in _candidates(model, links, around) if frozenset(pair) not in disabled]
        contacts = _contacts(solids, candidates, around, postures)
        touching, offsets = contacts.touching, {pair: margin + ROOM - depth for pair, depth in contacts.thick.items()}
        chosen = [pair for pair in candidates if pair not in touching and pair not in contacts.constant]
        self.model, self.within = model, within
        self.stand_ins, self.lacking = geometry.stand_ins, geometry.lacking
        self.shapes, self.obstacles = shapes, tuple(obstacles)
        self.basis = STAND_INS if self.stand_ins else SHAPES
        if self.lacking:
            self.basis = NOT_CHECKED
        self.pairs = tuple(f"{first} and {second}" for first, second in chosen)
        self.notes = (
            *_shape_notes(geometry),
            *remarks,
            *(f"{first} and {second}: touch {why}; not checked" for (first, second), why in touching.items()),
            *(
                f"{first} and {second}: overlap in the neutral posture, which is not counted; their distance is that "
                f"of shapes {offset:.3f} m thinner"
                for (first, second), offset in offsets.items()
            ),
            *(() if chosen else ("no pair of links or obstacles can be checked for collisions",)),
        )
        self._solids = solids.paired(chosen, [offsets.get(pair, 0.0) for pair in chosen])

    @property
    def words(self) -> str:
        """What the motion is compared with, for people; empty where every link has a shape of its own."""
        if self.lacking:
            return f"{UNCHECKED}: no shapes of {', '.join(self.lacking)}"
        return f"CHECKED WITH STAND-INS for {', '.join(self.stand_ins)}" if self.stand_ins else ""

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

    def obstruction(self, motion: Trajectory, free: Array | None = None) -> str:
        """Reason why a robot that stands where a motion begins must not make it; empty if nothing is in the way.

        The robot does stand there, so that what overlaps there are shapes larger than the robot: such a pair may
        overlap on the whole way, but not deeper.

        Args:
            motion: of the independent joints.
            free: postures that are known to be free [rad or m], shape (n, N): what overlaps there may overlap too.
        """
        ends = motion.evaluate(np.array([0.0]))[0]
        known = ends if free is None else np.column_stack([ends, free])
        least = self._solids.measure(known, 1e-6, slopes=False).values.min(axis=1, initial=0.0) - DEEPER
        least[least >= -DEEPER] = 0.0
        return self._deepest(motion, least)

    def collision(self, motion: Trajectory, tolerance: float = 0.0) -> str:
        """Reason why a motion collides, naming the pair, the time and the depth; empty if nothing touches.

        Args:
            motion: of the independent joints.
            tolerance: depth that is not counted [m].
        """
        return self._deepest(motion, np.full(len(self.pairs), -tolerance))

    def _deepest(self, motion: Trajectory, least: Array) -> str:
        """The deepest encounter of those below the least distance of each pair [m], shape (pairs,); empty if none."""
        t = path_times(motion, self.model)
        worst: Encounter | None = None
        for start in range(0, len(t), BLOCK):
            times = t[start : start + BLOCK]
            values = self._solids.measure(motion.evaluate(times)[0], 1e-6, slopes=False).values
            for pair in np.flatnonzero((values < least[:, None]).any(axis=1)):
                at = int(np.argmin(values[pair]))
                close = times[values[pair] < least[pair]]
                ends = float(close[0]), float(close[-1])
                new = Encounter(self.pairs[pair], *ends, float(times[at]), float(values[pair, at]))
                worst = new if worst is None or new.distance < worst.distance else worst
        return str(worst) if worst is not None else ""


def path_times(motion: Trajectory, model: RobotModel) -> Array:
    """Times of a motion between which no joint moves by much more than `TURN` or `SLIDE` [s], both ends included."""
    coarse = np.linspace(0.0, motion.duration, max(50, math.ceil(20.0 * motion.duration)))
    ways = np.abs(np.diff(motion.evaluate(coarse)[0], axis=1))
    step = np.array([SLIDE if unit == "N" else TURN for unit in model.effort_units])
    counts = np.ceil((ways / step[:, None]).max(axis=0)).astype(np.int64)
    parts = [
        np.linspace(a, b, count, endpoint=False)
        for a, b, count in zip(coarse, coarse[1:], np.maximum(counts, 1), strict=False)
    ]
    return np.append(np.concatenate(parts), motion.duration)


def _shape_notes(geometry: LinkGeometry) -> list[str]:
    """Notes on the shapes: links without geometry in one line, and what took the place of missing meshes."""
    bare = [note.split(":")[0].removeprefix("link ") for note in geometry.notes if note.endswith(NO_GEOMETRY)]
    replaced = [name for name in geometry.stand_ins if name not in geometry.incomplete]
    notes = [
        f"{note}; a stand-in is taken too" if name in geometry.stand_ins else note
        for note in geometry.notes
        for name in [note.split(":")[0].removeprefix("link ")]
        if name not in bare
    ]
    if replaced:
        notes.append(f"no collision geometry: stand-ins for {', '.join(replaced)}")
    return notes + [f"link {name}: {NO_GEOMETRY}" for name in geometry.lacking if name not in geometry.incomplete]


def _ground_height(geometry: LinkGeometry, ground: bool | float) -> tuple[float, str]:
    """Height of the ground [m], and a remark if it is not that of the base's origin or the one given."""
    if not isinstance(ground, bool):
        return float(ground), ""
    fixed = [shape for shape in geometry.shapes if shape.placement.body == BASE and not shape.stand_in]
    lowest = min((float(corners_of(shape)[:, 2].min()), shape.link) for shape in fixed) if fixed else (0.0, "")
    if lowest[0] >= -BELOW:
        return 0.0, ""
    return lowest[0], (
        f"ground: link {lowest[1]}, which is fixed to the base, reaches to z = {lowest[0]:.3f} m: "
        "the ground is taken to be there"
    )


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


def _postures(model: RobotModel) -> Array:
    """The neutral posture and `POSES` random ones within the limits, shape (n, N) [rad or m]."""
    limits = model.limits
    lower, upper = (np.clip(bound, -np.pi, np.pi) for bound in (limits.lower, limits.upper))
    inside = (limits.lower <= 0.0) & (limits.upper >= 0.0)
    neutral = np.where(inside, 0.0, (lower + upper) / 2.0)
    shares = np.random.default_rng(0).random((len(lower), POSES))
    return np.column_stack([neutral, lower[:, None] + (upper - lower)[:, None] * shares])


def _fitted(
    model: RobotModel, shapes: Sequence[Shape], obstacles: Sequence[Obstacle], postures: Array, margin: float
) -> tuple[Shape, ...]:
    """The shapes; stand-ins that cannot keep a margin from obstacles in any posture are thinner, see `thinned`."""
    movable = [i for i, shape in enumerate(shapes) if shape.stand_in and shape.placement.body != BASE]
    if not movable or not obstacles:
        return tuple(shapes)
    single = tuple(replace(shapes[i], link=f"stand-in {i}") for i in movable)
    names = [obstacle.name for obstacle in obstacles]
    pairs = [(shape.link, name) for shape in single for name in names]
    wanted = min(margin + ROOM, WITHIN)
    best = Solids(model, single, obstacles, tuple(pairs)).measure(postures, wanted, slopes=False).values.max(axis=1)
    deficits = dict(zip(movable, wanted - best.reshape(len(movable), -1).min(axis=1), strict=True))
    fitted: list[Shape] = []
    for i, shape in enumerate(shapes):
        deficit = float(deficits.get(i, 0.0))
        fitted += thinned(shape, deficit, np.zeros(3)) if deficit > 0.0 else (shape,)
    return tuple(fitted)


@dataclass(frozen=True)
class _Contacts:
    """Pairs that need care.

    Attributes:
        touching: pairs that touch whatever the robot does, and when.
        constant: pairs whose distance no posture changes.
        thick: pairs of links with a stand-in that overlap in the neutral posture or in all, and their distance in the
            neutral posture [m].
    """

    touching: dict[tuple[str, str], str]
    constant: frozenset[tuple[str, str]]
    thick: dict[tuple[str, str], float]


def _contacts(
    solids: Solids, candidates: Sequence[tuple[str, str]], around: Sequence[str], postures: Array
) -> _Contacts:
    """Find them.

    Raises:
        UsageError: a link that is always in an obstacle other than the ground; a stand-in may be if its depth is the
            same in every posture, as that of a link that turns above a table is.
    """
    distances = solids.paired(candidates).measure(postures, WITHIN, slopes=False).values
    stand_ins = {shape.link for shape in solids.shapes if shape.stand_in}
    touching: dict[tuple[str, str], str] = {}
    thick: dict[tuple[str, str], float] = {}
    constant = set()
    for pair, values in zip(candidates, distances, strict=True):
        always, same = bool((values <= 0.0).all()), bool(np.ptp(values) < CHANGE)
        if always and pair[1] in around and pair[1] != GROUND and not (pair[0] in stand_ins and same):
            raise UsageError(
                f"{pair[0]} is in the obstacle {pair[1]} whatever the posture: correct the obstacle, or allow the pair"
            )
        if always or (values[0] <= 0.0 and pair[1] not in around):
            if not same and pair[1] not in around and stand_ins.intersection(pair):
                thick[pair] = float(values[0])
            else:
                touching[pair] = "in every posture" if always else "in the neutral posture"
        elif values.max() < WITHIN and same:
            constant.add(pair)
    return _Contacts(touching, frozenset(constant), thick)
