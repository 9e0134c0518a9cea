# SPDX-License-Identifier: Apache-2.0
"""Collision check: minimum distances between the links of a robot and to obstacles.

Links without shapes are approximated by capsules (`stand_ins.py`) and the ground is an obstacle, unless disabled by the
user, so that an unchecked motion cannot be mistaken for a checked one.

Distances between convex shapes are computed by coal (Montaut et al., GJK++, 2024); they are negative (the penetration
depth) where shapes overlap. Meshes are replaced by their convex hulls, which contain them. Pairs with distant bounding
spheres are not evaluated further: distances saturate at `within` and are exact below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import MotionError, UsageError
from robot_dyn_id.excitation.collision.distances import Distances, Solids
from robot_dyn_id.excitation.collision.obstacles import GROUND, Obstacle, Scene, make_ground_at
from robot_dyn_id.excitation.collision.pairs import (
    MAX_EXACT_DISTANCE_M,
    classify_contacts,
    list_candidate_pairs,
    sample_configurations,
)
from robot_dyn_id.excitation.collision.shapes import (
    NO_GEOMETRY,
    LinkGeometry,
    Shape,
    list_corners_of,
    read_collision_geometry,
)
from robot_dyn_id.excitation.collision.srdf import read_disabled_pairs
from robot_dyn_id.excitation.collision.stand_ins import add_stand_ins, remove_stand_ins, thin_shape
from robot_dyn_id.excitation.trajectory import Trajectory
from robot_dyn_id.model.kinematics import BASE, link_placements
from robot_dyn_id.model.robot import RobotModel

BLOCK_CONFIGURATIONS = 1000
"""Number of configurations evaluated together, so that memory does not grow with the length of a motion."""

SHAPES, STAND_INS, NOT_CHECKED = CHECKS = ("shapes", "stand_ins", "not_checked")
"""Basis of a collision check: shapes of the URDF, stand-ins for some of them, or not checked."""

UNCHECKED = "NOT CHECKED FOR COLLISIONS"
"""Note on a motion that was not checked, or not checked for all links."""

GROUND_TOLERANCE_M = 0.05
"""Depth below z = 0 reached by fixed shapes above which the ground is assumed to be lower than z = 0 [m]."""

PATH_STEP_RAD = 0.01
"""Largest motion of a revolute joint between two checks of a path [rad]."""

PATH_STEP_M = 0.005
"""Largest motion of a prismatic joint between two checks of a path [m]."""

EXTRA_DEPTH_M = 1e-3
"""Additional penetration depth allowed on a path for pairs that overlap at its beginning [m]."""

SATURATION_MARGIN_M = 1e-3
"""Distance above the minimum distance at which distances of checks saturate [m]."""

FIT_MARGIN_M = 0.01
"""Distance in addition to the margin that a stand-in can keep from obstacles in at least one configuration [m]."""


@dataclass(frozen=True)
class Nearest:
    """Pair that has the least to spare of its minimum distance.

    Attributes:
        number: number of the configuration.
        pair: names of the two objects; empty if all distances saturate.
        distance: their distance, of shapes that are thinner where `Clearance.notes` says so [m].
        least: distance that they have to keep; 0 where only contact can be avoided [m].
    """

    number: int
    pair: str
    distance: float
    least: float


@dataclass(frozen=True)
class Encounter:
    """Interval in which two objects are closer than allowed.

    Attributes:
        pair: names of the two objects.
        begin, end: first and last time with too small a distance [s].
        time: time of the minimum distance [s].
        distance: minimum distance [m]; negative for a penetration depth.
    """

    pair: str
    begin: float
    end: float
    time: float
    distance: float

    def __str__(self) -> str:
        """Description in one line."""
        overlap = self.distance < 0.0
        state = f"overlap by {-self.distance:.4f} m" if overlap else f"are {self.distance:.4f} m apart"
        return f"{self.pair} {state} at {self.time:.3f} s (too close from {self.begin:.3f} to {self.end:.3f} s)"


class Clearance:
    """Distances of the links of a robot from each other and from obstacles.

    Attributes:
        model: robot model.
        pairs: names of the checked pairs, `link and link` or `link and obstacle`, shape (pairs,).
        basis: basis of the check, one of `CHECKS`: `not_checked` if a link without a shape needs one.
        stand_ins: names of the links that are approximated by stand-ins.
        lacking: names of the links that need a shape but have none.
        shapes: shapes of all links, including stand-ins.
        obstacles: obstacles, including the ground.
        notes: one line for every pair that is not checked, or not as specified by the URDF.
        within: distance at which distances saturate [m].
        margin: minimum distance of the scene, which motions are designed for [m].
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
    margin: float

    def __init__(
        self,
        model: RobotModel,
        scene: Scene | None = None,
        *,
        folders: Sequence[str | Path] = (),
        srdf: str | Path | None = None,
        stand_ins: bool = True,
        within: float = MAX_EXACT_DISTANCE_M,
    ) -> None:
        """Select the pairs: all links of bodies that are not adjacent, and all moving links with all obstacles.

        Pairs of links that touch in all of many random configurations, or in the neutral one (0, or the middle of the
        limits if 0 is outside them), are left out and noted: their shapes are larger than the real links. Where one
        of the shapes is a stand-in, it is made thinner for this pair instead, until the pair keeps the margin in the
        neutral configuration. Other pairs that are closer than the scene's margin in all configurations count as that
        much farther apart: motions only avoid that they touch. Links that touch the ground in every configuration are
        left out and noted as well. Pairs whose distance does not depend on the configuration are left out.

        The ground is the plane z = 0 of the base frame independent of the direction of gravity, as the base is mounted
        on a surface, which may be a floor, wall or ceiling. If shapes fixed to the base reach below it, such as a torso
        or a pedestal, the ground is at their lowest point.

        Args:
            model: robot model.
            scene: obstacles and allowed contacts; only the ground by default.
            folders: folders in which meshes with `package://` or relative names are searched.
            srdf: path of a MoveIt SRDF, whose `disable_collisions` are allowed contacts.
            stand_ins: whether links without shapes are approximated by capsules.
            within: distance at which distances saturate [m].

        Raises:
            ModelError: an invalid origin or size in the URDF.
            InputError: the SRDF cannot be read.
            UsageError: a minimum distance that is out of range, an unknown name in the allowed pairs, a duplicate name,
                or an obstacle that contains a link in every configuration.
        """
        if not within > 0.0:
            raise UsageError(f"within {within:g} must be positive [m]")
        scene = scene or Scene()
        if not 0.0 <= scene.margin < within:
            raise UsageError(f"clearance {scene.margin:g} m must be at least 0 and less than {within:g} m")
        obstacles = scene.obstacles
        found = read_collision_geometry(model, folders)
        geometry = add_stand_ins(model, found) if stand_ins else remove_stand_ins(model, found)
        remarks: list[str] = []
        if scene.ground is not False and not any(obstacle.name == GROUND for obstacle in obstacles):
            height, remark = _ground_height(geometry, scene.ground)
            obstacles = (*obstacles, make_ground_at(height))
            remarks += [remark] if remark else []
        configurations = sample_configurations(model)
        shapes = _fit_stand_ins(model, geometry.shapes, obstacles, configurations, scene.margin)
        solids = Solids(model, shapes, obstacles)
        names = tuple(link_placements(model))
        around = [obstacle.name for obstacle in obstacles]
        for name in around:
            if name in names or around.count(name) > 1:
                raise UsageError(f"obstacle {name}: the name is already used by a link or another obstacle")
        known = {*names, *around}
        for name in {name for pair in scene.allowed for name in pair} - known:
            raise UsageError(f"allowed pair: {name} is not a link or obstacle; known are {', '.join(sorted(known))}")
        disabled = {frozenset(pair) for pair in [*scene.allowed, *(read_disabled_pairs(srdf) if srdf else ())]}
        links = {shape.link: shape.placement.body for shape in shapes}
        candidates = [pair for pair in list_candidate_pairs(model, links, around) if frozenset(pair) not in disabled]
        contacts = classify_contacts(solids, candidates, around, configurations, scene.margin)
        touching = contacts.touching
        limit = scene.margin + FIT_MARGIN_M
        thinner = {pair: limit - distance for pair, distance in contacts.thick.items()}
        offsets = {**thinner, **dict.fromkeys(contacts.near, scene.margin)}
        chosen = [pair for pair in candidates if pair not in touching and pair not in contacts.constant]
        self.model = model
        self.within = within
        self.stand_ins = geometry.stand_ins
        self.lacking = geometry.lacking
        self.shapes = shapes
        self.obstacles = tuple(obstacles)
        self.basis = STAND_INS if self.stand_ins else SHAPES
        if self.lacking:
            self.basis = NOT_CHECKED
        self.pairs = tuple(f"{first} and {second}" for first, second in chosen)
        self.notes = (
            *_shape_notes(geometry),
            *remarks,
            *(f"{first} and {second}: {why}; not checked" for (first, second), why in touching.items()),
            *(
                f"{first} and {second}: {'overlap' if offset > limit else 'too close'} in the neutral configuration, "
                f"which is ignored; their distance is that of shapes {offset:.3f} m thinner"
                for (first, second), offset in thinner.items()
            ),
            *(
                f"{first} and {second}: closer than {scene.margin:g} m in every configuration; only contact is avoided"
                for first, second in sorted(contacts.near)
            ),
            *_note_out_of_reach(solids, scene.obstacles),
            *(() if chosen else ("no pair of links or obstacles can be checked for collisions",)),
        )
        self._solids = solids.paired(chosen, [offsets.get(pair, 0.0) for pair in chosen])
        self.margin = scene.margin
        self._kept = np.array([scene.margin if pair in offsets else 0.0 for pair in chosen])
        self._touch_only = [pair in contacts.near for pair in chosen]

    @property
    def note(self) -> str:
        """Note on the basis of the check; empty if every link has a shape of its own."""
        if self.lacking:
            return f"{UNCHECKED}: no shapes of {', '.join(self.lacking)}"
        return f"CHECKED WITH STAND-INS for {', '.join(self.stand_ins)}" if self.stand_ins else ""

    def measure(self, q: Array, within: float | None = None) -> Distances:
        """Distances and their derivatives.

        Args:
            q: configurations [rad or m], shape (n, N).
            within: distance at which distances saturate [m]; that of the constructor by default.
        """
        return self._solids.measure(q, self.within if within is None else within)

    def distances(self, q: Array) -> Array:
        """Distances at configurations `q` [rad or m] of shape (n, N), shape (pairs, N) [m]."""
        return self.measure(q).values

    def smallest(self, q: Array, margin: float | None = None) -> tuple[Array, Integers]:
        """Minimum distance at each configuration.

        Args:
            q: configurations [rad or m], shape (n, N).
            margin: minimum distance that is checked, 0: contact [m]; that of the scene by default.

        Returns:
            Minimum distances [m], shape (N,), and indices of their pairs, -1 if all distances saturate, shape (N,).
        """
        nearest, pairs = np.full(q.shape[1], self.within), np.full(q.shape[1], -1)
        spare = self._spare(margin)
        within = self.within + spare.max(initial=0.0)
        for start in range(0, q.shape[1] * bool(self.pairs), BLOCK_CONFIGURATIONS):
            block = slice(start, start + BLOCK_CONFIGURATIONS)
            values = self._solids.measure(np.ascontiguousarray(q[:, block]), within, slopes=False).values - spare
            pair = np.argmin(values, axis=0)
            nearest[block] = np.minimum(values[pair, np.arange(len(pair))], self.within)
            pairs[block] = np.where(nearest[block] < self.within, pair, -1)
        return nearest, pairs

    def find_nearest(self, q: Array) -> Nearest:
        """The configuration, and its pair, with the least to spare of the scene's minimum distance.

        Args:
            q: configurations [rad or m], shape (n, N).
        """
        distances, pairs = self.smallest(q)
        number = int(np.argmin(distances))
        pair = int(pairs[number])
        least = 0.0 if pair >= 0 and self._touch_only[pair] else self.margin
        name = self.pairs[pair] if pair >= 0 else ""
        return Nearest(number, name, float(distances[number]) - self.margin + least, least)

    def pull_back(self, q: Array, weights: Array) -> Array:
        """Gradient of sum(weights * distances) with respect to `q`, shape (n, N); weights have shape (pairs, N)."""
        return self.measure(q).pull_back(weights)

    def encounters(self, t: Array, q: Array, margin: float = 0.0) -> tuple[Encounter, ...]:
        """Find all pairs that come closer than a minimum distance, in ascending order of distance.

        Args:
            t: times [s], shape (N,).
            q: configurations [rad or m], shape (n, N).
            margin: minimum distance [m]; 0: contact.
        """
        found: dict[int, Encounter] = {}
        for start in range(0, len(t), BLOCK_CONFIGURATIONS):
            times = t[start : start + BLOCK_CONFIGURATIONS]
            values = self._values_beyond(margin, q[:, start : start + BLOCK_CONFIGURATIONS])
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
        """Check that a motion keeps a minimum distance; for the arguments see `encounters`.

        Raises:
            MotionError: a pair is too close; names the closest pair, its time and distance, and the number of others.
        """
        found = self.encounters(t, q, margin)
        if found:
            more = f"; {len(found) - 1} more pairs are too close" if len(found) > 1 else ""
            raise MotionError(f"{found[0]}, the minimum distance is {margin:g} m{more}")

    def obstruction(self, motion: Trajectory, free: Array | None = None) -> str:
        """Check a motion of a robot from its present configuration.

        Pairs that overlap at the beginning have shapes larger than the robot, as it is in this configuration. They may
        overlap along the motion, but not deeper.

        Args:
            motion: motion of the independent joints.
            free: configurations known to be free of collisions [rad or m], shape (n, N): pairs may overlap as much as
                there.

        Returns:
            Reason why the motion collides; empty if it does not.
        """
        ends = motion.evaluate(np.array([0.0]))[0]
        known = ends if free is None else np.column_stack([ends, free])
        least = self._values_beyond(0.0, known).min(axis=1, initial=0.0) - EXTRA_DEPTH_M
        least[least >= -EXTRA_DEPTH_M] = 0.0
        return self._deepest(motion, least)

    def collision(self, motion: Trajectory, tolerance: float = 0.0) -> str:
        """Check a motion for collisions.

        Args:
            motion: motion of the independent joints.
            tolerance: penetration depth that is ignored [m].

        Returns:
            Pair, time and depth of the deepest collision; empty if there are no collisions.
        """
        return self._deepest(motion, np.full(len(self.pairs), -tolerance))

    def _values_beyond(self, margin: float, q: Array) -> Array:
        """Distances, exact below a minimum distance [m], shape (pairs, N) [m]."""
        spare = self._spare(margin)
        within = margin + SATURATION_MARGIN_M + spare.max(initial=0.0)
        return self._solids.measure(np.ascontiguousarray(q), within, slopes=False).values - spare

    def _spare(self, margin: float | None) -> Array:
        """Share of the offset of each pair that is made for a larger minimum distance, shape (pairs, 1) [m].

        Offsets are made for the margin of the scene: without this share, contact is contact for these pairs, too.
        """
        return np.maximum(self._kept - (np.inf if margin is None else margin), 0.0)[:, None]

    def _deepest(self, motion: Trajectory, least: Array) -> str:
        """Description of the deepest violation of the minimum distances [m], shape (pairs,); empty if none."""
        t = choose_path_times(motion, self.model)
        worst: Encounter | None = None
        for start in range(0, len(t), BLOCK_CONFIGURATIONS):
            times = t[start : start + BLOCK_CONFIGURATIONS]
            values = self._values_beyond(0.0, motion.evaluate(times)[0])
            for pair in np.flatnonzero((values < least[:, None]).any(axis=1)):
                closest = int(np.argmin(values[pair]))
                close = times[values[pair] < least[pair]]
                ends = float(close[0]), float(close[-1])
                new = Encounter(self.pairs[pair], *ends, float(times[closest]), float(values[pair, closest]))
                worst = new if worst is None or new.distance < worst.distance else worst
        return str(worst) if worst is not None else ""


