"""What may have changed on a robot since it was identified, and how surprised one must be by its motion.

A change is a part of the robot (a body at the flange, the friction of a joint) and the directions of the base
parameters in which it moves them. Each is watched by an information filter with a short memory; what its estimate would
explain of the residual is compared with what it explained while nothing had changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.regressor import Integers, Regressor

PAYLOAD = "payload"

MOMENTS = 4
"""Parameters of a payload that show within a moment: mass and first moments."""

MEMORIES = (0.1, 1.0)
"""Of the watching filters [s]: a heavy load shows at once, a light one must be looked at for longer."""

BLOCK = 1.0
"""Time over which a largest statistic is taken [s]."""

CONFIDENT = 1.645
"""Standard errors added to a learned threshold: 19 of 20 are passed no more often than told (30 blocks: 9 of 10)."""


@dataclass(frozen=True)
class Part:
    """Something that can change.

    Attributes:
        name: `payload`, or the joint (or coupling) whose friction it is.
        symbols: its parameters, k.
        units: theirs.
        directions: what a change of each does to the base parameters, shape (p, k).
        shown: how many of the first ones the watching filter looks for.
    """

    name: str
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    directions: Array
    shown: int

    @property
    def title(self) -> str:
        """What to call it."""
        return self.name if self.name == PAYLOAD else f"friction of {self.name}"


SIGMAS = 4.0
"""Standard deviations from zero at which a change is there: of some 30 parameters, by chance one in 500 times."""


class Change(NamedTuple):
    """A part that has changed, and by how much.

    `values` and `standard_deviations` have the shape (k,), `since` is the time of its detection [s].
    """

    part: Part
    since: float
    values: Array
    standard_deviations: Array

    @property
    def significant(self) -> bool:
        """Whether any parameter is different from zero by more than `SIGMAS` standard deviations."""
        return bool(np.any(np.abs(self.values) > SIGMAS * self.standard_deviations))

    def __str__(self) -> str:
        """In words, with one standard deviation."""
        shown = list(zip(self.part.symbols, self.values, self.standard_deviations, self.part.units, strict=True))
        if self.part.name == PAYLOAD:
            _, mass, sigma, unit = shown[0]
            return f"{self.part.title} {mass:+.3g} +- {sigma:.2g} {unit}"
        told = ", ".join(f"{symbol} {value:+.3g} +- {sigma:.2g} {unit}" for symbol, value, sigma, unit in shown)
        return f"{self.part.title}: {told}"


def parts_of(parameters: ParameterSet, regressor: Regressor, body: str = "") -> tuple[Part, ...]:
    """A payload fixed to a body, and the terms of each joint.

    A load that is fixed to a body changes that body's standard parameters by its own, in the frame of the body's joint.

    Args:
        parameters: the model.
        regressor: of it.
        body: name of the joint that moves the payload's body; empty: the last.

    Raises:
        InputError: there is no such body.
    """
    names = parameters.body_names
    if body and body not in names:
        raise InputError(f"payload body {body!r} is not moved by one of the joints {', '.join(names)}")
    first = 10 * (names.index(body) if body else len(names) - 1)
    load = slice(first, first + 10)
    parts = [_part(PAYLOAD, parameters, regressor, np.arange(load.start, load.stop), MOMENTS)]
    for joint in dict.fromkeys(parameters.term_joints):
        columns = 10 * len(names) + np.flatnonzero(np.array(parameters.term_joints) == joint)
        parts.append(_part(joint, parameters, regressor, columns, len(columns)))
    return tuple(parts)


def _part(name: str, parameters: ParameterSet, regressor: Regressor, columns: Integers, shown: int) -> Part:
    symbols = tuple(regressor.names[column] for column in columns)
    units = tuple(regressor.units[column] for column in columns)
    return Part(name, symbols, units, parameters.mapping[:, columns], shown)


class Watchers:
    """Information filters of short memory, one for each part and memory.

    Attributes:
        numbers: of the part that each watches.
    """

    def __init__(self, parts: tuple[Part, ...], limits: tuple[Array, ...]) -> None:
        """Make them; `limits` are standard deviations of the parts' parameters before anything is seen."""
        watched = [(number, memory) for number in range(len(parts)) for memory in MEMORIES]
        width = max(part.shown for part in parts)
        base = len(parts[0].directions)
        self.numbers = np.array([number for number, _ in watched])
        self._memory = np.array([memory for _, memory in watched])
        self._directions = np.zeros((len(watched), base, width))
        self._floor = np.tile(np.eye(width), (len(watched), 1, 1))  # what a part has not stays at zero
        for place, (number, _) in enumerate(watched):
            shown = parts[number].shown
            self._directions[place, :, :shown] = parts[number].directions[:, :shown]
            self._floor[place, range(shown), range(shown)] = limits[number][:shown] ** -2.0
        self.restart()

    def restart(self) -> None:
        """Forget all."""
        self._information, self._vector = np.zeros_like(self._floor), np.zeros((len(self._floor), len(self._floor[0])))

    def add(self, rows: Array, residual: Array, step: float) -> Array:
        """Take up whitened rows, shape (n, p), and residuals, (n,), `step` [s] after those before.

        Returns:
            By how much each part would explain the residual better than nothing: the drop of the sum of squares.
        """
        columns = rows @ self._directions  # (watchers, n, width)
        keep = np.exp(-step / self._memory)
        self._information = keep[:, None, None] * self._information + columns.transpose(0, 2, 1) @ columns
        self._vector = keep[:, None] * self._vector + residual @ columns
        estimate = np.linalg.solve(self._information + self._floor, self._vector[:, :, None])[:, :, 0]
        return np.asarray(np.sum(self._vector * estimate, axis=1))


class Thresholds:
    """Learns from undisturbed motion which statistic is reached by chance only once in a long time.

    Largest values of blocks of time follow Gumbel's law when single values have exponential tails, as sums of squares
    have, whatever their scale and however they follow one another (Coles, An Introduction to Statistical Modeling of
    Extreme Values, 2001, chapter 3): chi-square thresholds hold for white noise only.
    """

    def __init__(self, count: int) -> None:
        """Begin, for so many statistics."""
        self._largest, self._time = np.zeros(count), 0.0
        self._sums, self._blocks = np.zeros((2, count)), 0

    def add(self, statistics: Array, step: float) -> None:
        """Take up statistics that held for `step` [s]."""
        self._largest, self._time = np.maximum(self._largest, statistics), self._time + step
        if self._time >= BLOCK:
            self._sums += self._largest, self._largest**2
            self._blocks += 1
            self._largest, self._time = np.zeros_like(self._largest), 0.0

    def fit(self, between: float) -> Array:
        """Thresholds that are passed by chance once in `between` [s] at most, by the moments of Gumbel's law.

        A minute tells its quantiles roughly: the one-sided limit of their sampling error (Kite, Frequency and Risk
        Analyses in Hydrology, 1977) is added.
        """
        count = max(self._blocks, 2)
        mean = self._sums[0] / count
        deviation = np.sqrt(np.maximum(self._sums[1] / count - mean**2, 0.0) * count / (count - 1))
        factor = (math.log(between / BLOCK) - np.euler_gamma) * math.sqrt(6.0) / math.pi
        unsure = math.sqrt((1.0 + 1.1396 * factor + 1.1 * factor**2) / count)
        return np.asarray(mean + deviation * (factor + CONFIDENT * unsure))
