# SPDX-License-Identifier: Apache-2.0
"""The documentation site: its pages, its generated reference, and what a page may load (`make docs` builds it)."""

import re
from pathlib import Path

import pytest
from reference_pages import argument_words, commands_page, configuration_page, messages_page, options_page
from remote_resources import remote_resources
from snippets import snippets_of

import robot_dyn_id as rdi
from robot_dyn_id.cli import VERBS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ('<script src="https://a.b/c.js"></script>', ["https://a.b/c.js"]),
        ('<link rel="stylesheet" href="//fonts.x/y.css">', ["//fonts.x/y.css"]),
        ('<link href="https://fonts.x/y.css" rel="stylesheet">', ["https://fonts.x/y.css"]),
        ("@font-face { src: url('http://f.g/h.woff2') }", ["http://f.g/h.woff2"]),
        ('<img src="images/report.png"><a href="https://a.b">link</a>', []),
        ('<link rel="canonical" href="https://a.b/page.html">', []),
    ],
)
def test_what_a_page_loads_from_the_network_is_found(text, loaded):
    assert remote_resources(text) == loaded


def test_every_page_is_in_the_index():
    index = (DOCS / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   ([a-z][\w/]+)$", index, re.M | re.I)
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted({*pages, *(page for page in listed if page.startswith("reference/"))})


def test_the_reference_has_every_command_option_key_and_message():
    commands = commands_page()
    assert re.findall(r"^## (.+)$", commands, re.M) == list(VERBS)
    assert "`--robot URDF` (required)" in commands
    configuration = configuration_page()
    assert all(f"`{key}`" in configuration for key in ("cutoff", "channel_topics", "held", "bad_nrmse"))
    for kind, classes in (("estimator", rdi.ESTIMATORS), ("term", rdi.TERMS)):
        page = options_page("Options", kind, classes, "page.md")
        assert re.findall(r"^## (.+)$", page, re.M) == list(classes)
    messages = messages_page(ROOT)
    assert all(f"## {file.stem}\n" in messages for file in (*ROOT.glob("msg/*.msg"), *ROOT.glob("action/*.action")))


def test_every_option_of_the_reference_has_a_meaning():
    for text in (
        configuration_page(),
        *(options_page("Options", "x", kinds, "page.md") for kinds in (rdi.ESTIMATORS, rdi.TERMS)),
    ):
        rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.M)
        assert not [key for key, meaning in rows if not meaning.strip()]


def test_an_argument_is_shown_with_its_values():
    import argparse

    parser = argparse.ArgumentParser()
    assert argument_words(parser.add_argument("data", nargs="+", metavar="DATA")) == "`DATA ...`"
    assert argument_words(parser.add_argument("--gravity", nargs=3, metavar=("X", "Y", "Z"))) == "`--gravity X Y Z`"
    assert argument_words(parser.add_argument("--kind", choices=["a", "b"])) == "`--kind {a, b}`"
    assert argument_words(parser.add_argument("--fast", action="store_true")) == "`--fast`"


def test_blocks_are_read_with_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Text\n\n*Needs a robot.*\n\n```sh\nros2 run\n```\n\n```python\nx = 1\n```\n\n"
        "<!-- Run by `Makefile` -->\n\n```sh\nmake\n```\n"
    )
    first, second, third = snippets_of(page)
    assert (first.mark, first.runs) == ("Needs a robot", False)
    assert (second.mark, second.runs, second.code, second.line) == ("", True, "x = 1\n", 9)
    assert (third.mark, third.runs) == ("Run by `Makefile`", False)
