# SPDX-License-Identifier: Apache-2.0
"""What may have changed on a robot since it was identified, and how surprised one must be by its motion.

A change is a part of the robot (a body at the flange, the friction of a joint) and the directions of the base
parameters in which it moves them. What an estimate of it from the latest moments would explain of the residual is
compared with what it explained while nothing had changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet

PAYLOAD = "payload"

MOMENTS = 4
"""Parameters of a payload that show within a moment: mass and first moments."""

WINDOWS = (0.2, 1.0)
"""Latest motion that is looked at [s]: a heavy load shows at once, a light one must be looked at for longer."""

BLOCK = 1.0
"""Time over which a largest statistic is taken [s]."""

CONFIDENT = 1.645
"""Standard errors added to a learned threshold: 19 of 20 are passed no more often than told (40 blocks: 92 of 100)."""


@dataclass(frozen=True)
class Part:
    """Something that can change.

    Attributes:
        name: `payload`, or the joint (or coupling) whose friction it is.
        symbols: its parameters, k.
        units: theirs.
        directions: what a change of each does to the base parameters, shape (p, k).
        shown: how many of the first ones are watched.
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
    """Estimates from the rows of the latest moments, one for each part and window.

    The generalised likelihood ratio of a change that began as long ago as a window (Willsky and Jones 1976), for a few
    windows (Lai 1995). A filter that forgets exponentially would mix rows from before the change into it: at an age of
    its memory the ratio has grown to two fifths of that of the rows since the change.

    Attributes:
        freedom: how many parameters each estimates, shape (parts times windows,).
    """

    def __init__(self, parts: tuple[Part, ...], limits: tuple[Array, ...], spacing: float) -> None:
        """Make them.

        Args:
            parts: that can change.
            limits: standard deviations of the parts' parameters before anything is seen.
            spacing: least time between rows [s].
        """
        width = max(part.shown for part in parts)
        self.freedom = np.repeat([float(part.shown) for part in parts], len(WINDOWS))
        self._directions = np.zeros((len(parts), len(parts[0].directions), width))
        self._floor = np.tile(np.eye(width), (len(parts), 1, 1))  # what a part has not stays at zero
        for place, (part, limit) in enumerate(zip(parts, limits, strict=True)):
            self._directions[place, :, : part.shown] = part.directions[:, : part.shown]
            self._floor[place, range(part.shown), range(part.shown)] = limit[: part.shown] ** -2.0
        self._windows = np.array(WINDOWS)[:, None]
        self._ages = np.empty(math.ceil(1.01 * max(WINDOWS) / spacing))
        self._products = np.zeros((len(self._ages), len(parts), width, width + 1))
        self.restart()

    def restart(self) -> None:
        """Forget all."""
        self._ages[:], self._next = math.inf, 0

    def add(self, rows: Array, residual: Array, step: float) -> Array:
        """Take up whitened rows, shape (n, p), and residuals, (n,), `step` [s] after those before.

        Returns:
            By how much each part would explain the residual better than nothing: the drop of the sum of squares.
        """
        columns = rows @ self._directions  # (parts, n, width)
        both = np.concatenate([columns, np.broadcast_to(residual[:, None], (*columns.shape[:2], 1))], axis=2)
        self._ages += step
        self._ages[self._next] = 0.0
        self._products[self._next] = columns.transpose(0, 2, 1) @ both
        self._next = (self._next + 1) % len(self._ages)
        latest = (self._ages < 0.99 * self._windows).astype(np.float64)
        sums = np.tensordot(latest, self._products, 1)  # (windows, parts, width, width + 1)
        vector = sums[..., -1:]
        estimate = np.linalg.solve(sums[..., :-1] + self._floor, vector)
        return np.asarray(np.sum(vector * estimate, axis=(2, 3)).T.ravel())


class Thresholds:
    """Learns from undisturbed motion which statistic is reached by chance only once in a long time.

    Largest values of blocks of time follow Gumbel's law when single values have exponential tails, as sums of squares
    have, whatever their scale and however they follow one another (Coles, An Introduction to Statistical Modeling of
    Extreme Values, 2001, chapter 3): chi-square thresholds hold for white noise only. The tail of d squares is
    exponential but for a power, exp(-x / 2) (1 + x / 2)^(d / 2 - 1) to leading order, which is taken out before: over
    a few dozen blocks it would pass for a wider law.
    """

    def __init__(self, freedom: Array) -> None:
        """Begin, with the number of squares that each statistic is a sum of, shape (k,)."""
        self._power = freedom - 2.0
        self._largest, self._time = np.zeros(len(freedom)), 0.0
        self._blocks: list[Array] = []

    def add(self, statistics: Array, step: float) -> None:
        """Take up statistics that held for `step` [s]."""
        self._largest, self._time = np.maximum(self._largest, statistics), self._time + step
        if self._time >= BLOCK:
            self._blocks.append(self._largest)
            self._largest, self._time = np.zeros_like(self._largest), 0.0

    def fit(self, between: float) -> Array:
        """Thresholds that are passed by chance once in `between` [s] at most, by the most likely Gumbel law.

        A minute tells its quantiles roughly: the one-sided limit of their sampling error (Kite, Frequency and Risk
        Analyses in Hydrology, 1977) is added. No threshold is lower than that of white noise, whose law is known: what
        hardly moved has taught nothing.
        """
        reduced = max(math.log(between / BLOCK), 0.0)
        level = np.full(len(self._power), 2.0 * reduced)
        if self._blocks:
            values = np.array(self._blocks)
            values -= self._power * np.log1p(0.5 * values)
            mode, scale = gumbel_law(values)
            scale *= len(values) / max(len(values) - 1.0, 1.0)  # the most likely one is too small by so much
            unsure = math.sqrt((1.109 + 0.514 * reduced + 0.608 * reduced**2) / len(values))
            level = np.maximum(level, mode + scale * (reduced + CONFIDENT * unsure))
        found = level
        for _ in range(50):  # contracts: the logarithm changes slowly where thresholds are
            found = level + self._power * np.log1p(0.5 * found)
        return found


def gumbel_law(values: Array) -> tuple[Array, Array]:
    """Mode and scale of the most likely Gumbel law of each column, shape (blocks, k) -> (k,) each.

    The scale is the zero of an increasing function, scale - mean + mean weighted with exp(-value / scale).
    """
    away = values - values.min(axis=0)
    mean = away.mean(axis=0)
    scale = np.maximum(away.std(axis=0), 1e-9) * math.sqrt(6.0) / math.pi
    for _ in range(20):
        weights = np.exp(-away / scale)
        weights /= weights.sum(axis=0)
        weighted = np.sum(weights * away, axis=0)
        variance = np.sum(weights * (away - weighted) ** 2, axis=0)
        change = (scale - mean + weighted) / (1.0 + variance / scale**2)
        scale = np.maximum(scale - change, 0.1 * scale)
    return values.min(axis=0) - scale * np.log(np.mean(np.exp(-away / scale), axis=0)), scale