def choose_path_times(motion: Trajectory, model: RobotModel) -> Array:
    """Times at which a motion is checked, between which joints move by about `PATH_STEP_RAD` or `PATH_STEP_M` [s]."""
    coarse = np.linspace(0.0, motion.duration, max(50, math.ceil(20.0 * motion.duration)))
    travel = np.abs(np.diff(motion.evaluate(coarse)[0], axis=1))
    step = np.where(model.slides, PATH_STEP_M, PATH_STEP_RAD)
    counts = np.ceil((travel / step[:, None]).max(axis=0)).astype(np.int64)
    parts = [
        np.linspace(a, b, count, endpoint=False)
        for a, b, count in zip(coarse, coarse[1:], np.maximum(counts, 1), strict=False)
    ]
    return np.append(np.concatenate(parts), motion.duration)


def _shape_notes(geometry: LinkGeometry) -> list[str]:
    """Notes on the shapes: links without geometry, and replacements of missing meshes."""
    bare = [note.split(":")[0].removeprefix("link ") for note in geometry.notes if note.endswith(NO_GEOMETRY)]
    replaced = [name for name in geometry.stand_ins if name not in geometry.incomplete]
    _, *alike = [name for name in geometry.stand_ins if name in geometry.incomplete] or [""]
    notes = [
        f"{note}; a stand-in is added" if name in geometry.stand_ins else note
        for note in geometry.notes
        for name in [note.split(":")[0].removeprefix("link ")]
        if name not in bare and name not in alike
    ]
    if alike:
        notes.append(f"meshes not found or broken either: stand-ins for {', '.join(alike)}")
    if replaced:
        notes.append(f"no collision geometry: stand-ins for {', '.join(replaced)}")
    return notes + [f"link {name}: {NO_GEOMETRY}" for name in geometry.lacking if name not in geometry.incomplete]


