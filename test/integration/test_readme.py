# SPDX-License-Identifier: Apache-2.0
"""The README and the documentation: their Python runs, links lead somewhere; the first command: `test/cli/test_try.py`."""

import re
from pathlib import Path

import pytest
from PIL import Image
from support.pictures import KEY, hash_of_report
from support.simulated import ARM, Simulated, save_npz

import robot_dyn_id as rdi
from robot_dyn_id.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md", ROOT / "benchmarks/README.md"]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages name."""
    arm = Simulated()
    (tmp_path / "arm.urdf").write_text(ARM)
    save_npz(tmp_path / "recording.npz", arm.record(duration=20.0, rate=50.0, noise=0.1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_command_for_your_own_robot_runs(folder):
    (line,) = re.findall(r"^robot-dyn-id identify .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert main(line.replace("recording.mcap", "recording.npz").split()[1:]) == 0


def test_no_paragraph_of_the_readme_is_longer_than_four_lines():
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    paragraphs = [part for part in text.split("\n\n") if not part.lstrip().startswith("|")]
    assert max(part.strip().count("\n") + 1 for part in paragraphs) <= 4


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size < 200_000, picture


@pytest.mark.parametrize("name", ["report", "report_joint"])
def test_pictures_of_the_report_are_of_the_present_page(name):
    with Image.open(ROOT / "docs" / "images" / f"{name}.png") as picture:
        assert picture.text.get(KEY) == hash_of_report(), "draw them again: python docs/pictures.py report terminal"


@pytest.mark.slow
def test_the_page_on_python_runs_and_names_everything_public(folder, capsys):
    page = ROOT / "docs/python.md"
    names = {}
    for code in python_blocks(page):
        exec(code, names)
    text = page.read_text(encoding="utf-8")
    missing = [name for name in rdi.__all__ if f"`{name}`" not in text and f"rdi.{name}" not in text]
    assert missing == ["__version__"]


def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
