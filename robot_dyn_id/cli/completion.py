# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id completion`: completion of commands, options and values in bash, zsh and fish (argcomplete).

The script of a shell asks this program for completions, which come from the parser of the command that is typed.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from robot_dyn_id.cli import VERBS, make_parser
from robot_dyn_id.errors import UsageError

SHELLS = ("bash", "zsh", "fish")

PROGRAM = "robot-dyn-id"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shell", choices=SHELLS, help="shell that the script is for")


def run(arguments: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Print the script that a shell evaluates when it starts.

    Raises:
        UsageError: argcomplete is not installed.
    """
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        raise UsageError(
            "completion: needs argcomplete: install python3-argcomplete, or argcomplete with pip"
        ) from None
    script = shellcode([PROGRAM], True, arguments.shell)
    if not arguments.json:
        sys.stdout.write(f"{script}\n")  # a shell reads it: no colors, and also with --quiet
    return 0, {"shell": arguments.shell, "script": script}


def complete() -> int:
    """Answer the question of a shell, which it has put into environment variables, and end the process."""
    try:
        from argcomplete import autocomplete
    except ImportError:
        return 1
    words = os.environ.get("COMP_LINE", "").split()
    typed = next((word for word in words[1:] if not word.startswith("-")), None)
    autocomplete(make_parser(typed if typed in VERBS else None)[0])
    return 0
