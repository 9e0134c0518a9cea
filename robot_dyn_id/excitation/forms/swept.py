# SPDX-License-Identifier: Apache-2.0
"""Motions that sweep from one frequency to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.forms.linear import LinearMotion
from robot_dyn_id.excitation.parametrization import Demand


@dataclass(frozen=True)
class SweptMotion(LinearMotion):
    """A motion with sweeps, which are blended in and out.

    Attributes:
        length: duration [s].
        first, last: frequencies at the ends of the sweep [Hz].
        blend: duration of each blend [s].
    """

    TIMES: ClassVar[tuple[str, ...]] = ("length", "blend")
    RATES: ClassVar[tuple[str, ...]] = ("first", "last")

    length: float
    first: float
    last: float
    blend: float

    @property
    def duration(self) -> float:
        """See `Trajectory`."""
        return self.length

    @property
    def fastest(self) -> float:
        """Period of the higher frequency, or twice the blend time if that is shorter [s]."""
        return min(1.0 / max(self.first, self.last), 2.0 * self.blend)


def read_frequencies(demand: Demand, default: tuple[float, float]) -> tuple[float, float]:
    """Frequencies at the ends of a sweep [Hz].

    Raises:
        UsageError: not exactly two frequencies.
    """
    given = demand.frequencies or default
    if len(given) != 2:
        raise UsageError(f"a sweep needs exactly two frequencies, the first and the last, not {list(given)}")
    return given[0], given[1]
