# SPDX-License-Identifier: Apache-2.0
"""Snippets of the documentation: fenced blocks that a reader runs, and their marks.

A block of shell commands (`sh`) or Python (`python`) is run by `test/integration/test_snippets.py`, page by page. A
line directly above a block states the exception: in italics what a reader needs, as a comment what concerns the tests
alone:

    *Needs a robot.*
    *Needs a ROS 2 distribution.*
    <!-- Run by `test/integration/test_packaging.py` -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RUN_LANGUAGES = ("sh", "python")
"""Languages of blocks that are run."""

SHOWN_LANGUAGES = ("text", "yaml", "json", "xml", "cpp", "cmake", "{toctree}", "{eval-rst}", "{figure}", "{math}")
"""Languages of blocks that are only shown."""

NEEDS = ("Needs a robot", "Needs a ROS 2 distribution", "Needs the package of a vendor", "Needs uv", "Needs pixi")
"""Needs of blocks that are not run, in the words of the page."""

BLOCK = re.compile(
    r"(?:^(?:\*(?P<need>[^*\n]+)\.\*|<!-- (?P<mark>[^\n]+?) -->)\n\n?)?^```(?P<language>\S*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page.

    Attributes:
        page: the Markdown file.
        line: line of the fence, from 1.
        language: language of the fence.
        code: content.
        mark: content of the line above it that states the exception; empty: none.
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
            match["need"] or match["mark"] or "",
        )
        for match in BLOCK.finditer(text)
    ]
