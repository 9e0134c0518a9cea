# SPDX-License-Identifier: Apache-2.0
"""The rule by which a hypothesis about a robot or its recordings is accepted.

Rigid bodies, friction that brakes and the weight of the prior cost nothing to be wrong: among them the least error in
blocks of time that the model was not fitted to decides. What is assumed beyond these and becomes a part of the model or
of the data (a delay, a small tilt of the base, a zero of an effort, a coupling, a spring, gains) must pay: with it the
whole model predicts such blocks better, by more than chance, and by more than `LEAST_GAIN`; what other faults can look
like (a delay of a single joint, exchanged references) by more than `MAIN_CAUSE_GAIN`. Each accepted hypothesis is
a part of the model that the next one is compared with, and a rejected one costs nothing. Faults that are only reported,
such as exchanged channels, are those of `diagnosis` and of actuators.

The gain is the geometric mean over the blocks: a drift or a contact causes most of the error of single blocks, and
differences of such errors scatter although a change helps everywhere. Chance is judged by Student's distribution of the
mean logarithm over the blocks, see `chance`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.chance import find_critical_ratio

LEAST_GAIN = 0.05
"""Least share of the squared error that a hypothesis removes; a smaller one hardly matters, whatever its certainty."""

MAIN_CAUSE_GAIN = 0.5
"""Share of the squared error that a hypothesis removes which must be the main cause of it: otherwise something that no
alternative has leaves most of the error, and may look like the hypothesis."""

SMALLEST_SHARE = 1e-9
"""Squared error of a block, as a share of the mean, below which it counts as this share: rounding has no gains."""


@dataclass(frozen=True)
class Tried:
    """One alternative that was compared with others.

    Attributes:
        step: what was chosen, such as `terms`, `coupling` or `prior_strength`.
        name: name of the alternative.
        loss: cross-validated error relative to the simplest model, usually with rotor inertia, a ratio; NaN where only
            the gain was compared.
        gain: share of a block's weighted squared error that it removes against the alternative before, in the geometric
            mean over the blocks; NaN for the first.
        deviation: standard error of the gain over the blocks.
        required: gain from which on it is accepted; NaN where the least loss decides.
        chosen: whether it is a part of the model.
    """

    step: str
    name: str
    loss: float
    gain: float = math.nan
    deviation: float = math.nan
    required: float = math.nan
    chosen: bool = False

    @property
    def pays(self) -> bool:
        """Whether the gain is as large as is required."""
        return self.gain > self.required

    def as_main_cause(self) -> Tried:
        """The same for a hypothesis that must be the main cause of the error; see `MAIN_CAUSE_GAIN`."""
        return replace(self, required=max(self.required, MAIN_CAUSE_GAIN))


def weigh(step: str, name: str, before: Array, after: Array, alternatives: int = 1, loss: float = math.nan) -> Tried:
    """Gain of an alternative, and what is required of it.

    Args:
        step: what is chosen.
        name: name of the alternative.
        before: squared error in each of K blocks without it, shape (K,).
        after: squared error with it, shape (K,).
        alternatives: number of alternatives that are compared at once.
        loss: see `Tried`.
    """
    smallest = SMALLEST_SHARE * float(before.mean()) or 1.0
    logarithms = np.log(np.maximum(before, smallest) / np.maximum(after, smallest))
    count = len(logarithms)
    left = math.exp(-float(logarithms.mean()))
    if count < 2:
        return Tried(step, name, loss, 1.0 - left, math.inf, math.inf)
    error = float(np.std(logarithms, ddof=1)) / math.sqrt(count)
    chance = find_critical_ratio(count, alternatives) * error
    return Tried(step, name, loss, 1.0 - left, left * error, max(LEAST_GAIN, -math.expm1(-chance)))


def weigh_joints(
    step: str, names: Sequence[str], before: Array, after: Array, judged: Mask | None = None, loss: float = math.nan
) -> list[Tried]:
    """Gains of an alternative for each joint, measured on its own errors.

    Args:
        step: what is chosen.
        names: names of the alternatives, one for each of n joints.
        before: squared errors without it, shape (K, n).
        after: those with it on all joints, shape (K, n).
        judged: joints that are alternatives, shape (n,); None: all.
        loss: see `Tried`.
    """
    places = range(len(names)) if judged is None else np.flatnonzero(judged).tolist()
    return [weigh(step, names[j], before[:, j], after[:, j], len(places), loss) for j in places]
