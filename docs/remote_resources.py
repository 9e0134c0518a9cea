# SPDX-License-Identifier: Apache-2.0
"""Search for resources that a page would load from the network, in contrast to links that a reader follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel\s*=\s*["']?(?:stylesheet|icon|preload|preconnect|dns-prefetch|manifest))[^>]*\bhref\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|@import\s+(?:url\()?\s*["']?((?:https?:)?//[^"')\s]+)"""
    r"""|url\(\s*["']?((?:https?:)?//[^"')\s]+)""",
    re.I,
)
"""Elements and rules that load a file when a page is opened."""


def remote_resources(text: str) -> list[str]:
    """Addresses that a page or style sheet loads from the network."""
    return [next(filter(None, match.groups())) for match in LOADED.finditer(text)]


def check_site(folder: Path) -> Iterator[str]:
    """Find what the pages and style sheets of a site load from the network.

    Args:
        folder: folder of the built site.

    Yields:
        One line per address, with the file that loads it.
    """
    for file in sorted((*folder.rglob("*.html"), *folder.rglob("*.css"))):
        for address in remote_resources(file.read_text(encoding="utf-8", errors="replace")):
            yield f"{file.relative_to(folder)}: {address}"
