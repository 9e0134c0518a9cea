# SPDX-License-Identifier: Apache-2.0
"""Selection of the pairs of objects that are checked for collisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.distances import Solids
from robot_dyn_id.excitation.collision.obstacles import GROUND
from robot_dyn_id.model.kinematics import BASE
from robot_dyn_id.model.robot import RobotModel

MAX_EXACT_DISTANCE_M = 0.1
"""Distance below which distances are exact by default [m]."""

RANDOM_CONFIGURATIONS = 300
"""Number of random configurations used to find pairs that always touch."""

CONSTANT_DISTANCE_M = 1e-6
"""Largest variation of a distance that does not depend on the configuration [m]."""


def list_candidate_pairs(model: RobotModel, links: dict[str, int], around: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of objects that move relative to each other and are not adjacent.

    Args:
        model: robot model.
        links: body index of each link with a shape.
        around: names of the obstacles.

    Yields:
        Names of two links, or of a link and an obstacle.
    """
    names = list(links)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            a, b = links[first], links[second]
            adjacent = (b != BASE and model.parent[b] == a) or (a != BASE and model.parent[a] == b)
            if a != b and not adjacent:
                yield first, second
    for first in names:
        if links[first] != BASE:
            yield from ((first, obstacle) for obstacle in around)


def sample_configurations(model: RobotModel) -> Array:
    """Neutral configuration and `RANDOM_CONFIGURATIONS` random ones within the limits, shape (n, N) [rad or m]."""
    limits = model.limits
    lower, upper = (np.clip(bound, -np.pi, np.pi) for bound in (limits.lower, limits.upper))
    inside = (limits.lower <= 0.0) & (limits.upper >= 0.0)
    neutral = np.where(inside, 0.0, (lower + upper) / 2.0)
    shares = np.random.default_rng(0).random((len(lower), RANDOM_CONFIGURATIONS))
    return np.column_stack([neutral, lower[:, None] + (upper - lower)[:, None] * shares])


@dataclass(frozen=True)
class Contacts:
    """Pairs that are treated specially.

    Attributes:
        touching: pairs whose shapes say nothing about the links, with the reason.
        constant: pairs whose distance does not depend on the configuration.
        thick: distance in the neutral configuration [m] of pairs with a stand-in that are closer than the margin there
            or always.
        near: pairs that are closer than the margin in every configuration, but do not touch in all, links of the URDF's
            shapes not in the neutral one: no motion keeps the margin, but motions can avoid contact.
    """

    touching: dict[tuple[str, str], str]
    constant: frozenset[tuple[str, str]]
    thick: dict[tuple[str, str], float]
    near: frozenset[tuple[str, str]]


def classify_contacts(
    solids: Solids, candidates: Sequence[tuple[str, str]], around: Sequence[str], configurations: Array, margin: float
) -> Contacts:
    """Classify pairs by their distances in sampled configurations.

    Args:
        solids: shapes of the robot and obstacles.
        candidates: pairs to be classified.
        around: names of the obstacles.
        configurations: neutral configuration followed by random ones [rad or m], shape (n, N).
        margin: minimum distance that motions keep [m].

    Raises:
        UsageError: a link is always inside an obstacle other than the ground; allowed for a stand-in with a constant
            depth, such as a link that rotates above a table.
    """
    within = max(MAX_EXACT_DISTANCE_M, margin)  # greater distances would be below the margin if they saturated before
    distances = solids.paired(candidates).measure(configurations, within, slopes=False).values
    stand_ins = {shape.link for shape in solids.shapes if shape.stand_in}
    touching: dict[tuple[str, str], str] = {}
    thick: dict[tuple[str, str], float] = {}
    constant: set[tuple[str, str]] = set()
    near: set[tuple[str, str]] = set()
    for pair, values in zip(candidates, distances, strict=True):
        always, same = bool((values <= 0.0).all()), bool(np.ptp(values) < CONSTANT_DISTANCE_M)
        links, approximate = pair[1] not in around, bool(stand_ins.intersection(pair))
        if always and not links and pair[1] != GROUND and not (pair[0] in stand_ins and same):
            raise UsageError(
                f"{pair[0]} is inside the obstacle {pair[1]} in every configuration: correct the obstacle, or "
                "allow the pair"
            )
        at_rest = links and bool(values[0] < margin if approximate and not same else values[0] <= 0.0)
        if always or at_rest:
            if links and approximate and not same:
                thick[pair] = float(values[0])
            else:
                touching[pair] = f"touch in {'every' if always else 'the neutral'} configuration"
        elif not same and bool((values < margin).all()):
            near.add(pair)
        elif values.max() < MAX_EXACT_DISTANCE_M and same:
            constant.add(pair)
    return Contacts(touching, frozenset(constant), thick, frozenset(near))
