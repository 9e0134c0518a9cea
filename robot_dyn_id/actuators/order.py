# SPDX-License-Identifier: Apache-2.0
"""Order of the commanded positions: joints follow their own references, unless columns or names are exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.spread import PARTS
from robot_dyn_id.identification.selection.engine import weigh


def find_reference_order(motions: Sequence[CommandedMotion]) -> tuple[int, ...]:
    """Number of the reference that each of n joints follows: its own, unless another order explains the tracking.

    The order is that with the least distance of measured from commanded positions (assignment problem, Kuhn 1955). Each
    of its cycles counts where it is the main cause of the distance of its joints: drives that follow badly have large
    distances as well.

    Args:
        motions: motions of all joints.
    """
    q, reference = (np.concatenate([getattr(one, name) for one in motions]) for name in ("q", "reference"))
    parts = np.array_split(np.arange(len(q)), PARTS)
    # squared distance of each joint from each reference, by part of the time, shape (parts, n, n)
    squares = np.array([[((reference[part].T - row) ** 2).sum(axis=1) for row in q[part].T] for part in parts])
    _, best = linear_sum_assignment(squares.sum(axis=0))
    order = np.arange(len(best))
    count, group = connected_components(np.eye(len(best))[best], directed=False)
    cycles = [cycle for cycle in (np.flatnonzero(group == number) for number in range(count)) if len(cycle) > 1]
    for cycle in cycles:
        before, after = (squares[:, cycle, follows].sum(axis=1) for follows in (cycle, best[cycle]))
        found = weigh("order", "references in another order", before, after, len(cycles)).as_main_cause()
        if found.pays:
            order[cycle] = best[cycle]
    return tuple(order.tolist())
