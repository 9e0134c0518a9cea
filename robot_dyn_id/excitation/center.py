# SPDX-License-Identifier: Apache-2.0
"""Center of a motion: the middle of the position limits, or a configuration with free space around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.errors import MotionError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.limits import FREE_REACH_M, FREE_REACH_RAD, MotionLimits

CANDIDATES = 300
"""Number of random configurations from which a center is chosen."""

COMPARED = 30
"""Number of free ones among them whose surroundings are compared."""

NEIGHBORS = 40
"""Number of random configurations around a center in which its surroundings are evaluated."""

NEAR_SHARE, WIDE_SHARE = 0.1, 0.5
"""Distance of the neighbors relative to the range of a motion: all near ones must be free, most wide ones should be."""

DIGITS = 2
"""Decimal places of a chosen position [rad or m]."""

NAMED_PAIRS = 3
"""Number of pairs that are named where no configuration is free."""


@dataclass(frozen=True)
class Load:
    """Static efforts of n joints and what they are limited to.

    Attributes:
        efforts: static efforts [N m or N] in configurations [rad or m], both of shape (n, N).
        usable: efforts that a motion may use [N m or N], shape (n,); infinite where they are not limited.
        units: unit of each joint's effort.
    """

    efforts: Callable[[Array], Array]
    usable: Array
    units: tuple[str, ...]

    def exceeded(self, q: Array) -> Mask:
        """Whether each joint is overloaded in configurations of shape (n, N), shape (n, N)."""
        return np.asarray(np.abs(self.efforts(q)) > self.usable[:, None])


@dataclass(frozen=True)
class Center:
    """Center of a motion.

    Attributes:
        position: configuration [rad or m], shape (n,).
        free: share of the configurations in its wide surroundings that are free; 0 if its near surroundings are not.
        obstruction: reason why the middle of the position limits is not the center; empty if it is.
        overloaded: whether efforts alone are the reason why no configuration has free surroundings.
    """

    position: Array
    free: float
    obstruction: str
    overloaded: bool = False

    def replace_middle(self, advice: str) -> tuple[float, ...]:
        """Position of a center that is not the middle of the position limits; empty if it is the middle.

        Raises:
            MotionError: no configuration has free space around it; the message ends with the advice.
        """
        if not self.free:
            kind = "that the usable efforts hold" if self.overloaded else "with free space around it"
            raise MotionError(
                f"no configuration {kind} was found for the center of the motion: {self.obstruction}; {advice}"
            )
        return tuple(self.position.tolist()) if self.obstruction else ()

    @property
    def remark(self) -> str:
        """Reason why the middle of the limits is not the center; the choice follows."""
        return f"the middle of the position limits is not free ({self.obstruction}); chosen instead"


def choose_center(
    limits: MotionLimits,
    clearance: Clearance,
    load: Load | None = None,
    moving: Mask | None = None,
) -> Center:
    """Choose the center of a motion: the middle of the position limits if it is free, or the freest configuration.

    A configuration is free if all distances are kept and no joint is overloaded by the weight. A center needs free
    configurations all around it. The same arguments yield the same center.

    Args:
        limits: motion limits of n joints.
        clearance: collision check.
        load: static efforts; None: they are not limited.
        moving: joints that move, shape (n,); None: all.

    Returns:
        The center; its `free` is 0 if no configuration has free surroundings.
    """
    middle, reach = limits.center_and_reach()
    widest = np.where(limits.prismatic, FREE_REACH_M, FREE_REACH_RAD)
    room = np.minimum(reach, widest) * (1.0 if moving is None else moving)
    rng = np.random.default_rng(0)
    around = room[:, None] * rng.uniform(-1.0, 1.0, (len(middle), NEIGHBORS))

    def is_free(q: Array) -> Mask:
        if not q.size:
            return np.zeros(0, dtype=bool)
        loaded = np.zeros(q.shape[1], dtype=bool) if load is None else load.exceeded(q).any(axis=0)
        return np.asarray((clearance.smallest(q)[0] > clearance.margin) & ~loaded)

    def shares(centers: Array) -> Array:
        """Share of free wide neighbors of each center, 0 for those with near neighbors that are not free."""

        def neighbors_free(chosen: Array, share: float) -> Mask:
            q = chosen[:, :, None] + share * around[:, None]
            return is_free(q.reshape(len(middle), chosen.shape[1] * NEIGHBORS)).reshape(-1, NEIGHBORS)

        values = np.zeros(centers.shape[1])
        safe = np.flatnonzero(is_free(centers))
        safe = safe[neighbors_free(centers[:, safe], NEAR_SHARE).all(axis=1)]
        values[safe] = neighbors_free(centers[:, safe], WIDE_SHARE).mean(axis=1)
        return values

    at_middle = float(shares(middle[:, None])[0])
    if at_middle > 0.0:
        return Center(middle, at_middle, "")
    unlimited = np.isinf(limits.lower) & np.isinf(limits.upper)
    spread = np.where(unlimited, 2.0 * widest, np.minimum(reach / 2.0, 2.0 * widest))
    drawn = middle[:, None] + spread[:, None] * rng.uniform(-1.0, 1.0, (len(middle), CANDIDATES))
    drawn = np.round(drawn, DIGITS)
    found = drawn[:, is_free(drawn)][:, :COMPARED]
    values = shares(found)
    if not values.any():
        overloaded = load is not None and choose_center(limits, clearance, None, moving).free > 0.0
        return Center(middle, 0.0, _obstruction(drawn, limits, None if overloaded else clearance, load), overloaded)
    best = int(np.argmax(values))
    position, free = found[:, best], float(values[best])
    plain = np.round(middle, DIGITS)
    for j in range(len(middle)):  # joints that do not matter stay in the middle
        changed = position.copy()
        changed[j] = plain[j]
        value = float(shares(changed[:, None])[0])
        if value >= free:
            position, free = changed, value
    nearby = np.column_stack([middle, middle[:, None] + NEAR_SHARE * around])
    return Center(position, free, _obstruction(nearby, limits, clearance, load))


def _obstruction(q: Array, limits: MotionLimits, clearance: Clearance | None, load: Load | None) -> str:
    """Pairs that are close in most of some configurations, shape (n, N), and the joints that are overloaded in some."""
    parts = []
    if clearance is not None:
        distances, pairs = clearance.smallest(q)
        close = Counter(clearance.pairs[pair] for pair in pairs[distances <= clearance.margin].tolist())
        near = f"are closer than {clearance.margin:g} m" if clearance.margin > 0.0 else "touch"
        parts = [f"{name} {near} in {count}" for name, count in close.most_common(NAMED_PAIRS)]
    if load is not None:
        exceeded, needed = load.exceeded(q), np.abs(load.efforts(q)).max(axis=1)
        parts += [
            f"the weight needs up to {needed[j]:.3g} {load.units[j]} of {limits.joint_names[j]}, above the usable "
            f"{load.usable[j]:.3g}, in {np.count_nonzero(exceeded[j])}"
            for j in np.flatnonzero(exceeded.any(axis=1))
        ]
    return f"{', '.join(parts)} of {q.shape[1]} configurations"
