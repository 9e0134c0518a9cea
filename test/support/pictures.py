# SPDX-License-Identifier: Apache-2.0
"""Hash of the templates of the report, which its pictures hold, so that a test finds them out of date."""

import hashlib
import re
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[2] / "robot_dyn_id" / "report"
KEY = "templates"
"""Key of the hash in a picture."""


def templates_of(name):
    """A template of a page, and all that it extends, imports or includes."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    names = re.findall(r'\{% (?:extends|from|include) "(.+?)"', text)
    return {name}.union(*map(templates_of, names))


def hash_of_report():
    """SHA-256 of the templates and the style that the report is drawn with."""
    found = hashlib.sha256()
    for name in sorted(templates_of("report.html.j2")):
        found.update((TEMPLATES / name).read_bytes())
    return found.hexdigest()
