# SPDX-License-Identifier: Apache-2.0
"""The page of all findings: `python -m robot_dyn_id.report.findings_page > docs/findings.md`."""

from __future__ import annotations

from itertools import groupby

from robot_dyn_id.findings import list_definitions

_HEAD = """# Findings

Made from the definitions in the code; do not edit (`python -m robot_dyn_id.report.findings_page > docs/findings.md`).

Everything that the package reports about data or a model is a finding with a stable code. `findings` of `--json`,
`report.json` and the ROS message `IdentificationReport` hold code, severity, joints, message and action of each;
`warnings` and `reasons` hold the same as text.

| severity | meaning |
|---|---|
| error | the data are refused (exit code 3), or the verdict is `bad` (exit code 1) |
| warning | the verdict is at best `suspect` |
| info | the verdict does not depend on it |

A finding that refuses data and is marked *may be overruled* becomes a warning if its code is listed under `ignore:` in
the configuration.
"""


def write_markdown() -> str:
    """The page `docs/findings.md`."""
    lines = [_HEAD]
    for section, entries in groupby(list_definitions(), key=lambda one: one.section):
        lines += [f"## {section.value}", "", "| code | severity | cause | cure |", "|---|---|---|---|"]
        for entry in entries:
            severity = f"{entry.severity}, may be overruled" if entry.overrulable else entry.severity
            cure = f"{entry.cure[0].upper()}{entry.cure[1:]}." if entry.cure else "None needed."
            lines.append(f"| `{entry.code}` | {severity} | {entry.cause} | {cure} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(write_markdown(), end="")
