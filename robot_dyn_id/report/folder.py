# SPDX-License-Identifier: Apache-2.0
"""The folder of a run: file names, writing and reading of results."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.validation.explanation import ModelExplanation
from robot_dyn_id.parameters import PARAMETERS_FILE, ParameterSet
from robot_dyn_id.text.files import name_part_of, write_atomically

if TYPE_CHECKING:
    from robot_dyn_id.report.advice import RunFiles

PARAMETERS, REPORT, PAGE = PARAMETERS_FILE, "report.json", "report.html"

COMPARISON, COMPARISON_PAGE = "comparison.json", "comparison.html"

RESULTS = (PARAMETERS, REPORT, PAGE)
"""Files of a folder of results."""


def name_page_of_file(file: Path) -> Path:
    """Page of a result that is one file: `gains_report.html` of `gains.yaml`."""
    return file.with_name(f"{file.stem}_{PAGE}")


def make_output_folder(path: str | Path) -> Path:
    """The folder that results go to, made if needed.

    Raises:
        InputError: it cannot be made or written to.
    """
    folder = Path(path)
    check_output_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None
    return folder


def check_output_folder(folder: Path, names: Sequence[str] = ()) -> None:
    """Check that a folder can be written to, or made, without making it.

    Args:
        folder: the folder.
        names: names of the files that will be written into it.

    Raises:
        InputError: it, or what exists of the path to it, is not a folder that can be written to.
    """
    try:
        existing = folder
        while not _exists(existing):
            existing = existing.parent
        if not existing.is_dir():
            raise InputError(f"{existing}: is {'a file' if existing.is_file() else 'not a folder'}; give a folder")
        parts = (*folder.relative_to(existing).parts, *(name_part_of(Path(name)).name for name in names))
        if any(len(os.fsencode(part)) > os.pathconf(existing, "PC_NAME_MAX") for part in parts):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise _not_writable(folder, error) from None


def _exists(path: Path) -> bool:
    """Whether a path exists, be it a link that leads nowhere.

    Raises:
        OSError: that cannot be found out, such as for a name that is too long.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _not_writable(folder: Path, error: OSError) -> InputError:
    return InputError(f"{folder}: cannot write there ({error.strerror or os.strerror(error.errno or 0)})")


def write_results(
    folder: Path,
    summary: dict[str, Any],
    explanation: ModelExplanation,
    parameters: ParameterSet,
    files: RunFiles | None = None,
) -> None:
    """Write `report.json` and `report.html`; for the arguments see `write_html`."""
    from robot_dyn_id.report.html import write_html

    write_html(folder / PAGE, summary, explanation, parameters, files)
    write_atomically(folder / REPORT, json.dumps(summary, indent=1, allow_nan=False) + "\n")


def write_report(folder: Path, **more: Any) -> dict[str, Any]:
    """Add entries to a folder's `report.json`; returns the whole."""
    summary = {**json.loads((folder / REPORT).read_text(encoding="utf-8")), **more}
    write_atomically(folder / REPORT, json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return summary
