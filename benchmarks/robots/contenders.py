# SPDX-License-Identifier: Apache-2.0
"""The contenders: each predicts the held-out recording of a robot from its training recordings."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dyn_id import Settings, identify, load_robot, open_recording, predict
from robot_dyn_id.errors import RobotDynIdError
from robots.least_squares import predict_by_least_squares
from robots.scoring import IncompleteError, Series, compare
from robots.sets import MODEL, RobotSet

NOT_RUN = "not run"
"""Remark about a contender that is not installed."""


@dataclass(frozen=True)
class Result:
    """Result of a contender.

    Attributes:
        error: norm of all errors over the norm of all efforts; NaN: no model.
        remark: verdict, or reason why there is no model.
    """

    error: float = float("nan")
    remark: str = ""

    @property
    def text(self) -> str:
        """The result in a cell of the table."""
        if np.isfinite(self.error):
            return f"{100 * self.error:.2f} %"
        return NOT_RUN if self.remark == NOT_RUN else f"fails ({self.remark})"


def run_plain(one: RobotSet, folder: Path) -> Result:
    """The plain command of this package: no options."""
    try:
        result = identify(
            load_robot(folder / MODEL), [open_recording(str(folder / f"{name}.npz")) for name in one.train], Settings()
        )
        predicted = predict(result.parameters, open_recording(str(folder / f"{one.held_out}.npz")))
    except RobotDynIdError as error:
        codes = " ".join(dict.fromkeys(finding.code for finding in getattr(error, "findings", ())))
        return Result(remark=f"refused: {codes or error.code}")
    measured = Series.read(one, folder)
    with np.load(folder / f"{one.held_out}.npz") as stored:
        names = list(one.joints) or [str(name) for name in stored["joint_names"]]
    columns = [predicted.joint_names.index(name) for name in names]
    gains, signs = result.parameters.effort.drive_gains, result.parameters.effort.drive_signs
    claimed = (gains * signs)[columns] if len(gains) and one.effort == "current" else np.zeros(len(columns))
    tau = np.asarray(predicted.tau)[:, columns] / np.where(claimed == 0.0, 1.0, claimed)
    return _judge(one, measured, Series(np.asarray(predicted.t), tau), result.evaluation.verdict.word)


def run_least_squares(one: RobotSet, folder: Path) -> Result:
    """Plain least squares."""
    try:
        predicted = predict_by_least_squares(one, folder)
    except (ValueError, np.linalg.LinAlgError) as error:
        return Result(remark=str(error)[:80])
    return _judge(one, Series.read(one, folder), predicted)


def run_figaroh(one: RobotSet, folder: Path, python: str) -> Result:
    """FIGAROH, in the Python environment that it is installed in."""
    if not python:
        return Result(remark=NOT_RUN)
    with tempfile.TemporaryDirectory(prefix="robots-") as scratch:
        out = Path(scratch) / "predicted.npz"
        words = [python, str(Path(__file__).with_name("figaroh_peer.py")), str(folder / MODEL), str(out)]
        words += [one.effort, str(one.rate), str(one.cutoff), str(one.edge), str(folder / f"{one.held_out}.npz")]
        words += [str(folder / f"{name}.npz") for name in one.train]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["?"]
            return Result(remark=lines[-1][:80])
        with np.load(out) as stored:
            names = [str(name) for name in stored["joint_names"]]
            columns = [names.index(name) for name in one.joints or names]
            predicted = Series(stored["t"], stored["tau"][:, columns])
    return _judge(one, Series.read(one, folder), predicted)


def _judge(one: RobotSet, measured: Series, predicted: Series, remark: str = "") -> Result:
    try:
        return Result(compare(one, measured, predicted), remark)
    except IncompleteError as error:
        return Result(remark=str(error))
