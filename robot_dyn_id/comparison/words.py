# SPDX-License-Identifier: Apache-2.0
"""Differences of parameters in words: common factors of friction, rotor inertia and bodies, and shifts of offsets.

A group of parameters that differs by one factor within its uncertainty is one sentence ("friction +25 % (+-3) on all
joints"); one that does not differ is stated with the largest change that the data leave open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Regressor

LEVEL = 0.01
"""Probability that any group that does not differ is described as different."""

MOST_BODIES = 3
"""Largest number of bodies that are described by one factor each."""

BODY, OFFSET, ROTOR = "body", "offset", "rotor_inertia"
"""Kinds of columns that are not friction."""

SURE = 2.0
"""Standard deviations that an unchanged group is stated with."""

LARGEST_STATED = 0.5
"""Share up to which the remaining uncertainty of an unchanged group is stated."""


@dataclass(frozen=True)
class ParameterColumns:
    """Columns that the parameters are combinations of.

    Attributes:
        values: values of the standard and term parameters that changes refer to, SI, shape (c,).
        kinds: `body`, or the name of the term, c.
        places: joint of the term, or joint that moves the body, c.
        units: units, c.
    """

    values: Array
    kinds: tuple[str, ...]
    places: tuple[str, ...]
    units: tuple[str, ...]

    @classmethod
    def from_regressor(cls, regressor: Regressor, values: Array) -> ParameterColumns:
        """Columns of a regressor.

        Args:
            regressor: regressor with c columns.
            values: values of the parameters, shape (c,).
        """
        bodies = [name for name in regressor.model.body_names for _ in range(10)]
        terms = regressor.term_columns
        return cls(
            np.where(np.isfinite(values), values, 0.0),
            (*(BODY for _ in bodies), *(column.term.name for column in terms)),
            (*bodies, *(column.coordinate.name for column in terms)),
            tuple(regressor.units),
        )


@dataclass(frozen=True)
class _Factor:
    """One factor of a group: its change, standard deviation, and the chi-square without and with it."""

    change: float
    sigma: float
    total: float
    rest: float
    rank: int

    def percent(self) -> str:
        """The change with its standard deviation: `+25 % (+-3)`."""
        digits = 0 if self.sigma >= 0.005 else 1
        return f"{100.0 * self.change:+.{digits}f} % (+-{max(100.0 * self.sigma, 0.1):.{digits}f})"


def describe_changes(
    difference: Array, covariance: Array, mapping: Array, columns: ParameterColumns, names: Sequence[str]
) -> tuple[str, ...]:
    """Describe differences of base parameters, one sentence per group.

    Args:
        difference: differences, SI, shape (m,).
        covariance: covariance of the differences, shape (m, m).
        mapping: base parameters of the columns' parameters, shape (m, c).
        columns: the columns.
        names: names of the base parameters, m.
    """
    return tuple(_Describer(difference, covariance, mapping, columns, names).sentences())


class _Describer:
    def __init__(
        self, difference: Array, covariance: Array, mapping: Array, columns: ParameterColumns, names: Sequence[str]
    ) -> None:
        known = np.flatnonzero(np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0.0))
        self.difference, self.mapping = difference[known], mapping[known]
        self.covariance = covariance[np.ix_(known, known)]
        self.names = [names[i] for i in known.tolist()]
        self.columns = columns
        self.single = self._single_columns()
        self.level = LEVEL / 4.0

    def _single_columns(self) -> dict[int, int]:
        """Column of each row that is one column of a term alone."""
        found = {}
        for row, weights in enumerate(self.mapping):
            used = np.flatnonzero(np.abs(weights) > 1e-9 * np.abs(weights).max(initial=0.0))
            if len(used) == 1 and self.columns.kinds[used[0]] != BODY:
                found[row] = int(used[0])
        return found

    def sentences(self) -> Iterator[str]:
        """One sentence per group."""
        kinds = {row: self.columns.kinds[column] for row, column in self.single.items()}
        friction = [row for row, kind in kinds.items() if kind not in (OFFSET, ROTOR)]
        yield from self._factors(friction, "friction")
        yield from self._factors([row for row, kind in kinds.items() if kind == ROTOR], "rotor inertia")
        yield from self._bodies(np.array([row for row in range(len(self.names)) if row not in kinds], dtype=np.int64))
        yield from self._offsets([row for row, kind in kinds.items() if kind == OFFSET])

    def _direction(self, rows: Integers, chosen: Mask) -> Array:
        """Change of rows if all chosen columns change by their values."""
        return np.asarray(self.mapping[rows] @ np.where(chosen, self.columns.values, 0.0))

    def _fit(self, rows: Integers, directions: Array) -> tuple[Array, Array, float, float, int]:
        """Generalized least squares of changes along directions, shape (rows, k).

        Returns:
            Changes and their covariance, chi-square without and with them, and the rank of the covariance.
        """
        inverse = np.linalg.pinv(self.covariance[np.ix_(rows, rows)], hermitian=True, rcond=1e-13)
        inner = np.linalg.pinv(directions.T @ inverse @ directions, hermitian=True)
        away = self.difference[rows]
        changes = inner @ (directions.T @ inverse @ away)
        rest = away - directions @ changes
        return (
            np.asarray(changes),
            np.asarray(inner, dtype=np.float64),
            float(away @ inverse @ away),
            float(rest @ inverse @ rest),
            len(rows),
        )

    def _factor(self, rows: Integers, chosen: Mask) -> _Factor:
        changes, inner, total, rest, rank = self._fit(rows, self._direction(rows, chosen)[:, None])
        return _Factor(float(changes[0]), float(np.sqrt(max(inner[0, 0], 0.0))), total, rest, rank)

    def _factors(self, chosen: Sequence[int], word: str) -> Iterator[str]:
        """Sentences about friction or rotor inertia: one factor, one per term, or one per joint."""
        if not chosen:
            return
        rows = np.array(chosen, dtype=np.int64)
        columns = np.isin(np.arange(len(self.columns.values)), [self.single[row] for row in chosen])
        factor = self._factor(rows, columns)
        if chdtrc(factor.rank, factor.total) > self.level:
            yield f"{word} unchanged{_within([factor])}"
        elif factor.rank == 1 or chdtrc(factor.rank - 1, factor.rest) > self.level:
            yield f"{word} {factor.percent()} on {self._joints(rows)}"
        elif len(kinds := dict.fromkeys(self.columns.kinds[self.single[row]] for row in chosen)) > 1:
            for kind in kinds:
                own = [row for row in chosen if self.columns.kinds[self.single[row]] == kind]
                yield from self._factors(own, f"{kind.replace('_', ' ')} {word}")
        else:
            yield f"{word} {self._each(rows)}"

    def _each(self, rows: Integers) -> str:
        """Changes of the joints that differ, each alone."""
        sigma = np.sqrt(np.diag(self.covariance)[rows])
        listed = []
        for row, deviation in zip(rows.tolist(), sigma.tolist(), strict=True):
            if 2.0 * ndtr(-abs(self.difference[row]) / deviation) * len(rows) > self.level:
                continue
            column = self.single[row]
            value = self.mapping[row, column] * self.columns.values[column]
            place = self.columns.places[column]
            if abs(value) > max(SURE * deviation, abs(self.difference[row]) / 10.0):
                factor = _Factor(self.difference[row] / value, deviation / abs(value), 0.0, 0.0, 1)
                listed.append(f"{factor.percent()} on {place}")
            else:
                unit = self.columns.units[column]
                listed.append(f"{self.difference[row]:+.2g} {unit} (+-{deviation:.1g}) on {place}")
        return ", ".join(listed) or "differs by little on several joints"

    def _bodies(self, rows: Integers) -> Iterator[str]:
        """Sentences about bodies: each that changes as a whole, or the parameters that differ."""
        if not len(rows):
            return
        bodies = [
            place
            for place, kind in dict.fromkeys(zip(self.columns.places, self.columns.kinds, strict=True))
            if kind == BODY
        ]
        is_body = np.array([kind == BODY for kind in self.columns.kinds])
        directions = {name: self._direction(rows, is_body & (np.array(self.columns.places) == name)) for name in bodies}
        usable = {name: along for name, along in directions.items() if np.any(along)}
        total = self._fit(rows, np.zeros((len(rows), 1)))[2]
        alone = {name: self._fit(rows, along[:, None]) for name, along in usable.items()}
        factors = [
            _Factor(float(fit[0][0]), float(np.sqrt(max(fit[1][0, 0], 0.0))), 0.0, 0.0, 1) for fit in alone.values()
        ]
        if chdtrc(len(rows), total) > self.level:
            yield f"bodies unchanged{_within(factors)}"
            return
        chosen: list[str] = []
        fit = None
        while len(chosen) < min(MOST_BODIES, len(usable)):
            trials = {
                name: self._fit(rows, np.column_stack([usable[other] for other in (*chosen, name)]))
                for name in usable
                if name not in chosen
            }
            best = min(trials, key=lambda name: trials[name][3])
            chosen, fit = [*chosen, best], trials[best]
            if chdtrc(max(len(rows) - len(chosen), 1), fit[3]) > self.level:
                parts = [
                    f"body of {name} {_Factor(change, deviation, 0.0, 0.0, 1).percent()}"
                    for name, change, deviation in zip(
                        chosen, fit[0].tolist(), np.sqrt(np.diag(fit[1])).tolist(), strict=True
                    )
                ]
                yield f"{', '.join(parts)}, other bodies unchanged"
                return
        sigma = np.sqrt(np.diag(self.covariance)[rows])
        ratio = np.abs(self.difference[rows]) / sigma
        significant = [i for i in np.argsort(-ratio).tolist() if 2.0 * ndtr(-ratio[i]) * len(rows) < self.level]
        listed = ", ".join(
            f"{self.names[rows[i]]} {self.difference[rows[i]]:+.2g} (+-{sigma[i]:.1g})" for i in significant[:4]
        )
        yield f"bodies differ: {listed}" if listed else "bodies differ, none of their parameters significantly alone"

    def _offsets(self, rows: Sequence[int]) -> Iterator[str]:
        """Sentence about the offsets that differ."""
        if not rows:
            return
        places = np.array(rows, dtype=np.int64)
        listed = [
            f"{self.columns.places[self.single[row]]} {self.difference[row]:+.2g} "
            f"{self.columns.units[self.single[row]]} (+-{np.sqrt(self.covariance[row, row]):.1g})"
            for row in rows
            if 2.0 * ndtr(-abs(self.difference[row]) / np.sqrt(self.covariance[row, row])) * len(rows) < self.level
        ]
        if listed:
            yield f"offset of {', '.join(listed)}"
        elif chdtrc(len(rows), self._fit(places, np.zeros((len(rows), 1)))[2]) > self.level:
            yield "offsets unchanged"
        else:
            yield "offsets differ by little on several joints"

    def _joints(self, rows: Integers) -> str:
        """The joints of rows: `all joints` where all of the columns' joints are among them."""
        own = list(dict.fromkeys(self.columns.places[self.single[row]] for row in rows.tolist()))
        every = {place for place, kind in zip(self.columns.places, self.columns.kinds, strict=True) if kind != BODY}
        return "all joints" if len(own) == len(every) > 1 else ", ".join(own)


def _within(factors: Sequence[_Factor]) -> str:
    """The largest change that the data leave open; empty if that is more than `LARGEST_STATED`."""
    largest = max((abs(one.change) + SURE * one.sigma for one in factors), default=1.0)
    return f" within {max(100.0 * largest, 0.1):.2g} %" if largest <= LARGEST_STATED else ""
