# SPDX-License-Identifier: Apache-2.0
"""Findings: everything that the package reports about data or a model, with stable codes.

Each code is defined once, by a `Definition` in the module that makes the finding by `Definition.found`. A finding is
never edited as text: the verdict, `ignore:`, reports and programs read its code and severity, and its definition
says what it lowers; `format_finding` is the text for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from robot_dyn_id.uses import ANSWERS, USES

Severity = Literal["info", "warning", "error"]

SIGNS: dict[Severity, str] = {"info": "-", "warning": "!", "error": "!"}
"""Sign of a line of text about a finding."""

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""In ascending order. Error: the data are refused, or the verdict is bad; warning: the verdict is suspect."""

WITHOUT_FINDINGS = ("nodes", "bench", "papers", "msg", "action", "srv")
"""Folders of the package that define none: they are not imported for the list of all definitions."""


_definitions: dict[str, Definition] = {}


class Section(Enum):
    """Subjects of findings, from cause to effect: faults of recordings explain what follows."""

    HEALTH = "Health of recordings"
    DATA = "Recorded data"
    ESTIMATES = "Estimates"
    VALIDATION = "Validation"
    USES = "Uses of a model"
    PREDICTION = "Prediction, simulation and export"
    LOADS = "Payload and drive gains"
    FLEXIBLE = "Flexible joints"
    ACTUATORS = "Actuators under position commands"
    FLEETS = "Fleets"


@dataclass(frozen=True)
class Definition:
    """Meaning of a code. It is a constant of the module that makes the finding; making it enters it in the registry.

    Attributes:
        code: stable word.
        section: its subject.
        severity: severity unless the place that makes the finding states another one.
        cause: what leads to the finding, for the documentation.
        cure: what to do, an imperative phrase; the action of the finding unless the place that makes it is more
            specific. Empty: nothing has to be done.
        overrulable: whether the finding refuses data and may be overruled by `ignore`; it is a warning then.
        lowers: best answer about uses in its presence, by use. An error lowers all answers to `no`.
        lowers_always: whether information lowers them as a warning does: the user may state what it reports, and the
            model still lacks it.
        explains_errors: whether it may explain errors of other findings: a refusal states it as a possible cause, and
            as information it precedes others in their presence.
        check: check of data that finds it, for the list of all checks; empty for what no such check finds.
    """

    code: str
    section: Section
    severity: Severity
    cause: str
    cure: str = ""
    overrulable: bool = False
    lowers: Mapping[str, str] = field(default_factory=dict)
    lowers_always: bool = False
    explains_errors: bool = False
    check: str = ""

    def __post_init__(self) -> None:
        """Enter it in the registry.

        Raises:
            ValueError: another definition has this code, or a use or answer is unknown.
        """
        if not (set(self.lowers) <= set(USES) and set(self.lowers.values()) <= set(ANSWERS)):
            raise ValueError(f"finding {self.code}: unknown use or answer in {self.lowers}")
        if _definitions.setdefault(self.code, self) != self:  # a module that is loaded again defines the same
            raise ValueError(f"finding {self.code} is defined twice")

    @property
    def concerns_uses(self) -> bool:
        """Whether it lowers an answer as a warning, or states a figure of a use."""
        return bool(self.lowers) or self.section == Section.USES

    def found(
        self,
        message: str,
        joints: Iterable[str] = (),
        severity: Severity | None = None,
        action: str | None = None,
    ) -> Finding:
        """Make a finding.

        Args:
            message: what was found and where, in one line, without advice.
            joints: names of the joints that it concerns.
            severity: severity if it differs from that of the definition.
            action: action if it differs from the cure of the definition.
        """
        cure = self.cure if action is None else action
        return Finding(self.code, severity or self.severity, tuple(joints), message, cure)

    def lowered(self, use: str, severity: Severity) -> str:
        """Best answer about a use in the presence of a finding of this severity."""
        best, *_, worst = ANSWERS
        if severity == "error":
            return worst
        return self.lowers.get(use, best) if severity == "warning" or self.lowers_always else best


def find_definition(code: str) -> Definition:
    """Definition of a code, in whatever module it stands.

    Raises:
        ValueError: there is none.
    """
    if code not in _definitions:
        list_definitions()
    if code not in _definitions:
        raise ValueError(f"finding {code!r} is not defined")
    return _definitions[code]


def is_overrulable(code: str) -> bool:
    """Whether a code refuses data and may be overruled by `ignore`; False for an unknown word."""
    try:
        return find_definition(code).overrulable
    except ValueError:
        return False


def list_definitions() -> tuple[Definition, ...]:
    """All definitions, in the order of `place`; their modules are imported."""
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] not in WITHOUT_FINDINGS and parts[-1] != "__main__":
            import_module(".".join((__package__, *(part for part in parts if part != "__init__"))))
    return tuple(sorted(_definitions.values(), key=place))


def place(one: Definition) -> tuple[int, int, str]:
    """Place of a definition among all: by its section, the gravest first."""
    return list(Section).index(one.section), -SEVERITIES.index(one.severity), one.code


@dataclass(frozen=True)
class Finding:
    """One finding about data or a model.

    Attributes:
        code: stable word, see `find_definition`.
        severity: `info`, `warning` (the verdict is suspect) or `error` (data are refused, or the verdict is bad).
        joints: names of the joints that it concerns; empty: the whole robot, or no joint in particular.
        message: what was found and where, in one line.
        action: what to do about it, an imperative phrase; empty if nothing has to be done.
    """

    code: str
    severity: Severity
    joints: tuple[str, ...]
    message: str
    action: str

    def __post_init__(self) -> None:
        """Check code and severity.

        Raises:
            ValueError: the code is not defined, or the severity is unknown.
        """
        find_definition(self.code)
        if self.severity not in SEVERITIES:
            raise ValueError(f"finding {self.code}: unknown severity {self.severity!r}")

    @property
    def definition(self) -> Definition:
        """Meaning of its code."""
        return find_definition(self.code)

    def __str__(self) -> str:
        """The finding as one line; see `format_finding`."""
        return format_finding(self)

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Finding:
        """The finding of a summary.

        Raises:
            ValueError: the code or the severity is unknown.
            KeyError: an entry is missing.
        """
        return cls(
            str(summary["code"]),
            summary["severity"],
            tuple(map(str, summary["joints"])),
            str(summary["message"]),
            str(summary["action"]),
        )

    def summary(self) -> dict[str, Any]:
        """The finding as `--json` and `report.json` hold it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "joints": list(self.joints),
            "message": self.message,
            "action": self.action,
        }


def format_finding(finding: Finding) -> str:
    """One line of text: message and action, as `warnings`, `reasons`, logs and the command line show a finding."""
    return f"{finding.message}; {finding.action}" if finding.action else finding.message


def format_findings(findings: Iterable[Finding], *severities: Severity) -> tuple[str, ...]:
    """The findings of these severities (default: all) as lines of text."""
    return tuple(format_finding(one) for one in findings if not severities or one.severity in severities)


def summarize_findings(findings: Iterable[Finding]) -> dict[str, list[Any]]:
    """The entries `findings` and `warnings` of a `--json` answer."""
    findings = tuple(findings)
    return {"findings": [one.summary() for one in findings], "warnings": list(format_findings(findings))}
