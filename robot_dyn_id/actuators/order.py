# SPDX-License-Identifier: Apache-2.0
"""Order of the commanded positions: joints follow their own references, unless columns or names are exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.spread import PARTS
from robot_dyn_id.identification.selection.engine import weigh


def find_reference_order(motions: Sequence[CommandedMotion]) -> tuple[int, ...]:
    """Number of the reference that each of n joints follows: its own, unless another order explains the tracking.

    The order is that with the least distance of measured from commanded positions (assignment problem, Kuhn 1955). It
    counts where it is the main cause of this distance: drives that follow badly have large distances as well.

    Args:
        motions: motions of all joints.
    """
    q, reference = (np.concatenate([getattr(one, name) for one in motions]) for name in ("q", "reference"))
    parts = np.array_split(np.arange(len(q)), PARTS)
    # squared distance of each joint from each reference, by part of the time
    squares = np.array([((q[part, :, None] - reference[part, None, :]) ** 2).sum(axis=0) for part in parts])
    joints, order = linear_sum_assignment(squares.sum(axis=0))
    own = tuple(joints.tolist())
    moved = joints[order != joints]
    if not len(moved):
        return own
    before, after = (squares[:, moved, follows].sum(axis=1) for follows in (moved, order[moved]))
    found = weigh("order", "references in another order", before, after).as_main_cause()
    return tuple(order.tolist()) if found.pays else own
