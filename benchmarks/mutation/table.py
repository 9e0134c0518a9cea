# SPDX-License-Identifier: Apache-2.0
"""Jobs of the suite, their results, and the table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mutation.case import Answer, answer, pinned_settings
from mutation.catalog import FAULTS, clean_case
from mutation.clean import Bench
from robot_dyn_id.errors import RobotDynIdError

CLEAN = "clean"
"""Name of the recordings without a fault."""

GOAL_FOUND, GOAL_SILENT = 0.95, 0.98
"""Shares of faults of the upper two strengths that must be found, and of clean recordings without a warning."""


@dataclass(frozen=True)
class Job:
    """One case.

    Attributes:
        fault: key of `FAULTS`, or `CLEAN`.
        arm: name of the arm.
        strength: 0, 1 or 2.
        seed: seed of the arm and its recording.
        pinned: whether the model is pinned, see `pinned_settings`.
        whole: whether a model is identified even if the examination of the recordings already names the fault.
    """

    fault: str
    arm: str
    strength: int
    seed: int
    pinned: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Row:
    """Result of a case.

    Attributes:
        job: the case.
        answer: what the tool answered.
        size: size of the fault.
        seconds: CPU time of the tool.
        joints: joints of which a finding must name one, see `Case.joints`.
    """

    job: Job
    answer: Answer
    size: str
    seconds: float
    joints: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the fault is named; of a clean recording: whether something is, at `warning` or above."""
        if self.job.fault == CLEAN:
            return bool(self.answer.at_least("warning"))
        return self.answer.names(FAULTS[self.job.fault].codes, self.joints)

    def summary(self) -> dict[str, Any]:
        """The row for programs."""
        return {
            "job": asdict(self.job),
            "size": self.size,
            "found": self.found,
            "seconds": round(self.seconds, 2),
            "joints": self.joints,
            "answer": asdict(self.answer),
        }

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Row:
        """The row of a summary."""
        given = summary["answer"]
        answered = Answer(
            tuple((code, severity) for code, severity in given["findings"]),
            tuple(tuple(names) for names in given["joints"]),
            given["message"],
            given["nrmse"],
        )
        return cls(Job(**summary["job"]), answered, summary["size"], summary["seconds"], tuple(summary["joints"]))

    def line(self) -> str:
        """The row for a terminal."""
        job, clean = self.job, self.job.fault == CLEAN
        word = ("WARNED" if self.found else "silent") if clean else ("found" if self.found else "MISSED")
        codes = " ".join(sorted(self.answer.at_least("warning") if clean else self.answer.codes))
        case = f"{job.fault:34} {job.strength} {job.arm:15} {self.size:22}"
        return f"{word:6} {case} {self.seconds:5.1f} s {self.answer.nrmse:7.2%}  {codes}"


def run(job: Job) -> Row:
    """Make a case and give it to the tool."""
    rng = np.random.default_rng((sum(job.fault.encode()), sum(job.arm.encode()), job.seed))
    bench = Bench.draw(job.arm, job.seed)
    try:
        case = clean_case(bench) if job.fault == CLEAN else FAULTS[job.fault].apply(bench, job.strength, rng)
    except RobotDynIdError as error:  # the robot's description is refused before there is a case
        return Row(job, Answer(((error.code, "error"),), ((),), str(error)), "", 0.0)
    start = time.process_time()
    until = () if job.whole or job.fault == CLEAN else FAULTS[job.fault].codes
    given = answer(case, pinned_settings() if job.pinned else None, until)
    return Row(job, given, case.size, time.process_time() - start, case.joints)


def markdown(rows: Sequence[Row]) -> str:
    """Table of fault, expected code, share found at each strength, and false alarms."""
    lines = ["| fault | code | 2 x noise | 5 x | 20 x | otherwise |", "|---|---|---|---|---|---|"]
    upper: list[bool] = []
    for key, fault in FAULTS.items():
        ours = [row for row in rows if row.job.fault == key]
        if not ours:
            continue
        shares = []
        for strength in range(3):
            found = [row.found for row in ours if row.job.strength == strength]
            upper += found if strength else []
            shares.append(f"{sum(found)}/{len(found)}" if found else "")
        missed = Counter(code for row in ours if not row.found for code in row.answer.at_least("warning"))
        often = ", ".join(f"{code} {count}" for code, count in missed.most_common(3))
        codes = " or ".join(f"`{code}`" for code in fault.codes)
        lines.append(f"| {' | '.join([fault.name, codes, *shares, often])} |")
    lines.append("")
    if upper:
        lines.append(f"Found at 5 and 20 x: {_share(upper)}; goal {GOAL_FOUND:.0%}.")
    clean = [row for row in rows if row.job.fault == CLEAN]
    if clean:
        silent = _share([not row.found for row in clean])
        lines.append(f"Clean recordings without a warning: {silent}; goal {GOAL_SILENT:.0%}.")
        alarms = Counter(code for row in clean for code in row.answer.at_least("warning"))
        lines += ["", *(f"- `{code}`: {count}" for code, count in alarms.most_common())]
    return "\n".join(lines) + "\n"


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)} ({np.mean(flags):.1%})"
