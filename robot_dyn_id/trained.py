"""The motion that a model was trained on, and how far another one leads away from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.problem import Smooth
from robot_dyn_id.regressor import Integers, Layout, Motion, Regressor


@dataclass(frozen=True)
class Ranges:
    """Motion that was seen: positions, speeds and accelerations of each joint, shape (n,) each."""

    q_min: Array
    q_max: Array
    dq_max: Array
    ddq_max: Array

    @staticmethod
    def of(walk: Iterable[Smooth]) -> Ranges:
        """The ranges of the samples that are used.

        Raises:
            InputError: there is none.
        """
        ranges: Ranges | None = None
        for piece in walk:
            if piece.own.any():
                motion = piece.motion.take(piece.own)
                speed, acceleration = np.abs(motion.dq).max(axis=1), np.abs(motion.ddq).max(axis=1)
                here = Ranges(motion.q.min(axis=1), motion.q.max(axis=1), speed, acceleration)
                ranges = here if ranges is None else ranges._with(here)
        if ranges is None:
            raise InputError("no sample is left between the ends of the recordings: record longer")
        return ranges

    def _with(self, other: Ranges) -> Ranges:
        return Ranges(
            np.minimum(self.q_min, other.q_min),
            np.maximum(self.q_max, other.q_max),
            np.maximum(self.dq_max, other.dq_max),
            np.maximum(self.ddq_max, other.ddq_max),
        )


FAR = 0.5
"""Share of the trained range, speed or acceleration beyond which a sample is far outside. A motion split in time always
leaves its range a little: by a tenth in up to a tenth of the samples, and the model is as good there as elsewhere."""

QUANTITIES = ("position", "speed", "acceleration")


def outside(motion: Motion, trained: Ranges) -> Array:
    """Number of samples of each joint far outside its positions, speeds, accelerations, or any, shape (4, n)."""
    margin = FAR * np.maximum(trained.q_max - trained.q_min, 1e-3)[:, None]
    place = (motion.q < trained.q_min[:, None] - margin) | (motion.q > trained.q_max[:, None] + margin)
    speed = np.abs(motion.dq) > (1 + FAR) * trained.dq_max[:, None] + 1e-3
    acceleration = np.abs(motion.ddq) > (1 + FAR) * trained.ddq_max[:, None] + 1e-2
    return np.asarray(np.sum([place, speed, acceleration, place | speed | acceleration], axis=2))


def uncertainty(regressor: Regressor, columns: Integers, covariance: Array, motion: Motion) -> Array:
    """Standard deviation of predicted torques that errors of the parameters cause, (w C w')^1/2, shape (n, N)."""
    layout = Layout.of(regressor, columns)
    packed = np.empty((layout.starts[-1], len(motion)))
    regressor.fill(motion, layout.slots, packed)
    variances = []
    for joint, support in enumerate(layout.supports):
        rows = layout.block(packed, joint)[:-1]
        variances.append(np.einsum("in,in->n", rows, covariance[np.ix_(support, support)] @ rows))
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))
