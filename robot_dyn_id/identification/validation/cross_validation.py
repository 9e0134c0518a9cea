# SPDX-License-Identifier: Apache-2.0
"""Blocked cross-validation: held-out errors of a model that is identified from all data.

The complete identification is repeated without each block, so that every sample is predicted by a model that has not
used it (Stone 1974; blocks with guards, see `signals.blocks`). The errors are those of models that were identified from
less data than the one that is reported, hence slightly pessimistic.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from robot_dyn_id.cores import map_in_order
from robot_dyn_id.errors import ConvergenceError, InputError
from robot_dyn_id.estimators import Estimator
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.validation.evaluation import HeldOutData
from robot_dyn_id.identification.validation.metrics import Fold
from robot_dyn_id.progress import Progress, Stage
from robot_dyn_id.signals.trials import FilteredTrials

BLOCK_NOT_VALIDATED = Definition(
    "block_not_validated",
    Section.VALIDATION,
    "warning",
    "Cross-validation repeats the identification without each block of the recordings. Without some of them it "
    "failed, so that the held-out errors lack these blocks.",
    "record longer: every block should excite all parameters",
)

METHOD = "cross_validation"

FITS, EXPENSIVE_FITS = 5, 2
"""Number of blocks, hence of repeated estimations, for most estimators and for expensive ones."""


def count_blocks(estimator: Estimator) -> int:
    """Number of blocks of a cross-validation with an estimator; see `Estimator.expensive`."""
    return EXPENSIVE_FITS if getattr(estimator, "expensive", False) else FITS


def cross_validate(
    trials: FilteredTrials, fit: Callable[[FilteredTrials], IdentifiedModel], count: int, progress: Progress
) -> tuple[HeldOutData, tuple[Finding, ...]]:
    """Identify a model without each block in turn.

    Args:
        trials: all training data.
        fit: identifies a model from the valid rows of trials.
        count: number of blocks.
        progress: callback that receives every stage of the work.

    Returns:
        The held-out data, and a finding about blocks without which no model could be identified.

    Raises:
        InputError: data that are too short, or no block without which a model can be identified.
        ConvergenceError: the estimator did not converge without any block.
    """
    blocks = trials.blocks(count)
    folds: list[Fold] = []
    failures: list[ConvergenceError | InputError] = []

    def fit_without(number: int) -> IdentifiedModel | ConvergenceError | InputError:
        try:
            return fit(trials.without_block(number, blocks))
        except (ConvergenceError, InputError) as error:
            return error

    stage = Stage("cross-validating by blocks", 0, blocks.count)
    progress(stage)
    with closing(map_in_order(fit_without, range(blocks.count))) as results:
        for number, found in enumerate(results):
            progress(replace(stage, done=number + 1))
            if isinstance(found, ConvergenceError | InputError):
                failures.append(found)
            else:
                folds.append(Fold.from_model(trials.block_only(number, blocks), found))
    if not folds:
        raise failures[0]
    findings: tuple[Finding, ...] = ()
    if failures:
        message = (
            f"no model could be identified without {len(failures)} of {blocks.count} blocks of the recordings, so that "
            f"these are not validated on: {failures[0]}"
        )
        findings = (BLOCK_NOT_VALIDATED.found(message),)
    return HeldOutData(METHOD, trials, tuple(folds)), findings
