# SPDX-License-Identifier: Apache-2.0
"""Change detection: candidate changes and detection thresholds.

A candidate is a part of the robot (a body at the flange, the friction of a joint) and the directions in which its
change moves the base parameters. The test statistic is the part of the latest residual that the best estimate of the
change explains; its threshold is learned from motion without changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms.laws import ARCTAN, DAHL, SIGN
from robot_dyn_id.errors import InputError
from robot_dyn_id.parameters import ParameterSet

PAYLOAD = "payload"

MOMENTS = 4
"""Number of payload parameters that are observable within a second: mass and first moments."""

WINDOWS = (0.2, 1.0)
"""Durations of the latest motion that are tested [s]: short for heavy payloads, long for light ones."""

BLOCK = 1.0
"""Duration of the blocks whose maximum statistic is taken [s]."""

CONFIDENT = 1.645
"""Standard errors added to a learned threshold (one-sided 95 %): 19 of 20 thresholds are exceeded no more often than
required (with 40 blocks: 92 of 100)."""


@dataclass(frozen=True)
class Part:
    """Part of the robot that can change.

    Attributes:
        name: `payload`, or the joint (or coupling) of the friction.
        symbols: symbols of its parameters, k.
        units: units of its parameters.
        directions: change of the base parameters per unit of each parameter, shape (p, k).
        shown: number of leading parameters that the detection estimates.
    """

    name: str
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    directions: Array
    shown: int

    @property
    def title(self) -> str:
        """Name for messages."""
        return self.name if self.name == PAYLOAD else f"friction of {self.name}"


SIGMAS = 4.0
"""Standard deviations from zero above which a change is significant; by chance for one of 30 parameters in 1 of 500."""


class Change(NamedTuple):
    """Changed part with the estimated change.

    Attributes:
        part: part that has changed.
        since: time of the detection [s].
        values: change of each parameter, shape (k,).
        standard_deviations: standard deviations of `values`, shape (k,).
    """

    part: Part
    since: float
    values: Array
    standard_deviations: Array

    @property
    def significant(self) -> bool:
        """Whether any parameter differs from zero by more than `SIGMAS` standard deviations."""
        return bool(np.any(np.abs(self.values) > SIGMAS * self.standard_deviations))

    def __str__(self) -> str:
        """Text with values and one standard deviation."""
        shown = list(zip(self.part.symbols, self.values, self.standard_deviations, self.part.units, strict=True))
        if self.part.name == PAYLOAD:
            _, mass, sigma, unit = shown[0]
            return f"{self.part.title} {mass:+.3g} +- {sigma:.2g} {unit}"
        values = ", ".join(f"{symbol} {value:+.3g} +- {sigma:.2g} {unit}" for symbol, value, sigma, unit in shown)
        return f"{self.part.title}: {values}"


def list_parts_of(parameters: ParameterSet, regressor: Regressor, body: str = "") -> tuple[Part, ...]:
    """List the parts that can change: a payload fixed to a body, and the terms of each joint.

    The standard parameters of a payload, in the frame of the body's joint, add to those of the body.

    Args:
        parameters: identified model.
        regressor: regressor of the model.
        body: name of the joint that moves the payload's body; empty: the last joint.

    Raises:
        InputError: no joint of this name.
    """
    names = parameters.robot.body_names
    if body and body not in names:
        raise InputError(f"payload body {body!r} is not moved by one of the joints {', '.join(names)}")
    first = 10 * (names.index(body) if body else len(names) - 1)
    load = slice(first, first + 10)
    parts = [_part(PAYLOAD, parameters, regressor, np.arange(load.start, load.stop), MOMENTS)]
    for joint in dict.fromkeys(parameters.terms.joints):
        columns = np.flatnonzero(np.array(parameters.terms.joints) == joint)
        parts.append(_friction_part(joint, parameters, regressor, columns))
    return tuple(parts)


DRY, LOAD = "dry friction", "load friction"
"""Names of sums of columns that the data of a second cannot distinguish."""


def _friction_part(joint: str, parameters: ParameterSet, regressor: Regressor, columns: Integers) -> Part:
    """Terms of one joint: one parameter per column, but only one for all dry laws, and one for those of the load.

    In a second of motion a change of one Dahl element looks like that of any other. A parameter of several columns
    changes them in the proportions of the identified values, or equally if these are zero.
    """
    first = 10 * len(parameters.robot.body_names)
    together: dict[str, list[int]] = {}
    for number in columns.tolist():
        column = regressor.term_columns[number]
        laws = [law for law in column.term.laws or () if law.symbol == column.index]
        shapes = {law.shape if law.fading == math.inf else "fading" for law in laws}
        dry = bool(shapes) and shapes <= {SIGN, DAHL, ARCTAN} and column.term.signal in ("", "load")
        key = (LOAD if column.term.signal else DRY) if dry else regressor.names[first + number]
        together.setdefault(key, []).append(number)
    symbols, units, directions = [], [], []
    for key, numbers in together.items():
        sizes = np.abs(parameters.terms.values[numbers])
        shares = sizes / sizes.sum() if sizes.sum() > 0.0 else np.full(len(numbers), 1.0 / len(numbers))
        alone = len(numbers) == 1
        symbols.append(regressor.names[first + numbers[0]] if alone else key)
        units.append(regressor.units[first + numbers[0]])
        places = first + np.array(numbers)
        directions.append(parameters.base.mapping[:, places] @ (np.ones(1) if alone else shares))
    return Part(joint, tuple(symbols), tuple(units), np.column_stack(directions), len(symbols))


def _part(name: str, parameters: ParameterSet, regressor: Regressor, columns: Integers, shown: int) -> Part:
    symbols = tuple(regressor.names[column] for column in columns)
    units = tuple(regressor.units[column] for column in columns)
    return Part(name, symbols, units, parameters.base.mapping[:, columns], shown)


class Watchers:
    """Test statistics from the latest rows, one for each part and window.

    The generalized likelihood ratio of a change at the start of a window (Willsky and Jones 1976), for a few windows
    (Lai 1995). A filter with exponential weights would include rows from before the change: one time constant after
    the change the ratio would reach only two fifths of that of the rows since the change.

    Attributes:
        freedom: number of parameters of each statistic, shape (parts times windows,).
    """

    def __init__(self, parts: tuple[Part, ...], limits: tuple[Array, ...], spacing: float) -> None:
        """Start without rows.

        Args:
            parts: parts that can change.
            limits: prior standard deviations of each part's parameters.
            spacing: minimum time between rows [s].
        """
        width = max(part.shown for part in parts)
        self.freedom = np.repeat([float(part.shown) for part in parts], len(WINDOWS))
        self._directions = np.zeros((len(parts), len(parts[0].directions), width))
        self._floor = np.tile(np.eye(width), (len(parts), 1, 1))  # unused parameters stay at zero
        for place, (part, limit) in enumerate(zip(parts, limits, strict=True)):
            self._directions[place, :, : part.shown] = part.directions[:, : part.shown]
            self._floor[place, range(part.shown), range(part.shown)] = limit[: part.shown] ** -2.0
        self._windows = np.array(WINDOWS)[:, None]
        self._ages = np.empty(math.ceil(1.01 * max(WINDOWS) / spacing))
        self._products = np.zeros((len(self._ages), len(parts), width, width + 1))
        self.restart()

    def restart(self) -> None:
        """Discard all rows."""
        self._ages[:] = math.inf
        self._next = 0

    def add(self, rows: Array, residual: Array, step: float) -> Array:
        """Add whitened rows, shape (n, p), and residuals, (n,), `step` [s] after the previous ones.

        Returns:
            Drop of the sum of squares by the best estimate of each statistic's part, shape (parts times windows,).
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