def _ground_height(geometry: LinkGeometry, ground: bool | float) -> tuple[float, str]:
    """Height of the ground [m], and a remark if it differs from that of the base's origin or the given one."""
    if not isinstance(ground, bool):
        return float(ground), ""
    fixed = [shape for shape in geometry.shapes if shape.placement.body == BASE and not shape.stand_in]
    lowest = min((float(list_corners_of(shape)[:, 2].min()), shape.link) for shape in fixed) if fixed else (0.0, "")
    if lowest[0] >= -GROUND_TOLERANCE_M:
        return 0.0, ""
    return lowest[0], (
        f"ground: assumed at z = {lowest[0]:.3f} m, the lowest point of link {lowest[1]}, which is fixed to the base"
    )


def _note_out_of_reach(solids: Solids, given: Sequence[Obstacle]) -> list[str]:
    """Notes on obstacles that the robot cannot come near to: their lengths may be in another unit."""
    reach = solids.find_reach()
    return [
        f"obstacle {one.name}: at least {one.distance_from_base():.3g} m from the base, and the robot reaches "
        f"{reach:.3g} m at most; its size and position are in m"
        for one in given
        if one.distance_from_base() > reach
    ]


def _fit_stand_ins(
    model: RobotModel, shapes: Sequence[Shape], obstacles: Sequence[Obstacle], configurations: Array, margin: float
) -> tuple[Shape, ...]:
    """Shapes with stand-ins made thinner if they cannot keep a margin from obstacles in any configuration."""
    movable = [i for i, shape in enumerate(shapes) if shape.stand_in and shape.placement.body != BASE]
    if not movable or not obstacles:
        return tuple(shapes)
    isolated = tuple(replace(shapes[i], link=f"stand-in {i}") for i in movable)
    names = [obstacle.name for obstacle in obstacles]
    pairs = [(shape.link, name) for shape in isolated for name in names]
    wanted = min(margin + FIT_MARGIN_M, MAX_EXACT_DISTANCE_M)
    best = (
        Solids(model, isolated, obstacles, tuple(pairs))
        .measure(configurations, wanted, slopes=False)
        .values.max(axis=1)
    )
    deficits = dict(zip(movable, wanted - best.reshape(len(movable), -1).min(axis=1), strict=True))
    fitted: list[Shape] = []
    for i, shape in enumerate(shapes):
        deficit = float(deficits.get(i, 0.0))
        fitted += thin_shape(shape, deficit, np.zeros(3)) if deficit > 0.0 else (shape,)
    return tuple(fitted)
