# SPDX-License-Identifier: Apache-2.0
"""Distances between the solids of a robot and obstacles, and their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.excitation.collision.obstacles import Box, HalfSpace, Obstacle
from robot_dyn_id.excitation.collision.shapes import Shape
from robot_dyn_id.model.kinematics import BASE, Kinematics, Placement, Poses
from robot_dyn_id.model.robot import RobotModel, make_configuration_of, parse_with_pinocchio, reduce_pinocchio

DISTANCE_TOLERANCE_M = 1e-9
"""Accuracy of distances of separate shapes [m]; penetration depths have coal's default of 1e-6."""

DIVERGENCE_MARGIN_M = 1e-4
"""Amount below its lower bound at which a distance counts as not converged [m]."""

PLANAR_MESH_THICKNESS_M = 1e-3
"""Thickness assumed for planar meshes [m]."""


@dataclass(frozen=True)
class Distances:
    """Distances of pairs at N configurations of n joints.

    Attributes:
        values: distances [m], shape (pairs, N).
        pair, sample: indices of the distances that do not saturate, shape (m,) each.
        slopes: derivatives of these distances with respect to q, shape (m, n).
    """

    values: Array
    pair: Integers
    sample: Integers
    slopes: Array

    @property
    def gradient(self) -> Array:
        """Derivatives of all distances with respect to q, shape (pairs, n, N)."""
        dense = np.zeros((len(self.values), self.slopes.shape[1], self.values.shape[1]))
        dense[self.pair, :, self.sample] = self.slopes
        return dense

    def pull_back(self, weights: Array) -> Array:
        """Gradient of sum(weights * values) with respect to q, shape (n, N); weights have shape (pairs, N)."""
        sums = np.zeros((self.values.shape[1], self.slopes.shape[1]))
        np.add.at(sums, self.sample, self.slopes * weights[self.pair, self.sample, None])
        return sums.T


