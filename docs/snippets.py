# SPDX-License-Identifier: Apache-2.0
"""Snippets of the documentation: fenced blocks that a reader runs, and their marks.

A block of shell commands (`sh`) or Python (`python`) is run by `test/integration/test_snippets.py`, page by page. A
line in italics directly above a block states the exception:

    *Not run: needs a robot.*
    *Not run: needs a distribution.*
    *Not run: part of `robot_dyn_id/nodes/computed_torque_controller.py`.*
    *Run by `test/integration/test_packaging.py`.*
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

RUN_LANGUAGES = ("sh", "python")
"""Languages of blocks that are run."""

SHOWN_LANGUAGES = ("text", "yaml", "json", "xml", "cpp", "cmake", "{toctree}", "{eval-rst}", "{figure}", "{math}")
"""Languages of blocks that are only shown."""

REASONS = ("needs a robot", "needs a distribution")
"""Reasons for which a block is not run."""

BLOCK = re.compile(r"(?:^\*(?P<mark>[^*\n]+)\.\*\n\n?)?^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page.

    Attributes:
        page: the Markdown file.
        line: line of the fence, from 1.
        language: language of the fence.
        code: content.
        mark: the line in italics above it, without its period; empty: none.
    """

    page: Path
    line: int
    language: str
    code: str
    mark: str

    @property
    def runs(self) -> bool:
        """Whether the block is run with its page."""
        return self.language in RUN_LANGUAGES and not self.mark


def snippets_of(page: Path) -> list[Snippet]:
    """Blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(
            page,
            text.count("\n", 0, match.start("code")),
            match["language"],
            match["code"],
            (match["mark"] or "").strip(),
        )
        for match in BLOCK.finditer(text)
    ]


def count_marks(pages: Iterable[Path]) -> Counter[str]:
    """Numbers of runnable blocks by mark; an empty mark stands for those that are run with their page."""
    return Counter(
        snippet.mark.partition(" `")[0]
        for page in pages
        for snippet in snippets_of(page)
        if snippet.language in RUN_LANGUAGES
    )


def summary(pages: Iterable[Path]) -> str:
    """Sentence for the index page: how many blocks are run, and why the others are not."""
    counts = count_marks(pages)
    run = counts.pop("", 0)
    elsewhere = counts.pop("Run by", 0)
    others = "; ".join(f"{number} {mark[0].lower()}{mark[1:]}" for mark, number in sorted(counts.items()))
    return (
        f"{run + elsewhere} of the {run + elsewhere + sum(counts.values())} blocks of commands and Python on these "
        f"pages are run by the tests. Each of the others has its mark: {others}."
    )
