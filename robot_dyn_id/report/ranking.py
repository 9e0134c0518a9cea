# SPDX-License-Identifier: Apache-2.0
"""Order of findings for readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from robot_dyn_id.findings import SEVERITIES, Finding, Severity, place
from robot_dyn_id.uses import ANSWERS, NO

NONE_DECISIVE: Mapping[str, str] = MappingProxyType({})
"""No code that an answer rests on."""


def find_worst_answers(answers: Iterable[tuple[Iterable[str], str]]) -> dict[str, str]:
    """Codes that answers about uses rest on, each with the worst of these answers.

    Args:
        answers: codes and answer of each use.
    """
    found: dict[str, str] = {}
    for codes, answer in answers:
        for code in codes:
            found[code] = max(found.get(code, answer), answer, key=ANSWERS.index)
    return found


def rank_findings(findings: Iterable[Finding], decisive: Mapping[str, str] = NONE_DECISIVE) -> list[list[Finding]]:
    """Findings by code, the most useful first: errors, warnings, information, and each of them from cause to effect.

    Among warnings, and among information, what excludes a use, the answer no, comes first; an error excludes them all.
    The sections of findings are in that order: faults of the recordings explain what follows, so that correcting them
    comes first. Information is led by the codes that decide about a use, and in the presence of errors by what was
    assumed about the recordings; codes that concern a use follow, then all others, and what needs no action comes last.

    Args:
        findings: the findings.
        decisive: codes that answers about uses rest on, each with the worst of these answers.

    Returns:
        The findings of each code and severity, in their order.
    """
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity), []).append(one)
    failed = any(one.severity == "error" for group in groups.values() for one in group)

    def rank(group: Sequence[Finding]) -> tuple[object, ...]:
        one = group[0]
        cause = failed and one.definition.explains_errors and bool(one.action)
        later = one.severity == "info" and one.code not in decisive and not cause
        apart = later and not one.definition.concerns_uses
        excludes = one.severity == "error" or decisive.get(one.code) == NO
        return -SEVERITIES.index(one.severity), not excludes, later, not one.action, apart, place(one.definition)

    return sorted(groups.values(), key=rank)
