# SPDX-License-Identifier: Apache-2.0
"""Results with colors, tables and wrapped lines, for terminals (rich, which respects NO_COLOR).

Nothing is cut off on a narrow terminal: cells and lines are wrapped, with their continuations under the last column.
Commands and errors are left to the terminal to wrap, so that they can be copied.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_dyn_id.findings import SIGNS, Finding
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.identification.validation.uses import UseJudgment
from robot_dyn_id.report.ranking import rank_findings
from robot_dyn_id.report.text import (
    MAX_PRINTED_FINDINGS,
    check_lines,
    count_more_findings,
    list_decisive_codes,
    list_joint_rows,
    model_lines,
    name_others,
    note_lines,
)
from robot_dyn_id.report.uses import HEADS, answer_rows, use_rows
from robot_dyn_id.workflow.results import IdentificationResult, ValidationResult

STYLES = {
    **{"good": "bold green", "suspect": "bold yellow", "bad": "bold red", "failed": "bold red"},
    **{"yes": "green", "limited": "yellow", "no": "red"},
    **{"error": "bold red", "warning": "yellow", "info": "cyan"},
    **{"ok": "green", "warn": "yellow", "problem": "bold red"},
}
"""Style of each word that is a judgment."""

JUDGMENT = re.compile(rf"(?:verdict: |  [!-] |fit for [a-z ]+: +|)({'|'.join(STYLES)})\b")
"""Beginning of a line with a judgment: a verdict, a finding, a use, or a check of `doctor`."""

FINDING = tuple(f"  {sign} " for sign in sorted(set(SIGNS.values())))
"""Beginnings of a line about a finding."""

COMMAND = re.compile(r"\s+\S*(?:robot-dyn-id|python\S* -m robot_dyn_id) ")
"""Beginning of a line with a command; it is not wrapped, so that it can be copied."""

LAST_COLUMN = 48
"""Rightmost place of a last column that continuations are indented to."""


def print_styled(value: object, stream: TextIO, verbose: bool = False) -> None:
    """Print a result on a terminal.

    Args:
        value: an identification, an evaluation, the result of one, or anything with a text.
        stream: the terminal.
        verbose: whether all findings are printed.
    """
    console = Console(file=stream, highlight=False, soft_wrap=False)
    most = sys.maxsize if verbose else MAX_PRINTED_FINDINGS
    if isinstance(value, IdentificationResult):
        value = value.identification
    elif isinstance(value, ValidationResult):
        value = value.evaluation
    if isinstance(value, Identification):
        console.print(*_evaluation(value.evaluation, most, model_lines(value)), sep="\n")
    elif isinstance(value, Evaluation):
        console.print(*_evaluation(value, most), sep="\n")
    else:
        for line in str(value).split("\n"):
            console.print(_line(line), soft_wrap=COMMAND.match(line) is not None)


def print_styled_error(text: str, stream: TextIO) -> None:
    """Print the line of an error on a terminal; it is not wrapped, so that it can be copied."""
    Console(file=stream, highlight=False).print(Text(text, "red"), soft_wrap=True)


def _evaluation(evaluation: Evaluation, most: int, model: Iterable[str] = ()) -> Iterator[RenderableType]:
    """Table of joints, lines about the model, table of uses, findings, and the verdict."""
    joints = _table("joint", "RMS", "error", "NRMSE", "URDF", "corr.", "unit")
    for column in joints.columns[1:6]:
        column.justify, column.no_wrap = "right", True
    for row in list_joint_rows(evaluation):
        joints.add_row(*row)
    yield joints
    yield Text("held-out effort; NRMSE of this model and of the URDF's own", "dim")
    yield from map(_line, (*check_lines(evaluation), *model))
    if judgments := evaluation.uses:
        yield ""
        yield from _uses(judgments)
        yield ""
    yield from _findings(evaluation.findings, list_decisive_codes(evaluation), most)
    yield ""
    yield Text.assemble("verdict: ", (evaluation.verdict.word, STYLES.get(evaluation.verdict.word, "")))


def _uses(judgments: Sequence[UseJudgment]) -> Iterator[RenderableType]:
    """Table of the uses by joint, table of the uses of the arm, and notes."""
    by_joint = _table("uses by joint", *("\n".join(HEADS[one.fit.use]) for one in judgments))
    for column in by_joint.columns[1:]:
        column.no_wrap = True
    for name, answers in answer_rows(judgments):
        by_joint.add_row(name, *(Text(answer, STYLES.get(answer, "")) for answer in answers))
    yield by_joint
    yield ""
    arm = _table("fit for", "", "figure", "worst joint: finding")
    arm.columns[2].no_wrap = True
    for use, answer, figures, joint in use_rows(judgments):
        arm.add_row(use, Text(answer, STYLES.get(answer, "")), figures, joint)
    yield arm
    for line in note_lines(judgments):
        yield Text(line, no_wrap=True, overflow="ignore") if line.startswith(" ") else Text(line)


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _findings(findings: Iterable[Finding], decisive: Mapping[str, str], most: int) -> Iterator[RenderableType]:
    """Severity, code and message of each finding, and what to do about it."""
    ranked = rank_findings(findings, decisive)
    for group in ranked[:most]:
        first = group[0]
        style = STYLES.get(first.severity, "")
        yield Text.assemble((first.severity, style), " ", (first.code, "bold"))
        yield Padding(Text(f"{first.message}{name_others(group)}"), (0, 0, 0, 4))
        if first.action:
            yield Padding(Text(f"-> {first.action}", "italic"), (0, 0, 0, 4))
    if ranked[most:]:
        yield Text(count_more_findings(ranked[most:]), "dim")


def _line(line: str) -> RenderableType:
    """A line of text with its judgments colored, its continuations indented to its last column."""
    text = Text(line)
    match = JUDGMENT.match(line)
    if match is not None:
        text.stylize(STYLES[match.group(1)], *match.span(1))
    if line.startswith(FINDING) and ": " in line:
        text.stylize("bold", line.index(" ", 4), line.index(": "))
    columns = [match.end() for match in re.finditer(r"\s{2,}", line) if match.end() <= LAST_COLUMN]
    indent = 4 if line.startswith(FINDING) else columns[-1] if columns else 0
    if not indent or COMMAND.match(line):
        return text
    head, rest = text.divide([indent])
    table = Table.grid(padding=0)
    table.add_column(no_wrap=True, width=indent)
    table.add_column(overflow="fold")
    table.add_row(head, rest)
    return table
