# SPDX-License-Identifier: Apache-2.0
"""The language of the project: CONTRIBUTING.md lists words that are replaced by the field's own; none comes back."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SECTION = re.compile(r"^## Language$(.*?)(?=^## |\Z)", re.M | re.S)

TEXTS = {".py", ".md", ".yaml", ".msg", ".srv", ".action", ".txt", ".xml", ".toml", ".j2", ".cpp", ".urdf", ".rst", ""}

LEFT_OUT = (
    "CHANGELOG.rst",
    "LICENSE",
    "CONTRIBUTING.md",
    "robot_dyn_id/files/spelling.py",
    "test/files/test_spelling.py",
)
"""History, foreign text, the list itself, measured values, and the table of old spellings with its test."""

RELEASED = ROOT / "test/files/release_0_1_0"
"""Files as version 0.1.0 wrote them, with the words of that time."""

FOLDERS = ("robot_dyn_id", "launch", "config", "msg", "action", "srv", "docs", "examples", "benchmarks", "test", "urdf")


SHAPES = (
    r'"""(?:What|How|Which|Of) ',  # a docstring begins with a noun phrase or an imperative verb
    r"^ {8,}[a-z_][a-z_0-9, ]*: (?:of|by|in) ",  # what an argument is, not whose
    r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b|less\b)",  # "x is no y"
    r"\bnone for\b",
)
"""Turns of phrase that a list of words cannot hold."""

ALLOWED = re.compile(
    r"[Tt]here is none\b|Current goal cancelled|\b(?:ast|os)\.walk\b|Yule-Walker|algorithm\.tell|[\"`]asked[\"`]|asked +verdict|stream\.tell|standardiz|realist|realism|equalist"
)


def avoided():
    """Regular expressions for the words and for the phrases of the table in CONTRIBUTING.md."""
    section = SECTION.search((ROOT / "CONTRIBUTING.md").read_text())
    assert section, "CONTRIBUTING.md has no section Language"
    rows = re.findall(r"^\| ([^|]+) \|", section[1], re.M)[1:]
    assert len(rows) >= 15
    entries = [entry.strip() for row in rows for entry in row.split(",")]

    def any_of(entries):
        forms = [form for entry in entries for form in (entry, entry.capitalize(), entry.upper())]
        return "|".join(re.escape(form).replace(r"\*", "[A-Za-z]*") for form in forms)

    phrases = [entry for entry in entries if " " in entry]
    words = [entry for entry in entries if " " not in entry]
    return re.compile(any_of(words)), rf"(?<![A-Za-z])(?:{any_of(phrases)})(?![A-Za-z])"


def texts():
    found = [
        ROOT / name for name in ("README.md", "CMakeLists.txt", "setup.py", "pyproject.toml", "Makefile", "package.xml")
    ]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in TEXTS]
    return sorted(
        path
        for path in found
        if str(path.relative_to(ROOT)) not in LEFT_OUT
        and "__pycache__" not in path.parts
        and RELEASED not in path.parents
        and path != Path(__file__)
    )


WORDS, PHRASES = avoided()
TURNS = re.compile("|".join([PHRASES, *SHAPES]), re.M)


@cache
def is_avoided(word):
    return WORDS.fullmatch(word) is not None


def avoided_in(path):
    """Places of a file with words that are avoided."""
    text = ALLOWED.sub("", path.read_text(encoding="utf-8", errors="replace"))
    words = (match for match in re.finditer("[A-Za-z]+", text) if is_avoided(match[0]))
    for match in (*words, *TURNS.finditer(text)):
        yield f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"


def test_words_that_are_avoided_do_not_come_back():
    found = [place for path in texts() for place in avoided_in(path)]
    assert not found, "\n".join(found)
