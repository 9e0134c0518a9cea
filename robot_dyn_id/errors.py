"""Errors that a user can act on.

Every error carries one line that names the offending file, joint or value and says what to do; the command line
prints that line and exits with `exit_code`, never with a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class RobotDynIdError(Exception):
    """Base of all errors of this package.

    Attributes:
        exit_code: what the command line exits with.
    """

    exit_code = 3


class UsageError(RobotDynIdError):
    """The options contradict one another or have values that no data could make right (exit code 2)."""

    exit_code = 2


class InputError(RobotDynIdError):
    """A file or the data in it cannot be used (exit code 3)."""


class ModelError(InputError):
    """The robot description cannot be used: broken, floating base, closed loop, unknown joint."""


class MotionError(RobotDynIdError):
    """A motion would leave the limits of a joint, or may not begin where the robot is."""


class UnsafeDataError(InputError):
    """The health gate refuses the data: parameters estimated from them would be wrong."""


class ConvergenceError(RobotDynIdError):
    """An estimator did not reach a solution that it can stand for."""


class DeadlineError(RobotDynIdError):
    """Something that had to happen did not happen in time."""


class GraphError(RobotDynIdError):
    """The ROS graph holds a node that must not be there: a second one of the same name, or a robot beside a demo."""


def suggestion(word: object, known: Sequence[str]) -> str:
    """What may have been meant by an unknown word: the nearest known one, or all of them."""
    near = difflib.get_close_matches(str(word), known, 1, 0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
