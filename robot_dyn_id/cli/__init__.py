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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robot_dyn_id.version import __version__

if TYPE_CHECKING:
    from robot_dyn_id.errors import RobotDynIdError

VERBS = {
    "demo": "run the complete pipeline on a simulated arm",
    "design": "design an excitation trajectory within limits",
    "identify": "identify a robot's dynamics from recordings",
    "fleet": "identify many robots of one type, compare them, and name those that differ",
    "predict": "predict the torque along a recording",
    "feedforward": "fill the efforts of a trajectory from an identified model, and check torque limits",
    "simulate": "simulate an identified model along a trajectory, or under recorded efforts",
    "export": "write an identified model as URDF, MJCF, C or C++ source code, or for controllers",
    "validate": "evaluate an identified model on other recordings",
    "compare": "compare identified models: parameters, torque and friction",
    "payload": "identify mass, center of mass and inertia of a payload",
    "gravity": "calibrate gravity of an arm without torque sensors from poses held after an approach from both sides",
    "chain": "identify every body of a robot with 6-axis sensors in its hinges",
    "gains": "identify drive gains from currents with and without a known payload",
    "iterate": "rehearse an iterative identification on a simulated robot",
    "flexible": "identify an arm with flexible joints: links, springs and motors",
    "recover": "recover a bag after a crash of the recorder or a full disk",
    "base": "list the base (minimal) parameters of a robot",
    "reproduce": "reproduce a published identification and compare the results",
    "bench": "measure speed relative to peers in the same run, start times and the cost of identify",
}
"""Commands with their descriptions; `cli/<command>.py` has `add_arguments(parser)` and `run(arguments)`, which
returns the exit code and the answer."""


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
        from robot_dyn_id.errors import suggestion

        if action.choices is not None and value not in action.choices:
            hint = suggestion(value, [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {hint}")


class _WrongWords(Exception):
    """Command line that the parser refuses."""


BROKEN_PIPE_EXIT_CODE = 141
"""Exit code after the reader of standard output has closed it, as in shells (128 + SIGPIPE)."""

_interruptions: list[int] = []
"""Received termination signals. An exception raised inside a callback of a library is only printed by Python."""


def _interrupt(number: int, frame: Any) -> None:
    _interruptions.append(number)
    raise KeyboardInterrupt


def progress(line: str) -> None:
    """Print a status line on standard error.

    Raises:
        KeyboardInterrupt: a termination signal was received, and its exception did not get here.
    """
    if _interruptions:
        raise KeyboardInterrupt
    print(line, file=sys.stderr, flush=True)


def _parser(verb: str | None) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser, and the options of a command."""
    options: list[str] = []
    parser = _Parser(prog="robot-dyn-id", description="Identify the dynamics of robots from motion.")
    parser.add_argument("--version", action="version", version=f"robot-dyn-id {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in VERBS.items():
        sub = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        sub.add_argument("--json", action="store_true", help="answer with one JSON object on standard output")
        if name == verb:
            importlib.import_module(f"robot_dyn_id.cli.{name}").add_arguments(sub)
            options = sorted({"--help", *re.findall(r"--[a-z][a-z-]*", sub.format_usage())})
    return parser, options


def run_process() -> int:
    """Run the command of this process's command line, see `main`, in a process that ends with it."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # or Python's last search for cycles takes 0.4 s, in a process that ends anyhow
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    With `--json` standard output holds one object whatever happens: the answer, or the error.

    Returns:
        0 done; 1 done, and the verdict is bad; 2 wrong usage; 3 bad input; 4 a fault of this package; 130 interrupted;
        141 if the reader of standard output has closed it.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # BLAS threads would only wait for each other: blocks of rows are small, and filtered in parallel.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may contain characters outside its encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    _interruptions.clear()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:  # as for SIGINT in background jobs
            signal.signal(number, _interrupt)
    try:
        return _guarded(given)
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE_EXIT_CODE


def _guarded(given: Sequence[str]) -> int:
    """Run a command, and print the error that it raises.

    Raises:
        BrokenPipeError: the reader of standard output has closed it.
    """
    from robot_dyn_id.errors import InputError, InterruptedRun, MissingDefinitionError, RobotDynIdError, UsageError

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
        kept = "what was recorded stays" if _verb(given) == "demo" else "nothing was written"
        return _fail(InterruptedRun(f"interrupted, {kept}"), given)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a file that has vanished: not a fault of this package
        where = error.filename or "standard output or a file"
        reason = error.strerror or str(error)
        return _fail(InputError(f"{where}: cannot be read or written ({reason})"), given)
    except Exception as fault:
        from robot_dyn_id.faults import missing_library, reported  # slow to import

        return _fail(missing_library(fault) or reported(fault, ["robot-dyn-id", *given]), given)


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
    for word in given:
        if word.startswith("--"):
            refuse_old_spelling(word.partition("=")[0])
    parser, options = _parser(_verb(given))
    if options:
        _check_options(given, options)
    parsed = parser.parse_args(given)
    code, answer = importlib.import_module(f"robot_dyn_id.cli.{parsed.verb}").run(parsed)
    if parsed.json:
        print(json.dumps(_finite(answer), allow_nan=False))
    sys.stdout.flush()
    return int(code)


def _check_options(given: Sequence[str], options: Sequence[str]) -> None:
    """Check that a command has all options of a command line; the parser would first miss those that are required.

    Raises:
        _WrongWords: an option that it does not have, with the nearest one.
    """
    from robot_dyn_id.errors import suggestion

    for word in given[: given.index("--") if "--" in given else None]:
        option = word.partition("=")[0]
        if option.startswith("--") and not any(known.startswith(option) for known in options):
            name = f"robot-dyn-id {_verb(given)}"
            raise _WrongWords(f"{name}: unknown option {option}; {suggestion(option, options)} (try {name} --help)")


def _verb(given: Sequence[str]) -> str | None:
    """The command of a command line; None if its first word is not one."""
    word = next((word for word in given if not word.startswith("-")), None)
    return word if word in VERBS else None


def _fail(error: RobotDynIdError, given: Sequence[str], prefix: str = "robot-dyn-id: ") -> int:
    """Print an error: one line on standard error and, with `--json`, an object on standard output.

    Returns:
        Its exit code.
    """
    print(f"{prefix}{error}", file=sys.stderr)
    # The command line may not be parsable; argparse accepts abbreviations.
    as_json = any(len(word) > 2 and "--json".startswith(word) for word in given)
    try:
        if as_json:
            print(json.dumps({"error": error.summary()}))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # standard output on a full disk: reported above; Python would write again at exit
        _discard_output()
    return error.exit_code


def _discard_output() -> None:
    """Redirect standard output to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
