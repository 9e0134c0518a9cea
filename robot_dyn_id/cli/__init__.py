# SPDX-License-Identifier: Apache-2.0
"""The command line `robot-dyn-id`: one file per command, imported only when it is called."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import io
import json
import math
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from robot_dyn_id.termination import TERMINATION_SIGNALS, handle_termination
from robot_dyn_id.version import __version__

if TYPE_CHECKING:
    from robot_dyn_id.cli.terminal import Terminal
    from robot_dyn_id.errors import RobotDynIdError
    from robot_dyn_id.progress import Stage

GROUPS = {
    "everyday": {
        "demo": "run the complete pipeline on a simulated arm",
        "try": "identify a measured robot from a recording that comes with the package",
        "design": "design an excitation trajectory within limits",
        "identify": "identify a robot's dynamics from recordings",
        "validate": "evaluate an identified model on other recordings",
        "compare": "compare identified models: parameters, torque and friction",
        "predict": "predict the torque along a recording",
        "export": "write an identified model as URDF, MJCF, C or C++ source code, or for controllers",
        "doctor": "check the installation: ROS 2, discovery, packages, compiled functions, clocks",
    },
    "robots": {
        "payload": "identify mass, center of mass and inertia of a payload",
        "gravity": "calibrate gravity of an arm without torque sensors, from poses approached from both sides",
        "gains": "identify drive gains from currents with and without a known payload",
        "actuators": "identify armature, friction, delay and gains of drives under position commands",
        "feedforward": "fill the efforts of a trajectory from an identified model, and check torque limits",
        "fleet": "identify many robots of one type, compare them, and name those that differ",
        "flexible": "identify an arm with flexible joints: links, springs and motors",
        "chain": "identify every body of a robot from a 6-axis sensor under its base, or in its hinges",
        "watch": "show the nodes of a running robot in the terminal: rates, recording, excitation, residuals",
        "node": "run a node of this package, as `ros2 run robot_dyn_id NODE` does",
    },
    "research": {
        "simulate": "simulate an identified model along a trajectory, or under recorded efforts",
        "iterate": "rehearse an iterative identification on a simulated robot",
        "base": "list the base (minimal) parameters of a robot",
        "reproduce": "reproduce a published identification and compare the results",
    },
    "tools": {
        "recover": "recover a bag after a crash of the recorder or a full disk",
        "bench": "measure speed relative to peers in the same run, start times and the cost of identify",
        "completion": "print the script that completes commands and options in a shell",
    },
}
"""Groups of commands, as `--help` lists them, with their descriptions."""

VERBS = {verb: text for group in GROUPS.values() for verb, text in group.items()}
"""Commands with their descriptions; `cli/<command>.py` has `add_arguments(parser)` and `run(arguments)`, which
returns the exit code and the answer."""


OPEN_ENDED = ("node", "watch")
"""Commands without progress: they run until they are ended."""

KEPT = {
    "demo": "what was recorded stays",
    "fleet": "what was read stays in the store for the next run",
    "try": "copies of the recording and of the robot stay; --force replaces them",
}
"""Files that an interrupted command leaves behind, as text; others write at their end."""

GARBAGE_THRESHOLD = 100_000
"""Objects between two searches for unreachable cycles. Those of Python's default, 700, take a quarter of a second while
libraries are imported, and find nothing."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """Refuse a command line.

        Raises:
            _WrongWords: always; `main` prints it in one line, like every mistake of the user.
        """
        raise _WrongWords(f"{self.prog}: {message} (try {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the choices, with the nearest of them.

        Raises:
            ArgumentError: another value.
        """
        from robot_dyn_id.errors import suggest_known

        if action.choices is not None and value not in action.choices:
            hint = suggest_known(value, [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {hint}")


class _WrongWords(Exception):
    """Command line that the parser refuses."""


BROKEN_PIPE_EXIT_CODE = 141
"""Exit code after the reader of standard output has closed it, as in shells (128 + SIGPIPE)."""

_interruptions: list[int] = []
"""Received termination signals. An exception raised inside a callback of a library is only printed by Python."""


_ignored: list[int] = []
"""Termination signals that are ignored because the command ends."""


def _interrupt(number: int, frame: Any) -> None:
    if number == signal.SIGHUP and number in _interruptions:  # the kernel and the shell both send it
        return
    _interruptions.append(number)
    raise KeyboardInterrupt


@contextmanager
def _hide_interruptions() -> Iterator[None]:
    """Print no traceback of an interruption that comes inside a callback of a library: the next step heeds it."""
    report = sys.unraisablehook

    def report_others(unraisable: Any) -> None:
        if not (_interruptions and issubclass(unraisable.exc_type, KeyboardInterrupt)):
            report(unraisable)

    sys.unraisablehook = report_others
    try:
        yield
    finally:
        sys.unraisablehook = report


_terminals: list[Terminal] = []
"""The terminal of the running command, if one runs."""


def show_progress(stage: Stage) -> None:
    """Show the stage of the running command.

    Raises:
        KeyboardInterrupt: a termination signal was received, and its exception did not get here.
    """
    if _interruptions:
        raise KeyboardInterrupt
    _terminal().report(stage)


def note(line: str) -> None:
    """Print a line about the running command on standard error."""
    _terminal().note(line)


def show(value: object) -> None:
    """Print a result of the running command, or a line of one, on standard output.

    Args:
        value: an identification, an evaluation, or text.
    """
    _terminal().show(value)


def _terminal() -> Terminal:
    from robot_dyn_id.cli.terminal import Terminal

    if not _terminals:
        _terminals.append(Terminal())
    return _terminals[-1]


class _Help(argparse.HelpFormatter):
    """Formatter of help texts that keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        filled = [
            part if part.startswith("examples:") else super(_Help, self)._fill_text(part, width, indent)
            for part in parts
        ]
        return "\n\n".join(filled)


class _Groups(_Help):
    """Formatter of the list of commands, with a heading before the first one of each group."""

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        heading = next((name for name, verbs in GROUPS.items() if action.dest == next(iter(verbs))), None)
        return text if heading is None else f"\n  {heading}:\n{text}"


def make_parser(verb: str | None) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of command lines.

    Args:
        verb: command whose arguments are added; those of other commands would have to be imported.

    Returns:
        The parser, and the options of the command.
    """
    options: list[str] = []
    parser = _Parser(
        prog="robot-dyn-id",
        description="Identify the dynamics of robots from motion.",
        epilog="robot-dyn-id VERB --help shows the options of a command with examples.",
        formatter_class=_Groups,
    )
    parser.add_argument("--version", action="version", version=f"robot-dyn-id {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in VERBS.items():
        sub = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", formatter_class=_Help)
        sub.add_argument("--json", action="store_true", help="answer with one JSON object on standard output")
        amount = sub.add_mutually_exclusive_group()
        amount.add_argument("-v", "--verbose", action="store_true", help="all stages with their times, all findings")
        amount.add_argument("-q", "--quiet", action="store_true", help="print errors only, and the object of --json")
        if name == verb:
            from robot_dyn_id.cli.examples import EXAMPLES

            importlib.import_module(f"robot_dyn_id.cli.{name}").add_arguments(sub)
            lines = "\n".join(f"  robot-dyn-id {line}" for line in EXAMPLES.get(name, ()))
            sub.epilog = f"{sub.epilog or ''}\n\nexamples:\n{lines}".strip()
            options = sorted({"--help", "--verbose", "--quiet", *re.findall(r"--[a-z][a-z-]*", sub.format_usage())})
    return parser, options


def run_process() -> int:
    """Run the command of this process's command line, see `main`, in a process that ends with it."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # or Python's last search for cycles takes 0.4 s, in a process that ends anyhow
    code = _main(sys.argv[1:])
    _ignore_interruptions()  # another Ctrl-C must not replace the exit code
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    With `--json` standard output holds one object whatever happens: the answer, or the error.

    Returns:
        0 done; 1 done, and the verdict is bad; 2 wrong usage; 3 bad input; 4 a fault of this package; 130 interrupted;
        141 if the reader of standard output has closed it.
    """
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        for number in _ignored:
            signal.signal(number, _interrupt)
        _ignored.clear()


def _main(given: list[str]) -> int:
    """Run a command, see `main`; after an error further interruptions are ignored."""
    _replace_closed_streams()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        return int(importlib.import_module("robot_dyn_id.cli.completion").complete())
    from robot_dyn_id.errors import InternalError

    # BLAS threads would only wait for each other: blocks of rows are small, and filtered in parallel.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may contain characters outside its encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    _interruptions.clear()
    handle_termination(_interrupt)
    try:
        with _hide_interruptions():
            return _guarded(given)
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE_EXIT_CODE
    except Exception:  # of the report of an error; Python would end with 1, which is a bad verdict
        return InternalError.exit_code
    finally:
        while _terminals:
            _terminals.pop().close()


def _guarded(given: Sequence[str]) -> int:
    """Run a command, and print the error that it raises.

    Raises:
        BrokenPipeError: the reader of standard output has closed it.
    """
    from robot_dyn_id.errors import InputError, MissingDefinitionError, RobotDynIdError, UsageError

    try:
        return _run(given)
    except SystemExit as stop:  # --help, --version
        return int(stop.code or 0)
    except _WrongWords as error:
        return _fail(UsageError(str(error)), given, prefix="")
    except MissingDefinitionError as error:
        return _fail(MissingDefinitionError(f"{error.message}, with --definitions DIR", error.action), given)
    except RobotDynIdError as error:
        return _fail(error, given)
    except KeyboardInterrupt:
        return _fail(_interrupted(given), given)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a file that has vanished: not a fault of this package
        where = error.filename or "standard output or a file"
        reason = error.strerror or str(error)
        return _fail(InputError(f"{where}: cannot be read or written ({reason})"), given)
    except Exception as fault:
        if _interruptions:  # its exception was lost in a callback of a library, such as the compiler, which failed then
            return _fail(_interrupted(given), given)
        from robot_dyn_id.faults import explain_setup_error, report_fault  # slow to import

        return _fail(explain_setup_error(fault) or report_fault(fault, ["robot-dyn-id", *given]), given)


def _interrupted(given: Sequence[str]) -> RobotDynIdError:
    """The error of a command that a signal has ended; further signals are ignored."""
    from robot_dyn_id.errors import InterruptedRun

    _ignore_interruptions()
    return InterruptedRun(f"interrupted, {KEPT.get(_verb(given) or '', 'nothing was written')}")


def _run(given: Sequence[str]) -> int:
    """Parse the command line, run the command, and print its answer.

    Raises:
        _WrongWords: the parser refuses an argument, or one is empty: an output would go to the current folder.
        UsageError: an option of an earlier version, by its present name.
    """
    from robot_dyn_id.files.spelling import refuse_old_spelling

    empty = next((word for word in given if not word or (word.startswith("--") and word.endswith("="))), None)
    if empty is not None:
        raise _WrongWords(f"robot-dyn-id: {empty or 'an argument'} is empty; is a variable of the shell not set?")
    first, verb = given[0] if given else "", _verb(given)
    if verb and first != verb and first not in {"-h", "--help", "--version"}:
        raise _WrongWords(f"robot-dyn-id: {first} comes after the command: robot-dyn-id {verb} {first} ...")
    for word in given:
        if word.startswith("--"):
            refuse_old_spelling(word.partition("=")[0])
    parser, options = make_parser(_verb(given))
    if options and _verb(given) != "node":  # words of ROS follow the name of a node
        _check_options(given, options)
    parsed = parser.parse_args(given)
    from robot_dyn_id.cli.terminal import Terminal

    terminal = Terminal(parsed.verb, quiet=parsed.quiet, verbose=parsed.verbose)
    _terminals.append(terminal)
    if parsed.verb not in OPEN_ENDED:
        terminal.watch()
    code, answer = importlib.import_module(f"robot_dyn_id.cli.{parsed.verb}").run(parsed)
    terminal.close()
    terminal.print_times()
    if parsed.json:
        print(json.dumps(_finite(answer), allow_nan=False))
    sys.stdout.flush()
    return int(code)


def _check_options(given: Sequence[str], options: Sequence[str]) -> None:
    """Check that a command has all options of a command line; the parser would first miss those that are required.

    Raises:
        _WrongWords: an option that it does not have, with the nearest one.
    """
    from robot_dyn_id.errors import suggest_known

    for word in given[: given.index("--") if "--" in given else None]:
        option = word.partition("=")[0]
        if option.startswith("--") and not any(known.startswith(option) for known in options):
            name = f"robot-dyn-id {_verb(given)}"
            raise _WrongWords(f"{name}: unknown option {option}; {suggest_known(option, options)} (try {name} --help)")


def _verb(given: Sequence[str]) -> str | None:
    """The command of a command line; None if its first word is not one."""
    word = next((word for word in given if not word.startswith("-")), None)
    return word if word in VERBS else None


def _fail(error: RobotDynIdError, given: Sequence[str], prefix: str = "robot-dyn-id: ") -> int:
    """Print an error: one line on standard error and, with `--json`, an object on standard output.

    Returns:
        Its exit code.
    """
    _ignore_interruptions()
    from robot_dyn_id.cli.terminal import print_error

    try:
        if _terminals:
            _terminals[-1].close()
            _terminals[-1].print_times()
        print_error(f"{prefix}{error}")
    except BrokenPipeError:
        raise
    except Exception:  # standard error cannot be written to: the exit code and --json remain
        _terminals.clear()
    # The command line may not be parsable; argparse accepts abbreviations.
    as_json = any(len(word) > 2 and "--json".startswith(word) for word in given)
    try:
        if as_json:
            print(json.dumps({"error": error.summary()}))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # standard output on a full disk: reported above; Python would write again at exit
        discard_output()
    return error.exit_code


def _ignore_interruptions() -> None:
    """Ignore the signals that end a command: it ends anyhow."""
    for number in TERMINATION_SIGNALS:
        if signal.getsignal(number) == _interrupt:
            signal.signal(number, signal.SIG_IGN)
            _ignored.append(number)


def _replace_closed_streams() -> None:
    """Open the null device in place of standard streams that the caller has closed, which Python has as None."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def discard_output() -> None:
    """Redirect standard output to the null device, unless a caller from Python has replaced it by an object."""
    with suppress(io.UnsupportedOperation):  # no file descriptor: nothing is written again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
