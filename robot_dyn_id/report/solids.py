# SPDX-License-Identifier: Apache-2.0
"""Shapes as polygons, to be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation.collision.meshes import simplify
from robot_dyn_id.excitation.collision.obstacles import Box, Obstacle
from robot_dyn_id.excitation.collision.shapes import Shape
from robot_dyn_id.model.kinematics import BASE, Placement
from robot_dyn_id.report.turned import ROUND, Polygons, turn_profile

FACES = 6000
"""Triangles of all meshes together: what a canvas draws thirty times a second, and keeps a page small."""

LINKS = ((159, 179, 200), (188, 203, 219), (123, 147, 173))
"""Colors of the links, in turn."""

STAND_IN = (204, 93, 232)
"""Color of stand-ins, which are transparent too: they must not look like the robot."""

OBSTACLE = (240, 190, 140)


def draw_shapes(shapes: tuple[Shape, ...], obstacles: tuple[Obstacle, ...]) -> list[dict[str, Any]]:
    """Every shape as polygons, in its body's frame.

    Keys: `link`, `body`, `vertices` (flat), `faces`, `closed`, `color`, `opacity`; `stand_in` of links.
    """
    meshes = [shape.triangles for shape in shapes if shape.triangles is not None]
    total = sum(len(triangles) for triangles in meshes)
    drawn = []
    links = list(dict.fromkeys(shape.link for shape in shapes))
    for shape in shapes:
        color = LINKS[links.index(shape.link) % len(LINKS)]
        closed = shape.vertices is None or shape.triangles is None
        if shape.vertices is not None and shape.triangles is not None:
            limit = len(shape.triangles) if total <= FACES else max(60, FACES // len(meshes))
            vertices, triangles = simplify(shape.vertices, shape.triangles, limit)
            polygons: Polygons = vertices, triangles.tolist()
        else:
            polygons = _primitive(shape.kind, shape.size)
        look = (STAND_IN, closed, 0.35) if shape.stand_in else (color, closed)
        drawn.append(_drawn(shape.placement, polygons, *look) | {"link": shape.link, "stand_in": shape.stand_in})
    for obstacle in obstacles:
        if isinstance(obstacle, Box):
            # large faces are tiled: which of two is nearer is decided by their centers
            polygons = _box(tuple(obstacle.size), 6)
            at = Placement(BASE, obstacle.rotation, obstacle.position)
            drawn.append(_drawn(at, polygons, OBSTACLE, True, 0.75) | {"link": obstacle.name})
    return drawn


def _drawn(
    at: Placement, polygons: Polygons, color: tuple[int, int, int], closed: bool, opacity: float = 1.0
) -> dict[str, Any]:
    corners = polygons[0] @ at.rotation.T + at.position
    return {
        "body": at.body,
        "vertices": np.round(corners, 5).reshape(-1).tolist(),
        "faces": polygons[1],
        "closed": closed,
        "color": color,
        "opacity": opacity,
    }


def _primitive(kind: str, size: tuple[float, ...]) -> Polygons:
    if kind == "box":
        return _box(size, 1)
    if kind == "sphere":
        angles = np.linspace(-np.pi / 2, np.pi / 2, ROUND // 2 + 1)
        return turn_profile(size[0] * np.cos(angles), size[0] * np.sin(angles))
    radius, half = size[0], size[1] / 2.0
    if kind == "cylinder":
        heights = np.linspace(-half, half, 4)
        return turn_profile(np.full(4, radius), heights)
    angles = np.linspace(0.0, np.pi / 2, ROUND // 4 + 1)
    profile = np.concatenate([radius * np.cos(angles[::-1]), radius * np.cos(angles)])
    heights = np.concatenate([-half - radius * np.sin(angles[::-1]), half + radius * np.sin(angles)])
    return turn_profile(profile, heights)


def _box(size: tuple[float, ...], tiles: int) -> Polygons:
    """A box, each side in tiles x tiles faces."""
    corners: list[Array] = []
    faces: list[list[int]] = []
    steps = np.linspace(-0.5, 0.5, tiles + 1)
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v = (axis + 1) % 3, (axis + 2) % 3
            start = sum(len(part) for part in corners)
            grid = np.zeros((tiles + 1, tiles + 1, 3))
            grid[..., axis], grid[..., u], grid[..., v] = 0.5 * sign, steps[:, None], steps[None, :]
            corners.append((grid * np.array(size)).reshape(-1, 3))
            for i in range(tiles):
                for j in range(tiles):
                    a = start + i * (tiles + 1) + j
                    face = [a, a + tiles + 1, a + tiles + 2, a + 1]
                    faces.append(face if sign > 0 else face[::-1])
    return np.concatenate(corners), faces
