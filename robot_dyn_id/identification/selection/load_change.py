# SPDX-License-Identifier: Apache-2.0
"""A load at the last link that changes while a recording is made.

The load is four columns of the last body, mass and first moments, in the rows of a stretch of blocks only: its product
with all others follows from those of the blocks. Bodies and load are fitted together, as bodies alone take the mean of
two loads, and leave residuals that look like anything. It must be the main cause of the error of the model without it,
and explain more of it than other zeros of the efforts do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Offset
from robot_dyn_id.estimators.non_negative import RIDGE
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.residuals import LOAD_CHANGED, LOAD_COLUMNS
from robot_dyn_id.identification.selection.cross_validation import Candidate, CrossValidation
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.kernels.cholesky import CholeskyFactor
from robot_dyn_id.signals.blocks import Blocks


@dataclass(frozen=True)
class LoadChange:
    """Load that the last link has in a stretch of a recording, and not outside of it.

    Attributes:
        mass: its mass, roughly [kg]: the blocks at begin and end may have both loads. Negative if the load is outside
            of the stretch.
        start: begin of the stretch, in the clock of the recording [s].
        stop: its end [s].
        ends: whether the recording goes on without the load.
        uncertain: time by which begin and end may be wrong [s].
        gain: share of the squared error that it removes.
    """

    mass: float
    start: float
    stop: float
    ends: bool
    uncertain: float
    gain: float

    def report(self) -> Finding:
        """Finding, an error: the model has the mean of two loads."""
        until = f"to {self.stop:.0f} s" if self.ends else "s on"
        message = (
            f"the load at the last link changes while the recording is made, by about "
            f"{self.mass:+.2g} kg from about {self.start:.0f} {until}: with another load there, the model has "
            f"{self.gain:.0%} less of the squared error in blocks that it was not fitted to"
        )
        first, last = self.start - self.uncertain, self.stop + self.uncertain
        action = f"identify with one load: leave the other out, such as with `exclude: [[{first:.1f}, {last:.1f}]]`"
        return LOAD_CHANGED.found(message, severity="error", action=action)


def find_load_change(
    validation: CrossValidation, candidate: Candidate, regressor: Regressor, blocks: Blocks
) -> tuple[LoadChange | None, list[Tried]]:
    """Stretch of blocks with another load at the last link, if it pays, and the alternative that pays most.

    Only in a single recording: its blocks follow one another.

    Args:
        validation: the blocks.
        candidate: columns and strength of the model.
        regressor: robot and all candidate terms.
        blocks: times of the blocks.
    """
    count, pieces = len(validation.blocks), blocks.pieces
    if len({piece.trial for piece in pieces}) != 1:
        return None, []
    bodies = 10 * len(regressor.model.body_names)
    load = np.arange(bodies - 10, bodies - 10 + LOAD_COLUMNS)
    zeros = bodies + np.flatnonzero([isinstance(one.term, Offset) for one in regressor.term_columns])
    search = _Search(validation, candidate)
    best = max((search.weigh(range(first, count), load) for first in range(1, count)), key=_gain)
    first, others = best.stretch.start, set(range(1, count)) - {best.stretch.start}
    stretches = [range(min(first, other), max(first, other)) for other in others]  # between two changes
    best = max((best, *(search.weigh(stretch, load) for stretch in stretches)), key=_gain)
    start = best.stretch.start
    # zeros of the efforts that move look like a load on joints whose weight hardly varies
    moved = search.weigh(best.stretch, zeros)
    row = replace(best.row, chosen=best.row.pays and best.row.gain > moved.row.gain)
    if not row.chosen:
        return None, [row]
    starts = [min(piece.start for piece in pieces if piece.block == block) for block in range(count)]
    end = best.stretch.stop
    change = LoadChange(
        mass=float(np.mean(best.masses)),
        start=starts[start],
        stop=starts[end] if end < count else max(piece.stop for piece in pieces),
        ends=end < count,
        uncertain=0.5 * (starts[start] - starts[start - 1]),
        gain=row.gain,
    )
    return change, [row]


def _gain(one: _Weighed) -> float:
    return one.row.gain


@dataclass(frozen=True)
class _Weighed:
    """Stretch of blocks with a load.

    Attributes:
        stretch: the blocks.
        masses: mass of the load in the fits without each block, where any other block has it [kg].
        row: what was compared.
    """

    stretch: range
    masses: tuple[float, ...]
    row: Tried


class _Search:
    """Fits of a model and a load without each block, from those of the model alone.

    Parameters at their bound stay there, so that one factor for each block serves all stretches.
    """

    def __init__(self, validation: CrossValidation, candidate: Candidate) -> None:
        """Fit the model without each block.

        Args:
            validation: the blocks.
            candidate: columns and strength of the model.
        """
        self._validation = validation
        self._fits = [_Fit.without(validation, candidate, block) for block in validation.blocks]
        self._before = validation.errors(candidate)

    def weigh(self, stretch: range, columns: Integers) -> _Weighed:
        """Errors with other parameters in a stretch of blocks, compared with those without them.

        Args:
            stretch: the blocks.
            columns: columns of these parameters in the wide regressor, shape (k,), that of a mass first.
        """
        validation, errors, masses = self._validation, [], []
        for block, fit in zip(validation.blocks, self._fits, strict=True):
            laden = [number for number in stretch if number != block]
            parameters, other = fit.add(validation.products[laden].sum(axis=0), columns)
            if laden:
                masses.extend(other[:1].tolist())
            if block in stretch:
                parameters[columns] += other
            errors.append(validation.block_errors(parameters, block))
        name, alternatives = f"blocks {stretch.start + 1} to {stretch.stop}", 2 * len(validation.blocks)
        row = validation.weigh("load_change", name, self._before, np.array(errors), alternatives)
        return _Weighed(stretch, tuple(masses), row.as_main_cause())


@dataclass(frozen=True)
class _Fit:
    """Fit of the model without a block.

    Attributes:
        parameters: parameters of all columns, shape (c,).
        free: columns whose parameters are not at their bound.
        factor: factor of the normal equations of these.
    """

    parameters: Array
    free: Integers
    factor: CholeskyFactor

    @classmethod
    def without(cls, validation: CrossValidation, candidate: Candidate, block: int) -> _Fit:
        """Fit the model."""
        parameters, columns = validation.fit(candidate, block), candidate.columns
        free = columns[~validation.bounded[columns] | (parameters[columns] > 0.0)]
        normal = validation.gram(free, block)[:-1, :-1] + np.diag(candidate.strength * validation.pull.precision[free])
        diagonal = np.diag(normal)
        normal[np.diag_indices_from(normal)] = np.where(diagonal > 0.0, (1.0 + RIDGE) * diagonal, 1.0)
        return cls(parameters, free, CholeskyFactor.from_matrix(normal, overwrite=True))

    def add(self, laden: Array, columns: Integers) -> tuple[Array, Array]:
        """Parameters of all columns, shape (c,), and others, shape (k,), of some rows, that are fitted together.

        Args:
            laden: product of these weighted rows [W tau], shape (c + 1, c + 1).
            columns: columns of the others, shape (k,).
        """
        mixed, own = laden[self.free[:, None], columns], laden[columns[:, None], columns]
        moved = self.factor.solve(mixed)
        left = own - mixed.T @ moved
        load = np.linalg.lstsq(left, laden[columns, -1] - mixed.T @ self.parameters[self.free], rcond=RIDGE)[0]
        parameters = self.parameters.copy()
        parameters[self.free] -= moved @ load
        return parameters, load
