"""The command line `robot-dyn-id`: one file per verb, imported only when it is called."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

VERBS = {
    "demo": "the whole line on a simulated arm",
    "design": "an excitation trajectory within limits",
    "identify": "identify a robot's dynamics from recordings",
    "predict": "torque of an identified model along a recording",
    "simulate": "motion of an identified model along a trajectory, or under recorded efforts",
    "export": "write an identified model as URDF or MJCF",
    "validate": "judge an identified model on another recording",
    "payload": "mass, centre and inertia of what an arm carries",
    "gains": "gains of the drives from currents with and without a known payload",
    "flexible": "identify an arm with flexible joints: links, springs and motors",
    "base": "the minimal (base) parameter set of a robot",
    "reproduce": "a published identification, its figures beside ours",
    "bench": "measure speed against peers in the same run",
}
"""Verbs and what they do; `cli/<verb>.py` has `add_arguments(parser)` and `run(arguments) -> (exit code, answer)`."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """One line and exit code 2, as for every user's mistake."""
        print(f"{self.prog}: {message} (try {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


_interruptions: list[int] = []
"""Signals that asked this process to end: what is raised amid a library's callback is only printed by Python."""


def _interrupt(number: int, frame: Any) -> None:
    _interruptions.append(number)
    raise KeyboardInterrupt


def progress(line: str) -> None:
    """Tell on standard error what is being done.

    Raises:
        KeyboardInterrupt: the process was asked to end, and what was raised then has been lost on its way.
    """
    if _interruptions:
        raise KeyboardInterrupt
    print(line, file=sys.stderr, flush=True)


def _parser(verb: str | None) -> argparse.ArgumentParser:
    parser = _Parser(prog="robot-dyn-id", description="Identify the dynamics of robots from motion.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in VERBS.items():
        sub = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        sub.add_argument("--json", action="store_true", help="answer with one JSON object on standard output")
        if name == verb:
            importlib.import_module(f"robot_dyn_id.cli.{name}").add_arguments(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb.

    Returns:
        0 done; 1 done, and the verdict is bad; 2 wrong usage; 3 bad input; 130 interrupted.
    """
    from robot_dyn_id.errors import RobotDynIdError

    given = list(sys.argv[1:] if arguments is None else arguments)
    verb = next((word for word in given if not word.startswith("-")), None)
    # Tiles are small, and filtered in parallel: BLAS threads would only wait for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _interruptions.clear()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:  # as for SIGINT in background jobs
            signal.signal(number, _interrupt)
    try:
        parsed = _parser(verb if verb in VERBS else None).parse_args(given)
        code, answer = importlib.import_module(f"robot_dyn_id.cli.{parsed.verb}").run(parsed)
        if parsed.json:
            json.dump(answer, sys.stdout, allow_nan=False)
            print()
        return int(code)
    except SystemExit as stop:
        return int(stop.code or 0)
    except RobotDynIdError as error:
        print(f"robot-dyn-id: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("robot-dyn-id: interrupted, nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
