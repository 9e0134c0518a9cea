# SPDX-License-Identifier: Apache-2.0
"""Comparison of identified models: their parameters, torques and friction, and their errors on common recordings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robot_dyn_id.comparison.models import ModelComparison, compare_models
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import UsageError
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.progress import Progress, ignore_progress
from robot_dyn_id.report.comparison import format_comparison, render_comparison_page, summarize_comparison
from robot_dyn_id.report.folder import COMPARISON, COMPARISON_PAGE, make_output_folder
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.workflow.identification import validate


@dataclass(frozen=True)
class ComparisonResult:
    """Two or more identified models, each compared with the first.

    `print(result)` shows the tables of `robot-dyn-id compare`.

    Attributes:
        names: name of each model, r.
        models: the parameter sets, r.
        differences: differences of the second and later models from the first, r - 1.
        evaluations: errors of each model on the recordings, through the low-pass of the lowest cut-off frequency; empty
            without recordings.
    """

    names: tuple[str, ...]
    models: tuple[ParameterSet, ...]
    differences: tuple[ModelComparison, ...]
    evaluations: tuple[Evaluation, ...] = ()

    def __str__(self) -> str:
        """Errors of each model, and what differs from the first one."""
        return format_comparison(self.names, self.models, self.differences, self.evaluations)

    def summary(self) -> dict[str, Any]:
        """Content of `comparison.json`."""
        return summarize_comparison(self.names, self.models, self.differences, self.evaluations)

    def save(self, folder: str | Path) -> dict[str, Any]:
        """Write `comparison.json` and `comparison.html`, and replace those of an earlier comparison.

        Args:
            folder: the folder, created if needed.

        Returns:
            Content of `comparison.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        folder, summary = make_output_folder(folder), self.summary()
        page = render_comparison_page(self.names, self.models, self.differences, self.evaluations)
        write_atomically(folder / COMPARISON_PAGE, page)
        write_atomically(folder / COMPARISON, json.dumps(summary, indent=1, allow_nan=False) + "\n")
        return summary


def compare(
    models: Sequence[ParameterSet],
    names: Sequence[str] = (),
    recordings: Recording | Sequence[Recording] = (),
    settings: Settings | None = None,
    progress: Progress = ignore_progress,
) -> ComparisonResult:
    """Compare identified models with the first of them, as `robot-dyn-id compare` does.

    Example:
        ```python
        monday = rdi.load_parameters("run/parameters.yaml")
        print(rdi.compare([monday, result.parameters], names=["Monday", "Friday"]))
        ```

    Args:
        models: two or more parameter sets: of one robot on two days, of two robots, or with other terms.
        names: name of each model; by default `model 1` and so on.
        recordings: recordings that all models are evaluated on; they contain the joints of each.
        settings: gains, velocity source and thresholds of the evaluation.
        progress: callback that receives every stage of the work.

    Raises:
        UsageError: fewer than two models, or another number of names.
        InputError: a model that this version cannot read, or recordings that cannot be used.
        UnsafeDataError: a health check refuses the recordings.
    """
    if len(models) < 2:
        raise UsageError("one model was given: a comparison needs two or more")
    names = tuple(names) or tuple(f"model {number + 1}" for number in range(len(models)))
    if len(names) != len(models):
        raise UsageError(f"{len(names)} names for {len(models)} models: give one for each")
    differences = tuple(compare_models(models[0], other) for other in models[1:])
    evaluations: tuple[Evaluation, ...] = ()
    if not isinstance(recordings, Sequence) or recordings:
        cutoff = min(one.processing.cutoff_frequency for one in models)
        filtered = [replace(one, processing=replace(one.processing, cutoff_frequency=cutoff)) for one in models]
        evaluations = tuple(validate(one, recordings, settings, progress).evaluation for one in filtered)
    return ComparisonResult(names, tuple(models), differences, evaluations)
