# SPDX-License-Identifier: Apache-2.0
"""Chance that an effect is found where there is none, by the scatter over a few blocks of data."""

from __future__ import annotations

from scipy.special import stdtrit

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
