# SPDX-License-Identifier: Apache-2.0
"""Pages of the papers: elements with their places, and tables written from runs."""

import re
from pathlib import Path

import paper_pages
import pytest

from robot_dyn_id.papers import PAPERS

ROOT = Path(__file__).resolve().parents[2]

SECTION = re.compile(r"^## Elements of the paper$(.*?)(?=^## |\Z)", re.M | re.S)

PAGES = {name: (paper_pages.PAGES / f"{name}.md").read_text() for name in PAPERS}


@pytest.mark.parametrize("name", PAGES)
def test_every_element_has_its_place_or_a_reason_of_one_line(name):
    section = SECTION.search(PAGES[name])
    assert section, f"{name}.md has no list of the elements of its paper"
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section[1], re.M)[1:]
    assert len(rows) >= 5
    for element, where in rows:
        assert len(where) < 220, f"{element}: more than a line"
        for path in re.findall(r"`((?:robot_dyn_id|config|urdf|test|launch)/[\w/.]+)`", where):
            assert (ROOT / path).exists(), f"{element}: {path}"


def test_every_paper_has_its_page_in_the_overview():
    overview = (paper_pages.PAGES / "README.md").read_text()
    assert all(f"({name}.md)" in overview for name in PAPERS)