class ChangeThresholds:
    """Detection thresholds for a given interval between false alarms, learned from motion without changes.

    Maxima of blocks of time follow a Gumbel distribution if single values have exponential tails, as sums of squares
    have, regardless of their scale and correlation (Coles, An Introduction to Statistical Modeling of Extreme Values,
    2001, chapter 3); chi-square thresholds hold for white noise only. The tail of a sum of d squares is exponential
    except for a power, exp(-x / 2) (1 + x / 2)^(d / 2 - 1) to leading order. The power is removed first; over a few
    dozen blocks it would appear as a wider distribution.
    """

    def __init__(self, freedom: Array) -> None:
        """Start without statistics, given the degrees of freedom of each, shape (k,)."""
        self._power = freedom - 2.0
        self._largest = np.zeros(len(freedom))
        self._time = 0.0
        self._blocks: list[Array] = []

    def add(self, statistics: Array, step: float) -> None:
        """Add statistics that held for `step` [s]."""
        self._largest = np.maximum(self._largest, statistics)
        self._time += step
        if self._time >= BLOCK:
            self._blocks.append(self._largest)
            self._largest = np.zeros_like(self._largest)
            self._time = 0.0

    def fit(self, interval: float) -> Array:
        """Thresholds that are exceeded by chance at most once in `interval` [s], from maximum-likelihood Gumbel fits.

        Quantiles from a minute of motion are uncertain: the one-sided confidence limit of their sampling error (Kite's
        book of 1977 on frequency analysis in hydrology) is added. No threshold is lower than that of white noise, as
        joints that barely moved provide no data for one.
        """
        reduced = max(math.log(interval / BLOCK), 0.0)
        level = np.full(len(self._power), 2.0 * reduced)
        if self._blocks:
            values = np.array(self._blocks)
            values -= self._power * np.log1p(0.5 * values)
            mode, scale = fit_gumbel_law(values)
            scale *= len(values) / max(len(values) - 1.0, 1.0)  # correct the bias of the maximum-likelihood scale
            unsure = math.sqrt((1.109 + 0.514 * reduced + 0.608 * reduced**2) / len(values))
            level = np.maximum(level, mode + scale * (reduced + CONFIDENT * unsure))
        found = level
        for _ in range(50):  # a contraction: the logarithm changes slowly near the thresholds
            found = level + self._power * np.log1p(0.5 * found)
        return found


def fit_gumbel_law(values: Array) -> tuple[Array, Array]:
    """Mode and scale of the maximum-likelihood Gumbel distribution of each column, shape (blocks, k) -> (k,) each.

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