@dataclass(frozen=True)
class Solids:
    """Convex solids and the pairs of them whose distances are computed.

    A pair consists of two names; a link may have several shapes, of which the closest ones determine the distance.

    Attributes:
        model: robot model.
        shapes: shapes of its links.
        obstacles: obstacles in the base frame.
        pairs: names of the objects of each pair.
        offsets: values added to the distance of each pair [m]; empty: 0.
    """

    model: RobotModel
    shapes: tuple[Shape, ...]
    obstacles: Sequence[Obstacle]
    pairs: tuple[tuple[str, str], ...] = ()
    offsets: tuple[float, ...] = ()

    def paired(self, pairs: Sequence[tuple[str, str]], offsets: Sequence[float] = ()) -> Solids:
        """Same solids with other pairs."""
        return Solids(self.model, self.shapes, self.obstacles, tuple(pairs), tuple(offsets))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each solid, shape (s,)."""
        return (*(shape.link for shape in self.shapes), *(obstacle.name for obstacle in self.obstacles))

    def measure(self, q: Array, within: float, slopes: bool = True) -> Distances:
        """Compute distances, exact below `within` and saturated there.

        Args:
            q: configurations [rad or m], shape (n, N).
            within: distance at which distances saturate [m].
            slopes: whether derivatives are computed.
        """
        import pinocchio

        poses = self._kinematics.poses(q)
        bounds = self._bounds(poses)
        first, _, group = self._table
        offset = np.array(self.offsets or [0.0] * len(self.pairs))[group]
        limit = within - offset  # saturation of the distances without offset
        near = bounds < limit
        model, geometry, data, results = self._engine
        values = np.repeat(limit[:, None], q.shape[1], axis=1)
        lines = np.zeros((len(first), q.shape[1] if slopes else 0, 6))
        full = (self.model.coupling @ q).T + self.model.offset
        configurations = make_configuration_of(model, self.model.body_names, full)
        for sample in np.flatnonzero(near.any(axis=1)):
            pinocchio.updateGeometryPlacements(model, data, geometry, results, configurations[sample])
            for k in np.flatnonzero(near[sample]).tolist():
                result = pinocchio.computeDistance(geometry, results, k)
                # a distance below the bound by the bounding spheres, or NaN, has not converged
                if not result.min_distance >= bounds[sample, k] - DIVERGENCE_MARGIN_M:
                    values[k, sample] = bounds[sample, k]
                elif result.min_distance < limit[k]:
                    values[k, sample] = result.min_distance
                    if slopes:
                        lines[k, sample, :3] = result.normal
                        lines[k, sample, 3:] = result.getNearestPoint1()
        return self._grouped(values + offset[:, None], lines, within, group, poses)

    def _grouped(self, values: Array, lines: Array, within: float, group: Integers, poses: Poses) -> Distances:
        """Distances of the closest two shapes of each pair, with derivatives from the closest points."""
        first, second, _ = self._table
        starts = np.searchsorted(group, np.arange(len(self.pairs)))
        joints, samples = len(self.model.joint_names), values.shape[1]
        if not len(starts):
            none = np.zeros(0, dtype=np.int64)
            return Distances(np.zeros((0, samples)), none, none, np.zeros((0, joints)))
        smallest = np.minimum.reduceat(values, starts, axis=0)
        pair, sample = np.nonzero(smallest < within) if lines.shape[1] else (starts[:0], starts[:0])
        ends = np.append(starts[1:], len(group))
        closest = np.array(
            [a + np.argmin(values[a:b, n]) for a, b, n in zip(starts[pair], ends[pair], sample, strict=True)],
            dtype=np.int64,
        )
        normal, point = lines[closest, sample, :3], lines[closest, sample, 3:]
        line = np.concatenate([normal, np.cross(point, normal)], axis=1)
        bodies = self._bodies
        slopes = poses.along(sample, bodies[second[closest]], line) - poses.along(sample, bodies[first[closest]], line)
        return Distances(smallest, pair, sample, slopes)

    @cached_property
    def _kinematics(self) -> Kinematics:
        return Kinematics(self.model)

    @cached_property
    def _table(self) -> tuple[Integers, Integers, Integers]:
        """First solid, second solid and pair index of all combinations of shapes, ordered by pair."""
        indices = {name: [i for i, other in enumerate(self.names) if other == name] for name in self.names}
        rows = [(i, j, k) for k, (a, b) in enumerate(self.pairs) for i in indices[a] for j in indices[b]]
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    @cached_property
    def _placements(self) -> tuple[Placement, ...]:
        fixed = [
            Placement(BASE, o.rotation, o.position) if isinstance(o, Box) else Placement(BASE, np.eye(3), np.zeros(3))
            for o in self.obstacles
        ]
        return (*(shape.placement for shape in self.shapes), *fixed)

    @cached_property
    def _bodies(self) -> Integers:
        return np.array([at.body for at in self._placements], dtype=np.int64)

    @cached_property
    def _spheres(self) -> tuple[Array, Array]:
        """Bounding spheres: centers in the body frame [m], shape (s, 3), and radii [m], shape (s,)."""
        spheres = [_bounding_sphere(solid) for solid in (*self.shapes, *self.obstacles)]
        centers = [at.rotation @ sphere[0] + at.position for at, sphere in zip(self._placements, spheres, strict=True)]
        return np.array(centers).reshape(-1, 3), np.array([sphere[1] for sphere in spheres])

    def find_reach(self) -> float:
        """Distance from the base's origin that no shape exceeds in any configuration [m]; infinite without limits."""
        model, (centers, radii) = self.model, self._spheres
        travel = np.maximum(np.abs(model.limits.lower), np.abs(model.limits.upper))[model.leader]
        lengths = np.linalg.norm(model.translation, axis=1) + np.where(model.prismatic, travel, 0.0)
        for body, parent in enumerate(model.parent.tolist()):  # parents come first
            lengths[body] += lengths[parent] if parent >= 0 else 0.0
        moving = [k for k, shape in enumerate(self.shapes) if shape.placement.body != BASE]
        ends = lengths[self._bodies[moving]] + np.linalg.norm(centers[moving], axis=1) + radii[moving]
        return float(ends.max(initial=0.0))

    def _bounds(self, poses: Poses) -> Array:
        """Lower bounds of the distances [m], shape (N, rows of the table)."""
        first, second, _ = self._table
        centers, radii = self._spheres
        points = poses.points(self._bodies, centers)
        gaps = points[:, second] - points[:, first]
        bounds = np.sqrt(np.einsum("nmi,nmi->nm", gaps, gaps)) - radii[second] - radii[first]
        for k, obstacle in enumerate(self.obstacles, start=len(self.shapes)):
            if isinstance(obstacle, HalfSpace):
                rows = np.flatnonzero(second == k)  # obstacles are always the second
                bounds[:, rows] = points[:, first[rows]] @ obstacle.normal - obstacle.height - radii[first[rows]]
        return np.asarray(bounds)

    @cached_property
    def _engine(self) -> tuple[Any, Any, Any, Any]:
        """Model and geometry of Pinocchio with their data."""
        import coal
        import pinocchio

        full = parse_with_pinocchio(self.model.urdf, "robot description", self.model.gravity)
        model = reduce_pinocchio(full, self.model.body_names, self.model.held)
        geometry = pinocchio.GeometryModel()
        solids = (*self.shapes, *self.obstacles)
        for i, (solid, at) in enumerate(zip(solids, self._placements, strict=True)):
            placement = pinocchio.SE3(at.rotation, at.position)
            geometry.addGeometryObject(
                pinocchio.GeometryObject(f"solid {i}", at.body + 1, placement, _coal_shape(solid))
            )
        for i, j, _ in zip(*self._table, strict=True):
            geometry.addCollisionPair(pinocchio.CollisionPair(int(i), int(j)))
        results = geometry.createData()
        request = (
            coal.DistanceRequest()
        )  # Pinocchio's default is warm-started, so that results would depend on the history
        request.gjk_tolerance = DISTANCE_TOLERANCE_M
        for k in range(len(results.distanceRequests)):
            results.distanceRequests[k] = request
        return model, geometry, model.createData(), results


