# SPDX-License-Identifier: Apache-2.0
"""Pages of the papers: elements with their places, and tables written from runs."""

import pkgutil
import re
from pathlib import Path

import paper_pages
import pytest

from robot_dyn_id.papers import PAPERS
from robot_dyn_id.papers.figures import MIN_DRAWS, WORDS, Figure, Reproduction

ROOT = Path(__file__).resolve().parents[2]

SECTION = re.compile(r"^## Elements of the paper$(.*?)(?=^## |\Z)", re.M | re.S)

SOURCES = {
    name: "".join(file.read_text() for file in (ROOT / "robot_dyn_id" / "papers" / name).glob("*.py"))
    for name in PAPERS
}

PAGES = {name: (paper_pages.PAGES / f"{name}.md").read_text() for name in PAPERS}


@pytest.mark.parametrize("name", PAGES)
def test_every_element_has_its_place_or_a_reason_of_one_line(name):
    section = SECTION.search(PAGES[name])
    assert section, f"{name}.md has no list of the elements of its paper"
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section[1], re.M)[1:]
    assert len(rows) >= 10
    for element, where in rows:
        assert len(where) < 220, f"{element}: more than a line"
        place = re.search(r"`|\brows?\b|\bdrawings?\b|\bcannot\b", where)
        assert place, f"{element}: neither a place nor a reason"
        for path in re.findall(r"`((?:robot_dyn_id|config|urdf|test|launch)/[\w/.]+)`", where):
            assert (ROOT / path).exists(), f"{element}: {path}"
        for path in re.findall(r"`(robot_dyn_id\.[\w.]+)`", where):
            assert pkgutil.resolve_name(path) is not None, f"{element}: {path}"
        for drawing in re.findall(rf"`({name}_[a-z]+)`", where):
            assert f'"{drawing}"' in SOURCES[name], f"{element}: no drawing {drawing}"


@pytest.mark.parametrize("name", PAGES)
def test_rows_that_the_elements_name_are_in_the_table(name):
    """Rows are called by the beginning of their names or of a part after a comma."""
    table = PAGES[name].partition(paper_pages.BEGIN)[2]
    for row in re.findall(r"\brows? ((?:`[^`]+`(?:, )?)+)", SECTION.search(PAGES[name])[1]):
        for words in re.findall(r"`([^`]+)`", row):
            assert words in table, words


@pytest.mark.parametrize("name", PAGES)
def test_nothing_noisy_is_called_beaten_from_few_draws(name):
    """Columns failed and verdict of the table: `0/20` draws at least where a figure is beaten."""
    for line in PAGES[name].splitlines():
        if line.endswith("  beaten") and (draws := re.search(r" \d+/(\d+) ", line)):
            assert int(draws[1]) >= MIN_DRAWS, line


@pytest.mark.parametrize("name", PAGES)
def test_every_claim_about_a_paper_has_its_reason(name):
    """A condition, or a line below the figure; what is judged against a limit of this package alone needs none."""
    claims = {"reproduced", "beaten", "not reproducible", "other conditions", "undecided", "no difference", "worse"}
    without = [words for words, reason in paper_pages.read_verdicts(PAGES[name]) if words in claims and not reason]
    assert not without


@pytest.mark.parametrize("name", PAGES)
def test_the_words_of_a_page_are_those_of_its_figures(name):
    """The line that the run has counted from its figures, and the rows of the table."""
    words = [word for word, _ in paper_pages.read_verdicts(PAGES[name])]
    counts = [f"{words.count(word)} {word}" for word in WORDS if word in words]
    assert f"\n    {len(words)} figures: {', '.join(counts)}\n" in PAGES[name]


def test_the_overview_counts_the_words_of_all_pages():
    assert paper_pages.count_verdicts(PAGES) in (paper_pages.PAGES / "README.md").read_text()


def test_a_claim_without_a_reason_is_noticed():
    figures = (
        Figure("rank", 9.0, 9.0),
        Figure("mass", 1.0, 2.0, conditions="simulated"),
        Figure("error", 1.0, 2.0, "lower", why="of the noise"),
        Figure("time [s]", 1.0),
    )
    result = Reproduction("planar3r", "somewhere", figures, ("a note",))
    page = paper_pages.page_with(f"{paper_pages.BEGIN}\n{paper_pages.END}", result, "reproduce")
    found = [("reproduced", False), ("other conditions", True), ("beaten", True), ("shown", False)]
    assert paper_pages.read_verdicts(page) == found
    assert result.count_verdicts() == {"reproduced": 1, "beaten": 1, "other conditions": 1, "shown": 1}


def test_every_paper_has_its_page_in_the_overview():
    overview = (paper_pages.PAGES / "README.md").read_text()
    assert all(f"({name}.md)" in overview for name in PAPERS)
