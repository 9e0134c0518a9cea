# SPDX-License-Identifier: Apache-2.0
"""Results of hostile robots, and their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hostile.case import Outcome, Trials, run_plain, run_reference
from hostile.recordings import Robot

CLOSE, FAR = 1.2, 2.0
"""Ratios to the error of the reference up to which a model is close, and above which belief in it is wrong."""


@dataclass(frozen=True)
class Row:
    """Result of a robot.

    Attributes:
        seed: seed of the robot.
        title: its axes and features.
        plain: outcome of the plain command.
        reference: outcome with the true structure given.
    """

    seed: int
    title: str
    plain: Outcome
    reference: Outcome

    @classmethod
    def from_seed(cls, seed: int, reference: Outcome | None = None) -> Row:
        """Draw, record and identify a robot; an earlier outcome of the reference is kept."""
        robot = Robot.draw(seed)
        trials = Trials.record(robot)
        plain = run_plain(trials)
        return cls(seed, robot.title, plain, reference or run_reference(trials))

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Row:
        """The row of a summary."""
        plain, reference = (_read_outcome(summary[key]) for key in ("plain", "reference"))
        return cls(summary["seed"], summary["title"], plain, reference)

    def summary(self) -> dict[str, Any]:
        """The row for programs."""
        return asdict(self)

    @property
    def ratio(self) -> float:
        """Error over that of the reference."""
        return self.plain.error / self.reference.error

    @property
    def is_close(self) -> bool:
        """Whether the model is nearly as good as with the true structure."""
        return self.ratio <= CLOSE

    @property
    def is_refused_wrongly(self) -> bool:
        """Whether there is no model, and one with the true structure works."""
        return math.isnan(self.plain.error) and self.reference.error < 1.0

    @property
    def is_trusted_wrongly(self) -> bool:
        """Whether a model is called good whose error is far above the reference, or claims something untrue."""
        return bool(self.plain.false_claims) or (self.plain.verdict == "good" and self.ratio > FAR)

    @property
    def judgment(self) -> str:
        """The row in one word."""
        if self.is_refused_wrongly:
            return "REFUSED"
        if self.is_trusted_wrongly:
            return "TRUSTED"
        return "close" if self.is_close else "far" if self.ratio > FAR else "worse"

    def line(self) -> str:
        """The row of the table."""
        codes = " ".join(dict.fromkeys(code for code, severity, _ in self.plain.findings if severity != "info"))
        codes = codes or self.plain.refusal[:80]
        claims = "; ".join(self.plain.false_claims)
        numbers = f"{self.plain.error:.1%} | {self.reference.error:.1%} | {self.ratio:.2f}"
        verdict = self.plain.verdict or "refused"
        return f"| {self.seed} | {self.title} | {numbers} | {self.judgment} | {verdict} | {codes} {claims} |"

    def details(self) -> str:
        """Everything about the row."""
        lines = [f"== seed {self.seed}: {self.title}: {self.judgment}, ratio {self.ratio:.2f}"]
        for name, one in (("plain", self.plain), ("reference", self.reference)):
            errors = " ".join(f"{error:.1%}" for error in one.joints)
            lines.append(f"  {name}: {one.error:.2%} ({errors}), {one.verdict or 'refused'}, {one.seconds:.1f} s CPU")
            lines += [f"    {one.terms}"] if one.terms else []
            lines += [f"    REFUSAL {one.refusal}"] if one.refusal else []
            lines += [f"    FALSE {claim}" for claim in one.false_claims]
            lines += [f"    {severity:7} {code}: {message}" for code, severity, message in one.findings]
        return "\n".join(lines)


def _read_outcome(summary: Mapping[str, Any]) -> Outcome:
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in summary.items()}
    return Outcome(**{**given, "findings": tuple((a, b, c) for a, b, c in summary["findings"])})


def markdown(rows: Sequence[Row]) -> str:
    """Table of all rows, and the shares that count."""
    lines = [
        "| seed | robot | error | reference | ratio | | verdict | warnings, errors, false claims |",
        "|---|---|---|---|---|---|---|---|",
        *(row.line() for row in rows),
        "",
        f"Within {CLOSE:g} times the error of the reference: {sum(row.is_close for row in rows)} of {len(rows)}.",
        f"Refused wrongly: {sum(row.is_refused_wrongly for row in rows)}; goal at most 2 of 40.",
        f"Trusted wrongly: {sum(row.is_trusted_wrongly for row in rows)}; goal at most 2 of 40.",
        f"Reference without a model: {sum(math.isnan(row.reference.error) for row in rows)}.",
    ]
    return "\n".join(lines) + "\n"