def _bounding_sphere(solid: Shape | Obstacle) -> tuple[Array, float]:
    """Center in the solid's frame and radius of its bounding sphere [m]; zero for a half space."""
    origin = np.zeros(3)
    if isinstance(solid, HalfSpace):
        return origin, 0.0
    if isinstance(solid, Box):
        return origin, float(np.linalg.norm(solid.size)) / 2.0
    if solid.vertices is not None:
        center = (solid.vertices.min(axis=0) + solid.vertices.max(axis=0)) / 2.0
        return center, float(np.linalg.norm(solid.vertices - center, axis=1).max())
    size = solid.size
    radii = {
        "box": lambda: float(np.linalg.norm(size)) / 2.0,
        "cylinder": lambda: float(np.hypot(size[0], size[1] / 2.0)),
        "capsule": lambda: size[0] + size[1] / 2.0,
        "sphere": lambda: size[0],
    }
    return origin, radii[solid.kind]()


def _coal_shape(solid: Shape | Obstacle) -> Any:
    import coal

    if isinstance(solid, HalfSpace):
        return coal.Halfspace(solid.normal, solid.height)
    if isinstance(solid, Box):
        return coal.Box(*solid.size)
    if solid.vertices is not None:
        return _hull(solid.vertices)
    kinds = {"box": coal.Box, "cylinder": coal.Cylinder, "capsule": coal.Capsule, "sphere": coal.Sphere}
    return kinds[solid.kind](*solid.size)


def _hull(vertices: Array) -> Any:
    """Convex hull of points; points in a plane are made `PLANAR_MESH_THICKNESS_M` thick."""
    import coal
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = vertices[ConvexHull(vertices).vertices]
    except (QhullError, ValueError):  # coal would abort the process
        corners = (
            vertices[:, None] + PLANAR_MESH_THICKNESS_M / 2.0 * (np.mgrid[-1:3:2, -1:3:2, -1:3:2].reshape(3, 8).T)
        ).reshape(-1, 3)
    mesh = coal.BVHModelOBB()
    mesh.beginModel(0, len(corners))
    mesh.addVertices(corners)
    mesh.endModel()
    mesh.buildConvexHull(True, "Qt")
    return mesh.convex
