# SPDX-License-Identifier: Apache-2.0
"""The README and the documentation: their Python runs, the output shown is that of the command, links lead somewhere."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from support.simulated import ARM, Simulated, save_npz

import robot_dyn_id as rdi
from robot_dyn_id.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md", ROOT / "benchmarks/README.md"]
DATA = os.environ.get("ROBOT_DYN_ID_DATA")


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


def test_the_example_of_the_readme_runs(folder, capsys):
    (code,) = python_blocks(ROOT / "README.md")
    names = {}
    exec(code.replace("recording.mcap", "recording.npz"), names)
    assert "verdict: good" in capsys.readouterr().out
    assert (folder / "run/report.html").exists()
    assert names["tau"].shape == (3,) and names["M"].shape == (3, 3)
    np.testing.assert_allclose(names["tau"], names["M"] @ names["ddq"] + names["h"], rtol=1e-9, atol=1e-12)


def test_the_page_on_python_runs_and_names_everything_public(folder, capsys):
    page = ROOT / "docs/python.md"
    names = {}
    for code in python_blocks(page):
        exec(code, names)
    text = page.read_text(encoding="utf-8")
    missing = [name for name in rdi.__all__ if f"`{name}`" not in text and f"rdi.{name}" not in text]
    assert missing == ["__version__"]


@pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
def test_the_readme_shows_what_the_command_prints(tmp_path, capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^    joint {20}.*?(?=^`run/`)", text, re.M | re.S)[0]
    recorded = Path(DATA) / "fer_unisa_bag"
    words = ["identify", recorded / "panda_exciting_trajectory.db3", "--robot", recorded / "model.urdf"]
    assert main([str(word) for word in (*words, "--out", tmp_path / "run")]) == 0
    printed = capsys.readouterr().out.replace(str(tmp_path) + "/", "").replace(f"{recorded}/", "").splitlines()
    lines = [line.removeprefix("    ") for line in shown.rstrip().splitlines()]
    assert len(lines) == len(printed)
    for ours, theirs in zip(lines, printed, strict=True):
        assert theirs.startswith(ours.removesuffix(" ...")) if ours.endswith(" ...") else theirs == ours


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
