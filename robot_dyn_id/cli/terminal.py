# SPDX-License-Identifier: Apache-2.0
"""Terminal of a command: progress and notes on standard error, results on standard output.

On a terminal a command that takes longer than a second shows a progress bar, and results have colors (rich). Elsewhere
results are plain text, and stages are status lines, at most one every few seconds. rich is imported when it draws.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from robot_dyn_id.cores import Companion, fork_lock
from robot_dyn_id.progress import Stage

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUIET_START_S = 1.0
"""Time without any report: most commands end earlier."""

LINE_PERIOD_S = 3.0
"""Least time between two status lines where standard error is not a terminal."""

UNCHANGED_PERIOD_S = 20.0
"""Time after which an unchanged stage is reported again where standard error is not a terminal."""

REFRESH_PERIOD_S = 0.125
"""Time between two drawings of the progress bar."""

MIN_FRACTION = 0.02
"""Fraction of a stage from which on its remaining time is estimated."""


def can_draw_on(stream: TextIO) -> bool:
    """Whether colors and tables are drawn on a stream: a terminal that can, or FORCE_COLOR; never without rich."""
    if not _can_draw():
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return _is_terminal(stream)


def _can_draw() -> bool:
    """Whether rich is there: errors, and the command `doctor`, must be printed without it as well."""
    return importlib.util.find_spec("rich") is not None


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    except ValueError:  # closed
        return False


@dataclass
class StageTime:
    """Time of a stage: its name, and when it began [s]."""

    text: str
    begin: float


@dataclass
class Terminal:
    """Progress of one command.

    Attributes:
        name: name of the command.
        quiet: whether only errors are printed.
        verbose: whether every stage is printed as it begins, and the times of all at the end.
        stages: stages so far.
    """

    name: str = "command"
    quiet: bool = False
    verbose: bool = False
    stages: list[StageTime] = field(default_factory=list)
    _begin: float = field(default_factory=time.monotonic)
    _stage: Stage | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: Companion | None = None

    def report(self, stage: Stage) -> None:
        """Take over a stage; another thread shows it."""
        changed = self._stage is None or stage.text != self._stage.text
        self._stage = stage
        if changed:
            self.stages.append(StageTime(stage.text, time.monotonic()))
            if self.verbose:
                self._verbose_line(str(stage))
        if self._thread is None:
            self.watch()

    def watch(self) -> None:
        """Show progress from now on, until `close`."""
        if self.quiet or self._thread is not None:
            return
        self._ended.clear()
        show = self._draw_bar if _can_draw() and _is_terminal(sys.stderr) and not self.verbose else self._print_lines
        self._thread = Companion(target=show, name="progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Remove the progress bar; what is printed next is not disturbed by it."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()

    def note(self, text: str) -> None:
        """Print a line on standard error."""
        if self.quiet:
            return
        self.close()
        if can_draw_on(sys.stderr):
            from robot_dyn_id.cli.styled import print_styled

            print_styled(text, sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def show(self, value: object) -> None:
        """Print a result, or a line of one, on standard output."""
        self.close()
        if self.quiet:
            return
        if can_draw_on(sys.stdout):
            from robot_dyn_id.cli.styled import print_styled

            print_styled(value, sys.stdout, self.verbose)
        else:
            print(value)
            if self.verbose:
                for line in list_further_findings(value):
                    print(line)

    def print_times(self) -> None:
        """Print the time of every stage, and the resources of the command, with `verbose`."""
        if not self.verbose:
            return
        now = time.monotonic()
        ends = [stage.begin for stage in self.stages] + [now]
        seconds: dict[str, float] = {}
        for stage, end in zip(self.stages, ends[1:], strict=True):
            seconds[stage.text] = seconds.get(stage.text, 0.0) + end - stage.begin
        for text, value in seconds.items():
            print(f"{value:9.2f} s  {text}", file=sys.stderr)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(
            f"{now - self._begin:9.2f} s  whole command; CPU {used.ru_utime + used.ru_stime:.2f} s, largest memory "
            f"{used.ru_maxrss / 1024.0:.0f} MiB",
            file=sys.stderr,
        )

    def _verbose_line(self, text: str) -> None:
        print(f"[{time.monotonic() - self._begin:7.2f} s] {text}", file=sys.stderr, flush=True)

    def _print_lines(self) -> None:
        """Print status lines until `close`: a stage that is new, or that has lasted long."""
        self._ended.wait(QUIET_START_S)
        printed, begun, when = "", "", 0.0
        while not self._ended.wait(REFRESH_PERIOD_S):
            with fork_lock:
                now, stage = time.monotonic(), self._stage
                text = f"running {self.name}" if stage is None else str(stage)
                wait = LINE_PERIOD_S if stage is not None and text != printed else UNCHANGED_PERIOD_S
                if self.verbose and stage is not None and stage.total is None and not stage.detail:
                    wait = UNCHANGED_PERIOD_S  # it was printed as it began
                if now - max(when, self._begin if stage is None else when) < wait:
                    continue
                again = stage is None or stage.text == begun
                elapsed = f" ({now - self._since():.0f} s)" if again else ""
                if self.verbose:
                    self._verbose_line(f"{text}{elapsed}")
                else:
                    print(f"{text}{elapsed}", file=sys.stderr, flush=True)
                printed, begun, when = text, "" if stage is None else stage.text, now

    def _since(self) -> float:
        """When the present stage began [s]."""
        return self.stages[-1].begin if self.stages else self._begin

    def _draw_bar(self) -> None:
        """Draw a progress bar until `close`."""
        if self._ended.wait(QUIET_START_S):
            return
        with fork_lock:
            bar, task = _progress_bar(self.name)
            bar.start()
        ended = False
        while not ended:
            with fork_lock:
                stage = self._stage
                fraction = None if stage is None else stage.fraction
                elapsed = time.monotonic() - self._since()
                bar.update(
                    task,
                    description=self.name if stage is None else stage.text,
                    total=None if fraction is None else 1.0,
                    completed=fraction or 0.0,
                    times=_times(elapsed, fraction),
                    detail="" if stage is None else stage.detail,
                )
                bar.refresh()
            ended = self._ended.wait(REFRESH_PERIOD_S)
        with fork_lock:
            bar.stop()


def print_error(text: str) -> None:
    """Print the line of an error on standard error."""
    if can_draw_on(sys.stderr):
        from robot_dyn_id.cli.styled import print_styled_error

        print_styled_error(text, sys.stderr)
    else:
        print(text, file=sys.stderr)


def list_further_findings(value: object) -> list[str]:
    """Findings of a result that its text only names, for verbose output."""
    if not hasattr(value, "findings"):
        return []
    from robot_dyn_id.identification.validation.evaluation import Evaluation
    from robot_dyn_id.report.text import MAX_PRINTED_FINDINGS, format_findings_briefly, list_decisive_codes

    evaluation = getattr(value, "evaluation", value)
    if not isinstance(evaluation, Evaluation):
        return []
    return list(format_findings_briefly(evaluation.findings, list_decisive_codes(evaluation), sys.maxsize))[
        MAX_PRINTED_FINDINGS:
    ]


def _times(elapsed: float, fraction: float | None) -> str:
    """Elapsed time, and the remaining time where the fraction that is done is known."""
    if fraction is None or fraction < MIN_FRACTION:
        return _clock(elapsed)
    return f"{_clock(elapsed)}, {_clock(elapsed / fraction - elapsed)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _progress_bar(name: str) -> tuple[Bar, TaskID]:
    """Progress bar on standard error that vanishes when it is stopped."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    options: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": False, "auto_refresh": False}
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=2, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[times]}", markup=False, table_column=Column(no_wrap=True)),
        TextColumn(
            "{task.fields[detail]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
        console=Console(file=sys.stderr),
        transient=True,
        expand=True,
        **options,
    )
    return bar, bar.add_task(name, total=None, times="", detail="")
