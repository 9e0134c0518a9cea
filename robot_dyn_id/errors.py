# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can act on.

Every error carries one line that names the offending file, joint or value and says what to do; the command line
prints that line and exits with `exit_code`, never with a traceback. Programs read `code`, which never changes.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from typing import Any, ClassVar

from robot_dyn_id.findings import Finding, format_findings

LONGEST = 2000
"""Longest message of an error [characters]; longer ones lose their middle."""


class RobotDynIdError(Exception):
    """Base of all errors of this package: a message of one line, and what is needed to report it to programs.

    Example:
        ```python
        try:
            rdi.open_recording("none.npz")
        except rdi.RobotDynIdError as error:
            print(error.code, error.exit_code, error.message, error.action)
        ```

    Attributes:
        code: stable word for the kind of error, for programs that must not depend on the wording.
        exit_code: exit code of the command line.
        message: what was found and where, in one line.
        action: what to do about it; the general advice of the class where the message already says it.
    """

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 3
    advice: ClassVar[str] = "do what the message says"

    def __init__(self, message: str = "", action: str = "") -> None:
        """Keep the message and the action; an empty action is the advice of the class."""
        super().__init__(message)
        self.message = message
        self.action = action or self.advice

    def summary(self) -> dict[str, Any]:
        """The error as `--json` reports it: code, message, action and exit code."""
        return {"code": self.code, "message": str(self), "action": self.action, "exit_code": self.exit_code}

    def __str__(self) -> str:
        """The message; what a file or a message brought into it cannot control a terminal or fill a log."""
        return make_legible(super().__str__())


class UsageError(RobotDynIdError):
    """The options contradict one another or have values that no data could make right (exit code 2)."""

    code = "usage"
    exit_code = 2
    advice = "correct the options or the configuration"


class InputError(RobotDynIdError):
    """A file or the data in it cannot be used (exit code 3)."""

    code = "input"
    advice = "correct or replace the file that the message names"


class MissingDefinitionError(InputError):
    """A bag lacks the definition of a message type, and no folder with definitions is given."""

    code = "definition_missing"
    advice = "give a folder with the .msg files of the type"


class ModelError(InputError):
    """The robot description cannot be used: broken, floating base, closed loop, unknown joint."""

    code = "model"
    advice = "correct the robot description"


class MissingPackageError(ModelError):
    """A xacro file needs a ROS package that is not found."""

    code = "package_missing"
    advice = "give the folder of the package, or set ROS_PACKAGE_PATH to a folder that contains it"


class MissingArgumentError(ModelError):
    """A xacro file needs an argument that is not given.

    Attributes:
        name: name of the argument.
    """

    code = "argument_missing"
    advice = "give a value of the argument"

    def __init__(self, message: str = "", action: str = "", name: str = "") -> None:
        """Keep message, action, and the name of the argument."""
        super().__init__(message, action)
        self.name = name


class MotionError(RobotDynIdError):
    """A motion would leave the limits of a joint, or may not begin where the robot is."""

    code = "motion"
    advice = "change the motion or its limits, or bring the robot to where the motion begins"


class UnsafeDataError(InputError):
    """The health gate refuses the data: parameters estimated from them would be wrong."""

    code = "unsafe_data"
    advice = "correct the recording or the configuration of its joints, or record again"

    def __init__(self, message: str = "", action: str = "", findings: Sequence[Finding] = ()) -> None:
        """Keep message, action, and the findings of severity `error`."""
        super().__init__(message, action)
        self.findings = tuple(findings)

    @classmethod
    def from_findings(cls, findings: Sequence[Finding], sources: Sequence[str]) -> UnsafeDataError:
        """The error that reports findings about recordings.

        Args:
            findings: findings of severity `error`.
            sources: names of the recordings.
        """
        codes = ", ".join(one.code for one in findings)
        located = any(one.message.startswith(f"{source}: ") for one in findings for source in sources)
        where = "" if located else f"{', '.join(sources)}: "
        message = f"{where}{'; '.join(format_findings(findings))} (findings: {codes})"
        return cls(message, "; ".join(one.action for one in findings if one.action), findings)

    def with_causes(self, findings: Sequence[Finding]) -> UnsafeDataError:
        """The error with other findings that may explain it.

        Args:
            findings: findings of any severity.
        """
        if not findings:
            return self
        message = f"{self.message}; possible cause: {'; '.join(format_findings(findings))}"
        return UnsafeDataError(message, self.action, (*self.findings, *findings))

    def summary(self) -> dict[str, Any]:
        """The error as `--json` reports it, with its findings."""
        return {**super().summary(), "findings": [one.summary() for one in self.findings]}


class ConvergenceError(RobotDynIdError):
    """An estimator did not converge to a usable solution."""

    code = "convergence"
    advice = "choose another estimator, or record a richer motion"


class DeadlineError(RobotDynIdError):
    """Something that had to happen did not happen in time."""

    code = "deadline"
    advice = "check that all nodes run and that the computer is not overloaded, then try again"


class InternalError(RobotDynIdError):
    """A fault of this package itself (exit code 4); see `faults.report_fault`."""

    code = "internal"
    exit_code = 4
    advice = "report the fault with the file that the message names"


class InterruptedRun(RobotDynIdError):
    """The user or the system ended the command (exit code 130)."""

    code = "interrupted"
    exit_code = 130
    advice = "run the command again"


def make_legible(text: str, longest: int = LONGEST) -> str:
    """A text with its control characters escaped, cut in the middle where it is longer than `longest` characters."""
    if len(text) > 2 * longest:  # what is escaped becomes longer, so that it is cut again; this keeps that fast
        text = text[:longest] + text[-longest:]
    if not text.isprintable():
        text = "".join(
            char if char == "\n" or char.isprintable() else char.encode("unicode_escape").decode() for char in text
        )
    return _cut(text, longest)


UNSTORABLE = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that no stored line holds: control characters, surrogates, and separators of lines."""


def make_storable(text: str, longest: int) -> str:
    """A text as one line of UTF-8: `UNSTORABLE` characters escaped, cut in the middle to `longest` characters.

    Names of files may hold any of them; a byte that is not UTF-8 is a surrogate in the name.
    """
    if len(text) > 2 * longest:
        text = text[:longest] + text[-longest:]
    if not text.isprintable():
        text = "".join(
            char.encode("unicode_escape").decode() if unicodedata.category(char) in UNSTORABLE else char
            for char in text
        )
    return _cut(text, longest)


def _cut(text: str, longest: int) -> str:
    """A text without its middle if it is longer than `longest` characters."""
    gap = " [...] "
    if len(text) <= longest:
        return text
    head = longest * 3 // 4
    return text[:head] + gap + text[len(text) - (longest - head - len(gap)) :]


class GraphError(RobotDynIdError):
    """The ROS graph holds a node that must not be there: a second one of the same name, or a robot next to a demo."""

    code = "graph"
    advice = "end the other node, or use another name, namespace or ROS domain"


def suggest_known(word: object, known: Sequence[str]) -> str:
    """Suggestion for an unknown word: the nearest known one, or all of them."""
    return suggest_nearest(word, known).removeprefix("; ") or f"known are {', '.join(known)}"


def suggest_nearest(word: object, known: Sequence[str]) -> str:
    """End of a message: suggestion of the known word that is nearest to an unknown one; empty if none is near."""
    near = difflib.get_close_matches(str(word), known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
