# SPDX-License-Identifier: Apache-2.0
"""Commands and Python of the documentation run, or state why they are not run."""

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from snippets import NEEDS, RUN_LANGUAGES, SHOWN_LANGUAGES, snippets_of
from support.snippet_folder import EXTRAS, prepare

from robot_dyn_id.cli import main
from robot_dyn_id.excitation.design.optimizers import SearchEffort

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "examples" / "README.md",
        ROOT / "benchmarks" / "README.md",
    ]
)
PAGES = [page for page in PAGES if page.parent.name != "reference"]
ELSEWHERE = {"README.md", "docs/python.md"}
"""Pages whose snippets `test/integration/test_readme.py` and `test/cli/test_try.py` run, and compare with what they print."""

RUNNING = [
    page
    for page in PAGES
    if page.relative_to(ROOT).as_posix() not in ELSEWHERE and any(snippet.runs for snippet in snippets_of(page))
]

COMMAND = re.compile(r"^ {4}(?:robot-dyn-id|ros2|make|pip|python) ", re.M)
SYNOPSIS = re.compile(r"\[--|\b[A-Z]{3,}\b")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snippets") / "prepared"
    prepare(folder)
    return folder


def run_shell(code):
    """Run the commands of a block in this process, where the libraries are loaded already."""
    for line in re.sub(r"\\\n", " ", code).splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "robot-dyn-id":
            assert main(words[1:]) == 0, line
        elif words[0] == "python":
            run_script(words[1:])
        else:
            raise AssertionError(f"{line}: such a command needs a mark")


def run_script(words):
    before, path = sys.argv, list(sys.path)
    sys.argv, sys.path = words, [str(Path(words[0]).resolve().parent), *path]
    try:
        runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv, sys.path = before, path


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_snippets_of_a_page_run_in_their_order(page, prepared, tmp_path, monkeypatch, capsys):
    """Designs by a small search."""
    folder = tmp_path / "folder"
    shutil.copytree(prepared, folder, symlinks=True)
    if name_of(page) in EXTRAS:
        EXTRAS[name_of(page)](folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(SearchEffort.__init__, "__defaults__", (10, 1, 1, 10, *SearchEffort.__init__.__defaults__[4:]))
    names = {"__name__": "snippet"}
    for snippet in snippets_of(page):
        if not snippet.runs:
            continue
        if snippet.language == "sh":
            run_shell(snippet.code)
        else:
            exec(compile(snippet.code, f"{name_of(page)}:{snippet.line}", "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_have_a_known_language_and_mark(page):
    for snippet in snippets_of(page):
        assert snippet.language in RUN_LANGUAGES + SHOWN_LANGUAGES, f"{name_of(page)}:{snippet.line}"
        if snippet.language == "text" and re.search(r"^(?:robot-dyn-id|ros2) ", snippet.code, re.M):
            assert SYNOPSIS.search(snippet.code), f"{name_of(page)}:{snippet.line}: commands that could run"
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    assert not COMMAND.search(text), "commands in an indented block: no test runs them"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_marks_are_true(page):
    for snippet in snippets_of(page):
        if not snippet.mark or snippet.language not in RUN_LANGUAGES:
            continue
        if snippet.mark in NEEDS:
            assert re.search(r"^(?:ros2|rosdep|python3|cd|uv|uvx|pixi|robot-dyn-id) |/opt/ros/", snippet.code, re.M), (
                snippet.code
            )
            continue
        where = re.fullmatch(r"Run by `(.+)`", snippet.mark)
        assert where, snippet.mark
        text = (ROOT / where[1]).read_text(encoding="utf-8")
        tools = {"robot-dyn-id": 1, "make": 0, "pip": 0, "colcon": 0, "export": None}
        for line in filter(None, (shlex.split(line, comments=True) for line in snippet.code.splitlines())):
            place = tools.get(line[0].partition("=")[0])
            assert place is None or line[place] in text, f"{where[1]} does not run {line}"


def test_every_page_that_is_prepared_exists():
    assert all((ROOT / page).is_file() for page in EXTRAS)
