# SPDX-License-Identifier: Apache-2.0
"""Chance that an effect is found where there is none, by the scatter over a few blocks of data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from robot_dyn_id.arrays import Array

ERROR_RATE = 0.05
"""Probability that any of the alternatives of a comparison is accepted although there is no effect."""


def find_critical_ratio(blocks: float, alternatives: int) -> float:
    """Ratio of an effect to its standard error above which it is accepted.

    By Student's distribution, with as many alternatives as are compared at once (Bonferroni).

    Args:
        blocks: number of blocks, above 1, whose scatter gives the standard error; or that of equal parts which has it.
        alternatives: number of alternatives; an effect of either sign counts as two.
    """
    return float(stdtrit(blocks - 1, 1.0 - ERROR_RATE / alternatives))


def compute_jackknife_deviations(without: ArrayLike) -> Array:
    """Standard deviations of values by what leaving out each of several parts of the data changes (Tukey 1958).

    Args:
        without: values without each part, shape (parts, ...).
    """
    values = np.asarray(without)
    return np.asarray(np.sqrt((len(values) - 1) * np.var(values, axis=0)))
